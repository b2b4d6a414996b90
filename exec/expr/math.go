package expr

import (
	"hash/crc32"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
)

func mathFunctions() []function { //nolint:funlen // a flat table
	always := func(f func(float64) float64) func(float64) (float64, bool) {
		return func(a float64) (float64, bool) { return f(a), true }
	}
	positive := func(f func(float64) float64) func(float64) (float64, bool) {
		return func(a float64) (float64, bool) {
			if a <= 0 {
				return 0, false
			}
			return f(a), true
		}
	}
	unit := func(f func(float64) float64) func(float64) (float64, bool) {
		return func(a float64) (float64, bool) {
			if a < -1 || a > 1 {
				return 0, false
			}
			return f(a), true
		}
	}
	pow := func(a, b float64) (float64, bool) { return math.Pow(a, b), true }
	return []function{
		{name: "abs", min: 1, max: 1, resolve: resolveAbs},
		{name: "ceil", min: 1, max: 1, resolve: resolveWhole(true)},
		{name: "ceiling", as: "ceil", min: 1, max: 1, resolve: resolveWhole(true)},
		{name: "floor", min: 1, max: 1, resolve: resolveWhole(false)},
		{name: "round", min: 1, max: 2, resolve: resolveRound(true)},
		{name: "truncate", min: 2, max: 2, resolve: resolveRound(false)},
		{name: "sign", min: 1, max: 1, resolve: resolveSign},
		{name: "sqrt", min: 1, max: 1, resolve: float1(func(a float64) (float64, bool) { return math.Sqrt(a), !(a < 0) })},
		{name: "cbrt", min: 1, max: 1, resolve: float1(always(math.Cbrt))},
		{name: "pow", min: 2, max: 2, resolve: float2(pow)},
		{name: "power", as: "pow", min: 2, max: 2, resolve: float2(pow)},
		{name: "exp", min: 1, max: 1, resolve: float1(always(math.Exp))},
		{name: "ln", min: 1, max: 1, resolve: float1(positive(math.Log))},
		{name: "log", min: 1, max: 2, resolve: resolveLog},
		{name: "log2", min: 1, max: 1, resolve: float1(positive(math.Log2))},
		{name: "log10", min: 1, max: 1, resolve: float1(positive(math.Log10))},
		{name: "sin", min: 1, max: 1, resolve: float1(always(math.Sin))},
		{name: "cos", min: 1, max: 1, resolve: float1(always(math.Cos))},
		{name: "tan", min: 1, max: 1, resolve: float1(always(math.Tan))},
		{name: "cot", min: 1, max: 1, resolve: float1(func(a float64) (float64, bool) { return 1 / math.Tan(a), true })},
		{name: "asin", min: 1, max: 1, resolve: float1(unit(math.Asin))},
		{name: "acos", min: 1, max: 1, resolve: float1(unit(math.Acos))},
		{name: "atan", min: 1, max: 2, resolve: resolveAtan},
		{name: "atan2", as: "atan", min: 1, max: 2, resolve: resolveAtan},
		{name: "degrees", min: 1, max: 1, resolve: float1(func(a float64) (float64, bool) { return a * (180 / math.Pi), true })},
		{name: "radians", min: 1, max: 1, resolve: float1(func(a float64) (float64, bool) { return a * (math.Pi / 180), true })},
		{name: "pi", min: 0, max: 0, resolve: func(*request) (impl, error) {
			l, err := NewLiteral(math.Pi)
			return impl{t: typeFloat(), rewrite: l}, err
		}},
		{name: "crc32", min: 1, max: 1, resolve: fixed(typeUint(), func(x *call) (vector, error) {
			return x.uints(func(i int) (uint64, bool) { return uint64(crc32.ChecksumIEEE(x.args[0].str(i))), true })
		}, typeString())},
		{name: "rand", min: 0, max: 1, volatile: true, resolve: resolveRand},
	}
}

func resolveLog(r *request) (impl, error) {
	if len(r.args) == 1 {
		return float1(func(a float64) (float64, bool) { return math.Log(max(a, 0)), a > 0 })(r)
	}
	return float2(func(base, a float64) (float64, bool) {
		if base <= 0 || base == 1 || a <= 0 {
			return 0, false
		}
		return math.Log(a) / math.Log(base), true
	})(r)
}

