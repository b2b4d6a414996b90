package lance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/rowset"
)

// VectorIndex implements exec.VectorTable.
func (t *Table) VectorIndex(ctx context.Context, column string, metric index.Metric) (exec.VectorChoice, error) {
	out := exec.VectorChoice{Reason: "no vector index on " + column}
	for i := range t.groups {
		g := &t.groups[i]
		if g.info.Column != column || !isVectorKind(g.info.Kind) {
			continue
		}
		switch {
		case g.info.Metric != metric:
			out.Reason = fmt.Sprintf("index %s is for %s, not %s", g.info.Name, g.info.Metric, metric)
			continue
		case !g.info.Usable:
			out.Reason = fmt.Sprintf("index %s: %s", g.info.Name, g.info.Reason)
			continue
		}
		c, err := t.open(ctx, g, func(storage.IndexInfo, index.Segment) {})
		if err != nil {
			return out, fmt.Errorf("index %s of %s: %w", g.info.Name, t.ref, err)
		}
		out.Faults = append(out.Faults, c.faults...)
		if c.opened == 0 && len(c.faults) > 0 {
			out.Reason = c.faults[0].String()
			continue
		}
		out.OK, out.Info, out.Reason = true, c.info, ""
		return out, nil
	}
	return out, nil
}

func isVectorKind(k index.Kind) bool {
	switch k {
	case index.KindLabelList, index.KindBitmap, index.KindBTree, index.KindZoneMap:
		return false
	}
	return true
}

func (t *Table) nearestSegment(ctx context.Context, g *indexGroup, info storage.IndexInfo) (index.NearestSegment, error) {
	s, err := t.segment(ctx, g, info)
	if err != nil {
		return nil, err
	}
	n, ok := s.(index.NearestSegment)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "segment %s of kind %s searches no vectors", info.UUID, g.info.Kind)
	}
	return n, nil
}

// SearchTasks implements exec.VectorTable: one task per index segment that covers a live fragment, one per fragment that none covers.
func (t *Table) SearchTasks(ctx context.Context, req exec.SearchRequest) ([]exec.SearchTask, error) {
	var tasks []exec.SearchTask
	covered := roaring.New()
	if req.Index != "" {
		g := t.group(req.Index)
		if g == nil {
			return nil, errs.New(errs.ErrNotFound, "index %s of %s", req.Index, t.ref)
		}
		for _, info := range g.segments {
			own := roaring.AndNot(roaring.And(info.Covers, g.info.Covers), covered)
			if own.IsEmpty() {
				continue
			}
			seg, err := t.nearestSegment(ctx, g, info)
			if err != nil && t.isFault(err) {
				tell(req, faultOf(info, err))
				continue // its fragments are left to the tasks below, unless another segment covers them
			}
			if err != nil {
				return nil, fmt.Errorf("index %s of %s: %w", g.info.Name, t.ref, err)
			}
			covered.Or(own)
			task := &segmentTask{table: t, segment: seg, info: info, req: req, covers: own, allVisible: t.allVisible(own, info.Covers)}
			if task.isWanted() {
				tasks = append(tasks, task)
			}
		}
	}
	var rest []uint32
	for _, id := range t.FragmentIDs() {
		if !covered.Contains(id) && (req.Among == nil || req.Among.Bitmap(id) != nil) {
			rest = append(rest, id)
		}
	}
	scanner, err := t.scanner(req.Column, req.Metric, req.Query, req.K, req.Budget)
	if err != nil {
		return nil, err
	}
	for _, id := range rest {
		tasks = append(tasks, &fragmentTask{table: t, req: req, fragment: id, scanner: scanner})
	}
	return tasks, nil
}

// tell reports a segment that cannot be read to who asked.
func tell(req exec.SearchRequest, f exec.IndexFault) {
	if req.Fault != nil {
		req.Fault(f)
	}
}

