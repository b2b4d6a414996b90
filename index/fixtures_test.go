package index_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/rowset"
)

var ctx = context.Background()

// labelDatasets have filters with answers of the reference engine.
var labelDatasets = []string{
	"labels_v20", "labels_v20_churn", "labels_v20_optimized", "labels_v21", "labels_v21_churn", "labels_v21_optimized",
	"labels_v22", "labels_v22_churn", "labels_v22_optimized", "labels_stable", "labels_stable_churn", "labels_stable_optimized",
	"vec_segments",
}

func TestIndicesOfTheReferenceEngineGiveItsAnswers(t *testing.T) {
	for _, name := range labelDatasets {
		t.Run(name, func(t *testing.T) {
			path := testutil.Lance(t, name)
			d := segtest.OpenDataset(t, path)
			byIndex := 0
			for _, q := range testutil.LoadExpected(t, path).Queries {
				if q.Where == "" || q.Vector != nil {
					continue
				}
				var want []string
				if err := json.Unmarshal(q.Result, &want); err != nil {
					t.Fatal(err)
				}
				w := segtest.ParseWhere(t, q.Where)
				got := d.Lookup(t, w, &byIndex)
				if w.Op == "has_all" && len(w.Needles) == 0 { // the engine's quirk: it returns NULL lists too
					got.True = rowset.Or(got.True, got.Null)
				}
				slices.SortFunc(want, func(a, b string) int {
					x, _ := strconv.Atoi(a)
					y, _ := strconv.Atoi(b)
					return x - y
				})
				if ids := d.IDs(got.True); !slices.Equal(ids, want) {
					t.Errorf("%s: got %d rows, want %d:\n%v\n%v", q.Where, len(ids), len(want), ids, want)
				}
			}
			if len(d.Segments) > 0 && byIndex == 0 {
				t.Error("no index was asked")
			}
		})
	}
}

// TestRandomFiltersAnswerByIndexAsByScan compares TRUE rows (the filter) and NULL rows (the value) of random trees.
func TestRandomFiltersAnswerByIndexAsByScan(t *testing.T) {
	for _, name := range []string{
		"labels_stable", "labels_stable_churn", "labels_stable_optimized", "labels_v22_churn", "labels_v20_optimized", "vec_ivf_flat_l2",
	} {
		t.Run(name, func(t *testing.T) {
			d := segtest.OpenDataset(t, testutil.Lance(t, name))
			if len(d.Segments) == 0 {
				t.Fatal("the dataset has no filter index")
			}
			leaves := d.Leaves()
			asked := 0
			rapid.Check(t, func(t *rapid.T) {
				text := segtest.DrawWhere(t, leaves, 4)
				w := segtest.ParseWhere(t, text)
				got, want := d.Lookup(t, w, &asked), d.Scan(t, w, d.Live)
				if !rowset.Equal(got.True, want.True) {
					t.Fatalf("%s: TRUE %v, by scan %v", text, d.IDs(got.True), d.IDs(want.True))
				}
				if !rowset.Equal(got.Null, want.Null) {
					t.Fatalf("%s: NULL %v, by scan %v", text, d.IDs(got.Null), d.IDs(want.Null))
				}
			})
			if asked == 0 {
				t.Fatal("no index was asked")
			}
		})
	}
}

func TestUnknownKindsAreNamed(t *testing.T) {
	for url, want := range map[string]index.Kind{
		"/lance.table.LabelListIndexDetails": index.KindLabelList, "/lance.table.BITMAPINDEXDETAILS": index.KindBitmap,
		"type.googleapis.com/lance.table.BTreeIndexDetails": index.KindBTree, "/lance.index.pb.VectorIndexDetails": "",
	} {
		if got, ok := filter.KindOf(url); got != want || ok != (want != "") {
			t.Errorf("%s: %q", url, got)
		}
	}
	_, err := filter.Open(ctx, nil, index.Meta{Name: "z", Kind: index.KindZoneMap}, index.OpenOptions{})
	if err == nil || err.Error() != "index z: kind ZONEMAP is not read" {
		t.Errorf("got %v", err)
	}
}

func TestSegmentsThatMayHoldEntriesFromBeforeAnUpdate(t *testing.T) {
	// In the optimized dataset the engine merged updated rows into the segment; in the others the first build is still there, or
	// the rows have no stable ids.
	for name, want := range map[string]int{"labels_stable": 0, "labels_stable_churn": 0, "labels_stable_optimized": 1, "labels_v22_optimized": 0} {
		d := segtest.OpenDataset(t, testutil.Lance(t, name))
		if d.Stale != want {
			t.Errorf("%s: %d segments may be stale, want %d", name, d.Stale, want)
		}
		for _, s := range d.Segments["labels"] {
			match, ok := s.Answers(index.OpHasAll)
			if !ok || (match == index.AtMost) != (want > 0) {
				t.Errorf("%s: match %d, %t", name, match, ok)
			}
			if _, ok := index.Answers(s, index.OpIsNotNull); ok != (want == 0) {
				t.Errorf("%s: IS NOT NULL is answered: %t", name, ok)
			}
		}
	}
}
