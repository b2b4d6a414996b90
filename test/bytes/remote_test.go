package bytes

import (
	"context"
	"errors"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

const (
	vectorRows  = 120_000
	vectorDim   = 64
	vectorBytes = vectorRows * vectorDim * 4
)

var vectorColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "v", Type: arrow.FixedSizeListOf(vectorDim, arrow.PrimitiveTypes.Float32), Nullable: true},
}, nil)

func vectorBatch(int) arrow.RecordBatch {
	r := rand.New(rand.NewSource(2))
	b := array.NewRecordBuilder(memory.DefaultAllocator, vectorColumns)
	defer b.Release()
	vectors := b.Field(1).(*array.FixedSizeListBuilder)
	for i := range vectorRows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		vectors.Append(i%1000 != 7)
		for range vectorDim {
			vectors.ValueBuilder().(*array.Float32Builder).Append(r.Float32())
		}
	}
	return b.NewRecordBatch()
}

// TestRemoteVectorsAreReadAsFarAsWanted searches one fragment in a store without mappings: all rows in windows, so that the statement never holds the column, and
// few rows alone.
func TestRemoteVectorsAreReadAsFarAsWanted(t *testing.T) {
	ctx := context.Background()
	store := object.NewMemory("vectors")
	target := write.Target{Store: store, Dir: "t.lance"}
	if _, err := write.CreateTable(ctx, target, vectorColumns, write.CreateOptions{Parts: []write.Batches{&rows{n: 1, make: vectorBatch}}}); err != nil {
		t.Fatal(err)
	}
	query := "[" + strings.Repeat("0.5,", vectorDim-1) + "0.5]"
	nearest := " ORDER BY l2_distance(v, " + query + "), id LIMIT 50"
	for _, c := range []struct {
		name, text      string
		least, mostRead int64
	}{
		{"all rows", "SELECT id, l2_distance(v, " + query + ") FROM t" + nearest, vectorBytes, vectorBytes + vectorBytes/10},
		{"most rows", "SELECT id FROM t WHERE id % 10 <> 3" + nearest, vectorBytes, vectorBytes + vectorBytes/10},
		{"a few rows", "SELECT id FROM t WHERE id IN (5, 7, 100, 40000, 77777, 119999)" + nearest, 6 * 4 * vectorDim, vectorBytes / 50},
		{"a row in a thousand", "SELECT id FROM t WHERE id % 1000 IN (6, 7)" + nearest, 200 * 4 * vectorDim, vectorBytes / 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, _ := runCounted(t, keepOpen{store}, lance.Options{}, c.text)
			counting := object.NewCounting(keepOpen{store}, object.CountingOptions{AsRemote: true})
			got, peak := runCounted(t, counting, lance.Options{Remote: true}, c.text)
			if !slices.Equal(got, want) || len(got) == 0 {
				t.Errorf("%d rows, and %d over mappings, differ", len(got), len(want))
			}
			var read int64
			for p, n := range counting.ByPath() {
				if strings.HasPrefix(p, "t.lance/data/") {
					read += n.Bytes
				}
			}
			t.Logf("%d rows, %d bytes read, %d held at most", len(got), read, peak)
			if read < c.least || read > c.mostRead+2*8*vectorRows {
				t.Errorf("%d bytes read", read)
			}
			if peak > 16<<20 {
				t.Errorf("%d bytes held at one time", peak)
			}
		})
	}
	t.Run("distances of single rows", func(t *testing.T) { checkDistances(t, store) })
}

// runCounted returns the rows of a statement as text, and the most bytes that it held.
func runCounted(t *testing.T, store object.Store, opts lance.Options, text string) (rows []string, peak int64) {
	t.Helper()
	ctx := context.Background()
	e, err := engine.Open(ctx, engine.Config{Catalogs: []source.Catalog{lance.Open("lake", store, opts)}})
	if err != nil {
		t.Fatal(err)
	}
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	res, err := s.Query(ctx, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	rows = readRows(t, res)
	err = res.Close()
	peak = res.Budget().Peak()
	s.Close()
	if err = errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	if used := e.Budget().Used(); used != 0 {
		t.Errorf("%s: %d bytes are still reserved", text, used)
	}
	return rows, peak
}

// checkDistances compares a few rows again, as a refine does.
func checkDistances(t *testing.T, store object.Store) {
	ctx := context.Background()
	counting := object.NewCounting(keepOpen{store}, object.CountingOptions{AsRemote: true})
	catalog := lance.Open("lake", counting, lance.Options{Remote: true})
	defer func() {
		if err := catalog.Close(); err != nil {
			t.Error(err)
		}
	}()
	table, err := catalog.Table(ctx, "t", source.AsOf{})
	if err != nil {
		t.Fatal(err)
	}
	var addrs []rowset.RowAddr
	for i := range 100 {
		addrs = append(addrs, rowset.Addr(0, uint32(i*1117%vectorRows)))
	}
	req := exec.SearchRequest{Column: "v", Metric: index.MetricL2, Query: make([]float32, vectorDim)}
	got, err := table.(exec.VectorTable).Distances(ctx, req, addrs)
	if err != nil || len(got) != len(addrs) || got[1] <= 0 {
		t.Fatalf("%v %v", got, err)
	}
	read := counting.Total().Bytes
	if read > 400<<10 {
		t.Errorf("%d bytes are read for 100 rows of 256", read)
	}
}
