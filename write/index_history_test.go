package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

const lifeDim = 3

var lifeColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "tag", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "v", Type: arrow.FixedSizeListOf(lifeDim, arrow.PrimitiveTypes.Float32), Nullable: true},
}, nil)

// lifeRows yields one row for each id, every value drawn at random.
type lifeRows struct {
	r   *rand.Rand
	ids []int64
}

func (s *lifeRows) Next(context.Context) (arrow.RecordBatch, error) {
	if len(s.ids) == 0 {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, lifeColumns)
	defer b.Release()
	labels, v := b.Field(1).(*array.ListBuilder), b.Field(4).(*array.FixedSizeListBuilder)
	for _, id := range s.ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		isList := s.r.Intn(8) > 0
		if labels.Append(isList); isList {
			for range s.r.Intn(4) {
				if text := labels.ValueBuilder().(*array.StringBuilder); s.r.Intn(9) == 0 {
					text.AppendNull()
				} else {
					text.Append(fmt.Sprintf("l%d", s.r.Intn(5)))
				}
			}
		}
		if s.r.Intn(7) == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("t%d", s.r.Intn(4)))
		}
		if s.r.Intn(7) == 0 {
			b.Field(3).AppendNull()
		} else {
			b.Field(3).(*array.Int64Builder).Append(id/10 + int64(s.r.Intn(20)))
		}
		isVector := s.r.Intn(9) > 0
		v.Append(isVector)
		for range lifeDim {
			v.ValueBuilder().(*array.Float32Builder).Append(float32(s.r.Intn(100)))
		}
	}
	s.ids = nil
	return b.NewRecordBatch(), nil
}

var lifeIndices = []IndexSpec{
	{Column: "labels", Kind: index.KindLabelList},
	{Column: "tag", Kind: index.KindBitmap},
	{Column: "n", Kind: index.KindBTree},
	{Name: "zones", Column: "n", Kind: index.KindZoneMap, RowsPerZone: 16},
	{Column: "v", Kind: index.KindIVFFlat, Lists: 3},
}

var lifeFilters = []string{
	"array_has(labels, 'l1')", "NOT array_has(labels, 'l2')", "array_has_any(labels, ['l0', 'l4'])", "NOT array_has_all(labels, ['l0', 'l1'])", "labels IS NULL",
	"tag = 't1'", "NOT (tag = 't1')", "tag IN ('t0', 't3')", "tag IS NULL", "tag > 't1'",
	"n = 20", "n < 15", "NOT (n < 15)", "n BETWEEN 10 AND 30", "n IS NULL", "n >= 40 AND tag = 't2'",
}

// life runs random changes of a table and its indices.
type life struct {
	t      *testing.T
	r      *rand.Rand
	path   string
	target Target
	next   int64
	done   string // what was done so far
	asked  int
}

func (l *life) rows(n int) *lifeRows {
	s := &lifeRows{r: rand.New(rand.NewSource(l.r.Int63()))} // of its own: parts are read in parallel
	for range n {
		s.ids = append(s.ids, l.next)
		l.next++
	}
	return s
}

// snapshot opens the newest version and reads which row is where.
func (l *life) snapshot() (*storage.Snapshot, map[int64]rowset.RowAddr) {
	l.t.Helper()
	ctx := context.Background()
	snap, err := openTable(l.t, l.target).Latest(ctx)
	if err != nil {
		l.t.Fatalf("%s: %v", l.done, err)
	}
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: []string{"id"}, WithRowAddr: true})
	if err != nil {
		l.t.Fatal(err)
	}
	addrs := make(map[int64]rowset.RowAddr)
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return snap, addrs
		}
		if err != nil {
			l.t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			addrs[b.Column(0).(*array.Int64).Value(i)] = rowset.RowAddr(b.Column(1).(*array.Uint64).Value(i))
		}
		b.Release()
	}
}

func (l *life) pick(addrs map[int64]rowset.RowAddr, n int) []int64 {
	ids := slices.Sorted(maps.Keys(addrs))
	if l.r.Intn(2) == 0 && len(ids) > 0 { // neighbours
		at := l.r.Intn(len(ids))
		return ids[at:min(at+n, len(ids))]
	}
	l.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:min(n, len(ids))]
}

func (l *life) step() {
	l.t.Helper()
	ctx := context.Background()
	table := openTable(l.t, l.target)
	var err error
	switch k := l.r.Intn(12); {
	case k < 3:
		l.done += ", append"
		_, err = Append(ctx, l.target, l.rows(1+l.r.Intn(120)), AppendOptions{Rows: RowOptions{FragmentRows: 50}})
	case k < 4:
		l.done += ", delete"
		err = l.delete(table)
	case k < 7:
		changed := [][]string{nil, {"tag"}, {"labels", "n"}, {"v"}}[l.r.Intn(4)]
		l.done += fmt.Sprintf(", update %v", changed)
		err = l.update(table, changed)
	case k < 9:
		target := int64(40 + l.r.Intn(200))
		l.done += fmt.Sprintf(", compact to %d", target)
		_, err = Compact(ctx, table, CompactOptions{TargetRows: target, Remapper: IndexRemapper{}})
	default:
		spec := lifeIndices[l.r.Intn(len(lifeIndices))].withDefaults()
		opts := UpdateIndexOptions{Merge: l.r.Intn(5) - 1}
		l.done += fmt.Sprintf(", update index %s %d", spec.Name, opts.Merge)
		if _, err = UpdateIndex(ctx, table, spec.Name, opts); err != nil && len(group(l.latest(), spec.Name)) == 0 {
			// An index of vectors goes with the last of its fragments.
			l.done += ", create index " + spec.Name
			_, err = CreateIndex(ctx, table, spec, CreateIndexOptions{})
		}
	}
	if err != nil {
		l.t.Fatalf("%s: %v", l.done, err)
	}
	l.check()
}

