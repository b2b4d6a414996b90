package lance

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/storage/rowset"
)

// TestKeysOfEveryVersionAreItsOwn looks each version's ids up twice, the second time by what the first has learned. Versions of one table differ in
// their rows: appends, deletes and updates made them.
func TestKeysOfEveryVersionAreItsOwn(t *testing.T) {
	latest := openDataset(t, "history")
	const column = "id"
	tried := 0
	for version := uint64(1); version <= latest.snap.Version(); version++ {
		got, err := latest.catalog.Table(ctx, "history", source.AsOf{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		table := got.(*Table)
		if len(table.schema.FieldIndices(column)) == 0 {
			continue
		}
		tried++
		rows := idsByAddr(t, table)
		kind := table.schema.Field(table.schema.FieldIndices(column)[0]).Type
		for id := int64(0); id < 40; id++ {
			args := []expr.Expr{&expr.Column{Name: column, T: kind}, literalOf(t, id), literalOf(t, id+7), literalOf(t, 1_000_000)}
			in, err := expr.NewCall("in", args...)
			if err != nil {
				t.Fatal(err)
			}
			scan := &exec.CandidateScan{Table: table.Ref(), Columns: []string{column}, Expr: in}
			truth, err := exec.EvalCandidates(ctx, envOf(table), scan, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := rowset.NewSet()
			for addr, value := range rows {
				if value == id || value == id+7 {
					want.Add(addr)
				}
			}
			if !rowset.Equal(truth.True, want) {
				t.Fatalf("version %d, id %d: %d rows, want %d", version, id, truth.True.Count(), want.Count())
			}
			if _, learned := table.Zones(column); !learned {
				t.Fatal("nothing was learned")
			}
		}
	}
	if tried < 3 {
		t.Errorf("%d versions have the column", tried)
	}
	if _, ok := latest.Zones("nosuch"); ok {
		t.Error("zones of a column that is not there")
	}
}

func literalOf(t *testing.T, v int64) *expr.Literal {
	t.Helper()
	lit, err := expr.NewLiteral(v)
	if err != nil {
		t.Fatal(err)
	}
	return lit
}

// idsByAddr reads the ids of all live rows.
func idsByAddr(t *testing.T, table *Table) map[uint64]int64 {
	t.Helper()
	live, err := table.LiveRows(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []rowset.RowAddr
	for a := range live.All() {
		addrs = append(addrs, rowset.RowAddr(a))
	}
	batch, err := table.Take(ctx, addrs, []string{"id"}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	out := make(map[uint64]int64)
	for i, a := range addrs {
		switch col := batch.Column(0).(type) {
		case *array.Int64:
			out[uint64(a)] = col.Value(i)
		case *array.Int32:
			out[uint64(a)] = int64(col.Value(i))
		default:
			t.Fatalf("ids of type %s", col.DataType())
		}
	}
	return out
}
