package expr

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/lakesql/lakesql/internal/mem"
)

// vector is a column of values in mid-computation, or one value that stands for all rows (I4).
type vector struct {
	t     arrow.DataType
	c     class
	n     int    // values stored: rows, or 1 when konst
	konst bool   // one value for every row
	valid []byte // LSB bitmap from bit 0, nil = no NULL; bits past n are undefined
	// one of these, by class
	bits []byte
	i    []int64
	u    []uint64
	f    []float64
	d    []decimal128.Num
	w    []decimal256.Num
	off  []int32 // n+1 offsets into data
	data []byte
	arr  arrow.Array
	// src is the input column that the vector was loaded from unchanged, so that a bare column costs nothing.
	src arrow.Array
}

// at maps a row to the place of its value.
func (v *vector) at(row int) int {
	if v.konst {
		return 0
	}
	return row
}

// mask is -1 for columns and 0 for constants: row & mask is the place of the value.
func (v *vector) mask() int {
	if v.konst {
		return 0
	}
	return -1
}

func (v *vector) null(row int) bool {
	return v.valid != nil && !bitutil.BitIsSet(v.valid, v.at(row))
}

// nullConst reports whether the vector is the constant NULL.
func (v *vector) nullConst() bool { return v.c == classNull || (v.konst && v.null(0)) }

func (v *vector) str(row int) []byte {
	row = v.at(row)
	return v.data[v.off[row]:v.off[row+1]]
}

func (v *vector) bit(row int) bool { return bitutil.BitIsSet(v.bits, v.at(row)) }

// The scratch that a state takes at once: little at first, since constants have states of their own, doubling up to the largest chunk.
const (
	arenaFirstBytes = 512
	arenaChunkBytes = 256 << 10
)

// arena hands out scratch memory for one Eval; the memory is dirty.
type arena struct {
	chunks [][]byte
	chunk  int
	used   int
	held   *mem.Reservation // pays for what is too large for a chunk
}

func (a *arena) reset() {
	a.chunk, a.used = 0, 0
	a.held.Free()
}

// bytes returns n bytes, 8-byte aligned and with at least 8 bytes of room behind them, so that bitmaps are handled word by word.
func (a *arena) bytes(n int) []byte {
	need := (n + 8 + 63) &^ 63
	if need > arenaChunkBytes/2 {
		if err := a.held.Grow(int64(need)); err != nil {
			panic(err) // as an allocator does; spawn.Guard makes it the error
		}
		return make([]byte, need)[:n:need]
	}
	for a.chunk < len(a.chunks) && a.used+need > len(a.chunks[a.chunk]) {
		a.chunk++
		a.used = 0
	}
	if a.chunk == len(a.chunks) {
		size := arenaFirstBytes
		if a.chunk > 0 {
			size = min(2*len(a.chunks[a.chunk-1]), arenaChunkBytes)
		}
		a.chunks = append(a.chunks, make([]byte, max(size, need)))
		a.used = 0
	}
	b := a.chunks[a.chunk][a.used : a.used+n : a.used+need]
	a.used += need
	return b
}

func castSlice[T any](b []byte) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	if len(b) < size {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

func makeSlice[T any](a *arena, n int) []T {
	if n == 0 {
		return []T{}
	}
	var z T
	return castSlice[T](a.bytes(n * int(unsafe.Sizeof(z))))[:n]
}

func bitmapBytes(n int) int { return (n + 63) / 64 * 8 }

// bitmap returns a dirty bitmap of n bits, whole words.
func (a *arena) bitmap(n int) []byte { return a.bytes(bitmapBytes(n)) }

// ones returns a bitmap of n set bits.
func (a *arena) ones(n int) []byte {
	b := a.bitmap(n)
	for i := range b {
		b[i] = 0xff
	}
	return b
}

func (a *arena) zeros(n int) []byte {
	b := a.bitmap(n)
	clear(b)
	return b
}

func word(b []byte, w int) uint64       { return binary.LittleEndian.Uint64(b[w*8:]) }
func putWord(b []byte, w int, v uint64) { binary.LittleEndian.PutUint64(b[w*8:], v) }

// alignBitmap returns bits [offset, offset+n) of an Arrow bitmap as one from bit 0 in whole words; it aliases src where it can.
func (a *arena) alignBitmap(src []byte, offset, n int) []byte {
	need := bitmapBytes(n)
	if offset%8 == 0 && len(src)-offset/8 >= need {
		return src[offset/8 : offset/8+need : offset/8+need]
	}
	b := a.bitmap(n)
	if need > 0 {
		putWord(b, need/8-1, 0)
	}
	bitutil.CopyBitmap(src, offset, n, b, 0)
	return b
}

// andBitmaps returns x AND y; nil means all set.
func (a *arena) andBitmaps(x, y []byte, n int) []byte {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	out := a.bitmap(n)
	for w := range len(out) / 8 {
		putWord(out, w, word(x, w)&word(y, w))
	}
	return out
}

// countBits counts the set bits among the first n.
func countBits(b []byte, n int) int {
	count := 0
	for w := range n / 64 {
		count += bits.OnesCount64(word(b, w))
	}
	if r := n % 64; r != 0 {
		count += bits.OnesCount64(word(b, n/64) & (1<<r - 1))
	}
	return count
}

// selected appends the positions of the set bits among the first n.
func selected(dst []int32, b []byte, n int) []int32 {
	for w := range (n + 63) / 64 {
		x := word(b, w)
		if r := n - w*64; r < 64 {
			x &= 1<<r - 1
		}
		for ; x != 0; x &= x - 1 {
			dst = append(dst, int32(w*64+bits.TrailingZeros64(x)))
		}
	}
	return dst
}

// newVector makes a vector of n dirty values of type t's class. Strings and nested values are filled by their makers.
func (s *state) newVector(t arrow.DataType, n int) vector {
	v := vector{t: t, c: classOf(t), n: n}
	switch v.c {
	case classBool:
		v.bits = s.bitmap(n)
	case classUint:
		v.u = makeSlice[uint64](s.arena, n)
	case classFloat:
		v.f = makeSlice[float64](s.arena, n)
	case classDecimal:
		v.d = makeSlice[decimal128.Num](s.arena, n)
	case classWide:
		v.w = makeSlice[decimal256.Num](s.arena, n)
	case classString:
		v.off = makeSlice[int32](s.arena, n+1)
		v.off[0] = 0
	case classNull, classNested:
	default:
		v.i = makeSlice[int64](s.arena, n)
	}
	return v
}

// nullVector returns the constant NULL of type t.
func (s *state) nullVector(t arrow.DataType) vector {
	v := s.newVector(t, 1)
	v.konst = true
	v.valid = s.zeros(1)
	v.clearValues()
	if v.c == classNested {
		v.arr = s.keep(makeNulls(t, 1))
	}
	return v
}

// clearValues makes every value zero, so that values under NULL are harmless.
func (v *vector) clearValues() {
	clear(v.bits)
	clear(v.i)
	clear(v.u)
	clear(v.f)
	clear(v.d)
	clear(v.w)
	clear(v.off)
}

// ownValid makes the validity bitmap writable.
func (s *state) ownValid(v *vector) {
	old := v.valid
	v.valid = s.bitmap(v.n)
	if old == nil {
		for i := range v.valid {
			v.valid[i] = 0xff
		}
		return
	}
	copy(v.valid, old[:len(v.valid)])
}
