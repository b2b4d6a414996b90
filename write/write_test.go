package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// stream yields batches of rows numbered from first.
type stream struct {
	first, rows, batchRows int64
	before                 func() // called before the first batch
	err                    error  // in place of io.EOF
}

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
}, nil)

func (s *stream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.before != nil {
		s.before()
		s.before = nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := min(s.rows, max(s.batchRows, 1))
	if n == 0 {
		if s.err != nil {
			return nil, s.err
		}
		return nil, io.EOF
	}
	m := testutil.RowMaker{R: rand.New(rand.NewSource(s.first)), Nulls: 0.1}
	labels := m.Batch(memory.DefaultAllocator, arrow.NewSchema(columns.Fields()[1:], nil), int(n))
	defer labels.Release()
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range n {
		ids.Append(s.first + i)
	}
	s.first, s.rows = s.first+n, s.rows-n
	return array.NewRecordBatch(columns, []arrow.Array{ids.NewArray(), labels.Column(0)}, n), nil
}

func memoryTable(t *testing.T) Target {
	t.Helper()
	return Target{Store: object.NewMemory("test"), Dir: "t.lance"}
}

func mustCreate(t *testing.T, target Target, opts CreateOptions) {
	t.Helper()
	if _, err := CreateTable(context.Background(), target, columns, opts); err != nil {
		t.Fatal(err)
	}
}

func mustAppend(t *testing.T, target Target, rows int64) Committed {
	t.Helper()
	done, err := Append(context.Background(), target, &stream{rows: rows, batchRows: 100}, AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func latest(t *testing.T, target Target) *version {
	t.Helper()
	v, err := target.latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rowsOf reads the ids of a version's rows.
func rowsOf(t *testing.T, target Target, v *version) []int64 {
	t.Helper()
	ctx := context.Background()
	var out []int64
	for _, fragment := range v.Proto.GetFragments() {
		df := fragment.GetFiles()[0]
		f, err := target.Store.Open(ctx, object.Join(target.Dir, "data", df.GetPath()))
		if err != nil {
			t.Fatal(err)
		}
		if f.SizeBytes() != int64(df.GetFileSizeBytes()) {
			t.Fatalf("file of %d bytes, the manifest says %d", f.SizeBytes(), df.GetFileSizeBytes())
		}
		r, err := file.Open(ctx, f, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cols, err := r.Columns("id")
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.ReadRange(ctx, cols, 0, fragment.GetPhysicalRows(), file.ReadOptions{Alloc: memory.DefaultAllocator})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Column(0).(*array.Int64).Int64Values()...) //nolint:errcheck,forcetypeassert // the schema above
		b.Release()
	}
	return out
}

func dataFiles(t *testing.T, target Target) int {
	t.Helper()
	entries, err := target.Store.List(context.Background(), object.Join(target.Dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestAppendCutsRowsIntoFragments(t *testing.T) {
	target := memoryTable(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mustCreate(t, target, CreateOptions{Commit: CommitOptions{Now: func() time.Time { return now }}})
	parts := []Batches{&stream{rows: 250, batchRows: 30}, &stream{first: 250, rows: 100, batchRows: 100}, &stream{}}
	done, err := AppendParts(context.Background(), target, parts, AppendOptions{Rows: RowOptions{FragmentRows: 100}})
	if err != nil {
		t.Fatal(err)
	}
	if done.Version != 2 || !slices.Equal(done.FragmentIDs, []uint64{0, 1, 2, 3}) {
		t.Fatalf("got %+v", done)
	}
	v := latest(t, target)
	var sizes []uint64
	for _, f := range v.Proto.GetFragments() {
		sizes = append(sizes, f.GetPhysicalRows())
	}
	if !slices.Equal(sizes, []uint64{100, 100, 50, 100}) || v.Proto.GetMaxFragmentId() != 3 {
		t.Fatalf("fragments of %v rows, high mark %d", sizes, v.Proto.GetMaxFragmentId())
	}
	for i, id := range rowsOf(t, target, v) {
		if id != int64(i) {
			t.Fatalf("row %d has id %d", i, id)
		}
	}
	if first, err := target.at(context.Background(), v.naming, 1); err != nil || !first.Timestamp().Equal(now) {
		t.Fatalf("version 1: %v", err)
	}
	empty, err := Append(context.Background(), target, &stream{}, AppendOptions{})
	if err != nil || empty.Version != 2 {
		t.Fatalf("no rows: %+v, %v", empty, err)
	}
}

func TestAppendGivesStableRowIDs(t *testing.T) {
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{StableRowIDs: true, Parts: []Batches{&stream{rows: 70, batchRows: 70}}})
	mustAppend(t, target, 30)
	v := latest(t, target)
	var from uint64
	for _, f := range v.Proto.GetFragments() {
		var ids tablepb.RowIdSequence
		if err := proto.Unmarshal(f.GetInlineRowIds(), &ids); err != nil {
			t.Fatal(err)
		}
		span := ids.GetSegments()[0].GetRange()
		if len(ids.GetSegments()) != 1 || span.GetStart() != from || span.GetEnd() != from+f.GetPhysicalRows() {
			t.Fatalf("fragment %d has ids %v, want from %d", f.GetId(), &ids, from)
		}
		from = span.GetEnd()
	}
	if from != 100 || v.Proto.GetNextRowId() != 100 || !v.HasStableRowIDs() {
		t.Fatalf("ids up to %d, next %d", from, v.Proto.GetNextRowId())
	}
}

func TestCreateTableRefusesWhatExistsOrCannotBe(t *testing.T) {
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{})
	twice := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	bare := arrow.NewSchema([]arrow.Field{{Name: "d", Type: arrow.StructOf()}}, nil)
	other := Target{Store: target.Store, Dir: "other.lance"}
	for _, c := range []struct {
		name   string
		target Target
		schema *arrow.Schema
		opts   CreateOptions
		kind   error
	}{
		{"an existing table", target, columns, CreateOptions{}, errs.ErrExists},
		{"a name twice", other, twice, CreateOptions{}, errs.ErrInvalid},
		{"a type that is not written", other, bare, CreateOptions{}, errs.ErrUnsupported},
		{"file version 2.0", other, columns, CreateOptions{Version: file.V20}, errs.ErrUnsupported},
		{"negative sizes", other, columns, CreateOptions{Rows: RowOptions{FragmentRows: -1}}, errs.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := CreateTable(context.Background(), c.target, c.schema, c.opts); !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
		})
	}
	if _, err := Append(context.Background(), other, &stream{rows: 1}, AppendOptions{}); !errors.Is(err, errs.ErrNotFound) {
		t.Fatalf("append to no table: %v", err)
	}
}

func TestAFailedAppendLeavesNothing(t *testing.T) {
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 50, batchRows: 50}}})
	broken := errors.New("the source broke")
	parts := []Batches{&stream{rows: 500, batchRows: 50, err: broken}, &stream{rows: 500, batchRows: 50}}
	_, err := AppendParts(context.Background(), target, parts, AppendOptions{Rows: RowOptions{FragmentRows: 100}})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if n := dataFiles(t, target); n != 1 {
		t.Fatalf("%d data files, want the one of before", n)
	}
	if v := latest(t, target); v.Version() != 1 {
		t.Fatalf("version %d", v.Version())
	}
}

// Whatever operation fails or is the last one, reopening shows the old version or the new one, and its rows can be read.
func TestAppendIsAllOrNothingAtEveryOperation(t *testing.T) {
	base := object.NewMemory("test")
	target := Target{Store: base, Dir: "t.lance"}
	mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 50, batchRows: 50}}})
	run := func(opts object.FaultyOptions) (*object.Memory, int64, error) {
		store := base.Clone()
		faulty := object.NewFaulty(store, opts)
		_, err := Append(context.Background(), Target{Store: faulty, Dir: "t.lance"}, &stream{first: 50, rows: 250, batchRows: 50},
			AppendOptions{Rows: RowOptions{FragmentRows: 100, Parallel: 1}})
		return store, faulty.Operations(), err
	}
	_, operations, err := run(object.FaultyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var succeeded, failed int
	for _, mode := range []object.FaultyOptions{{}, {Crash: true}, {AfterEffect: true}, {AfterEffect: true, Crash: true}} {
		for n := int64(1); n <= operations; n++ {
			mode.FailAt = n
			store, _, err := run(mode)
			reopened := Target{Store: store, Dir: "t.lance"}
			v := latest(t, reopened)
			rows := rowsOf(t, reopened, v)
			switch {
			case v.Version() == 1 && len(rows) == 50 && err != nil:
				failed++
			case v.Version() == 2 && len(rows) == 300 && err == nil:
				succeeded++
			case v.Version() == 2 && len(rows) == 300 && mode.AfterEffect && mode.Crash: // nobody is left to find out
				failed++
			default:
				t.Fatalf("%+v: version %d with %d rows, error %v", mode, v.Version(), len(rows), err)
			}
		}
	}
	if succeeded == 0 || failed == 0 {
		t.Fatalf("%d appends succeeded, %d failed", succeeded, failed)
	}
}

