package labellist_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

func TestASegmentComesBackFromItsState(t *testing.T) {
	store := object.NewMemory("t")
	s := build(t, store, listsOfL(t), []uint64{0, 1, 2, 3, 4, 5, 6}, file.V22)
	kept, err := s.MarshalState()
	if err != nil {
		t.Fatal(err)
	}
	// A budget of nothing: the keys and NULL lists stay where the state is.
	budget := mem.NewBudget("index", 1<<10, nil)
	again, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "labels_idx", Version: 1}, index.OpenOptions{State: kept, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	if budget.Used() != 0 {
		t.Errorf("%d bytes paid for what the state has", budget.Used())
	}
	for _, p := range []index.Predicate{
		{Op: index.OpHas, Values: segtest.Array(t, arrow.BinaryTypes.String, `["foo"]`)},
		{Op: index.OpHasAll, Values: segtest.Array(t, arrow.BinaryTypes.String, `["foo","bar"]`)},
		{Op: index.OpHasAny, Values: segtest.Array(t, arrow.BinaryTypes.String, `["zzz"]`)}, {Op: index.OpIsNull},
	} {
		want, _, err := s.Lookup(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		got, match, err := again.Lookup(ctx, p)
		if err != nil || match != index.Exact || !rowset.Equal(got.True, want.True) || !rowset.Equal(got.Null, want.Null) {
			t.Errorf("%s: %v %v", p, match, err)
		}
	}
	twice, err := again.MarshalState()
	if err != nil || !slices.Equal(twice, kept) {
		t.Errorf("the state of what came back differs, %v", err)
	}
	for what, b := range map[string][]byte{"nothing": {}, "cut": kept[:len(kept)-8], "changed": append(slices.Clone(kept[:40]), append([]byte{kept[40] ^ 1}, kept[41:]...)...)} {
		_, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Version: 1}, index.OpenOptions{State: b})
		if !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A copy that is not aligned is moved.
	moved := append(make([]byte, 1, len(kept)+1), kept...)[1:]
	if _, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Version: 1}, index.OpenOptions{State: moved}); err != nil {
		t.Errorf("at another place: %v", err)
	}
	other := object.NewMemory("t")
	buildPart(t, other, "seg", segtest.Array(t, arrow.ListOf(arrow.BinaryTypes.String), `[["a"]]`), []uint64{1}, 0, 1)
	if _, err := labellist.Open(ctx, segtest.Opener(other, "seg"), index.Meta{Version: 1}, index.OpenOptions{State: kept}); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("the state of another segment: %v", err)
	}
}
