package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// builder makes datasets by hand: states that other writers reach by long histories.
type builder struct {
	tb    testing.TB
	store object.Store
	dir   string
	m     *tablepb.Manifest
}

func newBuilder(tb testing.TB, store object.Store, dir string, fields ...*filepb.Field) *builder {
	tb.Helper()
	return &builder{tb: tb, store: store, dir: dir, m: &tablepb.Manifest{
		Version: 1, Fields: fields, Timestamp: timestamppb.New(time.Unix(1_700_000_000, 0)),
		DataFormat: &tablepb.Manifest_DataStorageFormat{FileFormat: "lance", Version: "2.2"},
	}}
}

func pbField(id, parent int32, name, logical string) *filepb.Field {
	return &filepb.Field{Id: id, ParentId: parent, Name: name, LogicalType: logical, Nullable: true}
}

// data writes a data file of some fields with rows given as JSON, and returns its entry.
func (b *builder) data(name string, rows string, fields ...*filepb.Field) *tablepb.DataFile {
	b.tb.Helper()
	return b.dataIn(b.store, object.Join(b.dir, manifest.DataDir, name), name, rows, fields...)
}

func (b *builder) dataIn(store object.Store, path, name, rows string, fields ...*filepb.Field) *tablepb.DataFile {
	b.tb.Helper()
	ctx := context.Background()
	s, err := schema.FromProto(fields, nil)
	must(b.tb, err)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s.Arrow(), strings.NewReader(rows))
	must(b.tb, err)
	out, err := store.Create(ctx, path)
	must(b.tb, err)
	w, err := file.NewWriter(out, s, file.WriterOptions{})
	must(b.tb, err)
	must(b.tb, w.Write(ctx, rec))
	done, err := w.Finish(ctx)
	must(b.tb, err)
	d := &tablepb.DataFile{Path: name, FileMajorVersion: 2, FileMinorVersion: 2, FileSizeBytes: uint64(done.SizeBytes)}
	for f := range s.All() {
		if c, ok := done.ColumnOf[f.ID]; ok {
			d.Fields, d.ColumnIndices = append(d.Fields, f.ID), append(d.ColumnIndices, int32(c))
		}
	}
	return d
}

func (b *builder) fragment(id, rows uint64, files ...*tablepb.DataFile) *tablepb.DataFragment {
	f := &tablepb.DataFragment{Id: id, PhysicalRows: rows, Files: files}
	b.m.Fragments = append(b.m.Fragments, f)
	return f
}

func (b *builder) deleteRows(f *tablepb.DataFragment, offsets ...uint32) {
	b.tb.Helper()
	bm := roaring.BitmapOf(offsets...)
	f.DeletionFile = &tablepb.DeletionFile{FileType: tablepb.DeletionFile_BITMAP, ReadVersion: 1, Id: 9, NumDeletedRows: bm.GetCardinality()}
	body, err := bm.ToBytes()
	must(b.tb, err)
	must(b.tb, b.store.Put(context.Background(), object.Join(b.dir, manifest.DeletionPath(f.GetId(), f.GetDeletionFile())), body, false))
	b.m.ReaderFeatureFlags |= manifest.FlagDeletionFiles
}

func (b *builder) commit(naming manifest.Naming) {
	b.tb.Helper()
	body, err := manifest.Encode(b.m, nil, nil)
	must(b.tb, err)
	must(b.tb, b.store.Put(context.Background(), object.Join(b.dir, manifest.VersionsDir, naming.Name(b.m.GetVersion())), body, true))
}

func (b *builder) open() *Table {
	b.tb.Helper()
	t, err := OpenTable(context.Background(), b.store, b.dir, TableOptions{})
	must(b.tb, err)
	return t
}

func (b *builder) snapshot() *Snapshot {
	b.tb.Helper()
	s, err := b.open().Latest(context.Background())
	must(b.tb, err)
	return s
}

