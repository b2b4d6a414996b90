package translate

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"
)

// protect replaces parts of a parsed statement that go-mysql-server's name resolution would take for something else:
// a decimal beside a column would be rounded to the column's scale; an outer join ON TRUE would be a cross join; aggregates that differ in the case of a string alone would be one; an aggregate of a subquery
// that is spelled like one of the query around it would be that one.
func protect(stmt ast.SQLNode) {
	collateSchema(stmt)
	callConcats(stmt)
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.ComparisonExpr:
			n.Left, n.Right = protectNumber(n.Left), protectNumber(n.Right)
		case *ast.JoinTableExpr:
			keepOuter(n)
		case *ast.FuncExpr:
			if isAggregateName(n.Name.Lowered()) {
				protectStrings(n)
			}
		case *ast.Select:
			callWindows(n)
			tagAggregates(n, nil)
			return true, nil
		}
		return true, nil
	}, stmt)
}

// keepOuter says TRUE in other words where it is the condition of an outer join: go-mysql-server makes a cross join of every join ON TRUE, which loses rows that find no partner.
func keepOuter(join *ast.JoinTableExpr) {
	if join.Condition.On != ast.BoolVal(true) {
		return
	}
	switch strings.ToLower(join.Join) {
	case ast.LeftJoinStr, ast.RightJoinStr, ast.FullOuterJoinStr:
		one := func() ast.Expr { return ast.NewIntVal([]byte("1")) }
		join.Condition.On = &ast.ComparisonExpr{Operator: ast.EqualStr, Left: one(), Right: one()}
	}
}

// tagAggregates marks the aggregates of subqueries that an enclosing block has too.
func tagAggregates(sel *ast.Select, outer map[string]bool) {
	own := make(map[string]bool, len(outer))
	for text := range outer {
		own[text] = true
	}
	var inner []*ast.Select
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.Select:
			if n != sel {
				inner = append(inner, n)
				return false, nil
			}
		case *ast.FuncExpr:
			if !isAggregateName(n.Name.Lowered()) || len(n.Exprs) == 0 {
				break
			}
			arg, ok := n.Exprs[0].(*ast.AliasedExpr)
			if !ok || isTagged(arg.Expr) {
				break
			}
			text := strings.ToLower(ast.String(n))
			if outer[text] {
				arg.Expr = injected(&tagged{level: len(outer)}, arg.Expr)
			}
			own[text] = true
		}
		return true, nil
	}, sel)
	for _, s := range inner {
		tagAggregates(s, own)
	}
}

// injected puts an expression of ours into a statement. It needs no privilege of its own.
func injected(e ast.Injectable, children ...ast.Expr) ast.InjectedExpr {
	return ast.InjectedExpr{Expression: e, Children: children, Auth: ast.AuthInformation{AuthType: ast.AuthType_IGNORE}}
}

func isTagged(e ast.Expr) bool {
	injected, ok := e.(ast.InjectedExpr)
	if !ok {
		return false
	}
	_, ok = injected.Expression.(*tagged)
	return ok
}

// tagged is its child under another text.
type tagged struct {
	expression.UnaryExpression
	level int
}

// WithResolvedChildren implements ast.Injectable.
func (g *tagged) WithResolvedChildren(children []any) (any, error) {
	child, ok := children[0].(sql.Expression)
	if !ok {
		return nil, unsupported("an aggregate of %T", children[0])
	}
	return &tagged{expression.UnaryExpression{Child: child}, g.level}, nil
}

// String implements fmt.Stringer.
func (g *tagged) String() string { return fmt.Sprintf("%s /*%d*/", g.Child, g.level) }

// Type implements sql.Expression.
func (g *tagged) Type() sql.Type { return g.Child.Type() }

// Eval implements sql.Expression.
func (g *tagged) Eval(ctx *sql.Context, row sql.Row) (any, error) { return g.Child.Eval(ctx, row) }

// WithChildren implements sql.Expression.
func (g *tagged) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	if len(children) != 1 {
		return nil, sql.ErrInvalidChildrenNumber.New(g, len(children), 1)
	}
	return &tagged{expression.UnaryExpression{Child: children[0]}, g.level}, nil
}

// CollationCoercibility implements sql.CollationCoercible.
func (g *tagged) CollationCoercibility(ctx *sql.Context) (sql.CollationID, byte) {
	return sql.GetCoercibility(ctx, g.Child)
}

func protectNumber(e ast.Expr) ast.Expr {
	v, ok := e.(*ast.SQLVal)
	if !ok || v.Type != ast.FloatVal || strings.ContainsAny(string(v.Val), "eE") {
		return e
	}
	return injected(&number{text: string(v.Val)})
}

// protectStrings marks the upper-case strings inside an aggregate.
func protectStrings(f *ast.FuncExpr) {
	protect := func(e ast.Expr) ast.Expr {
		v, ok := e.(*ast.SQLVal)
		if !ok || v.Type != ast.StrVal || strings.ToLower(string(v.Val)) == string(v.Val) {
			return e
		}
		return injected(&cased{text: string(v.Val)})
	}
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.AliasedExpr:
			n.Expr = protect(n.Expr)
		case *ast.ComparisonExpr:
			n.Left, n.Right = protect(n.Left), protect(n.Right)
		case *ast.RangeCond:
			n.Left, n.From, n.To = protect(n.Left), protect(n.From), protect(n.To)
		case *ast.When:
			n.Cond, n.Val = protect(n.Cond), protect(n.Val)
		case *ast.CaseExpr:
			n.Else = protect(n.Else)
		case ast.ValTuple:
			for i := range n {
				n[i] = protect(n[i])
			}
		case *ast.Subquery:
			return false, nil
		}
		return true, nil
	}, f)
}

// number is a decimal literal with the digits that the user wrote.
type number struct {
	constantExpr
	text string
}

// WithResolvedChildren implements ast.Injectable.
func (n *number) WithResolvedChildren([]any) (any, error) {
	lit, err := decimalLiteral(n.text)
	if err != nil {
		return nil, err
	}
	return &number{constantExpr: constantExpr{lit}, text: n.text}, nil
}

// String implements fmt.Stringer.
func (n *number) String() string { return n.text }

// WithChildren implements sql.Expression.
func (n *number) WithChildren(...sql.Expression) (sql.Expression, error) { return n, nil }

// cased is a string literal whose text says which letters are upper case.
type cased struct {
	constantExpr
	text string
}

// WithResolvedChildren implements ast.Injectable.
func (c *cased) WithResolvedChildren([]any) (any, error) {
	return &cased{constantExpr: constantExpr{stringLiteral(c.text)}, text: c.text}, nil
}

// String implements fmt.Stringer.
func (c *cased) String() string {
	return "'" + c.text + "'/*" + hex.EncodeToString([]byte(c.text)) + "*/"
}

// WithChildren implements sql.Expression.
func (c *cased) WithChildren(...sql.Expression) (sql.Expression, error) { return c, nil }

// constantExpr lends the methods of a literal without being one to go-mysql-server.
type constantExpr struct{ *expression.Literal }
