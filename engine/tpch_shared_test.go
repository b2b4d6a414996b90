//go:build shared

package engine

import (
	"context"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/internal/testutil"
	"github.com/lakesql/lakesql/source"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage/object"
)

// TestSharedTPCH runs the 22 queries, each as one plan of ours, and compares with the answers of the pack: text equal but for averages and quotients.
func TestSharedTPCH(t *testing.T) {
	store, err := object.OpenLocal(testutil.Shared(t, "tpch", "sf0.01"), object.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(context.Background(), Config{Catalogs: []source.Catalog{lance.Open("tpch", store, lance.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	type query struct{ name, text, answer string }
	var all []query
	for _, dir := range []struct{ queries, answers string }{{"queries", "answers"}, {"small", "small"}} {
		paths, err := filepath.Glob(filepath.Join(testutil.Shared(t, "tpch", dir.queries), "*.sql"))
		if err != nil || len(paths) == 0 {
			t.Fatal("no queries: ", err)
		}
		for _, p := range paths {
			name := strings.TrimSuffix(filepath.Base(p), ".sql")
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := os.ReadFile(filepath.Join(testutil.Shared(t, "tpch", dir.answers), name+".tsv"))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, query{dir.queries + "/" + name, string(text), string(answer)})
		}
	}
	for _, q := range all {
		t.Run(q.name, func(t *testing.T) {
			s := e.NewSession(SessionOptions{Database: "tpch"})
			defer s.Close()
			res, err := s.Query(context.Background(), q.text)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := res.Close(); err != nil {
					t.Error(err)
				}
			}()
			if !res.Vectorized {
				t.Errorf("runs row by row: %v", res.Reason())
			}
			compareTSV(t, strings.ToLower(strings.Join(names(res), "\t"))+"\n"+readTSV(t, res), q.answer)
		})
	}
}

func compareTSV(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(strings.TrimSuffix(got, "\n"), "\n"), strings.Split(strings.TrimSuffix(want, "\n"), "\n")
	if len(g) != len(w) {
		t.Fatalf("%d rows, want %d; got\n%.2000s", len(g)-1, len(w)-1, got)
	}
	heads := strings.Split(w[0], "\t")
	for i := range g {
		gc, wc := strings.Split(g[i], "\t"), strings.Split(w[i], "\t")
		if len(gc) != len(wc) {
			t.Fatalf("row %d: %q, want %q", i, g[i], w[i])
		}
		for c := range gc {
			if i > 0 && isApproximate(heads[c]) && near(gc[c], wc[c]) {
				continue
			}
			if gc[c] != wc[c] {
				t.Fatalf("row %d column %s: %q, want %q", i, heads[c], gc[c], wc[c])
			}
		}
	}
}

func isApproximate(column string) bool {
	switch column {
	case "avg_qty", "avg_price", "avg_disc", "mkt_share", "promo_revenue", "avg_yearly":
		return true
	}
	return false
}

// near allows 1e-6: the answers are doubles, ours decimals.
func near(a, b string) bool {
	x, ok1 := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	if !ok1 || !ok2 {
		return false
	}
	d := new(big.Rat).Sub(x, y)
	return d.Abs(d).Cmp(big.NewRat(1, 1_000_000)) <= 0
}
