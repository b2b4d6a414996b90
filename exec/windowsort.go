package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// windowState is what the workers of one Window share.
type windowState struct {
	shared
	plan *Window
	env  *Env
	done lazy[struct{}]

	runs   []*windowRun     // all that were made
	res    *mem.Reservation // of what follows
	keys   *sortKeys        // of all rows: what their items do not tell
	items  []sortItem       // by partition, in order
	starts []int32          // where each partition begins in items, and where the last one ends
	cols   []arrow.Array    // the stored columns of all rows
	order  []int32          // rows as they come out
	chunks []*windowChunk
	cursor windowCursor
}

// windowRun is what one worker gathered.
type windowRun struct {
	*windowState
	eval     *evaluator // the partition keys, then what is stored
	keysRes  *mem.Reservation
	keys     *sortKeys
	batches  []arrow.RecordBatch
	groupRes *mem.Reservation
	groups   grouper
	ids      []uint32 // partition of each row, as groups numbers them
	trimAt   int      // rows from which on trim pays
}

const (
	// windowTrimRows is from how many rows on a worker drops those behind the window's limit.
	windowTrimRows = 1 << 16
	// windowChunkRows is how many rows at least are computed as one task, where there are so many.
	windowChunkRows = 1 << 13
	// windowSplitRows is from how many rows on one partition is sorted by several workers.
	windowSplitRows = 1 << 16
)

func (s *windowState) newRun() (*windowRun, error) {
	r := &windowRun{windowState: s, keysRes: s.env.Budget.Reserve(), groupRes: s.env.Budget.Reserve(), trimAt: windowTrimRows}
	s.mu.Lock()
	s.runs = append(s.runs, r)
	s.mu.Unlock()
	types := make([]arrow.DataType, len(s.plan.Partition))
	for i, e := range s.plan.Partition {
		types[i] = e.Type()
	}
	var err error
	if r.groups, err = newGrouper(s.env.Alloc, r.groupRes, types, true); err != nil {
		return nil, err
	}
	if r.keys, err = newSortKeys(s.env, s.plan.Input.Schema(), s.plan.Order, r.keysRes); err != nil {
		return nil, err
	}
	r.eval, err = newEvaluator(s.env, s.plan.Input.Schema(), append(s.plan.Partition[:len(s.plan.Partition):len(s.plan.Partition)], s.plan.stored...)...)
	return r, err
}

// add takes b over.
func (r *windowRun) add(b arrow.RecordBatch) error {
	defer b.Release()
	if err := r.keys.append(b); err != nil {
		return err
	}
	cols, err := r.eval.columns(b, nil)
	if err != nil {
		return err
	}
	n, keys, first := int(b.NumRows()), len(r.plan.Partition), len(r.ids)
	defer func() { releaseArrays(cols[:keys]) }()
	r.batches = append(r.batches, newBatch(r.plan.layout, cols[keys:], n))
	if r.ids, err = grown(r.groupRes, r.ids, n, 4); err != nil {
		return err
	}
	if err := r.groups.assign(cols[:keys], n, r.ids[first:]); err != nil {
		return err
	}
	if r.plan.Limit != nil && len(r.ids) >= r.trimAt {
		return r.trim()
	}
	return nil
}

