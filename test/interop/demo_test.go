//go:build interop

package interop

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/demo"
)

func TestTheEnginesUseTheDemoLake(t *testing.T) {
	dir := t.TempDir()
	lake, err := demo.Generate(context.Background(), demo.Options{Dir: dir, Rows: 6000, Dim: 32})
	if err != nil {
		t.Fatal(err)
	}
	python, node := StartPython(t), StartNode(t)
	images := filepath.Join(dir, "images.lance")
	for table, rows := range map[string]int64{"images": lake.Images, "orders": lake.Orders, "shipments": lake.Shipments} {
		if got := python.Info(filepath.Join(dir, table+".lance")); got.Rows != rows || got.DataStorageVersion != "2.2" {
			t.Fatalf("%s: %+v, want %d rows", table, got, rows)
		}
		var count int64
		node.Do("count", Request{"lake": dir, "table": table}, &count)
		if count != rows {
			t.Fatalf("%s: LanceDB counts %d rows, want %d", table, count, rows)
		}
	}
	CheckIndexUse(t, python, images, "labels_idx", []string{"array_has_all(labels, ['damage', 'wet'])", "NOT array_has(labels, 'damage')"})
	CheckIndexUse(t, python, images, "tenant_idx", []string{"tenant = 'acme'"})
	CheckIndexUse(t, python, images, "captured_at_idx", []string{"captured_at >= timestamp '2026-10-01 00:00:00'"})

	one := python.Rows("take", Request{"path": images, "rows": []int{4321}, "columns": []string{"embedding"}})
	defer one.Release()
	items, ok := Column(t, one, "embedding").(*array.FixedSizeList).ListValues().(*array.Float32)
	if !ok {
		t.Fatal("embeddings are no floats")
	}
	search := Request{"path": images, "columns": []string{"id"}, "nearest": Request{"column": "embedding", "q": items.Float32Values(), "k": 10}}
	if plan := python.Explain(search); !strings.Contains(plan, "embedding_idx") {
		t.Fatalf("the vector index is not used:\n%s", plan)
	}
	hits := python.Rows("scan", search)
	defer hits.Release()
	ids, ok := Column(t, hits, "id").(*array.Int64)
	if !ok || ids.Len() != 10 || ids.Value(0) != 4321 {
		t.Fatalf("hits %v, want row 4321 first", ids)
	}
	near, distances := lanceDBHits(node, Request{
		"lake": dir, "table": "images", "vector": items.Float32Values(), "column": "embedding", "limit": 10,
		"filter": "array_has(labels, 'damage')", "select": []string{"id", "_distance"},
	})
	if len(near) != 10 || distances[0] > distances[9] {
		t.Fatalf("LanceDB finds %v at %v", near, distances)
	}
}
