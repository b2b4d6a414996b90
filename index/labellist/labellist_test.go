package labellist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

var ctx = context.Background()

// build writes a segment over lists and opens it.
func build(tb segtest.TB, store object.Store, lists arrow.Array, keys []uint64, version file.Version) *labellist.Segment {
	tb.Helper()
	b, err := labellist.NewBuilder("labels", lists.DataType(), index.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer b.Free()
	for start := 0; start < len(keys); start += 7 { // several batches, sliced
		end := min(start+7, len(keys))
		part := array.NewSlice(lists, int64(start), int64(end))
		if err := b.Add(ctx, part, keys[start:end]); err != nil {
			tb.Fatal(err)
		}
		part.Release()
	}
	if _, err := b.Write(ctx, segtest.Create(tb, store, "seg/"+bitmap.FileName), version); err != nil {
		tb.Fatal(err)
	}
	return open(tb, store, index.OpenOptions{})
}

func open(tb segtest.TB, store object.Store, opts index.OpenOptions) *labellist.Segment {
	tb.Helper()
	s, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "labels_idx", Version: labellist.WriteVersion}, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// listOf is the L table of the correctness cases: rows 1 to 7 have keys 0 to 6.
func listsOfL(tb segtest.TB) arrow.Array {
	return segtest.Array(tb, arrow.ListOf(arrow.BinaryTypes.String),
		`[["foo",null], ["foo"], null, [], [null], ["bar"], ["foo","foo","bar"]]`)
}

func TestTruthTable(t *testing.T) {
	for _, version := range []file.Version{file.V21, file.V22} {
		store := object.NewMemory("t")
		s := build(t, store, listsOfL(t), []uint64{0, 1, 2, 3, 4, 5, 6}, version)
		for _, c := range []struct {
			op         index.Op
			needles    string
			want, null []uint64
		}{
			{index.OpHas, `["foo"]`, []uint64{0, 1, 6}, []uint64{2}},
			{index.OpHas, `["zzz"]`, nil, []uint64{2}},
			{index.OpHas, `[""]`, nil, []uint64{2}},
			{index.OpHasAny, `["foo"]`, []uint64{0, 1, 6}, []uint64{2}},
			{index.OpHasAny, `["foo","bar"]`, []uint64{0, 1, 5, 6}, []uint64{2}},
			{index.OpHasAny, `["foo","zzz"]`, []uint64{0, 1, 6}, []uint64{2}},
			{index.OpHasAll, `["foo","foo"]`, []uint64{0, 1, 6}, []uint64{2}},
			{index.OpHasAll, `["foo","bar","foo"]`, []uint64{6}, []uint64{2}},
			{index.OpHasAll, `["foo","zzz"]`, nil, []uint64{2}},
			{index.OpIsNull, ``, []uint64{2}, nil},
		} {
			p := index.Predicate{Op: c.op}
			if c.needles != "" {
				p.Values = segtest.Array(t, arrow.BinaryTypes.String, c.needles)
			}
			truth, match, err := s.Lookup(ctx, p)
			if err != nil || match != index.Exact {
				t.Fatalf("%s: %v %v", p, match, err)
			}
			if got := slices.Collect(truth.True.All()); !slices.Equal(got, c.want) {
				t.Errorf("version %s %s: TRUE %v, want %v", version, p, got, c.want)
			}
			if got := slices.Collect(truth.Null.All()); !slices.Equal(got, c.null) {
				t.Errorf("version %s %s: NULL %v, want %v", version, p, got, c.null)
			}
		}
		truth, _, err := index.Evaluate(ctx, s, index.Predicate{Op: index.OpIsNotNull}, rowset.NewSet(0, 1, 2, 3, 4, 5, 6))
		if err != nil || !slices.Equal(slices.Collect(truth.True.All()), []uint64{0, 1, 3, 4, 5, 6}) || !truth.Null.IsEmpty() {
			t.Errorf("IS NOT NULL: %v %v", truth, err)
		}
		if _, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpEq, Values: segtest.Array(t, arrow.BinaryTypes.String, `["foo"]`)}); !errors.Is(err, errs.ErrUnsupported) {
			t.Errorf("= on a list: %v", err)
		}
		if _, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpHas, Values: segtest.Array(t, arrow.PrimitiveTypes.Int32, `[1]`)}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("a number among strings: %v", err)
		}
	}
}

