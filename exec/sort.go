package exec

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

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

var _ Plan = (*Sort)(nil)

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

// TopN is the first Count rows of its sorted input after Offset.
//
// Each worker keeps at most about twice as many rows as wanted, and drops rows that are behind its worst row at once.
type TopN struct {
	Input         Plan
	Keys          []SortKey
	Count, Offset uint64
}

var _ Plan = (*TopN)(nil)

// topNRowsMax is up to how many rows (offset included) TopN keeps; beyond it sorts all.
const topNRowsMax = 1 << 20

// NewTopN checks the keys. ErrUnsupported for types without an order.
func NewTopN(input Plan, keys []SortKey, count, offset uint64) (*TopN, error) {
	if err := checkSortKeys("top-n", keys, input.Schema()); err != nil {
		return nil, err
	}
	return &TopN{Input: input, Keys: keys, Count: count, Offset: offset}, nil
}

// Schema implements Plan.
func (p *TopN) Schema() *arrow.Schema { return p.Input.Schema() }

// Children implements Plan.
func (p *TopN) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *TopN) Describe() Description {
	return Description{Name: "TopN", Props: append([]Prop{{"keys", sortKeysText(p.Keys)}}, limitProps(p.Count, p.Offset)...)}
}

// Open implements Plan.
func (p *TopN) Open(ctx context.Context, env *Env) (Operator, error) {
	if p.Count == 0 {
		return &empty{schema: p.Schema()}, nil
	}
	if p.Count > topNRowsMax || p.Offset > topNRowsMax-p.Count {
		l := Limit{Input: &Sort{Input: p.Input, Keys: p.Keys}, Count: p.Count, Offset: p.Offset}
		plain := *env
		plain.Stats = nil // the nodes inside are not in the plan; p counts for them
		in := &sorter{plan: l.Input.(*Sort), env: env}
		return l.wrapper()(&plain, in)
	}
	return &topN{plan: p, env: env, keep: int(p.Count + p.Offset)}, nil
}

type topN struct {
	plan *TopN
	env  *Env
	keep int
	done lazy[struct{}]
	mu   shared
	runs []*topRun
	out  slicer
}

func (t *topN) Schema() *arrow.Schema { return t.plan.Schema() }

func (t *topN) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if _, err := t.done.get(func() (struct{}, error) { return struct{}{}, t.run(ctx) }); err != nil {
		return nil, nameMemory("top-n", err)
	}
	b, ok := t.out.next(t.env.BatchRows)
	if !ok {
		if b != nil {
			b.Release()
		}
		return nil, io.EOF
	}
	return b, nil
}

func (t *topN) newRun() (*topRun, error) {
	r := &topRun{topN: t, res: t.env.Budget.Reserve()}
	t.mu.mu.Lock()
	t.runs = append(t.runs, r)
	t.mu.mu.Unlock()
	var err error
	keys := withTieBreak(t.plan.Keys, t.plan.Schema())
	if r.keys, err = newSortKeys(t.env, t.plan.Schema(), keys, r.res); err != nil {
		return nil, err
	}
	// The keys of each batch are looked at before its rows are kept.
	r.probe, err = newSortKeys(t.env, t.plan.Schema(), keys, t.env.Budget.Reserve())
	return r, err
}

func (t *topN) run(ctx context.Context) error {
	err := consume(ctx, t.env, t.plan.Input, func() (func(arrow.RecordBatch) error, error) {
		r, err := t.newRun()
		if err != nil {
			return nil, err
		}
		return r.add, nil
	})
	if err != nil {
		return err
	}
	all, err := t.newRun()
	if err != nil {
		return err
	}
	for _, r := range t.runs[:len(t.runs)-1] {
		for i, b := range r.batches {
			r.batches[i] = nil
			if err := all.push(b); err != nil {
				return err
			}
		}
		r.batches = nil
	}
	if err := all.compact(); err != nil || len(all.batches) == 0 {
		return err
	}
	b := all.batches[0]
	all.batches = nil
	defer b.Release()
	if first := int64(t.plan.Offset); first < b.NumRows() {
		t.out.set(b.NewSlice(first, b.NumRows()))
	}
	return nil
}

