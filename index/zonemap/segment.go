package zonemap

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/rowset"
)

// versionMax is the newest index_version of ZONEMAP that is known.
const versionMax = 0

// Segment is an opened ZONEMAP segment. It is safe for concurrent use.
type Segment struct {
	meta        index.Meta
	path        string
	codec       key.Codec
	rowsPerZone uint64
	fragments   []fragment // ascending
	nulls       *rowset.Set
	held        *mem.Reservation
}

// fragment is one covered fragment with its zones.
type fragment struct {
	id    uint32
	zones []Zone // by start
	rows  uint64 // physical rows; 0 = unknown
}

// splits says that single zones may be ruled out (I3).
func (f *fragment) splits() bool {
	if len(f.zones) == 0 || f.rows == 0 {
		return false
	}
	last := f.zones[len(f.zones)-1]
	return last.Start+last.Rows >= f.rows
}

var _ index.FilterSegment = (*Segment)(nil)

// Open reads the zones of a segment; lookups read nothing more. opts.FragmentRows is asked for the rows of the covered fragments; one that it does not know is
// ruled out as a whole or not at all. Errors: ErrUnsupported for a newer index_version or values without an order, ErrNotFound, ErrCorrupt, ErrMemoryLimit, ErrIO.
func Open(ctx context.Context, open index.OpenFile, meta index.Meta, opts index.OpenOptions) (*Segment, error) {
	if meta.Version > versionMax {
		return nil, errs.New(errs.ErrUnsupported, "index %s: ZONEMAP index_version %d is newer than %d", meta.Name, meta.Version, versionMax)
	}
	meta.PhysicalKeys = true // I1
	f, err := open(ctx, FileName)
	if err != nil {
		return nil, err
	}
	r, err := file.Open(ctx, f, file.Options{})
	if err != nil {
		return nil, err
	}
	s := &Segment{meta: meta, path: f.Path(), held: opts.Budget.Reserve()}
	if err := s.read(ctx, r, opts); err != nil {
		s.held.Free()
		return nil, fmt.Errorf("%s: %w", f.Path(), errs.WithPath(err, f.Path()))
	}
	return s, nil
}

func (s *Segment) read(ctx context.Context, r *file.Reader, opts index.OpenOptions) (err error) {
	if s.rowsPerZone, err = readRowsPerZone(r); err != nil {
		return err
	}
	zones, codec, err := readZones(ctx, r, s.held)
	if err != nil {
		return err
	}
	s.codec = codec
	nulls, err := readNulls(ctx, r)
	if err != nil {
		return err
	}
	if nulls != nil {
		if err := s.held.Grow(int64(len(nulls))); err != nil {
			return err
		}
		if s.nulls, err = bitmap.DecodeRows(nulls, opts.FragmentRows); err != nil {
			return err
		}
	}
	s.group(zones, opts)
	return nil
}

// group cuts zones by fragment. A covered fragment without a zone is never ruled out; zones of fragments that are not covered mean nothing.
func (s *Segment) group(zones []Zone, opts index.OpenOptions) {
	ids := roaring.New()
	for i := range zones {
		ids.Add(zones[i].Fragment)
	}
	if s.meta.Covers != nil {
		ids = s.meta.Covers
	}
	for it := ids.Iterator(); it.HasNext(); {
		f := fragment{id: it.Next()}
		start, _ := slices.BinarySearchFunc(zones, f.id, func(z Zone, id uint32) int { return int(int64(z.Fragment) - int64(id)) })
		end := start
		for end < len(zones) && zones[end].Fragment == f.id {
			end++
		}
		f.zones = zones[start:end]
		if opts.FragmentRows != nil {
			f.rows, _ = opts.FragmentRows(f.id)
		}
		s.fragments = append(s.fragments, f)
	}
}

// Meta describes the segment.
func (s *Segment) Meta() index.Meta { return s.meta }

// Path names the file for people.
func (s *Segment) Path() string { return s.path }

// RowsPerZone is how many rows a full zone has.
func (s *Segment) RowsPerZone() uint64 { return s.rowsPerZone }

// Codec makes keys of the indexed values.
func (s *Segment) Codec() key.Codec { return s.codec }

// Zones yields the zones by place.
func (s *Segment) Zones(yield func(Zone) bool) {
	for i := range s.fragments {
		for _, z := range s.fragments[i].zones {
			if !yield(z) {
				return
			}
		}
	}
}

// Nulls returns the addresses of the NULL rows; false = the file does not tell. The caller must not change the set.
func (s *Segment) Nulls() (*rowset.Set, bool) { return s.nulls, s.nulls != nil }

