package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

func openTable(t *testing.T, target Target) *storage.Table {
	t.Helper()
	table, err := storage.OpenTable(context.Background(), target.Store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func mustBegin(t *testing.T, table *storage.Table, opts TxOptions) *Tx {
	t.Helper()
	x, err := Begin(context.Background(), table, nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// idsOf reads id -> address of a snapshot, and checks that what it counts, scans, takes and resolves is the same.
func idsOf(t *testing.T, s *storage.Snapshot) map[int64]rowset.RowAddr {
	t.Helper()
	ctx := context.Background()
	scan, err := s.Scan(ctx, storage.ScanOptions{Columns: []string{"id"}, WithRowAddr: true, WithRowID: true, BatchRows: 64})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[int64]rowset.RowAddr)
	keys := &rowset.Set{}
	var addrs []rowset.RowAddr
	var ids []int64
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			id, addr := b.Column(0).(*array.Int64).Value(i), rowset.RowAddr(b.Column(1).(*array.Uint64).Value(i))
			if _, twice := out[id]; twice {
				t.Fatalf("id %d twice", id)
			}
			out[id] = addr
			ids, addrs = append(ids, id), append(addrs, addr)
			keys.Add(b.Column(2).(*array.Uint64).Value(i))
		}
		b.Release()
	}
	if uint64(len(out)) != s.Rows() || keys.Count() != s.Rows() {
		t.Fatalf("%d rows scanned, %d keys, %d counted", len(out), keys.Count(), s.Rows())
	}
	resolved, err := s.Resolve(ctx, keys)
	if err != nil {
		t.Fatal(err)
	}
	live, err := s.LiveRows(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !rowset.Equal(resolved, live) || live.Count() != s.Rows() {
		t.Fatalf("%d rows resolved, %d live, %d counted", resolved.Count(), live.Count(), s.Rows())
	}
	taken, err := s.Take(ctx, addrs, storage.TakeOptions{Columns: []string{"id"}})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Release()
	for i, id := range ids {
		if got := taken.Column(0).(*array.Int64).Value(i); got != id {
			t.Fatalf("took %d at %s, scanned %d", got, addrs[i], id)
		}
	}
	return out
}

func sameIDs(t *testing.T, what string, got map[int64]rowset.RowAddr, want map[int64]bool) {
	t.Helper()
	for id := range want {
		if _, ok := got[id]; !ok {
			t.Fatalf("%s: id %d is missing of %d", what, id, len(want))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

// deleteIDs deletes rows by their ids, as the transaction sees them.
func deleteIDs(t *testing.T, x *Tx, ids ...int64) {
	t.Helper()
	ctx := context.Background()
	s, err := x.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	at := idsOf(t, s)
	rows := &rowset.Set{}
	for _, id := range ids {
		if _, ok := at[id]; !ok {
			t.Fatalf("there is no row %d", id)
		}
		rows.Add(uint64(at[id]))
	}
	n, err := x.Delete(ctx, rows)
	if err != nil || n != uint64(len(ids)) {
		t.Fatalf("deleted %d of %d: %v", n, len(ids), err)
	}
}

func between(from, to int64) []int64 {
	var out []int64
	for ; from < to; from++ {
		out = append(out, from)
	}
	return out
}

func TestATransactionSeesWhatItStaged(t *testing.T) {
	for _, stable := range []bool{false, true} {
		t.Run(fmt.Sprintf("stable %t", stable), func(t *testing.T) {
			ctx := context.Background()
			target := memoryTable(t)
			mustCreate(t, target, CreateOptions{StableRowIDs: stable, Parts: []Batches{&stream{rows: 300, batchRows: 50}}, Rows: RowOptions{FragmentRows: 100}})
			table := openTable(t, target)
			x := mustBegin(t, table, TxOptions{Rows: RowOptions{FragmentRows: 100}})
			want := make(map[int64]bool)
			for _, id := range between(0, 300) {
				want[id] = true
			}
			look := func(what string) {
				t.Helper()
				s, err := x.Snapshot(ctx)
				if err != nil {
					t.Fatal(err)
				}
				sameIDs(t, what, idsOf(t, s), want)
			}
			look("at first")
			deleteIDs(t, x, between(90, 220)...) // the end of one fragment, all of the second, the start of the third
			for _, id := range between(90, 220) {
				delete(want, id)
			}
			look("after the deletion")
			if n, err := x.Append(ctx, []Batches{&stream{first: 1000, rows: 150, batchRows: 40}}); n != 150 || err != nil {
				t.Fatalf("appended %d: %v", n, err)
			}
			for _, id := range between(1000, 1150) {
				want[id] = true
			}
			look("after the append")
			deleteIDs(t, x, append(between(0, 2), between(1090, 1150)...)...) // the second new fragment whole
			for _, id := range append(between(0, 2), between(1090, 1150)...) {
				delete(want, id)
			}
			look("after the second deletion")
			before, err := table.Latest(ctx)
			if err != nil || before.Rows() != 300 {
				t.Fatalf("others see %d rows before the commit, %v", before.Rows(), err)
			}
			// Another writer adds rows and deletes others of the same fragments.
			y := mustBegin(t, openTable(t, target), TxOptions{})
			if _, err := y.Append(ctx, []Batches{&stream{first: 2000, rows: 10, batchRows: 10}}); err != nil {
				t.Fatal(err)
			}
			deleteIDs(t, y, 50, 250)
			if _, err := y.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			done, err := x.Commit(ctx)
			if err != nil || done.Version != 3 {
				t.Fatalf("version %d, %v", done.Version, err)
			}
			maps.DeleteFunc(want, func(id int64, _ bool) bool { return id == 50 || id == 250 })
			for _, id := range between(2000, 2010) {
				want[id] = true
			}
			after, err := openTable(t, target).Latest(ctx)
			if err != nil {
				t.Fatal(err)
			}
			sameIDs(t, "after the commit", idsOf(t, after), want)
			noGarbage(t, target)
		})
	}
}

// noGarbage checks that every data and deletion file of the folder is named by some version.
func noGarbage(t *testing.T, target Target) {
	t.Helper()
	ctx := context.Background()
	named := make(map[string]bool)
	all, naming, err := target.versions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		m, err := target.at(ctx, naming, v)
		if err != nil {
			t.Fatal(err)
		}
		for path := range filesOfVersion(m.Manifest) {
			named[path] = true
		}
	}
	for _, dir := range []string{"data", "_deletions", "_indices"} {
		entries, err := target.Store.List(ctx, object.Join(target.Dir, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := object.Join(dir, e.Name)
			if !named[path] {
				t.Errorf("%s is named by no version", path)
			}
			delete(named, path)
		}
	}
	for path := range named {
		t.Errorf("%s is gone", path)
	}
}

func TestRowsThatBothDeletedAreAConflict(t *testing.T) {
	ctx := context.Background()
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 100, batchRows: 50}}})
	x, y := mustBegin(t, openTable(t, target), TxOptions{}), mustBegin(t, openTable(t, target), TxOptions{})
	deleteIDs(t, x, 1, 2, 3)
	if _, err := x.Append(ctx, []Batches{&stream{first: 500, rows: 3, batchRows: 3}}); err != nil {
		t.Fatal(err)
	}
	deleteIDs(t, y, 3, 4)
	if _, err := y.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Commit(ctx); !errors.Is(err, errs.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	noGarbage(t, target)
	if _, err := x.Commit(ctx); !errors.Is(err, errs.ErrInvalid) {
		t.Fatalf("after the end: %v", err)
	}
}

func TestRollbackLeavesNothing(t *testing.T) {
	ctx := context.Background()
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{Parts: []Batches{&stream{rows: 100, batchRows: 50}}})
	x := mustBegin(t, openTable(t, target), TxOptions{})
	if _, err := x.Append(ctx, []Batches{&stream{first: 500, rows: 3, batchRows: 3}}); err != nil {
		t.Fatal(err)
	}
	deleteIDs(t, x, 1, 501)
	if err := x.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	noGarbage(t, target)
	if v := latest(t, target); v.Version() != 1 {
		t.Fatalf("version %d", v.Version())
	}
}

func TestManySmallStatementsMakeFewFragments(t *testing.T) {
	for _, stable := range []bool{false, true} {
		ctx := context.Background()
		h, table := evolving(t, CreateOptions{StableRowIDs: stable})
		x := mustBegin(t, table, TxOptions{})
		for i := range int64(20) {
			if _, err := x.Append(ctx, []Batches{h.fresh(h.rows, 1)}); err != nil {
				t.Fatal(err)
			}
			s, err := x.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			id := 110 + i
			row := h.rows[id]
			row.n = -i
			h.rows[id] = row
			with := &items{ids: []int64{id}, rows: h.rows, batchRows: 1}
			if _, err := x.Update(ctx, []rowset.RowAddr{idsOf(t, s)[id]}, with, []string{"n"}); err != nil {
				t.Fatal(err)
			}
		}
		deleteIDs(t, x, h.next-1, 129)
		delete(h.rows, h.next-1)
		delete(h.rows, 129)
		done, err := x.Commit(ctx)
		if err != nil || len(done.FragmentIDs) != 2 {
			t.Fatalf("fragments %v, %v", done.FragmentIDs, err)
		}
		h.reopen()
		noGarbage(t, h.target)
	}
}
