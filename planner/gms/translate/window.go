package translate

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// window computes a window function below the node that the scope is for, and returns the column that holds it. The relation remembers it by its text, so
// that ORDER BY and the SELECT list share it.
func (sc *scope) window(w *provider.Window) (expr.Expr, error) {
	if sc.rel == nil {
		return nil, mysqlerr.WindowNotAllowed(w.Spec.Func)
	}
	f, err := sc.windowFunc(w)
	if err != nil {
		return nil, err
	}
	n := &logical.Window{}
	for _, e := range w.Partition() {
		k, err := sc.expr(e)
		if err != nil {
			return nil, err
		}
		if _, constant := k.(*expr.Literal); !constant {
			n.Partition = append(n.Partition, k)
		}
	}
	for i, e := range w.Order() {
		k, err := sc.expr(e)
		if err != nil {
			return nil, err
		}
		if _, constant := k.(*expr.Literal); !constant {
			n.Order = append(n.Order, logical.SortKey{Expr: k, Desc: w.Spec.Desc[i]})
		}
	}
	if err := sc.frame(w, n, &f); err != nil {
		return nil, err
	}
	n.Input, n.Funcs = sc.rel.node, []logical.WindowFunc{f}
	sc.rel.node = joinWindow(sc.rel.node, n)
	sc.rel.keys = append(sc.rel.keys[:len(sc.rel.keys):len(sc.rel.keys)], groupKey{text: keyText(w), col: f.Column})
	return f.Ref(), nil
}

// joinWindow puts n's function into a window of the same partitions and order that is on top already, or else n on top.
func joinWindow(node logical.Node, n *logical.Window) logical.Node {
	top, ok := node.(*logical.Window)
	if !ok || len(top.Partition) != len(n.Partition) || len(top.Order) != len(n.Order) {
		return n
	}
	for i, e := range n.Partition {
		if !expr.Equal(e, top.Partition[i]) {
			return n
		}
	}
	for i, k := range n.Order {
		if k.Desc != top.Order[i].Desc || !expr.Equal(k.Expr, top.Order[i].Expr) {
			return n
		}
	}
	have := make(map[logical.ColumnID]bool)
	for _, c := range top.Input.Columns() {
		have[c.ID] = true
	}
	for _, id := range expr.Columns(n.Exprs()...) {
		if !have[id] {
			return n
		}
	}
	out := *top
	out.Funcs = append(top.Funcs[:len(top.Funcs):len(top.Funcs)], n.Funcs...)
	return &out
}

// windowFunc translates the function without its window.
func (sc *scope) windowFunc(w *provider.Window) (logical.WindowFunc, error) {
	f := logical.WindowFunc{Column: logical.Column{ID: sc.t.ids.Next(), Name: w.Spec.Func, Nullable: true}, Func: exec.WindowFunc(w.Spec.Func)}
	if w.Spec.Distinct {
		return f, mysqlerr.WindowError(1235, "This version of MySQL doesn't yet support '<window function>(DISTINCT ..)'")
	}
	var args []expr.Expr
	for _, a := range w.Args() {
		e, err := sc.expr(a)
		if err != nil {
			return f, err
		}
		args = append(args, e)
	}
	count := func(low, high int) error {
		if len(args) < low || len(args) > high {
			return sql.ErrInvalidArgumentNumber.New(strings.ToUpper(w.Spec.Func), fmt.Sprintf("%d to %d", low, high), len(args))
		}
		return nil
	}
	switch f.Func {
	case exec.WindowRowNumber, exec.WindowRank, exec.WindowDenseRank:
		f.Type, f.Nullable = arrow.PrimitiveTypes.Uint64, false
		return f, count(0, 0)
	case exec.WindowPercentRank, exec.WindowCumeDist:
		f.Type, f.Nullable = arrow.PrimitiveTypes.Float64, false
		return f, count(0, 0)
	case exec.WindowNtile:
		f.Type, f.Nullable = arrow.PrimitiveTypes.Uint64, false
		if err := count(1, 1); err != nil {
			return f, err
		}
		return f, sc.windowNumber(w, args[0], 1, &f.N)
	case exec.WindowLag, exec.WindowLead:
		if err := count(1, 3); err != nil {
			return f, err
		}
		return f, sc.neighbour(w, args, &f)
	case exec.WindowFirst, exec.WindowLast, "any_value":
		if f.Func == "any_value" {
			f.Func = exec.WindowFirst
		}
		if err := count(1, 1); err != nil {
			return f, err
		}
	case exec.WindowNth:
		if err := count(2, 2); err != nil {
			return f, err
		}
		if err := sc.windowNumber(w, args[1], 1, &f.N); err != nil {
			return f, err
		}
	default:
		return f, windowAggregate(w, args, &f)
	}
	f.Args, f.Type = args[:1], args[0].Type()
	return f, nil
}

