package planner

import (
	"slices"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// orderJoins orders each tree of inner joins by size: again and again the two parts whose join is smallest are joined first (greedy operator ordering, Fegaras
// 1998). Sizes come from exact row counts and index estimates.
func orderJoins(c *Context, root logical.Node) (logical.Node, bool, error) {
	out, err := orderBelow(c, root)
	return out, out != root, err
}

func orderBelow(c *Context, n logical.Node) (logical.Node, error) {
	j, ok := n.(*logical.Join)
	if !ok || j.Kind != logical.JoinInner {
		return orderChildren(c, n)
	}
	var parts []logical.Node
	var conds []expr.Expr
	flatten(j, &parts, &conds)
	for i, p := range parts {
		q, err := orderBelow(c, p)
		if err != nil {
			return nil, err
		}
		parts[i] = q
	}
	joined := c.joinGreedily(parts, conds)
	// Parents find columns by id, but a union or the result goes by position.
	if err := sameColumns(n, joined); err != nil {
		joined = &logical.Project{Input: joined, Exprs: passAll(n.Columns())}
	}
	return joined, nil
}

func orderChildren(c *Context, n logical.Node) (logical.Node, error) {
	children := n.Children()
	next := slices.Clone(children)
	same := true
	for i, child := range children {
		var err error
		if next[i], err = orderBelow(c, child); err != nil {
			return nil, err
		}
		same = same && next[i] == child
	}
	if same {
		return n, nil
	}
	return n.WithChildren(next), nil
}

// flatten collects the inputs and conditions of nested inner joins, looking through projections that only hand columns on.
func flatten(n logical.Node, parts *[]logical.Node, conds *[]expr.Expr) {
	switch m := n.(type) {
	case *logical.Join:
		if m.Kind == logical.JoinInner {
			flatten(m.Left, parts, conds)
			flatten(m.Right, parts, conds)
			*conds = append(*conds, splitAll(m.On)...)
			return
		}
	case *logical.Filter:
		// Over a join that keeps unmatched rows the filter stays: it makes a small part of the tree.
		if j, ok := m.Input.(*logical.Join); ok && j.Kind == logical.JoinInner && !expr.Volatile(m.Conds...) {
			flatten(m.Input, parts, conds)
			*conds = append(*conds, splitAll(m.Conds)...)
			return
		}
	case *logical.Project:
		if j, ok := m.Input.(*logical.Join); ok && j.Kind == logical.JoinInner && onlyPasses(m) {
			flatten(m.Input, parts, conds)
			return
		}
	}
	*parts = append(*parts, n)
}

func onlyPasses(p *logical.Project) bool {
	for _, e := range p.Exprs {
		if col, ok := e.Expr.(*expr.Column); !ok || col.ID != e.ID {
			return false
		}
	}
	return true
}

// joinGreedily joins parts into one node that applies every condition.
func (c *Context) joinGreedily(parts []logical.Node, conds []expr.Expr) logical.Node {
	parts = slices.Clone(parts)
	sizes := make([]float64, len(parts))
	for i, p := range parts {
		sizes[i] = c.rowsOf(p)
	}
	for len(parts) > 1 {
		bi, bj, best, bestLinked := -1, -1, 0.0, false
		for i := range parts {
			for j := i + 1; j < len(parts); j++ {
				on, linked := between(parts[i], parts[j], conds)
				rows := c.matches(sizes[i], sizes[j], parts[i], parts[j], on)
				// A cross product comes last, however small.
				if bi < 0 || linked && !bestLinked || linked == bestLinked && rows < best {
					bi, bj, best, bestLinked = i, j, rows, linked
				}
			}
		}
		on, _ := between(parts[bi], parts[bj], conds)
		conds = slices.DeleteFunc(slices.Clone(conds), func(e expr.Expr) bool { return slices.Contains(on, e) })
		left, right := parts[bi], parts[bj]
		if sizes[bj] > sizes[bi] {
			left, right = right, left // the larger side streams, the smaller one is built
		}
		parts[bi], sizes[bi] = &logical.Join{Kind: logical.JoinInner, Left: left, Right: right, On: on}, max(1, best)
		parts, sizes = slices.Delete(parts, bj, bj+1), slices.Delete(sizes, bj, bj+1)
	}
	return filtered(parts[0], conds)
}

// between returns the conditions that become checkable where a and b meet; linked says that one of them is an equality of both.
func between(a, b logical.Node, conds []expr.Expr) (on []expr.Expr, linked bool) {
	ac, bc := columnSet(a.Columns()), columnSet(b.Columns())
	both := columnSet(append(slices.Clone(a.Columns()), b.Columns()...))
	for _, cond := range conds {
		if !usesOnly(cond, both) || usesOnly(cond, ac) || usesOnly(cond, bc) {
			continue
		}
		on = append(on, cond)
		if _, _, ok := equality(cond, ac, bc); ok {
			linked = true
		}
	}
	return on, linked
}
