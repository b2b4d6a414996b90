package bytes

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

const (
	fragments    = 100
	fragmentRows = 1100 // more than topK, so that each task cuts
	topK         = 1000
	wideBytes    = 1024
	dim          = 4
)

var wideColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "v", Type: arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32), Nullable: true},
	{Name: "wide", Type: arrow.BinaryTypes.Binary, Nullable: true},
}, nil)

// wideRows is one fragment: vectors are drawn anew, so that the nearest rows of all lie in every fragment; wide values cannot be compressed.
func wideRows(fragment int) arrow.RecordBatch {
	r := rand.New(rand.NewSource(int64(fragment)))
	b := array.NewRecordBuilder(memory.DefaultAllocator, wideColumns)
	defer b.Release()
	value := make([]byte, wideBytes)
	vectors := b.Field(1).(*array.FixedSizeListBuilder)
	for i := range fragmentRows {
		b.Field(0).(*array.Int64Builder).Append(int64(fragment*fragmentRows + i))
		vectors.Append(true)
		for range dim {
			vectors.ValueBuilder().(*array.Float32Builder).Append(float32(r.NormFloat64()))
		}
		r.Read(value)
		b.Field(2).(*array.BinaryBuilder).Append(value)
	}
	return b.NewRecordBatch()
}

// wideTable makes the table of 100 fragments.
func wideTable(t *testing.T) (*object.Memory, *storage.Table) {
	t.Helper()
	ctx := context.Background()
	store := object.NewMemory("bytes")
	target := write.Target{Store: store, Dir: "wide.lance"}
	content := &rows{n: fragments, make: wideRows}
	if _, err := write.CreateTable(ctx, target, wideColumns, write.CreateOptions{Parts: []write.Batches{content}, Rows: write.RowOptions{FragmentRows: fragmentRows}}); err != nil {
		t.Fatal(err)
	}
	table, err := storage.OpenTable(ctx, store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil || len(snap.Fragments()) != fragments {
		t.Fatalf("%d fragments, %v", len(snap.Fragments()), err)
	}
	return store, table
}

// TestLateFetchReadsOnePercentOfTheWideBytes searches over 100 tasks with a local top 1000 each: late fetch reads the wide column of the 1000 rows that
// survive the global cut, early reading that of every task's 1000.
func TestLateFetchReadsOnePercentOfTheWideBytes(t *testing.T) {
	store, table := wideTable(t)
	t.Run("uncovered fragments", func(t *testing.T) { checkLate(t, store, "off") })
	snap, err := table.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range snap.Fragments() {
		if _, err := write.BuildIVFFlat(context.Background(), table, "v", write.IVFFlatOptions{Lists: 2, Fragments: []uint32{f.ID()}}); err != nil {
			t.Fatal(err)
		}
	}
	if snap, err = table.Latest(context.Background()); err != nil || len(snap.Indices()) != fragments {
		t.Fatalf("%d segments, %v", len(snap.Indices()), err)
	}
	t.Run("index segments", func(t *testing.T) { checkLate(t, store, "force") })
}

func checkLate(t *testing.T, store object.Store, ann string) {
	const distance = "l2_distance(v, [0.1, 0.2, -0.1, 0])"
	wide := fmt.Sprintf("SELECT id, wide FROM wide ORDER BY %s LIMIT %d", distance, topK)
	narrow := fmt.Sprintf("SELECT id FROM wide ORDER BY %s LIMIT %d", distance, topK)
	for _, remote := range []bool{false, true} {
		t.Run(map[bool]string{false: "mapped", true: "remote"}[remote], func(t *testing.T) {
			run := func(glm, text string) (answer []string, bytes int64) {
				c := object.NewCounting(keepOpen{store}, object.CountingOptions{AsRemote: remote})
				settings := []string{"SET glm = '" + glm + "'", "SET ann = '" + ann + "'"}
				answer = query(t, c, lance.Options{Remote: remote}, settings, text)
				for p, n := range c.ByPath() {
					if strings.HasPrefix(p, "wide.lance/data/") {
						bytes += n.Bytes
					}
				}
				return answer, bytes
			}
			plan := query(t, keepOpen{store}, lance.Options{Remote: remote}, []string{"SET ann = '" + ann + "'"}, "EXPLAIN ANALYZE "+narrow)
			wantPlan(t, plan, "tasks=100", "RowEngine")
			_, base := run("on", narrow)
			late, lateBytes := run("on", wide)
			early, earlyBytes := run("off", wide)
			lateBytes, earlyBytes = lateBytes-base, earlyBytes-base
			t.Logf("late %d bytes of the wide column, early %d: %.2f %%", lateBytes, earlyBytes, 100*float64(lateBytes)/float64(earlyBytes))
			if len(late) != topK || !slices.Equal(late, early) {
				t.Errorf("late gives %d rows, early %d, and they differ: %v", len(late), len(early), !slices.Equal(late, early))
			}
			if lateBytes < topK*wideBytes || earlyBytes < fragments*topK*wideBytes {
				t.Errorf("late read %d bytes, early %d: less than the values have", lateBytes, earlyBytes)
			}
			if lateBytes*50 > earlyBytes {
				t.Errorf("late read %d bytes of the wide column, more than 2 %% of early's %d", lateBytes, earlyBytes)
			}
		})
	}
}
