package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

// openWritable opens an engine over an empty lake in a folder of its own, and a session in it.
func openWritable(t testing.TB) (*Engine, *Session) {
	t.Helper()
	return openLance(t, t.TempDir(), lance.Options{})
}

func openLance(t testing.TB, dir string, opts lance.Options) (*Engine, *Session) {
	t.Helper()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{lance.Open("lake", store, opts)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if used := e.Budget().Used(); used != 0 {
			t.Errorf("%s: %d bytes are still reserved", t.Name(), used)
		}
	})
	return e, inLake(t, e)
}

func inLake(t testing.TB, e *Engine) *Session {
	t.Helper()
	s := e.NewSession(SessionOptions{Database: "lake"})
	t.Cleanup(s.Close)
	return s
}

// do runs statements that return no rows, and returns what the last one did.
func do(t *testing.T, s *Session, statements ...string) *Result {
	t.Helper()
	var last *Result
	for _, text := range statements {
		_, last = run(t, s, text)
	}
	return last
}

// expect compares the rows of a query.
func expect(t *testing.T, s *Session, query, want string) {
	t.Helper()
	lines, _ := run(t, s, query)
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s\n got %q\nwant %q", query, got, want)
	}
}

// refused checks the MySQL code of a failure.
func refused(t *testing.T, s *Session, code int, text string, args ...any) {
	t.Helper()
	err := failure(s, text, args...)
	if err == nil {
		t.Errorf("%s: no error", text)
		return
	}
	if got := mysqlerr.Convert(err); got.Num != code {
		t.Errorf("%s: error %d (%v), want %d", text, got.Num, err, code)
	}
}

func TestCreateAndInsert(t *testing.T) {
	_, s := openWritable(t)
	do(t, s, `CREATE TABLE images (
		id BIGINT NOT NULL PRIMARY KEY COMMENT 'the key',
		name VARCHAR(5) NOT NULL DEFAULT 'none',
		labels LIST<VARCHAR>, -- a list, not 'LIST<VARCHAR>' in a string
		embedding VECTOR(2),
		doc JSON,
		price DECIMAL(6,2),
		at DATETIME DEFAULT CURRENT_TIMESTAMP,
		ok BOOLEAN
	) WITH (file_version = '2.1', stable_row_ids = true, rows_per_fragment = 100)`)
	res := do(t, s, `INSERT INTO images (id, labels, embedding, doc, price, ok) VALUES
		(1, ['a', 'b'], '[1, 2.5]', '{"k": [1, null]}', 1.005, TRUE), (2, NULL, NULL, NULL, NULL, DEFAULT), (1+2, JSON_ARRAY('c'), '[0,0]', NULL, '7', 0)`)
	if res.AffectedRows != 3 || res.Info != "Records: 3  Duplicates: 0  Warnings: 0" {
		t.Errorf("%d rows, info %q", res.AffectedRows, res.Info)
	}
	expect(t, s, "SELECT id, name, labels, embedding, doc, price, ok, at IS NULL FROM images ORDER BY id",
		"1\tnone\t[\"a\",\"b\"]\t[1,2.5]\t{\"k\": [1, null]}\t1.01\t1\t0\n2\tnone\t\\N\t\\N\t\\N\t\\N\t\\N\t0\n3\tnone\t[\"c\"]\t[0,0]\t\\N\t7.00\t0\t0")
}

// store makes a small table: t(id, name, n).
func store(t *testing.T) (*Engine, *Session) {
	t.Helper()
	e, s := openWritable(t)
	do(t, s, "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10), n INT NOT NULL DEFAULT 0)",
		"INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, 30), (4, 'four', 40)")
	return e, s
}

