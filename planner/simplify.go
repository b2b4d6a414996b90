package planner

import (
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// simplify folds constants, drops conditions that are always TRUE and empties inputs whose condition never is.
func simplify(c *Context, root logical.Node) (logical.Node, bool, error) {
	changed := false
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		switch n := n.(type) {
		case *logical.Filter:
			conds, never, err := foldConds(n.Conds)
			if err != nil {
				return nil, err
			}
			changed = true
			if never {
				return &logical.Values{Cols: n.Columns()}, nil
			}
			if len(conds) == 0 {
				return n.Input, nil
			}
			return &logical.Filter{Input: n.Input, Conds: conds}, nil
		case *logical.Project:
			m := *n
			m.Exprs = make([]logical.Named, len(n.Exprs))
			for i, e := range n.Exprs {
				folded, err := expr.Fold(e.Expr, &expr.Env{})
				if err != nil {
					return nil, err
				}
				m.Exprs[i] = logical.Named{Column: e.Column, Expr: folded}
			}
			changed = true
			return &m, nil
		case *logical.Limit:
			if n.Count == 0 {
				changed = true
				return &logical.Values{Cols: n.Columns()}, nil
			}
		}
		return n, nil
	})
	return out, changed, err
}

// foldConds folds conjuncts; never says that one of them is FALSE or NULL for every row.
func foldConds(conds []expr.Expr) (out []expr.Expr, never bool, err error) {
	for _, cond := range conds {
		folded, err := expr.Fold(cond, &expr.Env{})
		if err != nil {
			return nil, false, err
		}
		for _, part := range expr.Conjuncts(folded) {
			lit, ok := part.(*expr.Literal)
			if !ok {
				out = append(out, part)
				continue
			}
			b, isBool := lit.Value.(*scalar.Boolean)
			if !lit.Value.IsValid() || isBool && !b.Value {
				return nil, true, nil
			}
			if !isBool {
				out = append(out, part)
			}
		}
	}
	return out, false, nil
}
