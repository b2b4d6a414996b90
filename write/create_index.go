package write

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// bitmapTypeURL is the details message of a BITMAP segment, whose index_version is 0.
const bitmapTypeURL = "/lance.table.BitmapIndexDetails"

// IndexSpec says what to build.
type IndexSpec struct {
	Name      string // "" = the column's name and "_idx", as other engines call it
	Column    string
	Kind      index.Kind
	Replace   bool     // take the segments of that name out in the same commit
	Fragments []uint32 // covered fragments; nil = all of the newest version
	Vector    VectorSpec
	Budget    *mem.Budget                           // what building may take; nil = no limit
	Progress  func(phase string, done, total int64) // called from one goroutine at a time; nil = nobody listens
}

// indexBuild is one index segment in the making.
type indexBuild struct {
	target   Target
	snapshot *storage.Snapshot
	spec     IndexSpec
	field    *schema.Field
	version  file.Version
	id       uuid.UUID
}

// segmentDetails is what the kind adds to the segment's metadata.
type segmentDetails struct {
	typeURL string
	value   []byte
	version int32
}

// CreateIndex builds one segment over the table's newest version and registers it. Errors: ErrNotFound without a table or column, ErrExists for a name that
// is taken, ErrInvalid for a column that the kind cannot index, ErrUnsupported for a kind that is not built, ErrMemoryLimit, ErrConflict, ErrIO, ErrDiskFull.
func CreateIndex(ctx context.Context, t Target, spec IndexSpec, opts CommitOptions) (Committed, error) {
	table, err := storage.OpenTable(ctx, t.Store, t.Dir, storage.TableOptions{Now: opts.Now})
	if err != nil {
		return Committed{}, err
	}
	snapshot, err := table.Latest(ctx)
	if err != nil {
		return Committed{}, err
	}
	b := &indexBuild{target: t, snapshot: snapshot, spec: spec, id: uuid.New(), version: file.V22}
	change, err := b.check()
	if err != nil {
		return Committed{}, err
	}
	details, err := b.build(ctx)
	if err != nil {
		return Committed{}, errors.Join(fmt.Errorf("index %q: %w", b.spec.Name, err), b.remove(ctx))
	}
	m, err := b.metadata(details)
	if err != nil {
		return Committed{}, errors.Join(err, b.remove(ctx))
	}
	change.New = []*tablepb.IndexMetadata{m}
	done, err := CommitIndex(ctx, t, change, opts)
	if err != nil && !errors.Is(err, errOutcome) {
		err = errors.Join(err, b.remove(ctx))
	}
	return done, err
}

// check fills the spec's defaults in and refuses, before any row is read, what the commit would refuse.
func (b *indexBuild) check() (IndexChange, error) {
	var change IndexChange
	var ok bool
	if b.field, ok = b.snapshot.Schema().Lookup(b.spec.Column); !ok {
		return change, errs.New(errs.ErrNotFound, "the table has no column %q", b.spec.Column)
	}
	if b.spec.Name == "" {
		b.spec.Name = b.spec.Column + "_idx"
	}
	if b.spec.Fragments == nil {
		for _, f := range b.snapshot.Fragments() {
			b.spec.Fragments = append(b.spec.Fragments, f.ID())
		}
	}
	if b.spec.Progress == nil {
		b.spec.Progress = func(string, int64, int64) {}
	}
	if v, err := dataVersion(b.snapshot.FormatVersion()); err == nil { // an index file has the version of the table where we write it
		b.version = v
	}
	if err := manifest.CheckWritable(b.snapshot.Manifest().Proto.GetWriterFeatureFlags()); err != nil {
		return change, err
	}
	for _, m := range b.snapshot.Manifest().Indices {
		if m.GetName() != b.spec.Name {
			continue
		}
		if !b.spec.Replace {
			return change, errs.New(errs.ErrExists, "index %q already exists", b.spec.Name)
		}
		change.Removed = append(change.Removed, m.GetUuid().GetUuid())
	}
	return change, nil
}

func (b *indexBuild) build(ctx context.Context) (segmentDetails, error) {
	switch b.spec.Kind {
	case index.KindLabelList:
		return b.buildLabelList(ctx)
	case index.KindBitmap:
		return b.buildBitmap(ctx)
	case index.KindBTree:
		return b.buildBTree(ctx)
	case index.KindIVFFlat:
		return b.buildVector(ctx)
	}
	return segmentDetails{}, errs.New(errs.ErrUnsupported, "building an index of kind %s", b.spec.Kind)
}

