package translate

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// setOp translates UNION, INTERSECT and EXCEPT with their ORDER BY and LIMIT.
func (t *translator) setOp(n *plan.SetOp, outer *scope) (*relation, error) {
	left, err := t.side(n.Left(), outer)
	if err != nil {
		return nil, err
	}
	right, err := t.side(n.Right(), outer)
	if err != nil {
		return nil, err
	}
	if len(left.out) != len(right.out) {
		return nil, sql.ErrColumnNumberDoesNotMatch.New()
	}
	left, right = t.unify(left, right)
	var out *relation
	switch n.SetOpType {
	case plan.UnionType:
		out = t.union(left, right)
	case plan.IntersectType, plan.ExceptType:
		if !n.Distinct {
			return nil, unsupported("%s ALL", setOpName(n.SetOpType))
		}
		if out, err = t.intersect(left, right, n.SetOpType == plan.ExceptType); err != nil {
			return nil, err
		}
	default:
		return nil, unsupported("set operation %d", n.SetOpType)
	}
	if n.Distinct {
		out.node = &logical.Distinct{Input: out.node}
	}
	return t.setOpTail(n, out, outer)
}

// setOpTail is ORDER BY, LIMIT and OFFSET of the whole.
func (t *translator) setOpTail(n *plan.SetOp, r *relation, outer *scope) (*relation, error) {
	sc := t.scope(r, outer)
	keys, err := t.sortKeys(n.SortFields, sc)
	if err != nil {
		return nil, err
	}
	if len(keys) > 0 {
		r = &relation{node: &logical.Sort{Input: sc.rel.node, Keys: keys}, out: r.out}
	}
	count, err := t.limitValue(n.Limit, logical.NoLimit)
	if err != nil {
		return nil, err
	}
	skip, err := t.limitValue(n.Offset, 0)
	if err != nil {
		return nil, err
	}
	if count != logical.NoLimit || skip > 0 {
		r = &relation{node: &logical.Limit{Input: r.node, Count: count, Offset: skip}, out: r.out}
	}
	return r, nil
}

func setOpName(op int) string {
	switch op {
	case plan.IntersectType:
		return "INTERSECT"
	case plan.ExceptType:
		return "EXCEPT"
	}
	return "UNION"
}

// side translates one SELECT, without the conversions that go-mysql-server put above it: the common type is found here.
func (t *translator) side(n sql.Node, outer *scope) (*relation, error) {
	if p, ok := n.(*plan.Project); ok && isConversion(p) {
		return t.side(p.Child, outer)
	}
	r, err := t.relation(n, outer)
	if err != nil {
		return nil, err
	}
	if err := r.settled(); err != nil {
		return nil, err
	}
	r = t.distinctIDs(r)
	return &relation{node: r.exact(), out: r.out}, nil
}

// isConversion recognises a projection that only converts every column of its child under its own name.
func isConversion(p *plan.Project) bool {
	below := p.Child.Schema()
	if len(below) != len(p.Projections) {
		return false
	}
	converts := false
	for i, e := range p.Projections {
		if a, ok := e.(*expression.Alias); ok {
			if !strings.EqualFold(a.Name(), below[i].Name) {
				return false
			}
			e, converts = a.Child, true
			if c, ok := e.(*expression.Convert); ok {
				e = c.Child
			}
		}
		gf, ok := e.(*expression.GetField)
		if !ok || !strings.EqualFold(gf.Name(), below[i].Name) {
			return false
		}
	}
	switch p.Child.(type) {
	case *plan.SubqueryAlias, *plan.ResolvedTable, *plan.TableAlias, *plan.Filter, *plan.JoinNode: // a SELECT of the user's
		return false
	}
	return converts
}

// unify converts both sides to common column types.
func (t *translator) unify(l, r *relation) (*relation, *relation) {
	lt, rt := make([]logical.Named, len(l.out)), make([]logical.Named, len(r.out))
	lc, rc := false, false
	for i := range l.out {
		lcol, rcol := l.out[i].col, r.out[i].col
		common := expr.Unify(lcol.Type, rcol.Type)
		le, re := coerce(lcol.Ref(), common), coerce(rcol.Ref(), common)
		if _, same := le.(*expr.Column); !same {
			lcol.ID, lcol.Type, lc = t.ids.Next(), common, true
		}
		if _, same := re.(*expr.Column); !same {
			rcol.ID, rcol.Type, rc = t.ids.Next(), common, true
		}
		lt[i], rt[i] = logical.Named{Column: lcol, Expr: le}, logical.Named{Column: rcol, Expr: re}
	}
	if lc {
		l = projected(l, lt)
	}
	if rc {
		r = projected(r, rt)
	}
	return l, r
}

func projected(r *relation, exprs []logical.Named) *relation {
	out := append([]output(nil), r.out...)
	for i := range out {
		out[i].col = exprs[i].Column
	}
	return &relation{node: &logical.Project{Input: r.node, Exprs: exprs}, out: out}
}

// union concatenates; nested UNION ALLs become one.
func (t *translator) union(l, r *relation) *relation {
	cols := make([]logical.Column, len(l.out))
	out := append([]output(nil), l.out...)
	for i := range cols {
		cols[i] = l.out[i].col
		cols[i].ID = t.ids.Next()
		cols[i].Nullable = cols[i].Nullable || r.out[i].col.Nullable
		out[i].col = cols[i]
	}
	var inputs []logical.Node
	for _, n := range []logical.Node{l.node, r.node} {
		if u, ok := n.(*logical.Union); ok {
			inputs = append(inputs, u.Inputs...)
		} else {
			inputs = append(inputs, n)
		}
	}
	return &relation{node: &logical.Union{Inputs: inputs, Cols: cols}, out: out}
}

// intersect is a semi join over all columns, NULLs equal; EXCEPT an anti join.
func (t *translator) intersect(l, r *relation, except bool) (*relation, error) {
	on := make([]expr.Expr, len(l.out))
	for i := range on {
		eq, err := expr.NewCall("<=>", l.out[i].col.Ref(), r.out[i].col.Ref())
		if err != nil {
			return nil, err
		}
		on[i] = eq
	}
	kind := logical.JoinSemi
	if except {
		kind = logical.JoinAnti
	}
	return &relation{node: &logical.Join{Kind: kind, Left: l.node, Right: r.node, On: on}, out: l.out}, nil
}
