package exec

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// Values is a constant relation. Rows hold expressions without columns; a relation without columns has rows all the same.
type Values struct {
	Out  *arrow.Schema
	Rows [][]expr.Expr
}

var _ Plan = (*Values)(nil)

// NewValues checks the rows against the schema. A NULL literal of type null fits every column.
func NewValues(schema *arrow.Schema, rows [][]expr.Expr) (*Values, error) {
	none := arrow.NewSchema(nil, nil)
	for i, row := range rows {
		if len(row) != schema.NumFields() {
			return nil, errs.New(errs.ErrInternal, "values: row %d has %d of %d columns", i, len(row), schema.NumFields())
		}
		for j, e := range row {
			if err := checkExpr("values", e, none); err != nil {
				return nil, err
			}
			if t := e.Type(); t.ID() != arrow.NULL && !arrow.TypeEqual(t, schema.Field(j).Type) {
				return nil, errs.New(errs.ErrInternal, "values: row %d column %d is %s, not %s", i, j, t, schema.Field(j).Type)
			}
		}
	}
	return &Values{Out: schema, Rows: rows}, nil
}

// Schema implements Plan.
func (p *Values) Schema() *arrow.Schema { return p.Out }

// Children implements Plan.
func (p *Values) Children() []Plan { return nil }

// Describe implements Plan.
func (p *Values) Describe() Description {
	return Description{Name: "Values", Props: []Prop{{"rows", fmt.Sprint(len(p.Rows))}}}
}

// Open implements Plan.
func (p *Values) Open(_ context.Context, env *Env) (Operator, error) {
	return &values{plan: p, env: env}, nil
}

type values struct {
	plan *Values
	env  *Env
	at   int
}

func (v *values) Schema() *arrow.Schema { return v.plan.Out }

func (v *values) Next(context.Context) (arrow.RecordBatch, error) {
	n := min(len(v.plan.Rows)-v.at, v.env.BatchRows)
	if n == 0 {
		return nil, io.EOF
	}
	rows := v.plan.Rows[v.at : v.at+n]
	v.at += n
	cols := make([]arrow.Array, 0, v.plan.Out.NumFields())
	for j := range v.plan.Out.NumFields() {
		c, err := v.column(rows, j)
		if err != nil {
			releaseArrays(cols)
			return nil, err
		}
		cols = append(cols, c)
	}
	return newBatch(v.plan.Out, cols, n), nil
}

func (v *values) column(rows [][]expr.Expr, j int) (arrow.Array, error) {
	one := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)
	defer one.Release()
	parts := make([]arrow.Array, 0, len(rows))
	defer func() { releaseArrays(parts) }()
	t := v.plan.Out.Field(j).Type
	for _, row := range rows {
		if row[j].Type().ID() == arrow.NULL {
			parts = append(parts, array.MakeArrayOfNull(v.env.Alloc, t, 1))
			continue
		}
		run, err := expr.Compile(row[j], one.Schema())
		if err != nil {
			return nil, err
		}
		a, err := run.Eval(&v.env.Expr, one)
		if err != nil {
			return nil, err
		}
		parts = append(parts, a)
	}
	return concatArrays(v.env.Alloc, t, parts)
}

func (v *values) Close() error { return nil }
