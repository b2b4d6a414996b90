//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/test/lakes"
)

// foreignLake is a table that the real engine made and indexed, and a session of lakesql in its folder.
type foreignLake struct {
	t       *testing.T
	eng     *Engine
	path    string
	lake    *lakes.Lake
	filters []string // as both write them
}

func (l *foreignLake) ask(text string) []string {
	l.t.Helper()
	out, _, err := lakes.AskSession(context.Background(), l.lake.Session, text)
	if err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
	slices.Sort(out)
	return out
}

func (l *foreignLake) ids(r Request) []string {
	l.t.Helper()
	r["path"], r["columns"] = l.path, []string{"id"}
	table := l.eng.Rows("scan", r)
	defer table.Release()
	col := Column(l.t, table, "id")
	defer col.Release()
	out := []string{}
	for i := range col.Len() {
		out = append(out, fmt.Sprint(col.(*array.Int64).Value(i)))
	}
	slices.Sort(out)
	return out
}

// same compares the answers of both, by index and by scan, and that every index is still there.
func (l *foreignLake) same(after string, indices ...string) {
	l.t.Helper()
	for _, f := range l.filters {
		want := l.ids(Request{"filter": f, "use_scalar_index": false})
		if got := l.ids(Request{"filter": f}); !slices.Equal(got, want) {
			l.t.Errorf("after %s, %s: the real engine reads %d rows by index, %d by scan", after, f, len(got), len(want))
		}
		if strings.Contains(f, "contains_tokens") {
			continue
		}
		if got := l.ask("SELECT id FROM t WHERE " + f); !slices.Equal(got, want) {
			l.t.Errorf("after %s, %s: lakesql reads %d rows, the real engine %d", after, f, len(got), len(want))
		}
	}
	near := Request{"nearest": map[string]any{"column": "v", "q": []float32{3, 4}, "k": 9, "nprobes": 4}}
	ours := l.ask("SELECT id FROM t ORDER BY l2_distance(v, '[3,4]'), id LIMIT 9")
	if got := l.ids(near); !slices.Equal(got, ours) {
		l.t.Errorf("after %s: nearest %v, the real engine's %v", after, ours, got)
	}
	var info struct{ Indices []struct{ Name string } }
	l.eng.Do("info", Request{"path": l.path}, &info)
	for _, name := range indices {
		if !slices.ContainsFunc(info.Indices, func(i struct{ Name string }) bool { return i.Name == name }) {
			l.t.Errorf("after %s: index %s is gone: %v", after, name, info.Indices)
		}
	}
}