// Close gives the memory back.
func (s *Segment) Close() error {
	s.held.Free()
	return nil
}

// Answers says which operators Lookup supports: all that compare a whole value, but IS NOT NULL, which rules out next to nothing.
func (s *Segment) Answers(op index.Op) (index.Match, bool) {
	switch op {
	case index.OpEq, index.OpIn, index.OpRange, index.OpIsNull:
		return index.AtMost, true
	default:
		return index.AtMost, false
	}
}

// Lookup implements index.FilterSegment: TRUE may be the rows of every zone that is not ruled out, NULL the NULL rows of the others.
func (s *Segment) Lookup(ctx context.Context, p index.Predicate) (index.Truth, index.Match, error) {
	if err := ctx.Err(); err != nil {
		return index.Truth{}, index.AtMost, err
	}
	may, err := s.test(p)
	if err != nil {
		return index.Truth{}, index.AtMost, err
	}
	if p.Op == index.OpIsNull && s.nulls != nil {
		return index.Truth{True: s.nulls, Null: &rowset.Set{}}, index.AtMost, nil
	}
	out := index.Truth{True: &rowset.Set{}, Null: &rowset.Set{}}
	var whole wholes
	for i := range s.fragments {
		f := &s.fragments[i]
		out.True.Adopt(f.id, whole.rows(f, may))
		if p.Op != index.OpIsNull && s.nulls == nil {
			out.Null.Adopt(f.id, whole.rows(f, func(z *Zone) bool { return z.Nulls > 0 }))
		}
	}
	if p.Op != index.OpIsNull && s.nulls != nil {
		out.Null = s.nulls
	}
	out.Null = rowset.AndNot(out.Null, out.True)
	return out, index.AtMost, nil
}

// test returns whether a zone may hold a row where p is TRUE.
func (s *Segment) test(p index.Predicate) (func(z *Zone) bool, error) {
	switch p.Op {
	case index.OpIsNull:
		return func(z *Zone) bool { return z.Nulls > 0 }, nil
	case index.OpEq, index.OpIn, index.OpRange:
	default:
		return nil, errs.New(errs.ErrUnsupported, "index %s: a ZONEMAP index does not answer %s", s.meta.Name, p)
	}
	ranges, err := s.codec.Ranges(p)
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "index %s: %w", s.meta.Name, err)
	}
	return func(z *Zone) bool {
		// The first range that does not end below the zone; the others begin later still.
		at := 0
		if z.hasMin(s.codec) {
			at, _ = slices.BinarySearchFunc(ranges, z.Min, func(r key.Range, low key.Key) int {
				if s.codec.Above(low, r) {
					return -1
				}
				return 1
			})
		}
		return at < len(ranges) && z.may(s.codec, ranges[at])
	}, nil
}

// wholes makes the rows of fragments whose size is unknown, which share one bitmap.
type wholes struct{ every *roaring.Bitmap }

// rows returns the rows of f that zones which may match, or no zone, hold (I2, I3).
func (w *wholes) rows(f *fragment, may func(*Zone) bool) *roaring.Bitmap {
	if !f.splits() {
		// Whichever rows the zones stand for: where none matches, no row does; a row in no zone was gone when the zones were made.
		if len(f.zones) == 0 || slices.ContainsFunc(f.zones, func(z Zone) bool { return may(&z) }) {
			return w.all(f)
		}
		return nil
	}
	out := roaring.New()
	out.AddRange(0, f.rows)
	for i := range f.zones {
		if z := &f.zones[i]; !may(z) {
			out.RemoveRange(z.Start, z.Start+z.Rows)
		}
	}
	return out
}

func (w *wholes) all(f *fragment) *roaring.Bitmap {
	if f.rows > 0 {
		out := roaring.New()
		out.AddRange(0, f.rows)
		return out
	}
	if w.every == nil {
		w.every = roaring.New()
		w.every.AddRange(0, fragmentRowsLimit)
	}
	return w.every
}

// Estimate counts the rows of the zones that may match.
func (s *Segment) Estimate(_ context.Context, p index.Predicate) (int64, error) {
	if p.Op == index.OpIsNull && s.nulls != nil {
		return int64(s.nulls.Count()), nil
	}
	if p.Op == index.OpIsNotNull {
		return -1, nil
	}
	may, err := s.test(p)
	if err != nil {
		return -1, err
	}
	var n uint64
	for i := range s.fragments {
		f := &s.fragments[i]
		for k := range f.zones {
			if may(&f.zones[k]) {
				n += f.zones[k].Rows
			}
		}
	}
	return int64(n), nil
}
