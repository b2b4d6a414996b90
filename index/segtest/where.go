package segtest

import (
	"fmt"
	"strings"
)

// Where is a parsed filter, of the forms that the answers of the test datasets and the tests use.
type Where struct {
	Op      string // and, or, not; has, has_any, has_all, is_null, is_not_null, =, !=, <, <=, >, >=, in, between
	Args    []Where
	Column  string
	Needles []string // literals as JSON
}

func (w Where) String() string {
	switch w.Op {
	case "and", "or":
		return "(" + w.Args[0].String() + " " + strings.ToUpper(w.Op) + " " + w.Args[1].String() + ")"
	case "not":
		return "NOT " + w.Args[0].String()
	}
	return fmt.Sprintf("%s %s [%s]", w.Column, w.Op, strings.Join(w.Needles, ", "))
}

// ParseWhere parses a filter.
func ParseWhere(tb TB, text string) Where {
	tb.Helper()
	p := &whereParser{tb: tb, rest: text, all: text}
	w := p.or()
	if p.space(); p.rest != "" {
		p.fail("what follows is not understood")
	}
	return w
}

type whereParser struct {
	tb        TB
	rest, all string
}

func (p *whereParser) fail(why string) {
	p.tb.Helper()
	p.tb.Fatalf("filter %q at %q: %s", p.all, p.rest, why)
}

func (p *whereParser) space() { p.rest = strings.TrimLeft(p.rest, " ") }

// word takes a keyword or sign if it comes next.
func (p *whereParser) word(w string) bool {
	p.space()
	if len(p.rest) < len(w) || !strings.EqualFold(p.rest[:len(w)], w) {
		return false
	}
	isName := func(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c|32 >= 'a' && c|32 <= 'z' }
	if isName(w[0]) && len(p.rest) > len(w) && isName(p.rest[len(w)]) {
		return false
	}
	p.rest = p.rest[len(w):]
	return true
}

func (p *whereParser) must(w string) {
	p.tb.Helper()
	if !p.word(w) {
		p.fail(w + " is missing")
	}
}

func (p *whereParser) or() Where {
	w := p.and()
	for p.word("OR") {
		w = Where{Op: "or", Args: []Where{w, p.and()}}
	}
	return w
}

func (p *whereParser) and() Where {
	w := p.not()
	for p.word("AND") {
		w = Where{Op: "and", Args: []Where{w, p.not()}}
	}
	return w
}

func (p *whereParser) not() Where {
	if p.word("NOT") {
		return Where{Op: "not", Args: []Where{p.not()}}
	}
	if p.word("(") {
		w := p.or()
		p.must(")")
		return w
	}
	return p.leaf()
}

func (p *whereParser) leaf() Where {
	for name, op := range map[string]string{"array_has_any": "has_any", "array_has_all": "has_all", "array_has": "has"} {
		if p.word(name) {
			p.must("(")
			w := Where{Op: op, Column: p.name()}
			p.must(",")
			if op == "has" {
				w.Needles = []string{p.literal()}
			} else {
				w.Needles = p.list("[", "]")
			}
			p.must(")")
			return w
		}
	}
	w := Where{Column: p.name()}
	switch {
	case p.word("IS"):
		w.Op = "is_null"
		if p.word("NOT") {
			w.Op = "is_not_null"
		}
		p.must("NULL")
	case p.word("IN"):
		w.Op, w.Needles = "in", p.list("(", ")")
	case p.word("BETWEEN"):
		w.Op, w.Needles = "between", []string{p.literal()}
		p.must("AND")
		w.Needles = append(w.Needles, p.literal())
	default:
		for _, op := range []string{"<=", ">=", "!=", "=", "<", ">"} {
			if p.word(op) {
				w.Op, w.Needles = op, []string{p.literal()}
				return w
			}
		}
		p.fail("an operator is missing")
	}
	return w
}

func (p *whereParser) list(open, end string) []string {
	p.tb.Helper()
	p.must(open)
	out := []string{}
	for !p.word(end) {
		if len(out) > 0 {
			p.must(",")
		}
		out = append(out, p.literal())
	}
	return out
}

func (p *whereParser) name() string {
	p.tb.Helper()
	p.space()
	n := strings.IndexFunc(p.rest, func(r rune) bool { return !(r == '_' || r >= '0' && r <= '9' || r|32 >= 'a' && r|32 <= 'z') })
	if n < 0 {
		n = len(p.rest)
	}
	if n == 0 {
		p.fail("a column is missing")
	}
	name := p.rest[:n]
	p.rest = p.rest[n:]
	return name
}

// literal takes a number or a quoted string and returns it as JSON.
func (p *whereParser) literal() string {
	p.tb.Helper()
	p.space()
	if !strings.HasPrefix(p.rest, "'") {
		n := strings.IndexFunc(p.rest, func(r rune) bool { return !(r == '-' || r == '.' || r >= '0' && r <= '9') })
		if n < 0 {
			n = len(p.rest)
		}
		if n == 0 {
			p.fail("a literal is missing")
		}
		number := p.rest[:n]
		p.rest = p.rest[n:]
		return number
	}
	var b strings.Builder
	for rest := p.rest[1:]; ; {
		end := strings.IndexByte(rest, '\'')
		if end < 0 {
			p.fail("a string does not end")
		}
		b.WriteString(rest[:end])
		rest = rest[end+1:]
		if !strings.HasPrefix(rest, "'") {
			p.rest = rest
			return fmt.Sprintf("%q", b.String())
		}
		b.WriteByte('\'')
		rest = rest[1:]
	}
}
