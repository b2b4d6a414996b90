package btree_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// TestSpilledAndMergedSegmentsAnswerAsAScanDoes builds one segment from rows that are collected, spilled or taken over from other segments.
func TestSpilledAndMergedSegmentsAnswerAsAScanDoes(t *testing.T) {
	temp := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		typ := segtest.Types[rapid.IntRange(0, len(segtest.Types)-1).Draw(t, "type")]
		column := rapid.SliceOfN(rapid.IntRange(-1, len(typ.Values)-1), 0, 200).Draw(t, "column")
		keys := segtest.DrawKeys(t, len(column))
		values := segtest.Array(t, typ.Arrow, typ.JSONList(column))
		cuts := segtest.DrawCuts(t, len(column), 4)
		store := object.NewMemory("t")
		b, err := btree.NewBuilder("c", typ.Arrow, index.BuildOptions{MemoryBytes: rapid.Int64Range(1, 2000).Draw(t, "memory"), TempDir: temp})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Free()
		b.SetPageRows(rapid.IntRange(1, 40).Draw(t, "page rows"))
		for part := range len(cuts) - 1 {
			lo, hi := cuts[part], cuts[part+1]
			if rapid.Bool().Draw(t, "as a segment") {
				s := buildPart(t, store, fmt.Sprintf("part%d", part), values, keys, lo, hi)
				defer func() { _ = s.Close() }()
				if err := b.AddSegment(s, index.Only{Keys: rowset.NewSet(keys[lo:hi]...)}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			for step := rapid.IntRange(1, 50).Draw(t, "step"); lo < hi; lo += step {
				addRows(t, b, values, keys, lo, min(lo+step, hi))
			}
		}
		_, err = b.Write(ctx, segtest.Create(t, store, "seg/"+btree.DataFileName), segtest.Create(t, store, "seg/"+btree.LookupFileName), file.V22)
		if err != nil {
			t.Fatal(err)
		}
		s, err := btree.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "b"}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range s.Pages() {
			if err := s.CheckPage(ctx, k); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			q := drawQuestion(t, typ)
			truth, _, err := s.Lookup(ctx, q.predicate(t, typ))
			if err != nil {
				t.Fatal(err)
			}
			segtest.Check(t, fmt.Sprintf("op %d %v of %v", q.op, q.args, column), truth, keys, func(i int) segtest.Verdict { return q.verdict(column[i]) })
		}
	})
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%d folders of runs are left, %v", len(left), err)
	}
}

func addRows(tb segtest.TB, b *btree.Builder, values arrow.Array, keys []uint64, lo, hi int) {
	part := array.NewSlice(values, int64(lo), int64(hi))
	defer part.Release()
	if err := b.Add(ctx, part, keys[lo:hi]); err != nil {
		tb.Fatal(err)
	}
}

func buildPart(tb segtest.TB, store object.Store, dir string, values arrow.Array, keys []uint64, lo, hi int) *btree.Segment {
	tb.Helper()
	b, err := btree.NewBuilder("c", values.DataType(), index.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer b.Free()
	addRows(tb, b, values, keys, lo, hi)
	if _, err := b.Write(ctx, segtest.Create(tb, store, dir+"/"+btree.DataFileName), segtest.Create(tb, store, dir+"/"+btree.LookupFileName), file.V22); err != nil {
		tb.Fatal(err)
	}
	s, err := btree.Open(ctx, segtest.Opener(store, dir), index.Meta{Name: "b"}, index.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestKeysAreDroppedAndMovedWhenSegmentsAreTakenOver(t *testing.T) {
	store := object.NewMemory("t")
	values := segtest.Array(t, segtest.Types[3].Arrow, `[5, null, 7, 5, 9]`)
	s := buildPart(t, store, "a", values, []uint64{0, 1, 2, 1 << 32, 1<<32 | 1}, 0, 5)
	moved := &rowset.Remap{}
	if err := moved.Move(0, rowset.Addr(4, 10), 2); err != nil { // row 2 is gone
		t.Fatal(err)
	}
	b, err := btree.NewBuilder("c", values.DataType(), index.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	if err := b.AddSegment(s, index.Moved{Remap: moved}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(ctx, segtest.Create(t, store, "b/"+btree.DataFileName), segtest.Create(t, store, "b/"+btree.LookupFileName), file.V22); err != nil {
		t.Fatal(err)
	}
	out, err := btree.Open(ctx, segtest.Opener(store, "b"), index.Meta{Name: "b"}, index.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	truth, _, err := out.Lookup(ctx, index.Predicate{Op: index.OpRange, Values: segtest.Array(t, values.DataType(), `[null, null]`)})
	if err != nil {
		t.Fatal(err)
	}
	if want := rowset.NewSet(4<<32|10, 1<<32, 1<<32|1); !rowset.Equal(truth.True, want) || !rowset.Equal(truth.Null, rowset.NewSet(4<<32|11)) {
		t.Fatalf("%v, NULL %v", truth.True.Uppers(), truth.Null.Uppers())
	}
}
