package exec

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// JoinKind is how a join treats rows without a match.
type JoinKind string

// The kinds of join. Semi and anti output the left columns only. JoinNullAwareAnti is NOT IN: a row passes if the comparison with every right row is FALSE.
// JoinMark outputs the left columns and a boolean: TRUE where a right row matches, NULL where none does but a comparison is NULL, else FALSE (IN under
// OR). JoinSingle is a left join that fails with ErrInvalid where a row has several matches (a scalar subquery).
const (
	JoinInner         JoinKind = "inner"
	JoinLeft          JoinKind = "left"
	JoinFull          JoinKind = "full"
	JoinSemi          JoinKind = "semi"
	JoinAnti          JoinKind = "anti"
	JoinNullAwareAnti JoinKind = "null_aware_anti"
	JoinMark          JoinKind = "mark"
	JoinSingle        JoinKind = "single"
)

// JoinSpec describes a join. Rows match where every left key equals its right key and Residual is TRUE.
type JoinSpec struct {
	Kind                JoinKind
	Left, Right         Plan
	LeftKeys, RightKeys []expr.Expr // of equal types, pair by pair; none = every pair of rows is looked at
	NullSafe            []bool      // by key: NULL equals NULL (<=>); nil = all false
	Residual            expr.Expr   // over the left columns, then the right columns; nil = none
	BuildLeft           bool        // hash the left side and stream the right one; for inner, left, full, semi and anti
	Output              []int       // the columns wanted, by position in the whole output; nil = all
}

// HashJoin hashes one side (the right one unless BuildLeft) and streams the other. It outputs the left columns, then the right columns.
//
// The build side is gathered by all workers, then each worker of the streamed side probes on its own.
type HashJoin struct {
	Spec JoinSpec
	out  *arrow.Schema
}

var (
	_ Parallel  = (*HashJoin)(nil)
	_ Traceable = (*HashJoin)(nil)
)

// NewHashJoin checks the spec and computes the schema. ErrUnsupported for key types that cannot be joined.
func NewHashJoin(spec JoinSpec) (*HashJoin, error) {
	if err := spec.checkKeys(); err != nil {
		return nil, err
	}
	left, right := spec.Left.Schema().Fields(), spec.Right.Schema().Fields()
	both := arrow.NewSchema(slices.Concat(left, right), nil)
	if spec.Residual != nil {
		if err := checkCondition("join", spec.Residual, both); err != nil {
			return nil, err
		}
	}
	p := &HashJoin{Spec: spec}
	whole := both
	switch spec.Kind {
	case JoinInner:
		whole = both
	case JoinLeft, JoinSingle, JoinFull:
		whole = arrow.NewSchema(slices.Concat(asNullable(left, spec.Kind == JoinFull), asNullable(right, true)), nil)
	case JoinSemi, JoinAnti, JoinNullAwareAnti:
		whole = spec.Left.Schema()
	case JoinMark:
		whole = arrow.NewSchema(append(slices.Clone(left), arrow.Field{Name: "mark", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}), nil)
	default:
		return nil, errs.New(errs.ErrInternal, "join of kind %q", spec.Kind)
	}
	if spec.BuildLeft && (spec.Kind == JoinNullAwareAnti || spec.Kind == JoinMark || spec.Kind == JoinSingle) {
		return nil, errs.New(errs.ErrInternal, "a %s join cannot build on the left", spec.Kind)
	}
	p.out = whole
	if spec.Output != nil {
		fields := make([]arrow.Field, len(spec.Output))
		for i, c := range spec.Output {
			if c < 0 || c >= whole.NumFields() {
				return nil, errs.New(errs.ErrInternal, "join: output column %d of %d", c, whole.NumFields())
			}
			fields[i] = whole.Field(c)
		}
		p.out = arrow.NewSchema(fields, nil)
	}
	return p, nil
}

// sources says for each output column which side it comes from; for a join that outputs no pairs, a column behind the left ones is the mark.
func (p *HashJoin) sources() []joinColumn {
	wanted := p.Spec.Output
	if wanted == nil {
		wanted = make([]int, p.out.NumFields())
		for i := range wanted {
			wanted[i] = i
		}
	}
	left := p.Spec.Left.Schema().NumFields()
	out := make([]joinColumn, len(wanted))
	for i, c := range wanted {
		out[i] = joinColumn{build: p.Spec.BuildLeft, column: c}
		if c >= left {
			out[i] = joinColumn{build: !p.Spec.BuildLeft, column: c - left, mark: p.Spec.Kind == JoinMark}
		}
	}
	return out
}

type joinColumn struct {
	build  bool // of the build side
	mark   bool
	column int
	coded  bool // the plan above takes codes
}

