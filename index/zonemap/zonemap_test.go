package zonemap_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/index/zonemap"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

var ctx = context.Background()

// table is rows of some fragments: every address, those that are live, and the values of those.
type table struct {
	rows   []uint64 // physical rows by fragment
	addrs  []uint64 // of live rows
	values []int    // index into the type's values, -1 = NULL
}

func drawTable(t *rapid.T, typ segtest.Type) table {
	var out table
	for f := range rapid.IntRange(1, 3).Draw(t, "fragments") {
		n := rapid.IntRange(1, 30).Draw(t, "rows")
		out.rows = append(out.rows, uint64(n))
		for i := range n {
			if rapid.IntRange(0, 9).Draw(t, "deleted") > 1 {
				out.addrs = append(out.addrs, uint64(f)<<32|uint64(i))
				out.values = append(out.values, rapid.IntRange(-1, len(typ.Values)-1).Draw(t, "value"))
			}
		}
	}
	return out
}

func (d *table) fragmentRows(id uint32) (uint64, bool) {
	if int(id) >= len(d.rows) {
		return 0, false
	}
	return d.rows[id], true
}

func (d *table) covers() *roaring.Bitmap {
	out := roaring.New()
	out.AddRange(0, uint64(len(d.rows)))
	return out
}

func newBuilder(tb segtest.TB, t arrow.DataType, perZone uint64) *zonemap.Builder {
	tb.Helper()
	b, err := zonemap.NewBuilder("c", t, perZone, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func write(tb segtest.TB, store object.Store, b *zonemap.Builder, dir string, version file.Version) {
	tb.Helper()
	if _, err := b.Write(ctx, segtest.Create(tb, store, dir+"/"+zonemap.FileName), version); err != nil {
		tb.Fatal(err)
	}
}

func open(tb segtest.TB, store object.Store, dir string, d *table) *zonemap.Segment {
	tb.Helper()
	s, err := zonemap.Open(ctx, segtest.Opener(store, dir), index.Meta{Name: "z", Covers: d.covers()}, index.OpenOptions{FragmentRows: d.fragmentRows})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// checkAtMost fails where a row that is TRUE or NULL is in neither set.
func checkAtMost(tb segtest.TB, what string, got index.Truth, d *table, verdict func(v int) segtest.Verdict) {
	tb.Helper()
	if !rowset.And(got.True, got.Null).IsEmpty() {
		tb.Fatalf("%s: TRUE and NULL share rows", what)
	}
	for i, a := range d.addrs {
		in := got.True.Contains(a) || got.Null.Contains(a)
		if verdict(d.values[i]) != 0 && !in {
			tb.Fatalf("%s: row %s of value %d is ruled out", what, rowset.RowAddr(a), d.values[i])
		}
		if verdict(d.values[i]) == 1 && !got.True.Contains(a) {
			tb.Fatalf("%s: row %s of value %d is not among the TRUE ones", what, rowset.RowAddr(a), d.values[i])
		}
	}
}

func TestNoRowThatMatchesIsRuledOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := segtest.Types[rapid.IntRange(0, len(segtest.Types)-1).Draw(t, "type")]
		d := drawTable(t, typ)
		perZone := uint64(rapid.IntRange(1, 9).Draw(t, "rows per zone"))
		version := rapid.SampledFrom([]file.Version{file.V21, file.V22}).Draw(t, "version")
		b := newBuilder(t, typ.Arrow, perZone)
		values := segtest.Array(t, typ.Arrow, typ.JSONList(d.values))
		step := rapid.IntRange(1, 40).Draw(t, "batch")
		for start := 0; start < len(d.addrs); start += step {
			end := min(start+step, len(d.addrs))
			part := array.NewSlice(values, int64(start), int64(end))
			if err := b.Add(ctx, part, d.addrs[start:end]); err != nil {
				t.Fatal(err)
			}
			part.Release()
		}
		store := object.NewMemory("t")
		write(t, store, b, "a", version)
		s := open(t, store, "a", &d)
		check(t, s, typ, &d)

		// Taken over whole, it answers alike; of some fragments it holds nothing else.
		again := newBuilder(t, typ.Arrow, perZone)
		if err := again.AddSegment(s, d.covers()); err != nil {
			t.Fatal(err)
		}
		write(t, store, again, "b", version)
		check(t, open(t, store, "b", &d), typ, &d)
		some := newBuilder(t, typ.Arrow, perZone)
		if err := some.AddSegment(s, roaring.BitmapOf(0)); err != nil {
			t.Fatal(err)
		}
		write(t, store, some, "c", version)
		for z := range open(t, store, "c", &d).Zones {
			if z.Fragment != 0 {
				t.Fatalf("a zone of fragment %d", z.Fragment)
			}
		}
	})
}

