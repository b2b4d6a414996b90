//go:build !unix

package object

import (
	"os"

	"github.com/lakesql/lakesql/internal/errs"
)

func identify(info os.FileInfo) fileID {
	return fileID{sizeBytes: info.Size(), modTime: info.ModTime()}
}

// mapFile refuses: files are read by position instead.
func mapFile(*os.File, int64) ([]byte, error) { return nil, errs.ErrUnsupported }

func unmapFile([]byte) error { return nil }

func moveIfAbsent(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	return err
}
