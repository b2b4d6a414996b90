package expr

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // MySQL's MD5()
	"crypto/sha1" //nolint:gosec // MySQL's SHA1()
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

func stringFunctions() []function { //nolint:funlen // a flat table
	str, num := typeString(), typeInt()
	return []function{
		{name: "concat", min: 1, max: -1, resolve: stringOf(concat, str)},
		{name: "concat_ws", min: 2, max: -1, resolve: resolveConcatWS},
		{name: "length", min: 1, max: 1, resolve: resolveLength(1)},
		{name: "octet_length", as: "length", min: 1, max: 1, resolve: resolveLength(1)},
		{name: "bit_length", min: 1, max: 1, resolve: resolveLength(8)},
		{name: "char_length", min: 1, max: 1, resolve: resolveCharLength},
		{name: "character_length", as: "char_length", min: 1, max: 1, resolve: resolveCharLength},
		{name: "lower", min: 1, max: 1, resolve: stringOf(mapCase(unicode.ToLower), str)},
		{name: "lcase", as: "lower", min: 1, max: 1, resolve: stringOf(mapCase(unicode.ToLower), str)},
		{name: "upper", min: 1, max: 1, resolve: stringOf(mapCase(unicode.ToUpper), str)},
		{name: "ucase", as: "upper", min: 1, max: 1, resolve: stringOf(mapCase(unicode.ToUpper), str)},
		{name: "substr", min: 2, max: 3, resolve: stringOf(substr, str, num, num)},
		{name: "substring", as: "substr", min: 2, max: 3, resolve: stringOf(substr, str, num, num)},
		{name: "mid", as: "substr", min: 3, max: 3, resolve: stringOf(substr, str, num, num)},
		{name: "left", min: 2, max: 2, resolve: stringOf(left, str, num)},
		{name: "right", min: 2, max: 2, resolve: stringOf(right, str, num)},
		{name: "trim", min: 1, max: 2, resolve: stringOf(trim(true, true), str)},
		{name: "ltrim", min: 1, max: 2, resolve: stringOf(trim(true, false), str)},
		{name: "rtrim", min: 1, max: 2, resolve: stringOf(trim(false, true), str)},
		{name: "replace", min: 3, max: 3, resolve: stringOf(replace, str)},
		{name: "locate", min: 2, max: 3, resolve: fixed(num, locate(0, 1), str, str, num)},
		{name: "position", as: "locate", min: 2, max: 2, resolve: fixed(num, locate(0, 1), str, str, num)},
		{name: "instr", min: 2, max: 2, resolve: fixed(num, locate(1, 0), str, str)},
		{name: "lpad", min: 3, max: 3, resolve: stringOf(pad(true), str, num, str)},
		{name: "rpad", min: 3, max: 3, resolve: stringOf(pad(false), str, num, str)},
		{name: "reverse", min: 1, max: 1, resolve: stringOf(reverse, str)},
		{name: "repeat", min: 2, max: 2, resolve: stringOf(repeat, str, num)},
		{name: "space", min: 1, max: 1, resolve: fixed(str, space, num)},
		{name: "insert", min: 4, max: 4, resolve: stringOf(insert, str, num, num, str)},
		{name: "hex", min: 1, max: 1, resolve: resolveHex},
		{name: "unhex", min: 1, max: 1, resolve: fixed(typeBinary(), unhex, str)},
		{name: "bin", min: 1, max: 1, resolve: resolveBase(2)},
		{name: "oct", min: 1, max: 1, resolve: resolveBase(8)},
		{name: "conv", min: 3, max: 3, resolve: fixed(str, conv, str, num, num)},
		{name: "md5", min: 1, max: 1, resolve: digest(func(s []byte) []byte { h := md5.Sum(s); return h[:] })},              //nolint:gosec // as above
		{name: "sha1", min: 1, max: 1, resolve: digest(func(s []byte) []byte { h := sha1.Sum(s); return h[:] })},            //nolint:gosec // as above
		{name: "sha", as: "sha1", min: 1, max: 1, resolve: digest(func(s []byte) []byte { h := sha1.Sum(s); return h[:] })}, //nolint:gosec // as above
		{name: "sha2", min: 2, max: 2, resolve: fixed(str, sha2, str, num)},
		{name: "ascii", min: 1, max: 1, resolve: intOfString(func(s []byte) int64 {
			if len(s) == 0 {
				return 0
			}
			return int64(s[0])
		})},
		{name: "ord", min: 1, max: 1, resolve: intOfString(ord)},
		{name: "char", min: 1, max: -1, resolve: resolveChar},
		{name: "substring_index", min: 3, max: 3, resolve: stringOf(substringIndex, str, str, num)},
		{name: "to_base64", min: 1, max: 1, resolve: fixed(str, toBase64, str)},
		{name: "from_base64", min: 1, max: 1, resolve: fixed(typeBinary(), fromBase64, str)},
		{name: "format", min: 2, max: 3, resolve: resolveFormat},
		{name: "quote", min: 1, max: 1, resolve: resolveQuote},
		{name: "find_in_set", min: 2, max: 2, resolve: fixed(num, findInSet, str)},
		{name: "soundex", min: 1, max: 1, resolve: string1(soundex)},
		{name: "starts_with", min: 2, max: 2, resolve: fixed(typeBool(), edge(bytes.HasPrefix), str)},
		{name: "ends_with", min: 2, max: 2, resolve: fixed(typeBool(), edge(bytes.HasSuffix), str)},
		{name: "binary", min: 1, max: 1, resolve: castFunction(typeBinary())},
		{name: "contains", min: 2, max: 2, resolve: fixed(typeBool(), edge(bytes.Contains), str)},
	}
}

