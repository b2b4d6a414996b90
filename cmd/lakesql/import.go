package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/write/transfer"
)

type importFlags struct {
	into                                         string
	lakes                                        []string
	format, delimiter, quote, escape, header     string
	nulls                                        []string
	dateOrder, schema, schemaFile                string
	columns                                      []string
	skipLines, sampleRows, vectorMin, maxRow     int
	doCreate, doAppend, doReplace, again, atomic bool
	commitRows, fragmentRows, maxBadRows         int64
	badRows, badRowsFile                         string
	fileVersion                                  string
	stableRowIDs, quiet                          bool
	memoryLimit                                  string
	threads                                      int
}

func importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import SOURCE... --into LAKE.TABLE",
		Short: "Add the rows of Parquet, Arrow, CSV and NDJSON files to a table",
		Long: `import adds the rows of files to a table, which is created where there is none. A source is a file, a folder or a pattern (* and ? within a name, ** for any
folders), on this machine or in an object store; files that end in .gz and .zst are decompressed if they are text.

Format, delimiter, quotes, header, types, spellings of NULL and forms of dates are found out from a sample; each has a flag that says it instead. JSON arrays become lists,
objects structs; lists of floating numbers that all have one length, of at least 8, become vectors.

A file is committed whole or not at all, and the table remembers it: the same command run again, after a crash or an interrupt, goes on with the files that are missing.
The first row that cannot be read fails its file, with file, line, column and value; --bad-rows skip leaves such rows out and counts them. See docs/import.md.`,
		Example: `  lakesql import events.csv --lake prod=/data/lake --into prod.events
  lakesql import 's3://bucket/2024/**/*.parquet' --into /data/lake/images.lance
  lakesql import logs.ndjson.gz --into prod.logs --lake prod=/data/lake --bad-rows skip --bad-rows-file bad.ndjson
  lakesql import people.csv --into /data/lake/people.lance --delimiter ';' --date-order dmy --null NA --null ''
  lakesql import images.ndjson --into /data/lake/images.lance --schema 'id BIGINT NOT NULL, labels LIST<VARCHAR>, embedding VECTOR(768)'
  lakesql import day.parquet --into /data/lake/days.lance --columns 'id,price=unit_price' --replace`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runImport(cmd, args, f) },
	}
	f.add(cmd)
	return cmd
}

func (f *importFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.into, "into", "", "the table: LAKE.TABLE, or its place, as /data/lake/images.lance")
	flags.StringArrayVar(&f.lakes, "lake", nil, "a lake: NAME=FOLDER or NAME=s3://bucket/prefix")
	flags.StringVar(&f.format, "format", "", "parquet, arrow, arrows (an IPC stream), csv or ndjson (default by name and content)")
	flags.StringVar(&f.delimiter, "delimiter", "", `CSV: what parts values; \t is a tab`)
	flags.StringVar(&f.quote, "quote", "", "CSV: what values may stand in")
	flags.StringVar(&f.escape, "escape", "", "CSV: what stands before a quote in quotes (default another quote)")
	flags.StringVar(&f.header, "header", "", "CSV: true if the first line has the columns' names, false if not")
	flags.IntVar(&f.skipLines, "skip", 0, "CSV: lines to skip at the beginning of each file")
	flags.StringArrayVar(&f.nulls, "null", nil, "CSV: what means NULL where it stands without quotes; may be repeated")
	flags.StringVar(&f.dateOrder, "date-order", "", "order in dates: ymd, dmy or mdy")
	flags.StringVar(&f.schema, "schema", "", "columns of a new table: 'id BIGINT NOT NULL, labels LIST<VARCHAR>, v VECTOR(128)'")
	flags.StringVar(&f.schemaFile, "schema-file", "", "file with the same")
	flags.StringArrayVar(&f.columns, "columns", nil, "columns to import, by name, or as COLUMN=NAME-IN-FILE; commas between them; others are left out")
	flags.IntVar(&f.sampleRows, "sample-rows", 0, "rows to find types from (default 20480)")
	flags.IntVar(&f.vectorMin, "vector-min", 8, "least dimensions of a list that is taken for a vector; -1 = lists stay lists")
	flags.IntVar(&f.maxRow, "max-row-bytes", 16<<20, "longest row of CSV and NDJSON")
	flags.BoolVar(&f.doCreate, "create", false, "the table must not exist")
	flags.BoolVar(&f.doAppend, "append", false, "the table must exist")
	flags.BoolVar(&f.doReplace, "replace", false, "the rows replace all others of the table, in one commit")
	flags.BoolVar(&f.again, "again", false, "import files that were imported before once more")
	flags.BoolVar(&f.atomic, "atomic", false, "one commit for all files")
	flags.Int64Var(&f.commitRows, "commit-rows", 1<<20, "a commit follows the file that makes up these many rows; 1 = one commit a file")
	flags.StringVar(&f.badRows, "bad-rows", "fail", "fail: the first row that cannot be read fails its file; skip: leave it out")
	flags.Int64Var(&f.maxBadRows, "max-bad-rows", 0, "with --bad-rows skip: how many at most (default any number)")
	flags.StringVar(&f.badRowsFile, "bad-rows-file", "", "with --bad-rows skip: write them here, as NDJSON")
	flags.StringVar(&f.fileVersion, "file-version", "", "of a new table: 2.1 or 2.2 (default 2.2)")
	flags.BoolVar(&f.stableRowIDs, "stable-row-ids", false, "of a new table: rows keep their ids")
	flags.Int64Var(&f.fragmentRows, "rows-per-fragment", 0, "rows of a fragment, which is a file (default the table's, or 1048576)")
	flags.StringVar(&f.memoryLimit, "memory-limit", "4GiB", "memory for rows that are read and written")
	flags.IntVar(&f.threads, "threads", 0, "goroutines that parse (default one per core)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print errors alone")
	_ = cmd.MarkFlagRequired("into") // the flag is there
	cmd.MarkFlagsMutuallyExclusive("create", "append", "replace")
	cmd.MarkFlagsMutuallyExclusive("schema", "schema-file")
}

