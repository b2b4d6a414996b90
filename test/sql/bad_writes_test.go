package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestADeleteOfAllRowsKeepsATaggedVersion, also through clean-up.
func TestADeleteOfAllRowsKeepsATaggedVersion(t *testing.T) {
	l, _ := writing(t)
	c := l.Connect(t, true)
	perform(t, c, "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, labels LIST<VARCHAR>)")
	perform(t, c, "INSERT INTO t VALUES (1, ['a']), (2, ['b']), (3, NULL)")
	perform(t, c, "CREATE INDEX by_label ON t (labels) USING LABEL_LIST")
	perform(t, c, "CALL lakesql.create_tag('t', 'kept')")
	if n := perform(t, c, "DELETE FROM t"); n != 3 {
		t.Errorf("%d rows were deleted", n)
	}
	perform(t, c, "INSERT INTO t VALUES (4, ['a'])")
	perform(t, c, "OPTIMIZE TABLE t")
	for range 2 {
		if got := ask(t, c, "SELECT id FROM t ORDER BY id"); got != "4" {
			t.Errorf("now: %q", got)
		}
		if got := ask(t, c, "SELECT id FROM t AS OF 'kept' ORDER BY id"); got != "1\n2\n3" {
			t.Errorf("the tagged version: %q", got)
		}
		if got := ask(t, c, "SELECT id FROM t AS OF 'kept' WHERE array_has(labels, 'a')"); got != "1" {
			t.Errorf("the tagged version by label: %q", got)
		}
		perform(t, c, "CALL lakesql.cleanup('t', '0')")
	}
	perform(t, c, "CALL lakesql.restore('t', 'kept')")
	if got := ask(t, c, "SELECT COUNT(*) FROM t"); got != "3" {
		t.Errorf("restored: %q", got)
	}
}

// TestAnAlterThatWouldBreakAnIndex names the index and what to do; afterwards it works.
func TestAnAlterThatWouldBreakAnIndex(t *testing.T) {
	for _, kind := range []string{"LABEL_LIST", "BITMAP", "BTREE", "ZONEMAP", "IVF_FLAT"} {
		column := map[string]string{"LABEL_LIST": "labels", "IVF_FLAT": "v"}[kind]
		if column == "" {
			column = "n"
		}
		changes := []string{"DROP COLUMN " + column}
		if column == "n" {
			changes = append(changes, "MODIFY COLUMN n VARCHAR(30)", "CHANGE COLUMN n m VARCHAR(30)")
		}
		for _, change := range changes {
			t.Run(kind+" "+change, func(t *testing.T) {
				l, _ := writing(t)
				c := l.Connect(t, true)
				perform(t, c, "CREATE TABLE t (id BIGINT, n BIGINT, labels LIST<VARCHAR>, v VECTOR(2))")
				perform(t, c, "INSERT INTO t VALUES (1, 10, ['a'], '[1,0]'), (2, 20, ['b'], '[0,1]')")
				perform(t, c, "CREATE INDEX the_index ON t ("+column+") USING "+kind)
				before := ask(t, c, "SELECT * FROM t ORDER BY id")
				_, err := c.ExecContext(context.Background(), "ALTER TABLE t "+change)
				if codeOf(err) == 0 || !strings.Contains(err.Error(), "the_index") || !strings.Contains(strings.ToLower(err.Error()), "drop") {
					t.Errorf("%v", err)
				}
				if got := ask(t, c, "SELECT * FROM t ORDER BY id"); got != before {
					t.Errorf("afterwards %q", got)
				}
				if got := ask(t, c, "SELECT covered_rows FROM lakesql.indices WHERE index_name = 'the_index'"); got != "2" {
					t.Errorf("the index covers %q rows", got)
				}
				perform(t, c, "DROP INDEX the_index ON t")
				perform(t, c, "ALTER TABLE t "+change)
			})
		}
	}
}