// rowsOf scans and returns the rows in address order as text.
func rowsOf(tb testing.TB, s *Snapshot) string {
	tb.Helper()
	all := scan(tb, s, ScanOptions{}, 1)
	slices.Sort(all.order)
	var out []string
	for _, a := range all.order {
		var cols []string
		for _, f := range s.ArrowSchema().Fields() {
			cols = append(cols, fmt.Sprint(all.rows[a][f.Name]))
		}
		out = append(out, strings.Join(cols, ","))
	}
	return strings.Join(out, "; ")
}

var (
	idField   = pbField(0, -1, "id", "int64")
	nameField = pbField(1, -1, "name", "string")
)

func TestColumnsThatCameAndWent(t *testing.T) {
	point := []*filepb.Field{pbField(4, -1, "p", "struct"), pbField(5, 4, "x", "int32"), pbField(6, 4, "y", "string")}
	b := newBuilder(t, object.NewMemory("m"), "d", append([]*filepb.Field{idField, pbField(1, -1, "renamed", "string"), pbField(3, -1, "added", "int32")}, point...)...)
	gone := pbField(2, -1, "gone", "int32")
	// Fragment 0: written before "added" and "p"; "gone" is a tombstone now; p.x and p.y came one after the other.
	old := b.data("old.lance", `[{"id":1,"name":"a","gone":7},{"id":2,"name":null,"gone":8}]`, idField, nameField, gone)
	old.Fields[slices.Index(old.Fields, 2)] = tombstone
	px := b.data("px.lance", `[{"p":{"x":10}},{"p":null}]`, point[0], point[1])
	py := b.data("py.lance", `[{"p":{"y":"q"}},{"p":null}]`, point[0], point[2])
	b.fragment(0, 2, old, px, py)
	// Fragment 3: all columns in two files, one of them in other order.
	b.fragment(3, 1, b.data("b1.lance", `[{"added":5,"id":3}]`, pbField(3, -1, "added", "int32"), idField),
		b.data("b2.lance", `[{"name":"c","p":{"x":1,"y":"z"}}]`, append([]*filepb.Field{nameField}, point...)...))
	// Fragment 5: p without x; a column index of -1 for the struct itself; nothing else but the id.
	half := b.data("half.lance", `[{"id":4,"p":{"y":"only"}}]`, idField, point[0], point[2])
	half.Fields, half.ColumnIndices = append(half.Fields, 4), append(half.ColumnIndices, -1)
	b.fragment(5, 1, half)
	b.commit(manifest.NamingV2)
	s := b.snapshot()
	want := "1,a,<nil>,map[x:10 y:q]; 2,<nil>,<nil>,<nil>; 3,c,5,map[x:1 y:z]; 4,<nil>,<nil>,map[x:<nil> y:only]"
	if got := rowsOf(t, s); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	checkTake(t, s, scan(t, s, ScanOptions{}, 1), "id")
	if _, err := s.Scan(context.Background(), ScanOptions{Columns: []string{"gone"}}); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("a dropped column: %v", err)
	}
	if n, err := s.ColumnBytes(context.Background(), "p"); err != nil || n == 0 {
		t.Fatalf("%d bytes of p: %v", n, err)
	}
}

func TestScanOfNoColumnsCountsRows(t *testing.T) {
	b := newBuilder(t, object.NewMemory("m"), "d", idField)
	b.deleteRows(b.fragment(2, 3, b.data("f.lance", `[{"id":1},{"id":2},{"id":3}]`, idField)), 1)
	b.commit(manifest.NamingV1)
	ctx := context.Background()
	c, err := b.snapshot().Scan(ctx, ScanOptions{Columns: []string{}})
	must(t, err)
	rec, err := c.Reader().Next(ctx)
	must(t, err)
	if rec.NumRows() != 2 || rec.NumCols() != 0 || c.Rows() != 2 {
		t.Fatalf("%d rows %d columns", rec.NumRows(), rec.NumCols())
	}
}

