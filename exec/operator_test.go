package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
)

// memTable is a table over one batch; row i has address i in fragment 0.
type memTable struct {
	batch   arrow.RecordBatch
	scanned []string // columns asked for by scans
	taken   []string // columns asked for by takes, with the number of rows
	mu      sync.Mutex
}

func (m *memTable) Ref() TableRef                             { return TableRef{Source: "demo", Table: "t", Version: 3} }
func (m *memTable) Schema() *arrow.Schema                     { return m.batch.Schema() }
func (m *memTable) Rows() int64                               { return m.batch.NumRows() }
func (m *memTable) ColumnBytes(context.Context, string) int64 { return -1 }
func (m *memTable) FragmentIDs() []uint32                     { return []uint32{0} }

func (m *memTable) OpenTable(_ context.Context, ref TableRef) (Table, error) {
	if ref != m.Ref() {
		return nil, errs.New(errs.ErrNotFound, "no table %s", ref)
	}
	return m, nil
}

func (m *memTable) LiveRows(context.Context, []uint32) (*rowset.Set, error) {
	s := rowset.NewSet()
	s.AddRange(0, 0, uint64(m.batch.NumRows()))
	return s, nil
}

func (m *memTable) Take(_ context.Context, addrs []rowset.RowAddr, columns []string, alloc memory.Allocator) (arrow.RecordBatch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = append(m.taken, fmt.Sprintf("%v x %d", columns, len(addrs)))
	idx := make([]int32, len(addrs))
	for i, a := range addrs {
		idx[i] = int32(a.Offset())
	}
	return m.pick(idx, columns, false, alloc)
}

func (m *memTable) pick(idx []int32, columns []string, rowAddr bool, alloc memory.Allocator) (arrow.RecordBatch, error) {
	var cols []arrow.Array
	var fs []arrow.Field
	for _, c := range columns {
		i := m.Schema().FieldIndices(c)[0]
		a, err := expr.TakeArray(alloc, m.batch.Column(i), idx)
		if err != nil {
			return nil, err
		}
		cols, fs = append(cols, a), append(fs, m.Schema().Field(i))
	}
	if rowAddr {
		b := array.NewUint64Builder(alloc)
		defer b.Release()
		for _, i := range idx {
			b.Append(uint64(i))
		}
		cols, fs = append(cols, b.NewArray()), append(fs, arrow.Field{Name: RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64})
	}
	return newBatch(arrow.NewSchema(fs, nil), cols, len(idx)), nil
}

func (m *memTable) Scan(_ context.Context, req ScanRequest) (TableScan, error) {
	m.scanned = append(m.scanned, fmt.Sprint(req.Columns))
	var idx []int32
	for i := range m.batch.NumRows() {
		if req.Among == nil || req.Among.Contains(uint64(i)) {
			idx = append(idx, int32(i))
		}
	}
	b, err := m.pick(idx, req.Columns, req.RowAddr, req.Alloc)
	if err != nil {
		return nil, err
	}
	src := &source{batch: b}
	ops, err := src.OpenWorkers(context.Background(), &Env{BatchRows: req.BatchRows}, 64)
	return &memScan{ops: ops, batch: b}, err
}

type memScan struct {
	mu    sync.Mutex
	ops   []Operator
	batch arrow.RecordBatch
}

func (s *memScan) Reader() BatchReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.ops[0]
	s.ops = s.ops[1:]
	return r
}

// fixedCandidates is a candidate plan with a known answer.
type fixedCandidates struct{ rows []uint64 }

func (f *fixedCandidates) Candidates(context.Context, *Env, *rowset.Set) (index.Truth, error) {
	return index.Truth{True: rowset.NewSet(f.rows...), Null: rowset.NewSet()}, nil
}
func (f *fixedCandidates) Describe() Description     { return Description{Name: "Fixed"} }
func (f *fixedCandidates) Children() []CandidatePlan { return nil }

func lit(v int64) *expr.Literal { return &expr.Literal{Value: scalar.NewInt64Scalar(v)} }

func call(t tester, name string, args ...expr.Expr) expr.Expr {
	t.Helper()
	return must(expr.NewCall(name, args...))(t)
}

var threeColumns = fields("id", arrow.PrimitiveTypes.Int64, "g", arrow.PrimitiveTypes.Int64, "s", arrow.BinaryTypes.String)

const fiveRows = `[{"id":1,"g":10,"s":"a"},{"id":2,"g":20,"s":"b"},{"id":3,"g":null,"s":"c"},{"id":4,"g":20,"s":null},{"id":5,"g":10,"s":"e"}]`

