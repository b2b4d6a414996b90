package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// vectorVersion is the index_version of IVF_FLAT segments.
const vectorVersion int32 = 1

// IVFFlatOptions says how an IVF_FLAT index is made. The zero value is the default.
type IVFFlatOptions struct {
	Name        string       // of the index; "" = COLUMN_idx
	Metric      index.Metric // "" = l2
	Lists       int          // num_partitions; 0 = the square root of the number of rows
	SampleRate  int          // rows a list that centroids are trained from; 0 = 256
	Iterations  int          // of training, at most; 0 = 50
	Seed        uint64
	Parallelism int   // goroutines; 0 = GOMAXPROCS
	BufferBytes int64 // rows sorted by list at a time; 0 = 256 MiB
	// Replace takes out the segments that exist under the name and covers everything anew; Extend keeps them and covers only the fragments that they
	// do not, with centroids of its own. Without either an existing name is ErrExists.
	Replace, Extend bool
	// Fragments limits what is covered, for indices that are built a group of fragments at a time; nil = all. It implies Extend unless Replace is set.
	Fragments []uint32
	Budget    *mem.Budget
	Progress  func(phase string, done, total int64)
	Commit    CommitOptions
}

// IVFFlatBuilt describes an index segment that was built and committed.
type IVFFlatBuilt struct {
	Committed
	vector.Built
	UUID uuid.UUID
}

// Validate refuses to replace and to extend at once.
func (o IVFFlatOptions) Validate() error {
	if o.Replace && o.Extend {
		return errs.New(errs.ErrInvalid, "an index is either replaced or extended")
	}
	return nil
}

// BuildIVFFlat builds an IVF_FLAT segment over a vector column of the latest version and commits it. Extending an index that covers everything
// commits nothing: Lists of the answer is 0 then. Errors: ErrNotFound for the column, ErrUnsupported for one that holds no float32 or float16 vectors, ErrExists,
// ErrInvalid, ErrConflict, ErrMemoryLimit, ErrIO, ErrDiskFull. After an error no file is left behind.
func BuildIVFFlat(ctx context.Context, table *storage.Table, column string, o IVFFlatOptions) (*IVFFlatBuilt, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = column + "_idx"
	}
	if o.Metric == "" {
		o.Metric = index.MetricL2
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	field, ok := snap.Schema().Lookup(column)
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "table %s has no column %q", table.Path(), column)
	}
	out, err := buildIVFFlat(ctx, snap, field, o)
	if err != nil {
		return nil, fmt.Errorf("index %q on %s column %q: %w", o.Name, table.Path(), column, err)
	}
	return out, nil
}

func buildIVFFlat(ctx context.Context, snap *storage.Snapshot, field *schema.Field, o IVFFlatOptions) (*IVFFlatBuilt, error) {
	elem, dim, err := vector.ElemOf(field.Type)
	if err != nil {
		return nil, err
	}
	fragments, removed, err := ivfFragments(snap, field, o)
	if err != nil {
		return nil, err
	}
	if len(fragments) == 0 {
		return &IVFFlatBuilt{Committed: Committed{Version: snap.Version()}}, nil
	}
	if o.Extend {
		job := &segmentJob{snap: snap, field: field, spec: IndexSpec{Name: o.Name, Column: field.Name, Kind: index.KindIVFFlat}, read: roaring.BitmapOf(fragments...)}
		if old, err := job.outdated(ctx, group(snap, o.Name)); err != nil || len(old) > 0 {
			return extendVectors(ctx, snap, field, o, err)
		}
	}
	parts := make([]vector.BuildPart, len(fragments))
	for i, id := range fragments {
		if parts[i], err = ivfPart(ctx, snap, field.Name, id); err != nil {
			return nil, err
		}
	}
	table := snap.Table()
	target, id := Target{Store: table.Store(), Dir: table.Dir()}, uuid.New()
	folder := object.Join(target.Dir, manifest.IndicesDir, id.String())
	create := func(ctx context.Context, name string) (object.Writer, error) {
		return target.Store.Create(ctx, object.Join(folder, name))
	}
	version := file.V22
	if snap.FormatVersion() == file.V21.String() {
		version = file.V21
	}
	built, err := vector.BuildFlat(ctx, create, parts, vector.BuildOptions{
		Metric: o.Metric, Elem: elem, Dim: dim, Lists: o.Lists, SampleRate: o.SampleRate, Iterations: o.Iterations, Seed: o.Seed,
		Parallelism: o.Parallelism, BufferBytes: o.BufferBytes, FileVersion: version, Budget: o.Budget, Progress: o.Progress,
	})
	if err == nil {
		meta := ivfMetadata(id, snap.Version(), field.ID, fragments, o.Name, built)
		var done Committed
		if done, err = CommitIndex(ctx, target, IndexChange{New: []*tablepb.IndexMetadata{meta}, Removed: removed}, o.Commit); err == nil {
			return &IVFFlatBuilt{Committed: done, Built: *built, UUID: id}, nil
		}
	}
	if errors.Is(err, errOutcome) { // the version may name the files
		return nil, err
	}
	// Nothing names the files: they are taken away as far as that still works.
	ctx = context.WithoutCancel(ctx)
	for _, name := range []string{vector.AuxiliaryFile, vector.IndexFile} {
		err = errors.Join(err, target.Store.Delete(ctx, object.Join(folder, name)))
	}
	return nil, err
}

