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
	"github.com/lakesql/lakesql/index/zonemap"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// FilterIndexSpec names an index of a kind that answers predicates.
type FilterIndexSpec struct {
	Name   string     // "" = COLUMN_idx
	Column string     // a top-level column, spelled exactly
	Kind   index.Kind // LABEL_LIST, BITMAP, BTREE or ZONEMAP
	// RowsPerZone is how many rows a zone of a ZONEMAP has; 0 = 8192.
	RowsPerZone uint64
}

// FilterIndexOptions tunes BuildFilterIndex. The zero value is the default.
type FilterIndexOptions struct {
	// Replace takes out the segments that exist under the name; Extend keeps them and covers only the fragments that they do not.
	// Without either an existing name is ErrExists.
	Replace, Extend bool
	Budget          *mem.Budget // pays for what is collected; nil = nobody
	Commit          CommitOptions
}

// Validate refuses to replace and to extend at once.
func (o FilterIndexOptions) Validate() error {
	if o.Replace && o.Extend {
		return errs.New(errs.ErrInvalid, "an index is either replaced or extended")
	}
	return nil
}

// BuildFilterIndex reads a column of the newest version, writes a segment over it and commits it. Extending an index that covers
// everything commits nothing. Errors: ErrNotFound for the column, ErrInvalid for a column that the kind cannot index and for another
// kind, ErrUnsupported for its type, ErrExists, ErrMemoryLimit, ErrConflict, ErrIO, ErrDiskFull. After an error no file is left behind, unless
// nobody can tell what became of the commit.
func BuildFilterIndex(ctx context.Context, table *storage.Table, spec FilterIndexSpec, opts FilterIndexOptions) (Committed, error) {
	if err := opts.Validate(); err != nil {
		return Committed{}, err
	}
	if spec.Name == "" {
		spec.Name = spec.Column + "_idx"
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		return Committed{}, err
	}
	b := &filterBuild{spec: spec, opts: opts, table: table, snap: snap}
	if err := b.plan(); err != nil {
		return Committed{}, fmt.Errorf("index %s: %w", spec.Name, err)
	}
	if opts.Extend && b.extends && b.covers.IsEmpty() {
		return Committed{Version: snap.Version()}, nil
	}
	done, err := b.run(ctx)
	if err != nil && !errors.Is(err, errOutcome) { // else the segment may be in use
		err = errors.Join(err, b.removeFiles(ctx))
	}
	if err != nil {
		return Committed{}, fmt.Errorf("index %s: %w", spec.Name, err)
	}
	return done, nil
}

// filterBuild is one run of BuildFilterIndex.
type filterBuild struct {
	spec    FilterIndexSpec
	opts    FilterIndexOptions
	table   *storage.Table
	snap    *storage.Snapshot
	field   int32
	typ     arrow.DataType
	covers  *roaring.Bitmap
	removed [][]byte
	extends bool
	like    *int32 // index_version of extended segments that are keyed by row address; nil = what the kind's Builder makes
	id      uuid.UUID
	created []string // paths of files that may exist
}

// columnBuilder is what the kinds share while rows are read.
type columnBuilder interface {
	Add(ctx context.Context, values arrow.Array, keys []uint64) error
	Free()
}

func (b *filterBuild) plan() error {
	f, ok := b.snap.Schema().Lookup(b.spec.Column)
	if !ok {
		return errs.New(errs.ErrNotFound, "the table has no column %q", b.spec.Column)
	}
	b.field, b.typ = f.ID, f.Type
	b.covers = roaring.New()
	for _, fragment := range b.snap.Fragments() {
		b.covers.Add(fragment.ID())
	}
	for _, info := range b.snap.Indices() {
		if info.Name != b.spec.Name {
			continue
		}
		switch kind, _ := filter.KindOf(info.TypeURL); {
		case !slices.Equal(info.FieldIDs, []int32{f.ID}):
			return errs.New(errs.ErrExists, "an index of this name is on another column")
		case b.opts.Replace:
			id, err := uuid.Parse(info.UUID)
			if err != nil {
				return errs.New(errs.ErrInternal, "segment %q: %w", info.UUID, err)
			}
			b.removed = append(b.removed, id[:])
		case b.opts.Extend && kind != b.spec.Kind:
			return errs.New(errs.ErrInvalid, "it is of type %s, and cannot be extended by %s", info.TypeURL, b.spec.Kind)
		case b.opts.Extend:
			b.extends = true
			b.covers.AndNot(info.Covers)
			if index.PhysicalKeys(kind, info.Version) { // core 14 refuses an index whose segments disagree on their keys
				b.like = &info.Version
			}
		default:
			return errs.New(errs.ErrExists, "an index of this name exists")
		}
	}
	return nil
}