func TestParallelAppendsAllArrive(t *testing.T) {
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{StableRowIDs: true})
	group, ctx := spawn.WithContext(context.Background(), 0)
	const writers = 8
	for i := range int64(writers) {
		group.Go("append", func() error {
			_, err := Append(ctx, target, &stream{first: i * 10, rows: 10, batchRows: 10}, AppendOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	v := latest(t, target)
	ids := rowsOf(t, target, v)
	slices.Sort(ids)
	if v.Version() != writers+1 || len(slices.Compact(ids)) != 10*writers || v.Proto.GetNextRowId() != 10*writers {
		t.Fatalf("version %d, %d rows, next row id %d", v.Version(), len(ids), v.Proto.GetNextRowId())
	}
}

// came commits a version of the given transaction that changes nothing, as another writer would.
type came struct{ tx *tablepb.Transaction }

func (c came) apply(*version, *next) error { return nil }
func (c came) transaction() *tablepb.Transaction {
	return proto.Clone(c.tx).(*tablepb.Transaction) //nolint:errcheck,forcetypeassert // a clone
}
func (c came) allows(*tablepb.Transaction) bool { return true }

func TestConflictsFollowTheTableOfTheFormat(t *testing.T) {
	op := func(o any) *tablepb.Transaction {
		tx := &tablepb.Transaction{}
		switch o := o.(type) {
		case *tablepb.Transaction_Append:
			tx.Operation = &tablepb.Transaction_Append_{Append: o}
		case *tablepb.Transaction_Delete:
			tx.Operation = &tablepb.Transaction_Delete_{Delete: o}
		case *tablepb.Transaction_Update:
			tx.Operation = &tablepb.Transaction_Update_{Update: o}
		case *tablepb.Transaction_CreateIndex:
			tx.Operation = &tablepb.Transaction_CreateIndex_{CreateIndex: o}
		case *tablepb.Transaction_Rewrite:
			tx.Operation = &tablepb.Transaction_Rewrite_{Rewrite: o}
		case *tablepb.Transaction_Overwrite:
			tx.Operation = &tablepb.Transaction_Overwrite_{Overwrite: o}
		case *tablepb.Transaction_Restore:
			tx.Operation = &tablepb.Transaction_Restore_{Restore: o}
		case *tablepb.Transaction_Merge:
			tx.Operation = &tablepb.Transaction_Merge_{Merge: o}
		case *tablepb.Transaction_Project:
			tx.Operation = &tablepb.Transaction_Project_{Project: o}
		case *tablepb.Transaction_ReserveFragments:
			tx.Operation = &tablepb.Transaction_ReserveFragments_{ReserveFragments: o}
		}
		return tx
	}
	unknown := &tablepb.Transaction{}
	unknown.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 115, protowire.BytesType), nil))
	for _, c := range []struct {
		tx              *tablepb.Transaction
		toAppend, index bool // allowed
	}{
		{op(&tablepb.Transaction_Append{}), true, true},
		{op(&tablepb.Transaction_Delete{}), true, true},
		{op(&tablepb.Transaction_Update{}), true, true},
		{op(&tablepb.Transaction_Update{FieldsModified: []uint32{0}}), true, true}, // its files tell whether the column changed
		{op(&tablepb.Transaction_CreateIndex{}), true, true},
		{op(&tablepb.Transaction_ReserveFragments{}), true, true},
		{op(&tablepb.Transaction_Rewrite{}), true, true},
		{op(&tablepb.Transaction_Overwrite{}), false, false},
		{op(&tablepb.Transaction_Restore{}), false, false},
		{op(&tablepb.Transaction_Merge{}), false, true},
		{op(&tablepb.Transaction_Project{}), false, true},
		{unknown, false, false},
	} {
		t.Run(manifest.OperationName(c.tx), func(t *testing.T) {
			check := func(what string, allowed bool, err error) {
				t.Helper()
				if allowed != (err == nil) || (err != nil && !errors.Is(err, errs.ErrConflict)) {
					t.Fatalf("%s: %v", what, err)
				}
			}
			target := memoryTable(t)
			mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 10, batchRows: 10}}})
			other := func() {
				if _, err := target.commit(context.Background(), latest(t, target), came{c.tx}, CommitOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Append(context.Background(), target, &stream{rows: 10, batchRows: 10, before: other}, AppendOptions{})
			check("append", c.toAppend, err)
			seg := segment(t, target, "i", 0)
			base := latest(t, target)
			other()
			_, err = target.commit(context.Background(), base, &indexOp{change: IndexChange{New: []*tablepb.IndexMetadata{seg}}}, CommitOptions{})
			check("index", c.index, err)
		})
	}
}