// oneByte reads a flag that is one character.
func oneByte(flag, text string) (byte, error) {
	if text == `\t` || text == "tab" {
		text = "\t"
	}
	if len(text) > 1 {
		return 0, errs.New(errs.ErrInvalid, "--%s %s: one ASCII character", flag, text)
	}
	if text == "" {
		return 0, nil
	}
	return text[0], nil
}

func (f *importFlags) readOptions() (o files.Options, err error) {
	if o.Format, err = files.ParseFormat(f.format); err != nil {
		return o, err
	}
	for _, c := range []struct {
		flag, text string
		to         *byte
	}{{"delimiter", f.delimiter, &o.Delimiter}, {"quote", f.quote, &o.Quote}, {"escape", f.escape, &o.Escape}} {
		if *c.to, err = oneByte(c.flag, c.text); err != nil {
			return o, err
		}
	}
	if strings.EqualFold(f.format, "tsv") && o.Delimiter == 0 {
		o.Delimiter = '\t'
	}
	if f.header != "" {
		on, err := strconv.ParseBool(f.header)
		if err != nil {
			return o, errs.New(errs.ErrInvalid, "--header %s: true or false", f.header)
		}
		o.Header = &on
	}
	if o.DateOrder, err = files.ParseDateOrder(f.dateOrder); err != nil {
		return o, err
	}
	o.Nulls, o.SkipLines, o.SampleRows, o.VectorMin, o.MaxRowBytes, o.Parallel = f.nulls, f.skipLines, f.sampleRows, f.vectorMin, f.maxRow, f.threads
	for _, part := range f.columns {
		for name := range strings.SplitSeq(part, ",") {
			column, source, isPair := strings.Cut(strings.TrimSpace(name), "=")
			if !isPair {
				source = column
			}
			if column == "" || source == "" {
				return o, errs.New(errs.ErrInvalid, "--columns %s: write names, or COLUMN=NAME-IN-FILE", part)
			}
			o.Columns = append(o.Columns, files.Name{Column: column, Source: source})
		}
	}
	return o, nil
}

func (f *importFlags) options() (o transfer.ImportOptions, err error) {
	if o.Files, err = f.readOptions(); err != nil {
		return o, err
	}
	switch {
	case f.doCreate:
		o.Mode = transfer.ModeCreate
	case f.doAppend:
		o.Mode = transfer.ModeAppend
	case f.doReplace:
		o.Mode = transfer.ModeReplace
	}
	if o.Schema, err = f.columnsOf(); err != nil {
		return o, err
	}
	switch f.badRows {
	case "fail":
		if f.maxBadRows != 0 || f.badRowsFile != "" {
			return o, errs.New(errs.ErrInvalid, "--max-bad-rows and --bad-rows-file go with --bad-rows skip")
		}
	case "skip":
		o.SkipBad = true
	default:
		return o, errs.New(errs.ErrInvalid, "--bad-rows %s: fail or skip", f.badRows)
	}
	switch f.fileVersion {
	case "":
	case "2.1":
		o.Version = file.V21
	case "2.2":
		o.Version = file.V22
	default:
		return o, errs.New(errs.ErrInvalid, "--file-version %s: 2.1 and 2.2 are possible", f.fileVersion)
	}
	var limit byteSize
	if err := limit.UnmarshalText([]byte(f.memoryLimit)); err != nil {
		return o, err
	}
	o.Budget = mem.NewBudget("import", int64(limit), nil)
	o.Files.Alloc = mem.NewAllocator(mem.NewPool(), o.Budget)
	o.Again, o.Atomic, o.CommitRows, o.BadRowsMax, o.StableRowIDs, o.FragmentRows = f.again, f.atomic, f.commitRows, f.maxBadRows, f.stableRowIDs, f.fragmentRows
	return o, nil
}

// columnsOf reads --schema.
func (f *importFlags) columnsOf() (*arrow.Schema, error) {
	text := f.schema
	if f.schemaFile != "" {
		b, err := os.ReadFile(f.schemaFile)
		if err != nil {
			return nil, errs.New(errs.ErrNotFound, "--schema-file: %w", err)
		}
		text = string(b)
	}
	if text == "" {
		return nil, nil //nolint:nilnil // nil is "find out"
	}
	s, err := coltype.ParseColumns(text)
	if err != nil {
		return nil, fmt.Errorf("--schema: %w", err)
	}
	return s, nil
}

