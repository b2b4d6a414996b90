package inspect

import (
	"bytes"
	"context"
	"path"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/bitmap"
	"github.com/lakesql/lakesql/index/btree"
	"github.com/lakesql/lakesql/index/labellist"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/index/zonemap"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// segments writes one small segment of each filter kind.
func segments(t *testing.T) *object.Memory {
	t.Helper()
	ctx := context.Background()
	store := object.NewMemory("t")
	keys := []uint64{0, 1, 2, 1 << 32, 1<<32 | 1, 1<<32 | 2}
	labels, err := labellist.NewBuilder("labels", arrow.ListOf(arrow.BinaryTypes.String), index.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lists := segtest.Array(t, arrow.ListOf(arrow.BinaryTypes.String), `[["wet","damage"], null, ["wet",null], [], ["wet"], ["it's"]]`)
	if err := labels.Add(ctx, lists, keys); err != nil {
		t.Fatal(err)
	}
	if _, err := labels.Write(ctx, segtest.Create(t, store, "labels/"+bitmap.FileName), file.V22); err != nil {
		t.Fatal(err)
	}
	values := segtest.Array(t, arrow.PrimitiveTypes.Float64, `[1.5, null, -3, 1.5, 7, null]`)
	tenants, err := bitmap.NewBuilder("v", values.DataType(), index.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tenants.Add(ctx, values, keys); err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.Write(ctx, segtest.Create(t, store, "bitmap/"+bitmap.FileName), file.V22); err != nil {
		t.Fatal(err)
	}
	sorted, err := btree.NewBuilder("v", values.DataType(), index.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sorted.Add(ctx, values, keys); err != nil {
		t.Fatal(err)
	}
	if _, err := sorted.Write(ctx, segtest.Create(t, store, "btree/"+btree.DataFileName), segtest.Create(t, store, "btree/"+btree.LookupFileName), file.V22); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestFilterSegmentsPrintTheirKeys(t *testing.T) {
	store := segments(t)
	for folder, want := range map[string]string{
		"labels": `LABEL_LIST, version 1, fragments 0-1 7
  NULL lists: 1 row (0, 1)
  file: labels/bitmap_page_lookup.lance, version 2.2
  keys: 4 of type utf8, ? bytes in memory
    lists with a NULL element: 1 row (0, 2)
    "damage": 1 row (0, 0)
    "it's": 1 row (1, 2)
    ... 1 more
`,
		"bitmap": `BITMAP, version 1, fragments 0-1 7
  file: bitmap/bitmap_page_lookup.lance, version 2.2
  keys: 4 of type float64, ? bytes in memory
    NULL: 2 rows (0, 1) (1, 2)
    -3: 1 row (0, 2)
    1.5: 2 rows (0, 0) (1, 0)
    ... 1 more
`,
		"btree": `BTREE, version 1, fragments 0-1 7
  rows: 6, 2 NULL, values of type float64
    page 0: rows 0..6 max 7 nulls 2
`,
	} {
		var out bytes.Buffer
		meta := index.Meta{Version: 1, Covers: roaring.BitmapOf(0, 1, 7)}
		faults, err := Segment(context.Background(), &out, segtest.Opener(store, folder), meta, Options{KeysMax: 3})
		if err != nil || faults != 0 {
			t.Errorf("%s: %d faults, %v", folder, faults, err)
		}
		if got := withoutSizes(out.String()); got != want {
			t.Errorf("%s: got\n%s", folder, got)
		}
	}
}

// withoutSizes replaces the number of bytes in memory, which is no promise.
func withoutSizes(text string) string {
	before, after, ok := strings.Cut(text, " bytes in memory")
	if !ok {
		return text
	}
	return before[:strings.LastIndexByte(before, ' ')] + " ? bytes in memory" + after
}

func TestFaultsOfFilterSegmentsAreCounted(t *testing.T) {
	store := segments(t)
	ctx := context.Background()
	for _, name := range []string{"labels/" + bitmap.FileName, "btree/" + btree.DataFileName} {
		content := segtest.Files(t, store, path.Dir(name))[path.Base(name)]
		broken := store.Clone()
		if err := broken.Put(ctx, name, append(bytes.Repeat([]byte{0xEE}, 200), content[200:]...), false); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		faults, err := Segment(ctx, &out, segtest.Opener(broken, path.Dir(name)), index.Meta{}, Options{})
		if err != nil || faults == 0 || !strings.Contains(out.String(), "FAULT: ") || !strings.Contains(out.String(), "corrupt file "+name) {
			t.Errorf("%s: %d faults, %v\n%s", name, faults, err, out.String())
		}
	}
}

func TestZonesArePrinted(t *testing.T) {
	ctx := context.Background()
	store := object.NewMemory("t")
	b, err := zonemap.NewBuilder("v", arrow.PrimitiveTypes.Float64, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	if err := b.Add(ctx, segtest.Array(t, arrow.PrimitiveTypes.Float64, `[1.5, null, -3, 7, null]`), []uint64{0, 1, 3, 4, 1 << 32}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(ctx, segtest.Create(t, store, "zones/"+zonemap.FileName), file.V22); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	faults, err := Segment(ctx, &out, segtest.Opener(store, "zones"), index.Meta{}, Options{KeysMax: 2})
	if err != nil || faults != 0 {
		t.Fatalf("%d faults, %v", faults, err)
	}
	for _, want := range []string{
		"ZONEMAP, version 0", "2 rows a zone, values of type float64", "NULL: 2 rows (0, 1) (1, 0)",
		"fragment 0 rows 0..2: 1.5 to 1.5, 1 NULL, 0 NaN", "fragment 0 rows 3..5: -3 to 7, 0 NULL, 0 NaN", "... 1 more",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