// trim drops the rows behind the window's limit.
func (r *windowRun) trim() error {
	n := len(r.ids)
	if err := r.groupRes.Grow(int64(n) * 2 * sortItemBytes); err != nil {
		return err
	}
	defer r.groupRes.Shrink(int64(n) * 2 * sortItemBytes)
	items, other := make([]sortItem, n), make([]sortItem, n)
	starts := placeByGroup(r.keys.items, 0, r.ids, nil, groupStarts(r.ids, nil, r.groups.count()), items)
	for i := range len(starts) - 1 {
		sortRange(r.keys, items[starts[i]:starts[i+1]], other[starts[i]:starts[i+1]])
	}
	items, _ = r.plan.Limit.cut(r.keys, items, starts)
	r.trimAt = max(windowTrimRows, 2*len(items))
	if len(items) == n {
		return nil
	}
	keep := make([]bool, n)
	for _, it := range items {
		keep[it.row] = true
	}
	idx := make([]int32, 0, len(items)) // in order of arrival, which breaks ties
	for row, yes := range keep {
		if yes {
			r.ids[len(idx)] = r.ids[row]
			idx = append(idx, int32(row))
		}
	}
	r.ids = r.ids[:len(idx)]
	r.keys.keep(idx)
	batches := r.batches
	r.batches = nil
	cols, err := concatColumns(r.env.Alloc, r.plan.layout, batches)
	if err != nil {
		return err
	}
	defer releaseArrays(cols)
	kept, err := takeColumns(r.env.Alloc, cols, idx, make([]arrow.Array, 0, len(cols)))
	if err != nil {
		return err
	}
	r.batches = []arrow.RecordBatch{newBatch(r.plan.layout, kept, len(idx))}
	return nil
}

// keep drops all rows but those of idx, ascending, which become rows 0 to len(idx)-1. Items are still in order of arrival.
func (s *sortKeys) keep(idx []int32) {
	at := int64(0)
	for to, from := range idx {
		s.items[to] = s.items[from]
		s.items[to].row = uint32(to)
		if len(s.ends) > 0 {
			start, end := s.ends[from], s.ends[from+1]
			s.ends[to] = at
			at += int64(copy(s.rest[at:], s.rest[start:end]))
		}
	}
	s.items = s.items[:len(idx)]
	if len(s.ends) > 0 {
		s.ends = s.ends[:len(idx)+1]
		s.ends[len(idx)] = at
		s.rest = s.rest[:at]
	}
}

// groupStarts counts the rows of each group, whose id is that of ids or what to says of it, and returns where each begins, and the end.
func groupStarts(ids, to []uint32, groups int) []int32 {
	starts := make([]int32, groups+1)
	countGroups(ids, to, starts)
	sumStarts(starts)
	return starts
}

func countGroups(ids, to []uint32, counts []int32) {
	for _, id := range ids {
		if to != nil {
			id = to[id]
		}
		counts[id+1]++
	}
}

func sumStarts(starts []int32) {
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
}

// placeByGroup writes items, whose rows move up by base, to the places of their groups, which starts names, and returns where the groups begin.
func placeByGroup(items []sortItem, base uint32, ids, to []uint32, starts []int32, out []sortItem) []int32 {
	next := append([]int32(nil), starts...)
	placeNext(items, base, ids, to, next, out)
	return starts
}

func placeNext(items []sortItem, base uint32, ids, to []uint32, next []int32, out []sortItem) {
	for i, it := range items {
		id := ids[i]
		if to != nil {
			id = to[id]
		}
		it.row += base
		out[next[id]] = it
		next[id]++
	}
}

// sortRange sorts items in place; other is as long.
func sortRange(k *sortKeys, items, other []sortItem) {
	if sorted := k.sortItems(items, other); len(sorted) > 0 && &sorted[0] != &items[0] {
		copy(items, sorted)
	}
}

// cut returns the items, by partition and in order, that are not behind the limit, and where the partitions begin.
func (l *WindowLimit) cut(k *sortKeys, items []sortItem, starts []int32) ([]sortItem, []int32) {
	out, begins := items[:0], make([]int32, 1, len(starts))
	for p := range len(starts) - 1 {
		from, to := int(starts[p]), int(starts[p+1])
		rank := uint64(0)
		for i := from; i < to; i++ {
			isPeer := i > from && compareItems(k, items[i-1], k, items[i]) == 0
			switch {
			case l.By == WindowRowNumber:
				rank++
			case isPeer:
			case l.By == WindowRank:
				rank = uint64(i-from) + 1
			default:
				rank++
			}
			if rank > l.K {
				to = i
			}
		}
		n := len(out)
		out = out[:n+to-from] // items are read before they are overwritten: out is never ahead
		copy(out[n:], items[from:to])
		begins = append(begins, int32(len(out)))
	}
	return out, begins
}

