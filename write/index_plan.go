package write

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// planFormat is the version of the text of plans and results.
const planFormat = 1

// IndexPlan is the building of an index cut into tasks that know nothing of each other: each is one process anywhere that reads the table and writes a
// segment of its own. It is plain data, to be kept as JSON.
type IndexPlan struct {
	Format  int         `json:"format"`
	Dataset string      `json:"dataset"` // where the table lies, as whoever plans names it
	Version uint64      `json:"version"` // of the table that every task reads
	Index   IndexSpec   `json:"index"`
	FieldID int32       `json:"field_id"`
	Removes []string    `json:"removes,omitempty"` // segments that the commit takes out
	Tasks   []IndexTask `json:"tasks"`
	// Centroids of IVF_FLAT, trained once: [lists*dim]float32 little-endian.
	Centroids []byte  `json:"centroids,omitempty"`
	Loss      float64 `json:"loss,omitempty"`
}

// IndexTask is the fragments that one task covers.
type IndexTask struct {
	Fragments []uint32 `json:"fragments"`
	Rows      uint64   `json:"rows"`
}

// IndexTaskResult is what a task made.
type IndexTaskResult struct {
	Format   int    `json:"format"`
	Task     int    `json:"task"`
	UUID     string `json:"uuid"`     // of the segment
	Metadata []byte `json:"metadata"` // IndexMetadata of the format
}

// PlanIndexOptions tunes PlanIndex. The zero value is one task for each fragment.
type PlanIndexOptions struct {
	Tasks           int // at most; 0 = one for each fragment
	Replace, Extend bool
	IndexOptions    // of training, for IVF_FLAT
}

// PlanIndex cuts the building of an index over the newest version into tasks of about as many rows each. For IVF_FLAT it trains the centroids that every task uses, those
// of an index that is extended where there is one. Errors: as CreateIndex.
func PlanIndex(ctx context.Context, table *storage.Table, spec IndexSpec, opts PlanIndexOptions) (*IndexPlan, error) {
	create := CreateIndexOptions{Replace: opts.Replace, Extend: opts.Extend, IndexOptions: opts.IndexOptions.withDefaults()}
	if err := create.Validate(); err != nil {
		return nil, err
	}
	if opts.Tasks < 0 {
		return nil, errs.New(errs.ErrInvalid, "%d tasks", opts.Tasks)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	spec = spec.withDefaults()
	plan, err := planIndex(ctx, snap, spec, create, opts.Tasks)
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", spec.Name, err)
	}
	return plan, nil
}

func planIndex(ctx context.Context, snap *storage.Snapshot, spec IndexSpec, opts CreateIndexOptions, tasks int) (*IndexPlan, error) {
	job, removed, err := planCreate(snap, spec, opts)
	if err != nil {
		return nil, err
	}
	if err := job.checkColumn(); err != nil {
		return nil, err
	}
	if opts.Extend {
		// Tasks know the table alone, so what would be taken over from segments is read.
		if removed, err = job.outdated(ctx, group(snap, spec.Name)); err != nil {
			return nil, err
		}
		for _, info := range removed {
			job.read.Or(roaring.And(info.Covers, liveFragments(snap)))
		}
	}
	plan := &IndexPlan{Format: planFormat, Dataset: snap.Table().Path(), Version: snap.Version(), FieldID: job.field.ID}
	for _, info := range removed {
		plan.Removes = append(plan.Removes, info.UUID)
	}
	plan.cut(snap, job.read, tasks)
	if spec.Kind == index.KindIVFFlat && len(plan.Tasks) > 0 {
		if opts.Extend {
			if err := job.like(ctx, group(snap, spec.Name), nil); err != nil {
				return nil, err
			}
		}
		if job.center == nil {
			if err := job.train(ctx); err != nil {
				return nil, err
			}
		}
		for _, x := range job.center.Values {
			plan.Centroids = binary.LittleEndian.AppendUint32(plan.Centroids, math.Float32bits(x))
		}
		plan.Loss = job.center.Loss
	}
	plan.Index = job.spec
	return plan, nil
}

