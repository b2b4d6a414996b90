package bitmap

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
)

// rowsOfAny is the number of rows that a fragment of unknown size could have.
const rowsOfAny = math.MaxUint32 + 1

// wholeUnsizedMax bounds the whole-fragment entries of one row map whose size is unknown: a copy of each may take 4 MiB.
const wholeUnsizedMax = 64

// DecodeRows reads a row map (docs/format/label_list.md section 3) and copies what it keeps. fragmentRows may be nil, see
// index.OpenOptions and I3. Errors: ErrCorrupt; ErrUnsupported for too many whole fragments of unknown size.
func DecodeRows(b []byte, fragmentRows func(uint32) (uint64, bool)) (*rowset.Set, error) {
	set, whole, err := rowset.ParseTree(b)
	if err != nil {
		return nil, err
	}
	parts := wholeParts{rows: fragmentRows}
	for _, fragment := range whole {
		rows, err := parts.of(fragment)
		if err != nil {
			return nil, err
		}
		set.Adopt(fragment, rows)
	}
	return set, nil
}

// wholeParts makes the parts of whole fragments; those of unknown size share one bitmap.
type wholeParts struct {
	rows    func(uint32) (uint64, bool) // may be nil
	every   *roaring.Bitmap
	unsized int
}

func (w *wholeParts) of(fragment uint32) (*roaring.Bitmap, error) {
	if w.rows != nil {
		if n, ok := w.rows(fragment); ok && n <= rowsOfAny {
			part := roaring.New()
			part.AddRange(0, n)
			return part, nil
		}
	}
	if w.unsized++; w.unsized > wholeUnsizedMax {
		return nil, errs.New(errs.ErrUnsupported, "a row map with more than %d whole fragments of unknown size", wholeUnsizedMax)
	}
	if w.every == nil {
		w.every = roaring.New()
		w.every.AddRange(0, rowsOfAny)
	}
	return w.every, nil
}
