package exec

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage/rowset"
)

// indexedTable has number columns, each with an index "NAME_idx" that covers the first fragments and answers as its match says.
type indexedTable struct {
	vectorTable
	values map[string][]int64 // noValue = NULL
	match  map[string]index.Match
	extra  map[int]bool // rows that AtMost answers have besides
	asked  int
}

const noValue = -1

var numberColumns = []string{"a", "b"}

func drawIndexedTable(t *rapid.T) *indexedTable {
	n := rapid.IntRange(0, 20).Draw(t, "rows")
	x := &indexedTable{values: make(map[string][]int64), match: make(map[string]index.Match), extra: make(map[int]bool)}
	x.distance = make([]float32, n)
	x.perFragment, x.indexed = rapid.IntRange(1, 7).Draw(t, "per fragment"), rapid.IntRange(0, 4).Draw(t, "covered fragments")
	var fs []arrow.Field
	var cols []arrow.Array
	for _, name := range numberColumns {
		x.values[name] = rapid.SliceOfN(rapid.Int64Range(noValue, 2), n, n).Draw(t, name)
		x.match[name] = rapid.SampledFrom([]index.Match{index.Exact, index.AtMost, index.TrueOnly}).Draw(t, "match of "+name)
		b := array.NewInt64Builder(memory.DefaultAllocator)
		for _, v := range x.values[name] {
			if v == noValue {
				b.AppendNull()
			} else {
				b.Append(v)
			}
		}
		cols, fs = append(cols, b.NewArray()), append(fs, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	for i := range n {
		x.extra[i] = rapid.Bool().Draw(t, "extra")
	}
	x.batch = newBatch(arrow.NewSchema(fs, nil), cols, n)
	return x
}

func (x *indexedTable) OpenTable(context.Context, TableRef) (Table, error) { return x, nil }

func (x *indexedTable) FilterIndex(_ context.Context, column string, _ index.Op) (FilterChoice, error) {
	return FilterChoice{OK: true, Info: IndexInfo{Name: column + "_idx", Column: column, Covers: x.covers(), Usable: true}, Match: x.match[column]}, nil
}

func (x *indexedTable) covers() *roaring.Bitmap {
	covers := roaring.New()
	covers.AddRange(0, uint64(x.indexed))
	return covers
}

func (x *indexedTable) Lookup(_ context.Context, req LookupRequest) (index.Truth, LookupStats, error) {
	x.asked++
	column := req.Index[:1]
	wanted := req.Predicate.Values.(*array.Int64).Int64Values()
	out := index.Truth{True: rowset.NewSet(), Null: rowset.NewSet()}
	for i, v := range x.values[column] {
		a := x.addr(i)
		if int(a.Fragment()) >= x.indexed {
			continue
		}
		switch match := x.match[column]; {
		case slices.Contains(wanted, v) || match == index.AtMost && v != noValue && x.extra[i]:
			out.True.Add(uint64(a))
		case v == noValue && match != index.TrueOnly || match == index.AtMost && x.extra[i]:
			out.Null.Add(uint64(a))
		}
	}
	return out, LookupStats{Segments: 1, Covers: x.covers()}, nil
}

func (x *indexedTable) Scan(_ context.Context, req ScanRequest) (TableScan, error) {
	var idx []int32
	alloc := memory.DefaultAllocator // the table owns its batches
	b := array.NewUint64Builder(alloc)
	defer b.Release()
	for i := range len(x.distance) {
		if a := x.addr(i); req.Among == nil || req.Among.Contains(uint64(a)) {
			idx = append(idx, int32(i))
			b.Append(uint64(a))
		}
	}
	got, err := x.pick(idx, req.Columns, false, alloc)
	if err != nil {
		return nil, err
	}
	cols, fs := got.Columns(), got.Schema().Fields()
	for _, c := range cols {
		c.Retain()
	}
	got.Release()
	src := &source{batch: newBatch(arrow.NewSchema(append(fs, arrow.Field{Name: RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64}), nil), append(cols, b.NewArray()), len(idx))}
	ops, err := src.OpenWorkers(context.Background(), &Env{BatchRows: req.BatchRows}, 64)
	return &memScan{ops: ops, batch: src.batch}, err
}

// verdict is a model's answer about one row.
type verdict int

const (
	modelFalse verdict = iota
	modelNull
	modelTrue
)

func (x *indexedTable) among(column string, wanted []int64) func(int) verdict {
	return func(row int) verdict {
		switch v := x.values[column][row]; {
		case len(wanted) == 0:
			return modelFalse
		case v == noValue:
			return modelNull
		case slices.Contains(wanted, v):
			return modelTrue
		}
		return modelFalse
	}
}

// drawCandidates draws a candidate plan and the model of its answer. positive says that only TRUE counts above.
func (x *indexedTable) drawCandidates(t *rapid.T, depth int, positive bool) (CandidatePlan, func(int) verdict) {
	kinds := []string{"lookup", "scan", "mask"}
	if depth > 0 {
		kinds = append(kinds, "and", "or", "not")
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	switch kind {
	case "not":
		in, model := x.drawCandidates(t, depth-1, false)
		return &CandidateNot{Input: in}, func(row int) verdict { return modelTrue - model(row) }
	case "and", "or":
		var plans []CandidatePlan
		var models []func(int) verdict
		for range rapid.IntRange(1, 3).Draw(t, "inputs") {
			p, m := x.drawCandidates(t, depth-1, positive)
			plans, models = append(plans, p), append(models, m)
		}
		if kind == "and" {
			return &CandidateAnd{Inputs: plans}, func(row int) verdict {
				out := modelTrue
				for _, m := range models {
					out = min(out, m(row))
				}
				return out
			}
		}
		return &CandidateOr{Inputs: plans}, func(row int) verdict {
			out := modelFalse
			for _, m := range models {
				out = max(out, m(row))
			}
			return out
		}
	}
	column := rapid.SampledFrom(numberColumns).Draw(t, "column")
	if !positive && x.match[column] == index.TrueOnly && kind != "scan" {
		kind = "scan" // the planner asks such an index for TRUE alone
	}
	if kind == "mask" {
		return x.drawMask(t, column)
	}
	wanted := rapid.Int64Range(0, 3).Draw(t, "wanted")
	cond := must(expr.NewCall("=", &expr.Column{ID: 0, Name: column, T: arrow.PrimitiveTypes.Int64}, lit(wanted)))(t)
	scan := &CandidateScan{Table: x.Ref(), Columns: []string{column}, Expr: cond}
	if kind == "scan" {
		return scan, x.among(column, []int64{wanted})
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.Append(wanted)
	return &IndexLookup{Table: x.Ref(), Column: column, Index: column + "_idx", Match: x.match[column], Predicate: index.Predicate{Op: index.OpEq, Values: b.NewArray()}, Recheck: scan, Fresh: true},
		x.among(column, []int64{wanted})
}

func (x *indexedTable) drawMask(t *rapid.T, column string) (CandidatePlan, func(int) verdict) {
	keys := rapid.SliceOfN(rapid.Int64Range(noValue, 3), 0, 4).Draw(t, "keys") // with duplicates and NULLs
	var known []int64
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for _, k := range keys {
		if k == noValue {
			b.AppendNull()
		} else {
			b.Append(k)
			known = append(known, k)
		}
	}
	in := &source{batch: newBatch(fields("k", arrow.PrimitiveTypes.Int64), []arrow.Array{b.NewArray()}, len(keys))}
	mask := &KeyMask{Table: x.Ref(), Column: column, Keys: in}
	if rapid.Bool().Draw(t, "by index") {
		mask.Index, mask.Match = column+"_idx", x.match[column]
	}
	return mask, x.among(column, known)
}

// TestRandomCandidates compares set algebra over indices with a model that looks at one row after the other: indices that give too much or cannot tell NULL from FALSE,
// fragments that no index covers, masks, any restriction to rows that are still open.
func TestRandomCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawIndexedTable(t)
		exact := x.match["a"] != index.TrueOnly && x.match["b"] != index.TrueOnly
		plan, model := x.drawCandidates(t, 3, true)
		var among *rowset.Set
		if rapid.Bool().Draw(t, "restricted") {
			among = rowset.NewSet()
			for i := range x.distance {
				if rapid.Bool().Draw(t, "open") {
					among.Add(uint64(x.addr(i)))
				}
			}
		}
		alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
		env := rapid.SampledFrom(configs).Draw(t, "config").env(alloc)
		env.Tables = x
		got := must(EvalCandidates(context.Background(), env, plan, among))(t)
		count := 0
		for i := range x.distance {
			a := uint64(x.addr(i))
			want := model(i)
			if among != nil && !among.Contains(a) {
				want = modelFalse
			} else if want == modelTrue {
				count++
			}
			if got.True.Contains(a) != (want == modelTrue) || exact && got.Null.Contains(a) != (want == modelNull) {
				t.Fatalf("row %d: TRUE %v, NULL %v, want %d", i, got.True.Contains(a), got.Null.Contains(a), want)
			}
		}
		if !rowset.And(got.True, got.Null).IsEmpty() {
			t.Fatal("a row is TRUE and NULL")
		}
		if among == nil {
			p := must(NewCountRows(x.Ref(), plan, []string{"n", "m"}))(t)
			sameRows(t, rowsOf(t, env, p), []string{fmt.Sprintf("%d|%d", count, count)}, true)
		}
		if n := alloc.CurrentAlloc(); n != 0 {
			t.Fatalf("%d bytes were not given back", n)
		}
	})
}

func TestCountRowsWithoutCandidates(t *testing.T) {
	v := newVectorTable(t, 2, 0, 1, 2, 3)
	env := Env{Tables: v}.WithDefaults()
	p := must(NewCountRows(v.Ref(), nil, []string{"n"}))(t)
	sameRows(t, rowsOf(t, env, p), []string{"3"}, true)
	if len(v.scanned)+len(v.taken) > 0 {
		t.Errorf("it read %v %v", v.scanned, v.taken)
	}
	if _, err := NewCountRows(v.Ref(), nil, nil); err == nil {
		t.Error("a count without a column")
	}
}

// TestRowsThatAreNotIndexedYet: freshness = indexed_only leaves them out, otherwise they are read.
func TestRowsThatAreNotIndexedYet(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		x := &indexedTable{values: map[string][]int64{"a": {1, 1, 1}}, match: map[string]index.Match{"a": index.Exact}}
		x.distance, x.perFragment, x.indexed = make([]float32, 3), 1, 2
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(x.values["a"], nil)
		x.batch = newBatch(fields("a", arrow.PrimitiveTypes.Int64), []arrow.Array{b.NewArray()}, 3)
		b.Append(1)
		cond := call(t, "=", &expr.Column{ID: 0, Name: "a", T: arrow.PrimitiveTypes.Int64}, lit(1))
		p := &IndexLookup{Table: x.Ref(), Column: "a", Index: "a_idx", Match: x.match["a"], Predicate: index.Predicate{Op: index.OpEq, Values: b.NewArray()}, Fresh: fresh,
			Recheck: &CandidateScan{Table: x.Ref(), Columns: []string{"a"}, Expr: cond}}
		env := Env{Tables: x}.WithDefaults()
		got := must(EvalCandidates(context.Background(), env, p, nil))(t)
		if want := map[bool]uint64{true: 3, false: 2}[fresh]; got.True.Count() != want {
			t.Errorf("fresh %v: %d rows, want %d", fresh, got.True.Count(), want)
		}
	}
}
