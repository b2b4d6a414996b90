package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakesql/lakesql/demo"
)

// asCommand has this test binary run as lakesql.
const asCommand = "LAKESQL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		if os.Getenv(asNobody) != "" && os.Geteuid() == 0 {
			if err := syscall.Setuid(65534); err != nil {
				panic(err)
			}
		}
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asNobody in the environment makes the command one of a user without rights, where this process is root's.
const asNobody = "LAKESQL_TEST_NOBODY"

// process is a lakesql of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// run runs a command in this process and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, args...)
	if err != nil {
		t.Fatalf("lakesql %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func count(t *testing.T, dir, where string) string {
	t.Helper()
	return mustRun(t, "query", "--lake", "demo="+dir, "-e", "SELECT count(*) FROM images WHERE "+where)
}

// line returns the line of an index in a list.
func line(list, name string) string {
	for l := range strings.Lines(list) {
		if strings.HasPrefix(l, name+" ") {
			return strings.Join(strings.Fields(l), " ")
		}
	}
	return ""
}

func TestFourProcessesBuildAnIndex(t *testing.T) {
	dir := t.TempDir()
	if _, err := demo.Generate(context.Background(), demo.Options{Dir: dir, Rows: 4000, Dim: 8, NoIndices: true}); err != nil {
		t.Fatal(err)
	}
	images := filepath.Join(dir, "images.lance")
	const labels = "array_has_all(labels, ['damage', 'wet'])"
	want := count(t, dir, labels)
	for _, spec := range [][]string{{"--column", "labels", "--kind", "label_list"}, {"--column", "embedding", "--kind", "IVF_FLAT", "--lists", "16"}} {
		name := spec[1] + "_idx"
		plan := filepath.Join(dir, spec[1]+".json")
		mustRun(t, append([]string{"index", "plan", images, "--tasks", "4", "--out", plan}, spec...)...)
		var tasks []*exec.Cmd
		args := []string{"index", "commit", plan}
		for i := range 4 {
			result := fmt.Sprintf("%s.%d", plan, i)
			args = append(args, result)
			p := process(t, "index", "build", plan, "--task", fmt.Sprint(i), "--out", result)
			p.Stderr = os.Stderr
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, p)
		}
		for i, p := range tasks {
			if err := p.Wait(); err != nil {
				t.Fatalf("task %d: %v", i, err)
			}
		}
		mustRun(t, args...)
		list := mustRun(t, "index", "list", images)
		if l := line(list, name); !strings.Contains(l, " 4 4000 0 ") {
			t.Fatalf("%s is not in four segments over all rows:\n%s", name, list)
		}
		mustRun(t, "index", "merge", images, name)
		if l := line(mustRun(t, "index", "list", images), name); !strings.Contains(l, " 1 4000 0 ") {
			t.Fatalf("after merge: %s", l)
		}
	}
	if got := count(t, dir, labels); got != want {
		t.Errorf("by index:\n%s\nby scan:\n%s", got, want)
	}
	if plan := mustRun(t, "query", "--lake", "demo="+dir, "-e", "EXPLAIN SELECT count(*) FROM images WHERE "+labels); !strings.Contains(plan, "labels_idx") {
		t.Errorf("the plan does not use the index:\n%s", plan)
	}
}

func TestIndexCommands(t *testing.T) {
	dir := t.TempDir()
	if _, err := demo.Generate(context.Background(), demo.Options{Dir: dir, Rows: 500, Dim: 8, NoIndices: true}); err != nil {
		t.Fatal(err)
	}
	images := filepath.Join(dir, "images.lance")
	mustRun(t, "index", "create", images, "--column", "captured_at", "--kind", "zonemap", "--rows-per-zone", "50", "--name", "zones")
	if l := line(mustRun(t, "index", "list", images), "zones"); !strings.HasPrefix(l, "zones captured_at ZONEMAP ") {
		t.Errorf("list: %q", l)
	}
	if plan := mustRun(t, "query", "--lake", "demo="+dir, "-e", "EXPLAIN SELECT count(*) FROM images WHERE captured_at < '1990-01-01'"); !strings.Contains(plan, "zones") {
		t.Errorf("the plan does not use the zones:\n%s", plan)
	}
	if n := count(t, dir, "captured_at < '1990-01-01'"); !strings.Contains(n, "0") {
		t.Errorf("rows before 1990: %s", n)
	}
	if out := mustRun(t, "index", "update", images, "zones"); !strings.Contains(out, "nothing to do") {
		t.Errorf("update: %s", out)
	}
	for _, c := range []struct{ args, want string }{
		{"index create IMAGES --column captured_at --kind zonemap --name zones", "exists"},
		{"index create IMAGES --column nope --kind btree", `no column "nope"`},
		{"index create IMAGES --column labels --kind btree", "BTREE index cannot hold it"},
		{"index create IMAGES --column labels --kind fts", "FTS"},
		{"index create IMAGES.gone --column labels --kind btree", "does not exist"},
		{"index update IMAGES nope", `no index "nope"`},
		{"index update IMAGES zones --merge -3", "--merge -3"},
		{"index drop IMAGES nope", `no index "nope"`},
		{"index build IMAGES/nothing.json --task 0", "no such file"},
		{"index create IMAGES --kind btree", `"column" not set`},
		{"index create IMAGES --column id --kind btree --memory 0", "0 MiB"},
	} {
		out, err := run(t, strings.Fields(strings.ReplaceAll(c.args, "IMAGES", images))...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.args, err, c.want, out)
		}
	}
	mustRun(t, "index", "drop", images, "zones")
	if list := mustRun(t, "index", "list", images); line(list, "zones") != "" {
		t.Errorf("dropped, and there:\n%s", list)
	}
	for _, c := range []string{"create", "update", "merge", "drop", "list", "plan", "build", "commit"} {
		if out := mustRun(t, "index", c, "--help"); !strings.Contains(out, "Examples:\n  lakesql index "+c) {
			t.Errorf("help of %s has no example:\n%s", c, out)
		}
	}
}
