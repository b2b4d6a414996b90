package exec

import (
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/lakesql/lakesql/internal/mem"
)

const (
	slotsMin      = 1 << 9
	wordSlotBytes = 16
)

// wordTable numbers distinct words from 0, in order of first sight. Open addressing, linear probing, at most half full, the key inside the slot.
type wordTable struct {
	res    *mem.Reservation
	slots  []wordSlot // a power of two of them
	shift  uint       // the slot of hash h is h >> shift
	words  []uint64   // by id
	nullID uint32     // noGroup until a NULL was seen
}

type wordSlot struct {
	key uint64
	id  uint32 // + 1; 0 = free
}

func newWordTable(res *mem.Reservation) (*wordTable, error) {
	t := &wordTable{res: res, nullID: noGroup}
	return t, t.resize(slotsMin)
}

func (t *wordTable) resize(slots int) error {
	if err := t.res.Grow(int64(slots) * (wordSlotBytes + 4)); err != nil { // + half a word per slot for words
		return err
	}
	old := t.slots
	t.slots, t.shift = make([]wordSlot, slots), shiftFor(slots)
	mask := uint64(slots - 1)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		at := hashWord(s.key) >> t.shift
		for t.slots[at].id != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = s
	}
	words := make([]uint64, len(t.words), slots/2+1)
	copy(words, t.words)
	t.words = words
	t.res.Shrink(int64(len(old)) * (wordSlotBytes + 4))
	return nil
}

// shiftFor takes a hash to one of slots slots (a power of two) by its top bits.
func shiftFor(slots int) uint {
	shift := uint(64)
	for ; slots > 1; slots >>= 1 {
		shift--
	}
	return shift
}

// insert returns the id of w and adds it if it is new.
func (t *wordTable) insert(w uint64) (uint32, error) {
	mask := uint64(len(t.slots) - 1)
	at := hashWord(w) >> t.shift
	for {
		s := &t.slots[at]
		if s.id == 0 {
			break
		}
		if s.key == w {
			return s.id - 1, nil
		}
		at = (at + 1) & mask
	}
	if len(t.words) >= len(t.slots)/2 {
		if err := t.resize(growSlots(len(t.slots))); err != nil {
			return 0, err
		}
		mask = uint64(len(t.slots) - 1)
		for at = hashWord(w) >> t.shift; t.slots[at].id != 0; {
			at = (at + 1) & mask
		}
	}
	t.words = append(t.words, w)
	t.slots[at] = wordSlot{key: w, id: uint32(len(t.words))}
	return uint32(len(t.words) - 1), nil
}

// growSlots grows small tables faster, so that the first batches are not spent on moving.
func growSlots(slots int) int {
	if slots < 1<<16 {
		return slots * 4
	}
	return slots * 2
}

// assign numbers words; bits is their validity from bitOffset on, nil for no NULLs.
func (t *wordTable) assign(words []uint64, bits []byte, bitOffset int, ids []uint32) error {
	slots, shift := t.slots, t.shift
	for i, w := range words {
		if bits != nil && !bitutil.BitIsSet(bits, bitOffset+i) {
			if t.nullID == noGroup {
				if err := t.addNull(); err != nil {
					return err
				}
				slots, shift = t.slots, t.shift
			}
			ids[i] = t.nullID
			continue
		}
		if s := &slots[hashWord(w)>>shift&uint64(len(slots)-1)]; s.id != 0 && s.key == w {
			ids[i] = s.id - 1
			continue
		}
		id, err := t.insert(w)
		if err != nil {
			return err
		}
		slots, shift = t.slots, t.shift
		ids[i] = id
	}
	return nil
}

// addNull gives NULL the next id; its word is a filler that no slot points to.
func (t *wordTable) addNull() error {
	if len(t.words) >= len(t.slots)/2 {
		if err := t.resize(growSlots(len(t.slots))); err != nil {
			return err
		}
	}
	t.nullID = uint32(len(t.words))
	t.words = append(t.words, 0)
	return nil
}

// find looks words up; NULLs and words that are not there get noGroup, or nullID for NULL where there is one.
func (t *wordTable) find(words []uint64, bits []byte, bitOffset int, ids []uint32) {
	slots, shift, mask := t.slots, t.shift, uint64(len(t.slots)-1)
	for i, w := range words {
		if bits != nil && !bitutil.BitIsSet(bits, bitOffset+i) {
			ids[i] = t.nullID
			continue
		}
		at := hashWord(w) >> shift & mask
		for {
			s := &slots[at]
			if s.id == 0 {
				ids[i] = noGroup
				break
			}
			if s.key == w {
				ids[i] = s.id - 1
				break
			}
			at = (at + 1) & mask
		}
	}
}

func (t *wordTable) count() int { return len(t.words) }
