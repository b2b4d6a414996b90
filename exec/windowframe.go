package exec

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
)

// windowChunk is some partitions, which one task computes. Places are positions in the window's order.
type windowChunk struct {
	*windowState
	from, to  int
	parts     []int32 // where its partitions begin, and to
	peerStart []int32 // of each row the first of its peers; nil where no function asks
	peerEnd   []int32 // behind the last
	results   []arrow.Array
}

// makeChunks cuts the partitions into tasks.
func (s *windowState) makeChunks() {
	rows := max(windowChunkRows, len(s.items)/(4*max(1, s.env.Workers)))
	for p := 0; p < len(s.starts)-1; {
		from, end := s.starts[p], p+1
		for end < len(s.starts)-1 && int(s.starts[end]-from) < rows {
			end++
		}
		s.chunks = append(s.chunks, &windowChunk{windowState: s, from: int(from), to: int(s.starts[end]), parts: s.starts[p : end+1], results: make([]arrow.Array, len(s.plan.Funcs))})
		p = end
	}
}

// needsPeers says that a function asks which rows tie.
func (p *Window) needsPeers() bool {
	for _, f := range p.Funcs {
		switch f.Func {
		case WindowRank, WindowDenseRank, WindowPercentRank, WindowCumeDist:
			return true
		}
		if f.framed() && !f.Frame.Rows && (f.Frame.needsKey() || f.Frame.Start.Kind == CurrentRow || f.Frame.End.Kind == CurrentRow) {
			return true
		}
	}
	return false
}

// findPeers fills peerStart and peerEnd. Without an order all rows of a partition are peers.
func (c *windowChunk) findPeers() {
	c.peerStart, c.peerEnd = make([]int32, c.to-c.from), make([]int32, c.to-c.from)
	for p := range len(c.parts) - 1 {
		first := c.parts[p]
		for i := first; i < c.parts[p+1]; i++ {
			if i > first && compareItems(c.keys, c.items[i-1], c.keys, c.items[i]) != 0 {
				c.endPeers(first, i)
				first = i
			}
			c.peerStart[int(i)-c.from] = first
		}
		c.endPeers(first, c.parts[p+1])
	}
}

func (c *windowChunk) endPeers(first, end int32) {
	for i := first; i < end; i++ {
		c.peerEnd[int(i)-c.from] = end
	}
}

// frame is where the frame of each row of a chunk begins and ends: rows start to end-1.
type frame struct {
	start, end []int32
	res        *mem.Reservation
}

// frameOf computes the frame of each row; the caller frees res.
func (c *windowChunk) frameOf(f Frame, cols frameColumns) (frame, error) {
	n := c.to - c.from
	out := frame{res: c.env.Budget.Reserve()}
	if err := out.res.Grow(8 * int64(n)); err != nil {
		return out, err
	}
	out.start, out.end = make([]int32, n), make([]int32, n)
	for p := range len(c.parts) - 1 {
		first, last := c.parts[p], c.parts[p+1]
		for i := first; i < last; i++ {
			at := int(i) - c.from
			out.start[at] = c.simpleStart(f, i, first, last)
			out.end[at] = c.simpleEnd(f, i, first, last)
		}
	}
	if f.needsKey() {
		if err := c.rangeFrame(f, cols, &out); err != nil {
			return out, err
		}
	}
	for i := range out.start {
		out.end[i] = max(out.end[i], out.start[i])
	}
	return out, nil
}

// simpleStart is the first row of the frame of row i, of the partition from first to last-1; RANGE offsets count as CURRENT ROW.
func (c *windowChunk) simpleStart(f Frame, i, first, last int32) int32 {
	switch {
	case f.Start.Kind == UnboundedPreceding:
		return first
	case !f.Rows:
		return c.peerStart[int(i)-c.from]
	case f.Start.Kind == OffsetPreceding:
		return before(i, f.Start.Offset, first)
	case f.Start.Kind == OffsetFollowing:
		return behind(i, f.Start.Offset, last)
	}
	return i
}

