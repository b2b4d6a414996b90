package btree_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

var ctx = context.Background()

func build(tb segtest.TB, store object.Store, values arrow.Array, keys []uint64, pageRows int, version file.Version) *btree.Segment {
	tb.Helper()
	b, err := btree.NewBuilder("c", values.DataType(), index.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer b.Free()
	b.SetPageRows(pageRows)
	for start := 0; start < len(keys); start += 1000 {
		end := min(start+1000, len(keys))
		part := array.NewSlice(values, int64(start), int64(end))
		if err := b.Add(ctx, part, keys[start:end]); err != nil {
			tb.Fatal(err)
		}
		part.Release()
	}
	if _, err := b.Write(ctx, segtest.Create(tb, store, "seg/"+btree.DataFileName), segtest.Create(tb, store, "seg/"+btree.LookupFileName), version); err != nil {
		tb.Fatal(err)
	}
	s, err := btree.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "b"}, index.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// question is a predicate over indices into a type's values; -1 = unbounded.
type question struct {
	op       index.Op
	args     []int
	lowerIn  bool
	upperIn  bool
	evaluate func(v int) bool
}

func drawQuestion(t *rapid.T, typ segtest.Type) question {
	value := func(low int) int { return rapid.IntRange(low, len(typ.Values)-1).Draw(t, "value") }
	switch rapid.IntRange(0, 4).Draw(t, "op") {
	case 0:
		v := value(0)
		return question{op: index.OpEq, args: []int{v}, evaluate: func(x int) bool { return x == v }}
	case 1:
		vs := rapid.SliceOfN(rapid.IntRange(0, len(typ.Values)-1), 1, 4).Draw(t, "values")
		return question{op: index.OpIn, args: vs, evaluate: func(x int) bool { return slices.Contains(vs, x) }}
	case 2:
		lo, hi, in1, in2 := value(-1), value(-1), rapid.Bool().Draw(t, "lower in"), rapid.Bool().Draw(t, "upper in")
		return question{op: index.OpRange, args: []int{lo, hi}, lowerIn: in1, upperIn: in2, evaluate: func(x int) bool {
			return (lo < 0 || x > lo || in1 && x == lo) && (hi < 0 || x < hi || in2 && x == hi)
		}}
	case 3:
		return question{op: index.OpIsNull}
	}
	return question{op: index.OpIsNotNull}
}

func (q question) predicate(tb segtest.TB, typ segtest.Type) index.Predicate {
	p := index.Predicate{Op: q.op, LowerInclusive: q.lowerIn, UpperInclusive: q.upperIn}
	if q.args != nil {
		p.Values = typ.Needles(tb, q.args...)
	}
	return p
}

func (q question) verdict(v int) segtest.Verdict {
	switch {
	case q.op == index.OpIsNull:
		return segtest.Of(v < 0)
	case q.op == index.OpIsNotNull:
		return segtest.Of(v >= 0)
	case v < 0:
		return -1
	}
	return segtest.Of(q.evaluate(v))
}

func TestEveryTypeAnswersAsAScanDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := segtest.Types[rapid.IntRange(0, len(segtest.Types)-1).Draw(t, "type")]
		column := rapid.SliceOfN(rapid.IntRange(-1, len(typ.Values)-1), 0, 120).Draw(t, "column")
		keys := segtest.DrawKeys(t, len(column))
		version := rapid.SampledFrom([]file.Version{file.V21, file.V22}).Draw(t, "version")
		s := build(t, object.NewMemory("t"), segtest.Array(t, typ.Arrow, typ.JSONList(column)), keys, rapid.IntRange(1, 40).Draw(t, "page rows"), version)
		for range 4 {
			q := drawQuestion(t, typ)
			p := q.predicate(t, typ)
			truth, match, err := s.Lookup(ctx, p)
			if err != nil || match != index.Exact {
				t.Fatalf("%d: %v %v", p.Op, match, err)
			}
			segtest.Check(t, fmt.Sprintf("op %d %v of %v", p.Op, q.args, column), truth, keys, func(i int) segtest.Verdict { return q.verdict(column[i]) })
			if n, err := s.Estimate(ctx, p); err != nil || n != int64(truth.True.Count()) {
				t.Fatalf("estimate %d for %d rows, %v", n, truth.True.Count(), err)
			}
		}
	})
}

