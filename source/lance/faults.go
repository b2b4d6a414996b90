package lance

import (
	"context"
	"errors"
	"path"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
)

// isLasting says that a segment cannot be read however often it is tried: its files are damaged or gone, or of a version that lakesql does not know.
// Whatever else fails, such as a store that does not answer or that refuses, fails the statement.
func isLasting(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrGone) || errors.Is(err, errs.ErrUnsupported)
}

// isFault says that a segment is left out and its rows are scanned: what is lasting, and a segment that the budget of indices has no room for.
func (t *Table) isFault(err error) bool {
	var limit *mem.LimitError
	if t.catalog.opts.IndexBudget != nil && errors.As(err, &limit) && limit.Budget == t.catalog.opts.IndexBudget.Name() {
		return true
	}
	return isLasting(err)
}

// openError is the error of opening a segment, with the file that was opened last.
type openError struct {
	file string
	err  error
}

func (e *openError) Error() string { return e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// faultOf describes why a segment does not serve.
func faultOf(info storage.IndexInfo, err error) exec.IndexFault {
	f := exec.IndexFault{Index: info.Name, Segment: info.UUID, Err: err}
	var opening *openError
	if errors.As(err, &opening) {
		f.File = opening.file
	}
	var corrupt *errs.CorruptError
	if errors.As(err, &corrupt) && corrupt.Path != "" {
		f.File = path.Base(corrupt.Path)
	}
	var gone *errs.GoneError
	if errors.As(err, &gone) && gone.Path != "" {
		f.File = path.Base(gone.Path)
	}
	return f
}

// damaged remembers that reading an open segment failed for good, so that later statements scan its rows without trying.
func (t *Table) damaged(info storage.IndexInfo, err error) exec.IndexFault {
	if isLasting(err) {
		t.catalog.opts.Segments.fail(info.UUID, err)
	}
	return faultOf(info, err)
}

// choice is what opening the segments of an index gave.
type choice struct {
	info   exec.IndexInfo // its Covers is of the segments that can be read
	faults []exec.IndexFault
	opened int
}

// open opens the segments of an index. Errors: those that are no fault.
func (t *Table) open(ctx context.Context, g *indexGroup, each func(storage.IndexInfo, index.Segment)) (choice, error) {
	out := choice{info: g.info}
	broken := roaring.New()
	for _, info := range g.segments {
		seg, err := t.segment(ctx, g, info)
		if err != nil && !t.isFault(err) {
			return out, err
		}
		if err != nil {
			out.faults = append(out.faults, faultOf(info, err))
			broken.Or(info.Covers)
			continue
		}
		out.opened++
		each(info, seg)
	}
	if len(out.faults) > 0 {
		out.info.Covers = roaring.AndNot(g.info.Covers, broken)
	}
	return out, nil
}
