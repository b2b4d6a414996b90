package storage

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// Staged is a version in the making: what a writer would publish now, but for deletions that have no file yet.
type Staged struct {
	Manifest *manifest.Manifest
	// Deleted holds, by fragment id, all deleted offsets of fragments whose deletions are in memory; the fragments' deletion files are then not read.
	// It is kept and must not be changed.
	Deleted map[uint32]*roaring.Bitmap
}

// overlays numbers staged snapshots, so that caches do not mix them with each other or with a published version (I4).
var overlays atomic.Uint64

// Overlay returns st as a snapshot of s's table: the files that it names are on disk, its manifest is not. It says the version number of its
// manifest, and ManifestFile is that of s. Errors: ErrInvalid for deletions of a fragment that st does not have, ErrCorrupt, ErrIO.
func (s *Snapshot) Overlay(ctx context.Context, st Staged) (*Snapshot, error) {
	m := *st.Manifest
	m.Proto = &tablepb.Manifest{}
	proto.Merge(m.Proto, st.Manifest.Proto)
	for _, f := range m.Proto.GetFragments() {
		if st.Deleted[uint32(f.GetId())] != nil {
			f.DeletionFile = nil
		}
	}
	out, err := buildSnapshot(ctx, s.table, s.file, &m, st.Deleted)
	if err != nil {
		return nil, err
	}
	for id, bm := range st.Deleted {
		f, ok := out.byID[id]
		if !ok || (!bm.IsEmpty() && uint64(bm.Maximum()) >= f.rows) {
			return nil, errs.New(errs.ErrInvalid, "rows deleted in fragment %d, which the staged version does not have", id)
		}
	}
	out.overlay = overlays.Add(1)
	return out, nil
}

// IsOverlay says that the snapshot is staged: no reader of the table sees it.
func (s *Snapshot) IsOverlay() bool { return s.overlay != 0 }

// ident tells what is derived from this snapshot's manifest from what is derived from others'.
func (s *Snapshot) ident() string {
	if s.overlay != 0 {
		return fmt.Sprintf("overlay %d", s.overlay)
	}
	return identOf(s.file)
}