func TestDeleteAndUpdate(t *testing.T) {
	_, s := store(t)
	if res := do(t, s, "DELETE FROM t WHERE n > 15 AND name IS NOT NULL ORDER BY n DESC LIMIT 1"); res.AffectedRows != 1 {
		t.Errorf("%d rows", res.AffectedRows)
	}
	expect(t, s, "SELECT id FROM t ORDER BY id", "1\n2\n3")
	res := do(t, s, "UPDATE t SET n = n + 1, name = CONCAT('n', n) WHERE id <= 2")
	if res.AffectedRows != 2 || res.Info != "Rows matched: 2  Changed: 2  Warnings: 0" {
		t.Errorf("%d rows, %q", res.AffectedRows, res.Info)
	}
	expect(t, s, "SELECT * FROM t ORDER BY id", "1\tn11\t11\n2\tn21\t21\n3\t\\N\t30")
	if res := do(t, s, "UPDATE t SET n = 11 WHERE id IN (1, 2)"); res.AffectedRows != 1 || res.Info != "Rows matched: 2  Changed: 1  Warnings: 0" {
		t.Errorf("%d rows, %q", res.AffectedRows, res.Info)
	}
	do(t, s, "CREATE TABLE k (id INT, v INT)", "INSERT INTO k VALUES (1, 100), (1, 100), (3, 300)")
	if res := do(t, s, "UPDATE t JOIN k ON k.id = t.id SET t.n = k.v"); res.AffectedRows != 2 {
		t.Errorf("%d rows", res.AffectedRows)
	}
	expect(t, s, "SELECT id, n FROM t ORDER BY id", "1\t100\n2\t11\n3\t300")
	if res := do(t, s, "DELETE t FROM t JOIN k ON k.id = t.id WHERE k.v > 200"); res.AffectedRows != 1 {
		t.Errorf("%d rows", res.AffectedRows)
	}
	if res := do(t, s, "DELETE FROM t WHERE id IN (SELECT id FROM k)"); res.AffectedRows != 1 {
		t.Errorf("%d rows", res.AffectedRows)
	}
	expect(t, s, "SELECT id FROM t", "2")
	do(t, s, "TRUNCATE TABLE t")
	expect(t, s, "SELECT count(*) FROM t", "0")
}

func TestInsertSelectAndCTAS(t *testing.T) {
	_, s := store(t)
	if res := do(t, s, "INSERT INTO t (id, n) SELECT id + 100, n * 2 FROM t WHERE n >= 30"); res.AffectedRows != 2 || res.Info != "Records: 2  Duplicates: 0  Warnings: 0" {
		t.Errorf("%d rows, %q", res.AffectedRows, res.Info)
	}
	expect(t, s, "SELECT * FROM t WHERE id > 100 ORDER BY id", "103\t\\N\t60\n104\t\\N\t80")
	if res := do(t, s, "CREATE TABLE u (extra INT DEFAULT 5, total DECIMAL(20,1)) AS SELECT name, sum(n) AS total FROM t GROUP BY name"); res.AffectedRows != 4 {
		t.Errorf("%d rows", res.AffectedRows)
	}
	expect(t, s, "SELECT * FROM u ORDER BY total", "\\N\tone\t10.0\n\\N\ttwo\t20.0\n\\N\tfour\t40.0\n\\N\t\\N\t170.0")
	do(t, s, "CREATE TABLE IF NOT EXISTS u AS SELECT 1 AS x")
	refused(t, s, 1050, "CREATE TABLE u (a INT)")
	do(t, s, "CREATE TABLE v LIKE t", "INSERT INTO v (id) VALUES (9)")
	expect(t, s, "SELECT * FROM v", "9\t\\N\t0")
	do(t, s, "INSERT INTO v SELECT 1000 % 7, upper('x'), (SELECT max(n) FROM t)", "INSERT INTO v (id, n) VALUES (7, (SELECT count(*) FROM t)), (8, DEFAULT)")
	expect(t, s, "SELECT id, n FROM v WHERE id IN (7, 8) ORDER BY id", "7\t6\n8\t0")
	for i, query := range []string{"AS SELECT n, count(*) AS c FROM t GROUP BY n", "SELECT n, count(*) AS c FROM t GROUP BY n", "AS (SELECT n, count(*) AS c FROM t GROUP BY n)",
		"AS WITH q AS (SELECT n FROM t) SELECT n, count(*) AS c FROM q GROUP BY n", "WITH (file_version = '2.1') AS SELECT n, 1 AS c FROM t UNION SELECT 1000, 1"} {
		if res := do(t, s, fmt.Sprintf("CREATE TABLE q%d %s", i, query)); res.AffectedRows < 6 {
			t.Errorf("%s: %d rows", query, res.AffectedRows)
		}
		do(t, s, fmt.Sprintf("DROP TABLE q%d", i))
	}
	do(t, s, "DROP TABLE v", "DROP TABLE IF EXISTS v")
	refused(t, s, 1051, "DROP TABLE v")
	refused(t, s, 1146, "INSERT INTO v VALUES (1)")
	expect(t, s, "SHOW TABLES", "t\nu")
}

