package dialect

import (
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
)

// Table is what CREATE TABLE and ALTER TABLE say beyond MySQL's grammar.
type Table struct {
	Columns []Column       // those whose type MySQL does not know; the text for the parser says JSON
	Indexes []*CreateIndex // [VECTOR] INDEX and KEY clauses, taken out of the text; of CREATE TABLE Table is not set
	// DropIndexes are the names of DROP INDEX clauses, taken out of the text of ALTER TABLE.
	DropIndexes []string
	Options     map[string]string // WITH (key = value, ...), keys in lower case
	Select      string            // the query behind the columns, which the parser takes only where there are none; "" = none
}

// HasOwnSyntax says that the text for the parser lacks something that the statement says.
func (t *Table) HasOwnSyntax() bool {
	return t != nil && (len(t.Columns) > 0 || len(t.Indexes) > 0 || len(t.DropIndexes) > 0 || t.Options != nil || t.Select != "")
}

// Column is a column of a type of our own.
type Column struct {
	Name string
	Type coltype.Type
	Text string // the type as written
}

// ddl watches the tokens of CREATE TABLE and ALTER TABLE.
type ddl struct {
	create bool
	active bool
	skip   int // tokens that begin before this offset were read by someone else
	// columns says that the list of columns has ended.
	columns bool
	alter   alter
}

// tableWords says whether the statement is CREATE TABLE or ALTER TABLE.
func (r *rewriter) tableWords(t token) {
	if r.ddl.active || r.count > 3 || t.word != "table" {
		return
	}
	switch first := r.firstWord(); {
	case first == "create" && (r.count == 1 || r.count == 2 && r.last.word == "temporary"), first == "alter" && r.count == 1:
		r.ddl.active, r.ddl.create = true, first == "create"
		r.res.Table = &Table{}
		if !r.ddl.create {
			r.alterTable(t)
		}
	}
}

// tableSyntax takes the own syntax of CREATE TABLE and ALTER TABLE out of the text. done says that the token was read.
func (r *rewriter) tableSyntax(t token) (done bool, err error) {
	if !r.ddl.active || t.start < 0 {
		return false, nil
	}
	if t.start < r.ddl.skip {
		return true, nil
	}
	if t.class == classOp && t.op == ')' && len(r.open) == 1 {
		r.ddl.columns = true
	}
	if !r.ddl.create {
		if done, err := r.alterSyntax(t); done || err != nil {
			return done, err
		}
	}
	if t.class != classWord {
		return false, nil
	}
	switch t.word {
	case "list", "array", "struct", "map", "vector":
		if r.isColumnType(t) {
			return true, r.columnType(t)
		}
	case "with":
		if r.ddl.create && len(r.open) == 0 && r.next(t.end) == '(' {
			return true, r.tableOptions(t)
		}
		return r.tableSelect(t), nil
	case "as", "select":
		return r.tableSelect(t), nil
	}
	if r.ddl.create && len(r.open) == 1 && r.isIndexClause(t) {
		return true, r.indexClause(t)
	}
	return false, nil
}

// next is the first byte behind an offset that is not blank.
func (r *rewriter) next(at int) byte {
	rest := strings.TrimLeft(r.scan.text[at:], " \t\r\n")
	if rest == "" {
		return 0
	}
	return rest[0]
}

// isColumnType says that a type of ours stands behind a column's name.
func (r *rewriter) isColumnType(t token) bool {
	if b := r.next(t.end); b != '<' && (t.word != "vector" || b != '(') {
		return false
	}
	switch r.last.class {
	case classQuoted:
		return r.last2.word != "index" && r.last2.word != "key" || t.word != "vector"
	case classWord:
		switch r.last.word {
		case "index", "key", "add", "column", "modify", "change", "on", "by", "using", "references":
			return false
		}
		return r.last2.word != "index" && r.last2.word != "key" || t.word != "vector"
	}
	return false
}

func (r *rewriter) columnType(t token) error {
	typ, n, err := coltype.ParsePrefix(r.scan.text[t.start:])
	if err != nil {
		return err
	}
	name := r.scan.text[r.last.start:r.last.end]
	if r.last.class == classQuoted {
		name = strings.ReplaceAll(name[1:len(name)-1], "``", "`")
	}
	end := t.start + n
	r.res.Table.Columns = append(r.res.Table.Columns, Column{Name: name, Type: typ, Text: r.scan.text[t.start:end]})
	r.res.splices = append(r.res.splices, splice{t.start, end, "JSON"})
	r.ddl.skip = end
	return nil
}

// tokensFrom reads the text from an offset anew, for a clause that is looked at as a whole.
func (r *rewriter) tokensFrom(at int) *ownParser {
	s := newScanner(r.scan.text)
	s.restart(at)
	p := &ownParser{text: r.scan.text}
	for len(p.toks) < headMax {
		t, ok := s.next()
		if !ok {
			break
		}
		if t.class != classComment {
			p.toks = append(p.toks, t)
		}
	}
	return p
}