// Versions that were cleaned up while rows were written cannot be checked, and their names must not be taken again.
func TestACommitDoesNotJumpOverVersionsThatAreGone(t *testing.T) {
	ctx := context.Background()
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{})
	rows := &stream{rows: 1, batchRows: 1, before: func() {
		mustAppend(t, target, 1)
		mustAppend(t, target, 1)
		for v := uint64(1); v <= 2; v++ {
			if err := target.Store.Delete(ctx, target.manifestPath(manifest.NamingV2, v)); err != nil {
				t.Fatal(err)
			}
		}
	}}
	if _, err := Append(ctx, target, rows, AppendOptions{}); !errors.Is(err, errs.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	if v := latest(t, target); v.Version() != 3 {
		t.Fatalf("version %d", v.Version())
	}
}

// racing commits another version right before each Put of a manifest.
type racing struct {
	object.Store
	race func()
}

func (r *racing) Put(ctx context.Context, path string, content []byte, ifAbsent bool) error {
	if race := r.race; race != nil && ifAbsent {
		r.race = nil
		race()
		r.race = race
	}
	return r.Store.Put(ctx, path, content, ifAbsent)
}

func TestRetriesEndInAConflict(t *testing.T) {
	plain := memoryTable(t)
	mustCreate(t, plain, CreateOptions{})
	attempts := 0
	store := &racing{Store: plain.Store}
	store.race = func() { attempts++; mustAppend(t, plain, 1) }
	for _, retries := range []int{-1, 3} {
		attempts = 0
		opts := AppendOptions{Commit: CommitOptions{Retries: retries}}
		_, err := Append(context.Background(), Target{Store: store, Dir: plain.Dir}, &stream{rows: 1, batchRows: 1}, opts)
		if !errors.Is(err, errs.ErrConflict) || attempts != max(retries, 0)+1 {
			t.Fatalf("%d retries: %d attempts, %v", retries, attempts, err)
		}
	}
}