func TestTransactions(t *testing.T) {
	e, s := store(t)
	other := inLake(t, e)
	do(t, s, "BEGIN", "INSERT INTO t VALUES (5, 'five', 50)", "UPDATE t SET n = n + 1 WHERE id >= 4", "DELETE FROM t WHERE id = 1")
	expect(t, s, "SELECT id, n FROM t ORDER BY id", "2\t20\n3\t30\n4\t41\n5\t51")
	expect(t, other, "SELECT id, n FROM t ORDER BY id", "1\t10\n2\t20\n3\t30\n4\t40")
	do(t, s, "ROLLBACK")
	expect(t, s, "SELECT count(*) FROM t", "4")
	do(t, s, "SET autocommit = 0", "INSERT INTO t VALUES (6, 'six', 60)")
	expect(t, other, "SELECT count(*) FROM t", "4")
	do(t, s, "COMMIT")
	expect(t, other, "SELECT count(*) FROM t", "5")

	do(t, s, "UPDATE t SET n = 1 WHERE id = 1")
	do(t, other, "UPDATE t SET n = 2 WHERE id = 1")
	refused(t, s, 1213, "COMMIT")
	expect(t, s, "SELECT n FROM t WHERE id = 1", "2")
	do(t, s, "UPDATE t SET n = 3 WHERE id = 1", "COMMIT")
	expect(t, other, "SELECT n FROM t WHERE id = 1", "3")

	do(t, s, "CREATE TABLE u (a INT)", "BEGIN", "INSERT INTO u VALUES (1)")
	refused(t, s, 1235, "INSERT INTO t VALUES (7, 'x', 1)")
	do(t, s, "INSERT INTO u VALUES (2)", "CREATE TABLE w (a INT)") // commits
	expect(t, other, "SELECT count(*) FROM u", "2")
	refused(t, s, 1264, "INSERT INTO t VALUES (7, 'x', 1), (8, 'y', 99999999999)")
	expect(t, s, "SELECT count(*) FROM t WHERE id = 7", "0")
}

func TestDuplicateKeys(t *testing.T) {
	_, s := store(t)
	if res := do(t, s, "REPLACE INTO t VALUES (1, 'uno', 11), (9, 'nine', 90), (9, 'nueve', 91)"); res.AffectedRows != 5 || res.Info != "Records: 3  Duplicates: 2  Warnings: 0" {
		t.Errorf("%d rows, %q", res.AffectedRows, res.Info)
	}
	expect(t, s, "SELECT * FROM t WHERE id IN (1, 9) ORDER BY id", "1\tuno\t11\n9\tnueve\t91")
	if res := do(t, s, "INSERT IGNORE INTO t VALUES (1, 'x', 0), (10, 'ten', 100)"); res.AffectedRows != 1 || len(res.Warnings()) != 1 || res.Warnings()[0].Code != 1062 {
		t.Errorf("%d rows, %v", res.AffectedRows, res.Warnings())
	}
	res := do(t, s, "INSERT INTO t (id, n) VALUES (1, 5), (11, 6), (11, 7), (2, 20) AS new ON DUPLICATE KEY UPDATE n = t.n + new.n, name = concat(t.id, '-', t.n)")
	if res.AffectedRows != 2+1+2+2 {
		t.Errorf("%d rows", res.AffectedRows)
	}
	expect(t, s, "SELECT * FROM t WHERE id IN (1, 2, 11) ORDER BY id", "1\t1-16\t16\n2\t2-40\t40\n11\t11-13\t13")
	do(t, s, "INSERT INTO t (id, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE n = VALUES(n) * 3")
	expect(t, s, "SELECT n FROM t WHERE id = 1", "3")
	do(t, s, "INSERT INTO t (id, n) SELECT id, n + 1 FROM (SELECT 1 AS id, 99 AS n) q ON DUPLICATE KEY UPDATE n = VALUES(n) - 1")
	expect(t, s, "SELECT n FROM t WHERE id = 1", "99")
}

