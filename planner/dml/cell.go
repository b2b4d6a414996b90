package dml

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
)

// kind is what a cell holds.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindUint
	kindFloat
	kindDecimal // text
	kindText
	kindBytes
	kindDate     // i: days
	kindDatetime // i: microseconds, civil
	kindInstant  // i: microseconds since the epoch
	kindTime     // i: microseconds
	kindList
	kindObject
)

// cell is one value on its way into a column. s and bytes may point into the batch that it came from.
type cell struct {
	kind   kind
	f32    bool // kindFloat: the value is a float32's
	i      int64
	u      uint64
	f      float64
	s      string
	list   *list
	object *object
}

// list is the values of a list cell: an array's, or those that JSON text holds.
type list struct {
	read   reader // of the elements' array
	lo, hi int
	values []any
}

func (l *list) len() int {
	if l.read == nil {
		return len(l.values)
	}
	return l.hi - l.lo
}

func (l *list) at(i int) cell {
	if l.read == nil {
		return jsonCell(l.values[i])
	}
	return l.read(l.lo + i)
}

// object is the fields of a struct cell or the entries of a map cell, in order.
type object struct {
	names  []string
	values []cell
}

// reader gives the value at a row of an array.
type reader func(i int) cell

const microsOfDay = 86_400_000_000

// readerOf reads arrays of every type that plans yield. ErrUnsupported for others.
func readerOf(arr arrow.Array) (reader, error) { //nolint:funlen,gocyclo // a flat switch
	get, err := valueReader(arr)
	if err != nil {
		return nil, err
	}
	return func(i int) cell {
		if arr.IsNull(i) {
			return cell{}
		}
		return get(i)
	}, nil
}

func intReader[T int8 | int16 | int32 | int64](value func(int) T) reader {
	return func(i int) cell { return cell{kind: kindInt, i: int64(value(i))} }
}

func uintReader[T uint8 | uint16 | uint32 | uint64](value func(int) T) reader {
	return func(i int) cell { return cell{kind: kindUint, u: uint64(value(i))} }
}

func valueReader(arr arrow.Array) (reader, error) { //nolint:funlen,gocyclo // a flat switch
	switch a := arr.(type) {
	case array.ExtensionArray:
		return readerOf(a.Storage())
	case *array.Null:
		return func(int) cell { return cell{} }, nil
	case *array.Dictionary:
		values, err := readerOf(a.Dictionary())
		return func(i int) cell { return values(a.GetValueIndex(i)) }, err
	case *array.Boolean:
		return func(i int) cell {
			c := cell{kind: kindBool}
			if a.Value(i) {
				c.i = 1
			}
			return c
		}, nil
	case *array.Int8:
		return intReader(a.Value), nil
	case *array.Int16:
		return intReader(a.Value), nil
	case *array.Int32:
		return intReader(a.Value), nil
	case *array.Int64:
		return intReader(a.Value), nil
	case *array.Uint8:
		return uintReader(a.Value), nil
	case *array.Uint16:
		return uintReader(a.Value), nil
	case *array.Uint32:
		return uintReader(a.Value), nil
	case *array.Uint64:
		return uintReader(a.Value), nil
	case *array.Float16:
		return func(i int) cell { return cell{kind: kindFloat, f: float64(a.Value(i).Float32()), f32: true} }, nil
	case *array.Float32:
		return func(i int) cell { return cell{kind: kindFloat, f: float64(a.Value(i)), f32: true} }, nil
	case *array.Float64:
		return func(i int) cell { return cell{kind: kindFloat, f: a.Value(i)} }, nil
	case *array.Decimal128:
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) cell { return cell{kind: kindDecimal, s: a.Value(i).ToString(scale)} }, nil
	case *array.Decimal256:
		scale := a.DataType().(*arrow.Decimal256Type).Scale
		return func(i int) cell { return cell{kind: kindDecimal, s: a.Value(i).ToString(scale)} }, nil
	case *array.String:
		return func(i int) cell { return cell{kind: kindText, s: a.Value(i)} }, nil
	case *array.LargeString:
		return func(i int) cell { return cell{kind: kindText, s: a.Value(i)} }, nil
	case *array.StringView:
		return func(i int) cell { return cell{kind: kindText, s: a.Value(i)} }, nil
	case *array.Binary:
		return func(i int) cell { return cell{kind: kindBytes, s: string(a.Value(i))} }, nil
	case *array.LargeBinary:
		return func(i int) cell { return cell{kind: kindBytes, s: string(a.Value(i))} }, nil
	case *array.BinaryView:
		return func(i int) cell { return cell{kind: kindBytes, s: string(a.Value(i))} }, nil
	case *array.FixedSizeBinary:
		return func(i int) cell { return cell{kind: kindBytes, s: string(a.Value(i))} }, nil
	}
	if r, ok := temporalReader(arr); ok {
		return r, nil
	}
	return nestedReader(arr)
}

