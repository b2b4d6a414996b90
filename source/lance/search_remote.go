package lance

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Vectors of local files lie in mappings: a whole fragment is one part of a search, and distances of single rows are computed where they lie. Those of other
// stores are fetched into memory that the statement pays for. So a search of all rows goes through a fragment in windows, and where few rows are wanted these
// alone are taken.

const (
	windowBytes = 4 << 20 // vectors fetched at a time
	windowRows  = 1024    // at least
	// takeRatio: candidates are taken one by one where fewer than 1 in takeRatio rows is one.
	takeRatio = 8
	hitBytes  = 16 // of an index.Hit
	// remoteFragments are asked for single rows side by side.
	remoteFragments = 16
)

// remoteSearch is a fragmentTask over a file that is not mapped.
type remoteSearch struct {
	*fragmentTask
	part  vector.Part // without blocks
	rows  uint64      // of the fragment
	width int         // bytes of a vector

	mu    sync.Mutex
	hits  []index.Hit
	held  *mem.Reservation // of hits
	stats *index.NearestStats
}

func (f *fragmentTask) runRemote(ctx context.Context, part vector.Part, stats *index.NearestStats) ([]index.Hit, error) {
	fragment, ok := f.table.snap.Fragment(f.fragment)
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "fragment %d of %s", f.fragment, f.table.ref)
	}
	elem, err := f.table.vectorElem(f.req.Column, len(f.req.Query))
	if err != nil {
		return nil, err
	}
	r := &remoteSearch{
		fragmentTask: f, part: part, rows: fragment.PhysicalRows(), width: max(1, elem.Size()*len(f.req.Query)), held: f.req.Budget.Reserve(), stats: stats,
	}
	defer r.held.Free()
	if part.Candidates != nil && part.Candidates.GetCardinality() < r.rows/takeRatio {
		err = r.take(ctx)
	} else {
		err = r.windows(ctx)
	}
	return r.hits, err
}

// windows searches the rows window by window: while one is compared, others are on their way.
func (r *remoteSearch) windows(ctx context.Context) error {
	size := uint64(max(windowRows, windowBytes/r.width))
	workers := 2
	if len(r.table.snap.Fragments()) == 1 {
		workers = max(workers, runtime.GOMAXPROCS(0))
	}
	var next atomic.Uint64
	g, gctx := spawn.WithContext(ctx, workers)
	for range workers {
		g.Go("vector window", func() error {
			held := r.req.Budget.Reserve()
			defer held.Free()
			for {
				end := next.Add(size)
				if end-size >= r.rows {
					return nil
				}
				if err := r.window(gctx, end-size, min(end, r.rows), held); err != nil {
					return err
				}
				held.Free()
			}
		})
	}
	return g.Wait()
}

func (r *remoteSearch) window(ctx context.Context, start, end uint64, held *mem.Reservation) error {
	blocks, err := r.table.snap.VectorBlocksOf(ctx, r.req.Column, r.fragment, storage.VectorRange{Start: start, End: end, Held: held})
	if err != nil {
		return err
	}
	part := r.part
	part.Blocks = blocks
	var stats index.NearestStats
	scanner, err := r.scanner(&stats)
	if err != nil {
		return err
	}
	hits, err := scanner.Nearest(ctx, []vector.Part{part})
	if err != nil {
		return err
	}
	return r.add(hits, stats)
}

// take compares the candidates alone.
func (r *remoteSearch) take(ctx context.Context) error {
	scanner, err := r.table.exactScanner(r.req)
	if err != nil {
		return err
	}
	var hits []index.Hit
	return r.table.takeDistances(ctx, scanner, r.req, r.fragment, r.part.Candidates.ToArray(), func(rows []uint32, distances []float32) error {
		hits = hits[:0]
		for i, d := range distances {
			if !math.IsNaN(float64(d)) {
				hits = append(hits, index.Hit{Key: r.part.KeyBase + uint64(rows[i]), Distance: d})
			}
		}
		return r.add(hits, index.NearestStats{RowsCompared: int64(len(rows)), BytesRead: int64(len(rows) * r.width)})
	})
}

