package manifest

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

// RangeSegment is the row ids, or positions, from start to end-1.
func RangeSegment(start, end uint64) *tablepb.U64Segment {
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_Range_{Range: &tablepb.U64Segment_Range{Start: start, End: end}}}
}

// EncodeRowIDs writes the row ids of a fragment's rows, in the order of the rows: runs of ascending ids become ranges, what lies between them bitmaps or arrays, whichever
// is smaller. Errors: ErrInternal.
func EncodeRowIDs(ids []uint64) ([]byte, error) {
	out := &tablepb.RowIdSequence{}
	for len(ids) > 0 {
		n := ascending(ids)
		if n < rangeRunMin && n < len(ids) {
			n = untilRun(ids)
			out.Segments = append(out.Segments, arraySegment(ids[:n]))
		} else {
			out.Segments = append(out.Segments, RangeSegment(ids[0], ids[0]+uint64(n)))
		}
		ids = ids[n:]
	}
	b, err := proto.Marshal(out)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "row ids: %w", err)
	}
	return b, nil
}

// rangeRunMin is the shortest run that is worth a segment of its own: a segment costs about as much as so many ids of an array.
const rangeRunMin = 64

// ascending counts how many of the first ids follow each other by one.
func ascending(ids []uint64) int {
	n := 1
	for n < len(ids) && ids[n] == ids[n-1]+1 {
		n++
	}
	return n
}

// untilRun counts the ids before the next run that is worth a segment.
func untilRun(ids []uint64) int {
	for at := 0; at < len(ids); {
		n := ascending(ids[at:])
		if n >= rangeRunMin {
			return at
		}
		at += n
	}
	return len(ids)
}

// arrayWidth is the bytes of an id in an array that spans so much.
func arrayWidth(span uint64) uint64 {
	switch {
	case span <= math.MaxUint16:
		return 2
	case span <= math.MaxUint32:
		return 4
	}
	return 8
}

// arraySegment keeps ids as a bitmap from their least on, or as the narrowest offsets to it.
func arraySegment(ids []uint64) *tablepb.U64Segment {
	least, most, isSorted := ids[0], ids[0], true
	for i, id := range ids {
		least, most = min(least, id), max(most, id)
		isSorted = isSorted && (i == 0 || id > ids[i-1])
	}
	if span := most - least; isSorted && span/8 < uint64(len(ids))*arrayWidth(span) {
		bitmap := make([]byte, span/8+1)
		for _, id := range ids {
			bitmap[(id-least)/8] |= 1 << ((id - least) % 8)
		}
		present := &tablepb.U64Segment_RangeWithBitmap{Start: least, End: most + 1, Bitmap: bitmap}
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_RangeWithBitmap_{RangeWithBitmap: present}}
	}
	out := &tablepb.EncodedU64Array{}
	switch span := most - least; {
	case span <= math.MaxUint16:
		b := make([]byte, 0, 2*len(ids))
		for _, id := range ids {
			b = binary.LittleEndian.AppendUint16(b, uint16(id-least))
		}
		out.Array = &tablepb.EncodedU64Array_U16Array_{U16Array: &tablepb.EncodedU64Array_U16Array{Base: least, Offsets: b}}
	case span <= math.MaxUint32:
		b := make([]byte, 0, 4*len(ids))
		for _, id := range ids {
			b = binary.LittleEndian.AppendUint32(b, uint32(id-least))
		}
		out.Array = &tablepb.EncodedU64Array_U32Array_{U32Array: &tablepb.EncodedU64Array_U32Array{Base: least, Offsets: b}}
	default:
		b := make([]byte, 0, 8*len(ids))
		for _, id := range ids {
			b = binary.LittleEndian.AppendUint64(b, id)
		}
		out.Array = &tablepb.EncodedU64Array_U64Array_{U64Array: &tablepb.EncodedU64Array_U64Array{Values: b}}
	}
	if isSorted {
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_SortedArray{SortedArray: out}}
	}
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_Array{Array: out}}
}

// VersionRun says that the next Count rows were created, or last changed, by Version.
type VersionRun struct{ Count, Version uint64 }

// AppendVersion adds count rows of a version to runs.
func AppendVersion(runs []VersionRun, count, version uint64) []VersionRun {
	if count == 0 {
		return runs
	}
	if n := len(runs); n > 0 && runs[n-1].Version == version {
		runs[n-1].Count += count
		return runs
	}
	return append(runs, VersionRun{Count: count, Version: version})
}

// EncodeVersions writes the versions of a fragment's rows, in the order of the rows. Errors: ErrInternal.
func EncodeVersions(runs []VersionRun) ([]byte, error) {
	out := &tablepb.RowDatasetVersionSequence{}
	at := uint64(0)
	for _, r := range runs {
		out.Runs = append(out.Runs, &tablepb.RowDatasetVersionRun{Span: RangeSegment(at, at+r.Count), Version: r.Version})
		at += r.Count
	}
	b, err := proto.Marshal(out)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "row versions: %w", err)
	}
	return b, nil
}

// ParseVersions reads the versions of a fragment of rows rows; only the lengths of the spans count. Errors: ErrCorrupt.
func ParseVersions(b []byte, rows uint64) ([]VersionRun, error) {
	var pb tablepb.RowDatasetVersionSequence
	if err := proto.Unmarshal(b, &pb); err != nil {
		return nil, errs.Corrupt("row version sequence", -1, "%w", err)
	}
	var out []VersionRun
	left := rows
	for i, r := range pb.GetRuns() {
		seg, err := parseSegment(r.GetSpan())
		if err != nil {
			return nil, errs.Corrupt("row version sequence", -1, "run %d: %w", i, err)
		}
		if seg.Count > left {
			return nil, errs.Corrupt("row version sequence", -1, "run %d has %d rows, %d are left", i, seg.Count, left)
		}
		left -= seg.Count
		out = AppendVersion(out, seg.Count, r.GetVersion())
	}
	if left != 0 {
		return nil, errs.Corrupt("row version sequence", -1, "%d rows of %d have no version", left, rows)
	}
	return out, nil
}
