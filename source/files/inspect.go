package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// Shape is what a sample of files tells.
type Shape struct {
	Format  Format
	Dialect Dialect       // of CSV
	Schema  *arrow.Schema // of a table that holds their rows
	Notes   []string      // what the user should know

	columns []textColumn // of text formats, in the order of the file
}

// textColumn is how a column of a text format is read.
type textColumn struct {
	name  string
	nulls []string // spellings of NULL beside the empty one
	order DateOrder
}

func (s *Shape) names() []string {
	out := make([]string, len(s.columns))
	for i, c := range s.columns {
		out[i] = c.name
	}
	return out
}

// column finds a column by the file's name, or by its place where there are no names.
func (s *Shape) column(name string) textColumn {
	if at := find(s.names(), name); at >= 0 {
		return s.columns[at]
	}
	return textColumn{}
}

// filesSampled is how many files are looked at.
const filesSampled = 10

// Inspect looks at a sample of files of one format. Errors: ErrInvalid where the format cannot be told or the files have several, ErrCorrupt, ErrIO, ErrUnsupported
// for types that no table has.
func Inspect(ctx context.Context, all []File, opts Options) (*Shape, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errs.New(errs.ErrInvalid, "no file to look at")
	}
	opts = opts.withDefaults()
	s := &Shape{Format: opts.Format}
	sample := all[:min(len(all), filesSampled)]
	for i, f := range all {
		format := opts.Format
		if format == FormatUnknown {
			if format = formatOfName(f.Path); format == FormatUnknown || i < filesSampled && format != FormatCSV && format != FormatNDJSON {
				var err error
				if format, err = formatByContent(ctx, f, format); err != nil {
					return nil, err
				}
			}
		}
		if s.Format == FormatUnknown {
			s.Format = format
		}
		if format != s.Format {
			return nil, errs.New(errs.ErrInvalid, "%s is %s, %s is %s: import them one after the other", all[0].URL, s.Format, f.URL, format)
		}
	}
	var err error
	switch s.Format {
	case FormatCSV:
		err = s.inspectCSV(ctx, sample, opts)
	case FormatNDJSON:
		err = s.inspectNDJSON(ctx, sample, opts)
	case FormatParquet:
		err = s.inspectParquet(ctx, sample, opts)
	default:
		err = s.inspectIPC(ctx, sample, opts)
	}
	return s, err
}

// formatByContent looks at a file's first bytes; name is what its name says.
func formatByContent(ctx context.Context, f File, name Format) (Format, error) {
	file, err := f.Store.Open(ctx, f.Path)
	if err != nil {
		return FormatUnknown, fmt.Errorf("%s: %w", f.URL, err)
	}
	head, err := file.Read(ctx, object.Range{Size: min(8, file.SizeBytes())})
	if err != nil {
		return FormatUnknown, fmt.Errorf("%s: %w", f.URL, err)
	}
	switch format := formatOfBytes(head); {
	case format != FormatUnknown:
		return format, nil
	case name == FormatUnknown:
		return FormatUnknown, errFormat(f)
	case name == FormatArrow || name == FormatArrowStream: // streams of old writers have no mark
		return FormatArrowStream, nil
	}
	return FormatUnknown, &errs.CorruptError{Path: f.URL, Section: "file", Offset: 0, Err: errs.New(errs.ErrCorrupt, "it is no %s: it begins with %q", name, head)}
}

// guesses are the columns that were seen, in their order.
type guesses struct {
	names []string
	of    map[string]*guess
}

func (g *guesses) at(name string) *guess {
	c, ok := g.of[name]
	if !ok {
		c = &guess{}
		if g.of == nil {
			g.of = make(map[string]*guess)
		}
		g.of[name] = c
		g.names = append(g.names, name)
	}
	return c
}

