package btree

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// valueRow is a value of a word codec with its row.
type valueRow struct{ word, row uint64 }

// wideRow is a value of a wide codec with its row: where its bytes lie, and the first eight of them that matter to the sort.
type wideRow struct {
	prefix uint64
	row    uint64
	at     uint64 // block<<32 | offset in the block
	size   uint32
}

const (
	radixMin   = 512 // below, comparisons are faster
	digits     = 8   // of a word
	digitRange = 256
)

// sortRows sorts by word, then by row, and returns v or scratch, whichever has the result. areOrdered says that the rows ascend already.
func sortRows(v, scratch []valueRow, areOrdered bool) []valueRow {
	if len(v) < radixMin {
		slices.SortFunc(v, func(x, y valueRow) int {
			if o := cmp.Compare(x.word, y.word); o != 0 {
				return o
			}
			return cmp.Compare(x.row, y.row)
		})
		return v
	}
	if !areOrdered {
		v, scratch = radixSort(v, scratch, func(r valueRow) uint64 { return r.row })
	}
	v, _ = radixSort(v, scratch, func(r valueRow) uint64 { return r.word })
	return v
}

// radixSort sorts by key, byte by byte from the lowest, and keeps the order of equal keys. Bytes that are the same everywhere cost nothing.
func radixSort(v, scratch []valueRow, key func(valueRow) uint64) (sorted, other []valueRow) {
	var counts [digits][digitRange]uint32
	inOrder, last := true, uint64(0)
	for _, r := range v {
		k := key(r)
		inOrder = inOrder && k >= last
		last = k
		for d := range digits {
			counts[d][byte(k>>(8*d))]++
		}
	}
	if inOrder {
		return v, scratch
	}
	first := key(v[0])
	for d := range digits {
		if int(counts[d][byte(first>>(8*d))]) == len(v) {
			continue
		}
		var places [digitRange]uint32
		next := uint32(0)
		for i, n := range counts[d] {
			places[i] = next
			next += n
		}
		for _, r := range v {
			digit := byte(key(r) >> (8 * d))
			scratch[places[digit]] = r
			places[digit]++
		}
		v, scratch = scratch, v
	}
	return v, scratch
}

// prefixAt is the bytes of a value from depth on, as far as they fit a word, in an order that is theirs.
func prefixAt(value []byte, depth int) uint64 {
	value = value[min(len(value), depth):]
	if len(value) >= 8 {
		return binary.BigEndian.Uint64(value)
	}
	var w uint64
	for i, b := range value {
		w |= uint64(b) << (56 - 8*i)
	}
	return w
}

// wideSort sorts values of wide codecs by their bytes, then by row. It compares eight bytes at a time, which lie beside the row, and looks at the text again
// only for values that agree so far.
type wideSort struct{ text [][]byte }

func (w wideSort) value(r wideRow) []byte {
	return w.text[r.at>>32][uint32(r.at):][:r.size:r.size]
}

// compareFrom compares values that agree in their first depth bytes.
func (w wideSort) compareFrom(x, y wideRow, depth int) int {
	if o := bytes.Compare(w.value(x)[depth:], w.value(y)[depth:]); o != 0 {
		return o
	}
	return cmp.Compare(x.row, y.row)
}

// fewRows is how many rows are compared by their whole values.
const fewRows = 16

// sort sorts rows that agree in their first depth bytes and whose prefixes start there.
func (w wideSort) sort(rows []wideRow, depth int) {
	for len(rows) > 1 {
		if len(rows) <= fewRows {
			slices.SortFunc(rows, func(x, y wideRow) int { return w.compareFrom(x, y, depth) })
			return
		}
		end := uint32(depth + 8) //nolint:gosec // no value is longer than its length says
		slices.SortFunc(rows, func(x, y wideRow) int {
			if x.prefix != y.prefix {
				return cmp.Compare(x.prefix, y.prefix)
			}
			if o := cmp.Compare(min(x.size, end+1), min(y.size, end+1)); o != 0 || x.size > end {
				return o
			}
			return cmp.Compare(x.row, y.row)
		})
		var rest []wideRow // the largest group of those that go on, so that long common prefixes do not nest
		for lo := 0; lo < len(rows); {
			hi := lo + 1
			for hi < len(rows) && rows[hi].prefix == rows[lo].prefix && (rows[hi].size > end) == (rows[lo].size > end) {
				hi++
			}
			if rows[lo].size > end {
				group := rows[lo:hi]
				for i := range group {
					group[i].prefix = prefixAt(w.value(group[i]), depth+8)
				}
				if len(group) > len(rest) {
					group, rest = rest, group
				}
				w.sort(group, depth+8)
			}
			lo = hi
		}
		rows, depth = rest, depth+8
	}
}
