package translate

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/gms/provider"
)

// sessionFunctions depend on the session or the statement's time alone: they are computed once, now.
func sessionFunctions(name string) bool {
	switch name {
	case "now", "current_timestamp", "localtime", "localtimestamp", "sysdate", "curdate", "current_date", "curtime", "current_time", "utc_timestamp", "utc_date", "utc_time",
		"database", "schema", "user", "current_user", "session_user", "system_user", "version", "connection_id", "found_rows", "row_count", "last_insert_id", "pi":
		return true
	}
	return false
}

// volatileFunctions give a new value for every row; package expr does not have them unless it says so.
func volatileFunctions(name string) bool {
	switch name {
	case "rand", "uuid", "uuid_short", "sleep", "random_bytes", "get_lock", "release_lock", "is_free_lock", "benchmark", "last_insert_uuid":
		return true
	}
	return false
}

// function translates a call: with special arguments, of package expr, or a constant that go-mysql-server computes now.
func (sc *scope) function(f sql.FunctionExpression) (expr.Expr, error) {
	name := strings.ToLower(f.FunctionName())
	if sessionFunctions(name) || name == "unix_timestamp" && len(f.Children()) == 0 {
		return sc.constant(f)
	}
	if isGrouping(name) {
		return sc.grouping(f.Children())
	}
	if count := len(f.Children()); name == "json_extract" && count > 2 {
		if isConstant(f) {
			return sc.constant(f)
		}
		return nil, unsupported("JSON_EXTRACT with %d paths", count-1)
	} else if name == "json_value" && count == 2 {
		name = "->>"
	} else if name == "format" && count == 3 {
		return sc.format(f.Children())
	}
	if name == provider.LoadFile {
		return expr.Null(arrow.BinaryTypes.Binary), nil
	}
	if out, done, err := sc.specialFunction(f); done {
		return out, err
	}
	out, err := sc.call(name, f.Children()...)
	if err != nil && isUnsupported(err) && !volatileFunctions(name) && isConstant(f) {
		if folded, err := sc.constant(f); err == nil {
			return folded, nil
		}
	}
	return out, err
}

// format is FORMAT with a locale, of which we have one.
func (sc *scope) format(args []sql.Expression) (expr.Expr, error) {
	v, err := args[2].Eval(sc.t.ctx, nil)
	if err != nil {
		return nil, err
	}
	if name, ok := v.(string); ok && !strings.EqualFold(name, "en_US") {
		return nil, errs.New(errs.ErrInvalid, "FORMAT in the locale %s: only en_US is known", name)
	}
	return sc.call("format", args[:2]...)
}

// isConstant says that an expression reads no column and has no side effect.
func isConstant(e sql.Expression) bool {
	constant := true
	sql.Inspect(e, func(e sql.Expression) bool {
		switch e := e.(type) {
		case nil:
		case *expression.Literal, expression.Tuple, *number:
		case sql.FunctionExpression:
			constant = constant && !volatileFunctions(strings.ToLower(e.FunctionName()))
			if _, ours := e.(*provider.Func); ours {
				constant = false
			}
		case *expression.GetField, *expression.BindVar, sql.ExpressionWithNodes:
			constant = false
		}
		return constant
	})
	return constant && !hasSubquery(e)
}

// specialFunction translates functions whose children are not their arguments.
func (sc *scope) specialFunction(f sql.FunctionExpression) (expr.Expr, bool, error) { //nolint:funlen // a flat switch
	done := func(e expr.Expr, err error) (expr.Expr, bool, error) { return e, true, err }
	switch f := f.(type) {
	case *function.DateAdd:
		return done(sc.dateMath("date_add", f.Date, f.Interval))
	case *function.DateSub:
		return done(sc.dateMath("date_sub", f.Date, f.Interval))
	case *function.Trim:
		return done(sc.trim(f))
	case *function.TimestampDiff:
		return done(sc.withUnit("timestampdiff", f.Children()))
	case *function.Extract:
		return done(sc.withUnit("extract", f.Children()))
	case *function.Substring:
		args := []sql.Expression{f.Str, f.Start}
		if f.Len != nil {
			args = append(args, f.Len)
		}
		return done(sc.call("substring", args...))
	case *function.RegexpLike:
		args := []sql.Expression{f.Text, f.Pattern}
		if f.Flags != nil {
			args = append(args, f.Flags)
		}
		return done(sc.call("regexp_like", args...))
	}
	return nil, false, nil
}

