package index_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/internal/segtest"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

var ctx = context.Background()

// dataset is an opened test dataset: its rows by address, and its filter segments by column.
type dataset struct {
	snap     *storage.Snapshot
	live     *rowset.Set
	ids      map[uint64]int64 // column id by row address
	columns  map[string]map[uint64]value
	types    map[string]arrow.DataType // of the column, or of a list's elements
	segments map[string][]index.FilterSegment
}

// value is one row's value: NULL, a plain value, or a list.
type value struct {
	null   bool
	plain  *key.Key
	list   []key.Key // NULL elements left out
	isList bool
}

func openDataset(tb testing.TB, path string) *dataset {
	tb.Helper()
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	table, err := storage.OpenTable(ctx, store, filepath.Base(path), storage.TableOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	d := &dataset{
		snap: snap, ids: map[uint64]int64{}, columns: map[string]map[uint64]value{},
		types: map[string]arrow.DataType{}, segments: map[string][]index.FilterSegment{},
	}
	if d.live, err = snap.LiveRows(ctx, nil); err != nil {
		tb.Fatal(err)
	}
	d.openSegments(tb)
	d.readRows(tb)
	return d
}

func (d *dataset) openSegments(tb testing.TB) {
	for _, info := range d.snap.Indices() {
		kind, ok := filter.KindOf(info.TypeURL)
		if !ok {
			continue
		}
		column := ""
		for _, f := range d.snap.Schema().Fields {
			if f.ID == info.FieldIDs[0] {
				column = f.Name
			}
		}
		open := func(ctx context.Context, name string) (object.File, error) {
			return d.snap.OpenIndexFile(ctx, info, name)
		}
		meta := index.Meta{Name: info.Name, UUID: info.UUID, Kind: kind, FieldID: info.FieldIDs[0], Covers: info.Covers, Version: info.Version}
		s, err := filter.Open(ctx, open, meta, index.OpenOptions{})
		if err != nil {
			tb.Fatalf("%s: %v", info.Name, err)
		}
		tb.Cleanup(func() { _ = s.Close() })
		d.segments[column] = append(d.segments[column], s)
	}
}

func (d *dataset) readRows(tb testing.TB) {
	var names []string
	for _, f := range d.snap.Schema().Fields {
		t := f.Type
		if l, ok := t.(*arrow.ListType); ok {
			t = l.Elem()
		}
		if _, err := key.NewCodec(t); err == nil {
			d.types[f.Name] = t
			d.columns[f.Name] = map[uint64]value{}
			names = append(names, f.Name)
		}
	}
	scan, err := d.snap.Scan(ctx, storage.ScanOptions{Columns: names, WithRowAddr: true})
	if err != nil {
		tb.Fatal(err)
	}
	for reader := scan.Reader(); ; {
		batch, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		addrs := batch.Column(len(names)).(*array.Uint64)
		for c, name := range names {
			codec, _ := key.NewCodec(d.types[name])
			for i := range int(batch.NumRows()) {
				d.columns[name][addrs.Value(i)] = valueOf(codec, batch.Column(c), i)
				if name == "id" {
					d.ids[addrs.Value(i)] = batch.Column(c).(*array.Int64).Value(i)
				}
			}
		}
		batch.Release()
	}
}

func valueOf(codec key.Codec, arr arrow.Array, i int) value {
	if list, ok := arr.(array.ListLike); ok {
		v := value{null: arr.IsNull(i), isList: true}
		if start, end := list.ValueOffsets(i); !v.null {
			for j := start; j < end; j++ {
				if list.ListValues().IsValid(int(j)) {
					v.list = append(v.list, codec.At(list.ListValues(), int(j)))
				}
			}
		}
		return v
	}
	if arr.IsNull(i) {
		return value{null: true}
	}
	k := codec.At(arr, i)
	return value{plain: &k}
}

// scanLeaf is the answer of one comparison for one value, without an index.
func scanLeaf(tb segtest.TB, codec key.Codec, w segtest.Where, needles []key.Key, v value) segtest.Verdict {
	if w.Op == "is_null" || w.Op == "is_not_null" {
		return segtest.Of(v.null == (w.Op == "is_null"))
	}
	if v.null {
		return -1
	}
	equals := func(k key.Key) func(key.Key) bool { return func(o key.Key) bool { return codec.Compare(k, o) == 0 } }
	if v.isList {
		hits := 0
		for _, n := range needles {
			if slices.ContainsFunc(v.list, equals(n)) {
				hits++
			}
		}
		return segtest.Of(hits > 0 && w.Op != "has_all" || hits == len(needles) && w.Op == "has_all")
	}
	if w.Op == "in" {
		return segtest.Of(slices.ContainsFunc(needles, equals(*v.plain)))
	}
	o := codec.Compare(*v.plain, needles[0])
	switch w.Op {
	case "=":
		return segtest.Of(o == 0)
	case "!=":
		return segtest.Of(o != 0)
	case "<":
		return segtest.Of(o < 0)
	case "<=":
		return segtest.Of(o <= 0)
	case ">":
		return segtest.Of(o > 0)
	case ">=":
		return segtest.Of(o >= 0)
	case "between":
		return segtest.Of(o >= 0 && codec.Compare(*v.plain, needles[1]) <= 0)
	}
	tb.Fatalf("operator %q", w.Op)
	return 0
}

// scan answers a filter row by row over some rows, in row addresses.
func (d *dataset) scan(tb segtest.TB, w segtest.Where, rows *rowset.Set) index.Truth {
	switch w.Op {
	case "not":
		return d.scan(tb, w.Args[0], rows).Not(rows)
	case "and":
		return d.scan(tb, w.Args[0], rows).And(d.scan(tb, w.Args[1], rows))
	case "or":
		return d.scan(tb, w.Args[0], rows).Or(d.scan(tb, w.Args[1], rows))
	}
	codec, err := key.NewCodec(d.types[w.Column])
	if err != nil {
		tb.Fatal(err)
	}
	needles := make([]key.Key, len(w.Needles))
	arr := d.needles(tb, w)
	for i := range needles {
		needles[i] = codec.At(arr, i)
	}
	out := index.Truth{True: &rowset.Set{}, Null: &rowset.Set{}}
	for addr := range rows.All() {
		switch scanLeaf(tb, codec, w, needles, d.columns[w.Column][addr]) {
		case 1:
			out.True.Add(addr)
		case -1:
			out.Null.Add(addr)
		}
	}
	return out
}

func (d *dataset) needles(tb segtest.TB, w segtest.Where) arrow.Array {
	text := "["
	for i, n := range w.Needles {
		if i > 0 {
			text += ","
		}
		text += n
	}
	return segtest.Array(tb, d.types[w.Column], text+"]")
}

// predicate returns the index predicate of a comparison; false where no index is asked (an empty needle list).
func (d *dataset) predicate(tb segtest.TB, w segtest.Where) (index.Predicate, bool) {
	ops := map[string]index.Op{
		"has": index.OpHas, "has_any": index.OpHasAny, "has_all": index.OpHasAll, "is_null": index.OpIsNull, "is_not_null": index.OpIsNotNull,
		"=": index.OpEq, "in": index.OpIn, "between": index.OpRange, "<": index.OpRange, "<=": index.OpRange, ">": index.OpRange, ">=": index.OpRange,
	}
	op, ok := ops[w.Op]
	if !ok || len(w.Needles) == 0 && op != index.OpIsNull && op != index.OpIsNotNull {
		return index.Predicate{}, false
	}
	p := index.Predicate{Op: op}
	switch w.Op {
	case "is_null", "is_not_null":
		return p, true
	case "<", "<=":
		w.Needles = []string{"null", w.Needles[0]}
	case ">", ">=":
		w.Needles = []string{w.Needles[0], "null"}
	}
	p.Values = d.needles(tb, w)
	p.LowerInclusive = w.Op == ">=" || w.Op == "between"
	p.UpperInclusive = w.Op == "<=" || w.Op == "between"
	return p, true
}

// lookup answers a filter with the indices where they can, and by scan for fragments that none covers; asked counts segments that answered.
func (d *dataset) lookup(tb segtest.TB, w segtest.Where, asked *int) index.Truth {
	switch w.Op {
	case "not":
		return d.lookup(tb, w.Args[0], asked).Not(d.live)
	case "and":
		return d.lookup(tb, w.Args[0], asked).And(d.lookup(tb, w.Args[1], asked))
	case "or":
		return d.lookup(tb, w.Args[0], asked).Or(d.lookup(tb, w.Args[1], asked))
	}
	p, ok := d.predicate(tb, w)
	if !ok {
		return d.scan(tb, w, d.live)
	}
	out := index.Truth{True: &rowset.Set{}, Null: &rowset.Set{}}
	open := roaring.New()
	for _, f := range d.snap.Fragments() {
		open.Add(f.ID())
	}
	for _, s := range d.segments[w.Column] {
		if _, ok := index.Answers(s, p.Op); !ok {
			continue
		}
		covered := roaring.And(s.Meta().Covers, open)
		truth := d.evaluate(tb, s, p, covered)
		out = index.Truth{True: rowset.Union(out.True, truth.True), Null: rowset.Union(out.Null, truth.Null)}
		open.AndNot(covered)
		*asked++
	}
	rest := d.scan(tb, w, d.live.OnlyUppers(open))
	return index.Truth{True: rowset.Union(out.True, rest.True), Null: rowset.Union(out.Null, rest.Null)}
}

// evaluate asks one segment about the live rows of the fragments that it covers, and returns row addresses.
func (d *dataset) evaluate(tb segtest.TB, s index.FilterSegment, p index.Predicate, covered *roaring.Bitmap) index.Truth {
	universe, err := d.snap.Keys(ctx, d.live.OnlyUppers(covered))
	if err != nil {
		tb.Fatal(err)
	}
	truth, match, err := index.Evaluate(ctx, s, p, universe)
	if err != nil || match != index.Exact {
		tb.Fatalf("%s: %v %v", s.Meta().Name, match, err)
	}
	for _, set := range []**rowset.Set{&truth.True, &truth.Null} {
		if *set, err = d.snap.Resolve(ctx, *set); err != nil {
			tb.Fatal(err)
		}
	}
	return truth
}

// idsOf returns the ids of rows as the answers spell them.
func (d *dataset) idsOf(rows *rowset.Set) []string {
	var ids []int64
	for addr := range rows.All() {
		ids = append(ids, d.ids[addr])
	}
	slices.Sort(ids)
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = strconv.FormatInt(id, 10)
	}
	return out
}

