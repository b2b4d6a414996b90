package write

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// updatedRowBytes is what keeping track of a row costs that keeps its id: the id, and in the worst case a run of versions.
const updatedRowBytes = 8 + 16

// Update replaces rows, named by the addresses that Snapshot gives them: row i of with stands in place of rows[i]. Rows keep their stable ids and the version
// that created them. changed names the top-level columns in which with may differ, nil = all of them: indices on other columns keep answering for the rows, where the
// table has stable row ids. After an error the transaction is as before and goes on. Errors: ErrInvalid for a row that is not there or named twice, an unknown
// column and another number of new rows; ErrMemoryLimit, and those of Append.
func (x *Tx) Update(ctx context.Context, rows []rowset.RowAddr, with Batches, changed []string) (n uint64, err error) {
	if err := x.check(); err != nil {
		return 0, err
	}
	modified, err := x.modifiedBy(changed)
	if err != nil {
		return 0, err
	}
	set, err := x.files()
	if err != nil {
		return 0, err
	}
	view, err := x.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	names := x.opts.Budget.Reserve() // of rows that keep their ids
	defer names.Free()
	if view.HasStableRowIDs() {
		if err := names.Grow(int64(len(rows)) * updatedRowBytes); err != nil {
			return 0, err
		}
	}
	old := &rowset.Set{}
	for _, a := range rows {
		old.Add(uint64(a))
	}
	live, err := view.LiveOf(ctx, old)
	if err != nil {
		return 0, err
	}
	if live.Count() != uint64(len(rows)) {
		return 0, errs.New(errs.ErrInvalid, "%d rows are to be updated, %d of them are there, each once", len(rows), live.Count())
	}
	u := &rowUpdate{x: x, view: view, moved: partWriter{of: set}, fresh: partWriter{of: set}}
	if err := u.run(ctx, rows, with); err != nil {
		return 0, errors.Join(err, u.drop(ctx))
	}
	if err := x.drop(live); err != nil {
		return 0, errors.Join(err, u.drop(ctx))
	}
	if err := errors.Join(x.stage(u.moved.done, true), x.stage(u.fresh.done, false)); err != nil {
		return 0, err
	}
	if len(u.moved.done) > 0 {
		x.modified = modified
	}
	return uint64(len(rows)), nil
}

// modifiedBy unites the columns that updates changed before with more.
func (x *Tx) modifiedBy(changed []string) (fieldIDs, error) {
	out := fieldIDs{all: x.modified.all || changed == nil}
	for id := range x.modified.ids {
		out.addID(id)
	}
	for _, name := range changed {
		f, ok := x.schema.Lookup(name)
		if !ok {
			return out, errs.New(errs.ErrInvalid, "the table has no column %q", name)
		}
		out.add(f)
	}
	return out, nil
}

// rowUpdate writes the new rows of one Update. Rows that replace rows of base move; those that replace rows which the transaction added itself are new rows
// like these, so the two kinds go to different fragments.
type rowUpdate struct {
	x     *Tx
	view  *storage.Snapshot
	moved partWriter
	fresh partWriter

	origins map[uint32]*rowOrigin
	ids     []uint64              // of moved rows, in order; tables with stable row ids
	created []manifest.VersionRun // of moved rows, in order
}

// rowOrigin is a fragment that rows come from.
type rowOrigin struct {
	isFresh  bool // rows of this transaction
	ids      *manifest.RowIDs
	versions []manifest.VersionRun // of its rows
	ends     []uint64              // offset behind each run of versions
}

func newOrigin(ids *manifest.RowIDs, versions []manifest.VersionRun) *rowOrigin {
	o := &rowOrigin{ids: ids, versions: versions}
	end := uint64(0)
	for _, r := range versions {
		end += r.Count
		o.ends = append(o.ends, end)
	}
	return o
}

func (u *rowUpdate) run(ctx context.Context, rows []rowset.RowAddr, with Batches) error {
	u.origins = make(map[uint32]*rowOrigin)
	left := rows
	for {
		batch, err := with.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if batch.NumRows() > int64(len(left)) {
			err = errs.New(errs.ErrInvalid, "more than %d new rows for %d old ones", len(rows), len(rows))
		} else {
			err = u.write(ctx, left[:batch.NumRows()], batch)
			left = left[batch.NumRows():]
		}
		batch.Release()
		if err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return errs.New(errs.ErrInvalid, "%d new rows for %d old ones", len(rows)-len(left), len(rows))
	}
	for _, w := range []*partWriter{&u.moved, &u.fresh} {
		if _, err := w.finish(ctx); err != nil {
			return err
		}
	}
	return u.nameRows()
}

