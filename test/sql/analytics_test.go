package sql

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// sales is a small table with NULLs, ties and every kind of type that analysts group, sort and add up.
var sales = lakes.Table{
	Name: "sales", Fields: []arrow.Field{
		lakes.Field("id", lakes.Int64), lakes.Field("region", arrow.BinaryTypes.String), lakes.Field("product", arrow.BinaryTypes.String), lakes.Field("day", arrow.FixedWidthTypes.Date32),
		lakes.Field("qty", arrow.PrimitiveTypes.Int32), lakes.Field("amount", &arrow.Decimal128Type{Precision: 10, Scale: 2}), lakes.Field("score", arrow.PrimitiveTypes.Float64),
		lakes.Field("tags", arrow.ListOf(arrow.BinaryTypes.String)),
	},
	Rows: `[{"id":1,"region":"eu","product":"a","day":"2026-01-01","qty":3,"amount":"10.50","score":1.5,"tags":["x","y"]},
		{"id":2,"region":"eu","product":"b","day":"2026-01-02","qty":null,"amount":"20.25","score":2.5,"tags":[]},
		{"id":3,"region":"us","product":"a","day":"2026-01-02","qty":5,"amount":null,"score":null,"tags":null},
		{"id":4,"region":"us","product":"a","day":"2026-02-01","qty":2,"amount":"7.00","score":4,"tags":["x"]},
		{"id":5,"region":"us","product":"b","day":"2026-02-05","qty":2,"amount":"7.00","score":4,"tags":["y",null]},
		{"id":6,"region":null,"product":"b","day":null,"qty":1,"amount":"1.10","score":0.5,"tags":["z"]},
		{"id":7,"region":"eu","product":"a","day":"2026-03-01","qty":9,"amount":"99.99","score":1.5,"tags":["x","x"]}]`,
}

func salesLake(t *testing.T) *lakes.Lake {
	t.Helper()
	dir := t.TempDir()
	lakes.Build(t, dir, lakes.Bare, sales)
	return lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
}

// lines makes cases of a text: a statement, and its rows below it, indented.
func caseLines(text string) (out []lakes.Case) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "\t"):
			c := &out[len(out)-1]
			c.Want = append(c.Want, strings.ReplaceAll(strings.TrimPrefix(line, "\t"), "|", "\t"))
		default:
			out = append(out, lakes.Case{Name: line, Text: line})
		}
	}
	return out
}

