package exec

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// spreadAcc is the variance and the standard deviation of floats: count, mean and the sum of squared distances from it, which are updated and united
// without the loss of digits that sums of squares have (Welford 1962; Chan, Golub, LeVeque 1979).
type spreadAcc struct {
	states[spread]
	sample bool // of a sample: divided by n-1, NULL for one value
	root   bool
}

type spread struct {
	n        int64
	mean, m2 float64
}

func (s *spread) add(v float64) {
	s.n++
	d := v - s.mean
	s.mean += d / float64(s.n)
	s.m2 += d * (v - s.mean)
}

func (s *spread) unite(o spread) {
	switch {
	case o.n == 0:
	case s.n == 0:
		*s = o
	default:
		n := float64(s.n + o.n)
		d := o.mean - s.mean
		s.m2 += o.m2 + d*d*float64(s.n)*float64(o.n)/n
		s.mean += d * float64(o.n) / n
		s.n += o.n
	}
}

func (a *spreadAcc) update(ids []uint32, args []arrow.Array) error {
	bits, offset := validity(args[0])
	for i, v := range fixedValues[float64](args[0]) {
		if bits == nil || bitutil.BitIsSet(bits, offset+i) {
			a.s[ids[i]].add(v)
		}
	}
	return nil
}

func (a *spreadAcc) merge(src accumulator, from, to []uint32) error {
	s := src.(*spreadAcc).s
	for i, g := range from {
		a.s[to[i]].unite(s[g])
	}
	return nil
}

func (a *spreadAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	least := int64(1)
	if a.sample {
		least = 2
	}
	out := make([]float64, to-from)
	for i := range out {
		s := &a.s[from+i]
		if s.n < least {
			continue
		}
		n := s.n
		if a.sample {
			n--
		}
		if out[i] = s.m2 / float64(n); a.root {
			out[i] = math.Sqrt(out[i])
		}
	}
	return fixedArray(alloc, t, out, func(i int) bool { return a.s[from+i].n < least }), nil
}

// bitsAcc is BIT_AND, BIT_OR and BIT_XOR. No rows give what changes no other value.
type bitsAcc struct {
	states[uint64]
	f       AggFunc
	neutral uint64
}

func newBitsAcc(s states[uint64], f AggFunc) *bitsAcc {
	a := &bitsAcc{states: s, f: f}
	if f == AggBitAnd {
		a.neutral = math.MaxUint64
	}
	return a
}

// resize gives new groups the neutral value.
func (a *bitsAcc) resize(n int) error {
	before := len(a.s)
	if err := a.states.resize(n); err != nil {
		return err
	}
	for i := before; i < len(a.s); i++ {
		a.s[i] = a.neutral
	}
	return nil
}

func (a *bitsAcc) offer(g uint32, v uint64) {
	switch a.f {
	case AggBitAnd:
		a.s[g] &= v
	case AggBitOr:
		a.s[g] |= v
	default:
		a.s[g] ^= v
	}
}

func (a *bitsAcc) update(ids []uint32, args []arrow.Array) error {
	bits, offset := validity(args[0])
	for i, v := range fixedValues[uint64](args[0]) {
		if bits == nil || bitutil.BitIsSet(bits, offset+i) {
			a.offer(ids[i], v)
		}
	}
	return nil
}

func (a *bitsAcc) merge(src accumulator, from, to []uint32) error {
	s := src.(*bitsAcc).s
	for i, g := range from {
		a.offer(to[i], s[g])
	}
	return nil
}

func (a *bitsAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	return fixedArray(alloc, t, a.s[from:to], nil), nil
}
