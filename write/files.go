package write

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// fragmentRowsLimit is the most rows that row addresses can name in one fragment.
const fragmentRowsLimit = 1 << 32

// Batches yields rows. Next returns io.EOF at the end; the caller owns the batch.
type Batches interface {
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// RowOptions says how rows become files. The zero value is the default.
type RowOptions struct {
	FragmentRows int64 // most rows of a fragment; 0 = 1,048,576
	FileBytes    int64 // a fragment ends after about this many bytes; 0 = 64 GiB
	PageBytes    int   // about how many bytes of values a page holds; 0 = 6 MiB
	Parallel     int   // parts written at one time; 0 = one per core
}

func (o RowOptions) withDefaults() RowOptions {
	if o.FragmentRows == 0 {
		o.FragmentRows = 1 << 20
	}
	if o.FileBytes == 0 {
		o.FileBytes = 64 << 30
	}
	return o
}

// Validate refuses sizes that make no sense.
func (o RowOptions) Validate() error {
	if o.FragmentRows < 0 || o.FragmentRows >= fragmentRowsLimit || o.FileBytes < 0 || o.PageBytes < 0 || o.Parallel < 0 {
		return errs.New(errs.ErrInvalid, "rows per fragment %d, bytes per file %d, bytes per page %d, parallel %d: out of range",
			o.FragmentRows, o.FileBytes, o.PageBytes, o.Parallel)
	}
	return nil
}

// fileSet writes the fragments of one commit and can take them back.
type fileSet struct {
	store   object.Store
	dir     string
	schema  *schema.Schema
	version file.Version
	opts    RowOptions
	budget  *mem.Budget // pays for what writers keep; nil = nobody
}

// writeParts writes every part as fragments of its own, in parallel, and returns the fragments in the order of the parts, without ids.
// After an error nothing is left behind.
func (s *fileSet) writeParts(ctx context.Context, parts []Batches) ([]*tablepb.DataFragment, error) {
	byPart := make([][]*tablepb.DataFragment, len(parts))
	group, groupCtx := spawn.WithContext(ctx, s.opts.Parallel)
	for i, part := range parts {
		group.Go(fmt.Sprintf("write part %d", i), func() error {
			var err error
			byPart[i], err = s.writePart(groupCtx, part)
			return err
		})
	}
	err := group.Wait()
	var all []*tablepb.DataFragment
	for _, fragments := range byPart {
		all = append(all, fragments...)
	}
	if err != nil {
		return nil, errors.Join(err, s.remove(ctx, all))
	}
	return all, nil
}

// writePart cuts one stream of batches into fragments. The fragments that were finished are returned with an error too.
func (s *fileSet) writePart(ctx context.Context, rows Batches) ([]*tablepb.DataFragment, error) {
	p := &partWriter{of: s}
	for {
		batch, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return p.finish(ctx)
		}
		if err == nil {
			err = p.add(ctx, batch)
			batch.Release()
		}
		if err != nil {
			return p.done, errors.Join(err, p.abort())
		}
	}
}

// partWriter cuts rows into fragments as they come.
type partWriter struct {
	of   *fileSet
	open *fragmentWriter
	done []*tablepb.DataFragment
}

// add writes a batch; the caller keeps it. After an error only abort may follow.
func (p *partWriter) add(ctx context.Context, batch arrow.RecordBatch) error {
	limit := p.of.opts.FragmentRows
	for lo := int64(0); lo < batch.NumRows(); {
		if p.open == nil {
			var err error
			if p.open, err = p.of.newFragment(ctx); err != nil {
				return err
			}
		}
		hi := min(batch.NumRows(), lo+limit-int64(p.open.w.Rows()))
		part := batch.NewSlice(lo, hi)
		err := p.open.w.Write(ctx, part)
		part.Release()
		if err != nil {
			return err
		}
		lo = hi
		if int64(p.open.w.Rows()) >= limit || p.open.out.OffsetBytes() >= p.of.opts.FileBytes {
			if err := p.cut(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut ends the open fragment.
func (p *partWriter) cut(ctx context.Context) error {
	f, err := p.open.finish(ctx)
	if err != nil {
		return err
	}
	p.open, p.done = nil, append(p.done, f)
	return nil
}

// finish returns the fragments, those that were finished with an error too.
func (p *partWriter) finish(ctx context.Context) ([]*tablepb.DataFragment, error) {
	if p.open == nil {
		return p.done, nil
	}
	if err := p.cut(ctx); err != nil {
		return p.done, errors.Join(err, p.abort())
	}
	return p.done, nil
}

// abort drops the fragment that is not finished.
func (p *partWriter) abort() error {
	if p.open == nil {
		return nil
	}
	err := p.open.w.Abort()
	p.open = nil
	return err
}

type fragmentWriter struct {
	name string
	out  object.Writer
	w    *file.Writer
	of   *fileSet
}

func (s *fileSet) newFragment(ctx context.Context) (*fragmentWriter, error) {
	name, err := dataFileName()
	if err != nil {
		return nil, err
	}
	out, err := s.store.Create(ctx, object.Join(s.dir, "data", name))
	if err != nil {
		return nil, fmt.Errorf("data file: %w", err)
	}
	w, err := file.NewWriter(out, s.schema, file.WriterOptions{Version: s.version, PageBytes: s.opts.PageBytes, Budget: s.budget})
	if err != nil {
		return nil, errors.Join(err, out.Abort())
	}
	return &fragmentWriter{name: name, out: out, w: w, of: s}, nil
}

func (f *fragmentWriter) finish(ctx context.Context) (*tablepb.DataFragment, error) {
	written, err := f.w.Finish(ctx)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", f.name, err)
	}
	df := &tablepb.DataFile{
		Path:             f.name,
		FileMajorVersion: uint32(f.of.version.Major),
		FileMinorVersion: uint32(f.of.version.Minor),
		FileSizeBytes:    uint64(written.SizeBytes),
	}
	for _, top := range f.of.schema.Fields {
		for field := range top.All() {
			if column, ok := written.ColumnOf[field.ID]; ok {
				df.Fields = append(df.Fields, field.ID)
				df.ColumnIndices = append(df.ColumnIndices, int32(column))
			}
		}
	}
	return &tablepb.DataFragment{Files: []*tablepb.DataFile{df}, PhysicalRows: written.Rows}, nil
}

// takeBack removes the files of a commit that failed with err, unless they may be in use.
func (s *fileSet) takeBack(ctx context.Context, fragments []*tablepb.DataFragment, err error) error {
	if errors.Is(err, errOutcome) {
		return err
	}
	return errors.Join(err, s.remove(ctx, fragments))
}

// remove deletes the data files of fragments that no version names. It goes on after ctx has ended: the clean-up of a canceled statement must run.
func (s *fileSet) remove(ctx context.Context, fragments []*tablepb.DataFragment) error {
	ctx = context.WithoutCancel(ctx)
	var all error
	for _, f := range fragments {
		for _, df := range f.GetFiles() {
			if err := s.store.Delete(ctx, object.Join(s.dir, "data", df.GetPath())); err != nil {
				all = errors.Join(all, fmt.Errorf("clean up %s: %w", df.GetPath(), err))
			}
		}
	}
	return all
}

// dataFileName is 16 random bytes: 3 of them as binary digits, so that object stores spread the names, and 13 as hex digits.
func dataFileName() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", errs.New(errs.ErrIO, "random bytes: %w", err)
	}
	return fmt.Sprintf("%08b%08b%08b%x.lance", b[0], b[1], b[2], b[3:]), nil
}
