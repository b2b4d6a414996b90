package expr

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/lakesql/lakesql/internal/errs"
)

// castMode tells why a value is converted.
type castMode uint8

const (
	castImplicit castMode = iota // an argument: a number that does not fit is cut to the type's bounds
	castStrict                   // NewCoerce, and results: a number that does not fit is ErrOverflow
	castExplicit                 // CAST: 18446744073709551615 as SIGNED is -1
	castTruth                    // a condition
)

// NewCast converts as MySQL's CAST does: text gives the number that it starts with, text that is no date gives NULL, numbers beyond a type are cut to
// its bounds. DECIMAL, DATE, DATETIME (timestamp without zone: seconds, milliseconds or microseconds), TIMESTAMP, TIME (duration), CHAR (utf8),
// BINARY, floats, integers and BOOLEAN are targets; lists, structs and vectors become JSON text. ErrInvalid where no conversion exists.
func NewCast(e Expr, to arrow.DataType) (Expr, error) { return newCast("cast", e, to) }

// NewCoerce converts implicitly, as between the branches of CASE or the sides of UNION: like NewCast, but a value that does not fit is ErrOverflow.
func NewCoerce(e Expr, to arrow.DataType) (Expr, error) { return newCast("coerce", e, to) }

func newCast(name string, e Expr, to arrow.DataType) (Expr, error) {
	if to == nil {
		return nil, errs.New(errs.ErrInternal, "a cast without a type")
	}
	if arrow.TypeEqual(e.Type(), to) {
		return e, nil
	}
	if lit, ok := e.(*Literal); ok && !lit.Value.IsValid() {
		return Null(to), nil
	}
	if err := checkCast(e.Type(), to); err != nil {
		return nil, err
	}
	return &Call{Func: name, Args: []Expr{e}, T: to}, nil
}

// checkCast tells whether values of one type have a meaning in another.
func checkCast(from, to arrow.DataType) error {
	a, b := classOf(from), classOf(to)
	refuse := func() error {
		return errs.New(errs.ErrInvalid, "a value of type %s cannot become %s", sqlName(from), sqlName(to))
	}
	switch {
	case a == classNull:
		return nil
	case b == classNull:
		return refuse()
	case a == classNested && b == classNested:
		if arrow.TypeEqual(from, to) {
			return nil
		}
		ea, eb := elementType(from), elementType(to)
		if ea == nil || eb == nil {
			return refuse()
		}
		return checkCast(ea, eb)
	case b == classNested:
		if a == classString && elementType(to) != nil {
			return nil
		}
		return refuse()
	case a == classNested:
		if b == classString {
			return nil
		}
		return refuse()
	}
	return nil
}

// dependsOnZone reports whether the conversion needs the session's time zone.
func dependsOnZone(from, to arrow.DataType) bool {
	a, b := classOf(from), classOf(to)
	return (a == classTimestamp) != (b == classTimestamp) || a == classNested || (a == classString && b.temporal()) || (a == classTime) != (b == classTime)
}

func (c *compiler) compileCast(e *Call, mode castMode) (node, error) {
	if len(e.Args) != 1 {
		return nil, errs.New(errs.ErrInvalid, "a cast has one argument, not %d", len(e.Args))
	}
	in, err := c.compile(e.Args[0])
	if err != nil {
		return nil, err
	}
	if err := checkCast(e.Args[0].Type(), e.T); err != nil {
		return nil, err
	}
	return &castNode{in: in, t: e.T, mode: mode}, nil
}

// cast converts a vector. The result's memory may be the argument's.
func (s *state) cast(v *vector, to arrow.DataType, mode castMode) (vector, error) {
	if v.c == classNull {
		return s.nullVector(to), nil
	}
	target := classOf(to)
	out := vector{t: canonical(to), c: target, n: v.n, konst: v.konst, valid: v.valid}
	var err error
	switch target {
	case classBool:
		err = s.castBool(&out, v)
	case classInt:
		err = s.castInt(&out, v, to, mode)
	case classUint:
		err = s.castUint(&out, v, to, mode)
	case classFloat:
		err = s.castFloat(&out, v, to)
	case classDecimal, classWide:
		err = s.castDecimal(&out, v, mode)
	case classString:
		return s.castString(out, v)
	case classNull:
		return s.nullVector(to), nil
	case classNested:
		return s.castNested(out, v, to)
	default:
		err = s.castTemporal(&out, v, to)
	}
	return out, err
}

// each calls f for every value that is not NULL; f returning false makes it NULL.
func (s *state) each(out *vector, f func(i int) bool) {
	owned := false
	for i := range out.n {
		if out.valid != nil && out.valid[i>>3]>>(i&7)&1 == 0 {
			continue
		}
		if !f(i) {
			if !owned {
				s.ownValid(out)
				owned = true
			}
			out.valid[i>>3] &^= 1 << (i & 7)
		}
	}
}

