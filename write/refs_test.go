package write

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stores are the kinds of stores with folders and without.
func stores(t *testing.T) map[string]object.Store {
	t.Helper()
	local, err := object.OpenLocal(t.TempDir(), object.LocalOptions{})
	must(t, err)
	t.Cleanup(func() { _ = local.Close() })
	return map[string]object.Store{"local": local, "memory": object.NewMemory("test")}
}

// branching is a table of 100 rows in two fragments, with an index.
func branching(t *testing.T, store object.Store) (*history, *storage.Table) {
	t.Helper()
	h, _ := evolving(t, CreateOptions{})
	h.target.Store, h.rows, h.next = store, make(map[int64]item), 0
	_, err := CreateTable(context.Background(), h.target, stock, CreateOptions{Parts: []Batches{h.fresh(h.rows, 100)}, Rows: RowOptions{FragmentRows: 50}})
	must(t, err)
	table := openTable(t, h.target)
	_, err = BuildFilterIndex(context.Background(), table, FilterIndexSpec{Column: "tag", Kind: index.KindBitmap}, FilterIndexOptions{})
	must(t, err)
	return h, table
}

func deleteRange(t *testing.T, table *storage.Table, from, to uint64) {
	t.Helper()
	x := mustBegin(t, table, TxOptions{})
	rows := &rowset.Set{}
	rows.AddRange(0, from, to)
	_, err := x.Delete(context.Background(), rows)
	must(t, err)
	_, err = x.Commit(context.Background())
	must(t, err)
}

func TestRestoreBringsAnOldVersionBack(t *testing.T) {
	ctx := context.Background()
	for _, stable := range []bool{false, true} {
		h, table := evolving(t, CreateOptions{StableRowIDs: stable})
		before := maps.Clone(h.rows)
		_, err := Append(ctx, h.target, h.fresh(make(map[int64]item), 40), AppendOptions{})
		must(t, err)
		deleteRange(t, table, 20, 30)
		done, err := Restore(ctx, table, storage.Ref{Version: 2}, CommitOptions{})
		if err != nil || done.Version != 5 {
			t.Fatalf("version %d, %v", done.Version, err)
		}
		h.what = "restored"
		h.rows = before
		h.reopen()
		// Neither fragment ids nor row ids are given again.
		more, err := Append(ctx, h.target, h.fresh(h.rows, 5), AppendOptions{})
		must(t, err)
		if more.FragmentIDs[0] != 4 {
			t.Errorf("new fragments from %d on", more.FragmentIDs[0])
		}
		h.reopen()
		if stable && h.rows[h.next-1].key < 290 {
			t.Errorf("row id %d was given twice", h.rows[h.next-1].key)
		}
		if _, err := Restore(ctx, table, storage.Ref{Version: 99}, CommitOptions{}); !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("an unknown version: %v", err)
		}
	}
}

func TestTags(t *testing.T) {
	ctx := context.Background()
	_, table := branching(t, object.NewMemory("test"))
	must(t, CreateTag(ctx, table, "first", storage.Ref{Version: 1}, RefOptions{}))
	if err := CreateTag(ctx, table, "first", storage.Ref{}, RefOptions{}); !errors.Is(err, errs.ErrExists) {
		t.Errorf("a tag twice: %v", err)
	}
	for _, name := range []string{"", "a/b", ".a", "a..b", "a.lock", "ä"} {
		if err := CreateTag(ctx, table, name, storage.Ref{}, RefOptions{}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("tag %q: %v", name, err)
		}
	}
	if err := CreateTag(ctx, table, "x", storage.Ref{Version: 9}, RefOptions{}); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("a tag of nothing: %v", err)
	}
	s, err := table.At(ctx, storage.Ref{Tag: "first"})
	if err != nil || s.Version() != 1 {
		t.Fatalf("version %d, %v", s.Version(), err)
	}
	must(t, UpdateTag(ctx, table, "first", storage.Ref{}, RefOptions{}))
	if s, err = table.At(ctx, storage.Ref{Tag: "first"}); err != nil || s.Version() != 2 {
		t.Fatalf("version %d, %v", s.Version(), err)
	}
	must(t, DeleteTag(ctx, table, "first"))
	for _, err := range []error{DeleteTag(ctx, table, "first"), UpdateTag(ctx, table, "first", storage.Ref{}, RefOptions{})} {
		if !errors.Is(err, errs.ErrNotFound) {
			t.Errorf("a tag that is gone: %v", err)
		}
	}
}