// run gathers the input and computes all functions.
func (s *windowState) run(ctx context.Context) error {
	s.res = s.env.Budget.Reserve()
	err := consume(ctx, s.env, s.plan.Input, func() (func(arrow.RecordBatch) error, error) {
		r, err := s.newRun()
		if err != nil {
			return nil, err
		}
		return r.add, nil
	})
	if err != nil {
		return err
	}
	if err := s.bringTogether(); err != nil {
		return err
	}
	itemBytes := int64(len(s.items)) * sortItemBytes
	if len(s.items) == 0 {
		return nil
	}
	if err := s.sortPartitions(ctx); err != nil {
		return err
	}
	if s.plan.Limit != nil {
		s.items, s.starts = s.plan.Limit.cut(s.keys, s.items, s.starts)
	}
	if err := s.res.Grow(4 * int64(len(s.items))); err != nil {
		return err
	}
	s.order = make([]int32, len(s.items))
	for i, it := range s.items {
		s.order[i] = int32(it.row)
	}
	s.env.Stats.Node(s.plan).Add("partitions", int64(len(s.starts)-1))
	s.makeChunks()
	if err := s.compute(ctx); err != nil {
		return err
	}
	s.dropKeys()
	s.res.Shrink(itemBytes)
	return nil
}

// bringTogether joins what the workers gathered: columns, sort keys, and the items by partition.
func (s *windowState) bringTogether() error {
	total := 0
	var batches []arrow.RecordBatch
	for _, r := range s.runs {
		if total += len(r.ids); total > rowsMax {
			return errs.New(errs.ErrUnsupported, "a window over more than %d rows", rowsMax)
		}
		batches = append(batches, r.batches...)
		r.batches = nil
	}
	if total == 0 {
		releaseBatches(batches)
		return nil
	}
	var err error
	if s.cols, err = concatColumns(s.env.Alloc, s.plan.layout, batches); err != nil {
		return err
	}
	settleNulls(s.cols)
	maps, groups, err := s.joinGroups()
	if err != nil {
		return err
	}
	if err := s.res.Grow(int64(total)*sortItemBytes + int64(groups+1)*8); err != nil {
		return err
	}
	s.starts = make([]int32, groups+1)
	for i, r := range s.runs {
		countGroups(r.ids, maps[i], s.starts)
	}
	sumStarts(s.starts)
	next := append([]int32(nil), s.starts...)
	s.items = make([]sortItem, total)
	base := uint32(0)
	for i, r := range s.runs {
		placeNext(r.keys.items, base, r.ids, maps[i], next, s.items)
		base += uint32(len(r.ids))
	}
	if err := s.joinKeys(total); err != nil {
		return err
	}
	for _, r := range s.runs {
		r.ids = nil
		r.closeGroups()
	}
	return nil
}

func (r *windowRun) closeGroups() {
	if r.groups != nil {
		r.groups.close()
		r.groups = nil
	}
	r.groupRes.Free()
}

// joinGroups numbers the partitions of all runs as the first one does. A nil map changes nothing.
func (s *windowState) joinGroups() (maps [][]uint32, groups int, err error) {
	first := s.runs[0].groups
	maps = make([][]uint32, len(s.runs))
	for i, r := range s.runs[1:] {
		n := r.groups.count()
		if n == 0 {
			continue
		}
		if err := r.groupRes.Grow(4 * int64(n)); err != nil {
			return nil, 0, err
		}
		keys, err := r.groups.keys(s.env.Alloc, 0, n)
		if err != nil {
			return nil, 0, err
		}
		maps[i+1] = make([]uint32, n)
		err = first.assign(keys, n, maps[i+1])
		releaseArrays(keys)
		if err != nil {
			return nil, 0, err
		}
	}
	return maps, first.count(), nil
}

