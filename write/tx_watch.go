package write

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
)

// watch is what a statement relied on not being in the table.
type watch struct {
	columns []string
	clash   func(rows arrow.RecordBatch) (bool, error)
}

// Watch says that what was staged is right only if no row is added meanwhile for which clash says yes: Commit shows it the columns of all rows in fragments that came
// since. sizeBytes is what clash keeps in memory until then. clash must not keep the batch. Errors: ErrMemoryLimit.
func (x *Tx) Watch(columns []string, sizeBytes int64, clash func(rows arrow.RecordBatch) (bool, error)) error {
	if err := x.check(); err != nil {
		return err
	}
	if err := x.held.Grow(sizeBytes); err != nil {
		return err
	}
	x.watches = append(x.watches, watch{columns, clash})
	return nil
}

// checkWatches reads the rows of fragments that base did not have. Errors: ErrConflict where one of them clashes.
func (x *Tx) checkWatches(ctx context.Context, now *storage.Snapshot) error {
	var fresh []uint32
	for _, f := range now.Fragments() {
		if _, was := x.base.Fragment(f.ID()); !was {
			fresh = append(fresh, f.ID())
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	for _, w := range x.watches {
		if err := w.check(ctx, now, fresh); err != nil {
			return err
		}
	}
	return nil
}

func (w watch) check(ctx context.Context, now *storage.Snapshot, fresh []uint32) error {
	for _, name := range w.columns {
		if _, ok := now.Schema().Lookup(name); !ok {
			return errs.New(errs.ErrConflict, "column %q was renamed or dropped by another writer; run the statement again", name)
		}
	}
	scan, err := now.Scan(ctx, storage.ScanOptions{Columns: w.columns, Fragments: fresh})
	if err != nil {
		return err
	}
	r := scan.Reader()
	for {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		clashes, err := w.clash(b)
		b.Release()
		if err == nil && clashes {
			err = errs.New(errs.ErrConflict, "another writer added a row of the same key; run the statement again")
		}
		if err != nil {
			return errors.Join(err, r.Close())
		}
	}
}
