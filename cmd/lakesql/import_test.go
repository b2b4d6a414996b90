package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// idFiles writes files of ids, which follow each other.
func idFiles(t *testing.T, dir string, count, rows int) {
	t.Helper()
	for f := range count {
		var b bytes.Buffer
		b.WriteString("id,text\n")
		for i := range rows {
			fmt.Fprintf(&b, "%d,text of %d\n", f*rows+i, i)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d.csv", f)), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func countIDs(t *testing.T, lake string) string {
	t.Helper()
	out, err := run(t, "query", "--lake", "l="+lake, "--format", "tsv", "-e", "SELECT count(*), count(DISTINCT id), sum(id) FROM l.t")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// versions counts the versions of the table.
func versions(lake string) int {
	entries, _ := os.ReadDir(filepath.Join(lake, "t.lance", "_versions"))
	n := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".manifest") && !strings.HasPrefix(e.Name(), ".") {
			n++
		}
	}
	return n
}

// An import that is killed, wherever it is, is completed by the same command: no row is lost, none stands twice.
func TestImportIsKilled(t *testing.T) {
	const files, rows = 8, 4000
	n := files * rows
	want := fmt.Sprintf("%d\t%d\t%d", n, n, n*(n-1)/2)
	src := t.TempDir()
	idFiles(t, src, files, rows)
	for _, at := range []int{0, 1, 3, 6} {
		lake := t.TempDir()
		args := []string{"import", src, "--lake", "l=" + lake, "--into", "l.t", "--commit-rows", "1", "-q"}
		cmd := process(t, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); versions(lake) < at && time.Since(start) < time.Minute; time.Sleep(200 * time.Microsecond) {
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // says that it was killed
		if v := versions(lake); v > 0 {
			if got := countIDs(t, lake); !strings.HasPrefix(got, fmt.Sprintf("%d\t%d\t", v*rows, v*rows)) {
				t.Fatalf("killed with %d versions: %s", v, got)
			}
		}
		if out, err := run(t, args...); err != nil {
			t.Fatalf("killed with %d versions, then: %v\n%s", at, err, out)
		}
		if got := countIDs(t, lake); got != want {
			t.Fatalf("killed with %d versions, then completed: %s, want %s", at, got, want)
		}
		if out, err := run(t, args[:len(args)-1]...); err != nil || !strings.Contains(out, "8 files were imported before") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// An interrupt ends an import in good order: nothing of the file that was read is left.
func TestImportIsInterrupted(t *testing.T) {
	src, lake := t.TempDir(), t.TempDir()
	idFiles(t, src, 1, 100)
	args := []string{"import", src, "--lake", "l=" + lake, "--into", "l.t", "-q"}
	if out, err := run(t, args...); err != nil {
		t.Fatal(err, out)
	}
	idFiles(t, src, 2, 100)
	var b bytes.Buffer
	b.WriteString("id,text\n")
	for i := range 800_000 {
		fmt.Fprintf(&b, "%d,a text that takes some time to read %d\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(src, "f00.csv"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := process(t, append(args, "--again")...)
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(lake, "t.lance", "data")
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(time.Millisecond) {
		if entries, _ := os.ReadDir(data); len(entries) > 1 {
			break
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "interrupted: what was committed stays") {
		t.Fatalf("%v: %s", err, out.String())
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if got := countIDs(t, lake); got != "100\t100\t4950" {
		t.Fatal(got)
	}
}

// A disk that takes no more, a folder that may not be written: a clear error, and the table as it was.
func TestImportCannotWrite(t *testing.T) {
	src, lake := t.TempDir(), t.TempDir()
	idFiles(t, src, 1, 100)
	args := []string{"import", src, "--lake", "l=" + lake, "--into", "l.t"}
	if out, err := run(t, args...); err != nil {
		t.Fatal(err, out)
	}
	idFiles(t, src, 2, 100)
	var b bytes.Buffer
	b.WriteString("id,text\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "%d,%x\n", i, i*7919*104729)
	}
	if err := os.WriteFile(filepath.Join(src, "f01.csv"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	// A file of this process may have 40 KiB, as on a disk that is full then.
	small := process(t, "import", filepath.Join(src, "f01.csv"), "--lake", "l="+lake, "--into", "l.t")
	limited := exec.Command("sh", append([]string{"-c", `ulimit -f 80; exec "$@"`, "sh", small.Path}, small.Args[1:]...)...)
	limited.Env = small.Env
	out, err := limited.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "file too large") && !strings.Contains(string(out), "File too large") {
		t.Fatalf("%v: %s", err, out)
	}
	if got := countIDs(t, lake); got != "100\t100\t4950" {
		t.Fatal(got)
	}
	if entries, err := os.ReadDir(filepath.Join(lake, "t.lance", "data")); err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	// A file stands where a folder must be: that stops root, too.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "t.lance"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, "import", filepath.Join(src, "f01.csv"), "--into", filepath.Join(other, "t.lance")); err == nil {
		t.Fatalf("%s", out)
	}
	locked := filepath.Join(other, "locked")
	open := filepath.Join(other, "f.csv")
	//nolint:gosec // another user must get there
	if err := errors.Join(os.Mkdir(locked, 0o555), os.WriteFile(open, []byte("id\n1\n"), 0o644), os.Chmod(filepath.Dir(other), 0o755)); err != nil {
		t.Fatal(err)
	}
	refused := process(t, "import", open, "--into", filepath.Join(locked, "u.lance"))
	refused.Env = append(refused.Env, asNobody+"=1")
	out, err = refused.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), "u.lance") {
		t.Fatalf("%v: %s", err, out)
	}
}

// What a user sees of bad rows, of a table that is made, and of an export.
func TestImportAndExportSpeak(t *testing.T) {
	dir := t.TempDir()
	lake := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	people := put("people.csv", "id;name;born\n1;Ann;31.12.1990\n2;Bob;NA\n")
	out, err := run(t, "import", people, "--lake", "shop="+lake, "--into", "shop.people")
	if err != nil || !strings.Contains(out, "created shop.people: id BIGINT, name VARCHAR, born DATE\n") || !strings.Contains(out, "imported 2 rows of 1 file into shop.people, version 1, in ") {
		t.Fatalf("%v: %s", err, out)
	}
	more := put("more.csv", "id,name,born\n3,Cy,1990-01-02\nx,Di,1990-01-02\n")
	out, err = run(t, "import", more, "--lake", "shop="+lake, "--into", "shop.PEOPLE")
	if err == nil || !strings.Contains(err.Error(), "more.csv:3 column id value \"x\": no BIGINT\nNothing of this file was committed.") {
		t.Fatalf("%v: %s", err, out)
	}
	bad := filepath.Join(dir, "bad.ndjson")
	out, err = run(t, "import", more, "--into", filepath.Join(lake, "people.lance"), "--bad-rows", "skip", "--bad-rows-file", bad)
	if err != nil || !strings.Contains(out, "bad row: file://"+more+":3 column id") || !strings.Contains(out, "imported 1 row of 1 file") || !strings.Contains(out, "1 bad row was left out") {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(text, &line); err != nil || line["raw"] != "x,Di,1990-01-02" || line["line"] != 3.0 || line["column"] != "id" {
		t.Fatalf("%v: %s", err, text)
	}
	to := filepath.Join(dir, "out.parquet")
	out, err = run(t, "export", "shop.people", "--lake", "shop="+lake, "--columns", "name,id", "--where", "born IS NOT NULL", "--to", to)
	if err != nil || !strings.Contains(out, "exported 2 rows to ") {
		t.Fatalf("%v: %s", err, out)
	}
	out, err = run(t, "export", "shop.people", "--lake", "shop="+lake, "--version", "1", "--to", to, "--force")
	if err != nil || !strings.Contains(out, "exported 2 rows to ") {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err = run(t, "import", to, "--into", filepath.Join(lake, "copy.lance"), "--columns", "who=name"); err != nil || !strings.Contains(out, ": who VARCHAR\n") {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{
		{"import", people, "--into", "people"}, {"import", people, "--into", "x.y", "--lake", "shop=" + lake}, {"import", people, "--into", "shop.p", "--lake", "shop=" + lake, "--bad-rows", "x"},
		{"import", people, "--into", "shop.p", "--lake", "shop=" + lake, "--schema", "id NOTYPE"}, {"import", filepath.Join(dir, "none.csv"), "--into", "shop.p", "--lake", "shop=" + lake},
		{"export", "--to", to}, {"export", "shop.none", "--lake", "shop=" + lake, "--to", to, "--force"}, {"export", "shop.people", "--lake", "shop=" + lake, "--to", to},
	} {
		if out, err := run(t, args...); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}

func TestMeter(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	m := newMeter(&out, false)
	m.now = func() time.Time { return now }
	m.start, m.last = now, now
	m.show(meterState{rows: 1, bytes: 1, size: 100})
	now = now.Add(10 * time.Second)
	m.show(meterState{rows: 50_000, bytes: 25e6, size: 100e6, file: 2, files: 5})
	m.isTerminal = true
	m.show(meterState{rows: 50_001, bytes: 25e6, size: 100e6})
	now = now.Add(time.Second)
	m.show(meterState{rows: 60_000, bytes: 50e6, size: 100e6})
	m.finish()
	want := " 25%  50000 rows  2.5 MB/s  file 2 of 5  30s left\n\r[############............]  50%  60000 rows  4.5 MB/s  11s left\x1b[K\r\x1b[K"
	if out.String() != want {
		t.Fatalf("%q, want %q", out.String(), want)
	}
}
