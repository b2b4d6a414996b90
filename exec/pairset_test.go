package exec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
)

func TestDistinctCountsOfCloseAndScatteredValues(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows = 60_000
	cases := []struct {
		name   string
		groups int
		value  func(i int) int64
	}{
		{"ids in order", 12, func(i int) int64 { return int64(i / 3) }},
		{"around zero", 3, func(int) int64 { return int64(r.IntN(5000)) - 2500 }},
		{"anywhere", 7, func(int) int64 { return int64(r.Uint64()) }},
		{"close at first, then scattered", 5, func(i int) int64 {
			if i < rows/2 {
				return int64(i % 4000)
			}
			return int64(r.Uint64())
		}},
		{"scattered for one worker, close for the other", 4, func(i int) int64 {
			if i/1000%2 == 0 {
				return int64(i)
			}
			return int64(r.Uint64N(1<<50)) << 3
		}},
		{"the ends of the range", 2, func(i int) int64 { return []int64{-1 << 63, 1<<63 - 1, -1, 0}[i%4] }},
		{"more groups than pages are free", 5000, func(i int) int64 { return int64(i % 11) }},
		{"more groups than are merged at once", 20_000, func(i int) int64 { return int64(i % 70) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			kb, vb := array.NewInt64Builder(alloc), array.NewInt64Builder(alloc)
			defer kb.Release()
			defer vb.Release()
			want := make(map[int64]map[int64]bool)
			for i := range rows {
				k, v := int64(i%c.groups), c.value(i)
				if want[k] == nil {
					want[k] = make(map[int64]bool)
				}
				kb.Append(k)
				if i%17 == 3 {
					vb.AppendNull()
					continue
				}
				vb.Append(v)
				want[k][v] = true
			}
			b := newBatch(fields("k", arrow.PrimitiveTypes.Int64, "v", arrow.PrimitiveTypes.Int64), []arrow.Array{kb.NewArray(), vb.NewArray()}, rows)
			defer b.Release()
			src := &source{batch: b}
			p := must(NewHashAggregate(src, []expr.Expr{col(src, "k")}, []string{"k"}, []AggSpec{distinctAgg(AggCount, col(src, "v"))}))(t)
			lines := make([]string, 0, len(want))
			for k, values := range want {
				lines = append(lines, fmt.Sprintf("%d|%d", k, len(values)))
			}
			for _, workers := range []int{1, 2, 3} {
				budget := mem.NewBudget("query", 0, nil)
				env := Env{Alloc: mem.NewAllocator(alloc, budget), Budget: budget, Workers: workers, BatchRows: 1000}.WithDefaults()
				sameRows(t, rowsOf(t, env, p), lines, false)
				if used := budget.Used(); used != 0 {
					t.Fatalf("%d bytes are still reserved", used)
				}
			}
		})
	}
}
