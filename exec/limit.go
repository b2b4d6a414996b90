package exec

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// NoLimit is the count of a Limit or TopN that only skips.
const NoLimit = math.MaxUint64

// Limit skips Offset rows and passes Count. It stops pulling as soon as it has them.
type Limit struct {
	Input         Plan
	Count, Offset uint64
}

var _ Parallel = (*Limit)(nil)

// NewLimit makes a Limit; count may be NoLimit.
func NewLimit(input Plan, count, offset uint64) (*Limit, error) {
	if input == nil {
		return nil, errs.New(errs.ErrInternal, "limit: no input")
	}
	return &Limit{Input: input, Count: count, Offset: offset}, nil
}

// Schema implements Plan.
func (p *Limit) Schema() *arrow.Schema { return p.Input.Schema() }

// Children implements Plan.
func (p *Limit) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *Limit) Describe() Description {
	return Description{Name: "Limit", Props: limitProps(p.Count, p.Offset)}
}

func limitProps(count, offset uint64) []Prop {
	var out []Prop
	if count != NoLimit {
		out = append(out, Prop{"k", fmt.Sprint(count)})
	}
	if offset > 0 {
		out = append(out, Prop{"offset", fmt.Sprint(offset)})
	}
	return out
}

// Open implements Plan.
func (p *Limit) Open(ctx context.Context, env *Env) (Operator, error) {
	if p.Count == 0 {
		return &empty{schema: p.Schema()}, nil
	}
	return openOne(ctx, env, p.Input, p.wrapper())
}

// OpenWorkers implements Parallel.
func (p *Limit) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	if p.Count == 0 {
		return []Operator{&empty{schema: p.Schema()}}, nil
	}
	return openEach(ctx, env, p.Input, n, p.wrapper())
}

func (p *Limit) wrapper() func(*Env, Operator) (Operator, error) {
	seen := new(atomic.Uint64)
	end := p.Offset + p.Count
	if end < p.Offset {
		end = NoLimit
	}
	return func(_ *Env, in Operator) (Operator, error) {
		return &limit{input: in, seen: seen, start: p.Offset, end: end}, nil
	}
}

type limit struct {
	input      Operator
	seen       *atomic.Uint64 // rows that all workers pulled
	start, end uint64
}

func (l *limit) Schema() *arrow.Schema { return l.input.Schema() }

func (l *limit) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for l.seen.Load() < l.end {
		b, err := l.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		rows := uint64(b.NumRows())
		last := l.seen.Add(rows)
		from, to := max(last-rows, l.start), min(last, l.end)
		switch {
		case from >= to:
			b.Release()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		case to-from == rows:
			return b, nil
		default:
			first := last - rows
			out := b.NewSlice(int64(from-first), int64(to-first))
			b.Release()
			return out, nil
		}
	}
	return nil, io.EOF
}

func (l *limit) Close() error { return l.input.Close() }

// empty yields nothing.
type empty struct{ schema *arrow.Schema }

func (e *empty) Schema() *arrow.Schema { return e.schema }

func (e *empty) Next(context.Context) (arrow.RecordBatch, error) { return nil, io.EOF }

func (e *empty) Close() error { return nil }
