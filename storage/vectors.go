package storage

import (
	"context"

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
