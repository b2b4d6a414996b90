package exec

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/rowset"
)

// VectorSearch finds the K nearest rows of a vector column among candidates: one task per index segment and per group of uncovered
// fragments, a global cut, an exact recomputation of the distances shown. It outputs Columns (read early, by each task, before the cut), then the row
// address, then the distance (float32, as index.Metric defines it; NULL where it is not defined), nearest first, ties by address.
type VectorSearch struct {
	Table      TableRef
	Column     string
	Metric     index.Metric
	Query      []float32
	K          int
	Ties       bool          // also output every further row whose distance equals the last one's
	Candidates CandidatePlan // nil = every live row
	Method     SearchMethod
	Early      []string // columns that each task reads for its own hits
	out        *arrow.Schema
}

// SearchMethod says how to search.
type SearchMethod struct {
	Index         string // "" = exact
	Kind          index.Kind
	Coverage      Coverage // of Index
	IndexedOnly   bool     // freshness = indexed_only: rows that Index does not cover are no candidates
	Reason        string
	MinProbes     int
	MaxProbes     int
	RefineFactor  int   // K x RefineFactor hits are compared again with the raw vectors; negative = none
	ExactBelow    int64 // Index set: compare exactly all the same while candidates x VectorBytes are below this; 0 = never
	VectorBytes   int64 // bytes of one vector
	ParallelTasks int   // 0 = Env.Workers
}

var _ Plan = (*VectorSearch)(nil)

// NewVectorSearch checks the plan and computes its schema. early are the fields of s.Early.
func NewVectorSearch(s VectorSearch, early []arrow.Field) (*VectorSearch, error) {
	if s.K <= 0 || len(s.Query) == 0 || len(early) != len(s.Early) {
		return nil, errs.New(errs.ErrInternal, "vector search of %s with k %d, %d dimensions", s.Table, s.K, len(s.Query))
	}
	fields := append(slices.Clone(early),
		arrow.Field{Name: RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64},
		arrow.Field{Name: "_distance", Type: arrow.PrimitiveTypes.Float32, Nullable: true})
	s.out = arrow.NewSchema(fields, nil)
	return &s, nil
}

// Schema implements Plan.
func (p *VectorSearch) Schema() *arrow.Schema { return p.out }

// Children implements Plan.
func (p *VectorSearch) Children() []Plan { return nil }

// CandidateInput implements WithCandidates.
func (p *VectorSearch) CandidateInput() CandidatePlan { return p.Candidates }

// Describe implements Plan.
func (p *VectorSearch) Describe() Description {
	method := "exact"
	if p.Method.Index != "" {
		method = fmt.Sprintf("%s index %s", p.Method.Kind, p.Method.Index)
	}
	d := Description{Name: "VectorSearch", Props: []Prop{
		{"table", p.Table.String()}, {"column", p.Column}, {"metric", string(p.Metric)}, {"k", fmt.Sprint(p.K)}, {"method", method}, {"why", p.Method.Reason},
	}}
	if p.Method.Index != "" {
		d.Props = append(d.Props, p.Method.Coverage.props(!p.Method.IndexedOnly)...)
		d.Props = append(d.Props, Prop{"nprobes", fmt.Sprint(p.Method.MinProbes)})
		if p.Method.RefineFactor > 0 {
			d.Props = append(d.Props, Prop{"refine", fmt.Sprint(p.Method.RefineFactor)})
		}
	}
	if p.Ties {
		d.Props = append(d.Props, Prop{"ties", "kept"})
	}
	if len(p.Early) > 0 {
		d.Props = append(d.Props, Prop{"early", fmt.Sprint(p.Early)})
	}
	return d
}

// Open implements Plan.
func (p *VectorSearch) Open(_ context.Context, env *Env) (Operator, error) {
	return &vectorSearch{plan: p, env: env, held: env.Budget.Reserve(), found: env.Budget.Reserve(), stats: env.Stats.Node(p)}, nil
}

type vectorSearch struct {
	plan  *VectorSearch
	env   *Env
	held  *mem.Reservation // candidates
	found *mem.Reservation // hits
	stats *NodeStats

	leftOut atomic.Bool // lists were not probed although candidates may be in them

	table VectorTable
	among *rowset.Set // nil = every live row
	rows  *rowsOut    // the answer, once searched
}

