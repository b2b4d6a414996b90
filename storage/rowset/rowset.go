package rowset

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// RowAddr is a place: fragment ID<<32 | row offset in the fragment. It is true in one snapshot only.
type RowAddr uint64

// Addr builds a row address.
func Addr(fragment, offset uint32) RowAddr { return RowAddr(uint64(fragment)<<32 | uint64(offset)) }

// Fragment returns the fragment id.
func (a RowAddr) Fragment() uint32 { return uint32(a >> 32) }

// Offset returns the physical row offset in the fragment; deleted rows keep theirs.
func (a RowAddr) Offset() uint32 { return uint32(a) }

func (a RowAddr) String() string { return fmt.Sprintf("(%d, %d)", a.Fragment(), a.Offset()) }

// RowID is an identity that update and compaction keep, in tables with stable row ids. Never cast one to a RowAddr.
type RowID uint64

// Set is a set of 64-bit row keys (row addresses, or row ids where the user says so), kept as one 32-bit bitmap per
// upper half. The zero value is an empty set. A Set is not safe for concurrent writes; methods that return a
// new Set share no memory that either may change.
type Set struct {
	parts map[uint32]*roaring.Bitmap // no empty bitmap is kept
}

// NewSet returns a set of the given keys.
func NewSet(keys ...uint64) *Set {
	s := &Set{}
	for _, k := range keys {
		s.Add(k)
	}
	return s
}

// Add puts one key in.
func (s *Set) Add(key uint64) { s.own(uint32(key >> 32)).Add(uint32(key)) }

// AddRange puts the keys of one upper half with lower halves in [start, end) in.
func (s *Set) AddRange(upper uint32, start, end uint64) {
	if start < end {
		s.own(upper).AddRange(start, end)
	}
}

// AddBitmap unites b into the part of upper. b is copied where it is kept.
func (s *Set) AddBitmap(upper uint32, b *roaring.Bitmap) {
	if b == nil || b.IsEmpty() {
		return
	}
	if have, ok := s.parts[upper]; ok {
		have.Or(b)
		return
	}
	s.put(upper, b.Clone())
}

func (s *Set) own(upper uint32) *roaring.Bitmap {
	if b, ok := s.parts[upper]; ok {
		return b
	}
	b := roaring.New()
	s.put(upper, b)
	return b
}

func (s *Set) put(upper uint32, b *roaring.Bitmap) {
	if s.parts == nil {
		s.parts = make(map[uint32]*roaring.Bitmap)
	}
	s.parts[upper] = b
}

// Contains says whether key is in the set.
func (s *Set) Contains(key uint64) bool {
	if s == nil {
		return false
	}
	b, ok := s.parts[uint32(key>>32)]
	return ok && b.Contains(uint32(key))
}

// Count returns the number of keys.
func (s *Set) Count() uint64 {
	if s == nil {
		return 0
	}
	var n uint64
	for _, b := range s.parts {
		n += b.GetCardinality()
	}
	return n
}

// IsEmpty says whether the set has no key.
func (s *Set) IsEmpty() bool { return s.Count() == 0 }

// Uppers returns the upper halves that have keys, ascending.
func (s *Set) Uppers() []uint32 {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.parts))
}

// Bitmap returns the lower halves under upper, nil if none. The caller must not change it.
func (s *Set) Bitmap(upper uint32) *roaring.Bitmap {
	if s == nil {
		return nil
	}
	return s.parts[upper]
}

// All yields the keys in ascending order.
func (s *Set) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, upper := range s.Uppers() {
			for it := s.parts[upper].Iterator(); it.HasNext(); {
				if !yield(uint64(upper)<<32 | uint64(it.Next())) {
					return
				}
			}
		}
	}
}

// Clone returns a set of its own.
func (s *Set) Clone() *Set {
	out := &Set{}
	if s != nil {
		for upper, b := range s.parts {
			out.put(upper, b.Clone())
		}
	}
	return out
}

// SizeBytes estimates the memory held.
func (s *Set) SizeBytes() int64 {
	if s == nil {
		return 0
	}
	var n int64
	for _, b := range s.parts {
		n += int64(b.GetSizeInBytes()) + 64
	}
	return n
}

// And returns the keys in both sets. nil is the empty set, here and below.
func And(a, b *Set) *Set {
	out := &Set{}
	if a == nil || b == nil {
		return out
	}
	for upper, x := range a.parts {
		if y, ok := b.parts[upper]; ok {
			if z := roaring.And(x, y); !z.IsEmpty() {
				out.put(upper, z)
			}
		}
	}
	return out
}

// Or returns the keys in either set.
func Or(a, b *Set) *Set {
	out := a.Clone()
	if b != nil {
		for upper, y := range b.parts {
			out.AddBitmap(upper, y)
		}
	}
	return out
}

// AndNot returns the keys of a that are not in b.
func AndNot(a, b *Set) *Set {
	out := &Set{}
	if a == nil {
		return out
	}
	for upper, x := range a.parts {
		z := x
		if y := b.Bitmap(upper); y != nil {
			z = roaring.AndNot(x, y)
		} else {
			z = x.Clone()
		}
		if !z.IsEmpty() {
			out.put(upper, z)
		}
	}
	return out
}

// OnlyUppers returns the keys whose upper half is in uppers.
func (s *Set) OnlyUppers(uppers *roaring.Bitmap) *Set {
	out := &Set{}
	if s != nil {
		for upper, b := range s.parts {
			if uppers.Contains(upper) {
				out.put(upper, b.Clone())
			}
		}
	}
	return out
}

// Equal says whether two sets hold the same keys.
func Equal(a, b *Set) bool {
	return AndNot(a, b).IsEmpty() && AndNot(b, a).IsEmpty()
}
