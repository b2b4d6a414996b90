package write

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// rewriteOp replaces fragments by others with the same rows.
type rewriteOp struct {
	snap      *storage.Snapshot
	groups    []*rewriteGroup
	ids       []uint64 // reserved for the new fragments; nil = count up
	remapped  []remappedSegment
	uncovered []string // indices, as apply left them
	// remap rewrites the segments of a version that name rewritten rows by address, as far as that was not done; nil = there is nobody who can.
	remap func(ctx context.Context, base *version) error

	given []uint64 // ids of the new fragments, as apply gave them
}

// remappedSegment takes the place of a segment.
type remappedSegment struct {
	old   []byte                 // uuid
	fresh *tablepb.IndexMetadata // nil = its kind cannot be remapped
	used  bool                   // the version in the making lists it
}

// describe fills in what a remapped segment has in common with the one that it replaces.
func describe(m, old *tablepb.IndexMetadata) *tablepb.IndexMetadata {
	m.Name, m.Fields, m.FragmentBitmap = old.GetName(), old.GetFields(), old.GetFragmentBitmap()
	if m.GetIndexDetails() == nil {
		m.IndexDetails = old.GetIndexDetails()
	}
	if m.IndexVersion == nil {
		m.IndexVersion = old.IndexVersion
	}
	if m.DatasetVersion == 0 {
		m.DatasetVersion = old.GetDatasetVersion()
	}
	if m.CreatedAt == nil {
		m.CreatedAt = old.CreatedAt
	}
	return m
}

// removeSegment deletes the files of a segment that no version names. It goes on after ctx has ended.
func (t Target) removeSegment(ctx context.Context, m *tablepb.IndexMetadata) error {
	id, err := uuid.FromBytes(m.GetUuid().GetUuid())
	if err != nil {
		return nil // it never had a folder
	}
	ctx = context.WithoutCancel(ctx)
	dir := object.Join(t.Dir, manifest.IndicesDir, id.String())
	entries, err := t.Store.List(ctx, dir)
	for _, e := range entries {
		if !e.IsDir {
			err = errors.Join(err, t.Store.Delete(ctx, object.Join(dir, e.Name)))
		}
	}
	return err
}

// looked says that a segment was rewritten, or cannot be.
func (o *rewriteOp) looked(m *tablepb.IndexMetadata) bool {
	return slices.ContainsFunc(o.remapped, func(r remappedSegment) bool { return bytes.Equal(r.old, m.GetUuid().GetUuid()) })
}

// prepare implements preparer: an index may have come, or another segment, since the fragments were read.
func (o *rewriteOp) prepare(ctx context.Context, base *version) error {
	if o.remap == nil {
		return nil
	}
	return o.remap(ctx, base)
}

func (o *rewriteOp) apply(_ *version, n *next) error {
	m := n.manifest
	now := make(map[uint64]*tablepb.DataFragment, len(m.GetFragments()))
	for _, f := range m.GetFragments() {
		now[f.GetId()] = f
	}
	retired := make(map[uint64]bool)
	for _, g := range o.groups {
		for _, f := range g.old {
			is, was := now[uint64(f.ID())], f.Proto()
			if is == nil || !isSubset(is.GetFiles(), was.GetFiles()) || !proto.Equal(is.GetDeletionFile(), was.GetDeletionFile()) {
				return errs.New(errs.ErrConflict, "fragment %d was changed by another writer while it was rewritten; run the statement again", f.ID())
			}
			retired[uint64(f.ID())] = true
		}
	}
	m.Fragments = slices.DeleteFunc(m.GetFragments(), func(f *tablepb.DataFragment) bool { return retired[f.GetId()] })
	var fresh []*tablepb.DataFragment
	for _, g := range o.groups {
		fresh = append(fresh, g.fresh...)
	}
	if err := n.addFragmentsAs(fresh, o.ids); err != nil {
		return err
	}
	o.given = n.fragments
	slices.SortFunc(m.GetFragments(), func(a, b *tablepb.DataFragment) int { return cmp.Compare(a.GetId(), b.GetId()) })
	n.dropDeadFiles()
	return o.moveCovers(n)
}

