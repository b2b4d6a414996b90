package dml

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/lakesql/lakesql/internal/errs"
)

// The conversions of MySQL's assignment. Each returns the nearest value that the column can hold and, where it is not the value given, a problem: an
// error in strict mode, a warning otherwise.

// problem says what is wrong with a value; the column and row are added by the caller. nil = nothing.
type problem struct {
	kind   error
	detail string // "Incorrect integer value: 'x'" for kinds that show the value; "" otherwise
}

func outOfRange() *problem { return &problem{kind: errs.ErrOutOfRange} }

func incorrect(what string, c cell) *problem {
	return &problem{kind: errs.ErrBadValue, detail: "Incorrect " + what + " value: '" + short(c.text()) + "'"}
}

// short keeps messages readable: values may be megabytes.
func short(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// numericPrefix is the number that a text begins with, "" where there is none; whole says that nothing follows it.
func numericPrefix(s string) (prefix string, whole bool) {
	s = strings.TrimSpace(s)
	i, digits := 0, 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		digits++
	}
	if i < len(s) && s[i] == '.' {
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			digits++
		}
	}
	if digits == 0 {
		return "", false
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if j < len(s) && s[j] >= '0' && s[j] <= '9' {
			for i = j; i < len(s) && s[i] >= '0' && s[i] <= '9'; {
				i++
			}
		}
	}
	return s[:i], i == len(s)
}

// whole rounds a decimal or floating text half away from zero.
func whole(s string) (*big.Int, bool) {
	r, ok := new(big.Rat).SetString(s)
	if !ok || len(s) > 400 {
		return nil, false
	}
	return roundRat(r), true
}

func roundRat(r *big.Rat) *big.Int {
	num, den := new(big.Int).Abs(r.Num()), r.Denom()
	num.Lsh(num, 1).Add(num, den)
	out := num.Quo(num, new(big.Int).Lsh(den, 1))
	if r.Sign() < 0 {
		out.Neg(out)
	}
	return out
}

// toInt converts to a signed integer in [lo, hi].
func toInt(c cell, lo, hi int64) (int64, *problem) {
	clamp := func(v int64) (int64, *problem) {
		if v < lo {
			return lo, outOfRange()
		}
		if v > hi {
			return hi, outOfRange()
		}
		return v, nil
	}
	switch c.kind {
	case kindBool, kindInt:
		return clamp(c.i)
	case kindUint:
		if c.u > math.MaxInt64 {
			return hi, outOfRange()
		}
		return clamp(int64(c.u))
	case kindFloat:
		return bigToInt(floatWhole(c.f), lo, hi)
	case kindDecimal:
		if b, ok := whole(c.s); ok {
			return bigToInt(b, lo, hi)
		}
	case kindText, kindBytes:
		if v, err := strconv.ParseInt(c.s, 10, 64); err == nil {
			return clamp(v)
		}
		prefix, all := numericPrefix(c.s)
		b, ok := whole(prefix)
		if !ok {
			return 0, incorrect("integer", c)
		}
		v, p := bigToInt(b, lo, hi)
		if p == nil && !all {
			p = &problem{kind: errs.ErrTruncated}
		}
		return v, p
	case kindDate, kindDatetime, kindTime, kindInstant:
		return clamp(timeNumber(c))
	}
	return 0, incorrect("integer", c)
}

func floatWhole(f float64) *big.Int {
	if math.IsNaN(f) {
		return nil
	}
	if math.IsInf(f, 0) || math.Abs(f) > 1e30 {
		b := new(big.Int).Lsh(big.NewInt(1), 100)
		if f < 0 {
			b.Neg(b)
		}
		return b
	}
	b, _ := big.NewFloat(math.RoundToEven(f)).Int(nil) // MySQL rounds doubles as the processor does
	return b
}

func bigToInt(b *big.Int, lo, hi int64) (int64, *problem) {
	switch {
	case b == nil:
		return 0, outOfRange()
	case b.Cmp(big.NewInt(lo)) < 0:
		return lo, outOfRange()
	case b.Cmp(big.NewInt(hi)) > 0:
		return hi, outOfRange()
	}
	return b.Int64(), nil
}

// timeNumber is a time as a number: 20261130, 20261130235959, 235959.
func timeNumber(c cell) int64 {
	t := time.UnixMicro(c.i).UTC()
	switch c.kind {
	case kindDate:
		t = time.Unix(c.i*86_400, 0).UTC()
		return int64(t.Year())*10_000 + int64(t.Month())*100 + int64(t.Day())
	case kindTime:
		us := c.i
		sign := int64(1)
		if us < 0 {
			us, sign = -us, -1
		}
		return sign * (us/3_600_000_000*10_000 + us/60_000_000%60*100 + us/1_000_000%60)
	}
	return (int64(t.Year())*10_000+int64(t.Month())*100+int64(t.Day()))*1_000_000 + int64(t.Hour())*10_000 + int64(t.Minute())*100 + int64(t.Second())
}