func resolveAtan(r *request) (impl, error) {
	if len(r.args) == 1 {
		return float1(func(a float64) (float64, bool) { return math.Atan(a), true })(r)
	}
	return float2(func(a, b float64) (float64, bool) { return math.Atan2(a, b), true })(r)
}

// resolveRand is RAND([seed]): a new number for every row; a seed gives the same numbers again within one batch.
func resolveRand(r *request) (impl, error) {
	return impl{t: typeFloat(), params: []arrow.DataType{typeInt()}, nulls: true, run: func(x *call) (vector, error) {
		next := rand.Float64 //nolint:gosec // SQL's RAND is no secret
		if len(x.args) == 1 && !x.args[0].nullAt(0) {
			seed := uint64(x.args[0].i[0])
			next = rand.New(rand.NewPCG(seed, seed)).Float64 //nolint:gosec // as above
		}
		out := x.newVector(typeFloat(), x.n)
		for i := range out.f {
			out.f[i] = next()
		}
		return out, nil
	}}, nil
}

func resolveSign(r *request) (impl, error) {
	num, ok := numericType(r.types[0])
	if !ok {
		return impl{}, r.typesError(nil)
	}
	return impl{t: typeInt(), params: []arrow.DataType{num}, exact: true, run: func(x *call) (vector, error) {
		v := &x.args[0]
		return x.ints(func(i int) (int64, bool, error) {
			switch v.c {
			case classUint:
				return int64(min(v.u[v.at(i)], 1)), true, nil
			case classFloat:
				return int64(compareOrdered(v.f[v.at(i)], 0)), true, nil
			case classDecimal, classWide:
				return int64(v.big(i).Sign()), true, nil
			}
			return int64(compareOrdered(v.i[v.at(i)], 0)), true, nil
		})
	}}, nil
}

func resolveAbs(r *request) (impl, error) {
	num, ok := numericType(r.types[0])
	if !ok {
		return impl{}, r.typesError(nil)
	}
	return impl{t: num, params: []arrow.DataType{num}, exact: true, run: func(x *call) (vector, error) {
		v := &x.args[0]
		out := x.newVector(num, x.n)
		out.valid = x.valid
		for i := range x.n {
			switch j := v.at(i); v.c {
			case classUint:
				out.u[i] = v.u[j]
			case classFloat:
				out.f[i] = math.Abs(v.f[j])
			case classDecimal:
				out.d[i] = v.d[j].Abs()
			case classWide:
				out.w[i] = v.w[j].Abs()
			default:
				if v.i[j] == math.MinInt64 && x.validAt(i) {
					return out, x.rangeError(typeInt())
				}
				out.i[i] = max(v.i[j], -v.i[j])
			}
		}
		return out, nil
	}}, nil
}

// resolveWhole is CEIL and FLOOR: integers stay, decimals of up to 18 digits become BIGINT, wider ones decimals without fraction.
func resolveWhole(up bool) func(r *request) (impl, error) {
	return func(r *request) (impl, error) {
		num, ok := numericType(r.types[0])
		if !ok {
			return impl{}, r.typesError(nil)
		}
		switch c := classOf(num); {
		case c.integer():
			return impl{t: num, params: []arrow.DataType{num}, run: func(x *call) (vector, error) { return x.args[0], nil }}, nil
		case c == classFloat:
			f := math.Floor
			if up {
				f = math.Ceil
			}
			return float1(func(a float64) (float64, bool) { return f(a), true })(r)
		}
		p, s, _ := digits(num)
		t := typeInt()
		if p-s >= 18 {
			t = typeDecimal(p-s+1, 0)
		}
		return impl{t: t, params: []arrow.DataType{num}, exact: true, run: func(x *call) (vector, error) {
			out := x.newVector(t, x.n)
			out.valid = x.valid
			out.clearValues()
			by := bigPow10(x.args[0].scale())
			x.each(&out, func(i int) bool {
				n := x.args[0].big(i)
				m := new(big.Int)
				q, _ := new(big.Int).DivMod(n, by, m) // floor, as by is positive
				if up && m.Sign() != 0 {
					q.Add(q, big.NewInt(1))
				}
				if out.c == classInt {
					out.i[i] = q.Int64()
				} else {
					out.putBig(i, q)
				}
				return true
			})
			return out, nil
		}}, nil
	}
}