// joinKeys makes one sortKeys of those of all runs, without items.
func (s *windowState) joinKeys(total int) error {
	s.keys = s.runs[0].keys
	if len(s.runs) == 1 || !s.keys.hasRest() {
		return nil
	}
	size := int64(0)
	for _, r := range s.runs {
		size += int64(len(r.keys.rest))
	}
	if err := s.res.Grow(size + 8*int64(total+1)); err != nil {
		return err
	}
	all := &sortKeys{keys: s.keys.keys, exact: s.keys.exact, rest: make([]byte, 0, size), ends: make([]int64, 1, total+1)}
	for _, r := range s.runs {
		base := int64(len(all.rest))
		all.rest = append(all.rest, r.keys.rest...)
		for _, e := range r.keys.ends[min(1, len(r.keys.ends)):] {
			all.ends = append(all.ends, base+e)
		}
		r.keys = nil
		r.keysRes.Free()
	}
	s.keys = all
	return nil
}

// dropKeys frees what only sorting and comparing need.
func (s *windowState) dropKeys() {
	for _, r := range s.runs {
		r.keys = nil
		r.keysRes.Free()
	}
	s.keys, s.items = nil, nil
}

// sortPartitions sorts the items of each partition, large partitions by several workers, the others in tasks of many.
func (s *windowState) sortPartitions(ctx context.Context) error {
	if len(s.plan.Order) == 0 {
		return nil
	}
	if err := s.res.Grow(int64(len(s.items)) * sortItemBytes); err != nil {
		return err
	}
	defer s.res.Shrink(int64(len(s.items)) * sortItemBytes)
	other := make([]sortItem, len(s.items))
	var small [][2]int // ranges of partitions
	for p := 0; p < len(s.starts)-1; {
		from, end := s.starts[p], p+1
		if s.env.Workers > 1 && s.starts[end]-from >= windowSplitRows {
			if err := s.sortSplit(ctx, s.items[from:s.starts[end]], other[from:s.starts[end]]); err != nil {
				return err
			}
			p = end
			continue
		}
		for end < len(s.starts)-1 && s.starts[end+1]-s.starts[end] < windowSplitRows && s.starts[end]-from < windowSplitRows/4 {
			end++
		}
		small = append(small, [2]int{p, end})
		p = end
	}
	return runTasks(ctx, s.env, "window", len(small), func(_ context.Context, i int) error {
		for p := small[i][0]; p < small[i][1]; p++ {
			from, to := s.starts[p], s.starts[p+1]
			sortRange(s.keys, s.items[from:to], other[from:to])
		}
		return nil
	})
}

// sortSplit sorts pieces of items on all workers, then merges neighbours until one is left.
func (s *windowState) sortSplit(ctx context.Context, items, other []sortItem) error {
	pieces := 1
	for pieces < s.env.Workers && len(items)/pieces > windowSplitRows/2 {
		pieces *= 2
	}
	at := func(i int) int { return len(items) * i / pieces }
	err := runTasks(ctx, s.env, "window", pieces, func(_ context.Context, i int) error {
		sortRange(s.keys, items[at(i):at(i+1)], other[at(i):at(i+1)])
		return nil
	})
	from, to := items, other
	for width := 1; width < pieces && err == nil; width *= 2 {
		err = runTasks(ctx, s.env, "window", pieces/(2*width), func(_ context.Context, i int) error {
			a, b, c := at(2*i*width), at((2*i+1)*width), at((2*i+2)*width)
			s.keys.mergeItems(from[a:b], from[b:c], to[a:c])
			return nil
		})
		from, to = to, from
	}
	if err == nil && &from[0] != &items[0] {
		copy(items, from)
	}
	return err
}

// mergeItems merges two sorted lists into out.
func (s *sortKeys) mergeItems(a, b, out []sortItem) {
	for n := range out {
		if len(b) == 0 || len(a) > 0 && s.compareTotal(a[0], b[0]) <= 0 {
			out[n], a = a[0], a[1:]
		} else {
			out[n], b = b[0], b[1:]
		}
	}
}

func (s *windowState) free() error {
	for _, r := range s.runs {
		releaseBatches(r.batches)
		r.batches = nil
		r.closeGroups()
		r.keysRes.Free()
	}
	for _, c := range s.chunks {
		releaseArrays(c.results)
	}
	releaseArrays(s.cols)
	s.cols, s.chunks, s.order = nil, nil, nil
	s.dropKeys()
	if s.res != nil {
		s.res.Free()
	}
	return nil
}