// unitMicros is a unit in microseconds; nanoseconds are cut by the caller.
func unitMicros(u arrow.TimeUnit) (multiply, divide int64) {
	switch u {
	case arrow.Second:
		return 1_000_000, 1
	case arrow.Millisecond:
		return 1000, 1
	case arrow.Nanosecond:
		return 1, 1000
	}
	return 1, 1
}

func temporalReader(arr arrow.Array) (reader, bool) {
	scaled := func(k kind, u arrow.TimeUnit, value func(int) int64) (reader, bool) {
		m, d := unitMicros(u)
		return func(i int) cell { return cell{kind: k, i: floorDiv(value(i), d) * m} }, true
	}
	switch a := arr.(type) {
	case *array.Date32:
		return func(i int) cell { return cell{kind: kindDate, i: int64(a.Value(i))} }, true
	case *array.Date64:
		return func(i int) cell { return cell{kind: kindDate, i: floorDiv(int64(a.Value(i)), 86_400_000)} }, true
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		k := kindDatetime
		if t.TimeZone != "" {
			k = kindInstant
		}
		return scaled(k, t.Unit, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time32:
		return scaled(kindTime, a.DataType().(*arrow.Time32Type).Unit, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time64:
		return scaled(kindTime, a.DataType().(*arrow.Time64Type).Unit, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Duration:
		return scaled(kindTime, a.DataType().(*arrow.DurationType).Unit, func(i int) int64 { return int64(a.Value(i)) })
	}
	return nil, false
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func nestedReader(arr arrow.Array) (reader, error) {
	switch a := arr.(type) {
	case *array.Map:
		keys, err := readerOf(a.Keys())
		if err != nil {
			return nil, err
		}
		items, err := readerOf(a.Items())
		if err != nil {
			return nil, err
		}
		return func(i int) cell {
			lo, hi := a.ValueOffsets(i)
			o := &object{}
			for j := int(lo); j < int(hi); j++ {
				o.names, o.values = append(o.names, keys(j).text()), append(o.values, items(j))
			}
			return cell{kind: kindObject, object: o}
		}, nil
	case array.ListLike:
		elems, err := readerOf(a.ListValues())
		if err != nil {
			return nil, err
		}
		return func(i int) cell {
			lo, hi := a.ValueOffsets(i)
			return cell{kind: kindList, list: &list{read: elems, lo: int(lo), hi: int(hi)}}
		}, nil
	case *array.Struct:
		fields := make([]reader, a.NumField())
		names := make([]string, a.NumField())
		for f := range fields {
			r, err := readerOf(a.Field(f))
			if err != nil {
				return nil, err
			}
			fields[f], names[f] = r, a.DataType().(*arrow.StructType).Field(f).Name
		}
		return func(i int) cell {
			o := &object{names: names, values: make([]cell, len(fields))}
			for f, r := range fields {
				o.values[f] = r(i)
			}
			return cell{kind: kindObject, object: o}
		}, nil
	}
	return nil, errs.New(errs.ErrUnsupported, "values of type %s cannot be stored", arr.DataType())
}

// jsonNode is what JSON text holds: nil, bool, json.Number, string, []any or *jsonObject.
type jsonObject struct {
	names  []string
	values []any
}

// jsonCell makes a cell of a JSON value.
func jsonCell(v any) cell {
	switch v := v.(type) {
	case bool:
		c := cell{kind: kindBool}
		if v {
			c.i = 1
		}
		return c
	case json.Number:
		return numberCell(string(v))
	case string:
		return cell{kind: kindText, s: v}
	case []any:
		return cell{kind: kindList, list: &list{values: v}}
	case *jsonObject:
		o := &object{names: v.names, values: make([]cell, len(v.values))}
		for i, x := range v.values {
			o.values[i] = jsonCell(x)
		}
		return cell{kind: kindObject, object: o}
	}
	return cell{}
}

func numberCell(s string) cell {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return cell{kind: kindInt, i: i}
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return cell{kind: kindUint, u: u}
	}
	if strings.ContainsAny(s, "eE") {
		f, _ := strconv.ParseFloat(s, 64)
		return cell{kind: kindFloat, f: f}
	}
	return cell{kind: kindDecimal, s: s}
}

// jsonDepthMax bounds nesting in JSON text.
const jsonDepthMax = 100

// parseJSON reads JSON text and keeps the order of members.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := jsonValue(d, 0)
	if err == nil {
		if _, err = d.Token(); err == io.EOF { //nolint:errorlint // the decoder returns it bare
			return v, nil
		}
		err = errs.New(errs.ErrBadJSON, "the document root must not be followed by other values")
	}
	return nil, errs.New(errs.ErrBadJSON, "invalid JSON text: %w", err)
}

func jsonValue(d *json.Decoder, depth int) (any, error) {
	if depth > jsonDepthMax {
		return nil, errs.New(errs.ErrBadJSON, "it nests more than %d deep", jsonDepthMax)
	}
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if delim == '[' {
		out := []any{}
		for d.More() {
			v, err := jsonValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = d.Token()
		return out, err
	}
	out := &jsonObject{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := jsonValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		out.names, out.values = append(out.names, fmt.Sprint(name)), append(out.values, v)
	}
	_, err = d.Token()
	return out, err
}

// text is the value as MySQL prints it, for text columns and messages.
func (c cell) text() string {
	switch c.kind {
	case kindNull:
		return "NULL"
	case kindBool, kindInt:
		return strconv.FormatInt(c.i, 10)
	case kindUint:
		return strconv.FormatUint(c.u, 10)
	case kindFloat:
		return floatText(c.f, c.f32)
	case kindDate:
		return time.Unix(c.i*86_400, 0).UTC().Format(time.DateOnly)
	case kindDatetime, kindInstant:
		return datetimeText(c.i)
	case kindTime:
		return timeText(c.i)
	case kindList, kindObject:
		return string(c.appendJSON(nil))
	}
	return c.s
}

func floatText(f float64, f32 bool) string {
	bits := 64
	if f32 {
		bits = 32
	}
	if a := math.Abs(f); a != 0 && (a < 1e-15 || a >= 1e15) {
		return strings.Replace(strconv.FormatFloat(f, 'e', -1, bits), "e+", "e", 1)
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}

func datetimeText(us int64) string {
	t := time.UnixMicro(us).UTC()
	if us%1_000_000 == 0 {
		return t.Format(time.DateTime)
	}
	return t.Format("2006-01-02 15:04:05.000000")
}

func timeText(us int64) string {
	sign := ""
	if us < 0 {
		sign, us = "-", -us
	}
	s := fmt.Sprintf("%s%02d:%02d:%02d", sign, us/3_600_000_000, us/60_000_000%60, us/1_000_000%60)
	if us%1_000_000 != 0 {
		s += fmt.Sprintf(".%06d", us%1_000_000)
	}
	return s
}

// appendJSON writes the value as JSON.
func (c cell) appendJSON(dst []byte) []byte {
	switch c.kind {
	case kindNull:
		return append(dst, "null"...)
	case kindBool:
		return strconv.AppendBool(dst, c.i != 0)
	case kindInt, kindUint, kindFloat, kindDecimal:
		return append(dst, c.text()...)
	case kindList:
		dst = append(dst, '[')
		for i := range c.list.len() {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = c.list.at(i).appendJSON(dst)
		}
		return append(dst, ']')
	case kindObject:
		dst = append(dst, '{')
		for i, name := range c.object.names {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendQuoted(dst, name)
			dst = append(dst, ": "...)
			dst = c.object.values[i].appendJSON(dst)
		}
		return append(dst, '}')
	}
	return appendQuoted(dst, c.text())
}

func appendQuoted(dst []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // never: strings can be encoded
		return append(dst, `""`...)
	}
	return append(dst, quoted...)
}
