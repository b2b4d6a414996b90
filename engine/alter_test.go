package engine

import (
	"fmt"
	"strings"
	"testing"
)

// versions counts the versions of a table of the lake.
func versions(t *testing.T, s *Session, table string) int {
	t.Helper()
	n := 0
	for failure(s, fmt.Sprintf("SELECT 1 FROM %s AS OF %d LIMIT 1", table, n+1)) == nil {
		n++
	}
	return n
}

// TestAlterTableMakesOneVersion: changes of several kinds are one commit, and what is refused changes nothing.
func TestAlterTableMakesOneVersion(t *testing.T) {
	_, s := store(t)
	do(t, s, "CREATE INDEX by_n ON t (n)", "DELETE FROM t WHERE id = 3")
	before := versions(t, s, "t")
	do(t, s, `ALTER TABLE t ADD COLUMN labels LIST<VARCHAR> DEFAULT (JSON_ARRAY(name)) AFTER id, DROP INDEX by_n, MODIFY n VARCHAR(8) FIRST, ADD (a INT NOT NULL DEFAULT 7, b DECIMAL(4,1)),
		CHANGE name title VARCHAR(12) NOT NULL DEFAULT 'x', ADD INDEX by_n (n), ADD INDEX (labels) USING LABEL_LIST, ALGORITHM=INPLACE, LOCK = NONE`)
	if got := versions(t, s, "t"); got != before+1 {
		t.Errorf("%d versions, want %d", got, before+1)
	}
	expect(t, s, "SELECT * FROM t ORDER BY id", "10\t1\t[\"one\"]\tone\t7\t\\N\n20\t2\t[\"two\"]\ttwo\t7\t\\N\n40\t4\t[\"four\"]\tfour\t7\t\\N")
	expect(t, s, "SELECT index_name, kind, covered_rows FROM lakesql.indices ORDER BY 1", "by_n\tBTREE\t3\nlabels_idx\tLABEL_LIST\t3")
	lines, _ := run(t, s, "EXPLAIN SELECT id FROM t WHERE array_has(labels, 'two') AND n = '20'")
	if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "labels_idx") {
		t.Error(plan)
	}
	expect(t, s, "SELECT id FROM t WHERE array_has(labels, 'two') AND n = '20'", "2")
	do(t, s, "INSERT INTO t (id, n) VALUES (9, 'nine')", "UPDATE t SET b = 1.5 WHERE n = 'nine'")
	expect(t, s, "SELECT n, labels, title, a, b FROM t WHERE id = 9", "nine\t\\N\tx\t7\t1.5")

	before = versions(t, s, "t")
	do(t, s, "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, DROP PRIMARY KEY, ADD PRIMARY KEY (id, title), ALTER COLUMN a SET DEFAULT 8")
	if got := versions(t, s, "t"); got != before+1 {
		t.Errorf("%d versions, want %d", got, before+1)
	}
	expect(t, s, "SHOW CREATE TABLE t", "t\tCREATE TABLE `t` (\n  `n` varchar(8),\n  `id` int NOT NULL,\n  `labels` json COMMENT 'list<varchar>',\n  `title` varchar(12) NOT NULL DEFAULT 'x',\n"+
		"  `b` int NOT NULL DEFAULT '8',\n  `a` decimal(4,1),\n  PRIMARY KEY (`id`,`title`),\n  KEY `by_n` (`n`) COMMENT 'segments=1',\n  KEY `labels_idx` (`labels`) COMMENT 'segments=1'\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin")
	do(t, s, "ALTER TABLE t DROP INDEX by_n, DROP KEY labels_idx, ADD INDEX i (id), ADD INDEX j (n) USING ZONEMAP", "ALTER TABLE t DROP COLUMN a, DROP COLUMN b, DROP COLUMN labels, RENAME TO u")
	expect(t, s, "SELECT * FROM u ORDER BY id LIMIT 1", "10\t1\tone")
	expect(t, s, "SELECT index_name FROM lakesql.indices ORDER BY 1", "i\nj")
}

func TestRefusedAlterTableChangesNothing(t *testing.T) {
	_, s := store(t)
	do(t, s, "CREATE INDEX by_n ON t (n)")
	shown, _ := run(t, s, "SHOW CREATE TABLE t")
	before := versions(t, s, "t")
	for _, c := range []struct {
		code    int
		clauses string
	}{
		{1060, "ADD COLUMN z INT, ADD COLUMN Z INT"},
		{1060, "RENAME COLUMN id TO name"},
		{1060, "ADD COLUMN z INT, CHANGE n Z INT"},
		{1091, "ADD COLUMN z INT, DROP COLUMN z"},
		{1091, "DROP COLUMN name, DROP COLUMN name"},
		{1091, "ADD COLUMN z INT, DROP INDEX nope"},
		{1091, "DROP PRIMARY KEY, DROP PRIMARY KEY"},
		{1054, "DROP COLUMN name, MODIFY name INT"},
		{1054, "ADD COLUMN z INT AFTER nope"},
		{1054, "DROP COLUMN name, ADD COLUMN z INT AFTER name"},
		{1061, "ADD COLUMN z INT, ADD INDEX by_n (id)"},
		{1061, "ADD INDEX i (id), ADD INDEX I (name)"},
		{1068, "ADD COLUMN z INT, ADD PRIMARY KEY (name)"},
		{1072, "ADD COLUMN z INT, ADD INDEX i (nope)"},
		{1072, "DROP PRIMARY KEY, ADD PRIMARY KEY (nope)"},
		{1090, "DROP COLUMN id, DROP COLUMN name, DROP COLUMN n"},
		{1210, "ADD COLUMN z INT, DROP COLUMN n"},
		{1210, "ADD COLUMN z INT, MODIFY n VARCHAR(9)"},
		{1210, "ADD INDEX i (id), ADD VECTOR INDEX v (name)"},
		{1406, "DROP INDEX by_n, ADD COLUMN z INT, MODIFY name VARCHAR(2)"},
		{1406, "ADD INDEX i (name), MODIFY n VARCHAR(1), DROP INDEX by_n"},
		{1048, "ADD COLUMN z INT, MODIFY name VARCHAR(10) NOT NULL"},
		{1067, "DROP COLUMN name, ADD COLUMN z INT DEFAULT 'x'"},
		{1064, "ADD COLUMN z INT, ADD INDEX i (id) garbage"},
		{1235, "ADD COLUMN z INT, ADD UNIQUE INDEX i (id)"},
	} {
		refused(t, s, c.code, "ALTER TABLE t "+c.clauses)
	}
	if got := versions(t, s, "t"); got != before {
		t.Errorf("%d versions, want %d", got, before)
	}
	expect(t, s, "SHOW CREATE TABLE t", strings.Join(shown, "\n"))
	expect(t, s, "SELECT id FROM t WHERE n = 20", "2")
}
