package file

import (
	"encoding/binary"
	"math"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	zipValues = iota // buffer indices
	zipIndex
)

// zipPage reads full-zip pages: control word, length and value of one entry lie together; docs/format/page.md section 4.
type zipPage struct {
	page       *page
	layers     *encoding.PageLayers
	values     *encoding.Zip
	bitsDef    uint
	hasRep     bool
	hasDef     bool
	control    int // bytes of a control word
	length     int // bytes of a value length; 0 = fixed width
	indexWidth int // bytes of one position in the repetition index; 0 = rows are found by computing
}

func newZipPage(p *page, l *leafPlan, m *encpb.FullZipLayout) (*zipPage, error) {
	layers, err := encoding.CompileLayers(m.GetLayers(), l.specs)
	if err != nil {
		return nil, err
	}
	z := &zipPage{page: p, layers: layers, bitsDef: uint(m.GetBitsDef()), hasRep: m.GetBitsRep() > 0, hasDef: m.GetBitsDef() > 0}
	switch bits := m.GetBitsRep() + m.GetBitsDef(); {
	case m.GetBitsRep() > 16 || m.GetBitsDef() > 16:
		return nil, errs.Corrupt("layout", -1, "control words of %d+%d bits", m.GetBitsRep(), m.GetBitsDef())
	case bits == 0:
	case bits <= 8:
		z.control = 1
	case bits <= 16:
		z.control = 2
	default:
		z.control = 4
	}
	if z.hasRep != (layers.MaxRep > 0) {
		return nil, errs.Corrupt("layout", -1, "%d repetition bits in a page of %d list layers", m.GetBitsRep(), layers.MaxRep)
	}
	switch d := m.GetDetails().(type) {
	case *encpb.FullZipLayout_BitsPerValue:
		z.values, err = encoding.CompileZipFixed(m.GetValueCompression(), &l.shape, uint64(d.BitsPerValue))
	case *encpb.FullZipLayout_BitsPerOffset:
		if d.BitsPerOffset != 32 && d.BitsPerOffset != 64 {
			return nil, errs.Corrupt("layout", -1, "lengths of %d bits", d.BitsPerOffset)
		}
		z.length = int(d.BitsPerOffset / 8)
		z.values, err = encoding.CompileZipVariable(m.GetValueCompression(), &l.shape)
	default:
		return nil, errs.Corrupt("layout", -1, "neither a value width nor a length width")
	}
	if err != nil {
		return nil, err
	}
	return z, z.checkBuffers()
}

func (z *zipPage) checkBuffers() error {
	if z.length == 0 && !z.hasRep {
		if len(z.page.buffers) == 0 {
			return errs.Corrupt("layout", -1, "no buffer")
		}
		// Rows are at most 2^31 and strides at most 2^24: no overflow.
		if need := int64(z.page.rows) * z.stride(); z.page.buffers[zipValues].Size < need {
			return errs.Corrupt("layout", -1, "%d bytes for %d values every %d", z.page.buffers[zipValues].Size, z.page.rows, z.stride())
		}
		return nil
	}
	if len(z.page.buffers) != 2 {
		return errs.Corrupt("layout", -1, "%d buffers, not 2", len(z.page.buffers))
	}
	index := z.page.buffers[zipIndex].Size
	n := int64(z.page.rows) + 1
	switch w := index / n; {
	case index%n == 0 && (w == 1 || w == 2 || w == 4 || w == 8):
		z.indexWidth = int(w)
		return nil
	default:
		return errs.Corrupt("layout", -1, "a repetition index of %d bytes for %d rows", index, z.page.rows)
	}
}

// stride is the distance of fixed-width values, the control word included.
func (z *zipPage) stride() int64 { return int64(z.control + z.values.ValueBytes()) }

// isPlain reports whether the page is an array of values as Arrow wants it.
func (z *zipPage) isPlain() bool {
	return z.length == 0 && z.control == 0 && z.values.ValueBytes() > 0 && z.values.IsPlain() && z.values.IsAligned()
}

func (z *zipPage) fetch(_ *Reader, p *part) ([]object.Range, error) {
	rs := make([]object.Range, 0, len(p.spans))
	switch {
	case p.step == stepStart && z.indexWidth == 0:
		p.step = stepData
		for _, s := range p.spans {
			rs = append(rs, within(z.page.buffers[zipValues], int64(s.from)*z.stride(), int64(s.to-s.from)*z.stride()))
		}
		return rs, nil
	case p.step == stepStart:
		p.step = stepTables
		w := int64(z.indexWidth)
		for _, s := range p.spans {
			rs = append(rs, within(z.page.buffers[zipIndex], int64(s.from)*w, int64(s.to-s.from+1)*w))
		}
		return rs, nil
	case p.step == stepTables:
		p.step = stepData
		size := uint64(z.page.buffers[zipValues].Size)
		for i := range p.spans {
			index := p.got[i]
			from, to := position(index[:z.indexWidth]), position(index[len(index)-z.indexWidth:])
			if from > to || to > size {
				return nil, errs.Corrupt("repetition index", z.page.buffers[zipIndex].Offset, "rows at [%d, %d) of %d bytes", from, to, size)
			}
			rs = append(rs, within(z.page.buffers[zipValues], int64(from), int64(to-from)))
		}
		return rs, nil
	default:
		p.state = p.got
		return nil, nil
	}
}

