package translate

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner"
	"github.com/lakesql/lakesql/planner/coltype"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// Write plans a bound statement that changes rows. Parts that only the row engine could run are refused: nothing is written row by row. Errors: ErrUnsupported
// naming the part, ErrColumnCount, and those of planner.Plan.
func Write(ctx *sql.Context, req *Request, n sql.Node) (dml.Statement, error) {
	w := &writer{t: newTranslator(ctx, req), req: req}
	switch n := n.(type) {
	case *plan.InsertInto:
		return w.insert(n)
	case *plan.DeleteFrom:
		return w.delete(n)
	case *plan.Update:
		return w.update(n)
	case *plan.Truncate:
		table, err := w.target(n.Child)
		if err != nil {
			return nil, err
		}
		return &dml.Truncate{From: targetOf(table)}, nil
	}
	return nil, unsupported("%T", n)
}

// Pick is a column that Query yields: an output of the query by position, or NULL where From is -1.
type Pick struct{ From int }

// Query plans a bound SELECT whose rows are stored. choose, if it is not nil, says which of its outputs are wanted, in which order. Errors: as Write.
func Query(ctx *sql.Context, req *Request, n sql.Node, choose func(out []arrow.Field) ([]Pick, error)) (*planner.Result, error) {
	t := newTranslator(ctx, req)
	r, err := t.relation(n, nil)
	if err != nil {
		return nil, err
	}
	if err := r.settled(); err != nil {
		return nil, err
	}
	if choose == nil {
		return planner.Plan(ctx, r.exact(), t.ids, req.Settings)
	}
	fields := make([]arrow.Field, len(r.out))
	for i, o := range r.out {
		fields[i] = arrow.Field{Name: o.name, Type: o.col.Type, Nullable: o.col.Nullable}
	}
	picks, err := choose(fields)
	if err != nil {
		return nil, err
	}
	named := make([]logical.Named, len(picks))
	for i, p := range picks {
		e := expr.Expr(expr.Null(arrow.Null))
		name := ""
		if p.From >= 0 {
			e, name = r.out[p.From].col.Ref(), r.out[p.From].name
		}
		named[i] = logical.Named{Column: logical.Column{ID: t.ids.Next(), Name: name, Type: e.Type(), Nullable: true}, Expr: e}
	}
	return planner.Plan(ctx, &logical.Project{Input: r.node, Exprs: named}, t.ids, req.Settings)
}

// Computed is an expression over columns of one table.
type Computed struct {
	Reads []string // the columns that it depends on

	program *expr.Program
}

// Compute translates the only output of a bound SELECT over one table, for ALTER TABLE ... ADD COLUMN. Errors: as Write.
func Compute(ctx *sql.Context, req *Request, n sql.Node) (*Computed, error) {
	t := newTranslator(ctx, req)
	r, err := t.relation(n, nil)
	if err != nil {
		return nil, err
	}
	p, ok := r.node.(*logical.Project)
	if !ok || len(r.out) != 1 {
		return nil, unsupported("such an expression")
	}
	scan, ok := p.Input.(*logical.Scan)
	if !ok {
		return nil, unsupported("a subquery in a default")
	}
	value, err := expr.Fold(p.Exprs[0].Expr, &req.Settings.Expr)
	if err != nil {
		return nil, err
	}
	out := &Computed{}
	used := make(map[int]int)
	var fields []arrow.Field
	for _, id := range expr.Columns(value) {
		for _, c := range scan.Cols {
			if _, known := used[id]; c.ID == id && !known {
				used[id] = len(fields)
				fields = append(fields, arrow.Field{Name: c.Source, Type: c.Type, Nullable: true})
				out.Reads = append(out.Reads, c.Source)
			}
		}
	}
	if value, err = expr.Rebind(value, used); err != nil {
		return nil, err
	}
	out.program, err = expr.Compile(value, arrow.NewSchema(fields, nil))
	return out, err
}

// Eval computes the expression for rows that hold at least the columns of Reads. The caller releases the result.
func (c *Computed) Eval(env *expr.Env, rows arrow.RecordBatch) (arrow.Array, error) {
	cols := make([]arrow.Array, len(c.Reads))
	fields := make([]arrow.Field, len(c.Reads))
	for i, name := range c.Reads {
		at := rows.Schema().FieldIndices(name)
		if len(at) != 1 {
			return nil, errs.New(errs.ErrInternal, "column %q was not read", name)
		}
		cols[i], fields[i] = rows.Column(at[0]), rows.Schema().Field(at[0])
	}
	batch := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rows.NumRows())
	defer batch.Release()
	return c.program.Eval(env, batch)
}