func TestValuesInErrors(t *testing.T) {
	_, s := store(t)
	do(t, s, "CREATE TABLE w (id TINYINT NOT NULL, u INT UNSIGNED, s CHAR(3), d DATE, dt DATETIME(3), ti TIME, dec5 DECIMAL(5,2), j JSON, v VECTOR(3), l LIST<INT>, b VARBINARY(2), y YEAR, f FLOAT, m MEDIUMINT, tags MAP<VARCHAR, INT>, st STRUCT<a INT, b VARCHAR>)")
	for _, c := range []struct {
		code   int
		values string
	}{
		{1264, "id) VALUES (128"}, {1264, "id) VALUES ('300'"}, {1366, "id) VALUES ('abc'"}, {1265, "id) VALUES ('1abc'"}, {1048, "id) VALUES (NULL"}, {1364, "u) VALUES (1"},
		{1136, "id) VALUES (1, 2"}, {1136, "id, u) VALUES (1"}, {1054, "id, nope) VALUES (1, 2"}, {1110, "id, id) VALUES (1, 2"}, {1264, "id, u) VALUES (1, -1"},
		{1406, "id, s) VALUES (1, 'abcd'"}, {1292, "id, d) VALUES (1, '2026-02-30'"}, {1292, "id, dt) VALUES (1, 'yesterday'"}, {1292, "id, ti) VALUES (1, '25:00:00'"},
		{1264, "id, dec5) VALUES (1, 1000"}, {3140, "id, j) VALUES (1, '{'"}, {1366, "id, v) VALUES (1, '[1,2]'"}, {1366, "id, v) VALUES (1, '[1,2,null]'"}, {3140, "id, v) VALUES (1, 'x'"},
		{1366, "id, v) VALUES (1, 5"}, {1366, "id, l) VALUES (1, JSON_ARRAY('x')"}, {1264, "id, l) VALUES (1, '[3000000000]'"}, {1406, "id, b) VALUES (1, 'abc'"}, {1264, "id, y) VALUES (1, 9999"},
		{1264, "id, f) VALUES (1, 1e39"}, {1264, "id, m) VALUES (1, 9000000"}, {1366, "id, st) VALUES (1, '{\"c\": 1}'"}, {1366, "id, tags) VALUES (1, '[1]'"},
	} {
		refused(t, s, c.code, "INSERT INTO w ("+c.values+")")
	}
	refused(t, s, 1366, "INSERT INTO w (id, v) VALUES (1, ?)", []byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0})
	expect(t, s, "SELECT count(*) FROM w", "0")
	do(t, s, `INSERT INTO w VALUES (1, 4294967295, 'abc   ', '2026-11-30', '2026-11-30 12:00:00.1235', '23:59:59', 999.994, '[1]', '[1,2,3]', '[1,null]', 'ab', 2026, 1.5, -8388608, '{"a": 1}', '{"b": "x"}')`)
	expect(t, s, "SELECT * FROM w", "1\t4294967295\tabc\t2026-11-30\t2026-11-30T12:00:00.124\t23:59:59.000000\t999.99\t[1]\t[1,2,3]\t[1,null]\tYWI=\t2026\t1.5\t-8388608\t[{\"key\":\"a\",\"value\":1}]\t{\"a\":null,\"b\":\"x\"}")
	do(t, s, "SET sql_mode = ''")
	if res := do(t, s, "INSERT INTO w (id, s) VALUES (1000, 'abcd'), ('7x', NULL)"); len(res.Warnings()) != 3 {
		t.Errorf("%v", res.Warnings())
	}
	expect(t, s, "SELECT id, s FROM w WHERE id > 1 ORDER BY id", "7\t\\N\n127\tabc")
	refused(t, s, 1067, "CREATE TABLE x (a INT DEFAULT 'x')")
	refused(t, s, 1067, "CREATE TABLE x (a INT NOT NULL DEFAULT NULL)")
	for _, c := range []string{"a INT AUTO_INCREMENT PRIMARY KEY", "a ENUM('x')", "a INT UNIQUE", "a INT, CHECK (a > 0)", "a INT, FOREIGN KEY (a) REFERENCES t (id)", "a INT AS (1)", "a BIT(3)"} {
		refused(t, s, 1235, "CREATE TABLE x ("+c+")")
	}
	refused(t, s, 1060, "CREATE TABLE x (a INT, A INT)")
	refused(t, s, 1072, "CREATE TABLE x (a INT, PRIMARY KEY (b))")
	refused(t, s, 1210, "CREATE TABLE x (a INT) WITH (what = 1)")
	refused(t, s, 1210, "CREATE TABLE x (a VECTOR(0))")
	refused(t, s, 1235, "CREATE DATABASE d")
	refused(t, s, 1235, "CREATE TEMPORARY TABLE x (a INT)")
	expect(t, s, "SHOW TABLES", "t\nw")
}

