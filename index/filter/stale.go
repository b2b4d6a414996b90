package filter

import (
	"context"
	"errors"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// historyMax is the most versions that are read to learn what happened while a segment came to be.
const historyMax = 256

// MayBeStale says whether a segment may hold entries of rows as they were before an update (docs/format/label_list.md section 5). It can only be in
// tables with stable row ids and of segments that store those, where an updated row keeps its stored key, and only where the engine merged segments after an update. The versions
// between the one that the index was first built from and the one that brought this segment tell; where they are gone, or too many,
// the answer is true. It never changes for a segment, so it may be kept with it. Errors: ErrCorrupt, ErrIO.
func MayBeStale(ctx context.Context, snap *storage.Snapshot, info storage.IndexInfo) (bool, error) {
	if kind, ok := KindOf(info.TypeURL); !snap.HasStableRowIDs() || ok && index.PhysicalKeys(kind, info.Version) {
		return false, nil
	}
	last := min(snap.Version(), info.DatasetVersion+historyMax)
	for v := info.DatasetVersion + 1; v <= last; v++ {
		at := snap
		if v < snap.Version() {
			var err error
			at, err = snap.Table().At(ctx, storage.Ref{Version: v})
			if errors.Is(err, errs.ErrNotFound) || errors.Is(err, errs.ErrUnsupported) {
				return true, nil
			}
			if err != nil {
				return false, err
			}
		}
		for _, other := range at.Indices() {
			if other.UUID == info.UUID {
				return false, nil
			}
		}
		did, err := at.Transaction(ctx)
		if err != nil && !errors.Is(err, errs.ErrNotFound) && !errors.Is(err, errs.ErrIO) {
			return false, err
		}
		if err != nil || !keepsRows(did) {
			return true, nil
		}
	}
	return true, nil
}

// keepsRows says that a commit changed no value of a row that stayed.
func keepsRows(t *tablepb.Transaction) bool {
	switch t.GetOperation().(type) {
	case *tablepb.Transaction_Append_, *tablepb.Transaction_Delete_, *tablepb.Transaction_CreateIndex_, *tablepb.Transaction_Rewrite_,
		*tablepb.Transaction_ReserveFragments_, *tablepb.Transaction_Project_:
		return true
	default:
		return false
	}
}
