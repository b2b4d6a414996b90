package exec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

func col0Scalar(v int64) scalar.Scalar { return scalar.NewInt64Scalar(v) }

// naiveCompare orders two values of one column as MySQL does, NULLs first.
func naiveCompare(a arrow.Array, i, j int) int {
	if a.IsNull(i) || a.IsNull(j) {
		return cmp.Compare(btoi(!a.IsNull(i)), btoi(!a.IsNull(j)))
	}
	switch a := a.(type) {
	case *array.Boolean:
		return cmp.Compare(btoi(a.Value(i)), btoi(a.Value(j)))
	case *array.Int8:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Int32:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Int64:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Uint16:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Uint64:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Float32:
		return compareFloats(a.Value(i), a.Value(j))
	case *array.Float64:
		return compareFloats(a.Value(i), a.Value(j))
	case *array.Date32:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Timestamp:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Decimal128:
		return a.Value(i).Cmp(a.Value(j))
	case *array.Decimal256:
		return a.Value(i).Cmp(a.Value(j))
	case *array.String:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.LargeString:
		return cmp.Compare(a.Value(i), a.Value(j))
	case *array.Binary:
		return bytes.Compare(a.Value(i), a.Value(j))
	case *array.FixedSizeBinary:
		return bytes.Compare(a.Value(i), a.Value(j))
	case *array.Dictionary:
		return cmp.Compare(a.ValueStr(i), a.ValueStr(j))
	}
	panic(a.DataType().String())
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func naiveOrder(b arrow.RecordBatch, keys []SortKey) []string {
	idx := make([]int, b.NumRows())
	for i := range idx {
		idx[i] = i
	}
	slices.SortStableFunc(idx, func(i, j int) int {
		for _, k := range keys {
			a := b.Column(k.Expr.(*expr.Column).ID)
			c := naiveCompare(a, i, j)
			if k.Desc {
				c = -c
			} else if k.NullsLast && a.IsNull(i) != a.IsNull(j) {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	rows := batchRows(b)
	out := make([]string, len(idx))
	for i, r := range idx {
		out[i] = rows[r]
	}
	return out
}

// sequence is an array 0, 1, 2, ...: a row address that makes every order total.
func sequence(alloc memory.Allocator, n int) arrow.Array {
	b := array.NewUint64Builder(alloc)
	defer b.Release()
	for i := range n {
		b.Append(uint64(i))
	}
	return b.NewArray()
}

func TestSortAndTopNEqualNaiveForEveryKeyType(t *testing.T) {
	for i, kt := range keyTypes {
		t.Run(kt.String(), func(t *testing.T) {
			for seed := range uint64(4) {
				for _, c := range configs {
					alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
					checkSort(t, c.env(alloc), rand.New(rand.NewPCG(seed, uint64(i))), kt)
					alloc.AssertSize(t, 0)
				}
			}
		})
	}
}

func checkSort(t tester, env *Env, r *rand.Rand, kt arrow.DataType) {
	t.Helper()
	types := []arrow.DataType{kt, keyTypes[r.IntN(len(keyTypes))]}
	n := r.IntN(300)
	plain := randomBatch(r, env.Alloc, n, 1+r.IntN(80), types...)
	defer plain.Release()
	cols := []arrow.Array{plain.Column(0), plain.Column(1), sequence(env.Alloc, n)}
	cols[0].Retain()
	cols[1].Retain()
	b := newBatch(arrow.NewSchema(append(plain.Schema().Fields(), arrow.Field{Name: RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64}), nil), cols, n)
	defer b.Release()
	src := &source{batch: b}
	keys := []SortKey{{Expr: col(src, "c0"), Desc: r.IntN(2) == 0, NullsLast: r.IntN(2) == 0}}
	if r.IntN(2) == 0 {
		keys = append(keys, SortKey{Expr: col(src, "c1"), Desc: r.IntN(2) == 0})
	}
	want := naiveOrder(b, keys)
	sameRows(t, rowsOf(t, env, must(NewSort(src, keys))(t)), want, true)
	for range 3 {
		count, offset := uint64(r.IntN(n+20)), uint64(r.IntN(20))
		if r.IntN(4) == 0 {
			count = NoLimit
		}
		got := rowsOf(t, env, must(NewTopN(src, keys, count, offset))(t))
		from := min(int(offset), len(want))
		to := from + int(min(count, uint64(len(want)-from)))
		sameRows(t, got, want[from:to], true)
	}
}

func TestTopNKeepsFewRows(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(5, 5))
	b := randomBatch(r, alloc, 200_000, 1_000_000, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	defer b.Release()
	src := &source{batch: b}
	keys := []SortKey{{Expr: col(src, "c0"), Desc: true}, {Expr: col(src, "c1")}}
	want := naiveOrder(b, keys)
	for _, workers := range []int{1, 3} {
		budget := mem.NewBudget("query", 6<<20, nil)
		env := Env{Alloc: mem.NewAllocator(alloc, budget), Budget: budget, Workers: workers, BatchRows: 1000}.WithDefaults()
		sameRows(t, rowsOf(t, env, must(NewTopN(src, keys, 10, 100))(t)), want[100:110], true)
		if budget.Used() != 0 {
			t.Fatalf("%d bytes still reserved", budget.Used())
		}
	}
}

func TestSortWithinItsMemory(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(5, 5))
	b := randomBatch(r, alloc, 50_000, 100_000, arrow.BinaryTypes.String)
	defer b.Release()
	src := &source{batch: b}
	budget := mem.NewBudget("query", 500_000, nil)
	env := Env{Alloc: mem.NewAllocator(alloc, budget), Budget: budget, Workers: 2, BatchRows: 1000}.WithDefaults()
	_, err := Collect(context.Background(), env, must(NewSort(src, []SortKey{{Expr: col(src, "c0")}}))(t))
	if !errors.Is(err, errs.ErrMemoryLimit) || !strings.Contains(err.Error(), "sort") {
		t.Fatalf("got %v", err)
	}
	if budget.Used() != 0 {
		t.Fatalf("%d bytes still reserved", budget.Used())
	}
}

func TestSortRefusesTypesWithoutOrder(t *testing.T) {
	b := newBatch(fields("l", arrow.ListOf(arrow.PrimitiveTypes.Int8)), []arrow.Array{array.MakeArrayOfNull(memory.DefaultAllocator, arrow.ListOf(arrow.PrimitiveTypes.Int8), 1)}, 1)
	src := &source{batch: b}
	if _, err := NewSort(src, []SortKey{{Expr: col(src, "l")}}); !errors.Is(err, errs.ErrUnsupported) {
		t.Fatalf("got %v", err)
	}
}

func ExampleSortKey() {
	fmt.Println(sortKeysText([]SortKey{{Expr: &expr.Column{Name: "ts"}, Desc: true}, {Expr: &expr.Column{Name: "d"}, NullsLast: true}}))
	// Output: [ts DESC, d NULLS LAST]
}
