package cloud

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/object/objecttest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func onFiles(t *testing.T) *blob.Bucket {
	t.Helper()
	b, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	must(t, err)
	return b
}

func TestBucketsKeepTheContract(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) object.Store{
		"memory": func(*testing.T) object.Store { return OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{}) },
		"memory, bare": func(*testing.T) object.Store {
			return OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{CacheBytes: -1})
		},
		"memory, small": func(*testing.T) object.Store {
			return OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{RequestBytes: 8192, Parallelism: 3, GapBytes: 1})
		},
		"files": func(t *testing.T) object.Store { return OpenBlob(onFiles(t), "file://b", Options{}) },
		"below a prefix": func(*testing.T) object.Store {
			return OpenBlob(blob.PrefixedBucket(memblob.OpenBucket(nil), "deep/prefix/"), "mem://b/deep/prefix", Options{})
		},
	} {
		t.Run(name, func(t *testing.T) { objecttest.Run(t, open) })
	}
}

func TestRandomReadsAreRightThroughCacheAndCoalescing(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewSource(1))
	content := make([]byte, 300_001)
	_, _ = r.Read(content)
	s := OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{RequestBytes: 40960, GapBytes: 5000, CacheBytes: 60 << 10})
	must(t, s.Put(ctx, "f", content, true))
	f, err := s.OpenSized(ctx, "f", int64(len(content)))
	must(t, err)
	for range 300 {
		rs := make([]object.Range, 1+r.Intn(6))
		for i := range rs {
			rs[i].Offset = r.Int63n(int64(len(content)))
			rs[i].Size = r.Int63n(min(int64(len(content))-rs[i].Offset, 1+r.Int63n(90_000)) + 1)
		}
		got, err := f.ReadMany(ctx, rs)
		must(t, err)
		for i, x := range rs {
			if string(got[i]) != string(content[x.Offset:x.Offset+x.Size]) || cap(got[i]) > len(got[i])+512 {
				t.Fatalf("range %v of %v differs", x, rs)
			}
		}
		if s.cache.usedBytes > 60<<10 {
			t.Fatalf("%d bytes cached", s.cache.usedBytes)
		}
	}
}

// spy counts the requests for data that reach a bucket.
func spy(t *testing.T, s *Blob, read func()) int {
	t.Helper()
	n := 0
	s.fetched = func(object.Range) { n++ }
	read()
	s.fetched = nil
	return n
}

func TestNeighboursShareARequestAndBlocksAreKept(t *testing.T) {
	ctx := context.Background()
	s := OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{Parallelism: 1})
	must(t, s.Put(ctx, "f", make([]byte, 1<<20), false))
	f, err := s.Open(ctx, "f")
	must(t, err)
	read := func(rs ...object.Range) func() {
		return func() {
			_, err := f.ReadMany(ctx, rs)
			must(t, err)
		}
	}
	near := []object.Range{{Offset: 10, Size: 5}, {Offset: 40_000, Size: 100}, {Offset: 9_000, Size: 5}}
	if n := spy(t, s, read(near...)); n != 1 {
		t.Fatalf("%d requests for neighbours", n)
	}
	if n := spy(t, s, read(near...)); n != 0 {
		t.Fatalf("%d requests for cached blocks", n)
	}
	if n := spy(t, s, read(object.Range{Offset: 0, Size: 10}, object.Range{Offset: 500_000, Size: 10})); n != 1 {
		t.Fatalf("%d requests where one block is cached", n)
	}
	must(t, s.Put(ctx, "f", []byte(strings.Repeat("x", 1<<20)), false))
	b, err := f.Read(ctx, object.Range{Size: 3})
	if err != nil || string(b) != "xxx" {
		t.Fatalf("after replacement: %q %v", b, err)
	}
}

