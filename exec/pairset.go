package exec

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/mem"
)

// pairSet is a set of (group, word) pairs. Open addressing, linear probing, at most five eighths full.
type pairSet struct {
	res   *mem.Reservation
	slots []pairSlot
	shift uint
	n     int
}

type pairSlot struct {
	value uint64
	group uint32 // + 1; 0 = free
}

const pairSlotBytes = 16

func newPairSet(res *mem.Reservation, pairs int) (*pairSet, error) {
	s := &pairSet{res: res}
	slots := slotsMin
	for slots/8*5 < pairs {
		slots *= 2
	}
	return s, s.resize(slots)
}

func (s *pairSet) resize(slots int) error {
	if err := s.res.Grow(int64(slots) * pairSlotBytes); err != nil {
		return err
	}
	old := s.slots
	s.slots, s.shift = make([]pairSlot, slots), shiftFor(slots)
	mask := uint64(slots - 1)
	for _, p := range old {
		if p.group == 0 {
			continue
		}
		at := pairHash(p.group, p.value) >> s.shift
		for s.slots[at].group != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = p
	}
	s.res.Shrink(int64(len(old)) * pairSlotBytes)
	return nil
}

func pairHash(group uint32, value uint64) uint64 {
	return hashWord(value + uint64(group)*0x9e3779b97f4a7c15)
}

// add says whether the pair is new.
func (s *pairSet) add(group uint32, value uint64) (bool, error) {
	group++
	mask := uint64(len(s.slots) - 1)
	at := pairHash(group, value) >> s.shift
	for {
		p := &s.slots[at]
		if p.value == value && p.group == group {
			return false, nil
		}
		if p.group == 0 {
			*p = pairSlot{value: value, group: group}
			if s.n++; s.n > len(s.slots)/8*5 {
				return true, s.resize(growSlots(len(s.slots)))
			}
			return true, nil
		}
		at = (at + 1) & mask
	}
}

// pairsAcc is COUNT(DISTINCT x) of a word. It starts with pages and goes over to a pairSet where these turn out nearly empty.
type pairsAcc struct {
	states[int64]
	pages *pairPages // nil once the pairs are in set
	set   *pairSet
	words []uint64

	once   sync.Once
	starts []uint32 // values by group, for merges of some of the groups
	values []uint64
}

func newPairsAcc(res *mem.Reservation) (accumulator, error) {
	pages, err := newPairPages(res)
	return &pairsAcc{states: states[int64]{res: res}, pages: pages}, err
}

func (p *pairsAcc) update(ids []uint32, args []arrow.Array) error {
	bits, offset := validity(args[0])
	for i, w := range wordsOf(args[0], len(ids), &p.words) {
		if bits != nil && !bitutil.BitIsSet(bits, offset+i) {
			continue
		}
		if err := p.add(ids[i], w); err != nil {
			return err
		}
	}
	return nil
}

func (p *pairsAcc) add(group uint32, word uint64) error {
	var fresh bool
	var err error
	if p.pages != nil {
		fresh, err = p.pages.add(group, word)
	} else {
		fresh, err = p.set.add(group, word)
	}
	if err != nil || !fresh {
		return err
	}
	p.s[group]++
	if p.pages != nil && p.pages.isSparse() {
		return p.spread(p.count())
	}
	return nil
}

// spread moves the pairs from pages to a set with room for n pairs.
func (p *pairsAcc) spread(n int) error {
	if p.pages == nil {
		return nil
	}
	set, err := newPairSet(p.res, n)
	if err != nil {
		return err
	}
	err = p.pages.each(func(group uint32, word uint64) error {
		_, err := set.add(group, word)
		return err
	})
	if err != nil {
		return err
	}
	p.res.Shrink(p.pages.sizeBytes())
	p.pages, p.set = nil, set
	return nil
}

// count returns the number of pairs.
func (p *pairsAcc) count() int {
	if p.pages != nil {
		return p.pages.n
	}
	return p.set.n
}

func (p *pairsAcc) each(f func(group uint32, word uint64) error) error {
	if p.pages != nil {
		return p.pages.each(f)
	}
	return p.set.each(f)
}

