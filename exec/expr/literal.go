package expr

import (
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/errs"
)

// Decimal is a decimal number with its type, for NewLiteral: Value / 10^Scale.
type Decimal struct {
	Value            *big.Int
	Precision, Scale int32
}

// Date is a calendar day, for NewLiteral: days since 1970-01-01.
type Date int32

// Datetime is a civil time without zone, for NewLiteral: microseconds since 1970-01-01 00:00:00.
type Datetime int64

// Time is MySQL's TIME, for NewLiteral: microseconds, may be negative.
type Time int64

// NewLiteral makes a constant of a Go value: nil, bool, every int, uint and float, string, []byte, Decimal, Date, Datetime, Time, time.Duration
// (TIME), time.Time (an instant), []string, []float32, []int64, []float64, an arrow.Array (a list of its values) or a scalar.Scalar.
// ErrInvalid for anything else.
func NewLiteral(v any) (*Literal, error) { //nolint:funlen // a flat switch
	switch x := v.(type) {
	case nil:
		return Null(arrow.Null), nil
	case bool:
		return &Literal{scalar.NewBooleanScalar(x)}, nil
	case int:
		return &Literal{scalar.NewInt64Scalar(int64(x))}, nil
	case int8:
		return &Literal{scalar.NewInt8Scalar(x)}, nil
	case int16:
		return &Literal{scalar.NewInt16Scalar(x)}, nil
	case int32:
		return &Literal{scalar.NewInt32Scalar(x)}, nil
	case int64:
		return &Literal{scalar.NewInt64Scalar(x)}, nil
	case uint:
		return &Literal{scalar.NewUint64Scalar(uint64(x))}, nil
	case uint8:
		return &Literal{scalar.NewUint8Scalar(x)}, nil
	case uint16:
		return &Literal{scalar.NewUint16Scalar(x)}, nil
	case uint32:
		return &Literal{scalar.NewUint32Scalar(x)}, nil
	case uint64:
		return &Literal{scalar.NewUint64Scalar(x)}, nil
	case float32:
		return &Literal{scalar.NewFloat32Scalar(x)}, nil
	case float64:
		return &Literal{scalar.NewFloat64Scalar(x)}, nil
	case string:
		return &Literal{scalar.NewStringScalar(x)}, nil
	case []byte:
		return &Literal{scalar.NewBinaryScalar(memory.NewBufferBytes(append([]byte{}, x...)), typeBinary())}, nil
	case Decimal:
		return decimalLiteral(x)
	case Date:
		return &Literal{scalar.NewDate32Scalar(arrow.Date32(x))}, nil
	case Datetime:
		return &Literal{scalar.NewTimestampScalar(arrow.Timestamp(x), typeDatetime())}, nil
	case Time:
		return &Literal{scalar.NewDurationScalar(arrow.Duration(x), typeTime())}, nil
	case time.Duration:
		return &Literal{scalar.NewDurationScalar(arrow.Duration(x.Microseconds()), typeTime())}, nil
	case time.Time:
		return &Literal{scalar.NewTimestampScalar(arrow.Timestamp(x.UnixMicro()), typeTimestamp())}, nil
	case []string, []float32, []int64, []float64:
		return &Literal{scalar.NewListScalar(goList(x))}, nil
	case arrow.Array:
		return &Literal{scalar.NewListScalar(x)}, nil
	case scalar.Scalar:
		return &Literal{x}, nil
	}
	return nil, errs.New(errs.ErrInvalid, "a Go value of type %T is no SQL literal", v)
}

func goList(v any) arrow.Array {
	switch x := v.(type) {
	case []string:
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.AppendValues(x, nil)
		return b.NewArray()
	case []float32:
		b := array.NewFloat32Builder(memory.DefaultAllocator)
		b.AppendValues(x, nil)
		return b.NewArray()
	case []int64:
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(x, nil)
		return b.NewArray()
	case []float64:
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		b.AppendValues(x, nil)
		return b.NewArray()
	}
	return nil
}

func decimalLiteral(x Decimal) (*Literal, error) {
	if x.Precision < 1 || x.Precision > decimal256Digits || x.Scale < 0 || x.Scale > x.Precision || x.Value == nil || x.Value.BitLen() > 255 {
		return nil, errs.New(errs.ErrInvalid, "DECIMAL(%d,%d) is no type of a literal", x.Precision, x.Scale)
	}
	t := rawDecimal(x.Precision, x.Scale)
	if x.Precision <= decimal128Digits {
		return &Literal{scalar.NewDecimal128Scalar(decimal128.FromBigInt(x.Value), t)}, nil
	}
	return &Literal{scalar.NewDecimal256Scalar(decimal256.FromBigInt(x.Value), t)}, nil
}

