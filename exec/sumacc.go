package exec

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// sumAcc is the exact SUM or AVG of integers and decimals. A group adds up in 128 bits; what would overflow them moves to a 256-bit part.
type sumAcc struct {
	states[sum128]
	wide  map[uint32]*big.Int // groups whose sum left 128 bits: the rest of the sum
	add   func(s *sumAcc, ids []uint32, a arrow.Array)
	scale int32 // of the argument
	avg   bool
}

type sum128 struct {
	lo uint64
	hi int64
	n  int64
}

// wideEntryBytes is about what one entry of sumAcc.wide costs.
const wideEntryBytes = 160

func newSumAcc(res *mem.Reservation, a AggSpec) (accumulator, error) {
	t := plainType(a.Args[0].Type())
	_, scale, _ := decimalOf(t)
	s := &sumAcc{states: states[sum128]{res: res}, scale: scale, avg: a.Func == AggAvg}
	switch t.ID() {
	case arrow.BOOL:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, boolValues(a), a) }
	case arrow.INT8:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, fixedValues[int8](a), a) }
	case arrow.INT16:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, fixedValues[int16](a), a) }
	case arrow.INT32, arrow.DECIMAL32:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, fixedValues[int32](a), a) }
	case arrow.INT64, arrow.DECIMAL64:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, fixedValues[int64](a), a) }
	case arrow.UINT8:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, fixedValues[uint8](a), a) }
	case arrow.UINT16:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, fixedValues[uint16](a), a) }
	case arrow.UINT32:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addInts(s.s, ids, fixedValues[uint32](a), a) }
	case arrow.UINT64:
		s.add = func(s *sumAcc, ids []uint32, a arrow.Array) { addUnsigned(s.s, ids, fixedValues[uint64](a), a) }
	case arrow.DECIMAL128:
		s.add = (*sumAcc).addDecimals
	case arrow.DECIMAL256:
		s.add = (*sumAcc).addWide
	default:
		return nil, errs.New(errs.ErrUnsupported, "%s of %s", a.Func, t)
	}
	return s, nil
}

func (s *sumAcc) update(ids []uint32, args []arrow.Array) error {
	before := len(s.wide)
	s.add(s, ids, args[0])
	return s.res.Grow(int64(len(s.wide)-before) * wideEntryBytes)
}

// addInts cannot overflow: 2^64 rows of 63 bits fit 128 bits.
func addInts[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](s []sum128, ids []uint32, values []T, a arrow.Array) {
	valid, offset := validity(a)
	if valid == nil {
		ids = ids[:len(values)]
		for i, x := range values {
			st, v := &s[ids[i]], int64(x)
			lo, carry := bits.Add64(st.lo, uint64(v), 0)
			st.lo = lo
			st.hi += v>>63 + int64(carry)
			st.n++
		}
		return
	}
	for i, x := range values {
		if !bitutil.BitIsSet(valid, offset+i) {
			continue
		}
		st, v := &s[ids[i]], int64(x)
		lo, carry := bits.Add64(st.lo, uint64(v), 0)
		st.lo = lo
		st.hi += v>>63 + int64(carry)
		st.n++
	}
}

func addUnsigned(s []sum128, ids []uint32, values []uint64, a arrow.Array) {
	valid, offset := validity(a)
	for i, v := range values {
		if valid != nil && !bitutil.BitIsSet(valid, offset+i) {
			continue
		}
		st := &s[ids[i]]
		lo, carry := bits.Add64(st.lo, v, 0)
		st.lo = lo
		st.hi += int64(carry)
		st.n++
	}
}

func (s *sumAcc) addDecimals(ids []uint32, a arrow.Array) {
	valid, offset := validity(a)
	values := fixedValues[[2]uint64](a) // low word first
	ids = ids[:len(values)]
	for i := range values {
		if valid != nil && !bitutil.BitIsSet(valid, offset+i) {
			continue
		}
		st, vlo, vhi := &s.s[ids[i]], values[i][0], int64(values[i][1])
		lo, carry := bits.Add64(st.lo, vlo, 0)
		hi := int64(uint64(st.hi) + uint64(vhi) + carry)
		if (st.hi^hi)&(vhi^hi) < 0 {
			s.spill(ids[i])
			lo, hi = vlo, vhi
		}
		st.lo, st.hi = lo, hi
		st.n++
	}
}

// spill moves the 128-bit part of a group to its wide part.
func (s *sumAcc) spill(g uint32) {
	s.addBig(g, decimal128.New(s.s[g].hi, s.s[g].lo).BigInt())
	s.s[g].lo, s.s[g].hi = 0, 0
}

func (s *sumAcc) addBig(g uint32, v *big.Int) {
	if s.wide == nil {
		s.wide = make(map[uint32]*big.Int)
	}
	if w, ok := s.wide[g]; ok {
		w.Add(w, v)
		return
	}
	s.wide[g] = new(big.Int).Set(v)
}

func (s *sumAcc) addWide(ids []uint32, a arrow.Array) {
	valid, offset := validity(a)
	for i, v := range fixedValues[decimal256.Num](a) {
		if valid != nil && !bitutil.BitIsSet(valid, offset+i) {
			continue
		}
		s.s[ids[i]].n++
		w := v.Array()
		if sign := uint64(int64(w[1]) >> 63); w[2] != sign || w[3] != sign {
			s.addBig(ids[i], v.BigInt())
			continue
		}
		s.addNarrow(ids[i], w[0], int64(w[1]))
	}
}

