package exec

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// accumulator is the state of one aggregate for many groups. It is used by one goroutine.
type accumulator interface {
	// resize makes room for groups 0 to n-1; it never drops one.
	resize(n int) error
	// update adds rows: row i belongs to group ids[i].
	update(ids []uint32, args []arrow.Array) error
	// seal is called once before other states merge from this one, which several goroutines may do at a time.
	seal() error
	// merge adds group from[i] of src, a state of the same aggregate, to group to[i].
	merge(src accumulator, from, to []uint32) error
	// finish is called once, after the last update and merge.
	finish() error
	// result returns groups from to to-1 as an array of type t.
	result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error)
	close()
}

// setMerger is a state that unites large sets on several goroutines.
type setMerger interface {
	// mergeAll is merge for all groups of all srcs at once: group g of srcs[i] is group to[i][g]. The state takes no more updates then.
	mergeAll(ctx context.Context, env *Env, srcs []accumulator, to [][]uint32) error
}

// newAccumulator picks the state for an aggregate.
func newAccumulator(env *Env, res *mem.Reservation, a AggSpec) (accumulator, error) { //nolint:funlen // a flat switch
	if a.Distinct && a.Func == AggCount && len(a.Args) == 1 && isWordKey(plainType(a.Args[0].Type())) {
		return newPairsAcc(res)
	}
	if a.Distinct && (a.Func == AggCount || a.Func == AggSum || a.Func == AggAvg) {
		return newDistinctAcc(env, res, a)
	}
	if a.Func == AggCountStar || a.Func == AggCount {
		return &countAcc{states: states[int64]{res: res}}, nil
	}
	t := a.Args[0].Type()
	if a.Func == AggAny {
		return &anyAcc{states: states[int32]{res: res}, alloc: env.Alloc, typ: t}, nil
	}
	sums := a.Func == AggSum || a.Func == AggAvg
	t = plainType(t)
	switch t.ID() {
	case arrow.FLOAT32, arrow.FLOAT64:
		if sums {
			return &floatAcc{states: states[floatSum]{res: res}, avg: a.Func == AggAvg}, nil
		}
	case arrow.NULL:
		return &nullAcc{}, nil
	}
	if sums {
		return newSumAcc(res, a)
	}
	return newExtremeAcc(res, t, a.Func == AggMax)
}

// states is one fixed-size state per group, its memory reserved.
type states[T any] struct {
	res *mem.Reservation
	s   []T
}

func (s *states[T]) resize(n int) error {
	if n <= len(s.s) {
		return nil
	}
	if n > cap(s.s) {
		var zero T
		size := max(n, 2*cap(s.s), 64)
		if err := s.res.Grow(int64(size) * int64(unsafe.Sizeof(zero))); err != nil {
			return err
		}
		old := cap(s.s)
		grown := make([]T, len(s.s), size)
		copy(grown, s.s)
		s.s = grown
		s.res.Shrink(int64(old) * int64(unsafe.Sizeof(zero)))
	}
	s.s = s.s[:n]
	return nil
}

func (s *states[T]) seal() error { return nil }

func (s *states[T]) finish() error { return nil }

func (s *states[T]) close() { s.s = nil }

// countAcc counts rows without NULL arguments.
type countAcc struct{ states[int64] }

func (c *countAcc) update(ids []uint32, args []arrow.Array) error {
	valid := allValid(args, len(ids))
	if valid == nil {
		for _, id := range ids {
			c.s[id]++
		}
		return nil
	}
	for i, id := range ids {
		c.s[id] += int64(valid[i>>3]>>(i&7)) & 1
	}
	return nil
}

// allValid is the bitmap of rows where no argument is NULL; nil = every row.
func allValid(args []arrow.Array, n int) []byte {
	var out []byte
	for _, a := range args {
		bits, offset := validity(a)
		switch {
		case bits == nil:
		case out == nil:
			out = make([]byte, (n+7)/8)
			bitutil.CopyBitmap(bits, offset, n, out, 0)
		default:
			bitutil.BitmapAnd(out, bits, 0, int64(offset), out, 0, int64(n))
		}
	}
	return out
}

func (c *countAcc) merge(src accumulator, from, to []uint32) error {
	s := src.(*countAcc).s
	for i, g := range from {
		c.s[to[i]] += s[g]
	}
	return nil
}

func (c *countAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	return fixedArray(alloc, t, c.s[from:to], nil), nil
}

// fixedArray copies values into an array; isNull may be nil.
func fixedArray[T any](alloc memory.Allocator, t arrow.DataType, values []T, isNull func(i int) bool) arrow.Array {
	var zero T
	buf := memory.NewResizableBuffer(alloc)
	buf.Resize(len(values) * int(unsafe.Sizeof(zero)))
	copy(castBytes[T](buf.Bytes()), values)
	valid, nulls := validBuffer(alloc, len(values), isNull)
	return makeArray(t, len(values), nulls, valid, nil, buf)
}

