package file

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// spell returns value i of an array in the spelling of testdata/README.md.
func spell(a arrow.Array, i int) any { //nolint:funlen,gocyclo // flat switch
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Time32:
		return int64(a.Value(i))
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
		return a.Value(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.Binary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.LargeBinary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.Struct:
		out := make(map[string]any)
		for f := range a.NumField() {
			out[a.DataType().(*arrow.StructType).Field(f).Name] = spell(a.Field(f), i)
		}
		return out
	case *array.Dictionary:
		return spell(a.Dictionary(), a.GetValueIndex(i))
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		out := make([]any, 0, to-from)
		for j := from; j < to; j++ {
			out = append(out, spell(a.ListValues(), int(j)))
		}
		return out
	default:
		panic(fmt.Sprintf("no spelling for %s", a.DataType()))
	}
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
	return v
}

// sameSpelling compares a spelled value with a decoded JSON value.
func sameSpelling(got, want any) bool {
	switch w := want.(type) {
	case nil:
		return got == nil
	case bool:
		return got == w
	case string:
		g, ok := got.(string)
		return ok && g == w
	case json.Number:
		switch g := got.(type) {
		case int64:
			return strconv.FormatInt(g, 10) == w.String()
		case float64:
			f, err := w.Float64()
			return err == nil && f == g
		}
		return false
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !sameSpelling(g[i], w[i]) {
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
			if !sameSpelling(g[k], w[k]) {
				return false
			}
		}
		return true
	}
	return false
}
