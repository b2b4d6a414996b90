package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/rowset"
)

var _ = []CandidatePlan{(*IndexLookup)(nil), (*CandidateScan)(nil), (*CandidateAnd)(nil), (*CandidateOr)(nil), (*CandidateNot)(nil), (*KeyMask)(nil)}

// EvalCandidates asks p and counts what it found in env.Stats.
func EvalCandidates(ctx context.Context, env *Env, p CandidatePlan, among *rowset.Set) (index.Truth, error) {
	start := time.Now()
	t, err := p.Candidates(ctx, env, among)
	if err == nil && env.Stats != nil {
		env.Stats.Candidate(p).Batch(int64(t.True.Count()), time.Since(start))
	}
	return t, err
}

// truthBytes is the memory of answers.
func truthBytes(truths ...index.Truth) int64 {
	var n int64
	for _, t := range truths {
		n += t.True.SizeBytes() + t.Null.SizeBytes()
	}
	return n
}

// IndexLookup answers one predicate through an index, and by reading the rows of fragments that the index does not cover.
type IndexLookup struct {
	Table     TableRef
	Column    string
	Kind      index.Kind
	Index     string
	Predicate index.Predicate
	Match     index.Match    // what the planner was told of the index
	Coverage  Coverage       // when it was planned
	Recheck   *CandidateScan // the same predicate by reading; for uncovered fragments and answers that are only an upper bound
	Fresh     bool           // read uncovered fragments; false under freshness = indexed_only
}

// Coverage is what of a table an index serves, for EXPLAIN.
type Coverage struct {
	ByIndex int    `json:",omitempty"` // fragments
	ByScan  int    `json:",omitempty"` // fragments
	Fault   string `json:",omitempty"` // why segments do not serve; "" where all do
}

// CoverageOf compares an index that was chosen with its table.
func CoverageOf(table Addressable, info IndexInfo, faults []IndexFault) Coverage {
	all := table.FragmentIDs()
	byScan := len(uncoveredFragments(all, info.Covers))
	out := Coverage{ByIndex: len(all) - byScan, ByScan: byScan}
	var texts []string
	for _, f := range faults {
		if f.Index == info.Name {
			texts = append(texts, f.String())
		}
	}
	out.Fault = strings.Join(texts, "; ")
	return out
}

// props print the fragments that are served, and why others are not. fresh says that the others are read.
func (c Coverage) props(fresh bool) []Prop {
	rest := fmt.Sprintf("%d by scan", c.ByScan)
	if !fresh {
		rest = fmt.Sprintf("%d left out (freshness = indexed_only)", c.ByScan)
	}
	out := []Prop{{"fragments", fmt.Sprintf("%d by index, %s", c.ByIndex, rest)}}
	if c.Fault != "" {
		out = append(out, Prop{"fault", c.Fault})
	}
	return out
}

// CandidateScan answers an expression by reading the columns it needs, of rows that are still candidates only.
type CandidateScan struct {
	Table   TableRef
	Columns []string
	Expr    expr.Expr // over Columns by position, boolean
	Reason  string    // why no index answers it; "" where that is plain
}

// CandidateAnd is three-valued AND. Inputs are asked in order, each for the rows that the ones before left open.
type CandidateAnd struct{ Inputs []CandidatePlan }

// CandidateOr is three-valued OR; later inputs are asked for the rows that are not TRUE yet.
type CandidateOr struct{ Inputs []CandidatePlan }

// CandidateNot is three-valued NOT.
type CandidateNot struct{ Input CandidatePlan }

// Children implements CandidatePlan.
func (*IndexLookup) Children() []CandidatePlan { return nil }

// Children implements CandidatePlan.
func (*CandidateScan) Children() []CandidatePlan { return nil }

// Children implements CandidatePlan.
func (c *CandidateAnd) Children() []CandidatePlan { return c.Inputs }

// Children implements CandidatePlan.
func (c *CandidateOr) Children() []CandidatePlan { return c.Inputs }

// Children implements CandidatePlan.
func (c *CandidateNot) Children() []CandidatePlan { return []CandidatePlan{c.Input} }