// TestWindows: frames, orders and defaults as MySQL's manual has them, the numbers computed by hand and by DuckDB.
func TestWindows(t *testing.T) {
	lake := salesLake(t)
	lake.Check(t, caseLines(`
SELECT id, ROW_NUMBER() OVER (PARTITION BY region ORDER BY day) AS rn, SUM(amount) OVER (PARTITION BY region ORDER BY day) AS run, SUM(amount) OVER () AS total FROM sales ORDER BY id
	1|1|10.50|145.84
	2|2|30.75|145.84
	3|1|\N|145.84
	4|2|7.00|145.84
	5|3|14.00|145.84
	6|1|1.10|145.84
	7|3|130.74|145.84
SELECT id, RANK() OVER w, DENSE_RANK() OVER w, SUM(qty) OVER w FROM sales WINDOW w AS (ORDER BY amount DESC) ORDER BY id
	1|3|3|12
	2|2|2|9
	3|7|6|22
	4|4|4|16
	5|4|4|16
	6|6|5|17
	7|1|1|9
SELECT id, RANK() OVER (ORDER BY qty) FROM sales ORDER BY id
	1|5
	2|1
	3|6
	4|3
	5|3
	6|2
	7|7
SELECT id, LAG(amount, 1, 0) OVER w, LEAD(day, 2) OVER w, FIRST_VALUE(id) OVER w, LAST_VALUE(id) OVER w, NTH_VALUE(id, 2) OVER w, NTILE(2) OVER w, NTILE(3) OVER w FROM sales WINDOW w AS (ORDER BY id)
	1|0.00|2026-01-02|1|1|\N|1|1
	2|10.50|2026-02-01|1|2|2|1|1
	3|20.25|2026-02-05|1|3|2|1|1
	4|\N|\N|1|4|2|1|2
	5|7.00|2026-03-01|1|5|2|2|2
	6|7.00|\N|1|6|2|2|3
	7|1.10|\N|1|7|2|2|3
SELECT id, CUME_DIST() OVER (ORDER BY qty), PERCENT_RANK() OVER (PARTITION BY product ORDER BY score) FROM sales WHERE id > 3 ORDER BY id
	4|0.75|1
	5|0.75|1
	6|0.25|0
	7|1|0
SELECT id, SUM(qty) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS m, AVG(amount) OVER (ORDER BY qty RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM sales ORDER BY id
	1|3|8.166667
	2|8|20.250000
	3|8|\N
	4|10|6.400000
	5|4|6.400000
	6|1|5.033333
	7|13|99.990000
SELECT id, COUNT(qty) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n, MIN(product) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING) AS f, MAX(score) OVER (ORDER BY id DESC ROWS 1 PRECEDING) AS d FROM sales ORDER BY id
	1|1|a|2.5
	2|2|a|2.5
	3|2|a|4
	4|3|a|4
	5|3|a|4
	6|3|\N|1.5
	7|2|\N|1.5
SELECT region, SUM(amount) AS s, SUM(SUM(amount)) OVER (ORDER BY region) AS c, RANK() OVER (ORDER BY SUM(amount) DESC) AS r FROM sales GROUP BY region ORDER BY r
	eu|130.74|131.84|1
	us|14.00|145.84|2
	\N|1.10|1.10|3
SELECT region, COUNT(*) AS n, COUNT(*) OVER () AS regions FROM sales GROUP BY region HAVING n > 1 ORDER BY region
	eu|3|2
	us|3|2
SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY region ORDER BY amount DESC, id) AS rn FROM sales) AS t WHERE rn <= 2 ORDER BY id
	2
	4
	5
	6
	7
WITH t AS (SELECT id, RANK() OVER (ORDER BY amount) AS r FROM sales) SELECT COUNT(*) FROM t WHERE r BETWEEN 2 AND 3
	3
SELECT id, amount / SUM(amount) OVER (PARTITION BY region) * 100 AS pct, id - LAG(id) OVER (ORDER BY id) FROM sales WHERE region = 'us' ORDER BY 1
	3|\N|\N
	4|50.000000|1
	5|50.000000|1
SELECT id FROM sales ORDER BY ROW_NUMBER() OVER (ORDER BY amount DESC) LIMIT 3
	7
	2
	1
SELECT DISTINCT product, COUNT(*) OVER (PARTITION BY product) FROM sales ORDER BY product
	a|4
	b|3
SELECT id, COUNT(*) OVER (w ORDER BY id), SUM(id) OVER w FROM sales WINDOW w AS (PARTITION BY product) ORDER BY id LIMIT 2
	1|1|15
	2|1|13
`))
	lake.Check(t, []lakes.Case{
		{Name: "parameters", Text: "SELECT id, LAG(id, ?) OVER (ORDER BY id), SUM(qty + ?) OVER (PARTITION BY region = ?) FROM sales ORDER BY id LIMIT 3", Args: []any{2, 1, "eu"},
			Want: []string{"1\t\\N\t14", "2\t\\N\t14", "3\t1\t12"}},
		{Name: "the first of each group by parameter", Text: "SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY region ORDER BY id) AS rn FROM sales) AS t WHERE rn <= ? ORDER BY id", Args: []any{1},
			Want: ids(1, 3, 6)},
	})
	if plan := lake.Explain(t, "SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY region ORDER BY id) AS rn FROM sales) AS t WHERE rn <= 3"); !strings.Contains(plan, "partition=[region], order=[id], functions=[row_number()], top=row_number <= 3") {
		t.Errorf("the plan says\n%s", plan)
	}
}

