//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
)

// TestRandomHistoriesReadEqual reads what the engine made of random histories, by Scan and by Take.
func TestRandomHistoriesReadEqual(t *testing.T) {
	for seed := range 3 {
		dir := t.TempDir()
		cmd := exec.Command(interpreter(), filepath.Join(testutil.Root(t), "test", "interop", "churn.py"), dir, fmt.Sprint(seed)) //nolint:gosec // the test's own script
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, out)
		}
		found, err := filepath.Glob(filepath.Join(dir, "*.lance"))
		if err != nil || len(found) != 6 {
			t.Fatalf("%d datasets, %v", len(found), err)
		}
		for _, path := range found {
			t.Run(fmt.Sprintf("seed %d %s", seed, filepath.Base(path)), func(t *testing.T) { checkHistory(t, path) })
		}
	}
}

func checkHistory(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	store, err := object.OpenLocal(filepath.Dir(path), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	table, err := storage.OpenTable(ctx, store, filepath.Base(path), storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[any]map[string]any)
	for _, row := range testutil.LoadExpected(t, path).Rows {
		want[row["id"]] = row
	}
	scan, err := snap.Scan(ctx, storage.ScanOptions{BatchRows: 64, WithRowAddr: true, WithRowID: true})
	if err != nil {
		t.Fatal(err)
	}
	var addrs []rowset.RowAddr
	var keys []uint64
	for r := scan.Reader(); ; {
		b, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n := int(b.NumCols())
		for i, row := range testutil.Rows(b) {
			addrs = append(addrs, rowset.RowAddr(b.Column(n-2).(*array.Uint64).Value(i)))
			keys = append(keys, b.Column(n-1).(*array.Uint64).Value(i))
			delete(row, storage.RowAddrColumn)
			delete(row, storage.RowIDColumn)
			testutil.CompareRow(t, fmt.Sprintf("id %v", row["id"]), row, want[row["id"]])
		}
		b.Release()
	}
	if len(addrs) != len(want) || snap.Rows() != uint64(len(want)) {
		t.Fatalf("%d rows read, %d counted, want %d", len(addrs), snap.Rows(), len(want))
	}
	resolved, ok, err := snap.ResolveKeys(ctx, keys)
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		if !ok[i] || resolved[i] != addrs[i] {
			t.Fatalf("key %d is at %s, %t, want %s", keys[i], resolved[i], ok[i], addrs[i])
		}
	}
	if len(addrs) == 0 {
		return
	}
	shuffled := make([]rowset.RowAddr, 2*len(addrs))
	r := rand.New(rand.NewSource(1)) //nolint:gosec // not for secrets
	for i := range shuffled {
		shuffled[i] = addrs[r.Intn(len(addrs))]
	}
	b, err := snap.Take(ctx, shuffled, storage.TakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	for i, row := range testutil.Rows(b) {
		testutil.CompareRow(t, fmt.Sprintf("take %d, id %v", i, row["id"]), row, want[row["id"]])
	}
}
