//go:build interop

package interop

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

const million = 1_000_000

// millionColumn is a column of a million rows.
type millionColumn struct {
	name  string
	typ   arrow.DataType
	value func(b array.Builder, i int)
}

func millionColumns() []millionColumn {
	vector := func(dims int) func(b array.Builder, i int) {
		return func(b array.Builder, i int) {
			l := b.(*array.FixedSizeListBuilder)
			l.Append(true)
			for k := range dims {
				l.ValueBuilder().(*array.Float32Builder).Append(float32(i*31+k*k) * 1.37)
			}
		}
	}
	vectors := func(dims int32) arrow.DataType { return arrow.FixedSizeListOf(dims, arrow.PrimitiveTypes.Float32) }
	fields := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	return []millionColumn{
		{"int", arrow.PrimitiveTypes.Int64, func(b array.Builder, i int) { b.(*array.Int64Builder).Append(int64(i)) }},
		{"wild", arrow.PrimitiveTypes.Int64, func(b array.Builder, i int) { b.(*array.Int64Builder).Append(int64(i) * -7_046_029_254_386_353_131) }},
		{"nullable", arrow.PrimitiveTypes.Int32, func(b array.Builder, i int) {
			if i%3 == 0 {
				b.AppendNull()
			} else {
				b.(*array.Int32Builder).Append(int32(i % 1000))
			}
		}},
		{"double", arrow.PrimitiveTypes.Float64, func(b array.Builder, i int) { b.(*array.Float64Builder).Append(float64(i) / 7) }},
		{"decimal", &arrow.Decimal128Type{Precision: 20, Scale: 2}, func(b array.Builder, i int) { b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) * 1001)) }},
		{"time", arrow.FixedWidthTypes.Timestamp_us, func(b array.Builder, i int) { b.(*array.TimestampBuilder).Append(arrow.Timestamp(i) * 1_000_003) }},
		{"flag", arrow.FixedWidthTypes.Boolean, func(b array.Builder, i int) { b.(*array.BooleanBuilder).Append(i%3 == 1) }},
		{"string", arrow.BinaryTypes.String, func(b array.Builder, i int) { b.(*array.StringBuilder).Append(fmt.Sprintf("name of row %d", i)) }},
		{"few", arrow.BinaryTypes.String, func(b array.Builder, i int) { b.(*array.StringBuilder).Append(fmt.Sprintf("kind %d", i%50)) }},
		{"dictionary", dictionary, func(b array.Builder, i int) {
			_ = b.(*array.BinaryDictionaryBuilder).AppendString(fmt.Sprintf("d%d", i%300))
		}},
		{"binary", arrow.BinaryTypes.Binary, func(b array.Builder, i int) {
			b.(*array.BinaryBuilder).Append(binary.LittleEndian.AppendUint64([]byte("bytes, some of them the same for all of the rows"), uint64(i)*2654435761))
		}},
		{"list", arrow.ListOf(arrow.BinaryTypes.String), func(b array.Builder, i int) {
			l := b.(*array.ListBuilder)
			l.Append(true)
			for k := range i % 4 {
				l.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("tag number %d", i*7919+k))
			}
		}},
		{"struct", fields, func(b array.Builder, i int) {
			s := b.(*array.StructBuilder)
			s.Append(true)
			s.FieldBuilder(0).(*array.Int64Builder).Append(int64(i))
			s.FieldBuilder(1).(*array.StringBuilder).Append(fmt.Sprint("n", i))
		}},
		{"vector4", vectors(4), vector(4)},
		{"vector16", vectors(16), vector(16)},
		{"vector32", vectors(32), vector(32)},
		{"vector128", vectors(128), vector(128)},
	}
}

func (c millionColumn) rows(from, n int) arrow.RecordBatch {
	b := array.NewBuilder(memory.DefaultAllocator, c.typ)
	defer b.Release()
	b.Reserve(n)
	for i := from; i < from+n; i++ {
		c.value(b, i)
	}
	a := b.NewArray()
	defer a.Release()
	return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: c.name, Type: c.typ, Nullable: true}}, nil), []arrow.Array{a}, int64(n))
}

// TestTakingOneOfAMillionRowsReadsLittle counts at the store what a row costs of a million that pylance wrote in one batch, which is what makes its pages largest:
// less than 64 KiB in at most 4 requests a column, from a file whose footer alone was read; again, less.
func TestTakingOneOfAMillionRowsReadsLittle(t *testing.T) {
	e := StartPython(t)
	for _, c := range millionColumns() {
		all := c.rows(0, million)
		sent := e.Send(all)
		all.Release()
		for _, version := range []string{"2.0", "2.1", "2.2"} {
			t.Run(c.name+" "+version, func(t *testing.T) {
				dir := t.TempDir()
				e.Do("create", Request{"in": sent, "path": filepath.Join(dir, "m.lance"), "data_storage_version": version, "max_rows_per_file": million}, nil)
				store, err := object.OpenLocal(dir, object.LocalOptions{})
				must(t, err)
				defer func() { _ = store.Close() }()
				c.checkTakes(t, store)
			})
		}
		must(t, os.Remove(sent))
	}
}

// checkTakes takes rows from the whole file, each from a newly opened table, and each a second time.
func (c millionColumn) checkTakes(t *testing.T, local object.Store) {
	t.Helper()
	ctx := t.Context()
	counting := object.NewCounting(local, object.CountingOptions{AsRemote: true})
	most, again := object.Counts{}, object.Counts{}
	leaves := int64(1)
	if st, ok := c.typ.(*arrow.StructType); ok {
		leaves = int64(st.NumFields())
	}
	for _, row := range []int{0, 1, 123_456, 400_003, 499_999, 500_000, 520_100, 521_500, 730_001, million - 40, million - 1} {
		table, err := storage.OpenTable(ctx, counting, "m.lance", storage.TableOptions{})
		must(t, err)
		s, err := table.Latest(ctx)
		must(t, err)
		if n := len(s.Fragments()); n != 1 {
			t.Fatalf("%d fragments", n)
		}
		_, err = s.Fragments()[0].OpenFile(ctx, 0)
		must(t, err)
		want := c.rows(row, 1)
		for _, sum := range []*object.Counts{&most, &again} {
			counting.Reset()
			got, err := s.Take(ctx, []rowset.RowAddr{rowset.Addr(0, uint32(row))}, storage.TakeOptions{Columns: []string{c.name}})
			must(t, err)
			if g, w := testutil.Spell(got.Column(0), 0), testutil.Spell(want.Column(0), 0); !testutil.SameSpelling(g, w) {
				t.Fatalf("row %d is %v, want %v", row, g, w)
			}
			got.Release()
			n := counting.Total()
			sum.Requests, sum.Bytes = max(sum.Requests, n.Requests), max(sum.Bytes, n.Bytes)
		}
		want.Release()
	}
	t.Logf("at most %d bytes in %d requests, then %d in %d", most.Bytes, most.Requests, again.Bytes, again.Requests)
	if most.Bytes >= leaves*64<<10 || most.Requests > 4*leaves || most.Bytes == 0 {
		t.Errorf("a row costs %d bytes in %d requests", most.Bytes, most.Requests)
	}
	if again.Bytes > leaves*9<<10 || again.Requests > 3 {
		t.Errorf("the same row again costs %d bytes in %d requests", again.Bytes, again.Requests)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