func edge(f func(s, part []byte) bool) kernel {
	return func(x *call) (vector, error) {
		return x.bools(func(i int) (bool, bool) { return f(x.args[0].str(i), x.args[1].str(i)), true })
	}
}

func concat(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		for k := range x.args {
			dst = append(dst, x.args[k].str(i)...)
		}
		return dst, true, nil
	})
}

// resolveConcatWS joins what is not NULL; a NULL separator gives NULL.
func resolveConcatWS(r *request) (impl, error) {
	params := []arrow.DataType{typeString()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: r.stringType(params), params: params, nulls: true, run: func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			if x.args[0].nullAt(i) {
				return dst, false, nil
			}
			sep, first := x.args[0].str(i), true
			for k := 1; k < len(x.args); k++ {
				if x.args[k].nullAt(i) {
					continue
				}
				if !first {
					dst = append(dst, sep...)
				}
				first = false
				dst = append(dst, x.args[k].str(i)...)
			}
			return dst, true, nil
		})
	}}, nil
}

func resolveLength(times int64) func(r *request) (impl, error) {
	return fixed(typeInt(), func(x *call) (vector, error) {
		v := &x.args[0]
		return x.ints(func(i int) (int64, bool, error) { return int64(len(v.str(i))) * times, true, nil })
	}, typeString())
}

func resolveCharLength(r *request) (impl, error) {
	binary := classOf(r.types[0]) == classString && !isText(r.types[0])
	return fixed(typeInt(), func(x *call) (vector, error) {
		v := &x.args[0]
		return x.ints(func(i int) (int64, bool, error) {
			if binary {
				return int64(len(v.str(i))), true, nil
			}
			return int64(utf8.RuneCount(v.str(i))), true, nil
		})
	}, typeString())(r)
}

func isASCII(s []byte) bool {
	for len(s) >= 8 {
		if binary.LittleEndian.Uint64(s)&0x8080808080808080 != 0 {
			return false
		}
		s = s[8:]
	}
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mapCase changes case character by character; binary text stays as it is.
func mapCase(f func(rune) rune) kernel {
	return func(x *call) (vector, error) {
		isBinary := classOf(x.t) == classString && !isText(x.t)
		bit := byte(f('A')) & 0x20 // what lower case letters have set
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			s := x.args[0].str(i)
			if isBinary {
				return append(dst, s...), true, nil
			}
			if isASCII(s) {
				n := len(dst)
				dst = append(dst, s...)
				for j, c := range dst[n:] {
					if c|0x20 >= 'a' && c|0x20 <= 'z' {
						dst[n+j] = c&^0x20 | bit
					}
				}
				return dst, true, nil
			}
			for len(s) > 0 {
				if s[0] < utf8.RuneSelf {
					dst = append(dst, byte(f(rune(s[0]))))
					s = s[1:]
					continue
				}
				r, n := utf8.DecodeRune(s)
				if r == utf8.RuneError && n == 1 {
					dst = append(dst, s[0])
				} else {
					dst = utf8.AppendRune(dst, f(r))
				}
				s = s[n:]
			}
			return dst, true, nil
		})
	}
}

// characters tells how functions count: runes of text, bytes of binary.
type characters struct{ binary bool }

func (x *call) characters() characters {
	return characters{binary: classOf(x.t) == classString && !isText(x.t)}
}

func (c characters) count(s []byte) int64 {
	if c.binary || isASCII(s) {
		return int64(len(s))
	}
	return int64(utf8.RuneCount(s))
}

// skip is the byte position after n characters.
func (c characters) skip(s []byte, n int64) int {
	if n <= 0 {
		return 0
	}
	if n >= int64(len(s)) {
		return len(s)
	}
	if c.binary {
		return int(n)
	}
	at := 0
	for ; n > 0 && at < len(s); n-- {
		if s[at] < utf8.RuneSelf {
			at++
			continue
		}
		_, size := utf8.DecodeRune(s[at:])
		at += size
	}
	return at
}

