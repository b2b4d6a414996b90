package expr

import (
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// mulSmall is x * m, where the product fits 128 bits.
func mulSmall(x decimal128.Num, m uint64) decimal128.Num {
	hi, lo := bits.Mul64(x.LowBits(), m)
	return decimal128.New(int64(hi+uint64(x.HighBits())*m), lo)
}

func add128(a, b decimal128.Num) decimal128.Num {
	lo, c := bits.Add64(a.LowBits(), b.LowBits(), 0)
	hi, _ := bits.Add64(uint64(a.HighBits()), uint64(b.HighBits()), c)
	return decimal128.New(int64(hi), lo)
}

func sub128(a, b decimal128.Num) decimal128.Num {
	lo, c := bits.Sub64(a.LowBits(), b.LowBits(), 0)
	hi, _ := bits.Sub64(uint64(a.HighBits()), uint64(b.HighBits()), c)
	return decimal128.New(int64(hi), lo)
}

// mul128 is the low 128 bits of a * b: exact where the product fits.
func mul128(a, b decimal128.Num) decimal128.Num {
	hi, lo := bits.Mul64(a.LowBits(), b.LowBits())
	hi += uint64(a.HighBits())*b.LowBits() + a.LowBits()*uint64(b.HighBits())
	return decimal128.New(int64(hi), lo)
}

// split128 is sign and magnitude.
func split128(a decimal128.Num) (neg bool, hi, lo uint64) {
	hi, lo = uint64(a.HighBits()), a.LowBits()
	if int64(hi) < 0 {
		neg = true
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, c)
	}
	return neg, hi, lo
}

func join128(neg bool, hi, lo uint64) decimal128.Num {
	if neg {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, c)
	}
	return decimal128.New(int64(hi), lo)
}

// mulWide is the exact 256-bit product of two 128-bit numbers.
func mulWide(a, b decimal128.Num) decimal256.Num {
	an, ah, al := split128(a)
	bn, bh, bl := split128(b)
	h0, r0 := bits.Mul64(al, bl)
	h1, l1 := bits.Mul64(ah, bl)
	h2, l2 := bits.Mul64(al, bh)
	h3, l3 := bits.Mul64(ah, bh)
	r1, c := bits.Add64(h0, l1, 0)
	r2, c2 := bits.Add64(h1, l3, c)
	r3 := h3 + c2
	r1, c = bits.Add64(r1, l2, 0)
	r2, c = bits.Add64(r2, h2, c)
	r3 += c
	n := decimal256.New(r3, r2, r1, r0)
	if an != bn {
		return n.Negate()
	}
	return n
}

// div128by64 divides a magnitude by a word.
func div128by64(hi, lo, d uint64) (qh, ql, r uint64) {
	qh, r = hi/d, hi%d
	ql, r = bits.Div64(r, lo, d)
	return qh, ql, r
}

// scaleDown128 divides by 10^by, rounding half away from zero; by is at most 18.
func scaleDown128(x decimal128.Num, by int32) decimal128.Num {
	neg, hi, lo := split128(x)
	d := uint64(pow10i[by])
	hi, lo, r := div128by64(hi, lo, d)
	if r >= d-r {
		var c uint64
		lo, c = bits.Add64(lo, 1, 0)
		hi += c
	}
	return join128(neg, hi, lo)
}

func negateDecimals(x *call) (vector, error) {
	out := x.newVector(x.t, x.n)
	out.valid = x.valid
	a := &x.args[0]
	if out.c == classDecimal {
		for i := range out.d {
			out.d[i] = a.d[i].Negate()
		}
		return out, nil
	}
	for i := range out.w {
		out.w[i] = a.w[i].Negate()
	}
	return out, nil
}

// operandDigits counts a literal integer's own digits: 1 + x is DECIMAL(p+1, s), not DECIMAL(20, s).
func (r *request) operandDigits(i int, t arrow.DataType) (p, s int32) {
	if c := classOf(r.types[i]); c == classInt || c == classUint {
		p, s, _ = exprDigits(r.args[i], r.types[i])
		return p, s
	}
	p, s, _ = digits(t)
	return p, s
}

func resolveDecimalArith(r *request, a, b arrow.DataType, op arithOp) (impl, error) {
	pa, sa := r.operandDigits(0, a)
	pb, sb := r.operandDigits(1, b)
	if op == opMul {
		t := typeDecimal(pa+pb, sa+sb)
		work := rawDecimal(pa+pb, sa+sb)
		return impl{t: t, params: []arrow.DataType{rawDecimal(pa, sa), rawDecimal(pb, sb)}, exact: true, run: mulDecimals(work)}, nil
	}
	s := max(sa, sb)
	p := max(pa-sa, pb-sb) + 1 + s
	side := func(p0, s0 int32) arrow.DataType { return rawDecimal(p0-s0+s, s) }
	params := []arrow.DataType{side(pa, sa), side(pb, sb)}
	if p > decimal128Digits {
		params = []arrow.DataType{wideType(s), wideType(s)}
	}
	return impl{t: typeDecimal(p, s), params: params, exact: true, run: addDecimals(op)}, nil
}

