package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// RowAddr and RowID are the two names of a row; see package rowset.
type (
	RowAddr = rowset.RowAddr
	RowID   = rowset.RowID
)

// Snapshot is one version of a table. It is immutable and safe for concurrent use.
type Snapshot struct {
	table     *Table
	file      manifest.File
	manifest  *manifest.Manifest
	arrow     *arrow.Schema
	fragments []*Fragment
	byID      map[uint32]*Fragment
	indices   []IndexInfo
	rows      uint64
	overlay   uint64 // number of a staged snapshot; 0 = a published version
}

func newSnapshot(ctx context.Context, t *Table, f manifest.File, m *manifest.Manifest) (*Snapshot, error) {
	return buildSnapshot(ctx, t, f, m, nil)
}

// buildSnapshot makes the snapshot of a manifest. staged are deleted offsets by fragment id that stand in no file.
func buildSnapshot(ctx context.Context, t *Table, f manifest.File, m *manifest.Manifest, staged map[uint32]*roaring.Bitmap) (*Snapshot, error) {
	s := &Snapshot{table: t, file: f, manifest: m, arrow: m.Schema.Arrow(), byID: make(map[uint32]*Fragment)}
	for _, pb := range m.Proto.GetFragments() {
		fr := newFragment(s, pb)
		if fr.staged = staged[fr.id]; fr.staged != nil {
			fr.deleted = fr.staged.GetCardinality()
		}
		s.fragments = append(s.fragments, fr)
		s.byID[fr.id] = fr
	}
	if err := s.countRows(ctx); err != nil {
		return nil, err
	}
	for _, pb := range m.Indices {
		info, err := newIndexInfo(s.table.dir, pb)
		if err != nil {
			return nil, errs.WithPath(err, f.Path)
		}
		s.indices = append(s.indices, info)
	}
	return s, nil
}

