package manifest

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// RowIDs is the sequence of stable row ids of one fragment: position i is the id of physical row i. It is kept as its file
// keeps it: ranges cost nothing, and only unordered arrays are indexed, when first searched. It is safe for concurrent use.
type RowIDs struct {
	segments []*Segment
	starts   []uint64 // position of each segment's first row
	count    uint64
}

// Segment is a part of a RowIDs of one kind.
type Segment struct {
	Start    uint64 // position of its first row
	Count    uint64 // rows
	Min, Max uint64 // smallest and largest id; meaningless if Count is 0
	body     segmentBody
}

// segmentBody is one of the five kinds of segments.
type segmentBody interface {
	at(i uint64) uint64                 // id of row i of the segment
	find(id uint64) (i uint64, ok bool) // row of an id within Min..Max
}

// IsRange says that the segment's ids are Min, Min+1, ... Max.
func (s *Segment) IsRange() bool { _, ok := s.body.(rangeBody); return ok }

// ID returns the id of row i of the segment, which must be less than Count.
func (s *Segment) ID(i uint64) uint64 { return s.body.at(i) }

// Find returns the position in the fragment of an id, if the segment has it.
func (s *Segment) Find(id uint64) (position uint64, ok bool) {
	if s.Count == 0 || id < s.Min || id > s.Max {
		return 0, false
	}
	i, ok := s.body.find(id)
	return s.Start + i, ok
}

// Count is the number of rows.
func (r *RowIDs) Count() uint64 { return r.count }

// Segments returns the parts, in order of position. The caller must not change the slice.
func (r *RowIDs) Segments() []*Segment { return r.segments }

// At returns the id of a position, which must be less than Count.
func (r *RowIDs) At(position uint64) uint64 {
	k, exact := slices.BinarySearch(r.starts, position)
	if !exact {
		k--
	}
	for r.segments[k].Count == 0 { // empty segments share their start with the next
		k++
	}
	return r.segments[k].body.at(position - r.starts[k])
}

// ParseRowIDs reads a serialized RowIdSequence. rowsMax bounds how many rows it may name. b is kept. Errors: ErrCorrupt.
func ParseRowIDs(b []byte, rowsMax uint64) (*RowIDs, error) {
	var pb tablepb.RowIdSequence
	if err := proto.Unmarshal(b, &pb); err != nil {
		return nil, errs.Corrupt("row id sequence", -1, "%w", err)
	}
	r := &RowIDs{}
	for i, s := range pb.GetSegments() {
		seg, err := parseSegment(s)
		if err != nil {
			return nil, errs.Corrupt("row id sequence", -1, "segment %d: %w", i, err)
		}
		if seg.Count > rowsMax-r.count {
			return nil, errs.Corrupt("row id sequence", -1, "segment %d has %d ids, %d rows are left", i, seg.Count, rowsMax-r.count)
		}
		seg.Start = r.count
		r.segments = append(r.segments, seg)
		r.starts = append(r.starts, seg.Start)
		r.count += seg.Count
	}
	return r, nil
}

func parseSegment(pb *tablepb.U64Segment) (*Segment, error) {
	switch s := pb.GetSegment().(type) {
	case *tablepb.U64Segment_Range_:
		return rangeSegment(s.Range.GetStart(), s.Range.GetEnd())
	case *tablepb.U64Segment_RangeWithHoles_:
		return holesSegment(s.RangeWithHoles)
	case *tablepb.U64Segment_RangeWithBitmap_:
		return bitmapSegment(s.RangeWithBitmap)
	case *tablepb.U64Segment_SortedArray:
		ids, err := parseArray(s.SortedArray)
		if err != nil {
			return nil, err
		}
		n := ids.len()
		seg := &Segment{Count: uint64(n), body: sortedBody{ids}}
		if n == 0 {
			return seg, nil
		}
		for i := 1; i < n; i++ {
			if ids.at(i) < ids.at(i-1) {
				return nil, errs.New(errs.ErrCorrupt, "a sorted array falls at %d", i)
			}
		}
		seg.Min, seg.Max = ids.at(0), ids.at(n-1)
		return seg, nil
	case *tablepb.U64Segment_Array:
		ids, err := parseArray(s.Array)
		if err != nil {
			return nil, err
		}
		seg := &Segment{Count: uint64(ids.len()), body: &arrayBody{ids: ids}}
		seg.Min = math.MaxUint64
		for i := range ids.len() {
			seg.Min, seg.Max = min(seg.Min, ids.at(i)), max(seg.Max, ids.at(i))
		}
		return seg, nil
	}
	return nil, errs.New(errs.ErrCorrupt, "an unknown kind of segment")
}

