package rowset

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawKeys(t *rapid.T, label string) []uint64 {
	key := rapid.Custom(func(t *rapid.T) uint64 {
		upper := rapid.Uint64Range(0, 3).Draw(t, "upper")
		lower := rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 1<<20), rapid.Uint64Range(0, 1<<32-1)).Draw(t, "lower")
		return upper<<32 | lower
	})
	return rapid.SliceOfN(key, 0, 300).Draw(t, label)
}

func TestBuilderHoldsExactlyWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := drawKeys(t, "keys")
		var b Builder
		for part := range slices.Chunk(keys, rapid.IntRange(1, 100).Draw(t, "chunk")) {
			b.Add(part)
		}
		want := slices.Compact(slices.Sorted(slices.Values(keys)))
		if got := slices.Collect(b.Set().All()); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestBuilderStaysSmallOnScatteredKeys(t *testing.T) {
	var b Builder
	for i := range uint64(1000) {
		b.Add([]uint64{i * 4_000_000})
	}
	if size := b.SizeBytes(); size > 1<<20 {
		t.Fatalf("%d bytes for 1000 keys", size)
	}
	if n := b.Set().Count(); n != 1000 {
		t.Fatalf("%d keys", n)
	}
}

func TestUnionAndIntersectEqualMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []uint64 { return drawKeys(t, "keys") }), 1, 5).Draw(t, "lists")
		sets := make([]*Set, len(lists))
		counts := map[uint64]int{}
		for i, keys := range lists {
			sets[i] = NewSet(keys...)
			for k := range sets[i].All() {
				counts[k]++
			}
		}
		if got := slices.Collect(Union(append(sets, nil)...).All()); !slices.Equal(got, slices.Sorted(maps.Keys(counts))) {
			t.Fatal("union")
		}
		maps.DeleteFunc(counts, func(_ uint64, n int) bool { return n < len(lists) })
		if got := slices.Collect(Intersect(sets...).All()); !slices.Equal(got, slices.Sorted(maps.Keys(counts))) {
			t.Fatal("intersection")
		}
	})
}
