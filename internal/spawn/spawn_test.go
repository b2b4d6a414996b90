package spawn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakesql/lakesql/internal/errs"
)

func TestPanicBecomesInternalError(t *testing.T) {
	err := Guard(func() error { panic("a bug") })
	if !errors.Is(err, errs.ErrInternal) {
		t.Fatalf("got %v", err)
	}
	err = Guard(func() error { var p *int; *p = 1; return nil })
	if !errors.Is(err, errs.ErrInternal) || errors.Is(err, errs.ErrIO) {
		t.Fatalf("a nil dereference must be internal, got %v", err)
	}
}

func TestTruncatedMappingBecomesIOError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m, err := unix.Mmap(int(f.Fd()), 0, 1<<16, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(m) }()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	g, _ := WithContext(context.Background(), 1)
	sum := 0
	g.Go("reader", func() error { sum += int(m[1<<15]); return nil })
	if err := g.Wait(); !errors.Is(err, errs.ErrIO) {
		t.Fatalf("got %v", err)
	}
}