// rangeBody is start, start+1, ...
type rangeBody struct{ start uint64 }

func (b rangeBody) at(i uint64) uint64            { return b.start + i }
func (b rangeBody) find(id uint64) (uint64, bool) { return id - b.start, true }

func rangeSegment(start, end uint64) (*Segment, error) {
	if end < start {
		return nil, errs.New(errs.ErrCorrupt, "range %d..%d", start, end)
	}
	seg := &Segment{Count: end - start, Min: start, body: rangeBody{start}}
	if end > start {
		seg.Max = end - 1
	}
	return seg, nil
}

// holesBody is a range without some ids.
type holesBody struct {
	start uint64
	holes intArray // ascending
}

// below counts the holes less than id.
func (b holesBody) below(id uint64) uint64 {
	return uint64(sort.Search(b.holes.len(), func(k int) bool { return b.holes.at(k) >= id }))
}

func (b holesBody) at(i uint64) uint64 {
	// The id has as many holes before it as there are k with holes[k]-start-k <= i: hole k comes after (holes[k]-start-k) ids.
	k := sort.Search(b.holes.len(), func(k int) bool { return b.holes.at(k)-b.start-uint64(k) > i })
	return b.start + i + uint64(k)
}

func (b holesBody) find(id uint64) (uint64, bool) {
	n := b.below(id)
	if int(n) < b.holes.len() && b.holes.at(int(n)) == id {
		return 0, false
	}
	return id - b.start - n, true
}

func holesSegment(pb *tablepb.U64Segment_RangeWithHoles) (*Segment, error) {
	seg, err := rangeSegment(pb.GetStart(), pb.GetEnd())
	if err != nil {
		return nil, err
	}
	holes, err := parseArray(pb.GetHoles())
	if err != nil {
		return nil, err
	}
	for i := range holes.len() {
		if h := holes.at(i); h < pb.GetStart() || h >= pb.GetEnd() || (i > 0 && h <= holes.at(i-1)) {
			return nil, errs.New(errs.ErrCorrupt, "hole %d of range %d..%d is out of place", h, pb.GetStart(), pb.GetEnd())
		}
	}
	seg.Count -= uint64(holes.len())
	body := holesBody{start: pb.GetStart(), holes: holes}
	seg.body = body
	if seg.Count > 0 {
		seg.Min, seg.Max = body.at(0), body.at(seg.Count-1)
	}
	return seg, nil
}

// bitmapBody is a range of which set bits are present. ranks[k] counts the bits before byte k*rankBytes.
type bitmapBody struct {
	start  uint64
	bitmap []byte
	ranks  []uint32
}

const rankBytes = 64

func onesIn(b []byte) (n int) {
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}

func (b bitmapBody) find(id uint64) (uint64, bool) {
	bit := id - b.start
	at := bit / 8
	if b.bitmap[at]&(1<<(bit%8)) == 0 {
		return 0, false
	}
	block := at / rankBytes
	n := uint64(b.ranks[block]) + uint64(onesIn(b.bitmap[block*rankBytes:at]))
	return n + uint64(bits.OnesCount8(b.bitmap[at]&(1<<(bit%8)-1))), true
}

func (b bitmapBody) at(i uint64) uint64 {
	block := sort.Search(len(b.ranks), func(k int) bool { return uint64(b.ranks[k]) > i }) - 1
	left := int(i - uint64(b.ranks[block]))
	for at := block * rankBytes; ; at++ {
		x := b.bitmap[at]
		n := bits.OnesCount8(x)
		if left >= n {
			left -= n
			continue
		}
		for ; left > 0; left-- {
			x &= x - 1
		}
		return b.start + uint64(at)*8 + uint64(bits.TrailingZeros8(x))
	}
}