// wide is a column of doubles with NULLs, NaNs and both zeros, over several real pages.
func wide(n int) (arrow.Array, []float64, []uint64) {
	r := rand.New(rand.NewPCG(1, 2))
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	values, keys := make([]float64, n), make([]uint64, n)
	for i := range values {
		keys[i] = uint64(i%3)<<32 | uint64(i/3)
		switch v := r.IntN(20); v {
		case 0:
			values[i] = math.NaN()
		case 1:
			values[i] = math.Copysign(math.NaN(), -1)
		case 2:
			values[i] = math.Copysign(0, -1)
		case 3:
			values[i] = 0
		default:
			values[i] = float64(r.IntN(2000)-1000) / 4
		}
		if r.IntN(4) == 0 {
			values[i] = math.Inf(1) // stands for NULL below
			b.AppendNull()
		} else {
			b.Append(values[i])
		}
	}
	return b.NewArray(), values, keys
}

func TestFloatsCompareAsInSQLOverManyPages(t *testing.T) {
	arr, values, keys := wide(40_000)
	s := build(t, object.NewMemory("t"), arr, keys, 4096, file.V22)
	bound := func(lo, hi float64, noLo, noHi bool) arrow.Array {
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		for _, v := range []struct {
			v    float64
			none bool
		}{{lo, noLo}, {hi, noHi}} {
			if v.none {
				b.AppendNull()
			} else {
				b.Append(v.v)
			}
		}
		return b.NewArray()
	}
	for _, c := range []struct {
		name  string
		p     index.Predicate
		holds func(v float64) bool
	}{
		{"= 0", index.Predicate{Op: index.OpEq, Values: segtest.Array(t, arrow.PrimitiveTypes.Float64, `[0]`)}, func(v float64) bool { return v == 0 }},
		{"> 0", index.Predicate{Op: index.OpRange, Values: bound(0, 0, false, true)}, func(v float64) bool { return v > 0 }},
		{">= -0", index.Predicate{Op: index.OpRange, Values: bound(math.Copysign(0, -1), 0, false, true), LowerInclusive: true}, func(v float64) bool { return v >= 0 }},
		{"< 0", index.Predicate{Op: index.OpRange, Values: bound(0, 0, true, false)}, func(v float64) bool { return v < 0 }},
		{"<= 249", index.Predicate{Op: index.OpRange, Values: bound(0, 249, true, false), UpperInclusive: true}, func(v float64) bool { return v <= 249 }},
		{"between", index.Predicate{Op: index.OpRange, Values: bound(-20, 20, false, false), LowerInclusive: true}, func(v float64) bool { return v >= -20 && v < 20 }},
		{"= NaN", index.Predicate{Op: index.OpEq, Values: bound(math.NaN(), 0, false, true)}, nil},
		{"not NULL", index.Predicate{Op: index.OpRange, Values: bound(0, 0, true, true)}, func(float64) bool { return true }},
	} {
		if c.holds == nil {
			c.p.Values = array.NewSlice(c.p.Values, 0, 1)
			c.holds = func(float64) bool { return false }
		}
		for range 2 { // once cold, once from the cache
			truth, _, err := s.Lookup(ctx, c.p)
			if err != nil {
				t.Fatal(err)
			}
			segtest.Check(t, c.name, truth, keys, func(i int) segtest.Verdict {
				if math.IsInf(values[i], 1) {
					return -1
				}
				return segtest.Of(c.holds(values[i]))
			})
		}
	}
}

// sequence has value i*3 in row i.
func sequence(tb segtest.TB, store object.Store, n int) *btree.Segment {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	keys := make([]uint64, n)
	for i := range keys {
		b.Append(int64(i) * 3)
		keys[i] = uint64(i)
	}
	return build(tb, store, b.NewArray(), keys, 4096, file.V22)
}

