package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/index/zonemap"
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

// IndexOptions is common to everything that builds segments. The zero value is the default.
type IndexOptions struct {
	Budget      *mem.Budget    // pays for what is collected; nil = nobody
	MemoryBytes int64          // collected in memory before it goes to temporary files; 0 = 256 MiB
	TempDir     string         // folder of the temporary files; "" = the system's
	Parallelism int            // goroutines of vector indices; 0 = GOMAXPROCS
	Progress    index.Progress // stages "read rows", "write index", for vectors "sample", "train", "assign", "write"; nil = nobody listens
	Commit      CommitOptions
}

func (o IndexOptions) withDefaults() IndexOptions {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	return o
}

// segmentJob makes one segment out of rows of the table and of other segments.
type segmentJob struct {
	snap    *storage.Snapshot
	spec    IndexSpec
	field   *schema.Field
	opts    IndexOptions
	read    *roaring.Bitmap   // fragments whose rows are read
	take    []takenSegment    // segments whose rows are taken over
	covers  *roaring.Bitmap   // of the new segment
	center  *vector.Centroids // of a vector index that has them already
	vectors *vector.Built     // what was made of a vector index
	id      uuid.UUID
	created []string // paths of files that may exist
}

// takenSegment is a segment whose rows go into another one, as far as keep names them.
type takenSegment struct {
	info storage.IndexInfo
	keep index.KeyMap
}

// indexVersion is the index_version of a kind whose segments hold row addresses, or row ids in tables that have stable ones.
func indexVersion(kind index.Kind, physical bool) int32 {
	v := int32(0)
	if physical {
		v = 1
	}
	switch kind {
	case index.KindLabelList:
		return labellist.WriteVersion + v
	case index.KindBitmap:
		return bitmap.WriteVersion + v
	case index.KindBTree:
		return btree.WriteVersion + v
	case index.KindZoneMap:
		return zonemap.WriteVersion
	default:
		return vectorVersion
	}
}

// addresses says that the new segment holds row addresses where the table has stable row ids too.
func (j *segmentJob) addresses() bool {
	return j.spec.Kind == index.KindZoneMap || j.spec.RowAddresses && j.spec.Kind != index.KindIVFFlat
}

// build writes the segment and returns its metadata. After an error no file is left behind.
func (j *segmentJob) build(ctx context.Context) (*tablepb.IndexMetadata, error) {
	j.opts = j.opts.withDefaults()
	j.id = uuid.New()
	details, err := j.write(ctx)
	if err != nil {
		return nil, errors.Join(err, j.removeFiles(ctx))
	}
	covers, err := j.covers.ToBytes()
	if err != nil {
		return nil, errors.Join(errs.New(errs.ErrInternal, "fragments: %w", err), j.removeFiles(ctx))
	}
	version := indexVersion(j.spec.Kind, j.addresses())
	return &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: j.id[:]}, Name: j.spec.Name, Fields: []int32{j.field.ID}, DatasetVersion: j.snap.Version(),
		FragmentBitmap: covers, IndexDetails: details, IndexVersion: &version,
	}, nil
}

// write writes the segment's files and returns the details for its metadata.
func (j *segmentJob) write(ctx context.Context) (*anypb.Any, error) {
	build := index.BuildOptions{
		Budget: j.opts.Budget, MemoryBytes: j.opts.MemoryBytes, TempDir: j.opts.TempDir, Rows: j.rowsToRead(), Progress: j.opts.Progress,
	}
	column, typ := j.spec.Column, j.field.Type
	switch j.spec.Kind {
	case index.KindLabelList:
		b, err := labellist.NewBuilder(column, typ, build)
		if err != nil {
			return nil, err
		}
		defer b.Free()
		return details(labellist.TypeURL, nil, j.writeFilter(ctx, b, func(s index.Segment, keep index.KeyMap) error {
			return b.AddSegment(s.(*labellist.Segment), keep)
		}, func(w []object.Writer, v file.Version) error {
			_, err := b.Write(ctx, w[0], v)
			return err
		}, bitmap.FileName))
	case index.KindBitmap:
		b, err := bitmap.NewBuilder(column, typ, build)
		if err != nil {
			return nil, err
		}
		defer b.Free()
		return details(bitmap.TypeURL, nil, j.writeFilter(ctx, b, func(s index.Segment, keep index.KeyMap) error {
			return b.AddSegment(s.(*bitmap.Segment), keep)
		}, func(w []object.Writer, v file.Version) error {
			_, err := b.Write(ctx, w[0], v)
			return err
		}, bitmap.FileName))
	case index.KindBTree:
		return j.writeBTree(ctx, build)
	case index.KindZoneMap:
		return j.writeZones(ctx)
	case index.KindIVFFlat:
		return j.writeVectors(ctx)
	default:
		return nil, errs.New(errs.ErrUnsupported, "an index of kind %s cannot be built", j.spec.Kind)
	}
}

