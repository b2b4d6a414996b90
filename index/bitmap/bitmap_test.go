package bitmap_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

var ctx = context.Background()

func build(tb segtest.TB, store object.Store, values arrow.Array, keys []uint64, version file.Version, opts index.OpenOptions) *bitmap.Segment {
	tb.Helper()
	c, err := bitmap.NewCollector(values.DataType(), index.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Free()
	if err := c.Add(values, keys); err != nil {
		tb.Fatal(err)
	}
	if _, err := c.Write(ctx, segtest.Create(tb, store, "seg/"+bitmap.FileName), bitmap.WriteOptions{Version: version}); err != nil {
		tb.Fatal(err)
	}
	s, err := bitmap.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "b"}, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestEveryTypeAnswersAsAScanDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := segtest.Types[rapid.IntRange(0, len(segtest.Types)-1).Draw(t, "type")]
		column := rapid.SliceOfN(rapid.IntRange(-1, len(typ.Values)-1), 0, 60).Draw(t, "column")
		keys := segtest.DrawKeys(t, len(column))
		version := rapid.SampledFrom([]file.Version{file.V21, file.V22}).Draw(t, "version")
		opts := index.OpenOptions{CacheBytes: rapid.SampledFrom([]int64{1, 0}).Draw(t, "cache")} // 1: nothing fits
		s := build(t, object.NewMemory("t"), segtest.Array(t, typ.Arrow, typ.JSONList(column)), keys, version, opts)
		lo, hi := rapid.IntRange(-1, len(typ.Values)-1).Draw(t, "lo"), rapid.IntRange(-1, len(typ.Values)-1).Draw(t, "hi")
		loIn, hiIn := rapid.Bool().Draw(t, "lower in"), rapid.Bool().Draw(t, "upper in")
		in := rapid.SliceOfN(rapid.IntRange(0, len(typ.Values)-1), 1, 4).Draw(t, "in")
		unlessNull := func(holds func(v int) bool) func(v int) segtest.Verdict {
			return func(v int) segtest.Verdict {
				if v < 0 {
					return -1
				}
				return segtest.Of(holds(v))
			}
		}
		for _, c := range []struct {
			p       index.Predicate
			verdict func(v int) segtest.Verdict
		}{
			{index.Predicate{Op: index.OpEq, Values: typ.Needles(t, in[0])}, unlessNull(func(v int) bool { return v == in[0] })},
			{index.Predicate{Op: index.OpIn, Values: typ.Needles(t, in...)}, unlessNull(func(v int) bool { return slices.Contains(in, v) })},
			{
				index.Predicate{Op: index.OpRange, Values: typ.Needles(t, lo, hi), LowerInclusive: loIn, UpperInclusive: hiIn},
				unlessNull(func(v int) bool {
					return (lo < 0 || v > lo || loIn && v == lo) && (hi < 0 || v < hi || hiIn && v == hi)
				}),
			},
			{index.Predicate{Op: index.OpIsNull}, func(v int) segtest.Verdict { return segtest.Of(v < 0) }},
			{index.Predicate{Op: index.OpIsNotNull}, func(v int) segtest.Verdict { return segtest.Of(v >= 0) }},
		} {
			truth, match, err := s.Lookup(ctx, c.p)
			if err != nil || match != index.Exact {
				t.Fatalf("op %d: %v %v", c.p.Op, match, err)
			}
			segtest.Check(t, fmt.Sprintf("op %d of %v", c.p.Op, column), truth, keys, func(i int) segtest.Verdict { return c.verdict(column[i]) })
			if n, err := s.Estimate(ctx, c.p); err != nil || n != int64(truth.True.Count()) {
				t.Fatalf("estimate %d for %d rows, %v", n, truth.True.Count(), err)
			}
		}
	})
}

