package segtest

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Dataset is an opened dataset with a column id: its rows by address, and its filter segments by column.
type Dataset struct {
	Snapshot *storage.Snapshot
	Live     *rowset.Set
	Types    map[string]arrow.DataType // of the column, or of a list's elements
	Segments map[string][]index.FilterSegment
	Stale    int // segments that may be stale

	ids     map[uint64]int64 // column id by row address
	columns map[string]map[uint64]value
}

// value is one row's value: NULL, a plain value, or a list.
type value struct {
	null   bool
	plain  *key.Key
	list   []key.Key // NULL elements left out
	isList bool
}

// OpenDataset opens the newest version of the dataset at path, reads its rows and opens its filter segments.
func OpenDataset(tb testing.TB, path string) *Dataset {
	tb.Helper()
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	table, err := storage.OpenTable(context.Background(), store, filepath.Base(path), storage.TableOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	snap, err := table.Latest(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	d := &Dataset{
		Snapshot: snap, ids: map[uint64]int64{}, columns: map[string]map[uint64]value{},
		Types: map[string]arrow.DataType{}, Segments: map[string][]index.FilterSegment{},
	}
	if d.Live, err = snap.LiveRows(context.Background(), nil); err != nil {
		tb.Fatal(err)
	}
	d.openSegments(tb)
	d.readRows(tb)
	return d
}

func (d *Dataset) openSegments(tb testing.TB) {
	for _, info := range d.Snapshot.Indices() {
		kind, ok := filter.KindOf(info.TypeURL)
		if !ok {
			continue
		}
		column := ""
		for _, f := range d.Snapshot.Schema().Fields {
			if f.ID == info.FieldIDs[0] {
				column = f.Name
			}
		}
		open := func(ctx context.Context, name string) (object.File, error) {
			return d.Snapshot.OpenIndexFile(ctx, info, name)
		}
		stale, err := filter.MayBeStale(context.Background(), d.Snapshot, info)
		if err != nil {
			tb.Fatal(err)
		}
		if stale {
			d.Stale++
		}
		meta := index.Meta{
			Name: info.Name, UUID: info.UUID, Kind: kind, FieldID: info.FieldIDs[0], Covers: info.Covers, Version: info.Version, Stale: stale,
		}
		opts := index.OpenOptions{}
		if kind == index.KindZoneMap || !d.Snapshot.HasStableRowIDs() {
			opts.FragmentRows = d.fragmentRows
		}
		s, err := filter.Open(context.Background(), open, meta, opts)
		if err != nil {
			tb.Fatalf("%s: %v", info.Name, err)
		}
		tb.Cleanup(func() { _ = s.Close() })
		d.Segments[column] = append(d.Segments[column], s)
	}
}

func (d *Dataset) fragmentRows(id uint32) (uint64, bool) {
	f, ok := d.Snapshot.Fragment(id)
	if !ok {
		return 0, false
	}
	return f.PhysicalRows(), true
}

func (d *Dataset) readRows(tb testing.TB) {
	var names []string
	for _, f := range d.Snapshot.Schema().Fields {
		t := f.Type
		if l, ok := t.(*arrow.ListType); ok {
			t = l.Elem()
		}
		if _, err := key.NewCodec(t); err == nil {
			d.Types[f.Name] = t
			d.columns[f.Name] = map[uint64]value{}
			names = append(names, f.Name)
		}
	}
	scan, err := d.Snapshot.Scan(context.Background(), storage.ScanOptions{Columns: names, WithRowAddr: true})
	if err != nil {
		tb.Fatal(err)
	}
	for reader := scan.Reader(); ; {
		batch, err := reader.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		addrs := batch.Column(len(names)).(*array.Uint64)
		for c, name := range names {
			codec, _ := key.NewCodec(d.Types[name])
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
func scanLeaf(tb TB, codec key.Codec, w Where, needles []key.Key, v value) Verdict {
	if w.Op == "is_null" || w.Op == "is_not_null" {
		return Of(v.null == (w.Op == "is_null"))
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
		return Of(hits > 0 && w.Op != "has_all" || hits == len(needles) && w.Op == "has_all")
	}
	if w.Op == "in" {
		return Of(slices.ContainsFunc(needles, equals(*v.plain)))
	}
	o := codec.Compare(*v.plain, needles[0])
	switch w.Op {
	case "=":
		return Of(o == 0)
	case "!=":
		return Of(o != 0)
	case "<":
		return Of(o < 0)
	case "<=":
		return Of(o <= 0)
	case ">":
		return Of(o > 0)
	case ">=":
		return Of(o >= 0)
	case "between":
		return Of(o >= 0 && codec.Compare(*v.plain, needles[1]) <= 0)
	}
	tb.Fatalf("operator %q", w.Op)
	return 0
}

// Scan answers a filter row by row over some rows, in row addresses.
func (d *Dataset) Scan(tb TB, w Where, rows *rowset.Set) index.Truth {
	switch w.Op {
	case "not":
		return d.Scan(tb, w.Args[0], rows).Not(rows)
	case "and":
		return d.Scan(tb, w.Args[0], rows).And(d.Scan(tb, w.Args[1], rows))
	case "or":
		return d.Scan(tb, w.Args[0], rows).Or(d.Scan(tb, w.Args[1], rows))
	}
	codec, err := key.NewCodec(d.Types[w.Column])
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

func (d *Dataset) needles(tb TB, w Where) arrow.Array {
	text := "["
	for i, n := range w.Needles {
		if i > 0 {
			text += ","
		}
		text += n
	}
	return Array(tb, d.Types[w.Column], text+"]")
}

// predicate returns the index predicate of a comparison; false where no index is asked (an empty needle list).
func (d *Dataset) predicate(tb TB, w Where) (index.Predicate, bool) {
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

// Lookup answers a filter with the indices where they can, and by scan for fragments that none covers; asked counts segments that answered.
func (d *Dataset) Lookup(tb TB, w Where, asked *int) index.Truth {
	switch w.Op {
	case "not":
		return d.Lookup(tb, w.Args[0], asked).Not(d.Live)
	case "and":
		return d.Lookup(tb, w.Args[0], asked).And(d.Lookup(tb, w.Args[1], asked))
	case "or":
		return d.Lookup(tb, w.Args[0], asked).Or(d.Lookup(tb, w.Args[1], asked))
	}
	p, ok := d.predicate(tb, w)
	if !ok {
		return d.Scan(tb, w, d.Live)
	}
	out := index.Truth{True: &rowset.Set{}, Null: &rowset.Set{}}
	open := roaring.New()
	for _, f := range d.Snapshot.Fragments() {
		open.Add(f.ID())
	}
	for _, s := range d.Segments[w.Column] {
		if _, ok := index.Answers(s, p.Op); !ok {
			continue
		}
		covered := roaring.And(s.Meta().Covers, open)
		truth, match := d.evaluate(tb, s, p, covered)
		switch match {
		case index.AtMost:
			truth = d.Scan(tb, w, rowset.Or(truth.True, truth.Null))
		case index.TrueOnly:
			truth.Null = d.Scan(tb, w, d.Live.OnlyUppers(covered)).Null
		}
		out = index.Truth{True: rowset.Union(out.True, truth.True), Null: rowset.Union(out.Null, truth.Null)}
		open.AndNot(covered)
		*asked++
	}
	rest := d.Scan(tb, w, d.Live.OnlyUppers(open))
	return index.Truth{True: rowset.Union(out.True, rest.True), Null: rowset.Union(out.Null, rest.Null)}
}

// evaluate asks one segment about the live rows of the fragments that it covers, and returns row addresses.
func (d *Dataset) evaluate(tb TB, s index.FilterSegment, p index.Predicate, covered *roaring.Bitmap) (index.Truth, index.Match) {
	universe, err := d.Live.OnlyUppers(covered), error(nil)
	physical := s.Meta().PhysicalKeys || !d.Snapshot.HasStableRowIDs()
	if !physical {
		if universe, err = d.Snapshot.Keys(context.Background(), universe); err != nil {
			tb.Fatal(err)
		}
	}
	truth, match, err := index.Evaluate(context.Background(), s, p, universe)
	if err != nil {
		tb.Fatalf("%s: %v", s.Meta().Name, err)
	}
	if physical {
		return truth, match
	}
	for _, set := range []**rowset.Set{&truth.True, &truth.Null} {
		if *set, err = d.Snapshot.Resolve(context.Background(), *set); err != nil {
			tb.Fatal(err)
		}
	}
	return truth, match
}

// IDs returns the ids of rows as the answers spell them.
func (d *Dataset) IDs(rows *rowset.Set) []string {
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
