package dialect

import (
	"strings"

	"github.com/lakesql/lakesql/internal/errs"
)

// Names of the functions that rewritten text calls.
const (
	MakeArray = "make_array"
	Members   = "__members" // x MEMBER OF(l) becomes x IN (__members(l))
	Rollup    = "__rollup"  // GROUP BY a, b WITH ROLLUP becomes GROUP BY a, b, __rollup()
	Grouping  = "grouping"
	Interval  = "__interval" // INTERVAL '1:2' MINUTE_SECOND becomes INTERVAL __interval('1:2', 'minute_second') SECOND
	Concat    = "__concat"   // GROUP_CONCAT in HAVING becomes any_value(__concat(what it is, x, ...)), in the parsed tree
	Window    = "__window"   // f(x) OVER (...) becomes __window(what it is, x, ...), in the parsed tree
)

// Limits bounds what the parser may be given. Zero fields mean the default.
type Limits struct {
	BytesMax   int // default 64 MiB
	NestingMax int // parentheses and brackets; default 200
	// ChainMax bounds the depth of the tree that a parser may build: operators and keywords, counted along every open
	// parenthesis since the last comma; default 40000
	ChainMax int
}

func (l Limits) withDefaults() Limits {
	if l.BytesMax == 0 {
		l.BytesMax = 64 << 20
	}
	if l.NestingMax == 0 {
		l.NestingMax = 200
	}
	if l.ChainMax == 0 {
		l.ChainMax = 40_000
	}
	return l
}

// Format is how EXPLAIN prints.
type Format string

// The formats of EXPLAIN.
const (
	FormatTree Format = "tree"
	FormatJSON Format = "json"
)

// Hint is one NAME=VALUE of a SET_VAR hint, or MAX_EXECUTION_TIME(n) under the name max_execution_time.
type Hint struct{ Name, Value string }

// Result is one statement, ready for the parser.
type Result struct {
	Text       string // what to parse
	Original   string // what the user wrote
	Own        Own    // a statement of our own: there is nothing to parse
	Format     Format // EXPLAIN FORMAT=...; "" where the statement does not say
	Hints      []Hint // of the first SELECT
	Parameters int    // question marks
	Table      *Table // what CREATE TABLE and ALTER TABLE say beyond MySQL's grammar; nil for other statements

	verb    string // the first word, lower case
	empty   bool
	splices []splice
}

type splice struct {
	start, end int // in the original
	with       string
}

// Rewrite takes one statement. Errors: ErrInvalid beyond a limit, ErrUnsupported for AS OF ?, ErrSyntax for own statements that are misspelled.
func Rewrite(text string, limits Limits) (*Result, error) {
	limits = limits.withDefaults()
	if len(text) > limits.BytesMax {
		return nil, errs.New(errs.ErrInvalid, "the statement has %d bytes, more than the %d allowed (max_allowed_packet)", len(text), limits.BytesMax)
	}
	r := &rewriter{limits: limits, res: &Result{Original: text}, scan: newScanner(text)}
	if err := r.run(); err != nil {
		return nil, err
	}
	own, err := parseOwn(text, r.head)
	if err != nil {
		return nil, err
	}
	if r.res.Own = own; own == nil {
		if r.res.Own = r.alterOwn(); r.res.Own == nil {
			if err := r.errAlterOnly(); err != nil {
				return nil, err
			}
		}
	}
	if r.broken || len(r.open) > 0 {
		r.res.splices = nil
	}
	r.res.verb, r.res.empty = r.firstWord(), r.isEmpty()
	if err := r.changeStatement(); err != nil {
		return nil, err
	}
	if err := r.startTransaction(); err != nil {
		return nil, err
	}
	r.res.apply()
	return r.res, nil
}

// headMax is how many tokens at the beginning of a statement are kept to recognise statements of our own.
const headMax = 256

type rewriter struct {
	limits Limits
	res    *Result
	scan   *scanner

	head   []token // the first tokens, comments left out
	last   token   // the last token that is not a comment
	last2  token   // the one before
	prev   bool    // last is set
	count  int     // tokens so far, comments left out
	broken bool    // the tokenizer did not understand something: no splices

	ddl     ddl
	open    []level
	chain   int // operators along the open levels
	selects int // SELECT words so far
}

type level struct {
	closing byte // ')' or ']'
	member  bool // closes a MEMBER OF
	chain   int  // operators since the last comma on this level
}

