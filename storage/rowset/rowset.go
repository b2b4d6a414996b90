package rowset

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

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
// upper half. The zero value is an empty set. A Set is not safe for concurrent writes. New sets share the bitmaps of their
// sources where they are the same (I2): whoever changes one first gets a copy of its own.
type Set struct {
	parts map[uint32]*part // no empty bitmap is kept
}

// part is the keys of one upper half. Once it is shared nobody changes the bitmap; it never ceases to be shared.
type part struct {
	*roaring.Bitmap
	shared atomic.Bool
}

// share makes p fit to stand in several sets.
func (p *part) share() *part {
	if !p.shared.Load() { // most are already: no writes to memory that other cores read
		p.shared.Store(true)
	}
	return p
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
	if _, ok := s.parts[upper]; ok {
		s.own(upper).Or(b)
		return
	}
	s.put(upper, b.Clone())
}

// own returns the bitmap of upper for changes.
func (s *Set) own(upper uint32) *roaring.Bitmap {
	p, ok := s.parts[upper]
	switch {
	case !ok:
		b := roaring.New()
		s.put(upper, b)
		return b
	case p.shared.Load():
		b := p.Clone()
		s.put(upper, b)
		return b
	}
	return p.Bitmap
}

// put makes b, which belongs to the set, the part of upper.
func (s *Set) put(upper uint32, b *roaring.Bitmap) { s.place(upper, &part{Bitmap: b}) }

func (s *Set) place(upper uint32, p *part) {
	if s.parts == nil {
		s.parts = make(map[uint32]*part)
	}
	s.parts[upper] = p
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
	if p, ok := s.parts[upper]; ok {
		return p.Bitmap
	}
	return nil
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
		for upper, p := range s.parts {
			out.place(upper, p.share())
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
			if x == y {
				out.place(upper, x.share())
			} else if z := roaring.And(x.Bitmap, y.Bitmap); !z.IsEmpty() {
				out.put(upper, z)
			}
		}
	}
	return out
}

// AndCount returns the number of keys in both sets.
func AndCount(a, b *Set) uint64 {
	if a == nil || b == nil {
		return 0
	}
	var n uint64
	for upper, x := range a.parts {
		if y, ok := b.parts[upper]; ok {
			n += x.AndCardinality(y.Bitmap)
		}
	}
	return n
}

// Or returns the keys in either set.
func Or(a, b *Set) *Set {
	out := a.Clone()
	if b == nil {
		return out
	}
	for upper, y := range b.parts {
		if x, ok := out.parts[upper]; ok && x != y {
			out.put(upper, roaring.Or(x.Bitmap, y.Bitmap))
		} else {
			out.place(upper, y.share())
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
		y := b.Bitmap(upper)
		if y == nil {
			out.place(upper, x.share())
		} else if z := roaring.AndNot(x.Bitmap, y); !z.IsEmpty() {
			out.put(upper, z)
		}
	}
	return out
}

// OnlyUppers returns the keys whose upper half is in uppers.
func (s *Set) OnlyUppers(uppers *roaring.Bitmap) *Set {
	out := &Set{}
	if s != nil {
		for upper, p := range s.parts {
			if uppers.Contains(upper) {
				out.place(upper, p.share())
			}
		}
	}
	return out
}

// Below returns the keys of the upper halves that limit knows, with lower halves below the limit and not in the bitmap that it gives for the upper half
// (nil = none).
func (s *Set) Below(limit func(upper uint32) (end uint64, without *roaring.Bitmap, known bool)) *Set {
	out := &Set{}
	if s == nil {
		return out
	}
	for upper, p := range s.parts {
		end, without, known := limit(upper)
		switch {
		case !known:
		case (without == nil || !without.Intersects(p.Bitmap)) && uint64(p.Maximum()) < end:
			out.place(upper, p.share())
		default:
			b := p.Clone()
			b.RemoveRange(end, 1<<32)
			if without != nil {
				b.AndNot(without)
			}
			if !b.IsEmpty() {
				out.put(upper, b)
			}
		}
	}
	return out
}

// Equal says whether two sets hold the same keys.
func Equal(a, b *Set) bool {
	return AndNot(a, b).IsEmpty() && AndNot(b, a).IsEmpty()
}
