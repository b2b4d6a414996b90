package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// vectorTables are the tables of the vector cases.
func vectorTables() []lakes.Table {
	id, vec := lakes.Field("id", lakes.Int64), lakes.Field("vec", lakes.Vector(2))
	ivf := []lakes.Index{{Column: "vec", Metric: index.MetricL2, Lists: 2}}
	return []lakes.Table{
		{Name: "v", Fields: []arrow.Field{id, lakes.Field("cat", lakes.Text), vec}, Indices: ivf,
			Rows: `[{"id":1,"cat":"a","vec":[1,0]},{"id":2,"cat":"a","vec":[2,0]},{"id":3,"cat":"b","vec":[0,1]},{"id":4,"cat":"b","vec":[0,0]},{"id":6,"cat":"a","vec":[1,0]},{"id":7,"cat":"c","vec":[-1,0]}]`},
		{Name: "v5", Fields: []arrow.Field{id, vec}, Indices: ivf,
			Rows: `[{"id":1,"vec":[1,0]},{"id":2,"vec":[2,0]},{"id":3,"vec":[0,1]},{"id":4,"vec":[0,0]},{"id":5,"vec":null},{"id":6,"vec":[1,0]},{"id":7,"vec":[-1,0]}]`},
		{Name: "ties", Fields: []arrow.Field{id, vec}, Indices: ivf,
			Rows: `[{"id":1,"vec":[1,0]},{"id":2,"vec":[1,0]},{"id":3,"vec":[1,0]},{"id":4,"vec":[1,0]},{"id":5,"vec":[1,0]},{"id":6,"vec":[0,0]}]`},
		{Name: "two", Fields: []arrow.Field{id, lakes.Field("a", lakes.Vector(2)), lakes.Field("b", lakes.Vector(3))},
			Rows:    `[{"id":1,"a":[0,0],"b":[1,0,0]},{"id":2,"a":[3,0],"b":[0,1,0]},{"id":3,"a":[1,0],"b":[1,1,0]},{"id":4,"a":[0,2],"b":[0,0,1]}]`,
			Indices: []lakes.Index{{Column: "a", Metric: index.MetricL2, Lists: 1}, {Column: "b", Metric: index.MetricCosine, Lists: 1}}},
		{Name: "circle", Fields: []arrow.Field{id, lakes.Field("cat", lakes.Text), lakes.Field("labels", lakes.Labels), vec}, Rows: circle(),
			Indices: []lakes.Index{{Column: "vec", Metric: index.MetricL2, Lists: 8}, {Column: "labels", Kind: index.KindLabelList}}},
		{Name: "nothing", Fields: []arrow.Field{id, vec}},
		{Name: "orders", Fields: []arrow.Field{lakes.Field("vid", lakes.Int64), lakes.Field("amt", lakes.Int64)}, Rows: `[{"vid":1,"amt":10},{"vid":1,"amt":5},{"vid":6,"amt":7},{"vid":3,"amt":100}]`},
		{Name: "perms", Fields: []arrow.Field{id}, Rows: `[{"id":2},{"id":3},{"id":7}]`},
		{Name: "nobody", Fields: []arrow.Field{id}},
	}
}

