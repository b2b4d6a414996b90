package storage

import (
	"context"
	"fmt"

	"github.com/lakesql/lakesql/internal/errs"
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

// VectorBlocks returns a fragment's values of a fixed-width column, ascending; FirstRow is the offset in the fragment and deleted rows are among
// them. Fragments without the column give none. Errors: ErrNotFound for an unknown fragment, ErrInvalid for a column that is unknown or not of fixed width, ErrCorrupt, ErrIO.
func (s *Snapshot) VectorBlocks(ctx context.Context, column string, fragment uint32) ([]file.FixedBlock, error) {
	fields, err := s.fields([]string{column})
	if err != nil {
		return nil, err
	}
	f, ok := s.Fragment(fragment)
	if !ok {
		return nil, errs.New(errs.ErrNotFound, "fragment %d of %s version %d", fragment, s.table.Path(), s.Version())
	}
	var out []file.FixedBlock
	for _, p := range f.source(fields[0]).parts {
		r, err := f.open(ctx, p.file)
		if err != nil {
			return nil, err
		}
		blocks, err := r.FixedBlocks(ctx, p.column, 0, r.Rows())
		if err != nil {
			return nil, s.missing(err, fmt.Sprintf("data file %s of fragment %d", f.pb.GetFiles()[p.file].GetPath(), fragment))
		}
		out = append(out, blocks...)
	}
	return out, nil
}
