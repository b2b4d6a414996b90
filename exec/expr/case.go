package expr

import (
	"bytes"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

func caseFunctions() []function {
	rewriteCase := func(build func(a []Expr) ([]Expr, error)) func(r *request) (impl, error) {
		return func(r *request) (impl, error) {
			args, err := build(r.args)
			if err != nil {
				return impl{}, err
			}
			e, err := NewCall("case", args...)
			if err != nil {
				return impl{}, err
			}
			return impl{t: e.Type(), rewrite: e}, nil
		}
	}
	return []function{
		{name: "case", min: 2, max: -1, resolve: resolveCase},
		{name: "if", min: 3, max: 3, resolve: rewriteCase(func(a []Expr) ([]Expr, error) { return a, nil })},
		{name: "nullif", min: 2, max: 2, resolve: rewriteCase(func(a []Expr) ([]Expr, error) {
			eq, err := NewCall("=", a[0], a[1])
			return []Expr{eq, Null(a[0].Type()), a[0]}, err
		})},
		{name: "coalesce", min: 1, max: -1, resolve: resolveCoalesce},
		{name: "ifnull", as: "coalesce", min: 2, max: 2, resolve: resolveCoalesce},
		{name: "nvl", as: "coalesce", min: 2, max: 2, resolve: resolveCoalesce},
		{name: "greatest", min: 2, max: -1, resolve: func(r *request) (impl, error) { return resolveExtreme(r, opGreater) }},
		{name: "least", min: 2, max: -1, resolve: func(r *request) (impl, error) { return resolveExtreme(r, opLess) }},
		{name: "interval", min: 2, max: -1, resolve: resolveInterval},
		{name: "elt", min: 2, max: -1, resolve: resolveElt},
		{name: "field", min: 2, max: -1, resolve: resolveField},
	}
}

func resolveCase(r *request) (impl, error) {
	var values []arrow.DataType
	params := make([]arrow.DataType, len(r.args))
	for i := range r.args {
		if i%2 == 1 || i == len(r.args)-1 {
			values = append(values, r.types[i])
		} else {
			params[i] = typeBool()
		}
	}
	t := unify(values)
	for i := range params {
		if params[i] == nil {
			params[i] = t
		}
	}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: t, params: params, lazy: evalCase}, nil
}

// branches gathers which branch answers each row.
type branches struct {
	x      *call
	which  []int32 // branch of each row, -1 = none: NULL
	pos    []int32 // place of the row's value in that branch's vector
	values []vector
}

func (x *call) newBranches() *branches {
	b := &branches{x: x, which: makeSlice[int32](x.arena, x.n), pos: makeSlice[int32](x.arena, x.n)}
	for i := range b.which {
		b.which[i] = -1
	}
	return b
}

// add evaluates a branch for the rows it answers.
func (b *branches) add(n node, rows []int32) error {
	if len(rows) == 0 {
		return nil
	}
	k := int32(len(b.values))
	x := b.x
	v, dense, err := x.evalRows(n, rows)
	if err != nil {
		return err
	}
	for j, row := range rows {
		b.which[row] = k
		switch {
		case v.konst:
			b.pos[row] = 0
		case dense:
			b.pos[row] = row
		default:
			b.pos[row] = int32(j)
		}
	}
	b.values = append(b.values, v)
	return nil
}

// evalRows evaluates a node for some rows: for all (dense) where that is as cheap and does not fail, for those alone otherwise (I5).
func (x *call) evalRows(n node, rows []int32) (v vector, dense bool, err error) {
	_, isCall := n.(*callNode)
	if len(rows) == x.n || !isCall || len(rows) > x.n/2 {
		v, err = n.eval(x.state)
		if err == nil || len(rows) == x.n {
			return v, true, err
		}
	}
	v, err = n.eval(x.only(rows))
	return v, false, err
}