// validBuffer builds the validity of n rows; nil where none is NULL.
func validBuffer(alloc memory.Allocator, n int, isNull func(i int) bool) (*memory.Buffer, int) {
	if isNull == nil {
		return nil, 0
	}
	nulls := 0
	for i := range n {
		if isNull(i) {
			nulls++
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	valid := memory.NewResizableBuffer(alloc)
	valid.Resize((n + 7) / 8)
	bitutil.SetBitsTo(valid.Bytes(), 0, int64(n), true)
	for i := range n {
		if isNull(i) {
			bitutil.ClearBit(valid.Bytes(), i)
		}
	}
	return valid, nulls
}

// nullAcc aggregates a column of the null type.
type nullAcc struct{}

func (nullAcc) resize(int) error                            { return nil }
func (nullAcc) update([]uint32, []arrow.Array) error        { return nil }
func (nullAcc) merge(accumulator, []uint32, []uint32) error { return nil }
func (nullAcc) seal() error                                 { return nil }
func (nullAcc) finish() error                               { return nil }
func (nullAcc) close()                                      {}
func (nullAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	return array.MakeArrayOfNull(alloc, t, to-from), nil
}

// floatAcc adds floats, with the rounding errors kept aside (Neumaier 1974), so that the answer hardly depends on the order of rows.
type floatAcc struct {
	states[floatSum]
	avg bool
}

type floatSum struct {
	sum, err float64
	n        int64
}

func (s *floatSum) add(v float64) {
	t := s.sum + v
	z := t - s.sum
	s.err += (s.sum - (t - z)) + (v - z)
	s.sum = t
}

func (s *floatSum) value() float64 {
	if math.IsInf(s.sum, 0) || math.IsNaN(s.sum) {
		return s.sum
	}
	return s.sum + s.err
}

func (f *floatAcc) update(ids []uint32, args []arrow.Array) error {
	bits, offset := validity(args[0])
	if args[0].DataType().ID() == arrow.FLOAT32 {
		addFloats(f.s, ids, fixedValues[float32](args[0]), bits, offset)
	} else {
		addFloats(f.s, ids, fixedValues[float64](args[0]), bits, offset)
	}
	return nil
}

func addFloats[T float32 | float64](s []floatSum, ids []uint32, values []T, bits []byte, offset int) {
	for i, v := range values {
		if bits != nil && !bitutil.BitIsSet(bits, offset+i) {
			continue
		}
		st := &s[ids[i]]
		st.add(float64(v))
		st.n++
	}
}

func (f *floatAcc) merge(src accumulator, from, to []uint32) error {
	s := src.(*floatAcc).s
	for i, g := range from {
		d := &f.s[to[i]]
		d.add(s[g].sum)
		if !math.IsNaN(s[g].err) {
			d.err += s[g].err
		}
		d.n += s[g].n
	}
	return nil
}

func (f *floatAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	out := make([]float64, to-from)
	for i := range out {
		s := &f.s[from+i]
		if out[i] = s.value(); f.avg {
			out[i] /= float64(max(s.n, 1))
		}
	}
	return fixedArray(alloc, t, out, func(i int) bool { return f.s[from+i].n == 0 }), nil
}

// anyAcc keeps the value of the first row that it sees of each group.
type anyAcc struct {
	states[int32] // position in rows + 1; 0 = none yet
	alloc         memory.Allocator
	typ           arrow.DataType
	chunks        []arrow.Array
	rows          int
	first         []int32
}

func (a *anyAcc) update(ids []uint32, args []arrow.Array) error {
	a.first = a.first[:0]
	for i, id := range ids {
		if a.s[id] == 0 {
			a.rows++
			a.s[id] = int32(a.rows)
			a.first = append(a.first, int32(i))
		}
	}
	return a.keep(args[0], a.first)
}

func (a *anyAcc) keep(arr arrow.Array, idx []int32) error {
	if len(idx) == 0 {
		return nil
	}
	if a.rows > rowsMax {
		return errs.New(errs.ErrUnsupported, "any_value of more than %d groups", rowsMax)
	}
	rows, err := expr.TakeArray(a.alloc, arr, idx)
	if err != nil {
		return err
	}
	a.chunks = append(a.chunks, rows)
	return nil
}

func (a *anyAcc) merge(src accumulator, from, to []uint32) error {
	s := src.(*anyAcc)
	var idx []int32
	for i, g := range from {
		if s.s[g] != 0 && a.s[to[i]] == 0 {
			a.rows++
			a.s[to[i]] = int32(a.rows)
			idx = append(idx, s.s[g]-1)
		}
	}
	if len(idx) == 0 {
		return nil
	}
	return a.keep(s.chunks[0], idx)
}

func (a *anyAcc) seal() error { return a.finish() }

func (a *anyAcc) finish() error {
	if len(a.chunks) < 2 {
		return nil
	}
	whole, err := concatArrays(a.alloc, a.typ, a.chunks)
	if err != nil {
		return err
	}
	releaseArrays(a.chunks)
	a.chunks = []arrow.Array{whole}
	return nil
}

func (a *anyAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	if len(a.chunks) == 0 {
		return array.MakeArrayOfNull(alloc, t, to-from), nil
	}
	idx := make([]int32, to-from)
	for i := range idx {
		idx[i] = a.s[from+i] - 1
	}
	return expr.TakeArray(alloc, a.chunks[0], idx)
}

func (a *anyAcc) close() {
	releaseArrays(a.chunks)
	a.chunks = nil
}

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
