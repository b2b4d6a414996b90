package vector

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/vec"
)

// table is a column of vectors with NULLs, and the blocks that hold it.
type table struct {
	elem   vec.Elem
	dim    int
	rows   [][]float32 // nil = NULL
	blocks []Block
}

// randomTable cuts n rows into blocks of random sizes; odd blocks have a control byte before each row. Few distinct rows make ties.
func randomTable(r *rand.Rand, elem vec.Elem, n, dim int) *table {
	t := &table{elem: elem, dim: dim, rows: make([][]float32, n)}
	width := dim * elem.Size()
	for at := 0; at < n; {
		size := min(1+r.IntN(700), n-at)
		b := Block{FirstRow: uint64(at), Rows: size, ValueBytes: width, StrideBytes: width + len(t.blocks)%2, OffsetBytes: len(t.blocks) % 2}
		b.Data = make([]byte, b.OffsetBytes+(size-1)*b.StrideBytes+width)
		nulls := make([]bool, size)
		for i := range size {
			stored := b.Data[b.OffsetBytes+i*b.StrideBytes:][:width]
			if nulls[i] = r.IntN(10) == 0; nulls[i] {
				for j := range stored {
					stored[j] = byte(r.Uint32())
				}
				continue
			}
			for d := range dim {
				x := float32(r.IntN(4))
				switch elem {
				case vec.Uint8:
					stored[d] = byte(x)
				case vec.Float16:
					binary.LittleEndian.PutUint16(stored[2*d:], vec.FloatToHalf(x-1.5))
				default:
					binary.LittleEndian.PutUint32(stored[4*d:], math.Float32bits(x-1.5))
				}
			}
			t.rows[at+i] = make([]float32, dim)
			vec.Decode(t.rows[at+i], elem, stored)
		}
		b.Validity = func(i int) bool { return !nulls[i] }
		t.blocks = append(t.blocks, b)
		at += size
	}
	return t
}

// trueDistance is the definition, in float64.
func trueDistance(m index.Metric, q, v []float32) float64 {
	var l2, ip, qq, vv, bits float64
	for i := range q {
		a, b := float64(q[i]), float64(v[i])
		l2 += (a - b) * (a - b)
		ip += a * b
		qq += a * a
		vv += b * b
		for x := byte(q[i]) ^ byte(v[i]); x != 0; x &= x - 1 {
			bits++
		}
	}
	switch m {
	case index.MetricL2:
		return l2
	case index.MetricDot:
		return 1 - ip
	case index.MetricHamming:
		return bits
	}
	return 1 - ip/math.Sqrt(qq*vv)
}

// bruteForce ranks by the distances that the kernels give (ties decide by key), after checking those against the definition.
func (t *table) bruteForce(tt *testing.T, s *Scanner, keyBase uint64, among *roaring.Bitmap) []index.Hit {
	tt.Helper()
	all := make([]uint32, len(t.rows))
	for i := range all {
		all[i] = uint32(i)
	}
	got := make([]float32, len(all))
	if err := s.Distances(context.Background(), t.blocks, all, got); err != nil {
		tt.Fatal(err)
	}
	var hits []index.Hit
	for i, row := range t.rows {
		want := math.NaN()
		if row != nil {
			want = trueDistance(s.opts.Metric, s.opts.Vector, row)
		}
		if math.IsNaN(want) != (got[i] != got[i]) || math.Abs(float64(got[i])-want) > 1e-5*(1+math.Abs(want)) {
			tt.Fatalf("row %d: distance %v, want %v", i, got[i], want)
		}
		if got[i] == got[i] && (among == nil || among.Contains(uint32(i))) {
			hits = append(hits, index.Hit{Key: keyBase + uint64(i), Distance: got[i]})
		}
	}
	slices.SortFunc(hits, compareHits)
	return hits
}