// writer translates one statement that changes rows.
type writer struct {
	t   *translator
	req *Request
}

func targetOf(t *provider.Table) dml.Target {
	return dml.Target{Catalog: t.Exec().Ref().Source, Table: t.Exec()}
}

// target finds the table behind a node of the statement.
func (w *writer) target(n sql.Node) (*provider.Table, error) {
	switch n := n.(type) {
	case *plan.ResolvedTable:
		if table, ok := sql.GetUnderlyingTable(n.Table).(*provider.Table); ok {
			return table, nil
		}
		return nil, unsupported("table %s cannot be changed", n.Name())
	case *plan.SubqueryAlias, *plan.ValueDerivedTable:
		return nil, unsupported("a derived table cannot be changed")
	}
	children := n.Children()
	if len(children) == 0 {
		return nil, unsupported("%T cannot be changed", n)
	}
	return w.target(children[0])
}

// plan optimizes a logical plan of the statement's rows.
func (w *writer) plan(root logical.Node) (exec.Plan, error) {
	result, err := planner.Plan(w.t.ctx, root, w.t.ids, w.req.Settings)
	if err != nil {
		return nil, err
	}
	for _, warning := range result.Warnings {
		w.req.Warnings.Add(warning)
	}
	return result.Plan, nil
}

// fieldIndex finds a column as MySQL does, the exact spelling first.
func fieldIndex(s *arrow.Schema, name string) int {
	at := -1
	for i, f := range s.Fields() {
		if f.Name == name {
			return i
		}
		if at < 0 && strings.EqualFold(f.Name, name) {
			at = i
		}
	}
	return at
}

func (w *writer) insert(n *plan.InsertInto) (dml.Statement, error) {
	if len(n.Returning) > 0 {
		return nil, unsupported("RETURNING")
	}
	dest, ok := n.Destination.(*plan.InsertDestination)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "INSERT into a %T", n.Destination)
	}
	table, err := w.target(dest.Child)
	if err != nil {
		return nil, err
	}
	columns := &insertColumns{w: w, schema: table.Exec().Schema(), defaults: dest.Sch}
	if err := columns.name(n.ColumnNames); err != nil {
		return nil, err
	}
	into := targetOf(table)
	var source dml.Source
	var selected []output
	switch src := n.Source.(type) {
	case *plan.Values:
		source.Rows, err = columns.values(src.ExpressionTuples)
	default:
		var r *relation
		if r, err = w.t.relation(src, nil); err == nil {
			selected = r.out
			source.Plan, err = columns.query(w.t.scope(r, nil))
		}
	}
	if err != nil {
		return nil, err
	}
	source.NoDefault = columns.noDefault
	keyed := dml.Keyed{Into: into, Source: source, Key: coltype.Key(columns.schema)}
	switch {
	case n.IsReplace:
		keyed.Mode = dml.ModeReplace
	case len(n.OnDupExprs) > 0:
		keyed.Mode = dml.ModeUpdate
		if keyed.Set, err = w.onDuplicate(n, columns, selected); err != nil {
			return nil, err
		}
	case n.Ignore:
		keyed.Mode = dml.ModeIgnore
	}
	if keyed.Mode == "" || len(keyed.Key) == 0 { // without a key nothing is a duplicate
		return &dml.Insert{Into: into, Source: source}, nil
	}
	return &keyed, nil
}

// insertColumns maps what an INSERT names to the columns of the table.
type insertColumns struct {
	w         *writer
	schema    *arrow.Schema
	defaults  sql.Schema
	source    []int // per column of the table: its position in the source, -1 = the default
	noDefault []string
}

func (c *insertColumns) name(names []string) error {
	c.source = make([]int, c.schema.NumFields())
	for i := range c.source {
		c.source[i] = -1
	}
	for at, name := range names {
		i := fieldIndex(c.schema, name)
		if i < 0 {
			return errs.New(errs.ErrUnknownColumn, "Unknown column '%s' in 'field list'", name)
		}
		c.source[i] = at
	}
	for i, f := range c.schema.Fields() {
		if c.source[i] < 0 && !f.Nullable && c.defaultOf(i) == nil {
			c.noDefault = append(c.noDefault, f.Name)
		}
	}
	return nil
}

// defaultOf is the default expression of a column, nil where it has none.
func (c *insertColumns) defaultOf(i int) sql.Expression {
	if i < len(c.defaults) && c.defaults[i].Default != nil {
		return c.defaults[i].Default.Expr
	}
	return nil
}

