package transfer

import (
	"context"
	"errors"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

// batchRows yields one batch, in slices.
type batchRows struct {
	batch arrow.RecordBatch
	at    int64
	step  int64
	fail  error // at the end
}

func (b *batchRows) Schema() *arrow.Schema { return b.batch.Schema() }

func (b *batchRows) Next(context.Context) (arrow.RecordBatch, error) {
	if b.at == b.batch.NumRows() {
		if b.fail != nil {
			return nil, b.fail
		}
		return nil, io.EOF
	}
	n := min(b.step, b.batch.NumRows()-b.at)
	out := b.batch.NewSlice(b.at, b.at+n)
	b.at += n
	return out, nil
}

func (d *desk) local() *object.Local {
	d.t.Helper()
	store, err := object.OpenLocal(d.dir, object.LocalOptions{})
	must(d.t, err)
	d.t.Cleanup(func() { must(d.t, store.Close()) })
	return store
}

// table reads all rows of the table as one batch.
func (d *desk) table() arrow.RecordBatch {
	d.t.Helper()
	ctx := context.Background()
	table, err := storage.OpenTable(ctx, d.target.Store, d.target.Dir, storage.TableOptions{})
	must(d.t, err)
	snap, err := table.Latest(ctx)
	must(d.t, err)
	rows, err := TableRows(ctx, snap, nil)
	must(d.t, err)
	var all []arrow.RecordBatch
	for {
		b, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		must(d.t, err)
		all = append(all, b)
	}
	must(d.t, rows.Close())
	cols := make([]arrow.Array, rows.Schema().NumFields())
	n := int64(0)
	for i := range cols {
		var parts []arrow.Array
		for _, b := range all {
			parts = append(parts, b.Column(i))
		}
		cols[i], err = array.Concatenate(parts, memory.DefaultAllocator)
		must(d.t, err)
		n = int64(cols[i].Len())
	}
	return array.NewRecordBatch(rows.Schema(), cols, n)
}

// Rows of every type are the same after export and import, and after another export and import; in all formats.
func TestRoundTrip(t *testing.T) {
	maker := testutil.RowMaker{R: rand.New(rand.NewSource(3)), Nulls: 0.2, ItemNulls: 0.1, Distinct: 50}
	columns := slices.DeleteFunc(testutil.Columns(true), func(f arrow.Field) bool { return f.Name == "nothing" })
	want := maker.Batch(memory.DefaultAllocator, arrow.NewSchema(columns, nil), 250)
	for _, format := range []files.Format{files.FormatParquet, files.FormatArrow, files.FormatArrowStream} {
		for _, compression := range map[files.Format][]Compression{files.FormatParquet: {CompressNone, CompressSnappy}, files.FormatArrow: {CompressZstd}, files.FormatArrowStream: {CompressNone}}[format] {
			d := newDesk(t)
			from := Rows(&batchRows{batch: want, step: 40})
			for round := range 2 {
				d.target.Store = object.NewMemory("mem")
				done, err := Export(context.Background(), from, d.local(), "out", ExportOptions{Folder: true, Force: true, RowsPerFile: 100, Format: format, Compression: compression})
				must(t, err)
				if len(done.Files) != 3 || done.Rows != 250 {
					t.Fatalf("%+v", done)
				}
				_, err = d.run(ImportOptions{Files: files.Options{VectorMin: -1}}, "out")
				must(t, err)
				got := d.table()
				for i, f := range columns {
					w, g := plainOf(t, want.Column(i)), got.Column(i)
					if !sameArrays(w, g) {
						t.Fatalf("%s, round %d: column %s is\n%.300s, want\n%.300s", format, round, f.Name, g, w)
					}
				}
				from = &batchRows{batch: got, step: 99}
			}
		}
	}
}

// sameArrays compares values; Parquet keeps whole days and milliseconds where dates and times have finer types.
func sameArrays(a, b arrow.Array) bool {
	return testutil.SameValues(a, b) || a.String() == b.String()
}

// plainOf is an array with values in the place of dictionary codes, as a table has them.
func plainOf(t *testing.T, a arrow.Array) arrow.Array {
	to := a.DataType()
	switch v := to.(type) {
	case *arrow.DictionaryType:
		to = v.ValueType
	case *arrow.ListType:
		if item, ok := v.Elem().(*arrow.DictionaryType); ok {
			to = arrow.ListOf(item.ValueType)
		}
	}
	c, err := files.NewConverter(a.DataType(), to, memory.DefaultAllocator)
	must(t, err)
	out, err := c.Convert(context.Background(), a)
	must(t, err)
	return out
}

func someRows(n int) arrow.RecordBatch {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range n {
		b.Append(int64(i))
	}
	return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil), []arrow.Array{b.NewArray()}, int64(n))
}

