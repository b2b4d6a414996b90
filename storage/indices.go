package storage

import (
	"context"
	"errors"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// IndexInfo is one index segment as the manifest lists it. Several segments of one Name form an index.
type IndexInfo struct {
	Name           string
	UUID           string // hyphenated, lower case
	FieldIDs       []int32
	Covers         *roaring.Bitmap // fragment ids; may hold ids of fragments that are gone; empty where the writer did not say
	TypeURL        string          // of the details, as stored
	Details        []byte
	Version        int32     // index_version
	DatasetVersion uint64    // that was read to build it
	CreatedAt      time.Time // zero where not recorded
	Files          []IndexFileInfo
	Dir            string // the segment's folder, relative to its base

	baseID *uint32
}

// IndexFileInfo is one file of a segment, where the writer listed them.
type IndexFileInfo struct {
	Path      string
	SizeBytes int64
}

func newIndexInfo(dir string, pb *tablepb.IndexMetadata) (IndexInfo, error) {
	id, err := uuid.FromBytes(pb.GetUuid().GetUuid())
	if err != nil {
		return IndexInfo{}, errs.Corrupt("index section", -1, "index %q: %w", pb.GetName(), err)
	}
	info := IndexInfo{
		Name: pb.GetName(), UUID: id.String(), FieldIDs: pb.GetFields(), Covers: roaring.New(),
		TypeURL: pb.GetIndexDetails().GetTypeUrl(), Details: pb.GetIndexDetails().GetValue(),
		Version: pb.GetIndexVersion(), DatasetVersion: pb.GetDatasetVersion(), baseID: pb.BaseId,
	}
	if b := pb.GetFragmentBitmap(); len(b) > 0 {
		if info.Covers, _, err = rowset.ParseBitmap(b); err != nil {
			return IndexInfo{}, errs.Corrupt("index section", -1, "index %q: fragment bitmap: %w", pb.GetName(), err)
		}
	}
	if ms := pb.GetCreatedAt(); ms != 0 {
		info.CreatedAt = time.UnixMilli(int64(ms)).UTC()
	}
	for _, f := range pb.GetFiles() {
		info.Files = append(info.Files, IndexFileInfo{Path: f.GetPath(), SizeBytes: int64(f.GetSizeBytes())})
	}
	info.Dir = object.Join(manifest.IndicesDir, info.UUID)
	if info.baseID == nil {
		info.Dir = object.Join(dir, info.Dir)
	}
	return info, nil
}

// Indices are the live index segments. The caller must not change the slice.
func (s *Snapshot) Indices() []IndexInfo { return s.indices }

// IndexBytes is the size of a segment's files, as the manifest lists them; where it does not, as they lie in the segment's folder. No file is opened.
// Errors: ErrIO, ErrPermission.
func (s *Snapshot) IndexBytes(ctx context.Context, info IndexInfo) (int64, error) {
	total := int64(0)
	for _, f := range info.Files {
		total += f.SizeBytes
	}
	if len(info.Files) > 0 {
		return total, nil
	}
	store, dir, err := s.base(ctx, info.baseID, manifest.IndicesDir)
	if err != nil {
		return 0, err
	}
	entries, err := store.List(ctx, object.Join(dir, info.UUID))
	if err != nil {
		return 0, s.missing(err, "the folder of index "+info.Name)
	}
	for _, e := range entries {
		total += e.SizeBytes
	}
	return total, nil
}

// OpenIndexFile opens one file of a segment by its name. Errors: ErrIO where it is gone, ErrPermission.
func (s *Snapshot) OpenIndexFile(ctx context.Context, info IndexInfo, name string) (object.File, error) {
	f, err := s.open(ctx, info.baseID, manifest.IndicesDir, object.Join(info.UUID, name))
	if err != nil {
		return nil, s.missingFile(err, name, "file "+name+" of index "+info.Name)
	}
	return &indexFile{File: f, snapshot: s, name: name, what: "file " + name + " of index " + info.Name}, nil
}

// indexFile is a file whose reads may come long after it was opened, when it may be gone (I6).
type indexFile struct {
	object.File
	snapshot *Snapshot
	name     string
	what     string
}

func (f *indexFile) Read(ctx context.Context, r object.Range) ([]byte, error) {
	b, err := f.File.Read(ctx, r)
	if errors.Is(err, errs.ErrNotFound) {
		err = f.snapshot.missingFile(err, f.name, f.what)
	}
	return b, err
}

func (f *indexFile) ReadMany(ctx context.Context, rs []object.Range) ([][]byte, error) {
	bs, err := f.File.ReadMany(ctx, rs)
	if errors.Is(err, errs.ErrNotFound) {
		err = f.snapshot.missingFile(err, f.name, f.what)
	}
	return bs, err
}
