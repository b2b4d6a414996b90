package dml

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
)

// put stores one value that is not NULL. Where the value had to be changed it stores the nearest one and says so.
type put func(c cell) *problem

// storeOf prepares to append to a builder of the field's type.
func storeOf(b array.Builder, f arrow.Field, loc *time.Location) (put, error) { //nolint:funlen,gocyclo // a flat switch
	lim := coltype.LimitsOf(f)
	signed := func(lo, hi int64, add func(int64)) put {
		if lim.Min != 0 || lim.Max != 0 {
			lo, hi = lim.Min, lim.Max
		}
		return func(c cell) *problem {
			v, p := toInt(c, lo, hi)
			add(v)
			return p
		}
	}
	unsigned := func(hi uint64, add func(uint64)) put {
		if lim.Max != 0 {
			hi = uint64(lim.Max)
		}
		return func(c cell) *problem {
			v, p := toUint(c, hi)
			add(v)
			return p
		}
	}
	float := func(most float64, add func(float64)) put {
		return func(c cell) *problem {
			v, p := toFloat(c, most)
			add(v)
			return p
		}
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return func(c cell) *problem {
			v, p := toBool(c)
			b.Append(v)
			return p
		}, nil
	case *array.Int8Builder:
		return signed(math.MinInt8, math.MaxInt8, func(v int64) { b.Append(int8(v)) }), nil
	case *array.Int16Builder:
		return signed(math.MinInt16, math.MaxInt16, func(v int64) { b.Append(int16(v)) }), nil
	case *array.Int32Builder:
		return signed(math.MinInt32, math.MaxInt32, func(v int64) { b.Append(int32(v)) }), nil
	case *array.Int64Builder:
		return signed(math.MinInt64, math.MaxInt64, func(v int64) { b.Append(v) }), nil
	case *array.Uint8Builder:
		return unsigned(math.MaxUint8, func(v uint64) { b.Append(uint8(v)) }), nil
	case *array.Uint16Builder:
		return unsigned(math.MaxUint16, func(v uint64) { b.Append(uint16(v)) }), nil
	case *array.Uint32Builder:
		return unsigned(math.MaxUint32, func(v uint64) { b.Append(uint32(v)) }), nil
	case *array.Uint64Builder:
		return unsigned(math.MaxUint64, func(v uint64) { b.Append(v) }), nil
	case *array.Float16Builder:
		return float(65504, func(v float64) { b.Append(float16.New(float32(v))) }), nil
	case *array.Float32Builder:
		return float(math.MaxFloat32, func(v float64) { b.Append(float32(v)) }), nil
	case *array.Float64Builder:
		return float(math.MaxFloat64, func(v float64) { b.Append(v) }), nil
	case *array.Decimal128Builder:
		t := f.Type.(*arrow.Decimal128Type)
		return func(c cell) *problem {
			v, p := toDecimal(c, t.Precision, t.Scale)
			b.Append(decimal128.FromBigInt(v))
			return p
		}, nil
	case *array.Decimal256Builder:
		t := f.Type.(*arrow.Decimal256Type)
		return func(c cell) *problem {
			v, p := toDecimal(c, t.Precision, t.Scale)
			b.Append(decimal256.FromBigInt(v))
			return p
		}, nil
	case *array.StringBuilder:
		return text(b.Append, lim), nil
	case *array.LargeStringBuilder:
		return text(b.Append, lim), nil
	case *array.StringViewBuilder:
		return text(b.Append, lim), nil
	case *array.BinaryBuilder: // of LARGE_BINARY too
		return binaryPut(b.Append, lim), nil
	case *array.FixedSizeBinaryBuilder:
		n := f.Type.(*arrow.FixedSizeBinaryType).ByteWidth
		return binaryPut(b.Append, coltype.Limits{Bytes: n, Pad: n}), nil
	}
	if p, ok := temporal(b, f, loc, lim.Digits); ok {
		return p, nil
	}
	return nested(b, f, loc)
}

