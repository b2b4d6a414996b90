package encoding

import (
	"encoding/binary"
	"math"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	chunkPad      = 0xFE     // filler between the parts of a chunk; any value is accepted
	chunkBytesMax = 32 << 10 // chunk size that the 16-bit words of version 2.1 can say
	chunkWordMax  = 1 << 28 * 8
)

// encodeMiniBlock lays the page out as chunks of a power of two values, each with its own levels (docs/format/writing.md section 3).
func (b *leafBuilder) encodeMiniBlock(lv pageLevels, opts EncodeOptions) (*Page, error) {
	vals := b.chunkValues(opts)
	if vals == nil {
		return nil, errs.New(errs.ErrOverflow, "more different values than the dictionary's indices can say, %d", b.indexMax)
	}
	w := chunkWriter{lv: lv, vals: vals, v22: opts.V22}
	w.rep, w.def = codecFor(lv.rep, lv.maxRep, opts.V22), codecFor(lv.def, lv.maxDef, opts.V22)
	room := len(b.data) + 4*len(b.ends) + lv.entries/32 + 4096 // about the size of plain values, so that it grows seldom
	if hasLevels := lv.rep != nil || lv.def != nil; hasLevels {
		room += lv.entries / 2
	}
	w.chunks = takeBuffer(room)
	if err := w.run(b.slots); err != nil {
		return nil, err
	}
	w.chunks = trimmed(w.chunks)
	switch v := vals.(type) {
	case *fsstValues:
		giveBuffer(v.data)
		giveWords(v.ends)
	case dictionaryValues:
		giveWords(v.indices)
	}
	m := &encpb.MiniBlockLayout{
		ValueCompression: vals.message(),
		Layers:           lv.layers,
		NumBuffers:       uint64(vals.buffers()),
		NumItems:         uint64(b.slots),
		HasLargeChunk:    opts.V22,
	}
	buffers := [][]byte{w.words, w.chunks}
	if d := vals.dictionary(); d != nil {
		m.Dictionary, m.NumDictionaryItems = d.message, uint64(d.items)
		buffers = append(buffers, d.buffer)
	}
	if lv.rep != nil {
		m.RepCompression = w.rep.message()
		m.RepetitionIndexDepth = 1
		buffers = append(buffers, w.repIndex())
	}
	if lv.def != nil {
		m.DefCompression = w.def.message()
	}
	return &Page{Layout: &encpb.PageLayout{Layout: &encpb.PageLayout_MiniBlockLayout{MiniBlockLayout: m}}, Buffers: buffers}, nil
}

// chunkWriter cuts one page into chunks.
type chunkWriter struct {
	lv     pageLevels
	vals   chunkValues
	v22    bool
	rep    levelCodec
	def    levelCodec
	words  []byte // chunk metadata
	chunks []byte
	rows   [][2]uint64 // repetition index: rows finished, levels left over
}

func (w *chunkWriter) run(slots int) error {
	entry := 0
	for first := 0; first < slots; {
		log := w.vals.chunkLog(first)
		n := min(1<<log, slots-first)
		isLast := first+n == slots
		entryEnd := w.entryEnd(entry, n, isLast)
		if entryEnd-entry > math.MaxUint16 {
			return errManyLevels
		}
		start := len(w.chunks)
		w.appendChunk(entry, entryEnd, first, n)
		size := len(w.chunks) - start
		if size > chunkWordMax || (!w.v22 && size > chunkBytesMax) {
			return errChunkSize
		}
		word := uint32(size/8-1) << 4
		if !isLast {
			word |= uint32(log)
		}
		if w.v22 {
			w.words = binary.LittleEndian.AppendUint32(w.words, word)
		} else {
			w.words = binary.LittleEndian.AppendUint16(w.words, uint16(word))
		}
		w.countRows(entry, entryEnd)
		first, entry = first+n, entryEnd
	}
	return nil
}

