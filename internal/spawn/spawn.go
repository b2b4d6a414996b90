// Package spawn is the only way to start a goroutine. It turns panics into errors, memory faults of a mapped file
// into I/O errors, and makes the starter wait.
package spawn

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lakesql/lakesql/internal/errs"
)

// Guard runs f and returns its error, or its panic as an error: a refused allocation as the *mem.LimitError it carries, a memory
// fault as errs.ErrIO (a mapped file was truncated), anything else as errs.ErrInternal with the stack.
func Guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(err, fromPanic(r))
		}
	}()
	return f()
}

func fromPanic(r any) error {
	e, isErr := r.(error)
	if !isErr {
		return errs.New(errs.ErrInternal, "panic: %v\n%s", r, debug.Stack())
	}
	if errors.Is(e, errs.ErrMemoryLimit) {
		return e
	}
	var fault interface {
		runtime.Error
		Addr() uintptr
	}
	if errors.As(e, &fault) && fault.Addr() >= 1<<16 { // small addresses are nil dereferences: bugs
		return &errs.GoneError{Err: fmt.Errorf("a mapped file shrank while it was read (fault at %#x)", fault.Addr())}
	}
	return errs.New(errs.ErrInternal, "panic: %w\n%s", e, debug.Stack())
}

// Group is a set of goroutines that are waited for together. The first error cancels the context of WithContext.
type Group struct{ g *errgroup.Group }

// WithContext returns a group of at most limit goroutines at a time (0 = no limit) and a context that its first error cancels.
func WithContext(ctx context.Context, limit int) (*Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	if limit > 0 {
		g.SetLimit(limit)
	}
	return &Group{g: g}, ctx
}

// Go runs f in a goroutine under Guard; it blocks while the group is at its limit. name says what runs, for the error of a panic.
func (g *Group) Go(name string, f func() error) {
	g.g.Go(func() error {
		if err := Guard(f); err != nil {
			if errors.Is(err, errs.ErrInternal) {
				return fmt.Errorf("%s: %w", name, err)
			}
			return err
		}
		return nil
	})
}

// Wait blocks until every goroutine has ended and returns the first error.
func (g *Group) Wait() error { return g.g.Wait() }

// Sleep waits, or returns the context's error when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
