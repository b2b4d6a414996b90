package vector

import (
	"encoding/binary"

	"github.com/lakesql/lakesql/internal/errs"
)

// Extended RaBitQ codes: the bits below the sign of each rotated element, row-major, in blocks of 64 elements padded with zeros. Bytes are taken
// eight at a time: a shift and a mask act on eight elements.
const (
	exBlock = 64
	exMax   = 8

	ones    = 0x0101010101010101
	twoBits = 0x0303030303030303
	nibbles = 0x0f0f0f0f0f0f0f0f
	sixBits = 0x3f3f3f3f3f3f3f3f
)

// exRowBytes is the size of one row's codes of so many bits over dim elements.
func exRowBytes(dim, bits int) int { return (dim + exBlock - 1) / exBlock * exBlock / 8 * bits }

// unpackExtended writes one byte for each of the padded elements of a row. The layouts are drawn in docs/format/ivf.md section 6.
func unpackExtended(dst, src []byte, bits int) error {
	size := exBlock / 8 * bits
	for len(src) >= size && len(dst) >= exBlock {
		d, s := dst[:exBlock:exBlock], src[:size:size]
		switch bits {
		case 1:
			for i, b := range s {
				put(d, 8*i, spread(b))
			}
		case 2:
			unpackPairs(d, s)
		case 3:
			unpackPairs(d, s)
			orPlane(d, s[16:], 2)
		case 4:
			for i := 0; i < 32; i += 8 {
				x := get(s, i)
				put(d, 2*i, x&nibbles)
				put(d, 2*i+8, x>>4&nibbles)
			}
		case 5:
			for i := 0; i < 32; i += 8 {
				x, at := get(s, i), i/16*32+i%16
				put(d, at, x&nibbles)
				put(d, at+16, x>>4&nibbles)
			}
			orPlane(d, s[32:], 4)
		case 6:
			unpackSixes(d, s)
		case 7:
			unpackSixes(d, s)
			orPlane(d, s[48:], 6)
		case exMax:
			copy(d, s)
		default:
			return errs.New(errs.ErrUnsupported, "extended codes of %d bits", bits)
		}
		dst, src = dst[exBlock:], src[size:]
	}
	return nil
}

func get(b []byte, at int) uint64    { return binary.LittleEndian.Uint64(b[at:]) }
func put(b []byte, at int, x uint64) { binary.LittleEndian.PutUint64(b[at:], x) }

// spread puts bit k of b into byte k.
func spread(b byte) uint64 {
	const each = 0x8040201008040201 // bit k of byte k
	return (uint64(b)*ones&each + ones*0x7f) >> 7 & ones
}

// unpackPairs: byte j has the two bits of elements j, j+16, j+32, j+48.
func unpackPairs(d, s []byte) {
	for i := 0; i < 16; i += 8 {
		x := get(s, i)
		for k := range 4 {
			put(d, 16*k+i, x>>(2*k)&twoBits)
		}
	}
}

// unpackSixes: the low six bits of byte j are element j < 48; the high two bits of bytes j, j+16 and j+32 are element 48+j.
func unpackSixes(d, s []byte) {
	for i := 0; i < 48; i += 8 {
		put(d, i, get(s, i)&sixBits)
	}
	for i := 0; i < 16; i += 8 {
		put(d, 48+i, get(s, i)>>6&twoBits|get(s, i+16)>>6&twoBits<<2|get(s, i+32)>>6&twoBits<<4)
	}
}

// orPlane adds one bit to each element: bit k of byte m belongs to element 8k+m.
func orPlane(d, s []byte, bit int) {
	x := get(s, 0)
	for k := range 8 {
		put(d, 8*k, get(d, 8*k)|x>>k&ones<<bit)
	}
}
