package labellist

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// The names under which a segment that Builder makes is committed.
const (
	TypeURL = "/lance.table.LabelListIndexDetails"
	// WriteVersion is the index_version of the segments that Builder makes.
	WriteVersion = 1
)

// Builder collects a list column for a new segment. It is not safe for concurrent use.
type Builder struct {
	column string
	labels *bitmap.Collector
	nulls  rowset.Builder
	given  *rowset.Set // NULL lists of segments that are taken over
	keys   []uint64    // one per element of the batch being added
}

// ItemType returns the type of the labels of a list column, or why it cannot be indexed. Errors: ErrInvalid for a column that is no
// list, ErrUnsupported for lists of lists, structs or dictionaries.
func ItemType(column string, t arrow.DataType) (arrow.DataType, error) {
	var item arrow.DataType
	switch l := t.(type) {
	case *arrow.ListType:
		item = l.Elem()
	case *arrow.LargeListType:
		item = l.Elem()
	default:
		return nil, errs.New(errs.ErrInvalid, "column %q is of type %s: a LABEL_LIST index needs a column of lists", column, t)
	}
	switch item.ID() {
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.STRUCT, arrow.MAP:
		return nil, errs.New(errs.ErrUnsupported, "column %q is nested deeper than one list (%s): a LABEL_LIST index needs lists of plain values", column, t)
	}
	if _, err := bitmap.NewCollector(item, index.BuildOptions{}); err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a LABEL_LIST index cannot hold its elements: %w", column, err)
	}
	return item, nil
}

// NewBuilder collects the column of type t. Errors: as ItemType.
func NewBuilder(column string, t arrow.DataType, opts index.BuildOptions) (*Builder, error) {
	item, err := ItemType(column, t)
	if err != nil {
		return nil, err
	}
	labels, err := bitmap.NewCollector(item, opts)
	if err != nil {
		return nil, err
	}
	return &Builder{column: column, labels: labels, given: &rowset.Set{}}, nil
}

// Add takes rows: list i of lists belongs to the row of stored key keys[i]. Errors: ErrInvalid for another type, ErrMemoryLimit, ErrDiskFull, ErrIO.
func (b *Builder) Add(ctx context.Context, lists arrow.Array, keys []uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	list, ok := lists.(array.ListLike)
	if !ok {
		return errs.New(errs.ErrInvalid, "column %q is of type %s, not a list", b.column, lists.DataType())
	}
	if lists.Len() != len(keys) {
		return errs.New(errs.ErrInternal, "%d lists for %d rows", lists.Len(), len(keys))
	}
	if lists.Len() == 0 {
		return nil
	}
	first, _ := list.ValueOffsets(0)
	_, last := list.ValueOffsets(lists.Len() - 1)
	if err := b.labels.HoldOthers(b.nulls.SizeBytes() + b.given.SizeBytes() + 8*(last-first)); err != nil {
		return err
	}
	// A NULL list may span elements that mean nothing, so runs of lists are added between the NULL ones.
	runStart := first
	b.keys = b.keys[:0]
	flush := func(end int64) error {
		if runStart == end {
			return nil
		}
		items := array.NewSlice(list.ListValues(), runStart, end)
		defer items.Release()
		err := b.labels.Add(items, b.keys)
		b.keys = b.keys[:0]
		return err
	}
	for i, k := range keys {
		start, end := list.ValueOffsets(i)
		if lists.IsNull(i) {
			b.nulls.Add(keys[i : i+1])
			if err := flush(start); err != nil {
				return err
			}
			runStart = end
			continue
		}
		for range end - start {
			b.keys = append(b.keys, k)
		}
	}
	return flush(last)
}

// AddSegment takes over the rows of another segment that keep names; it must stay open until Write is done. No row may be in two segments, or in one and be added.
// Errors: ErrInvalid, also for a segment that does not tell NULL lists from lists without its labels.
func (b *Builder) AddSegment(s *Segment, keep index.KeyMap) error {
	nulls, known := s.NullLists()
	if !known || s.meta.Stale {
		return errs.New(errs.ErrInvalid, "index %s: a segment that does not know its NULL lists or may hold entries of updated rows cannot be taken over", s.meta.Name)
	}
	b.given = rowset.Union(b.given, keep.MapSet(nulls))
	if err := b.labels.HoldOthers(b.nulls.SizeBytes() + b.given.SizeBytes()); err != nil {
		return err
	}
	return b.labels.AddSegment(s.file, keep)
}

// Runs is the number of sorted runs that were written to disk so far.
func (b *Builder) Runs() int { return b.labels.Runs() }

// Write writes the segment's file as version (2.1 or 2.2; zero = 2.2) and publishes w; after an error w is dropped.
func (b *Builder) Write(ctx context.Context, w object.Writer, version file.Version) (file.Written, error) {
	return b.labels.Write(ctx, w, bitmap.WriteOptions{Version: version, NullLists: rowset.Union(b.given, b.nulls.Set()), NullsKey: nullsKey})
}

// Free gives the memory back to the budget.
func (b *Builder) Free() { b.labels.Free() }
