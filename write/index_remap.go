package write

import (
	"context"
	"errors"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// IndexRemapper rewrites segments of LABEL_LIST, BITMAP, BTREE, ZONEMAP and IVF_FLAT for rows that moved, from the segments alone. The zero value is ready.
type IndexRemapper struct{ Options IndexOptions }

var _ Remapper = IndexRemapper{}

// Remap implements Remapper. Segments of other kinds, and those that cannot be rewritten from what they tell, lose the retired fragments.
func (r IndexRemapper) Remap(ctx context.Context, snap *storage.Snapshot, info storage.IndexInfo, moved *rowset.Remap) (*tablepb.IndexMetadata, error) {
	u := &indexUpdate{snap: snap, segments: []storage.IndexInfo{info}}
	f, kind, err := u.describe()
	if errors.Is(err, errs.ErrUnsupported) {
		return nil, nil //nolint:nilnil,nilerr // what the interface says of kinds that cannot be remapped
	}
	if err != nil {
		return nil, err
	}
	j := &segmentJob{
		snap: snap, field: f, opts: r.Options, read: info.Covers.Clone(), covers: info.Covers,
		spec: IndexSpec{Name: info.Name, Column: f.Name, Kind: kind, RowAddresses: index.PhysicalKeys(kind, info.Version)},
		take: []takenSegment{{info, index.Moved{Remap: moved}}},
	}
	j.read.Clear()
	if err := j.like(ctx, u.segments, nil); err != nil {
		return nil, err
	}
	ok, err := j.canTake(ctx, info)
	if err != nil || !ok {
		return nil, err
	}
	m, err := j.build(ctx)
	if errors.Is(err, errs.ErrInvalid) { // zones that do not tell which rows they stand for
		return nil, nil //nolint:nilnil,nilerr // as above
	}
	return m, err
}
