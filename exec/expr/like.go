package expr

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

func patternFunctions() []function {
	regex := func(run kernel, t arrow.DataType, params ...arrow.DataType) func(*request) (impl, error) {
		return fixed(t, run, params...)
	}
	str, num := typeString(), typeInt()
	return []function{
		{name: "like", min: 2, max: 3, resolve: fixed(typeBool(), like, str)},
		{name: "not_like", min: 2, max: 3, resolve: negation("like")},
		{name: "regexp", min: 2, max: 3, resolve: regex(regexpLike, typeBool(), str)},
		{name: "rlike", as: "regexp", min: 2, max: 3, resolve: regex(regexpLike, typeBool(), str)},
		{name: "regexp_like", as: "regexp", min: 2, max: 3, resolve: regex(regexpLike, typeBool(), str)},
		{name: "not_regexp", min: 2, max: 3, resolve: negation("regexp")},
		{name: "regexp_replace", min: 3, max: 6, resolve: regex(regexpReplace, str, str, str, str, num, num, str)},
		{name: "regexp_substr", min: 2, max: 5, resolve: regex(regexpSubstr, str, str, str, num, num, str)},
		{name: "regexp_instr", min: 2, max: 6, resolve: regex(regexpInstr, num, str, str, num, num, num, str)},
	}
}

// negation resolves NOT f(...).
func negation(name string) func(*request) (impl, error) {
	return func(r *request) (impl, error) {
		e, err := NewCall(name, r.args...)
		if err == nil {
			e, err = NewCall("not", e)
		}
		return impl{t: typeBool(), rewrite: e}, err
	}
}

// likePattern is a compiled LIKE pattern: literal pieces between wildcards.
type likePattern struct {
	kind   likeKind
	lit    []byte    // exact, prefix, suffix, contains
	tokens []likeTok // general
}

type likeKind uint8

const (
	likeGeneral likeKind = iota
	likeExact
	likePrefix
	likeSuffix
	likeContains
	likeAll
)

// likeTok is a literal, one character (_), or any run (%).
type likeTok struct {
	lit []byte
	one int  // characters that must stand before lit
	any bool // any run of characters before lit, besides those of one
}

// newLike splits a pattern: a list of literals, each with the wildcards before it. The last literal may be empty.
func newLike(pattern []byte, escape rune) *likePattern {
	var toks []likeTok
	cur := likeTok{}
	flush := func() {
		toks = append(toks, cur)
		cur = likeTok{}
	}
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRune(pattern[i:])
		raw := pattern[i : i+n]
		i += n
		switch {
		case r == escape && escape != 0 && i < len(pattern):
			_, n = utf8.DecodeRune(pattern[i:])
			cur.lit = append(cur.lit, pattern[i:i+n]...)
			i += n
		case r == '%' || r == '_':
			if len(cur.lit) > 0 {
				flush()
			}
			if r == '%' {
				cur.any = true
			} else {
				cur.one++
			}
		default:
			cur.lit = append(cur.lit, raw...)
		}
	}
	flush()
	p := &likePattern{tokens: toks}
	p.classify()
	return p
}

func (p *likePattern) classify() {
	t := p.tokens
	open := func(k likeTok) bool { return k.any && k.one == 0 }
	closed := func(k likeTok) bool { return !k.any && k.one == 0 }
	switch {
	case len(t) == 1 && closed(t[0]):
		p.kind, p.lit = likeExact, t[0].lit
	case len(t) == 1 && open(t[0]) && len(t[0].lit) == 0:
		p.kind = likeAll
	case len(t) == 1 && open(t[0]):
		p.kind, p.lit = likeSuffix, t[0].lit
	case len(t) == 2 && closed(t[0]) && open(t[1]) && len(t[1].lit) == 0:
		p.kind, p.lit = likePrefix, t[0].lit
	case len(t) == 2 && open(t[0]) && open(t[1]) && len(t[1].lit) == 0:
		p.kind, p.lit = likeContains, t[0].lit
	}
}

func (p *likePattern) match(s []byte) bool {
	switch p.kind {
	case likeExact:
		return bytes.Equal(s, p.lit)
	case likePrefix:
		return bytes.HasPrefix(s, p.lit)
	case likeSuffix:
		return bytes.HasSuffix(s, p.lit)
	case likeContains:
		return bytes.Contains(s, p.lit)
	case likeAll:
		return true
	}
	return p.matchTokens(s)
}

// matchTokens matches greedily from the left: each literal at its first place after the wildcards before it, going back only to the last %.
func (p *likePattern) matchTokens(s []byte) bool {
	at, k := 0, 0            // next byte, next token
	backTok, backAt := -1, 0 // the last token with %, and where it last began to match
	for {
		if k == len(p.tokens) && at == len(s) {
			return true
		}
		if k < len(p.tokens) {
			t := &p.tokens[k]
			start, end, ok := t.matchAt(s, at)
			if ok {
				if t.any {
					backTok, backAt = k, start
				}
				at = end
				k++
				continue
			}
			if t.any {
				return false // nothing further right can match either
			}
		}
		if backTok < 0 || backAt >= len(s) {
			return false
		}
		_, n := utf8.DecodeRune(s[backAt:])
		at, k = backAt+n, backTok
	}
}