// Describe implements CandidatePlan.
func (c *IndexLookup) Describe() Description {
	name := "IndexLookup"
	if c.Kind == index.KindLabelList {
		name = "LabelIndexLookup"
	}
	props := []Prop{{"table", c.Table.String()}, {"index", c.Index}, {"kind", string(c.Kind)}, {"predicate", c.Column + " " + c.Predicate.String()}}
	return Description{Name: name, Props: append(props, c.Coverage.props(c.Fresh)...)}
}

// Describe implements CandidatePlan.
func (c *CandidateScan) Describe() Description {
	d := Description{Name: "CandidateScan", Props: []Prop{{"table", c.Table.String()}, {"columns", fmt.Sprint(c.Columns)}, {"where", c.Expr.String()}}}
	if c.Reason != "" {
		d.Props = append(d.Props, Prop{"no_index", c.Reason})
	}
	return d
}

// Describe implements CandidatePlan.
func (*CandidateAnd) Describe() Description { return Description{Name: "And"} }

// Describe implements CandidatePlan.
func (*CandidateOr) Describe() Description { return Description{Name: "Or"} }

// Describe implements CandidatePlan.
func (*CandidateNot) Describe() Description { return Description{Name: "Not"} }

// Candidates implements CandidatePlan.
func (c *CandidateAnd) Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error) {
	var acc index.Truth
	held := env.Budget.Reserve() // for what waits while an input is asked
	defer held.Free()
	for i, in := range c.Inputs {
		t, err := EvalCandidates(ctx, env, in, among)
		if err != nil {
			return index.Truth{}, err
		}
		if i == 0 {
			acc = t
		} else {
			acc = acc.And(t)
		}
		// Rows that are FALSE by now stay FALSE: later inputs need not look at them.
		among = rowset.Or(acc.True, acc.Null)
		if among.IsEmpty() {
			return index.Truth{True: rowset.NewSet(), Null: rowset.NewSet()}, nil
		}
		if err := held.Resize(truthBytes(acc) + among.SizeBytes()); err != nil {
			return index.Truth{}, err
		}
	}
	return acc, nil
}

// Candidates implements CandidatePlan.
func (c *CandidateOr) Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error) {
	universe, err := liveAmong(ctx, env, c, among)
	if err != nil {
		return index.Truth{}, err
	}
	acc := index.Truth{True: rowset.NewSet(), Null: rowset.NewSet()}
	open := among
	held := env.Budget.Reserve() // for what waits while an input is asked
	defer held.Free()
	for _, in := range c.Inputs {
		if err := held.Resize(universe.SizeBytes() + truthBytes(acc) + open.SizeBytes()); err != nil {
			return index.Truth{}, err
		}
		t, err := EvalCandidates(ctx, env, in, open)
		if err != nil {
			return index.Truth{}, err
		}
		acc = acc.Or(t)
		if open = rowset.AndNot(universe, acc.True); open.IsEmpty() {
			break
		}
	}
	return acc, nil
}

// Candidates implements CandidatePlan.
func (c *CandidateNot) Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error) {
	var out index.Truth
	err := c.ask(ctx, env, among, func(t index.Truth, universe *rowset.Set) { out = t.Not(universe) })
	return out, err
}

// ask hands use the input's answer and the universe that it is negated in.
func (c *CandidateNot) ask(ctx context.Context, env *Env, among *rowset.Set, use func(t index.Truth, universe *rowset.Set)) error {
	universe, err := liveAmong(ctx, env, c, among)
	if err != nil {
		return err
	}
	held := env.Budget.Reserve()
	defer held.Free()
	if err := held.Grow(universe.SizeBytes()); err != nil {
		return err
	}
	t, err := EvalCandidates(ctx, env, c.Input, among)
	if err == nil {
		use(t, universe)
	}
	return err
}

// CountCandidates counts the rows that p makes TRUE. A NOT is counted without making its sets.
func CountCandidates(ctx context.Context, env *Env, p CandidatePlan) (int64, error) {
	not, ok := p.(*CandidateNot)
	if !ok {
		t, err := EvalCandidates(ctx, env, p, nil)
		if err != nil {
			return 0, err
		}
		return int64(t.True.Count()), nil
	}
	start := time.Now()
	var n int64
	err := not.ask(ctx, env, nil, func(t index.Truth, universe *rowset.Set) { n = int64(t.CountNot(universe)) })
	if err == nil && env.Stats != nil {
		env.Stats.Candidate(p).Batch(n, time.Since(start))
	}
	return n, err
}

