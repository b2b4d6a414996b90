package exec

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/lakesql/lakesql/storage/rowset"
)

// passes is what a join mask of kind says of a row by comparing it with one row of keys after the other.
func passes(kind JoinKind, row []int64, keys [][]int64) bool {
	equal, unknown := false, false
	for _, k := range keys {
		same, null := true, false
		for i, v := range row {
			null = null || v == noValue || k[i] == noValue
			same = same && (v == noValue || k[i] == noValue || v == k[i])
		}
		equal = equal || (same && !null)
		unknown = unknown || (same && null)
	}
	switch kind {
	case JoinSemi:
		return equal
	case JoinAnti:
		return !equal
	}
	return !equal && !unknown
}

func TestRandomJoinMasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawIndexedTable(t)
		columns := rapid.SliceOfN(rapid.SampledFrom(numberColumns), 1, 3).Draw(t, "columns")
		kind := rapid.SampledFrom([]JoinKind{JoinSemi, JoinAnti, JoinNullAwareAnti}).Draw(t, "kind")
		width := len(columns)
		keys := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(noValue, 2), width, width), 0, 4).Draw(t, "keys")
		cols := make([]arrow.Array, width)
		fs := make([]arrow.Field, width)
		for i := range columns {
			b := array.NewInt64Builder(memory.DefaultAllocator)
			for _, k := range keys {
				if k[i] == noValue {
					b.AppendNull()
				} else {
					b.Append(k[i])
				}
			}
			cols[i], fs[i] = b.NewArray(), arrow.Field{Name: string(rune('k' + i)), Type: arrow.PrimitiveTypes.Int64, Nullable: true}
		}
		mask := &JoinMask{Table: x.Ref(), Columns: columns, Kind: kind, Keys: &source{batch: newBatch(arrow.NewSchema(fs, nil), cols, len(keys))}}
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
		got := must(EvalCandidates(context.Background(), env, mask, among))(t)
		for i := range x.distance {
			row := make([]int64, width)
			for k, c := range columns {
				row[k] = x.values[c][i]
			}
			a := uint64(x.addr(i))
			if want := (among == nil || among.Contains(a)) && passes(kind, row, keys); got.True.Contains(a) != want {
				t.Fatalf("%s of %v in %v: row %v is %v, want %v", kind, columns, keys, row, got.True.Contains(a), want)
			}
		}
		if !got.Null.IsEmpty() || alloc.CurrentAlloc() != 0 {
			t.Fatalf("%d NULLs, %d bytes not given back", got.Null.Count(), alloc.CurrentAlloc())
		}
	})
}