func TestCountsThatTheManifestLeavesOutAreReadFromFiles(t *testing.T) {
	b := newBuilder(t, object.NewMemory("m"), "d", idField)
	f := b.fragment(0, 3, b.data("f.lance", `[{"id":1},{"id":2},{"id":3}]`, idField))
	b.deleteRows(f, 0, 2)
	f.PhysicalRows, f.DeletionFile.NumDeletedRows = 0, 0
	b.commit(manifest.NamingV2)
	s := b.snapshot()
	if got := rowsOf(t, s); got != "2" || s.Rows() != 1 || s.Fragments()[0].PhysicalRows() != 3 || s.Fragments()[0].Rows() != 1 {
		t.Fatalf("%s, %d rows", got, s.Rows())
	}
}

func TestBranchesAndBasePaths(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"within the store", "outside the store"} {
		t.Run(kind, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(root, "lake"), 0o700))
			store, err := object.OpenLocal(filepath.Join(root, "lake"), object.LocalOptions{})
			must(t, err)
			defer func() { must(t, store.Close()) }()
			elsewhere := filepath.Join(root, "lake", "t.lance")
			main := newBuilder(t, store, "t.lance", idField)
			shared := main.data("f.lance", `[{"id":1},{"id":2}]`, idField)
			if kind == "outside the store" {
				elsewhere = filepath.Join(root, "other.lance")
				must(t, os.MkdirAll(filepath.Join(elsewhere, "data"), 0o700))
				must(t, os.Rename(filepath.Join(root, "lake", "t.lance", "data", "f.lance"), filepath.Join(elsewhere, "data", "f.lance")))
			}
			zero, one := uint32(0), uint32(1)
			bases := []*tablepb.BasePath{{Id: 0, IsDatasetRoot: true, Path: elsewhere}, {Id: 1, Path: "file://" + filepath.Join(elsewhere, "data")}}
			shared.BaseId = &zero
			main.m.BasePaths, main.m.ReaderFeatureFlags = bases, manifest.FlagBasePaths
			main.fragment(0, 2, shared)
			main.commit(manifest.NamingV2)

			br := newBuilder(t, store, "t.lance/tree/dev/x", idField)
			br.m.BasePaths, br.m.ReaderFeatureFlags, br.m.Version = bases, manifest.FlagBasePaths, 5
			again := proto.Clone(shared).(*tablepb.DataFile)
			again.BaseId = &one
			br.fragment(0, 2, again)
			br.fragment(1, 1, br.data("g.lance", `[{"id":3}]`, idField))
			br.commit(manifest.NamingV2)
			must(t, store.Put(ctx, "t.lance/_refs/tags/on.json", []byte(`{"branch":"dev/x","version":5}`), true))
			must(t, store.Put(ctx, "t.lance/_refs/branches/dev%2Fx.json", []byte(`{"parentBranch":null,"parentVersion":1}`), true))

			table := main.open()
			defer func() { must(t, table.Cache().Close()) }()
			for _, tc := range []struct {
				ref  Ref
				want string
			}{
				{Ref{}, "1; 2"}, {Ref{Branch: "main"}, "1; 2"}, {Ref{Branch: "dev/x"}, "1; 2; 3"},
				{Ref{Branch: "dev/x", Version: 5}, "1; 2; 3"}, {Ref{Tag: "on"}, "1; 2; 3"},
			} {
				s, err := table.At(ctx, tc.ref)
				must(t, err)
				if got := rowsOf(t, s); got != tc.want {
					t.Fatalf("%+v reads %s, want %s", tc.ref, got, tc.want)
				}
			}
			branches, err := table.Branches(ctx)
			if err != nil || len(branches) != 1 || branches[0].Name != "dev/x" {
				t.Fatalf("%v %v", branches, err)
			}
			for _, ref := range []Ref{{Branch: "none"}, {Branch: "../../x"}, {Tag: "none"}, {Tag: "../x"}, {Version: 9}, {Branch: "dev/x", Version: 1}} {
				if _, err := table.At(ctx, ref); !errors.Is(err, errs.ErrNotFound) {
					t.Fatalf("%+v: %v", ref, err)
				}
			}
			if _, err := table.At(ctx, Ref{Version: 1, Tag: "on"}); !errors.Is(err, errs.ErrInvalid) {
				t.Fatal(err)
			}
		})
	}
}

