package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// ScanSpec says what a scan reads.
type ScanSpec struct {
	Columns    []string      // of the table, in output order; may be empty (rows without columns, for counting)
	Names      []string      // of the output; nil = Columns
	Candidates CandidatePlan // nil = every live row. Only for tables that are Addressable.
	Filter     expr.Expr     // over the output columns, evaluated right after reading; nil = none
	Reason     string        // why Filter is not answered by an index, for EXPLAIN; "" where that is plain
	RowAddr    bool          // also output "_rowaddr" (uint64) as the last column. Only for tables that are Addressable.
}

// Scan reads a table, on any number of workers.
type Scan struct {
	Table TableRef
	Spec  ScanSpec
	Out   *arrow.Schema
}

var (
	_ Parallel  = (*Scan)(nil)
	_ KeyTarget = (*Scan)(nil)
)

// NewScan checks the spec against the table, which the plan then names by its ref. Errors: ErrNotFound for a column that the table lacks.
func NewScan(table Table, spec ScanSpec) (*Scan, error) {
	if spec.Names == nil {
		spec.Names = spec.Columns
	}
	if len(spec.Names) != len(spec.Columns) {
		return nil, errs.New(errs.ErrInternal, "scan of %s: %d names for %d columns", table.Ref(), len(spec.Names), len(spec.Columns))
	}
	if _, ok := table.(Addressable); !ok && (spec.RowAddr || spec.Candidates != nil) {
		return nil, errs.New(errs.ErrUnsupported, "rows of %s have no addresses", table.Ref())
	}
	fields := make([]arrow.Field, 0, len(spec.Columns)+1)
	for i, name := range spec.Columns {
		at := table.Schema().FieldIndices(name)
		if len(at) == 0 {
			return nil, errs.New(errs.ErrNotFound, "table %s has no column %q", table.Ref(), name)
		}
		f := table.Schema().Field(at[0])
		fields = append(fields, arrow.Field{Name: spec.Names[i], Type: f.Type, Nullable: f.Nullable})
	}
	if spec.RowAddr {
		fields = append(fields, arrow.Field{Name: RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64})
	}
	s := &Scan{Table: table.Ref(), Spec: spec, Out: arrow.NewSchema(fields, nil)}
	if spec.Filter != nil {
		if err := checkCondition("scan of "+table.Ref().String(), spec.Filter, s.Out); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Schema implements Plan.
func (p *Scan) Schema() *arrow.Schema { return p.Out }

// Children implements Plan.
func (p *Scan) Children() []Plan { return nil }

// Describe implements Plan.
func (p *Scan) Describe() Description {
	d := Description{Name: "Scan", Props: []Prop{{"table", p.Table.String()}, {"columns", "[" + strings.Join(p.Spec.Columns, ", ") + "]"}}}
	if p.Spec.Filter != nil {
		d.Props = append(d.Props, Prop{"filter", p.Spec.Filter.String()})
	}
	if p.Spec.Reason != "" {
		d.Props = append(d.Props, Prop{"no_index", p.Spec.Reason})
	}
	if p.Spec.RowAddr {
		d.Props = append(d.Props, Prop{"row_addr", "yes"})
	}
	return d
}

// CandidateInput implements WithCandidates.
func (p *Scan) CandidateInput() CandidatePlan { return p.Spec.Candidates }

// Open implements Plan.
func (p *Scan) Open(ctx context.Context, env *Env) (Operator, error) {
	ops, err := p.OpenWorkers(ctx, env, 1)
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

// OpenWorkers implements Parallel. The table and the candidates are asked here, before any batch flows.
func (p *Scan) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	table, err := env.Tables.OpenTable(ctx, p.Table)
	if err != nil {
		return nil, err
	}
	among, err := p.candidates(ctx, env)
	if err != nil {
		return nil, err
	}
	if among != nil && among.IsEmpty() {
		return []Operator{&empty{schema: p.Out}}, nil
	}
	rows := &scanRows{held: env.Budget.Reserve()}
	rows.refs = n
	if err := rows.held.Grow(among.SizeBytes()); err != nil {
		return nil, err
	}
	sets, err := newKeySets(env, p)
	if err != nil {
		rows.held.Free()
		return nil, err
	}
	ops, err := p.openReaders(ctx, env, table, sets, among, n)
	if err != nil {
		rows.held.Free()
		if sets != nil {
			sets.res.Free()
		}
		return nil, err
	}
	for _, op := range ops {
		switch op := op.(type) {
		case *scan:
			op.rows = rows
		case *lateScan:
			op.shared = rows
		}
	}
	return ops, nil
}

// scanRows pays for the candidates that the workers of a scan share.
type scanRows struct {
	shared
	held *mem.Reservation
}

func (r *scanRows) close() error {
	return r.drop(func() error {
		r.held.Free()
		return nil
	})
}

// openReaders opens n workers, which read some columns late where sets makes that pay.
func (p *Scan) openReaders(ctx context.Context, env *Env, table Table, sets *keySets, among *rowset.Set, n int) ([]Operator, error) {
	if sets != nil {
		if decide, ok := p.latePlan(sets, table); ok {
			return p.openLate(ctx, env, table.(Addressable), sets, among, decide, n)
		}
		sets.refs = n
	}
	codes, keep, expands := p.codes(env)
	s, err := table.Scan(ctx, ScanRequest{
		Columns: p.Spec.Columns, Codes: codes, Among: among, RowAddr: p.Spec.RowAddr, BatchRows: env.BatchRows, Alloc: env.Alloc,
	})
	if err != nil {
		return nil, fmt.Errorf("scan of %s: %w", p.Table, err)
	}
	ops := make([]Operator, n)
	for i := range ops {
		op := &scan{plan: p, env: env, reader: s.Reader(), expands: expands, keep: keep}
		if sets != nil {
			op.keys = newKeyProbe(env, sets)
			for _, k := range sets.sets {
				op.keys.at = append(op.keys.at, k.column)
			}
		}
		if p.Spec.Filter != nil {
			if op.sel, err = newSelection(env, p.Out, p.Spec.Filter); err != nil {
				return nil, err
			}
		}
		ops[i] = op
	}
	return ops, nil
}

// codes are the columns of text to be read as codes: those that the plan above takes as codes (keep, by output column), and those of which the filter
// drops rows before their values are looked at. expands says that there are of the
// latter kind.
func (p *Scan) codes(env *Env) (names []string, keep []bool, expands bool) {
	keep = make([]bool, p.Out.NumFields())
	var filtered []int
	if p.Spec.Filter != nil {
		filtered = sortedColumns(p.Spec.Filter)
	}
	for i, name := range p.Spec.Columns {
		if !isStringKey(p.Out.Field(i).Type) {
			continue
		}
		keep[i] = env.wantsCodes(p, i)
		isFiltered := slices.Contains(filtered, i)
		if keep[i] || isFiltered {
			names = append(names, name)
		}
		expands = expands || (isFiltered && !keep[i])
	}
	return names, keep, expands
}

// candidates returns the rows to read, nil for all.
func (p *Scan) candidates(ctx context.Context, env *Env) (*rowset.Set, error) {
	if p.Spec.Candidates == nil {
		return nil, nil
	}
	t, err := EvalCandidates(ctx, env, p.Spec.Candidates, nil)
	if err != nil {
		return nil, fmt.Errorf("candidates of %s: %w", p.Table, err)
	}
	env.Stats.Node(p).Add("candidates", int64(t.True.Count()))
	return t.True, nil
}

type scan struct {
	plan    *Scan
	env     *Env
	reader  BatchReader
	expands bool       // some columns are read as codes that nobody above takes
	keep    []bool     // by output column: the plan above takes codes
	keys    *keyProbe  // nil = all rows
	sel     *selection // nil = all rows
	rows    *scanRows
	closed  bool
}

func (s *scan) Schema() *arrow.Schema { return s.plan.Out }

func (s *scan) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		b, err := s.reader.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b.NumRows() == 0 {
			b.Release()
			continue
		}
		if err := checkBatch(s.plan.Table, s.plan.Out, b); err != nil {
			b.Release()
			return nil, err
		}
		b = withSchema(s.plan.Out, b)
		if s.keys != nil {
			if b, err = s.keys.keep(b); err != nil {
				return nil, err
			}
		}
		if b != nil && s.sel != nil {
			b, err = s.sel.keep(b)
		}
		if b != nil && err == nil && s.expands {
			b, err = expandBatch(s.env.Alloc, s.plan.Out, b, s.keep)
		}
		if err != nil || b != nil {
			return b, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// checkBatch holds a source to its word before its arrays meet code that trusts their types.
func checkBatch(table TableRef, want *arrow.Schema, b arrow.RecordBatch) error {
	if int(b.NumCols()) != want.NumFields() {
		return errs.New(errs.ErrInternal, "scan of %s: %d columns came for %d", table, b.NumCols(), want.NumFields())
	}
	for i, c := range b.Columns() {
		t := want.Field(i).Type
		if isCoded(c, t) && isStringKey(t) && arrow.TypeEqual(c.DataType(), codesType(t)) {
			continue
		}
		if c.DataType() != t && !arrow.TypeEqual(c.DataType(), t) {
			return errs.New(errs.ErrInternal, "scan of %s: column %q came as %s, not %s", table, want.Field(i).Name, c.DataType(), t)
		}
	}
	return nil
}

func (s *scan) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := errors.Join(s.reader.Close(), s.rows.close())
	if s.keys == nil {
		return err
	}
	return errors.Join(err, s.keys.sets.drop(func() error {
		s.keys.sets.res.Free()
		return nil
	}))
}

// KeyTarget is a plan that can leave out rows early when it is told which keys of a column matter.
type KeyTarget interface {
	Plan
	// TakesKeys says whether the plan makes use of keys for its output column i.
	TakesKeys(i int) bool
}

// TakesKeys implements KeyTarget.
func (p *Scan) TakesKeys(i int) bool { return i < len(p.Spec.Columns) }

// KeyFilter says, of a plan that appears once in its tree, that only rows whose Column has one of the values in Keys (distinct, none NULL) are wanted from Plan.
type KeyFilter struct {
	Plan   Plan
	Column int
	Keys   arrow.Array
}

// KeyFilters returns what joins above found out about p while the query runs; the plan may drop rows that fail any of them.
func (e *Env) KeyFilters(p Plan) []KeyFilter {
	var out []KeyFilter
	for _, f := range e.keyFilters {
		if f.Plan == p {
			out = append(out, f)
		}
	}
	return out
}

// WithKeyFilter returns an Env whose KeyFilters also has f, after following it down to the plan that can use it; ok is false where none can.
func (e *Env) WithKeyFilter(f KeyFilter) (env *Env, ok bool) {
	for {
		if t, isTarget := f.Plan.(KeyTarget); isTarget && t.TakesKeys(f.Column) {
			out := *e
			out.keyFilters = append(slices.Clone(e.keyFilters), f)
			return &out, true
		}
		t, isTraceable := f.Plan.(Traceable)
		if !isTraceable {
			return e, false
		}
		if f.Plan, f.Column = t.TraceColumn(f.Column); f.Plan == nil {
			return e, false
		}
	}
}
