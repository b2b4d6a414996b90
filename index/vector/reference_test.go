package vector

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// reference is a dataset of the real engine with the answers that it gave.
type reference struct {
	snap     *storage.Snapshot
	expected *testutil.Expected
	elem     vec.Elem
	ids      map[rowset.RowAddr]string
	labels   map[rowset.RowAddr][]string
	tenant   map[rowset.RowAddr]string
	segments []*Segment
	covered  *roaring.Bitmap
}

func openReference(t *testing.T, path string) *reference {
	t.Helper()
	ctx := context.Background()
	store, err := object.OpenLocal(path, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	table, err := storage.OpenTable(ctx, store, "", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{expected: testutil.LoadExpected(t, path), covered: roaring.New()}
	if r.snap, err = table.Latest(ctx); err != nil {
		t.Fatal(err)
	}
	field, ok := r.snap.Schema().Lookup("v")
	if !ok {
		t.Fatal("no column v")
	}
	if r.elem, _, err = ElemOf(field.Type); err != nil {
		t.Fatal(err)
	}
	r.readRows(t)
	for _, info := range r.snap.Indices() {
		if !IsDetails(info.TypeURL) {
			continue
		}
		kind, metric, known := KindOf(info.Details)
		open := func(ctx context.Context, name string) (object.File, error) {
			return r.snap.OpenIndexFile(ctx, info, name)
		}
		s, err := Open(ctx, open, index.Meta{Name: info.Name, UUID: info.UUID, Covers: info.Covers}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if known && (kind != s.Meta().Kind || metric != s.Meta().Metric) {
			t.Errorf("the details say %s over %s, the files %s over %s", kind, metric, s.Meta().Kind, s.Meta().Metric)
		}
		r.segments = append(r.segments, s)
		r.covered.Or(info.Covers)
	}
	return r
}

func (r *reference) readRows(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	r.ids, r.labels, r.tenant = map[rowset.RowAddr]string{}, map[rowset.RowAddr][]string{}, map[rowset.RowAddr]string{}
	scan, err := r.snap.Scan(ctx, storage.ScanOptions{Columns: []string{"id", "labels", "tenant"}, WithRowAddr: true})
	if err != nil {
		t.Fatal(err)
	}
	for reader := scan.Reader(); ; {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		lists := batch.Column(1).(*array.List)
		words := lists.ListValues().(*array.String)
		for i := range int(batch.NumRows()) {
			addr := rowset.RowAddr(batch.Column(3).(*array.Uint64).Value(i))
			r.ids[addr] = strconv.FormatInt(batch.Column(0).(*array.Int64).Value(i), 10)
			r.tenant[addr] = batch.Column(2).ValueStr(i)
			if lists.IsValid(i) {
				start, end := lists.ValueOffsets(i)
				for j := start; j < end; j++ {
					if words.IsValid(int(j)) {
						r.labels[addr] = append(r.labels[addr], words.Value(int(j)))
					}
				}
			}
		}
		batch.Release()
	}
}

// matching are the live rows of a filter of the datasets.
func (r *reference) matching(t *testing.T, where string) *rowset.Set {
	t.Helper()
	out := rowset.NewSet()
	for addr := range r.ids {
		var ok bool
		switch where {
		case "":
			ok = true
		case "array_has(labels,'ai')":
			ok = slices.Contains(r.labels[addr], "ai")
		case "array_has_any(labels,['ai','drama']) AND tenant = 't1'":
			ok = r.tenant[addr] == "t1" && (slices.Contains(r.labels[addr], "ai") || slices.Contains(r.labels[addr], "drama"))
		default:
			t.Fatalf("filter %q", where)
		}
		if ok {
			out.Add(uint64(addr))
		}
	}
	return out
}

// exact searches the rows of among in the given fragments; hits have row addresses.
func (r *reference) exact(t *testing.T, q testutil.ExpectedQuery, metric index.Metric, k int, among *rowset.Set, inIndex func(fragment uint32) bool) []index.Hit {
	t.Helper()
	ctx := context.Background()
	s, err := NewScanner(ScanOptions{Metric: metric, Elem: r.elem, Vector: q.Vector, K: k})
	if err != nil {
		t.Fatal(err)
	}
	var parts []Part
	for _, f := range r.snap.Fragments() {
		candidates := among.Bitmap(f.ID())
		if candidates == nil || !inIndex(f.ID()) {
			continue
		}
		blocks, err := r.snap.VectorBlocks(ctx, "v", f.ID())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, Part{KeyBase: uint64(rowset.Addr(f.ID(), 0)), Blocks: blocks, Candidates: candidates})
	}
	hits, err := s.Nearest(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// indexed searches every segment with all lists probed for the live rows of among, then the uncovered fragments, and recomputes the distances of the
// refine*k nearest, as a search over an index does.
func (r *reference) indexed(t *testing.T, q testutil.ExpectedQuery, metric index.Metric, refine int, among *rowset.Set) []index.Hit {
	t.Helper()
	ctx := context.Background()
	keys, err := r.snap.Keys(ctx, among)
	if err != nil {
		t.Fatal(err)
	}
	var lists [][]index.Hit
	for _, s := range r.segments {
		found, err := s.Nearest(ctx, index.NearestQuery{Vector: q.Vector, Metric: metric, K: q.K * refine, Among: keys, MinProbes: s.Lists()})
		if err != nil {
			t.Fatal(err)
		}
		stored := make([]uint64, len(found))
		for i, h := range found {
			stored[i] = h.Key
		}
		addrs, ok, err := r.snap.ResolveKeys(ctx, stored)
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			if !ok[i] {
				t.Fatalf("key %d was a candidate and is no row", stored[i])
			}
			found[i].Key = uint64(addrs[i])
		}
		lists = append(lists, found)
	}
	lists = append(lists, r.exact(t, q, metric, q.K*refine, among, func(f uint32) bool { return !r.covered.Contains(f) }))
	candidates := rowset.NewSet()
	for _, h := range Merge(q.K*refine, lists...) {
		candidates.Add(h.Key)
	}
	return r.exact(t, q, metric, q.K, candidates, func(uint32) bool { return true })
}

// agree compares hits with the engine's answer: the same distances in order, the same rows where distances differ.
func (r *reference) agree(t *testing.T, q testutil.ExpectedQuery, hits []index.Hit) {
	t.Helper()
	want := answer(t, q)
	if len(hits) != len(want) {
		t.Fatalf("%d hits, want %d", len(hits), len(want))
	}
	for i, h := range hits {
		near := 1e-4 * math.Max(math.Abs(want[i].Distance), 1e-3)
		if math.Abs(float64(h.Distance)-want[i].Distance) > near {
			t.Fatalf("hit %d is id %s at %v, want id %s at %v", i, r.ids[rowset.RowAddr(h.Key)], h.Distance, want[i].ID, want[i].Distance)
		}
		if id := r.ids[rowset.RowAddr(h.Key)]; id != want[i].ID && !slices.ContainsFunc(want, func(w expectedHit) bool { return w.ID == id && math.Abs(w.Distance-want[i].Distance) <= near }) {
			t.Fatalf("hit %d is id %s, want id %s", i, id, want[i].ID)
		}
	}
}

type expectedHit struct {
	ID       string
	Distance float64 `json:"_distance"`
}

func answer(t *testing.T, q testutil.ExpectedQuery) []expectedHit {
	t.Helper()
	var want []expectedHit
	if err := json.Unmarshal(q.Result, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

// check runs every vector query of a dataset exactly and through the index.
func (r *reference) check(t *testing.T) {
	everywhere := func(uint32) bool { return true }
	queries, compared := 0, 0
	var found, wanted int
	for _, q := range r.expected.Queries {
		if len(q.Vector) == 0 {
			continue
		}
		queries++
		metric := index.Metric(q.Metric)
		if metric == "" {
			metric = index.MetricL2
		}
		among := r.matching(t, q.Where)
		exact := r.exact(t, q, metric, q.K, among, everywhere)
		if q.Exact {
			r.agree(t, q, exact)
			compared++
		}
		if len(r.segments) == 0 {
			continue
		}
		if !r.segments[0].Quantized() {
			sameHits(t, exact, r.indexed(t, q, metric, 1, among), 1e-4)
			r.agree(t, q, exact) // the engine probed all lists too
			continue
		}
		byKey := map[uint64]bool{}
		for _, h := range r.indexed(t, q, metric, 10, among) {
			byKey[h.Key] = true
		}
		for _, h := range exact {
			wanted++
			if byKey[h.Key] {
				found++
			}
		}
	}
	if queries == 0 || compared == 0 {
		t.Fatalf("%d queries, %d of them exact", queries, compared)
	}
	if wanted > 0 {
		recall := float64(found) / float64(wanted)
		t.Logf("%s: recall %.3f of %d", r.segments[0].Meta().Kind, recall, wanted)
		if recall < 0.9 {
			t.Errorf("recall %.3f with refine, want 0.9", recall)
		}
	}
}

func TestReferenceDatasets(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testutil.Root(t), "testdata", "lance", "vec_*.lance"))
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d datasets, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := openReference(t, path)
			if len(r.segments) == 0 {
				t.Fatal("no vector segment")
			}
			r.check(t)
		})
	}
}

func TestTwoSegmentsOfOneIndexAreDisjoint(t *testing.T) {
	r := openReference(t, testutil.Lance(t, "vec_segments"))
	if len(r.segments) != 2 {
		t.Fatalf("%d segments, want 2", len(r.segments))
	}
	if r.segments[0].Meta().Covers.Intersects(r.segments[1].Meta().Covers) {
		t.Fatal("two segments cover one fragment")
	}
}