func TestAnUnreachableBasePathIsAnIOError(t *testing.T) {
	b := newBuilder(t, object.NewMemory("m"), "d", idField)
	zero := uint32(0)
	d := b.data("f.lance", `[{"id":1}]`, idField)
	d.BaseId = &zero
	b.fragment(0, 1, d)
	b.m.BasePaths = []*tablepb.BasePath{{Id: 0, Path: "/nowhere/at/all"}}
	b.m.ReaderFeatureFlags = manifest.FlagBasePaths
	b.commit(manifest.NamingV2)
	_, err := b.snapshot().Take(context.Background(), []rowset.RowAddr{0}, TakeOptions{})
	if !errors.Is(err, errs.ErrIO) || !strings.Contains(err.Error(), "/nowhere/at/all") {
		t.Fatal(err)
	}
}

// stableTable has row ids of every kind, an updated row (id 11: deleted in fragment 0, live in fragment 1), and ids out of order.
func stableTable(t *testing.T) *builder {
	t.Helper()
	seq := func(segs ...*tablepb.U64Segment) []byte {
		out, err := proto.Marshal(&tablepb.RowIdSequence{Segments: segs})
		must(t, err)
		return out
	}
	b := newBuilder(t, object.NewMemory("m"), "d", idField)
	b.m.ReaderFeatureFlags |= manifest.FlagStableRowIDs
	f0 := b.fragment(0, 3, b.data("f0.lance", `[{"id":10},{"id":11},{"id":12}]`, idField))
	f0.RowIdSequence = &tablepb.DataFragment_InlineRowIds{InlineRowIds: seq(
		&tablepb.U64Segment{Segment: &tablepb.U64Segment_Range_{Range: &tablepb.U64Segment_Range{Start: 10, End: 13}}})}
	b.deleteRows(f0, 1)
	f1 := b.fragment(1, 4, b.data("f1.lance", `[{"id":1000},{"id":11},{"id":7},{"id":5000000000}]`, idField))
	ids := &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U64Array_{U64Array: &tablepb.EncodedU64Array_U64Array{
		Values: []byte{0xe8, 3, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0xf2, 5, 0x2a, 1, 0, 0, 0}}}}
	external := seq(&tablepb.U64Segment{Segment: &tablepb.U64Segment_Array{Array: ids}})
	must(t, b.store.Put(context.Background(), "d/_rowids/x.bin", append([]byte("junk"), external...), false))
	f1.RowIdSequence = &tablepb.DataFragment_ExternalRowIds{ExternalRowIds: &tablepb.ExternalFile{
		Path: "_rowids/x.bin", Offset: 4, Size: uint64(len(external))}}
	// Fragment 2 spans the border of the upper halves: ids 2^32-2 .. 2^32+1.
	f2 := b.fragment(2, 4, b.data("f2.lance", `[{"id":4294967294},{"id":4294967295},{"id":4294967296},{"id":4294967297}]`, idField))
	f2.RowIdSequence = &tablepb.DataFragment_InlineRowIds{InlineRowIds: seq(
		&tablepb.U64Segment{Segment: &tablepb.U64Segment_Range_{Range: &tablepb.U64Segment_Range{Start: 1<<32 - 2, End: 1<<32 + 2}}})}
	return b
}

func TestStableRowIDsOfEveryKind(t *testing.T) {
	ctx := context.Background()
	b := stableTable(t)
	b.commit(manifest.NamingV2)
	s := b.snapshot()
	all := scan(t, s, ScanOptions{}, 1)
	for a, id := range all.ids {
		if fmt.Sprint(id) != all.rows[a]["id"] {
			t.Fatalf("row %s has id %v and key %d", a, all.rows[a]["id"], id)
		}
	}
	checkKeys(t, s, all)
	addrs, ok, err := s.ResolveKeys(ctx, []uint64{11, 11, 8, 10})
	must(t, err)
	if addrs[0] != rowset.Addr(1, 1) || addrs[1] != addrs[0] || ok[2] || !ok[3] || addrs[3] != rowset.Addr(0, 0) {
		t.Fatalf("%v %v", addrs, ok)
	}
	keys := rowset.NewSet()
	keys.AddRange(0, 0, 1<<32)
	keys.AddRange(1, 0, 1<<32)
	got, err := s.Resolve(ctx, keys)
	must(t, err)
	live, err := s.LiveRows(ctx, nil)
	must(t, err)
	if !rowset.Equal(got, live) {
		t.Fatalf("%d of %d rows", got.Count(), live.Count())
	}
}

