package files

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/coltype"
)

// Reader yields the rows of one file. It is used by one goroutine; Close ends it and must be called.
type Reader interface {
	// Next returns rows, which the caller releases, and the rows that are bad, in their order: either may be none. io.EOF at the end; after it or an error
	// only Close may follow. Errors: ErrCorrupt, ErrIO, ErrMemoryLimit, and those of the context that the reader was opened with.
	Next() (arrow.RecordBatch, []BadRow, error)
	// Progress is how many bytes of the file were read.
	Progress() int64
	Close() error
}

// Open reads the rows of a file as columns of a table. shape is that of Inspect on this file or others like it. Errors: ErrInvalid where the file's columns are
// not those of the table, ErrUnsupported for types that do not convert, ErrNotFound, ErrCorrupt, ErrIO.
func Open(ctx context.Context, f File, shape *Shape, columns *arrow.Schema, opts Options) (Reader, error) {
	opts = opts.withDefaults()
	var r Reader
	var err error
	switch shape.Format {
	case FormatCSV, FormatNDJSON:
		r, err = openTextReader(ctx, f, shape, columns, opts)
	case FormatParquet:
		r, err = openParquet(ctx, f, columns, opts)
	case FormatArrow, FormatArrowStream:
		r, err = openIPC(ctx, f, shape.Format, columns, opts)
	default:
		err = errs.New(errs.ErrInternal, "format %q", shape.Format)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.URL, err)
	}
	return r, nil
}

// match finds the column of a file for each column of a table, -1 = there is none and NULL will do.
func match(names []string, columns *arrow.Schema, opts Options, byPlace bool) ([]int, error) {
	out := make([]int, columns.NumFields())
	used := make([]bool, len(names))
	for i, f := range columns.Fields() {
		want := f.Name
		out[i] = -1
		if opts.Columns != nil {
			at := slices.IndexFunc(opts.Columns, func(n Name) bool { return strings.EqualFold(n.Column, f.Name) })
			if at < 0 {
				if err := mayMiss(f); err != nil {
					return nil, err
				}
				continue
			}
			want = opts.Columns[at].Source
		}
		if out[i] = find(names, want); out[i] >= 0 {
			used[out[i]] = true
			continue
		}
		if byPlace && opts.Columns == nil {
			continue
		}
		if opts.Columns != nil {
			return nil, errs.New(errs.ErrUnknownColumn, "the file has no column %q; it has %s", want, shown(names))
		}
		if err := mayMiss(f); err != nil {
			return nil, err
		}
	}
	if byPlace && opts.Columns == nil && !slices.Contains(used, true) {
		if len(names) != columns.NumFields() {
			return nil, errs.New(errs.ErrColumnCount, "the file has no header and %d columns, the table %d: --columns says which column0, column1, ... go where", len(names), columns.NumFields())
		}
		for i := range out {
			out[i] = i
		}
		return out, nil
	}
	for i, u := range used {
		if !u && !opts.IgnoreUnknown && opts.Columns == nil {
			return nil, errs.New(errs.ErrUnknownColumn, "the file has a column %q that the table lacks: --columns says which are wanted, ALTER TABLE ... ADD COLUMN makes room for it", names[i])
		}
	}
	return out, nil
}

// mayMiss refuses columns that cannot be NULL where a file has no values for them.
func mayMiss(f arrow.Field) error {
	if def, ok := coltype.Default(f); ok {
		return errs.New(errs.ErrUnsupported, "the file has no column %q, and its default (%s) is not computed by an import: add the column to the file", f.Name, def)
	}
	if !f.Nullable {
		return errs.New(errs.ErrNoDefault, "the file has no column %q, which is NOT NULL", f.Name)
	}
	return nil
}