// resolveRound is ROUND(x[, d]) and TRUNCATE(x, d). A decimal with constant d has that scale; with d of a column it keeps its own.
func resolveRound(round bool) func(r *request) (impl, error) {
	return func(r *request) (impl, error) {
		num, ok := numericType(r.types[0])
		if !ok {
			return impl{}, r.typesError(nil)
		}
		params := []arrow.DataType{num, typeInt()}
		if err := r.castable(params); err != nil {
			return impl{}, err
		}
		switch c := classOf(num); {
		case c == classFloat:
			return impl{t: num, params: params, run: roundFloats(round)}, nil
		case c.integer():
			return impl{t: num, params: params, run: roundInts(round)}, nil
		}
		p, s, _ := digits(num)
		scale, carries := int32(0), round
		if len(r.args) == 2 {
			scale = s
			if lit, ok := r.literal(1); ok && lit.Value.IsValid() {
				if v, err := literalVector(lit); err == nil && v.c.integer() {
					d, _ := newState().intOf(&v, 0, castImplicit)
					scale = min(s, int32(min(max(d, 0), decimalScaleMax)))
					carries = round && d < int64(s)
				}
			}
		}
		t := typeDecimal(p-s+scale+b32(carries), scale)
		return impl{t: t, params: params, exact: true, run: roundDecimals(round)}, nil
	}
}

func b32(b bool) int32 { return int32(b2u(b)) }

func roundFloats(round bool) kernel {
	return func(x *call) (vector, error) {
		v := &x.args[0]
		return x.floats(func(i int) (float64, bool) { return roundFloat(v.f[v.at(i)], x.intArg(1, i, 0), round), true })
	}
}

// roundFloat rounds half to even, as MySQL does for doubles.
func roundFloat(f float64, d int64, round bool) float64 {
	whole := math.Trunc
	if round {
		whole = math.RoundToEven
	}
	d = min(max(d, -400), 400)
	scale := math.Pow(10, math.Abs(float64(d)))
	switch {
	case math.IsInf(scale, 0) && d < 0:
		return 0
	case d < 0:
		return whole(f/scale) * scale
	}
	if up := f * scale; !math.IsInf(up, 0) && !math.IsInf(scale, 0) {
		return whole(up) / scale
	}
	return f
}

func roundInts(round bool) kernel {
	return func(x *call) (vector, error) {
		v := &x.args[0]
		out := *v
		if len(x.args) == 1 {
			return out, nil
		}
		out = x.newVector(x.t, x.n)
		out.valid = x.valid
		out.clearValues()
		var err error
		x.each(&out, func(i int) bool {
			d := x.intArg(1, i, 0)
			neg, mag := v.signMagnitude(i)
			if d < 0 {
				mag = roundUint(mag, -d, round)
			}
			err = x.putSigned(&out, i, neg, mag, err)
			return true
		})
		return out, err
	}
}

func roundUint(mag uint64, d int64, round bool) uint64 {
	if d > 19 {
		return 0
	}
	by := uint64(1)
	for range d {
		by *= 10
	}
	r := mag % by
	q := mag - r
	if round && r >= by-r && q <= math.MaxUint64-by {
		q += by
	}
	return q
}

func roundDecimals(round bool) kernel {
	return func(x *call) (vector, error) {
		v := &x.args[0]
		out := x.newVector(x.t, x.n)
		out.t, out.valid = x.t, x.valid
		out.clearValues()
		from, to := v.scale(), out.scale()
		if v.c == classDecimal && out.c == classDecimal && from-to < int32(len(pow10i)) && from >= to && round && (len(x.args) == 1 || (x.args[1].konst && x.args[1].i[0] >= int64(to))) {
			for i := range out.d {
				out.d[i] = scaleDown128(v.d[v.at(i)], from-to)
			}
			return out, nil
		}
		x.each(&out, func(i int) bool {
			d := int32(min(max(x.intArg(1, i, 0), -decimalDigitsMax-1), decimalScaleMax))
			n := v.big(i)
			if d < from {
				if round {
					n = roundBig(n, from, d)
				} else {
					n = new(big.Int).Quo(n, bigPow10(from-d))
				}
				n = roundBig(n, d, max(d, to))
				n = roundBig(n, max(d, to), to)
			} else {
				n = roundBig(n, from, to)
			}
			out.putBig(i, n)
			return true
		})
		return out, nil
	}
}
