package file

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
)

// singleFile names the datasets whose rows all lie in one data file, in order.
var singleFile = []string{
	"scalars_v20_7", "scalars_v21_7", "scalars_v22_7", "scalars_v22_5000", "wide_v21", "wide_v22",
}

func openFile(tb testing.TB, path string) *Reader {
	tb.Helper()
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{SmallBytes: -1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	f, err := store.Open(context.Background(), filepath.Base(path))
	if err != nil {
		tb.Fatal(err)
	}
	r, err := Open(context.Background(), f, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func dataFiles(tb testing.TB, dataset string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(testutil.Lance(tb, dataset), "data", "*.lance"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no data files in %s: %v", dataset, err)
	}
	return files
}

func TestReadRangeEqualsTheReferenceEngine(t *testing.T) {
	for _, name := range singleFile {
		t.Run(name, func(t *testing.T) {
			want := testutil.LoadExpected(t, testutil.Lance(t, name))
			r := openFile(t, dataFiles(t, name)[0])
			if r.Rows() != uint64(len(want.Rows)) {
				t.Fatalf("%d rows, want %d", r.Rows(), len(want.Rows))
			}
			for _, step := range []uint64{1 << 20, 1000, 7} {
				readAll(t, r, step, func(first uint64, b arrow.RecordBatch) {
					compareRows(t, b, func(i int) map[string]any { return want.Rows[int(first)+i] })
				})
			}
		})
	}
}

func readAll(t *testing.T, r *Reader, step uint64, each func(first uint64, b arrow.RecordBatch)) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	cols, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for from := uint64(0); from < r.Rows(); from += step {
		b, err := r.ReadRange(context.Background(), cols, from, min(from+step, r.Rows()), ReadOptions{Alloc: alloc})
		if err != nil {
			t.Fatal(err)
		}
		each(from, b)
		b.Release()
	}
}

func compareRows(t *testing.T, b arrow.RecordBatch, want func(i int) map[string]any) {
	t.Helper()
	for c := range int(b.NumCols()) {
		name := b.ColumnName(c)
		bad := 0
		for i := range int(b.NumRows()) {
			got := testutil.Spell(b.Column(c), i)
			if w := want(i)[name]; !testutil.SameSpelling(got, w) {
				if bad++; bad <= 3 {
					t.Errorf("%s row %d: got %s, want %s", name, i, short(got), short(w))
				}
			}
		}
		if bad > 3 {
			t.Errorf("%s: %d rows differ", name, bad)
		}
	}
}

func short(v any) string {
	s := fmt.Sprintf("%v", v)
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	return s
}

// TestRowsOfUnchangedDatasets compares datasets of several files, whose rows are found by id.
func TestRowsOfUnchangedDatasets(t *testing.T) {
	for _, name := range []string{"labels_v20", "labels_v21", "labels_v22", "labels_stable"} {
		t.Run(name, func(t *testing.T) {
			want := testutil.LoadExpected(t, testutil.Lance(t, name))
			byID := make(map[string]map[string]any, len(want.Rows))
			for _, row := range want.Rows {
				byID[fmt.Sprint(row["id"])] = row
			}
			rows := 0
			for _, path := range dataFiles(t, name) {
				readAll(t, openFile(t, path), 100, func(_ uint64, b arrow.RecordBatch) {
					id := b.Column(b.Schema().FieldIndices("id")[0])
					compareRows(t, b, func(i int) map[string]any { return byID[fmt.Sprint(testutil.Spell(id, i))] })
					rows += int(b.NumRows())
				})
			}
			if rows != len(want.Rows) {
				t.Errorf("%d rows, want %d", rows, len(want.Rows))
			}
		})
	}
}

// allFiles returns every data and index file below testdata.
func allFiles(tb testing.TB) []string {
	tb.Helper()
	var out []string
	for _, pattern := range []string{"lance/*/data/*.lance", "lance/*/_indices/*/*.lance", "lance/*/_indices/*/*.idx", "file/*.lance"} {
		files, err := filepath.Glob(filepath.Join(testutil.Root(tb), "testdata", pattern))
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, files...)
	}
	if len(out) < 50 {
		tb.Fatalf("%d files below testdata", len(out))
	}
	return out
}

// TestEveryFileReadsAlikeInEveryWay compares one read of all rows with small steps and with Take of shuffled rows and duplicates.
func TestEveryFileReadsAlikeInEveryWay(t *testing.T) {
	for _, path := range allFiles(t) {
		rel, _ := filepath.Rel(testutil.Root(t), path)
		if strings.HasPrefix(rel, filepath.Join("testdata", "file")) {
			continue // TestEveryTypeEqualsTheReferenceEngine does the same, dictionaries compared by value
		}
		t.Run(rel, func(t *testing.T) {
			r := openFile(t, path)
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			cols, err := r.Columns()
			if err != nil {
				t.Fatal(err)
			}
			opts := ReadOptions{Alloc: alloc}
			whole, err := r.ReadRange(context.Background(), cols, 0, r.Rows(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer whole.Release()
			readAll(t, r, max(1, r.Rows()/7), func(first uint64, b arrow.RecordBatch) {
				part := whole.NewSlice(int64(first), int64(first)+b.NumRows())
				defer part.Release()
				if !array.RecordApproxEqual(part, b, array.WithNaNsEqual(true)) {
					t.Errorf("rows from %d differ", first)
				}
			})
			takeShuffled(t, r, cols, whole, opts)
		})
	}
}

func takeShuffled(t *testing.T, r *Reader, cols []Column, whole arrow.RecordBatch, opts ReadOptions) {
	t.Helper()
	if r.Rows() == 0 {
		return
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	rows := make([]uint64, min(40, 2*r.Rows()))
	for i := range rows {
		rows[i] = rnd.Uint64N(r.Rows())
	}
	for _, sorted := range []bool{false, true} {
		if sorted {
			slices.Sort(rows)
			rows = slices.Compact(rows)
		}
		got, err := r.Take(context.Background(), cols, rows, opts)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			want, one := whole.NewSlice(int64(row), int64(row)+1), got.NewSlice(int64(i), int64(i)+1)
			if !array.RecordApproxEqual(want, one, array.WithNaNsEqual(true)) {
				t.Errorf("row %d differs: %v, want %v", row, one, want)
			}
			want.Release()
			one.Release()
		}
		got.Release()
	}
}
