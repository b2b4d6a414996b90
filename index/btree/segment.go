package btree

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/rowset"
)

const (
	// versionMax is the newest index_version of BTREE that is known.
	versionMax = 1
	// idsAtATime is how many row keys a long range reads at once.
	idsAtATime = 64 << 10
	// estimateRangesMax is the most ranges whose ends an estimate looks for.
	estimateRangesMax = 16
)

// The parts of a segment in its cache: page k's values at 2k, its row keys at 2k+1, and the set of all rows.
const allPart = ^uint64(0)

// Segment is an opened BTREE segment. It is safe for concurrent use.
type Segment struct {
	meta   index.Meta
	path   string
	data   *file.Reader
	values []file.Column
	ids    []file.Column
	bounds *bounds
	cache  *index.Cache
	id     uint64
}

var _ index.FilterSegment = (*Segment)(nil)

// Open opens a segment: the bounds of the pages are read, pages when a lookup asks for them. Errors: ErrUnsupported for a newer
// index_version, a partitioned index or values without an order, ErrNotFound, ErrCorrupt, ErrMemoryLimit, ErrIO.
func Open(ctx context.Context, open index.OpenFile, meta index.Meta, opts index.OpenOptions) (*Segment, error) {
	if meta.Version > versionMax {
		return nil, errs.New(errs.ErrUnsupported, "index %s: BTREE index_version %d is newer than %d", meta.Name, meta.Version, versionMax)
	}
	meta.PhysicalKeys = index.PhysicalKeys(index.KindBTree, meta.Version)
	s := &Segment{meta: meta}
	held := opts.Budget.Reserve()
	if err := s.readBounds(ctx, open, opts, held); err != nil {
		held.Free()
		return nil, err
	}
	if err := s.findColumns(); err != nil {
		held.Free()
		return nil, fmt.Errorf("%s: %w", s.path, errs.WithPath(err, s.path))
	}
	s.cache = opts.OwnCache()
	s.id = s.cache.Register()
	return s, nil
}

// readBounds opens page_data, and reads page_lookup or the state.
func (s *Segment) readBounds(ctx context.Context, open index.OpenFile, opts index.OpenOptions, held *mem.Reservation) (err error) {
	if opts.State == nil {
		lookup, path, err := openReader(ctx, open, LookupFileName)
		if err != nil {
			return err
		}
		if s.data, s.path, err = openReader(ctx, open, DataFileName); err != nil {
			return err
		}
		if s.bounds, err = readBounds(ctx, lookup, s.data.Rows(), held); err != nil {
			return fmt.Errorf("%s: %w", path, errs.WithPath(err, path))
		}
		return nil
	}
	if s.data, s.path, err = openReader(ctx, open, DataFileName); err != nil {
		return err
	}
	cols, err := index.Columns(s.data, "values")
	if err != nil {
		return errs.WithPath(err, s.path)
	}
	codec, err := key.NewCodec(cols[0].Field.Type)
	if err != nil {
		return errs.WithPath(err, s.path)
	}
	if s.bounds, err = boundsOfState(codec, opts.State, held); err != nil {
		return errs.WithPath(err, s.path)
	}
	if s.bounds.rows != s.data.Rows() {
		return errs.WithPath(errs.Corrupt("segment state", -1, "%d rows, the file has %d", s.bounds.rows, s.data.Rows()), s.path)
	}
	return nil
}

func openReader(ctx context.Context, open index.OpenFile, name string) (*file.Reader, string, error) {
	f, err := open(ctx, name)
	if err != nil {
		return nil, "", err
	}
	r, err := file.Open(ctx, f, file.Options{})
	return r, f.Path(), err
}

func (s *Segment) findColumns() error {
	cols, err := index.Columns(s.data, "values", "ids")
	if err != nil {
		return err
	}
	s.values, s.ids = cols[:1], cols[1:]
	if !arrow.TypeEqual(cols[0].Field.Type, s.bounds.codec.Type()) {
		return errs.Corrupt("schema", -1, "values are %s, their bounds %s", cols[0].Field.Type, s.bounds.codec.Type())
	}
	if cols[1].Field.Type.ID() != arrow.UINT64 {
		return errs.Corrupt("schema", -1, "ids are %s", cols[1].Field.Type)
	}
	return nil
}

// Meta describes the segment.
func (s *Segment) Meta() index.Meta { return s.meta }

// Close drops what the segment keeps in memory.
func (s *Segment) Close() error {
	s.cache.Drop(s.id)
	s.bounds.held.Free()
	return nil
}

