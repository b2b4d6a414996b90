package logical

import "github.com/lakesql/lakesql/exec/expr"

// MapExprs returns n with every expression of its own replaced by f's result; n itself where nothing changed.
func MapExprs(n Node, f func(expr.Expr) (expr.Expr, error)) (Node, error) {
	m := exprMapper{f: f}
	var out Node
	switch n := n.(type) {
	case *Scan:
		c := *n
		c.Filter = m.list(n.Filter)
		out = &c
	case *Values:
		c := *n
		c.Rows = make([][]expr.Expr, len(n.Rows))
		for i, row := range n.Rows {
			c.Rows[i] = m.list(row)
		}
		out = &c
	case *Filter:
		out = &Filter{Input: n.Input, Conds: m.list(n.Conds)}
	case *Project:
		out = &Project{Input: n.Input, Exprs: m.named(n.Exprs)}
	case *Aggregate:
		c := *n
		c.Keys = m.named(n.Keys)
		c.Aggs = make([]Agg, len(n.Aggs))
		for i, a := range n.Aggs {
			a.Args = m.list(a.Args)
			c.Aggs[i] = a
		}
		out = &c
	case *Window:
		out = m.window(n)
	case *Join:
		c := *n
		c.On = m.list(n.On)
		out = &c
	case *Sort:
		out = &Sort{Input: n.Input, Keys: m.keys(n.Keys)}
	case *TopN:
		c := *n
		c.Keys = m.keys(n.Keys)
		out = &c
	default:
		return n, nil
	}
	if m.err != nil || !m.changed {
		return n, m.err
	}
	return out, nil
}

type exprMapper struct {
	f       func(expr.Expr) (expr.Expr, error)
	changed bool
	err     error
}

func (m *exprMapper) one(e expr.Expr) expr.Expr {
	if m.err != nil {
		return e
	}
	out, err := m.f(e)
	if err != nil {
		m.err = err
		return e
	}
	m.changed = m.changed || out != e
	return out
}

func (m *exprMapper) list(es []expr.Expr) []expr.Expr {
	if es == nil {
		return nil
	}
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		out[i] = m.one(e)
	}
	return out
}

func (m *exprMapper) named(es []Named) []Named {
	out := make([]Named, len(es))
	for i, e := range es {
		out[i] = Named{Column: e.Column, Expr: m.one(e.Expr)}
	}
	return out
}

func (m *exprMapper) keys(ks []SortKey) []SortKey {
	out := make([]SortKey, len(ks))
	for i, k := range ks {
		out[i] = SortKey{Expr: m.one(k.Expr), Desc: k.Desc, NullsLast: k.NullsLast}
	}
	return out
}

func (m *exprMapper) window(n *Window) *Window {
	c := *n
	c.Partition, c.Order = m.list(n.Partition), m.keys(n.Order)
	c.Funcs = make([]WindowFunc, len(n.Funcs))
	for i, f := range n.Funcs {
		f.Args = m.list(f.Args)
		for _, e := range []*expr.Expr{&f.Frame.Key, &f.Frame.Start.Value, &f.Frame.End.Value} {
			if *e != nil {
				*e = m.one(*e)
			}
		}
		c.Funcs[i] = f
	}
	return &c
}