func substr(x *call) (vector, error) {
	ch := x.characters()
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s := x.args[0].str(i)
		from, n := x.intArg(1, i, 1), x.intArg(2, i, math.MaxInt64)
		if from == 0 || n <= 0 {
			return dst, true, nil
		}
		if from < 0 {
			if from += ch.count(s); from < 0 {
				return dst, true, nil
			}
		} else {
			from--
		}
		s = s[ch.skip(s, from):]
		return append(dst, s[:ch.skip(s, n)]...), true, nil
	})
}

func left(x *call) (vector, error) {
	ch := x.characters()
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s := x.args[0].str(i)
		return append(dst, s[:ch.skip(s, x.intArg(1, i, 0))]...), true, nil
	})
}

func right(x *call) (vector, error) {
	ch := x.characters()
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s := x.args[0].str(i)
		n := x.intArg(1, i, 0)
		if n <= 0 {
			return dst, true, nil
		}
		return append(dst, s[ch.skip(s, ch.count(s)-n):]...), true, nil
	})
}

// trim takes copies of a text (a blank unless given) off the ends.
func trim(front, back bool) kernel {
	return func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			s, cut := x.args[0].str(i), []byte{' '}
			if len(x.args) > 1 {
				cut = x.args[1].str(i)
			}
			for front && len(cut) > 0 && bytes.HasPrefix(s, cut) {
				s = s[len(cut):]
			}
			for back && len(cut) > 0 && bytes.HasSuffix(s, cut) {
				s = s[:len(s)-len(cut)]
			}
			return append(dst, s...), true, nil
		})
	}
}

func replace(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s, from, to := x.args[0].str(i), x.args[1].str(i), x.args[2].str(i)
		if len(from) == 0 {
			return append(dst, s...), true, nil
		}
		start := len(dst)
		for {
			j := bytes.Index(s, from)
			if j < 0 || len(dst)-start > stringBytesMax {
				return append(dst, s...), true, nil
			}
			dst = append(append(dst, s[:j]...), to...)
			s = s[j+len(from):]
		}
	})
}

// locate finds argument part in argument whole, counted in characters from 1.
func locate(part, whole int) kernel {
	return func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) {
			s, p := x.args[whole].str(i), x.args[part].str(i)
			from, ok := 0, true
			if len(x.args) > 2 {
				if from, ok = fromRune(s, x.intArg(2, i, 1)); !ok {
					return 0, true, nil
				}
			}
			j := bytes.Index(s[from:], p)
			if j < 0 {
				return 0, true, nil
			}
			return int64(utf8.RuneCount(s[:from+j])) + 1, true, nil
		})
	}
}

func pad(front bool) kernel {
	return func(x *call) (vector, error) {
		ch := x.characters()
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
			s, n, fill := x.args[0].str(i), x.intArg(1, i, 0), x.args[2].str(i)
			have := ch.count(s)
			switch {
			case n < 0 || n > stringBytesMax:
				return dst, false, nil
			case n <= have:
				return append(dst, s[:ch.skip(s, n)]...), true, nil
			case len(fill) == 0:
				return dst, true, nil
			}
			if !front {
				dst = append(dst, s...)
			}
			width := ch.count(fill)
			for need := n - have; need > 0; need -= width {
				dst = append(dst, fill[:ch.skip(fill, need)]...)
			}
			if front {
				dst = append(dst, s...)
			}
			return dst, true, nil
		})
	}
}

func reverse(x *call) (vector, error) {
	ch := x.characters()
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s := x.args[0].str(i)
		for len(s) > 0 {
			n := 1
			if !ch.binary {
				_, n = utf8.DecodeLastRune(s)
			}
			dst = append(dst, s[len(s)-n:]...)
			s = s[:len(s)-n]
		}
		return dst, true, nil
	})
}

func repeat(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s, n := x.args[0].str(i), x.intArg(1, i, 0)
		if n > 0 && len(s) > 0 && n > stringBytesMax/int64(len(s)) {
			return dst, false, nil
		}
		if len(s) == 0 {
			return dst, true, nil
		}
		for ; n > 0; n-- {
			dst = append(dst, s...)
		}
		return dst, true, nil
	})
}

func space(x *call) (vector, error) {
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		n := x.intArg(0, i, 0)
		if n > stringBytesMax {
			return dst, false, nil
		}
		return append(dst, bytes.Repeat([]byte{' '}, int(max(n, 0)))...), true, nil
	})
}

// insert is INSERT(s, pos, len, new).
func insert(x *call) (vector, error) {
	ch := x.characters()
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s, pos, n := x.args[0].str(i), x.intArg(1, i, 0), x.intArg(2, i, 0)
		have := ch.count(s)
		if pos < 1 || pos > have {
			return append(dst, s...), true, nil
		}
		if n < 0 || n > have-pos+1 {
			n = have - pos + 1
		}
		from := ch.skip(s, pos-1)
		to := from + ch.skip(s[from:], n)
		dst = append(append(dst, s[:from]...), x.args[3].str(i)...)
		return append(dst, s[to:]...), true, nil
	})
}

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