func (s *JoinSpec) checkKeys() error {
	if len(s.LeftKeys) != len(s.RightKeys) || (s.NullSafe != nil && len(s.NullSafe) != len(s.LeftKeys)) {
		return errs.New(errs.ErrInternal, "join: %d left keys, %d right keys, %d null-safe flags", len(s.LeftKeys), len(s.RightKeys), len(s.NullSafe))
	}
	for i := range s.LeftKeys {
		l, r := s.LeftKeys[i], s.RightKeys[i]
		if err := checkExpr("join", l, s.Left.Schema()); err != nil {
			return err
		}
		if err := checkExpr("join", r, s.Right.Schema()); err != nil {
			return err
		}
		if err := checkKeyType(l.Type()); err != nil {
			return err
		}
		if !sameKeys(plainType(l.Type()), plainType(r.Type())) {
			return errs.New(errs.ErrInternal, "join: keys %s (%s) and %s (%s) need one type", l, l.Type(), r, r.Type())
		}
	}
	return nil
}

// sameKeys says whether values of two types have the same key bytes where they are equal.
func sameKeys(a, b arrow.DataType) bool {
	if arrow.TypeEqual(a, b) || isStringKey(a) && isStringKey(b) {
		return true
	}
	d, ok := a.(*arrow.Decimal128Type)
	e, ok2 := b.(*arrow.Decimal128Type)
	return ok && ok2 && d.Scale == e.Scale
}

func asNullable(fields []arrow.Field, yes bool) []arrow.Field {
	out := slices.Clone(fields)
	for i := range out {
		out[i].Nullable = out[i].Nullable || yes
	}
	return out
}

// Schema implements Plan.
func (p *HashJoin) Schema() *arrow.Schema { return p.out }

// Children implements Plan.
func (p *HashJoin) Children() []Plan { return []Plan{p.Spec.Left, p.Spec.Right} }

// Describe implements Plan.
func (p *HashJoin) Describe() Description {
	d := Description{Name: "HashJoin", Props: []Prop{{"kind", string(p.Spec.Kind)}}}
	if len(p.Spec.LeftKeys) == 0 {
		d.Name = "NestedLoopJoin"
	} else {
		on := make([]string, len(p.Spec.LeftKeys))
		for i := range on {
			op := " = "
			if p.Spec.nullSafe(i) {
				op = " <=> "
			}
			on[i] = p.Spec.LeftKeys[i].String() + op + p.Spec.RightKeys[i].String()
		}
		d.Props = append(d.Props, Prop{"on", strings.Join(on, " AND ")})
	}
	if p.Spec.Residual != nil {
		d.Props = append(d.Props, Prop{"residual", p.Spec.Residual.String()})
	}
	build := "right"
	if p.Spec.BuildLeft {
		build = "left"
	}
	d.Props = append(d.Props, Prop{"build", build})
	return d
}

// TraceColumn implements Traceable: rows of the streamed side go in and out one by one, unless rows of it appear that have no match on the other.
func (p *HashJoin) TraceColumn(i int) (Plan, int) {
	if p.Spec.Output != nil {
		i = p.Spec.Output[i]
	}
	left := p.Spec.Left.Schema().NumFields()
	switch p.Spec.Kind {
	case JoinInner:
		if i < left {
			return p.Spec.Left, i
		}
		return p.Spec.Right, i - left
	case JoinLeft, JoinSemi, JoinAnti, JoinNullAwareAnti, JoinMark, JoinSingle:
		if i < left {
			return p.Spec.Left, i
		}
	}
	return nil, 0
}

// codedSide is the input, and its column, whose values output column i shows.
func (p *HashJoin) codedSide(i int) (Plan, int) {
	s := p.sources()[i]
	switch {
	case s.mark:
		return nil, 0
	case s.build == p.Spec.BuildLeft:
		return p.Spec.Left, s.column
	}
	return p.Spec.Right, s.column
}

func (s *JoinSpec) nullSafe(i int) bool { return s.NullSafe != nil && s.NullSafe[i] }

// build and probe are the sides and their keys by role.
func (s *JoinSpec) build() (Plan, []expr.Expr) {
	if s.BuildLeft {
		return s.Left, s.LeftKeys
	}
	return s.Right, s.RightKeys
}

func (s *JoinSpec) probe() (Plan, []expr.Expr) {
	if s.BuildLeft {
		return s.Right, s.RightKeys
	}
	return s.Left, s.LeftKeys
}

// pairs says whether the join outputs pairs of rows.
func (s *JoinSpec) pairs() bool {
	return s.Kind == JoinInner || s.Kind == JoinLeft || s.Kind == JoinFull || s.Kind == JoinSingle
}

