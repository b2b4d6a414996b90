package vector

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// BenchmarkNearest is V3 and V4x of the benchmark over IVF_FLAT: 1M x 128, 1000 lists, 20 probes, from a kept mapping.
func BenchmarkNearest(b *testing.B) {
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
			binary.LittleEndian.PutUint32(data[(i*dim+d)*4:], math.Float32bits(centers[c*dim+d]+0.4*float32(r.NormFloat64())))
		}
	}
	rows := roaring.New()
	rows.AddRange(0, n)
	store, err := object.OpenLocal(b.TempDir(), object.LocalOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	part := BuildPart{Rows: rows, Blocks: func(context.Context) ([]Block, error) {
		return []Block{{Rows: n, Data: data, StrideBytes: dim * 4, ValueBytes: dim * 4}}, nil
	}}
	s := built(b, store, []BuildPart{part}, BuildOptions{Metric: index.MetricL2, Elem: vec.Float32, Dim: dim, Lists: 1000, Iterations: 5, SampleRate: 64})
	queries := make([][]float32, 64)
	for i := range queries {
		queries[i] = make([]float32, dim)
		vec.Decode(queries[i], vec.Float32, data[r.IntN(n)*dim*4:])
	}
	among := rowset.NewSet()
	for range n / 20 {
		among.Add(uint64(r.IntN(n)))
	}
	for _, c := range []struct {
		name string
		q    index.NearestQuery
	}{
		{"top 10", index.NearestQuery{K: 10}},
		{"top 1000", index.NearestQuery{K: 1000}},
		{"top 100 of 5%", index.NearestQuery{K: 100, Among: among}},
	} {
		b.Run(c.name, func(b *testing.B) {
			stats := &index.NearestStats{}
			i := 0
			for b.Loop() {
				c.q.Vector, c.q.Metric, c.q.Stats = queries[i%len(queries)], index.MetricL2, stats
				i++
				if _, err := s.Nearest(context.Background(), c.q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(stats.RowsCompared)/float64(i), "rows/op")
		})
	}
}
