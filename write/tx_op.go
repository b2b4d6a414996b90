package write

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// txOp is the operation that a Tx commits: rows that go, rows that come, or a table replaced.
type txOp struct {
	x       *Tx
	deleted *rowset.Set
	staged  []*stagedFragment

	// Of the version that the next attempt starts from:
	removed map[uint64]bool                  // fragments without a row left
	files   map[uint64]*tablepb.DeletionFile // of fragments that lost some rows; nil values in a preview
	fresh   []*tablepb.DeletionFile          // of staged fragments; nil = no row went
	ids     []uint64                         // of staged fragments, where they are wanted; nil = count up
	updated []*tablepb.DataFragment          // that lost some rows, as apply left them
	given   []uint64                         // ids that apply gave to staged fragments

	overwrite *tablepb.Transaction_Overwrite // what apply did to a table that is replaced

	against map[uint64]*tablepb.DeletionFile // what files[id] was merged with
	written []string                         // paths of deletion files of all attempts
}

func (x *Tx) op() *txOp {
	return &txOp{x: x, deleted: x.deleted, staged: x.staged, against: make(map[uint64]*tablepb.DeletionFile)}
}

func (o *txOp) isEmpty() bool {
	return o.x.replaced == nil && len(o.staged) == 0 && o.deleted.IsEmpty()
}

// preview settles the operation for base without writing a file and returns the deleted offsets of all fragments that are not as their files say.
func (o *txOp) preview(ctx context.Context) (map[uint32]*roaring.Bitmap, error) {
	out := make(map[uint32]*roaring.Bitmap)
	o.removed, o.files = make(map[uint64]bool), make(map[uint64]*tablepb.DeletionFile)
	for _, id := range o.deleted.Uppers() {
		f, ok := o.x.base.Fragment(id)
		if !ok {
			return nil, errs.New(errs.ErrInternal, "rows were deleted in fragment %d, which is not there", id)
		}
		all, err := withDeletions(ctx, f, o.deleted.Bitmap(id))
		if err != nil {
			return nil, err
		}
		if all.GetCardinality() == f.PhysicalRows() {
			o.removed[uint64(id)] = true
			continue
		}
		out[id], o.files[uint64(id)] = all, nil
	}
	o.fresh = make([]*tablepb.DeletionFile, len(o.staged))
	for _, f := range o.staged {
		o.ids = append(o.ids, f.pb.GetId())
		if f.deleted != nil {
			out[uint32(f.pb.GetId())] = f.deleted
		}
	}
	return out, nil
}

// withDeletions unites the fragment's deleted rows with more.
func withDeletions(ctx context.Context, f *storage.Fragment, more *roaring.Bitmap) (*roaring.Bitmap, error) {
	before, err := f.Deletions(ctx)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return more.Clone(), nil
	}
	return roaring.Or(before, more), nil
}

// prepare settles the operation for the version that the next attempt starts from: deletions are merged with those of others and written. Errors:
// ErrConflict where others touched the same rows, or rewrote their fragment.
func (o *txOp) prepare(ctx context.Context, at *version) error {
	o.removed = make(map[uint64]bool)
	o.ids = nil
	now := o.x.base
	if at.Version() != now.Version() && (!o.deleted.IsEmpty() || len(o.x.watches) > 0) {
		var err error
		if now, err = o.x.table.At(ctx, storage.Ref{Version: at.Version()}); err != nil {
			return err
		}
		if err := o.x.checkWatches(ctx, now); err != nil {
			return err
		}
	}
	if !o.deleted.IsEmpty() {
		if o.files == nil {
			o.files = make(map[uint64]*tablepb.DeletionFile)
		}
		for _, id := range o.deleted.Uppers() {
			if err := o.merge(ctx, now, id); err != nil {
				return err
			}
		}
	}
	o.fresh = make([]*tablepb.DeletionFile, len(o.staged))
	id := nextFragmentID(at.Proto)
	for i, f := range o.staged {
		if f.deleted != nil {
			d, err := o.writeDeletions(ctx, id, at.Version(), f.deleted)
			if err != nil {
				return err
			}
			o.fresh[i] = d
		}
		id++
	}
	return nil
}

