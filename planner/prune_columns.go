package planner

import (
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// pruneColumns drops what nobody above reads: scan columns, projections, aggregates. Columns that only a scan's own filter reads are marked FilterOnly.
func pruneColumns(_ *Context, root logical.Node) (logical.Node, bool, error) {
	out := prune(root, columnSet(root.Columns()))
	if err := sameColumns(root, out); err != nil { // inputs may hand on more than was asked for
		out = &logical.Project{Input: out, Exprs: passAll(root.Columns())}
	}
	return out, true, nil
}

type idSet = map[logical.ColumnID]bool

func with(need idSet, es ...expr.Expr) idSet {
	out := make(idSet, len(need)+4)
	for id := range need {
		out[id] = true
	}
	for _, id := range expr.Columns(es...) {
		out[id] = true
	}
	return out
}

// prune returns n outputting at least the columns in need.
func prune(n logical.Node, need idSet) logical.Node {
	switch n := n.(type) {
	case *logical.Scan:
		return pruneScan(n, need)
	case *logical.Search:
		m := *n
		m.Scan = pruneScan(n.Scan, need)
		return &m
	case *logical.Filter:
		return &logical.Filter{Input: prune(n.Input, with(need, n.Conds...)), Conds: n.Conds}
	case *logical.Project:
		return pruneProject(n, need)
	case *logical.Aggregate:
		return pruneAggregate(n, need)
	case *logical.Window:
		return pruneWindow(n, need)
	case *logical.Join:
		m := *n
		below := with(need, n.On...)
		m.Left, m.Right = prune(n.Left, below), prune(n.Right, below)
		return &m
	case *logical.Sort:
		return &logical.Sort{Input: prune(n.Input, with(need, keyExprs(n.Keys)...)), Keys: n.Keys}
	case *logical.TopN:
		return &logical.TopN{Input: prune(n.Input, with(need, keyExprs(n.Keys)...)), Keys: n.Keys, Count: n.Count, Offset: n.Offset}
	case *logical.Limit:
		return &logical.Limit{Input: prune(n.Input, need), Count: n.Count, Offset: n.Offset}
	case *logical.Distinct: // every column decides what is a duplicate
		return &logical.Distinct{Input: exact(prune(n.Input, columnSet(n.Input.Columns())), n.Input.Columns())}
	case *logical.Union:
		return pruneUnion(n, need)
	case *logical.Fetch:
		m := *n
		m.Cols = nil
		for _, col := range n.Cols {
			if need[col.ID] {
				m.Cols = append(m.Cols, col)
			}
		}
		below := with(need)
		below[n.Addr] = true
		m.Input = prune(n.Input, below)
		if len(m.Cols) == 0 {
			return m.Input
		}
		return &m
	}
	return n
}

// pruneUnion drops columns from all inputs, which go by position. One stays, so that rows keep a place.
func pruneUnion(n *logical.Union, need idSet) logical.Node {
	var kept []int
	for i, col := range n.Cols {
		if need[col.ID] {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		kept = []int{0}
	}
	pick := func(cols []logical.Column) []logical.Column {
		out := make([]logical.Column, len(kept))
		for i, at := range kept {
			out[i] = cols[at]
		}
		return out
	}
	m := &logical.Union{Inputs: make([]logical.Node, len(n.Inputs)), Cols: pick(n.Cols)}
	for i, in := range n.Inputs {
		cols := pick(in.Columns())
		m.Inputs[i] = exact(prune(in, columnSet(cols)), cols)
	}
	return m
}

// exact makes n output precisely cols.
func exact(n logical.Node, cols []logical.Column) logical.Node {
	have := n.Columns()
	same := len(have) == len(cols)
	for i := 0; same && i < len(cols); i++ {
		same = have[i].ID == cols[i].ID
	}
	if same {
		return n
	}
	return &logical.Project{Input: n, Exprs: passAll(cols)}
}

func keyExprs(keys []logical.SortKey) []expr.Expr {
	out := make([]expr.Expr, len(keys))
	for i, k := range keys {
		out[i] = k.Expr
	}
	return out
}

func pruneScan(n *logical.Scan, need idSet) *logical.Scan {
	filter := with(nil, n.Filter...)
	for _, m := range n.Masks {
		for _, id := range m.Cols {
			filter[id] = true
		}
	}
	m := *n
	m.Cols = nil
	for _, col := range n.Cols {
		if need[col.ID] {
			col.FilterOnly = false
			m.Cols = append(m.Cols, col)
		} else if filter[col.ID] {
			col.FilterOnly = true
			m.Cols = append(m.Cols, col)
		}
	}
	m.Masks = make([]logical.Mask, len(n.Masks))
	for i, mask := range n.Masks {
		m.Masks[i] = logical.Mask{Cols: mask.Cols, Kind: mask.Kind, Keys: exact(prune(mask.Keys, columnSet(mask.Keys.Columns())), mask.Keys.Columns())}
	}
	if n.RowAddr != nil && !need[n.RowAddr.ID] {
		m.RowAddr = nil
	}
	return &m
}

func pruneProject(n *logical.Project, need idSet) logical.Node {
	var kept []logical.Named
	var used []expr.Expr
	for _, e := range n.Exprs {
		if need[e.ID] {
			kept = append(kept, e)
			used = append(used, e.Expr)
		}
	}
	in := prune(n.Input, with(nil, used...))
	// A projection of a projection is one.
	if p, ok := in.(*logical.Project); ok && cheapBelow(p, used) {
		defs := definitions(p.Exprs)
		for i, e := range kept {
			kept[i].Expr = substitute(e.Expr, defs)
		}
		in = p.Input
	}
	if same := exact(in, namedColumns(kept)); same == in && allPass(kept) {
		return in
	}
	return &logical.Project{Input: in, Exprs: kept}
}

func namedColumns(es []logical.Named) []logical.Column {
	out := make([]logical.Column, len(es))
	for i, e := range es {
		out[i] = e.Column
	}
	return out
}

// allPass says that every column is handed on under its own id.
func allPass(es []logical.Named) bool {
	for _, e := range es {
		if col, ok := e.Expr.(*expr.Column); !ok || col.ID != e.ID {
			return false
		}
	}
	return true
}

// cheapBelow says that merging does not compute a costly expression twice: each computed column of p is used at most once above.
func cheapBelow(p *logical.Project, above []expr.Expr) bool {
	uses := make(map[logical.ColumnID]int)
	for _, e := range above {
		expr.Walk(e, func(n expr.Expr) bool {
			if c, ok := n.(*expr.Column); ok {
				uses[c.ID]++
			}
			return true
		})
	}
	for _, e := range p.Exprs {
		if _, plain := e.Expr.(*expr.Column); !plain && uses[e.ID] > 1 {
			return false
		}
	}
	return true
}

func pruneAggregate(n *logical.Aggregate, need idSet) logical.Node {
	m := *n
	m.Aggs = nil
	var used []expr.Expr
	for _, a := range n.Aggs {
		// One aggregate stays, so that an aggregate without keys still yields its row.
		if need[a.ID] {
			m.Aggs = append(m.Aggs, a)
			used = append(used, a.Args...)
		}
	}
	if len(m.Aggs) == 0 && len(n.Keys) == 0 && len(n.Aggs) > 0 {
		m.Aggs = n.Aggs[:1]
		used = append(used, n.Aggs[0].Args...)
	}
	for _, k := range n.Keys {
		used = append(used, k.Expr)
	}
	m.Input = prune(n.Input, with(nil, used...))
	return &m
}

// pruneWindow drops functions that nobody reads and hides the columns that only the window reads.
func pruneWindow(n *logical.Window, need idSet) logical.Node {
	m := *n
	m.Funcs = nil
	for _, f := range n.Funcs {
		if need[f.ID] {
			m.Funcs = append(m.Funcs, f)
		}
	}
	if len(m.Funcs) == 0 && n.Limit == nil {
		return prune(n.Input, need)
	}
	m.Input = prune(n.Input, with(need, m.Exprs()...))
	m.Hidden = nil
	for _, col := range m.Input.Columns() {
		if !need[col.ID] {
			m.Hidden = append(m.Hidden, col.ID)
		}
	}
	return &m
}
