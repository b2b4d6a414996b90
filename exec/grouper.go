package exec

import (
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/mem"
)

// grouper numbers distinct keys (one or more columns) from 0, in order of first sight; NULLs are equal to each other. It is used by one goroutine.
type grouper interface {
	// assign writes the group of each row to ids, adding groups that are new. n is the number of rows.
	assign(cols []arrow.Array, n int, ids []uint32) error
	// find writes the group of each row to ids, noGroup where it is not there. It may run in several goroutines, each with a scratch of its own.
	find(s *findScratch, cols []arrow.Array, n int, ids []uint32) error
	count() int
	// hashes appends the hash of each group's key.
	hashes(out []uint64) ([]uint64, error)
	// keys builds the key columns of groups from to to-1.
	keys(alloc memory.Allocator, from, to int) ([]arrow.Array, error)
	close()
}

// findScratch is what one goroutine needs to look keys up.
type findScratch struct {
	words []uint64
	rows  rowEncoder
	codes codeMaps // of the one table that is looked up in
}

// newGrouper picks the table for keys of the given types. keepKeys false saves the memory for the keys method, which then must not be called.
func newGrouper(alloc memory.Allocator, res *mem.Reservation, types []arrow.DataType, keepKeys bool) (grouper, error) {
	if len(types) == 0 {
		return &oneGroup{}, nil
	}
	if len(types) == 1 && isWordKey(types[0]) {
		t, err := newWordTable(res)
		return &wordGrouper{table: t, typ: types[0]}, err
	}
	if keepKeys && canCode(types) {
		return newCodedGrouper(alloc, res, types)
	}
	t, err := newBytesTable(res)
	if err != nil {
		return nil, err
	}
	if len(types) == 1 && isStringKey(types[0]) {
		return &stringGrouper{table: t, typ: types[0], codes: codeMaps{res: res}}, nil
	}
	for _, t := range types {
		if err := checkKeyType(t); err != nil {
			return nil, err
		}
	}
	return &rowGrouper{alloc: alloc, table: t, types: types, keep: keepKeys}, nil
}

// oneGroup is the grouper of no keys: every row is in group 0.
type oneGroup struct{ seen bool }

func (g *oneGroup) assign(_ []arrow.Array, n int, ids []uint32) error {
	g.seen = g.seen || n > 0
	clear(ids)
	return nil
}

func (g *oneGroup) find(_ *findScratch, _ []arrow.Array, _ int, ids []uint32) error {
	if g.seen {
		clear(ids)
		return nil
	}
	for i := range ids {
		ids[i] = noGroup
	}
	return nil
}

func (g *oneGroup) count() int {
	if g.seen {
		return 1
	}
	return 0
}

func (g *oneGroup) hashes(out []uint64) ([]uint64, error) {
	return append(out, make([]uint64, g.count())...), nil
}

func (g *oneGroup) keys(memory.Allocator, int, int) ([]arrow.Array, error) { return nil, nil }

func (g *oneGroup) close() {}

// wordGrouper has one key of at most 8 bytes.
type wordGrouper struct {
	table *wordTable
	typ   arrow.DataType
	words []uint64
}

func (g *wordGrouper) assign(cols []arrow.Array, n int, ids []uint32) error {
	words := wordsOf(cols[0], n, &g.words)
	bits, bitOffset := validity(cols[0])
	return g.table.assign(words, bits, bitOffset, ids)
}

// wordsOf returns the key words of a, without copying where they are words already.
func wordsOf(a arrow.Array, n int, scratch *[]uint64) []uint64 {
	switch a.DataType().ID() {
	case arrow.INT64, arrow.UINT64, arrow.TIMESTAMP, arrow.DATE64, arrow.TIME64, arrow.DURATION:
		return fixedValues[uint64](a)
	}
	*scratch = resized(*scratch, n)
	keyWords(a, *scratch)
	return *scratch
}

func (g *wordGrouper) find(s *findScratch, cols []arrow.Array, n int, ids []uint32) error {
	words := wordsOf(cols[0], n, &s.words)
	bits, bitOffset := validity(cols[0])
	g.table.find(words, bits, bitOffset, ids)
	return nil
}

func (g *wordGrouper) count() int { return g.table.count() }

func (g *wordGrouper) hashes(out []uint64) ([]uint64, error) {
	for _, w := range g.table.words {
		out = append(out, hashWord(w))
	}
	return out, nil
}