func (j *segmentJob) writeBTree(ctx context.Context, build index.BuildOptions) (*anypb.Any, error) {
	b, err := btree.NewBuilder(j.spec.Column, j.field.Type, build)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	return details(btree.TypeURL, nil, j.writeFilter(ctx, b, func(s index.Segment, keep index.KeyMap) error {
		return b.AddSegment(s.(*btree.Segment), keep)
	}, func(w []object.Writer, v file.Version) error {
		_, err := b.Write(ctx, w[0], w[1], v)
		return err
	}, btree.DataFileName, btree.LookupFileName))
}

func (j *segmentJob) writeZones(ctx context.Context) (*anypb.Any, error) {
	b, err := zonemap.NewBuilder(j.spec.Column, j.field.Type, j.spec.RowsPerZone, j.opts.Budget)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	err = j.writeFilter(ctx, b, func(s index.Segment, keep index.KeyMap) error {
		if moved, ok := keep.(index.Moved); ok {
			return b.AddMoved(s.(*zonemap.Segment), moved.Remap)
		}
		return b.AddSegment(s.(*zonemap.Segment), j.covers)
	}, func(w []object.Writer, v file.Version) error {
		_, err := b.Write(ctx, w[0], v)
		return err
	}, zonemap.FileName)
	return details(zonemap.TypeURL, b.Details(), err)
}

func details(typeURL string, value []byte, err error) (*anypb.Any, error) {
	if err != nil {
		return nil, err
	}
	return &anypb.Any{TypeUrl: typeURL, Value: value}, nil
}

// columnBuilder is what the builders of filter kinds share while rows are read.
type columnBuilder interface {
	Add(ctx context.Context, values arrow.Array, keys []uint64) error
}

// writeFilter feeds a builder with the rows that are taken over and read, and has it write the files of the names.
func (j *segmentJob) writeFilter(ctx context.Context, b columnBuilder, take func(index.Segment, index.KeyMap) error,
	write func([]object.Writer, file.Version) error, names ...string,
) error {
	for _, t := range j.take {
		s, err := j.open(ctx, t.info)
		if err != nil {
			return fmt.Errorf("segment %s: %w", t.info.UUID, err)
		}
		defer func() { _ = s.Close() }() // it frees memory, which does not fail
		if err := take(s, t.keep); err != nil {
			return fmt.Errorf("segment %s: %w", t.info.UUID, err)
		}
	}
	if err := j.readRows(ctx, b); err != nil {
		return err
	}
	var writers []object.Writer
	for _, name := range names {
		w, err := j.create(ctx, name)
		if err != nil {
			for _, open := range writers {
				err = errors.Join(err, open.Abort())
			}
			return err
		}
		writers = append(writers, w)
	}
	return write(writers, j.fileVersion())
}

