package exec

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/spawn"
)

// Gather runs p on env.Workers goroutines and yields their batches through one operator, in any order where there are several workers.
// A plan that cannot run on several (a sort, a limit above one) keeps its order. Panics below come out as errors.
func Gather(ctx context.Context, env *Env, p Plan) (Operator, error) {
	ops, err := OpenWorkers(ctx, env, p, env.Workers)
	if err != nil {
		return nil, err
	}
	if len(ops) == 1 {
		return &guarded{Operator: ops[0]}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &gather{schema: p.Schema(), ops: ops, out: make(chan arrow.RecordBatch, len(ops)), cancel: cancel}
	g.done.Add(1)
	group, groupCtx := spawn.WithContext(ctx, 0)
	for _, op := range ops {
		group.Go("gather", func() error { return g.run(groupCtx, op) })
	}
	waiter, _ := spawn.WithContext(ctx, 0)
	waiter.Go("gather", func() error {
		defer g.done.Done()
		g.err = group.Wait()
		close(g.out)
		return nil
	})
	return g, nil
}

// guarded turns panics of the operator into errors.
type guarded struct{ Operator }

func (g *guarded) Next(ctx context.Context) (b arrow.RecordBatch, err error) {
	err = spawn.Guard(func() (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err = g.Operator.Next(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

type gather struct {
	schema *arrow.Schema
	ops    []Operator
	out    chan arrow.RecordBatch
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // set before out is closed
	closed bool
}

func (g *gather) run(ctx context.Context, op Operator) error {
	return drain(ctx, op, func() (func(arrow.RecordBatch) error, error) {
		return func(b arrow.RecordBatch) error {
			select {
			case g.out <- b:
				return nil
			case <-ctx.Done():
				b.Release()
				return ctx.Err()
			}
		}, nil
	})
}

func (g *gather) Schema() *arrow.Schema { return g.schema }

func (g *gather) Next(ctx context.Context) (arrow.RecordBatch, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case b, ok := <-g.out:
		if ok {
			return b, nil
		}
		if g.err != nil {
			return nil, g.err
		}
		return nil, io.EOF
	}
}

func (g *gather) Close() error {
	if g.closed {
		return nil
	}
	g.closed = true
	g.cancel()
	for b := range g.out {
		b.Release()
	}
	g.done.Wait()
	return closeAll(g.ops)
}

// Collect runs p to its end and returns all batches, which the caller releases. It is for tests and for inputs that are known to be small.
func Collect(ctx context.Context, env *Env, p Plan) (batches []arrow.RecordBatch, err error) {
	op, err := Gather(ctx, env, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, op.Close()); err != nil {
			releaseBatches(batches)
			batches = nil
		}
	}()
	err = drain(ctx, op, func() (func(arrow.RecordBatch) error, error) {
		return func(b arrow.RecordBatch) error {
			batches = append(batches, b)
			return nil
		}, nil
	})
	return batches, err
}
