package mem

import (
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

func TestEveryClassHoldsTheSizesUpToItsOwn(t *testing.T) {
	before := 0
	for c := range poolClasses {
		n := classBytes(c)
		if n <= before || n%64 != 0 {
			t.Fatalf("class %d of %d bytes after %d", c, n, before)
		}
		if c > 0 && classOf(before+1) != c {
			t.Fatalf("%d bytes go to class %d, want %d", before+1, classOf(before+1), c)
		}
		if classOf(n) != c {
			t.Fatalf("%d bytes go to class %d, want %d", n, classOf(n), c)
		}
		before = n
	}
	if classBytes(0) != poolMinBytes || before != poolMaxBytes {
		t.Fatalf("classes from %d to %d bytes", classBytes(0), before)
	}
}

func TestPoolKeepsBytesWhenBuffersGrowAndShrink(t *testing.T) {
	p := NewPool()
	b := p.Allocate(100)
	for i := range b {
		b[i] = byte(i)
	}
	for _, size := range []int{1000, 1024, 1025, 1200, 5000, 1 << 20, 1<<24 + 1, 1 << 24, 900_000, 3000, 100} {
		b = p.Reallocate(size, b)
		if len(b) != size {
			t.Fatalf("%d bytes, want %d", len(b), size)
		}
		for i := range 100 {
			if b[i] != byte(i) {
				t.Fatalf("byte %d is %d after resizing to %d", i, b[i], size)
			}
		}
	}
}

func TestPoolHandsOutBuffersOnce(t *testing.T) {
	p := NewPool()
	var held [][]byte
	for round := range 50 {
		for i := range 40 {
			b := p.Allocate(1000 + 300*i)
			for k := range b {
				b[k] = byte(i + round)
			}
			held = append(held, b)
		}
		for i, b := range held {
			for k := range b {
				if b[k] != byte(i+round) {
					t.Fatalf("round %d: byte %d of buffer %d was overwritten", round, k, i)
				}
			}
			p.Free(b)
		}
		held = held[:0]
	}
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func TestPoolBuffersAreAligned(t *testing.T) {
	p := NewPool()
	for c := range poolClasses {
		b := p.Allocate(classBytes(c))
		if addr := addressOf(b); addr%64 != 0 {
			t.Fatalf("a buffer of %d bytes at %#x", len(b), addr)
		}
	}
	buf := memory.NewResizableBuffer(p)
	defer buf.Release()
	buf.Resize(5000)
	if buf.Len() != 5000 {
		t.Fatalf("%d bytes", buf.Len())
	}
}

func TestAllocatorGivesBuffersOfAnySizeBackToThePool(t *testing.T) {
	p := NewPool()
	budget := NewBudget("q", 0, nil)
	a := NewAllocator(p, budget)
	const size = 33_000 // between two classes
	b := a.Allocate(size)
	if got := budget.Used(); got != int64(classBytes(classOf(size))) {
		t.Fatalf("%d bytes counted for a buffer of %d in a class of %d", got, size, classBytes(classOf(size)))
	}
	seen := map[uintptr]bool{addressOf(b): true}
	a.Free(b)
	if budget.Used() != 0 {
		t.Fatalf("%d bytes counted after Free", budget.Used())
	}
	reused := false
	for range 100 { // the pool belongs to the processors: a goroutine that moves may miss it; under the race detector it drops some on purpose
		c := a.Allocate(size)
		reused = reused || seen[addressOf(c)]
		seen[addressOf(c)] = true
		a.Free(c)
	}
	if !reused {
		t.Fatal("no buffer came back")
	}
}

func TestAllocatorZeroesWhatABufferGains(t *testing.T) {
	a := NewAllocator(NewPool(), NewBudget("q", 0, nil))
	for range 20 {
		b := a.Allocate(5000)
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d of a new buffer is %d", i, b[i])
			}
			b[i] = 0xff
		}
		b = a.Reallocate(cap(b), b)
		for i := 5000; i < len(b); i++ {
			if b[i] != 0 {
				t.Fatalf("byte %d, gained by growing, is %d", i, b[i])
			}
			b[i] = 0xff
		}
		a.Free(b)
	}
}
