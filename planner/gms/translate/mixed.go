package translate

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// mixed replaces the largest parts of a statement that translate, where no type above changes (I3), by leaves; the rest runs row by row. It refuses
// what the row engine is known to answer wrongly.
type mixed struct {
	ctx  *sql.Context
	req  *Request
	used map[sql.ColumnId]bool // columns that any expression of the statement reads
}

func (m *mixed) rewrite(root sql.Node) (sql.Node, error) {
	m.used = make(map[sql.ColumnId]bool)
	m.collect(root)
	out, err := m.replace(root, nil)
	if err != nil {
		return nil, err
	}
	return out, m.refuse(out)
}

// collect gathers the ids of all columns that expressions read, subqueries included.
func (m *mixed) collect(n sql.Node) {
	if e, ok := n.(sql.Expressioner); ok {
		for _, x := range e.Expressions() {
			sql.Inspect(x, func(x sql.Expression) bool {
				switch x := x.(type) {
				case *expression.GetField:
					m.used[x.Id()] = true
				case *plan.Subquery:
					m.collect(x.Query)
				case *plan.ExistsSubquery:
					m.collect(x.Query.Query)
				}
				return true
			})
		}
	}
	for _, c := range n.Children() {
		m.collect(c)
	}
}

func (m *mixed) replace(n, parent sql.Node) (sql.Node, error) {
	if parent != nil && worthLeaf(n) {
		leaf, err := m.leaf(n, parent)
		if err == nil {
			return leaf, nil
		}
		if !isUnsupported(err) {
			return nil, err
		}
	}
	if describesTable(n) {
		return n, nil
	}
	children := n.Children()
	if j, ok := n.(*plan.JoinNode); ok && j.Op.IsLateral() {
		children = children[:1]
	}
	var changed []sql.Node
	for i, c := range children {
		d, err := m.replace(c, n)
		if err != nil {
			return nil, err
		}
		if d != c {
			if changed == nil {
				changed = append([]sql.Node(nil), n.Children()...)
			}
			changed[i] = d
		}
	}
	if changed == nil {
		return n, nil
	}
	return n.WithChildren(changed...)
}

// describesTable says that a node tells of the table below it and does not read it.
func describesTable(n sql.Node) bool {
	switch n.(type) {
	case *plan.ShowColumns, *plan.ShowCreateTable, *plan.ShowIndexes:
		return true
	}
	return false
}

// worthLeaf says that a node does work that a leaf would take over.
func worthLeaf(n sql.Node) bool {
	switch n.(type) {
	case *plan.Filter, *plan.JoinNode, *plan.GroupBy, *plan.Project, *plan.Sort, *plan.Limit, *plan.Offset, *plan.Distinct, *plan.Having, *plan.SetOp,
		*plan.TableAlias, *plan.ResolvedTable:
		return true
	}
	return false
}

// leaf translates one part. Its columns keep their ids, names and types.
func (m *mixed) leaf(n, parent sql.Node) (sql.Node, error) {
	t := newTranslator(m.ctx, m.req)
	r, err := t.relation(n, nil)
	if err != nil {
		return nil, err
	}
	schema := n.Schema()
	if len(schema) != len(r.out) || len(schema) == 0 {
		return nil, unsupported("a part whose columns changed")
	}
	for i, c := range schema {
		if !provider.TypeOf(r.out[i].col.Type).Equals(c.Type) && c.Type != types.Null {
			return nil, unsupported("a part whose types differ")
		}
	}
	if mayPrune(parent) {
		r, schema = m.prune(r, schema)
	}
	r = t.distinctIDs(r)
	node, err := newNode(m.ctx, m.req, t.ids, r)
	if err != nil {
		return nil, err
	}
	node.schema = schema
	node.partial = true
	for i, o := range r.out {
		node.fields = append(node.fields, expression.NewGetFieldWithTable(int(o.id), 0, schema[i].Type, schema[i].DatabaseSource, schema[i].Source, schema[i].Name, schema[i].Nullable))
	}
	return node, nil
}

// mayPrune says that the parent names every column that it reads.
func mayPrune(parent sql.Node) bool {
	switch parent.(type) {
	case *plan.Project, *plan.GroupBy, *plan.Window:
		return true
	}
	return false
}

// prune drops columns that nothing reads; one always stays.
func (m *mixed) prune(r *relation, schema sql.Schema) (*relation, sql.Schema) {
	var out []output
	var kept sql.Schema
	for i, o := range r.out {
		if o.id == 0 || m.used[o.id] {
			out, kept = append(out, o), append(kept, schema[i])
		}
	}
	if len(out) == 0 {
		out, kept = r.out[:1], schema[:1]
	}
	cols := make([]logical.Named, len(out))
	for i, o := range out {
		cols[i] = logical.Named{Column: o.col, Expr: o.col.Ref()}
	}
	return &relation{node: &logical.Project{Input: r.node, Exprs: cols}, out: out}, kept
}

// refuse finds what the row engine answers wrongly; what our own leaves do is not looked at.
func (m *mixed) refuse(n sql.Node) error {
	if _, ours := n.(*Node); ours {
		return nil
	}
	if e, ok := n.(sql.Expressioner); ok {
		for _, x := range e.Expressions() {
			var bad error
			sql.Inspect(x, func(x sql.Expression) bool {
				if bad == nil {
					bad = refuseExpr(x, m.req.Reason)
				}
				if sq, ok := x.(*plan.Subquery); ok && bad == nil {
					bad = m.refuse(sq.Query)
				}
				return bad == nil
			})
			if bad != nil {
				return bad
			}
		}
	}
	for _, c := range n.Children() {
		if err := m.refuse(c); err != nil {
			return err
		}
	}
	return nil
}

func refuseExpr(e sql.Expression, reason error) error {
	if w, ok := e.(*provider.Window); ok {
		return unsupported("window function %s in a statement that runs row by row (%w)", strings.ToUpper(w.Spec.Func), reason)
	}
	switch a := e.(type) {
	case *aggregation.StdDevPop, *aggregation.StdDevSamp, *aggregation.VarPop, *aggregation.VarSamp:
		return unsupported("%s in a statement that runs row by row (%w)", a, reason)
	case *aggregation.Sum:
		return refuseInexact("SUM", a.Child, reason)
	case *aggregation.Avg:
		return refuseInexact("AVG", a.Child, reason)
	}
	return nil
}

// refuseInexact: the row engine announces every SUM and AVG as DOUBLE.
func refuseInexact(name string, arg sql.Expression, reason error) error {
	t := arg.Type()
	if !types.IsDecimal(t) && t != types.Int64 && t != types.Uint64 {
		return nil
	}
	return unsupported("%s of %s in a statement that runs row by row (%w): the answer would be inexact; cast the argument to DOUBLE", name, t, reason)
}