// text stores strings. Trailing blanks beyond a CHAR's or VARCHAR's length go silently, as in MySQL.
func text(add func(string), lim coltype.Limits) put {
	return func(c cell) *problem {
		var p *problem
		s := c.text()
		switch {
		case c.kind == kindBytes && !utf8.ValidString(s):
			p = incorrect("string", c)
			s = strings.ToValidUTF8(s, "")
		case c.kind == kindInstant:
			s = datetimeText(c.i)
		}
		switch {
		case lim.JSON:
			if _, err := parseJSON(s); err != nil {
				add("null")
				return &problem{kind: errs.ErrBadJSON, detail: strings.ToUpper(err.Error()[:1]) + err.Error()[1:]}
			}
		case lim.Chars > 0 && len(s) > lim.Chars && utf8.RuneCountInString(s) > lim.Chars:
			kept := firstRunes(s, lim.Chars)
			if strings.Trim(s[len(kept):], " ") != "" {
				p = &problem{kind: errs.ErrTooLong}
			}
			s = kept
		case lim.Bytes > 0 && len(s) > lim.Bytes:
			s, p = strings.ToValidUTF8(s[:lim.Bytes], ""), &problem{kind: errs.ErrTooLong}
		}
		add(s)
		return p
	}
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func binaryPut(add func([]byte), lim coltype.Limits) put {
	return func(c cell) *problem {
		v := []byte(c.text())
		var p *problem
		if lim.Bytes > 0 && len(v) > lim.Bytes {
			v, p = v[:lim.Bytes], &problem{kind: errs.ErrTooLong}
		}
		for len(v) < lim.Pad {
			v = append(v, 0)
		}
		add(v)
		return p
	}
}

// temporal stores dates and times; a value that is none has no nearest one and becomes NULL.
func temporal(b array.Builder, f arrow.Field, loc *time.Location, digits int) (put, bool) {
	micros := func(convert func(cell) (int64, *problem), unit arrow.TimeUnit, add func(int64)) put {
		m, d := unitMicros(unit)
		return func(c cell) *problem {
			v, p := convert(c)
			if p != nil {
				b.AppendNull()
				return p
			}
			add(floorDiv(roundDigits(v, digits), m) * d)
			return nil
		}
	}
	switch b := b.(type) {
	case *array.Date32Builder:
		return func(c cell) *problem {
			v, p := toDate(c, loc)
			if p != nil {
				b.AppendNull()
				return p
			}
			b.Append(arrow.Date32(v))
			return nil
		}, true
	case *array.Date64Builder:
		return func(c cell) *problem {
			v, p := toDate(c, loc)
			if p != nil {
				b.AppendNull()
				return p
			}
			b.Append(arrow.Date64(v * 86_400_000))
			return nil
		}, true
	case *array.TimestampBuilder:
		t := f.Type.(*arrow.TimestampType)
		convert := func(c cell) (int64, *problem) { return toDatetime(c, loc) }
		if t.TimeZone != "" {
			convert = func(c cell) (int64, *problem) { return toInstant(c, loc) }
		}
		return micros(convert, t.Unit, func(v int64) { b.Append(arrow.Timestamp(v)) }), true
	case *array.Time32Builder:
		return micros(dayTime, f.Type.(*arrow.Time32Type).Unit, func(v int64) { b.Append(arrow.Time32(v)) }), true
	case *array.Time64Builder:
		return micros(dayTime, f.Type.(*arrow.Time64Type).Unit, func(v int64) { b.Append(arrow.Time64(v)) }), true
	case *array.DurationBuilder:
		return micros(toTime, f.Type.(*arrow.DurationType).Unit, func(v int64) { b.Append(arrow.Duration(v)) }), true
	}
	return nil, false
}

// dayTime is a time of day: what Arrow's time types hold.
func dayTime(c cell) (int64, *problem) {
	v, p := toTime(c)
	if p == nil && (v < 0 || v >= microsOfDay) {
		return 0, badTime("time", c)
	}
	return v, p
}

// nested stores lists, vectors, structs and maps, given as such or as JSON text.
func nested(b array.Builder, f arrow.Field, loc *time.Location) (put, error) {
	var inner put
	var err error
	switch b := b.(type) {
	case *array.FixedSizeListBuilder:
		return vector(b, f, loc)
	case *array.MapBuilder:
		inner, err = mapPut(b, f, loc)
	case array.ListLikeBuilder:
		inner, err = listPut(b, f, loc)
	case *array.StructBuilder:
		inner, err = structPut(b, f, loc)
	default:
		return nil, errs.New(errs.ErrUnsupported, "column %q: values of type %s cannot be written", f.Name, f.Type)
	}
	if err != nil {
		return nil, err
	}
	return fromJSON(b, inner), nil
}

// fromJSON reads text before the inner put takes it.
func fromJSON(b array.Builder, inner put) put {
	return func(c cell) *problem {
		if c.kind == kindText || c.kind == kindBytes {
			v, err := parseJSON(c.s)
			if err != nil {
				b.AppendNull()
				return &problem{kind: errs.ErrBadJSON, detail: strings.ToUpper(err.Error()[:1]) + err.Error()[1:]}
			}
			if c = jsonCell(v); c.kind == kindNull {
				b.AppendNull()
				return nil
			}
		}
		return inner(c)
	}
}

// wrong says that a value has not the shape of the column.
func wrong(b array.Builder, f arrow.Field, c cell) *problem {
	b.AppendNull()
	return incorrect(strings.ToLower(coltype.Text(f.Type)), c)
}

func listPut(b array.ListLikeBuilder, f arrow.Field, loc *time.Location) (put, error) {
	elemField := f.Type.(arrow.ListLikeType).ElemField()
	elem, err := storeOf(b.ValueBuilder(), elemField, loc)
	if err != nil {
		return nil, err
	}
	return func(c cell) *problem {
		if c.kind != kindList {
			return wrong(b, f, c)
		}
		b.Append(true)
		var first *problem
		for i := range c.list.len() {
			if p := putElement(b.ValueBuilder(), elemField, elem, c.list.at(i)); p != nil && first == nil {
				first = p
			}
		}
		return first
	}, nil
}

func putElement(b array.Builder, f arrow.Field, elem put, v cell) *problem {
	if v.kind != kindNull {
		return elem(v)
	}
	if !f.Nullable {
		b.AppendEmptyValue()
		return &problem{kind: errs.ErrBadValue, detail: "NULL in a list whose elements cannot be NULL"}
	}
	b.AppendNull()
	return nil
}

func mapPut(b *array.MapBuilder, f arrow.Field, loc *time.Location) (put, error) {
	t := f.Type.(*arrow.MapType)
	key, err := storeOf(b.KeyBuilder(), t.KeyField(), loc)
	if err != nil {
		return nil, err
	}
	item, err := storeOf(b.ItemBuilder(), t.ItemField(), loc)
	if err != nil {
		return nil, err
	}
	return func(c cell) *problem {
		if c.kind != kindObject {
			return wrong(b, f, c)
		}
		b.Append(true)
		var first *problem
		for i, name := range c.object.names {
			p := key(cell{kind: kindText, s: name})
			q := putElement(b.ItemBuilder(), t.ItemField(), item, c.object.values[i])
			if first == nil {
				first = p
			}
			if first == nil {
				first = q
			}
		}
		return first
	}, nil
}

func structPut(b *array.StructBuilder, f arrow.Field, loc *time.Location) (put, error) {
	t := f.Type.(*arrow.StructType)
	fields := make([]put, t.NumFields())
	for i, sub := range t.Fields() {
		p, err := storeOf(b.FieldBuilder(i), sub, loc)
		if err != nil {
			return nil, err
		}
		fields[i] = p
	}
	return func(c cell) *problem {
		if c.kind != kindObject {
			return wrong(b, f, c)
		}
		var first *problem
		for _, name := range c.object.names {
			if _, ok := t.FieldIdx(name); !ok {
				first = &problem{kind: errs.ErrBadValue, detail: fmt.Sprintf("There is no field '%s'", short(name))}
			}
		}
		b.Append(true)
		for i, sub := range t.Fields() {
			var v cell
			for j, name := range c.object.names {
				if name == sub.Name {
					v = c.object.values[j]
				}
			}
			if p := putElement(b.FieldBuilder(i), sub, fields[i], v); p != nil && first == nil {
				first = p
			}
		}
		return first
	}, nil
}

// vector stores vectors: a list, JSON text, or little-endian float32 as bytes. A wrong length, a NULL element and NaN are refused.
func vector(b *array.FixedSizeListBuilder, f arrow.Field, loc *time.Location) (put, error) {
	t := f.Type.(*arrow.FixedSizeListType)
	dim := int(t.Len())
	elem, err := storeOf(b.ValueBuilder(), t.ElemField(), loc)
	if err != nil {
		return nil, err
	}
	wrongLength := func(n int) *problem {
		b.AppendNull()
		return &problem{kind: errs.ErrBadValue, detail: fmt.Sprintf("Vector of %d dimensions instead of %d", n, dim)}
	}
	inner := func(c cell) *problem {
		if c.kind != kindList {
			return wrong(b, f, c)
		}
		if c.list.len() != dim {
			return wrongLength(c.list.len())
		}
		for i := range dim {
			if bad := undefined(c.list.at(i)); bad != "" {
				b.AppendNull()
				return &problem{kind: errs.ErrBadValue, detail: fmt.Sprintf("Vector with %s as element %d", bad, i+1)}
			}
		}
		b.Append(true)
		var first *problem
		for i := range dim {
			if p := elem(c.list.at(i)); p != nil && first == nil {
				first = p
			}
		}
		return first
	}
	text := fromJSON(b, inner)
	return func(c cell) *problem {
		if c.kind != kindBytes {
			return text(c)
		}
		if len(c.s) != 4*dim {
			return wrongLength(len(c.s) / 4)
		}
		values := make([]any, dim)
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(c.s[4*i:])))
		}
		return inner(cell{kind: kindList, list: &list{read: func(i int) cell { return cell{kind: kindFloat, f: float64(values[i].(float32)), f32: true} }, hi: dim}})
	}, nil
}

// undefined names an element that no distance is defined for.
func undefined(c cell) string {
	switch {
	case c.kind == kindNull:
		return "NULL"
	case c.kind == kindFloat && math.IsNaN(c.f):
		return "NaN"
	case c.kind == kindFloat && math.IsInf(c.f, 0):
		return "an infinity"
	}
	return ""
}
