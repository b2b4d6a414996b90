package expr

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// env is UTC with a fixed statement time.
func testEnv(alloc memory.Allocator) *Env {
	return &Env{Alloc: alloc, Location: time.UTC, Now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
}

func lit(t testing.TB, v any) Expr {
	t.Helper()
	if s, ok := v.(dec); ok {
		l, err := ParseDecimal(string(s))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if e, ok := v.(Expr); ok {
		return e
	}
	l, err := NewLiteral(v)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dec is a decimal literal in the tables of tests.
type dec string

func fn(t testing.TB, name string, args ...any) Expr {
	t.Helper()
	es := make([]Expr, len(args))
	for i, a := range args {
		es[i] = lit(t, a)
	}
	e, err := NewCall(name, es...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return e
}

// text is row i of arr as MySQL prints it.
func text(arr arrow.Array, i int) string {
	if arr.IsNull(i) || arr.DataType().ID() == arrow.NULL {
		return "NULL"
	}
	one := array.NewSlice(arr, int64(i), int64(i+1))
	defer one.Release()
	s := newState()
	v, err := s.load(one)
	if err != nil {
		return err.Error()
	}
	return string(appendValue(nil, &v, 0, nil))
}

func column(arr arrow.Array) string {
	parts := make([]string, arr.Len())
	for i := range parts {
		parts[i] = text(arr, i)
	}
	return strings.Join(parts, " | ")
}

// evalOver evaluates e over one batch, twice: as it is and with every row twice, and checks that both agree and nothing leaks.
func evalOver(t *testing.T, e Expr, env *Env, batch arrow.RecordBatch) (string, error) {
	t.Helper()
	checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer checked.AssertSize(t, 0)
	own := *env
	own.Alloc = checked
	p, err := Compile(e, batch.Schema())
	if err != nil {
		return "", err
	}
	out, err := p.Eval(&own, batch)
	if err != nil {
		return "", err
	}
	defer out.Release()
	if !arrow.TypeEqual(out.DataType(), e.Type()) {
		t.Errorf("%s: promised %s, gave %s", e, e.Type(), out.DataType())
	}
	if out.Len() != int(batch.NumRows()) {
		t.Errorf("%s: %d rows of %d", e, out.Len(), batch.NumRows())
	}
	return column(out), nil
}

func constant(t *testing.T, e Expr) (string, error) {
	t.Helper()
	l, err := evalConstant(e, testEnv(nil))
	if err != nil {
		return "", err
	}
	arr, err := literalArray(l)
	if err != nil {
		return "", err
	}
	return text(arr, 0), nil
}

func batchOf(t testing.TB, cols map[string]arrow.Array, names ...string) (arrow.RecordBatch, map[string]Expr) {
	t.Helper()
	fields := make([]arrow.Field, len(names))
	arrs := make([]arrow.Array, len(names))
	refs := make(map[string]Expr)
	for i, n := range names {
		fields[i] = arrow.Field{Name: n, Type: cols[n].DataType(), Nullable: true}
		arrs[i] = cols[n]
		refs[n] = &Column{ID: i, Name: n, T: cols[n].DataType()}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrs, int64(arrs[0].Len())), refs
}

// fromJSON makes an array of type t from a JSON array.
func fromJSON(t testing.TB, typ arrow.DataType, s string) arrow.Array {
	t.Helper()
	arr, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return arr
}

func TestArithmeticTypesAndValues(t *testing.T) {
	for _, c := range []struct {
		name string
		e    Expr
		want string
		typ  string
	}{
		{"integers add as BIGINT", fn(t, "+", 1, 2), "3", "BIGINT"},
		{"unsigned wins over signed", fn(t, "+", uint64(18446744073709551614), 1), "18446744073709551615", "BIGINT UNSIGNED"},
		{"decimals keep the larger scale", fn(t, "+", dec("1.10"), dec("2.255")), "3.355", "DECIMAL(5,3)"},
		{"products add the scales", fn(t, "*", dec("1.10"), dec("2.255")), "2.48050", "DECIMAL(7,5)"},
		{"a quotient has four more digits", fn(t, "/", 1, 3), "0.3333", "DECIMAL(5,4)"},
		{"a quotient rounds", fn(t, "/", 2, 3), "0.6667", "DECIMAL(5,4)"},
		{"a quotient of decimals", fn(t, "/", dec("1.00"), dec("3.00")), "0.333333", "DECIMAL(9,6)"},
		{"a quotient in mid-computation keeps more digits", fn(t, "*", fn(t, "/", 2, 3), 3), "2.0000", "DECIMAL(6,4)"},
		{"half of an integer shows four digits", fn(t, "/", 3, 2), "1.5000", "DECIMAL(5,4)"},
		{"division by zero is NULL", fn(t, "/", 3, 0), "NULL", "DECIMAL(5,4)"},
		{"DIV cuts", fn(t, "div", -7, 2), "-3", "BIGINT"},
		{"DIV of decimals", fn(t, "div", dec("7.5"), dec("0.2")), "37", "BIGINT"},
		{"DIV by zero is NULL", fn(t, "div", 7, 0), "NULL", "BIGINT"},
		{"the sign of % is the dividend's", fn(t, "%", -7, 3), "-1", "BIGINT"},
		{"% of decimals", fn(t, "%", dec("10.5"), dec("3")), "1.5", "DECIMAL(3,1)"},
		{"% of doubles", fn(t, "%", 10.5, 3), "1.5", "DOUBLE"},
		{"text counts as a double", fn(t, "+", "12abc", 1), "13", "DOUBLE"},
		{"NULL spreads", fn(t, "+", nil, 1), "NULL", "BIGINT"},
		{"minus", fn(t, "neg", dec("1.50")), "-1.50", "DECIMAL(3,2)"},
		{"bits of a negative number", fn(t, "&", -1, 255), "255", "BIGINT UNSIGNED"},
		{"a shift past the end", fn(t, "<<", 1, 64), "0", "BIGINT UNSIGNED"},
		{"boolean counts as a number", fn(t, "+", true, true), "2", "BIGINT"},
		{"a 47 digit product", fn(t, "*", dec("99999999999999999999.99"), dec("99999999999999999999.99")), "9999999999999999999998000000000000000000.0001", "DECIMAL(44,4)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := constant(t, c.e)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want || sqlName(c.e.Type()) != c.typ {
				t.Errorf("%s = %s %s, want %s %s", c.e, got, sqlName(c.e.Type()), c.want, c.typ)
			}
		})
	}
}

func TestOverflowIsAnErrorThatNamesTheExpression(t *testing.T) {
	for _, e := range []Expr{
		fn(t, "+", int64(9223372036854775807), 1),
		fn(t, "-", int64(-9223372036854775808), 1),
		fn(t, "*", int64(9223372036854775807), 2),
		fn(t, "+", uint64(18446744073709551615), 1),
		fn(t, "-", uint64(1), 2),
		fn(t, "neg", int64(-9223372036854775808)),
		fn(t, "*", 1e308, 10.0),
		fn(t, "div", dec("99999999999999999999"), 1),
	} {
		_, err := constant(t, e)
		if !errors.Is(err, errs.ErrOverflow) || !strings.Contains(err.Error(), e.String()) {
			t.Errorf("%s: %v", e, err)
		}
	}
}

func TestComparisonByMySQLRules(t *testing.T) {
	batch, c := batchOf(t, map[string]arrow.Array{
		"i32": fromJSON(t, arrow.PrimitiveTypes.Int32, `[1, -5, null, 3]`),
		"u64": fromJSON(t, arrow.PrimitiveTypes.Uint64, `[1, 18446744073709551615, null, 3]`),
		"f32": fromJSON(t, arrow.PrimitiveTypes.Float32, `[0.1, 2.5, null, 3]`),
		"s":   fromJSON(t, arrow.BinaryTypes.String, `["1", "abc", null, "3.0"]`),
		"d":   fromJSON(t, arrow.FixedWidthTypes.Date32, `["2026-01-01", "2026-03-29", null, "2026-12-31"]`),
		"ts":  fromJSON(t, typeDatetime(), `["2026-01-01 00:00:00", "2026-03-29 12:00:00", null, "2026-12-31 23:59:59.5"]`),
		"dec": fromJSON(t, &arrow.Decimal128Type{Precision: 10, Scale: 2}, `["1.00", "2.50", null, "3.00"]`),
	}, "i32", "u64", "f32", "s", "d", "ts", "dec")
	for _, x := range []struct {
		name string
		e    Expr
		want string
	}{
		{"integer column and integer", fn(t, "=", c["i32"], 1), "1 | 0 | NULL | 0"},
		{"integer column and text", fn(t, "=", c["i32"], "3"), "0 | 0 | NULL | 1"},
		{"integer column and decimal", fn(t, "<", c["i32"], dec("1.5")), "1 | 1 | NULL | 0"},
		{"integer column and a number beyond it", fn(t, "<", c["i32"], int64(3000000000)), "1 | 1 | NULL | 1"},
		{"integer column and text that starts with a number", fn(t, "=", c["i32"], "3abc"), "0 | 0 | NULL | 1"},
		{"signed and unsigned", fn(t, "<", c["i32"], c["u64"]), "0 | 1 | NULL | 0"},
		{"unsigned and a negative number", fn(t, ">", c["u64"], -1), "1 | 1 | NULL | 1"},
		{"float column and decimal literal", fn(t, "=", c["f32"], dec("0.1")), "1 | 0 | NULL | 0"},
		{"float column and double literal", fn(t, "<", c["f32"], 0.5), "1 | 0 | NULL | 0"},
		{"text column and number", fn(t, "=", c["s"], 3), "0 | 0 | NULL | 1"},
		{"text compares byte by byte", fn(t, "=", c["s"], "ABC"), "0 | 0 | NULL | 0"},
		{"date column and text", fn(t, ">=", c["d"], "2026-03-29"), "0 | 1 | NULL | 1"},
		{"date column and text with a time", fn(t, ">", c["d"], "2026-03-29 00:00:01"), "0 | 0 | NULL | 1"},
		{"date column and number", fn(t, "=", c["d"], 20260329), "0 | 1 | NULL | 0"},
		{"datetime column and date text", fn(t, ">", c["ts"], "2026-03-29"), "0 | 1 | NULL | 1"},
		{"datetime column and date column", fn(t, ">", c["ts"], c["d"]), "0 | 1 | NULL | 1"},
		{"decimal column and integer", fn(t, "=", c["dec"], 3), "0 | 0 | NULL | 1"},
		{"decimal column and text", fn(t, "=", c["dec"], "2.5"), "0 | 1 | NULL | 0"},
		{"NULL-safe", fn(t, "<=>", c["i32"], nil), "0 | 0 | 1 | 0"},
		{"NULL-safe columns", fn(t, "<=>", c["i32"], c["dec"]), "1 | 0 | 1 | 1"},
		{"a comparison with NULL", fn(t, "=", c["i32"], nil), "NULL | NULL | NULL | NULL"},
		{"BETWEEN", fn(t, "between", c["i32"], 1, 3), "1 | 0 | NULL | 1"},
		{"NOT BETWEEN", fn(t, "not_between", c["i32"], 1, 3), "0 | 1 | NULL | 0"},
		{"IN", fn(t, "in", c["i32"], 1, 3, dec("2.5")), "1 | 0 | NULL | 1"},
		{"IN with NULL", fn(t, "in", c["i32"], 1, nil), "1 | NULL | NULL | NULL"},
		{"NOT IN with NULL", fn(t, "not_in", c["i32"], 1, nil), "0 | NULL | NULL | NULL"},
		{"IN over text and numbers", fn(t, "in", c["s"], 1, 3), "1 | 0 | NULL | 1"},
		{"IN over dates", fn(t, "in", c["d"], "2026-01-01", "2026-12-31"), "1 | 0 | NULL | 1"},
		{"IN over decimals", fn(t, "in", c["dec"], 1, "2.50"), "1 | 1 | NULL | 0"},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := evalOver(t, x.e, testEnv(nil), batch)
			if err != nil || got != x.want {
				t.Errorf("%s = %s, %v; want %s", x.e, got, err, x.want)
			}
		})
	}
}

