package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// AggFunc is an aggregate function.
type AggFunc string

// The aggregate functions. AggCountStar counts rows, AggCount rows where no argument is NULL; AggAny takes the value of any row of the group. Deviations and
// variances are of float64, the bit functions of uint64; what the others take says collectAcc.
const (
	AggCountStar AggFunc = "count_star"
	AggCount     AggFunc = "count"
	AggSum       AggFunc = "sum"
	AggAvg       AggFunc = "avg"
	AggMin       AggFunc = "min"
	AggMax       AggFunc = "max"
	AggAny       AggFunc = "any_value"

	AggStddevPop  AggFunc = "stddev_pop"
	AggStddevSamp AggFunc = "stddev_samp"
	AggVarPop     AggFunc = "var_pop"
	AggVarSamp    AggFunc = "var_samp"
	AggBitAnd     AggFunc = "bit_and"
	AggBitOr      AggFunc = "bit_or"
	AggBitXor     AggFunc = "bit_xor"
	AggConcat     AggFunc = "group_concat"
	AggJSONArray  AggFunc = "json_arrayagg"
	AggJSONObject AggFunc = "json_objectagg"
)

// AggSpec is one aggregate.
type AggSpec struct {
	Func     AggFunc
	Args     []expr.Expr // none for count_star, any number for count, see ConcatSpec for group_concat, two for json_objectagg, one for the others
	Distinct bool
	Name     string
	Type     arrow.DataType // of the result; nil = AggType
	Concat   *ConcatSpec    // group_concat only
}

func (a AggSpec) String() string {
	if a.Func == AggCountStar {
		return "count(*)"
	}
	args := exprsText(a.Args)
	args = args[1 : len(args)-1]
	if a.Concat != nil {
		args = a.Concat.text(a.Args)
	}
	if a.Distinct {
		args = "DISTINCT " + args
	}
	return string(a.Func) + "(" + args + ")"
}

// HashAggregate groups its input by Keys (NULLs are equal to each other) and outputs the keys, then the aggregates. Without keys it yields one row,
// of an empty input too.
//
// Each worker of the input fills tables of its own; at the end they are merged, by ranges of the keys' hash where they are large.
type HashAggregate struct {
	Input    Plan
	Keys     []expr.Expr
	KeyNames []string
	Aggs     []AggSpec
	Rollup   bool // see WithRollup
	out      *arrow.Schema
}

var (
	_ Parallel  = (*HashAggregate)(nil)
	_ Traceable = (*HashAggregate)(nil)
)

// NewHashAggregate checks the expressions and computes the schema. ErrUnsupported for types that cannot be grouped or aggregated.
func NewHashAggregate(input Plan, keys []expr.Expr, keyNames []string, aggs []AggSpec) (*HashAggregate, error) {
	if len(keys) != len(keyNames) {
		return nil, errs.New(errs.ErrInternal, "aggregate: %d names for %d keys", len(keyNames), len(keys))
	}
	fields := make([]arrow.Field, 0, len(keys)+len(aggs))
	for i, k := range keys {
		if err := checkExpr("aggregate", k, input.Schema()); err != nil {
			return nil, err
		}
		if err := checkKeyType(k.Type()); err != nil {
			return nil, err
		}
		fields = append(fields, fieldOf(keyNames[i], k, input.Schema()))
	}
	aggs = append([]AggSpec(nil), aggs...)
	for i, a := range aggs {
		for _, e := range a.Args {
			if err := checkExpr("aggregate", e, input.Schema()); err != nil {
				return nil, err
			}
		}
		t, err := a.check()
		if err != nil {
			return nil, err
		}
		if aggs[i].Type == nil {
			aggs[i].Type = t
		}
		fields = append(fields, arrow.Field{Name: a.Name, Type: aggs[i].Type, Nullable: !a.Func.neverNull()})
	}
	lists := [][]expr.Expr{keys}
	for _, a := range aggs {
		lists = append(lists, a.Args)
	}
	input, lists, err := narrowInput(input, lists...)
	if err != nil {
		return nil, err
	}
	keys = lists[0]
	for i := range aggs {
		aggs[i].Args = lists[i+1]
	}
	return &HashAggregate{Input: input, Keys: keys, KeyNames: keyNames, Aggs: aggs, out: arrow.NewSchema(fields, nil)}, nil
}

// WithRollup returns p that also groups by fewer keys, from the last on down to none; those are NULL then. A further column says by how many keys each row is
// grouped. Of an empty input it yields the row without keys.
func (p *HashAggregate) WithRollup(levelName string) (*HashAggregate, error) {
	if len(p.Keys) == 0 || p.Rollup {
		return nil, errs.New(errs.ErrInternal, "aggregate: rollup of %d keys", len(p.Keys))
	}
	m := *p
	m.Rollup = true
	fields := p.out.Fields()
	for i := range p.Keys {
		fields[i].Nullable = true
	}
	m.out = arrow.NewSchema(append(fields, arrow.Field{Name: levelName, Type: arrow.PrimitiveTypes.Int64}), nil)
	return &m, nil
}

// check returns the natural type of the result.
func (a AggSpec) check() (arrow.DataType, error) {
	types := make([]arrow.DataType, len(a.Args))
	for i, e := range a.Args {
		types[i] = e.Type()
	}
	t, err := AggType(a.Func, types)
	if err == nil && a.Func == AggConcat {
		err = a.Concat.check(types)
	}
	if err != nil {
		return nil, err
	}
	if a.Distinct && a.Func != AggMin && a.Func != AggMax && a.Func != AggAny {
		for _, u := range types {
			if err := checkKeyType(u); err != nil {
				return nil, err
			}
		}
	}
	if a.Type != nil && !canResult(a.Func, t, a.Type) {
		return nil, errs.New(errs.ErrInternal, "%s gives %s, which cannot become %s", a, t, a.Type)
	}
	return t, nil
}

