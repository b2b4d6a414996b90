package rowset

import (
	"bytes"
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
)

// BitmapBytesMax is the largest serialized 32-bit bitmap that can exist: 65536 full containers with their headers.
const BitmapBytesMax = 8 + 65536*(4+4+8192)

// ParseBitmap reads one roaring bitmap in the portable form and copies what it keeps. It returns the bytes that it
// used; bytes behind them are the caller's matter. Errors: ErrCorrupt.
func ParseBitmap(b []byte) (out *roaring.Bitmap, used int, err error) {
	if len(b) > BitmapBytesMax {
		b = b[:BitmapBytesMax]
	}
	defer func() { // the library checks lengths, but not every structure before it indexes with it
		if r := recover(); r != nil {
			out, used, err = nil, 0, errs.Corrupt("bitmap", -1, "%v", r)
		}
	}()
	out = roaring.New()
	n, err := out.ReadFrom(bytes.NewReader(b))
	if err != nil {
		return nil, 0, errs.Corrupt("bitmap", n, "%w", err)
	}
	if out.IsEmpty() { // Validate takes an empty bitmap for a broken one
		return roaring.New(), int(n), nil
	}
	if err := out.Validate(); err != nil {
		return nil, 0, errs.Corrupt("bitmap", -1, "%w", err)
	}
	return out, int(n), nil
}

// ParseTree reads the form in which index files keep sets of 64-bit keys: a u32 number of entries, and for each
// a u32 upper half, a u32 size and that many bytes of a 32-bit bitmap; size 0 stands for every key of the upper half.
// whole lists those upper halves, which the Set leaves out: what they hold is known to the table alone. Errors: ErrCorrupt.
func ParseTree(b []byte) (set *Set, whole []uint32, err error) {
	if len(b) < 4 {
		return nil, nil, errs.Corrupt("row set", 0, "%d bytes, too short for a count", len(b))
	}
	count := binary.LittleEndian.Uint32(b)
	at := 4
	if uint64(count) > uint64(len(b)-at)/8 {
		return nil, nil, errs.Corrupt("row set", 0, "%d entries in %d bytes", count, len(b))
	}
	set = &Set{}
	var last int64 = -1
	for range count {
		if len(b)-at < 8 {
			return nil, nil, errs.Corrupt("row set", int64(at), "an entry is cut off")
		}
		upper, size := binary.LittleEndian.Uint32(b[at:]), binary.LittleEndian.Uint32(b[at+4:])
		at += 8
		if int64(upper) <= last {
			return nil, nil, errs.Corrupt("row set", int64(at-8), "entry %d after %d", upper, last)
		}
		last = int64(upper)
		if size == 0 {
			whole = append(whole, upper)
			continue
		}
		if uint64(size) > uint64(len(b)-at) {
			return nil, nil, errs.Corrupt("row set", int64(at), "%d bytes of bitmap, %d left", size, len(b)-at)
		}
		bm, used, err := ParseBitmap(b[at : at+int(size)])
		if err != nil {
			return nil, nil, err
		}
		if used != int(size) {
			return nil, nil, errs.Corrupt("row set", int64(at), "a bitmap of %d bytes uses %d", size, used)
		}
		if !bm.IsEmpty() {
			set.put(upper, bm)
		}
		at += int(size)
	}
	if at != len(b) {
		return nil, nil, errs.Corrupt("row set", int64(at), "%d bytes behind the last entry", len(b)-at)
	}
	return set, whole, nil
}

// AppendTree appends s in the form that ParseTree reads.
func AppendTree(dst []byte, s *Set) ([]byte, error) {
	uppers := s.Uppers()
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(uppers)))
	for _, upper := range uppers {
		body, err := s.parts[upper].ToBytes()
		if err != nil {
			return nil, errs.New(errs.ErrInternal, "row set: %w", err)
		}
		dst = binary.LittleEndian.AppendUint32(dst, upper)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body)))
		dst = append(dst, body...)
	}
	return dst, nil
}
