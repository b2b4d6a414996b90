package file

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
)

// bytesFile is a file in memory.
type bytesFile []byte

func (f bytesFile) Path() string     { return "mutated" }
func (f bytesFile) SizeBytes() int64 { return int64(len(f)) }
func (f bytesFile) IsMapped() bool   { return true }

func (f bytesFile) Read(_ context.Context, r object.Range) ([]byte, error) {
	if r.Offset < 0 || r.Size < 0 || r.Offset > int64(len(f)) || r.Size > int64(len(f))-r.Offset {
		return nil, errs.Corrupt("range", r.Offset, "%d bytes of %d", r.Size, len(f))
	}
	return f[r.Offset : r.Offset+r.Size : r.Offset+r.Size], nil
}

func (f bytesFile) ReadMany(ctx context.Context, rs []object.Range) ([][]byte, error) {
	out := make([][]byte, len(rs))
	for i, r := range rs {
		var err error
		if out[i], err = f.Read(ctx, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readEverything reads a file in all ways and returns the first error that is not one of those that wrong bytes may give.
func readEverything(b []byte) error {
	ctx := context.Background()
	r, err := Open(ctx, bytesFile(b), Options{})
	if err != nil {
		return unexpected(err)
	}
	cols, err := r.Columns()
	if err != nil {
		return unexpected(err)
	}
	rows := min(r.Rows(), 1<<13)
	for _, c := range cols {
		alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
		opts := ReadOptions{Alloc: alloc}
		for _, s := range []span{{0, rows}, {rows / 2, rows}, {r.Rows() - rows, r.Rows()}} {
			batch, err := r.ReadRange(ctx, []Column{c}, s.from, s.to, opts)
			if err != nil {
				if err := unexpected(err); err != nil {
					return err
				}
				continue
			}
			if err := walk(batch.Column(0)); err != nil {
				return err
			}
			batch.Release()
		}
		if rows > 2 {
			if err := takeRemote(b, c.Field.Name, rows, opts); err != nil {
				return err
			}
			if batch, err := r.Take(ctx, []Column{c}, []uint64{rows - 1, 0, rows - 1}, opts); err == nil {
				batch.Release()
			} else if err := unexpected(err); err != nil {
				return err
			}
		}
		if _, err := r.FixedBlocks(ctx, c, 0, rows); err != nil && !errors.Is(err, errs.ErrInvalid) {
			if err := unexpected(err); err != nil {
				return err
			}
		}
		if n := alloc.CurrentAlloc(); n != 0 {
			return errs.New(errs.ErrInternal, "column %q: %d bytes leak", c.Field.Name, n)
		}
	}
	return nil
}

// takeRemote takes rows of one column as from a file that is not mapped.
func takeRemote(b []byte, name string, rows uint64, opts ReadOptions) error {
	ctx := context.Background()
	r, err := Open(ctx, &rangesFile{bytesFile: b}, Options{TableBytes: -1})
	if err != nil {
		return unexpected(err)
	}
	cols, err := r.Columns(name)
	if err != nil {
		return nil //nolint:nilerr // two columns of one name
	}
	for _, take := range [][]uint64{{rows - 1}, {rows / 2}, {0}, {rows - 1, 0, rows / 3}} {
		batch, err := r.Take(ctx, cols, take, opts)
		if err != nil {
			if err := unexpected(err); err != nil {
				return err
			}
			continue
		}
		if err := walk(batch.Column(0)); err != nil {
			return err
		}
		batch.Release()
	}
	return nil
}

func unexpected(err error) error {
	for _, kind := range []error{errs.ErrCorrupt, errs.ErrUnsupported, errs.ErrOverflow} {
		if errors.Is(err, kind) {
			return nil
		}
	}
	return err
}

// smallFiles are the seeds: every version, layout and index kind.
func smallFiles(tb testing.TB) [][]byte {
	tb.Helper()
	var out [][]byte
	for _, pattern := range []string{
		"lance/scalars_v2?_7.lance/data/*.lance", "lance/labels_v2?.lance/_indices/*/*.lance", "file/*_3.lance", "file/fslstruct*.lance",
	} {
		files, err := filepath.Glob(filepath.Join(testutil.Root(tb), "testdata", pattern))
		if err != nil || len(files) == 0 {
			tb.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				tb.Fatal(err)
			}
			out = append(out, b)
		}
	}
	return out
}

// TestMutatedFilesGiveErrors flips bits, cuts and overwrites: reading gives values or an error of a known kind.
func TestMutatedFilesGiveErrors(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	runs, each := 0, 60
	if testing.Short() {
		each = 10
	}
	for _, seed := range smallFiles(t) {
		for range each {
			b := bytes.Clone(seed)
			switch rnd.IntN(4) {
			case 0:
				b = b[:rnd.IntN(len(b))]
			case 1: // the structures at the end matter most
				tail := min(len(b), 4096)
				b[len(b)-1-rnd.IntN(tail)] ^= 1 << rnd.IntN(8)
			case 2:
				for range 1 + rnd.IntN(8) {
					b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
				}
			default:
				at := rnd.IntN(len(b))
				for i := at; i < min(at+8, len(b)); i++ {
					b[i] = 0xff
				}
			}
			if err := readEverything(b); err != nil {
				t.Fatal(err)
			}
			runs++
		}
	}
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) / uint64(runs); spent > 256<<20 {
		t.Errorf("%d bytes were allocated per file", spent)
	}
}

func FuzzReadFile(f *testing.F) {
	for _, b := range smallFiles(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readEverything(b); err != nil {
			t.Fatal(err)
		}
	})
}