// merge settles one fragment of base that loses rows.
func (o *txOp) merge(ctx context.Context, now *storage.Snapshot, id uint32) error {
	mine := o.deleted.Bitmap(id)
	was, ok := o.x.base.Fragment(id)
	if !ok {
		return errs.New(errs.ErrInternal, "rows were deleted in fragment %d, which is not there", id)
	}
	is, ok := now.Fragment(id)
	if !ok {
		return errs.New(errs.ErrConflict, "fragment %d was rewritten or removed by another writer; run the statement again", id)
	}
	if !isSubset(o.x.known(is.Proto().GetFiles()), was.Proto().GetFiles()) {
		return errs.New(errs.ErrConflict, "columns of fragment %d were rewritten by another writer; run the statement again", id)
	}
	current := is.Proto().GetDeletionFile()
	if d, done := o.files[uint64(id)]; done && d != nil && proto.Equal(o.against[uint64(id)], current) {
		return nil
	}
	delete(o.files, uint64(id))
	if !proto.Equal(current, was.Proto().GetDeletionFile()) {
		theirs, err := is.Deletions(ctx)
		if err != nil {
			return err
		}
		if theirs != nil && theirs.Intersects(mine) {
			return errs.New(errs.ErrConflict, "rows of fragment %d were deleted or updated by another writer; run the statement again", id)
		}
	}
	all, err := withDeletions(ctx, is, mine)
	if err != nil {
		return err
	}
	if all.GetCardinality() == is.PhysicalRows() {
		o.removed[uint64(id)] = true
		return nil
	}
	d, err := o.writeDeletions(ctx, uint64(id), now.Version(), all)
	if err != nil {
		return err
	}
	o.files[uint64(id)], o.against[uint64(id)] = d, current
	return nil
}

// known leaves out files of columns that came after base.
func (x *Tx) known(files []*tablepb.DataFile) []*tablepb.DataFile {
	isKnown := func(id int32) bool {
		_, ok := x.base.Schema().ByID(id)
		return ok
	}
	return slices.DeleteFunc(slices.Clone(files), func(d *tablepb.DataFile) bool { return !slices.ContainsFunc(d.GetFields(), isKnown) })
}

// isSubset says that every file of some is one of all, unchanged.
func isSubset(some, all []*tablepb.DataFile) bool {
	for _, f := range some {
		if !slices.ContainsFunc(all, func(g *tablepb.DataFile) bool { return proto.Equal(f, g) }) {
			return false
		}
	}
	return true
}

func (o *txOp) writeDeletions(ctx context.Context, fragment, readVersion uint64, offsets *roaring.Bitmap) (*tablepb.DeletionFile, error) {
	content, kind, err := manifest.EncodeDeletions(offsets)
	if err != nil {
		return nil, err
	}
	id, err := randomID()
	if err != nil {
		return nil, err
	}
	d := &tablepb.DeletionFile{FileType: kind, ReadVersion: readVersion, Id: id, NumDeletedRows: offsets.GetCardinality()}
	path := object.Join(o.x.target.Dir, manifest.DeletionPath(fragment, d))
	o.written = append(o.written, path)
	if err := o.x.target.Store.Put(ctx, path, content, false); err != nil {
		return nil, fmt.Errorf("deletion file of fragment %d: %w", fragment, err)
	}
	return d, nil
}

