package transfer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/schema"
)

// StoredRows are the rows of a version as they are stored, JSON as text. Close ends them and must be called.
type StoredRows struct {
	schema *arrow.Schema
	reader *storage.ScanReader
	json   map[int]*schema.Field // columns that are JSON or have it below
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
	json := make(map[int]*schema.Field)
	for i, name := range columns {
		at := all.FieldIndices(name)
		if len(at) != 1 {
			return nil, errs.New(errs.ErrUnknownColumn, "the table has no column %q", name)
		}
		fields[i] = all.Field(at[0])
		if f := snap.Schema().Fields[at[0]]; f.HasJSON() {
			json[i] = plainJSON(f)
			fields[i] = json[i].WithJSON(arrow.BinaryTypes.String)
		}
	}
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: columns})
	if err != nil {
		return nil, err
	}
	md := all.Metadata()
	return &StoredRows{schema: arrow.NewSchema(fields, &md), reader: scan.Reader(), json: json}, nil
}

// plainJSON is a field whose JSON does not say that it is of an extension type: as text it is none.
func plainJSON(f *schema.Field) *schema.Field {
	out := *f
	if f.Logical == schema.JSONLogical {
		out.Metadata = maps.Clone(f.Metadata)
		maps.DeleteFunc(out.Metadata, func(key, _ string) bool { return strings.HasPrefix(key, "ARROW:extension:") })
	}
	out.Children = make([]*schema.Field, len(f.Children))
	for i, c := range f.Children {
		out.Children[i] = plainJSON(c)
	}
	return &out
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
	cols := slices.Clone(b.Columns())
	for i, f := range r.json {
		text, err := f.MapJSON(cols[i], arrow.BinaryTypes.String, func(arr arrow.Array) (arrow.Array, error) { return encoding.JSONTexts(arr, memory.DefaultAllocator) })
		if err != nil {
			return nil, err
		}
		defer text.Release()
		cols[i] = text
	}
	return array.NewRecordBatch(r.schema, cols, b.NumRows()), nil
}

// Close ends the reading.
func (r *StoredRows) Close() error { return r.reader.Close() }

// Named gives the columns of a batch the names and metadata of a schema of the same types. The caller releases it and the batch.
func Named(b arrow.RecordBatch, s *arrow.Schema) arrow.RecordBatch {
	return array.NewRecordBatch(s, b.Columns(), b.NumRows())
}
