package expr

import (
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/errs"
)

func inFunctions() []function {
	return []function{
		{name: "in", min: 1, max: -1, resolve: resolveIn},
		{name: "not_in", min: 1, max: -1, resolve: func(r *request) (impl, error) {
			e, err := NewCall("in", r.args...)
			if err == nil {
				e, err = NewCall("not", e)
			}
			return impl{t: typeBool(), rewrite: e}, err
		}},
	}
}

// resolveIn takes a value and a list literal, or a value and the list's members. Members that are no constants, or that compare in another type than
// the value's own, become a chain of "=".
func resolveIn(r *request) (impl, error) {
	if len(r.args) == 2 {
		if lit, ok := r.literal(1); ok && elementType(lit.Type()) != nil && classOf(r.types[0]) != classNested {
			return r.inList(lit)
		}
	}
	t := storageType(r.types[0])
	if values, ok := plainMembers(t, r.args[1:]); ok {
		e := &Call{Func: "in", Args: []Expr{r.args[0], &Literal{scalar.NewListScalar(values)}}, T: typeBool()}
		return impl{t: typeBool(), rewrite: e}, nil
	}
	members := make([]arrow.Array, 0, len(r.args))
	for _, a := range r.args[1:] {
		lit, ok := a.(*Literal)
		if !ok || classOf(t) == classNested || classOf(t) == classNull {
			return r.inChain()
		}
		if !lit.Value.IsValid() {
			members = append(members, makeNulls(t, 1))
			continue
		}
		e, same, err := comparedTo(lit, r.args[0], t)
		out, constant := e.(*Literal)
		switch {
		case err != nil:
			return impl{}, r.typesError(err)
		case same && !constant:
			return r.inChain()
		case same:
			if classOf(t) == classString && !arrow.TypeEqual(out.Type(), t) {
				if out, _, err = convertLiteral(out, t); err != nil {
					return impl{}, err
				}
				if out == nil {
					continue // longer or shorter than every value of a fixed width
				}
			}
			arr, err := literalArray(out)
			if err != nil {
				return impl{}, err
			}
			members = append(members, arr)
		case neverEqual(lit, t):
		default:
			return r.inChain()
		}
	}
	values := makeNulls(t, 0)
	if len(members) > 0 {
		var err error
		if values, err = array.Concatenate(members, memory.DefaultAllocator); err != nil {
			return impl{}, errs.New(errs.ErrInternal, "list of IN: %w", err)
		}
	}
	e := &Call{Func: "in", Args: []Expr{r.args[0], &Literal{scalar.NewListScalar(values)}}, T: typeBool()}
	return impl{t: typeBool(), rewrite: e}, nil
}

// plainMembers makes the list of what long lists consist of, at a small part of the cost of converting one by one: BIGINT constants beside a column of
// integers, of which those that no value of t equals are left out, and text beside a column of text. ok is false for all else.
func plainMembers(t arrow.DataType, members []Expr) (arrow.Array, bool) {
	c := classOf(t)
	if c != classInt && c != classUint && t.ID() != arrow.STRING && t.ID() != arrow.LARGE_STRING {
		return nil, false
	}
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	b.Reserve(len(members))
	lo, hi := intBounds(t)
	if c == classUint {
		lo, hi = 0, int64(min(uintBound(t), math.MaxInt64))
	}
	for _, m := range members {
		lit, ok := m.(*Literal)
		if !ok {
			return nil, false
		}
		switch v := lit.Value.(type) {
		case *scalar.Int64:
			if c != classInt && c != classUint {
				return nil, false
			}
			if v.Valid && (v.Value < lo || v.Value > hi) {
				continue
			}
			if !v.Valid {
				b.AppendNull()
			} else {
				appendInt(b, v.Value)
			}
		case *scalar.String:
			text, ok := b.(array.StringLikeBuilder)
			if !ok {
				return nil, false
			}
			if !v.Valid {
				b.AppendNull()
			} else {
				text.Append(string(v.Value.Bytes()))
			}
		case *scalar.Null:
			b.AppendNull()
		default:
			return nil, false
		}
	}
	return b.NewArray(), true
}