func TestNearestEqualsBruteForceWithMasksNullsAndTies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, metric := range []index.Metric{index.MetricL2, index.MetricCosine, index.MetricDot, index.MetricHamming} {
		for _, elem := range []vec.Elem{vec.Float32, vec.Float16, vec.Uint8} {
			if (metric == index.MetricHamming) != (elem == vec.Uint8) {
				continue
			}
			for _, dim := range []int{1, 3, 16, 40} {
				tab := randomTable(r, elem, 3000, dim)
				query := make([]float32, dim)
				for i := range query {
					query[i] = float32(r.IntN(5)) // zero now and then in one dimension: no cosine
				}
				masks := map[string]*roaring.Bitmap{"no mask": nil, "an empty mask": roaring.New(), "one row": roaring.BitmapOf(17), "a sparse mask": roaring.New(), "a dense mask": roaring.New()}
				for i := range 3000 {
					if i%7 == 0 {
						masks["a sparse mask"].Add(uint32(i))
					}
					if i%9 != 0 {
						masks["a dense mask"].Add(uint32(i))
					}
				}
				for name, mask := range masks {
					for _, k := range []int{1, 10, 100, 5000} {
						for _, threads := range []int{1, 4} {
							s, err := NewScanner(ScanOptions{Metric: metric, Elem: elem, Vector: query, K: k, Parallelism: threads, Stats: &index.NearestStats{}})
							if err != nil {
								t.Fatal(err)
							}
							want := tab.bruteForce(t, s, 1<<32, mask)
							want = want[:min(k, len(want))]
							got, err := s.Nearest(context.Background(), []Part{{KeyBase: 1 << 32, Blocks: tab.blocks, Candidates: mask}})
							if err != nil {
								t.Fatal(err)
							}
							if len(got) != len(want) || (len(got) > 0 && !reflect.DeepEqual(got, want)) {
								t.Fatalf("%s %v dim %d k %d, %s: got %d hits %v, want %d %v", metric, elem, dim, k, name, len(got), head(got), len(want), head(want))
							}
						}
					}
				}
			}
		}
	}
}

func head(h []index.Hit) string { return fmt.Sprint(h[:min(len(h), 5)]) }

func TestPartsMergeInOneOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	a, b := randomTable(r, vec.Float32, 900, 8), randomTable(r, vec.Float32, 1100, 8)
	s, err := NewScanner(ScanOptions{Metric: index.MetricL2, Elem: vec.Float32, Vector: make([]float32, 8), K: 50})
	if err != nil {
		t.Fatal(err)
	}
	mask := roaring.New()
	mask.AddRange(100, 200)
	want := Merge(50, a.bruteForce(t, s, 7<<32, mask), b.bruteForce(t, s, 3<<32, nil))
	got, err := s.Nearest(context.Background(), []Part{{KeyBase: 7 << 32, Blocks: a.blocks, Candidates: mask}, {KeyBase: 3 << 32, Blocks: b.blocks}})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v %v, want %v", got, err, want)
	}
}

func TestRowsWithoutADistanceAreNoHits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	rows := [][]float32{{0, 0}, {1, 0}, {nan, 1}, {1e-25, 1e-25}, {1e25, 0}, {inf, 1}, {1e-42, 0}}
	data := make([]byte, len(rows)*8)
	for i, row := range rows {
		for d, x := range row {
			binary.LittleEndian.PutUint32(data[i*8+d*4:], math.Float32bits(x))
		}
	}
	blocks := []Block{{Rows: len(rows), Data: data, StrideBytes: 8, ValueBytes: 8}}
	for _, c := range []struct {
		name   string
		metric index.Metric
		query  []float32
		want   []uint64
	}{
		{"cosine leaves zero and non-finite vectors out and keeps the very small and very large", index.MetricCosine, []float32{1, 0}, []uint64{1, 4, 6, 3}},
		{"cosine of a zero query has no hits", index.MetricCosine, []float32{0, 0}, nil},
		{"cosine of a query with NaN has no hits", index.MetricCosine, []float32{nan, 0}, nil},
		{"l2 leaves NaN out", index.MetricL2, []float32{1, 0}, []uint64{1, 0, 3, 6, 4, 5}},
		{"a query with NaN has no hits", index.MetricL2, []float32{nan, 0}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := NewScanner(ScanOptions{Metric: c.metric, Elem: vec.Float32, Vector: c.query, K: 10})
			if err != nil {
				t.Fatal(err)
			}
			hits, err := s.Nearest(context.Background(), []Part{{Blocks: blocks}})
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for _, h := range hits {
				got = append(got, h.Key)
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v", hits, c.want)
			}
		})
	}
}

