//go:build interop

package interop

import (
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

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

// batches yields the given batches and calls each, if not nil, before the batch of the same number.
type batches struct {
	rows   []arrow.RecordBatch
	before func(i int)
	next   int
}

func (b *batches) Next(context.Context) (arrow.RecordBatch, error) {
	if b.next == len(b.rows) {
		return nil, io.EOF
	}
	if b.before != nil {
		b.before(b.next)
	}
	b.next++
	out := b.rows[b.next-1]
	out.Retain()
	return out, nil
}

// sliced cuts a batch into batches of so many rows.
func sliced(b arrow.RecordBatch, rows int64) []arrow.RecordBatch {
	var out []arrow.RecordBatch
	for lo := int64(0); lo < b.NumRows(); lo += rows {
		out = append(out, b.NewSlice(lo, min(lo+rows, b.NumRows())))
	}
	return out
}

func local(t *testing.T) (*object.Local, string) {
	t.Helper()
	dir := t.TempDir()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, dir
}

func TestTheEnginesReadWhatWeWrite(t *testing.T) {
	engines := StartPythons(t)
	cases := []struct {
		name      string
		rows      int
		pageBytes int
		maker     testutil.RowMaker
	}{
		{"one row", 1, 0, testutil.RowMaker{}},
		{"without nulls", 3000, 0, testutil.RowMaker{}},
		{"with nulls at every level", 5000, 0, testutil.RowMaker{Nulls: 0.15, ItemNulls: 0.05}},
		{"in small pages", 4000, 4096, testutil.RowMaker{Nulls: 0.1}},
		{"in small pages, few nulls", 4000, 4096, testutil.RowMaker{Nulls: 0.001, ItemNulls: 0.001}},
		{"with wide strings", 1500, 100_000, testutil.RowMaker{Nulls: 0.1, Wide: true}},
		{"all null", 2000, 0, testutil.RowMaker{Nulls: 1}},
		{"of one value", 3000, 0, testutil.RowMaker{Distinct: 1}},
		{"of few values with nulls", 9000, 0, testutil.RowMaker{Distinct: 12, Nulls: 0.1}},
		{"of some values", 70_000, 0, testutil.RowMaker{Distinct: 3000}},
	}
	for _, v := range []file.Version{file.V21, file.V22} {
		for i, c := range cases {
			t.Run(v.String()+" "+c.name, func(t *testing.T) {
				c.maker.R = rand.New(rand.NewSource(int64(i)))
				s := arrow.NewSchema(testutil.Columns(v == file.V22), nil)
				want := c.maker.Batch(memory.DefaultAllocator, s, c.rows)
				store, dir := local(t)
				opts := write.CreateOptions{
					Version: v, Rows: write.RowOptions{PageBytes: c.pageBytes},
					Parts: []write.Batches{&batches{rows: sliced(want, 1777)}},
				}
				if _, err := write.CreateTable(context.Background(), write.Target{Store: store, Dir: "t.lance"}, s, opts); err != nil {
					t.Fatal(err)
				}
				for _, eng := range engines {
					checkAnswers(t, eng, filepath.Join(dir, "t.lance"), want)
				}
			})
		}
	}
}

// checkAnswers compares a scan, a take and a slice of the engine with the rows.
func checkAnswers(t *testing.T, eng *Engine, path string, want arrow.RecordBatch) {
	t.Helper()
	r := rand.New(rand.NewSource(7))
	rows := int(want.NumRows())
	compare := func(what string, got arrow.Table, expect func(arrow.Array) arrow.Array) {
		t.Helper()
		defer got.Release()
		for i, f := range want.Schema().Fields() {
			MustEqual(t, what+" of "+f.Name, expect(want.Column(i)), Column(t, got, f.Name))
		}
	}
	compare("scan", eng.Rows("scan", Request{"path": path}), func(a arrow.Array) arrow.Array { return a })
	picked := r.Perm(rows)[:min(rows, 50)]
	slices.Sort(picked)
	compare("take", eng.Rows("take", Request{"path": path, "rows": picked}), func(a arrow.Array) arrow.Array {
		var parts []arrow.Array
		for _, row := range picked {
			parts = append(parts, array.NewSlice(a, int64(row), int64(row+1)))
		}
		out, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
	from := r.Intn(rows)
	n := 1 + r.Intn(rows-from)
	compare("slice", eng.Rows("scan", Request{"path": path, "offset": from, "limit": n}), func(a arrow.Array) arrow.Array {
		return array.NewSlice(a, int64(from), int64(from+n))
	})
}

// people is a small table with a key, a label list and a vector.
func people(rows int, firstID int64) arrow.RecordBatch {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "v", Type: arrow.FixedSizeListOf(8, arrow.PrimitiveTypes.Float32), Nullable: true},
	}, nil)
	m := testutil.RowMaker{R: rand.New(rand.NewSource(firstID)), Nulls: 0.05, Distinct: 9}
	b := m.Batch(memory.DefaultAllocator, s, rows)
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range rows {
		ids.Append(firstID + int64(i))
	}
	cols := append([]arrow.Array{ids.NewArray()}, b.Columns()[1:]...)
	return array.NewRecordBatch(s, cols, int64(rows))
}

