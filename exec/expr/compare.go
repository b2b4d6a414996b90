package expr

import (
	"bytes"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/lakesql/lakesql/internal/errs"
)

type compareOp uint8

const (
	opEqual compareOp = iota
	opNotEqual
	opLess
	opLessEq
	opGreater
	opGreaterEq
)

// swapped is the operator for exchanged sides.
func (o compareOp) swapped() compareOp {
	switch o {
	case opLess:
		return opGreater
	case opLessEq:
		return opGreaterEq
	case opGreater:
		return opLess
	case opGreaterEq:
		return opLessEq
	}
	return o
}

// holds tells whether the operator is true of a three-way comparison.
func (o compareOp) holds(cmp int) bool {
	switch o {
	case opEqual:
		return cmp == 0
	case opNotEqual:
		return cmp != 0
	case opLess:
		return cmp < 0
	case opLessEq:
		return cmp <= 0
	case opGreater:
		return cmp > 0
	}
	return cmp >= 0
}

func compareFunctions() []function {
	fs := []function{
		{name: "<=>", min: 2, max: 2, resolve: resolveNullSafe},
		{name: "between", min: 3, max: 3, resolve: func(r *request) (impl, error) { return resolveBetween(r, false) }},
		{name: "not_between", min: 3, max: 3, resolve: func(r *request) (impl, error) { return resolveBetween(r, true) }},
		{name: "strcmp", min: 2, max: 2, resolve: fixed(typeInt(), strcmp, typeString(), typeString())},
	}
	for name, op := range map[string]compareOp{"=": opEqual, "<>": opNotEqual, "<": opLess, "<=": opLessEq, ">": opGreater, ">=": opGreaterEq} {
		fs = append(fs, function{name: name, min: 2, max: 2, resolve: func(r *request) (impl, error) { return resolveCompare(r, op) }})
	}
	return append(fs, function{name: "!=", as: "<>", min: 2, max: 2, resolve: func(r *request) (impl, error) { return resolveCompare(r, opNotEqual) }})
}

func resolveBetween(r *request, negate bool) (impl, error) {
	lo, err := NewCall(">=", r.args[0], r.args[1])
	if err != nil {
		return impl{}, err
	}
	hi, err := NewCall("<=", r.args[0], r.args[2])
	if err != nil {
		return impl{}, err
	}
	e, err := NewCall("and", lo, hi)
	if err == nil && negate {
		e, err = NewCall("not", e)
	}
	return impl{t: typeBool(), rewrite: e}, err
}

// comparison is the type that values are compared in, with literals already converted.
func comparison(r *request) (t arrow.DataType, args []Expr, err error) {
	args = r.args
	a, b := r.types[0], r.types[1]
	la, aLit := r.literal(0)
	lb, bLit := r.literal(1)
	if bLit && !aLit {
		if lit, ok, err := comparedTo(lb, r.args[0], a); err != nil {
			return nil, nil, r.typesError(err)
		} else if ok {
			return canonical(a), []Expr{args[0], lit}, nil
		}
	}
	if aLit && !bLit {
		if lit, ok, err := comparedTo(la, r.args[1], b); err != nil {
			return nil, nil, r.typesError(err)
		} else if ok {
			return canonical(b), []Expr{lit, args[1]}, nil
		}
	}
	return comparisonType(a, b), args, nil
}

// comparisonType is the type that values of a and b meet in, by MySQL's rules.
func comparisonType(a, b arrow.DataType) arrow.DataType {
	ca, cb := classOf(a), classOf(b)
	switch {
	case ca == classNull:
		return canonical(b)
	case cb == classNull:
		return canonical(a)
	case ca == classNested || cb == classNested:
		return typeString()
	case ca == classString && cb == classString:
		return typeString()
	case ca.temporal() && cb.temporal():
		return temporalComparison(ca, cb)
	case ca.temporal() && cb == classString:
		return temporalComparison(ca, classDatetime)
	case cb.temporal() && ca == classString:
		return temporalComparison(classDatetime, cb)
	case !ca.numeric() || !cb.numeric() || ca == classFloat || cb == classFloat:
		return typeFloat()
	case ca.integer() && cb.integer() && (ca == classUint) == (cb == classUint):
		if ca == classUint {
			return typeUint()
		}
		return typeInt()
	case ca == classUint && cb == classBool, ca == classBool && cb == classUint:
		return typeUint()
	}
	pa, sa, _ := digits(a)
	pb, sb, _ := digits(b)
	s := max(sa, sb)
	return rawDecimal(max(pa-sa, pb-sb)+s, s)
}

