package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// throughText sends v through its JSON text, as it goes between processes.
func throughText[T any](t *testing.T, v *T) *T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func newLife(t *testing.T, seed int64, stable bool) *life {
	t.Helper()
	dir := t.TempDir()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l := &life{t: t, r: rand.New(rand.NewSource(seed)), path: filepath.Join(dir, "t.lance"), target: Target{Store: store, Dir: "t.lance"}, done: "created"}
	opts := CreateOptions{StableRowIDs: stable, Parts: []Batches{l.rows(150), l.rows(90)}, Rows: RowOptions{FragmentRows: 40}}
	if _, err := CreateTable(context.Background(), l.target, lifeColumns, opts); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPlansAreBuiltInPartsAndCommittedAsOne(t *testing.T) {
	ctx := context.Background()
	for _, merge := range []bool{false, true} {
		l := newLife(t, 5, merge)
		for _, spec := range lifeIndices {
			name := spec.withDefaults().Name
			plan, err := PlanIndex(ctx, openTable(t, l.target), spec, PlanIndexOptions{Tasks: 3})
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Tasks) != 3 || (spec.Kind == index.KindIVFFlat) != (len(plan.Centroids) == 4*3*lifeDim) {
				t.Fatalf("%s: %d tasks, %d bytes of centroids", name, len(plan.Tasks), len(plan.Centroids))
			}
			plan = throughText(t, plan)
			var results []*IndexTaskResult
			for _, i := range []int{2, 0, 1} {
				r, err := BuildTask(ctx, openTable(t, l.target), plan, i, IndexOptions{})
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, throughText(t, r))
			}
			// Rows that come meanwhile are not covered, and harm nothing.
			if _, err := Append(ctx, l.target, l.rows(20), AppendOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := CommitPlan(ctx, openTable(t, l.target), plan, results, CommitPlanOptions{Merge: merge}); err != nil {
				t.Fatal(err)
			}
			if got, want := len(group(l.latest(), name)), map[bool]int{false: 3, true: 1}[merge]; got != want {
				t.Fatalf("%s: %d segments, want %d", name, got, want)
			}
			l.done = fmt.Sprintf("planned %s, merge %t", name, merge)
			l.check()
		}
		folders, err := l.target.Store.List(ctx, object.Join("t.lance", manifest.IndicesDir))
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, f := range folders {
			files, err := l.target.Store.List(ctx, object.Join("t.lance", manifest.IndicesDir, f.Name))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) > 0 {
				left++
			}
		}
		if left != len(l.latest().Indices()) {
			t.Errorf("merge %t: files of %d segments, %d are named", merge, left, len(l.latest().Indices()))
		}
	}
}

func TestPlansExtendAndReplace(t *testing.T) {
	ctx := context.Background()
	l := newLife(t, 6, true)
	run := func(spec IndexSpec, opts PlanIndexOptions) *IndexPlan {
		t.Helper()
		plan, err := PlanIndex(ctx, openTable(t, l.target), spec, opts)
		if err != nil {
			t.Fatal(err)
		}
		var results []*IndexTaskResult
		for i := range plan.Tasks {
			r, err := BuildTask(ctx, openTable(t, l.target), plan, i, IndexOptions{})
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		if _, err := CommitPlan(ctx, openTable(t, l.target), plan, results, CommitPlanOptions{}); err != nil {
			t.Fatal(err)
		}
		l.check()
		return plan
	}
	vectors := lifeIndices[4]
	first := run(vectors, PlanIndexOptions{Tasks: 2})
	if _, err := Append(ctx, l.target, l.rows(100), AppendOptions{Rows: RowOptions{FragmentRows: 50}}); err != nil {
		t.Fatal(err)
	}
	more := run(vectors, PlanIndexOptions{Extend: true})
	if len(more.Tasks) != 2 || !slices.Equal(more.Centroids, first.Centroids) {
		t.Errorf("%d tasks extend, with the same centroids: %t", len(more.Tasks), slices.Equal(more.Centroids, first.Centroids))
	}
	if again := run(vectors, PlanIndexOptions{Extend: true}); len(again.Tasks) != 0 {
		t.Errorf("%d tasks where nothing is to do", len(again.Tasks))
	}
	if all := run(vectors, PlanIndexOptions{Replace: true, Tasks: 4}); len(all.Tasks) != 4 || len(all.Removes) != 4 || len(group(l.latest(), "v_idx")) != 4 {
		t.Errorf("%d tasks replace %d segments, %d are there", len(all.Tasks), len(all.Removes), len(group(l.latest(), "v_idx")))
	}
}

func TestWrongResultsAreRefused(t *testing.T) {
	ctx := context.Background()
	l := newLife(t, 7, false)
	table := openTable(t, l.target)
	plan, err := PlanIndex(ctx, table, lifeIndices[0], PlanIndexOptions{Tasks: 2})
	if err != nil {
		t.Fatal(err)
	}
	other, err := PlanIndex(ctx, table, lifeIndices[1], PlanIndexOptions{Tasks: 2})
	if err != nil {
		t.Fatal(err)
	}
	build := func(p *IndexPlan, i int) *IndexTaskResult {
		r, err := BuildTask(ctx, table, p, i, IndexOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b, c := build(plan, 0), build(plan, 1), build(other, 1)
	for what, results := range map[string][]*IndexTaskResult{"missing": {a}, "double": {a, b, b}, "of another plan": {a, c}} {
		if _, err := CommitPlan(ctx, table, plan, results, CommitPlanOptions{}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := BuildTask(ctx, table, plan, 2, IndexOptions{}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a task that is not there: %v", err)
	}
	newer := *plan
	newer.Format++
	if _, err := BuildTask(ctx, table, &newer, 0, IndexOptions{}); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("a newer plan: %v", err)
	}
	if _, err := PlanIndex(ctx, table, IndexSpec{Column: "tag", Kind: index.KindLabelList}, PlanIndexOptions{}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("labels of text: %v", err)
	}
	// Fragments that a compaction took away meanwhile are read again.
	if _, err := Compact(ctx, table, CompactOptions{TargetRows: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, err := CommitPlan(ctx, openTable(t, l.target), plan, []*IndexTaskResult{a, b}, CommitPlanOptions{}); err != nil {
		t.Fatalf("after a compaction: %v", err)
	}
	l.done += "a plan committed after a compaction"
	l.check()
	for _, f := range l.latest().Fragments() {
		if !slices.ContainsFunc(group(l.latest(), plan.Index.Name), func(i storage.IndexInfo) bool { return i.Covers.Contains(f.ID()) }) {
			t.Errorf("fragment %d is not covered", f.ID())
		}
	}
}
