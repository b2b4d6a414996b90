//go:build interop

package interop

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
	"github.com/lakesql/lakesql/write/transfer"
)

func importInto(t *testing.T, store object.Store, table string, opts transfer.ImportOptions, sources ...string) transfer.Imported {
	t.Helper()
	ctx := context.Background()
	finder := &files.Finder{}
	defer func() { _ = finder.Close() }()
	found, err := finder.Find(ctx, sources)
	if err != nil {
		t.Fatal(err)
	}
	done, err := transfer.Import(ctx, write.Target{Store: store, Dir: table}, found, opts)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// Files of every type that pyarrow writes are imported so that pylance reads the same values, and exported so that pyarrow does.
func TestFilesOfPyarrow(t *testing.T) {
	py := StartPython(t)
	columns := slices.DeleteFunc(testutil.Columns(true), func(f arrow.Field) bool { return f.Name == "nothing" || f.Name == "vec_bool" || f.Name == "vec_vec" })
	maker := testutil.RowMaker{R: rand.New(rand.NewSource(7)), Nulls: 0.2, ItemNulls: 0.1, Distinct: 40}
	want := maker.Batch(memory.DefaultAllocator, arrow.NewSchema(columns, nil), 900)
	sent := py.Send(want)
	for _, ext := range []string{".parquet", ".arrow"} {
		store, dir := local(t)
		file := filepath.Join(dir, "from"+ext)
		py.Do("write_file", Request{"rows": sent, "path": file, "batch": 250}, nil)
		importInto(t, store, "t.lance", transfer.ImportOptions{}, file)
		same := func(a, b string) {
			t.Helper()
			var differs []string
			py.Do("same", Request{"a": a, "b": b}, &differs)
			for _, d := range differs {
				t.Errorf("%s: %s", ext, d)
			}
		}
		same(file, filepath.Join(dir, "t.lance"))
		ctx := context.Background()
		table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := table.Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{"to.parquet", "to.arrow"} {
			rows, err := transfer.TableRows(ctx, snap, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := transfer.Export(ctx, rows, store, to, transfer.ExportOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
			same(file, filepath.Join(dir, to))
		}
	}
}

// pylance appends to, changes and compacts a table that an import made, and the import still knows its files.
func TestTheRecordOfImportsOutlivesPylance(t *testing.T) {
	py := StartPython(t)
	store, dir := local(t)
	path := filepath.Join(dir, "t.lance")
	for name, text := range map[string]string{
		"a.ndjson": `{"id":1,"labels":["x","y"],"v":[0.5,1,2,3,4,5,6,7]}` + "\n" + `{"id":2,"labels":null,"v":null}`, "b.csv": "id,labels,v\n3,\"['z']\",\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	importInto(t, store, "t.lance", transfer.ImportOptions{}, filepath.Join(dir, "a.ndjson"))
	rows := py.Rows("scan", Request{"path": path})
	if v := rows.Schema().Field(2).Type; v.ID() != arrow.FIXED_SIZE_LIST || rows.NumRows() != 2 {
		t.Fatalf("%d rows of %s", rows.NumRows(), rows.Schema())
	}
	if got := Column(t, rows, "labels").String() + Column(t, rows, "v").String(); got != `[["x" "y"] (null)][[0.5 1 2 3 4 5 6 7] (null)]` {
		t.Fatal(got)
	}
	py.Do("delete", Request{"path": path, "filter": "id = 2"}, nil)
	py.Do("compact", Request{"path": path}, nil)
	if done := importInto(t, store, "t.lance", transfer.ImportOptions{}, filepath.Join(dir, "a.ndjson")); len(done.Known) != 1 || done.Files != 0 {
		t.Fatalf("%+v", done)
	}
	if done := importInto(t, store, "t.lance", transfer.ImportOptions{}, filepath.Join(dir, "b.csv")); done.Rows != 1 {
		t.Fatalf("%+v", done)
	}
	if info := py.Info(path); info.Rows != 2 {
		t.Fatalf("%+v", info)
	}
}