func TestPreparedWrites(t *testing.T) {
	_, s := store(t)
	ctx := context.Background()
	for _, c := range []struct {
		text string
		args []any
		want uint64
	}{
		{"INSERT INTO t VALUES (?, ?, ?), (?, ?, DEFAULT)", []any{5, "five", 50, int64(6), nil}, 2},
		{"INSERT INTO t VALUES (?, ?, ?), (?, ?, DEFAULT)", []any{7, "x", 70, int64(8), nil}, 2},
		{"UPDATE t SET n = n + ?, name = ? WHERE id = ?", []any{1, "new", 5}, 1},
		{"DELETE FROM t WHERE id IN (?, ?)", []any{6, 8}, 2},
		{"REPLACE INTO t (id, n) VALUES (?, ?)", []any{7, 71}, 2},
		{"INSERT INTO t (id, n) SELECT id + ?, n FROM t WHERE n > ?", []any{100, 60}, 1},
	} {
		res, err := s.Query(ctx, c.text, c.args...)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if res.AffectedRows != c.want {
			t.Errorf("%s: %d rows, want %d", c.text, res.AffectedRows, c.want)
		}
		if err := res.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, s, "SELECT * FROM t WHERE id > 4 ORDER BY id", "5\tnew\t51\n7\t\\N\t71\n107\t\\N\t71")
	do(t, s, "PREPARE p FROM 'INSERT INTO t (id, name) VALUES (?, ?)'", "SET @a = 200, @b = 'text'")
	if res := do(t, s, "EXECUTE p USING @a, @b"); res.AffectedRows != 1 {
		t.Errorf("%d rows", res.AffectedRows)
	}
	expect(t, s, "SELECT * FROM t WHERE id = 200", "200\ttext\t0")
	expect(t, s, "EXPLAIN DELETE FROM t WHERE id = 200", "Delete: table=lake.t@v9\n└─ Project: columns=[_rowaddr]\n   └─ Scan: table=lake.t@v9, columns=[id], filter=(id = 200), row_addr=yes")
}

func TestIndexes(t *testing.T) {
	_, s := openWritable(t)
	res := do(t, s, "CREATE TABLE t (id BIGINT, labels LIST<VARCHAR>, v VECTOR(2), kind VARCHAR(3), INDEX by_label (labels) USING LABEL_LIST, VECTOR INDEX nearest (v) USING IVF_FLAT WITH (metric = 'l2', num_partitions = 1))")
	if len(res.Warnings()) != 1 {
		t.Errorf("%v", res.Warnings())
	}
	do(t, s, "INSERT INTO t VALUES (1, '[\"a\"]', '[0,0]', 'x'), (2, '[\"b\"]', '[1,1]', 'y')", "CREATE VECTOR INDEX nearest ON t (v) USING IVF_FLAT WITH (metric = 'l2', num_partitions = 1)", "CREATE INDEX ids ON t (id)", "CREATE INDEX kinds USING BITMAP ON t (kind)", "ALTER TABLE t ADD INDEX z (id) USING ZONEMAP WITH (rows_per_zone = 100)")
	expect(t, s, "SELECT index_name, kind FROM lakesql.indices ORDER BY 1", "by_label\tLABEL_LIST\nids\tBTREE\nkinds\tBITMAP\nnearest\tIVF_FLAT\nz\tZONEMAP")
	refused(t, s, 1061, "CREATE INDEX ids ON t (id)")
	do(t, s, "CREATE INDEX IF NOT EXISTS ids ON t (id)", "DROP INDEX ids ON t", "ALTER TABLE t DROP INDEX z", "DROP INDEX IF EXISTS ids ON t")
	refused(t, s, 1091, "DROP INDEX ids ON t")
	refused(t, s, 1072, "CREATE INDEX i ON t (nope)")
	refused(t, s, 1210, "CREATE VECTOR INDEX i ON t (id)")
	refused(t, s, 1235, "CREATE INDEX i ON t (id, kind)")
	refused(t, s, 1235, "CREATE INDEX i ON t (id) USING IVF_PQ")
	refused(t, s, 1235, "CREATE UNIQUE INDEX i ON t (id)")
	refused(t, s, 1146, "CREATE INDEX i ON u (id)")
	expect(t, s, "SELECT id FROM t WHERE array_has(labels, 'b')", "2")
}