// rowsOut is a whole answer, given out in batches.
type rowsOut struct {
	batch arrow.RecordBatch
	next  int64
}

func (o *vectorSearch) Schema() *arrow.Schema { return o.plan.out }

func (o *vectorSearch) Close() error {
	if o.rows != nil {
		o.rows.batch.Release()
		o.rows = nil
	}
	o.held.Free()
	o.found.Free()
	return nil
}

func (o *vectorSearch) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if o.rows == nil {
		batch, err := o.search(ctx)
		if err != nil {
			return nil, err
		}
		o.rows = &rowsOut{batch: batch}
		o.among = nil
		o.held.Free()
		o.found.Free()
	}
	left := o.rows.batch.NumRows() - o.rows.next
	if left == 0 {
		return nil, io.EOF
	}
	n := min(left, int64(o.env.BatchRows))
	b := o.rows.batch.NewSlice(o.rows.next, o.rows.next+n)
	o.rows.next += n
	return b, nil
}

// taskHit is a hit and where its early columns are.
type taskHit struct {
	SearchHit
	task, row int
}

// Memory of one hit of a task, and of one of all tasks.
const (
	searchHitBytes = 16
	taskHitBytes   = 32
)

func (o *vectorSearch) search(ctx context.Context) (arrow.RecordBatch, error) {
	t, err := o.env.Tables.OpenTable(ctx, o.plan.Table)
	if err != nil {
		return nil, err
	}
	var ok bool
	if o.table, ok = t.(VectorTable); !ok {
		return nil, errs.New(errs.ErrInternal, "table %s cannot search vectors", o.plan.Table)
	}
	candidates := o.table.Rows()
	if o.plan.Candidates != nil {
		truth, err := EvalCandidates(ctx, o.env, o.plan.Candidates, nil)
		if err != nil {
			return nil, err
		}
		o.among = truth.True
		candidates = int64(o.among.Count())
		if err := o.held.Grow(o.among.SizeBytes()); err != nil {
			return nil, err
		}
	}
	if o.plan.Method.IndexedOnly {
		if err := o.onlyIndexed(ctx); err != nil {
			return nil, err
		}
		candidates = int64(o.among.Count())
	}
	o.stats.Add("candidates", candidates)
	if candidates == 0 {
		return o.assemble(ctx, nil, nil)
	}
	method := o.plan.Method
	if method.Index != "" && method.ExactBelow > 0 && candidates*method.VectorBytes < method.ExactBelow {
		o.stats.Note("choice", fmt.Sprintf("exact: %d candidates x %d bytes are below %d", candidates, method.VectorBytes, method.ExactBelow))
		method.Index = ""
	}
	hits, early, err := o.nearest(ctx, method, candidates)
	if err != nil {
		return nil, err
	}
	defer func() { releaseBatches(early) }()
	if wanted := min(int64(o.plan.K), candidates); o.leftOut.Load() && int64(len(hits)) < wanted {
		// Lists were left out on purpose, so the rows not found may well have a distance.
		o.stats.Note("shortfall", fmt.Sprintf("%d of %d rows: max_nprobes = %d", len(hits), wanted, method.MaxProbes))
		o.env.warn(Warning{
			About: "shortfall of " + o.plan.Table.String(),
			Text:  fmt.Sprintf("table %s.%s: %d of %d rows were found, since max_nprobes = %d left lists of index %s out; SET max_nprobes = 0 finds them", o.plan.Table.Source, o.plan.Table.Table, len(hits), wanted, method.MaxProbes, method.Index),
		})
	} else if hits, err = o.fillUndefined(ctx, hits, candidates); err != nil {
		return nil, err
	}
	return o.assemble(ctx, hits, early)
}