func (b *filterBuild) run(ctx context.Context) (Committed, error) {
	builder, err := b.newBuilder()
	if err != nil {
		return Committed{}, err
	}
	defer builder.Free()
	if err := b.readColumn(ctx, builder); err != nil {
		return Committed{}, err
	}
	b.id = uuid.New()
	details, version, err := b.writeFiles(ctx, builder)
	if err != nil {
		return Committed{}, err
	}
	if b.like != nil {
		version = *b.like
	}
	covers, err := b.covers.ToBytes()
	if err != nil {
		return Committed{}, errs.New(errs.ErrInternal, "fragments: %w", err)
	}
	segment := &tablepb.IndexMetadata{
		Uuid: &tablepb.UUID{Uuid: b.id[:]}, Name: b.spec.Name, Fields: []int32{b.field},
		DatasetVersion: b.snap.Version(), FragmentBitmap: covers,
		IndexDetails: details, IndexVersion: &version,
	}
	target := Target{Store: b.table.Store(), Dir: b.table.Dir()}
	return CommitIndex(ctx, target, IndexChange{New: []*tablepb.IndexMetadata{segment}, Removed: b.removed}, b.opts.Commit)
}

func (b *filterBuild) newBuilder() (columnBuilder, error) {
	switch b.spec.Kind {
	case index.KindLabelList:
		return labellist.NewBuilder(b.spec.Column, b.typ, index.BuildOptions{Budget: b.opts.Budget})
	case index.KindBitmap:
		return bitmap.NewBuilder(b.spec.Column, b.typ, index.BuildOptions{Budget: b.opts.Budget})
	case index.KindBTree:
		return btree.NewBuilder(b.spec.Column, b.typ, index.BuildOptions{Budget: b.opts.Budget})
	case index.KindZoneMap:
		return zonemap.NewBuilder(b.spec.Column, b.typ, b.spec.RowsPerZone, b.opts.Budget)
	default:
		return nil, errs.New(errs.ErrUnsupported, "an index of kind %s cannot be built", b.spec.Kind)
	}
}

// readColumn hands every live row of the covered fragments to the builder, with its stored key, or its address where the segments that are
// extended have those.
func (b *filterBuild) readColumn(ctx context.Context, builder columnBuilder) error {
	if b.covers.IsEmpty() {
		return nil
	}
	addrs := b.like != nil || b.spec.Kind == index.KindZoneMap
	scan, err := b.snap.Scan(ctx, storage.ScanOptions{
		Columns: []string{b.spec.Column}, Fragments: b.covers.ToArray(), Alloc: compute.GetAllocator(ctx),
		WithRowID: !addrs, WithRowAddr: addrs,
	})
	if err != nil {
		return err
	}
	reader := scan.Reader()
	for {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = builder.Add(ctx, batch.Column(0), batch.Column(1).(*array.Uint64).Uint64Values())
		batch.Release()
		if err != nil {
			return err
		}
	}
}

// writeFiles writes the segment's files and returns the details and version under which it is committed.
func (b *filterBuild) writeFiles(ctx context.Context, builder columnBuilder) (details *anypb.Any, version int32, err error) {
	fileVersion := file.V22
	if slices.Contains([]string{"2.0", "2.1"}, b.snap.FormatVersion()) {
		fileVersion = file.V21 // 2.0 is not written; every reader of 2.1 tables reads these
	}
	switch builder := builder.(type) {
	case *labellist.Builder:
		w, err := b.create(ctx, bitmap.FileName)
		if err == nil {
			_, err = builder.Write(ctx, w, fileVersion)
		}
		return &anypb.Any{TypeUrl: labellist.TypeURL}, labellist.WriteVersion, err
	case *bitmap.Builder:
		w, err := b.create(ctx, bitmap.FileName)
		if err == nil {
			_, err = builder.Write(ctx, w, fileVersion)
		}
		return &anypb.Any{TypeUrl: bitmap.TypeURL}, bitmap.WriteVersion, err
	case *btree.Builder:
		data, err := b.create(ctx, btree.DataFileName)
		if err != nil {
			return nil, 0, err
		}
		lookup, err := b.create(ctx, btree.LookupFileName)
		if err != nil {
			return nil, 0, errors.Join(err, data.Abort())
		}
		_, err = builder.Write(ctx, data, lookup, fileVersion)
		return &anypb.Any{TypeUrl: btree.TypeURL}, btree.WriteVersion, err
	case *zonemap.Builder:
		w, err := b.create(ctx, zonemap.FileName)
		if err == nil {
			_, err = builder.Write(ctx, w, fileVersion)
		}
		return &anypb.Any{TypeUrl: zonemap.TypeURL, Value: builder.Details()}, zonemap.WriteVersion, err
	default:
		return nil, 0, errs.New(errs.ErrInternal, "a builder of type %T", builder)
	}
}

func (b *filterBuild) create(ctx context.Context, name string) (object.Writer, error) {
	path := object.Join(b.table.Dir(), manifest.IndicesDir, b.id.String(), name)
	w, err := b.table.Store().Create(ctx, path)
	if err != nil {
		return nil, err
	}
	b.created = append(b.created, path)
	return w, nil
}

// removeFiles deletes the files of a segment that was not committed. It goes on after ctx has ended.
func (b *filterBuild) removeFiles(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var all error
	for _, path := range b.created {
		if err := b.table.Store().Delete(ctx, path); err != nil {
			all = errors.Join(all, fmt.Errorf("clean up %s: %w", path, err))
		}
	}
	return all
}