func count(t *testing.T, eng *Engine, path, filter string) int64 {
	t.Helper()
	got := eng.Rows("scan", Request{"path": path, "filter": filter, "columns": []string{"id"}})
	defer got.Release()
	return got.NumRows()
}

func TestTheEngineGoesOnFromOurTable(t *testing.T) {
	eng := StartPython(t)
	for _, stable := range []bool{false, true} {
		for _, v := range []file.Version{file.V21, file.V22} {
			t.Run(fmt.Sprintf("%s stable ids %t", v, stable), func(t *testing.T) {
				store, dir := local(t)
				target, path := write.Target{Store: store, Dir: "t.lance"}, filepath.Join(dir, "t.lance")
				first := people(3000, 0)
				opts := write.CreateOptions{Version: v, StableRowIDs: stable, Rows: write.RowOptions{FragmentRows: 1000}}
				if _, err := write.CreateTable(context.Background(), target, first.Schema(), opts); err != nil {
					t.Fatal(err)
				}
				if got := eng.Info(path); got.Version != 1 || got.Rows != 0 || got.StableRowIDs != stable || got.DataStorageVersion != v.String() {
					t.Fatalf("empty table: %+v", got)
				}
				appendRows(t, target, first, write.AppendOptions{Rows: opts.Rows})
				info := eng.Info(path)
				if info.Version != 2 || info.Rows != 3000 || len(info.Fragments) != 3 || info.Fragments[2].ID != 2 {
					t.Fatalf("after our append: %+v", info)
				}

				eng.Do("append", Request{"path": path, "in": eng.Send(people(500, 3000))}, nil)
				eng.Do("delete", Request{"path": path, "filter": "id % 10 = 3"}, nil)
				eng.Do("update", Request{"path": path, "filter": "id % 10 = 4", "values": map[string]string{"name": "'four'"}}, nil)
				eng.Do("create_index", Request{"path": path, "column": "id", "kind": "BTREE"}, nil)
				eng.Do("create_index", Request{"path": path, "column": "labels", "kind": "LABEL_LIST"}, nil)
				eng.Do("create_index", Request{"path": path, "column": "v", "kind": "IVF_FLAT", "vector": true, "options": Request{"num_partitions": 4}}, nil)
				appendRows(t, target, people(500, 3500), write.AppendOptions{})
				if got := count(t, eng, path, "id >= 0"); got != 3650 {
					t.Fatalf("%d rows, want 3650", got)
				}
				if info = eng.Info(path); len(info.Indices) != 3 {
					t.Fatalf("our append lost indices: %+v", info.Indices)
				}
				CheckOurScan(t, eng, store, dir, "t.lance")
				if plan := eng.Explain(Request{"path": path, "filter": "array_has(labels, 'value-1')"}); !strings.Contains(plan, "ScalarIndexQuery") {
					t.Fatalf("the label index is not used:\n%s", plan)
				}

				eng.Do("compact", Request{"path": path}, nil)
				eng.Do("optimize_indices", Request{"path": path}, nil)
				appendRows(t, target, people(100, 4000), write.AppendOptions{})
				if got := count(t, eng, path, "name = 'four'"); got != 350 {
					t.Fatalf("%d updated rows, want 350", got)
				}
				if got := count(t, eng, path, "id >= 3500"); got != 600 {
					t.Fatalf("%d rows of our later appends, want 600", got)
				}
				checkRowIDs(t, eng, path, stable)
				CheckOurScan(t, eng, store, dir, "t.lance")
			})
		}
	}
}

