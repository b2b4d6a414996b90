package expr

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"
)

type arithOp uint8

const (
	opAdd arithOp = iota
	opSub
	opMul
)

func arithmeticFunctions() []function {
	arith := func(op arithOp) func(*request) (impl, error) {
		return func(r *request) (impl, error) { return resolveArith(r, op) }
	}
	bit := func(f func(a, b uint64) uint64) func(*request) (impl, error) {
		return asBits(fixed(typeUint(), bitKernel(f), typeUint(), typeUint()))
	}
	return []function{
		{name: "+", min: 2, max: 2, resolve: arith(opAdd)},
		{name: "-", min: 2, max: 2, resolve: arith(opSub)},
		{name: "*", min: 2, max: 2, resolve: arith(opMul)},
		{name: "/", min: 2, max: 2, resolve: resolveDivide},
		{name: "div", min: 2, max: 2, resolve: resolveIntDivide},
		{name: "%", min: 2, max: 2, resolve: resolveMod},
		{name: "mod", as: "%", min: 2, max: 2, resolve: resolveMod},
		{name: "neg", min: 1, max: 1, resolve: resolveNegate},
		{name: "&", min: 2, max: 2, resolve: bit(func(a, b uint64) uint64 { return a & b })},
		{name: "|", min: 2, max: 2, resolve: bit(func(a, b uint64) uint64 { return a | b })},
		{name: "^", min: 2, max: 2, resolve: bit(func(a, b uint64) uint64 { return a ^ b })},
		{name: "<<", min: 2, max: 2, resolve: bit(func(a, b uint64) uint64 { return a << b })},
		{name: ">>", min: 2, max: 2, resolve: bit(func(a, b uint64) uint64 { return a >> b })},
		{name: "~", min: 1, max: 1, resolve: asBits(fixed(typeUint(), mapUints(func(a uint64) uint64 { return ^a }), typeUint()))},
		{name: "bit_count", min: 1, max: 1, resolve: asBits(fixed(typeInt(), bitCount, typeUint()))},
	}
}

// asBits has signed arguments taken by their bit pattern.
func asBits(resolve func(*request) (impl, error)) func(*request) (impl, error) {
	return func(r *request) (impl, error) {
		im, err := resolve(r)
		im.mode = castExplicit
		return im, err
	}
}

func bitKernel(f func(a, b uint64) uint64) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(typeUint(), x.n)
		a, b := &x.args[0], &x.args[1]
		am, bm := a.mask(), b.mask()
		for i := range out.u {
			out.u[i] = f(a.u[i&am], b.u[i&bm])
		}
		out.valid = x.valid
		return out, nil
	}
}

func mapUints(f func(uint64) uint64) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(typeUint(), x.n)
		for i, u := range x.args[0].u[:x.n] {
			out.u[i] = f(u)
		}
		out.valid = x.valid
		return out, nil
	}
}

func bitCount(x *call) (vector, error) {
	out := x.newVector(typeInt(), x.n)
	for i, u := range x.args[0].u[:x.n] {
		out.i[i] = int64(bits.OnesCount64(u))
	}
	out.valid = x.valid
	return out, nil
}

// numericType is the type that a value counts as in arithmetic: text is a double, dates are numbers.
func numericType(t arrow.DataType) (arrow.DataType, bool) {
	switch c := classOf(t); c {
	case classNull, classBool:
		return typeInt(), true
	case classString:
		return typeFloat(), true
	case classDate:
		return typeInt(), true
	case classDatetime, classTimestamp, classTime:
		digits := int32(14)
		if c == classTime {
			digits = 9
		}
		if fsp := int32(fspOf(t)); fsp > 0 {
			return rawDecimal(digits+fsp, fsp), true
		}
		return typeInt(), true
	case classNested:
		return nil, false
	}
	return canonical(t), true
}

// numericArgs returns both argument types as numbers.
func (r *request) numericArgs() (a, b arrow.DataType, err error) {
	a, ok1 := numericType(r.types[0])
	b = a
	ok2 := true
	if len(r.types) > 1 {
		b, ok2 = numericType(r.types[1])
	}
	if !ok1 || !ok2 {
		return nil, nil, r.typesError(nil)
	}
	return a, b, nil
}

