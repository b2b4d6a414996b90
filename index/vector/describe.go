package vector

import (
	"context"
	"fmt"
	"slices"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
)

// Text says in a line what the rows of the segment are, for people.
func (s *Segment) Text() string {
	return fmt.Sprintf("%s over %d dimensions of %v, %s", s.meta.Metric, s.head.dim, s.head.elem, s.rows)
}

// ListRows returns where the rows of a list lie in the auxiliary file.
func (s *Segment) ListRows(number int) (first, rows uint64) {
	l := s.head.lists[number]
	return l.first, l.rows
}

// CheckList reads the keys and codes of one list. Errors: ErrCorrupt for a key that occurs twice or rows that cannot be read, ErrIO.
func (s *Segment) CheckList(ctx context.Context, number int) error {
	return spawn.Guard(func() error {
		keys, _, err := s.keys(ctx, number)
		if err != nil {
			return err
		}
		sorted := slices.Sorted(slices.Values(keys))
		for i := 1; i < len(sorted); i++ {
			if sorted[i] == sorted[i-1] {
				return errs.Corrupt(fmt.Sprintf("list %d", number), -1, "row key %d occurs twice", sorted[i])
			}
		}
		// The centroid serves as a query: what it is compared with is read the way a search reads it.
		centroid := s.head.centroids[number*s.head.dim:][:s.head.dim]
		sc, err := s.rows.prepare(&query{metric: s.meta.Metric, raw: centroid, vector: centroid})
		if err != nil {
			return err
		}
		_, err = sc.score(ctx, number, 0, make([]float32, len(keys)), &scratch{})
		return err
	})
}

func (f *flat) String() string { return "vectors as they are" }

func (s *scalar) String() string {
	return fmt.Sprintf("8 bits a dimension from %v to %v", s.start, s.start+255*s.step)
}

func (p *product) String() string {
	return fmt.Sprintf("%d sub-vectors of %d dimensions, %d bits each, transposed %v", p.subs, p.subDim, p.bits, p.transposed)
}

func (r *rotated) String() string {
	return fmt.Sprintf("codes of the rotated residual, bits a dimension: %d", r.exBits+1)
}