// segment makes the metadata and a file of an index segment over fragments.
func segment(t *testing.T, target Target, name string, fragments ...uint32) *tablepb.IndexMetadata {
	t.Helper()
	id := uuid.New()
	path := object.Join(target.Dir, manifest.IndicesDir, id.String(), "bitmap_page_lookup.lance")
	if err := target.Store.Put(context.Background(), path, []byte("index"), true); err != nil {
		t.Fatal(err)
	}
	covers, err := roaring.BitmapOf(fragments...).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: id[:]}, Name: name, Fields: []int32{1}, FragmentBitmap: covers, DatasetVersion: 1,
		IndexDetails: &anypb.Any{TypeUrl: "/lance.table.LabelListIndexDetails"},
	}
}

func TestCommitsCarryEverythingForward(t *testing.T) {
	ctx := context.Background()
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 10, batchRows: 10}}, NamesV1: true})
	seg := segment(t, target, "i", 0)
	if _, err := CommitIndex(ctx, target, IndexChange{New: []*tablepb.IndexMetadata{seg}}, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	v := latest(t, target)
	if v.naming != manifest.NamingV1 || len(v.Indices) != 1 || v.Indices[0].CreatedAt == nil || v.Indices[0].GetFiles()[0].GetSizeBytes() != 5 {
		t.Fatalf("%s, %v", v.naming, v.Indices)
	}
	// A field of a newer engine, a deletion file and a configuration.
	later := proto.Clone(v.Proto).(*tablepb.Manifest) //nolint:errcheck,forcetypeassert // a clone
	later.Version, later.Config = 3, map[string]string{"k": "v"}
	later.Fragments[0].DeletionFile = &tablepb.DeletionFile{NumDeletedRows: 1}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 7)
	position := protowire.AppendVarint(protowire.AppendTag(nil, newTransactionSection, protowire.VarintType), 144)
	later.ProtoReflect().SetUnknown(append(position, unknown...))
	content, err := manifest.Encode(later, v.Indices, &tablepb.Transaction{})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Store.Put(ctx, target.manifestPath(v.naming, 3), content, true); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, target, 5)
	v = latest(t, target)
	if v.Version() != 4 || len(v.Indices) != 1 || v.Proto.GetConfig()["k"] != "v" || !bytes.Equal(v.Proto.ProtoReflect().GetUnknown(), unknown) {
		t.Fatalf("version %d: indices %v, config %v, unknown %x", v.Version(), v.Indices, v.Proto.GetConfig(), v.Proto.ProtoReflect().GetUnknown())
	}
	if r, w := v.Proto.GetReaderFeatureFlags(), v.Proto.GetWriterFeatureFlags(); r != manifest.FlagDeletionFiles || w != manifest.FlagDeletionFiles|manifest.FlagTableConfig {
		t.Fatalf("flags %s and %s", manifest.FlagNames(r), manifest.FlagNames(w))
	}
	hint, err := target.Store.Open(ctx, object.Join(target.Dir, manifest.VersionsDir, hintName))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := hint.Read(ctx, object.Range{Size: hint.SizeBytes()}); err != nil || string(b) != `{"version":4}` {
		t.Fatalf("hint %q, %v", b, err)
	}
}

