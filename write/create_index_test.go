package write

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

func snapshotOf(t *testing.T, target Target) *storage.Snapshot {
	t.Helper()
	table, err := storage.OpenTable(context.Background(), target.Store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func indexedTable(t *testing.T) Target {
	t.Helper()
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 250, batchRows: 50}}, Rows: RowOptions{FragmentRows: 100}, StableRowIDs: true})
	return target
}

func indexFolders(t *testing.T, target Target) (files int) {
	t.Helper()
	folders, err := target.Store.List(context.Background(), object.Join(target.Dir, manifest.IndicesDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		entries, err := target.Store.List(context.Background(), object.Join(target.Dir, manifest.IndicesDir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		files += len(entries)
	}
	return files
}

func TestCreateIndexAnswersWhatItsTableHolds(t *testing.T) {
	ctx := context.Background()
	target := indexedTable(t)
	spec := IndexSpec{Column: "id", Kind: index.KindBTree, Fragments: []uint32{0, 2}}
	done, err := CreateIndex(ctx, target, spec, CommitOptions{})
	if err != nil || done.Version != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	s := snapshotOf(t, target)
	info := s.Indices()[0]
	if info.Name != "id_idx" || info.DatasetVersion != 1 || info.Covers.GetCardinality() != 2 || len(info.Files) != 2 {
		t.Fatalf("got %+v", info)
	}
	open := func(ctx context.Context, name string) (object.File, error) { return s.OpenIndexFile(ctx, info, name) }
	segment, err := btree.Open(ctx, open, index.Meta{Name: info.Name, Kind: index.KindBTree, Covers: info.Covers}, index.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	ids.AppendValues([]int64{7, 150, 240}, nil) // the second lies in fragment 1
	truth, _, err := segment.Lookup(ctx, index.Predicate{Op: index.OpIn, Values: ids.NewArray()})
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Resolve(ctx, truth.True)
	if err != nil {
		t.Fatal(err)
	}
	if found.Count() != 2 {
		t.Fatalf("%d rows, want those of fragments 0 and 2", found.Count())
	}
	other := IndexSpec{Column: "id", Kind: index.KindBTree, Name: "id_idx", Replace: true}
	if _, err := CreateIndex(ctx, target, other, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if all := snapshotOf(t, target).Indices(); len(all) != 1 || all[0].Covers.GetCardinality() != 3 {
		t.Fatalf("after the replacement: %+v", all)
	}
}

func TestCreateIndexLeavesNothingBehindWhenItFails(t *testing.T) {
	ctx := context.Background()
	target := indexedTable(t)
	if _, err := CreateIndex(ctx, target, IndexSpec{Column: "labels", Kind: index.KindLabelList}, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	before := indexFolders(t, target)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		spec IndexSpec
		kind error
	}{
		{"an unknown column", ctx, IndexSpec{Column: "nothing", Kind: index.KindBTree}, errs.ErrNotFound},
		{"a name that is taken", ctx, IndexSpec{Column: "labels", Kind: index.KindLabelList}, errs.ErrExists},
		{"labels of a column that is no list", ctx, IndexSpec{Column: "id", Kind: index.KindLabelList}, errs.ErrInvalid},
		{"an order of lists", ctx, IndexSpec{Column: "labels", Name: "x", Kind: index.KindBTree}, errs.ErrUnsupported},
		{"a kind that is not built", ctx, IndexSpec{Column: "id", Kind: index.KindZoneMap}, errs.ErrUnsupported},
		{"a fragment that is not there", ctx, IndexSpec{Column: "id", Kind: index.KindBTree, Fragments: []uint32{9}}, errs.ErrInvalid},
		{"too little memory", ctx, IndexSpec{Column: "id", Kind: index.KindBTree, Budget: mem.NewBudget("test", 100, nil)}, errs.ErrMemoryLimit},
		{"a canceled statement", canceled, IndexSpec{Column: "id", Kind: index.KindBTree}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := CreateIndex(c.ctx, target, c.spec, CommitOptions{}); !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
			if got := indexFolders(t, target); got != before {
				t.Fatalf("%d index files, %d before", got, before)
			}
		})
	}
	if v := snapshotOf(t, target).Version(); v != 2 {
		t.Fatalf("version %d", v)
	}
}

// The store fails at each operation in turn: the index is registered and whole, or not registered.
func TestCreateIndexIsAllOrNothingAtEveryOperation(t *testing.T) {
	ctx := context.Background()
	target := indexedTable(t)
	base, ok := target.Store.(*object.Memory)
	if !ok {
		t.Fatal("no memory store")
	}
	failed := 0
	for n := int64(1); ; n++ {
		store := base.Clone()
		faulty := object.NewFaulty(store, object.FaultyOptions{FailAt: n})
		_, err := CreateIndex(ctx, Target{Store: faulty, Dir: target.Dir}, IndexSpec{Column: "labels", Kind: index.KindLabelList}, CommitOptions{})
		s := snapshotOf(t, Target{Store: store, Dir: target.Dir})
		if (err == nil) != (len(s.Indices()) == 1) {
			t.Fatalf("operation %d: %d indices, error %v", n, len(s.Indices()), err)
		}
		if err != nil {
			failed++
			continue
		}
		if _, err := s.OpenIndexFile(ctx, s.Indices()[0], "bitmap_page_lookup.lance"); err != nil {
			t.Fatal(err)
		}
		if faulty.Operations() < n {
			break
		}
	}
	if failed < 5 {
		t.Fatalf("only %d failures were injected", failed)
	}
}
