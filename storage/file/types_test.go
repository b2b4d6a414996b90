package file

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
)

// TestEveryTypeEqualsTheReferenceEngine reads files that hold every logical type, nesting and codec that the engine can be made to
// write, on one page and on several.
func TestEveryTypeEqualsTheReferenceEngine(t *testing.T) {
	answers, err := filepath.Glob(filepath.Join(testutil.Root(t), "testdata", "file", "*.arrow.gz"))
	if err != nil || len(answers) < 8 {
		t.Fatalf("%d answers: %v", len(answers), err)
	}
	for _, path := range answers {
		base := strings.TrimSuffix(path, ".arrow.gz")
		t.Run(filepath.Base(base), func(t *testing.T) {
			want := testutil.LoadArrow(t, path)
			defer want.Release()
			compareTypes(t, openFile(t, base+".lance"), want)
		})
	}
}

// compareTypes reads every column by itself, so that one that fails does not hide the others.
func compareTypes(t *testing.T, r *Reader, want arrow.RecordBatch) {
	t.Helper()
	for i, field := range want.Schema().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			cols, err := r.Columns(field.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []uint64{1 << 20, 97} {
				for from := uint64(0); from < r.Rows(); from += step {
					to := min(from+step, r.Rows())
					b, err := r.ReadRange(context.Background(), cols, from, to, ReadOptions{Alloc: alloc})
					if err != nil {
						t.Fatal(err)
					}
					w := array.NewSlice(want.Column(i), int64(from), int64(to))
					if !sameValues(b.Column(0), w) {
						t.Errorf("rows [%d, %d) differ: got %s, want %s", from, to, short(b.Column(0)), short(w))
					}
					w.Release()
					b.Release()
					if t.Failed() {
						return
					}
				}
			}
			whole, err := r.ReadRange(context.Background(), cols, 0, r.Rows(), ReadOptions{Alloc: alloc})
			if err != nil {
				t.Fatal(err)
			}
			defer whole.Release()
			takeShuffled(t, r, cols, whole, ReadOptions{Alloc: alloc})
		})
	}
}

// sameValues compares arrays by value: dictionaries by what their indices mean.
func sameValues(a, b arrow.Array) bool {
	da, ok := a.(*array.Dictionary)
	if !ok {
		return arrow.TypeEqual(a.DataType(), b.DataType()) && array.ApproxEqual(a, b, array.WithNaNsEqual(true))
	}
	db, ok := b.(*array.Dictionary)
	if !ok || da.Len() != db.Len() || !arrow.TypeEqual(da.DataType(), db.DataType()) {
		return false
	}
	for i := range da.Len() {
		if testutil.Spell(da, i) != testutil.Spell(db, i) {
			return false
		}
	}
	return true
}
