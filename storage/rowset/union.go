package rowset

import "github.com/RoaringBitmap/roaring/v2"

// Adopt puts b in as the whole part of upper, replacing what was there, without copying: b must not be changed afterwards by
// the caller, and a set that holds a shared bitmap must not be changed either.
func (s *Set) Adopt(upper uint32, b *roaring.Bitmap) {
	if b == nil || b.IsEmpty() {
		delete(s.parts, upper)
		return
	}
	s.put(upper, b)
}

// Union returns the keys in any of the sets; faster than Or one after another. nil sets are empty.
func Union(sets ...*Set) *Set {
	byUpper := make(map[uint32][]*roaring.Bitmap)
	for _, s := range sets {
		if s == nil {
			continue
		}
		for upper, b := range s.parts {
			byUpper[upper] = append(byUpper[upper], b)
		}
	}
	out := &Set{}
	for upper, bs := range byUpper {
		out.put(upper, roaring.FastOr(bs...))
	}
	return out
}

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
	out := sets[least].Clone()
	for i, s := range sets {
		if i != least && !out.IsEmpty() {
			out = And(out, s)
		}
	}
	return out
}
