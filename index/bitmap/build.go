package bitmap

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// The names under which a BITMAP segment that Builder makes is committed.
const (
	TypeURL = "/lance.table.BitmapIndexDetails"
	// WriteVersion is the index_version of the segments that Builder makes.
	WriteVersion = 0
)

// Builder collects a column for a new BITMAP segment. It is not safe for concurrent use.
type Builder struct{ values *Collector }

// NewBuilder collects the column of type t. Errors: ErrUnsupported for types without an order.
func NewBuilder(column string, t arrow.DataType, opts index.BuildOptions) (*Builder, error) {
	values, err := NewCollector(t, opts)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a BITMAP index cannot hold it: %w", column, err)
	}
	return &Builder{values: values}, nil
}

// Add takes rows: value i belongs to the row of stored key keys[i]. Errors: ErrInvalid for another type, ErrMemoryLimit, ErrDiskFull, ErrIO.
func (b *Builder) Add(ctx context.Context, values arrow.Array, keys []uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.values.Add(values, keys)
}

// AddSegment takes over the rows of another segment that keep names; it must stay open until Write is done. No row may be in two segments, or in
// one and be added. Errors: ErrInvalid.
func (b *Builder) AddSegment(s *Segment, keep index.KeyMap) error {
	if s.meta.Stale {
		return errs.New(errs.ErrInvalid, "index %s: a segment that may hold entries of updated rows cannot be taken over", s.meta.Name)
	}
	return b.values.AddSegment(s.file, keep)
}

// Runs is the number of sorted runs that were written to disk so far.
func (b *Builder) Runs() int { return b.values.Runs() }

// Write writes the segment's file as version (2.1 or 2.2; zero = 2.2) and publishes w; after an error w is dropped.
func (b *Builder) Write(ctx context.Context, w object.Writer, version file.Version) (file.Written, error) {
	return b.values.Write(ctx, w, WriteOptions{Version: version})
}

// Free gives the memory back to the budget.
func (b *Builder) Free() { b.values.Free() }
