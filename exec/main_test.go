package exec

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/exec/expr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a plan over one batch, handed out in pieces of Env.BatchRows to any number of workers.
type source struct {
	batch arrow.RecordBatch
	fail  error // after the last row
}

func (s *source) Schema() *arrow.Schema { return s.batch.Schema() }
func (s *source) Children() []Plan      { return nil }
func (s *source) Describe() Description { return Description{Name: "Source"} }

func (s *source) Open(ctx context.Context, env *Env) (Operator, error) {
	ops, err := s.OpenWorkers(ctx, env, 1)
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

func (s *source) OpenWorkers(_ context.Context, env *Env, n int) ([]Operator, error) {
	at := new(atomic.Int64)
	ops := make([]Operator, n)
	for i := range ops {
		ops[i] = &sourceOp{source: s, at: at, step: int64(env.BatchRows)}
	}
	return ops, nil
}

type sourceOp struct {
	*source
	at   *atomic.Int64
	step int64
}

func (o *sourceOp) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	end := o.at.Add(o.step)
	start, end := end-o.step, min(end, o.batch.NumRows())
	if start >= o.batch.NumRows() {
		if o.fail != nil {
			return nil, o.fail
		}
		return nil, io.EOF
	}
	return o.batch.NewSlice(start, end), nil
}

func (o *sourceOp) Close() error { return nil }

// config is how a plan is run in a test.
type config struct{ batchRows, workers int }

func (c config) String() string {
	return fmt.Sprintf("batches of %d, %d workers", c.batchRows, c.workers)
}

var configs = []config{{1, 1}, {7, 4}, {8192, 1}, {8192, 4}, {16, 2}}

func (c config) env(alloc memory.Allocator) *Env {
	return Env{Alloc: alloc, BatchRows: c.batchRows, Workers: c.workers}.WithDefaults()
}

// fromJSON makes a source of rows given as JSON objects, one per line or in one array.
func fromJSON(t testing.TB, alloc memory.Allocator, schema *arrow.Schema, rows string) *source {
	t.Helper()
	b, _, err := array.RecordFromJSON(alloc, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return &source{batch: b}
}

func fields(typed ...any) *arrow.Schema {
	var out []arrow.Field
	for i := 0; i < len(typed); i += 2 {
		out = append(out, arrow.Field{Name: typed[i].(string), Type: typed[i+1].(arrow.DataType), Nullable: true})
	}
	return arrow.NewSchema(out, nil)
}

func col(p Plan, name string) *expr.Column {
	i := p.Schema().FieldIndices(name)[0]
	return &expr.Column{ID: i, Name: name, T: p.Schema().Field(i).Type}
}

// tester is what the checks need of *testing.T, *testing.B, *testing.F and *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must[T any](v T, err error) func(t tester) T {
	return func(t tester) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// rowsOf runs p and returns its rows as text, values separated by "|".
func rowsOf(t tester, env *Env, p Plan) []string {
	t.Helper()
	batches, err := Collect(context.Background(), env, p)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseBatches(batches)
	var out []string
	for _, b := range batches {
		if b.NumRows() < 1 || b.NumRows() > int64(env.BatchRows) {
			t.Fatalf("a batch of %d rows came, not 1 to %d", b.NumRows(), env.BatchRows)
		}
		if int(b.NumCols()) != p.Schema().NumFields() {
			t.Fatalf("%d columns came for %d", b.NumCols(), p.Schema().NumFields())
		}
		for i, c := range b.Columns() {
			if !arrow.TypeEqual(c.DataType(), p.Schema().Field(i).Type) {
				t.Fatalf("column %d is %s, not %s", i, c.DataType(), p.Schema().Field(i).Type)
			}
		}
		out = append(out, batchRows(b)...)
	}
	return out
}

func batchRows(b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for i := range out {
		parts := make([]string, b.NumCols())
		for j, c := range b.Columns() {
			parts[j] = text(c, i)
		}
		out[i] = strings.Join(parts, "|")
	}
	return out
}

func text(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	switch a := a.(type) {
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal256Type).Scale)
	}
	return a.ValueStr(i)
}