func (g *wordGrouper) keys(alloc memory.Allocator, from, to int) ([]arrow.Array, error) {
	null := -1
	if id := int(g.table.nullID); g.table.nullID != noGroup && id >= from && id < to {
		null = id - from
	}
	return []arrow.Array{wordsArray(alloc, g.typ, g.table.words[from:to], null)}, nil
}

// wordsArray builds an array from key words; row null (-1 = none) is NULL.
func wordsArray(alloc memory.Allocator, t arrow.DataType, words []uint64, null int) arrow.Array {
	n := len(words)
	values := memory.NewResizableBuffer(alloc)
	switch {
	case t.ID() == arrow.BOOL:
		values.Resize((n + 7) / 8)
		clear(values.Bytes())
		for i, w := range words {
			if w != 0 {
				bitutil.SetBit(values.Bytes(), i)
			}
		}
	case wordBytes(t) == 8:
		values.Resize(8 * n)
		copy(castBytes[uint64](values.Bytes()), words)
	case wordBytes(t) == 4:
		values.Resize(4 * n)
		narrow(words, castBytes[uint32](values.Bytes()))
	case wordBytes(t) == 2:
		values.Resize(2 * n)
		narrow(words, castBytes[uint16](values.Bytes()))
	default:
		values.Resize(n)
		narrow(words, values.Bytes())
	}
	return arrayWithNull(alloc, t, n, null, nil, values)
}

func narrow[T uint8 | uint16 | uint32](in []uint64, out []T) {
	for i, w := range in {
		out[i] = T(w)
	}
}

