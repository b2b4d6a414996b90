package encoding

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
)

const (
	dictionaryMax   = 4096 // most distinct values of a page that are worth one
	dictionaryShare = 8    // and each must stand for so many slots on average
	indexBytes      = 4    // dictionary indices are u32
)

// dictionaryValues returns the values as bitpacked indices into the page's distinct values, or nil where that does not save at least a quarter.
func (b *leafBuilder) dictionaryValues() chunkValues {
	limit := min(dictionaryMax, b.slots/dictionaryShare)
	seen := make(map[string]uint32, min(limit, 256))
	indices := make([]uint32, 0, b.slots)
	var ends []uint32
	var data []byte
	from := uint32(0)
	for _, to := range b.ends {
		value := b.data[from:to]
		from = to
		at, ok := seen[string(value)]
		if !ok {
			if len(seen) >= limit || 4*len(seen) > 3*len(indices)+2048 { // nearly every value is new: do not look further
				return nil
			}
			at = uint32(len(seen))
			seen[string(value)] = at
			data = append(data, value...)
			ends = append(ends, uint32(len(data)))
		}
		indices = append(indices, at)
	}
	width := bitsOf([]uint32{uint32(max(len(ends)-1, 0))})
	size := len(data) + 4*len(ends) + b.slots*width/8 + b.slots/packBlock*indexBytes
	if plain := len(b.data) + 4*b.slots; size > plain-plain/packSaving {
		return nil
	}
	return dictionaryValues{
		packedValues: packedValues{data: arrow.Uint32Traits.CastToBytes(indices), valueBytes: indexBytes},
		page:         &pageDictionary{message: variableEncoding(b.offset64), items: len(ends), buffer: variableBlock(data, ends, b.offset64)},
	}
}

// dictionaryValues are indices into the dictionary of their page. A null slot has the index of the empty value.
type dictionaryValues struct {
	packedValues
	page *pageDictionary
}

func (v dictionaryValues) dictionary() *pageDictionary { return v.page }

// variableBlock is the block form of strings: the offset width in bits, the position of the bytes, n+1 offsets from 0, the bytes.
func variableBlock(data []byte, ends []uint32, offset64 bool) []byte {
	if offset64 {
		out := binary.LittleEndian.AppendUint64(nil, 64)
		out = binary.LittleEndian.AppendUint64(out, uint64(8*(len(ends)+3)))
		out = binary.LittleEndian.AppendUint64(out, 0)
		for _, end := range ends {
			out = binary.LittleEndian.AppendUint64(out, uint64(end))
		}
		return append(out, data...)
	}
	out := binary.LittleEndian.AppendUint32(nil, 32)
	out = binary.LittleEndian.AppendUint32(out, uint32(4*(len(ends)+3)))
	out = binary.LittleEndian.AppendUint32(out, 0)
	for _, end := range ends {
		out = binary.LittleEndian.AppendUint32(out, end)
	}
	return append(out, data...)
}
