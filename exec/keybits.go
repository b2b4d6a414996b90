package exec

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/lakesql/lakesql/internal/mem"
)

// keyBits is a set of integers as a bitmap over their range.
type keyBits struct {
	base, bias uint64 // word w is bit (w ^ bias) - base
	bits       []uint64
}

const (
	keyBitsPerKey = 1 << 14 // bits for each key at most, but
	keyBitsMin    = 1 << 16 // so many are always fine
	keyBitsMax    = 1 << 23 // and no more: the second cache holds them
)

// newKeyBits returns nil where the type or the spread of the keys does not allow it. No key is NULL.
func newKeyBits(res *mem.Reservation, keys arrow.Array) (*keyBits, error) {
	bias, ok := signBias(keys.DataType())
	if !ok || keys.Len() == 0 {
		return nil, nil
	}
	var words []uint64
	words = wordsOf(keys, keys.Len(), &words)
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for _, w := range words {
		lo, hi = min(lo, w^bias), max(hi, w^bias)
	}
	if hi-lo >= uint64(min(max(keys.Len()*keyBitsPerKey, keyBitsMin), keyBitsMax)) {
		return nil, nil
	}
	k := &keyBits{base: lo, bias: bias, bits: make([]uint64, (hi-lo)/64+1)}
	if err := res.Grow(8 * int64(len(k.bits))); err != nil {
		return nil, err
	}
	for _, w := range words {
		at := (w ^ bias) - lo
		k.bits[at>>6] |= 1 << (at & 63)
	}
	return k, nil
}

// rows returns the positions of the words that are in the set and not NULL, in the memory of out where it is enough.
func (k *keyBits) rows(words []uint64, valid []byte, offset int, out []int32) []int32 {
	n := 0
	out = resized(out, len(words))
	set, base, bias := k.bits, k.base, k.bias
	for i, w := range words {
		at := (w ^ bias) - base
		hit := 0
		if word := at >> 6; word < uint64(len(set)) {
			hit = int(set[word] >> (at & 63) & 1)
		}
		out[n] = int32(i)
		n += hit
	}
	out = out[:n]
	if valid == nil {
		return out
	}
	kept := out[:0]
	for _, r := range out {
		if bitutil.BitIsSet(valid, offset+int(r)) {
			kept = append(kept, r)
		}
	}
	return kept
}
