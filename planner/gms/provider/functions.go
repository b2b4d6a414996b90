package provider

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/dialect"
)

// LoadFile is LOAD_FILE: NULL, as in a MySQL server that may read no file.
const LoadFile = "load_file"

// signature is a function as name resolution sees it.
type signature struct {
	name     string
	min, max int // argument count; max -1 = any
	t        sql.Type
}

// signatures lists lakesql's functions under all their names. Evaluation and exact types are those of package expr.
func signatures() []signature {
	boolean, double, integer, json, text, blob := types.Boolean, types.Float64, types.Int64, types.JSON, types.CreateLongText(Collation), types.LongBlob
	out := []signature{
		{dialect.MakeArray, 0, -1, json}, {dialect.Members, 1, 1, json}, {dialect.Concat, 2, -1, text}, {dialect.Rollup, 0, 0, boolean}, {dialect.Interval, 2, 2, text}, {dialect.Grouping, 1, 64, integer},
		{"array_length", 1, 1, integer}, {"cardinality", 1, 1, integer}, {"struct_field", 2, 2, json},
		{"distance", 3, 3, double}, {"string_to_vector", 1, 1, blob}, {"to_vector", 1, 1, blob}, {"vec_fromtext", 1, 1, blob},
		{"vec_totext", 1, 1, text}, {"vector_to_string", 1, 1, text}, {"from_vector", 1, 1, text}, {"vector_dim", 1, 1, integer},
		{"makedate", 2, 2, types.Date}, {"truncate", 2, 2, double}, {LoadFile, 1, 1, blob},
	}
	either := types.Year // no CAST is to this type, so that go-mysql-server leaves out none: the arguments decide
	// What MySQL has and go-mysql-server lacks.
	out = append(out, []signature{
		{"insert", 4, 4, text}, {"oct", 1, 1, text}, {"ord", 1, 1, integer}, {"quote", 1, 1, text}, {"period_add", 2, 2, integer}, {"period_diff", 2, 2, integer},
		{"maketime", 3, 3, types.Time}, {"sec_to_time", 1, 1, types.Time}, {"addtime", 2, 2, either}, {"subtime", 2, 2, either}, {"to_seconds", 1, 1, integer},
		{"date_trunc", 2, 2, either}, {"starts_with", 2, 2, boolean}, {"ends_with", 2, 2, boolean}, {"cbrt", 1, 1, double},
	}...)
	for _, name := range []string{
		"array_has", "array_contains", "list_contains", "list_has", "array_has_all", "array_contains_all", "list_has_all", "array_has_any", "arrays_overlap", "list_has_any",
	} {
		out = append(out, signature{name, 2, 2, boolean})
	}
	for _, name := range []string{
		"l2_distance", "l2sq_distance", "cosine_distance", "dot_distance", "hamming_distance", "cosine_similarity", "inner_product",
		"vec_distance", "vec_distance_l2_squared", "vec_distance_euclidean", "vec_distance_cosine", "approx_l2_distance", "approx_cosine_similarity",
	} {
		out = append(out, signature{name, 2, 2, double})
	}
	return out
}

func functions() map[string]sql.Function {
	out := make(map[string]sql.Function)
	for _, s := range signatures() {
		out[s.name] = sql.FunctionN{Name: s.name, Fn: func(args ...sql.Expression) (sql.Expression, error) { return newFunc(s, args) }}
	}
	out[dialect.Window] = sql.FunctionN{Name: dialect.Window, Fn: newWindow}
	// What go-mysql-server lacks and its own functions make.
	out["utc_date"] = ofUTC("utc_date", function.NewDate)
	out["utc_time"] = ofUTC("utc_time", function.NewTime)
	return out
}

