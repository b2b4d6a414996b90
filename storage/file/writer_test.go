package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/schema"
)

type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// writeFile writes a batch in slices of step rows to a store of its own and returns the store.
func writeFile(tb failer, b arrow.RecordBatch, step int64, opts WriterOptions) *object.Memory {
	tb.Helper()
	ctx := context.Background()
	store := object.NewMemory("test")
	s, err := schema.FromArrow(b.Schema())
	if err != nil {
		tb.Fatal(err)
	}
	out, err := store.Create(ctx, "f.lance")
	if err != nil {
		tb.Fatal(err)
	}
	w, err := NewWriter(out, s, opts)
	if err != nil {
		tb.Fatal(err)
	}
	for lo := int64(0); lo < b.NumRows(); lo += step {
		part := b.NewSlice(lo, min(lo+step, b.NumRows()))
		if err := w.Write(ctx, part); err != nil {
			tb.Fatal(err)
		}
		part.Release()
	}
	written, err := w.Finish(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	if written.Rows != uint64(b.NumRows()) {
		tb.Fatalf("%d rows written, want %d", written.Rows, b.NumRows())
	}
	return store
}

func openWritten(tb failer, store object.Store) *Reader {
	tb.Helper()
	f, err := store.Open(context.Background(), "f.lance")
	if err != nil {
		tb.Fatal(err)
	}
	r, err := Open(context.Background(), f, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// checkRoundTrip reads everything, a slice and shuffled rows back.
func checkRoundTrip(tb failer, r *rand.Rand, want arrow.RecordBatch, store object.Store) {
	tb.Helper()
	ctx := context.Background()
	alloc := memory.DefaultAllocator
	reader := openWritten(tb, store)
	cols, err := reader.Columns()
	if err != nil {
		tb.Fatal(err)
	}
	n := int(want.NumRows())
	from := r.Intn(n)
	to := from + 1 + r.Intn(n-from)
	for _, span := range [][2]int{{0, n}, {from, to}} {
		got, err := reader.ReadRange(ctx, cols, uint64(span[0]), uint64(span[1]), ReadOptions{Alloc: alloc})
		if err != nil {
			tb.Fatalf("rows %v: %v", span, err)
		}
		part := want.NewSlice(int64(span[0]), int64(span[1]))
		mustEqualColumns(tb, part, got, fmt.Sprintf("rows %v", span))
		part.Release()
		got.Release()
	}
	rows := make([]uint64, 1+r.Intn(60))
	for i := range rows {
		rows[i] = uint64(r.Intn(n))
	}
	got, err := reader.Take(ctx, cols, rows, ReadOptions{Alloc: alloc})
	if err != nil {
		tb.Fatalf("take %v: %v", rows, err)
	}
	defer got.Release()
	for i, row := range rows {
		one, part := got.NewSlice(int64(i), int64(i+1)), want.NewSlice(int64(row), int64(row+1))
		mustEqualColumns(tb, part, one, fmt.Sprintf("take of row %d", row))
		one.Release()
		part.Release()
	}
}

func mustEqualColumns(tb failer, want, got arrow.RecordBatch, what string) {
	tb.Helper()
	if got.NumRows() != want.NumRows() || got.NumCols() != want.NumCols() {
		tb.Fatalf("%s: %d rows of %d columns, want %d of %d", what, got.NumRows(), got.NumCols(), want.NumRows(), want.NumCols())
	}
	for i := range int(want.NumCols()) {
		if testutil.SameValues(want.Column(i), got.Column(i)) {
			continue
		}
		for row := range want.NumRows() {
			w, g := array.NewSlice(want.Column(i), row, row+1), array.NewSlice(got.Column(i), row, row+1)
			if !testutil.SameValues(w, g) {
				tb.Fatalf("%s, column %q, row %d: got %.200s, want %.200s", what, want.ColumnName(i), row, g, w)
			}
		}
		tb.Fatalf("%s, column %q: the arrays differ, their rows do not: %s and %s", what, want.ColumnName(i), want.Column(i).DataType(), got.Column(i).DataType())
	}
}

func TestRowsComeBackAsTheyWereWritten(t *testing.T) {
	cases := []struct {
		name      string
		rows      int
		step      int64
		pageBytes int
		maker     testutil.RowMaker
	}{
		{"one row", 1, 1, 0, testutil.RowMaker{}},
		{"a chunk of rows without nulls", 1024, 1024, 0, testutil.RowMaker{}},
		{"a chunk and one row", 1025, 500, 0, testutil.RowMaker{Nulls: 0.1}},
		{"nulls at every level", 5000, 777, 0, testutil.RowMaker{Nulls: 0.2, ItemNulls: 0.1}},
		{"many small pages", 3000, 3000, 3000, testutil.RowMaker{Nulls: 0.01, ItemNulls: 0.01}},
		{"wide strings", 700, 100, 50_000, testutil.RowMaker{Nulls: 0.1, Wide: true}},
		{"all null", 2000, 2000, 0, testutil.RowMaker{Nulls: 1}},
		{"one value", 3000, 1000, 0, testutil.RowMaker{Distinct: 1}},
		{"few values with nulls", 9000, 9000, 0, testutil.RowMaker{Distinct: 12, Nulls: 0.1}},
		{"some values", 30_000, 9000, 0, testutil.RowMaker{Distinct: 3000}},
	}
	if testing.Short() {
		cases = cases[:7]
	}
	for _, v := range []Version{V21, V22} {
		for i, c := range cases {
			t.Run(v.String()+" "+c.name, func(t *testing.T) {
				alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
				defer alloc.AssertSize(t, 0)
				c.maker.R = rand.New(rand.NewSource(int64(i)))
				want := c.maker.Batch(alloc, arrow.NewSchema(testutil.Columns(v == V22), nil), c.rows)
				defer want.Release()
				store := writeFile(t, want, c.step, WriterOptions{Version: v, PageBytes: c.pageBytes})
				checkRoundTrip(t, c.maker.R, want, store)
			})
		}
	}
}

func TestDrawnTablesComeBackAsTheyWereWritten(t *testing.T) { rapid.Check(t, checkDrawnTable) }

func FuzzDrawnTables(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkDrawnTable)) }

// What field metadata may ask for.
var (
	askedKeys   = []string{"compression", "compression-level", "rle-threshold", "bss", "dict-divisor", "structural-encoding"}
	askedValues = map[string][]string{
		"compression": {"zstd", "lz4", "fsst", "none"}, "compression-level": {"1", "9"}, "rle-threshold": {"0.1", "0.9"}, "bss": {"on", "off", "auto"},
		"dict-divisor": {"1", "3"}, "structural-encoding": {"miniblock", "fullzip"},
	}
)

func checkDrawnTable(t *rapid.T) {
	v := rapid.SampledFrom([]Version{V21, V22}).Draw(t, "version")
	columns := rapid.SliceOfNDistinct(rapid.SampledFrom(testutil.Columns(v == V22)), 1, 3, func(f arrow.Field) string { return f.Name }).Draw(t, "columns")
	maker := testutil.RowMaker{
		R:         rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))),
		Nulls:     rapid.SampledFrom([]float64{0, 0.001, 0.3, 0.99}).Draw(t, "nulls"),
		ItemNulls: rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "item nulls"),
		Distinct:  rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "distinct"),
		Wide:      rapid.Bool().Draw(t, "wide"),
	}
	for i := range columns {
		asked := rapid.MapOfN(rapid.SampledFrom(askedKeys), rapid.Just(0), 0, 2).Draw(t, "metadata")
		md := make(map[string]string)
		for key := range asked {
			md["lance-encoding:"+key] = rapid.SampledFrom(askedValues[key]).Draw(t, key)
		}
		columns[i].Metadata = arrow.MetadataFrom(md)
	}
	rows := rapid.IntRange(1, 2500).Draw(t, "rows")
	want := maker.Batch(memory.DefaultAllocator, arrow.NewSchema(columns, nil), rows)
	defer want.Release()
	opts := WriterOptions{Version: v, PageBytes: rapid.SampledFrom([]int{0, 500, 20_000}).Draw(t, "page bytes")}
	store := writeFile(t, want, int64(rapid.IntRange(1, rows).Draw(t, "step")), opts)
	checkRoundTrip(t, maker.R, want, store)
}

