package translate

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// relation translates a node and what is below it. outer is the scope around a subquery, nil elsewhere.
func (t *translator) relation(n sql.Node, outer *scope) (*relation, error) {
	if t.depth++; t.depth > depthMax {
		return nil, errs.New(errs.ErrInvalid, "the statement nests too deeply")
	}
	defer func() { t.depth-- }()
	switch n := n.(type) {
	case *plan.ResolvedTable:
		return t.table(n)
	case *plan.TableAlias:
		return t.tableAlias(n, outer)
	case *plan.SubqueryAlias:
		return t.derived(n, outer)
	case *plan.Filter:
		return t.filter(n.Child, n.Expression, outer)
	case *plan.Having:
		return t.having(n, outer)
	case *plan.Project:
		return t.project(n, outer)
	case *plan.GroupBy:
		return t.groupBy(n, outer)
	case *plan.Sort:
		return t.sort(n, outer)
	case *plan.Limit:
		if n.CalcFoundRows {
			return nil, unsupported("SQL_CALC_FOUND_ROWS")
		}
		return t.limit(n.Child, n.Limit, nil, outer)
	case *plan.Offset:
		return t.limit(n.Child, nil, n.Offset, outer)
	case *plan.Distinct:
		return t.distinct(n, outer)
	case *plan.JoinNode:
		return t.join(n, outer)
	case *plan.SetOp:
		return t.setOp(n, outer)
	case *plan.ValueDerivedTable:
		return t.values(n)
	case *plan.EmptyTable:
		return t.empty(n)
	case *plan.Max1Row:
		return nil, unsupported("a join that checks for one row")
	}
	return nil, unsupported("%T", n)
}

// columnIDs returns the ids of a relation by position, zeros where they do not fit.
func columnIDs(n plan.TableIdNode, count int) []sql.ColumnId {
	ids := make([]sql.ColumnId, count)
	cols := n.Columns()
	if cols.Len() != count {
		return ids
	}
	i := 0
	cols.ForEach(func(id sql.ColumnId) {
		ids[i] = id
		i++
	})
	return ids
}

func (t *translator) table(n *plan.ResolvedTable) (*relation, error) {
	if plan.IsDualTable(n.Table) {
		return &relation{node: &logical.Values{Rows: [][]expr.Expr{{}}}}, nil
	}
	table, ok := sql.GetUnderlyingTable(n.Table).(*provider.Table)
	if !ok {
		return nil, unsupported("table %s is not ours", n.Name())
	}
	scan := &logical.Scan{Table: table.Exec(), Alias: n.Name()}
	fields := table.Exec().Schema().Fields()
	out := make([]output, len(fields))
	ids := columnIDs(n, len(fields))
	folded := make(map[string]int, len(fields))
	for i, f := range fields {
		col := logical.Column{ID: t.ids.Next(), Name: f.Name, Type: f.Type, Nullable: f.Nullable}
		scan.Cols = append(scan.Cols, logical.ScanColumn{Column: col, Source: f.Name})
		out[i] = output{id: ids[i], table: n.Name(), name: f.Name, col: col}
		if first, twice := folded[strings.ToLower(f.Name)]; twice {
			out[i].twin, out[first].twin = true, true
		}
		folded[strings.ToLower(f.Name)] = i
	}
	if t.target == table && t.addr == nil {
		scan.RowAddr = &logical.Column{ID: t.ids.Next(), Name: exec.RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64}
		t.addr = scan.RowAddr
		for i := range out {
			t.targetOut = append(t.targetOut, out[i].col)
		}
	}
	return &relation{node: scan, out: out}, nil
}

func (t *translator) tableAlias(n *plan.TableAlias, outer *scope) (*relation, error) {
	r, err := t.relation(n.Child, outer)
	if err != nil {
		return nil, err
	}
	out := append([]output(nil), r.out...)
	for i := range out {
		out[i].table = n.Name()
	}
	node := r.node
	if scan, ok := node.(*logical.Scan); ok {
		renamed := *scan
		renamed.Alias = n.Name()
		node = &renamed
	}
	return &relation{node: node, out: out}, nil
}

