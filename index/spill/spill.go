// Package spill keeps sorted runs of records in temporary files, so that an index can be built from more than fits memory.
//
// A record is a key and a value, both bytes. The package does not sort: whoever writes a run writes it in order, and Merge reads several runs
// as one. It knows nothing of what keys and values mean but that keys compare byte by byte.
//
// Start with Runs.
package spill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/lakesql/lakesql/internal/errs"
)

const (
	bufferBytes = 64 << 10
	// runsMax is the most runs that are read at one time: more are first merged into fewer.
	runsMax = 64
	// recordBytesMax bounds a key or a value that is read back.
	recordBytesMax = 1 << 31
)

// Runs are the sorted runs of one build. The zero value keeps them in the system's folder for temporary files. It is not safe for concurrent use.
type Runs struct {
	Parent string // folder of the temporary folder; "" = the system's

	dir   string // "" = not made yet
	paths []string
	bytes int64
}

// Count is the number of runs.
func (r *Runs) Count() int { return len(r.paths) }

// SizeBytes is what was written to disk, merged runs counted again.
func (r *Runs) SizeBytes() int64 { return r.bytes }

// Add writes one run: fill calls put in ascending order of the keys. After an error the run does not count. Errors: ErrDiskFull, ErrIO, and those of fill.
func (r *Runs) Add(fill func(put func(key, value []byte) error) error) error {
	path, err := r.write(fill)
	if err != nil {
		return err
	}
	r.paths = append(r.paths, path)
	return nil
}

func (r *Runs) write(fill func(put func(key, value []byte) error) error) (path string, err error) {
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp(r.Parent, "lakesql-index-"); err != nil {
			return "", ioError(err)
		}
	}
	f, err := os.CreateTemp(r.dir, "run-")
	if err != nil {
		return "", ioError(err)
	}
	w := bufio.NewWriterSize(f, bufferBytes)
	var head [2 * binary.MaxVarintLen64]byte
	put := func(key, value []byte) error {
		h := binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(len(key))), uint64(len(value)))
		r.bytes += int64(len(h) + len(key) + len(value))
		for _, part := range [][]byte{h, key, value} {
			if _, err := w.Write(part); err != nil {
				return ioError(err)
			}
		}
		return nil
	}
	if err = fill(put); err == nil {
		err = ioError(w.Flush())
	}
	if closeErr := ioError(f.Close()); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(f.Name()) // Remove takes the whole folder away later
		return "", err
	}
	return f.Name(), nil
}

// Settle merges runs until few enough are left to be read at one time. join makes one value of those of one key, which come in any order.
func (r *Runs) Settle(ctx context.Context, join func(dst []byte, values [][]byte) []byte) error {
	for len(r.paths) > runsMax {
		some := r.paths[:runsMax]
		path, err := r.write(func(put func(key, value []byte) error) error {
			var buf []byte
			return merge(ctx, some, func(key []byte, values [][]byte) error {
				buf = join(buf[:0], values)
				return put(key, buf)
			})
		})
		if err != nil {
			return err
		}
		for _, p := range some {
			if err := os.Remove(p); err != nil {
				return ioError(err)
			}
		}
		r.paths = append(r.paths[runsMax:], path)
	}
	return nil
}

// Remove deletes the runs. It is idempotent.
func (r *Runs) Remove() error {
	if r.dir == "" {
		return nil
	}
	err := os.RemoveAll(r.dir)
	r.dir, r.paths = "", nil
	return ioError(err)
}

// Open starts reading every run. The caller closes the readers.
func (r *Runs) Open() ([]*Reader, error) { return open(r.paths) }

func open(paths []string) ([]*Reader, error) {
	var out []*Reader
	for _, p := range paths {
		f, err := os.Open(p) //nolint:gosec // a file of our own
		if err != nil {
			err = ioError(err)
			for _, o := range out {
				err = errors.Join(err, o.Close())
			}
			return nil, err
		}
		out = append(out, &Reader{file: f, in: bufio.NewReaderSize(f, bufferBytes)})
	}
	return out, nil
}

// Reader reads one run.
type Reader struct {
	Key, Value []byte // of the record that Next read; valid until it is called again

	file *os.File
	in   *bufio.Reader
}

// Next reads the next record; io.EOF at the end. Errors: ErrIO.
func (r *Reader) Next() error {
	keyLen, err := binary.ReadUvarint(r.in)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return ioError(err)
	}
	valueLen, err := binary.ReadUvarint(r.in)
	if err != nil || keyLen > recordBytesMax || valueLen > recordBytesMax {
		return errs.New(errs.ErrIO, "a spilled run is broken: %d and %d bytes, %v", keyLen, valueLen, err)
	}
	if r.Key, err = r.fill(r.Key, int(keyLen)); err == nil {
		r.Value, err = r.fill(r.Value, int(valueLen))
	}
	return err
}

func (r *Reader) fill(buf []byte, n int) ([]byte, error) {
	if cap(buf) < n {
		buf = make([]byte, n, n+n/2)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r.in, buf); err != nil {
		return nil, errs.New(errs.ErrIO, "a spilled run ends early: %w", err)
	}
	return buf, nil
}

// Close ends reading.
func (r *Reader) Close() error { return ioError(r.file.Close()) }

// merge calls use with every key, ascending, and its values in any order; neither may be kept.
func merge(ctx context.Context, paths []string, use func(key []byte, values [][]byte) error) (err error) {
	readers, err := open(paths)
	if err != nil {
		return err
	}
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
	}()
	h := Heap[*Reader]{Less: func(a, b *Reader) bool { return bytes.Compare(a.Key, b.Key) < 0 }, Next: func(r *Reader) error { return r.Next() }}
	if err := h.Fill(readers); err != nil {
		return err
	}
	var group []*Reader
	var values [][]byte
	for count := 0; ; count++ {
		if count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if group = h.Group(group[:0]); len(group) == 0 {
			return nil
		}
		values = values[:0]
		for _, r := range group {
			values = append(values, r.Value)
		}
		if err := use(group[0].Key, values); err != nil {
			return err
		}
		if err := h.Advance(group); err != nil {
			return err
		}
	}
}

func ioError(err error) error {
	if err == nil {
		return nil
	}
	kind := errs.ErrIO
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		kind = errs.ErrDiskFull
	}
	return errs.New(kind, "spill: %w", err)
}
