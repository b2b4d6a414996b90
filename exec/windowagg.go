package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
)

// How an aggregate over frames is computed. A frame that is the whole partition is a group. Otherwise each row is a group of its own first, and
// frames unite groups: one that grows from the partition's begin or shrinks to its end by running through the rows once, any other one by a tree
// whose inner nodes hold united states of treeFanout below them. So every aggregate whose states unite needs nothing of its own here, nothing is ever
// taken away from a sum, and answers are exact where the aggregate is.

const (
	// treeFanout is how many nodes a node of the tree unites.
	treeFanout = 4
	// frameBlockRows is for how many rows at a time frames are united.
	frameBlockRows = 1 << 14
	// feedRows is how many rows an aggregate gets at a time.
	feedRows = 1 << 13
)

// foldable says that groups of the aggregate's state may be merged into each other inside one state, any number of times.
func (f AggFunc) foldable() bool {
	switch f {
	case AggAny, AggConcat, AggJSONArray, AggJSONObject:
		return false
	}
	return true
}

// aggregate is an aggregate over the frame of each row.
func (c *windowChunk) aggregate(ctx context.Context, w *WindowSpec, args []int, cols frameColumns) (arrow.Array, error) {
	spec := w.aggSpec()
	if c.isWhole(w.Frame) {
		return c.wholeAggregate(ctx, spec, args)
	}
	fr, err := c.frameOf(w.Frame, cols)
	defer fr.res.Free()
	if err != nil {
		return nil, err
	}
	switch {
	case spec.Func == AggCountStar:
		return c.frameSizes(fr), nil
	case !spec.Func.foldable():
		return c.rowByRow(ctx, spec, args, fr)
	case w.Frame.Start.Kind == UnboundedPreceding, w.Frame.End.Kind == UnboundedFollowing:
		return c.running(ctx, spec, args, fr, w.Frame.Start.Kind == UnboundedPreceding)
	}
	return c.united(ctx, spec, args, fr)
}

// isWhole says that the frame of every row is its partition.
func (c *windowChunk) isWhole(f Frame) bool {
	start := f.Start.Kind == UnboundedPreceding || len(c.plan.Order) == 0 && !f.Rows && f.Start.Value == nil
	end := f.End.Kind == UnboundedFollowing || len(c.plan.Order) == 0 && !f.Rows && f.End.Value == nil
	return start && end
}

// frameSizes is COUNT(*).
func (c *windowChunk) frameSizes(fr frame) arrow.Array {
	out := make([]int64, len(fr.start))
	for i := range out {
		out[i] = int64(fr.end[i] - fr.start[i])
	}
	return fixedArray(c.env.Alloc, arrow.PrimitiveTypes.Int64, out, nil)
}

// feed gives the aggregate the rows from to to-1 of the chunk; ids names the group of each.
func (c *windowChunk) feed(ctx context.Context, acc accumulator, args []int, from, to int, ids func(i int) uint32) error {
	groups := make([]uint32, 0, min(feedRows, to-from))
	for ; from < to; from += feedRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(from+feedRows, to)
		groups = groups[:0]
		for i := from; i < end; i++ {
			groups = append(groups, ids(i))
		}
		if err := c.update(acc, args, c.order[c.from+from:c.from+end], groups); err != nil {
			return err
		}
	}
	return nil
}

// update gives the aggregate the rows of the stored columns.
func (c *windowChunk) update(acc accumulator, args []int, rows []int32, groups []uint32) error {
	cols := make([]arrow.Array, len(args))
	for i, a := range args {
		cols[i] = c.cols[a]
	}
	cols, err := takeColumns(c.env.Alloc, cols, rows, make([]arrow.Array, 0, len(args)))
	if err != nil {
		return err
	}
	defer releaseArrays(cols)
	if err := decode(c.env.Alloc, cols); err != nil {
		return err
	}
	return acc.update(groups, cols)
}

