package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write/transfer"
)

type exportFlags struct {
	to, where, query, version string
	format, compression       string
	lakes, columns            []string
	rowsPerFile               int64
	memoryLimit               string
	force, quiet              bool
}

func exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export [LAKE.TABLE] --to FILE|FOLDER/",
		Short: "Write a table, a part of it or a query's rows to Parquet or Arrow",
		Long: `export writes the rows of a table, or of a query, to one Parquet or Arrow file, or to a folder of them (a name that ends in /). The table is named LAKE.TABLE
after a --lake, or by its place, as /data/lake/images.lance.

Nothing has its name before it is whole: a file appears when all of it is written, a folder of this machine with all its files. What is there stays unless --force
says otherwise. Lists, vectors, structs, maps, decimals and timestamps keep their types.`,
		Example: `  lakesql export prod.images --lake prod=/data/lake --to images.parquet
  lakesql export /data/lake/images.lance --to s3://bucket/images/ --rows-per-file 1000000
  lakesql export prod.images --lake prod=/data/lake --columns id,labels --where "array_has(labels, 'wet')" --to wet.arrow
  lakesql export prod.images --lake prod=/data/lake --version 12 --to old.parquet --compression snappy
  lakesql export --lake prod=/data/lake --query 'SELECT carrier, sum(amount) FROM prod.orders GROUP BY carrier' --to sums.parquet`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runExport(cmd, args, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "file, or folder if it ends in /, on this machine or in an object store")
	flags.StringArrayVar(&f.lakes, "lake", nil, "a lake: NAME=FOLDER or NAME=s3://bucket/prefix")
	flags.StringVar(&f.where, "where", "", "condition on the rows")
	flags.StringVar(&f.query, "query", "", "a SELECT whose rows are written, in place of a table")
	flags.StringVar(&f.version, "version", "", "version of the table: a number or a tag (default the newest)")
	flags.StringSliceVar(&f.columns, "columns", nil, "columns to write, in that order (default all)")
	flags.StringVar(&f.format, "format", "", "parquet, arrow or arrows (an IPC stream) (default by the name; parquet in folders)")
	flags.StringVar(&f.compression, "compression", "zstd", "zstd, snappy (Parquet alone) or none")
	flags.Int64Var(&f.rowsPerFile, "rows-per-file", 0, "rows of each file of a folder (default all in one)")
	flags.StringVar(&f.memoryLimit, "memory-limit", "", "memory of a query, as 2GiB (default unlimited)")
	flags.BoolVar(&f.force, "force", false, "replace what is there")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print errors alone")
	_ = cmd.MarkFlagRequired("to") // the flag is there
	cmd.MarkFlagsMutuallyExclusive("query", "where")
	cmd.MarkFlagsMutuallyExclusive("query", "columns")
	cmd.MarkFlagsMutuallyExclusive("query", "version")
	return cmd
}

func runExport(cmd *cobra.Command, args []string, f exportFlags) (err error) {
	if (len(args) == 1) == (f.query != "") {
		return errs.New(errs.ErrInvalid, "name a table to export, or give --query")
	}
	opts := transfer.ExportOptions{Compression: transfer.Compression(strings.ToLower(f.compression)), RowsPerFile: f.rowsPerFile, Force: f.force}
	if opts.Format, err = files.ParseFormat(f.format); err != nil {
		return err
	}
	ctx := cmd.Context()
	store, to, isFolder, err := findDestination(ctx, f.to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	opts.Folder = isFolder
	bar := newMeter(cmd.ErrOrStderr(), f.quiet)
	opts.Progress = func(rows int64) { bar.show(meterState{rows: rows}) }
	start := time.Now()
	var done transfer.Exported
	write := func(rows transfer.Rows) error {
		var err error
		done, err = transfer.Export(ctx, rows, store, to, opts)
		return err
	}
	if f.query == "" && f.where == "" {
		err = f.exportTable(ctx, args[0], write)
	} else {
		err = f.exportQuery(ctx, args, write)
	}
	bar.finish()
	if err != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(cmd.OutOrStdout(), "exported %s to %s (%s, %s) in %s\n", plural(done.Rows, "row", "rows"), f.to, plural(int64(len(done.Files)), string(done.Format)+" file", string(done.Format)+" files"),
			plural(done.Bytes, "byte", "bytes"), time.Since(start).Round(time.Millisecond))
	}
	return nil
}

// findDestination opens the store of a file or folder that is to be written, and returns the path in it.
func findDestination(ctx context.Context, to string) (store object.Store, p string, isFolder bool, err error) {
	place, parameters := to, ""
	if isRemote(to) {
		if at := strings.IndexByte(to, '?'); at >= 0 {
			place, parameters = to[:at], to[at:]
		}
		isFolder = strings.HasSuffix(place, "/")
		scheme, rest, _ := strings.Cut(place, "://")
		bucket, key, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
		if bucket == "" || key == "" {
			return nil, "", false, errs.New(errs.ErrInvalid, "--to %s: write %s://BUCKET/NAME", to, scheme)
		}
		store, err = cloudStore(ctx, scheme+"://"+bucket+parameters)
		return store, path.Clean(key), isFolder, err
	}
	place = strings.TrimPrefix(place, "file://")
	isFolder = strings.HasSuffix(place, "/")
	abs, err := filepath.Abs(place)
	if err != nil {
		return nil, "", false, errs.New(errs.ErrInvalid, "--to %s: %w", to, err)
	}
	store, err = openStore(ctx, filepath.Dir(abs))
	return store, filepath.Base(abs), isFolder, err
}

