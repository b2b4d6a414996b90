package storage

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/rowset"
)

// idIndex maps row ids to addresses in one snapshot. It keeps the sequences as they are stored, sorted by the ids that their
// segments span, so that a table of ranges costs a few words per fragment.
type idIndex struct {
	byFragment map[uint32]*manifest.RowIDs
	runs       []idRun  // by first id
	reach      []uint64 // reach[i] = largest id in runs[:i+1]
	bytes      int64
}

// idRun is a segment of one fragment's sequence.
type idRun struct {
	fragment *Fragment
	segment  *manifest.Segment
}

// runBytes is about what one run costs.
const runBytes = 160

// ids returns the index, building it at first use. Errors: ErrCorrupt, also where a sequence has another length than its fragment, ErrIO.
func (s *Snapshot) ids(ctx context.Context) (*idIndex, error) {
	key := cacheKey{store: s.table.store, kind: kindRowIDs, path: s.file.Path, ident: s.ident()}
	return cached(ctx, s.table.opts.Cache, key, func(ctx context.Context) (*idIndex, int64, error) {
		x, err := s.buildIDs(ctx)
		if err != nil {
			return nil, 0, err
		}
		return x, x.bytes, nil
	})
}

func (s *Snapshot) buildIDs(ctx context.Context) (*idIndex, error) {
	sequences := make([]*manifest.RowIDs, len(s.fragments))
	g, gctx := spawn.WithContext(ctx, s.table.opts.ReadParallelism)
	for i, f := range s.fragments {
		g.Go("read row ids", func() (err error) {
			sequences[i], err = f.RowIDs(gctx)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	x := &idIndex{byFragment: make(map[uint32]*manifest.RowIDs, len(s.fragments)), bytes: 1024}
	for i, f := range s.fragments {
		x.byFragment[f.id] = sequences[i]
		x.bytes += sequences[i].IndexBytes()
		for _, seg := range sequences[i].Segments() {
			if seg.Count > 0 {
				x.runs = append(x.runs, idRun{fragment: f, segment: seg})
			}
		}
	}
	slices.SortStableFunc(x.runs, func(a, b idRun) int { return cmp.Compare(a.segment.Min, b.segment.Min) })
	x.reach = make([]uint64, len(x.runs))
	top := uint64(0)
	for i, r := range x.runs {
		top = max(top, r.segment.Max)
		x.reach[i] = top
	}
	x.bytes += int64(len(x.runs)) * runBytes
	return x, nil
}

// Bounds of the part of a file that holds row ids or row versions.
const (
	externalIDsMax    = 1 << 34
	externalOffsetMax = math.MaxInt64 / 2
)

// RowIDs reads the fragment's row ids, in tables that have them. Errors: ErrCorrupt, ErrIO.
func (f *Fragment) RowIDs(ctx context.Context) (*manifest.RowIDs, error) {
	b, path := f.pb.GetInlineRowIds(), f.snapshot.file.Path
	if ext := f.pb.GetExternalRowIds(); ext != nil {
		var err error
		if b, path, err = f.external(ctx, ext, "row ids"); err != nil {
			return nil, err
		}
	}
	ids, err := manifest.ParseRowIDs(b, f.rows)
	if err != nil {
		return nil, errs.WithPath(err, path)
	}
	if ids.Count() != f.rows {
		return nil, errs.WithPath(errs.Corrupt("row id sequence", -1, "fragment %d has %d rows and %d row ids", f.id, f.rows, ids.Count()), path)
	}
	return ids, nil
}

// keyer returns a function from offsets of the fragment to stored keys.
func (f *Fragment) keyer(ctx context.Context) (func(offset uint32) uint64, error) {
	if !f.snapshot.HasStableRowIDs() {
		return func(offset uint32) uint64 { return uint64(rowset.Addr(f.id, offset)) }, nil
	}
	x, err := f.snapshot.ids(ctx)
	if err != nil {
		return nil, err
	}
	seq := x.byFragment[f.id]
	return func(offset uint32) uint64 { return seq.At(uint64(offset)) }, nil
}

// Resolve maps stored keys to the addresses of live rows; unknown, deleted and retired rows drop out (I5). Errors: ErrCorrupt, ErrIO.
func (s *Snapshot) Resolve(ctx context.Context, keys *rowset.Set) (*rowset.Set, error) {
	found := keys
	if s.HasStableRowIDs() {
		x, err := s.ids(ctx)
		if err != nil {
			return nil, err
		}
		found = x.resolve(keys)
	}
	return s.maskDead(ctx, found)
}

// maskDead keeps the addresses that name live rows.
func (s *Snapshot) maskDead(ctx context.Context, addrs *rowset.Set) (*rowset.Set, error) {
	var frags []*Fragment
	for _, id := range addrs.Uppers() {
		if f, ok := s.byID[id]; ok {
			frags = append(frags, f)
		}
	}
	if err := s.loadDeletions(ctx, frags); err != nil {
		return nil, err
	}
	deleted := make(map[uint32]*roaring.Bitmap)
	for _, f := range frags {
		bm, err := f.Deletions(ctx)
		if err != nil {
			return nil, err
		}
		if bm != nil {
			deleted[f.id] = bm
		}
	}
	return addrs.Below(func(id uint32) (uint64, *roaring.Bitmap, bool) {
		f, ok := s.byID[id]
		if !ok {
			return 0, nil, false
		}
		return f.rows, deleted[id], true
	}), nil
}

// resolve returns every address whose id is among keys, deleted rows included.
func (x *idIndex) resolve(keys *rowset.Set) *rowset.Set {
	out := &rowset.Set{}
	for _, r := range x.runs {
		if r.segment.IsRange() {
			r.resolveRange(keys, out)
			continue
		}
		// The shorter side is walked: a few keys are searched in the segment, a few rows among the keys.
		if keysBetween(keys, r.segment.Min, r.segment.Max) > r.segment.Count {
			r.resolveRows(keys, out)
			continue
		}
		for upper := range uppersBetween(keys, r.segment.Min, r.segment.Max) {
			r.resolveEach(keys.Bitmap(upper), upper, out)
		}
	}
	return out
}

// uppersBetween yields the upper halves of keys that can hold ids from lo to hi.
func uppersBetween(keys *rowset.Set, lo, hi uint64) func(func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for _, u := range keys.Uppers() {
			if u >= uint32(lo>>32) && u <= uint32(hi>>32) && !yield(u) {
				return
			}
		}
	}
}

// keysBetween counts the keys from lo to hi.
func keysBetween(keys *rowset.Set, lo, hi uint64) uint64 {
	var n uint64
	for upper := range uppersBetween(keys, lo, hi) {
		bm := keys.Bitmap(upper)
		n += bm.GetCardinality()
		if uint32(lo>>32) == upper && uint32(lo) > 0 {
			n -= bm.Rank(uint32(lo) - 1)
		}
		if uint32(hi>>32) == upper {
			n -= bm.GetCardinality() - bm.Rank(uint32(hi))
		}
	}
	return n
}

// resolveRows asks for each row of the segment whether its id is among the keys.
func (r idRun) resolveRows(keys, out *rowset.Set) {
	hits := roaring.New()
	for i := range r.segment.Count {
		if keys.Contains(r.segment.ID(i)) {
			hits.Add(uint32(r.segment.Start + i))
		}
	}
	out.AddBitmap(r.fragment.id, hits)
}

// resolveRange shifts whole bitmaps: ids Min..Max are rows Start.. of the fragment.
func (r idRun) resolveRange(keys, out *rowset.Set) {
	for upper := range uppersBetween(keys, r.segment.Min, r.segment.Max) {
		base := uint64(upper) << 32
		lo := max(r.segment.Min, base)
		hi := min(r.segment.Max, base|math.MaxUint32)
		window := roaring.New()
		window.AddRange(lo-base, hi-base+1)
		window.And(keys.Bitmap(upper))
		if !window.IsEmpty() {
			first := r.segment.Start + (lo - r.segment.Min) // row of id lo
			out.AddBitmap(r.fragment.id, roaring.AddOffset64(window, int64(first)-int64(lo-base)))
		}
	}
}

// resolveEach looks the keys of one upper half up one by one.
func (r idRun) resolveEach(keys *roaring.Bitmap, upper uint32, out *rowset.Set) {
	base := uint64(upper) << 32
	hits := roaring.New()
	it := keys.Iterator()
	if r.segment.Min > base {
		it.AdvanceIfNeeded(uint32(min(r.segment.Min-base, math.MaxUint32)))
	}
	for it.HasNext() {
		id := base | uint64(it.Next())
		if id > r.segment.Max {
			break
		}
		if pos, ok := r.segment.Find(id); ok {
			hits.Add(uint32(pos))
		}
	}
	out.AddBitmap(r.fragment.id, hits)
}

// ResolveKeys is Resolve key by key, order and doubles kept: ok[i] says whether addrs[i] is a live row. Errors: ErrCorrupt, ErrIO.
func (s *Snapshot) ResolveKeys(ctx context.Context, keys []uint64) (addrs []rowset.RowAddr, ok []bool, err error) {
	addrs, ok = make([]rowset.RowAddr, len(keys)), make([]bool, len(keys))
	var x *idIndex
	if s.HasStableRowIDs() {
		if x, err = s.ids(ctx); err != nil {
			return nil, nil, err
		}
	}
	live := &liveness{ctx: ctx, s: s, deleted: make(map[uint32]*roaring.Bitmap)}
	for i, k := range keys {
		if x == nil {
			addrs[i] = rowset.RowAddr(k)
			ok[i], err = live.is(addrs[i])
		} else {
			addrs[i], ok[i], err = x.find(k, live)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return addrs, ok, nil
}

// find returns the live row of an id. An updated row's id is in its old fragment, deleted, and in its new one.
func (x *idIndex) find(id uint64, live *liveness) (rowset.RowAddr, bool, error) {
	end := sort.Search(len(x.runs), func(i int) bool { return x.runs[i].segment.Min > id })
	for i := end - 1; i >= 0 && x.reach[i] >= id; i-- {
		pos, ok := x.runs[i].segment.Find(id)
		if !ok {
			continue
		}
		addr := rowset.Addr(x.runs[i].fragment.id, uint32(pos))
		if ok, err := live.is(addr); ok || err != nil {
			return addr, ok, err
		}
	}
	return 0, false, nil
}

// liveness answers for single rows, remembering deletion sets for the length of one call.
type liveness struct {
	ctx     context.Context //nolint:containedctx // lives for one call only
	s       *Snapshot
	deleted map[uint32]*roaring.Bitmap
}

func (l *liveness) is(a rowset.RowAddr) (bool, error) {
	f, ok := l.s.byID[a.Fragment()]
	if !ok || uint64(a.Offset()) >= f.rows {
		return false, nil
	}
	bm, ok := l.deleted[f.id]
	if !ok {
		var err error
		if bm, err = f.Deletions(l.ctx); err != nil {
			return false, err
		}
		l.deleted[f.id] = bm
	}
	return bm == nil || !bm.Contains(a.Offset()), nil
}

// Keys maps row addresses to stored keys; addresses that name no row of the snapshot drop out. Errors: ErrCorrupt, ErrIO.
func (s *Snapshot) Keys(ctx context.Context, addrs *rowset.Set) (*rowset.Set, error) {
	if !s.HasStableRowIDs() {
		return addrs.Clone(), nil
	}
	x, err := s.ids(ctx)
	if err != nil {
		return nil, err
	}
	out := &rowset.Set{}
	for _, id := range addrs.Uppers() {
		if seq, ok := x.byFragment[id]; ok {
			keysOf(seq, addrs.Bitmap(id), out)
		}
	}
	return out, nil
}

// keysOf adds the ids of some rows of one sequence.
func keysOf(seq *manifest.RowIDs, rows *roaring.Bitmap, out *rowset.Set) {
	for _, seg := range seq.Segments() {
		if seg.Count == 0 {
			continue
		}
		window := roaring.New()
		window.AddRange(seg.Start, seg.Start+seg.Count)
		window.And(rows)
		if window.IsEmpty() {
			continue
		}
		if seg.IsRange() && seg.Min>>32 == seg.Max>>32 {
			upper := uint32(seg.Min >> 32)
			out.AddBitmap(upper, roaring.AddOffset64(window, int64(uint32(seg.Min))-int64(seg.Start)))
			continue
		}
		for it := window.Iterator(); it.HasNext(); {
			out.Add(seq.At(uint64(it.Next())))
		}
	}
}
