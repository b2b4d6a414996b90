package testutil

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Spell returns value i of an array as the expected.json files spell it (testdata/README.md), with numbers as json.Number: 64-bit integers, timestamps and
// unscaled decimals as text, binary as base64, non-finite floats and negative zero as text, lists and vectors as slices, structs and maps as maps.
func Spell(a arrow.Array, i int) any { //nolint:funlen,gocyclo // flat switch
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return number(int64(a.Value(i)))
	case *array.Int16:
		return number(int64(a.Value(i)))
	case *array.Int32:
		return number(int64(a.Value(i)))
	case *array.Uint8:
		return number(int64(a.Value(i)))
	case *array.Uint16:
		return number(int64(a.Value(i)))
	case *array.Uint32:
		return number(int64(a.Value(i)))
	case *array.Date32:
		return number(int64(a.Value(i)))
	case *array.Time32:
		return number(int64(a.Value(i)))
	case *array.Int64:
		return strconv.FormatInt(a.Value(i), 10)
	case *array.Uint64:
		return strconv.FormatUint(a.Value(i), 10)
	case *array.Date64:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Time64:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Duration:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.Decimal256:
		return a.Value(i).BigInt().String()
	case *array.Float16:
		return spellFloat(float64(a.Value(i).Float32()))
	case *array.Float32:
		return spellFloat(float64(a.Value(i)))
	case *array.Float64:
		return spellFloat(a.Value(i))
	case *array.String:
		return strings.Clone(a.Value(i))
	case *array.LargeString:
		return strings.Clone(a.Value(i))
	case *array.Binary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.LargeBinary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.Dictionary:
		return Spell(a.Dictionary(), a.GetValueIndex(i))
	case *array.Map:
		return spellMap(a, i)
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		out := make([]any, 0, end-start)
		for k := start; k < end; k++ {
			out = append(out, Spell(a.ListValues(), int(k)))
		}
		return out
	case *array.Struct:
		out := make(map[string]any, a.NumField())
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			out[f.Name] = Spell(a.Field(k), i)
		}
		return out
	}
	return fmt.Sprintf("a value of type %s, which has no spelling", a.DataType())
}

func number(v int64) json.Number { return json.Number(strconv.FormatInt(v, 10)) }

func spellMap(a *array.Map, i int) any {
	start, end := a.ValueOffsets(i)
	out := make(map[string]any, end-start)
	for k := start; k < end; k++ {
		out[fmt.Sprint(Spell(a.Keys(), int(k)))] = Spell(a.Items(), int(k))
	}
	return out
}

func spellFloat(v float64) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case v == 0 && math.Signbit(v):
		return "-0"
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
}

// SameSpelling compares two spelled values; numbers by value. A map that the reference engine spelled as a list of key-value pairs is the same as
// an object of them.
func SameSpelling(got, want any) bool {
	switch w := want.(type) {
	case json.Number:
		g, ok := got.(json.Number)
		if !ok {
			return false
		}
		x, err1 := g.Float64()
		y, err2 := w.Float64()
		return g == w || (err1 == nil && err2 == nil && x == y)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !SameSpelling(g[i], w[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k := range w {
			v, has := g[k]
			if !has || !SameSpelling(v, w[k]) {
				return false
			}
		}
		return true
	}
	return got == want
}

// Rows spells the rows of a batch, columns by name.
func Rows(batch arrow.RecordBatch) []map[string]any {
	out := make([]map[string]any, batch.NumRows())
	for i := range out {
		out[i] = make(map[string]any, batch.NumCols())
		for c, col := range batch.Columns() {
			out[i][batch.ColumnName(c)] = Spell(col, i)
		}
	}
	return out
}

// CompareRow fails the test where a row differs from the expected one, naming the column.
func CompareRow(tb testing.TB, what string, got, want map[string]any) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d columns, want %d: %v", what, len(got), len(want), got)
	}
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			tb.Fatalf("%s: no column %q", what, name)
		}
		if !SameSpelling(g, w) {
			tb.Fatalf("%s: column %q is %v (%T), want %v (%T)", what, name, g, g, w, w)
		}
	}
}

// CompareRows fails the test where rows differ from the expected ones, in that order.
func CompareRows(tb testing.TB, what string, got, want []map[string]any) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		CompareRow(tb, fmt.Sprintf("%s: row %d", what, i), got[i], want[i])
	}
}
