//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

// writer changes one dataset by lakesql, beside an engine.
type writer struct {
	t      *testing.T
	eng    *Engine
	target write.Target
	path   string
	next   int // first id that is not taken
}

var bg = context.Background()

func (w *writer) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) table() *storage.Table {
	w.t.Helper()
	table, err := storage.OpenTable(bg, w.target.Store, w.target.Dir, storage.TableOptions{})
	w.ok(err)
	return table
}

// readAll returns every row of a snapshot, and where it is.
func readAll(t *testing.T, s *storage.Snapshot) (columns map[string]arrow.Array, addrs []rowset.RowAddr) {
	t.Helper()
	scan, err := s.Scan(bg, storage.ScanOptions{WithRowAddr: true})
	if err != nil {
		t.Fatal(err)
	}
	parts := make(map[string][]arrow.Array)
	for r := scan.Reader(); ; {
		b, err := r.Next(bg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n := int(b.NumCols()) - 1
		for i, f := range b.Schema().Fields()[:n] {
			parts[f.Name] = append(parts[f.Name], b.Column(i))
		}
		for _, a := range b.Column(n).(*array.Uint64).Uint64Values() {
			addrs = append(addrs, rowset.RowAddr(a))
		}
	}
	columns = make(map[string]arrow.Array)
	for name, arrays := range parts {
		if columns[name], err = array.Concatenate(arrays, memory.DefaultAllocator); err != nil {
			t.Fatal(err)
		}
	}
	return columns, addrs
}

// check compares all rows as both read them, and the answers of indices as both give them.
func (w *writer) check(after string) {
	w.t.Helper()
	s, err := w.table().Latest(bg)
	w.ok(err)
	columns, _ := readAll(w.t, s)
	got := w.eng.Rows("scan", Request{"path": w.path})
	defer got.Release()
	if got.NumRows() != int64(s.Rows()) || int(got.NumCols()) != s.ArrowSchema().NumFields() {
		w.t.Fatalf("%s: the engine reads %d rows of %d columns, lakesql %d of %d", after, got.NumRows(), got.NumCols(), s.Rows(), s.ArrowSchema().NumFields())
	}
	for name, want := range columns {
		MustEqual(w.t, after+": column "+name, want, Column(w.t, got, name))
	}
	sameAnswers(w.t, w.eng, w.path, after)
}

// uses says whether the engine asks one of our indices.
func (w *writer) uses(after, where, name string) {
	w.t.Helper()
	if plan := w.eng.Explain(Request{"path": w.path, "filter": where}); !strings.Contains(plan, "ScalarIndexQuery") || !strings.Contains(plan, name) {
		w.t.Errorf("%s: the engine's plan does not name %s:\n%s", after, name, plan)
	}
}

// where picks rows by id: their addresses in the transaction's eyes and their ids.
func (w *writer) where(x *write.Tx, is func(id int64) bool) (addrs []rowset.RowAddr, ids []int64) {
	w.t.Helper()
	s, err := x.Snapshot(bg)
	w.ok(err)
	columns, all := readAll(w.t, s)
	for i, id := range columns["id"].(*array.Int64).Int64Values() {
		if is(id) {
			addrs, ids = append(addrs, all[i]), append(ids, id)
		}
	}
	return addrs, ids
}

func (w *writer) begin() *write.Tx {
	w.t.Helper()
	x, err := write.Begin(bg, w.table(), nil, write.TxOptions{Rows: write.RowOptions{FragmentRows: 1500}})
	w.ok(err)
	return x
}

func (w *writer) commit(x *write.Tx) {
	w.t.Helper()
	_, err := x.Commit(bg)
	w.ok(err)
}

func (w *writer) delete(x *write.Tx, is func(id int64) bool) {
	w.t.Helper()
	addrs, _ := w.where(x, is)
	gone := &rowset.Set{}
	for _, a := range addrs {
		gone.Add(uint64(a))
	}
	n, err := x.Delete(bg, gone)
	w.ok(err)
	if n != uint64(len(addrs)) || n == 0 {
		w.t.Fatalf("deleted %d rows of %d", n, len(addrs))
	}
}

// update gives rows the tenant, or only another score.
func (w *writer) update(x *write.Tx, is func(id int64) bool, tenant string, changed []string) {
	w.t.Helper()
	addrs, _ := w.where(x, is)
	s, err := x.Snapshot(bg)
	w.ok(err)
	old, err := s.Take(bg, addrs, storage.TakeOptions{})
	w.ok(err)
	columns := make([]arrow.Array, old.NumCols())
	for i, f := range old.Schema().Fields() {
		columns[i] = old.Column(i)
		switch {
		case f.Name == "score":
			b := array.NewFloat64Builder(memory.DefaultAllocator)
			for range old.NumRows() {
				b.Append(1)
			}
			columns[i] = b.NewArray()
		case f.Name == "tenant" && tenant != "":
			b := array.NewStringBuilder(memory.DefaultAllocator)
			for range old.NumRows() {
				b.Append(tenant)
			}
			columns[i] = b.NewArray()
		}
	}
	n, err := x.Update(bg, addrs, &batches{rows: sliced(array.NewRecordBatch(old.Schema(), columns, old.NumRows()), 333)}, changed)
	w.ok(err)
	if n == 0 {
		w.t.Fatal("nothing to update")
	}
}

func (w *writer) append(x *write.Tx, rows int) {
	w.t.Helper()
	_, err := x.Append(bg, []write.Batches{&batches{rows: sliced(filterRows(w.next, rows), 100)}})
	w.ok(err)
	w.next += rows
}

func every(n, k int64) func(int64) bool { return func(id int64) bool { return id%n == k } }

// newWriter makes a table with indices. Tables of version 2.0 are the engine's.
func newWriter(t *testing.T, eng *Engine, v string, stable bool) *writer {
	t.Helper()
	store, dir := local(t)
	w := &writer{t: t, eng: eng, target: write.Target{Store: store, Dir: "t.lance"}, path: filepath.Join(dir, "t.lance"), next: 4000}
	rows := filterRows(0, w.next)
	if v == "2.0" {
		eng.Do("create", Request{"path": w.path, "in": eng.Send(rows), "data_storage_version": v, "stable_row_ids": stable, "max_rows_per_file": 1500}, nil)
	} else {
		opts := write.CreateOptions{
			Version: map[string]file.Version{"2.1": file.V21, "2.2": file.V22}[v], StableRowIDs: stable,
			Rows: write.RowOptions{FragmentRows: 1500}, Parts: []write.Batches{&batches{rows: sliced(rows, 777)}},
		}
		_, err := write.CreateTable(bg, w.target, filterColumns, opts)
		w.ok(err)
	}
	buildFilterIndices(t, w.target, write.FilterIndexOptions{})
	return w
}

func TestTheEngineFollowsOurTransactions(t *testing.T) {
	for name, eng := range StartPythons(t) {
		for _, v := range []string{"2.1", "2.2"} {
			stable := (v == "2.2") == (name == "pylance")
			t.Run(fmt.Sprintf("%s %s stable ids %t", name, v, stable), func(t *testing.T) {
				w := newWriter(t, eng, v, stable)
				w.check("created")
				x := w.begin()
				w.delete(x, every(7, 3))
				w.commit(x)
				w.check("our delete")
				x = w.begin()
				w.update(x, every(11, 5), "", []string{"score"})
				w.commit(x)
				w.check("our update of one column")
				w.uses("our update of one column", "tenant = 't1'", "tenant_idx")
				x = w.begin()
				w.append(x, 300)
				w.delete(x, func(id int64) bool { return id < 1500 }) // a whole fragment
				w.update(x, func(id int64) bool { return id%13 == 6 }, "moved", nil)
				w.append(x, 50)
				w.delete(x, func(id int64) bool { return id >= 4010 && id < 4020 })
				w.commit(x)
				w.check("our transaction of all kinds")

				eng.Do("append", Request{"path": w.path, "in": eng.Send(filterRows(w.next, 100))}, nil)
				w.next += 100
				eng.Do("delete", Request{"path": w.path, "filter": "id % 10 = 3"}, nil)
				eng.Do("update", Request{"path": w.path, "filter": "id % 10 = 4", "values": map[string]string{"tenant": "'theirs'"}}, nil)
				w.check("the engine's append, delete and update")
				x = w.begin()
				w.delete(x, every(10, 4)) // rows that the engine moved
				w.update(x, every(10, 7), "again", []string{"tenant", "score"})
				w.commit(x)
				w.check("our changes on top of the engine's")

				done, err := write.Compact(bg, w.table(), write.CompactOptions{TargetRows: 2000, Remapper: write.IndexRemapper{}})
				w.ok(err)
				if done.FragmentsRemoved == 0 || len(done.Uncovered) > 0 {
					t.Errorf("compacted: %+v", done)
				}
				w.check("our compaction")
				w.uses("our compaction", "array_has(labels,'ai')", "labels_idx")
				eng.Do("optimize_indices", Request{"path": w.path}, nil)
				eng.Do("compact", Request{"path": w.path, "target_rows": 3000}, nil)
				w.check("the engine's index update and compaction")
				x = w.begin()
				w.delete(x, every(10, 1))
				w.append(x, 100)
				w.commit(x)
				w.check("our last changes")
			})
		}
	}
}

// A 2.0 table keeps its version: rows can be deleted and columns named anew, and what would write a file says why not.
func TestDeletingFromOldTables(t *testing.T) {
	eng := StartPython(t)
	for _, stable := range []bool{false, true} {
		w := newWriter(t, eng, "2.0", stable)
		x := w.begin()
		w.delete(x, every(7, 3))
		if _, err := x.Append(bg, []write.Batches{&batches{rows: sliced(filterRows(w.next, 5), 5)}}); err != nil && !errors.Is(err, errs.ErrUnsupported) {
			t.Errorf("append: %v", err)
		}
		w.commit(x)
		w.check("our delete")
		eng.Do("delete", Request{"path": w.path, "filter": "id % 10 = 3"}, nil)
		x = w.begin()
		w.delete(x, func(id int64) bool { return id < 2000 })
		w.commit(x)
		w.check("our second delete")
		x = w.begin()
		w.ok(x.Replace(bg, nil, nil))
		w.commit(x)
		if info := eng.Info(w.path); info.Rows != 0 || info.DataStorageVersion != "2.0" {
			t.Errorf("emptied: %+v", info)
		}
	}
}

// Indices of kinds that lakesql does not know survive what it does beside the engine's deferred compaction, which stable row ids do not have; the matrix has the rest.
func TestIndicesOfUnknownKindsSurvive(t *testing.T) {
	for name, eng := range StartPythons(t) {
		t.Run(name, func(t *testing.T) {
			w := newWriter(t, eng, "2.2", false)
			eng.Do("create_index", Request{"path": w.path, "column": "tenant", "kind": "NGRAM", "name": "grams"}, nil)
			eng.Do("create_index", Request{"path": w.path, "column": "score", "kind": "BLOOMFILTER", "name": "blooms"}, nil)
			check := func(after string) {
				t.Helper()
				w.check(after)
				found := make(map[string]bool)
				for _, i := range eng.Info(w.path).Indices {
					found[i.Name] = true
				}
				if !found["grams"] || !found["blooms"] {
					t.Errorf("%s: the engine lists %v", after, found)
				}
				for _, where := range []string{"contains(tenant, 't1')", "contains(tenant, 'changed')", "score = 1"} {
					if byIndex, byScan := engineIDs(t, eng, w.path, where, true), engineIDs(t, eng, w.path, where, false); len(byIndex) != len(byScan) {
						t.Errorf("%s: %s: %d rows by index, %d by scan", after, where, len(byIndex), len(byScan))
					}
				}
			}
			check("built")
			x := w.begin()
			w.delete(x, every(7, 3))
			w.update(x, every(11, 5), "changed", []string{"tenant", "score"})
			w.append(x, 200)
			w.commit(x)
			check("our changes")
			x = w.begin()
			w.update(x, every(11, 6), "", []string{"score"})
			w.commit(x)
			check("our update of one column")
			_, err := write.Compact(bg, w.table(), write.CompactOptions{Remapper: write.IndexRemapper{}, TargetRows: 3000})
			w.ok(err)
			check("our compaction")
			eng.Do("optimize_indices", Request{"path": w.path}, nil)
			check("the engine's index update")
			x = w.begin()
			w.delete(x, func(id int64) bool { return id < 600 })
			w.append(x, 200)
			w.commit(x)
			// the engine keeps a record of what it moved in place of new segments
			eng.Do("compact", Request{"path": w.path, "target_rows": 5000, "defer": true}, nil)
			w.check("the engine's deferred compaction")
			x = w.begin()
			w.delete(x, every(13, 4))
			w.append(x, 100)
			w.commit(x)
			w.check("our changes after it")
			_, err = write.Compact(bg, w.table(), write.CompactOptions{Remapper: write.IndexRemapper{}, TargetRows: 6000})
			w.ok(err)
			w.check("our compaction after it")
		})
	}
}

func double(_ context.Context, rows arrow.RecordBatch) ([]arrow.Array, error) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for _, id := range rows.Column(0).(*array.Int64).Int64Values() {
		b.Append(2 * id)
	}
	return []arrow.Array{b.NewArray()}, nil
}

