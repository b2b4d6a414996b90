package write

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// IndexChange registers index segments whose files are complete, and takes others out of the table.
type IndexChange struct {
	New     []*tablepb.IndexMetadata
	Removed [][]byte // uuids (16 bytes) of segments of the current version
	Replace string   // every segment that has this name when the change is committed goes, too; "" = none
}

// CommitIndex commits a change of index segments. Segments of one name that stay must cover other fragments than the new ones. What was committed since the oldest
// version that a new segment was built from must leave it true: where its fragments were rewritten meanwhile the segment follows the rows that it names by id, and
// leaves the others to a scan. Missing created_at and files are filled in. Errors: ErrInvalid for metadata that does not fit the table or its files, ErrNotFound
// for a segment to remove, ErrConflict where that was replaced or a column changed, ErrIO.
func CommitIndex(ctx context.Context, t Target, change IndexChange, opts CommitOptions) (Committed, error) {
	done, _, err := commitIndex(ctx, t, change, opts)
	return done, err
}

// commitIndex is CommitIndex. narrowed says that rows which a new segment was built over are not covered, as they were rewritten meanwhile.
func commitIndex(ctx context.Context, t Target, change IndexChange, opts CommitOptions) (done Committed, narrowed bool, err error) {
	opts = opts.withDefaults()
	base, err := t.latest(ctx)
	if err != nil {
		return Committed{}, false, err
	}
	op := &indexOp{change: change}
	from := base.Version()
	for _, m := range change.New {
		if err := t.complete(ctx, m, uint64(opts.Now().UnixMilli())); err != nil {
			return Committed{}, false, err
		}
		if m.GetDatasetVersion() > 0 {
			from = min(from, m.GetDatasetVersion())
		}
	}
	newest := base
	if from < base.Version() {
		if base, err = t.at(ctx, base.naming, from); errors.Is(err, errs.ErrNotFound) {
			return Committed{}, false, errs.New(errs.ErrConflict, "version %d, which the index was built from, is gone; build it again", from)
		}
		if err != nil {
			return Committed{}, false, err
		}
	}
	for _, id := range change.Removed {
		is := func(m *tablepb.IndexMetadata) bool { return bytes.Equal(m.GetUuid().GetUuid(), id) }
		at := slices.IndexFunc(newest.Indices, is)
		switch {
		case at >= 0:
			op.removed = append(op.removed, newest.Indices[at])
		case slices.ContainsFunc(base.Indices, is):
			return Committed{}, false, errs.New(errs.ErrConflict, "another writer replaced index segment %x", id)
		default:
			return Committed{}, false, errs.New(errs.ErrNotFound, "the table has no index segment %x", id)
		}
	}
	op.built = base
	done, err = t.commit(ctx, base, op, opts)
	return done, op.narrowed, err
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

// indexOp changes which segments there are.
type indexOp struct {
	change  IndexChange
	removed []*tablepb.IndexMetadata
	built   *version                       // that the new segments were built from, or an earlier one
	rewrote []*tablepb.Transaction_Rewrite // what came since and moved rows, oldest first
	seen    map[string]bool                // uuids of those

	added    []*tablepb.IndexMetadata // as apply left them
	gone     []*tablepb.IndexMetadata
	narrowed bool
}

func (o *indexOp) apply(base *version, n *next) error {
	o.added, o.gone, o.narrowed = nil, slices.Clone(o.removed), false
	for _, r := range o.removed {
		at := slices.IndexFunc(n.indices, func(m *tablepb.IndexMetadata) bool { return bytes.Equal(m.GetUuid().GetUuid(), r.GetUuid().GetUuid()) })
		if at < 0 {
			return errs.New(errs.ErrConflict, "index %q: another writer replaced the segment", r.GetName())
		}
		n.indices = slices.Delete(n.indices, at, at+1)
	}
	if o.change.Replace != "" {
		n.indices = slices.DeleteFunc(n.indices, func(m *tablepb.IndexMetadata) bool {
			goes := m.GetName() == o.change.Replace
			if goes {
				o.gone = append(o.gone, m)
			}
			return goes
		})
	}
	stable := n.manifest.GetReaderFeatureFlags()&manifest.FlagStableRowIDs != 0
	for _, m := range o.change.New {
		m, err := o.follow(m, stable, n.hasReuse())
		if err != nil {
			return err
		}
		if err := o.checkSegment(base, n, m); err != nil {
			return err
		}
		n.indices = append(n.indices, m)
		o.added = append(o.added, m)
	}
	return nil
}

// follow moves what a new segment covers to where rows that it names by id were rewritten. A segment that names them by address keeps ids of fragments that are gone,
// which mean nothing; what took their place is not covered.
func (o *indexOp) follow(m *tablepb.IndexMetadata, stable, hasReuse bool) (*tablepb.IndexMetadata, error) {
	if len(o.rewrote) == 0 {
		return m, nil
	}
	covers, err := coverOf(m)
	if err != nil {
		return nil, err
	}
	knows, moved := stable && keepsRowIDs(m), false
	for _, r := range o.rewrote {
		for _, g := range r.GetGroups() {
			all, some := true, false
			for _, f := range g.GetOldFragments() {
				has := covers.Contains(uint32(f.GetId()))
				all, some = all && has, some || has
			}
			if !some {
				continue
			}
			if !all && hasReuse { // engines that follow the reuse index refuse a table whose segments cover a part of what was compacted together
				return nil, errs.New(errs.ErrConflict, "index %q: another writer compacted fragments of which it covers a part; run the statement again", m.GetName())
			}
			if !all || !knows {
				o.narrowed = true
				continue
			}
			moved = true
			for _, f := range g.GetOldFragments() {
				covers.Remove(uint32(f.GetId()))
			}
			for _, f := range g.GetNewFragments() {
				covers.Add(uint32(f.GetId()))
			}
		}
	}
	if !moved {
		return m, nil
	}
	now := proto.Clone(m).(*tablepb.IndexMetadata) //nolint:errcheck,forcetypeassert // a clone
	if now.FragmentBitmap, err = covers.ToBytes(); err != nil {
		return nil, errs.New(errs.ErrInternal, "fragment bitmap: %w", err)
	}
	return now, nil
}

// checkColumns refuses a segment whose columns changed since it was built: they are gone, or other files hold them in a fragment that it covers.
func (o *indexOp) checkColumns(base *version, m *tablepb.IndexMetadata, covers *roaring.Bitmap) error {
	var leaves fieldIDs // files list those alone
	for _, id := range m.GetFields() {
		f, was := o.built.Schema.ByID(id)
		if !was {
			continue
		}
		if _, is := base.Schema.ByID(id); !is {
			return errs.New(errs.ErrConflict, "index %q: another writer took its column away", m.GetName())
		}
		leaves.add(f)
	}
	was := make(map[uint64]*tablepb.DataFragment)
	for _, f := range o.built.Proto.GetFragments() {
		if covers.Contains(uint32(f.GetId())) {
			was[f.GetId()] = f
		}
	}
	for _, f := range base.Proto.GetFragments() {
		if old, ok := was[f.GetId()]; ok && !slices.Equal(filesOf(old, leaves), filesOf(f, leaves)) {
			return errs.New(errs.ErrConflict, "index %q: another writer changed its column in fragment %d", m.GetName(), f.GetId())
		}
	}
	return nil
}

// filesOf names the files of a fragment that hold any of the fields.
func filesOf(f *tablepb.DataFragment, fields fieldIDs) []string {
	var out []string
	for _, d := range f.GetFiles() {
		if fields.hasAny(d.GetFields()) {
			out = append(out, d.GetPath())
		}
	}
	return out
}

// checkSegment is the writer's half of the reader's checks: known field, known fragments, no fragment covered twice under one name.
func (o *indexOp) checkSegment(base *version, n *next, m *tablepb.IndexMetadata) error {
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
	if o.built != nil && o.built.Version() < base.Version() {
		if err := o.checkColumns(base, m, covers); err != nil {
			return err
		}
	}
	for _, id := range m.GetFields() {
		if _, ok := base.Schema.ByID(id); !ok {
			return errs.New(errs.ErrInvalid, "index %q: the table has no field %d", m.GetName(), id)
		}
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
		CreateIndex: &tablepb.Transaction_CreateIndex{NewIndices: o.added, RemovedIndices: o.gone},
	}}
}

// allows: rows that come or go leave the segment true for the fragments it covers, and so do other columns (checkColumns). Rewritten fragments are followed, or left.
func (o *indexOp) allows(came *tablepb.Transaction) bool {
	switch c := came.GetOperation().(type) {
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Delete_, *tablepb.Transaction_CreateIndex_, *tablepb.Transaction_ReserveFragments_,
		*tablepb.Transaction_Update_, *tablepb.Transaction_DataReplacement_, *tablepb.Transaction_Project_, *tablepb.Transaction_Merge_,
		*tablepb.Transaction_UpdateConfig, *tablepb.Transaction_UpdateBases, *tablepb.Transaction_Clone_:
		return true
	case *tablepb.Transaction_Rewrite_:
		if o.seen == nil {
			o.seen = make(map[string]bool)
		}
		if id := came.GetUuid(); !o.seen[id] { // an attempt looks again at what the one before saw
			o.seen[id] = id != ""
			o.rewrote = append(o.rewrote, c.Rewrite)
		}
		return true
	}
	return false
}
