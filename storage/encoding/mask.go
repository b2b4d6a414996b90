package encoding

import (
	"math/bits"
	"unsafe"
)

// Mask has one bit a level: 1 where the level is at most a limit. Bits behind the last level are 1.
type Mask []uint64

// maskWord compares 64 levels with a limit, four at a time: adding 0x7fff-limit carries into the top bit of those that exceed it.
func maskWord(levels *[64]uint16, add uint64) uint64 {
	const tops = 0x8000800080008000
	var w uint64
	for j, x := range (*[16]uint64)(unsafe.Pointer(levels)) {
		within := ^((x &^ tops) + add | x) & tops >> 15
		w |= within * 0x1000200040008000 >> 60 << (4 * j)
	}
	return w
}

// maskAdd is what maskWord adds for a limit below 0x8000.
func maskAdd(limit uint16) uint64 { return uint64(0x7fff-limit&0x7fff) * 0x0001000100010001 }

// MaskOf writes the mask of levels into dst[:0].
func MaskOf(dst Mask, levels []uint16, limit uint16) Mask {
	dst = dst[:0]
	add := maskAdd(limit)
	for len(levels) >= 64 {
		dst = append(dst, maskWord((*[64]uint16)(levels), add))
		levels = levels[64:]
	}
	if len(levels) > 0 {
		var last [64]uint16
		copy(last[:], levels)
		dst = append(dst, maskWord(&last, add)|^lowMask(len(levels)))
	}
	return dst
}

// Zero returns the place of zero number n, counted from 0; end where there are fewer.
func (m Mask) Zero(n, end int) int {
	for i, w := range m {
		w = ^w
		if k := bits.OnesCount64(w); n >= k {
			n -= k
			continue
		}
		for ; n > 0; n-- {
			w &= w - 1
		}
		return i*64 + bits.TrailingZeros64(w)
	}
	return end
}

// Ones counts the ones of [from, to).
func (m Mask) Ones(from, to int) int {
	if from >= to {
		return 0
	}
	n := 0
	for i := from / 64; i <= (to-1)/64; i++ {
		w := m[i]
		if i == from/64 {
			w &^= lowMask(from % 64)
		}
		if i == (to-1)/64 {
			w &= lowMask((to-1)%64 + 1)
		}
		n += bits.OnesCount64(w)
	}
	return n
}

// compare cuts levels into blocks of 64 and holds the limits of a layer as maskWord wants them.
type compare struct {
	exists, valid    uint64
	lastRep, lastDef [64]uint16 // the rest of the levels
}

func compareOf(p pageLayer) *compare {
	return &compare{exists: maskAdd(p.exists), valid: maskAdd(p.valid)}
}

// block takes up to 64 levels off rep and def; within has a one for each of them.
func (c *compare) block(rep, def *[]uint16) (r, d *[64]uint16, within uint64) {
	if n := len(*rep); n < 64 {
		copy(c.lastRep[:], *rep)
		copy(c.lastDef[:], *def)
		*rep = nil
		return &c.lastRep, &c.lastDef, lowMask(n)
	}
	r, d = (*[64]uint16)(*rep), (*[64]uint16)(*def)
	*rep, *def = (*rep)[64:], (*def)[64:]
	return r, d, ^uint64(0)
}

// begins has a one for each entry with a repetition level of at least level.
func (c *compare) begins(r *[64]uint16, level uint16) uint64 {
	if level == 0 {
		return ^uint64(0)
	}
	return ^maskWord(r, maskAdd(level-1))
}

// compress moves the bits of x that lie under the k ones of mask together; x has no others.
func compress(x, mask uint64, k int) uint64 {
	if k == 64 {
		return x
	}
	if k <= 32 {
		var out uint64
		for i := range k {
			out |= x >> (bits.TrailingZeros64(mask) & 63) & 1 << (i & 63)
			mask &= mask - 1
		}
		return out
	}
	for gaps := ^mask; gaps != 0; { // from the top down, so that places below stay true
		at := 63 - bits.LeadingZeros64(gaps)
		low := uint64(1)<<(at&63) - 1
		x = x&low | x>>1&^low
		gaps &^= 1 << (at & 63)
	}
	return x
}
