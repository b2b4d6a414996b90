package files

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// blockBytes is how much of a file is asked for at one time.
const blockBytes = 4 << 20

// fileBytes reads a file from its beginning, and at places. It counts what it read.
type fileBytes struct {
	ctx   context.Context //nolint:containedctx // io.Reader has no place for one
	file  object.File
	size  int64
	at    int64
	block []byte // what was read and not yet given
	read  atomic.Int64
}

func openBytes(ctx context.Context, f File) (*fileBytes, error) {
	file, err := f.Store.Open(ctx, f.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.URL, err)
	}
	return &fileBytes{ctx: ctx, file: file, size: file.SizeBytes()}, nil
}

// Read implements io.Reader.
func (f *fileBytes) Read(p []byte) (int, error) {
	if len(f.block) == 0 {
		n := min(blockBytes, f.size-f.at)
		if n == 0 {
			return 0, io.EOF
		}
		b, err := f.file.Read(f.ctx, object.Range{Offset: f.at, Size: n})
		if err != nil {
			return 0, err
		}
		f.block = b
		f.at += n
	}
	n := copy(p, f.block)
	f.block = f.block[n:]
	f.read.Add(int64(n))
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (f *fileBytes) ReadAt(p []byte, off int64) (int, error) {
	return object.ReadAt(f.ctx, f.file, p, off)
}

// Seek implements io.Seeker.
func (f *fileBytes) Seek(offset int64, whence int) (int64, error) {
	at := f.at - int64(len(f.block))
	switch whence {
	case io.SeekStart:
		at = offset
	case io.SeekCurrent:
		at += offset
	case io.SeekEnd:
		at = f.size + offset
	}
	if at < 0 {
		return 0, errs.New(errs.ErrInvalid, "seek to %d", at)
	}
	f.at, f.block = min(at, f.size), nil
	return at, nil
}

// Close implements io.Closer.
func (f *fileBytes) Close() error { return nil }

// plain returns the file's text without compression, which its name tells.
func (f *fileBytes) plain(name string) (io.Reader, func(), error) {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, ".gz"):
		r, err := gzip.NewReader(f)
		if err != nil {
			return nil, nil, compressed(name, err)
		}
		return r, func() { _ = r.Close() }, nil // it holds nothing
	case strings.HasSuffix(name, ".zst"):
		r, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, compressed(name, err)
		}
		return r, r.Close, nil
	}
	return f, func() {}, nil
}

// compressed says that a file does not decompress, unless the store failed.
func compressed(path string, err error) error {
	for _, kind := range []error{errs.ErrIO, errs.ErrNotFound, errs.ErrPermission, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return err
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the end of the file is not the end of its text
	}
	return &errs.CorruptError{Path: path, Section: "compressed text", Offset: -1, Err: err}
}
