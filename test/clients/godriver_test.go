package clients

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

func TestGoSQLDriverGetsTheEnginesAnswers(t *testing.T) {
	l := startLake(t)
	statements := allStatements(l.needle(t, 1234))
	c := client{"go-sql-driver", []string{modeText, modePrepared}, runGoDriver}
	c.mustAgree(t, l, statements, l.answers(t, statements))
}

// open connects go-sql-driver.
func (l *lake) open(t *testing.T) *sql.DB {
	t.Helper()
	return l.openAs(t, "root", "")
}

func (l *lake) openAs(t *testing.T, user, password string) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.DBName = user, password, "tcp", "127.0.0.1:"+l.port, "demo"
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
	return db
}

// runGoDriver connects as root.
func runGoDriver(t *testing.T, l *lake, work []request) []answer {
	t.Helper()
	return goAnswers(l.open(t), work)
}

// goAnswers sends texts as COM_QUERY, the others by Prepare.
func goAnswers(db *sql.DB, work []request) []answer {
	out := make([]answer, len(work))
	for i, r := range work {
		var err error
		out[i], err = goQuery(db, r)
		var failure *mysql.MySQLError
		if errors.As(err, &failure) {
			out[i] = answer{Code: int(failure.Number), State: string(failure.SQLState[:]), Message: failure.Message}
		} else if err != nil {
			out[i] = answer{Code: -1, Message: err.Error()}
		}
		out[i].Name, out[i].Mode = r.name, r.mode
	}
	return out
}

func goQuery(db *sql.DB, r request) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientWait)
	defer cancel()
	var rows *sql.Rows
	if r.mode == modeText {
		rows, err = db.QueryContext(ctx, r.sql)
	} else {
		var args []any
		for _, x := range r.args {
			v, err := x.goValue()
			if err != nil {
				return a, err
			}
			args = append(args, v)
		}
		stmt, prepareErr := db.PrepareContext(ctx, r.sql)
		if prepareErr != nil {
			return a, prepareErr
		}
		defer func() { err = errors.Join(err, stmt.Close()) }()
		rows, err = stmt.QueryContext(ctx, args...)
	}
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return goRows(rows)
}

func goRows(rows *sql.Rows) (a answer, err error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return a, err
	}
	values := make([]any, len(types))
	into := make([]any, len(types))
	for i, t := range types {
		a.Columns = append(a.Columns, t.Name())
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return a, err
		}
		cells := make([]*string, len(values))
		for i, v := range values {
			if v == nil {
				continue
			}
			text := goText(v, types[i].DatabaseTypeName())
			cells[i] = &text
		}
		a.Rows = append(a.Rows, cells)
	}
	return a, rows.Err()
}

func goText(v any, typeName string) string {
	switch v := v.(type) {
	case []byte:
		if strings.HasSuffix(typeName, "BLOB") || strings.HasSuffix(typeName, "BINARY") {
			return hex.EncodeToString(v)
		}
		return string(v)
	case time.Time:
		return v.Format("2006-01-02 15:04:05.000000")
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	return fmt.Sprint(v)
}

// goValue is what a Go program passes.
func (a arg) goValue() (any, error) {
	switch a.kind {
	case kindNull:
		return nil, nil
	case kindInt:
		return strconv.ParseInt(a.value, 10, 64)
	case kindUnsigned:
		return strconv.ParseUint(a.value, 10, 64)
	case kindFloat:
		return strconv.ParseFloat(a.value, 64)
	case kindTime:
		return time.Parse("2006-01-02 15:04:05", a.value)
	case kindBytes:
		return []byte(a.value), nil
	}
	return a.value, nil
}