// foreignRows are rows whose vectors have distances of their own.
func foreignRows(t *testing.T, lo, hi int) arrow.RecordBatch {
	t.Helper()
	var rows []string
	for i := lo; i < hi; i++ {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"s":"word%d text%d","l":["a%d","b%d"],"v":[%d,%d.25]}`, i, i%10, i%7, i%3, i%5, i%97, i))
	}
	fields := []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("s", arrow.BinaryTypes.String), lakes.Field("l", lakes.Labels), lakes.Field("v", lakes.Vector(2))}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openForeign(t *testing.T) *foreignLake {
	t.Helper()
	dir := t.TempDir()
	l := &foreignLake{t: t, eng: StartPython(t), path: filepath.Join(dir, "t.lance")}
	for i := range 10 {
		op := "append"
		if i == 0 {
			op = "create"
		}
		l.eng.Do(op, Request{"path": l.path, "in": l.eng.Send(foreignRows(t, 100*i, 100*i+100))}, nil)
	}
	l.lake = lakes.Open(t, dir, engine.Config{})
	return l
}

// foreignSteps are statements that touch every row's fragment in one way or another.
var foreignSteps = []string{
	"DELETE FROM t WHERE id % 11 = 3", "UPDATE t SET s = 'word3 changed' WHERE id % 100 = 50", "INSERT INTO t (id, s, l, v) SELECT id + 5000, s, l, v FROM t WHERE id < 40",
	"DELETE FROM t WHERE id < 120", "OPTIMIZE TABLE t", "INSERT INTO t (id, s, l, v) VALUES (9000, 'word3 last', ['a1'], '[3,4]')", "CALL lakesql.optimize_indices('t')", "ALTER TABLE t RENAME COLUMN s TO s2",
}

// TestCompactionsThatAreToBeRemapped: segments whose fragments the real engine compacted and left to be remapped later answer both engines rightly, whatever lakesql
// changes meanwhile.
func TestCompactionsThatAreToBeRemapped(t *testing.T) {
	l := openForeign(t)
	l.filters = []string{"id = 501", "id BETWEEN 90 AND 130", "array_has(l, 'a1')", "array_has_any(l, ['b4', 'a0'])", "id > 4990"}
	for column, kind := range map[string]string{"id": "BTREE", "l": "LABEL_LIST"} {
		l.eng.Do("create_index", Request{"path": l.path, "column": column, "kind": kind, "name": column + "_idx"}, nil)
	}
	l.eng.Do("create_index", Request{"path": l.path, "column": "v", "kind": "IVF_FLAT", "name": "v_idx", "vector": true, "options": map[string]any{"num_partitions": 4}}, nil)
	names := []string{"id_idx", "l_idx", "v_idx"}
	l.eng.Do("delete", Request{"path": l.path, "filter": "id % 7 = 0"}, nil)
	for i, text := range foreignSteps[:7] {
		if i == 0 || i == 3 {
			l.eng.Do("compact", Request{"path": l.path, "target_rows": 300 * (i + 1), "defer": true}, nil)
			l.same("a compaction", names...)
		}
		l.ask(text)
		l.same(text, names...)
	}
	l.eng.Do("optimize_indices", Request{"path": l.path}, nil)
	l.same("the real engine's own update", names...)
}

// TestForeignIndicesSurvive: indices of kinds that lakesql does not know, or does not write, are carried along, and their answers stay right.
func TestForeignIndicesSurvive(t *testing.T) {
	l := openForeign(t)
	l.filters = []string{"contains_tokens(s, 'word3')", "id = 501", "id > 4990"}
	names := []string{"words", "bloom", "v_idx"}
	l.eng.Do("create_index", Request{"path": l.path, "column": "s", "kind": "INVERTED", "name": "words"}, nil)
	l.eng.Do("create_index", Request{"path": l.path, "column": "id", "kind": "BLOOMFILTER", "name": "bloom"}, nil)
	l.eng.Do("create_index", Request{"path": l.path, "column": "v", "kind": "IVF_PQ", "name": "v_idx", "vector": true, "options": map[string]any{"num_partitions": 1, "num_sub_vectors": 2}}, nil)
	for _, text := range foreignSteps {
		said := l.ask(text)
		for _, name := range names {
			named := slices.ContainsFunc(said, func(line string) bool {
				return strings.Contains(line, "warning") && strings.Contains(line, "index "+name+" ")
			})
			if strings.HasPrefix(text, "OPTIMIZE") && !named {
				t.Errorf("%s does not say that %s covers less: %q", text, name, said)
			}
		}
		if text == foreignSteps[len(foreignSteps)-1] {
			l.filters[0] = "contains_tokens(s2, 'word3')"
		}
		l.same(text, names...)
	}
	l.eng.Do("optimize_indices", Request{"path": l.path}, nil)
	l.same("the real engine's own update", names...)
}

// TestBranchesOfBoth: what SQL writes into a branch the real engine reads there, and the other way round; the main history stays as it was.
func TestBranchesOfBoth(t *testing.T) {
	l := openForeign(t)
	onBranch := func(branch string) []string {
		t.Helper()
		table := l.eng.Rows("branch_scan", Request{"path": l.path, "branch": branch, "columns": []string{"id"}})
		defer table.Release()
		col := Column(t, table, "id")
		defer col.Release()
		out := []string{}
		for i := range col.Len() {
			out = append(out, fmt.Sprint(col.(*array.Int64).Value(i)))
		}
		slices.Sort(out)
		return out
	}
	before := l.ask("SELECT id FROM t")
	l.ask("CREATE INDEX by_label ON t (l)")
	l.eng.Do("branch", Request{"path": l.path, "name": "theirs", "version": 10}, nil)
	l.ask("CALL lakesql.create_branch('t', 'ours/one')")
	for _, branch := range []string{"theirs", "ours/one"} {
		name := "`t@" + branch + "`"
		for _, text := range []string{
			"DELETE FROM " + name + " WHERE id % 3 = 0", "UPDATE " + name + " SET id = id + 10000 WHERE array_has(l, 'b1')", "INSERT INTO " + name + " (id, l) VALUES (77777, ['b1'])",
			"OPTIMIZE TABLE " + name, "CALL lakesql.create_tag('t@" + branch + "', 'tag_" + branch[:4] + "')",
		} {
			l.ask(text)
			if got, want := onBranch(branch), l.ask("SELECT id FROM "+name); !slices.Equal(got, want) || slices.Equal(got, before) {
				t.Fatalf("%s, after %s: the real engine reads %d rows, lakesql %d", branch, text, len(got), len(want))
			}
		}
		l.eng.Do("branch_append", Request{"path": l.path, "branch": branch, "in": l.eng.Send(foreignRows(t, 2000, 2030))}, nil)
		l.eng.Do("branch_delete", Request{"path": l.path, "branch": branch, "filter": "id < 100"}, nil)
		if got, want := l.ask("SELECT id FROM "+name), onBranch(branch); !slices.Equal(got, want) {
			t.Errorf("%s: lakesql reads %d rows, the real engine %d", branch, len(got), len(want))
		}
	}
	if got := l.ids(Request{}); !slices.Equal(got, before) {
		t.Errorf("the main history has %d rows", len(got))
	}
	var tags map[string]struct{ Branch string }
	l.eng.Do("tags", Request{"path": l.path}, &tags)
	if tags["tag_ours"].Branch != "ours/one" || tags["tag_thei"].Branch != "theirs" {
		t.Errorf("tags: %v", tags)
	}
}
