package write

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"testing"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// faultModes are the ways in which operation n of a store goes wrong.
var faultModes = []object.FaultyOptions{{}, {Crash: true}, {AfterEffect: true}, {AfterEffect: true, Crash: true}}

// atEveryOperation runs change on a copy of base whose n-th operation fails, for every n and in every way, and gives check what is there afterwards.
func atEveryOperation(t *testing.T, base *object.Memory, change func(store object.Store) error, check func(what string, store *object.Memory, err error, lost bool)) {
	t.Helper()
	count := object.NewFaulty(base.Clone(), object.FaultyOptions{})
	if err := change(count); err != nil {
		t.Fatal(err)
	}
	for _, mode := range faultModes {
		for n := int64(1); n <= count.Operations(); n++ {
			mode.FailAt = n
			store := base.Clone()
			err := change(object.NewFaulty(store, mode))
			check(fmt.Sprintf("operation %d of %d, %+v", n, count.Operations(), mode), store, err, mode.AfterEffect && mode.Crash)
		}
	}
}

// A transaction of an update, a deletion and an append is all or nothing, whatever operation fails or is the last one, and the next writer goes on.
func TestATransactionIsAllOrNothingAtEveryOperation(t *testing.T) {
	for _, stable := range []bool{false, true} {
		ctx := context.Background()
		base := object.NewMemory("test")
		target := Target{Store: base, Dir: "t.lance"}
		h := &history{t: t, r: rand.New(rand.NewSource(1)), stable: stable, rows: make(map[int64]item), target: target}
		opts := CreateOptions{StableRowIDs: stable, Parts: []Batches{h.fresh(h.rows, 90)}, Rows: RowOptions{FragmentRows: 30}}
		if _, err := CreateTable(ctx, target, stock, opts); err != nil {
			t.Fatal(err)
		}
		before, after := maps.Clone(h.rows), maps.Clone(h.rows)
		appended := h.fresh(after, 40)
		for _, id := range between(20, 60) {
			delete(after, id)
		}
		for _, id := range between(5, 15) {
			after[id] = item{tag: "t1", n: 777}
		}
		change := func(store object.Store) error {
			table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{ReadParallelism: 1})
			if err != nil {
				return err
			}
			x, err := Begin(ctx, table, nil, TxOptions{Rows: RowOptions{Parallel: 1, FragmentRows: 30}})
			if err != nil {
				return err
			}
			gone := &rowset.Set{}
			gone.AddRange(0, 20, 30)
			gone.AddRange(1, 0, 30)
			var moved []rowset.RowAddr
			for _, id := range between(5, 15) {
				moved = append(moved, rowset.Addr(0, uint32(id)))
			}
			rows := *appended
			_, err1 := x.Delete(ctx, gone)
			_, err2 := x.Update(ctx, moved, &items{ids: between(5, 15), rows: after, batchRows: 4}, nil)
			_, err3 := x.Append(ctx, []Batches{&rows})
			if err := errors.Join(err1, err2, err3); err != nil {
				return errors.Join(err, x.Rollback(ctx))
			}
			_, err = x.Commit(ctx)
			return err
		}
		counts := make(map[string]int)
		atEveryOperation(t, base, change, func(what string, store *object.Memory, err error, lost bool) {
			reopened := &history{t: t, target: Target{Store: store, Dir: "t.lance"}, what: what}
			s, openErr := openTable(t, reopened.target).Latest(ctx)
			if openErr != nil {
				t.Fatalf("%s: %v", what, openErr)
			}
			switch {
			case s.Version() == 1 && err != nil:
				reopened.check("old", s, before)
				counts["old"]++
			case s.Version() == 2 && (err == nil || lost):
				reopened.check("new", s, after)
				counts["new"]++
			default:
				t.Fatalf("%s: version %d, %v", what, s.Version(), err)
			}
			if done, err := Append(ctx, reopened.target, h.fresh(make(map[int64]item), 1), AppendOptions{}); err != nil || done.Version != s.Version()+1 {
				t.Fatalf("%s: the next writer: version %d, %v", what, done.Version, err)
			}
		})
		if counts["old"] == 0 || counts["new"] == 0 {
			t.Fatalf("%v", counts)
		}
	}
}