func temporalComparison(ca, cb class) arrow.DataType {
	switch {
	case ca == classTimestamp || cb == classTimestamp:
		return typeTimestamp()
	case ca == classDate && cb == classDate:
		return typeDate()
	case ca == classTime && (cb == classTime || cb == classDatetime), cb == classTime && ca == classDatetime:
		if ca == classTime && cb == classTime {
			return typeTime()
		}
	}
	return typeDatetime()
}

// comparedTo converts a literal to the type of what it is compared with, if no comparison changes by it.
//
// A civil time beside a TIMESTAMP becomes a conversion that Fold computes once it knows the zone.
func comparedTo(lit *Literal, other Expr, t arrow.DataType) (Expr, bool, error) {
	if !lit.Value.IsValid() {
		return Null(canonicalLiteral(t)), classOf(t) != classNull, nil
	}
	from, to := classOf(lit.Type()), classOf(t)
	if to == classNested || from == classNested || to == classNull || (to == classString && from != classString) || (to == classBool && from != classBool) {
		return nil, false, nil
	}
	if to == classString {
		return lit, true, nil
	}
	if to == classTime && from == classString {
		if s := literalText(lit); len(s) > 12 {
			return nil, false, nil
		}
	}
	out, fate, err := convertLiteral(lit, t)
	switch {
	case err != nil:
		return nil, false, err
	case fate == fateExact:
		return out, true, nil
	case fate == fateZone && to == classTimestamp:
		e, err := NewCoerce(lit, storageType(t))
		return e, err == nil, err
	case fate == fateNotANumber && to.temporal():
		return nil, false, errs.New(errs.ErrInvalid, "incorrect %s value '%s' for %s", sqlName(t), literalText(lit), other)
	}
	return nil, false, nil
}

// canonicalLiteral is the type of literals beside a column of type t.
func canonicalLiteral(t arrow.DataType) arrow.DataType { return storageType(t) }

func resolveCompare(r *request, op compareOp) (impl, error) {
	t, args, err := comparison(r)
	if err != nil {
		return impl{}, err
	}
	return impl{t: typeBool(), args: args, params: []arrow.DataType{t}, exact: true, run: func(x *call) (vector, error) {
		bits, err := x.compare(&x.args[0], &x.args[1], op)
		return vector{c: classBool, n: x.n, valid: x.valid, bits: bits}, err
	}}, nil
}

// compare returns a bit per row; rows where either side is NULL are undefined.
func (x *call) compare(a, b *vector, op compareOp) ([]byte, error) {
	dst := x.bitmap(x.n)
	if a.konst && b.konst {
		a2, b2 := *a, *b
		a2.konst, b2.konst = false, false
		clear(dst)
		return dst, compareInto(dst, &a2, &b2, 1, op)
	}
	return dst, compareInto(dst, a, b, x.n, op)
}

func compareInto(dst []byte, a, b *vector, n int, op compareOp) error {
	if a.c != b.c {
		return errs.New(errs.ErrInternal, "comparison of %s with %s", a.t, b.t)
	}
	switch a.c {
	case classBool:
		setBits(dst, n, func(i int) bool { return op.holds(int(b2u(a.bit(i))) - int(b2u(b.bit(i)))) })
	case classUint:
		compareWords(dst, a.u, b.u, a.konst, b.konst, op)
	case classFloat:
		compareWords(dst, a.f, b.f, a.konst, b.konst, op)
	case classDecimal:
		compareDecimals(dst, a, b, n, op)
	case classWide:
		setBits(dst, n, func(i int) bool { return op.holds(a.w[a.at(i)].Cmp(b.w[b.at(i)])) })
	case classString:
		compareStrings(dst, a, b, n, op)
	case classNull, classNested:
		return errs.New(errs.ErrInternal, "comparison of values of type %s", a.t)
	default:
		compareWords(dst, a.i, b.i, a.konst, b.konst, op)
	}
	return nil
}

