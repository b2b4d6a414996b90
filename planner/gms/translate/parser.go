package translate

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
)

// Parser parses lakesql's dialect: text goes through dialect.Rewrite, the tree gets its headings back and literals that name resolution would spoil
// are protected. It is safe for concurrent use.
type Parser struct {
	base   sql.MysqlParser
	limits dialect.Limits
}

var _ sql.Parser = (*Parser)(nil)

// NewParser returns a parser with the limits.
func NewParser(limits dialect.Limits) *Parser { return &Parser{limits: limits} }

// ParseSimple implements sql.Parser.
func (p *Parser) ParseSimple(query string) (ast.Statement, error) {
	stmt, _, _, err := p.ParseWithOptions(context.Background(), query, ';', false, ast.ParserOptions{})
	return stmt, err
}

// Parse implements sql.Parser.
func (p *Parser) Parse(ctx *sql.Context, query string, multi bool) (ast.Statement, string, string, error) {
	return p.ParseWithOptions(ctx, query, ';', multi, sql.LoadSqlMode(ctx).ParserOptions())
}

// ParseWithOptions implements sql.Parser.
func (p *Parser) ParseWithOptions(ctx context.Context, query string, delimiter rune, multi bool, options ast.ParserOptions) (ast.Statement, string, string, error) {
	query = sql.RemoveSpaceAndDelimiter(query, delimiter)
	rest := ""
	if multi {
		if pieces := dialect.Split(query); len(pieces) > 1 {
			at := strings.Index(query, pieces[0]) + len(pieces[0])
			query, rest = query[:at], query[at+strings.IndexByte(query[at:], ';')+1:]
		}
	}
	res, err := p.rewrite(ctx, query)
	if err != nil {
		return nil, query, rest, err
	}
	stmt, _, _, err := p.base.ParseWithOptions(ctx, res.Text, delimiter, false, options)
	if err != nil {
		return nil, query, rest, originalPosition(err, res)
	}
	return restore(stmt, res), query, rest, nil
}

// ParseOneWithOptions implements sql.Parser.
func (p *Parser) ParseOneWithOptions(ctx context.Context, query string, options ast.ParserOptions) (ast.Statement, int, error) {
	stmt, parsed, rest, err := p.ParseWithOptions(ctx, query, ';', true, options)
	if err != nil {
		return nil, 0, err
	}
	if rest == "" {
		return stmt, 0, nil
	}
	_ = parsed
	return stmt, len(query) - len(rest), nil
}

// rewrite uses what the engine rewrote already.
func (p *Parser) rewrite(ctx context.Context, query string) (*dialect.Result, error) {
	if req := RequestOf(ctx); req != nil && req.Rewritten != nil && req.Rewritten.Original == query {
		return req.Rewritten, nil
	}
	res, err := dialect.Rewrite(query, p.limits)
	if err != nil {
		return nil, err
	}
	if res.Own != nil {
		return nil, errs.New(errs.ErrUnsupported, "this statement cannot be used here")
	}
	return res, nil
}

// positionPattern finds what the parser says about where an error is.
func positionPattern() *regexp.Regexp { return regexp.MustCompile(`at position (\d+)`) }

// originalPosition maps the position in a syntax error back to the user's text.
func originalPosition(err error, res *dialect.Result) error {
	if res.Text == res.Original {
		return err
	}
	text := positionPattern().ReplaceAllStringFunc(err.Error(), func(m string) string {
		n, convErr := strconv.Atoi(m[strings.LastIndexByte(m, ' ')+1:])
		if convErr != nil {
			return m
		}
		return fmt.Sprintf("at position %d", res.OriginalOffset(n))
	})
	return sql.ErrSyntaxError.New(strings.TrimPrefix(text, "syntax error "))
}

// aggregateNames are the functions whose calls go-mysql-server tells apart by lower-case text.
func isAggregateName(name string) bool {
	switch name {
	case "avg", "bit_and", "bit_or", "bit_xor", "count", "group_concat", "json_arrayagg", "json_objectagg", "max", "min", "std", "stddev_pop", "stddev_samp", "stddev", "sum",
		"var_pop", "var_samp", "variance", "first", "last", "any_value":
		return true
	}
	return false
}

// restore gives select expressions the user's text as heading and protects literals:
// decimals beside a column would be rounded to the column's scale, and aggregates that differ in the case of a string alone would be one.
func restore(stmt ast.Statement, res *dialect.Result) ast.Statement {
	if e, ok := stmt.(*ast.Explain); ok {
		restore(e.Statement, res)
		if e.ExplainFormat == "" && !e.Analyze {
			e.Plan = true
		}
		return e
	}
	heading := res.Headings()
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.AliasedExpr:
			n.InputExpression = heading(n.InputExpression)
		case *ast.ComparisonExpr:
			n.Left, n.Right = protectNumber(n.Left), protectNumber(n.Right)
		case *ast.FuncExpr:
			if isAggregateName(n.Name.Lowered()) {
				protectStrings(n)
			}
		}
		return true, nil
	}, stmt)
	return stmt
}

func protectNumber(e ast.Expr) ast.Expr {
	v, ok := e.(*ast.SQLVal)
	if !ok || v.Type != ast.FloatVal || strings.ContainsAny(string(v.Val), "eE") {
		return e
	}
	return ast.InjectedExpr{Expression: &number{text: string(v.Val)}}
}

// protectStrings marks the upper-case strings inside an aggregate.
func protectStrings(f *ast.FuncExpr) {
	protect := func(e ast.Expr) ast.Expr {
		v, ok := e.(*ast.SQLVal)
		if !ok || v.Type != ast.StrVal || strings.ToLower(string(v.Val)) == string(v.Val) {
			return e
		}
		return ast.InjectedExpr{Expression: &cased{text: string(v.Val)}}
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
