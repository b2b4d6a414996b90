//go:build unix

package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/write"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const (
	fragments    = 4
	fragmentRows = 6_000
	dim          = 16
	wideBytes    = 1024
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "v", Type: arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32), Nullable: true},
	{Name: "wide", Type: arrow.BinaryTypes.Binary, Nullable: true},
}, nil)

// rows yields one batch for each fragment.
type rows struct{ at int }

func (r *rows) Next(context.Context) (arrow.RecordBatch, error) {
	if r.at == fragments {
		return nil, io.EOF
	}
	rnd := rand.New(rand.NewSource(int64(r.at)))
	b := array.NewRecordBuilder(arrowmem.DefaultAllocator, columns)
	defer b.Release()
	vectors := b.Field(1).(*array.FixedSizeListBuilder)
	value := make([]byte, wideBytes)
	for i := range fragmentRows {
		b.Field(0).(*array.Int64Builder).Append(int64(r.at*fragmentRows + i))
		vectors.Append(true)
		for range dim {
			vectors.ValueBuilder().(*array.Float32Builder).Append(float32(rnd.NormFloat64()))
		}
		rnd.Read(value)
		b.Field(2).(*array.BinaryBuilder).Append(value)
	}
	r.at++
	return b.NewRecordBatch(), nil
}

