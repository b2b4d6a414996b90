package object

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// Folders is a Store whose folders are things of their own: they stay when they are empty, and move as a whole. In other stores a folder is what its files'
// names begin with.
type Folders interface {
	// RemoveFolder takes a folder away with all that is in it. Nobody sees a part of it gone. A missing folder is no error.
	RemoveFolder(ctx context.Context, dir string) error
	// RenameFolder moves a folder. ErrNotFound; ErrExists where the new name is taken.
	RenameFolder(ctx context.Context, from, to string) error
}

var _ Folders = (*Local)(nil)

// RemoveFolder implements Folders: the folder gets a hidden name first.
func (l *Local) RemoveFolder(ctx context.Context, dir string) error {
	if err := errors.Join(ctx.Err(), checkFilePath(dir)); err != nil {
		return err
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return errs.New(errs.ErrIO, "random bytes: %w", err)
	}
	hidden := Join(path.Dir(dir), fmt.Sprintf("%s%x", hiddenPrefix, b))
	if path.Dir(dir) == "." {
		hidden = path.Base(hidden)
	}
	l.removeHidden(path.Dir(hidden))
	err := kindOf(os.Rename(l.abs(dir), l.abs(hidden)), "remove", dir)
	if errors.Is(err, errs.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return kindOf(os.RemoveAll(l.abs(hidden)), "remove", dir)
}

// hiddenPrefix begins the names of folders that are being removed.
const hiddenPrefix = ".removed-"

// removeHidden goes on where a process died that removed a folder beside this one. What fails is left for the next time.
func (l *Local) removeHidden(parent string) {
	entries, err := os.ReadDir(l.abs(parent))
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), hiddenPrefix) {
			_ = os.RemoveAll(filepath.Join(l.abs(parent), e.Name()))
		}
	}
}

// RenameFolder implements Folders.
func (l *Local) RenameFolder(ctx context.Context, from, to string) error {
	if err := errors.Join(ctx.Err(), checkFilePath(from), checkFilePath(to)); err != nil {
		return err
	}
	if _, err := os.Lstat(l.abs(to)); err == nil {
		return errs.New(errs.ErrExists, "%q exists", to)
	}
	return kindOf(os.Rename(l.abs(from), l.abs(to)), "rename", from)
}
