package provider

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// Table is one pinned version of a table.
type Table struct {
	database string
	table    exec.Table
	schema   sql.Schema
	caps     Caps
	columns  []string // projection; nil = all
}

var (
	_ sql.ProjectedTable   = (*Table)(nil)
	_ sql.StatisticsTable  = (*Table)(nil)
	_ sql.IndexAddressable = (*Table)(nil)
	_ sql.CommentedTable   = (*Table)(nil)
)

// NewTable shows t as a table of the database.
func NewTable(database string, t exec.Table, caps Caps) *Table {
	return &Table{database: database, table: t, schema: Columns(database, t.Ref().Table, t.Schema()), caps: caps}
}

type keysContext struct{}

// WithKeys makes tables say that they have a key: go-mysql-server binds no UPDATE over a join otherwise. Rows have addresses, so none is needed.
func WithKeys(ctx context.Context) context.Context {
	return context.WithValue(ctx, keysContext{}, true)
}

// withKey gives the table a key where WithKeys asks for it.
func (t *Table) withKey(ctx context.Context) *Table {
	if ctx.Value(keysContext{}) != nil && len(t.schema) > 0 && sql.IsKeyless(t.schema) {
		t.schema[0].PrimaryKey = true
	}
	return t
}

// Exec returns the table itself.
func (t *Table) Exec() exec.Table { return t.table }

// Name implements sql.Nameable.
func (t *Table) Name() string { return t.table.Ref().Table }

// String implements fmt.Stringer.
func (t *Table) String() string { return t.table.Ref().String() }

// Collation implements sql.Table.
func (t *Table) Collation() sql.CollationID { return Collation }

// Comment implements sql.CommentedTable.
func (t *Table) Comment() string { return "" }

// Schema implements sql.Table.
func (t *Table) Schema() sql.Schema {
	if t.columns == nil {
		return t.schema
	}
	out := make(sql.Schema, 0, len(t.columns))
	for _, name := range t.columns {
		if i := t.schema.IndexOfColName(strings.ToLower(name)); i >= 0 {
			out = append(out, t.schema[i])
		}
	}
	return out
}

// WithProjections implements sql.ProjectedTable.
func (t *Table) WithProjections(names []string) sql.Table {
	out := *t
	out.columns = make([]string, 0, len(names))
	for _, n := range names {
		if i := t.schema.IndexOfColName(strings.ToLower(n)); i >= 0 {
			out.columns = append(out.columns, t.schema[i].Name)
		}
	}
	return &out
}

// Projections implements sql.ProjectedTable.
func (t *Table) Projections() []string { return t.columns }

// DataLength implements sql.StatisticsTable.
func (t *Table) DataLength(ctx *sql.Context) (uint64, error) {
	var total uint64
	for _, f := range t.table.Schema().Fields() {
		if n := t.table.ColumnBytes(ctx, f.Name); n > 0 {
			total += uint64(n)
		}
	}
	return total, nil
}

// RowCount implements sql.StatisticsTable.
func (t *Table) RowCount(*sql.Context) (uint64, bool, error) {
	if n := t.table.Rows(); n >= 0 {
		return uint64(n), true, nil
	}
	return 0, false, nil
}

// partition is the only one: our own plans scan in parallel, the row engine does not.
type partition struct{}

// Key implements sql.Partition.
func (partition) Key() []byte { return []byte{0} }

// Partitions implements sql.Table.
func (t *Table) Partitions(*sql.Context) (sql.PartitionIter, error) {
	return sql.PartitionsToPartitionIter(partition{}), nil
}

// PartitionRows implements sql.Table: the row engine's scan, which ends with an error beyond the cap.
func (t *Table) PartitionRows(ctx *sql.Context, _ sql.Partition) (sql.RowIter, error) {
	names := t.columns
	if names == nil {
		names = make([]string, len(t.schema))
		for i, c := range t.schema {
			names[i] = c.Name
		}
	}
	scan, err := t.table.Scan(ctx, exec.ScanRequest{Columns: names, BatchRows: exec.DefaultBatchRows})
	if err != nil {
		return nil, err
	}
	return &rowIter{table: t, reader: scan.Reader()}, nil
}

type rowIter struct {
	table  *Table
	reader exec.BatchReader
	rows   *RowReader
	buffer []sql.Row
	count  int64
}

// Next implements sql.RowIter.
func (it *rowIter) Next(ctx *sql.Context) (sql.Row, error) {
	for len(it.buffer) == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := it.fill(ctx); err != nil {
			return nil, err
		}
	}
	row := it.buffer[0]
	it.buffer = it.buffer[1:]
	return row, nil
}

func (it *rowIter) fill(ctx *sql.Context) error {
	batch, err := it.reader.Next(ctx)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return err
	}
	defer batch.Release()
	if it.count += batch.NumRows(); it.count > it.table.caps.RowsMax {
		return errs.New(errs.ErrMemoryLimit, "table %s: this statement runs row by row, and such scans stop at %d rows; rewrite it or add a LIMIT", it.table, it.table.caps.RowsMax)
	}
	if it.rows == nil {
		if it.rows, err = NewRowReader(batch.Schema(), expr.Env{Location: StatementOf(ctx).Location()}); err != nil {
			return err
		}
	}
	it.buffer, err = it.rows.Rows(batch)
	return err
}

// Close implements sql.RowIter.
func (it *rowIter) Close(*sql.Context) error { return nil }

// IndexedAccess implements sql.IndexAddressable: the row engine never uses our indices.
func (t *Table) IndexedAccess(*sql.Context, sql.IndexLookup) sql.IndexedTable { return nil }

// PreciseMatch implements sql.IndexAddressable.
func (t *Table) PreciseMatch() bool { return false }

// reuseKind is an entry among a table's indices that is none, but a list of compactions.
const reuseKind = "FRAGMENTREUSE"

// GetIndexes implements sql.IndexAddressable: what SHOW INDEX lists.
func (t *Table) GetIndexes(*sql.Context) ([]sql.Index, error) {
	indexed, ok := t.table.(exec.Indexed)
	if !ok {
		return nil, nil
	}
	var out []sql.Index
	for _, info := range indexed.Indexes() {
		if string(info.Kind) != reuseKind {
			out = append(out, &Index{info: info, table: t})
		}
	}
	return out, nil
}