func evalCase(x *call) (vector, error) {
	b := x.newBranches()
	rest := x.ones(x.n)
	nodes := x.nodes
	for ; len(nodes) >= 2; nodes = nodes[2:] {
		left := countBits(rest, x.n)
		if left == 0 {
			break
		}
		decided := x.bitmap(x.n)
		copy(decided, rest)
		invert(decided)
		yes, _, err := x.condition(nodes[0], decided, left, true)
		if err != nil {
			return vector{}, err
		}
		for w := range len(rest) / 8 {
			hit := word(yes, w) & word(rest, w)
			putWord(yes, w, hit)
			putWord(rest, w, word(rest, w)&^hit)
		}
		if err := b.add(nodes[1], selected(nil, yes, x.n)); err != nil {
			return vector{}, err
		}
	}
	if len(nodes) == 1 {
		if err := b.add(nodes[0], selected(nil, rest, x.n)); err != nil {
			return vector{}, err
		}
	}
	return b.merge(x.t)
}

func resolveCoalesce(r *request) (impl, error) {
	t := unify(r.types)
	params := []arrow.DataType{t}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: t, params: params, lazy: evalCoalesce}, nil
}

func evalCoalesce(x *call) (vector, error) {
	b := x.newBranches()
	rows := x.rangeIndex(x.n)
	for k, n := range x.nodes {
		if len(rows) == 0 {
			break
		}
		if k == len(x.nodes)-1 {
			if err := b.add(n, rows); err != nil {
				return vector{}, err
			}
			break
		}
		v, dense, err := x.evalRows(n, rows)
		if err != nil {
			return vector{}, err
		}
		if k == 0 && v.valid == nil && v.c != classNull {
			return v, nil
		}
		var left []int32
		for j, row := range rows {
			at := int32(j)
			if dense {
				at = row
			}
			if v.nullAt(int(at)) {
				left = append(left, row)
				continue
			}
			b.which[row], b.pos[row] = int32(len(b.values)), int32(v.at(int(at)))
		}
		b.values = append(b.values, v)
		rows = left
	}
	return b.merge(x.t)
}

// merge picks every row's value from its branch.
func (b *branches) merge(t arrow.DataType) (vector, error) {
	x := b.x
	out := x.newVector(t, x.n)
	out.t = canonical(t)
	out.clearValues()
	if out.c == classNull {
		return x.nullVector(t), nil
	}
	if out.c == classNested {
		return b.mergeNested(t)
	}
	if out.c == classString {
		return b.mergeStrings(out)
	}
	out.valid = x.ones(x.n)
	for i, k := range b.which {
		if k < 0 || b.values[k].nullAt(int(b.pos[i])) {
			out.valid[i>>3] &^= 1 << (i & 7)
			continue
		}
		v, p := &b.values[k], b.pos[i]
		switch out.c {
		case classBool:
			if v.bit(int(p)) {
				out.bits[i>>3] |= 1 << (i & 7)
			}
		case classUint:
			out.u[i] = v.u[p]
		case classFloat:
			out.f[i] = v.f[p]
		case classDecimal:
			out.d[i] = v.d[p]
		case classWide:
			out.w[i] = v.w[p]
		default:
			out.i[i] = v.i[p]
		}
	}
	return out, nil
}

func (b *branches) mergeStrings(out vector) (vector, error) {
	w := b.x.strWriter(out.n)
	out.valid = b.x.ones(out.n)
	for i, k := range b.which {
		if k < 0 || b.values[k].nullAt(int(b.pos[i])) {
			out.valid[i>>3] &^= 1 << (i & 7)
		} else {
			w.buf = append(w.buf, b.values[k].str(int(b.pos[i]))...)
		}
		if err := w.end(i); err != nil {
			return out, err
		}
	}
	out.off, out.data = w.off, w.buf
	return out, nil
}

func (b *branches) mergeNested(t arrow.DataType) (vector, error) {
	x := b.x
	arrs := make([]arrow.Array, 0, len(b.values))
	base := make([]int32, 0, len(b.values))
	total := 0
	for i := range b.values {
		a := b.values[i].arr
		if b.values[i].c == classNull {
			a = x.keep(makeNulls(t, max(1, b.values[i].n)))
		}
		base = append(base, int32(total))
		total += a.Len()
		arrs = append(arrs, a)
	}
	if len(arrs) == 0 || total > math.MaxInt32 {
		return x.nullVector(t), nil
	}
	all, err := array.Concatenate(arrs, memory.DefaultAllocator)
	if err != nil {
		return vector{}, errs.New(errs.ErrInternal, "merging branches: %w", err)
	}
	x.made(all)
	idx := makeSlice[int32](x.arena, x.n)
	for i, k := range b.which {
		idx[i] = -1
		if k >= 0 {
			idx[i] = base[k] + b.pos[i]
		}
	}
	whole, err := x.load(all)
	if err != nil {
		return vector{}, err
	}
	return x.gather(&whole, idx)
}