// wideType is a 256-bit decimal of the given scale, for computing.
func wideType(scale int32) arrow.DataType {
	return &arrow.Decimal256Type{Precision: decimal256Digits, Scale: scale}
}

func addDecimals(op arithOp) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(x.t, x.n)
		out.valid = x.valid
		a, b := &x.args[0], &x.args[1]
		am, bm := a.mask(), b.mask()
		switch {
		case out.c == classDecimal && op == opAdd:
			for i := range out.d {
				out.d[i] = add128(a.d[i&am], b.d[i&bm])
			}
		case out.c == classDecimal:
			for i := range out.d {
				out.d[i] = sub128(a.d[i&am], b.d[i&bm])
			}
		case op == opAdd:
			for i := range out.w {
				out.w[i] = a.w[i&am].Add(b.w[i&bm])
			}
			return out, x.checkWide(&out)
		default:
			for i := range out.w {
				out.w[i] = a.w[i&am].Sub(b.w[i&bm])
			}
			return out, x.checkWide(&out)
		}
		return out, nil
	}
}

// decimalLimit is 10^65: MySQL's decimals are smaller.
func decimalLimit() decimal256.Num { return decimal256.FromBigInt(bigPow10(decimalDigitsMax)) }

// checkWide refuses numbers of more than 65 digits.
func (x *call) checkWide(out *vector) error {
	if out.precision() < decimalDigitsMax {
		return nil
	}
	hi := decimalLimit()
	lo := hi.Negate()
	for i := range out.w {
		if w := out.w[i]; x.validAt(i) && (!w.Less(hi) || !w.Greater(lo)) {
			return x.rangeError(x.t)
		}
	}
	return nil
}

// mulDecimals multiplies exactly in the type work, then brings the product to the call's scale if that is smaller (over 30 digits of fraction).
func mulDecimals(work arrow.DataType) kernel {
	return func(x *call) (vector, error) {
		a, b := &x.args[0], &x.args[1]
		am, bm := a.mask(), b.mask()
		prod := x.newVector(work, x.n)
		prod.t, prod.valid = work, x.valid
		if prod.c == classDecimal {
			for i := range prod.d {
				prod.d[i] = mul128(a.d[i&am], b.d[i&bm])
			}
			return x.fitDecimal(prod)
		}
		if a.c == classDecimal && b.c == classDecimal {
			for i := range prod.w {
				prod.w[i] = mulWide(a.d[i&am], b.d[i&bm])
			}
			return x.fitDecimal(prod)
		}
		limit := bigPow10(decimal256Digits)
		prod.clearValues()
		for i := range prod.w {
			if !x.validAt(i) {
				continue
			}
			n := new(big.Int).Mul(a.big(i), b.big(i))
			if s := prod.scale(); s > decimalScaleMax {
				n = roundBig(n, s, decimalScaleMax)
			}
			if n.CmpAbs(limit) >= 0 {
				return prod, x.rangeError(x.t)
			}
			prod.w[i] = decimal256.FromBigInt(n)
		}
		if prod.scale() > decimalScaleMax {
			prod.t = wideType(decimalScaleMax)
		}
		return x.fitDecimal(prod)
	}
}

// fitDecimal brings a product to the type of the call.
func (x *call) fitDecimal(v vector) (vector, error) {
	if v.scale() != x.scaleOf() {
		var err error
		if v, err = x.cast(&v, x.t, castStrict); err != nil {
			return v, x.rangeError(x.t)
		}
	}
	if want := classOf(x.t); v.c == classDecimal && want == classWide {
		w := x.wideAll(v.d)
		v.c, v.w, v.d = classWide, w, nil
	} else if v.c == classWide && want == classDecimal {
		d := makeSlice[decimal128.Num](x.arena, v.n)
		for i := range d {
			d[i] = narrowOf(v.w[i])
		}
		v.c, v.d, v.w = classDecimal, d, nil
	}
	v.t = x.t
	if v.c == classWide {
		return v, x.checkWide(&v)
	}
	return v, nil
}

func (x *call) scaleOf() int32 {
	_, s, _ := digits(x.t)
	return s
}

func ceilWords(scale int32) int32 { return (scale + wordDigits - 1) / wordDigits * wordDigits }

// quotientScale is how many digits after the point MySQL computes a quotient to; they are cut, not rounded.
func quotientScale(sa, sb int32) int32 {
	fa, fb := ceilWords(sa), ceilWords(sb)
	more := max(0, divScaleIncrement-(fa-sa)-(fb-sb))
	return min(ceilWords(fa+fb+more), decimalScaleMax)
}

