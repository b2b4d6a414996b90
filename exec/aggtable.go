package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/mem"
)

// aggTable is a set of groups with the states of the aggregates. It is used by one goroutine.
type aggTable struct {
	env    *Env
	plan   *HashAggregate
	res    *mem.Reservation
	groups grouper
	accs   []accumulator
	ids    []uint32
	level  int // by how many keys it groups
	closed bool
}

func newAggTable(env *Env, plan *HashAggregate) (*aggTable, error) {
	t := &aggTable{env: env, plan: plan, res: env.Budget.Reserve(), level: len(plan.Keys)}
	types := make([]arrow.DataType, len(plan.Keys))
	for i, k := range plan.Keys {
		types[i] = k.Type()
	}
	var err error
	if t.groups, err = newGrouper(env.Alloc, t.res, types, true); err != nil {
		return t, err
	}
	for _, a := range plan.Aggs {
		acc, err := newAccumulator(env, t.res, a)
		if err != nil {
			return t, err
		}
		t.accs = append(t.accs, acc)
	}
	return t, nil
}

func (t *aggTable) count() int { return t.groups.count() }

// add aggregates n rows; cols are the keys, then the arguments, which it may replace.
func (t *aggTable) add(cols []arrow.Array, n int) error {
	t.ids = resized(t.ids, n)
	keys := len(t.plan.Keys)
	if err := t.groups.assign(cols[:keys], n, t.ids); err != nil {
		return err
	}
	args := cols[keys:]
	for i, acc := range t.accs {
		if err := acc.resize(t.groups.count()); err != nil {
			return err
		}
		k := len(t.plan.Aggs[i].Args)
		if t.plan.Aggs[i].Func != AggAny || (k == 1 && isCoded(args[0], t.plan.Aggs[i].Args[0].Type())) {
			if err := decode(t.env.Alloc, args[:k]); err != nil {
				return err
			}
		}
		if err := acc.update(t.ids, args[:k:k]); err != nil {
			return err
		}
		args = args[k:]
	}
	return nil
}

