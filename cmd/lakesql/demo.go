package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lakesql/lakesql/demo"
	"github.com/lakesql/lakesql/internal/errs"
)

type demoFlags struct {
	dir, listen, portFile string
	rows                  int64
	noServe               bool
}

func demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Make a lake of parcels, print statements to try, and serve it",
		Long: `demo makes the tables images (labels, embeddings, trajectories), orders and shipments with their indices in a folder, prints five statements to try, and
serves the lake. A folder that has the lake already is served as it is.`,
		Example: `  lakesql demo
  lakesql demo --dir ./parcels --rows 1000000 --no-serve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, f) },
	}
	cmd.Flags().StringVar(&f.dir, "dir", "lakesql-demo", "folder of the lake")
	cmd.Flags().Int64Var(&f.rows, "rows", 100_000, "images to make")
	cmd.Flags().StringVar(&f.listen, "listen", defaultListen, "address to listen on (port 0 = a free one)")
	cmd.Flags().StringVar(&f.portFile, "port-file", "", "write the port to this file once connections are accepted")
	cmd.Flags().BoolVar(&f.noServe, "no-serve", false, "make the lake and stop")
	return cmd
}

func runDemo(cmd *cobra.Command, f demoFlags) error {
	out := cmd.OutOrStdout()
	if err := makeLake(cmd, f, out); err != nil {
		return err
	}
	fmt.Fprint(out, demoText)
	if f.noServe {
		fmt.Fprintf(out, "try them with: lakesql query --lake demo=%s\n", f.dir)
		return nil
	}
	c := config{Listen: f.listen, Catalogs: []catalogConfig{{Name: "demo", URI: f.dir}}}
	return serve(cmd.Context(), c, serveFlags{portFile: f.portFile}, out)
}

func makeLake(cmd *cobra.Command, f demoFlags, out io.Writer) error {
	if _, err := os.Stat(filepath.Join(f.dir, "images.lance")); err == nil {
		fmt.Fprintf(out, "using the lake in %s\n", f.dir)
		return nil
	}
	start := time.Now()
	bar := &stepBar{out: cmd.ErrOrStderr()}
	lake, err := demo.Generate(cmd.Context(), demo.Options{Dir: f.dir, Rows: f.rows, Progress: bar.show})
	bar.finish()
	if errors.Is(err, errs.ErrExists) {
		return fmt.Errorf("%w: an earlier run did not finish; remove %s and start again", err, f.dir)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "made %d images, %d orders, %d shipments in %s (%s)\n", lake.Images, lake.Orders, lake.Shipments, f.dir, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// stepBar draws one progress bar per step, on a terminal alone.
type stepBar struct {
	out  io.Writer
	step string
	bar  *progressbar.ProgressBar
}

func (s *stepBar) show(p demo.Progress) {
	file, ok := s.out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return
	}
	if p.Step != s.step {
		s.finish()
		s.step = p.Step
		s.bar = progressbar.NewOptions64(max(p.Total, 1), progressbar.OptionSetWriter(s.out), progressbar.OptionSetDescription(p.Step),
			progressbar.OptionSetWidth(30), progressbar.OptionShowCount(), progressbar.OptionThrottle(50*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	_ = s.bar.Set64(p.Done) // a bar that cannot be drawn stops nothing
}

func (s *stepBar) finish() {
	if s.bar != nil {
		_ = s.bar.Finish()
		s.bar = nil
	}
}

const demoText = `
Five statements to try:

  -- labels, through the label index
  SELECT count(*) FROM images WHERE array_has_all(labels, ['damage', 'wet']);

  -- the ten images most like image 42
  SELECT id, l2_distance(embedding, (SELECT embedding FROM images WHERE id = 42)) AS d FROM images ORDER BY d LIMIT 10;

  -- labels and likeness in one statement, then a join and an aggregate
  SELECT o.carrier, count(*) AS n, sum(o.amount) AS total
  FROM (SELECT parcel_id FROM images WHERE array_has_all(labels, ['damage', 'wet']) AND tenant = 'acme'
        ORDER BY l2_distance(embedding, (SELECT embedding FROM images WHERE id = 42)) LIMIT 100) hits
  JOIN orders o ON o.parcel_id = hits.parcel_id GROUP BY o.carrier ORDER BY n DESC;

  -- how it runs: label index, vector search, late fetch
  EXPLAIN ANALYZE SELECT id, trajectory FROM images WHERE array_has(labels, 'wet') ORDER BY captured_at DESC LIMIT 5;

  -- what the indices cover
  SELECT * FROM lakesql.indices;

`
