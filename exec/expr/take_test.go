package expr

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// everyType has five rows of every kind of column, NULLs among them.
func everyType(t testing.TB) map[string]arrow.Array {
	t.Helper()
	m := make(map[string]arrow.Array)
	for _, typ := range []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Float16,
	} {
		m[typ.Name()] = fromJSON(t, typ, `[1, 2, null, 4, 5]`)
	}
	m["bool"] = fromJSON(t, arrow.FixedWidthTypes.Boolean, `[true, false, null, true, false]`)
	m["decimal128"] = fromJSON(t, &arrow.Decimal128Type{Precision: 10, Scale: 2}, `["1.00", "2.00", null, "-4.25", "5.00"]`)
	m["decimal256"] = fromJSON(t, &arrow.Decimal256Type{Precision: 50, Scale: 2}, `["1.00", "2.00", null, "-4.25", "5.00"]`)
	m["date"] = fromJSON(t, arrow.FixedWidthTypes.Date32, `["2026-01-01", "2026-01-02", null, "2026-01-04", "2026-01-05"]`)
	m["timestamp"] = fromJSON(t, typeDatetime(), `["2026-01-01 00:00:00", "2026-01-02 00:00:00", null, "2026-01-04 00:00:00", "2026-01-05 00:00:00"]`)
	for _, typ := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView} {
		m[typ.Name()] = fromJSON(t, typ, `["a", "", null, "a longer text than twelve", "e"]`)
	}
	m["binary"] = fromJSON(t, arrow.BinaryTypes.Binary, `["YQ==", "", null, "YWJj", "ZQ=="]`)
	m["fixed binary"] = fromJSON(t, &arrow.FixedSizeBinaryType{ByteWidth: 3}, `["YWJj", "ZGVm", null, "YWJj", "ZGVm"]`)
	for _, typ := range []arrow.DataType{arrow.ListOf(arrow.BinaryTypes.String), arrow.LargeListOf(arrow.BinaryTypes.String)} {
		m[typ.Name()] = fromJSON(t, typ, `[["a", null], [], null, ["b"], ["c", "d", "e"]]`)
	}
	m["vector"] = fromJSON(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), `[[1, 2], [3, 4], null, [5, 6], [7, 8]]`)
	m["vector with nulls"] = fromJSON(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), `[[1, null], [3, 4], null, [5, 6], [7, 8]]`)
	m["vector of text"] = fromJSON(t, arrow.FixedSizeListOf(2, arrow.BinaryTypes.String), `[["a", "b"], ["c", null], null, ["d", "e"], ["f", "g"]]`)
	m["struct"] = fromJSON(t, arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}), `[{"a": 1, "b": ["x"]}, {"a": null, "b": null}, null, {"a": 4, "b": []}, {"a": 5, "b": ["y", "z"]}]`)
	m["map"] = fromJSON(t, arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[[{"key": "a", "value": 1}], [], null, [{"key": "b", "value": null}], [{"key": "c", "value": 3}, {"key": "d", "value": 4}]]`)
	m["null"] = array.NewNull(5)
	b := array.NewDictionaryBuilder(memory.DefaultAllocator, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String})
	for _, s := range []string{"x", "y", "", "x", "z"} {
		if s == "" {
			b.AppendNull()
		} else if err := b.AppendValueFromString(s); err != nil {
			t.Fatal(err)
		}
	}
	m["dictionary"] = b.NewArray()
	return m
}

func jsonRows(arr arrow.Array) []string {
	rows := make([]string, arr.Len())
	for i := range rows {
		rows[i] = string(AppendJSON(nil, arr, i, nil))
	}
	return rows
}

func TestTakeGathersEveryType(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for name, whole := range everyType(t) {
		t.Run(name, func(t *testing.T) {
			for _, arr := range []arrow.Array{whole, array.NewSlice(whole, 1, 5), array.NewSlice(whole, 3, 3)} {
				rows := jsonRows(arr)
				for range 20 {
					idx := make([]int32, rnd.IntN(12))
					want := make([]string, len(idx))
					for i := range idx {
						idx[i] = int32(rnd.IntN(len(rows)+1)) - 1
						want[i] = "null"
						if idx[i] >= 0 {
							want[i] = rows[idx[i]]
						}
					}
					checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
					out, err := TakeArray(checked, arr, idx)
					if err != nil {
						t.Fatal(err)
					}
					if got := jsonRows(out); !equalStrings(got, want) || !arrow.TypeEqual(out.DataType(), arr.DataType()) {
						t.Fatalf("take %v of %v = %v (%s)", idx, rows, got, out.DataType())
					}
					out.Release()
					checked.AssertSize(t, 0)
				}
			}
			for _, bad := range []int32{-2, 5} {
				if _, err := TakeArray(nil, whole, []int32{bad}); !errors.Is(err, errs.ErrInternal) {
					t.Errorf("position %d: %v", bad, err)
				}
			}
		})
	}
}

func equalStrings(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestFilterBatchKeepsTheSelectedRows(t *testing.T) {
	cols := everyType(t)
	names := make([]string, 0, len(cols))
	for n := range cols {
		names = append(names, n)
	}
	batch, _ := batchOf(t, cols, names...)
	checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer checked.AssertSize(t, 0)
	out, err := FilterBatch(&Env{Alloc: checked}, batch, []int32{1, 4})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	for i, n := range names {
		rows := jsonRows(cols[n])
		if got := jsonRows(out.Column(i)); !equalStrings(got, []string{rows[1], rows[4]}) {
			t.Errorf("%s: %v", n, got)
		}
	}
}

func TestColumnsOfEveryTypeEncodeAndCompare(t *testing.T) {
	for name, arr := range everyType(t) {
		if name == "string_view" || name == "utf8_view" {
			continue // no literal has this type
		}
		for i := range arr.Len() {
			if name == "map" {
				break // scalars of maps do not come back from arrays as they went in
			}
			l, err := arrayLiteral(arr, i)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			e := &Call{Func: "is_null", Args: []Expr{l}, T: typeBool()}
			b, err := Encode(e)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			back, err := Decode(b)
			if err != nil || !Equal(e, back) {
				t.Errorf("%s row %d: %v comes back as %v, %v", name, i, e, back, err)
			}
		}
	}
}