// labelDatasets have filters with answers of the reference engine.
var labelDatasets = []string{
	"labels_v20", "labels_v20_churn", "labels_v20_optimized", "labels_v21", "labels_v21_churn", "labels_v21_optimized",
	"labels_v22", "labels_v22_churn", "labels_v22_optimized", "labels_stable", "labels_stable_churn", "labels_stable_optimized",
	"vec_segments",
}

func TestIndicesOfTheReferenceEngineGiveItsAnswers(t *testing.T) {
	for _, name := range labelDatasets {
		t.Run(name, func(t *testing.T) {
			path := testutil.Lance(t, name)
			d := openDataset(t, path)
			byIndex := 0
			for _, q := range testutil.LoadExpected(t, path).Queries {
				if q.Where == "" || q.Vector != nil {
					continue
				}
				var want []string
				if err := json.Unmarshal(q.Result, &want); err != nil {
					t.Fatal(err)
				}
				w := segtest.ParseWhere(t, q.Where)
				got := d.lookup(t, w, &byIndex)
				if w.Op == "has_all" && len(w.Needles) == 0 { // the engine's quirk: it returns NULL lists too
					got.True = rowset.Or(got.True, got.Null)
				}
				slices.SortFunc(want, func(a, b string) int {
					x, _ := strconv.Atoi(a)
					y, _ := strconv.Atoi(b)
					return x - y
				})
				if ids := d.idsOf(got.True); !slices.Equal(ids, want) {
					t.Errorf("%s: got %d rows, want %d:\n%v\n%v", q.Where, len(ids), len(want), ids, want)
				}
			}
			if len(d.segments) > 0 && byIndex == 0 {
				t.Error("no index was asked")
			}
		})
	}
}

