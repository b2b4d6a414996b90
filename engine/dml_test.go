package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/source/lance"
)

// pair makes t(id, n, name) and u(id, v), without keys.
func pair(t *testing.T) *Session {
	t.Helper()
	_, s := openWritable(t)
	do(t, s, "CREATE TABLE t (id INT, n INT NOT NULL, name VARCHAR(3))", "INSERT INTO t VALUES (1,10,'a'), (2,20,'b'), (3,30,'c'), (4,40,'d')",
		"CREATE TABLE u (id INT, v INT)", "INSERT INTO u VALUES (1,100), (2,200), (2,201), (9,NULL)")
	return s
}

func TestFormsOfDelete(t *testing.T) {
	for _, c := range []struct {
		text     string
		affected uint64
		left     string // ids of t
	}{
		{"DELETE FROM t AS z WHERE z.id = 4", 1, "1,2,3"},
		{"DELETE FROM t z WHERE z.id > 1 ORDER BY z.id DESC LIMIT 2", 2, "1,2"},
		{"DELETE FROM lake.t `AS` WHERE `AS`.id IN (SELECT id FROM u WHERE u.id = `AS`.id)", 2, "3,4"},
		{"DELETE LOW_PRIORITY QUICK IGNORE FROM t", 4, ""},
		{"DELETE FROM t USING t JOIN u ON u.id = t.id", 2, "3,4"},
		{"DELETE FROM z USING t AS z, u WHERE u.id = z.id AND u.v > 200", 1, "1,3,4"},
		{"DELETE t.* FROM t LEFT JOIN u ON u.id = t.id WHERE u.id IS NULL", 2, "1,2"},
		{"DELETE b FROM t AS a JOIN t AS b ON a.id = b.id - 1 WHERE a.name = 'b'", 1, "1,2,4"},
		{"WITH w AS (SELECT id FROM u WHERE v = 100) DELETE FROM t WHERE id IN (SELECT id FROM w)", 1, "2,3,4"},
		{"DELETE u FROM t LEFT JOIN u ON u.id = t.id WHERE t.id = 3", 0, "1,2,3,4"},
	} {
		t.Run(c.text, func(t *testing.T) {
			s := pair(t)
			if res := do(t, s, c.text); res.AffectedRows != c.affected {
				t.Errorf("%d rows, want %d", res.AffectedRows, c.affected)
			}
			lines, _ := run(t, s, "SELECT id FROM t ORDER BY id")
			if got := strings.Join(lines, ","); got != c.left {
				t.Errorf("left are %s, want %s", got, c.left)
			}
		})
	}
	s := pair(t)
	refused(t, s, 1235, "DELETE t, u FROM t JOIN u ON u.id = t.id")
	do(t, s, "SET TRANSACTION READ ONLY")
	refused(t, s, 1792, "WITH w AS (SELECT 1 AS a) DELETE FROM t WHERE id IN (SELECT a FROM w)")
	do(t, s, "BEGIN", "COMMIT") // ends what SET TRANSACTION asked for
	lines, _ := run(t, s, "EXPLAIN DELETE FROM t AS z WHERE z.id = 4")
	if !strings.Contains(strings.Join(lines, "\n"), "Delete: table=lake.t") {
		t.Error(lines)
	}
	refused(t, s, 1235, "EXPLAIN ANALYZE DELETE FROM t")
	refused(t, s, 1235, "EXPLAIN ANALYZE INSERT INTO t SELECT * FROM t")
	expect(t, s, "SELECT count(*) FROM t", "4")
}

func TestUpdatesOverJoinsWithoutKeys(t *testing.T) {
	for _, c := range []struct{ text, info, rows string }{
		{"UPDATE t JOIN u ON u.id = t.id SET t.n = u.v + t.n", "Rows matched: 2  Changed: 2  Warnings: 0", "110,220,30,40"},
		{"UPDATE t LEFT JOIN u ON u.id = t.id SET t.n = coalesce(u.v, 0)", "Rows matched: 4  Changed: 4  Warnings: 0", "100,200,0,0"},
		{"UPDATE t RIGHT JOIN u ON u.id = t.id SET t.n = u.v", "Rows matched: 2  Changed: 2  Warnings: 0", "100,200,30,40"},
		{"UPDATE t AS a JOIN t AS b ON a.id = b.id - 1 SET b.n = a.n", "Rows matched: 3  Changed: 3  Warnings: 0", "10,10,20,30"},
		{"UPDATE t CROSS JOIN (SELECT max(v) AS m FROM u) x SET t.n = x.m WHERE t.id = 1", "Rows matched: 1  Changed: 1  Warnings: 0", "201,20,30,40"},
		{"WITH w AS (SELECT id, v FROM u WHERE v = 100) UPDATE t JOIN w ON w.id = t.id SET t.n = w.v", "Rows matched: 1  Changed: 1  Warnings: 0", "100,20,30,40"},
		{"UPDATE t, u SET t.n = 10 WHERE u.id = t.id AND t.id = 1", "Rows matched: 1  Changed: 0  Warnings: 0", "10,20,30,40"},
	} {
		s := pair(t)
		if res := do(t, s, c.text); res.Info != c.info {
			t.Errorf("%s: %s", c.text, res.Info)
		}
		lines, _ := run(t, s, "SELECT n FROM t ORDER BY id")
		if got := strings.Join(lines, ","); got != c.rows {
			t.Errorf("%s: %s, want %s", c.text, got, c.rows)
		}
	}
	s := pair(t)
	refused(t, s, 1235, "UPDATE t JOIN u ON u.id = t.id SET t.n = 1, u.v = 2")
	refused(t, s, 1048, "UPDATE t JOIN u ON u.id <> t.id AND u.v IS NULL SET t.n = u.v")
	expect(t, s, "SHOW CREATE TABLE u", "u\tCREATE TABLE `u` (\n  `id` int,\n  `v` int\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin")
}

