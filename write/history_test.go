package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/filter"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

var stock = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "tag", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64},
}, nil)

// item is a row of the model; created and key are checked where rows have stable ids.
type item struct {
	tag     string // "" = NULL
	n       int64
	key     uint64
	created uint64
}

// items yields rows in the order of ids, in batches of up to batchRows.
type items struct {
	ids       []int64
	rows      map[int64]item
	batchRows int
}

func (s *items) Next(context.Context) (arrow.RecordBatch, error) {
	if len(s.ids) == 0 {
		return nil, io.EOF
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, stock)
	defer b.Release()
	n := min(len(s.ids), s.batchRows)
	for _, id := range s.ids[:n] {
		row := s.rows[id]
		b.Field(0).(*array.Int64Builder).Append(id)
		if row.tag == "" {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(row.tag)
		}
		b.Field(2).(*array.Int64Builder).Append(row.n)
	}
	s.ids = s.ids[n:]
	return b.NewRecordBatch(), nil
}

// history runs random changes beside a model.
type history struct {
	t      *testing.T
	r      *rand.Rand
	target Target
	stable bool
	rows   map[int64]item
	next   int64
	what   string
}

func (h *history) item() item {
	tag := fmt.Sprintf("t%d", h.r.Intn(4))
	if h.r.Intn(6) == 0 {
		tag = ""
	}
	return item{tag: tag, n: int64(h.r.Intn(100))}
}

func (h *history) fresh(rows map[int64]item, n int) *items {
	s := &items{rows: rows, batchRows: 1 + h.r.Intn(40)}
	for range n {
		rows[h.next] = h.item()
		s.ids = append(s.ids, h.next)
		h.next++
	}
	return s
}

// scanned reads a snapshot: address and row by id.
func scanned(t *testing.T, s *storage.Snapshot) (map[int64]rowset.RowAddr, map[int64]item) {
	t.Helper()
	ctx := context.Background()
	scan, err := s.Scan(ctx, storage.ScanOptions{WithRowAddr: true, WithRowID: true})
	if err != nil {
		t.Fatal(err)
	}
	addrs, rows := make(map[int64]rowset.RowAddr), make(map[int64]item)
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return addrs, rows
		}
		if err != nil {
			t.Fatal(err)
		}
		tags := b.Column(1).(*array.String)
		for i := range int(b.NumRows()) {
			id := b.Column(0).(*array.Int64).Value(i)
			if _, twice := rows[id]; twice {
				t.Fatalf("row %d twice", id)
			}
			row := item{n: b.Column(2).(*array.Int64).Value(i), key: b.Column(4).(*array.Uint64).Value(i)}
			if tags.IsValid(i) {
				row.tag = string([]byte(tags.Value(i)))
			}
			rows[id], addrs[id] = row, rowset.RowAddr(b.Column(3).(*array.Uint64).Value(i))
		}
		b.Release()
	}
}

// check compares a snapshot with rows, by scan and by index.
func (h *history) check(what string, s *storage.Snapshot, want map[int64]item) map[int64]rowset.RowAddr {
	h.t.Helper()
	addrs, got := scanned(h.t, s)
	if len(got) != len(want) || s.Rows() != uint64(len(want)) {
		h.t.Fatalf("%s: %s: %d rows, %d counted, want %d", h.what, what, len(got), s.Rows(), len(want))
	}
	for id, row := range want {
		g, ok := got[id]
		if !ok || g.tag != row.tag || g.n != row.n || (h.stable && row.created != 0 && g.key != row.key) {
			h.t.Fatalf("%s: %s: row %d is %+v (%t), want %+v", h.what, what, id, g, ok, row)
		}
	}
	idsOf(h.t, s)
	h.checkIndices(what, s, addrs, got)
	return addrs
}