// list sorts the values by group, once.
func (p *pairsAcc) list() {
	p.once.Do(func() {
		p.starts, p.values = make([]uint32, len(p.s)+2), make([]uint64, p.count())
		for g, n := range p.s {
			p.starts[g+2] = p.starts[g+1] + uint32(n)
		}
		_ = p.each(func(group uint32, word uint64) error { // which never fails
			p.values[p.starts[group+1]] = word
			p.starts[group+1]++
			return nil
		})
	})
}

// seal reserves what list will take.
func (p *pairsAcc) seal() error { return p.res.Grow(int64(p.count())*8 + int64(len(p.s))*4) }

func (p *pairsAcc) merge(src accumulator, from, to []uint32) error {
	o := src.(*pairsAcc)
	o.list()
	for i, g := range from {
		for _, v := range o.values[o.starts[g]:o.starts[g+1]] {
			if err := p.add(to[i], v); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergeAll implements setMerger.
func (p *pairsAcc) mergeAll(ctx context.Context, env *Env, srcs []accumulator, to [][]uint32) error {
	sources := []*pairsAcc{p}
	maps := [][]uint32{nil}
	pairs, dense := p.count(), p.pages != nil
	for i, s := range srcs {
		o := s.(*pairsAcc)
		pairs += o.count()
		dense = dense && o.pages != nil
		sources, maps = append(sources, o), append(maps, to[i])
	}
	if !dense {
		return p.mergeSets(ctx, env, sources, maps, pairs)
	}
	for i, src := range sources[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.pages.unite(src.pages, maps[i+1], p.s); err != nil {
			return err
		}
	}
	return nil
}

// mergeSets unites the pairs of each range of hashes on a goroutine of its own.
func (p *pairsAcc) mergeSets(ctx context.Context, env *Env, sources []*pairsAcc, maps [][]uint32, pairs int) error {
	for _, src := range sources {
		if err := src.spread(src.count()); err != nil {
			return err
		}
	}
	parts := 1
	for parts < env.Workers {
		parts *= 2
	}
	var mu sync.Mutex
	counts := make([]int64, len(p.s))
	err := runTasks(ctx, env, "distinct", parts, func(_ context.Context, part int) error {
		res := env.Budget.Reserve()
		defer res.Free()
		// Of the right size from the start: pairs come in the order of their hashes, which would pile up in a table that still grows.
		set, err := newPairSet(res, pairs/parts+pairs/16)
		if err != nil {
			return err
		}
		if err := res.Grow(8 * int64(len(counts))); err != nil {
			return err
		}
		own := make([]int64, len(counts))
		for i, src := range sources {
			if err := set.unite(src.set, maps[i], uint64(part), uint64(parts-1), own); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for g, n := range own {
			counts[g] += n
		}
		return nil
	})
	copy(p.s, counts)
	return err
}

// unite adds the pairs of src whose hash of the value is part under mask, their groups renumbered by to (nil = kept), and counts the new ones.
func (s *pairSet) unite(src *pairSet, to []uint32, part, mask uint64, counts []int64) error {
	for _, slot := range src.slots {
		if slot.group == 0 || hashWord(slot.value)&mask != part {
			continue
		}
		group := slot.group - 1
		if to != nil {
			group = to[group]
		}
		fresh, err := s.add(group, slot.value)
		if err != nil {
			return err
		}
		if fresh {
			counts[group]++
		}
	}
	return nil
}

func (p *pairsAcc) result(alloc memory.Allocator, t arrow.DataType, from, to int) (arrow.Array, error) {
	return fixedArray(alloc, t, p.s[from:to], nil), nil
}

func (p *pairsAcc) close() { p.set, p.values, p.starts = nil, nil, nil }

// each calls f for every pair until it fails.
func (s *pairSet) each(f func(group uint32, word uint64) error) error {
	for _, slot := range s.slots {
		if slot.group == 0 {
			continue
		}
		if err := f(slot.group-1, slot.value); err != nil {
			return err
		}
	}
	return nil
}
