package expr

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const benchRows = 8192

// benchBatch has a million rows' worth of variety in one batch: f double, k int, i32, s text, d decimal(15,2), ts, l labels, v vector of 128.
func benchBatch(b *testing.B) (arrow.RecordBatch, map[string]Expr) {
	b.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	alloc := memory.DefaultAllocator
	f, k, i32 := array.NewFloat64Builder(alloc), array.NewInt64Builder(alloc), array.NewInt32Builder(alloc)
	s, dict := array.NewStringBuilder(alloc), array.NewDictionaryBuilder(alloc, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String})
	d := array.NewDecimal128Builder(alloc, &arrow.Decimal128Type{Precision: 15, Scale: 2})
	ts := array.NewTimestampBuilder(alloc, &arrow.TimestampType{Unit: arrow.Microsecond})
	l := array.NewListBuilder(alloc, arrow.BinaryTypes.String)
	v := array.NewFixedSizeListBuilder(alloc, 128, arrow.PrimitiveTypes.Float32)
	for range benchRows {
		f.Append(rnd.Float64())
		k.Append(rnd.Int64N(1000))
		i32.Append(int32(rnd.IntN(1000)))
		word := fmt.Sprintf("carrier-%d of the note number %d", rnd.IntN(100), rnd.IntN(100000))
		s.Append(word)
		if err := dict.AppendValueFromString(word[:10]); err != nil {
			b.Fatal(err)
		}
		d.Append(decimal128.FromI64(rnd.Int64N(1e9)))
		ts.Append(arrow.Timestamp(rnd.Int64N(1e15)))
		l.Append(true)
		for range 4 {
			l.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprintf("label%d", rnd.IntN(50)))
		}
		v.Append(true)
		for range 128 {
			v.ValueBuilder().(*array.Float32Builder).Append(rnd.Float32())
		}
	}
	return batchOf(b, map[string]arrow.Array{"f": f.NewArray(), "k": k.NewArray(), "i32": i32.NewArray(), "s": s.NewArray(), "dict": dict.NewArray(), "d": d.NewArray(),
		"ts": ts.NewArray(), "l": l.NewArray(), "v": v.NewArray()}, "f", "k", "i32", "s", "dict", "d", "ts", "l", "v")
}

func BenchmarkSelect(b *testing.B) {
	batch, c := benchBatch(b)
	hundred := make([]any, 0, 101)
	hundred = append(hundred, c["k"])
	for i := range 100 {
		hundred = append(hundred, i*10)
	}
	query := make([]float32, 128)
	for name, e := range map[string]Expr{
		"f<5e-1":           fn(b, "<", c["f"], 0.5),
		"f<0.5":            fn(b, "<", c["f"], dec("0.5")),
		"i32<500":          fn(b, "<", c["i32"], 500),
		"k_in_100":         fn(b, "in", hundred...),
		"like_contains":    fn(b, "like", c["s"], "%number 77%"),
		"like_prefix":      fn(b, "like", c["s"], "carrier-7%"),
		"s=const":          fn(b, "=", c["s"], "carrier-7 of the note number 5"),
		"dict=const":       fn(b, "=", c["dict"], "carrier-7 "),
		"d<500":            fn(b, "<", c["d"], 5000000),
		"array_has":        fn(b, "array_has", c["l"], "label7"),
		"array_has_any5":   fn(b, "array_has_any", c["l"], fn(b, "make_array", "label1", "label2", "label3", "label4", "label5")),
		"array_has_all3":   fn(b, "array_has_all", c["l"], fn(b, "make_array", "label1", "label2", "label3")),
		"between_and_like": fn(b, "and", fn(b, "between", c["k"], 10, 20), fn(b, "like", c["s"], "%number 77%")),
		"ts>=text":         fn(b, ">=", c["ts"], "1990-01-01"),
		"year=1990":        fn(b, "=", fn(b, "year", c["ts"]), 1990),
		"l2<1":             fn(b, "<", fn(b, "l2sq_distance", c["v"], query), 1.0),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := Compile(e, batch.Schema())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := p.EvalSelect(nil, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func BenchmarkEval(b *testing.B) {
	batch, c := benchBatch(b)
	one := dec("1.00")
	charge := fn(b, "*", fn(b, "*", c["d"], fn(b, "-", one, c["d"])), fn(b, "+", one, c["d"]))
	for name, e := range map[string]Expr{
		"k+1":       fn(b, "+", c["k"], 1),
		"k*k":       fn(b, "*", c["k"], c["k"]),
		"f*f":       fn(b, "*", c["f"], c["f"]),
		"d+d":       fn(b, "+", c["d"], c["d"]),
		"d*(1-d)":   fn(b, "*", c["d"], fn(b, "-", one, c["d"])),
		"q1_charge": charge,
		"d/k":       fn(b, "/", c["d"], c["k"]),
		"upper":     fn(b, "upper", c["s"]),
		"concat":    fn(b, "concat", c["s"], "-", c["k"]),
		"case":      fn(b, "case", fn(b, "<", c["k"], 100), "low", fn(b, "<", c["k"], 500), "mid", "high"),
		"text_of_d": fn(b, "concat", c["d"]),
		"date_add":  fn(b, "date_add", c["ts"], 1, "month"),
		"format":    fn(b, "date_format", c["ts"], "%Y-%m-%d"),
		"vec_json":  fn(b, "to_json", c["v"]),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := Compile(e, batch.Schema())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				out, err := p.Eval(nil, batch)
				if err != nil {
					b.Fatal(err)
				}
				out.Release()
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func BenchmarkTake(b *testing.B) {
	batch, _ := benchBatch(b)
	rnd := rand.New(rand.NewPCG(1, 2))
	idx := make([]int32, benchRows)
	for i := range idx {
		idx[i] = int32(rnd.IntN(benchRows))
	}
	for i, f := range batch.Schema().Fields() {
		b.Run(f.Name, func(b *testing.B) {
			for b.Loop() {
				out, err := TakeArray(memory.DefaultAllocator, batch.Column(i), idx)
				if err != nil {
					b.Fatal(err)
				}
				out.Release()
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