// wholeAggregate groups by partition and hands each row its partition's answer.
func (c *windowChunk) wholeAggregate(ctx context.Context, spec AggSpec, args []int) (arrow.Array, error) {
	res := c.env.Budget.Reserve()
	defer res.Free()
	acc, err := newAccumulator(c.env, res, spec)
	if err != nil {
		return nil, err
	}
	defer acc.close()
	parts, n := len(c.parts)-1, c.to-c.from
	if err := res.Grow(4 * int64(n)); err != nil {
		return nil, err
	}
	idx := make([]int32, n)
	for p := range parts {
		for i := c.parts[p]; i < c.parts[p+1]; i++ {
			idx[int(i)-c.from] = int32(p)
		}
	}
	if err := acc.resize(parts); err != nil {
		return nil, err
	}
	if err := c.feed(ctx, acc, args, 0, n, func(i int) uint32 { return uint32(idx[i]) }); err != nil {
		return nil, err
	}
	if err := acc.finish(); err != nil {
		return nil, err
	}
	answers, err := acc.result(c.env.Alloc, spec.Type, 0, parts)
	if err != nil {
		return nil, wrapAgg(spec, err)
	}
	defer answers.Release()
	return expr.TakeArray(c.env.Alloc, answers, idx)
}

// running is an aggregate over frames that begin with the partition, or end with it.
func (c *windowChunk) running(ctx context.Context, spec AggSpec, args []int, fr frame, forward bool) (arrow.Array, error) {
	res := c.env.Budget.Reserve()
	defer res.Free()
	acc, err := newAccumulator(c.env, res, spec)
	if err != nil {
		return nil, err
	}
	defer acc.close()
	n := c.to - c.from
	if err := acc.resize(n + 1); err != nil { // the last group stays empty
		return nil, err
	}
	if err := c.feed(ctx, acc, args, 0, n, func(i int) uint32 { return uint32(i) }); err != nil {
		return nil, err
	}
	if err := c.fold(ctx, acc, forward); err != nil {
		return nil, err
	}
	if err := acc.finish(); err != nil {
		return nil, err
	}
	answers, err := acc.result(c.env.Alloc, spec.Type, 0, n+1)
	if err != nil {
		return nil, wrapAgg(spec, err)
	}
	defer answers.Release()
	idx := make([]int32, n)
	for i := range idx {
		switch {
		case fr.start[i] >= fr.end[i]:
			idx[i] = int32(n)
		case forward:
			idx[i] = fr.end[i] - 1 - int32(c.from)
		default:
			idx[i] = fr.start[i] - int32(c.from)
		}
	}
	return expr.TakeArray(c.env.Alloc, answers, idx)
}

// fold unites the state of each row with those of all rows before it in its partition, or behind it.
func (c *windowChunk) fold(ctx context.Context, acc accumulator, forward bool) error {
	pairs := mergePairs{stop: ctx.Err, src: acc, dst: acc}
	for p := range len(c.parts) - 1 {
		first, last := int(c.parts[p])-c.from, int(c.parts[p+1])-c.from
		for k := 1; k < last-first; k++ {
			from, to := first+k-1, first+k
			if !forward {
				from, to = last-k, last-k-1
			}
			if err := pairs.add(from, to); err != nil {
				return err
			}
		}
	}
	return pairs.flush()
}

// mergePairs merges group by group, many with one call; what comes later sees what came before.
type mergePairs struct {
	stop     func() error // says why to go no further
	src, dst accumulator
	from, to []uint32
}

func (m *mergePairs) add(from, to int) error {
	m.from, m.to = append(m.from, uint32(from)), append(m.to, uint32(to))
	if len(m.from) < feedRows {
		return nil
	}
	return m.flush()
}

func (m *mergePairs) flush() error {
	if err := m.stop(); err != nil {
		return err
	}
	err := m.dst.merge(m.src, m.from, m.to)
	m.from, m.to = m.from[:0], m.to[:0]
	return err
}

