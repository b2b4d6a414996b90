//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/vector"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

const ivfDim = 40

// vectorBatch makes n rows with ids from first; every eleventh vector is NULL.
func vectorBatch(element arrow.DataType, first, n int) arrow.RecordBatch {
	r := rand.New(rand.NewSource(int64(first) + 1))
	s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.FixedSizeListOf(ivfDim, element), Nullable: true}}, nil)
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	vectors := array.NewFixedSizeListBuilder(memory.DefaultAllocator, ivfDim, element)
	for i := range n {
		ids.Append(int64(first + i))
		vectors.Append((first+i)%11 != 3)
		for d := range ivfDim {
			x := float32(r.NormFloat64()) + float32(3*((first+i)%7*(d+1)%5))
			switch b := vectors.ValueBuilder().(type) {
			case *array.Float32Builder:
				b.Append(x)
			case *array.Float16Builder:
				b.Append(float16.New(x))
			}
		}
	}
	return array.NewRecordBatch(s, []arrow.Array{ids.NewArray(), vectors.NewArray()}, int64(n))
}

func ivfQuery(n int) []float32 {
	r := rand.New(rand.NewSource(int64(n)))
	q := make([]float32, ivfDim)
	for d := range q {
		q[d] = float32(r.NormFloat64()) + float32(3*(n%7*(d+1)%5))
	}
	return q
}

// neighbor is a hit by id.
type neighbor struct {
	id       int64
	distance float64
}

// engineNearest searches with the engine. With an index its plan must name it.
func engineNearest(t *testing.T, eng *Engine, path string, metric index.Metric, q []float32, useIndex bool) []neighbor {
	t.Helper()
	nearest := Request{"column": "v", "q": q, "k": 20, "metric": string(metric), "use_index": useIndex, "nprobes": 1000}
	r := Request{"path": path, "columns": []string{"id", "_distance"}, "nearest": nearest}
	if plan := eng.Explain(r); strings.Contains(plan, "ANNSubIndex") != useIndex || useIndex && !strings.Contains(plan, "v_idx") {
		t.Fatalf("with use_index %v the plan is\n%s", useIndex, plan)
	}
	rows := eng.Rows("scan", r)
	defer rows.Release()
	ids, distances := Column(t, rows, "id").(*array.Int64), Column(t, rows, "_distance").(*array.Float32)
	var out []neighbor
	for i := range ids.Len() {
		out = append(out, neighbor{ids.Value(i), float64(distances.Value(i))})
	}
	return out
}