func TestBranchesAreWrittenOnTheirOwn(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			h, table := branching(t, store)
			deleteRange(t, table, 0, 5)
			must(t, CreateBranch(ctx, table, "dev/x", storage.Ref{}, RefOptions{}))
			at := func(branch string) *storage.Snapshot {
				t.Helper()
				s, err := openTable(t, h.target).At(ctx, storage.Ref{Branch: branch})
				must(t, err)
				return s
			}
			if s := at("dev/x"); s.Version() != 3 || s.Rows() != 95 || s.Manifest().Proto.GetBranch() != "dev/x" {
				t.Fatalf("version %d, %d rows", s.Version(), s.Rows())
			}
			branch := at("dev/x").Table()
			deleteRange(t, branch, 5, 15) // merges with deletions of the parent
			_, err := Append(ctx, Target{Store: store, Dir: branch.Dir()}, h.fresh(make(map[int64]item), 7), AppendOptions{})
			must(t, err)
			must(t, CreateTag(ctx, branch, "here", storage.Ref{}, RefOptions{}))
			must(t, CreateBranch(ctx, branch, "deep", storage.Ref{}, RefOptions{}))
			deleteRange(t, at("deep").Table(), 15, 20)
			for name, want := range map[string]uint64{"": 95, "dev/x": 92, "deep": 87} {
				s := at(name)
				if s.Rows() != want {
					t.Errorf("branch %q has %d rows, want %d", name, s.Rows(), want)
				}
				addrs, rows := scanned(t, s)
				h.checkIndices("branch "+name, s, addrs, rows)
			}
			if s, err := openTable(t, h.target).At(ctx, storage.Ref{Tag: "here"}); err != nil || s.Rows() != 92 {
				t.Errorf("the tag of the branch: %v", err)
			}
			if _, err := Compact(ctx, at("deep").Table(), CompactOptions{Remapper: rebuilder{Target{Store: store, Dir: at("deep").Table().Dir()}}}); err != nil {
				t.Fatal(err)
			}
			s := at("deep")
			addrs, rows := scanned(t, s)
			h.checkIndices("compacted", s, addrs, rows)
			if len(rows) != 87 || len(s.Fragments()) != 2 { // the index covers two of three
				t.Errorf("%d rows in %d fragments after compaction", len(rows), len(s.Fragments()))
			}
			for _, c := range []struct {
				err, want error
			}{
				{CreateBranch(ctx, table, "dev/x", storage.Ref{}, RefOptions{}), errs.ErrExists},
				{CreateBranch(ctx, table, "main", storage.Ref{}, RefOptions{}), errs.ErrInvalid},
				{CreateBranch(ctx, table, "a//b", storage.Ref{}, RefOptions{}), errs.ErrInvalid},
				{CreateBranch(ctx, table, "new", storage.Ref{Version: 77}, RefOptions{}), errs.ErrNotFound},
				{DeleteBranch(ctx, table, "none"), errs.ErrNotFound},
				{DeleteBranch(ctx, table, "dev/x"), errs.ErrInvalid}, // deep starts from it
			} {
				if !errors.Is(c.err, c.want) {
					t.Errorf("got %v, want %v", c.err, c.want)
				}
			}
			must(t, DeleteBranch(ctx, table, "deep"))
			if err := DeleteBranch(ctx, table, "dev/x"); !errors.Is(err, errs.ErrInvalid) {
				t.Errorf("a branch with a tag: %v", err)
			}
			must(t, DeleteTag(ctx, table, "here"))
			must(t, DeleteBranch(ctx, table, "dev/x"))
			if s := at(""); s.Rows() != 95 {
				t.Errorf("%d rows", s.Rows())
			}
			if entries, err := store.List(ctx, "t.lance/tree"); err != nil || name == "memory" && len(entries) > 0 {
				t.Errorf("left of the branches: %v, %v", entries, err)
			}
		})
	}
}

