package expr

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// resolveHex prints numbers in base 16 and text as the hex digits of its bytes.
func resolveHex(r *request) (impl, error) {
	if classOf(r.types[0]).numeric() {
		return resolveBase(16)(r)
	}
	return fixed(typeString(), func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			for _, c := range x.args[0].str(i) {
				dst = append(dst, "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
			}
			return dst, true, nil
		})
	}, typeString())(r)
}

func resolveBase(base int) func(*request) (impl, error) {
	return asBits(fixed(typeString(), func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			v := &x.args[0]
			return append(dst, bytes.ToUpper(strconv.AppendUint(nil, v.u[v.at(i)], base))...), true, nil
		})
	}, typeUint()))
}

func unhex(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s := x.args[0].str(i)
		if len(s)%2 == 1 {
			s = append([]byte{'0'}, s...)
		}
		n := len(dst)
		dst = append(dst, make([]byte, len(s)/2)...)
		if _, err := hex.Decode(dst[n:], s); err != nil {
			return dst[:n], false, nil //nolint:nilerr // text that is no hex gives NULL
		}
		return dst, true, nil
	})
}

// conv is CONV(n, from, to): bases 2 to 36, negative to print signed.
func conv(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		from, to := x.intArg(1, i, 10), x.intArg(2, i, 10)
		abs := func(n int64) int64 { return max(n, -n) }
		if abs(from) < 2 || abs(from) > 36 || abs(to) < 2 || abs(to) > 36 {
			return dst, false, nil
		}
		s := bytes.TrimSpace(x.args[0].str(i))
		neg := len(s) > 0 && s[0] == '-'
		if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
			s = s[1:]
		}
		n := new(big.Int)
		base := big.NewInt(abs(from))
		for _, c := range s {
			d := digitValue(c)
			if d < 0 || int64(d) >= abs(from) || n.BitLen() > 80 {
				break
			}
			n.Add(n.Mul(n, base), big.NewInt(int64(d)))
		}
		u := uint64(math.MaxUint64)
		if n.IsUint64() {
			u = n.Uint64()
		}
		if neg {
			u = -u
		}
		if to < 0 && int64(u) < 0 {
			return append(append(dst, '-'), bytes.ToUpper(strconv.AppendUint(nil, -u, int(-to)))...), true, nil
		}
		return append(dst, bytes.ToUpper(strconv.AppendUint(nil, u, int(abs(to))))...), true, nil
	})
}

func digitValue(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func digest(f func([]byte) []byte) func(*request) (impl, error) {
	return fixed(typeString(), func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			return hex.AppendEncode(dst, f(x.args[0].str(i))), true, nil
		})
	}, typeString())
}

func sha2(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s := x.args[0].str(i)
		switch x.intArg(1, i, 256) {
		case 224:
			h := sha256.Sum224(s)
			return hex.AppendEncode(dst, h[:]), true, nil
		case 0, 256:
			h := sha256.Sum256(s)
			return hex.AppendEncode(dst, h[:]), true, nil
		case 384:
			h := sha512.Sum384(s)
			return hex.AppendEncode(dst, h[:]), true, nil
		case 512:
			h := sha512.Sum512(s)
			return hex.AppendEncode(dst, h[:]), true, nil
		}
		return dst, false, nil
	})
}

// ord is the code of the first character: its bytes as one number.
func ord(s []byte) int64 {
	if len(s) == 0 {
		return 0
	}
	_, n := utf8.DecodeRune(s)
	code := int64(0)
	for _, c := range s[:n] {
		code = code<<8 | int64(c)
	}
	return code
}

// resolveChar is CHAR(n, ...): the bytes of the numbers, NULLs left out.
func resolveChar(r *request) (impl, error) {
	params := []arrow.DataType{typeInt()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: typeBinary(), params: params, nulls: true, run: func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			for k := range x.args {
				if x.args[k].nullAt(i) {
					continue
				}
				n := uint32(x.args[k].i[x.args[k].at(i)])
				for shift := 24; shift >= 0; shift -= 8 {
					if shift == 0 || n>>shift != 0 {
						dst = append(dst, byte(n>>shift))
					}
				}
			}
			return dst, true, nil
		})
	}}, nil
}

