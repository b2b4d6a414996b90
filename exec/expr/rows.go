package expr

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// Kernels of functions that work row by row: f is called for rows without NULL arguments and says whether it has a value.

// stringBytesMax is the longest text that one call makes: beyond it MySQL gives NULL (max_allowed_packet).
const stringBytesMax = 64 << 20

// strings makes a text a row; f appends to dst.
func (x *call) strings(f func(i int, dst []byte) ([]byte, bool, error)) (vector, error) {
	w := x.strWriter(x.n)
	if len(x.args) > 0 && x.args[0].c == classString && !x.args[0].konst {
		w.buf = make([]byte, 0, int(x.args[0].off[x.n]-x.args[0].off[0])+x.n*4)
	}
	out := w.vector(x.t, x.n, x.valid)
	owned := false
	for i := range x.n {
		if x.validAt(i) {
			from := len(w.buf)
			b, ok, err := f(i, w.buf)
			if err != nil {
				return out, err
			}
			w.buf = b
			if !ok || len(b)-from > stringBytesMax {
				w.buf = w.buf[:from]
				if !owned {
					x.ownValid(&out)
					owned = true
				}
				out.valid[i>>3] &^= 1 << (i & 7)
			}
		}
		if err := w.end(i); err != nil {
			return out, err
		}
	}
	out.data = w.buf
	return out, nil
}

// ints makes an integer, date or time a row.
func (x *call) ints(f func(i int) (int64, bool, error)) (vector, error) {
	out := x.newVector(x.t, x.n)
	out.valid = x.valid
	clear(out.i)
	var err error
	x.each(&out, func(i int) bool {
		if err != nil {
			return true
		}
		v, ok, e := f(i)
		if e != nil {
			err = e
		}
		out.i[i] = v
		return ok
	})
	return out, err
}

func (x *call) uints(f func(i int) (uint64, bool)) (vector, error) {
	out := x.newVector(x.t, x.n)
	out.valid = x.valid
	clear(out.u)
	x.each(&out, func(i int) bool {
		v, ok := f(i)
		out.u[i] = v
		return ok
	})
	return out, nil
}

func (x *call) bools(f func(i int) (bool, bool)) (vector, error) {
	out := vector{c: classBool, n: x.n, valid: x.valid, bits: x.zeros(x.n)}
	x.each(&out, func(i int) bool {
		v, ok := f(i)
		if v {
			out.bits[i>>3] |= 1 << (i & 7)
		}
		return ok
	})
	return out, nil
}

// floats makes a double a row; a result that is not finite is NULL where MySQL's is (ok false) and otherwise ErrOverflow.
func (x *call) floats(f func(i int) (float64, bool)) (vector, error) {
	out := x.newVector(x.t, x.n)
	out.valid = x.valid
	clear(out.f)
	x.each(&out, func(i int) bool {
		v, ok := f(i)
		if ok {
			out.f[i] = v
		}
		return ok
	})
	for i, v := range out.f {
		if math.IsInf(v, 0) && x.validAt(i) && x.finiteArgs(i) {
			return out, x.rangeError(typeFloat())
		}
	}
	return out, nil
}

func (x *call) finiteArgs(i int) bool {
	for k := range x.args {
		if v := &x.args[k]; v.c == classFloat {
			if f := v.f[v.at(i)]; f-f != 0 {
				return false
			}
		}
	}
	return true
}

// float1 lifts a function of one double. ok false gives NULL.
func float1(f func(a float64) (float64, bool)) func(*request) (impl, error) {
	return fixed(typeFloat(), func(x *call) (vector, error) {
		a := &x.args[0]
		return x.floats(func(i int) (float64, bool) { return f(a.f[a.at(i)]) })
	}, typeFloat())
}

func float2(f func(a, b float64) (float64, bool)) func(*request) (impl, error) {
	return fixed(typeFloat(), func(x *call) (vector, error) {
		a, b := &x.args[0], &x.args[1]
		return x.floats(func(i int) (float64, bool) { return f(a.f[a.at(i)], b.f[b.at(i)]) })
	}, typeFloat())
}

// string1 lifts a function from text to text; the result is binary where the argument is.
func string1(f func(dst, s []byte) []byte) func(*request) (impl, error) {
	return stringOf(func(x *call) (vector, error) {
		return x.strings(func(i int, dst []byte) ([]byte, bool, error) { return f(dst, x.args[0].str(i)), true, nil })
	}, typeString())
}

// stringOf is fixed for functions whose result is text, or binary where an argument is.
func stringOf(run kernel, params ...arrow.DataType) func(*request) (impl, error) {
	return func(r *request) (impl, error) {
		if err := r.castable(params); err != nil {
			return impl{}, err
		}
		return impl{t: r.stringType(params), params: params, run: run}, nil
	}
}

// stringType is BINARY where a text argument is binary, CHAR otherwise.
func (r *request) stringType(params []arrow.DataType) arrow.DataType {
	for i, t := range r.types {
		if classOf(t) == classString && !isText(t) && (len(params) == 0 || classOf(params[min(i, len(params)-1)]) == classString) {
			return typeBinary()
		}
	}
	return typeString()
}

// intOf lifts a function from text to an integer.
func intOfString(f func(s []byte) int64) func(*request) (impl, error) {
	return fixed(typeInt(), func(x *call) (vector, error) {
		return x.ints(func(i int) (int64, bool, error) { return f(x.args[0].str(i)), true, nil })
	}, typeString())
}
