package exec

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

func agg(f AggFunc, args ...expr.Expr) AggSpec { return AggSpec{Func: f, Args: args, Name: string(f)} }

func distinctAgg(f AggFunc, args ...expr.Expr) AggSpec {
	return AggSpec{Func: f, Args: args, Name: string(f), Distinct: true}
}

func TestAggregateAnswers(t *testing.T) {
	schema := fields("k", arrow.BinaryTypes.String, "i", arrow.PrimitiveTypes.Int32, "d", &arrow.Decimal128Type{Precision: 10, Scale: 2},
		"f", arrow.PrimitiveTypes.Float64, "s", arrow.BinaryTypes.String, "b", arrow.FixedWidthTypes.Boolean)
	const rows = `[
		{"k":"a","i":1,"d":"1.25","f":0.5,"s":"x","b":true},
		{"k":"a","i":2,"d":"2.25","f":1.5,"s":"y","b":false},
		{"k":"a","i":2,"d":null,"f":null,"s":null,"b":null},
		{"k":null,"i":null,"d":null,"f":null,"s":null,"b":null},
		{"k":"b","i":-7,"d":"-0.01","f":4,"s":"","b":true},
		{"k":null,"i":4,"d":"9.99","f":4,"s":"long enough to leave the slot","b":false}]`
	cases := []struct {
		name string
		keys []string
		aggs func(p Plan) []AggSpec
		want []string
	}{
		{"counts skip NULL arguments", []string{"k"}, func(p Plan) []AggSpec {
			return []AggSpec{agg(AggCountStar), agg(AggCount, col(p, "d")), agg(AggCount, col(p, "d"), col(p, "i"))}
		}, []string{"a|3|2|2", "NULL|2|1|1", "b|1|1|1"}},
		{"integer sums and averages are exact decimals, NULL for no value", []string{"k"}, func(p Plan) []AggSpec {
			return []AggSpec{agg(AggSum, col(p, "i")), agg(AggAvg, col(p, "i"))}
		}, []string{"a|5|1.6667", "NULL|4|4.0000", "b|-7|-7.0000"}},
		{"decimal averages have four digits more", nil, func(p Plan) []AggSpec {
			return []AggSpec{agg(AggSum, col(p, "d")), agg(AggAvg, col(p, "d"))}
		}, []string{"13.48|3.370000"}},
		{"float sums", []string{"k"}, func(p Plan) []AggSpec { return []AggSpec{agg(AggSum, col(p, "f")), agg(AggAvg, col(p, "f"))} },
			[]string{"a|2|1", "NULL|4|4", "b|4|4"}},
		{"minimum and maximum of any type", []string{"k"}, func(p Plan) []AggSpec {
			return []AggSpec{agg(AggMin, col(p, "s")), agg(AggMax, col(p, "s")), agg(AggMin, col(p, "d")), agg(AggMax, col(p, "i")), agg(AggMax, col(p, "b"))}
		}, []string{"a|x|y|1.25|2|true", "NULL|long enough to leave the slot|long enough to leave the slot|9.99|4|false", "b|||-0.01|-7|true"}},
		{"a sum of booleans counts the true ones", nil, func(p Plan) []AggSpec { return []AggSpec{agg(AggSum, col(p, "b"))} }, []string{"2"}},
		{"distinct counts and sums", nil, func(p Plan) []AggSpec {
			return []AggSpec{distinctAgg(AggCount, col(p, "i")), distinctAgg(AggSum, col(p, "i")), distinctAgg(AggCount, col(p, "i"), col(p, "f")), distinctAgg(AggAvg, col(p, "f"))}
		}, []string{"4|0|4|2"}},
		{"distinct counts by group", []string{"k"}, func(p Plan) []AggSpec {
			return []AggSpec{distinctAgg(AggCount, col(p, "i")), distinctAgg(AggMax, col(p, "i"))}
		},
			[]string{"a|2|2", "NULL|1|4", "b|1|-7"}},
		{"keys alone are the distinct rows", []string{"k", "b"}, func(Plan) []AggSpec { return nil },
			[]string{"a|true", "a|false", "a|NULL", "NULL|NULL", "b|true", "NULL|false"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			everyConfig(t, func(t *testing.T, env *Env) {
				src := fromJSON(t, env.Alloc, schema, rows)
				defer src.batch.Release()
				var keys []expr.Expr
				for _, k := range c.keys {
					keys = append(keys, col(src, k))
				}
				p := must(NewHashAggregate(src, keys, c.keys, c.aggs(src)))(t)
				sameRows(t, rowsOf(t, env, p), c.want, false)
			})
		})
	}
}

