package sql

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestTheTableOfIndices: lakesql.indices and SHOW INDEX tell what an index is, covers and weighs, and open none of its files.
func TestTheTableOfIndices(t *testing.T) {
	for _, path := range []lakes.Path{lakes.Indexed, lakes.Half, lakes.Extended} {
		t.Run(string(path), func(t *testing.T) {
			dir := t.TempDir()
			table := vectorTables()[4] // circle: 600 rows
			table.Indices = append(table.Indices, lakes.Index{Column: "id", Kind: index.KindBTree})
			lakes.Build(t, dir, path, table)
			store, err := object.OpenLocal(dir, object.LocalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			counting := object.NewCounting(store, object.CountingOptions{})
			e, err := engine.Open(context.Background(), engine.Config{Catalogs: []source.Catalog{lance.Open("lake", counting, lance.Options{})}})
			if err != nil {
				t.Fatal(err)
			}
			s := e.NewSession(engine.SessionOptions{Database: "lake"})
			defer func() {
				s.Close()
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			covered, segments := 600, 1
			switch path {
			case lakes.Half:
				covered = 300
			case lakes.Extended:
				segments = 2
			}
			total := int64(0)
			err = filepath.Walk(filepath.Join(dir, "circle.lance", "_indices"), func(_ string, info os.FileInfo, err error) error {
				if err == nil && !info.IsDir() {
					total += info.Size()
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := lakes.AskSession(context.Background(), s, `SELECT index_name, kind, metric, covered_rows, uncovered_rows, segments, usable FROM lakesql.indices
				WHERE database_name = 'lake' AND table_name = 'circle' ORDER BY index_name`)
			want := []string{
				fmt.Sprintf("id_idx\tBTREE\t\\N\t%d\t%d\t%d\t1", covered, 600-covered, segments),
				fmt.Sprintf("labels_idx\tLABEL_LIST\t\\N\t%d\t%d\t%d\t1", covered, 600-covered, segments),
				fmt.Sprintf("vec_idx\tIVF_FLAT\tl2\t%d\t%d\t%d\t1", covered, 600-covered, segments),
			}
			if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%q, %v\nwant %q", got, err, want)
			}
			got, _, err = lakes.AskSession(context.Background(), s, "SELECT SUM(bytes), MIN(bytes) > 0 FROM lakesql.indices")
			if err != nil || len(got) != 1 || got[0] != fmt.Sprintf("%d\t1", total) {
				t.Errorf("bytes %q, %v, want %d", got, err, total)
			}
			got, _, err = lakes.AskSession(context.Background(), s, "SHOW INDEX FROM circle")
			if err != nil || len(got) != 3 || !strings.Contains(strings.Join(got, "\n"), fmt.Sprintf("IVF_FLAT\tmetric=l2, segments=%d", segments)) {
				t.Errorf("SHOW INDEX: %q, %v", got, err)
			}
			for p := range counting.ByPath() {
				if strings.Contains(p, "_indices") {
					t.Errorf("%s was opened", p)
				}
			}
		})
	}
}

// TestSegmentsThatOutliveFragments: in tables with stable row ids too, a segment that an older version opened answers for a version without some of its fragments.
func TestSegmentsThatOutliveFragments(t *testing.T) {
	for _, stable := range []bool{false, true} {
		l := lakes.Open(t, t.TempDir(), engine.Config{})
		for _, text := range []string{
			fmt.Sprintf("CREATE TABLE z (id INT, n INT) WITH (stable_row_ids = %t, rows_per_fragment = 2)", stable), "INSERT INTO z VALUES (1,1), (2,2), (3,3), (4,4), (5,5)",
			"CREATE INDEX zones ON z (n) USING ZONEMAP WITH (rows_per_zone = 2)", "SET prefilter = 'index'", "SELECT id FROM z WHERE n < 5", "DELETE FROM z WHERE n <= 2",
		} {
			l.Set(t, text)
		}
		l.Check(t, []lakes.Case{{Name: "a fragment less", Text: "SELECT id FROM z WHERE n < 5", Want: []string{"3", "4"}}})
		l.Set(t, "CALL lakesql.restore('z', '3')")
		l.Check(t, []lakes.Case{{Name: "restored", Text: "SELECT id FROM z WHERE n < 5", Want: []string{"1", "2", "3", "4"}}})
	}
}