// Candidates implements CandidatePlan.
func (c *IndexLookup) Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error) {
	table, err := openIndexed(ctx, env, c.Table)
	if err != nil {
		return index.Truth{}, err
	}
	stats := env.Stats.Candidate(c)
	held := env.Budget.Reserve()
	defer held.Free()
	t, did, err := table.Lookup(ctx, LookupRequest{Index: c.Index, Predicate: c.Predicate, Match: c.Match, Alloc: env.Alloc, Budget: env.Budget})
	if err != nil {
		return index.Truth{}, fmt.Errorf("index %s of %s: %w", c.Index, c.Table, err)
	}
	env.warn(FaultWarnings(c.Table, did.Faults)...)
	for _, f := range did.Faults {
		stats.Note("fault_of_"+f.Segment[:min(8, len(f.Segment))], f.String())
	}
	stats.Add("segments", int64(did.Segments))
	if err := held.Grow(truthBytes(t)); err != nil {
		return index.Truth{}, err
	}
	if among != nil {
		t = index.Truth{True: rowset.And(t.True, among), Null: rowset.And(t.Null, among)}
	}
	if c.Match == index.AtMost {
		if t, err = c.Recheck.Candidates(ctx, env, rowset.Or(t.True, t.Null)); err != nil {
			return index.Truth{}, err
		}
	}
	uncovered := uncoveredFragments(table.FragmentIDs(), did.Covers)
	stats.Add("fragments_by_index", int64(len(table.FragmentIDs())-len(uncovered)))
	stats.Add("fragments_by_scan", int64(len(uncovered)))
	if len(uncovered) == 0 || !c.Fresh {
		return t, nil
	}
	rest, err := table.LiveRows(ctx, uncovered)
	if err != nil {
		return index.Truth{}, err
	}
	if among != nil {
		rest = rowset.And(rest, among)
	}
	if err := held.Grow(rest.SizeBytes()); err != nil {
		return index.Truth{}, err
	}
	scanned, err := c.Recheck.Candidates(ctx, env, rest)
	if err != nil {
		return index.Truth{}, err
	}
	// The two answers are about different fragments, so their union is disjoint.
	return index.Truth{True: rowset.Or(t.True, scanned.True), Null: rowset.Or(t.Null, scanned.Null)}, nil
}

func uncoveredFragments(all []uint32, covers *roaring.Bitmap) []uint32 {
	var out []uint32
	for _, f := range all {
		if covers == nil || !covers.Contains(f) {
			out = append(out, f)
		}
	}
	return out
}

// Candidates implements CandidatePlan.
func (c *CandidateScan) Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error) {
	out := index.Truth{True: rowset.NewSet(), Null: rowset.NewSet()}
	if among != nil && among.IsEmpty() {
		return out, nil
	}
	table, err := env.Tables.OpenTable(ctx, c.Table)
	if err != nil {
		return out, err
	}
	hits, open, learn := c.byZones(table, among)
	if hits != nil && open.IsEmpty() {
		out.True = hits
		return out, nil
	}
	scan, err := table.Scan(ctx, ScanRequest{Columns: c.Columns, Codes: c.Columns, Among: open, RowAddr: true, BatchRows: env.BatchRows, Alloc: env.Alloc})
	if err != nil {
		return out, err
	}
	prog, err := expr.Compile(c.Expr, candidateSchema(table.Schema(), c.Columns))
	if err != nil {
		return out, err
	}
	parts := make([]truthBuilder, env.Workers)
	defer func() {
		for i := range parts {
			parts[i].held.Free()
		}
	}()
	g, gctx := spawn.WithContext(ctx, env.Workers)
	for w := range parts {
		parts[w].held, parts[w].learn = env.Budget.Reserve(), learn
		g.Go("candidate scan", func() error {
			return readBatches(gctx, scan.Reader(), func(b arrow.RecordBatch) error { return c.collect(env, prog, b, &parts[w]) })
		})
	}
	if err := g.Wait(); err != nil {
		return out, err
	}
	if learn {
		if z, whole := joinZones(parts, table.Rows()); whole {
			table.(ZoneKeeper).KeepZones(c.Columns[0], z) //nolint:forcetypeassert // byZones asked
		}
	}
	isTrue, isNull := make([]*rowset.Set, len(parts), len(parts)+1), make([]*rowset.Set, len(parts))
	for i := range parts {
		isTrue[i], isNull[i] = parts[i].isTrue.Set(), parts[i].isNull.Set()
	}
	isTrue = append(isTrue, hits)
	return index.Truth{True: rowset.Union(isTrue...), Null: rowset.Union(isNull...)}, nil
}