// Schema implements Plan.
func (p *HashAggregate) Schema() *arrow.Schema { return p.out }

// Children implements Plan.
func (p *HashAggregate) Children() []Plan { return []Plan{p.Input} }

// Describe implements Plan.
func (p *HashAggregate) Describe() Description {
	aggs := make([]string, len(p.Aggs))
	for i, a := range p.Aggs {
		aggs[i] = a.String()
	}
	d := Description{Name: "HashAggregate", Props: []Prop{{"keys", namedText(p.KeyNames, p.Keys)}, {"aggregates", "[" + strings.Join(aggs, ", ") + "]"}}}
	if p.Rollup {
		d.Props = append(d.Props, Prop{"rollup", "yes"})
	}
	return d
}

// TraceColumn implements Traceable: leaving out the rows of a key leaves out its groups.
func (p *HashAggregate) TraceColumn(i int) (Plan, int) {
	if i < len(p.Keys) && !p.Rollup {
		if c, ok := p.Keys[i].(*expr.Column); ok {
			return p.Input, c.ID
		}
	}
	return nil, 0
}

// Open implements Plan.
func (p *HashAggregate) Open(ctx context.Context, env *Env) (Operator, error) {
	ops, err := p.OpenWorkers(ctx, env, 1)
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

// OpenWorkers implements Parallel: the first worker that is asked aggregates on all of env.Workers, then all of them hand out the groups.
func (p *HashAggregate) OpenWorkers(_ context.Context, env *Env, n int) ([]Operator, error) {
	if len(p.Keys) == 0 {
		n = 1
	}
	state := &aggState{plan: p, env: env, shared: shared{refs: n}}
	ops := make([]Operator, n)
	for i := range ops {
		ops[i] = &aggregate{state: state}
	}
	return ops, nil
}

// aggState is what the workers of one aggregation share.
type aggState struct {
	shared
	plan   *HashAggregate
	env    *Env
	result lazy[[]*aggTable]
	tables []*aggTable // all that were made, to be closed

	cursor   sync.Mutex
	part, at int
}

type aggregate struct {
	state  *aggState
	closed bool
}

func (a *aggregate) Schema() *arrow.Schema { return a.state.plan.out }

func (a *aggregate) Next(ctx context.Context) (arrow.RecordBatch, error) {
	s := a.state
	parts, err := s.result.get(func() ([]*aggTable, error) { return s.run(ctx) })
	if err != nil {
		return nil, nameMemory("aggregate", err)
	}
	s.cursor.Lock()
	defer s.cursor.Unlock()
	for s.part < len(parts) {
		t := parts[s.part]
		from, to := s.at, min(s.at+s.env.BatchRows, t.count())
		if from < to {
			s.at = to
			return t.batch(s.plan.out, from, to)
		}
		t.close()
		s.part, s.at = s.part+1, 0
	}
	return nil, io.EOF
}

func (a *aggregate) Close() error {
	if a.closed {
		return nil
	}
	a.closed = true
	return a.state.drop(func() error {
		for _, t := range a.state.tables {
			t.close()
		}
		return nil
	})
}

// nameMemory says whose memory was refused.
func nameMemory(operator string, err error) error {
	if errors.Is(err, errs.ErrMemoryLimit) {
		return fmt.Errorf("%s: %w", operator, err)
	}
	return err
}

// newTable makes a table that Close of the last worker frees.
func (s *aggState) newTable() (*aggTable, error) {
	t, err := newAggTable(s.env, s.plan)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables = append(s.tables, t)
	return t, err
}

// run aggregates the input and returns tables with disjoint groups.
func (s *aggState) run(ctx context.Context) ([]*aggTable, error) {
	env := s.env.withUnseen(s.plan.Input, s.plan.inputs())
	for _, k := range s.plan.Keys {
		if c, ok := k.(*expr.Column); ok {
			env = env.withCodes(s.plan.Input, c.ID)
		}
	}
	err := consume(ctx, env, s.plan.Input, func() (func(arrow.RecordBatch) error, error) {
		t, err := s.newTable()
		if err != nil {
			return nil, err
		}
		eval, err := newEvaluator(s.env, s.plan.Input.Schema(), s.plan.inputs()...)
		if err != nil {
			return nil, err
		}
		var cols []arrow.Array
		return func(b arrow.RecordBatch) error {
			defer b.Release()
			if cols, err = eval.columns(b, cols[:0]); err != nil {
				return err
			}
			defer releaseArrays(cols)
			return t.add(cols, int(b.NumRows()))
		}, nil
	})
	if err != nil {
		return nil, err
	}
	parts, err := s.merge(ctx)
	if err == nil && s.plan.Rollup {
		parts, err = s.rollUp(ctx, parts)
	}
	if err != nil {
		return nil, err
	}
	groups := 0
	for _, t := range parts {
		if err := t.finish(); err != nil {
			return nil, err
		}
		groups += t.count()
	}
	s.env.Stats.Node(s.plan).Add("groups", int64(groups))
	return parts, nil
}

// inputs are the keys, then the arguments of each aggregate.
func (p *HashAggregate) inputs() []expr.Expr {
	out := append([]expr.Expr(nil), p.Keys...)
	for _, a := range p.Aggs {
		out = append(out, a.Args...)
	}
	return out
}