func TestSameRowsGiveTheSameFile(t *testing.T) {
	maker := testutil.RowMaker{R: rand.New(rand.NewSource(1)), Nulls: 0.1}
	b := maker.Batch(memory.DefaultAllocator, arrow.NewSchema(testutil.Columns(true), nil), 3000)
	defer b.Release()
	var first []byte
	for _, parallel := range []int{1, 4, 4} {
		got := content(t, writeFile(t, b, 1000, WriterOptions{Parallel: parallel, PageBytes: 10_000}))
		if first == nil {
			first = got
		}
		if !bytes.Equal(first, got) {
			t.Fatalf("the file differs with %d columns at a time", parallel)
		}
	}
}

func content(t *testing.T, store object.Store) []byte {
	t.Helper()
	f, err := store.Open(context.Background(), "f.lance")
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Read(context.Background(), object.Range{Size: f.SizeBytes()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Thousands of empty lists between two values would not fit the levels of one chunk; the page must be cut or zipped.
func TestManyEmptyListsBetweenValues(t *testing.T) {
	inner := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	for _, typ := range []arrow.DataType{inner, arrow.ListOf(inner)} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "l", Type: typ, Nullable: true}}, nil))
		defer b.Release()
		outer, ok := b.Field(0).(*array.ListBuilder)
		if !ok {
			t.Fatal("no list builder")
		}
		for row := range 3 {
			if typ == inner {
				for range 100_000 {
					outer.AppendEmptyValue()
				}
				outer.Append(true)
				outer.ValueBuilder().(*array.Int32Builder).Append(int32(row)) //nolint:errcheck,forcetypeassert // as built above
				continue
			}
			outer.Append(true)
			items := outer.ValueBuilder().(*array.ListBuilder) //nolint:errcheck,forcetypeassert // as built above
			for range 100_000 {
				items.AppendEmptyValue()
			}
			items.Append(true)
			items.ValueBuilder().(*array.Int32Builder).Append(int32(row)) //nolint:errcheck,forcetypeassert // as built above
		}
		want := b.NewRecordBatch()
		defer want.Release()
		for _, v := range []Version{V21, V22} {
			checkRoundTrip(t, rand.New(rand.NewSource(1)), want, writeFile(t, want, want.NumRows(), WriterOptions{Version: v}))
		}
	}
}