// entryEnd finds where the chunk that starts at entry ends: after n entries with a slot; the last chunk takes all the rest.
func (w *chunkWriter) entryEnd(entry, n int, isLast bool) int {
	switch {
	case isLast:
		return w.lv.entries
	case w.lv.def == nil || w.lv.rep == nil:
		return entry + n
	}
	for ; n > 0; entry++ {
		if w.lv.def[entry] <= w.lv.maxVisible {
			n--
		}
	}
	return entry
}

func (w *chunkWriter) appendChunk(entry, entryEnd, first, n int) {
	start := len(w.chunks)
	var sizes [3]int // rep, def, then room for nothing: value sizes are patched below
	hasLevels := w.lv.rep != nil || w.lv.def != nil
	levels := 0
	if hasLevels {
		levels = entryEnd - entry
	}
	w.chunks = binary.LittleEndian.AppendUint16(w.chunks, uint16(levels))
	repAt := len(w.chunks)
	if w.lv.rep != nil {
		w.chunks = append(w.chunks, 0, 0)
	}
	defAt := len(w.chunks)
	if w.lv.def != nil {
		w.chunks = append(w.chunks, 0, 0)
	}
	valuesAt := len(w.chunks)
	sizeBytes := 2
	if w.v22 {
		sizeBytes = 4
	}
	w.chunks = appendRepeated(w.chunks, 0, sizeBytes*w.vals.buffers())
	w.pad(start)
	if w.lv.rep != nil {
		at := len(w.chunks)
		w.chunks = w.rep.append(w.chunks, w.lv.rep[entry:entryEnd])
		sizes[0] = len(w.chunks) - at
		binary.LittleEndian.PutUint16(w.chunks[repAt:], uint16(sizes[0]))
		w.pad(start)
	}
	if w.lv.def != nil {
		at := len(w.chunks)
		w.chunks = w.def.append(w.chunks, w.lv.def[entry:entryEnd])
		sizes[1] = len(w.chunks) - at
		binary.LittleEndian.PutUint16(w.chunks[defAt:], uint16(sizes[1]))
		w.pad(start)
	}
	for i := range w.vals.buffers() {
		at := len(w.chunks)
		w.chunks = w.vals.appendBuffer(w.chunks, i, first, n)
		size := len(w.chunks) - at
		if w.v22 {
			binary.LittleEndian.PutUint32(w.chunks[valuesAt+4*i:], uint32(size))
		} else {
			binary.LittleEndian.PutUint16(w.chunks[valuesAt+2*i:], uint16(min(size, math.MaxUint16)))
		}
		w.pad(start)
	}
}

func (w *chunkWriter) pad(start int) {
	for (len(w.chunks)-start)%8 != 0 {
		w.chunks = append(w.chunks, chunkPad)
	}
}

// countRows adds the chunk to the repetition index: the rows that finish in it and the levels since its last unfinished row began. What
// the next chunk begins with decides about the end of this one.
func (w *chunkWriter) countRows(entry, entryEnd int) {
	if w.lv.rep == nil {
		return
	}
	rep := w.lv.rep[entry:entryEnd]
	if last := len(w.rows) - 1; last >= 0 && len(rep) > 0 && rep[0] == w.lv.maxRep {
		w.rows[last][0]++
		w.rows[last][1] = 0
	}
	var finished uint64
	left := len(rep)
	for i, r := range rep {
		if r == w.lv.maxRep {
			left = len(rep) - i
			if i > 0 {
				finished++
			}
		}
	}
	w.rows = append(w.rows, [2]uint64{finished, uint64(left)})
}

func (w *chunkWriter) repIndex() []byte {
	if last := len(w.rows) - 1; last >= 0 {
		w.rows[last][0]++
		w.rows[last][1] = 0
	}
	out := make([]byte, 0, 16*len(w.rows))
	for _, r := range w.rows {
		out = binary.LittleEndian.AppendUint64(out, r[0])
		out = binary.LittleEndian.AppendUint64(out, r[1])
	}
	return out
}
