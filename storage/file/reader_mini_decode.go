package file

import (
	"encoding/binary"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
)

// miniCursor walks the chunks of a part. It belongs to one goroutine.
type miniCursor struct {
	m      *miniPage
	st     *miniState
	s      *scratch
	out    *encoding.Values
	codecs *encoding.Codecs
	run    int
	open   int // chunk that is open; -1 = none

	levels    int // of the open chunk
	items     int
	repBytes  []byte
	defBytes  []byte
	hasLevels bool // s.chunkRep and s.chunkDef hold the levels of the open chunk
}

func (m *miniPage) decode(l *leafRead, p *part, s *scratch) error {
	st, _ := p.state.(*miniState)
	if st.flat != nil {
		return m.decodeValues(l, st, s)
	}
	s.rep, s.def = s.rep[:0], s.def[:0]
	c := &miniCursor{m: m, st: st, s: s, open: -1, out: l.values, codecs: l.q.r.codecs}
	if m.dictEncoding != nil {
		c.out = encoding.NewValues(l.q.mem, l.q.r.codecs, m.shape, spanRows(p.spans))
		defer c.out.Release()
	}
	before := c.out.N
	for _, sp := range p.spans {
		var err error
		if m.repIndex > 0 {
			err = c.appendLists(sp)
		} else {
			err = c.appendRows(sp)
		}
		if err != nil {
			return err
		}
	}
	values := c.out.N - before
	entries := values
	rep, def := s.rep, s.def
	if m.rep != nil && m.repIndex > 0 {
		entries = len(rep)
	} else {
		rep = nil
	}
	if m.def == nil {
		def = nil
	}
	leafBase := l.nest.Layers[0].N
	visible, err := l.nest.Append(m.layers, rep, def, entries)
	if err != nil {
		return err
	}
	if visible != values {
		return errs.Corrupt("chunks", -1, "%d values for %d entries that have one", values, visible)
	}
	if m.dictEncoding == nil {
		return l.plainPart()
	}
	isNull := func(i int) bool { return !l.nest.Layers[0].IsValid(leafBase + i) }
	return l.dictionaryPart(st.dict, c.out, isNull)
}

// appendRows adds the rows of a page without lists: row, level and value have the same number.
func (c *miniCursor) appendRows(sp span) error {
	t := c.st.chunks
	from, to := c.m.chunksOf(t, sp)
	for i := from; i < to; i++ {
		if err := c.openChunk(i); err != nil {
			return err
		}
		a, b := max(t.items[i], int64(sp.from))-t.items[i], min(t.items[i+1], int64(sp.to))-t.items[i]
		if a >= b {
			continue
		}
		if c.m.def != nil {
			if c.levels != c.items {
				return c.corrupt("%d levels for %d values", c.levels, c.items)
			}
			if err := c.appendDef(int(a), int(b)); err != nil {
				return err
			}
		}
		if err := c.m.values.Append(c.s.chunk, c.out, int(a), int(b)); err != nil {
			return c.locate(err)
		}
	}
	return nil
}

// appendDef adds the definition levels [a, b) of the open chunk.
func (c *miniCursor) appendDef(a, b int) error {
	def, err := c.m.def.AppendRange(c.s.def, c.defBytes, c.levels, a, b, c.codecs)
	if err != nil {
		return c.locate(err)
	}
	c.s.def = def
	return nil
}

// appendLists adds the rows of a page with lists: a row is the entries from one with the largest repetition level to the next.
func (c *miniCursor) appendLists(sp span) error {
	t := c.st.chunks
	from, to := c.m.chunksOf(t, sp)
	for i := from; i < to; i++ {
		if err := c.openChunk(i); err != nil {
			return err
		}
		if err := c.loadLevels(); err != nil {
			return err
		}
		rep, def := c.s.chunkRep, []uint16(nil)
		if c.m.def != nil {
			def = c.s.chunkDef
		}
		// Rows that begin in the chunk: number started[i] is the first.
		a, b := 0, len(rep)
		if first := int64(sp.from) - t.started[i]; first >= 0 {
			a = c.s.rows.Zero(int(first), len(rep))
		}
		if end := int64(sp.to) - t.started[i]; end <= t.started[i+1]-t.started[i] {
			b = c.s.rows.Zero(int(end), len(rep))
		}
		if a >= b {
			continue
		}
		va, vb := 0, c.items
		if def != nil {
			va = c.s.visible.Ones(0, a)
			if b < len(rep) {
				vb = va + c.s.visible.Ones(a, b)
			}
		} else {
			va, vb = a, b
		}
		if vb > c.items || va > vb {
			return c.corrupt("%d values for levels that have %d", c.items, vb)
		}
		c.s.rep = append(c.s.rep, rep[a:b]...)
		if def != nil {
			c.s.def = append(c.s.def, def[a:b]...)
		}
		if err := c.m.values.Append(c.s.chunk, c.out, va, vb); err != nil {
			return c.locate(err)
		}
	}
	return nil
}

