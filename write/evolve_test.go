package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// evolving is a table of several fragments with deleted rows at their starts, middles and ends.
func evolving(t *testing.T, opts CreateOptions) (*history, *storage.Table) {
	t.Helper()
	h := &history{
		t: t, r: rand.New(rand.NewSource(3)), rows: make(map[int64]item), stable: opts.StableRowIDs,
		target: Target{Store: object.NewMemory("test"), Dir: "t.lance"}, what: "evolving",
	}
	opts.Parts, opts.Rows = []Batches{h.fresh(h.rows, 250)}, RowOptions{FragmentRows: 100}
	if _, err := CreateTable(context.Background(), h.target, stock, opts); err != nil {
		t.Fatal(err)
	}
	h.reopen()
	table := openTable(t, h.target)
	x := mustBegin(t, table, TxOptions{})
	gone := slices.Concat(between(0, 7), between(40, 55), between(90, 100), between(100, 103), between(249, 250))
	rows := &rowset.Set{}
	for _, id := range gone {
		rows.Add(uint64(rowset.Addr(uint32(id/100), uint32(id%100))))
		delete(h.rows, id)
	}
	if _, err := x.Delete(context.Background(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	return h, table
}

// column reads id -> value of a column, as text.
func column(t *testing.T, target Target, name string) map[int64]string {
	t.Helper()
	ctx := context.Background()
	s, err := openTable(t, target).Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	scan, err := s.Scan(ctx, storage.ScanOptions{Columns: []string{"id", name}})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[int64]string)
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out[b.Column(0).(*array.Int64).Value(i)] = string([]byte(b.Column(1).ValueStr(i)))
		}
		b.Release()
	}
}

func doubled(_ context.Context, rows arrow.RecordBatch) ([]arrow.Array, error) {
	b, s := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	for i, n := range rows.Column(0).(*array.Int64).Int64Values() {
		b.Append(2 * n)
		if rows.Column(1).IsNull(i) {
			s.AppendNull()
		} else {
			s.Append("<" + rows.Column(1).ValueStr(i) + ">")
		}
	}
	return []arrow.Array{b.NewArray(), s.NewArray()}, nil
}