func (l *life) latest() *storage.Snapshot {
	snap, err := openTable(l.t, l.target).Latest(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return snap
}

func (l *life) delete(table *storage.Table) error {
	_, addrs := l.snapshot()
	gone := &rowset.Set{}
	for _, id := range l.pick(addrs, l.r.Intn(60)) {
		gone.Add(uint64(addrs[id]))
	}
	x := mustBegin(l.t, table, TxOptions{})
	if _, err := x.Delete(context.Background(), gone); err != nil {
		return err
	}
	_, err := x.Commit(context.Background())
	return err
}

func (l *life) update(table *storage.Table, changed []string) error {
	_, addrs := l.snapshot()
	ids := l.pick(addrs, 1+l.r.Intn(60))
	if len(ids) == 0 {
		return nil
	}
	var at []rowset.RowAddr
	for _, id := range ids {
		at = append(at, addrs[id])
	}
	// All values are drawn anew, so columns that are not named as changed are read back.
	with := Batches(&lifeRows{r: l.r, ids: ids})
	if changed != nil {
		with = l.keep(at, ids, changed)
	}
	x := mustBegin(l.t, table, TxOptions{})
	if _, err := x.Update(context.Background(), at, with, changed); err != nil {
		return err
	}
	_, err := x.Commit(context.Background())
	return err
}

// keep draws the changed columns of rows anew and leaves the others.
func (l *life) keep(at []rowset.RowAddr, ids []int64, changed []string) Batches {
	l.t.Helper()
	old, err := l.latest().Take(context.Background(), at, storage.TakeOptions{Columns: fieldNames()})
	if err != nil {
		l.t.Fatal(err)
	}
	fresh, err := (&lifeRows{r: l.r, ids: ids}).Next(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	columns := slices.Clone(old.Columns())
	for i, f := range lifeColumns.Fields() {
		if slices.Contains(changed, f.Name) {
			columns[i] = fresh.Column(i)
		}
	}
	return &oneBatch{array.NewRecordBatch(lifeColumns, columns, int64(len(ids)))}
}

func fieldNames() []string {
	var out []string
	for _, f := range lifeColumns.Fields() {
		out = append(out, f.Name)
	}
	return out
}

type oneBatch struct{ batch arrow.RecordBatch }

func (o *oneBatch) Next(context.Context) (arrow.RecordBatch, error) {
	if o.batch == nil {
		return nil, io.EOF
	}
	b := o.batch
	o.batch = nil
	return b, nil
}

// check compares every filter by index and by scan, and every vector segment with the vectors.
func (l *life) check() {
	l.t.Helper()
	d := segtest.OpenDataset(l.t, l.path)
	for _, text := range lifeFilters {
		w := segtest.ParseWhere(l.t, text)
		byIndex, byScan := d.Lookup(l.t, w, &l.asked), d.Scan(l.t, w, d.Live)
		if !rowset.Equal(byIndex.True, byScan.True) || !rowset.Equal(byIndex.Null, byScan.Null) {
			l.t.Fatalf("%s: %s: %d TRUE and %d NULL rows by index, %d and %d by scan", l.done, text,
				byIndex.True.Count(), byIndex.Null.Count(), byScan.True.Count(), byScan.Null.Count())
		}
	}
	if d.Stale > 0 {
		l.t.Fatalf("%s: %d segments may be stale", l.done, d.Stale)
	}
	l.checkVectors(d)
	l.checkAsEngines(d)
	for _, f := range d.Snapshot.Indices() {
		covered := 0
		for _, other := range group(d.Snapshot, f.Name) {
			if other.Covers.Intersects(f.Covers) {
				covered++
			}
		}
		if covered > 1 {
			l.t.Fatalf("%s: index %s covers fragments twice", l.done, f.Name)
		}
	}
}

// checkAsEngines asks as engines do, which take an entry of any segment for true where the row's fragment is covered by any: no segment may hold what a
// row was before an update once another segment covers the row.
func (l *life) checkAsEngines(d *segtest.Dataset) {
	l.t.Helper()
	ctx := context.Background()
	for column, text := range map[string]string{"labels": "array_has(labels, 'l1')", "tag": "tag = 't1'"} {
		covers, found := roaring.New(), &rowset.Set{}
		for _, s := range d.Segments[column] {
			p := index.Predicate{Op: index.OpHas, Values: segtest.Array(l.t, arrow.BinaryTypes.String, `["l1"]`)}
			if column == "tag" {
				p = index.Predicate{Op: index.OpEq, Values: segtest.Array(l.t, arrow.BinaryTypes.String, `["t1"]`)}
			}
			truth, _, err := s.Lookup(ctx, p)
			if err != nil {
				l.t.Fatal(err)
			}
			resolved := rowset.And(truth.True, d.Live)
			if !s.Meta().PhysicalKeys {
				if resolved, err = d.Snapshot.Resolve(ctx, truth.True); err != nil {
					l.t.Fatal(err)
				}
			}
			found = rowset.Or(found, resolved)
			covers.Or(s.Meta().Covers)
		}
		want := d.Scan(l.t, segtest.ParseWhere(l.t, text), d.Live.OnlyUppers(covers)).True
		if got := found.OnlyUppers(covers); !rowset.Equal(got, want) {
			l.t.Fatalf("%s: %s: an engine finds %d rows by index, %d by scan", l.done, text, got.Count(), want.Count())
		}
	}
}

// checkVectors looks for every row of each vector segment, by a search that probes every list.
func (l *life) checkVectors(d *segtest.Dataset) {
	l.t.Helper()
	ctx := context.Background()
	for _, info := range group(d.Snapshot, "v_idx") {
		open := func(ctx context.Context, name string) (object.File, error) {
			return d.Snapshot.OpenIndexFile(ctx, info, name)
		}
		seg, err := vector.Open(ctx, open, index.Meta{Name: "v_idx"}, index.OpenOptions{})
		if err != nil {
			l.t.Fatalf("%s: %v", l.done, err)
		}
		hits, err := seg.Nearest(ctx, index.NearestQuery{Vector: make([]float32, lifeDim), Metric: index.MetricL2, K: 1 << 20, MinProbes: seg.Lists()})
		if err != nil {
			l.t.Fatal(err)
		}
		keys := make([]uint64, len(hits))
		for i, h := range hits {
			keys[i] = h.Key
		}
		addrs, ok, err := d.Snapshot.ResolveKeys(ctx, keys)
		if err != nil {
			l.t.Fatal(err)
		}
		got := make(map[uint64]float32)
		for i, a := range addrs {
			if ok[i] && info.Covers.Contains(a.Fragment()) {
				got[uint64(a)] = hits[i].Distance
			}
		}
		if want := l.norms(d, info); !maps.Equal(got, want) {
			l.t.Fatalf("%s: a vector segment over %v finds %d rows of %d", l.done, info.Covers, len(got), len(want))
		}
		_ = seg.Close()
	}
}

// norms are the squared lengths of the vectors of the covered fragments, by address.
func (l *life) norms(d *segtest.Dataset, info storage.IndexInfo) map[uint64]float32 {
	l.t.Helper()
	ctx := context.Background()
	out := make(map[uint64]float32)
	scan, err := d.Snapshot.Scan(ctx, storage.ScanOptions{Columns: []string{"v"}, WithRowAddr: true})
	if err != nil {
		l.t.Fatal(err)
	}
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			l.t.Fatal(err)
		}
		v := b.Column(0).(*array.FixedSizeList)
		for i := range int(b.NumRows()) {
			a := rowset.RowAddr(b.Column(1).(*array.Uint64).Value(i))
			if v.IsNull(i) || !info.Covers.Contains(a.Fragment()) {
				continue
			}
			from, _ := v.ValueOffsets(i)
			var sum float32
			for k := range lifeDim {
				x := v.ListValues().(*array.Float32).Value(int(from) + k)
				sum += x * x
			}
			out[uint64(a)] = sum
		}
		b.Release()
	}
}

