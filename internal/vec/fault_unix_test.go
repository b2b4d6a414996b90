//go:build unix

package vec

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
)

func TestFaultOfATruncatedMappingIsAnError(t *testing.T) {
	const size = 1 << 20
	path := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	data, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(data) }()
	if err := f.Truncate(size / 2); err != nil {
		t.Fatal(err)
	}
	block := Block{Data: data, Stride: 512, Rows: size / 512}
	offsets := []int{0, size - 512}
	dst, norms, query := make([]float32, block.Rows), make([]float32, block.Rows), make([]float32, 128)
	for _, i := range testISAs(t) {
		for name, f := range map[string]func(){
			"block":  func() { blockKernel(i, opL2, Float32, dst, norms, query, block) },
			"norms":  func() { blockKernel(i, opDotNorm, Float32, dst, norms, query, block) },
			"gather": func() { gatherKernel(i, opDot, Float32, dst, norms, query, data, offsets) },
			"codes":  func() { lookup4(i, dst[:64], data[size/2:], make([]float32, 64), 2, 64) },
		} {
			if err := spawn.Guard(func() error { f(); return nil }); !errors.Is(err, errs.ErrIO) {
				t.Errorf("isa %d %s: got %v, want an I/O error", i, name, err)
			}
		}
	}
}