// TestNullEverywhere has no value in any column: tables, indices of all kinds, changes and answers.
func TestNullEverywhere(t *testing.T) {
	l, _ := writing(t)
	c := l.Connect(t, true)
	perform(t, c, "CREATE TABLE t (id BIGINT, n BIGINT, name VARCHAR(20), labels LIST<VARCHAR>, v VECTOR(2), s STRUCT<a BIGINT, b VARCHAR>, at DATETIME(6), price DECIMAL(8,2), data BLOB, doc JSON)")
	for range 3 {
		perform(t, c, "INSERT INTO t VALUES "+strings.TrimSuffix(strings.Repeat("(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),", 400), ","))
	}
	for i, index := range []string{"(labels) USING LABEL_LIST", "(name) USING BITMAP", "(n) USING BTREE", "(price) USING ZONEMAP", "(at) USING BTREE"} {
		perform(t, c, fmt.Sprintf("CREATE INDEX i%d ON t %s", i, index))
	}
	if _, err := c.ExecContext(context.Background(), "CREATE VECTOR INDEX iv ON t (v)"); codeOf(err) == 0 || !strings.Contains(err.Error(), "vector") {
		t.Errorf("an index of no vectors: %v", err)
	}
	check := func(nulls string) {
		t.Helper()
		for where, want := range map[string]string{
			"labels IS NULL": nulls, "name IS NULL": nulls, "n IS NULL": nulls, "price IS NULL": nulls, "at IS NULL": nulls, "v IS NULL": nulls, "s IS NULL": nulls,
			"array_has(labels, 'a')": "0", "NOT array_has(labels, 'a')": "0", "array_has_any(labels, ['a', NULL])": "0", "n = 1 OR name = 'x'": "0", "NOT (n < 5)": "0", "price > 0": "0", "n <=> NULL": nulls,
		} {
			if got := ask(t, c, "SELECT COUNT(*) FROM t WHERE "+where); got != want {
				t.Errorf("%s: %s rows, want %s", where, got, want)
			}
		}
	}
	check("1200")
	if got := ask(t, c, "SELECT COUNT(n), SUM(n), MIN(name), MAX(at), COUNT(*) FROM t"); got != `0	\N	\N	\N	1200` {
		t.Errorf("aggregates: %q", got)
	}
	if got := ask(t, c, "SELECT id FROM t ORDER BY l2_distance(v, '[1,0]') LIMIT 2"); got != "\\N\n\\N" && got != "" {
		t.Errorf("nearest: %q", got)
	}
	if n := perform(t, c, "UPDATE t SET n = n + 1, name = CONCAT(name, 'x'), labels = NULL WHERE id IS NULL"); n != 0 {
		t.Errorf("%d rows changed", n)
	}
	if n := perform(t, c, "DELETE FROM t WHERE n IS NULL LIMIT 200"); n != 200 {
		t.Errorf("%d rows deleted", n)
	}
	perform(t, c, "ALTER TABLE t ADD COLUMN twice BIGINT DEFAULT (n * 2), MODIFY COLUMN n VARCHAR(30), DROP INDEX i2")
	perform(t, c, "OPTIMIZE TABLE t")
	check("1000")
	if _, err := c.ExecContext(context.Background(), "ALTER TABLE t MODIFY COLUMN id BIGINT NOT NULL"); codeOf(err) == 0 {
		t.Error("a column of NULL became NOT NULL")
	}
	perform(t, c, "CREATE TABLE twin AS SELECT * FROM t")
	if got := ask(t, c, "SELECT COUNT(*), COUNT(doc) FROM twin"); got != "1000\t0" {
		t.Errorf("the copy: %q", got)
	}
}

// TestListsOfManyLabels writes lists of 100,000 labels, as text and as a parameter, with an index.
func TestListsOfManyLabels(t *testing.T) {
	const labels = 100_000
	words := make([]string, labels)
	for i := range words {
		words[i] = fmt.Sprintf("'w%d'", i)
	}
	l, _ := writing(t)
	c := l.Connect(t, false)
	perform(t, c, "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, labels LIST<VARCHAR>)")
	perform(t, c, "INSERT INTO t VALUES (1, ["+strings.Join(words, ",")+"]), (2, ['w5', 'other'])")
	perform(t, c, "CREATE INDEX by_label ON t (labels) USING LABEL_LIST")
	perform(t, c, "INSERT INTO t VALUES (?, ?)", 3, `["`+strings.ReplaceAll(strings.Trim(strings.Join(words[:labels/2], ","), "'"), "','", `","`)+`"]`)
	check := func() {
		t.Helper()
		for where, want := range map[string]string{
			"array_has(labels, 'w99999')": "1", "array_has(labels, 'w5')": "1\n2\n3", "array_has_all(labels, ['w0','w49999'])": "1\n3", "NOT array_has(labels, 'w49999')": "2",
			"array_has_any(labels, [" + strings.Join(words[60_000:70_000], ",") + "])": "1",
		} {
			if got := ask(t, c, "SELECT id FROM t WHERE "+where+" ORDER BY id"); got != want {
				t.Errorf("%.60s: %q, want %q", where, got, want)
			}
		}
		if got := ask(t, c, "SELECT id, array_length(labels) FROM t ORDER BY id"); got != "1\t100000\n2\t2\n3\t50000" {
			t.Errorf("lengths: %q", got)
		}
	}
	perform(t, c, "OPTIMIZE TABLE t")
	check()
	if n := perform(t, c, "UPDATE t SET labels = (SELECT labels FROM (SELECT * FROM t) x WHERE id = 1) WHERE id = 2"); n != 1 {
		t.Errorf("%d rows updated", n)
	}
	if got := ask(t, c, "SELECT COUNT(*) FROM t WHERE array_has(labels, 'w99999')"); got != "2" {
		t.Errorf("after UPDATE: %q", got)
	}
}
