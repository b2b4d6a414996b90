package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/object"
)

// Table is a set of Parquet files of one schema.
type Table struct {
	ref    exec.TableRef
	schema *arrow.Schema
	files  []dataFile
	rows   int64
}

type dataFile struct {
	path   string
	reader *file.Reader
}

var _ exec.Table = (*Table)(nil)

func openTable(ctx context.Context, c *Catalog, name string, paths []string) (*Table, error) {
	t := &Table{ref: exec.TableRef{Source: c.name, Table: name}}
	for _, path := range paths {
		f, err := c.store.Open(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.ref, err)
		}
		var r *file.Reader
		var schema *arrow.Schema
		// The library panics on some malformed footers, so it runs under the guard.
		err = spawn.Guard(func() error {
			var err error
			if r, err = file.NewParquetReader(&fileSource{ctx: ctx, file: f}); err != nil {
				return err
			}
			fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
			if err != nil {
				return err
			}
			schema, err = fr.Schema()
			return err
		})
		if err != nil {
			return nil, &errs.CorruptError{Path: path, Section: "parquet footer", Offset: -1, Err: err}
		}
		if t.schema == nil {
			t.schema = schema
		} else if !sameFields(t.schema, schema) {
			return nil, errs.New(errs.ErrInvalid, "table %s: file %s has other columns than %s", t.ref, path, paths[0])
		}
		t.files = append(t.files, dataFile{path: path, reader: r})
		t.rows += r.NumRows()
	}
	return t, nil
}

func sameFields(a, b *arrow.Schema) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i, f := range a.Fields() {
		if g := b.Field(i); f.Name != g.Name || !arrow.TypeEqual(f.Type, g.Type) {
			return false
		}
	}
	return true
}

// Ref implements exec.Table.
func (t *Table) Ref() exec.TableRef { return t.ref }

// Schema implements exec.Table.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// Rows implements exec.Table.
func (t *Table) Rows() int64 { return t.rows }

// ColumnBytes implements exec.Table: the compressed size of the column's chunks.
func (t *Table) ColumnBytes(_ context.Context, column string) int64 {
	sum := int64(0)
	for _, f := range t.files {
		for _, leaf := range leavesOf(f.reader, column) {
			for g := range f.reader.NumRowGroups() {
				chunk, err := f.reader.MetaData().RowGroup(g).ColumnChunk(leaf)
				if err != nil {
					return -1
				}
				sum += chunk.TotalCompressedSize()
			}
		}
	}
	return sum
}

// leavesOf returns the physical columns below a top-level field.
func leavesOf(r *file.Reader, column string) []int {
	var out []int
	s := r.MetaData().Schema
	for i := range s.NumColumns() {
		if s.ColumnRoot(i).Name() == column {
			out = append(out, i)
		}
	}
	return out
}

// Scan implements exec.Table.
func (t *Table) Scan(_ context.Context, req exec.ScanRequest) (exec.TableScan, error) {
	if req.Among != nil || req.RowAddr || req.Fragments != nil {
		return nil, errs.New(errs.ErrInternal, "table %s has no row addresses", t.ref)
	}
	fields := make([]arrow.Field, len(req.Columns))
	for i, c := range req.Columns {
		at := t.schema.FieldIndices(c)
		if len(at) != 1 {
			return nil, errs.New(errs.ErrNotFound, "column %s of %s", c, t.ref)
		}
		fields[i] = t.schema.Field(at[0])
	}
	s := &scan{table: t, req: req, schema: arrow.NewSchema(fields, nil)}
	for i, f := range t.files {
		for g := range f.reader.NumRowGroups() {
			s.groups = append(s.groups, rowGroup{file: i, group: g, rows: f.reader.MetaData().RowGroup(g).NumRows()})
		}
	}
	return s, nil
}

type rowGroup struct {
	file, group int
	rows        int64
}

// scan hands out row groups to its readers.
type scan struct {
	table  *Table
	req    exec.ScanRequest
	schema *arrow.Schema
	groups []rowGroup
	next   atomic.Int64
}

