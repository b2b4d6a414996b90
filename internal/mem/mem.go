// Package mem accounts for memory. A Budget is a tree: the server's budget is the parent of each query's. State that
// grows with its input holds a Reservation and asks before it allocates; Arrow buffers are counted by an Allocator.
package mem

import (
	"fmt"
	"sync/atomic"

	"github.com/lakesql/lakesql/internal/errs"
)

// Budget is a limit in bytes shared by many reservations. It is safe for concurrent use.
type Budget struct {
	name       string
	limitBytes int64 // 0 = no limit of its own
	parent     *Budget
	usedBytes  atomic.Int64
	peakBytes  atomic.Int64
	closed     atomic.Bool // counts for itself alone
}

// NewBudget makes a budget of limitBytes (0 = unlimited) below parent (nil = none). name appears in errors.
func NewBudget(name string, limitBytes int64, parent *Budget) *Budget {
	return &Budget{name: name, limitBytes: limitBytes, parent: parent}
}

// Name is what errors call the budget.
func (b *Budget) Name() string { return b.name }

// Used returns the bytes reserved now.
func (b *Budget) Used() int64 { return b.usedBytes.Load() }

// Peak returns the most bytes that were reserved at one time.
func (b *Budget) Peak() int64 { return b.peakBytes.Load() }

// Limit returns the budget's own limit in bytes, 0 = unlimited.
func (b *Budget) Limit() int64 { return b.limitBytes }

// Close gives back to the parents what the budget still holds: buffers that a failure left behind are garbage by then. What is
// reserved or freed later counts in this budget alone. It is idempotent.
func (b *Budget) Close() {
	if b.closed.Swap(true) {
		return
	}
	for l := b.parent; l != nil; l = l.above() {
		l.usedBytes.Add(-b.usedBytes.Load())
	}
}

// above is the budget that counts too; nil at the root and above a closed one.
func (b *Budget) above() *Budget {
	if b.closed.Load() {
		return nil
	}
	return b.parent
}

func (b *Budget) grow(n int64) error {
	for l := b; l != nil; l = l.above() {
		used := l.usedBytes.Add(n)
		if l.limitBytes > 0 && used > l.limitBytes {
			for u := b; ; u = u.parent {
				u.usedBytes.Add(-n)
				if u == l {
					break
				}
			}
			return &LimitError{Budget: l.name, WantBytes: n, UsedBytes: used - n, LimitBytes: l.limitBytes}
		}
		for peak := l.peakBytes.Load(); used > peak && !l.peakBytes.CompareAndSwap(peak, used); {
			peak = l.peakBytes.Load()
		}
	}
	return nil
}

func (b *Budget) shrink(n int64) {
	for l := b; l != nil; l = l.above() {
		l.usedBytes.Add(-n)
	}
}

// LimitError is an ErrMemoryLimit that says which budget refused and how far it was used.
type LimitError struct {
	Budget                           string
	WantBytes, UsedBytes, LimitBytes int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s memory limit of %d bytes exceeded: %d in use, %d more wanted; raise query_memory_limit or select less",
		e.Budget, e.LimitBytes, e.UsedBytes, e.WantBytes)
}

// Unwrap makes the error an errs.ErrMemoryLimit.
func (e *LimitError) Unwrap() error { return errs.ErrMemoryLimit }

// Reservation is the part of a budget that one owner holds. It is not safe for concurrent use. The zero value and a
// reservation of a nil budget count nothing.
type Reservation struct {
	budget    *Budget
	heldBytes int64
}

// Reserve returns an empty reservation on b; b may be nil.
func (b *Budget) Reserve() *Reservation { return &Reservation{budget: b} }

// Grow asks for n more bytes before they are allocated. It returns a *LimitError and holds what it held before when refused.
func (r *Reservation) Grow(n int64) error {
	if r == nil || r.budget == nil || n <= 0 {
		return nil
	}
	if err := r.budget.grow(n); err != nil {
		return err
	}
	r.heldBytes += n
	return nil
}

// Resize grows or shrinks the reservation to n bytes in all.
func (r *Reservation) Resize(n int64) error {
	if r == nil {
		return nil
	}
	if n >= r.heldBytes {
		return r.Grow(n - r.heldBytes)
	}
	r.Shrink(r.heldBytes - n)
	return nil
}

// Shrink gives n bytes back.
func (r *Reservation) Shrink(n int64) {
	if r == nil || r.budget == nil || n <= 0 {
		return
	}
	n = min(n, r.heldBytes)
	r.budget.shrink(n)
	r.heldBytes -= n
}

// Held returns the bytes held.
func (r *Reservation) Held() int64 {
	if r == nil {
		return 0
	}
	return r.heldBytes
}

// Free gives everything back. It is idempotent.
func (r *Reservation) Free() { r.Shrink(r.Held()) }
