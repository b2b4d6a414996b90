package glm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/storage/rowset"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name  string
		costs Costs
		late  bool
		says  string
	}{
		{"a source without addresses", Costs{Survivors: 1, EarlyRows: 1 << 40, WidthBytes: 1 << 20}, false, "single rows"},
		{"few of many rows survive", Costs{Survivors: 10, EarlyRows: 1e6, WidthBytes: 100, RequestBytes: 512, CanTake: true}, true, "1000 bytes, early 100000000"},
		{"all rows survive and are read in bulk", Costs{Survivors: 1000, EarlyRows: 1000, WidthBytes: 8, RequestBytes: 512, CanTake: true}, false, "in bulk"},
		{"all rows survive and were single reads anyway", Costs{Survivors: 1000, EarlyRows: 1000, WidthBytes: 8, RequestBytes: 512, EarlyIsTake: true, CanTake: true}, true, "8000 bytes"},
		{"local cuts of many tasks", Costs{Survivors: 100, EarlyRows: 6400, WidthBytes: 8, RequestBytes: 512, EarlyIsTake: true, CanTake: true}, true, ""},
		{"equal costs", Costs{Survivors: 10, EarlyRows: 20, WidthBytes: 512, RequestBytes: 512, CanTake: true}, true, ""},
		{"one byte dearer", Costs{Survivors: 10, EarlyRows: 20, WidthBytes: 511, RequestBytes: 512, CanTake: true}, false, ""},
		{"a remote store's requests", Costs{Survivors: 100, EarlyRows: 10000, WidthBytes: 1000, RequestBytes: RequestCostBytesRemote, CanTake: true}, false, ""},
		{"the same in a mapping", Costs{Survivors: 100, EarlyRows: 10000, WidthBytes: 1000, RequestBytes: RequestCostBytesMapped, CanTake: true}, true, ""},
		{"unknown width, a cut", Costs{Survivors: 10, EarlyRows: 100, CanTake: true}, true, "10 of 100"},
		{"unknown width, more survivors than rows", Costs{Survivors: 100, EarlyRows: 10, CanTake: true}, false, "100 of 10"},
		{"nothing at all", Costs{CanTake: true}, true, "0 of 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := Choose(c.costs); d.Late != c.late || !strings.Contains(d.Reason, c.says) || d.Reason == "" {
				t.Errorf("late %v because %q", d.Late, d.Reason)
			}
		})
	}
}

// wideTable has the column "text", which says of each row where it lies.
type wideTable struct {
	exec.Addressable
	taken []int
}

func (w *wideTable) Rows() int64 { return 100 }

func (w *wideTable) ColumnBytes(context.Context, string) int64 { return -1 }

func (w *wideTable) OpenTable(context.Context, exec.TableRef) (exec.Table, error) { return w, nil }

func (w *wideTable) Take(_ context.Context, addrs []rowset.RowAddr, columns []string, alloc memory.Allocator) (arrow.RecordBatch, error) {
	w.taken = append(w.taken, len(addrs))
	b := array.NewStringBuilder(alloc)
	defer b.Release()
	for _, a := range addrs {
		b.Append(a.String())
	}
	col := b.NewArray()
	defer col.Release()
	cols := make([]arrow.Array, len(columns))
	fs := make([]arrow.Field, len(columns))
	for i, c := range columns {
		cols[i], fs[i] = col, arrow.Field{Name: c, Type: arrow.BinaryTypes.String, Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(fs, nil), cols, int64(len(addrs))), nil
}

// TestFetchKeepsOrderDuplicatesAndGaps: each row gets the columns of its own address, in batches of any size.
func TestFetchKeepsOrderDuplicatesAndGaps(t *testing.T) {
	in := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: exec.RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64, Nullable: true}}, nil)
	inputs := map[string][]int{ // -1 = NULL
		"in an order of its own":     {5, 3, 9, 1, 1 << 33},
		"duplicates":                 {7, 7, 2, 7, 2},
		"without a match":            {-1, 4, -1, -1, 4},
		"not one match":              {-1, -1, -1},
		"no row":                     {},
		"more than one batch of all": slices.Repeat([]int{3, -1, 1 << 32, 3, 8}, 4000),
	}
	for name, addrs := range inputs {
		for _, size := range []int{1, 7, 8192} {
			if size == 1 && len(addrs) > 1000 {
				addrs = addrs[:1000]
			}
			t.Run(fmt.Sprintf("%s, batches of %d", name, size), func(t *testing.T) {
				alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
				defer alloc.AssertSize(t, 0)
				rows := make([][]expr.Expr, len(addrs))
				want := make([]string, len(addrs))
				for i, a := range addrs {
					rows[i] = []expr.Expr{literal(t, int64(i), arrow.PrimitiveTypes.Int64), nullLiteral(t, arrow.PrimitiveTypes.Uint64)}
					want[i] = fmt.Sprint(i, " NULL NULL")
					if a >= 0 {
						rows[i][1] = literal(t, uint64(a), arrow.PrimitiveTypes.Uint64)
						want[i] = fmt.Sprint(i, " ", rowset.RowAddr(a), " ", rowset.RowAddr(a))
					}
				}
				values, err := exec.NewValues(in, rows)
				if err != nil {
					t.Fatal(err)
				}
				f, err := NewFetch(Fetch{Input: values, AddrColumn: 1, Columns: []string{"text", "again"}}, []arrow.Field{
					{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "again", Type: arrow.BinaryTypes.String, Nullable: true},
				})
				if err != nil {
					t.Fatal(err)
				}
				table := &wideTable{}
				env := exec.Env{Alloc: alloc, BatchRows: size, Tables: table}.WithDefaults()
				batches, err := exec.Collect(context.Background(), env, f)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, b := range batches {
					if b.NumRows() < 1 || b.NumRows() > int64(size) || !b.Schema().Equal(f.Schema()) {
						t.Errorf("a batch of %d rows of %s", b.NumRows(), b.Schema())
					}
					for i := range int(b.NumRows()) {
						got = append(got, fmt.Sprint(b.Column(0).ValueStr(i), " ", text(b.Column(2), i), " ", text(b.Column(3), i)))
					}
					b.Release()
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %d rows %v\nwant %d rows %v", len(got), got[:min(9, len(got))], len(want), want[:min(9, len(want))])
				}
				if len(addrs) > 0 && len(addrs) < fetchRowsMax && len(table.taken) != 1 {
					t.Errorf("%d reads for one gathering", len(table.taken))
				}
			})
		}
	}
}

func text(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	return a.ValueStr(i)
}

func literal(t *testing.T, v any, dt arrow.DataType) expr.Expr {
	t.Helper()
	l, err := expr.NewLiteral(v)
	if err != nil || !arrow.TypeEqual(l.Type(), dt) {
		t.Fatalf("%v: %v", v, err)
	}
	return l
}

func nullLiteral(t *testing.T, dt arrow.DataType) expr.Expr {
	t.Helper()
	l, err := expr.NewLiteral(nil)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := expr.NewCast(l, dt)
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

func TestFetchNeedsAnAddressColumn(t *testing.T) {
	in, err := exec.NewValues(arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{-1, 0, 1} {
		if _, err := NewFetch(Fetch{Input: in, AddrColumn: at}, nil); err == nil {
			t.Errorf("column %d is taken for an address", at)
		}
	}
}
