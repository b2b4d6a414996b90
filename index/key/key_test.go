package key

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// fromJSON builds an array of values that ascend.
func fromJSON(tb testing.TB, alloc memory.Allocator, t arrow.DataType, values string) arrow.Array {
	tb.Helper()
	arr, _, err := array.FromJSON(alloc, t, strings.NewReader(values))
	if err != nil {
		tb.Fatalf("%s %s: %v", t, values, err)
	}
	return arr
}

// ascending holds values of every type that can be indexed, in the order of the files.
var ascending = []struct {
	typ    arrow.DataType
	values string
}{
	{arrow.FixedWidthTypes.Boolean, `[false, true]`},
	{arrow.PrimitiveTypes.Int8, `[-128, -1, 0, 127]`},
	{arrow.PrimitiveTypes.Int16, `[-32768, -1, 0, 32767]`},
	{arrow.PrimitiveTypes.Int32, `[-2147483648, -1, 0, 1, 2147483647]`},
	{arrow.PrimitiveTypes.Int64, `[-9223372036854775808, -1, 0, 1, 9223372036854775807]`},
	{arrow.PrimitiveTypes.Uint8, `[0, 127, 128, 255]`},
	{arrow.PrimitiveTypes.Uint16, `[0, 65535]`},
	{arrow.PrimitiveTypes.Uint32, `[0, 4294967295]`},
	{arrow.PrimitiveTypes.Uint64, `[0, 9223372036854775808, 18446744073709551615]`},
	{arrow.FixedWidthTypes.Float16, `[-2.5, -1, 0, 0.5, 3]`},
	{arrow.PrimitiveTypes.Float32, `[-3e38, -1.5, 0, 1e-40, 1, 3e38]`},
	{arrow.PrimitiveTypes.Float64, `[-1e308, -1.5, 0, 1, 1e308]`},
	{arrow.FixedWidthTypes.Date32, `[-5, 0, 20000]`},
	{arrow.FixedWidthTypes.Date64, `[-86400000, 0, 86400000]`},
	{arrow.FixedWidthTypes.Time32ms, `[0, 5]`},
	{arrow.FixedWidthTypes.Time64us, `[0, 5]`},
	{arrow.FixedWidthTypes.Timestamp_us, `[-7, 0, 1700000000000000]`},
	{arrow.FixedWidthTypes.Duration_ms, `[-7, 0, 9]`},
	{arrow.BinaryTypes.String, `["", "FOO", "a", "a\u0000", "aa", "foo", "foo ", "日本", "😀"]`},
	{arrow.BinaryTypes.LargeString, `["", "a", "b"]`},
	{arrow.BinaryTypes.Binary, `["", "AA==", "/w==", "/wA="]`},
	{arrow.BinaryTypes.LargeBinary, `["", "AA==", "/w=="]`},
	{&arrow.FixedSizeBinaryType{ByteWidth: 2}, `["AAA=", "AAE=", "//8="]`},
	{&arrow.Decimal128Type{Precision: 38, Scale: 2}, `["-99999999999999999999999999999999999.25", "-0.01", "0.00", "0.01", "123456789012345678901234567890.50"]`},
	{&arrow.Decimal256Type{Precision: 60, Scale: 0}, `["-999999999999999999999999999999999999999999999999999999999999", "-1", "0", "7", "99999999999999999999999999999999999999999999999"]`},
}

func TestKeysOrderAsTheirValues(t *testing.T) {
	for _, c := range ascending {
		t.Run(c.typ.String(), func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			arr := fromJSON(t, alloc, c.typ, c.values)
			defer arr.Release()
			codec, err := NewCodec(c.typ)
			if err != nil {
				t.Fatal(err)
			}
			var keys []Key
			for i := range arr.Len() {
				keys = append(keys, codec.At(arr, i))
			}
			for i := 1; i < len(keys); i++ {
				if codec.Compare(keys[i-1], keys[i]) >= 0 {
					t.Errorf("value %s is not below %s", arr.ValueStr(i-1), arr.ValueStr(i))
				}
			}
			back, err := codec.Array(alloc, 1, keys)
			if err != nil {
				t.Fatal(err)
			}
			defer back.Release()
			tail := array.NewSlice(back, 1, int64(back.Len()))
			defer tail.Release()
			if !back.IsNull(0) || back.NullN() != 1 || !array.Equal(tail, arr) {
				t.Errorf("came back as %s", back)
			}
		})
	}
}