// derived is a derived table, a CTE or a view. It sees the outer scope only where the grammar lets it.
func (t *translator) derived(n *plan.SubqueryAlias, outer *scope) (*relation, error) {
	if n.IsLateral {
		return nil, unsupported("LATERAL")
	}
	r, err := t.relation(n.Child, outer)
	if err != nil {
		return nil, err
	}
	if err := r.settled(); err != nil {
		return nil, err
	}
	r = t.distinctIDs(r)
	ids := columnIDs(n, len(r.out))
	if len(n.ColumnNames) > 0 && len(n.ColumnNames) != len(r.out) {
		return nil, errs.New(errs.ErrInvalid, "derived table %s names %d columns but has %d", n.Name(), len(n.ColumnNames), len(r.out))
	}
	out := make([]output, len(r.out))
	for i, o := range r.out {
		name := o.name
		if len(n.ColumnNames) > 0 {
			name = n.ColumnNames[i]
		}
		out[i] = output{id: ids[i], table: n.Name(), name: name, col: o.col}
	}
	return &relation{node: r.node, out: out}, nil
}

// filter keeps rows; conjuncts that are subqueries become joins, the order of the others is kept.
func (t *translator) filter(child sql.Node, cond sql.Expression, outer *scope) (*relation, error) {
	r, err := t.relation(child, outer)
	if err != nil {
		return nil, err
	}
	sc := t.scope(r, outer)
	var conds []expr.Expr
	for _, c := range expression.SplitConjunction(cond) {
		done, err := t.subqueryConjunct(c, sc)
		if err != nil {
			return nil, err
		}
		if done {
			continue
		}
		e, err := sc.expr(c)
		if err != nil {
			return nil, err
		}
		conds = append(conds, expr.Conjuncts(e)...)
	}
	node := sc.rel.node
	if len(conds) > 0 {
		node = &logical.Filter{Input: node, Conds: conds}
	}
	return &relation{node: node, out: sc.rel.out, keys: r.keys}, nil
}

// scope starts expressions over a relation; the relation is copied since subqueries join to it.
func (t *translator) scope(r *relation, outer *scope) *scope {
	copied := *r
	return &scope{t: t, rel: &copied, parent: outer}
}

func (t *translator) project(n *plan.Project, outer *scope) (*relation, error) {
	r, err := t.below(n, outer)
	if err != nil {
		return nil, err
	}
	sc := t.scope(r, outer)
	named := make([]logical.Named, 0, len(n.Projections))
	out := make([]output, 0, len(n.Projections))
	passed := make(map[logical.ColumnID]bool)
	for _, p := range n.Projections {
		e, o, err := t.projection(p, sc)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
		if ref, ok := e.(*expr.Column); ok && ref.ID == o.col.ID {
			if passed[ref.ID] {
				continue
			}
			passed[ref.ID] = true
		}
		named = append(named, logical.Named{Column: o.col, Expr: e})
	}
	keys := sc.rel.keys
	for _, k := range keys { // HAVING and ORDER BY above may repeat an expression of GROUP BY
		if !passed[k.col.ID] {
			passed[k.col.ID] = true
			named = append(named, logical.Named{Column: k.col, Expr: k.col.Ref()})
		}
	}
	return &relation{node: &logical.Project{Input: sc.rel.node, Exprs: named}, out: out, keys: keys}, nil
}

