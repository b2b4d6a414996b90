package exec

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// Sort orders its input. Ties are broken by the row address where the input has one, otherwise by arrival.
//
// Each worker of the input makes one sorted run of what it gets; the runs are merged.
type Sort struct {
	Input Plan
	Keys  []SortKey
}

var _ Traceable = (*Sort)(nil)

// NewSort checks the keys. ErrUnsupported for types without an order.
func NewSort(input Plan, keys []SortKey) (*Sort, error) {
	if err := checkSortKeys("sort", keys, input.Schema()); err != nil {
		return nil, err
	}
	return &Sort{Input: input, Keys: keys}, nil
}

// Schema implements Plan.
func (p *Sort) Schema() *arrow.Schema { return p.Input.Schema() }

// Children implements Plan.
func (p *Sort) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *Sort) Describe() Description {
	return Description{Name: "Sort", Props: []Prop{{"keys", sortKeysText(p.Keys)}}}
}

// TraceColumn implements Traceable.
func (p *Sort) TraceColumn(i int) (Plan, int) { return p.Input, i }

// Open implements Plan.
func (p *Sort) Open(_ context.Context, env *Env) (Operator, error) {
	return &sorter{plan: p, env: env}, nil
}

type sorter struct {
	plan   *Sort
	env    *Env
	sorted lazy[struct{}]
	runs   []*sortRun // all that were made
	mu     shared
	cols   []arrow.Array
	order  []int32
	at     int
}

// sortRun is what one worker gathered.
type sortRun struct {
	res     *mem.Reservation
	batches []arrow.RecordBatch
	keys    *sortKeys
}

func (s *sorter) Schema() *arrow.Schema { return s.plan.Schema() }

func (s *sorter) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if _, err := s.sorted.get(func() (struct{}, error) { return struct{}{}, s.run(ctx) }); err != nil {
		return nil, nameMemory("sort", err)
	}
	n := min(s.env.BatchRows, len(s.order)-s.at)
	if n == 0 {
		return nil, io.EOF
	}
	idx := s.order[s.at : s.at+n]
	s.at += n
	cols, err := takeColumns(s.env.Alloc, s.cols, idx, make([]arrow.Array, 0, len(s.cols)))
	if err != nil {
		return nil, err
	}
	return newBatch(s.plan.Schema(), cols, n), nil
}

func (s *sorter) run(ctx context.Context) error {
	err := consume(ctx, s.env, s.plan.Input, func() (func(arrow.RecordBatch) error, error) {
		r, err := s.newRun()
		if err != nil {
			return nil, err
		}
		return func(b arrow.RecordBatch) error {
			r.batches = append(r.batches, b)
			return r.keys.append(b)
		}, nil
	})
	if err != nil {
		return err
	}
	err = runTasks(ctx, s.env, "sort", len(s.runs), func(_ context.Context, i int) error {
		return s.runs[i].keys.sort()
	})
	if err != nil {
		return err
	}
	return s.merge(ctx)
}

func (s *sorter) newRun() (*sortRun, error) {
	r := &sortRun{res: s.env.Budget.Reserve()}
	s.mu.mu.Lock()
	s.runs = append(s.runs, r)
	s.mu.mu.Unlock()
	var err error
	r.keys, err = newSortKeys(s.env, s.plan.Schema(), withTieBreak(s.plan.Keys, s.plan.Schema()), r.res)
	return r, err
}

// merge joins the columns of all runs and computes the order of their rows.
func (s *sorter) merge(ctx context.Context) error {
	var batches []arrow.RecordBatch
	total := 0
	bases := make([]int32, len(s.runs))
	for i, r := range s.runs {
		bases[i] = int32(total)
		if total += len(r.keys.items); total > rowsMax {
			return errs.New(errs.ErrUnsupported, "sorting more than %d rows", rowsMax)
		}
		batches = append(batches, r.batches...)
		r.batches = nil
	}
	var err error
	if s.cols, err = concatColumns(s.env.Alloc, s.plan.Schema(), batches); err != nil {
		return err
	}
	if total == 0 {
		return nil
	}
	if err := s.runs[0].res.Grow(4 * int64(total)); err != nil {
		return err
	}
	s.order = make([]int32, 0, total)
	heads := make([]int, len(s.runs))
	for len(s.order) < total {
		if len(s.order)&0xffff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		best := -1
		for i, r := range s.runs {
			if heads[i] == len(r.keys.items) {
				continue
			}
			if best < 0 || compareItems(r.keys, r.keys.items[heads[i]], s.runs[best].keys, s.runs[best].keys.items[heads[best]]) < 0 {
				best = i
			}
		}
		s.order = append(s.order, bases[best]+int32(s.runs[best].keys.items[heads[best]].row))
		heads[best]++
	}
	for _, r := range s.runs {
		r.keys = nil
	}
	return nil
}

func (s *sorter) Close() error {
	for _, r := range s.runs {
		releaseBatches(r.batches)
		r.batches = nil
		r.res.Free()
	}
	releaseArrays(s.cols)
	s.cols, s.order = nil, nil
	return nil
}
