package planner

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// searchRowsMax is the largest LIMIT + OFFSET that is a search; above it a sort is as good.
const searchRowsMax = 1 << 20

// useVectorIndex turns a top-n by distance into a search of the table below, exact or through an index. Everything that decides whether a row may be a hit
// stays below the cut: conditions are in the scan, joins that filter become masks.
func useVectorIndex(c *Context, root logical.Node) (logical.Node, bool, error) {
	changed := false
	shown := make(map[logical.Node]*searchRewrite) // what stands in place of each rewritten top-n
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		if p, ok := n.(*logical.Project); ok && shown[p.Input] != nil {
			return shown[p.Input].reuse(p), nil
		}
		top, ok := n.(*logical.TopN)
		if !ok || len(top.Keys) == 0 || top.Count > searchRowsMax || top.Offset > searchRowsMax {
			return n, nil
		}
		s := &searchRewrite{c: c, k: top.Count + top.Offset, ties: len(top.Keys) > 1, first: top.Keys[0]}
		in, err := s.rewrite(top.Input, top.Keys[0].Expr)
		if err != nil || in == nil {
			return n, err
		}
		changed = true
		keys := slices.Clone(top.Keys)
		keys[0].Expr = s.value.Ref()
		var cut logical.Node = &logical.TopN{Input: in, Keys: keys, Count: top.Count, Offset: top.Offset}
		if len(keys) == 1 && !s.joined {
			// The search gives just these rows, nearest first, so that nothing has to hold them, and what is fetched late, before the first leaves.
			cut = &logical.Limit{Input: in, Count: top.Count, Offset: top.Offset}
		}
		out := &logical.Project{Input: cut, Exprs: passAll(top.Columns())}
		shown[out] = s
		return out, nil
	})
	return out, changed, err
}

// searchRewrite walks from a top-n down to the scan whose rows it ranks.
type searchRewrite struct {
	c     *Context
	k     uint64
	ties  bool
	first logical.SortKey
	// joined: the search is below a join, which keeps no order.
	joined bool
	value  logical.Column // the sort key's value, which every rewritten node outputs beside its own columns
	forms  []expr.Expr    // the key as each level spells it; ids mean one value in the whole plan, so each form is that value wherever it stands
}

// reuse lets a projection right above the top-n show the distance that the search has computed.
func (s *searchRewrite) reuse(p *logical.Project) logical.Node {
	cut := p.Input.Children()[0]
	out := &logical.Project{Input: cut, Exprs: slices.Clone(p.Exprs)}
	for i, e := range out.Exprs {
		out.Exprs[i].Expr = s.replace(e.Expr)
	}
	return out
}

// replace puts the computed column in place of the key wherever e has it.
func (s *searchRewrite) replace(e expr.Expr) expr.Expr {
	return expr.Transform(e, func(x expr.Expr) expr.Expr {
		if slices.ContainsFunc(s.forms, func(form expr.Expr) bool { return expr.Equal(x, form) }) {
			return s.value.Ref()
		}
		return x
	})
}

// rewrite returns n over a search in place of the scan below, nil where key, an expression over n's columns, is no distance of one scan's rows or where
// the nodes between could drop rows after the cut.
func (s *searchRewrite) rewrite(n logical.Node, key expr.Expr) (logical.Node, error) {
	s.forms = append(s.forms, key)
	switch n := n.(type) {
	case *logical.Project:
		return s.throughProject(n, key)
	case *logical.Join:
		return s.throughJoin(n, key)
	case *logical.Scan:
		return s.atScan(n, key)
	}
	return nil, nil //nolint:nilnil // nil is "no search here"
}

func (s *searchRewrite) throughProject(n *logical.Project, key expr.Expr) (logical.Node, error) {
	inner := substitute(key, definitions(n.Exprs))
	in, err := s.rewrite(n.Input, inner)
	if err != nil || in == nil {
		return nil, err
	}
	// Where the statement also shows the distance, the search has computed it already.
	out := &logical.Project{Input: in, Exprs: slices.Clone(n.Exprs)}
	for i, e := range out.Exprs {
		out.Exprs[i].Expr = s.replace(e.Expr)
	}
	out.Exprs = append(out.Exprs, passThrough(s.value))
	return out, nil
}

