package planner

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// queryVector reads a constant vector in any of its spellings: a list, JSON text, little-endian float32 bytes. nil is the NULL vector. Errors: ErrInvalid
// for text that is no vector and for another dimension than the column's.
func queryVector(lit *expr.Literal, dim int, column string) ([]float32, error) {
	if !lit.Value.IsValid() {
		return nil, nil
	}
	var out []float32
	switch v := lit.Value.(type) {
	case scalar.ListScalar:
		var ok bool
		if out, ok = floats(v.GetList()); !ok {
			return nil, errs.New(errs.ErrInvalid, "a list of %s is no vector", v.GetList().DataType())
		}
	case *scalar.String:
		if err := json.Unmarshal(v.Data(), &out); err != nil {
			return nil, errs.New(errs.ErrInvalid, "%q is no vector: %w", shorten(string(v.Data())), err)
		}
	case *scalar.Binary:
		if len(v.Data())%4 != 0 {
			return nil, errs.New(errs.ErrInvalid, "%d bytes are no vector of float32", len(v.Data()))
		}
		for b := v.Data(); len(b) > 0; b = b[4:] {
			out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	default:
		return nil, errs.New(errs.ErrInvalid, "a %s is no vector", lit.Type())
	}
	if len(out) != dim {
		return nil, errs.New(errs.ErrInvalid, "column %s has vectors of %d dimensions, the query vector has %d", column, dim, len(out))
	}
	return out, nil
}

func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

func floats(values arrow.Array) ([]float32, bool) {
	out := make([]float32, values.Len())
	for i := range out {
		if values.IsNull(i) {
			return nil, false
		}
		switch a := values.(type) {
		case *array.Float32:
			out[i] = a.Value(i)
		case *array.Float64:
			out[i] = float32(a.Value(i))
		case *array.Float16:
			out[i] = a.Value(i).Float32()
		case *array.Uint8:
			out[i] = float32(a.Value(i))
		case *array.Int64:
			out[i] = float32(a.Value(i))
		case *array.Decimal128:
			out[i] = float32(a.Value(i).ToFloat64(a.DataType().(*arrow.Decimal128Type).Scale)) //nolint:forcetypeassert // its type
		default:
			return nil, false
		}
	}
	return out, true
}
