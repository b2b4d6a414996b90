package translate

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
)

// validate refuses what MySQL refuses in a SELECT and go-mysql-server takes, or answers with another error. Errors carry their MySQL codes.
func validate(stmt ast.SQLNode) error {
	return ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.Select:
			return true, validateSelect(n)
		case *ast.FuncExpr:
			if n.Over == nil && isAggregateName(n.Name.Lowered()) {
				return true, noAggregates(n.Exprs)
			}
		case *ast.AliasedTableExpr:
			if sub, ok := n.Expr.(*ast.Subquery); ok && len(sub.Columns) == 0 {
				return true, distinctNames(sub.Select)
			}
		}
		return true, nil
	}, stmt)
}

func validateSelect(sel *ast.Select) error {
	if sel.Into != nil && (sel.Into.Outfile != "" || sel.Into.Dumpfile != "") {
		return sql.ErrSecureFilePriv.New()
	}
	if sel.Where != nil {
		if err := noAggregates(sel.Where.Expr); err != nil {
			return err
		}
	}
	if err := noAggregates(sel.GroupBy); err != nil {
		return err
	}
	if err := windowsExist(sel); err != nil {
		return err
	}
	if err := windowsAllowed(sel); err != nil {
		return err
	}
	names := make(map[string]bool)
	for _, t := range sel.From {
		if err := tableNames(t, names); err != nil {
			return err
		}
	}
	return nil
}

// noAggregates refuses aggregates and window functions of the query itself; those of subqueries are theirs.
func noAggregates(where ast.SQLNode) error {
	return ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.Subquery:
			return false, nil
		case *ast.FuncExpr:
			switch {
			case n.Over != nil:
				return false, mysqlerr.WindowNotAllowed(n.Name.Lowered())
			case isAggregateName(n.Name.Lowered()):
				return false, mysqlerr.GroupFunctionNotAllowed()
			}
		}
		return true, nil
	}, where)
}

// windowsExist finds the windows that OVER names.
func windowsExist(sel *ast.Select) error {
	return ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *ast.Subquery:
			return false, nil
		case *ast.FuncExpr:
			if n.Over == nil || n.Over.NameRef.IsEmpty() {
				break
			}
			for _, w := range sel.Window {
				if w.Name.Lowered() == n.Over.NameRef.Lowered() {
					return true, nil
				}
			}
			return false, sql.ErrUnknownWindowName.New(n.Over.NameRef.String())
		}
		return true, nil
	}, sel.SelectExprs)
}

// tableNames gathers the names of one FROM clause, which must differ.
func tableNames(t ast.TableExpr, names map[string]bool) error {
	switch t := t.(type) {
	case *ast.AliasedTableExpr:
		name := t.As.String()
		if table, ok := t.Expr.(ast.TableName); ok && name == "" {
			name = table.DbQualifier.String() + "." + table.Name.String()
		}
		key := strings.ToLower(name)
		if names[key] && name != "" {
			return sql.ErrDuplicateAliasOrTable.New(strings.TrimPrefix(name, "."))
		}
		names[key] = true
	case *ast.ParenTableExpr:
		for _, e := range t.Exprs {
			if err := tableNames(e, names); err != nil {
				return err
			}
		}
	case *ast.JoinTableExpr:
		if err := tableNames(t.LeftExpr, names); err != nil {
			return err
		}
		return tableNames(t.RightExpr, names)
	}
	return nil
}

// distinctNames refuses two columns of one name in a derived table, as far as they are written out.
func distinctNames(s ast.SelectStatement) error {
	for {
		switch u := s.(type) {
		case *ast.SetOp:
			s = u.Left
			continue
		case *ast.ParenSelect:
			s = u.Select
			continue
		}
		break
	}
	sel, ok := s.(*ast.Select)
	if !ok {
		return nil
	}
	seen := make(map[string]bool)
	for _, e := range sel.SelectExprs {
		a, ok := e.(*ast.AliasedExpr)
		if !ok {
			continue
		}
		name := a.As.Lowered()
		if col, isCol := a.Expr.(*ast.ColName); isCol && name == "" {
			name = col.Name.Lowered()
		}
		if name != "" && seen[name] {
			return mysqlerr.DuplicateColumn(name)
		}
		seen[name] = true
	}
	return nil
}