// settle makes the schema and the columns.
func (s *Shape) settle(g *guesses, opts Options) error {
	fields := make([]arrow.Field, len(g.names))
	for i, name := range g.names {
		t, err := g.of[name].settle(opts)
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		if t.note != "" {
			s.Notes = append(s.Notes, "column "+name+": "+t.note)
		}
		fields[i] = arrow.Field{Name: name, Type: t.typ, Nullable: true}
		slices.Sort(t.nulls)
		s.columns = append(s.columns, textColumn{name: name, nulls: t.nulls, order: t.order})
	}
	s.Schema = arrow.NewSchema(fields, nil)
	return nil
}

func (s *Shape) inspectCSV(ctx context.Context, sample []File, opts Options) error {
	var err error
	if s.Dialect, err = detectDialect(ctx, sample[0], opts); err != nil {
		return fmt.Errorf("%s: %w", sample[0].URL, err)
	}
	g, j := &guesses{}, &jsonText{}
	for _, f := range sample {
		left := max(1, opts.SampleRows/len(sample))
		err := sampleText(ctx, f, &s.Dialect, opts, func(t *text, b []byte) bool {
			for len(b) > 0 && left > 0 {
				cells, n, err := s.Dialect.row(b, nil)
				b = b[n:]
				if err != nil || len(cells) == 1 && len(cells[0].text) == 0 && len(g.names) > 1 {
					continue // it is reported when it is read
				}
				left--
				for i, c := range cells {
					name := "column" + itoa(int64(i))
					if t.names != nil {
						if i >= len(t.names) {
							break
						}
						name = t.names[i]
					}
					if col := g.at(name); len(c.text) > 0 && (c.isQuoted || !isNullWord(c.text, opts)) {
						col.addText(c.text, c.isQuoted, j)
					}
				}
			}
			return left > 0
		}, func(t *text) {
			for _, n := range t.names {
				g.at(n)
			}
		})
		if err != nil {
			return err
		}
	}
	return s.settle(g, opts)
}

// isNullWord says that text without quotes means NULL in every column.
func isNullWord(b []byte, opts Options) bool {
	if opts.Nulls != nil {
		return slices.Contains(opts.Nulls, string(b))
	}
	return string(b) == `\N`
}

// sampleText hands the first rows of a text file to see, until it returns false.
func sampleText(ctx context.Context, f File, d *Dialect, opts Options, see func(t *text, rows []byte) bool, opened func(t *text)) error {
	t, err := openText(ctx, f, d, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", f.URL, err)
	}
	defer t.close()
	opened(t)
	if t.first != nil && !see(t, t.first.text) {
		return nil
	}
	for {
		c, err := t.cut.next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.URL, err)
		}
		if c.bad == nil && !see(t, c.text) {
			return nil
		}
	}
}

func (s *Shape) inspectNDJSON(ctx context.Context, sample []File, opts Options) error {
	all, j := &guess{}, &jsonText{}
	for _, f := range sample {
		left := max(1, opts.SampleRows/len(sample))
		isFirst := true
		var wrong error
		err := sampleText(ctx, f, nil, opts, func(_ *text, b []byte) bool {
			for line := range bytes.SplitSeq(b, []byte{'\n'}) {
				if line = bytes.TrimSpace(line); len(line) == 0 || left == 0 {
					continue
				}
				if isFirst && line[0] == '[' {
					wrong = errs.New(errs.ErrInvalid, "%s is one array: NDJSON has an object a line; jq -c '.[]' makes that of it", f.URL)
					return false
				}
				isFirst = false
				left--
				j.reset()
				if n, err := j.parse(line); err == nil && j.nodes[n].kind == jsonObject {
					all.addNode(j, n)
				}
			}
			return left > 0
		}, func(*text) {})
		if err = errors.Join(err, wrong); err != nil {
			return err
		}
	}
	if all.tooMany {
		return errs.New(errs.ErrInvalid, "more than %d keys: --schema says which are columns", fieldsMax)
	}
	return s.settle(&guesses{names: all.order, of: all.fields}, opts)
}

