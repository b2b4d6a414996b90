package manifest

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/storage/pb/tablepb"
)

func TestDeletionFilesReadBack(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, n := range []int{1, 3, 1000, deletionArrayMax, deletionArrayMax + 1, 50000} {
		bm := roaring.New()
		for bm.GetCardinality() < uint64(n) {
			bm.Add(uint32(r.Intn(100000)))
		}
		b, kind, err := EncodeDeletions(bm)
		if err != nil {
			t.Fatal(err)
		}
		if want := n > deletionArrayMax; want != (kind == tablepb.DeletionFile_BITMAP) {
			t.Fatalf("%d rows: kind %s", n, kind)
		}
		got, err := ParseDeletions(b, kind, 100000)
		if err != nil || !got.Equals(bm) {
			t.Fatalf("%d rows: read back as %d, %v", n, got.GetCardinality(), err)
		}
	}
}

func TestRowIDsReadBack(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 200 {
		var ids []uint64
		at := uint64(r.Intn(1 << 20))
		for range 1 + r.Intn(6) {
			switch r.Intn(4) {
			case 0: // a run
				for range r.Intn(200) {
					ids = append(ids, at)
					at++
				}
			case 1: // ascending with gaps
				for range r.Intn(200) {
					at += uint64(1 + r.Intn(9))
					ids = append(ids, at)
				}
			case 2: // any order
				for _, k := range r.Perm(50) {
					ids = append(ids, at+uint64(k))
				}
				at += 50
			default: // far away
				at += uint64(r.Int63n(1 << uint(20+r.Intn(30))))
			}
		}
		b, err := EncodeRowIDs(ids)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseRowIDs(b, uint64(len(ids)))
		if err != nil || got.Count() != uint64(len(ids)) {
			t.Fatalf("%d ids read back as %d: %v", len(ids), got.Count(), err)
		}
		for i, id := range ids {
			if got.At(uint64(i)) != id {
				t.Fatalf("row %d has id %d, want %d", i, got.At(uint64(i)), id)
			}
		}
	}
	holes := make([]uint64, 0, 1<<16)
	for id := uint64(1000); len(holes) < 1<<16; id++ {
		if id%10 != 0 {
			holes = append(holes, id)
		}
	}
	if b, err := EncodeRowIDs(holes); err != nil || len(b) > 1<<16/6 {
		t.Fatalf("a range with holes takes %d bytes, %v", len(b), err)
	}
	long := make([]uint64, 1<<16)
	for i := range long {
		long[i] = uint64(i)
	}
	if b, err := EncodeRowIDs(long); err != nil || len(b) > 32 {
		t.Fatalf("a range takes %d bytes, %v", len(b), err)
	}
}

func TestRowVersionsReadBack(t *testing.T) {
	var runs []VersionRun
	for _, v := range []uint64{3, 3, 1, 7, 7, 7, 2} {
		runs = AppendVersion(runs, 10, v)
	}
	if len(runs) != 4 || runs[2] != (VersionRun{Count: 30, Version: 7}) {
		t.Fatalf("runs %v", runs)
	}
	b, err := EncodeVersions(runs)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseVersions(b, 70); err != nil || !slices.Equal(got, runs) {
		t.Fatalf("read back as %v, %v", got, err)
	}
	for _, rows := range []uint64{69, 71} {
		if _, err := ParseVersions(b, rows); err == nil {
			t.Fatalf("70 versions are taken for %d rows", rows)
		}
	}
}
