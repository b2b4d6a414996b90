package engine

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

func openDatasets(t *testing.T) *Engine {
	t.Helper()
	store, err := object.OpenLocal(filepath.Join(testutil.Root(t), "testdata", "lance"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{lance.Open("lake", store, lance.Options{})}})
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

func TestTheLabelIndexIsUsed(t *testing.T) {
	s := newSession(t, openDatasets(t))
	for _, c := range []struct {
		where string
		index bool
	}{
		{"array_has(labels, 'ai')", true}, {"NOT array_has(labels, 'ai')", true}, {"array_has_any(labels, ['ai','comedy'])", true}, {"array_has(nums, 5)", true},
		{"'ai' MEMBER OF(labels)", true}, {"array_has(labels, NULL)", false}, {"array_has_all(labels, [])", false}, {"array_has(labels, name)", false},
	} {
		lines, _ := run(t, s, "EXPLAIN SELECT id FROM labels_v21 WHERE "+c.where)
		text := strings.Join(lines, "\n")
		if strings.Contains(text, "LABEL_LIST") != c.index {
			t.Errorf("%s: index %v expected\n%s", c.where, c.index, text)
		}
	}
	got, _ := run(t, s, "SELECT index_name, kind, column_name FROM lakesql.indices WHERE table_name = 'labels_v21' ORDER BY 3")
	if len(got) != 2 || !strings.HasSuffix(got[0], "LABEL_LIST\tlabels") {
		t.Errorf("lakesql.indices: %q", got)
	}
	if got, _ = run(t, s, "SHOW INDEX FROM labels_v21"); len(got) != 2 {
		t.Errorf("SHOW INDEX: %q", got)
	}
}