// allVisible says that every row of the segment is live where the segment saw it: nothing was deleted, moved or compacted away.
func (t *Table) allVisible(live, indexed *roaring.Bitmap) bool {
	if t.snap.HasStableRowIDs() || live.GetCardinality() != indexed.GetCardinality() {
		return false
	}
	for _, f := range t.snap.Fragments() {
		if live.Contains(f.ID()) && f.Rows() < f.PhysicalRows() {
			return false
		}
	}
	return true
}

// segmentTask searches one index segment.
type segmentTask struct {
	table   *Table
	segment index.NearestSegment
	info    storage.IndexInfo
	req     exec.SearchRequest
	covers  *roaring.Bitmap
	// allVisible: every row of the segment may be a hit as far as the snapshot is concerned.
	allVisible bool
}

// isWanted says that the segment may hold a candidate.
func (s *segmentTask) isWanted() bool {
	return s.req.Among == nil || !s.req.Among.OnlyUppers(s.covers).IsEmpty()
}

// candidates returns the stored keys that the segment may answer with, nil where all its rows are. held pays for them.
func (s *segmentTask) candidates(ctx context.Context, held *mem.Reservation) (*rowset.Set, error) {
	addrs := s.req.Among.OnlyUppers(s.covers) // shares the bitmaps
	if s.req.Among == nil {
		if s.allVisible {
			return nil, nil //nolint:nilnil // nil = all
		}
		var err error
		if addrs, err = s.table.snap.LiveRows(ctx, s.covers.ToArray()); err != nil {
			return nil, err
		}
	}
	if err := held.Grow(2 * addrs.SizeBytes()); err != nil {
		return nil, err
	}
	return s.table.snap.Keys(ctx, addrs)
}

// Describe implements exec.SearchTask.
func (s *segmentTask) Describe() string { return "segment " + s.segment.Meta().UUID[:8] }

// Run implements exec.SearchTask. Where the segment turns out to be damaged, the rows that it covers are compared one by one.
func (s *segmentTask) Run(ctx context.Context) ([]exec.SearchHit, bool, index.NearestStats, error) {
	hits, approximate, stats, err := s.search(ctx)
	var broken *segmentError
	if !errors.As(err, &broken) || !s.table.isFault(broken.err) {
		return hits, approximate, stats, err
	}
	tell(s.req, s.table.damaged(s.info, broken.err))
	hits, stats, err = s.exact(ctx)
	return hits, false, stats, err
}

// segmentError is an error of the index files, not of the table's.
type segmentError struct{ err error }

func (e *segmentError) Error() string { return e.err.Error() }
func (e *segmentError) Unwrap() error { return e.err }

// exact searches the fragments that the segment covers without it.
func (s *segmentTask) exact(ctx context.Context) ([]exec.SearchHit, index.NearestStats, error) {
	var all index.NearestStats
	scanner, err := s.table.scanner(s.req.Column, s.req.Metric, s.req.Query, s.req.K, s.req.Budget)
	if err != nil {
		return nil, all, err
	}
	held := s.req.Budget.Reserve()
	defer held.Free()
	var hits []exec.SearchHit
	for _, id := range s.covers.ToArray() {
		if s.req.Among != nil && s.req.Among.Bitmap(id) == nil {
			continue
		}
		task := &fragmentTask{table: s.table, req: s.req, fragment: id, scanner: scanner}
		found, _, stats, err := task.Run(ctx)
		if err != nil {
			return nil, all, err
		}
		all.RowsCompared += stats.RowsCompared
		all.BytesRead += stats.BytesRead
		if err := held.Resize(int64(len(hits)+len(found)) * 16); err != nil {
			return nil, all, err
		}
		hits = append(hits, found...)
		slices.SortFunc(hits, nearer)
		hits = hits[:min(len(hits), s.req.K)]
	}
	return hits, all, nil
}

func nearer(a, b exec.SearchHit) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Addr, b.Addr))
}

