package transfer

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source/files"
)

// fileWriter writes batches of one schema as a file. After close it is of no use.
type fileWriter interface {
	write(ctx context.Context, b arrow.RecordBatch) error
	close() error // writes what is left; the object stays open
}

func (e *exporter) newWriter(out io.Writer, schema *arrow.Schema) (fileWriter, error) {
	if e.opts.Format == files.FormatParquet {
		return e.newParquet(out, schema)
	}
	opts := []ipc.Option{ipc.WithSchema(schema), ipc.WithAllocator(e.opts.Alloc)}
	if e.opts.Compression == CompressZstd {
		opts = append(opts, ipc.WithZstd())
	}
	if e.opts.Format == files.FormatArrowStream {
		return &arrowWriter{w: ipc.NewWriter(out, opts...)}, nil
	}
	w, err := ipc.NewFileWriter(out, opts...)
	return &arrowWriter{w: w}, err
}

type arrowWriter struct {
	w interface {
		Write(b arrow.RecordBatch) error
		io.Closer
	}
}

func (a *arrowWriter) write(_ context.Context, b arrow.RecordBatch) error { return a.w.Write(b) }
func (a *arrowWriter) close() error                                       { return a.w.Close() }

// A row group ends after about so many bytes of values, or rows.
const (
	rowGroupBytes = 64 << 20
	rowGroupRows  = 122_880
)

// parquetWriter writes row groups that fit into memory.
type parquetWriter struct {
	w      *pqarrow.FileWriter
	schema *arrow.Schema      // that the library writes
	lists  []*files.Converter // by column: vectors become lists, which is what Parquet has
	bytes  int64              // of the row group
	rows   int64
}

func (e *exporter) newParquet(out io.Writer, schema *arrow.Schema) (fileWriter, error) {
	codec := map[Compression]compress.Compression{CompressZstd: compress.Codecs.Zstd, CompressSnappy: compress.Codecs.Snappy, CompressNone: compress.Codecs.Uncompressed}[e.opts.Compression]
	props := parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithAllocator(e.opts.Alloc), parquet.WithVersion(parquet.V2_LATEST), parquet.WithCreatedBy("lakesql"),
		parquet.WithMaxRowGroupLength(1<<40))
	fields := schema.Fields()
	isStored := true
	var lists []*files.Converter
	for i := range fields {
		c, err := files.NewConverter(fields[i].Type, withoutVectors(fields[i].Type), e.opts.Alloc)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", fields[i].Name, err)
		}
		lists = append(lists, c)
		fields[i].Type = withoutDurations(withoutVectors(fields[i].Type))
		isStored = isStored && arrow.TypeEqual(fields[i].Type, schema.Field(i).Type)
	}
	md := schema.Metadata()
	p := &parquetWriter{schema: arrow.NewSchema(fields, &md), lists: lists}
	options := []pqarrow.WriterOption{pqarrow.WithAllocator(e.opts.Alloc)}
	if isStored {
		options = append(options, pqarrow.WithStoreSchema())
	}
	w, err := pqarrow.NewFileWriter(p.schema, plainWriter{out}, props, pqarrow.NewArrowWriterProperties(options...))
	if err != nil {
		return nil, unsupported(err)
	}
	if !isStored { // the schema of before, for readers that know its types
		var text bytes.Buffer
		if err := ipc.NewWriter(&text, ipc.WithSchema(schema)).Close(); err != nil {
			return nil, err
		}
		if err := w.AppendKeyValueMetadata("ARROW:schema", base64.StdEncoding.EncodeToString(text.Bytes())); err != nil {
			return nil, err
		}
	}
	p.w = w
	return p, nil
}

// plainWriter keeps the library from closing the object.
type plainWriter struct{ io.Writer }

func unsupported(err error) error {
	if errors.Is(err, arrow.ErrNotImplemented) {
		return errs.New(errs.ErrUnsupported, "Parquet: %w", err)
	}
	return err
}