// open opens a segment of the same kind as the new one. A segment that may be stale is never opened: canTake refuses it.
func (j *segmentJob) open(ctx context.Context, info storage.IndexInfo) (index.Segment, error) {
	open := func(ctx context.Context, name string) (object.File, error) {
		return j.snap.OpenIndexFile(ctx, info, name)
	}
	meta := index.Meta{Name: info.Name, UUID: info.UUID, Kind: j.spec.Kind, FieldID: j.field.ID, Covers: info.Covers, Version: info.Version}
	opts := index.OpenOptions{Budget: j.opts.Budget, CacheBytes: 1 << 20}
	if j.addresses() || !j.snap.HasStableRowIDs() {
		opts.FragmentRows = func(id uint32) (uint64, bool) {
			if f, ok := j.snap.Fragment(id); ok {
				return f.PhysicalRows(), true
			}
			return 0, false
		}
	}
	if j.spec.Kind == index.KindIVFFlat {
		s, err := vector.Open(ctx, open, meta, opts)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return filter.Open(ctx, open, meta, opts)
}

func (j *segmentJob) fileVersion() file.Version {
	if slices.Contains([]string{"2.0", "2.1"}, j.snap.FormatVersion()) {
		return file.V21 // 2.0 is not written; every reader of 2.1 tables reads these
	}
	return file.V22
}

// rowsToRead is about how many rows readRows reads.
func (j *segmentJob) rowsToRead() uint64 {
	n := uint64(0)
	for _, f := range j.snap.Fragments() {
		if j.read.Contains(f.ID()) {
			n += f.PhysicalRows()
		}
	}
	return n
}

// readRows hands every live row of the fragments that are read to the builder, with the key that the segment stores.
func (j *segmentJob) readRows(ctx context.Context, b columnBuilder) error {
	if j.read.IsEmpty() {
		return nil
	}
	scan, err := j.snap.Scan(ctx, storage.ScanOptions{
		Columns: []string{j.spec.Column}, Fragments: j.read.ToArray(), Alloc: compute.GetAllocator(ctx),
		WithRowID: !j.addresses(), WithRowAddr: j.addresses(),
	})
	if err != nil {
		return err
	}
	reader, done := scan.Reader(), int64(0)
	for {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		done += batch.NumRows()
		err = b.Add(ctx, batch.Column(0), batch.Column(1).(*array.Uint64).Uint64Values())
		batch.Release()
		if err != nil {
			return err
		}
		j.opts.Progress("read rows", done, int64(scan.Rows()))
	}
}

// writeVectors writes an IVF_FLAT segment.
func (j *segmentJob) writeVectors(ctx context.Context) (*anypb.Any, error) {
	o, err := j.vectorOptions()
	if err != nil {
		return nil, err
	}
	held := j.opts.Budget.Reserve()
	defer held.Free()
	var parts []vector.BuildPart
	for _, t := range j.take {
		s, err := j.open(ctx, t.info)
		if err != nil {
			return nil, fmt.Errorf("segment %s: %w", t.info.UUID, err)
		}
		defer func() { _ = s.Close() }() // it frees memory, which does not fail
		p, err := s.(*vector.Segment).Part(ctx, t.keep, *j.center, held)
		if err != nil {
			return nil, fmt.Errorf("segment %s: %w", t.info.UUID, err)
		}
		parts = append(parts, p)
	}
	for _, id := range j.read.ToArray() {
		p, err := ivfPart(ctx, j.snap, j.spec.Column, id)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	var built *vector.Built
	if j.center == nil {
		built, err = vector.BuildFlat(ctx, j.create, parts, o)
	} else {
		built, err = vector.AssembleFlat(ctx, j.create, *j.center, parts, o)
	}
	if err != nil {
		return nil, err
	}
	j.vectors = built
	return &anypb.Any{TypeUrl: vector.DetailsURL, Value: built.Details}, nil
}

func (j *segmentJob) vectorOptions() (vector.BuildOptions, error) {
	elem, dim, err := vector.ElemOf(j.field.Type)
	if err != nil {
		return vector.BuildOptions{}, err
	}
	return vector.BuildOptions{
		Metric: j.spec.Metric, Elem: elem, Dim: dim, Lists: j.spec.Lists, SampleRate: j.spec.SampleRate, Iterations: j.spec.Iterations, Seed: j.spec.Seed,
		Parallelism: j.opts.Parallelism, BufferBytes: j.opts.MemoryBytes, FileVersion: j.fileVersion(), Budget: j.opts.Budget, Progress: j.opts.Progress,
	}, nil
}

// folder is where the segment's files lie.
func (j *segmentJob) folder() string {
	return object.Join(j.snap.Table().Dir(), manifest.IndicesDir, j.id.String())
}

func (j *segmentJob) create(ctx context.Context, name string) (object.Writer, error) {
	path := object.Join(j.folder(), name)
	w, err := j.snap.Table().Store().Create(ctx, path)
	if err != nil {
		return nil, err
	}
	j.created = append(j.created, path)
	return w, nil
}

// removeFiles deletes the files of a segment that was not committed. It goes on after ctx has ended.
func (j *segmentJob) removeFiles(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var all error
	for _, path := range j.created {
		if err := j.snap.Table().Store().Delete(ctx, path); err != nil && !errors.Is(err, errs.ErrNotFound) {
			all = errors.Join(all, fmt.Errorf("clean up %s: %w", path, err))
		}
	}
	return all
}

// liveFragments are the fragments of a snapshot.
func liveFragments(snap *storage.Snapshot) *roaring.Bitmap {
	out := roaring.New()
	for _, f := range snap.Fragments() {
		out.Add(f.ID())
	}
	return out
}

// liveKeys are the keys that a segment over the fragments stores for the rows that live there now.
func liveKeys(ctx context.Context, snap *storage.Snapshot, fragments *roaring.Bitmap, addresses bool) (*rowset.Set, error) {
	live, err := snap.LiveRows(ctx, fragments.ToArray())
	if err != nil || addresses {
		return live, err
	}
	return snap.Keys(ctx, live)
}
