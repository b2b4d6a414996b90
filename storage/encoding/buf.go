package encoding

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/mem"
)

// buf is a growing byte buffer from an Arrow allocator. What was not written holds anything.
type buf struct {
	mem memory.Allocator
	buf *memory.Buffer
	n   int // bytes in use
}

// reserve makes room for n more bytes; growth doubles, so that appends cost amortized constant time.
func (b *buf) reserve(n int) {
	need := b.n + n
	if b.buf == nil {
		b.buf = memory.NewResizableBuffer(mem.Dirty(b.mem))
		b.buf.Reserve(need)
		return
	}
	if have := b.buf.Cap(); need > have {
		b.buf.Reserve(max(need, 2*have))
	}
}

// tail returns the n bytes after those in use; advance takes them into use.
func (b *buf) tail(n int) []byte {
	if b.buf == nil || b.n+n > b.buf.Cap() {
		b.reserve(n)
	}
	return b.buf.Buf()[b.n : b.n+n : b.n+n]
}

func (b *buf) advance(n int) { b.n += n }

func (b *buf) bytes() []byte {
	if b.buf == nil {
		return nil
	}
	return b.buf.Buf()[:b.n]
}

func (b *buf) append(src []byte) {
	copy(b.tail(len(src)), src)
	b.n += len(src)
}

// finish hands the buffer over to the caller, who releases it.
func (b *buf) finish() *memory.Buffer {
	if b.buf == nil {
		b.buf = memory.NewResizableBuffer(b.mem)
	}
	out := b.buf
	out.ResizeNoShrink(b.n)
	b.buf, b.n = nil, 0
	return out
}

func (b *buf) release() {
	if b.buf != nil {
		b.buf.Release()
	}
	b.buf, b.n = nil, 0
}

// bitmap collects bits, least significant first. While only ones were appended it holds no memory.
type bitmap struct {
	words buf // 8-byte words; bits at and above n in the last word are zero
	n     int
	zeros int
}

// put appends the k low bits of word, 1 <= k <= 64; the bits above must be zero.
func (b *bitmap) put(word uint64, k int) {
	if b.words.buf == nil {
		b.materialize()
	}
	off := b.n & 63
	if off == 0 {
		binary.LittleEndian.PutUint64(b.words.tail(8), word)
		b.words.n += 8
	} else {
		last := b.words.bytes()[b.words.n-8:]
		binary.LittleEndian.PutUint64(last, binary.LittleEndian.Uint64(last)|word<<off)
		if off+k > 64 {
			binary.LittleEndian.PutUint64(b.words.tail(8), word>>(64-off))
			b.words.n += 8
		}
	}
	b.n += k
	b.zeros += k - bits.OnesCount64(word)
}

// appendWord is put, but ones stay without memory while they can.
func (b *bitmap) appendWord(word uint64, k int) {
	if word == lowMask(k) {
		b.appendOnes(k)
		return
	}
	b.put(word, k)
}

// materialize gives memory to the ones appended so far.
func (b *bitmap) materialize() {
	b.words.reserve((b.n+63)/64*8 + 64)
	n := b.n
	b.n = 0
	for ; n >= 64; n -= 64 {
		b.put(^uint64(0), 64)
	}
	if n > 0 {
		b.put(1<<n-1, n)
	}
}

func (b *bitmap) appendOnes(n int) {
	if b.words.buf == nil {
		b.n += n
		return
	}
	b.fill(^uint64(0), n)
}

func (b *bitmap) appendZeros(n int) { b.fill(0, n) }

func (b *bitmap) fill(word uint64, n int) {
	for ; n >= 64; n -= 64 {
		b.put(word, 64)
	}
	if n > 0 {
		b.put(word&(1<<n-1), n)
	}
}

// appendBits appends the bits [from, from+n) of src; src must hold them.
func (b *bitmap) appendBits(src []byte, from, n int) {
	if n >= 256 && from&7 == 0 && b.n&63 == 0 { // whole words, as they are
		words := n / 64
		if b.words.buf == nil && b.n > 0 {
			b.materialize()
		}
		out := b.words.tail(8 * words)
		copy(out, src[from/8:])
		ones := 0
		for _, w := range cast[uint64](out) {
			ones += bits.OnesCount64(w)
		}
		b.words.n += 8 * words
		b.n += 64 * words
		b.zeros += 64*words - ones
		from, n = from+64*words, n-64*words
	}
	for n > 0 {
		k := min(n, 64)
		b.appendWord(loadBits(src, from, k), k)
		from, n = from+k, n-k
	}
}

// loadBits returns the bits [from, from+k) of src, k <= 64.
func loadBits(src []byte, from, k int) uint64 {
	i, s := from>>3, from&7
	if i+9 <= len(src) {
		w := binary.LittleEndian.Uint64(src[i:]) >> s
		if s > 0 {
			w |= uint64(src[i+8]) << (64 - s)
		}
		return w & lowMask(k)
	}
	var w uint64
	for j := 0; j < k; j++ {
		p := from + j
		w |= uint64(src[p>>3]>>(p&7)&1) << j
	}
	return w
}

// appendAtMost appends one bit a level: 1 where the level is at most limit.
func (b *bitmap) appendAtMost(levels []uint16, limit uint16) {
	add := maskAdd(limit)
	for len(levels) >= 64 {
		b.appendWord(maskWord((*[64]uint16)(levels), add), 64)
		levels = levels[64:]
	}
	if n := len(levels); n > 0 {
		var last [64]uint16
		copy(last[:], levels)
		b.appendWord(maskWord(&last, add)&lowMask(n), n)
	}
}

func (b *bitmap) get(i int) bool {
	if b.words.buf == nil {
		return true
	}
	return b.words.bytes()[i>>3]>>(i&7)&1 == 1
}

// finish hands the bits over; force gives memory to a bitmap of ones, which otherwise is nil.
func (b *bitmap) finish(force bool) *memory.Buffer {
	if b.words.buf == nil {
		if !force {
			return nil
		}
		b.materialize()
	}
	b.words.n = (b.n + 7) / 8
	out := b.words.finish()
	b.n, b.zeros = 0, 0
	return out
}

func (b *bitmap) release() {
	b.words.release()
	b.n, b.zeros = 0, 0
}

func lowMask(k int) uint64 {
	if k >= 64 {
		return ^uint64(0)
	}
	return 1<<k - 1
}

// cast views bytes as a slice of T; a rest shorter than T is left out. The machine is little-endian (I4).
func cast[T uint16 | uint32 | uint64 | int32 | int64](b []byte) []T {
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// bytesOf views a slice of levels as bytes.
func bytesOf[T uint16 | uint32 | uint64](v []T) []byte {
	var t T
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(t)))
}
