package dialect

import (
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// aliasMark begins the comment by which the text for the parser names a deleted table: its grammar has no alias in DELETE FROM t AS a.
const aliasMark = "/*lakesql alias "

// DeleteAlias reads the alias out of the comments of a DELETE, "" where it has none.
func DeleteAlias(comments [][]byte) string {
	for _, c := range comments {
		if name, ok := strings.CutPrefix(string(c), aliasMark); ok {
			return strings.TrimSuffix(name, "*/")
		}
	}
	return ""
}

// changeStatement finds the verb of a statement that changes rows, also behind EXPLAIN and WITH, takes words without a meaning here out of it (LOW_PRIORITY,
// DELAYED, QUICK...), and the alias of a deleted table.
func (r *rewriter) changeStatement() error {
	at := r.verbAt()
	if at < 0 {
		return nil
	}
	if isExplain(r.head[0].word) && at > 1 && r.head[1].word == "analyze" {
		return errs.New(errs.ErrUnsupported, "EXPLAIN ANALYZE runs the statement, and this one would change rows: use EXPLAIN, or EXPLAIN ANALYZE of its SELECT")
	}
	if r.head[0].word == "with" {
		r.res.verb = r.head[at].word
	}
	verb := r.head[at]
	i := at + 1
	for ; i < len(r.head) && r.head[i].start >= 0 && isModifier(verb.word, r.head[i].word); i++ {
		r.insertSplice(splice{r.head[i].start, r.head[i].end, ""})
	}
	if verb.word == "delete" {
		r.deleteAlias(verb, i)
	}
	return nil
}

// verbAt is the token of the verb: the first one, the one behind EXPLAIN, or the first on the outermost level behind WITH. -1 = the statement changes no rows.
func (r *rewriter) verbAt() int {
	depth := 0
	isVerb := func(t token) bool {
		return t.class == classWord && (t.word == "insert" || t.word == "replace" || t.word == "update" || t.word == "delete")
	}
	for i, t := range r.head {
		switch {
		case t.class == classOp && t.op == '(':
			depth++
		case t.class == classOp && t.op == ')':
			depth--
		case depth == 0 && t.class == classWord && t.word == "select":
			return -1
		case depth == 0 && isVerb(t) && (i == 0 || r.head[0].word == "with" || isExplain(r.head[0].word) && i <= 4):
			return i
		}
		if i == 0 && !isVerb(t) && t.word != "with" && !isExplain(t.word) {
			return -1
		}
	}
	return -1
}

func isExplain(word string) bool { return word == "explain" || word == "describe" || word == "desc" }

func isModifier(verb, word string) bool {
	switch word {
	case "low_priority":
		return true
	case "high_priority":
		return verb == "insert"
	case "delayed":
		return verb == "insert" || verb == "replace"
	case "quick", "ignore":
		return verb == "delete"
	}
	return false
}

// deleteAlias takes the alias out of DELETE FROM t [AS] a; i is the token behind the modifiers.
func (r *rewriter) deleteAlias(verb token, i int) {
	p := &ownParser{text: r.res.Original, toks: r.head, at: i}
	if !p.words("from") {
		return
	}
	if _, ok := p.table(); !ok {
		return
	}
	from := p.last()
	as := p.words("as")
	t := p.peek()
	if t.start < 0 || t.class != classQuoted && (t.class != classWord || !as && !isAlias(t.word)) {
		return
	}
	name, ok := p.name()
	if next := p.peek(); !ok || strings.Contains(name, "*/") || next.class == classOp && next.op != ';' || next.word == "using" {
		return
	}
	r.insertSplice(splice{verb.end, verb.end, " " + aliasMark + name + "*/"})
	r.insertSplice(splice{from, t.end, ""})
}

// isAlias says that a word behind a table's name is its alias.
func isAlias(word string) bool {
	switch word {
	case "where", "order", "limit", "partition", "using", "as", "returning":
		return false
	}
	return true
}

// insertSplice puts a splice among the others, in their order.
func (r *rewriter) insertSplice(s splice) {
	at := len(r.res.splices)
	for at > 0 && r.res.splices[at-1].start > s.start {
		at--
	}
	r.res.splices = append(r.res.splices, splice{})
	copy(r.res.splices[at+1:], r.res.splices[at:])
	r.res.splices[at] = s
}