func runImport(cmd *cobra.Command, sources []string, f importFlags) (err error) {
	opts, err := f.options()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	table, err := findTable(ctx, "--into", f.into, f.lakes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.close()) }()
	finder := &files.Finder{Open: cloudStore}
	defer func() { err = errors.Join(err, finder.Close()) }()
	found, err := finder.Find(ctx, sources)
	if err != nil {
		return err
	}
	bad, err := newBadRows(cmd.ErrOrStderr(), f.badRowsFile, f.quiet)
	if err != nil {
		return err
	}
	bar := newMeter(cmd.ErrOrStderr(), f.quiet)
	opts.OnBad = bad.add
	opts.Progress = func(p transfer.Progress) {
		bar.show(meterState{rows: p.Rows, bytes: p.Bytes, size: p.Size, file: p.FileIndex + 1, files: p.Files})
	}
	start := time.Now()
	done, err := transfer.Import(ctx, table.target(), found, opts)
	bar.finish()
	err = errors.Join(err, bad.close())
	if !f.quiet {
		sayImported(cmd.OutOrStdout(), table.name, done, time.Since(start), err != nil)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted: what was committed stays, and the same command goes on with the rest: %w", ctx.Err())
	}
	return hinted(err, opts)
}

// hinted tells what may be done about bad rows.
func hinted(err error, opts transfer.ImportOptions) error {
	var bad *files.BadRow
	if err == nil || !errors.As(err, &bad) || opts.SkipBad {
		return err
	}
	return fmt.Errorf("%w\nNothing of this file was committed. Mend it, give other types (--schema, --sample-rows), or leave such rows out with --bad-rows skip", err)
}

func sayImported(out io.Writer, name string, d transfer.Imported, took time.Duration, failed bool) {
	for _, n := range d.Notes {
		fmt.Fprintln(out, "note:", n)
	}
	if d.Created && d.Columns != nil {
		fmt.Fprintf(out, "created %s: %s\n", name, describeColumns(d.Columns))
	}
	if len(d.Known) > 0 {
		fmt.Fprintf(out, "%s imported before, left out (--again imports once more)\n", plural(int64(len(d.Known)), "file was", "files were"))
	}
	if failed && d.Commits == 0 {
		return
	}
	fmt.Fprintf(out, "imported %s of %s into %s, version %d, in %s (%.0f rows/s)\n", plural(d.Rows, "row", "rows"), plural(int64(d.Files), "file", "files"), name, d.Version,
		took.Round(time.Millisecond), float64(d.Rows)/max(took.Seconds(), 1e-9))
	if d.BadRows > 0 {
		fmt.Fprintf(out, "%s left out\n", plural(d.BadRows, "bad row was", "bad rows were"))
	}
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// describeColumns lists columns as SQL does.
func describeColumns(s *arrow.Schema) string {
	const most = 40
	var parts []string
	for i, f := range s.Fields() {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", s.NumFields()-most))
			break
		}
		text := f.Name + " " + files.TypeName(f.Type)
		if !f.Nullable {
			text += " NOT NULL"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// badRows shows the first bad rows and keeps all of them in a file, if one is named.
type badRows struct {
	out   io.Writer
	quiet bool
	file  *os.File
	text  *bufio.Writer
	count int64
}

// badRowsShown is how many are printed.
const badRowsShown = 10

func newBadRows(out io.Writer, path string, quiet bool) (*badRows, error) {
	b := &badRows{out: out, quiet: quiet}
	if path == "" {
		return b, nil
	}
	var err error
	if b.file, err = os.Create(path); err != nil {
		return nil, errs.New(errs.ErrIO, "--bad-rows-file: %w", err)
	}
	b.text = bufio.NewWriter(b.file)
	return b, nil
}

func (b *badRows) add(r files.BadRow) error {
	b.count++
	if !b.quiet && b.count <= badRowsShown {
		fmt.Fprintln(b.out, "bad row:", r.Error())
		if b.count == badRowsShown {
			fmt.Fprintln(b.out, "further bad rows are counted, and kept by --bad-rows-file")
		}
	}
	if b.file == nil {
		return nil
	}
	line := map[string]any{"file": r.File, "reason": r.Err.Error()}
	for key, v := range map[string]string{"column": r.Column, "value": r.Value, "raw": string(r.Raw)} {
		if v != "" {
			line[key] = v
		}
	}
	if r.Line > 0 {
		line["line"] = r.Line
	} else {
		line["row"] = r.Row
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = b.text.Write(append(text, '\n'))
	}
	if err != nil {
		return errs.New(errs.ErrIO, "--bad-rows-file: %w", err)
	}
	return nil
}

func (b *badRows) close() error {
	if b.file == nil {
		return nil
	}
	if err := errors.Join(b.text.Flush(), b.file.Close()); err != nil {
		return errs.New(errs.ErrIO, "--bad-rows-file: %w", err)
	}
	return nil
}
