package lance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

var ctx = context.Background()

// openDataset opens the latest version of a test dataset.
func openDataset(t *testing.T, name string) *Table {
	t.Helper()
	store, err := object.OpenLocal(filepath.Join(testutil.Root(t), "testdata", "lance"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := Open("lake", store, Options{})
	t.Cleanup(func() {
		if err := errors.Join(c.opts.Segments.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	})
	table, err := c.Table(ctx, name, source.AsOf{})
	if err != nil {
		t.Fatal(err)
	}
	return table.(*Table)
}

// opener gives plans the one table of a test.
type opener struct{ table *Table }

func (o opener) OpenTable(context.Context, exec.TableRef) (exec.Table, error) { return o.table, nil }

func envOf(t *Table) *exec.Env { return exec.Env{Tables: opener{t}, Workers: 2}.WithDefaults() }

func stringsOf(values ...string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewArray()
}

// TestLookupsEqualScans asks each label index, with what it does not cover read, and reads the whole column: through appends, deletes, updates,
// compaction, several segments and stable row ids.
func TestLookupsEqualScans(t *testing.T) {
	needles := [][]string{{"ai"}, {"comedy"}, {"ai", "comedy"}, {"database", "ai"}, {"no such label"}, {"no such label", "it's"}}
	ops := map[string]index.Op{"array_has": index.OpHas, "array_has_any": index.OpHasAny, "array_has_all": index.OpHasAll}
	for _, name := range []string{
		"labels_v21", "labels_v21_churn", "labels_v20_churn", "labels_v22_optimized", "labels_stable", "labels_stable_churn", "labels_stable_optimized", "vec_segments", "vec_ivf_flat_l2",
	} {
		t.Run(name, func(t *testing.T) {
			table := openDataset(t, name)
			some, err := table.LiveRows(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			half := rowset.NewSet()
			for k := range some.All() {
				if k%3 != 0 {
					half.Add(k)
				}
			}
			matched := 0
			for fn, op := range ops {
				for _, values := range needles {
					if op == index.OpHas && len(values) != 1 {
						continue
					}
					for _, among := range []*rowset.Set{nil, half} {
						matched += compareWithScan(t, table, fn, op, values, among)
					}
				}
			}
			if matched == 0 {
				t.Error("no row matched anything")
			}
		})
	}
}

func compareWithScan(t *testing.T, table *Table, fn string, op index.Op, values []string, among *rowset.Set) int {
	t.Helper()
	chosen, err := table.FilterIndex(ctx, "labels", op)
	if err != nil || !chosen.OK {
		t.Fatalf("no index answers %s: %v", fn, err)
	}
	info, match := chosen.Info, chosen.Match
	labels, _ := table.Schema().FieldsByName("labels")
	needle := stringsOf(values...)
	arg := &expr.Literal{Value: scalar.NewListScalar(needle)}
	if op == index.OpHas {
		arg = &expr.Literal{Value: scalar.NewStringScalar(values[0])}
	}
	cond, err := expr.NewCall(fn, &expr.Column{ID: 0, Name: "labels", T: labels[0].Type}, arg)
	if err != nil {
		t.Fatal(err)
	}
	env := envOf(table)
	scan := &exec.CandidateScan{Table: table.Ref(), Columns: []string{"labels"}, Expr: cond}
	want, err := scan.Candidates(ctx, env, among)
	if err != nil {
		t.Fatal(err)
	}
	lookup := &exec.IndexLookup{Table: table.Ref(), Column: "labels", Index: info.Name, Match: match, Predicate: index.Predicate{Op: op, Values: needle}, Recheck: scan, Fresh: true}
	got, err := lookup.Candidates(ctx, env, among)
	if err != nil {
		t.Fatal(err)
	}
	if !rowset.Equal(got.True, want.True) || match != index.TrueOnly && !rowset.Equal(got.Null, want.Null) {
		t.Errorf("%s %v: the index finds %d and %d NULL, the scan %d and %d", fn, values, got.True.Count(), got.Null.Count(), want.True.Count(), want.Null.Count())
	}
	return int(want.True.Count())
}

// distances returns all live rows with a distance, nearest first.
func distances(t *testing.T, table *Table, metric index.Metric, query []float32) []exec.SearchHit {
	t.Helper()
	live, err := table.LiveRows(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []rowset.RowAddr
	for k := range live.All() {
		addrs = append(addrs, rowset.RowAddr(k))
	}
	ds, err := table.Distances(ctx, exec.SearchRequest{Column: "v", Metric: metric, Query: query}, addrs)
	if err != nil {
		t.Fatal(err)
	}
	var out []exec.SearchHit
	for i, d := range ds {
		if !math.IsNaN(float64(d)) {
			out = append(out, exec.SearchHit{Addr: addrs[i], Distance: d})
		}
	}
	sortHits(out)
	return out
}

func sortHits(hits []exec.SearchHit) {
	slices.SortFunc(hits, func(a, b exec.SearchHit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Addr, b.Addr))
	})
}

// search runs all tasks of a request and merges what they find..
func search(t *testing.T, table *Table, req exec.SearchRequest) []exec.SearchHit {
	t.Helper()
	tasks, err := table.SearchTasks(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	var all []exec.SearchHit
	for _, task := range tasks {
		hits, _, _, err := task.Run(ctx)
		if err != nil {
			t.Fatalf("%s: %v", task.Describe(), err)
		}
		if len(hits) > req.K {
			t.Errorf("%s gives %d hits for %d", task.Describe(), len(hits), req.K)
		}
		all = append(all, hits...)
	}
	sortHits(all)
	return all[:min(req.K, len(all))]
}

func testQuery(dim int) []float32 {
	q := make([]float32, dim)
	for i := range q {
		q[i] = float32(i%5) - 1.5
	}
	return q
}

func sameHits(t *testing.T, what string, got, want []exec.SearchHit) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d hits, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i].Addr != want[i].Addr || math.Abs(float64(got[i].Distance-want[i].Distance)) > 1e-3 {
			t.Fatalf("%s: hit %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestSearchesEqualScans: an IVF index without quantization whose lists are all probed, and the exact search, give the rows that comparing one by one gives: with
// several segments, uncovered fragments and deleted rows.
func TestSearchesEqualScans(t *testing.T) {
	for _, name := range []string{"vec_segments", "vec_ivf_flat_l2"} {
		t.Run(name, func(t *testing.T) {
			table := openDataset(t, name)
			query := testQuery(16)
			all := distances(t, table, index.MetricL2, query)
			even := rowset.NewSet()
			var onlyEven []exec.SearchHit
			for _, h := range all {
				if h.Addr%2 == 0 {
					even.Add(uint64(h.Addr))
					onlyEven = append(onlyEven, h)
				}
			}
			for _, idx := range []string{"", "v_idx"} {
				for _, k := range []int{1, 10, 300, len(all), len(all) + 50} {
					req := exec.SearchRequest{Column: "v", Metric: index.MetricL2, Query: query, K: k, Index: idx, MinProbes: 1 << 20}
					sameHits(t, fmt.Sprintf("index %q, k %d", idx, k), search(t, table, req), all[:min(k, len(all))])
					req.Among = even
					sameHits(t, fmt.Sprintf("index %q, k %d, even rows", idx, k), search(t, table, req), onlyEven[:min(k, len(onlyEven))])
					req.Among = rowset.NewSet()
					sameHits(t, "no candidate", search(t, table, req), nil)
				}
			}
		})
	}
}

func TestTasksCoverEveryFragmentOnce(t *testing.T) {
	table := openDataset(t, "vec_segments")
	tasks, err := table.SearchTasks(ctx, exec.SearchRequest{Column: "v", Metric: index.MetricL2, Query: testQuery(16), K: 5, Index: "v_idx"})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[uint32]int)
	segments := 0
	for _, task := range tasks {
		switch task := task.(type) {
		case *segmentTask:
			segments++
			for _, f := range task.covers.ToArray() {
				seen[f]++
			}
		case *fragmentTask:
			seen[task.fragment]++
		}
	}
	if segments != 2 || len(seen) != len(table.FragmentIDs()) {
		t.Errorf("%d segments, %d of %d fragments", segments, len(seen), len(table.FragmentIDs()))
	}
	for f, n := range seen {
		if n != 1 {
			t.Errorf("fragment %d is searched %d times", f, n)
		}
	}
}

// fakeSegment answers with given entries.
type fakeSegment struct {
	meta      index.Meta
	entries   []index.Hit
	quantized bool
	asked     []int
}

func (f *fakeSegment) Meta() index.Meta { return f.meta }
func (f *fakeSegment) Close() error     { return nil }
func (f *fakeSegment) Quantized() bool  { return f.quantized }
func (f *fakeSegment) Nearest(_ context.Context, q index.NearestQuery) ([]index.Hit, error) {
	f.asked = append(f.asked, q.K)
	var out []index.Hit
	for _, e := range f.entries {
		if q.Among == nil || q.Among.Contains(e.Key) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(q.K, len(out))], nil
}

// TestStaleSegments: a merged segment still has entries of rows as they were, some of them many times and nearer than anything.
func TestStaleSegments(t *testing.T) {
	for _, quantized := range []bool{false, true} {
		t.Run(fmt.Sprintf("quantized %v", quantized), func(t *testing.T) {
			table := openDataset(t, "vec_ivf_flat_l2")
			query := testQuery(16)
			all := distances(t, table, index.MetricL2, query)
			info := table.IndexSegments("v_idx")[0]
			fake := &fakeSegment{meta: index.Meta{UUID: info.UUID, Covers: info.Covers, Stale: true}, quantized: quantized}
			for i, h := range all {
				if !info.Covers.Contains(h.Addr.Fragment()) {
					continue
				}
				fake.entries = append(fake.entries, index.Hit{Key: uint64(h.Addr), Distance: h.Distance})
				if i%7 == 0 {
					for range 3 {
						fake.entries = append(fake.entries, index.Hit{Key: uint64(h.Addr), Distance: 0.001})
					}
				}
			}
			if _, err := table.catalog.opts.Segments.get(info.UUID, func() (index.Segment, error) { return fake, nil }); err != nil {
				t.Fatal(err)
			}
			for _, k := range []int{1, 10, 200, len(all) + 10} {
				got := search(t, table, exec.SearchRequest{Column: "v", Metric: index.MetricL2, Query: query, K: k, Index: "v_idx"})
				seen := make(map[rowset.RowAddr]bool)
				for _, h := range got {
					if seen[h.Addr] {
						t.Fatalf("k %d: row %s came twice", k, h.Addr)
					}
					seen[h.Addr] = true
				}
				if quantized { // distances say little then, but each one shown is the row's own
					if len(got) != min(k, len(all)) {
						t.Errorf("k %d: %d hits", k, len(got))
					}
					continue
				}
				sameHits(t, fmt.Sprint("k ", k), got, all[:min(k, len(all))])
			}
			if len(fake.asked) <= 4 {
				t.Errorf("asked %v times: it never asked for more", fake.asked)
			}
		})
	}
}

func TestSegmentCacheEvictsTheOldest(t *testing.T) {
	c := NewSegmentCache(2)
	opened := make(map[string]int)
	get := func(uuid string) index.Segment {
		t.Helper()
		s, err := c.get(uuid, func() (index.Segment, error) {
			opened[uuid]++
			return &fakeSegment{meta: index.Meta{UUID: uuid}}, nil
		})
		if err != nil || s.Meta().UUID != uuid {
			t.Fatalf("%s: %v %v", uuid, s, err)
		}
		return s
	}
	first := get("a")
	get("b")
	if get("a") != first {
		t.Error("a was opened again")
	}
	get("c") // b goes: a was used after it
	get("a")
	get("b")
	if fmt.Sprint(opened) != "map[a:1 b:2 c:1]" {
		t.Errorf("opened %v", opened)
	}
	_, err := c.get("bad", func() (index.Segment, error) { return nil, errs.ErrIO })
	if !errors.Is(err, errs.ErrIO) {
		t.Errorf("a failure gave %v", err)
	}
	if get("bad"); opened["bad"] != 1 {
		t.Error("a failure that may pass was kept")
	}
	if err := c.Close(); err != nil || c.order.Len() != 0 {
		t.Errorf("close: %v, %d left", err, c.order.Len())
	}
}

func TestSegmentCacheKeepsLastingFailuresForAWhile(t *testing.T) {
	c := NewSegmentCache(2)
	now := time.Unix(0, 0)
	c.now = func() time.Time { return now }
	tries := 0
	broken := func() (index.Segment, error) { tries++; return nil, errs.ErrCorrupt }
	for range 3 {
		if _, err := c.get("bad", broken); !errors.Is(err, errs.ErrCorrupt) || tries != 1 {
			t.Fatalf("%v after %d tries", err, tries)
		}
	}
	now = now.Add(faultPatience)
	if _, err := c.get("bad", broken); !errors.Is(err, errs.ErrCorrupt) || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
	now = now.Add(faultPatience)
	if _, err := c.get("bad", func() (index.Segment, error) { return &fakeSegment{}, nil }); err != nil {
		t.Errorf("a segment that was mended: %v", err)
	}
	c.fail("bad", errs.ErrGone)
	if _, err := c.get("bad", broken); !errors.Is(err, errs.ErrGone) || tries != 2 {
		t.Errorf("an open segment that broke: %v after %d tries", err, tries)
	}
	for _, uuid := range []string{"a", "b"} { // failures give way like segments
		if _, err := c.get(uuid, func() (index.Segment, error) { return &fakeSegment{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.byUUID) != 2 || c.byUUID["bad"] != nil {
		t.Errorf("%d entries", len(c.byUUID))
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestSegmentCacheOpensOnceForManyAtATime(t *testing.T) {
	c := NewSegmentCache(0)
	var opened int
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			if _, err := c.get("a", func() (index.Segment, error) { opened++; return &fakeSegment{}, nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
}

func TestNamesThatAreNoTables(t *testing.T) {
	c := openDataset(t, "labels_v21").catalog
	for _, name := range []string{"", ".", "..", "../lance/labels_v21", "a/b", `a\b`, ".hidden", "nothing"} {
		if _, err := c.Table(ctx, name, source.AsOf{}); !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("%q gave %v", name, err)
		}
	}
	if !c.Knows("labels_v21") || c.Knows("LABELS_V21") || c.Knows("nothing") {
		t.Error("Knows")
	}
	names, err := c.TableNames(ctx)
	if err != nil || !slices.Contains(names, "labels_v21") || slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, ".") }) || !slices.IsSorted(names) {
		t.Errorf("%v %v", names, err)
	}
}
