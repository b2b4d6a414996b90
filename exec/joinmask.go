package exec

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
)

// JoinMask answers "the columns are (not) among the rows of a sub-plan" by a hash join of the candidates with them: what KeyMask cannot say, several
// equalities at a time, and anti joins. Only TRUE is told; a NULL answer is as good as FALSE where a mask stands.
type JoinMask struct {
	Table   TableRef
	Columns []string // of the table; one may come twice
	Kind    JoinKind // semi, anti or null_aware_anti
	Keys    Plan     // a column for each of Columns, of its type
}

var _ CandidatePlan = (*JoinMask)(nil)

// Children implements CandidatePlan.
func (*JoinMask) Children() []CandidatePlan { return nil }

// Describe implements CandidatePlan.
func (c *JoinMask) Describe() Description {
	return Description{Name: "JoinMask", Props: []Prop{{"table", c.Table.String()}, {"columns", fmt.Sprint(c.Columns)}, {"kind", string(c.Kind)}, {"keys", c.Keys.Describe().Name}}}
}

// Candidates implements CandidatePlan.
func (c *JoinMask) Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error) {
	out := index.Truth{True: rowset.NewSet(), Null: rowset.NewSet()}
	if among != nil && among.IsEmpty() {
		return out, nil
	}
	table, err := env.Tables.OpenTable(ctx, c.Table)
	if err != nil {
		return out, err
	}
	join, err := c.join(table, among)
	if err != nil {
		return out, err
	}
	parts := make([]truthBuilder, 0, env.Workers)
	defer func() {
		for i := range parts {
			parts[i].held.Free()
		}
	}()
	ops, err := OpenWorkers(ctx, env, join, env.Workers)
	if err != nil {
		return out, err
	}
	for range ops {
		parts = append(parts, truthBuilder{held: env.Budget.Reserve()})
	}
	err = runTasks(ctx, env, "join mask", len(ops), func(ctx context.Context, w int) error {
		start := func() (func(arrow.RecordBatch) error, error) {
			return func(b arrow.RecordBatch) error {
				defer b.Release()
				parts[w].isTrue.Add(fixedValues[uint64](b.Column(0)))
				return parts[w].pay()
			}, nil
		}
		return drain(ctx, ops[w], start)
	})
	if err := joinClose(err, ops...); err != nil {
		return out, err
	}
	for i := range parts {
		out.True = rowset.Or(out.True, parts[i].isTrue.Set())
	}
	return out, nil
}

// join is the rows of the table, those of among where it is not nil, that pass; it outputs their addresses.
func (c *JoinMask) join(table Table, among *rowset.Set) (Plan, error) {
	if len(c.Columns) == 0 || c.Keys.Schema().NumFields() != len(c.Columns) {
		return nil, errs.New(errs.ErrInternal, "a mask of %d columns and %d keys", len(c.Columns), c.Keys.Schema().NumFields())
	}
	spec := ScanSpec{Columns: c.Columns, RowAddr: true}
	if among != nil {
		spec.Candidates = &knownRows{table: c.Table, rows: among}
	}
	scan, err := NewScan(table, spec)
	if err != nil {
		return nil, err
	}
	j := JoinSpec{Kind: c.Kind, Left: scan, Right: c.Keys, Output: []int{len(c.Columns)}}
	for i, f := range c.Keys.Schema().Fields() {
		j.LeftKeys = append(j.LeftKeys, &expr.Column{ID: i, Name: c.Columns[i], T: scan.Out.Field(i).Type})
		j.RightKeys = append(j.RightKeys, &expr.Column{ID: i, Name: f.Name, T: f.Type})
	}
	return NewHashJoin(j)
}

// knownRows is candidates that were found already.
type knownRows struct {
	table TableRef
	rows  *rowset.Set
}

func (*knownRows) Children() []CandidatePlan { return nil }

func (k *knownRows) Describe() Description {
	return Description{Name: "KnownRows", Props: []Prop{{"table", k.table.String()}, {"rows", fmt.Sprint(k.rows.Count())}}}
}

func (k *knownRows) Candidates(_ context.Context, _ *Env, among *rowset.Set) (index.Truth, error) {
	rows := k.rows
	if among != nil {
		rows = rowset.And(rows, among)
	}
	return index.Truth{True: rows, Null: rowset.NewSet()}, nil
}
