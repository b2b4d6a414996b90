package file

import (
	"slices"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
)

// Where a chunk lies and which rows it holds is the sum of the words before it, and none of them can be left out: words of one page may
// differ. A page of a million small vectors has 30,000 words, more bytes than a row is worth. So a take from a file that is not mapped
// reads the words from the nearer end of the page up to the wanted chunk, and keeps them: no word is read twice, and one row costs at most
// about half of the table. docs/format/page.md section 3.

const (
	// pieceSlack is how many words more than estimated are read, so that chunks which differ a little need no second request.
	pieceSlack = 32
	// bareHeader is the bytes in front of the values of a chunk that has one buffer and no levels.
	bareHeader = 8
	// lastHeaderBytes of a page's last chunk tell how many values it has: header and first offset.
	lastHeaderBytes = 16
)

// pieceAsk is the words [from, to) that are on their way.
type pieceAsk struct {
	from, to int
	isBack   bool
	words    []byte // where the header of the last chunk is on its way too
}

func (m *miniPage) chunkCount() int {
	return int(m.page.buffers[miniMetadata].Size / int64(m.wordBytes()))
}

// readsPieces reports whether the chunk table is read in pieces: it is large, only a few rows are wanted, and the last chunk says how many
// values it has, without which nothing can be counted from the page's end.
func (m *miniPage) readsPieces(r *Reader, p *part) bool {
	size := m.page.buffers[miniMetadata].Size
	return p.sparse && size > r.tableBytes && size > 0 && size%int64(m.wordBytes()) == 0 && m.repIndex == 0 && m.rep == nil && m.dictEncoding == nil &&
		(m.def != nil || m.isFlatOnly() || m.values.OffsetBytes() > 0) && uint64(m.chunkCount()) <= m.items
}

// isFlatOnly reports whether chunks are a header of 8 bytes and the values as they are.
func (m *miniPage) isFlatOnly() bool {
	return m.isFlat() && m.buffers == 1 && m.rep == nil && m.def == nil && m.shape.ItemBits%8 == 0 && m.shape.Bits() > 0
}

// askPiece finds the piece that holds the rows of p. It returns the words to read first, none where the piece is known or the whole table is
// as good: st.chunks tells which.
func (m *miniPage) askPiece(p *part, st *miniState) []object.Range {
	front, back := m.front.Load(), m.back.Load()
	for _, t := range []*chunkTable{front, back} {
		if t != nil && t.covers(p.spans) {
			st.chunks = t
			return nil
		}
	}
	n, known := m.chunkCount(), 0
	if front != nil {
		known = front.count()
	}
	tail := n
	if back != nil {
		tail = back.first
	}
	perChunk := float64(m.items) / float64(n)
	lo := int(float64(p.spans[0].from)/perChunk) - pieceSlack
	hi := int(float64(p.spans[len(p.spans)-1].to)/perChunk) + pieceSlack
	hi, lo = min(max(hi, known+pieceSlack), n), max(min(lo, tail-pieceSlack), 0)
	// From the front values are read without their chunk's header, so it may be a little further.
	if forward, backward := hi-known, tail-lo; 12*forward <= 13*backward {
		st.ask = pieceAsk{from: known, to: hi}
	} else {
		st.ask = pieceAsk{from: lo, to: tail, isBack: true}
	}
	if st.ask.to-st.ask.from > n*3/4 {
		return nil
	}
	p.step = stepPiece
	w := int64(m.wordBytes())
	return []object.Range{within(m.page.buffers[miniMetadata], int64(st.ask.from)*w, int64(st.ask.to-st.ask.from)*w)}
}

// covers reports whether the table has every chunk of the spans.
func (t *chunkTable) covers(spans []span) bool {
	return t.items[0] <= int64(spans[0].from) && t.items[t.count()] >= int64(spans[len(spans)-1].to)
}