func TestAggregateOfNothing(t *testing.T) {
	everyConfig(t, func(t *testing.T, env *Env) {
		src := fromJSON(t, env.Alloc, fields("k", arrow.BinaryTypes.String, "i", arrow.PrimitiveTypes.Int64), `[]`)
		defer src.batch.Release()
		i := col(src, "i")
		aggs := []AggSpec{agg(AggCountStar), agg(AggSum, i), agg(AggAvg, i), agg(AggMin, i), agg(AggAny, i), distinctAgg(AggCount, i)}
		one := must(NewHashAggregate(src, nil, nil, aggs))(t)
		sameRows(t, rowsOf(t, env, one), []string{"0|NULL|NULL|NULL|NULL|0"}, true)
		none := must(NewHashAggregate(src, []expr.Expr{col(src, "k")}, []string{"k"}, aggs))(t)
		sameRows(t, rowsOf(t, env, none), nil, true)
	})
}

func TestAggregateTypesFollowMySQL(t *testing.T) {
	cases := []struct {
		f    AggFunc
		arg  arrow.DataType
		want string
	}{
		{AggSum, arrow.PrimitiveTypes.Int64, "decimal256(41, 0)"},
		{AggSum, arrow.PrimitiveTypes.Int32, "decimal(32, 0)"},
		{AggSum, arrow.PrimitiveTypes.Uint64, "decimal256(42, 0)"},
		{AggAvg, arrow.PrimitiveTypes.Int32, "decimal(14, 4)"},
		{AggAvg, arrow.PrimitiveTypes.Int64, "decimal(23, 4)"},
		{AggSum, &arrow.Decimal128Type{Precision: 12, Scale: 2}, "decimal(34, 2)"},
		{AggAvg, &arrow.Decimal128Type{Precision: 12, Scale: 2}, "decimal(16, 6)"},
		{AggSum, &arrow.Decimal128Type{Precision: 38, Scale: 0}, "decimal256(60, 0)"},
		{AggSum, arrow.PrimitiveTypes.Float32, "float64"},
		{AggMin, arrow.FixedWidthTypes.Date32, "date32"},
		{AggCount, arrow.BinaryTypes.String, "int64"},
	}
	for _, c := range cases {
		got, err := AggType(c.f, []arrow.DataType{c.arg})
		if err != nil {
			t.Fatal(err)
		}
		if s := got.String(); s != c.want {
			t.Errorf("%s(%s) is %s, want %s", c.f, c.arg, s, c.want)
		}
	}
	for _, bad := range []arrow.DataType{arrow.BinaryTypes.String, arrow.FixedWidthTypes.Date32, arrow.ListOf(arrow.PrimitiveTypes.Int8)} {
		if _, err := AggType(AggSum, []arrow.DataType{bad}); !errors.Is(err, errs.ErrUnsupported) {
			t.Errorf("sum of %s: %v", bad, err)
		}
	}
}

func TestSumsNeverWrap(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	src := fromJSON(t, alloc, fields("d", &arrow.Decimal128Type{Precision: 38}, "u", arrow.PrimitiveTypes.Uint64, "i", arrow.PrimitiveTypes.Int64),
		`[{"d":"99999999999999999999999999999999999999","u":18446744073709551615,"i":-9223372036854775808},
		  {"d":"99999999999999999999999999999999999999","u":18446744073709551615,"i":-9223372036854775808}]`)
	defer src.batch.Release()
	aggs := []AggSpec{agg(AggSum, col(src, "d")), agg(AggSum, col(src, "u")), agg(AggSum, col(src, "i")), agg(AggAvg, col(src, "u"))}
	p := must(NewHashAggregate(src, nil, nil, aggs))(t)
	for _, c := range configs {
		sameRows(t, rowsOf(t, c.env(alloc), p), []string{"199999999999999999999999999999999999998|36893488147419103230|-18446744073709551616|18446744073709551615.0000"}, true)
	}
	aggs[0].Type = &arrow.Decimal128Type{Precision: 38}
	narrow := must(NewHashAggregate(src, nil, nil, aggs[:1]))(t)
	if _, err := Collect(context.Background(), configs[0].env(alloc), narrow); !errors.Is(err, errs.ErrOverflow) {
		t.Fatalf("a sum of 39 digits in a type of 38 gave %v", err)
	}
	aggs[2].Type = arrow.PrimitiveTypes.Int64
	narrow = must(NewHashAggregate(src, nil, nil, aggs[2:3]))(t)
	if _, err := Collect(context.Background(), configs[0].env(alloc), narrow); !errors.Is(err, errs.ErrOverflow) {
		t.Fatalf("a sum of 65 bits in a type of 64 gave %v", err)
	}
}

// naiveGroups groups rows by the text of their keys.
func naiveGroups(b arrow.RecordBatch, keys int) map[string][]int {
	out := make(map[string][]int)
	for r := range int(b.NumRows()) {
		parts := make([]string, keys)
		for k := range keys {
			parts[k] = text(b.Column(k), r)
		}
		key := strings.Join(parts, "|")
		out[key] = append(out[key], r)
	}
	return out
}

