package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/demo"
	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/test/lakes"
)

// TestPlansOfTheMainStatements asserts the nodes of the statements that lakesql is made for, over a small demo lake.
func TestPlansOfTheMainStatements(t *testing.T) {
	const dim, rows = 16, 4000
	dir := t.TempDir()
	if _, err := demo.Generate(context.Background(), demo.Options{Dir: dir, Rows: rows, Dim: dim}); err != nil {
		t.Fatal(err)
	}
	lake := lakes.Open(t, dir, engine.Config{})
	parts := make([]string, dim)
	for i := range parts {
		parts[i] = fmt.Sprintf("%.2f", float64(i%5)/10)
	}
	dist := "l2_distance(embedding, [" + strings.Join(parts, ",") + "])"
	october := "captured_at >= '2026-10-01' AND captured_at < '2026-10-31'"
	top := func(k int, where, columns string) string {
		if where != "" {
			where = " WHERE " + where
		}
		return fmt.Sprintf("SELECT %s, %s AS dist FROM images%s ORDER BY dist LIMIT %d", columns, dist, where, k)
	}
	search, lookup := "VectorSearch", "LABEL_LIST"
	hits := "WITH k AS (" + top(100, "array_has(labels, 'wet')", "parcel_id") + ") "
	ids := "17,3,999,42"
	for _, c := range []struct {
		name, text string
		ann        string
		want       []string
	}{
		{name: "the opening statement", want: []string{search, lookup, "BITMAP", "BTREE", "HashJoin", "HashAggregate", "LateFetch"},
			text: `SELECT o.carrier, count(*) AS n, sum(o.amount) AS total FROM (SELECT parcel_id FROM images
				WHERE array_has_all(labels, ['damage','wet']) AND tenant = 'acme' AND captured_at >= '2026-10-01' ORDER BY ` + dist + ` LIMIT 100) hits
				JOIN orders o ON o.parcel_id = hits.parcel_id GROUP BY o.carrier ORDER BY n DESC`},
		{name: "L1", want: []string{lookup}, text: "SELECT count(*) FROM images WHERE array_has(labels, 'damage')"},
		{name: "L2", want: []string{lookup}, text: "SELECT count(*) FROM images WHERE array_has(labels, 'soaked/edge')"},
		{name: "L3", want: []string{lookup}, text: "SELECT count(*) FROM images WHERE array_has_any(labels, ['damage','wet','dent/corner','tear/top','x'])"},
		{name: "L4", want: []string{lookup}, text: "SELECT count(*) FROM images WHERE array_has_all(labels, ['damage','wet','dent/corner'])"},
		{name: "L5", want: []string{lookup}, text: "SELECT count(*) FROM images WHERE NOT array_has(labels, 'damage')"},
		{name: "L6", want: []string{lookup, "BITMAP", "BTREE"}, text: "SELECT id, note FROM images WHERE array_has(labels, 'damage') AND tenant = 'acme' AND " + october + " ORDER BY id LIMIT 1000"},
		{name: "V1", ann: "off", want: []string{search}, text: top(10, "", "id")},
		{name: "V2", ann: "off", want: []string{search, lookup}, text: top(100, "array_has(labels, 'wet')", "id")},
		{name: "V3", ann: "force", want: []string{search}, text: top(10, "", "id")},
		{name: "V4", ann: "off", want: []string{search, lookup, "BITMAP"}, text: top(100, "array_has(labels, 'wet') AND tenant = 'acme'", "id")},
		{name: "V5", ann: "force", want: []string{search}, text: top(1000, "", "id")},
		{name: "G1", ann: "force", want: []string{search, "LateFetch"}, text: top(1000, "", "id, trajectory")},
		{name: "G2", ann: "force", want: []string{search}, text: top(1000, "", "id")},
		{name: "R1", text: "SELECT id, trajectory FROM images WHERE id IN (" + ids + ")"},
		{name: "J1", want: []string{search, lookup, "HashJoin", "HashAggregate"},
			text: hits + "SELECT carrier, count(*), sum(amount) FROM k JOIN orders o ON k.parcel_id = o.parcel_id GROUP BY carrier ORDER BY carrier"},
		{name: "J2", want: []string{search, lookup, "HashJoin", "HashAggregate"},
			text: hits + "SELECT s.route, count(DISTINCT k.parcel_id) AS n FROM k JOIN orders o ON k.parcel_id = o.parcel_id JOIN shipments s ON s.parcel_id = k.parcel_id GROUP BY s.route ORDER BY n DESC, s.route"},
		{name: "A1", want: []string{"HashAggregate"}, text: "SELECT carrier, count(*), sum(amount) FROM orders GROUP BY carrier ORDER BY carrier"},
		{name: "A2", want: []string{"HashJoin", "HashAggregate"},
			text: "SELECT o.carrier, s.status, count(*), sum(o.amount) FROM orders o JOIN shipments s ON o.parcel_id = s.parcel_id GROUP BY o.carrier, s.status ORDER BY o.carrier, s.status"},
		{name: "A4", want: []string{"HashAggregate"}, text: "SELECT tenant, count(DISTINCT parcel_id) FROM images GROUP BY tenant ORDER BY tenant"},
		{name: "A5", text: "SELECT count(*) FROM images WHERE note LIKE '%[forklift]%'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ann := c.ann
			if ann == "" {
				ann = "auto"
			}
			lake.Set(t, "SET ann = '"+ann+"'")
			plan := lake.Explain(t, c.text)
			for _, w := range c.want {
				if !strings.Contains(plan, w) {
					t.Errorf("no %s in\n%s", w, plan)
				}
			}
			if strings.Contains(plan, "RowEngine") {
				t.Errorf("the row engine takes part:\n%s", plan)
			}
			got, vectorized, err := lakes.AskSession(context.Background(), lake.Session, c.text)
			if err != nil || !vectorized || len(got) == 0 {
				t.Errorf("%d rows, vectorized %v, %v", len(got), vectorized, err)
			}
			analyzed, err := lake.Doors()[0].Ask(context.Background(), "EXPLAIN ANALYZE "+c.text)
			if text := strings.Join(analyzed, "\n"); err != nil || !strings.Contains(text, "rows=") || strings.Contains(text, "RowEngine") {
				t.Errorf("EXPLAIN ANALYZE: %v\n%s", err, text)
			}
		})
	}
}
