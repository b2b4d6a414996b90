//go:build clients

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/testutil"
)

const (
	modeText     = "text"
	modePrepared = "prepared"
)

// clientWait is far beyond what any client needs for all statements.
const clientWait = 5 * time.Minute

// client sends statements and returns the answers in their order.
type client struct {
	name  string
	modes []string
	run   func(t *testing.T, l *lake, work []request) []answer
}

// request is one statement to one client.
type request struct {
	name, mode, sql string
	args            []arg
}

func (r request) line() string {
	fields := []string{r.name, r.mode, base64.StdEncoding.EncodeToString([]byte(r.sql))}
	for _, a := range r.args {
		fields = append(fields, string(a.kind)+":"+base64.StdEncoding.EncodeToString([]byte(a.value)))
	}
	return strings.Join(fields, "\t") + "\n"
}

func allClients() []client {
	both := []string{modeText, modePrepared}
	return []client{
		{"MariaDB command line", []string{modeText}, runCommandLine},
		{"mysql2", both, func(t *testing.T, l *lake, work []request) []answer {
			return runScript(t, l, work, "node", "client.mjs", installed(t, "node", "node_modules"), l.port, "demo")
		}},
		{"PyMySQL", both, func(t *testing.T, l *lake, work []request) []answer {
			return runScript(t, l, work, installed(t, "venv", "bin", "python"), "client.py", "pymysql", l.port, "demo")
		}},
		{"SQLAlchemy", both, func(t *testing.T, l *lake, work []request) []answer {
			return runScript(t, l, work, installed(t, "venv", "bin", "python"), "client.py", "sqlalchemy", l.port, "demo")
		}},
		{"Connector/J", both, func(t *testing.T, l *lake, work []request) []answer {
			return runScript(t, l, work, "java", javaArgs(t, l.port, "demo")...)
		}},
		{"go-sql-driver", both, runGoDriver},
	}
}

// installed is a path that test/clients/setup made.
func installed(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{testutil.Root(t), ".cache", "clients"}, elem...)...)
	if matches, err := filepath.Glob(path); err != nil || len(matches) == 0 {
		t.Fatalf("%s is missing: run test/clients/setup", path)
	}
	return path
}

func javaArgs(t *testing.T, args ...string) []string {
	t.Helper()
	return append([]string{"-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-cp", installed(t, "java", "*"), "Client.java"}, args...)
}

// runScript feeds the statements to a script of this folder.
func runScript(t *testing.T, _ *lake, work []request, command string, args ...string) []answer {
	t.Helper()
	var in strings.Builder
	for _, r := range work {
		in.WriteString(r.line())
	}
	return decodeAnswers(t, script(t, in.String(), command, args...))
}

func script(t *testing.T, in, command string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clientWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...) //nolint:gosec // the test's own scripts
	cmd.Dir = filepath.Join(testutil.Root(t), "test", "clients")
	cmd.Stdin = strings.NewReader(in)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(command), err, stderr.String())
	}
	return out.Bytes()
}

func decodeAnswers(t *testing.T, text []byte) []answer {
	t.Helper()
	var out []answer
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("answer %q: %v", lines.Text(), err)
		}
		out = append(out, a)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryClientGetsTheEnginesAnswers(t *testing.T) {
	l := startLake(t)
	statements := allStatements(l.needle(t, 1234))
	want := make(map[string]answer, len(statements))
	for _, s := range statements {
		a := l.ask(t, s.sql)
		check(t, s, a)
		want[s.name] = a
	}
	for _, c := range allClients() {
		t.Run(c.name, func(t *testing.T) {
			var work []request
			var asked []statement
			for _, s := range statements {
				for _, mode := range c.modes {
					r := request{name: s.name, mode: mode, sql: s.sql}
					if mode == modePrepared && s.prepared != "" {
						r.sql, r.args = s.prepared, s.args
					}
					work, asked = append(work, r), append(asked, s)
				}
			}
			got := c.run(t, l, work)
			if len(got) != len(work) {
				t.Fatalf("%d answers to %d statements", len(got), len(work))
			}
			for i, a := range got {
				if diff := difference(asked[i], want[asked[i].name], a); diff != "" {
					t.Errorf("%s, %s: %s\n%s", asked[i].name, work[i].mode, diff, work[i].sql)
				}
			}
		})
	}
}

// check makes sure that the engine's own answer says something.
func check(t *testing.T, s statement, a answer) {
	t.Helper()
	switch {
	case s.code != 0:
		if a.Message == "" {
			t.Errorf("%s: the engine takes it\n%s", s.name, s.sql)
		}
	case a.Message != "":
		t.Errorf("%s: %s\n%s", s.name, a.Message, s.sql)
	case len(a.Rows) == 0 && !s.empty:
		t.Errorf("%s: no rows\n%s", s.name, s.sql)
	case len(a.Rows) > 0 && s.empty:
		t.Errorf("%s: %d rows\n%s", s.name, len(a.Rows), s.sql)
	case s.vectorized && !a.vectorized:
		t.Errorf("%s: a row-engine node\n%s", s.name, s.sql)
	}
}

// difference compares a client's answer with the engine's; "" = equal.
func difference(s statement, want, got answer) string {
	if s.code != 0 {
		switch {
		case got.Code != s.code:
			return fmt.Sprintf("error %d %q, want %d", got.Code, got.Message, s.code)
		case got.State != "" && got.State != s.state:
			return fmt.Sprintf("SQLSTATE %s, want %s", got.State, s.state)
		}
		return ""
	}
	if got.Code != 0 {
		return fmt.Sprintf("error %d %s: %s", got.Code, got.State, got.Message)
	}
	if len(got.Rows) != len(want.Rows) {
		return fmt.Sprintf("%d rows, want %d", len(got.Rows), len(want.Rows))
	}
	if got.Columns != nil && !slices.Equal(got.Columns, want.Columns) {
		return fmt.Sprintf("columns %q, want %q", got.Columns, want.Columns)
	}
	g, w := canonical(got.Rows, want.types), canonical(want.Rows, want.types)
	if s.unordered {
		slices.Sort(g)
		slices.Sort(w)
	}
	for i := range w {
		if g[i] != w[i] {
			return fmt.Sprintf("row %d:\n got %s\nwant %s", i, g[i], w[i])
		}
	}
	return ""
}

// canonical prints rows so that two clients' spellings of one value are one text.
func canonical(rows [][]*string, types []arrow.DataType) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		cells := make([]string, len(r))
		for c, v := range r {
			cells[c] = "NULL"
			if v != nil {
				cells[c] = strconv.Quote(canonicalCell(*v, types[c]))
			}
		}
		out[i] = strings.Join(cells, " ")
	}
	return out
}

func canonicalCell(v string, t arrow.DataType) string {
	switch t.ID() {
	case arrow.FLOAT16, arrow.FLOAT32:
		// Drivers widen FLOAT to double.
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return strconv.FormatFloat(float64(float32(f)), 'g', -1, 32)
		}
	case arrow.FLOAT64:
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return strconv.FormatFloat(f+math.Copysign(0, 1), 'g', -1, 64)
		}
	case arrow.BOOL:
		switch strings.ToLower(v) {
		case "true":
			return "1"
		case "false":
			return "0"
		}
	case arrow.TIMESTAMP, arrow.DURATION, arrow.TIME32, arrow.TIME64:
		// Some drivers print no fraction where it is zero.
		if whole, fraction, ok := strings.Cut(v, "."); ok {
			return strings.TrimSuffix(whole+"."+strings.TrimRight(fraction, "0"), ".")
		}
	}
	return v
}
