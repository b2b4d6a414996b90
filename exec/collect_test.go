package exec

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/exec/expr"
)

// TestRandomCollectors: texts of groups, deviations and bits against loops over the rows.
func TestRandomCollectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1, 1)
		n, desc, distinct := rapid.IntRange(0, 200).Draw(t, "n"), rapid.Bool().Draw(t, "desc"), rapid.IntRange(0, 1).Draw(t, "distinct")
		d.check(t, func(env *Env, r *rand.Rand) {
			src := collectSource(env.Alloc, r, n, d.types[0])
			defer src.batch.Release()
			id, f, u, s, key := col(src, "id"), col(src, "f"), col(src, "u"), col(src, "s"), col(src, "name")
			concat := AggSpec{Func: AggConcat, Args: []expr.Expr{s, s, id}, Name: "c", Concat: &ConcatSpec{Separator: "; ", Distinct: 1, Desc: []bool{desc}}}
			if distinct == 0 {
				concat.Args, concat.Concat.Distinct = []expr.Expr{s, id}, 0
			}
			p := must(NewHashAggregate(src, []expr.Expr{col(src, "part")}, []string{"part"}, []AggSpec{
				concat, {Func: AggStddevSamp, Args: []expr.Expr{f}}, {Func: AggVarPop, Args: []expr.Expr{f}}, {Func: AggBitAnd, Args: []expr.Expr{u}}, {Func: AggBitXor, Args: []expr.Expr{u}},
				{Func: AggJSONObject, Args: []expr.Expr{key, s}},
			}))(t)
			groups := map[string][]int{}
			for i := range n {
				groups[text(src.batch.Column(1), i)] = append(groups[text(src.batch.Column(1), i)], i)
			}
			got := rowsOf(t, env, p)
			if len(got) != len(groups) {
				t.Fatalf("%d groups, want %d", len(got), len(groups))
			}
			for _, row := range got {
				checkCollected(t, strings.Split(row, "|"), groups, src.batch, desc, distinct > 0)
			}
		})
	})
}

func collectSource(alloc memory.Allocator, r *rand.Rand, n int, part arrow.DataType) *source {
	ids, names := array.NewInt64Builder(alloc), array.NewStringBuilder(alloc)
	defer ids.Release()
	defer names.Release()
	floats := array.NewFloat64Builder(alloc)
	defer floats.Release()
	for _, i := range r.Perm(n) {
		ids.Append(int64(i))
		names.Append(strconv.Quote(fmt.Sprint("k", i)))
		if i%7 == 0 {
			floats.AppendNull()
		} else {
			floats.Append(1e9 + r.Float64())
		}
	}
	cols := []arrow.Array{
		ids.NewArray(), randomArray(r, alloc, part, n, 5), floats.NewArray(), randomArray(r, alloc, arrow.PrimitiveTypes.Uint64, n, 40),
		randomArray(r, alloc, arrow.BinaryTypes.String, n, 9), names.NewArray(),
	}
	return &source{batch: newBatch(fields("id", arrow.PrimitiveTypes.Int64, "part", part, "f", arrow.PrimitiveTypes.Float64, "u", arrow.PrimitiveTypes.Uint64, "s", arrow.BinaryTypes.String,
		"name", arrow.BinaryTypes.String), cols, n)}
}

