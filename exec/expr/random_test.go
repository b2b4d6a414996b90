package expr

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// randomBatch has columns of every class with NULLs and awkward values.
func randomBatch(t testing.TB) (arrow.RecordBatch, []Expr) {
	t.Helper()
	cols := map[string]arrow.Array{
		"i8":   fromJSON(t, arrow.PrimitiveTypes.Int8, `[1, -128, null, 127, 0, 3, 5, 100, -1, 2]`),
		"i64":  fromJSON(t, arrow.PrimitiveTypes.Int64, `[1, -9223372036854775808, 3, null, 9223372036854775807, 0, 5, 20260329, -7, 2]`),
		"u64":  fromJSON(t, arrow.PrimitiveTypes.Uint64, `[1, 18446744073709551615, 0, 4, null, 9223372036854775808, 7, 8, 9, 10]`),
		"f64":  fromJSON(t, arrow.PrimitiveTypes.Float64, `[1.5, -0.0, 1e300, null, -2.5, 3, 0.1, 1e-9, 100, 2.5]`),
		"f32":  fromJSON(t, arrow.PrimitiveTypes.Float32, `[1.5, 0.1, null, 4, -2.5, 3, 0.25, 8, 100, 2.5]`),
		"d":    fromJSON(t, &arrow.Decimal128Type{Precision: 15, Scale: 2}, `["1.00", "-2.50", "9999999999999.99", null, "0.00", "0.01", "3.33", "20260329.00", "5.00", "2.00"]`),
		"wide": fromJSON(t, &arrow.Decimal256Type{Precision: 50, Scale: 4}, `["1.0000", null, "99999999999999999999999999999999999999999.0000", "0.0000", "-3.5000", "2.0000", "7.0000", "8.1234", "9.0000", "1.0000"]`),
		"s":    fromJSON(t, arrow.BinaryTypes.String, `["1", "abc", "", null, "2026-03-29", "10:11:12", " 3 ", "ABC", "äöü", "1.5e1"]`),
		"ls":   fromJSON(t, arrow.BinaryTypes.LargeString, `["x", null, "2026-01-01 10:00:00", "a%b", "5", "", "0", "abc", "%", "_"]`),
		"b":    fromJSON(t, arrow.FixedWidthTypes.Boolean, `[true, false, null, true, false, true, null, false, true, true]`),
		"date": fromJSON(t, arrow.FixedWidthTypes.Date32, `["2026-03-29", "1970-01-01", null, "2024-02-29", "9999-12-31", "2026-01-01", "2026-12-31", "1999-01-04", "2000-01-01", "2026-03-28"]`),
		"ts":   fromJSON(t, typeDatetime(), `["2026-03-29 10:11:12.5", "1970-01-01 00:00:00", null, "2024-02-29 23:59:59.999999", "2026-01-01 00:00:00", "2026-01-01 00:00:01", "2026-03-29 00:00:00", "1999-12-31 12:00:00", "2000-01-01 00:00:00", "2026-03-28 01:02:03"]`),
	}
	dict := array.NewDictionaryBuilder(memory.DefaultAllocator, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String})
	for _, s := range []string{"abc", "1", "abc", "", "1", "2026-03-29", "abc", "x", "1", "abc"} {
		if s == "" {
			dict.AppendNull()
		} else if err := dict.AppendValueFromString(s); err != nil {
			t.Fatal(err)
		}
	}
	cols["dict"] = dict.NewArray()
	names := []string{"i8", "i64", "u64", "f64", "f32", "d", "wide", "s", "ls", "b", "date", "ts", "dict"}
	batch, refs := batchOf(t, cols, names...)
	list := make([]Expr, len(names))
	for i, n := range names {
		list[i] = refs[n]
	}
	return batch, list
}

type generator struct {
	t    testing.TB
	rnd  *rand.Rand
	cols []Expr
}

func (g *generator) leaf() Expr {
	if g.rnd.IntN(3) > 0 {
		return g.cols[g.rnd.IntN(len(g.cols))]
	}
	values := []any{nil, 0, 1, 3, -1, 100, uint64(18446744073709551615), 1.5, 0.1, dec("2.50"), dec("0.1"), "abc", "1", "", "2026-03-29", "%b%", true, Date(20541), Datetime(1774747800000000), Time(36672000000)}
	return lit(g.t, values[g.rnd.IntN(len(values))])
}