// rows is a random list column: nil = NULL, elements are indices into the type's values, -1 = NULL.
func drawLists(t *rapid.T, typ segtest.Type) [][]int {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []int {
		if rapid.IntRange(0, 5).Draw(t, "null list") == 0 {
			return nil
		}
		out := rapid.SliceOfN(rapid.IntRange(-1, len(typ.Values)-1), 0, 5).Draw(t, "list")
		if out == nil {
			out = []int{}
		}
		return out
	}), 0, 40).Draw(t, "lists")
}

func listArray(tb segtest.TB, typ segtest.Type, large bool, lists [][]int) arrow.Array {
	parts := make([]string, len(lists))
	for i, l := range lists {
		parts[i] = "null"
		if l != nil {
			parts[i] = typ.JSONList(l)
		}
	}
	var t arrow.DataType = arrow.ListOf(typ.Arrow)
	if large {
		t = arrow.LargeListOf(typ.Arrow)
	}
	return segtest.Array(tb, t, "["+strings.Join(parts, ",")+"]")
}

func TestEveryElementTypeAnswersAsAScanDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := segtest.Types[rapid.IntRange(0, len(segtest.Types)-1).Draw(t, "type")]
		lists := drawLists(t, typ)
		keys := segtest.DrawKeys(t, len(lists))
		version := rapid.SampledFrom([]file.Version{file.V21, file.V22}).Draw(t, "version")
		s := build(t, object.NewMemory("t"), listArray(t, typ, rapid.Bool().Draw(t, "large"), lists), keys, version)
		needles := rapid.SliceOfN(rapid.IntRange(0, len(typ.Values)-1), 1, 4).Draw(t, "needles")
		for op, holds := range map[index.Op]func(list []int) bool{
			index.OpHas: func(l []int) bool { return slices.Contains(l, needles[0]) },
			index.OpHasAny: func(l []int) bool {
				return slices.ContainsFunc(needles, func(n int) bool { return slices.Contains(l, n) })
			},
			index.OpHasAll: func(l []int) bool {
				return !slices.ContainsFunc(needles, func(n int) bool { return !slices.Contains(l, n) })
			},
		} {
			p := index.Predicate{Op: op, Values: typ.Needles(t, needles...)}
			if op == index.OpHas {
				p.Values = typ.Needles(t, needles[0])
			}
			estimate, err := s.Estimate(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			truth, match, err := s.Lookup(ctx, p)
			if err != nil || match != index.Exact {
				t.Fatalf("%v %v", match, err)
			}
			if n := int64(truth.True.Count()); estimate < n || op == index.OpHas && estimate != n {
				t.Fatalf("%s: estimate %d for %d rows", p, estimate, n)
			}
			segtest.Check(t, fmt.Sprintf("%s of %s on %v", p, typ.Arrow, lists), truth, keys, func(i int) segtest.Verdict {
				if lists[i] == nil {
					return -1
				}
				return segtest.Of(holds(lists[i]))
			})
		}
		truth, _, err := index.Evaluate(ctx, s, index.Predicate{Op: index.OpIsNotNull}, rowset.NewSet(keys...))
		if err != nil {
			t.Fatal(err)
		}
		segtest.Check(t, "IS NOT NULL", truth, keys, func(i int) segtest.Verdict { return segtest.Of(lists[i] != nil) })
	})
}

