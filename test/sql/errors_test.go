package sql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// wrong are statements over the tables of smallLake with the number and the state of MySQL's error.
var wrong = []struct {
	text  string
	code  int
	state string
}{
	// The statement itself.
	{"SELEC 1", 1064, "42000"},
	{"SELECT * FORM v", 1064, "42000"},
	{"SELECT (1", 1064, "42000"},
	{"", 1065, "42000"},
	{";", 1065, "42000"},
	{"/* nothing */", 1065, "42000"},
	{"-- nothing", 1065, "42000"},
	// Names.
	{"SELECT * FROM nowhere", 1146, "42S02"},
	{"SELECT * FROM lake.nowhere", 1146, "42S02"},
	{"SELECT * FROM nolake.v", 1049, "42000"},
	{"USE nolake", 1049, "42000"},
	{"SELECT nothing FROM v", 1054, "42S22"},
	{"SELECT id FROM v WHERE nothing = 1", 1054, "42S22"},
	{"SELECT id FROM v ORDER BY nothing", 1054, "42S22"},
	{"SELECT id FROM v GROUP BY nothing", 1054, "42S22"},
	{"SELECT x.id FROM v", 1146, "42S02"},
	{"SELECT COUNT(*) FROM v HAVING nothing > 1", 1054, "42S22"},
	{"SELECT id FROM v JOIN orders ON nothing = 1", 1054, "42S22"},
	{"SELECT id FROM v ORDER BY 7", 1054, "42S22"},
	{"SELECT id FROM v, v5", 1052, "23000"},
	{"SELECT 1 FROM v JOIN v5 USING (nothing)", 1054, "42S22"},
	{"SELECT * FROM v, v", 1066, "42000"},
	{"SELECT * FROM (SELECT 1)", 1248, "42000"},
	{"SELECT * FROM (SELECT id, id FROM v) x", 1060, "42S21"},
	{"SELECT nofunc(1)", 1305, "42000"},
	{"CALL noproc()", 1305, "42000"},
	{"SELECT @@novariable", 1193, "HY000"},
	{"SET novariable = 1", 1193, "HY000"},
	{"SET @@global.nprobes = 'x'", 1231, "42000"},
	{"SET nprobes = 'x'", 1231, "42000"},
	{"SET ann = 'sometimes'", 1231, "42000"},
	{"SET version = 'x'", 1238, "HY000"},
	{"SET resource_group = 'batch'", 1235, "42000"},
	{"SELECT /*+ RESOURCE_GROUP(batch) */ 1", 1235, "42000"},
	{"SELECT /*+ SET_VAR(resource_group=batch) */ 1", 1235, "42000"},
	{"SET NAMES nocharset", 1115, "42000"},
	{"SELECT 'a' COLLATE nocollation", 1273, "HY000"},
	{"SELECT _utf8mb4'a' COLLATE latin1_bin", 1253, "42000"},
	{"SHOW COLUMNS FROM nowhere", 1146, "42S02"},
	{"SHOW CREATE TABLE nowhere", 1146, "42S02"},
	{"DESCRIBE nowhere", 1146, "42S02"},
	{"EXECUTE nothing", 1243, "HY000"},
	{"DEALLOCATE PREPARE nothing", 1243, "HY000"},
	{"ROLLBACK TO nothing", 1305, "42000"},
	{"KILL QUERY 4000000000", 1094, "HY000"},
	// Calls.
	{"SELECT array_has(labels) FROM l", 1582, "42000"},
	{"SELECT l2_distance(vec) FROM v", 1582, "42000"},
	{"SELECT ABS()", 1582, "42000"},
	{"SELECT ABS(1, 2)", 1582, "42000"},
	{"SELECT LOWER()", 1582, "42000"},
	{"SELECT ROUND(1, 2, 3)", 1582, "42000"},
	{"SELECT JSON_EXTRACT('{', '$')", 3141, "22032"},
	// Shapes.
	{"SELECT (SELECT id FROM v)", 1242, "21000"},
	{"SELECT id FROM v WHERE id = (SELECT id FROM v)", 1242, "21000"},
	{"SELECT id, (SELECT amt FROM orders WHERE vid = v.id) FROM v", 1242, "21000"},
	{"SELECT (SELECT id, cat FROM v LIMIT 1)", 1241, "21000"},
	{"SELECT 1 FROM v WHERE id IN (SELECT id, cat FROM v)", 1241, "21000"},
	{"SELECT (1, 2) = 1", 1241, "21000"},
	{"SELECT 1 UNION SELECT 1, 2", 1222, "21000"},
	{"WITH x (a, b) AS (SELECT 1) SELECT * FROM x", 1353, "HY000"},
	{"SELECT id FROM v WHERE COUNT(*) > 1", 1111, "HY000"},
	{"SELECT SUM(COUNT(*)) FROM v", 1111, "HY000"},
	{"SELECT cat, id FROM v GROUP BY cat", 1055, "42000"},
	{"SELECT cat, COUNT(*) FROM v", 1055, "42000"},
	{"SELECT id FROM v WHERE ROW_NUMBER() OVER () = 1", 3593, "HY000"},
	{"SELECT SUM(id) OVER w FROM v", 3579, "HY000"},
	{"WITH RECURSIVE x AS (SELECT * FROM x) SELECT * FROM x", 3573, "HY000"},
	{"SELECT id FROM v LIMIT -1", 1064, "42000"},
	// Values.
	{"SELECT 9223372036854775807 + 1", 1690, "22003"},
	{"SELECT l2_distance(vec, '[1,0,0]') FROM v", 1210, "HY000"},
	{"SELECT id FROM ints WHERE array_has(l, 'x')", 1210, "HY000"},
	// What lakesql does not do.
	{"LOCK INSTANCE FOR BACKUP", 1064, "42000"},
	{"SELECT * FROM v INTO OUTFILE 'x.csv'", 1290, "HY000"},
}

