package object

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
)

// FaultyOptions says when a Faulty store fails. Operations are counted from 1: Open, Stat, List, Put, Create, Delete,
// each Read or ReadMany of a file, each Write and the Close of a writer, and what WithFolders adds.
type FaultyOptions struct {
	FailAt      int64  // the operation that fails; 0 = none
	Failures    int64  // how many fail in a row; 0 = 1
	Crash       bool   // every operation after it fails too, as if the process had died
	AfterEffect bool   // operation FailAt takes effect before its error is reported (an answer that got lost)
	Err         error  // what it fails with; nil = an ErrIO
	OnlyPath    string // count only operations on this path; "" = all
	OnlyChanges bool   // count only operations after which something else is there: Put, Close of a writer, Delete, and those of folders
	// Instead is called in place of failing, before the operation or, with AfterEffect, after it; the operation then goes on.
	Instead func()
}

// Faulty wraps a store and fails one operation, or all from one on.
type Faulty struct {
	store Store
	opts  FaultyOptions

	mu   sync.Mutex
	done int64
}

var _ Store = (*Faulty)(nil)

// NewFaulty wraps store.
func NewFaulty(store Store, opts FaultyOptions) *Faulty {
	if opts.Err == nil {
		opts.Err = errs.New(errs.ErrIO, "injected fault")
	}
	opts.Failures = max(opts.Failures, 1)
	return &Faulty{store: store, opts: opts}
}

// Operations returns how many operations were counted so far.
func (f *Faulty) Operations() int64 { f.mu.Lock(); defer f.mu.Unlock(); return f.done }

// Arm counts from 0 again and fails as opts say from now on.
func (f *Faulty) Arm(opts FaultyOptions) {
	opts = NewFaulty(nil, opts).opts
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opts, f.done = opts, 0
}

// operation is what step runs.
type operation struct {
	name, path string
	changes    bool
}

// step counts one operation and runs it, or fails it.
func (f *Faulty) step(op operation, run func() error) error {
	f.mu.Lock()
	opts := f.opts
	if opts.OnlyPath != "" && opts.OnlyPath != op.path || opts.OnlyChanges && !op.changes {
		f.mu.Unlock()
		return run()
	}
	f.done++
	n := f.done
	f.mu.Unlock()
	if opts.FailAt == 0 || n < opts.FailAt || n >= opts.FailAt+opts.Failures && !opts.Crash {
		return run()
	}
	if opts.Instead != nil && !opts.AfterEffect {
		opts.Instead()
		return run()
	}
	if opts.AfterEffect && n < opts.FailAt+opts.Failures {
		if err := run(); err != nil {
			return err
		}
		if opts.Instead != nil {
			opts.Instead()
			return nil
		}
	}
	return fmt.Errorf("%s %q: %w", op.name, op.path, opts.Err)
}

// Open implements Store.
func (f *Faulty) Open(ctx context.Context, p string) (File, error) {
	var out File
	err := f.step(operation{name: "open", path: p}, func() (err error) { out, err = f.store.Open(ctx, p); return err })
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: out, of: f}, nil
}

// Stat implements Store.
func (f *Faulty) Stat(ctx context.Context, p string) (out Entry, err error) {
	err = f.step(operation{name: "stat", path: p}, func() (err error) { out, err = f.store.Stat(ctx, p); return err })
	return out, err
}

// List implements Store.
func (f *Faulty) List(ctx context.Context, dir string) (out []Entry, err error) {
	err = f.step(operation{name: "list", path: dir}, func() (err error) { out, err = f.store.List(ctx, dir); return err })
	return out, err
}

// Put implements Store.
func (f *Faulty) Put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	return f.step(operation{name: "put", path: p, changes: true}, func() error { return f.store.Put(ctx, p, content, ifAbsent) })
}

// Create implements Store.
func (f *Faulty) Create(ctx context.Context, p string) (Writer, error) {
	var out Writer
	err := f.step(operation{name: "create", path: p}, func() (err error) { out, err = f.store.Create(ctx, p); return err })
	if err != nil {
		return nil, err
	}
	return &faultyWriter{Writer: out, of: f, path: p}, nil
}

// Delete implements Store.
func (f *Faulty) Delete(ctx context.Context, p string) error {
	return f.step(operation{name: "delete", path: p, changes: true}, func() error { return f.store.Delete(ctx, p) })
}

// URL implements Store.
func (f *Faulty) URL() string { return f.store.URL() }

// Close implements Store; it never fails by injection.
func (f *Faulty) Close() error { return f.store.Close() }

type faultyFile struct {
	File
	of *Faulty
}

func (f *faultyFile) Read(ctx context.Context, r Range) (out []byte, err error) {
	err = f.of.step(operation{name: "read", path: f.Path()}, func() (err error) { out, err = f.File.Read(ctx, r); return err })
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (f *faultyFile) ReadMany(ctx context.Context, rs []Range) (out [][]byte, err error) {
	err = f.of.step(operation{name: "read", path: f.Path()}, func() (err error) { out, err = f.File.ReadMany(ctx, rs); return err })
	if err != nil {
		return nil, err
	}
	return out, nil
}

type faultyWriter struct {
	Writer
	of   *Faulty
	path string
}

func (w *faultyWriter) Write(b []byte) (n int, err error) {
	err = w.of.step(operation{name: "write", path: w.path}, func() (err error) { n, err = w.Writer.Write(b); return err })
	return n, err
}

func (w *faultyWriter) Close() error {
	return w.of.step(operation{name: "close", path: w.path, changes: true}, w.Writer.Close)
}

// faultyFolders is a Faulty over a store with folders.
type faultyFolders struct {
	*Faulty
	folders   Folders
	leftovers Leftovers
}

var (
	_ Folders   = (*faultyFolders)(nil)
	_ Leftovers = (*faultyFolders)(nil)
)

// WithFolders returns f as a store with folders if the store that it wraps has them: their operations are counted and fail like others.
func (f *Faulty) WithFolders() Store {
	folders, ok1 := f.store.(Folders)
	leftovers, ok2 := f.store.(Leftovers)
	if !ok1 || !ok2 {
		return f
	}
	return &faultyFolders{Faulty: f, folders: folders, leftovers: leftovers}
}

func (f *faultyFolders) RemoveFolder(ctx context.Context, dir string) error {
	return f.step(operation{name: "remove", path: dir, changes: true}, func() error { return f.folders.RemoveFolder(ctx, dir) })
}

func (f *faultyFolders) RenameFolder(ctx context.Context, from, to string) error {
	return f.step(operation{name: "rename", path: from, changes: true}, func() error { return f.folders.RenameFolder(ctx, from, to) })
}

func (f *faultyFolders) RemoveEmptyFolder(ctx context.Context, dir string) error {
	return f.step(operation{name: "remove folder", path: dir, changes: true}, func() error { return f.leftovers.RemoveEmptyFolder(ctx, dir) })
}

func (f *faultyFolders) RemoveTemporary(ctx context.Context, dir string, before time.Time) (n int64, err error) {
	err = f.step(operation{name: "remove temporary files of", path: dir, changes: true}, func() (err error) { n, err = f.leftovers.RemoveTemporary(ctx, dir, before); return err })
	return n, err
}
