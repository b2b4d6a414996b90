package vector

import (
	"context"
	"math"
	"runtime"
	"sort"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/vec"
)

const (
	batchRows   = 512       // rows compared by one kernel call
	morselBytes = 256 << 10 // vectors that a worker takes at a time
	// gatherRatio: candidates are picked out one by one where fewer than 1 in gatherRatio rows is one, else whole blocks are compared and
	// masked. A gathered row costs two to three times a row of a block.
	gatherRatio = 3
)

// ScanOptions says what an exact search looks for.
type ScanOptions struct {
	Metric      index.Metric
	Elem        vec.Elem  // of the stored rows
	Vector      []float32 // length = the column's dimension; for hamming the bytes as numbers 0..255
	K           int       // for Nearest: > 0
	Parallelism int       // goroutines; 0 = GOMAXPROCS
	Budget      *mem.Budget
	Stats       *index.NearestStats // RowsCompared and BytesRead are added to if not nil
}

func (o ScanOptions) withDefaults() ScanOptions {
	if o.Parallelism <= 0 {
		o.Parallelism = runtime.GOMAXPROCS(0)
	}
	return o
}

// Scanner compares one query with stored vectors, exactly. It is safe for concurrent use.
type Scanner struct {
	opts ScanOptions
	cmp  *comparer
}

// NewScanner checks the options. Errors: ErrInvalid, ErrUnsupported.
func NewScanner(o ScanOptions) (*Scanner, error) {
	o = o.withDefaults()
	if o.K < 0 || o.K > kMax {
		return nil, errs.New(errs.ErrInvalid, "%d nearest rows asked for (at most %d)", o.K, kMax)
	}
	c, err := newComparer(o.Metric, o.Elem, o.Vector)
	if err != nil {
		return nil, err
	}
	return &Scanner{opts: o, cmp: c}, nil
}

// Part is a run of rows whose keys count up with their offsets: a fragment, or a slice of one.
type Part struct {
	KeyBase    uint64          // key of the row at offset 0
	Blocks     []Block         // ascending by FirstRow = offset of the first row
	Candidates *roaring.Bitmap // offsets of the rows that may be hits; nil = all
}

// piece is the unit of work: rows [start, end) of a block, or the picked rows of it.
type piece struct {
	part       *Part
	block      *Block
	start, end int
	picked     []uint32 // offsets in the part; nil = the range
}

