package exec

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

const (
	decimalDigitsMax = 65 // MySQL's limit
	decimalScaleMax  = 30 // MySQL's limit
	sumExtraDigits   = 22 // MySQL: SUM of decimal(p,s) is decimal(p+22,s)
	countArgsMax     = 7  // of count(distinct a, b, ...): they share a byte of NULL bits with the group
	avgExtraDigits   = 4  // div_precision_increment
)

// integerDigits is how many decimal digits MySQL gives to an integer type in sums; 0 for other types.
func integerDigits(t arrow.DataType) int32 {
	switch t.ID() {
	case arrow.BOOL:
		return 1
	case arrow.INT8, arrow.UINT8:
		return 3
	case arrow.INT16, arrow.UINT16:
		return 5
	case arrow.INT32, arrow.UINT32:
		return 10
	case arrow.INT64:
		return 19
	case arrow.UINT64:
		return 20
	}
	return 0
}

// decimalOf is the exact decimal that holds every value of t: its precision and scale.
func decimalOf(t arrow.DataType) (precision, scale int32, ok bool) {
	if d, ok := t.(arrow.DecimalType); ok {
		return d.GetPrecision(), d.GetScale(), true
	}
	p := integerDigits(t)
	return p, 0, p > 0
}

// decimalType is decimal(precision, scale) in the narrowest of decimal128 and decimal256.
func decimalType(precision, scale int32) arrow.DataType {
	if precision <= 38 {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	return &arrow.Decimal256Type{Precision: precision, Scale: scale}
}

// AggType is the type of an aggregate's result by MySQL's rules: SUM and AVG of integers and decimals are exact decimals (SUM adds 22 digits, AVG 4 digits
// behind the point), of floats float64; MIN, MAX and any_value keep the type; counts are int64. ErrUnsupported for other types, ErrInvalid for
// a wrong number of arguments.
func AggType(f AggFunc, args []arrow.DataType) (arrow.DataType, error) {
	switch f {
	case AggCountStar, AggCount:
		if (f == AggCount) != (len(args) > 0) {
			return nil, errs.New(errs.ErrInvalid, "%s with %d arguments", f, len(args))
		}
		if len(args) > countArgsMax {
			return nil, errs.New(errs.ErrUnsupported, "count of %d arguments; at most %d go", len(args), countArgsMax)
		}
		return arrow.PrimitiveTypes.Int64, nil
	}
	if f == AggConcat || f == AggJSONArray || f == AggJSONObject {
		return collectType(f, args)
	}
	if len(args) != 1 {
		return nil, errs.New(errs.ErrInvalid, "%s with %d arguments", f, len(args))
	}
	t := args[0]
	if f != AggAny {
		t = plainType(t)
	}
	switch f {
	case AggSum, AggAvg:
		return sumType(f, t)
	case AggMin, AggMax:
		if !isOrderable(t) {
			return nil, errs.New(errs.ErrUnsupported, "%s of %s: values of this type have no order", f, t)
		}
		return t, nil
	case AggAny:
		return t, nil
	case AggStddevPop, AggStddevSamp, AggVarPop, AggVarSamp:
		return fixedAggType(f, t, arrow.PrimitiveTypes.Float64)
	case AggBitAnd, AggBitOr, AggBitXor:
		return fixedAggType(f, t, arrow.PrimitiveTypes.Uint64)
	}
	return nil, errs.New(errs.ErrInternal, "aggregate function %q", f)
}

// fixedAggType is the type of an aggregate that takes and gives want alone.
func fixedAggType(f AggFunc, t, want arrow.DataType) (arrow.DataType, error) {
	if !arrow.TypeEqual(t, want) {
		return nil, errs.New(errs.ErrInternal, "%s of %s", f, t)
	}
	return want, nil
}

// collectType is the type of a text made of texts.
func collectType(f AggFunc, args []arrow.DataType) (arrow.DataType, error) {
	texts := 1
	if f == AggJSONObject {
		texts = 2
	}
	if len(args) < texts || f != AggConcat && len(args) > texts {
		return nil, errs.New(errs.ErrInternal, "%s with %d arguments", f, len(args))
	}
	for _, t := range args[:texts] {
		if id := t.ID(); id != arrow.STRING && id != arrow.BINARY {
			return nil, errs.New(errs.ErrInternal, "%s of %s", f, t)
		}
	}
	if f == AggConcat {
		return args[0], nil
	}
	return arrow.BinaryTypes.String, nil
}

// neverNull says that the aggregate of no rows has a value.
func (f AggFunc) neverNull() bool {
	switch f {
	case AggCount, AggCountStar, AggBitAnd, AggBitOr, AggBitXor:
		return true
	}
	return false
}

func sumType(f AggFunc, t arrow.DataType) (arrow.DataType, error) {
	if id := t.ID(); id == arrow.FLOAT32 || id == arrow.FLOAT64 {
		return arrow.PrimitiveTypes.Float64, nil
	}
	if t.ID() == arrow.NULL {
		return arrow.PrimitiveTypes.Float64, nil
	}
	p, s, ok := decimalOf(t)
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "%s of %s", f, t)
	}
	limit := max(decimalDigitsMax, p)
	if f == AggSum {
		return decimalType(min(p+sumExtraDigits, limit), s), nil
	}
	scale := max(s, min(s+avgExtraDigits, decimalScaleMax))
	return decimalType(min(p+avgExtraDigits, limit), scale), nil
}

// isOrderable says whether MIN, MAX and ORDER BY know an order of the type.
func isOrderable(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.Decimal32Type, *arrow.Decimal64Type, *arrow.Decimal128Type, *arrow.Decimal256Type, *arrow.FixedSizeBinaryType, *arrow.NullType:
		return true
	case *arrow.DictionaryType:
		return isOrderable(t.ValueType)
	}
	return isWordKey(t) || isStringKey(t)
}

// canResult says whether a result of the natural type t can be given out as want.
func canResult(f AggFunc, t, want arrow.DataType) bool {
	if arrow.TypeEqual(t, want) {
		return true
	}
	if f != AggSum && f != AggAvg {
		return false
	}
	if t.ID() == arrow.FLOAT64 {
		return false
	}
	if want.ID() == arrow.FLOAT64 || (want.ID() == arrow.INT64 && f == AggSum) {
		return true
	}
	w, isDecimal := want.(arrow.DecimalType)
	return isDecimal && (want.ID() == arrow.DECIMAL128 || want.ID() == arrow.DECIMAL256) && w.GetScale() >= 0
}

func wrapAgg(a AggSpec, err error) error { return fmt.Errorf("%s: %w", a, err) }