// projection translates one output of a projection. A plain column passes with its id.
func (t *translator) projection(p sql.Expression, sc *scope) (expr.Expr, output, error) {
	if gf, ok := p.(*expression.GetField); ok {
		for i := range sc.rel.out { // an ungrouped column may pass below the final projection: whoever uses it is checked
			if o := sc.rel.out[i]; o.ungrouped && o.id == gf.Id() && sameName(&o, gf) {
				return o.col.Ref(), o, nil
			}
		}
	}
	e, err := sc.expr(p)
	if err != nil {
		return nil, output{}, err
	}
	o := output{name: t.heading(p)}
	switch x := p.(type) {
	case *expression.GetField:
		o.id, o.table, o.name = x.Id(), x.Table(), x.Name()
	case *expression.Alias:
		o.id, o.name = x.Id(), x.Name()
	}
	if ref, ok := e.(*expr.Column); ok {
		o.col = sc.nullability(ref, logical.Column{ID: ref.ID, Name: o.name, Type: ref.T, Nullable: true})
		for i := range sc.rel.out {
			o.twin = o.twin || sc.rel.out[i].twin && sc.rel.out[i].col.ID == ref.ID
		}
		if sc.isOwn(ref.ID) {
			return e, o, nil
		}
	}
	o.col = logical.Column{ID: t.ids.Next(), Name: o.name, Type: e.Type(), Nullable: nullable(e)}
	return e, o, nil
}

// isOwn says that the relation itself has the column (an outer one must be computed anew to become an output).
func (sc *scope) isOwn(id logical.ColumnID) bool {
	for _, c := range sc.rel.node.Columns() {
		if c.ID == id {
			return true
		}
	}
	return false
}

func (sc *scope) nullability(ref *expr.Column, col logical.Column) logical.Column {
	for _, c := range sc.rel.node.Columns() {
		if c.ID == ref.ID {
			col.Nullable = c.Nullable
		}
	}
	return col
}

// nullable is cautious: only literals are known to be something.
func nullable(e expr.Expr) bool {
	lit, ok := e.(*expr.Literal)
	return !ok || !lit.Value.IsValid()
}

// heading is the column name that the client sees.
func (t *translator) heading(p sql.Expression) string {
	if n, ok := p.(sql.Nameable); ok {
		return n.Name()
	}
	return plan.AliasSubqueryString(p)
}

func (t *translator) sort(n *plan.Sort, outer *scope) (*relation, error) {
	r, err := t.relation(n.Child, outer)
	if err != nil {
		return nil, err
	}
	return t.sortRelation(r, n.SortFields, outer)
}

func (t *translator) sortRelation(r *relation, fields sql.SortFields, outer *scope) (*relation, error) {
	sc := t.scope(r, outer)
	keys, err := t.sortKeys(fields, sc)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return r, nil
	}
	return &relation{node: &logical.Sort{Input: sc.rel.node, Keys: keys}, out: sc.rel.out, keys: sc.rel.keys}, nil
}

func (t *translator) sortKeys(fields sql.SortFields, sc *scope) ([]logical.SortKey, error) {
	var keys []logical.SortKey
	for _, f := range fields {
		column := f.Column
		if a, ok := column.(*expression.Alias); ok {
			column = a.Child
		}
		e, err := sc.expr(column)
		if err != nil {
			return nil, err
		}
		if _, constant := e.(*expr.Literal); constant {
			continue // ORDER BY NULL and the like
		}
		desc := f.Order == sql.Descending
		keys = append(keys, logical.SortKey{Expr: e, Desc: desc, NullsLast: !desc && t.isDistance(e, sc.rel.node)})
	}
	return keys, nil
}

// isDistance says that a sort key is a distance call, through aliases and derived tables.
func (t *translator) isDistance(e expr.Expr, node logical.Node) bool {
	for range depthMax {
		switch x := e.(type) {
		case *expr.Call:
			return isDistanceFunc(x.Func)
		case *expr.Column:
			definition, below, ok := findDefinition(node, x.ID)
			if !ok {
				return false
			}
			e, node = definition, below
		default:
			return false
		}
	}
	return false
}

// findDefinition looks below node for the projection that computes a column.
func findDefinition(node logical.Node, id logical.ColumnID) (definition expr.Expr, below logical.Node, ok bool) {
	logical.Walk(node, func(n logical.Node) bool {
		if ok {
			return false
		}
		p, isProject := n.(*logical.Project)
		if !isProject {
			return true
		}
		for _, e := range p.Exprs {
			if e.ID != id {
				continue
			}
			if ref, pass := e.Expr.(*expr.Column); !pass || ref.ID != id {
				definition, below, ok = e.Expr, p.Input, true
				return false
			}
		}
		return true
	})
	return definition, below, ok
}