// ofUTC is a part of UTC_TIMESTAMP.
func ofUTC(name string, part func(sql.Expression) sql.Expression) sql.Function {
	return sql.FunctionN{Name: name, Fn: func(args ...sql.Expression) (sql.Expression, error) {
		now, err := function.NewUTCTimestamp(args...)
		if err != nil {
			return nil, err
		}
		return part(now), nil
	}}
}

func newFunc(s signature, args []sql.Expression) (sql.Expression, error) {
	if len(args) < s.min || s.max >= 0 && len(args) > s.max {
		return nil, sql.ErrInvalidArgumentNumber.New(strings.ToUpper(s.name), s.min, len(args))
	}
	return &Func{sig: s, args: args}, nil
}

// Func is a call of one of lakesql's functions in a plan of go-mysql-server. Package translate takes it over by name; Eval serves what is left to the row engine.
type Func struct {
	sig  signature
	args []sql.Expression
}

var (
	_ sql.FunctionExpression = (*Func)(nil)
	_ sql.CollationCoercible = (*Func)(nil)
)

// FunctionName implements sql.FunctionExpression.
func (f *Func) FunctionName() string { return f.sig.name }

// Description implements sql.FunctionExpression.
func (f *Func) Description() string { return "lakesql function " + f.sig.name }

// Resolved implements sql.Expression.
func (f *Func) Resolved() bool {
	for _, a := range f.args {
		if !a.Resolved() {
			return false
		}
	}
	return true
}

// String implements fmt.Stringer.
func (f *Func) String() string {
	parts := make([]string, len(f.args))
	for i, a := range f.args {
		parts[i] = a.String()
	}
	return f.sig.name + "(" + strings.Join(parts, ",") + ")"
}

// Type implements sql.Expression.
func (f *Func) Type() sql.Type { return f.sig.t }

// IsNullable implements sql.Expression.
func (f *Func) IsNullable() bool { return true }

// Children implements sql.Expression.
func (f *Func) Children() []sql.Expression { return f.args }

// WithChildren implements sql.Expression.
func (f *Func) WithChildren(children ...sql.Expression) (sql.Expression, error) {
	return newFunc(f.sig, children)
}

// CollationCoercibility implements sql.CollationCoercible.
func (f *Func) CollationCoercibility(*sql.Context) (sql.CollationID, byte) { return Collation, 4 }

// Eval implements sql.Expression: one row at a time through package expr.
func (f *Func) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	if f.sig.name == LoadFile {
		return nil, nil
	}
	if f.sig.name == dialect.Members || f.sig.name == dialect.Grouping {
		return nil, errs.New(errs.ErrUnsupported, "MEMBER OF and GROUPING in a statement that runs row by row")
	}
	args := make([]expr.Expr, len(f.args))
	for i, a := range f.args {
		v, err := a.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		if args[i], err = Literal(ctx, v, a.Type()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.sig.name, err)
		}
	}
	call, err := expr.NewCall(f.sig.name, args...)
	if err != nil {
		return nil, err
	}
	return evalConstant(call, f.sig.t == types.JSON)
}

// evalConstant computes an expression without columns.
func evalConstant(e expr.Expr, asJSON bool) (any, error) {
	if TypeOf(e.Type()) == types.JSON || asJSON {
		e = &expr.Call{Func: "cast", Args: []expr.Expr{e}, T: arrow.BinaryTypes.String}
	}
	s := arrow.NewSchema(nil, nil)
	p, err := expr.Compile(e, s)
	if err != nil {
		return nil, err
	}
	batch := array.NewRecordBatch(s, nil, 1)
	defer batch.Release()
	arr, err := p.Eval(&expr.Env{}, batch)
	if err != nil {
		return nil, err
	}
	defer arr.Release()
	if arr.Len() == 0 {
		return nil, errs.New(errs.ErrInternal, "%s gave no row", e)
	}
	v, err := (&RowReader{}).Value(arr, 0)
	if err != nil || v == nil || !asJSON {
		return v, err
	}
	return types.NewLazyJSONDocument([]byte(v.(string))), nil
}
