package exec

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/exec/expr"
)

// codingTable gives text as codes where it is asked to, in most batches, with a dictionary of each batch's own whose order is its own and which has
// values that no row has.
type codingTable struct {
	memTable
	seed  uint64
	coded *int // batches that had codes
}

func (c *codingTable) OpenTable(context.Context, TableRef) (Table, error) { return c, nil }

func (c *codingTable) Scan(ctx context.Context, req ScanRequest) (TableScan, error) {
	plain := req
	plain.Alloc = memory.DefaultAllocator // the table keeps what it picked
	s, err := c.memTable.Scan(ctx, plain)
	return &codingScan{TableScan: s, table: c, req: req}, err
}

type codingScan struct {
	TableScan
	table *codingTable
	req   ScanRequest
}

func (s *codingScan) Reader() BatchReader {
	return &codingReader{BatchReader: s.TableScan.Reader(), scan: s, r: rand.New(rand.NewPCG(s.table.seed, 1))}
}

type codingReader struct {
	BatchReader
	scan *codingScan
	r    *rand.Rand
}

func (c *codingReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := c.BatchReader.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	cols := slices.Clone(b.Columns())
	for i, col := range cols {
		if i < len(c.scan.req.Columns) && slices.Contains(c.scan.req.Codes, c.scan.req.Columns[i]) && c.r.IntN(4) > 0 {
			cols[i] = encoded(c.scan.req.Alloc, c.r, col)
			*c.scan.table.coded++
		} else {
			col.Retain()
		}
	}
	return newBatch(b.Schema(), cols, int(b.NumRows())), nil
}

