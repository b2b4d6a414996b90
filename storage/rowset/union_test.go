package rowset

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// randomBitmap has about count keys below span.
func randomBitmap(r *rand.Rand, count int, span uint32) *roaring.Bitmap {
	b := roaring.New()
	for range count {
		b.Add(r.Uint32N(span))
	}
	return b
}

func TestUniteOfManyDensities(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, span := range []uint32{1, 64, 65, 70_000, 1 << 20} {
		for _, each := range []int{1, 10, 1000, 5000} {
			for _, n := range []int{2, 3, 9, 20} {
				want := roaring.New()
				var all []*roaring.Bitmap
				for i := range n {
					b := randomBitmap(r, each, span)
					if i == 1 {
						b.AddRange(0, uint64(span)/3)
					}
					all = append(all, b)
					want.Or(b)
				}
				before := all[0].Clone()
				if got := unite(all); !got.Equals(want) || got.GetCardinality() != want.GetCardinality() {
					t.Fatalf("%d of %d keys below %d: %d keys, want %d", n, each, span, got.GetCardinality(), want.GetCardinality())
				}
				if !all[0].Equals(before) {
					t.Fatal("an input was changed")
				}
			}
		}
	}
}

func BenchmarkUnite(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, each := range []int{500, 5700, 30_000} {
		for _, n := range []int{5, 20} {
			var all []*roaring.Bitmap
			for range n {
				all = append(all, randomBitmap(r, each, 1<<20))
			}
			b.Run(fmt.Sprintf("%d of %d", n, each), func(b *testing.B) {
				for b.Loop() {
					unite(all)
				}
			})
		}
	}
}
