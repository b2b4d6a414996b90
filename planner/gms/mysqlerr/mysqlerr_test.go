package mysqlerr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
)

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		code  int
		state string
	}{
		{"an unknown table", errs.New(errs.ErrNotFound, "table a.b does not exist"), 1146, "42S02"},
		{"another writer won", fmt.Errorf("table t: %w", errs.ErrConflict), 1213, "40001"},
		{"what lakesql cannot do", errs.New(errs.ErrUnsupported, "x"), 1235, "42000"},
		{"a budget that refused", &mem.LimitError{Budget: "query"}, 1041, "HY000"},
		{"a killed statement", fmt.Errorf("scan: %w", context.Canceled), 1317, "70100"},
		{"a statement out of time", context.DeadlineExceeded, 3024, "HY000"},
		{"a broken file", errs.Corrupt("footer", 0, "100%% wrong"), 1815, "HY000"},
		{"a number out of range", errs.New(errs.ErrOverflow, "BIGINT value is out of range"), 1690, "22003"},
		{"a column that does not exist", sql.ErrColumnNotFound.New("x"), 1054, "42S22"},
		{"a syntax error", sql.ErrSyntaxError.New("at position 3 near 'x'"), 1064, "42000"},
		{"a denied table", sql.ErrTableAccessDeniedForUser.New("u", "t"), 1142, "42000"},
		{"anything else", errors.New("boom"), 1105, "HY000"},
		{"a MySQL error already", mysql.NewSQLError(1234, "HY000", "x"), 1234, "HY000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Convert(c.err)
			if got.Num != c.code || got.State != c.state {
				t.Errorf("got %d (%s) %s, want %d (%s)", got.Num, got.State, got.Message, c.code, c.state)
			}
		})
	}
	if Convert(nil) != nil {
		t.Error("no error became one")
	}
	if got := Convert(errors.New("100%d of %s")).Message; got != "100%d of %s" {
		t.Errorf("text became %q", got)
	}
}

func TestStacksStayOnTheServer(t *testing.T) {
	err := spawn.Guard(func() error { panic("broken") })
	if got := Convert(err).Message; !strings.Contains(got, "broken") || strings.Contains(got, "goroutine") {
		t.Errorf("message %q", got)
	}
}
