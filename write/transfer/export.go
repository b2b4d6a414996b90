package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage/object"
)

// Rows yields the rows to export. Next returns io.EOF at the end; the caller owns the batch.
type Rows interface {
	Schema() *arrow.Schema
	Next(ctx context.Context) (arrow.RecordBatch, error)
}

// Compression of the values of an exported file.
type Compression string

// The compressions. Snappy is Parquet's alone.
const (
	CompressZstd   Compression = "zstd"
	CompressSnappy Compression = "snappy"
	CompressNone   Compression = "none"
)

// ExportOptions tunes Export. The zero value is the default.
type ExportOptions struct {
	Format      files.Format // FormatParquet, FormatArrow or FormatArrowStream; "" = by the name
	Compression Compression  // "" = zstd
	RowsPerFile int64        // of a folder of files; 0 = all rows in one file
	Folder      bool         // the path is a folder of part-00000.parquet, part-00001.parquet, ...
	Force       bool         // what is there is replaced
	Alloc       memory.Allocator
	Progress    func(rows int64) // nil = nobody
}

// Exported is what an export wrote.
type Exported struct {
	Files  []string // paths in the store
	Rows   int64
	Bytes  int64
	Format files.Format
}

func (o ExportOptions) withDefaults(to string) (ExportOptions, error) {
	if o.Format == files.FormatUnknown && !o.Folder {
		if o.Format = files.FormatOfName(to); o.Format == files.FormatUnknown {
			return o, errs.New(errs.ErrInvalid, "%s: the name does not tell the format: .parquet, .arrow and .arrows do, or --format", path.Base(to))
		}
	}
	if o.Format == files.FormatUnknown {
		o.Format = files.FormatParquet
	}
	if o.Compression == "" {
		o.Compression = CompressZstd
	}
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	switch o.Format {
	case files.FormatParquet, files.FormatArrow, files.FormatArrowStream:
	default:
		return o, errs.New(errs.ErrUnsupported, "export to %s: parquet, arrow and arrows are possible; lakesql query --format csv or json prints rows", o.Format)
	}
	switch o.Compression {
	case CompressZstd, CompressNone:
	case CompressSnappy:
		if o.Format != files.FormatParquet {
			return o, errs.New(errs.ErrInvalid, "snappy is a compression of Parquet: Arrow has zstd")
		}
	default:
		return o, errs.New(errs.ErrInvalid, "compression %q; zstd, snappy and none are possible", o.Compression)
	}
	if o.RowsPerFile < 0 || o.RowsPerFile > 0 && !o.Folder {
		return o, errs.New(errs.ErrInvalid, "%d rows a file: files of a folder have them", o.RowsPerFile)
	}
	return o, nil
}

// Export writes rows to a file, or to files of a folder. Nothing has its name before it is whole (I3): in a folder of this machine all files appear together, in an
// object store one after the other, and after an error none is left. Errors: ErrExists for what is there and is not to be replaced, ErrUnsupported for types that
// the format lacks, ErrDiskFull, ErrIO, and those of the rows.
func Export(ctx context.Context, rows Rows, store object.Store, to string, opts ExportOptions) (Exported, error) {
	opts, err := opts.withDefaults(to)
	if err != nil {
		return Exported{}, err
	}
	e := &exporter{store: store, opts: opts, done: Exported{Format: opts.Format}}
	if opts.Folder {
		err = e.folder(ctx, rows, to)
	} else {
		err = e.file(ctx, rows, to)
	}
	return e.done, err
}

// exporter is one export.
type exporter struct {
	store object.Store
	opts  ExportOptions
	done  Exported
}

func (e *exporter) file(ctx context.Context, rows Rows, to string) error {
	there, err := e.store.Stat(ctx, to)
	switch {
	case err == nil && there.IsDir:
		return errs.New(errs.ErrExists, "%s is a folder: end it with / to write files into it", to)
	case err == nil && !e.opts.Force:
		return errs.New(errs.ErrExists, "%s exists: --force replaces it", to)
	case err != nil && !errors.Is(err, errs.ErrNotFound):
		return err
	}
	f := e.feed(ctx, rows)
	defer f.close()
	_, err = e.write(ctx, f, to, 0)
	return err
}

// folder writes part files. A local folder gets its name when it is whole.
func (e *exporter) folder(ctx context.Context, rows Rows, to string) error {
	there, err := e.store.List(ctx, to)
	if err != nil {
		return err
	}
	if len(there) > 0 && !e.opts.Force {
		return errs.New(errs.ErrExists, "%s has files: --force replaces the folder", to)
	}
	f := e.feed(ctx, rows)
	defer f.close()
	folders, isLocal := e.store.(object.Folders)
	if !isLocal {
		return e.parts(ctx, f, to, there)
	}
	hidden := object.Join(trimDir(path.Dir(to)), object.TempPrefix+uuid.NewString())
	err = e.parts(ctx, f, hidden, nil)
	if err == nil {
		err = swap(ctx, folders, hidden, to, len(there) > 0)
	}
	if err != nil {
		return errors.Join(err, folders.RemoveFolder(context.WithoutCancel(ctx), hidden))
	}
	for i, name := range e.done.Files {
		e.done.Files[i] = object.Join(to, path.Base(name))
	}
	return nil
}

func trimDir(dir string) string {
	if dir == "." {
		return ""
	}
	return dir
}

