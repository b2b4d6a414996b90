package object

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Leftovers is a Store in which more is left than files: folders that are empty, and temporary files of writers that died.
type Leftovers interface {
	// RemoveEmptyFolder removes a folder that is empty. One that is missing or holds something is no error, and stays.
	RemoveEmptyFolder(ctx context.Context, dir string) error
	// RemoveTemporary removes temporary files below a folder that were last written before a time, and says how many bytes that freed.
	RemoveTemporary(ctx context.Context, dir string, before time.Time) (bytes int64, err error)
}

var _ Leftovers = (*Local)(nil)

// RemoveEmptyFolder implements Leftovers.
func (l *Local) RemoveEmptyFolder(ctx context.Context, dir string) error {
	if err := errors.Join(ctx.Err(), checkFilePath(dir)); err != nil {
		return err
	}
	err := os.Remove(l.abs(dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return kindOf(err, "remove folder", dir)
}

// RemoveTemporary implements Leftovers.
func (l *Local) RemoveTemporary(ctx context.Context, dir string, before time.Time) (int64, error) {
	if err := errors.Join(ctx.Err(), CheckPath(dir)); err != nil {
		return 0, err
	}
	var bytes int64
	err := filepath.WalkDir(l.abs(dir), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // went while we looked
		}
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), TempPrefix) {
			return err
		}
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(before) {
			return nil //nolint:nilerr // it went
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		bytes += info.Size()
		return nil
	})
	return bytes, kindOf(err, "remove temporary files of", dir)
}
