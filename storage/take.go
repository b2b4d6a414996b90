package storage

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// TakeOptions says what Take reads. The zero value is every column.
type TakeOptions struct {
	Columns []string         // top-level names, in the order wanted; nil = all
	Alloc   memory.Allocator // nil = memory.DefaultAllocator
}

// takeGroup is the rows of one fragment: where they go in the result, and what was read.
type takeGroup struct {
	plan   *fragmentPlan
	rows   []uint64
	places []int // rows[i] is row places[i] of the result
	out    []arrow.Array
}

// Take reads rows by address, in any order, doubles included: row i of the result is addrs[i]. Fragments are read in parallel. The
// caller releases the batch. Errors: ErrInvalid for a deleted or unknown address and an unknown column, ErrCorrupt, ErrIO,
// ErrUnsupported where 32-bit offsets overflow.
func (s *Snapshot) Take(ctx context.Context, addrs []rowset.RowAddr, opts TakeOptions) (arrow.RecordBatch, error) {
	if opts.Alloc == nil {
		opts.Alloc = memory.DefaultAllocator
	}
	fields, err := s.fields(opts.Columns)
	if err != nil {
		return nil, err
	}
	groups, err := s.group(ctx, addrs, fields)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, g := range groups {
			releaseAll(g.out)
		}
	}()
	if len(groups) == 1 {
		err = groups[0].read(ctx, opts.Alloc)
	} else {
		workers, gctx := spawn.WithContext(ctx, s.table.opts.ReadParallelism)
		for _, g := range groups {
			workers.Go("take", func() error { return g.read(gctx, opts.Alloc) })
		}
		err = workers.Wait()
	}
	if err != nil {
		return nil, err
	}
	sc := scanSchema(fields, s.arrow, ScanOptions{})
	cols := make([]arrow.Array, len(fields))
	defer func() { releaseAll(cols) }()
	for c, f := range fields {
		if cols[c], err = collect(groups, c, len(addrs), f, opts.Alloc); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(sc, cols, int64(len(addrs))), nil
}

func (g *takeGroup) read(ctx context.Context, alloc memory.Allocator) (err error) {
	g.out, err = g.plan.read(ctx, rowsWanted{rows: g.rows}, alloc)
	return err
}

// group sorts addresses by fragment, in order of first appearance, and refuses those that name no live row.
func (s *Snapshot) group(ctx context.Context, addrs []rowset.RowAddr, fields []*schema.Field) ([]*takeGroup, error) {
	var groups []*takeGroup
	byID := make(map[uint32]*takeGroup)
	for i, a := range addrs {
		g, ok := byID[a.Fragment()]
		if !ok {
			f, exists := s.byID[a.Fragment()]
			if !exists {
				return nil, s.noRow(a, "there is no such fragment")
			}
			g = &takeGroup{plan: f.plan(fields, nil)}
			byID[a.Fragment()] = g
			groups = append(groups, g)
		}
		if uint64(a.Offset()) >= g.plan.fragment.rows {
			return nil, s.noRow(a, "the fragment is shorter")
		}
		g.rows = append(g.rows, uint64(a.Offset()))
		g.places = append(g.places, i)
	}
	frags := make([]*Fragment, len(groups))
	for i, g := range groups {
		frags[i] = g.plan.fragment
	}
	if err := s.loadDeletions(ctx, frags); err != nil {
		return nil, err
	}
	for _, g := range groups {
		deleted, err := g.plan.fragment.Deletions(ctx)
		if err != nil {
			return nil, err
		}
		if deleted == nil {
			continue
		}
		for _, r := range g.rows {
			if deleted.Contains(uint32(r)) {
				return nil, s.noRow(rowset.Addr(g.plan.fragment.id, uint32(r)), "the row is deleted")
			}
		}
	}
	return groups, nil
}

func (s *Snapshot) noRow(a rowset.RowAddr, why string) error {
	return errs.New(errs.ErrInvalid, "%s version %d has no row at %s: %s", s.table.Path(), s.Version(), a, why)
}

// collect puts column c of all groups back in the order that was asked for.
func collect(groups []*takeGroup, c, rows int, f *schema.Field, alloc memory.Allocator) (arrow.Array, error) {
	if len(groups) == 0 {
		return array.MakeArrayOfNull(alloc, f.Type, 0), nil
	}
	if len(groups) == 1 {
		groups[0].out[c].Retain()
		return groups[0].out[c], nil
	}
	parts := make([]arrow.Array, len(groups))
	order := make([]int, rows)
	at, isSorted := 0, true
	for i, g := range groups {
		parts[i] = g.out[c]
		for _, p := range g.places {
			isSorted = isSorted && p == at
			order[p] = at
			at++
		}
	}
	all, err := array.Concatenate(parts, alloc)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: %w: take fewer rows at a time", f.Name, err)
	}
	if isSorted {
		return all, nil
	}
	defer all.Release()
	return gather(all, order, alloc)
}
