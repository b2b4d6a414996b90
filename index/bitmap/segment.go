package bitmap

import (
	"context"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
)

// versionMax is the newest index_version of BITMAP that is known.
const versionMax = 1

// Segment is an opened BITMAP index segment.
type Segment struct {
	meta index.Meta
	file *File
}

var _ index.FilterSegment = (*Segment)(nil)

// Open opens a segment: the keys are read, bitmaps when a lookup asks for them. Errors: ErrUnsupported for a newer index_version or
// keys without an order, ErrNotFound, ErrCorrupt, ErrMemoryLimit, ErrIO.
func Open(ctx context.Context, open index.OpenFile, meta index.Meta, opts index.OpenOptions) (*Segment, error) {
	if meta.Version > versionMax {
		return nil, errs.New(errs.ErrUnsupported, "index %s: BITMAP index_version %d is newer than %d", meta.Name, meta.Version, versionMax)
	}
	f, err := OpenFile(ctx, open, opts)
	if err != nil {
		return nil, err
	}
	meta.PhysicalKeys = index.PhysicalKeys(index.KindBitmap, meta.Version)
	return &Segment{meta: meta, file: f}, nil
}

// Meta describes the segment.
func (s *Segment) Meta() index.Meta { return s.meta }

// File is the segment's file, for inspection.
func (s *Segment) File() *File { return s.file }

// Close drops what the segment keeps in memory.
func (s *Segment) Close() error {
	s.file.Close()
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
		return index.Truth{}, s.match(), err
	}
	return truth, s.match(), nil
}

func (s *Segment) lookup(ctx context.Context, p index.Predicate) (index.Truth, error) {
	rows, err := s.rows(p)
	if err != nil {
		return index.Truth{}, err
	}
	isTrue, err := s.file.Union(ctx, rows)
	if err != nil {
		return index.Truth{}, err
	}
	if p.Op == index.OpIsNull || p.Op == index.OpIsNotNull {
		return index.Truth{True: isTrue, Null: &rowset.Set{}}, nil
	}
	isNull, err := s.file.Union(ctx, s.file.keys.NullRows())
	return index.Truth{True: isTrue, Null: isNull}, err
}

// rows returns the rows of the file whose keys satisfy p.
func (s *Segment) rows(p index.Predicate) ([]uint32, error) {
	keys := s.file.keys
	switch p.Op {
	case index.OpIsNull:
		return keys.NullRows(), nil
	case index.OpIsNotNull:
		return RowsOf(keys, []key.Range{{NoLo: true, NoHi: true}}), nil
	case index.OpEq, index.OpIn, index.OpRange:
		ranges, err := keys.Codec().Ranges(p)
		if err != nil {
			return nil, s.named(err)
		}
		return RowsOf(keys, ranges), nil
	default:
		return nil, errs.New(errs.ErrUnsupported, "index %s: a BITMAP index does not answer %s", s.meta.Name, p)
	}
}

func (s *Segment) named(err error) error {
	return errs.New(errs.ErrInvalid, "index %s: %w", s.meta.Name, err)
}

// RowsOf returns the rows of the keys in ranges.
func RowsOf(keys *key.Dict, ranges []key.Range) []uint32 {
	var rows []uint32
	for _, r := range ranges {
		start, end := keys.Span(r)
		for place := start; place < end; place++ {
			rows = append(rows, keys.Row(place))
		}
	}
	return rows
}

// EstimateKeysMax is the most keys whose bitmaps an estimate opens.
const EstimateKeysMax = 16

// Estimate counts the rows of few keys, whose bitmaps the lookup needs anyway; -1 for many.
func (s *Segment) Estimate(ctx context.Context, p index.Predicate) (int64, error) {
	rows, err := s.rows(p)
	if err != nil {
		return -1, err
	}
	if len(rows) > EstimateKeysMax {
		return -1, nil
	}
	sets, err := s.file.Sets(ctx, rows)
	if err != nil {
		return -1, err
	}
	var n int64
	for _, set := range sets {
		n += int64(set.Count())
	}
	return n, nil
}