func check(t *rapid.T, s *zonemap.Segment, typ segtest.Type, d *table) {
	t.Helper()
	for range 4 {
		lo := rapid.IntRange(-1, len(typ.Values)-1).Draw(t, "low")
		hi := rapid.IntRange(-1, len(typ.Values)-1).Draw(t, "high")
		some := rapid.SliceOfN(rapid.IntRange(0, len(typ.Values)-1), 1, 3).Draw(t, "values")
		for _, q := range []struct {
			p       index.Predicate
			matches func(v int) bool
		}{
			{index.Predicate{Op: index.OpEq, Values: typ.Needles(t, some[0])}, func(v int) bool { return v == some[0] }},
			{index.Predicate{Op: index.OpIn, Values: typ.Needles(t, some...)}, func(v int) bool { return slices.Contains(some, v) }},
			{index.Predicate{Op: index.OpRange, Values: typ.Needles(t, lo, hi), LowerInclusive: true}, func(v int) bool { return (lo < 0 || v >= lo) && (hi < 0 || v < hi) }},
			{index.Predicate{Op: index.OpRange, Values: typ.Needles(t, lo, hi), UpperInclusive: true}, func(v int) bool { return (lo < 0 || v > lo) && (hi < 0 || v <= hi) }},
			{index.Predicate{Op: index.OpIsNull}, nil},
		} {
			truth, match, err := s.Lookup(ctx, q.p)
			if err != nil || match != index.AtMost {
				t.Fatalf("%s: %v %v", q.p, match, err)
			}
			checkAtMost(t, q.p.String(), truth, d, func(v int) segtest.Verdict {
				switch {
				case q.matches == nil:
					return segtest.Of(v < 0)
				case v < 0:
					return -1
				}
				return segtest.Of(q.matches(v))
			})
		}
	}
}

func int64s(values ...int64) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues(values, nil)
	return b.NewArray()
}

func TestZonesRuleRowsOut(t *testing.T) {
	d := table{rows: []uint64{10, 4}}
	b := newBuilder(t, arrow.PrimitiveTypes.Int64, 3)
	var values []int64
	for f, n := range d.rows {
		for i := range n {
			d.addrs = append(d.addrs, uint64(f)<<32|i)
			values = append(values, int64(len(values)))
		}
	}
	if err := b.Add(ctx, int64s(values...), d.addrs); err != nil {
		t.Fatal(err)
	}
	store := object.NewMemory("t")
	write(t, store, b, "a", file.V22)
	s := open(t, store, "a", &d)
	truth, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpIn, Values: int64s(4, 13, 99)})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(truth.True.All()); !slices.Equal(got, []uint64{3, 4, 5, 1<<32 | 3}) {
		t.Fatalf("candidates %v", got)
	}
	if n, err := s.Estimate(ctx, index.Predicate{Op: index.OpEq, Values: int64s(9)}); n != 1 || err != nil {
		t.Fatalf("estimate %d, %v", n, err)
	}
}

