package expr

import (
	"math"
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// appendFloat prints like MySQL: the shortest digits that read back, without exponent between 1e-15 and 1e15.
func appendFloat(dst []byte, f float64, bitSize int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 0):
		if f < 0 {
			dst = append(dst, '-')
		}
		return append(dst, "inf"...)
	case f == 0:
		return append(dst, '0')
	}
	if a := math.Abs(f); a < 1e15 && a >= 1e-15 {
		return strconv.AppendFloat(dst, f, 'f', -1, bitSize)
	}
	var buf [32]byte
	b := strconv.AppendFloat(buf[:0], f, 'e', -1, bitSize)
	for i := range b { // 1e+15 prints as 1e15, 1e-07 as 1e-7
		if b[i] != 'e' {
			continue
		}
		dst = append(dst, b[:i+1]...)
		rest := b[i+1:]
		if rest[0] == '-' {
			dst = append(dst, '-')
		}
		rest = rest[1:]
		for len(rest) > 1 && rest[0] == '0' {
			rest = rest[1:]
		}
		return append(dst, rest...)
	}
	return append(dst, b...)
}

// numberPrefix returns the longest prefix of s (after blanks) that is a number, and whether nothing but blanks follows.
func numberPrefix(s []byte) (num []byte, whole bool) {
	i := 0
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	start := i
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	digitsFrom := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	count := i - digitsFrom
	if i < len(s) && s[i] == '.' {
		from := i
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
			count++
		}
		if count == 0 {
			i = from
		}
	}
	if count == 0 {
		return nil, false
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	num = s[start:i]
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return num, i == len(s)
}

func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// parseFloat reads the number that s starts with, 0 if there is none, as MySQL does.
func parseFloat(s []byte) (f float64, whole bool) {
	num, whole := numberPrefix(s)
	if num == nil {
		return 0, false
	}
	if num[0] == '+' {
		num = num[1:]
	}
	f, _ = strconv.ParseFloat(string(num), 64)
	if math.IsInf(f, 0) {
		f = math.Copysign(math.MaxFloat64, f)
	}
	return f, whole
}

// decimalExponentMax bounds 1e<n> in text that becomes a decimal.
const decimalExponentMax = 200

// parseDecimal reads the decimal number that s starts with: value / 10^scale.
func parseDecimal(s []byte) (n *big.Int, scale int32, whole bool) {
	num, whole := numberPrefix(s)
	if num == nil {
		return new(big.Int), 0, false
	}
	exp := int64(0)
	for i, c := range num {
		if c == 'e' || c == 'E' {
			exp, _ = strconv.ParseInt(string(num[i+1:]), 10, 64)
			num = num[:i]
			break
		}
	}
	digits := make([]byte, 0, len(num))
	frac := int64(0)
	seen := false
	for _, c := range num {
		switch {
		case c == '.':
			seen = true
		case c == '+':
		default:
			digits = append(digits, c)
			if seen {
				frac++
			}
		}
	}
	if len(digits) > 1000 || exp > decimalExponentMax || exp < -decimalExponentMax {
		return new(big.Int), 0, false
	}
	n, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return new(big.Int), 0, false
	}
	frac -= exp
	if frac < 0 {
		n.Mul(n, bigPow10(int32(-frac)))
		frac = 0
	}
	return n, int32(frac), whole
}

// roundBig brings n from one scale to another, half away from zero.
func roundBig(n *big.Int, from, to int32) *big.Int {
	if to >= from {
		return new(big.Int).Mul(n, bigPow10(to-from))
	}
	by := bigPow10(from - to)
	q, r := new(big.Int).QuoRem(n, by, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(by) >= 0 {
		if n.Sign() < 0 {
			return q.Sub(q, big.NewInt(1))
		}
		return q.Add(q, big.NewInt(1))
	}
	return q
}

// appendDecimal prints n / 10^scale with all its digits.
func appendDecimal(dst []byte, n decimal128.Num, scale int32) []byte {
	hi, lo := n.HighBits(), n.LowBits()
	if hi == int64(lo)>>63 && int64(lo) != math.MinInt64 {
		x := int64(lo)
		if x < 0 {
			dst = append(dst, '-')
			x = -x
		}
		var buf [24]byte
		return placePoint(dst, strconv.AppendInt(buf[:0], x, 10), scale)
	}
	return appendBig(dst, n.BigInt(), scale)
}

func appendWide(dst []byte, n decimal256.Num, scale int32) []byte {
	if fitsNarrow(n) {
		return appendDecimal(dst, narrowOf(n), scale)
	}
	return appendBig(dst, n.BigInt(), scale)
}

func appendBig(dst []byte, n *big.Int, scale int32) []byte {
	if n.Sign() < 0 {
		dst = append(dst, '-')
		n = new(big.Int).Neg(n)
	}
	return placePoint(dst, n.Append(nil, 10), scale)
}

// placePoint writes the digits of a number with its decimal point.
func placePoint(dst, digits []byte, scale int32) []byte {
	if scale <= 0 {
		dst = append(dst, digits...)
		for ; scale < 0; scale++ {
			dst = append(dst, '0')
		}
		return dst
	}
	whole := len(digits) - int(scale)
	if whole <= 0 {
		dst = append(dst, '0', '.')
		for ; whole < 0; whole++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:whole]...)
	dst = append(dst, '.')
	return append(dst, digits[whole:]...)
}

// decimalToFloat is exact to the last bit for values of up to 53 bits.
func decimalToFloat(n decimal128.Num, scale int32) float64 {
	hi, lo := n.HighBits(), n.LowBits()
	if hi == int64(lo)>>63 && int64(lo) > -(1<<53) && int64(lo) < 1<<53 && scale >= 0 && scale <= 22 {
		return float64(int64(lo)) / pow10f[scale]
	}
	f, _ := strconv.ParseFloat(string(appendDecimal(nil, n, scale)), 64)
	return f
}

func wideToFloat(n decimal256.Num, scale int32) float64 {
	f, _ := strconv.ParseFloat(string(appendWide(nil, n, scale)), 64)
	return f
}

// pow10f are the powers of ten that float64 holds exactly.
var pow10f = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22} //nolint:gochecknoglobals // constants

var pow10i = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18} //nolint:gochecknoglobals // constants