// Nothing has its name before it is whole, and what is there stays.
func TestExportIsWhole(t *testing.T) {
	ctx := context.Background()
	names := func(dir string) string {
		entries, err := os.ReadDir(dir)
		must(t, err)
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return strings.Join(out, " ")
	}
	d := newDesk(t)
	store := d.local()
	broken := errs.New(errs.ErrIO, "the rows end early")
	for _, opts := range []ExportOptions{{}, {Folder: true, RowsPerFile: 10}} {
		if _, err := Export(ctx, &batchRows{batch: someRows(100), step: 7, fail: broken}, store, "x.parquet", opts); !errors.Is(err, errs.ErrIO) {
			t.Fatal(err)
		}
		if got := names(d.dir); got != "" {
			t.Fatalf("%+v left %s", opts, got)
		}
	}
	_, err := Export(ctx, &batchRows{batch: someRows(10), step: 7}, store, "x.parquet", ExportOptions{})
	must(t, err)
	before, err := os.ReadFile(filepath.Join(d.dir, "x.parquet"))
	must(t, err)
	if _, err := Export(ctx, &batchRows{batch: someRows(11), step: 7}, store, "x.parquet", ExportOptions{}); !errors.Is(err, errs.ErrExists) {
		t.Fatal(err)
	}
	if _, err := Export(ctx, &batchRows{batch: someRows(11), step: 7, fail: broken}, store, "x.parquet", ExportOptions{Force: true}); !errors.Is(err, errs.ErrIO) {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(d.dir, "x.parquet"))
	must(t, err)
	if string(before) != string(after) {
		t.Fatal("a file that was not replaced has changed")
	}
	_, err = Export(ctx, &batchRows{batch: someRows(25), step: 7}, store, "f", ExportOptions{Folder: true, RowsPerFile: 10})
	must(t, err)
	if got := names(filepath.Join(d.dir, "f")); got != "part-00000.parquet part-00001.parquet part-00002.parquet" {
		t.Fatal(got)
	}
	if _, err := Export(ctx, &batchRows{batch: someRows(25), step: 7, fail: broken}, store, "f", ExportOptions{Folder: true, Force: true}); !errors.Is(err, errs.ErrIO) {
		t.Fatal(err)
	}
	if got := names(filepath.Join(d.dir, "f")); got != "part-00000.parquet part-00001.parquet part-00002.parquet" {
		t.Fatal(got)
	}
	_, err = Export(ctx, &batchRows{batch: someRows(10), step: 7}, store, "f", ExportOptions{Folder: true, RowsPerFile: 10, Force: true})
	must(t, err)
	if got := names(filepath.Join(d.dir, "f")) + ", " + names(d.dir); got != "part-00000.parquet, f x.parquet" {
		t.Fatal(got)
	}
	// The same in a store without folders.
	mem := object.NewMemory("mem")
	if _, err := Export(ctx, &batchRows{batch: someRows(25), step: 7, fail: broken}, mem, "f", ExportOptions{Folder: true, RowsPerFile: 10}); !errors.Is(err, errs.ErrIO) {
		t.Fatal(err)
	}
	if left, err := mem.List(ctx, "f"); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	for name, opts := range map[string]ExportOptions{"x.csv": {}, "x": {}, "x.arrow": {Compression: CompressSnappy}, "y.parquet": {RowsPerFile: 3}} {
		if _, err := Export(ctx, &batchRows{batch: someRows(1), step: 7}, store, name, opts); err == nil {
			t.Errorf("%s %+v is written", name, opts)
		}
	}
}

// JSON columns are exported as text, nested ones too, and are JSON again in a table that has them so.
func TestExportJSON(t *testing.T) {
	d := newDesk(t)
	text := array.NewStringBuilder(memory.DefaultAllocator)
	text.AppendValues([]string{`{"a":[1,null]}`, `"x"`}, nil)
	text.AppendNull()
	md := arrow.MetadataFrom(map[string]string{"ARROW:extension:name": "lance.json"})
	json := arrow.Field{Name: "j", Type: arrow.BinaryTypes.LargeBinary, Nullable: true, Metadata: md}
	s := arrow.NewSchema([]arrow.Field{json, {Name: "in", Type: arrow.StructOf(json), Nullable: true}}, nil)
	arr := text.NewArray()
	plain := arrow.Field{Name: "j", Type: arrow.BinaryTypes.String, Nullable: true}
	nested, err := array.NewStructArrayWithFields([]arrow.Array{arr}, []arrow.Field{plain})
	must(t, err)
	rows := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{plain, {Name: "in", Type: nested.DataType(), Nullable: true}}, nil), []arrow.Array{arr, nested}, 3)
	ctx := context.Background()
	_, err = write.CreateTable(ctx, d.target, s, write.CreateOptions{Parts: []write.Batches{&batchRows{batch: rows, step: 3}}})
	must(t, err)
	want := d.table()
	table, err := storage.OpenTable(ctx, d.target.Store, d.target.Dir, storage.TableOptions{})
	must(t, err)
	snap, err := table.Latest(ctx)
	must(t, err)
	stored, err := TableRows(ctx, snap, nil)
	must(t, err)
	_, err = Export(ctx, stored, d.local(), "j.parquet", ExportOptions{})
	must(t, errors.Join(err, stored.Close()))
	_, err = d.run(ImportOptions{Mode: ModeAppend}, "j.parquet")
	must(t, err)
	got := d.table()
	for i := range 3 {
		if a, b := got.Column(0).ValueStr(i), got.Column(0).ValueStr(i+3); a != b || a != want.Column(0).ValueStr(i) {
			t.Errorf("row %d is %s, then %s", i, a, b)
		}
		if a, b := got.Column(1).ValueStr(i), got.Column(1).ValueStr(i+3); a != b {
			t.Errorf("nested row %d is %s, then %s", i, a, b)
		}
	}
	d.target.Dir = "plain.lance"
	_, err = d.run(ImportOptions{}, "j.parquet")
	must(t, err)
	if got := d.table().Column(0); got.ValueStr(0) != `{"a": [1, null]}` || got.ValueStr(1) != `"x"` || !got.IsNull(2) {
		t.Errorf("the file has %v", got)
	}
}