func TestRowIDsOfAnotherLengthThanTheFragmentAreCorrupt(t *testing.T) {
	b := stableTable(t)
	b.m.Fragments[0].PhysicalRows = 4
	b.m.Fragments[0].Files = nil
	b.commit(manifest.NamingV2)
	_, err := b.snapshot().Resolve(context.Background(), rowset.NewSet(11))
	if !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), "4 rows and 3 row ids") {
		t.Fatal(err)
	}
}

func TestTakeRefusesRowsThatAreNotThere(t *testing.T) {
	b := newBuilder(t, object.NewMemory("m"), "d", idField)
	b.deleteRows(b.fragment(2, 3, b.data("f.lance", `[{"id":1},{"id":2},{"id":3}]`, idField)), 1)
	b.commit(manifest.NamingV2)
	s := b.snapshot()
	for addr, text := range map[rowset.RowAddr]string{
		rowset.Addr(1, 0): "(1, 0): there is no such fragment", rowset.Addr(2, 3): "(2, 3): the fragment is shorter",
		rowset.Addr(2, 1): "(2, 1): the row is deleted",
	} {
		if _, err := s.Take(context.Background(), []rowset.RowAddr{rowset.Addr(2, 0), addr}, TakeOptions{}); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	rec, err := s.Take(context.Background(), nil, TakeOptions{})
	if err != nil || rec.NumRows() != 0 || rec.NumCols() != 1 {
		t.Fatalf("no address: %v %v", rec, err)
	}
}

func TestANewVersionIsNoticed(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"memory", "local", "remote"} {
		t.Run(kind, func(t *testing.T) {
			var store object.Store = object.NewMemory("m")
			dir := t.TempDir()
			if kind == "local" {
				var err error
				store, err = object.OpenLocal(dir, object.LocalOptions{})
				must(t, err)
			}
			if kind == "remote" {
				store = &paged{Store: store}
			}
			defer func() { must(t, store.Close()) }()
			counting := object.NewCounting(store, object.CountingOptions{})
			if kind != "remote" { // the wrapper hides that a store lists in pages
				store = counting
			}
			b := newBuilder(t, store, "d", idField)
			b.fragment(0, 1, b.data("f.lance", `[{"id":1}]`, idField))
			b.commit(manifest.NamingV2)
			past := time.Now().Add(-time.Hour)
			if kind == "local" {
				must(t, os.Chtimes(filepath.Join(dir, "d", "_versions"), past, past))
			}
			table := b.open()
			first, err := table.Latest(ctx)
			must(t, err)
			lists := counting.Lists()
			again, err := table.Latest(ctx)
			must(t, err)
			if again != first {
				t.Fatal("an unchanged version is opened twice")
			}
			if kind == "local" && counting.Lists() != lists {
				t.Fatal("an unchanged folder is listed again")
			}
			b.m.Version = 2
			b.commit(manifest.NamingV2)
			next, err := table.Latest(ctx)
			must(t, err)
			if next.Version() != 2 || first.Version() != 1 {
				t.Fatalf("version %d", next.Version())
			}
			b.m.Version = 3
			b.commit(manifest.NamingV2)
			if next, err = table.Latest(ctx); err != nil || next.Version() != 3 {
				t.Fatalf("version %d %v, committed within the tick of the last", next.Version(), err)
			}
			if old, err := table.At(ctx, Ref{Version: 1}); err != nil || old != first {
				t.Fatalf("version 1 is opened twice: %v", err)
			}
		})
	}
}