func TestPipelines(t *testing.T) {
	cases := []struct {
		name string
		plan func(t *testing.T, in Plan) Plan
		want []string
	}{
		{"a filter keeps TRUE rows only", func(t *testing.T, in Plan) Plan {
			return must(NewFilter(in, call(t, ">", col(in, "g"), lit(10))))(t)
		}, []string{"2|20|b", "4|20|NULL"}},
		{"a filter that keeps nothing", func(t *testing.T, in Plan) Plan {
			return must(NewFilter(in, call(t, ">", col(in, "g"), lit(99))))(t)
		}, nil},
		{"a projection computes, passes on, repeats", func(t *testing.T, in Plan) Plan {
			return must(NewProject(in, []string{"s", "x", "s2"}, []expr.Expr{col(in, "s"), call(t, "is_null", col(in, "g")), col(in, "s")}))(t)
		}, []string{"a|false|a", "b|false|b", "c|true|c", "NULL|false|NULL", "e|false|e"}},
		{"a projection to no columns keeps the rows", func(t *testing.T, in Plan) Plan {
			none := must(NewProject(in, nil, nil))(t)
			return must(NewHashAggregate(none, nil, nil, []AggSpec{agg(AggCountStar)}))(t)
		}, []string{"5"}},
		{"rows without columns can be cut", func(t *testing.T, in Plan) Plan {
			cut := must(NewLimit(must(NewProject(in, nil, nil))(t), 2, 1))(t)
			return must(NewHashAggregate(must(NewUnion(cut, cut))(t), nil, nil, []AggSpec{agg(AggCountStar)}))(t)
		}, []string{"4"}},
		{"rows without columns can be joined", func(t *testing.T, in Plan) Plan {
			none := must(NewProject(in, nil, nil))(t)
			j := must(NewHashJoin(JoinSpec{Kind: JoinInner, Left: none, Right: in}))(t)
			return must(NewHashAggregate(j, nil, nil, []AggSpec{agg(AggCountStar)}))(t)
		}, []string{"25"}},
		{"a limit of nothing", func(t *testing.T, in Plan) Plan { return must(NewLimit(in, 0, 0))(t) }, nil},
		{"an offset past the end", func(t *testing.T, in Plan) Plan { return must(NewLimit(in, NoLimit, 50))(t) }, nil},
		{"a union of inputs", func(t *testing.T, in Plan) Plan {
			p := must(NewProject(in, []string{"id"}, []expr.Expr{col(in, "id")}))(t)
			return must(NewUnion(p, must(NewProject(in, []string{"g"}, []expr.Expr{col(in, "g")}))(t)))(t)
		}, []string{"1", "2", "3", "4", "5", "10", "20", "NULL", "20", "10"}},
		{"distinct rows", func(t *testing.T, in Plan) Plan {
			return must(NewDistinct(must(NewProject(in, []string{"g"}, []expr.Expr{col(in, "g")}))(t)))(t)
		}, []string{"10", "20", "NULL"}},
		{"distinct rows without columns are one", func(t *testing.T, in Plan) Plan {
			none := must(NewDistinct(must(NewProject(in, nil, nil))(t)))(t)
			return must(NewHashAggregate(none, nil, nil, []AggSpec{agg(AggCountStar)}))(t)
		}, []string{"1"}},
		{"distinct rows without columns of nothing are none", func(t *testing.T, in Plan) Plan {
			none := must(NewDistinct(must(NewProject(must(NewLimit(in, 0, 0))(t), nil, nil))(t)))(t)
			return must(NewHashAggregate(none, nil, nil, []AggSpec{agg(AggCountStar)}))(t)
		}, []string{"0"}},
		{"within a cap", func(t *testing.T, in Plan) Plan { return must(NewCap(in, 5, 0, "the row engine"))(t) },
			[]string{"1|10|a", "2|20|b", "3|NULL|c", "4|20|NULL", "5|10|e"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			everyConfig(t, func(t *testing.T, env *Env) {
				src := fromJSON(t, env.Alloc, threeColumns, fiveRows)
				defer src.batch.Release()
				sameRows(t, rowsOf(t, env, c.plan(t, src)), c.want, false)
			})
		})
	}
}

func TestLimitCountsOverAllWorkers(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		src := fromJSON(t, env.Alloc, threeColumns, fiveRows)
		defer src.batch.Release()
		for _, c := range []struct{ count, offset, want uint64 }{{2, 0, 2}, {2, 2, 2}, {10, 3, 2}, {NoLimit, 1, 4}, {NoLimit, NoLimit, 0}} {
			if got := len(rowsOf(t, env, must(NewLimit(src, c.count, c.offset))(t))); got != int(c.want) {
				t.Errorf("limit %d offset %d gave %d rows, want %d", c.count, c.offset, got, c.want)
			}
		}
		if env.Workers == 1 {
			sameRows(t, rowsOf(t, env, must(NewLimit(src, 2, 1))(t)), []string{"2|20|b", "3|NULL|c"}, true)
		}
	})
}

