package planner

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/glm"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/logical"
)

// lowered is an exec plan and where each logical column is in its output.
type lowered struct {
	plan exec.Plan
	pos  map[logical.ColumnID]int
}

func positions(cols []logical.Column) map[logical.ColumnID]int {
	out := make(map[logical.ColumnID]int, len(cols))
	for i, c := range cols {
		out[c.ID] = i
	}
	return out
}

func names(cols []logical.Column) []string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = c.Name
	}
	return out
}

// lower turns the optimized plan into an exec plan whose output is exactly root's columns.
func (c *Context) lower(root logical.Node) (exec.Plan, error) {
	l, err := c.lowerNode(root)
	if err != nil {
		return nil, err
	}
	return l.plan, nil
}

func (c *Context) lowerNode(n logical.Node) (lowered, error) { //nolint:funlen // a flat switch
	switch n := n.(type) {
	case *logical.Scan:
		return c.lowerScan(n)
	case *logical.Search:
		return c.lowerSearch(n)
	case *logical.Fetch:
		return c.lowerFetch(n)
	case *logical.Values:
		return c.lowerValues(n)
	case *logical.Aggregate:
		return c.lowerAggregate(n)
	case *logical.Join:
		return c.lowerJoin(n)
	case *logical.Window:
		return c.lowerWindow(n)
	case *logical.Union:
		return c.lowerUnion(n)
	}
	children := n.Children()
	if len(children) != 1 {
		return lowered{}, errs.New(errs.ErrInternal, "no way to run %s", n.Describe())
	}
	in, err := c.lowerNode(children[0])
	if err != nil {
		return lowered{}, err
	}
	var p exec.Plan
	switch n := n.(type) {
	case *logical.Filter:
		p, err = lowerFilter(in, n.Conds)
	case *logical.Project:
		return lowerProject(in, n.Exprs)
	case *logical.Sort:
		p, err = lowerSort(in, n.Keys)
	case *logical.TopN:
		p, err = lowerTopN(in, n)
	case *logical.Limit:
		p, err = exec.NewLimit(in.plan, n.Count, n.Offset)
	case *logical.Distinct:
		p, err = exec.NewDistinct(in.plan)
	default:
		return lowered{}, errs.New(errs.ErrInternal, "no way to run %s", n.Describe())
	}
	return lowered{plan: p, pos: in.pos}, err
}

func rebindAll(es []expr.Expr, pos map[logical.ColumnID]int) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		var err error
		if out[i], err = expr.Rebind(e, pos); err != nil {
			return nil, errs.New(errs.ErrInternal, "plan: %w", err)
		}
	}
	return out, nil
}

func lowerFilter(in lowered, conds []expr.Expr) (exec.Plan, error) {
	all, err := andAll(conds)
	if err != nil {
		return nil, err
	}
	bound, err := expr.Rebind(all, in.pos)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "filter: %w", err)
	}
	return exec.NewFilter(in.plan, bound)
}

func lowerProject(in lowered, es []logical.Named) (lowered, error) {
	plain := make([]expr.Expr, len(es))
	cols := make([]logical.Column, len(es))
	for i, e := range es {
		plain[i], cols[i] = e.Expr, e.Column
	}
	bound, err := rebindAll(plain, in.pos)
	if err != nil {
		return lowered{}, err
	}
	p, err := exec.NewProject(in.plan, names(cols), bound)
	return lowered{plan: p, pos: positions(cols)}, err
}

func sortKeys(keys []logical.SortKey, pos map[logical.ColumnID]int) ([]exec.SortKey, error) {
	out := make([]exec.SortKey, len(keys))
	for i, k := range keys {
		e, err := expr.Rebind(k.Expr, pos)
		if err != nil {
			return nil, errs.New(errs.ErrInternal, "sort key: %w", err)
		}
		out[i] = exec.SortKey{Expr: e, Desc: k.Desc, NullsLast: k.NullsLast}
	}
	return out, nil
}

func lowerSort(in lowered, keys []logical.SortKey) (exec.Plan, error) {
	bound, err := sortKeys(keys, in.pos)
	if err != nil {
		return nil, err
	}
	return exec.NewSort(in.plan, bound)
}

func lowerTopN(in lowered, n *logical.TopN) (exec.Plan, error) {
	bound, err := sortKeys(n.Keys, in.pos)
	if err != nil {
		return nil, err
	}
	return exec.NewTopN(in.plan, bound, n.Count, n.Offset)
}

func (c *Context) lowerUnion(n *logical.Union) (lowered, error) {
	inputs := make([]exec.Plan, len(n.Inputs))
	for i, in := range n.Inputs {
		l, err := c.lowerNode(in)
		if err != nil {
			return lowered{}, err
		}
		inputs[i] = l.plan
	}
	p, err := exec.NewUnion(inputs...)
	return lowered{plan: p, pos: positions(n.Cols)}, err
}

func (c *Context) lowerAggregate(n *logical.Aggregate) (lowered, error) {
	if p, ok, err := c.countRows(n); err != nil || ok {
		return lowered{plan: p, pos: positions(n.Columns())}, err
	}
	in, err := c.lowerNode(n.Input)
	if err != nil {
		return lowered{}, err
	}
	keys := make([]expr.Expr, len(n.Keys))
	for i, k := range n.Keys {
		keys[i] = k.Expr
	}
	if keys, err = rebindAll(keys, in.pos); err != nil {
		return lowered{}, err
	}
	aggs := make([]exec.AggSpec, len(n.Aggs))
	for i, a := range n.Aggs {
		args, err := rebindAll(a.Args, in.pos)
		if err != nil {
			return lowered{}, err
		}
		aggs[i] = exec.AggSpec{Func: exec.AggFunc(a.Func), Args: args, Distinct: a.Distinct, Name: a.Name, Type: a.Type, Concat: a.Concat}
	}
	p, err := exec.NewHashAggregate(in.plan, keys, names(logicalKeys(n.Keys)), aggs)
	if err == nil && n.Rollup != nil {
		p, err = p.WithRollup(n.Rollup.Name)
	}
	return lowered{plan: p, pos: positions(n.Columns())}, err
}

