package vector

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// source is tables as build parts: part i is fragment i, with the rows of live (nil = all).
func source(live *roaring.Bitmap, tabs ...*table) []BuildPart {
	parts := make([]BuildPart, len(tabs))
	for i, tab := range tabs {
		rows := roaring.New()
		rows.AddRange(0, uint64(len(tab.rows)))
		if live != nil {
			rows.And(live)
		}
		parts[i] = BuildPart{Rows: rows, KeyBase: uint64(i) << 32, Blocks: func(context.Context) ([]Block, error) { return tab.blocks, nil }}
	}
	return parts
}

func built(t testing.TB, store object.Store, parts []BuildPart, o BuildOptions) *Segment {
	t.Helper()
	b, err := BuildFlat(context.Background(), store.Create, parts, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), store.Open, index.Meta{Name: "v_idx"}, index.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if s.Rows() != b.Rows || s.Lists() != b.Lists || s.Meta().Metric != o.Metric || s.Meta().Kind != index.KindIVFFlat {
		t.Fatalf("built %+v, opened %d rows in %d lists, %+v", b, s.Rows(), s.Lists(), s.Meta())
	}
	return s
}

func TestFlatWithAllListsProbedEqualsExactSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	live := roaring.New()
	for i := range 2000 {
		if i%5 != 2 {
			live.Add(uint32(i))
		}
	}
	for _, metric := range []index.Metric{index.MetricL2, index.MetricCosine, index.MetricDot} {
		for _, elem := range []vec.Elem{vec.Float32, vec.Float16} {
			for _, dim := range []int{4, 80} { // small vectors lie in mini-blocks, large ones in full-zip pages
				t.Run(fmt.Sprintf("%s over %d x %v", metric, dim, elem), func(t *testing.T) {
					tabs := []*table{randomTable(r, elem, 1500, dim), randomTable(r, elem, 700, dim)}
					s := built(t, object.NewMemory("m"), source(live, tabs...), BuildOptions{Metric: metric, Elem: elem, Dim: dim, Lists: 13, BufferBytes: 64 << 10})
					compareWithExact(t, s, tabs, live, r)
				})
			}
		}
	}
}

// compareWithExact searches the segment and the tables, with and without a mask. Cosine segments store rescaled vectors, so that ties of the
// exact distances may come in another order: keys are compared where distances differ.
func compareWithExact(t *testing.T, s *Segment, tabs []*table, live *roaring.Bitmap, r *rand.Rand) {
	t.Helper()
	tolerance := 1e-5
	if tabs[0].elem == vec.Float16 && s.Meta().Metric == index.MetricCosine {
		tolerance = 2e-3 // the segment keeps halves
	}
	for range 5 {
		query := make([]float32, s.Dim())
		for i := range query {
			query[i] = float32(r.NormFloat64())
		}
		among := rowset.NewSet()
		among.AddRange(0, 100, 900)
		among.AddRange(1, 0, 333)
		for _, mask := range []*rowset.Set{nil, among, rowset.NewSet()} {
			for _, k := range []int{1, 10, 5000} {
				exact, err := NewScanner(ScanOptions{Metric: s.Meta().Metric, Elem: tabs[0].elem, Vector: query, K: k})
				if err != nil {
					t.Fatal(err)
				}
				var parts []Part
				for i, tab := range tabs {
					p := Part{KeyBase: uint64(i) << 32, Blocks: tab.blocks, Candidates: live}
					if mask != nil {
						p.Candidates = roaring.New()
						if m := mask.Bitmap(uint32(i)); m != nil {
							p.Candidates = roaring.And(live, m)
						}
					}
					parts = append(parts, p)
				}
				want, err := exact.Nearest(context.Background(), parts)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.Nearest(context.Background(), index.NearestQuery{Vector: query, Metric: s.Meta().Metric, K: k, Among: mask, MinProbes: 3, MaxProbes: 0, Stats: &index.NearestStats{}})
				if err != nil {
					t.Fatal(err)
				}
				all, err := s.Nearest(context.Background(), index.NearestQuery{Vector: query, Metric: s.Meta().Metric, K: k, Among: mask, MinProbes: s.Lists()})
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(want) {
					t.Fatalf("k %d: widening found %d of %d rows", k, len(got), len(want))
				}
				sameHits(t, want, all, tolerance)
			}
		}
	}
}

