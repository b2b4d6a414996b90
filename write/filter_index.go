package write

import (
	"context"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
)

// FilterIndexSpec names an index of a kind that answers predicates.
type FilterIndexSpec struct {
	Name   string     // "" = COLUMN_idx
	Column string     // a top-level column, spelled exactly
	Kind   index.Kind // LABEL_LIST, BITMAP, BTREE or ZONEMAP
	// RowsPerZone is how many rows a zone of a ZONEMAP has; 0 = 8192.
	RowsPerZone uint64
}

// FilterIndexOptions tunes BuildFilterIndex. The zero value is the default.
type FilterIndexOptions struct {
	// Replace takes out the segments that exist under the name; Extend keeps them and covers only the fragments that they do not.
	// Without either an existing name is ErrExists.
	Replace, Extend bool
	Budget          *mem.Budget // pays for what is collected; nil = nobody
	Commit          CommitOptions
}

// BuildFilterIndex is CreateIndex for the kinds that answer predicates.
func BuildFilterIndex(ctx context.Context, table *storage.Table, spec FilterIndexSpec, opts FilterIndexOptions) (Committed, error) {
	done, err := CreateIndex(ctx, table, IndexSpec{Name: spec.Name, Column: spec.Column, Kind: spec.Kind, RowsPerZone: spec.RowsPerZone}, CreateIndexOptions{
		Replace: opts.Replace, Extend: opts.Extend, IndexOptions: IndexOptions{Budget: opts.Budget, Commit: opts.Commit},
	})
	return done.Committed, err
}