// appendInt appends an integer that the builder's type holds.
func appendInt(b array.Builder, n int64) {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(n)
	case *array.Uint8Builder:
		b.Append(uint8(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Uint32Builder:
		b.Append(uint32(n))
	case *array.Uint64Builder:
		b.Append(uint64(n))
	}
}

// neverEqual reports whether a number equals no value of a numeric or temporal type.
func neverEqual(lit *Literal, t arrow.DataType) bool {
	if c := classOf(t); !(c.numeric() && classOf(lit.Type()).numeric()) && !(c.temporal() && classOf(lit.Type()) == classDate) {
		return false
	}
	_, f, err := convertLiteral(lit, t)
	return err == nil && f == fateLost
}

func (r *request) inChain() (impl, error) {
	members := make([]Expr, 0, len(r.args))
	for _, a := range r.args[1:] {
		e, err := NewCall("=", r.args[0], a)
		if err != nil {
			return impl{}, err
		}
		members = append(members, e)
	}
	if len(members) == 0 {
		lit, err := NewLiteral(false)
		return impl{t: typeBool(), rewrite: lit}, err
	}
	e, err := NewCall("or", members...)
	return impl{t: typeBool(), rewrite: e}, err
}

// inList resolves IN with a list literal whose elements are converted to the value's type.
func (r *request) inList(lit *Literal) (impl, error) {
	t := storageType(r.types[0])
	if elem := elementType(lit.Type()); !arrow.TypeEqual(elem, t) && lit.Value.IsValid() {
		values, _, f, err := convertElements(lit, t)
		if err != nil {
			return impl{}, r.typesError(err)
		}
		if f != fateExact {
			return impl{}, r.typesError(errs.New(errs.ErrInvalid, "a list of %s has no values of type %s", sqlName(elem), sqlName(t)))
		}
		lit = &Literal{scalar.NewListScalar(values)}
	}
	set := sync.OnceValues(func() (*valueSet, error) { return newListSet(lit) })
	return impl{t: typeBool(), args: []Expr{r.args[0], lit}, params: []arrow.DataType{canonical(t), nil}, nulls: true, run: func(x *call) (vector, error) {
		s, err := set()
		if err != nil {
			return vector{}, err
		}
		return x.inSet(s), nil
	}}, nil
}

func newListSet(lit *Literal) (*valueSet, error) {
	if !lit.Value.IsValid() {
		return &valueSet{hasNull: true}, nil
	}
	s := newState()
	v, err := s.load(lit.Value.(scalar.ListScalar).GetList())
	if err != nil {
		return nil, err
	}
	return newValueSet(&v), nil
}

// inSet is x IN (set): TRUE on a hit, NULL for a NULL, or for a miss where the set holds a NULL. Nothing, not even NULL, is in the empty set.
func (x *call) inSet(set *valueSet) vector {
	v := &x.args[0]
	out := vector{c: classBool, n: x.n, bits: x.zeros(x.n)}
	if set.size == 0 && !set.hasNull {
		return out
	}
	if v.nullConst() {
		out.valid = x.zeros(x.n)
		return out
	}
	set.lookup(out.bits, v, x.n)
	if !v.konst {
		out.valid = v.valid
	}
	if set.hasNull {
		out.valid = x.andBitmaps(out.bits, out.valid, x.n)
	}
	return out
}

// valueSet is a hash set of the values of one class.
type valueSet struct {
	c       class
	size    int
	hasNull bool
	// words: integers, dates, times and the bits of floats
	slots []uint64
	used  []bool
	shift uint
	// dense: words within a small range as bits
	dense []uint64
	low   uint64
	strs  map[string]struct{}
	few   []string // strs, where comparing is faster than hashing
	lens  [64]bool // lengths of strs below 64, to skip hashing
	long  bool     // some are longer
	big   map[[4]uint64]struct{}
}

// fewMax is up to how many strings are compared one by one.
const fewMax = 8

// Integers are kept as a bitmap where it has at most denseBits bits, or bitsPerWord for each of them and denseBitsMax in all: a bitmap that fits the second
// cache is faster than hashing.
const (
	denseBits    = 1 << 16
	bitsPerWord  = 1 << 11
	denseBitsMax = 1 << 22
)

func newValueSet(v *vector) *valueSet {
	set := &valueSet{c: v.c}
	var words []uint64
	for i := range v.n {
		if v.nullAt(i) {
			set.hasNull = true
			continue
		}
		switch v.c {
		case classString:
			if set.strs == nil {
				set.strs = make(map[string]struct{}, v.n)
			}
			s := v.str(i)
			set.strs[string(s)] = struct{}{}
			if len(s) < len(set.lens) {
				set.lens[len(s)] = true
			} else {
				set.long = true
			}
		case classDecimal, classWide:
			if set.big == nil {
				set.big = make(map[[4]uint64]struct{}, v.n)
			}
			set.big[v.bigKey(i)] = struct{}{}
		default:
			words = append(words, v.word(i))
		}
		set.size++
	}
	set.build(words)
	if len(set.strs) <= fewMax {
		for s := range set.strs {
			set.few = append(set.few, s)
		}
	}
	return set
}

func (v *vector) bigKey(i int) [4]uint64 {
	i = v.at(i)
	if v.c == classDecimal {
		return wideOf(v.d[i]).Array()
	}
	return v.w[i].Array()
}

// word is a fixed-width value as 64 bits that are equal where the values are. NaN equals nothing, but words of NaN do: lookup leaves it out.
func (v *vector) word(i int) uint64 {
	i = v.at(i)
	switch v.c {
	case classBool:
		return uint64(b2u(v.bit(i)))
	case classUint:
		return v.u[i]
	case classFloat:
		return math.Float64bits(v.f[i] + 0) // -0 becomes 0
	}
	return uint64(v.i[i])
}

func (set *valueSet) build(words []uint64) {
	if len(words) == 0 {
		return
	}
	lo, hi := words[0], words[0]
	for _, w := range words {
		if int64(w) < int64(lo) {
			lo = w
		}
		if int64(w) > int64(hi) {
			hi = w
		}
	}
	if span := hi - lo; span < max(denseBits, min(uint64(len(words))*bitsPerWord, denseBitsMax)) && set.c != classFloat {
		set.low, set.dense = lo, make([]uint64, span/64+1)
		for _, w := range words {
			set.dense[(w-lo)/64] |= 1 << ((w - lo) % 64)
		}
		return
	}
	bits := uint(3)
	for 1<<bits < 2*len(words) {
		bits++
	}
	set.shift = 64 - bits
	set.slots, set.used = make([]uint64, 1<<bits), make([]bool, 1<<bits)
	mask := uint64(1)<<bits - 1
	for _, w := range words {
		if set.c == classFloat && math.IsNaN(math.Float64frombits(w)) {
			continue
		}
		at := w * 0x9e3779b97f4a7c15 >> set.shift
		for set.used[at] && set.slots[at] != w {
			at = (at + 1) & mask
		}
		set.slots[at], set.used[at] = w, true
	}
}

func (set *valueSet) hasWord(w uint64) bool {
	mask := uint64(len(set.slots) - 1)
	for at := w * 0x9e3779b97f4a7c15 >> set.shift; set.used[at]; at = (at + 1) & mask {
		if set.slots[at] == w {
			return true
		}
	}
	return false
}

// lookup sets bit i of dst where value i is in the set; dst is zero before.
func (set *valueSet) lookup(dst []byte, v *vector, n int) {
	if set.size == 0 || v.c != set.c && !(v.c.decimal() && set.c.decimal()) {
		return
	}
	switch {
	case set.strs != nil:
		set.lookupStrings(dst, v, n)
	case set.big != nil:
		for i := range n {
			if _, ok := set.big[v.bigKey(i)]; ok {
				dst[i>>3] |= 1 << (i & 7)
			}
		}
	case set.dense != nil && v.c.ints() && !v.konst:
		span := uint64(len(set.dense)) * 64
		for i, x := range v.i[:n] {
			if d := uint64(x) - set.low; d < span {
				dst[i>>3] |= byte(set.dense[d/64]>>(d%64)&1) << (i & 7)
			}
		}
	case set.dense != nil:
		span := uint64(len(set.dense)) * 64
		for i := range n {
			if d := v.word(i) - set.low; d < span {
				dst[i>>3] |= byte(set.dense[d/64]>>(d%64)&1) << (i & 7)
			}
		}
	default:
		for i := range n {
			if set.hasWord(v.word(i)) {
				dst[i>>3] |= 1 << (i & 7)
			}
		}
	}
}

func (set *valueSet) lookupStrings(dst []byte, v *vector, n int) {
	if set.few != nil {
		for i := range n {
			s := v.str(i)
			for _, w := range set.few {
				if len(w) == len(s) && string(s) == w {
					dst[i>>3] |= 1 << (i & 7)
					break
				}
			}
		}
		return
	}
	for i := range n {
		s := v.str(i)
		if len(s) < len(set.lens) {
			if !set.lens[len(s)] {
				continue
			}
		} else if !set.long {
			continue
		}
		if _, ok := set.strs[string(s)]; ok {
			dst[i>>3] |= 1 << (i & 7)
		}
	}
}