// Answers says which operators Lookup supports: all that compare a whole value, exactly unless the segment may be stale.
func (s *Segment) Answers(op index.Op) (index.Match, bool) {
	switch op {
	case index.OpEq, index.OpIn, index.OpRange, index.OpIsNull, index.OpIsNotNull:
		return s.match(), true
	default:
		return s.match(), false
	}
}

func (s *Segment) match() index.Match {
	if s.meta.Stale {
		return index.AtMost
	}
	return index.Exact
}

// Lookup implements index.FilterSegment.
func (s *Segment) Lookup(ctx context.Context, p index.Predicate) (index.Truth, index.Match, error) {
	truth, err := s.lookup(ctx, p)
	if err != nil {
		return index.Truth{}, s.match(), fmt.Errorf("index %s: %w", s.meta.Name, errs.WithPath(err, s.path))
	}
	return truth, s.match(), nil
}

// span is the rows [start, end) of page_data.
type span struct{ start, end uint64 }

func (s *Segment) lookup(ctx context.Context, p index.Predicate) (index.Truth, error) {
	l := &lookup{seg: s, valuesPage: -1, idsPage: -1}
	nulls, values := span{0, s.bounds.nullRows}, span{s.bounds.nullRows, s.bounds.rows}
	switch p.Op {
	case index.OpIsNull:
		set, err := l.set(ctx, []span{nulls})
		return index.Truth{True: set, Null: &rowset.Set{}}, err
	case index.OpIsNotNull:
		set, err := l.set(ctx, []span{values})
		return index.Truth{True: set, Null: &rowset.Set{}}, err
	case index.OpEq, index.OpIn, index.OpRange:
	default:
		return index.Truth{}, errs.New(errs.ErrUnsupported, "a BTREE index does not answer %s", p)
	}
	ranges, err := s.bounds.codec.Ranges(p)
	if err != nil {
		return index.Truth{}, err
	}
	spans, err := l.spans(ctx, ranges)
	if err != nil {
		return index.Truth{}, err
	}
	isTrue, err := l.set(ctx, spans)
	if err != nil {
		return index.Truth{}, err
	}
	isNull, err := l.set(ctx, []span{nulls})
	return index.Truth{True: isTrue, Null: isNull}, err
}

// Estimate counts the rows of few ranges, which reads the pages where they begin and end; -1 for many.
func (s *Segment) Estimate(ctx context.Context, p index.Predicate) (int64, error) {
	switch p.Op {
	case index.OpIsNull:
		return int64(s.bounds.nullRows), nil
	case index.OpIsNotNull:
		return int64(s.bounds.rows - s.bounds.nullRows), nil
	case index.OpEq, index.OpIn, index.OpRange:
	default:
		return -1, nil
	}
	ranges, err := s.bounds.codec.Ranges(p)
	if err != nil {
		return -1, fmt.Errorf("index %s: %w", s.meta.Name, err)
	}
	if len(ranges) > estimateRangesMax {
		return -1, nil
	}
	l := &lookup{seg: s, valuesPage: -1, idsPage: -1}
	spans, err := l.spans(ctx, ranges)
	if err != nil {
		return -1, fmt.Errorf("index %s: %w", s.meta.Name, errs.WithPath(err, s.path))
	}
	var n uint64
	for _, sp := range spans {
		n += sp.end - sp.start
	}
	return int64(n), nil
}

// lookup is the state of one call: the pages that it used last, so that ascending ranges decode each page once.
type lookup struct {
	seg        *Segment
	valuesPage int
	values     *pageValues
	idsPage    int
	pageIDs    []uint64
}

// spans returns the rows of page_data whose values lie in ranges, ascending; neighbours are merged.
func (l *lookup) spans(ctx context.Context, ranges []key.Range) ([]span, error) {
	b := l.seg.bounds
	var out []span
	for _, r := range ranges {
		first, end := b.candidates(r)
		if first >= end {
			continue
		}
		sp := span{max(b.pageStart(first), b.nullRows), b.pageEnd(end - 1)}
		if p := &b.pages[first]; p.noMin || b.codec.Below(p.min, r) {
			places, err := l.pageValues(ctx, first)
			if err != nil {
				return nil, err
			}
			start, _ := places.dict.Span(r)
			sp.start = b.pageStart(first) + places.nulls + uint64(start)
		}
		if b.codec.Above(b.pages[end-1].max, r) {
			places, err := l.pageValues(ctx, end-1)
			if err != nil {
				return nil, err
			}
			_, stop := places.dict.Span(r)
			sp.end = b.pageStart(end-1) + places.nulls + uint64(stop)
		}
		if sp.start >= sp.end {
			continue
		}
		if n := len(out); n > 0 && out[n-1].end == sp.start {
			out[n-1].end = sp.end
		} else {
			out = append(out, sp)
		}
	}
	return out, nil
}

