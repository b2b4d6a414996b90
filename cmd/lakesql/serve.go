package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/server"
)

// defaultListen is MySQL's port on loopback.
const defaultListen = "127.0.0.1:3306"

// heapFloorBytes is garbage that a server gathers at least before it collects: batches come and go by the hundred megabytes a second beside a live heap
// of a few, and each collection would otherwise come after as few.
const heapFloorBytes = 128 << 20

type serveFlags struct {
	listen, config, portFile string
	lakes, parquets          []string
	verbose, readOnly        bool
	upkeep                   bool
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [--lake NAME=URI]...",
		Short: "Serve lakes over the MySQL protocol",
		Long: `serve makes each lake, a folder of NAME.lance datasets, one MySQL database, and each folder of Parquet files too. Any MySQL client connects.

Without users in the configuration everybody is root, so only a loopback address is allowed.`,
		Example: `  lakesql serve --lake demo=./demo
  lakesql serve --listen 127.0.0.1:3307 --lake prod=s3://bucket/prefix --parquet raw=/data/parquet
  lakesql serve --config lakesql.yaml

A configuration:

  listen: 0.0.0.0:3306
  memory_limit: 8GiB
  query_memory_limit: 2GiB
  users:
    - {name: analyst, password: secret}
  catalogs:
    - {name: prod, kind: lance, uri: /data/lake, read_only: true}
    - {name: raw, kind: parquet, uri: /data/parquet}
  upkeep:              # see docs/upkeep.md; the values are the defaults but for enabled
    enabled: true
    interval: 5m
    cores: 1
    memory: 512MiB
    bytes_per_second: 64MiB
    requests_per_second: 100
    indices: {uncovered_rows: 100000, uncovered_share: 0.1, segments: 8}
    compaction: {small_fragments: 16, deleted_rows: 100000, deleted_share: 0.1}
    cleanup: {older_than: 7d, keep_latest: 10, every: 1h}`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.merge()
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, f, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "address to listen on (default "+defaultListen+"; port 0 = a free one)")
	cmd.Flags().StringArrayVar(&f.lakes, "lake", nil, "a lake: NAME=FOLDER or NAME=s3://bucket/prefix; may be repeated")
	cmd.Flags().StringArrayVar(&f.parquets, "parquet", nil, "a folder of Parquet files: NAME=FOLDER; may be repeated")
	cmd.Flags().StringVar(&f.config, "config", "", "YAML configuration; flags come on top of it")
	cmd.Flags().StringVar(&f.portFile, "port-file", "", "write the port to this file once connections are accepted")
	cmd.Flags().BoolVar(&f.readOnly, "read-only", false, "refuse statements that change tables, in every lake")
	cmd.Flags().BoolVar(&f.upkeep, "upkeep", false, "extend indices, compact small fragments and remove old versions while serving; thresholds as in the configuration")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "log connections and statements")
	return cmd
}

// merge puts the flags over the configuration file.
func (f serveFlags) merge() (config, error) {
	c := config{Upkeep: upkeepDefaults()}
	if f.config != "" {
		var err error
		if c, err = readConfig(f.config); err != nil {
			return c, err
		}
	}
	lakes, err := parseCatalogs("lance", f.lakes)
	if err != nil {
		return c, err
	}
	parquets, err := parseCatalogs("parquet", f.parquets)
	if err != nil {
		return c, err
	}
	c.Catalogs = append(append(c.Catalogs, lakes...), parquets...)
	for i := range c.Catalogs {
		c.Catalogs[i].ReadOnly = c.Catalogs[i].ReadOnly || f.readOnly
	}
	c.Upkeep.Enabled = c.Upkeep.Enabled || f.upkeep
	if c.maintain, err = c.Upkeep.options(); err != nil {
		return c, err
	}
	if f.listen != "" {
		c.Listen = f.listen
	}
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if len(c.Catalogs) == 0 {
		return c, errs.New(errs.ErrInvalid, "nothing to serve: name a lake with --lake NAME=FOLDER, or try `lakesql demo`")
	}
	return c, nil
}

func serve(ctx context.Context, c config, f serveFlags, out io.Writer) (err error) {
	quiet(f.verbose)
	e, err := openEngine(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	s, err := server.Start(context.WithoutCancel(ctx), e, c.serverOptions())
	if err != nil {
		return err
	}
	names := make([]string, len(c.Catalogs))
	for i, cat := range c.Catalogs {
		names[i] = cat.Name
	}
	fmt.Fprintf(out, "serving %s on %s\n%s\n", strings.Join(names, ", "), s.Addr(), clientLine(s.Addr(), names[0], len(c.Users) > 0))
	if f.portFile != "" {
		_, port, _ := net.SplitHostPort(s.Addr().String())
		if err := os.WriteFile(f.portFile, []byte(port), 0o600); err != nil {
			return errors.Join(errs.New(errs.ErrIO, "port file: %w", err), s.Close())
		}
	}
	// The runtime collects when the heap has doubled and has no setting for its least size. This array counts as heap, but pages that nobody touches
	// take no memory.
	floor := make([]byte, heapFloorBytes)
	<-ctx.Done()
	runtime.KeepAlive(floor)
	fmt.Fprintln(out, "stopping")
	return s.Close()
}

// clientLine is what to type to connect.
func clientLine(addr net.Addr, database string, withUsers bool) string {
	host, port, _ := net.SplitHostPort(addr.String())
	user := "root"
	if withUsers {
		user = "USER -p"
	}
	return fmt.Sprintf("connect with: mysql --host %s --port %s --user %s --comments %s", host, port, user, database)
}

// quiet keeps the libraries' logs to what an operator must see.
func quiet(verbose bool) {
	logrus.SetLevel(logrus.ErrorLevel)
	if verbose {
		logrus.SetLevel(logrus.DebugLevel)
	}
}
