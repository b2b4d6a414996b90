package vector

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/vec"
)

// Centroids returns the centers of the segment's lists. The caller must not change them.
func (s *Segment) Centroids() Centroids { return Centroids{s.head.centroids, s.head.loss} }

// Elem is the element type of the indexed vectors.
func (s *Segment) Elem() vec.Elem { return s.head.elem }

// Part makes the rows that keep names a part of a new segment of the same metric and dimension. Where the new segment has the centroids of this one, rows stay
// in their lists; else they are assigned anew. The segment must stay open until the new one is written; held pays for keys and lists. Errors:
// ErrUnsupported for kinds that do not keep the vectors, ErrCorrupt, ErrIO, ErrMemoryLimit.
func (s *Segment) Part(ctx context.Context, keep index.KeyMap, c Centroids, held *mem.Reservation) (BuildPart, error) {
	f, ok := s.rows.(*flat)
	if !ok {
		return BuildPart{}, errs.New(errs.ErrUnsupported, "index %s: rows of a %s index cannot be taken over", s.meta.Name, s.meta.Kind)
	}
	const rowBytes = 8 + 4
	if err := held.Grow(int64(s.Rows()) * rowBytes); err != nil {
		return BuildPart{}, err
	}
	p := BuildPart{Rows: roaring.New(), isStored: true, Keys: []uint64{}}
	same := slices.Equal(c.Values, s.head.centroids)
	if same {
		p.lists = []int32{}
	}
	order := make([]int, len(s.head.lists)) // lists by their place in the file
	for l := range order {
		order[l] = l
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.head.lists[a].first, s.head.lists[b].first) })
	for _, l := range order {
		keys, _, err := s.keys(ctx, l)
		if err != nil {
			return BuildPart{}, fmt.Errorf("list %d: %w", l, err)
		}
		for i, k := range keys {
			now, ok := keep.Map(k)
			if !ok {
				continue
			}
			p.Rows.Add(uint32(s.head.lists[l].first) + uint32(i))
			p.Keys = append(p.Keys, now)
			if same {
				p.lists = append(p.lists, int32(l))
			}
		}
	}
	if p.Rows.GetCardinality() != uint64(len(p.Keys)) {
		return BuildPart{}, errs.Corrupt(metaIVF, -1, "lists share rows")
	}
	p.Blocks = func(ctx context.Context) ([]Block, error) {
		width := s.head.dim * s.head.elem.Size()
		return blocks(ctx, s.aux, f.col, list{rows: s.aux.Rows()}, 0, int(s.aux.Rows()), width)
	}
	return p, nil
}
