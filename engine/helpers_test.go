package engine

import (
	"context"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/memory"
)

func names(res *Result) []string {
	out := make([]string, len(res.Columns))
	for i, c := range res.Columns {
		out[i] = c.Name
	}
	return out
}

func readTSV(t *testing.T, res *Result) string {
	t.Helper()
	var b strings.Builder
	for {
		batch, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(batch.NumRows()) {
			for c := range int(batch.NumCols()) {
				if c > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(cell(batch.Column(c), i))
			}
			b.WriteByte('\n')
		}
		batch.Release()
	}
}

func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return `\N`
	}
	switch a := a.(type) {
	case *array.Null:
		return `\N`
	case *array.String:
		return a.Value(i)
	case *array.Boolean:
		if a.Value(i) {
			return "1"
		}
		return "0"
	case *array.Decimal128:
		return fixed(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return fixed(a.Value(i).BigInt(), a.DataType().(*arrow.Decimal256Type).Scale)
	}
	return a.ValueStr(i)
}

// fixed prints a decimal with all digits of its scale.
func fixed(n *big.Int, scale int32) string {
	return new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(int(scale))
}

// table makes a table of the test lake from JSON rows.
func table(t testing.TB, name, rows string, fields ...arrow.Field) *memory.Table {
	t.Helper()
	s := arrow.NewSchema(fields, nil)
	batch, _, err := array.RecordFromJSON(arrowmem.DefaultAllocator, s, strings.NewReader(rows))
	if err != nil {
		t.Fatal(name, err)
	}
	var batches []arrow.RecordBatch
	if batch.NumRows() > 0 {
		batches = []arrow.RecordBatch{batch}
	}
	return memory.New(exec.TableRef{Source: "lake", Table: name}, s, batches)
}

// version gives a table a version.
func version(n uint64, t *memory.Table) *memory.Table {
	ref := t.Ref()
	ref.Version = n
	return memory.New(ref, t.Schema(), t.Batches())
}

func field(name string, dt arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: dt, Nullable: true}
}

// openLake opens an engine over the tables of docs and cases: labels (l), vectors (v), perms, orders, and tables of types.
func openLake(t testing.TB, config Config, more ...*memory.Table) *Engine {
	t.Helper()
	text, i64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	vec := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	tables := append([]*memory.Table{
		table(t, "l", `[{"id":1,"labels":["foo",null]},{"id":2,"labels":["foo"]},{"id":3,"labels":null},{"id":4,"labels":[]},{"id":5,"labels":[null]},{"id":6,"labels":["bar"]},{"id":7,"labels":["foo","foo","bar"]}]`,
			field("id", i64), field("labels", arrow.ListOf(text))),
		table(t, "v", `[{"id":1,"cat":"a","vec":[1,0]},{"id":2,"cat":"a","vec":[2,0]},{"id":3,"cat":"b","vec":[0,1]},{"id":4,"cat":"b","vec":[0,0]},{"id":6,"cat":"a","vec":[1,0]},{"id":7,"cat":"c","vec":[-1,0]}]`,
			field("id", i64), field("cat", text), field("vec", vec)),
		table(t, "v5", `[{"id":1,"vec":[1,0]},{"id":2,"vec":[2,0]},{"id":5,"vec":null}]`, field("id", i64), field("vec", vec)),
		table(t, "perms", `[{"id":2},{"id":3},{"id":7}]`, field("id", i64)),
		table(t, "nobody", `[]`, field("id", i64)),
		table(t, "orders", `[{"vid":1,"amt":10},{"vid":1,"amt":5},{"vid":6,"amt":7},{"vid":3,"amt":100}]`, field("vid", i64), field("amt", i64)),
		table(t, "nums", `[{"k":"x","n":9007199254740993,"d":"0.10","u":18446744073709551615},{"k":"x","n":9007199254740993,"d":"0.20","u":1},{"k":"Y","n":null,"d":null,"u":null},{"k":null,"n":1,"d":"99.99","u":0}]`,
			field("k", text), field("n", i64), field("d", &arrow.Decimal128Type{Precision: 15, Scale: 2}), field("u", arrow.PrimitiveTypes.Uint64)),
		table(t, "times", `[{"id":1,"at":"2026-03-29 00:59:59Z","local":"2026-03-29 00:59:59","day":"1900-01-01"},{"id":2,"at":"2026-03-29 01:30:00Z","local":"2026-03-29 01:30:00","day":"9999-12-31"}]`,
			field("id", i64), field("at", arrow.FixedWidthTypes.Timestamp_us), field("local", &arrow.TimestampType{Unit: arrow.Microsecond}), field("day", arrow.FixedWidthTypes.Date32)),
		table(t, "twins", `[{"Name":"upper","name":"lower"}]`, field("Name", text), field("name", text)),
	}, more...)
	config.Catalogs = []source.Catalog{memory.NewCatalog("lake", tables...)}
	e, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if used := e.Budget().Used(); used != 0 {
			t.Errorf("%s: %d bytes are still reserved", t.Name(), used)
		}
	})
	return e
}

// run returns the rows of a statement as lines of tab-separated cells.
func run(t *testing.T, s *Session, text string, args ...any) (lines []string, res *Result) {
	t.Helper()
	res, err := s.Query(context.Background(), text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() {
		if err := res.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !res.HasRows() {
		return nil, res
	}
	out := strings.TrimSuffix(readTSV(t, res), "\n")
	if out == "" {
		return nil, res
	}
	return strings.Split(out, "\n"), res
}

// failure returns the error of a statement, wherever it comes up.
func failure(s *Session, text string, args ...any) error {
	res, err := s.Query(context.Background(), text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = res.Close() }()
	for res.HasRows() {
		batch, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		batch.Release()
	}
	return nil
}
