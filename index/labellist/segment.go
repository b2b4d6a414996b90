package labellist

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

const (
	// nullsKey is the schema metadata that gives the global buffer with the rows whose list is NULL.
	nullsKey = "lance:label_list_nulls"
	// versionMax is the newest index_version of LABEL_LIST that is known.
	versionMax = 2
	// allSetsAtOnce is how many needles of array_has_all are read together.
	allSetsAtOnce = 64
)

// Segment is an opened LABEL_LIST segment.
type Segment struct {
	meta  index.Meta
	file  *bitmap.File
	nulls *rowset.Set // rows whose list is NULL; nil = the file does not tell
	held  *mem.Reservation
}

var (
	_ index.FilterSegment = (*Segment)(nil)
	_ index.Stateful      = (*Segment)(nil)
)

// Open opens a segment: labels and NULL lists are read, bitmaps when a lookup asks for them. Errors: ErrUnsupported for a newer
// index_version or labels without an order, ErrNotFound, ErrCorrupt, ErrMemoryLimit, ErrIO.
func Open(ctx context.Context, open index.OpenFile, meta index.Meta, opts index.OpenOptions) (*Segment, error) {
	if meta.Version > versionMax {
		return nil, errs.New(errs.ErrUnsupported, "index %s: LABEL_LIST index_version %d is newer than %d", meta.Name, meta.Version, versionMax)
	}
	f, err := bitmap.OpenFile(ctx, open, opts)
	if err != nil {
		return nil, err
	}
	meta.PhysicalKeys = index.PhysicalKeys(index.KindLabelList, meta.Version)
	s := &Segment{meta: meta, file: f, held: opts.Budget.Reserve()}
	if err := s.readNulls(ctx, opts); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("%s: NULL lists: %w", f.Path(), errs.WithPath(err, f.Path()))
	}
	return s, nil
}

func (s *Segment) readNulls(ctx context.Context, opts index.OpenOptions) (err error) {
	if kept, ok := s.file.StateMore(); ok {
		if len(kept) > 0 { // else they are not known
			s.nulls, err = rowset.ViewTree(kept)
		}
		return err
	}
	value, ok := s.file.Reader().Metadata(nullsKey)
	if !ok {
		return nil // written before NULL lists were kept
	}
	buffer, err := strconv.ParseUint(string(value), 10, 31)
	if err != nil || buffer == 0 { // buffer 0 is the schema
		return errs.Corrupt("schema metadata", -1, "%s is %q, a global buffer above 0 was expected", nullsKey, value)
	}
	b, err := s.file.Reader().GlobalBuffer(ctx, int(buffer))
	if err != nil {
		return err
	}
	if err := s.held.Grow(int64(len(b))); err != nil {
		return err
	}
	s.nulls, err = bitmap.DecodeRows(b, opts.FragmentRows)
	return err
}

// MarshalState implements index.Stateful.
func (s *Segment) MarshalState() ([]byte, error) {
	if s.nulls == nil {
		return s.file.MarshalState(nil), nil
	}
	nulls, err := rowset.AppendTree(nil, s.nulls)
	if err != nil {
		return nil, err
	}
	return s.file.MarshalState(nulls), nil
}

// Meta describes the segment.
func (s *Segment) Meta() index.Meta { return s.meta }

// File is the segment's file, for inspection.
func (s *Segment) File() *bitmap.File { return s.file }

// NullLists returns the stored keys of the rows whose list is NULL; false = the file does not tell. The caller must not change the set.
func (s *Segment) NullLists() (*rowset.Set, bool) { return s.nulls, s.nulls != nil }

// Close drops what the segment keeps in memory.
func (s *Segment) Close() error {
	s.file.Close()
	s.held.Free()
	return nil
}

// Answers says which operators Lookup supports. See I1, I2 and I4.
func (s *Segment) Answers(op index.Op) (index.Match, bool) {
	known, match := s.nulls != nil, index.Exact
	if s.meta.Stale {
		match = index.AtMost
	}
	switch op {
	case index.OpHas, index.OpHasAny, index.OpHasAll:
		if known {
			return match, true
		}
		return index.TrueOnly, !s.meta.Stale
	case index.OpIsNull:
		return match, known
	default:
		return match, false
	}
}