func sameHits(t *testing.T, want, got []index.Hit, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d hits, want %d", len(got), len(want))
	}
	byKey := make(map[uint64]float32, len(want))
	for _, h := range want {
		byKey[h.Key] = h.Distance
	}
	for i := range want {
		near := tolerance * (1 + math.Abs(float64(want[i].Distance)))
		if d, known := byKey[got[i].Key]; math.Abs(float64(got[i].Distance-want[i].Distance)) > near || (known && math.Abs(float64(d-got[i].Distance)) > near) {
			t.Fatalf("hit %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestTheSameSeedGivesTheSameFilesOnAnyNumberOfGoroutines(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(23, 24)), vec.Float32, 3000, 24)
	files := func(o BuildOptions) [2][]byte {
		store := object.NewMemory("m")
		o.Metric, o.Elem, o.Dim, o.Lists, o.SampleRate = index.MetricCosine, vec.Float32, 24, 20, 50
		built(t, store, source(nil, tab), o)
		var out [2][]byte
		for i, name := range []string{IndexFile, AuxiliaryFile} {
			f, err := store.Open(context.Background(), name)
			if err != nil {
				t.Fatal(err)
			}
			if out[i], err = f.Read(context.Background(), object.Range{Size: f.SizeBytes()}); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	first := files(BuildOptions{Seed: 1, Parallelism: 1})
	for name, o := range map[string]BuildOptions{"four goroutines": {Seed: 1, Parallelism: 4}, "again": {Seed: 1}} {
		if !reflect.DeepEqual(files(o), first) {
			t.Errorf("%s: other bytes", name)
		}
	}
	if small := files(BuildOptions{Seed: 1, BufferBytes: 4096}); !bytes.Equal(small[0], first[0]) {
		t.Error("the buffer changes the centroids")
	}
	if bytes.Equal(files(BuildOptions{Seed: 2})[0], first[0]) {
		t.Error("another seed gives the same centroids")
	}
}

func TestStoredKeysAreThoseOfTheParts(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(25, 26)), vec.Float32, 100, 4)
	parts := source(roaring.BitmapOf(3, 50, 99, 7), tab)
	parts[0].Keys = []uint64{1 << 40, 5, 77, 6}
	want := map[uint64]bool{}
	for i, row := range []uint32{3, 7, 50, 99} {
		want[parts[0].Keys[i]] = tab.rows[row] != nil
	}
	s := built(t, object.NewMemory("m"), parts, BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: 4})
	hits, err := s.Nearest(context.Background(), index.NearestQuery{Vector: make([]float32, 4), Metric: index.MetricL2, K: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if !want[h.Key] {
			t.Errorf("key %d is no row with a vector", h.Key)
		}
		delete(want, h.Key)
	}
	for key, has := range want {
		if has {
			t.Errorf("key %d is missing", key)
		}
	}
}

func TestBuildRefusesWhatCannotBeIndexed(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(27, 28)), vec.Float32, 50, 4)
	good := BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: 4}
	for name, c := range map[string]struct {
		change func(*BuildOptions)
		parts  []BuildPart
		want   error
	}{
		"hamming distance":                 {change: func(o *BuildOptions) { o.Metric = index.MetricHamming }, want: errs.ErrUnsupported},
		"an unknown distance":              {change: func(o *BuildOptions) { o.Metric = "l1" }, want: errs.ErrInvalid},
		"bytes":                            {change: func(o *BuildOptions) { o.Elem = vec.Uint8 }, want: errs.ErrUnsupported},
		"negative lists":                   {change: func(o *BuildOptions) { o.Lists = -1 }, want: errs.ErrInvalid},
		"no rows":                          {parts: source(roaring.New(), tab), want: errs.ErrInvalid},
		"a sample that the budget refuses": {change: func(o *BuildOptions) { o.Budget = mem.NewBudget("build", 100, nil) }, want: errs.ErrMemoryLimit},
		"vectors of another width":         {change: func(o *BuildOptions) { o.Dim = 5 }, want: errs.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			if c.change != nil {
				c.change(&o)
			}
			if c.parts == nil {
				c.parts = source(nil, tab)
			}
			store := object.NewMemory("m")
			if _, err := BuildFlat(context.Background(), store.Create, c.parts, o); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if left, err := store.List(context.Background(), ""); err != nil || len(left) > 0 {
				t.Fatalf("files %v, %v", left, err)
			}
		})
	}
}

func TestMoreListsThanRowsGivesAListARow(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(29, 30)), vec.Float32, 12, 3)
	rows := 0
	for _, row := range tab.rows {
		if row != nil {
			rows++
		}
	}
	if s := built(t, object.NewMemory("m"), source(nil, tab), BuildOptions{Metric: index.MetricDot, Elem: vec.Float32, Dim: 3, Lists: 500}); s.Lists() != rows {
		t.Fatalf("%d lists for %d rows", s.Lists(), rows)
	}
}