func (t *topN) Close() error {
	for _, r := range t.runs {
		for _, b := range r.batches {
			if b != nil {
				b.Release()
			}
		}
		r.batches = nil
		r.res.Free()
		if r.probe != nil {
			r.probe.res.Free()
		}
	}
	t.out.close()
	return nil
}

// topRun is what one worker keeps.
type topRun struct {
	*topN
	res     *mem.Reservation
	keys    *sortKeys // of the rows of batches
	batches []arrow.RecordBatch
	probe   *sortKeys // of the batch being looked at
	full    bool      // keys has exactly keep rows, in order, at its start: the last is the threshold
	idx     []int32
}

// add takes b over and keeps those of its rows that may be among the first.
func (r *topRun) add(b arrow.RecordBatch) error {
	if !r.full {
		return r.push(b)
	}
	worst := r.keys.items[r.keep-1]
	b, err := r.behind(b, func(it sortItem) bool {
		c := it.compareFirst(worst)
		return c > 0 || c == 0 && !r.keys.hasRest()
	}, (*sortKeys).appendItems)
	if b == nil || err != nil {
		return err
	}
	if r.keys.hasRest() { // rows that tie on the first key are few by now: look at all keys
		b, err = r.behind(b, func(it sortItem) bool { return compareItems(r.probe, it, r.keys, worst) >= 0 }, func(k *sortKeys, n int) error {
			if err := k.appendItems(n); err != nil {
				return err
			}
			return k.appendRest(n)
		})
		if b == nil || err != nil {
			return err
		}
	}
	return r.push(b)
}

// behind takes b over and returns its rows for which drop is false, nil for none; load fills r.probe from the key columns.
func (r *topRun) behind(b arrow.RecordBatch, drop func(sortItem) bool, load func(*sortKeys, int) error) (arrow.RecordBatch, error) {
	r.probe.reset()
	err := r.probe.evaluate(b)
	if err == nil {
		err = load(r.probe, int(b.NumRows()))
		releaseArrays(r.probe.cols)
	}
	if err != nil {
		b.Release()
		return nil, err
	}
	r.idx = r.idx[:0]
	for i, it := range r.probe.items {
		if !drop(it) {
			r.idx = append(r.idx, int32(i))
		}
	}
	if len(r.idx) == int(b.NumRows()) {
		return b, nil
	}
	defer b.Release()
	if len(r.idx) == 0 {
		return nil, nil
	}
	return takeBatch(r.env.Alloc, b, r.idx)
}

// push keeps b and cuts back when there is too much.
func (r *topRun) push(b arrow.RecordBatch) error {
	r.batches = append(r.batches, b)
	if err := r.keys.append(b); err != nil {
		return err
	}
	limit := r.keep
	if r.full {
		limit = 2*r.keep + r.env.BatchRows
	}
	if len(r.keys.items) < limit {
		return nil
	}
	return r.compact()
}

// compact cuts back to the first rows, in order.
func (r *topRun) compact() error {
	if len(r.batches) == 0 {
		return nil
	}
	if err := r.keys.sort(); err != nil {
		return err
	}
	n := min(r.keep, len(r.keys.items))
	idx := make([]int32, n)
	for i, it := range r.keys.items[:n] {
		idx[i] = int32(it.row)
	}
	batches := r.batches
	r.batches = nil
	cols, err := concatColumns(r.env.Alloc, r.plan.Schema(), batches)
	if err != nil {
		return err
	}
	defer releaseArrays(cols)
	kept, err := takeColumns(r.env.Alloc, cols, idx, make([]arrow.Array, 0, len(cols)))
	if err != nil {
		return err
	}
	b := array.NewRecordBatch(r.plan.Schema(), kept, int64(n))
	releaseArrays(kept)
	r.batches = []arrow.RecordBatch{b}
	r.keys.reset()
	r.full = n == r.keep
	return r.keys.append(b)
}