// absorb merges groups of src into t: those of the list from, whose keys are keys.
func (t *aggTable) absorb(src *aggTable, keys []arrow.Array, from []uint32) error {
	const step = 1 << 15
	for start := 0; start < len(from); start += step {
		end := min(start+step, len(from))
		part := make([]arrow.Array, len(keys))
		idx := make([]int32, end-start)
		for i, g := range from[start:end] {
			idx[i] = int32(g)
		}
		part, err := takeColumns(t.env.Alloc, keys, idx, part[:0])
		if err != nil {
			return err
		}
		t.ids = resized(t.ids, end-start)
		err = t.groups.assign(part, end-start, t.ids)
		releaseArrays(part)
		if err != nil {
			return err
		}
		for i, acc := range t.accs {
			if err := acc.resize(t.groups.count()); err != nil {
				return err
			}
			if err := acc.merge(src.accs[i], from[start:end], t.ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// seal prepares the states to be merged from.
func (t *aggTable) seal() error {
	for _, acc := range t.accs {
		if err := acc.resize(t.groups.count()); err != nil {
			return err
		}
		if err := acc.seal(); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the one group of an aggregation without keys, and lets states prepare their results.
func (t *aggTable) finish() error {
	if one, ok := t.groups.(*oneGroup); ok {
		one.seen = true
	}
	for _, acc := range t.accs {
		if err := acc.resize(t.groups.count()); err != nil {
			return err
		}
		if err := acc.finish(); err != nil {
			return err
		}
	}
	return nil
}

// batch is groups from to to-1.
func (t *aggTable) batch(schema *arrow.Schema, from, to int) (arrow.RecordBatch, error) {
	cols, err := t.groups.keys(t.env.Alloc, from, to)
	if err != nil {
		return nil, err
	}
	for i, acc := range t.accs {
		c, err := acc.result(t.env.Alloc, t.plan.Aggs[i].Type, from, to)
		if err != nil {
			releaseArrays(cols)
			return nil, wrapAgg(t.plan.Aggs[i], err)
		}
		cols = append(cols, c)
	}
	if t.plan.Rollup {
		cols = append(cols, t.levels(to-from))
	}
	return newBatch(schema, cols, to-from), nil
}

func (t *aggTable) close() {
	if t == nil || t.closed {
		return
	}
	t.closed = true
	if t.groups != nil {
		t.groups.close()
	}
	for _, acc := range t.accs {
		acc.close()
	}
	t.res.Free()
}

const (
	// mergeSerialMax is up to how many groups of all workers one goroutine merges.
	mergeSerialMax = 1 << 14
	// mergeParts is how many ranges of the hash larger tables are merged in.
	mergePartBits = 5
)

// merge brings the tables of the workers together and returns tables with disjoint groups. The tables it took apart are closed.
func (s *aggState) merge(ctx context.Context) ([]*aggTable, error) {
	tables := s.tables
	if len(tables) == 0 {
		t, err := s.newTable()
		return []*aggTable{t}, err
	}
	total := 0
	for _, t := range tables {
		total += t.count()
	}
	if len(tables) == 1 {
		return tables, nil
	}
	if total <= mergeSerialMax {
		return tables[:1], s.mergeInto(ctx, tables[0], tables[1:])
	}
	return s.mergeParts(ctx, tables)
}

// mergeInto merges tables of few groups into dst.
func (s *aggState) mergeInto(ctx context.Context, dst *aggTable, rest []*aggTable) error {
	all, to := make([][]uint32, len(rest)), make([][]uint32, len(rest))
	for i, src := range rest {
		if err := src.seal(); err != nil {
			return err
		}
		keys, err := src.groups.keys(s.env.Alloc, 0, src.count())
		if err != nil {
			return err
		}
		all[i], to[i] = make([]uint32, src.count()), make([]uint32, src.count())
		for g := range all[i] {
			all[i][g] = uint32(g)
		}
		err = dst.groups.assign(keys, src.count(), to[i])
		releaseArrays(keys)
		if err != nil {
			return err
		}
	}
	for a, acc := range dst.accs {
		if err := acc.resize(dst.groups.count()); err != nil {
			return err
		}
		srcs := make([]accumulator, len(rest))
		for i, src := range rest {
			srcs[i] = src.accs[a]
		}
		if m, ok := acc.(setMerger); ok && !s.plan.Rollup { // whose levels merge from it again
			if err := m.mergeAll(ctx, s.env, srcs, to); err != nil {
				return err
			}
			continue
		}
		for i, src := range srcs {
			if err := acc.merge(src, all[i], to[i]); err != nil {
				return err
			}
		}
	}
	for _, src := range rest {
		src.close()
	}
	return nil
}

// mergeParts splits the groups of every table by hash and merges each part on its own.
func (s *aggState) mergeParts(ctx context.Context, tables []*aggTable) ([]*aggTable, error) {
	const parts = 1 << mergePartBits
	lists := make([][parts][]uint32, len(tables))
	keys := make([][]arrow.Array, len(tables))
	defer func() {
		for _, k := range keys {
			releaseArrays(k)
		}
	}()
	err := runTasks(ctx, s.env, "aggregate", len(tables), func(_ context.Context, i int) (err error) {
		t := tables[i]
		if err := t.seal(); err != nil {
			return err
		}
		if err := t.res.Grow(int64(t.count()) * 12); err != nil {
			return err
		}
		hashes, err := t.groups.hashes(make([]uint64, 0, t.count()))
		if err != nil {
			return err
		}
		for id, h := range hashes {
			p := h & (parts - 1) // tables use the top bits for their slots
			lists[i][p] = append(lists[i][p], uint32(id))
		}
		keys[i], err = t.groups.keys(s.env.Alloc, 0, t.count())
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]*aggTable, parts)
	err = runTasks(ctx, s.env, "aggregate", parts, func(_ context.Context, p int) (err error) {
		if out[p], err = s.newTable(); err != nil {
			return err
		}
		for i, src := range tables {
			if err := out[p].absorb(src, keys[i], lists[i][p]); err != nil {
				return err
			}
		}
		return nil
	})
	for _, t := range tables {
		t.close()
	}
	return out, err
}
