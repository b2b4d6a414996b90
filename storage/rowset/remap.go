package rowset

import (
	"slices"

	"github.com/lakesql/lakesql/internal/errs"
)

// Remap says where the rows of rewritten fragments went: each old address has a new one or is gone. Rows of other fragments stay where they are.
// It keeps runs of rows that moved together, so that a compaction of whole fragments costs a few words a fragment. It is built once and then safe for
// concurrent use.
type Remap struct {
	fragments map[uint32][]remapRun // of retired fragments, by offset
	rows      uint64
}

// remapRun says that count rows from old offset from on are the rows from to on.
type remapRun struct {
	from, count uint32
	to          RowAddr
}

// Retire says that a fragment was rewritten: rows of it that no run names are gone.
func (m *Remap) Retire(fragment uint32) {
	if m.fragments == nil {
		m.fragments = make(map[uint32][]remapRun)
	}
	if _, ok := m.fragments[fragment]; !ok {
		m.fragments[fragment] = nil
	}
}

// Move says that count rows from old on are now the rows from to on. Within one fragment moves come in ascending order of the old offset. Errors: ErrInternal.
func (m *Remap) Move(old, to RowAddr, count uint32) error {
	if count == 0 {
		return nil
	}
	m.Retire(old.Fragment())
	runs := m.fragments[old.Fragment()]
	m.rows += uint64(count)
	if n := len(runs); n > 0 {
		last := &runs[n-1]
		end := last.from + (last.count - 1) // the row after it may not fit 32 bits
		if old.Offset() <= end {
			return errs.New(errs.ErrInternal, "row %s is moved out of order", old)
		}
		if old.Offset()-1 == end && last.to+RowAddr(last.count) == to {
			last.count += count
			return nil
		}
	}
	m.fragments[old.Fragment()] = append(runs, remapRun{from: old.Offset(), count: count, to: to})
	return nil
}

// Retired returns the fragments that were rewritten, ascending.
func (m *Remap) Retired() []uint32 {
	out := make([]uint32, 0, len(m.fragments))
	for f := range m.fragments {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// IsRetired says whether the fragment was rewritten.
func (m *Remap) IsRetired(fragment uint32) bool {
	_, ok := m.fragments[fragment]
	return ok
}

// Rows counts the rows that moved.
func (m *Remap) Rows() uint64 { return m.rows }

// SizeBytes estimates the memory held.
func (m *Remap) SizeBytes() int64 {
	var n int64
	for _, runs := range m.fragments {
		n += int64(cap(runs))*16 + 64
	}
	return n
}

// Map returns where a row is now; ok is false where it is gone. Rows of fragments that were not rewritten stay.
func (m *Remap) Map(old RowAddr) (now RowAddr, ok bool) {
	runs, retired := m.fragments[old.Fragment()]
	if !retired {
		return old, true
	}
	k, found := slices.BinarySearchFunc(runs, old.Offset(), func(r remapRun, at uint32) int {
		switch {
		case r.from+(r.count-1) < at: // the end itself may not fit 32 bits
			return -1
		case r.from > at:
			return 1
		}
		return 0
	})
	if !found {
		return 0, false
	}
	return runs[k].to + RowAddr(old.Offset()-runs[k].from), true
}

// MapSet returns the set with every address of a rewritten fragment replaced, those that are gone left out.
func (m *Remap) MapSet(s *Set) *Set {
	out := &Set{}
	for _, upper := range s.Uppers() {
		runs, retired := m.fragments[upper]
		bm := s.Bitmap(upper)
		if !retired {
			out.AddBitmap(upper, bm)
			continue
		}
		k := 0
		for it := bm.Iterator(); it.HasNext() && k < len(runs); {
			at := it.Next()
			for k < len(runs) && runs[k].from+(runs[k].count-1) < at {
				k++
			}
			if k < len(runs) && runs[k].from <= at {
				out.Add(uint64(runs[k].to) + uint64(at-runs[k].from))
			}
		}
	}
	return out
}
