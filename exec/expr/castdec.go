package expr

import (
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

func appendUint(dst []byte, u uint64) []byte { return strconv.AppendUint(dst, u, 10) }

func (v *vector) scale() int32 {
	_, s, _ := digits(v.t)
	return s
}

func (v *vector) precision() int32 {
	p, _, _ := digits(v.t)
	return p
}

// big is the unscaled decimal i.
func (v *vector) big(i int) *big.Int {
	if v.c == classDecimal {
		return v.d[v.at(i)].BigInt()
	}
	return v.w[v.at(i)].BigInt()
}

// putBig stores an unscaled decimal that fits the vector's precision.
func (v *vector) putBig(i int, n *big.Int) {
	if v.c == classDecimal {
		v.d[i] = decimal128.FromBigInt(n)
	} else {
		v.w[i] = decimal256.FromBigInt(n)
	}
}

// castDecimal converts to the vector's own precision and scale; what does not fit is cut to the largest number (MySQL's rule for CAST), or is
// ErrOverflow when the conversion is implicit.
func (s *state) castDecimal(out, v *vector, mode castMode) error {
	p, scale := out.precision(), out.scale()
	if v.c == classWide && out.c == classWide && v.scale() == scale && v.precision() <= p {
		out.w = v.w
		return nil
	}
	if v.c == classDecimal && out.c == classWide && v.scale() == scale {
		out.w = s.wideAll(v.d[:v.n])
		return nil
	}
	if v.c == classDecimal && out.c == classDecimal && s.rescaleFast(out, v, p, scale) {
		return nil
	}
	if out.c == classDecimal {
		out.d = makeSlice[decimal128.Num](s.arena, v.n)
	} else {
		out.w = makeSlice[decimal256.Num](s.arena, v.n)
	}
	out.clearValues()
	if v.c.integer() && s.intsToDecimal(out, v, p, scale) {
		return nil
	}
	limit := bigPow10(p)
	var err error
	s.each(out, func(i int) bool {
		n, ok := s.bigOf(v, i, scale)
		if !ok {
			return false
		}
		if n.CmpAbs(limit) >= 0 {
			if mode == castStrict && v.c != classString {
				err = overflow(out.t, valueText(v, i))
			}
			n = new(big.Int).Sub(limit, big.NewInt(1)).Mul(big.NewInt(1).Sub(limit, big.NewInt(1)), big.NewInt(int64(n.Sign())))
		}
		out.putBig(i, n)
		return true
	})
	return err
}

// bigOf is value i as an unscaled decimal of the given scale, rounded half away from zero. ok is false for NaN and infinities.
func (s *state) bigOf(v *vector, i int, scale int32) (n *big.Int, ok bool) {
	switch v.c {
	case classDecimal, classWide:
		return roundBig(v.big(i), v.scale(), scale), true
	case classUint:
		return roundBig(new(big.Int).SetUint64(v.u[i]), 0, scale), true
	case classFloat:
		n, from, ok := parseDecimal(appendFloat(nil, v.f[i], 64))
		return roundBig(n, from, scale), ok
	case classString:
		n, from, _ := parseDecimal(v.str(i))
		return roundBig(n, from, scale), true
	case classDate, classDatetime, classTimestamp, classTime:
		return roundBig(temporalMicrosNumber(v, i, s.env), 6, scale), true
	}
	x, _ := s.intOf(v, i, castExplicit)
	return roundBig(big.NewInt(x), 0, scale), true
}

// rescaleFast handles 128-bit decimals that keep their scale and do not lose digits, and those that gain zeros without leaving 128 bits.
func (s *state) rescaleFast(out, v *vector, p, scale int32) bool {
	from, fromP := v.scale(), v.precision()
	if from == scale && fromP <= p {
		out.d = v.d
		return true
	}
	if scale < from && from-scale < int32(len(pow10i)) && fromP-from <= p-scale {
		out.d = makeSlice[decimal128.Num](s.arena, v.n)
		for i, x := range v.d[:v.n] {
			out.d[i] = scaleDown128(x, from-scale)
		}
		return fromP-from < p-scale || s.withinDigits(out, p) // rounding may carry into a digit more
	}
	if scale < from || fromP+(scale-from) > p {
		return false
	}
	out.d = makeSlice[decimal128.Num](s.arena, v.n)
	scaleUp(out.d, v.d[:v.n], scale-from)
	return true
}

// scaleUp multiplies by a power of ten; the products fit.
func scaleUp(dst, src []decimal128.Num, by int32) {
	if by < int32(len(pow10i)) {
		m := uint64(pow10i[by])
		for i, x := range src {
			dst[i] = mulSmall(x, m)
		}
		return
	}
	m := decimal128.GetScaleMultiplier(int(by))
	for i, x := range src {
		dst[i] = x.Mul(m)
	}
}

// intsToDecimal handles integers that stay within 128 bits.
func (s *state) intsToDecimal(out, v *vector, p, scale int32) bool {
	need, _, _ := digits(v.t)
	if out.c != classDecimal || need+scale > decimal128Digits {
		return false
	}
	switch v.c {
	case classInt:
		for i, x := range v.i[:v.n] {
			out.d[i] = decimal128.FromI64(x)
		}
	case classUint:
		for i, x := range v.u[:v.n] {
			out.d[i] = decimal128.FromU64(x)
		}
	default:
		for i := range v.n {
			out.d[i] = decimal128.New(0, uint64(v.bits[i>>3]>>(i&7)&1))
		}
	}
	if scale > 0 {
		scaleUp(out.d, out.d, scale)
	}
	// an int32 column loads as int64: its values fit although those of its class might not
	return need+scale <= p || s.withinDigits(out, p)
}

// withinDigits reports whether every number has at most p digits.
func (s *state) withinDigits(v *vector, p int32) bool {
	limit := decimal128.GetScaleMultiplier(int(p))
	for i, x := range v.d {
		if x = x.Abs(); !less128(x, limit) && !v.null(i) {
			return false
		}
	}
	return true
}

// small is the unscaled decimal i if it fits 64 bits.
func (v *vector) small(i int) (int64, bool) {
	if v.c != classDecimal {
		return 0, false
	}
	d := v.d[v.at(i)]
	return int64(d.LowBits()), d.HighBits() == int64(d.LowBits())>>63
}

// temporalNumber is a date as the number YYYYMMDD, a datetime as YYYYMMDDhhmmss, a time as hhmmss, without fraction.
func temporalNumber(v *vector, i int, env *Env) int64 {
	us := v.i[v.at(i)]
	switch v.c {
	case classDate:
		y, m, d := civilFromDays(us)
		return int64(y)*10000 + int64(m)*100 + int64(d)
	case classTime:
		neg := us < 0
		if neg {
			us = -us
		}
		sec := us / 1e6
		n := sec/3600*10000 + sec/60%60*100 + sec%60
		if neg {
			return -n
		}
		return n
	case classTimestamp:
		us = localMicros(us, env.location())
	}
	c := civilFromMicros(us)
	return ((int64(c.year)*100+int64(c.month))*100+int64(c.day))*1e6 + int64(c.hour)*10000 + int64(c.min)*100 + int64(c.sec)
}

// temporalMicrosNumber is temporalNumber times a million plus the microseconds.
func temporalMicrosNumber(v *vector, i int, env *Env) *big.Int {
	n := new(big.Int).Mul(big.NewInt(temporalNumber(v, i, env)), big.NewInt(1e6))
	if v.c == classDate {
		return n
	}
	us := v.i[v.at(i)]
	frac := us - floorDiv(us, 1e6)*1e6
	if us < 0 && v.c == classTime {
		return n.Sub(n, big.NewInt(-us%1e6))
	}
	return n.Add(n, big.NewInt(frac))
}

func temporalFloat(v *vector, i int, env *Env) float64 {
	f, _ := strconv.ParseFloat(string(appendBig(nil, temporalMicrosNumber(v, i, env), 6)), 64)
	return f
}

// castTemporal converts between dates and times, and from text and numbers; what is no date becomes NULL.
func (s *state) castTemporal(out, v *vector, to arrow.DataType) error {
	if v.c == out.c && fspOf(to) >= fspOf(v.t) {
		out.i = v.i
		return nil
	}
	out.i = makeSlice[int64](s.arena, v.n)
	clear(out.i)
	round := int64(1)
	switch fspOf(to) {
	case 0:
		round = 1e6
	case 3:
		round = 1e3
	}
	s.each(out, func(i int) bool {
		us, ok := s.temporalOf(v, i, out.c)
		if ok && round > 1 && out.c != classDate {
			us = floorDiv(us+round/2, round) * round
		}
		out.i[i] = us
		return ok
	})
	return nil
}

// temporalOf converts one value to a temporal class.
func (s *state) temporalOf(v *vector, i int, to class) (int64, bool) {
	loc := s.env.location()
	if v.c == classTime || to == classTime {
		return s.timeOf(v, i, to)
	}
	var us int64 // civil
	switch v.c {
	case classDate:
		if to == classDate {
			return v.i[i], true
		}
		us = v.i[i] * microsPerDay
	case classDatetime:
		us = v.i[i]
	case classTimestamp:
		if to == classTimestamp {
			return v.i[i], true
		}
		us = localMicros(v.i[i], loc)
	case classString:
		t, ok := parseDatetime(v.str(i))
		if !ok {
			return 0, false
		}
		us = t.us
		if t.hasOffset {
			if to == classTimestamp {
				return us, true
			}
			us = localMicros(us, loc)
		}
	default:
		t, ok := s.numberDatetime(v, i)
		if !ok {
			return 0, false
		}
		us = t
	}
	switch to {
	case classDate:
		return floorDiv(us, microsPerDay), true
	case classTimestamp:
		return instantMicros(us, loc), true
	}
	return us, true
}

func (s *state) numberDatetime(v *vector, i int) (int64, bool) {
	n, frac := int64(0), int64(0)
	if v.c.integer() {
		n, _ = s.intOf(v, i, castExplicit)
	} else {
		b, ok := s.bigOf(v, i, 6)
		if !ok || !b.IsInt64() {
			if !ok {
				return 0, false
			}
		}
		q, r := new(big.Int).QuoRem(b, big.NewInt(1e6), new(big.Int))
		if !q.IsInt64() {
			return 0, false
		}
		n, frac = q.Int64(), r.Int64()
	}
	t, ok := datetimeOfNumber(n)
	return t.us + frac, ok
}

// timeOf converts to TIME, or from it: a TIME becomes a datetime on the day of the statement.
func (s *state) timeOf(v *vector, i int, to class) (int64, bool) {
	if v.c == classTime && to == classTime {
		return v.i[i], true
	}
	loc := s.env.location()
	if v.c == classTime {
		today := localMicros(s.env.now().UnixMicro(), loc)
		us := floorDiv(today, microsPerDay)*microsPerDay + v.i[i]
		switch to {
		case classDate:
			return floorDiv(us, microsPerDay), true
		case classTimestamp:
			return instantMicros(us, loc), true
		}
		return us, true
	}
	switch v.c {
	case classDate:
		return 0, true
	case classDatetime, classTimestamp:
		us := v.i[i]
		if v.c == classTimestamp {
			us = localMicros(us, loc)
		}
		return us - floorDiv(us, microsPerDay)*microsPerDay, true
	case classString:
		us, _, ok := parseTime(v.str(i))
		return us, ok
	}
	return s.numberTime(v, i)
}

// numberTime reads the number hhmmss.ffffff.
func (s *state) numberTime(v *vector, i int) (int64, bool) {
	b, ok := s.bigOf(v, i, 6)
	if !ok || !b.IsInt64() {
		return 0, false
	}
	n := b.Int64()
	neg := n < 0
	if neg {
		n = -n
	}
	sec := n / 1e6
	if sec%100 > 59 || sec/100%100 > 59 {
		return 0, false
	}
	us := clampTime((sec/10000*3600+sec/100%100*60+sec%100)*1e6 + n%1e6)
	if neg {
		us = -us
	}
	return us, true
}
