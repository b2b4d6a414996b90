package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
)

type queryFlags struct {
	lakes, parquets             []string
	database, sql, file, format string
	memoryLimit                 string
	timing                      bool
}

func queryCommand() *cobra.Command {
	var f queryFlags
	cmd := &cobra.Command{
		Use:   "query [--lake NAME=URI]... [-e SQL | -f FILE]",
		Short: "Run statements without a server",
		Long: `query runs the statements of -e, of a file, or of standard input on the same engine as serve, and prints their results. The first lake is the current
database. Exit code 1 and the error on standard error if a statement fails; statements after it do not run.`,
		Example: `  lakesql query --lake ./demo -e "SELECT count(*) FROM images WHERE array_has(labels, 'wet')"
  lakesql query --lake demo=./demo --format json -f report.sql
  echo 'SHOW TABLES' | lakesql query --lake ./demo --timing`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runQuery(cmd, f) },
	}
	cmd.Flags().StringArrayVar(&f.lakes, "lake", nil, "a lake: NAME=FOLDER, NAME=s3://bucket/prefix, or a folder alone; may be repeated")
	cmd.Flags().StringArrayVar(&f.parquets, "parquet", nil, "a folder of Parquet files: NAME=FOLDER; may be repeated")
	cmd.Flags().StringVar(&f.database, "database", "", "current database (default the first lake)")
	cmd.Flags().StringVarP(&f.sql, "execute", "e", "", "statements to run")
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "file of statements to run")
	cmd.Flags().StringVar(&f.format, "format", "table", "table, tsv, csv, json or vertical")
	cmd.Flags().StringVar(&f.memoryLimit, "memory-limit", "", "memory of each statement, as 2GiB (default unlimited)")
	cmd.Flags().BoolVar(&f.timing, "timing", false, "print each statement's rows and time to standard error")
	cmd.MarkFlagsMutuallyExclusive("execute", "file")
	return cmd
}

func runQuery(cmd *cobra.Command, f queryFlags) (err error) {
	quiet(false)
	if _, err := newRowWriter(f.format, io.Discard); err != nil {
		return err
	}
	text, err := f.text(cmd.InOrStdin())
	if err != nil {
		return err
	}
	var c config
	if f.memoryLimit != "" {
		if err := c.QueryMemoryLimit.UnmarshalText([]byte(f.memoryLimit)); err != nil {
			return err
		}
	}
	lakes, err := parseCatalogs("lance", f.lakes)
	if err != nil {
		return err
	}
	parquets, err := parseCatalogs("parquet", f.parquets)
	if err != nil {
		return err
	}
	c.Catalogs = append(lakes, parquets...)
	e, err := openEngine(cmd.Context(), c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	database := f.database
	if database == "" && len(c.Catalogs) > 0 {
		database = c.Catalogs[0].Name
	}
	s := e.NewSession(engine.SessionOptions{Database: database})
	defer s.Close()
	p := printer{out: cmd.OutOrStdout(), log: cmd.ErrOrStderr(), format: f.format, timing: f.timing, started: time.Now()}
	return s.QueryAll(cmd.Context(), text, p.print)
}

func (f queryFlags) text(in io.Reader) (string, error) {
	switch {
	case f.sql != "":
		return f.sql, nil
	case f.file != "":
		b, err := os.ReadFile(f.file)
		if err != nil {
			return "", errs.New(errs.ErrNotFound, "statements: %w", err)
		}
		return string(b), nil
	}
	b, err := io.ReadAll(in)
	return string(b), err
}

// printer prints one result after another.
type printer struct {
	out, log io.Writer
	format   string
	timing   bool
	started  time.Time // of the present statement
}

func (p *printer) print(res *engine.Result) error {
	rows := int64(0)
	if res.HasRows() {
		var err error
		if rows, err = p.rows(res); err != nil {
			return err
		}
	} else if p.format == "table" || p.format == "vertical" {
		noun := "rows"
		if res.AffectedRows == 1 {
			noun = "row"
		}
		fmt.Fprintf(p.out, "OK, %d %s affected\n", res.AffectedRows, noun)
	}
	for _, w := range res.Warnings() {
		fmt.Fprintf(p.log, "%s %d: %s\n", w.Level, w.Code, w.Message)
	}
	if p.timing {
		fmt.Fprintf(p.log, "%d rows in %s\n", rows, time.Since(p.started).Round(10*time.Microsecond))
	}
	p.started = time.Now()
	return nil
}

func (p *printer) rows(res *engine.Result) (rows int64, err error) {
	w, err := newRowWriter(p.format, p.out)
	if err != nil {
		return 0, err
	}
	schema := res.Operator.Schema()
	fields := make([]arrow.Field, len(res.Columns))
	for i, col := range res.Columns {
		fields[i] = arrow.Field{Name: col.Name, Type: schema.Field(i).Type}
	}
	if err := w.Header(fields); err != nil {
		return 0, err
	}
	text, err := newTextRows(schema)
	if err != nil {
		return 0, err
	}
	// Values may lie in a mapped file that shrinks meanwhile, so reading them is guarded.
	err = spawn.Guard(func() error {
		rows, err = p.batches(res, text, w)
		return err
	})
	return rows, errors.Join(err, w.Finish())
}

func (p *printer) batches(res *engine.Result, text *textRows, w rowWriter) (rows int64, err error) {
	var ctx context.Context = res.Context()
	for {
		b, err := res.Operator.Next(ctx)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows += b.NumRows()
		err = text.each(res.ExprEnv(), b, w.Row)
		b.Release()
		if err != nil {
			return rows, err
		}
	}
}