func setBits(dst []byte, n int, f func(i int) bool) {
	clear(dst)
	for i := range n {
		if f(i) {
			dst[i>>3] |= 1 << (i & 7)
		}
	}
}

func (s *state) castBool(out, v *vector) error {
	if v.c == classBool {
		out.bits = v.bits
		return nil
	}
	out.bits = s.bitmap(v.n)
	switch v.c {
	case classUint:
		setBits(out.bits, v.n, func(i int) bool { return v.u[i] != 0 })
	case classFloat:
		setBits(out.bits, v.n, func(i int) bool { return v.f[i] != 0 })
	case classDecimal:
		setBits(out.bits, v.n, func(i int) bool { return v.d[i] != decimal128.Num{} })
	case classWide:
		setBits(out.bits, v.n, func(i int) bool { return v.w[i].Sign() != 0 })
	case classString:
		setBits(out.bits, v.n, func(i int) bool { f, _ := parseFloat(v.str(i)); return f != 0 })
	case classNested:
		return errs.New(errs.ErrInvalid, "a value of type %s is no condition", v.t)
	default:
		setBits(out.bits, v.n, func(i int) bool { return v.i[i] != 0 })
	}
	return nil
}

// intBounds returns the smallest and largest value of a signed type.
func intBounds(t arrow.DataType) (lo, hi int64) {
	switch storageType(t).ID() {
	case arrow.INT8:
		return math.MinInt8, math.MaxInt8
	case arrow.INT16:
		return math.MinInt16, math.MaxInt16
	case arrow.INT32:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

func uintBound(t arrow.DataType) uint64 {
	switch storageType(t).ID() {
	case arrow.UINT8:
		return math.MaxUint8
	case arrow.UINT16:
		return math.MaxUint16
	case arrow.UINT32:
		return math.MaxUint32
	}
	return math.MaxUint64
}

func overflow(t arrow.DataType, expr string) error {
	return errs.New(errs.ErrOverflow, "%s value is out of range in '%s'", sqlName(t), expr)
}

func (s *state) castInt(out, v *vector, to arrow.DataType, mode castMode) error {
	lo, hi := intBounds(to)
	if v.c == classInt && lo == math.MinInt64 {
		out.i = v.i
		return nil
	}
	out.i = makeSlice[int64](s.arena, v.n)
	clear(out.i)
	var err error
	s.each(out, func(i int) bool {
		x, fits := s.intOf(v, i, mode)
		if x < lo || x > hi {
			x, fits = max(min(x, hi), lo), false
		}
		if !fits && mode == castStrict && v.c != classString {
			err = overflow(to, valueText(v, i))
		}
		out.i[i] = x
		return true
	})
	return err
}

func valueText(v *vector, i int) string { return string(appendValue(nil, v, i, nil)) }

// intOf converts one value to a signed integer, cut to its bounds; fits tells whether it had to be cut.
func (s *state) intOf(v *vector, i int, mode castMode) (x int64, fits bool) {
	switch v.c {
	case classBool:
		if v.bit(i) {
			return 1, true
		}
		return 0, true
	case classInt:
		return v.i[i], true
	case classUint:
		if u := v.u[i]; u > math.MaxInt64 && mode != castExplicit {
			return math.MaxInt64, false
		}
		return int64(v.u[i]), true
	case classFloat:
		return floatToInt(v.f[i])
	case classDecimal, classWide:
		n := roundBig(v.big(i), v.scale(), 0)
		if n.IsInt64() {
			return n.Int64(), true
		}
		if n.Sign() < 0 {
			return math.MinInt64, false
		}
		return math.MaxInt64, false
	case classString:
		mag, neg, fits := integerPrefix(v.str(i))
		switch {
		case neg && mag > 1<<63:
			return math.MinInt64, false
		case neg:
			return -int64(mag), fits
		case mag > math.MaxInt64 && mode == castExplicit:
			return int64(mag), fits
		case mag > math.MaxInt64:
			return math.MaxInt64, false
		}
		return int64(mag), fits
	}
	return temporalNumber(v, i, s.env), true
}

// integerPrefix reads the integer that text starts with; a fraction or exponent is not read.
func integerPrefix(s []byte) (mag uint64, neg, fits bool) {
	i := 0
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	fits = true
	for ; i < len(s) && isDigit(s[i]); i++ {
		d := uint64(s[i] - '0')
		if mag > (math.MaxUint64-d)/10 {
			return math.MaxUint64, neg, false
		}
		mag = mag*10 + d
	}
	return mag, neg, fits
}

func floatToInt(f float64) (int64, bool) {
	f = math.RoundToEven(f)
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= 0x1p63:
		return math.MaxInt64, false
	case f < -0x1p63:
		return math.MinInt64, false
	}
	return int64(f), true
}

func (s *state) castUint(out, v *vector, to arrow.DataType, mode castMode) error {
	hi := uintBound(to)
	if v.c == classUint && hi == math.MaxUint64 {
		out.u = v.u
		return nil
	}
	out.u = makeSlice[uint64](s.arena, v.n)
	clear(out.u)
	var err error
	s.each(out, func(i int) bool {
		x, fits := s.uintOf(v, i, mode)
		if x > hi {
			x, fits = hi, false
		}
		if !fits && mode == castStrict && v.c != classString {
			err = overflow(to, valueText(v, i))
		}
		out.u[i] = x
		return true
	})
	return err
}

func (s *state) uintOf(v *vector, i int, mode castMode) (x uint64, fits bool) {
	switch v.c {
	case classUint:
		return v.u[i], true
	case classFloat:
		f := math.RoundToEven(v.f[i])
		switch {
		case math.IsNaN(f):
			return 0, false
		case f >= 0x1p64:
			return math.MaxUint64, false
		case f < 0:
			n, _ := floatToInt(f)
			if mode == castExplicit {
				return uint64(n), true
			}
			return 0, false
		}
		return uint64(f), true
	case classDecimal, classWide:
		n := roundBig(v.big(i), v.scale(), 0)
		if n.IsUint64() {
			return n.Uint64(), true
		}
		if n.Sign() < 0 {
			return 0, false
		}
		return math.MaxUint64, false
	case classString:
		mag, neg, fits := integerPrefix(v.str(i))
		if neg && mode != castExplicit {
			return 0, mag == 0
		}
		if neg {
			return -mag, fits
		}
		return mag, fits
	}
	n, fits := s.intOf(v, i, mode)
	if n < 0 && mode != castExplicit {
		return 0, false
	}
	return uint64(n), fits
}

func (s *state) castFloat(out, v *vector, to arrow.DataType) error {
	single := storageType(to).ID() != arrow.FLOAT64
	if v.c == classFloat && !single {
		out.f = v.f
		return nil
	}
	out.f = makeSlice[float64](s.arena, v.n)
	switch v.c {
	case classBool:
		for i := range out.f {
			out.f[i] = float64(v.bits[i>>3] >> (i & 7) & 1)
		}
	case classInt:
		for i, x := range v.i[:v.n] {
			out.f[i] = float64(x)
		}
	case classUint:
		for i, x := range v.u[:v.n] {
			out.f[i] = float64(x)
		}
	case classFloat:
		copy(out.f, v.f)
	case classDecimal:
		scale := v.scale()
		for i, x := range v.d[:v.n] {
			out.f[i] = decimalToFloat(x, scale)
		}
	case classWide:
		scale := v.scale()
		for i, x := range v.w[:v.n] {
			out.f[i] = wideToFloat(x, scale)
		}
	case classString:
		for i := range out.f {
			out.f[i], _ = parseFloat(v.str(i))
		}
	default:
		for i := range out.f {
			out.f[i] = temporalFloat(v, i, s.env)
		}
	}
	if single {
		for i, x := range out.f {
			out.f[i] = float64(float32(x))
		}
	}
	return nil
}

// castString prints values as MySQL does.
func (s *state) castString(out vector, v *vector) (vector, error) {
	if v.c == classString {
		out.off, out.data = v.off, v.data
		return out, nil
	}
	w := s.strWriter(v.n)
	for i := range v.n {
		if !v.null(i) {
			w.buf = appendValue(w.buf, v, i, s.env)
		}
		if err := w.end(i); err != nil {
			return out, err
		}
	}
	out.off, out.data = w.off, w.buf
	return out, nil
}

// appendValue prints value i of v, which is not NULL.
func appendValue(dst []byte, v *vector, i int, env *Env) []byte {
	i = v.at(i)
	switch v.c {
	case classBool:
		if v.bit(i) {
			return append(dst, '1')
		}
		return append(dst, '0')
	case classInt:
		return append(dst, itoa(v.i[i])...)
	case classUint:
		return appendUint(dst, v.u[i])
	case classFloat:
		if storageType(v.t).ID() != arrow.FLOAT64 {
			return appendFloat(dst, v.f[i], 32)
		}
		return appendFloat(dst, v.f[i], 64)
	case classDecimal:
		return appendDecimal(dst, v.d[i], v.scale())
	case classWide:
		return appendWide(dst, v.w[i], v.scale())
	case classString:
		return append(dst, v.str(i)...)
	case classDate:
		return appendDate(dst, v.i[i])
	case classDatetime:
		return appendDatetime(dst, v.i[i], fspOf(v.t))
	case classTimestamp:
		return appendDatetime(dst, localMicros(v.i[i], env.location()), fspOf(v.t))
	case classTime:
		return appendTime(dst, v.i[i], fspOf(v.t))
	}
	return AppendJSON(dst, v.arr, i, env)
}
