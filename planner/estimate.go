package planner

import (
	"math"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// Selectivities of conditions that no index can count, as System R guessed them.
const (
	selectEquals = 0.05
	selectRange  = 0.3
	selectLike   = 0.1
	selectOther  = 0.5
)

// rowsOf estimates how many rows n yields; at least 1.
func (c *Context) rowsOf(n logical.Node) float64 { return max(1, c.estimate(n)) }

func (c *Context) estimate(n logical.Node) float64 {
	switch n := n.(type) {
	case *logical.Scan:
		return c.scanRows(n)
	case *logical.Values:
		return float64(len(n.Rows))
	case *logical.Filter:
		rows := c.estimate(n.Input)
		for _, cond := range n.Conds {
			rows *= guess(cond)
		}
		return rows
	case *logical.Aggregate:
		if len(n.Keys) == 0 {
			return 1
		}
		return math.Pow(c.estimate(n.Input), 0.75)
	case *logical.Join:
		return c.joinRows(n)
	case *logical.Limit:
		return min(c.estimate(n.Input), float64(n.Count))
	case *logical.TopN:
		return min(c.estimate(n.Input), float64(n.Count))
	case *logical.Search:
		return min(c.scanRows(n.Scan), float64(n.K))
	case *logical.Distinct:
		return math.Pow(c.estimate(n.Input), 0.9)
	case *logical.Union:
		sum := 0.0
		for _, in := range n.Inputs {
			sum += c.estimate(in)
		}
		return sum
	}
	if in := n.Children(); len(in) > 0 {
		return c.estimate(in[0])
	}
	return 1
}

// scanRows multiplies the table's exact count by what indices or rules of thumb say of each condition.
func (c *Context) scanRows(n *logical.Scan) float64 {
	total := float64(n.Table.Rows())
	if total < 0 {
		total = 1e6
	}
	rows := total
	for _, cond := range n.Filter {
		rows *= c.selectivity(n, cond, total)
	}
	for _, m := range n.Masks {
		if m.Kind != logical.JoinSemi {
			continue
		}
		rows = min(rows, c.rowsOf(m.Keys))
	}
	return rows
}

func (c *Context) selectivity(n *logical.Scan, cond expr.Expr, total float64) float64 {
	if table, ok := n.Table.(exec.Indexed); ok && total > 0 {
		if leaf, ok, err := indexLeaf(c.Ctx, table, n, cond); err == nil && ok { // an error comes up again where the index is asked
			if rows := table.Estimate(c.Ctx, leaf.info.Name, leaf.predicate); rows >= 0 {
				return min(1, float64(rows)/total)
			}
		}
	}
	return guess(cond)
}

func guess(cond expr.Expr) float64 {
	call, ok := cond.(*expr.Call)
	if !ok {
		return selectOther
	}
	switch call.Func {
	case "=", "<=>", "array_has", "array_has_all":
		return selectEquals
	case "in":
		return min(1, selectEquals*3)
	case "is_null":
		return selectEquals
	case "is_not_null":
		return 1 - selectEquals
	case "<", "<=", ">", ">=":
		return selectRange
	case "like", "regexp":
		return selectLike
	case "and":
		s := 1.0
		for _, a := range call.Args {
			s *= guess(a)
		}
		return s
	case "or":
		s := 0.0
		for _, a := range call.Args {
			s += guess(a)
		}
		return min(1, s)
	case "not":
		return 1 - guess(call.Args[0])
	}
	return selectOther
}

func (c *Context) joinRows(n *logical.Join) float64 {
	l, r := c.rowsOf(n.Left), c.rowsOf(n.Right)
	switch n.Kind {
	case logical.JoinSemi, logical.JoinAnti, logical.JoinNullAwareAnti:
		return l / 2
	case logical.JoinMark, logical.JoinSingle:
		return l
	}
	rows := c.matches(l, r, n.Left, n.Right, n.On)
	if n.Kind != logical.JoinInner {
		rows = max(rows, l)
	}
	return rows
}

// matches estimates an inner join: the product over the number of distinct keys, which for a foreign key is the size of the table that it points to.
func (c *Context) matches(l, r float64, left, right logical.Node, on []expr.Expr) float64 {
	rows := l * r
	lcols, rcols := columnSet(left.Columns()), columnSet(right.Columns())
	for _, cond := range on {
		if a, b, ok := equality(cond, lcols, rcols); ok {
			rows /= max(1, min(c.distinct(left, a, l), c.distinct(right, b, r)))
		} else {
			rows *= guess(cond)
		}
	}
	return rows
}

// distinct bounds the number of distinct values of key in n: at most the unfiltered size of its table.
func (c *Context) distinct(n logical.Node, key expr.Expr, rows float64) float64 {
	ids := expr.Columns(key)
	base := rows
	logical.Walk(n, func(m logical.Node) bool {
		if s, ok := m.(*logical.Scan); ok && len(ids) > 0 {
			for _, col := range s.Cols {
				if col.ID == ids[0] && s.Table.Rows() > 0 {
					base = max(base, float64(s.Table.Rows()))
				}
			}
		}
		return true
	})
	return base
}

// equality splits cond into a key of the left and a key of the right side.
func equality(cond expr.Expr, left, right map[logical.ColumnID]bool) (l, r expr.Expr, ok bool) {
	call, isCall := cond.(*expr.Call)
	if !isCall || call.Func != "=" || len(call.Args) != 2 {
		return nil, nil, false
	}
	a, b := call.Args[0], call.Args[1]
	if len(expr.Columns(a)) == 0 || len(expr.Columns(b)) == 0 {
		return nil, nil, false
	}
	switch {
	case usesOnly(a, left) && usesOnly(b, right):
		return a, b, true
	case usesOnly(b, left) && usesOnly(a, right):
		return b, a, true
	}
	return nil, nil, false
}