// randomID is the last part of a deletion file's name.
func randomID() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, errs.New(errs.ErrIO, "random bytes: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

func (o *txOp) apply(_ *version, n *next) error {
	m := n.manifest
	o.updated = nil
	var touched []uint32
	if r := o.x.replaced; r != nil {
		m.Fragments = nil
		if !r.keepIndices {
			m.Fields, m.SchemaMetadata = o.x.schema.ToProto(), r.metadata
		}
		o.overwrite = &tablepb.Transaction_Overwrite{Schema: m.GetFields(), SchemaMetadata: m.GetSchemaMetadata()}
		if err := n.clearIndices(r.keepIndices); err != nil {
			return err
		}
	} else if !o.deleted.IsEmpty() {
		touched = o.deleted.Uppers()
		m.Fragments = slices.DeleteFunc(m.GetFragments(), func(f *tablepb.DataFragment) bool { return o.removed[f.GetId()] })
		for _, f := range m.GetFragments() {
			if d := o.files[f.GetId()]; d != nil {
				f.DeletionFile = d
				o.updated = append(o.updated, f)
			}
		}
	}
	fragments := make([]*tablepb.DataFragment, len(o.staged))
	for i, f := range o.staged {
		fragments[i] = o.newFragment(i, f)
	}
	if err := n.addFragmentsAs(fragments, o.ids); err != nil {
		return err
	}
	o.given = n.fragments
	if err := n.recordImports(o.x.imported, o.x.replaced != nil); err != nil {
		return err
	}
	var moved []uint64
	for i, f := range o.staged {
		if f.isMoved {
			moved = append(moved, n.fragments[i])
		}
	}
	if err := n.coverMoved(moved, touched, o.x.modified); err != nil {
		return err
	}
	if len(touched) > 0 {
		return n.retainIndices()
	}
	return nil
}

// newFragment is a staged fragment as the transaction has it: without an id.
func (o *txOp) newFragment(i int, f *stagedFragment) *tablepb.DataFragment {
	out := &tablepb.DataFragment{}
	proto.Merge(out, f.pb)
	out.Id, out.DeletionFile = 0, o.fresh[i]
	return out
}

func (o *txOp) transaction() *tablepb.Transaction {
	tx := o.described()
	tx.TransactionProperties = importProperties(o.x.imported)
	return tx
}

func (o *txOp) described() *tablepb.Transaction {
	var fresh []*tablepb.DataFragment
	for i, f := range o.staged {
		fresh = append(fresh, o.newFragment(i, f))
	}
	if o.overwrite != nil {
		o.overwrite.Fragments = fresh
		return &tablepb.Transaction{Operation: &tablepb.Transaction_Overwrite_{Overwrite: o.overwrite}}
	}
	if o.deleted.IsEmpty() {
		return &tablepb.Transaction{Operation: &tablepb.Transaction_Append_{Append: &tablepb.Transaction_Append{Fragments: fresh}}}
	}
	updated, removed := o.updated, slices.Sorted(maps.Keys(o.removed))
	if len(fresh) == 0 {
		tx := &tablepb.Transaction_Delete{UpdatedFragments: updated, DeletedFragmentIds: removed, Predicate: o.x.opts.Predicate}
		return &tablepb.Transaction{Operation: &tablepb.Transaction_Delete_{Delete: tx}}
	}
	tx := &tablepb.Transaction_Update{
		UpdatedFragments: updated, RemovedFragmentIds: removed, NewFragments: fresh, FieldsForPreservingFragBitmap: o.x.modified.list(o.x.schema),
	}
	return &tablepb.Transaction{Operation: &tablepb.Transaction_Update_{Update: tx}}
}

// allows: prepare looks at the rows; here is what cannot be told from the fragments.
func (o *txOp) allows(came *tablepb.Transaction) bool {
	if o.x.replaced != nil {
		return allowsReplacement(came)
	}
	if m, ok := came.GetOperation().(*tablepb.Transaction_Merge_); ok {
		keeps, hasValues := keepsColumns(o.x.base.Schema(), m.Merge)
		return keeps && (!hasValues || len(o.staged) == 0)
	}
	if !allowsRows(came) {
		return false
	}
	if p, ok := came.GetOperation().(*tablepb.Transaction_Project_); ok && len(o.staged) > 0 {
		return p.Project.GetPreservesNullability() // else the new rows may hold nulls that the columns no longer allow
	}
	return true
}

// removeUnused deletes the deletion files of attempts that lost the race.
func (o *txOp) removeUnused(ctx context.Context) error {
	used := make(map[string]bool)
	for id, d := range o.files {
		if d != nil {
			used[object.Join(o.x.target.Dir, manifest.DeletionPath(id, d))] = true
		}
	}
	for i, d := range o.fresh {
		if d != nil {
			used[object.Join(o.x.target.Dir, manifest.DeletionPath(o.given[i], d))] = true
		}
	}
	o.written = slices.DeleteFunc(o.written, func(path string) bool { return used[path] })
	return o.removeAll(ctx)
}

// removeAll deletes all deletion files that were written. It goes on after ctx has ended.
func (o *txOp) removeAll(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var all error
	for _, path := range o.written {
		if err := o.x.target.Store.Delete(ctx, path); err != nil {
			all = errors.Join(all, fmt.Errorf("clean up %s: %w", path, err))
		}
	}
	return all
}
