package demo

import (
	"math"
	"math/rand/v2"
	"sort"
)

// stream numbers: one random stream per purpose and fragment.
const (
	streamModel     = 1
	streamTracks    = 2
	streamImages    = 1000
	streamOrders    = 2000
	streamShipments = 3000
)

// random is one stream of numbers.
type random struct{ *rand.Rand }

func newRandom(seed, stream uint64) random {
	return random{rand.New(rand.NewPCG(seed, stream*0x9e3779b97f4a7c15+1))}
}

// gauss is close to normal: the sum of four uniforms, which is the same on every machine.
func (r random) gauss() float32 {
	return float32((r.Float64() + r.Float64() + r.Float64() + r.Float64() - 2) * 1.7320508)
}

// zipf draws ranks 0..n-1, rank i with weight 1/(i+1)^s.
type zipf []float64

func newZipf(n int, s float64) zipf {
	z, total := make(zipf, n), 0.0
	for i := range z {
		total += math.Pow(float64(i+1), -s)
		z[i] = total
	}
	return z
}

func (z zipf) draw(r random) int {
	u := r.Float64() * z[len(z)-1]
	return min(sort.SearchFloat64s(z, u), len(z)-1)
}