// NewDecimal128 is a decimal literal of a 128-bit number.
func NewDecimal128(n decimal128.Num, precision, scale int32) (*Literal, error) {
	return decimalLiteral(Decimal{Value: n.BigInt(), Precision: precision, Scale: scale})
}

// NewDecimal256 is a decimal literal of a 256-bit number.
func NewDecimal256(n decimal256.Num, precision, scale int32) (*Literal, error) {
	return decimalLiteral(Decimal{Value: n.BigInt(), Precision: precision, Scale: scale})
}

// ParseDecimal makes the literal of digits as they stand in a statement: 1.50 is DECIMAL(3,2). ErrInvalid where it is no number or has too many digits.
func ParseDecimal(text string) (*Literal, error) {
	n, scale, ok := parseDecimal([]byte(text))
	if !ok {
		return nil, errs.New(errs.ErrInvalid, "%q is no decimal number", text)
	}
	digits := int32(len(new(big.Int).Abs(n).String()))
	if scale > decimalScaleMax || max(digits, scale) > decimalDigitsMax {
		return nil, errs.New(errs.ErrInvalid, "decimal number %s has more than %d digits or %d after the point", text, decimalDigitsMax, decimalScaleMax)
	}
	return decimalLiteral(Decimal{Value: n, Precision: max(digits, scale), Scale: scale})
}

// Null is the NULL of a type.
func Null(t arrow.DataType) *Literal { return &Literal{scalar.MakeNullScalar(t)} }

// literalVector loads a literal as a constant vector that lives on its own.
func literalVector(l *Literal) (vector, error) {
	t := l.Type()
	s := newState()
	if !l.Value.IsValid() {
		return s.nullVector(canonical(t)), nil
	}
	arr, err := literalArray(l)
	if err != nil {
		return vector{}, err
	}
	v, err := s.load(arr)
	v.konst, v.src = true, nil
	return v, err
}

// literalArray is an array of one value.
func literalArray(l *Literal) (arrow.Array, error) {
	if list, ok := l.Value.(scalar.ListScalar); ok && l.Value.IsValid() {
		return listOfOne(l.Type(), list.GetList())
	}
	arr, err := scalar.MakeArrayFromScalar(l.Value, 1, memory.DefaultAllocator)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "a literal of type %s: %w", l.Type(), err)
	}
	return arr, nil
}

// listOfOne makes an array whose one list is values.
func listOfOne(t arrow.DataType, values arrow.Array) (arrow.Array, error) {
	n := values.Len()
	var buffers []*memory.Buffer
	switch t.ID() {
	case arrow.LIST, arrow.MAP:
		buffers = []*memory.Buffer{nil, copySlice(memory.DefaultAllocator, []int32{0, int32(n)})}
	case arrow.LARGE_LIST:
		buffers = []*memory.Buffer{nil, copySlice(memory.DefaultAllocator, []int64{0, int64(n)})}
	case arrow.FIXED_SIZE_LIST:
		if want := int(t.(*arrow.FixedSizeListType).Len()); want != n {
			return nil, errs.New(errs.ErrInvalid, "a list of %d values is no %s", n, t)
		}
		buffers = []*memory.Buffer{nil}
	default:
		return nil, errs.New(errs.ErrUnsupported, "a literal of type %s", t)
	}
	return array.MakeFromData(array.NewData(t, 1, buffers, []arrow.ArrayData{values.Data()}, 0, 0)), nil
}

// vectorLiteral makes a literal of type t from a constant vector.
func (s *state) vectorLiteral(v *vector, t arrow.DataType) (*Literal, error) {
	if v.nullConst() {
		return Null(t), nil
	}
	own := *s
	own.env = &Env{Alloc: memory.DefaultAllocator}
	one := *v
	one.konst, one.n = false, 1
	arr, err := own.store(&one, t, 1)
	if err != nil {
		return nil, err
	}
	return arrayLiteral(arr, 0)
}

// arrayLiteral is value i of arr as a literal.
func arrayLiteral(arr arrow.Array, i int) (*Literal, error) {
	if dict, ok := arr.(*array.Dictionary); ok { // a constant is its value
		if dict.IsNull(i) {
			return Null(storageType(arr.DataType())), nil
		}
		return arrayLiteral(dict.Dictionary(), dict.GetValueIndex(i))
	}
	if arr.IsNull(i) {
		return Null(arr.DataType()), nil
	}
	if ext, ok := arr.(array.ExtensionArray); ok {
		arr = ext.Storage()
	}
	sc, err := scalar.GetScalar(arr, i)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "a constant of type %s: %w", arr.DataType(), err)
	}
	return &Literal{sc}, nil
}