// throughJoin searches the side that the key is about, where no row of that side can be dropped after the cut: the other side either keeps every row, or
// filters by equalities alone and can be asked first, as a mask.
func (s *searchRewrite) throughJoin(n *logical.Join, key expr.Expr) (logical.Node, error) {
	left, right := columnSet(n.Left.Columns()), columnSet(n.Right.Columns())
	ranked, other, rankedCols, otherCols := n.Left, n.Right, left, right
	onRight := !usesOnly(key, left)
	if onRight {
		if n.Kind != logical.JoinInner || !usesOnly(key, right) {
			return nil, nil //nolint:nilnil // see rewrite
		}
		ranked, other, rankedCols, otherCols = n.Right, n.Left, right, left
	}
	switch n.Kind {
	case logical.JoinLeft, logical.JoinMark, logical.JoinSingle:
	case logical.JoinInner, logical.JoinSemi:
		if ranked = s.withMask(ranked, other, logical.JoinSemi, n.On, rankedCols, otherCols); ranked == nil {
			return nil, nil //nolint:nilnil // see rewrite
		}
	case logical.JoinAnti, logical.JoinNullAwareAnti:
		if ranked = s.withMask(ranked, other, n.Kind, n.On, rankedCols, otherCols); ranked == nil {
			return nil, nil //nolint:nilnil // see rewrite
		}
	default:
		return nil, nil //nolint:nilnil // see rewrite
	}
	in, err := s.rewrite(ranked, key)
	if err != nil || in == nil {
		return nil, err
	}
	s.joined = true
	out := *n
	if onRight {
		out.Right = in
	} else {
		out.Left = in
	}
	return &out, nil
}

// maskKeysMax is the largest other side that is worth reading twice, once for its keys and once for the join.
const maskKeysMax = 5e6

// withMask restricts the scan below ranked to the rows that have a partner in other, or have none for an anti join; nil where that cannot be said by
// equalities alone.
func (s *searchRewrite) withMask(ranked, other logical.Node, kind logical.JoinKind, on []expr.Expr, rankedCols, otherCols map[logical.ColumnID]bool) logical.Node {
	on = splitAll(on)
	if len(on) == 0 || s.c.rowsOf(other) > maskKeysMax || !repeatable(other) {
		return nil
	}
	m := joinMask{kind: kind, other: other}
	var keys []expr.Expr
	for _, cond := range on {
		a, b, ok := equality(cond, rankedCols, otherCols)
		if !ok {
			return nil
		}
		keys, m.otherKeys = append(keys, a), append(m.otherKeys, b)
	}
	return m.onScan(s.c, ranked, keys)
}

// joinMask is a join that only filters, on its way to the scan of what it filters.
type joinMask struct {
	kind      logical.JoinKind // JoinSemi, JoinAnti or JoinNullAwareAnti
	other     logical.Node
	otherKeys []expr.Expr // over other's columns
}

// repeatable says that a plan yields the same rows each time it runs: nothing random, and no cut that may fall differently among equals.
func repeatable(n logical.Node) bool {
	same := true
	logical.Walk(n, func(m logical.Node) bool {
		switch m := m.(type) {
		case *logical.Limit, *logical.TopN, *logical.Search, *logical.Window:
			same = false
		case *logical.Aggregate:
			same = same && !slices.ContainsFunc(m.Aggs, func(a logical.Agg) bool { return a.Func == logical.AggAny })
		}
		_, err := logical.MapExprs(m, func(e expr.Expr) (expr.Expr, error) {
			same = same && !expr.Volatile(e)
			return e, nil
		})
		same = same && err == nil
		return same
	})
	return same
}