func TestTypesWithoutAnOrderAreRefused(t *testing.T) {
	for _, typ := range []arrow.DataType{
		arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.StructOf(), arrow.Null,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
	} {
		if _, err := NewCodec(typ); !errors.Is(err, errs.ErrUnsupported) {
			t.Errorf("%s: got %v", typ, err)
		}
	}
}

func TestPredicatesOfAnotherShapeAreInvalid(t *testing.T) {
	codec, _ := NewCodec(arrow.PrimitiveTypes.Int32)
	ints := func(s string) arrow.Array { return fromJSON(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Int32, s) }
	for name, p := range map[string]index.Predicate{
		"a literal of another width": {Op: index.OpEq, Values: fromJSON(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, `[1]`)},
		"text for a number":          {Op: index.OpIn, Values: fromJSON(t, memory.DefaultAllocator, arrow.BinaryTypes.String, `["1"]`)},
		"a NULL among the values":    {Op: index.OpIn, Values: ints(`[1, null]`)},
		"no value":                   {Op: index.OpHasAny, Values: ints(`[]`)},
		"no values at all":           {Op: index.OpHas},
		"two values for =":           {Op: index.OpEq, Values: ints(`[1, 2]`)},
		"one bound":                  {Op: index.OpRange, Values: ints(`[1]`)},
	} {
		if _, err := codec.Ranges(p); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// doubles are the values that floats get wrong.
var doubles = []float64{
	math.Inf(-1), -1.5, math.Copysign(0, -1), 0, 1.5, 2, math.Inf(1), math.NaN(), math.Float64frombits(math.Float64bits(math.NaN()) | 1<<63),
}

func doubleArray(values ...float64) arrow.Array {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues(values, nil)
	return b.NewArray()
}

func TestFloatRangesFollowSQLComparison(t *testing.T) {
	codec, _ := NewCodec(arrow.PrimitiveTypes.Float64)
	selected := func(p index.Predicate) []float64 {
		ranges, err := codec.Ranges(p)
		if err != nil {
			t.Fatal(err)
		}
		var out []float64
		for i, v := range doubles {
			k := codec.At(doubleArray(doubles...), i)
			if slices.ContainsFunc(ranges, func(r Range) bool { return !codec.Below(k, r) && !codec.Above(k, r) }) {
				out = append(out, v)
			}
		}
		return out
	}
	check := func(name string, got []float64, holds func(v float64) bool) {
		t.Helper()
		var want []float64
		for _, v := range doubles {
			if holds(v) {
				want = append(want, v)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for _, x := range doubles {
		check("=", selected(index.Predicate{Op: index.OpEq, Values: doubleArray(x)}), func(v float64) bool { return v == x })
		unbounded := func(lower bool) arrow.Array {
			b := array.NewFloat64Builder(memory.DefaultAllocator)
			if lower {
				b.AppendNull()
				b.Append(x)
			} else {
				b.Append(x)
				b.AppendNull()
			}
			return b.NewArray()
		}
		check("<", selected(index.Predicate{Op: index.OpRange, Values: unbounded(true)}), func(v float64) bool { return v < x })
		check("<=", selected(index.Predicate{Op: index.OpRange, Values: unbounded(true), UpperInclusive: true}), func(v float64) bool { return v <= x })
		check(">", selected(index.Predicate{Op: index.OpRange, Values: unbounded(false)}), func(v float64) bool { return v > x })
		check(">=", selected(index.Predicate{Op: index.OpRange, Values: unbounded(false), LowerInclusive: true}), func(v float64) bool { return v >= x })
		for _, y := range doubles {
			check("IN", selected(index.Predicate{Op: index.OpIn, Values: doubleArray(x, y, x)}), func(v float64) bool { return v == x || v == y })
			check("BETWEEN", selected(index.Predicate{Op: index.OpRange, Values: doubleArray(x, y), LowerInclusive: true, UpperInclusive: true}),
				func(v float64) bool { return x <= v && v <= y })
		}
	}
}

func TestPointsOfAnImpossibleNeedle(t *testing.T) {
	codec, _ := NewCodec(arrow.PrimitiveTypes.Float64)
	points, impossible, err := codec.Points(index.Predicate{Op: index.OpHasAll, Values: doubleArray(0, math.Copysign(0, -1), math.NaN(), 3)})
	if err != nil || !impossible || len(points) != 2 {
		t.Fatalf("%v %v %v", points, impossible, err)
	}
}

func TestDictFindsEveryRowOfEveryKey(t *testing.T) {
	codec := map[bool]Codec{}
	codec[false], _ = NewCodec(arrow.PrimitiveTypes.Int64)
	codec[true], _ = NewCodec(arrow.BinaryTypes.String)
	rapid.Check(t, func(t *rapid.T) {
		wide := rapid.Bool().Draw(t, "wide")
		values := rapid.SliceOfN(rapid.Int64Range(-1, 30), 0, 60).Draw(t, "values") // -1 = NULL
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(values)
		}
		budget := mem.NewBudget("keys", 0, nil)
		d := NewDict(codec[wide], budget)
		for part := range slices.Chunk(values, rapid.IntRange(1, 20).Draw(t, "chunk")) {
			if err := d.Append(valuesArray(wide, part)); err != nil {
				t.Fatal(err)
			}
		}
		d.Finish()
		if budget.Used() < d.SizeBytes()/4 {
			t.Fatalf("paid %d for %d bytes", budget.Used(), d.SizeBytes())
		}
		rowsOf := func(keep func(int64) bool) (out []uint32) {
			for row, v := range values {
				if keep(v) {
					out = append(out, uint32(row))
				}
			}
			return out
		}
		span := func(r Range) (out []uint32) {
			for place, end := d.Span(r); place < end; place++ {
				out = append(out, d.Row(place))
			}
			slices.Sort(out)
			return out
		}
		if !slices.Equal(d.NullRows(), rowsOf(func(v int64) bool { return v < 0 })) {
			t.Fatalf("NULL rows %v of %v", d.NullRows(), values)
		}
		for v := range int64(31) {
			k := codec[wide].At(valuesArray(wide, []int64{v}), 0)
			if got := span(Range{Lo: k, Hi: k}); !slices.Equal(got, rowsOf(func(x int64) bool { return x == v })) {
				t.Fatalf("value %d of %v: rows %v", v, values, got)
			}
			if got := span(Range{Lo: k, LoOpen: true, NoHi: true}); !slices.Equal(got, rowsOf(func(x int64) bool { return x > v })) {
				t.Fatalf("above %d of %v: rows %v", v, values, got)
			}
			if got := span(Range{NoLo: true, Hi: k}); !slices.Equal(got, rowsOf(func(x int64) bool { return x >= 0 && x <= v })) {
				t.Fatalf("up to %d of %v: rows %v", v, values, got)
			}
		}
		d.Free()
		if budget.Used() != 0 {
			t.Fatalf("%d bytes are still paid", budget.Used())
		}
	})
}

// valuesArray holds numbers, or text whose order is theirs; -1 is NULL.
func valuesArray(wide bool, values []int64) arrow.Array {
	if wide {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for _, v := range values {
			if v < 0 {
				b.AppendNull()
			} else {
				b.Append(strings.Repeat("x", int(v)))
			}
		}
		return b.NewArray()
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for _, v := range values {
		if v < 0 {
			b.AppendNull()
		} else {
			b.Append(v)
		}
	}
	return b.NewArray()
}

func TestDictRefusesWhatTheBudgetDoes(t *testing.T) {
	codec, _ := NewCodec(arrow.BinaryTypes.String)
	budget := mem.NewBudget("keys", 1000, nil)
	d := NewDict(codec, budget)
	if err := d.Append(valuesArray(true, []int64{2000})); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Fatalf("got %v", err)
	}
	if budget.Used() != 0 {
		t.Fatalf("%d bytes paid for nothing", budget.Used())
	}
}