func (s *segmentTask) search(ctx context.Context) ([]exec.SearchHit, bool, index.NearestStats, error) {
	var stats index.NearestStats
	held := s.req.Budget.Reserve()
	defer held.Free()
	among, err := s.candidates(ctx, held)
	if err != nil {
		return nil, false, stats, err
	}
	if s.segment.Meta().Stale {
		hits, err := s.runStale(ctx, among, &stats)
		return hits, true, stats, err
	}
	f, err := s.nearest(ctx, among, s.req.K, &stats)
	return f.hits, s.segment.Quantized(), stats, err
}

// found is what a segment answered.
type found struct {
	hits []exec.SearchHit // visible rows, each once, nearest first
	last float32          // distance of the farthest entry, visible or not
	all  bool             // the segment has no more entries to give
}

func (s *segmentTask) nearest(ctx context.Context, among *rowset.Set, k int, stats *index.NearestStats) (found, error) {
	var entries []index.Hit
	err := spawn.Guard(func() (err error) { // a mapped file may have shrunk
		entries, err = s.segment.Nearest(ctx, index.NearestQuery{
			Vector: s.req.Query, Metric: s.req.Metric, K: k, Among: among, MinProbes: s.req.MinProbes, MaxProbes: s.req.MaxProbes,
			Stats: stats, Budget: s.req.Budget,
		})
		return err
	})
	if err != nil {
		return found{}, &segmentError{err}
	}
	held := s.req.Budget.Reserve()
	defer held.Free()
	// The entries, their keys, their addresses (a set of them too) and the hits made of these.
	if err := held.Grow(int64(len(entries)) * (16 + 8 + 9 + 16 + 16)); err != nil {
		return found{}, err
	}
	keys := make([]uint64, len(entries))
	for i, h := range entries {
		keys[i] = h.Key
	}
	addrs, ok, err := s.table.snap.ResolveKeys(ctx, keys)
	if err != nil {
		return found{}, err
	}
	out := found{hits: make([]exec.SearchHit, 0, len(entries)), all: len(entries) < k}
	seen := make(map[rowset.RowAddr]bool, len(entries))
	for i, h := range entries {
		if ok[i] && s.covers.Contains(addrs[i].Fragment()) && !seen[addrs[i]] {
			seen[addrs[i]] = true
			out.hits = append(out.hits, exec.SearchHit{Addr: addrs[i], Distance: h.Distance})
		}
		out.last = h.Distance
	}
	return out, nil
}

// runStale searches a segment that may still hold entries from before an update beside the present ones (index.Meta.Stale). Its
// distances say where to look alone: those of the rows as they are count. A row that was not found lies at least as far as the farthest
// entry, so rows that are nearer than that are sure; it asks for more until K are. Where distances are quantized as well, K rows will do.
func (s *segmentTask) runStale(ctx context.Context, among *rowset.Set, stats *index.NearestStats) ([]exec.SearchHit, error) {
	for k := s.req.K; ; k *= 2 {
		f, err := s.nearest(ctx, among, k, stats)
		if err != nil {
			return nil, err
		}
		hits, err := s.present(ctx, f.hits)
		if err != nil {
			return nil, err
		}
		sure := len(hits)
		if !s.segment.Quantized() {
			sure = sort.Search(len(hits), func(i int) bool { return hits[i].Distance > f.last })
		}
		if f.all || sure >= s.req.K {
			return hits[:min(len(hits), s.req.K)], nil
		}
	}
}

// present puts the distances of the rows as they are in place of the segment's, and sorts; rows without a vector drop out.
func (s *segmentTask) present(ctx context.Context, hits []exec.SearchHit) ([]exec.SearchHit, error) {
	held := s.req.Budget.Reserve()
	defer held.Free()
	if err := held.Grow(int64(len(hits)) * (8 + 4)); err != nil {
		return nil, err
	}
	addrs := make([]rowset.RowAddr, len(hits))
	for i, h := range hits {
		addrs[i] = h.Addr
	}
	distances, err := s.table.Distances(ctx, s.req, addrs)
	if err != nil {
		return nil, err
	}
	out := hits[:0]
	for i, h := range hits {
		if d := distances[i]; !math.IsNaN(float64(d)) {
			out = append(out, exec.SearchHit{Addr: h.Addr, Distance: d})
		}
	}
	slices.SortFunc(out, nearer)
	return out, nil
}