func TestAlterTable(t *testing.T) {
	_, s := store(t)
	do(t, s, "ALTER TABLE t ADD COLUMN labels LIST<VARCHAR>", "ALTER TABLE t ADD COLUMN twice BIGINT DEFAULT (n * 2), ADD COLUMN flag BOOLEAN NOT NULL, ADD COLUMN city VARCHAR(8) NOT NULL DEFAULT 'Bonn' COMMENT 'where'")
	expect(t, s, "SELECT id, labels, twice, flag, city FROM t ORDER BY id LIMIT 2", "1\t\\N\t20\t0\tBonn\n2\t\\N\t40\t0\tBonn")
	do(t, s, "INSERT INTO t (id, flag) VALUES (5, 1)")
	expect(t, s, "SELECT twice, city FROM t WHERE id = 5", "\\N\tBonn")
	refused(t, s, 1060, "ALTER TABLE t ADD COLUMN N INT")
	refused(t, s, 1054, "ALTER TABLE t MODIFY COLUMN nope INT")
	refused(t, s, 1091, "ALTER TABLE t DROP COLUMN nope")
	refused(t, s, 1091, "ALTER TABLE t ADD COLUMN z INT, DROP COLUMN nope")
	refused(t, s, 1067, "ALTER TABLE t ADD COLUMN z INT DEFAULT 'x'")
	refused(t, s, 1406, "ALTER TABLE t MODIFY COLUMN city VARCHAR(3) NOT NULL")
	refused(t, s, 1048, "ALTER TABLE t MODIFY COLUMN name VARCHAR(10) NOT NULL")
	do(t, s, "ALTER TABLE t MODIFY COLUMN n VARCHAR(20)", "ALTER TABLE t CHANGE COLUMN n amount DECIMAL(8,2) DEFAULT 1.5", "ALTER TABLE t RENAME COLUMN twice TO double_n", "ALTER TABLE t DROP COLUMN flag, DROP COLUMN labels")
	do(t, s, "ALTER TABLE t ALTER COLUMN city SET DEFAULT 'Ulm'", "INSERT INTO t (id) VALUES (6)")
	expect(t, s, "SELECT * FROM t WHERE id IN (2, 6) ORDER BY id", "2\ttwo\t20.00\t40\tBonn\n6\t\\N\t1.50\t\\N\tUlm")
	do(t, s, "ALTER TABLE t DROP PRIMARY KEY", "INSERT INTO t (id) VALUES (6) ON DUPLICATE KEY UPDATE amount = 0")
	expect(t, s, "SELECT count(*) FROM t WHERE id = 6", "2")
	do(t, s, "ALTER TABLE t ADD PRIMARY KEY (id, city)", "CREATE INDEX i ON t (double_n)")
	refused(t, s, 1210, "ALTER TABLE t DROP COLUMN double_n")
	refused(t, s, 1210, "ALTER TABLE t MODIFY COLUMN double_n VARCHAR(5)")
	do(t, s, "ALTER TABLE t RENAME TO u", "RENAME TABLE u TO v")
	expect(t, s, "SHOW CREATE TABLE v", "v\tCREATE TABLE `v` (\n  `id` int NOT NULL,\n  `name` varchar(10),\n  `amount` decimal(8,2) DEFAULT '1.5',\n  `double_n` bigint,\n  `city` varchar(8) NOT NULL DEFAULT 'Ulm' COMMENT 'where',\n  PRIMARY KEY (`id`,`city`),\n  KEY `i` (`double_n`) COMMENT 'segments=1'\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin")
	expect(t, s, "OPTIMIZE TABLE v", "lake.v\toptimize\tnote\t4 fragments became 1, 7 rows were rewritten\nlake.v\toptimize\tstatus\tOK")
	expect(t, s, "SELECT id FROM v WHERE double_n = 60", "3")
}