// windowAggregate is an aggregate over a window.
func windowAggregate(w *provider.Window, args []expr.Expr, f *logical.WindowFunc) error {
	if !isAggregateName(w.Spec.Func) {
		return unsupported("window function %s", strings.ToUpper(w.Spec.Func))
	}
	a, err := namedAggregate(w.Spec.Func, args)
	if err != nil {
		return err
	}
	f.Func, f.Agg, f.Args, f.Type = exec.WindowAggregate, a.Func, a.Args, a.Type
	f.Nullable = a.Nullable
	return nil
}

// neighbour reads the offset and the default of LAG and LEAD.
func (sc *scope) neighbour(w *provider.Window, args []expr.Expr, f *logical.WindowFunc) error {
	f.N, f.Type, f.Args = 1, args[0].Type(), args[:1]
	if len(args) > 1 {
		if err := sc.windowNumber(w, args[1], 0, &f.N); err != nil {
			return err
		}
	}
	if len(args) > 2 {
		if lit, ok := args[2].(*expr.Literal); ok && !lit.Value.IsValid() {
			return nil
		}
		f.Type = expr.Unify(args[0].Type(), args[2].Type())
		if f.Type == nil {
			return unsupported("%s of a %s with a default of type %s", strings.ToUpper(w.Spec.Func), args[0].Type(), args[2].Type())
		}
		f.Args = []expr.Expr{coerce(args[0], f.Type), coerce(args[2], f.Type)}
	}
	return nil
}

// windowNumber reads an argument that must be a whole number, of at least low.
func (sc *scope) windowNumber(w *provider.Window, e expr.Expr, low uint64, into *uint64) error {
	n, ok := expr.WholeNumber(e)
	if !ok || n < low {
		return mysqlerr.WrongArguments(strings.ToLower(w.Spec.Func))
	}
	*into = n
	return nil
}

// frame translates the frame of a function over the window n.
func (sc *scope) frame(w *provider.Window, n *logical.Window, f *logical.WindowFunc) error {
	offsets := w.Offsets()
	bound := func(b provider.WindowBound, out *exec.FrameBound) error {
		out.Kind = exec.BoundKind(b.Kind)
		if !b.Value {
			return nil
		}
		e := offsets[0]
		offsets = offsets[1:]
		return sc.frameOffset(w, n, b, e, out)
	}
	f.Frame.Rows = w.Spec.Rows
	if err := bound(w.Spec.Start, &f.Frame.Start); err != nil {
		return err
	}
	if err := bound(w.Spec.End, &f.Frame.End); err != nil {
		return err
	}
	return frameKey(n, &f.Frame)
}

func (sc *scope) frameOffset(w *provider.Window, n *logical.Window, b provider.WindowBound, offset sql.Expression, out *exec.FrameBound) error {
	amount, err := sc.expr(offset)
	if err != nil {
		return err
	}
	lit, ok := amount.(*expr.Literal)
	if !ok || !lit.Value.IsValid() {
		return mysqlerr.WindowError(3590, "Window '<unnamed window>' has a non-constant frame bound.")
	}
	if w.Spec.Rows {
		if out.Offset, ok = expr.WholeNumber(amount); !ok || b.Unit != "" {
			return mysqlerr.WindowError(3586, "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type")
		}
		return nil
	}
	if len(n.Order) != 1 {
		return mysqlerr.WindowError(3587, "Window '<unnamed window>' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type")
	}
	key := n.Order[0].Expr
	down := (exec.BoundKind(b.Kind) == exec.OffsetPreceding) != n.Order[0].Desc
	name := "date_add"
	if down {
		name = "date_sub"
	}
	switch {
	case b.Unit != "":
		if !isTemporal(key.Type()) {
			return mysqlerr.WindowError(3589, "Window '<unnamed window>' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.")
		}
		unit, err := expr.NewLiteral(b.Unit)
		if err != nil {
			return err
		}
		out.Value, err = expr.NewCall(name, key, amount, unit)
		return err
	case isTemporal(key.Type()):
		return mysqlerr.WindowError(3588, "Window '<unnamed window>' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.")
	}
	p, s, exact := digits(key.Type())
	if id := key.Type().ID(); !exact && id != arrow.FLOAT32 && id != arrow.FLOAT64 {
		return mysqlerr.WindowError(3587, "Window '<unnamed window>' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type")
	}
	if exact { // as a decimal of one digit more nothing overflows
		key = coerce(key, decimalType(p+1+decimalDigitsOf(amount), s))
	}
	op := "+"
	if down {
		op = "-"
	}
	out.Value, err = expr.NewCall(op, key, amount)
	return err
}