func TestListingInPages(t *testing.T) {
	ctx := context.Background()
	s := OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{})
	for i := range 2100 {
		must(t, s.Put(ctx, fmt.Sprintf("d/%05d", i), nil, false))
	}
	must(t, s.Put(ctx, "d/sub/x", nil, false))
	all, err := s.List(ctx, "d")
	must(t, err)
	if len(all) != 2101 || !all[2100].IsDir {
		t.Fatalf("%d entries", len(all))
	}
	page, isAll, err := s.ListPage(ctx, "d", 16)
	must(t, err)
	if isAll || len(page) != 16 || page[0].Name != "00000" {
		t.Fatalf("%t %v", isAll, page)
	}
	s.opts.IsUnordered = true
	if page, isAll, err = s.ListPage(ctx, "d", 16); err != nil || !isAll || len(page) != 2101 {
		t.Fatalf("%d %t %v", len(page), isAll, err)
	}
}

func TestAVanishedObjectIsNotFoundAtItsFirstRead(t *testing.T) {
	ctx := context.Background()
	s := OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{})
	f, err := s.OpenSized(ctx, "gone", 100)
	must(t, err)
	if _, err := f.Read(ctx, object.Range{Size: 5}); !errors.Is(err, errs.ErrNotFound) || !strings.Contains(err.Error(), "gone") {
		t.Fatal(err)
	}
	must(t, s.Put(ctx, "short", []byte("abc"), false))
	f, err = s.OpenSized(ctx, "short", 100)
	must(t, err)
	if _, err := f.Read(ctx, object.Range{Size: 50}); !errors.Is(err, errs.ErrIO) {
		t.Fatal(err)
	}
}

func TestOpenBySchemes(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for _, where := range []string{dir, "file://" + dir} {
		s, err := Open(ctx, where)
		must(t, err)
		if s.URL() != "file://"+dir {
			t.Fatal(s.URL())
		}
		must(t, s.Close())
	}
	t.Setenv("AWS_REGION", "us-east-1")
	s, err := Open(ctx, "s3://bucket/some/prefix/?region=eu-central-1")
	must(t, err)
	if s.URL() != "s3://bucket/some/prefix" {
		t.Fatal(s.URL())
	}
	must(t, s.Close())
	for where, kind := range map[string]error{
		"ftp://host/x": errs.ErrUnsupported, "s3:///nobucket": errs.ErrInvalid, dir + "/none": errs.ErrNotFound,
	} {
		if _, err := Open(ctx, where); !errors.Is(err, kind) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// TestSparseReadsKeepLittle: ranges that lie far apart share requests, but what lies between them is not kept, and the estimate says so.
func TestSparseReadsKeepLittle(t *testing.T) {
	ctx := context.Background()
	s := OpenBlob(memblob.OpenBucket(nil), "mem://b", Options{CacheBytes: -1, Parallelism: 2})
	const size = 40 << 20
	must(t, s.Put(ctx, "f", make([]byte, size), false))
	f, err := s.Open(ctx, "f")
	must(t, err)
	var sparse []object.Range
	for at := int64(0); at < size; at += 40_000 {
		sparse = append(sparse, object.Range{Offset: at, Size: 100})
	}
	var got [][]byte
	requests := spy(t, s, func() {
		got, err = f.ReadMany(ctx, sparse)
		must(t, err)
	})
	if requests < 30 || requests > 60 { // about one for each MiB
		t.Errorf("%d requests", requests)
	}
	for i := range got {
		if len(got[i]) != 100 || cap(got[i]) != 100 {
			t.Fatalf("range %d: %d bytes of %d", i, len(got[i]), cap(got[i]))
		}
	}
	if n, most := object.FetchBytes(f, sparse), int64(100*len(sparse)+2*mergedMaxBytes); n < int64(100*len(sparse)) || n > most {
		t.Errorf("a sparse read is said to take %d bytes", n)
	}
	if n := object.FetchBytes(f, []object.Range{{Offset: 5, Size: size - 10}}); n < size-10 || n > size {
		t.Errorf("a whole read is said to take %d bytes", n)
	}
}
