package bytes

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"path"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

const (
	labelRows = 60_000
	labels    = 40
	labelDim  = 8
)

var labelColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "v", Type: arrow.FixedSizeListOf(labelDim, arrow.PrimitiveTypes.Float32), Nullable: true},
}, nil)

func labelBatch(int) arrow.RecordBatch {
	r := rand.New(rand.NewSource(1))
	b := array.NewRecordBuilder(memory.DefaultAllocator, labelColumns)
	defer b.Release()
	list, vectors := b.Field(1).(*array.ListBuilder), b.Field(2).(*array.FixedSizeListBuilder)
	for i := range labelRows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		list.Append(true)
		for k := range labels {
			if r.Intn(8) == 0 {
				list.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("label%02d", k))
			}
		}
		vectors.Append(true)
		for range labelDim {
			vectors.ValueBuilder().(*array.Float32Builder).Append(float32(r.NormFloat64()))
		}
	}
	return b.NewRecordBatch()
}

// labelTable makes a table with a label index and a vector index.
func labelTable(t *testing.T) (object.Store, *storage.Snapshot) {
	t.Helper()
	ctx := context.Background()
	store := object.NewMemory("labels")
	target := write.Target{Store: store, Dir: "l.lance"}
	if _, err := write.CreateTable(ctx, target, labelColumns, write.CreateOptions{Parts: []write.Batches{&rows{n: 1, make: labelBatch}}}); err != nil {
		t.Fatal(err)
	}
	table, err := storage.OpenTable(ctx, store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.BuildFilterIndex(ctx, table, write.FilterIndexSpec{Column: "labels", Kind: index.KindLabelList}, write.FilterIndexOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := write.BuildIVFFlat(ctx, table, "v", write.IVFFlatOptions{Lists: 16}); err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return store, snap
}

// bitmapsOf returns the file of the label index and where the bitmap of each label lies in it.
func bitmapsOf(t *testing.T, store object.Store, snap *storage.Snapshot) (string, []object.Range) {
	t.Helper()
	ctx := context.Background()
	for _, info := range snap.Indices() {
		if info.Name != "labels_idx" {
			continue
		}
		f, err := bitmap.OpenFile(ctx, func(ctx context.Context, name string) (object.File, error) {
			return snap.OpenIndexFile(ctx, info, name)
		}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var out []object.Range
		for place := range labels {
			set, err := f.Rows(ctx, f.Keys().Row(place))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := rowset.AppendTree(nil, set)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, find(t, store, f.Path(), raw))
		}
		return f.Path(), out
	}
	t.Fatal("no label index")
	return "", nil
}

func TestAQueryOnOneLabelOpensNoOtherBitmap(t *testing.T) {
	store, snap := labelTable(t)
	file, bitmaps := bitmapsOf(t, store, snap)
	for _, k := range []int{0, 17, labels - 1} {
		name := fmt.Sprintf("label%02d", k)
		for _, text := range []string{
			"SELECT COUNT(*) FROM l WHERE array_has(labels, '%s')",
			"SELECT id FROM l WHERE array_has_any(labels, ['%s']) LIMIT 5",
			"SELECT id FROM l WHERE array_has_all(labels, ['%s', '%[1]s']) ORDER BY l2_distance(v, [0,0,0,0,0,0,0,0]) LIMIT 5",
		} {
			r := newRecorder(store)
			got := query(t, r, lance.Options{}, nil, fmt.Sprintf(text, name))
			if len(got) == 0 || got[0] == "0" {
				t.Errorf("%s: no rows", text)
			}
			for i, region := range bitmaps {
				if touched := r.touched(file, region); touched != (i == k) {
					t.Errorf("%s of %s: the bitmap of label%02d was read: %v", text, name, i, touched)
				}
			}
		}
	}
}

// TestNoCandidatesNoVectors: a search among no rows reads neither the vectors of the data file nor those of the index.
func TestNoCandidatesNoVectors(t *testing.T) {
	store, snap := labelTable(t)
	places := vectorPlaces(t, store, snap)
	if len(places) != 2 {
		t.Fatalf("the vector is in %d files: %v", len(places), places)
	}
	const order = " ORDER BY l2_distance(v, [0,0,0,0,0,0,0,0]) LIMIT 5"
	for _, ann := range []string{"off", "force"} {
		for _, c := range []struct {
			name, where string
			reads       bool
		}{
			{"a label that nobody has", "array_has(labels, 'nobody')", false},
			{"a label and its opposite", "array_has(labels, 'label01') AND NOT array_has(labels, 'label01')", false},
			{"an id that is not there", "id = -1", false},
			{"no row at all by a join", "id IN (SELECT id FROM l WHERE id < 0)", false},
			{"a label that many have", "array_has(labels, 'label01')", true},
		} {
			r := newRecorder(store)
			got := query(t, r, lance.Options{}, []string{"SET ann = '" + ann + "'", "SET ann_exact_bytes = 0", "SET nprobes = 16"}, "SELECT id FROM l WHERE "+c.where+order)
			if (len(got) > 0) != c.reads {
				t.Errorf("ann = %s, %s: %d rows", ann, c.name, len(got))
			}
			touched := false
			for p, region := range places {
				touched = touched || r.touched(p, region)
			}
			if touched != c.reads {
				t.Errorf("ann = %s, %s: vectors were read: %v", ann, c.name, touched)
			}
		}
	}
}

// vectorPlaces finds, in each file, the stretch of a few hundred vectors around one that the file holds.
func vectorPlaces(t *testing.T, store object.Store, snap *storage.Snapshot) map[string]object.Range {
	t.Helper()
	ctx := context.Background()
	blocks, err := snap.VectorBlocks(ctx, "v", snap.Fragments()[0].ID())
	if err != nil {
		t.Fatal(err)
	}
	b := blocks[0]
	truth := labelBatch(0)
	defer truth.Release()
	nearest, best := 0, math.Inf(1) // the row that the searches below find, so that they must read it
	for i := range b.Rows {
		sum := 0.0
		for d := range labelDim {
			x := math.Float32frombits(le32(b.Data[b.OffsetBytes+i*b.StrideBytes+4*d:]))
			sum += float64(x * x)
		}
		if sum < best && hasLabel(truth, i) {
			nearest, best = i, sum
		}
	}
	raw := b.Data[b.OffsetBytes+nearest*b.StrideBytes:][:b.ValueBytes]
	out := make(map[string]object.Range)
	for _, p := range filesBelow(t, store, "l.lance") {
		if strings.HasSuffix(p, ".lance") && strings.Contains(p, "/data/") || path.Base(p) == "auxiliary.idx" {
			out[p] = find(t, store, p, raw)
		}
	}
	return out
}

func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// hasLabel says whether row i has label01.
func hasLabel(b arrow.RecordBatch, i int) bool {
	list := b.Column(1).(*array.List)
	lo, hi := list.ValueOffsets(i)
	values := list.ListValues().(*array.String)
	for k := lo; k < hi; k++ {
		if values.Value(int(k)) == "label01" {
			return true
		}
	}
	return false
}