// TestShownTablesCanBeMade: what SHOW CREATE TABLE prints makes the same table.
func TestShownTablesCanBeMade(t *testing.T) {
	_, s := openWritable(t)
	do(t, s, "CREATE TABLE a (id INT NOT NULL PRIMARY KEY COMMENT 'key', l LIST<LIST<INT>> COMMENT 'deep', v VECTOR(3), s STRUCT<x INT, y VARCHAR>, m MAP<VARCHAR, DOUBLE>, c CHAR(3) NOT NULL DEFAULT 'x', d DATETIME(3), j JSON, b VARBINARY(4), u MEDIUMINT UNSIGNED)")
	shown := func(name string) string {
		lines, _ := run(t, s, "SHOW CREATE TABLE "+name)
		_, text, _ := strings.Cut(strings.Join(lines, "\n"), "\t")
		return text
	}
	first := shown("a")
	do(t, s, strings.Replace(first, "`a`", "`b`", 1))
	if second := strings.Replace(shown("b"), "`b`", "`a`", 1); second != first {
		t.Errorf("got\n%s\nwant\n%s", second, first)
	}
	do(t, s, "INSERT INTO b (id, l, v, s) VALUES (1, '[[1],[2]]', '[1,2,3]', '{\"x\": 1}')", "CREATE VIEW w AS SELECT id FROM b")
	expect(t, s, "SELECT l, v, s FROM b", "[[1],[2]]\t[1,2,3]\t{\"x\":1,\"y\":null}")
	refused(t, s, 1366, "INSERT INTO b (id, v) VALUES (1, '[1,2]')")
	refused(t, s, 1235, "INSERT INTO w VALUES (1)")
}

func TestProcedures(t *testing.T) {
	_, s := store(t)
	do(t, s, "CALL lakesql.create_tag('t', 'first')", "DELETE FROM t WHERE id > 1", "CALL lakesql.create_tag('lake.t', 'none', 1)", "CREATE INDEX i ON t (id)", "INSERT INTO t (id) VALUES (9)")
	expect(t, s, "SELECT count(*) FROM t AS OF 'first'", "4")
	expect(t, s, "SELECT count(*) FROM t AS OF 'none'", "0")
	expect(t, s, "CALL lakesql.optimize_indices('t')", "i\tBTREE\textended over 1 fragments, 1 segments replaced")
	expect(t, s, "CALL lakesql.compact('t')", "2\t1\t2")
	refused(t, s, 1050, "CALL lakesql.create_tag('t', 'first')")
	if lines, _ := run(t, s, "CALL lakesql.cleanup('t', 0, 1)"); len(lines) != 1 || !strings.HasPrefix(lines[0], "5\t2\t1\t1\t") {
		t.Errorf("clean-up: %q", lines)
	}
	do(t, s, "CALL lakesql.restore('t', 'first')", "CALL lakesql.delete_tag('t', 'none')", "CALL lakesql.update_tag('t', 'first', '1')", "CALL lakesql.create_branch('t', 'side')", "CALL lakesql.delete_branch('t', 'side')")
	expect(t, s, "SELECT count(*) FROM t", "4")
	refused(t, s, 1305, "CALL lakesql.nope('t')")
	refused(t, s, 1210, "CALL lakesql.restore('t')")
	refused(t, s, 1146, "CALL lakesql.restore('u', 1)")
	refused(t, s, 1210, "CALL lakesql.cleanup('t', 'soon')")
}

