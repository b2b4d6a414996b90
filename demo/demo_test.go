package demo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/manifest"
	"github.com/lakesql/lakesql/storage/object"
)

// tableFiles returns the data files of a table in the order of its fragments.
func tableFiles(t *testing.T, dir, table string) []string {
	t.Helper()
	store, err := object.OpenLocal(filepath.Join(dir, table+".lance"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	m, err := manifest.Read(context.Background(), store, manifest.VersionsDir+"/"+manifest.NamingV2.Name(1))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range m.Proto.GetFragments() {
		out = append(out, filepath.Join(dir, table+".lance", "data", f.GetFiles()[0].GetPath()))
	}
	return out
}

func readTable(t *testing.T, dir, table string) arrow.RecordBatch {
	t.Helper()
	ctx := context.Background()
	store, err := object.OpenLocal(dir, object.LocalOptions{MappingsMax: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var all []arrow.RecordBatch
	for _, path := range tableFiles(t, dir, table) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := store.Open(ctx, filepath.ToSlash(rel))
		if err != nil {
			t.Fatal(err)
		}
		r, err := file.Open(ctx, f, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cols, err := r.Columns()
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.ReadRange(ctx, cols, 0, r.Rows(), file.ReadOptions{Alloc: memory.DefaultAllocator})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	var cols []arrow.Array
	rows := int64(0)
	for i := range int(all[0].NumCols()) {
		var chunks []arrow.Array
		for _, b := range all {
			chunks = append(chunks, b.Column(i))
		}
		c, err := array.Concatenate(chunks, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		cols, rows = append(cols, c), int64(c.Len())
	}
	return array.NewRecordBatch(all[0].Schema(), cols, rows)
}

func column[T arrow.Array](t *testing.T, b arrow.RecordBatch, name string) T {
	t.Helper()
	out, ok := b.Column(b.Schema().FieldIndices(name)[0]).(T)
	if !ok {
		t.Fatalf("column %s is %T", name, b.Column(b.Schema().FieldIndices(name)[0]))
	}
	return out
}

func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, table := range []string{"images", "orders", "shipments"} {
		for i, path := range tableFiles(t, dir, table) {
			b, err := os.ReadFile(path) //nolint:gosec // the test's own folder
			if err != nil {
				t.Fatal(err)
			}
			out[fmt.Sprintf("%s %d", table, i)] = fmt.Sprintf("%x", sha256.Sum256(b))
		}
	}
	return out
}

func TestSameOptionsGiveTheSameBytes(t *testing.T) {
	var first map[string]string
	for _, opts := range []Options{{Parallel: 1}, {Parallel: 4}, {Parallel: 4, Seed: 1}} {
		opts.Dir, opts.Rows, opts.Dim, opts.NoIndices = t.TempDir(), 3000, 16, true
		if _, err := Generate(context.Background(), opts); err != nil {
			t.Fatal(err)
		}
		got := hashes(t, opts.Dir)
		if first == nil {
			first = got
		}
		if maps.Equal(first, got) != (opts.Seed == 0) {
			t.Fatalf("parallel %d, seed %d: equal %t", opts.Parallel, opts.Seed, opts.Seed != 0)
		}
	}
	if len(first) != 6+3+3 {
		t.Fatalf("%d data files", len(first))
	}
}

func TestTheLakeHasTheSharesThatTheDocumentSays(t *testing.T) {
	const rows = 20_000
	dir := t.TempDir()
	var steps []Progress
	lake, err := Generate(context.Background(), Options{
		Dir: dir, Rows: rows, Dim: 8, NoIndices: true,
		Progress: func(p Progress) { steps = append(steps, p) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if last := steps[len(steps)-1]; last != (Progress{Step: "shipments", Done: lake.Shipments, Total: lake.Shipments}) {
		t.Fatalf("last progress %+v of %+v", last, lake)
	}
	images := readTable(t, dir, "images")
	if images.NumRows() != rows || lake.Images != rows {
		t.Fatalf("%d images, %+v", images.NumRows(), lake)
	}
	ids, times := column[*array.Int64](t, images, "id"), column[*array.Timestamp](t, images, "captured_at")
	labels, tenant := column[*array.List](t, images, "labels"), column[*array.String](t, images, "tenant")
	parcels, tracks := column[*array.Int64](t, images, "parcel_id"), column[*array.Binary](t, images, "trajectory")
	words, ok := labels.ListValues().(*array.String)
	if !ok {
		t.Fatal("labels are no strings")
	}
	var empty, withNull, damaged, acme int
	for i := range rows {
		if ids.Value(i) != int64(i) || parcels.Value(i) < 0 || parcels.Value(i) >= rows || len(tracks.Value(i)) != trajectoryBytes {
			t.Fatalf("row %d: id %d, parcel %d, %d bytes of track", i, ids.Value(i), parcels.Value(i), len(tracks.Value(i)))
		}
		if i >= rows/10 && times.Value(i) <= times.Value(i-rows/10) {
			t.Fatalf("row %d is not later than row %d", i, i-rows/10)
		}
		if tenant.Value(i) == "acme" {
			acme++
		}
		from, to := labels.ValueOffsets(i)
		var seen []string
		for j := int(from); j < int(to); j++ {
			if words.IsNull(j) {
				withNull++
				continue
			}
			if slices.Contains(seen, words.Value(j)) {
				t.Fatalf("row %d has a label twice", i)
			}
			seen = append(seen, words.Value(j))
		}
		if slices.Contains(seen, "damage") {
			damaged++
		}
		if labels.IsValid(i) && from == to {
			empty++
		}
	}
	for _, c := range []struct {
		what      string
		got       int
		low, high float64
	}{
		{"NULL lists", labels.NullN(), 0.015, 0.025},
		{"empty lists", empty, 0.007, 0.013},
		{"lists with a NULL element", withNull, 0.007, 0.013},
		{"rows of acme", acme, 0.15, 0.35},
		{"damaged rows", damaged, 0.15, 0.6},
		{"orders", int(lake.Orders), 0.97, 1.02},
		{"shipments", int(lake.Shipments), 2.9, 3.1},
	} {
		if share := float64(c.got) / rows; share < c.low || share > c.high {
			t.Errorf("%s: share %.4f, want %.3f to %.3f", c.what, share, c.low, c.high)
		}
	}
	orders := readTable(t, dir, "orders")
	if orders.NumRows() != lake.Orders {
		t.Fatalf("%d orders, %+v", orders.NumRows(), lake)
	}
}

func TestBadOptionsAndFoldersAreRefused(t *testing.T) {
	full := t.TempDir()
	if _, err := Generate(context.Background(), Options{Dir: full, Rows: 10, Dim: 2, NoIndices: true}); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		opts Options
		kind error
	}{
		{"no folder", Options{}, errs.ErrInvalid},
		{"negative rows", Options{Dir: full, Rows: -1}, errs.ErrInvalid},
		{"more fragments than rows", Options{Dir: full, Rows: 3, Fragments: 4}, errs.ErrInvalid},
		{"a huge dimension", Options{Dir: full, Dim: 1 << 20}, errs.ErrInvalid},
		{"a folder with the tables", Options{Dir: full, Rows: 10, Dim: 2}, errs.ErrExists},
		{"a file in place of the folder", Options{Dir: blocked, Rows: 10, Dim: 2}, errs.ErrIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Generate(context.Background(), c.opts); !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
		})
	}
}

func TestACanceledDemoLeavesNoTable(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Generate(ctx, Options{Dir: dir, Rows: 50_000, Dim: 8, NoIndices: true, Progress: func(Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil || len(files) > 0 {
		t.Fatalf("left %v, %v", files, err)
	}
}

func TestTheImagesAreIndexed(t *testing.T) {
	dir := t.TempDir()
	var steps []string
	lake, err := Generate(context.Background(), Options{Dir: dir, Rows: 4000, Dim: 16, Progress: func(p Progress) {
		if p.Done > p.Total {
			t.Errorf("%+v", p)
		}
		if len(steps) == 0 || steps[len(steps)-1] != p.Step {
			steps = append(steps, p.Step)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if steps[0] != "images" || steps[len(steps)-1] != "IVF_FLAT on embedding" {
		t.Fatalf("steps %q", steps)
	}
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	table, err := storage.OpenTable(context.Background(), store, "images.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range s.Indices() {
		names = append(names, i.Name)
		if i.Covers.GetCardinality() != uint64(len(s.Fragments())) || len(i.Files) == 0 {
			t.Errorf("index %s covers %s, files %v", i.Name, i.Covers, i.Files)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"captured_at_idx", "embedding_idx", "labels_idx", "tenant_idx"}) || s.Rows() != uint64(lake.Images) {
		t.Fatalf("indices %v, %d rows of %d", names, s.Rows(), lake.Images)
	}
}