// paged is a store that lists in pages by name, as object stores do.
type paged struct{ object.Store }

func (p *paged) ListPage(ctx context.Context, dir string, limit int) ([]object.Entry, bool, error) {
	all, err := p.List(ctx, dir)
	return all[:min(limit, len(all))], len(all) <= limit, err
}

func TestCachesOutliveVersions(t *testing.T) {
	ctx := context.Background()
	c := object.NewCounting(object.NewMemory("m"), object.CountingOptions{})
	b := newBuilder(t, c, "d", idField)
	b.deleteRows(b.fragment(0, 2, b.data("f.lance", `[{"id":1},{"id":2}]`, idField)), 0)
	b.commit(manifest.NamingV2)
	table := b.open()
	s, err := table.Latest(ctx)
	must(t, err)
	_ = rowsOf(t, s)
	b.m.Version = 2
	b.commit(manifest.NamingV2)
	c.Reset()
	s, err = table.Latest(ctx)
	must(t, err)
	if got := rowsOf(t, s); got != "2" || s.Version() != 2 {
		t.Fatal(got)
	}
	for path, n := range c.ByPath() {
		if n.Opens > 0 && !strings.Contains(path, manifest.VersionsDir) {
			t.Fatalf("%s is opened again", path)
		}
	}
}

func TestAsOfTime(t *testing.T) {
	ctx := context.Background()
	b := newBuilder(t, object.NewMemory("m"), "d", idField)
	// Clocks of several writers: version 3 says that it is older than version 2.
	for v, seconds := range []int64{100, 300, 200, 400} {
		b.m.Version, b.m.Timestamp = uint64(v+1), timestamppb.New(time.Unix(seconds, 0))
		b.commit(manifest.NamingV1)
	}
	table := b.open()
	for at, want := range map[int64]uint64{100: 1, 199: 1, 200: 3, 300: 3, 399: 3, 400: 4, 9000: 4} {
		s, err := table.At(ctx, Ref{Time: time.Unix(at, 0)})
		must(t, err)
		if s.Version() != want {
			t.Errorf("at %d is version %d, want %d", at, s.Version(), want)
		}
	}
	if _, err := table.At(ctx, Ref{Time: time.Unix(99, 0)}); !errors.Is(err, errs.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestFoldersThatAreNoDatasets(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "empty.lance"), 0o700))
	must(t, os.MkdirAll(filepath.Join(root, "noversion.lance", "_versions"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, "file.lance"), []byte("text"), 0o600))
	store, err := object.OpenLocal(root, object.LocalOptions{})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	put := func(path string, b []byte) { must(t, store.Put(ctx, path, b, false)) }
	newer := newBuilder(t, store, "newer.lance", idField)
	newer.m.ReaderFeatureFlags = manifest.FlagOverlays
	newer.commit(manifest.NamingV2)
	half := newBuilder(t, store, "half.lance", idField)
	half.commit(manifest.NamingV2)
	body, err := manifest.Encode(half.m, nil, nil)
	must(t, err)
	put("half.lance/_versions/"+manifest.NamingV2.Name(2), body[:len(body)/2])
	odd := newBuilder(t, store, "odd.lance", pbField(0, -1, "shape", "geometry"))
	odd.commit(manifest.NamingV2)
	for _, tc := range []struct {
		dir  string
		kind error
		text string
	}{
		{"missing.lance", errs.ErrNotFound, "does not exist"},
		{"empty.lance", errs.ErrNotFound, "no Lance dataset"},
		{"noversion.lance", errs.ErrNotFound, "no Lance dataset"},
		{"file.lance", errs.ErrInvalid, "is a file"},
		{"newer.lance", errs.ErrUnsupported, "data overlay files"},
		{"half.lance", errs.ErrCorrupt, manifest.NamingV2.Name(2)},
		{"odd.lance", errs.ErrUnsupported, `field "shape": type "geometry"`},
		{"../escape", errs.ErrInvalid, "plain relative path"},
	} {
		t.Run(tc.dir, func(t *testing.T) {
			_, err := OpenTable(ctx, store, tc.dir, TableOptions{})
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("got %v, want %v with %q", err, tc.kind, tc.text)
			}
		})
	}
}

