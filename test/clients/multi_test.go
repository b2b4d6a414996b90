package clients

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/lakesql/lakesql/internal/spawn"
)

// connectMulti opens a connection that may send several statements at once.
func connectMulti(t *testing.T, l *lake) *sql.Conn {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName, config.MultiStatements = "root", "tcp", "127.0.0.1:"+l.port, "demo", true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestStatementsInOnePacketAnswerInOrder(t *testing.T) {
	l := startLake(t)
	c := connectMulti(t, l)
	rows, err := c.QueryContext(context.Background(), "SELECT count(*) FROM images; SELECT ';' AS semicolon, tenant FROM images WHERE array_has(labels, 'wet') ORDER BY id LIMIT 2; SET @k = 3; SELECT nothing FROM images; SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var got []string
	for {
		a, err := goRows(rows)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join(a.Columns, ",")+": "+flat(a))
		if !rows.NextResultSet() {
			break
		}
	}
	if len(got) < 2 || got[0] != "count(*): 4000" || !strings.HasPrefix(got[1], "semicolon,tenant: ; ") {
		t.Errorf("results %q", got)
	}
	var failure *mysql.MySQLError
	if err := rows.Err(); !errors.As(err, &failure) || failure.Number != 1054 {
		t.Errorf("the fourth statement ends with %v", err)
	}
	var k int
	if err := c.QueryRowContext(context.Background(), "SELECT @k").Scan(&k); err != nil || k != 3 {
		t.Errorf("@k is %d, %v", k, err)
	}
}

func TestAKilledStatementEndsWithItsError(t *testing.T) {
	l := startLake(t)
	victim, killer := connectMulti(t, l), connectMulti(t, l)
	var id int64
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := victim.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	g, ctx := spawn.WithContext(ctx, 0)
	g.Go("victim", func() error {
		var n int64
		ended <- victim.QueryRowContext(ctx, "SELECT count(*) FROM shipments a, shipments b, orders c WHERE a.route < b.route AND b.status < c.carrier").Scan(&n)
		return nil
	})
	for {
		if _, err := killer.ExecContext(ctx, "KILL QUERY "+strconv.FormatInt(id, 10)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			var failure *mysql.MySQLError
			if !errors.As(err, &failure) || failure.Number != 1317 {
				t.Fatalf("the statement ends with %v", err)
			}
			if err := victim.PingContext(ctx); err != nil {
				t.Fatalf("the connection is gone: %v", err)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