// add merges the hits of a window into those of the fragment.
func (r *remoteSearch) add(hits []index.Hit, stats index.NearestStats) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.RowsCompared += stats.RowsCompared
	r.stats.BytesRead += stats.BytesRead
	// What is kept, what comes, and the heap that merges them.
	if err := r.held.Resize(int64(len(r.hits)+len(hits)+min(2*r.req.K, len(r.hits)+len(hits))) * hitBytes); err != nil {
		return err
	}
	r.hits = vector.Merge(r.req.K, r.hits, hits)
	return nil
}

// exactScanner compares the query of a request with single rows.
func (t *Table) exactScanner(req exec.SearchRequest) (*vector.Scanner, error) {
	make1, err := t.scanner(req.Column, req.Metric, req.Query, 0, nil)
	if err != nil {
		return nil, err
	}
	return make1(nil)
}

// takeDistances takes the vectors of some rows of a fragment, ascending without duplicates, and hands their distances to use, some thousand at a time; use keeps
// neither slice. NaN where the vector is NULL.
func (t *Table) takeDistances(ctx context.Context, scanner *vector.Scanner, req exec.SearchRequest, fragment uint32, rows []uint32, use func(rows []uint32, distances []float32) error) error {
	elem, err := t.vectorElem(req.Column, len(req.Query))
	if err != nil {
		return err
	}
	size := max(windowRows, windowBytes/max(1, elem.Size()*len(req.Query)))
	alloc := mem.NewAllocator(nil, req.Budget)
	held := req.Budget.Reserve()
	defer held.Free()
	if err := held.Grow(int64(min(size, len(rows))) * (8 + 4 + 4)); err != nil {
		return err
	}
	addrs, order, distances := make([]rowset.RowAddr, 0, min(size, len(rows))), make([]uint32, 0, min(size, len(rows))), make([]float32, min(size, len(rows)))
	for len(rows) > 0 {
		some := rows[:min(size, len(rows))]
		rows = rows[len(some):]
		addrs, order = addrs[:0], order[:0]
		for i, row := range some {
			addrs, order = append(addrs, rowset.Addr(fragment, row)), append(order, uint32(i))
		}
		err := spawn.Guard(func() error {
			batch, err := t.snap.Take(ctx, addrs, storage.TakeOptions{Columns: []string{req.Column}, Alloc: alloc})
			if err != nil {
				return err
			}
			defer batch.Release()
			return scanner.Distances(ctx, blockOf(batch.Column(0), elem.Size()), order, distances[:len(some)])
		})
		if err != nil {
			return err
		}
		if err := use(some, distances[:len(some)]); err != nil {
			return err
		}
	}
	return nil
}

// blockOf is the vectors of an array as a block whose rows count from 0; none where there is no vector.
func blockOf(a arrow.Array, itemBytes int) []vector.Block {
	list, ok := a.(*array.FixedSizeList)
	if !ok || list.NullN() == list.Len() {
		return nil
	}
	dim := int(list.DataType().(*arrow.FixedSizeListType).Len())
	items := list.ListValues()
	first := items.Data().Offset() + list.Data().Offset()*dim
	b := vector.Block{
		Rows: list.Len(), Data: items.Data().Buffers()[1].Bytes(), OffsetBytes: first * itemBytes, StrideBytes: dim * itemBytes, ValueBytes: dim * itemBytes,
	}
	if list.NullN() == 0 && items.NullN() == 0 {
		return []vector.Block{b}
	}
	start := list.Data().Offset() * dim
	b.Validity = func(i int) bool {
		if list.IsNull(i) {
			return false
		}
		for k := range dim {
			if items.IsNull(start + i*dim + k) {
				return false
			}
		}
		return true
	}
	return []vector.Block{b}
}

// takenDistances is distancesOf where the vectors have to be fetched.
func (t *Table) takenDistances(ctx context.Context, scanner *vector.Scanner, req exec.SearchRequest, fragment uint32, rows []uint32, out []float32) error {
	at := 0
	return t.takeDistances(ctx, scanner, req, fragment, slices.Compact(slices.Clone(rows)), func(some []uint32, distances []float32) error {
		for i, row := range some {
			for at < len(rows) && rows[at] == row {
				out[at] = distances[i]
				at++
			}
		}
		return nil
	})
}
