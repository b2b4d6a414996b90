package sql

import (
	"strings"
	"testing"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestFreshnessOfSearches: under indexed_only a search through an index knows what the index covers, with and without a condition; an exact one, all rows.
func TestFreshnessOfSearches(t *testing.T) {
	l := lakes.Open(t, t.TempDir(), engine.Config{})
	l.Serve(t, server.Options{})
	c := l.Connect(t, true)
	for _, text := range []string{
		"CREATE TABLE f (id INT, v VECTOR(2))", "INSERT INTO f VALUES (1, '[1,0]'), (2, '[2,0]'), (3, '[3,0]'), (4, NULL)",
		"CREATE VECTOR INDEX fv ON f (v) USING IVF_FLAT WITH (metric = 'l2', num_partitions = 1)",
		"INSERT INTO f VALUES (5, '[0,0]'), (6, NULL)", "DELETE FROM f WHERE id = 2",
	} {
		perform(t, c, text)
	}
	nearest := func(where string) string {
		return "SELECT group_concat(id ORDER BY id) FROM (SELECT id FROM f " + where + " ORDER BY l2_distance(v, '[0,0]') LIMIT 10) hits"
	}
	for _, want := range []struct{ ann, freshness, all, some string }{
		{"force", "complete", "1,3,4,5,6", "3,4,5,6"}, {"force", "indexed_only", "1,3,4", "3,4"}, {"off", "indexed_only", "1,3,4,5,6", "3,4,5,6"},
	} {
		perform(t, c, "SET ann = '"+want.ann+"', freshness = '"+want.freshness+"'")
		if got := ask(t, c, nearest("")); got != want.all {
			t.Errorf("ann %s, %s: %s, want %s", want.ann, want.freshness, got, want.all)
		}
		if got := ask(t, c, nearest("WHERE id > 1")); got != want.some {
			t.Errorf("ann %s, %s, among some: %s, want %s", want.ann, want.freshness, got, want.some)
		}
	}
	perform(t, c, "SET ann = 'force'")
	if plan := ask(t, c, "EXPLAIN SELECT id FROM f ORDER BY l2_distance(v, '[0,0]') LIMIT 10"); !strings.Contains(plan, "1 left out (freshness = indexed_only)") {
		t.Error(plan)
	}
}
