package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/test/lakes"
)

// folder is where datasets of the reference engine lie, with what it read from them beside.
type folder struct {
	path string
	lake *lakes.Lake
}

func openFolder(t *testing.T, path string) folder {
	t.Helper()
	return folder{path, lakes.Open(t, path, engine.Config{})}
}

func testdata(t *testing.T) folder {
	t.Helper()
	return openFolder(t, filepath.Join(testutil.Root(t), "testdata", "lance"))
}

// names lists the datasets that begin with one of the prefixes.
func (f folder) names(t *testing.T, prefixes ...string) []string {
	t.Helper()
	entries, err := os.ReadDir(f.path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".lance")
		if ok && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no datasets %v in %s", prefixes, f.path)
	}
	return out
}

func (f folder) expected(t *testing.T, name string) *testutil.Expected {
	t.Helper()
	return testutil.LoadExpected(t, filepath.Join(f.path, name+".lance"))
}

func (f folder) ask(t *testing.T, text string) []string {
	t.Helper()
	got, vectorized, err := lakes.AskSession(context.Background(), f.lake.Session, text)
	if err != nil {
		t.Errorf("%.300s: %v", text, err)
	}
	if err == nil && !vectorized && !strings.HasPrefix(text, "SET") {
		t.Errorf("%.300s runs row by row", text)
	}
	return got
}

func TestFiltersOfTheReferenceEngine(t *testing.T) { checkFilters(t, testdata(t)) }

// checkFilters runs its filters by index, without, and as a value.
func checkFilters(t *testing.T, f folder) {
	ran := 0
	for _, name := range f.names(t, "labels_", "vec_") {
		for _, q := range f.expected(t, name).Queries {
			if q.Where == "" || len(q.Vector) > 0 {
				continue
			}
			var want []string
			if err := json.Unmarshal(q.Result, &want); err != nil {
				t.Fatal(name, err)
			}
			if q.Where == "array_has_all(labels,[])" { // TRUE there for a NULL list, NULL by three-valued logic
				without := f.ask(t, fmt.Sprintf("SELECT id FROM %s WHERE labels IS NULL", name))
				want = slices.DeleteFunc(want, func(id string) bool { return slices.Contains(without, id) })
			}
			slices.Sort(want)
			check := func(how string, got []string) {
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s WHERE %s %s: %d rows, want %d", name, q.Where, how, len(got), len(want))
				}
			}
			for _, prefilter := range []string{"auto", "index", "scan", "brute_force"} {
				f.ask(t, "SET prefilter = '"+prefilter+"'")
				check("prefilter "+prefilter, f.ask(t, fmt.Sprintf("SELECT id FROM %s WHERE %s", name, q.Where)))
				check("negated twice, prefilter "+prefilter, f.ask(t, fmt.Sprintf("SELECT id FROM %s WHERE NOT (NOT (%s))", name, q.Where)))
			}
			f.ask(t, "SET prefilter = 'auto'")
			var byValue []string
			for _, line := range f.ask(t, fmt.Sprintf("SELECT id, %s AS x FROM %s", q.Where, name)) {
				if id, isTrue := strings.CutSuffix(line, "\t1"); isTrue {
					byValue = append(byValue, id)
				}
			}
			check("as a value", byValue)
			ran++
		}
	}
	if ran < 100 {
		t.Errorf("ran %d filters only", ran)
	}
}

func TestSearchesOfTheReferenceEngine(t *testing.T) { checkSearches(t, testdata(t)) }

type hit struct {
	ID       string  `json:"id"`
	Distance float64 `json:"_distance"`
}

// checkSearches compares exact searches hit by hit, and searches by index that probe every list: IVF_FLAT gives the exact answer, quantized ones with
// refinement nine of ten hits.
func checkSearches(t *testing.T, f folder) {
	ran := 0
	for _, name := range f.names(t, "vec_") {
		for i, q := range f.expected(t, name).Queries {
			if len(q.Vector) == 0 {
				continue
			}
			var want []hit
			if err := json.Unmarshal(q.Result, &want); err != nil {
				t.Fatal(name, err)
			}
			what := fmt.Sprintf("%s query %d", name, i)
			text := searchText(t, name, q)
			if !q.Exact { // by its index, whose choice of rows is its own
				f.ask(t, "SET ann = 'force'")
				if got := f.ask(t, text); len(got) < len(want) {
					t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
				}
				f.ask(t, "SET ann = DEFAULT")
				continue
			}
			ran++
			for _, setting := range []string{"ann = 'off', glm = 'off'", "ann = 'off', glm = 'on', prefilter = 'scan'", "ann = 'auto', prefilter = 'brute_force'"} {
				f.ask(t, "SET "+setting)
				sameHits(t, what+", "+setting, f.ask(t, text), want)
			}
			f.ask(t, "SET ann = 'force', glm = 'auto', prefilter = 'auto', nprobes = 10000, refine_factor = 10")
			got := f.ask(t, text)
			if strings.Contains(name, "ivf_flat") || name == "vec_segments" {
				sameHits(t, what+" by index", got, want)
			} else if r := recall(got, want); r < recallFloor(name) {
				t.Errorf("%s by index: recall %.2f", what, r)
			}
			f.ask(t, "SET nprobes = DEFAULT, refine_factor = DEFAULT, ann = DEFAULT")
		}
	}
	if ran < 10 {
		t.Errorf("ran %d searches only", ran)
	}
}