// loadPiece makes a table of the words that came. It returns what has to be read before there is one that covers the rows of p.
func (m *miniPage) loadPiece(r *Reader, p *part, st *miniState) ([]object.Range, error) {
	var t *chunkTable
	var err error
	switch {
	case p.step == stepLast:
		t, err = m.lastPiece(st.ask, p.got[0])
	case !st.ask.isBack:
		t, err = m.extendFront(st.ask, p.got[0])
	default:
		after := m.back.Load()
		if after == nil || after.first != st.ask.to {
			if st.ask.to == m.chunkCount() {
				return m.askLast(p, st)
			}
			after = nil // it gave way meanwhile
		}
		t, err = m.extendBack(st.ask, p.got[0], after)
	}
	if err != nil {
		return nil, err
	}
	if t != nil {
		m.keepPiece(r, t)
		if t.covers(p.spans) {
			st.chunks = t
			return nil, nil
		}
	}
	p.step = stepTables // the chunks differ much: read all words
	return m.tableRanges(st), nil
}

// extendFront adds words to the piece from the page's first chunk on; nil = that piece gave way meanwhile.
func (m *miniPage) extendFront(ask pieceAsk, words []byte) (*chunkTable, error) {
	t := &chunkTable{offsets: []int64{0}, items: []int64{0}}
	if ask.from > 0 {
		before := m.front.Load()
		if before == nil || before.count() < ask.from {
			return nil, nil //nolint:nilnil // the caller reads the whole table
		}
		t.offsets, t.items = slices.Clone(before.offsets[:ask.from+1]), slices.Clone(before.items[:ask.from+1])
	}
	return t, m.extend(t, words, m.chunkCount())
}

// askLast asks for the header of the page's last chunk, whose word came.
func (m *miniPage) askLast(p *part, st *miniState) ([]object.Range, error) {
	words := p.got[0]
	bytes, _ := m.chunkWord(words, len(words)/m.wordBytes()-1)
	size := m.page.buffers[miniChunks].Size
	if bytes > size {
		return nil, m.corruptTable("a chunk of %d bytes in a buffer of %d", bytes, size)
	}
	st.ask.words = words
	p.step = stepLast
	return []object.Range{within(m.page.buffers[miniChunks], size-bytes, min(bytes, lastHeaderBytes))}, nil
}

// lastPiece makes a table of the words up to the page's last chunk, whose header is there too.
func (m *miniPage) lastPiece(ask pieceAsk, header []byte) (*chunkTable, error) {
	items, ok := m.itemsOf(header)
	if !ok || items > 1<<15 || items > int64(m.items) {
		return nil, m.corruptTable("%d values in the last chunk", items)
	}
	last := len(ask.words)/m.wordBytes() - 1
	bytes, _ := m.chunkWord(ask.words, last)
	end := &chunkTable{
		first: ask.to - 1, offsets: []int64{m.page.buffers[miniChunks].Size - bytes, m.page.buffers[miniChunks].Size},
		items: []int64{int64(m.items) - items, int64(m.items)},
	}
	ask.to--
	return m.extendBack(ask, ask.words[:last*m.wordBytes()], end)
}

// extendBack puts words before the chunks of a piece that ends with the page's last one; nil = that piece gave way meanwhile.
func (m *miniPage) extendBack(ask pieceAsk, words []byte, after *chunkTable) (*chunkTable, error) {
	if after == nil {
		return nil, nil //nolint:nilnil // the caller reads the whole table
	}
	n := ask.to - ask.from
	t := &chunkTable{first: ask.from, offsets: make([]int64, n, n+len(after.offsets)), items: make([]int64, n, n+len(after.items))}
	t.offsets, t.items = append(t.offsets, after.offsets...), append(t.items, after.items...)
	for i := n - 1; i >= 0; i-- {
		bytes, count := m.chunkWord(words, i)
		t.offsets[i], t.items[i] = t.offsets[i+1]-bytes, t.items[i+1]-count
	}
	if t.offsets[0] < 0 || t.items[0] < 0 {
		return nil, m.corruptTable("chunks of more bytes or values than the page has")
	}
	if t.first == 0 && (t.offsets[0] > 0 || t.items[0] > 0) {
		return nil, nil //nolint:nilnil // the chunks do not fill their buffer, so they cannot be counted from its end: read the whole table
	}
	return t, nil
}

// itemsOf returns the values of a chunk, as its first bytes tell.
func (m *miniPage) itemsOf(b []byte) (items int64, ok bool) {
	h := chunkHeader{b: b}
	levels := h.u16()
	if m.def != nil { // without lists every value has a level
		return int64(levels), !h.short
	}
	size, w := m.bufferSize(&h), m.values.OffsetBytes()
	switch {
	case h.short || levels != 0:
		return 0, false
	case w == 0:
		width := m.shape.Bits() / 8
		return int64(size / width), size%width == 0
	case len(b) < bareHeader+w:
		return 0, false
	}
	first := position(b[bareHeader : bareHeader+w])
	return int64(first)/int64(w) - 1, first%uint64(w) == 0 && first >= uint64(w) && first <= uint64(size)
}

