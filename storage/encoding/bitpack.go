package encoding

import (
	"encoding/binary"
	"unsafe"
)

// blockValues is how many values one packed block holds, whatever the word.
const blockValues = 1024

// packedRow is the block's order of eights: row r of a block holds the values packedRow[r/8]*16 + r%8*128 and following.
var packedRow = [8]int{0, 4, 2, 6, 1, 5, 3, 7}

// unpack expands one block of 1024 values of wordBits (8, 16, 32 or 64), packed to width bits each, into dst.
// dst has 128*wordBits bytes, src at least 128*width bytes, 0 <= width <= wordBits.
//
// A block is a matrix of wordBits rows by 1024/wordBits lanes. Whatever the word, a row is 128 bytes, and so is a word of all
// lanes; 16 registers of 8 bytes hold either. So one kernel serves all words: shift all lanes of a row at once and mask off
// what came over from the neighbour lane. There is no branch per value.
func unpack(dst, src []byte, wordBits, width int) {
	switch width {
	case 0:
		clear(dst[:128*wordBits])
		return
	case wordBits:
		unpackPlain(dst, src, wordBits)
		return
	}
	mask := spread(lowMask(width), wordBits)
	for r := range wordBits {
		first := packedRow[r>>3]*16 + (r&7)*128
		out := (*[128]byte)(dst[first*wordBits/8:])
		pos := r * width
		k, s := pos/wordBits, pos%wordBits
		a := (*[128]byte)(src[k*128:])
		if left := wordBits - s; left < width {
			b := (*[128]byte)(src[(k+1)*128:])
			low := spread(lowMask(left), wordBits)
			unpackSplit(out, a, b, uint(s), low, uint(left), mask&^low)
		} else {
			unpackWhole(out, a, uint(s), mask)
		}
	}
}

// unpackPlain handles width = wordBits, where packing only reorders.
func unpackPlain(dst, src []byte, wordBits int) {
	for r := range wordBits {
		first := packedRow[r>>3]*16 + (r&7)*128
		copy(dst[first*wordBits/8:][:128], src[r*128:][:128])
	}
}

// spread repeats the low bits of m in every lane of a register.
func spread(m uint64, wordBits int) uint64 {
	switch wordBits {
	case 8:
		return m * 0x0101010101010101
	case 16:
		return m * 0x0001000100010001
	case 32:
		return m * 0x0000000100000001
	default:
		return m
	}
}

// unpackWhole is a row whose values lie in one word: dst = a>>s & mask, lane by lane.
func unpackWhole(dst, a *[128]byte, s uint, mask uint64) {
	d, x := (*[16]uint64)(unsafe.Pointer(dst)), (*[16]uint64)(unsafe.Pointer(a))
	s &= 63
	for i := 0; i < 16; i += 4 {
		d[i] = x[i] >> s & mask
		d[i+1] = x[i+1] >> s & mask
		d[i+2] = x[i+2] >> s & mask
		d[i+3] = x[i+3] >> s & mask
	}
}

// unpackSplit is a row whose values begin in word a and end in word b.
func unpackSplit(dst, a, b *[128]byte, s uint, low uint64, t uint, high uint64) {
	d, x, y := (*[16]uint64)(unsafe.Pointer(dst)), (*[16]uint64)(unsafe.Pointer(a)), (*[16]uint64)(unsafe.Pointer(b))
	s &= 63
	t &= 63
	for i := 0; i < 16; i += 4 {
		d[i] = x[i]>>s&low | y[i]<<t&high
		d[i+1] = x[i+1]>>s&low | y[i+1]<<t&high
		d[i+2] = x[i+2]>>s&low | y[i+2]<<t&high
		d[i+3] = x[i+3]>>s&low | y[i+3]<<t&high
	}
}

// isWord reports whether b is a word size that values can be packed in.
func isWord(b uint64) bool { return b == 8 || b == 16 || b == 32 || b == 64 }

// inlineWidth reads the width word at the head of an inline-packed buffer and returns the packed block behind it.
func inlineWidth(src []byte, wordBits int) (block []byte, width int, err error) {
	head := wordBits / 8
	if len(src) < head {
		return nil, 0, corrupt("bitpacked values", "%d bytes hold no width", len(src))
	}
	var w uint64
	switch wordBits {
	case 8:
		w = uint64(src[0])
	case 16:
		w = uint64(binary.LittleEndian.Uint16(src))
	case 32:
		w = uint64(binary.LittleEndian.Uint32(src))
	default:
		w = binary.LittleEndian.Uint64(src)
	}
	if w > uint64(wordBits) {
		return nil, 0, corrupt("bitpacked values", "width %d of %d-bit values", w, wordBits)
	}
	if block = src[head:]; len(block) < int(w)*128 {
		return nil, 0, corrupt("bitpacked values", "%d bytes for 1024 values of %d bits", len(block), w)
	}
	return block, int(w), nil
}

// packedTail returns how n values that were packed out of line lie in src: whole blocks, then a tail of plain words or one more block.
func packedTail(src []byte, wordBits, width, n int) (full, tail int, plain bool, err error) {
	full, tail = n/blockValues, n%blockValues
	need := full * 128 * width
	if plain = len(src) == need+tail*wordBits/8; !plain && tail > 0 {
		need += 128 * width
	}
	if len(src) < need {
		return 0, 0, false, corrupt("bitpacked values", "%d bytes for %d values of %d bits", len(src), n, width)
	}
	return full, tail, plain, nil
}

// unpackMany expands n values that were packed out of line: whole blocks, then a tail that is either one more block or plain words.
// dst has room for n rounded up to blocks.
func unpackMany(dst, src []byte, wordBits, width, n int) error {
	blockBytes, outBytes, word := 128*width, 128*wordBits, wordBits/8
	full, tail, plain, err := packedTail(src, wordBits, width, n)
	if err != nil {
		return err
	}
	for i := range full {
		unpack(dst[i*outBytes:], src[i*blockBytes:], wordBits, width)
	}
	if tail == 0 {
		return nil
	}
	if plain {
		copy(dst[full*outBytes:], src[full*blockBytes:][:tail*word])
		return nil
	}
	unpack(dst[full*outBytes:], src[full*blockBytes:], wordBits, width)
	return nil
}

// unpackOne returns value i of a packed block. packedRow is its own inverse, so the place follows from i by the same table.
func unpackOne(src []byte, wordBits, width, i int) uint64 {
	if width == 0 {
		return 0
	}
	lanes := blockValues / wordBits
	rest := i & 127
	r := packedRow[rest/lanes*lanes/16]*8 + i>>7
	lane := rest & (lanes - 1)
	pos := r * width
	k, s := pos/wordBits, pos%wordBits
	word := wordBits / 8
	at := (k*lanes + lane) * word
	v := littleEndian(src[at:at+word]) >> s
	if left := wordBits - s; left < width {
		at += lanes * word
		v |= littleEndian(src[at:at+word]) << left
	}
	return v & lowMask(width)
}

// fewValues is up to how many values of a block are cheaper to unpack one by one.
const fewValues = 24
