//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestSQLWritesAreRead: after every statement the real engine reads the rows that lakesql reads, by filter through the indices that SQL made; then it changes the
// table itself and SQL goes on from there.
func TestSQLWritesAreRead(t *testing.T) {
	for _, version := range []string{"2.1", "2.2"} {
		for _, stable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stable=%t", version, stable), func(t *testing.T) { sqlStory(t, version, stable) })
		}
	}
}

func sqlStory(t *testing.T, version string, stable bool) {
	other := StartPython(t)
	dir := t.TempDir()
	l := lakes.Open(t, dir, engine.Config{})
	path := filepath.Join(dir, "t.lance")
	ask := func(text string) []string {
		t.Helper()
		out, _, err := lakes.AskSession(context.Background(), l.Session, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return out
	}
	theirs := func(filter string) []string {
		t.Helper()
		r := Request{"path": path, "columns": []string{"id"}}
		if filter != "" {
			r["filter"] = filter
		}
		table := other.Rows("scan", r)
		defer table.Release()
		ids := Column(t, table, "id")
		defer ids.Release()
		out := []string{}
		for i := range ids.Len() {
			out = append(out, fmt.Sprint(ids.(*array.Int64).Value(i)))
		}
		slices.Sort(out)
		return out
	}
	compare := func(step string) {
		t.Helper()
		for ours, filter := range map[string]string{
			"SELECT id FROM t": "", "SELECT id FROM t WHERE array_has_any(labels, ['wet'])": "array_has_any(labels, ['wet'])", "SELECT id FROM t WHERE n > 20": "n > 20",
		} {
			got := ask(ours)
			slices.Sort(got)
			if want := theirs(filter); !slices.Equal(got, want) {
				t.Fatalf("after %s, %s: lakesql reads %v, the real engine %v", step, ours, got, want)
			}
		}
	}
	for _, text := range []string{
		fmt.Sprintf("CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, labels LIST<VARCHAR>, v VECTOR(2), n INT DEFAULT 7, at DATETIME(3), price DECIMAL(8,2)) WITH (file_version = '%s', stable_row_ids = %t, rows_per_fragment = 3)", version, stable),
		"INSERT INTO t (id, labels, v, n) VALUES (1, ['wet'], '[0,0]', 10), (2, ['dry','wet'], '[1,0]', 20), (3, NULL, NULL, 30), (4, [], '[0,1]', NULL), (5, ['dry', NULL], '[1,1]', 50)",
		"CREATE INDEX by_label ON t (labels)", "CREATE INDEX by_n ON t (n)", "CREATE VECTOR INDEX nearest ON t (v) WITH (num_partitions = 1)",
		"UPDATE t SET n = n + 1 WHERE array_has(labels, 'wet')", "DELETE FROM t WHERE id = 4", "REPLACE INTO t (id, labels) VALUES (1, ['new','wet']), (6, ['wet'])",
		"INSERT INTO t (id, n) VALUES (2, 5), (7, 70) ON DUPLICATE KEY UPDATE n = VALUES(n)", "INSERT INTO t (id, labels, n) SELECT id + 100, labels, n FROM t", "ALTER TABLE t ADD COLUMN twice BIGINT DEFAULT (n * 2)",
		"ALTER TABLE t MODIFY COLUMN price DECIMAL(12,3)", "ALTER TABLE t DROP COLUMN at", "OPTIMIZE TABLE t", "DELETE FROM t WHERE id > 105", "CALL lakesql.create_tag('t', 'kept')",
	} {
		ask(text)
		compare(text)
	}
	if plan := other.Explain(Request{"path": path, "filter": "array_has_any(labels, ['wet'])"}); !strings.Contains(plan, "by_label") {
		t.Errorf("the real engine does not use the label index: %s", plan)
	}
	other.Do("delete", Request{"path": path, "filter": "id = 5"}, nil)
	compare("a delete of the real engine")
	other.Do("update", Request{"path": path, "values": map[string]string{"n": "99"}, "filter": "id < 3"}, nil)
	compare("an update of the real engine")
	ask("UPDATE t SET n = 98 WHERE n = 99 AND id = 1")
	compare("an update after it")
	other.Do("compact", Request{"path": path}, nil)
	compare("a compaction of the real engine")
	ask("DELETE FROM t WHERE array_has(labels, 'new')")
	compare("a delete after it")
	ask("CALL lakesql.restore('t', 'kept')")
	compare("a restore")
	ask("TRUNCATE TABLE t")
	compare("TRUNCATE")
	ask("INSERT INTO t (id, labels) VALUES (1, ['wet'])")
	compare("an insert into the emptied table")
}
