package planner

import (
	"slices"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// pushFilter moves conditions as close to the tables as they can go, into scans where possible.
func pushFilter(c *Context, root logical.Node) (logical.Node, bool, error) {
	out, err := push(c, root, nil)
	return out, out != root, err
}

// push returns n filtered by conds. Conditions that draw a new value for every row stay where they are.
func push(c *Context, n logical.Node, conds []expr.Expr) (logical.Node, error) {
	if f, ok := n.(*logical.Filter); ok {
		return push(c, f.Input, append(slices.Clone(conds), splitAll(f.Conds)...))
	}
	conds, fixed := partition(conds, func(e expr.Expr) bool { return !expr.Volatile(e) })
	out, err := pushInto(c, n, conds)
	if err != nil {
		return nil, err
	}
	return filtered(out, fixed), nil
}

func partition(es []expr.Expr, keep func(expr.Expr) bool) (yes, no []expr.Expr) {
	for _, e := range es {
		if keep(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	return yes, no
}

func pushInto(c *Context, n logical.Node, conds []expr.Expr) (logical.Node, error) {
	switch n := n.(type) {
	case *logical.Project:
		defs := definitions(n.Exprs)
		var inner, above []expr.Expr
		for _, cond := range conds {
			if below := substitute(cond, defs); expr.Volatile(below) {
				above = append(above, cond) // about the very value that is shown
			} else {
				inner = append(inner, below)
			}
		}
		in, err := push(c, n.Input, inner)
		if err != nil {
			return nil, err
		}
		return filtered(&logical.Project{Input: in, Exprs: n.Exprs}, above), nil
	case *logical.Join:
		return pushJoin(c, n, conds)
	case *logical.Aggregate:
		return pushAggregate(c, n, conds)
	case *logical.Window:
		return pushWindow(c, n, conds)
	case *logical.Sort:
		in, err := push(c, n.Input, conds)
		if err != nil {
			return nil, err
		}
		return &logical.Sort{Input: in, Keys: n.Keys}, nil
	case *logical.Distinct:
		in, err := push(c, n.Input, conds)
		if err != nil {
			return nil, err
		}
		return &logical.Distinct{Input: in}, nil
	case *logical.Union:
		return pushUnion(c, n, conds)
	case *logical.Scan:
		m := *n
		m.Filter = append(slices.Clone(n.Filter), conds...)
		return &m, nil
	default: // limits keep their rows, values have no place for a condition
		children := slices.Clone(n.Children())
		for i, child := range children {
			in, err := push(c, child, nil)
			if err != nil {
				return nil, err
			}
			children[i] = in
		}
		return filtered(n.WithChildren(children), conds), nil
	}
}

func filtered(n logical.Node, conds []expr.Expr) logical.Node {
	if len(conds) == 0 {
		return n
	}
	return &logical.Filter{Input: n, Conds: conds}
}

func splitAll(conds []expr.Expr) []expr.Expr {
	var out []expr.Expr
	for _, c := range conds {
		out = append(out, expr.Conjuncts(c)...)
	}
	return out
}

func pushAggregate(c *Context, n *logical.Aggregate, conds []expr.Expr) (logical.Node, error) {
	keys := columnSet(logicalKeys(n.Keys))
	defs := definitions(n.Keys)
	var below, above []expr.Expr
	for _, cond := range conds {
		// Without keys the one output row exists whatever the input, so nothing may move below; keys that are rolled up are not what they are below.
		if inner := substitute(cond, defs); len(n.Keys) > 0 && n.Rollup == nil && usesOnly(cond, keys) && !expr.Volatile(inner) {
			below = append(below, inner)
		} else {
			above = append(above, cond)
		}
	}
	in, err := push(c, n.Input, below)
	if err != nil {
		return nil, err
	}
	return filtered(n.WithChildren([]logical.Node{in}), above), nil
}

// pushWindow moves conditions over the partition keys below: they keep or drop whole partitions.
func pushWindow(c *Context, n *logical.Window, conds []expr.Expr) (logical.Node, error) {
	keys := make(map[logical.ColumnID]bool)
	for _, e := range n.Partition {
		if col, ok := e.(*expr.Column); ok {
			keys[col.ID] = true
		}
	}
	below, above := partition(conds, func(e expr.Expr) bool { return n.Limit == nil && len(expr.Columns(e)) > 0 && usesOnly(e, keys) })
	in, err := push(c, n.Input, below)
	if err != nil {
		return nil, err
	}
	return filtered(n.WithChildren([]logical.Node{in}), above), nil
}

func logicalKeys(keys []logical.Named) []logical.Column {
	out := make([]logical.Column, len(keys))
	for i, k := range keys {
		out[i] = k.Column
	}
	return out
}

func pushUnion(c *Context, n *logical.Union, conds []expr.Expr) (logical.Node, error) {
	inputs := make([]logical.Node, len(n.Inputs))
	for i, in := range n.Inputs {
		defs := make(map[logical.ColumnID]expr.Expr, len(n.Cols))
		for j, col := range in.Columns() {
			defs[n.Cols[j].ID] = col.Ref()
		}
		inner := make([]expr.Expr, len(conds))
		for j, cond := range conds {
			inner[j] = substitute(cond, defs)
		}
		var err error
		if inputs[i], err = push(c, in, inner); err != nil {
			return nil, err
		}
	}
	return &logical.Union{Inputs: inputs, Cols: n.Cols}, nil
}

func pushJoin(c *Context, n *logical.Join, conds []expr.Expr) (logical.Node, error) {
	left, right := columnSet(n.Left.Columns()), columnSet(n.Right.Columns())
	kind := n.Kind
	if kind == logical.JoinLeft && slices.ContainsFunc(conds, func(e expr.Expr) bool { return rejectsNull(e, right) }) {
		kind = logical.JoinInner // rows padded with NULLs would not pass anyway
	}
	var toLeft, toRight, on, above []expr.Expr
	for _, cond := range conds {
		switch {
		case usesOnly(cond, left) && kind != logical.JoinFull:
			toLeft = append(toLeft, cond)
		case usesOnly(cond, right) && kind == logical.JoinInner:
			toRight = append(toRight, cond)
		case kind == logical.JoinInner:
			on = append(on, cond)
		default:
			above = append(above, cond)
		}
	}
	for _, cond := range splitAll(n.On) {
		switch {
		case expr.Volatile(cond):
			on = append(on, cond)
		case usesOnly(cond, left) && (kind == logical.JoinInner || kind == logical.JoinSemi):
			toLeft = append(toLeft, cond)
		case usesOnly(cond, right) && rightFilters(kind):
			toRight = append(toRight, cond)
		default:
			on = append(on, cond)
		}
	}
	if kind == logical.JoinInner {
		on = append(on, orFactors(on)...)
	}
	l, err := push(c, n.Left, toLeft)
	if err != nil {
		return nil, err
	}
	r, err := push(c, n.Right, toRight)
	if err != nil {
		return nil, err
	}
	return filtered(&logical.Join{Kind: kind, Left: l, Right: r, On: on, Mark: n.Mark}, above), nil
}

// rightFilters says that an ON condition over the right side alone may filter the right input first.
func rightFilters(k logical.JoinKind) bool {
	switch k {
	case logical.JoinInner, logical.JoinLeft, logical.JoinSemi, logical.JoinAnti:
		return true
	}
	return false // NOT IN and marks must still see the right side's NULLs; full keeps unmatched right rows
}

// rejectsNull says that cond is never TRUE where all columns of cols are NULL: a comparison whose one side is such a column, or the test that one IS NOT NULL.
func rejectsNull(cond expr.Expr, cols map[logical.ColumnID]bool) bool {
	call, ok := cond.(*expr.Call)
	if !ok {
		return false
	}
	compared := 0 // how many of the arguments make the answer NULL by being NULL
	switch call.Func {
	case "=", "<", "<=", ">", ">=", "<>", "like":
		compared = 2
	case "in", "is_not_null": // a NULL in the list of IN only turns FALSE into NULL
		compared = 1
	}
	for _, a := range call.Args[:min(compared, len(call.Args))] {
		if col, ok := a.(*expr.Column); ok && cols[col.ID] {
			return true
		}
	}
	return false
}

// orFactors finds equalities that every branch of an OR has, so that a join hidden in (a=b AND x) OR (a=b AND y) is seen.
func orFactors(on []expr.Expr) []expr.Expr {
	var out []expr.Expr
	for _, cond := range on {
		call, ok := cond.(*expr.Call)
		if !ok || call.Func != "or" {
			continue
		}
		branches := disjuncts(call)
		for _, part := range expr.Conjuncts(branches[0]) {
			common := true
			for _, b := range branches[1:] {
				if !slices.ContainsFunc(expr.Conjuncts(b), func(e expr.Expr) bool { return expr.Equal(e, part) }) {
					common = false
					break
				}
			}
			if eq, ok := part.(*expr.Call); common && ok && eq.Func == "=" {
				out = append(out, part)
			}
		}
	}
	return out
}

func disjuncts(e expr.Expr) []expr.Expr {
	if c, ok := e.(*expr.Call); ok && c.Func == "or" {
		var out []expr.Expr
		for _, a := range c.Args {
			out = append(out, disjuncts(a)...)
		}
		return out
	}
	return []expr.Expr{e}
}
