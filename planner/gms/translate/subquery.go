package translate

import (
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/logical"
)

// inner is a translated subquery: its relation, and the conditions that tie it to the scopes outside.
type inner struct {
	rel  *relation
	on   []expr.Expr // lifted conditions over both sides
	lift *lifter
}

// subquery translates a subquery of the scope's statement. Conditions over outer columns are lifted out; ErrUnsupported where they cannot be.
func (sc *scope) subquery(sq *plan.Subquery, use liftUse) (*inner, error) {
	border := &scope{t: sc.t, parent: sc, outer: make(map[logical.ColumnID]logical.Column)}
	rel, err := sc.t.relation(sq.Query, border)
	if err != nil {
		return nil, err
	}
	if err := rel.settled(); err != nil {
		return nil, err
	}
	out := &inner{rel: rel}
	if len(border.outer) == 0 {
		return out, nil
	}
	l := &lifter{t: sc.t, outer: border.outer, use: use}
	node, err := l.lift(rel.node)
	if err != nil {
		return nil, err
	}
	if err := l.check(node, rel); err != nil {
		return nil, err
	}
	out.rel = &relation{node: node, out: rel.out}
	out.on, out.lift = l.conds, l
	return out, nil
}

// subqueryConjunct turns EXISTS, IN and their negations into joins where they stand as a condition of their own.
func (t *translator) subqueryConjunct(c sql.Expression, sc *scope) (bool, error) {
	negated := false
	for {
		n, ok := c.(*expression.Not)
		if !ok {
			break
		}
		negated = !negated
		c = n.Child
	}
	switch e := c.(type) {
	case *plan.ExistsSubquery:
		return sc.existsJoin(e, negated)
	case *plan.InSubquery:
		return sc.inJoin(e, negated)
	}
	return false, nil
}

func (sc *scope) existsJoin(e *plan.ExistsSubquery, negated bool) (bool, error) {
	if alwaysOneRow(e.Query.Query) {
		if negated {
			sc.rel.node = &logical.Filter{Input: sc.rel.node, Conds: []expr.Expr{falseLiteral()}}
		}
		return true, nil
	}
	in, err := sc.subquery(e.Query, liftExists)
	if err != nil {
		return false, err
	}
	kind := logical.JoinSemi
	if negated {
		kind = logical.JoinAnti
	}
	sc.rel.node = &logical.Join{Kind: kind, Left: sc.rel.node, Right: in.rel.node, On: in.on}
	return true, nil
}

// inJoin is IN as a semi join; NOT IN is null-aware. A correlated NOT IN needs the mark: its NULLs count only among the rows of the group.
func (sc *scope) inJoin(e *plan.InSubquery, negated bool) (bool, error) {
	sq, ok := e.Right().(*plan.Subquery)
	if !ok {
		return false, unsupported("IN %T", e.Right())
	}
	if negated && !sq.Correlated().Empty() {
		return false, nil
	}
	in, pairs, err := sc.inPairs(e.Left(), sq)
	if err != nil {
		return false, err
	}
	kind := logical.JoinSemi
	if negated {
		kind = logical.JoinNullAwareAnti
		if len(in.on) > 0 {
			return false, unsupported("a correlated NOT IN")
		}
	}
	sc.rel.node = &logical.Join{Kind: kind, Left: sc.rel.node, Right: in.rel.node, On: append(pairs, in.on...)}
	return true, nil
}

// inPairs translates the subquery of IN and the equalities of its columns with the left side.
func (sc *scope) inPairs(left sql.Expression, sq *plan.Subquery) (*inner, []expr.Expr, error) {
	lefts := []sql.Expression{left}
	if tuple, ok := left.(expression.Tuple); ok {
		lefts = tuple
	}
	var l []expr.Expr
	for _, x := range lefts {
		e, err := sc.expr(x)
		if err != nil {
			return nil, nil, err
		}
		l = append(l, e)
	}
	in, err := sc.subquery(sq, liftExists)
	if err != nil {
		return nil, nil, err
	}
	if len(in.rel.out) != len(l) {
		return nil, nil, errs.New(errs.ErrOperands, "Operand should contain %d column(s)", len(l))
	}
	pairs := make([]expr.Expr, len(l))
	for i := range l {
		if pairs[i], err = expr.NewCall("=", l[i], in.rel.out[i].col.Ref()); err != nil {
			return nil, nil, err
		}
	}
	return in, pairs, nil
}

