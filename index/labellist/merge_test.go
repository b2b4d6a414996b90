package labellist_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// TestSpilledAndMergedSegmentsAnswerAsAScanDoes builds one segment from rows that are collected, spilled or taken over from other segments, some of whose
// rows are gone.
func TestSpilledAndMergedSegmentsAnswerAsAScanDoes(t *testing.T) {
	temp := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		typ := segtest.Types[rapid.IntRange(0, len(segtest.Types)-1).Draw(t, "type")]
		column := make([][]int, rapid.IntRange(0, 80).Draw(t, "rows")) // nil = NULL
		for i := range column {
			if rapid.IntRange(0, 5).Draw(t, "null") > 0 {
				column[i] = append([]int{}, rapid.SliceOfN(rapid.IntRange(-1, len(typ.Values)-1), 0, 4).Draw(t, "list")...)
			}
		}
		texts := make([]string, len(column))
		for i, list := range column {
			if texts[i] = "null"; list != nil {
				texts[i] = typ.JSONList(list)
			}
		}
		lists := segtest.Array(t, arrow.ListOf(typ.Arrow), "["+strings.Join(texts, ",")+"]")
		keys := segtest.DrawKeys(t, len(column))
		gone := make([]bool, len(column))
		cuts := segtest.DrawCuts(t, len(column), 4)
		store := object.NewMemory("t")
		b, err := labellist.NewBuilder("c", lists.DataType(), index.BuildOptions{MemoryBytes: rapid.Int64Range(1, 2000).Draw(t, "memory"), TempDir: temp})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Free()
		for part := range len(cuts) - 1 {
			lo, hi := cuts[part], cuts[part+1]
			if rapid.Bool().Draw(t, "as a segment") {
				keep := &rowset.Set{}
				for i := lo; i < hi; i++ {
					if gone[i] = rapid.IntRange(0, 4).Draw(t, "gone") == 0; !gone[i] {
						keep.Add(keys[i])
					}
				}
				s := buildPart(t, store, fmt.Sprintf("part%d", part), lists, keys, lo, hi)
				defer func() { _ = s.Close() }()
				if err := b.AddSegment(s, index.Only{Keys: keep}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			for step := rapid.IntRange(1, 30).Draw(t, "step"); lo < hi; lo += step {
				addRows(t, b, lists, keys, lo, min(lo+step, hi))
			}
		}
		if _, err := b.Write(ctx, segtest.Create(t, store, "seg/"+bitmap.FileName), file.V22); err != nil {
			t.Fatal(err)
		}
		s := open(t, store, index.OpenOptions{})
		for range 4 {
			needles := rapid.SliceOfN(rapid.IntRange(0, len(typ.Values)-1), 1, 3).Draw(t, "needles")
			for _, op := range []index.Op{index.OpHasAny, index.OpHasAll, index.OpIsNull} {
				p := index.Predicate{Op: op, Values: typ.Needles(t, needles...)}
				truth, _, err := s.Lookup(ctx, p)
				if err != nil {
					t.Fatal(err)
				}
				segtest.Check(t, p.String(), truth, keys, func(i int) segtest.Verdict {
					has := func(n int) bool { return slices.Contains(column[i], n) }
					switch {
					case gone[i]:
						return 0
					case op == index.OpIsNull:
						return segtest.Of(column[i] == nil)
					case column[i] == nil:
						return -1
					case op == index.OpHasAny:
						return segtest.Of(slices.ContainsFunc(needles, has))
					}
					return segtest.Of(!slices.ContainsFunc(needles, func(n int) bool { return !has(n) }))
				})
			}
		}
	})
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%d folders of runs are left, %v", len(left), err)
	}
}

func addRows(tb segtest.TB, b *labellist.Builder, lists arrow.Array, keys []uint64, lo, hi int) {
	part := array.NewSlice(lists, int64(lo), int64(hi))
	defer part.Release()
	if err := b.Add(ctx, part, keys[lo:hi]); err != nil {
		tb.Fatal(err)
	}
}

func buildPart(tb segtest.TB, store object.Store, dir string, lists arrow.Array, keys []uint64, lo, hi int) *labellist.Segment {
	tb.Helper()
	b, err := labellist.NewBuilder("c", lists.DataType(), index.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer b.Free()
	addRows(tb, b, lists, keys, lo, hi)
	if _, err := b.Write(ctx, segtest.Create(tb, store, dir+"/"+bitmap.FileName), file.V22); err != nil {
		tb.Fatal(err)
	}
	s, err := labellist.Open(ctx, segtest.Opener(store, dir), index.Meta{Name: "labels_idx", Version: labellist.WriteVersion}, index.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
