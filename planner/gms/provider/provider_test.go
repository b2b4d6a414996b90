package provider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/source"
	memtable "github.com/lakesql/lakesql/source/memory"
)

func TestTypeOf(t *testing.T) {
	for _, c := range []struct {
		in   arrow.DataType
		want string
	}{
		{arrow.FixedWidthTypes.Boolean, "tinyint(1)"}, {arrow.PrimitiveTypes.Uint64, "bigint unsigned"}, {arrow.PrimitiveTypes.Int8, "tinyint"},
		{arrow.FixedWidthTypes.Float16, "float"}, {arrow.PrimitiveTypes.Float64, "double"},
		{arrow.BinaryTypes.String, "varchar(16383)"}, {arrow.BinaryTypes.LargeString, "longtext"}, {arrow.BinaryTypes.Binary, "longblob"},
		{&arrow.Decimal128Type{Precision: 38, Scale: 10}, "decimal(38,10)"}, {&arrow.Decimal256Type{Precision: 76, Scale: 10}, "longtext"}, {&arrow.Decimal128Type{Precision: 5, Scale: -2}, "decimal(7,0)"},
		{arrow.FixedWidthTypes.Date32, "date"}, {arrow.FixedWidthTypes.Timestamp_us, "timestamp(6)"}, {&arrow.TimestampType{Unit: arrow.Nanosecond}, "datetime(6)"},
		{arrow.FixedWidthTypes.Duration_us, "time(6)"}, {arrow.ListOf(arrow.BinaryTypes.String), "json"}, {arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32), "json"},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, "varchar(16383)"},
	} {
		if got := TypeOf(c.in).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
}

