//go:build clients

package clients

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// runCommandLine runs one mariadb (or mysql) process a statement and reads its XML.
func runCommandLine(t *testing.T, l *lake, work []request) []answer {
	t.Helper()
	command, err := exec.LookPath("mariadb")
	if err != nil {
		if command, err = exec.LookPath("mysql"); err != nil {
			t.Fatal("neither mariadb nor mysql is there: run test/clients/setup")
		}
	}
	var out []answer
	for _, r := range work {
		out = append(out, commandLine(t, command, l.port, r))
	}
	return out
}

var errorLine = regexp.MustCompile(`(?m)^ERROR (\d+) \((\w+)\)[^:]*: (.*)$`)

func commandLine(t *testing.T, command, port string, r request) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clientWait)
	defer cancel()
	//nolint:gosec // the system's client
	cmd := exec.CommandContext(ctx, command, "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port="+port, "--user=root",
		"--default-character-set=utf8mb4", "--comments", "--xml", "--binary-as-hex", "--execute="+r.sql, "demo")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		m := errorLine.FindStringSubmatch(stderr.String())
		if m == nil {
			t.Fatalf("%s: %v\n%s", r.sql, err, stderr.String())
		}
		code, _ := strconv.Atoi(m[1])
		return answer{Name: r.name, Mode: r.mode, Code: code, State: m[2], Message: m[3]}
	}
	var result struct {
		Rows []struct {
			Fields []struct {
				Name string `xml:"name,attr"`
				Nil  bool   `xml:"nil,attr"`
				Text string `xml:",chardata"`
			} `xml:"field"`
		} `xml:"row"`
	}
	if stdout.Len() > 0 {
		if err := xml.Unmarshal(stdout.Bytes(), &result); err != nil {
			t.Fatalf("%s: %v\n%s", r.sql, err, stdout.String())
		}
	}
	a := answer{Name: r.name, Mode: r.mode}
	for i, row := range result.Rows {
		cells := make([]*string, len(row.Fields))
		for c, f := range row.Fields {
			if i == 0 {
				a.Columns = append(a.Columns, f.Name)
			}
			if f.Nil {
				continue
			}
			cells[c] = &f.Text
			if h, ok := strings.CutPrefix(f.Text, "0x"); ok {
				h = strings.ToLower(h)
				cells[c] = &h
			}
		}
		a.Rows = append(a.Rows, cells)
	}
	return a
}

// runGoDriver sends texts without parameters as COM_QUERY, the others by Prepare.
func runGoDriver(t *testing.T, l *lake, work []request) []answer {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "tcp", "127.0.0.1:"+l.port, "demo"
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	out := make([]answer, len(work))
	for i, r := range work {
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
	case kindFloat:
		return strconv.ParseFloat(a.value, 64)
	case kindTime:
		return time.Parse("2006-01-02 15:04:05", a.value)
	case kindBytes:
		return []byte(a.value), nil
	}
	return a.value, nil
}