// countRows answers SELECT count(*) over one table by the size of its candidate set.
func (c *Context) countRows(n *logical.Aggregate) (exec.Plan, bool, error) {
	scan, ok := n.Input.(*logical.Scan)
	if !ok || len(n.Keys) > 0 || len(n.Aggs) == 0 || len(outputSources(scan)) > 0 || scan.Table.Rows() < 0 {
		return nil, false, nil
	}
	for _, a := range n.Aggs {
		if a.Func != logical.AggCountStar {
			return nil, false, nil
		}
	}
	var among exec.CandidatePlan
	if len(scan.Filter)+len(scan.Masks) > 0 {
		var indexed bool
		var err error
		if among, indexed, err = c.candidates(scan); err != nil || !indexed {
			return nil, false, err
		}
	}
	p, err := exec.NewCountRows(scan.Table.Ref(), among, names(n.Columns()))
	return p, true, err
}

func (c *Context) lowerJoin(n *logical.Join) (lowered, error) {
	l, err := c.lowerNode(n.Left)
	if err != nil {
		return lowered{}, err
	}
	r, err := c.lowerNode(n.Right)
	if err != nil {
		return lowered{}, err
	}
	spec := exec.JoinSpec{Kind: exec.JoinKind(n.Kind), Left: l.plan, Right: r.plan}
	lcols, rcols := columnSet(n.Left.Columns()), columnSet(n.Right.Columns())
	both := make(map[logical.ColumnID]int, len(l.pos)+len(r.pos))
	width := l.plan.Schema().NumFields()
	for id, p := range l.pos {
		both[id] = p
	}
	for id, p := range r.pos {
		both[id] = width + p
	}
	var rest []expr.Expr
	for _, cond := range splitAll(n.On) {
		a, b, ok := equality(cond, lcols, rcols)
		if !ok || !arrow.TypeEqual(a.Type(), b.Type()) {
			rest = append(rest, cond)
			continue
		}
		if a, err = expr.Rebind(a, l.pos); err != nil {
			return lowered{}, errs.New(errs.ErrInternal, "join key: %w", err)
		}
		if b, err = expr.Rebind(b, r.pos); err != nil {
			return lowered{}, errs.New(errs.ErrInternal, "join key: %w", err)
		}
		spec.LeftKeys, spec.RightKeys = append(spec.LeftKeys, a), append(spec.RightKeys, b)
	}
	if len(rest) > 0 {
		all, err := andAll(rest)
		if err != nil {
			return lowered{}, err
		}
		if spec.Residual, err = expr.Rebind(all, both); err != nil {
			return lowered{}, errs.New(errs.ErrInternal, "join condition: %w", err)
		}
	}
	switch n.Kind {
	case logical.JoinInner, logical.JoinLeft, logical.JoinFull, logical.JoinSemi, logical.JoinAnti:
		spec.BuildLeft = buildLeftShare*c.rowsOf(n.Left) < c.rowsOf(n.Right)
	}
	p, err := exec.NewHashJoin(spec)
	return lowered{plan: p, pos: positions(n.Columns())}, err
}

// buildLeftShare is by how much the left side of a join must be smaller to be the one that is hashed.
const buildLeftShare = 2

func (c *Context) lowerFetch(n *logical.Fetch) (lowered, error) {
	in, err := c.lowerNode(n.Input)
	if err != nil {
		return lowered{}, err
	}
	p, err := c.fetch(in.plan, in.pos[n.Addr], n.Table, n.Cols, n.Reason)
	return lowered{plan: p, pos: positions(n.Columns())}, err
}

func (c *Context) fetch(in exec.Plan, addr int, table exec.Table, cols []logical.ScanColumn, reason string) (exec.Plan, error) {
	fields, sources := scanFields(cols)
	return glm.NewFetch(glm.Fetch{Input: in, Table: table.Ref(), AddrColumn: addr, Columns: sources, Reason: reason}, fields)
}

func scanFields(cols []logical.ScanColumn) ([]arrow.Field, []string) {
	var fields []arrow.Field
	var sources []string
	for _, col := range cols {
		if !col.FilterOnly {
			fields = append(fields, arrow.Field{Name: col.Name, Type: col.Type, Nullable: col.Nullable})
			sources = append(sources, col.Source)
		}
	}
	return fields, sources
}

func (c *Context) lowerValues(n *logical.Values) (lowered, error) {
	fields := make([]arrow.Field, len(n.Cols))
	for i, col := range n.Cols {
		fields[i] = arrow.Field{Name: col.Name, Type: col.Type, Nullable: col.Nullable}
	}
	for _, row := range n.Rows {
		if len(row) != len(n.Cols) {
			return lowered{}, errs.New(errs.ErrInternal, "values: a row of %d for %d columns", len(row), len(n.Cols))
		}
	}
	p, err := exec.NewValues(arrow.NewSchema(fields, nil), n.Rows)
	if err != nil {
		return lowered{}, fmt.Errorf("values: %w", err)
	}
	return lowered{plan: p, pos: positions(n.Cols)}, nil
}
