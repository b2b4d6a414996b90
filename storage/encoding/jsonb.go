package encoding

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// JSON columns hold JSONB (docs/format/page.md section 9). Words are big-endian.
const (
	jsonArray     = 0x80000000
	jsonObject    = 0x40000000
	jsonScalar    = 0x20000000
	jsonKindMask  = 0xE0000000
	jsonCountMask = 0x1FFFFFFF

	entryNull      = 0x00000000
	entryString    = 0x10000000
	entryNumber    = 0x20000000
	entryFalse     = 0x30000000
	entryTrue      = 0x40000000
	entryContainer = 0x50000000
	entryKindMask  = 0x70000000
	entrySizeMask  = 0x0FFFFFFF

	numberZero  = 0x00
	numberInt   = 0x40
	numberUint  = 0x50
	numberFloat = 0x60

	jsonDepthMax = 128
)

// JSONColumn returns a JSON column as it is stored: text becomes JSONB, binaries must be JSONB already. The caller releases it. Errors: ErrInvalid.
func JSONColumn(arr arrow.Array, mem memory.Allocator) (arrow.Array, error) {
	arr = storageOf(arr)
	values, ok := arr.(array.BinaryLike)
	if !ok {
		return nil, errs.New(errs.ErrInvalid, "a JSON column of %s", arr.DataType())
	}
	id := arr.DataType().ID()
	isText := id == arrow.STRING || id == arrow.LARGE_STRING
	b := array.NewBinaryBuilder(mem, arrow.BinaryTypes.LargeBinary)
	defer b.Release()
	var doc []byte
	for i := range arr.Len() {
		if arr.IsNull(i) {
			b.AppendNull()
			continue
		}
		from := values.ValueOffset64(i) - values.ValueOffset64(0)
		value := values.ValueBytes()[from : from+int64(values.ValueLen(i))]
		if isText {
			var err error
			if doc, err = AppendJSONB(doc[:0], value); err != nil {
				return nil, err
			}
			b.Append(doc)
			continue
		}
		if !isJSONB(value, 0) {
			return nil, errs.New(errs.ErrInvalid, "value %d of a JSON column is not JSONB", i)
		}
		b.Append(value)
	}
	return b.NewArray(), nil
}

// AppendJSONB appends a JSON text in stored form: keys in order, the last of equal ones. Errors: ErrInvalid for text that is not one JSON value.
func AppendJSONB(dst, text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return dst, errs.New(errs.ErrInvalid, "JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // a sentinel of its own
		return dst, errs.New(errs.ErrInvalid, "JSON: more than one value")
	}
	switch v.(type) {
	case []any, map[string]any:
		return appendContainer(dst, v, 0)
	}
	dst = binary.BigEndian.AppendUint32(dst, jsonScalar)
	at := len(dst)
	return appendEntries(binary.BigEndian.AppendUint32(dst, 0), at, []any{v}, 0)
}

func appendContainer(dst []byte, v any, depth int) ([]byte, error) {
	if depth > jsonDepthMax {
		return dst, errs.New(errs.ErrInvalid, "JSON nests deeper than %d", jsonDepthMax)
	}
	var parts []any
	switch v := v.(type) {
	case []any:
		dst = binary.BigEndian.AppendUint32(dst, jsonArray|uint32(len(v)))
		parts = v
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		dst = binary.BigEndian.AppendUint32(dst, jsonObject|uint32(len(v)))
		for _, k := range keys {
			parts = append(parts, k)
		}
		for _, k := range keys {
			parts = append(parts, v[k])
		}
	}
	at := len(dst)
	return appendEntries(append(dst, make([]byte, 4*len(parts))...), at, parts, depth)
}

// appendEntries appends the parts and fills in their words, which lie from at on.
func appendEntries(dst []byte, at int, parts []any, depth int) ([]byte, error) {
	for _, part := range parts {
		start := len(dst)
		var kind uint32
		var err error
		switch v := part.(type) {
		case nil:
			kind = entryNull
		case bool:
			kind = entryFalse
			if v {
				kind = entryTrue
			}
		case string:
			kind = entryString
			dst = append(dst, v...)
		case json.Number:
			kind = entryNumber
			dst, err = appendNumber(dst, string(v))
		default:
			kind = entryContainer
			dst, err = appendContainer(dst, v, depth+1)
		}
		if err != nil {
			return dst, err
		}
		if len(dst)-start > entrySizeMask {
			return dst, errs.New(errs.ErrInvalid, "a JSON value of %d bytes", len(dst)-start)
		}
		binary.BigEndian.PutUint32(dst[at:], kind|uint32(len(dst)-start))
		at += 4
	}
	return dst, nil
}

// appendNumber appends an integer in the fewest of 1, 2, 4, 8 bytes, any other number as a float64.
func appendNumber(dst []byte, text string) ([]byte, error) {
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		if u == 0 {
			return append(dst, numberZero), nil
		}
		return appendBig(append(dst, numberUint), u, bits.Len64(u)), nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		if i == 0 {
			return append(dst, numberZero), nil
		}
		return appendBig(append(dst, numberInt), uint64(i), bits.Len64(^uint64(i))+1), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return dst, errs.New(errs.ErrInvalid, "JSON number %.40q does not fit 64 bits", text)
	}
	return binary.BigEndian.AppendUint64(append(dst, numberFloat), math.Float64bits(f)), nil
}

func appendBig(dst []byte, v uint64, width int) []byte {
	switch {
	case width <= 8:
		return append(dst, byte(v))
	case width <= 16:
		return binary.BigEndian.AppendUint16(dst, uint16(v))
	case width <= 32:
		return binary.BigEndian.AppendUint32(dst, uint32(v))
	}
	return binary.BigEndian.AppendUint64(dst, v)
}

// isJSONB says whether b has the structure of a stored JSON value.
func isJSONB(b []byte, depth int) bool {
	if len(b) < 4 || depth > jsonDepthMax {
		return false
	}
	head := binary.BigEndian.Uint32(b)
	n := uint64(head & jsonCountMask)
	switch head & jsonKindMask {
	case jsonScalar:
		n = 1
	case jsonObject:
		n *= 2
	case jsonArray:
	default:
		return false
	}
	if n > uint64(len(b)-4)/4 {
		return false
	}
	words, rest := b[4:4+4*n], b[4+4*n:]
	for ; len(words) > 0; words = words[4:] {
		entry := binary.BigEndian.Uint32(words)
		size := int(entry & entrySizeMask)
		kind := entry & entryKindMask
		if size > len(rest) || kind > entryContainer || (kind == entryContainer && !isJSONB(rest[:size], depth+1)) {
			return false
		}
		rest = rest[size:]
	}
	return len(rest) == 0
}