// defaultExpr translates the default of a column; NULL where it has none.
func (c *insertColumns) defaultExpr(sc *scope, i int) (expr.Expr, error) {
	d := c.defaultOf(i)
	if d == nil {
		return expr.Null(arrow.Null), nil
	}
	return sc.expr(d)
}

// values translates the rows of VALUES: what is constant now becomes constants.
func (c *insertColumns) values(tuples [][]sql.Expression) ([]dml.Row, error) {
	fixed := make([]*expr.Literal, len(c.source))
	rows := make([]dml.Row, len(tuples))
	for r, tuple := range tuples {
		row := dml.Row{Cells: make([]*expr.Literal, len(c.source))}
		for i, at := range c.source {
			if at < 0 && fixed[i] != nil {
				row.Cells[i] = fixed[i]
				continue
			}
			lit, err := c.constant(i, at, tuple)
			if err != nil {
				return nil, err
			}
			if lit == nil {
				row.Cells = nil
				break
			}
			row.Cells[i] = lit
			if at < 0 {
				fixed[i] = lit
			}
		}
		if row.Cells == nil {
			var err error
			if row.Computed, err = c.computed(tuple); err != nil {
				return nil, err
			}
		}
		rows[r] = row
	}
	return rows, nil
}

// cell is the expression of a column in a row of VALUES; DEFAULT is the column's default.
func (c *insertColumns) cell(sc *scope, i, at int, tuple []sql.Expression) (expr.Expr, error) {
	if at < 0 {
		return c.defaultExpr(sc, i)
	}
	if wrapped, ok := tuple[at].(*expression.Wrapper); ok {
		d, _ := wrapped.Unwrap().(*sql.ColumnDefaultValue)
		if d == nil || d.Expr == nil {
			if f := c.schema.Field(i); !f.Nullable {
				return nil, errs.New(errs.ErrNoDefault, "Field '%s' doesn't have a default value", f.Name)
			}
			return expr.Null(arrow.Null), nil
		}
		return sc.expr(d.Expr)
	}
	return sc.expr(tuple[at])
}

// constant is the value of a cell, nil where it must be computed with the row.
func (c *insertColumns) constant(i, at int, tuple []sql.Expression) (*expr.Literal, error) {
	if at >= 0 && hasSubquery(tuple[at]) {
		return nil, nil //nolint:nilnil // nil is "not now"
	}
	e, err := c.cell(&scope{t: c.w.t}, i, at, tuple)
	if err != nil {
		return nil, err
	}
	if lit, ok := e.(*expr.Literal); ok {
		return lit, nil
	}
	env := c.w.req.Settings.Expr
	if e, err = expr.Fold(e, &env); err != nil {
		return nil, err
	}
	lit, _ := e.(*expr.Literal)
	return lit, nil
}

// computed plans a row of VALUES that is not constant.
func (c *insertColumns) computed(tuple []sql.Expression) (exec.Plan, error) {
	r := &relation{node: &logical.Values{Rows: [][]expr.Expr{{}}}}
	sc := c.w.t.scope(r, nil)
	return c.project(sc, func(i int) (expr.Expr, error) { return c.cell(sc, i, c.source[i], tuple) })
}

// query plans INSERT ... SELECT.
func (c *insertColumns) query(sc *scope) (exec.Plan, error) {
	if err := sc.rel.settled(); err != nil {
		return nil, err
	}
	out := sc.rel.out
	for _, at := range c.source {
		if at >= len(out) {
			return nil, errs.New(errs.ErrColumnCount, "Column count doesn't match value count at row 1")
		}
	}
	return c.project(sc, func(i int) (expr.Expr, error) {
		if at := c.source[i]; at >= 0 {
			return out[at].col.Ref(), nil
		}
		return c.defaultExpr(sc, i)
	})
}

// project plans one output for each column of the table.
func (c *insertColumns) project(sc *scope, value func(i int) (expr.Expr, error)) (exec.Plan, error) {
	named := make([]logical.Named, c.schema.NumFields())
	for i, f := range c.schema.Fields() {
		e, err := value(i)
		if err != nil {
			return nil, err
		}
		named[i] = logical.Named{Column: logical.Column{ID: c.w.t.ids.Next(), Name: f.Name, Type: e.Type(), Nullable: true}, Expr: e}
	}
	return c.w.plan(&logical.Project{Input: sc.rel.node, Exprs: named})
}