// ourNearest searches every segment of the newest version with all lists probed, and the fragments that none covers.
func ourNearest(t *testing.T, store object.Store, metric index.Metric, q []float32) []neighbor {
	t.Helper()
	ctx := context.Background()
	table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	live, err := snap.LiveRows(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := snap.Keys(ctx, live)
	if err != nil {
		t.Fatal(err)
	}
	var lists [][]index.Hit
	uncovered := live.Clone()
	for _, info := range snap.Indices() {
		open := func(ctx context.Context, name string) (object.File, error) {
			return snap.OpenIndexFile(ctx, info, name)
		}
		s, err := vector.Open(ctx, open, index.Meta{Name: info.Name, UUID: info.UUID}, index.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hits, err := s.Nearest(ctx, index.NearestQuery{Vector: q, Metric: metric, K: 20, MinProbes: s.Lists(), Among: keys})
		if err != nil {
			t.Fatal(err)
		}
		for i := range hits {
			addrs, ok, err := snap.ResolveKeys(ctx, []uint64{hits[i].Key})
			if err != nil || !ok[0] {
				t.Fatalf("key %d: %v", hits[i].Key, err)
			}
			hits[i].Key = uint64(addrs[0])
		}
		lists = append(lists, hits)
		uncovered = rowset.AndNot(uncovered, uncovered.OnlyUppers(info.Covers))
	}
	field, _ := snap.Schema().Lookup("v")
	elem, _, err := vector.ElemOf(field.Type)
	if err != nil {
		t.Fatal(err)
	}
	scanner, err := vector.NewScanner(vector.ScanOptions{Metric: metric, Elem: elem, Vector: q, K: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range uncovered.Uppers() {
		blocks, err := snap.VectorBlocks(ctx, "v", f)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := scanner.Nearest(ctx, []vector.Part{{KeyBase: uint64(rowset.Addr(f, 0)), Blocks: blocks, Candidates: uncovered.Bitmap(f)}})
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, hits)
	}
	hits := vector.Merge(20, lists...)
	ids := idsOf(t, snap)
	var out []neighbor
	for _, h := range hits {
		out = append(out, neighbor{ids[h.Key], float64(h.Distance)})
	}
	return out
}

func idsOf(t *testing.T, snap *storage.Snapshot) map[uint64]int64 {
	t.Helper()
	ctx := context.Background()
	scan, err := snap.Scan(ctx, storage.ScanOptions{Columns: []string{"id"}, WithRowAddr: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint64]int64{}
	for reader := scan.Reader(); ; {
		b, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out[b.Column(1).(*array.Uint64).Value(i)] = b.Column(0).(*array.Int64).Value(i)
		}
		b.Release()
	}
}

func sameNeighbors(t *testing.T, what string, want, got []neighbor, tolerance float64) {
	t.Helper()
	if len(want) != len(got) || len(want) == 0 {
		t.Fatalf("%s: %d hits, want %d", what, len(got), len(want))
	}
	for i := range want {
		near := tolerance * (math.Abs(want[i].distance) + 0.1)
		if math.Abs(want[i].distance-got[i].distance) > near {
			t.Fatalf("%s: hit %d is %v, want %v", what, i, got[i], want[i])
		}
		if !slices.ContainsFunc(want, func(n neighbor) bool { return n.id == got[i].id && math.Abs(n.distance-got[i].distance) <= near }) &&
			math.Abs(want[len(want)-1].distance-got[i].distance) > near { // the last place may go to another row of the same distance
			t.Fatalf("%s: hit %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestTheEngineSearchesOurIVFFlat(t *testing.T) {
	eng := StartPython(t)
	for _, metric := range []index.Metric{index.MetricL2, index.MetricCosine, index.MetricDot} {
		for _, c := range []struct {
			name    string
			element arrow.DataType
			create  write.CreateOptions
		}{
			{"float", arrow.PrimitiveTypes.Float32, write.CreateOptions{}},
			{"float, version 2.1", arrow.PrimitiveTypes.Float32, write.CreateOptions{Version: file.V21}},
			{"float, stable row ids", arrow.PrimitiveTypes.Float32, write.CreateOptions{StableRowIDs: true}},
			{"half", arrow.FixedWidthTypes.Float16, write.CreateOptions{}},
		} {
			t.Run(fmt.Sprintf("%s, %s", metric, c.name), func(t *testing.T) {
				ctx := context.Background()
				store, dir := local(t)
				target, path := write.Target{Store: store, Dir: "t.lance"}, filepath.Join(dir, "t.lance")
				first := vectorBatch(c.element, 0, 3000)
				c.create.Parts = []write.Batches{&batches{rows: sliced(first, 1000)}}
				if _, err := write.CreateTable(ctx, target, first.Schema(), c.create); err != nil {
					t.Fatal(err)
				}
				table, err := storage.OpenTable(ctx, store, target.Dir, storage.TableOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := write.BuildIVFFlat(ctx, table, "v", write.IVFFlatOptions{Metric: metric, Lists: 12}); err != nil {
					t.Fatal(err)
				}
				tolerance := 1e-4
				if c.element.ID() == arrow.FLOAT16 {
					tolerance = 5e-3 // the engine sums halves in its own way, and cosine segments keep rescaled halves
				}
				check := func(step string) {
					t.Helper()
					for n := range 4 {
						q := ivfQuery(n)
						want := engineNearest(t, eng, path, metric, q, false)
						sameNeighbors(t, step+": the engine by our index", want, engineNearest(t, eng, path, metric, q, true), tolerance)
						sameNeighbors(t, step+": lakesql by index", want, ourNearest(t, store, metric, q), tolerance)
					}
				}
				check("built")
				eng.Do("append", Request{"path": path, "in": eng.Send(vectorBatch(c.element, 3000, 400))}, nil)
				check("appended")
				eng.Do("delete", Request{"path": path, "filter": "id % 13 = 5"}, nil)
				check("deleted")
				eng.Do("compact", Request{"path": path}, nil)
				check("compacted")
				eng.Do("optimize_indices", Request{"path": path}, nil)
				check("optimized")
				info := eng.Info(path)
				if len(info.Indices) != 1 || !strings.EqualFold(info.Indices[0].Type, "IVF_FLAT") {
					t.Fatalf("indices %+v", info.Indices)
				}
				update := func(merge, segments int) {
					t.Helper()
					if _, err := write.UpdateIndex(ctx, table, "v_idx", write.UpdateIndexOptions{Merge: merge}); err != nil {
						t.Fatal(err)
					}
					if info := eng.Info(path); len(info.Indices) != 1 || info.Indices[0].Segments != segments {
						t.Fatalf("after an update that merges %d the engine lists %+v", merge, info.Indices)
					}
				}
				if _, err := write.Append(ctx, target, &batches{rows: []arrow.RecordBatch{vectorBatch(c.element, 3400, 300)}}, write.AppendOptions{}); err != nil {
					t.Fatal(err)
				}
				update(-1, 2)
				check("our new rows")
				eng.Do("append", Request{"path": path, "in": eng.Send(vectorBatch(c.element, 3700, 200))}, nil)
				eng.Do("delete", Request{"path": path, "filter": "id % 17 = 5"}, nil)
				update(5, 1)
				check("our merge")
				if _, err := write.Compact(ctx, table, write.CompactOptions{TargetRows: 2000, Remapper: write.IndexRemapper{}}); err != nil {
					t.Fatal(err)
				}
				check("our compaction")
				eng.Do("append", Request{"path": path, "in": eng.Send(vectorBatch(c.element, 3900, 100))}, nil)
				eng.Do("optimize_indices", Request{"path": path}, nil)
				check("the engine's update of ours")
			})
		}
	}
}

// lanceNearest searches with LanceDB, by index or past it.
func lanceNearest(t *testing.T, eng *Engine, lake string, metric index.Metric, q []float32, bypass bool) []neighbor {
	t.Helper()
	r := Request{"lake": lake, "table": "t", "vector": q, "column": "v", "metric": string(metric), "nprobes": 1000, "limit": 20, "bypass": bypass, "select": []string{"id", "_distance"}}
	var plan string
	eng.Do("explain", r, &plan)
	if strings.Contains(plan, "ANNSubIndex") == bypass || !bypass && !strings.Contains(plan, "v_idx") {
		t.Fatalf("with bypass %v the plan is\n%s", bypass, plan)
	}
	var rows []struct {
		ID       int64   `json:"id"`
		Distance float64 `json:"_distance"`
	}
	eng.Do("query", r, &rows)
	var out []neighbor
	for _, row := range rows {
		out = append(out, neighbor{row.ID, row.Distance})
	}
	return out
}

func TestLanceDBSearchesOurIVFFlat(t *testing.T) {
	eng := StartNode(t)
	ctx := context.Background()
	for _, metric := range []index.Metric{index.MetricL2, index.MetricCosine, index.MetricDot} {
		t.Run(string(metric), func(t *testing.T) {
			store, dir := local(t)
			target := write.Target{Store: store, Dir: "t.lance"}
			rows := vectorBatch(arrow.PrimitiveTypes.Float32, 0, 3000)
			if _, err := write.CreateTable(ctx, target, rows.Schema(), write.CreateOptions{Parts: []write.Batches{&batches{rows: sliced(rows, 1000)}}}); err != nil {
				t.Fatal(err)
			}
			table, err := storage.OpenTable(ctx, store, target.Dir, storage.TableOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := write.BuildIVFFlat(ctx, table, "v", write.IVFFlatOptions{Metric: metric, Lists: 12}); err != nil {
				t.Fatal(err)
			}
			check := func(step string) {
				t.Helper()
				for n := range 4 {
					q := ivfQuery(n)
					want := lanceNearest(t, eng, dir, metric, q, true)
					sameNeighbors(t, step+": LanceDB by our index", want, lanceNearest(t, eng, dir, metric, q, false), 1e-4)
					sameNeighbors(t, step+": lakesql by index", want, ourNearest(t, store, metric, q), 1e-4)
				}
			}
			check("built")
			if _, err := write.Append(ctx, target, &batches{rows: []arrow.RecordBatch{vectorBatch(arrow.PrimitiveTypes.Float32, 3000, 300)}}, write.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
			check("appended")
			eng.Do("optimize", Request{"lake": dir, "table": "t"}, nil)
			check("optimized")
		})
	}
}
