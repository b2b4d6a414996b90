package translate

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
)

// Parser parses lakesql's dialect: text goes through dialect.Rewrite, the tree gets its headings back and literals that name resolution would spoil
// are protected. It is safe for concurrent use.
type Parser struct {
	base   sql.MysqlParser
	limits dialect.Limits
	isOpen func() bool // there are no users: everybody is root
}

var _ sql.Parser = (*Parser)(nil)

// NewParser returns a parser with the limits. isOpen says whether there are no users.
func NewParser(limits dialect.Limits, isOpen func() bool) *Parser {
	return &Parser{limits: limits, isOpen: isOpen}
}

// allGrants is what SHOW GRANTS answers where there are no users, whose tables it would read.
const allGrants = "SELECT 'GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION' AS `Grants for root@%`"

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
	if _, ok := stmt.(*ast.ShowGrants); ok && p.isOpen() {
		stmt, _, _, err = p.base.ParseWithOptions(ctx, allGrants, delimiter, false, ast.ParserOptions{})
	}
	if err == nil {
		stmt, err = p.showCollation(ctx, stmt)
	}
	if err != nil {
		return nil, query, rest, originalPosition(err, res)
	}
	if err := validate(stmt); err != nil {
		if req := RequestOf(ctx); req != nil {
			req.Invalid = err // go-mysql-server makes a syntax error of whatever a parser returns
		}
		return nil, query, rest, err
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

// restore gives select expressions the user's text as heading and protects what name resolution would spoil.
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
		if e, ok := n.(*ast.AliasedExpr); ok {
			e.InputExpression = heading(e.InputExpression)
		}
		return true, nil
	}, stmt)
	alias(stmt)
	protect(stmt)
	return stmt
}

// alias gives the table of a DELETE its alias, which the parser does not take there.
func alias(stmt ast.Statement) {
	del, ok := stmt.(*ast.Delete)
	if !ok || len(del.TableExprs) != 1 {
		return
	}
	name := dialect.DeleteAlias(del.Comments)
	if table, ok := del.TableExprs[0].(*ast.AliasedTableExpr); ok && name != "" {
		table.As = ast.NewTableIdent(name)
	}
}

// Protect prepares a statement that another parser made (COM_STMT_PREPARE) as Parser does with its own.
func Protect(stmt ast.Statement) {
	if e, ok := stmt.(*ast.Explain); ok {
		stmt = e.Statement
	}
	alias(stmt)
	protect(stmt)
}
