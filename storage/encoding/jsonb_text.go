package encoding

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// Numbers that JSON text cannot say.
const (
	numberNaN    = 0x10
	numberInf    = 0x20
	numberNegInf = 0x30
)

// JSONTexts returns the stored values of a JSON column as text. The caller releases it. Errors: ErrCorrupt, ErrUnsupported for kinds of values that JSON text does not have.
func JSONTexts(arr arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	values, ok := arr.(array.BinaryLike)
	if !ok {
		return nil, errs.New(errs.ErrInvalid, "a JSON column of %s", arr.DataType())
	}
	b := array.NewStringBuilder(mem)
	defer b.Release()
	var text []byte
	for i := range arr.Len() {
		if arr.IsNull(i) {
			b.AppendNull()
			continue
		}
		from := values.ValueOffset64(i) - values.ValueOffset64(0)
		var err error
		if text, err = AppendJSONText(text[:0], values.ValueBytes()[from:from+int64(values.ValueLen(i))]); err != nil {
			return nil, err
		}
		if b.DataLen() > math.MaxInt32-len(text) {
			return nil, errs.New(errs.ErrUnsupported, "more than 2 GiB of JSON in one batch")
		}
		b.BinaryBuilder.Append(text)
	}
	return b.NewArray(), nil
}

// AppendJSONText appends a stored JSON value as text, spaced as MySQL does. Errors: as JSONTexts.
func AppendJSONText(dst, stored []byte) ([]byte, error) {
	if !isJSONB(stored, 0) {
		return dst, errs.Corrupt("JSON", -1, "no JSONB")
	}
	return appendJSONText(dst, stored)
}

// appendJSONText appends one container, whose structure has been checked.
func appendJSONText(dst, b []byte) ([]byte, error) {
	head := binary.BigEndian.Uint32(b)
	kind, n := head&jsonKindMask, int(head&jsonCountMask)
	words, rest := b[4:], b[4:]
	next := func() (uint32, []byte) {
		word := binary.BigEndian.Uint32(words)
		words = words[4:]
		size := word & entrySizeMask
		value := rest[:size]
		rest = rest[size:]
		return word & entryKindMask, value
	}
	var err error
	switch kind {
	case jsonScalar:
		rest = rest[4:]
		k, v := next()
		return appendJSONValue(dst, k, v)
	case jsonArray:
		rest = rest[4*n:]
		dst = append(dst, '[')
		for i := range n {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			k, v := next()
			if dst, err = appendJSONValue(dst, k, v); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
	rest = rest[8*n:]
	keys := make([][]byte, n)
	for i := range keys {
		_, keys[i] = next()
	}
	dst = append(dst, '{')
	for i := range n {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if dst, err = appendJSONString(dst, keys[i]); err != nil {
			return dst, err
		}
		dst = append(dst, ": "...)
		k, v := next()
		if dst, err = appendJSONValue(dst, k, v); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendJSONValue(dst []byte, kind uint32, v []byte) ([]byte, error) {
	switch kind {
	case entryNull:
		return append(dst, "null"...), nil
	case entryTrue:
		return append(dst, "true"...), nil
	case entryFalse:
		return append(dst, "false"...), nil
	case entryString:
		return appendJSONString(dst, v)
	case entryContainer:
		return appendJSONText(dst, v)
	}
	return appendJSONNumber(dst, v)
}

func appendJSONString(dst, v []byte) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(string(v)); err != nil {
		return dst, errs.Corrupt("JSON", -1, "text: %w", err)
	}
	return append(dst, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...), nil
}

func appendJSONNumber(dst, v []byte) ([]byte, error) {
	if len(v) == 0 {
		return dst, errs.Corrupt("JSON", -1, "a number of no bytes")
	}
	kind, digits := v[0], v[1:]
	switch kind {
	case numberZero:
		return append(dst, '0'), nil
	case numberNaN, numberInf, numberNegInf:
		return append(dst, "null"...), nil
	case numberInt, numberUint:
		if size := len(digits); size != 1 && size != 2 && size != 4 && size != 8 {
			return dst, errs.Corrupt("JSON", -1, "an integer of %d bytes", size)
		}
		var u uint64
		for _, b := range digits {
			u = u<<8 | uint64(b)
		}
		if kind == numberUint {
			return strconv.AppendUint(dst, u, 10), nil
		}
		shift := 64 - 8*len(digits)
		return strconv.AppendInt(dst, int64(u<<shift)>>shift, 10), nil
	case numberFloat:
		if len(digits) != 8 {
			return dst, errs.Corrupt("JSON", -1, "a float of %d bytes", len(digits))
		}
		f := math.Float64frombits(binary.BigEndian.Uint64(digits))
		text, err := json.Marshal(f)
		if err != nil { // not finite
			return append(dst, "null"...), nil //nolint:nilerr // JSON has no such number
		}
		dst = append(dst, text...)
		if !bytes.ContainsAny(text, ".e") { // it is to be read as a float again
			dst = append(dst, ".0"...)
		}
		return dst, nil
	}
	return dst, errs.New(errs.ErrUnsupported, "JSON numbers of kind %#x are not supported", kind)
}