// bufferSize reads the size of a value buffer.
func (m *miniPage) bufferSize(h *chunkHeader) int {
	if m.large {
		return h.u32()
	}
	return h.u16()
}

// keepPiece makes the page remember a piece instead of the one that it grew from.
func (m *miniPage) keepPiece(r *Reader, t *chunkTable) {
	slot := &m.front
	switch {
	case t.count() == m.chunkCount():
		slot = &m.chunks
	case t.first > 0:
		slot = &m.back
	}
	var old *chunkTable
	r.cache.keep(t, t.sizeBytes(), func() { old = slot.Swap(t) }, func() { slot.CompareAndSwap(t, nil) })
	if old != nil {
		r.cache.forget(old)
	}
}

// flatPiece is rows of one chunk whose values lie at computed places.
type flatPiece struct {
	chunk  int
	rows   int
	values []byte
}

// readsValues reports whether only the wanted values of chunks are read.
func (m *miniPage) readsValues(p *part, st *miniState) bool {
	if !p.sparse || !m.isFlatOnly() {
		return false
	}
	held := int64(0)
	for _, run := range st.runs {
		held += st.chunks.items[run.to] - st.chunks.items[run.from]
	}
	return int64(spanRows(p.spans)) <= held/4
}

// valueRanges lists the places of the wanted values.
func (m *miniPage) valueRanges(p *part, st *miniState) []object.Range {
	t, width := st.chunks, int64(m.shape.Bits()/8)
	var rs []object.Range
	st.flat = []flatPiece{}
	for _, s := range p.spans {
		from, to := m.chunksOf(t, s)
		for i := from; i < to; i++ {
			a, b := max(t.items[i], int64(s.from))-t.items[i], min(t.items[i+1], int64(s.to))-t.items[i]
			if a >= b {
				continue
			}
			if t.first > 0 {
				rs = append(rs, within(m.page.buffers[miniChunks], t.offsets[i], bareHeader))
			}
			st.flat = append(st.flat, flatPiece{chunk: i, rows: int(b - a)})
			rs = append(rs, within(m.page.buffers[miniChunks], t.offsets[i]+bareHeader+a*width, (b-a)*width))
		}
	}
	return rs
}

// takeValues takes note of the bytes of valueRanges and checks the headers among them.
func (m *miniPage) takeValues(p *part, st *miniState) error {
	t, got := st.chunks, p.got
	for i := range st.flat {
		f := &st.flat[i]
		held := t.items[f.chunk+1] - t.items[f.chunk]
		size := held * int64(m.shape.Bits()/8)
		if t.first > 0 {
			if items, ok := m.itemsOf(got[0]); !ok || items != held {
				return m.locateChunk(t, f.chunk, "%d values where the table has %d", items, held)
			}
			got = got[1:]
		}
		if bareHeader+size > t.offsets[f.chunk+1]-t.offsets[f.chunk] {
			return m.locateChunk(t, f.chunk, "%d bytes of values in a chunk of %d", size, t.offsets[f.chunk+1]-t.offsets[f.chunk])
		}
		f.values, got = got[0], got[1:]
	}
	return nil
}

func (m *miniPage) locateChunk(t *chunkTable, i int, format string, args ...any) error {
	return locate(errs.Corrupt("chunk", -1, format, args...), sectionChunk(t.first+i), m.page.buffers[miniChunks].Offset+t.offsets[i])
}

// decodeValues appends what valueRanges read.
func (m *miniPage) decodeValues(l *leafRead, st *miniState, s *scratch) error {
	rows := 0
	for _, f := range st.flat {
		s.bufs = append(s.bufs[:0], f.values)
		if err := m.values.Open(s.chunk, s.bufs, f.rows); err != nil {
			return err
		}
		if err := m.values.Append(s.chunk, l.values, 0, f.rows); err != nil {
			return err
		}
		rows += f.rows
	}
	if _, err := l.nest.Append(m.layers, nil, nil, rows); err != nil {
		return err
	}
	return l.plainPart()
}
