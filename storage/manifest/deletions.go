package manifest

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/rowset"
)

// DeletionPath is the path of a fragment's deletion file, relative to the dataset.
func DeletionPath(fragment uint64, d *tablepb.DeletionFile) string {
	ext := "arrow"
	if d.GetFileType() == tablepb.DeletionFile_BITMAP {
		ext = "bin"
	}
	return fmt.Sprintf("%s/%d-%d-%d.%s", DeletionsDir, fragment, d.GetReadVersion(), d.GetId(), ext)
}

// ParseDeletions reads the row offsets that a deletion file names: all deleted rows of its fragment, which has physicalRows.
// Errors: ErrCorrupt, ErrUnsupported for an unknown kind of file.
func ParseDeletions(b []byte, kind tablepb.DeletionFile_DeletionFileType, physicalRows uint64) (*roaring.Bitmap, error) {
	var (
		out *roaring.Bitmap
		err error
	)
	switch kind {
	case tablepb.DeletionFile_ARROW_ARRAY:
		out, err = parseDeletionArrow(b, physicalRows)
	case tablepb.DeletionFile_BITMAP:
		var used int
		if out, used, err = rowset.ParseBitmap(b); err == nil && used != len(b) {
			err = errs.Corrupt("deletion bitmap", int64(used), "%d bytes behind the bitmap", len(b)-used)
		}
	default:
		return nil, errs.New(errs.ErrUnsupported, "deletion files of kind %d are not supported", kind)
	}
	if err != nil {
		return nil, err
	}
	if !out.IsEmpty() && uint64(out.Maximum()) >= physicalRows {
		return nil, errs.Corrupt("deletion file", -1, "row %d is deleted in a fragment of %d rows", out.Maximum(), physicalRows)
	}
	return out, nil
}

// parseDeletionArrow reads an Arrow file with one column of offsets, in any order.
func parseDeletionArrow(b []byte, physicalRows uint64) (*roaring.Bitmap, error) {
	offsets, err := readUint32File(b, physicalRows)
	if err != nil {
		return nil, errs.Corrupt("deletion file", -1, "%w", err)
	}
	out := roaring.New()
	out.AddMany(offsets)
	return out, nil
}