// makeLake writes table t of four fragments and table other, which stays whole.
func makeLake(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"t.lance", "other.lance"} {
		opts := write.CreateOptions{Parts: []write.Batches{&rows{}}, Rows: write.RowOptions{FragmentRows: fragmentRows}}
		if _, err := write.CreateTable(context.Background(), write.Target{Store: store, Dir: name}, columns, opts); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, dir string, opts object.LocalOptions) *engine.Engine {
	t.Helper()
	store, err := object.OpenLocal(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(context.Background(), engine.Config{Catalogs: []source.Catalog{lance.Open("lake", store, lance.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// dataFiles lists the data files of t.
func dataFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "t.lance", "data", "*.lance"))
	if err != nil || len(files) != fragments {
		t.Fatalf("%d data files, %v", len(files), err)
	}
	slices.Sort(files)
	return files
}

// read runs a statement; after is called when the first batch is there.
func read(e *engine.Engine, text string, after func()) (n int64, err error) {
	s := e.NewSession(engine.SessionOptions{Database: "lake"})
	defer s.Close()
	res, err := s.Query(context.Background(), text)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, res.Close()) }()
	for {
		b, err := res.Operator.Next(res.Context())
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += b.NumRows()
		b.Release()
		if after != nil {
			after()
			after = nil
		}
	}
}

var statements = []string{
	"SELECT id, LENGTH(wide) FROM t",
	"SELECT COUNT(DISTINCT wide), SUM(id) FROM t",
	"SELECT id FROM t ORDER BY wide DESC LIMIT 5",
	"SELECT id FROM t ORDER BY l2_distance(v, [1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]) LIMIT 20000",
	"SELECT id, HEX(wide) FROM t ORDER BY l2_distance(v, [1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]) LIMIT 20000",
	"SELECT COUNT(*) FROM t a JOIN other b ON a.id = b.id AND a.wide = b.wide",
}

func TestFilesTruncatedBelowTheirMappings(t *testing.T) {
	dir := makeLake(t)
	e := open(t, dir, object.LocalOptions{})
	for _, text := range statements {
		if n, err := read(e, text, nil); err != nil || n == 0 {
			t.Fatalf("%s: %d rows, %v", text, n, err)
		}
	}
	cut := func() {
		for _, f := range dataFiles(t, dir) {
			if err := os.Truncate(f, 4096); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := read(e, statements[0], cut); !errors.Is(err, errs.ErrIO) {
		t.Errorf("cut in mid-query: %v", err)
	}
	for _, text := range statements {
		if _, err := read(e, text, nil); !errors.Is(err, errs.ErrIO) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if used := e.Budget().Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
	checkAlive(t, e)
}

func checkAlive(t *testing.T, e *engine.Engine) {
	t.Helper()
	if n, err := read(e, "SELECT id, wide FROM other", nil); err != nil || n != fragments*fragmentRows {
		t.Errorf("another table: %d rows, %v", n, err)
	}
}

func TestFilesThatVanish(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  object.LocalOptions
		warm  bool
		fails bool
	}{
		{"mapped before", object.LocalOptions{}, true, false}, // the mapping keeps the file
		{"not opened yet", object.LocalOptions{}, false, true},
		{"read by position", object.LocalOptions{MappingsMax: -1, SmallBytes: -1}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := makeLake(t)
			e := open(t, dir, c.opts)
			if c.warm {
				if _, err := read(e, statements[0], nil); err != nil {
					t.Fatal(err)
				}
			}
			n, err := read(e, statements[0], func() {
				for _, f := range dataFiles(t, dir) {
					if err := os.Remove(f); err != nil {
						t.Fatal(err)
					}
				}
			})
			if c.fails && !errors.Is(err, errs.ErrIO) {
				t.Errorf("%d rows, %v", n, err)
			}
			if !c.fails && (err != nil || n != fragments*fragmentRows) {
				t.Errorf("%d rows, %v", n, err)
			}
			if c.fails {
				for _, text := range statements {
					if _, err := read(e, text, nil); !errors.Is(err, errs.ErrIO) {
						t.Errorf("%s: %v", text, err)
					}
				}
			}
			checkAlive(t, e)
			if used := e.Budget().Used(); used != 0 {
				t.Errorf("%d bytes are still reserved", used)
			}
		})
	}
}

// TestIndexFilesThatVanish takes the files of an index away, or cuts them, after it was opened.
func TestIndexFilesThatVanish(t *testing.T) {
	for _, c := range []struct {
		name string
		opts object.LocalOptions
		harm func(path string) error
	}{
		{"deleted", object.LocalOptions{MappingsMax: -1, SmallBytes: -1}, os.Remove},
		{"truncated below a mapping", object.LocalOptions{}, func(path string) error { return os.Truncate(path, 4096) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := makeLake(t)
			makeIndex(t, dir)
			e := open(t, dir, c.opts)
			if n, err := read(e, "SELECT id FROM t WHERE id = 5", nil); err != nil || n != 1 {
				t.Fatalf("%d rows, %v", n, err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "t.lance", "_indices", "*", "page_data.lance"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%d files of the index, %v", len(files), err)
			}
			if err := c.harm(files[0]); err != nil {
				t.Fatal(err)
			}
			if n, err := read(e, "SELECT id FROM t WHERE id = 20000", nil); err != nil || n != 1 { // by reading the rows
				t.Errorf("%d rows, %v", n, err)
			}
			checkAlive(t, e)
		})
	}
}

func makeIndex(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	store, err := object.OpenLocal(dir, object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.BuildFilterIndex(ctx, table, write.FilterIndexSpec{Column: "id", Kind: index.KindBTree}, write.FilterIndexOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTheServerStaysUp truncates files while a client reads them.
func TestTheServerStaysUp(t *testing.T) {
	dir := makeLake(t)
	e := open(t, dir, object.LocalOptions{})
	srv, err := server.Start(context.Background(), e, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", "root@tcp("+srv.Addr().String()+")/lake")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(db.Close(), srv.Close()); err != nil {
			t.Error(err)
		}
	}()
	if n, err := count(db, "SELECT id, wide FROM t", nil); err != nil || n != fragments*fragmentRows {
		t.Fatalf("%d rows, %v", n, err)
	}
	n, err := count(db, "SELECT id, wide FROM t", func() {
		for _, f := range dataFiles(t, dir) {
			if err := os.Truncate(f, 4096); err != nil {
				t.Fatal(err)
			}
		}
	})
	var answer *mysql.MySQLError
	if err == nil || n == fragments*fragmentRows {
		t.Errorf("%d rows, %v", n, err)
	}
	for _, text := range statements {
		if _, err := count(db, text, nil); !errors.As(err, &answer) || answer.Number != 1815 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n, err := count(db, "SELECT id, wide FROM other", nil); err != nil || n != fragments*fragmentRows {
		t.Errorf("another table: %d rows, %v", n, err)
	}
}

// count reads the rows of a statement; after is called when the first is there.
func count(db *sql.DB, text string, after func()) (n int, err error) {
	rows, err := db.Query(text)
	if err != nil {
		return 0, fmt.Errorf("query: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if n++; n == 1 && after != nil {
			after()
		}
	}
	return n, rows.Err()
}
