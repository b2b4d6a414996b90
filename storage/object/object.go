package object

import (
	"context"
	"io"
	"time"
)

// Range is a half-open byte range of a file.
type Range struct{ Offset, Size int64 }

// Store is one root of files. It is safe for concurrent use.
type Store interface {
	// Open returns a file for random reads. Errors: ErrNotFound, ErrPermission, ErrIO.
	Open(ctx context.Context, path string) (File, error)
	// Stat returns the size and time of a file without opening it. Errors: ErrNotFound.
	Stat(ctx context.Context, path string) (Entry, error)
	// List returns the entries directly below the folder dir, files and folders, ascending by name; a missing folder is empty.
	List(ctx context.Context, dir string) ([]Entry, error)
	// Put writes a whole file atomically: readers see all of it or nothing. With ifAbsent an existing file is ErrExists
	// and stays as it was; a store that cannot promise that returns ErrUnsupported.
	Put(ctx context.Context, path string, content []byte, ifAbsent bool) error
	// Create starts a file that becomes visible, atomically, at Close.
	Create(ctx context.Context, path string) (Writer, error)
	// Delete removes a file. A missing file is no error.
	Delete(ctx context.Context, path string) error
	// URL names the root for people and for cache keys.
	URL() string
	Close() error
}

// Entry is one name in a folder.
type Entry struct {
	Name      string // last path element
	SizeBytes int64
	ModTime   time.Time
	IsDir     bool
}

// File reads one immutable file. It is safe for concurrent use.
type File interface {
	Path() string
	SizeBytes() int64
	// Read returns the bytes of one range. A range outside the file is an ErrCorrupt that names it. See I1 for how long they live.
	Read(ctx context.Context, r Range) ([]byte, error)
	// ReadMany returns one slice per range. Remote stores merge ranges that lie close together and fetch in parallel.
	ReadMany(ctx context.Context, rs []Range) ([][]byte, error)
	// IsMapped says that Read costs no copy, so that callers read exactly what they touch and need no read-ahead.
	IsMapped() bool
}

// ReadAt reads a file as io.ReaderAt does.
func ReadAt(ctx context.Context, f File, p []byte, off int64) (int, error) {
	if off < 0 || off >= f.SizeBytes() {
		return 0, io.EOF
	}
	n := min(int64(len(p)), f.SizeBytes()-off)
	b, err := f.Read(ctx, Range{Offset: off, Size: n})
	if err != nil {
		return 0, err
	}
	copy(p, b)
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// Fetcher is a File that knows what its reads take. Other files that are not mapped take the bytes that are asked for.
type Fetcher interface {
	// FetchBytes is the memory that a ReadMany of these ranges takes, of which some may go before what it returns does.
	FetchBytes(rs []Range) int64
}

// FetchBytes is the memory that a ReadMany of f takes: none of a mapped file.
func FetchBytes(f File, rs []Range) int64 {
	if f.IsMapped() {
		return 0
	}
	if x, ok := f.(Fetcher); ok {
		return x.FetchBytes(rs)
	}
	var n int64
	for _, r := range rs {
		n += r.Size
	}
	return n
}

// Writer streams one new file.
type Writer interface {
	io.Writer
	// Close publishes the file. Abort drops it; after Close it does nothing.
	Close() error
	Abort() error
	// OffsetBytes is the number of bytes written.
	OffsetBytes() int64
}

// Pager is a Store that can list the first names of a folder without listing all of it.
type Pager interface {
	// ListPage returns the first entries of the folder by name, about limit of them, and whether these are all. A store that does not
	// list by name is no Pager.
	ListPage(ctx context.Context, dir string, limit int) (entries []Entry, isAll bool, err error)
}

// SizedOpener is a Store that saves a request where the caller knows a file's size.
type SizedOpener interface {
	// OpenSized is Open of a file of that size. A file that is missing or of another size may show at the first read only.
	OpenSized(ctx context.Context, path string, sizeBytes int64) (File, error)
}