func TestSavepoints(t *testing.T) {
	dir := t.TempDir()
	_, s := openLance(t, dir, lance.Options{})
	do(t, s, "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)", "CREATE TABLE u (a INT)")
	ids := func(want string) {
		t.Helper()
		lines, _ := run(t, s, "SELECT concat(id, ':', n) FROM t ORDER BY id")
		if got := strings.Join(lines, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	do(t, s, "BEGIN", "SAVEPOINT nothing", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (4, 40)", "SAVEPOINT a", "UPDATE t SET n = n + 1", "DELETE FROM t WHERE id = 4", "SAVEPOINT b", "REPLACE INTO t VALUES (2, 0), (5, 50)")
	ids("2:0 3:31 5:50")
	do(t, s, "ROLLBACK TO b")
	ids("2:21 3:31")
	do(t, s, "INSERT INTO t VALUES (6, 60)", "ROLLBACK TO SAVEPOINT a")
	ids("2:20 3:30 4:40")
	refused(t, s, 1305, "ROLLBACK TO b")
	do(t, s, "UPDATE t SET n = 0 WHERE id >= 3", "ROLLBACK TO a") // a serves again
	ids("2:20 3:30 4:40")
	refused(t, s, 1235, "INSERT INTO u VALUES (1)")
	refused(t, s, 1264, "INSERT INTO t VALUES (7, 70), (8, 99999999999)") // the statement alone is undone
	refused(t, s, 1264, "INSERT INTO t VALUES (2, 1), (3, 2147483647) ON DUPLICATE KEY UPDATE n = n + VALUES(n) + 1")
	ids("2:20 3:30 4:40")
	do(t, s, "ROLLBACK TO nothing")
	ids("1:10 2:20 3:30")
	do(t, s, "INSERT INTO u VALUES (1)", "ROLLBACK TO nothing", "INSERT INTO t VALUES (9, 90)", "SAVEPOINT c", "DELETE FROM t", "SAVEPOINT c", "RELEASE SAVEPOINT c", "COMMIT")
	ids("")
	expect(t, s, "SELECT count(*) FROM u", "0")

	// A statement that changed nothing holds no table; one that failed does not either.
	do(t, s, "BEGIN", "UPDATE t SET n = 0 WHERE id = 77")
	refused(t, s, 1048, "INSERT INTO t VALUES (NULL, 1)")
	do(t, s, "INSERT INTO u VALUES (5)", "COMMIT")
	expect(t, s, "SELECT a FROM u", "5")
	versions := "SELECT count(*) FROM t"
	do(t, s, "BEGIN", "INSERT INTO t VALUES (1, 1)", "SAVEPOINT a", "INSERT INTO t VALUES (2, 2)", "ROLLBACK TO a", "COMMIT")
	expect(t, s, versions, "1")
	files, err := filepath.Glob(filepath.Join(dir, "t.lance", "data", "*"))
	if err != nil || len(files) != 2 { // of the first INSERT, which older versions need, and of the last
		t.Errorf("%d data files, %v", len(files), err)
	}
}

func TestChainedTransactions(t *testing.T) {
	e, s := store(t)
	other := inLake(t, e)
	do(t, s, "START TRANSACTION", "DELETE FROM t WHERE id = 1", "COMMIT AND CHAIN", "DELETE FROM t WHERE id = 2")
	expect(t, other, "SELECT count(*) FROM t", "3")
	do(t, s, "ROLLBACK WORK AND CHAIN NO RELEASE", "DELETE FROM t WHERE id = 3")
	expect(t, other, "SELECT count(*) FROM t", "3")
	do(t, s, "COMMIT AND NO CHAIN", "DELETE FROM t WHERE id = 4")
	expect(t, other, "SELECT id FROM t", "2")
	do(t, s, "START TRANSACTION READ ONLY", "COMMIT AND CHAIN")
	refused(t, s, 1792, "DELETE FROM t")
	do(t, s, "COMMIT")
	if res := do(t, s, "ROLLBACK RELEASE"); !res.Release {
		t.Error("RELEASE was not heard")
	}
	refused(t, s, 1064, "COMMIT AND CHAIN RELEASE")
}

func TestDiagnostics(t *testing.T) {
	_, s := store(t)
	do(t, s, "INSERT IGNORE INTO t (id, name, n) VALUES (5, 'much too long', 'x'), (6, NULL, 99999999999)")
	all := "Warning\t1406\tData too long for column 'name' at row 1\nWarning\t1366\tIncorrect integer value: 'x' for column 'n' at row 1\nWarning\t1264\tOut of range value for column 'n' at row 2"
	expect(t, s, "SHOW WARNINGS", all)
	expect(t, s, "SELECT @@warning_count, @@session.error_count", "3\t0")
	expect(t, s, "SHOW COUNT(*) WARNINGS", "3")
	expect(t, s, "show warnings limit 1, 1", strings.Split(all, "\n")[1])
	expect(t, s, "SHOW WARNINGS LIMIT 1 OFFSET 2", strings.Split(all, "\n")[2])
	expect(t, s, "SHOW ERRORS", "")
	refused(t, s, 1054, "SELECT nope FROM t")
	expect(t, s, "SHOW COUNT(*) ERRORS", "1")
	expect(t, s, "SELECT @@error_count", "1")
	lines, _ := run(t, s, "SHOW ERRORS LIMIT 5")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "Error\t1054\t") {
		t.Error(lines)
	}
	refused(t, s, 1048, "INSERT INTO t VALUES (NULL, 'x', 1)")
	lines, _ = run(t, s, "SHOW WARNINGS")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "Error\t1048\t") {
		t.Error(lines)
	}
	refused(t, s, 1064, "SELEC 1")
	expect(t, s, "SHOW COUNT(*) ERRORS", "1")
	expect(t, s, "SELECT 1", "1")
	expect(t, s, "SHOW WARNINGS", "")
	refused(t, s, 1064, "SHOW WARNINGS LIMIT x")
	expect(t, s, "SHOW COLLATION WHERE `Default` = 'Yes' AND Charset = 'utf8mb4'", "utf8mb4_0900_bin\tutf8mb4\t309\tYes\tYes\t1\tNO PAD")
	_, res := run(t, s, "SHOW COLLATION LIKE 'utf8mb4_0900_ai%'")
	if got := fmt.Sprint(names(res)); got != "[Collation Charset Id Default Compiled Sortlen Pad_attribute]" {
		t.Error(got)
	}
}

// TestAffectedRows: what every kind of statement says it did, and ROW_COUNT() behind it.
func TestAffectedRows(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rows.csv")
	if err := os.WriteFile(file, []byte("1\tx\t1\n7\ty\tz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, s := store(t)
	do(t, s, "SET GLOBAL local_infile = 1")
	for _, c := range []struct {
		text     string
		affected uint64
		info     string
	}{
		{"UPDATE t SET n = 10 WHERE id <= 3", 2, "Rows matched: 3  Changed: 2  Warnings: 0"},
		{"UPDATE t SET n = n", 0, "Rows matched: 4  Changed: 0  Warnings: 0"},
		{"REPLACE INTO t VALUES (1, 'x', 0)", 2, ""},
		{"REPLACE INTO t VALUES (8, 'x', 0)", 1, ""},
		{"REPLACE INTO t SELECT id, name, n FROM t WHERE id IN (1, 2)", 4, "Records: 2  Duplicates: 2  Warnings: 0"},
		{"INSERT INTO t VALUES (1, 'y', 5) ON DUPLICATE KEY UPDATE n = 5", 2, ""},
		{"INSERT INTO t VALUES (1, 'y', 5) ON DUPLICATE KEY UPDATE n = 5", 0, ""},
		{"INSERT INTO t VALUES (9, 'y', 5) ON DUPLICATE KEY UPDATE n = 5", 1, ""},
		{"INSERT IGNORE INTO t VALUES (1, 'y', 5), (10, 'z', 6)", 1, "Records: 2  Duplicates: 1  Warnings: 1"},
		{"INSERT INTO t VALUES (11, 'y', 5)", 1, ""},
		{"INSERT INTO t SELECT id + 100, name, n FROM t", 8, "Records: 8  Duplicates: 0  Warnings: 0"},
		{"DELETE FROM t WHERE id > 100", 8, ""},
		{"CREATE TABLE c AS SELECT * FROM t WHERE id < 3", 2, "Records: 2  Duplicates: 0  Warnings: 0"},
		{"ALTER TABLE c ADD COLUMN z INT DEFAULT 1", 0, "Records: 0  Duplicates: 0  Warnings: 0"},
		{"TRUNCATE TABLE c", 0, ""},
		{"DROP TABLE c", 0, ""},
	} {
		if res := do(t, s, c.text); res.AffectedRows != c.affected || res.Info != c.info {
			t.Errorf("%s: %d rows, %q", c.text, res.AffectedRows, res.Info)
		}
		expect(t, s, "SELECT ROW_COUNT(), LAST_INSERT_ID()", fmt.Sprintf("%d\t0", c.affected))
		expect(t, s, "SELECT ROW_COUNT()", "-1")
	}
	if err := failure(s, "INSERT INTO t VALUES (NULL, NULL, NULL)"); err == nil {
		t.Error("no error")
	}
	expect(t, s, "SELECT ROW_COUNT()", "-1")
}
