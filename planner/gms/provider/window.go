package provider

import (
	"fmt"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
)

// WindowSpec says what the arguments of a Window are. It is itself the first argument where a statement is parsed.
type WindowSpec struct {
	*expression.Literal
	Func            string // lower case
	Star, Distinct  bool
	Args, Partition int // how many arguments are the function's, and how many keys of PARTITION BY follow
	Desc            []bool
	Rows            bool
	Start, End      WindowBound
	Err             error // what is wrong with the window
}

// WindowBound is one end of a frame.
type WindowBound struct {
	Kind  string // as exec.BoundKind
	Unit  string // of an INTERVAL, lower case; "" = a number
	Value bool   // an argument behind the sort keys holds the offset
}

// WithResolvedChildren implements ast.Injectable.
func (w *WindowSpec) WithResolvedChildren([]any) (any, error) {
	if w.Err != nil {
		return nil, w.Err
	}
	out := *w
	out.Literal = expression.NewLiteral(w.String(), types.LongText)
	return &out, nil
}

// String implements fmt.Stringer. It tells all but the arguments, so that equal texts are equal functions.
func (w *WindowSpec) String() string {
	return fmt.Sprintf("%s star=%t %d %d %v rows=%t %v %v", w.Func, w.Star, w.Args, w.Partition, w.Desc, w.Rows, w.Start, w.End)
}

// WithChildren implements sql.Expression.
func (w *WindowSpec) WithChildren(...sql.Expression) (sql.Expression, error) { return w, nil }

// Window is a window function in a plan of go-mysql-server: an ordinary function to name resolution, which package translate takes over.
type Window struct {
	Spec *WindowSpec
	args []sql.Expression // without the spec
}

var (
	_ sql.FunctionExpression = (*Window)(nil)
	_ sql.CollationCoercible = (*Window)(nil)
)

func newWindow(args ...sql.Expression) (sql.Expression, error) {
	if len(args) > 0 {
		if spec, ok := args[0].(*WindowSpec); ok {
			return &Window{Spec: spec, args: args[1:]}, nil
		}
	}
	return nil, sql.ErrFunctionNotFound.New(dialect.Window)
}

// Args are the function's own arguments.
func (w *Window) Args() []sql.Expression { return w.args[:w.Spec.Args] }

// Partition are the keys of PARTITION BY.
func (w *Window) Partition() []sql.Expression {
	return w.args[w.Spec.Args : w.Spec.Args+w.Spec.Partition]
}

// Order are the keys of ORDER BY.
func (w *Window) Order() []sql.Expression {
	at := w.Spec.Args + w.Spec.Partition
	return w.args[at : at+len(w.Spec.Desc)]
}

// Offsets are the offsets of the frame's bounds, those that have one.
func (w *Window) Offsets() []sql.Expression {
	return w.args[w.Spec.Args+w.Spec.Partition+len(w.Spec.Desc):]
}

// FunctionName implements sql.FunctionExpression.
func (w *Window) FunctionName() string { return dialect.Window }

// Description implements sql.FunctionExpression.
func (w *Window) Description() string { return "window function " + w.Spec.Func }

// Resolved implements sql.Expression.
func (w *Window) Resolved() bool { return expression.ExpressionsResolved(w.args...) }

// String implements fmt.Stringer.
func (w *Window) String() string {
	parts := make([]string, len(w.args))
	for i, a := range w.args {
		parts[i] = a.String()
	}
	return dialect.Window + "(" + w.Spec.String() + ": " + strings.Join(parts, ", ") + ")"
}

// Type implements sql.Expression, as far as name resolution needs to know.
func (w *Window) Type() sql.Type {
	switch w.Spec.Func {
	case "row_number", "rank", "dense_rank", "ntile", "bit_and", "bit_or", "bit_xor":
		return types.Uint64
	case "count":
		return types.Int64
	case "lag", "lead", "first_value", "last_value", "nth_value", "min", "max", "any_value":
		if len(w.args) > 0 {
			return w.args[0].Type()
		}
	case "json_arrayagg", "json_objectagg":
		return types.JSON
	}
	return types.Float64
}

// IsNullable implements sql.Expression.
func (w *Window) IsNullable() bool { return true }

// Children implements sql.Expression.
func (w *Window) Children() []sql.Expression { return w.args }

// WithChildren implements sql.Expression.
func (w *Window) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	if len(children) != len(w.args) {
		return nil, sql.ErrInvalidChildrenNumber.New(w, len(children), len(w.args))
	}
	return &Window{Spec: w.Spec, args: children}, nil
}

// CollationCoercibility implements sql.CollationCoercible.
func (w *Window) CollationCoercibility(*sql.Context) (sql.CollationID, byte) { return Collation, 4 }

// Eval implements sql.Expression: a window function has no answer for one row.
func (w *Window) Eval(*sql.Context, sql.Row) (any, error) {
	return nil, errs.New(errs.ErrUnsupported, "window function %s row by row", strings.ToUpper(w.Spec.Func))
}
