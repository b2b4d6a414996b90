package rowset

import (
	"encoding/binary"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
)

// Facts of the portable roaring format (https://github.com/RoaringBitmap/RoaringFormatSpec).
const (
	portableCookie      = 0x303A // array and bitset containers only
	portableRunsCookie  = 0x303B // with runs; the upper half of the word is the container count - 1
	portableOffsetsFrom = 4      // a bitmap with runs has an offset table from this many containers on
	arrayCountMax       = 4096   // a container with more keys is a bitset
	bitsetBytes         = 8192
)

// DecodePortable checks b, which must be one whole bitmap in the portable roaring format, and opens it without copying:
// the bitmap keeps b, which must not change as long as the bitmap or one derived from it is in use. Every container is
// checked (ascending, counted right, inside b), since the library trusts its input. Errors: ErrCorrupt.
func DecodePortable(b []byte) (*roaring.Bitmap, error) {
	if err := checkPortable(b); err != nil {
		return nil, err
	}
	out := roaring.New()
	n, err := out.FromBuffer(b)
	if err != nil {
		return nil, errs.Corrupt("roaring bitmap", -1, "%w", err)
	}
	if n != int64(len(b)) {
		return nil, errs.Corrupt("roaring bitmap", n, "%d bytes follow the last container", int64(len(b))-n)
	}
	return out, nil
}

// checkPortable walks the containers of one bitmap that must fill b.
func checkPortable(b []byte) error {
	count, isRun, pos, err := portableHeader(b)
	if err != nil {
		return err
	}
	if len(b)-pos < 4*count {
		return errs.Corrupt("roaring bitmap", int64(pos), "%d containers do not fit %d bytes", count, len(b)-pos)
	}
	heads := b[pos : pos+4*count]
	pos += 4 * count
	if isRun == nil || count >= portableOffsetsFrom {
		if len(b)-pos < 4*count {
			return errs.Corrupt("roaring bitmap", int64(pos), "the offset table passes the end")
		}
		pos += 4 * count
	}
	before := -1
	for i := range count {
		key := int(binary.LittleEndian.Uint16(heads[4*i:]))
		if key <= before {
			return errs.Corrupt("roaring bitmap", int64(pos), "container %d has key %d after key %d", i, key, before)
		}
		before = key
		keys := int(binary.LittleEndian.Uint16(heads[4*i+2:])) + 1
		var size int
		switch {
		case isRun != nil && isRun[i/8]>>(i%8)&1 == 1:
			size, err = checkRuns(b[pos:], keys)
		case keys > arrayCountMax:
			size, err = checkBitset(b[pos:], keys)
		default:
			size, err = checkArray(b[pos:], keys)
		}
		if err != nil {
			return errs.Corrupt("roaring bitmap", int64(pos), "container %d: %w", i, err)
		}
		pos += size
	}
	if pos != len(b) {
		return errs.Corrupt("roaring bitmap", int64(pos), "%d bytes follow the last container", len(b)-pos)
	}
	return nil
}

// portableHeader reads the cookie: the number of containers, the bits that say which are runs (nil = none) and where the container heads start.
func portableHeader(b []byte) (count int, isRun []byte, pos int, err error) {
	if len(b) < 4 {
		return 0, nil, 0, errs.Corrupt("roaring bitmap", 0, "%d bytes are too few", len(b))
	}
	cookie := binary.LittleEndian.Uint32(b)
	switch {
	case cookie == portableCookie:
		if len(b) < 8 {
			return 0, nil, 0, errs.Corrupt("roaring bitmap", 4, "%d bytes are too few", len(b))
		}
		n := binary.LittleEndian.Uint32(b[4:])
		if n > 1<<16 {
			return 0, nil, 0, errs.Corrupt("roaring bitmap", 4, "%d containers, at most 65536 are possible", n)
		}
		return int(n), nil, 8, nil
	case cookie&0xFFFF == portableRunsCookie:
		n := int(cookie>>16) + 1
		size := (n + 7) / 8
		if len(b)-4 < size {
			return 0, nil, 0, errs.Corrupt("roaring bitmap", 4, "the run flags pass the end")
		}
		return n, b[4 : 4+size], 4 + size, nil
	}
	return 0, nil, 0, errs.Corrupt("roaring bitmap", 0, "cookie %#x", cookie)
}

func checkRuns(b []byte, keys int) (size int, err error) {
	if len(b) < 2 {
		return 0, errs.New(errs.ErrCorrupt, "the run count passes the end")
	}
	n := int(binary.LittleEndian.Uint16(b))
	size = 2 + 4*n
	if len(b) < size {
		return 0, errs.New(errs.ErrCorrupt, "%d runs do not fit %d bytes", n, len(b)-2)
	}
	next, total := 0, 0 // next: the least start a run may have
	for i := range n {
		start, more := int(binary.LittleEndian.Uint16(b[2+4*i:])), int(binary.LittleEndian.Uint16(b[4+4*i:]))
		if start < next || start+more > 0xFFFF {
			return 0, errs.New(errs.ErrCorrupt, "run %d is [%d, %d] after %d", i, start, start+more, next-1)
		}
		next = start + more + 1
		total += more + 1
	}
	if total != keys {
		return 0, errs.New(errs.ErrCorrupt, "the runs hold %d keys, the head says %d", total, keys)
	}
	return size, nil
}

func checkBitset(b []byte, keys int) (size int, err error) {
	if len(b) < bitsetBytes {
		return 0, errs.New(errs.ErrCorrupt, "a bitset passes the end")
	}
	total := 0
	for i := 0; i < bitsetBytes; i += 8 {
		total += bits.OnesCount64(binary.LittleEndian.Uint64(b[i:]))
	}
	if total != keys {
		return 0, errs.New(errs.ErrCorrupt, "the bitset holds %d keys, the head says %d", total, keys)
	}
	return bitsetBytes, nil
}

func checkArray(b []byte, keys int) (size int, err error) {
	if len(b) < 2*keys {
		return 0, errs.New(errs.ErrCorrupt, "%d keys do not fit %d bytes", keys, len(b))
	}
	before := -1
	for i := range keys {
		k := int(binary.LittleEndian.Uint16(b[2*i:]))
		if k <= before {
			return 0, errs.New(errs.ErrCorrupt, "key %d follows key %d", k, before)
		}
		before = k
	}
	return 2 * keys, nil
}
