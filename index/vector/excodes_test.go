package vector

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
)

// place says where bit number of an element lies in a block of 64: the drawing of docs/format/ivf.md section 6, one bit at a time.
func place(bits, element, number int) (byteAt, bit int) {
	plane := func(first int) (int, int) { return first + element%8, element / 8 }
	six := func() (int, int) {
		if element < 48 {
			return element, number
		}
		return element - 48 + number/2*16, 6 + number%2
	}
	switch bits {
	case 1:
		return element / 8, element % 8
	case 2:
		return element % 16, element/16*2 + number
	case 3:
		if number == 2 {
			return plane(16)
		}
		return place(2, element, number)
	case 4:
		return element/16*8 + element%8, element/8%2*4 + number
	case 5:
		if number == 4 {
			return plane(32)
		}
		return element/32*16 + element%16, element/16%2*4 + number
	case 6:
		return six()
	case 7:
		if number == 6 {
			return plane(48)
		}
		return six()
	}
	return element, number
}

func TestExtendedCodesUnpackBitByBit(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for bits := 1; bits <= exMax; bits++ {
		for _, blocks := range []int{1, 3} {
			want, packed := make([]byte, 64*blocks), make([]byte, 8*bits*blocks)
			for i := range want {
				want[i] = byte(r.IntN(1 << bits))
				for number := range bits {
					at, bit := place(bits, i%64, number)
					packed[i/64*8*bits+at] |= want[i] >> number & 1 << bit
				}
			}
			got := make([]byte, 64*blocks)
			if err := unpackExtended(got, packed, bits); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%d bits: got %v %v, want %v", bits, got, err, want)
			}
			if size := exRowBytes(64*blocks-5, bits); size != len(packed) {
				t.Fatalf("%d bits: %d bytes a row, want %d", bits, size, len(packed))
			}
		}
	}
	if err := unpackExtended(make([]byte, 64), make([]byte, 72), 9); !errors.Is(err, errs.ErrUnsupported) {
		t.Fatalf("nine bits: %v", err)
	}
}

func TestRotationKeepsLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	for _, dim := range []int{8, 16, 24, 64, 96, 200, 768} {
		turn := &rotated{signs: make([]byte, rotationRounds*dim/8)}
		for i := range turn.signs {
			turn.signs[i] = byte(r.Uint32())
		}
		a, b := make([]float32, dim), make([]float32, dim)
		for i := range a {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		var before, after float64
		x, y := turn.rotate(a), turn.rotate(b)
		for i := range a {
			before += float64(a[i]-b[i]) * float64(a[i]-b[i])
			after += float64(x[i]-y[i]) * float64(x[i]-y[i])
		}
		if after < before*0.999 || after > before*1.001 {
			t.Fatalf("dimension %d: squared distance %v became %v", dim, before, after)
		}
	}
}
