package expr

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// class is how values of a type are held while they are computed with: every Arrow type loads into one.
type class uint8

const (
	classNull      class = iota // the untyped NULL
	classBool                   // bits
	classInt                    // i, int64
	classUint                   // u, uint64
	classFloat                  // f, float64
	classDecimal                // d, decimal128; precision up to 38
	classWide                   // w, decimal256; precision up to 65 (76 while computing)
	classString                 // off and data, bytes of utf8 or binary
	classDate                   // i, days since 1970-01-01
	classDatetime               // i, microseconds of the civil time since 1970-01-01 00:00:00
	classTimestamp              // i, microseconds since the epoch, an instant
	classTime                   // i, microseconds, may be negative
	classNested                 // arr: list, struct, map, vector and whatever else has no class of its own
)

// The digits that MySQL's DECIMAL may have.
const (
	decimalDigitsMax   = 65
	decimalScaleMax    = 30
	divScaleIncrement  = 4
	decimal128Digits   = 38
	decimal256Digits   = 76
	wordDigits         = 9 // MySQL computes quotients in groups of nine digits
	dictionaryDepthMax = 8
)

// storageType strips extension types and dictionaries: the type of the values themselves.
func storageType(t arrow.DataType) arrow.DataType {
	for range dictionaryDepthMax {
		switch x := t.(type) {
		case arrow.ExtensionType:
			t = x.StorageType()
		case *arrow.DictionaryType:
			t = x.ValueType
		default:
			return t
		}
	}
	return t
}

//nolint:funlen // a flat switch
func classOf(t arrow.DataType) class {
	t = storageType(t)
	switch t.ID() {
	case arrow.NULL:
		return classNull
	case arrow.BOOL:
		return classBool
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		return classInt
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return classUint
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return classFloat
	case arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128:
		return classDecimal
	case arrow.DECIMAL256:
		if t.(arrow.DecimalType).GetPrecision() <= decimal128Digits {
			return classDecimal
		}
		return classWide
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY, arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return classString
	case arrow.DATE32, arrow.DATE64:
		return classDate
	case arrow.TIMESTAMP:
		if t.(*arrow.TimestampType).TimeZone != "" {
			return classTimestamp
		}
		return classDatetime
	case arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return classTime
	}
	return classNested
}

// The canonical types that functions compute in.
func typeBool() arrow.DataType      { return arrow.FixedWidthTypes.Boolean }
func typeInt() arrow.DataType       { return arrow.PrimitiveTypes.Int64 }
func typeUint() arrow.DataType      { return arrow.PrimitiveTypes.Uint64 }
func typeFloat() arrow.DataType     { return arrow.PrimitiveTypes.Float64 }
func typeString() arrow.DataType    { return arrow.BinaryTypes.String }
func typeBinary() arrow.DataType    { return arrow.BinaryTypes.Binary }
func typeDate() arrow.DataType      { return arrow.FixedWidthTypes.Date32 }
func typeDatetime() arrow.DataType  { return &arrow.TimestampType{Unit: arrow.Microsecond} }
func typeTimestamp() arrow.DataType { return arrow.FixedWidthTypes.Timestamp_us }
func typeTime() arrow.DataType      { return arrow.FixedWidthTypes.Duration_us }

// typeDecimal returns DECIMAL(precision, scale), as MySQL bounds both.
func typeDecimal(precision, scale int32) arrow.DataType {
	scale = min(max(scale, 0), decimalScaleMax)
	precision = min(max(precision, scale, 1), decimalDigitsMax)
	return rawDecimal(precision, scale)
}

