package translate

import (
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/provider"
)

// expr translates a scalar expression. Subqueries inside it are joined to the scope's relation.
func (sc *scope) expr(e sql.Expression) (expr.Expr, error) {
	if sc.depth++; sc.depth > depthMax {
		return nil, errs.New(errs.ErrInvalid, "an expression nests too deeply")
	}
	defer func() { sc.depth-- }()
	if _, plain := e.(*expression.GetField); !plain {
		if k, ok := sc.groupKey(e); ok {
			return k, nil
		}
	}
	if out, done, err := sc.leaf(e); done || err != nil {
		return out, err
	}
	if out, done, err := sc.operator(e); done || err != nil {
		return out, err
	}
	if out, done, err := sc.subqueryExpr(e); done || err != nil {
		return out, err
	}
	if w, ok := e.(*provider.Window); ok {
		return sc.window(w)
	}
	if f, ok := e.(sql.FunctionExpression); ok {
		return sc.function(f)
	}
	return nil, unsupported("expression %s (%T)", e, e)
}

// leaf translates what has no operands of its own.
func (sc *scope) leaf(e sql.Expression) (expr.Expr, bool, error) {
	switch e := e.(type) {
	case *expression.GetField:
		if e.Table() == "dual" && e.Name() == "" { // the only column of no table
			return expr.Null(arrow.Null), true, nil
		}
		out, err := sc.column(e)
		return out, true, err
	case *expression.Literal:
		out, err := provider.Literal(sc.t.ctx, e.Value(), e.Type())
		return orNil(out, err), true, err
	case *tagged:
		out, err := sc.expr(e.Child)
		return out, true, err
	case *cased:
		out, err := expr.NewLiteral(e.text)
		return orNil(out, err), true, err
	case *number:
		out, err := expr.ParseDecimal(e.text)
		return orNil(out, err), true, err
	case expression.NamedLiteral:
		out, err := provider.Literal(sc.t.ctx, e.Value(), e.Type())
		return orNil(out, err), true, err
	case *expression.SystemVar, *expression.UserVar:
		out, err := sc.constant(e)
		return out, true, err
	case *expression.Alias:
		out, err := sc.expr(e.Child)
		return out, true, err
	case *expression.Wrapper:
		return nil, true, unsupported("DEFAULT in an expression")
	}
	return nil, false, nil
}

func orNil(l *expr.Literal, err error) expr.Expr {
	if err != nil {
		return nil
	}
	return l
}

// constant evaluates an expression of the session now.
func (sc *scope) constant(e sql.Expression) (expr.Expr, error) {
	v, err := e.Eval(sc.t.ctx, nil)
	if err != nil {
		return nil, err
	}
	return orNil2(provider.Literal(sc.t.ctx, v, e.Type()))
}

