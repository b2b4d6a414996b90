package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// writing serves an empty lake.
func writing(t *testing.T) (*lakes.Lake, string) {
	t.Helper()
	dir := t.TempDir()
	return lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{}), dir
}

// perform runs a statement and returns its affected rows.
func perform(t *testing.T, c *sql.Conn, text string, args ...any) int64 {
	t.Helper()
	res, err := c.ExecContext(context.Background(), text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ask(t *testing.T, c *sql.Conn, text string, args ...any) string {
	t.Helper()
	lines, err := lakes.AskConn(context.Background(), c, text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.Join(lines, "\n")
}

func codeOf(err error) uint16 {
	var failure *mysql.MySQLError
	if errors.As(err, &failure) {
		return failure.Number
	}
	return 0
}

// TestWritesOverTheWire: the same statements through both protocols.
func TestWritesOverTheWire(t *testing.T) {
	l, _ := writing(t)
	for name, text := range map[string]bool{"text": true, "prepared": false} {
		t.Run(name, func(t *testing.T) {
			c := l.Connect(t, text)
			table := "t_" + name
			perform(t, c, "CREATE TABLE "+table+" (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20), labels LIST<VARCHAR>, v VECTOR(2), at DATETIME(6), price DECIMAL(8,2), data BLOB)")
			at := time.Date(2026, 11, 30, 12, 0, 0, 500_000_000, time.UTC)
			for i := range 3 {
				if n := perform(t, c, "INSERT INTO "+table+" VALUES (?, ?, ?, ?, ?, ?, ?)", i, "n'\\"+string(rune('a'+i)), `["x", "y"]`, "[1, 2]", at, 1.25, []byte{0, 255}); n != 1 {
					t.Errorf("%d rows", n)
				}
			}
			if got, want := ask(t, c, "SELECT id, name, labels, v, at, price, hex(data) FROM "+table+" WHERE id = ?", 1), "1\tn'\\b\t[\"x\", \"y\"]\t[1, 2]\t2026-11-30 12:00:00.500000\t1.25\t00FF"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if n := perform(t, c, "UPDATE "+table+" SET price = price * ?, name = NULL WHERE array_has(labels, ?) AND id < ?", 2, "x", 2); n != 2 {
				t.Errorf("%d rows", n)
			}
			if n := perform(t, c, "REPLACE INTO "+table+" (id, name) VALUES (?, ?), (?, ?)", 2, "two", 7, "seven"); n != 3 {
				t.Errorf("%d rows", n)
			}
			if n := perform(t, c, "DELETE FROM "+table+" WHERE id = ?", 0); n != 1 {
				t.Errorf("%d rows", n)
			}
			if got, want := ask(t, c, "SELECT id, name, price FROM "+table+" ORDER BY id"), "1\t\\N\t2.50\n2\ttwo\t\\N\n7\tseven\t\\N"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			_, err := c.ExecContext(context.Background(), "INSERT INTO "+table+" (id, v) VALUES (?, ?)", 9, "[1]")
			if codeOf(err) != 1366 {
				t.Errorf("a short vector: %v", err)
			}
		})
	}
}

// TestTransactionsOverTheWire: what is staged is the session's alone, and gone with its connection.
func TestTransactionsOverTheWire(t *testing.T) {
	l, dir := writing(t)
	a, b := l.Connect(t, true), l.Connect(t, true)
	perform(t, a, "CREATE TABLE t (id INT)")
	perform(t, a, "SET autocommit = 0")
	perform(t, a, "INSERT INTO t VALUES (1), (2)")
	if got := ask(t, a, "SELECT count(*) FROM t"); got != "2" {
		t.Errorf("the session sees %s rows", got)
	}
	if got := ask(t, b, "SELECT count(*) FROM t"); got != "0" {
		t.Errorf("others see %s rows", got)
	}
	perform(t, a, "COMMIT")
	perform(t, a, "INSERT INTO t VALUES (3)")
	if err := a.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) { // database/sql closes it
		t.Errorf("the connection lives on: %v", err)
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the server notices on its own
		files, err := filepath.Glob(filepath.Join(dir, "t.lance", "data", "*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 1 {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d data files stay after the connection was lost", len(files))
		}
	}
	if got := ask(t, b, "SELECT count(*) FROM t"); got != "2" {
		t.Errorf("%s rows", got)
	}
}

// TestStatementsThatCanBePrepared: every statement runs prepared, but for those that MySQL does not prepare either.
func TestStatementsThatCanBePrepared(t *testing.T) {
	l, _ := writing(t)
	c := l.Connect(t, true)
	prepared := func(text string, args ...any) (int64, error) {
		stmt, err := c.PrepareContext(context.Background(), text)
		if err != nil {
			return 0, err
		}
		defer func() { _ = stmt.Close() }()
		res, err := stmt.ExecContext(context.Background(), args...)
		if err != nil {
			return 0, err
		}
		return res.RowsAffected()
	}
	for _, s := range []struct {
		text string
		args []any
		rows int64
	}{
		{"CREATE TABLE t (id INT PRIMARY KEY, labels LIST<VARCHAR>, v VECTOR(2), INDEX (labels)) WITH (rows_per_fragment = 100)", nil, 0},
		{"CREATE TABLE p (id INT, n INT)", nil, 0},
		{"INSERT INTO t (id, labels) VALUES (?, ['a', ?]), (2, NULL)", []any{1, "b"}, 2},
		{"CREATE TABLE c AS SELECT id + ? AS id, labels FROM t WHERE id >= ?", []any{10, 1}, 2},
		{"CREATE TABLE IF NOT EXISTS c AS SELECT 1 AS a", nil, 0},
		{"ALTER TABLE t ADD COLUMN n INT DEFAULT 5 AFTER id, ADD INDEX by_n (n), ADD COLUMN more LIST<INT>", nil, 0},
		{"ALTER TABLE p ADD COLUMN m INT", nil, 0}, {"ALTER TABLE p RENAME TO q", nil, 0}, {"RENAME TABLE q TO p", nil, 0},
		{"CREATE INDEX by_id ON t (id)", nil, 0}, {"DROP INDEX by_id ON t", nil, 0},
		{"UPDATE t JOIN c ON c.id = t.id + ? SET t.n = ?", []any{10, 6}, 2},
		{"DELETE FROM t AS z WHERE z.id = ? AND array_has(z.labels, ?)", []any{1, "b"}, 1},
		{"REPLACE INTO t (id) VALUES (?), (?)", []any{2, 3}, 3},
		{"WITH w AS (SELECT ? AS id) DELETE FROM t WHERE id IN (SELECT id FROM w)", []any{3}, 1},
		{"BEGIN", nil, 0}, {"INSERT INTO p (id) SELECT id FROM t", nil, 1}, {"SAVEPOINT a", nil, 0}, {"INSERT INTO p (id) VALUES (9)", nil, 1}, {"ROLLBACK TO a", nil, 0},
		{"RELEASE SAVEPOINT a", nil, 0}, {"COMMIT AND CHAIN", nil, 0}, {"ROLLBACK", nil, 0}, {"OPTIMIZE TABLE t", nil, 0},
		{"CALL lakesql.create_tag('t', ?)", []any{"x"}, 0}, {"SET @a = 1", nil, 0}, {"SHOW WARNINGS", nil, 0}, {"SHOW COUNT(*) ERRORS", nil, 0},
		{"TRUNCATE TABLE c", nil, 0}, {"DROP TABLE c, p", nil, 0}, {"USE lake", nil, 0},
	} {
		if n, err := prepared(s.text, s.args...); err != nil || n != s.rows {
			t.Errorf("%s: %d rows, %v", s.text, n, err)
		}
	}
	if got := ask(t, c, "SELECT * FROM t ORDER BY id"); got != "2\t5\t\\N\t\\N\t\\N" {
		t.Error(got)
	}
	for text, code := range map[string]uint16{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t": 1235, "PREPARE a FROM 'SELECT 1'": 1295, "DELETE FROM": 1064, "ALTER TABLE t ADD INDEX": 1064} {
		if _, err := prepared(text); codeOf(err) != code {
			t.Errorf("%s: %v, want %d", text, err, code)
		}
	}
}

// TestLoadData: the file comes from the client.
func TestLoadData(t *testing.T) {
	l, _ := writing(t)
	c := l.Connect(t, true)
	perform(t, c, "CREATE TABLE t (id INT, name VARCHAR(5), labels LIST<VARCHAR>, day DATE, n INT NOT NULL DEFAULT 7)")
	mysql.RegisterReaderHandler("rows", func() io.Reader {
		return strings.NewReader("id;name;day;labels\r\n" +
			"1;\"a;\"\"b\";01.02.2026;x|y\r\n" +
			"2;\\N;02.02.2026;\r\n" +
			"x;toolong;bad;z")
	})
	t.Cleanup(func() { mysql.DeregisterReaderHandler("rows") })
	load := `LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE t FIELDS TERMINATED BY ';' OPTIONALLY ENCLOSED BY '"' LINES TERMINATED BY '\r\n' IGNORE 1 LINES
		(id, name, @day, @labels) SET day = STR_TO_DATE(@day, '%d.%m.%Y'), labels = CONCAT('["', REPLACE(@labels, '|', '","'), '"]')`
	if _, err := c.ExecContext(context.Background(), load); codeOf(err) != 3948 {
		t.Fatalf("while it is off: %v", err)
	}
	perform(t, c, "SET GLOBAL local_infile = 1")
	t.Cleanup(func() { perform(t, l.Connect(t, true), "SET GLOBAL local_infile = 0") })
	if n := perform(t, c, load); n != 3 {
		t.Errorf("%d rows", n)
	}
	if got, want := ask(t, c, "SHOW WARNINGS"), "Warning\t1366\tIncorrect integer value: 'x' for column 'id' at row 3\nWarning\t1406\tData too long for column 'name' at row 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ask(t, c, "SELECT * FROM t ORDER BY id"), "0\ttoolo\t[\"z\"]\t\\N\t7\n1\ta;\"b\t[\"x\", \"y\"]\t2026-02-01\t7\n2\t\\N\t[\"\"]\t2026-02-02\t7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err := c.ExecContext(context.Background(), "LOAD DATA INFILE '/etc/hostname' INTO TABLE t")
	if codeOf(err) != 1235 {
		t.Errorf("a file of the server: %v", err)
	}
}

// TestKilledWriteLeavesNothing: the statement ends, and so do its files.
func TestKilledWriteLeavesNothing(t *testing.T) {
	l, dir := writing(t)
	a, b := l.Connect(t, true), l.Connect(t, true)
	perform(t, a, "CREATE TABLE t (id BIGINT)")
	perform(t, a, "INSERT INTO t VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)")
	before, err := os.ReadDir(filepath.Join(dir, "t.lance", "data"))
	if err != nil {
		t.Fatal(err)
	}
	id := ask(t, a, "SELECT CONNECTION_ID()")
	failed := make(chan error, 1)
	go func() {
		_, err := a.ExecContext(context.Background(), "INSERT INTO t SELECT a.id FROM t a, t b, t c, t d, t e, t f, t g, t h, t i")
		failed <- err
	}()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if strings.Contains(ask(t, b, "SHOW PROCESSLIST"), "INSERT INTO t SELECT") {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the statement is not in the process list")
		}
	}
	perform(t, b, "KILL QUERY "+id)
	if err := <-failed; codeOf(err) != 1317 {
		t.Errorf("killed: %v", err)
	}
	after, err := os.ReadDir(filepath.Join(dir, "t.lance", "data"))
	if err != nil {
		t.Fatal(err)
	}
	if len(after) != len(before) {
		t.Errorf("%d data files instead of %d", len(after), len(before))
	}
	if got := ask(t, b, "SELECT count(*) FROM t"); got != "10" {
		t.Errorf("%s rows", got)
	}
}
