package manifest

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// sample is a small manifest that is right in every respect.
func sample() *tablepb.Manifest {
	base := uint32(0)
	return &tablepb.Manifest{
		Fields:    []*filepb.Field{{Name: "id", ParentId: -1, LogicalType: "int64"}},
		Version:   3,
		Timestamp: timestamppb.New(time.Unix(1700000000, 5)),
		BasePaths: []*tablepb.BasePath{{Id: 0, IsDatasetRoot: true, Path: "/elsewhere"}},
		Fragments: []*tablepb.DataFragment{{
			Files: []*tablepb.DataFile{{
				Path: "a.lance", Fields: []int32{0}, ColumnIndices: []int32{0}, FileMajorVersion: 2, FileMinorVersion: 1, BaseId: &base,
			}},
			PhysicalRows: 10, DeletionFile: &tablepb.DeletionFile{NumDeletedRows: 2, Id: 7, ReadVersion: 1},
		}},
		DataFormat: &tablepb.Manifest_DataStorageFormat{FileFormat: "lance", Version: "2.1"},
	}
}

func encode(tb testing.TB, m *tablepb.Manifest, indices []*tablepb.IndexMetadata, t *tablepb.Transaction) []byte {
	tb.Helper()
	b, err := Encode(m, indices, t)
	must(tb, err)
	return b
}

func TestAManifestComesBack(t *testing.T) {
	in := sample()
	index := &tablepb.IndexMetadata{Uuid: &tablepb.UUID{Uuid: make([]byte, 16)}, Name: "i", Fields: []int32{0}}
	b := encode(t, in, []*tablepb.IndexMetadata{index}, &tablepb.Transaction{Uuid: "u", ReadVersion: 2})
	m, err := Decode(b)
	must(t, err)
	if !proto.Equal(m.Proto, in) || len(m.Indices) != 1 || !proto.Equal(m.Indices[0], index) {
		t.Fatalf("%v", m.Proto)
	}
	if m.Version() != 3 || !m.Timestamp().Equal(time.Unix(1700000000, 5)) || m.Schema.Fields[0].Name != "id" {
		t.Fatalf("%d %v", m.Version(), m.Timestamp())
	}
	if in.GetIndexSection() != 0 || in.IndexSection == nil {
		t.Fatal("the index section is not at 0")
	}
	tx, err := ParseTransaction(m.Transaction)
	if err != nil || tx.GetUuid() != "u" {
		t.Fatalf("%v %v", tx, err)
	}
}

func TestUnknownFieldsSurviveARewrite(t *testing.T) {
	in := sample()
	in.ProtoReflect().SetUnknown([]byte{0xb8, 0x01, 0x07}) // field 23, varint 7
	m, err := Decode(encode(t, in, nil, nil))
	must(t, err)
	again, err := Decode(encode(t, m.Proto, nil, nil))
	must(t, err)
	if string(again.Proto.ProtoReflect().GetUnknown()) != "\xb8\x01\x07" {
		t.Fatalf("%x", again.Proto.ProtoReflect().GetUnknown())
	}
}

