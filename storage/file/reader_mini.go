package file

import (
	"encoding/binary"
	"math"
	"sort"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	miniMetadata = iota // buffer indices
	miniChunks
	miniDictionary
)

// miniPage reads pages of small chunks; docs/format/page.md section 3.
type miniPage struct {
	page    *page
	leaf    *leafPlan
	layers  *encoding.PageLayers
	rep     *encoding.Levels // nil = the page has none
	def     *encoding.Levels
	values  *encoding.MiniBlock
	shape   *encoding.Shape // of what chunks hold: the leaf's values, or dictionary indices
	large   bool            // 32-bit chunk words and buffer sizes
	buffers int
	items   uint64

	dictEncoding *encpb.CompressiveEncoding // nil = no dictionary
	dictItems    uint64
	repIndex     int // index of the repetition index among the buffers; 0 = none

	chunks      atomic.Pointer[chunkTable]
	front, back atomic.Pointer[chunkTable] // pieces of it, from either end
	dict        atomic.Pointer[dictionary]
}

// chunkTable says where the chunks of a page lie and what they hold. n chunks have n+1 entries in each slice. Numbers of chunks
// count from the table's first one, which is not the page's where the table is a piece from its end.
type chunkTable struct {
	first    int
	offsets  []int64
	items    []int64 // values before the chunk
	finished []int64 // lists: rows that end before the chunk
	started  []int64 // lists: rows that begin before the chunk
}

func (t *chunkTable) count() int { return len(t.offsets) - 1 }

func (t *chunkTable) sizeBytes() int {
	return 8 * (len(t.offsets) + len(t.items) + len(t.finished) + len(t.started))
}

func newMiniPage(p *page, l *leafPlan, m *encpb.MiniBlockLayout) (*miniPage, error) {
	layers, err := encoding.CompileLayers(m.GetLayers(), l.specs)
	if err != nil {
		return nil, err
	}
	mp := &miniPage{
		page: p, leaf: l, layers: layers, large: m.GetHasLargeChunk(), buffers: int(m.GetNumBuffers()), items: m.GetNumItems(),
		shape: &l.shape, dictEncoding: m.GetDictionary(), dictItems: m.GetNumDictionaryItems(),
	}
	if mp.items > math.MaxInt32 || m.GetNumBuffers() > 16 {
		return nil, errs.Corrupt("layout", -1, "%d items in chunks of %d buffers", mp.items, m.GetNumBuffers())
	}
	if e := m.GetRepCompression(); e != nil {
		if mp.rep, err = encoding.CompileLevels(e); err != nil {
			return nil, err
		}
	}
	if e := m.GetDefCompression(); e != nil {
		if mp.def, err = encoding.CompileLevels(e); err != nil {
			return nil, err
		}
	}
	if mp.dictEncoding != nil {
		if mp.shape, err = encoding.IndexShape(m.GetValueCompression()); err != nil {
			return nil, err
		}
		if mp.dictItems > math.MaxInt32 {
			return nil, errs.Corrupt("layout", -1, "a dictionary of %d values", mp.dictItems)
		}
	}
	if mp.values, err = encoding.CompileMiniBlock(m.GetValueCompression(), mp.shape, mp.buffers); err != nil {
		return nil, err
	}
	return mp, mp.checkBuffers(m.GetRepetitionIndexDepth())
}

func (m *miniPage) checkBuffers(indexDepth uint32) error {
	want := 2
	if m.dictEncoding != nil {
		want++
	}
	if m.layers.MaxRep > 0 {
		if m.rep == nil || indexDepth == 0 {
			return errs.Corrupt("layout", -1, "lists without repetition levels or their index")
		}
		if indexDepth != 1 {
			return errs.New(errs.ErrUnsupported, "a repetition index of depth %d is not supported", indexDepth)
		}
		m.repIndex = want
		want++
	} else {
		if indexDepth != 0 {
			want++ // an index that nothing needs
		}
		if m.items != m.page.rows {
			return errs.Corrupt("layout", -1, "%d items in a page of %d rows", m.items, m.page.rows)
		}
	}
	if len(m.page.buffers) != want {
		return errs.Corrupt("layout", -1, "%d buffers, not %d", len(m.page.buffers), want)
	}
	return nil
}

// miniState is a miniPage part on its way.
type miniState struct {
	chunks *chunkTable
	dict   *dictionary
	runs   []chunkRun
	flat   []flatPiece // instead of runs
	ask    pieceAsk
}

// chunkRun is consecutive chunks that are read together.
type chunkRun struct {
	from, to int
	bytes    []byte
}

const (
	stepStart = iota
	stepPiece
	stepLast
	stepTables
	stepData
)

