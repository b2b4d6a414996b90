package exec

import (
	"math/bits"

	"github.com/lakesql/lakesql/internal/mem"
)

// pairPages is a set of (group, word) pairs as bitmaps of 4096 neighbouring words: where words lie close together, as ids do, a pair takes bits instead of
// the 25 bytes of a pairSet, and the set stays in the CPU's caches.
type pairPages struct {
	res   *mem.Reservation
	slots []pageSlot // open addressing, linear probing, at most five eighths full
	shift uint
	pages int
	n     int // pairs
	slab  []pairPage
}

type pairPage [64]uint64

type pageSlot struct {
	number uint64    // words >> pageBits
	page   *pairPage // nil = free
	group  uint32
}

const (
	pageBits      = 12
	pageBytes     = 1 << pageBits / 8
	pageSlotBytes = 24
	slabPages     = 32
	// Pages pay while they hold pagePairsMin pairs each: below, pairs take more memory than in a pairSet. The first pagesFree are not asked.
	pagePairsMin = 24
	pagesFree    = 1 << 10
)

func newPairPages(res *mem.Reservation) (*pairPages, error) {
	s := &pairPages{res: res}
	return s, s.resize(slotsMin)
}

func (s *pairPages) resize(slots int) error {
	if err := s.res.Grow(int64(slots) * pageSlotBytes); err != nil {
		return err
	}
	old := s.slots
	s.slots, s.shift = make([]pageSlot, slots), shiftFor(slots)
	mask := uint64(slots - 1)
	for _, p := range old {
		if p.page == nil {
			continue
		}
		at := pairHash(p.group, p.number) >> s.shift
		for s.slots[at].page != nil {
			at = (at + 1) & mask
		}
		s.slots[at] = p
	}
	s.res.Shrink(int64(len(old)) * pageSlotBytes)
	return nil
}

func (s *pairPages) sizeBytes() int64 {
	return int64(len(s.slots))*pageSlotBytes + int64(s.pages+len(s.slab))*pageBytes
}

// isSparse says that a pairSet would take less memory.
func (s *pairPages) isSparse() bool { return s.pages > pagesFree && s.n < s.pages*pagePairsMin }

// page returns the page of a number, made empty where there is none.
func (s *pairPages) page(group uint32, number uint64) (*pairPage, error) {
	mask := uint64(len(s.slots) - 1)
	at := pairHash(group, number) >> s.shift
	for {
		p := &s.slots[at]
		if p.page == nil {
			break
		}
		if p.number == number && p.group == group {
			return p.page, nil
		}
		at = (at + 1) & mask
	}
	if len(s.slab) == 0 {
		if err := s.res.Grow(slabPages * pageBytes); err != nil {
			return nil, err
		}
		s.slab = make([]pairPage, slabPages)
	}
	page := &s.slab[0]
	s.slab = s.slab[1:]
	s.slots[at] = pageSlot{number: number, page: page, group: group}
	if s.pages++; s.pages > len(s.slots)/8*5 {
		return page, s.resize(growSlots(len(s.slots)))
	}
	return page, nil
}

// add says whether the pair is new.
func (s *pairPages) add(group uint32, word uint64) (bool, error) {
	page, err := s.page(group, word>>pageBits)
	if err != nil {
		return false, err
	}
	at, bit := word>>6&63, uint64(1)<<(word&63)
	if page[at]&bit != 0 {
		return false, nil
	}
	page[at] |= bit
	s.n++
	return true, nil
}

// each calls f for every pair until it fails.
func (s *pairPages) each(f func(group uint32, word uint64) error) error {
	for _, slot := range s.slots {
		if slot.page == nil {
			continue
		}
		for i, w := range slot.page {
			for ; w != 0; w &= w - 1 {
				if err := f(slot.group, slot.number<<pageBits|uint64(i)<<6|uint64(bits.TrailingZeros64(w))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unite adds the pairs of src, their groups renumbered by to, and counts the new ones.
func (s *pairPages) unite(src *pairPages, to []uint32, counts []int64) error {
	for _, slot := range src.slots {
		if slot.page == nil {
			continue
		}
		group := to[slot.group]
		page, err := s.page(group, slot.number)
		if err != nil {
			return err
		}
		fresh := 0
		for i, w := range slot.page {
			fresh += bits.OnesCount64(w &^ page[i])
			page[i] |= w
		}
		s.n += fresh
		counts[group] += int64(fresh)
	}
	return nil
}
