package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// Project computes columns. A plain column reference passes the input's array on.
type Project struct {
	Input Plan
	Names []string
	Exprs []expr.Expr
	out   *arrow.Schema
}

var (
	_ Parallel  = (*Project)(nil)
	_ Traceable = (*Project)(nil)
)

// NewProject checks the expressions against the input and computes the schema.
func NewProject(input Plan, names []string, exprs []expr.Expr) (*Project, error) {
	if len(names) != len(exprs) {
		return nil, errs.New(errs.ErrInternal, "project: %d names for %d expressions", len(names), len(exprs))
	}
	fields := make([]arrow.Field, len(exprs))
	for i, e := range exprs {
		if err := checkExpr("project", e, input.Schema()); err != nil {
			return nil, err
		}
		fields[i] = fieldOf(names[i], e, input.Schema())
	}
	input, narrowed, err := narrowInput(input, exprs)
	if err != nil {
		return nil, err
	}
	return &Project{Input: input, Names: names, Exprs: narrowed[0], out: arrow.NewSchema(fields, nil)}, nil
}

// Schema implements Plan.
func (p *Project) Schema() *arrow.Schema { return p.out }

// Children implements Plan.
func (p *Project) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *Project) Describe() Description {
	return Description{Name: "Project", Props: []Prop{{"columns", namedText(p.Names, p.Exprs)}}}
}

// TraceColumn implements Traceable.
func (p *Project) TraceColumn(i int) (Plan, int) {
	if c, ok := p.Exprs[i].(*expr.Column); ok {
		return p.Input, c.ID
	}
	return nil, 0
}

// Open implements Plan.
func (p *Project) Open(ctx context.Context, env *Env) (Operator, error) {
	return openOne(ctx, env.withUnseen(p.Input, p.Exprs), p.Input, p.wrap)
}

// OpenWorkers implements Parallel.
func (p *Project) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	return openEach(ctx, env.withUnseen(p.Input, p.Exprs), p.Input, n, p.wrap)
}

func (p *Project) wrap(env *Env, in Operator) (Operator, error) {
	eval, err := newEvaluator(env, in.Schema(), p.Exprs...)
	if err != nil {
		return nil, err
	}
	return &project{input: in, schema: p.out, eval: eval}, nil
}

type project struct {
	input  Operator
	schema *arrow.Schema
	eval   *evaluator
}

func (p *project) Schema() *arrow.Schema { return p.schema }

func (p *project) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := p.input.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	cols, err := p.eval.columns(b, make([]arrow.Array, 0, p.schema.NumFields()))
	if err != nil {
		return nil, err
	}
	return newBatch(p.schema, cols, int(b.NumRows())), nil
}

func (p *project) Close() error { return p.input.Close() }