// onDuplicate translates the assignments of ON DUPLICATE KEY UPDATE over the row that is there, columns 0 to n-1, and the row that was to be inserted, n to
// 2n-1. The new row's columns go by VALUES(), by the alias of the rows, and by the names of the SELECT that they come from.
func (w *writer) onDuplicate(n *plan.InsertInto, c *insertColumns, selected []output) ([]dml.SetColumn, error) {
	count := c.schema.NumFields()
	alias, names := "__new_ins", map[string]string(nil)
	if v, ok := n.Source.(*plan.Values); ok {
		if v.AliasName != "" {
			alias = v.AliasName
		}
		names = v.ColumnNames
	}
	rel := &relation{node: &logical.Values{}}
	add := func(table, name string, id int) {
		f := c.schema.Field(id % count)
		rel.out = append(rel.out, output{table: table, name: name, col: logical.Column{ID: id, Name: f.Name, Type: f.Type, Nullable: f.Nullable}})
	}
	own := ""
	if named, ok := n.Destination.(sql.Nameable); ok {
		own = named.Name()
	}
	for i, f := range c.schema.Fields() {
		add(own, f.Name, i)
	}
	for i, f := range c.schema.Fields() {
		name := f.Name
		if other, ok := names[strings.ToLower(f.Name)]; ok {
			name = other
		}
		add(alias, name, count+i)
		if at := c.source[i]; at >= 0 && at < len(selected) {
			add(selected[at].table, selected[at].name, count+i)
		}
	}
	sc := &scope{t: w.t, rel: rel}
	out := make([]dml.SetColumn, len(n.OnDupExprs))
	for j, e := range n.OnDupExprs {
		i, value, err := assignment(e, c.schema)
		if err != nil {
			return nil, err
		}
		if hasSubquery(value) {
			return nil, unsupported("a subquery in ON DUPLICATE KEY UPDATE")
		}
		translated, err := sc.expr(value)
		if err != nil {
			return nil, err
		}
		out[j] = dml.SetColumn{Column: i, Value: translated}
	}
	return out, nil
}

// assignment takes column = value apart.
func assignment(e sql.Expression, s *arrow.Schema) (column int, value sql.Expression, err error) {
	set, ok := e.(*expression.SetField)
	if !ok {
		return 0, nil, unsupported("assignment %s", e)
	}
	field, ok := set.LeftChild.(*expression.GetField)
	if !ok {
		return 0, nil, unsupported("assignment to %s", set.LeftChild)
	}
	i := fieldIndex(s, field.Name())
	if i < 0 {
		return 0, nil, errs.New(errs.ErrUnknownColumn, "Unknown column '%s' in 'field list'", field.Name())
	}
	return i, set.RightChild, nil
}

// addressed makes the plan's scan of the table yield row addresses.
func (w *writer) addressed(table *provider.Table) error {
	if _, ok := table.Exec().(exec.Addressable); !ok {
		return unsupported("table %s cannot be changed", table.Exec().Ref())
	}
	w.t.target = table
	return nil
}

// addr is the column of row addresses, once the relation was translated.
func (w *writer) addr() (logical.Named, error) {
	if w.t.addr == nil {
		return logical.Named{}, errs.New(errs.ErrInternal, "the plan of a change has no row addresses")
	}
	col := *w.t.addr
	return logical.Named{Column: col, Expr: col.Ref()}, nil
}

func (w *writer) delete(n *plan.DeleteFrom) (dml.Statement, error) {
	from := n.Child
	if n.HasExplicitTargets() {
		targets := n.GetDeleteTargets()
		if len(targets) != 1 {
			return nil, unsupported("DELETE from %d tables in one statement", len(targets))
		}
		from = targets[0]
	}
	table, err := w.target(from)
	if err != nil {
		return nil, err
	}
	if err := w.addressed(table); err != nil {
		return nil, err
	}
	r, err := w.t.relation(n.Child, nil)
	if err != nil {
		return nil, err
	}
	addr, err := w.addr()
	if err != nil {
		return nil, err
	}
	input, err := w.plan(&logical.Project{Input: r.node, Exprs: []logical.Named{addr}})
	if err != nil {
		return nil, err
	}
	return &dml.Delete{From: targetOf(table), Input: input}, nil
}