// rawDecimal is typeDecimal without MySQL's bounds: quotients in mid-computation have more digits.
func rawDecimal(precision, scale int32) arrow.DataType {
	if precision <= decimal128Digits {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	return &arrow.Decimal256Type{Precision: min(precision, decimal256Digits), Scale: scale}
}

// digits returns the precision and scale of a numeric type seen as a decimal. Floats and strings have none.
func digits(t arrow.DataType) (precision, scale int32, ok bool) {
	t = storageType(t)
	if d, isDec := t.(arrow.DecimalType); isDec {
		return d.GetPrecision(), d.GetScale(), true
	}
	switch t.ID() {
	case arrow.BOOL, arrow.NULL:
		return 1, 0, true
	case arrow.INT8, arrow.UINT8:
		return 3, 0, true
	case arrow.INT16, arrow.UINT16:
		return 5, 0, true
	case arrow.INT32, arrow.UINT32:
		return 10, 0, true
	case arrow.INT64:
		return 19, 0, true
	case arrow.UINT64:
		return 20, 0, true
	}
	return 0, 0, false
}

// exprDigits is digits, but a literal integer counts the digits that it has.
func exprDigits(e Expr, t arrow.DataType) (precision, scale int32, ok bool) {
	precision, scale, ok = digits(t)
	if lit, isLit := e.(*Literal); isLit && ok && scale == 0 && lit.Value.IsValid() {
		if c := classOf(t); c == classInt || c == classUint {
			n := int32(len(lit.Value.String()))
			if lit.Value.String()[0] == '-' {
				n--
			}
			precision = n
		}
	}
	return precision, scale, ok
}

func isText(t arrow.DataType) bool {
	switch storageType(t).ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return true
	}
	return false
}

func (c class) numeric() bool  { return c >= classBool && c <= classWide }
func (c class) integer() bool  { return c == classBool || c == classInt || c == classUint }
func (c class) decimal() bool  { return c == classDecimal || c == classWide }
func (c class) temporal() bool { return c >= classDate && c <= classTime }
func (c class) dated() bool    { return c >= classDate && c <= classTimestamp }
func (c class) ints() bool     { return c == classInt || c.temporal() }

// canonical returns the type that values of t have once loaded: int8 loads as int64, and so on.
func canonical(t arrow.DataType) arrow.DataType {
	switch classOf(t) {
	case classBool:
		return typeBool()
	case classInt:
		return typeInt()
	case classUint:
		return typeUint()
	case classFloat: // values are float64; the type tells how many digits to show
		if storageType(t).ID() == arrow.FLOAT64 {
			return typeFloat()
		}
		return arrow.PrimitiveTypes.Float32
	case classDecimal, classWide:
		p, s, _ := digits(t)
		return rawDecimal(p, s)
	case classString:
		if isText(t) {
			return typeString()
		}
		return typeBinary()
	case classDate:
		return typeDate()
	case classNull:
		return arrow.Null
	case classDatetime, classTimestamp, classTime: // values are microseconds; the unit tells how many digits to show
		return storageType(t)
	}
	return t
}

// fspOf returns how many digits of the second a temporal type shows: 0, 3 or 6.
func fspOf(t arrow.DataType) int {
	u := arrow.Microsecond
	switch x := storageType(t).(type) {
	case *arrow.TimestampType:
		u = x.Unit
	case *arrow.DurationType:
		u = x.Unit
	case *arrow.Time32Type:
		u = x.Unit
	}
	switch u {
	case arrow.Second:
		return 0
	case arrow.Millisecond:
		return 3
	}
	return 6
}

// unify returns the type that holds values of all types, as CASE, COALESCE, IF and UNION need it. Equal types stay what they are.
func unify(types []arrow.DataType) arrow.DataType {
	var out arrow.DataType = arrow.Null
	for _, t := range types {
		out = unify2(out, t)
	}
	return computed(out)
}

// computed is the type that values of t have once a function returns them: dictionaries and views become plain.
func computed(t arrow.DataType) arrow.DataType {
	t = storageType(t)
	switch t.ID() {
	case arrow.STRING_VIEW:
		return typeString()
	case arrow.BINARY_VIEW:
		return typeBinary()
	}
	return t
}

// Unify returns the common type of a and b that MySQL's rules give the columns of a UNION and the branches of a CASE.
func Unify(a, b arrow.DataType) arrow.DataType { return unify([]arrow.DataType{a, b}) }

