//go:build interop

package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/write"
)

// lanceDBHits asks LanceDB for the nearest rows and returns ids and distances.
func lanceDBHits(eng *Engine, r Request) (ids []int64, distances []float64) {
	var rows []struct {
		ID       int64   `json:"id"`
		Distance float64 `json:"_distance"`
	}
	eng.Do("query", r, &rows)
	for _, row := range rows {
		ids, distances = append(ids, row.ID), append(distances, row.Distance)
	}
	return ids, distances
}

func TestLanceDBOpensFiltersAndSearchesOurTable(t *testing.T) {
	eng := StartNode(t)
	store, dir := local(t)
	target := write.Target{Store: store, Dir: "people.lance"}
	rows := people(3000, 0)
	_, err := write.CreateTable(context.Background(), target, rows.Schema(), write.CreateOptions{
		Rows: write.RowOptions{FragmentRows: 1000}, Parts: []write.Batches{&batches{rows: sliced(rows, 700)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	buildIndex(t, target, "labels", index.KindLabelList, write.FilterIndexOptions{})
	table := func(r Request) Request {
		all := Request{"lake": dir, "table": "people"}
		for k, v := range r {
			all[k] = v
		}
		return all
	}

	var names []string
	eng.Do("tables", Request{"lake": dir}, &names)
	if !slices.Equal(names, []string{"people"}) {
		t.Fatalf("tables %v", names)
	}
	labels, ok := rows.Column(2).(*array.List)
	if !ok {
		t.Fatal("labels are no lists")
	}
	words, ok := labels.ListValues().(*array.String)
	if !ok {
		t.Fatal("labels are no strings")
	}
	var want int
	for i := range labels.Len() {
		from, to := labels.ValueOffsets(i)
		for j := from; j < to; j++ {
			if words.IsValid(int(j)) && words.Value(int(j)) == "value-1" {
				want++
				break
			}
		}
	}
	const filter = "array_has(labels, 'value-1')"
	count := func() (n int) {
		eng.Do("count", table(Request{"filter": filter}), &n)
		return n
	}
	if got := count(); got != want {
		t.Fatalf("%d labelled rows, want %d", got, want)
	}
	var plan string
	eng.Do("explain", table(Request{"filter": filter, "select": []string{"id"}}), &plan)
	if !strings.Contains(plan, "labels_idx") {
		t.Fatalf("LanceDB does not use the label index:\n%s", plan)
	}

	vectors, ok := rows.Column(3).(*array.FixedSizeList)
	if !ok {
		t.Fatal("vectors are no lists")
	}
	items, ok := vectors.ListValues().(*array.Float32)
	if !ok {
		t.Fatal("vectors are no floats")
	}
	row := 0
	for vectors.IsNull(row) {
		row++
	}
	from, to := vectors.ValueOffsets(row)
	ids, distances := lanceDBHits(eng, table(Request{"vector": items.Float32Values()[from:to], "column": "v", "limit": 10, "select": []string{"id", "_distance"}}))
	if len(ids) != 10 || ids[0] != int64(row) || distances[0] != 0 || !slices.IsSorted(distances) {
		t.Fatalf("hits %v at %v, want row %d first", ids, distances, row)
	}

	eng.Do("optimize", table(nil), nil)
	if got := count(); got != want {
		t.Fatalf("%d labelled rows after optimize, want %d", got, want)
	}
	appendRows(t, target, people(200, 3000), write.AppendOptions{})
	var all int
	eng.Do("count", table(nil), &all)
	if all != 3200 {
		t.Fatalf("%d rows after our append, want 3200", all)
	}
}