func TestManifestsThatMakeNoSense(t *testing.T) {
	change := func(f func(m *tablepb.Manifest)) []byte {
		m := sample()
		f(m)
		b, err := Encode(m, nil, nil)
		if err != nil {
			panic(err)
		}
		return b
	}
	good := change(func(*tablepb.Manifest) {})
	patched := func(fromEnd int, b ...byte) []byte {
		out := append([]byte(nil), good...)
		copy(out[len(out)-fromEnd:], b)
		return out
	}
	far := binary.LittleEndian.AppendUint64(nil, 1<<63)
	two := uint32(2)
	for _, tc := range []struct {
		name string
		b    []byte
		kind error
		text string
	}{
		{"an empty file", nil, errs.ErrCorrupt, "half written"},
		{"a file cut in the middle", good[:len(good)-8], errs.ErrCorrupt, "half written"},
		{"another kind of file", []byte("PAR1 and some more bytes PAR1"), errs.ErrCorrupt, "magic"},
		{"a newer container", patched(8, 1, 0), errs.ErrUnsupported, "1.2"},
		{"a position behind the end", patched(16, far...), errs.ErrCorrupt, "manifest at"},
		{"a length behind the end", append(binary.LittleEndian.AppendUint32(nil, 5000), good[len(good)-16:]...), errs.ErrCorrupt, "5000 bytes long"},
		{"an index section behind the end", func() []byte {
			m := sample()
			at := uint64(1 << 40)
			m.IndexSection = &at
			b, err := proto.Marshal(m)
			must(t, err)
			out := append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
			return append(out, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 'L', 'A', 'N', 'C')
		}(), errs.ErrCorrupt, "index section"},
		{"a feature of tomorrow", change(func(m *tablepb.Manifest) { m.ReaderFeatureFlags = 64 | 1<<40 }), errs.ErrUnsupported,
			"data overlay files (flag 64), unknown feature (flag 1099511627776)"},
		{"files of another format", change(func(m *tablepb.Manifest) { m.DataFormat.FileFormat = "orc" }), errs.ErrUnsupported, "orc"},
		{"a fragment twice", change(func(m *tablepb.Manifest) { m.Fragments = append(m.Fragments, m.Fragments[0]) }), errs.ErrCorrupt, "twice"},
		{"a fragment id over 32 bits", change(func(m *tablepb.Manifest) { m.Fragments[0].Id = 1 << 32 }), errs.ErrCorrupt, "32 bits"},
		{"rows over 32 bits", change(func(m *tablepb.Manifest) { m.Fragments[0].PhysicalRows = 1 << 40 }), errs.ErrCorrupt, "32 bits"},
		{"a path that leaves the dataset", change(func(m *tablepb.Manifest) { m.Fragments[0].Files[0].Path = "../../etc/passwd" }), errs.ErrCorrupt, "plain relative path"},
		{"fields without columns", change(func(m *tablepb.Manifest) { m.Fragments[0].Files[0].ColumnIndices = nil }), errs.ErrCorrupt, "1 fields in 0 columns"},
		{"more deleted rows than rows", change(func(m *tablepb.Manifest) { m.Fragments[0].DeletionFile.NumDeletedRows = 11 }), errs.ErrCorrupt, "11 rows deleted of 10"},
		{"a base path that is not listed", change(func(m *tablepb.Manifest) { m.Fragments[0].Files[0].BaseId = &two }), errs.ErrCorrupt, "base path 2"},
		{"stable ids without ids", change(func(m *tablepb.Manifest) { m.ReaderFeatureFlags = FlagStableRowIDs }), errs.ErrCorrupt, "no row ids"},
		{"an unknown type", change(func(m *tablepb.Manifest) { m.Fields[0].LogicalType = "geometry" }), errs.ErrUnsupported, `field "id"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Decode(tc.b)
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("got %v, want %v with %q", err, tc.kind, tc.text)
			}
		})
	}
}

func TestReadNamesTheFileInErrors(t *testing.T) {
	ctx := context.Background()
	s := object.NewMemory("m")
	must(t, s.Put(ctx, "d/_versions/1.manifest", []byte("LANC"), false))
	flagged := sample()
	flagged.ReaderFeatureFlags = 64
	must(t, s.Put(ctx, "d/_versions/2.manifest", encode(t, flagged, nil, nil), false))
	must(t, s.Put(ctx, "d/_versions/4.manifest", encode(t, sample(), nil, nil), false))
	for _, v := range []uint64{1, 2, 4} {
		f, err := Find(ctx, s, "d", v)
		must(t, err)
		if _, err := ReadFile(ctx, s, f); err == nil || !strings.Contains(err.Error(), f.Path) {
			t.Fatalf("version %d: %v", v, err)
		}
	}
	if _, err := Find(ctx, s, "d", 9); !errors.Is(err, errs.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestALargeManifestIsReadInTwoParts(t *testing.T) {
	ctx := context.Background()
	m := sample()
	m.Config = map[string]string{"pad": strings.Repeat("x", 3*tailBytes)}
	c := object.NewCounting(object.NewMemory("m"), object.CountingOptions{AsRemote: true})
	must(t, c.Put(ctx, "f", encode(t, m, nil, nil), false))
	got, err := Read(ctx, c, "f")
	must(t, err)
	if !proto.Equal(got.Proto, m) || c.Total().Requests != 2 {
		t.Fatalf("%d requests", c.Total().Requests)
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		name    string
		version uint64
		naming  Naming
		ok      bool
	}{
		{"18446744073709551614.manifest", 1, NamingV2, true},
		{"00000000000000000000.manifest", 1<<64 - 1, NamingV2, true},
		{"7.manifest", 7, NamingV1, true},
		{"1234567890123456789.manifest", 1234567890123456789, NamingV1, true},
		{"d18446744073709551614.manifest", 0, 0, false},
		{".tmp_7.manifest", 0, 0, false},
		{"7.manifest-2f0a", 0, 0, false},
		{"99999999999999999999.manifest", 0, 0, false}, // 20 digits, over 64 bits
		{"-7.manifest", 0, 0, false},
		{".manifest", 0, 0, false},
		{"latest_version_hint.json", 0, 0, false},
	} {
		v, n, ok := ParseName(tc.name)
		if v != tc.version || n != tc.naming || ok != tc.ok {
			t.Errorf("%s: %d %v %t", tc.name, v, n, ok)
		}
		if ok && n.Name(v) != tc.name {
			t.Errorf("%s is spelled %s", tc.name, n.Name(v))
		}
	}
}

func TestTheLatestVersionIsWhatTheFolderSays(t *testing.T) {
	ctx := context.Background()
	s := object.NewMemory("m")
	if _, err := Latest(ctx, s, "d"); !errors.Is(err, errs.ErrNotFound) {
		t.Fatal(err)
	}
	put := func(name string) { must(t, s.Put(ctx, "d/_versions/"+name, nil, false)) }
	for _, v := range []uint64{1, 2, 9, 10, 11} {
		put(NamingV1.Name(v))
	}
	put("latest_version_hint.json")
	put("d9223372036854775809.manifest")
	put(".tmp_99.manifest")
	if f, err := Latest(ctx, s, "d"); err != nil || f.Version != 11 || f.Naming != NamingV1 {
		t.Fatalf("%+v %v", f, err)
	}
	put(NamingV2.Name(11))
	put(NamingV2.Name(12))
	if f, err := Latest(ctx, s, "d"); err != nil || f.Version != 12 || f.Naming != NamingV2 {
		t.Fatalf("%+v %v", f, err)
	}
	files, err := Versions(ctx, s, "d")
	must(t, err)
	if len(files) != 6 || files[0].Version != 1 || files[4].Version != 11 {
		t.Fatalf("%+v", files)
	}
}

func TestReferenceDatasets(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(testutil.Root(t), "testdata", "lance")
	s, err := object.OpenLocal(root, object.LocalOptions{})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	entries, err := s.List(ctx, "")
	must(t, err)
	seen := 0
	for _, e := range entries {
		if !e.IsDir {
			continue
		}
		files, err := Versions(ctx, s, e.Name)
		must(t, err)
		for _, f := range files {
			m, err := ReadFile(ctx, s, f)
			if err != nil {
				t.Fatalf("%s: %v", f.Path, err)
			}
			seen++
			tx, err := ReadTransaction(ctx, s, e.Name, m)
			if err != nil || OperationName(tx) == "unknown" {
				t.Fatalf("%s: transaction %v: %v", f.Path, tx, err)
			}
			for _, frag := range m.Proto.GetFragments() {
				checkFragmentParts(t, s, e.Name, m, frag)
			}
		}
	}
	if seen < 40 {
		t.Fatalf("%d manifests seen", seen)
	}
}

func checkFragmentParts(t *testing.T, s object.Store, dir string, m *Manifest, frag *tablepb.DataFragment) {
	t.Helper()
	if d := frag.GetDeletionFile(); d != nil {
		b, err := os.ReadFile(filepath.Join(strings.TrimPrefix(s.URL(), "file://"), dir, DeletionPath(frag.GetId(), d)))
		must(t, err)
		bm, err := ParseDeletions(b, d.GetFileType(), frag.GetPhysicalRows())
		if err != nil || bm.GetCardinality() != d.GetNumDeletedRows() {
			t.Fatalf("%s fragment %d: %v deleted, want %d: %v", dir, frag.GetId(), bm, d.GetNumDeletedRows(), err)
		}
	}
	if m.HasStableRowIDs() {
		ids, err := ParseRowIDs(frag.GetInlineRowIds(), frag.GetPhysicalRows())
		if err != nil || ids.Count() != frag.GetPhysicalRows() {
			t.Fatalf("%s fragment %d: %v", dir, frag.GetId(), err)
		}
		for i := range ids.Count() {
			if ids.At(i) >= m.Proto.GetNextRowId() {
				t.Fatalf("%s fragment %d: row id %d", dir, frag.GetId(), ids.At(i))
			}
		}
	}
}

func TestTagsAndBranches(t *testing.T) {
	ctx := context.Background()
	s := object.NewMemory("m")
	put := func(p, content string) { must(t, s.Put(ctx, "d/"+p, []byte(content), false)) }
	put("_refs/tags/v1.json", `{"branch": null, "version": 3, "createdAt": "2026-11-29T19:27:37.914458497Z", "more": [1]}`)
	put("_refs/tags/on%2Fbranch.json", `{"branch": "dev/x", "version": 4}`)
	put("_refs/branches/dev%2Fx.json", `{"parentBranch": null, "parentVersion": 2, "createAt": 1795987131, "identifier": {}}`)
	tags, err := Tags(ctx, s, "d")
	must(t, err)
	if len(tags) != 2 || tags[0].Name != "on/branch" || tags[0].Branch != "dev/x" || tags[1].Version != 3 || tags[1].Created.Nanosecond() != 914458497 {
		t.Fatalf("%+v", tags)
	}
	tag, err := ReadTag(ctx, s, "d", "on/branch")
	if err != nil || tag.Version != 4 {
		t.Fatalf("%+v %v", tag, err)
	}
	branches, err := Branches(ctx, s, "d")
	must(t, err)
	if len(branches) != 1 || branches[0].ParentVersion != 2 || branches[0].Created.Unix() != 1795987131 {
		t.Fatalf("%+v", branches)
	}
	if dir, err := branches[0].Dir(); err != nil || dir != "tree/dev/x" {
		t.Fatalf("%s %v", dir, err)
	}
	if _, err := BranchDir("../../x"); !errors.Is(err, errs.ErrInvalid) {
		t.Fatal(err)
	}
	put("_refs/tags/broken.json", `{"version": "three"}`)
	if _, err := Tags(ctx, s, "d"); !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), "broken.json") {
		t.Fatal(err)
	}
	if _, err := ReadTag(ctx, s, "d", "none"); !errors.Is(err, errs.ErrNotFound) {
		t.Fatal(err)
	}
}

// FuzzDecode: a manifest file of any bytes is an error of a known kind, or decodes again after a rewrite.
func FuzzDecode(f *testing.F) {
	in := sample()
	f.Add(encode(f, in, []*tablepb.IndexMetadata{{Uuid: &tablepb.UUID{Uuid: make([]byte, 16)}}}, &tablepb.Transaction{Uuid: "u"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		again, err := Encode(m.Proto, m.Indices, nil)
		must(t, err)
		if _, err := Decode(again); err != nil {
			t.Fatalf("no round trip: %v", err)
		}
	})
}

// FuzzParseTag: any bytes are a tag or ErrCorrupt.
func FuzzParseTag(f *testing.F) {
	f.Add([]byte(`{"branch": "b", "version": 3, "createdAt": "2026-11-29T19:27:37.914458497Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ParseTag("t", b); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			t.Fatal(err)
		}
		if _, err := ParseBranch("t", b); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