func TestCleanupKeepsWhatIsNamed(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			h, table := branching(t, store) // versions 1, 2
			for i := range uint64(6) {      // 3 to 8, each with a deletion file of its own
				deleteRange(t, table, 5*i, 5*i+5)
			}
			must(t, CreateTag(ctx, table, "keep", storage.Ref{Version: 4}, RefOptions{}))
			must(t, CreateBranch(ctx, table, "b", storage.Ref{Version: 5}, RefOptions{}))
			if _, err := Compact(ctx, table, CompactOptions{}); err != nil { // 9; new files
				t.Fatal(err)
			}
			must(t, store.Put(ctx, "t.lance/data/running.lance", []byte("x"), true))
			young, err := Cleanup(ctx, table, CleanupOptions{})
			if err != nil || len(young.Versions) != 0 || young.Bytes != 0 {
				t.Fatalf("young versions: %+v, %v", young, err)
			}
			old := CleanupOptions{Now: func() time.Time { return time.Now().Add(6 * 24 * time.Hour) }, OlderThan: time.Hour}
			plan := old
			plan.DryRun = true
			would, err := Cleanup(ctx, table, plan)
			must(t, err)
			did, err := Cleanup(ctx, table, old)
			must(t, err)
			if !slices.Equal(did.Versions, []uint64{1, 2, 3, 6, 7, 8}) || !slices.Equal(did.Protected, []uint64{4, 5}) {
				t.Errorf("removed %v, protected %v", did.Versions, did.Protected)
			}
			if !slices.Equal(would.Versions, did.Versions) || would.Bytes != did.Bytes || would.DeletionFiles != did.DeletionFiles {
				t.Errorf("would %+v, did %+v", would, did)
			}
			if did.DeletionFiles != 4 || did.DataFiles != 0 { // tag and branch keep the files of the versions that they name
				t.Errorf("%+v", did)
			}
			for _, ref := range []storage.Ref{{}, {Tag: "keep"}, {Branch: "b"}, {Version: 5}} {
				s, err := openTable(t, h.target).At(ctx, ref)
				must(t, err)
				addrs, rows := scanned(t, s)
				h.checkIndices("after cleaning up", s, addrs, rows)
			}
			must(t, DeleteTag(ctx, table, "keep"))
			must(t, DeleteBranch(ctx, table, "b"))
			did, err = Cleanup(ctx, openTable(t, h.target), old)
			must(t, err)
			if !slices.Equal(did.Versions, []uint64{4, 5}) || did.DataFiles != 2 {
				t.Errorf("%+v", did)
			}
			if n := dataFiles(t, h.target); n != 2 { // that of the version, and one that nobody names
				t.Errorf("%d data files are left", n)
			}
			old.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
			if did, err = Cleanup(ctx, openTable(t, h.target), old); err != nil || did.DataFiles != 1 {
				t.Errorf("%+v, %v", did, err)
			}
			noGarbage(t, h.target)
		})
	}
}

// Whatever operation of a cleanup fails, every version that is left can be read, and the next run goes on.
func TestCleanupFailsSafely(t *testing.T) {
	ctx := context.Background()
	base := object.NewMemory("test")
	_, table := branching(t, base)
	for i := range uint64(3) {
		deleteRange(t, table, 5*i, 5*i+5)
	}
	if _, err := Compact(ctx, table, CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	old := CleanupOptions{Now: func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }, OlderThan: time.Hour}
	change := func(store object.Store) error {
		table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{ReadParallelism: 1})
		if err != nil {
			return err
		}
		_, err = Cleanup(ctx, table, old)
		return err
	}
	atEveryOperation(t, base, change, func(what string, store *object.Memory, _ error, _ bool) {
		target := Target{Store: store, Dir: "t.lance"}
		left, err := manifest.Versions(ctx, store, "t.lance")
		must(t, err)
		for _, f := range left {
			s, err := openTable(t, target).At(ctx, storage.Ref{Version: f.Version})
			must(t, err)
			addrs, rows := scanned(t, s)
			(&history{t: t, what: what}).checkIndices("left", s, addrs, rows)
		}
		must(t, change(store))
		noGarbage(t, target)
	})
}

