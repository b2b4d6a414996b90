package btree_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// TestSegmentsComeBackFromTheirState covers BITMAP too, which answers the same questions.
func TestSegmentsComeBackFromTheirState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := segtest.Types[rapid.IntRange(0, len(segtest.Types)-1).Draw(t, "type")]
		column := rapid.SliceOfN(rapid.IntRange(-1, len(typ.Values)-1), 0, 120).Draw(t, "column")
		keys := segtest.DrawKeys(t, len(column))
		values := segtest.Array(t, typ.Arrow, typ.JSONList(column))
		store := object.NewMemory("t")
		tree := build(t, store, values, keys, rapid.IntRange(1, 40).Draw(t, "page rows"), file.V22)
		kept, err := tree.MarshalState()
		if err != nil {
			t.Fatal(err)
		}
		open := func(ctx context.Context, name string) (object.File, error) {
			if name == btree.LookupFileName {
				return nil, errs.New(errs.ErrInternal, "what is in the state is read")
			}
			return store.Open(ctx, path.Join("seg", name))
		}
		fromTree, err := btree.Open(ctx, open, index.Meta{Name: "b"}, index.OpenOptions{State: kept})
		if err != nil {
			t.Fatal(err)
		}
		fromBitmap := bitmapOfState(t, values, keys)
		for range 4 {
			q := drawQuestion(t, typ)
			for _, s := range []index.FilterSegment{fromTree, fromBitmap} {
				truth, _, err := s.Lookup(ctx, q.predicate(t, typ))
				if err != nil {
					t.Fatal(err)
				}
				segtest.Check(t, fmt.Sprintf("%T op %d %v of %v", s, q.op, q.args, column), truth, keys, func(i int) segtest.Verdict { return q.verdict(column[i]) })
			}
		}
		at := rapid.IntRange(0, len(kept)-1).Draw(t, "broken byte")
		kept[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		if _, err := btree.Open(ctx, open, index.Meta{Name: "b"}, index.OpenOptions{State: kept}); !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
	})
}

func bitmapOfState(tb segtest.TB, values arrow.Array, keys []uint64) index.FilterSegment {
	tb.Helper()
	store := object.NewMemory("t")
	b, err := bitmap.NewBuilder("c", values.DataType(), index.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer b.Free()
	if err := b.Add(ctx, values, keys); err != nil {
		tb.Fatal(err)
	}
	if _, err := b.Write(ctx, segtest.Create(tb, store, "seg/"+bitmap.FileName), file.V22); err != nil {
		tb.Fatal(err)
	}
	s, err := bitmap.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "b"}, index.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	kept, err := s.MarshalState()
	if err != nil {
		tb.Fatal(err)
	}
	again, err := bitmap.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "b"}, index.OpenOptions{State: kept})
	if err != nil {
		tb.Fatal(err)
	}
	return again
}
