package sql

import (
	"context"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestCopiesKeepEveryValue: values of every type go through INSERT ... SELECT and CREATE TABLE ... AS SELECT as they are.
func TestCopiesKeepEveryValue(t *testing.T) {
	dir := t.TempDir()
	columns := append([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, testutil.Columns(true)...)
	rows := testutil.RowMaker{R: rand.New(rand.NewSource(1)), Nulls: 0.2, Empty: 0.1}.Batch(memory.DefaultAllocator, arrow.NewSchema(columns, nil), 60)
	lakes.Build(t, dir, lakes.Bare, lakes.Table{Name: "a", Fields: columns, Batches: []arrow.RecordBatch{rows}})
	l := lakes.Open(t, dir, engine.Config{})
	for _, text := range []string{"CREATE TABLE b LIKE a", "INSERT INTO b SELECT * FROM a", "CREATE TABLE c AS SELECT * FROM a"} {
		l.Set(t, text)
	}
	for _, name := range []string{"b", "c"} {
		got, err := lakes.Rows(context.Background(), l.Session, "SELECT * FROM "+name)
		if err != nil {
			t.Fatal(err)
		}
		testutil.CompareRows(t, name, got, testutil.Rows(rows))
	}
}