// Lookup implements index.FilterSegment.
func (s *Segment) Lookup(ctx context.Context, p index.Predicate) (index.Truth, index.Match, error) {
	match, ok := s.Answers(p.Op)
	if !ok {
		return index.Truth{}, match, errs.New(errs.ErrUnsupported, "index %s: this LABEL_LIST index does not answer %s", s.meta.Name, p)
	}
	if p.Op == index.OpIsNull {
		return index.Truth{True: s.nulls, Null: &rowset.Set{}}, match, nil
	}
	isTrue, err := s.holders(ctx, p)
	if err != nil {
		return index.Truth{}, match, err
	}
	isNull := s.nulls
	if isNull == nil {
		isNull = &rowset.Set{}
	}
	return index.Truth{True: isTrue, Null: isNull}, match, nil
}

// needles returns, for each different needle, the rows of the file that hold its bitmaps: one, or two for a zero of both signs. A
// needle that no list holds has none.
func (s *Segment) needles(p index.Predicate) (rows [][]uint32, impossible bool, err error) {
	keys := s.file.Keys()
	points, impossible, err := keys.Codec().Points(p)
	if err != nil {
		return nil, false, errs.New(errs.ErrInvalid, "index %s: %w", s.meta.Name, err)
	}
	rows = make([][]uint32, len(points))
	for i, point := range points {
		rows[i] = bitmap.RowsOf(keys, []key.Range{point})
		impossible = impossible || len(rows[i]) == 0
	}
	return rows, impossible, nil
}

// holders returns the rows whose list holds the needles of p.
func (s *Segment) holders(ctx context.Context, p index.Predicate) (*rowset.Set, error) {
	needles, impossible, err := s.needles(p)
	if err != nil {
		return nil, err
	}
	if p.Op != index.OpHasAll {
		return s.file.Union(ctx, slices.Concat(needles...))
	}
	if impossible {
		return &rowset.Set{}, nil
	}
	var out *rowset.Set
	for some := range slices.Chunk(needles, allSetsAtOnce) {
		sets, err := s.setsOf(ctx, some)
		if err != nil {
			return nil, err
		}
		if out != nil {
			sets = append(sets, out)
		}
		if out = sets[0]; len(sets) > 1 {
			out = rowset.Intersect(sets...)
		}
		if out.IsEmpty() {
			break
		}
	}
	return out, nil
}

// setsOf returns the rows that hold each needle.
func (s *Segment) setsOf(ctx context.Context, needles [][]uint32) ([]*rowset.Set, error) {
	all, err := s.file.Sets(ctx, slices.Concat(needles...))
	if err != nil {
		return nil, err
	}
	out := make([]*rowset.Set, 0, len(needles))
	for _, rows := range needles {
		if len(rows) == 1 {
			out = append(out, all[0])
		} else {
			out = append(out, rowset.Union(all[:len(rows)]...))
		}
		all = all[len(rows):]
	}
	return out, nil
}

// Estimate counts the rows of few needles, whose bitmaps the lookup needs anyway: the rarest for array_has_all, the sum for
// array_has_any; -1 for many needles.
func (s *Segment) Estimate(ctx context.Context, p index.Predicate) (int64, error) {
	switch p.Op {
	case index.OpHas, index.OpHasAny, index.OpHasAll:
	case index.OpIsNull:
		if s.nulls != nil {
			return int64(s.nulls.Count()), nil
		}
		return -1, nil
	default:
		return -1, nil
	}
	needles, impossible, err := s.needles(p)
	if err != nil {
		return -1, err
	}
	if impossible && p.Op == index.OpHasAll {
		return 0, nil
	}
	if len(needles) > bitmap.EstimateKeysMax {
		return -1, nil
	}
	needles = slices.DeleteFunc(needles, func(rows []uint32) bool { return len(rows) == 0 })
	sets, err := s.setsOf(ctx, needles)
	if err != nil {
		return -1, err
	}
	var sum, least int64
	for i, set := range sets {
		n := int64(set.Count())
		sum += n
		if i == 0 || n < least {
			least = n
		}
	}
	if p.Op == index.OpHasAll {
		return least, nil
	}
	return sum, nil
}