func TestScannerRefusesWhatMakesNoSense(t *testing.T) {
	good := ScanOptions{Metric: index.MetricL2, Elem: vec.Float32, Vector: []float32{1, 2}, K: 1}
	for name, c := range map[string]struct {
		change func(*ScanOptions)
		block  Block
		want   error
	}{
		"an empty query":                       {change: func(o *ScanOptions) { o.Vector = nil }, want: errs.ErrInvalid},
		"a negative k":                         {change: func(o *ScanOptions) { o.K = -1 }, want: errs.ErrInvalid},
		"an unknown metric":                    {change: func(o *ScanOptions) { o.Metric = "l1" }, want: errs.ErrUnsupported},
		"hamming over floats":                  {change: func(o *ScanOptions) { o.Metric = index.MetricHamming }, want: errs.ErrInvalid},
		"hamming with a query that is no byte": {change: func(o *ScanOptions) { o.Metric, o.Elem, o.Vector = index.MetricHamming, vec.Uint8, []float32{1, 256} }, want: errs.ErrInvalid},
		"rows of another width":                {block: Block{Rows: 1, Data: make([]byte, 12), ValueBytes: 12, StrideBytes: 12}, want: errs.ErrInvalid},
		"rows past the end of their bytes":     {block: Block{Rows: 3, Data: make([]byte, 23), ValueBytes: 8, StrideBytes: 8}, want: errs.ErrCorrupt},
		"rows past the last row number":        {block: Block{FirstRow: math.MaxUint32, Rows: 2, Data: make([]byte, 16), ValueBytes: 8, StrideBytes: 8}, want: errs.ErrCorrupt},
		"a k that the budget refuses":          {change: func(o *ScanOptions) { o.Budget = mem.NewBudget("query", 8, nil) }, block: Block{Rows: 1, Data: make([]byte, 8), ValueBytes: 8, StrideBytes: 8}, want: errs.ErrMemoryLimit},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			if c.change != nil {
				c.change(&o)
			}
			s, err := NewScanner(o)
			if err == nil {
				_, err = s.Nearest(context.Background(), []Part{{Blocks: []Block{c.block}}})
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestCancelStopsAScan(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	tab := randomTable(r, vec.Float32, 5000, 16)
	s, err := NewScanner(ScanOptions{Metric: index.MetricL2, Elem: vec.Float32, Vector: make([]float32, 16), K: 10})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Nearest(ctx, []Part{{Blocks: tab.blocks}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestTopKKeepsTheNearestWhateverTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, k := range []int{1, 2, 7, 64, 1000} {
		for _, n := range []int{0, 1, k, 3*k + 5, 5000} {
			hits := make([]index.Hit, n)
			for i := range hits {
				hits[i] = index.Hit{Key: uint64(i), Distance: float32(r.IntN(n/3 + 1))}
			}
			want := slices.Clone(hits)
			slices.SortFunc(want, compareHits)
			want = want[:min(k, n)]
			for round := range 3 {
				r.Shuffle(n, func(i, j int) { hits[i], hits[j] = hits[j], hits[i] })
				if round == 2 {
					slices.SortFunc(hits, func(a, b index.Hit) int { return compareHits(b, a) })
				}
				if got := Merge(k, hits); !slices.Equal(got, want) {
					t.Fatalf("k %d of %d: got %s, want %s", k, n, head(got), head(want))
				}
			}
		}
	}
}

// BenchmarkExact is V1 and V2 of the benchmark without storage: 1M x 128.
func BenchmarkExact(b *testing.B) {
	const n, dim = 1_000_000, 128
	data := make([]byte, n*dim*4)
	r := rand.New(rand.NewPCG(5, 5))
	for i := 0; i < len(data); i += 4 {
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(r.Float32()))
	}
	blocks := []Block{{Rows: n, Data: data, StrideBytes: dim * 4, ValueBytes: dim * 4}}
	mask := roaring.New()
	for range 10_000 {
		mask.Add(r.Uint32N(n))
	}
	query := make([]float32, dim)
	for i := range query {
		query[i] = r.Float32()
	}
	for _, c := range []struct {
		name   string
		metric index.Metric
		k      int
		mask   *roaring.Bitmap
	}{{"l2 top 10", index.MetricL2, 10, nil}, {"cosine top 10", index.MetricCosine, 10, nil}, {"l2 top 100000", index.MetricL2, 100_000, nil}, {"l2 top 100 of 1%", index.MetricL2, 100, mask}} {
		b.Run(c.name, func(b *testing.B) {
			stats := &index.NearestStats{}
			s, err := NewScanner(ScanOptions{Metric: c.metric, Elem: vec.Float32, Vector: query, K: c.k, Stats: stats})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Nearest(context.Background(), []Part{{Blocks: blocks, Candidates: c.mask}}); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(stats.BytesRead / int64(b.N))
		})
	}
}
