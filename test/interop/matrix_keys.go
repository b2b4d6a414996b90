package interop

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/float16"
)

// nullCode stands for NULL among codes.
const nullCode = -1

// keyType is a type of an indexed column. Its values are made of codes: one for a plain value, in the order of the type; several for lists and vectors.
type keyType struct {
	name         string
	typ          arrow.DataType
	codes        int // codes are below this
	ours, theirs func(code int) string
	append       func(b array.Builder, code int)
	metric       string // of vectors
	// castsNot says that the engine casts the column for what differs from a value, so that no index answers.
	castsNot bool
}

func same(f func(code int) string) (ours, theirs func(code int) string) { return f, f }

func integer(name string, typ arrow.DataType, low int64, put func(b array.Builder, v int64)) keyType {
	ours, theirs := same(func(c int) string { return fmt.Sprint(low + 10*int64(c)) })
	return keyType{name: name, typ: typ, codes: 10, ours: ours, theirs: theirs, append: func(b array.Builder, c int) { put(b, low+10*int64(c)) }}
}

func float(name string, typ arrow.DataType, put func(b array.Builder, v float64)) keyType {
	ours, theirs := same(func(c int) string { return fmt.Sprintf("%.2f", float64(c)/2-1.25) })
	return keyType{name: name, typ: typ, codes: 10, ours: ours, theirs: theirs, append: func(b array.Builder, c int) { put(b, float64(c)/2-1.25) }}
}

// words are in the order of their bytes.
var words = []string{"", " ", "A", "a", "ab", "it's", "wet", "zz top of a label that is longer than others", "ä", "日本"}

func quoted(c int) string { return "'" + strings.ReplaceAll(words[c], "'", "''") + "'" }

func text(name string, typ arrow.DataType) keyType {
	ours, theirs := same(quoted)
	return keyType{name: name, typ: typ, codes: len(words), ours: ours, theirs: theirs, append: func(b array.Builder, c int) {
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(words[c])
		case *array.LargeStringBuilder:
			b.Append(words[c])
		}
	}}
}

var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func times() []keyType {
	day := func(c int) time.Time { return firstDay.AddDate(0, 0, 17*c-50) }
	date := func(c int) string { return "DATE '" + day(c).Format(time.DateOnly) + "'" }
	at := func(c int) time.Time { return day(c).Add(time.Duration(c) * 1_234_567 * time.Microsecond) }
	stamp := func(c int) string { return "TIMESTAMP '" + at(c).Format("2006-01-02 15:04:05.000000") + "'" }
	return []keyType{
		{name: "date32", typ: arrow.FixedWidthTypes.Date32, codes: 10, ours: date, theirs: date, append: func(b array.Builder, c int) {
			b.(*array.Date32Builder).Append(arrow.Date32FromTime(day(c))) //nolint:errcheck // the column's own type
		}},
		{name: "timestamp[us]", typ: &arrow.TimestampType{Unit: arrow.Microsecond}, codes: 10, ours: stamp, theirs: stamp, append: func(b array.Builder, c int) {
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(at(c).UnixMicro())) //nolint:errcheck // the column's own type
		}},
	}
}

func decimalKey() keyType {
	value := func(c int) int64 { return 125*int64(c) - 300 }
	return keyType{
		name: "decimal128(12,2)", typ: &arrow.Decimal128Type{Precision: 12, Scale: 2}, codes: 10,
		ours:   func(c int) string { return fmt.Sprintf("%.2f", float64(value(c))/100) },
		theirs: func(c int) string { return fmt.Sprintf("CAST(%.2f AS DECIMAL(12,2))", float64(value(c))/100) },
		append: func(b array.Builder, c int) { b.(*array.Decimal128Builder).Append(decimal128.FromI64(value(c))) }, //nolint:errcheck // the column's own type
	}
}

func boolKey() keyType {
	ours, theirs := same(func(c int) string { return []string{"false", "true"}[c] })
	return keyType{name: "bool", typ: arrow.FixedWidthTypes.Boolean, codes: 2, ours: ours, theirs: theirs, append: func(b array.Builder, c int) {
		b.(*array.BooleanBuilder).Append(c == 1) //nolint:errcheck // the column's own type
	}}
}

func binaryKey() keyType {
	hex := func(c int) string { return fmt.Sprintf("X'%X'", words[c]) }
	return keyType{name: "binary", typ: arrow.BinaryTypes.Binary, codes: len(words), ours: hex, theirs: hex, append: func(b array.Builder, c int) {
		b.(*array.BinaryBuilder).Append([]byte(words[c])) //nolint:errcheck // the column's own type
	}}
}

