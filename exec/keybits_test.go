package exec

import (
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/internal/mem"
)

func TestKeyBitsHoldTheKeysAndNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		center := rapid.SampledFrom([]int64{0, math.MinInt64 + 2000, math.MaxInt64 - 2000, 1 << 40}).Draw(rt, "center")
		near := rapid.Int64Range(center-1000, center+1000)
		keys := rapid.SliceOfN(near, 1, 50).Draw(rt, "keys")
		rows := rapid.SliceOf(rapid.OneOf(near, rapid.Int64(), rapid.SampledFrom(keys))).Draw(rt, "rows")
		isNull := make([]bool, len(rows))
		b, r := array.NewInt64Builder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(keys, nil)
		for i, v := range rows {
			if isNull[i] = rapid.IntRange(0, 5).Draw(rt, "null") == 0; isNull[i] {
				r.AppendNull()
			} else {
				r.Append(v)
			}
		}
		res := mem.NewBudget("keys", 0, nil).Reserve()
		defer res.Free()
		k, err := newKeyBits(res, b.NewInt64Array())
		if err != nil || k == nil {
			rt.Fatalf("no bits for %v: %v", keys, err)
		}
		var want []int32
		for i, v := range rows {
			if !isNull[i] && slices.Contains(keys, v) {
				want = append(want, int32(i))
			}
		}
		column := r.NewInt64Array()
		valid, offset := validity(column)
		var scratch []uint64
		if got := k.rows(wordsOf(column, len(rows), &scratch), valid, offset, nil); !slices.Equal(got, want) {
			rt.Fatalf("rows %v of %v have keys %v, not %v", got, rows, keys, want)
		}
	})
	far := array.NewInt64Builder(memory.DefaultAllocator)
	far.AppendValues([]int64{math.MinInt64, math.MaxInt64}, nil)
	for _, a := range []arrow.Array{far.NewInt64Array(), array.NewFloat64Builder(memory.DefaultAllocator).NewArray()} {
		if k, err := newKeyBits(nil, a); k != nil || err != nil {
			t.Fatalf("bits for %v: %v", a, err)
		}
	}
}
