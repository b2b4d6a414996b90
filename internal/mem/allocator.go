package mem

import "github.com/apache/arrow-go/v18/arrow/memory"

// Allocator is an Arrow allocator that counts against a budget. Arrow's interface has no error result, so a refusal
// panics with a *LimitError; spawn.Guard and spawn.Group turn that panic into the error.
type Allocator struct {
	base   memory.Allocator
	budget *Budget
}

// NewAllocator wraps base (nil = memory.DefaultAllocator).
func NewAllocator(base memory.Allocator, budget *Budget) *Allocator {
	if base == nil {
		base = memory.DefaultAllocator
	}
	return &Allocator{base: base, budget: budget}
}

// Allocate implements memory.Allocator.
func (a *Allocator) Allocate(size int) []byte {
	a.charge(int64(size))
	return a.base.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	before := int64(len(b))
	if grown := int64(size) - before; grown > 0 {
		a.charge(grown)
	} else {
		a.budget.shrink(-grown)
	}
	return a.base.Reallocate(size, b)
}

// Free implements memory.Allocator.
func (a *Allocator) Free(b []byte) {
	a.budget.shrink(int64(len(b)))
	a.base.Free(b)
}

func (a *Allocator) charge(n int64) {
	if err := a.budget.grow(n); err != nil {
		panic(err)
	}
}