func scalars() map[string]keyType {
	out := map[string]keyType{
		"int64":      integer("int64", arrow.PrimitiveTypes.Int64, -30, func(b array.Builder, v int64) { b.(*array.Int64Builder).Append(v) }),
		"int32":      integer("int32", arrow.PrimitiveTypes.Int32, -30, func(b array.Builder, v int64) { b.(*array.Int32Builder).Append(int32(v)) }),
		"int16":      integer("int16", arrow.PrimitiveTypes.Int16, -30, func(b array.Builder, v int64) { b.(*array.Int16Builder).Append(int16(v)) }),
		"uint8":      integer("uint8", arrow.PrimitiveTypes.Uint8, 100, func(b array.Builder, v int64) { b.(*array.Uint8Builder).Append(uint8(v)) }),
		"uint64":     integer("uint64", arrow.PrimitiveTypes.Uint64, 1<<40, func(b array.Builder, v int64) { b.(*array.Uint64Builder).Append(uint64(v)) }),
		"float32":    float("float32", arrow.PrimitiveTypes.Float32, func(b array.Builder, v float64) { b.(*array.Float32Builder).Append(float32(v)) }),
		"float64":    float("float64", arrow.PrimitiveTypes.Float64, func(b array.Builder, v float64) { b.(*array.Float64Builder).Append(v) }),
		"utf8":       text("utf8", arrow.BinaryTypes.String),
		"large_utf8": text("large_utf8", arrow.BinaryTypes.LargeString),
		"bool":       boolKey(),
		"binary":     binaryKey(),
		"decimal":    decimalKey(),
		"date32":     times()[0],
		"timestamp":  times()[1],
	}
	f32 := out["float32"]
	f32.castsNot = true
	out["float32"] = f32
	return out
}

func listOf(name string, typ arrow.DataType, item keyType) keyType {
	item.name, item.typ = name, typ
	return item
}

func vectorKey(name string, item arrow.DataType, metric string) keyType {
	put := func(b array.Builder, c int) {
		switch b := b.(type) {
		case *array.Float32Builder:
			b.Append(float32(c))
		case *array.Float16Builder:
			b.Append(float16.New(float32(c)))
		}
	}
	ours, theirs := same(func(c int) string { return fmt.Sprintf("%d.0", c) })
	return keyType{name: name + ", " + metric, typ: arrow.FixedSizeListOf(vectorDim, item), codes: 256, ours: ours, theirs: theirs, append: put, metric: metric}
}

const vectorDim = 4

// keyTypes lists the types of columns that the matrix indexes by a kind.
func keyTypes(kind string) (out []keyType) {
	pick := func(names ...string) {
		for _, n := range names {
			out = append(out, scalars()[n])
		}
	}
	switch kind {
	case "LABEL_LIST":
		return []keyType{
			listOf("list<utf8>", arrow.ListOf(arrow.BinaryTypes.String), scalars()["utf8"]),
			listOf("list<int64>", arrow.ListOf(arrow.PrimitiveTypes.Int64), scalars()["int64"]),
			listOf("large_list<utf8>", arrow.LargeListOf(arrow.BinaryTypes.String), scalars()["utf8"]),
		}
	case "BITMAP":
		pick("utf8", "int64", "bool", "date32", "int16", "large_utf8", "float64")
	case "BTREE":
		pick("int64", "utf8", "float64", "timestamp", "uint64", "date32", "float32", "decimal", "binary", "uint8", "large_utf8")
	case "ZONEMAP":
		pick("int64", "utf8", "float64", "timestamp", "int32", "date32", "decimal")
	case "IVF_FLAT":
		return []keyType{
			vectorKey("float32[4]", arrow.PrimitiveTypes.Float32, "l2"), vectorKey("float32[4]", arrow.PrimitiveTypes.Float32, "cosine"),
			vectorKey("float16[4]", arrow.FixedWidthTypes.Float16, "l2"), vectorKey("float32[4]", arrow.PrimitiveTypes.Float32, "dot"),
		}
	}
	return out
}

func isList(t arrow.DataType) bool   { return t.ID() == arrow.LIST || t.ID() == arrow.LARGE_LIST }
func isVector(t arrow.DataType) bool { return t.ID() == arrow.FIXED_SIZE_LIST }

// keyValue is the value of an indexed column: NULL, or codes.
type keyValue struct {
	null  bool
	codes []int
}

// appendTo adds the value to a builder of the type.
func (k keyType) appendTo(b array.Builder, v keyValue) {
	if v.null {
		b.AppendNull()
		return
	}
	switch l := b.(type) {
	case *array.FixedSizeListBuilder:
		l.Append(true)
		k.items(l.ValueBuilder(), v.codes)
	case array.ListLikeBuilder:
		l.Append(true)
		k.items(l.ValueBuilder(), v.codes)
	default:
		k.append(b, v.codes[0])
	}
}

func (k keyType) items(b array.Builder, codes []int) {
	for _, c := range codes {
		if c == nullCode {
			b.AppendNull()
		} else {
			k.append(b, c)
		}
	}
}

// literal spells a value.
func (k keyType) literal(v keyValue, spell func(int) string) string {
	if v.null {
		return "NULL"
	}
	if !isList(k.typ) && !isVector(k.typ) {
		return spell(v.codes[0])
	}
	parts := make([]string, len(v.codes))
	for i, c := range v.codes {
		if parts[i] = "NULL"; c != nullCode {
			parts[i] = spell(c)
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}
