package exec

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/spawn"
)

// Open starts p as one operator and counts it in env.Stats. Operators open their inputs through Open and OpenWorkers, never by p.Open.
func Open(ctx context.Context, env *Env, p Plan) (Operator, error) {
	op, err := p.Open(ctx, env)
	if err != nil {
		return nil, err
	}
	return count(env, p, op), nil
}

func count(env *Env, p Plan, op Operator) Operator {
	if env.Stats == nil {
		return op
	}
	return &counted{Operator: op, node: env.Stats.Node(p)}
}

// counted writes what an operator does into the figures of its plan node.
type counted struct {
	Operator
	node *NodeStats
}

func (c *counted) Next(ctx context.Context) (arrow.RecordBatch, error) {
	start := time.Now()
	b, err := c.Operator.Next(ctx)
	if err != nil {
		c.node.Spent(time.Since(start))
		return nil, err
	}
	c.node.Batch(b.NumRows(), time.Since(start))
	return b, nil
}

// consume runs p to its end on up to env.Workers goroutines and waits for them. start is called once per worker and returns what takes the
// worker's batches; it owns them.
func consume(ctx context.Context, env *Env, p Plan, start func() (func(arrow.RecordBatch) error, error)) (err error) {
	ops, err := OpenWorkers(ctx, env, p, env.Workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ops)) }()
	if len(ops) == 1 {
		return spawn.Guard(func() error { return drain(ctx, ops[0], start) })
	}
	g, ctx := spawn.WithContext(ctx, 0)
	for _, op := range ops {
		g.Go(p.Describe().Name, func() error { return drain(ctx, op, start) })
	}
	return g.Wait()
}

func drain(ctx context.Context, op Operator, start func() (func(arrow.RecordBatch) error, error)) error {
	sink, err := start()
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := op.Next(ctx)
		if err == io.EOF { //nolint:errorlint // Next returns io.EOF itself
			return nil
		}
		if err != nil {
			return err
		}
		if err := sink(b); err != nil {
			return err
		}
	}
}

func closeAll(ops []Operator) error {
	var all []error
	for _, op := range ops {
		all = append(all, op.Close())
	}
	return errors.Join(all...)
}

// lazy computes a value once, by the first of several workers that asks; the others wait for it.
type lazy[T any] struct {
	once sync.Once
	v    T
	err  error
}

func (l *lazy[T]) get(f func() (T, error)) (T, error) {
	l.once.Do(func() {
		l.err = spawn.Guard(func() (err error) {
			l.v, err = f()
			return err
		})
	})
	return l.v, l.err
}

// shared counts the workers that still use a common state, so that the last one to close frees it.
type shared struct {
	mu   sync.Mutex
	refs int
}

// drop gives up one use and runs free if it was the last.
func (s *shared) drop(free func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs--
	if s.refs > 0 {
		return nil
	}
	return free()
}

// runTasks runs f(0) to f(n-1) on up to env.Workers goroutines.
func runTasks(ctx context.Context, env *Env, name string, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 || env.Workers <= 1 {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	g, ctx := spawn.WithContext(ctx, env.Workers)
	for i := range n {
		g.Go(name, func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return f(ctx, i)
		})
	}
	return g.Wait()
}

// joinClose closes ops after err and returns both errors.
func joinClose(err error, ops ...Operator) error { return errors.Join(err, closeAll(ops)) }

// Traceable is a plan that passes columns of an input through, so that what is known of the values above holds below.
type Traceable interface {
	Plan
	// TraceColumn returns the input and its column whose values output column i shows; nil where it is computed. Dropping input rows by their
	// value of that column drops exactly the rows with that value here.
	TraceColumn(i int) (Plan, int)
}
