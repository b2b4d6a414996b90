package planner

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// simplify folds constants, drops conditions that are always TRUE and empties inputs whose condition never is.
func simplify(c *Context, root logical.Node) (logical.Node, bool, error) {
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		n, err := logical.MapExprs(n, func(e expr.Expr) (expr.Expr, error) {
			folded, err := expr.Fold(e, &c.Env)
			if err != nil || arrow.TypeEqual(folded.Type(), e.Type()) {
				return folded, err
			}
			return e, nil // a NULL that lost its type would change the column
		})
		if err != nil {
			return nil, err
		}
		switch n := n.(type) {
		case *logical.Filter:
			conds, never := splitConstants(n.Conds)
			if never {
				return &logical.Values{Cols: n.Columns()}, nil
			}
			if len(conds) == 0 {
				return n.Input, nil
			}
			return &logical.Filter{Input: n.Input, Conds: conds}, nil
		case *logical.Limit:
			if n.Count == 0 {
				return &logical.Values{Cols: n.Columns()}, nil
			}
		}
		return n, nil
	})
	return out, out != root, err
}

// alwaysNull recognises comparisons with NULL, and their negation.
func alwaysNull(e expr.Expr) bool {
	call, ok := e.(*expr.Call)
	if !ok {
		return false
	}
	switch call.Func {
	case "not":
		return alwaysNull(call.Args[0])
	case "=", "<", "<=", ">", ">=", "<>":
		return slices.ContainsFunc(call.Args, func(a expr.Expr) bool {
			lit, ok := a.(*expr.Literal)
			return ok && !lit.Value.IsValid()
		})
	}
	return false
}

// splitConstants drops conjuncts that are TRUE; never says that one of them is FALSE or NULL for every row.
func splitConstants(conds []expr.Expr) (out []expr.Expr, never bool) {
	for _, part := range splitAll(conds) {
		if alwaysNull(part) {
			return nil, true
		}
		lit, ok := part.(*expr.Literal)
		if !ok {
			out = append(out, part)
			continue
		}
		b, isBool := lit.Value.(*scalar.Boolean)
		if !lit.Value.IsValid() || isBool && !b.Value {
			return nil, true
		}
		if !isBool {
			out = append(out, part)
		}
	}
	return out, false
}
