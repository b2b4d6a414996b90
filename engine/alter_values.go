package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/translate"
	"github.com/lakesql/lakesql/write"
)

// defaultOf plans the default of a new column over the table's columns.
func (a *alteration) defaultOf(def ast.Expr) (*translate.Computed, error) {
	database := a.table.Ref().Source
	query := &ast.Select{
		SelectExprs: ast.SelectExprs{&ast.AliasedExpr{Expr: def, As: ast.NewColIdent("value")}},
		From: ast.TableExprs{&ast.AliasedTableExpr{
			Expr: ast.TableName{DbQualifier: ast.NewTableIdent(database), Name: ast.NewTableIdent(a.table.Ref().Table)},
			Auth: ast.AuthInformation{AuthType: ast.AuthType_IGNORE},
		}},
	}
	node, err := a.bound(a.ctx, query)
	if err != nil {
		return nil, err
	}
	return translate.Compute(a.ctx, a.res.request, node)
}

// compute makes the values of columns that are new or of another type, batch by batch; nil where all of them are NULL.
func (a *alteration) compute() *write.ColumnValues {
	out := &write.ColumnValues{}
	reads := func(name string) {
		if !slices.Contains(out.Reads, name) {
			out.Reads = append(out.Reads, name)
		}
	}
	var made []*alteredColumn
	wanted := false
	for _, c := range a.columns {
		switch {
		case c.isRetyped():
			reads(c.old.Name)
		case c.old != nil:
			continue
		case c.value != nil:
			for _, name := range c.value.Reads {
				reads(name)
			}
		}
		made = append(made, c)
		wanted = wanted || c.isRetyped() || a.table.Rows() > 0 && (c.value != nil || !c.field.Nullable)
	}
	if !wanted {
		return nil
	}
	var mu sync.Mutex // warnings go to the session one at a time
	out.Compute = func(_ context.Context, rows arrow.RecordBatch) ([]arrow.Array, error) {
		rows.Retain() // Shown releases what it is given
		rows, err := a.table.Shown(rows, nil)
		if err != nil {
			return nil, err
		}
		defer rows.Release()
		env := a.env(a.ctx, a.cat, a.table.Ref().Table, false)
		warn := env.Warn
		env.Warn = func(err error) { mu.Lock(); defer mu.Unlock(); warn(err) }
		values := make([]arrow.Array, 0, len(made))
		for _, c := range made {
			col, err := a.values(env, c, rows)
			if err != nil {
				for _, m := range values {
					m.Release()
				}
				return nil, err
			}
			values = append(values, col)
		}
		return values, nil
	}
	return out
}

func (a *alteration) values(env *dml.Env, c *alteredColumn, rows arrow.RecordBatch) (arrow.Array, error) {
	if c.isRetyped() {
		at := rows.Schema().FieldIndices(c.old.Name)
		if len(at) != 1 {
			return nil, errs.New(errs.ErrInternal, "column %q was not read", c.old.Name)
		}
		return dml.Assign(env, rows.Column(at[0]), c.field)
	}
	if c.value == nil {
		b := array.NewBuilder(env.Exec.Alloc, c.field.Type)
		defer b.Release()
		if c.field.Nullable {
			b.AppendNulls(int(rows.NumRows()))
		} else {
			b.AppendEmptyValues(int(rows.NumRows()))
		}
		return b.NewArray(), nil
	}
	raw, err := c.value.Eval(&env.Exec.Expr, rows)
	if err != nil {
		return nil, err
	}
	defer raw.Release()
	return dml.Assign(env, raw, c.field)
}

// fits reads a column whose definition became narrower and refuses it where a value does not fit. Nothing was written yet.
func (a *alteration) fits(c *alteredColumn) error {
	if c.old == nil || c.isRetyped() || coltype.LimitsOf(*c.old) == coltype.LimitsOf(c.field) && (!c.old.Nullable || c.field.Nullable) {
		return nil
	}
	env := a.env(a.ctx, a.cat, a.table.Ref().Table, false)
	return dml.Each(a.ctx, a.res.request.Env, a.table, c.old.Name, func(values arrow.Array) error {
		col, err := dml.Assign(env, values, c.field)
		if err != nil {
			return err
		}
		defer col.Release()
		if !array.Equal(col, values) {
			return errs.New(errs.ErrTruncated, "Data truncated for column '%s'", c.field.Name)
		}
		return nil
	})
}

// metadata returns the field with one key of its metadata set, or taken out where the value is "".
func metadata(f arrow.Field, key, value string) arrow.Field {
	md := f.Metadata.ToMap()
	delete(md, key)
	if value != "" {
		md[key] = value
	}
	f.Metadata = arrow.MetadataFrom(md)
	return f
}