// toUint converts to an unsigned integer of at most hi.
func toUint(c cell, hi uint64) (uint64, *problem) {
	switch c.kind {
	case kindBool, kindInt:
		if c.i < 0 {
			return 0, outOfRange()
		}
		c.u = uint64(c.i)
	case kindUint:
	case kindFloat:
		return bigToUint(floatWhole(c.f), hi)
	case kindDecimal:
		b, ok := whole(c.s)
		if !ok {
			return 0, incorrect("integer", c)
		}
		return bigToUint(b, hi)
	case kindText, kindBytes:
		prefix, all := numericPrefix(c.s)
		b, ok := whole(prefix)
		if !ok {
			return 0, incorrect("integer", c)
		}
		v, p := bigToUint(b, hi)
		if p == nil && !all {
			p = &problem{kind: errs.ErrTruncated}
		}
		return v, p
	case kindDate, kindDatetime, kindTime, kindInstant:
		n := timeNumber(c)
		if n < 0 {
			return 0, outOfRange()
		}
		c.u = uint64(n)
	default:
		return 0, incorrect("integer", c)
	}
	if c.u > hi {
		return hi, outOfRange()
	}
	return c.u, nil
}

func bigToUint(b *big.Int, hi uint64) (uint64, *problem) {
	switch {
	case b == nil || b.Sign() < 0:
		return 0, outOfRange()
	case b.Cmp(new(big.Int).SetUint64(hi)) > 0:
		return hi, outOfRange()
	}
	return b.Uint64(), nil
}

// toFloat converts to a float. NaN and infinities pass only where a float holds them already.
func toFloat(c cell, most float64) (float64, *problem) {
	limit := func(f float64) (float64, *problem) {
		switch {
		case f > most && !math.IsInf(f, 1):
			return most, outOfRange()
		case f < -most && !math.IsInf(f, -1):
			return -most, outOfRange()
		}
		return f, nil
	}
	switch c.kind {
	case kindBool, kindInt:
		return float64(c.i), nil
	case kindUint:
		return float64(c.u), nil
	case kindFloat:
		return limit(c.f)
	case kindDecimal, kindText, kindBytes:
		prefix, all := numericPrefix(c.s)
		if prefix == "" {
			return 0, incorrect("double", c)
		}
		f, _ := strconv.ParseFloat(prefix, 64)
		if math.IsInf(f, 0) {
			return math.Copysign(most, f), outOfRange()
		}
		v, p := limit(f)
		if p == nil && !all {
			p = &problem{kind: errs.ErrTruncated}
		}
		return v, p
	case kindDate, kindDatetime, kindTime, kindInstant:
		return float64(timeNumber(c)), nil
	}
	return 0, incorrect("double", c)
}

// toDecimal converts to an unscaled integer of at most precision digits. Digits behind the scale are rounded away; MySQL notes that and goes on.
func toDecimal(c cell, precision, scale int32) (*big.Int, *problem) {
	var text string
	cut := false
	switch c.kind {
	case kindBool, kindInt, kindUint, kindDecimal:
		text = c.text()
	case kindFloat:
		if math.IsNaN(c.f) || math.IsInf(c.f, 0) {
			return new(big.Int), outOfRange()
		}
		text = c.text()
	case kindText, kindBytes:
		var all bool
		text, all = numericPrefix(c.s)
		cut = !all
	case kindDate, kindDatetime, kindTime, kindInstant:
		text = strconv.FormatInt(timeNumber(c), 10)
	default:
		return new(big.Int), incorrect("decimal", c)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || len(text) > 400 {
		return new(big.Int), incorrect("decimal", c)
	}
	ten := big.NewInt(10)
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(ten, big.NewInt(int64(scale)), nil)))
	v := roundRat(r)
	most := new(big.Int).Sub(new(big.Int).Exp(ten, big.NewInt(int64(precision)), nil), big.NewInt(1))
	if v.CmpAbs(most) > 0 {
		if v.Sign() < 0 {
			most.Neg(most)
		}
		return most, outOfRange()
	}
	if cut {
		return v, &problem{kind: errs.ErrTruncated}
	}
	return v, nil
}

// toBool is TINYINT(1) over Arrow's boolean: 0 and 1.
func toBool(c cell) (bool, *problem) {
	v, p := toInt(c, 0, 1)
	if c.kind == kindText && p != nil {
		switch strings.ToLower(c.s) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return v != 0, p
}