// unsignedArgs makes literals that are not negative unsigned beside an unsigned argument, so that one kernel serves.
func (r *request) unsignedArgs() (args []Expr, both bool) {
	args = append([]Expr(nil), r.args...)
	both = true
	for i, e := range args {
		if classOf(r.types[i]) == classUint {
			continue
		}
		lit, ok := e.(*Literal)
		if !ok || !lit.Value.IsValid() || classOf(lit.Type()) != classInt {
			both = false
			continue
		}
		v, err := literalVector(lit)
		if err != nil || v.i[0] < 0 {
			both = false
			continue
		}
		args[i] = &Literal{scalar.NewUint64Scalar(uint64(v.i[0]))}
	}
	return args, both
}

func resolveArith(r *request, op arithOp) (impl, error) {
	a, b, err := r.numericArgs()
	if err != nil {
		return impl{}, err
	}
	ca, cb := classOf(a), classOf(b)
	switch {
	case ca == classFloat || cb == classFloat:
		return impl{t: typeFloat(), params: []arrow.DataType{typeFloat()}, run: floatKernel(op)}, nil
	case ca.decimal() || cb.decimal():
		return resolveDecimalArith(r, a, b, op)
	case ca == classUint || cb == classUint:
		args, both := r.unsignedArgs()
		if both {
			return impl{t: typeUint(), args: args, params: []arrow.DataType{typeUint()}, run: uintKernel(op)}, nil
		}
		return impl{t: typeUint(), params: []arrow.DataType{a, b}, run: mixedKernel(op)}, nil
	}
	return impl{t: typeInt(), params: []arrow.DataType{typeInt()}, run: intKernel(op)}, nil
}

func (x *call) rangeError(t arrow.DataType) error { return overflow(t, x.source.String()) }

// validAt reports whether no argument of the row is NULL.
func (x *call) validAt(i int) bool { return x.valid == nil || x.valid[i>>3]>>(i&7)&1 == 1 }

func intKernel(op arithOp) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(typeInt(), x.n)
		out.valid = x.valid
		a, b, dst := &x.args[0], &x.args[1], out.i
		am, bm := a.mask(), b.mask()
		bad := int64(0)
		switch op {
		case opAdd:
			for i := range dst {
				p, q := a.i[i&am], b.i[i&bm]
				s := p + q
				dst[i] = s
				bad |= (p ^ s) & (q ^ s)
			}
		case opSub:
			for i := range dst {
				p, q := a.i[i&am], b.i[i&bm]
				s := p - q
				dst[i] = s
				bad |= (p ^ q) & (p ^ s)
			}
		case opMul:
			for i := range dst {
				p, q := a.i[i&am], b.i[i&bm]
				s, ok := mulInt(p, q)
				dst[i] = s
				if !ok {
					bad = -1
				}
			}
		}
		if bad < 0 {
			return out, x.checkInts(a, b, op)
		}
		return out, nil
	}
}

func mulInt(p, q int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(p), uint64(q))
	hi -= uint64(p>>63) & uint64(q)
	hi -= uint64(q>>63) & uint64(p)
	return int64(lo), int64(hi) == int64(lo)>>63
}

// checkInts finds out whether an overflow happened in a row that counts.
func (x *call) checkInts(a, b *vector, op arithOp) error {
	for i := range x.n {
		if !x.validAt(i) {
			continue
		}
		p, q := a.i[a.at(i)], b.i[b.at(i)]
		ok := true
		switch op {
		case opAdd:
			s := p + q
			ok = (p^s)&(q^s) >= 0
		case opSub:
			s := p - q
			ok = (p^q)&(p^s) >= 0
		case opMul:
			_, ok = mulInt(p, q)
		}
		if !ok {
			return x.rangeError(typeInt())
		}
	}
	return nil
}

func applyUint(p, q uint64, op arithOp) (uint64, bool) {
	switch op {
	case opAdd:
		s, c := bits.Add64(p, q, 0)
		return s, c == 0
	case opSub:
		s, c := bits.Sub64(p, q, 0)
		return s, c == 0
	}
	hi, lo := bits.Mul64(p, q)
	return lo, hi == 0
}

func uintKernel(op arithOp) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(typeUint(), x.n)
		out.valid = x.valid
		a, b := &x.args[0], &x.args[1]
		am, bm := a.mask(), b.mask()
		for i := range out.u {
			u, ok := applyUint(a.u[i&am], b.u[i&bm], op)
			if !ok && x.validAt(i) {
				return out, x.rangeError(typeUint())
			}
			out.u[i] = u
		}
		return out, nil
	}
}

