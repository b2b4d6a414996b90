package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
)

// Distinct removes duplicate rows; NULLs are equal to each other.
type Distinct struct {
	Input  Plan
	groups *HashAggregate
}

var (
	_ Parallel  = (*Distinct)(nil)
	_ Traceable = (*Distinct)(nil)
)

// NewDistinct makes a Distinct. ErrUnsupported for columns that cannot be grouped.
func NewDistinct(input Plan) (*Distinct, error) {
	schema := input.Schema()
	keys := make([]expr.Expr, schema.NumFields())
	names := make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		keys[i], names[i] = &expr.Column{ID: i, Name: f.Name, T: f.Type}, f.Name
	}
	g, err := NewHashAggregate(input, keys, names, nil)
	if err != nil {
		return nil, err
	}
	return &Distinct{Input: input, groups: g}, nil
}

// Schema implements Plan.
func (p *Distinct) Schema() *arrow.Schema { return p.groups.Schema() }

// Children implements Plan.
func (p *Distinct) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *Distinct) Describe() Description { return Description{Name: "Distinct"} }

// TraceColumn implements Traceable.
func (p *Distinct) TraceColumn(i int) (Plan, int) { return p.Input, i }

// Open implements Plan.
func (p *Distinct) Open(ctx context.Context, env *Env) (Operator, error) {
	if p.Schema().NumFields() == 0 { // all rows are equal; an aggregate without keys would make one of none
		return openOne(ctx, env, p.Input, (&Limit{Count: 1}).wrapper())
	}
	return p.groups.Open(ctx, env)
}

// OpenWorkers implements Parallel.
func (p *Distinct) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	if p.Schema().NumFields() == 0 {
		op, err := p.Open(ctx, env)
		if err != nil {
			return nil, err
		}
		return []Operator{op}, nil
	}
	return p.groups.OpenWorkers(ctx, env, n)
}