func TestFloatLabelsKnowTwoZerosAndNoNaN(t *testing.T) {
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Float64)
	items := b.ValueBuilder().(*array.Float64Builder)
	nan, negZero := 0.0, 0.0
	nan /= nan - negZero
	negZero = 1 / (-1 / negZero)
	for _, list := range [][]float64{{0}, {negZero}, {nan}, {0, nan, 3}} {
		b.Append(true)
		items.AppendValues(list, nil)
	}
	s := build(t, object.NewMemory("t"), b.NewArray(), []uint64{0, 1, 2, 3}, file.V22)
	doubles := func(v ...float64) arrow.Array {
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		b.AppendValues(v, nil)
		return b.NewArray()
	}
	for _, c := range []struct {
		p    index.Predicate
		want []uint64
	}{
		{index.Predicate{Op: index.OpHas, Values: doubles(negZero)}, []uint64{0, 1, 3}},
		{index.Predicate{Op: index.OpHas, Values: doubles(nan)}, nil},
		{index.Predicate{Op: index.OpHasAny, Values: doubles(nan, 3)}, []uint64{3}},
		{index.Predicate{Op: index.OpHasAll, Values: doubles(0, 3)}, []uint64{3}},
		{index.Predicate{Op: index.OpHasAll, Values: doubles(nan, 3)}, nil},
	} {
		truth, _, err := s.Lookup(ctx, c.p)
		if err != nil || !slices.Equal(slices.Collect(truth.True.All()), c.want) {
			t.Errorf("%s: %v %v, want %v", c.p, truth.True, err, c.want)
		}
	}
}

func TestColumnsThatCannotBeIndexedAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		typ  arrow.DataType
		kind error
		text string
	}{
		{arrow.BinaryTypes.String, errs.ErrInvalid, `column "c" is of type utf8: a LABEL_LIST index needs a column of lists`},
		{arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32), errs.ErrInvalid, "needs a column of lists"},
		{arrow.LargeListOf(arrow.ListOf(arrow.PrimitiveTypes.Int64)), errs.ErrUnsupported, "nested deeper than one list"},
		{arrow.ListOf(arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8})), errs.ErrUnsupported, "nested deeper than one list"},
		{arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}), errs.ErrUnsupported, "dictionary"},
	} {
		_, err := labellist.NewBuilder("c", c.typ, index.BuildOptions{})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.typ, err)
		}
	}
}

func TestElementsBelowANullListAreNoLabels(t *testing.T) {
	values := segtest.Array(t, arrow.BinaryTypes.String, `["a","hidden","b"]`)
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 1, 2, 3}))
	data := array.NewData(arrow.ListOf(arrow.BinaryTypes.String), 3, []*memory.Buffer{memory.NewBufferBytes([]byte{0b101}), offsets},
		[]arrow.ArrayData{values.Data()}, 1, 0)
	s := build(t, object.NewMemory("t"), array.NewListData(data), []uint64{10, 11, 12}, file.V22)
	truth, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpHasAny, Values: segtest.Array(t, arrow.BinaryTypes.String, `["hidden","b"]`)})
	if err != nil || !slices.Equal(slices.Collect(truth.True.All()), []uint64{12}) || !slices.Equal(slices.Collect(truth.Null.All()), []uint64{11}) {
		t.Fatalf("%v %v", truth, err)
	}
}

// manyLabels has 200 labels with bitmaps of some KiB each.
func manyLabels(tb segtest.TB, store object.Store) {
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
	items := b.ValueBuilder().(*array.StringBuilder)
	keys := make([]uint64, 200_000)
	for i := range keys {
		keys[i] = uint64(i)
		b.Append(true)
		items.Append(fmt.Sprintf("label %d", i%200))
		items.Append(fmt.Sprintf("label %d", i/7%200))
	}
	build(tb, store, b.NewArray(), keys, file.V22)
}

