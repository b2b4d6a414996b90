package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

// TestIndicesDroppedMeanwhile: another server drops an index while this one tidies up; the rest goes on.
func TestIndicesDroppedMeanwhile(t *testing.T) {
	for _, text := range []string{"OPTIMIZE TABLE t", "CALL lakesql.optimize_indices('t')"} {
		t.Run(text, func(t *testing.T) {
			dir := t.TempDir()
			_, other := openLance(t, dir, lance.Options{})
			do(t, other, "CREATE TABLE t (id BIGINT, tag VARCHAR(5), INDEX a (id) USING BTREE, INDEX b (tag) USING BITMAP)", "INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, 'y')")
			store, err := object.OpenLocal(dir, object.LocalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			faulty := object.NewFaulty(store, object.FaultyOptions{})
			e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{lance.Open("lake", faulty, lance.Options{})}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			s := inLake(t, e)
			faulty.Arm(object.FaultyOptions{FailAt: 1, OnlyChanges: true, Instead: func() { do(t, other, "DROP INDEX b ON t") }})
			lines, _ := run(t, s, text)
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "b") && strings.Contains(l, "dropped meanwhile") }) {
				t.Errorf("%q says nothing of the index", lines)
			}
			if lines, _ := run(t, s, "SELECT index_name, uncovered_rows FROM lakesql.indices WHERE table_name = 't'"); !slices.Equal(lines, []string{"a\t0"}) {
				t.Errorf("indices are %q", lines)
			}
		})
	}
}