func (w *writer) update(n *plan.Update) (dml.Statement, error) {
	if len(n.Returning) > 0 {
		return nil, unsupported("RETURNING")
	}
	child := n.Child
	if join, ok := child.(*plan.UpdateJoin); ok {
		child = join.Child
	}
	source, ok := child.(*plan.UpdateSource)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "UPDATE of a %T", child)
	}
	table, err := w.updated(source)
	if err != nil {
		return nil, err
	}
	if err := w.addressed(table); err != nil {
		return nil, err
	}
	r, err := w.t.relation(source.Child, nil)
	if err != nil {
		return nil, err
	}
	return w.updatePlan(table, r, source.UpdateExprs)
}

// updated is the table whose columns the assignments name.
func (w *writer) updated(source *plan.UpdateSource) (*provider.Table, error) {
	name := ""
	for _, e := range source.UpdateExprs {
		set, ok := e.(*expression.SetField)
		if !ok {
			return nil, unsupported("assignment %s", e)
		}
		field, ok := set.LeftChild.(*expression.GetField)
		if !ok {
			return nil, unsupported("assignment to %s", set.LeftChild)
		}
		if name != "" && !strings.EqualFold(name, field.Table()) {
			return nil, unsupported("UPDATE of %s and %s in one statement", name, field.Table())
		}
		name = field.Table()
	}
	var found sql.Node
	walkTables(source.Child, func(n sql.Node, as string) {
		if found == nil && strings.EqualFold(as, name) {
			found = n
		}
	})
	if found == nil {
		return nil, unsupported("%s cannot be changed", name)
	}
	return w.target(found)
}

// walkTables calls f for every table of FROM, with the name that it goes by.
func walkTables(n sql.Node, f func(n sql.Node, as string)) {
	switch n := n.(type) {
	case *plan.TableAlias:
		f(n, n.Name())
		return
	case *plan.ResolvedTable:
		f(n, n.Name())
		return
	case *plan.SubqueryAlias:
		f(n, n.Name())
		return
	}
	for _, c := range n.Children() {
		walkTables(c, f)
	}
}

// updatePlan plans the rows of an UPDATE: all columns as they are, the assigned values, and the address.
func (w *writer) updatePlan(table *provider.Table, r *relation, assignments []sql.Expression) (dml.Statement, error) {
	schema := table.Exec().Schema()
	sc := w.t.scope(r, nil)
	own := w.t.targetOut
	if len(own) != schema.NumFields() {
		return nil, errs.New(errs.ErrInternal, "the plan of a change does not read its table")
	}
	out := &dml.Update{Of: targetOf(table)}
	now := map[int]expr.Expr{} // by column id: what assignments before have made of a column
	values := map[int]expr.Expr{}
	for _, e := range assignments {
		i, value, err := assignment(e, schema)
		if err != nil {
			return nil, err
		}
		translated, err := w.assigned(sc, value, schema.Field(i))
		if err != nil {
			return nil, err
		}
		translated = expr.Transform(translated, func(e expr.Expr) expr.Expr {
			if c, ok := e.(*expr.Column); ok && now[c.ID] != nil {
				return now[c.ID]
			}
			return e
		})
		if _, twice := values[i]; !twice {
			out.Columns = append(out.Columns, i)
		}
		values[i] = translated
		if stored, err := expr.NewCoerce(translated, schema.Field(i).Type); err == nil {
			now[own[i].ID] = stored
		}
	}
	var named []logical.Named
	for i, f := range schema.Fields() {
		named = append(named, logical.Named{Column: logical.Column{ID: w.t.ids.Next(), Name: f.Name, Type: f.Type, Nullable: true}, Expr: own[i].Ref()})
	}
	for _, i := range out.Columns {
		e := values[i]
		col := logical.Column{ID: w.t.ids.Next(), Name: "new " + schema.Field(i).Name, Type: e.Type(), Nullable: true}
		named = append(named, logical.Named{Column: col, Expr: e})
	}
	addr, err := w.addr()
	if err != nil {
		return nil, err
	}
	out.Input, err = w.plan(&logical.Project{Input: sc.rel.node, Exprs: append(named, addr)})
	return out, err
}

// assigned translates the value of an assignment; DEFAULT is the column's.
func (w *writer) assigned(sc *scope, value sql.Expression, f arrow.Field) (expr.Expr, error) {
	wrapped, ok := value.(*expression.Wrapper)
	if !ok {
		return sc.expr(value)
	}
	d, _ := wrapped.Unwrap().(*sql.ColumnDefaultValue)
	if d != nil && d.Expr != nil {
		return sc.expr(d.Expr)
	}
	if !f.Nullable {
		return nil, errs.New(errs.ErrNoDefault, "Field '%s' doesn't have a default value", f.Name)
	}
	return expr.Null(f.Type), nil
}
