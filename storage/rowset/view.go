package rowset

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
)

// ViewTree is ParseTree for bytes that AppendTree made and that nobody changes while the set is in use: bitmaps lie where the bytes are. Errors: ErrCorrupt.
func ViewTree(b []byte) (out *Set, err error) {
	defer func() { // the library checks lengths, but not every structure before it indexes with it
		if r := recover(); r != nil {
			out, err = nil, errs.Corrupt("row set", -1, "%v", r)
		}
	}()
	if len(b) < 4 {
		return nil, errs.Corrupt("row set", 0, "%d bytes, too short for a count", len(b))
	}
	count := binary.LittleEndian.Uint32(b)
	b = b[4:]
	out = &Set{}
	for range count {
		if len(b) < 8 {
			return nil, errs.Corrupt("row set", -1, "an entry is cut off")
		}
		upper, size := binary.LittleEndian.Uint32(b), uint64(binary.LittleEndian.Uint32(b[4:]))
		if b = b[8:]; size == 0 || size > uint64(len(b)) {
			return nil, errs.Corrupt("row set", -1, "%d bytes of bitmap, %d left", size, len(b))
		}
		part := roaring.New()
		if _, err := part.FromBuffer(b[:size:size]); err != nil {
			return nil, errs.Corrupt("row set", -1, "%w", err)
		}
		out.Adopt(upper, part)
		b = b[size:]
	}
	if len(b) > 0 {
		return nil, errs.Corrupt("row set", -1, "%d bytes behind the last entry", len(b))
	}
	return out, nil
}
