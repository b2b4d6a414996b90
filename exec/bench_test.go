package exec

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"golang.org/x/sys/unix"

	"github.com/lakesql/lakesql/exec/expr"
)

// orders and shipments have the shape of the benchmark's tables: a dense order id, a carrier out of 20, a decimal amount.
func orders(n int) *source {
	r := rand.New(rand.NewPCG(1, 2))
	alloc := memory.DefaultAllocator
	id, carrier := array.NewInt64Builder(alloc), array.NewStringBuilder(alloc)
	amount := array.NewDecimal128Builder(alloc, &arrow.Decimal128Type{Precision: 12, Scale: 2})
	for i := range n {
		id.Append(int64(i))
		carrier.Append(fmt.Sprintf("carrier-%d", r.IntN(20)))
		amount.Append(decimal128.FromI64(int64(r.IntN(1_000_000))))
	}
	schema := fields("id", arrow.PrimitiveTypes.Int64, "carrier", arrow.BinaryTypes.String, "amount", amount.Type())
	return &source{batch: newBatch(schema, []arrow.Array{id.NewArray(), carrier.NewArray(), amount.NewArray()}, n)}
}

func shipments(n, orders int) *source {
	r := rand.New(rand.NewPCG(3, 4))
	alloc := memory.DefaultAllocator
	order, status, parcel := array.NewInt64Builder(alloc), array.NewStringBuilder(alloc), array.NewInt64Builder(alloc)
	for range n {
		order.Append(int64(r.IntN(orders)))
		status.Append([]string{"created", "in transit", "delivered", "returned", "lost"}[r.IntN(5)])
		parcel.Append(int64(r.IntN(n/3)) * 1_000_003)
	}
	schema := fields("order_id", arrow.PrimitiveTypes.Int64, "status", arrow.BinaryTypes.String, "parcel", arrow.PrimitiveTypes.Int64)
	return &source{batch: newBatch(schema, []arrow.Array{order.NewArray(), status.NewArray(), parcel.NewArray()}, n)}
}

// cpuNanos is the processor time of this process so far: on a shared machine it says more than the clock.
func cpuNanos(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func benchPlan(b *testing.B, rows int, p Plan) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			env := config{DefaultBatchRows, workers}.env(nil)
			b.ReportAllocs()
			before := cpuNanos(b)
			for range b.N {
				batches, err := Collect(context.Background(), env, p)
				if err != nil {
					b.Fatal(err)
				}
				releaseBatches(batches)
			}
			b.ReportMetric(float64(cpuNanos(b)-before)/float64(b.N)/float64(rows), "cpu-ns/row")
		})
	}
}

func BenchmarkAggregateDecimalByCarrier(b *testing.B) {
	o := orders(1_000_000)
	benchPlan(b, 1_000_000, must(NewHashAggregate(o, []expr.Expr{col(o, "carrier")}, []string{"carrier"}, []AggSpec{agg(AggCountStar), agg(AggSum, col(o, "amount"))}))(b))
}

func BenchmarkAggregateByUniqueInt(b *testing.B) {
	o := orders(1_000_000)
	benchPlan(b, 1_000_000, must(NewHashAggregate(o, []expr.Expr{col(o, "id")}, []string{"id"}, []AggSpec{agg(AggSum, col(o, "amount"))}))(b))
}

func BenchmarkAggregateByTwoStrings(b *testing.B) {
	s := shipments(1_000_000, 300_000)
	p := must(NewProject(s, []string{"a", "b"}, []expr.Expr{col(s, "status"), col(s, "status")}))(b)
	benchPlan(b, 1_000_000, must(NewHashAggregate(p, []expr.Expr{col(p, "a"), col(p, "b")}, []string{"a", "b"}, []AggSpec{agg(AggCountStar)}))(b))
}

func BenchmarkCountDistinctByStatus(b *testing.B) {
	s := shipments(1_000_000, 300_000)
	benchPlan(b, 1_000_000, must(NewHashAggregate(s, []expr.Expr{col(s, "status")}, []string{"status"}, []AggSpec{distinctAgg(AggCount, col(s, "parcel"))}))(b))
}

func BenchmarkJoinAggregate(b *testing.B) {
	o, s := orders(1_000_000), shipments(3_000_000, 1_000_000)
	j := must(NewHashJoin(JoinSpec{Kind: JoinInner, Left: s, Right: o, LeftKeys: []expr.Expr{col(s, "order_id")}, RightKeys: []expr.Expr{col(o, "id")}}))(b)
	pr := must(NewProject(j, []string{"status", "carrier"}, []expr.Expr{col(j, "status"), col(j, "carrier")}))(b)
	benchPlan(b, 3_000_000, must(NewHashAggregate(pr, []expr.Expr{col(pr, "carrier"), col(pr, "status")}, []string{"carrier", "status"}, []AggSpec{agg(AggCountStar)}))(b))
}

func BenchmarkJoinSparseKeys(b *testing.B) {
	s := shipments(1_000_000, 300_000)
	j := must(NewHashJoin(JoinSpec{Kind: JoinSemi, Left: s, Right: s, LeftKeys: []expr.Expr{col(s, "parcel")}, RightKeys: []expr.Expr{col(s, "parcel")}}))(b)
	benchPlan(b, 1_000_000, must(NewHashAggregate(j, nil, nil, []AggSpec{agg(AggCountStar)}))(b))
}

func BenchmarkTopN(b *testing.B) {
	o := orders(1_000_000)
	benchPlan(b, 1_000_000, must(NewTopN(o, []SortKey{{Expr: col(o, "amount"), Desc: true}}, 10, 0))(b))
}

func BenchmarkSort(b *testing.B) {
	o := orders(1_000_000)
	benchPlan(b, 1_000_000, must(NewSort(o, []SortKey{{Expr: col(o, "amount")}}))(b))
}