func TestLiteralsAreConvertedToTheColumnsType(t *testing.T) {
	col := &Column{ID: 0, Name: "k", T: arrow.PrimitiveTypes.Int32}
	for _, v := range []any{1, "1", dec("1.0"), 1.0} {
		e := fn(t, "=", col, v).(*Call)
		if got := e.Args[1].Type(); !arrow.TypeEqual(got, arrow.PrimitiveTypes.Int32) {
			t.Errorf("%v stays %s", v, got)
		}
	}
	if _, err := NewCall("=", &Column{Name: "d", T: arrow.FixedWidthTypes.Date32}, lit(t, "garbage")); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("garbage as a date: %v", err)
	}
}

func TestThreeValuedLogic(t *testing.T) {
	vals := map[string]any{"T": true, "F": false, "N": nil}
	and := map[string]string{"TT": "1", "TF": "0", "TN": "NULL", "FF": "0", "FN": "0", "NN": "NULL", "FT": "0", "NT": "NULL", "NF": "0"}
	or := map[string]string{"TT": "1", "TF": "1", "TN": "1", "FF": "0", "FN": "NULL", "NN": "NULL", "FT": "1", "NT": "1", "NF": "NULL"}
	for k := range and {
		a, b := vals[k[:1]], vals[k[1:]]
		for op, want := range map[string]string{"and": and[k], "or": or[k]} {
			e := fn(t, op, a, b)
			if got, err := constant(t, e); err != nil || got != want {
				t.Errorf("%s = %s, %v; want %s", e, got, err, want)
			}
			f, err := Fold(e, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := constant(t, f); err != nil || got != want {
				t.Errorf("folded %s = %s, %v; want %s", e, got, err, want)
			}
		}
	}
}

func TestErrorsOfRowsThatAreNotEvaluatedDoNotSurface(t *testing.T) {
	batch, c := batchOf(t, map[string]arrow.Array{
		"k": fromJSON(t, arrow.PrimitiveTypes.Int64, `[1, 9223372036854775807, null, 3]`),
	}, "k")
	over := fn(t, "+", c["k"], 1)
	small := fn(t, "<", c["k"], 100)
	for _, x := range []struct {
		e    Expr
		want string
	}{
		{fn(t, "and", small, fn(t, ">", over, 2)), "0 | 0 | NULL | 1"},
		{fn(t, "or", fn(t, "not", small), fn(t, ">", over, 2)), "0 | 1 | NULL | 1"},
		{fn(t, "if", small, over, -1), "2 | -1 | -1 | 4"},
		{fn(t, "case", small, over), "2 | NULL | NULL | 4"},
		{fn(t, "coalesce", fn(t, "nullif", c["k"], int64(9223372036854775807)), 0), "1 | 0 | 0 | 3"},
	} {
		if got, err := evalOver(t, x.e, testEnv(nil), batch); err != nil || got != x.want {
			t.Errorf("%s = %s, %v; want %s", x.e, got, err, x.want)
		}
	}
	if _, err := evalOver(t, over, testEnv(nil), batch); !errors.Is(err, errs.ErrOverflow) {
		t.Errorf("overflow: %v", err)
	}
}

func TestEvalSelect(t *testing.T) {
	batch, c := batchOf(t, map[string]arrow.Array{"k": fromJSON(t, arrow.PrimitiveTypes.Int64, `[1, 5, null, 3]`)}, "k")
	for _, x := range []struct {
		e   Expr
		sel []int32
		all bool
	}{
		{fn(t, "<", c["k"], 4), []int32{0, 3}, false},
		{fn(t, "is_true", fn(t, "or", fn(t, "<", c["k"], 9), true)), nil, true},
		{fn(t, "<", c["k"], 0), nil, false},
		{c["k"], []int32{0, 1, 3}, false},
	} {
		p, err := Compile(x.e, batch.Schema())
		if err != nil {
			t.Fatal(err)
		}
		sel, all, err := p.EvalSelect(testEnv(nil), batch)
		if err != nil || all != x.all || len(sel) != len(x.sel) {
			t.Errorf("%s: %v %v %v", x.e, sel, all, err)
			continue
		}
		for i := range sel {
			if sel[i] != x.sel[i] {
				t.Errorf("%s: %v", x.e, sel)
			}
		}
	}
}
