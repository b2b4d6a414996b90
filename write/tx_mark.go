package write

import (
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// TxMark is the state of a transaction at some moment: a savepoint. It serves that transaction alone, any number of times.
type TxMark struct {
	schema   *schema.Schema
	replaced *replacement
	deleted  *rowset.Set
	staged   []stagedState
	modified fieldIDs
	view     *storage.Snapshot
	watches  int
	held     *mem.Reservation
}

// Free gives back the memory of a mark that nobody returns to any more.
func (m *TxMark) Free() { m.held.Free() }

// stagedState is a staged fragment and the rows of it that were deleted; the set is never changed, only replaced.
type stagedState struct {
	fragment *stagedFragment
	deleted  *roaring.Bitmap
}

// Mark remembers what was staged so far, until Free. ErrMemoryLimit; ErrInvalid after the end.
func (x *Tx) Mark() (*TxMark, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	held := x.opts.Budget.Reserve()
	if err := held.Grow(x.deleted.SizeBytes()); err != nil {
		return nil, err
	}
	m := &TxMark{held: held, schema: x.schema, replaced: x.replaced, deleted: x.deleted.Clone(), modified: x.modified, view: x.view, watches: len(x.watches)}
	m.modified.ids = maps.Clone(x.modified.ids)
	for _, f := range x.staged {
		m.staged = append(m.staged, stagedState{f, f.deleted})
	}
	return m, nil
}

// Return makes what is staged what it was at the mark. Files that came since are removed when the transaction ends. ErrInvalid after the end.
func (x *Tx) Return(m *TxMark) error {
	if err := x.check(); err != nil {
		return err
	}
	kept := make(map[*tablepb.DataFragment]bool, len(m.staged))
	for _, s := range m.staged {
		kept[s.fragment.pb] = true
	}
	dropped := x.dropped
	for _, f := range x.staged {
		dropped = append(dropped, f.pb)
	}
	x.dropped = slices.DeleteFunc(dropped, func(f *tablepb.DataFragment) bool { return kept[f] })
	x.staged = nil
	for _, s := range m.staged {
		s.fragment.deleted = s.deleted
		x.staged = append(x.staged, s.fragment)
	}
	x.schema, x.replaced, x.deleted, x.modified, x.view = m.schema, m.replaced, m.deleted.Clone(), m.modified, m.view
	x.modified.ids = maps.Clone(m.modified.ids)
	x.watches = x.watches[:m.watches]
	return nil
}
