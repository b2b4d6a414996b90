package exec

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/storage/rowset"
)

// zonedTable has one column "a" of integers, with rows that are not live, and counts the rows that scans yield.
type zonedTable struct {
	values []int64 // by row, all rows
	isNull map[int]bool
	dead   map[int]bool
	per    int // rows of a fragment
	kind   arrow.DataType

	zones *Zones
	read  int
}

func (x *zonedTable) addr(i int) uint64 { return uint64(rowset.Addr(uint32(i/x.per), uint32(i%x.per))) }

func (x *zonedTable) OpenTable(context.Context, TableRef) (Table, error) { return x, nil }
func (x *zonedTable) Ref() TableRef                                      { return TableRef{Table: "z"} }
func (x *zonedTable) Schema() *arrow.Schema                              { return fields("a", x.kind) }
func (x *zonedTable) Rows() int64                                        { return int64(len(x.values) - len(x.dead)) }
func (x *zonedTable) ColumnBytes(context.Context, string) int64          { return -1 }
func (x *zonedTable) FragmentIDs() []uint32                              { return nil }
func (x *zonedTable) Zones(string) (*Zones, bool)                        { return x.zones, x.zones != nil }
func (x *zonedTable) KeepZones(_ string, z *Zones)                       { x.zones = z }

func (x *zonedTable) Take(context.Context, []rowset.RowAddr, []string, memory.Allocator) (arrow.RecordBatch, error) {
	panic("not called")
}

func (x *zonedTable) LiveRows(context.Context, []uint32) (*rowset.Set, error) {
	out := rowset.NewSet()
	for i := range x.values {
		if !x.dead[i] {
			out.Add(x.addr(i))
		}
	}
	return out, nil
}

func (x *zonedTable) Scan(_ context.Context, req ScanRequest) (TableScan, error) {
	b := array.NewBuilder(memory.DefaultAllocator, x.kind)
	addrs := array.NewUint64Builder(memory.DefaultAllocator)
	defer b.Release()
	defer addrs.Release()
	for i, v := range x.values {
		if x.dead[i] || req.Among != nil && !req.Among.Contains(x.addr(i)) {
			continue
		}
		x.read++
		addrs.Append(x.addr(i))
		if x.isNull[i] {
			b.AppendNull()
		} else if err := b.AppendValueFromString(fmt.Sprint(v)); err != nil {
			return nil, err
		}
	}
	n := addrs.Len()
	src := &source{batch: newBatch(fields("a", x.kind, RowAddrColumn, arrow.PrimitiveTypes.Uint64), []arrow.Array{b.NewArray(), addrs.NewArray()}, n)}
	ops, err := src.OpenWorkers(context.Background(), &Env{BatchRows: req.BatchRows}, 64)
	return &memScan{ops: ops, batch: src.batch}, err
}

// TestLookupsByZonesEqualScans asks random columns for random keys before and after their zones are known.
func TestLookupsByZonesEqualScans(t *testing.T) {
	kinds := []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32,
	}
	rapid.Check(t, func(t *rapid.T) {
		x := drawZoned(t, rapid.SampledFrom(kinds).Draw(t, "type"))
		env := Env{Tables: x, Workers: rapid.IntRange(1, 3).Draw(t, "workers"), BatchRows: rapid.SampledFrom([]int{1, 3, 8192}).Draw(t, "batch")}.WithDefaults()
		for round := range 3 {
			cond, wanted := drawPoints(t, x)
			scan := &CandidateScan{Table: x.Ref(), Columns: []string{"a"}, Expr: cond}
			var among *rowset.Set
			if rapid.Bool().Draw(t, "restricted") {
				among = rowset.NewSet()
				for i := range x.values {
					if !x.dead[i] && rapid.Bool().Draw(t, "open") {
						among.Add(x.addr(i))
					}
				}
			}
			got := must(EvalCandidates(context.Background(), env, scan, among))(t)
			for i, v := range x.values {
				a := x.addr(i)
				is := !x.dead[i] && (among == nil || among.Contains(a))
				if got.True.Contains(a) != (is && !x.isNull[i] && slices.Contains(wanted, v)) || got.Null.Contains(a) != (is && x.isNull[i]) {
					t.Fatalf("round %d, row %d (%d, NULL %v): TRUE %v, NULL %v for %s", round, i, v, x.isNull[i], got.True.Contains(a), got.Null.Contains(a), cond)
				}
			}
			if round == 0 && among == nil && x.zones == nil {
				t.Fatal("nothing was learned")
			}
		}
	})
}

