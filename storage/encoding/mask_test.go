package encoding

import (
	"math/rand/v2"
	"testing"
)

func TestMasksCountAndFindLikeALoop(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 1))
	for _, n := range []int{0, 1, 63, 64, 65, 1000} {
		levels := make([]uint16, n)
		for i := range levels {
			levels[i] = uint16(rnd.IntN(3))
			if rnd.IntN(50) == 0 {
				levels[i] = uint16(rnd.Uint32())
			}
		}
		for limit := range uint16(3) {
			m := MaskOf(nil, levels, limit)
			zeros := 0
			for i, l := range levels {
				if got, want := m.Ones(0, i), i-zeros; got != want {
					t.Fatalf("%d ones below %d of %d, want %d", got, i, n, want)
				}
				if l > limit {
					if got := m.Zero(zeros, n); got != i {
						t.Fatalf("zero %d of %d at %d, want %d", zeros, n, got, i)
					}
					zeros++
				}
			}
			if got := m.Zero(zeros, n); got != n {
				t.Fatalf("zero %d of %d at %d, though there are fewer", zeros, n, got)
			}
		}
	}
}

func TestCompressMovesTheMarkedBitsTogether(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 2))
	for range 2000 {
		mask := rnd.Uint64()
		switch rnd.IntN(3) {
		case 0:
			mask &= rnd.Uint64() & rnd.Uint64()
		case 1:
			mask |= rnd.Uint64() | rnd.Uint64()
		}
		x := rnd.Uint64() & mask
		var want uint64
		k := 0
		for i := range 64 {
			if mask>>i&1 == 1 {
				want |= x >> i & 1 << k
				k++
			}
		}
		if got := compress(x, mask, k); got != want {
			t.Fatalf("%#x under %#x: %#x, want %#x", x, mask, got, want)
		}
	}
}