func (p *parquetWriter) write(ctx context.Context, b arrow.RecordBatch) error {
	if p.rows == 0 {
		if err := p.w.NewBufferedRowGroupChecked(); err != nil {
			return err
		}
	}
	cols := make([]arrow.Array, b.NumCols())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, c := range b.Columns() {
		lists, err := p.lists[i].Convert(ctx, c)
		if err != nil {
			return err
		}
		cols[i] = retyped(lists, p.schema.Field(i).Type)
		lists.Release()
		p.bytes += sizeOf(cols[i].Data())
	}
	rec := array.NewRecordBatch(p.schema, cols, b.NumRows())
	defer rec.Release()
	if err := p.w.WriteBuffered(rec); err != nil {
		return unsupported(err)
	}
	if p.rows += b.NumRows(); p.rows >= rowGroupRows || p.bytes >= rowGroupBytes {
		p.rows, p.bytes = 0, 0
	}
	return nil
}

func (p *parquetWriter) close() error { return p.w.Close() }

// sizeOf is about how many bytes the values of an array take.
func sizeOf(d arrow.ArrayData) int64 {
	sum := int64(0)
	switch d.DataType().ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		if arr, ok := array.MakeFromData(d).(array.BinaryLike); ok {
			sum += int64(len(arr.ValueBytes()))
			arr.Release()
		}
	case arrow.LIST, arrow.LARGE_LIST, arrow.MAP, arrow.FIXED_SIZE_LIST:
		arr := array.MakeFromData(d)
		defer arr.Release()
		lists, ok := arr.(array.ListLike)
		if !ok || arr.Len() == 0 {
			return 0
		}
		lo, _ := lists.ValueOffsets(0)
		_, hi := lists.ValueOffsets(arr.Len() - 1)
		part := array.NewSliceData(d.Children()[0], lo, hi)
		defer part.Release()
		return sizeOf(part)
	case arrow.STRUCT:
		for _, c := range d.Children() {
			sum += sizeOf(c)
		}
		return sum
	default:
		if t, ok := d.DataType().(arrow.FixedWidthDataType); ok {
			return int64(d.Len()) * int64(t.Bytes())
		}
	}
	return sum + 4*int64(d.Len())
}

// withoutVectors is a type with lists in the place of lists of one length, which Parquet does not have.
func withoutVectors(t arrow.DataType) arrow.DataType {
	return mapped(t, func(t arrow.DataType) arrow.DataType {
		if v, ok := t.(*arrow.FixedSizeListType); ok {
			return arrow.ListOfField(v.ElemField())
		}
		return t
	})
}

// withoutDurations is a type with integers in the place of durations.
func withoutDurations(t arrow.DataType) arrow.DataType {
	return mapped(t, func(t arrow.DataType) arrow.DataType {
		if t.ID() == arrow.DURATION {
			return arrow.PrimitiveTypes.Int64
		}
		return t
	})
}

// mapped puts another type in the place of each part of a type, the inner ones first.
func mapped(t arrow.DataType, to func(arrow.DataType) arrow.DataType) arrow.DataType {
	field := func(f arrow.Field) arrow.Field {
		f.Type = mapped(f.Type, to)
		return f
	}
	switch v := t.(type) {
	case *arrow.ListType:
		t = arrow.ListOfField(field(v.ElemField()))
	case *arrow.LargeListType:
		t = arrow.LargeListOfField(field(v.ElemField()))
	case *arrow.FixedSizeListType:
		t = arrow.FixedSizeListOfField(v.Len(), field(v.ElemField()))
	case *arrow.StructType:
		fields := v.Fields()
		for i, f := range fields {
			fields[i] = field(f)
		}
		t = arrow.StructOf(fields...)
	case *arrow.MapType:
		t = arrow.MapOfFields(field(v.KeyField()), field(v.ItemField()))
	}
	return to(t)
}

// retyped gives an array another type of the same layout. The caller releases it.
func retyped(a arrow.Array, t arrow.DataType) arrow.Array {
	if arrow.TypeEqual(a.DataType(), t) {
		a.Retain()
		return a
	}
	d := retypedData(a.Data(), t)
	defer d.Release()
	return array.MakeFromData(d)
}

func retypedData(d arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	var types []arrow.DataType
	switch t := t.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			types = append(types, f.Type)
		}
	case arrow.ListLikeType:
		types = []arrow.DataType{t.Elem()}
	}
	children := make([]arrow.ArrayData, len(types))
	for i, ct := range types {
		children[i] = retypedData(d.Children()[i], ct)
	}
	out := array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	for _, c := range children {
		c.Release()
	}
	return out
}