// onlyIndexed leaves the candidates that the index covers, deleted rows aside.
func (o *vectorSearch) onlyIndexed(ctx context.Context) error {
	indices := o.table.Indexes()
	at := slices.IndexFunc(indices, func(i IndexInfo) bool { return i.Name == o.plan.Method.Index })
	if at < 0 {
		return errs.New(errs.ErrNotFound, "index %s of %s", o.plan.Method.Index, o.plan.Table)
	}
	covers := indices[at].Covers
	if o.among != nil {
		o.among = o.among.OnlyUppers(covers) // shares the bitmaps
		return nil
	}
	var err error
	if o.among, err = o.table.LiveRows(ctx, slices.DeleteFunc(slices.Clone(o.table.FragmentIDs()), func(id uint32) bool { return !covers.Contains(id) })); err != nil {
		return err
	}
	return o.held.Grow(o.among.SizeBytes())
}

// nearest returns the K nearest hits, with the ties of the last place where wanted.
func (o *vectorSearch) nearest(ctx context.Context, m SearchMethod, candidates int64) ([]taskHit, []arrow.RecordBatch, error) {
	k := o.plan.K
	for ask := k; ; ask *= 2 {
		if o.plan.Ties {
			ask++ // one more row tells whether the last place is shared
		}
		hits, early, err := o.round(ctx, m, ask, candidates)
		if err != nil {
			return nil, nil, err
		}
		if len(hits) <= k || !o.plan.Ties {
			return hits[:min(k, len(hits))], early, nil
		}
		last := hits[k-1].Distance
		if int64(ask) >= candidates || len(hits) < ask || hits[len(hits)-1].Distance > last {
			end := k
			for end < len(hits) && hits[end].Distance == last {
				end++
			}
			return hits[:end], early, nil
		}
		releaseBatches(early)
	}
}

// round runs all tasks once and cuts to k hits.
func (o *vectorSearch) round(ctx context.Context, m SearchMethod, k int, candidates int64) ([]taskHit, []arrow.RecordBatch, error) {
	refine := m.Index != "" && m.RefineFactor > 0
	keep := k
	if refine { // no more than there are rows, however large the factor
		keep = max(k, int(min(float64(k)*float64(m.RefineFactor), float64(candidates))))
	}
	tasks, err := o.table.SearchTasks(ctx, SearchRequest{
		Column: o.plan.Column, Metric: o.plan.Metric, Query: o.plan.Query, K: keep, Index: m.Index, Among: o.among, MinProbes: m.MinProbes, MaxProbes: m.MaxProbes,
		Budget: o.env.Budget, Fault: o.fault,
	})
	if err != nil {
		return nil, nil, err
	}
	o.stats.Add("tasks", int64(len(tasks)))
	found := make([][]SearchHit, len(tasks))
	early := make([]arrow.RecordBatch, len(tasks))
	approximate := make([]bool, len(tasks))
	held := make([]*mem.Reservation, len(tasks))
	defer func() {
		for _, r := range held {
			r.Free()
		}
	}()
	workers := m.ParallelTasks
	if workers <= 0 {
		workers = o.env.Workers
	}
	g, gctx := spawn.WithContext(ctx, workers)
	for i, task := range tasks {
		g.Go("search "+task.Describe(), func() error {
			var st index.NearestStats
			var err error
			if found[i], approximate[i], st, err = task.Run(gctx); err != nil {
				return fmt.Errorf("search %s: %w", task.Describe(), err)
			}
			o.count(st, len(found[i]))
			if m.MaxProbes > 0 && int64(m.MaxProbes) < st.ListsTotal && st.ListsProbed < st.ListsTotal {
				o.leftOut.Store(true)
			}
			held[i] = o.env.Budget.Reserve()
			if err := held[i].Grow(int64(cap(found[i])) * searchHitBytes); err != nil {
				return err
			}
			if len(o.plan.Early) > 0 && len(found[i]) > 0 {
				early[i], err = o.table.Take(gctx, addrsOf(found[i]), o.plan.Early, o.env.Alloc)
			}
			return err
		})
	}
	hits, err := o.cut(ctx, g.Wait(), found, keep, refine && slices.Contains(approximate, true))
	if err != nil {
		releaseBatches(early)
		return nil, nil, err
	}
	return hits[:min(k, len(hits))], early, nil
}