func TestValues(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		schema := fields("a", arrow.PrimitiveTypes.Int64, "b", arrow.BinaryTypes.String)
		null := &expr.Literal{Value: scalar.ScalarNull}
		rows := [][]expr.Expr{{lit(1), &expr.Literal{Value: scalar.NewStringScalar("x")}}, {null, null}, {call(t, "-", lit(7), lit(2)), null}}
		sameRows(t, rowsOf(t, env, must(NewValues(schema, rows))(t)), []string{"1|x", "NULL|NULL", "5|NULL"}, true)
		sameRows(t, rowsOf(t, env, must(NewValues(schema, nil))(t)), nil, true)
		one := must(NewValues(arrow.NewSchema(nil, nil), [][]expr.Expr{{}}))(t)
		sameRows(t, rowsOf(t, env, must(NewProject(one, []string{"x"}, []expr.Expr{lit(42)}))(t)), []string{"42"}, true)
	})
}

func TestScan(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		src := fromJSON(t, env.Alloc, threeColumns, fiveRows)
		defer src.batch.Release()
		table := &memTable{batch: src.batch}
		env.Tables = table
		g := &expr.Column{ID: 1, Name: "g", T: arrow.PrimitiveTypes.Int64}
		cases := []struct {
			name string
			spec ScanSpec
			want []string
		}{
			{"some columns, renamed", ScanSpec{Columns: []string{"s", "id"}, Names: []string{"x", "y"}}, []string{"a|1", "b|2", "c|3", "NULL|4", "e|5"}},
			{"with addresses", ScanSpec{Columns: []string{"id"}, RowAddr: true}, []string{"1|0", "2|1", "3|2", "4|3", "5|4"}},
			{"filtered", ScanSpec{Columns: []string{"id", "g"}, Filter: call(t, "=", g, lit(20))}, []string{"2|20", "4|20"}},
			{"candidates", ScanSpec{Columns: []string{"id"}, Candidates: &fixedCandidates{[]uint64{1, 4}}}, []string{"2", "5"}},
			{"no candidates", ScanSpec{Columns: []string{"id"}, Candidates: &fixedCandidates{}}, nil},
			{"candidates and a filter", ScanSpec{Columns: []string{"id", "g"}, Candidates: &fixedCandidates{[]uint64{1, 2, 4}}, Filter: call(t, "=", g, lit(20)), RowAddr: true}, []string{"2|20|1"}},
		}
		for _, c := range cases {
			p := must(NewScan(table, c.spec))(t)
			got, err := collectRows(env, p)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			sameRows(t, got, c.want, false)
		}
	})
}

// collectRows is rowsOf for tables, whose scans own batches of their own.
func collectRows(env *Env, p Plan) ([]string, error) {
	checked := *env
	checked.Alloc = memory.DefaultAllocator
	checked.Expr.Alloc = memory.DefaultAllocator
	batches, err := Collect(context.Background(), &checked, p)
	var out []string
	for _, b := range batches {
		out = append(out, batchRows(b)...)
		b.Release()
	}
	return out, err
}

func TestScanRefusesUnknownColumns(t *testing.T) {
	src := fromJSON(t, memory.DefaultAllocator, threeColumns, fiveRows)
	if _, err := NewScan(&memTable{batch: src.batch}, ScanSpec{Columns: []string{"nope"}}); !errors.Is(err, errs.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
}

func TestCapRefusesMore(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	src := fromJSON(t, alloc, threeColumns, fiveRows)
	defer src.batch.Release()
	for _, c := range configs {
		for _, p := range []*Cap{must(NewCap(src, 4, 0, "the row engine"))(t), must(NewCap(src, 0, 100, "the row engine"))(t)} {
			if _, err := Collect(context.Background(), c.env(alloc), p); !errors.Is(err, errs.ErrUnsupported) || !strings.Contains(err.Error(), "the row engine") {
				t.Errorf("%s: got %v", c, err)
			}
		}
	}
}

func TestExplainAnalyzeCountsEveryNode(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	src := fromJSON(t, alloc, threeColumns, fiveRows)
	defer src.batch.Release()
	f := must(NewFilter(src, call(t, "=", col(src, "g"), lit(20))))(t)
	groups := must(NewHashAggregate(f, []expr.Expr{col(src, "g")}, []string{"g"}, []AggSpec{agg(AggCountStar), distinctAgg(AggCount, col(src, "s"))}))(t)
	p := must(NewTopN(groups, []SortKey{{Expr: col(groups, "g"), Desc: true}}, 5, 0))(t)
	const plan = `TopN: keys=[g DESC], k=5
└─ HashAggregate: keys=[g], aggregates=[count(*), count(DISTINCT s)]
   └─ Filter: where=(g = 20)
      └─ Source
`
	if got := Explain(p, nil); got != plan {
		t.Fatalf("got\n%swant\n%s", got, plan)
	}
	env := configs[0].env(alloc)
	env.Stats = NewStats()
	rowsOf(t, env, p)
	lines := strings.Split(Explain(p, env.Stats), "\n")
	for i, want := range []string{"rows=1, batches=1", "rows=1, batches=1", "rows=2, batches=2", "rows=5, batches=5"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %q lacks %s", lines[i], want)
		}
	}
}

