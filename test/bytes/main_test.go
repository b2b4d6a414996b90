package bytes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// recorder remembers which bytes of which file were asked for. Closing it leaves the store open for the next engine.
type recorder struct {
	object.Store
	mu    sync.Mutex
	reads map[string][]object.Range
}

func newRecorder(s object.Store) *recorder {
	return &recorder{Store: s, reads: make(map[string][]object.Range)}
}

func (r *recorder) Close() error { return nil }

func (r *recorder) Open(ctx context.Context, p string) (object.File, error) {
	f, err := r.Store.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	return &recordedFile{File: f, of: r}, nil
}

func (r *recorder) note(p string, rs ...object.Range) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[p] = append(r.reads[p], rs...)
}

// touched says whether anything of the region was read.
func (r *recorder) touched(p string, region object.Range) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.reads[p] {
		if x.Offset < region.Offset+region.Size && region.Offset < x.Offset+x.Size {
			return true
		}
	}
	return false
}

type recordedFile struct {
	object.File
	of *recorder
}

func (f *recordedFile) Read(ctx context.Context, r object.Range) ([]byte, error) {
	f.of.note(f.Path(), r)
	return f.File.Read(ctx, r)
}

func (f *recordedFile) ReadMany(ctx context.Context, rs []object.Range) ([][]byte, error) {
	f.of.note(f.Path(), rs...)
	return f.File.ReadMany(ctx, rs)
}

// keepOpen is a store that outlives the catalogs over it.
type keepOpen struct{ object.Store }

func (keepOpen) Close() error { return nil }

// query opens a new engine over store, runs the settings and the statement, and returns its rows as text.
func query(t *testing.T, store object.Store, opts lance.Options, settings []string, text string) []string {
	t.Helper()
	ctx := context.Background()
	e, err := engine.Open(ctx, engine.Config{Catalogs: []source.Catalog{lance.Open("lake", store, opts)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if used := e.Budget().Used(); used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	}()
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	defer s.Close()
	for _, set := range settings {
		if err := s.QueryAll(ctx, set, func(*engine.Result) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Query(ctx, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() {
		if err := res.Close(); err != nil {
			t.Error(err)
		}
		if used := res.Budget().Used(); used != 0 {
			t.Errorf("the statement left %d bytes behind", used)
		}
	}()
	return readRows(t, res)
}

func readRows(t *testing.T, res *engine.Result) []string {
	t.Helper()
	var out []string
	for {
		b, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			cells := make([]string, b.NumCols())
			for c := range cells {
				cells[c] = b.Column(c).ValueStr(i)
			}
			out = append(out, strings.Clone(strings.Join(cells, "\t"))) // the batch gives its memory back
		}
		b.Release()
	}
}

// rows yields batches that make(i) gives for i = 0 to n-1.
type rows struct {
	n, at int
	make  func(i int) arrow.RecordBatch
}

func (r *rows) Next(context.Context) (arrow.RecordBatch, error) {
	if r.at == r.n {
		return nil, io.EOF
	}
	r.at++
	return r.make(r.at - 1), nil
}

// find returns where content lies in a file; it must be there once.
func find(t *testing.T, store object.Store, p string, content []byte) object.Range {
	t.Helper()
	ctx := context.Background()
	f, err := store.Open(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	all, err := f.Read(ctx, object.Range{Size: f.SizeBytes()})
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(all, content)
	if at < 0 || bytes.Contains(all[at+1:], content) {
		t.Fatalf("%s: the %d bytes looked for are not there, or more than once", p, len(content))
	}
	return object.Range{Offset: int64(at), Size: int64(len(content))}
}

// filesBelow lists the files in a folder and its folders.
func filesBelow(t *testing.T, store object.Store, dir string) []string {
	t.Helper()
	entries, err := store.List(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		p := object.Join(dir, e.Name)
		if e.IsDir {
			out = append(out, filesBelow(t, store, p)...)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// wantPlan holds a plan against what it must and must not say.
func wantPlan(t *testing.T, plan []string, want, never string) {
	t.Helper()
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, want) || strings.Contains(text, never) {
		t.Errorf("the plan does not say %q, or says %q:\n%s", want, never, text)
	}
}