// TestAggregates: what analysts aggregate beyond sums, by MySQL's rules.
func TestAggregates(t *testing.T) {
	lake := salesLake(t)
	lake.Check(t, caseLines(`
SELECT region, STDDEV_SAMP(qty), STD(qty), VAR_POP(qty), ROUND(VARIANCE(amount), 6), VAR_SAMP(qty) FROM sales GROUP BY region ORDER BY region
	\N|\N|0|0|0|\N
	eu|4.242640687119285|3|9|1606.8878|18
	us|1.7320508075688772|1.4142135623730951|2|0|3
SELECT BIT_AND(qty), BIT_OR(qty), BIT_XOR(qty), BIT_AND(amount) FROM sales WHERE region = 'us'
	0|7|5|7
SELECT BIT_AND(id), BIT_OR(id), BIT_XOR(id), STDDEV(id), GROUP_CONCAT(id), JSON_ARRAYAGG(id) FROM sales WHERE id > 100
	18446744073709551615|0|0|\N|\N|\N
SELECT region, GROUP_CONCAT(DISTINCT product ORDER BY product DESC SEPARATOR '; '), GROUP_CONCAT(id, ':', qty ORDER BY id DESC), GROUP_CONCAT(amount ORDER BY 1) FROM sales GROUP BY region ORDER BY region
	\N|b|6:1|1.10
	eu|b; a|7:9,1:3|10.50,20.25,99.99
	us|b; a|5:2,4:2,3:5|7.00,7.00
SELECT GROUP_CONCAT(product ORDER BY id SEPARATOR 'A') AS u, GROUP_CONCAT(product ORDER BY id SEPARATOR 'a') AS l, GROUP_CONCAT(product ORDER BY id SEPARATOR '') FROM sales WHERE id < 3
	aAb|aab|ab
SELECT region FROM sales GROUP BY region HAVING GROUP_CONCAT(id ORDER BY id) LIKE '%4%' ORDER BY GROUP_CONCAT(id)
	us
SELECT JSON_ARRAYAGG(qty), JSON_OBJECTAGG(product, day) FROM (SELECT qty, product, day FROM sales WHERE id < 4 ORDER BY id) AS t
	[3, null, 5]|{"a": "2026-01-02", "b": "2026-01-02"}
SELECT COUNT(DISTINCT region, product), COUNT(DISTINCT region), SUM(DISTINCT amount), AVG(DISTINCT qty), ANY_VALUE(1) FROM sales
	4|2|138.84|4.0000|1
SELECT id, JSON_ARRAYAGG(id) OVER (ORDER BY id ROWS 1 PRECEDING), BIT_OR(qty) OVER (ORDER BY id), VAR_POP(qty) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM sales WHERE id <> 2 ORDER BY id
	1|[1]|3|2.25
	3|[1, 3]|7|0
	4|[3, 4]|7|0.25
	5|[4, 5]|7|16
	6|[5, 6]|7|0
	7|[6, 7]|15|\N
`))
	for _, door := range lake.Doors()[1:] {
		if _, err := door.Ask(t.Context(), "SET group_concat_max_len = 5"); err != nil {
			t.Fatal(err)
		}
		if got, err := door.Ask(t.Context(), "SELECT GROUP_CONCAT(amount ORDER BY id) FROM sales"); err != nil || len(got) != 1 || got[0] != "10.50" {
			t.Errorf("%s: %q, %v", door.Name, got, err)
		}
		if got, err := door.Ask(t.Context(), "SHOW WARNINGS"); err != nil || len(got) != 1 || got[0] != "Warning\t1260\tRow 1 was cut by GROUP_CONCAT()" {
			t.Errorf("%s: %q, %v", door.Name, got, err)
		}
	}
}

// TestRollup: super rows behind what they sum up, GROUPING tells their NULLs from those of the data.
func TestRollup(t *testing.T) {
	lake := salesLake(t)
	lake.Check(t, caseLines(`
SELECT region, product, SUM(amount), COUNT(DISTINCT qty), AVG(amount), GROUPING(region), GROUPING(region, product) FROM sales GROUP BY region, product WITH ROLLUP LIMIT 100 -- ORDER BY
	\N|b|1.10|1|1.100000|0|0
	\N|\N|1.10|1|1.100000|0|1
	eu|a|110.49|2|55.245000|0|0
	eu|b|20.25|0|20.250000|0|0
	eu|\N|130.74|2|43.580000|0|1
	us|a|7.00|2|7.000000|0|0
	us|b|7.00|1|7.000000|0|0
	us|\N|14.00|2|7.000000|0|1
	\N|\N|145.84|5|24.306667|1|3
SELECT IF(GROUPING(region), 'all', region) AS r, COUNT(*) FROM sales GROUP BY region WITH ROLLUP HAVING GROUPING(region) = 1 OR COUNT(*) > 2 ORDER BY GROUPING(region) DESC, r
	all|7
	eu|3
	us|3
SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*), GROUP_CONCAT(id ORDER BY id) FROM sales WHERE id < 6 GROUP BY YEAR(day), MONTH(day) WITH ROLLUP ORDER BY y, m
	\N|\N|5|1,2,3,4,5
	2026|\N|5|1,2,3,4,5
	2026|1|3|1,2,3
	2026|2|2|4,5
SELECT region, COUNT(*) FROM sales WHERE id > 100 GROUP BY region WITH ROLLUP
	\N|0
SELECT region, s FROM (SELECT region, SUM(amount) AS s FROM sales GROUP BY region WITH ROLLUP) AS t WHERE region = 'eu' OR s > 100 ORDER BY s
	eu|130.74
	\N|145.84
SELECT a.id, b.id, COUNT(*) FROM sales AS a JOIN sales AS b ON a.region = b.region WHERE a.id < 3 AND b.id < 3 GROUP BY a.id, b.id ORDER BY a.id, b.id
	1|1|1
	1|2|1
	2|1|1
	2|2|1
SELECT DISTINCT a.id, b.id FROM sales AS a JOIN sales AS b ON b.id = 8 - a.id ORDER BY b.id LIMIT 2
	7|1
	6|2
`))
}