// moveCovers names the new fragments in place of the old ones in every segment that knows where the rows are.
func (o *rewriteOp) moveCovers(n *next) error {
	o.uncovered = nil
	for i := range o.remapped {
		o.remapped[i].used = false
	}
	stable := n.manifest.GetReaderFeatureFlags()&manifest.FlagStableRowIDs != 0
	for i := range n.indices {
		knows := stable && keepsRowIDs(n.indices[i])
		for at := range o.remapped {
			if r := &o.remapped[at]; r.fresh != nil && bytes.Equal(r.old, n.indices[i].GetUuid().GetUuid()) {
				r.used = true
				now := proto.Clone(r.fresh).(*tablepb.IndexMetadata) //nolint:errcheck,forcetypeassert // a clone
				now.FragmentBitmap = n.indices[i].GetFragmentBitmap()
				n.indices[i], knows = now, true
			}
		}
		covers, err := coverOf(n.indices[i])
		if err != nil {
			return err
		}
		if len(n.indices[i].GetFields()) == 0 {
			continue
		}
		changed, lost := o.moveCover(covers, knows)
		if lost && !slices.Contains(o.uncovered, n.indices[i].GetName()) {
			o.uncovered = append(o.uncovered, n.indices[i].GetName())
		}
		if changed {
			if err := n.setCover(i, covers); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveCover changes one set of covered fragments.
func (o *rewriteOp) moveCover(covers *roaring.Bitmap, knows bool) (changed, lost bool) {
	at := 0
	for _, g := range o.groups {
		ids := o.given[at : at+len(g.fresh)]
		at += len(g.fresh)
		all, some := true, false
		for _, f := range g.old {
			has := covers.Contains(f.ID())
			all, some = all && has, some || has
		}
		if !some {
			continue
		}
		changed = true
		for _, f := range g.old {
			covers.Remove(f.ID())
		}
		if !all || !knows {
			lost = true
			continue
		}
		for _, id := range ids {
			covers.Add(uint32(id))
		}
	}
	return changed, lost
}

func (o *rewriteOp) transaction() *tablepb.Transaction {
	tx := &tablepb.Transaction_Rewrite{}
	at := 0
	for _, g := range o.groups {
		group := &tablepb.Transaction_Rewrite_RewriteGroup{}
		for _, f := range g.old {
			group.OldFragments = append(group.OldFragments, f.Proto())
		}
		for _, f := range g.fresh {
			named := &tablepb.DataFragment{}
			proto.Merge(named, f)
			named.Id = o.given[at]
			at++
			group.NewFragments = append(group.NewFragments, named)
		}
		tx.Groups = append(tx.Groups, group)
	}
	for _, r := range o.remapped {
		if !r.used {
			continue
		}
		tx.RewrittenIndices = append(tx.RewrittenIndices, &tablepb.Transaction_Rewrite_RewrittenIndex{
			OldId: &tablepb.UUID{Uuid: r.old}, NewId: r.fresh.GetUuid(), NewIndexDetails: r.fresh.GetIndexDetails(),
			NewIndexVersion: uint32(r.fresh.GetIndexVersion()), NewIndexFiles: r.fresh.GetFiles(),
		})
	}
	return &tablepb.Transaction{Operation: &tablepb.Transaction_Rewrite_{Rewrite: tx}}
}

// allows: apply looks at the fragments, and prepare at indices that came.
func (o *rewriteOp) allows(came *tablepb.Transaction) bool {
	switch came.GetOperation().(type) {
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Delete_, *tablepb.Transaction_Update_, *tablepb.Transaction_Rewrite_,
		*tablepb.Transaction_ReserveFragments_, *tablepb.Transaction_DataReplacement_, *tablepb.Transaction_Project_, *tablepb.Transaction_CreateIndex_,
		*tablepb.Transaction_UpdateConfig, *tablepb.Transaction_UpdateBases, *tablepb.Transaction_Clone_:
		return true
	}
	return false
}

// reserveOp sets fragment ids aside, which the commit returns.
type reserveOp struct{ count uint32 }

func (o *reserveOp) apply(_ *version, n *next) error {
	first := nextFragmentID(n.manifest)
	if first+uint64(o.count) > math.MaxUint32+1 {
		return errs.New(errs.ErrOverflow, "fragment ids are used up")
	}
	for i := range uint64(o.count) {
		n.fragments = append(n.fragments, first+i)
	}
	top := uint32(first + uint64(o.count) - 1)
	n.manifest.MaxFragmentId = &top
	return nil
}

func (o *reserveOp) transaction() *tablepb.Transaction {
	return &tablepb.Transaction{Operation: &tablepb.Transaction_ReserveFragments_{ReserveFragments: &tablepb.Transaction_ReserveFragments{NumFragments: o.count}}}
}

// allows: ids are counted up from whatever is there.
func (o *reserveOp) allows(*tablepb.Transaction) bool { return true }
