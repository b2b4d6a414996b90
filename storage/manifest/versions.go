package manifest

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// File is one manifest file of a dataset.
type File struct {
	Version uint64
	Naming  Naming
	Path    string // in the store
	Entry   object.Entry
}

// HasVersion says whether a folder is a dataset: it has a manifest.
func HasVersion(ctx context.Context, store object.Store, dir string) (bool, error) {
	folder := object.Join(dir, VersionsDir)
	var entries []object.Entry
	var err error
	isAll := true
	if p, ok := store.(object.Pager); ok {
		entries, isAll, err = p.ListPage(ctx, folder, firstNames)
	} else {
		entries, err = store.List(ctx, folder)
	}
	if err != nil {
		return false, err
	}
	isManifest := func(e object.Entry) bool { _, _, ok := ParseName(e.Name); return ok && !e.IsDir }
	return slices.ContainsFunc(entries, isManifest) || !isAll, nil
}

// firstNames is how many names are enough to meet a manifest: beside manifests there are few.
const firstNames = 16

// Versions lists the manifests of a dataset, oldest first. A dataset in the middle of a change of naming may have a
// version twice; it is listed once.
func Versions(ctx context.Context, store object.Store, dir string) ([]File, error) {
	folder := object.Join(dir, VersionsDir)
	entries, err := store.List(ctx, folder)
	if err != nil {
		return nil, err
	}
	return filesOf(folder, entries), nil
}

func filesOf(folder string, entries []object.Entry) []File {
	var out []File
	for _, e := range entries {
		version, naming, ok := ParseName(e.Name)
		if ok && !e.IsDir {
			out = append(out, File{Version: version, Naming: naming, Path: object.Join(folder, e.Name), Entry: e})
		}
	}
	slices.SortStableFunc(out, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Naming, b.Naming))
	})
	return slices.CompactFunc(out, func(a, b File) bool { return a.Version == b.Version })
}

// pageNames is how many names are asked for where the newest version sorts first.
const pageNames = 16

// Latest finds the newest manifest. Stores that list in pages by name are asked for one page only: with V2 names the newest
// version sorts first. (A folder has names of one kind: other writers refuse to mix them.) Errors: ErrNotFound where there
// is no version.
func Latest(ctx context.Context, store object.Store, dir string) (File, error) {
	folder := object.Join(dir, VersionsDir)
	if pager, ok := store.(object.Pager); ok {
		entries, isAll, err := pager.ListPage(ctx, folder, pageNames)
		if err != nil {
			return File{}, err
		}
		files := filesOf(folder, entries)
		isV2 := len(files) > 0 && !slices.ContainsFunc(files, func(f File) bool { return f.Naming != NamingV2 })
		if len(files) > 0 && (isAll || isV2) {
			return files[len(files)-1], nil
		}
	}
	files, err := Versions(ctx, store, dir)
	if err != nil {
		return File{}, err
	}
	if len(files) == 0 {
		return File{}, errs.New(errs.ErrNotFound, "%s has no versions: it is no Lance dataset", dir)
	}
	return files[len(files)-1], nil
}

// Find returns the manifest file of a version. Errors: ErrNotFound.
func Find(ctx context.Context, store object.Store, dir string, version uint64) (File, error) {
	for _, naming := range []Naming{NamingV2, NamingV1} {
		path := object.Join(dir, VersionsDir, naming.Name(version))
		e, err := store.Stat(ctx, path)
		if err == nil {
			return File{Version: version, Naming: naming, Path: path, Entry: e}, nil
		}
		if !errors.Is(err, errs.ErrNotFound) {
			return File{}, err
		}
	}
	return File{}, errs.New(errs.ErrNotFound, "version %d does not exist (it may have been cleaned up)", version)
}

// ReadFile reads the manifest of a listed file and checks that it is the version that its name says.
func ReadFile(ctx context.Context, store object.Store, f File) (*Manifest, error) {
	m, err := Read(ctx, store, f.Path)
	if err != nil {
		return nil, err
	}
	if m.Version() != f.Version {
		return nil, errs.WithPath(errs.Corrupt("manifest", -1, "holds version %d, its name says %d", m.Version(), f.Version), f.Path)
	}
	return m, nil
}
