package vec

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

// rowReader turns stored rows into float32 slices.
type rowReader struct {
	elem    Elem
	inPlace bool // float32 rows can be read where they lie
	scratch []float32
}

// nativeLittle is a constant so that the branch costs nothing: the byte order of every platform that Go's assembler here targets.
func nativeLittle() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}

func newRowReader(e Elem, dim int) rowReader {
	return rowReader{elem: e, inPlace: e == Float32 && dim > 0 && nativeLittle(), scratch: make([]float32, dim)}
}

// read returns the elements of row; the slice is valid until the next call.
func (r *rowReader) read(row []byte) []float32 {
	if r.inPlace && uintptr(unsafe.Pointer(&row[0]))%4 == 0 {
		return unsafe.Slice((*float32)(unsafe.Pointer(&row[0])), len(r.scratch))
	}
	Decode(r.scratch, r.elem, row)
	return r.scratch
}

// Decode sets dst to the len(dst) elements of type e in src.
func Decode(dst []float32, e Elem, src []byte) {
	src = src[:len(dst)*e.Size()]
	switch e {
	case Float32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case Float16:
		for i := range dst {
			dst[i] = HalfToFloat(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BFloat16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case Float64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	case Uint8:
		for i := range dst {
			dst[i] = float32(src[i])
		}
	case Int8:
		for i := range dst {
			dst[i] = float32(int8(src[i]))
		}
	}
}

// HalfToFloat converts an IEEE half to float32, exactly.
func HalfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0: // zero and denormals: fraction * 2^-24 is exact
		f := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// FloatToHalf converts to the nearest IEEE half, ties to even; too large values become infinite.
func FloatToHalf(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x477ff000: // rounds to 65536 or more
		return sign | 0x7c00
	case b < 0x38800000: // below the smallest normal half: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24)))
	}
	b += 0xfff + (b>>13)&1
	return sign | uint16((b-0x38000000)>>13)
}

// l2Row and dotRow keep eight sums, so that the additions of different sums overlap.
func l2Row(q, v []float32) float32 {
	v = v[:len(q)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(q) >= 8 {
		a, b := q[:8:8], v[:8:8]
		d0, d1, d2, d3 := a[0]-b[0], a[1]-b[1], a[2]-b[2], a[3]-b[3]
		d4, d5, d6, d7 := a[4]-b[4], a[5]-b[5], a[6]-b[6], a[7]-b[7]
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
		s4 += d4 * d4
		s5 += d5 * d5
		s6 += d6 * d6
		s7 += d7 * d7
		q, v = q[8:], v[8:]
	}
	for i, x := range q {
		d := x - v[i]
		s0 += d * d
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}

func dotRow(q, v []float32) float32 {
	v = v[:len(q)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(q) >= 8 {
		a, b := q[:8:8], v[:8:8]
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		q, v = q[8:], v[8:]
	}
	for i, x := range q {
		s0 += x * v[i]
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}

// Norm2 returns the squared norm of v.
func Norm2(v []float32) float32 { return dotRow(v, v) }

// Hamming sets dst[i] to the number of bits in which query and row i of b differ. Eight bytes a step keep up with memory in plain Go.
func Hamming(dst []float32, query []byte, b Block) {
	b.check(len(query), len(dst))
	for j := range b.Rows {
		start := b.Offset + j*b.Stride
		dst[j] = float32(hammingRow(query, b.Data[start:start+len(query)]))
	}
}

// HammingAt is Hamming for the rows that start at data[offsets[i]].
func HammingAt(dst []float32, query, data []byte, offsets []int) {
	checkOffsets(data, offsets, len(query), len(dst))
	for j, start := range offsets {
		dst[j] = float32(hammingRow(query, data[start:start+len(query)]))
	}
}

func hammingRow(q, v []byte) int {
	v = v[:len(q)]
	n := 0
	for len(q) >= 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(q) ^ binary.LittleEndian.Uint64(v))
		q, v = q[8:], v[8:]
	}
	for i, x := range q {
		n += bits.OnesCount8(x ^ v[i])
	}
	return n
}