func bitmapSegment(pb *tablepb.U64Segment_RangeWithBitmap) (*Segment, error) {
	seg, err := rangeSegment(pb.GetStart(), pb.GetEnd())
	if err != nil {
		return nil, err
	}
	bitmap := pb.GetBitmap()
	if want := seg.Count/8 + min(1, seg.Count%8); uint64(len(bitmap)) != want {
		return nil, errs.New(errs.ErrCorrupt, "a bitmap of %d bytes for range %d..%d", len(bitmap), pb.GetStart(), pb.GetEnd())
	}
	if len(bitmap) > math.MaxUint32/8 { // ranks are 32 bits
		return nil, errs.New(errs.ErrCorrupt, "a bitmap of %d bytes", len(bitmap))
	}
	if spare := seg.Count % 8; spare != 0 && bitmap[len(bitmap)-1]>>spare != 0 {
		return nil, errs.New(errs.ErrCorrupt, "a bitmap has bits behind range %d..%d", pb.GetStart(), pb.GetEnd())
	}
	body := bitmapBody{start: pb.GetStart(), bitmap: bitmap, ranks: make([]uint32, 0, len(bitmap)/rankBytes+1)}
	n := 0
	for at := 0; at < len(bitmap); at += rankBytes {
		body.ranks = append(body.ranks, uint32(n))
		n += onesIn(bitmap[at:min(at+rankBytes, len(bitmap))])
	}
	seg.Count, seg.body = uint64(n), body
	if n > 0 {
		seg.Min, seg.Max = body.at(0), body.at(uint64(n)-1)
	}
	return seg, nil
}

// intArray reads an EncodedU64Array in place: base + offset of width bytes.
type intArray struct {
	base  uint64
	width int
	bytes []byte
}

func (a intArray) len() int {
	if a.width == 0 {
		return 0
	}
	return len(a.bytes) / a.width
}

func (a intArray) at(i int) uint64 {
	switch a.width {
	case 2:
		return a.base + uint64(binary.LittleEndian.Uint16(a.bytes[i*2:]))
	case 4:
		return a.base + uint64(binary.LittleEndian.Uint32(a.bytes[i*4:]))
	}
	return binary.LittleEndian.Uint64(a.bytes[i*8:])
}

func parseArray(pb *tablepb.EncodedU64Array) (intArray, error) {
	var a intArray
	switch x := pb.GetArray().(type) {
	case nil:
		return a, nil // no ids at all
	case *tablepb.EncodedU64Array_U16Array_:
		a = intArray{base: x.U16Array.GetBase(), width: 2, bytes: x.U16Array.GetOffsets()}
	case *tablepb.EncodedU64Array_U32Array_:
		a = intArray{base: x.U32Array.GetBase(), width: 4, bytes: x.U32Array.GetOffsets()}
	case *tablepb.EncodedU64Array_U64Array_:
		a = intArray{width: 8, bytes: x.U64Array.GetValues()}
	default:
		return a, errs.New(errs.ErrCorrupt, "an unknown kind of array")
	}
	if len(a.bytes)%a.width != 0 {
		return a, errs.New(errs.ErrCorrupt, "an array of %d bytes with items of %d", len(a.bytes), a.width)
	}
	if a.base > math.MaxUint64-math.MaxUint32 {
		return a, errs.New(errs.ErrCorrupt, "an array with base %d", a.base)
	}
	return a, nil
}

// sortedBody is an ascending array.
type sortedBody struct{ ids intArray }

func (b sortedBody) at(i uint64) uint64 { return b.ids.at(int(i)) }

func (b sortedBody) find(id uint64) (uint64, bool) {
	i := sort.Search(b.ids.len(), func(k int) bool { return b.ids.at(k) >= id })
	return uint64(i), i < b.ids.len() && b.ids.at(i) == id
}

// arrayBody is an array in any order, with an index made at the first search.
type arrayBody struct {
	ids   intArray
	once  sync.Once
	order []uint32 // positions by id
}

func (b *arrayBody) at(i uint64) uint64 { return b.ids.at(int(i)) }

func (b *arrayBody) find(id uint64) (uint64, bool) {
	b.once.Do(func() {
		b.order = make([]uint32, b.ids.len())
		for i := range b.order {
			b.order[i] = uint32(i)
		}
		slices.SortFunc(b.order, func(x, y uint32) int { return cmp.Compare(b.ids.at(int(x)), b.ids.at(int(y))) })
	})
	k := sort.Search(len(b.order), func(k int) bool { return b.ids.at(int(b.order[k])) >= id })
	if k == len(b.order) || b.ids.at(int(b.order[k])) != id {
		return 0, false
	}
	return uint64(b.order[k]), true
}

// IndexBytes is the memory that searching unordered arrays takes beyond the sequence's own bytes.
func (r *RowIDs) IndexBytes() int64 {
	var n int64
	for _, s := range r.segments {
		switch b := s.body.(type) {
		case *arrayBody:
			n += int64(b.ids.len()) * 4
		case bitmapBody:
			n += int64(len(b.ranks)) * 4
		}
	}
	return n
}
