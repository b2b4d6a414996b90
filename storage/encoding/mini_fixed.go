package encoding

import (
	"fmt"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// runsMini: values, and how often each is repeated.
type runsMini struct{ width int }

func compileRuns(r *encpb.Rle, s *Shape) (runsMini, error) {
	v, n := r.GetValues().GetFlat(), r.GetRunLengths().GetFlat()
	if v == nil || n == nil || n.GetBitsPerValue() != 8 {
		return runsMini{}, unsupported("runs whose values or lengths are not flat")
	}
	if err := fixedOf(s, v.GetBitsPerValue()); err != nil {
		return runsMini{}, err
	}
	if s.ItemBits%8 != 0 || len(s.Dims) > 0 {
		return runsMini{}, corrupt(miniSection, "runs of %s", s.describe())
	}
	return runsMini{width: s.ItemBits / 8}, nil
}

func (r runsMini) open(c *Chunk) error {
	values, lengths := c.bufs[0], c.bufs[1]
	if len(values) < len(lengths)*r.width {
		return corrupt(miniSection, "%d bytes of values for %d runs", len(values), len(lengths))
	}
	total := 0
	for _, k := range lengths {
		total += int(k)
	}
	if total < c.n {
		return corrupt(miniSection, "runs of %d values in a chunk of %d", total, c.n)
	}
	return nil
}

func (r runsMini) append(c *Chunk, dst *Values, from, to int) error {
	w := r.width
	out := dst.fixed.tail((to - from) * w)
	at := 0
	for i, k := range c.bufs[1] {
		start, end := max(at, from), min(at+int(k), to)
		at += int(k)
		if start < end {
			fillRun(out[(start-from)*w:(end-from)*w], c.bufs[0][i*w:(i+1)*w])
		}
		if at >= to {
			break
		}
	}
	dst.fixed.advance((to - from) * w)
	dst.N += to - from
	return nil
}

// fillRun repeats value over dst.
func fillRun(dst, value []byte) {
	switch len(value) {
	case 1:
		v := value[0]
		for i := range dst {
			dst[i] = v
		}
	case 2:
		fillWords(cast[uint16](dst), cast[uint16](value)[0])
	case 4:
		fillWords(cast[uint32](dst), cast[uint32](value)[0])
	case 8:
		fillWords(cast[uint64](dst), cast[uint64](value)[0])
	default:
		if len(value) == 0 {
			return
		}
		for n := copy(dst, value); n < len(dst); {
			n += copy(dst[n:], dst[:n])
		}
	}
}

func fillWords[T uint16 | uint32 | uint64](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// fslMini: the validity bits of the items of each level that has them, then the flat items.
type fslMini struct{ validity []bool }

func compileFSL(f *encpb.FixedSizeList, s *Shape) (miniCodec, int, error) {
	validity, itemBits, err := listLevels(f, s)
	if err != nil {
		return nil, 0, err
	}
	if itemBits != uint64(s.ItemBits) {
		return nil, 0, corrupt(miniSection, "%d-bit items in a column of %s", itemBits, s.describe())
	}
	buffers := 1
	for _, has := range validity {
		if has {
			buffers++
		}
	}
	return fslMini{validity: validity}, buffers, nil
}

// listLevels walks a fixed-size list encoding down to its flat items and checks it against the shape.
func listLevels(f *encpb.FixedSizeList, s *Shape) (validity []bool, itemBits uint64, err error) {
	if s.Kind != Fixed || len(s.Dims) == 0 {
		return nil, 0, corrupt("values", "a fixed-size list in a column of %s", s.describe())
	}
	for d, dim := range s.Dims {
		if f == nil || f.GetItemsPerValue() != uint64(dim) {
			return nil, 0, corrupt("values", "lists of %d in a column of %s", f.GetItemsPerValue(), s.describe())
		}
		validity = append(validity, f.GetHasValidity())
		if d == len(s.Dims)-1 {
			break
		}
		f = f.GetValues().GetFixedSizeList()
	}
	items := f.GetValues().GetFlat()
	if items == nil {
		return nil, 0, unsupported("fixed-size lists whose items are not flat")
	}
	return validity, items.GetBitsPerValue(), nil
}

func (f fslMini) open(*Chunk) error { return nil }

func (f fslMini) append(c *Chunk, dst *Values, from, to int) error {
	b := 0
	for d, has := range f.validity {
		items := dst.itemsAt(d)
		if !has {
			dst.items[d].appendOnes((to - from) * items)
			continue
		}
		if need := (c.n*items + 7) / 8; len(c.bufs[b]) < need {
			return corrupt(miniSection, "%d bytes of validity for %d items", len(c.bufs[b]), c.n*items)
		}
		dst.items[d].appendBits(c.bufs[b], from*items, (to-from)*items)
		b++
	}
	if need := (c.n*dst.Shape.Bits() + 7) / 8; len(c.bufs[b]) < need {
		return corrupt(miniSection, "%d bytes for %d lists of %d bits", len(c.bufs[b]), c.n, dst.Shape.Bits())
	}
	dst.appendItems(c.bufs[b], from, to)
	return nil
}

// packedStructMini: rows of fixed-width fields.
type packedStructMini struct{ rowBytes int }

func compilePacked(p *encpb.PackedStruct, s *Shape) (packedStructMini, error) {
	if s.Kind != Packed || len(p.GetBitsPerValue()) != len(s.Fields) {
		return packedStructMini{}, corrupt(miniSection, "a packed struct of %d fields in a column of %s", len(p.GetBitsPerValue()), s.describe())
	}
	row := 0
	for i, b := range p.GetBitsPerValue() {
		if err := fixedOf(&s.Fields[i], b); err != nil {
			return packedStructMini{}, err
		}
		if b%8 != 0 {
			return packedStructMini{}, unsupported("a packed struct with a field of %d bits", b)
		}
		row += int(b / 8)
	}
	if f := p.GetValues().GetFlat(); f == nil || f.GetBitsPerValue() != uint64(row)*8 {
		return packedStructMini{}, unsupported("a packed struct whose rows are not flat")
	}
	return packedStructMini{rowBytes: row}, nil
}

func (p packedStructMini) open(c *Chunk) error {
	if len(c.bufs[0]) < c.n*p.rowBytes {
		return corrupt(miniSection, "%d bytes for %d rows of %d", len(c.bufs[0]), c.n, p.rowBytes)
	}
	return nil
}

func (p packedStructMini) append(c *Chunk, dst *Values, from, to int) error {
	dst.appendRows(c.bufs[0][from*p.rowBytes:to*p.rowBytes], p.rowBytes)
	return nil
}

// appendRows takes rows of fixed-width fields apart.
func (v *Values) appendRows(rows []byte, rowBytes int) {
	if rowBytes == 0 {
		return
	}
	n, at := len(rows)/rowBytes, 0
	for _, f := range v.fields {
		w := f.Shape.Bits() / 8
		out := f.fixed.tail(n * w)
		for i := range n {
			copy(out[i*w:(i+1)*w], rows[i*rowBytes+at:])
		}
		f.fixed.advance(n * w)
		f.N += n
		for d := range f.items {
			f.items[d].appendOnes(n * f.itemsAt(d))
		}
		at += w
	}
	v.N += n
}

// describe names a shape in errors.
func (s *Shape) describe() string {
	switch s.Kind {
	case Fixed:
		if len(s.Dims) > 0 {
			return fmt.Sprintf("%d-bit items in lists of %v", s.ItemBits, s.Dims)
		}
		return fmt.Sprintf("%d-bit values", s.ItemBits)
	case Variable:
		return "variable-width values"
	case Packed:
		return fmt.Sprintf("packed structs of %d fields", len(s.Fields))
	default:
		return "nulls"
	}
}
