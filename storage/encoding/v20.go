package encoding

import (
	"math"
	"slices"

	"github.com/lakesql/lakesql/internal/errs"
)

// The functions of this file decode the arrays of version 2.0, which have no levels: validity lies in bitmaps, or in the offsets.

// AppendBits appends the bits [from, from+n) of src as the validity of n values (1 = valid).
func (l *Layer) AppendBits(src []byte, from, n int) error {
	if len(src) < (from+n+7)/8 {
		return corrupt("validity", "%d bytes for bits [%d, %d)", len(src), from, from+n)
	}
	l.valid.appendBits(src, from, n)
	l.N += n
	return nil
}

// AppendValid appends n valid values.
func (l *Layer) AppendValid(n int) {
	l.valid.appendOnes(n)
	l.N += n
}

// AppendNull appends n nulls.
func (l *Layer) AppendNull(n int) {
	l.valid.appendZeros(n)
	l.N += n
}

// splitEnds decodes n end offsets; one of at least adjustment belongs to a null and counts without it.
func splitEnds(dst []uint64, src []byte, n int, start, adjustment uint64, valid *Layer) ([]uint64, error) {
	if len(src) < 8*n {
		return nil, corrupt("offsets", "%d bytes for %d offsets", len(src), n)
	}
	dst = slices.Grow(dst[:0], n)[:n]
	prev := start
	var word uint64
	for i, e := range cast[uint64](src[:8*n]) {
		bit := uint64(1)
		if e >= adjustment {
			e -= adjustment
			bit = 0
		}
		if e < prev || e >= adjustment {
			return nil, corrupt("offsets", "end %d after %d, of %d", e, prev, adjustment)
		}
		dst[i], prev = e, e
		if word |= bit << (i & 63); i&63 == 63 {
			valid.valid.appendWord(word, 64)
			word = 0
		}
	}
	if rest := n & 63; rest > 0 {
		valid.valid.appendWord(word, rest)
	}
	valid.N += n
	return dst, nil
}

// AppendLists appends n lists from their end offsets in the items of a page, of which the first list starts at start. It returns
// the offset behind the last list.
func (l *Layer) AppendLists(src []byte, n int, start, adjustment uint64) (end uint64, err error) {
	if n == 0 {
		return start, nil
	}
	before := l.N
	plain, err := splitEnds(nil, src, n, start, adjustment, l)
	if err != nil {
		return 0, err
	}
	w := l.offsetBytes()
	out := l.offsets.tail(w * n)
	base := littleEndian(l.offsets.bytes()[before*w : (before+1)*w])
	end = plain[n-1]
	if !l.Spec.Wide && base+end-start > math.MaxInt32 {
		return 0, errs.New(errs.ErrOverflow, "more than 2^31 list items in one batch")
	}
	shiftEnds(out, plain, start, base, l.Spec.Wide)
	l.offsets.advance(w * n)
	return end, nil
}

// Items returns the items of all lists of a list layer so far.
func (l *Layer) Items() int {
	w := l.offsetBytes()
	return int(littleEndian(l.offsets.bytes()[l.N*w : (l.N+1)*w]))
}

func shiftEnds(out []byte, plain []uint64, start, base uint64, wide bool) {
	if wide {
		for i, d := 0, cast[int64](out); i < len(d); i++ {
			d[i] = int64(plain[i] - start + base)
		}
		return
	}
	for i, d := 0, cast[int32](out); i < len(d); i++ {
		d[i] = int32(plain[i] - start + base)
	}
}

// Ends is the checked end offsets of variable-width values.
type Ends struct {
	plain []uint64
	start uint64
}

// ParseEnds checks n end offsets and adds the validity that lies in them to valid.
func ParseEnds(src []byte, n int, start, adjustment uint64, valid *Layer) (Ends, error) {
	plain, err := splitEnds(nil, src, n, start, adjustment, valid)
	return Ends{plain: plain, start: start}, err
}