func sorted(rows []string) []string {
	out := slices.Clone(rows)
	slices.Sort(out)
	return out
}

func sameRows(t tester, got, want []string, ordered bool) {
	t.Helper()
	if !ordered {
		got, want = sorted(got), sorted(want)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %d rows\n%s\nwant %d rows\n%s", len(got), strings.Join(head(got), "\n"), len(want), strings.Join(head(want), "\n"))
	}
}

func head(rows []string) []string { return rows[:min(len(rows), 60)] }

// everyConfig runs f with every way to run a plan, and checks that all memory comes back.
func everyConfig(t *testing.T, f func(t *testing.T, env *Env)) {
	for _, c := range configs {
		t.Run(c.String(), func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			f(t, c.env(alloc))
		})
	}
}

var keyTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint16,
	arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Date32,
	arrow.FixedWidthTypes.Timestamp_us, &arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 60, Scale: 3},
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 3},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String},
}

// randomArray makes n values out of about domain different ones, a fifth of them NULL.
func randomArray(r *rand.Rand, alloc memory.Allocator, t arrow.DataType, n, domain int) arrow.Array {
	b := array.NewBuilder(alloc, t)
	defer b.Release()
	for range n {
		if r.IntN(5) == 0 {
			b.AppendNull()
			continue
		}
		if err := b.AppendValueFromString(randomText(t, r.IntN(domain))); err != nil {
			panic(err)
		}
	}
	return b.NewArray()
}

var longTail = strings.Repeat("x", 20)

// randomText is the i-th value of a type, as its builder reads it.
func randomText(t arrow.DataType, i int) string {
	switch t.ID() {
	case arrow.BOOL:
		return fmt.Sprint(i%2 == 0)
	case arrow.INT8:
		return fmt.Sprint(i%200 - 100)
	case arrow.UINT16:
		return fmt.Sprint(i % 60000)
	case arrow.UINT64:
		return fmt.Sprint(uint64(i) * (1 << 58))
	case arrow.INT32, arrow.INT64:
		return fmt.Sprint(i - 5)
	case arrow.FLOAT32, arrow.FLOAT64:
		return []string{"NaN", "-1.5", "0", "+Inf", "-Inf", "2.25"}[i%6]
	case arrow.DATE32:
		return fmt.Sprintf("2024-01-%02d", i%28+1)
	case arrow.TIMESTAMP:
		return fmt.Sprintf("19%02d-03-04 05:06:07.000008Z", 50+i%50)
	case arrow.DECIMAL128:
		return []string{"-1.25", "0.00", "999999999999999999999999999999999999.99", "-99999999999999999999999999.99", "12.50"}[i%5]
	case arrow.DECIMAL256:
		return []string{"-1.250", "0.001", "999999999999999999999999999999999999999999999.999", "-99999999999999999999999999.990"}[i%4]
	case arrow.FIXED_SIZE_BINARY, arrow.BINARY:
		return []string{"AAAA", "AAEC", "/wAA", "YWJj"}[i%4]
	default:
		return []string{"", "a", "ab", "a\x00b", "a\x00", "fifteen bytes..", "sixteen bytes...", longTail + "1", longTail + "2", "é"}[i%10] + strings.Repeat("z", i/10%5) + fmt.Sprint(i/50)
	}
}

// randomBatch makes a batch with columns c0, c1, ... of the types.
func randomBatch(r *rand.Rand, alloc memory.Allocator, n, domain int, types ...arrow.DataType) arrow.RecordBatch {
	var cols []arrow.Array
	var fs []arrow.Field
	for i, t := range types {
		cols = append(cols, randomArray(r, alloc, t, n, domain))
		fs = append(fs, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: t, Nullable: true})
	}
	return newBatch(arrow.NewSchema(fs, nil), cols, n)
}
