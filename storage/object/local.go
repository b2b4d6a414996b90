package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/lakesql/lakesql/internal/errs"
)

// LocalOptions tunes OpenLocal. The zero value is the default.
type LocalOptions struct {
	MappingsMax int // files mapped at one time; files beyond it are read by pread; 0 = 16384; -1 = never map
	SmallBytes  int // files up to this size are read into memory at Open instead; 0 = 16 KiB; -1 = none
}

func (o LocalOptions) withDefaults() LocalOptions {
	if o.MappingsMax == 0 {
		o.MappingsMax = 16384 // a quarter of Linux' default limit of mappings per process
	}
	if o.SmallBytes == 0 {
		o.SmallBytes = 16 << 10
	}
	return o
}

// Local is a folder of this machine. Files are mapped at first use and stay mapped until Close (I1, I4).
type Local struct {
	root string
	opts LocalOptions

	mu       sync.Mutex
	mappings map[string]*mapping // by path, the current content
	replaced []*mapping          // of files that were replaced since; readers may still hold their bytes
	closed   bool
}

var _ Store = (*Local)(nil)

// mapping is the bytes of one file as it was when mapped.
type mapping struct {
	bytes []byte
	id    fileID
}

// fileID tells a file from another one that took its name.
type fileID struct {
	device, inode uint64
	sizeBytes     int64
	modTime       time.Time
}

// OpenLocal returns the store of a folder that exists. Errors: ErrNotFound, ErrPermission, ErrInvalid for what is no folder.
func OpenLocal(root string, opts LocalOptions) (*Local, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "folder %q: %w", root, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, kindOf(err, "folder", root)
	}
	if !info.IsDir() {
		return nil, errs.New(errs.ErrInvalid, "%q is a file, not a folder", root)
	}
	return &Local{root: abs, opts: opts.withDefaults(), mappings: make(map[string]*mapping)}, nil
}

// URL implements Store.
func (l *Local) URL() string { return "file://" + filepath.ToSlash(l.root) }

// Root is the folder's absolute path.
func (l *Local) Root() string { return l.root }

func (l *Local) abs(p string) string { return filepath.Join(l.root, filepath.FromSlash(p)) }