func TestFilesThatAreGoneOrWrong(t *testing.T) {
	ctx := context.Background()
	make2 := func(change func(b *builder, f *tablepb.DataFragment)) *builder {
		b := newBuilder(t, object.NewMemory("m"), "d", idField)
		f := b.fragment(0, 2, b.data("f.lance", `[{"id":1},{"id":2}]`, idField))
		b.deleteRows(f, 0)
		change(b, f)
		b.commit(manifest.NamingV2)
		return b
	}
	for _, tc := range []struct {
		name   string
		change func(b *builder, f *tablepb.DataFragment)
		kind   error
		text   string
	}{
		{"a data file is gone", func(b *builder, _ *tablepb.DataFragment) { must(t, b.store.Delete(ctx, "d/data/f.lance")) }, errs.ErrIO, "data file f.lance of fragment 0 is gone"},
		{"a deletion file is gone", func(b *builder, f *tablepb.DataFragment) {
			must(t, b.store.Delete(ctx, "d/"+manifest.DeletionPath(0, f.DeletionFile)))
		}, errs.ErrIO, "deletion file"},
		{"a data file has another size", func(b *builder, f *tablepb.DataFragment) { f.Files[0].FileSizeBytes++ }, errs.ErrCorrupt, "the manifest says"},
		{"a data file has other rows", func(b *builder, f *tablepb.DataFragment) { f.PhysicalRows = 3 }, errs.ErrCorrupt, "2 rows, the manifest says 3"},
		{"the deletion file names other rows", func(b *builder, f *tablepb.DataFragment) { f.DeletionFile.NumDeletedRows = 2 }, errs.ErrCorrupt, "1 rows deleted, the manifest says 2"},
		{"a legacy data file", func(b *builder, f *tablepb.DataFragment) {
			f.Files[0].FileMajorVersion, f.Files[0].FileMinorVersion = 0, 2
		}, errs.ErrUnsupported, "f.lance has legacy format 0.2"},
		{"a column that the file does not have", func(b *builder, f *tablepb.DataFragment) { f.Files[0].ColumnIndices[0] = 99 }, errs.ErrCorrupt, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := make2(tc.change).snapshot()
			_, takeErr := s.Take(ctx, []rowset.RowAddr{1}, TakeOptions{})
			if !errors.Is(takeErr, tc.kind) || !strings.Contains(takeErr.Error(), tc.text) {
				t.Fatalf("take: %v, want %v with %q", takeErr, tc.kind, tc.text)
			}
			if errors.Is(takeErr, errs.ErrNotFound) {
				t.Fatalf("a lost file looks like a missing table: %v", takeErr)
			}
			c, err := s.Scan(ctx, ScanOptions{})
			if err == nil {
				_, err = c.Reader().Next(ctx)
			}
			if !errors.Is(err, tc.kind) {
				t.Fatalf("scan: %v", err)
			}
		})
	}
}

func TestAStoreThatFailsInMidQueryIsAnError(t *testing.T) {
	ctx := context.Background()
	mem := object.NewMemory("m")
	b := newBuilder(t, mem, "d", idField, nameField)
	b.deleteRows(b.fragment(0, 2, b.data("f.lance", `[{"id":1,"name":"a"},{"id":2,"name":"b"}]`, idField, nameField)), 0)
	b.commit(manifest.NamingV2)
	read := func(s object.Store) error {
		table, err := OpenTable(ctx, s, "d", TableOptions{})
		if err != nil {
			return err
		}
		snap, err := table.Latest(ctx)
		if err != nil {
			return err
		}
		c, err := snap.Scan(ctx, ScanOptions{})
		if err != nil {
			return err
		}
		r := c.Reader()
		for {
			rec, err := r.Next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			rec.Release()
		}
	}
	probe := object.NewFaulty(mem, object.FaultyOptions{})
	must(t, read(probe))
	if probe.Operations() < 6 {
		t.Fatalf("%d operations", probe.Operations())
	}
	for n := int64(1); n <= probe.Operations(); n++ {
		if err := read(object.NewFaulty(mem, object.FaultyOptions{FailAt: n})); !errors.Is(err, errs.ErrIO) {
			t.Fatalf("operation %d fails, the query says %v", n, err)
		}
	}
}

