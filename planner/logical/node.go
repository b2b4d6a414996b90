package logical

import (
	"fmt"
	"strings"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/treeprint"
)

var _ = []Node{
	(*Scan)(nil), (*Values)(nil), (*Filter)(nil), (*Project)(nil), (*Aggregate)(nil), (*Join)(nil), (*Sort)(nil), (*Limit)(nil), (*TopN)(nil),
	(*Distinct)(nil), (*Union)(nil), (*Window)(nil), (*Search)(nil), (*Fetch)(nil),
}

// Children implements Node.
func (n *Scan) Children() []Node { return nil }

// Children implements Node.
func (n *Values) Children() []Node { return nil }

// Children implements Node.
func (n *Filter) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *Project) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *Aggregate) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *Window) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *Join) Children() []Node { return []Node{n.Left, n.Right} }

// Children implements Node.
func (n *Sort) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *Limit) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *TopN) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *Distinct) Children() []Node { return []Node{n.Input} }

// Children implements Node.
func (n *Union) Children() []Node { return n.Inputs }

// Children implements Node.
func (n *Search) Children() []Node { return nil }

// Children implements Node.
func (n *Fetch) Children() []Node { return []Node{n.Input} }

// WithChildren implements Node.
func (n *Scan) WithChildren([]Node) Node { return n }

// WithChildren implements Node.
func (n *Values) WithChildren([]Node) Node { return n }

// WithChildren implements Node.
func (n *Search) WithChildren([]Node) Node { return n }

// WithChildren implements Node.
func (n *Filter) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *Project) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *Aggregate) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *Window) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *Join) WithChildren(c []Node) Node { m := *n; m.Left, m.Right = c[0], c[1]; return &m }

// WithChildren implements Node.
func (n *Sort) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *Limit) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *TopN) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *Distinct) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// WithChildren implements Node.
func (n *Union) WithChildren(c []Node) Node { m := *n; m.Inputs = c; return &m }

// WithChildren implements Node.
func (n *Fetch) WithChildren(c []Node) Node { m := *n; m.Input = c[0]; return &m }

// Transform rebuilds a plan bottom-up; f gets each node after its inputs. Unchanged parts are shared.
func Transform(n Node, f func(Node) (Node, error)) (Node, error) {
	children := n.Children()
	var changed []Node
	for i, c := range children {
		d, err := Transform(c, f)
		if err != nil {
			return nil, err
		}
		if d != c {
			if changed == nil {
				changed = append([]Node(nil), children...)
			}
			changed[i] = d
		}
	}
	if changed != nil {
		n = n.WithChildren(changed)
	}
	return f(n)
}

// Walk calls f for every node, parents first, and skips the inputs of nodes where it returns false.
func Walk(n Node, f func(Node) bool) {
	if f(n) {
		for _, c := range n.Children() {
			Walk(c, f)
		}
	}
}

// Format prints a plan, one node a line, inputs indented.
func Format(n Node) string {
	return treeprint.Format(n, func(n Node) (string, []Node) { return n.Describe().String(), n.Children() })
}

func joinExprs(es []expr.Expr, sep string) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.String()
	}
	return strings.Join(parts, sep)
}

