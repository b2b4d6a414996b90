package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/index/zonemap"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// IndexSpec says what an index is.
type IndexSpec struct {
	Name   string     `json:"name"`   // "" = COLUMN_idx
	Column string     `json:"column"` // a top-level column, spelled exactly
	Kind   index.Kind `json:"kind"`   // LABEL_LIST, BITMAP, BTREE, ZONEMAP or IVF_FLAT
	// RowsPerZone is how many rows a zone of a ZONEMAP has; 0 = 8192.
	RowsPerZone uint64 `json:"rows_per_zone,omitempty"`
	// RowAddresses has segments of LABEL_LIST, BITMAP and BTREE store row addresses in tables with stable row ids, as core 14 does for BTREE. Engines before
	// core 13 do not read such segments; by default they store row ids, which every engine reads and no compaction changes.
	RowAddresses bool `json:"row_addresses,omitempty"`
	// IVF_FLAT alone, see IVFFlatOptions.
	Metric     index.Metric `json:"metric,omitempty"`
	Lists      int          `json:"lists,omitempty"`
	SampleRate int          `json:"sample_rate,omitempty"`
	Iterations int          `json:"iterations,omitempty"`
	Seed       uint64       `json:"seed,omitempty"`
}

func (s IndexSpec) withDefaults() IndexSpec {
	if s.Name == "" {
		s.Name = s.Column + "_idx"
	}
	if s.Metric == "" && s.Kind == index.KindIVFFlat {
		s.Metric = index.MetricL2
	}
	return s
}

// CreateOptions says what becomes of an index of the same name.
type CreateIndexOptions struct {
	// Replace takes out the segments that exist under the name; Extend covers only the fragments that they do not, with centroids of its own for vectors, and keeps
	// them, as UpdateIndex does that merges none. Without either an existing name is ErrExists.
	Replace, Extend bool
	IndexOptions
}

// Validate refuses to replace and to extend at once.
func (o CreateIndexOptions) Validate() error {
	if o.Replace && o.Extend {
		return errs.New(errs.ErrInvalid, "an index is either replaced or extended")
	}
	return nil
}

// IndexChanged describes what was done to an index.
type IndexChanged struct {
	Committed
	UUID     string   // of the new segment; "" = nothing was to do, and nothing was committed
	Replaced []string // segments that it replaced
	Read     []uint32 // fragments whose rows were read

	narrowed bool // see commitIndex
}

// CreateIndex builds an index over a column of the newest version and commits it. Extending an index that covers everything commits nothing. Errors: ErrNotFound for
// the column, ErrInvalid for a column that the kind cannot index, ErrUnsupported for its type and for other kinds, ErrExists, ErrMemoryLimit,
// ErrConflict, ErrIO, ErrDiskFull. After an error no file is left behind, unless nobody can tell what became of the commit. What another writer makes of the table
// meanwhile is taken into account: rows that were rewritten are covered by extending the index, and work that became useless is done again.
func CreateIndex(ctx context.Context, table *storage.Table, spec IndexSpec, opts CreateIndexOptions) (IndexChanged, error) {
	if err := opts.Validate(); err != nil {
		return IndexChanged{}, err
	}
	done, err := again(ctx, opts.Commit, func() (IndexChanged, error) { return createIndex(ctx, table, spec, opts) })
	if err != nil || !done.narrowed {
		return done, err
	}
	return extendNarrowed(ctx, table, spec.withDefaults().Name, opts.IndexOptions, done)
}

// extendNarrowed covers the rows that were rewritten while an index was made of them. Where others rewrite them all the time the index stays without them: it is true, and
// the next update covers them.
func extendNarrowed(ctx context.Context, table *storage.Table, name string, opts IndexOptions, done IndexChanged) (IndexChanged, error) {
	for range rebuildsMax {
		more, err := UpdateIndex(ctx, table, name, UpdateIndexOptions{IndexOptions: opts})
		if errors.Is(err, errs.ErrConflict) {
			return done, nil
		}
		if err != nil || more.UUID == "" {
			return done, err
		}
		more.Replaced = append(slices.DeleteFunc(more.Replaced, func(id string) bool { return id == done.UUID }), done.Replaced...)
		done = more
		if !done.narrowed {
			break
		}
	}
	return done, nil
}

