package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

func u16s(base uint64, ids ...uint64) *tablepb.EncodedU64Array {
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint16(b, uint16(id-base))
	}
	return &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U16Array_{U16Array: &tablepb.EncodedU64Array_U16Array{Base: base, Offsets: b}}}
}

func u32s(base uint64, ids ...uint64) *tablepb.EncodedU64Array {
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id-base))
	}
	return &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U32Array_{U32Array: &tablepb.EncodedU64Array_U32Array{Base: base, Offsets: b}}}
}

func u64s(ids ...uint64) *tablepb.EncodedU64Array {
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	return &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U64Array_{U64Array: &tablepb.EncodedU64Array_U64Array{Values: b}}}
}

func segRange(start, end uint64) *tablepb.U64Segment {
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_Range_{Range: &tablepb.U64Segment_Range{Start: start, End: end}}}
}

func segHoles(start, end uint64, holes *tablepb.EncodedU64Array) *tablepb.U64Segment {
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_RangeWithHoles_{
		RangeWithHoles: &tablepb.U64Segment_RangeWithHoles{Start: start, End: end, Holes: holes}}}
}

func segBitmap(start, end uint64, bitmap []byte) *tablepb.U64Segment {
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_RangeWithBitmap_{
		RangeWithBitmap: &tablepb.U64Segment_RangeWithBitmap{Start: start, End: end, Bitmap: bitmap}}}
}

func segSorted(a *tablepb.EncodedU64Array) *tablepb.U64Segment {
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_SortedArray{SortedArray: a}}
}

func segArray(a *tablepb.EncodedU64Array) *tablepb.U64Segment {
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_Array{Array: a}}
}

func sequence(tb testing.TB, segs ...*tablepb.U64Segment) []byte {
	tb.Helper()
	b, err := proto.Marshal(&tablepb.RowIdSequence{Segments: segs})
	must(tb, err)
	return b
}

// drawSegment makes a segment of each kind together with the ids that it stands for.
func drawSegment(t *rapid.T) (*tablepb.U64Segment, []uint64) {
	base := rapid.SampledFrom([]uint64{0, 5, 1 << 33, 1<<40 + 3}).Draw(t, "base")
	ids := slices.Sorted(maps.Keys(rapid.MapOf(rapid.Uint64Range(base, base+1500), rapid.Just(true)).Draw(t, "ids")))
	end := base + 1501
	array := rapid.SampledFrom([]func([]uint64) *tablepb.EncodedU64Array{
		func(ids []uint64) *tablepb.EncodedU64Array { return u16s(base, ids...) },
		func(ids []uint64) *tablepb.EncodedU64Array { return u32s(base, ids...) },
		func(ids []uint64) *tablepb.EncodedU64Array { return u64s(ids...) },
	}).Draw(t, "array")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		n := rapid.Uint64Range(0, 50).Draw(t, "n")
		ids = nil
		for i := range n {
			ids = append(ids, base+i)
		}
		return segRange(base, base+n), ids
	case 1: // the drawn ids are the holes
		var left []uint64
		for id := base; id < end; id++ {
			if _, isHole := slices.BinarySearch(ids, id); !isHole {
				left = append(left, id)
			}
		}
		return segHoles(base, end, array(ids)), left
	case 2:
		bitmap := make([]byte, (end-base+7)/8)
		for _, id := range ids {
			bitmap[(id-base)/8] |= 1 << ((id - base) % 8)
		}
		return segBitmap(base, end, bitmap), ids
	case 3:
		return segSorted(array(ids)), ids
	}
	ids = rapid.Permutation(ids).Draw(t, "order")
	return segArray(array(ids)), ids
}

func TestEveryKindOfSegmentFindsWhatItHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var segs []*tablepb.U64Segment
		var want []uint64
		for range rapid.IntRange(0, 4).Draw(rt, "segments") {
			s, ids := drawSegment(rt)
			segs, want = append(segs, s), append(want, ids...)
		}
		r, err := ParseRowIDs(sequence(t, segs...), uint64(len(want)))
		must(t, err)
		if r.Count() != uint64(len(want)) {
			rt.Fatalf("%d rows, want %d", r.Count(), len(want))
		}
		for i, id := range want {
			if got := r.At(uint64(i)); got != id {
				rt.Fatalf("row %d has id %d, want %d", i, got, id)
			}
		}
		for _, id := range rapid.SliceOfN(rapid.Uint64Range(0, 3000), 20, 20).Draw(rt, "searched") {
			for _, s := range r.Segments() {
				part := want[s.Start : s.Start+s.Count]
				for _, id := range []uint64{id, id + 1<<33, id + 1<<40} {
					pos, ok := s.Find(id)
					if ok != slices.Contains(part, id) || (ok && want[pos] != id) {
						rt.Fatalf("find %d in segment at %d: %d %t", id, s.Start, pos, ok)
					}
				}
			}
		}
	})
}