func TestReadOnlyLake(t *testing.T) {
	dir := t.TempDir()
	_, s := openLance(t, dir, lance.Options{})
	do(t, s, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE INDEX i ON t (id)")
	_, r := openLance(t, dir, lance.Options{ReadOnly: true})
	for _, text := range []string{"INSERT INTO t VALUES (2)", "REPLACE INTO t VALUES (1)", "UPDATE t SET id = 2", "DELETE FROM t", "TRUNCATE TABLE t", "DROP TABLE t", "CREATE TABLE u (a INT)",
		"CREATE TABLE u AS SELECT 1 AS a", "ALTER TABLE t ADD COLUMN b INT", "CREATE INDEX j ON t (id)", "DROP INDEX i ON t", "OPTIMIZE TABLE t", "RENAME TABLE t TO u", "CALL lakesql.restore('t', 1)"} {
		refused(t, r, 1290, text)
	}
	expect(t, r, "SELECT * FROM t", "1")
}

// TestFailedStatementsInTransactions: what a statement could not do leaves the transaction as it was.
func TestFailedStatementsInTransactions(t *testing.T) {
	_, s := store(t)
	do(t, s, "CREATE TABLE u (a TINYINT)", "BEGIN")
	refused(t, s, 1264, "INSERT INTO t (id, n) VALUES (5, 1), (6, 99999999999)")
	do(t, s, "INSERT INTO u VALUES (1)")
	refused(t, s, 1264, "INSERT INTO u SELECT 100 * id FROM t ORDER BY id")
	refused(t, s, 1264, "UPDATE u SET a = a + 1000")
	do(t, s, "INSERT INTO u VALUES (2)", "COMMIT")
	expect(t, s, "SELECT a FROM u ORDER BY a", "1\n2")
	expect(t, s, "SELECT count(*) FROM t", "4")
}

// TestConcurrentWriters: appends do not meet, updates of one row are run again.
func TestConcurrentWriters(t *testing.T) {
	e, s := store(t)
	group, ctx := errgroup.WithContext(context.Background())
	for w := range 4 {
		own := inLake(t, e)
		group.Go(func() error {
			for i := range 5 {
				for _, text := range []string{fmt.Sprintf("INSERT INTO t (id, n) VALUES (%d, 1)", 100*(w+1)+i), "UPDATE t SET n = n + 1 WHERE id = 1"} {
					for {
						res, err := own.Query(ctx, text)
						if err == nil {
							if err := res.Close(); err != nil {
								return err
							}
							break
						}
						if mysqlerr.Convert(err).Num != 1213 {
							return err
						}
					}
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "SELECT n FROM t WHERE id = 1", "30")
	expect(t, s, "SELECT count(*) FROM t", "24")
}

// TestConcurrentUpserts: a key that two writers add at the same time is there once, and counts what both did. Columns that come meanwhile are in nobody's way.
func TestConcurrentUpserts(t *testing.T) {
	e, s := openWritable(t)
	do(t, s, "CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, n INT)")
	group, ctx := errgroup.WithContext(context.Background())
	for w := range 4 {
		own := inLake(t, e)
		group.Go(func() error {
			for i := range 6 {
				for _, text := range []string{
					fmt.Sprintf("INSERT INTO t (k, n) VALUES ('k%d', 1) ON DUPLICATE KEY UPDATE n = n + 1", i), fmt.Sprintf("INSERT IGNORE INTO t (k, n) VALUES ('i%d', %d)", i, w),
					fmt.Sprintf("REPLACE INTO t (k, n) VALUES ('r%d', %d)", i, w), fmt.Sprintf("ALTER TABLE t ADD COLUMN c%d_%d INT", w, i),
				} {
					res, err := own.Query(ctx, text)
					if err != nil {
						return fmt.Errorf("%s: %w", text, err)
					}
					if err := res.Close(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "SELECT count(*), count(DISTINCT k) FROM t", "18\t18")
	expect(t, s, "SELECT min(n), max(n) FROM t WHERE k LIKE 'k%'", "4\t4")
}

// TestKeysOfTransactions: a key that was looked for and came meanwhile ends the transaction, another one does not.
func TestKeysOfTransactions(t *testing.T) {
	e, s := openWritable(t)
	do(t, s, "CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, n INT)", "INSERT INTO t VALUES ('a', 1)", "BEGIN", "INSERT INTO t VALUES ('b', 2) ON DUPLICATE KEY UPDATE n = 9", "INSERT IGNORE INTO t VALUES ('a', 7)")
	other := inLake(t, e)
	do(t, other, "INSERT INTO t VALUES ('c', 3), ('a', 5)")
	do(t, s, "COMMIT", "BEGIN", "REPLACE INTO t VALUES ('d', 4)")
	do(t, other, "INSERT INTO t VALUES ('d', 5)")
	refused(t, s, 1213, "COMMIT")
	expect(t, s, "SELECT k, n FROM t ORDER BY k, n", "a\t1\na\t5\nb\t2\nc\t3\nd\t5")
}

// TestWritesStopInTime: a statement that asks for a limit of time ends there and leaves nothing.
func TestWritesStopInTime(t *testing.T) {
	_, s := store(t)
	refused(t, s, 3024, "INSERT INTO t (id) SELECT /*+ MAX_EXECUTION_TIME(20) */ a.id FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l, t m")
	expect(t, s, "SELECT count(*) FROM t", "4")
	do(t, s, "INSERT INTO t (id) VALUES (5)")
}
