package key

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
)

// Key is one value. Word codecs use Word, others Bytes.
type Key struct {
	Word  uint64
	Bytes []byte
}

// Codec makes keys of one Arrow type.
type Codec struct {
	typ  arrow.DataType
	wide bool // Bytes, not Word
}

// NewCodec returns the codec of a type. Errors: ErrUnsupported for types without an order (lists, structs, dictionaries, null).
func NewCodec(t arrow.DataType) (Codec, error) {
	switch t.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
		arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64, arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64,
		arrow.TIMESTAMP, arrow.DURATION:
		return Codec{typ: t}, nil
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY,
		arrow.DECIMAL128, arrow.DECIMAL256:
		return Codec{typ: t, wide: true}, nil
	default:
		return Codec{}, errs.New(errs.ErrUnsupported, "values of type %s cannot be indexed by value", t)
	}
}

// Type is the Arrow type of the values.
func (c Codec) Type() arrow.DataType { return c.typ }

// IsWide says that keys are Bytes.
func (c Codec) IsWide() bool { return c.wide }

// Accepts says whether values of type t have the codec's keys: t is the codec's type, or differs in the width of its offsets alone.
func (c Codec) Accepts(t arrow.DataType) bool {
	if arrow.TypeEqual(c.typ, t) {
		return true
	}
	isText := func(id arrow.Type) bool { return id == arrow.STRING || id == arrow.LARGE_STRING }
	isBinary := func(id arrow.Type) bool { return id == arrow.BINARY || id == arrow.LARGE_BINARY }
	return isText(c.typ.ID()) && isText(t.ID()) || isBinary(c.typ.ID()) && isBinary(t.ID())
}

// Compare orders two keys of the codec: negative, 0 or positive.
func (c Codec) Compare(a, b Key) int {
	if c.wide {
		return bytes.Compare(a.Bytes, b.Bytes)
	}
	return cmp.Compare(a.Word, b.Word)
}

const signBit = 1 << 63

// floatWord makes IEEE bits, shifted to the top of the word, sort in total order.
func floatWord(bits uint64) uint64 {
	if bits&signBit != 0 {
		return ^bits
	}
	return bits | signBit
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func appendWords[T number](dst []uint64, values []T, flip uint64) []uint64 {
	for _, v := range values {
		dst = append(dst, uint64(v)^flip)
	}
	return dst
}

// AppendWords appends one word for each value of arr, which must be of an accepted type; a NULL gives an arbitrary word.
//
//nolint:funlen // a flat switch
func (c Codec) AppendWords(dst []uint64, arr arrow.Array) []uint64 {
	switch a := arr.(type) {
	case *array.Boolean:
		for i := range a.Len() {
			var w uint64
			if a.IsValid(i) && a.Value(i) {
				w = 1
			}
			dst = append(dst, w)
		}
	case *array.Int8:
		return appendWords(dst, a.Int8Values(), signBit)
	case *array.Int16:
		return appendWords(dst, a.Int16Values(), signBit)
	case *array.Int32:
		return appendWords(dst, a.Int32Values(), signBit)
	case *array.Int64:
		return appendWords(dst, a.Int64Values(), signBit)
	case *array.Uint8:
		return appendWords(dst, a.Uint8Values(), 0)
	case *array.Uint16:
		return appendWords(dst, a.Uint16Values(), 0)
	case *array.Uint32:
		return appendWords(dst, a.Uint32Values(), 0)
	case *array.Uint64:
		return appendWords(dst, a.Uint64Values(), 0)
	case *array.Date32:
		return appendWords(dst, a.Date32Values(), signBit)
	case *array.Date64:
		return appendWords(dst, a.Date64Values(), signBit)
	case *array.Time32:
		return appendWords(dst, a.Time32Values(), signBit)
	case *array.Time64:
		return appendWords(dst, a.Time64Values(), signBit)
	case *array.Timestamp:
		return appendWords(dst, a.TimestampValues(), signBit)
	case *array.Duration:
		return appendWords(dst, a.DurationValues(), signBit)
	case *array.Float16:
		for _, v := range a.Values() {
			dst = append(dst, floatWord(uint64(v.Uint16())<<48))
		}
	case *array.Float32:
		for _, v := range a.Float32Values() {
			dst = append(dst, floatWord(uint64(math.Float32bits(v))<<32))
		}
	case *array.Float64:
		for _, v := range a.Float64Values() {
			dst = append(dst, floatWord(math.Float64bits(v)))
		}
	}
	return dst
}

// ValueBytes returns the bytes of value i of arr, which must be of an accepted type and valid at i. They are arr's own, or lie in *scratch.
func (c Codec) ValueBytes(arr arrow.Array, i int, scratch *[32]byte) []byte {
	switch a := arr.(type) {
	case *array.String:
		return stringBytes(a.Value(i))
	case *array.LargeString:
		return stringBytes(a.Value(i))
	case *array.Binary:
		return a.Value(i)
	case *array.LargeBinary:
		return a.Value(i)
	case *array.FixedSizeBinary:
		return a.Value(i)
	case *array.Decimal128:
		v := a.Value(i)
		binary.BigEndian.PutUint64(scratch[0:], uint64(v.HighBits())^signBit)
		binary.BigEndian.PutUint64(scratch[8:], v.LowBits())
		return scratch[:16]
	case *array.Decimal256:
		words := a.Value(i).Array() // least significant first
		for w := range 4 {
			binary.BigEndian.PutUint64(scratch[8*w:], words[3-w])
		}
		scratch[0] ^= 0x80
		return scratch[:32]
	}
	return nil
}

// stringBytes views a string as bytes, which must not be changed.
func stringBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// At returns the key of value i of arr, which must be of an accepted type and valid at i. Its bytes are a copy.
func (c Codec) At(arr arrow.Array, i int) Key {
	if c.wide {
		var scratch [32]byte
		return Key{Bytes: bytes.Clone(c.ValueBytes(arr, i, &scratch))}
	}
	one := array.NewSlice(arr, int64(i), int64(i+1))
	defer one.Release()
	return Key{Word: c.AppendWords(make([]uint64, 0, 1), one)[0]}
}

// IsFloat says that the keys have zeros of two signs, and NaNs.
func (c Codec) IsFloat() bool {
	switch c.typ.ID() {
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return true
	default:
		return false
	}
}

// IsNaN says that a key is a NaN; only floats have them.
func (c Codec) IsNaN(k Key) bool {
	if !c.IsFloat() {
		return false
	}
	_, _, negInf, inf := c.floatWords()
	return k.Word < negInf || k.Word > inf
}

// floatWords returns the words of -0, 0, -infinity and infinity.
func (c Codec) floatWords() (negZero, zero, negInf, inf uint64) {
	var infBits uint64
	switch c.typ.ID() {
	case arrow.FLOAT16:
		infBits = 0x7C00 << 48
	case arrow.FLOAT32:
		infBits = 0x7F800000 << 32
	default:
		infBits = math.Float64bits(math.Inf(1))
	}
	return floatWord(signBit), floatWord(0), floatWord(infBits | signBit), floatWord(infBits)
}
