//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
)

// Request is one request to an engine: the key op and the keys that the operation takes.
type Request map[string]any

// Engine is a running engine, as one test sees it. Requests run one after the other.
type Engine struct {
	*process
	tb    testing.TB
	files int
	dir   string
}

// process is an engine's process. It ends with its input: when the tests end, or earlier.
type process struct {
	name string
	mu   sync.Mutex // held from a request to its answer
	in   io.WriteCloser
	out  *bufio.Reader
}

// running are the processes that tests share, by name: starting one takes longer than most tests.
var running struct {
	sync.Mutex
	processes map[string]*process
}

// interpreter is the one that LAKESQL_PYTHON names; without it the one that setup installed, else python3.
func interpreter() string {
	if named := os.Getenv("LAKESQL_PYTHON"); named != "" {
		return named
	}
	if found := installed("venv"); found != "" {
		return found
	}
	return "python3"
}

// StartPython starts pylance.
func StartPython(tb testing.TB) *Engine {
	tb.Helper()
	return shared(tb, "pylance", interpreter())
}

// StartAnotherPython starts a pylance of its own, to run beside the others.
func StartAnotherPython(tb testing.TB) *Engine {
	tb.Helper()
	return start(tb, "another pylance", interpreter(), "engine.py")
}

// shared returns the process of that name, which it starts at the first time.
func shared(tb testing.TB, name, python string) *Engine {
	tb.Helper()
	running.Lock()
	defer running.Unlock()
	if running.processes[name] == nil {
		if running.processes == nil {
			running.processes = make(map[string]*process)
		}
		running.processes[name], _ = launch(tb, name, python, "engine.py")
	}
	return &Engine{process: running.processes[name], tb: tb, dir: tb.TempDir()}
}

// StartPythons starts the pinned pylance and a newer one, by name.
func StartPythons(tb testing.TB) map[string]*Engine {
	tb.Helper()
	next := installed("venv-next")
	if next == "" {
		tb.Fatal("the newer pylance is missing: run test/interop/setup")
	}
	return map[string]*Engine{"pylance": StartPython(tb), "newer pylance": shared(tb, "newer pylance", next)}
}

// installed returns the interpreter of an environment that setup made, or "".
func installed(venv string) string {
	_, file, _, _ := runtime.Caller(0)
	python := filepath.Join(filepath.Dir(file), "..", "..", ".cache", "interop", venv, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return ""
	}
	return python
}

// StartNode starts LanceDB.
func StartNode(tb testing.TB) *Engine {
	tb.Helper()
	return start(tb, "lancedb", "node", "engine.mjs")
}

// start starts an engine that ends with the test.
func start(tb testing.TB, name, command, script string) *Engine {
	tb.Helper()
	p, wait := launch(tb, name, command, script)
	tb.Cleanup(func() {
		_ = p.in.Close()
		wait()
	})
	return &Engine{process: p, tb: tb, dir: tb.TempDir()}
}

func launch(tb testing.TB, name, command, script string) (p *process, wait func()) {
	tb.Helper()
	cmd := exec.Command(command, script) //nolint:gosec // the test's own script
	cmd.Dir = filepath.Join(testutil.Root(tb), "test", "interop")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("%s does not start (see doc.go for what to install): %v", name, err)
	}
	p = &process{name: name, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	if _, err := p.answer(); err != nil {
		tb.Fatalf("%s: %v\n%s", name, err, stderr.String())
	}
	return p, func() {
		if err := cmd.Wait(); err != nil {
			tb.Logf("%s ended: %v\n%s", name, err, stderr.String())
		}
	}
}

// On returns the engine for a subtest, which it fails in place of the test that started it.
func (e *Engine) On(tb testing.TB) *Engine {
	return &Engine{process: e.process, tb: tb, dir: tb.TempDir()}
}

