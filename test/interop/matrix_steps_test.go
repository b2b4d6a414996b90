//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
	"github.com/lakesql/lakesql/write"
)

// writeSeed makes the table seed.rows.
func writeSeed(t *testing.T, dir string, c Case, s *seed) {
	t.Helper()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	version := file.V22
	if c.version() == "2.1" {
		version = file.V21
	}
	opts := write.CreateOptions{
		Version: version, StableRowIDs: c.stable(), Rows: write.RowOptions{FragmentRows: 40},
		Parts: []write.Batches{&batches{rows: sliced(s.batch, 100)}},
	}
	if _, err := write.CreateTable(context.Background(), write.Target{Store: store, Dir: "rows.lance"}, s.schema, opts); err != nil {
		t.Fatal(err)
	}
}

// tableRows reads the rows that the engine wrote to a file.
func tableRows(t *testing.T, path string) (out []map[string]any) {
	t.Helper()
	table := readStream(t, path)
	defer table.Release()
	r := array.NewTableReader(table, 0)
	defer r.Release()
	for r.Next() {
		out = append(out, testutil.Rows(r.RecordBatch())...)
	}
	return out
}

// other is a value that an update gives to the indexed column: lists and vectors are long enough to differ from the rest.
func (s *story) other(n int) keyValue {
	k := s.c.key()
	switch {
	case isVector(k.typ):
		return keyValue{codes: []int{35 + n, 4, 1, 2}}
	case isList(k.typ):
		return keyValue{codes: []int{3, 5 + n%3, 8}}
	}
	return keyValue{codes: []int{n % k.codes}}
}

func every64(mod, rest int64) func(id int64) bool {
	return func(id int64) bool { return id%mod == rest }
}

// weDo is lakesql's step.
func (s *story) weDo(operation string) {
	s.Helper()
	switch operation {
	case "create":
		s.recreate()
	case "append":
		s.insert(30)
	case "delete":
		s.deleteByIndex()
		s.ours("DELETE FROM %s WHERE id < 45", s.name) // a whole fragment, and more
		s.model.remove(func(id int64, _ modelRow) bool { return id < 45 })
	case "update":
		s.update(7, 3, 4)
	case "compact":
		s.remove(5, 1)
		s.insert(10)
		s.ours("CALL lakesql.compact('%s', 1000)", s.name)
	case "index update":
		s.insert(30)
		s.ours("CALL lakesql.optimize_indices('%s', %d)", s.name, s.c.number%3)
	case "schema change":
		s.changeSchema()
	case "tag":
		s.tag()
	case "branch":
		s.branch()
	default:
		s.Fatalf("no step %q", operation)
	}
}

// update changes the indexed column of some rows, and other columns of others.
func (s *story) update(mod, rest int64, n int) {
	s.Helper()
	v := s.other(n)
	s.ours("UPDATE %s SET %s = %s, note = 'changed' WHERE id %% %d = %d", s.name, s.model.column, s.sqlLiteral(v), mod, rest)
	s.model.setKey(every64(mod, rest), v)
	s.model.set(every64(mod, rest), func(int64, modelRow) map[string]any { return map[string]any{"note": "changed"} })
	s.ours("UPDATE %s SET utf8 = concat('row ', id) WHERE id %% 11 = 4", s.name)
	s.model.set(every64(11, 4), func(id int64, _ modelRow) map[string]any { return map[string]any{"utf8": fmt.Sprintf("row %d", id)} })
}

// sqlLiteral spells a value for lakesql; vectors as JSON text.
func (s *story) sqlLiteral(v keyValue) string {
	k := s.c.key()
	text := k.literal(v, k.ours)
	if isVector(k.typ) && !v.null {
		text = "'" + text + "'"
	}
	return text
}

func (s *story) remove(mod, rest int64) {
	s.Helper()
	s.ours("DELETE FROM %s WHERE id %% %d = %d", s.name, mod, rest)
	s.model.remove(func(id int64, _ modelRow) bool { return id%mod == rest })
}

// deleteByIndex deletes what a question about the indexed column finds.
func (s *story) deleteByIndex() {
	s.Helper()
	if s.c.kind() == "IVF_FLAT" {
		s.remove(9, 2)
		return
	}
	q := questions(s.c.kind(), s.c.key(), s.model.column)[0]
	s.ours("DELETE FROM %s WHERE %s", s.name, q.ours)
	s.model.remove(func(_ int64, r modelRow) bool { return q.holds(r.key) == isTrue })
}