func checkCollected(t tester, row []string, groups map[string][]int, b arrow.RecordBatch, desc, distinct bool) {
	rows := slices.Clone(groups[row[0]])
	ids, floats, bits, texts := b.Column(0).(*array.Int64), b.Column(2).(*array.Float64), b.Column(3).(*array.Uint64), b.Column(4).(*array.String)
	slices.SortFunc(rows, func(x, y int) int {
		c := cmp.Compare(ids.Value(x), ids.Value(y))
		if desc {
			return -c
		}
		return c
	})
	var parts []string
	and, xor, sum, count, members := uint64(math.MaxUint64), uint64(0), 0.0, 0, []string{}
	for _, i := range rows {
		if texts.IsValid(i) && !(distinct && slices.Contains(parts, texts.Value(i))) {
			parts = append(parts, texts.Value(i))
		}
		if bits.IsValid(i) {
			and, xor = and&bits.Value(i), xor^bits.Value(i)
		}
		if floats.IsValid(i) {
			sum, count = sum+floats.Value(i)-1e9, count+1
		}
		value := "null"
		if texts.IsValid(i) {
			value = texts.Value(i)
		}
		members = append(members, text(b.Column(5), i)+": "+value)
	}
	slices.SortFunc(members, func(x, y string) int {
		x, _, _ = strings.Cut(x, ":")
		y, _, _ = strings.Cut(y, ":")
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	})
	joined := strings.Join(parts, "; ")
	if parts == nil {
		joined = "NULL"
	}
	want := []string{row[0], joined, row[2], row[3], fmt.Sprint(and), fmt.Sprint(xor), "{" + strings.Join(members, ", ") + "}"}
	if !slices.Equal(row, want) {
		t.Fatalf("got  %q\nwant %q", row, want)
	}
	m2 := 0.0
	for _, i := range rows {
		if floats.IsValid(i) {
			m2 += math.Pow(floats.Value(i)-1e9-sum/float64(count), 2)
		}
	}
	near(t, row[2], math.Sqrt(m2/float64(count-1)), count < 2)
	near(t, row[3], m2/float64(count), count < 1)
}

func near(t tester, got string, want float64, null bool) {
	t.Helper()
	v, err := strconv.ParseFloat(got, 64)
	if null != (got == "NULL") || !null && (err != nil || math.Abs(v-want) > 1e-6*(1+want)) {
		t.Fatalf("got %s, want %v", got, want)
	}
}

// Texts are cut at the end of a character, and one warning says so.
func TestLongTextsAreCut(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		src := fromJSON(t, env.Alloc, fields("s", arrow.BinaryTypes.String), `[{"s":"aé"},{"s":"aé"},{"s":"aé"}]`)
		defer src.batch.Release()
		for limit, want := range map[uint64]string{1: "a", 2: "a", 3: "aé", 4: "aé,", 6: "aé,a", 7: "aé,aé", 11: "aé,aé,aé"} {
			warnings := 0
			env.Warn = func(w Warning) {
				if warnings++; w.Code != cutWarning {
					t.Errorf("warning %d", w.Code)
				}
			}
			p := must(NewHashAggregate(src, nil, nil, []AggSpec{{Func: AggConcat, Args: []expr.Expr{col(src, "s")}, Name: "c", Concat: &ConcatSpec{Separator: ",", BytesMax: limit}}}))(t)
			if got := rowsOf(t, env, p); len(got) != 1 || got[0] != want || (warnings == 1) != (limit < 11) {
				t.Errorf("limit %d: %q, %d warnings", limit, got, warnings)
			}
		}
	})
}

// TestRandomRollups: each level is what an aggregation by that many keys gives.
func TestRandomRollups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 2, 3)
		n := rapid.IntRange(0, 150).Draw(t, "n")
		d.check(t, func(env *Env, r *rand.Rand) {
			types := append(slices.Clone(d.types), arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
			src := &source{batch: randomBatch(r, env.Alloc, n, 4, types...)}
			defer src.batch.Release()
			v, s := col(src, fmt.Sprint("c", len(d.types))), col(src, fmt.Sprint("c", len(d.types)+1))
			aggs := []AggSpec{
				agg(AggCountStar), agg(AggSum, v), distinctAgg(AggCount, v), distinctAgg(AggSum, v), distinctAgg(AggCount, v, s), agg(AggMin, s),
				{Func: AggConcat, Args: []expr.Expr{s, s, s}, Name: "c", Concat: &ConcatSpec{Separator: ",", Distinct: 1, Desc: []bool{false}}},
			}
			var keys []expr.Expr
			var names []string
			for i := range d.types {
				keys, names = append(keys, col(src, fmt.Sprint("c", i))), append(names, fmt.Sprint("c", i))
			}
			var want []string
			for level := range len(keys) + 1 {
				p := must(NewHashAggregate(src, keys[:level], names[:level], aggs))(t)
				for _, row := range rowsOf(t, env, p) {
					parts := strings.Split(row, "|")
					parts = slices.Insert(parts, level, slices.Repeat([]string{"NULL"}, len(keys)-level)...)
					want = append(want, strings.Join(append(parts, fmt.Sprint(level)), "|"))
				}
			}
			rollup := must(must(NewHashAggregate(src, keys, names, aggs))(t).WithRollup("level"))(t)
			sameRows(t, rowsOf(t, env, rollup), want, false)
		})
	})
}
