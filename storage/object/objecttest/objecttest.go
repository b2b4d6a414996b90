// Package objecttest holds what every kind of object.Store must do, as tests.
package objecttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/object"
)

// Run holds a kind of store to the contract of package object. open returns an empty store; Run closes it.
func Run(t *testing.T, open func(t *testing.T) object.Store) {
	t.Helper()
	for _, tc := range []struct {
		name string
		f    func(t *testing.T, s object.Store)
	}{
		{"what is put is read", testWhatIsPutIsRead},
		{"names and folders", testNamesAndFolders},
		{"paths that leave the root are refused", testPathsThatLeaveTheRootAreRefused},
		{"put if absent keeps the first", testPutIfAbsentKeepsTheFirst},
		{"a writer is seen at close alone", testAWriterIsSeenAtCloseAlone},
		{"a canceled context stops reads", testACanceledContextStopsReads},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t)
			tc.f(t, s)
			must(t, s.Close())
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func testWhatIsPutIsRead(t *testing.T, s object.Store) {
	t.Helper()
	ctx := context.Background()
	content := bytes.Repeat([]byte("0123456789"), 5000)
	must(t, s.Put(ctx, "a/b/file.bin", content, false))
	must(t, s.Put(ctx, "a/empty", nil, true))
	f, err := s.Open(ctx, "a/b/file.bin")
	must(t, err)
	if f.SizeBytes() != int64(len(content)) || f.Path() != "a/b/file.bin" {
		t.Fatalf("size %d path %s", f.SizeBytes(), f.Path())
	}
	got, err := f.ReadMany(ctx, []object.Range{{Offset: 10, Size: 5}, {Offset: 0, Size: 3}, {Offset: 49999, Size: 1}, {Offset: 50000, Size: 0}, {Offset: 20, Size: 30000}})
	must(t, err)
	for i, want := range []string{"01234", "012", "9", "", string(content[20:30020])} {
		if string(got[i]) != want {
			t.Fatalf("range %d reads %q", i, got[i])
		}
	}
	for _, r := range []object.Range{{Offset: -1, Size: 2}, {Offset: 49999, Size: 2}, {Offset: 50001, Size: 0}, {Offset: 0, Size: -1}, {Offset: 1, Size: 1<<63 - 1}} {
		if _, err := f.Read(ctx, r); !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), "a/b/file.bin") {
			t.Fatalf("range %v: %v", r, err)
		}
	}
	e, err := f.Read(ctx, object.Range{Offset: 49990, Size: 10})
	must(t, err)
	if cap(e) > 10 {
		t.Fatal("an append would write past the range")
	}
	empty, err := s.Open(ctx, "a/empty")
	must(t, err)
	if b, err := empty.Read(ctx, object.Range{}); err != nil || len(b) != 0 {
		t.Fatalf("empty file: %q %v", b, err)
	}
}

func testNamesAndFolders(t *testing.T, s object.Store) {
	t.Helper()
	ctx := context.Background()
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
}

func testPathsThatLeaveTheRootAreRefused(t *testing.T, s object.Store) {
	t.Helper()
	ctx := context.Background()
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
}

func testPutIfAbsentKeepsTheFirst(t *testing.T, s object.Store) {
	t.Helper()
	ctx := context.Background()
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
	if b, _ := f.Read(ctx, object.Range{Size: f.SizeBytes()}); string(b) != "forced" {
		t.Fatalf("%q", b)
	}
}

func testAWriterIsSeenAtCloseAlone(t *testing.T, s object.Store) {
	t.Helper()
	ctx := context.Background()
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
}

func testACanceledContextStopsReads(t *testing.T, s object.Store) {
	t.Helper()
	must(t, s.Put(context.Background(), "f", []byte("abc"), false))
	f, err := s.Open(context.Background(), "f")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Read(ctx, object.Range{Offset: 0, Size: 1}); !errors.Is(err, context.Canceled) {
		t.Fatalf("read: %v", err)
	}
	if _, err := s.Open(ctx, "f"); !errors.Is(err, context.Canceled) {
		t.Fatalf("open: %v", err)
	}
}