// recreate goes on with a copy of the table that one statement makes, with its own index.
func (s *story) recreate() {
	s.Helper()
	s.ours("CREATE TABLE again WITH (file_version = '%s', stable_row_ids = %t, rows_per_fragment = 50) AS SELECT * FROM t", s.c.version(), s.c.stable())
	s.ours("DROP TABLE t")
	s.name = "again"
	s.createIndex()
	s.foreign = ""
}

func (s *story) changeSchema() {
	s.Helper()
	all := func(int64) bool { return true }
	s.ours("ALTER TABLE %s ADD COLUMN twice BIGINT DEFAULT (id * 2), ADD COLUMN later VARCHAR(20)", s.name)
	s.model.set(all, func(id int64, _ modelRow) map[string]any {
		return map[string]any{"twice": fmt.Sprint(2 * id), "later": nil}
	})
	s.ours("ALTER TABLE %s RENAME COLUMN i64 TO was_i64", s.name)
	s.ours("ALTER TABLE %s DROP COLUMN u16", s.name)
	s.ours("ALTER TABLE %s MODIFY COLUMN i16 INT", s.name)
	s.model.set(all, func(_ int64, r modelRow) map[string]any { return map[string]any{"was_i64": r.cells["i64"]} })
	for _, r := range s.model.rows {
		delete(r.cells, "i64")
		delete(r.cells, "u16")
	}
	s.ours("ALTER TABLE %s RENAME COLUMN k TO k2", s.name)
	s.model.column = "k2"
	s.model.set(all, func(_ int64, r modelRow) map[string]any { return map[string]any{"k2": r.cells["k"]} })
	for _, r := range s.model.rows {
		delete(r.cells, "k")
	}
	// rows of the seed lack or have other columns from now on
	s.reshapeSeed(func(cells map[string]any, id int64) {
		cells["k2"], cells["was_i64"], cells["twice"], cells["later"] = cells["k"], cells["i64"], fmt.Sprint(2*id), nil
		for _, gone := range []string{"k", "i64", "u16"} {
			delete(cells, gone)
		}
	})
}

func (s *story) reshapeSeed(f func(cells map[string]any, id int64)) {
	for id := range s.seed.cells {
		f(s.seed.cells[id], int64(id))
	}
}

// tag names a version, changes the table, and reads the version again at both.
func (s *story) tag() {
	s.Helper()
	s.ours("CALL lakesql.create_tag('%s', 'ours')", s.name)
	tagged := s.model.clone()
	s.remove(7, 5)
	s.ours("CALL lakesql.cleanup('%s', '0')", s.name)
	s.sameVersion("our tag", "ours", tagged)
}

// sameVersion compares an old version as both read it with a model.
func (s *story) sameVersion(what, tag string, m *model) {
	s.Helper()
	ours, err := lakes.Rows(context.Background(), s.lake.Session, fmt.Sprintf("SELECT * FROM %s AS OF '%s'", s.name, tag))
	if err != nil {
		s.Fatal(err)
	}
	s.sameAsModel(what+": lakesql", ours, m)
	out := s.eng.newFile()
	s.eng.Do("scan", Request{"path": s.path(), "version": tag, "out": out}, nil)
	s.sameAsModel(what+": the engine", tableRows(s.T, out), m)
}

// branch makes one, lets the engine change it and the table go on beside it.
func (s *story) branch() {
	s.Helper()
	s.ours("CALL lakesql.create_branch('%s', 'dev')", s.name)
	m := s.model.clone()
	s.remove(7, 5)
	s.sameBranch("our branch", "dev", m)
	s.eng.Do("branch_append", Request{"path": s.path(), "branch": "dev", "in": s.eng.Send(s.seed.slice([]int64{200, 201, 202}))}, nil)
	s.eng.Do("branch_delete", Request{"path": s.path(), "branch": "dev", "filter": "id % 9 = 1"}, nil)
	m.add(s.seed, 200, 201, 202)
	m.remove(func(id int64, _ modelRow) bool { return id%9 == 1 })
	s.sameBranch("our branch, changed by the engine", "dev", m)
}