func substringIndex(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s, sep, n := x.args[0].str(i), x.args[1].str(i), x.intArg(2, i, 0)
		if len(sep) == 0 || n == 0 {
			return dst, true, nil
		}
		at := 0
		for ; n > 0; n-- {
			j := bytes.Index(s[at:], sep)
			if j < 0 {
				return append(dst, s...), true, nil
			}
			if n == 1 {
				return append(dst, s[:at+j]...), true, nil
			}
			at += j + len(sep)
		}
		end := len(s)
		for ; n < 0; n++ {
			j := bytes.LastIndex(s[:end], sep)
			if j < 0 {
				return append(dst, s...), true, nil
			}
			if n == -1 {
				return append(dst, s[j+len(sep):]...), true, nil
			}
			end = j
		}
		return dst, true, nil
	})
}

// base64LineChars is where TO_BASE64 breaks lines.
const base64LineChars = 76

func toBase64(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		b := base64.StdEncoding.AppendEncode(nil, x.args[0].str(i))
		for len(b) > base64LineChars {
			dst = append(append(dst, b[:base64LineChars]...), '\n')
			b = b[base64LineChars:]
		}
		return append(dst, b...), true, nil
	})
}

func fromBase64(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s := bytes.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, x.args[0].str(i))
		out, err := base64.StdEncoding.AppendDecode(dst, s)
		if err != nil {
			return dst, false, nil //nolint:nilerr // text that is no base64 gives NULL
		}
		return out, true, nil
	})
}

// resolveFormat is FORMAT(x, d): rounded to d digits, thousands parted by commas.
func resolveFormat(r *request) (impl, error) {
	num, ok := numericType(r.types[0])
	if !ok {
		return impl{}, r.typesError(nil)
	}
	if classOf(num).integer() {
		p, _, _ := digits(num)
		num = rawDecimal(p, 0)
	}
	params := []arrow.DataType{num, typeInt(), typeString()}
	return impl{t: typeString(), params: params, run: func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			d := int32(min(max(x.intArg(1, i, 0), 0), decimalScaleMax))
			n, ok := x.bigOf(&x.args[0], x.args[0].at(i), d)
			if !ok {
				return dst, false, nil
			}
			return groupDigits(dst, appendBig(nil, n, d)), true, nil
		})
	}}, nil
}

func groupDigits(dst, num []byte) []byte {
	if len(num) > 0 && num[0] == '-' {
		dst = append(dst, '-')
		num = num[1:]
	}
	whole := num
	if j := bytes.IndexByte(num, '.'); j >= 0 {
		whole = num[:j]
	}
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, c)
	}
	return append(dst, num[len(whole):]...)
}

func resolveQuote(r *request) (impl, error) {
	params := []arrow.DataType{typeString()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: typeString(), params: params, nulls: true, run: func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			if x.args[0].nullAt(i) {
				return append(dst, "NULL"...), true, nil
			}
			dst = append(dst, '\'')
			for _, c := range x.args[0].str(i) {
				switch c {
				case '\'', '\\':
					dst = append(dst, '\\', c)
				case 0:
					dst = append(dst, '\\', '0')
				case 26:
					dst = append(dst, '\\', 'Z')
				default:
					dst = append(dst, c)
				}
			}
			return append(dst, '\''), true, nil
		})
	}}, nil
}

func findInSet(x *call) (vector, error) {
	return x.ints(func(i int) (int64, bool, error) {
		s, set := x.args[0].str(i), x.args[1].str(i)
		if len(set) == 0 || bytes.IndexByte(s, ',') >= 0 {
			return 0, true, nil
		}
		for k := int64(1); ; k++ {
			item, rest, more := bytes.Cut(set, []byte{','})
			if bytes.Equal(item, s) {
				return k, true, nil
			}
			if !more {
				return 0, true, nil
			}
			set = rest
		}
	})
}

// soundex is MySQL's: the first letter, then the codes of the consonants, at least four characters.
func soundex(dst, s []byte) []byte {
	const codes = "01230120022455012623010202" // a..z
	from, last := len(dst), byte('0')
	for _, c := range s {
		l := c | 0x20
		if l < 'a' || l > 'z' {
			continue
		}
		code := codes[l-'a']
		if len(dst) == from {
			dst = append(dst, c&^0x20)
		} else if code != '0' && code != last {
			dst = append(dst, code)
		}
		if code != '0' || len(dst) == from+1 {
			last = code
		}
	}
	for len(dst) > from && len(dst) < from+4 {
		dst = append(dst, '0')
	}
	return dst
}
