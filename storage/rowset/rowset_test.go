package rowset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/internal/errs"
)

func TestAddressesPrintAsFragmentAndOffset(t *testing.T) {
	a := Addr(7, 42)
	if a.String() != "(7, 42)" || a.Fragment() != 7 || a.Offset() != 42 || uint64(a) != 7<<32|42 {
		t.Fatal(a)
	}
}

// keys draws a set that crowds into few upper halves, so that operations meet.
func keys(t *rapid.T, label string) map[uint64]bool {
	out := make(map[uint64]bool)
	for _, k := range rapid.SliceOfN(rapid.Uint64Range(0, 40), 0, 30).Draw(t, label) {
		out[(k%4)<<32|k] = true
	}
	return out
}

func setOf(m map[uint64]bool) *Set { return NewSet(slices.Collect(maps.Keys(m))...) }

func TestSetsBehaveLikeMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := keys(t, "a"), keys(t, "b")
		x, y := setOf(a), setOf(b)
		check := func(op string, got *Set, want func(k uint64) bool) {
			n := uint64(0)
			for k := range uint64(4) {
				for l := range uint64(41) {
					key := k<<32 | l
					if got.Contains(key) != want(key) {
						t.Fatalf("%s: key %d", op, key)
					}
					if want(key) {
						n++
					}
				}
			}
			all := slices.Collect(got.All())
			if got.Count() != n || uint64(len(all)) != n || !slices.IsSorted(all) || got.IsEmpty() != (n == 0) {
				t.Fatalf("%s: count %d, want %d, all %v", op, got.Count(), n, all)
			}
			for _, u := range got.Uppers() {
				if got.Bitmap(u).IsEmpty() {
					t.Fatalf("%s keeps an empty bitmap", op)
				}
			}
		}
		and, or, minus, clone := And(x, y), Or(x, y), AndNot(x, y), x.Clone()
		only := x.OnlyUppers(roaring.BitmapOf(1, 3))
		for _, s := range []*Set{and, or, minus, clone, only} { // results share nothing with their inputs
			s.AddRange(0, 0, 41)
		}
		check("a", x, func(k uint64) bool { return a[k] })
		check("b", y, func(k uint64) bool { return b[k] })
		check("and", And(x, y), func(k uint64) bool { return a[k] && b[k] })
		check("or", Or(x, y), func(k uint64) bool { return a[k] || b[k] })
		check("and not", AndNot(x, y), func(k uint64) bool { return a[k] && !b[k] })
		check("only", x.OnlyUppers(roaring.BitmapOf(1, 3)), func(k uint64) bool { return a[k] && (k>>32)%2 == 1 })
		if Equal(x, y) != maps.Equal(a, b) || !Equal(x, x.Clone()) {
			t.Fatal("equal")
		}
		tree, err := AppendTree(nil, x)
		if err != nil {
			t.Fatal(err)
		}
		back, whole, err := ParseTree(tree)
		if err != nil || len(whole) != 0 || !Equal(back, x) {
			t.Fatalf("tree: %v %v", whole, err)
		}
	})
}

func TestNilIsTheEmptySet(t *testing.T) {
	var s *Set
	if s.Contains(1) || s.Count() != 0 || s.SizeBytes() != 0 || len(s.Uppers()) != 0 || s.Bitmap(0) != nil || !s.Clone().IsEmpty() {
		t.Fatal("nil set")
	}
	one := NewSet(1)
	if !And(s, one).IsEmpty() || !Equal(Or(s, one), one) || !Equal(AndNot(one, s), one) || !s.OnlyUppers(roaring.New()).IsEmpty() {
		t.Fatal("nil operand")
	}
}

func TestTreesThatMakeNoSense(t *testing.T) {
	u32 := func(ns ...uint32) []byte {
		var b []byte
		for _, n := range ns {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		return b
	}
	bm, err := roaring.BitmapOf(1, 2, 3).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	entry := func(upper uint32) []byte { return append(u32(upper, uint32(len(bm))), bm...) }
	for _, tc := range []struct {
		name string
		b    []byte
		text string
	}{
		{"nothing at all", nil, "too short"},
		{"more entries than bytes", u32(1000, 0, 0), "1000 entries"},
		{"an entry cut off", append(u32(2), append(entry(1), 9, 9, 9, 9, 9, 9, 9)...), "cut off"},
		{"a bitmap longer than the rest", append(u32(1, 5, 500), bm...), "500 bytes of bitmap"},
		{"entries out of order", append(append(u32(2), entry(2)...), entry(1)...), "entry 1 after 2"},
		{"an entry twice", append(append(u32(2), entry(2)...), entry(2)...), "entry 2 after 2"},
		{"a bitmap shorter than its size", append(u32(1, 5, uint32(len(bm)+1)), append(slices.Clone(bm), 0)...), "uses"},
		{"a bitmap of garbage", append(u32(1, 5, 8), 1, 2, 3, 4, 5, 6, 7, 8), "Cookie"},
		{"bytes behind the end", append(append(u32(1), entry(1)...), 0), "behind"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := ParseTree(tc.b)
			if !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("got %v", err)
			}
		})
	}
	set, whole, err := ParseTree(append(u32(2, 7, 0), entry(9)...))
	if err != nil || fmt.Sprint(whole) != "[7]" || set.Count() != 3 {
		t.Fatalf("a whole fragment: %v %v %v", set, whole, err)
	}
	if set, _, err := ParseTree(u32(0)); err != nil || !set.IsEmpty() {
		t.Fatalf("no entries: %v", err)
	}
}

// FuzzParseTree: any bytes are ErrCorrupt or a set that survives a round trip.
func FuzzParseTree(f *testing.F) {
	s := NewSet(1, 2, 5<<32, 6<<32|70000)
	s.AddRange(9, 0, 70000)
	s.parts[9].RunOptimize()
	seed, err := AppendTree(nil, s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		set, _, err := ParseTree(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := AppendTree(nil, set)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := ParseTree(again)
		if err != nil || !Equal(back, set) {
			t.Fatalf("no round trip: %v", err)
		}
	})
}