func (r *rewriter) run() error {
	own := 0 // operators on level 0 since the last comma
	for {
		t, ok := r.scan.next()
		if !ok && r.scan.failed {
			return errs.New(errs.ErrSyntax, "syntax error near '%.32s'", r.scan.text[r.scan.end:])
		}
		if !ok {
			return nil
		}
		if t.class == classComment {
			r.comment(t)
			continue
		}
		if t.class == classParam {
			r.res.Parameters++
		}
		if done, err := r.tableSyntax(t); err != nil {
			return err
		} else if done {
			continue
		}
		if err := r.nesting(t); err != nil {
			return err
		}
		counter := &own
		if n := len(r.open); n > 0 {
			counter = &r.open[n-1].chain
		}
		switch {
		case t.class == classOp && t.op == ',':
			r.chain -= *counter
			*counter = 0
		case t.class == classWord || t.class == classOp || t.class == classBad || t.class == classQuoted:
			*counter++
			if r.chain++; r.chain > r.limits.ChainMax {
				return errs.New(errs.ErrInvalid, "the statement chains more than %d operators; use IN (...) or a join", r.limits.ChainMax)
			}
		}
		if err := r.words(t); err != nil {
			return err
		}
		r.last2, r.last, r.prev = r.last, t, true
		if r.count++; r.count <= headMax {
			r.head = append(r.head, t)
		}
	}
}

// nesting keeps the stack of open parentheses and brackets and turns list literals into calls.
func (r *rewriter) nesting(t token) error {
	isOp := t.class == classOp
	switch {
	case isOp && t.op == '(':
		return r.push(level{closing: ')', member: r.memberOf(t)})
	case isOp && t.op == ')':
		if l, ok := r.pop(')'); ok && l.member {
			r.res.splices = append(r.res.splices, splice{t.start, t.end, "))"})
		}
	case t.isBracket('['):
		switch {
		case r.prev && r.last.class == classWord && r.last.word == "array" && r.last.start >= 0 && !(r.last2.class == classOp && r.last2.op == '.'):
			r.res.splices = append(r.res.splices, splice{r.last.start, t.end, MakeArray + "("})
		case r.prev && isOperand(r.last):
			r.broken = true // a[1], FLOAT[4]: nothing of ours
		default:
			r.res.splices = append(r.res.splices, splice{t.start, t.end, MakeArray + "("})
		}
		return r.push(level{closing: ']'})
	case t.isBracket(']'):
		if _, ok := r.pop(']'); ok {
			r.res.splices = append(r.res.splices, splice{t.start, t.end, ")"})
		}
	case t.class == classBad:
		r.broken = true
	}
	return nil
}

func (r *rewriter) push(l level) error {
	if len(r.open) >= r.limits.NestingMax {
		return errs.New(errs.ErrInvalid, "the statement nests more than %d parentheses", r.limits.NestingMax)
	}
	r.open = append(r.open, l)
	return nil
}

func (r *rewriter) pop(closing byte) (level, bool) {
	n := len(r.open)
	if n == 0 || r.open[n-1].closing != closing {
		r.broken = true
		if n == 0 {
			return level{}, false
		}
	}
	l := r.open[n-1]
	r.open = r.open[:n-1]
	r.chain -= l.chain
	return l, l.closing == closing
}

// memberOf says that the parenthesis t belongs to MEMBER OF, and replaces these words.
func (r *rewriter) memberOf(t token) bool {
	if !r.prev || r.last.class != classWord || r.last.word != "of" || r.last2.class != classWord || r.last2.word != "member" || r.last2.start < 0 || t.start < 0 {
		return false
	}
	r.res.splices = append(r.res.splices, splice{r.last2.start, t.end, "IN (" + Members + "("})
	return true
}

// isOperand says that an expression may end with the token, so that a bracket behind it is a subscript.
func isOperand(t token) bool {
	switch t.class {
	case classQuoted, classString, classNumber, classParam:
		return true
	case classWord:
		return !startsExpression(t.word)
	case classOp:
		return t.op == ')'
	}
	return t.isBracket(']')
}

// startsExpression lists the words that an expression may follow.
func startsExpression(word string) bool {
	switch word {
	case "select", "distinct", "all", "where", "and", "or", "xor", "not", "on", "having", "by", "when", "then", "else", "case", "in", "like", "between", "is",
		"div", "mod", "regexp", "rlike", "return", "set", "values", "value", "binary", "limit", "offset", "interval", "sql_calc_found_rows", "straight_join", "if", "using", "call":
		return true
	}
	return false
}