// isDistanceFunc lists the functions where nearer is smaller and undefined is NULL, under the names that package expr gives them.
func isDistanceFunc(name string) bool {
	switch name {
	case "l2_distance", "l2sq_distance", "cosine_distance", "dot_distance", "hamming_distance",
		"vec_distance", "vec_distance_l2_squared", "vec_distance_euclidean", "vec_distance_cosine", "approx_l2_distance", "distance":
		return true
	}
	return false
}

func (t *translator) limit(child sql.Node, count, offset sql.Expression, outer *scope) (*relation, error) {
	r, err := t.relation(child, outer)
	if err != nil {
		return nil, err
	}
	k, err := t.limitValue(count, logical.NoLimit)
	if err != nil {
		return nil, err
	}
	skip, err := t.limitValue(offset, 0)
	if err != nil {
		return nil, err
	}
	if below, ok := r.node.(*logical.Limit); ok && below.Count == logical.NoLimit && offset == nil {
		return &relation{node: &logical.Limit{Input: below.Input, Count: k, Offset: below.Offset}, out: r.out}, nil
	}
	if k == logical.NoLimit && skip == 0 {
		return r, nil
	}
	return &relation{node: &logical.Limit{Input: r.node, Count: k, Offset: skip}, out: r.out}, nil
}

func (t *translator) limitValue(e sql.Expression, none uint64) (uint64, error) {
	if e == nil {
		return none, nil
	}
	v, err := e.Eval(t.ctx, nil)
	if err != nil {
		return 0, err
	}
	switch n := v.(type) {
	case nil:
		return none, nil
	case int64:
		if n < 0 {
			return 0, errs.New(errs.ErrInvalid, "LIMIT and OFFSET cannot be negative")
		}
		if n == 1<<63-1 { // what go-mysql-server makes of 18446744073709551615
			return none, nil
		}
		return uint64(n), nil
	case uint64:
		return n, nil
	}
	return 0, unsupported("LIMIT of type %T", v)
}

// distinct removes duplicate rows. A Sort below comes back above: its keys must be among the columns.
func (t *translator) distinct(n *plan.Distinct, outer *scope) (*relation, error) {
	r, err := t.relation(n.Child, outer)
	if err != nil {
		return nil, err
	}
	r = t.distinctIDs(r)
	node := r.exact()
	var keys []logical.SortKey
	if p, ok := node.(*logical.Project); ok {
		if s, ok := p.Input.(*logical.Sort); ok {
			if keys, err = keysAbove(s.Keys, p); err != nil {
				return nil, err
			}
			node = &logical.Project{Input: s.Input, Exprs: p.Exprs}
		}
	}
	node = &logical.Distinct{Input: node}
	if len(keys) > 0 {
		node = &logical.Sort{Input: node, Keys: keys}
	}
	return &relation{node: node, out: r.out}, nil
}

func keysAbove(keys []logical.SortKey, p *logical.Project) ([]logical.SortKey, error) {
	out := make([]logical.SortKey, len(keys))
	for i, k := range keys {
		out[i] = k
		found := false
		for _, e := range p.Exprs {
			if expr.Equal(e.Expr, k.Expr) {
				out[i].Expr, found = e.Ref(), true
			}
		}
		if found {
			continue
		}
		have := make(map[int]bool, len(p.Exprs))
		for _, c := range p.Exprs {
			have[c.ID] = true
		}
		for _, id := range expr.Columns(k.Expr) {
			if !have[id] {
				return nil, errs.New(errs.ErrInvalid, "expression %s of ORDER BY is not in the SELECT list; this is incompatible with DISTINCT", k.Expr)
			}
		}
	}
	return out, nil
}

