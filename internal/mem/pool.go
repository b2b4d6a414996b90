package mem

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/invariants"
)

// Pool is an Arrow allocator that keeps freed buffers for the next ones of about their size. The garbage collector empties it of what was not used
// between two collections. It is safe for concurrent use.
//
// Arrow's own code expects zeroed memory, so that is what it gives; code that writes all of a buffer anyway takes it as it is through Dirty.
// Free must get what Allocate or Reallocate returned, whole.
type Pool struct {
	classes [poolClasses]sync.Pool // of *byte; class c has buffers of classBytes(c)
}

// Buffers of poolMinBytes to poolMaxBytes are pooled. Smaller ones are cheap to make, larger ones rare.
const (
	poolMinBits  = 10
	poolMaxBits  = 24
	poolMinBytes = 1 << poolMinBits
	poolMaxBytes = 1 << poolMaxBits
	poolClasses  = (poolMaxBits-poolMinBits)*4 + 1 // four sizes to each power of two
)

var _ memory.Allocator = (*Pool)(nil)

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{} }

// classOf is the smallest class whose buffers have n bytes, n from poolMinBytes to poolMaxBytes.
func classOf(n int) int {
	top := bits.Len(uint(n-1)) - 1 // n is above 1<<top, at most 1<<(top+1)
	if n == poolMinBytes {
		return 0
	}
	quarter := (n - 1 - 1<<top) >> (top - 2)
	return (top-poolMinBits)*4 + quarter + 1
}

func classBytes(c int) int {
	if c == 0 {
		return poolMinBytes
	}
	top, quarter := (c-1)/4+poolMinBits, (c-1)%4+1
	return 1<<top + quarter<<(top-2)
}

// poolBytes is how many bytes the pool sets aside for a buffer of size bytes.
func poolBytes(size int) int {
	if size < poolMinBytes || size > poolMaxBytes {
		return size
	}
	return classBytes(classOf(size))
}

// Allocate implements memory.Allocator.
func (p *Pool) Allocate(size int) []byte {
	b, used := p.get(size)
	if used {
		clear(b)
	}
	return b
}

// get returns size bytes; used says that they hold anything.
func (p *Pool) get(size int) (b []byte, used bool) {
	if size < poolMinBytes || size > poolMaxBytes {
		return memory.DefaultAllocator.Allocate(size), false
	}
	c := classOf(size)
	n := classBytes(c)
	if first, ok := p.classes[c].Get().(*byte); ok {
		return unsafe.Slice(first, n)[:size], true
	}
	return make([]byte, n)[:size], false
}

// Reallocate implements memory.Allocator.
func (p *Pool) Reallocate(size int, b []byte) []byte {
	out := p.reallocate(size, b)
	if size > len(b) {
		clear(out[len(b):])
	}
	return out
}

func (p *Pool) reallocate(size int, b []byte) []byte {
	if size <= cap(b) && size >= cap(b)/2 {
		return b[:size]
	}
	out, _ := p.get(size)
	copy(out, b)
	p.Free(b)
	return out
}

// Free implements memory.Allocator.
func (p *Pool) Free(b []byte) {
	n := cap(b)
	if n < poolMinBytes || n > poolMaxBytes {
		return
	}
	if c := classOf(n); classBytes(c) == n {
		if invariants.Enabled { // who reads a buffer after its release shall see it
			b = b[:n]
			for i := range b {
				b[i] = 0xdb
			}
		}
		p.classes[c].Put(unsafe.SliceData(b))
	}
}

// dirtyPool is a Pool that zeroes nothing.
type dirtyPool struct{ *Pool }

func (p dirtyPool) Allocate(size int) []byte {
	b, _ := p.get(size)
	return b
}

func (p dirtyPool) Reallocate(size int, b []byte) []byte { return p.reallocate(size, b) }

// Dirty returns an allocator of the same memory and budget as a whose buffers may hold anything, for callers that write every byte that is read. Where a
// keeps no used memory, it is a.
func Dirty(a memory.Allocator) memory.Allocator {
	switch a := a.(type) {
	case *Pool:
		return dirtyPool{a}
	case *Allocator:
		return a.dirty
	}
	return a
}