// extendVectors extends an index of which segments must go: they become one with the new rows, in their lists.
func extendVectors(ctx context.Context, snap *storage.Snapshot, field *schema.Field, o IVFFlatOptions, err error) (*IVFFlatBuilt, error) {
	if err != nil {
		return nil, err
	}
	u := &indexUpdate{snap: snap, segments: group(snap, o.Name), opts: UpdateIndexOptions{Merge: -1, IndexOptions: IndexOptions{
		Budget: o.Budget, MemoryBytes: o.BufferBytes, Parallelism: o.Parallelism, Progress: o.Progress, Commit: o.Commit,
	}}}
	job, removed, err := u.plan(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	done, err := job.commit(ctx, IndexChange{}, removed)
	if err != nil {
		return nil, err
	}
	return &IVFFlatBuilt{Committed: done.Committed, Built: *job.vectors, UUID: job.id}, nil
}

// ivfFragments picks the fragments to cover and the segments to take out.
func ivfFragments(snap *storage.Snapshot, field *schema.Field, o IVFFlatOptions) (fragments []uint32, removed [][]byte, err error) {
	covered := roaring.New()
	for _, info := range snap.Indices() {
		if info.Name != o.Name {
			continue
		}
		switch {
		case !slices.Equal(info.FieldIDs, []int32{field.ID}):
			return nil, nil, errs.New(errs.ErrExists, "an index of this name is on another column")
		case o.Replace:
			id, err := uuid.Parse(info.UUID)
			if err != nil {
				return nil, nil, errs.New(errs.ErrInternal, "segment %q: %w", info.UUID, err)
			}
			removed = append(removed, id[:])
		case o.Extend || o.Fragments != nil:
			covered.Or(info.Covers)
		default:
			return nil, nil, errs.New(errs.ErrExists, "an index of this name exists")
		}
	}
	if o.Fragments == nil {
		for _, f := range snap.Fragments() {
			if !covered.Contains(f.ID()) {
				fragments = append(fragments, f.ID())
			}
		}
		return fragments, removed, nil
	}
	for _, id := range o.Fragments {
		if covered.Contains(id) {
			return nil, nil, errs.New(errs.ErrExists, "fragment %d is covered already", id)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(o.Fragments))), removed, nil
}

// ivfPart is one fragment as the builder reads it.
func ivfPart(ctx context.Context, snap *storage.Snapshot, column string, id uint32) (vector.BuildPart, error) {
	live, err := snap.LiveRows(ctx, []uint32{id})
	if err != nil {
		return vector.BuildPart{}, err
	}
	p := vector.BuildPart{
		KeyBase: uint64(rowset.Addr(id, 0)),
		Rows:    live.Bitmap(id),
		Blocks: func(ctx context.Context) ([]vector.Block, error) {
			return snap.VectorBlocks(ctx, column, id)
		},
	}
	if p.Rows == nil {
		p.Rows = roaring.New()
	}
	if snap.HasStableRowIDs() {
		p.Keys, err = rowIDs(ctx, snap, id, int(p.Rows.GetCardinality()))
	}
	return p, err
}

// rowIDs reads the row ids of the live rows of a fragment, in physical order.
func rowIDs(ctx context.Context, snap *storage.Snapshot, fragment uint32, rows int) ([]uint64, error) {
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: []string{}, Fragments: []uint32{fragment}, WithRowID: true})
	if err != nil {
		return nil, err
	}
	out := make([]uint64, 0, rows)
	for reader := scan.Reader(); ; {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		ids, ok := batch.Column(int(batch.NumCols()) - 1).(*array.Uint64)
		if ok {
			out = append(out, ids.Uint64Values()...)
		}
		batch.Release()
		if !ok {
			return nil, errs.New(errs.ErrInternal, "a scan gave no row ids")
		}
	}
	if len(out) != rows {
		return nil, errs.New(errs.ErrInternal, "fragment %d has %d live rows and %d row ids", fragment, rows, len(out))
	}
	return out, nil
}

func ivfMetadata(id uuid.UUID, version uint64, field int32, fragments []uint32, name string, built *vector.Built) *tablepb.IndexMetadata {
	covers := roaring.BitmapOf(fragments...)
	raw, err := covers.ToBytes()
	if err != nil {
		panic(err) // a buffer in memory takes every write
	}
	v := vectorVersion
	return &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: id[:]}, Fields: []int32{field}, Name: name, DatasetVersion: version, FragmentBitmap: raw,
		IndexDetails: &anypb.Any{TypeUrl: vector.DetailsURL, Value: built.Details}, IndexVersion: &v,
	}
}
