package provider

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
	memtable "github.com/lakesql/lakesql/source/memory"
)

// systemCatalog is the database "lakesql": tables made when they are asked for.
type systemCatalog struct{ provider *Provider }

var _ source.Catalog = (*systemCatalog)(nil)

// Name implements source.Catalog.
func (c *systemCatalog) Name() string { return SystemDatabase }

// systemKind is the kind of the catalog of lakesql's own tables: they tell of now, in a transaction too.
const systemKind = "system"

// Kind implements source.Catalog.
func (c *systemCatalog) Kind() string { return systemKind }

// TableNames implements source.Catalog.
func (c *systemCatalog) TableNames(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(c.tables())), nil
}

// tables makes each table, by its name.
func (c *systemCatalog) tables() map[string]func(context.Context) (arrow.RecordBatch, error) {
	out := map[string]func(context.Context) (arrow.RecordBatch, error){
		"catalogs": func(context.Context) (arrow.RecordBatch, error) { return c.catalogs(), nil },
		"indices":  c.indices,
	}
	for name, rows := range c.provider.systemTables() {
		out[name] = func(context.Context) (arrow.RecordBatch, error) { return rows(), nil }
	}
	return out
}

// Close implements source.Catalog.
func (c *systemCatalog) Close() error { return nil }

// Table implements source.Catalog.
func (c *systemCatalog) Table(ctx context.Context, name string, asOf source.AsOf) (exec.Table, error) {
	if !asOf.IsLatest() {
		return nil, errs.New(errs.ErrUnsupported, "table %s.%s has no versions", SystemDatabase, name)
	}
	rows, ok := c.tables()[name]
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "table %s.%s does not exist", SystemDatabase, name)
	}
	batch, err := rows(ctx)
	if err != nil {
		return nil, err
	}
	return memtable.New(exec.TableRef{Source: SystemDatabase, Table: name}, batch.Schema(), []arrow.RecordBatch{batch}), nil
}

func (c *systemCatalog) catalogs() arrow.RecordBatch {
	s := arrow.NewSchema([]arrow.Field{{Name: "database_name", Type: arrow.BinaryTypes.String}, {Name: "kind", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, cat := range c.provider.Catalogs() {
		b.Field(0).(*array.StringBuilder).Append(cat.Name())
		b.Field(1).(*array.StringBuilder).Append(cat.Kind())
	}
	return b.NewRecordBatch()
}

func indicesSchema() *arrow.Schema {
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	return arrow.NewSchema([]arrow.Field{
		{Name: "database_name", Type: text}, {Name: "table_name", Type: text}, {Name: "index_name", Type: text}, {Name: "column_name", Type: text},
		{Name: "kind", Type: text}, {Name: "metric", Type: text, Nullable: true},
		{Name: "covered_rows", Type: number, Nullable: true}, {Name: "uncovered_rows", Type: number, Nullable: true},
		{Name: "covered_fragments", Type: number}, {Name: "segments", Type: number}, {Name: "bytes", Type: number, Nullable: true},
		{Name: "usable", Type: arrow.FixedWidthTypes.Boolean}, {Name: "reason", Type: text, Nullable: true},
	}, nil)
}

func (c *systemCatalog) indices(ctx context.Context) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, indicesSchema())
	defer b.Release()
	for _, cat := range c.provider.Catalogs() {
		names, err := source.Tables(ctx, cat)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			t, err := StatementOf(ctx).Table(ctx, cat, name, source.AsOf{})
			if errors.Is(err, errs.ErrNotFound) {
				continue // dropped since
			}
			if err != nil {
				return nil, err
			}
			indexed, ok := t.(exec.Indexed)
			if !ok {
				continue
			}
			for _, info := range indexed.Indexes() {
				if err := appendIndex(ctx, b, cat.Name(), indexed, info); err != nil {
					return nil, err
				}
			}
		}
	}
	return b.NewRecordBatch(), nil
}

func appendIndex(ctx context.Context, b *array.RecordBuilder, database string, t exec.Indexed, info exec.IndexInfo) error {
	text := func(i int, s string, null bool) {
		if f := b.Field(i).(*array.StringBuilder); null {
			f.AppendNull()
		} else {
			f.Append(s)
		}
	}
	number := func(i int, v int64) {
		if f := b.Field(i).(*array.Int64Builder); v < 0 {
			f.AppendNull()
		} else {
			f.Append(v)
		}
	}
	covered, fragments := int64(0), int64(0)
	if info.Covers != nil && !info.Covers.IsEmpty() {
		fragments = int64(info.Covers.GetCardinality())
		live, err := t.LiveRows(ctx, info.Covers.ToArray())
		if err != nil {
			return err
		}
		covered = int64(live.Count())
	}
	size := int64(-1)
	if sizer, ok := t.(exec.IndexSizer); ok {
		var err error
		if size, err = sizer.IndexBytes(ctx, info.Name); err != nil {
			return err
		}
	}
	text(0, database, false)
	text(1, t.Ref().Table, false)
	text(2, info.Name, false)
	text(3, info.Column, false)
	text(4, string(info.Kind), false)
	text(5, string(info.Metric), info.Metric == "")
	number(6, covered)
	number(7, t.Rows()-covered)
	number(8, fragments)
	number(9, int64(info.Segments))
	number(10, size)
	b.Field(11).(*array.BooleanBuilder).Append(info.Usable)
	text(12, info.Reason, info.Reason == "")
	return nil
}