func (s *Shape) inspectParquet(ctx context.Context, sample []File, opts Options) error {
	var lists map[int]*listLengths
	for i, f := range sample {
		p, err := openParquetFile(ctx, f, opts)
		if err != nil {
			return fmt.Errorf("%s: %w", f.URL, err)
		}
		if i == 0 {
			if s.Schema, err = tableSchema(p.schema); err != nil {
				return fmt.Errorf("%s: %w", f.URL, err)
			}
			lists = listsOf(s.Schema)
		}
		columns := columnsOf(lists, p.schema, s.Schema)
		if len(columns) == 0 || opts.VectorMin == 0 {
			continue
		}
		rows := int64(max(1, opts.SampleRows/len(sample)))
		if err := p.readSome(ctx, columns, rows, opts, func(b arrow.RecordBatch) { lookAt(lists, b, s.Schema) }); err != nil {
			return fmt.Errorf("%s: %w", f.URL, err)
		}
	}
	s.Schema = withVectors(s.Schema, lists, opts.VectorMin)
	return nil
}

func (s *Shape) inspectIPC(ctx context.Context, sample []File, opts Options) error {
	var lists map[int]*listLengths
	for i, f := range sample {
		src, err := openIPCSource(ctx, f, s.Format, opts)
		if err != nil {
			return fmt.Errorf("%s: %w", f.URL, err)
		}
		err = guarded(f, func() error {
			defer src.close()
			if i == 0 {
				if s.Schema, err = tableSchema(src.schema()); err != nil {
					return err
				}
				lists = listsOf(s.Schema)
			}
			for left := int64(max(1, opts.SampleRows/len(sample))); left > 0 && len(lists) > 0 && opts.VectorMin > 0; {
				b, err := src.next()
				if err == io.EOF { //nolint:errorlint // the library returns the bare value
					break
				}
				if err != nil {
					return err
				}
				lookAt(lists, b, s.Schema)
				left -= b.NumRows()
				b.Release()
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", f.URL, err)
		}
	}
	s.Schema = withVectors(s.Schema, lists, opts.VectorMin)
	return nil
}

// tableSchema is a file's schema with types that tables have. Errors: ErrUnsupported.
func tableSchema(in *arrow.Schema) (*arrow.Schema, error) {
	fields := make([]arrow.Field, in.NumFields())
	seen := make(map[string]bool)
	for i, f := range in.Fields() {
		t, err := tableType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		if seen[f.Name] {
			return nil, errs.New(errs.ErrColumnExists, "the file has two columns %q", f.Name)
		}
		seen[f.Name] = true
		fields[i] = arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable, Metadata: keptMetadata(f.Metadata)}
	}
	return arrow.NewSchema(fields, nil), nil
}

// keptMetadata leaves out what a file format says of its own.
func keptMetadata(m arrow.Metadata) arrow.Metadata {
	var keys, values []string
	for i, k := range m.Keys() {
		if !strings.HasPrefix(k, "PARQUET:") && !strings.HasPrefix(k, "ARROW:extension") {
			keys, values = append(keys, k), append(values, m.Values()[i])
		}
	}
	return arrow.NewMetadata(keys, values)
}

// tableType is the type that a table has for one of a file.
func tableType(t arrow.DataType) (arrow.DataType, error) {
	field := func(f arrow.Field) (arrow.Field, error) {
		t, err := tableType(f.Type)
		return arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable}, err
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return tableType(t.ValueType)
	case arrow.ExtensionType:
		return tableType(t.StorageType())
	case *arrow.ListType:
		item, err := field(t.ElemField())
		item.Name = "item"
		return arrow.ListOfField(item), err
	case *arrow.LargeListType:
		item, err := field(t.ElemField())
		item.Name = "item"
		return arrow.LargeListOfField(item), err
	case *arrow.FixedSizeListType:
		item, err := field(t.ElemField())
		item.Name = "item"
		return arrow.FixedSizeListOfField(t.Len(), item), err
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			var err error
			if fields[i], err = field(f); err != nil {
				return nil, fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
		return arrow.StructOf(fields...), nil
	case *arrow.MapType:
		key, err := tableType(t.KeyType())
		if err != nil {
			return nil, err
		}
		value, err := tableType(t.ItemType())
		return arrow.MapOf(key, value), err
	}
	switch t.ID() {
	case arrow.NULL, arrow.STRING_VIEW:
		return arrow.BinaryTypes.String, nil
	case arrow.BINARY_VIEW:
		return arrow.BinaryTypes.Binary, nil
	case arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW, arrow.RUN_END_ENCODED, arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.INTERVAL_MONTHS, arrow.INTERVAL_DAY_TIME,
		arrow.INTERVAL_MONTH_DAY_NANO, arrow.DECIMAL32, arrow.DECIMAL64:
		return nil, errs.New(errs.ErrUnsupported, "no table holds %s: leave the column out with --columns", t)
	}
	return t, nil
}

// listLengths is what was seen of a column of lists of floating numbers.
type listLengths struct {
	values  int64
	lengths [2]int32
	isRaw   bool // it has NULL items or is longer than any vector
}

// listsOf finds the columns that may turn out to be vectors.
func listsOf(s *arrow.Schema) map[int]*listLengths {
	out := make(map[int]*listLengths)
	for i, f := range s.Fields() {
		if t, ok := f.Type.(arrow.ListLikeType); ok && (f.Type.ID() == arrow.LIST || f.Type.ID() == arrow.LARGE_LIST) && isFloat(t.Elem()) {
			out[i] = &listLengths{}
		}
	}
	return out
}

// columnsOf finds these columns in another file.
func columnsOf(lists map[int]*listLengths, in, s *arrow.Schema) []int {
	var out []int
	for i := range lists {
		if at := in.FieldIndices(s.Field(i).Name); len(at) == 1 {
			out = append(out, at[0])
		}
	}
	slices.Sort(out)
	return out
}

func lookAt(lists map[int]*listLengths, b arrow.RecordBatch, s *arrow.Schema) {
	for i, l := range lists {
		at := b.Schema().FieldIndices(s.Field(i).Name)
		if len(at) != 1 {
			continue
		}
		arr, ok := b.Column(at[0]).(array.ListLike)
		if !ok {
			continue
		}
		for row := range arr.Len() {
			if arr.IsNull(row) {
				continue
			}
			lo, hi := arr.ValueOffsets(row)
			n := int32(min(hi-lo, vectorMax+1))
			if l.values == 0 {
				l.lengths = [2]int32{n, n}
			}
			l.values++
			l.lengths[0], l.lengths[1] = min(l.lengths[0], n), max(l.lengths[1], n)
		}
		l.isRaw = l.isRaw || arr.ListValues().NullN() > 0
	}
}

// withVectors makes vectors of the lists that all have one length.
func withVectors(s *arrow.Schema, lists map[int]*listLengths, least int) *arrow.Schema {
	fields := s.Fields()
	for i, l := range lists {
		if l.values > 0 && !l.isRaw && isVectorLength(l.lengths, least) {
			t := fields[i].Type.(arrow.ListLikeType) //nolint:forcetypeassert // listsOf says so
			fields[i].Type = arrow.FixedSizeListOf(l.lengths[0], t.Elem())
		}
	}
	return arrow.NewSchema(fields, nil)
}

// pick makes a batch of some columns.
func pick(b arrow.RecordBatch, columns []int) arrow.RecordBatch {
	fields, cols := make([]arrow.Field, len(columns)), make([]arrow.Array, len(columns))
	for i, at := range columns {
		fields[i], cols[i] = b.Schema().Field(at), b.Column(at)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows())
}