// Nearest returns the K nearest rows of the parts, nearest first, ties by key. Rows that are NULL or have no distance are no hits.
// Errors: ErrInvalid, ErrMemoryLimit, ErrIO, ErrCorrupt for blocks that are too narrow.
func (s *Scanner) Nearest(ctx context.Context, parts []Part) ([]index.Hit, error) {
	if s.opts.K <= 0 {
		return nil, errs.New(errs.ErrInvalid, "%d nearest rows asked for", s.opts.K)
	}
	pieces, morsels, rows, err := s.plan(parts)
	if err != nil || len(morsels) == 0 || s.cmp.zero || hasNaN(s.cmp.query) {
		return nil, err
	}
	workers := min(s.opts.Parallelism, len(morsels))
	held := s.opts.Budget.Reserve()
	defer held.Free()
	if err := held.Grow(int64(workers+1) * int64(min(2*s.opts.K, rows)) * hitBytes); err != nil {
		return nil, err
	}
	var next atomic.Int64
	found := make([]scanWorker, workers)
	group, ctx := spawn.WithContext(ctx, workers)
	for w := range found {
		worker := &found[w]
		worker.reset(s)
		group.Go("vector scan", func() error {
			for {
				m := int(next.Add(1)) - 1
				if m >= len(morsels) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				start := 0
				if m > 0 {
					start = morsels[m-1]
				}
				for _, p := range pieces[start:morsels[m]] {
					worker.run(p)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return s.merge(found), nil
}

func (s *Scanner) merge(found []scanWorker) []index.Hit {
	lists := make([][]index.Hit, len(found))
	for w := range found {
		lists[w] = found[w].top.hits
		if s.opts.Stats != nil {
			s.opts.Stats.RowsCompared += found[w].rows
			s.opts.Stats.BytesRead += found[w].rows * int64(s.rowBytes())
		}
	}
	return Merge(s.opts.K, lists...)
}

func (s *Scanner) rowBytes() int { return len(s.opts.Vector) * s.opts.Elem.Size() }

// plan cuts the parts into pieces and the pieces into morsels; morsel m is pieces[morsels[m-1]:morsels[m]].
func (s *Scanner) plan(parts []Part) (pieces []piece, morsels []int, rows int, err error) {
	width := s.rowBytes()
	morselRows := max(morselBytes/width, 64)
	open := 0 // rows in the morsel being filled
	add := func(p piece, n int) {
		pieces = append(pieces, p)
		rows += n
		if open += n; open >= morselRows {
			morsels, open = append(morsels, len(pieces)), 0
		}
	}
	for i := range parts {
		part := &parts[i]
		picked, gather, err := part.picked(width)
		if err != nil {
			return nil, nil, 0, err
		}
		for j := range part.Blocks {
			block := &part.Blocks[j]
			if !gather {
				for at := 0; at < block.Rows; at += morselRows {
					end := min(at+morselRows, block.Rows)
					add(piece{part: part, block: block, start: at, end: end}, end-at)
				}
				continue
			}
			var mine []uint32
			mine, picked = splitPicked(picked, block)
			for len(mine) > 0 {
				n := min(len(mine), morselRows)
				add(piece{part: part, block: block, picked: mine[:n]}, n)
				mine = mine[n:]
			}
		}
	}
	if open > 0 {
		morsels = append(morsels, len(pieces))
	}
	return pieces, morsels, rows, nil
}

// picked checks the part's blocks and says whether its candidates are gathered, and which they are.
func (p *Part) picked(width int) (picked []uint32, gather bool, err error) {
	rows := 0
	for i := range p.Blocks {
		if err := checkBlock(&p.Blocks[i], width); err != nil {
			return nil, false, err
		}
		rows += p.Blocks[i].Rows
	}
	if p.Candidates == nil {
		return nil, false, nil
	}
	if p.Candidates.GetCardinality() > uint64(rows/gatherRatio) {
		return nil, false, nil
	}
	return p.Candidates.ToArray(), true, nil
}

func checkBlock(b *Block, width int) error {
	if b.ValueBytes != width {
		return errs.New(errs.ErrInvalid, "rows of %d bytes compared with a query of %d", b.ValueBytes, width)
	}
	if b.Rows < 0 || b.OffsetBytes < 0 || b.StrideBytes < 0 || b.FirstRow > math.MaxUint32 || uint64(b.Rows) > math.MaxUint32+1-b.FirstRow {
		return errs.Corrupt("vector block", -1, "%d rows from row %d at %d+i*%d", b.Rows, b.FirstRow, b.OffsetBytes, b.StrideBytes)
	}
	if b.Rows > 0 && (width > len(b.Data)-b.OffsetBytes || (b.StrideBytes > 0 && b.Rows-1 > (len(b.Data)-b.OffsetBytes-width)/b.StrideBytes)) {
		return errs.Corrupt("vector block", -1, "%d rows of %d bytes at %d+i*%d in %d bytes", b.Rows, width, b.OffsetBytes, b.StrideBytes, len(b.Data))
	}
	return nil
}

// splitPicked returns the picked rows that lie in block, and those after it.
func splitPicked(picked []uint32, block *Block) (mine, rest []uint32) {
	lo := sort.Search(len(picked), func(i int) bool { return uint64(picked[i]) >= block.FirstRow })
	end := block.FirstRow + uint64(block.Rows)
	hi := lo + sort.Search(len(picked)-lo, func(i int) bool { return uint64(picked[lo+i]) >= end })
	return picked[lo:hi], picked[hi:]
}

// scanWorker is the state of one goroutine.
type scanWorker struct {
	cmp        *comparer
	top        *topK
	rows       int64
	dst, norms []float32
	offsets    []int
}

func (w *scanWorker) reset(s *Scanner) {
	*w = scanWorker{cmp: s.cmp, top: newTopK(s.opts.K), dst: make([]float32, batchRows), norms: make([]float32, batchRows), offsets: make([]int, batchRows)}
}

func (w *scanWorker) run(p piece) {
	if p.picked != nil {
		w.gather(p)
		return
	}
	rows := vec.Block{Data: p.block.Data, Offset: p.block.OffsetBytes, Stride: p.block.StrideBytes, Rows: p.block.Rows}
	for at := p.start; at < p.end; at += batchRows {
		n := min(batchRows, p.end-at)
		w.cmp.block(w.dst[:n], w.norms[:n], rows.Slice(at, at+n))
		w.rows += int64(n)
		first := p.block.FirstRow + uint64(at)
		for i, d := range w.dst[:n] {
			// NaN fails the test: a row without a distance is no hit. Masks are asked only for rows that are near enough.
			if d <= w.top.limit && valid(p.block, at+i) && (p.part.Candidates == nil || p.part.Candidates.Contains(uint32(first)+uint32(i))) {
				w.top.push(p.part.KeyBase+first+uint64(i), d)
			}
		}
	}
}

func (w *scanWorker) gather(p piece) {
	for rows := p.picked; len(rows) > 0; {
		n := min(batchRows, len(rows))
		for i, row := range rows[:n] {
			w.offsets[i] = p.block.OffsetBytes + int(uint64(row)-p.block.FirstRow)*p.block.StrideBytes
		}
		w.cmp.at(w.dst[:n], w.norms[:n], p.block.Data, w.offsets[:n])
		w.rows += int64(n)
		for i, d := range w.dst[:n] {
			if d <= w.top.limit && valid(p.block, int(uint64(rows[i])-p.block.FirstRow)) {
				w.top.push(p.part.KeyBase+uint64(rows[i]), d)
			}
		}
		rows = rows[n:]
	}
}

// Distances sets out[i] to the distance of the row at offset rows[i] of the blocks (ascending by FirstRow), in any order with duplicates;
// NaN where the vector is NULL, the row lies in no block, or the distance is not defined.
func (s *Scanner) Distances(ctx context.Context, blocks []Block, rows []uint32, out []float32) error {
	for i := range blocks {
		if err := checkBlock(&blocks[i], s.rowBytes()); err != nil {
			return err
		}
	}
	if len(out) < len(rows) {
		return errs.New(errs.ErrInternal, "%d distances into %d places", len(rows), len(out))
	}
	norms, offsets := make([]float32, batchRows), make([]int, batchRows)
	return spawn.Guard(func() error {
		for at := 0; at < len(rows); {
			if err := ctx.Err(); err != nil {
				return err
			}
			block := blockOf(blocks, rows[at])
			if block == nil {
				out[at] = float32(math.NaN())
				at++
				continue
			}
			n := 0
			for n < batchRows && at+n < len(rows) && holds(block, rows[at+n]) {
				offsets[n] = block.OffsetBytes + int(uint64(rows[at+n])-block.FirstRow)*block.StrideBytes
				n++
			}
			s.cmp.at(out[at:at+n], norms[:n], block.Data, offsets[:n])
			for i := range n {
				if !valid(block, int(uint64(rows[at+i])-block.FirstRow)) {
					out[at+i] = float32(math.NaN())
				}
			}
			at += n
		}
		return nil
	})
}

func blockOf(blocks []Block, row uint32) *Block {
	i := sort.Search(len(blocks), func(i int) bool { return blocks[i].FirstRow+uint64(blocks[i].Rows) > uint64(row) })
	if i == len(blocks) || !holds(&blocks[i], row) {
		return nil
	}
	return &blocks[i]
}