// mixedKernel computes with a signed and an unsigned side: the result is unsigned.
func mixedKernel(op arithOp) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(typeUint(), x.n)
		out.valid = x.valid
		for i := range out.u {
			pn, pm := x.args[0].signMagnitude(i)
			qn, qm := x.args[1].signMagnitude(i)
			u, ok := mixedOp(pn, pm, qn, qm, op)
			if !ok && x.validAt(i) {
				return out, x.rangeError(typeUint())
			}
			out.u[i] = u
		}
		return out, nil
	}
}

func (v *vector) signMagnitude(i int) (neg bool, mag uint64) {
	i = v.at(i)
	if v.c == classUint {
		return false, v.u[i]
	}
	if n := v.i[i]; n < 0 {
		return true, -uint64(n)
	}
	return false, uint64(v.i[i])
}

func mixedOp(pn bool, pm uint64, qn bool, qm uint64, op arithOp) (uint64, bool) {
	if op == opMul {
		u, ok := applyUint(pm, qm, opMul)
		return u, ok && (u == 0 || pn == qn)
	}
	if op == opSub {
		qn = !qn && qm != 0
	}
	switch {
	case pn == qn:
		u, ok := applyUint(pm, qm, opAdd)
		return u, ok && (!pn || u == 0)
	case pn:
		return applyUint(qm, pm, opSub)
	}
	return applyUint(pm, qm, opSub)
}

func floatKernel(op arithOp) kernel {
	return func(x *call) (vector, error) {
		out := x.newVector(typeFloat(), x.n)
		out.valid = x.valid
		a, b, dst := &x.args[0], &x.args[1], out.f
		am, bm := a.mask(), b.mask()
		switch op {
		case opAdd:
			for i := range dst {
				dst[i] = a.f[i&am] + b.f[i&bm]
			}
		case opSub:
			for i := range dst {
				dst[i] = a.f[i&am] - b.f[i&bm]
			}
		case opMul:
			for i := range dst {
				dst[i] = a.f[i&am] * b.f[i&bm]
			}
		}
		return out, x.checkFloats(dst)
	}
}

// checkFloats refuses infinities that the operands did not hold.
func (x *call) checkFloats(dst []float64) error {
	for i, f := range dst {
		if f-f == 0 || !x.validAt(i) {
			continue
		}
		finite := true
		for k := range x.args {
			if v := &x.args[k]; v.c == classFloat {
				g := v.f[v.at(i)]
				finite = finite && g-g == 0
			}
		}
		if finite {
			return x.rangeError(typeFloat())
		}
	}
	return nil
}

func resolveNegate(r *request) (impl, error) {
	a, _, err := r.numericArgs()
	if err != nil {
		return impl{}, err
	}
	switch c := classOf(a); {
	case c == classFloat:
		return impl{t: typeFloat(), params: []arrow.DataType{typeFloat()}, run: func(x *call) (vector, error) {
			out := x.newVector(typeFloat(), x.n)
			out.valid = x.valid
			for i, f := range x.args[0].f[:x.n] {
				out.f[i] = -f
			}
			return out, nil
		}}, nil
	case c.decimal():
		return impl{t: a, params: []arrow.DataType{a}, exact: true, run: negateDecimals}, nil
	case c == classUint:
		return impl{t: typeInt(), params: []arrow.DataType{typeUint()}, run: negateUints}, nil
	}
	return impl{t: typeInt(), params: []arrow.DataType{typeInt()}, run: func(x *call) (vector, error) {
		out := x.newVector(typeInt(), x.n)
		out.valid = x.valid
		for i, n := range x.args[0].i[:x.n] {
			if n == math.MinInt64 && x.validAt(i) {
				return out, x.rangeError(typeInt())
			}
			out.i[i] = -n
		}
		return out, nil
	}}, nil
}

func negateUints(x *call) (vector, error) {
	out := x.newVector(typeInt(), x.n)
	out.valid = x.valid
	for i, u := range x.args[0].u[:x.n] {
		if u > 1<<63 && x.validAt(i) {
			return out, x.rangeError(typeInt())
		}
		out.i[i] = -int64(u)
	}
	return out, nil
}