func (b *indexBuild) create(ctx context.Context, name string) (object.Writer, error) {
	return b.target.Store.Create(ctx, object.Join(b.folder(), name))
}

func (b *indexBuild) folder() string {
	return object.Join(b.target.Dir, manifest.IndicesDir, b.id.String())
}

// remove deletes the files of a segment that no version names.
func (b *indexBuild) remove(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	entries, err := b.target.Store.List(ctx, b.folder())
	if err != nil {
		return err
	}
	var all error
	for _, e := range entries {
		all = errors.Join(all, b.target.Store.Delete(ctx, object.Join(b.folder(), e.Name)))
	}
	return all
}

func (b *indexBuild) metadata(d segmentDetails) (*tablepb.IndexMetadata, error) {
	covers, err := roaring.BitmapOf(b.spec.Fragments...).ToBytes()
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "fragment bitmap: %w", err)
	}
	return &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: b.id[:]}, Name: b.spec.Name, Fields: []int32{b.field.ID},
		DatasetVersion: b.snapshot.Version(), FragmentBitmap: covers,
		IndexDetails: &anypb.Any{TypeUrl: d.typeURL, Value: d.value}, IndexVersion: &d.version,
	}, nil
}

// eachBatch gives the column's values with their stored keys to add, fragment by fragment.
func (b *indexBuild) eachBatch(ctx context.Context, add func(values arrow.Array, keys []uint64) error) error {
	scan, err := b.snapshot.Scan(ctx, storage.ScanOptions{Columns: []string{b.spec.Column}, Fragments: b.spec.Fragments, WithRowID: true})
	if err != nil {
		return err
	}
	reader := scan.Reader()
	defer reader.Close()
	for done := int64(0); ; {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		done += batch.NumRows()
		keys, ok := batch.Column(1).(*array.Uint64)
		if ok {
			err = add(batch.Column(0), keys.Uint64Values())
		} else {
			err = errs.New(errs.ErrInternal, "stored keys are %s", batch.Column(1).DataType())
		}
		batch.Release()
		if err != nil {
			return err
		}
		b.spec.Progress("read", done, int64(scan.Rows()))
	}
}

func (b *indexBuild) buildLabelList(ctx context.Context) (segmentDetails, error) {
	builder, err := labellist.NewBuilder(b.spec.Column, b.field.Type, b.spec.Budget)
	if err != nil {
		return segmentDetails{}, err
	}
	defer builder.Free()
	err = b.eachBatch(ctx, func(values arrow.Array, keys []uint64) error { return builder.Add(ctx, values, keys) })
	if err != nil {
		return segmentDetails{}, err
	}
	w, err := b.create(ctx, bitmap.FileName)
	if err != nil {
		return segmentDetails{}, err
	}
	_, err = builder.Write(ctx, w, b.version)
	return segmentDetails{typeURL: labellist.TypeURL, version: labellist.WriteVersion}, err
}

func (b *indexBuild) buildBitmap(ctx context.Context) (segmentDetails, error) {
	values, err := bitmap.NewCollector(b.field.Type, b.spec.Budget)
	if err != nil {
		return segmentDetails{}, err
	}
	defer values.Free()
	if err := b.eachBatch(ctx, values.Add); err != nil {
		return segmentDetails{}, err
	}
	w, err := b.create(ctx, bitmap.FileName)
	if err != nil {
		return segmentDetails{}, err
	}
	_, err = values.Write(ctx, w, bitmap.WriteOptions{Version: b.version})
	return segmentDetails{typeURL: bitmapTypeURL}, err
}

func (b *indexBuild) buildBTree(ctx context.Context) (segmentDetails, error) {
	builder, err := btree.NewBuilder(b.field.Type, b.spec.Budget)
	if err != nil {
		return segmentDetails{}, err
	}
	defer builder.Free()
	err = b.eachBatch(ctx, func(values arrow.Array, keys []uint64) error { return builder.Add(ctx, values, keys) })
	if err != nil {
		return segmentDetails{}, err
	}
	data, err := b.create(ctx, btree.DataFileName)
	if err != nil {
		return segmentDetails{}, err
	}
	lookup, err := b.create(ctx, btree.LookupFileName)
	if err != nil {
		return segmentDetails{}, errors.Join(err, data.Abort())
	}
	_, err = builder.Write(ctx, data, lookup, b.version)
	return segmentDetails{typeURL: btree.TypeURL, version: btree.WriteVersion}, err
}
