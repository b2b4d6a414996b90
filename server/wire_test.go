package server

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
)

func TestNumbersWithoutMySQLTextAreNull(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "d", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "f", Type: arrow.PrimitiveTypes.Float32, Nullable: true}}, nil)
	b := array.NewRecordBuilder(alloc, schema)
	defer b.Release()
	values := []float64{1.5, math.NaN(), math.Inf(1), math.Inf(-1), -2e300, 0}
	for _, v := range values {
		b.Field(0).(*array.Float64Builder).Append(v)
		b.Field(1).(*array.Float32Builder).Append(float32(min(v, 3)))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	held := mem.NewBudget("test", 0, nil).Reserve()
	defer held.Free()
	enc, err := newRowEncoder(schema, []querypb.Type{sqltypes.Float64, sqltypes.Float32}, held)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := enc.encode(&expr.Env{Alloc: alloc}, batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if got, want := rows[i][0].IsNull(), math.IsNaN(v) || math.IsInf(v, 0); got != want {
			t.Errorf("%v is sent as %q", v, rows[i][0].ToString())
		}
	}
	if !rows[1][1].IsNull() || rows[0][1].ToString() != "1.5" {
		t.Errorf("FLOAT is sent as %q", rows[0][1].ToString())
	}
}

func TestStatementsToPrepareAreParsedFirst(t *testing.T) {
	for text, want := range map[string]int{
		"SELECT 1 FROM t WHERE a = ?": 0,
		`SELECT "a" FROM "t"`:         0, // ANSI_QUOTES
		"":                            1065,
		"-- nothing":                  1065,
		"SELEC 1":                     mysql.ERParseError,
		"PREPARE s FROM 'SELECT 1'":   1295,
		"EXECUTE s":                   1295,
	} {
		got := 0
		if err := parses(text); err != nil {
			got = mysqlerr.Convert(err).Num
		}
		if got != want {
			t.Errorf("%q: error %d, want %d", text, got, want)
		}
	}
}
