package files

import (
	"context"
	"io"
	"runtime"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// batchBytes is about how much a batch of a typed file holds.
const batchBytes = 4 << 20

// parquetFile is an opened Parquet file. Its readers may run beside each other.
type parquetFile struct {
	file   File
	reader *file.Reader
	schema *arrow.Schema // as its writer had it
	have   *arrow.Schema // as it is read
}

func openParquetFile(ctx context.Context, f File, opts Options) (*parquetFile, error) {
	b, err := openBytes(ctx, f)
	if err != nil {
		return nil, err
	}
	p := &parquetFile{file: f}
	err = guarded(f, func() error {
		props := parquet.NewReaderProperties(opts.Alloc)
		props.BufferedStreamEnabled, props.BufferSize = true, 1<<20
		var err error
		if p.reader, err = file.NewParquetReader(b, file.WithReadProps(props)); err != nil {
			return err
		}
		fr, err := pqarrow.NewFileReader(p.reader, pqarrow.ArrowReadProperties{}, opts.Alloc)
		if err != nil {
			return err
		}
		if p.schema, err = fr.Schema(); err != nil {
			return err
		}
		withoutDurations(fr.Manifest.Fields)
		fields := make([]arrow.Field, len(fr.Manifest.Fields))
		for i, f := range fr.Manifest.Fields {
			fields[i] = *f.Field
		}
		p.have = arrow.NewSchema(fields, nil)
		return nil
	})
	return p, err
}

// leaves returns the physical columns of top-level columns.
func (p *parquetFile) leaves(columns []int) []int {
	var out []int
	s := p.reader.MetaData().Schema
	for i := range s.NumColumns() {
		if slices.Contains(columns, s.Root().FieldIndexByField(s.ColumnRoot(i))) {
			out = append(out, i)
		}
	}
	return out
}

// newReader returns the library's reader. It cannot read the durations that a writer's schema tells of: they are read as the integers that the file has.
func (p *parquetFile) newReader(batchRows int64, opts Options) (*pqarrow.FileReader, error) {
	fr, err := pqarrow.NewFileReader(p.reader, pqarrow.ArrowReadProperties{BatchSize: batchRows}, opts.Alloc)
	if err != nil {
		return nil, err
	}
	withoutDurations(fr.Manifest.Fields)
	return fr, nil
}

func withoutDurations(fields []pqarrow.SchemaField) {
	for i := range fields {
		f := *fields[i].Field
		f.Type = withoutDuration(f.Type)
		fields[i].Field = &f
		withoutDurations(fields[i].Children)
	}
}

func withoutDuration(t arrow.DataType) arrow.DataType {
	field := func(f arrow.Field) arrow.Field {
		f.Type = withoutDuration(f.Type)
		return f
	}
	switch t := t.(type) {
	case *arrow.DurationType:
		return arrow.PrimitiveTypes.Int64
	case *arrow.ListType:
		return arrow.ListOfField(field(t.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(field(t.ElemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), field(t.ElemField()))
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = field(f)
		}
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		m := arrow.MapOfFields(field(t.KeyField()), field(t.ItemField()))
		m.KeysSorted = t.KeysSorted
		return m
	}
	return t
}

// bytesOf is what the columns hold, not compressed.
func (p *parquetFile) bytesOf(columns []int) int64 {
	sum := int64(0)
	for g := range p.reader.NumRowGroups() {
		for _, leaf := range p.leaves(columns) {
			if chunk, err := p.reader.MetaData().RowGroup(g).ColumnChunk(leaf); err == nil {
				sum += chunk.TotalUncompressedSize()
			}
		}
	}
	return sum
}

// parquetSource reads some columns. rows of both are in the order of the file.
type parquetSource struct{ reader pqarrow.RecordReader }

func (p *parquetFile) open(ctx context.Context, columns []int, batchRows int64, opts Options) (typedSource, error) {
	fr, err := p.newReader(batchRows, opts)
	if err != nil {
		return nil, err
	}
	r, err := fr.GetRecordReader(ctx, p.leaves(columns), nil)
	if err != nil {
		return nil, err
	}
	return &parquetSource{reader: r}, nil
}

func (s *parquetSource) next() (arrow.RecordBatch, error) {
	for {
		b, err := s.reader.Read()
		if err != nil {
			return nil, err
		}
		if b.NumRows() > 0 {
			b.Retain() // the reader releases it at the next Read
			return b, nil
		}
	}
}

func (s *parquetSource) close() { s.reader.Release() }

// batchRows is how many rows make a batch.
func (p *parquetFile) batchRows(opts Options) int64 {
	rows := p.reader.NumRows()
	if rows == 0 {
		return 1
	}
	all := make([]int, p.schema.NumFields())
	for i := range all {
		all[i] = i
	}
	return min(int64(opts.BatchRows), max(1, batchBytes*rows/max(1, p.bytesOf(all))))
}

func openParquet(ctx context.Context, f File, columns *arrow.Schema, opts Options) (Reader, error) {
	p, err := openParquetFile(ctx, f, opts)
	if err != nil {
		return nil, err
	}
	plan, err := newTypedPlan(f, p.have, columns, opts)
	if err != nil {
		return nil, err
	}
	r := &typedReader{plan: plan, total: p.reader.NumRows()}
	if slices.Max(plan.source) < 0 {
		return nil, noColumns()
	}
	size := func(at int) int64 { return p.bytesOf([]int{plan.source[at]}) }
	batchRows := p.batchRows(opts)
	r.start(ctx, groupColumns(plan.source, opts.Parallel, size), func(ctx context.Context, have []int) (typedSource, error) {
		return p.open(ctx, have, batchRows, opts)
	})
	return r, nil
}

// groupColumns shares the columns of a table that the file has between goroutines, so that each has about as much to read.
func groupColumns(source []int, most int, size func(at int) int64) [][]int {
	if most <= 0 {
		most = runtime.GOMAXPROCS(0)
	}
	type column struct {
		at   int
		size int64
	}
	var all []column
	for at, s := range source {
		if s >= 0 {
			all = append(all, column{at, size(at)})
		}
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].size > all[k].size })
	groups, sums := make([][]int, min(most, len(all))), make([]int64, min(most, len(all)))
	for _, c := range all {
		least := 0
		for g := range sums {
			if sums[g] < sums[least] {
				least = g
			}
		}
		groups[least], sums[least] = append(groups[least], c.at), sums[least]+c.size+1
	}
	return groups
}

// readSome returns the first rows of some columns, for a look at them.
func (p *parquetFile) readSome(ctx context.Context, columns []int, rows int64, opts Options, see func(arrow.RecordBatch)) error {
	return guarded(p.file, func() error {
		src, err := p.open(ctx, columns, min(rows, p.batchRows(opts)), opts)
		if err != nil {
			return err
		}
		defer src.close()
		for rows > 0 {
			b, err := src.next()
			if err == io.EOF { //nolint:errorlint // the library returns the bare value
				return nil
			}
			if err != nil {
				return err
			}
			see(b)
			rows -= b.NumRows()
			b.Release()
		}
		return nil
	})
}

// noColumns is why a file without a column of the table is refused.
func noColumns() error {
	return errs.New(errs.ErrUnknownColumn, "the file has none of the table's columns")
}