func (r *rewriter) words(t token) error {
	if t.class == classParam && r.last.class == classWord && r.last.word == "of" && r.last2.class == classWord && (r.last2.word == "as" || r.last2.word == "system_time") {
		return errs.New(errs.ErrUnsupported, "AS OF cannot take a parameter: write the version into the statement")
	}
	if t.class != classWord {
		return nil
	}
	first := r.firstWord()
	r.tableWords(t)
	if isCompoundUnit(t.word) && t.start >= 0 && r.last.start >= 0 && r.last2.class == classWord && r.last2.word == "interval" {
		with := Interval + "(" + r.scan.text[r.last.start:r.last.end] + ", '" + t.word + "') SECOND"
		r.res.splices = append(r.res.splices, splice{r.last.start, t.end, with})
	}
	if t.word == "rollup" && t.start >= 0 && r.last.class == classWord && r.last.word == "with" && r.last.start >= 0 {
		r.res.splices = append(r.res.splices, splice{r.last.start, t.end, ", " + Rollup + "()"})
	}
	switch {
	case t.word == "select":
		r.selects++
	case (first == "explain" || first == "describe" || first == "desc") && r.count <= 4 && r.last.class == classOp && r.last.op == '=' && r.last2.word == "format":
		r.explainFormat(t)
	}
	return nil
}

// isCompoundUnit lists the units of intervals that the parser knows and its tokenizer does not.
func isCompoundUnit(word string) bool {
	switch word {
	case "second_microsecond", "minute_microsecond", "minute_second", "hour_microsecond", "hour_second", "hour_minute", "day_microsecond", "day_second", "day_minute", "day_hour", "year_month":
		return true
	}
	return false
}

func (r *rewriter) explainFormat(t token) {
	switch t.word {
	case "json":
		r.res.Format = FormatJSON
	case "tree", "traditional":
		r.res.Format = FormatTree
	default:
		return
	}
	if t.word != "tree" && t.start >= 0 {
		r.res.splices = append(r.res.splices, splice{t.start, t.end, "TREE"})
	}
}

// isEmpty says that there was no token but semicolons.
func (r *rewriter) isEmpty() bool {
	for _, t := range r.head {
		if t.class != classOp || t.op != ';' {
			return false
		}
	}
	return true
}

func (r *rewriter) firstWord() string {
	if len(r.head) == 0 {
		return ""
	}
	return r.head[0].word
}

// comment reads the hints of the first SELECT: comments directly behind the word.
func (r *rewriter) comment(t token) {
	if r.selects != 1 || r.last.word != "select" || t.start < 0 {
		return
	}
	body, ok := strings.CutPrefix(r.scan.text[t.start:t.end], "/*+")
	if !ok {
		return
	}
	r.res.Hints = append(r.res.Hints, parseHints(strings.TrimSuffix(body, "*/"))...)
}

// apply splices the original text.
func (res *Result) apply() {
	if len(res.splices) == 0 {
		res.Text = res.Original
		return
	}
	var b strings.Builder
	at := 0
	for _, s := range res.splices {
		b.WriteString(res.Original[at:s.start])
		b.WriteString(s.with)
		at = s.end
	}
	b.WriteString(res.Original[at:])
	res.Text = b.String()
}

// OriginalOffset maps a byte offset in Text to the original. Inside inserted text it is where the replaced text begins.
func (res *Result) OriginalOffset(offset int) int {
	shift := 0 // original = text + shift
	for _, s := range res.splices {
		at := s.start - shift // where the splice begins in Text
		if offset < at {
			break
		}
		if offset < at+len(s.with) {
			return s.start
		}
		shift = s.end - (at + len(s.with))
	}
	return min(max(offset+shift, 0), len(res.Original))
}

// Headings maps the text of select expressions back to what the user wrote: a function of pieces of Text that are asked for in the order in which they stand
// there. A piece that is not found, or holds nothing of ours, is returned as it is.
func (res *Result) Headings() func(piece string) string {
	at := 0
	return func(piece string) string {
		if len(res.splices) == 0 || piece == "" {
			return piece
		}
		i := strings.Index(res.Text[at:], piece)
		if i < 0 {
			return piece
		}
		i += at
		at = i + len(piece)
		from, to := res.OriginalOffset(i), res.originalEnd(at)
		if to <= from {
			return piece
		}
		return res.Original[from:to]
	}
}

// originalEnd maps the end of a piece: the end of inserted text is the end of what it replaced.
func (res *Result) originalEnd(end int) int {
	shift := 0
	for _, s := range res.splices {
		at := s.start - shift
		if end <= at {
			break
		}
		if end <= at+len(s.with) {
			return s.end
		}
		shift = s.end - (at + len(s.with))
	}
	return min(end+shift, len(res.Original))
}