func TestTheEngineFollowsOurColumns(t *testing.T) {
	for name, eng := range StartPythons(t) {
		stable := name == "pylance"
		t.Run(fmt.Sprintf("%s stable ids %t", name, stable), func(t *testing.T) {
			w := newWriter(t, eng, "2.2", stable)
			x := w.begin()
			w.delete(x, every(7, 3))
			w.commit(x)
			do := func(what string, _ write.Committed, err error) {
				t.Helper()
				w.ok(err)
				w.check(what)
			}
			number := arrow.Field{Name: "twice", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
			done, err := write.AddColumns(bg, w.table(), []arrow.Field{number}, &write.ColumnValues{Reads: []string{"id"}, Compute: double}, write.EvolveOptions{})
			do("a computed column", done, err)
			empty := arrow.Field{Name: "later", Type: arrow.BinaryTypes.String, Nullable: true}
			done, err = write.AddColumns(bg, w.table(), []arrow.Field{empty}, nil, write.EvolveOptions{})
			do("a column of NULL", done, err)
			done, err = write.RenameColumn(bg, w.table(), "twice", "double", write.EvolveOptions{})
			do("another name", done, err)
			eng.Do("add_columns", Request{"path": w.path, "values": map[string]string{"theirs": "double + 1"}}, nil)
			w.check("the engine's column")
			wide := arrow.Field{Name: "double", Type: arrow.PrimitiveTypes.Float64, Nullable: true}
			done, err = write.ModifyColumn(bg, w.table(), "double", wide, nil, write.EvolveOptions{})
			do("another type", done, err)
			eng.Do("update", Request{"path": w.path, "filter": "id % 10 = 4", "values": map[string]string{"later": "'now'"}}, nil)
			w.check("the engine's update")
			done, err = write.DropColumns(bg, w.table(), []string{"theirs"}, write.EvolveOptions{})
			do("a column less", done, err)
			compacted, err := write.Compact(bg, w.table(), write.CompactOptions{Remapper: write.IndexRemapper{}})
			do("our compaction", compacted.Committed, err)
			eng.Do("drop_columns", Request{"path": w.path, "columns": []string{"double"}}, nil)
			w.check("the engine drops a column")
			done, err = write.DropColumns(bg, w.table(), []string{"later"}, write.EvolveOptions{})
			do("as at first", done, err)
		})
	}
}

// Both commit from the same version, in either order: changes of other rows combine, those of the same row do not.
func TestBothWriteAtOnce(t *testing.T) {
	for name, eng := range StartPythons(t) {
		stable := name != "pylance"
		t.Run(fmt.Sprintf("%s stable ids %t", name, stable), func(t *testing.T) {
			w := newWriter(t, eng, "2.2", stable)
			x := w.begin()
			w.delete(x, every(10, 0))
			w.update(x, every(10, 1), "ours", []string{"tenant", "score"})
			eng.Do("delete", Request{"path": w.path, "filter": "id % 10 = 2"}, nil)
			eng.Do("update", Request{"path": w.path, "filter": "id % 10 = 3", "values": map[string]string{"tenant": "'theirs'"}}, nil)
			eng.Do("append", Request{"path": w.path, "in": eng.Send(filterRows(w.next, 100))}, nil)
			w.next += 100
			w.commit(x)
			w.check("ours on top of theirs")
			if addrs, _ := w.where(w.begin(), every(10, 2)); len(addrs) != 10 { // of the rows appended
				t.Errorf("%d rows of those that the engine deleted", len(addrs))
			}
			var held struct{ Key string }
			eng.Do("hold", Request{"path": w.path}, &held)
			x = w.begin()
			w.delete(x, every(10, 4))
			w.append(x, 10)
			w.commit(x)
			eng.Do("held_delete", Request{"key": held.Key, "filter": "id % 10 = 5"}, nil)
			w.check("theirs on top of ours")
			x = w.begin()
			w.delete(x, every(10, 6))
			eng.Do("update", Request{"path": w.path, "filter": "id % 10 = 6", "values": map[string]string{"tenant": "'first'"}}, nil)
			if _, err := x.Commit(bg); !errors.Is(err, errs.ErrConflict) {
				t.Errorf("rows that the engine updated: %v", err)
			}
			x = w.begin()
			w.delete(x, every(10, 7))
			eng.Do("compact", Request{"path": w.path}, nil)
			if _, err := x.Commit(bg); !errors.Is(err, errs.ErrConflict) {
				t.Errorf("rows that the engine moved: %v", err)
			}
			w.check("after the conflicts")
		})
	}
}

// checkBranch compares all rows of a branch.
func (w *writer) checkBranch(after, branch string) {
	w.t.Helper()
	s, err := w.table().At(bg, storage.Ref{Branch: branch})
	w.ok(err)
	columns, _ := readAll(w.t, s)
	for _, filter := range []string{"", "tenant = 't1'"} {
		r := Request{"path": w.path, "branch": branch}
		if filter != "" {
			r["filter"] = filter
		}
		got := w.eng.Rows("branch_scan", r)
		if filter == "" {
			for name, want := range columns {
				MustEqual(w.t, after+": column "+name, want, Column(w.t, got, name))
			}
		} else {
			n := 0
			for i := range columns["tenant"].Len() {
				if columns["tenant"].ValueStr(i) == "t1" {
					n++
				}
			}
			if got.NumRows() != int64(n) {
				w.t.Errorf("%s: the engine finds %d rows by index, want %d", after, got.NumRows(), n)
			}
		}
		got.Release()
	}
}

func TestTheEngineFollowsOurVersions(t *testing.T) {
	for name, eng := range StartPythons(t) {
		t.Run(name, func(t *testing.T) {
			w := newWriter(t, eng, "2.2", true)
			change := func(k int64) {
				x := w.begin()
				w.delete(x, every(10, k))
				w.append(x, 20)
				w.commit(x)
			}
			change(1)
			w.ok(write.CreateTag(bg, w.table(), "ours", storage.Ref{}, write.RefOptions{}))
			tagged, err := w.table().Latest(bg)
			w.ok(err)
			change(2)
			var tags map[string]struct{ Version uint64 }
			eng.Do("tags", Request{"path": w.path}, &tags)
			if tags["ours"].Version != tagged.Version() {
				t.Errorf("the engine's tags: %v", tags)
			}
			done, err := write.Restore(bg, w.table(), storage.Ref{Tag: "ours"}, write.CommitOptions{})
			w.ok(err)
			w.check("our restore")
			change(3)
			w.check("changes after our restore")
			eng.Do("restore", Request{"path": w.path, "version": done.Version}, nil)
			w.check("the engine's restore")
			change(4)

			w.ok(write.CreateBranch(bg, w.table(), "dev/ours", storage.Ref{}, write.RefOptions{}))
			w.checkBranch("our branch", "dev/ours")
			branch, err := w.table().At(bg, storage.Ref{Branch: "dev/ours"})
			w.ok(err)
			x, err := write.Begin(bg, nil, branch, write.TxOptions{})
			w.ok(err)
			w.delete(x, every(10, 5))
			w.update(x, every(10, 6), "t1", []string{"tenant", "score"})
			w.append(x, 30)
			w.commit(x)
			w.checkBranch("our changes of our branch", "dev/ours")
			eng.Do("branch_append", Request{"path": w.path, "branch": "dev/ours", "in": eng.Send(filterRows(w.next, 50))}, nil)
			eng.Do("branch_delete", Request{"path": w.path, "branch": "dev/ours", "filter": "id % 10 = 7"}, nil)
			w.next += 50
			w.checkBranch("the engine's changes of our branch", "dev/ours")
			w.check("the main history beside it")

			latest, err := w.table().Latest(bg)
			w.ok(err)
			eng.Do("branch", Request{"path": w.path, "name": "theirs", "version": latest.Version()}, nil)
			theirs, err := w.table().At(bg, storage.Ref{Branch: "theirs"})
			w.ok(err)
			x, err = write.Begin(bg, nil, theirs, write.TxOptions{})
			w.ok(err)
			w.delete(x, every(10, 8))
			w.append(x, 30)
			w.commit(x)
			w.checkBranch("our changes of the engine's branch", "theirs")

			change(9)
			_, err = write.Compact(bg, w.table(), write.CompactOptions{Remapper: write.IndexRemapper{}})
			w.ok(err)
			cleaned, err := write.Cleanup(bg, w.table(), write.CleanupOptions{OlderThan: -1})
			w.ok(err)
			if len(cleaned.Versions) == 0 || len(cleaned.Protected) < 2 {
				t.Errorf("cleaned up: %+v", cleaned)
			}
			w.check("after our cleaning up")
			w.checkBranch("after our cleaning up", "dev/ours")
			w.checkBranch("after our cleaning up", "theirs")
			got := eng.Rows("scan", Request{"path": w.path, "version": tagged.Version()})
			if uint64(got.NumRows()) != tagged.Rows() {
				t.Errorf("the tagged version has %d rows, want %d", got.NumRows(), tagged.Rows())
			}
			got.Release()
			eng.Do("cleanup", Request{"path": w.path}, nil)
			w.check("after the engine's cleaning up")
			w.checkBranch("after the engine's cleaning up", "dev/ours")
			x = w.begin()
			w.ok(x.Replace(bg, nil, nil))
			w.commit(x)
			w.check("emptied")
			x = w.begin()
			w.append(x, 500)
			w.commit(x)
			buildFilterIndices(t, w.target, write.FilterIndexOptions{Extend: true})
			w.check("filled again")
			w.uses("filled again", "tenant = 't1'", "tenant_idx")
		})
	}
}

// Two processes of the engine and two of ours delete, update and append rows of their own at the same time.
func TestManyWritersOfBothKinds(t *testing.T) {
	for _, stable := range []bool{false, true} {
		eng := StartPython(t)
		w := newWriter(t, eng, "2.2", stable)
		others := []*Engine{eng, StartAnotherPython(t)}
		group, _ := spawn.WithContext(bg, 0)
		const rounds = 5
		for k, e := range others {
			group.Go("engine", func() error {
				for i := range rounds {
					for n := 0; ; n++ {
						_, err1 := e.Try("delete", Request{"path": w.path, "filter": fmt.Sprintf("id %% 40 = %d", 10*k+i)})
						_, err2 := e.Try("update", Request{"path": w.path, "filter": fmt.Sprintf("id %% 40 = %d AND tenant <> 'e%d'", 10*k+5+i, k), "values": map[string]string{"tenant": fmt.Sprintf("'e%d'", k)}})
						if err1 == nil && err2 == nil {
							break
						}
						if n == 20 {
							return errors.Join(err1, err2)
						}
					}
				}
				return nil
			})
		}
		for k := range 2 {
			group.Go("lakesql", func() error {
				for i := range rounds {
					x := w.begin()
					w.delete(x, every(40, int64(20+10*k+i)))
					w.update(x, every(40, int64(25+10*k+i)), "mine", []string{"tenant", "score"})
					if _, err := x.Append(bg, []write.Batches{&batches{rows: sliced(filterRows(10_035+1000*k+40*i, 5), 5)}}); err != nil {
						return err
					}
					if _, err := x.Commit(bg); err != nil {
						return err
					}
				}
				return nil
			})
		}
		w.ok(group.Wait())
		w.check("all writers")
		_, ids := w.where(w.begin(), func(int64) bool { return true })
		old, fresh := 0, 0
		for _, id := range ids {
			switch m := id % 40; {
			case id >= 10_000:
				fresh++
			case m < 5 || (m >= 10 && m < 15) || (m >= 20 && m < 25) || (m >= 30 && m < 35):
				t.Fatalf("row %d was deleted", id)
			default:
				old++
			}
		}
		if old != 2000 {
			t.Errorf("%d rows are left of 2000", old)
		}
		if fresh != 2*rounds*5 {
			t.Errorf("%d new rows", fresh)
		}
	}
}
