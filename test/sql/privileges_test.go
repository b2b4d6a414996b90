package sql

import (
	"context"
	"database/sql"
	"testing"

	"github.com/dolthub/go-mysql-server/sql/mysql_db"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestWritesNeedPrivileges: every statement that changes something asks for its own privilege before anything happens.
func TestWritesNeedPrivileges(t *testing.T) {
	l := lakes.Open(t, t.TempDir(), engine.Config{})
	l.Engine.SQLE().Analyzer.Catalog.MySQLDb.SetPersister(&mysql_db.NoopPersister{})
	l.Serve(t, server.Options{Users: []server.User{{Name: "root"}}})
	root := l.Connect(t, true)
	for _, text := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE INDEX i ON t (id)", "CREATE USER reader", "GRANT SELECT ON lake.* TO reader", "CREATE USER writer", "GRANT SELECT, INSERT ON lake.* TO writer",
	} {
		perform(t, root, text)
	}
	for _, c := range []struct {
		text    string
		inserts bool // INSERT is enough
	}{
		{"INSERT INTO t VALUES (2)", true}, {"INSERT INTO t SELECT 3", true}, {"OPTIMIZE TABLE t", true},
		{"REPLACE INTO t VALUES (1)", false}, {"UPDATE t SET id = 2", false}, {"DELETE FROM t", false}, {"TRUNCATE TABLE t", false}, {"ALTER TABLE t ADD COLUMN b INT", false},
		{"CREATE INDEX j ON t (id)", false}, {"DROP INDEX i ON t", false}, {"ALTER TABLE t ADD INDEX j (id)", false}, {"DROP TABLE t", false}, {"RENAME TABLE t TO u", false}, {"CREATE TABLE u (a INT)", false},
		{"CREATE TABLE u AS SELECT 1 AS a", false}, {"CREATE TABLE u LIKE t", false}, {"CALL lakesql.restore('t', 1)", false}, {"CALL lakesql.cleanup('t')", false}, {"EXPLAIN DELETE FROM t", false}, {"CREATE DATABASE d", false},
	} {
		for user, may := range map[string]bool{"reader": false, "writer": c.inserts} {
			_, err := as(t, l, user).ExecContext(context.Background(), c.text)
			if code := codeOf(err); may != (err == nil) || !may && code != 1142 && code != 1044 && code != 1227 {
				t.Errorf("%s as %s: %v", c.text, user, err)
			}
		}
	}
	if got := ask(t, root, "SELECT count(*) FROM t"); got != "3" {
		t.Errorf("%s rows", got)
	}
}

func as(t *testing.T, l *lakes.Lake, user string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", user+"@tcp("+l.Addr()+")/lake")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
