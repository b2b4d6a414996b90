package object

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/lakesql/lakesql/internal/errs"
)

func renameNoReplace(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errs.ErrUnsupported
	}
	return err
}