// leavesOf are comparisons that the indices of a dataset answer, and some that none does.
func (d *dataset) leavesOf() []string {
	labels := []string{"ai", "drama", "comedy", "database", "日本", "", "nope"}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if _, ok := d.types["labels"]; ok {
		for i, l := range labels {
			add("array_has(labels,'%s')", l)
			add("array_has_any(labels,['%s','%s'])", l, labels[(i+3)%len(labels)])
			add("array_has_all(labels,['%s','%s'])", l, labels[(i+1)%len(labels)])
		}
		add("labels IS NULL")
		add("labels IS NOT NULL")
		add("array_has_all(labels,[])")
	}
	if _, ok := d.types["tenant"]; ok {
		add("tenant = 't1'")
		add("tenant IN ('t0','t3','zzz')")
		add("tenant >= 't2'")
		add("tenant IS NULL")
		add("tenant IS NOT NULL")
	}
	if _, ok := d.types["ts"]; ok {
		add("ts IS NULL")
	}
	add("id > 100")
	add("id <= 350")
	add("id BETWEEN 40 AND 600")
	add("id = 7")
	add("id IN (1,2,3,5,8,13,400,9999)")
	return out
}

func drawWhere(t *rapid.T, leaves []string, depth int) string {
	op := "leaf"
	if depth > 0 {
		op = rapid.SampledFrom([]string{"leaf", "NOT", "AND", "OR"}).Draw(t, "op")
	}
	switch op {
	case "NOT":
		return "NOT (" + drawWhere(t, leaves, depth-1) + ")"
	case "AND", "OR":
		return "(" + drawWhere(t, leaves, depth-1) + " " + op + " " + drawWhere(t, leaves, depth-1) + ")"
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

// TestRandomFiltersAnswerByIndexAsByScan compares TRUE rows (the filter) and NULL rows (the value) of random trees.
func TestRandomFiltersAnswerByIndexAsByScan(t *testing.T) {
	for _, name := range []string{
		"labels_stable", "labels_stable_churn", "labels_stable_optimized", "labels_v22_churn", "labels_v20_optimized", "vec_ivf_flat_l2",
	} {
		t.Run(name, func(t *testing.T) {
			d := openDataset(t, testutil.Lance(t, name))
			if len(d.segments) == 0 {
				t.Fatal("the dataset has no filter index")
			}
			leaves := d.leavesOf()
			asked := 0
			rapid.Check(t, func(t *rapid.T) {
				text := drawWhere(t, leaves, 4)
				w := segtest.ParseWhere(t, text)
				got, want := d.lookup(t, w, &asked), d.scan(t, w, d.live)
				if !rowset.Equal(got.True, want.True) {
					t.Fatalf("%s: TRUE %v, by scan %v", text, d.idsOf(got.True), d.idsOf(want.True))
				}
				if !rowset.Equal(got.Null, want.Null) {
					t.Fatalf("%s: NULL %v, by scan %v", text, d.idsOf(got.Null), d.idsOf(want.Null))
				}
			})
			if asked == 0 {
				t.Fatal("no index was asked")
			}
		})
	}
}

func TestUnknownKindsAreNamed(t *testing.T) {
	for url, want := range map[string]index.Kind{
		"/lance.table.LabelListIndexDetails": index.KindLabelList, "/lance.table.BITMAPINDEXDETAILS": index.KindBitmap,
		"type.googleapis.com/lance.table.BTreeIndexDetails": index.KindBTree, "/lance.index.pb.VectorIndexDetails": "",
	} {
		if got, ok := filter.KindOf(url); got != want || ok != (want != "") {
			t.Errorf("%s: %q", url, got)
		}
	}
	_, err := filter.Open(ctx, nil, index.Meta{Name: "z", Kind: index.KindZoneMap}, index.OpenOptions{})
	if err == nil || err.Error() != "index z: kind ZONEMAP is not read" {
		t.Errorf("got %v", err)
	}
}