// withUnit puts a unit name, in lower case, in front.
func (sc *scope) withUnit(name string, children []sql.Expression) (expr.Expr, error) {
	v, err := children[0].Eval(sc.t.ctx, nil)
	if err != nil {
		return nil, err
	}
	text, _ := v.(string)
	unit, err := expr.NewLiteral(strings.ToLower(text))
	if err != nil {
		return nil, err
	}
	args := []expr.Expr{unit}
	for _, c := range children[1:] {
		e, err := sc.expr(c)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	return expr.NewCall(name, args...)
}

// trim is TRIM([BOTH|LEADING|TRAILING] pattern FROM text): the direction shows in the text of the call alone.
func (sc *scope) trim(f *function.Trim) (expr.Expr, error) {
	children := f.Children()
	name := "trim"
	switch text := strings.ToLower(f.String()); {
	case strings.HasPrefix(text, "trim(leading"), strings.HasPrefix(text, "trim(l "):
		name = "ltrim"
	case strings.HasPrefix(text, "trim(trailing"), strings.HasPrefix(text, "trim(t "):
		name = "rtrim"
	}
	return sc.call(name, children...)
}

// lengthAtEnd finds the length of a CONVERT(x, char(10)).
func lengthAtEnd() *regexp.Regexp { return regexp.MustCompile(`\((\d+)(?:,(\d+))?\)\)$`) }

// convert is CAST and CONVERT.
func (sc *scope) convert(e *expression.Convert) (expr.Expr, error) {
	in, err := sc.expr(e.Child)
	if err != nil {
		return nil, err
	}
	if e.Type() == types.Year {
		return nil, unsupported("CAST AS YEAR")
	}
	if e.Type() == types.JSON {
		return asJSONDocument(in)
	}
	t, err := castType(e)
	if err != nil {
		return nil, err
	}
	if _, _, number := digits(in.Type()); number && t.ID() == arrow.DATE32 { // 20260102
		return expr.NewCall("date", in)
	}
	out := expr.Expr(&expr.Call{Func: "cast", Args: []expr.Expr{in}, T: t})
	if m := lengthAtEnd().FindStringSubmatch(e.String()); m != nil && (t.ID() == arrow.STRING || t.ID() == arrow.BINARY) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return nil, errs.New(errs.ErrInvalid, "length %s", m[1])
		}
		count, err := expr.NewLiteral(n)
		if err != nil {
			return nil, err
		}
		return expr.NewCall("left", out, count)
	}
	return out, nil
}

// asJSONDocument is CAST AS JSON: text is read as JSON, other values become JSON.
func asJSONDocument(e expr.Expr) (expr.Expr, error) {
	if id := e.Type().ID(); id != arrow.STRING && id != arrow.LARGE_STRING {
		return asJSON(e)
	}
	root, err := expr.NewLiteral("$")
	if err != nil {
		return nil, err
	}
	return expr.NewCall("->", e, root)
}

func castType(e *expression.Convert) (arrow.DataType, error) {
	t := e.Type()
	switch t {
	case types.Float32:
		return arrow.PrimitiveTypes.Float32, nil
	case types.LongBlob:
		return arrow.BinaryTypes.Binary, nil
	}
	if d, ok := t.(sql.DecimalType); ok {
		if m := lengthAtEnd().FindStringSubmatch(e.String()); m == nil {
			return &arrow.Decimal128Type{Precision: 10, Scale: 0}, nil // DECIMAL alone is DECIMAL(10,0)
		}
		return decimalType(int32(d.Precision()), int32(d.Scale())), nil
	}
	return arrowType(t)
}

// arrowType returns the Arrow type that computes as a MySQL type does.
func arrowType(t sql.Type) (arrow.DataType, error) { //nolint:funlen // a flat switch
	switch t {
	case types.Null:
		return arrow.Null, nil
	case types.Boolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case types.Int8:
		return arrow.PrimitiveTypes.Int8, nil
	case types.Int16:
		return arrow.PrimitiveTypes.Int16, nil
	case types.Int32, types.Int24:
		return arrow.PrimitiveTypes.Int32, nil
	case types.Int64:
		return arrow.PrimitiveTypes.Int64, nil
	case types.Uint8:
		return arrow.PrimitiveTypes.Uint8, nil
	case types.Uint16:
		return arrow.PrimitiveTypes.Uint16, nil
	case types.Uint32, types.Uint24:
		return arrow.PrimitiveTypes.Uint32, nil
	case types.Uint64:
		return arrow.PrimitiveTypes.Uint64, nil
	case types.Float32:
		return arrow.PrimitiveTypes.Float32, nil
	case types.Float64:
		return arrow.PrimitiveTypes.Float64, nil
	case types.Date:
		return arrow.FixedWidthTypes.Date32, nil
	case types.Time:
		return arrow.FixedWidthTypes.Duration_us, nil
	case types.JSON:
		return arrow.BinaryTypes.String, nil
	}
	switch x := t.(type) {
	case sql.DecimalType:
		return decimalType(int32(x.Precision()), int32(x.Scale())), nil
	case sql.DatetimeType:
		return &arrow.TimestampType{Unit: arrow.Microsecond}, nil
	case sql.StringType:
		if types.IsBinaryType(t) {
			return arrow.BinaryTypes.Binary, nil
		}
		return arrow.BinaryTypes.String, nil
	}
	return nil, unsupported("type %s", t)
}