// addNarrow adds a 128-bit value to a group.
func (s *sumAcc) addNarrow(g uint32, vlo uint64, vhi int64) {
	st := &s.s[g]
	lo, carry := bits.Add64(st.lo, vlo, 0)
	hi := int64(uint64(st.hi) + uint64(vhi) + carry)
	if (st.hi^hi)&(vhi^hi) < 0 {
		s.spill(g)
		lo, hi = vlo, vhi
	}
	st.lo, st.hi = lo, hi
}

func (s *sumAcc) merge(src accumulator, from, to []uint32) error {
	o := src.(*sumAcc)
	before := len(s.wide)
	for i, g := range from {
		v := &o.s[g]
		s.addNarrow(to[i], v.lo, v.hi)
		s.s[to[i]].n += v.n
		if w, ok := o.wide[g]; ok {
			s.addBig(to[i], w)
		}
	}
	return s.res.Grow(int64(len(s.wide)-before) * wideEntryBytes)
}

func (s *sumAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	if d, ok := t.(*arrow.Decimal128Type); ok {
		if a, ok := s.narrowResult(alloc, d, from, to); ok {
			return a, nil
		}
	}
	b := array.NewBuilder(alloc, t)
	defer b.Release()
	b.Reserve(to - from)
	for g := from; g < to; g++ {
		if s.s[g].n == 0 {
			b.AppendNull()
			continue
		}
		if err := s.appendResult(b, t, uint32(g)); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// narrowResult is the result without big numbers; ok is false where a group needs them.
func (s *sumAcc) narrowResult(alloc memory.Allocator, t *arrow.Decimal128Type, from, to int) (arrow.Array, bool) {
	if len(s.wide) > 0 || t.Scale < s.scale || t.Scale-s.scale > 18 {
		return nil, false
	}
	factor := uint64(math.Pow10(int(t.Scale - s.scale)))
	out := make([]decimal128.Num, to-from)
	for i := range out {
		st := &s.s[from+i]
		v, ok := decimal128.New(st.hi, st.lo), true
		switch {
		case s.avg:
			v, ok = divideNarrow(v, factor, max(st.n, 1))
		case factor != 1:
			ok = fitsWord(v) && v.LowBits() != 1<<63
			if ok {
				hi, lo := bits.Mul64(v.Abs().LowBits(), factor)
				v = signed(decimal128.New(int64(hi), lo), v.Sign() < 0)
			}
		}
		if !ok || !v.FitsInPrecision(t.Precision) {
			return nil, false
		}
		out[i] = v
	}
	return fixedArray(alloc, t, out, func(i int) bool { return s.s[from+i].n == 0 }), true
}

func signed(v decimal128.Num, negative bool) decimal128.Num {
	if negative {
		return v.Negate()
	}
	return v
}

// divideNarrow is v * factor / n rounded half away from zero, where the product fits 128 bits.
func divideNarrow(v decimal128.Num, factor uint64, n int64) (decimal128.Num, bool) {
	if !fitsWord(v) || v.LowBits() == 1<<63 {
		return v, false
	}
	hi, lo := bits.Mul64(v.Abs().LowBits(), factor)
	q1, r := hi/uint64(n), hi%uint64(n)
	q0, r := bits.Div64(r, lo, uint64(n))
	if r >= uint64(n)-r {
		var carry uint64
		q0, carry = bits.Add64(q0, 1, 0)
		q1 += carry
	}
	return signed(decimal128.New(int64(q1), q0), v.Sign() < 0), true
}

// appendResult is the general case: any size, any result type.
func (s *sumAcc) appendResult(b array.Builder, t arrow.DataType, g uint32) error {
	v := decimal128.New(s.s[g].hi, s.s[g].lo).BigInt()
	if w, ok := s.wide[g]; ok {
		v.Add(v, w)
	}
	n := int64(1)
	if s.avg {
		n = s.s[g].n
	}
	switch b := b.(type) {
	case *array.Float64Builder:
		r := new(big.Rat).SetFrac(v, new(big.Int).Mul(pow10(s.scale), big.NewInt(n)))
		f, _ := r.Float64()
		b.Append(f)
		return nil
	case *array.Int64Builder:
		v = scaledQuotient(v, -s.scale, n)
		if !v.IsInt64() {
			return errs.New(errs.ErrOverflow, "%s does not fit a 64-bit integer", v)
		}
		b.Append(v.Int64())
		return nil
	}
	d, ok := t.(arrow.DecimalType)
	if !ok {
		return errs.New(errs.ErrInternal, "a sum as %s", t)
	}
	v = scaledQuotient(v, d.GetScale()-s.scale, n)
	if v.CmpAbs(pow10(d.GetPrecision())) >= 0 {
		return errs.New(errs.ErrOverflow, "the result has more digits than %s", t)
	}
	switch b := b.(type) {
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(v))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(v))
	default:
		return errs.New(errs.ErrInternal, "a sum as %s", t)
	}
	return nil
}

func pow10(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// scaledQuotient is v * 10^shift / n rounded half away from zero.
func scaledQuotient(v *big.Int, shift int32, n int64) *big.Int {
	num, den := new(big.Int).Set(v), big.NewInt(n)
	if shift >= 0 {
		num.Mul(num, pow10(shift))
	} else {
		den.Mul(den, pow10(-shift))
	}
	q, r := new(big.Int).QuoRem(num, den, new(big.Int))
	if r.Lsh(r, 1).CmpAbs(den) >= 0 {
		q.Add(q, big.NewInt(int64(num.Sign())))
	}
	return q
}

func (s *sumAcc) close() { s.s, s.wide = nil, nil }