func TestALookupReadsTwoPagesAtMost(t *testing.T) {
	memoryStore := object.NewMemory("t")
	sequence(t, memoryStore, 1_000_000)
	store := object.NewCounting(memoryStore, object.CountingOptions{})
	budget := mem.NewBudget("index", 0, nil)
	s, err := btree.Open(ctx, segtest.Opener(store, "seg"), index.Meta{}, index.OpenOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	if opened := store.Total().Bytes; opened > 64<<10 || budget.Used() == 0 || budget.Used() > 64<<10 {
		t.Errorf("opening read %d bytes, keeps %d", opened, budget.Used())
	}
	ints := func(v string) arrow.Array { return segtest.Array(t, arrow.PrimitiveTypes.Int64, v) }
	for _, c := range []struct {
		p     index.Predicate
		count uint64
		bytes int64
	}{
		{index.Predicate{Op: index.OpEq, Values: ints(`[300000]`)}, 1, 2 * 4096 * 8 * 2},
		{index.Predicate{Op: index.OpEq, Values: ints(`[300001]`)}, 0, 4096 * 8},
		{index.Predicate{Op: index.OpRange, Values: ints(`[1500000, 1530000]`)}, 9999, 5 * 4096 * 8 * 2},
		{index.Predicate{Op: index.OpIsNull}, 0, 0},
	} {
		store.Reset()
		truth, _, err := s.Lookup(ctx, c.p)
		if err != nil || truth.True.Count() != c.count || truth.Null.Count() != 0 {
			t.Fatalf("op %d: %d rows, %v", c.p.Op, truth.True.Count(), err)
		}
		if read := store.Total().Bytes; read > c.bytes {
			t.Errorf("op %d: read %d bytes, more than %d", c.p.Op, read, c.bytes)
		}
	}
	if err := s.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes paid after Close", budget.Used())
	}
}

