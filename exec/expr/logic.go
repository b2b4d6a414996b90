package expr

import (
	"github.com/apache/arrow-go/v18/arrow"
)

func logicFunctions() []function {
	boolArgs := func(run kernel, lazy kernel) func(*request) (impl, error) {
		return func(r *request) (impl, error) {
			params := []arrow.DataType{typeBool()}
			if err := r.castable(params); err != nil {
				return impl{}, err
			}
			return impl{t: typeBool(), params: params, run: run, lazy: lazy, nulls: lazy != nil}, nil
		}
	}
	fs := []function{
		{name: "and", min: 1, max: -1, resolve: boolArgs(nil, evalAnd)},
		{name: "or", min: 1, max: -1, resolve: boolArgs(nil, evalOr)},
		{name: "not", min: 1, max: 1, resolve: boolArgs(evalNot, nil)},
		{name: "xor", min: 2, max: 2, resolve: boolArgs(evalXor, nil)},
		{name: "is_null", min: 1, max: 1, resolve: resolveIs(func(x *call, null, _ []byte) []byte { return null })},
		{name: "is_not_null", min: 1, max: 1, resolve: resolveIs(func(x *call, null, _ []byte) []byte { invert(null); return null })},
		{name: "is_true", min: 1, max: 1, resolve: resolveIsTruth(true)},
		{name: "is_false", min: 1, max: 1, resolve: resolveIsTruth(false)},
	}
	for name, of := range map[string]string{"is_not_true": "is_true", "is_not_false": "is_false"} {
		fs = append(fs, function{name: name, min: 1, max: 1, resolve: func(r *request) (impl, error) {
			e, err := NewCall(of, r.args...)
			if err == nil {
				e, err = NewCall("not", e)
			}
			return impl{t: typeBool(), rewrite: e}, err
		}})
	}
	return append(fs, function{name: "is_unknown", as: "is_null", min: 1, max: 1, resolve: resolveIs(func(x *call, null, _ []byte) []byte { return null })},
		function{name: "is_not_unknown", as: "is_not_null", min: 1, max: 1, resolve: resolveIs(func(x *call, null, _ []byte) []byte { invert(null); return null })},
		function{name: "isnull", as: "is_null", min: 1, max: 1, resolve: resolveIs(func(x *call, null, _ []byte) []byte { return null })})
}

// truth splits a boolean vector into rows that are TRUE and rows that are FALSE.
func (s *state) truth(v *vector, n int) (yes, no []byte) {
	yes, no = s.bitmap(n), s.bitmap(n)
	if v.konst || v.c == classNull {
		clear(yes)
		clear(no)
		if !v.nullConst() {
			fill := yes
			if !v.bit(0) {
				fill = no
			}
			for i := range fill {
				fill[i] = 0xff
			}
		}
		return yes, no
	}
	for w := range len(yes) / 8 {
		b, ok := word(v.bits, w), ^uint64(0)
		if v.valid != nil {
			ok = word(v.valid, w)
		}
		putWord(yes, w, b&ok)
		putWord(no, w, ^b&ok)
	}
	return yes, no
}

func evalAnd(x *call) (vector, error) { return x.shortCircuit(true) }
func evalOr(x *call) (vector, error)  { return x.shortCircuit(false) }

// sparseShare: once fewer than 1/sparseShare of the rows are undecided, costly conditions are computed for those alone.
const sparseShare = 8

// shortCircuit evaluates AND (identity true) or OR (identity false) from left to right. Rows already decided are left out where the next condition
// is costly and few rows remain, and where it fails on all rows together (I5).
func (x *call) shortCircuit(identity bool) (vector, error) {
	n := x.n
	open := x.ones(n)     // every condition so far equals identity
	decided := x.zeros(n) // some condition is the opposite of identity
	for k, arg := range x.nodes {
		left := n - countBits(decided, n)
		if left == 0 {
			break
		}
		yes, no, err := x.condition(arg, decided, left, k > 0)
		if err != nil {
			return vector{}, err
		}
		if !identity {
			yes, no = no, yes
		}
		for w := range len(open) / 8 {
			putWord(open, w, word(open, w)&word(yes, w))
			putWord(decided, w, word(decided, w)|word(no, w))
		}
	}
	out := vector{c: classBool, t: typeBool(), n: n, bits: open}
	if !identity {
		out.bits = decided
	}
	valid := x.bitmap(n)
	for w := range len(valid) / 8 {
		putWord(valid, w, word(open, w)|word(decided, w))
	}
	if countBits(valid, n) != n {
		out.valid = valid
	}
	return out, nil
}