// drawZoned draws a column that goes up by one for long stretches, with breaks, NULLs and dead rows.
func drawZoned(t *rapid.T, kind arrow.DataType) *zonedTable {
	x := &zonedTable{kind: kind, per: rapid.IntRange(1, 2500).Draw(t, "per fragment"), isNull: map[int]bool{}, dead: map[int]bool{}}
	lo, hi := int64(0), int64(100)
	n := rapid.IntRange(0, 100).Draw(t, "rows")
	switch kind.ID() {
	case arrow.INT64:
		lo, hi = math.MinInt64, math.MaxInt64
		n = rapid.SampledFrom([]int{n, 1024, 3000}).Draw(t, "more rows")
	case arrow.INT8:
		lo, hi = math.MinInt8, math.MaxInt8
	case arrow.UINT32:
		hi = math.MaxUint32
	}
	next := rapid.OneOf(rapid.Int64Range(lo, hi), rapid.Int64Range(hi-50, hi)).Draw(t, "first")
	for i := range n {
		if i < 60 || i%500 == 0 {
			switch rapid.IntRange(0, 19).Draw(t, "row") {
			case 0:
				next = rapid.Int64Range(lo, hi).Draw(t, "jump")
			case 1:
				x.isNull[i] = true
			case 2:
				x.dead[i] = true
			}
		}
		x.values = append(x.values, next)
		if next++; next > hi || next == math.MinInt64 {
			next = lo
		}
	}
	return x
}

func drawPoints(t *rapid.T, x *zonedTable) (expr.Expr, []int64) {
	column := &expr.Column{Name: "a", T: x.kind}
	wanted := make([]int64, rapid.IntRange(1, 10).Draw(t, "points"))
	args := []expr.Expr{column}
	for i := range wanted {
		wanted[i] = rapid.Int64Range(0, 100).Draw(t, "point")
		if len(x.values) > 0 && rapid.Bool().Draw(t, "a value of the table") {
			wanted[i] = rapid.SampledFrom(x.values).Draw(t, "value")
		}
		args = append(args, must(expr.NewLiteral(wanted[i]))(t))
	}
	if len(wanted) == 1 && rapid.Bool().Draw(t, "equals") {
		return call(t, "=", args...), wanted
	}
	return call(t, "in", args...), wanted
}

func TestKeysInOrderAreFoundWithoutReading(t *testing.T) {
	x := &zonedTable{kind: arrow.PrimitiveTypes.Int64, per: 4000}
	for i := range 10_000 {
		x.values = append(x.values, int64(i+7))
	}
	env := Env{Tables: x, Workers: 1}.WithDefaults()
	in := must(expr.NewCall("in", &expr.Column{Name: "a", T: x.kind}, lit(9), lit(5000), lit(5000), lit(1_000_000)))(t)
	scan := &CandidateScan{Table: x.Ref(), Columns: []string{"a"}, Expr: in}
	want := rowset.NewSet(x.addr(2), x.addr(4993))
	for round, read := range []int{len(x.values), 0} {
		x.read = 0
		got := must(EvalCandidates(context.Background(), env, scan, nil))(t)
		if !rowset.Equal(got.True, want) || !got.Null.IsEmpty() || x.read != read {
			t.Fatalf("round %d: %d rows found, %d read", round, got.True.Count(), x.read)
		}
	}
	if n := len(x.zones.list); n != 3 {
		t.Errorf("%d zones of three fragments whose values are in order", n)
	}
}

func TestKeysOutOfOrderAreReadInTheirZonesOnly(t *testing.T) {
	x := &zonedTable{kind: arrow.PrimitiveTypes.Int32, per: 1 << 20}
	for i := range 20 * zoneRows {
		x.values = append(x.values, int64(i^1)) // pairs swapped
	}
	env := Env{Tables: x, Workers: 1}.WithDefaults()
	scan := &CandidateScan{Table: x.Ref(), Columns: []string{"a"}, Expr: must(expr.NewCall("=", &expr.Column{Name: "a", T: x.kind}, lit(3000)))(t)}
	for round, read := range []int{len(x.values), zoneRows} {
		x.read = 0
		got := must(EvalCandidates(context.Background(), env, scan, nil))(t)
		if !rowset.Equal(got.True, rowset.NewSet(3001)) || x.read != read {
			t.Fatalf("round %d: %v, %d read", round, slices.Collect(got.True.All()), x.read)
		}
	}
}

// TestWhatZonesDoNotAnswer is read as ever.
func TestWhatZonesDoNotAnswer(t *testing.T) {
	column := &expr.Column{Name: "a", T: arrow.PrimitiveTypes.Int64}
	for name, cond := range map[string]expr.Expr{
		"a list with a NULL": call(t, "in", column, lit(1), expr.Null(arrow.PrimitiveTypes.Int64)),
		"a range":            call(t, "<", column, lit(1)),
		"an expression":      call(t, "=", call(t, "+", column, lit(1)), lit(2)),
		"no constant":        call(t, "=", column, column),
	} {
		if points, ok := pointsOf(cond, arrow.PrimitiveTypes.Int64); ok {
			t.Errorf("%s: points %v", name, points)
		}
	}
	if _, ok := pointsOf(call(t, "=", &expr.Column{Name: "a", T: arrow.PrimitiveTypes.Float64}, lit(1)), arrow.PrimitiveTypes.Float64); ok {
		t.Error("a column of floating point")
	}
	var learned zoneBuilder
	learned.add(array.NewStringBuilder(memory.DefaultAllocator).NewArray(), nil)
	if _, whole := joinZones([]truthBuilder{{zones: learned}}, 5); whole {
		t.Error("zones of a part of the rows")
	}
}