// fragmentTask compares the query with every candidate of one fragment.
type fragmentTask struct {
	table    *Table
	req      exec.SearchRequest
	fragment uint32
	scanner  func(*index.NearestStats) (*vector.Scanner, error)
}

// Describe implements exec.SearchTask.
func (f *fragmentTask) Describe() string { return fmt.Sprintf("fragment %d", f.fragment) }

// Run implements exec.SearchTask.
func (f *fragmentTask) Run(ctx context.Context) ([]exec.SearchHit, bool, index.NearestStats, error) {
	var stats index.NearestStats
	part, isMapped, err := f.table.part(ctx, f.req.Column, f.fragment)
	if err != nil {
		return nil, false, stats, err
	}
	if f.req.Among != nil {
		part.Candidates = f.req.Among.Bitmap(f.fragment)
	} else if part.Candidates, err = f.table.liveOf(ctx, f.fragment); err != nil {
		return nil, false, stats, err
	}
	var found []index.Hit
	if isMapped {
		found, err = f.runMapped(ctx, part, &stats)
	} else {
		found, err = f.runRemote(ctx, part, &stats)
	}
	if err != nil {
		return nil, false, stats, err
	}
	held := f.req.Budget.Reserve()
	defer held.Free()
	if err := held.Grow(int64(len(found)) * (16 + 16)); err != nil {
		return nil, false, stats, err
	}
	hits := make([]exec.SearchHit, len(found))
	for i, h := range found {
		hits[i] = exec.SearchHit{Addr: rowset.RowAddr(h.Key), Distance: h.Distance}
	}
	return hits, false, stats, nil
}

func (f *fragmentTask) runMapped(ctx context.Context, part vector.Part, stats *index.NearestStats) ([]index.Hit, error) {
	held := f.req.Budget.Reserve()
	defer held.Free()
	var err error
	if part.Blocks, err = f.table.mappedBlocks(ctx, f.req.Column, f.fragment, held); err != nil {
		return nil, err
	}
	scanner, err := f.scanner(stats)
	if err != nil {
		return nil, err
	}
	return scanner.Nearest(ctx, []vector.Part{part})
}

// part returns a fragment's vectors without their blocks, and whether these lie in mappings.
func (t *Table) part(ctx context.Context, column string, fragment uint32) (vector.Part, bool, error) {
	isMapped, err := t.snap.IsMapped(ctx, column, fragment)
	if err != nil {
		err = fmt.Errorf("fragment %d column %q: %w", fragment, column, err)
	}
	return vector.Part{KeyBase: uint64(rowset.Addr(fragment, 0))}, isMapped, err
}

// mappedBlocks returns a fragment's vectors where they lie; held pays for what has to be decoded.
func (t *Table) mappedBlocks(ctx context.Context, column string, fragment uint32, held *mem.Reservation) ([]vector.Block, error) {
	blocks, err := t.snap.VectorBlocksOf(ctx, column, fragment, storage.VectorRange{Held: held})
	if err != nil {
		return nil, fmt.Errorf("fragment %d column %q: %w", fragment, column, err)
	}
	return blocks, nil
}

// liveOf returns the live offsets of a fragment, nil where none is deleted.
func (t *Table) liveOf(ctx context.Context, fragment uint32) (*roaring.Bitmap, error) {
	for _, f := range t.snap.Fragments() {
		if f.ID() == fragment && f.Rows() < f.PhysicalRows() {
			live, err := t.snap.LiveRows(ctx, []uint32{fragment})
			if err != nil {
				return nil, err
			}
			if b := live.Bitmap(fragment); b != nil {
				return b, nil
			}
			return roaring.New(), nil
		}
	}
	return nil, nil //nolint:nilnil // nil = all rows
}

