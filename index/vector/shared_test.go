//go:build shared

package vector

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

func TestSharedVectorDatasets(t *testing.T) {
	entries, err := os.ReadDir(testutil.Shared(t, "fixtures", "lance"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "vec_") || !strings.HasSuffix(e.Name(), ".lance") {
			continue
		}
		seen++
		t.Run(e.Name(), func(t *testing.T) {
			openReference(t, filepath.Join(testutil.Shared(t, "fixtures", "lance"), e.Name())).check(t)
		})
	}
	if seen < 11 {
		t.Fatalf("%d datasets", seen)
	}
}

// column reads one column of a table of bigann_tiny, in row order.
func column[T any](t *testing.T, table, name string, value func(batch any, i int) T) []T {
	t.Helper()
	ctx := context.Background()
	snap := tinySnapshot(t, table)
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for reader := scan.Reader(); ; {
		b, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, value(b.Column(0), i))
		}
		b.Release()
	}
}

func tinySnapshot(t *testing.T, table string) *storage.Snapshot {
	t.Helper()
	store, err := object.OpenLocal(testutil.Shared(t, "fixtures", "bigann_tiny", table+".lance"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	opened, err := storage.OpenTable(context.Background(), store, "", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := opened.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func int64At(c any, i int) int64 { return c.(*array.Int64).Value(i) }
func floatAt(c any, i int) float32 {
	return c.(*array.Float32).Value(i)
}
func vectorAt(c any, i int) []float32 {
	l := c.(*array.FixedSizeList)
	start, end := l.ValueOffsets(i)
	return append([]float32(nil), l.ListValues().(*array.Float32).Float32Values()[start:end]...)
}

func TestSharedBigANNTinyEqualsItsGroundTruth(t *testing.T) {
	ctx := context.Background()
	snap := tinySnapshot(t, "base")
	queries := column(t, "queries", "vec", vectorAt)
	labels := column(t, "base", "label", func(c any, i int) int8 { return c.(*array.Int8).Value(i) })
	blocks, err := snap.VectorBlocks(ctx, "vec", 0)
	if err != nil {
		t.Fatal(err)
	}
	labelled := rowset.NewSet()
	for row, l := range labels {
		if l == 1 {
			labelled.Add(uint64(row))
		}
	}
	var segment *Segment
	for _, info := range snap.Indices() {
		open := func(ctx context.Context, name string) (object.File, error) {
			return snap.OpenIndexFile(ctx, info, name)
		}
		if _, _, known := KindOf(info.Details); known || !IsDetails(info.TypeURL) {
			t.Fatalf("details of type %s are known", info.TypeURL)
		}
		if segment, err = Open(ctx, open, index.Meta{Name: info.Name}, index.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, among := range map[string]*rowset.Set{"all": nil, "label1": labelled} {
		ids := column(t, "groundtruth_"+name+"_top10", "id", int64At)
		distances := column(t, "groundtruth_"+name+"_top10", "distance", floatAt)
		found := 0
		for n, q := range queries {
			s, err := NewScanner(ScanOptions{Metric: index.MetricL2, Elem: vec.Float32, Vector: q, K: 10})
			if err != nil {
				t.Fatal(err)
			}
			part := Part{Blocks: blocks}
			if among != nil {
				part.Candidates = among.Bitmap(0)
			}
			hits, err := s.Nearest(ctx, []Part{part})
			if err != nil || len(hits) != 10 {
				t.Fatalf("%d hits, %v", len(hits), err)
			}
			for i, h := range hits {
				want := distances[10*n+i]
				if int64(h.Key) != ids[10*n+i] || h.Distance-want > 1e-4*want || want-h.Distance > 1e-4*want {
					t.Fatalf("query %d hit %d is %v, want id %d at %v", n, i, h, ids[10*n+i], want)
				}
			}
			// The index finds rows far from the nearest lists by widening, and with refine all that are near.
			probed, err := segment.Nearest(ctx, index.NearestQuery{Vector: q, Metric: index.MetricL2, K: 100, Among: among, MinProbes: 1})
			if err != nil || len(probed) != 100 {
				t.Fatalf("%d of 100 hits, %v", len(probed), err)
			}
			wide, err := segment.Nearest(ctx, index.NearestQuery{Vector: q, Metric: index.MetricL2, K: 100, Among: among, MinProbes: 8})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range wide {
				for _, id := range ids[10*n : 10*n+10] {
					if int64(h.Key) == id {
						found++
					}
				}
			}
		}
		if recall := float64(found) / float64(10*len(queries)); recall < 0.98 {
			t.Errorf("%s: recall %.3f among ten times as many", name, recall)
		}
	}
}
