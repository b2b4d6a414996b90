//go:build interop

package interop

import (
	"context"
	"errors"
	"io"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

// ourScan reads the newest version of a table with lakesql.
func ourScan(t *testing.T, store object.Store, dir string) arrow.Table {
	t.Helper()
	ctx := context.Background()
	table, err := storage.OpenTable(ctx, store, dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	scan, err := snap.Scan(ctx, storage.ScanOptions{WithRowID: true})
	if err != nil {
		t.Fatal(err)
	}
	reader := scan.Reader()
	defer reader.Close()
	var all []arrow.RecordBatch
	for {
		b, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return array.NewTableFromRecords(scan.Schema(), all)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
}

// CheckOurScan compares what lakesql reads from a table, its row ids included, with what the engine reads.
func CheckOurScan(t *testing.T, eng *Engine, store object.Store, root, dir string) {
	t.Helper()
	ours := ourScan(t, store, dir)
	defer ours.Release()
	theirs := eng.Rows("scan", Request{"path": filepath.Join(root, dir), "with_row_id": true})
	defer theirs.Release()
	for _, f := range theirs.Schema().Fields() {
		MustEqual(t, "our scan of "+f.Name, Column(t, theirs, f.Name), Column(t, ours, f.Name))
	}
}

// Values of many sizes up to a megabyte, alone and in lists with and without a struct around them.
func TestTheEngineReadsLargeValues(t *testing.T) {
	eng := StartPython(t)
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "blob", Type: arrow.BinaryTypes.Binary, Nullable: true},
		{Name: "large", Type: arrow.BinaryTypes.LargeString, Nullable: true},
		{Name: "blobs", Type: arrow.ListOf(arrow.BinaryTypes.Binary), Nullable: true},
		{Name: "inside", Type: arrow.StructOf(arrow.Field{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}), Nullable: true},
	}, nil)
	r := rand.New(rand.NewSource(1))
	text := func() string {
		n := []int{0, 3, 250, 300, 5000, 40_000, 200_000}[r.Intn(7)]
		if r.Intn(40) == 0 {
			n = 1 << 20
		}
		return strings.Repeat(string(rune('a'+r.Intn(26))), n)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for i := range 120 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if i%9 == 4 {
			for _, f := range b.Fields()[1:] {
				f.AppendNull()
			}
			continue
		}
		b.Field(1).(*array.BinaryBuilder).Append([]byte(text()))
		b.Field(2).(*array.LargeStringBuilder).Append(text())
		blobs, inside := b.Field(3).(*array.ListBuilder), b.Field(4).(*array.StructBuilder)
		blobs.Append(true)
		inside.Append(true)
		list := inside.FieldBuilder(0).(*array.ListBuilder)
		list.Append(true)
		for range r.Intn(3) {
			blobs.ValueBuilder().(*array.BinaryBuilder).Append([]byte(text()))
			list.ValueBuilder().(*array.StringBuilder).Append(text())
		}
	}
	want := b.NewRecordBatch()
	defer want.Release()
	store, dir := local(t)
	for _, pageBytes := range []int{0, 100_000} {
		name := map[int]string{0: "a.lance", 100_000: "b.lance"}[pageBytes]
		_, err := write.CreateTable(context.Background(), write.Target{Store: store, Dir: name}, s, write.CreateOptions{
			Version: file.V22, Rows: write.RowOptions{PageBytes: pageBytes}, Parts: []write.Batches{&batches{rows: sliced(want, 50)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		checkAnswers(t, eng, filepath.Join(dir, name), want)
		CheckOurScan(t, eng, store, dir, name)
	}
}

// The engine makes a table and changes its columns and rows; we append and index; the engine and we read the same.
func TestWeGoOnFromTheEnginesTable(t *testing.T) {
	for engine, eng := range StartPythons(t) {
		goOnFromTheEnginesTable(t, engine, eng)
	}
}

func goOnFromTheEnginesTable(t *testing.T, engine string, eng *Engine) {
	t.Helper()
	for _, c := range []struct {
		name   string
		create Request
	}{
		{"version 2.2", Request{"data_storage_version": "2.2"}},
		{"version 2.1 with stable ids", Request{"data_storage_version": "2.1", "stable_row_ids": true}},
		{"version 2.2 with old manifest names", Request{"data_storage_version": "2.2", "names_v1": true}},
	} {
		t.Run(engine+" "+c.name, func(t *testing.T) {
			store, dir := local(t)
			target, path := write.Target{Store: store, Dir: "t.lance"}, filepath.Join(dir, "t.lance")
			r := Request{"path": path, "in": eng.Send(people(2000, 0)), "max_rows_per_file": 600}
			for k, v := range c.create {
				r[k] = v
			}
			eng.Do("create", r, nil)
			eng.Do("create_index", Request{"path": path, "column": "labels", "kind": "LABEL_LIST"}, nil)
			eng.Do("add_columns", Request{"path": path, "values": map[string]string{"twice": "id * 2"}}, nil)
			eng.Do("drop_columns", Request{"path": path, "columns": []string{"v"}}, nil)
			eng.Do("rename", Request{"path": path, "column": "name", "to": "called"}, nil)
			eng.Do("delete", Request{"path": path, "filter": "id % 7 = 1"}, nil)
			eng.Do("config", Request{"path": path, "values": map[string]string{"owner": "us"}}, nil)

			more := people(500, 2000)
			s := arrow.NewSchema([]arrow.Field{
				more.Schema().Field(0), {Name: "called", Type: arrow.BinaryTypes.String, Nullable: true}, more.Schema().Field(2),
				{Name: "twice", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			}, nil)
			rows := array.NewRecordBatch(s, []arrow.Array{more.Column(0), more.Column(1), more.Column(2), more.Column(0)}, 500)
			appendRows(t, target, rows, write.AppendOptions{})
			buildIndex(t, target, "labels", index.KindLabelList, write.FilterIndexOptions{Extend: true})
			buildIndex(t, target, "called", index.KindBitmap, write.FilterIndexOptions{})

			CheckOurScan(t, eng, store, dir, "t.lance")
			CheckIndexUse(t, eng, path, "labels_idx", []string{"array_has(labels, 'value-1')", "NOT array_has(labels, 'value-1')"})
			CheckIndexUse(t, eng, path, "called_idx", []string{"called = 'value-1'", "called IS NULL"})
			if got := count(t, eng, path, "twice >= 0"); got != 2000-286+500 {
				t.Fatalf("%d rows with the added column", got)
			}
			eng.Do("compact", Request{"path": path}, nil)
			eng.Do("optimize_indices", Request{"path": path}, nil)
			appendRows(t, target, rows, write.AppendOptions{})
			CheckOurScan(t, eng, store, dir, "t.lance")
			CheckIndexUse(t, eng, path, "labels_idx", []string{"array_has(labels, 'value-1')"})
			checkRowIDs(t, eng, path, c.create["stable_row_ids"] == true)
		})
	}
}
