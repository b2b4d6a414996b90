package storage

import (
	"context"
	"fmt"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/schema"
)

// ColumnBytes is the encoded size of a column over all fragments, from page metadata. It opens every file. Errors: ErrInvalid for an
// unknown column, ErrCorrupt, ErrIO.
func (s *Snapshot) ColumnBytes(ctx context.Context, column string) (int64, error) {
	fields, err := s.fields([]string{column})
	if err != nil {
		return 0, err
	}
	var total int64
	for _, f := range s.fragments {
		n, err := f.columnBytes(ctx, fields[0])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (f *Fragment) columnBytes(ctx context.Context, field *schema.Field) (int64, error) {
	var total int64
	for _, p := range f.source(field).parts {
		r, err := f.open(ctx, p.file)
		if err != nil {
			return 0, err
		}
		total += r.ColumnBytes(p.column)
	}
	return total, nil
}

// VectorRange says what VectorBlocksOf reads. The zero value is all rows, paid for by nobody.
type VectorRange struct {
	Start, End uint64 // offsets in the fragment; End 0 = all
	// Held pays for the memory that blocks take beside mappings, until the caller is done with them.
	Held *mem.Reservation
}

// VectorBlocks is VectorBlocksOf of all rows. The caller pays for what is not mapped.
func (s *Snapshot) VectorBlocks(ctx context.Context, column string, fragment uint32) ([]file.FixedBlock, error) {
	return s.VectorBlocksOf(ctx, column, fragment, VectorRange{})
}

// VectorBlocksOf returns a fragment's values of a fixed-width column, ascending; FirstRow is the offset in the fragment and deleted rows are among
// them. Fragments without the column give none. Errors: ErrNotFound for an unknown fragment, ErrInvalid for a column that is unknown or not of fixed width and for rows that
// the fragment does not have, ErrMemoryLimit, ErrCorrupt, ErrIO.
func (s *Snapshot) VectorBlocksOf(ctx context.Context, column string, fragment uint32, rows VectorRange) ([]file.FixedBlock, error) {
	var out []file.FixedBlock
	err := s.eachPart(ctx, column, fragment, func(p part, r *openFile) error {
		end := rows.End
		if end == 0 {
			end = r.Rows()
		}
		blocks, err := r.FixedBlocksHeld(ctx, p.column, rows.Start, end, rows.Held)
		out = append(out, blocks...)
		return err
	})
	return out, err
}

// IsMapped reports whether a fragment's values of a column are read where they lie, so that blocks cost nothing and rows need not be picked. Errors: as VectorBlocksOf.
func (s *Snapshot) IsMapped(ctx context.Context, column string, fragment uint32) (bool, error) {
	isMapped := true
	err := s.eachPart(ctx, column, fragment, func(_ part, r *openFile) error {
		isMapped = isMapped && r.isMapped
		return nil
	})
	return isMapped, err
}

// eachPart opens the files of a fragment that hold a column.
func (s *Snapshot) eachPart(ctx context.Context, column string, fragment uint32, visit func(part, *openFile) error) error {
	fields, err := s.fields([]string{column})
	if err != nil {
		return err
	}
	f, ok := s.Fragment(fragment)
	if !ok {
		return errs.New(errs.ErrNotFound, "fragment %d of %s version %d", fragment, s.table.Path(), s.Version())
	}
	for _, p := range f.source(fields[0]).parts {
		r, err := f.open(ctx, p.file)
		if err != nil {
			return err
		}
		if err := visit(p, r); err != nil {
			return s.missing(err, fmt.Sprintf("data file %s of fragment %d", f.pb.GetFiles()[p.file].GetPath(), fragment))
		}
		f.settle(r)
	}
	return nil
}
