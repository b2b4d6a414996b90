package zonemap

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
)

// AddMoved takes over another segment whose rows moved: zones of fragments that were not rewritten as they are, and for rows with a new place zones of the old ones'
// bounds, which may be wider than the values in them. Errors: ErrInvalid for a segment that does not tell its NULL rows, or not which rows its zones
// stand for (I3); ErrMemoryLimit.
func (b *Builder) AddMoved(s *Segment, moved *rowset.Remap) error {
	if s.nulls == nil || !b.codec.Accepts(s.codec.Type()) {
		return errs.New(errs.ErrInvalid, "zones of %s, NULL rows known %t, in an index of %s", s.codec.Type(), s.nulls != nil, b.codec.Type())
	}
	b.count = 0
	b.given = rowset.Union(b.given, moved.MapSet(s.nulls))
	made := make(map[uint64]*Zone) // by fragment and number
	for i := range s.fragments {
		f := &s.fragments[i]
		if !moved.IsRetired(f.id) {
			b.zones = append(b.zones, f.zones...)
			continue
		}
		if !f.splits() {
			return errs.New(errs.ErrInvalid, "the zones of fragment %d do not tell which rows they stand for", f.id)
		}
		for k := range f.zones {
			b.move(made, &f.zones[k], moved)
		}
	}
	for _, m := range made {
		if part := b.given.Bitmap(m.Fragment); part != nil {
			m.Nulls = uint32(rangeCount(part, m.Start, m.Start+m.Rows))
		}
		b.zones = append(b.zones, *m)
	}
	slices.SortStableFunc(b.zones, byPlace)
	return b.pay()
}

// move gives the bounds of an old zone to every new zone that gets a row of it.
func (b *Builder) move(made map[uint64]*Zone, old *Zone, moved *rowset.Remap) {
	rows := &rowset.Set{}
	rows.AddRange(old.Fragment, old.Start, old.Start+old.Rows)
	now := moved.MapSet(rows)
	for _, id := range now.Uppers() {
		for it := now.Bitmap(id).Iterator(); it.HasNext(); {
			first := uint64(it.PeekNext())
			number := first / b.perZone
			last := first
			for it.HasNext() && uint64(it.PeekNext())/b.perZone == number {
				last = uint64(it.Next())
			}
			place := uint64(id)<<32 | number
			m, ok := made[place]
			if !ok {
				m = &Zone{Fragment: id, Start: first, Rows: last - first + 1, NoMin: true, NoMax: true}
				made[place] = m
			}
			b.join(m, old, first, last)
		}
	}
}

// join widens z by the rows [first, last] of bounds like old's.
func (b *Builder) join(z, old *Zone, first, last uint64) {
	end := max(z.Start+z.Rows, last+1)
	z.Start = min(z.Start, first)
	z.Rows = end - z.Start
	if old.NaNs > 0 {
		z.NaNs = 1 // at least; that it is one is what matters
	}
	if !old.NoMin && (z.NoMin || b.codec.Compare(old.Min, z.Min) < 0) {
		z.Min, z.NoMin = cloneKey(old.Min), false
	}
	if !old.NoMax && (z.NoMax || b.codec.Compare(old.Max, z.Max) > 0) {
		z.Max, z.NoMax = cloneKey(old.Max), false
	}
}

func cloneKey(k key.Key) key.Key { return key.Key{Word: k.Word, Bytes: slices.Clone(k.Bytes)} }

// rangeCount counts the values of bm in [from, to).
func rangeCount(bm *roaring.Bitmap, from, to uint64) uint64 {
	n := bm.Rank(uint32(to - 1))
	if from > 0 {
		n -= bm.Rank(uint32(from - 1))
	}
	return n
}
