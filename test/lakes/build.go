package lakes

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

// Path is the way a table came to be. Answers are the same on every path.
type Path string

// The paths.
const (
	Bare     Path = "without an index"
	Indexed  Path = "with indices"
	Half     Path = "half indexed" // the second half of the rows was appended after the indices
	Extended Path = "with indices of two segments"
	Stable   Path = "with stable row ids, half indexed"
)

// Paths is all of them.
var Paths = []Path{Bare, Indexed, Half, Extended, Stable}

// Index is an index of a table: a kind of filter index, or "IVF_FLAT" with a metric.
type Index struct {
	Column string
	Kind   index.Kind
	Metric index.Metric
	Lists  int
	Name   string // "" = COLUMN_idx
}

// Table is a table to make.
type Table struct {
	Name    string
	Fields  []arrow.Field
	Rows    string              // as a JSON array of objects
	Batches []arrow.RecordBatch // instead of Rows
	Indices []Index
}

// Field is a nullable column.
func Field(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// The types that tests use most.
var (
	Int64  = arrow.PrimitiveTypes.Int64
	Text   = arrow.BinaryTypes.String
	Labels = arrow.ListOf(arrow.BinaryTypes.String)
)

// Vector is the type of a vector of float32.
func Vector(dim int32) arrow.DataType {
	return arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32)
}

// batches yields batches once.
type batches struct{ rest []arrow.RecordBatch }

// Next implements write.Batches.
func (b *batches) Next(context.Context) (arrow.RecordBatch, error) {
	if len(b.rest) == 0 {
		return nil, io.EOF
	}
	next := b.rest[0]
	b.rest = b.rest[1:]
	return next, nil
}

func (b *batches) rows() int64 {
	var n int64
	for _, r := range b.rest {
		n += r.NumRows()
	}
	return n
}

// Build makes the tables in dir, each on the path.
func Build(tb testing.TB, dir string, path Path, tables ...Table) {
	tb.Helper()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	}()
	for _, t := range tables {
		t.build(tb, store, path)
	}
}

func (t Table) build(tb testing.TB, store object.Store, path Path) {
	tb.Helper()
	ctx := context.Background()
	s := arrow.NewSchema(t.Fields, nil)
	first, second := t.halves(tb, s)
	whole := path == Bare || path == Indexed
	if whole {
		first, second = append(first, second...), nil
	}
	target := write.Target{Store: store, Dir: t.Name + ".lance"}
	opts := write.CreateOptions{StableRowIDs: path == Stable}
	if len(first) > 0 {
		opts.Parts = []write.Batches{&batches{first}}
	}
	if _, err := write.CreateTable(ctx, target, s, opts); err != nil {
		tb.Fatal(t.Name, err)
	}
	if path != Bare {
		t.index(tb, store, false)
	}
	if len(second) > 0 {
		if _, err := write.Append(ctx, target, &batches{second}, write.AppendOptions{}); err != nil {
			tb.Fatal(t.Name, err)
		}
	}
	if path == Extended {
		t.index(tb, store, true)
	}
}

// halves parts the rows in two.
func (t Table) halves(tb testing.TB, s *arrow.Schema) (first, second []arrow.RecordBatch) {
	tb.Helper()
	all := t.Batches
	if t.Rows != "" {
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(t.Rows))
		if err != nil {
			tb.Fatal(t.Name, err)
		}
		if batch.NumRows() > 0 {
			all = []arrow.RecordBatch{batch}
		}
	}
	half := ((&batches{all}).rows() + 1) / 2
	for _, b := range all {
		switch {
		case half >= b.NumRows():
			first = append(first, b)
		case half > 0:
			first, second = append(first, b.NewSlice(0, half)), append(second, b.NewSlice(half, b.NumRows()))
		default:
			second = append(second, b)
		}
		half = max(0, half-b.NumRows())
	}
	return first, second
}

// index builds the indices, or extends them by the fragments that they do not cover.
func (t Table) index(tb testing.TB, store object.Store, extend bool) {
	tb.Helper()
	ctx := context.Background()
	for _, i := range t.Indices {
		table, err := storage.OpenTable(ctx, store, t.Name+".lance", storage.TableOptions{})
		if err != nil {
			tb.Fatal(err)
		}
		if i.Metric != "" {
			_, err = write.BuildIVFFlat(ctx, table, i.Column, write.IVFFlatOptions{Name: i.Name, Metric: i.Metric, Lists: i.Lists, Extend: extend})
		} else {
			_, err = write.BuildFilterIndex(ctx, table, write.FilterIndexSpec{Name: i.Name, Column: i.Column, Kind: i.Kind}, write.FilterIndexOptions{Extend: extend})
		}
		if err != nil {
			tb.Fatal(t.Name, i.Column, err)
		}
	}
}

// Only keeps some paths.
func Only(keep ...Path) []Path {
	return slices.DeleteFunc(slices.Clone(Paths), func(p Path) bool { return !slices.Contains(keep, p) })
}
