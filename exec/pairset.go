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

// pairsAcc is COUNT(DISTINCT x) of a word.
type pairsAcc struct {
	states[int64]
	set   *pairSet
	words []uint64

	once   sync.Once
	starts []uint32 // values by group, for merges of some of the groups
	values []uint64
}

func newPairsAcc(res *mem.Reservation) (accumulator, error) {
	set, err := newPairSet(res, 0)
	return &pairsAcc{states: states[int64]{res: res}, set: set}, err
}

func (p *pairsAcc) update(ids []uint32, args []arrow.Array) error {
	bits, offset := validity(args[0])
	for i, w := range wordsOf(args[0], len(ids), &p.words) {
		if bits != nil && !bitutil.BitIsSet(bits, offset+i) {
			continue
		}
		fresh, err := p.set.add(ids[i], w)
		if err != nil {
			return err
		}
		if fresh {
			p.s[ids[i]]++
		}
	}
	return nil
}

// list sorts the values by group, once.
func (p *pairsAcc) list() {
	p.once.Do(func() {
		p.starts, p.values = make([]uint32, len(p.s)+2), make([]uint64, p.set.n)
		for _, s := range p.set.slots {
			if s.group != 0 {
				p.starts[s.group+1]++
			}
		}
		for g := 2; g < len(p.starts); g++ {
			p.starts[g] += p.starts[g-1]
		}
		for _, s := range p.set.slots {
			if s.group != 0 {
				p.values[p.starts[s.group]] = s.value
				p.starts[s.group]++
			}
		}
	})
}

// seal reserves what list will take.
func (p *pairsAcc) seal() error { return p.res.Grow(int64(p.set.n)*8 + int64(len(p.s))*4) }

func (p *pairsAcc) merge(src accumulator, from, to []uint32) error {
	o := src.(*pairsAcc)
	o.list()
	for i, g := range from {
		for _, v := range o.values[o.starts[g]:o.starts[g+1]] {
			fresh, err := p.set.add(to[i], v)
			if err != nil {
				return err
			}
			if fresh {
				p.s[to[i]]++
			}
		}
	}
	return nil
}

// mergeAll implements setMerger: each goroutine unites the pairs of one range of hashes.
func (p *pairsAcc) mergeAll(ctx context.Context, env *Env, srcs []accumulator, to [][]uint32) error {
	parts := 1
	for parts < env.Workers {
		parts *= 2
	}
	sources := []*pairsAcc{p}
	maps := [][]uint32{nil}
	pairs := p.set.n
	for i, s := range srcs {
		pairs += s.(*pairsAcc).set.n
		sources, maps = append(sources, s.(*pairsAcc)), append(maps, to[i])
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
