package translate

import (
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/logical"
)

// liftUse says what becomes of the subquery, and so what lifting may change.
type liftUse int

const (
	liftExists liftUse = iota // only whether a row matches: order, duplicates and LIMIT >= 1 do not matter
	liftScalar                // its value: an aggregate must stay one per outer row
)

// lifter takes the conditions over outer columns out of a subquery's plan, so that they become the condition of a join. Columns that they use
// travel up with them; an aggregate on the way gets them as keys.
type lifter struct {
	t     *translator
	outer map[logical.ColumnID]logical.Column
	use   liftUse

	conds   []expr.Expr
	grouped bool // an aggregate without keys got keys: see value
	// above holds, once grouped, the expressions over the aggregate: they are computed above the join, where a missing group counts as an empty one.
	above map[logical.ColumnID]expr.Expr
	count map[logical.ColumnID]bool // counts: 0 for a missing group
}

func (l *lifter) isOuter(e expr.Expr) bool {
	for _, id := range expr.Columns(e) {
		if _, ok := l.outer[id]; ok {
			return true
		}
	}
	return false
}

// lift rebuilds n without conditions over outer columns.
func (l *lifter) lift(n logical.Node) (logical.Node, error) {
	switch n := n.(type) {
	case *logical.Filter:
		return l.filter(n)
	case *logical.Project:
		return l.project(n)
	case *logical.Aggregate:
		return l.aggregate(n)
	case *logical.Sort:
		if l.use == liftExists {
			return l.lift(n.Input)
		}
	case *logical.Limit:
		if l.use == liftExists && n.Offset == 0 && n.Count > 0 {
			return l.lift(n.Input)
		}
	case *logical.Distinct:
		if l.use == liftExists {
			return l.lift(n.Input)
		}
	case *logical.Join:
		return l.join(n)
	}
	return n, nil
}

func (l *lifter) filter(n *logical.Filter) (logical.Node, error) {
	input, err := l.lift(n.Input)
	if err != nil {
		return nil, err
	}
	if l.grouped { // HAVING, or a filter over the aggregate
		return nil, unsupported("a correlated aggregate under a filter")
	}
	var keep []expr.Expr
	for _, c := range n.Conds {
		if l.isOuter(c) {
			l.conds = append(l.conds, c)
		} else {
			keep = append(keep, c)
		}
	}
	if len(keep) == 0 {
		return input, nil
	}
	return &logical.Filter{Input: input, Conds: keep}, nil
}

// project adds the columns that lifted conditions need.
func (l *lifter) project(n *logical.Project) (logical.Node, error) {
	input, err := l.lift(n.Input)
	if err != nil {
		return nil, err
	}
	if l.grouped {
		return input, l.compose(n)
	}
	have := make(map[int]bool, len(n.Exprs))
	exprs := append([]logical.Named(nil), n.Exprs...)
	for _, e := range exprs {
		have[e.ID] = true
		if l.isOuter(e.Expr) {
			return nil, unsupported("an outer column in the SELECT list of a subquery")
		}
	}
	for _, c := range input.Columns() {
		if !have[c.ID] && l.needs(c.ID) {
			exprs = append(exprs, logical.Named{Column: c, Expr: c.Ref()})
		}
	}
	return &logical.Project{Input: input, Exprs: exprs}, nil
}

func (l *lifter) needs(id int) bool {
	for _, c := range expr.Columns(l.conds...) {
		if c == id {
			return true
		}
	}
	return false
}

// compose keeps the expressions of a projection over the aggregate for later.
func (l *lifter) compose(n *logical.Project) error {
	next := make(map[logical.ColumnID]expr.Expr, len(n.Exprs))
	for _, e := range n.Exprs {
		if l.isOuter(e.Expr) {
			return unsupported("an outer column beside an aggregate of a subquery")
		}
		next[e.ID] = l.inline(e.Expr)
	}
	l.above = next
	return nil
}

func (l *lifter) inline(e expr.Expr) expr.Expr {
	return expr.Transform(e, func(e expr.Expr) expr.Expr {
		if c, ok := e.(*expr.Column); ok {
			if def, ok := l.above[c.ID]; ok {
				return def
			}
		}
		return e
	})
}

// value returns what the outer row sees of a grouped subquery's column: counts of a missing group are 0, other aggregates NULL.
func (l *lifter) value(id logical.ColumnID) (expr.Expr, error) {
	e, ok := l.above[id]
	if !ok {
		return nil, errs.New(errs.ErrInternal, "column %d of a subquery is lost", id)
	}
	var firstErr error
	out := expr.Transform(e, func(e expr.Expr) expr.Expr {
		c, ok := e.(*expr.Column)
		if !ok || !l.count[c.ID] {
			return e
		}
		zero, err := expr.NewCall("coalesce", c, mustLiteral(int64(0)))
		if err != nil {
			firstErr = err
			return e
		}
		return zero
	})
	return out, firstErr
}