func createIndex(ctx context.Context, table *storage.Table, spec IndexSpec, opts CreateIndexOptions) (IndexChanged, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return IndexChanged{}, err
	}
	spec = spec.withDefaults()
	job, removed, err := planCreate(snap, spec, opts)
	if err == nil && opts.Extend {
		removed, err = job.outdated(ctx, group(snap, spec.Name))
		if err == nil && len(removed) > 0 {
			if err = job.like(ctx, group(snap, spec.Name), nil); err == nil {
				err = job.absorb(ctx, removed)
			}
		}
	}
	if err != nil {
		return IndexChanged{}, fmt.Errorf("index %s: %w", spec.Name, err)
	}
	if opts.Extend && job.read.IsEmpty() && len(group(snap, spec.Name)) > 0 {
		return IndexChanged{Committed: Committed{Version: snap.Version()}}, nil
	}
	if opts.Replace {
		return job.commit(ctx, IndexChange{Replace: spec.Name}, removed)
	}
	return job.commit(ctx, IndexChange{}, removed)
}

// group returns the segments of a name, in the order of the manifest.
func group(snap *storage.Snapshot, name string) []storage.IndexInfo {
	var out []storage.IndexInfo
	for _, info := range snap.Indices() {
		if info.Name == name {
			out = append(out, info)
		}
	}
	return out
}

// planCreate finds what a new segment covers and which segments go.
func planCreate(snap *storage.Snapshot, spec IndexSpec, opts CreateIndexOptions) (*segmentJob, []storage.IndexInfo, error) {
	f, ok := snap.Schema().Lookup(spec.Column)
	if !ok {
		return nil, nil, errs.New(errs.ErrNotFound, "the table has no column %q", spec.Column)
	}
	covers := liveFragments(snap)
	var removed []storage.IndexInfo
	for _, info := range group(snap, spec.Name) {
		switch kind, _ := segmentKind(info); {
		case !slices.Equal(info.FieldIDs, []int32{f.ID}):
			return nil, nil, errs.New(errs.ErrExists, "an index of this name is on another column")
		case opts.Replace:
			removed = append(removed, info)
		case opts.Extend && kind != spec.Kind:
			return nil, nil, errs.New(errs.ErrInvalid, "it is of type %s, and cannot be extended by %s", info.TypeURL, spec.Kind)
		case opts.Extend:
			covers.AndNot(info.Covers)
			// Core 14 refuses an index whose segments disagree on their keys.
			spec.RowAddresses = index.PhysicalKeys(kind, info.Version)
		default:
			return nil, nil, errs.New(errs.ErrExists, "an index of this name exists")
		}
	}
	return &segmentJob{snap: snap, spec: spec, field: f, opts: opts.IndexOptions, read: covers, covers: covers}, removed, nil
}

// segmentKind returns the kind of a segment; false where it is not known.
func segmentKind(info storage.IndexInfo) (index.Kind, bool) {
	if vector.IsDetails(info.TypeURL) {
		kind, _, known := vector.KindOf(info.Details)
		return kind, known
	}
	return filter.KindOf(info.TypeURL)
}

// commit builds the segment and commits it in the place of others, those of change.Replace if it names an index.
func (j *segmentJob) commit(ctx context.Context, change IndexChange, removed []storage.IndexInfo) (IndexChanged, error) {
	meta, err := j.build(ctx)
	if err != nil {
		return IndexChanged{}, fmt.Errorf("index %s: %w", j.spec.Name, err)
	}
	out := IndexChanged{UUID: j.id.String(), Read: j.read.ToArray()}
	change.New = []*tablepb.IndexMetadata{meta}
	for _, info := range removed {
		out.Replaced = append(out.Replaced, info.UUID)
	}
	if change.Replace == "" {
		change.Removed, err = uuidsOf(removed)
	}
	if err == nil {
		target := Target{Store: j.snap.Table().Store(), Dir: j.snap.Table().Dir()}
		out.Committed, out.narrowed, err = commitIndex(ctx, target, change, j.opts.Commit)
	}
	if err != nil && !errors.Is(err, errOutcome) { // else the segment may be in use
		err = errors.Join(err, j.removeFiles(ctx))
	}
	if err != nil {
		return IndexChanged{}, fmt.Errorf("index %s: %w", j.spec.Name, err)
	}
	return out, nil
}

