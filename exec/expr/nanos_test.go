package expr

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The digits of stored nanoseconds count in every comparison, as they do in an index.
func TestComparisonsOfNanosecondsCutNothing(t *testing.T) {
	nanos := &arrow.TimestampType{Unit: arrow.Nanosecond}
	stored := []int64{-1_000_001, -1_000_000, -999_999, 0, 1, 999, 1000, 1001, 1_700_000_000_000_000_000, 1_700_000_000_000_000_001, -1 << 63, 1<<63 - 1}
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: nanos, Nullable: true}, {Name: "b", Type: nanos, Nullable: true}, {Name: "m", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	micros := []int64{-1000, 0, 1, 1_700_000_000_000_000, -1 << 62, 1 << 62}
	type row struct{ a, b, m int64 }
	var rows []row
	for _, x := range stored {
		for _, y := range stored {
			for _, m := range micros {
				rows = append(rows, row{x, y, m})
				b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(x))
				b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(y))
				b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(m))
			}
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	a, other, m := &Column{ID: 0, Name: "a", T: nanos}, &Column{ID: 1, Name: "b", T: nanos}, &Column{ID: 2, Name: "m", T: schema.Field(2).Type}
	literal := func(us int64) Expr {
		l, err := NewLiteral(Datetime(us))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	// against says how nanoseconds compare with microseconds, whatever their size.
	against := func(x, us int64) int {
		whole, rest := floorDiv(x, 1000), x-floorDiv(x, 1000)*1000
		switch {
		case whole < us:
			return -1
		case whole > us || rest > 0:
			return 1
		}
		return 0
	}
	compare := func(x, y int64) int {
		if x < y {
			return -1
		}
		return int(b2u(x > y))
	}
	for op, is := range map[string]compareOp{"=": opEqual, "<>": opNotEqual, "<": opLess, "<=": opLessEq, ">": opGreater, ">=": opGreaterEq, "<=>": opEqual} {
		check := func(what string, e Expr, err error, want func(r row) bool) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			p, err := Compile(e, schema)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Eval(nil, batch)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Release()
			for i, r := range rows {
				if v := got.(*array.Boolean).Value(i); v != want(r) {
					t.Fatalf("%s %s of a=%d b=%d m=%d is %v", op, what, r.a, r.b, r.m, v)
				}
			}
		}
		e, err := NewCall(op, a, other)
		check("two columns", e, err, func(r row) bool { return is.holds(compare(r.a, r.b)) })
		e, err = NewCall(op, a, m)
		check("a column of microseconds", e, err, func(r row) bool { return is.holds(against(r.a, r.m)) })
		e, err = NewCall(op, m, a)
		check("a column of microseconds first", e, err, func(r row) bool { return is.holds(-against(r.a, r.m)) })
		for _, us := range []int64{-1000, 0, 1, 1_700_000_000_000_000} {
			e, err = NewCall(op, a, literal(us))
			check(fmt.Sprint("the constant ", us), e, err, func(r row) bool { return is.holds(against(r.a, us)) })
			low, err := NewCall("<", other, literal(1))
			if err != nil {
				t.Fatal(err)
			}
			e, err = NewCall("and", low, e)
			check(fmt.Sprint("some rows and the constant ", us), e, err, func(r row) bool { return against(r.b, 1) < 0 && is.holds(against(r.a, us)) })
		}
		if op == "=" {
			e, err = NewCall("in", a, literal(0), literal(1), literal(-1000))
			check("in a list", e, err, func(r row) bool { return r.a == 0 || r.a == 1000 || r.a == -1_000_000 })
		}
	}
}
