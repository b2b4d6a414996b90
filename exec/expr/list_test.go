package expr

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine that tests may have none

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// labelKinds are the list types that hold the same labels.
func labelKinds(t testing.TB) map[string]arrow.Array {
	t.Helper()
	const rows = `[["foo", null], ["foo"], null, [], [null], ["bar"], ["foo", "foo", "bar"]]`
	plain := fromJSON(t, arrow.ListOf(arrow.BinaryTypes.String), rows)
	kinds := map[string]arrow.Array{
		"list of utf8":       plain,
		"list of large utf8": fromJSON(t, arrow.ListOf(arrow.BinaryTypes.LargeString), rows),
		"large list":         fromJSON(t, arrow.LargeListOf(arrow.BinaryTypes.String), rows),
		"list of dictionary": dictionaryList(t, plain.(*array.List)),
	}
	// the same rows in the middle of a longer column
	longer, err := array.Concatenate([]arrow.Array{fromJSON(t, plain.DataType(), `[["foo"], null]`), plain, fromJSON(t, plain.DataType(), `[["foo"]]`)}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	kinds["slice of a list"] = array.NewSlice(longer, 2, 9)
	return kinds
}

func dictionaryList(t testing.TB, l *array.List) arrow.Array {
	t.Helper()
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	b := array.NewDictionaryBuilder(memory.DefaultAllocator, typ)
	defer b.Release()
	values := l.ListValues().(*array.String)
	for i := range values.Len() {
		if values.IsNull(i) {
			b.AppendNull()
		} else if err := b.AppendValueFromString(values.Value(i)); err != nil {
			t.Fatal(err)
		}
	}
	d := l.Data()
	return array.MakeFromData(array.NewData(arrow.ListOf(typ), l.Len(), d.Buffers(), []arrow.ArrayData{b.NewArray().Data()}, l.NullN(), d.Offset()))
}

func TestListsByTheTruthTable(t *testing.T) {
	list := func(vals ...any) Expr { return fn(t, "make_array", vals...) }
	for name, arr := range labelKinds(t) {
		t.Run(name, func(t *testing.T) {
			batch, c := batchOf(t, map[string]arrow.Array{"l": arr, "x": fromJSON(t, arrow.BinaryTypes.String, `["foo", "bar", "foo", "foo", null, "bar", "foo"]`)}, "l", "x")
			l := c["l"]
			for _, x := range []struct {
				e    Expr
				want string
			}{
				{fn(t, "array_has", l, "foo"), "1 | 1 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "not", fn(t, "array_has", l, "foo")), "0 | 0 | NULL | 1 | 1 | 1 | 0"},
				{fn(t, "array_has", l, nil), "NULL | NULL | NULL | NULL | NULL | NULL | NULL"},
				{fn(t, "array_has_any", l, list("foo")), "1 | 1 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "array_has_any", l, list("foo", "zzz")), "1 | 1 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "array_has_any", l, list("foo", "bar")), "1 | 1 | NULL | 0 | 0 | 1 | 1"},
				{fn(t, "array_has_any", l, list()), "0 | 0 | NULL | 0 | 0 | 0 | 0"},
				{fn(t, "array_has_any", l, list("bar", nil)), "0 | 0 | NULL | 0 | 0 | 1 | 1"},
				{fn(t, "array_has_any", l, list(nil)), "0 | 0 | NULL | 0 | 0 | 0 | 0"},
				{fn(t, "array_has_any", l, nil), "NULL | NULL | NULL | NULL | NULL | NULL | NULL"},
				{fn(t, "array_has_all", l, list("foo")), "1 | 1 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "array_has_all", l, list("foo", "foo")), "1 | 1 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "array_has_all", l, list("foo", "bar")), "0 | 0 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "array_has_all", l, list()), "1 | 1 | NULL | 1 | 1 | 1 | 1"},
				{fn(t, "array_has_all", l, list("foo", nil)), "0 | 0 | NULL | 0 | 0 | 0 | 0"},
				{fn(t, "array_has_all", l, nil), "NULL | NULL | NULL | NULL | NULL | NULL | NULL"},
				{fn(t, "array_has_any", l, `["bar", "x"]`), "0 | 0 | NULL | 0 | 0 | 1 | 1"},
				{fn(t, "array_has", l, c["x"]), "1 | 0 | NULL | 0 | NULL | 1 | 1"},
				{fn(t, "array_has_any", l, fn(t, "make_array", c["x"], "nope")), "1 | 0 | NULL | 0 | 0 | 1 | 1"},
				{fn(t, "array_has_all", l, fn(t, "make_array", c["x"])), "1 | 0 | NULL | 0 | 0 | 1 | 1"},
				{fn(t, "array_length", l), "2 | 1 | NULL | 0 | 1 | 1 | 3"},
				{fn(t, "array_element", l, 1), "foo | foo | NULL | NULL | NULL | bar | foo"},
				{fn(t, "array_element", l, -1), "NULL | foo | NULL | NULL | NULL | bar | bar"},
				{fn(t, "->", l, "$[1]"), "NULL | NULL | NULL | NULL | NULL | NULL | foo"},
				{fn(t, "to_json", l), `["foo", null] | ["foo"] | NULL | [] | [null] | ["bar"] | ["foo", "foo", "bar"]`},
				{fn(t, "member_of", "foo", l), "1 | 1 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "member_of", 1, l), "0 | 0 | NULL | 0 | 0 | 0 | 0"},
				{fn(t, "json_contains", l, `["foo", "bar"]`), "0 | 0 | NULL | 0 | 0 | 0 | 1"},
				{fn(t, "json_contains", l, `"bar"`), "0 | 0 | NULL | 0 | 0 | 1 | 1"},
				{fn(t, "json_contains", l, `[]`), "1 | 1 | NULL | 1 | 1 | 1 | 1"},
				{fn(t, "json_contains", l, `[null]`), "1 | 0 | NULL | 0 | 1 | 0 | 0"},
				{fn(t, "json_contains", l, `[1]`), "0 | 0 | NULL | 0 | 0 | 0 | 0"},
				{fn(t, "json_overlaps", l, `["bar", 7]`), "0 | 0 | NULL | 0 | 0 | 1 | 1"},
				{fn(t, "json_overlaps", l, `["bar", null]`), "1 | 0 | NULL | 0 | 1 | 1 | 1"},
				{fn(t, "=", l, fn(t, "make_array", "foo")), "0 | 1 | NULL | 0 | 0 | 0 | 0"},
			} {
				if got, err := evalOver(t, x.e, testEnv(nil), batch); err != nil || got != x.want {
					t.Errorf("%s = %s, %v; want %s", x.e, got, err, x.want)
				}
			}
		})
	}
}

func TestNeedlesOfOtherTypes(t *testing.T) {
	arr := fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1, 2], [10], [-1, null], [0], [-1294967296]]`)
	batch, c := batchOf(t, map[string]arrow.Array{"l": arr}, "l")
	for _, v := range []any{1, "1", dec("1.0"), 1.0, int8(1), uint64(1), true} {
		e := fn(t, "array_has", c["l"], v).(*Call)
		if got := e.Args[1].Type(); !arrow.TypeEqual(got, arrow.PrimitiveTypes.Int32) {
			t.Errorf("needle %v stays %s", v, got)
		}
		if got, err := evalOver(t, e, testEnv(nil), batch); err != nil || got != "1 | 0 | 0 | 0 | 0" {
			t.Errorf("%s = %s, %v", e, got, err)
		}
	}
	for _, v := range []any{dec("1.5"), int64(3000000000), 1.5, "1.5"} {
		for _, e := range []Expr{fn(t, "array_has", c["l"], v), fn(t, "array_has_any", c["l"], fn(t, "make_array", v)), fn(t, "array_has_all", c["l"], fn(t, "make_array", v, 1))} {
			if got, err := evalOver(t, e, testEnv(nil), batch); err != nil || got != "0 | 0 | 0 | 0 | 0" {
				t.Errorf("%s = %s, %v", e, got, err)
			}
		}
	}
	for _, f := range []string{"array_has", "array_has_any", "array_has_all"} {
		needle := lit(t, "x")
		if f != "array_has" {
			needle = fn(t, "make_array", "x")
		}
		_, err := NewCall(f, c["l"], needle)
		if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), "'x'") || !strings.Contains(err.Error(), "l") {
			t.Errorf("%s: %v", f, err)
		}
	}
	floats := fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Float32), `[[0.1], [2]]`)
	fb, fc := batchOf(t, map[string]arrow.Array{"l": floats}, "l")
	if got, err := evalOver(t, fn(t, "array_has", fc["l"], dec("0.1")), testEnv(nil), fb); err != nil || got != "1 | 0" {
		t.Errorf("0.1 in floats: %s, %v", got, err)
	}
}

func TestConvertNeedle(t *testing.T) {
	utc := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	for _, x := range []struct {
		v    any
		to   arrow.DataType
		want string // "" = nothing equals it, "!" = ErrInvalid
	}{
		{1, arrow.PrimitiveTypes.Int32, "1"}, {"1", arrow.PrimitiveTypes.Int32, "1"}, {dec("1.0"), arrow.PrimitiveTypes.Int32, "1"}, {dec("1.5"), arrow.PrimitiveTypes.Int32, ""}, {int64(3000000000), arrow.PrimitiveTypes.Int32, ""}, {"x", arrow.PrimitiveTypes.Int32, "!"}, {"1x", arrow.PrimitiveTypes.Int32, "!"}, {"", arrow.PrimitiveTypes.Int32, "!"}, {nil, arrow.PrimitiveTypes.Int32, ""},
		{-1, arrow.PrimitiveTypes.Uint64, ""}, {uint64(18446744073709551615), arrow.PrimitiveTypes.Uint64, "18446744073709551615"}, {uint64(18446744073709551615), arrow.PrimitiveTypes.Int64, ""},
		{dec("0.1"), arrow.PrimitiveTypes.Float32, "0.1"}, {16777217, arrow.PrimitiveTypes.Float32, ""}, {16777216, arrow.PrimitiveTypes.Float32, "16777216"}, {1e300, arrow.PrimitiveTypes.Float32, ""}, {"x", arrow.PrimitiveTypes.Float64, "!"},
		{"1.50", &arrow.Decimal128Type{Precision: 5, Scale: 2}, "1.50"}, {1.5, &arrow.Decimal128Type{Precision: 5, Scale: 1}, "1.5"}, {dec("1.555"), &arrow.Decimal128Type{Precision: 5, Scale: 2}, ""}, {123456, &arrow.Decimal128Type{Precision: 5, Scale: 2}, ""},
		{"2026-03-29", arrow.FixedWidthTypes.Date32, "2026-03-29"}, {"2026-03-29 00:00:00", arrow.FixedWidthTypes.Date32, "2026-03-29"}, {"2026-03-29 01:00:00", arrow.FixedWidthTypes.Date32, ""}, {"garbage", arrow.FixedWidthTypes.Date32, "!"}, {20260329, arrow.FixedWidthTypes.Date32, "2026-03-29"}, {Date(20541), typeDatetime(), "2026-03-29 00:00:00.000000"}, {"2026-03-29 01:00:00.5", &arrow.TimestampType{Unit: arrow.Second}, ""}, {"2026-03-29 01:00:00.5", &arrow.TimestampType{Unit: arrow.Millisecond}, "2026-03-29 01:00:00.500"},
		{"2026-03-29 01:00:00Z", utc, "2026-03-29 01:00:00.000000"}, {time.Unix(0, 0), utc, "1970-01-01 00:00:00.000000"},
		{1, arrow.BinaryTypes.String, "1"}, {"a", arrow.BinaryTypes.LargeString, "a"}, {"a", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, "a"}, {1, arrow.FixedWidthTypes.Boolean, "1"}, {2, arrow.FixedWidthTypes.Boolean, ""}, {"10:11:12", arrow.FixedWidthTypes.Time64us, "10:11:12.000000"},
	} {
		l := lit(t, x.v).(*Literal)
		arr, err := ConvertNeedle(l, x.to)
		switch {
		case x.want == "!":
			if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), literalText(l)) {
				t.Errorf("%s to %s: %v", l, x.to, err)
			}
		case err != nil:
			t.Errorf("%s to %s: %v", l, x.to, err)
		case !arrow.TypeEqual(arr.DataType(), storageType(x.to)):
			t.Errorf("%s to %s: type %s", l, x.to, arr.DataType())
		case column(arr) != x.want:
			t.Errorf("%s to %s: %s, want %s", l, x.to, column(arr), x.want)
		}
	}
	if _, err := ConvertNeedle(lit(t, "2026-03-29 01:00:00").(*Literal), utc); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("a civil time without zone: %v", err)
	}
}

func TestDistances(t *testing.T) {
	vecs := `[[1, 0], [2, 0], [0, 1], [0, 0], null, [-1, 0]]`
	kinds := map[string]arrow.Array{
		"float32 vectors": fromJSON(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), vecs),
		"float64 vectors": fromJSON(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64), vecs),
		"float16 vectors": fromJSON(t, arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Float16), vecs),
		"float32 lists":   fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Float32), vecs),
		"JSON text":       fromJSON(t, arrow.BinaryTypes.String, `["[1, 0]", "[2, 0]", "[0, 1]", "[0, 0]", null, "[-1, 0]"]`),
	}
	blob := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0}
	for name, arr := range kinds {
		t.Run(name, func(t *testing.T) {
			batch, c := batchOf(t, map[string]arrow.Array{"v": arr}, "v")
			v := c["v"]
			for _, q := range []any{"[1,0]", blob, string(blob), []float32{1, 0}, fn(t, "make_array", dec("1.0"), 0), fn(t, "string_to_vector", "[1,0]")} {
				for f, want := range map[string]string{
					"l2sq_distance": "0 | 1 | 2 | 1 | NULL | 4", "l2_distance": "0 | 1 | 1.4142135623730951 | 1 | NULL | 2", "vec_distance": "0 | 1 | 2 | 1 | NULL | 4",
					"cosine_distance": "0 | 0 | 1 | NULL | NULL | 2", "cosine_similarity": "1 | 1 | 0 | NULL | NULL | -1", "dot_distance": "0 | -1 | 1 | 1 | NULL | 2", "inner_product": "1 | 2 | 0 | 0 | NULL | -1",
				} {
					if got, err := evalOver(t, fn(t, f, v, q), testEnv(nil), batch); err != nil || got != want {
						t.Errorf("%s(%v) = %s, %v; want %s", f, q, got, err, want)
					}
					if got, err := evalOver(t, fn(t, f, q, v), testEnv(nil), batch); err != nil || got != want {
						t.Errorf("%s(%v) swapped = %s, %v; want %s", f, q, got, err, want)
					}
				}
			}
			if got, err := evalOver(t, fn(t, "l2sq_distance", v, v), testEnv(nil), batch); err != nil || got != "0 | 0 | 0 | 0 | NULL | 0" {
				t.Errorf("to itself: %s, %v", got, err)
			}
			if got, err := evalOver(t, fn(t, "l2_distance", v, nil), testEnv(nil), batch); err != nil || got != "NULL | NULL | NULL | NULL | NULL | NULL" {
				t.Errorf("to NULL: %s, %v", got, err)
			}
			if got, err := evalOver(t, fn(t, "distance", v, "[1,0]", "COSINE"), testEnv(nil), batch); err != nil || got != "0 | 0 | 1 | NULL | NULL | 2" {
				t.Errorf("DISTANCE: %s, %v", got, err)
			}
		})
	}
	v := &Column{Name: "v", T: kinds["float32 vectors"].DataType()}
	for _, q := range []any{"[1,0,0]", "[]", "[1,x]", "", "abc", []byte{1, 2, 3}, []float32{1}, fn(t, "make_array"), "[1,]", "[0x10,1]", "[nan,1]"} {
		if _, err := NewCall("l2_distance", v, lit(t, q)); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("query %v: %v", q, err)
		}
	}
	if _, err := NewCall("l2_distance", v, lit(t, "[1,0,0]")); !strings.Contains(err.Error(), "2 and 3") {
		t.Errorf("wrong dimension: %v", err)
	}
	if _, err := NewCall("l2_distance", &Column{Name: "k", T: typeInt()}, lit(t, "[1]")); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a number as vector: %v", err)
	}
	bytes := fromJSON(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Uint8), `[[1, 0], [255, 1]]`)
	batch, c := batchOf(t, map[string]arrow.Array{"v": bytes}, "v")
	if got, err := evalOver(t, fn(t, "hamming_distance", c["v"], "[1,0]"), testEnv(nil), batch); err != nil || got != "0 | 8" {
		t.Errorf("hamming: %s, %v", got, err)
	}
	runDocCases(t, []docCase{
		{"vector_dim", a("[1,2,3]"), "3"}, {"vector_to_string", a(fn(t, "string_to_vector", "[1.05, -17.8, 32]")), "[1.05000e+00,-1.78000e+01,3.20000e+01]"}, {"vec_totext", a(fn(t, "vec_fromtext", "[1, 2.5]")), "[1,2.5]"},
	})
}

func TestJSONFunctions(t *testing.T) {
	runDocCases(t, []docCase{
		{"json_contains", a(`{"a": 1, "b": 2, "c": {"d": 4}}`, "1", "$.a"), "1"}, {"json_contains", a(`{"a": 1, "b": 2, "c": {"d": 4}}`, `{"d": 4}`, "$.a"), "0"}, {"json_contains", a(`{"a": 1, "b": 2, "c": {"d": 4}}`, `{"d": 4}`, "$.c"), "1"},
		{"json_overlaps", a("[1,3,5,7]", "[2,5,7]"), "1"}, {"json_overlaps", a("[1,3,5,7]", "[2,6,8]"), "0"}, {"json_overlaps", a("[1,3,5,7]", "5"), "1"}, {"json_overlaps", a(`{"a":1,"b":10}`, `{"c":1,"b":10}`), "1"}, {"json_overlaps", a("[1,2]", `["1"]`), "0"},
		{"member_of", a(17, `[23, "abc", 17, "ab", 10]`), "1"}, {"member_of", a("17", `[23, "abc", 17, "ab", 10]`), "0"}, {"member_of", a("ab", `[23, "abc", 17, "ab", 10]`), "1"},
		{"json_extract", a(`{"id": "3", "n": {"x": [1, 2.50]}}`, "$.n.x[1]"), "2.50"}, {"->", a(`{"id": "3"}`, "$.id"), `"3"`}, {"->>", a(`{"id": "3"}`, "$.id"), "3"}, {"->", a(`{"id": "3"}`, "$.none"), "NULL"}, {"->", a(`{"b": {"zz": 1, "a": null}}`, "$.b"), `{"a": null, "zz": 1}`},
		{"json_unquote", a(`"abc"`), "abc"}, {"json_unquote", a("[1, 2, 3]"), "[1, 2, 3]"}, {"json_quote", a(`null "x"`), `"null \"x\""`}, {"json_length", a(`[1, 2, {"a": 3}]`), "3"}, {"json_valid", a(`{"a": 1}`), "1"}, {"json_valid", a("hello"), "0"}, {"json_type", a("[1]"), "ARRAY"},
	})
	st := fromJSON(t, arrow.StructOf(arrow.Field{Name: "f", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "g", Type: arrow.StructOf(arrow.Field{Name: "h", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true}),
		`[{"f": 1, "g": {"h": "x"}}, null, {"f": null, "g": null}]`)
	batch, c := batchOf(t, map[string]arrow.Array{"s": st}, "s")
	for _, x := range []struct {
		e    Expr
		want string
	}{
		{fn(t, "struct_field", c["s"], "f"), "1 | NULL | NULL"}, {fn(t, "->", c["s"], "$.g.h"), "x | NULL | NULL"}, {fn(t, "->>", c["s"], "$.f"), "1 | NULL | NULL"}, {fn(t, "to_json", c["s"]), `{"f": 1, "g": {"h": "x"}} | NULL | {"f": null, "g": null}`},
	} {
		if got, err := evalOver(t, x.e, testEnv(nil), batch); err != nil || got != x.want {
			t.Errorf("%s = %s, %v; want %s", x.e, got, err, x.want)
		}
	}
	m := fromJSON(t, arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String), `[[{"key": 1, "value": "a"}, {"key": 2, "value": "b"}], null, [], [{"key": 2, "value": null}]]`)
	mb, mc := batchOf(t, map[string]arrow.Array{"m": m, "n": array.NewNull(4)}, "m", "n")
	for _, x := range []struct {
		e    Expr
		want string
	}{
		{fn(t, "->", mc["m"], "$.2"), "b | NULL | NULL | NULL"}, {fn(t, "to_json", mc["m"]), `{"1": "a", "2": "b"} | NULL | {} | {"2": null}`}, {fn(t, "cardinality", mc["m"]), "2 | NULL | 0 | 1"},
		{fn(t, "is_null", mc["n"]), "1 | 1 | 1 | 1"}, {fn(t, "coalesce", mc["n"], 7), "7 | 7 | 7 | 7"}, {fn(t, "=", mc["n"], 1), "NULL | NULL | NULL | NULL"}, {fn(t, "array_has", mc["n"], 1), "NULL | NULL | NULL | NULL"}, {mc["n"], "NULL | NULL | NULL | NULL"},
	} {
		if got, err := evalOver(t, x.e, testEnv(nil), mb); err != nil || got != x.want {
			t.Errorf("%s = %s, %v; want %s", x.e, got, err, x.want)
		}
	}
	if _, err := NewCall("struct_field", c["s"], lit(t, "nope")); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), "nope") {
		t.Errorf("unknown field: %v", err)
	}
}

func TestTimestampsShowInTheSessionsZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	utc := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	batch, c := batchOf(t, map[string]arrow.Array{
		"ts":    fromJSON(t, utc, `["2026-03-29 00:59:59Z", "2026-03-29 01:30:00Z"]`),
		"plain": fromJSON(t, typeDatetime(), `["2026-03-29 00:59:59", "2026-03-29 02:30:00"]`),
	}, "ts", "plain")
	asText := func(e Expr) Expr {
		out, err := NewCast(e, typeString())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, x := range []struct {
		e               Expr
		inBerlin, inUTC string
	}{
		{asText(c["ts"]), "2026-03-29 01:59:59.000000 | 2026-03-29 03:30:00.000000", "2026-03-29 00:59:59.000000 | 2026-03-29 01:30:00.000000"},
		{asText(c["plain"]), "2026-03-29 00:59:59.000000 | 2026-03-29 02:30:00.000000", "2026-03-29 00:59:59.000000 | 2026-03-29 02:30:00.000000"},
		{fn(t, ">=", c["ts"], "2026-03-29 03:00:00"), "0 | 1", "0 | 0"},
		{fn(t, ">=", c["ts"], "2026-03-29 01:00:00Z"), "0 | 1", "0 | 1"},
		{fn(t, ">=", c["plain"], "2026-03-29 02:30:00"), "0 | 1", "0 | 1"},
		{fn(t, "hour", c["ts"]), "1 | 3", "0 | 1"},
		{fn(t, "date", c["ts"]), "2026-03-29 | 2026-03-29", "2026-03-29 | 2026-03-29"},
		{fn(t, "unix_timestamp", c["ts"]), "1774745999.000000 | 1774747800.000000", "1774745999.000000 | 1774747800.000000"},
		{fn(t, "to_json", fn(t, "make_array", c["ts"])), `["2026-03-29 01:59:59.000000"] | ["2026-03-29 03:30:00.000000"]`, `["2026-03-29 00:59:59.000000"] | ["2026-03-29 01:30:00.000000"]`},
	} {
		for zone, want := range map[*time.Location]string{berlin: x.inBerlin, time.UTC: x.inUTC} {
			env := &Env{Location: zone}
			if got, err := evalOver(t, x.e, env, batch); err != nil || got != want {
				t.Errorf("%s in %s = %s, %v; want %s", x.e, zone, got, err, want)
			}
			folded, err := Fold(x.e, env)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := evalOver(t, folded, env, batch); err != nil || got != want {
				t.Errorf("folded %s in %s = %s, %v; want %s", folded, zone, got, err, want)
			}
		}
	}
	e, err := Fold(fn(t, ">=", c["ts"], "2026-03-29 03:00:00"), &Env{Location: berlin})
	if err != nil {
		t.Fatal(err)
	}
	l, ok := e.(*Call).Args[1].(*Literal)
	if !ok || !arrow.TypeEqual(l.Type(), utc) {
		t.Errorf("the literal is no instant of the column's type after Fold: %s", e)
	}
	if _, err := ConvertNeedle(l, utc); err != nil {
		t.Error(err)
	}
}
