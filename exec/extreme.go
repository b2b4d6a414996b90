package exec

import (
	"bytes"
	"cmp"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// newExtremeAcc picks the state for MIN and MAX of a type.
func newExtremeAcc(res *mem.Reservation, t arrow.DataType, isMax bool) (accumulator, error) { //nolint:funlen // a flat switch
	switch t.ID() {
	case arrow.BOOL:
		return newExtreme(res, isMax, cmp.Compare[uint8], boolValues), nil
	case arrow.INT8:
		return newExtreme(res, isMax, cmp.Compare[int8], fixedValues[int8]), nil
	case arrow.INT16:
		return newExtreme(res, isMax, cmp.Compare[int16], fixedValues[int16]), nil
	case arrow.INT32, arrow.DATE32, arrow.TIME32, arrow.DECIMAL32:
		return newExtreme(res, isMax, cmp.Compare[int32], fixedValues[int32]), nil
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION, arrow.DECIMAL64:
		return newExtreme(res, isMax, cmp.Compare[int64], fixedValues[int64]), nil
	case arrow.UINT8:
		return newExtreme(res, isMax, cmp.Compare[uint8], fixedValues[uint8]), nil
	case arrow.UINT16:
		return newExtreme(res, isMax, cmp.Compare[uint16], fixedValues[uint16]), nil
	case arrow.UINT32:
		return newExtreme(res, isMax, cmp.Compare[uint32], fixedValues[uint32]), nil
	case arrow.UINT64:
		return newExtreme(res, isMax, cmp.Compare[uint64], fixedValues[uint64]), nil
	case arrow.FLOAT32:
		return newExtreme(res, isMax, compareFloats[float32], fixedValues[float32]), nil
	case arrow.FLOAT64:
		return newExtreme(res, isMax, compareFloats[float64], fixedValues[float64]), nil
	case arrow.DECIMAL128:
		return newExtreme(res, isMax, decimal128.Num.Cmp, fixedValues[decimal128.Num]), nil
	case arrow.DECIMAL256:
		return newExtreme(res, isMax, decimal256.Num.Cmp, fixedValues[decimal256.Num]), nil
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY:
		return &extremeBytes{states: states[[]byte]{res: res}, isMax: isMax}, nil
	}
	return nil, errs.New(errs.ErrUnsupported, "minimum and maximum of %s", t)
}

// compareFloats orders NaN above everything, equal to itself.
func compareFloats[T float32 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a != a && b != b:
		return 0
	case a != a:
		return 1
	}
	return -1
}

func boolValues(a arrow.Array) []uint8 {
	out := make([]uint8, a.Len())
	for i := range out {
		if a.(*array.Boolean).Value(i) {
			out[i] = 1
		}
	}
	return out
}

// extremeAcc is MIN or MAX of fixed-size values.
type extremeAcc[T any] struct {
	states[extreme[T]]
	isMax   bool
	compare func(a, b T) int
	values  func(arrow.Array) []T
}

type extreme[T any] struct {
	v   T
	set bool
}

func newExtreme[T any](res *mem.Reservation, isMax bool, compare func(a, b T) int, values func(arrow.Array) []T) *extremeAcc[T] {
	return &extremeAcc[T]{states: states[extreme[T]]{res: res}, isMax: isMax, compare: compare, values: values}
}

func (e *extremeAcc[T]) offer(s *extreme[T], v T) {
	if !s.set {
		s.v, s.set = v, true
		return
	}
	if c := e.compare(v, s.v); (c > 0) == e.isMax && c != 0 {
		s.v = v
	}
}

func (e *extremeAcc[T]) update(ids []uint32, args []arrow.Array) error {
	bits, offset := validity(args[0])
	for i, v := range e.values(args[0]) {
		if bits == nil || bitutil.BitIsSet(bits, offset+i) {
			e.offer(&e.s[ids[i]], v)
		}
	}
	return nil
}

func (e *extremeAcc[T]) merge(src accumulator, from, to []uint32) error {
	s := src.(*extremeAcc[T]).s
	for i, g := range from {
		if s[g].set {
			e.offer(&e.s[to[i]], s[g].v)
		}
	}
	return nil
}

func (e *extremeAcc[T]) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	isNull := func(i int) bool { return !e.s[from+i].set }
	out := make([]T, to-from)
	for i := range out {
		out[i] = e.s[from+i].v
	}
	if t.ID() != arrow.BOOL {
		return fixedArray(alloc, t, out, isNull), nil
	}
	words := make([]uint64, len(out))
	for i := range out {
		words[i] = uint64(any(out[i]).(uint8))
	}
	valid, nulls := validBuffer(alloc, len(out), isNull)
	a := wordsArray(alloc, t, words, -1)
	defer a.Release()
	values := a.Data().Buffers()[1]
	values.Retain()
	return makeArray(t, len(out), nulls, valid, nil, values), nil
}

// extremeBytes is MIN or MAX of byte strings, byte by byte.
type extremeBytes struct {
	states[[]byte] // nil = none yet
	isMax          bool
}

func (e *extremeBytes) offer(g uint32, v []byte) error {
	old := e.s[g]
	if old != nil {
		if c := bytes.Compare(v, old); c == 0 || (c > 0) != e.isMax {
			return nil
		}
	}
	if len(v) > cap(old) || old == nil {
		size := len(v) + len(v)/4 + 8
		if err := e.res.Grow(int64(size - cap(old))); err != nil {
			return err
		}
		old = make([]byte, 0, size)
	}
	e.s[g] = append(old[:0], v...)
	return nil
}

func (e *extremeBytes) update(ids []uint32, args []arrow.Array) error {
	switch a := args[0].(type) {
	case *array.FixedSizeBinary:
		for i, id := range ids {
			if a.IsValid(i) {
				if err := e.offer(id, a.Value(i)); err != nil {
					return err
				}
			}
		}
		return nil
	default:
		if isLarge(a.DataType()) {
			return offerBytes(e, ids, stringKeys[int64](a))
		}
		return offerBytes(e, ids, stringKeys[int32](a))
	}
}

func offerBytes[O int32 | int64](e *extremeBytes, ids []uint32, k byteKeys[O]) error {
	for i, id := range ids {
		if k.null(i) {
			continue
		}
		if err := e.offer(id, k.data[k.offsets[i]:k.offsets[i+1]]); err != nil {
			return err
		}
	}
	return nil
}

func (e *extremeBytes) merge(src accumulator, from, to []uint32) error {
	s := src.(*extremeBytes).s
	for i, g := range from {
		if s[g] != nil {
			if err := e.offer(to[i], s[g]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *extremeBytes) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	b := array.NewBuilder(alloc, t)
	defer b.Release()
	for _, v := range e.s[from:to] {
		if v == nil {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.StringBuilder:
			b.BinaryBuilder.Append(v)
		case *array.LargeStringBuilder:
			b.BinaryBuilder.Append(v)
		case *array.BinaryBuilder:
			b.Append(v)
		case *array.FixedSizeBinaryBuilder:
			b.Append(v)
		default:
			return nil, errs.New(errs.ErrInternal, "minimum of %s", t)
		}
	}
	return b.NewArray(), nil
}
