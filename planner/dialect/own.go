package dialect

import (
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// Own is a statement that the MySQL grammar lacks: *OptimizeTable or *CreateIndex.
type Own interface{ ownStatement() }

// TableName is a table as the user wrote it.
type TableName struct{ Database, Name string } // Database "" = the current one

// OptimizeTable is OPTIMIZE TABLE t, u.
type OptimizeTable struct{ Tables []TableName }

// CreateIndex is CREATE INDEX name ON t (column) USING kind WITH (key = value, ...), for the kinds that MySQL does not have.
type CreateIndex struct {
	Name    string
	Table   TableName
	Columns []string
	Kind    string            // upper case
	Options map[string]string // keys in lower case
}

func (*OptimizeTable) ownStatement() {}
func (*CreateIndex) ownStatement()   {}

// parseOwn recognises our statements by their first tokens; nil means that the statement is none of ours.
func parseOwn(text string, head []token) (Own, error) {
	p := &ownParser{text: text, toks: head}
	switch {
	case p.words("optimize"):
		_ = p.words("no_write_to_binlog") || p.words("local")
		if !p.words("table") && !p.words("tables") {
			return nil, p.fail("OPTIMIZE TABLE")
		}
		return p.optimize()
	case p.words("create"):
		if !p.words("index") && !p.words("vector", "index") {
			return nil, nil
		}
		return p.createIndex()
	}
	return nil, nil
}

type ownParser struct {
	text string
	toks []token
	at   int
}

func (p *ownParser) peek() token {
	if p.at < len(p.toks) {
		return p.toks[p.at]
	}
	return token{class: classBad, start: len(p.text), end: len(p.text)}
}

// words consumes the words if all of them come next.
func (p *ownParser) words(ws ...string) bool {
	for i, w := range ws {
		if p.at+i >= len(p.toks) || p.toks[p.at+i].class != classWord || p.toks[p.at+i].word != w {
			return false
		}
	}
	p.at += len(ws)
	return true
}

func (p *ownParser) op(b byte) bool {
	if t := p.peek(); t.class == classOp && t.op == b {
		p.at++
		return true
	}
	return false
}

func (p *ownParser) name() (string, bool) {
	t := p.peek()
	if t.start < 0 || t.class != classWord && t.class != classQuoted {
		return "", false
	}
	p.at++
	s := p.text[t.start:t.end]
	if t.class == classQuoted {
		s = strings.ReplaceAll(s[1:len(s)-1], "``", "`")
	}
	return s, true
}

func (p *ownParser) table() (TableName, bool) {
	a, ok := p.name()
	if !ok {
		return TableName{}, false
	}
	if !p.op('.') {
		return TableName{Name: a}, true
	}
	b, ok := p.name()
	return TableName{Database: a, Name: b}, ok
}

func (p *ownParser) end() bool {
	_ = p.op(';')
	return p.at >= len(p.toks)
}

func (p *ownParser) fail(what string) error {
	t := p.peek()
	near := ""
	if t.start >= 0 && t.start < len(p.text) {
		near = p.text[t.start:min(t.start+32, len(p.text))]
	}
	return errs.New(errs.ErrSyntax, "syntax error in %s near '%s'", what, near)
}

func (p *ownParser) optimize() (Own, error) {
	out := &OptimizeTable{}
	for {
		t, ok := p.table()
		if !ok {
			return nil, p.fail("OPTIMIZE TABLE")
		}
		out.Tables = append(out.Tables, t)
		if !p.op(',') {
			break
		}
	}
	if !p.end() {
		return nil, p.fail("OPTIMIZE TABLE")
	}
	return out, nil
}

// createIndex reads CREATE INDEX with our USING kinds; with MySQL's own kinds or none it is not ours.
func (p *ownParser) createIndex() (Own, error) {
	out := &CreateIndex{Options: map[string]string{}}
	var ok bool
	if out.Name, ok = p.name(); !ok {
		return nil, nil
	}
	p.using(out)
	if !p.words("on") {
		return nil, nil
	}
	if out.Table, ok = p.table(); !ok || !p.op('(') {
		return nil, nil
	}
	for {
		col, ok := p.name()
		if !ok {
			return nil, nil
		}
		out.Columns = append(out.Columns, col)
		if !p.op(',') {
			break
		}
	}
	if !p.op(')') {
		return nil, nil
	}
	p.using(out)
	if !isOurKind(out.Kind) {
		return nil, nil
	}
	if p.words("with") {
		if err := p.options(out); err != nil {
			return nil, err
		}
	}
	if !p.end() {
		return nil, p.fail("CREATE INDEX")
	}
	return out, nil
}

func (p *ownParser) using(out *CreateIndex) {
	if p.words("using") {
		kind, _ := p.name()
		out.Kind = strings.ToUpper(kind)
	}
}

func (p *ownParser) options(out *CreateIndex) error {
	if !p.op('(') {
		return p.fail("CREATE INDEX ... WITH")
	}
	for !p.op(')') {
		key, ok := p.name()
		if !ok || !p.op('=') {
			return p.fail("CREATE INDEX ... WITH")
		}
		t := p.peek()
		if t.start < 0 || t.class != classString && t.class != classNumber && t.class != classWord {
			return p.fail("CREATE INDEX ... WITH")
		}
		p.at++
		out.Options[strings.ToLower(key)] = unquote(p.text[t.start:t.end])
		if !p.op(',') && !(p.peek().class == classOp && p.peek().op == ')') {
			return p.fail("CREATE INDEX ... WITH")
		}
	}
	return nil
}

// isOurKind says that MySQL has no such index: BTREE and HASH stay with the MySQL grammar unless WITH makes them ours.
func isOurKind(kind string) bool {
	switch kind {
	case "", "HASH", "RTREE":
		return false
	}
	return true
}