// Reader implements exec.TableScan.
func (s *scan) Reader() exec.BatchReader { return &reader{scan: s} }

// reader yields the batches of one row group after another. It is used by one goroutine.
type reader struct {
	scan  *scan
	batch pqarrow.RecordReader
	file  int   // of batch
	rows  int64 // of a scan without columns: rows still to be counted out
}

// Next implements exec.BatchReader.
func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if n := min(r.rows, int64(r.batchRows())); n > 0 {
			r.rows -= n
			return array.NewRecordBatch(r.scan.schema, nil, n), nil
		}
		if r.batch != nil {
			b, err := r.pull()
			if err != nil || b != nil {
				return b, err
			}
		}
		i := int(r.scan.next.Add(1)) - 1
		if i >= len(r.scan.groups) {
			return nil, io.EOF
		}
		g := r.scan.groups[i]
		if len(r.scan.req.Columns) == 0 {
			r.rows = g.rows
			continue
		}
		if err := r.open(ctx, g); err != nil {
			return nil, err
		}
	}
}

// Close implements exec.BatchReader.
func (r *reader) Close() error {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
	return nil
}

func (r *reader) batchRows() int {
	if r.scan.req.BatchRows > 0 {
		return r.scan.req.BatchRows
	}
	return exec.DefaultBatchRows
}

func (r *reader) open(ctx context.Context, g rowGroup) error {
	f := r.scan.table.files[g.file]
	r.file = g.file
	alloc := r.scan.req.Alloc
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	return r.guard(g.file, func() error {
		fr, err := pqarrow.NewFileReader(f.reader, pqarrow.ArrowReadProperties{BatchSize: int64(r.batchRows())}, alloc)
		if err != nil {
			return err
		}
		var leaves []int
		for _, c := range r.scan.req.Columns {
			leaves = append(leaves, leavesOf(f.reader, c)...)
		}
		r.batch, err = fr.GetRecordReader(ctx, leaves, []int{g.group})
		return err
	})
}

// pull returns the next batch with its columns in the asked order; nil at the end of the row group.
func (r *reader) pull() (arrow.RecordBatch, error) {
	var out arrow.RecordBatch
	err := r.guard(r.file, func() error {
		b, err := r.batch.Read()
		if err == io.EOF { //nolint:errorlint // the library returns the bare value
			r.batch.Release()
			r.batch = nil
			return nil
		}
		if err != nil {
			return err
		}
		cols := make([]arrow.Array, r.scan.schema.NumFields())
		for i, f := range r.scan.schema.Fields() {
			at := b.Schema().FieldIndices(f.Name)
			if len(at) == 0 {
				return errs.New(errs.ErrInternal, "column %s was not read", f.Name)
			}
			cols[i] = b.Column(at[0])
		}
		out = array.NewRecordBatch(r.scan.schema, cols, b.NumRows())
		return nil
	})
	return out, err
}

func (r *reader) guard(fileIndex int, f func() error) error {
	err := spawn.Guard(f)
	if err == nil {
		return nil
	}
	for _, kind := range []error{errs.ErrIO, errs.ErrMemoryLimit, errs.ErrNotFound, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return fmt.Errorf("table %s: %w", r.scan.table.ref, err)
		}
	}
	return fmt.Errorf("table %s: %w", r.scan.table.ref, &errs.CorruptError{Path: r.scan.table.files[fileIndex].path, Section: "row group", Offset: -1, Err: err})
}

// fileSource adapts an object to what the library reads from. The context is the one of opening: later reads of mapped files need none.
type fileSource struct {
	ctx  context.Context //nolint:containedctx // io.ReaderAt has no place for one
	file object.File
	pos  int64
}

// ReadAt implements io.ReaderAt.
func (f *fileSource) ReadAt(p []byte, off int64) (int, error) {
	return object.ReadAt(context.WithoutCancel(f.ctx), f.file, p, off)
}

// Seek implements io.Seeker.
func (f *fileSource) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		f.pos = offset
	case io.SeekCurrent:
		f.pos += offset
	case io.SeekEnd:
		f.pos = f.file.SizeBytes() + offset
	}
	return f.pos, nil
}