func TestAMappingThatShrinksInMidQueryIsAnIOError(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	store, err := object.OpenLocal(root, object.LocalOptions{SmallBytes: -1})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	b := newBuilder(t, store, "d", idField)
	var rows bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&rows, ",{\"id\":%d}", i*7919%1_000_003)
	}
	rows.Bytes()[0] = '['
	rows.WriteByte(']')
	b.fragment(0, 200_000, b.data("f.lance", rows.String(), idField))
	b.commit(manifest.NamingV2)
	c, err := b.snapshot().Scan(ctx, ScanOptions{})
	must(t, err)
	r := c.Reader()
	rec, err := r.Next(ctx)
	must(t, err)
	rec.Release()
	must(t, os.Truncate(filepath.Join(root, "d", "data", "f.lance"), 4096))
	err = spawn.Guard(func() error {
		for {
			rec, err := r.Next(ctx)
			if err != nil {
				return err
			}
			for _, v := range rec.Column(0).(*array.Int64).Int64Values() { // zero-copy values fault here
				if v < 0 {
					return errs.ErrInternal
				}
			}
			rec.Release()
		}
	})
	if !errors.Is(err, errs.ErrIO) {
		t.Fatal(err)
	}
}

func TestACanceledContextEndsScanAndTake(t *testing.T) {
	b := newBuilder(t, object.NewMemory("m"), "d", idField)
	b.fragment(0, 1, b.data("f.lance", `[{"id":1}]`, idField))
	b.commit(manifest.NamingV2)
	s := b.snapshot()
	c, err := s.Scan(context.Background(), ScanOptions{})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Reader().Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := s.Take(ctx, []rowset.RowAddr{0}, TakeOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestGatherKeepsADictionary(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	b := array.NewDictionaryBuilder(alloc, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}).(*array.BinaryDictionaryBuilder)
	defer b.Release()
	for _, s := range []string{"x", "a", "", "b", "a"} {
		if s == "" {
			b.AppendNull()
			continue
		}
		must(t, b.AppendString(s))
	}
	whole := b.NewDictionaryArray()
	defer whole.Release()
	col := array.NewSlice(whole, 1, 5)
	defer col.Release()
	got, err := gather(col, []int{3, 1, 2, 0}, alloc)
	must(t, err)
	defer got.Release()
	var out []any
	for i := range got.Len() {
		out = append(out, testutil.Spell(got, i))
	}
	if fmt.Sprint(out) != "[a <nil> b a]" {
		t.Fatal(out)
	}
}

func TestGatherPicksRowsOfEveryType(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	sc := arrow.NewSchema(testutil.Columns(true), nil)
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	for _, nulls := range []float64{0, 0.3} {
		rec := testutil.RowMaker{R: r, Nulls: nulls, ItemNulls: nulls}.Batch(alloc, sc, 60)
		part := rec.NewSlice(5, 45) // offsets that are not 0
		rec.Release()
		rows := []int{3, 3, 39, 0, 17, 20, 20, 1}
		for c, col := range part.Columns() {
			for _, rows := range [][]int{rows, {}} {
				got, err := gather(col, rows, alloc)
				must(t, err)
				if got.Len() != len(rows) || !arrow.TypeEqual(got.DataType(), col.DataType()) {
					t.Fatalf("%s: %d rows of %s", part.ColumnName(c), got.Len(), got.DataType())
				}
				for i, row := range rows {
					if g, w := testutil.Spell(got, i), testutil.Spell(col, row); !testutil.SameSpelling(g, w) {
						t.Fatalf("%s: row %d is %v, want %v", part.ColumnName(c), i, g, w)
					}
				}
				got.Release()
			}
		}
		part.Release()
	}
}
