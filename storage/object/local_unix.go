//go:build unix

package object

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lakesql/lakesql/internal/errs"
)

func identify(info os.FileInfo) fileID {
	id := fileID{sizeBytes: info.Size(), modTime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode = uint64(st.Dev), st.Ino //nolint:unconvert // Dev is signed on some systems
	}
	return id
}

// mapFile maps a whole file for reading. It gives no advice: the system's own read-ahead serves scans, and asking for pages that are
// there already costs a walk over them at every query.
func mapFile(f *os.File, sizeBytes int64) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, int(sizeBytes), unix.PROT_READ, unix.MAP_SHARED)
}

func unmapFile(b []byte) error { return unix.Munmap(b) }

// moveIfAbsent gives a file its final name unless that exists, in one step.
func moveIfAbsent(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EMLINK) {
		if err := renameNoReplace(from, to); !errors.Is(err, errs.ErrUnsupported) {
			return err
		}
		return errs.New(errs.ErrUnsupported, "the file system has neither hard links nor exclusive renames")
	}
	return err
}