// TestIndicesLiveThroughRandomHistories: after every change of rows and of indices each predicate by index is what it is by scan.
func TestIndicesLiveThroughRandomHistories(t *testing.T) {
	for seed := range int64(6) {
		stable, addresses := seed%3 > 0, seed%3 == 2
		t.Run(fmt.Sprintf("seed %d, stable ids %t, address keys %t", seed, stable, addresses), func(t *testing.T) {
			dir := t.TempDir()
			store, err := object.OpenLocal(dir, object.LocalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = store.Close() }()
			l := &life{t: t, r: rand.New(rand.NewSource(seed)), path: filepath.Join(dir, "t.lance"), target: Target{Store: store, Dir: "t.lance"}, done: "created"}
			opts := CreateOptions{StableRowIDs: stable, Parts: []Batches{l.rows(150)}, Rows: RowOptions{FragmentRows: 60}}
			if _, err := CreateTable(context.Background(), l.target, lifeColumns, opts); err != nil {
				t.Fatal(err)
			}
			for _, spec := range lifeIndices {
				spec.RowAddresses = addresses
				if _, err := CreateIndex(context.Background(), openTable(t, l.target), spec, CreateIndexOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			l.check()
			for range 16 {
				l.step()
			}
			if l.asked < 300 {
				t.Errorf("%d questions went to an index", l.asked)
			}
		})
	}
}
