package write

import (
	"context"

	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Remapper rewrites index segments whose rows moved. Compaction asks it for every segment that names rows by their addresses.
type Remapper interface {
	// Remap writes a copy of a segment of snap in which every address of a retired fragment is replaced by where moved says that the row is now, rows that are
	// gone left out, and returns its metadata: a uuid of its own, the details and version of its files. Name, fields and fragment bitmap are set by the caller.
	// nil says that the kind cannot be remapped: the segment then loses the retired fragments. After an error or a nil result no file is left. The files of
	// a segment that was returned belong to the caller.
	Remap(ctx context.Context, snap *storage.Snapshot, info storage.IndexInfo, moved *rowset.Remap) (*tablepb.IndexMetadata, error)
}