func (r *rewriter) tableOptions(t token) error {
	p := r.tokensFrom(t.end)
	options, err := p.options("CREATE TABLE ... WITH")
	if err != nil {
		return err
	}
	r.res.Table.Options = options
	r.remove(t.start, p.last())
	return nil
}

// tableSelect takes [AS] SELECT out of a CREATE TABLE: the parser knows few forms of it, and none behind columns. It is parsed on its own.
func (r *rewriter) tableSelect(t token) bool {
	if !r.ddl.create || len(r.open) > 0 || r.count < 3 || r.last.class == classOp && r.last.op == '.' {
		return false
	}
	from := t.start
	if t.word == "as" {
		from = t.end
	}
	r.res.Table.Select = unwrap(strings.TrimSuffix(strings.TrimSpace(r.scan.text[from:]), ";"))
	r.remove(t.start, len(r.scan.text))
	if !r.ddl.columns {
		r.res.splices[len(r.res.splices)-1].with = "AS SELECT 1"
	}
	return true
}

// unwrap takes off parentheses around a whole query, which the parser does not know there.
func unwrap(query string) string {
	if !strings.HasPrefix(query, "(") || !strings.HasSuffix(query, ")") {
		return query
	}
	depth := 0
	for s := newScanner(query); ; {
		t, ok := s.next()
		if !ok {
			return query
		}
		switch {
		case t.class == classOp && t.op == '(':
			depth++
		case t.class == classOp && t.op == ')':
			if depth--; depth == 0 {
				if t.end != len(query) {
					return query
				}
				return strings.TrimSpace(query[1 : len(query)-1])
			}
		}
	}
}

func (r *rewriter) remove(from, to int) {
	r.res.splices = append(r.res.splices, splice{from, to, ""})
	r.ddl.skip = to
}

// isIndexClause says that an index definition begins: it is the first word behind ( or a comma of the column list.
func (r *rewriter) isIndexClause(t token) bool {
	if r.last.class != classOp || r.last.op != '(' && r.last.op != ',' {
		return false
	}
	switch t.word {
	case "index", "key":
	case "vector":
		if w := strings.ToLower(strings.TrimLeft(r.scan.text[t.end:], " \t\r\n")); !strings.HasPrefix(w, "index") && !strings.HasPrefix(w, "key") {
			return false
		}
		return true
	default:
		return false
	}
	p := r.tokensFrom(t.end) // a column may be called index
	if p.op('(') {
		return true
	}
	_, ok := p.name()
	return ok && (p.op('(') || p.words("using"))
}

// indexClause takes [VECTOR] INDEX [name] [USING kind] (columns) [USING kind] [WITH (...)] [COMMENT '...'] out of CREATE TABLE.
func (r *rewriter) indexClause(t token) error {
	p := r.tokensFrom(t.start)
	index, err := p.indexDefinition("CREATE TABLE")
	if err != nil {
		return err
	}
	r.res.Table.Indexes = append(r.res.Table.Indexes, index)
	switch from, to := t.start, p.last(); {
	case r.last.op == ',' && r.last.start >= 0: // with the comma before it
		r.remove(r.last.start, to)
	case r.next(to) == ',':
		r.remove(from, strings.IndexByte(r.scan.text[to:], ',')+to+1)
	default:
		return errs.New(errs.ErrInvalid, "a table must have at least 1 column")
	}
	// The next token is seen as if nothing had been here.
	return nil
}

// indexDefinition reads an index clause from its first word.
func (p *ownParser) indexDefinition(what string) (*CreateIndex, error) {
	out := &CreateIndex{Options: map[string]string{}}
	out.Vector = p.words("vector")
	if !p.words("index") && !p.words("key") {
		return nil, p.fail(what)
	}
	if t := p.peek(); !(t.class == classOp && t.op == '(') && t.word != "using" {
		name, ok := p.name()
		if !ok {
			return nil, p.fail(what)
		}
		out.Name = name
	}
	return out, p.indexTail(out, what)
}

// indexTail reads [USING kind] (columns) [USING kind] [WITH (...)] [COMMENT '...'].
func (p *ownParser) indexTail(out *CreateIndex, what string) error {
	p.using(out)
	if !p.op('(') {
		return p.fail(what)
	}
	for {
		col, ok := p.name()
		if !ok {
			return p.fail(what)
		}
		if p.op('(') { // a prefix length, which such an index has no use for
			p.at++
			if !p.op(')') {
				return p.fail(what)
			}
		}
		_ = p.words("asc")
		out.Columns = append(out.Columns, col)
		if !p.op(',') {
			break
		}
	}
	if !p.op(')') {
		return p.fail(what)
	}
	for {
		switch {
		case p.peek().word == "using":
			p.using(out)
		case p.words("with"):
			options, err := p.options(what + " ... WITH")
			if err != nil {
				return err
			}
			out.Options = options
		case p.words("comment"):
			if p.peek().class != classString {
				return p.fail(what)
			}
			p.at++
		default:
			return nil
		}
	}
}

// last is the end of what was read.
func (p *ownParser) last() int {
	if p.at == 0 {
		return 0
	}
	return p.toks[p.at-1].end
}
