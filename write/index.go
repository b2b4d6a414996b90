package write

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// IndexChange registers index segments whose files are complete, and takes others out of the table.
type IndexChange struct {
	New     []*tablepb.IndexMetadata
	Removed [][]byte // uuids (16 bytes) of segments of the current version
}

// CommitIndex commits a change of index segments. Segments of one name that stay must cover other fragments than the new ones. What was committed since the oldest
// version that a new segment was built from must leave it true. Missing created_at and files are filled in. Errors: ErrInvalid for metadata that does not fit the table or its files, ErrNotFound for a segment to remove, ErrConflict, ErrIO.
func CommitIndex(ctx context.Context, t Target, change IndexChange, opts CommitOptions) (Committed, error) {
	opts = opts.withDefaults()
	base, err := t.latest(ctx)
	if err != nil {
		return Committed{}, err
	}
	op := &indexOp{change: change}
	from := base.Version()
	for _, m := range change.New {
		if err := t.complete(ctx, m, uint64(opts.Now().UnixMilli())); err != nil {
			return Committed{}, err
		}
		from = min(from, m.GetDatasetVersion())
	}
	for _, id := range change.Removed {
		at := slices.IndexFunc(base.Indices, func(m *tablepb.IndexMetadata) bool { return bytes.Equal(m.GetUuid().GetUuid(), id) })
		if at < 0 {
			return Committed{}, errs.New(errs.ErrNotFound, "the table has no index segment %x", id)
		}
		op.removed = append(op.removed, base.Indices[at])
	}
	if from > 0 && from < base.Version() {
		if base, err = t.at(ctx, base.naming, from); errors.Is(err, errs.ErrNotFound) {
			return Committed{}, errs.New(errs.ErrConflict, "version %d, which the index was built from, is gone; build it again", from)
		}
		if err != nil {
			return Committed{}, err
		}
	}
	return t.commit(ctx, base, op, opts)
}

// complete checks one new segment on its own and lists its files.
func (t Target) complete(ctx context.Context, m *tablepb.IndexMetadata, nowMillis uint64) error {
	id, err := uuid.FromBytes(m.GetUuid().GetUuid())
	if err != nil || m.GetName() == "" || len(m.GetFields()) == 0 || m.GetIndexDetails() == nil {
		return errs.New(errs.ErrInvalid, "index %q: a segment needs a uuid, a name, a field and details", m.GetName())
	}
	if _, err := coverOf(m); err != nil {
		return err
	}
	entries, err := t.Store.List(ctx, object.Join(t.Dir, manifest.IndicesDir, id.String()))
	if err != nil {
		return err
	}
	var files []*tablepb.IndexFile
	for _, e := range entries {
		if !e.IsDir {
			files = append(files, &tablepb.IndexFile{Path: e.Name, SizeBytes: uint64(e.SizeBytes)})
		}
	}
	if len(files) == 0 {
		return errs.New(errs.ErrInvalid, "index %q: segment %s has no files", m.GetName(), id)
	}
	if len(m.GetFiles()) == 0 {
		m.Files = files
	}
	if m.CreatedAt == nil {
		m.CreatedAt = &nowMillis
	}
	return nil
}

func coverOf(m *tablepb.IndexMetadata) (*roaring.Bitmap, error) {
	covers := roaring.New()
	if _, err := covers.FromBuffer(slices.Clone(m.GetFragmentBitmap())); err != nil {
		return nil, errs.New(errs.ErrInvalid, "index %q: fragment bitmap: %w", m.GetName(), err)
	}
	return covers, nil
}

type indexOp struct {
	change  IndexChange
	removed []*tablepb.IndexMetadata
}

func (o *indexOp) apply(base *version, n *next) error {
	for _, r := range o.removed {
		at := slices.IndexFunc(n.indices, func(m *tablepb.IndexMetadata) bool { return bytes.Equal(m.GetUuid().GetUuid(), r.GetUuid().GetUuid()) })
		if at < 0 {
			return errs.New(errs.ErrConflict, "index %q: another writer replaced the segment", r.GetName())
		}
		n.indices = slices.Delete(n.indices, at, at+1)
	}
	for _, m := range o.change.New {
		if err := o.checkSegment(base, n, m); err != nil {
			return err
		}
		n.indices = append(n.indices, m)
	}
	return nil
}

// checkSegment is the writer's half of the reader's checks: known field, known fragments, no fragment covered twice under one name.
func (o *indexOp) checkSegment(base *version, n *next, m *tablepb.IndexMetadata) error {
	for _, id := range m.GetFields() {
		if _, ok := base.Schema.ByID(id); !ok {
			return errs.New(errs.ErrInvalid, "index %q: the table has no field %d", m.GetName(), id)
		}
	}
	if m.GetDatasetVersion() > base.Version() {
		return errs.New(errs.ErrInvalid, "index %q: built from version %d, the table is at %d", m.GetName(), m.GetDatasetVersion(), base.Version())
	}
	covers, err := coverOf(m)
	if err != nil {
		return err
	}
	if !covers.IsEmpty() && (base.Proto.MaxFragmentId == nil || covers.Maximum() > base.Proto.GetMaxFragmentId()) {
		return errs.New(errs.ErrInvalid, "index %q: covers fragment %d, which the table never had", m.GetName(), covers.Maximum())
	}
	for _, other := range n.indices {
		if bytes.Equal(other.GetUuid().GetUuid(), m.GetUuid().GetUuid()) {
			return errs.New(errs.ErrInvalid, "index %q: the segment is already registered", m.GetName())
		}
		if other.GetName() != m.GetName() {
			continue
		}
		if !slices.Equal(other.GetFields(), m.GetFields()) {
			return errs.New(errs.ErrExists, "index %q exists on another column", m.GetName())
		}
		theirs, err := coverOf(other)
		if err != nil {
			return err
		}
		if covers.Intersects(theirs) {
			return errs.New(errs.ErrExists, "index %q already covers some of these fragments", m.GetName())
		}
	}
	return nil
}

func (o *indexOp) transaction() *tablepb.Transaction {
	return &tablepb.Transaction{Operation: &tablepb.Transaction_CreateIndex_{
		CreateIndex: &tablepb.Transaction_CreateIndex{NewIndices: o.change.New, RemovedIndices: o.removed},
	}}
}

// allows: rows that come or go leave the segment true for the fragments it covers; rewritten fragments and columns do not.
func (o *indexOp) allows(came *tablepb.Transaction) bool {
	switch c := came.GetOperation().(type) {
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Delete_, *tablepb.Transaction_CreateIndex_, *tablepb.Transaction_ReserveFragments_:
		return true
	case *tablepb.Transaction_Update_:
		return len(c.Update.GetFieldsModified()) == 0 // else columns changed in place
	}
	return false
}