// exportTable reads all rows of a version as they are stored.
func (f *exportFlags) exportTable(ctx context.Context, name string, write func(transfer.Rows) error) (err error) {
	t, err := findTable(ctx, "export", name, f.lakes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	table, err := storage.OpenTable(ctx, t.store, t.dir, storage.TableOptions{})
	if err != nil {
		return fmt.Errorf("table %s: %w", t.name, err)
	}
	var snap *storage.Snapshot
	if f.version == "" {
		snap, err = table.Latest(ctx)
	} else {
		snap, err = table.At(ctx, f.ref())
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", t.name, err)
	}
	rows, err := transfer.TableRows(ctx, snap, f.columns)
	if err != nil {
		return err
	}
	return errors.Join(write(rows), rows.Close())
}

// ref is the version that is asked for.
func (f *exportFlags) ref() storage.Ref {
	if n, err := strconv.ParseUint(f.version, 10, 64); err == nil {
		return storage.Ref{Version: n}
	}
	return storage.Ref{Tag: f.version}
}

// exportQuery runs a SELECT on the engine.
func (f *exportFlags) exportQuery(ctx context.Context, args []string, write func(transfer.Rows) error) (err error) {
	quiet(false)
	var c config
	if f.memoryLimit != "" {
		if err := c.QueryMemoryLimit.UnmarshalText([]byte(f.memoryLimit)); err != nil {
			return err
		}
	}
	if c.Catalogs, err = parseCatalogs("lance", f.lakes); err != nil {
		return err
	}
	text := f.query
	if text == "" {
		if text, err = f.selection(ctx, args[0], &c); err != nil {
			return err
		}
	}
	e, err := openEngine(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	database := ""
	if len(c.Catalogs) > 0 {
		database = c.Catalogs[0].Name
	}
	s := e.NewSession(engine.SessionOptions{Database: database})
	defer s.Close()
	ran := false
	err = s.QueryAll(ctx, text, func(res *engine.Result) error {
		if ran || !res.HasRows() {
			return errs.New(errs.ErrInvalid, "--query is one SELECT")
		}
		ran = true
		return write(newResultRows(res))
	})
	if err == nil && !ran {
		err = errs.New(errs.ErrInvalid, "--query is one SELECT")
	}
	return err
}

// selection is the SELECT of --columns, --version and --where; a table that is named by its place gets a lake in c.
func (f *exportFlags) selection(ctx context.Context, name string, c *config) (string, error) {
	t, err := findTable(ctx, "export", name, f.lakes)
	if err != nil {
		return "", err
	}
	if err := t.close(); err != nil {
		return "", err
	}
	table, _ := strings.CutSuffix(t.dir, ".lance")
	lake, _, _ := strings.Cut(t.name, ".")
	if t.root != "" {
		lake = "lake"
		for i := 0; slicesHasCatalog(c.Catalogs, lake); i++ {
			lake = "lake" + strconv.Itoa(i)
		}
		c.Catalogs = append(c.Catalogs, catalogConfig{Name: lake, URI: t.root})
	}
	columns := "*"
	if len(f.columns) > 0 {
		quoted := make([]string, len(f.columns))
		for i, col := range f.columns {
			quoted[i] = quoteName(strings.TrimSpace(col))
		}
		columns = strings.Join(quoted, ", ")
	}
	text := "SELECT " + columns + " FROM " + quoteName(lake) + "." + quoteName(table)
	switch ref := f.ref(); {
	case f.version == "":
	case ref.Tag != "":
		text += " AS OF '" + strings.ReplaceAll(ref.Tag, "'", "''") + "'"
	default:
		text += " AS OF " + strconv.FormatUint(ref.Version, 10)
	}
	return text + " WHERE " + f.where, nil
}

func slicesHasCatalog(all []catalogConfig, name string) bool {
	for _, c := range all {
		if c.Name == name {
			return true
		}
	}
	return false
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// resultRows gives a result's rows under the names of its columns.
type resultRows struct {
	res    *engine.Result
	schema *arrow.Schema
}

func newResultRows(res *engine.Result) *resultRows {
	have := res.Operator.Schema()
	fields := make([]arrow.Field, len(res.Columns))
	seen := make(map[string]int)
	for i, c := range res.Columns {
		name := c.Name
		if seen[name]++; seen[name] > 1 {
			name += "_" + strconv.Itoa(seen[c.Name])
		}
		fields[i] = arrow.Field{Name: name, Type: have.Field(i).Type, Nullable: true}
	}
	return &resultRows{res: res, schema: arrow.NewSchema(fields, nil)}
}

// Schema implements transfer.Rows.
func (r *resultRows) Schema() *arrow.Schema { return r.schema }

// Next implements transfer.Rows.
func (r *resultRows) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var of context.Context = r.res.Context()
	b, err := r.res.Operator.Next(of)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return transfer.Named(b, r.schema), nil
}
