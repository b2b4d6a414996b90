package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// openAt opens the dataset at an absolute path.
func openAt(tb testing.TB, path string) *Table {
	tb.Helper()
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	must(tb, err)
	tb.Cleanup(func() { must(tb, store.Close()) })
	t, err := OpenTable(context.Background(), store, filepath.Base(path), TableOptions{})
	must(tb, err)
	return t
}

func latest(tb testing.TB, path string) *Snapshot {
	tb.Helper()
	s, err := openAt(tb, path).Latest(context.Background())
	must(tb, err)
	return s
}

// scanned is what a scan of several readers gave: rows by address.
type scanned struct {
	rows  map[rowset.RowAddr]map[string]any
	ids   map[rowset.RowAddr]uint64
	order []rowset.RowAddr // of one reader alone
}

// scan runs a scan with some readers and checks what every scan must keep.
func scan(tb testing.TB, s *Snapshot, opts ScanOptions, readers int) scanned {
	tb.Helper()
	ctx := context.Background()
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(tb, 0)
	opts.Alloc, opts.WithRowAddr, opts.WithRowID = alloc, true, true
	c, err := s.Scan(ctx, opts)
	must(tb, err)
	out := scanned{rows: make(map[rowset.RowAddr]map[string]any), ids: make(map[rowset.RowAddr]uint64)}
	var mu sync.Mutex
	g, ctx := spawn.WithContext(ctx, 0)
	for range readers {
		r := c.Reader()
		g.Go("scan", func() error {
			for {
				b, err := r.Next(ctx)
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				mu.Lock()
				err = out.add(b, c, opts.BatchRows)
				mu.Unlock()
				b.Release()
				if err != nil {
					return err
				}
			}
		})
	}
	must(tb, g.Wait())
	if uint64(len(out.rows)) != c.Rows() {
		tb.Fatalf("%d rows, the scan said %d", len(out.rows), c.Rows())
	}
	return out
}

func (o *scanned) add(b arrow.RecordBatch, c *Scan, batchRows int) error {
	if batchRows == 0 {
		batchRows = defaultBatchRows
	}
	if b.NumRows() < 1 || b.NumRows() > int64(batchRows) || (len(c.opts.Codes) == 0 && !b.Schema().Equal(c.Schema())) {
		return fmt.Errorf("batch of %d rows, schema %s", b.NumRows(), b.Schema())
	}
	n := int(b.NumCols())
	addrs := b.Column(n - 2).(*array.Uint64).Uint64Values()
	ids := b.Column(n - 1).(*array.Uint64).Uint64Values()
	for i, row := range testutil.Rows(b) {
		delete(row, RowAddrColumn)
		delete(row, RowIDColumn)
		a := rowset.RowAddr(addrs[i])
		if i > 0 && (addrs[i] <= addrs[i-1] || a.Fragment() != rowset.RowAddr(addrs[i-1]).Fragment()) {
			return fmt.Errorf("address %s after %s in one batch", a, rowset.RowAddr(addrs[i-1]))
		}
		if _, twice := o.rows[a]; twice {
			return fmt.Errorf("row %s twice", a)
		}
		o.rows[a], o.ids[a] = row, ids[i]
		o.order = append(o.order, a)
	}
	return nil
}

// idOf is the value of the column "id", which every reference dataset has and where it is unique.
func idOf(row map[string]any) string { return fmt.Sprint(row["id"]) }

func byID(tb testing.TB, rows []map[string]any) map[string]map[string]any {
	tb.Helper()
	out := make(map[string]map[string]any, len(rows))
	for _, r := range rows {
		out[idOf(r)] = r
	}
	if len(out) != len(rows) {
		tb.Fatalf("%d rows, %d ids", len(rows), len(out))
	}
	return out
}

// compare holds what a scan gave against the expected rows, which may come in any order.
func compare(tb testing.TB, got scanned, want map[string]map[string]any) {
	tb.Helper()
	if len(got.rows) != len(want) {
		tb.Fatalf("%d rows, want %d", len(got.rows), len(want))
	}
	for a, row := range got.rows {
		w, ok := want[idOf(row)]
		if !ok {
			tb.Fatalf("row %s has id %s, which is not expected", a, idOf(row))
		}
		testutil.CompareRow(tb, "row "+a.String(), row, w)
	}
}