func resolveExtreme(r *request, op compareOp) (impl, error) {
	t := unify(r.types)
	c := classOf(t)
	if c == classNested {
		return impl{}, r.typesError(nil)
	}
	return impl{t: t, params: []arrow.DataType{t}, run: func(x *call) (vector, error) {
		b := x.newBranches()
		b.values = append(b.values, x.args...)
		for i := range x.n {
			if x.valid != nil && x.valid[i>>3]>>(i&7)&1 == 0 {
				continue
			}
			best := 0
			for k := 1; k < len(x.args); k++ {
				if op.holds(compareValues(&x.args[k], i, &x.args[best], i)) {
					best = k
				}
			}
			b.which[i], b.pos[i] = int32(best), int32(x.args[best].at(i))
		}
		return b.merge(x.t)
	}}, nil
}

// compareValues is the three-way comparison of two values of one class, neither NULL.
func compareValues(a *vector, i int, b *vector, j int) int {
	i, j = a.at(i), b.at(j)
	switch a.c {
	case classBool:
		return int(b2u(a.bit(i))) - int(b2u(b.bit(j)))
	case classUint:
		return compareOrdered(a.u[i], b.u[j])
	case classFloat:
		return compareOrdered(a.f[i], b.f[j])
	case classDecimal:
		return cmp128(a.d[i], b.d[j])
	case classWide:
		return a.w[i].Cmp(b.w[j])
	case classString:
		return bytes.Compare(a.str(i), b.str(j))
	}
	return compareOrdered(a.i[i], b.i[j])
}

func compareOrdered[T ordered](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// resolveInterval is INTERVAL(n, n1, n2, ...): how many of the rising limits are at most n; -1 for NULL.
func resolveInterval(r *request) (impl, error) {
	return impl{t: typeInt(), params: []arrow.DataType{typeFloat()}, nulls: true, run: func(x *call) (vector, error) {
		out := x.newVector(typeInt(), x.n)
		for i := range x.n {
			if x.args[0].nullAt(i) {
				out.i[i] = -1
				continue
			}
			f, k := x.args[0].f[x.args[0].at(i)], 1
			for k < len(x.args) && !x.args[k].nullAt(i) && x.args[k].f[x.args[k].at(i)] <= f {
				k++
			}
			out.i[i] = int64(k - 1)
		}
		return out, nil
	}}, nil
}

func resolveElt(r *request) (impl, error) {
	params := []arrow.DataType{typeInt(), typeString()}
	if err := r.castable(params); err != nil {
		return impl{}, err
	}
	return impl{t: typeString(), params: params, nulls: true, run: func(x *call) (vector, error) {
		b := x.newBranches()
		b.values = x.args
		for i := range x.n {
			if k := x.args[0]; !k.nullAt(i) {
				if at := k.i[k.at(i)]; at >= 1 && at < int64(len(x.args)) {
					b.which[i], b.pos[i] = int32(at), int32(x.args[at].at(i))
				}
			}
		}
		return b.merge(typeString())
	}}, nil
}

// resolveField is FIELD(x, a, b, ...): the place of x among the others, 0 where it is NULL or not there.
func resolveField(r *request) (impl, error) {
	t := unify(r.types)
	if c := classOf(t); c == classNested {
		return impl{}, r.typesError(nil)
	}
	return impl{t: typeInt(), params: []arrow.DataType{t}, nulls: true, run: func(x *call) (vector, error) {
		out := x.newVector(typeInt(), x.n)
		for i := range x.n {
			out.i[i] = 0
			for k := 1; k < len(x.args) && !x.args[0].nullAt(i); k++ {
				if !x.args[k].nullAt(i) && compareValues(&x.args[0], i, &x.args[k], i) == 0 {
					out.i[i] = int64(k)
					break
				}
			}
		}
		return out, nil
	}}, nil
}
