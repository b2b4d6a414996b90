// Package memory holds tables over Arrow batches in memory: lakesql's own system tables, and tables of tests.
//
// I1: a Table is immutable; the batches belong to it and are never released.
package memory

import (
	"context"
	"io"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
)

// Table is a table of batches.
type Table struct {
	ref     exec.TableRef
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	rows    int64
}

var _ exec.Table = (*Table)(nil)

// New returns a table of batches, which have schema s.
func New(ref exec.TableRef, s *arrow.Schema, batches []arrow.RecordBatch) *Table {
	t := &Table{ref: ref, schema: s, batches: batches}
	for _, b := range batches {
		t.rows += b.NumRows()
	}
	return t
}

// Ref implements exec.Table.
func (t *Table) Ref() exec.TableRef { return t.ref }

// Schema implements exec.Table.
func (t *Table) Schema() *arrow.Schema { return t.schema }

// Batches returns the table's data.
func (t *Table) Batches() []arrow.RecordBatch { return t.batches }

// Rows implements exec.Table.
func (t *Table) Rows() int64 { return t.rows }

// ColumnBytes implements exec.Table.
func (t *Table) ColumnBytes(_ context.Context, column string) int64 {
	var n int64
	for _, i := range t.schema.FieldIndices(column) {
		for _, b := range t.batches {
			n += int64(b.Column(i).Data().SizeInBytes()) //nolint:gosec // a size
		}
	}
	return n
}

// Scan implements exec.Table.
func (t *Table) Scan(_ context.Context, req exec.ScanRequest) (exec.TableScan, error) {
	if req.Among != nil || req.Fragments != nil || req.RowAddr {
		return nil, errs.New(errs.ErrInternal, "table %s has no row addresses", t.ref)
	}
	s := &scan{table: t, batchRows: int64(req.BatchRows)}
	if s.batchRows <= 0 {
		s.batchRows = exec.DefaultBatchRows
	}
	fields := make([]arrow.Field, 0, len(req.Columns))
	for _, name := range req.Columns {
		at := t.schema.FieldIndices(name)
		if len(at) == 0 {
			return nil, errs.New(errs.ErrNotFound, "table %s has no column %q", t.ref, name)
		}
		s.columns = append(s.columns, at[0])
		fields = append(fields, t.schema.Field(at[0]))
	}
	s.schema = arrow.NewSchema(fields, nil)
	for i, b := range t.batches {
		for from := int64(0); from < b.NumRows(); from += s.batchRows {
			s.morsels = append(s.morsels, morsel{i, from, min(from+s.batchRows, b.NumRows())})
		}
	}
	return s, nil
}

type morsel struct {
	batch    int
	from, to int64
}

type scan struct {
	table     *Table
	schema    *arrow.Schema
	columns   []int
	batchRows int64
	morsels   []morsel
	next      atomic.Int64
}

// Reader implements exec.TableScan.
func (s *scan) Reader() exec.BatchReader { return s }

// Next implements exec.BatchReader; it is safe for several readers.
func (s *scan) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i := s.next.Add(1) - 1
	if i >= int64(len(s.morsels)) {
		return nil, io.EOF
	}
	m := s.morsels[i]
	from := s.table.batches[m.batch]
	cols := make([]arrow.Array, len(s.columns))
	for k, c := range s.columns {
		cols[k] = array.NewSlice(from.Column(c), m.from, m.to)
	}
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	return array.NewRecordBatch(s.schema, cols, m.to-m.from), nil
}

// Close implements exec.BatchReader.
func (s *scan) Close() error { return nil }

// Catalog is a set of tables under one name. It is immutable.
type Catalog struct {
	name   string
	tables map[string][]*Table // versions, oldest first
}

var _ source.Catalog = (*Catalog)(nil)

// NewCatalog returns a catalog of tables; several of one name are its versions, oldest first.
func NewCatalog(name string, tables ...*Table) *Catalog {
	c := &Catalog{name: name, tables: make(map[string][]*Table)}
	for _, t := range tables {
		c.tables[t.ref.Table] = append(c.tables[t.ref.Table], t)
	}
	return c
}

// Name implements source.Catalog.
func (c *Catalog) Name() string { return c.name }

// Kind implements source.Catalog.
func (c *Catalog) Kind() string { return "memory" }

// Close implements source.Catalog.
func (c *Catalog) Close() error { return nil }

// TableNames implements source.Catalog.
func (c *Catalog) TableNames(context.Context) ([]string, error) {
	names := make([]string, 0, len(c.tables))
	for n := range c.tables {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, nil
}

// Table implements source.Catalog.
func (c *Catalog) Table(_ context.Context, name string, asOf source.AsOf) (exec.Table, error) {
	versions, ok := c.tables[name]
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "table %s.%s does not exist", c.name, name)
	}
	switch {
	case asOf.IsLatest():
		return versions[len(versions)-1], nil
	case asOf.Version == 0:
		return nil, errs.New(errs.ErrUnsupported, "table %s.%s has neither tags nor times", c.name, name)
	case asOf.Version > uint64(len(versions)):
		return nil, errs.New(errs.ErrNotFound, "table %s.%s has no version %d", c.name, name, asOf.Version)
	}
	return versions[asOf.Version-1], nil
}