func TestColumnsComeGoAndChange(t *testing.T) {
	for _, opts := range []CreateOptions{{}, {Version: file.V21, StableRowIDs: true}} {
		t.Run(fmt.Sprintf("%s stable %t", opts.Version, opts.StableRowIDs), func(t *testing.T) {
			ctx := context.Background()
			h, table := evolving(t, opts)
			same := func(name string, value func(item) string) {
				t.Helper()
				got := column(t, h.target, name)
				for id, row := range h.rows {
					if got[id] != value(row) {
						t.Fatalf("column %s of row %d is %q, want %q", name, id, got[id], value(row))
					}
				}
				if len(got) != len(h.rows) {
					t.Fatalf("%d rows, want %d", len(got), len(h.rows))
				}
			}
			must := func(_ Committed, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			nulls := func(row item, s string) string {
				if row.tag == "" {
					return array.NullValueStr
				}
				return s
			}
			must(BuildFilterIndex(ctx, table, FilterIndexSpec{Column: "tag", Kind: index.KindBitmap}, FilterIndexOptions{}))
			must(AddColumns(ctx, table, []arrow.Field{
				{Name: "twice", Type: arrow.PrimitiveTypes.Int64}, {Name: "quoted", Type: arrow.BinaryTypes.String, Nullable: true},
			}, &ColumnValues{Reads: []string{"n", "tag"}, Compute: doubled}, EvolveOptions{}))
			must(AddColumns(ctx, table, []arrow.Field{{Name: "none", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil, EvolveOptions{}))
			twice := func(row item) string { return fmt.Sprint(2 * row.n) }
			same("twice", twice)
			same("quoted", func(row item) string { return nulls(row, "<"+row.tag+">") })
			same("none", func(item) string { return array.NullValueStr })
			must(RenameColumn(ctx, table, "twice", "double", EvolveOptions{}))
			same("double", twice)
			must(ModifyColumn(ctx, table, "double", arrow.Field{Name: "double", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, nil, EvolveOptions{}))
			same("double", twice)
			must(ModifyColumn(ctx, table, "double", arrow.Field{Name: "d2", Type: arrow.PrimitiveTypes.Float64}, nil, EvolveOptions{}))
			same("d2", twice)
			must(DropColumns(ctx, table, []string{"d2", "none"}, EvolveOptions{}))
			same("quoted", func(row item) string { return nulls(row, "<"+row.tag+">") })
			must(DropColumns(ctx, table, []string{"quoted"}, EvolveOptions{}))
			s, err := openTable(t, h.target).Latest(ctx)
			if err != nil {
				t.Fatal(err)
			}
			h.check("at the end", s, h.rows)
			for _, f := range s.Fragments() {
				if n := len(f.Proto().GetFiles()); n != 1 {
					t.Errorf("fragment %d has %d files", f.ID(), n)
				}
			}
			if len(s.Indices()) != 1 || s.ArrowSchema().NumFields() != 3 {
				t.Errorf("%d indices, columns %v", len(s.Indices()), s.ArrowSchema())
			}
			noGarbage(t, h.target)
		})
	}
}

func TestColumnChangesThatCannotBe(t *testing.T) {
	ctx := context.Background()
	h, table := evolving(t, CreateOptions{})
	if _, err := BuildFilterIndex(ctx, table, FilterIndexSpec{Column: "tag", Kind: index.KindBitmap}, FilterIndexOptions{}); err != nil {
		t.Fatal(err)
	}
	before := latest(t, h.target).Version()
	number := func(name string) arrow.Field { return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64} }
	failing := &ColumnValues{Reads: []string{"n"}, Compute: func(_ context.Context, rows arrow.RecordBatch) ([]arrow.Array, error) {
		if rows.NumRows() < 97 { // not in the last fragment
			return nil, errs.New(errs.ErrOverflow, "too large")
		}
		return []arrow.Array{array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, int(rows.NumRows()))}, nil
	}}
	for name, c := range map[string]struct {
		run  func() (Committed, error)
		want error
	}{
		"a name that is taken": {func() (Committed, error) {
			return AddColumns(ctx, table, []arrow.Field{number("n")}, failing, EvolveOptions{})
		}, errs.ErrExists},
		"no value where one is needed": {
			func() (Committed, error) {
				return AddColumns(ctx, table, []arrow.Field{number("m")}, nil, EvolveOptions{})
			}, errs.ErrInvalid},
		"values that fail": {
			func() (Committed, error) {
				m := number("m")
				m.Nullable = true // else the fragments fail for two reasons, and either may be first
				return AddColumns(ctx, table, []arrow.Field{m}, failing, EvolveOptions{})
			}, errs.ErrOverflow},
		"dropping an unknown column": {func() (Committed, error) { return DropColumns(ctx, table, []string{"m"}, EvolveOptions{}) }, errs.ErrNotFound},
		"dropping an indexed column": {func() (Committed, error) { return DropColumns(ctx, table, []string{"tag"}, EvolveOptions{}) }, errs.ErrInvalid},
		"dropping every column": {func() (Committed, error) {
			return DropColumns(ctx, table, []string{"id", "tag", "n"}, EvolveOptions{DropIndices: true})
		}, errs.ErrInvalid},
		"renaming to a name that exists": {func() (Committed, error) { return RenameColumn(ctx, table, "n", "id", EvolveOptions{}) }, errs.ErrExists},
		"renaming to nothing":            {func() (Committed, error) { return RenameColumn(ctx, table, "n", "", EvolveOptions{}) }, errs.ErrInvalid},
		"NOT NULL over NULL": {func() (Committed, error) {
			return ModifyColumn(ctx, table, "tag", arrow.Field{Name: "tag", Type: arrow.BinaryTypes.String}, nil, EvolveOptions{})
		}, errs.ErrInvalid},
		"another type under an index": {func() (Committed, error) {
			return ModifyColumn(ctx, table, "tag", arrow.Field{Name: "tag", Type: arrow.BinaryTypes.LargeString, Nullable: true}, nil, EvolveOptions{})
		}, errs.ErrInvalid},
		"a type that is too narrow": {func() (Committed, error) {
			return ModifyColumn(ctx, table, "id", arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int8}, nil, EvolveOptions{})
		}, errs.ErrOverflow},
	} {
		if _, err := c.run(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v := latest(t, h.target).Version(); v != before {
		t.Errorf("version %d, want %d", v, before)
	}
	noGarbage(t, h.target)
	if _, err := DropColumns(ctx, table, []string{"tag"}, EvolveOptions{DropIndices: true}); err != nil {
		t.Fatal(err)
	}
	if n := len(latest(t, h.target).Indices); n != 0 {
		t.Errorf("%d indices on a column that is gone", n)
	}
}

// A column that is computed while rows come would lack theirs; one that is NULL everywhere does not mind.
func TestNewColumnsAndNewRows(t *testing.T) {
	ctx := context.Background()
	h, table := evolving(t, CreateOptions{})
	more := func() {
		t.Helper()
		if _, err := Append(ctx, h.target, h.fresh(h.rows, 3), AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	once := true
	values := &ColumnValues{Reads: []string{"n", "tag"}, Compute: func(ctx context.Context, rows arrow.RecordBatch) ([]arrow.Array, error) {
		if once {
			once = false
			more()
		}
		return doubled(ctx, rows)
	}}
	fields := []arrow.Field{{Name: "twice", Type: arrow.PrimitiveTypes.Int64}, {Name: "quoted", Type: arrow.BinaryTypes.String, Nullable: true}}
	if _, err := AddColumns(ctx, table, fields, values, EvolveOptions{Rows: RowOptions{Parallel: 1}}); !errors.Is(err, errs.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	noGarbage(t, h.target)
	e, err := evolve(ctx, openTable(t, h.target), EvolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	more()
	s, err := newFields([]arrow.Field{{Name: "none", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nextFieldID(e.at.Proto))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.merge(ctx, &mergeOp{base: e.at.Proto, fields: s}, nil); err != nil {
		t.Fatal(err)
	}
	if got := column(t, h.target, "none"); len(got) != len(h.rows) || maps.Clone(got)[h.next-1] != array.NullValueStr {
		t.Fatalf("%d rows, want %d", len(got), len(h.rows))
	}
}

func TestColumnChangesAreAllOrNothingAtEveryOperation(t *testing.T) {
	ctx := context.Background()
	h, _ := evolving(t, CreateOptions{StableRowIDs: true})
	base := h.target.Store.(*object.Memory)
	change := func(store object.Store) error {
		table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{ReadParallelism: 1})
		if err != nil {
			return err
		}
		fields := []arrow.Field{{Name: "twice", Type: arrow.PrimitiveTypes.Int64}, {Name: "quoted", Type: arrow.BinaryTypes.String, Nullable: true}}
		values := &ColumnValues{Reads: []string{"n", "tag"}, Compute: doubled}
		_, err = AddColumns(ctx, table, fields, values, EvolveOptions{Rows: RowOptions{Parallel: 1}})
		return err
	}
	atEveryOperation(t, base, change, func(what string, store *object.Memory, err error, lost bool) {
		target := Target{Store: store, Dir: "t.lance"}
		s, openErr := openTable(t, target).Latest(ctx)
		if openErr != nil {
			t.Fatalf("%s: %v", what, openErr)
		}
		isNew := s.Version() == 3
		if isNew != (err == nil) && (!lost || !isNew) {
			t.Fatalf("%s: version %d, %v", what, s.Version(), err)
		}
		if !isNew {
			(&history{t: t, what: what}).check("old", s, h.rows)
		} else if got := column(t, target, "twice"); len(got) != len(h.rows) {
			t.Fatalf("%s: %d rows", what, len(got))
		}
	})
}
