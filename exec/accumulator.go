package exec

import (
	"context"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
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
	switch a.Func {
	case AggStddevPop, AggStddevSamp, AggVarPop, AggVarSamp:
		sample, root := a.Func == AggStddevSamp || a.Func == AggVarSamp, a.Func == AggStddevPop || a.Func == AggStddevSamp
		return &spreadAcc{states: states[spread]{res: res}, sample: sample, root: root}, nil
	case AggBitAnd, AggBitOr, AggBitXor:
		return newBitsAcc(states[uint64]{res: res}, a.Func), nil
	case AggConcat, AggJSONArray, AggJSONObject:
		return newCollectAcc(env, res, a), nil
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