// Writers that change rows of their own, in the same fragments, all succeed; what they wrote is all there.
func TestConcurrentTransactionsLoseNothing(t *testing.T) {
	for _, stable := range []bool{false, true} {
		ctx := context.Background()
		target := Target{Store: object.NewMemory("test"), Dir: "t.lance"}
		h := &history{t: t, r: rand.New(rand.NewSource(1)), stable: stable, rows: make(map[int64]item), target: target, what: "concurrent"}
		opts := CreateOptions{StableRowIDs: stable, Parts: []Batches{h.fresh(h.rows, 400)}, Rows: RowOptions{FragmentRows: 100}}
		if _, err := CreateTable(ctx, target, stock, opts); err != nil {
			t.Fatal(err)
		}
		const writers, rounds = 4, 8
		models := make([]map[int64]item, writers)
		group, groupCtx := spawn.WithContext(ctx, 0)
		for w := range writers {
			models[w] = make(map[int64]item)
			for id, row := range h.rows {
				if id%writers == int64(w) {
					models[w][id] = row
				}
			}
			group.Go("writer", func() error { return writeOwnRows(groupCtx, target, models[w], int64(w), rounds) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		clear(h.rows)
		for _, m := range models {
			maps.Copy(h.rows, m)
		}
		s, err := openTable(t, target).Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		h.check("at the end", s, h.rows)
		noGarbage(t, target)
		if s.Version() != 1+writers*rounds {
			t.Fatalf("version %d", s.Version())
		}
	}
}

// writeOwnRows updates, deletes and appends rows that no other writer touches.
func writeOwnRows(ctx context.Context, target Target, rows map[int64]item, writer int64, rounds int) error {
	r := rand.New(rand.NewSource(writer))
	next := 1000 * (writer + 1)
	table, err := storage.OpenTable(ctx, target.Store, target.Dir, storage.TableOptions{})
	if err != nil {
		return err
	}
	for range rounds {
		x, err := Begin(ctx, table, nil, TxOptions{})
		if err != nil {
			return err
		}
		addrs := make(map[int64]rowset.RowAddr)
		scan, err := x.base.Scan(ctx, storage.ScanOptions{Columns: []string{"id"}, WithRowAddr: true})
		if err != nil {
			return err
		}
		if err := eachBatch(ctx, scan, func(ids []int64, at []uint64) {
			for i, id := range ids {
				addrs[id] = rowset.RowAddr(at[i])
			}
		}); err != nil {
			return err
		}
		ids := pick(r, rows, 12)
		gone := &rowset.Set{}
		var moved []rowset.RowAddr
		for i, id := range ids {
			if i < 4 {
				gone.Add(uint64(addrs[id]))
				delete(rows, id)
				continue
			}
			rows[id] = item{tag: "t2", n: next}
			moved = append(moved, addrs[id])
		}
		ids = ids[min(4, len(ids)):]
		_, err1 := x.Delete(ctx, gone)
		_, err2 := x.Update(ctx, moved, &items{ids: ids, rows: rows, batchRows: 3}, []string{"tag", "n"})
		fresh := &items{rows: rows, batchRows: 3}
		for range 5 {
			rows[next] = item{n: next}
			fresh.ids = append(fresh.ids, next)
			next++
		}
		_, err3 := x.Append(ctx, []Batches{fresh})
		_, err4 := x.Commit(ctx)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return fmt.Errorf("writer %d: %w", writer, err)
		}
	}
	return nil
}

// Two writers that update the same row: one of them is told.
func TestTheSameRowUpdatedTwiceIsAConflict(t *testing.T) {
	ctx := context.Background()
	target := Target{Store: object.NewMemory("test"), Dir: "t.lance"}
	rows := make(map[int64]item)
	h := &history{t: t, r: rand.New(rand.NewSource(1)), rows: rows, target: target}
	if _, err := CreateTable(ctx, target, stock, CreateOptions{Parts: []Batches{h.fresh(rows, 10)}}); err != nil {
		t.Fatal(err)
	}
	update := func(x *Tx, id int64) {
		t.Helper()
		with := &items{ids: []int64{id}, rows: map[int64]item{id: {n: 5}}, batchRows: 1}
		if _, err := x.Update(ctx, []rowset.RowAddr{rowset.Addr(0, uint32(id))}, with, nil); err != nil {
			t.Fatal(err)
		}
	}
	x, y, z := mustBegin(t, openTable(t, target), TxOptions{}), mustBegin(t, openTable(t, target), TxOptions{}), mustBegin(t, openTable(t, target), TxOptions{})
	update(x, 3)
	update(y, 3)
	update(z, 4)
	if _, err := x.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Commit(ctx); !errors.Is(err, errs.ErrConflict) {
		t.Fatalf("the second update of the row: %v", err)
	}
	if _, err := z.Commit(ctx); err != nil {
		t.Fatalf("an update of another row: %v", err)
	}
	noGarbage(t, target)
}

func TestUpdatesThatMakeNoSense(t *testing.T) {
	ctx := context.Background()
	target := Target{Store: object.NewMemory("test"), Dir: "t.lance"}
	rows := make(map[int64]item)
	h := &history{t: t, r: rand.New(rand.NewSource(1)), rows: rows, target: target}
	if _, err := CreateTable(ctx, target, stock, CreateOptions{Parts: []Batches{h.fresh(rows, 10)}}); err != nil {
		t.Fatal(err)
	}
	x := mustBegin(t, openTable(t, target), TxOptions{})
	for name, c := range map[string]struct {
		at      []rowset.RowAddr
		ids     []int64
		changed []string
	}{
		"a row that is not there": {[]rowset.RowAddr{rowset.Addr(0, 99)}, []int64{1}, nil},
		"a row twice":             {[]rowset.RowAddr{rowset.Addr(0, 1), rowset.Addr(0, 1)}, []int64{1, 1}, nil},
		"too many new rows":       {[]rowset.RowAddr{rowset.Addr(0, 1)}, []int64{1, 2}, nil},
		"too few new rows":        {[]rowset.RowAddr{rowset.Addr(0, 1), rowset.Addr(0, 2)}, []int64{1}, nil},
		"an unknown column":       {[]rowset.RowAddr{rowset.Addr(0, 1)}, []int64{1}, []string{"size"}},
	} {
		with := &items{ids: c.ids, rows: rows, batchRows: 1}
		if _, err := x.Update(ctx, c.at, with, c.changed); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := x.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	noGarbage(t, target)
	if v := latest(t, target); v.Version() != 1 {
		t.Fatalf("version %d", v.Version())
	}
}

func TestWritersOfATransactionArePaidFor(t *testing.T) {
	ctx := context.Background()
	target := memoryTable(t)
	mustCreate(t, target, CreateOptions{})
	appended := func(limit int64) error {
		budget := mem.NewBudget("test", limit, nil)
		x, err := Begin(ctx, openTable(t, target), nil, TxOptions{Budget: budget})
		must(t, err)
		_, err = x.Append(ctx, []Batches{&stream{rows: 50_000, batchRows: 5000}})
		must(t, x.Rollback(ctx))
		if budget.Used() != 0 {
			t.Errorf("%d bytes were not given back", budget.Used())
		}
		return err
	}
	must(t, appended(64<<20))
	if err := appended(64 << 10); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("64 KiB for 50,000 rows: %v", err)
	}
	if n := dataFiles(t, target); n != 0 {
		t.Errorf("%d data files are left", n)
	}
}
