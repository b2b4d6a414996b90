package translate

import (
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// setSubqueries translates the subqueries of SET @x = (SELECT ...), each as a whole: go-mysql-server does not bind the columns of tables that read only what is
// asked for below a SET.
func setSubqueries(ctx *sql.Context, req *Request, n *plan.Set) (sql.Node, transform.TreeIdentity, error) {
	changed := false
	exprs := make([]sql.Expression, len(n.Expressions()))
	for i, e := range n.Expressions() {
		out, same, err := transform.Expr(e, func(e sql.Expression) (sql.Expression, transform.TreeIdentity, error) {
			sq, ok := e.(*plan.Subquery)
			if !ok {
				return e, transform.SameTree, nil
			}
			node, err := translate(ctx, req, sq.Query)
			if err != nil {
				return e, transform.SameTree, err
			}
			return sq.WithQuery(node), transform.NewTree, nil
		})
		if err != nil {
			return n, transform.SameTree, err
		}
		exprs[i] = out
		changed = changed || !bool(same)
	}
	if !changed {
		return n, transform.SameTree, nil
	}
	out, err := n.WithExpressions(exprs...)
	return out, transform.NewTree, err
}
