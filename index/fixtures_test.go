package index_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
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

func TestSegmentsOfAnOldEngine(t *testing.T) {
	path := filepath.Join("testdata", "core1.lance")
	d := segtest.OpenDataset(t, path)
	labels := d.Segments["labels"]
	if len(labels) != 1 {
		t.Fatalf("%d label segments", len(labels))
	}
	if match, ok := labels[0].Answers(index.OpHas); !ok || match != index.TrueOnly {
		t.Errorf("labels: match %d, %t", match, ok)
	}
	if _, ok := index.Answers(labels[0], index.OpIsNull); ok {
		t.Error("labels: IS NULL is answered without the NULL lists")
	}
	asked := 0
	queries := testutil.LoadExpected(t, path).Queries
	for _, q := range queries {
		var want []string
		if err := json.Unmarshal(q.Result, &want); err != nil {
			t.Fatal(err)
		}
		w := segtest.ParseWhere(t, q.Where)
		if got := d.IDs(d.Lookup(t, w, &asked).True); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", q.Where, got, want)
		}
	}
	if asked != len(queries) {
		t.Errorf("%d of %d questions went to an index", asked, len(queries))
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
	_, err := filter.Open(ctx, nil, index.Meta{Name: "z", Kind: "FTS"}, index.OpenOptions{})
	if err == nil || err.Error() != "index z: kind FTS is not read" {
		t.Errorf("got %v", err)
	}
}

func TestSegmentsThatMayHoldEntriesFromBeforeAnUpdate(t *testing.T) {
	for _, name := range []string{"labels_stable", "labels_stable_churn", "labels_stable_optimized", "labels_v22_optimized"} {
		if d := segtest.OpenDataset(t, testutil.Lance(t, name)); d.Stale != 0 {
			t.Errorf("%s: %d segments may be stale, though no update came before one was made", name, d.Stale)
		}
	}
	ask := func(name string, change func(info *storage.IndexInfo)) bool {
		snap := segtest.OpenDataset(t, testutil.Lance(t, name)).Snapshot
		info := snap.Indices()[0]
		change(&info)
		stale, err := filter.MayBeStale(ctx, snap, info)
		if err != nil {
			t.Fatal(err)
		}
		return stale
	}
	// A segment that came by merging looks like the first one, except that it is another.
	merged := func(info *storage.IndexInfo) { info.UUID = "a merged segment" }
	if !ask("labels_stable_churn", merged) {
		t.Error("an update lies between the build and the merge")
	}
	if ask("labels_v22_churn", merged) {
		t.Error("rows without stable ids are never stale")
	}
	if !ask("labels_stable", func(info *storage.IndexInfo) { info.UUID, info.DatasetVersion = "another", 1000 }) {
		t.Error("versions that are gone clear a segment")
	}
}

func TestStaleSegmentsAskForARecheck(t *testing.T) {
	snap := segtest.OpenDataset(t, testutil.Lance(t, "vec_ivf_flat_l2")).Snapshot
	asked := 0
	for _, info := range snap.Indices() {
		kind, ok := filter.KindOf(info.TypeURL)
		if !ok {
			continue
		}
		open := func(ctx context.Context, name string) (object.File, error) {
			return snap.OpenIndexFile(ctx, info, name)
		}
		s, err := filter.Open(ctx, open, index.Meta{Name: info.Name, Kind: kind, Version: info.Version, Stale: true}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		match, ok := s.Answers(index.OpIsNull)
		if _, found, err := s.Lookup(ctx, index.Predicate{Op: index.OpIsNull}); err != nil || !ok || match != index.AtMost || found != index.AtMost {
			t.Errorf("%s: match %d, then %d, %v", info.Name, match, found, err)
		}
		if _, ok := index.Answers(s, index.OpIsNotNull); ok && kind == index.KindLabelList {
			t.Errorf("%s: IS NOT NULL does not follow from an IS NULL that may be too large", info.Name)
		}
		asked++
	}
	if asked != 4 {
		t.Errorf("%d segments were asked", asked)
	}
}
