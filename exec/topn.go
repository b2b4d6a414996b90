package exec

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/mem"
)

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
