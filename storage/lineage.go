package storage

import (
	"context"
	"fmt"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// unknownVersion is what rows of fragments without a record are said to come from.
const unknownVersion = 1

// CreatedVersions says which version created each row, in the order of the rows, in tables with stable row ids. Where the fragment does not say, it
// was version 1. Errors: ErrCorrupt, ErrIO.
func (f *Fragment) CreatedVersions(ctx context.Context) ([]manifest.VersionRun, error) {
	return f.versions(ctx, f.pb.GetInlineCreatedAtVersions(), f.pb.GetExternalCreatedAtVersions(), f.pb.GetCreatedAtVersionSequence() != nil)
}

// UpdatedVersions says which version last changed each row, as CreatedVersions does.
func (f *Fragment) UpdatedVersions(ctx context.Context) ([]manifest.VersionRun, error) {
	return f.versions(ctx, f.pb.GetInlineLastUpdatedAtVersions(), f.pb.GetExternalLastUpdatedAtVersions(), f.pb.GetLastUpdatedAtVersionSequence() != nil)
}

func (f *Fragment) versions(ctx context.Context, inline []byte, external *tablepb.ExternalFile, isKnown bool) ([]manifest.VersionRun, error) {
	if !isKnown || f.rows == 0 {
		return manifest.AppendVersion(nil, f.rows, unknownVersion), nil
	}
	path := f.snapshot.file.Path
	if external != nil {
		var err error
		if inline, path, err = f.external(ctx, external, "row versions"); err != nil {
			return nil, err
		}
	}
	runs, err := manifest.ParseVersions(inline, f.rows)
	if err != nil {
		return nil, errs.WithPath(fmt.Errorf("fragment %d: %w", f.id, err), path)
	}
	return runs, nil
}

// external reads the part of a file that a fragment refers to.
func (f *Fragment) external(ctx context.Context, ext *tablepb.ExternalFile, what string) (b []byte, path string, err error) {
	s := f.snapshot
	if ext.GetSize() > externalIDsMax || ext.GetOffset() > externalOffsetMax {
		err := errs.Corrupt("manifest", -1, "fragment %d: %s of %d bytes at %d", f.id, what, ext.GetSize(), ext.GetOffset())
		return nil, "", errs.WithPath(err, s.file.Path)
	}
	o, err := s.open(ctx, nil, "", ext.GetPath())
	if err != nil {
		return nil, "", s.missing(err, fmt.Sprintf("file %s with the %s of fragment %d", ext.GetPath(), what, f.id))
	}
	b, err = o.Read(ctx, object.Range{Offset: int64(ext.GetOffset()), Size: int64(ext.GetSize())})
	return b, o.Path(), err
}