// TestErrorCodes asks each wrong statement in a session and over both protocols.
func TestErrorCodes(t *testing.T) {
	lake := smallLake(t, engine.Config{})
	ctx := context.Background()
	for _, c := range wrong {
		for _, door := range lake.Doors() {
			if c.text == "" && door.Name != "session" {
				continue // the driver does not send it
			}
			_, err := door.Ask(ctx, c.text)
			number, state := 0, ""
			var sent *mysql.MySQLError
			switch {
			case errors.As(err, &sent):
				number, state = int(sent.Number), string(sent.SQLState[:])
			case door.Name == "session" && err != nil:
				converted := mysqlerr.Convert(err)
				number, state = converted.Num, converted.State
			}
			if door.Name == "binary protocol" && (c.text == "EXECUTE nothing" || c.text == "DEALLOCATE PREPARE nothing") {
				c.code = 1295 // only a text may say that
			}
			if number != c.code || state != c.state {
				t.Errorf("%s (%s): %v: %d (%s), want %d (%s)", c.text, door.Name, err, number, state, c.code, c.state)
			}
		}
	}
	checkAlive(t, lake)
}

// TestRefusedLogins: whatever is wrong, the client gets a MySQL error with its number.
func TestRefusedLogins(t *testing.T) {
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Bare, labelTable)
	lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
	guarded, err := server.Start(context.Background(), lakes.Open(t, dir, engine.Config{}).Engine, server.Options{Users: []server.User{{Name: "analyst", Password: "secret"}, {Name: "free"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := guarded.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		dsn         string
		code        int
		state, text string
	}{
		{"root@tcp(" + lake.Addr() + ")/nolake", 1049, "42000", "nolake"},
		{"analyst:secret@tcp(" + guarded.Addr().String() + ")/nolake", 1049, "42000", "nolake"},
		{"analyst:wrong@tcp(" + guarded.Addr().String() + ")/lake", 1045, "28000", "Access denied for user 'analyst'"},
		{"analyst@tcp(" + guarded.Addr().String() + ")/lake", 1045, "28000", "Access denied for user 'analyst'"},
		{"free:wrong@tcp(" + guarded.Addr().String() + ")/lake", 1045, "28000", "Access denied for user 'free'"},
		{"nobody:x@tcp(" + guarded.Addr().String() + ")/lake", 1045, "28000", "Access denied for user 'nobody'"},
		{"nobody@tcp(" + guarded.Addr().String() + ")/lake", 1045, "28000", "Access denied for user 'nobody'"},
	} {
		db, err := sql.Open("mysql", c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Ping()
		var sent *mysql.MySQLError
		if !errors.As(err, &sent) || int(sent.Number) != c.code || string(sent.SQLState[:]) != c.state || !strings.Contains(sent.Message, c.text) {
			t.Errorf("%s: %v, want %d (%s) %s", c.dsn, err, c.code, c.state, c.text)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestGrantsWithoutUsers: everybody is root.
func TestGrantsWithoutUsers(t *testing.T) {
	lake := smallLake(t, engine.Config{})
	for _, text := range []string{"SHOW GRANTS", "SHOW GRANTS FOR CURRENT_USER()", "SHOW GRANTS FOR CURRENT_USER"} {
		for _, door := range lake.Doors() {
			got, err := door.Ask(context.Background(), text)
			if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "GRANT ALL PRIVILEGES ON *.* TO `root`@`%`") {
				t.Errorf("%s (%s): %q, %v", text, door.Name, got, err)
			}
		}
	}
}
