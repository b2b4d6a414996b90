package expr

import (
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// Program is a compiled expression. It is immutable and safe for concurrent use (I1).
type Program struct {
	root   node
	t      arrow.DataType
	source Expr
	states *sync.Pool
}

// node is a compiled expression node. typ is the type of its vectors, which for quotients has more digits than the expression's type.
type node interface {
	eval(s *state) (vector, error)
	typ() arrow.DataType
}

// state is what one evaluation needs: its input, its scratch, what to release at the end.
type state struct {
	*arena
	env     *Env
	n       int
	cols    []arrow.Array
	loaded  []vector
	have    []bool
	keepers *[]arrow.Array
	parent  *state  // rows idx of parent are this state's rows; nil = the input batch
	idx     []int32 //
}

func (e *Env) alloc() memory.Allocator {
	if e == nil || e.Alloc == nil {
		return memory.DefaultAllocator
	}
	return e.Alloc
}

func (e *Env) location() *time.Location {
	if e == nil || e.Location == nil {
		return time.UTC
	}
	return e.Location
}

func (s *state) alloc() memory.Allocator { return s.env.alloc() }

// keep has arr released when the evaluation ends.
func (s *state) keep(arr arrow.Array) arrow.Array {
	*s.keepers = append(*s.keepers, arr)
	return arr
}

func newState() *state { return &state{arena: &arena{}, keepers: new([]arrow.Array)} }

func (s *state) begin(env *Env, cols []arrow.Array, n int) {
	s.env, s.cols, s.n = env, cols, n
	if env != nil {
		s.held = env.Budget.Reserve()
	}
	if cap(s.loaded) < len(cols) {
		s.loaded, s.have = make([]vector, len(cols)), make([]bool, len(cols))
	}
	s.loaded, s.have = s.loaded[:len(cols)], s.have[:len(cols)]
}

// end releases what was kept and drops every reference to the input.
func (s *state) end() {
	for _, a := range *s.keepers {
		a.Release()
	}
	*s.keepers = (*s.keepers)[:0]
	clear(s.loaded)
	clear(s.have)
	s.reset()
	s.env, s.cols = nil, nil
}

// column returns input column i as a vector.
func (s *state) column(i int) (vector, error) {
	if s.have[i] {
		return s.loaded[i], nil
	}
	var v vector
	var err error
	if s.parent != nil {
		if v, err = s.parent.column(i); err != nil {
			return v, err
		}
		src := v.src
		if !v.konst {
			v, err = s.gather(&v, s.idx)
		}
		if _, isDict := src.(*array.Dictionary); isDict {
			v.src = nil
		}
	} else {
		v, err = s.load(s.cols[i])
	}
	if err != nil {
		return v, err
	}
	s.loaded[i], s.have[i] = v, true
	return v, nil
}

// only returns a state whose rows are the rows idx of s.
func (s *state) only(idx []int32) *state {
	return &state{arena: s.arena, env: s.env, n: len(idx), loaded: make([]vector, len(s.loaded)), have: make([]bool, len(s.loaded)),
		keepers: s.keepers, parent: s, idx: idx}
}

// Compile turns e into a program over batches of the given schema, where Column.ID is the position of a column. ErrInvalid, ErrUnsupported.
func Compile(e Expr, input *arrow.Schema) (*Program, error) {
	c := compiler{input: input}
	root, err := c.compile(e)
	if err != nil {
		return nil, err
	}
	root, err = c.castTo(root, e.Type(), castStrict)
	if err != nil {
		return nil, err
	}
	return &Program{root: root, t: e.Type(), source: e, states: &sync.Pool{New: func() any { return newState() }}}, nil
}

// Type is the type of the arrays that Eval returns.
func (p *Program) Type() arrow.DataType { return p.t }

func (p *Program) String() string { return p.source.String() }

// Eval computes the expression for every row of batch. The caller releases the result. ErrInvalid, ErrOverflow, ErrMemoryLimit.
func (p *Program) Eval(env *Env, batch arrow.RecordBatch) (arrow.Array, error) {
	s := p.states.Get().(*state)
	defer p.states.Put(s)
	s.begin(env, batch.Columns(), int(batch.NumRows()))
	defer s.end()
	if s.n == 0 {
		return makeNullsIn(env.alloc(), p.t, 0), nil
	}
	v, err := p.root.eval(s)
	if err != nil {
		return nil, err
	}
	return s.store(&v, p.t, s.n)
}

// EvalSelect returns the positions of the rows for which a boolean program is TRUE; a number is TRUE where it is not zero. Where every row is, all
// is true and sel nil: the batch can be passed on as it is.
func (p *Program) EvalSelect(env *Env, batch arrow.RecordBatch) (sel []int32, all bool, err error) {
	s := p.states.Get().(*state)
	defer p.states.Put(s)
	s.begin(env, batch.Columns(), int(batch.NumRows()))
	defer s.end()
	if s.n == 0 {
		return nil, true, nil
	}
	v, err := p.root.eval(s)
	if err != nil {
		return nil, false, err
	}
	if v, err = s.cast(&v, typeBool(), castTruth); err != nil {
		return nil, false, err
	}
	if v.konst {
		return nil, !v.null(0) && v.bit(0), nil
	}
	bits := s.andBitmaps(v.bits, v.valid, s.n)
	switch count := countBits(bits, s.n); count {
	case 0:
		return nil, false, nil
	case s.n:
		return nil, true, nil
	default:
		return selected(make([]int32, 0, count), bits, s.n), false, nil
	}
}

type compiler struct {
	input *arrow.Schema
	depth int
}

// depthMax bounds the nesting of an expression: a statement is bounded before it is parsed, and decoded plans are bounded here.
const depthMax = 10000

func (c *compiler) compile(e Expr) (node, error) {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > depthMax {
		return nil, errs.New(errs.ErrInvalid, "an expression nests deeper than %d", depthMax)
	}
	switch x := e.(type) {
	case *Column:
		if x.ID < 0 || c.input == nil || x.ID >= c.input.NumFields() {
			return nil, errs.New(errs.ErrInternal, "column %s at position %d is not in the input", x.Name, x.ID)
		}
		if have := c.input.Field(x.ID).Type; !arrow.TypeEqual(have, x.T) {
			return nil, errs.New(errs.ErrInternal, "column %s is %s in the input and %s in the expression", x.Name, have, x.T)
		}
		return &columnNode{id: x.ID, t: canonical(x.T)}, nil
	case *Literal:
		return newConstNode(x)
	case *Call:
		n, err := c.compileCall(x)
		if err != nil {
			return nil, err
		}
		return c.overDictionary(x, n), nil
	}
	return nil, errs.New(errs.ErrInternal, "expression of unknown kind %T", e)
}

// columnNode reads an input column.
type columnNode struct {
	id int
	t  arrow.DataType
}

func (n *columnNode) eval(s *state) (vector, error) { return s.column(n.id) }
func (n *columnNode) typ() arrow.DataType           { return n.t }

// constNode is a literal, loaded once.
type constNode struct{ v vector }

func newConstNode(l *Literal) (node, error) {
	v, err := literalVector(l)
	if err != nil {
		return nil, err
	}
	return &constNode{v: v}, nil
}

func (n *constNode) eval(*state) (vector, error) { return n.v, nil }
func (n *constNode) typ() arrow.DataType         { return n.v.t }

// castNode converts its input's vectors.
type castNode struct {
	in   node
	t    arrow.DataType
	mode castMode
}

func (n *castNode) eval(s *state) (vector, error) {
	v, err := n.in.eval(s)
	if err != nil {
		return v, err
	}
	return s.cast(&v, n.t, n.mode)
}

func (n *castNode) typ() arrow.DataType { return n.t }

// castTo wraps n so that it yields t, if it does not yet.
func (c *compiler) castTo(n node, t arrow.DataType, mode castMode) (node, error) {
	if t == nil || sameVectorType(n.typ(), t) {
		return n, nil
	}
	if err := checkCast(n.typ(), t); err != nil {
		return nil, err
	}
	out := &castNode{in: n, t: canonical(t), mode: mode}
	if k, ok := n.(*constNode); ok && !dependsOnZone(n.typ(), t) {
		s := newState() // lives as long as the constant does
		v, err := s.cast(&k.v, out.t, mode)
		if err != nil {
			return out, nil //nolint:nilerr // the error belongs to the rows that need the value (I5)
		}
		v.t = out.t
		return &constNode{v: v}, nil
	}
	return out, nil
}

// sameVectorType reports whether vectors of type a serve where b is asked: int8 and int64 are one class, text is not binary, scales differ.
func sameVectorType(a, b arrow.DataType) bool {
	ca, cb := classOf(a), classOf(b)
	if ca != cb {
		return false
	}
	switch ca {
	case classDecimal, classWide:
		_, sa, _ := digits(a)
		_, sb, _ := digits(b)
		pa, _, _ := digits(a)
		pb, _, _ := digits(b)
		return sa == sb && pa <= pb
	case classString:
		return true
	case classNested:
		return arrow.TypeEqual(a, b)
	}
	return true
}

// callNode applies a kernel.
type callNode struct {
	name   string
	source Expr
	args   []node
	t      arrow.DataType
	im     impl
}

func (n *callNode) typ() arrow.DataType { return n.t }

func (n *callNode) eval(s *state) (vector, error) {
	if n.im.lazy != nil {
		return n.im.lazy(&call{state: s, nodes: n.args, n: s.n, t: n.t, name: n.name, source: n.source})
	}
	x := call{state: s, n: 1, t: n.t, name: n.name, source: n.source}
	var few [4]vector
	x.args = few[:0]
	for _, a := range n.args {
		v, err := a.eval(s)
		if err != nil {
			return vector{}, err
		}
		x.args = append(x.args, v)
		if !v.konst {
			x.n = s.n
		}
	}
	konst := true
	for i := range x.args {
		if !x.args[i].konst {
			konst = false
		}
	}
	if n.im.volatile {
		konst, x.n = false, s.n
	}
	if !n.im.nulls {
		for i := range x.args {
			if x.args[i].nullConst() {
				return s.nullVector(n.t), nil
			}
		}
		for i := range x.args {
			if !x.args[i].konst {
				x.valid = s.andBitmaps(x.valid, x.args[i].valid, x.n)
			}
		}
	}
	v, err := n.im.run(&x)
	if err != nil {
		return v, err
	}
	v.t = n.t
	if konst {
		v.konst = true
	}
	return v, nil
}

// dictionaryNode evaluates a function of one dictionary-encoded column on the dictionary and spreads the answers.
type dictionaryNode struct {
	col int
	in  node
}

func (n *dictionaryNode) typ() arrow.DataType { return n.in.typ() }

func (n *dictionaryNode) eval(s *state) (vector, error) {
	if n.col >= len(s.cols) { // rows of another state, or already the values of a dictionary
		return n.in.eval(s)
	}
	dict, ok := s.cols[n.col].(*array.Dictionary)
	if !ok || dict.Dictionary().Len() >= s.n {
		return n.in.eval(s)
	}
	values, err := s.load(dict.Dictionary())
	if err != nil {
		return vector{}, err
	}
	m := values.n
	idx := makeSlice[int32](s.arena, m+1)
	for i := range m {
		idx[i] = int32(i)
	}
	idx[m] = -1 // the answer for NULL
	sub := s.only(idx)
	sub.parent = nil
	if values, err = s.gather(&values, idx); err != nil {
		return vector{}, err
	}
	sub.loaded[n.col], sub.have[n.col] = values, true
	v, err := n.in.eval(sub)
	if err != nil {
		return n.in.eval(s) // a value that no row has must not fail (I5)
	}
	if v.konst {
		return v, nil
	}
	if codes, ok := dict.Indices().(*array.Uint32); ok && v.c == classBool && dict.NullN() == 0 && (v.valid == nil || countBits(v.valid, m) == m) {
		return s.spreadBits(&v, codes.Uint32Values()), nil
	}
	rows := makeSlice[int32](s.arena, s.n)
	s.codes(rows, dict)
	for i, p := range rows {
		if p < 0 {
			rows[i] = int32(m)
		}
	}
	return s.gather(&v, rows)
}

// spreadBits gives each row the answer of its code, where no answer and no row is NULL.
func (s *state) spreadBits(answers *vector, codes []uint32) vector {
	of := makeSlice[byte](s.arena, answers.n)
	for i := range of {
		of[i] = b2u(answers.bit(i))
	}
	out := *answers
	out.n, out.src, out.valid, out.bits = len(codes), nil, nil, s.zeros(len(codes))
	i := 0
	for ; i+8 <= len(codes); i += 8 {
		c := codes[i : i+8 : i+8]
		out.bits[i>>3] = of[c[0]] | of[c[1]]<<1 | of[c[2]]<<2 | of[c[3]]<<3 | of[c[4]]<<4 | of[c[5]]<<5 | of[c[6]]<<6 | of[c[7]]<<7
	}
	for ; i < len(codes); i++ {
		out.bits[i>>3] |= of[codes[i]] << (i & 7)
	}
	return out
}

// overDictionary wraps a call of a single dictionary column.
func (c *compiler) overDictionary(e *Call, n node) node {
	ids := Columns(e)
	if len(ids) != 1 || c.input == nil || c.depth > 64 || ids[0] >= c.input.NumFields() {
		return n
	}
	t := c.input.Field(ids[0]).Type
	if t.ID() != arrow.DICTIONARY && classOf(t) != classString { // text may come as codes
		return n
	}
	return &dictionaryNode{col: ids[0], in: n}
}

func (e *Env) now() time.Time {
	if e == nil || e.Now.IsZero() {
		return time.Unix(0, 0)
	}
	return e.Now
}