func uuidsOf(infos []storage.IndexInfo) ([][]byte, error) {
	var out [][]byte
	for _, info := range infos {
		id, err := uuid.Parse(info.UUID)
		if err != nil {
			return nil, errs.New(errs.ErrInternal, "segment %q: %w", info.UUID, err)
		}
		out = append(out, id[:])
	}
	return out, nil
}

// UpdateIndexOptions tunes UpdateIndex. The zero value is the default.
type UpdateIndexOptions struct {
	// Merge is how many of the index's newest segments become one with the new rows: 0 = 1, as the real engine does; -1 = none, the new rows become a segment
	// of their own. With 2 and more segments are merged even where no row is new.
	Merge int
	// SegmentsOnly leaves rows that are not covered yet uncovered: segments are merged, the table is not read.
	SegmentsOnly bool
	IndexOptions
}

// Validate refuses counts that make no sense.
func (o UpdateIndexOptions) Validate() error {
	if o.Merge < -1 {
		return errs.New(errs.ErrInvalid, "%d segments cannot be merged", o.Merge)
	}
	return nil
}

// outdated returns the segments that may hold entries of rows which live in the fragments that are read: rows that were updated since, and kept the row id under
// which the segment has them. To lakesql such an entry means nothing, as the row's fragment is not covered by its segment; engines ask whether any segment
// covers it, and would take the entry for true. So the segment has to go when those fragments become covered. So do segments on fragments that are gone where a
// fragment reuse index is: to engines that follow it they cover the fragments which those became, and two segments of an index must not cover the same rows.
func (j *segmentJob) outdated(ctx context.Context, segments []storage.IndexInfo) ([]storage.IndexInfo, error) {
	if slices.ContainsFunc(j.snap.Indices(), func(o storage.IndexInfo) bool { return isReuse(o.TypeURL) }) && !j.read.IsEmpty() {
		live := liveFragments(j.snap)
		return slices.DeleteFunc(slices.Clone(segments), func(o storage.IndexInfo) bool { return roaring.AndNot(o.Covers, live).IsEmpty() }), nil
	}
	if !j.snap.HasStableRowIDs() || j.addresses() || j.read.IsEmpty() || len(segments) == 0 {
		return nil, nil
	}
	keys, err := liveKeys(ctx, j.snap, j.read, false)
	if err != nil {
		return nil, err
	}
	least, some := uint64(0), false
	for least = range keys.All() {
		some = true
		break
	}
	var out []storage.IndexInfo
	for _, info := range segments {
		end, err := rowIDsBefore(ctx, j.snap, info)
		if err != nil {
			return nil, err
		}
		if some && least < end {
			out = append(out, info)
		}
	}
	return out, nil
}

// rowIDsBefore returns a row id that is larger than all that a segment holds: the next one of the version that brought the segment, or of a later one if that is gone.
func rowIDsBefore(ctx context.Context, snap *storage.Snapshot, info storage.IndexInfo) (uint64, error) {
	end := snap.Manifest().Proto.GetNextRowId()
	// Versions from the one that brought the segment on list it; one that is gone is taken for an earlier one.
	for low, high := info.DatasetVersion+1, snap.Version(); low < high; {
		middle := low + (high-low)/2
		at, err := snap.Table().At(ctx, storage.Ref{Version: middle})
		if err != nil && !errors.Is(err, errs.ErrNotFound) && !errors.Is(err, errs.ErrUnsupported) {
			return 0, err
		}
		if err == nil && slices.ContainsFunc(at.Indices(), func(o storage.IndexInfo) bool { return o.UUID == info.UUID }) {
			high, end = middle, at.Manifest().Proto.GetNextRowId()
		} else {
			low = middle + 1
		}
	}
	return end, nil
}

