package exec

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/mem"
)

const (
	codedColumnsMax = 4       // 16 bits of a word each
	codedValuesMax  = 1 << 12 // distinct values per column
	codedGroupsMax  = 1 << 13
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
	codes   []uint32
	words   []uint64
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
	g.codes, g.words = resized(g.codes, n), resized(g.words, n)
	clear(g.words)
	for i, c := range g.columns {
		if err := c.assign(cols[i:i+1], n, g.codes); err != nil {
			return err
		}
		if c.count() > codedValuesMax {
			return g.giveUp(cols, n, ids)
		}
		shift := 16 * i
		for r, code := range g.codes {
			g.words[r] |= uint64(code) << shift
		}
	}
	if err := g.groups.assign(g.words, nil, 0, ids); err != nil {
		return err
	}
	if g.groups.count() > codedGroupsMax {
		return g.toRows()
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
	g.rows, g.columns, g.groups = rows, nil, nil
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
