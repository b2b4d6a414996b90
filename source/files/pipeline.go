package files

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/spawn"
)

// chunk is a piece of a file: whole rows of text, or a range of batches.
type chunk struct {
	text      []byte
	firstLine int64
	bad       *BadRow // in place of text: a row that cannot be cut
	err       error   // the file ends with it

	out chan result
}

// result is the rows of a part of a chunk.
type result struct {
	rows arrow.RecordBatch // nil = none
	bad  []BadRow
	err  error
}

func (r result) release() {
	if r.rows != nil {
		r.rows.Release()
	}
}

// pipeline parses chunks in parallel and yields what comes of them in order. It is used by one goroutine.
type pipeline struct {
	ctx    context.Context //nolint:containedctx // of the goroutines, which end with the pipeline
	cancel context.CancelFunc
	group  *spawn.Group
	queue  chan *chunk // in order
	err    error
}

// newPipeline starts cut, which emits chunks in order, and workers that parse them. A worker gets a function of its own from newWorker.
func newPipeline(ctx context.Context, workers int, cut func(ctx context.Context, emit func(*chunk) error) error, newWorker func() func(ctx context.Context, c *chunk) result) *pipeline {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := spawn.WithContext(ctx, 0)
	p := &pipeline{ctx: ctx, cancel: cancel, group: group, queue: make(chan *chunk, workers+1)}
	todo := make(chan *chunk)
	emit := func(c *chunk) error {
		c.out = make(chan result, 1)
		select {
		case p.queue <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
		if c.err != nil || c.bad != nil {
			return nil
		}
		select {
		case todo <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	group.Go("cut a file", func() error {
		defer close(p.queue)
		defer close(todo)
		if err := cut(ctx, emit); err != nil {
			return emit(&chunk{err: err})
		}
		return nil
	})
	for range workers {
		work := newWorker()
		group.Go("parse a file", func() error {
			for c := range todo {
				c.out <- work(ctx, c)
			}
			return nil
		})
	}
	return p
}

// next returns rows and bad rows, io.EOF at the end.
func (p *pipeline) next() (arrow.RecordBatch, []BadRow, error) {
	if p.err != nil {
		return nil, nil, p.err
	}
	var c *chunk
	var ok bool
	select {
	case c, ok = <-p.queue:
	case <-p.ctx.Done():
		return nil, nil, p.fail(p.cause())
	}
	switch {
	case !ok:
		err := p.group.Wait()
		if err == nil {
			err = io.EOF
		}
		return nil, nil, p.fail(err)
	case c.err != nil:
		return nil, nil, p.fail(c.err)
	case c.bad != nil:
		return nil, []BadRow{*c.bad}, nil
	}
	select {
	case r := <-c.out:
		if r.err != nil {
			r.release()
			return nil, nil, p.fail(r.err)
		}
		return r.rows, r.bad, nil
	case <-p.ctx.Done():
		return nil, nil, p.fail(p.cause())
	}
}

func (p *pipeline) fail(err error) error {
	p.err = err
	return err
}

// cause is why the goroutines ended.
func (p *pipeline) cause() error {
	p.cancel()
	if err := p.group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return context.Cause(p.ctx)
}

// close ends the goroutines and drops what nobody took.
func (p *pipeline) close() {
	p.cancel()
	if p.err == nil {
		p.err = context.Canceled
	}
	_ = p.group.Wait() // the error of a goroutine that was stopped
	for c := range p.queue {
		select {
		case r := <-c.out:
			r.release()
		default:
		}
	}
}
