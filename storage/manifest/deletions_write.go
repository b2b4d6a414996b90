package manifest

import (
	"bytes"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// deletionArrayMax is the most deleted rows that are written as an array; the reference writer changes to a bitmap at the same count.
const deletionArrayMax = 5000

// EncodeDeletions writes a deletion file of all deleted offsets of a fragment: an Arrow file where they are few, a bitmap where they are many.
// Errors: ErrInternal.
func EncodeDeletions(offsets *roaring.Bitmap) ([]byte, tablepb.DeletionFile_DeletionFileType, error) {
	if offsets.GetCardinality() > deletionArrayMax {
		bm := offsets.Clone()
		bm.RunOptimize()
		b, err := bm.ToBytes()
		if err != nil {
			return nil, 0, errs.New(errs.ErrInternal, "deletion bitmap: %w", err)
		}
		return b, tablepb.DeletionFile_BITMAP, nil
	}
	b, err := encodeDeletionArrow(offsets.ToArray())
	return b, tablepb.DeletionFile_ARROW_ARRAY, err
}

// encodeDeletionArrow writes an Arrow file of one batch with the column row_id.
func encodeDeletionArrow(offsets []uint32) ([]byte, error) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "row_id", Type: arrow.PrimitiveTypes.Uint32}}, nil)
	values := array.NewUint32Builder(memory.DefaultAllocator)
	defer values.Release()
	values.AppendValues(offsets, nil)
	column := values.NewArray()
	defer column.Release()
	batch := array.NewRecordBatch(sc, []arrow.Array{column}, int64(len(offsets)))
	defer batch.Release()
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, ipc.WithSchema(sc), ipc.WithZstd(), ipc.WithAllocator(memory.DefaultAllocator))
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "deletion file: %w", err)
	}
	if err := w.Write(batch); err != nil {
		return nil, errs.New(errs.ErrInternal, "deletion file: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, errs.New(errs.ErrInternal, "deletion file: %w", err)
	}
	return out.Bytes(), nil
}
