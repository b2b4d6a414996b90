package sql

import (
	"context"
	"database/sql"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestWritesNeedPrivileges: every statement that changes something asks for its own privilege before anything happens.
func TestWritesNeedPrivileges(t *testing.T) {
	l := lakes.Open(t, t.TempDir(), engine.Config{})
	l.Serve(t, server.Options{Users: []server.User{{Name: "root"}}})
	addUser(l, "reader", gms.PrivilegeType_Select)
	addUser(l, "writer", gms.PrivilegeType_Select, gms.PrivilegeType_Insert)
	root := l.Connect(t, true)
	for _, text := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE INDEX i ON t (id)",
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

// addUser makes a user with privileges on the database "lake" alone, which the configuration cannot.
func addUser(l *lakes.Lake, name string, privileges ...gms.PrivilegeType) {
	set := mysql_db.NewPrivilegeSet()
	set.AddDatabase("lake", privileges...)
	ed := l.Engine.SQLE().Analyzer.Catalog.MySQLDb.Editor()
	defer ed.Close()
	ed.PutUser(&mysql_db.User{User: name, Host: "%", PrivilegeSet: set, Plugin: "mysql_native_password"})
}

// TestUsersAreNotChangedByStatements: they would be gone at the next start, and the library behind panics.
func TestUsersAreNotChangedByStatements(t *testing.T) {
	l := lakes.Open(t, t.TempDir(), engine.Config{})
	l.Serve(t, server.Options{Users: []server.User{{Name: "root"}, {Name: "other"}}})
	root := l.Connect(t, true)
	for _, text := range []string{
		"CREATE USER a", "CREATE USER a IDENTIFIED BY 'x'", "DROP USER other", "RENAME USER other TO b", "CREATE ROLE r", "DROP ROLE r", "GRANT SELECT ON *.* TO other",
		"REVOKE SELECT ON *.* FROM other", "REVOKE ALL PRIVILEGES, GRANT OPTION FROM other", "GRANT r TO other",
	} {
		if _, err := root.ExecContext(context.Background(), text); codeOf(err) != 1235 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := ask(t, root, "SELECT count(*) FROM mysql.user WHERE user IN ('root', 'other')"); got != "2" {
		t.Errorf("%s users", got)
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
