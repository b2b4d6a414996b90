package dml

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
)

func texts(values ...string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	for _, v := range values {
		if v == "NULL" {
			b.AppendNull()
		} else {
			b.Append(v)
		}
	}
	return b.NewArray()
}

func column(t *testing.T, name string) arrow.Field {
	t.Helper()
	typ, err := coltype.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return typ.Field("c", true, false, "", "")
}

// TestAssignText: what MySQL's assignment makes of text, and the nearest value where the text does not fit.
func TestAssignText(t *testing.T) {
	for _, c := range []struct {
		typ, in, want string
		problem       error
	}{
		{"tinyint", "-128", "-128", nil}, {"tinyint", "127.5", "127", errs.ErrOutOfRange}, {"tinyint", "-127.5", "-128", nil}, {"int", "2.5", "3", nil}, {"int", " 7 ", "7", nil}, {"int", "1e2", "100", nil},
		{"int", "7x", "7", errs.ErrTruncated}, {"int", "x", "0", errs.ErrBadValue}, {"bigint", "9223372036854775808", "9223372036854775807", errs.ErrOutOfRange}, {"bigint unsigned", "18446744073709551615", "18446744073709551615", nil},
		{"bigint unsigned", "-1", "0", errs.ErrOutOfRange}, {"decimal(4,2)", "1.005", "1.01", nil}, {"decimal(4,2)", "-99.999", "-99.99", errs.ErrOutOfRange}, {"double", "1e400", "1.7976931348623157e+308", errs.ErrOutOfRange},
		{"date", "2026-11-30 23:59:59", "2026-11-30", nil}, {"date", "20261130", "2026-11-30", nil}, {"date", "2026-02-29", "(null)", errs.ErrBadTime}, {"date", "2024-2-9", "2024-02-09", nil},
		{"datetime(6)", "2026-11-30T01:02:03.1234567Z", "2026-11-30T01:02:03.123457", nil}, {"datetime", "2026-12-31 23:59:59.5", "2027-01-01T00:00:00", nil}, {"datetime(6)", "2026-11-30 01:02:03+02:00", "2026-11-29T23:02:03", nil},
		{"time", "-00:00:01", "(null)", errs.ErrBadTime}, {"varchar(2)", "äöü", "äö", errs.ErrTooLong}, {"varchar(2)", "ab  ", "ab", nil}, {"json", `{"a":1}`, `{"a":1}`, nil}, {"json", "{", "null", errs.ErrBadJSON},
		{"list<int>", "[1, null, 3]", "[1,null,3]", nil}, {"list<int>", `{"a":1}`, "(null)", errs.ErrBadValue}, {"list<list<varchar>>", `[["a"],[]]`, `[["a"],[]]`, nil}, {"vector(2)", "[1, 2.5]", "[1,2.5]", nil},
		{"vector(2)", "[1]", "(null)", errs.ErrBadValue}, {"vector(2)", "[1e40, 0]", "[3.4028235e+38,0]", errs.ErrOutOfRange}, {"boolean", "true", "true", nil}, {"boolean", "2", "true", errs.ErrOutOfRange}, {"year", "2026", "2026", nil},
	} {
		f := column(t, c.typ)
		in := texts(c.in)
		strict := &Assigner{Alloc: memory.DefaultAllocator, Location: time.UTC}
		out, err := strict.Column(in, f)
		if c.problem == nil && err != nil || c.problem != nil && !errors.Is(err, c.problem) {
			t.Errorf("%s into %s: %v, want %v", c.in, c.typ, err, c.problem)
		}
		if out != nil {
			out.Release()
		}
		warned := 0
		lenient := &Assigner{Alloc: memory.DefaultAllocator, Location: time.UTC, Lenient: true, Warn: func(error) { warned++ }}
		if out, err = lenient.Column(in, f); err != nil {
			t.Errorf("%s into %s: %v", c.in, c.typ, err)
			continue
		}
		if got := out.ValueStr(0); got != c.want || (warned > 0) != (c.problem != nil) {
			t.Errorf("%s into %s: %q with %d warnings, want %q", c.in, c.typ, got, warned, c.want)
		}
		out.Release()
		in.Release()
	}
}

// TestAssignKeepsWhatFits: an array of the column's own type passes without a copy, unless a vector in it is none.
func TestAssignKeepsWhatFits(t *testing.T) {
	a := &Assigner{Alloc: memory.DefaultAllocator, Location: time.UTC}
	b := array.NewFixedSizeListBuilder(memory.DefaultAllocator, 2, arrow.PrimitiveTypes.Float32)
	defer b.Release()
	values, ok := b.ValueBuilder().(*array.Float32Builder)
	if !ok {
		t.Fatalf("%T", b.ValueBuilder())
	}
	b.Append(true)
	values.AppendValues([]float32{1, 2}, nil)
	good := b.NewArray()
	defer good.Release()
	f := arrow.Field{Name: "v", Type: good.DataType(), Nullable: true}
	same, err := a.Column(good, f)
	if err != nil || same != good {
		t.Errorf("%v, %v", same, err)
	}
	same.Release()
	b.Append(true)
	values.AppendValues([]float32{1, float32(math.NaN())}, nil)
	bad := b.NewArray()
	defer bad.Release()
	if _, err := a.Column(bad, f); !errors.Is(err, errs.ErrBadValue) {
		t.Errorf("NaN: %v", err)
	}
	f.Nullable = false
	none := array.MakeArrayOfNull(memory.DefaultAllocator, good.DataType(), 1)
	defer none.Release()
	if _, err := a.Column(none, f); !errors.Is(err, errs.ErrNull) {
		t.Errorf("NULL: %v", err)
	}
}
