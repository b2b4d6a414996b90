package expr

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// fate is what became of a literal that was converted to another type.
type fate uint8

const (
	fateExact      fate = iota // the value survived
	fateLost                   // no value of the type equals it
	fateNotANumber             // text that cannot be read as the type at all
	fateZone                   // needs the session's time zone, which is not known yet
)

// ConvertNeedle converts a literal to the type of the column or list element that it is compared with. The array has one value where it survives the
// conversion (1, '1' and 1.0 find int32 1) and none where no value of the type equals it (1.5, 3000000000). NULL gives none. Text that cannot be read
// as the type is ErrInvalid and names the literal; a civil time for a TIMESTAMP column is ErrUnsupported: Fold it with the session's zone first.
func ConvertNeedle(lit *Literal, to arrow.DataType) (arrow.Array, error) {
	empty := func() arrow.Array { return makeNullsIn(memory.DefaultAllocator, storageType(to), 0) }
	if !lit.Value.IsValid() {
		return empty(), nil
	}
	out, fate, err := convertLiteral(lit, to)
	if err != nil {
		return nil, err
	}
	switch fate {
	case fateLost:
		return empty(), nil
	case fateNotANumber:
		return nil, errs.New(errs.ErrInvalid, "'%s' is no value of type %s", literalText(lit), sqlName(to))
	case fateZone:
		return nil, errs.New(errs.ErrUnsupported, "'%s' needs the session's time zone to become a %s", literalText(lit), sqlName(to))
	}
	return literalArray(out)
}

// literalText is a literal as MySQL prints it, for messages and text needles.
func literalText(l *Literal) string {
	v, err := literalVector(l)
	if err != nil || v.nullConst() {
		return "NULL"
	}
	return string(appendValue(nil, &v, 0, nil))
}

// convertLiteral brings a valid literal to the storage type of t.
func convertLiteral(lit *Literal, t arrow.DataType) (*Literal, fate, error) {
	t = storageType(t)
	if arrow.TypeEqual(lit.Type(), t) {
		return lit, fateExact, nil
	}
	v, err := literalVector(lit)
	if err != nil {
		return nil, fateLost, err
	}
	s := newState()
	out := s.newVector(t, 1)
	out.t = canonical(t)
	var f fate
	switch c := classOf(t); {
	case c == classNested:
		return convertList(lit, t)
	case v.c == classNested || c == classNull:
		return nil, fateNotANumber, nil
	case c == classString:
		out.data = appendValue(nil, &v, 0, nil)
		out.off[1] = int32(len(out.data))
		if v.c == classTimestamp {
			f = fateZone
		}
		if fixed, ok := t.(*arrow.FixedSizeBinaryType); ok && fixed.ByteWidth != len(out.data) {
			f = fateLost
		}
	case c.temporal():
		f = s.convertTemporal(&out, &v, t)
	default:
		f = s.convertNumber(&out, &v, t)
	}
	if f != fateExact {
		return nil, f, nil
	}
	res, err := s.vectorLiteral(&out, t)
	return res, f, err
}

// convertNumber converts numbers, and text that is a number, to a numeric type.
func (s *state) convertNumber(out, v *vector, t arrow.DataType) fate {
	if out.c == classFloat {
		return s.convertFloat(out, v, t)
	}
	n, scale, f := s.exactNumber(v)
	if f != fateExact {
		return f
	}
	_, want, _ := digits(t)
	m := roundBig(n, scale, want)
	if roundBig(m, want, max(scale, want)).Cmp(roundBig(n, scale, max(scale, want))) != 0 {
		return fateLost
	}
	switch out.c {
	case classBool:
		if !m.IsInt64() || m.Int64()&^1 != 0 {
			return fateLost
		}
		out.bits[0] = byte(m.Int64())
	case classInt:
		lo, hi := intBounds(t)
		if !m.IsInt64() || m.Int64() < lo || m.Int64() > hi {
			return fateLost
		}
		out.i[0] = m.Int64()
	case classUint:
		if !m.IsUint64() || m.Uint64() > uintBound(t) {
			return fateLost
		}
		out.u[0] = m.Uint64()
	default:
		p, _, _ := digits(t)
		if m.CmpAbs(bigPow10(p)) >= 0 {
			return fateLost
		}
		out.putBig(0, m)
	}
	return fateExact
}