func position(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// estimate guesses the values and the bytes of a part.
func (z *zipPage) estimate(p *part) (values, bytes int) {
	data, _ := p.state.([][]byte)
	for _, b := range data {
		bytes += len(b)
	}
	return spanRows(p.spans), bytes
}

func (z *zipPage) decode(l *leafRead, p *part, s *scratch) error {
	data, _ := p.state.([][]byte)
	if l.values == nil { // readsDirect
		l.direct = data[0]
		l.nest.AppendValid(spanRows(p.spans))
		return nil
	}
	for i, b := range data {
		if err := z.decodeSpan(l, s, b, int(p.spans[i].to-p.spans[i].from)); err != nil {
			return err
		}
	}
	return l.plainPart()
}

// decodeSpan decodes rows that lie back to back in b.
func (z *zipPage) decodeSpan(l *leafRead, s *scratch, b []byte, rows int) error {
	before := l.values.N
	s.rep, s.def = s.rep[:0], s.def[:0]
	var err error
	switch {
	case z.length == 0 && !z.hasRep:
		err = z.fixedRows(l.values, s, b, rows)
	case z.control == 0:
		err = z.plainRows(l.values, b, rows)
	default:
		err = z.entries(l.values, s, b)
	}
	if err != nil {
		return err
	}
	n := l.values.N - before
	var rep, def []uint16
	if z.hasRep {
		rep, n = s.rep, len(s.rep)
	}
	if z.hasDef {
		def, n = s.def, len(s.def)
	}
	base := l.nest.Layers[len(l.nest.Layers)-1].N
	visible, err := l.nest.Append(z.layers, rep, def, n)
	if err != nil {
		return err
	}
	if got := l.values.N - before; got != visible {
		return errs.Corrupt("entries", -1, "%d values for %d entries that have one", got, visible)
	}
	// The outer-most layer counts rows; where fixed-size lists of structs lie on top, several entries make one.
	if got := (l.nest.Layers[len(l.nest.Layers)-1].N - base) * int(l.plan.scale); got != rows {
		return errs.Corrupt("entries", -1, "%d rows where the repetition index has %d", got, rows)
	}
	return nil
}

// fixedRows decodes values at computed places.
func (z *zipPage) fixedRows(dst *encoding.Values, s *scratch, b []byte, rows int) error {
	if z.control == 0 {
		return z.values.AppendPlain(dst, b, rows)
	}
	stride := int(z.stride())
	for i := range rows {
		_, def := z.controlWord(b[i*stride:])
		s.def = append(s.def, def)
	}
	return z.values.AppendStrided(dst, b, z.control, stride, rows)
}

// plainRows decodes variable-width values without control words.
func (z *zipPage) plainRows(dst *encoding.Values, b []byte, rows int) error {
	for range rows {
		value, rest, err := z.cutValue(b)
		if err != nil {
			return err
		}
		if err := z.values.Append(dst, value); err != nil {
			return err
		}
		b = rest
	}
	if len(b) > 0 {
		return errs.Corrupt("entries", -1, "%d bytes after the last", len(b))
	}
	return nil
}

// entries decodes entries with control words until b is used up.
func (z *zipPage) entries(dst *encoding.Values, s *scratch, b []byte) error {
	for len(b) > 0 {
		if len(b) < z.control {
			return errs.Corrupt("entries", -1, "%d bytes hold no control word", len(b))
		}
		rep, def := z.controlWord(b)
		b = b[z.control:]
		if z.hasRep {
			s.rep = append(s.rep, rep)
		}
		if z.hasDef {
			s.def = append(s.def, def)
		}
		if def > z.layers.MaxVisible {
			continue
		}
		if z.length > 0 && def > 0 {
			dst.AppendZero(1)
			continue
		}
		value, rest, err := z.cutValue(b)
		if err != nil {
			return err
		}
		if err := z.values.Append(dst, value); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// cutValue takes the next value off b.
func (z *zipPage) cutValue(b []byte) (value, rest []byte, err error) {
	size := uint64(z.values.ValueBytes())
	if z.length > 0 {
		if len(b) < z.length {
			return nil, nil, errs.Corrupt("entries", -1, "%d bytes hold no length", len(b))
		}
		size = position(b[:z.length])
		b = b[z.length:]
	}
	if size > uint64(len(b)) || size > math.MaxInt32 {
		return nil, nil, errs.Corrupt("entries", -1, "a value of %d bytes in the last %d", size, len(b))
	}
	return b[:size:size], b[size:], nil
}

// controlWord reads the levels in front of an entry; b holds a whole word.
func (z *zipPage) controlWord(b []byte) (rep, def uint16) {
	var w uint32
	switch z.control {
	case 1:
		w = uint32(b[0])
	case 2:
		w = uint32(binary.LittleEndian.Uint16(b))
	default:
		w = binary.LittleEndian.Uint32(b)
	}
	return uint16(w >> z.bitsDef), uint16(w & (1<<z.bitsDef - 1))
}
