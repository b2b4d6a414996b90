//go:build clients

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
)

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
		{"Connector/J", append(both, modeCursor), func(t *testing.T, l *lake, work []request) []answer {
			return runScript(t, l, work, "java", javaArgs(t, l.port, "demo")...)
		}},
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
	want := l.answers(t, statements)
	for _, c := range allClients() {
		t.Run(c.name, func(t *testing.T) { c.mustAgree(t, l, statements, want) })
	}
}

// line is the request as the client scripts read it.
func (r request) line() string {
	fields := []string{r.name, r.mode, base64.StdEncoding.EncodeToString([]byte(r.sql))}
	for _, a := range r.args {
		fields = append(fields, string(a.kind)+":"+base64.StdEncoding.EncodeToString([]byte(a.value)))
	}
	return strings.Join(fields, "\t") + "\n"
}