// exactNumber is the value of a number or of text that is a number and nothing else.
func (s *state) exactNumber(v *vector) (n *big.Int, scale int32, f fate) {
	switch v.c {
	case classString:
		n, scale, whole := parseDecimal(v.str(0))
		if !whole {
			return n, 0, fateNotANumber
		}
		return n, scale, fateExact
	case classFloat:
		if math.IsNaN(v.f[0]) || math.IsInf(v.f[0], 0) {
			return nil, 0, fateLost
		}
		n, scale, ok := parseDecimal(appendFloat(nil, v.f[0], 64))
		if !ok {
			return nil, 0, fateLost
		}
		return n, scale, fateExact
	case classDecimal, classWide:
		return v.big(0), v.scale(), fateExact
	case classUint:
		return new(big.Int).SetUint64(v.u[0]), 0, fateExact
	case classDate, classDatetime, classTime:
		return temporalMicrosNumber(v, 0, nil), 6, fateExact
	case classTimestamp:
		return nil, 0, fateZone
	}
	x, _ := s.intOf(v, 0, castExplicit)
	return big.NewInt(x), 0, fateExact
}

// convertFloat rounds fractions to the nearest float, as the column's own values were; integers must be hit exactly.
func (s *state) convertFloat(out, v *vector, t arrow.DataType) fate {
	if v.c == classString {
		if _, whole := parseFloat(v.str(0)); !whole {
			return fateNotANumber
		}
	}
	if v.c == classTimestamp {
		return fateZone
	}
	if err := s.castFloat(out, v, t); err != nil {
		return fateLost
	}
	f := out.f[0]
	if math.IsInf(f, 0) && !(v.c == classFloat && math.IsInf(v.f[0], 0)) {
		return fateLost
	}
	if v.c.integer() {
		n, _, _ := s.exactNumber(v)
		if g, _ := new(big.Float).SetFloat64(f).Int(nil); g.Cmp(n) != 0 {
			return fateLost
		}
	}
	return fateExact
}

func (s *state) convertTemporal(out, v *vector, t arrow.DataType) fate {
	if out.c == classTimestamp && v.c != classTimestamp {
		if v.c == classString {
			p, ok := parseDatetime(v.str(0))
			switch {
			case !ok || !p.whole:
				return fateNotANumber
			case p.hasOffset:
				out.i[0] = p.us
				return fitsUnit(p.us, t)
			}
		}
		return fateZone
	}
	if v.c == classTimestamp && out.c != classTimestamp {
		return fateZone
	}
	us := int64(0)
	ok, whole := true, true
	switch {
	case v.c == classString && out.c == classTime:
		us, whole, ok = parseTime(v.str(0))
	case v.c == classString:
		var p parsedTime
		p, ok = parseDatetime(v.str(0))
		if p.hasOffset {
			return fateZone
		}
		us, whole = p.us, p.whole
	case v.c == classTime && out.c != classTime, v.c != classTime && out.c == classTime && !v.c.numeric():
		return fateZone
	case v.c == classDate:
		us = v.i[0] * microsPerDay
	case v.c.temporal():
		us = v.i[0]
	case out.c == classTime:
		us, ok = s.numberTime(v, 0)
	default:
		us, ok = s.numberDatetime(v, 0)
	}
	if !ok || !whole {
		if v.c == classString {
			return fateNotANumber
		}
		return fateLost
	}
	if out.c == classDate {
		days := floorDiv(us, microsPerDay)
		out.i[0] = days
		if days*microsPerDay != us {
			return fateLost
		}
		return fateExact
	}
	out.i[0] = us
	return fitsUnit(us, t)
}

// fitsUnit reports whether a temporal type holds the microseconds exactly.
func fitsUnit(us int64, t arrow.DataType) fate {
	var unit arrow.TimeUnit
	switch x := t.(type) {
	case *arrow.TimestampType:
		unit = x.Unit
	case *arrow.DurationType:
		unit = x.Unit
	case *arrow.Time32Type:
		unit = x.Unit
	case *arrow.Time64Type:
		unit = x.Unit
	}
	switch scale := unitScale(unit); {
	case scale > 1e6 && (us > math.MaxInt64/1000 || us < math.MinInt64/1000):
		return fateLost
	case scale < 1e6 && us%(1e6/scale) != 0:
		return fateLost
	}
	return fateExact
}

// convertList converts every element of a list literal; it is lost where an element is.
func convertList(lit *Literal, t arrow.DataType) (*Literal, fate, error) {
	elem := elementType(t)
	if elem == nil || elementType(lit.Type()) == nil {
		return nil, fateNotANumber, nil
	}
	values, kept, f, err := convertElements(lit, elem)
	if err != nil || f != fateExact {
		return nil, f, err
	}
	if !kept {
		return nil, fateLost, nil
	}
	arr, err := listOfOne(t, values)
	if err != nil {
		return nil, fateLost, nil //nolint:nilerr // a vector of another dimension equals none
	}
	out, err := arrayLiteral(arr, 0)
	return out, fateExact, err
}
