package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// Filter keeps the rows where Cond is TRUE.
type Filter struct {
	Input Plan
	Cond  expr.Expr
}

var (
	_ Parallel  = (*Filter)(nil)
	_ Traceable = (*Filter)(nil)
)

// NewFilter checks that cond is a boolean over the input's columns.
func NewFilter(input Plan, cond expr.Expr) (*Filter, error) {
	if err := checkCondition("filter", cond, input.Schema()); err != nil {
		return nil, err
	}
	return &Filter{Input: input, Cond: cond}, nil
}

func checkCondition(node string, cond expr.Expr, schema *arrow.Schema) error {
	if err := checkExpr(node, cond, schema); err != nil {
		return err
	}
	if id := cond.Type().ID(); id != arrow.BOOL && id != arrow.NULL {
		return errs.New(errs.ErrInternal, "%s: condition %s is %s, not a boolean", node, cond, cond.Type())
	}
	return nil
}

// Schema implements Plan.
func (p *Filter) Schema() *arrow.Schema { return p.Input.Schema() }

// Children implements Plan.
func (p *Filter) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *Filter) Describe() Description {
	return Description{Name: "Filter", Props: []Prop{{"where", p.Cond.String()}}}
}

// TraceColumn implements Traceable.
func (p *Filter) TraceColumn(i int) (Plan, int) { return p.Input, i }

// Open implements Plan.
func (p *Filter) Open(ctx context.Context, env *Env) (Operator, error) {
	return openOne(ctx, env, p.Input, p.wrap)
}

// OpenWorkers implements Parallel.
func (p *Filter) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	return openEach(ctx, env, p.Input, n, p.wrap)
}

func (p *Filter) wrap(env *Env, in Operator) (Operator, error) {
	f, err := newSelection(env, in.Schema(), p.Cond)
	if err != nil {
		return nil, err
	}
	return &filter{input: in, sel: f}, nil
}

// openOne opens input as one operator and wraps it.
func openOne(ctx context.Context, env *Env, input Plan, wrap func(*Env, Operator) (Operator, error)) (Operator, error) {
	in, err := Open(ctx, env, input)
	if err != nil {
		return nil, err
	}
	op, err := wrap(env, in)
	if err != nil {
		return nil, joinClose(err, in)
	}
	return op, nil
}

// openEach opens input on up to n workers and wraps each.
func openEach(ctx context.Context, env *Env, input Plan, n int, wrap func(*Env, Operator) (Operator, error)) ([]Operator, error) {
	ops, err := OpenWorkers(ctx, env, input, n)
	if err != nil {
		return nil, err
	}
	out := make([]Operator, len(ops))
	for i, in := range ops {
		if out[i], err = wrap(env, in); err != nil {
			return nil, joinClose(err, ops...)
		}
	}
	return out, nil
}

type filter struct {
	input Operator
	sel   *selection
}

func (f *filter) Schema() *arrow.Schema { return f.input.Schema() }

func (f *filter) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := f.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		out, err := f.sel.keep(b)
		if err != nil {
			return nil, err
		}
		if out != nil {
			return out, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (f *filter) Close() error { return f.input.Close() }

// selection keeps the rows of batches where a condition is TRUE.
type selection struct {
	env  *Env
	cond *expr.Program
}

func newSelection(env *Env, schema *arrow.Schema, cond expr.Expr) (*selection, error) {
	run, err := expr.Compile(cond, schema)
	if err != nil {
		return nil, err
	}
	return &selection{env: env, cond: run}, nil
}

// keep takes b over and returns its TRUE rows, nil if there are none.
func (s *selection) keep(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	idx, all, err := s.cond.EvalSelect(&s.env.Expr, b)
	if err == nil && (all || len(idx) == int(b.NumRows())) {
		return b, nil
	}
	defer b.Release()
	if err != nil || len(idx) == 0 {
		return nil, err
	}
	if first, last := int(idx[0]), int(idx[len(idx)-1]); last-first == len(idx)-1 {
		return b.NewSlice(int64(first), int64(last+1)), nil
	}
	return takeBatch(s.env.Alloc, b, idx)
}
