package rowset

import "github.com/RoaringBitmap/roaring/v2"

// Adopt puts b in as the whole part of upper, replacing what was there, without copying: b must not be changed afterwards by
// the caller, who may put it into other sets too.
func (s *Set) Adopt(upper uint32, b *roaring.Bitmap) {
	if b == nil || b.IsEmpty() {
		delete(s.parts, upper)
		return
	}
	p := &part{Bitmap: b}
	s.place(upper, p.share())
}

// Union returns the keys in any of the sets; faster than Or one after another. nil sets are empty.
func Union(sets ...*Set) *Set {
	byUpper := make(map[uint32][]*part)
	for _, s := range sets {
		if s == nil {
			continue
		}
		for upper, p := range s.parts {
			byUpper[upper] = append(byUpper[upper], p)
		}
	}
	out := &Set{}
	var bitmaps []*roaring.Bitmap
	for upper, parts := range byUpper {
		if len(parts) == 1 {
			out.place(upper, parts[0].share())
			continue
		}
		bitmaps = bitmaps[:0]
		for _, p := range parts {
			bitmaps = append(bitmaps, p.Bitmap)
		}
		out.put(upper, unite(bitmaps))
	}
	return out
}

// unite is the union of two bitmaps or more, none of them empty. The library merges sorted lists one after another, which costs every key once a round; the keys of many
// lists are marked in a plain bit array instead. Dense bitmaps are no lists but bit arrays themselves, and unite by the word.
func unite(bitmaps []*roaring.Bitmap) *roaring.Bitmap {
	var keys uint64
	var most uint32
	for _, b := range bitmaps {
		keys += b.GetCardinality()
		most = max(most, b.Maximum())
	}
	words := uint64(most)/64 + 1
	n := uint64(len(bitmaps))
	if n < uniteMin || keys < words/2 || keys/n > words/2 {
		return roaring.FastOr(bitmaps...)
	}
	dense := make([]uint64, words)
	var some [256]uint32
	for _, b := range bitmaps {
		for it := b.ManyIterator(); ; {
			n := it.NextMany(some[:])
			if n == 0 {
				break
			}
			for _, k := range some[:n] {
				dense[k>>6] |= 1 << (k & 63)
			}
		}
	}
	return roaring.FromDense(dense, false)
}

// uniteMin lists make the bit array pay.
const uniteMin = 8

// Intersect returns the keys in all of the sets, smallest first; no set at all gives the empty set.
func Intersect(sets ...*Set) *Set {
	if len(sets) == 0 {
		return &Set{}
	}
	least := 0
	for i := range sets {
		if sets[i].Count() < sets[least].Count() {
			least = i
		}
	}
	if len(sets) == 1 {
		return sets[0].Clone()
	}
	out := sets[least]
	for i, s := range sets {
		if i != least && !out.IsEmpty() {
			out = And(out, s)
		}
	}
	if out == sets[least] { // it is empty
		return &Set{}
	}
	return out
}