func TestALookupReadsTheBitmapOfItsLabelAlone(t *testing.T) {
	memoryStore := object.NewMemory("t")
	manyLabels(t, memoryStore)
	store := object.NewCounting(memoryStore, object.CountingOptions{})
	s := open(t, store, index.OpenOptions{})
	opened := store.Total()
	size := func() int64 {
		f, err := memoryStore.Open(ctx, "seg/"+bitmap.FileName)
		if err != nil {
			t.Fatal(err)
		}
		return f.SizeBytes()
	}()
	if opened.Bytes > 40<<10 {
		t.Errorf("opening read %d of %d bytes", opened.Bytes, size)
	}
	store.Reset()
	p := index.Predicate{Op: index.OpHas, Values: segtest.Array(t, arrow.BinaryTypes.String, `["label 17"]`)}
	truth, _, err := s.Lookup(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := rowset.AppendTree(nil, truth.True)
	if err != nil {
		t.Fatal(err)
	}
	if read := store.Total().Bytes; read < int64(len(tree)) || read > int64(len(tree))+8192 {
		t.Errorf("the lookup read %d bytes for a bitmap of %d (the file has %d)", read, len(tree), size)
	}
	store.Reset()
	if _, _, err := s.Lookup(ctx, p); err != nil || store.Total().Bytes != 0 {
		t.Errorf("the second lookup read %d bytes, %v", store.Total().Bytes, err)
	}
	p.Values = segtest.Array(t, arrow.BinaryTypes.String, `["no such label"]`)
	if _, _, err := s.Lookup(ctx, p); err != nil || store.Total().Bytes != 0 {
		t.Errorf("an unknown label read %d bytes, %v", store.Total().Bytes, err)
	}
}

func TestMemoryIsPaidForAndGivenBack(t *testing.T) {
	store := object.NewMemory("t")
	manyLabels(t, store)
	budget := mem.NewBudget("index", 0, nil)
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	checked := compute.WithAllocator(ctx, alloc)
	s, err := labellist.Open(checked, segtest.Opener(store, "seg"), index.Meta{Version: 1}, index.OpenOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	keysBytes := budget.Used()
	if keysBytes < s.File().Keys().SizeBytes() || keysBytes > 20<<10 {
		t.Errorf("paid %d for %d bytes of labels", keysBytes, s.File().Keys().SizeBytes())
	}
	if _, _, err := s.Lookup(checked, index.Predicate{Op: index.OpHasAny, Values: segtest.Array(t, arrow.BinaryTypes.String, `["label 1","label 2"]`)}); err != nil {
		t.Fatal(err)
	}
	if budget.Used() <= keysBytes {
		t.Error("cached bitmaps cost nothing")
	}
	if err := s.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes paid after Close, %v", budget.Used(), err)
	}
	if _, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Version: 1}, index.OpenOptions{Budget: mem.NewBudget("index", 100, nil)}); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("a budget of 100 bytes: %v", err)
	}
	b, err := labellist.NewBuilder("labels", arrow.ListOf(arrow.BinaryTypes.String), index.BuildOptions{Budget: mem.NewBudget("build", 50, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add(ctx, listsOfL(t), make([]uint64, 7)); !errors.Is(err, errs.ErrMemoryLimit) {
		t.Errorf("building within 50 bytes: %v", err)
	}
}

func TestNewerSegmentsAreRefused(t *testing.T) {
	store := object.NewMemory("t")
	build(t, store, listsOfL(t), make([]uint64, 7), file.V22)
	_, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Name: "x", Version: 3}, index.OpenOptions{})
	if !errors.Is(err, errs.ErrUnsupported) {
		t.Fatalf("got %v", err)
	}
	for version, want := range map[int32]bool{0: false, 1: false, 2: true} {
		s, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Version: version}, index.OpenOptions{})
		if err != nil || s.Meta().PhysicalKeys != want {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestFilesOfOldEnginesAreTrustedForTrueAlone(t *testing.T) {
	// A bitmap file without the metadata that names the NULL lists is what engines up to 1.0 wrote.
	store := object.NewMemory("t")
	c, err := bitmap.NewCollector(arrow.BinaryTypes.String, index.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(segtest.Array(t, arrow.BinaryTypes.String, `["foo", null, "foo", "bar"]`), []uint64{0, 0, 1, 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(ctx, segtest.Create(t, store, "seg/"+bitmap.FileName), bitmap.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := labellist.Open(ctx, segtest.Opener(store, "seg"), index.Meta{Version: 0}, index.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	truth, match, err := s.Lookup(ctx, index.Predicate{Op: index.OpHas, Values: segtest.Array(t, arrow.BinaryTypes.String, `["foo"]`)})
	if err != nil || match != index.TrueOnly || !slices.Equal(slices.Collect(truth.True.All()), []uint64{0, 1}) || !truth.Null.IsEmpty() {
		t.Errorf("%v %v %v", truth, match, err)
	}
	if match, ok := s.Answers(index.OpHasAll); !ok || match != index.TrueOnly {
		t.Errorf("Answers: %v %v", match, ok)
	}
	for _, op := range []index.Op{index.OpIsNull, index.OpIsNotNull} {
		if _, ok := index.Answers(s, op); ok {
			t.Errorf("op %d is answered", op)
		}
		if _, _, err := s.Lookup(ctx, index.Predicate{Op: op}); !errors.Is(err, errs.ErrUnsupported) {
			t.Errorf("op %d: %v", op, err)
		}
	}
}

// FuzzSegment opens mutated files and asks them: an error of a known kind or an answer; never a panic.
func FuzzSegment(f *testing.F) {
	store := object.NewMemory("t")
	build(f, store, listsOfL(f), []uint64{0, 1, 2, 1 << 32, 1<<32 | 1, 5, 6}, file.V22)
	content := segtest.Files(f, store, "seg")[bitmap.FileName]
	f.Add([]byte{})
	f.Add([]byte{0, 3, 9, 1, 7, 0xFF})
	f.Fuzz(func(t *testing.T, edits []byte) {
		broken := object.NewMemory("t")
		if err := broken.Put(ctx, "seg/"+bitmap.FileName, segtest.Fuzz(content, edits), false); err != nil {
			t.Fatal(err)
		}
		s, err := labellist.Open(ctx, segtest.Opener(broken, "seg"), index.Meta{}, index.OpenOptions{Budget: mem.NewBudget("fuzz", 64<<20, nil)})
		if segtest.Tolerable(t, err) {
			return
		}
		if s.File().Keys().Codec().Type().ID() != arrow.STRING {
			return
		}
		for _, op := range []index.Op{index.OpHasAny, index.OpHasAll} {
			_, _, err = s.Lookup(ctx, index.Predicate{Op: op, Values: segtest.Array(t, arrow.BinaryTypes.String, `["foo","bar"]`)})
			segtest.Tolerable(t, err)
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	const rows, labels = 1_000_000, 1000
	lists := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
	items := lists.ValueBuilder().(*array.StringBuilder)
	keys := make([]uint64, rows)
	for i := range keys {
		keys[i] = uint64(i)
		lists.Append(true)
		if i%2 == 0 {
			items.Append("common")
		}
		items.Append(fmt.Sprintf("label %d", i*7919%labels))
		items.Append(fmt.Sprintf("label %d", i/3%labels))
	}
	store := object.NewMemory("t")
	column := lists.NewArray()
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			build(b, store, column, keys, file.V22)
		}
	})
	s := build(b, store, column, keys, file.V22)
	for _, c := range []struct {
		name, needles string
		op            index.Op
	}{
		{"has common", `["common"]`, index.OpHas},
		{"has rare", `["label 17"]`, index.OpHas},
		{"any of 5", `["label 1","label 2","label 3","label 4","label 5"]`, index.OpHasAny},
		{"all of 3", `["common","label 2","label 4"]`, index.OpHasAll},
	} {
		p := index.Predicate{Op: c.op, Values: segtest.Array(b, arrow.BinaryTypes.String, c.needles)}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Lookup(ctx, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("open and has rare", func(b *testing.B) {
		p := index.Predicate{Op: index.OpHas, Values: segtest.Array(b, arrow.BinaryTypes.String, `["label 17"]`)}
		for b.Loop() {
			s := open(b, store, index.OpenOptions{})
			if _, _, err := s.Lookup(ctx, p); err != nil {
				b.Fatal(err)
			}
		}
	})
	universe := &rowset.Set{}
	universe.AddRange(0, 0, rows)
	b.Run("not has common in universe", func(b *testing.B) {
		p := index.Predicate{Op: index.OpHas, Values: segtest.Array(b, arrow.BinaryTypes.String, `["common"]`)}
		for b.Loop() {
			truth, _, err := index.Evaluate(ctx, s, p, universe)
			if err != nil || truth.Not(universe).True.Count() != rows/2 {
				b.Fatal(err)
			}
		}
	})
}

func TestTenThousandNeedles(t *testing.T) {
	const rows, labels = 100_000, 20_000
	lists := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
	keys := make([]uint64, rows)
	for i := range keys {
		keys[i] = uint64(i)
		lists.Append(true)
		lists.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("t%d", i%labels))
	}
	store := object.NewMemory("t")
	build(t, store, lists.NewArray(), keys, file.V22)
	needles := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range labels / 2 {
		needles.Append(fmt.Sprintf("t%d", i))
	}
	p := index.Predicate{Op: index.OpHasAny, Values: needles.NewArray()}
	counting := object.NewCounting(store, object.CountingOptions{AsRemote: true})
	s := open(t, counting, index.OpenOptions{})
	counting.Reset()
	truth, _, err := s.Lookup(ctx, p)
	if err != nil || truth.True.Count() != rows/2 || !truth.True.Contains(9_999) || truth.True.Contains(10_000) {
		t.Fatalf("%d rows, %v", truth.True.Count(), err)
	}
	if n := counting.Total().Requests; n > 100 {
		t.Errorf("10,000 bitmaps came in %d requests", n)
	}
	if n, err := s.Estimate(ctx, p); err != nil || n != -1 {
		t.Errorf("estimate %d, %v", n, err)
	}
	p.Op = index.OpHasAll
	if truth, _, err = s.Lookup(ctx, p); err != nil || !truth.True.IsEmpty() {
		t.Errorf("all of them: %d rows, %v", truth.True.Count(), err)
	}
}

// TestOneLabelOfAMegabyte: a value that fills a page of its own is a key like any other.
func TestOneLabelOfAMegabyte(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	lists := segtest.Array(t, arrow.ListOf(arrow.BinaryTypes.String), `[["a"], ["`+long+`","a"], ["`+long+`y"], []]`)
	s := build(t, object.NewMemory("t"), lists, []uint64{0, 1, 2, 3}, file.V22)
	for label, want := range map[string][]uint64{"a": {0, 1}, long: {1}, long + "y": {2}, long[1:]: nil} {
		truth, _, err := s.Lookup(ctx, index.Predicate{Op: index.OpHas, Values: segtest.Array(t, arrow.BinaryTypes.String, `["`+label+`"]`)})
		if err != nil || !slices.Equal(slices.Collect(truth.True.All()), want) {
			t.Errorf("label of %d bytes: %v %v", len(label), truth.True, err)
		}
	}
}

func TestLookupsRunAtTheSameTime(t *testing.T) {
	store := object.NewMemory("t")
	manyLabels(t, store)
	s := open(t, store, index.OpenOptions{CacheBytes: 200 << 10}) // a few bitmaps fit: they come and go
	counts := make([]uint64, 200)
	for i := range counts {
		truth, _, err := s.Lookup(ctx, has(t, i))
		if err != nil {
			t.Fatal(err)
		}
		counts[i] = truth.True.Count()
	}
	g, gctx := spawn.WithContext(ctx, 0)
	for w := range 8 {
		g.Go("lookups", func() error {
			for i := range 300 {
				label := (i*7 + w*31) % len(counts)
				truth, _, err := s.Lookup(gctx, has(t, label))
				if err != nil {
					return err
				}
				both := rowset.Union(truth.True, truth.True)
				if n := both.Count(); n != counts[label] || n == 0 {
					return fmt.Errorf("label %d: %d rows, %d before", label, n, counts[label])
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func has(tb segtest.TB, label int) index.Predicate {
	return index.Predicate{Op: index.OpHas, Values: segtest.Array(tb, arrow.BinaryTypes.String, fmt.Sprintf(`["label %d"]`, label))}
}
