package storage

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// Fragment is a slice of a snapshot's rows: data files of equal length side by side, and deleted offsets.
type Fragment struct {
	snapshot *Snapshot
	pb       *tablepb.DataFragment
	id       uint32
	rows     uint64 // physical
	deleted  uint64
	staged   *roaring.Bitmap // deleted offsets that stand in no file; nil = those of the deletion file

	placed sync.Once
	places map[int32]place // where each field id lives
}

// place is a physical column of one of the fragment's files; column -1 says that the field has no column of its own.
type place struct{ file, column int }

// tombstone is the field id of columns that no longer belong to the table.
const tombstone = -2

// deletionsMax bounds a deletion file: a bitmap of every row, or an Arrow file of as many offsets.
const deletionsMax = 1 << 34

func newFragment(s *Snapshot, pb *tablepb.DataFragment) *Fragment {
	return &Fragment{snapshot: s, pb: pb, id: uint32(pb.GetId()), rows: pb.GetPhysicalRows()}
}

// ID is the fragment id.
func (f *Fragment) ID() uint32 { return f.id }

// PhysicalRows counts rows, deleted ones included: offsets are 0 to PhysicalRows-1.
func (f *Fragment) PhysicalRows() uint64 { return f.rows }

// Rows counts the live rows.
func (f *Fragment) Rows() uint64 { return f.rows - f.deleted }

// Proto is the fragment as the manifest has it; not to be changed.
func (f *Fragment) Proto() *tablepb.DataFragment { return f.pb }

// Deletions returns the deleted offsets, nil where there are none. The caller must not change the bitmap. Errors: ErrCorrupt, ErrIO.
func (f *Fragment) Deletions(ctx context.Context) (*roaring.Bitmap, error) {
	if f.staged != nil {
		return f.staged, nil
	}
	d := f.pb.GetDeletionFile()
	if d == nil {
		return nil, nil //nolint:nilnil // no deletions is an ordinary answer
	}
	s := f.snapshot
	store, dir, err := s.base(ctx, d.BaseId, "")
	if err != nil {
		return nil, err
	}
	name := manifest.DeletionPath(uint64(f.id), d)
	path := object.Join(dir, name)
	key := cacheKey{store: store, kind: kindDeletions, path: path, ident: fmt.Sprint(f.rows)}
	return cached(ctx, s.table.opts.Cache, key, func(ctx context.Context) (*roaring.Bitmap, int64, error) {
		bm, err := f.readDeletions(ctx, store, path, d)
		if err != nil {
			return nil, 0, s.missing(err, fmt.Sprintf("deletion file %s of fragment %d", name, f.id))
		}
		return bm, int64(bm.GetSizeInBytes()) + 256, nil
	})
}

func (f *Fragment) readDeletions(ctx context.Context, store object.Store, path string, d *tablepb.DeletionFile) (*roaring.Bitmap, error) {
	o, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if o.SizeBytes() > deletionsMax {
		return nil, errs.WithPath(errs.Corrupt("deletion file", -1, "%d bytes long", o.SizeBytes()), path)
	}
	b, err := o.Read(ctx, object.Range{Size: o.SizeBytes()})
	if err != nil {
		return nil, err
	}
	bm, err := manifest.ParseDeletions(b, d.GetFileType(), f.rows)
	if err != nil {
		return nil, errs.WithPath(err, path)
	}
	if want := d.GetNumDeletedRows(); want != 0 && bm.GetCardinality() != want {
		return nil, errs.WithPath(errs.Corrupt("deletion file", -1, "%d rows deleted, the manifest says %d", bm.GetCardinality(), want), path)
	}
	return bm, nil
}

// openFile is a reader with what reading it costs.
type openFile struct {
	*file.Reader
	key           cacheKey
	isMapped      bool
	metadataBytes int64
}

// heldBytes is what the reader keeps in memory now; it grows with use.
func (o *openFile) heldBytes() int64 { return o.metadataBytes + o.CachedBytes() }

