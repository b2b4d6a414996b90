package key

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
)

// Range is an interval of keys. Every value of the type lies in the zero Range with NoLo and NoHi set.
type Range struct {
	Lo, Hi         Key
	NoLo, NoHi     bool // unbounded
	LoOpen, HiOpen bool // the bound itself is outside
}

// IsPoint says that the range holds one key.
func (c Codec) IsPoint(r Range) bool {
	return !r.NoLo && !r.NoHi && !r.LoOpen && !r.HiOpen && c.Compare(r.Lo, r.Hi) == 0
}

// Ranges returns the keys that p selects: ascending, disjoint ranges, none where nothing can match. p.Op is OpEq, OpIn, OpRange, OpHas
// or OpHasAny. Errors: ErrInvalid for values of another type or a NULL among them.
func (c Codec) Ranges(p index.Predicate) ([]Range, error) {
	if p.Op == index.OpRange {
		if err := c.check(p); err != nil {
			return nil, err
		}
		return c.interval(p), nil
	}
	points, _, err := c.Points(p)
	return points, err
}

// Points returns a range for each different value of p that equals keys, ascending and disjoint; impossible says that there also
// is a value that nothing equals (NaN). Errors: as Ranges.
func (c Codec) Points(p index.Predicate) (points []Range, impossible bool, err error) {
	if err := c.check(p); err != nil {
		return nil, false, err
	}
	keys := make([]Key, 0, p.Values.Len())
	if c.wide {
		for i := range p.Values.Len() {
			keys = append(keys, c.At(p.Values, i))
		}
	} else {
		for _, w := range c.AppendWords(make([]uint64, 0, p.Values.Len()), p.Values) {
			keys = append(keys, Key{Word: w})
		}
	}
	slices.SortFunc(keys, c.Compare)
	points = make([]Range, 0, len(keys))
	for _, k := range keys {
		r, ok := c.point(k)
		switch {
		case !ok:
			impossible = true
		case len(points) == 0 || c.Compare(points[len(points)-1].Hi, r.Lo) < 0: // not the same value again; -0 and 0 are the same
			points = append(points, r)
		}
	}
	return points, impossible, nil
}

func (c Codec) check(p index.Predicate) error {
	if p.Values == nil {
		return errs.New(errs.ErrInvalid, "a predicate without values")
	}
	if !c.Accepts(p.Values.DataType()) {
		return errs.New(errs.ErrInvalid, "values of type %s do not compare with indexed values of type %s", p.Values.DataType(), c.typ)
	}
	n, isRange := p.Values.Len(), p.Op == index.OpRange
	switch {
	case isRange && n != 2:
		return errs.New(errs.ErrInvalid, "a range has 2 bounds, not %d", n)
	case (p.Op == index.OpEq || p.Op == index.OpHas) && n != 1:
		return errs.New(errs.ErrInvalid, "%d values where one is compared", n)
	case n == 0:
		return errs.New(errs.ErrInvalid, "an empty list of values")
	case !isRange && p.Values.NullN() > 0:
		return errs.New(errs.ErrInvalid, "a NULL among the values to look up")
	}
	return nil
}

// point is the range of the keys that equal k in SQL; false = none does.
func (c Codec) point(k Key) (Range, bool) {
	if !c.IsFloat() {
		return Range{Lo: k, Hi: k}, true
	}
	negZero, zero, negInf, inf := c.floatWords()
	switch {
	case k.Word < negInf || k.Word > inf: // NaN
		return Range{}, false
	case k.Word == negZero || k.Word == zero:
		return Range{Lo: Key{Word: negZero}, Hi: Key{Word: zero}}, true
	}
	return Range{Lo: k, Hi: k}, true
}

func (c Codec) interval(p index.Predicate) []Range {
	r := Range{NoLo: p.Values.IsNull(0), NoHi: p.Values.IsNull(1)}
	if !r.NoLo {
		r.Lo, r.LoOpen = c.At(p.Values, 0), !p.LowerInclusive
	}
	if !r.NoHi {
		r.Hi, r.HiOpen = c.At(p.Values, 1), !p.UpperInclusive
	}
	if c.IsFloat() && !(r.NoLo && r.NoHi) {
		if ok := c.floatInterval(&r); !ok {
			return nil
		}
	}
	if !r.NoLo && !r.NoHi {
		if o := c.Compare(r.Lo, r.Hi); o > 0 || o == 0 && (r.LoOpen || r.HiOpen) {
			return nil
		}
	}
	return []Range{r}
}

// floatInterval keeps NaNs out of a range that has a bound, and puts both zeros on one side of a bound that is zero. It returns
// false where a bound is NaN.
func (c Codec) floatInterval(r *Range) bool {
	negZero, zero, negInf, inf := c.floatWords()
	isNaN := func(w uint64) bool { return w < negInf || w > inf }
	if r.NoLo {
		r.NoLo, r.Lo = false, Key{Word: negInf}
	} else if isNaN(r.Lo.Word) {
		return false
	}
	if r.NoHi {
		r.NoHi, r.Hi = false, Key{Word: inf}
	} else if isNaN(r.Hi.Word) {
		return false
	}
	if w := r.Lo.Word; w == negZero || w == zero {
		r.Lo.Word = negZero
		if r.LoOpen {
			r.Lo.Word = zero
		}
	}
	if w := r.Hi.Word; w == negZero || w == zero {
		r.Hi.Word = zero
		if r.HiOpen {
			r.Hi.Word = negZero
		}
	}
	return true
}

// Below says whether k lies before r.
func (c Codec) Below(k Key, r Range) bool {
	if r.NoLo {
		return false
	}
	o := c.Compare(k, r.Lo)
	return o < 0 || o == 0 && r.LoOpen
}

// Above says whether k lies after r.
func (c Codec) Above(k Key, r Range) bool {
	if r.NoHi {
		return false
	}
	o := c.Compare(k, r.Hi)
	return o > 0 || o == 0 && r.HiOpen
}

// Format renders a key for people.
func (c Codec) Format(k Key) string {
	if !c.wide {
		return fmt.Sprintf("%v", c.wordValue(k.Word))
	}
	const shown = 40
	b := k.Bytes
	text := fmt.Sprintf("%q", b[:min(len(b), shown)])
	if id := c.typ.ID(); id != arrow.STRING && id != arrow.LARGE_STRING {
		text = fmt.Sprintf("%x", b[:min(len(b), shown)])
	}
	if len(b) > shown {
		return fmt.Sprintf("%s... (%d bytes)", text, len(b))
	}
	return text
}
