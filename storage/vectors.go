package storage

import (
	"context"

	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/schema"
)

// VectorBlocks returns the raw values of a fixed-width column in one fragment, deleted rows included; FirstRow of a block is an
// offset in the fragment. A fragment that does not hold the column gives none. Errors: ErrInvalid for an unknown column or
// fragment, ErrUnsupported for a column without fixed width, ErrCorrupt, ErrIO.
func (s *Snapshot) VectorBlocks(ctx context.Context, column string, fragment uint32) ([]file.FixedBlock, error) {
	fields, err := s.fields([]string{column})
	if err != nil {
		return nil, err
	}
	frags, err := s.pick([]uint32{fragment})
	if err != nil {
		return nil, err
	}
	src := frags[0].source(fields[0])
	if len(src.parts) == 0 || frags[0].rows == 0 {
		return nil, nil
	}
	r, err := frags[0].open(ctx, src.parts[0].file)
	if err != nil {
		return nil, err
	}
	return r.FixedBlocks(ctx, src.parts[0].column, 0, frags[0].rows)
}

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
