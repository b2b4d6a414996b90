package encoding

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// pooledMin is the smallest buffer that is kept for another page: making and clearing the large ones costs more than filling them.
const pooledMin = 64 << 10

// pageBuffers keeps the buffers of pages that were written out, by the power of two that they hold.
var pageBuffers [64]sync.Pool

// takeBuffer returns an empty buffer with room for n bytes.
func takeBuffer(n int) []byte {
	if n < pooledMin {
		return make([]byte, 0, n)
	}
	class := bits.Len(uint(n - 1))
	if b, ok := pageBuffers[class].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 1<<class)
}

func giveBuffer(b []byte) {
	if cap(b) < pooledMin {
		return
	}
	class := bits.Len(uint(cap(b))) - 1 // the largest power of two that it certainly holds
	b = b[:0]
	pageBuffers[class].Put(&b)
}

// withRoom returns b with room for n more bytes. It at least doubles: append would copy large buffers five times on their way.
func withRoom(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	out := append(takeBuffer(max(2*cap(b), len(b)+n)), b...)
	giveBuffer(b)
	return out
}

// takeWords is takeBuffer for n words.
func takeWords(n int) []uint32 {
	b := takeBuffer(4 * n)
	return arrow.Uint32Traits.CastFromBytes(b[:cap(b)])[:0]
}

func giveWords(w []uint32) { giveBuffer(arrow.Uint32Traits.CastToBytes(w[:cap(w)])) }

// withWords is withRoom for n more words.
func withWords(w []uint32, n int) []uint32 {
	if cap(w)-len(w) >= n {
		return w
	}
	out := append(takeWords(max(2*cap(w), len(w)+n)), w...)
	giveWords(w)
	return out
}

// trimmed is b in a buffer that is not much larger, so that a page that waits to be written holds no more than it has.
func trimmed(b []byte) []byte {
	if cap(b) < 2*pooledMin || 2*len(b) > cap(b) {
		return b
	}
	out := append(takeBuffer(len(b)), b...)
	giveBuffer(b)
	return out
}

// SizeBytes is what the page's buffers hold.
func (p *Page) SizeBytes() int64 {
	var n int64
	for _, b := range p.Buffers {
		n += int64(cap(b))
	}
	return n
}

// Recycle keeps the buffers of a page for another one. The page must not be used afterwards.
func (p *Page) Recycle() {
	for _, b := range p.Buffers {
		giveBuffer(b)
	}
	p.Buffers = nil
}