// checkDataset reads a dataset in every way and compares.
func checkDataset(t *testing.T, s *Snapshot, expected []map[string]any) {
	t.Helper()
	ctx := context.Background()
	want := byID(t, expected)
	if s.Rows() != uint64(len(want)) {
		t.Fatalf("%d live rows, want %d", s.Rows(), len(want))
	}
	all := scan(t, s, ScanOptions{}, 1)
	compare(t, all, want)
	for _, o := range []struct{ batch, readers int }{{1, 1}, {7, 3}, {100, 2}, {8192, 4}} {
		if o.batch == 1 && len(want) > 1000 {
			continue
		}
		compare(t, scan(t, s, ScanOptions{BatchRows: o.batch}, o.readers), want)
	}
	if len(all.rows) == 0 {
		return
	}
	checkTake(t, s, all, "id")
	checkCandidates(t, s, all)
	checkKeys(t, s, all)
	live, err := s.LiveRows(ctx, nil)
	must(t, err)
	if live.Count() != s.Rows() {
		t.Fatalf("%d live addresses of %d rows", live.Count(), s.Rows())
	}
}

// checkTake takes shuffled addresses with doubles, some columns in another order.
func checkTake(t *testing.T, s *Snapshot, all scanned, idColumn string) {
	t.Helper()
	ctx := context.Background()
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	r := rand.New(rand.NewSource(1))
	for _, n := range []int{1, 5, min(2000, len(all.order)), 2 * min(2000, len(all.order))} {
		addrs := make([]rowset.RowAddr, n)
		for i := range addrs {
			addrs[i] = all.order[r.Intn(len(all.order))]
		}
		b, err := s.Take(ctx, addrs, TakeOptions{Alloc: alloc})
		must(t, err)
		if !b.Schema().Equal(s.ArrowSchema()) {
			t.Fatalf("schema %s", b.Schema())
		}
		for i, row := range testutil.Rows(b) {
			testutil.CompareRow(t, fmt.Sprintf("take %d of %d, %s", i, n, addrs[i]), row, all.rows[addrs[i]])
		}
		b.Release()
	}
	fields := s.ArrowSchema().Fields()
	last := fields[len(fields)-1].Name
	b, err := s.Take(ctx, all.order[:1], TakeOptions{Columns: []string{last, idColumn}, Alloc: alloc})
	must(t, err)
	defer b.Release()
	want := all.rows[all.order[0]]
	testutil.CompareRow(t, "two columns", testutil.Rows(b)[0], map[string]any{last: want[last], idColumn: want[idColumn]})
}

// checkCandidates scans with sparse, dense, empty and foreign candidates.
func checkCandidates(t *testing.T, s *Snapshot, all scanned) {
	t.Helper()
	r := rand.New(rand.NewSource(2))
	for _, share := range []float64{0, 0.01, 0.3, 0.95} {
		set := rowset.NewSet(uint64(rowset.Addr(4000000, 3))) // a fragment that does not exist
		want := make(map[string]map[string]any)
		for _, a := range all.order {
			if r.Float64() < share {
				set.Add(uint64(a))
				want[idOf(all.rows[a])] = all.rows[a]
			}
		}
		for _, f := range s.Fragments() {
			if set.Bitmap(f.ID()) != nil {
				set.AddRange(f.ID(), f.PhysicalRows(), f.PhysicalRows()+5) // rows behind the end
				if dead, err := f.Deletions(context.Background()); err == nil && dead != nil {
					set.AddBitmap(f.ID(), dead)
				}
			}
		}
		compare(t, scan(t, s, ScanOptions{Candidates: set, BatchRows: 50}, 2), want)
	}
}

