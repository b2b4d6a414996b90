// Package errs holds the kinds of error that lakesql tells apart. Callers test a kind with errors.Is and never compare
// text; planner/gms/mysqlerr maps each kind to a MySQL error code and is the only place that does.
package errs

import (
	"errors"
	"fmt"
)

// The kinds. Wrap one with fmt.Errorf("...: %w", ...) or build it with New.
var (
	ErrInvalid     = errors.New("invalid")            // the user's input makes no sense
	ErrSyntax      = errors.New("syntax error")       // a statement that the grammar does not have
	ErrManyRows    = errors.New("more than 1 row")    // of a subquery that stands for a value
	ErrOperands    = errors.New("operand columns")    // sides of a comparison with different numbers of columns
	ErrJSONText    = errors.New("invalid JSON text")  // an argument that is no JSON
	ErrNotFound    = errors.New("not found")          // a named thing does not exist
	ErrExists      = errors.New("already exists")     // a named thing exists and must not
	ErrPermission  = errors.New("permission denied")  // the caller may not do this
	ErrConflict    = errors.New("conflict")           // another writer committed first
	ErrUnsupported = errors.New("not supported")      // valid, but lakesql cannot do it
	ErrOverflow    = errors.New("out of range")       // a value does not fit its type
	ErrMemoryLimit = errors.New("memory limit")       // a budget refused to grow
	ErrDiskFull    = errors.New("disk full")          // no space left for a write or a spill
	ErrCorrupt     = errors.New("corrupt")            // bytes that no writer of the format produces
	ErrIO          = errors.New("input/output error") // a store failed or a mapped file shrank
	ErrGone        = errors.New("gone")               // beside ErrIO: a file that a version names is not there any more, or not all of it
	ErrInternal    = errors.New("internal error")     // a bug in lakesql
)

type kindError struct {
	kind error
	msg  string
}

func (e *kindError) Error() string { return e.msg }
func (e *kindError) Unwrap() error { return e.kind }

// New returns an error of the given kind whose text is the formatted message alone: the kind is found with errors.Is.
// A %w verb is honoured: the wrapped error is found too.
func New(kind error, format string, args ...any) error {
	inner := fmt.Errorf(format, args...)
	if errors.Unwrap(inner) == nil {
		return &kindError{kind: kind, msg: inner.Error()}
	}
	return &joined{kind: kind, err: inner}
}

type joined struct {
	kind error
	err  error
}

func (e *joined) Error() string   { return e.err.Error() }
func (e *joined) Unwrap() []error { return []error{e.kind, e.err} }

// GoneError says which file is not there any more, or not all of it. It is an ErrIO and an ErrGone.
type GoneError struct {
	Path string // as the store names it, or the file's name alone; "" = unknown
	Err  error  // what was seen
}

func (e *GoneError) Error() string { return e.Err.Error() }

// Unwrap makes the error an ErrIO and an ErrGone and keeps its cause.
func (e *GoneError) Unwrap() []error { return []error{ErrIO, ErrGone, e.Err} }

// CorruptError says where bytes on disk break the format. It is an ErrCorrupt.
type CorruptError struct {
	Path    string // file, as the store names it; "" while unknown (the layer that knows it fills it in)
	Section string // what was being read: "footer", "column 3 page 0 chunk 7"
	Offset  int64  // byte offset in the file, or in the section when the file offset is unknown; -1 = unknown
	Err     error  // what is wrong
}

// Corrupt builds a CorruptError of unknown path; WithPath fills the path in on the way up.
func Corrupt(section string, offset int64, format string, args ...any) error {
	return &CorruptError{Section: section, Offset: offset, Err: fmt.Errorf(format, args...)}
}

func (e *CorruptError) Error() string {
	path := e.Path
	if path == "" {
		path = "?"
	}
	if e.Offset < 0 {
		return fmt.Sprintf("corrupt file %s: %s: %v", path, e.Section, e.Err)
	}
	return fmt.Sprintf("corrupt file %s: %s at offset %d: %v", path, e.Section, e.Offset, e.Err)
}

// Unwrap makes the error an ErrCorrupt and keeps its cause.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// WithPath names the file in a corruption error that has no path yet; any other error is returned as it is.
func WithPath(err error, path string) error {
	var c *CorruptError
	if !errors.As(err, &c) || c.Path != "" {
		return err
	}
	c.Path = path
	if err == error(c) { //nolint:errorlint // the outermost error itself: its text is made late, so the path shows
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