// matchAt matches a token at a place, or with a % before it at the first place from there on.
func (t *likeTok) matchAt(s []byte, at int) (start, end int, ok bool) {
	skip := func(from int) (int, bool) {
		for range t.one {
			if from >= len(s) {
				return from, false
			}
			_, n := utf8.DecodeRune(s[from:])
			from += n
		}
		return from, true
	}
	body, ok := skip(at)
	if !ok {
		return 0, 0, false
	}
	switch {
	case t.any && len(t.lit) == 0:
		return at, len(s), true // the pattern's end
	case !t.any:
		return at, body + len(t.lit), bytes.HasPrefix(s[body:], t.lit)
	}
	for {
		j := bytes.Index(s[body:], t.lit)
		if j < 0 {
			return 0, 0, false
		}
		if t.one == 0 {
			return body + j, body + j + len(t.lit), true
		}
		if j == 0 {
			return at, body + len(t.lit), true
		}
		_, n := utf8.DecodeRune(s[at:])
		at += n
		if body, ok = skip(at); !ok {
			return 0, 0, false
		}
	}
}

func escapeOf(x *call, i int) (rune, error) {
	if len(x.args) < 3 {
		return '\\', nil
	}
	e := x.args[2].str(i)
	if len(e) == 0 {
		return 0, nil
	}
	r, n := utf8.DecodeRune(e)
	if n != len(e) {
		return 0, errs.New(errs.ErrInvalid, "incorrect arguments to ESCAPE: '%s' is more than one character", e)
	}
	return r, nil
}

// like is x LIKE pattern ESCAPE e: byte-exact, as labels and strings compare.
func like(x *call) (vector, error) {
	out := vector{c: classBool, n: x.n, valid: x.valid, bits: x.zeros(x.n)}
	v, pat := &x.args[0], &x.args[1]
	if pat.konst && (len(x.args) < 3 || x.args[2].konst) {
		esc, err := escapeOf(x, 0)
		if err != nil {
			return out, err
		}
		p := newLike(pat.str(0), esc)
		p.matchAll(out.bits, v, x.n)
		return out, nil
	}
	var last []byte
	var p *likePattern
	for i := range x.n {
		if !x.validAt(i) {
			continue
		}
		if s := pat.str(i); p == nil || len(x.args) > 2 || !bytes.Equal(s, last) {
			esc, err := escapeOf(x, i)
			if err != nil {
				return out, err
			}
			p, last = newLike(s, esc), s
		}
		if p.match(v.str(i)) {
			out.bits[i>>3] |= 1 << (i & 7)
		}
	}
	return out, nil
}

// matchAll matches every value of a column against one pattern.
func (p *likePattern) matchAll(dst []byte, v *vector, n int) {
	switch {
	case p.kind == likeExact && !v.konst:
		equalString(dst, v, p.lit, n)
	case p.kind == likeContains && !v.konst && len(p.lit) > 0:
		containsAll(dst, v, p.lit, n)
	default:
		for i := range n {
			if p.match(v.str(i)) {
				dst[i>>3] |= 1 << (i & 7)
			}
		}
	}
}

// containsAll searches the values of a batch as one text: where a hit lies within one value, that row matches, and the search goes on behind the row.
func containsAll(dst []byte, v *vector, needle []byte, n int) {
	off := v.off[:n+1]
	data := v.data[:off[n]]
	at, row := int(off[0]), 0
	for {
		j := bytes.Index(data[at:], needle)
		if j < 0 {
			return
		}
		at += j
		for int(off[row+1]) <= at {
			row++
		}
		if at+len(needle) <= int(off[row+1]) {
			dst[row>>3] |= 1 << (row & 7)
			at = int(off[row+1])
			row++
			if row == n {
				return
			}
		} else {
			at++
		}
	}
}

// regexSizeMax bounds the text of a regular expression.
const regexSizeMax = 64 << 10

// compileRegex makes a Go (RE2) expression of MySQL's pattern and match type (i, c, m, n, u).
func compileRegex(pattern, flags string) (*regexp.Regexp, error) {
	if len(pattern) > regexSizeMax {
		return nil, errs.New(errs.ErrInvalid, "a regular expression of %d bytes; at most %d", len(pattern), regexSizeMax)
	}
	mode := ""
	for _, f := range flags {
		switch f {
		case 'i':
			mode = strings.ReplaceAll(mode, "i", "") + "i"
		case 'c':
			mode = strings.ReplaceAll(mode, "i", "")
		case 'm':
			mode += "m"
		case 'n':
			mode += "s"
		case 'u':
		default:
			return nil, errs.New(errs.ErrInvalid, "incorrect match type '%s' of a regular expression", flags)
		}
	}
	if mode != "" {
		pattern = "(?" + mode + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "regular expression '%s': %w", pattern, err)
	}
	return re, nil
}

