package exec

import (
	"cmp"
	"slices"
)

// radixMin is from how many rows on a radix sort beats comparisons.
const radixMin = 1 << 10

// sort orders the items; rows with equal keys keep their order.
func (s *sortKeys) sort() error {
	if len(s.items) < radixMin {
		s.sortItems(s.items, nil)
		return nil
	}
	if err := s.res.Grow(int64(len(s.items)) * sortItemBytes); err != nil {
		return err
	}
	defer s.res.Shrink(int64(len(s.items)) * sortItemBytes)
	s.items = s.sortItems(s.items, make([]sortItem, len(s.items)))
	return nil
}

// sortItems orders some items and returns them or other, which from radixMin items on must be of the same length.
func (s *sortKeys) sortItems(items, other []sortItem) []sortItem {
	if len(items) < radixMin {
		slices.SortFunc(items, s.compareTotal)
		return items
	}
	items = radixSort(items, other)
	if !s.hasRest() {
		return items
	}
	for start := 0; start < len(items); {
		end := start + 1
		for end < len(items) && items[end].compareFirst(items[start]) == 0 {
			end++
		}
		if end-start > 1 {
			slices.SortFunc(items[start:end], s.compareTotal)
		}
		start = end
	}
	return items
}

// compareTotal orders by the keys, then by arrival.
func (s *sortKeys) compareTotal(a, b sortItem) int {
	if c := compareItems(s, a, s, b); c != 0 {
		return c
	}
	return cmp.Compare(a.row, b.row)
}

// radixSort orders items by rank and prefix, a byte at a time from the last, and skips bytes that are the same everywhere. It keeps the order
// of equal items and returns one of its two arguments.
func radixSort(items, other []sortItem) []sortItem {
	const digits = 9 // 8 bytes of prefix, then the rank
	var counts [digits][256]uint32
	for _, it := range items {
		p := it.prefix
		for d := range 8 {
			counts[d][byte(p>>(8*d))]++
		}
		counts[8][it.rank]++
	}
	for d := range digits {
		at := &counts[d]
		if at[digit(items[0], d)] == uint32(len(items)) {
			continue
		}
		var sum uint32
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, it := range items {
			k := digit(it, d)
			other[at[k]] = it
			at[k]++
		}
		items, other = other, items
	}
	return items
}

func digit(it sortItem, d int) byte {
	if d == 8 {
		return it.rank
	}
	return byte(it.prefix >> (8 * d))
}