// truthBuilder is what one worker of a scan has found.
type truthBuilder struct {
	isTrue, isNull rowset.Builder
	held           *mem.Reservation
	keys           []uint64 // of one batch
	learn          bool     // fill zones
	zones          zoneBuilder
}

// pay resizes the reservation to what t holds.
func (t *truthBuilder) pay() error {
	return t.held.Resize(t.isTrue.SizeBytes() + t.isNull.SizeBytes() + int64(cap(t.keys))*8 + t.zones.sizeBytes())
}

// addTrue takes the rows whose bit is set and valid (nil = all are).
func (t *truthBuilder) addTrue(addrs []uint64, bits []byte, offset int, valid []byte, validAt int) {
	t.keys = t.keys[:0]
	for i := 0; i < len(addrs); i++ {
		at := offset + i
		if at&7 == 0 && bits[at>>3] == 0 { // matches are rare mostly
			i += 7
			continue
		}
		if bitutil.BitIsSet(bits, at) && (valid == nil || bitutil.BitIsSet(valid, validAt+i)) {
			t.keys = append(t.keys, addrs[i])
		}
	}
	t.isTrue.Add(t.keys)
}

// addNull takes the rows whose bit of validity is not set.
func (t *truthBuilder) addNull(addrs []uint64, valid []byte, validAt int) {
	t.keys = t.keys[:0]
	for i, addr := range addrs {
		if !bitutil.BitIsSet(valid, validAt+i) {
			t.keys = append(t.keys, addr)
		}
	}
	t.isNull.Add(t.keys)
}

// candidateSchema is what a scan of the columns yields before the row addresses. A column that the table lacks has been refused by the scan.
func candidateSchema(table *arrow.Schema, columns []string) *arrow.Schema {
	fields := make([]arrow.Field, 0, len(columns))
	for _, name := range columns {
		if at := table.FieldIndices(name); len(at) > 0 {
			fields = append(fields, table.Field(at[0]))
		}
	}
	return arrow.NewSchema(fields, nil)
}

// collect sorts the rows of one batch, whose last column is the row address, into t.
func (c *CandidateScan) collect(env *Env, prog *expr.Program, b arrow.RecordBatch, t *truthBuilder) error {
	v, err := prog.Eval(&env.Expr, b)
	if err != nil {
		return err
	}
	defer v.Release()
	addrs, ok := b.Column(int(b.NumCols()) - 1).(*array.Uint64)
	if !ok {
		return errs.New(errs.ErrInternal, "scan of %s gave no row addresses", c.Table)
	}
	if t.learn {
		t.zones.add(b.Column(0), addrs.Uint64Values())
	}
	if v.DataType().ID() == arrow.NULL { // a constant NULL among conditions that indices answer
		t.isNull.Add(addrs.Uint64Values())
		return t.pay()
	}
	answer, ok := v.(*array.Boolean)
	if !ok {
		return errs.New(errs.ErrInternal, "filter %s gave %s, not a boolean", c.Expr, v.DataType())
	}
	valid, validAt := validity(answer)
	if bits := answer.Data().Buffers()[1]; bits != nil { // all NULL need no bits
		t.addTrue(addrs.Uint64Values(), bits.Bytes(), answer.Data().Offset(), valid, validAt)
	}
	if valid != nil {
		t.addNull(addrs.Uint64Values(), valid, validAt)
	}
	return t.pay()
}

// KeyMask answers "column IN (keys of a sub-plan)": a join that only filters, turned into a set of candidates. A NULL column is NULL; NULL
// keys are ignored, so the answer serves joins and semi-joins but never NOT IN.
type KeyMask struct {
	Table    TableRef
	Column   string
	Keys     Plan // one column of the column's type
	Index    string
	Kind     index.Kind
	Match    index.Match // of Index
	Reason   string      // why no index answers it; "" where that is plain
	Coverage Coverage    // of Index
}

// Children implements CandidatePlan.
func (*KeyMask) Children() []CandidatePlan { return nil }

