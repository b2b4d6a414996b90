package exec

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/mem"
)

const (
	codedColumnsMax = 4       // 16 bits of a word each
	codedValuesMax  = 1 << 12 // distinct values per column
	codedGroupsMax  = 1 << 13
	denseCodesBits  = 13 // up to how many bits of codes find their group through an array
)

// codedGrouper has several keys of few distinct values each: every column is numbered on its own, and the numbers together are the key. Once a
// column or the groups become many it turns into a rowGrouper, which numbers the groups alike.
type codedGrouper struct {
	alloc   memory.Allocator
	res     *mem.Reservation
	types   []arrow.DataType
	columns []grouper
	groups  *wordTable // 16 bits per column, the first lowest
	rows    *rowGrouper
	codes   [codedColumnsMax][]uint32
	words   []uint64

	dense  []uint32                   // group + 1 by the codes side by side, 0 = none yet; nil = too many codes
	shifts [codedColumnsMax + 1]uint8 // where the codes of each column stand in an index of dense; the last is the bits of all
}

// canCode says whether keys of the types fit a codedGrouper.
func canCode(types []arrow.DataType) bool {
	if len(types) < 2 || len(types) > codedColumnsMax {
		return false
	}
	for _, t := range types {
		if !isWordKey(t) && !isStringKey(t) {
			return false
		}
	}
	return true
}

func newCodedGrouper(alloc memory.Allocator, res *mem.Reservation, types []arrow.DataType) (*codedGrouper, error) {
	g := &codedGrouper{alloc: alloc, res: res, types: types}
	for i := range types {
		c, err := newGrouper(alloc, res, types[i:i+1], true)
		if err != nil {
			return nil, err
		}
		g.columns = append(g.columns, c)
	}
	var err error
	g.groups, err = newWordTable(res)
	return g, err
}

func (g *codedGrouper) assign(cols []arrow.Array, n int, ids []uint32) error {
	if g.rows != nil {
		return g.rows.assign(cols, n, ids)
	}
	var shifts [codedColumnsMax + 1]uint8
	for i, c := range g.columns {
		g.codes[i] = resized(g.codes[i], n)
		if err := c.assign(cols[i:i+1], n, g.codes[i]); err != nil {
			return err
		}
		if c.count() > codedValuesMax {
			return g.giveUp(cols, n, ids)
		}
		shifts[i+1] = shifts[i] + uint8(bits.Len(uint(max(c.count(), 2)-1)))
	}
	number := g.numberHashed
	if shifts[len(g.columns)] <= denseCodesBits {
		if err := g.widen(shifts); err != nil {
			return err
		}
		number = g.numberDense
	}
	if err := number(n, ids); err != nil {
		return err
	}
	if g.groups.count() > codedGroupsMax {
		return g.toRows()
	}
	return nil
}

// numberHashed finds the groups of the rows of codes through their words.
func (g *codedGrouper) numberHashed(n int, ids []uint32) error {
	g.words = resized(g.words, n)
	clear(g.words)
	for i := range g.columns {
		shift := 16 * i
		for r, code := range g.codes[i] {
			g.words[r] |= uint64(code) << shift
		}
	}
	return g.groups.assign(g.words, nil, 0, ids)
}

// widen makes dense fit codes at the places of shifts.
func (g *codedGrouper) widen(shifts [codedColumnsMax + 1]uint8) error {
	if g.dense != nil && shifts == g.shifts {
		return nil
	}
	size := 1 << shifts[len(g.columns)]
	if err := g.res.Grow(4 * int64(size-len(g.dense))); err != nil {
		return err
	}
	g.dense, g.shifts = make([]uint32, size), shifts
	for id, w := range g.groups.words {
		at := 0
		for i := range g.columns {
			at |= int(w>>(16*i)&0xffff) << shifts[i]
		}
		g.dense[at] = uint32(id) + 1
	}
	return nil
}

// numberDense finds the groups of the rows of codes through dense.
func (g *codedGrouper) numberDense(n int, ids []uint32) error {
	ids = ids[:n]
	copy(ids, g.codes[0])
	for i := 1; i < len(g.columns); i++ {
		shift := g.shifts[i] & 31
		for r, code := range g.codes[i][:len(ids)] {
			ids[r] |= code << shift
		}
	}
	for r, at := range ids {
		id := g.dense[at]
		if id == 0 {
			var w uint64
			for i := range g.columns {
				w |= uint64(g.codes[i][r]) << (16 * i)
			}
			fresh, err := g.groups.insert(w)
			if err != nil {
				return err
			}
			id = fresh + 1
			g.dense[at] = id
		}
		ids[r] = id - 1
	}
	return nil
}

// giveUp turns to rows before the groups of this batch were numbered.
func (g *codedGrouper) giveUp(cols []arrow.Array, n int, ids []uint32) error {
	if err := g.toRows(); err != nil {
		return err
	}
	return g.rows.assign(cols, n, ids)
}

// toRows numbers the groups so far by their encoded rows.
func (g *codedGrouper) toRows() error {
	if g.rows != nil {
		return nil
	}
	t, err := newBytesTable(g.res)
	if err != nil {
		return err
	}
	rows := &rowGrouper{alloc: g.alloc, table: t, types: g.types, keep: true}
	if n := g.groups.count(); n > 0 {
		keys, err := g.keys(g.alloc, 0, n)
		if err != nil {
			return err
		}
		defer releaseArrays(keys)
		if err := rows.assign(keys, n, make([]uint32, n)); err != nil {
			rows.close()
			return err
		}
	}
	g.rows, g.columns, g.groups, g.dense = rows, nil, nil, nil
	return nil
}

// find implements grouper. It must not be called: tables that are probed are made without keeping keys, which this one does.
func (g *codedGrouper) find(s *findScratch, cols []arrow.Array, n int, ids []uint32) error {
	if err := g.toRows(); err != nil {
		return err
	}
	return g.rows.find(s, cols, n, ids)
}

func (g *codedGrouper) count() int {
	if g.rows != nil {
		return g.rows.count()
	}
	return g.groups.count()
}

// hashes implements grouper; the codes are this table's own, so the hashes are those of the rows.
func (g *codedGrouper) hashes(out []uint64) ([]uint64, error) {
	if err := g.toRows(); err != nil {
		return nil, err
	}
	return g.rows.hashes(out)
}

func (g *codedGrouper) keys(alloc memory.Allocator, from, to int) ([]arrow.Array, error) {
	if g.rows != nil {
		return g.rows.keys(alloc, from, to)
	}
	out := make([]arrow.Array, 0, len(g.columns))
	idx := make([]int32, to-from)
	for i, c := range g.columns {
		shift := 16 * i
		for r, w := range g.groups.words[from:to] {
			idx[r] = int32(w >> shift & 0xffff)
		}
		values, err := c.keys(alloc, 0, c.count())
		if err == nil {
			out, err = takeColumns(alloc, values, idx, out)
			releaseArrays(values)
		}
		if err != nil {
			releaseArrays(out)
			return nil, err
		}
	}
	return out, nil
}

func (g *codedGrouper) close() {
	if g.rows != nil {
		g.rows.close()
	}
}