// simpleEnd is the row behind the frame of row i.
func (c *windowChunk) simpleEnd(f Frame, i, first, last int32) int32 {
	switch {
	case f.End.Kind == UnboundedFollowing:
		return last
	case !f.Rows:
		return c.peerEnd[int(i)-c.from]
	case f.End.Kind == OffsetPreceding:
		return before(i+1, f.End.Offset, first)
	case f.End.Kind == OffsetFollowing:
		return behind(i+1, f.End.Offset, last)
	}
	return i + 1
}

// before is n rows before i, and at least first.
func before(i int32, n uint64, first int32) int32 {
	if n >= uint64(i-first) {
		return first
	}
	return i - int32(n)
}

// behind is n rows behind i, and at most last.
func behind(i int32, n uint64, last int32) int32 {
	if n >= uint64(max(last-i, 0)) {
		return last
	}
	return i + int32(n)
}

// rangeFrame puts the bounds that are values into out. Rows whose key is NULL keep their peers.
func (c *windowChunk) rangeFrame(f Frame, cols frameColumns, out *frame) error {
	key, err := c.take(cols.key, c.from, c.to)
	if err != nil {
		return err
	}
	defer key.Release()
	for _, b := range []struct {
		at      int
		bound   FrameBound
		out     []int32
		passing bool // the bound is behind the rows that equal it
	}{{cols.start, f.Start, out.start, false}, {cols.end, f.End, out.end, true}} {
		if b.at < 0 {
			continue
		}
		value, err := c.take(b.at, c.from, c.to)
		if err != nil {
			return err
		}
		m := matcher{compare: valueOrder(key, value), desc: c.plan.Order[0].Desc, passing: b.passing}
		for p := range len(c.parts) - 1 {
			c.matchPartition(m, key, value, b.bound.Kind, int(c.parts[p])-c.from, int(c.parts[p+1])-c.from, b.out)
		}
		value.Release()
	}
	return nil
}

// matcher finds the first row at or behind a value, or with passing the first behind it.
type matcher struct {
	compare func(i, j int) int // key of row i with the value of row j
	desc    bool
	passing bool
}

// before says that row i lies before the bound of row j.
func (m matcher) before(i, j int) bool {
	c := m.compare(i, j)
	if m.desc {
		c = -c
	}
	return c < 0 || c == 0 && m.passing
}

// matchPartition writes a bound for the rows from to to-1 of the chunk, a partition. The bounds of its rows go up with their keys.
func (c *windowChunk) matchPartition(m matcher, key, value arrow.Array, kind BoundKind, from, to int, out []int32) {
	for from < to && key.IsNull(from) { // NULLs lie at one end
		from++
	}
	for from < to && key.IsNull(to-1) {
		to--
	}
	at := from
	for j := from; j < to; j++ {
		if value.IsNull(j) { // beyond all values
			if out[j] = int32(c.from + to); kind == OffsetPreceding {
				out[j] = int32(c.from + from)
			}
			continue
		}
		for at < to && m.before(at, j) {
			at++
		}
		out[j] = int32(c.from + at)
	}
}

// valueOrder compares value i of a with value j of b, which has the same type; neither is NULL.
func valueOrder(a, b arrow.Array) func(i, j int) int {
	if exactPrefix(a.DataType()) {
		x, y := make([]uint64, a.Len()), make([]uint64, b.Len())
		orderedPrefix(a, x)
		orderedPrefix(b, y)
		return func(i, j int) int {
			switch {
			case x[i] < y[j]:
				return -1
			case x[i] > y[j]:
				return 1
			}
			return 0
		}
	}
	x, y := orderedAppender(a), orderedAppender(b)
	var p, q []byte
	return func(i, j int) int {
		p, q = x(p[:0], i), y(q[:0], j)
		return bytes.Compare(p, q)
	}
}

// take gathers a stored column for the places from to to-1, dictionaries decoded.
func (c *windowChunk) take(column, from, to int) (arrow.Array, error) {
	cols := make([]arrow.Array, 1)
	var err error
	if cols[0], err = expr.TakeArray(c.env.Alloc, c.cols[column], c.order[from:to]); err != nil {
		return nil, err
	}
	if err := decode(c.env.Alloc, cols); err != nil {
		cols[0].Release()
		return nil, err
	}
	return cols[0], nil
}
