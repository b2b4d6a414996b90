package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

func openDatasets(t *testing.T) *Engine {
	t.Helper()
	store, err := object.OpenLocal(filepath.Join(testutil.Root(t), "testdata", "lance"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{lance.Open("lake", store, lance.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// datasets lists the test datasets whose names begin with prefix.
func datasets(t *testing.T, prefix string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testutil.Root(t), "testdata", "lance", prefix+"*.lance"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no datasets: ", err)
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(filepath.Base(p), ".lance")
	}
	return names
}

// TestFiltersOfTheReferenceEngine runs its filters over its datasets, with and without the label index: through appends, deletes, updates and compaction.
func TestFiltersOfTheReferenceEngine(t *testing.T) {
	e := openDatasets(t)
	ran := 0
	for _, name := range datasets(t, "labels_") {
		expected := testutil.LoadExpected(t, testutil.Lance(t, name))
		for _, prefilter := range []string{"auto", "scan"} {
			s := newSession(t, e)
			run(t, s, "SET prefilter = "+prefilter)
			for _, q := range expected.Queries {
				var want []string
				if err := json.Unmarshal(q.Result, &want); err != nil {
					t.Fatal(err)
				}
				got, res := run(t, s, fmt.Sprintf("SELECT id FROM %s WHERE %s", name, q.Where))
				if q.Where == "array_has_all(labels,[])" { // there TRUE for a NULL list, here NULL as everywhere
					missing, _ := run(t, s, fmt.Sprintf("SELECT id FROM %s WHERE labels IS NULL", name))
					want = slices.DeleteFunc(want, func(id string) bool { return slices.Contains(missing, id) })
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s WHERE %s (prefilter %s): %d rows, want %d", name, q.Where, prefilter, len(got), len(want))
				}
				if !res.Vectorized {
					t.Errorf("%s WHERE %s runs row by row: %v", name, q.Where, res.Reason())
				}
				ran++
			}
		}
	}
	if ran < 100 {
		t.Errorf("ran %d filters only", ran)
	}
}

func TestTheLabelIndexIsUsed(t *testing.T) {
	s := newSession(t, openDatasets(t))
	for _, c := range []struct {
		where string
		index bool
	}{
		{"array_has(labels, 'ai')", true}, {"NOT array_has(labels, 'ai')", true}, {"array_has_any(labels, ['ai','comedy'])", true}, {"array_has(nums, 5)", true},
		{"'ai' MEMBER OF(labels)", true}, {"array_has(labels, NULL)", false}, {"array_has_all(labels, [])", false}, {"array_has(labels, name)", false},
	} {
		lines, _ := run(t, s, "EXPLAIN SELECT id FROM labels_v21 WHERE "+c.where)
		text := strings.Join(lines, "\n")
		if strings.Contains(text, "LABEL_LIST") != c.index {
			t.Errorf("%s: index %v expected\n%s", c.where, c.index, text)
		}
	}
	got, _ := run(t, s, "SELECT index_name, kind, column_name FROM lakesql.indices WHERE table_name = 'labels_v21' ORDER BY 3")
	if len(got) != 2 || !strings.HasSuffix(got[0], "LABEL_LIST\tlabels") {
		t.Errorf("lakesql.indices: %q", got)
	}
	if got, _ = run(t, s, "SHOW INDEX FROM labels_v21"); len(got) != 2 {
		t.Errorf("SHOW INDEX: %q", got)
	}
}

// TestSearchesOfTheReferenceEngine compares exact searches with its exact answers, and forced ones in length.
func TestSearchesOfTheReferenceEngine(t *testing.T) {
	e := openDatasets(t)
	ran := 0
	for _, name := range datasets(t, "vec_") {
		expected := testutil.LoadExpected(t, testutil.Lance(t, name))
		s := newSession(t, e)
		for i, q := range expected.Queries {
			if len(q.Vector) == 0 {
				continue
			}
			var want []struct {
				ID       string  `json:"id"`
				Distance float64 `json:"_distance"`
			}
			if err := json.Unmarshal(q.Result, &want); err != nil {
				continue
			}
			distance, ok := distanceOf(q)
			if !ok {
				continue
			}
			where := ""
			if q.Where != "" {
				where = " WHERE " + q.Where
			}
			text := fmt.Sprintf("SELECT id, %s AS d FROM %s%s ORDER BY d, id LIMIT %d", distance, name, where, q.K)
			if !q.Exact {
				run(t, s, "SET ann = 'force'")
				got, _ := run(t, s, text)
				if len(got) < len(want) {
					t.Errorf("%s query %d: %d rows, want %d", name, i, len(got), len(want))
				}
				continue
			}
			run(t, s, "SET ann = 'off'")
			got, res := run(t, s, text)
			if len(got) != len(want) || !res.Vectorized {
				t.Errorf("%s query %d: %d rows, want %d; vectorized %v", name, i, len(got), len(want), res.Vectorized)
				continue
			}
			for k := range got {
				_, d, _ := strings.Cut(got[k], "\t")
				v, err := strconv.ParseFloat(d, 64)
				if err != nil || math.Abs(v-want[k].Distance) > 1e-3*max(1, math.Abs(want[k].Distance)) {
					t.Errorf("%s query %d hit %d: %s, want %+v", name, i, k, got[k], want[k])
					break
				}
			}
			ran++
		}
	}
	if ran < 10 {
		t.Errorf("ran %d exact searches only", ran)
	}
}

func distanceOf(q testutil.ExpectedQuery) (string, bool) {
	v, err := json.Marshal(q.Vector)
	if err != nil {
		return "", false
	}
	column := q.Column
	if column == "" {
		column = "v"
	}
	name := map[string]string{"l2": "l2sq_distance", "": "l2sq_distance", "cosine": "cosine_distance", "dot": "dot_distance"}[q.Metric]
	return fmt.Sprintf("%s(%s, %s)", name, column, v), name != ""
}

func TestVersionsAndTags(t *testing.T) {
	s := newSession(t, openDatasets(t))
	var versions map[string]json.RawMessage
	testutil.LoadJSON(t, filepath.Join(testutil.Root(t), "testdata", "lance", "history.versions.json"), &versions)
	ran := 0
	for v, raw := range versions {
		var rows []map[string]any
		if err := json.Unmarshal(raw, &rows); err != nil {
			continue
		}
		got, _ := run(t, s, fmt.Sprintf("SELECT COUNT(*) FROM history AS OF %s", v))
		if got[0] != strconv.Itoa(len(rows)) {
			t.Errorf("version %s: %s rows, want %d", v, got[0], len(rows))
		}
		ran++
	}
	if ran == 0 {
		t.Errorf("no versions in %d entries", len(versions))
	}
}