// loadLevels decodes all levels of the open chunk, once.
func (c *miniCursor) loadLevels() error {
	if c.hasLevels {
		return nil
	}
	var err error
	if c.s.chunkRep, err = c.m.rep.Append(c.s.chunkRep[:0], c.repBytes, c.levels, c.codecs); err != nil {
		return c.locate(err)
	}
	c.s.rows = encoding.MaskOf(c.s.rows, c.s.chunkRep, c.m.layers.MaxRep-1) // zeros begin rows
	if c.m.def != nil {
		if c.s.chunkDef, err = c.m.def.Append(c.s.chunkDef[:0], c.defBytes, c.levels, c.codecs); err != nil {
			return c.locate(err)
		}
		c.s.visible = encoding.MaskOf(c.s.visible, c.s.chunkDef, c.m.layers.MaxVisible)
	}
	c.hasLevels = true
	return nil
}

// openChunk makes chunk i the current one: it takes the header apart and checks every size.
func (c *miniCursor) openChunk(i int) error {
	if c.open == i {
		return nil
	}
	for i >= c.st.runs[c.run].to {
		c.run++
	}
	t, run := c.st.chunks, &c.st.runs[c.run]
	base := t.offsets[run.from]
	b := run.bytes[t.offsets[i]-base : t.offsets[i+1]-base]
	c.open, c.hasLevels = i, false
	c.items = int(t.items[i+1] - t.items[i])
	if t.first > 0 { // counted from the page's end: the chunk has to agree
		if items, ok := c.m.itemsOf(b); !ok || int(items) != c.items {
			return c.corrupt("%d values where the table has %d", items, c.items)
		}
	}
	var sizes [2 + 16]int
	n := 0
	head := chunkHeader{b: b}
	c.levels = head.u16()
	if c.m.rep != nil {
		sizes[n] = head.u16()
		n++
	}
	if c.m.def != nil {
		sizes[n] = head.u16()
		n++
	}
	for range c.m.buffers {
		sizes[n] = c.m.bufferSize(&head)
		n++
	}
	c.s.bufs = c.s.bufs[:0]
	at := pad8(head.at)
	for _, size := range sizes[:n] {
		if head.short || at > len(b) || size > len(b)-at {
			return c.corrupt("buffers that exceed the chunk of %d bytes", len(b))
		}
		c.s.bufs = append(c.s.bufs, b[at:at+size])
		at = pad8(at + size)
	}
	bufs := c.s.bufs
	if c.m.rep != nil {
		c.repBytes, bufs = bufs[0], bufs[1:]
	}
	if c.m.def != nil {
		c.defBytes, bufs = bufs[0], bufs[1:]
	}
	if err := c.m.values.Open(c.s.chunk, bufs, c.items); err != nil {
		return c.locate(err)
	}
	return nil
}

// chunkHeader reads the numbers at the head of a chunk.
type chunkHeader struct {
	b     []byte
	at    int
	short bool
}

func (h *chunkHeader) u16() int {
	if len(h.b)-h.at < 2 {
		h.short = true
		return 0
	}
	h.at += 2
	return int(binary.LittleEndian.Uint16(h.b[h.at-2:]))
}

func (h *chunkHeader) u32() int {
	if len(h.b)-h.at < 4 {
		h.short = true
		return 0
	}
	h.at += 4
	return int(binary.LittleEndian.Uint32(h.b[h.at-4:]))
}

func pad8(n int) int { return (n + 7) &^ 7 }

func (c *miniCursor) corrupt(format string, args ...any) error {
	return c.locate(errs.Corrupt("chunk", -1, format, args...))
}

// locate says in which chunk an error arose.
func (c *miniCursor) locate(err error) error {
	return locate(err, sectionChunk(c.st.chunks.first+c.open), c.m.page.buffers[miniChunks].Offset+c.st.chunks.offsets[c.open])
}
