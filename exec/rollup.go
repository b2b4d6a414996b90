package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// rollUp adds to tables of all keys a table for each number of keys fewer. Each is merged from the states of the one before, so that the input is read and hashed once.
func (s *aggState) rollUp(ctx context.Context, finest []*aggTable) ([]*aggTable, error) {
	all, below := finest, finest
	for level := len(s.plan.Keys) - 1; level >= 0; level-- {
		t, err := s.newTable()
		if err != nil {
			return nil, err
		}
		t.level = level
		for _, src := range below {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := t.absorbLevel(src); err != nil {
				return nil, err
			}
		}
		if level == 0 && t.count() == 0 {
			if err := t.addEmpty(); err != nil {
				return nil, err
			}
		}
		all, below = append(all, t), []*aggTable{t}
	}
	return all, nil
}

// absorbLevel merges all groups of src, a table of more keys.
func (t *aggTable) absorbLevel(src *aggTable) error {
	if err := src.seal(); err != nil {
		return err
	}
	n := src.count()
	if err := t.res.Grow(int64(n) * 4); err != nil {
		return err
	}
	defer t.res.Shrink(int64(n) * 4)
	keys, err := src.groups.keys(t.env.Alloc, 0, n)
	if err != nil {
		return err
	}
	defer func() { releaseArrays(keys) }()
	t.nullKeys(keys, n)
	from := make([]uint32, n)
	for i := range from {
		from[i] = uint32(i)
	}
	return t.absorb(src, keys, from)
}

// nullKeys makes the keys that the table does not group by NULL.
func (t *aggTable) nullKeys(keys []arrow.Array, n int) {
	for i := t.level; i < len(keys); i++ {
		null := array.MakeArrayOfNull(t.env.Alloc, keys[i].DataType(), n)
		keys[i].Release()
		keys[i] = null
	}
}

// addEmpty makes the row of no keys and no rows.
func (t *aggTable) addEmpty() error {
	keys := make([]arrow.Array, len(t.plan.Keys))
	for i, k := range t.plan.Keys {
		keys[i] = array.MakeArrayOfNull(t.env.Alloc, k.Type(), 1)
	}
	defer releaseArrays(keys)
	return t.groups.assign(keys, 1, make([]uint32, 1))
}

// levels is the column that says by how many keys rows are grouped.
func (t *aggTable) levels(n int) arrow.Array {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(t.level)
	}
	return fixedArray(t.env.Alloc, arrow.PrimitiveTypes.Int64, out, nil)
}
