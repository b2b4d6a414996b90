package files

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lakesql/lakesql/internal/errs"
)

type jsonKind byte

const (
	jsonNull jsonKind = iota
	jsonTrue
	jsonFalse
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

// jsonDepthMax bounds nesting.
const jsonDepthMax = 64

// node is a value of a parsed text. Members of arrays and objects are linked by next; 0 ends a list, for node 0 is nobody's member.
type node struct {
	kind        jsonKind
	first, next int32
	count       int32  // of members
	key         []byte // of a member of an object
	text        []byte // a number's literal, a string's value; they may lie in the source
	raw         []byte // the value as it is written
}

// jsonText parses JSON values into nodes, which are valid until reset. It is used by one goroutine.
type jsonText struct {
	src     []byte
	at      int
	nodes   []node
	lenient bool // lists as Python prints them: single quotes, None, True, False
}

func (j *jsonText) reset() {
	clear(j.nodes)
	j.nodes = append(j.nodes[:0], node{})
}

// parse reads one value that is all of src and returns its node. Errors: ErrInvalid.
func (j *jsonText) parse(src []byte) (int32, error) {
	if len(j.nodes) == 0 {
		j.reset()
	}
	j.src, j.at = src, 0
	n, err := j.value(0)
	if err != nil {
		return 0, err
	}
	if j.blanks(); j.at < len(j.src) {
		return 0, j.wrong("nothing more")
	}
	return n, nil
}

func (j *jsonText) wrong(want string) error {
	if j.at >= len(j.src) {
		return errs.New(errs.ErrInvalid, "no JSON: the text ends where %s should be", want)
	}
	return errs.New(errs.ErrInvalid, "no JSON: byte %d is %q where %s should be", j.at+1, j.src[j.at], want)
}

func (j *jsonText) blanks() {
	for j.at < len(j.src) {
		switch j.src[j.at] {
		case ' ', '\t', '\r', '\n':
			j.at++
		default:
			return
		}
	}
}

func (j *jsonText) add(n node) int32 {
	j.nodes = append(j.nodes, n)
	return int32(len(j.nodes) - 1)
}

func (j *jsonText) value(depth int) (int32, error) {
	if depth > jsonDepthMax {
		return 0, errs.New(errs.ErrInvalid, "JSON nests more than %d deep", jsonDepthMax)
	}
	j.blanks()
	if j.at >= len(j.src) {
		return 0, j.wrong("a value")
	}
	from := j.at
	switch c := j.src[j.at]; {
	case c == '{':
		return j.members(depth, jsonObject, '}')
	case c == '[':
		return j.members(depth, jsonArray, ']')
	case c == '"' || c == '\'' && j.lenient:
		text, err := j.str(c)
		if err != nil {
			return 0, err
		}
		return j.add(node{kind: jsonString, text: text, raw: j.src[from:j.at]}), nil
	case c == '-' || c >= '0' && c <= '9':
		return j.number()
	}
	words := []struct {
		text string
		kind jsonKind
	}{{"true", jsonTrue}, {"false", jsonFalse}, {"null", jsonNull}, {"True", jsonTrue}, {"False", jsonFalse}, {"None", jsonNull}, {"NaN", jsonNumber}, {"nan", jsonNumber}, {"Infinity", jsonNumber}}
	for i, w := range words {
		if i >= 3 && !j.lenient && w.kind != jsonNumber {
			continue
		}
		if bytes.HasPrefix(j.src[j.at:], []byte(w.text)) {
			j.at += len(w.text)
			return j.add(node{kind: w.kind, text: j.src[from:j.at], raw: j.src[from:j.at]}), nil
		}
	}
	return 0, j.wrong("a value")
}

// members reads an array or an object.
func (j *jsonText) members(depth int, kind jsonKind, end byte) (int32, error) {
	from := j.at
	me := j.add(node{kind: kind})
	j.at++
	last, count := int32(0), int32(0)
	if j.blanks(); j.at < len(j.src) && j.src[j.at] == end {
		j.at++
		j.nodes[me].raw = j.src[from:j.at]
		return me, nil
	}
	for {
		var key []byte
		if kind == jsonObject {
			j.blanks()
			if j.at >= len(j.src) || j.src[j.at] != '"' && (j.src[j.at] != '\'' || !j.lenient) {
				return 0, j.wrong("a key in quotes")
			}
			var err error
			if key, err = j.str(j.src[j.at]); err != nil {
				return 0, err
			}
			if j.blanks(); j.at >= len(j.src) || j.src[j.at] != ':' {
				return 0, j.wrong("a colon")
			}
			j.at++
		}
		n, err := j.value(depth + 1)
		if err != nil {
			return 0, err
		}
		j.nodes[n].key = key
		if last == 0 {
			j.nodes[me].first = n
		} else {
			j.nodes[last].next = n
		}
		last = n
		count++
		j.blanks()
		if j.at >= len(j.src) || j.src[j.at] != ',' && j.src[j.at] != end {
			return 0, j.wrong("a comma or " + string(rune(end)))
		}
		j.at++
		if j.src[j.at-1] == end {
			j.nodes[me].count, j.nodes[me].raw = count, j.src[from:j.at]
			return me, nil
		}
	}
}

func (j *jsonText) number() (int32, error) {
	from := j.at
	if j.src[j.at] == '-' {
		j.at++
		if bytes.HasPrefix(j.src[j.at:], []byte("Infinity")) {
			j.at += len("Infinity")
			return j.add(node{kind: jsonNumber, text: j.src[from:j.at], raw: j.src[from:j.at]}), nil
		}
	}
	digits := func() bool {
		at := j.at
		for j.at < len(j.src) && j.src[j.at] >= '0' && j.src[j.at] <= '9' {
			j.at++
		}
		return j.at > at
	}
	if !digits() {
		return 0, j.wrong("a digit")
	}
	if j.at < len(j.src) && j.src[j.at] == '.' {
		j.at++
		if !digits() && !j.lenient {
			return 0, j.wrong("a digit")
		}
	}
	if j.at < len(j.src) && j.src[j.at]|0x20 == 'e' {
		j.at++
		if j.at < len(j.src) && (j.src[j.at] == '-' || j.src[j.at] == '+') {
			j.at++
		}
		if !digits() {
			return 0, j.wrong("a digit")
		}
	}
	return j.add(node{kind: jsonNumber, text: j.src[from:j.at], raw: j.src[from:j.at]}), nil
}

// str reads a string in quotes. Without an escape its value lies in the source.
func (j *jsonText) str(quote byte) ([]byte, error) {
	j.at++
	from := j.at
	for j.at < len(j.src) {
		switch c := j.src[j.at]; {
		case c == quote:
			j.at++
			return j.src[from : j.at-1 : j.at-1], nil
		case c == '\\':
			return j.escaped(from, quote)
		case c < 0x20:
			return nil, j.wrong("no control character")
		}
		j.at++
	}
	return nil, j.wrong("a closing quote")
}

func (j *jsonText) escaped(from int, quote byte) ([]byte, error) {
	out := append(make([]byte, 0, 2*(j.at-from)+16), j.src[from:j.at]...)
	for j.at < len(j.src) {
		c := j.src[j.at]
		j.at++
		switch {
		case c == quote:
			return out, nil
		case c < 0x20:
			j.at--
			return nil, j.wrong("no control character")
		case c != '\\':
			out = append(out, c)
			continue
		}
		if j.at >= len(j.src) {
			break
		}
		c = j.src[j.at]
		j.at++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b', 'f', 'n', 'r', 't':
			out = append(out, map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[c])
		case 'u':
			r, ok := j.hex()
			if ok && utf16.IsSurrogate(r) {
				ok = false
				if bytes.HasPrefix(j.src[j.at:], []byte(`\u`)) {
					j.at += 2
					var low rune
					if low, ok = j.hex(); ok {
						r = utf16.DecodeRune(r, low)
						ok = r != utf8.RuneError
					}
				}
			}
			if !ok {
				return nil, errs.New(errs.ErrInvalid, "no JSON: a \\u escape before byte %d is no character", j.at+1)
			}
			out = utf8.AppendRune(out, r)
		default:
			if !j.lenient {
				j.at--
				return nil, j.wrong("an escape")
			}
			out = append(out, c)
		}
	}
	return nil, j.wrong("a closing quote")
}

func (j *jsonText) hex() (rune, bool) {
	if len(j.src)-j.at < 4 {
		return 0, false
	}
	r := rune(0)
	for _, c := range j.src[j.at : j.at+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	j.at += 4
	return r, true
}