// regexes compiles the pattern of each row once while it stays the same.
type regexes struct {
	x        *call
	flagsArg int
	pattern  string
	flags    string
	re       *regexp.Regexp
}

func (r *regexes) at(i int) (*regexp.Regexp, error) {
	flags := ""
	if r.flagsArg < len(r.x.args) {
		flags = string(r.x.args[r.flagsArg].str(i))
	}
	pattern := r.x.args[1].str(i)
	if r.re != nil && string(pattern) == r.pattern && flags == r.flags {
		return r.re, nil
	}
	var err error
	r.pattern, r.flags = string(pattern), flags
	r.re, err = compileRegex(r.pattern, flags)
	return r.re, err
}

func regexpLike(x *call) (vector, error) {
	out := vector{c: classBool, n: x.n, valid: x.valid, bits: x.zeros(x.n)}
	rs := regexes{x: x, flagsArg: 2}
	for i := range x.n {
		if !x.validAt(i) {
			continue
		}
		re, err := rs.at(i)
		if err != nil {
			return out, err
		}
		if re.Match(x.args[0].str(i)) {
			out.bits[i>>3] |= 1 << (i & 7)
		}
	}
	return out, nil
}

// intArg is the integer argument k of row i, or a default where it is not given.
func (x *call) intArg(k, i int, otherwise int64) int64 {
	if k >= len(x.args) {
		return otherwise
	}
	v := &x.args[k]
	return v.i[v.at(i)]
}

// fromRune is the byte position of character pos (from 1); ok is false outside the text.
func fromRune(s []byte, pos int64) (at int, ok bool) {
	if pos < 1 {
		return 0, false
	}
	for ; pos > 1 && at < len(s); pos-- {
		_, n := utf8.DecodeRune(s[at:])
		at += n
	}
	return at, pos == 1
}

// occurrences finds match number occurrence from character pos on.
func (rs *regexes) occurrence(i int, pos, occurrence int64) (s []byte, loc []int, err error) {
	s = rs.x.args[0].str(i)
	re, err := rs.at(i)
	if err != nil {
		return s, nil, err
	}
	at, ok := fromRune(s, pos)
	if !ok {
		return s, nil, errs.New(errs.ErrInvalid, "index %d is out of bounds in a regular expression search", pos)
	}
	if occurrence < 1 {
		occurrence = 1
	}
	locs := re.FindAllIndex(s[at:], int(min(occurrence, int64(len(s)+1))))
	if int64(len(locs)) < occurrence {
		return s, nil, nil
	}
	loc = locs[occurrence-1]
	return s, []int{loc[0] + at, loc[1] + at}, nil
}

func regexpSubstr(x *call) (vector, error) {
	rs := regexes{x: x, flagsArg: 4}
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		s, loc, err := rs.occurrence(i, x.intArg(2, i, 1), x.intArg(3, i, 1))
		if err != nil || loc == nil {
			return dst, false, err
		}
		return append(dst, s[loc[0]:loc[1]]...), true, nil
	})
}

func regexpInstr(x *call) (vector, error) {
	rs := regexes{x: x, flagsArg: 5}
	return x.ints(func(i int) (int64, bool, error) {
		s, loc, err := rs.occurrence(i, x.intArg(2, i, 1), x.intArg(3, i, 1))
		if err != nil || loc == nil {
			return 0, true, err
		}
		at := loc[0]
		if x.intArg(4, i, 0) == 1 {
			at = loc[1]
		}
		return int64(utf8.RuneCount(s[:at])) + 1, true, nil
	})
}

func regexpReplace(x *call) (vector, error) {
	rs := regexes{x: x, flagsArg: 5}
	return x.strings(func(i int, dst []byte) ([]byte, bool, error) {
		re, err := rs.at(i)
		if err != nil {
			return dst, false, err
		}
		s := x.args[0].str(i)
		at, ok := fromRune(s, x.intArg(3, i, 1))
		if !ok {
			return dst, false, errs.New(errs.ErrInvalid, "index %d is out of bounds in REGEXP_REPLACE", x.intArg(3, i, 1))
		}
		only := x.intArg(4, i, 0)
		with := goTemplate(x.args[2].str(i))
		dst = append(dst, s[:at]...)
		s = s[at:]
		last := 0
		for k, loc := range re.FindAllSubmatchIndex(s, -1) {
			if only > 0 && int64(k+1) != only {
				continue
			}
			dst = append(dst, s[last:loc[0]]...)
			dst = re.Expand(dst, with, s, loc)
			last = loc[1]
		}
		return append(dst, s[last:]...), true, nil
	})
}

// goTemplate turns MySQL's replacement ($1, \$) into Go's (${1}, $$).
func goTemplate(s []byte) []byte {
	if bytes.IndexByte(s, '$') < 0 && bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] == '$' {
				out = append(out, '$')
			}
			out = append(out, s[i])
		case s[i] == '$' && i+1 < len(s) && isDigit(s[i+1]):
			i++
			out = append(out, '$', '{', s[i], '}')
		case s[i] == '$':
			out = append(out, '$', '$')
		default:
			out = append(out, s[i])
		}
	}
	return out
}
