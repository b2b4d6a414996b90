package storage

import (
	"context"
	"path"
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// base returns the store and folder of files with a base id: rootFolder below the dataset (nil), below another dataset root,
// or the base path itself.
func (s *Snapshot) base(ctx context.Context, id *uint32, rootFolder string) (object.Store, string, error) {
	if id == nil {
		return s.table.store, object.Join(s.table.dir, rootFolder), nil
	}
	for _, b := range s.manifest.Proto.GetBasePaths() {
		if b.GetId() != *id {
			continue
		}
		store, dir, err := s.locate(ctx, b.GetPath())
		if err != nil {
			return nil, "", errs.New(errs.ErrIO, "%s version %d: base path %d (%s): %w", s.table.Path(), s.Version(), *id, b.GetPath(), err)
		}
		if b.GetIsDatasetRoot() {
			dir = object.Join(dir, rootFolder)
		}
		return store, dir, nil
	}
	return nil, "", errs.New(errs.ErrCorrupt, "%s version %d: base path %d is not listed", s.table.Path(), s.Version(), *id)
}

// locate finds the store of an absolute path or URL: the table's own where the path lies within it, else one that the cache keeps.
func (s *Snapshot) locate(ctx context.Context, url string) (object.Store, string, error) {
	own := strings.TrimSuffix(normalURL(s.table.store.URL()), "/")
	want := strings.TrimSuffix(normalURL(url), "/")
	if want == own {
		return s.table.store, "", nil
	}
	if rest, ok := strings.CutPrefix(want, own+"/"); ok && object.CheckPath(rest) == nil {
		return s.table.store, rest, nil
	}
	store, err := s.table.opts.Cache.openStore(ctx, want)
	return store, "", err
}

// normalURL spells absolute local paths as URLs.
func normalURL(p string) string {
	if strings.HasPrefix(p, "/") {
		return "file://" + path.Clean(p)
	}
	return p
}
