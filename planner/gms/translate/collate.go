package translate

import (
	"strings"

	ast "github.com/dolthub/vitess/go/vt/sqlparser"
)

const (
	informationSchema = "information_schema"
	charsetUTF8       = "utf8mb4"
)

// collateSchema lets statements over information_schema put utf8mb4 collations on its columns, as Connector/J and Tableau do: go-mysql-server keeps
// them as utf8mb3 and refuses, where MySQL converts.
func collateSchema(stmt ast.SQLNode) {
	var collated []*ast.CollateExpr
	reads := false
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case ast.TableName:
			reads = reads || strings.EqualFold(n.DbQualifier.String(), informationSchema)
		case *ast.CollateExpr:
			if strings.HasPrefix(strings.ToLower(n.Collation), charsetUTF8+"_") {
				collated = append(collated, n)
			}
		}
		return true, nil
	}, stmt)
	if !reads {
		return
	}
	for _, c := range collated {
		switch c.Expr.(type) {
		case *ast.SQLVal, *ast.ConvertUsingExpr:
		default:
			c.Expr = &ast.ConvertUsingExpr{Expr: c.Expr, Type: charsetUTF8}
		}
	}
}
