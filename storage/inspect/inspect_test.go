package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// damaged copies a dataset into memory and breaks one file: truncate=N cuts it to N bytes, flip=N inverts byte N (negative: from the end),
// delete removes it.
func damaged(t *testing.T, d *datadriven.TestData, root, dataset, path string) object.Store {
	t.Helper()
	ctx := context.Background()
	mem := object.NewMemory("copy")
	must(t, filepath.WalkDir(filepath.Join(root, dataset), func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return mem.Put(ctx, filepath.ToSlash(rel), b, true)
	}))
	f, err := mem.Open(ctx, path)
	must(t, err)
	b, err := f.Read(ctx, object.Range{Size: f.SizeBytes()})
	must(t, err)
	b = append([]byte(nil), b...)
	var n int
	switch {
	case d.HasArg("truncate"):
		d.ScanArgs(t, "truncate", &n)
		b = b[:n]
	case d.HasArg("flip"):
		d.ScanArgs(t, "flip", &n)
		b[(n+len(b))%len(b)] ^= 0xff
	case d.HasArg("delete"):
		must(t, mem.Delete(ctx, path))
		return mem
	}
	must(t, mem.Put(ctx, path, b, false))
	return mem
}

// TestGolden runs testdata/*: commands manifest, fragments, file and page over the reference datasets. dataset=NAME; file=N is the
// N-th data file by name; damage as above, of=PART chooses what is broken: data file N, or the latest manifest.
func TestGolden(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(testutil.Root(t), "testdata", "lance")
	local, err := object.OpenLocal(root, object.LocalOptions{})
	must(t, err)
	defer func() { must(t, local.Close()) }()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var dataset, of string
			d.ScanArgs(t, "dataset", &dataset)
			dataset += ".lance"
			d.MaybeScanArgs(t, "of", &of)
			target := nth(t, local, dataset+"/data", argument(t, d, "file"))
			if d.Cmd == "manifest" || of == "manifest" {
				target = nth(t, local, dataset+"/_versions", argument(t, d, "file"))
			}
			if of == "deletions" {
				target = nth(t, local, dataset+"/_deletions", argument(t, d, "file"))
			}
			var store object.Store = local
			if d.HasArg("truncate") || d.HasArg("flip") || d.HasArg("delete") {
				store = damaged(t, d, root, dataset, target)
			}
			var out strings.Builder
			var faults int
			var err error
			switch d.Cmd {
			case "manifest":
				faults, err = Manifest(ctx, &out, store, target)
			case "fragments":
				faults, err = Fragments(ctx, &out, store, dataset)
			case "file":
				faults, err = File(ctx, &out, store, target, FileOptions{ReadRows: d.HasArg("rows")})
			case "page":
				faults, err = Page(ctx, &out, store, target, PageRef{Column: argument(t, d, "column"), Page: argument(t, d, "page")})
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			if err != nil {
				return fmt.Sprintf("%serror: %v\n", out.String(), err)
			}
			if n := strings.Count(out.String(), "FAULT"); n != faults {
				t.Fatalf("%d faults printed, %d counted", n, faults)
			}
			return out.String()
		})
	})
}

func argument(t *testing.T, d *datadriven.TestData, name string) (n int) {
	t.Helper()
	d.MaybeScanArgs(t, name, &n)
	return n
}

// nth returns the n-th file of a folder by name, "" if there are fewer.
func nth(t *testing.T, s object.Store, dir string, n int) string {
	t.Helper()
	entries, err := s.List(context.Background(), dir)
	must(t, err)
	if n >= len(entries) {
		return ""
	}
	return dir + "/" + entries[n].Name
}

func TestEveryReferenceFilePrintsWithoutAFault(t *testing.T) {
	ctx := context.Background()
	store, err := object.OpenLocal(filepath.Join(testutil.Root(t), "testdata", "lance"), object.LocalOptions{})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	entries, err := store.List(ctx, "")
	must(t, err)
	seen := 0
	for _, e := range entries {
		if !e.IsDir {
			continue
		}
		var out strings.Builder
		check := func(what string, faults int, err error) {
			if err != nil || faults != 0 {
				t.Fatalf("%s: %d faults, %v\n%s", what, faults, err, out.String())
			}
			out.Reset()
			seen++
		}
		n, err := Manifest(ctx, &out, store, e.Name)
		check(e.Name, n, err)
		n, err = Fragments(ctx, &out, store, e.Name)
		check(e.Name, n, err)
		files, err := store.List(ctx, e.Name+"/data")
		must(t, err)
		for _, f := range files {
			n, err = File(ctx, &out, store, e.Name+"/data/"+f.Name, FileOptions{ReadRows: true})
			check(e.Name+" "+f.Name, n, err)
			n, err = Page(ctx, &out, store, e.Name+"/data/"+f.Name, PageRef{})
			check(e.Name+" "+f.Name+" page", n, err)
		}
	}
	if seen < 100 {
		t.Fatalf("%d things printed", seen)
	}
}

func TestWhatCannotBeShownIsAnError(t *testing.T) {
	ctx := context.Background()
	s := object.NewMemory("m")
	var out strings.Builder
	if _, err := Manifest(ctx, &out, s, "none"); !errors.Is(err, errs.ErrNotFound) {
		t.Error(err)
	}
	if _, err := Fragments(ctx, &out, s, "none"); !errors.Is(err, errs.ErrNotFound) {
		t.Error(err)
	}
	if _, err := File(ctx, &out, s, "none", FileOptions{}); !errors.Is(err, errs.ErrNotFound) {
		t.Error(err)
	}
	if _, err := Page(ctx, &out, s, "none", PageRef{}); !errors.Is(err, errs.ErrNotFound) {
		t.Error(err)
	}
}

// FuzzFile: any bytes print, with their faults, in bounded memory.
func FuzzFile(f *testing.F) {
	found, err := filepath.Glob(filepath.Join("..", "..", "testdata", "lance", "scalars_v2*_7.lance", "data", "*.lance"))
	must(f, err)
	for _, p := range found {
		b, err := os.ReadFile(p)
		must(f, err)
		f.Add(b)
	}
	f.Add(binary.LittleEndian.AppendUint32(make([]byte, 36), 0x434e414c))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx := context.Background()
		s := object.NewMemory("m")
		must(t, s.Put(ctx, "d/_versions/1.manifest", b, true))
		var out strings.Builder
		if _, err := File(ctx, &out, s, "d/_versions/1.manifest", FileOptions{ReadRows: true, RowsMax: 20_000}); err != nil {
			t.Fatal(err)
		}
		if _, err := Page(ctx, &out, s, "d/_versions/1.manifest", PageRef{}); err != nil && !errors.Is(err, errs.ErrCorrupt) &&
			!errors.Is(err, errs.ErrInvalid) && !errors.Is(err, errs.ErrUnsupported) {
			t.Fatal(err)
		}
		if _, err := Manifest(ctx, &out, s, "d/_versions/1.manifest"); err != nil {
			t.Fatal(err)
		}
	})
}