// united is an aggregate over frames of any shape.
func (c *windowChunk) united(ctx context.Context, spec AggSpec, args []int, fr frame) (arrow.Array, error) {
	res := c.env.Budget.Reserve()
	defer res.Free()
	tree, err := newAccumulator(c.env, res, spec)
	if err != nil {
		return nil, err
	}
	defer tree.close()
	bases, err := c.plantTree(ctx, tree, args)
	if err != nil {
		return nil, err
	}
	return c.inBlocks(spec, func(acc accumulator, from, to int) error {
		pairs := mergePairs{stop: ctx.Err, src: tree, dst: acc}
		for i := from; i < to; i++ {
			s, e := int(fr.start[i])-c.from, int(fr.end[i])-c.from
			for level := 0; s < e; level++ {
				for ; s < e && s%treeFanout != 0; s++ {
					if err := pairs.add(bases[level]+s, i-from); err != nil {
						return err
					}
				}
				for ; s < e && e%treeFanout != 0; e-- {
					if err := pairs.add(bases[level]+e-1, i-from); err != nil {
						return err
					}
				}
				s, e = s/treeFanout, e/treeFanout
			}
		}
		return pairs.flush()
	})
}

// plantTree makes a group of each row and of each treeFanout nodes one above them, and returns where each level begins.
func (c *windowChunk) plantTree(ctx context.Context, tree accumulator, args []int) ([]int, error) {
	n := c.to - c.from
	var bases []int
	total := 0
	for size := n; ; size = (size + treeFanout - 1) / treeFanout {
		bases = append(bases, total)
		if total += size; size == 1 {
			break
		}
	}
	if err := tree.resize(total); err != nil {
		return nil, err
	}
	if err := c.feed(ctx, tree, args, 0, n, func(i int) uint32 { return uint32(i) }); err != nil {
		return nil, err
	}
	pairs := mergePairs{stop: ctx.Err, src: tree, dst: tree}
	for level := 1; level < len(bases); level++ {
		for i := range bases[level] - bases[level-1] {
			if err := pairs.add(bases[level-1]+i, bases[level]+i/treeFanout); err != nil {
				return nil, err
			}
		}
	}
	return bases, pairs.flush()
}

// inBlocks computes the rows of the chunk block by block: fill makes group i of the block the answer of row from+i.
func (c *windowChunk) inBlocks(spec AggSpec, fill func(acc accumulator, from, to int) error) (arrow.Array, error) {
	var parts []arrow.Array
	defer func() { releaseArrays(parts) }()
	for from := 0; from < c.to-c.from; from += frameBlockRows {
		to := min(from+frameBlockRows, c.to-c.from)
		part, err := c.block(spec, from, to, fill)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return concatArrays(c.env.Alloc, spec.Type, parts)
}

func (c *windowChunk) block(spec AggSpec, from, to int, fill func(acc accumulator, from, to int) error) (arrow.Array, error) {
	res := c.env.Budget.Reserve()
	defer res.Free()
	acc, err := newAccumulator(c.env, res, spec)
	if err != nil {
		return nil, err
	}
	defer acc.close()
	if err := acc.resize(to - from); err != nil {
		return nil, err
	}
	if err := fill(acc, from, to); err != nil {
		return nil, err
	}
	if err := acc.finish(); err != nil {
		return nil, err
	}
	out, err := acc.result(c.env.Alloc, spec.Type, 0, to-from)
	if err != nil {
		return nil, wrapAgg(spec, err)
	}
	return out, nil
}

// rowByRow gives an aggregate whose states do not unite the rows of each frame.
func (c *windowChunk) rowByRow(ctx context.Context, spec AggSpec, args []int, fr frame) (arrow.Array, error) {
	return c.inBlocks(spec, func(acc accumulator, from, to int) error {
		var rows []int32
		var groups []uint32
		flush := func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := c.update(acc, args, rows, groups)
			rows, groups = rows[:0], groups[:0]
			return err
		}
		for i := from; i < to; i++ {
			for at := fr.start[i]; at < fr.end[i]; at++ {
				rows, groups = append(rows, c.order[at]), append(groups, uint32(i-from))
				if len(rows) == feedRows {
					if err := flush(); err != nil {
						return err
					}
				}
			}
		}
		return flush()
	})
}
