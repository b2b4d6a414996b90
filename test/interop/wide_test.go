//go:build interop

package interop

import (
	"context"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
	"github.com/lakesql/lakesql/write"
)

// wideRows draws rows with ids from 0: NULLs and empty values at every level, but of 2.0 files, which hold no NULL structs.
func wideRows(s *arrow.Schema, version string, n int) arrow.RecordBatch {
	maker := testutil.RowMaker{R: rand.New(rand.NewSource(3)), Nulls: 0.25, Empty: 0.2}
	if version == "2.0" {
		maker.Nulls = 0
	}
	drawn := maker.Batch(memory.DefaultAllocator, s, n)
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range n {
		ids.Append(int64(i))
	}
	columns := slices.Clone(drawn.Columns())
	columns[0] = ids.NewArray()
	return array.NewRecordBatch(s, columns, int64(n))
}

// snapshotOf opens the newest version of a table.
func snapshotOf(t *testing.T, path string) *storage.Snapshot {
	t.Helper()
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	table, err := storage.OpenTable(bg, store, filepath.Base(path), storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(bg)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestAllTypesInOneWideTable makes, fills and reads a table of every type in each version, with both engines and back.
func TestAllTypesInOneWideTable(t *testing.T) {
	for name, eng := range StartPythons(t) {
		for _, version := range fileVersions {
			t.Run(name+" "+version, func(t *testing.T) { wideTable(t, eng.On(t), version) })
		}
		t.Run(name+" 2.0", func(t *testing.T) { wideOldTable(t, eng.On(t)) })
	}
}

// makeWide makes the table wide of all columns that files of the version hold, and beside it the table rows with what to put in.
func makeWide(t *testing.T, version string, rows int) (dir string, lake *lakes.Lake, want []map[string]any) {
	t.Helper()
	dir, seeds := t.TempDir(), t.TempDir()
	target := func(dir, name string) write.Target {
		store, err := object.OpenLocal(dir, object.LocalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return write.Target{Store: store, Dir: name + ".lance"}
	}
	v := map[string]file.Version{"2.1": file.V21, "2.2": file.V22}[version]
	types, names := heldBy(version)
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
	for i, w := range types {
		if w.sql == "" {
			fields = append(fields, arrow.Field{Name: names[i], Type: w.typ, Nullable: true})
		}
	}
	if _, err := write.CreateTable(bg, target(dir, "wide"), arrow.NewSchema(fields, nil), write.CreateOptions{Version: v}); err != nil {
		t.Fatal(err)
	}
	seed := target(seeds, "rows")
	lake = lakes.Open(t, dir, engine.Config{Catalogs: []source.Catalog{lance.Open("seed", seed.Store, lance.Options{})}})
	for i, w := range types {
		if w.sql != "" {
			lake.Set(t, fmt.Sprintf("ALTER TABLE wide ADD COLUMN %s %s", names[i], w.sql))
		}
	}
	batch := wideRows(snapshotOf(t, filepath.Join(dir, "wide.lance")).ArrowSchema(), version, rows)
	if _, err := write.CreateTable(bg, seed, batch.Schema(), write.CreateOptions{Version: v, Parts: []write.Batches{&batches{rows: sliced(batch, 70)}}}); err != nil {
		t.Fatal(err)
	}
	lake.Set(t, "INSERT INTO wide SELECT * FROM seed.`rows`")
	return dir, lake, testutil.Rows(batch)
}

// asSQL reads a table by SQL, in the order of ids.
func asSQL(t *testing.T, lake *lakes.Lake, table string) []map[string]any {
	t.Helper()
	got, err := lakes.Rows(context.Background(), lake.Session, "SELECT * FROM "+table+" ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wideTable(t *testing.T, eng *Engine, version string) {
	t.Helper()
	dir, lake, want := makeWide(t, version, 120)
	path := filepath.Join(dir, "wide.lance")
	testutil.CompareRows(t, "lakesql reads its table", asSQL(t, lake, "wide"), want)
	out := eng.newFile()
	eng.Do("scan", Request{"path": path, "out": out}, nil)
	testutil.CompareRows(t, "the engine reads lakesql's table", tableRows(t, out), want)
	eng.Do("copy", Request{"path": path, "to": filepath.Join(dir, "theirs.lance"), "data_storage_version": version}, nil)
	testutil.CompareRows(t, "lakesql reads the engine's table", asSQL(t, lake, "theirs"), want)
	ours, theirs := snapshotOf(t, path).Schema(), snapshotOf(t, filepath.Join(dir, "theirs.lance")).Schema()
	held, names := heldBy(version)
	for i, w := range held {
		mine, ok := ours.Lookup(names[i])
		other, both := theirs.Lookup(names[i])
		if !ok || !both || mine.Logical != other.Logical || !strings.Contains(w.logical, " of ") && mine.Logical != strings.Split(w.logical, ",")[0] {
			t.Errorf("column %s is %v in lakesql's manifest, %v in the engine's, want %s", names[i], mine, other, w.logical)
		}
	}
	eng.Do("append_own", Request{"path": path, "shift": 1000}, nil)
	lake.Set(t, "DELETE FROM wide WHERE id % 3 = 1")
	lake.Set(t, "CALL lakesql.compact('wide')")
	var both []map[string]any
	for _, shift := range []int{0, 1000} {
		for id, row := range want {
			if (id+shift)%3 != 1 {
				next := map[string]any{"id": fmt.Sprint(id + shift)}
				for k, v := range row {
					if k != "id" {
						next[k] = v
					}
				}
				both = append(both, next)
			}
		}
	}
	testutil.CompareRows(t, "lakesql reads what both wrote", asSQL(t, lake, "wide"), both)
	out = eng.newFile()
	eng.Do("scan", Request{"path": path, "out": out}, nil)
	testutil.CompareRows(t, "the engine reads what both wrote", tableRows(t, out), both)
}

// wideOldTable reads a table of version 2.0 that the engine made, deletes from it, indexes it, and is refused where a file had to be written.
func wideOldTable(t *testing.T, eng *Engine) {
	t.Helper()
	dir, _, _ := makeWide(t, "2.1", 0)
	types := snapshotOf(t, filepath.Join(dir, "wide.lance")).ArrowSchema() // what SQL's types are
	old := t.TempDir()
	var fields []arrow.Field
	for _, f := range types.Fields() {
		f.Metadata = arrow.Metadata{}
		fields = append(fields, f)
	}
	batch := wideRows(arrow.NewSchema(fields, nil), "2.0", 120)
	path := filepath.Join(old, "wide.lance")
	eng.Do("create", Request{"path": path, "in": eng.Send(batch), "data_storage_version": "2.0", "max_rows_per_file": 50}, nil)
	lake := lakes.Open(t, old, engine.Config{})
	want := testutil.Rows(batch)
	testutil.CompareRows(t, "lakesql reads the engine's table", asSQL(t, lake, "wide"), want)
	doors := lake.Doors()
	if _, err := doors[0].Ask(bg, "INSERT INTO wide (id) VALUES (7000)"); err == nil || !strings.Contains(err.Error(), "2.0") || !strings.Contains(err.Error(), "CREATE TABLE") {
		t.Errorf("an append: %v", err)
	}
	lake.Set(t, "CREATE INDEX ids ON wide (id) USING BTREE")
	lake.Set(t, "DELETE FROM wide WHERE id % 3 = 1")
	want = slices.DeleteFunc(want, func(row map[string]any) bool { return idOf(row)%3 == 1 })
	testutil.CompareRows(t, "lakesql reads what it left", asSQL(t, lake, "wide"), want)
	out := eng.newFile()
	eng.Do("scan", Request{"path": path, "out": out}, nil)
	testutil.CompareRows(t, "the engine reads what lakesql left", tableRows(t, out), want)
	var got engineCheck
	eng.Do("check", Request{"path": path, "filters": []string{"id = 60", "id < 9"}, "out": eng.newFile()}, &got)
	for i, n := range []int{1, 6} {
		if a := got.Answers[i]; len(a.Index) != n || len(a.Scan) != n || !strings.Contains(a.Plan, "ids") {
			t.Errorf("the engine finds %v by our index, %v by scan: %s", a.Index, a.Scan, a.Plan)
		}
	}
}

// TestWhatTheEngineCannotDo: the limits that docs/interop.md tells of are still there.
func TestWhatTheEngineCannotDo(t *testing.T) {
	pair := arrow.StructOf(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
	id := arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}
	for name, eng := range StartPythons(t) {
		for _, c := range []struct {
			typ           arrow.DataType
			version, says string
		}{
			{arrow.FixedSizeListOf(3, pair), "2.2", "differing lengths"}, {arrow.FixedSizeListOf(3, pair), "2.1", ""}, {arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), "2.1", ""},
		} {
			rows := wideRows(arrow.NewSchema([]arrow.Field{id, {Name: "c", Type: c.typ, Nullable: true}}, nil), "2.0", 5)
			path := filepath.Join(t.TempDir(), "t.lance")
			_, err := eng.Try("create", Request{"path": path, "in": eng.Send(rows), "data_storage_version": c.version})
			if err == nil && c.says != "" {
				_, err = eng.Try("scan", Request{"path": path, "out": eng.newFile()})
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s in %s: %v", name, c.typ, c.version, err)
			}
		}
	}
}