func TestRowIDSequencesThatMakeNoSense(t *testing.T) {
	odd := u16s(0, 1, 2)
	odd.GetU16Array().Offsets = []byte{1, 2, 3}
	for _, tc := range []struct {
		name string
		b    []byte
		text string
	}{
		{"no protobuf", []byte{0xff}, "proto"},
		{"a segment of no kind", sequence(t, &tablepb.U64Segment{}), "unknown kind"},
		{"a range that ends before it starts", sequence(t, segRange(5, 4)), "range 5..4"},
		{"more rows than the fragment has", sequence(t, segRange(0, 8), segRange(8, 11)), "segment 1 has 3 ids, 2 rows are left"},
		{"a range without end", sequence(t, segRange(0, 1<<63)), "rows are left"},
		{"a hole outside its range", sequence(t, segHoles(5, 9, u16s(0, 9))), "hole 9"},
		{"a hole twice", sequence(t, segHoles(5, 9, u16s(0, 6, 6))), "hole 6"},
		{"a bitmap too short", sequence(t, segBitmap(0, 9, []byte{1})), "bitmap of 1 bytes"},
		{"a bitmap with bits behind its range", sequence(t, segBitmap(0, 9, []byte{1, 2})), "bits behind"},
		{"a sorted array that falls", sequence(t, segSorted(u64s(5, 4))), "falls at 1"},
		{"half an item", sequence(t, segArray(odd)), "array of 3 bytes"},
		{"a base near the end of 64 bits", sequence(t, segArray(u32s(1<<64-2, 1<<64-2))), "base"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseRowIDs(tc.b, 10)
			if !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// FuzzParseRowIDs: any bytes are ErrCorrupt or a sequence in which every id is found where it is.
func FuzzParseRowIDs(f *testing.F) {
	f.Add(sequence(f, segRange(3, 6), segHoles(10, 20, u16s(10, 12, 15)), segBitmap(30, 39, []byte{0x55, 1})))
	f.Add(sequence(f, segSorted(u32s(5, 6, 9)), segArray(u64s(9, 3, 7))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRowIDs(b, 1000)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		for i := range r.Count() {
			id, found := r.At(i), false
			for _, s := range r.Segments() {
				if pos, ok := s.Find(id); ok && r.At(pos) == id {
					found = true
				}
			}
			if !found {
				t.Fatalf("id %d of row %d is not found", id, i)
			}
		}
	})
}

// deletionArrow writes a deletion file as other writers do.
func deletionArrow(tb testing.TB, offsets []uint32, opts ...ipc.Option) []byte {
	tb.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "row_id", Type: arrow.PrimitiveTypes.Uint32}}, nil)
	b := array.NewUint32Builder(memory.DefaultAllocator)
	b.AppendValues(offsets, nil)
	rec := array.NewRecordBatch(sc, []arrow.Array{b.NewArray()}, int64(len(offsets)))
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, append(opts, ipc.WithSchema(sc))...)
	must(tb, err)
	must(tb, w.Write(rec))
	must(tb, w.Close())
	return out.Bytes()
}

func TestDeletionsOfBothKinds(t *testing.T) {
	offsets := []uint32{9, 3, 70000, 3}
	want := roaring.BitmapOf(offsets...)
	bin, err := want.ToBytes()
	must(t, err)
	runs := want.Clone()
	runs.AddRange(100, 60000)
	runs.RunOptimize()
	runBytes, err := runs.ToBytes()
	must(t, err)
	const arrowKind, bitmapKind = tablepb.DeletionFile_ARROW_ARRAY, tablepb.DeletionFile_BITMAP
	for _, tc := range []struct {
		name string
		b    []byte
		kind tablepb.DeletionFile_DeletionFileType
		want *roaring.Bitmap
	}{
		{"arrow, unsorted, with a double", deletionArrow(t, offsets), arrowKind, want},
		{"arrow, zstd", deletionArrow(t, offsets, ipc.WithZstd()), arrowKind, want},
		{"arrow, lz4", deletionArrow(t, offsets, ipc.WithLZ4()), arrowKind, want},
		{"arrow, long and zstd", deletionArrow(t, runs.ToArray(), ipc.WithZstd()), arrowKind, runs},
		{"bitmap", bin, bitmapKind, want},
		{"bitmap with runs", runBytes, bitmapKind, runs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseDeletions(tc.b, tc.kind, 70001)
			if err != nil || !got.Equals(tc.want) {
				t.Fatalf("%v %v", got, err)
			}
			if _, err := ParseDeletions(tc.b, tc.kind, 70000); !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("a row behind the end: %v", err)
			}
			for cut := 0; cut < len(tc.b); cut += 1 + len(tc.b)/50 {
				if _, err := ParseDeletions(tc.b[:cut], tc.kind, 70001); !errors.Is(err, errs.ErrCorrupt) {
					t.Fatalf("cut at %d of %d: %v", cut, len(tc.b), err)
				}
			}
		})
	}
	if _, err := ParseDeletions(nil, 9, 5); !errors.Is(err, errs.ErrUnsupported) {
		t.Fatal(err)
	}
}

// FuzzParseDeletions: any bytes are ErrCorrupt or offsets within the fragment, in bounded memory.
func FuzzParseDeletions(f *testing.F) {
	bin, err := roaring.BitmapOf(1, 5, 9).ToBytes()
	must(f, err)
	f.Add(deletionArrow(f, []uint32{5, 3}, ipc.WithZstd()), false)
	f.Add(deletionArrow(f, []uint32{5, 3}), false)
	f.Add(bin, true)
	f.Fuzz(func(t *testing.T, b []byte, isBitmap bool) {
		kind := tablepb.DeletionFile_ARROW_ARRAY
		if isBitmap {
			kind = tablepb.DeletionFile_BITMAP
		}
		got, err := ParseDeletions(b, kind, 1000)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if !got.IsEmpty() && got.Maximum() >= 1000 {
			t.Fatal(got)
		}
	})
}
