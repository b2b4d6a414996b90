package rowset

import (
	"maps"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"
)

// TestSharedPartsAreCopiedBeforeAChange makes every kind of new set from x and y, changes the sources, and then the new sets: none sees another's change.
func TestSharedPartsAreCopiedBeforeAChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := keys(t, "a"), keys(t, "b")
		x, y := setOf(a), setOf(b)
		limit := func(upper uint32) (uint64, *roaring.Bitmap, bool) { return 30, nil, upper != 2 }
		made := map[string]*Set{
			"clone": x.Clone(), "and itself": And(x, x), "or": Or(x, y), "or nothing": Or(x, nil), "minus": AndNot(x, y), "only": x.OnlyUppers(roaring.BitmapOf(0, 1)),
			"union": Union(x, y), "union of one": Union(x), "intersection of one": Intersect(x), "intersection": Intersect(x, y), "below": x.Below(limit),
		}
		want := make(map[string]*Set)
		for name, s := range made {
			want[name] = setOf(toMap(s))
		}
		change := rapid.SampledFrom([]func(*Set){
			func(s *Set) { s.AddRange(0, 0, 41); s.AddRange(1, 0, 41) },
			func(s *Set) { s.Add(1<<32 | 40); s.Add(3) },
			func(s *Set) { s.AddBitmap(0, roaring.BitmapOf(40, 39)); s.AddBitmap(3, roaring.BitmapOf(39)) },
			func(s *Set) { s.Adopt(0, roaring.BitmapOf(7)) },
		})
		change.Draw(t, "change x")(x)
		change.Draw(t, "change y")(y)
		for name, s := range made {
			if !Equal(s, want[name]) {
				t.Fatalf("%s changed with its source", name)
			}
		}
		nowX, nowY := toMap(x), toMap(y)
		for name, s := range made {
			change.Draw(t, "change "+name)(s)
			if !maps.Equal(toMap(x), nowX) || !maps.Equal(toMap(y), nowY) {
				t.Fatalf("a source changed with %s", name)
			}
		}
	})
}

func TestAnAdoptedBitmapMayStandInSeveralSets(t *testing.T) {
	b := roaring.BitmapOf(1, 2)
	var x, y Set
	x.Adopt(7, b)
	y.Adopt(7, b)
	x.Add(7<<32 | 3)
	if y.Count() != 2 || b.GetCardinality() != 2 || x.Count() != 3 {
		t.Fatal(x.Count(), y.Count(), b.GetCardinality())
	}
}

func TestCountsAndBoundsEqualTheSetsThatTheySpare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, dead := keys(t, "a"), keys(t, "b"), keys(t, "dead")
		x, y, gone := setOf(a), setOf(b), setOf(dead)
		if got, want := AndCount(x, y), And(x, y).Count(); got != want {
			t.Fatalf("AndCount %d, And has %d", got, want)
		}
		if AndCount(x, nil)+AndCount(nil, x) != 0 {
			t.Fatal("AndCount with no set")
		}
		ends := []uint64{rapid.Uint64Range(0, 45).Draw(t, "end"), 41, 1 << 32, 0}
		got := x.Below(func(upper uint32) (uint64, *roaring.Bitmap, bool) { return ends[upper], gone.Bitmap(upper), upper != 2 })
		want := make(map[uint64]bool)
		for k := range a {
			if k>>32 != 2 && uint64(uint32(k)) < ends[k>>32] && !dead[k] {
				want[k] = true
			}
		}
		if !maps.Equal(toMap(got), want) {
			t.Fatalf("Below %v, want %v", toMap(got), want)
		}
		for _, u := range got.Uppers() {
			if got.Bitmap(u).IsEmpty() {
				t.Fatal("Below keeps an empty bitmap")
			}
		}
	})
}

func toMap(s *Set) map[uint64]bool {
	out := make(map[uint64]bool)
	for k := range s.All() {
		out[k] = true
	}
	return out
}
