package lance

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/schema"
)

// This file shows JSON columns, which are stored as JSONB, as text.

// jsonColumns are the top-level fields that are JSON or have it below, by name; nil = none.
func jsonColumns(snap *storage.Snapshot) map[string]*schema.Field {
	var out map[string]*schema.Field
	for _, f := range snap.Schema().Fields {
		if f.HasJSON() {
			if out == nil {
				out = make(map[string]*schema.Field)
			}
			out[f.Name] = f
		}
	}
	return out
}

// shownSchema is the schema with text in place of JSONB.
func shownSchema(snap *storage.Snapshot, columns map[string]*schema.Field) *arrow.Schema {
	stored := snap.ArrowSchema()
	if columns == nil {
		return stored
	}
	fields := stored.Fields()
	for i, f := range fields {
		if j, ok := columns[f.Name]; ok {
			fields[i] = j.WithJSON(arrow.BinaryTypes.String)
		}
	}
	md := stored.Metadata()
	return arrow.NewSchema(fields, &md)
}

// StoredType is the type of a column as the table stores it.
func (t *Table) StoredType(column string) arrow.DataType {
	if f, ok := t.snap.Schema().Lookup(column); ok {
		return f.Type
	}
	return arrow.Null
}

// Shown replaces JSONB in a batch of the table's stored columns by text, and releases the batch. Errors: ErrCorrupt, ErrUnsupported.
func (t *Table) Shown(b arrow.RecordBatch, alloc memory.Allocator) (arrow.RecordBatch, error) {
	if t.json == nil || !slices.ContainsFunc(b.Schema().Fields(), func(f arrow.Field) bool { return t.json[f.Name] != nil }) {
		return b, nil
	}
	defer b.Release()
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	fields, cols := b.Schema().Fields(), slices.Clone(b.Columns())
	for i, f := range fields {
		j, ok := t.json[f.Name]
		if !ok {
			continue
		}
		out, err := j.MapJSON(cols[i], arrow.BinaryTypes.String, func(arr arrow.Array) (arrow.Array, error) { return encoding.JSONTexts(arr, alloc) })
		if err != nil {
			return nil, err
		}
		defer out.Release()
		fields[i], cols[i] = j.WithJSON(arrow.BinaryTypes.String), out
	}
	md := b.Schema().Metadata()
	return array.NewRecordBatch(arrow.NewSchema(fields, &md), cols, b.NumRows()), nil
}

// shownReader reads batches and shows them.
type shownReader struct {
	exec.BatchReader
	table *Table
	alloc memory.Allocator
}

// Next implements exec.BatchReader.
func (r shownReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.BatchReader.Next(ctx)
	if err != nil {
		return nil, err
	}
	return r.table.Shown(b, r.alloc)
}