func (s *story) sameBranch(what, branch string, m *model) {
	s.Helper()
	store, err := object.OpenLocal(s.dir, object.LocalOptions{})
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	table, err := storage.OpenTable(bg, store, filepath.Base(s.path()), storage.TableOptions{})
	if err != nil {
		s.Fatal(err)
	}
	snap, err := table.At(bg, storage.Ref{Branch: branch})
	if err != nil {
		s.Fatal(err)
	}
	scan, err := snap.Scan(bg, storage.ScanOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var ours []map[string]any
	for r := scan.Reader(); ; {
		b, err := r.Next(bg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.Fatal(err)
		}
		ours = append(ours, testutil.Rows(b)...)
		b.Release()
	}
	s.sameAsModel(what+": lakesql", ours, m)
	out := s.eng.newFile()
	s.eng.Do("branch_scan", Request{"path": s.path(), "branch": branch, "out": out}, nil)
	s.sameAsModel(what+": the engine", tableRows(s.T, out), m)
}

// current is rows of the seed as the table's columns are now, for the engine to write.
func (s *story) current(ids []int64) arrow.RecordBatch {
	b := s.seed.slice(ids)
	var fields []arrow.Field
	var arrays []arrow.Array
	for i, f := range b.Schema().Fields() {
		a := b.Column(i)
		switch {
		case f.Name == "k":
			f.Name = s.model.column
		case f.Name == "i64" && s.changed():
			f.Name = "was_i64"
		case f.Name == "u16" && s.changed():
			continue
		case f.Name == "i16" && s.changed():
			a = widened(a.(*array.Int16))
			f.Type = a.DataType()
		}
		fields, arrays = append(fields, f), append(arrays, a)
	}
	add := func(name string, t arrow.DataType, put func(b array.Builder, id int64)) {
		b := array.NewBuilder(memory.DefaultAllocator, t)
		for _, id := range ids {
			put(b, id)
		}
		fields, arrays = append(fields, arrow.Field{Name: name, Type: t, Nullable: true}), append(arrays, b.NewArray())
	}
	if s.changed() {
		add("twice", arrow.PrimitiveTypes.Int64, func(b array.Builder, id int64) { b.(*array.Int64Builder).Append(2 * id) })
		add("later", arrow.BinaryTypes.String, func(b array.Builder, _ int64) { b.AppendNull() })
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(len(ids)))
}

// changed says whether lakesql's step was a change of the schema.
func (s *story) changed() bool { return s.c.ours() == "schema change" }

// decayed says that CREATE TABLE ... AS SELECT gave columns types of their own: values in place of dictionaries, text in place of nothing.
func (s *story) decayed() bool { return s.c.ours() == "create" }

func widened(a *array.Int16) arrow.Array {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(int32(a.Value(i)))
		}
	}
	return b.NewArray()
}

// theyDo is the engine's step.
func (s *story) theyDo(operation string) {
	s.Helper()
	on := func(more Request) Request {
		r := Request{"path": s.path()}
		for k, v := range more {
			r[k] = v
		}
		return r
	}
	appended := func(n int) {
		ids := s.take(n)
		s.eng.Do("append", on(Request{"in": s.eng.Send(s.current(ids)), "cast": s.decayed()}), nil)
		s.model.add(s.seed, ids...)
	}
	switch operation {
	case "append":
		appended(30)
	case "delete":
		s.eng.Do("delete", on(Request{"filter": "id % 10 = 4"}), nil)
		s.model.remove(func(id int64, _ modelRow) bool { return id%10 == 4 })
	case "update":
		s.theyUpdate(8, 5, 2)
	case "upsert":
		s.upsert()
	case "compact":
		s.eng.Do("delete", on(Request{"filter": "id % 10 = 4"}), nil)
		s.model.remove(func(id int64, _ modelRow) bool { return id%10 == 4 })
		appended(10)
		s.eng.Do("compact", on(nil), nil)
	case "index update":
		s.theyUpdate(8, 5, 2)
		appended(20)
		s.eng.Do("optimize_indices", on(nil), nil)
		s.engineIsWrong = s.c.stable()
	case "schema change":
		s.eng.Do("add_columns", on(Request{"values": map[string]string{"theirs": "id + 1"}}), nil)
		s.eng.Do("drop_columns", on(Request{"columns": []string{s.dropped()}}), nil)
		s.model.set(func(int64) bool { return true }, func(id int64, _ modelRow) map[string]any { return map[string]any{"theirs": fmt.Sprint(id + 1)} })
		for _, r := range s.model.rows {
			delete(r.cells, s.dropped())
		}
		s.reshapeSeed(func(cells map[string]any, id int64) {
			cells["theirs"] = fmt.Sprint(id + 1)
			delete(cells, s.dropped())
		})
	case "tag":
		s.theyTag()
	case "branch":
		s.eng.Do("branch", on(Request{"name": "theirs", "version": s.eng.Info(s.path()).Version}), nil)
		m := s.model.clone()
		s.eng.Do("delete", on(Request{"filter": "id % 10 = 4"}), nil)
		s.model.remove(func(id int64, _ modelRow) bool { return id%10 == 4 })
		s.sameBranch("the engine's branch", "theirs", m)
	default:
		s.Fatalf("no step %q", operation)
	}
}

