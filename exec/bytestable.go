package exec

import (
	"bytes"

	"github.com/lakesql/lakesql/internal/mem"
)

const (
	byteSlotBytes = 24
)

// bytesTable numbers distinct byte strings from 0, in order of first sight. Keys of up to shortMax bytes live in their slot; of longer
// ones the slot has the hash and the arena the bytes. Open addressing, linear probing, at most half full.
type bytesTable struct {
	res    *mem.Reservation
	slots  []byteSlot
	shift  uint
	arena  []byte // the keys by id
	ends   []int  // key id is arena[ends[id]:ends[id+1]]
	nullID uint32
}

type byteSlot struct {
	lo, hi uint64
	id     uint32 // + 1; 0 = free
}

func newBytesTable(res *mem.Reservation) (*bytesTable, error) {
	t := &bytesTable{res: res, nullID: noGroup, ends: make([]int, 1, slotsMin/2)}
	return t, t.resize(slotsMin)
}

func (t *bytesTable) resize(slots int) error {
	if err := t.res.Grow(int64(slots) * (byteSlotBytes + 4)); err != nil { // + half an end per slot
		return err
	}
	old := t.slots
	t.slots, t.shift = make([]byteSlot, slots), shiftFor(slots)
	mask := uint64(slots - 1)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		at := slotHash(s.lo, s.hi) >> t.shift
		for t.slots[at].id != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = s
	}
	t.res.Shrink(int64(len(old)) * (byteSlotBytes + 4))
	return nil
}

// slotHash is the hash of the key behind two slot words.
func slotHash(lo, hi uint64) uint64 {
	if hi == longMark {
		return lo
	}
	return hashPair(lo, hi)
}

func (t *bytesTable) count() int { return len(t.ends) - 1 }

// key returns the bytes of a key; they may be kept.
func (t *bytesTable) key(id int) []byte { return t.arena[t.ends[id]:t.ends[id+1]] }

// hash returns the hash of a key as its slot has it.
func (t *bytesTable) hash(id int) uint64 {
	k := t.key(id)
	if len(k) <= shortMax {
		return hashPair(shortKey(k, 0, len(k)))
	}
	return hashBytes(k)
}

// insert returns the id of data[start:end] and adds it if it is new.
func (t *bytesTable) insert(data []byte, start, end int) (uint32, error) {
	var lo, hi uint64
	if n := end - start; n <= shortMax {
		lo, hi = shortKey(data, start, n)
	} else {
		lo, hi = hashBytes(data[start:end]), longMark
	}
	at, id := t.look(lo, hi, data[start:end])
	if id != noGroup {
		return id, nil
	}
	if t.count() >= len(t.slots)/2 {
		if err := t.resize(growSlots(len(t.slots))); err != nil {
			return 0, err
		}
		at, _ = t.look(lo, hi, data[start:end])
	}
	if err := t.append(data[start:end]); err != nil {
		return 0, err
	}
	t.slots[at] = byteSlot{lo: lo, hi: hi, id: uint32(t.count())}
	return uint32(t.count() - 1), nil
}

// look finds a key, or noGroup and the free slot where it belongs.
func (t *bytesTable) look(lo, hi uint64, key []byte) (uint64, uint32) {
	mask := uint64(len(t.slots) - 1)
	at := slotHash(lo, hi) >> t.shift
	for {
		s := &t.slots[at]
		if s.id == 0 {
			return at, noGroup
		}
		if s.lo == lo && s.hi == hi && (hi != longMark || bytes.Equal(t.key(int(s.id-1)), key)) {
			return at, s.id - 1
		}
		at = (at + 1) & mask
	}
}

func (t *bytesTable) append(key []byte) error {
	if need := len(t.arena) + len(key); need > cap(t.arena) {
		size := max(2*cap(t.arena), need, 4096)
		if err := t.res.Grow(int64(size)); err != nil {
			return err
		}
		old := cap(t.arena)
		arena := make([]byte, len(t.arena), size)
		copy(arena, t.arena)
		t.arena = arena
		t.res.Shrink(int64(old))
	}
	t.arena = append(t.arena, key...)
	t.ends = append(t.ends, len(t.arena))
	return nil
}

// addNull gives NULL the next id, with no bytes and no slot.
func (t *bytesTable) addNull() error {
	if err := t.append(nil); err != nil {
		return err
	}
	t.nullID = uint32(t.count() - 1)
	return nil
}

// assignBytes numbers keys.
func assignBytes[O int32 | int64](t *bytesTable, k byteKeys[O], ids []uint32) error {
	slots, shift := t.slots, t.shift
	for i := range ids {
		if k.bits != nil && k.null(i) {
			if t.nullID == noGroup {
				if err := t.addNull(); err != nil {
					return err
				}
			}
			ids[i] = t.nullID
			continue
		}
		start, end := int(k.offsets[i]), int(k.offsets[i+1])
		if n := end - start; n <= shortMax {
			lo, hi := shortKey(k.data, start, n)
			if s := &slots[hashPair(lo, hi)>>shift&uint64(len(slots)-1)]; s.lo == lo && s.hi == hi && s.id != 0 {
				ids[i] = s.id - 1
				continue
			}
		}
		id, err := t.insert(k.data, start, end)
		if err != nil {
			return err
		}
		slots, shift = t.slots, t.shift
		ids[i] = id
	}
	return nil
}

// findBytes looks keys up; those that are not there get noGroup, NULLs get nullID.
func findBytes[O int32 | int64](t *bytesTable, k byteKeys[O], ids []uint32) {
	for i := range ids {
		if k.bits != nil && k.null(i) {
			ids[i] = t.nullID
			continue
		}
		start, end := int(k.offsets[i]), int(k.offsets[i+1])
		var lo, hi uint64
		if n := end - start; n <= shortMax {
			lo, hi = shortKey(k.data, start, n)
		} else {
			lo, hi = hashBytes(k.data[start:end]), longMark
		}
		_, ids[i] = t.look(lo, hi, k.data[start:end])
	}
}
