package bitmap

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
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

// NewBuilder collects the column of type t; budget (nil = nobody) pays. Errors: ErrUnsupported for types without an order.
func NewBuilder(column string, t arrow.DataType, budget *mem.Budget) (*Builder, error) {
	values, err := NewCollector(t, budget)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a BITMAP index cannot hold it: %w", column, err)
	}
	return &Builder{values: values}, nil
}

// Add takes rows: value i belongs to the row of stored key keys[i]. Errors: ErrInvalid for another type, ErrMemoryLimit.
func (b *Builder) Add(ctx context.Context, values arrow.Array, keys []uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.values.Add(values, keys)
}

// Write writes the segment's file as version (2.1 or 2.2; zero = 2.2) and publishes w; after an error w is dropped.
func (b *Builder) Write(ctx context.Context, w object.Writer, version file.Version) (file.Written, error) {
	return b.values.Write(ctx, w, WriteOptions{Version: version})
}

// Free gives the memory back to the budget.
func (b *Builder) Free() { b.values.Free() }