func TestEmptyColumn(t *testing.T) {
	s := build(t, object.NewMemory("t"), segtest.Array(t, arrow.PrimitiveTypes.Int32, `[]`), nil, 4096, file.V22)
	for _, p := range []index.Predicate{
		{Op: index.OpEq, Values: segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1]`)}, {Op: index.OpIsNull}, {Op: index.OpIsNotNull},
	} {
		truth, _, err := s.Lookup(ctx, p)
		if err != nil || !truth.True.IsEmpty() || !truth.Null.IsEmpty() {
			t.Errorf("op %d: %v %v", p.Op, truth, err)
		}
	}
}

func TestPredicatesThatCannotBeAnswered(t *testing.T) {
	s := build(t, object.NewMemory("t"), segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1]`), []uint64{0}, 4096, file.V22)
	if _, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpEq, Values: segtest.Array(t, arrow.PrimitiveTypes.Int64, `[1]`)}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a wider literal: %v", err)
	}
	if _, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpHas, Values: segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1]`)}); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("has: %v", err)
	}
	if _, ok := s.Answers(index.OpHas); ok {
		t.Error("it says that it answers has")
	}
}

func TestMemoryOfLookupsGoesThroughTheAllocatorOfTheContext(t *testing.T) {
	s := sequence(t, object.NewMemory("t"), 50_000)
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	checked := compute.WithAllocator(ctx, alloc)
	for _, values := range []string{`[3, 9]`, `[10, 120000]`, `[null, 149000]`} {
		if _, _, err := s.Lookup(checked, index.Predicate{Op: index.OpRange, Values: segtest.Array(t, arrow.PrimitiveTypes.Int64, values)}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := btree.NewBuilder("c", arrow.PrimitiveTypes.Int64, index.BuildOptions{Budget: mem.NewBudget("build", 100, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add(ctx, segtest.Array(t, arrow.PrimitiveTypes.Int64, `[1,2,3]`), make([]uint64, 3)); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("building within 100 bytes: %v", err)
	}
}

func TestFilesThatContradictThemselvesAreCorrupt(t *testing.T) {
	store := object.NewMemory("t")
	build(t, store, segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1,2,3,4,5,6]`), []uint64{0, 1, 2, 3, 4, 5}, 2, file.V22)
	other := object.NewMemory("t")
	build(t, other, segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1,2,3,4,5,6,7,8]`), make([]uint64, 8), 2, file.V22)
	third := object.NewMemory("t")
	build(t, third, segtest.Array(t, arrow.PrimitiveTypes.Int32, `[11,12,3,14,15,16]`), make([]uint64, 6), 2, file.V22)
	swap := func(dataFrom, lookupFrom object.Store) index.OpenFile {
		return func(ctx context.Context, name string) (object.File, error) {
			if name == btree.DataFileName {
				return segtest.Opener(dataFrom, "seg")(ctx, name)
			}
			return segtest.Opener(lookupFrom, "seg")(ctx, name)
		}
	}
	if _, err := btree.Open(ctx, swap(store, other), index.Meta{}, index.OpenOptions{}); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("bounds of more pages: %v", err)
	}
	s, err := btree.Open(ctx, swap(third, store), index.Meta{}, index.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckPage(ctx, 0); !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), "seg/page_data.lance") {
		t.Errorf("values outside their bounds: %v", err)
	}
}

// FuzzSegment opens mutated files and asks them: ErrCorrupt, another error of a known kind, or an answer; never a panic.
func FuzzSegment(f *testing.F) {
	store := object.NewMemory("t")
	arr, _, keys := wide(3000)
	build(f, store, arr, keys, 700, file.V22)
	files := segtest.Files(f, store, "seg")
	f.Add([]byte{}, []byte{})
	f.Add([]byte{1, 2, 3}, []byte{0, 40, 0xFF})
	f.Fuzz(func(t *testing.T, data, lookup []byte) {
		broken := object.NewMemory("t")
		for name, edits := range map[string][]byte{btree.DataFileName: data, btree.LookupFileName: lookup} {
			if err := broken.Put(ctx, "seg/"+name, segtest.Fuzz(files[name], edits), false); err != nil {
				t.Fatal(err)
			}
		}
		s, err := btree.Open(ctx, segtest.Opener(broken, "seg"), index.Meta{}, index.OpenOptions{Budget: mem.NewBudget("fuzz", 64<<20, nil)})
		if segtest.Tolerable(t, err) {
			return
		}
		for _, bits := range []uint64{math.Float64bits(1), math.Float64bits(-3)} {
			b := array.NewFloat64Builder(memory.DefaultAllocator)
			b.Append(math.Float64frombits(bits))
			b.Append(math.Float64frombits(binary.BigEndian.Uint64([]byte{0x40, 0x60, 0, 0, 0, 0, 0, 0})))
			_, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpRange, Values: b.NewArray()})
			segtest.Tolerable(t, err)
		}
		_, _, err = s.Lookup(ctx, index.Predicate{Op: index.OpIsNull})
		segtest.Tolerable(t, err)
	})
}

func BenchmarkLookup(b *testing.B) {
	s := sequence(b, object.NewMemory("t"), 1_000_000)
	for name, values := range map[string]string{"one": `[300000, 300000]`, "8 percent": `[300000, 540000]`, "90 percent": `[100000, 2800000]`} {
		p := index.Predicate{Op: index.OpRange, Values: segtest.Array(b, arrow.PrimitiveTypes.Int64, values), LowerInclusive: true, UpperInclusive: true}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Lookup(ctx, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestTenThousandValues(t *testing.T) {
	memoryStore := object.NewMemory("t")
	sequence(t, memoryStore, 100_000) // value 3i in row i
	store := object.NewCounting(memoryStore, object.CountingOptions{})
	s, err := btree.Open(ctx, segtest.Opener(store, "seg"), index.Meta{}, index.OpenOptions{CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	values := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range 10_000 {
		values.Append(int64(9_999-i) * 15) // descending; every fifth row of the first half
	}
	store.Reset()
	truth, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpIn, Values: values.NewArray()})
	if err != nil || truth.True.Count() != 10_000 || !truth.True.Contains(49_995) || truth.True.Contains(49_996) {
		t.Fatalf("%d rows, %v", truth.True.Count(), err)
	}
	if read := store.Total().Bytes; read > 60_000*16 {
		t.Errorf("read %d bytes: pages were read more than once", read)
	}
}
