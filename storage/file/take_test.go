package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/enc20pb"
	"github.com/lakesql/lakesql/storage/pb/filepb"
)

// takeCase is a column of a million rows (less where the values are so wide that their places are computed, not searched).
type takeCase struct {
	name      string
	typ       arrow.DataType
	rows      int
	pageBytes int // 0 = the writer's choice
	value     func(b array.Builder, i int)
}

// onePage makes the writer put all rows into one page, as pylance does where they come in one batch.
const onePage = 1 << 30

func takeCases() []takeCase {
	return []takeCase{
		{"an integer", arrow.PrimitiveTypes.Int64, 1_000_000, 0, func(b array.Builder, i int) { b.(*array.Int64Builder).Append(int64(i) * 7) }},
		{"a nullable float", arrow.PrimitiveTypes.Float64, 1_000_000, onePage, func(b array.Builder, i int) {
			if i%3 == 0 {
				b.AppendNull()
			} else {
				b.(*array.Float64Builder).Append(float64(i) / 3)
			}
		}},
		{"a boolean", arrow.FixedWidthTypes.Boolean, 1_000_000, 0, func(b array.Builder, i int) { b.(*array.BooleanBuilder).Append(i%3 == 1) }},
		{"a time", arrow.FixedWidthTypes.Timestamp_us, 1_000_000, 0, func(b array.Builder, i int) {
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(i) * 1_000_003)
		}},
		{"a decimal", &arrow.Decimal128Type{Precision: 30, Scale: 2}, 1_000_000, onePage, func(b array.Builder, i int) {
			b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) * 1001))
		}},
		{"a string", arrow.BinaryTypes.String, 1_000_000, 0, func(b array.Builder, i int) { b.(*array.StringBuilder).Append(fmt.Sprintf("parcel %d", i)) }},
		{"one string of few", arrow.BinaryTypes.String, 1_000_000, 0, func(b array.Builder, i int) {
			b.(*array.StringBuilder).Append(fmt.Sprintf("carrier %d", i%40))
		}},
		{"a short binary", arrow.BinaryTypes.Binary, 1_000_000, onePage, func(b array.Builder, i int) {
			b.(*array.BinaryBuilder).Append(binary.LittleEndian.AppendUint64([]byte("some bytes that are the same each time and no more 12345"), uint64(i)*2654435761))
		}},
		{"a list of strings", arrow.ListOf(arrow.BinaryTypes.String), 1_000_000, 0, func(b array.Builder, i int) {
			l := b.(*array.ListBuilder)
			l.Append(i%5 != 0)
			for j := range i % 5 {
				l.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("label %d", j))
			}
		}},
		{"a struct", structOf("a", arrow.PrimitiveTypes.Int32, "b", arrow.BinaryTypes.String), 1_000_000, onePage, func(b array.Builder, i int) {
			s := b.(*array.StructBuilder)
			s.Append(i%11 != 0)
			s.FieldBuilder(0).(*array.Int32Builder).Append(int32(i))
			s.FieldBuilder(1).(*array.StringBuilder).Append(fmt.Sprint(i))
		}},
		{"a small vector", arrow.FixedSizeListOf(16, arrow.PrimitiveTypes.Float32), 1_000_000, onePage, func(b array.Builder, i int) { appendVector(b, i, 16, true) }},
		{"a small nullable vector", arrow.FixedSizeListOf(24, arrow.PrimitiveTypes.Float32), 500_000, onePage, func(b array.Builder, i int) { appendVector(b, i, 24, i%7 != 0) }},
		{"a vector", arrow.FixedSizeListOf(128, arrow.PrimitiveTypes.Float32), 20_000, 0, func(b array.Builder, i int) { appendVector(b, i, 128, i%7 != 0) }},
		{"a wide binary", arrow.BinaryTypes.Binary, 20_000, 0, func(b array.Builder, i int) {
			if i%7 == 0 {
				b.AppendNull()
			} else {
				b.(*array.BinaryBuilder).Append(append(binary.LittleEndian.AppendUint32(nil, uint32(i)), make([]byte, 1020)...))
			}
		}},
	}
}

func structOf(a string, at arrow.DataType, b string, bt arrow.DataType) arrow.DataType {
	return arrow.StructOf(arrow.Field{Name: a, Type: at, Nullable: true}, arrow.Field{Name: b, Type: bt, Nullable: true})
}

func appendVector(b array.Builder, i, dims int, isValid bool) {
	l := b.(*array.FixedSizeListBuilder)
	l.Append(isValid)
	for j := range dims {
		l.ValueBuilder().(*array.Float32Builder).Append(float32(i + j))
	}
}

func (c takeCase) batch() arrow.RecordBatch {
	b := array.NewBuilder(memory.DefaultAllocator, c.typ)
	defer b.Release()
	for i := range c.rows {
		c.value(b, i)
	}
	a := b.NewArray()
	defer a.Release()
	s := arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.typ, Nullable: true}}, nil)
	return array.NewRecordBatch(s, []arrow.Array{a}, int64(c.rows))
}