// encoded is text as codes.
func encoded(alloc memory.Allocator, r *rand.Rand, a arrow.Array) arrow.Array {
	value := bytesAt(a)
	values := []string{"no row has this", ""}
	for i := range a.Len() {
		if a.IsValid(i) {
			values = append(values, string(value(i)))
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	dict := array.NewStringBuilder(alloc)
	defer dict.Release()
	dict.AppendValues(values, nil)
	d := dict.NewArray()
	defer d.Release()
	codes := array.NewUint32Builder(alloc)
	defer codes.Release()
	for i := range a.Len() {
		if a.IsNull(i) {
			codes.AppendNull()
			continue
		}
		codes.Append(uint32(slices.Index(values, string(value(i)))))
	}
	c := codes.NewArray()
	defer c.Release()
	return array.NewDictionaryArray(codesType(a.DataType()), c, d)
}

// drawTexts makes a table of three columns of text, of few and of many values, and a number.
func drawTexts(r *rand.Rand, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields("a", arrow.BinaryTypes.String, "b", arrow.BinaryTypes.String, "c", arrow.BinaryTypes.String, "n", arrow.PrimitiveTypes.Int64))
	defer b.Release()
	spread := []int{1 + r.IntN(4), 1 + r.IntN(40), 1 + r.IntN(2*rows+1)}
	for range rows {
		for i := range 3 {
			s := b.Field(i).(*array.StringBuilder)
			if v := r.IntN(spread[i] + 1); v == 0 && r.IntN(3) > 0 {
				s.AppendNull()
			} else {
				s.Append(fmt.Sprintf("%*d", 1+v%20, v)) // short and long
			}
		}
		b.Field(3).(*array.Int64Builder).Append(int64(r.IntN(30)))
	}
	return b.NewRecordBatch()
}

// codedPlans are plans over a scan that may work with codes.
func codedPlans(t tester, table Table, r *rand.Rand) map[string]Plan {
	text := func(p Plan, name string, s string) expr.Expr {
		return call(t, "=", col(p, name), &expr.Literal{Value: scalar.NewStringScalar(s)})
	}
	scan := func(filter func(Plan) expr.Expr) Plan {
		s := must(NewScan(table, ScanSpec{Columns: []string{"n", "c", "a", "b"}}))(t)
		if filter == nil {
			return s
		}
		return must(NewScan(table, ScanSpec{Columns: []string{"n", "c", "a", "b"}, Filter: filter(s)}))(t)
	}
	group := func(in Plan, keys ...string) Plan {
		exprs := make([]expr.Expr, len(keys))
		for i, k := range keys {
			exprs[i] = col(in, k)
		}
		aggs := []AggSpec{{Func: AggCountStar, Name: "n"}, agg(AggSum, col(in, "n")), agg(AggMax, col(in, keys[0])), agg(AggCount, col(in, keys[0])), distinctAgg(AggCount, col(in, keys[0]))}
		return must(NewHashAggregate(in, exprs, keys, aggs))(t)
	}
	join := func(kind JoinKind, buildLeft bool) Plan {
		left, right := scan(nil), scan(func(p Plan) expr.Expr { return call(t, "<", col(p, "n"), lit(int64(r.IntN(30)))) })
		spec := JoinSpec{Kind: kind, Left: left, Right: right, LeftKeys: []expr.Expr{col(left, "n")}, RightKeys: []expr.Expr{col(right, "n")}, BuildLeft: buildLeft}
		if r.IntN(2) == 0 {
			spec.LeftKeys, spec.RightKeys = append(spec.LeftKeys, col(left, "a")), append(spec.RightKeys, col(right, "a"))
		}
		if r.IntN(2) == 0 {
			spec.Residual = call(t, "<>", &expr.Column{ID: 1, Name: "c", T: arrow.BinaryTypes.String}, &expr.Column{ID: 3, Name: "b", T: arrow.BinaryTypes.String})
		}
		j := must(NewHashJoin(spec))(t)
		keys := []expr.Expr{&expr.Column{ID: 2, Name: "a", T: arrow.BinaryTypes.String}}
		if j.Schema().NumFields() > 4 && kind != JoinMark {
			keys = append(keys, &expr.Column{ID: 7, Name: "b", T: arrow.BinaryTypes.String})
		}
		return must(NewHashAggregate(j, keys, []string{"k", "l"}[:len(keys)], []AggSpec{{Func: AggCountStar, Name: "n"}}))(t)
	}
	filtered := scan(func(p Plan) expr.Expr { return text(p, "b", " 3") })
	whole := scan(nil)
	renamed := must(NewProject(whole, []string{"x", "n", "y", "z"}, []expr.Expr{col(whole, "a"), col(whole, "n"), col(whole, "a"), call(t, "concat", col(whole, "b"), col(whole, "a"))}))(t)
	plans := map[string]Plan{
		"one key of few values":       group(scan(nil), "a"),
		"one key of many values":      group(scan(nil), "c"),
		"two keys":                    group(scan(nil), "a", "b"),
		"keys that outgrow codes":     group(scan(nil), "c", "b", "a"),
		"a number and text":           group(scan(nil), "n", "a"),
		"filtered in the scan":        group(scan(func(p Plan) expr.Expr { return text(p, "a", " 1") }), "a", "b"),
		"filtered above":              group(must(NewFilter(scan(nil), text(scan(nil), "b", " 7")))(t), "b"),
		"a scan that filters by text": filtered,
		"a column twice":              group(renamed, "x", "y", "z"),
		"distinct":                    must(NewDistinct(scan(nil)))(t),
	}
	for _, kind := range []JoinKind{JoinInner, JoinLeft, JoinFull, JoinSemi, JoinAnti, JoinMark, JoinNullAwareAnti} {
		plans[string(kind)+" join"] = join(kind, false)
		if kind != JoinMark && kind != JoinNullAwareAnti {
			plans[string(kind)+" join, left side hashed"] = join(kind, true)
		}
	}
	return plans
}

func TestCodesChangeNoAnswer(t *testing.T) {
	coded := 0
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		c := rapid.SampledFrom(configs).Draw(rt, "config")
		r := rand.New(rand.NewPCG(seed, 0))
		data := drawTexts(r, 1+r.IntN(120))
		defer data.Release()
		table := &codingTable{memTable: memTable{batch: data}, seed: seed, coded: &coded}
		for name, plan := range codedPlans(rt, table, r) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			env := Env{Alloc: alloc, BatchRows: c.batchRows, Workers: 1, Tables: table}.WithDefaults()
			got := rowsOf(rt, env, plan)
			plainEnv := Env{BatchRows: c.batchRows, Workers: 1, Tables: &table.memTable}.WithDefaults()
			want := rowsOf(rt, plainEnv, plan)
			if !slices.Equal(sorted(got), sorted(want)) {
				rt.Fatalf("%s: with codes\n%v\nwithout\n%v", name, head(sorted(got)), head(sorted(want)))
			}
			if alloc.CurrentAlloc() != 0 {
				rt.Fatalf("%s: %d bytes did not come back", name, alloc.CurrentAlloc())
			}
		}
	})
	if coded < 1000 {
		t.Fatalf("%d batches came with codes only", coded)
	}
}