func cmp128(a, b decimal128.Num) int {
	ah, bh := a.HighBits(), b.HighBits()
	switch {
	case ah < bh:
		return -1
	case ah > bh:
		return 1
	}
	al, bl := a.LowBits(), b.LowBits()
	switch {
	case al < bl:
		return -1
	case al > bl:
		return 1
	}
	return 0
}

// less128 is a < b without branches.
func less128(a, b decimal128.Num) bool {
	_, borrow := bits.Sub64(a.LowBits(), b.LowBits(), 0)
	_, borrow = bits.Sub64(uint64(a.HighBits())^1<<63, uint64(b.HighBits())^1<<63, borrow)
	return borrow != 0
}

func compareDecimals(dst []byte, a, b *vector, n int, op compareOp) {
	if op == opGreater || op == opLessEq {
		a, b, op = b, a, op.swapped()
	}
	am, bm := a.mask(), b.mask()
	clear(dst)
	switch op {
	case opLess:
		for i := range n {
			dst[i>>3] |= b2u(less128(a.d[i&am], b.d[i&bm])) << (i & 7)
		}
	case opGreaterEq:
		for i := range n {
			dst[i>>3] |= b2u(!less128(a.d[i&am], b.d[i&bm])) << (i & 7)
		}
	case opEqual:
		for i := range n {
			dst[i>>3] |= b2u(a.d[i&am] == b.d[i&bm]) << (i & 7)
		}
	default:
		for i := range n {
			dst[i>>3] |= b2u(a.d[i&am] != b.d[i&bm]) << (i & 7)
		}
	}
}

func compareStrings(dst []byte, a, b *vector, n int, op compareOp) {
	if a.konst && !b.konst {
		a, b, op = b, a, op.swapped()
	}
	if b.konst && (op == opEqual || op == opNotEqual) {
		equalString(dst, a, b.str(0), n)
		if op == opNotEqual {
			invert(dst)
		}
		return
	}
	if op == opEqual || op == opNotEqual {
		setBits(dst, n, func(i int) bool { return bytes.Equal(a.str(i), b.str(i)) == (op == opEqual) })
		return
	}
	setBits(dst, n, func(i int) bool { return op.holds(bytes.Compare(a.str(i), b.str(i))) })
}

// equalString compares lengths first: most rows end there.
func equalString(dst []byte, a *vector, c []byte, n int) {
	clear(dst)
	want := int32(len(c))
	off := a.off[:n+1]
	for i := range n {
		from, to := off[i], off[i+1]
		if to-from == want && string(a.data[from:to]) == string(c) {
			dst[i>>3] |= 1 << (i & 7)
		}
	}
}

func resolveNullSafe(r *request) (impl, error) {
	t, args, err := comparison(r)
	if err != nil {
		return impl{}, err
	}
	return impl{t: typeBool(), args: args, params: []arrow.DataType{t}, exact: true, nulls: true, run: func(x *call) (vector, error) {
		a, b := &x.args[0], &x.args[1]
		out := vector{c: classBool, n: x.n}
		if a.c == classNull || b.c == classNull {
			out.bits = x.bitmap(x.n)
			setBits(out.bits, x.n, func(i int) bool { return a.nullAt(i) && b.nullAt(i) })
			return out, nil
		}
		bits, err := x.compare(a, b, opEqual)
		if err != nil || (a.valid == nil && b.valid == nil) {
			out.bits = bits
			return out, err
		}
		out.bits = x.bitmap(x.n)
		setBits(out.bits, x.n, func(i int) bool {
			an, bn := a.nullAt(i), b.nullAt(i)
			if an || bn {
				return an && bn
			}
			return bits[i>>3]>>(i&7)&1 == 1
		})
		return out, nil
	}}, nil
}

// nullAt is null for vectors of any class.
func (v *vector) nullAt(row int) bool { return v.c == classNull || v.null(row) }

func strcmp(x *call) (vector, error) {
	out := x.newVector(typeInt(), x.n)
	for i := range x.n {
		out.i[i] = int64(bytes.Compare(x.args[0].str(i), x.args[1].str(i)))
	}
	out.valid = x.valid
	return out, nil
}