// TestTakeOfOneRowReadsLittle counts what one row costs after Open, from a store where each request has a price.
func TestTakeOfOneRowReadsLittle(t *testing.T) {
	versions := []Version{V20, V21, V22}
	if testing.Short() {
		versions = versions[2:]
	}
	for _, version := range versions {
		for _, c := range takeCases() {
			if version == V20 && c.typ.ID() != arrow.INT64 && c.typ.ID() != arrow.STRING {
				continue
			}
			t.Run(version.String()+" "+c.name, func(t *testing.T) {
				want := c.batch()
				defer want.Release()
				var store object.Store
				if version == V20 {
					store = writeV20(t, want)
				} else {
					store = writeFile(t, want, int64(max(1<<16, c.pageBytes/512)), WriterOptions{Version: version, PageBytes: c.pageBytes})
				}
				counting := object.NewCounting(store, object.CountingOptions{AsRemote: true, GapBytes: -1})
				for _, row := range []uint64{0, uint64(c.rows) * 2 / 5, uint64(c.rows) / 2, uint64(c.rows) * 5 / 8, uint64(c.rows) - 1} {
					takeOne(t, counting, want, row)
				}
			})
		}
	}
}

func takeOne(t *testing.T, store *object.Counting, want arrow.RecordBatch, row uint64) {
	t.Helper()
	ctx := context.Background()
	f, err := store.Open(ctx, "f.lance")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(ctx, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	cols, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	store.Reset()
	got, err := r.Take(ctx, cols, []uint64{row}, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	w := want.NewSlice(int64(row), int64(row)+1)
	defer w.Release()
	if !array.RecordEqual(got, w) {
		t.Errorf("row %d: got %v, want %v", row, got, w)
	}
	if n := store.Total(); n.Bytes >= 64<<10 || n.Requests > 4 {
		t.Errorf("row %d: %d bytes in %d requests", row, n.Bytes, n.Requests)
	}
	store.Reset()
	if again, err := r.Take(ctx, cols, []uint64{row}, ReadOptions{}); err != nil {
		t.Error(err)
	} else if again.Release(); store.Total().Requests > 2 {
		t.Errorf("row %d again: %d requests, though the tables of the page are kept", row, store.Total().Requests)
	}
}

// writeV20 writes a batch of one integer or string column as version 2.0, which package file only reads.
func writeV20(t *testing.T, b arrow.RecordBatch) object.Store {
	t.Helper()
	field := &filepb.Field{Name: "c", ParentId: -1, LogicalType: "int64", Nullable: true}
	flat := func(buffer uint32, bits uint64) *enc20pb.ArrayEncoding {
		return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Flat{
			Flat: &enc20pb.Flat{BitsPerValue: bits, Buffer: &enc20pb.Buffer{BufferIndex: buffer}}}}
	}
	encoding := flat(0, 64)
	var bufs [][]byte
	data := b.Column(0).Data()
	switch a := b.Column(0).(type) {
	case *array.String:
		field.LogicalType = "string"
		ends := make([]byte, 8*a.Len())
		for i := range a.Len() {
			binary.LittleEndian.PutUint64(ends[8*i:], uint64(a.ValueOffset(i)+len(a.Value(i))))
		}
		bufs = [][]byte{ends, data.Buffers()[2].Bytes()}
		encoding = &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Binary{Binary: &enc20pb.Binary{
			Indices: flat(0, 64), Bytes: flat(1, 8), NullAdjustment: uint64(len(bufs[1])) + 1}}}
	default:
		bufs = [][]byte{data.Buffers()[1].Bytes()}
	}
	var out bytes.Buffer
	page := &filepb.ColumnMetadata_Page{Length: uint64(b.NumRows()), Encoding: direct(t, urlArrayEncoding, encoding)}
	for _, buf := range bufs {
		out.Write(make([]byte, (64-out.Len()%64)%64))
		page.BufferOffsets = append(page.BufferOffsets, uint64(out.Len()))
		page.BufferSizes = append(page.BufferSizes, uint64(len(buf)))
		out.Write(buf)
	}
	put := func(m proto.Message) (at, size uint64) {
		raw, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		at = uint64(out.Len())
		out.Write(raw)
		return at, uint64(len(raw))
	}
	u64 := func(vs ...uint64) {
		for _, v := range vs {
			out.Write(binary.LittleEndian.AppendUint64(nil, v))
		}
	}
	schemaAt, schemaSize := put(&filepb.FileDescriptor{Schema: &filepb.Schema{Fields: []*filepb.Field{field}}, Length: uint64(b.NumRows())})
	columnAt, columnSize := put(&filepb.ColumnMetadata{
		Encoding: direct(t, "/lance.encodings.ColumnEncoding", &enc20pb.ColumnEncoding{}), Pages: []*filepb.ColumnMetadata_Page{page}})
	columns := uint64(out.Len())
	u64(columnAt, columnSize)
	globals := uint64(out.Len())
	u64(schemaAt, schemaSize, columnAt, columns, globals)
	out.Write([]byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0})
	out.WriteString(footerMagic)
	store := object.NewMemory("test")
	if err := store.Put(context.Background(), "f.lance", out.Bytes(), true); err != nil {
		t.Fatal(err)
	}
	return store
}

func direct(t *testing.T, url string, m proto.Message) *filepb.Encoding {
	t.Helper()
	value, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(&anypb.Any{TypeUrl: url, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	return &filepb.Encoding{Location: &filepb.Encoding_Direct{Direct: &filepb.DirectEncoding{Encoding: raw}}}
}
