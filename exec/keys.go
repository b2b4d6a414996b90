package exec

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/zeebo/xxh3"
)

// noGroup is the id of a key that is in no table.
const noGroup = math.MaxUint32

// hashWord spreads a 64-bit key over all bits.
func hashWord(w uint64) uint64 {
	hi, lo := bits.Mul64(w^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return hi ^ lo
}

// hashPair spreads two words over all bits.
func hashPair(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xe7037ed1a0b428db)
	return hashWord(hi ^ lo)
}

func hashBytes(b []byte) uint64 { return xxh3.Hash(b) }

// isWordKey says whether a value of the type is a fixed number of at most 8 bytes that fits a hash table of words.
func isWordKey(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64, arrow.FLOAT32, arrow.FLOAT64,
		arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return true
	}
	return false
}

func isStringKey(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return true
	}
	return false
}

// fixedValues returns the values of a primitive array as T, whose size must be the type's.
func fixedValues[T any](a arrow.Array) []T {
	d := a.Data()
	if d.Len() == 0 || d.Buffers()[1] == nil {
		return nil
	}
	b := d.Buffers()[1].Bytes()
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)[d.Offset():][:d.Len()]
}

// validity returns the bitmap of a and the position of its first bit; a nil bitmap means that no value is NULL.
func validity(a arrow.Array) ([]byte, int) {
	if a.NullN() == 0 {
		return nil, 0
	}
	if b := a.NullBitmapBytes(); len(b) > 0 {
		return b, a.Data().Offset()
	}
	return make([]byte, (a.Len()+7)/8), 0 // the null type has no bitmap
}

// keyWords writes every value as a word: equal values give equal words. -0 is 0 and every NaN is one NaN. Values under NULL are anything.
func keyWords(a arrow.Array, out []uint64) {
	switch a.DataType().ID() {
	case arrow.BOOL:
		b, offset := a.Data().Buffers()[1].Bytes(), a.Data().Offset()
		for i := range out {
			out[i] = uint64(b[(offset+i)>>3]>>((offset+i)&7)) & 1
		}
	case arrow.INT8, arrow.UINT8:
		widen(fixedValues[uint8](a), out)
	case arrow.INT16, arrow.UINT16:
		widen(fixedValues[uint16](a), out)
	case arrow.INT32, arrow.UINT32, arrow.DATE32, arrow.TIME32:
		widen(fixedValues[uint32](a), out)
	case arrow.FLOAT32:
		for i, v := range fixedValues[float32](a) {
			out[i] = uint64(math.Float32bits(canonical(v)))
		}
	case arrow.FLOAT64:
		for i, v := range fixedValues[float64](a) {
			out[i] = math.Float64bits(canonical(v))
		}
	default:
		copy(out, fixedValues[uint64](a))
	}
}

func widen[T uint8 | uint16 | uint32](in []T, out []uint64) {
	for i, v := range in {
		out[i] = uint64(v)
	}
}

func canonical[T float32 | float64](v T) T {
	if v == 0 {
		return 0
	}
	if v != v {
		return T(math.NaN())
	}
	return v
}

// shortMax is the longest byte key that is kept inside a slot.
const shortMax = 15

// longMark in the top byte of the second word says that the first one is the hash of a long key.
const longMark = 0xff << 56

var lowMask, highMask = func() (lo, hi [shortMax + 1]uint64) {
	for n := range lo {
		switch {
		case n < 8:
			lo[n] = 1<<(8*n) - 1
		default:
			lo[n] = math.MaxUint64
			hi[n] = 1<<(8*(n-8)) - 1
		}
	}
	return lo, hi
}()

// shortKey packs data[start:start+n], n <= shortMax, into two words; the length is in the top byte of the second.
func shortKey(data []byte, start, n int) (uint64, uint64) {
	var lo, hi uint64
	if start+16 <= len(data) {
		lo = binary.LittleEndian.Uint64(data[start:])
		hi = binary.LittleEndian.Uint64(data[start+8:])
	} else {
		var buf [16]byte
		copy(buf[:], data[start:start+n])
		lo, hi = binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint64(buf[8:])
	}
	n &= shortMax
	return lo & lowMask[n], hi&highMask[n] | uint64(n)<<56
}

// byteKeys is a column of byte strings: key i is data[starts[i]:ends[i]].
type byteKeys[O int32 | int64] struct {
	offsets   []O // one more than keys
	data      []byte
	bits      []byte // nil = none is NULL
	bitOffset int
}

func stringKeys[O int32 | int64](a arrow.Array) byteKeys[O] {
	d := a.Data()
	k := byteKeys[O]{}
	k.bits, k.bitOffset = validity(a)
	if d.Len() == 0 || d.Buffers()[1] == nil {
		k.offsets = make([]O, d.Len()+1)
		return k
	}
	b := d.Buffers()[1].Bytes()
	var zero O
	k.offsets = unsafe.Slice((*O)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))[d.Offset():][:d.Len()+1]
	if d.Buffers()[2] != nil {
		k.data = d.Buffers()[2].Bytes()
	}
	return k
}

func (k *byteKeys[O]) null(i int) bool {
	return k.bits != nil && !bitutil.BitIsSet(k.bits, k.bitOffset+i)
}