// absorb takes over the rows of segments; those of segments that cannot be taken over are read.
func (j *segmentJob) absorb(ctx context.Context, segments []storage.IndexInfo) error {
	live := liveFragments(j.snap)
	j.read = j.read.Clone() // it may be the same as covers
	for _, info := range segments {
		covered := roaring.And(info.Covers, live)
		j.covers.Or(covered)
		ok, err := j.canTake(ctx, info)
		if err != nil {
			return err
		}
		if !ok {
			j.read.Or(covered)
			continue
		}
		keys, err := liveKeys(ctx, j.snap, covered, j.addresses())
		if err != nil {
			return err
		}
		j.take = append(j.take, takenSegment{info, index.Only{Keys: keys}})
	}
	return nil
}

// UpdateIndex covers the rows of fragments that the index does not cover yet, and merges segments. Rows that an index holds already are taken from it without touching
// the table; rows that were deleted, updated or rewritten since drop out. Only where a segment cannot tell which of its entries are true (docs/format/label_list.md
// section 5), or is of an engine that left something out, are its fragments read again. In tables with stable row ids more segments than opts.Merge says are merged
// where they hold rows that were updated since (outdated). Vectors keep the centroids of the largest segment that is
// merged, or of the largest of all. What another writer changed meanwhile is looked at again. Errors: ErrNotFound for the index, ErrUnsupported for kinds that lakesql does not build, and as CreateIndex.
func UpdateIndex(ctx context.Context, table *storage.Table, name string, opts UpdateIndexOptions) (IndexChanged, error) {
	if err := opts.Validate(); err != nil {
		return IndexChanged{}, err
	}
	return again(ctx, opts.Commit, func() (IndexChanged, error) {
		done, err := updateIndex(ctx, table, name, opts)
		if errors.Is(err, errs.ErrExists) { // another writer covered the same rows
			err = fmt.Errorf("%w: %w", errs.ErrConflict, err)
		}
		return done, err
	})
}

func updateIndex(ctx context.Context, table *storage.Table, name string, opts UpdateIndexOptions) (IndexChanged, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return IndexChanged{}, err
	}
	u := &indexUpdate{snap: snap, segments: group(snap, name), opts: opts}
	if len(u.segments) == 0 {
		return IndexChanged{}, errs.New(errs.ErrUnknownIndex, "the table has no index %q", name)
	}
	job, removed, err := u.plan(ctx, name)
	if err != nil {
		return IndexChanged{}, fmt.Errorf("index %s: %w", name, err)
	}
	if job == nil {
		return IndexChanged{Committed: Committed{Version: snap.Version()}}, nil
	}
	return job.commit(ctx, IndexChange{}, removed)
}

// Updates says that indices of a kind, spelled as IndexStatus does, can be created and updated here.
func Updates(kind string) bool {
	switch index.Kind(kind) {
	case index.KindLabelList, index.KindBitmap, index.KindBTree, index.KindZoneMap, index.KindIVFFlat:
		return true
	}
	return false
}

// indexUpdate is one run of UpdateIndex.
type indexUpdate struct {
	snap     *storage.Snapshot
	segments []storage.IndexInfo
	opts     UpdateIndexOptions
}

// plan returns what is to be built and which segments go; nil = there is nothing to do.
func (u *indexUpdate) plan(ctx context.Context, name string) (*segmentJob, []storage.IndexInfo, error) {
	f, kind, err := u.describe()
	if err != nil {
		return nil, nil, err
	}
	live := liveFragments(u.snap)
	open := live.Clone() // covered by no segment
	for _, info := range u.segments {
		open.AndNot(info.Covers)
	}
	if u.opts.SegmentsOnly {
		open.Clear()
	}
	merge := u.opts.Merge
	switch merge {
	case 0:
		merge = 1
	case -1:
		merge = 0
	}
	take := u.segments[max(0, len(u.segments)-merge):]
	rest := u.segments[:len(u.segments)-len(take)]
	if open.IsEmpty() && len(take) < 2 {
		return nil, nil, nil
	}
	spec := IndexSpec{Name: name, Column: f.Name, Kind: kind, RowAddresses: index.PhysicalKeys(kind, u.segments[0].Version)}
	job := &segmentJob{snap: u.snap, spec: spec, field: f, opts: u.opts.IndexOptions, read: open.Clone(), covers: open}
	outdated, err := job.outdated(ctx, rest)
	if err != nil {
		return nil, nil, err
	}
	take = append(slices.Clone(outdated), take...)
	// A segment over fragments that are all gone says nothing: it goes too.
	removed := slices.Clone(take)
	for _, info := range rest {
		isTaken := slices.ContainsFunc(outdated, func(o storage.IndexInfo) bool { return o.UUID == info.UUID })
		if !isTaken && !info.Covers.Intersects(live) {
			removed = append(removed, info)
		}
	}
	if err := job.like(ctx, u.segments, take); err != nil {
		return nil, nil, err
	}
	return job, removed, job.absorb(ctx, take)
}