// countRows sums the live rows. Old writers left counts out of the manifest: those are read from the files.
func (s *Snapshot) countRows(ctx context.Context) error {
	g, gctx := spawn.WithContext(ctx, s.table.opts.ReadParallelism)
	for _, f := range s.fragments {
		if f.rows == 0 && len(f.pb.GetFiles()) > 0 {
			g.Go("count rows", func() error {
				r, err := f.open(gctx, 0)
				if err != nil {
					return err
				}
				f.rows = r.Rows()
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	g, gctx = spawn.WithContext(ctx, s.table.opts.ReadParallelism)
	for _, f := range s.fragments {
		if f.pb.GetDeletionFile() == nil {
			continue
		}
		if f.deleted = f.pb.GetDeletionFile().GetNumDeletedRows(); f.deleted == 0 {
			g.Go("count deleted rows", func() error {
				bm, err := f.Deletions(gctx)
				if err != nil {
					return err
				}
				f.deleted = bm.GetCardinality()
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, f := range s.fragments {
		s.rows += f.rows - f.deleted
	}
	return nil
}

// Table returns the table that the snapshot is a version of.
func (s *Snapshot) Table() *Table { return s.table }

// Version is the version number.
func (s *Snapshot) Version() uint64 { return s.manifest.Version() }

// Timestamp is when the version was committed.
func (s *Snapshot) Timestamp() time.Time { return s.manifest.Timestamp() }

// Schema is the table's schema in this version.
func (s *Snapshot) Schema() *schema.Schema { return s.manifest.Schema }

// ArrowSchema is Schema as Arrow sees it.
func (s *Snapshot) ArrowSchema() *arrow.Schema { return s.arrow }

// Fragments are the slices of rows, in the order of the manifest. The caller must not change the slice.
func (s *Snapshot) Fragments() []*Fragment { return s.fragments }

// Fragment returns the fragment of that id.
func (s *Snapshot) Fragment(id uint32) (*Fragment, bool) {
	f, ok := s.byID[id]
	return f, ok
}

// Rows is the number of live rows.
func (s *Snapshot) Rows() uint64 { return s.rows }

// HasStableRowIDs says that stored keys are row ids, not addresses (I5).
func (s *Snapshot) HasStableRowIDs() bool { return s.manifest.HasStableRowIDs() }

// FormatVersion is the version of data files that writers of this table use, such as "2.1".
func (s *Snapshot) FormatVersion() string { return s.manifest.Proto.GetDataFormat().GetVersion() }

// Manifest is the version's metadata as stored, for commits and for showing.
func (s *Snapshot) Manifest() *manifest.Manifest { return s.manifest }

// ManifestFile says where the manifest lies.
func (s *Snapshot) ManifestFile() manifest.File { return s.file }

// Transaction returns the transaction that made the version. Errors: ErrNotFound where none was kept.
func (s *Snapshot) Transaction(ctx context.Context) (*tablepb.Transaction, error) {
	return manifest.ReadTransaction(ctx, s.table.store, s.table.dir, s.manifest)
}

// LiveRows returns the addresses of rows that are not deleted, in some fragments (nil = all). Errors: ErrInvalid for
// a fragment that the version does not have, ErrCorrupt, ErrIO.
func (s *Snapshot) LiveRows(ctx context.Context, fragments []uint32) (*rowset.Set, error) {
	frags, err := s.pick(fragments)
	if err != nil {
		return nil, err
	}
	if err := s.loadDeletions(ctx, frags); err != nil {
		return nil, err
	}
	out := &rowset.Set{}
	for _, f := range frags {
		out.AddRange(f.id, 0, f.rows)
	}
	deleted := &rowset.Set{}
	for _, f := range frags {
		bm, err := f.Deletions(ctx)
		if err != nil {
			return nil, err
		}
		deleted.AddBitmap(f.id, bm)
	}
	if deleted.IsEmpty() {
		return out, nil
	}
	return rowset.AndNot(out, deleted), nil
}

// LiveOf keeps the row addresses that name live rows. Errors: ErrCorrupt, ErrIO.
func (s *Snapshot) LiveOf(ctx context.Context, addrs *rowset.Set) (*rowset.Set, error) {
	return s.maskDead(ctx, addrs)
}

// pick returns the fragments of those ids, nil = all.
func (s *Snapshot) pick(ids []uint32) ([]*Fragment, error) {
	if ids == nil {
		return s.fragments, nil
	}
	out := make([]*Fragment, 0, len(ids))
	seen := make(map[uint32]bool, len(ids))
	for _, id := range ids {
		f, ok := s.byID[id]
		if !ok || seen[id] {
			return nil, errs.New(errs.ErrInvalid, "%s version %d: fragment %d does not exist or is named twice", s.table.Path(), s.Version(), id)
		}
		seen[id] = true
		out = append(out, f)
	}
	return out, nil
}

// loadDeletions brings the deletion sets of fragments into the cache, in parallel.
func (s *Snapshot) loadDeletions(ctx context.Context, frags []*Fragment) error {
	if !slices.ContainsFunc(frags, func(f *Fragment) bool { return f.pb.GetDeletionFile() != nil }) {
		return nil
	}
	g, gctx := spawn.WithContext(ctx, s.table.opts.ReadParallelism)
	for _, f := range frags {
		if f.pb.GetDeletionFile() != nil {
			g.Go("load deletions", func() error {
				_, err := f.Deletions(gctx)
				return err
			})
		}
	}
	return g.Wait()
}

// fields resolves column names; nil = all.
func (s *Snapshot) fields(names []string) ([]*schema.Field, error) {
	if names == nil {
		return s.manifest.Schema.Fields, nil
	}
	out := make([]*schema.Field, len(names))
	for i, name := range names {
		f, ok := s.manifest.Schema.Lookup(name)
		if !ok {
			return nil, errs.New(errs.ErrInvalid, "%s version %d has no column %q", s.table.Path(), s.Version(), name)
		}
		out[i] = f
	}
	return out, nil
}

// missing turns a not-found of a file that the version names into an I/O error (I6).
func (s *Snapshot) missing(err error, what string) error { return s.missingFile(err, "", what) }

func (s *Snapshot) missingFile(err error, file, what string) error {
	if errors.Is(err, errs.ErrNotFound) {
		return &errs.GoneError{Path: file, Err: fmt.Errorf("%s version %d: %s is gone (cleaned up or deleted): %v", s.table.Path(), s.Version(), what, err)} //nolint:errorlint // no ErrNotFound any more
	}
	return fmt.Errorf("%s version %d: %w", s.table.Path(), s.Version(), err)
}

// open opens a file of the version through its base path.
func (s *Snapshot) open(ctx context.Context, base *uint32, rootFolder, name string) (object.File, error) {
	store, dir, err := s.base(ctx, base, rootFolder)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, object.Join(dir, name))
}