// condition evaluates one condition for the rows that are not decided; for the others the answer is unknown, which decides nothing.
func (x *call) condition(arg node, decided []byte, left int, some bool) (yes, no []byte, err error) {
	if !some || left == x.n || !(left*sparseShare < x.n && costly(arg)) {
		v, err := arg.eval(x.state)
		if err == nil {
			yes, no = x.truth(&v, x.n)
			return yes, no, nil
		}
		if left == x.n {
			return nil, nil, err
		}
	}
	rest := x.bitmap(x.n)
	copy(rest, decided)
	invert(rest)
	idx := selected(makeSlice[int32](x.arena, left)[:0], rest, x.n)
	v, err := arg.eval(x.only(idx))
	if err != nil {
		return nil, nil, err
	}
	subYes, subNo := x.truth(&v, len(idx))
	return x.scatterBits(subYes, idx), x.scatterBits(subNo, idx), nil
}

// scatterBits spreads bit i to row idx[i].
func (x *call) scatterBits(src []byte, idx []int32) []byte {
	dst := x.zeros(x.n)
	for i, row := range idx {
		dst[row>>3] |= (src[i>>3] >> (i & 7) & 1) << (row & 7)
	}
	return dst
}

// costly tells whether computing a node for a few gathered rows is cheaper than for all rows where they lie.
func costly(n node) bool {
	c, ok := n.(*callNode)
	if !ok {
		return false
	}
	switch c.name {
	case "=", "<>", "<", "<=", ">", ">=", "is_null", "is_not_null", "not":
		for _, a := range c.args {
			if costly(a) {
				return true
			}
		}
		return len(c.args) > 0 && classOf(c.args[0].typ()) == classString
	case "and", "or":
		for _, a := range c.args {
			if costly(a) {
				return true
			}
		}
		return false
	}
	return true
}

func evalNot(x *call) (vector, error) {
	src := x.args[0].bits
	bits := x.bitmap(x.n)
	copy(bits, src[:len(bits)])
	invert(bits)
	return vector{c: classBool, n: x.n, bits: bits, valid: x.valid}, nil
}

func evalXor(x *call) (vector, error) {
	bits := x.bitmap(x.n)
	a, b := &x.args[0], &x.args[1]
	setBits(bits, x.n, func(i int) bool { return a.bit(i) != b.bit(i) })
	return vector{c: classBool, n: x.n, bits: bits, valid: x.valid}, nil
}

// nullBits marks the rows where v is NULL.
func (x *call) nullBits(v *vector) []byte {
	if v.konst || v.c == classNull {
		if v.nullConst() {
			return x.ones(x.n)
		}
		return x.zeros(x.n)
	}
	if v.valid == nil {
		return x.zeros(x.n)
	}
	bits := x.bitmap(x.n)
	copy(bits, v.valid[:len(bits)])
	invert(bits)
	return bits
}

func resolveIs(answer func(x *call, null, bits []byte) []byte) func(r *request) (impl, error) {
	return func(*request) (impl, error) {
		return impl{t: typeBool(), nulls: true, exact: true, run: func(x *call) (vector, error) {
			return vector{c: classBool, n: x.n, bits: answer(x, x.nullBits(&x.args[0]), nil)}, nil
		}}, nil
	}
}

func resolveIsTruth(want bool) func(r *request) (impl, error) {
	return func(r *request) (impl, error) {
		params := []arrow.DataType{typeBool()}
		if err := r.castable(params); err != nil {
			return impl{}, err
		}
		return impl{t: typeBool(), params: params, nulls: true, run: func(x *call) (vector, error) {
			yes, no := x.truth(&x.args[0], x.n)
			if !want {
				yes = no
			}
			return vector{c: classBool, n: x.n, bits: yes}, nil
		}}, nil
	}
}