// quotient is the vector type of a / b: more digits than the declared type, which rounds them when the value leaves the arithmetic.
type quotient struct {
	shift int32 // the dividend is multiplied by 10^shift
	work  arrow.DataType
}

func resolveDecimalDivide(r *request, a, b arrow.DataType) (impl, error) {
	pa, sa := r.operandDigits(0, a)
	pb, sb := r.operandDigits(1, b)
	s := quotientScale(sa, sb)
	q := quotient{shift: s - sa + sb, work: rawDecimal(pa-sa+sb+s, s)}
	if q.shift < 0 { // the dividend has more than 30 digits of fraction
		q.shift = 0
		q.work = rawDecimal(pa+sb, sa-sb)
	}
	declared := typeDecimal(pa+sb+divScaleIncrement, sa+divScaleIncrement)
	return impl{t: declared, vt: q.work, params: []arrow.DataType{rawDecimal(pa, sa), rawDecimal(pb, sb)}, exact: true, run: q.divide}, nil
}

func (q quotient) divide(x *call) (vector, error) {
	out := x.newVector(q.work, x.n)
	out.valid = x.valid
	out.clearValues()
	a, b := &x.args[0], &x.args[1]
	if out.c == classDecimal && a.c == classDecimal && b.c == classDecimal && q.shift < int32(len(pow10i)) {
		m := uint64(pow10i[q.shift])
		x.each(&out, func(i int) bool {
			d := b.d[b.at(i)]
			dn, dh, dl := split128(d)
			if dh == 0 && dl == 0 {
				return false
			}
			n := mulSmall(a.d[a.at(i)], m)
			if dh != 0 {
				out.d[i] = decimal128.FromBigInt(new(big.Int).Quo(n.BigInt(), d.BigInt()))
				return true
			}
			nn, nh, nl := split128(n)
			h, l, _ := div128by64(nh, nl, dl)
			out.d[i] = join128(nn != dn, h, l)
			return true
		})
		return out, nil
	}
	return q.divideBig(x, out)
}

func (q quotient) divideBig(x *call, out vector) (vector, error) {
	m := bigPow10(q.shift)
	p, _, _ := digits(q.work)
	limit := bigPow10(p)
	var err error
	x.each(&out, func(i int) bool {
		d := x.args[1].big(i)
		if d.Sign() == 0 {
			return false
		}
		n := new(big.Int).Mul(x.args[0].big(i), m)
		n.Quo(n, d)
		if n.CmpAbs(limit) >= 0 {
			err = x.rangeError(x.t)
			return true
		}
		out.putBig(i, n)
		return true
	})
	return out, err
}

// bigDecimalArgs are the parameter types for kernels that compute with big integers.
func bigDecimalArgs(a, b arrow.DataType) []arrow.DataType {
	one := func(t arrow.DataType) arrow.DataType {
		if classOf(t) == classFloat {
			return wideType(decimalScaleMax)
		}
		p, s, _ := digits(t)
		return rawDecimal(p, s)
	}
	return []arrow.DataType{one(a), one(b)}
}

// resolveDecimalIntDivide is a DIV b over decimals and doubles: the quotient without fraction, as an integer.
func resolveDecimalIntDivide(a, b, t arrow.DataType) (impl, error) {
	return impl{t: t, params: bigDecimalArgs(a, b), exact: true, run: func(x *call) (vector, error) {
		out := x.newVector(t, x.n)
		out.valid = x.valid
		out.clearValues()
		var err error
		x.each(&out, func(i int) bool {
			n, d := sameScale(&x.args[0], &x.args[1], i)
			if d.Sign() == 0 {
				return false
			}
			n.Quo(n, d)
			mag := new(big.Int).Abs(n)
			if !mag.IsUint64() {
				err = x.rangeError(t)
				return true
			}
			err = x.putSigned(&out, i, n.Sign() < 0, mag.Uint64(), err)
			return true
		})
		return out, err
	}}, nil
}

// sameScale returns fresh unscaled values of one scale.
func sameScale(a, b *vector, i int) (n, d *big.Int) {
	s := max(a.scale(), b.scale())
	return roundBig(a.big(i), a.scale(), s), roundBig(b.big(i), b.scale(), s)
}

func resolveDecimalMod(a, b arrow.DataType) (impl, error) {
	pa, sa, _ := digits(a)
	pb, sb, _ := digits(b)
	s := max(sa, sb)
	t := typeDecimal(max(pa-sa, pb-sb)+s, s)
	return impl{t: t, params: []arrow.DataType{rawDecimal(pa, sa), rawDecimal(pb, sb)}, run: func(x *call) (vector, error) {
		out := x.newVector(t, x.n)
		out.valid = x.valid
		out.clearValues()
		x.each(&out, func(i int) bool {
			n, d := sameScale(&x.args[0], &x.args[1], i)
			if d.Sign() == 0 {
				return false
			}
			out.putBig(i, n.Rem(n, d))
			return true
		})
		return out, nil
	}}, nil
}
