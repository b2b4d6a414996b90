package exec

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/lakesql/lakesql/internal/errs"
)

// rowEncoder writes the values of several columns as one byte string per row: equal rows give equal bytes and different rows different ones.
// Layout: a bitmap of NULLs (one bit per column, low bit first), then each column that is not NULL: words little-endian in the type's width,
// other values as encodeValue has them.
type rowEncoder struct {
	data    []byte
	offsets []int64
	at      []int64
	words   []uint64
}

// encode returns the keys of rows 0 to n-1; they are good until the next call.
func (e *rowEncoder) encode(cols []arrow.Array, n int) (byteKeys[int64], error) {
	header := (len(cols) + 7) / 8
	e.offsets = resized(e.offsets, n+1)
	e.at = resized(e.at, n)
	for i := range e.at {
		e.at[i] = int64(header)
	}
	for _, c := range cols {
		if err := e.measure(c); err != nil {
			return byteKeys[int64]{}, err
		}
	}
	var total int64
	for i, size := range e.at {
		e.offsets[i], e.at[i] = total, total+int64(header)
		total += size
	}
	e.offsets[n] = total
	e.data = resized(e.data, int(total)+16) // so that short keys load as two words
	if header == 1 {
		for _, o := range e.offsets[:n] {
			e.data[o] = 0
		}
	} else {
		for _, o := range e.offsets[:n] {
			clear(e.data[o : o+int64(header)])
		}
	}
	for i, c := range cols {
		e.write(i, c)
	}
	return byteKeys[int64]{offsets: e.offsets, data: e.data}, nil
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// measure adds the encoded size of each value to e.at.
func (e *rowEncoder) measure(c arrow.Array) error {
	bits, bitOffset := validity(c)
	if size := wordBytes(c.DataType()); size > 0 && bits == nil {
		for i := range e.at {
			e.at[i] += size
		}
		return nil
	}
	size, err := valueSizer(c)
	if err != nil {
		return err
	}
	for i := range e.at {
		if bits == nil || bitutil.BitIsSet(bits, bitOffset+i) {
			e.at[i] += int64(size(i))
		}
	}
	return nil
}

func wordBytes(t arrow.DataType) int64 {
	if !isWordKey(t) {
		return 0
	}
	if t.ID() == arrow.BOOL {
		return 1
	}
	return int64(t.(arrow.FixedWidthDataType).Bytes())
}

// write appends column number col at e.at.
func (e *rowEncoder) write(col int, c arrow.Array) {
	bits, bitOffset := validity(c)
	null := byte(1) << (col & 7)
	isNull := func(i int) bool {
		if bits == nil || bitutil.BitIsSet(bits, bitOffset+i) {
			return false
		}
		e.data[e.offsets[i]+int64(col>>3)] |= null
		return true
	}
	size := wordBytes(c.DataType())
	if size == 0 {
		appendValue := valueAppender(c)
		for i := range e.at {
			if !isNull(i) {
				at := e.at[i]
				e.at[i] = int64(len(appendValue(e.data[:at], i)))
			}
		}
		return
	}
	e.words = resized(e.words, len(e.at))
	keyWords(c, e.words)
	for i, w := range e.words {
		if bits != nil && isNull(i) {
			continue
		}
		at := e.at[i]
		switch size {
		case 8:
			binary.LittleEndian.PutUint64(e.data[at:], w)
		case 4:
			binary.LittleEndian.PutUint32(e.data[at:], uint32(w))
		case 2:
			binary.LittleEndian.PutUint16(e.data[at:], uint16(w))
		default:
			e.data[at] = byte(w)
		}
		e.at[i] = at + size
	}
}

// valueSizer returns how many bytes valueAppender writes for row i, which is not NULL. ErrUnsupported for types that cannot be keys.
func valueSizer(c arrow.Array) (func(i int) int, error) {
	switch a := c.(type) {
	case *array.String:
		return func(i int) int { return prefixed(a.ValueLen(i)) }, nil
	case *array.Decimal128:
		return func(i int) int { return decimalBytes(a.Value(i)) }, nil
	}
	if err := checkKeyType(c.DataType()); err != nil {
		return nil, err
	}
	appendValue := valueAppender(c)
	var scratch []byte
	return func(i int) int {
		scratch = appendValue(scratch[:0], i)
		return len(scratch)
	}, nil
}

func checkKeyType(t arrow.DataType) error {
	switch t := t.(type) {
	case *arrow.Decimal32Type, *arrow.Decimal64Type, *arrow.Decimal128Type, *arrow.Decimal256Type, *arrow.FixedSizeBinaryType, *arrow.NullType:
		return nil
	case *arrow.DictionaryType:
		return checkKeyType(t.ValueType)
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if err := checkKeyType(f.Type); err != nil {
				return err
			}
		}
		return nil
	case arrow.ListLikeType:
		return checkKeyType(t.Elem())
	case arrow.BinaryDataType:
		return nil
	case arrow.ExtensionType:
		return checkKeyType(t.StorageType())
	}
	if isWordKey(t) {
		return nil
	}
	return errs.New(errs.ErrUnsupported, "values of type %s cannot be grouped or joined", t)
}