// keepsProbe says whether streamed rows without a match come out, with NULLs for the other side.
func (s *JoinSpec) keepsProbe() bool {
	return s.Kind == JoinFull || s.Kind == JoinSingle || (s.Kind == JoinLeft && !s.BuildLeft)
}

// endsWithBuild says whether rows of the build side come out after the last streamed row: those without a match, or for a semi join those with one.
func (s *JoinSpec) endsWithBuild() bool {
	return s.Kind == JoinFull || (s.BuildLeft && (s.Kind == JoinLeft || s.Kind == JoinSemi || s.Kind == JoinAnti))
}

// dropsProbe says whether streamed rows without an equal key make no difference.
func (s *JoinSpec) dropsProbe() bool {
	return s.Kind == JoinInner || s.Kind == JoinSemi || (s.BuildLeft && (s.Kind == JoinLeft || s.Kind == JoinAnti))
}

// Open implements Plan.
func (p *HashJoin) Open(ctx context.Context, env *Env) (Operator, error) {
	ops, err := p.OpenWorkers(ctx, env, 1)
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

// OpenWorkers implements Parallel. The first worker that is asked builds, on all of env.Workers; then the streamed side is opened, so that it can
// make use of the keys that were found (see Env.KeyFilters).
func (p *HashJoin) OpenWorkers(_ context.Context, env *Env, n int) ([]Operator, error) {
	s := &joinState{shared: shared{refs: n}, plan: p, env: env, workers: n}
	s.probing.Store(int32(n))
	sources := p.sources()
	for i := range sources {
		sources[i].coded = env.wantsCodes(p, i)
	}
	ops := make([]Operator, n)
	for i := range ops {
		ops[i] = &join{state: s, worker: i, sources: sources}
	}
	return ops, nil
}

// joinState is what the workers of one join share.
type joinState struct {
	shared
	plan    *HashJoin
	env     *Env
	workers int
	started lazy[*joinBuild]
	table   *joinBuild
	inputs  []Operator // of the streamed side, by worker; fewer than workers where it cannot run on so many
	filters []KeyFilter
	probing atomic.Int32 // workers that still stream
}

// start builds and opens the streamed side.
func (s *joinState) start(ctx context.Context) (*joinBuild, error) {
	spec := &s.plan.Spec
	s.table = &joinBuild{env: s.env, spec: spec, res: s.env.Budget.Reserve()}
	if err := s.table.run(ctx, s.plan.sources()); err != nil {
		return nil, err
	}
	s.env.Stats.Node(s.plan).Add("build_rows", int64(s.table.rows))
	if s.table.rows == 0 && spec.dropsProbe() {
		return s.table, nil
	}
	env, err := s.pushKeys()
	if err != nil {
		return nil, err
	}
	probe, _ := spec.probe()
	s.inputs, err = OpenWorkers(ctx, env, probe, s.workers)
	return s.table, err
}

// keyFilterRowsMax is up to how many build rows the keys are offered to the streamed side.
const keyFilterRowsMax = 1 << 16

// pushKeys offers the keys of the build side to the streamed side.
func (s *joinState) pushKeys() (*Env, error) {
	spec, env := &s.plan.Spec, s.env
	if !spec.dropsProbe() || s.table.rows > keyFilterRowsMax {
		return env, nil
	}
	probe, keys := spec.probe()
	for i, k := range keys {
		c, ok := k.(*expr.Column)
		if !ok || spec.nullSafe(i) {
			continue
		}
		target, ok := env.WithKeyFilter(KeyFilter{Plan: probe, Column: c.ID})
		if !ok {
			continue
		}
		values, err := s.table.distinctKeys(i)
		if err != nil {
			return env, err
		}
		if !arrow.TypeEqual(values.DataType(), c.T) {
			values.Release()
			continue
		}
		f := &target.keyFilters[len(target.keyFilters)-1]
		f.Keys = values
		s.filters = append(s.filters, *f)
		s.env.Stats.Node(s.plan).Add("keys_pushed", int64(values.Len()))
		env = target
	}
	return env, nil
}

func (s *joinState) free() error {
	err := closeAll(s.inputs)
	for _, f := range s.filters {
		f.Keys.Release()
	}
	if s.table != nil {
		s.table.close()
	}
	return err
}

func (j *join) Schema() *arrow.Schema { return j.state.plan.out }

func (j *join) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := j.next(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nameMemory("join", err)
	}
	return b, err
}

func (j *join) Close() error {
	if j.closed {
		return nil
	}
	j.closed = true
	j.dropBatch()
	return j.state.drop(j.state.free)
}
