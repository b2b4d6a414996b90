package translate

import (
	"context"
	"strings"

	ast "github.com/dolthub/vitess/go/vt/sqlparser"
)

// allCollations is SHOW COLLATION under MySQL's headings. Text compares byte for byte, so that utf8mb4_0900_bin is what a table of utf8mb4 has by default.
const allCollations = "SELECT * FROM (SELECT COLLATION_NAME AS `Collation`, CHARACTER_SET_NAME AS `Charset`, ID AS `Id`, CASE COLLATION_NAME WHEN 'utf8mb4_0900_bin' THEN 'Yes' " +
	"WHEN 'utf8mb4_0900_ai_ci' THEN '' ELSE IS_DEFAULT END AS `Default`, IS_COMPILED AS `Compiled`, SORTLEN AS `Sortlen`, PAD_ATTRIBUTE AS `Pad_attribute` " +
	"FROM information_schema.COLLATIONS) AS collations ORDER BY 1"

// showCollation is the query behind SHOW COLLATION; any other statement stays as it is.
func (p *Parser) showCollation(ctx context.Context, stmt ast.Statement) (ast.Statement, error) {
	show, ok := stmt.(*ast.Show)
	if !ok || !strings.EqualFold(show.Type, "collation") {
		return stmt, nil
	}
	query, _, _, err := p.base.ParseWithOptions(ctx, allCollations, ';', false, ast.ParserOptions{})
	if sel, ok := query.(*ast.Select); ok && err == nil && show.ShowCollationFilterOpt != nil {
		sel.Where = ast.NewWhere(ast.WhereStr, show.ShowCollationFilterOpt)
	}
	return query, err
}