// TestZonesThatStopShort: before engine 1.0 deleted rows were not counted in the place of zones, so that such zones stand for later rows.
func TestZonesThatStopShort(t *testing.T) {
	b := newBuilder(t, arrow.PrimitiveTypes.Int64, 2)
	if err := b.Add(ctx, int64s(1, 2, 3, 4), []uint64{0, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	store := object.NewMemory("t")
	write(t, store, b, "a", file.V22)
	d := table{rows: []uint64{8, 5}} // fragment 1 is covered and has no zone
	s := open(t, store, "a", &d)
	for _, c := range []struct {
		value int64
		want  uint64
	}{{3, 8 + 5}, {9, 5}} {
		truth, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpEq, Values: int64s(c.value)})
		if err != nil || truth.True.Count() != c.want {
			t.Fatalf("= %d: %d candidates, %v", c.value, truth.True.Count(), err)
		}
	}
	unknown, err := zonemap.Open(ctx, segtest.Opener(store, "a"), index.Meta{Name: "z"}, index.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	truth, _, err := unknown.Lookup(ctx, index.Predicate{Op: index.OpEq, Values: int64s(3)})
	if err != nil || truth.True.Count() != 1<<32 {
		t.Fatalf("fragment of unknown size: %d candidates, %v", truth.True.Count(), err)
	}
}

func TestNaNsDoNotHideValues(t *testing.T) {
	nan := math.NaN()
	values := array.NewFloat64Builder(memory.DefaultAllocator)
	values.AppendValues([]float64{nan, 1, 2, nan, nan, nan, math.Copysign(nan, -1), 5, 6}, nil)
	b := newBuilder(t, arrow.PrimitiveTypes.Float64, 3)
	d := table{rows: []uint64{9}, addrs: []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8}}
	if err := b.Add(ctx, values.NewArray(), d.addrs); err != nil {
		t.Fatal(err)
	}
	store := object.NewMemory("t")
	write(t, store, b, "a", file.V22)
	s := open(t, store, "a", &d)
	for _, c := range []struct {
		p    index.Predicate
		want []uint64
	}{
		{index.Predicate{Op: index.OpEq, Values: segtest.Array(t, arrow.PrimitiveTypes.Float64, "[2]")}, []uint64{0, 1, 2, 6, 7, 8}},
		{index.Predicate{Op: index.OpRange, Values: segtest.Array(t, arrow.PrimitiveTypes.Float64, "[5, null]"), LowerInclusive: true}, []uint64{0, 1, 2, 6, 7, 8}},
		{index.Predicate{Op: index.OpRange, Values: segtest.Array(t, arrow.PrimitiveTypes.Float64, "[null, 0]")}, []uint64{6, 7, 8}},
	} {
		truth, _, err := s.Lookup(ctx, c.p)
		if got := slices.Collect(truth.True.All()); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v, %v", c.p, got, c.want, err)
		}
	}
	for z := range s.Zones {
		if want := map[uint64]uint32{0: 1, 3: 3, 6: 1}[z.Start]; z.NaNs != want {
			t.Errorf("zone at %d has %d NaNs", z.Start, z.NaNs)
		}
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	if _, err := zonemap.NewBuilder("c", arrow.ListOf(arrow.PrimitiveTypes.Int8), 0, nil); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("lists: %v", err)
	}
	b := newBuilder(t, arrow.PrimitiveTypes.Int64, 10)
	if err := b.Add(ctx, int64s(1, 2), []uint64{5, 5}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a row twice: %v", err)
	}
	if err := b.Add(ctx, segtest.Array(t, arrow.BinaryTypes.String, `["a"]`), []uint64{9}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("another type: %v", err)
	}
	small, err := zonemap.NewBuilder("c", arrow.PrimitiveTypes.Int64, 1, mem.NewBudget("t", 1000, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer small.Free()
	for i := range uint64(100) {
		if err = small.Add(ctx, int64s(1), []uint64{i}); err != nil {
			break
		}
	}
	if !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("a small budget: %v", err)
	}
	if _, err := zonemap.Open(ctx, nil, index.Meta{Version: 1}, index.OpenOptions{}); !errors.Is(err, errs.ErrUnsupported) {
		t.Errorf("a newer version: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	store := object.NewMemory("t")
	b := newBuilder(f, arrow.BinaryTypes.String, 3)
	var addrs []uint64
	for i := range uint64(20) {
		addrs = append(addrs, i/7<<32|i%7)
	}
	if err := b.Add(ctx, segtest.Array(f, arrow.BinaryTypes.String, fmt.Sprint(segtest.Type{Values: []string{`"a"`, `"b"`, `"c"`}}.JSONList(
		[]int{0, 1, 2, -1, 0, 1, 2, 0, 1, 2, -1, -1, -1, 2, 0, 0, 0, 1, 1, 1}))), addrs); err != nil {
		f.Fatal(err)
	}
	write(f, store, b, "a", file.V22)
	content := segtest.Files(f, store, "a")[zonemap.FileName]
	f.Add([]byte{})
	f.Add([]byte{0, 9, 1})
	f.Add([]byte{1, 200, 7, 0, 3, 0xFF})
	f.Fuzz(func(t *testing.T, edits []byte) {
		broken := object.NewMemory("t")
		if err := broken.Put(ctx, "a/"+zonemap.FileName, segtest.Fuzz(content, edits), false); err != nil {
			t.Fatal(err)
		}
		s, err := zonemap.Open(ctx, segtest.Opener(broken, "a"), index.Meta{}, index.OpenOptions{Budget: mem.NewBudget("t", 64<<20, nil)})
		if segtest.Tolerable(t, err) {
			return
		}
		for _, p := range []index.Predicate{{Op: index.OpIsNull}, {Op: index.OpEq, Values: segtest.Array(t, arrow.BinaryTypes.String, `["b"]`)}} {
			_, _, err := s.Lookup(ctx, p)
			segtest.Tolerable(t, err)
		}
	})
}