func TestAggregateEqualsNaiveForEveryKeyType(t *testing.T) {
	for i, kt := range keyTypes {
		t.Run(kt.String(), func(t *testing.T) {
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				types := []arrow.DataType{kt}
				for range r.IntN(3) {
					types = append(types, keyTypes[r.IntN(len(keyTypes))])
				}
				everyConfig(t, func(t *testing.T, env *Env) {
					r := rand.New(rand.NewPCG(seed, uint64(i)+100))
					checkAggregate(t, env, r, types)
				})
			}
		})
	}
}

func checkAggregate(t tester, env *Env, r *rand.Rand, types []arrow.DataType) {
	keys := len(types)
	all := append(append([]arrow.DataType(nil), types...), arrow.PrimitiveTypes.Int64, types[0])
	b := randomBatch(r, env.Alloc, r.IntN(400), 1+r.IntN(60), all...)
	defer b.Release()
	src := &source{batch: b}
	exprs, names := make([]expr.Expr, keys), make([]string, keys)
	for k := range keys {
		names[k] = fmt.Sprintf("c%d", k)
		exprs[k] = col(src, names[k])
	}
	v, w := col(src, fmt.Sprintf("c%d", keys)), col(src, fmt.Sprintf("c%d", keys+1))
	p := must(NewHashAggregate(src, exprs, names, []AggSpec{agg(AggCountStar), agg(AggSum, v), distinctAgg(AggCount, w), distinctAgg(AggSum, v)}))(t)
	var want []string
	for key, rows := range naiveGroups(b, keys) {
		sum, n := new(big.Int), 0
		distinct, values := map[string]bool{}, map[int64]bool{}
		dsum := new(big.Int)
		for _, row := range rows {
			if a := b.Column(keys).(*array.Int64); a.IsValid(row) {
				sum.Add(sum, big.NewInt(a.Value(row)))
				n++
				if !values[a.Value(row)] {
					values[a.Value(row)] = true
					dsum.Add(dsum, big.NewInt(a.Value(row)))
				}
			}
			if a := b.Column(keys + 1); a.IsValid(row) {
				distinct[text(a, row)] = true
			}
		}
		line := fmt.Sprintf("%s|%d|%s|%d|%s", key, len(rows), sum, len(distinct), dsum)
		if n == 0 {
			line = fmt.Sprintf("%s|%d|NULL|%d|NULL", key, len(rows), len(distinct))
		}
		want = append(want, line)
	}
	sameRows(t, rowsOf(t, env, p), want, false)
}

func TestManyGroupsMergeInParts(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	const rows, groups = 150_000, 40_000
	kb, sb := array.NewInt64Builder(alloc), array.NewStringBuilder(alloc)
	for i := range rows {
		kb.Append(int64(i*7919%groups) * 1_000_003)
		sb.Append(fmt.Sprintf("value %d of a group", i%groups))
	}
	b := newBatch(fields("k", arrow.PrimitiveTypes.Int64, "s", arrow.BinaryTypes.String), []arrow.Array{kb.NewArray(), sb.NewArray()}, rows)
	kb.Release()
	sb.Release()
	defer b.Release()
	src := &source{batch: b}
	for _, key := range []string{"k", "s"} {
		p := must(NewHashAggregate(src, []expr.Expr{col(src, key)}, []string{key}, []AggSpec{
			agg(AggCountStar), distinctAgg(AggCount, col(src, "k")), agg(AggAny, col(src, "s")), agg(AggMin, col(src, "s")), agg(AggSum, col(src, "k"))}))(t)
		one := rowsOf(t, config{8192, 1}.env(alloc), p)
		four := rowsOf(t, config{1000, 4}.env(alloc), p)
		if len(one) != groups {
			t.Fatalf("%d groups, want %d", len(one), groups)
		}
		// any_value may differ only between rows of a group, which here hold one value each.
		if key == "s" {
			sameRows(t, four, one, false)
		}
		if len(four) != groups {
			t.Fatalf("%d groups with four workers, want %d", len(four), groups)
		}
	}
}

func TestAggregateWithinItsMemory(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(1, 2))
	b := randomBatch(r, alloc, 20_000, 20_000, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	defer b.Release()
	src := &source{batch: b}
	p := must(NewHashAggregate(src, []expr.Expr{col(src, "c0"), col(src, "c1")}, []string{"a", "b"}, []AggSpec{agg(AggCountStar)}))(t)
	for _, workers := range []int{1, 4} {
		budget := mem.NewBudget("query", 200_000, nil)
		env := Env{Alloc: mem.NewAllocator(alloc, budget), Budget: budget, Workers: workers}.WithDefaults()
		_, err := Collect(context.Background(), env, p)
		if !errors.Is(err, errs.ErrMemoryLimit) || !strings.Contains(err.Error(), "aggregate") {
			t.Fatalf("%d workers: got %v", workers, err)
		}
		if budget.Used() != 0 {
			t.Fatalf("%d bytes still reserved", budget.Used())
		}
	}
}
