package expr

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// jsonDepthMax bounds the nesting of a printed value.
const jsonDepthMax = 100

// AppendJSON prints value i of arr as JSON, which is how lists, structs, maps and vectors show in MySQL: strings as JSON strings, int64 with all digits,
// floats with the shortest digits that read back, NaN and infinities as null, decimals as numbers with all digits, binary as base64, times as MySQL
// text, maps as objects. A NULL is null. env gives the time zone that instants show in; nil = UTC.
func AppendJSON(dst []byte, arr arrow.Array, i int, env *Env) []byte {
	return (&jsonPrinter{env: env}).append(dst, arr, i, 0)
}

type jsonPrinter struct{ env *Env }

func (p *jsonPrinter) append(dst []byte, arr arrow.Array, i, depth int) []byte { //nolint:funlen // a flat switch
	if arr.IsNull(i) || depth > jsonDepthMax {
		return append(dst, "null"...)
	}
	switch a := arr.(type) {
	case *array.Null:
		return append(dst, "null"...)
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(i))
	case *array.Int8:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int16:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int32:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10)
	case *array.Int64:
		return strconv.AppendInt(dst, a.Value(i), 10)
	case *array.Uint8:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10)
	case *array.Uint16:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10)
	case *array.Uint32:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10)
	case *array.Uint64:
		return strconv.AppendUint(dst, a.Value(i), 10)
	case *array.Float16:
		return appendJSONFloat(dst, halfToFloat(a.Value(i)), 32)
	case *array.Float32:
		return appendJSONFloat(dst, float64(a.Value(i)), 32)
	case *array.Float64:
		return appendJSONFloat(dst, a.Value(i), 64)
	case *array.Decimal32:
		return appendDecimal(dst, decimal128.FromI64(int64(a.Value(i))), a.DataType().(arrow.DecimalType).GetScale())
	case *array.Decimal64:
		return appendDecimal(dst, decimal128.FromI64(int64(a.Value(i))), a.DataType().(arrow.DecimalType).GetScale())
	case *array.Decimal128:
		return appendDecimal(dst, a.Value(i), a.DataType().(arrow.DecimalType).GetScale())
	case *array.Decimal256:
		return appendWide(dst, a.Value(i), a.DataType().(arrow.DecimalType).GetScale())
	case *array.String:
		return AppendJSONString(dst, a.Value(i))
	case *array.LargeString:
		return AppendJSONString(dst, a.Value(i))
	case *array.StringView:
		return AppendJSONString(dst, a.Value(i))
	case *array.Binary:
		return appendBase64(dst, a.Value(i))
	case *array.LargeBinary:
		return appendBase64(dst, a.Value(i))
	case *array.BinaryView:
		return appendBase64(dst, a.Value(i))
	case *array.FixedSizeBinary:
		return appendBase64(dst, a.Value(i))
	case *array.Dictionary:
		return p.append(dst, a.Dictionary(), a.GetValueIndex(i), depth)
	case *array.Struct:
		return p.object(dst, a, i, depth)
	case *array.Map:
		return p.mapping(dst, a, i, depth)
	case listLike:
		return p.list(dst, a, i, depth)
	case array.ExtensionArray:
		return p.append(dst, a.Storage(), i, depth)
	}
	return p.other(dst, arr, i)
}

// other prints dates and times as MySQL text, and what is left as Arrow prints it.
func (p *jsonPrinter) other(dst []byte, arr arrow.Array, i int) []byte {
	if !classOf(arr.DataType()).temporal() {
		return AppendJSONString(dst, arr.ValueStr(i))
	}
	one := array.NewSlice(arr, int64(i), int64(i+1))
	defer one.Release()
	s := newState()
	v, err := s.load(one)
	if err != nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = appendValue(dst, &v, 0, p.env)
	return append(dst, '"')
}

func (p *jsonPrinter) list(dst []byte, a listLike, i, depth int) []byte {
	from, to := a.ValueOffsets(i)
	values := a.ListValues()
	dst = append(dst, '[')
	if f, ok := values.(*array.Float32); ok && f.NullN() == 0 { // vectors
		for j, x := range f.Float32Values()[from:to] {
			if j > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendJSONFloat(dst, float64(x), 32)
		}
		return append(dst, ']')
	}
	for j := from; j < to; j++ {
		if j > from {
			dst = append(dst, ", "...)
		}
		dst = p.append(dst, values, int(j), depth+1)
	}
	return append(dst, ']')
}

func (p *jsonPrinter) object(dst []byte, a *array.Struct, i, depth int) []byte {
	dst = append(dst, '{')
	for f, field := range a.DataType().(*arrow.StructType).Fields() {
		if f > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(AppendJSONString(dst, field.Name), ": "...)
		dst = p.append(dst, a.Field(f), i, depth+1)
	}
	return append(dst, '}')
}

func (p *jsonPrinter) mapping(dst []byte, a *array.Map, i, depth int) []byte {
	from, to := a.ValueOffsets(i)
	keys, items := a.Keys(), a.Items()
	dst = append(dst, '{')
	for j := from; j < to; j++ {
		if j > from {
			dst = append(dst, ", "...)
		}
		dst = p.key(dst, keys, int(j), depth)
		dst = append(dst, ": "...)
		dst = p.append(dst, items, int(j), depth+1)
	}
	return append(dst, '}')
}

// key prints a map's key as a JSON string whatever its type.
func (p *jsonPrinter) key(dst []byte, keys arrow.Array, i, depth int) []byte {
	text := p.append(nil, keys, i, depth+1)
	if len(text) > 0 && text[0] == '"' {
		return append(dst, text...)
	}
	return AppendJSONString(dst, string(text))
}

func appendJSONFloat(dst []byte, f float64, bitSize int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return appendFloat(dst, f, bitSize)
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

// AppendJSONString quotes s as MySQL's JSON does. Bytes that are no UTF-8 become U+FFFD.
func AppendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
