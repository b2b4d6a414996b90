package file

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/testutil"
)

func TestOtherVersionsAreRefusedByName(t *testing.T) {
	b, err := os.ReadFile(dataFiles(t, "scalars_v22_7")[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, says string
		version    []byte
		kind       error
	}{
		{"legacy", "legacy file version 0.1", []byte{0, 0, 2, 0}, errs.ErrUnsupported},
		{"an older legacy", "legacy file version 0.1", []byte{0, 0, 1, 0}, errs.ErrUnsupported},
		{"2.3", "file version 2.3", []byte{2, 0, 3, 0}, errs.ErrUnsupported},
		{"a future one", "file version 3.0", []byte{3, 0, 0, 0}, errs.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := bytes.Clone(b)
			copy(changed[len(b)-8:], c.version)
			_, err := Open(context.Background(), bytesFile(changed), Options{})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "mutated") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBlobColumnsAreRefused(t *testing.T) {
	for _, name := range []string{"blob_v20.lance", "blob_v21.lance"} {
		r := openFile(t, filepath.Join(testutil.Root(t), "testdata", "file", name))
		cols, err := r.Columns()
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.ReadRange(context.Background(), cols, 0, r.Rows(), ReadOptions{})
		if !errors.Is(err, errs.ErrUnsupported) || !strings.Contains(err.Error(), "blob") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFilesThatAreCutOffAreCorrupt(t *testing.T) {
	b, err := os.ReadFile(dataFiles(t, "scalars_v21_7")[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 39, 40, len(b) / 2, len(b) - 1} {
		_, err := Open(context.Background(), bytesFile(b[:size]), Options{})
		var c *errs.CorruptError
		if !errors.As(err, &c) || c.Path != "mutated" || c.Section == "" {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}

func TestRowsOutsideTheFileAreInvalid(t *testing.T) {
	r := openFile(t, dataFiles(t, "scalars_v22_7")[0])
	cols, err := r.Columns("id")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	_, e1 := r.ReadRange(ctx, cols, 3, 8, ReadOptions{})
	_, e2 := r.ReadRange(ctx, cols, 3, 2, ReadOptions{})
	_, e3 := r.Take(ctx, cols, []uint64{0, 7}, ReadOptions{})
	_, e4 := r.FixedBlocks(ctx, cols[0], 0, 8)
	_, e5 := r.GlobalBuffer(ctx, 1)
	for i, err := range []error{e1, e2, e3, e4, e5} {
		if !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("call %d: got %v", i+1, err)
		}
	}
	if _, err := r.Columns("no such"); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestFieldsWithoutAColumnReadAsNull drops columns from the index, as tables do for fields that a file does not have.
func TestFieldsWithoutAColumnReadAsNull(t *testing.T) {
	for _, version := range []string{"types_v20_400", "types_v21_400", "types_v22_400"} {
		r := openFile(t, filepath.Join(testutil.Root(t), "testdata", "file", version+".lance"))
		cols, err := r.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cols {
			none := Column{Field: c.Field, Index: map[int32]int{}}
			if err := readNull(r, none, func(a arrow.Array) bool { return a.NullN() == a.Len() || a.DataType().ID() == arrow.NULL }); err != nil {
				t.Errorf("%s %s: %v", version, c.Field.Name, err)
			}
			if c.Field.Type.ID() != arrow.STRUCT || isPacked(c.Field) {
				continue
			}
			first := Column{Field: c.Field, Index: maps.Clone(c.Index)}
			for f := range c.Field.Children[0].All() {
				delete(first.Index, f.ID)
			}
			err := readNull(r, first, func(a arrow.Array) bool {
				s, _ := a.(*array.Struct)
				return s.Field(0).NullN() == s.Len() && s.Field(1).NullN() < s.Len()
			})
			if err != nil {
				t.Errorf("%s %s without its first field: %v", version, c.Field.Name, err)
			}
		}
	}
}

func readNull(r *Reader, c Column, ok func(arrow.Array) bool) error {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	b, err := r.ReadRange(context.Background(), []Column{c}, 100, 120, ReadOptions{Alloc: alloc})
	if err != nil {
		return err
	}
	if b.NumRows() != 20 || b.Column(0).Len() != 20 || !ok(b.Column(0)) {
		return errs.New(errs.ErrInternal, "got %v", b)
	}
	b.Release()
	if n := alloc.CurrentAlloc(); n != 0 {
		return errs.New(errs.ErrInternal, "%d bytes leak", n)
	}
	return nil
}

func TestColumnBytesAddUpToThePages(t *testing.T) {
	r := openFile(t, dataFiles(t, "scalars_v22_5000")[0])
	cols, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var total, want int64
	for _, c := range cols {
		total += r.ColumnBytes(c)
	}
	for _, c := range r.columns {
		want += c.bytes
	}
	if total != want || total == 0 {
		t.Errorf("%d bytes, the pages have %d", total, want)
	}
	st, err := r.Columns("st")
	if err != nil {
		t.Fatal(err)
	}
	if n := r.ColumnBytes(st[0]); n == 0 || n >= total {
		t.Errorf("a struct of %d bytes in %d", n, total)
	}
}

// TestReadersShareAFile reads one file from many goroutines, with and without room for page structures.
func TestReadersShareAFile(t *testing.T) {
	for _, cache := range []int64{0, 200, -1} { // all, some and none of the pages are kept
		path := dataFiles(t, "scalars_v22_5000")[0]
		r := openFile(t, path)
		r.cache.limitBytes = Options{CacheBytes: cache}.withDefaults().CacheBytes
		cols, err := r.Columns()
		if err != nil {
			t.Fatal(err)
		}
		want, err := r.ReadRange(context.Background(), cols, 1000, 3000, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var bad []string
		g, ctx := spawn.WithContext(context.Background(), 0)
		for range 8 {
			g.Go("reader", func() error {
				got, err := r.ReadRange(ctx, cols, 1000, 3000, ReadOptions{})
				if err != nil {
					return err
				}
				defer got.Release()
				for i := range cols {
					if !array.ApproxEqual(got.Column(i), want.Column(i), array.WithNaNsEqual(true)) {
						mu.Lock()
						bad = append(bad, cols[i].Field.Name)
						mu.Unlock()
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil || len(bad) > 0 {
			t.Errorf("cache %d: %v, columns that differ: %v", cache, err, bad)
		}
		if used := r.cache.used(); (used == 0) != (cache == -1) || used > r.cache.limitBytes && cache >= 0 {
			t.Errorf("cache %d: %d bytes kept", cache, used)
		}
		want.Release()
	}
}

// TestARefusedAllocationLeaksNothing stops a read at every size of a budget.
func TestARefusedAllocationLeaksNothing(t *testing.T) {
	r := openFile(t, dataFiles(t, "scalars_v22_5000")[0])
	cols, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for limit := int64(1 << 10); limit < 4<<20; limit *= 2 {
		budget := mem.NewBudget("test", limit, nil)
		err := spawn.Guard(func() error {
			b, err := r.ReadRange(context.Background(), cols, 0, 5000, ReadOptions{Alloc: mem.NewAllocator(nil, budget)})
			if err == nil {
				b.Release()
			}
			return err
		})
		if errors.Is(err, errs.ErrMemoryLimit) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
		if used := budget.Used(); used != 0 {
			t.Errorf("limit %d: %d bytes stay charged", limit, used)
		}
	}
	if refused == 0 {
		t.Error("no allocation was refused")
	}
}