func (t *translator) join(n *plan.JoinNode, outer *scope) (*relation, error) {
	if n.Op.IsLateral() || n.Op.IsUsing() {
		return nil, unsupported("join %s", n.Op)
	}
	left, err := t.relation(n.Left(), outer)
	if err != nil {
		return nil, err
	}
	right, err := t.relation(n.Right(), outer)
	if err != nil {
		return nil, err
	}
	out := append(append([]output(nil), left.out...), right.out...)
	kind := logical.JoinInner
	l, r := left.node, right.node
	switch {
	case n.Op.IsLeftOuter():
		kind = logical.JoinLeft
	case n.Op.IsRightOuter():
		kind = logical.JoinLeft
		l, r = r, l
	case n.Op.IsFullOuter():
		kind = logical.JoinFull
	case !n.Op.IsInner():
		return nil, unsupported("join %s", n.Op)
	}
	sc := &scope{t: t, rel: &relation{node: &logical.Join{Kind: kind, Left: l, Right: r}, out: out}, parent: outer}
	join := &logical.Join{Kind: kind, Left: l, Right: r}
	if n.Filter == nil || n.Op.IsCross() {
		return &relation{node: join, out: out}, nil
	}
	before := sc.rel.node
	var conds []expr.Expr
	for _, c := range expression.SplitConjunction(n.Filter) {
		e, err := sc.expr(c)
		if err != nil {
			return nil, err
		}
		conds = append(conds, expr.Conjuncts(e)...)
	}
	if sc.rel.node != before { // a subquery in ON: only an inner join can evaluate it above itself
		if kind != logical.JoinInner {
			return nil, unsupported("a subquery in ON of an outer join")
		}
		return &relation{node: &logical.Filter{Input: sc.rel.node, Conds: conds}, out: out}, nil
	}
	for _, c := range conds {
		if lit, ok := c.(*expr.Literal); !ok || !isTrueLiteral(lit) {
			join.On = append(join.On, c)
		}
	}
	return &relation{node: join, out: out}, nil
}

func isTrueLiteral(l *expr.Literal) bool {
	return l.Value.IsValid() && (l.Value.String() == "true" || l.Value.String() == "1")
}

func (t *translator) values(n *plan.ValueDerivedTable) (*relation, error) {
	schema := n.Schema()
	rows := make([][]expr.Expr, len(n.ExpressionTuples))
	sc := &scope{t: t}
	for i, tuple := range n.ExpressionTuples {
		rows[i] = make([]expr.Expr, len(tuple))
		for j, e := range tuple {
			v, err := sc.expr(e)
			if err != nil {
				return nil, err
			}
			rows[i][j] = v
		}
	}
	ids := columnIDs(n, len(schema))
	cols := make([]logical.Column, len(schema))
	out := make([]output, len(schema))
	for j, s := range schema {
		col := logical.Column{ID: t.ids.Next(), Name: s.Name, Nullable: true}
		for i := range rows {
			if i == 0 {
				col.Type = rows[i][j].Type()
			} else {
				col.Type = expr.Unify(col.Type, rows[i][j].Type())
			}
		}
		for i := range rows {
			rows[i][j] = coerce(rows[i][j], col.Type)
		}
		cols[j] = col
		out[j] = output{id: ids[j], table: n.Name(), name: s.Name, col: col}
	}
	return &relation{node: &logical.Values{Cols: cols, Rows: rows}, out: out}, nil
}

func (t *translator) empty(n *plan.EmptyTable) (*relation, error) {
	schema := n.Schema()
	ids := columnIDs(n, len(schema))
	cols := make([]logical.Column, len(schema))
	out := make([]output, len(schema))
	for j, s := range schema {
		at, err := arrowType(s.Type)
		if err != nil {
			return nil, err
		}
		cols[j] = logical.Column{ID: t.ids.Next(), Name: s.Name, Type: at, Nullable: true}
		out[j] = output{id: ids[j], table: s.Source, name: s.Name, col: cols[j]}
	}
	return &relation{node: &logical.Values{Cols: cols}, out: out}, nil
}
