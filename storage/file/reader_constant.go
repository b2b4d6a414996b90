package file

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// constantPage reads pages in which every value is the same or null; docs/format/page.md section 5.
type constantPage struct {
	page      *page
	layers    *encoding.PageLayers
	rep, def  *encoding.Levels
	numRep    uint64
	numDef    uint64
	value     []byte // inline value
	hasInline bool
	valueBuf  int // index of the value buffer; -1 = none
	levelBufs int // index of the repetition buffer, the definition buffer follows; -1 = none
	nullLeaf  bool

	loaded atomic.Pointer[constantContent]
}

// constantContent is what the buffers of the page hold.
type constantContent struct {
	value    []byte
	rep, def []uint16
	starts   []uint32 // pages with lists: the entry that begins each row, then the count of entries
}

func (c *constantContent) sizeBytes() int {
	return len(c.value) + 2*len(c.rep) + 2*len(c.def) + 4*len(c.starts)
}

func newConstantPage(p *page, l *leafPlan, m *encpb.ConstantLayout) (*constantPage, error) {
	layers, err := encoding.CompileLayers(m.GetLayers(), l.specs)
	if err != nil {
		return nil, err
	}
	c := &constantPage{
		page: p, layers: layers, numRep: m.GetNumRepValues(), numDef: m.GetNumDefValues(),
		value: m.GetInlineValue(), hasInline: m.InlineValue != nil, valueBuf: -1, levelBufs: -1,
	}
	switch n := len(p.buffers); n {
	case 0:
	case 1:
		c.valueBuf = 0
	case 2:
		c.levelBufs = 0
	case 3:
		c.valueBuf, c.levelBufs = 0, 1
	default:
		return nil, errs.Corrupt("layout", -1, "%d buffers in a constant page", n)
	}
	if c.hasInline && c.valueBuf >= 0 {
		return nil, errs.Corrupt("layout", -1, "a constant both inline and in a buffer")
	}
	c.nullLeaf = !c.hasInline && c.valueBuf < 0
	if c.rep, err = encoding.CompileLevels(m.GetRepCompression()); err != nil {
		return nil, err
	}
	if c.def, err = encoding.CompileLevels(m.GetDefCompression()); err != nil {
		return nil, err
	}
	if c.numRep > encoding.MaxPageLevels || c.numDef > encoding.MaxPageLevels {
		return nil, errs.Corrupt("layout", -1, "%d and %d levels in a constant page", c.numRep, c.numDef)
	}
	if m.GetRepCompression() == nil {
		c.numRep = math.MaxUint64 // as many as the buffer holds
	}
	if m.GetDefCompression() == nil {
		c.numDef = math.MaxUint64
	}
	if layers.MaxRep > 0 && c.levelBufs < 0 {
		return nil, errs.Corrupt("layout", -1, "lists without levels")
	}
	return c, nil
}

func (c *constantPage) fetch(r *Reader, p *part) ([]object.Range, error) {
	if p.step == stepStart {
		p.step = stepData
		if got := c.loaded.Load(); got != nil {
			p.state = got
			return nil, nil
		}
		if len(c.page.buffers) > 0 {
			return c.page.buffers, nil
		}
	}
	content, err := c.load(p.got, r.codecs)
	if err != nil {
		return nil, err
	}
	p.state = content
	r.cache.keep(content, content.sizeBytes(), func() { c.loaded.Store(content) }, func() { c.loaded.Store(nil) })
	return nil, nil
}

func (c *constantPage) load(bufs [][]byte, codecs *encoding.Codecs) (*constantContent, error) {
	out := &constantContent{value: c.value}
	var err error
	if c.valueBuf >= 0 {
		if out.value, err = constantValue(bufs[c.valueBuf]); err != nil {
			return nil, err
		}
	}
	if c.levelBufs < 0 {
		return out, nil
	}
	if out.rep, err = levelsOf(c.rep, bufs[c.levelBufs], c.numRep, codecs); err != nil {
		return nil, err
	}
	if out.def, err = levelsOf(c.def, bufs[c.levelBufs+1], c.numDef, codecs); err != nil {
		return nil, err
	}
	return out, c.index(out)
}

