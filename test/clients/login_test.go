package clients

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/server"
)

func TestUsersLogIn(t *testing.T) {
	l := startLake(t, server.User{Name: "analyst", Password: "secret"})
	statements := allStatements(l.needle(t, 1234))
	want := l.answers(t, statements)
	c := client{"go-sql-driver", []string{modeText, modePrepared}, func(t *testing.T, l *lake, work []request) []answer {
		return goAnswers(l.openAs(t, "analyst", "secret"), work)
	}}
	c.mustAgree(t, l, statements, want)
	for _, text := range []string{"SHOW GRANTS", "SHOW GRANTS FOR CURRENT_USER()", "SELECT user, host FROM mysql.user", "SELECT * FROM mysql.tables_priv"} {
		if _, err := goQuery(l.openAs(t, "analyst", "secret"), request{mode: modeText, sql: text}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, login := range [][2]string{{"analyst", "wrong"}, {"analyst", ""}} {
		err := l.openAs(t, login[0], login[1]).Ping()
		var refused *mysql.MySQLError
		if !errors.As(err, &refused) || refused.Number != 1045 {
			t.Errorf("%s with password %q: %v", login[0], login[1], err)
		}
	}
	for _, name := range []string{"nobody", "root"} {
		if err := l.openAs(t, name, "").Ping(); err == nil {
			t.Errorf("%s logs in", name)
		}
	}
}
