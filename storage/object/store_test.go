package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
)

// each runs a test against every kind of store.
func each(t *testing.T, f func(t *testing.T, s Store)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) Store{
		"local mapped": func(t *testing.T) Store { return local(t, t.TempDir(), LocalOptions{SmallBytes: -1}) },
		"local small":  func(t *testing.T) Store { return local(t, t.TempDir(), LocalOptions{SmallBytes: 1 << 20}) },
		"local pread":  func(t *testing.T) Store { return local(t, t.TempDir(), LocalOptions{SmallBytes: -1, MappingsMax: -1}) },
		"memory":       func(*testing.T) Store { return NewMemory("test") },
		"counting":     func(*testing.T) Store { return NewCounting(NewMemory("test"), CountingOptions{}) },
		"faulty":       func(*testing.T) Store { return NewFaulty(NewMemory("test"), FaultyOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			f(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

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

func TestWhatIsPutIsRead(t *testing.T) {
	ctx := context.Background()
	content := bytes.Repeat([]byte("0123456789"), 5000)
	each(t, func(t *testing.T, s Store) {
		must(t, s.Put(ctx, "a/b/file.bin", content, false))
		must(t, s.Put(ctx, "a/empty", nil, true))
		f, err := s.Open(ctx, "a/b/file.bin")
		must(t, err)
		if f.SizeBytes() != int64(len(content)) || f.Path() != "a/b/file.bin" {
			t.Fatalf("size %d path %s", f.SizeBytes(), f.Path())
		}
		got, err := f.ReadMany(ctx, []Range{{10, 5}, {0, 3}, {49999, 1}, {50000, 0}, {20, 30000}})
		must(t, err)
		for i, want := range []string{"01234", "012", "9", "", string(content[20:30020])} {
			if string(got[i]) != want {
				t.Fatalf("range %d reads %q", i, got[i])
			}
		}
		for _, r := range []Range{{-1, 2}, {49999, 2}, {50001, 0}, {0, -1}, {1, 1<<63 - 1}} {
			if _, err := f.Read(ctx, r); !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), "a/b/file.bin") {
				t.Fatalf("range %v: %v", r, err)
			}
		}
		e, err := f.Read(ctx, Range{49990, 10})
		must(t, err)
		if cap(e) > 10 {
			t.Fatal("an append would write past the range")
		}
		empty, err := s.Open(ctx, "a/empty")
		must(t, err)
		if b, err := empty.Read(ctx, Range{}); err != nil || len(b) != 0 {
			t.Fatalf("empty file: %q %v", b, err)
		}
	})
}

func TestNamesAndFolders(t *testing.T) {
	ctx := context.Background()
	each(t, func(t *testing.T, s Store) {
		for _, p := range []string{"d/z", "d/a", "d/sub/x", "top"} {
			must(t, s.Put(ctx, p, []byte(p), false))
		}
		names := func(dir string) string {
			es, err := s.List(ctx, dir)
			must(t, err)
			var out []string
			for _, e := range es {
				out = append(out, fmt.Sprintf("%s:%d:%t", e.Name, e.SizeBytes*b2i(!e.IsDir), e.IsDir))
			}
			return strings.Join(out, " ")
		}
		if got := names("d"); got != "a:3:false sub:0:true z:3:false" {
			t.Fatal(got)
		}
		if got := names(""); got != "d:0:true top:3:false" {
			t.Fatal(got)
		}
		if got := names("missing/folder"); got != "" {
			t.Fatal(got)
		}
		e, err := s.Stat(ctx, "d/z")
		if err != nil || e.Name != "z" || e.SizeBytes != 3 || e.IsDir {
			t.Fatalf("%+v %v", e, err)
		}
		if e, err = s.Stat(ctx, "d/sub"); err != nil || !e.IsDir {
			t.Fatalf("%+v %v", e, err)
		}
		for _, p := range []string{"nothing", "d/nothing", "top/below"} {
			if _, err := s.Stat(ctx, p); !errors.Is(err, errs.ErrNotFound) {
				t.Fatalf("stat %s: %v", p, err)
			}
			if _, err := s.Open(ctx, p); !errors.Is(err, errs.ErrNotFound) {
				t.Fatalf("open %s: %v", p, err)
			}
		}
		must(t, s.Delete(ctx, "d/z"))
		must(t, s.Delete(ctx, "d/z"))
		if got := names("d"); got != "a:3:false sub:0:true" {
			t.Fatal(got)
		}
	})
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func TestPathsThatLeaveTheRootAreRefused(t *testing.T) {
	ctx := context.Background()
	each(t, func(t *testing.T, s Store) {
		for _, p := range []string{"../x", "/etc/passwd", "a/../../x", "a/..", "./a", "a//b", "a/", "..", ".", `a\b`, "a\x00b"} {
			_, openErr := s.Open(ctx, p)
			_, statErr := s.Stat(ctx, p)
			_, listErr := s.List(ctx, p)
			_, createErr := s.Create(ctx, p)
			for op, err := range map[string]error{
				"open": openErr, "stat": statErr, "list": listErr, "create": createErr,
				"put": s.Put(ctx, p, nil, false), "delete": s.Delete(ctx, p),
			} {
				if !errors.Is(err, errs.ErrInvalid) {
					t.Errorf("%s %q: %v", op, p, err)
				}
			}
		}
		if _, err := s.Open(ctx, ""); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("open of the root: %v", err)
		}
	})
}

func TestPutIfAbsentKeepsTheFirst(t *testing.T) {
	ctx := context.Background()
	each(t, func(t *testing.T, s Store) {
		var won int
		g, gctx := spawn.WithContext(ctx, 0)
		results := make([]error, 8)
		for i := range results {
			g.Go("put", func() error {
				results[i] = s.Put(gctx, "v/1", fmt.Appendf(nil, "writer %d", i), true)
				return nil
			})
		}
		must(t, g.Wait())
		for _, err := range results {
			if err == nil {
				won++
			} else if !errors.Is(err, errs.ErrExists) {
				t.Fatal(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d writers won", won)
		}
		must(t, s.Put(ctx, "v/1", []byte("forced"), false))
		f, err := s.Open(ctx, "v/1")
		must(t, err)
		if b, _ := f.Read(ctx, Range{0, f.SizeBytes()}); string(b) != "forced" {
			t.Fatalf("%q", b)
		}
	})
}

func TestAWriterIsSeenAtCloseAlone(t *testing.T) {
	ctx := context.Background()
	each(t, func(t *testing.T, s Store) {
		w, err := s.Create(ctx, "data/new")
		must(t, err)
		for range 3 {
			_, err = w.Write([]byte("abc"))
			must(t, err)
		}
		if _, err := s.Stat(ctx, "data/new"); !errors.Is(err, errs.ErrNotFound) {
			t.Fatalf("seen before Close: %v", err)
		}
		if es, err := s.List(ctx, "data"); err != nil || len(es) != 0 {
			t.Fatalf("listed before Close: %v %v", es, err)
		}
		must(t, w.Close())
		must(t, w.Close())
		must(t, w.Abort())
		if e, err := s.Stat(ctx, "data/new"); err != nil || e.SizeBytes != 9 || w.OffsetBytes() != 9 {
			t.Fatalf("%+v %v", e, err)
		}
		w, err = s.Create(ctx, "data/dropped")
		must(t, err)
		_, err = w.Write([]byte("abc"))
		must(t, err)
		must(t, w.Abort())
		must(t, w.Abort())
		if _, err := s.Stat(ctx, "data/dropped"); !errors.Is(err, errs.ErrNotFound) {
			t.Fatalf("seen after Abort: %v", err)
		}
	})
}

func TestACanceledContextStopsReads(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		must(t, s.Put(context.Background(), "f", []byte("abc"), false))
		f, err := s.Open(context.Background(), "f")
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := f.Read(ctx, Range{0, 1}); !errors.Is(err, context.Canceled) {
			t.Fatalf("read: %v", err)
		}
		if _, err := s.Open(ctx, "f"); !errors.Is(err, context.Canceled) {
			t.Fatalf("open: %v", err)
		}
	})
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