// circle is 600 points on a circle, one in 97 without a vector, one in 50 rare.
func circle() string {
	type row struct {
		ID     int       `json:"id"`
		Cat    string    `json:"cat"`
		Labels []string  `json:"labels"`
		Vec    []float32 `json:"vec"`
	}
	rows := make([]row, 600)
	for i := range rows {
		rows[i] = row{ID: i, Cat: "common", Labels: []string{"common"}, Vec: []float32{float32(math.Cos(float64(i))), float32(math.Sin(float64(i)))}}
		if i%97 == 0 {
			rows[i].Vec = nil
		}
		if i%50 == 0 {
			rows[i].Cat, rows[i].Labels = "rare", []string{"rare"}
		}
	}
	out, err := json.Marshal(rows)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// d is the squared distance of the cases.
const d = "l2sq_distance(vec, '[1,0]')"

var vectorCases = []lakes.Case{
	{Name: "15 the first page", Text: "SELECT id FROM ties ORDER BY " + d + ", id LIMIT 2 OFFSET 0", Want: ids(1, 2)},
	{Name: "15 the second page", Text: "SELECT id FROM ties ORDER BY " + d + ", id LIMIT 2 OFFSET 2", Want: ids(3, 4)},
	{Name: "15 the third page", Text: "SELECT id FROM ties ORDER BY " + d + ", id LIMIT 2 OFFSET 4", Want: ids(5, 6)},
	{Name: "15 a page by parameters", Text: "SELECT id FROM ties ORDER BY l2sq_distance(vec, ?), id LIMIT ? OFFSET ?", Args: []any{"[1,0]", 2, 2}, Want: ids(3, 4)},
	{Name: "16 more than there are", Text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 100", Want: ids(1, 6, 2, 4, 3, 7)},
	{Name: "16 LIMIT 0", Text: "SELECT id, " + d + " FROM v ORDER BY " + d + " LIMIT 0", Want: nil},
	{Name: "16 LIMIT 0 by parameter", Text: "SELECT id FROM v ORDER BY " + d + " LIMIT ?", Args: []any{0}, Want: nil},
	{Name: "16 near the end", Text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 2 OFFSET 5", Want: ids(7)},
	{Name: "16 past the end", Text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 2 OFFSET 50", Want: nil},
	{Name: "16 all the rest", Text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 18446744073709551615 OFFSET 4", Want: ids(3, 7)},
	{Name: "16 every row of 600", Text: "SELECT COUNT(*) FROM (SELECT id FROM circle ORDER BY " + d + " LIMIT 600) x", Want: ids(600)},
	{Name: "17 fewer match than are asked for", Text: "SELECT id FROM circle WHERE cat='rare' ORDER BY " + d + " LIMIT 20", Want: ids(50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 0)},
	{Name: "17 as many as have a vector", Text: "SELECT id FROM circle WHERE cat='rare' ORDER BY " + d + " LIMIT 11", Want: ids(50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550)},
	{Name: "17 by a label", Text: "SELECT id FROM circle WHERE array_has(labels, 'rare') ORDER BY " + d + " LIMIT 20", Want: ids(50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 0)},
	{Name: "17 by a label and more", Text: "SELECT id FROM circle WHERE array_has(labels, 'rare') AND id > 300 ORDER BY " + d + " LIMIT 20", Want: ids(350, 400, 450, 500, 550)},
	{Name: "17 nothing matches", Text: "SELECT id FROM circle WHERE array_has(labels, 'none') ORDER BY " + d + " LIMIT 20", Want: nil},
	{Name: "18 a NULL query vector", Text: "SELECT l2_distance(vec, NULL) FROM v WHERE id = 1", Want: []string{lakes.Null}},
	{Name: "19 below", Text: "SELECT id FROM v WHERE " + d + " < 1 ORDER BY id", Want: ids(1, 6)},
	{Name: "19 up to", Text: "SELECT id FROM v WHERE " + d + " <= 1 ORDER BY id", Want: ids(1, 2, 4, 6)},
	{Name: "19 between", Text: "SELECT id FROM v WHERE " + d + " BETWEEN 1 AND 2 ORDER BY id", Want: ids(2, 3, 4)},
	{Name: "19 above", Text: "SELECT id FROM v WHERE " + d + " > 1 ORDER BY id", Want: ids(3, 7)},
	{Name: "19 below with a search", Text: "SELECT id FROM v WHERE " + d + " >= 1 ORDER BY " + d + ", id LIMIT 3", Want: ids(2, 4, 3)},
	{Name: "20 as a value", Text: "SELECT id, " + d + " FROM v5 ORDER BY id LIMIT 10", Want: []string{"1\t0", "2\t1", "3\t2", "4\t1", "5\t\\N", "6\t0", "7\t4"}},
	{Name: "20 averaged", Text: "SELECT ROUND(AVG(" + d + ") * 6) FROM v5", Want: ids(8)},
	{Name: "20 NULL distances come last", Text: "SELECT id FROM v5 ORDER BY " + d + ", id LIMIT 7", Want: ids(1, 6, 2, 4, 3, 7, 5)},
	{Name: "21 the first column", Text: "SELECT id FROM two ORDER BY l2_distance(a, '[0,0]') LIMIT 2", Want: ids(1, 3)},
	{Name: "21 the second column", Text: "SELECT id FROM two ORDER BY cosine_distance(b, '[0,1,0]') LIMIT 2", Want: ids(2, 3)},
	{Name: "21 another metric than the index", Text: "SELECT id FROM two ORDER BY cosine_distance(a, '[1,1]'), id LIMIT 4", Want: ids(2, 3, 4, 1)},
	{Name: "21 a sum of distances", Text: "SELECT id FROM two ORDER BY l2_distance(a, '[0,0]') + cosine_distance(b, '[0,1,0]') LIMIT 2", Want: ids(1, 3)},
	{Name: "22 an aggregate over a search", Text: "SELECT cat, COUNT(*), SUM(1) FROM (SELECT cat FROM v ORDER BY " + d + ", id LIMIT 4) x GROUP BY cat ORDER BY cat", Want: []string{"a\t3\t3", "b\t1\t1"}},
	{Name: "22 LIMIT inside IN", Text: "SELECT id FROM v WHERE id IN (SELECT id FROM v ORDER BY " + d + ", id LIMIT 2) ORDER BY id", Want: ids(1, 6)},
	{Name: "23 fan-out after the cut", Text: "SELECT x.id, o.amt FROM (SELECT id FROM v ORDER BY " + d + ", id LIMIT 3) x LEFT JOIN orders o ON o.vid=x.id ORDER BY x.id, o.amt DESC", Want: []string{"1\t10", "1\t5", "2\t\\N", "6\t7"}},
	{Name: "23 summed", Text: "SELECT SUM(amt), COUNT(DISTINCT x.id) FROM (SELECT id FROM v ORDER BY " + d + ", id LIMIT 3) x JOIN orders o ON o.vid=x.id", Want: []string{"22\t2"}},
	{Name: "23 the wide column for both copies", Text: "SELECT x.id, o.amt, x.cat FROM (SELECT id, cat FROM v ORDER BY " + d + ", id LIMIT 3) x JOIN orders o ON o.vid=x.id ORDER BY x.id, o.amt", Want: []string{"1\t5\ta", "1\t10\ta", "6\t7\ta"}},
	{Name: "26 a join that filters", Text: "SELECT v.id FROM v JOIN perms p ON p.id = v.id ORDER BY " + d + ", v.id LIMIT 2", Want: ids(2, 3)},
	{Name: "26 IN", Text: "SELECT id FROM v WHERE id IN (SELECT id FROM perms) ORDER BY " + d + ", id LIMIT 2", Want: ids(2, 3)},
	{Name: "26 EXISTS", Text: "SELECT id FROM v WHERE EXISTS (SELECT 1 FROM perms p WHERE p.id = v.id) ORDER BY " + d + ", id LIMIT 2", Want: ids(2, 3)},
	{Name: "26 NOT IN", Text: "SELECT id FROM v WHERE id NOT IN (SELECT id FROM perms) ORDER BY " + d + ", id LIMIT 4", Want: ids(1, 6, 4)},
	{Name: "26 NOT EXISTS", Text: "SELECT id FROM v WHERE NOT EXISTS (SELECT 1 FROM perms p WHERE p.id = v.id) ORDER BY " + d + ", id LIMIT 4", Want: ids(1, 6, 4)},
	{Name: "26 EXISTS by two columns", Text: "SELECT id FROM v WHERE EXISTS (SELECT 1 FROM v u WHERE u.id = v.id AND u.cat = v.cat AND u.id > 1) ORDER BY " + d + ", id LIMIT 2", Want: ids(6, 2)},
	{Name: "26 nobody is allowed", Text: "SELECT v.id FROM v JOIN nobody p ON p.id = v.id ORDER BY " + d + ", v.id LIMIT 2", Want: nil},
	{Name: "26 nobody is allowed, IN", Text: "SELECT id FROM v WHERE id IN (SELECT id FROM nobody) ORDER BY " + d + ", id LIMIT 2", Want: nil},
	{Name: "26 a left join filters nothing", Text: "SELECT v.id FROM v LEFT JOIN perms p ON p.id = v.id ORDER BY " + d + ", v.id LIMIT 2", Want: ids(1, 6)},
	{Name: "an alias", Text: "SELECT id, " + d + " AS x FROM v ORDER BY x, id LIMIT 3", Want: []string{"1\t0", "6\t0", "2\t1"}},
	{Name: "a CTE", Text: "WITH k AS (SELECT id, " + d + " AS x FROM v ORDER BY x, id LIMIT 3) SELECT id FROM k ORDER BY x DESC", Want: ids(2, 1, 6)},
	{Name: "a similarity", Text: "SELECT id FROM v ORDER BY inner_product(vec, '[1,0]') DESC, id LIMIT 3", Want: ids(2, 1, 6)},
	{Name: "the farthest", Text: "SELECT id FROM v ORDER BY " + d + " DESC, id LIMIT 2", Want: ids(7, 3)},
	{Name: "MySQL's spelling", Text: "SELECT id FROM v ORDER BY DISTANCE(vec, STRING_TO_VECTOR('[1,0]'), 'EUCLIDEAN'), id LIMIT 2", Want: ids(1, 6)},
	{Name: "MariaDB's spelling", Text: "SELECT id FROM v ORDER BY VEC_DISTANCE_EUCLIDEAN(vec, VEC_FromText('[1,0]')), id LIMIT 2", Want: ids(1, 6)},
	{Name: "a vector of bytes", Text: "SELECT id FROM v ORDER BY l2_distance(vec, ?), id LIMIT 2", Args: []any{[]byte{0, 0, 128, 63, 0, 0, 0, 0}}, Want: ids(1, 6)},
}

// TestVectorCases runs on each path, exact and with the index forced.
func TestVectorCases(t *testing.T) {
	for _, path := range lakes.Paths {
		t.Run(string(path), func(t *testing.T) {
			dir := t.TempDir()
			lakes.Build(t, dir, path, vectorTables()...)
			lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
			for _, ann := range []string{"off", "force"} {
				if path == lakes.Bare && ann == "force" {
					continue
				}
				lake.Set(t, "SET ann = '"+ann+"'")
				for _, glm := range []string{"on", "off"} {
					lake.Set(t, "SET glm = '"+glm+"'")
					t.Run("ann "+ann+", glm "+glm, func(t *testing.T) {
						lake.Check(t, vectorCases)
						checkPages(t, lake)
						checkBadVectors(t, lake)
					})
				}
			}
		})
	}
}

// checkPages asks for pages of ties without a key that orders them: they are stable, and together they are all rows.
func checkPages(t *testing.T, lake *lakes.Lake) {
	t.Helper()
	for _, door := range lake.Doors() {
		var all []string
		for page := range 3 {
			text := fmt.Sprintf("SELECT id FROM ties ORDER BY %s LIMIT 2 OFFSET %d", d, 2*page)
			first, err := door.Ask(context.Background(), text)
			if err != nil {
				t.Fatal(err)
			}
			again, err := door.Ask(context.Background(), text)
			if err != nil || !slices.Equal(first, again) {
				t.Errorf("15 (%s): %s: %v, then %v, %v", door.Name, text, first, again, err)
			}
			all = append(all, first...)
		}
		slices.Sort(all)
		if !slices.Equal(all, ids(1, 2, 3, 4, 5, 6)) {
			t.Errorf("15 (%s): the pages hold %v", door.Name, all)
		}
	}
}

// checkBadVectors asks for distances that make no sense.
func checkBadVectors(t *testing.T, lake *lakes.Lake) {
	t.Helper()
	for _, c := range []struct {
		text string
		args []any
		has  []string
	}{
		{"SELECT l2_distance(vec, '[1,0,0]') FROM v", nil, []string{"2", "3"}},
		{"SELECT id FROM v ORDER BY l2_distance(vec, '[1,0,0]') LIMIT 1", nil, []string{"2", "3"}},
		{"SELECT id FROM v ORDER BY l2_distance(vec, ?) LIMIT 1", []any{"[1,0,0]"}, []string{"2", "3"}},
		{"SELECT id FROM nothing ORDER BY l2_distance(vec, '[1,0,0]') LIMIT 1", nil, []string{"2", "3"}},
		{"SELECT id FROM nothing WHERE l2_distance(vec, '[1,0,0]') < 1", nil, []string{"2", "3"}},
		{"SELECT l2_distance(vec, '[]') FROM v", nil, nil}, {"SELECT l2_distance(vec, '[1,x]') FROM v", nil, nil}, {"SELECT l2_distance(vec, '') FROM v", nil, nil},
		{"SELECT id FROM v ORDER BY l2_distance(vec, '[1,NaN]') LIMIT 1", nil, nil}, {"SELECT id FROM v ORDER BY l2_distance(vec, ?) LIMIT 1", []any{"[1,NaN]"}, nil},
		{"SELECT l2_distance(cat, '[1,0]') FROM v", nil, []string{"cat"}}, {"SELECT id FROM v ORDER BY l2_distance(id, '[1,0]') LIMIT 1", nil, []string{"id"}},
	} {
		for _, door := range lake.Doors() {
			got, err := door.Ask(context.Background(), c.text, c.args...)
			if err == nil {
				t.Errorf("18 (%s): %s gives %q and no error", door.Name, c.text, got)
				continue
			}
			if strings.Contains(err.Error(), "1815") || strings.Contains(err.Error(), "internal") {
				t.Errorf("18 (%s): %s: %v", door.Name, c.text, err)
			}
			for _, h := range c.has {
				if !strings.Contains(err.Error(), h) {
					t.Errorf("18 (%s): %s: %v names no %s", door.Name, c.text, err, h)
				}
			}
		}
	}
}

// TestCase17Shortfall bounds the lists that a search may probe: what is missing is said, and nothing is missing where the bound does not bite.
func TestCase17Shortfall(t *testing.T) {
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Indexed, vectorTables()...)
	lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
	right := ids(50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 0)
	for _, where := range []string{"cat='rare'", "array_has(labels, 'rare')"} {
		text := "SELECT id FROM circle WHERE " + where + " ORDER BY " + d + " LIMIT 20"
		for _, c := range []struct {
			set     string
			bounded bool
		}{
			{"SET ann = 'force', nprobes = 1, max_nprobes = 1", true},
			{"SET ann = 'force', nprobes = 1, max_nprobes = 8", false},
			{"SET ann = 'force', nprobes = 1, max_nprobes = 0", false},
			{"SET ann = 'auto', nprobes = 1, max_nprobes = 1", false},
		} {
			lake.Set(t, c.set)
			for _, door := range lake.Doors() {
				got, err := door.Ask(context.Background(), text)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case !c.bounded && !slices.Equal(got, right):
					t.Errorf("%s: %s: %v", c.set, text, got)
				case c.bounded && (len(got) == 0 || len(got) >= len(right)-1 || slices.ContainsFunc(got, func(id string) bool { return !slices.Contains(right, id) })):
					t.Errorf("%s: %s: %v", c.set, text, got)
				}
				warnings, err := door.Ask(context.Background(), "SHOW WARNINGS")
				if said := strings.Contains(strings.Join(warnings, "\n"), fmt.Sprintf("%d of %d rows were found", len(got), len(right))); err != nil || said != c.bounded {
					t.Errorf("%s (%s): warnings %q, %v", c.set, door.Name, warnings, err)
				}
				plan, err := door.Ask(context.Background(), "EXPLAIN ANALYZE "+text)
				if said := strings.Contains(strings.Join(plan, "\n"), fmt.Sprintf("shortfall=%d of %d rows: max_nprobes = 1", len(got), len(right))); err != nil || said != c.bounded {
					t.Errorf("%s (%s): %v\n%s", c.set, door.Name, err, strings.Join(plan, "\n"))
				}
			}
		}
	}
}