func TestANewerFeatureIsRefused(t *testing.T) {
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{})
	v := latest(t, target)
	later := proto.Clone(v.Proto).(*tablepb.Manifest) //nolint:errcheck,forcetypeassert // a clone
	later.Version, later.WriterFeatureFlags = 2, 1<<40
	content, err := manifest.Encode(later, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Store.Put(context.Background(), target.manifestPath(v.naming, 2), content, true); err != nil {
		t.Fatal(err)
	}
	_, err = Append(context.Background(), target, &stream{rows: 1, batchRows: 1}, AppendOptions{})
	if !errors.Is(err, errs.ErrUnsupported) || dataFiles(t, target) != 0 {
		t.Fatalf("got %v and %d data files", err, dataFiles(t, target))
	}
}

func TestIndexSegmentsAreChecked(t *testing.T) {
	ctx := context.Background()
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 30, batchRows: 10}}, Rows: RowOptions{FragmentRows: 10}})
	first := segment(t, target, "i", 0)
	if _, err := CommitIndex(ctx, target, IndexChange{New: []*tablepb.IndexMetadata{first}}, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	change := func(f func(m *tablepb.IndexMetadata)) *tablepb.IndexMetadata {
		m := segment(t, target, "j", 1)
		f(m)
		return m
	}
	for _, c := range []struct {
		name string
		seg  *tablepb.IndexMetadata
		kind error
		says string
	}{
		{"a fragment covered twice", segment(t, target, "i", 0, 1), errs.ErrExists, "already covers"},
		{"a name on another column", change(func(m *tablepb.IndexMetadata) { m.Name, m.Fields = "i", []int32{0} }), errs.ErrExists, "another column"},
		{"an unknown field", change(func(m *tablepb.IndexMetadata) { m.Fields = []int32{77} }), errs.ErrInvalid, "no field 77"},
		{"a fragment that never was", segment(t, target, "j", 9), errs.ErrInvalid, "never had"},
		{"a version to come", change(func(m *tablepb.IndexMetadata) { m.DatasetVersion = 99 }), errs.ErrInvalid, "version 99"},
		{"no files", change(func(m *tablepb.IndexMetadata) { m.Uuid = &tablepb.UUID{Uuid: make([]byte, 16)} }), errs.ErrInvalid, "no files"},
		{"a short uuid", change(func(m *tablepb.IndexMetadata) { m.Uuid = &tablepb.UUID{Uuid: []byte{1}} }), errs.ErrInvalid, "uuid"},
		{"a broken bitmap", change(func(m *tablepb.IndexMetadata) { m.FragmentBitmap = []byte{1, 2} }), errs.ErrInvalid, "bitmap"},
		{"the same segment again", first, errs.ErrInvalid, "already registered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := CommitIndex(ctx, target, IndexChange{New: []*tablepb.IndexMetadata{c.seg}}, CommitOptions{})
			if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Fatalf("got %v", err)
			}
		})
	}
	second := segment(t, target, "i", 1, 2)
	if _, err := CommitIndex(ctx, target, IndexChange{New: []*tablepb.IndexMetadata{second}}, CommitOptions{}); err != nil {
		t.Fatalf("a second segment: %v", err)
	}
	merged := segment(t, target, "i", 0, 1, 2)
	removed := [][]byte{first.GetUuid().GetUuid(), second.GetUuid().GetUuid()}
	if _, err := CommitIndex(ctx, target, IndexChange{New: []*tablepb.IndexMetadata{merged}, Removed: removed}, CommitOptions{}); err != nil {
		t.Fatalf("merge: %v", err)
	}
	if v := latest(t, target); len(v.Indices) != 1 {
		t.Fatalf("%d segments after the merge", len(v.Indices))
	}
	if _, err := CommitIndex(ctx, target, IndexChange{Removed: removed}, CommitOptions{}); !errors.Is(err, errs.ErrNotFound) {
		t.Fatalf("removing what is gone: %v", err)
	}
}
