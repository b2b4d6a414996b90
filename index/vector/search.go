package vector

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/rowset"
)

const (
	defaultProbes = 20
	splitRows     = 1 << 14 // rows of a long list that one goroutine scores at a time
)

// query is a NearestQuery in the form that the storage compares.
type query struct {
	metric index.Metric
	raw    []float32
	vector []float32 // for cosine of length 1, else raw
}

// Nearest implements index.NearestSegment. It probes the lists of the nearest centroids: q.MinProbes at first, twice as many after each round
// that leaves fewer than q.K hits, q.MaxProbes at most. Errors: ErrInvalid for another metric or dimension, ErrMemoryLimit, ErrCorrupt, ErrIO.
func (s *Segment) Nearest(ctx context.Context, q index.NearestQuery) ([]index.Hit, error) {
	if err := s.check(q); err != nil {
		return nil, err
	}
	stats := index.NearestStats{ListsTotal: int64(len(s.head.lists))}
	hits, err := s.nearest(ctx, q, &stats)
	if q.Stats != nil {
		q.Stats.ListsProbed += stats.ListsProbed
		q.Stats.ListsTotal += stats.ListsTotal
		q.Stats.RowsCompared += stats.RowsCompared
		q.Stats.BytesRead += stats.BytesRead
	}
	if err != nil {
		return nil, fmt.Errorf("index %q segment %s: %w", s.meta.Name, s.meta.UUID, err)
	}
	return hits, nil
}

func (s *Segment) check(q index.NearestQuery) error {
	switch {
	case q.Metric != s.meta.Metric:
		return errs.New(errs.ErrInvalid, "index %q is for %s distance, not %s", s.meta.Name, s.meta.Metric, q.Metric)
	case len(q.Vector) != s.head.dim:
		return errs.New(errs.ErrInvalid, "a query of %d dimensions for index %q of %d", len(q.Vector), s.meta.Name, s.head.dim)
	case q.K < 1 || q.K > kMax:
		return errs.New(errs.ErrInvalid, "%d nearest rows asked for (1 to %d)", q.K, kMax)
	case q.MinProbes < 0 || q.MaxProbes < 0:
		return errs.New(errs.ErrInvalid, "%d to %d lists to probe", q.MinProbes, q.MaxProbes)
	}
	return nil
}

func (s *Segment) nearest(ctx context.Context, q index.NearestQuery, stats *index.NearestStats) ([]index.Hit, error) {
	prepared := &query{metric: q.Metric, raw: q.Vector, vector: q.Vector}
	if q.Metric == index.MetricCosine {
		unit, ok := normalized(q.Vector)
		if !ok {
			return nil, nil // no distance is defined: no row is a hit
		}
		prepared.vector = unit
	}
	among := q.Among.Count()
	if (q.Among != nil && among == 0) || hasNaN(q.Vector) {
		return nil, nil // widening would read every list for nothing
	}
	scorer, err := s.rows.prepare(prepared)
	if err != nil {
		return nil, err
	}
	order, err := s.order(prepared)
	if err != nil {
		return nil, err
	}
	most := len(order.lists)
	if q.MaxProbes > 0 {
		most = min(most, q.MaxProbes)
	}
	first := q.MinProbes
	if first == 0 {
		first = defaultProbes
	}
	p := newProbe(s, q, scorer)
	defer p.held.Free()
	for done, want := 0, min(first, most); done < want; {
		if err := p.round(ctx, order.next(want-done)); err != nil {
			return nil, err
		}
		done = want
		found := p.found()
		if found >= q.K || (q.Among != nil && uint64(found) >= among) {
			break
		}
		want = min(2*want, most)
	}
	return p.merge(stats, order.taken), nil
}

// listOrder hands out lists by the distance of their centroids.
type listOrder struct {
	lists []index.Hit // Key = number of the list
	taken int
}

// next returns the n nearest lists that were not returned before.
func (o *listOrder) next(n int) []index.Hit {
	rest := o.lists[o.taken:]
	n = min(n, len(rest))
	if n < len(rest) {
		selectNearest(rest, n)
	}
	slices.SortFunc(rest[:n], compareHits)
	o.taken += n
	return rest[:n]
}

func (s *Segment) order(q *query) (*listOrder, error) {
	n := len(s.head.lists)
	distances := make([]float32, n)
	all := vec.Block{Data: s.packed, Stride: 4 * s.head.dim, Rows: n}
	switch q.metric {
	case index.MetricDot:
		vec.Dot(distances, q.vector, vec.Float32, all)
		oneMinus(distances)
	case index.MetricHamming:
		b, err := queryBytes(q.vector)
		if err != nil {
			return nil, err
		}
		vec.Hamming(distances, b, vec.Block{Data: s.bytes, Stride: s.head.dim, Rows: n})
	default:
		vec.L2(distances, q.vector, vec.Float32, all)
	}
	o := &listOrder{lists: make([]index.Hit, n)}
	for i, d := range distances {
		if d != d { // a list whose centroid is no number is probed last
			d = float32(math.Inf(1))
		}
		o.lists[i] = index.Hit{Key: uint64(i), Distance: d}
	}
	return o, nil
}

