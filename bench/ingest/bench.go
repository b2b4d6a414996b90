package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lakesql/lakesql/internal/spawn"
)

//go:embed peer.py
var peerScript string

// task is one piece of work, done by a process of its own, and the same for both engines.
type task struct {
	Do      string // write, copy or index
	Dataset string // a folder
	Out     string // a folder that is not there yet
	Version string
	RowsMax int64
	Column  string
	Kind    string
	Lists   int
}

// measured is one step of a task.
type measured struct {
	Step    string
	Rows    int64
	Seconds float64 // of the wall
	Durable float64 // until what was written was on the disk too; lakesql's Seconds include that
	User    float64 // seconds of CPU, all threads
	System  float64 // and in the system
	memory  float64 // bytes that came on top while the step ran, mappings of files not counted
}

// side is a way to have tasks done.
type side struct {
	name string
	argv []string // what comes before the task
}

func enginesOf(python string) ([]side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []side{
		{name: "lakesql", argv: []string{self, "-task"}},
		{name: "pylance", argv: []string{python, "-c", peerScript}},
	}, nil
}

// do runs a task and returns its steps.
func (e side) do(t task) ([]measured, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(e.argv[0], append(e.argv[1:len(e.argv):len(e.argv)], string(text))...) //nolint:gosec // what the caller named
	var log strings.Builder
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	steps, err := follow(cmd.Process.Pid, in, out)
	if err = errors.Join(err, in.Close(), cmd.Wait()); err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w\n%s", e.name, t.Do, t.Dataset, err, log.String())
	}
	return steps, nil
}

// follow lets the child begin each step when the disk is at rest, and watches its memory meanwhile.
func follow(pid int, in io.Writer, out io.Reader) ([]measured, error) {
	var steps []measured
	lines := bufio.NewScanner(out)
	var watch *memoryWatch
	for lines.Scan() {
		var m measured
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if m.Step == "" { // it is ready
			syscall.Sync()
			watch = watchMemory(pid)
			if _, err := io.WriteString(in, "\n"); err != nil {
				return nil, err
			}
			continue
		}
		var err error
		if m.memory, err = watch.stop(); err != nil {
			return nil, err
		}
		steps = append(steps, m)
	}
	return steps, lines.Err()
}

// memoryWatch looks at the memory of a process every few milliseconds.
type memoryWatch struct {
	group *spawn.Group
	done  chan struct{}
	most  int64
	first int64
}

func watchMemory(pid int) *memoryWatch {
	w := &memoryWatch{done: make(chan struct{})}
	w.first = anonymousBytes(pid)
	w.group, _ = spawn.WithContext(context.Background(), 1)
	w.group.Go("watch memory", func() error {
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		for {
			w.most = max(w.most, anonymousBytes(pid))
			select {
			case <-w.done:
				return nil
			case <-tick.C:
			}
		}
	})
	return w
}

func (w *memoryWatch) stop() (float64, error) {
	close(w.done)
	return float64(w.most - w.first), w.group.Wait()
}

// anonymousBytes is the resident memory of a process that is not the page cache's.
func anonymousBytes(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for text := range strings.SplitSeq(string(b), "\n") {
		var kib int64
		if n, _ := fmt.Sscanf(text, "RssAnon: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// line is one line of the table: what each engine took in each round.
type line struct {
	table, step string
	rows        int64
	runs        map[string][]measured // by engine
}

type bench struct {
	options
	tmp     string
	engines []side
	results map[string]*line
	order   []string // of the keys of results
	bytes   map[string]*sizes
	tables  []string
}

func (b *bench) add(table, engine string, m measured) {
	k := table + "\x00" + m.Step
	l, ok := b.results[k]
	if !ok {
		l = &line{table: table, step: m.Step, runs: map[string][]measured{}}
		b.results[k] = l
		b.order = append(b.order, k)
	}
	l.rows = m.Rows
	l.runs[engine] = append(l.runs[engine], m)
}

// turns calls f for each engine; who is first changes from round to round.
func (b *bench) turns(round int, f func(e side, out string) error) error {
	for i := range b.engines {
		e := b.engines[(i+round)%len(b.engines)]
		out := filepath.Join(b.tmp, e.name)
		if err := f(e, out); err != nil {
			return err
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	return nil
}

// writes has the rows of a dataset written, out of memory and as a copy.
func (b *bench) writes(round int, path string) error {
	name := filepath.Base(filepath.Dir(path)) + "/" + tableName(path)
	for _, what := range []string{"write", "copy"} {
		if !b.does(what) {
			continue
		}
		err := b.turns(round, func(e side, out string) error {
			steps, err := e.do(task{Do: what, Dataset: path, Out: out, Version: b.version, RowsMax: b.rowsMax})
			if err != nil {
				return err
			}
			b.add(name, e.name, sum(what, steps))
			if what == "write" && round == 0 {
				return b.measureFiles(name, e.name, out)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sum makes one step of those of all fragments.
func sum(name string, steps []measured) measured {
	out := measured{Step: name}
	for _, s := range steps {
		out.Rows += s.Rows
		out.Seconds += s.Seconds
		out.Durable += s.Durable
		out.User += s.User
		out.System += s.System
		out.memory = max(out.memory, s.memory)
	}
	return out
}

// index has an index built, then 1 % of the rows appended and the index updated: as a segment of its own, and after another 1 % merged with all others.
func (b *bench) index(round int, i indexed) error {
	if !b.does("index") {
		return nil
	}
	return b.turns(round, func(e side, out string) error {
		if err := linkTree(i.dataset, out); err != nil {
			return err
		}
		steps, err := e.do(task{Do: "index", Dataset: out, Column: i.column, Kind: i.kind, Lists: b.lists})
		if err != nil {
			return err
		}
		for _, s := range steps {
			b.add(i.kind+" "+i.column, e.name, s)
		}
		return b.measureIndex(i.kind+" "+i.column, e.name, out)
	})
}

// linkTree makes a copy of a dataset. Its files are never changed in place, so links do where the file system has them.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case filepath.Ext(path) != ".json" && os.Link(path, target) == nil:
			return nil
		}
		content, err := os.ReadFile(path) //nolint:gosec // the caller's dataset
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}