// Open implements Store.
func (l *Local) Open(ctx context.Context, p string) (File, error) {
	if err := errors.Join(ctx.Err(), checkFilePath(p)); err != nil {
		return nil, err
	}
	info, err := os.Stat(l.abs(p))
	if err != nil {
		return nil, kindOf(err, "open", p)
	}
	if !info.Mode().IsRegular() {
		return nil, errs.New(errs.ErrInvalid, "open %q: not a regular file", p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed(l.URL())
	}
	id := identify(info)
	if m, ok := l.mappings[p]; ok {
		if m.id == id {
			return &mappedFile{store: l, path: p, bytes: m.bytes}, nil
		}
		delete(l.mappings, p)
		l.replaced = append(l.replaced, m)
	}
	return l.openNew(p, info, id)
}

// openNew reads, maps or prepares a file that has no mapping; l.mu is held.
func (l *Local) openNew(p string, info os.FileInfo, id fileID) (File, error) {
	f, err := os.Open(l.abs(p))
	if err != nil {
		return nil, kindOf(err, "open", p)
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	size := info.Size()
	if size == 0 || size <= int64(l.opts.SmallBytes) {
		b, err := io.ReadAll(io.LimitReader(f, size))
		if err != nil {
			return nil, kindOf(err, "read", p)
		}
		return &mappedFile{store: l, path: p, bytes: b}, nil
	}
	if now, err := f.Stat(); err != nil || identify(now) != id {
		return &preadFile{store: l, path: p, id: id}, nil // replaced between stat and open: its own reads will tell
	}
	if len(l.mappings)+len(l.replaced) < l.opts.MappingsMax {
		if b, err := mapFile(f, size); err == nil {
			l.mappings[p] = &mapping{bytes: b, id: id}
			return &mappedFile{store: l, path: p, bytes: b}, nil
		}
		// No address space, no mapping support: reading still works.
	}
	return &preadFile{store: l, path: p, id: id}, nil
}

// Stat implements Store.
func (l *Local) Stat(ctx context.Context, p string) (Entry, error) {
	if err := errors.Join(ctx.Err(), CheckPath(p)); err != nil {
		return Entry{}, err
	}
	info, err := os.Stat(l.abs(p))
	if err != nil {
		return Entry{}, kindOf(err, "stat", p)
	}
	return entryOf(path.Base(p), info), nil
}

func entryOf(name string, info os.FileInfo) Entry {
	return Entry{Name: name, SizeBytes: info.Size(), ModTime: info.ModTime(), IsDir: info.IsDir()}
}

// List implements Store.
func (l *Local) List(ctx context.Context, dir string) ([]Entry, error) {
	if err := errors.Join(ctx.Err(), CheckPath(dir)); err != nil {
		return nil, err
	}
	names, err := os.ReadDir(l.abs(dir)) // sorted by name
	if err != nil {
		if err = kindOf(err, "list", dir); errors.Is(err, errs.ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	out := make([]Entry, 0, len(names))
	for _, n := range names {
		if strings.HasPrefix(n.Name(), TempPrefix) {
			continue
		}
		info, err := os.Stat(l.abs(path.Join(dir, n.Name()))) // follows links, as Open does
		if err != nil {
			continue // deleted since, or a dangling link: not there for a reader
		}
		out = append(out, entryOf(n.Name(), info))
	}
	return out, nil
}

// Put implements Store.
func (l *Local) Put(ctx context.Context, p string, content []byte, ifAbsent bool) error {
	w, err := l.create(ctx, p)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.publish(ifAbsent)
}

// Create implements Store.
func (l *Local) Create(ctx context.Context, p string) (Writer, error) { return l.create(ctx, p) }

func (l *Local) create(ctx context.Context, p string) (*localWriter, error) {
	if err := errors.Join(ctx.Err(), checkFilePath(p)); err != nil {
		return nil, err
	}
	final := l.abs(p)
	temp := filepath.Join(filepath.Dir(final), TempPrefix+uuid.NewString())
	for attempt := 1; ; attempt++ {
		if err := os.MkdirAll(filepath.Dir(final), 0o777); err != nil { //nolint:gosec // the umask decides, as for any data file
			return nil, createError(err, p)
		}
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // as above
		if err == nil {
			return &localWriter{path: p, final: final, temp: temp, file: f}, nil
		}
		if !errors.Is(err, os.ErrNotExist) || attempt == createAttempts { // else a clean-up has removed the folder, being empty
			return nil, createError(err, p)
		}
	}
}

// createError is kindOf for what was to be made: a file that stands where a folder should be is nothing that was not found.
func createError(err error, p string) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return errs.New(errs.ErrInvalid, "create %q: a file stands where a folder should be: %w", p, syscall.ENOTDIR)
	}
	return kindOf(err, "create", p)
}

// createAttempts is how often a folder is made for a file.
const createAttempts = 3

// Delete implements Store. A mapping of the file stays readable.
func (l *Local) Delete(ctx context.Context, p string) error {
	if err := errors.Join(ctx.Err(), checkFilePath(p)); err != nil {
		return err
	}
	if err := kindOf(os.Remove(l.abs(p)), "delete", p); err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	return nil
}

// Close unmaps every file: bytes that Read returned are gone. Later calls fail.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var err error
	for p, m := range l.mappings {
		err = errors.Join(err, kindOf(unmapFile(m.bytes), "unmap", p))
	}
	for _, m := range l.replaced {
		err = errors.Join(err, kindOf(unmapFile(m.bytes), "unmap", "a replaced file"))
	}
	l.mappings, l.replaced = nil, nil
	return err
}

func (l *Local) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func errClosed(url string) error { return errs.New(errs.ErrInvalid, "store %s is closed", url) }

// mappedFile is a file whose bytes are in memory: mapped, small, or of the memory store.
type mappedFile struct {
	store interface {
		isClosed() bool
		URL() string
	}
	path  string
	bytes []byte
}

var _ File = (*mappedFile)(nil)

func (f *mappedFile) Path() string     { return f.path }
func (f *mappedFile) SizeBytes() int64 { return int64(len(f.bytes)) }
func (f *mappedFile) IsMapped() bool   { return true }

func (f *mappedFile) Read(ctx context.Context, r Range) ([]byte, error) {
	if err := errors.Join(ctx.Err(), checkRange(f.path, f.SizeBytes(), r)); err != nil {
		return nil, err
	}
	if f.store.isClosed() {
		return nil, errClosed(f.store.URL())
	}
	return f.bytes[r.Offset : r.Offset+r.Size : r.Offset+r.Size], nil
}

func (f *mappedFile) ReadMany(ctx context.Context, rs []Range) ([][]byte, error) {
	out := make([][]byte, len(rs))
	for i, r := range rs {
		b, err := f.Read(ctx, r)
		if err != nil {
			return nil, err
		}
		out[i] = b
	}
	return out, nil
}

// preadFile reads without a mapping and without holding a descriptor, so that any number of files may be open.
type preadFile struct {
	store *Local
	path  string
	id    fileID
}

var _ File = (*preadFile)(nil)

func (f *preadFile) Path() string     { return f.path }
func (f *preadFile) SizeBytes() int64 { return f.id.sizeBytes }
func (f *preadFile) IsMapped() bool   { return false }

func (f *preadFile) Read(ctx context.Context, r Range) ([]byte, error) {
	out, err := f.ReadMany(ctx, []Range{r})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func (f *preadFile) ReadMany(ctx context.Context, rs []Range) ([][]byte, error) {
	if f.store.isClosed() {
		return nil, errClosed(f.store.URL())
	}
	file, err := os.Open(f.store.abs(f.path))
	if err != nil {
		return nil, kindOf(err, "read", f.path)
	}
	defer func() { _ = file.Close() }() // read only
	info, err := file.Stat()
	if err != nil {
		return nil, kindOf(err, "read", f.path)
	}
	if identify(info) != f.id {
		return nil, &errs.GoneError{Path: f.path, Err: fmt.Errorf("read %q: the file was replaced or changed since it was opened", f.path)}
	}
	out := make([][]byte, len(rs))
	for i, r := range rs {
		if err := errors.Join(ctx.Err(), checkRange(f.path, f.id.sizeBytes, r)); err != nil {
			return nil, err
		}
		out[i] = make([]byte, r.Size)
		if _, err := file.ReadAt(out[i], r.Offset); err != nil {
			return nil, kindOf(err, "read", f.path)
		}
	}
	return out, nil
}

// localWriter writes a temporary name beside the final one.
type localWriter struct {
	path, final, temp string
	file              *os.File
	offsetBytes       int64
	isDone            bool
	err               error
}

var _ Writer = (*localWriter)(nil)

func (w *localWriter) OffsetBytes() int64 { return w.offsetBytes }

func (w *localWriter) Write(b []byte) (int, error) {
	if w.isDone {
		return 0, errs.New(errs.ErrInternal, "write to %q after its end", w.path)
	}
	n, err := w.file.Write(b)
	w.offsetBytes += int64(n)
	if err != nil {
		w.err = kindOf(err, "write", w.path)
		return n, w.err
	}
	return n, nil
}

// Close publishes the file, unless a write failed: then it drops it and returns that error again.
func (w *localWriter) Close() error {
	if w.isDone {
		return nil
	}
	if w.err != nil {
		return errors.Join(w.err, w.Abort())
	}
	return w.publish(false)
}

func (w *localWriter) Abort() error {
	if w.isDone {
		return nil
	}
	w.isDone = true
	err := errors.Join(w.file.Close(), os.Remove(w.temp))
	return kindOf(err, "abort", w.path)
}

// publish makes the bytes durable, then the name.
func (w *localWriter) publish(ifAbsent bool) error {
	if err := w.file.Sync(); err != nil {
		return errors.Join(kindOf(err, "sync", w.path), w.Abort())
	}
	w.isDone = true
	if err := w.file.Close(); err != nil {
		return errors.Join(kindOf(err, "close", w.path), os.Remove(w.temp))
	}
	move := os.Rename
	if ifAbsent {
		move = moveIfAbsent
	}
	if err := move(w.temp, w.final); err != nil {
		if rmErr := os.Remove(w.temp); rmErr != nil && !errors.Is(rmErr, os.ErrNotExist) {
			err = fmt.Errorf("%w (and its temporary file stays: %w)", err, rmErr)
		}
		if errors.Is(err, errs.ErrUnsupported) {
			return errs.New(errs.ErrUnsupported, "create %q: %w", w.path, err)
		}
		var link *os.LinkError
		if errors.As(err, &link) {
			err = link.Err
		}
		return kindOf(err, "create", w.path)
	}
	return kindOf(syncFolder(filepath.Dir(w.final)), "sync folder of", w.path)
}

// syncFolder makes a new name durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
