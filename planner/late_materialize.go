package planner

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// lateMaterialize decides, for each search and top-n over one table, whether the columns that ranking and filters do not need are read after the cut.
func lateMaterialize(c *Context, root logical.Node) (logical.Node, bool, error) {
	changed := false
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		switch n := n.(type) {
		case *logical.Search:
			changed = true
			return c.searchReads(n), nil
		case *logical.TopN:
			m, err := c.lateTopN(n)
			if err != nil || m == nil {
				return n, err
			}
			changed = true
			return m, nil
		}
		return n, nil
	})
	return out, changed, err
}

// searchReads sets whether a search's tasks read the output columns for their local hits.
func (c *Context) searchReads(n *logical.Search) logical.Node {
	tasks := 1.0
	if table, ok := n.Scan.Table.(exec.VectorTable); ok {
		tasks = float64(max(1, len(table.FragmentIDs())))
		for _, i := range table.Indexes() {
			if i.Name == n.Spec.Index {
				tasks = float64(i.Segments)
			}
		}
	}
	survivors := min(float64(n.K), c.scanRows(n.Scan))
	m := *n
	d := c.chooseLate(survivors*tasks, survivors, true, n.Scan.Table, outputSources(n.Scan), isRemote(n.Scan.Table))
	m.Spec.Early, m.Spec.LateReason = !d.Late, d.Reason
	return &m
}

func outputSources(n *logical.Scan) []string {
	var out []string
	for _, col := range n.Cols {
		if !col.FilterOnly {
			out = append(out, col.Source)
		}
	}
	return out
}

// isRemote says that the table's reads cross a network.
func isRemote(t exec.Table) bool {
	r, ok := t.(interface{ IsRemote() bool })
	return ok && r.IsRemote()
}

// lateTopN rewrites TopN over a projected scan to TopN over a narrow scan with row addresses, then Fetch; nil where no column can wait or early is better.
func (c *Context) lateTopN(top *logical.TopN) (logical.Node, error) {
	exprs := passAll(top.Input.Columns())
	in := top.Input
	for {
		p, ok := in.(*logical.Project)
		if !ok {
			break
		}
		defs := definitions(p.Exprs)
		for i := range exprs {
			exprs[i].Expr = substitute(exprs[i].Expr, defs)
		}
		in = p.Input
	}
	scan, ok := in.(*logical.Scan)
	if !ok {
		return nil, nil //nolint:nilnil // nil is "as it is"
	}
	if _, ok := scan.Table.(exec.Addressable); !ok || scan.RowAddr != nil {
		return nil, nil //nolint:nilnil // see above
	}
	for _, e := range exprs {
		if expr.Volatile(e.Expr) {
			return nil, nil //nolint:nilnil // a value that is sorted by cannot be computed again for the result
		}
	}
	defs := definitions(exprs)
	keys := make([]logical.SortKey, len(top.Keys))
	var needed []expr.Expr
	for i, k := range top.Keys {
		keys[i] = logical.SortKey{Expr: substitute(k.Expr, defs), Desc: k.Desc, NullsLast: k.NullsLast}
		needed = append(needed, keys[i].Expr)
	}
	early, late := splitScan(scan, exprs, needed)
	if len(late) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	sources := make([]string, len(late))
	for i, col := range late {
		sources[i] = col.Source
	}
	d := c.chooseLate(c.scanRows(scan), float64(top.Count+top.Offset), false, scan.Table, sources, isRemote(scan.Table))
	if !d.Late {
		return nil, nil //nolint:nilnil // see above
	}
	narrow := *scan
	narrow.Cols = early
	narrow.RowAddr = &logical.Column{ID: c.IDs.Next(), Name: exec.RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64}
	cut := &logical.TopN{Input: &narrow, Keys: keys, Count: top.Count, Offset: top.Offset}
	fetch := &logical.Fetch{Input: cut, Table: scan.Table, Alias: scan.Alias, Addr: narrow.RowAddr.ID, Cols: late, Reason: d.Reason}
	return &logical.Project{Input: fetch, Exprs: exprs}, nil
}

// splitScan parts the scan's columns into those that keys and filters need and those that only the output needs; columns that nobody needs are in neither.
func splitScan(scan *logical.Scan, output []logical.Named, keys []expr.Expr) (early, late []logical.ScanColumn) {
	first := make(map[logical.ColumnID]bool)
	for _, id := range expr.Columns(append(append([]expr.Expr(nil), keys...), scan.Filter...)...) {
		first[id] = true
	}
	for _, m := range scan.Masks {
		for _, id := range m.Cols {
			first[id] = true
		}
	}
	used := make(map[logical.ColumnID]bool)
	for _, e := range output {
		for _, id := range expr.Columns(e.Expr) {
			used[id] = true
		}
	}
	for _, col := range scan.Cols {
		switch {
		case first[col.ID]:
			early = append(early, col)
		case used[col.ID]:
			late = append(late, col)
		}
	}
	return early, late
}