// levelsOf decodes n levels; n = MaxUint64: as many as the buffer holds. An empty buffer means that there are none.
func levelsOf(l *encoding.Levels, b []byte, n uint64, codecs *encoding.Codecs) ([]uint16, error) {
	if len(b) == 0 && n == math.MaxUint64 || n == 0 {
		return nil, nil
	}
	if n == math.MaxUint64 {
		n = uint64(len(b) / 2)
	}
	return l.Append(nil, b, int(n), codecs)
}

// index checks the levels against the rows of the page and finds where each row begins.
func (c *constantPage) index(out *constantContent) error {
	if c.layers.MaxRep == 0 {
		out.rep = nil
		if out.def != nil && uint64(len(out.def)) != c.page.rows {
			return errs.Corrupt("levels", -1, "%d definition levels for %d rows", len(out.def), c.page.rows)
		}
		return nil
	}
	if out.rep == nil { // every entry begins a row
		out.rep = make([]uint16, c.page.rows)
		for i := range out.rep {
			out.rep[i] = c.layers.MaxRep
		}
	}
	if out.def != nil && len(out.def) != len(out.rep) {
		return errs.Corrupt("levels", -1, "%d repetition and %d definition levels", len(out.rep), len(out.def))
	}
	out.starts = make([]uint32, 0, min(int(c.page.rows), len(out.rep))+1)
	for i, r := range out.rep {
		if r == c.layers.MaxRep {
			out.starts = append(out.starts, uint32(i))
		}
	}
	if uint64(len(out.starts)) != c.page.rows {
		return errs.Corrupt("levels", -1, "%d rows in the levels of a page of %d", len(out.starts), c.page.rows)
	}
	out.starts = append(out.starts, uint32(len(out.rep)))
	return nil
}

// constantValue reads a value buffer: a count, sizes, then the Arrow buffers of an array of one value.
func constantValue(b []byte) ([]byte, error) {
	const section = "constant value"
	if len(b) < 4 {
		return nil, errs.Corrupt(section, -1, "%d bytes", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	if n < 1 || n > 2 || len(b) < 4+4*int(n) {
		return nil, errs.Corrupt(section, -1, "%d buffers in %d bytes", n, len(b))
	}
	sizes, body := b[4:4+4*n], b[4+4*n:]
	var bufs [2][]byte
	for i := range n {
		size := binary.LittleEndian.Uint32(sizes[4*i:])
		if uint64(size) > uint64(len(body)) {
			return nil, errs.Corrupt(section, -1, "buffer of %d bytes in %d", size, len(body))
		}
		bufs[i], body = body[:size], body[size:]
	}
	if n == 1 {
		return bufs[0], nil
	}
	var from, to uint64
	switch len(bufs[0]) {
	case 8:
		from, to = position(bufs[0][:4]), position(bufs[0][4:])
	case 16:
		from, to = position(bufs[0][:8]), position(bufs[0][8:])
	default:
		return nil, errs.Corrupt(section, -1, "offsets of %d bytes", len(bufs[0]))
	}
	if from > to || to > uint64(len(bufs[1])) {
		return nil, errs.Corrupt(section, -1, "value bytes [%d, %d) of %d", from, to, len(bufs[1]))
	}
	return bufs[1][from:to], nil
}

func (c *constantPage) decode(l *leafRead, p *part, s *scratch) error {
	content, _ := p.state.(*constantContent)
	for _, sp := range p.spans {
		from, to := sp.from, sp.to
		if content.starts != nil {
			from, to = uint64(content.starts[from]), uint64(content.starts[to])
		}
		n := int(to - from)
		var rep, def []uint16
		if content.rep != nil {
			rep = content.rep[from:to]
		}
		if content.def != nil {
			def = content.def[from:to]
		} else if c.nullLeaf && l.plan.shape.Kind != encoding.Null {
			if def = s.allNull(n); c.layers.MaxDef == 0 {
				return errs.Corrupt("layout", -1, "nulls in a page whose layers have none")
			}
		}
		visible, err := l.nest.Append(c.layers, rep, def, n)
		if err != nil {
			return err
		}
		switch {
		case l.plan.shape.Kind == encoding.Null:
		case c.nullLeaf:
			l.values.AppendZero(visible)
		default:
			if err := encoding.AppendConstant(l.values, content.value, visible); err != nil {
				return err
			}
		}
	}
	return l.plainPart()
}

// allNull returns n definition levels of a null leaf.
func (s *scratch) allNull(n int) []uint16 {
	s.def = s.def[:0]
	for range n {
		s.def = append(s.def, 1)
	}
	return s.def
}