func TestDropTableLeavesNothing(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			h, table := branching(t, store)
			deleteRange(t, table, 0, 5)
			must(t, CreateBranch(ctx, table, "b/c", storage.Ref{}, RefOptions{}))
			must(t, CreateTag(ctx, table, "x", storage.Ref{}, RefOptions{}))
			must(t, DropTable(ctx, h.target))
			entries, err := store.List(ctx, "")
			if err != nil || len(entries) != 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
			if err := DropTable(ctx, h.target); !errors.Is(err, errs.ErrNotFound) {
				t.Errorf("a table that is gone: %v", err)
			}
		})
	}
	ctx := context.Background()
	base := object.NewMemory("test")
	_, table := branching(t, base)
	deleteRange(t, table, 0, 5)
	drop := func(store object.Store) error { return DropTable(ctx, Target{Store: store, Dir: "t.lance"}) }
	atEveryOperation(t, base, drop, func(what string, store *object.Memory, _ error, _ bool) {
		target := Target{Store: store, Dir: "t.lance"}
		left, _, err := target.versions(ctx)
		must(t, err)
		if len(left) == 0 {
			return // gone; what is left are files that nothing names
		}
		if s, err := openTable(t, target).Latest(ctx); err != nil || s.Version() != 3 || s.Rows() != 95 {
			t.Fatalf("%s: %v", what, err)
		}
		must(t, drop(store))
	})
}

// Whatever operation fails, a branch is there whole or not at all, and can be made or removed afterwards; a restore shows the version before or after it.
func TestBranchesAndRestoresAreAllOrNothing(t *testing.T) {
	ctx := context.Background()
	base := object.NewMemory("test")
	_, table := branching(t, base)
	deleteRange(t, table, 0, 5)
	change := func(store object.Store) error {
		table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{ReadParallelism: 1})
		if err != nil {
			return err
		}
		return CreateBranch(ctx, table, "b", storage.Ref{Version: 2}, RefOptions{})
	}
	atEveryOperation(t, base, change, func(what string, store *object.Memory, err error, _ bool) {
		table := openTable(t, Target{Store: store, Dir: "t.lance"})
		s, atErr := table.At(ctx, storage.Ref{Branch: "b"})
		if err == nil || atErr == nil { // the branch is there, whoever knows
			if atErr != nil || s.Rows() != 100 {
				t.Fatalf("%s: %v, %v", what, err, atErr)
			}
		}
		if err := DeleteBranch(ctx, table, "b"); err != nil && !errors.Is(err, errs.ErrNotFound) {
			t.Fatalf("%s: %v", what, err)
		}
		must(t, change(store))
		if s, err = openTable(t, Target{Store: store, Dir: "t.lance"}).At(ctx, storage.Ref{Branch: "b"}); err != nil || s.Rows() != 100 {
			t.Fatalf("%s: %v", what, err)
		}
	})
	restore := func(store object.Store) error {
		table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{ReadParallelism: 1})
		if err != nil {
			return err
		}
		_, err = Restore(ctx, table, storage.Ref{Version: 1}, CommitOptions{})
		return err
	}
	atEveryOperation(t, base, restore, func(what string, store *object.Memory, err error, lost bool) {
		s, openErr := openTable(t, Target{Store: store, Dir: "t.lance"}).Latest(ctx)
		must(t, openErr)
		isNew := s.Version() == 4
		if isNew != (err == nil) && (!lost || !isNew) {
			t.Fatalf("%s: version %d, %v", what, s.Version(), err)
		}
		if rows := uint64(95); isNew && s.Rows() != 100 || !isNew && s.Rows() != rows {
			t.Fatalf("%s: %d rows", what, s.Rows())
		}
	})
}