// recallFloor is what refinement of ten times k must reach: codes of one bit a dimension tell less than the others.
func recallFloor(dataset string) float64 {
	if strings.Contains(dataset, "ivf_rq_") {
		return 0.7
	}
	return 0.9
}

func searchText(t *testing.T, table string, q testutil.ExpectedQuery) string {
	t.Helper()
	vector, err := json.Marshal(q.Vector)
	if err != nil {
		t.Fatal(err)
	}
	column, where := "v", ""
	if q.Column != "" {
		column = q.Column
	}
	if q.Where != "" {
		where = " WHERE " + q.Where
	}
	distance := map[string]string{"": "l2sq_distance", "l2": "l2sq_distance", "cosine": "cosine_distance", "dot": "dot_distance"}[q.Metric]
	return fmt.Sprintf("SELECT id, %s(%s, %s) AS d FROM %s%s ORDER BY d LIMIT %d", distance, column, vector, table, where, q.K)
}

// sameHits wants the same ids in the same order, but for hits of one distance, and distances within 1e-4.
func sameHits(t *testing.T, what string, got []string, want []hit) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d hits, want %d", what, len(got), len(want))
		return
	}
	for k := range got {
		id, text, _ := strings.Cut(got[k], "\t")
		distance, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(distance-want[k].Distance) > 1e-4*max(1, math.Abs(want[k].Distance)) {
			t.Errorf("%s: hit %d is %q, want %+v", what, k, got[k], want[k])
			return
		}
		if id != want[k].ID && !tied(want, k) {
			t.Errorf("%s: hit %d is %q, want %+v", what, k, got[k], want[k])
			return
		}
	}
}

// tied says that hit k has the distance of a neighbour, or is the last, which may tie with one that was cut off.
func tied(hits []hit, k int) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a)) }
	return k == len(hits)-1 || k > 0 && near(hits[k-1].Distance, hits[k].Distance) || near(hits[k].Distance, hits[k+1].Distance)
}

func recall(got []string, want []hit) float64 {
	found := 0
	for _, h := range want {
		if slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, h.ID+"\t") }) {
			found++
		}
	}
	return float64(found) / float64(max(1, len(want)))
}

func TestRowsOfTheReferenceEngine(t *testing.T) {
	checkRows(t, testdata(t), "scalars_", "labels_", "history")
}

// checkRows compares SELECT * with the rows that the reference engine read.
func checkRows(t *testing.T, f folder, prefixes ...string) {
	ran := 0
	for _, name := range f.names(t, prefixes...) {
		want := f.expected(t, name).Rows
		if want == nil && !strings.HasSuffix(name, "_0") {
			continue // the dataset has answers to queries alone
		}
		got, err := lakes.Rows(context.Background(), f.lake.Session, "SELECT * FROM "+name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		compareByID(t, name, got, want)
		ran++
	}
	if ran == 0 {
		t.Error("no rows compared")
	}
}

func compareByID(t *testing.T, what string, got, want []map[string]any) {
	t.Helper()
	byID := func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a["id"]), fmt.Sprint(b["id"])) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	testutil.CompareRows(t, what, got, want)
}

func TestVersionsAndTags(t *testing.T) { checkHistory(t, testdata(t)) }

// checkHistory reads each version by number, and each tag.
func checkHistory(t *testing.T, f folder) {
	var versions map[string]json.RawMessage
	testutil.LoadJSON(t, filepath.Join(f.path, "history.versions.json"), &versions)
	ran := 0
	for key, raw := range versions {
		var want []map[string]any
		unmarshalRows(t, raw, &want)
		got, err := lakes.Rows(context.Background(), f.lake.Session, fmt.Sprintf("SELECT * FROM history AS OF %s", key))
		if err != nil {
			t.Errorf("version %s: %v", key, err)
			continue
		}
		compareByID(t, "version "+key, got, want)
		ran++
	}
	if ran < 7 {
		t.Errorf("%d versions only", ran)
	}
	tags, err := filepath.Glob(filepath.Join(f.path, "history.lance", "_refs", "tags", "*.json"))
	if err != nil || len(tags) == 0 {
		t.Fatal("no tags: ", err)
	}
	for _, path := range tags {
		var tag struct{ Version uint64 }
		testutil.LoadJSON(t, path, &tag)
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		var want []map[string]any
		unmarshalRows(t, versions[strconv.FormatUint(tag.Version, 10)], &want)
		got, err := lakes.Rows(context.Background(), f.lake.Session, fmt.Sprintf("SELECT * FROM history AS OF '%s'", name))
		if err != nil {
			t.Errorf("tag %s: %v", name, err)
			continue
		}
		compareByID(t, "tag "+name, got, want)
	}
}

func unmarshalRows(t *testing.T, raw json.RawMessage, into *[]map[string]any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatal(err)
	}
}