// cut makes tasks of neighbouring fragments.
func (p *IndexPlan) cut(snap *storage.Snapshot, fragments *roaring.Bitmap, tasks int) {
	var all uint64
	var some []*storage.Fragment
	for _, f := range snap.Fragments() {
		if fragments.Contains(f.ID()) {
			some = append(some, f)
			all += f.Rows()
		}
	}
	if tasks == 0 || tasks > len(some) {
		tasks = len(some)
	}
	var before uint64
	for i, f := range some {
		// A new task begins where the rows so far fill the tasks so far, and where each fragment left is needed for a task of its own.
		if n := len(p.Tasks); n == 0 || n < tasks && (before >= all/uint64(tasks)*uint64(n) || len(some)-i <= tasks-n) {
			p.Tasks = append(p.Tasks, IndexTask{})
		}
		t := &p.Tasks[len(p.Tasks)-1]
		t.Fragments, t.Rows = append(t.Fragments, f.ID()), t.Rows+f.Rows()
		before += f.Rows()
	}
}

// train finds centroids from all fragments that are read.
func (j *segmentJob) train(ctx context.Context) error {
	o, err := j.vectorOptions()
	if err != nil {
		return err
	}
	var parts []vector.BuildPart
	for _, id := range j.read.ToArray() {
		p, err := ivfPart(ctx, j.snap, j.spec.Column, id)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	c, err := vector.TrainFlat(ctx, parts, o)
	j.center = &c
	return err
}

// job makes what builds a part of the plan from the version that it names.
func (p *IndexPlan) job(ctx context.Context, table *storage.Table, opts IndexOptions) (*segmentJob, error) {
	if p.Format != planFormat {
		return nil, errs.New(errs.ErrUnsupported, "a plan of format %d; this is for format %d", p.Format, planFormat)
	}
	snap, err := table.At(ctx, storage.Ref{Version: p.Version})
	if err != nil {
		return nil, fmt.Errorf("version %d of the plan: %w", p.Version, err)
	}
	j := &segmentJob{snap: snap, spec: p.Index, opts: opts.withDefaults(), read: roaring.New(), covers: roaring.New()}
	for _, f := range snap.Schema().Fields {
		if f.ID == p.FieldID && f.Name == p.Index.Column {
			j.field = f
		}
	}
	if j.field == nil {
		return nil, errs.New(errs.ErrInvalid, "the table has no column %q with id %d: the plan is for another table", p.Index.Column, p.FieldID)
	}
	if p.Index.Kind == index.KindIVFFlat {
		if len(p.Centroids)%4 != 0 {
			return nil, errs.New(errs.ErrInvalid, "%d bytes of centroids", len(p.Centroids))
		}
		j.center = &vector.Centroids{Loss: p.Loss}
		for at := 0; at < len(p.Centroids); at += 4 {
			j.center.Values = append(j.center.Values, math.Float32frombits(binary.LittleEndian.Uint32(p.Centroids[at:])))
		}
	}
	return j, nil
}

// BuildTask builds the segment of task i of the plan (from 0). Nothing names it yet: CommitPlan does, and a segment that is never committed is garbage that a clean-up finds.
// A task may be run again: each run makes a segment of its own. Errors: ErrInvalid for a task that the plan has not and for another table, and as CreateIndex.
func BuildTask(ctx context.Context, table *storage.Table, p *IndexPlan, i int, opts IndexOptions) (*IndexTaskResult, error) {
	if i < 0 || i >= len(p.Tasks) {
		return nil, errs.New(errs.ErrInvalid, "the plan has tasks 0 to %d, not %d", len(p.Tasks)-1, i)
	}
	j, err := p.job(ctx, table, opts)
	if err != nil {
		return nil, err
	}
	j.read.AddMany(p.Tasks[i].Fragments)
	j.covers = j.read
	if !roaring.AndNot(j.read, liveFragments(j.snap)).IsEmpty() {
		return nil, errs.New(errs.ErrInvalid, "version %d has not all of the fragments %v: the plan is for another table", p.Version, p.Tasks[i].Fragments)
	}
	meta, err := j.build(ctx)
	if err != nil {
		return nil, fmt.Errorf("index %s, task %d: %w", p.Index.Name, i, err)
	}
	raw, err := proto.Marshal(meta)
	if err != nil {
		return nil, errors.Join(errs.New(errs.ErrInternal, "metadata: %w", err), j.removeFiles(ctx))
	}
	return &IndexTaskResult{Format: planFormat, Task: i, UUID: j.id.String(), Metadata: raw}, nil
}

// CommitPlanOptions tunes CommitPlan. The zero value is the default.
type CommitPlanOptions struct {
	Merge bool // make one segment of those of the tasks
	IndexOptions
}

// CommitPlan registers the segments of all tasks as the index, in one version. Results may come in any order; there must be one for each task. Errors: ErrInvalid for missing,
// double or foreign results, ErrConflict where the table changed so that the index would not be true, and as CreateIndex. Rows that were rewritten since the plan was
// made are read here, by extending the index.
func CommitPlan(ctx context.Context, table *storage.Table, p *IndexPlan, results []*IndexTaskResult, opts CommitPlanOptions) (IndexChanged, error) {
	j, err := p.job(ctx, table, opts.IndexOptions)
	if err != nil {
		return IndexChanged{}, err
	}
	metas, err := p.metadata(results)
	if err != nil {
		return IndexChanged{}, fmt.Errorf("index %s: %w", p.Index.Name, err)
	}
	var removed []storage.IndexInfo
	for _, id := range p.Removes {
		removed = append(removed, storage.IndexInfo{UUID: id})
	}
	if len(metas) == 0 {
		return IndexChanged{Committed: Committed{Version: p.Version}}, nil
	}
	var out IndexChanged
	if opts.Merge && len(metas) > 1 {
		out, err = p.commitMerged(ctx, j, metas, removed)
	} else {
		out, err = p.commitParts(ctx, table, metas, removed, opts.Commit)
	}
	if err != nil || !out.narrowed {
		return out, err
	}
	return extendNarrowed(ctx, table, p.Index.Name, opts.IndexOptions, out)
}

// commitParts registers the segments as they are.
func (p *IndexPlan) commitParts(ctx context.Context, table *storage.Table, metas []*tablepb.IndexMetadata, removed []storage.IndexInfo, opts CommitOptions) (IndexChanged, error) {
	first, err := uuid.FromBytes(metas[0].GetUuid().GetUuid())
	if err != nil {
		return IndexChanged{}, errs.New(errs.ErrInvalid, "a segment without a uuid: %w", err)
	}
	change := IndexChange{New: metas}
	if change.Removed, err = uuidsOf(removed); err != nil {
		return IndexChanged{}, err
	}
	target := Target{Store: table.Store(), Dir: table.Dir()}
	out := IndexChanged{Replaced: p.Removes, UUID: first.String()}
	for _, t := range p.Tasks {
		out.Read = append(out.Read, t.Fragments...)
	}
	if out.Committed, out.narrowed, err = commitIndex(ctx, target, change, opts); err != nil {
		return IndexChanged{}, fmt.Errorf("index %s: %w", p.Index.Name, err)
	}
	return out, nil
}

// metadata checks the results against the plan and returns the metadata of their segments, by task.
func (p *IndexPlan) metadata(results []*IndexTaskResult) ([]*tablepb.IndexMetadata, error) {
	out := make([]*tablepb.IndexMetadata, len(p.Tasks))
	for _, r := range results {
		m := &tablepb.IndexMetadata{}
		switch {
		case r.Format != planFormat:
			return nil, errs.New(errs.ErrUnsupported, "a result of format %d; this is for format %d", r.Format, planFormat)
		case r.Task < 0 || r.Task >= len(p.Tasks):
			return nil, errs.New(errs.ErrInvalid, "a result of task %d; the plan has tasks 0 to %d", r.Task, len(p.Tasks)-1)
		case out[r.Task] != nil:
			return nil, errs.New(errs.ErrInvalid, "two results of task %d", r.Task)
		case proto.Unmarshal(r.Metadata, m) != nil:
			return nil, errs.New(errs.ErrInvalid, "the result of task %d is broken", r.Task)
		}
		covers, err := coverOf(m)
		if err != nil {
			return nil, err
		}
		if m.GetName() != p.Index.Name || !slices.Equal(m.GetFields(), []int32{p.FieldID}) || m.GetDatasetVersion() != p.Version ||
			!covers.Equals(roaring.BitmapOf(p.Tasks[r.Task].Fragments...)) {
			return nil, errs.New(errs.ErrInvalid, "the result of task %d is of another plan", r.Task)
		}
		out[r.Task] = m
	}
	if at := slices.Index(out, nil); at >= 0 {
		return nil, errs.New(errs.ErrInvalid, "the result of task %d is missing", at)
	}
	return out, nil
}

// commitMerged makes one segment of those of the tasks, commits it and removes theirs.
func (p *IndexPlan) commitMerged(ctx context.Context, j *segmentJob, metas []*tablepb.IndexMetadata, removed []storage.IndexInfo) (IndexChanged, error) {
	for _, m := range metas {
		id, err := uuid.FromBytes(m.GetUuid().GetUuid())
		if err != nil {
			return IndexChanged{}, errs.New(errs.ErrInvalid, "a segment without a uuid: %w", err)
		}
		covers, err := coverOf(m)
		if err != nil {
			return IndexChanged{}, err
		}
		keys, err := liveKeys(ctx, j.snap, covers, j.addresses())
		if err != nil {
			return IndexChanged{}, err
		}
		j.covers.Or(covers)
		j.take = append(j.take, takenSegment{
			info: storage.IndexInfo{Name: p.Index.Name, UUID: id.String(), FieldIDs: m.GetFields(), Covers: covers, Version: m.GetIndexVersion()},
			keep: index.Only{Keys: keys},
		})
	}
	out, err := j.commit(ctx, IndexChange{}, removed)
	if err != nil {
		return IndexChanged{}, err
	}
	out.Read = j.covers.ToArray()
	return out, j.removeParts(ctx)
}

// removeParts deletes the folders of segments that were merged and never committed.
func (j *segmentJob) removeParts(ctx context.Context) error {
	table := j.snap.Table()
	var all error
	for _, t := range j.take {
		folder := object.Join(table.Dir(), manifest.IndicesDir, t.info.UUID)
		entries, err := table.Store().List(ctx, folder)
		all = errors.Join(all, err)
		for _, e := range entries {
			all = errors.Join(all, table.Store().Delete(ctx, object.Join(folder, e.Name)))
		}
	}
	return all
}

// checkColumn refuses a column that the kind cannot index, before anything is built. Errors: ErrInvalid, ErrUnsupported.
func (j *segmentJob) checkColumn() (err error) {
	switch j.spec.Kind {
	case index.KindLabelList:
		_, err = labellist.ItemType(j.spec.Column, j.field.Type)
	case index.KindBitmap, index.KindBTree, index.KindZoneMap:
		if _, err = key.NewCodec(j.field.Type); err != nil {
			err = errs.New(errs.ErrUnsupported, "column %q: a %s index cannot hold it: %w", j.spec.Column, j.spec.Kind, err)
		}
	case index.KindIVFFlat:
		_, err = j.vectorOptions()
	default:
		err = errs.New(errs.ErrUnsupported, "an index of kind %s cannot be built", j.spec.Kind)
	}
	return err
}
