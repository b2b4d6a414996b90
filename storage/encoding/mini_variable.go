package encoding

import (
	"encoding/binary"
	"unsafe"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// variableMini: n+1 offsets from the start of the buffer, then the bytes.
type variableMini struct{ wide bool }

func compileVariable(v *encpb.Variable, s *Shape) (variableMini, error) {
	if s.Kind != Variable {
		return variableMini{}, corrupt(miniSection, "variable values in a column of %s", s.describe())
	}
	if v.GetValues() != nil {
		return variableMini{}, unsupported("variable values with a compressed buffer")
	}
	switch b := v.GetOffsets().GetFlat().GetBitsPerValue(); b {
	case 32:
		return variableMini{}, nil
	case 64:
		return variableMini{wide: true}, nil
	default:
		return variableMini{}, unsupported("variable values with offsets that are not flat 32 or 64 bits")
	}
}

func (v variableMini) open(c *Chunk) error {
	if need := (c.n + 1) * v.offsetBytes(); len(c.bufs[0]) < need {
		return corrupt(miniSection, "%d bytes for %d offsets", len(c.bufs[0]), c.n+1)
	}
	return nil
}

func (v variableMini) offsetBytes() int {
	if v.wide {
		return 8
	}
	return 4
}

// span returns the offset of value i, checked against the buffer.
func (v variableMini) span(b []byte, from, to int) (start, end int, err error) {
	var s, e uint64
	if v.wide {
		s, e = binary.LittleEndian.Uint64(b[8*from:]), binary.LittleEndian.Uint64(b[8*to:])
	} else {
		s, e = uint64(binary.LittleEndian.Uint32(b[4*from:])), uint64(binary.LittleEndian.Uint32(b[4*to:]))
	}
	if s > e || e > uint64(len(b)) {
		return 0, 0, corrupt(miniSection, "value bytes [%d, %d) in a buffer of %d", s, e, len(b))
	}
	return int(s), int(e), nil
}

func (v variableMini) append(c *Chunk, dst *Values, from, to int) error {
	b := c.bufs[0]
	start, end, err := v.span(b, from, to)
	if err != nil {
		return err
	}
	if err := dst.fits(end - start); err != nil {
		return err
	}
	ok := false
	n := to - from
	switch out := dst.offsets.tail(n * dst.offsetBytes()); {
	case v.wide && dst.Shape.Wide:
		ok = rebase(cast[int64](out), cast[uint64](b[8*from:8*(to+1)]), uint64(start), uint64(dst.data.n))
	case v.wide:
		ok = rebase(cast[int32](out), cast[uint64](b[8*from:8*(to+1)]), uint64(start), uint64(dst.data.n))
	case dst.Shape.Wide:
		ok = rebase(cast[int64](out), cast[uint32](b[4*from:4*(to+1)]), uint32(start), uint32(dst.data.n))
	default:
		ok = rebase(cast[int32](out), cast[uint32](b[4*from:4*(to+1)]), uint32(start), uint32(dst.data.n))
	}
	if !ok {
		return corrupt(miniSection, "offsets that decrease")
	}
	dst.offsets.advance(n * dst.offsetBytes())
	dst.data.append(b[start:end])
	dst.N += n
	return nil
}

// rebase turns offsets src[1:] that start at first into ends that start at base. It reports whether they never decrease.
func rebase[O int32 | int64, I uint32 | uint64](dst []O, src []I, first, base I) bool {
	shift, prev := base-first, src[0]
	var bad I
	ends := src[1:]
	ends = ends[:len(dst)]
	for i := range dst {
		e := ends[i]
		bad |= e - prev // the top bit is set where e < prev; lengths never reach it
		prev = e
		dst[i] = O(e + shift)
	}
	return bad>>(8*unsafe.Sizeof(bad)-1) == 0
}

// fsstMini: variable values whose bytes are symbol codes.
type fsstMini struct {
	table  *fsstTable
	values variableMini
}

func compileFSST(f *encpb.Fsst, s *Shape) (*fsstMini, error) {
	v := f.GetValues().GetVariable()
	if v == nil {
		return nil, unsupported("fsst over values that are not variable")
	}
	values, err := compileVariable(v, s)
	if err != nil {
		return nil, err
	}
	table, err := parseFSST(f.GetSymbolTable())
	if err != nil {
		return nil, err
	}
	return &fsstMini{table: table, values: values}, nil
}

func (f *fsstMini) open(c *Chunk) error { return f.values.open(c) }

func (f *fsstMini) append(c *Chunk, dst *Values, from, to int) error {
	if !f.table.on {
		return f.values.append(c, dst, from, to)
	}
	b := c.bufs[0]
	start, end, err := f.values.span(b, from, to)
	if err != nil {
		return err
	}
	room := f.table.expandedMax(end - start)
	if err := dst.fits(room); err != nil {
		return err
	}
	n := to - from
	out, ends := dst.data.tail(room), dst.offsets.tail(n*dst.offsetBytes())
	size, ok := 0, false
	base := dst.data.n
	switch {
	case f.values.wide && dst.Shape.Wide:
		size, ok = decodeMany(f.table, out, cast[int64](ends), cast[uint64](b[8*from:8*(to+1)]), b, base)
	case f.values.wide:
		size, ok = decodeMany(f.table, out, cast[int32](ends), cast[uint64](b[8*from:8*(to+1)]), b, base)
	case dst.Shape.Wide:
		size, ok = decodeMany(f.table, out, cast[int64](ends), cast[uint32](b[4*from:4*(to+1)]), b, base)
	default:
		size, ok = decodeMany(f.table, out, cast[int32](ends), cast[uint32](b[4*from:4*(to+1)]), b, base)
	}
	if !ok {
		return corrupt(miniSection, "offsets that decrease")
	}
	dst.data.advance(size)
	dst.offsets.advance(n * dst.offsetBytes())
	dst.N += n
	return nil
}

// decodeMany decodes the values between neighbours of offsets, which point into src, and writes their ends, counted from base. out has
// room for all of them as long as the offsets never decrease; it reports whether they do not.
func decodeMany[O int32 | int64, I uint32 | uint64](t *fsstTable, out []byte, ends []O, offsets []I, src []byte, base int) (size int, ok bool) {
	from := offsets[0]
	next := offsets[1:]
	next = next[:len(ends)]
	last := offsets[len(offsets)-1]
	for i := range ends {
		to := next[i]
		if to < from || to > last {
			return 0, false
		}
		size += t.decode(out[size:], src[from:to])
		ends[i] = O(base + size)
		from = to
	}
	return size, true
}