// dropped is a column that the engine drops.
func (s *story) dropped() string {
	if s.c.shape() == "nesting" {
		return "deeps"
	}
	return "list_struct"
}

func (s *story) theyTag() {
	s.Helper()
	s.eng.Do("tag", Request{"path": s.path(), "name": "theirs", "version": s.eng.Info(s.path()).Version}, nil)
	m := s.model.clone()
	s.eng.Do("delete", Request{"path": s.path(), "filter": "id % 10 = 4"}, nil)
	s.model.remove(func(id int64, _ modelRow) bool { return id%10 == 4 })
	s.sameVersion("the engine's tag", "theirs", m)
}

func (s *story) theyUpdate(mod, rest int64, n int) {
	s.Helper()
	k, v := s.c.key(), s.other(n)
	s.eng.Do("update", Request{"path": s.path(), "filter": fmt.Sprintf("id %% %d = %d", mod, rest), "values": map[string]string{s.model.column: k.literal(v, k.theirs), "note": "'changed'"}}, nil)
	s.model.setKey(every64(mod, rest), v)
	s.model.set(every64(mod, rest), func(int64, modelRow) map[string]any { return map[string]any{"note": "changed"} })
}

// upsert merges rows: some take the place of rows that are there, others are new.
func (s *story) upsert() {
	s.Helper()
	ids := s.take(20)
	b := s.current(ids)
	there := s.model.ids(func(int64, modelRow) bool { return true })[:8]
	renamed := slices.Concat(there, ids[8:])
	idsOf := array.NewInt64Builder(memory.DefaultAllocator)
	idsOf.AppendValues(renamed, nil)
	columns := slices.Clone(b.Columns())
	columns[0] = idsOf.NewArray()
	merged := array.NewRecordBatch(b.Schema(), columns, int64(len(ids)))
	s.eng.Do("upsert", Request{"path": s.path(), "in": s.eng.Send(merged), "cast": s.decayed()}, nil)
	s.model.remove(func(id int64, _ modelRow) bool { return slices.Contains(there, id) })
	for i, id := range renamed {
		s.model.add(s.seed, ids[i])
		row := s.model.rows[ids[i]]
		row.cells["id"] = fmt.Sprint(id)
		delete(s.model.rows, ids[i])
		s.model.rows[id] = row
	}
}

// weGoOn changes rows of every kind: those that the engine wrote, moved or updated too.
func (s *story) weGoOn() {
	s.Helper()
	s.update(6, 1, 5)
	s.remove(9, 2)
	ids := s.take(20)
	s.ours("INSERT INTO %s (%s) SELECT %s FROM seed.`rows` WHERE id BETWEEN %d AND %d", s.name, s.columns(true), s.columns(false), ids[0], ids[len(ids)-1])
	s.model.add(s.seed, ids...)
}

// columns lists the table's columns, as the table or as the seed names them.
func (s *story) columns(table bool) string {
	out := ""
	for _, f := range s.seed.schema.Fields() {
		name := f.Name
		switch {
		case s.c.theirs() == "schema change" && name == s.dropped(), s.changed() && name == "u16":
			continue
		case table && name == "k":
			name = s.model.column
		case table && s.changed() && name == "i64":
			name = "was_i64"
		}
		out += ", `" + name + "`"
	}
	if s.changed() {
		out += map[bool]string{true: ", twice", false: ", id * 2"}[table]
	}
	if s.c.theirs() == "schema change" {
		out += map[bool]string{true: ", theirs", false: ", id + 1"}[table]
	}
	return out[2:]
}

// tidy compacts and brings all indices up to date, in either order and by either statement.
func (s *story) tidy() {
	s.Helper()
	switch s.c.number % 3 {
	case 0:
		s.ours("OPTIMIZE TABLE %s", s.name)
	case 1:
		s.ours("CALL lakesql.optimize_indices('%s', 9)", s.name)
		s.ours("CALL lakesql.compact('%s', 60)", s.name)
	default:
		s.ours("CALL lakesql.compact('%s', 100)", s.name)
		s.ours("CALL lakesql.optimize_indices('%s')", s.name)
	}
	s.engineIsWrong = false
}
