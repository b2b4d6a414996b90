package mem

import "github.com/apache/arrow-go/v18/arrow/memory"

// trimBytes: buffers of fewer bytes are not copied to save what they do not use.
const trimBytes = 4 << 10

// Allocator is an Arrow allocator that counts against a budget what buffers really take: a builder's room to grow too, for as long as the buffer has it, and
// both buffers while one is copied to a larger one. Arrow's interface has no error result, so a refusal panics with a *LimitError; spawn.Guard and
// spawn.Group turn that panic into the error.
type Allocator struct {
	base   memory.Allocator
	budget *Budget
	dirty  *Allocator // the same over the base's used memory
	pooled bool       // base is a Pool, whose buffers have sizes of its own
	used   bool       // what a buffer gains may hold anything
}

// NewAllocator wraps base (nil = memory.DefaultAllocator).
func NewAllocator(base memory.Allocator, budget *Budget) *Allocator {
	if base == nil {
		base = memory.DefaultAllocator
	}
	a := &Allocator{base: base, budget: budget}
	_, a.pooled = base.(*Pool)
	a.dirty = a
	if used := Dirty(base); used != base {
		a.dirty = &Allocator{base: used, budget: budget, pooled: a.pooled, used: true}
		a.dirty.dirty = a.dirty
	}
	return a
}

// Allocate implements memory.Allocator.
func (a *Allocator) Allocate(size int) []byte {
	room := size
	if a.pooled {
		room = poolBytes(size) // whole, so that Free can give it back to the pool
	}
	if err := a.budget.grow(int64(room)); err != nil {
		panic(err)
	}
	return a.base.Allocate(size)[:size:room]
}

// Reallocate implements memory.Allocator. A buffer that gets shorter stays where it is unless that would leave most of it unused.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) && (cap(b) < trimBytes || size > cap(b)/2) {
		if size > len(b) && !a.used {
			clear(b[len(b):size])
		}
		return b[:size]
	}
	out := a.Allocate(size)
	copy(out, b)
	a.Free(b)
	return out
}

// Free implements memory.Allocator.
func (a *Allocator) Free(b []byte) {
	a.budget.shrink(int64(cap(b)))
	a.base.Free(b[:cap(b)])
}

// BudgetOf returns the budget that an allocator counts against; nil where nobody counts.
func BudgetOf(alloc memory.Allocator) *Budget {
	if a, ok := alloc.(*Allocator); ok {
		return a.budget
	}
	return nil
}
