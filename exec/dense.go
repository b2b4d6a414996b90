package exec

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// denseGrouper numbers integer keys of a narrow range through an array: no hashing, one memory access. Keys outside the range it was made for must
// not be assigned.
type denseGrouper struct {
	base, bias uint64   // key word w stands at (w ^ bias) - base
	slots      []uint32 // id + 1; 0 = free
	n          int
	nullID     uint32
	words      []uint64
}

const (
	denseSlack  = 1 << 10
	denseFactor = 4 // slots per row at most
)

// signBias orders key words of signed types like their values.
func signBias(t arrow.DataType) (uint64, bool) {
	switch t.ID() {
	case arrow.INT8:
		return 1 << 7, true
	case arrow.INT16:
		return 1 << 15, true
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		return 1 << 31, true
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return 1 << 63, true
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return 0, true
	}
	return 0, false
}

// newDenseGrouper returns nil where the type or the spread of the values does not allow it.
func newDenseGrouper(res *mem.Reservation, keys arrow.Array) (grouper, error) {
	bias, ok := signBias(keys.DataType())
	if !ok || keys.Len() == keys.NullN() {
		return nil, nil
	}
	var words []uint64
	words = wordsOf(keys, keys.Len(), &words)
	bits, offset := validity(keys)
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for i, w := range words {
		if bits == nil || bitutil.BitIsSet(bits, offset+i) {
			lo, hi = min(lo, w^bias), max(hi, w^bias)
		}
	}
	if hi-lo >= uint64(keys.Len())*denseFactor+denseSlack {
		return nil, nil
	}
	g := &denseGrouper{base: lo, bias: bias, nullID: noGroup}
	if err := res.Grow(4 * int64(hi-lo+1)); err != nil {
		return nil, err
	}
	g.slots = make([]uint32, hi-lo+1)
	return g, nil
}

func (g *denseGrouper) assign(cols []arrow.Array, n int, ids []uint32) error {
	words := wordsOf(cols[0], n, &g.words)
	bits, offset := validity(cols[0])
	for i, w := range words {
		if bits != nil && !bitutil.BitIsSet(bits, offset+i) {
			if g.nullID == noGroup {
				g.nullID = uint32(g.n)
				g.n++
			}
			ids[i] = g.nullID
			continue
		}
		at := (w ^ g.bias) - g.base
		if at >= uint64(len(g.slots)) {
			return errs.New(errs.ErrInternal, "key outside the range of its table")
		}
		if g.slots[at] == 0 {
			g.n++
			g.slots[at] = uint32(g.n)
		}
		ids[i] = g.slots[at] - 1
	}
	return nil
}

func (g *denseGrouper) find(s *findScratch, cols []arrow.Array, n int, ids []uint32) error {
	words := wordsOf(cols[0], n, &s.words)
	bits, offset := validity(cols[0])
	slots, base, bias := g.slots, g.base, g.bias
	for i, w := range words {
		id := uint32(noGroup)
		if at := (w ^ bias) - base; at < uint64(len(slots)) {
			id = slots[at] - 1 // 0 - 1 = noGroup
		}
		if bits != nil && !bitutil.BitIsSet(bits, offset+i) {
			id = g.nullID
		}
		ids[i] = id
	}
	return nil
}

func (g *denseGrouper) count() int { return g.n }

func (g *denseGrouper) hashes([]uint64) ([]uint64, error) {
	return nil, errs.New(errs.ErrInternal, "a dense table keeps no keys")
}

func (g *denseGrouper) keys(memory.Allocator, int, int) ([]arrow.Array, error) {
	return nil, errs.New(errs.ErrInternal, "a dense table keeps no keys")
}

func (g *denseGrouper) close() {}