// nullWhere clears validity bits of the rows that f names.
func (x *call) nullWhere(out *vector, f func(i int) bool) {
	owned := false
	for i := range out.n {
		if f(i) {
			if !owned {
				x.ownValid(out)
				owned = true
			}
			out.valid[i>>3] &^= 1 << (i & 7)
		}
	}
}

func resolveDivide(r *request) (impl, error) {
	a, b, err := r.numericArgs()
	if err != nil {
		return impl{}, err
	}
	if classOf(a) != classFloat && classOf(b) != classFloat {
		return resolveDecimalDivide(r, a, b)
	}
	return impl{t: typeFloat(), params: []arrow.DataType{typeFloat()}, run: func(x *call) (vector, error) {
		out := x.newVector(typeFloat(), x.n)
		out.valid = x.valid
		a, b := &x.args[0], &x.args[1]
		am, bm := a.mask(), b.mask()
		zero := false
		for i := range out.f {
			q := b.f[i&bm]
			out.f[i] = a.f[i&am] / q
			zero = zero || q == 0
		}
		if zero {
			x.nullWhere(&out, func(i int) bool { return b.f[i&bm] == 0 })
			for i := range out.f {
				if b.f[i&bm] == 0 {
					out.f[i] = 0
				}
			}
		}
		return out, x.checkFloats(out.f)
	}}, nil
}

func resolveIntDivide(r *request) (impl, error) {
	a, b, err := r.numericArgs()
	if err != nil {
		return impl{}, err
	}
	t := typeInt()
	ca, cb := classOf(a), classOf(b)
	if ca == classUint || cb == classUint {
		t = typeUint()
	}
	if ca == classFloat || cb == classFloat || ca.decimal() || cb.decimal() {
		return resolveDecimalIntDivide(a, b, t)
	}
	return impl{t: t, params: []arrow.DataType{a, b}, run: func(x *call) (vector, error) {
		out := x.newVector(t, x.n)
		out.valid = x.valid
		out.clearValues()
		var err error
		x.each(&out, func(i int) bool {
			pn, pm := x.args[0].signMagnitude(i)
			qn, qm := x.args[1].signMagnitude(i)
			if qm == 0 {
				return false
			}
			err = x.putSigned(&out, i, pn != qn, pm/qm, err)
			return true
		})
		return out, err
	}}, nil
}

// putSigned stores a sign and magnitude; the first error stays.
func (x *call) putSigned(out *vector, i int, neg bool, mag uint64, err error) error {
	switch {
	case err != nil:
		return err
	case out.c == classUint:
		if neg && mag != 0 {
			return x.rangeError(typeUint())
		}
		out.u[i] = mag
	case neg && mag > 1<<63, !neg && mag > math.MaxInt64:
		return x.rangeError(typeInt())
	case neg:
		out.i[i] = -int64(mag)
	default:
		out.i[i] = int64(mag)
	}
	return nil
}

func resolveMod(r *request) (impl, error) {
	a, b, err := r.numericArgs()
	if err != nil {
		return impl{}, err
	}
	ca, cb := classOf(a), classOf(b)
	switch {
	case ca == classFloat || cb == classFloat:
		return impl{t: typeFloat(), params: []arrow.DataType{typeFloat()}, run: func(x *call) (vector, error) {
			out := x.newVector(typeFloat(), x.n)
			out.valid = x.valid
			out.clearValues()
			x.each(&out, func(i int) bool {
				q := x.args[1].f[x.args[1].at(i)]
				if q == 0 {
					return false
				}
				out.f[i] = math.Mod(x.args[0].f[x.args[0].at(i)], q)
				return true
			})
			return out, nil
		}}, nil
	case ca.decimal() || cb.decimal():
		return resolveDecimalMod(a, b)
	}
	t := typeInt()
	if ca == classUint {
		t = typeUint()
	}
	return impl{t: t, params: []arrow.DataType{a, b}, run: func(x *call) (vector, error) {
		out := x.newVector(t, x.n)
		out.valid = x.valid
		out.clearValues()
		var err error
		x.each(&out, func(i int) bool {
			pn, pm := x.args[0].signMagnitude(i)
			_, qm := x.args[1].signMagnitude(i)
			if qm == 0 {
				return false
			}
			err = x.putSigned(&out, i, pn, pm%qm, err)
			return true
		})
		return out, err
	}}, nil
}
