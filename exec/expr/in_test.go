package expr

import (
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"pgregory.net/rapid"
)

// TestPlainMembersEqualWhatIsConvertedOneByOne: the short way gives the list that converting each constant by itself gives.
func TestPlainMembersEqualWhatIsConvertedOneByOne(t *testing.T) {
	columns := []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString,
	}
	number := rapid.OneOf(rapid.Int64Range(-300, 300), rapid.Int64(), rapid.SampledFrom([]int64{
		math.MaxInt64, math.MinInt64, math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32, math.MaxUint32 + 1, math.MinInt16, math.MaxUint16, math.MaxUint8, -1, 0,
	}))
	rapid.Check(t, func(t *rapid.T) {
		column := rapid.SampledFrom(columns).Draw(t, "column")
		isText := classOf(column) == classString
		var members []Expr
		var one []string
		for range rapid.IntRange(1, 20).Draw(t, "members") {
			var value any
			switch {
			case rapid.IntRange(0, 9).Draw(t, "null") == 0:
				value = nil
			case isText:
				value = rapid.String().Draw(t, "text")
			default:
				value = number.Draw(t, "number")
			}
			lit, err := NewLiteral(value)
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, lit)
			if value == nil {
				one = append(one, "(null)")
				continue
			}
			arr, err := ConvertNeedle(lit, column)
			if err != nil {
				t.Fatal(err)
			}
			for i := range arr.Len() {
				one = append(one, arr.ValueStr(i))
			}
		}
		e, err := NewCall("in", append([]Expr{&Column{Name: "c", T: column}}, members...)...)
		if err != nil {
			t.Fatal(err)
		}
		list := listOfCall(t, e)
		if _, short := plainMembers(column, members); !short {
			t.Fatal("the short way was not taken")
		}
		got := make([]string, list.Len())
		for i := range got {
			got[i] = list.ValueStr(i)
		}
		if !arrow.TypeEqual(list.DataType(), column) || !slices.Equal(got, one) {
			t.Fatalf("%s of %s, want %v", got, list.DataType(), one)
		}
	})
}

func listOfCall(t *rapid.T, e Expr) arrow.Array {
	lit, ok := e.(*Call).Args[1].(*Literal)
	if !ok {
		t.Fatalf("%s has no list", e)
	}
	return lit.Value.(scalar.ListScalar).GetList()
}

// TestMembersThatAreNotPlain go the long way.
func TestMembersThatAreNotPlain(t *testing.T) {
	col := func(dt arrow.DataType) Expr { return &Column{Name: "c", T: dt} }
	for name, members := range map[string][]Expr{
		"text beside numbers":  {lit(t, 1), lit(t, "2")},
		"a fraction":           {lit(t, 1), lit(t, dec("2.5"))},
		"a column":             {lit(t, 1), col(typeInt())},
		"an unsigned constant": {lit(t, uint64(math.MaxUint64))},
	} {
		if _, ok := plainMembers(typeInt(), members); ok {
			t.Errorf("%s: taken as plain", name)
		}
	}
	if _, ok := plainMembers(typeString(), []Expr{lit(t, 1)}); ok {
		t.Error("a number beside text: taken as plain")
	}
	if _, ok := plainMembers(typeFloat(), []Expr{lit(t, 1)}); ok {
		t.Error("a column of floating point: taken as plain")
	}
}

func BenchmarkResolveLongIn(b *testing.B) {
	args := []Expr{&Column{Name: "c", T: arrow.PrimitiveTypes.Int64}}
	for i := range 1000 {
		args = append(args, lit(b, i*7))
	}
	b.ReportAllocs()
	for b.Loop() {
		e, err := NewCall("in", args...)
		if err != nil {
			b.Fatal(err)
		}
		if e.(*Call).Args[1].(*Literal).Value.(scalar.ListScalar).GetList().(*array.Int64).Len() != 1000 {
			b.Fatal("members")
		}
	}
}
