//go:build interop

package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/write"
)

// idsWhere returns the ids of the rows that match, by the engine's index or by its scan.
func idsWhere(t *testing.T, eng *Engine, path, filter string, byIndex bool) []int64 {
	t.Helper()
	got := eng.Rows("scan", Request{"path": path, "filter": filter, "columns": []string{"id"}, "use_scalar_index": byIndex})
	defer got.Release()
	col, ok := Column(t, got, "id").(*array.Int64)
	if !ok {
		t.Fatal("ids are no int64")
	}
	out := slices.Clone(col.Int64Values())
	slices.Sort(out)
	return out
}

// CheckIndexUse makes sure that the engine's plan names our index for each filter and that index and scan agree.
func CheckIndexUse(t *testing.T, eng *Engine, path, name string, filters []string) {
	t.Helper()
	for _, f := range filters {
		plan := eng.Explain(Request{"path": path, "filter": f, "columns": []string{"id"}})
		if !strings.Contains(plan, "ScalarIndexQuery") || !strings.Contains(plan, name) {
			t.Fatalf("the plan of %s does not use %s:\n%s", f, name, plan)
		}
		byIndex, byScan := idsWhere(t, eng, path, f, true), idsWhere(t, eng, path, f, false)
		if !slices.Equal(byIndex, byScan) {
			t.Fatalf("%s: %d rows by index, %d by scan", f, len(byIndex), len(byScan))
		}
	}
}

func buildIndex(t *testing.T, target write.Target, column string, kind index.Kind, opts write.FilterIndexOptions) {
	t.Helper()
	table, err := storage.OpenTable(context.Background(), target.Store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.BuildFilterIndex(context.Background(), table, write.FilterIndexSpec{Column: column, Kind: kind}, opts); err != nil {
		t.Fatal(err)
	}
}