// scanner returns a maker of exact scanners over a column. Each task runs on one goroutine: the search runs tasks side by side.
func (t *Table) scanner(column string, metric index.Metric, query []float32, k int, budget *mem.Budget) (func(*index.NearestStats) (*vector.Scanner, error), error) {
	elem, err := t.vectorElem(column, len(query))
	if err != nil {
		return nil, err
	}
	parallelism := 1
	if len(t.snap.Fragments()) == 1 {
		parallelism = 0
	}
	return func(stats *index.NearestStats) (*vector.Scanner, error) {
		return vector.NewScanner(vector.ScanOptions{Metric: metric, Elem: elem, Vector: query, K: k, Parallelism: parallelism, Budget: budget, Stats: stats})
	}, nil
}

func (t *Table) vectorElem(column string, dim int) (vec.Elem, error) {
	var typ arrow.DataType
	for _, f := range t.schema.Fields() {
		if f.Name == column {
			typ = f.Type
		}
	}
	if typ == nil {
		return 0, errs.New(errs.ErrNotFound, "column %s of %s", column, t.ref)
	}
	elem, have, err := vector.ElemOf(typ)
	if err != nil {
		return 0, fmt.Errorf("column %s of %s: %w", column, t.ref, err)
	}
	if have != dim {
		return 0, errs.New(errs.ErrInvalid, "column %s of %s has %d dimensions, the query vector %d", column, t.ref, have, dim)
	}
	return elem, nil
}

// Distances implements exec.VectorTable.
func (t *Table) Distances(ctx context.Context, req exec.SearchRequest, addrs []rowset.RowAddr) ([]float32, error) {
	scanner, err := t.exactScanner(req)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(addrs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(addrs[a], addrs[b]) })
	out := make([]float32, len(addrs))
	// Fragments in mappings are a few loads a row: a goroutine would cost more. Others wait for a store.
	remote, rctx := spawn.WithContext(ctx, remoteFragments)
	for start := 0; start < len(order) && err == nil; {
		fragment := addrs[order[start]].Fragment()
		end := start
		var rows []uint32
		for end < len(order) && addrs[order[end]].Fragment() == fragment {
			rows = append(rows, addrs[order[end]].Offset())
			end++
		}
		places := order[start:end]
		start = end
		var isMapped bool
		if _, isMapped, err = t.part(ctx, req.Column, fragment); err != nil {
			break
		}
		if isMapped {
			err = t.fragmentDistances(ctx, scanner, req, fragment, rows, out, places, t.mappedDistances)
			continue
		}
		remote.Go("distances", func() error {
			return t.fragmentDistances(rctx, scanner, req, fragment, rows, out, places, t.takenDistances)
		})
	}
	return out, errors.Join(err, remote.Wait())
}

// distancesOf sets out to the distances of rows of a fragment, ascending.
type distancesOf func(ctx context.Context, scanner *vector.Scanner, req exec.SearchRequest, fragment uint32, rows []uint32, out []float32) error

// fragmentDistances puts the distances of rows of a fragment, ascending, into their places in out.
func (t *Table) fragmentDistances(ctx context.Context, scanner *vector.Scanner, req exec.SearchRequest, fragment uint32, rows []uint32, out []float32, places []int, of distancesOf) error {
	dist := make([]float32, len(rows))
	for i := range dist {
		dist[i] = float32(math.NaN()) // rows of fragments without the column
	}
	if err := of(ctx, scanner, req, fragment, rows, dist); err != nil {
		return err
	}
	for i, d := range dist {
		out[places[i]] = d
	}
	return nil
}

// mappedDistances is distancesOf where the vectors lie in mappings.
func (t *Table) mappedDistances(ctx context.Context, scanner *vector.Scanner, req exec.SearchRequest, fragment uint32, rows []uint32, out []float32) error {
	held := req.Budget.Reserve()
	defer held.Free()
	blocks, err := t.mappedBlocks(ctx, req.Column, fragment, held)
	if err != nil {
		return err
	}
	return scanner.Distances(ctx, blocks, rows, out)
}