// describe returns column and kind of the index. Errors: ErrUnsupported.
func (u *indexUpdate) describe() (*schema.Field, index.Kind, error) {
	first := u.segments[0]
	kind, known := segmentKind(first)
	switch {
	case known && Updates(string(kind)):
	case known:
		return nil, "", errs.New(errs.ErrUnsupported, "indices of kind %s are not updated; drop it and create it anew", kind)
	default:
		return nil, "", errs.New(errs.ErrUnsupported, "indices of type %s are not updated", first.TypeURL)
	}
	for _, info := range u.segments {
		if !strings.EqualFold(info.TypeURL, first.TypeURL) || !slices.Equal(info.FieldIDs, first.FieldIDs) {
			return nil, "", errs.New(errs.ErrUnsupported, "its segments are of types %s and %s", first.TypeURL, info.TypeURL)
		}
	}
	for _, f := range u.snap.Schema().Fields {
		if len(first.FieldIDs) == 1 && f.ID == first.FieldIDs[0] {
			return f, kind, nil
		}
	}
	return nil, "", errs.New(errs.ErrUnsupported, "it is not on one top-level column")
}

// like takes over what the index's segments have in common: the rows of a zone, the metric and the centroids.
func (j *segmentJob) like(ctx context.Context, all, take []storage.IndexInfo) error {
	if len(take) > 0 {
		all = take
	}
	switch j.spec.Kind {
	case index.KindZoneMap:
		s, err := j.open(ctx, all[len(all)-1])
		if err != nil {
			return err
		}
		j.spec.RowsPerZone = s.(*zonemap.Segment).RowsPerZone()
		return s.Close()
	case index.KindIVFFlat:
		var most uint64
		for _, info := range all {
			s, err := j.open(ctx, info)
			if err != nil {
				return err
			}
			v := s.(*vector.Segment)
			if rows := v.Rows() + 1; rows > most {
				c := v.Centroids()
				most, j.center, j.spec.Metric = rows, &c, v.Meta().Metric
			}
			if err := s.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// canTake says that the rows of a segment can be taken over: it is of the keys of the new one, and tells all that is needed.
func (j *segmentJob) canTake(ctx context.Context, info storage.IndexInfo) (bool, error) {
	if index.PhysicalKeys(j.spec.Kind, info.Version) != j.addresses() {
		return false, nil
	}
	stale, err := filter.MayBeStale(ctx, j.snap, info)
	if err != nil || stale {
		return false, err
	}
	s, err := j.open(ctx, info)
	if errors.Is(err, errs.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ok := true
	switch s := s.(type) {
	case *labellist.Segment:
		_, ok = s.NullLists()
	case *zonemap.Segment:
		_, ok = s.Nulls()
	}
	return ok, s.Close()
}

// DropIndex takes every segment of an index out of the table, whatever its kind. Their files stay for older versions until those are cleaned up. Errors: ErrNotFound,
// ErrConflict, ErrIO.
func DropIndex(ctx context.Context, table *storage.Table, name string, opts CommitOptions) (Committed, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return Committed{}, err
	}
	if len(group(snap, name)) == 0 {
		return Committed{}, errs.New(errs.ErrUnknownIndex, "the table has no index %q", name)
	}
	done, err := CommitIndex(ctx, Target{Store: table.Store(), Dir: table.Dir()}, IndexChange{Replace: name}, opts)
	if err != nil {
		return Committed{}, fmt.Errorf("drop index %s: %w", name, err)
	}
	return done, nil
}