func unify2(a, b arrow.DataType) arrow.DataType { //nolint:funlen // a flat switch
	ca, cb := classOf(a), classOf(b)
	switch {
	case ca == classNull:
		return b
	case cb == classNull, arrow.TypeEqual(a, b):
		return a
	case ca == classBool && cb == classBool:
		return typeBool()
	case ca.integer() && cb.integer():
		return unifyInts(ca, cb)
	case ca == classFloat && cb.numeric(), cb == classFloat && ca.numeric():
		return typeFloat()
	case ca.numeric() && cb.numeric():
		pa, sa, _ := digits(a)
		pb, sb, _ := digits(b)
		s := max(sa, sb)
		return typeDecimal(max(pa-sa, pb-sb)+s, s)
	case ca == classDate && cb == classDate:
		return typeDate()
	case ca.dated() && cb.dated():
		switch {
		case ca == classTimestamp && cb == classTimestamp:
			return typeTimestamp()
		case ca == classDate && cb == classDatetime:
			return b
		case cb == classDate && ca == classDatetime:
			return a
		}
		return typeDatetime()
	case ca == classTime && cb == classTime:
		return typeTime()
	case ca == classNested && cb == classNested:
		return unifyNested(a, b)
	case ca == classString && cb == classString && !(isText(a) && isText(b)):
		return typeBinary()
	}
	return typeString()
}

func unifyInts(ca, cb class) arrow.DataType {
	if ca == cb || ca == classBool || cb == classBool {
		if ca == classUint || cb == classUint {
			return typeUint()
		}
		return typeInt()
	}
	return typeDecimal(20, 0)
}

// unifyNested merges list types by their elements; anything else meets as JSON text.
func unifyNested(a, b arrow.DataType) arrow.DataType {
	ea, eb := elementType(a), elementType(b)
	if ea == nil || eb == nil {
		return typeString()
	}
	if e := unify2(ea, eb); classOf(ea) == classNull || classOf(eb) == classNull || (classOf(ea) == classString) == (classOf(eb) == classString) {
		return arrow.ListOf(e)
	}
	return typeString()
}

// elementType returns the element type of any list kind, nil for other types.
func elementType(t arrow.DataType) arrow.DataType {
	switch x := storageType(t).(type) {
	case *arrow.ListType:
		return x.Elem()
	case *arrow.LargeListType:
		return x.Elem()
	case *arrow.FixedSizeListType:
		return x.Elem()
	case *arrow.ListViewType:
		return x.Elem()
	case *arrow.LargeListViewType:
		return x.Elem()
	}
	return nil
}

// sqlName names a type as MySQL does, for error messages and CAST.
func sqlName(t arrow.DataType) string { //nolint:funlen // a flat switch
	switch storageType(t).ID() {
	case arrow.NULL:
		return "NULL"
	case arrow.BOOL:
		return "BOOLEAN"
	case arrow.INT64:
		return "BIGINT"
	case arrow.INT32:
		return "INT"
	case arrow.INT16:
		return "SMALLINT"
	case arrow.INT8:
		return "TINYINT"
	case arrow.UINT64:
		return "BIGINT UNSIGNED"
	case arrow.UINT32:
		return "INT UNSIGNED"
	case arrow.UINT16:
		return "SMALLINT UNSIGNED"
	case arrow.UINT8:
		return "TINYINT UNSIGNED"
	case arrow.FLOAT16, arrow.FLOAT32:
		return "FLOAT"
	case arrow.FLOAT64:
		return "DOUBLE"
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return "CHAR"
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY, arrow.BINARY_VIEW:
		return "BINARY"
	case arrow.DATE32, arrow.DATE64:
		return "DATE"
	case arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return "TIME"
	case arrow.TIMESTAMP:
		if classOf(t) == classTimestamp {
			return "TIMESTAMP"
		}
		return "DATETIME"
	}
	if p, s, ok := digits(t); ok {
		return "DECIMAL(" + itoa(int64(p)) + "," + itoa(int64(s)) + ")"
	}
	return t.String()
}
