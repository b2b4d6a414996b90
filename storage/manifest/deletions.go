package manifest

import (
	"bytes"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
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

// deletionSlackBytes covers what a reader of an Arrow file allocates besides the offsets: metadata and padding.
const deletionSlackBytes = 1 << 20

// parseDeletionArrow reads an Arrow file of one batch with one UInt32 column, in any order.
func parseDeletionArrow(b []byte, physicalRows uint64) (out *roaring.Bitmap, err error) {
	// The file's own sizes decide what the Arrow reader allocates; no honest file needs more than this.
	limit := int64(len(b)) + int64(min(physicalRows, 1<<32))*4 + deletionSlackBytes
	alloc := mem.NewAllocator(nil, mem.NewBudget("deletion file", limit, nil))
	defer func() { // the Arrow reader panics on structures that make no sense, and on a refused allocation
		if r := recover(); r != nil {
			out, err = nil, errs.Corrupt("deletion file", -1, "%v", r)
		}
	}()
	r, err := ipc.NewFileReader(bytes.NewReader(b), ipc.WithAllocator(alloc))
	if err != nil {
		return nil, errs.Corrupt("deletion file", -1, "%w", err)
	}
	defer func() { _ = r.Close() }() // reads memory: nothing can be lost
	if n := r.NumRecords(); n != 1 {
		return nil, errs.Corrupt("deletion file", -1, "%d batches, not 1", n)
	}
	rec, err := r.RecordBatch(0)
	if err != nil {
		return nil, errs.Corrupt("deletion file", -1, "%w", err)
	}
	defer rec.Release()
	if rec.NumCols() != 1 {
		return nil, errs.Corrupt("deletion file", -1, "%d columns, not 1", rec.NumCols())
	}
	col, ok := rec.Column(0).(*array.Uint32)
	if !ok || col.NullN() > 0 {
		return nil, errs.Corrupt("deletion file", -1, "its column is %s with %d nulls", rec.Column(0).DataType(), rec.Column(0).NullN())
	}
	out = roaring.New()
	out.AddMany(col.Uint32Values())
	return out, nil
}
