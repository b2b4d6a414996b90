//go:build clients

package clients

import (
	"bytes"
	"context"
	"encoding/xml"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
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