// checkKeys holds row addresses against stored keys in both directions.
func checkKeys(t *testing.T, s *Snapshot, all scanned) {
	t.Helper()
	ctx := context.Background()
	addrs, keys := rowset.NewSet(), rowset.NewSet()
	list := make([]uint64, 0, len(all.order)+1)
	for _, a := range all.order {
		addrs.Add(uint64(a))
		keys.Add(all.ids[a])
		list = append(list, all.ids[a])
		if !s.HasStableRowIDs() && all.ids[a] != uint64(a) {
			t.Fatalf("row %s has key %d", a, all.ids[a])
		}
	}
	gotKeys, err := s.Keys(ctx, addrs)
	must(t, err)
	if !rowset.Equal(gotKeys, keys) || keys.Count() != addrs.Count() {
		t.Fatalf("%d keys of %d addresses, want %d", gotKeys.Count(), addrs.Count(), keys.Count())
	}
	keys.Add(77 << 40) // no such row
	back, err := s.Resolve(ctx, keys)
	must(t, err)
	if !rowset.Equal(back, addrs) {
		t.Fatalf("%d addresses resolved, want %d", back.Count(), addrs.Count())
	}
	got, ok, err := s.ResolveKeys(ctx, append(list, 77<<40))
	must(t, err)
	for i, a := range all.order {
		if !ok[i] || got[i] != a {
			t.Fatalf("key %d resolves to %s %t, want %s", list[i], got[i], ok[i], a)
		}
	}
	if ok[len(list)] {
		t.Fatal("an unknown key resolves")
	}
}

func checkReference(t *testing.T, path string) {
	t.Helper()
	s := latest(t, path)
	expected := testutil.LoadExpected(t, path)
	if expected.Rows == nil { // only the answers of searches are kept: what one scan gave stands for the rows
		for _, row := range scan(t, s, ScanOptions{}, 1).rows {
			expected.Rows = append(expected.Rows, row)
		}
	}
	checkDataset(t, s, expected.Rows)
	for i, f := range s.ArrowSchema().Fields() {
		if w := expected.Schema[i]; f.Name != w.Name || f.Nullable != w.Nullable {
			t.Fatalf("column %d is %s %t, want %s %t", i, f.Name, f.Nullable, w.Name, w.Nullable)
		}
	}
	names := make(map[string]bool)
	for _, i := range s.Indices() {
		names[i.Name] = true
	}
	for _, w := range expected.Indices {
		if name := fmt.Sprint(w["name"]); w["name"] != nil && !names[name] {
			t.Fatalf("index %s is missing from %v", name, names)
		}
	}
}

// checkHistory reads every version that the file beside the dataset lists.
func checkHistory(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	table := openAt(t, path)
	var versions map[string][]map[string]any
	testutil.LoadJSON(t, strings.TrimSuffix(path, ".lance")+".versions.json", &versions)
	infos, err := table.Versions(ctx)
	must(t, err)
	if len(infos) != len(versions) {
		t.Fatalf("%d versions, want %d", len(infos), len(versions))
	}
	for i, info := range infos {
		s, err := table.At(ctx, Ref{Version: info.Version})
		must(t, err)
		if s.Version() != uint64(i+1) || !s.Timestamp().Equal(info.Timestamp) {
			t.Fatalf("version %d at %s", s.Version(), s.Timestamp())
		}
		t.Run(fmt.Sprintf("version %d", info.Version), func(t *testing.T) {
			checkDataset(t, s, versions[strconv.FormatUint(info.Version, 10)])
		})
		at, err := table.At(ctx, Ref{Time: info.Timestamp})
		must(t, err)
		if at.Version() != info.Version {
			t.Fatalf("at the time of version %d is version %d", info.Version, at.Version())
		}
	}
	tags, err := table.Tags(ctx)
	must(t, err)
	for _, tag := range tags {
		s, err := table.At(ctx, Ref{Tag: tag.Name})
		must(t, err)
		if s.Version() != tag.Version {
			t.Fatalf("tag %s is version %d", tag.Name, s.Version())
		}
	}
	if len(tags) == 0 {
		t.Fatal("no tags")
	}
}

// datasets lists the folders of a directory that have a file of answers.
func datasets(tb testing.TB, root string) []string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(root, "*.lance"))
	must(tb, err)
	return found
}

func TestReferenceDatasetsReadEqual(t *testing.T) {
	found := datasets(t, filepath.Join(testutil.Root(t), "testdata", "lance"))
	if len(found) < 30 {
		t.Fatalf("%d datasets", len(found))
	}
	for _, path := range found {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".lance"), func(t *testing.T) { checkReference(t, path) })
	}
}

func TestEveryVersionOfAHistoryReadsEqual(t *testing.T) {
	checkHistory(t, testutil.Lance(t, "history"))
}
