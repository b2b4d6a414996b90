package transfer

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
)

// StoredRows are the rows of a version as they are stored. Close ends them and must be called.
type StoredRows struct {
	schema *arrow.Schema
	reader *storage.ScanReader
}

var _ Rows = (*StoredRows)(nil)

// TableRows reads columns of a version, nil = all. Errors: ErrUnknownColumn, ErrCorrupt, ErrIO.
func TableRows(ctx context.Context, snap *storage.Snapshot, columns []string) (*StoredRows, error) {
	all := snap.ArrowSchema()
	if columns == nil {
		for _, f := range all.Fields() {
			columns = append(columns, f.Name)
		}
	}
	fields := make([]arrow.Field, len(columns))
	for i, name := range columns {
		at := all.FieldIndices(name)
		if len(at) != 1 {
			return nil, errs.New(errs.ErrUnknownColumn, "the table has no column %q", name)
		}
		fields[i] = all.Field(at[0])
	}
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: columns})
	if err != nil {
		return nil, err
	}
	md := all.Metadata()
	return &StoredRows{schema: arrow.NewSchema(fields, &md), reader: scan.Reader()}, nil
}

// Schema implements Rows.
func (r *StoredRows) Schema() *arrow.Schema { return r.schema }

// Next implements Rows.
func (r *StoredRows) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.reader.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return Named(b, r.schema), nil
}

// Close ends the reading.
func (r *StoredRows) Close() error { return r.reader.Close() }

// Named gives the columns of a batch the names and metadata of a schema of the same types. The caller releases it and the batch.
func Named(b arrow.RecordBatch, s *arrow.Schema) arrow.RecordBatch {
	return array.NewRecordBatch(s, b.Columns(), b.NumRows())
}