func TestMetadataAndGlobalBuffersComeBack(t *testing.T) {
	ctx := context.Background()
	store := object.NewMemory("test")
	out, err := store.Create(ctx, "f.lance")
	if err != nil {
		t.Fatal(err)
	}
	md := arrow.MetadataFrom(map[string]string{"a": "1"})
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{{Name: "__flat_marker", Type: arrow.PrimitiveTypes.Uint64}}, &md))
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(out, s, WriterOptions{Metadata: map[string][]byte{"b": []byte("2")}})
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range []string{"first", "", strings.Repeat("x", 1000)} {
		n, err := w.AddGlobalBuffer([]byte(content))
		if err != nil || n != i+1 {
			t.Fatalf("buffer %d: number %d, %v", i, n, err)
		}
	}
	w.SetMetadata("c", []byte("3"))
	if written, err := w.Finish(ctx); err != nil || written.Rows != 0 {
		t.Fatalf("%+v, %v", written, err)
	}
	if _, err := w.Finish(ctx); !errors.Is(err, errs.ErrInternal) {
		t.Fatalf("a second Finish: %v", err)
	}
	r := openWritten(t, store)
	for key, want := range map[string]string{"a": "1", "b": "2", "c": "3"} {
		if got, ok := r.Metadata(key); !ok || string(got) != want {
			t.Fatalf("metadata %s = %q", key, got)
		}
	}
	for i, want := range []string{"first", "", strings.Repeat("x", 1000)} {
		if got, err := r.GlobalBuffer(ctx, i+1); err != nil || string(got) != want {
			t.Fatalf("buffer %d = %q, %v", i+1, got, err)
		}
	}
	if r.Rows() != 0 || r.Version() != V22 || len(r.Schema().Fields) != 1 {
		t.Fatalf("%d rows, version %s, %d fields", r.Rows(), r.Version(), len(r.Schema().Fields))
	}
}

