//go:build interop

package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/segtest"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

var filterColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "labels", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "nums", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	{Name: "tenant", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "score", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// filterRows has NULL lists, empty lists, NULL elements, labels of every kind, NULLs and repeated values.
func filterRows(first, rows int) arrow.RecordBatch {
	labels := []string{"ai", "drama", "it's", "日本", "", "wet"}
	b := array.NewRecordBuilder(memory.DefaultAllocator, filterColumns)
	defer b.Release()
	for i := first; i < first+rows; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		list, nums := b.Field(1).(*array.ListBuilder), b.Field(2).(*array.ListBuilder)
		list.Append(i%11 != 0)
		if i%11 != 0 {
			text := list.ValueBuilder().(*array.StringBuilder)
			for k := range i % 4 {
				text.Append(labels[(i/3+k*k)%len(labels)])
			}
			if i%9 == 0 {
				text.AppendNull()
			}
		}
		nums.Append(i%13 != 0)
		if i%13 != 0 {
			for k := range i % 3 {
				nums.ValueBuilder().(*array.Int32Builder).Append(int32(i%17 - 8 + k))
			}
		}
		if i%7 == 0 {
			b.Field(3).AppendNull()
		} else {
			b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("t%d", i%5))
		}
		if i%10 == 3 {
			b.Field(4).AppendNull()
		} else {
			b.Field(4).(*array.Float64Builder).Append(float64(i%1000)/8 - 20)
		}
	}
	return b.NewRecordBatch()
}

// filter is a question and the index that the engine must use for it.
type filter struct{ where, index string }

var filters = []filter{
	{"array_has(labels,'ai')", "labels_idx"},
	{"array_has(labels,'')", "labels_idx"},
	{"array_has(labels,'it''s')", "labels_idx"},
	{"array_has(labels,'nope')", "labels_idx"},
	{"NOT array_has(labels,'ai')", "labels_idx"},
	{"array_has_any(labels,['ai','日本'])", "labels_idx"},
	{"NOT array_has_any(labels,['ai','nope'])", "labels_idx"},
	{"array_has_all(labels,['ai','drama'])", "labels_idx"},
	{"NOT array_has_all(labels,['ai','drama'])", "labels_idx"},
	{"array_has_any(nums,[1,-3])", ""}, // the engine widens the literals and scans
	{"tenant = 't1'", "tenant_idx"},
	{"tenant IN ('t0','t4')", "tenant_idx"},
	{"tenant > 't2'", "tenant_idx"},
	{"tenant IS NULL", "tenant_idx"},
	{"NOT (tenant = 't1')", "tenant_idx"},
	{"score = 1", "score_idx"},
	{"score < -19.5", "score_idx"},
	{"score >= 100", "score_idx"},
	{"score BETWEEN 0 AND 5", "score_idx"},
	{"score IS NULL", "score_idx"},
	{"array_has(labels,'wet') AND tenant = 't3' AND score > 10", "labels_idx"},
}

// engineIDs returns the ids that the engine finds, with or without its scalar indices.
func engineIDs(t *testing.T, eng *Engine, path, where string, useIndex bool) []string {
	t.Helper()
	got := eng.Rows("scan", Request{"path": path, "filter": where, "columns": []string{"id"}, "use_scalar_index": useIndex})
	defer got.Release()
	return sortedTexts(Column(t, got, "id").(*array.Int64).Int64Values())
}

// sameAnswers compares the engine by index, the engine by scan, lakesql by index and lakesql by scan. Where the engine left entries of
// updated rows in a merged segment (docs/format/label_list.md section 5) its own index is wrong, and lakesql's answers must be right all the same.
func sameAnswers(t *testing.T, eng *Engine, path, after string) {
	t.Helper()
	sameAnswersTo(t, eng, path, after, filters, false)
}

// sameAnswersTo returns the engine's plans.
func sameAnswersTo(t *testing.T, eng *Engine, path, after string, filters []filter, engineIsWrong bool) (plans []string) {
	t.Helper()
	d := segtest.OpenDataset(t, path)
	asked := 0
	var texts []string
	for _, f := range filters {
		texts = append(texts, f.where)
	}
	var theirs engineCheck
	eng.Do("check", Request{"path": path, "filters": texts}, &theirs)
	for i, f := range filters {
		w := segtest.ParseWhere(t, f.where)
		want := sortedTexts(theirs.Answers[i].Scan)
		plans = append(plans, theirs.Answers[i].Plan)
		if got := sortedTexts(theirs.Answers[i].Index); !slices.Equal(got, want) && d.Stale == 0 && !engineIsWrong {
			t.Errorf("%s, %s: the engine finds %d rows by index, %d by scan", after, f.where, len(got), len(want))
		}
		byIndex, byScan := d.Lookup(t, w, &asked), d.Scan(t, w, d.Live)
		if got := d.IDs(byIndex.True); !slices.Equal(got, want) {
			t.Errorf("%s, %s: lakesql finds %d rows by index, the engine %d", after, f.where, len(got), len(want))
		}
		if !rowset.Equal(byIndex.True, byScan.True) || !rowset.Equal(byIndex.Null, byScan.Null) {
			t.Errorf("%s, %s: lakesql's scan differs from its index", after, f.where)
		}
	}
	if asked < len(filters) {
		t.Errorf("%s: %d questions went to an index", after, asked)
	}
	return plans
}

// sortedTexts spells ids in their order.
func sortedTexts(ids []int64) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = fmt.Sprint(id)
	}
	return out
}

func buildFilterIndices(t *testing.T, target write.Target, opts write.FilterIndexOptions) {
	t.Helper()
	table, err := storage.OpenTable(context.Background(), target.Store, target.Dir, storage.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []write.FilterIndexSpec{
		{Column: "labels", Kind: index.KindLabelList}, {Column: "nums", Kind: index.KindLabelList},
		{Column: "tenant", Kind: index.KindBitmap}, {Column: "score", Kind: index.KindBTree},
	} {
		if _, err := write.BuildFilterIndex(context.Background(), table, spec, opts); err != nil {
			t.Fatal(err)
		}
	}
}
