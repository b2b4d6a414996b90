package planner

import (
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

func columnSet(cols []logical.Column) map[logical.ColumnID]bool {
	out := make(map[logical.ColumnID]bool, len(cols))
	for _, c := range cols {
		out[c.ID] = true
	}
	return out
}

// usesOnly says that e reads columns of set alone.
func usesOnly(e expr.Expr, set map[logical.ColumnID]bool) bool {
	for _, id := range expr.Columns(e) {
		if !set[id] {
			return false
		}
	}
	return true
}

func definitions(es []logical.Named) map[logical.ColumnID]expr.Expr {
	out := make(map[logical.ColumnID]expr.Expr, len(es))
	for _, e := range es {
		out[e.ID] = e.Expr
	}
	return out
}

// substitute replaces columns by their definitions; columns without one stay.
func substitute(e expr.Expr, defs map[logical.ColumnID]expr.Expr) expr.Expr {
	return expr.Transform(e, func(n expr.Expr) expr.Expr {
		if c, ok := n.(*expr.Column); ok {
			if d, ok := defs[c.ID]; ok {
				return d
			}
		}
		return n
	})
}

// passThrough returns a Named that hands a column on.
func passThrough(c logical.Column) logical.Named { return logical.Named{Column: c, Expr: c.Ref()} }

func passAll(cols []logical.Column) []logical.Named {
	out := make([]logical.Named, len(cols))
	for i, c := range cols {
		out[i] = passThrough(c)
	}
	return out
}
