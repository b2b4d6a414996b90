package exec

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// Cap passes its input on and fails with ErrUnsupported once there is more of it than allowed: the guard in front of consumers that
// cannot take much, such as the row engine.
type Cap struct {
	Input    Plan
	RowsMax  int64 // 0 = any
	BytesMax int64 // 0 = any
	Why      string
}

var _ Parallel = (*Cap)(nil)

// NewCap makes a Cap; why names the consumer in the error.
func NewCap(input Plan, rowsMax, bytesMax int64, why string) (*Cap, error) {
	if rowsMax < 0 || bytesMax < 0 {
		return nil, errs.New(errs.ErrInternal, "cap of %d rows, %d bytes", rowsMax, bytesMax)
	}
	return &Cap{Input: input, RowsMax: rowsMax, BytesMax: bytesMax, Why: why}, nil
}

// Schema implements Plan.
func (p *Cap) Schema() *arrow.Schema { return p.Input.Schema() }

// Children implements Plan.
func (p *Cap) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *Cap) Describe() Description {
	return Description{Name: "Cap", Props: []Prop{{"rows", fmt.Sprint(p.RowsMax)}, {"bytes", fmt.Sprint(p.BytesMax)}, {"why", p.Why}}}
}

// Open implements Plan.
func (p *Cap) Open(ctx context.Context, env *Env) (Operator, error) {
	return openOne(ctx, env, p.Input, p.wrapper())
}

// OpenWorkers implements Parallel.
func (p *Cap) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	return openEach(ctx, env, p.Input, n, p.wrapper())
}

func (p *Cap) wrapper() func(*Env, Operator) (Operator, error) {
	used := new(capUse)
	return func(_ *Env, in Operator) (Operator, error) { return &capped{Operator: in, plan: p, used: used}, nil }
}

type capUse struct{ rows, bytes atomic.Int64 }

type capped struct {
	Operator
	plan *Cap
	used *capUse
}

func (c *capped) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := c.Operator.Next(ctx)
	if err != nil {
		return nil, err
	}
	rows, bytes := c.used.rows.Add(b.NumRows()), c.used.bytes.Add(batchBytes(b))
	if c.plan.RowsMax > 0 && rows > c.plan.RowsMax {
		b.Release()
		return nil, errs.New(errs.ErrUnsupported, "%s: more than %d rows; filter or aggregate first", c.plan.Why, c.plan.RowsMax)
	}
	if c.plan.BytesMax > 0 && bytes > c.plan.BytesMax {
		b.Release()
		return nil, errs.New(errs.ErrUnsupported, "%s: more than %d bytes of rows; filter or aggregate first", c.plan.Why, c.plan.BytesMax)
	}
	return b, nil
}