// onScan adds the mask to the scan below n; nil where keys, over n's columns, are not plainly columns of it. Below a join the rows that fail may go
// early on a side whose rows it never pads with NULLs.
func (m *joinMask) onScan(c *Context, n logical.Node, keys []expr.Expr) logical.Node {
	switch n := n.(type) {
	case *logical.Project:
		inner := make([]expr.Expr, len(keys))
		for i, k := range keys {
			inner[i] = substitute(k, definitions(n.Exprs))
		}
		in := m.onScan(c, n.Input, inner)
		if in == nil {
			return nil
		}
		return &logical.Project{Input: in, Exprs: n.Exprs}
	case *logical.Join:
		out := *n
		from := func(side logical.Node) bool {
			cols := columnSet(side.Columns())
			return !slices.ContainsFunc(keys, func(k expr.Expr) bool { return !usesOnly(k, cols) })
		}
		switch {
		case n.Kind != logical.JoinFull && from(n.Left):
			out.Left = m.onScan(c, n.Left, keys)
		case n.Kind == logical.JoinInner && from(n.Right):
			out.Right = m.onScan(c, n.Right, keys)
		default:
			return nil
		}
		if out.Left == nil || out.Right == nil {
			return nil
		}
		return &out
	case *logical.Scan:
		return m.atScan(c, n, keys)
	}
	return nil
}

func (m *joinMask) atScan(c *Context, n *logical.Scan, keys []expr.Expr) logical.Node {
	if _, addressable := n.Table.(exec.Addressable); !addressable {
		return nil
	}
	mask := logical.Mask{Kind: m.kind}
	exprs := make([]logical.Named, len(keys))
	for i, k := range keys {
		col, ok := k.(*expr.Column)
		if !ok || !arrow.TypeEqual(col.T, m.otherKeys[i].Type()) {
			return nil
		}
		mask.Cols = append(mask.Cols, col.ID)
		key := logical.Column{ID: c.IDs.Next(), Name: col.Name, Type: col.T, Nullable: true}
		exprs[i] = logical.Named{Column: key, Expr: m.otherKeys[i]}
	}
	mask.Keys = &logical.Distinct{Input: &logical.Project{Input: m.other, Exprs: exprs}}
	out := *n
	out.Masks = append(slices.Clone(n.Masks), mask)
	return &out
}

// atScan makes the search and, above it, the value of the sort key.
func (s *searchRewrite) atScan(n *logical.Scan, key expr.Expr) (logical.Node, error) {
	d, ok := distanceOf(key)
	table, isVector := n.Table.(exec.VectorTable)
	if !ok || !isVector || s.first.Desc != d.desc || !d.desc && !s.first.NullsLast {
		return nil, nil //nolint:nilnil // see rewrite
	}
	source, dim := "", 0
	for _, col := range n.Cols {
		if t, ok := col.Type.(*arrow.FixedSizeListType); ok && col.ID == d.column.ID {
			source, dim = col.Source, int(t.Len())
		}
	}
	query, err := queryVector(d.query, dim, source)
	if err != nil {
		return nil, err
	}
	if source == "" || query == nil || slices.ContainsFunc(query, func(f float32) bool { return math.IsNaN(float64(f)) }) {
		return nil, nil //nolint:nilnil // every distance is NULL: a plain sort says so
	}
	search := &logical.Search{
		Scan: n, Vector: source, Metric: d.metric, Query: query, K: s.k, Ties: s.ties,
		Distance: logical.Column{ID: s.c.IDs.Next(), Name: "_distance", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	}
	if search.Spec, err = s.c.chooseMethod(search, table, int64(dim)); err != nil {
		return nil, err
	}
	value, err := d.value(search.Distance.Ref())
	if err != nil {
		return nil, err
	}
	s.value = logical.Column{ID: s.c.IDs.Next(), Name: "distance", Type: value.Type(), Nullable: true}
	return &logical.Project{Input: search, Exprs: append(passAll(n.Columns()), logical.Named{Column: s.value, Expr: value})}, nil
}