func (m *miniPage) fetch(r *Reader, p *part) ([]object.Range, error) {
	st, _ := p.state.(*miniState)
	switch p.step {
	case stepStart:
		st = &miniState{chunks: m.chunks.Load(), dict: m.dict.Load()}
		p.state = st
		if st.chunks == nil && m.readsPieces(r, p) {
			if rs := m.askPiece(p, st); len(rs) > 0 {
				return rs, nil
			}
		}
		if rs := m.tableRanges(st); len(rs) > 0 {
			p.step = stepTables
			return rs, nil
		}
	case stepPiece, stepLast:
		if rs, err := m.loadPiece(r, p, st); len(rs) > 0 || err != nil {
			return rs, err
		}
	case stepTables:
		if err := m.loadTables(r, st, p.got); err != nil {
			return nil, err
		}
	case stepData:
		return nil, m.takeData(p, st)
	}
	p.step = stepData
	st.runs = m.findRuns(st.chunks, p.spans)
	if m.readsValues(p, st) {
		return m.valueRanges(p, st), nil
	}
	rs := make([]object.Range, len(st.runs))
	for i, run := range st.runs {
		from := st.chunks.offsets[run.from]
		rs[i] = within(m.page.buffers[miniChunks], from, st.chunks.offsets[run.to]-from)
	}
	return rs, nil
}

func (m *miniPage) takeData(p *part, st *miniState) error {
	if st.flat != nil {
		return m.takeValues(p, st)
	}
	for i := range st.runs {
		st.runs[i].bytes = p.got[i]
	}
	return nil
}

func (m *miniPage) tableRanges(st *miniState) []object.Range {
	var rs []object.Range
	if st.chunks == nil {
		rs = append(rs, m.page.buffers[miniMetadata])
		if m.repIndex > 0 {
			rs = append(rs, m.page.buffers[m.repIndex])
		}
	}
	if m.dictEncoding != nil && st.dict == nil {
		rs = append(rs, m.page.buffers[miniDictionary])
	}
	return rs
}

func (m *miniPage) loadTables(r *Reader, st *miniState, got [][]byte) error {
	if st.chunks == nil {
		var index []byte
		meta := got[0]
		got = got[1:]
		if m.repIndex > 0 {
			index, got = got[0], got[1:]
		}
		t, err := m.parseChunks(meta, index)
		if err != nil {
			return err
		}
		st.chunks = t
		r.cache.keep(t, t.sizeBytes(), func() { m.chunks.Store(t) }, func() { m.chunks.Store(nil) })
	}
	if m.dictEncoding != nil && st.dict == nil {
		d, err := m.loadDictionary(r, got[0])
		if err != nil {
			return err
		}
		st.dict = d
		r.cache.keep(d, d.sizeBytes, func() { m.dict.Store(d) }, func() { m.dict.Store(nil) })
	}
	return nil
}

func (m *miniPage) loadDictionary(r *Reader, b []byte) (*dictionary, error) {
	v := encoding.NewValues(memory.DefaultAllocator, r.codecs, &m.leaf.shape, 0)
	if err := encoding.AppendBlock(v, m.dictEncoding, b, int(m.dictItems)); err != nil {
		v.Release()
		return nil, locate(err, "dictionary", m.page.buffers[miniDictionary].Offset)
	}
	d := &dictionary{count: v.N, sizeBytes: v.SizeBytes()}
	if m.leaf.typ.ID() != arrow.DICTIONARY {
		v.SealDictionary()
		d.values = v
		if v.Shape.Kind == encoding.Variable {
			offsets, data := v.Variable()
			shared := array.NewData(m.leaf.typ, v.N, []*memory.Buffer{nil, memory.NewBufferBytes(offsets), memory.NewBufferBytes(data)}, nil, 0, 0)
			defer shared.Release()
			d.array = array.MakeFromData(shared)
		}
		return d, nil
	}
	data, err := valuesData(v, m.leaf.field, dictValueType(m.leaf.typ), nil, 0)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	d.array = array.MakeFromData(data)
	return d, nil
}

// wordBytes is the size of a chunk word.
func (m *miniPage) wordBytes() int {
	if m.large {
		return 4
	}
	return 2
}

// chunkWord returns the bytes of the chunk that word i describes, and its values, which do not count for the last chunk of a page.
func (m *miniPage) chunkWord(meta []byte, i int) (bytes, items int64) {
	var word uint32
	if m.large {
		word = binary.LittleEndian.Uint32(meta[4*i:])
	} else {
		word = uint32(binary.LittleEndian.Uint16(meta[2*i:]))
	}
	return (int64(word>>4) + 1) * 8, int64(1) << (word & 15)
}

