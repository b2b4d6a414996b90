package exec

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// Union concatenates inputs of equal column types (UNION ALL). Names come from the first input.
type Union struct {
	Inputs []Plan
	out    *arrow.Schema
}

var _ Parallel = (*Union)(nil)

// NewUnion checks that the inputs have the same column types.
func NewUnion(inputs ...Plan) (*Union, error) {
	if len(inputs) == 0 {
		return nil, errs.New(errs.ErrInternal, "union: no input")
	}
	fields := append([]arrow.Field(nil), inputs[0].Schema().Fields()...)
	for i, in := range inputs[1:] {
		if in.Schema().NumFields() != len(fields) {
			return nil, errs.New(errs.ErrInternal, "union: input %d has %d columns, not %d", i+1, in.Schema().NumFields(), len(fields))
		}
		for j, f := range in.Schema().Fields() {
			if !arrow.TypeEqual(f.Type, fields[j].Type) {
				return nil, errs.New(errs.ErrInternal, "union: column %d of input %d is %s, not %s", j, i+1, f.Type, fields[j].Type)
			}
			fields[j].Nullable = fields[j].Nullable || f.Nullable
		}
	}
	return &Union{Inputs: inputs, out: arrow.NewSchema(fields, nil)}, nil
}

// Schema implements Plan.
func (p *Union) Schema() *arrow.Schema { return p.out }

// Children implements Plan.
func (p *Union) Children() []Plan { return p.Inputs }

// Describe implements Plan.
func (p *Union) Describe() Description {
	return Description{Name: "Union", Props: []Prop{{"inputs", fmt.Sprint(len(p.Inputs))}}}
}

// Open implements Plan.
func (p *Union) Open(ctx context.Context, env *Env) (Operator, error) {
	ops, err := p.OpenWorkers(ctx, env, 1)
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

// OpenWorkers implements Parallel: worker i reads worker i of every input, one input after the other.
func (p *Union) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	var unions []*union
	fail := func(err error) ([]Operator, error) {
		for _, u := range unions {
			err = errors.Join(err, u.Close())
		}
		return nil, err
	}
	for _, in := range p.Inputs {
		ops, err := OpenWorkers(ctx, env, in, n)
		if err != nil {
			return fail(err)
		}
		for i, op := range ops {
			if i == len(unions) {
				unions = append(unions, &union{schema: p.out})
			}
			unions[i].inputs = append(unions[i].inputs, op)
		}
	}
	out := make([]Operator, len(unions))
	for i, u := range unions {
		out[i] = u
	}
	return out, nil
}

type union struct {
	schema *arrow.Schema
	inputs []Operator
	at     int
}

func (u *union) Schema() *arrow.Schema { return u.schema }

func (u *union) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for u.at < len(u.inputs) {
		b, err := u.inputs[u.at].Next(ctx)
		switch {
		case err == nil:
			return withSchema(u.schema, b), nil
		case err == io.EOF: //nolint:errorlint // Next returns io.EOF itself
			u.at++
		default:
			return nil, err
		}
	}
	return nil, io.EOF
}

func (u *union) Close() error { return closeAll(u.inputs) }