func prefixed(n int) int {
	return uvarintBytes(uint64(n)) + n
}

func uvarintBytes(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func appendPrefixed[B []byte | string](dst []byte, v B) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}

func fitsWord(v decimal128.Num) bool { return v.HighBits() == int64(v.LowBits())>>63 }

func decimalBytes(v decimal128.Num) int {
	if fitsWord(v) {
		return 9
	}
	return 17
}

// appendDecimal writes the length first, so that small decimals make short keys.
func appendDecimal(dst []byte, v decimal128.Num) []byte {
	if fitsWord(v) {
		return binary.LittleEndian.AppendUint64(append(dst, 8), v.LowBits())
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, 16), v.LowBits())
	return binary.LittleEndian.AppendUint64(dst, uint64(v.HighBits()))
}

// valueAppender returns a function that appends the bytes of row i, which is not NULL: strings and lists behind their length, list elements
// and struct fields behind a byte that tells NULL from a value.
func valueAppender(c arrow.Array) func(dst []byte, i int) []byte {
	if isWordKey(c.DataType()) {
		return wordAppender(c)
	}
	switch a := c.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return appendPrefixed(dst, a.Value(i)) }
	case *array.Decimal128:
		return func(dst []byte, i int) []byte { return appendDecimal(dst, a.Value(i)) }
	case *array.Decimal256:
		return func(dst []byte, i int) []byte {
			for _, w := range a.Value(i).Array() {
				dst = binary.LittleEndian.AppendUint64(dst, w)
			}
			return dst
		}
	case *array.Decimal32:
		return func(dst []byte, i int) []byte { return binary.LittleEndian.AppendUint32(dst, uint32(a.Value(i))) }
	case *array.Decimal64:
		return func(dst []byte, i int) []byte { return binary.LittleEndian.AppendUint64(dst, uint64(a.Value(i))) }
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.Dictionary:
		value := nestedAppender(a.Dictionary())
		return func(dst []byte, i int) []byte { return value(dst, a.GetValueIndex(i)) }
	case array.ListLike:
		value := nestedAppender(a.ListValues())
		return func(dst []byte, i int) []byte {
			start, end := a.ValueOffsets(i)
			dst = binary.AppendUvarint(dst, uint64(end-start))
			for j := start; j < end; j++ {
				dst = value(dst, int(j))
			}
			return dst
		}
	case *array.Struct:
		fields := make([]func([]byte, int) []byte, a.NumField())
		for f := range fields {
			fields[f] = nestedAppender(a.Field(f))
		}
		return func(dst []byte, i int) []byte {
			for _, f := range fields {
				dst = f(dst, i)
			}
			return dst
		}
	case array.ExtensionArray:
		return valueAppender(a.Storage())
	case interface{ Value(int) []byte }:
		return func(dst []byte, i int) []byte { return appendPrefixed(dst, a.Value(i)) }
	case interface{ Value(int) string }:
		return func(dst []byte, i int) []byte { return appendPrefixed(dst, a.Value(i)) }
	}
	return func(dst []byte, _ int) []byte { return dst } // the null type: every value is NULL
}

func nestedAppender(c arrow.Array) func(dst []byte, i int) []byte {
	value := valueAppender(c)
	return func(dst []byte, i int) []byte {
		if c.IsNull(i) {
			return append(dst, 0)
		}
		return value(append(dst, 1), i)
	}
}

func wordAppender(c arrow.Array) func(dst []byte, i int) []byte {
	words := make([]uint64, c.Len())
	keyWords(c, words)
	size := wordBytes(c.DataType())
	var b [8]byte
	return func(dst []byte, i int) []byte {
		binary.LittleEndian.PutUint64(b[:], words[i])
		return append(dst, b[:size]...)
	}
}