func TestWriterRefusesWhatDoesNotFit(t *testing.T) {
	field := func(name string, typ arrow.DataType, nullable bool) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{{Name: name, Type: typ, Nullable: nullable}}, nil)
	}
	ints := func(s *arrow.Schema, null bool) arrow.RecordBatch {
		b := array.NewRecordBuilder(memory.DefaultAllocator, s)
		defer b.Release()
		for i := range s.NumFields() {
			if null {
				b.Field(i).AppendNull()
			} else {
				b.Field(i).AppendEmptyValue()
			}
		}
		return b.NewRecordBatch()
	}
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	two := arrow.NewSchema([]arrow.Field{{Name: "id", Type: i64}, {Name: "more", Type: i64}}, nil)
	cases := []struct {
		name   string
		schema *arrow.Schema
		batch  *arrow.Schema
		null   bool
		kind   error
		says   string
	}{
		{"a missing column", field("id", i64, true), field("other", i64, true), false, errs.ErrInvalid, `"id"`},
		{"an unknown column", field("id", i64, true), two, false, errs.ErrInvalid, `"more"`},
		{"another type", field("id", i64, true), field("id", str, true), false, errs.ErrInvalid, `"id"`},
		{"a null where the schema has none", field("id", i64, false), field("id", i64, true), true, errs.ErrInvalid, `"id"`},
		{"a null item where the schema has none", field("l", arrow.ListOfNonNullable(i64), false), field("l", arrow.ListOfNonNullable(i64), true), true, errs.ErrInvalid, `"l"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := schema.FromArrow(c.schema)
			if err != nil {
				t.Fatal(err)
			}
			store := object.NewMemory("test")
			out, err := store.Create(context.Background(), "f.lance")
			if err != nil {
				t.Fatal(err)
			}
			w, err := NewWriter(out, s, WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Write(context.Background(), ints(c.batch, c.null))
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v", err)
			}
			if again := w.Write(context.Background(), ints(c.batch, c.null)); !errors.Is(again, c.kind) {
				t.Fatalf("a write after the failed one: %v", again)
			}
			if err := w.Abort(); err != nil {
				t.Fatal(err)
			}
			if entries, _ := store.List(context.Background(), ""); len(entries) != 0 { //nolint:errcheck // a memory store
				t.Fatalf("an aborted file left %v", entries)
			}
		})
	}
}

func TestLayoutsThatMetadataAsksForAreRefused(t *testing.T) {
	large := arrow.BinaryTypes.LargeBinary
	for _, md := range []map[string]string{
		{"lance-encoding:blob": "true"}, {"ARROW:extension:name": "lance.blob.v2"},
	} {
		field := arrow.Field{Name: "col", Type: large, Nullable: true, Metadata: arrow.MetadataFrom(md)}
		s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{field}, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckWritable(s, V22); !errors.Is(err, errs.ErrUnsupported) || !strings.Contains(err.Error(), `"col"`) {
			t.Errorf("%v: %v", md, err)
		}
	}
}

func TestMetadataThatMeansNothingIsRefused(t *testing.T) {
	for key, value := range map[string]string{
		"compression": "brotli", "compression-level": "fast", "rle-threshold": "-1", "bss": "maybe", "dict-divisor": "0", "structural-encoding": "zip",
	} {
		field := arrow.Field{Name: "col", Type: arrow.BinaryTypes.String, Metadata: arrow.MetadataFrom(map[string]string{"lance-encoding:" + key: value})}
		s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{field}, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckWritable(s, V22); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), `"col"`) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s = %s: %v", key, value, err)
		}
	}
}

func TestTypesThatAreNotWrittenAreNamed(t *testing.T) {
	i64 := arrow.PrimitiveTypes.Int64
	for _, c := range []struct {
		name string
		typ  arrow.DataType
		v    Version
	}{
		{"a map in version 2.1", arrow.MapOf(i64, i64), V21},
		{"a vector of structs in version 2.1", arrow.FixedSizeListOf(2, arrow.StructOf(arrow.Field{Name: "x", Type: i64})), V21},
		{"a vector of strings", arrow.FixedSizeListOf(2, arrow.BinaryTypes.String), V22},
		{"a struct without fields", arrow.StructOf(), V22},
		{"file version 2.0", i64, V20},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{{Name: "col", Type: c.typ, Nullable: true}}, nil))
			if err == nil {
				err = CheckWritable(s, c.v)
			}
			if !errors.Is(err, errs.ErrUnsupported) || (c.v != V20 && !strings.Contains(err.Error(), `"col"`)) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// A full store fails the write with its own kind, at whichever write it happens.
func TestAFailingStoreFailsTheWrite(t *testing.T) {
	maker := testutil.RowMaker{R: rand.New(rand.NewSource(1))}
	b := maker.Batch(memory.DefaultAllocator, arrow.NewSchema(testutil.Columns(true)[:8], nil), 500)
	defer b.Release()
	s, err := schema.FromArrow(b.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var reached []int
	for limit := range 60 {
		w, err := NewWriter(&fullWriter{left: limit}, s, WriterOptions{PageBytes: 2000})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(context.Background(), b)
		if err == nil {
			_, err = w.Finish(context.Background())
		}
		if err == nil {
			reached = append(reached, limit)
			continue
		}
		if !errors.Is(err, errs.ErrDiskFull) {
			t.Fatalf("after %d writes: %v", limit, err)
		}
	}
	if !slices.Contains(reached, 59) || slices.Contains(reached, 0) {
		t.Fatalf("the file took %v writes", reached)
	}
}

// fullWriter fails after some writes.
type fullWriter struct {
	left int
	size int64
}

func (w *fullWriter) Write(b []byte) (int, error) {
	if w.left == 0 {
		return 0, errs.New(errs.ErrDiskFull, "no space left")
	}
	w.left--
	w.size += int64(len(b))
	return len(b), nil
}
func (w *fullWriter) Close() error       { return nil }
func (w *fullWriter) Abort() error       { return nil }
func (w *fullWriter) OffsetBytes() int64 { return w.size }
