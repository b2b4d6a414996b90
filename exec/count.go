package exec

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
)

// CountRows is SELECT count(*) of one table: the number of its live rows, or of its candidates, without reading a column.
type CountRows struct {
	Table      TableRef
	Candidates CandidatePlan // nil = all rows
	Names      []string      // one count per name
	out        *arrow.Schema
}

var _ Plan = (*CountRows)(nil)

// NewCountRows computes the schema: int64 columns of the given names.
func NewCountRows(table TableRef, candidates CandidatePlan, names []string) (*CountRows, error) {
	if len(names) == 0 {
		return nil, errs.New(errs.ErrInternal, "count of %s without an output column", table)
	}
	fields := make([]arrow.Field, len(names))
	for i, n := range names {
		fields[i] = arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Int64}
	}
	return &CountRows{Table: table, Candidates: candidates, Names: names, out: arrow.NewSchema(fields, nil)}, nil
}

// Schema implements Plan.
func (p *CountRows) Schema() *arrow.Schema { return p.out }

// Children implements Plan.
func (p *CountRows) Children() []Plan { return nil }

// Describe implements Plan.
func (p *CountRows) Describe() Description {
	return Description{Name: "CountRows", Props: []Prop{{"table", p.Table.String()}}}
}

// CandidateInput implements WithCandidates.
func (p *CountRows) CandidateInput() CandidatePlan { return p.Candidates }

// Open implements Plan.
func (p *CountRows) Open(_ context.Context, env *Env) (Operator, error) {
	return &countRows{plan: p, env: env}, nil
}

type countRows struct {
	plan *CountRows
	env  *Env
	done bool
}

func (o *countRows) Schema() *arrow.Schema { return o.plan.out }

func (o *countRows) Close() error { return nil }

func (o *countRows) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if o.done {
		return nil, io.EOF
	}
	o.done = true
	n, err := o.count(ctx)
	if err != nil {
		return nil, err
	}
	b := array.NewInt64Builder(o.env.Alloc)
	defer b.Release()
	b.Append(n)
	col := b.NewArray()
	defer col.Release()
	cols := make([]arrow.Array, len(o.plan.Names))
	for i := range cols {
		cols[i] = col
	}
	return array.NewRecordBatch(o.plan.out, cols, 1), nil
}

func (o *countRows) count(ctx context.Context) (int64, error) {
	if o.plan.Candidates != nil {
		return CountCandidates(ctx, o.env, o.plan.Candidates)
	}
	table, err := o.env.Tables.OpenTable(ctx, o.plan.Table)
	if err != nil {
		return 0, err
	}
	if table.Rows() < 0 {
		return 0, errs.New(errs.ErrInternal, "table %s cannot count its rows", o.plan.Table)
	}
	return table.Rows(), nil
}
