//go:build interop

package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/test/churn"
)

// TestChurnedTable: after a hundred random steps by SQL, each compared with a model, the engine's plans name our indices, and its answers by them and by scan are the model's.
func TestChurnedTable(t *testing.T) { churned(t, 100, 1) }

// churned runs steps with row addresses and with stable row ids, and lets the engine look at what is left.
func churned(t *testing.T, steps int, seed int64) {
	t.Helper()
	t.Run("engines", func(t *testing.T) {
		engines := StartPythons(t)
		for i, name := range []string{"pylance", "newer pylance"} {
			for _, stable := range []bool{i == 0, i == 1} {
				if stable != (i == 1) && steps < 1000 {
					continue // both ways with both engines where there is time
				}
				t.Run(fmt.Sprintf("stable ids %t, %s", stable, name), func(t *testing.T) {
					t.Parallel()
					c := churn.Run(t, t.TempDir(), churn.Options{Seed: seed + int64(i), Steps: steps, Version: fileVersions[1-i], StableIDs: stable})
					t.Logf("%d answers compared, steps %v", c.Asked, c.Counts)
					c.Finish()
					sameAsChurned(t, engines[name].On(t), c)
				})
			}
		}
	})
}

// sameAsChurned compares the engine with the model.
func sameAsChurned(t *testing.T, eng *Engine, c *churn.Table) {
	t.Helper()
	predicates := append(churn.Labels(), churn.Others()...)
	var filters []string
	for _, p := range predicates {
		filters = append(filters, p.Text)
	}
	out := eng.newFile()
	var got engineCheck
	place := []float64{30.25, 20, 10}
	eng.Do("check", Request{"path": c.Path(), "filters": filters, "out": out, "nearest": []Request{{"column": "v", "q": place, "k": 10, "metric": "l2"}}}, &got)
	for i, p := range predicates {
		a, want := got.Answers[i], p.Holds(c.Rows())
		slices.Sort(a.Index)
		slices.Sort(a.Scan)
		if !slices.Equal(a.Index, want) || !slices.Equal(a.Scan, want) {
			t.Errorf("%s: the engine finds %d rows by index, %d by scan, want %d", p.Text, len(a.Index), len(a.Scan), len(want))
		}
		if p.Index != "" && !strings.Contains(a.Plan, p.Index) {
			t.Errorf("%s: the engine's plan does not name %s: %s", p.Text, p.Index, a.Plan)
		}
	}
	near := got.Answers[len(predicates)]
	if want := c.Distances(place, c.Nearest(place, 10)); !slices.Equal(c.Distances(place, near.Index), want) || !slices.Equal(c.Distances(place, near.Scan), want) {
		t.Errorf("the engine finds %v by index, %v by scan, want %v", near.Index, near.Scan, c.Nearest(place, 10))
	}
	if !strings.Contains(near.Plan, churn.VectorIndex) {
		t.Errorf("the engine's plan does not name %s: %s", churn.VectorIndex, near.Plan)
	}
	rows := tableRows(t, out)
	if len(rows) != len(c.Rows()) {
		t.Fatalf("the engine reads %d rows, want %d", len(rows), len(c.Rows()))
	}
	for _, row := range rows {
		c.Compare(idOf(row), row)
	}
	for name, i := range got.Indices {
		if i.Uncovered != 0 || i.Covered != int64(len(rows)) {
			t.Errorf("the engine says that %s covers %d rows, %d not", name, i.Covered, i.Uncovered)
		}
	}
	if len(got.Indices) != 5 {
		t.Errorf("the engine lists %v", got.Indices)
	}
}