// Describe implements CandidatePlan.
func (c *KeyMask) Describe() Description {
	d := Description{Name: "KeyMask", Props: []Prop{{"table", c.Table.String()}, {"column", c.Column}, {"keys", c.Keys.Describe().Name}}}
	switch {
	case c.Index != "":
		d.Props = append(append(d.Props, Prop{"index", c.Index}, Prop{"kind", string(c.Kind)}), c.Coverage.props(true)...)
	case c.Reason != "":
		d.Props = append(d.Props, Prop{"no_index", c.Reason})
	}
	return d
}

// Candidates implements CandidatePlan.
func (c *KeyMask) Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error) {
	none := index.Truth{True: rowset.NewSet(), Null: rowset.NewSet()}
	keys, err := c.collectKeys(ctx, env)
	if err != nil {
		return none, err
	}
	if keys.Len() == 0 {
		return none, nil
	}
	held := env.Budget.Reserve()
	defer held.Free()
	if err := held.Grow(int64(keys.Data().SizeInBytes())); err != nil { //nolint:gosec // a size
		return none, err
	}
	column := &expr.Column{ID: 0, Name: c.Column, T: keys.DataType()}
	in, err := expr.NewCall("in", column, &expr.Literal{Value: scalar.NewListScalar(keys)})
	if err != nil {
		return none, err
	}
	scan := &CandidateScan{Table: c.Table, Columns: []string{c.Column}, Expr: in}
	if c.Index == "" {
		return scan.Candidates(ctx, env, among)
	}
	lookup := &IndexLookup{Table: c.Table, Column: c.Column, Kind: c.Kind, Index: c.Index, Match: c.Match, Predicate: index.Predicate{Op: index.OpIn, Values: keys}, Recheck: scan, Fresh: true}
	return lookup.Candidates(ctx, env, among)
}

// collectKeys runs the sub-plan and returns its keys without NULL. They become a constant, which nobody releases: the garbage collector owns them.
func (c *KeyMask) collectKeys(ctx context.Context, env *Env) (arrow.Array, error) {
	batches, err := Collect(ctx, env, c.Keys)
	if err != nil {
		return nil, err
	}
	parts := make([]arrow.Array, 0, len(batches))
	for _, b := range batches {
		parts = append(parts, b.Column(0))
		defer b.Release()
	}
	t := c.Keys.Schema().Field(0).Type
	if len(parts) == 0 {
		return array.MakeArrayOfNull(memory.DefaultAllocator, t, 0), nil
	}
	all, err := array.Concatenate(parts, env.Alloc)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	idx := make([]int32, 0, all.Len())
	for i := range all.Len() {
		if all.IsValid(i) {
			idx = append(idx, int32(i))
		}
	}
	return expr.TakeArray(memory.DefaultAllocator, all, idx)
}

// readBatches hands each batch to use, which must not keep it, and closes r.
func readBatches(ctx context.Context, r BatchReader, each func(arrow.RecordBatch) error) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = each(b)
		b.Release()
		if err != nil {
			return err
		}
	}
}

func openIndexed(ctx context.Context, env *Env, ref TableRef) (Indexed, error) {
	t, err := env.Tables.OpenTable(ctx, ref)
	if err != nil {
		return nil, err
	}
	table, ok := t.(Indexed)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "table %s has no indices", ref)
	}
	return table, nil
}

// liveAmong returns among, or every live row of the table that the plan is about.
func liveAmong(ctx context.Context, env *Env, p CandidatePlan, among *rowset.Set) (*rowset.Set, error) {
	if among != nil {
		return among, nil
	}
	ref, ok := candidateTable(p)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "candidate plan %s names no table", p.Describe())
	}
	t, err := env.Tables.OpenTable(ctx, ref)
	if err != nil {
		return nil, err
	}
	table, ok := t.(Addressable)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "table %s has no row addresses", ref)
	}
	return table.LiveRows(ctx, nil)
}

func candidateTable(p CandidatePlan) (TableRef, bool) {
	switch p := p.(type) {
	case *IndexLookup:
		return p.Table, true
	case *CandidateScan:
		return p.Table, true
	case *KeyMask:
		return p.Table, true
	case *JoinMask:
		return p.Table, true
	}
	for _, c := range p.Children() {
		if ref, ok := candidateTable(c); ok {
			return ref, true
		}
	}
	return TableRef{}, false
}
