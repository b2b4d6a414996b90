package mem

import (
	"errors"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
)

func TestRefusalLeavesEveryLevelAsItWas(t *testing.T) {
	server := NewBudget("server", 100, nil)
	query := NewBudget("query", 0, server)
	r := query.Reserve()
	if err := r.Grow(80); err != nil {
		t.Fatal(err)
	}
	err := r.Grow(30)
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Budget != "server" || !errors.Is(err, errs.ErrMemoryLimit) {
		t.Fatalf("got %v", err)
	}
	if query.Used() != 80 || server.Used() != 80 || r.Held() != 80 {
		t.Fatalf("used %d/%d held %d after a refusal", query.Used(), server.Used(), r.Held())
	}
	r.Free()
	r.Free()
	if query.Used() != 0 || server.Used() != 0 || server.Peak() != 80 {
		t.Fatalf("used %d/%d peak %d after Free", query.Used(), server.Used(), server.Peak())
	}
}

func TestAllocatorCountsReallocationAndFree(t *testing.T) {
	b := NewBudget("query", 1000, nil)
	a := NewAllocator(nil, b)
	buf := a.Allocate(100)
	buf = a.Reallocate(300, buf)
	if b.Used() != 300 {
		t.Fatalf("used %d, want 300", b.Used())
	}
	a.Free(buf)
	if b.Used() != 0 {
		t.Fatalf("used %d after Free", b.Used())
	}
	defer func() {
		err, _ := recover().(error)
		if !errors.Is(err, errs.ErrMemoryLimit) {
			t.Fatalf("recovered %v", err)
		}
	}()
	a.Allocate(2000)
}

func TestCloseGivesBackWhatWasLeftBehind(t *testing.T) {
	server := NewBudget("server", 0, nil)
	query := NewBudget("query", 0, server)
	left, late := query.Reserve(), query.Reserve()
	if err := errors.Join(left.Grow(50), late.Grow(7)); err != nil {
		t.Fatal(err)
	}
	query.Close()
	query.Close()
	if server.Used() != 0 {
		t.Fatalf("%d bytes left after Close", server.Used())
	}
	late.Free()
	if err := left.Grow(5); err != nil || server.Used() != 0 || query.Used() != 55 {
		t.Fatalf("server %d, query %d after later use, %v", server.Used(), query.Used(), err)
	}
}
