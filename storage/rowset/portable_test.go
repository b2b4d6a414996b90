package rowset

import (
	"errors"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/lakesql/lakesql/internal/errs"
)

// everyKind is a bitmap with an array, a bitset and, where runs is set, a run container.
func everyKind(tb testing.TB, runs bool) []byte {
	tb.Helper()
	b := roaring.BitmapOf(1, 5, 70)
	for i := uint32(0); i < 10_000; i += 2 {
		b.Add(1<<16 | i)
	}
	b.AddRange(5<<16+100, 5<<16+30_000)
	b.AddRange(7<<16, 8<<16)
	if runs {
		b.RunOptimize()
	}
	out, err := b.ToBytes()
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func TestPortableReadsEveryKindOfContainer(t *testing.T) {
	for _, runs := range []bool{false, true} {
		b := everyKind(t, runs)
		want := roaring.New()
		if _, err := want.FromBuffer(slices.Clone(b)); err != nil {
			t.Fatal(err)
		}
		got, err := DecodePortable(b)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equals(want) || got.GetCardinality() != 3+5000+29_900+65_536 {
			t.Fatalf("runs %v: %d keys", runs, got.GetCardinality())
		}
	}
}

func TestPortableRefusesWhatNoWriterProduces(t *testing.T) {
	array := []byte{0x3A, 0x30, 0, 0, 1, 0, 0, 0, 9, 0, 1, 0, 16, 0, 0, 0, 3, 0, 8, 0} // container 9 = {3, 8}
	if _, err := DecodePortable(array); err != nil {
		t.Fatal(err)
	}
	edit := func(at int, v byte) []byte {
		out := slices.Clone(array)
		out[at] = v
		return out
	}
	runs := everyKind(t, true)
	for name, b := range map[string][]byte{
		"nothing":                          {},
		"an unknown cookie":                edit(0, 0x3C),
		"more containers than bytes":       edit(4, 200),
		"more containers than can be":      edit(7, 1),
		"a key count above the array":      edit(10, 9),
		"array keys that do not ascend":    edit(18, 3),
		"a byte too few":                   array[:len(array)-1],
		"a byte too many":                  append(slices.Clone(array), 0),
		"runs cut off":                     runs[:len(runs)-3],
		"a bitset of another count":        func() []byte { b := slices.Clone(everyKind(t, false)); b[8+4+2]++; return b }(),
		"two containers of one key":        func() []byte { b := slices.Clone(everyKind(t, false)); b[8+4] = 0; return b }(),
		"a run count larger than the file": {0x3B, 0x30, 0, 0, 1, 0, 0, 0, 0, 0xFF, 0xFF},
	} {
		if _, err := DecodePortable(b); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzDecodePortable(f *testing.F) {
	f.Add(everyKind(f, false))
	f.Add(everyKind(f, true))
	f.Add([]byte{0x3A, 0x30, 0, 0, 1, 0, 0, 0, 9, 0, 1, 0, 16, 0, 0, 0, 3, 0, 8, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodePortable(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("got %v", err)
			}
			return
		}
		if got.GetCardinality() != uint64(len(got.ToArray())) {
			t.Fatal("the count is not the number of keys")
		}
		copied, err := got.ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodePortable(copied)
		if err != nil || !again.Equals(got) {
			t.Fatalf("it does not come back: %v", err)
		}
	})
}