// aggregate adds the inner sides of lifted equalities as keys.
func (l *lifter) aggregate(n *logical.Aggregate) (logical.Node, error) {
	before := len(l.conds)
	input, err := l.lift(n.Input)
	if err != nil {
		return nil, err
	}
	if l.grouped || n.Rollup != nil && len(l.conds) > before {
		return nil, unsupported("an aggregate over a correlated aggregate, or WITH ROLLUP")
	}
	for _, e := range n.Keys {
		if l.isOuter(e.Expr) {
			return nil, unsupported("GROUP BY of an outer column")
		}
	}
	for _, a := range n.Aggs {
		for _, e := range a.Args {
			if l.isOuter(e) {
				return nil, unsupported("an aggregate of an outer column in a subquery")
			}
		}
	}
	if len(l.conds) == before {
		return n.WithChildren([]logical.Node{input}), nil
	}
	keys := append([]logical.Named(nil), n.Keys...)
	for i := before; i < len(l.conds); i++ {
		cond, key, err := l.splitEquality(l.conds[i])
		if err != nil {
			return nil, err
		}
		l.conds[i] = cond
		keys = append(keys, key)
	}
	if len(n.Keys) == 0 {
		if l.use != liftScalar {
			return nil, unsupported("an aggregate without GROUP BY in a correlated IN or EXISTS")
		}
		l.grouped = true
		l.above, l.count = make(map[logical.ColumnID]expr.Expr), make(map[logical.ColumnID]bool)
		for _, a := range n.Aggs {
			if a.Func == logical.AggBitAnd || a.Func == logical.AggBitOr || a.Func == logical.AggBitXor {
				return nil, unsupported("%s in a correlated subquery", a.Func)
			}
			l.above[a.ID] = a.Ref()
			l.count[a.ID] = a.Func == logical.AggCount || a.Func == logical.AggCountStar
		}
	}
	return &logical.Aggregate{Input: input, Keys: keys, Aggs: n.Aggs}, nil
}

// splitEquality takes outer = inner apart: the inner side becomes a key, the condition compares with it.
func (l *lifter) splitEquality(c expr.Expr) (expr.Expr, logical.Named, error) {
	call, ok := c.(*expr.Call)
	if !ok || call.Func != "=" || len(call.Args) != 2 {
		return nil, logical.Named{}, unsupported("a correlated aggregate whose condition is not an equality: %s", c)
	}
	out, in := call.Args[0], call.Args[1]
	if !l.onlyOuter(out) {
		out, in = in, out
	}
	if !l.onlyOuter(out) || l.isOuter(in) || len(expr.Columns(in)) == 0 {
		return nil, logical.Named{}, unsupported("a correlated aggregate whose condition mixes inner and outer columns: %s", c)
	}
	col := logical.Column{ID: l.t.ids.Next(), Name: in.String(), Type: in.Type(), Nullable: true}
	eq, err := expr.NewCall("=", out, col.Ref())
	return eq, logical.Named{Column: col, Expr: in}, err
}

func (l *lifter) onlyOuter(e expr.Expr) bool {
	for _, id := range expr.Columns(e) {
		if _, ok := l.outer[id]; !ok {
			return false
		}
	}
	return true
}

// join lifts from the sides where a condition may move above the join.
func (l *lifter) join(n *logical.Join) (logical.Node, error) {
	left, right := n.Left, n.Right
	var err error
	switch n.Kind {
	case logical.JoinInner:
		if left, err = l.lift(left); err != nil {
			return nil, err
		}
		if right, err = l.lift(right); err != nil {
			return nil, err
		}
	case logical.JoinFull:
	default:
		if left, err = l.lift(left); err != nil {
			return nil, err
		}
	}
	if l.grouped {
		return nil, unsupported("a correlated aggregate under a join")
	}
	var on []expr.Expr
	for _, c := range n.On {
		switch {
		case !l.isOuter(c):
			on = append(on, c)
		case n.Kind == logical.JoinInner:
			l.conds = append(l.conds, c)
		default:
			return nil, unsupported("an outer column in ON of a %s join", n.Kind)
		}
	}
	return &logical.Join{Kind: n.Kind, Left: left, Right: right, On: on, Mark: n.Mark}, nil
}

// check makes sure that nothing of the outer scopes is left inside, and that the plan outputs what the conditions need.
func (l *lifter) check(node logical.Node, rel *relation) error {
	var bad error
	logical.Walk(node, func(n logical.Node) bool {
		for _, e := range nodeExprs(n) {
			if l.isOuter(e) {
				bad = unsupported("a correlated subquery of this form: %s", e)
			}
		}
		return bad == nil
	})
	if bad != nil {
		return bad
	}
	have := make(map[int]bool)
	for _, c := range node.Columns() {
		have[c.ID] = true
	}
	for _, id := range expr.Columns(l.conds...) {
		if _, outer := l.outer[id]; !outer && !have[id] {
			return unsupported("a correlated subquery whose condition lies too deep")
		}
	}
	for _, o := range rel.out {
		if !l.grouped && !have[o.col.ID] {
			return errs.New(errs.ErrInternal, "column %s of a subquery is lost", o.name)
		}
	}
	return nil
}

// nodeExprs lists the expressions of one node.
func nodeExprs(n logical.Node) []expr.Expr {
	var out []expr.Expr
	switch n := n.(type) {
	case *logical.Filter:
		out = n.Conds
	case *logical.Project:
		for _, e := range n.Exprs {
			out = append(out, e.Expr)
		}
	case *logical.Aggregate:
		for _, e := range n.Keys {
			out = append(out, e.Expr)
		}
		for _, a := range n.Aggs {
			out = append(out, a.Args...)
		}
	case *logical.Window:
		out = n.Exprs()
	case *logical.Join:
		out = n.On
	case *logical.Sort:
		for _, k := range n.Keys {
			out = append(out, k.Expr)
		}
	case *logical.TopN:
		for _, k := range n.Keys {
			out = append(out, k.Expr)
		}
	case *logical.Values:
		for _, r := range n.Rows {
			out = append(out, r...)
		}
	case *logical.Scan:
		out = n.Filter
	}
	return out
}