// write writes one batch, run by run of rows of one kind.
func (u *rowUpdate) write(ctx context.Context, old []rowset.RowAddr, batch arrow.RecordBatch) error {
	for lo := 0; lo < len(old); {
		o, err := u.origin(ctx, old[lo].Fragment())
		if err != nil {
			return err
		}
		to, hi := &u.moved, lo
		if o.isFresh {
			to = &u.fresh
		}
		for ; hi < len(old); hi++ {
			p, err := u.origin(ctx, old[hi].Fragment())
			if err != nil {
				return err
			}
			if p.isFresh != o.isFresh {
				break
			}
			if p.ids != nil {
				u.ids = append(u.ids, p.ids.At(uint64(old[hi].Offset())))
				u.created = manifest.AppendVersion(u.created, 1, p.versionAt(uint64(old[hi].Offset())))
			}
		}
		part := batch.NewSlice(int64(lo), int64(hi))
		err = to.add(ctx, part)
		part.Release()
		if err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

func (u *rowUpdate) origin(ctx context.Context, id uint32) (*rowOrigin, error) {
	if o, ok := u.origins[id]; ok {
		return o, nil
	}
	o := &rowOrigin{}
	for _, f := range u.x.staged {
		if f.pb.GetId() == uint64(id) {
			o.isFresh = !f.isMoved
		}
	}
	if u.view.HasStableRowIDs() && !o.isFresh {
		f, ok := u.view.Fragment(id)
		if !ok {
			return nil, errs.New(errs.ErrInternal, "fragment %d is not there", id)
		}
		ids, err := f.RowIDs(ctx)
		if err != nil {
			return nil, err
		}
		created, err := f.CreatedVersions(ctx)
		if err != nil {
			return nil, err
		}
		o = newOrigin(ids, created)
	}
	u.origins[id] = o
	return o, nil
}

// versionAt is the version of the row at an offset.
func (o *rowOrigin) versionAt(offset uint64) uint64 {
	lo, hi := 0, len(o.ends)-1
	for lo < hi {
		if mid := (lo + hi) / 2; o.ends[mid] <= offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return o.versions[lo].Version
}

// nameRows gives the fragments of moved rows the ids of their rows, and the versions that created them.
func (u *rowUpdate) nameRows() error {
	if !u.view.HasStableRowIDs() {
		return nil
	}
	ids, created := u.ids, u.created
	for _, f := range u.moved.done {
		n := f.GetPhysicalRows()
		if n > uint64(len(ids)) {
			return errs.New(errs.ErrInternal, "a fragment of %d rows for %d row ids", n, len(ids))
		}
		var err error
		if created, err = nameRows(f, ids[:n], created); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// nameRows sets the row ids of a fragment and the versions that created its rows, and returns the runs of the rows after them.
func nameRows(f *tablepb.DataFragment, ids []uint64, created []manifest.VersionRun) ([]manifest.VersionRun, error) {
	names, err := manifest.EncodeRowIDs(ids)
	if err != nil {
		return nil, err
	}
	mine, rest := splitVersions(created, uint64(len(ids)))
	versions, err := manifest.EncodeVersions(mine)
	if err != nil {
		return nil, err
	}
	f.RowIdSequence = &tablepb.DataFragment_InlineRowIds{InlineRowIds: names}
	f.CreatedAtVersionSequence = &tablepb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: versions}
	return rest, nil
}

// splitVersions cuts runs behind the first count rows.
func splitVersions(runs []manifest.VersionRun, count uint64) (head, rest []manifest.VersionRun) {
	for i, r := range runs {
		if r.Count > count {
			head = manifest.AppendVersion(head, count, r.Version)
			rest = append([]manifest.VersionRun{{Count: r.Count - count, Version: r.Version}}, runs[i+1:]...)
			return head, rest
		}
		head = append(head, r)
		count -= r.Count
	}
	return head, nil
}

// drop removes what was written.
func (u *rowUpdate) drop(ctx context.Context) error {
	var all error
	for _, w := range []*partWriter{&u.moved, &u.fresh} {
		if err := errors.Join(w.abort(), w.of.remove(ctx, w.done)); err != nil {
			all = errors.Join(all, fmt.Errorf("new rows of an update: %w", err))
		}
	}
	return all
}