// checkIndices asks each segment for a tag and compares with the rows of the fragments that it covers.
func (h *history) checkIndices(what string, s *storage.Snapshot, addrs map[int64]rowset.RowAddr, rows map[int64]item) {
	h.t.Helper()
	ctx := context.Background()
	for _, info := range s.Indices() {
		kind, known := filter.KindOf(info.TypeURL)
		if !known {
			continue
		}
		meta := index.Meta{
			Name: info.Name, Kind: kind, Version: info.Version, Covers: info.Covers, PhysicalKeys: index.PhysicalKeys(kind, info.Version) && s.HasStableRowIDs(),
		}
		open := func(ctx context.Context, name string) (object.File, error) { return s.OpenIndexFile(ctx, info, name) }
		seg, err := filter.Open(ctx, open, meta, index.OpenOptions{})
		if err != nil {
			h.t.Fatalf("%s: %s: index %s: %v", h.what, what, info.Name, err)
		}
		truth, _, err := seg.Lookup(ctx, index.Predicate{Op: index.OpEq, Values: text(`["t1"]`)})
		if err != nil {
			h.t.Fatalf("%s: %s: index %s: %v", h.what, what, info.Name, err)
		}
		found := truth.True
		if meta.PhysicalKeys {
			found, err = s.LiveOf(ctx, found)
		} else {
			found, err = s.Resolve(ctx, found)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		found = found.OnlyUppers(info.Covers)
		expected := &rowset.Set{}
		for id, a := range addrs {
			if rows[id].tag == "t1" && info.Covers.Contains(a.Fragment()) {
				expected.Add(uint64(a))
			}
		}
		if !rowset.Equal(found, expected) {
			h.t.Fatalf("%s: %s: index %s, covering %v, finds %d rows, a scan %d", h.what, what, info.Name, info.Covers, found.Count(), expected.Count())
		}
		if err := seg.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
}

func pick(r *rand.Rand, rows map[int64]item, n int) []int64 {
	ids := slices.Sorted(maps.Keys(rows))
	if h := r.Intn(3); h == 0 && len(ids) > 0 { // a run of neighbours
		at := r.Intn(len(ids))
		return ids[at:min(at+n, len(ids))]
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:min(n, len(ids))]
}

// change stages one random change in x and in rows.
func (h *history) change(x *Tx, rows map[int64]item) string {
	h.t.Helper()
	ctx := context.Background()
	view, err := x.Snapshot(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	addrs := h.check("before a change", view, rows)
	switch k := h.r.Intn(20); {
	case k < 6:
		parts := []Batches{h.fresh(rows, h.r.Intn(150)), h.fresh(rows, h.r.Intn(10))}
		if _, err := x.Append(ctx, parts); err != nil {
			h.t.Fatal(err)
		}
		return "append"
	case k < 12:
		gone := &rowset.Set{}
		ids := pick(h.r, rows, h.r.Intn(80))
		for _, id := range ids {
			gone.Add(uint64(addrs[id]))
			delete(rows, id)
		}
		if n, err := x.Delete(ctx, gone); err != nil || n != uint64(len(ids)) {
			h.t.Fatalf("%s: deleted %d of %d: %v", h.what, n, len(ids), err)
		}
		return "delete"
	case k < 19:
		ids := pick(h.r, rows, h.r.Intn(80))
		changed := [][]string{nil, {"n"}, {"tag", "n"}}[h.r.Intn(3)]
		var at []rowset.RowAddr
		for _, id := range ids {
			row, now := rows[id], h.item()
			row.n = now.n
			if len(changed) != 1 {
				row.tag = now.tag
			}
			rows[id] = row
			at = append(at, addrs[id])
		}
		with := &items{ids: ids, rows: maps.Clone(rows), batchRows: 1 + h.r.Intn(40)}
		if n, err := x.Update(ctx, at, with, changed); err != nil || n != uint64(len(ids)) {
			h.t.Fatalf("%s: updated %d of %d: %v", h.what, n, len(ids), err)
		}
		return fmt.Sprintf("update %v", changed)
	}
	clear(rows)
	parts := []Batches{h.fresh(rows, h.r.Intn(100))}
	if err := x.Replace(ctx, parts, nil); err != nil {
		h.t.Fatal(err)
	}
	return "replace"
}

// step runs a transaction of one to four changes, and commits it or rolls it back.
func (h *history) step() {
	ctx := context.Background()
	table := openTable(h.t, h.target)
	x := mustBegin(h.t, table, TxOptions{Rows: RowOptions{FragmentRows: 64}})
	rows := maps.Clone(h.rows)
	h.what = fmt.Sprintf("version %d", x.base.Version())
	for range 1 + h.r.Intn(4) {
		h.what += ", " + h.change(x, rows)
	}
	view, err := x.Snapshot(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	h.check("staged", view, rows)
	if h.r.Intn(6) == 0 {
		if err := x.Rollback(ctx); err != nil {
			h.t.Fatal(err)
		}
		h.what += ", rollback"
	} else {
		if _, err := x.Commit(ctx); err != nil {
			h.t.Fatalf("%s: %v", h.what, err)
		}
		h.rows = rows
	}
	h.reopen()
	if h.r.Intn(4) == 0 {
		target := int64(30 + h.r.Intn(200))
		if _, err := Compact(ctx, openTable(h.t, h.target), CompactOptions{TargetRows: target, Remapper: rebuilder{h.target}}); err != nil {
			h.t.Fatalf("%s: %v", h.what, err)
		}
		h.what += ", compact"
		h.reopen()
	}
	if h.r.Intn(3) == 0 {
		spec := FilterIndexSpec{Column: "tag", Kind: index.KindBitmap}
		if h.r.Intn(2) == 0 {
			spec = FilterIndexSpec{Column: "tag", Name: "tree", Kind: index.KindBTree}
		}
		if _, err := BuildFilterIndex(ctx, openTable(h.t, h.target), spec, FilterIndexOptions{Extend: true}); err != nil {
			h.t.Fatalf("%s: %v", h.what, err)
		}
		h.what += ", index " + spec.Name
		h.reopen()
	}
}

// reopen checks the newest version, and learns the keys of rows that are new.
func (h *history) reopen() {
	h.t.Helper()
	s, err := openTable(h.t, h.target).Latest(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	h.check("reopened", s, h.rows)
	_, got := scanned(h.t, s)
	for id, row := range h.rows {
		if row.created == 0 {
			row.created, row.key = s.Version(), got[id].key
			h.rows[id] = row
		}
	}
	if h.stable {
		h.checkLineage(s)
	}
}

// checkLineage compares the versions that rows say they were created by.
func (h *history) checkLineage(s *storage.Snapshot) {
	h.t.Helper()
	ctx := context.Background()
	addrs, _ := scanned(h.t, s)
	created := make(map[rowset.RowAddr]uint64)
	for _, f := range s.Fragments() {
		runs, err := f.CreatedVersions(ctx)
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := f.UpdatedVersions(ctx); err != nil {
			h.t.Fatal(err)
		}
		at := uint32(0)
		for _, r := range runs {
			for range r.Count {
				created[rowset.Addr(f.ID(), at)] = r.Version
				at++
			}
		}
	}
	for id, row := range h.rows {
		if got := created[addrs[id]]; got != row.created {
			h.t.Fatalf("%s: row %d was created by version %d, want %d", h.what, id, got, row.created)
		}
	}
}

func TestRandomHistoriesMatchTheModel(t *testing.T) {
	for seed := range int64(4) {
		for _, stable := range []bool{false, true} {
			opts := CreateOptions{StableRowIDs: stable, NamesV1: seed%2 == 1, Version: []file.Version{file.V21, file.V22}[seed/2%2]}
			t.Run(fmt.Sprintf("seed %d stable %t %s", seed, stable, opts.Version), func(t *testing.T) {
				h := &history{
					t: t, r: rand.New(rand.NewSource(seed)), stable: stable, rows: make(map[int64]item),
					target: Target{Store: object.NewMemory("test"), Dir: "h.lance"},
				}
				opts.Parts = []Batches{h.fresh(h.rows, 100)}
				if _, err := CreateTable(context.Background(), h.target, stock, opts); err != nil {
					t.Fatal(err)
				}
				h.reopen()
				for range 14 {
					h.step()
				}
				noGarbage(t, h.target)
			})
		}
	}
}

// eachBatch hands out the first two columns of a scan.
func eachBatch(ctx context.Context, scan *storage.Scan, f func(ids []int64, addrs []uint64)) error {
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(b.Column(0).(*array.Int64).Int64Values(), b.Column(1).(*array.Uint64).Uint64Values())
		b.Release()
	}
}