// swap gives a folder its name. What has it goes first, and comes back where that fails.
func swap(ctx context.Context, folders object.Folders, from, to string, isTaken bool) error {
	ctx = context.WithoutCancel(ctx)
	if !isTaken {
		if left, ok := folders.(object.Leftovers); ok {
			if err := left.RemoveEmptyFolder(ctx, to); err != nil {
				return err
			}
		}
		return folders.RenameFolder(ctx, from, to)
	}
	old := from + "-old"
	if err := folders.RenameFolder(ctx, to, old); err != nil {
		return err
	}
	if err := folders.RenameFolder(ctx, from, to); err != nil {
		return errors.Join(err, folders.RenameFolder(ctx, old, to))
	}
	return folders.RemoveFolder(ctx, old)
}

// parts writes files of at most RowsPerFile rows, at least one, and then deletes those of an earlier export.
func (e *exporter) parts(ctx context.Context, f *rowFeed, dir string, there []object.Entry) (err error) {
	defer func() {
		if err != nil {
			for _, name := range e.done.Files {
				err = errors.Join(err, e.store.Delete(context.WithoutCancel(ctx), name))
			}
			e.done.Files = nil
		}
	}()
	written := make(map[string]bool)
	for i := 0; ; i++ {
		name := fmt.Sprintf("part-%05d.%s", i, e.opts.Format)
		written[name] = true
		more, err := e.write(ctx, f, object.Join(dir, name), e.opts.RowsPerFile)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	for _, old := range there {
		if strings.HasPrefix(old.Name, "part-") && !old.IsDir && !written[old.Name] {
			if err := e.store.Delete(ctx, object.Join(dir, old.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// write makes one file of at most limit rows, 0 = all, and says whether there are more.
func (e *exporter) write(ctx context.Context, f *rowFeed, name string, limit int64) (more bool, err error) {
	out, err := e.store.Create(ctx, name)
	if err != nil {
		return false, err
	}
	err = spawn.Guard(func() error { // the libraries panic on what they cannot write
		buffered := bufio.NewWriterSize(out, 1<<20)
		w, err := e.newWriter(buffered, f.schema)
		if err != nil {
			return err
		}
		more, err = e.copy(ctx, f, w, limit)
		if err != nil {
			return err
		}
		return errors.Join(w.close(), buffered.Flush())
	})
	if err != nil {
		return false, errors.Join(fmt.Errorf("%s: %w", name, err), out.Abort())
	}
	size := out.OffsetBytes()
	if err := out.Close(); err != nil {
		return false, err
	}
	e.done.Files, e.done.Bytes = append(e.done.Files, name), e.done.Bytes+size
	return more, nil
}

func (e *exporter) copy(ctx context.Context, f *rowFeed, w fileWriter, limit int64) (more bool, err error) {
	for left := limit; ; {
		if limit > 0 && left == 0 {
			return f.hasMore(ctx)
		}
		b, err := f.take(ctx, left)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		n := b.NumRows()
		err = w.write(ctx, b)
		b.Release()
		if err != nil {
			return false, err
		}
		left -= n
		e.done.Rows += n
		if e.opts.Progress != nil {
			e.opts.Progress(e.done.Rows)
		}
	}
}

// rowFeed reads rows ahead while others are written. It is used by one goroutine.
type rowFeed struct {
	schema *arrow.Schema
	out    chan arrow.RecordBatch
	group  *spawn.Group
	cancel context.CancelFunc
	now    arrow.RecordBatch // nil = none
	at     int64             // rows of now that were taken
}

func (e *exporter) feed(ctx context.Context, rows Rows) *rowFeed {
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := spawn.WithContext(ctx, 0)
	f := &rowFeed{schema: rows.Schema(), out: make(chan arrow.RecordBatch, 2), group: group, cancel: cancel}
	group.Go("read rows", func() error {
		defer close(f.out)
		for {
			b, err := rows.Next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			select {
			case f.out <- b:
			case <-ctx.Done():
				b.Release()
				return ctx.Err()
			}
		}
	})
	return f
}

// fill makes sure that now has rows; io.EOF at the end.
func (f *rowFeed) fill() error {
	for f.now == nil || f.at == f.now.NumRows() {
		f.drop()
		b, ok := <-f.out
		if !ok {
			if err := f.group.Wait(); err != nil {
				return err
			}
			return io.EOF
		}
		f.now = b
	}
	return nil
}

func (f *rowFeed) drop() {
	if f.now != nil {
		f.now.Release()
	}
	f.now, f.at = nil, 0
}

// take returns rows, at most limit, 0 = any number; the caller releases them.
func (f *rowFeed) take(ctx context.Context, limit int64) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.fill(); err != nil {
		return nil, err
	}
	n := f.now.NumRows() - f.at
	if limit > 0 {
		n = min(n, limit)
	}
	out := f.now.NewSlice(f.at, f.at+n)
	f.at += n
	return out, nil
}

func (f *rowFeed) hasMore(ctx context.Context) (bool, error) {
	err := errors.Join(ctx.Err(), f.fill())
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// close ends the goroutine.
func (f *rowFeed) close() {
	f.cancel()
	for b := range f.out {
		b.Release()
	}
	f.drop()
	_ = f.group.Wait() // it was stopped, or its error was returned
}
