package encoding

import (
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
)

// packBlock is the number of values that are packed together (docs/format/writing.md section 4).
const packBlock = 1024

// packOrder is the order in which the blocks of 8 rows of a lane follow each other.
var packOrder = [8]int{0, 4, 2, 6, 1, 5, 3, 7}

type packWord interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

// packLanes packs 1024 values into width bits each. dst has 1024*width/T zeroed words. Value (r, l) of row r and lane l starts at bit r*width
// of the lane's stream; word k of the stream of lane l is dst[lanes*k+l].
func packLanes[T packWord](dst, src []T, width, wordBits int) {
	if width == 0 {
		return
	}
	lanes := packBlock / wordBits
	for r := range wordBits {
		from := src[packOrder[r/8]*16+(r%8)*128:][:lanes]
		bit := r * width
		shift := bit % wordBits
		to := dst[lanes*(bit/wordBits):][:lanes]
		for l, v := range from {
			to[l] |= v << shift
		}
		if shift+width <= wordBits {
			continue
		}
		to = dst[lanes*(bit/wordBits+1):][:lanes]
		for l, v := range from {
			to[l] |= v >> (wordBits - shift)
		}
	}
}

// bitsOf returns the width of the largest of the values, which are treated as unsigned.
func bitsOf[T packWord](src []T) int {
	var or T
	for _, v := range src {
		or |= v
	}
	return bits.Len64(uint64(or))
}

// appendPacked appends one block of at most 1024 values in packed form: a word with the width, then the words. Missing values are zero.
func appendPacked[T packWord](dst []byte, src []T, wordBits int) []byte {
	if len(src) < packBlock {
		var in [packBlock]T
		copy(in[:], src)
		return appendPacked(dst, in[:], wordBits)
	}
	var out [packBlock + 1]T
	width := bitsOf(src)
	out[0] = T(width)
	words := out[:1+packBlock*width/wordBits]
	packLanes(words[1:], src, width, wordBits)
	return append(dst, wordBytes(words)...)
}

// wordBytes views words as the bytes that they are on disk.
func wordBytes[T packWord](words []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*int(unsafe.Sizeof(words[0])))
}

// appendInlinePacked appends the n values of valueBytes each as an inline bitpacked block.
func appendInlinePacked(dst, values []byte, valueBytes int) []byte {
	switch valueBytes {
	case 1:
		return appendPacked(dst, values, 8)
	case 2:
		return appendPacked(dst, arrow.Uint16Traits.CastFromBytes(values), 16)
	case 4:
		return appendPacked(dst, arrow.Uint32Traits.CastFromBytes(values), 32)
	}
	return appendPacked(dst, arrow.Uint64Traits.CastFromBytes(values), 64)
}

// widthOf returns the width of the largest of the fixed-width values.
func widthOf(values []byte, valueBytes int) int {
	switch valueBytes {
	case 1:
		return bitsOf(values)
	case 2:
		return bitsOf(arrow.Uint16Traits.CastFromBytes(values))
	case 4:
		return bitsOf(arrow.Uint32Traits.CastFromBytes(values))
	}
	return bitsOf(arrow.Uint64Traits.CastFromBytes(values))
}

// appendLevels appends levels in the out-of-line bitpacked form: blocks of 1024, then the tail packed or as it is, whichever the
// reader will deduce from the size (docs/format/writing.md section 3).
func appendLevels(dst []byte, levels []uint16, width int) []byte {
	var in, out [packBlock]uint16
	wordsPerBlock := packBlock * width / 16
	pack := func(block []uint16) {
		words := out[:wordsPerBlock]
		clear(words)
		packLanes(words, block, width, 16)
		dst = append(dst, arrow.Uint16Traits.CastToBytes(words)...)
	}
	for len(levels) >= packBlock {
		pack(levels[:packBlock])
		levels = levels[packBlock:]
	}
	tail := len(levels)
	switch {
	case tail == 0:
	case width*(packBlock-tail) < (16-width)*tail:
		clear(in[:])
		copy(in[:], levels)
		pack(in[:])
	default:
		dst = append(dst, arrow.Uint16Traits.CastToBytes(levels)...)
	}
	return dst
}
