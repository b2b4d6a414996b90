//go:build stores

package stores

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/source/files"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object/cloud"
	"github.com/lakesql/lakesql/write"
	"github.com/lakesql/lakesql/write/transfer"
)

// Files of a bucket, found by a pattern, become a table of the bucket, and its rows files of the bucket again.
func TestImportAndExportInABucket(t *testing.T) {
	ctx := context.Background()
	s := startServer(t)
	store := s.open(t, "")
	defer func() { must(t, store.Close()) }()
	for name, text := range map[string]string{"in/a/1.csv": "id,l\n1,\"['x']\"\n2,\n", "in/a/2.csv": "id,l\n3,\"['y','z']\"\n", "in/b/3.csv": "id,l\n4,\n", "in/b/no.txt": "id\n"} {
		must(t, store.Put(ctx, name, []byte(text), false))
	}
	run := func() transfer.Imported {
		finder := &files.Finder{Open: cloud.Open}
		defer func() { must(t, finder.Close()) }()
		found, err := finder.Find(ctx, []string{s.url("in/**/*.csv")})
		must(t, err)
		done, err := transfer.Import(ctx, write.Target{Store: store, Dir: "t.lance"}, found, transfer.ImportOptions{CommitRows: 1})
		must(t, err)
		return done
	}
	if done := run(); done.Files != 3 || done.Rows != 4 || done.Commits != 3 {
		t.Fatalf("%+v", done)
	}
	if done := run(); done.Files != 0 || len(done.Known) != 3 {
		t.Fatalf("%+v", done)
	}
	table, err := storage.OpenTable(ctx, store, "t.lance", storage.TableOptions{})
	must(t, err)
	snap, err := table.Latest(ctx)
	must(t, err)
	for _, to := range []string{"out/t.parquet", "out/parts"} {
		rows, err := transfer.TableRows(ctx, snap, nil)
		must(t, err)
		done, err := transfer.Export(ctx, rows, store, to, transfer.ExportOptions{Folder: to == "out/parts", RowsPerFile: int64(strings.Count(to, "parts")) * 3})
		must(t, err)
		must(t, rows.Close())
		if done.Rows != 4 || !slices.Contains([]int{1, 2}, len(done.Files)) {
			t.Fatalf("%+v", done)
		}
		finder := &files.Finder{Open: cloud.Open}
		found, err := finder.Find(ctx, []string{s.url("out/")})
		must(t, err)
		again, err := transfer.Import(ctx, write.Target{Store: store, Dir: "again.lance"}, found, transfer.ImportOptions{Mode: transfer.ModeReplace})
		must(t, err)
		if want := map[string]int64{"out/t.parquet": 4, "out/parts": 8}[to]; again.Rows != want { // what both exports wrote
			t.Fatalf("%s: %+v", to, again)
		}
		must(t, finder.Close())
	}
}