func TestProbesReadTheirListsAndNoOther(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	const n, dim, lists = 20_000, 64, 40
	tab := &table{elem: vec.Float32, dim: dim, rows: make([][]float32, n)}
	data := make([]byte, n*dim*4)
	for i := range n * dim {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(r.NormFloat64())))
	}
	tab.blocks = []Block{{Rows: n, Data: data, StrideBytes: dim * 4, ValueBytes: dim * 4}}
	store := object.NewCounting(object.NewMemory("m"), object.CountingOptions{GapBytes: -1})
	s := built(t, store, source(nil, tab), BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: dim, Lists: lists})
	query := make([]float32, dim)
	for _, c := range []struct {
		name             string
		q                index.NearestQuery
		probed, hits     int
		compared, atMost int64 // rows
	}{
		{name: "one list", q: index.NearestQuery{K: 5, MinProbes: 1}, probed: 1, hits: 5, atMost: n / 10},
		{name: "the limit of lists before enough rows", q: index.NearestQuery{K: n, MinProbes: 1, MaxProbes: 3}, probed: 3, hits: -1, atMost: n / 4},
		{name: "all lists for all rows", q: index.NearestQuery{K: 2 * n, MinProbes: 1}, probed: lists, hits: n, compared: n, atMost: n},
		{name: "more lists than there are", q: index.NearestQuery{K: 5, MinProbes: 1000}, probed: lists, hits: 5, compared: n, atMost: n},
		{name: "a query that is no number", q: index.NearestQuery{K: 5, Vector: append(make([]float32, dim-1), float32(math.NaN()))}, probed: 0, hits: 0},
		{name: "no candidates", q: index.NearestQuery{K: 5, Among: rowset.NewSet()}, probed: 0, hits: 0},
		{name: "one candidate, found by widening", q: index.NearestQuery{K: 5, MinProbes: 1, Among: rowset.NewSet(1234)}, probed: -1, hits: 1, atMost: n},
	} {
		t.Run(c.name, func(t *testing.T) {
			stats := &index.NearestStats{}
			c.q.Metric, c.q.Stats = index.MetricL2, stats
			if c.q.Vector == nil {
				c.q.Vector = query
			}
			store.Reset()
			hits, err := s.Nearest(context.Background(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			read := store.Total().Bytes
			if c.hits >= 0 && len(hits) != c.hits {
				t.Errorf("%d hits, want %d", len(hits), c.hits)
			}
			if c.probed >= 0 && stats.ListsProbed != int64(c.probed) {
				t.Errorf("%d lists probed, want %d", stats.ListsProbed, c.probed)
			}
			if stats.ListsTotal != lists && c.probed != 0 || c.compared > 0 && stats.RowsCompared != c.compared || stats.RowsCompared > c.atMost {
				t.Errorf("stats %+v, want at most %d rows", stats, c.atMost)
			}
			// A page border and a chunk table may come with each list.
			if most := c.atMost*(dim*4+16) + int64(stats.ListsProbed+1)*16<<10; read > most {
				t.Errorf("%d bytes read at the store, want at most %d", read, most)
			}
		})
	}
}

func TestQueriesThatDoNotFitTheSegmentAreRefused(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(33, 34)), vec.Float32, 50, 4)
	s := built(t, object.NewMemory("m"), source(nil, tab), BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: 4})
	small := index.NearestQuery{Vector: make([]float32, 4), Metric: index.MetricL2, K: 40, Budget: mem.NewBudget("query", 100, nil)}
	if _, err := s.Nearest(context.Background(), small); !errors.Is(err, errs.ErrMemoryLimit) || small.Budget.Used() != 0 {
		t.Errorf("a budget of 100 bytes: got %v, %d bytes held after", err, small.Budget.Used())
	}
	for name, q := range map[string]index.NearestQuery{
		"another distance":  {Vector: make([]float32, 4), Metric: index.MetricDot, K: 1},
		"another dimension": {Vector: make([]float32, 5), Metric: index.MetricL2, K: 1},
		"no rows wanted":    {Vector: make([]float32, 4), Metric: index.MetricL2},
		"negative probes":   {Vector: make([]float32, 4), Metric: index.MetricL2, K: 1, MinProbes: -1},
	} {
		if _, err := s.Nearest(context.Background(), q); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// BenchmarkBuildFlat is I2 of the benchmark: 1M x 128, 1000 lists.
func BenchmarkBuildFlat(b *testing.B) {
	const n, dim = 1_000_000, 128
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, n*dim*4)
	centers := make([]float32, 500*dim)
	for i := range centers {
		centers[i] = float32(r.NormFloat64())
	}
	for i := range n {
		c := r.IntN(500)
		for d := range dim {
			binary.LittleEndian.PutUint32(data[(i*dim+d)*4:], math.Float32bits(centers[c*dim+d]+float32(r.NormFloat64())))
		}
	}
	rows := roaring.New()
	rows.AddRange(0, n)
	part := BuildPart{Rows: rows, Blocks: func(context.Context) ([]Block, error) {
		return []Block{{Rows: n, Data: data, StrideBytes: dim * 4, ValueBytes: dim * 4}}, nil
	}}
	for b.Loop() {
		store, err := object.OpenLocal(b.TempDir(), object.LocalOptions{})
		if err != nil {
			b.Fatal(err)
		}
		start, phase := time.Now(), ""
		built, err := BuildFlat(context.Background(), store.Create, []BuildPart{part}, BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: dim, Lists: 1000,
			Progress: func(p string, done, total int64) {
				if done == total && p != phase {
					phase = p
					b.Logf("%s ends at %v", p, time.Since(start).Round(time.Millisecond))
				}
			}})
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%d rows, loss %v, files %v", built.Rows, built.Loss, built.Files)
	}
}