func (l *lookup) pageValues(ctx context.Context, k int) (*pageValues, error) {
	if l.valuesPage == k {
		return l.values, nil
	}
	s := l.seg
	v, ok := s.cache.Get(s.id, 2*uint64(k))
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		values, err := s.bounds.readValues(ctx, s.data, s.values, k)
		if err != nil {
			return nil, err
		}
		s.cache.Put(s.id, 2*uint64(k), values, values.dict.SizeBytes())
		v = values
	}
	l.valuesPage, l.values = k, v.(*pageValues)
	return l.values, nil
}

// set returns the row keys of the spans. Where they are most of the rows, what they leave out is read instead, and taken from the
// set of all rows, which is kept.
func (l *lookup) set(ctx context.Context, spans []span) (*rowset.Set, error) {
	s := l.seg
	var inside uint64
	for _, sp := range spans {
		inside += sp.end - sp.start
	}
	outside := s.bounds.rows - inside
	if inside > s.bounds.pageRows && outside < inside/3 {
		all, err := l.all(ctx)
		if err != nil {
			return nil, err
		}
		if outside == 0 {
			return all, nil
		}
		if all.Count() == s.bounds.rows { // no key twice, with two values
			left, err := l.collect(ctx, others(spans, s.bounds.rows))
			if err != nil {
				return nil, err
			}
			return rowset.AndNot(all, left), nil
		}
	}
	return l.collect(ctx, spans)
}

// others returns what ascending spans leave of [0, rows).
func others(spans []span, rows uint64) []span {
	var out []span
	next := uint64(0)
	for _, sp := range spans {
		if next < sp.start {
			out = append(out, span{next, sp.start})
		}
		next = sp.end
	}
	if next < rows {
		out = append(out, span{next, rows})
	}
	return out
}

func (l *lookup) all(ctx context.Context) (*rowset.Set, error) {
	s := l.seg
	if v, ok := s.cache.Get(s.id, allPart); ok {
		return v.(*rowset.Set), nil
	}
	all, err := l.collect(ctx, []span{{0, s.bounds.rows}})
	if err != nil {
		return nil, err
	}
	s.cache.Put(s.id, allPart, all, all.SizeBytes())
	return all, nil
}

func (l *lookup) collect(ctx context.Context, spans []span) (*rowset.Set, error) {
	s := l.seg
	var b rowset.Builder
	for _, sp := range spans {
		for sp.start < sp.end {
			k := int(sp.start / s.bounds.pageRows)
			pageStart, pageEnd := s.bounds.pageStart(k), s.bounds.pageEnd(k)
			if sp.end-sp.start > 2*s.bounds.pageRows { // long: read past the cache
				end := min(sp.end, sp.start+idsAtATime)
				if err := l.readIDs(ctx, sp.start, end, b.Add); err != nil {
					return nil, err
				}
				sp.start = end
				continue
			}
			ids, err := l.idsOfPage(ctx, k)
			if err != nil {
				return nil, err
			}
			end := min(sp.end, pageEnd)
			b.Add(ids[sp.start-pageStart : end-pageStart])
			sp.start = end
		}
	}
	return b.Set(), nil
}

// idsOfPage returns the row keys of page k; they must not be changed.
func (l *lookup) idsOfPage(ctx context.Context, k int) ([]uint64, error) {
	if l.idsPage == k {
		return l.pageIDs, nil
	}
	s := l.seg
	v, ok := s.cache.Get(s.id, 2*uint64(k)+1)
	if !ok {
		var ids []uint64
		err := l.readIDs(ctx, s.bounds.pageStart(k), s.bounds.pageEnd(k), func(read []uint64) { ids = slices.Clone(read) })
		if err != nil {
			return nil, err
		}
		s.cache.Put(s.id, 2*uint64(k)+1, ids, int64(len(ids))*8)
		v = ids
	}
	l.idsPage, l.pageIDs = k, v.([]uint64)
	return l.pageIDs, nil
}

// readIDs reads the row keys of the rows [start, end) of page_data; use may keep nothing.
func (l *lookup) readIDs(ctx context.Context, start, end uint64, use func(ids []uint64)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := l.seg
	batch, err := s.data.ReadRange(ctx, s.ids, start, end, file.ReadOptions{Alloc: compute.GetAllocator(ctx)})
	if err != nil {
		return err
	}
	defer batch.Release()
	ids, ok := batch.Column(0).(*array.Uint64)
	if !ok || ids.NullN() > 0 {
		return errs.Corrupt("ids", -1, "rows %d to %d hold NULLs", start, end)
	}
	use(ids.Uint64Values())
	return nil
}
