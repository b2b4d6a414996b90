package translate

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/provider"
)

// go-mysql-server binds windows to a node of its own: not over GROUP BY, not every function and frame, and functions that differ in what their text leaves
// out are one to it. So each f(x) OVER (...) of a parsed statement becomes a call __window(spec, x, keys..., offsets...), which is bound as any function is, wherever an
// expression may stand; scope.window makes a plan of it.

// callWindows rewrites the window functions of one SELECT in place; those of subqueries have their own turn.
func callWindows(sel *ast.Select) {
	named := make(map[string]*ast.WindowDef, len(sel.Window))
	for _, w := range sel.Window {
		named[w.Name.Lowered()] = w
	}
	rewrite := func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.Subquery:
			return false, nil
		case *ast.FuncExpr:
			if n.Over != nil {
				callWindow(n, named)
			}
		}
		return true, nil
	}
	_ = ast.Walk(rewrite, sel.SelectExprs, sel.OrderBy)
	sel.Window = nil
}

func callWindow(f *ast.FuncExpr, named map[string]*ast.WindowDef) {
	spec := &provider.WindowSpec{Func: f.Name.Lowered(), Distinct: f.Distinct}
	def, err := inherited((*ast.WindowDef)(f.Over), named, 0)
	if err != nil {
		spec.Err = err
		def = &ast.WindowDef{}
	}
	exprs := ast.SelectExprs{&ast.AliasedExpr{Expr: injected(spec)}}
	for _, e := range f.Exprs {
		if _, star := e.(*ast.StarExpr); star {
			spec.Star = true
			continue
		}
		exprs = append(exprs, e)
		spec.Args++
	}
	add := func(e ast.Expr) { exprs = append(exprs, &ast.AliasedExpr{Expr: e}) }
	for _, e := range def.PartitionBy {
		add(e)
	}
	spec.Partition = len(def.PartitionBy)
	for _, o := range def.OrderBy {
		add(o.Expr)
		spec.Desc = append(spec.Desc, strings.EqualFold(o.Direction, ast.DescScr))
	}
	spec.Start, spec.End = provider.WindowBound{Kind: string(exec.UnboundedPreceding)}, provider.WindowBound{Kind: string(exec.UnboundedFollowing)}
	if len(def.OrderBy) > 0 || def.Frame != nil {
		spec.End.Kind = string(exec.CurrentRow)
	}
	if def.Frame != nil {
		spec.Rows = def.Frame.Unit == ast.RowsUnit
		spec.Start = frameBound(def.Frame.Extent.Start, add)
		if def.Frame.Extent.End != nil {
			spec.End = frameBound(def.Frame.Extent.End, add)
		}
	}
	f.Name, f.Distinct, f.Over, f.Exprs = ast.NewColIdent(dialect.Window), false, nil, exprs
}

func frameBound(b *ast.FrameBound, add func(ast.Expr)) provider.WindowBound {
	switch b.Type {
	case ast.UnboundedPreceding:
		return provider.WindowBound{Kind: string(exec.UnboundedPreceding)}
	case ast.UnboundedFollowing:
		return provider.WindowBound{Kind: string(exec.UnboundedFollowing)}
	case ast.CurrentRow:
		return provider.WindowBound{Kind: string(exec.CurrentRow)}
	}
	out := provider.WindowBound{Kind: string(exec.OffsetPreceding), Value: true}
	if b.Type == ast.ExprFollowing {
		out.Kind = string(exec.OffsetFollowing)
	}
	if iv, ok := b.Expr.(*ast.IntervalExpr); ok {
		out.Unit = strings.ToLower(iv.Unit)
		add(iv.Expr)
	} else {
		add(b.Expr)
	}
	return out
}

// inherited is a window with what it takes over from the one that it names.
func inherited(def *ast.WindowDef, named map[string]*ast.WindowDef, depth int) (*ast.WindowDef, error) {
	if def.NameRef.IsEmpty() {
		return def, nil
	}
	base, ok := named[def.NameRef.Lowered()]
	if !ok {
		return nil, sql.ErrUnknownWindowName.New(def.NameRef.String())
	}
	if depth > len(named) {
		return nil, mysqlerr.WindowCircle()
	}
	base, err := inherited(base, named, depth+1)
	if err != nil {
		return nil, err
	}
	simple := len(def.PartitionBy) == 0 && len(def.OrderBy) == 0 && def.Frame == nil
	out := *def
	out.NameRef = ast.ColIdent{}
	switch {
	case len(def.PartitionBy) > 0:
		return nil, mysqlerr.WindowError(3581, "A window which depends on another cannot define partitioning.")
	case len(def.OrderBy) > 0 && len(base.OrderBy) > 0:
		return nil, mysqlerr.WindowError(3583, "Window '"+def.NameRef.String()+"' has an ORDER BY, so a window that depends on it cannot have one.")
	case base.Frame != nil && !simple:
		return nil, mysqlerr.WindowError(3582, "Window '"+def.NameRef.String()+"' has a frame definition, so cannot be referenced by another window.")
	}
	out.PartitionBy = base.PartitionBy
	if len(out.OrderBy) == 0 {
		out.OrderBy = base.OrderBy
	}
	if out.Frame == nil {
		out.Frame = base.Frame
	}
	return &out, nil
}

// windowsAllowed refuses window functions outside of the SELECT list and ORDER BY, and inside of one another and of aggregates.
func windowsAllowed(sel *ast.Select) error {
	outer := false // inside of an aggregate or a window function
	var visit func(n ast.SQLNode) (bool, error)
	visit = func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.Subquery:
			return false, nil
		case *ast.FuncExpr:
			if outer && n.Over != nil {
				return false, mysqlerr.WindowNotAllowed(n.Name.Lowered())
			}
			if outer || n.Over == nil && !isAggregateName(n.Name.Lowered()) {
				return true, nil
			}
			outer = true
			err := ast.Walk(visit, n.Exprs)
			if err == nil && n.Over != nil {
				err = ast.Walk(visit, n.Over.PartitionBy, n.Over.OrderBy)
			}
			outer = false
			return false, err
		}
		return true, nil
	}
	if err := ast.Walk(visit, sel.SelectExprs, sel.OrderBy); err != nil {
		return err
	}
	outer = true
	if sel.Having != nil {
		if err := ast.Walk(visit, sel.Having.Expr); err != nil {
			return err
		}
	}
	return ast.Walk(func(n ast.SQLNode) (bool, error) {
		if j, ok := n.(*ast.JoinTableExpr); ok && j.Condition.On != nil {
			return true, ast.Walk(visit, j.Condition.On)
		}
		_, sub := n.(*ast.Subquery)
		return !sub, nil
	}, sel.From)
}