// checkRowIDs makes sure that no row id is given twice.
func checkRowIDs(t *testing.T, eng *Engine, path string, stable bool) {
	t.Helper()
	got := eng.Rows("scan", Request{"path": path, "columns": []string{"id"}, "with_row_id": true, "with_row_address": true})
	defer got.Release()
	ids, ok := Column(t, got, "_rowid").(*array.Uint64)
	if !ok {
		t.Fatal("row ids are no uint64")
	}
	seen := make(map[uint64]bool)
	for _, id := range ids.Uint64Values() {
		if seen[id] || (stable && id >= 1<<32) {
			t.Fatalf("row id %d twice, or an address", id)
		}
		seen[id] = true
	}
}

func appendRows(t *testing.T, target write.Target, b arrow.RecordBatch, opts write.AppendOptions) write.Committed {
	t.Helper()
	done, err := write.Append(context.Background(), target, &batches{rows: sliced(b, 700)}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestCommitsRaceWithTheEngine(t *testing.T) {
	eng := StartPython(t)
	setup := func(t *testing.T) (write.Target, string) {
		t.Helper()
		store, dir := local(t)
		target := write.Target{Store: store, Dir: "t.lance"}
		b := people(2000, 0)
		opts := write.CreateOptions{Parts: []write.Batches{&batches{rows: []arrow.RecordBatch{b}}}, StableRowIDs: true}
		if _, err := write.CreateTable(context.Background(), target, b.Schema(), opts); err != nil {
			t.Fatal(err)
		}
		return target, filepath.Join(dir, "t.lance")
	}
	ours := []struct {
		name string
		came func(path string)
		want error
		rows int64
	}{
		{"an append after an append", func(p string) { eng.Do("append", Request{"path": p, "in": eng.Send(people(10, 5000))}, nil) }, nil, 2110},
		{"an append after a delete", func(p string) { eng.Do("delete", Request{"path": p, "filter": "id < 10"}, nil) }, nil, 2090},
		{"an append after an update", func(p string) {
			eng.Do("update", Request{"path": p, "filter": "id < 10", "values": map[string]string{"name": "'x'"}}, nil)
		}, nil, 2100},
		{"an append after an index", func(p string) { eng.Do("create_index", Request{"path": p, "column": "id", "kind": "BTREE"}, nil) }, nil, 2100},
		{"an append after an overwrite", func(p string) {
			eng.Do("create", Request{"path": p, "in": eng.Send(people(7, 0)), "mode": "overwrite"}, nil)
		}, errs.ErrConflict, 7},
	}
	for _, c := range ours {
		t.Run("ours: "+c.name, func(t *testing.T) {
			target, path := setup(t)
			before := dataFiles(t, path)
			_, err := write.Append(context.Background(), target, &batches{
				rows:   []arrow.RecordBatch{people(100, 3000)},
				before: func(int) { c.came(path) },
			}, write.AppendOptions{})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if got := eng.Info(path); got.Rows != c.rows {
				t.Fatalf("%d rows, want %d", got.Rows, c.rows)
			}
			checkRowIDs(t, eng, path, true)
			if err != nil && dataFiles(t, path) != before+1 { // the engine's new file
				t.Fatalf("%d data files, %d before: the failed append left its own", dataFiles(t, path), before)
			}
		})
	}
	t.Run("the engine's append and delete after ours", func(t *testing.T) {
		target, path := setup(t)
		var one, two struct{ Key string }
		eng.Do("hold", Request{"path": path}, &one)
		eng.Do("hold", Request{"path": path}, &two)
		appendRows(t, target, people(100, 3000), write.AppendOptions{})
		eng.Do("held_append", Request{"key": one.Key, "in": eng.Send(people(10, 5000))}, nil)
		eng.Do("held_delete", Request{"key": two.Key, "filter": "id < 10"}, nil)
		if got := eng.Info(path); got.Rows != 2100 || got.Version != 4 {
			t.Fatalf("%d rows in version %d, want 2100 in 4", got.Rows, got.Version)
		}
		checkRowIDs(t, eng, path, true)
	})
}

func dataFiles(t *testing.T, path string) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(path, "data"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
