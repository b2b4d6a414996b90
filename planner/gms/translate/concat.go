package translate

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// concatSpec says what a GROUP_CONCAT is, which go-mysql-server keeps to itself: it stands in front of the arguments, behind which the sort keys come.
type concatSpec struct {
	constantExpr
	number    int // tells calls apart that differ in what their text leaves out
	args      int
	separator string
	distinct  bool
	desc      []bool
}

// callConcats rewrites the GROUP_CONCATs of a statement in place.
func callConcats(stmt ast.SQLNode) {
	count := 0
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		if sel, ok := n.(*ast.Select); ok && sel.Having != nil {
			callInHaving(sel.Having, &count)
		}
		g, ok := n.(*ast.GroupConcatExpr)
		if !ok || isRewritten(g) {
			return true, nil
		}
		count++
		g.Exprs, g.OrderBy = concatArgs(g, count), nil
		return true, nil
	}, stmt)
}

// callInHaving puts another aggregate in the place of each GROUP_CONCAT: go-mysql-server finds those of HAVING by their names.
func callInHaving(having *ast.Where, count *int) {
	var found []*ast.GroupConcatExpr
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		if g, ok := n.(*ast.GroupConcatExpr); ok {
			found = append(found, g)
		}
		_, sub := n.(*ast.Subquery)
		return !sub, nil
	}, having.Expr)
	for _, g := range found {
		*count++
		call := &ast.FuncExpr{Name: ast.NewColIdent(dialect.Concat), Exprs: concatArgs(g, *count)}
		whole := &ast.FuncExpr{Name: ast.NewColIdent("any_value"), Exprs: ast.SelectExprs{&ast.AliasedExpr{Expr: call}}}
		having.Expr = ast.ReplaceExpr(having.Expr, g, whole)
	}
}

// concatArgs are the spec, the arguments and the sort keys.
func concatArgs(g *ast.GroupConcatExpr, number int) ast.SelectExprs {
	spec := &concatSpec{number: number, args: len(g.Exprs), separator: ",", distinct: g.Distinct != ""}
	if !g.Separator.DefaultSeparator {
		spec.separator = g.Separator.SeparatorString
	}
	exprs := append(ast.SelectExprs{&ast.AliasedExpr{Expr: injected(spec)}}, g.Exprs...)
	for _, o := range g.OrderBy {
		e := o.Expr
		if v, isNumber := e.(*ast.SQLVal); isNumber && v.Type == ast.IntVal {
			if at := int(v.Val[0] - '1'); len(v.Val) == 1 && at >= 0 && at < len(g.Exprs) { // the place of an argument
				if a, plain := g.Exprs[at].(*ast.AliasedExpr); plain {
					e = a.Expr
				}
			}
		}
		exprs = append(exprs, &ast.AliasedExpr{Expr: e})
		spec.desc = append(spec.desc, o.Direction == ast.DescScr)
	}
	return exprs
}

func isRewritten(g *ast.GroupConcatExpr) bool {
	if len(g.Exprs) == 0 {
		return true
	}
	a, ok := g.Exprs[0].(*ast.AliasedExpr)
	if !ok {
		return false
	}
	i, ok := a.Expr.(ast.InjectedExpr)
	if !ok {
		return false
	}
	_, ok = i.Expression.(*concatSpec)
	return ok
}

// WithResolvedChildren implements ast.Injectable.
func (c *concatSpec) WithResolvedChildren([]any) (any, error) {
	out := *c
	out.constantExpr = constantExpr{stringLiteral(c.String())}
	return &out, nil
}

// String implements fmt.Stringer.
func (c *concatSpec) String() string { return fmt.Sprintf("call %d", c.number) }

// WithChildren implements sql.Expression.
func (c *concatSpec) WithChildren(...sql.Expression) (sql.Expression, error) { return c, nil }

// concatCall returns the spec and what stands behind it of a GROUP_CONCAT.
func concatCall(a sql.Aggregation) ([]sql.Expression, bool) {
	switch a := a.(type) {
	case *aggregation.GroupConcat:
		return a.Children(), true
	case *aggregation.AnyValue:
		if f, ok := a.Child.(*provider.Func); ok && f.FunctionName() == dialect.Concat {
			return f.Children(), true
		}
	}
	return nil, false
}

func (t *translator) groupConcat(g sql.Aggregation, children []sql.Expression, sc *scope) (logical.Agg, error) {
	out := logical.Agg{Func: logical.AggConcat}
	if len(children) == 0 {
		return out, unsupported("aggregate %s", g)
	}
	spec, ok := children[0].(*concatSpec)
	if !ok || len(children) != 1+spec.args+len(spec.desc) {
		return out, unsupported("aggregate %s", g)
	}
	var all []expr.Expr
	for _, c := range children[1:] {
		e, err := sc.expr(c)
		if err != nil {
			return out, err
		}
		all = append(all, e)
	}
	args, keys := all[:spec.args], all[spec.args:]
	text, err := joinedText(args)
	if err != nil {
		return out, err
	}
	v, err := t.ctx.GetSessionVariable(t.ctx, "group_concat_max_len")
	if err != nil {
		return out, err
	}
	limit, ok := v.(uint64)
	if !ok {
		return out, errs.New(errs.ErrInternal, "group_concat_max_len is a %T", v)
	}
	out.Concat = &exec.ConcatSpec{Separator: spec.separator, BytesMax: limit, Desc: spec.desc}
	out.Args = []expr.Expr{text}
	if spec.distinct {
		out.Concat.Distinct = len(args)
		out.Args = append(out.Args, args...)
	}
	out.Args = append(out.Args, keys...)
	out.Column = logical.Column{ID: t.ids.Next(), Name: t.heading(g), Type: text.Type(), Nullable: true}
	return out, nil
}

// joinedText is what GROUP_CONCAT shows of one row: the arguments one behind the other, NULL where one of them is.
func joinedText(args []expr.Expr) (expr.Expr, error) {
	texts := make([]expr.Expr, len(args))
	for i, a := range args {
		texts[i] = a
		var err error
		switch id := a.Type().ID(); {
		case id == arrow.STRING || id == arrow.BINARY:
		case isNested(a.Type()):
			texts[i], err = expr.NewCall("to_json", a)
		case id == arrow.LARGE_BINARY || id == arrow.FIXED_SIZE_BINARY:
			texts[i], err = expr.NewCast(a, arrow.BinaryTypes.Binary)
		default:
			texts[i], err = expr.NewCast(a, arrow.BinaryTypes.String)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(texts) == 1 {
		return texts[0], nil
	}
	joined, err := expr.NewCall("concat", texts...)
	if err != nil {
		return nil, err
	}
	if id := joined.Type().ID(); id == arrow.STRING || id == arrow.BINARY {
		return joined, nil
	}
	return expr.NewCast(joined, arrow.BinaryTypes.String)
}