// open returns the reader of data file i. Errors: ErrUnsupported naming file and version, ErrCorrupt, ErrIO.
func (f *Fragment) open(ctx context.Context, i int) (*openFile, error) {
	s, d := f.snapshot, f.pb.GetFiles()[i]
	store, dir, err := s.base(ctx, d.BaseId, manifest.DataDir)
	if err != nil {
		return nil, err
	}
	if isLegacy(d) {
		return nil, errs.New(errs.ErrUnsupported, "%s: data file %s has legacy format %d.%d, which is not supported: rewrite the table with a current writer",
			s.table.Path(), d.GetPath(), d.GetFileMajorVersion(), d.GetFileMinorVersion())
	}
	path := object.Join(dir, d.GetPath())
	key := cacheKey{store: store, kind: kindFile, path: path, ident: fmt.Sprint(d.GetFileSizeBytes())}
	o, err := cached(ctx, s.table.opts.Cache, key, func(ctx context.Context) (*openFile, int64, error) {
		obj, err := openSized(ctx, store, path, d.GetFileSizeBytes())
		if err != nil {
			return nil, 0, err
		}
		if want := d.GetFileSizeBytes(); want != 0 && uint64(obj.SizeBytes()) != want {
			return nil, 0, errs.WithPath(errs.Corrupt("file", -1, "%d bytes long, the manifest says %d", obj.SizeBytes(), want), path)
		}
		r, err := file.Open(ctx, obj, s.table.opts.File)
		if err != nil {
			return nil, 0, err
		}
		o := &openFile{Reader: r, key: key, isMapped: obj.IsMapped(), metadataBytes: r.MetadataBytes()}
		return o, o.heldBytes(), nil
	})
	if err != nil {
		return nil, s.missing(err, fmt.Sprintf("data file %s of fragment %d", d.GetPath(), f.id))
	}
	if f.rows != 0 && o.Rows() != f.rows {
		return nil, errs.WithPath(errs.Corrupt("file", -1, "%d rows, the manifest says %d for fragment %d", o.Rows(), f.rows, f.id), path)
	}
	return o, nil
}

// settle takes note of what a read made the file keep.
func (f *Fragment) settle(o *openFile) { f.snapshot.table.opts.Cache.settle(o.key) }

// OpenFile returns the reader of data file i of Proto().Files. Errors: ErrUnsupported naming file and version, ErrCorrupt, ErrIO.
func (f *Fragment) OpenFile(ctx context.Context, i int) (*file.Reader, error) {
	o, err := f.open(ctx, i)
	if err != nil {
		return nil, err
	}
	return o.Reader, nil
}

// openSized saves a request where the manifest knows the size.
func openSized(ctx context.Context, store object.Store, path string, sizeBytes uint64) (object.File, error) {
	if sized, ok := store.(object.SizedOpener); ok && sizeBytes > 0 && sizeBytes < math.MaxInt64 {
		return sized.OpenSized(ctx, path, int64(sizeBytes))
	}
	return store.Open(ctx, path)
}

// isLegacy says that a data file has the format of before version 2.0.
func isLegacy(d *tablepb.DataFile) bool { return d.GetFileMajorVersion() < 2 }

// fieldPlaces says where each field id lives. A field that two files list is taken from the later one, which was added to replace it. Files of the legacy format say
// nothing of columns: their fields get one, so that reading them is refused (open) instead of finding NULL.
func (f *Fragment) fieldPlaces() map[int32]place {
	f.placed.Do(func() {
		f.places = make(map[int32]place)
		for i, d := range f.pb.GetFiles() {
			for k, id := range d.GetFields() {
				switch {
				case id == tombstone:
				case isLegacy(d):
					f.places[id] = place{file: i, column: k}
				case k < len(d.GetColumnIndices()):
					f.places[id] = place{file: i, column: int(d.GetColumnIndices()[k])}
				}
			}
		}
	})
	return f.places
}

// source says from which files a field of the table is read in one fragment. No part: it reads as NULL (I3). Several parts: a
// struct whose children were added later; each part is the struct with some of its leaves.
type source struct {
	field *schema.Field
	parts []part
}

// part is a field as far as one file holds it.
type part struct {
	file   int
	column file.Column
}

func (f *Fragment) source(field *schema.Field) source {
	places := f.fieldPlaces()
	byFile := make(map[int]map[int32]int)
	var order []int
	add := func(id int32, p place) {
		index, ok := byFile[p.file]
		if !ok {
			index = make(map[int32]int)
			byFile[p.file] = index
			order = append(order, p.file)
		}
		index[id] = p.column
	}
	for d := range field.All() {
		p, ok := places[d.ID]
		if !ok || p.column < 0 {
			continue
		}
		// A parent has a column of its own in 2.0 files, and where the struct is stored as one leaf; either goes with its file.
		add(d.ID, p)
	}
	out := source{field: field}
	for _, i := range order {
		out.parts = append(out.parts, part{file: i, column: file.Column{Field: field, Index: byFile[i]}})
	}
	return out
}