func TestRowsOfEveryType(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer alloc.AssertSize(t, 0)
	s := arrow.NewSchema([]arrow.Field{
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}, {Name: "u", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true}, {Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}, {Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	}, nil)
	batch, _, err := array.RecordFromJSON(alloc, s, strings.NewReader(`[{"b":true,"u":18446744073709551615,"d":"1.50","ts":"2026-03-29 01:30:00Z","l":["a",null],"day":"1900-01-01"},{}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRowReader(s, expr.Env{Alloc: alloc, Location: berlin})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := r.Rows(batch)
	if err != nil {
		t.Fatal(err)
	}
	got := rows[0]
	list, err := types.JsonToMySqlString(got[4].(sql.JSONWrapper))
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != int8(1) || got[1] != uint64(18446744073709551615) || !got[2].(decimal.Decimal).Equal(decimal.New(150, -2)) ||
		got[3] != time.Date(2026, 3, 29, 3, 30, 0, 0, time.UTC) || list != `["a", null]` || got[5] != time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC) {
		t.Errorf("got %v, list %s", got, list)
	}
	for i, v := range rows[1] {
		if v != nil {
			t.Errorf("column %d: %v, want NULL", i, v)
		}
	}
}

func TestParseAsOf(t *testing.T) {
	for _, c := range []struct {
		name string
		in   any
		want source.AsOf
		bad  bool
	}{
		{name: "a number as text", in: "3", want: source.AsOf{Version: 3}},
		{name: "a number", in: int8(3), want: source.AsOf{Version: 3}},
		{name: "a tag", in: "v1", want: source.AsOf{Tag: "v1"}},
		{name: "a time", in: time.Unix(5, 0), want: source.AsOf{Time: time.Unix(5, 0)}},
		{name: "a time as text", in: "2026-01-02 03:04:05", want: source.AsOf{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
		{name: "a day", in: "2026-01-02", want: source.AsOf{Time: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}},
		{name: "zero", in: "0", bad: true},
		{name: "nothing", in: "", bad: true},
		{name: "NULL", in: nil, bad: true},
		{name: "a fraction", in: 1.5, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseAsOf(c.in)
			if c.bad != errors.Is(err, errs.ErrInvalid) || got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func newTable(name string, version uint64) *memtable.Table {
	s := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	return memtable.New(exec.TableRef{Source: "lake", Table: name, Version: version}, s, nil)
}

func TestStatementsPinVersions(t *testing.T) {
	first, second := newTable("t", 1), newTable("t", 2)
	st := NewStatement(nil)
	ctx := context.Background()
	got, err := st.Table(ctx, memtable.NewCatalog("lake", first), "t", source.AsOf{})
	if err != nil || got != exec.Table(first) {
		t.Fatal(got, err)
	}
	if again, err := st.Table(ctx, memtable.NewCatalog("Lake", first, second), "t", source.AsOf{}); err != nil || again != exec.Table(first) {
		t.Errorf("a later version shows: %v, %v", again, err)
	}
	if other, err := st.Table(ctx, memtable.NewCatalog("lake", first, second), "t", source.AsOf{Version: 2}); err != nil || other != exec.Table(second) {
		t.Errorf("AS OF 2: %v, %v", other, err)
	}
	if opened, err := st.OpenTable(ctx, second.Ref()); err != nil || opened != exec.Table(second) {
		t.Errorf("OpenTable: %v, %v", opened, err)
	}
	if _, err := st.OpenTable(ctx, exec.TableRef{Table: "x"}); !errors.Is(err, errs.ErrInternal) {
		t.Errorf("an unknown ref: %v", err)
	}
}

func TestCatalogsComeAndGo(t *testing.T) {
	p, err := New([]source.Catalog{memtable.NewCatalog("lake", newTable("tt", 1), newTable("TT", 1))}, Caps{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := sql.NewEmptyContext()
	for _, taken := range []string{"LAKE", "lakesql", "mysql", "information_schema"} {
		if err := p.Add(memtable.NewCatalog(taken)); !errors.Is(err, errs.ErrExists) {
			t.Errorf("%s: %v", taken, err)
		}
	}
	db, err := p.Database(ctx, "Lake")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.GetTableInsensitive(ctx, "Tt"); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("names that differ by case alone: %v", err)
	}
	if found, ok, err := db.GetTableInsensitive(ctx, "TT"); err != nil || !ok || found.Name() != "TT" {
		t.Errorf("the one that is spelled so: %v %v %v", found, ok, err)
	}
	if _, ok, err := db.GetTableInsensitive(ctx, "nosuch"); ok || err != nil {
		t.Errorf("no table: %v %v", ok, err)
	}
	if _, err := p.Remove("lake"); err != nil || p.HasDatabase(ctx, "lake") {
		t.Errorf("after Remove: %v", err)
	}
	if _, err := p.Remove("lake"); !errors.Is(err, errs.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
}

func TestVariablesAndHints(t *testing.T) {
	RegisterVariables()
	ctx := sql.NewContext(context.Background(), sql.WithSession(sql.NewBaseSession()))
	v, err := ReadVariables(ctx, []dialect.Hint{{Name: "nprobes", Value: "77"}, {Name: "ann", Value: "FORCE"}, {Name: "refine_factor", Value: "0"}, {Name: "unheard_of", Value: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if v.Planner.NProbes != 77 || !strings.EqualFold(v.Planner.ANN, planner.Force) || v.Planner.RefineFactor >= 0 || v.Planner.GLM != planner.Auto {
		t.Errorf("got %+v", v.Planner)
	}
	if err := v.Planner.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := ReadVariables(ctx, []dialect.Hint{{Name: "ann", Value: "maybe"}}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a bad hint: %v", err)
	}
}

func TestFunctionsEvaluateRowByRow(t *testing.T) {
	p, err := New(nil, Caps{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := sql.NewEmptyContext()
	text := func(s string) sql.Expression { return expression.NewLiteral(s, types.LongText) }
	for _, c := range []struct {
		name string
		args []sql.Expression
		want any
	}{
		{"array_has", []sql.Expression{text(`["a","b"]`), text("b")}, int8(1)},
		{"l2_distance", []sql.Expression{text("[0,3]"), text("[4,0]")}, 5.0},
		{"array_length", []sql.Expression{text("[1,2,3]")}, int64(3)},
		{"load_file", []sql.Expression{text("/etc/hostname")}, nil},
	} {
		f, ok := p.Function(ctx, strings.ToUpper(c.name))
		if !ok {
			t.Fatal(c.name)
		}
		e, err := f.NewInstance(c.args)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Eval(ctx, nil); err != nil || got != c.want {
			t.Errorf("%s: %v (%T), %v", c.name, got, got, err)
		}
	}
	f, _ := p.Function(ctx, "array_has")
	if _, err := f.NewInstance([]sql.Expression{text("a")}); !sql.ErrInvalidArgumentNumber.Is(err) {
		t.Errorf("one argument: %v", err)
	}
}
