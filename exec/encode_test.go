package exec

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
)

// everyPlan is one plan of every kind, with every field set somewhere.
func everyPlan(t testing.TB) map[string]Plan {
	t.Helper()
	src := fromJSON(t, memory.DefaultAllocator, threeColumns, fiveRows)
	table := &memTable{batch: src.batch}
	id := &expr.Column{ID: 0, Name: "id", T: arrow.PrimitiveTypes.Int64}
	cond := call(t, ">", id, lit(2))
	ref := table.Ref()
	recheck := &CandidateScan{Table: ref, Columns: []string{"id"}, Expr: cond, Reason: "no index"}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues([]int64{3, 4}, nil)
	all := must(NewScan(table, ScanSpec{Columns: []string{"id", "g", "s"}, Names: []string{"id", "group", "s"}, RowAddr: true}))(t)
	candidates := &CandidateOr{Inputs: []CandidatePlan{
		&CandidateAnd{Inputs: []CandidatePlan{
			&IndexLookup{Table: ref, Column: "id", Kind: index.KindBTree, Index: "i", Fresh: true, Match: index.AtMost, Coverage: Coverage{ByIndex: 3, ByScan: 1, Fault: "broken"}, Recheck: recheck,
				Predicate: index.Predicate{Op: index.OpRange, Values: b.NewArray(), LowerInclusive: true}},
			&IndexLookup{Table: ref, Column: "g", Kind: index.KindBitmap, Index: "j", Predicate: index.Predicate{Op: index.OpIsNull, UpperInclusive: true}},
		}},
		&CandidateNot{Input: recheck},
		&KeyMask{Table: ref, Column: "id", Keys: all, Index: "i", Kind: index.KindBTree, Match: index.AtMost, Coverage: Coverage{ByIndex: 2}},
		&KeyMask{Table: ref, Column: "id", Keys: all, Reason: "broken"},
		&JoinMask{Table: ref, Columns: []string{"id", "g"}, Kind: JoinAnti, Keys: all},
	}}
	scan := must(NewScan(table, ScanSpec{Columns: []string{"id", "g"}, Candidates: candidates, Filter: cond, Reason: "no usable index"}))(t)
	g, s := col(all, "group"), col(all, "s")
	aggs := []AggSpec{agg(AggCountStar), agg(AggSum, g), distinctAgg(AggCount, s, g), {Func: AggSum, Args: []expr.Expr{g}, Name: "x", Type: arrow.PrimitiveTypes.Float64},
		{Func: AggConcat, Args: []expr.Expr{s, g, g}, Name: "c", Concat: &ConcatSpec{Separator: "; ", BytesMax: 9, Distinct: 1, Desc: []bool{true}}}, {Func: AggJSONArray, Args: []expr.Expr{s}, Name: "j"}}
	join := JoinSpec{Kind: JoinFull, Left: all, Right: scan, LeftKeys: []expr.Expr{g}, RightKeys: []expr.Expr{col(scan, "g")}, NullSafe: []bool{true},
		Residual: cond, BuildLeft: true, Output: []int{5, 0}}
	keys := []SortKey{{Expr: g, Desc: true}, {Expr: s, NullsLast: true}}
	whole := join
	whole.Output, whole.NullSafe, whole.Residual, whole.BuildLeft, whole.Kind = nil, nil, nil, false, JoinMark
	none := whole
	none.Output = []int{}
	return map[string]Plan{
		"scan": all, "scan with candidates": scan,
		"filter":  must(NewFilter(all, cond))(t),
		"project": must(NewProject(all, []string{"a", "b"}, []expr.Expr{s, call(t, "+", g, lit(1))}))(t),
		"values": must(NewValues(fields("a", arrow.PrimitiveTypes.Int64, "b", arrow.BinaryTypes.String),
			[][]expr.Expr{{lit(1), &expr.Literal{Value: scalar.NewStringScalar("x")}}, {lit(2), &expr.Literal{Value: scalar.MakeNullScalar(arrow.BinaryTypes.String)}}}))(t),
		"values without columns": must(NewValues(arrow.NewSchema(nil, nil), [][]expr.Expr{{}, {}}))(t),
		"limit":                  must(NewLimit(all, NoLimit, 3))(t),
		"union":                  must(NewUnion(all, all))(t),
		"distinct":               must(NewDistinct(all))(t),
		"sort":                   must(NewSort(all, keys))(t),
		"top-n":                  must(NewTopN(all, keys, 10, math.MaxUint64))(t),
		"aggregate":              must(NewHashAggregate(all, []expr.Expr{s}, []string{"s"}, aggs))(t),
		"rollup":                 must(must(NewHashAggregate(all, []expr.Expr{s, g}, []string{"s", "g"}, aggs))(t).WithRollup("level"))(t),
		"aggregate without keys": must(NewHashAggregate(all, nil, nil, aggs))(t),
		"window": must(NewWindow(Window{Input: all, Partition: []expr.Expr{s}, Order: keys[:1], Output: []int{2, 0}, Funcs: []WindowSpec{
			{Func: WindowLag, Args: []expr.Expr{g, g}, N: 2, Name: "l"}, {Func: WindowNtile, N: 3, Name: "n"},
			{Func: WindowAggregate, Agg: AggSum, Args: []expr.Expr{g}, Name: "s", Type: arrow.PrimitiveTypes.Float64,
				Frame: Frame{Start: FrameBound{Kind: OffsetPreceding, Value: g}, End: FrameBound{Kind: CurrentRow}, Key: g}},
			{Func: WindowLast, Args: []expr.Expr{s}, Name: "v", Frame: Frame{Rows: true, Start: FrameBound{Kind: UnboundedPreceding}, End: FrameBound{Kind: OffsetFollowing, Offset: 4}}},
		}}))(t),
		"window with a limit": must(NewWindow(Window{Input: all, Output: []int{}, Funcs: []WindowSpec{{Func: WindowRank, Name: "r"}}, Limit: &WindowLimit{By: WindowRank, K: 3}}))(t),
		"join":                must(NewHashJoin(join))(t), "join of all columns": must(NewHashJoin(whole))(t), "join of no columns": must(NewHashJoin(none))(t),
		"cap":        must(NewCap(all, 5, 6, "the row engine"))(t),
		"count rows": must(NewCountRows(ref, candidates, []string{"n", "m"}))(t),
		"vector search": must(NewVectorSearch(VectorSearch{Table: ref, Column: "v", Metric: index.MetricCosine, Query: []float32{1.5, float32(math.NaN()), -0.1}, K: 7, Ties: true,
			Candidates: candidates, Early: []string{"id"}, Method: SearchMethod{Index: "v", Kind: index.KindIVFPQ, Coverage: Coverage{ByIndex: 4, ByScan: 2}, IndexedOnly: true, Reason: "big", MinProbes: 3, MaxProbes: 9, RefineFactor: 2, ExactBelow: 5, VectorBytes: 12, ParallelTasks: 4}},
			[]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}))(t),
	}
}

