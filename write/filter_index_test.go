package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

var parcels = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "tenant", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "deep", Type: arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int8)), Nullable: true},
}, nil)

// parcelRows yields one batch: row i has labels ["odd"] or [], NULL every fifth, tenant t(i%3), NULL every seventh.
type parcelRows struct {
	first, rows int
	done        bool
}

func (p *parcelRows) Next(context.Context) (arrow.RecordBatch, error) {
	if p.done {
		return nil, io.EOF
	}
	p.done = true
	b := array.NewRecordBuilder(memory.DefaultAllocator, parcels)
	defer b.Release()
	labels := b.Field(1).(*array.ListBuilder)
	for i := p.first; i < p.first+p.rows; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		labels.Append(i%5 != 0)
		if i%5 != 0 && i%2 == 1 {
			labels.ValueBuilder().(*array.StringBuilder).Append("odd")
		}
		if i%7 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("t%d", i%3))
		}
		b.Field(3).AppendNull()
	}
	return b.NewRecordBatch(), nil
}

func parcelTable(t *testing.T, store object.Store) *storage.Table {
	t.Helper()
	ctx := context.Background()
	target := Target{Store: store, Dir: "p.lance"}
	opts := CreateOptions{Rows: RowOptions{FragmentRows: 60}, Parts: []Batches{&parcelRows{rows: 100}}}
	if _, err := CreateTable(ctx, target, parcels, opts); err != nil {
		t.Fatal(err)
	}
	table, err := storage.OpenTable(ctx, store, "p.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// ask evaluates p over every segment of an index and returns the addresses where it is TRUE and NULL, and the fragments covered.
func ask(t *testing.T, table *storage.Table, name string, p index.Predicate) (index.Truth, *roaring.Bitmap) {
	t.Helper()
	ctx := context.Background()
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	truth, covers := index.Truth{True: &rowset.Set{}, Null: &rowset.Set{}}, roaring.New()
	for _, info := range snap.Indices() {
		if info.Name != name {
			continue
		}
		kind, _ := filter.KindOf(info.TypeURL)
		open := func(ctx context.Context, name string) (object.File, error) {
			return snap.OpenIndexFile(ctx, info, name)
		}
		s, err := filter.Open(ctx, open, index.Meta{Name: name, Kind: kind, Version: info.Version, Covers: info.Covers}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := s.Lookup(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if covers.Intersects(info.Covers) {
			t.Fatalf("fragments %v are covered twice", roaring.And(covers, info.Covers))
		}
		covers.Or(info.Covers)
		truth = index.Truth{True: rowset.Or(truth.True, got.True), Null: rowset.Or(truth.Null, got.Null)}
	}
	return truth, covers
}

func wantRows(t *testing.T, what string, got *rowset.Set, fragmentRows []int, holds func(i int) bool) {
	t.Helper()
	want, row := &rowset.Set{}, 0
	for fragment, n := range fragmentRows {
		for offset := range n {
			if holds(row) {
				want.Add(uint64(rowset.Addr(uint32(fragment), uint32(offset))))
			}
			row++
		}
	}
	if !rowset.Equal(got, want) {
		t.Errorf("%s: %d rows, want %d", what, got.Count(), want.Count())
	}
}

func text(values string) arrow.Array {
	arr, _, err := array.FromJSON(memory.DefaultAllocator, arrow.BinaryTypes.String, strings.NewReader(values))
	if err != nil {
		panic(err)
	}
	return arr
}

func TestBuiltIndicesAnswerAndExtend(t *testing.T) {
	ctx := context.Background()
	table := parcelTable(t, object.NewMemory("t"))
	for _, spec := range []FilterIndexSpec{
		{Column: "labels", Kind: index.KindLabelList}, {Column: "tenant", Kind: index.KindBitmap}, {Name: "by_tenant", Column: "tenant", Kind: index.KindBTree},
	} {
		if _, err := BuildFilterIndex(ctx, table, spec, FilterIndexOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(fragments []int) {
		t.Helper()
		odd, covers := ask(t, table, "labels_idx", index.Predicate{Op: index.OpHas, Values: text(`["odd"]`)})
		wantRows(t, "odd", odd.True, fragments, func(i int) bool { return i%5 != 0 && i%2 == 1 })
		wantRows(t, "NULL lists", odd.Null, fragments, func(i int) bool { return i%5 == 0 })
		if covers.GetCardinality() != uint64(len(fragments)) {
			t.Errorf("fragments %v are covered", covers)
		}
		for _, name := range []string{"tenant_idx", "by_tenant"} {
			t1, _ := ask(t, table, name, index.Predicate{Op: index.OpEq, Values: text(`["t1"]`)})
			wantRows(t, name, t1.True, fragments, func(i int) bool { return i%7 != 0 && i%3 == 1 })
			wantRows(t, name+" NULL", t1.Null, fragments, func(i int) bool { return i%7 == 0 })
		}
	}
	check([]int{60, 40})
	if _, err := Append(ctx, Target{Store: table.Store(), Dir: table.Dir()}, &parcelRows{first: 100, rows: 30}, AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	var version uint64
	for range 2 { // the second time there is nothing to add
		for _, spec := range []FilterIndexSpec{
			{Column: "labels", Kind: index.KindLabelList}, {Column: "tenant", Kind: index.KindBitmap}, {Name: "by_tenant", Column: "tenant", Kind: index.KindBTree},
		} {
			done, err := BuildFilterIndex(ctx, table, spec, FilterIndexOptions{Extend: true})
			if err != nil {
				t.Fatal(err)
			}
			version = done.Version
		}
	}
	if version != 8 { // create, three builds, append, three extensions
		t.Errorf("version %d", version)
	}
	check([]int{60, 40, 30})
	if _, err := BuildFilterIndex(ctx, table, FilterIndexSpec{Column: "labels", Kind: index.KindLabelList}, FilterIndexOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	check([]int{60, 40, 30})
	snap, err := table.Latest(ctx)
	if err != nil || len(snap.Indices()) != 5 {
		t.Errorf("%d segments, %v", len(snap.Indices()), err)
	}
}

func TestIndicesThatCannotBeBuilt(t *testing.T) {
	ctx := context.Background()
	store := object.NewMemory("t")
	table := parcelTable(t, store)
	if _, err := BuildFilterIndex(ctx, table, FilterIndexSpec{Name: "taken", Column: "tenant", Kind: index.KindBitmap}, FilterIndexOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := store.List(ctx, object.Join(table.Dir(), manifest.IndicesDir))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec FilterIndexSpec
		opts FilterIndexOptions
		kind error
		text string
	}{
		"no such column":         {FilterIndexSpec{Column: "Labels", Kind: index.KindLabelList}, FilterIndexOptions{}, errs.ErrNotFound, `no column "Labels"`},
		"labels of text":         {FilterIndexSpec{Column: "tenant", Kind: index.KindLabelList}, FilterIndexOptions{}, errs.ErrInvalid, `column "tenant" is of type utf8`},
		"labels of lists":        {FilterIndexSpec{Column: "deep", Kind: index.KindLabelList}, FilterIndexOptions{}, errs.ErrUnsupported, "nested deeper"},
		"a bitmap of lists":      {FilterIndexSpec{Column: "labels", Kind: index.KindBitmap}, FilterIndexOptions{}, errs.ErrUnsupported, `column "labels": a BITMAP index`},
		"a btree of lists":       {FilterIndexSpec{Column: "labels", Kind: index.KindBTree}, FilterIndexOptions{}, errs.ErrUnsupported, `column "labels": a BTREE index`},
		"a graph of vectors":     {FilterIndexSpec{Column: "labels", Kind: index.KindHNSWPQ}, FilterIndexOptions{}, errs.ErrUnsupported, "IVF_HNSW_PQ"},
		"vectors of labels":      {FilterIndexSpec{Column: "labels", Kind: index.KindIVFFlat}, FilterIndexOptions{}, errs.ErrUnsupported, "labels_idx"},
		"a name that is taken":   {FilterIndexSpec{Name: "taken", Column: "id", Kind: index.KindBTree}, FilterIndexOptions{}, errs.ErrExists, "index taken"},
		"another kind to extend": {FilterIndexSpec{Name: "taken", Column: "tenant", Kind: index.KindBTree}, FilterIndexOptions{Extend: true}, errs.ErrInvalid, "cannot be extended by BTREE"},
		"both ways at once":      {FilterIndexSpec{Column: "id", Kind: index.KindBTree}, FilterIndexOptions{Extend: true, Replace: true}, errs.ErrInvalid, "either replaced or extended"},
		"a small budget":         {FilterIndexSpec{Column: "labels", Kind: index.KindLabelList}, FilterIndexOptions{Budget: mem.NewBudget("build", 64, nil)}, errs.ErrMemoryLimit, "build memory limit"},
	} {
		_, err := BuildFilterIndex(ctx, table, c.spec, c.opts)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after, err := store.List(ctx, object.Join(table.Dir(), manifest.IndicesDir))
	if err != nil || len(after) != len(before) {
		t.Errorf("%d index folders, %d before, %v", len(after), len(before), err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := BuildFilterIndex(canceled, table, FilterIndexSpec{Column: "id", Kind: index.KindBTree}, FilterIndexOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestAnEmptyTableIsIndexedToo(t *testing.T) {
	ctx := context.Background()
	target := Target{Store: object.NewMemory("t"), Dir: "p.lance"}
	if _, err := CreateTable(ctx, target, parcels, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	table, err := storage.OpenTable(ctx, target.Store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []FilterIndexSpec{{Column: "labels", Kind: index.KindLabelList}, {Column: "id", Kind: index.KindBTree}} {
		if _, err := BuildFilterIndex(ctx, table, spec, FilterIndexOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	truth, covers := ask(t, table, "labels_idx", index.Predicate{Op: index.OpHas, Values: text(`["odd"]`)})
	if !truth.True.IsEmpty() || !truth.Null.IsEmpty() || !covers.IsEmpty() {
		t.Errorf("%v over %v", truth, covers)
	}
}

// TestIndexBuildsThatFailAnywhere fails, or crashes, at every store operation: the table has the index or it has not, and answers either way.
func TestIndexBuildsThatFailAnywhere(t *testing.T) {
	ctx := context.Background()
	base := object.NewMemory("t")
	parcelTable(t, base)
	for _, spec := range []FilterIndexSpec{{Column: "labels", Kind: index.KindLabelList}, {Column: "id", Kind: index.KindBTree}} {
		run := func(opts object.FaultyOptions) (*object.Memory, int64, error) {
			store := base.Clone()
			faulty := object.NewFaulty(store, opts)
			table, err := storage.OpenTable(ctx, faulty, "p.lance", storage.TableOptions{})
			if err == nil {
				_, err = BuildFilterIndex(ctx, table, spec, FilterIndexOptions{})
			}
			return store, faulty.Operations(), err
		}
		_, operations, err := run(object.FaultyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []object.FaultyOptions{{}, {Crash: true}, {AfterEffect: true}, {AfterEffect: true, Crash: true}} {
			for n := int64(1); n <= operations; n++ {
				mode.FailAt = n
				store, _, err := run(mode)
				checkBuilt(t, fmt.Sprintf("%s %+v", spec.Kind, mode), store, spec, err, mode.AfterEffect && mode.Crash)
			}
		}
	}
}

// checkBuilt reopens a table: an error means that there is no index, unless the answer got lost with the process.
func checkBuilt(t *testing.T, what string, store object.Store, spec FilterIndexSpec, err error, lost bool) {
	t.Helper()
	ctx := context.Background()
	table, openErr := storage.OpenTable(ctx, store, "p.lance", storage.TableOptions{})
	if openErr != nil {
		t.Fatalf("%s: %v", what, openErr)
	}
	snap, openErr := table.Latest(ctx)
	if openErr != nil || snap.Rows() != 100 {
		t.Fatalf("%s: %d rows, %v", what, snap.Rows(), openErr)
	}
	switch built := len(snap.Indices()) == 1; {
	case !built && err == nil || built && err != nil && !lost:
		t.Fatalf("%s: %d indices after %v", what, len(snap.Indices()), err)
	case built && spec.Kind == index.KindLabelList:
		odd, _ := ask(t, table, "labels_idx", index.Predicate{Op: index.OpHas, Values: text(`["odd"]`)})
		wantRows(t, what, odd.True, []int{60, 40}, func(i int) bool { return i%5 != 0 && i%2 == 1 })
	case built:
		all, _ := ask(t, table, "id_idx", index.Predicate{Op: index.OpIsNotNull})
		wantRows(t, what, all.True, []int{60, 40}, func(int) bool { return true })
	}
}

// TestExtensionsKeepTheKeysOfTheirIndex: core 14 writes row addresses into segments of tables with stable row ids, and refuses an index that mixes both.
func TestExtensionsKeepTheKeysOfTheirIndex(t *testing.T) {
	ctx := context.Background()
	target := Target{Store: object.NewMemory("t"), Dir: "p.lance"}
	opts := CreateOptions{StableRowIDs: true, Rows: RowOptions{FragmentRows: 60}, Parts: []Batches{&parcelRows{rows: 100}}}
	if _, err := CreateTable(ctx, target, parcels, opts); err != nil {
		t.Fatal(err)
	}
	table, err := storage.OpenTable(ctx, target.Store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, addresses := range map[string]bool{"row ids": false, "row addresses": true} {
		spec := IndexSpec{Name: name, Column: "tenant", Kind: index.KindBitmap, RowAddresses: addresses}
		if _, err := CreateIndex(ctx, table, spec, CreateIndexOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Append(ctx, target, &parcelRows{first: 100, rows: 30}, AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"row ids": 101, "row addresses": uint64(rowset.Addr(2, 1))} {
		if _, err := BuildFilterIndex(ctx, table, FilterIndexSpec{Name: name, Column: "tenant", Kind: index.KindBitmap}, FilterIndexOptions{Extend: true}); err != nil {
			t.Fatal(err)
		}
		t2, covers := ask(t, table, name, index.Predicate{Op: index.OpEq, Values: text(`["t2"]`)})
		if covers.GetCardinality() != 3 || !t2.True.Contains(want) { // row 101 is the second of fragment 2
			t.Errorf("%s: covers %v, keys %v", name, covers, t2.True.Uppers())
		}
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range snap.Indices() {
		if want := map[string]int32{"row ids": 0, "row addresses": 1}[info.Name]; info.Version != want {
			t.Errorf("%s: version %d, want %d", info.Name, info.Version, want)
		}
	}
}
