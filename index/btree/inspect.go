package btree

import (
	"context"
	"errors"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
)

// Codec returns the codec of the values.
func (s *Segment) Codec() key.Codec { return s.bounds.codec }

// Rows is the number of rows in the segment, NULLs included.
func (s *Segment) Rows() uint64 { return s.bounds.rows }

// NullRows is the number of NULLs.
func (s *Segment) NullRows() uint64 { return s.bounds.nullRows }

// Pages is the number of pages.
func (s *Segment) Pages() int { return len(s.bounds.pages) }

// PageText renders the bounds of page k for people.
func (s *Segment) PageText(k int) string { return s.bounds.format(k) }

// CheckPage reads page k and compares it with its bounds. Errors: ErrCorrupt, ErrIO.
func (s *Segment) CheckPage(ctx context.Context, k int) error {
	l := &lookup{seg: s, valuesPage: -1, idsPage: -1}
	values, err := l.pageValues(ctx, k)
	if err != nil {
		return errs.WithPath(err, s.path)
	}
	_, idsErr := l.idsOfPage(ctx, k)
	n := values.dict.Len()
	if n == 0 {
		return errs.WithPath(idsErr, s.path)
	}
	p, codec := s.bounds.pages[k], s.bounds.codec
	if !p.noMin && codec.Compare(p.min, values.dict.Key(0)) != 0 {
		err = errs.Corrupt("page bounds", -1, "page %d has min %s, its first value is %s", k, codec.Format(p.min), codec.Format(values.dict.Key(0)))
	} else if codec.Compare(p.max, values.dict.Key(n-1)) != 0 {
		err = errs.Corrupt("page bounds", -1, "page %d has max %s, its last value is %s", k, codec.Format(p.max), codec.Format(values.dict.Key(n-1)))
	}
	return errs.WithPath(errors.Join(err, idsErr), s.path)
}
