package labellist_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// TestManyLabelsFitASmallBudget builds an index of 60,000 labels, which take 8 MB and more, within 1 MiB. make soak does it at a million.
func TestManyLabelsFitASmallBudget(t *testing.T) {
	const rows, labels, limit = 120_000, 60_000, 1 << 20
	budget := mem.NewBudget("build", limit, nil)
	b, err := labellist.NewBuilder("labels", arrow.ListOf(arrow.BinaryTypes.String), index.BuildOptions{Budget: budget, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	for row := uint64(0); row < rows; {
		list := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
		var keys []uint64
		for ; row < rows && len(keys) < 1000; row++ {
			list.Append(true)
			for k := range uint64(2) {
				list.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("label %d", (row*7+k*20_011)%labels))
			}
			keys = append(keys, row)
		}
		lists := list.NewArray()
		if err := b.Add(ctx, lists, keys); err != nil {
			t.Fatalf("at row %d: %v", row, err)
		}
		lists.Release()
		list.Release()
	}
	if b.Runs() < 5 || budget.Peak() > limit {
		t.Errorf("%d runs, %d bytes at most", b.Runs(), budget.Peak())
	}
	store := object.NewMemory("t")
	if _, err := b.Write(ctx, segtest.Create(t, store, "seg/"+bitmap.FileName), file.V22); err != nil {
		t.Fatal(err)
	}
	s := open(t, store, index.OpenOptions{})
	if n := s.File().Keys().Len(); n != labels {
		t.Errorf("%d labels", n)
	}
	for _, label := range []uint64{0, 31_234, labels - 1} {
		p := index.Predicate{Op: index.OpHas, Values: segtest.Array(t, arrow.BinaryTypes.String, fmt.Sprintf(`["label %d"]`, label))}
		truth, _, err := s.Lookup(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(0)
		for row := range uint64(rows) {
			if (row*7)%labels == label || (row*7+20_011)%labels == label {
				want++
				if !truth.True.Contains(row) {
					t.Fatalf("row %d has label %d", row, label)
				}
			}
		}
		if truth.True.Count() != want {
			t.Errorf("label %d: %d rows, want %d", label, truth.True.Count(), want)
		}
	}
}