// panicker panics on its second batch.
type panicker struct{ *source }

func (p *panicker) Open(ctx context.Context, env *Env) (Operator, error) {
	op, err := p.source.Open(ctx, env)
	return &panickerOp{Operator: op}, err
}

func (p *panicker) OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error) {
	ops, err := p.source.OpenWorkers(ctx, env, n)
	for i, op := range ops {
		ops[i] = &panickerOp{Operator: op}
	}
	return ops, err
}

type panickerOp struct {
	Operator
	calls int
}

func (p *panickerOp) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if p.calls++; p.calls > 1 {
		panic("second batch")
	}
	return p.Operator.Next(ctx)
}

func TestPanicsBecomeErrorsEverywhere(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	src := fromJSON(t, alloc, threeColumns, fiveRows)
	defer src.batch.Release()
	bad := &panicker{src}
	key := []SortKey{{Expr: col(src, "id")}}
	plans := []Plan{bad, must(NewSort(bad, key))(t), must(NewTopN(bad, key, 3, 0))(t), must(NewDistinct(bad))(t),
		must(NewHashJoin(JoinSpec{Kind: JoinInner, Left: src, Right: bad}))(t), must(NewHashJoin(JoinSpec{Kind: JoinInner, Left: bad, Right: src}))(t)}
	for _, p := range plans {
		for _, c := range []config{{1, 1}, {1, 4}} {
			if _, err := Collect(context.Background(), c.env(alloc), p); !errors.Is(err, errs.ErrInternal) {
				t.Errorf("%s, %s: got %v", p.Describe(), c, err)
			}
		}
	}
}

// A join with few keys makes the scan of the other side read the key first and the other columns for its matches alone.
func TestScanReadsLateUnderAJoinWithFewKeys(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		var rows []string
		for i := range 5000 {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"g":%d,"s":"value %d"}`, i, i%100, i))
		}
		src := fromJSON(t, memory.DefaultAllocator, threeColumns, "["+strings.Join(rows, ",")+"]")
		table := &memTable{batch: src.batch}
		env.Tables = table
		hits := fromJSON(t, memory.DefaultAllocator, fields("k", arrow.PrimitiveTypes.Int64), `[{"k":7},{"k":4999},{"k":null},{"k":123456},{"k":7},{"k":3000}]`)
		g := &expr.Column{ID: 0, Name: "g", T: arrow.PrimitiveTypes.Int64}
		for _, c := range []struct {
			spec    ScanSpec
			scanned string
			want    []string
		}{
			{ScanSpec{Columns: []string{"g", "s", "id"}, RowAddr: true}, "[[id]]",
				[]string{"7|7|value 7|7|7", "7|7|value 7|7|7", "3000|0|value 3000|3000|3000", "4999|99|value 4999|4999|4999"}},
			{ScanSpec{Columns: []string{"g", "s", "id"}, Filter: call(t, ">", g, lit(0))}, "[[g id]]",
				[]string{"7|7|value 7|7", "7|7|value 7|7", "4999|99|value 4999|4999"}},
			{ScanSpec{Columns: []string{"g", "s", "id"}, Candidates: &fixedCandidates{[]uint64{7, 8}}}, "[[id]]", []string{"7|7|value 7|7", "7|7|value 7|7"}},
			{ScanSpec{Columns: []string{"id"}}, "[[id]]", []string{"7|7", "7|7", "3000|3000", "4999|4999"}}, // nothing to read late
		} {
			table.scanned, table.taken = nil, nil
			scan := must(NewScan(table, c.spec))(t)
			j := must(NewHashJoin(JoinSpec{Kind: JoinInner, Left: hits, Right: scan, BuildLeft: true, LeftKeys: []expr.Expr{col(hits, "k")}, RightKeys: []expr.Expr{col(scan, "id")}}))(t)
			got, err := collectRows(env, j)
			if err != nil {
				t.Fatal(err)
			}
			sameRows(t, got, c.want, false)
			if s := fmt.Sprint(table.scanned); s != c.scanned {
				t.Errorf("scanned %s, want %s", s, c.scanned)
			}
			late := len(c.spec.Columns) > 1
			if (len(table.taken) > 0) != late {
				t.Errorf("taken: %v", table.taken)
			}
		}
	})
}
