package object

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/lakesql/lakesql/internal/errs"
)

// TempPrefix starts the names of files that are being written.
const TempPrefix = ".tmp_"

// CheckPath refuses paths that could leave the root or that two stores would read differently. Errors: ErrInvalid.
func CheckPath(p string) error {
	if p == "" {
		return nil
	}
	if strings.ContainsAny(p, "\\\x00") || path.Clean(p) != p || path.IsAbs(p) || p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return errs.New(errs.ErrInvalid, "path %q is not a plain relative path", p)
	}
	return nil
}

// Join joins path elements; unlike path.Join it keeps ".." visible, so that CheckPath can refuse it.
func Join(elem ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(elem), func(s string) bool { return s == "" }), "/")
}

// checkFilePath is CheckPath for the path of a file, which is never the root.
func checkFilePath(p string) error {
	if p == "" {
		return errs.New(errs.ErrInvalid, "path %q names no file", p)
	}
	return CheckPath(p)
}

// checkRange refuses a range outside a file of size bytes.
func checkRange(p string, size int64, r Range) error {
	if r.Offset < 0 || r.Size < 0 || r.Offset > size || r.Size > size-r.Offset {
		return &errs.CorruptError{
			Path: p, Section: "file", Offset: r.Offset,
			Err: errs.New(errs.ErrCorrupt, "%d bytes wanted of a file of %d", r.Size, size),
		}
	}
	return nil
}

// kindOf turns an operating system error into one of our kinds, with the path in its text.
func kindOf(err error, op, p string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // its path is the machine's own; ours is relative to the store
	}
	kind := errs.ErrIO
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		kind = errs.ErrNotFound
	case errors.Is(err, fs.ErrExist):
		kind = errs.ErrExists
	case errors.Is(err, fs.ErrPermission):
		kind = errs.ErrPermission
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = errs.ErrDiskFull
	case errors.Is(err, syscall.EISDIR):
		kind = errs.ErrInvalid
	}
	return errs.New(kind, "%s %q: %w", op, p, err)
}

// Coalesce merges ranges that lie at most gapBytes apart into ranges of at most limitBytes (one range alone may be larger). It
// returns the merged ranges, ascending, and for each input range the merged one that holds it.
func Coalesce(rs []Range, gapBytes, limitBytes int64) (merged []Range, of []int) {
	order := make([]int, len(rs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case rs[a].Offset < rs[b].Offset:
			return -1
		case rs[a].Offset > rs[b].Offset:
			return 1
		}
		return 0
	})
	of = make([]int, len(rs))
	for _, i := range order {
		r := rs[i]
		if n := len(merged); n > 0 {
			last := &merged[n-1]
			end := max(last.Offset+last.Size, r.Offset+r.Size)
			if r.Offset-(last.Offset+last.Size) <= gapBytes && (end-last.Offset <= limitBytes || end == last.Offset+last.Size) {
				last.Size = end - last.Offset
				of[i] = n - 1
				continue
			}
		}
		merged = append(merged, r)
		of[i] = len(merged) - 1
	}
	return merged, of
}