func TestManyValuesGoThroughSeveralBatches(t *testing.T) {
	const n = 5000
	b := array.NewInt32Builder(memory.DefaultAllocator)
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
		b.Append(int32(n - i))
	}
	s := build(t, object.NewMemory("t"), b.NewArray(), keys, file.V22, index.OpenOptions{CacheBytes: 4096})
	truth, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpRange, Values: segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1000, 4000]`)})
	if err != nil || truth.True.Count() != 2999 || !truth.True.Contains(n-1001) || truth.True.Contains(n-1000) {
		t.Fatalf("%d rows, %v", truth.True.Count(), err)
	}
	if n, err := s.Estimate(ctx, index.Predicate{Op: index.OpIsNotNull}); err != nil || n != -1 {
		t.Fatalf("estimate of 5000 values: %d %v", n, err)
	}
}

func TestPredicatesThatCannotBeAnswered(t *testing.T) {
	s := build(t, object.NewMemory("t"), segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1]`), []uint64{0}, file.V22, index.OpenOptions{})
	if _, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpEq, Values: segtest.Array(t, arrow.PrimitiveTypes.Int64, `[1]`)}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a wider literal: %v", err)
	}
	if _, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpHas, Values: segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1]`)}); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("has: %v", err)
	}
	_, err := bitmap.Open(ctx, segtest.Opener(object.NewMemory("t"), "seg"), index.Meta{Version: 2}, index.OpenOptions{})
	if !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("a newer version: %v", err)
	}
	_, err = bitmap.Open(ctx, segtest.Opener(object.NewMemory("t"), "seg"), index.Meta{}, index.OpenOptions{})
	if !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("a missing file: %v", err)
	}
}

// bytesOf reads hex with blanks.
func bytesOf(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestRowMapsOfTheFormatPage(t *testing.T) {
	drawn := bytesOf(t, `02000000 00000000 14000000 3a300000 01000000 0000 0100 10000000 0200 0500`+
		`07000000 12000000 3a300000 01000000 0000 0000 10000000 0000`)
	set, err := bitmap.DecodeRows(drawn, nil)
	if err != nil || !rowset.Equal(set, rowset.NewSet(2, 5, 7<<32)) {
		t.Fatalf("%v %v", set, err)
	}
	back, err := rowset.AppendTree(nil, set)
	if err != nil || !slices.Equal(back, drawn) {
		t.Fatalf("written as %x, %v", back, err)
	}
	if set, err = bitmap.DecodeRows(bytesOf(t, `00000000`), nil); err != nil || !set.IsEmpty() {
		t.Fatalf("the empty map: %v %v", set, err)
	}
}

func TestWholeFragments(t *testing.T) {
	whole := bytesOf(t, `02000000 03000000 00000000 09000000 00000000`)
	set, err := bitmap.DecodeRows(whole, func(fragment uint32) (uint64, bool) { return 100, fragment == 3 })
	if err != nil {
		t.Fatal(err)
	}
	if n := set.Bitmap(3).GetCardinality(); n != 100 {
		t.Errorf("the fragment of known size has %d rows", n)
	}
	if n := set.Bitmap(9).GetCardinality(); n != 1<<32 || !set.Contains(9<<32|0xFFFF_FFFF) {
		t.Errorf("the fragment of unknown size has %d rows", n)
	}
	alive := rowset.NewSet(3<<32|99, 9<<32|5, 9<<32|70_000)
	if got := rowset.And(set, alive); !rowset.Equal(got, alive) {
		t.Errorf("masked: %v", slices.Collect(got.All()))
	}
	var many []byte
	many = append(many, 0xFF, 0, 0, 0)
	for i := range 255 {
		many = append(many, byte(i), 0, 0, 0, 0, 0, 0, 0)
	}
	if _, err := bitmap.DecodeRows(many, nil); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("255 fragments of unknown size: %v", err)
	}
	if _, err := bitmap.DecodeRows(many, func(uint32) (uint64, bool) { return 10, true }); err != nil {
		t.Errorf("255 fragments of known size: %v", err)
	}
}

func TestDenseColumnsFitASmallBudget(t *testing.T) {
	const rows, batch = 2_000_000, 10_000
	budget := mem.NewBudget("build", 2<<20, nil) // the rows themselves, at 8 bytes each, would take 16 MB
	c, err := bitmap.NewCollector(arrow.PrimitiveTypes.Int32, index.BuildOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewInt32Builder(memory.DefaultAllocator)
	for i := range batch {
		b.Append(int32(i % 2))
	}
	values, keys := b.NewArray(), make([]uint64, batch)
	for start := 0; start < rows; start += batch {
		for i := range keys {
			keys[i] = uint64(start + i)
		}
		if err := c.Add(values, keys); err != nil {
			t.Fatalf("after %d rows: %v", start, err)
		}
	}
	if budget.Used() == 0 && c.Runs() == 0 {
		t.Errorf("%d runs, %d bytes paid", c.Runs(), budget.Used())
	}
	if c.Free(); budget.Used() != 0 {
		t.Errorf("%d bytes paid after Free", budget.Used())
	}
}

func FuzzDecodeRows(f *testing.F) {
	f.Add(bytesOf(f, `01000000 00000000 14000000 3a300000 01000000 0000 0100 10000000 0200 0500`))
	f.Add(bytesOf(f, `02000000 03000000 00000000 09000000 00000000`))
	set := rowset.NewSet(1, 70_000, 5<<32)
	set.AddRange(8, 0, 100_000)
	seed, err := rowset.AppendTree(nil, set)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := bitmap.DecodeRows(b, func(fragment uint32) (uint64, bool) { return uint64(fragment % 1000), fragment%3 != 0 })
		if segtest.Tolerable(t, err) {
			return
		}
		if n := set.Count(); n > 0 && !set.Contains(first(set)) {
			t.Fatal("the first key is not in the set")
		}
	})
}

func first(set *rowset.Set) uint64 {
	for k := range set.All() {
		return k
	}
	return 0
}

// FuzzSegment opens mutated files and asks them: an error of a known kind or an answer; never a panic.
func FuzzSegment(f *testing.F) {
	store := object.NewMemory("t")
	b := array.NewStringBuilder(memory.DefaultAllocator)
	keys := make([]uint64, 3000)
	for i := range keys {
		keys[i] = uint64(i%2)<<32 | uint64(i)
		if i%10 == 0 {
			b.AppendNull()
		} else {
			b.Append(fmt.Sprintf("value %d", i%7))
		}
	}
	build(f, store, b.NewArray(), keys, file.V22, index.OpenOptions{})
	content := segtest.Files(f, store, "seg")[bitmap.FileName]
	f.Add([]byte{})
	f.Add([]byte{0, 9, 1, 2, 7, 0xFF})
	f.Fuzz(func(t *testing.T, edits []byte) {
		broken := object.NewMemory("t")
		if err := broken.Put(ctx, "seg/"+bitmap.FileName, segtest.Fuzz(content, edits), false); err != nil {
			t.Fatal(err)
		}
		s, err := bitmap.Open(ctx, segtest.Opener(broken, "seg"), index.Meta{}, index.OpenOptions{Budget: mem.NewBudget("fuzz", 64<<20, nil)})
		if segtest.Tolerable(t, err) {
			return
		}
		if s.File().Keys().Codec().Type().ID() == arrow.STRING {
			_, _, err = s.Lookup(ctx, index.Predicate{Op: index.OpEq, Values: segtest.Array(t, arrow.BinaryTypes.String, `["value 3"]`)})
			segtest.Tolerable(t, err)
		}
		_, _, err = s.Lookup(ctx, index.Predicate{Op: index.OpIsNotNull})
		segtest.Tolerable(t, err)
	})
}