// find returns where a name stands: as it is, or in other letters where there is one such.
func find(names []string, want string) int {
	if at := slices.Index(names, want); at >= 0 {
		return at
	}
	found := -1
	for i, n := range names {
		if strings.EqualFold(n, want) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

func shown(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// textReader reads CSV and NDJSON.
type textReader struct {
	text     *text
	pipeline *pipeline
}

func openTextReader(ctx context.Context, f File, shape *Shape, columns *arrow.Schema, opts Options) (Reader, error) {
	var d *Dialect
	if shape.Format == FormatCSV {
		d = &shape.Dialect
	}
	t, err := openText(ctx, f, d, opts)
	if err != nil {
		return nil, err
	}
	p, err := newTextPlan(f, shape, columns, opts, t)
	if err != nil {
		t.close()
		return nil, err
	}
	return &textReader{text: t, pipeline: newPipeline(ctx, opts.Parallel, t.run, p.worker)}, nil
}

func (r *textReader) Next() (arrow.RecordBatch, []BadRow, error) { return r.pipeline.next() }
func (r *textReader) Progress() int64                            { return r.text.file.read.Load() }

func (r *textReader) Close() error {
	r.pipeline.close()
	r.text.close()
	return nil
}

// textPlan is what all workers of a text file know.
type textPlan struct {
	file    File
	opts    Options
	dialect *Dialect // nil = NDJSON
	schema  *arrow.Schema
	built   *arrow.Schema // what builders make
	names   []string      // of the file
	source  []int         // CSV: by column
	nulls   [][]string    // CSV: by column
	readers []*valueReader
	root    *valueReader // NDJSON: the row as a struct
	limits  []coltype.Limits
}

func newTextPlan(f File, shape *Shape, columns *arrow.Schema, opts Options, t *text) (*textPlan, error) {
	p := &textPlan{file: f, opts: opts, schema: columns, names: t.names}
	wanted := make([]arrow.Field, columns.NumFields())
	for i, c := range columns.Fields() {
		wanted[i] = builtField(c)
		p.limits = append(p.limits, coltype.LimitsOf(c))
	}
	p.built = arrow.NewSchema(wanted, nil)
	if shape.Format == FormatCSV {
		p.dialect = &shape.Dialect
		if !p.dialect.Header {
			p.names = shape.names()
		}
		var err error
		if p.names != nil { // nil = an empty file
			if p.source, err = match(p.names, columns, opts, !p.dialect.Header); err != nil {
				return nil, err
			}
		}
	}
	for i, c := range wanted {
		name := sourceName(columns.Field(i).Name, opts)
		sc := shape.column(name)
		r, err := newValueReader(c, opts.DateOrder|sc.order*b2o(opts.DateOrder == 0), opts.IgnoreUnknown || opts.Columns != nil)
		if err != nil {
			return nil, err
		}
		p.readers = append(p.readers, r)
		if opts.Nulls != nil {
			sc.nulls = opts.Nulls
		}
		p.nulls = append(p.nulls, sc.nulls)
	}
	if p.dialect == nil {
		return p, p.setRoot(columns)
	}
	return p, nil
}

// b2o is 1 for true.
func b2o(b bool) DateOrder {
	if b {
		return 1
	}
	return 0
}

// sourceName is what the file calls a column.
func sourceName(column string, opts Options) string {
	for _, n := range opts.Columns {
		if strings.EqualFold(n.Column, column) {
			return n.Source
		}
	}
	return column
}

// setRoot makes the reader of a row as an object.
func (p *textPlan) setRoot(columns *arrow.Schema) error {
	p.root = &valueReader{ignore: p.opts.IgnoreUnknown || p.opts.Columns != nil, index: make(map[string]int)}
	for i, r := range p.readers {
		named := *r
		named.name = sourceName(columns.Field(i).Name, p.opts)
		if p.opts.Columns != nil && !slices.ContainsFunc(p.opts.Columns, func(n Name) bool { return strings.EqualFold(n.Column, columns.Field(i).Name) }) {
			if err := mayMiss(columns.Field(i)); err != nil {
				return err
			}
			named.name = "\x00" // no key
		}
		if _, ok := coltype.Default(columns.Field(i)); ok {
			named.nullable = false // what stands for a key that is missing is not computed here
		}
		p.root.children = append(p.root.children, &named)
		p.root.index[named.name] = i
	}
	p.root.slots = make([]int32, len(p.readers))
	return nil
}

// builtField is the field that builders make for a column: plain values for dictionaries, text for JSON.
func builtField(f arrow.Field) arrow.Field {
	if d, ok := f.Type.(*arrow.DictionaryType); ok {
		f.Type = d.ValueType
	}
	if isJSONField(f) {
		f.Type = arrow.BinaryTypes.String
	}
	return f
}

// readType is what values of a type are read as for a column: JSON, here or below, is text where the values are, and as it is stored where they are not.
func readType(from arrow.DataType, column arrow.Field) arrow.DataType {
	if isJSONField(column) {
		if from.ID() != arrow.STRING && from.ID() != arrow.LARGE_STRING {
			return column.Type
		}
		return arrow.BinaryTypes.String
	}
	built := column.Type
	if s, ok := built.(*arrow.StructType); ok {
		have, ok := from.(*arrow.StructType)
		if !ok {
			return built
		}
		fields := s.Fields()
		for i, f := range fields {
			if h, ok := have.FieldByName(f.Name); ok {
				fields[i].Type = readType(h.Type, f)
			}
		}
		return arrow.StructOf(fields...)
	}
	have, ok := from.(arrow.ListLikeType)
	if !ok {
		return built
	}
	item := func(f arrow.Field) arrow.Field {
		f.Type = readType(have.Elem(), f)
		return f
	}
	switch l := built.(type) {
	case *arrow.ListType:
		return arrow.ListOfField(item(l.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(item(l.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(l.Len(), item(l.ElemField()))
	}
	return built
}

func isJSONField(f arrow.Field) bool {
	name, _ := f.Metadata.GetValue("ARROW:extension:name")
	return name == "lance.json"
}

// textWorker parses chunks. It is used by one goroutine.
type textWorker struct {
	*textPlan
	readers []*valueReader
	root    *valueReader
	json    jsonText
	scratch jsonText // of values in cells
	cells   []cell
	slots   []int32 // NDJSON: node of row*columns+column, 0 = none
	rows    []textRow
	held    *mem.Reservation
}

// textRow is where a row stands, and what is wrong with it.
type textRow struct {
	line   int64
	raw    []byte
	bad    error
	column string
	value  []byte
}

func (p *textPlan) worker() func(ctx context.Context, c *chunk) result {
	w := &textWorker{textPlan: p, held: p.opts.Budget.Reserve()}
	if p.root != nil {
		w.root = p.root.clone()
		w.root.index = p.root.index
		w.readers = w.root.children
	} else {
		for _, r := range p.readers {
			w.readers = append(w.readers, r.clone())
		}
	}
	return w.parse
}

// cellBytes is about what a cell or node takes beside its text.
const cellBytes = 96

func (w *textWorker) parse(_ context.Context, c *chunk) result {
	defer w.held.Free()
	if err := w.held.Grow(int64(len(c.text))); err != nil {
		return result{err: err}
	}
	w.rows = w.rows[:0]
	if w.dialect != nil {
		w.cutRows(c)
	} else {
		w.parseLines(c)
	}
	if err := w.held.Grow(int64(cap(w.cells)+cap(w.json.nodes)+cap(w.slots)) * cellBytes); err != nil {
		return result{err: err}
	}
	return w.build()
}

// cutRows parses the rows of CSV into cells, as many a row as the file has columns.
func (w *textWorker) cutRows(c *chunk) {
	w.cells = w.cells[:0]
	line, want := c.firstLine, len(w.names)
	for b := c.text; len(b) > 0; {
		from := len(w.cells)
		cells, n, err := w.dialect.row(b, w.cells)
		row := textRow{line: line, raw: bytes.TrimRight(b[:n], "\r\n"), bad: err}
		line += int64(bytes.Count(b[:n], []byte{'\n'}))
		if n > w.opts.MaxRowBytes {
			row.bad = errLongRow(w.opts)
		}
		b = b[n:]
		have := len(cells) - from
		if have == 1 && want > 1 && len(cells[from].text) == 0 && !cells[from].isQuoted {
			w.cells = cells[:from] // an empty line
			continue
		}
		if have != want {
			if row.bad == nil {
				row.bad = errs.New(errs.ErrColumnCount, "%d values where the file has %d columns", have, want)
			}
			cells = cells[:min(len(cells), from+want)]
			for len(cells) < from+want {
				cells = append(cells, cell{})
			}
		}
		w.cells = cells
		w.rows = append(w.rows, row)
	}
}

// parseLines parses the lines of NDJSON and finds the members that are columns.
func (w *textWorker) parseLines(c *chunk) {
	w.json.reset()
	w.slots = w.slots[:0]
	line := c.firstLine
	for b := c.text; len(b) > 0; line++ {
		var one []byte
		n := bytes.IndexByte(b, '\n')
		if n < 0 {
			one, b = b, nil
		} else {
			one, b = b[:n], b[n+1:]
		}
		if one = bytes.TrimSpace(one); len(one) == 0 {
			continue
		}
		row := textRow{line: line, raw: one}
		var at int32
		var err error
		if len(one) > w.opts.MaxRowBytes {
			err = errLongRow(w.opts)
		} else if at, err = w.json.parse(one); err == nil {
			if n := &w.json.nodes[at]; n.kind == jsonObject {
				err = w.root.assign(&w.json, n)
			} else {
				err = errs.New(errs.ErrBadValue, "no object: NDJSON has one object a line; jq -c '.[]' makes that of an array")
			}
		}
		if row.bad = err; err != nil {
			clear(w.root.slots)
		}
		w.slots = append(w.slots, w.root.slots...)
		w.rows = append(w.rows, row)
	}
}