func castBytes[T any](b []byte) []T {
	var zero T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// arrayWithNull makes an array of n rows over buffers, which it takes over; row null (-1 = none) is NULL.
func arrayWithNull(alloc memory.Allocator, t arrow.DataType, n, null int, offsets, values *memory.Buffer) arrow.Array {
	var valid *memory.Buffer
	nulls := 0
	if null >= 0 {
		valid = memory.NewResizableBuffer(alloc)
		valid.Resize((n + 7) / 8)
		bitutil.SetBitsTo(valid.Bytes(), 0, int64(n), true)
		bitutil.ClearBit(valid.Bytes(), null)
		nulls = 1
	}
	return makeArray(t, n, nulls, valid, offsets, values)
}

// makeArray makes an array over buffers, which it takes over. offsets is nil for types without offsets.
func makeArray(t arrow.DataType, n, nulls int, valid, offsets, values *memory.Buffer) arrow.Array {
	buffers := []*memory.Buffer{valid, values}
	if offsets != nil {
		buffers = []*memory.Buffer{valid, offsets, values}
	}
	d := array.NewData(t, n, buffers, nil, nulls, 0)
	defer d.Release()
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	return array.MakeFromData(d)
}

// stringGrouper has one key of variable width.
type stringGrouper struct {
	table *bytesTable
	typ   arrow.DataType
	codes codeMaps
}

func isLarge(t arrow.DataType) bool {
	return t.ID() == arrow.LARGE_STRING || t.ID() == arrow.LARGE_BINARY
}

func (g *stringGrouper) assign(cols []arrow.Array, _ int, ids []uint32) error {
	if isCoded(cols[0], g.typ) {
		return g.assignCodes(cols[0], ids)
	}
	if isLarge(cols[0].DataType()) {
		return assignBytes(g.table, stringKeys[int64](cols[0]), ids)
	}
	return assignBytes(g.table, stringKeys[int32](cols[0]), ids)
}

func (g *stringGrouper) find(s *findScratch, cols []arrow.Array, _ int, ids []uint32) error {
	if isCoded(cols[0], g.typ) {
		return g.findCodes(s, cols[0], ids)
	}
	if isLarge(cols[0].DataType()) {
		findBytes(g.table, stringKeys[int64](cols[0]), ids)
	} else {
		findBytes(g.table, stringKeys[int32](cols[0]), ids)
	}
	return nil
}

func (g *stringGrouper) count() int { return g.table.count() }

func (g *stringGrouper) hashes(out []uint64) ([]uint64, error) {
	for id := range g.table.count() {
		out = append(out, g.table.hash(id))
	}
	return out, nil
}

func (g *stringGrouper) keys(alloc memory.Allocator, from, to int) ([]arrow.Array, error) {
	null := -1
	if id := int(g.table.nullID); g.table.nullID != noGroup && id >= from && id < to {
		null = id - from
	}
	n, base := to-from, g.table.ends[from]
	values := memory.NewResizableBuffer(alloc)
	values.Resize(g.table.ends[to] - base)
	copy(values.Bytes(), g.table.arena[base:g.table.ends[to]])
	offsets := memory.NewResizableBuffer(alloc)
	if isLarge(g.typ) {
		offsets.Resize(8 * (n + 1))
		copyOffsets(castBytes[int64](offsets.Bytes()), g.table.ends[from:to+1])
	} else {
		offsets.Resize(4 * (n + 1))
		copyOffsets(castBytes[int32](offsets.Bytes()), g.table.ends[from:to+1])
	}
	return []arrow.Array{arrayWithNull(alloc, g.typ, n, null, offsets, values)}, nil
}

func copyOffsets[O int32 | int64](out []O, ends []int) {
	for i, e := range ends {
		out[i] = O(e - ends[0])
	}
}

func (g *stringGrouper) close() {}

func (g *wordGrouper) close() {}

// rowGrouper has any keys: it numbers encoded rows and keeps the first row of each group as columns.
type rowGrouper struct {
	alloc  memory.Allocator
	table  *bytesTable
	types  []arrow.DataType
	enc    rowEncoder
	keep   bool
	chunks [][]arrow.Array // by column: rows of new groups, in order of their ids
	fresh  []int32
}

func (g *rowGrouper) assign(cols []arrow.Array, n int, ids []uint32) error {
	cols, done, err := g.plain(cols)
	if err != nil {
		return err
	}
	defer done()
	keys, err := g.enc.encode(cols, n)
	if err != nil {
		return err
	}
	next := uint32(g.table.count())
	if err := assignBytes(g.table, keys, ids); err != nil || !g.keep || uint32(g.table.count()) == next {
		return err
	}
	g.fresh = g.fresh[:0]
	for i, id := range ids {
		if id == next {
			g.fresh = append(g.fresh, int32(i))
			next++
		}
	}
	rows, err := takeColumns(g.alloc, cols, g.fresh, nil)
	if err != nil {
		return err
	}
	if g.chunks == nil {
		g.chunks = make([][]arrow.Array, len(cols))
	}
	for i, c := range rows {
		g.chunks[i] = append(g.chunks[i], c)
	}
	return nil
}

// plain returns cols with the values of coded text, and what gives them back.
func (g *rowGrouper) plain(cols []arrow.Array) (_ []arrow.Array, done func(), err error) {
	if !slices.ContainsFunc(cols, func(c arrow.Array) bool { return c.DataType().ID() == arrow.DICTIONARY }) {
		return cols, func() {}, nil
	}
	cols = slices.Clone(cols)
	for _, c := range cols {
		c.Retain()
	}
	if err := expand(g.alloc, g.types, cols); err != nil {
		releaseArrays(cols)
		return nil, nil, err
	}
	return cols, func() { releaseArrays(cols) }, nil
}

func (g *rowGrouper) find(s *findScratch, cols []arrow.Array, n int, ids []uint32) error {
	cols, done, err := g.plain(cols)
	if err != nil {
		return err
	}
	defer done()
	keys, err := s.rows.encode(cols, n)
	if err != nil {
		return err
	}
	findBytes(g.table, keys, ids)
	return nil
}

func (g *rowGrouper) count() int { return g.table.count() }

func (g *rowGrouper) hashes(out []uint64) ([]uint64, error) {
	for id := range g.table.count() {
		out = append(out, g.table.hash(id))
	}
	return out, nil
}

func (g *rowGrouper) keys(alloc memory.Allocator, from, to int) ([]arrow.Array, error) {
	out := make([]arrow.Array, 0, len(g.types))
	for i, t := range g.types {
		var parts []arrow.Array
		if g.chunks != nil {
			parts = g.chunks[i]
		}
		if len(parts) > 1 { // join them once: this is asked for range after range
			whole, err := concatArrays(alloc, t, parts)
			if err != nil {
				releaseArrays(out)
				return nil, err
			}
			releaseArrays(parts)
			parts = []arrow.Array{whole}
			g.chunks[i] = parts
		}
		if len(parts) == 0 {
			out = append(out, array.MakeArrayOfNull(alloc, t, 0))
			continue
		}
		out = append(out, array.NewSlice(parts[0], int64(from), int64(to)))
	}
	return out, nil
}

func (g *rowGrouper) close() {
	for _, c := range g.chunks {
		releaseArrays(c)
	}
	g.chunks = nil
}
