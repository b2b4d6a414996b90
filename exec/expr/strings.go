package expr

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // MySQL's MD5()
	"crypto/sha1" //nolint:gosec // MySQL's SHA1()
	"encoding/binary"
	"math"
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