func (p *process) answer() (json.RawMessage, error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	var a struct {
		OK    json.RawMessage `json:"ok"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, fmt.Errorf("answer %q: %w", line, err)
	}
	if a.Error != "" {
		return nil, fmt.Errorf("%s", a.Error)
	}
	return a.OK, nil
}

// Try runs one request and returns the engine's error, if any.
func (e *Engine) Try(op string, r Request) (json.RawMessage, error) {
	e.tb.Helper()
	all := Request{"op": op}
	for k, v := range r {
		all[k] = v
	}
	b, err := json.Marshal(all)
	if err != nil {
		e.tb.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.in.Write(append(b, '\n')); err != nil {
		e.tb.Fatalf("%s: %v", e.name, err)
	}
	return e.answer()
}

// Do runs one request, decodes the answer into into (nil = ignore) and fails the test on an error.
func (e *Engine) Do(op string, r Request, into any) {
	e.tb.Helper()
	a, err := e.Try(op, r)
	if err != nil {
		e.tb.Fatalf("%s %s %v: %v", e.name, op, r, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(a, into); err != nil {
		e.tb.Fatalf("%s %s: answer %s: %v", e.name, op, a, err)
	}
}

// Rows runs a request of pylance that yields rows (scan, take, file). The caller releases the table.
func (e *Engine) Rows(op string, r Request) arrow.Table {
	e.tb.Helper()
	path := e.newFile()
	all := Request{"out": path}
	for k, v := range r {
		all[k] = v
	}
	e.Do(op, all, nil)
	return readStream(e.tb, path)
}

// readStream reads a file of rows. The caller releases the table.
func readStream(tb testing.TB, path string) arrow.Table {
	tb.Helper()
	f, err := os.Open(path) //nolint:gosec // the test's own folder
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	reader, err := ipc.NewReader(f, ipc.WithAllocator(memory.DefaultAllocator))
	if err != nil {
		tb.Fatal(err)
	}
	defer reader.Release()
	var batches []arrow.RecordBatch
	for reader.Next() {
		b := reader.RecordBatch()
		b.Retain()
		batches = append(batches, b)
	}
	if reader.Err() != nil {
		tb.Fatal(reader.Err())
	}
	return array.NewTableFromRecords(reader.Schema(), batches)
}

// Send writes a batch where the engine can read it and returns the path.
func (e *Engine) Send(batches ...arrow.RecordBatch) string {
	e.tb.Helper()
	path := e.newFile()
	f, err := os.Create(path) //nolint:gosec // the test's own folder
	if err != nil {
		e.tb.Fatal(err)
	}
	w := ipc.NewWriter(f, ipc.WithSchema(batches[0].Schema()))
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			e.tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		e.tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		e.tb.Fatal(err)
	}
	return path
}

func (e *Engine) newFile() string {
	e.files++
	return filepath.Join(e.dir, fmt.Sprintf("rows-%d.arrows", e.files))
}

// Info is what pylance says about a dataset.
type Info struct {
	Version            uint64 `json:"version"`
	Rows               int64  `json:"rows"`
	DataStorageVersion string `json:"data_storage_version"`
	StableRowIDs       bool   `json:"stable_row_ids"`
	Fragments          []struct {
		ID      uint64 `json:"id"`
		Rows    int64  `json:"rows"`
		Deleted int64  `json:"deleted"`
	} `json:"fragments"`
	Indices []struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		Segments int    `json:"segments"`
	} `json:"indices"`
}

// Info asks pylance about a dataset.
func (e *Engine) Info(path string) Info {
	e.tb.Helper()
	var out Info
	e.Do("info", Request{"path": path}, &out)
	return out
}

// Explain returns pylance's plan of a scan.
func (e *Engine) Explain(r Request) string {
	e.tb.Helper()
	var out struct{ Plan string }
	e.Do("explain", r, &out)
	return out.Plan
}

// Column returns one column of a table as one array. The caller releases it.
func Column(tb testing.TB, t arrow.Table, name string) arrow.Array {
	tb.Helper()
	at := t.Schema().FieldIndices(name)
	if len(at) != 1 {
		tb.Fatalf("no column %q in %s", name, t.Schema())
	}
	chunks := t.Column(at[0]).Data().Chunks()
	if len(chunks) == 0 {
		return array.MakeArrayOfNull(memory.DefaultAllocator, t.Schema().Field(at[0]).Type, 0)
	}
	out, err := array.Concatenate(chunks, memory.DefaultAllocator)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// MustEqual compares a column of an answer with what was written.
func MustEqual(tb testing.TB, what string, want, got arrow.Array) {
	tb.Helper()
	if want.Len() != got.Len() {
		tb.Fatalf("%s: %d rows, want %d", what, got.Len(), want.Len())
	}
	if equalArrays(want, got) {
		return
	}
	for i := range want.Len() {
		if w, g := array.NewSlice(want, int64(i), int64(i+1)), array.NewSlice(got, int64(i), int64(i+1)); !equalArrays(w, g) {
			tb.Fatalf("%s: row %d is %s, want %s", what, i, g, w)
		}
	}
	tb.Fatalf("%s: the arrays differ", what)
}

// equalArrays compares values; types may differ in the names of list items.
func equalArrays(want, got arrow.Array) bool {
	if want.DataType().ID() != got.DataType().ID() {
		return false
	}
	if testutil.SameValues(want, got) {
		return true
	}
	return want.String() == got.String()
}
