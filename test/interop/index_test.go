//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
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

func TestTheEngineUsesOurScalarIndices(t *testing.T) {
	for engine, eng := range StartPythons(t) {
		t.Run(engine, func(t *testing.T) { useOurScalarIndices(t, eng) })
	}
}

func useOurScalarIndices(t *testing.T, eng *Engine) {
	t.Helper()
	for _, c := range []struct {
		kind    index.Kind
		column  string
		filters []string
	}{
		{index.KindLabelList, "labels", []string{
			"array_has(labels, 'value-1')", "array_has_any(labels, ['value-1', 'value-2'])", "array_has_all(labels, ['value-1', 'value-2'])",
			"NOT array_has(labels, 'value-1')", "array_has(labels, 'nowhere')",
		}},
		{index.KindBitmap, "name", []string{"name = 'value-1'", "name IN ('value-1', 'value-2')", "name IS NULL", "name != 'value-3'"}},
		{index.KindBTree, "id", []string{"id = 17", "id < 100", "id >= 100 AND id < 250", "id IN (1, 2, 2999, 77777)"}},
	} {
		for _, stable := range []bool{false, true} {
			for _, v := range []file.Version{file.V21, file.V22} {
				t.Run(fmt.Sprintf("%s %s stable ids %t", c.kind, v, stable), func(t *testing.T) {
					store, dir := local(t)
					target, path := write.Target{Store: store, Dir: "t.lance"}, filepath.Join(dir, "t.lance")
					first := people(3000, 0)
					_, err := write.CreateTable(context.Background(), target, first.Schema(), write.CreateOptions{
						Version: v, StableRowIDs: stable, Rows: write.RowOptions{FragmentRows: 1000},
						Parts: []write.Batches{&batches{rows: sliced(first, 700)}},
					})
					if err != nil {
						t.Fatal(err)
					}
					buildIndex(t, target, c.column, c.kind, write.FilterIndexOptions{})
					name := c.column + "_idx"
					CheckIndexUse(t, eng, path, name, c.filters)

					// Rows that come, go and move, then everything compacted and the index brought up to date.
					eng.Do("append", Request{"path": path, "in": eng.Send(people(500, 3000))}, nil)
					eng.Do("delete", Request{"path": path, "filter": "id % 10 = 3"}, nil)
					eng.Do("update", Request{"path": path, "filter": "id % 10 = 4", "values": map[string]string{"name": "'value-2'"}}, nil)
					CheckIndexUse(t, eng, path, name, c.filters)
					appendRows(t, target, people(300, 4000), write.AppendOptions{})
					CheckIndexUse(t, eng, path, name, c.filters)
					eng.Do("compact", Request{"path": path}, nil)
					CheckIndexUse(t, eng, path, name, c.filters)
					eng.Do("optimize_indices", Request{"path": path}, nil)
					CheckIndexUse(t, eng, path, name, c.filters)

					appendRows(t, target, people(300, 5000), write.AppendOptions{})
					buildIndex(t, target, c.column, c.kind, write.FilterIndexOptions{Extend: true})
					CheckIndexUse(t, eng, path, name, c.filters)
					buildIndex(t, target, c.column, c.kind, write.FilterIndexOptions{Replace: true})
					CheckIndexUse(t, eng, path, name, c.filters)
					if got := eng.Info(path); len(got.Indices) != 1 || got.Indices[0].Name != name {
						t.Fatalf("indices %+v", got.Indices)
					}
				})
			}
		}
	}
}
