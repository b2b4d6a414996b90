package dialect

import (
	"strings"

	"github.com/xwb1989/sqlparser"
)

// class is what Rewrite needs to know of a token.
type class int

const (
	classWord class = iota // keyword or unquoted name
	classQuoted
	classString
	classNumber
	classParam
	classComment
	classOp
	classBad // the tokenizer does not know it
)

// token is a piece of the text, at [start, end) in bytes. Tokens inside /*! ... */ have start -1: their place is unknown.
type token struct {
	class      class
	word       string // lower case, classWord only
	op         byte   // first byte, classOp and brackets
	start, end int
}

// scanner walks the tokens of a text.
type scanner struct {
	text   string
	tkn    *sqlparser.Tokenizer
	base   int  // where the tokenizer's text begins
	end    int  // where the last token of the text itself ended
	failed bool // the tokenizer gave up: the rest was not seen
}

func newScanner(text string) *scanner {
	s := &scanner{text: text}
	s.restart(0)
	return s
}

func (s *scanner) restart(at int) {
	s.base, s.end = at, at
	s.tkn = sqlparser.NewStringTokenizer(s.text[at:])
	s.tkn.AllowComments = true
}

// scan asks the tokenizer, which panics on some versioned comments ("/*!*/").
func (s *scanner) scan() (kind int, val []byte, panicked bool) {
	defer func() { panicked = recover() != nil }()
	kind, val = s.tkn.Scan()
	return kind, val, false
}

// next returns the next token; ok is false at the end of the text.
func (s *scanner) next() (token, bool) {
	kind, val, panicked := s.scan()
	start := s.end
	for start < len(s.text) && isBlank(s.text[start]) {
		start++
	}
	if panicked {
		return s.skipComment(start)
	}
	// The tokenizer has read one byte beyond the token, except that it counts the end of the text only once.
	end := min(s.base+s.tkn.Position-1, len(s.text))
	if kind == 0 && (start >= len(s.text) || end >= len(s.text)) {
		return token{}, false
	}
	t := token{start: start, end: end}
	if end <= s.end { // a token of /*! ... */: the outer tokenizer did not move
		t.start, t.end = -1, -1
	} else {
		s.end = end
		if strings.HasPrefix(s.text[start:], "/*!") {
			t.start, t.end = -1, -1 // the first token of such a comment
		}
	}
	t.classify(s.text, kind, val)
	return t, true
}

// skipComment goes on behind the versioned comment at start that the tokenizer cannot take.
func (s *scanner) skipComment(start int) (token, bool) {
	length := -1
	if strings.HasPrefix(s.text[start:], "/*!") {
		length = strings.Index(s.text[start+2:], "*/")
	}
	if length < 0 {
		s.failed = true
		return token{}, false
	}
	s.restart(start + 2 + length + 2)
	return token{class: classComment, start: start, end: s.end}, true
}

func (t *token) classify(text string, kind int, val []byte) {
	switch kind {
	case sqlparser.COMMENT:
		t.class = classComment
	case sqlparser.STRING:
		t.class = classString
	case sqlparser.INTEGRAL, sqlparser.FLOAT, sqlparser.HEX, sqlparser.HEXNUM, sqlparser.BIT_LITERAL:
		t.class = classNumber
	case sqlparser.VALUE_ARG, sqlparser.LIST_ARG:
		t.class = classParam
	case sqlparser.LEX_ERROR:
		t.class = classBad
		if t.start >= 0 && t.end == t.start+1 {
			t.op = text[t.start]
		}
	default:
		switch {
		case t.start >= 0 && text[t.start] == '`':
			t.class = classQuoted
		case len(val) > 0 && isWordByte(val[0]):
			t.class, t.word = classWord, strings.ToLower(string(val))
		default:
			t.class = classOp
			if t.start >= 0 {
				t.op = text[t.start]
			} else if kind > 0 && kind < 256 {
				t.op = byte(kind)
			}
		}
	}
}

// isBracket says that the token is [ or ] (which the tokenizer does not know).
func (t token) isBracket(b byte) bool { return t.class == classBad && t.op == b }

func isBlank(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

func isWordByte(b byte) bool {
	return b == '_' || b == '@' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b >= 0x80
}
