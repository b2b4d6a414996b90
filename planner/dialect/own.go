package dialect

import (
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// Own is a statement that the parser's grammar lacks: *OptimizeTable, *CreateIndex, *DropIndex, *AlterIndexes, *EndTransaction or *ShowDiagnostics.
type Own interface{ ownStatement() }

// TableName is a table as the user wrote it.
type TableName struct{ Database, Name string } // Database "" = the current one

// OptimizeTable is OPTIMIZE TABLE t, u.
type OptimizeTable struct{ Tables []TableName }

// CreateIndex is CREATE [VECTOR] INDEX name ON t (column) USING kind WITH (key = value, ...), or ALTER TABLE t ADD INDEX with the same words.
type CreateIndex struct {
	Name        string // "" = made of the column's
	Table       TableName
	Columns     []string
	Vector      bool              // VECTOR INDEX
	IfNotExists bool              //
	Kind        string            // upper case; "" = what suits the column
	Options     map[string]string // keys in lower case
}

// DropIndex is DROP INDEX name ON t, or ALTER TABLE t DROP INDEX name.
type DropIndex struct {
	Name     string
	Table    TableName
	IfExists bool
}

// AlterIndexes is an ALTER TABLE that changes several indices and nothing else.
type AlterIndexes struct {
	Table TableName
	Add   []*CreateIndex
	Drop  []string
}

func (*OptimizeTable) ownStatement() {}
func (*AlterIndexes) ownStatement()  {}
func (*CreateIndex) ownStatement()   {}
func (*DropIndex) ownStatement()     {}

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
	case p.words("commit"), p.words("rollback"):
		return p.endTransaction(head[0].word == "commit")
	case p.words("show"):
		return p.showDiagnostics()
	case p.words("create", "index"):
		return p.createIndex(false)
	case p.words("create", "vector", "index"):
		return p.createIndex(true)
	case p.words("drop", "index"):
		return p.dropIndex()
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

// createIndex reads CREATE INDEX behind these words.
func (p *ownParser) createIndex(vector bool) (Own, error) {
	out := &CreateIndex{Vector: vector, Options: map[string]string{}}
	out.IfNotExists = p.words("if", "not", "exists")
	var ok bool
	if out.Name, ok = p.name(); !ok {
		return nil, p.fail("CREATE INDEX")
	}
	p.using(out)
	if !p.words("on") {
		return nil, p.fail("CREATE INDEX")
	}
	if out.Table, ok = p.table(); !ok {
		return nil, p.fail("CREATE INDEX")
	}
	if err := p.indexTail(out, "CREATE INDEX"); err != nil {
		return nil, err
	}
	if !p.end() {
		return nil, p.fail("CREATE INDEX")
	}
	return out, nil
}

func (p *ownParser) dropIndex() (Own, error) {
	out := &DropIndex{}
	out.IfExists = p.words("if", "exists")
	var ok bool
	if out.Name, ok = p.name(); !ok || !p.words("on") {
		return nil, p.fail("DROP INDEX")
	}
	if out.Table, ok = p.table(); !ok || !p.end() {
		return nil, p.fail("DROP INDEX")
	}
	return out, nil
}

func (p *ownParser) using(out *CreateIndex) {
	if p.words("using") {
		kind, _ := p.name()
		out.Kind = strings.ToUpper(kind)
	}
}

// options reads (key = value, ...).
func (p *ownParser) options(what string) (map[string]string, error) {
	out := map[string]string{}
	if !p.op('(') {
		return nil, p.fail(what)
	}
	for !p.op(')') {
		key, ok := p.name()
		if !ok || !p.op('=') {
			return nil, p.fail(what)
		}
		t := p.peek()
		if t.start < 0 || t.class != classString && t.class != classNumber && t.class != classWord {
			return nil, p.fail(what)
		}
		p.at++
		out[strings.ToLower(key)] = unquote(p.text[t.start:t.end])
		if !p.op(',') && !(p.peek().class == classOp && p.peek().op == ')') {
			return nil, p.fail(what)
		}
	}
	return out, nil
}