// fault is told of an index segment that cannot be read.
func (o *vectorSearch) fault(f IndexFault) {
	o.env.warn(FaultWarnings(o.plan.Table, []IndexFault{f})...)
	o.stats.Note("fault_of_"+f.Segment[:min(8, len(f.Segment))], f.String())
}

// cut merges what the tasks found, unless they failed, and compares it again where wanted.
func (o *vectorSearch) cut(ctx context.Context, failed error, found [][]SearchHit, keep int, refine bool) ([]taskHit, error) {
	if failed != nil {
		return nil, failed
	}
	total := 0
	for _, f := range found {
		total += len(f)
	}
	// All of them, those that are kept, and the addresses of these.
	if err := o.found.Resize(int64(total+2*min(total, keep)) * taskHitBytes); err != nil {
		return nil, err
	}
	hits := mergeHits(found, keep)
	if refine {
		var err error
		if hits, err = o.refine(ctx, hits); err != nil {
			return nil, err
		}
	}
	return hits, o.found.Resize(int64(len(hits)) * taskHitBytes)
}

func (o *vectorSearch) count(st index.NearestStats, kept int) {
	o.stats.Add("candidates_kept", int64(kept))
	o.stats.Add("lists_probed", st.ListsProbed)
	o.stats.Add("lists_total", st.ListsTotal)
	o.stats.Add("vectors_compared", st.RowsCompared)
	o.stats.Add("bytes", st.BytesRead)
}

// refine replaces approximate distances by exact ones and sorts again. A row whose exact distance is not defined is no hit: fillUndefined knows its place.
func (o *vectorSearch) refine(ctx context.Context, hits []taskHit) ([]taskHit, error) {
	// The addresses, their order, and the distances.
	held := o.env.Budget.Reserve()
	defer held.Free()
	if err := held.Grow(int64(len(hits)) * (8 + 8 + 4)); err != nil {
		return nil, err
	}
	addrs := make([]rowset.RowAddr, len(hits))
	for i, h := range hits {
		addrs[i] = h.Addr
	}
	exact, err := o.table.Distances(ctx, SearchRequest{Column: o.plan.Column, Metric: o.plan.Metric, Query: o.plan.Query, Budget: o.env.Budget}, addrs)
	if err != nil {
		return nil, fmt.Errorf("refine: %w", err)
	}
	o.stats.Add("refined", int64(len(hits)))
	for i := range hits {
		hits[i].Distance = exact[i]
	}
	hits = slices.DeleteFunc(hits, func(h taskHit) bool { return math.IsNaN(float64(h.Distance)) })
	slices.SortFunc(hits, compareHits)
	return hits, nil
}

func compareHits(a, b taskHit) int {
	if c := cmp.Compare(a.Distance, b.Distance); c != 0 {
		return c
	}
	return cmp.Compare(a.Addr, b.Addr)
}

// mergeHits cuts lists to the k nearest rows of all. A row that came twice (a segment may still hold an entry from before an update) counts once, at its
// smaller distance; one without a distance is no hit.
func mergeHits(found [][]SearchHit, k int) []taskHit {
	total := 0
	for _, f := range found {
		total += len(f)
	}
	all := make([]taskHit, 0, total)
	for t, f := range found {
		for r, h := range f {
			if !math.IsNaN(float64(h.Distance)) {
				all = append(all, taskHit{SearchHit: h, task: t, row: r})
			}
		}
	}
	slices.SortFunc(all, compareHits)
	kept := min(k, len(all))
	seen := make(map[rowset.RowAddr]bool, kept)
	out := make([]taskHit, 0, kept)
	for _, h := range all {
		if len(out) == k {
			break
		}
		if !seen[h.Addr] {
			seen[h.Addr] = true
			out = append(out, h)
		}
	}
	return out
}

func addrsOf(hits []SearchHit) []rowset.RowAddr {
	out := make([]rowset.RowAddr, len(hits))
	for i, h := range hits {
		out[i] = h.Addr
	}
	return out
}