// AppendEnds appends values from their ends; data holds their bytes, from the first value on. fsst may be nil.
func (v *Values) AppendEnds(e Ends, data []byte, table *SymbolTable) error {
	n := len(e.plain)
	if n == 0 {
		return nil
	}
	if size := e.plain[n-1] - e.start; uint64(len(data)) < size {
		return corrupt("values", "%d bytes for %d", len(data), size)
	}
	if table != nil {
		return v.appendEndsFSST(e, data, table)
	}
	size := int(e.plain[n-1] - e.start)
	if err := v.fits(size); err != nil {
		return err
	}
	shiftEnds(v.offsets.tail(n*v.offsetBytes()), e.plain, e.start, uint64(v.data.n), v.Shape.Wide)
	v.offsets.advance(n * v.offsetBytes())
	v.data.append(data[:size])
	v.N += n
	return nil
}

func (v *Values) appendEndsFSST(e Ends, data []byte, table *SymbolTable) error {
	z := &Zip{}
	if table.on {
		z.fsst = table
	}
	from := e.start
	for _, to := range e.plain {
		if err := z.Append(v, data[from-e.start:to-e.start]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// AppendFlat appends n plain fixed-width values that start at bit first of src; only items of one bit need not start on a byte.
func (v *Values) AppendFlat(src []byte, first, n int) error {
	if v.Shape.Kind != Fixed {
		return corrupt("values", "flat values in a column of %s", v.Shape.describe())
	}
	bits := v.Shape.Bits()
	if need := (first + n*bits + 7) / 8; len(src) < need {
		return corrupt("values", "%d bytes for %d values of %d bits", len(src), n, bits)
	}
	if v.Shape.ItemBits == 1 {
		v.bits.appendBits(src, first, n*v.Shape.Items())
		v.N += n
		return nil
	}
	v.appendItems(src[first/8:], 0, n)
	return nil
}

// AppendItemBits appends the validity of n items at list level d, bits [from, from+n) of src; nil src = all valid.
func (v *Values) AppendItemBits(d int, src []byte, from, n int) error {
	if src == nil {
		v.items[d].appendOnes(n)
		return nil
	}
	if len(src) < (from+n+7)/8 {
		return corrupt("validity", "%d bytes for bits [%d, %d)", len(src), from, from+n)
	}
	v.items[d].appendBits(src, from, n)
	return nil
}

// GatherOneBased is Gather for indices that count from 1, with 0 for null; it adds the validity to valid.
func (v *Values) GatherOneBased(dict, indices *Values, valid *Layer) error {
	src, w := indices.fixed.bytes(), indices.Shape.ItemBits/8
	moved := NewValues(v.fixed.mem, v.codecs, &Shape{Kind: Fixed, ItemBits: 32}, indices.N)
	defer moved.Release()
	out := moved.fixed.tail(4 * indices.N)
	base := valid.N
	for i := range indices.N {
		x := littleEndian(src[i*w : (i+1)*w])
		if x == 0 {
			valid.AppendNull(1)
			x = 1
		} else {
			if x > uint64(dict.N) {
				return corrupt(dictSection, "index %d of %d values", x, dict.N)
			}
			valid.AppendValid(1)
		}
		cast[uint32](out)[i] = uint32(x - 1)
	}
	moved.fixed.advance(4 * indices.N)
	moved.N = indices.N
	return v.Gather(dict, moved, func(i int) bool { return !valid.IsValid(base + i) })
}

// SymbolTable is a compiled FSST table.
type SymbolTable = fsstTable

// ParseSymbolTable checks the bytes of an FSST table.
func ParseSymbolTable(b []byte) (*SymbolTable, error) { return parseFSST(b) }

// ExpandBuffer decompresses a whole buffer.
func (c *Codecs) ExpandBuffer(scheme string, src []byte) ([]byte, error) {
	s, err := schemeOf(scheme)
	if err != nil {
		return nil, err
	}
	return c.expand(nil, s, src)
}
