package expr

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

// The encoding of an expression: a version byte, then nodes in pre-order. Integers are varints, text and bytes have a length before them.
//
//	node    = 1 id name type | 2 type array | 3 func type count node...
//	type    = id parameters            (codectype.go)
//	array   = by type, one value after the other, NULLs marked (codecarray.go)
const codecVersion = 1

const (
	codeColumn  = 1
	codeLiteral = 2
	codeCall    = 3
)

// encodedArgsMax bounds the arguments of one call.
const encodedArgsMax = 1 << 20

// Encode writes an expression as bytes that Decode reads back to an Equal one. ErrUnsupported for types that no literal or column has.
func Encode(e Expr) ([]byte, error) {
	w := encoder{buf: []byte{codecVersion}}
	w.expr(e)
	return w.buf, w.err
}

// Decode reads what Encode wrote. ErrCorrupt where bytes are no expression; the functions in it are known and have the types that NewCall gives them.
func Decode(b []byte) (Expr, error) {
	r := decoder{buf: b}
	if v := r.byte(); r.err == nil && v != codecVersion {
		r.fail("version %d", v)
	}
	e := r.expr(0)
	if r.err == nil && r.at != len(b) {
		r.fail("%d bytes too many", len(b)-r.at)
	}
	if r.err != nil {
		return nil, r.err
	}
	return e, nil
}

type encoder struct {
	buf []byte
	err error
}

func (w *encoder) byte(b byte)    { w.buf = append(w.buf, b) }
func (w *encoder) uint(n uint64)  { w.buf = binary.AppendUvarint(w.buf, n) }
func (w *encoder) int(n int64)    { w.buf = binary.AppendVarint(w.buf, n) }
func (w *encoder) text(s string)  { w.uint(uint64(len(s))); w.buf = append(w.buf, s...) }
func (w *encoder) bytes(b []byte) { w.uint(uint64(len(b))); w.buf = append(w.buf, b...) }
func (w *encoder) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *encoder) expr(e Expr) {
	switch x := e.(type) {
	case *Column:
		w.byte(codeColumn)
		w.int(int64(x.ID))
		w.text(x.Name)
		w.dataType(x.T)
	case *Literal:
		w.byte(codeLiteral)
		w.dataType(x.Type())
		arr, err := literalArrayOrNull(x)
		if err != nil {
			w.fail(err)
			return
		}
		w.array(arr)
	case *Call:
		w.byte(codeCall)
		w.text(x.Func)
		w.dataType(x.T)
		w.uint(uint64(len(x.Args)))
		for _, a := range x.Args {
			w.expr(a)
		}
	default:
		w.fail(errs.New(errs.ErrInternal, "expression of unknown kind %T", e))
	}
}

func literalArrayOrNull(l *Literal) (arrow.Array, error) {
	if !l.Value.IsValid() {
		return makeNulls(l.Type(), 1), nil
	}
	return literalArray(l)
}

type decoder struct {
	buf []byte
	at  int
	err error
}

func (r *decoder) fail(format string, args ...any) {
	if r.err == nil {
		r.err = errs.Corrupt("expression", int64(r.at), format, args...)
	}
}

func (r *decoder) left() int { return len(r.buf) - r.at }

func (r *decoder) byte() byte {
	if r.err != nil || r.left() < 1 {
		r.fail("ends early")
		return 0
	}
	r.at++
	return r.buf[r.at-1]
}

func (r *decoder) uint() uint64 {
	n, size := binary.Uvarint(r.buf[min(r.at, len(r.buf)):])
	if r.err != nil || size <= 0 {
		r.fail("bad number")
		return 0
	}
	r.at += size
	return n
}

func (r *decoder) int() int64 {
	n, size := binary.Varint(r.buf[min(r.at, len(r.buf)):])
	if r.err != nil || size <= 0 {
		r.fail("bad number")
		return 0
	}
	r.at += size
	return n
}

// count reads how many things of at least size bytes follow.
func (r *decoder) count(size int) int {
	n := r.uint()
	if r.err == nil && n > uint64(r.left()/max(size, 1)) {
		r.fail("%d values of %d bytes in %d bytes", n, size, r.left())
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *decoder) take(n int) []byte {
	if r.err != nil || n < 0 || n > r.left() {
		r.fail("ends early")
		return nil
	}
	r.at += n
	return r.buf[r.at-n : r.at]
}

func (r *decoder) text() string { return string(r.take(r.count(1))) }

// decodedDepthMax bounds the nesting of an encoded expression.
const decodedDepthMax = 2000

func (r *decoder) expr(depth int) Expr {
	if depth > decodedDepthMax {
		r.fail("nests deeper than %d", decodedDepthMax)
		return nil
	}
	switch code := r.byte(); code {
	case codeColumn:
		id := r.int()
		if id < math.MinInt32 || id > math.MaxInt32 {
			r.fail("column id %d", id)
		}
		name := r.text()
		return &Column{ID: int(id), Name: name, T: r.dataType(0)}
	case codeLiteral:
		return r.literal()
	case codeCall:
		return r.call(depth)
	default:
		r.fail("node of kind %d", code)
	}
	return nil
}

func (r *decoder) literal() Expr {
	t := r.dataType(0)
	if r.err != nil {
		return nil
	}
	arr := r.array(t, 1, 0)
	if r.err != nil {
		return nil
	}
	l, err := arrayLiteral(arr, 0)
	if err != nil {
		r.fail("literal: %v", err)
		return nil
	}
	if !l.Value.IsValid() {
		return Null(t)
	}
	return l
}

func (r *decoder) call(depth int) Expr {
	name := r.text()
	t := r.dataType(0)
	n := r.count(2)
	if n > encodedArgsMax {
		r.fail("%d arguments", n)
	}
	args := make([]Expr, 0, min(n, 64))
	for range n {
		if r.err != nil {
			return nil
		}
		args = append(args, r.expr(depth+1))
	}
	if r.err != nil {
		return nil
	}
	if err := checkCall(name, args, t); err != nil {
		r.fail("%s: %v", name, err)
		return nil
	}
	return &Call{Func: name, Args: args, T: t}
}

// checkCall tells whether a call is one that NewCall or NewCast makes.
func checkCall(name string, args []Expr, t arrow.DataType) error {
	if name == "cast" || name == "coerce" {
		if len(args) != 1 {
			return errs.New(errs.ErrInvalid, "a cast has one argument, not %d", len(args))
		}
		return checkCast(args[0].Type(), t)
	}
	f := table()[name]
	if f == nil || len(args) < f.min || (f.max >= 0 && len(args) > f.max) {
		return errs.New(errs.ErrInvalid, "no such function of %d arguments", len(args))
	}
	im, err := f.apply(args, nil)
	if err != nil {
		return err
	}
	if im.rewrite == nil && !arrow.TypeEqual(im.t, t) {
		// Fold may have replaced branches or constants by equal ones of a nearer type; Compile converts to what the call promises.
		return checkCast(im.t, t)
	}
	return nil
}
