package files

import (
	"bytes"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
)

type allocator = memory.Allocator

// finisher holds values against what their columns declare beyond their type, and puts them into the form of the column.
type finisher struct {
	schema *arrow.Schema
	limits []coltype.Limits
	alloc  allocator
}

// finish works on one column in place and notes the rows that the column refuses.
func (f finisher) finish(cols []arrow.Array, at int, note func(row int, value []byte, err error)) error {
	field, l := f.schema.Field(at), f.limits[at]
	switch arr := cols[at].(type) {
	case array.StringLike:
		f.checkTexts(arr.Len(), l, isJSONField(field), arr.IsNull, func(i int) []byte { return []byte(arr.Value(i)) }, note)
	case *array.Binary:
		f.checkTexts(arr.Len(), l, false, arr.IsNull, arr.Value, note)
		if l.Pad > 0 {
			replace(cols, at, pad(arr, l.Pad, f.alloc))
		}
	case *array.Int32:
		if l.Min != 0 || l.Max != 0 {
			checkRange(arr.Len(), l, arr.IsNull, func(i int) int64 { return int64(arr.Value(i)) }, note)
		}
	case *array.Uint32:
		if l.Min != 0 || l.Max != 0 {
			checkRange(arr.Len(), l, arr.IsNull, func(i int) int64 { return int64(arr.Value(i)) }, note)
		}
	case *array.Int16:
		if l.Min != 0 || l.Max != 0 {
			checkRange(arr.Len(), l, arr.IsNull, func(i int) int64 { return int64(arr.Value(i)) }, note)
		}
	case *array.Timestamp:
		if l.Digits >= 0 {
			replace(cols, at, rounded(arr, arr.Values(), l.Digits, array.NewTimestampBuilder(f.alloc, arr.DataType().(*arrow.TimestampType)))) //nolint:forcetypeassert // the array is of this type
		}
	case *array.Time64:
		if l.Digits >= 0 {
			replace(cols, at, rounded(arr, arr.Time64Values(), l.Digits, array.NewTime64Builder(f.alloc, arr.DataType().(*arrow.Time64Type)))) //nolint:forcetypeassert // the array is of this type
		}
	}
	if d, ok := field.Type.(*arrow.DictionaryType); ok && cols[at].DataType().ID() != arrow.DICTIONARY {
		coded, err := encodeDictionary(cols[at], d, f.alloc)
		if err != nil {
			return err
		}
		replace(cols, at, coded)
	}
	return nil
}

func replace(cols []arrow.Array, at int, by arrow.Array) {
	cols[at].Release()
	cols[at] = by
}

func (f finisher) checkTexts(n int, l coltype.Limits, isJSON bool, isNull func(int) bool, value func(int) []byte, note func(int, []byte, error)) {
	if l.Chars == 0 && l.Bytes == 0 && !l.JSON && !isJSON {
		return
	}
	var j jsonText
	for i := range n {
		if isNull(i) {
			continue
		}
		v := value(i)
		switch {
		case l.Chars > 0 && len(v) > l.Chars && utf8.RuneCount(v) > l.Chars:
			note(i, v, errs.New(errs.ErrTooLong, "%d characters where the column has room for %d", utf8.RuneCount(v), l.Chars))
		case l.Bytes > 0 && len(v) > l.Bytes:
			note(i, v, errs.New(errs.ErrTooLong, "%d bytes where the column has room for %d", len(v), l.Bytes))
		case l.JSON || isJSON:
			j.reset()
			if _, err := j.parse(bytes.TrimSpace(v)); err != nil {
				note(i, v, errs.New(errs.ErrBadJSON, "%w", err))
			}
		}
	}
}

func checkRange(n int, l coltype.Limits, isNull func(int) bool, value func(int) int64, note func(int, []byte, error)) {
	for i := range n {
		if v := value(i); !isNull(i) && (v < l.Min || v > l.Max) {
			note(i, []byte(itoa(v)), errs.New(errs.ErrOutOfRange, "out of the column's range of %d to %d", l.Min, l.Max))
		}
	}
}

// pad adds zero bytes to the values of BINARY(n).
func pad(arr *array.Binary, size int, alloc allocator) arrow.Array {
	b := array.NewBinaryBuilder(alloc, arrow.BinaryTypes.Binary)
	defer b.Release()
	for i := range arr.Len() {
		if arr.IsNull(i) {
			b.AppendNull()
			continue
		}
		v := arr.Value(i)
		b.Append(append(bytes.Clone(v), make([]byte, max(0, size-len(v)))...))
	}
	return b.NewArray()
}

// rounded rounds times to the digits of a second that a column declares, as INSERT does.
func rounded[T arrow.Timestamp | arrow.Time64](arr arrow.Array, values []T, digits int, b interface {
	array.Builder
	Append(T)
}) arrow.Array {
	defer b.Release()
	unit := arr.DataType().(arrow.TemporalWithUnit).TimeUnit() //nolint:forcetypeassert // times have units
	step := int64(1_000_000_000) / int64(unit.Multiplier())
	for range digits {
		step = max(1, step/10)
	}
	for i, v := range values {
		if arr.IsNull(i) {
			b.AppendNull()
			continue
		}
		n := int64(v) + step/2
		if n%step < 0 {
			n -= step
		}
		b.Append(T(n - n%step))
	}
	return b.NewArray()
}

// encodeDictionary makes codes of values.
func encodeDictionary(arr arrow.Array, t *arrow.DictionaryType, alloc allocator) (arrow.Array, error) {
	b := array.NewDictionaryBuilder(alloc, t)
	defer b.Release()
	if err := b.AppendArray(arr); err != nil {
		return nil, errs.New(errs.ErrOverflow, "more values than %s can number: %w", t, err)
	}
	return b.NewDictionaryArray(), nil
}