func namedText(es []Named) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.Expr.String()
		if c, ok := e.Expr.(*expr.Column); !ok || c.Name != e.Name {
			parts[i] += " AS " + e.Name
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// KeysText prints sort keys.
func KeysText(keys []SortKey) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k.Expr.String()
		if k.Desc {
			parts[i] += " DESC"
		}
		if k.NullsLast && !k.Desc {
			parts[i] += " NULLS LAST"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func limitProps(count, offset uint64) []exec.Prop {
	var out []exec.Prop
	if count != NoLimit {
		out = append(out, exec.Prop{Key: "k", Value: fmt.Sprint(count)})
	}
	if offset > 0 {
		out = append(out, exec.Prop{Key: "offset", Value: fmt.Sprint(offset)})
	}
	return out
}

func scanNames(cols []ScanColumn) string {
	var names []string
	for _, c := range cols {
		if !c.FilterOnly {
			names = append(names, c.Source)
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// Describe implements Node.
func (n *Scan) Describe() exec.Description {
	d := exec.Description{Name: "Scan", Props: []exec.Prop{{Key: "table", Value: n.Table.Ref().String()}, {Key: "columns", Value: scanNames(n.Cols)}}}
	if len(n.Filter) > 0 {
		d.Props = append(d.Props, exec.Prop{Key: "filter", Value: joinExprs(n.Filter, " AND ")})
	}
	d.Props = append(d.Props, maskProps(n)...)
	if n.RowAddr != nil {
		d.Props = append(d.Props, exec.Prop{Key: "row_addr", Value: "yes"})
	}
	return d
}

// maskProps says of each mask which column is looked up in rows of which tables.
func maskProps(n *Scan) []exec.Prop {
	var out []exec.Prop
	for _, m := range n.Masks {
		names := make([]string, len(m.Cols))
		for i, id := range m.Cols {
			for _, c := range n.Cols {
				if c.ID == id {
					names[i] = c.Name
				}
			}
		}
		name := strings.Join(names, ", ")
		if len(names) > 1 {
			name = "(" + name + ")"
		}
		if m.Kind != JoinSemi {
			name += " not"
		}
		var tables []string
		Walk(m.Keys, func(k Node) bool {
			if s, ok := k.(*Scan); ok {
				tables = append(tables, s.Table.Ref().String())
			}
			return true
		})
		out = append(out, exec.Prop{Key: "mask", Value: name + " in keys of " + strings.Join(tables, ", ")})
	}
	return out
}

// Describe implements Node.
func (n *Values) Describe() exec.Description {
	return exec.Description{Name: "Values", Props: []exec.Prop{{Key: "rows", Value: fmt.Sprint(len(n.Rows))}}}
}

// Describe implements Node.
func (n *Filter) Describe() exec.Description {
	return exec.Description{Name: "Filter", Props: []exec.Prop{{Key: "where", Value: joinExprs(n.Conds, " AND ")}}}
}

// Describe implements Node.
func (n *Project) Describe() exec.Description {
	return exec.Description{Name: "Project", Props: []exec.Prop{{Key: "columns", Value: namedText(n.Exprs)}}}
}

// Describe implements Node.
func (n *Aggregate) Describe() exec.Description {
	aggs := make([]string, len(n.Aggs))
	for i, a := range n.Aggs {
		aggs[i] = a.String()
	}
	d := exec.Description{Name: "Aggregate", Props: []exec.Prop{{Key: "keys", Value: namedText(n.Keys)}, {Key: "aggregates", Value: "[" + strings.Join(aggs, ", ") + "]"}}}
	if n.Rollup != nil {
		d.Props = append(d.Props, exec.Prop{Key: "rollup", Value: "yes"})
	}
	return d
}

// Describe implements Node.
func (n *Window) Describe() exec.Description {
	funcs := make([]string, len(n.Funcs))
	for i, f := range n.Funcs {
		funcs[i] = f.String()
	}
	d := exec.Description{Name: "Window", Props: []exec.Prop{
		{Key: "partition", Value: "[" + joinExprs(n.Partition, ", ") + "]"}, {Key: "order", Value: KeysText(n.Order)}, {Key: "functions", Value: "[" + strings.Join(funcs, ", ") + "]"},
	}}
	if n.Limit != nil {
		d.Props = append(d.Props, exec.Prop{Key: "top", Value: fmt.Sprintf("%s <= %d", n.Limit.By, n.Limit.K)})
	}
	return d
}

func (f WindowFunc) String() string {
	return exec.WindowSpec{Func: f.Func, Agg: exec.AggFunc(f.Agg), Args: f.Args, N: f.N, Frame: f.Frame}.String()
}

func (a Agg) String() string {
	return exec.AggSpec{Func: exec.AggFunc(a.Func), Args: a.Args, Distinct: a.Distinct, Concat: a.Concat}.String()
}

// Describe implements Node.
func (n *Join) Describe() exec.Description {
	d := exec.Description{Name: "Join", Props: []exec.Prop{{Key: "kind", Value: string(n.Kind)}}}
	if len(n.On) > 0 {
		d.Props = append(d.Props, exec.Prop{Key: "on", Value: joinExprs(n.On, " AND ")})
	}
	return d
}

// Describe implements Node.
func (n *Sort) Describe() exec.Description {
	return exec.Description{Name: "Sort", Props: []exec.Prop{{Key: "keys", Value: KeysText(n.Keys)}}}
}

// Describe implements Node.
func (n *Limit) Describe() exec.Description {
	return exec.Description{Name: "Limit", Props: limitProps(n.Count, n.Offset)}
}

// Describe implements Node.
func (n *TopN) Describe() exec.Description {
	return exec.Description{Name: "TopN", Props: append([]exec.Prop{{Key: "keys", Value: KeysText(n.Keys)}}, limitProps(n.Count, n.Offset)...)}
}

// Describe implements Node.
func (n *Distinct) Describe() exec.Description { return exec.Description{Name: "Distinct"} }

// Describe implements Node.
func (n *Union) Describe() exec.Description { return exec.Description{Name: "Union"} }

// Describe implements Node.
func (n *Search) Describe() exec.Description {
	d := exec.Description{Name: "Search", Props: []exec.Prop{
		{Key: "table", Value: n.Scan.Table.Ref().String()}, {Key: "column", Value: n.Vector}, {Key: "metric", Value: string(n.Metric)}, {Key: "k", Value: fmt.Sprint(n.K)},
		{Key: "method", Value: n.Spec.Method()}, {Key: "columns", Value: scanNames(n.Scan.Cols)},
	}}
	if len(n.Scan.Filter) > 0 {
		d.Props = append(d.Props, exec.Prop{Key: "candidates", Value: joinExprs(n.Scan.Filter, " AND ")})
	}
	d.Props = append(d.Props, maskProps(n.Scan)...)
	return d
}

// Method is the search method in words.
func (s SearchSpec) Method() string {
	if s.Index == "" {
		return "exact (" + s.Reason + ")"
	}
	return fmt.Sprintf("%s index %s (%s)", s.Kind, s.Index, s.Reason)
}

// Describe implements Node.
func (n *Fetch) Describe() exec.Description {
	return exec.Description{Name: "Fetch", Props: []exec.Prop{{Key: "table", Value: n.Table.Ref().String()}, {Key: "columns", Value: scanNames(n.Cols)}}}
}
