package bitmap

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
)

// postings is the stored keys of the rows of one value, in the order in which they came: the differences, which are small where keys ascend, as
// zigzag varints.
type postings struct {
	deltas []byte
	last   uint64
	count  int
}

// add appends a key and returns how many bytes the memory grew by.
func (p *postings) add(k uint64) int64 {
	if p.count > 0 && k == p.last { // an element twice in one list
		return 0
	}
	before := cap(p.deltas)
	d := int64(k - p.last)
	p.deltas = binary.AppendUvarint(p.deltas, uint64(d)<<1^uint64(d>>63))
	p.last = k
	p.count++
	return int64(cap(p.deltas) - before)
}

// appendChunk appends the keys in the form that decodeChunks reads: the size of the differences, then they themselves, beginning from 0.
func (p *postings) appendChunk(dst []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(p.deltas))), p.deltas...)
}

// decodeChunks appends the keys of any number of chunks to dst.
func decodeChunks(dst []uint64, b []byte) ([]uint64, error) {
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errs.New(errs.ErrIO, "a spilled run is broken: rows of %d bytes in %d", size, len(b))
		}
		var err error
		if dst, err = decodeDeltas(dst, b[n:n+int(size)]); err != nil {
			return nil, err
		}
		b = b[n+int(size):]
	}
	return dst, nil
}

func decodeDeltas(dst []uint64, b []byte) ([]uint64, error) {
	var last uint64
	for len(b) > 0 {
		var z uint64
		if b[0] < 0x80 {
			z, b = uint64(b[0]), b[1:]
		} else {
			n := 0
			if z, n = binary.Uvarint(b); n <= 0 {
				return nil, errs.New(errs.ErrIO, "a spilled run is broken: a row of no length")
			}
			b = b[n:]
		}
		last += uint64(int64(z>>1) ^ -int64(z&1))
		dst = append(dst, last)
	}
	return dst, nil
}

// setMaker makes sets of keys; the zero value is ready.
type setMaker struct{ lowers []uint32 }

// set returns the set of keys, which it may sort.
func (m *setMaker) set(keys []uint64) *rowset.Set {
	if !slices.IsSorted(keys) {
		slices.Sort(keys)
	}
	out := &rowset.Set{}
	for len(keys) > 0 {
		upper := uint32(keys[0] >> 32)
		m.lowers = m.lowers[:0]
		n := 0
		for n < len(keys) && uint32(keys[n]>>32) == upper {
			m.lowers = append(m.lowers, uint32(keys[n]))
			n++
		}
		part := roaring.New()
		part.AddMany(m.lowers)
		out.Adopt(upper, part)
		keys = keys[n:]
	}
	return out
}
