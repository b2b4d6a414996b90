package write

import (
	"context"
	"errors"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// DropTable removes a table with all versions. Where the store has folders it is gone at once; elsewhere its tags and branches go first, then its manifests, the newest last, so
// that a failure leaves the rows as they were, with fewer names and old versions, or garbage that no version names. Errors: ErrNotFound without a table, ErrIO.
func DropTable(ctx context.Context, t Target) error {
	all, naming, err := t.versions(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errs.New(errs.ErrNotFound, "%s has no table %q", t.Store.URL(), t.Dir)
	}
	if f, ok := t.Store.(object.Folders); ok {
		return f.RemoveFolder(ctx, t.Dir)
	}
	for _, dir := range []string{manifest.TagsDir, manifest.BranchesDir, manifest.BranchTreeDir} {
		if err := removeBelow(ctx, t.Store, object.Join(t.Dir, dir), 0); err != nil {
			return err
		}
	}
	for _, v := range all {
		if err := t.Store.Delete(ctx, t.manifestPath(naming, v)); err != nil {
			return err
		}
	}
	return removeBelow(ctx, t.Store, t.Dir, 0)
}

// foldersDeep bounds how deep a dataset's folders go: a branch below tree/ has its own _indices/UUID/.
const foldersDeep = 16

// filesBelow lists every file below folders.
func filesBelow(ctx context.Context, store object.Store, dirs []string) ([]string, error) {
	var out []string
	for depth := 0; len(dirs) > 0; depth++ {
		if depth > foldersDeep {
			return nil, errs.New(errs.ErrInvalid, "folder %q nests too deeply", dirs[0])
		}
		var deeper []string
		for _, dir := range dirs {
			entries, err := store.List(ctx, dir)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if p := object.Join(dir, e.Name); e.IsDir {
					deeper = append(deeper, p)
				} else {
					out = append(out, p)
				}
			}
		}
		dirs = deeper
	}
	return out, nil
}

// removeBelow deletes every file below a folder. It goes on after an error.
func removeBelow(ctx context.Context, store object.Store, dir string, depth int) error {
	if depth > foldersDeep {
		return errs.New(errs.ErrInvalid, "folder %q nests too deeply", dir)
	}
	entries, err := store.List(ctx, dir)
	if err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		p := object.Join(dir, e.Name)
		if e.IsDir {
			failed = errors.Join(failed, removeBelow(ctx, store, p, depth+1))
		} else {
			failed = errors.Join(failed, store.Delete(ctx, p))
		}
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
	}
	return failed
}

// RenameTable gives a table's folder another name. Errors: ErrNotFound, ErrExists, ErrUnsupported where the store has no folders, and for a table with branches: they
// name their parent's folder.
func RenameTable(ctx context.Context, t Target, dir string) error {
	f, ok := t.Store.(object.Folders)
	if !ok {
		return errs.New(errs.ErrUnsupported, "a table in %s cannot be renamed: the store has no folders; create a new one with CREATE TABLE ... SELECT", t.Store.URL())
	}
	if _, err := t.latest(ctx); err != nil {
		return err
	}
	branches, err := manifest.Branches(ctx, t.Store, t.Dir)
	if err != nil {
		return err
	}
	if len(branches) > 0 {
		return errs.New(errs.ErrUnsupported, "table %q has branches, %q among them, which name its folder: drop them first", t.Dir, branches[0].Name)
	}
	entries, err := t.Store.List(ctx, object.Join(dir, manifest.VersionsDir))
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return errs.New(errs.ErrExists, "table %q exists", dir)
	}
	return f.RenameFolder(ctx, t.Dir, dir)
}