// expr draws a call that resolves; what MySQL's types forbid is drawn again.
func (g *generator) expr(depth int) Expr {
	if depth == 0 {
		return g.leaf()
	}
	names := []string{
		"=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "xor", "is_null", "is_not_null", "is_true", "+", "-", "*", "/", "div", "%", "neg", "case", "coalesce", "if", "nullif", "in", "between", "like", "greatest", "least",
		"concat", "concat_ws", "upper", "substr", "left", "length", "char_length", "replace", "locate", "lpad", "hex", "round", "truncate", "abs", "ceil", "floor", "sign", "sqrt", "year", "month", "dayofweek", "week", "datediff", "last_day", "to_days", "date_format", "hour", "to_json", "&", "|", ">>",
	}
	for range 200 {
		name := names[g.rnd.IntN(len(names))]
		f := table()[name]
		n := f.min
		if f.max < 0 || f.max > n {
			n += g.rnd.IntN(3)
			if f.max > 0 {
				n = min(n, f.max)
			}
		}
		args := make([]Expr, n)
		for i := range args {
			args[i] = g.expr(g.rnd.IntN(depth))
		}
		if comparing(name) && hasConstantCall(args) {
			continue
		}
		if e, err := NewCall(name, args...); err == nil {
			return e
		} else if !errors.Is(err, errs.ErrInvalid) {
			g.t.Fatalf("%s%v: %v", name, args, err)
		}
	}
	return g.leaf()
}

func comparing(name string) bool {
	switch name {
	case "=", "<>", "<", "<=", ">", ">=", "<=>", "in", "between", "nullif":
		return true
	}
	return false
}

// hasConstantCall finds constants that are not literals yet: a comparison with them converts otherwise once they are folded, as MySQL's does.
func hasConstantCall(args []Expr) bool {
	for _, a := range args {
		if _, ok := a.(*Call); ok && len(Columns(a)) == 0 {
			return true
		}
	}
	return false
}

// rowAnswers evaluates e for every row on its own, with the columns replaced by constants.
func rowAnswers(t *testing.T, e Expr, batch arrow.RecordBatch) ([]string, error) {
	t.Helper()
	out := make([]string, batch.NumRows())
	for row := range out {
		one := Transform(e, func(n Expr) Expr {
			c, ok := n.(*Column)
			if !ok {
				return n
			}
			l, err := arrayLiteral(batch.Column(c.ID), row)
			if err != nil {
				t.Fatal(err)
			}
			return l
		})
		l, err := evalConstant(one, testEnv(nil))
		if err != nil {
			return nil, err
		}
		arr, err := literalArrayOrNull(l)
		if err != nil {
			return nil, err
		}
		out[row] = text(arr, 0)
	}
	return out, nil
}

func answers(t *testing.T, e Expr, batch arrow.RecordBatch) ([]string, error) {
	t.Helper()
	p, err := Compile(e, batch.Schema())
	if err != nil {
		return nil, err
	}
	arr, err := p.Eval(testEnv(nil), batch)
	if err != nil {
		return nil, err
	}
	defer arr.Release()
	out := make([]string, arr.Len())
	for i := range out {
		out[i] = text(arr, i)
	}
	return out, nil
}

func TestRandomExpressionsHaveOneAnswerHoweverTheyAreComputed(t *testing.T) {
	batch, cols := randomBatch(t)
	seed := uint64(20261129)
	n := 600
	if testing.Short() {
		n = 150
	}
	for i := range n {
		g := &generator{t: t, rnd: rand.New(rand.NewPCG(seed, uint64(i))), cols: cols}
		e := g.expr(1 + g.rnd.IntN(4))
		where := fmt.Sprintf("seed %d/%d: %s", seed, i, e)
		whole, err := answers(t, e, batch)
		if errors.Is(err, errs.ErrInternal) {
			t.Fatalf("%s: %v", where, err)
		}
		compare := func(how string, got []string, gotErr error) {
			t.Helper()
			if (err == nil) != (gotErr == nil) {
				t.Fatalf("%s\n%s: %v, whole: %v", where, how, gotErr, err)
			}
			if err == nil && !equalStrings(whole, got) {
				t.Fatalf("%s\n%s: %q\nwhole: %q", where, how, got, whole)
			}
		}
		rows, rowErr := rowAnswers(t, e, batch)
		if !errors.Is(rowErr, errs.ErrInvalid) { // a constant that is no date is refused where a column's value is NULL
			compare("row by row", rows, rowErr)
		}
		folded, foldErr := Fold(e, testEnv(nil))
		if foldErr == nil {
			if !arrow.TypeEqual(folded.Type(), e.Type()) {
				t.Fatalf("%s\nfolds to %s of type %s, not %s", where, folded, folded.Type(), e.Type())
			}
			got, gotErr := answers(t, folded, batch)
			if err == nil { // folding may prove that a row that fails does not matter
				compare("folded "+folded.String(), got, gotErr)
			}
		}
		code, encErr := Encode(e)
		if encErr != nil {
			t.Fatalf("%s: %v", where, encErr)
		}
		back, decErr := Decode(code)
		if decErr != nil || !Equal(e, back) {
			t.Fatalf("%s comes back as %v, %v", where, back, decErr)
		}
		got, gotErr := answers(t, back, batch)
		compare("decoded", got, gotErr)
		if err == nil {
			part := batch.NewSlice(3, 8)
			got, gotErr = answers(t, e, part)
			if gotErr != nil || !equalStrings(whole[3:8], got) {
				t.Fatalf("%s\nslice: %q %v\nwhole: %q", where, got, gotErr, whole[3:8])
			}
		}
	}
}