func (m *miniPage) corruptTable(format string, args ...any) error {
	return errs.Corrupt("chunk table", m.page.buffers[miniMetadata].Offset, format, args...)
}

// parseChunks reads the chunk words and the repetition index and checks that they add up.
func (m *miniPage) parseChunks(meta, index []byte) (*chunkTable, error) {
	n := len(meta) / m.wordBytes()
	if len(meta)%m.wordBytes() != 0 || (n == 0) != (m.page.rows == 0) {
		return nil, m.corruptTable("%d bytes of %d-byte words", len(meta), m.wordBytes())
	}
	t := &chunkTable{offsets: make([]int64, 1, n+1), items: make([]int64, 1, n+1)}
	if err := m.extend(t, meta, n); err != nil {
		return nil, err
	}
	if m.repIndex == 0 {
		return t, nil
	}
	return t, m.parseRepIndex(t, index)
}

// extend adds the chunks of the words in meta to a table that starts at the page's first chunk; the page has n chunks.
func (m *miniPage) extend(t *chunkTable, meta []byte, n int) error {
	at, items := t.offsets[t.count()], t.items[t.count()]
	for i := range len(meta) / m.wordBytes() {
		bytes, count := m.chunkWord(meta, i)
		if t.count() == n-1 {
			if count = int64(m.items) - items; count < 0 || count > 1<<15 {
				return m.corruptTable("%d values in the last chunk", count)
			}
		}
		at += bytes
		items += count
		t.offsets, t.items = append(t.offsets, at), append(t.items, items)
	}
	if at > m.page.buffers[miniChunks].Size {
		return m.corruptTable("chunks of %d bytes in a buffer of %d", at, m.page.buffers[miniChunks].Size)
	}
	return nil
}

// parseRepIndex reads, for each chunk, the rows that end in it and the levels that are left over.
func (m *miniPage) parseRepIndex(t *chunkTable, index []byte) error {
	n := t.count()
	at := m.page.buffers[m.repIndex].Offset
	if len(index) != 16*n {
		return errs.Corrupt("repetition index", at, "%d bytes for %d chunks", len(index), n)
	}
	t.finished, t.started = make([]int64, n+1), make([]int64, n+1)
	var rows uint64
	for i := range n {
		ends, left := binary.LittleEndian.Uint64(index[16*i:]), binary.LittleEndian.Uint64(index[16*i+8:])
		if ends > m.page.rows-rows {
			return errs.Corrupt("repetition index", at+int64(16*i), "%d rows end in the chunks of a page of %d", rows+ends, m.page.rows)
		}
		rows += ends
		t.finished[i+1], t.started[i+1] = int64(rows), int64(rows)
		if left > 0 {
			t.started[i+1]++
		}
	}
	if rows != m.page.rows || t.started[n] != t.finished[n] {
		return errs.Corrupt("repetition index", at, "%d rows end in the chunks of a page of %d", rows, m.page.rows)
	}
	return nil
}

// chunksOf returns the chunks [from, to) that hold the rows of s.
func (m *miniPage) chunksOf(t *chunkTable, s span) (from, to int) {
	begins, ends := t.items, t.items
	if m.repIndex > 0 {
		begins, ends = t.started, t.finished
	}
	n := t.count()
	from = sort.Search(n, func(i int) bool { return begins[i+1] > int64(s.from) })
	to = from + sort.Search(n-from, func(i int) bool { return ends[from+i+1] >= int64(s.to) })
	return from, min(to+1, n)
}

func (m *miniPage) findRuns(t *chunkTable, spans []span) []chunkRun {
	var runs []chunkRun
	for _, s := range spans {
		from, to := m.chunksOf(t, s)
		if n := len(runs); n > 0 && runs[n-1].to >= from {
			runs[n-1].to = max(runs[n-1].to, to)
			continue
		}
		runs = append(runs, chunkRun{from: from, to: to})
	}
	return runs
}

// estimate guesses the values and the bytes of a part: its share of the chunks that it touches.
func (m *miniPage) estimate(p *part) (values, bytes int) {
	st, _ := p.state.(*miniState)
	t := st.chunks
	for _, run := range st.runs {
		values += int(t.items[run.to] - t.items[run.from])
		bytes += len(run.bytes)
	}
	rows := spanRows(p.spans)
	if m.repIndex == 0 {
		return rows, int(float64(bytes) * float64(rows) / float64(max(values, 1)))
	}
	touched := 0
	for _, run := range st.runs {
		touched += int(t.finished[run.to] - t.finished[run.from])
	}
	share := min(1, float64(rows)/float64(max(touched, 1)))
	return int(share * float64(values)), int(share * float64(bytes))
}
