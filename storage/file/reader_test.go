package file

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
)

// singleFile names the datasets whose rows all lie in one data file, in order.
var singleFile = []string{
	"scalars_v21_7", "scalars_v22_7", "scalars_v22_5000", "wide_v21", "wide_v22",
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
			got := spell(b.Column(c), i)
			if w := want(i)[name]; !sameSpelling(got, w) {
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