func TestPlansEncodeToThemselves(t *testing.T) {
	for name, p := range everyPlan(t) {
		t.Run(name, func(t *testing.T) {
			first := must(EncodePlan(p))(t)
			q := must(DecodePlan(first))(t)
			second := must(EncodePlan(q))(t)
			if !bytes.Equal(first, second) {
				t.Fatalf("encoded again:\n%s\n%s", first, second)
			}
			if a, b := Explain(p, nil), Explain(q, nil); a != b {
				t.Fatalf("explained:\n%s\n%s", a, b)
			}
			if !equalFields(p.Schema().Fields(), q.Schema().Fields()) {
				t.Fatalf("schema:\n%s\n%s", p.Schema(), q.Schema())
			}
		})
	}
}

func TestDecodedPlansRun(t *testing.T) {
	src := fromJSON(t, memory.DefaultAllocator, threeColumns, fiveRows)
	env := configs[0].env(nil)
	env.Tables = &memTable{batch: src.batch}
	plans := everyPlan(t)
	for _, name := range []string{"scan", "filter", "project", "aggregate", "sort", "distinct", "union", "values", "limit"} {
		want, err := collectRows(env, plans[name])
		if err != nil {
			t.Fatal(err)
		}
		got, err := collectRows(env, must(DecodePlan(must(EncodePlan(plans[name]))(t)))(t))
		if err != nil {
			t.Fatal(err)
		}
		sameRows(t, got, want, false)
	}
}

func TestPlansOfOtherPackagesNeedACodec(t *testing.T) {
	src := fromJSON(t, memory.DefaultAllocator, threeColumns, fiveRows)
	if _, err := EncodePlan(must(NewLimit(src, 1, 0))(t)); !errors.Is(err, errs.ErrUnsupported) {
		t.Fatalf("got %v", err)
	}
}

func TestBrokenPlansAreCorrupt(t *testing.T) {
	good := string(must(EncodePlan(everyPlan(t)["filter"]))(t))
	cases := map[string]string{
		"nothing":             ``,
		"no JSON":             `{`,
		"two values":          good + good,
		"an unknown kind":     `{"kind":"magic","node":{}}`,
		"a missing input":     `{"kind":"limit","node":{"count":1,"offset":0}}`,
		"an unknown property": strings.Replace(good, `"cond"`, `"condition"`, 1),
		"too deep":            strings.Repeat(`{"kind":"distinct","node":{},"inputs":[`, 600) + `{"kind":"values","node":{"out":[],"rows":[]}}` + strings.Repeat(`]}`, 600),
		"a column too many":   strings.Replace(good, `"columns":["id"`, `"columns":["x","id"`, 1),
		"a bad expression":    strings.Replace(good, `"cond":"`, `"cond":"AAAA`, 1),
		"a bad field":         strings.Replace(good, `"out":[{"column":"`, `"out":[{"column":"AAAA`, 1),
		"an empty search":     `{"kind":"vector_search","node":{"search":{},"query":"AA=="}}`,
		"a sort without keys": `{"kind":"sort","node":{"keys":[{}]},"inputs":[{"kind":"values","node":{"out":[],"rows":[]}}]}`,
	}
	for name, text := range cases {
		if _, err := DecodePlan([]byte(text)); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzDecodePlan(f *testing.F) {
	for _, p := range everyPlan(f) {
		f.Add(must(EncodePlan(p))(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodePlan(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatalf("not ErrCorrupt: %v", err)
			}
			return
		}
		first, err := EncodePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := DecodePlan(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second := must(EncodePlan(q))(t); !bytes.Equal(first, second) {
			t.Fatalf("encoded again:\n%s\n%s", first, second)
		}
	})
}