// fillUndefined appends candidates without a defined distance while fewer than K rows were found: LIMIT never drops rows that WHERE keeps.
// With Ties all of them follow, since further keys decide which.
func (o *vectorSearch) fillUndefined(ctx context.Context, hits []taskHit, candidates int64) ([]taskHit, error) {
	if len(hits) >= o.plan.K || int64(len(hits)) >= candidates {
		return hits, nil
	}
	rest := o.among
	if rest == nil {
		live, err := o.table.LiveRows(ctx, nil)
		if err != nil {
			return nil, err
		}
		rest = live
	}
	seen := rowset.NewSet()
	for _, h := range hits {
		seen.Add(uint64(h.Addr))
	}
	open := rowset.AndNot(rest, seen)
	most := int64(open.Count())
	if !o.plan.Ties {
		most = min(most, int64(o.plan.K-len(hits)))
	}
	if err := o.found.Resize((int64(len(hits))+2*most)*taskHitBytes + rest.SizeBytes() + open.SizeBytes()); err != nil {
		return nil, err
	}
	for addr := range open.All() {
		if len(hits) >= o.plan.K && !o.plan.Ties {
			break
		}
		hits = append(hits, taskHit{SearchHit: SearchHit{Addr: rowset.RowAddr(addr), Distance: float32(math.NaN())}, task: -1})
	}
	o.stats.Add("undefined_distances", int64(len(hits)-int(seen.Count())))
	return hits, nil
}

// assemble builds the answer: early columns put in hit order, addresses, distances.
func (o *vectorSearch) assemble(ctx context.Context, hits []taskHit, early []arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, len(o.plan.Early)+2)
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	if len(o.plan.Early) > 0 {
		got, err := o.earlyColumns(ctx, hits, early)
		if err != nil {
			return nil, err
		}
		cols = append(cols, got...)
	}
	ab, db := array.NewUint64Builder(o.env.Alloc), array.NewFloat32Builder(o.env.Alloc)
	defer ab.Release()
	defer db.Release()
	ab.Reserve(len(hits))
	db.Reserve(len(hits))
	for _, h := range hits {
		ab.UnsafeAppend(uint64(h.Addr))
		if math.IsNaN(float64(h.Distance)) {
			db.AppendNull()
		} else {
			db.UnsafeAppend(h.Distance)
		}
	}
	cols = append(cols, ab.NewArray(), db.NewArray())
	return array.NewRecordBatch(o.plan.out, cols, int64(len(hits))), nil
}

func (o *vectorSearch) earlyColumns(ctx context.Context, hits []taskHit, early []arrow.RecordBatch) ([]arrow.Array, error) {
	// Rows without a distance were in no task, so their columns are read now.
	var late []rowset.RowAddr
	for i := range hits {
		if hits[i].task < 0 {
			hits[i].task, hits[i].row = len(early), len(late)
			late = append(late, hits[i].Addr)
		}
	}
	batches := slices.Clone(early)
	if len(late) > 0 {
		b, err := o.table.Take(ctx, late, o.plan.Early, o.env.Alloc)
		if err != nil {
			return nil, err
		}
		defer b.Release()
		batches = append(batches, b)
	}
	starts := make([]int32, len(batches))
	rows := int32(0)
	for i, b := range batches {
		starts[i] = rows
		if b != nil {
			rows += int32(b.NumRows())
		}
	}
	idx := make([]int32, len(hits))
	for i, h := range hits {
		idx[i] = starts[h.task] + int32(h.row)
	}
	out := make([]arrow.Array, 0, len(o.plan.Early))
	for c := range o.plan.Early {
		col, err := gatherColumn(o.env, batches, c, o.plan.out.Field(c).Type, idx)
		if err != nil {
			return nil, err
		}
		out = append(out, col)
	}
	return out, nil
}

// gatherColumn concatenates column c of the batches and picks rows idx.
func gatherColumn(env *Env, batches []arrow.RecordBatch, c int, t arrow.DataType, idx []int32) (arrow.Array, error) {
	var parts []arrow.Array
	for _, b := range batches {
		if b != nil {
			parts = append(parts, b.Column(c))
		}
	}
	if len(parts) == 0 {
		return array.MakeArrayOfNull(env.Alloc, t, 0), nil
	}
	all, err := array.Concatenate(parts, env.Alloc)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	return expr.TakeArray(env.Alloc, all, idx)
}