func orNil2(l *expr.Literal, err error) (expr.Expr, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// operator translates operators and predicates.
func (sc *scope) operator(e sql.Expression) (expr.Expr, bool, error) { //nolint:funlen // a flat switch
	call := func(name string, args ...sql.Expression) (expr.Expr, bool, error) {
		out, err := sc.call(name, args...)
		return out, true, err
	}
	switch e := e.(type) {
	case *expression.And:
		return sc.junction("and", operands(e, func(x sql.Expression) (l, r sql.Expression, ok bool) {
			if a, is := x.(*expression.And); is {
				return a.Left(), a.Right(), true
			}
			return nil, nil, false
		}))
	case *expression.Or:
		return sc.junction("or", operands(e, func(x sql.Expression) (l, r sql.Expression, ok bool) {
			if o, is := x.(*expression.Or); is {
				return o.Left(), o.Right(), true
			}
			return nil, nil, false
		}))
	case *expression.Xor:
		return call("xor", e.Left(), e.Right())
	case *expression.Not:
		return sc.not(e)
	case *expression.Equals:
		return sc.comparison("=", e.Left(), e.Right())
	case *expression.NullSafeEquals:
		return sc.comparison("<=>", e.Left(), e.Right())
	case *expression.LessThan:
		return sc.comparison("<", e.Left(), e.Right())
	case *expression.LessThanOrEqual:
		return sc.comparison("<=", e.Left(), e.Right())
	case *expression.GreaterThan:
		return sc.comparison(">", e.Left(), e.Right())
	case *expression.GreaterThanOrEqual:
		return sc.comparison(">=", e.Left(), e.Right())
	case *expression.IsNull:
		return call("is_null", e.Child)
	case *expression.IsTrue:
		if strings.Contains(e.String(), expression.IsFalseStr) {
			return call("is_false", e.Child)
		}
		return call("is_true", e.Child)
	case *expression.Between:
		return call("between", e.Val, e.Lower, e.Upper)
	case *expression.InTuple:
		return sc.in(e.Left(), e.Right())
	case *expression.Like:
		if e.Escape != nil {
			return call("like", e.Left(), e.Right(), e.Escape)
		}
		return call("like", e.Left(), e.Right())
	case *expression.Arithmetic:
		return sc.arithmetic(strings.ToLower(e.Op), e.Left(), e.Right())
	case *expression.Div:
		return call("/", e.Left(), e.Right())
	case *expression.IntDiv:
		return call("div", e.Left(), e.Right())
	case *expression.Mod:
		return call("%", e.Left(), e.Right())
	case *expression.BitOp:
		return call(e.Op, e.Left(), e.Right())
	case *expression.UnaryMinus:
		return sc.negate(e)
	case *expression.Convert:
		out, err := sc.convert(e)
		return out, true, err
	case *expression.Case:
		out, err := sc.caseExpr(e)
		return out, true, err
	case *expression.Binary:
		return sc.cast(e.Child, arrow.BinaryTypes.Binary)
	case *expression.CollatedExpression:
		out, err := sc.collated(e)
		return out, true, err
	case *expression.ConvertUsing:
		if e.TargetCharSet != sql.CharacterSet_utf8mb4 && e.TargetCharSet != sql.CharacterSet_utf8mb3 {
			return nil, true, unsupported("CONVERT USING %s", e.TargetCharSet.Name())
		}
		return sc.cast(e.Child, arrow.BinaryTypes.String)
	}
	return nil, false, nil
}

// operands lists what a chain of one operator joins, without recursion down its left side.
func operands(e sql.Expression, split func(sql.Expression) (l, r sql.Expression, ok bool)) []sql.Expression {
	var reversed []sql.Expression
	for {
		l, r, ok := split(e)
		if !ok {
			break
		}
		reversed = append(reversed, r)
		e = l
	}
	out := []sql.Expression{e}
	for i := len(reversed) - 1; i >= 0; i-- {
		out = append(out, reversed[i])
	}
	return out
}

// junction joins operands as a balanced tree: a long chain stays shallow.
func (sc *scope) junction(name string, operands []sql.Expression) (expr.Expr, bool, error) {
	parts := make([]expr.Expr, len(operands))
	for i, o := range operands {
		e, err := sc.expr(o)
		if err != nil {
			return nil, true, err
		}
		parts[i] = e
	}
	for len(parts) > 1 {
		next := parts[:0]
		for i := 0; i < len(parts); i += 2 {
			if i+1 == len(parts) {
				next = append(next, parts[i])
				break
			}
			e, err := expr.NewCall(name, parts[i], parts[i+1])
			if err != nil {
				return nil, true, err
			}
			next = append(next, e)
		}
		parts = next
	}
	return parts[0], true, nil
}

// call translates the arguments and applies a function of package expr.
func (sc *scope) call(name string, args ...sql.Expression) (expr.Expr, error) {
	in := make([]expr.Expr, len(args))
	for i, a := range args {
		e, err := sc.expr(a)
		if err != nil {
			return nil, err
		}
		in[i] = e
	}
	return expr.NewCall(name, in...)
}

// not keeps <> as one operator, for the planner's sake.
func (sc *scope) not(e *expression.Not) (expr.Expr, bool, error) {
	if eq, ok := e.Child.(*expression.Equals); ok && !isTuple(eq.Left()) && !hasSubquery(eq) {
		out, err := sc.call("<>", eq.Left(), eq.Right())
		return out, true, err
	}
	out, err := sc.call("not", e.Child)
	return out, true, err
}

func isTuple(e sql.Expression) bool {
	_, ok := e.(expression.Tuple)
	return ok
}

// comparison compares scalars, or tuples element by element.
func (sc *scope) comparison(op string, l, r sql.Expression) (expr.Expr, bool, error) {
	lt, lok := l.(expression.Tuple)
	rt, rok := r.(expression.Tuple)
	if !lok && !rok {
		out, err := sc.call(op, l, r)
		return out, true, err
	}
	if !lok || !rok || len(lt) != len(rt) {
		return nil, true, errs.New(errs.ErrOperands, "Operands of %s have different numbers of columns", op)
	}
	if op != "=" && op != "<=>" {
		return nil, true, unsupported("%s over tuples", op)
	}
	out, err := sc.tupleEquals(op, lt, rt)
	return out, true, err
}

func (sc *scope) tupleEquals(op string, l, r []sql.Expression) (expr.Expr, error) {
	var out expr.Expr
	for i := range l {
		eq, err := sc.call(op, l[i], r[i])
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = eq
		} else if out, err = expr.NewCall("and", out, eq); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// in translates IN over a list, MEMBER OF, and IN over a list of tuples.
func (sc *scope) in(left, right sql.Expression) (expr.Expr, bool, error) {
	list, ok := right.(expression.Tuple)
	if !ok {
		list = expression.Tuple{right}
	}
	if len(list) == 1 {
		if f, ok := list[0].(*provider.Func); ok && f.FunctionName() == dialect.Members {
			out, err := sc.call("member_of", left, f.Children()[0])
			return out, true, err
		}
	}
	if lt, ok := left.(expression.Tuple); ok {
		out, err := sc.tupleIn(lt, list)
		return out, true, err
	}
	args := append([]sql.Expression{left}, list...)
	out, err := sc.call("in", args...)
	return out, true, err
}

func (sc *scope) tupleIn(left expression.Tuple, list expression.Tuple) (expr.Expr, error) {
	var out expr.Expr
	for _, item := range list {
		it, ok := item.(expression.Tuple)
		if !ok || len(it) != len(left) {
			return nil, errs.New(errs.ErrOperands, "Operand should contain %d columns", len(left))
		}
		eq, err := sc.tupleEquals("=", left, it)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = eq
		} else if out, err = expr.NewCall("or", out, eq); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// arithmetic is + - *, or a date and an interval.
func (sc *scope) arithmetic(op string, l, r sql.Expression) (expr.Expr, bool, error) {
	if iv, ok := r.(*expression.Interval); ok {
		name := "date_add"
		if op == "-" {
			name = "date_sub"
		}
		out, err := sc.dateMath(name, l, iv)
		return out, true, err
	}
	if iv, ok := l.(*expression.Interval); ok && op == "+" {
		out, err := sc.dateMath("date_add", r, iv)
		return out, true, err
	}
	out, err := sc.call(op, l, r)
	return out, true, err
}

// dateMath is a date, an amount and a unit in lower case.
func (sc *scope) dateMath(name string, date sql.Expression, iv *expression.Interval) (expr.Expr, error) {
	d, err := sc.expr(date)
	if err != nil {
		return nil, err
	}
	value, unitName := iv.Child, strings.ToLower(iv.Unit)
	if f, ok := value.(*provider.Func); ok && f.FunctionName() == dialect.Interval {
		text, err := f.Children()[1].Eval(sc.t.ctx, nil)
		if err != nil {
			return nil, err
		}
		value = f.Children()[0]
		unitName, _ = text.(string)
	}
	amount, err := sc.expr(value)
	if err != nil {
		return nil, err
	}
	unit, err := expr.NewLiteral(unitName)
	if err != nil {
		return nil, err
	}
	return expr.NewCall(name, d, amount, unit)
}

// negate folds the sign into number literals, so that -1 is a literal for index lookups.
func (sc *scope) negate(e *expression.UnaryMinus) (expr.Expr, bool, error) {
	out, err := sc.call("neg", e.Child)
	return out, true, err
}

func (sc *scope) caseExpr(e *expression.Case) (expr.Expr, error) {
	var args []expr.Expr
	for _, b := range e.Branches {
		var cond expr.Expr
		var err error
		if e.Expr != nil {
			cond, err = sc.call("=", e.Expr, b.Cond)
		} else {
			cond, err = sc.expr(b.Cond)
		}
		if err != nil {
			return nil, err
		}
		value, err := sc.expr(b.Value)
		if err != nil {
			return nil, err
		}
		args = append(args, cond, value)
	}
	if e.Else != nil {
		other, err := sc.expr(e.Else)
		if err != nil {
			return nil, err
		}
		args = append(args, other)
	}
	return expr.NewCall("case", args...)
}

// collated accepts the collation that lakesql uses for everything.
func (sc *scope) collated(e *expression.CollatedExpression) (expr.Expr, error) {
	collation, _ := e.CollationCoercibility(sc.t.ctx)
	switch name := collation.Name(); {
	case strings.HasSuffix(name, "_bin"), name == "binary":
		return sc.expr(e.Children()[0])
	default:
		return nil, unsupported("COLLATE %s: strings compare byte for byte", name)
	}
}

func (sc *scope) cast(e sql.Expression, t arrow.DataType) (expr.Expr, bool, error) {
	in, err := sc.expr(e)
	if err != nil {
		return nil, true, err
	}
	return &expr.Call{Func: "cast", Args: []expr.Expr{in}, T: t}, true, nil
}

// coerce converts implicitly, as UNION and VALUES do.
func coerce(e expr.Expr, t arrow.DataType) expr.Expr {
	if arrow.TypeEqual(e.Type(), t) {
		return e
	}
	return &expr.Call{Func: "coerce", Args: []expr.Expr{e}, T: t}
}

// hasSubquery says that an expression holds a subquery.
func hasSubquery(e sql.Expression) bool {
	found := false
	sql.Inspect(e, func(e sql.Expression) bool {
		switch e.(type) {
		case *plan.Subquery, *plan.ExistsSubquery, *plan.InSubquery:
			found = true
		}
		return !found
	})
	return found
}

// isUnsupported tells what lakesql cannot do from what is wrong with the statement.
func isUnsupported(err error) bool { return errors.Is(err, errs.ErrUnsupported) }