// decimalDigitsOf is how many digits before the point a constant may have.
func decimalDigitsOf(e expr.Expr) int32 {
	p, _, ok := digits(e.Type())
	if !ok {
		return 0
	}
	return p
}

func isTemporal(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.DATE32, arrow.DATE64, arrow.TIMESTAMP, arrow.DURATION, arrow.TIME32, arrow.TIME64:
		return true
	}
	return false
}

// frameKey gives the sort key and the values of the bounds one type.
func frameKey(n *logical.Window, f *exec.Frame) error {
	if f.Start.Value == nil && f.End.Value == nil {
		return nil
	}
	t := n.Order[0].Expr.Type()
	for _, b := range []exec.FrameBound{f.Start, f.End} {
		if b.Value != nil {
			t = expr.Unify(t, b.Value.Type())
		}
	}
	if t == nil {
		return errs.New(errs.ErrUnsupported, "a RANGE frame over %s", n.Order[0].Expr.Type())
	}
	f.Key = coerce(n.Order[0].Expr, t)
	for _, b := range []*exec.FrameBound{&f.Start, &f.End} {
		if b.Value != nil {
			b.Value = coerce(b.Value, t)
		}
	}
	return nil
}

// isWindowed says that an expression holds a window function of its own query.
func isWindowed(e sql.Expression) bool {
	found := false
	sql.Inspect(e, func(e sql.Expression) bool {
		switch e.(type) {
		case *provider.Window:
			found = true
		case *plan.Subquery, *plan.ExistsSubquery:
			return false
		}
		return !found
	})
	return found
}

// having filters what GROUP BY made. go-mysql-server computes the aliases of the SELECT list below HAVING, but window functions see the rows that
// HAVING leaves.
func (t *translator) having(n *plan.Having, outer *scope) (*relation, error) {
	p, ok := n.Child.(*plan.Project)
	if !ok {
		return t.filter(n.Child, n.Cond, outer)
	}
	var plain, windowed []sql.Expression
	for _, e := range p.Projections {
		if isWindowed(e) {
			windowed = append(windowed, e)
		} else {
			plain = append(plain, e)
		}
	}
	if len(windowed) == 0 {
		return t.filter(n.Child, n.Cond, outer)
	}
	r, err := t.filter(plan.NewProject(plain, p.Child), n.Cond, outer)
	if err != nil {
		return nil, err
	}
	return t.extend(r, windowed, outer)
}

// extend adds expressions to a relation's columns.
func (t *translator) extend(r *relation, es []sql.Expression, outer *scope) (*relation, error) {
	sc := t.scope(r, outer)
	out := append([]output(nil), r.out...)
	var named []logical.Named
	for _, p := range es {
		e, o, err := t.projection(p, sc)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
		if ref, ok := e.(*expr.Column); !ok || ref.ID != o.col.ID {
			named = append(named, logical.Named{Column: o.col, Expr: e})
		}
	}
	node := sc.rel.node
	if len(named) > 0 {
		var all []logical.Named
		for _, c := range node.Columns() {
			all = append(all, logical.Named{Column: c, Expr: c.Ref()})
		}
		node = &logical.Project{Input: node, Exprs: append(all, named...)}
	}
	return &relation{node: node, out: out, keys: sc.rel.keys}, nil
}

// below translates what a projection stands on. go-mysql-server may sort below the expressions of the SELECT list; window functions among them are
// computed before the sort, whose order they would undo.
func (t *translator) below(n *plan.Project, outer *scope) (*relation, error) {
	s, ok := n.Child.(*plan.Sort)
	if !ok {
		return t.relation(n.Child, outer)
	}
	var windows []*provider.Window
	for _, e := range n.Projections {
		sql.Inspect(e, func(e sql.Expression) bool {
			switch e := e.(type) {
			case *provider.Window:
				windows = append(windows, e)
				return false
			case *plan.Subquery, *plan.ExistsSubquery:
				return false
			}
			return true
		})
	}
	r, err := t.relation(s.Child, outer)
	if err != nil {
		return nil, err
	}
	sc := t.scope(r, outer)
	for _, w := range windows {
		if _, err := sc.expr(w); err != nil {
			return nil, err
		}
	}
	return t.sortRelation(sc.rel, s.SortFields, outer)
}