// subqueryExpr translates a subquery inside an expression: it is joined to the relation and the expression reads its column.
func (sc *scope) subqueryExpr(e sql.Expression) (expr.Expr, bool, error) {
	switch e := e.(type) {
	case *plan.Subquery:
		out, err := sc.scalar(e)
		return out, true, err
	case *plan.ExistsSubquery:
		out, err := sc.existsMark(e)
		return out, true, err
	case *plan.InSubquery:
		out, err := sc.inMark(e)
		return out, true, err
	}
	return nil, false, nil
}

func (sc *scope) requireRelation() error {
	if sc.rel == nil {
		return unsupported("a subquery in VALUES")
	}
	return nil
}

func (sc *scope) existsMark(e *plan.ExistsSubquery) (expr.Expr, error) {
	if err := sc.requireRelation(); err != nil {
		return nil, err
	}
	if alwaysOneRow(e.Query.Query) {
		return trueLiteral(), nil
	}
	in, err := sc.subquery(e.Query, liftExists)
	if err != nil {
		return nil, err
	}
	mark := sc.mark(in.rel.node, in.on)
	return expr.NewCall("is_true", mark)
}

func (sc *scope) inMark(e *plan.InSubquery) (expr.Expr, error) {
	if err := sc.requireRelation(); err != nil {
		return nil, err
	}
	sq, ok := e.Right().(*plan.Subquery)
	if !ok {
		return nil, unsupported("IN %T", e.Right())
	}
	in, pairs, err := sc.inPairs(e.Left(), sq)
	if err != nil {
		return nil, err
	}
	on := pairs
	for _, c := range in.on { // rows of other groups are no candidates, whatever their NULLs
		known, err := expr.NewCall("is_true", c)
		if err != nil {
			return nil, err
		}
		on = append(on, known)
	}
	return sc.mark(in.rel.node, on), nil
}

func (sc *scope) mark(right logical.Node, on []expr.Expr) expr.Expr {
	col := logical.Column{ID: sc.t.ids.Next(), Name: "mark", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}
	sc.rel.node = &logical.Join{Kind: logical.JoinMark, Left: sc.rel.node, Right: right, On: on, Mark: &col}
	return col.Ref()
}

// scalar attaches the only value of a subquery.
func (sc *scope) scalar(sq *plan.Subquery) (expr.Expr, error) {
	if err := sc.requireRelation(); err != nil {
		return nil, err
	}
	in, err := sc.subquery(sq, liftScalar)
	if err != nil {
		return nil, err
	}
	if len(in.rel.out) != 1 {
		return nil, errs.New(errs.ErrOperands, "Operand should contain 1 column(s)")
	}
	col := in.rel.out[0].col
	kind := logical.JoinSingle
	if in.lift != nil && in.lift.grouped {
		kind = logical.JoinLeft // one row per key at most
	}
	sc.rel.node = &logical.Join{Kind: kind, Left: sc.rel.node, Right: in.rel.node, On: in.on}
	if in.lift != nil && in.lift.grouped {
		return in.lift.value(col.ID)
	}
	return col.Ref(), nil
}

// alwaysOneRow says that a query yields exactly one row: an aggregate without keys, with nothing above that drops it.
func alwaysOneRow(n sql.Node) bool {
	for {
		switch x := n.(type) {
		case *plan.Project:
			n = x.Child
		case *plan.Sort:
			n = x.Child
		case *plan.GroupBy:
			return len(x.GroupByExprs) == 0
		default:
			return false
		}
	}
}

func trueLiteral() expr.Expr  { return mustLiteral(true) }
func falseLiteral() expr.Expr { return mustLiteral(false) }

func mustLiteral(v any) expr.Expr {
	l, err := expr.NewLiteral(v)
	if err != nil {
		panic(err) // a Go constant
	}
	return l
}
