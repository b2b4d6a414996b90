package object

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
)

// Memory is a store in memory, for tests and for results that never reach a disk.
type Memory struct {
	url string
	now func() time.Time

	mu     sync.RWMutex
	files  map[string]memoryFile
	closed bool
}

type memoryFile struct {
	content []byte
	modTime time.Time
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store. name makes its URL, memory://name.
func NewMemory(name string) *Memory {
	return &Memory{url: "memory://" + name, now: time.Now, files: make(map[string]memoryFile)}
}

// URL implements Store.
func (m *Memory) URL() string { return m.url }

func (m *Memory) isClosed() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.closed
}

// Open implements Store.
func (m *Memory) Open(ctx context.Context, p string) (File, error) {
	if err := errors.Join(ctx.Err(), checkFilePath(p)); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil, errClosed(m.url)
	}
	f, ok := m.files[p]
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "open %q: not found", p)
	}
	return &mappedFile{store: m, path: p, bytes: f.content}, nil
}

// Stat implements Store.
func (m *Memory) Stat(ctx context.Context, p string) (Entry, error) {
	if err := errors.Join(ctx.Err(), CheckPath(p)); err != nil {
		return Entry{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if f, ok := m.files[p]; ok {
		return Entry{Name: path.Base(p), SizeBytes: int64(len(f.content)), ModTime: f.modTime}, nil
	}
	for name := range m.files {
		if p == "" || strings.HasPrefix(name, p+"/") {
			return Entry{Name: path.Base(p), IsDir: true}, nil
		}
	}
	return Entry{}, errs.New(errs.ErrNotFound, "stat %q: not found", p)
}

// List implements Store.
func (m *Memory) List(ctx context.Context, dir string) ([]Entry, error) {
	if err := errors.Join(ctx.Err(), CheckPath(dir)); err != nil {
		return nil, err
	}
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := make(map[string]Entry)
	for name, f := range m.files {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		first, _, isDeeper := strings.Cut(rest, "/")
		if isDeeper {
			found[first] = Entry{Name: first, IsDir: true}
		} else {
			found[first] = Entry{Name: first, SizeBytes: int64(len(f.content)), ModTime: f.modTime}
		}
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Put implements Store.
func (m *Memory) Put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	if err := errors.Join(ctx.Err(), checkFilePath(p)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed(m.url)
	}
	if _, exists := m.files[p]; exists && ifAbsent {
		return errs.New(errs.ErrExists, "create %q: already exists", p)
	}
	m.files[p] = memoryFile{content: bytes.Clone(content), modTime: m.now()}
	return nil
}

// Create implements Store.
func (m *Memory) Create(ctx context.Context, p string) (Writer, error) {
	if err := errors.Join(ctx.Err(), checkFilePath(p)); err != nil {
		return nil, err
	}
	return &bufferWriter{path: p, put: func(b []byte) error { return m.Put(context.WithoutCancel(ctx), p, b, false) }}, nil
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, p string) error {
	if err := errors.Join(ctx.Err(), checkFilePath(p)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, p)
	return nil
}

// Clone returns a store with the same files, for tests that try many continuations of one state.
func (m *Memory) Clone() *Memory {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return &Memory{url: m.url, now: m.now, files: maps.Clone(m.files)}
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// bufferWriter collects a file in memory and hands it over at Close.
type bufferWriter struct {
	path   string
	buf    bytes.Buffer
	put    func([]byte) error
	isDone bool
}

var _ Writer = (*bufferWriter)(nil)

func (w *bufferWriter) OffsetBytes() int64 { return int64(w.buf.Len()) }

func (w *bufferWriter) Write(b []byte) (int, error) {
	if w.isDone {
		return 0, errs.New(errs.ErrInternal, "write to %q after its end", w.path)
	}
	return w.buf.Write(b)
}

func (w *bufferWriter) Close() error {
	if w.isDone {
		return nil
	}
	w.isDone = true
	return w.put(w.buf.Bytes())
}

func (w *bufferWriter) Abort() error {
	w.isDone = true
	return nil
}