// floatBytes returns floats as the little-endian bytes that kernels and files hold.
func floatBytes(v []float32) []byte {
	out := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(x))
	}
	return out
}

// probe is one search of a segment: workers keep their nearest over all rounds.
type probe struct {
	segment *Segment
	among   *rowset.Set
	scorer  scorer
	workers []probeWorker
	held    *mem.Reservation
	k       int
}

type probeWorker struct {
	top     *topK
	scratch scratch
	dst     []float32
	mask    mask
	rows    int64
	bytes   int64
}

func newProbe(s *Segment, q index.NearestQuery, sc scorer) *probe {
	return &probe{
		segment: s, among: q.Among, scorer: sc, k: q.K, held: q.Budget.Reserve(),
		workers: make([]probeWorker, runtime.GOMAXPROCS(0)),
	}
}

// part is a list, or rows [start, end) of one.
type part struct{ list, start, end int }

func (p *probe) round(ctx context.Context, lists []index.Hit) error {
	var parts []part
	for _, h := range lists {
		rows := int(p.segment.head.lists[h.Key].rows)
		step := rows
		if p.scorer.splits() {
			step = splitRows
		}
		for at := 0; at < rows; at += step {
			parts = append(parts, part{list: int(h.Key), start: at, end: min(at+step, rows)})
		}
	}
	workers := p.workers[:min(len(p.workers), len(parts))]
	for i := range workers {
		if w := &workers[i]; w.top == nil {
			w.top, w.mask = newTopK(p.k), mask{set: p.among}
			if err := p.held.Grow(p.workerBytes()); err != nil {
				return err
			}
		}
	}
	var next atomic.Int64
	group, ctx := spawn.WithContext(ctx, len(workers))
	for i := range workers {
		w := &workers[i]
		group.Go("probe lists", func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(parts) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := p.compare(ctx, w, parts[n]); err != nil {
					return fmt.Errorf("list %d: %w", parts[n].list, err)
				}
			}
		})
	}
	return group.Wait()
}

// workerBytes bounds what one worker holds: its hits, and keys, distances and codes of the rows that it scores at a time.
func (p *probe) workerBytes() int64 {
	rows := p.segment.rowsMax
	if p.scorer.splits() {
		rows = min(rows, splitRows)
	}
	hits := min(uint64(2*p.k), p.segment.Rows())
	return int64(hits)*hitBytes + int64(p.segment.rowsMax)*8 + int64(rows)*int64(4+2*p.segment.rows.rowBytes())
}

func (p *probe) compare(ctx context.Context, w *probeWorker, t part) error {
	keys, keyBytes, err := p.segment.keys(ctx, t.list)
	if err != nil {
		return err
	}
	dst := sized(&w.dst, t.end-t.start)
	read, err := p.scorer.score(ctx, t.list, t.start, dst, &w.scratch)
	if err != nil {
		return err
	}
	w.rows += int64(len(dst))
	w.bytes += read + keyBytes
	keys = keys[t.start:t.end]
	for i, d := range dst {
		// The mask is asked only for rows that are near enough; NaN fails the first test.
		if d <= w.top.limit && w.mask.contains(keys[i]) {
			w.top.push(keys[i], d)
		}
	}
	return nil
}

func (p *probe) found() int {
	n := 0
	for i := range p.workers {
		if p.workers[i].top != nil {
			n += len(p.workers[i].top.hits)
		}
	}
	return n
}

func (p *probe) merge(stats *index.NearestStats, probed int) []index.Hit {
	var found [][]index.Hit
	for i := range p.workers {
		w := &p.workers[i]
		if w.top == nil {
			continue
		}
		found = append(found, w.top.hits)
		stats.RowsCompared += w.rows
		stats.BytesRead += w.bytes
	}
	stats.ListsProbed = int64(probed)
	return Merge(p.k, found...)
}

// mask asks a set of candidates and remembers the part of it that was asked last.
type mask struct {
	set   *rowset.Set // nil = every key
	upper uint32
	part  *roaring.Bitmap
	known bool
}

func (m *mask) contains(key uint64) bool {
	if m.set == nil {
		return true
	}
	if upper := uint32(key >> 32); !m.known || upper != m.upper {
		m.upper, m.part, m.known = upper, m.set.Bitmap(upper), true
	}
	return m.part != nil && m.part.Contains(uint32(key))
}
