package object

import (
	"context"
	"sync"

	"github.com/lakesql/lakesql/internal/errs"
)

// FaultyOptions says when a Faulty store fails. Operations are counted from 1: Open, Stat, List, Put, Create, Delete,
// each Read or ReadMany of a file, each Write and the Close of a writer.
type FaultyOptions struct {
	FailAt      int64  // the operation that fails; 0 = none
	Crash       bool   // every operation after it fails too, as if the process had died
	AfterEffect bool   // operation FailAt takes effect before its error is reported (an answer that got lost)
	Err         error  // what it fails with; nil = an ErrIO
	OnlyPath    string // count only operations on this path; "" = all
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
	return &Faulty{store: store, opts: opts}
}

// Operations returns how many operations were counted so far.
func (f *Faulty) Operations() int64 { f.mu.Lock(); defer f.mu.Unlock(); return f.done }

// step counts one operation and runs it, or fails it.
func (f *Faulty) step(p string, run func() error) error {
	if f.opts.OnlyPath != "" && f.opts.OnlyPath != p {
		return run()
	}
	f.mu.Lock()
	f.done++
	n := f.done
	f.mu.Unlock()
	switch {
	case f.opts.FailAt == 0 || n < f.opts.FailAt || (n > f.opts.FailAt && !f.opts.Crash):
		return run()
	case n == f.opts.FailAt && f.opts.AfterEffect:
		if err := run(); err != nil {
			return err
		}
	}
	return f.opts.Err
}

// Open implements Store.
func (f *Faulty) Open(ctx context.Context, p string) (File, error) {
	var out File
	err := f.step(p, func() (err error) { out, err = f.store.Open(ctx, p); return err })
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: out, of: f}, nil
}

// Stat implements Store.
func (f *Faulty) Stat(ctx context.Context, p string) (out Entry, err error) {
	err = f.step(p, func() (err error) { out, err = f.store.Stat(ctx, p); return err })
	return out, err
}

// List implements Store.
func (f *Faulty) List(ctx context.Context, dir string) (out []Entry, err error) {
	err = f.step(dir, func() (err error) { out, err = f.store.List(ctx, dir); return err })
	return out, err
}

// Put implements Store.
func (f *Faulty) Put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	return f.step(p, func() error { return f.store.Put(ctx, p, content, ifAbsent) })
}

// Create implements Store.
func (f *Faulty) Create(ctx context.Context, p string) (Writer, error) {
	var out Writer
	err := f.step(p, func() (err error) { out, err = f.store.Create(ctx, p); return err })
	if err != nil {
		return nil, err
	}
	return &faultyWriter{Writer: out, of: f, path: p}, nil
}

// Delete implements Store.
func (f *Faulty) Delete(ctx context.Context, p string) error {
	return f.step(p, func() error { return f.store.Delete(ctx, p) })
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
	err = f.of.step(f.Path(), func() (err error) { out, err = f.File.Read(ctx, r); return err })
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (f *faultyFile) ReadMany(ctx context.Context, rs []Range) (out [][]byte, err error) {
	err = f.of.step(f.Path(), func() (err error) { out, err = f.File.ReadMany(ctx, rs); return err })
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
	err = w.of.step(w.path, func() (err error) { n, err = w.Writer.Write(b); return err })
	return n, err
}

func (w *faultyWriter) Close() error { return w.of.step(w.path, w.Writer.Close) }
