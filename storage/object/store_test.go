package object

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
)

func local(t *testing.T, dir string, opts LocalOptions) *Local {
	t.Helper()
	s, err := OpenLocal(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneFileHasOneMappingUntilItIsReplaced(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := local(t, dir, LocalOptions{SmallBytes: -1})
	must(t, s.Put(ctx, "f", []byte("old content"), false))
	read := func() []byte {
		f, err := s.Open(ctx, "f")
		must(t, err)
		b, err := f.Read(ctx, Range{0, f.SizeBytes()})
		must(t, err)
		return b
	}
	first, again := read(), read()
	if &first[0] != &again[0] || len(s.mappings) != 1 {
		t.Fatal("opened twice, mapped twice")
	}
	must(t, s.Put(ctx, "f", []byte("new"), false))
	if b := read(); string(b) != "new" {
		t.Fatalf("after replacement: %q", b)
	}
	must(t, s.Delete(ctx, "f"))
	if string(first) != "old content" {
		t.Fatalf("kept bytes changed: %q", first)
	}
	f := &mappedFile{store: s, path: "f", bytes: first}
	must(t, s.Close())
	if _, err := f.Read(ctx, Range{0, 1}); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("read of a closed store: %v", err)
	}
	if _, err := s.Open(ctx, "f"); err == nil {
		t.Fatal("open of a closed store")
	}
}

func TestFilesBeyondTheMappingLimitAreReadByPosition(t *testing.T) {
	ctx := context.Background()
	s := local(t, t.TempDir(), LocalOptions{SmallBytes: -1, MappingsMax: 2})
	for i := range 4 {
		p := fmt.Sprintf("f%d", i)
		must(t, s.Put(ctx, p, []byte(p), false))
		f, err := s.Open(ctx, p)
		must(t, err)
		if f.IsMapped() != (i < 2) {
			t.Fatalf("file %d mapped: %t", i, f.IsMapped())
		}
		if b, err := f.Read(ctx, Range{1, 1}); err != nil || string(b) != p[1:] {
			t.Fatalf("%q %v", b, err)
		}
	}
}

func TestAFileTruncatedUnderItsReaderIsAnIOError(t *testing.T) {
	ctx := context.Background()
	for name, opts := range map[string]LocalOptions{
		"mapped": {SmallBytes: -1}, "by position": {SmallBytes: -1, MappingsMax: -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := local(t, dir, opts)
			must(t, s.Put(ctx, "f", make([]byte, 1<<20), false))
			f, err := s.Open(ctx, "f")
			must(t, err)
			must(t, os.Truncate(filepath.Join(dir, "f"), 100))
			err = spawn.Guard(func() error {
				b, err := f.Read(ctx, Range{1 << 19, 1 << 10})
				if err != nil {
					return err
				}
				return fmt.Errorf("read %d", b[5])
			})
			if !errors.Is(err, errs.ErrIO) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestFoldersThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, tc := range []struct {
		root string
		kind error
	}{{filepath.Join(dir, "missing"), errs.ErrNotFound}, {filepath.Join(dir, "file"), errs.ErrInvalid}} {
		if _, err := OpenLocal(tc.root, LocalOptions{}); !errors.Is(err, tc.kind) {
			t.Errorf("%s: %v", tc.root, err)
		}
	}
	s := local(t, dir, LocalOptions{})
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	if _, err := s.Open(context.Background(), "sub"); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a folder opened as a file: %v", err)
	}
}

func TestCoalesce(t *testing.T) {
	for _, tc := range []struct {
		name       string
		in         []Range
		gap, limit int64
		want       []Range
		of         []int
	}{
		{"nothing", nil, 10, 100, nil, []int{}},
		{"neighbours merge, order does not matter", []Range{{20, 5}, {0, 10}, {12, 3}}, 5, 100, []Range{{0, 25}}, []int{0, 0, 0}},
		{"a gap too wide splits", []Range{{0, 10}, {21, 5}}, 10, 100, []Range{{0, 10}, {21, 5}}, []int{0, 1}},
		{"a merged range too long splits", []Range{{0, 60}, {60, 60}}, 10, 100, []Range{{0, 60}, {60, 60}}, []int{0, 1}},
		{"overlaps merge", []Range{{0, 60}, {10, 20}, {50, 20}}, 0, 100, []Range{{0, 70}}, []int{0, 0, 0}},
		{"one inside a long one stays inside", []Range{{0, 500}, {10, 20}}, 0, 100, []Range{{0, 500}}, []int{0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, of := Coalesce(tc.in, tc.gap, tc.limit)
			if fmt.Sprint(got) != fmt.Sprint(tc.want) || fmt.Sprint(of) != fmt.Sprint(tc.of) {
				t.Fatalf("got %v %v", got, of)
			}
		})
	}
}

func TestCountingCountsMergedReads(t *testing.T) {
	ctx := context.Background()
	c := NewCounting(NewMemory("m"), CountingOptions{AsRemote: true, GapBytes: 10})
	must(t, c.Put(ctx, "f", make([]byte, 1000), false))
	f, err := c.Open(ctx, "f")
	must(t, err)
	if f.IsMapped() {
		t.Fatal("a remote file says that it is mapped")
	}
	_, err = f.ReadMany(ctx, []Range{{0, 10}, {15, 5}, {500, 100}})
	must(t, err)
	_, err = f.Read(ctx, Range{0, 1})
	must(t, err)
	if got := c.ByPath()["f"]; got != (Counts{Opens: 1, Requests: 3, Bytes: 121, Ranges: 4}) || c.Total() != got {
		t.Fatalf("%+v", got)
	}
	c.Reset()
	if c.Total() != (Counts{}) {
		t.Fatal("reset")
	}
}

func TestFaultyFailsWhereItIsTold(t *testing.T) {
	ctx := context.Background()
	story := func(s Store) error { // 7 operations
		w, err := s.Create(ctx, "a")
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte("x")); err != nil {
			return errors.Join(err, w.Abort())
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := s.Put(ctx, "b", nil, true); err != nil {
			return err
		}
		f, err := s.Open(ctx, "a")
		if err != nil {
			return err
		}
		if _, err := f.Read(ctx, Range{0, 1}); err != nil {
			return err
		}
		return s.Delete(ctx, "a")
	}
	probe := NewFaulty(NewMemory("m"), FaultyOptions{})
	must(t, story(probe))
	if probe.Operations() != 7 {
		t.Fatalf("%d operations", probe.Operations())
	}
	for n := int64(1); n <= 7; n++ {
		if err := story(NewFaulty(NewMemory("m"), FaultyOptions{FailAt: n})); !errors.Is(err, errs.ErrIO) {
			t.Fatalf("operation %d: %v", n, err)
		}
	}
	s := NewFaulty(NewMemory("m"), FaultyOptions{FailAt: 1, Crash: true, AfterEffect: true})
	if err := s.Put(ctx, "b", nil, true); !errors.Is(err, errs.ErrIO) {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, "b"); !errors.Is(err, errs.ErrIO) {
		t.Fatalf("after the crash: %v", err)
	}
	if _, err := s.store.Stat(ctx, "b"); err != nil {
		t.Fatalf("the effect was lost: %v", err)
	}
}
