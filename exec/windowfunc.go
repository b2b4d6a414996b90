package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// compute runs every function over every chunk.
func (s *windowState) compute(ctx context.Context) error {
	if s.plan.needsPeers() {
		if err := s.res.Grow(8 * int64(len(s.items))); err != nil {
			return err
		}
		defer func() {
			for _, c := range s.chunks {
				c.peerStart, c.peerEnd = nil, nil
			}
			s.res.Shrink(8 * int64(len(s.order)))
		}()
		err := runTasks(ctx, s.env, "window", len(s.chunks), func(_ context.Context, i int) error {
			s.chunks[i].findPeers()
			return nil
		})
		if err != nil {
			return err
		}
	}
	funcs := len(s.plan.Funcs)
	return runTasks(ctx, s.env, "window", len(s.chunks)*funcs, func(ctx context.Context, i int) error {
		c, f := s.chunks[i/funcs], i%funcs
		var err error
		c.results[f], err = c.eval(ctx, f)
		return err
	})
}

// eval computes function f for the rows of the chunk.
func (c *windowChunk) eval(ctx context.Context, f int) (arrow.Array, error) {
	w := &c.plan.Funcs[f]
	switch w.Func {
	case WindowAggregate:
		return c.aggregate(ctx, w, c.plan.args[f], c.plan.frames[f])
	case WindowLag, WindowLead:
		return c.neighbour(w, c.plan.args[f])
	case WindowFirst, WindowLast, WindowNth:
		return c.frameValue(w, c.plan.args[f][0], c.plan.frames[f])
	case WindowPercentRank, WindowCumeDist:
		return c.fractions(w.Func), nil
	}
	return c.numbers(w)
}

// numbers are ROW_NUMBER, RANK, DENSE_RANK and NTILE.
func (c *windowChunk) numbers(w *WindowSpec) (arrow.Array, error) {
	n := c.to - c.from
	res := c.env.Budget.Reserve()
	defer res.Free()
	if err := res.Grow(8 * int64(n)); err != nil {
		return nil, err
	}
	out := make([]uint64, n)
	for p := range len(c.parts) - 1 {
		first, last := int(c.parts[p])-c.from, int(c.parts[p+1])-c.from
		dense := uint64(0)
		for i := first; i < last; i++ {
			switch w.Func {
			case WindowRowNumber:
				out[i] = uint64(i-first) + 1
			case WindowRank:
				out[i] = uint64(int(c.peerStart[i])-c.from-first) + 1
			case WindowDenseRank:
				if int(c.peerStart[i]) == c.from+i {
					dense++
				}
				out[i] = dense
			case WindowNtile:
				out[i] = bucket(uint64(i-first), uint64(last-first), w.N)
			default:
				return nil, errs.New(errs.ErrInternal, "window function %q", w.Func)
			}
		}
	}
	return fixedArray(c.env.Alloc, arrow.PrimitiveTypes.Uint64, out, nil), nil
}

// bucket is the bucket from 1 of row i of n; the first n % buckets of them have one row more.
func bucket(i, n, buckets uint64) uint64 {
	size, more := n/buckets, n%buckets
	if i < more*(size+1) {
		return i/(size+1) + 1
	}
	return more + (i-more*(size+1))/size + 1
}

// fractions are PERCENT_RANK and CUME_DIST.
func (c *windowChunk) fractions(f WindowFunc) arrow.Array {
	out := make([]float64, c.to-c.from)
	for p := range len(c.parts) - 1 {
		first, last := c.parts[p], c.parts[p+1]
		for i := first; i < last; i++ {
			at := int(i) - c.from
			switch {
			case f == WindowCumeDist:
				out[at] = float64(c.peerEnd[at]-first) / float64(last-first)
			case last-first > 1:
				out[at] = float64(c.peerStart[at]-first) / float64(last-first-1)
			}
		}
	}
	return fixedArray(c.env.Alloc, arrow.PrimitiveTypes.Float64, out, nil)
}

// neighbour is LAG and LEAD: the value of the row N rows away, or what stands for it where the partition has no such row.
func (c *windowChunk) neighbour(w *WindowSpec, args []int) (arrow.Array, error) {
	idx := make([]int32, c.to-c.from)
	missing := false
	for p := range len(c.parts) - 1 {
		first, last := c.parts[p], c.parts[p+1]
		for i := first; i < last; i++ {
			at, ok := i-1, false
			switch {
			case w.Func == WindowLag && w.N <= uint64(i-first):
				at, ok = i-int32(w.N), true
			case w.Func == WindowLead && w.N < uint64(last-i):
				at, ok = i+int32(w.N), true
			}
			if ok {
				idx[int(i)-c.from] = c.order[at]
			} else {
				idx[int(i)-c.from], missing = -1, true
			}
		}
	}
	if !missing || len(args) == 1 {
		return expr.TakeArray(c.env.Alloc, c.cols[args[0]], idx)
	}
	return c.withDefault(args, idx)
}

// withDefault takes the rows idx of a stored column, and for -1 the row's own value of another one.
func (c *windowChunk) withDefault(args []int, idx []int32) (arrow.Array, error) {
	var own []int32
	both := make([]int32, len(idx))
	for i, at := range idx {
		if both[i] = int32(i); at < 0 {
			both[i] = int32(len(idx) + len(own))
			own = append(own, c.order[c.from+i])
		}
	}
	values, err := expr.TakeArray(c.env.Alloc, c.cols[args[0]], idx)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	defaults, err := expr.TakeArray(c.env.Alloc, c.cols[args[1]], own)
	if err != nil {
		return nil, err
	}
	defer defaults.Release()
	parts := []arrow.Array{values, defaults}
	values.Retain()
	defaults.Retain()
	defer func() { releaseArrays(parts) }()
	if err := decode(c.env.Alloc, parts); err != nil {
		return nil, err
	}
	all, err := concatArrays(c.env.Alloc, plainType(values.DataType()), parts)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	return expr.TakeArray(c.env.Alloc, all, both)
}

// frameValue is FIRST_VALUE, LAST_VALUE and NTH_VALUE.
func (c *windowChunk) frameValue(w *WindowSpec, arg int, cols frameColumns) (arrow.Array, error) {
	fr, err := c.frameOf(w.Frame, cols)
	defer fr.res.Free()
	if err != nil {
		return nil, err
	}
	idx := make([]int32, len(fr.start))
	for i := range idx {
		at, start, end := int32(-1), fr.start[i], fr.end[i]
		switch {
		case start >= end:
		case w.Func == WindowFirst:
			at = start
		case w.Func == WindowLast:
			at = end - 1
		case w.N >= 1 && w.N-1 < uint64(end-start):
			at = start + int32(w.N-1)
		}
		if at >= 0 {
			at = c.order[at]
		}
		idx[i] = at
	}
	return expr.TakeArray(c.env.Alloc, c.cols[arg], idx)
}
