package engine

import (
	"slices"
	"strings"
	"testing"
)

// answer is a statement and its rows; cells are tab-separated, rows in order unless the statement has no ORDER BY.
type answer struct {
	name, text string
	want       []string
	rowEngine  bool // may run row by row
}

func check(t *testing.T, e *Engine, setup string, cases []answer) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := e.NewSession(SessionOptions{Database: "lake"})
			defer s.Close()
			if setup != "" {
				run(t, s, setup)
			}
			got, res := run(t, s, c.text)
			want := slices.Clone(c.want)
			if !strings.Contains(strings.ToUpper(c.text), "ORDER BY") {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s\ngot  %q\nwant %q", c.text, got, want)
			}
			if res.HasRows() && !res.Vectorized && !c.rowEngine {
				t.Errorf("%s\nruns row by row: %v", c.text, res.Reason())
			}
		})
	}
}

func TestSelect(t *testing.T) {
	check(t, openLake(t, Config{}), "", []answer{
		{name: "constants without a table", text: "SELECT 1, 'a', NULL, 1.50, TRUE", want: []string{"1\ta\t\\N\t1.50\t1"}},
		{name: "an alias in ORDER BY", text: "SELECT id, id * 10 AS x FROM v ORDER BY x DESC LIMIT 2", want: []string{"7\t70", "6\t60"}},
		{name: "an ordinal in ORDER BY", text: "SELECT cat, id FROM v ORDER BY 1 DESC, 2 DESC LIMIT 2", want: []string{"c\t7", "b\t4"}},
		{name: "an expression in ORDER BY", text: "SELECT id FROM v ORDER BY -id LIMIT 2", want: []string{"7", "6"}},
		{name: "a column twice", text: "SELECT id, id, id + 0 FROM v WHERE id = 1", want: []string{"1\t1\t1"}},
		{name: "NULLs sort first ascending", text: "SELECT n FROM nums ORDER BY n LIMIT 2", want: []string{`\N`, "1"}},
		{name: "NULLs sort last descending", text: "SELECT n FROM nums ORDER BY n DESC", want: []string{"9007199254740993", "9007199254740993", "1", `\N`}},
		{name: "LIMIT 0", text: "SELECT id FROM v LIMIT 0", want: nil},
		{name: "an offset beyond the end", text: "SELECT id FROM v ORDER BY id LIMIT 2 OFFSET 50", want: nil},
		{name: "all the rest", text: "SELECT id FROM v ORDER BY id LIMIT 18446744073709551615 OFFSET 4", want: []string{"6", "7"}},
		{name: "DISTINCT with ORDER BY", text: "SELECT DISTINCT cat FROM v ORDER BY cat DESC", want: []string{"c", "b", "a"}},
		{name: "DISTINCT counts NULL once", text: "SELECT DISTINCT k FROM nums", want: []string{"x", "Y", `\N`}},
		{name: "a decimal literal is not rounded to the column's scale", text: "SELECT COUNT(*) FROM nums WHERE d < 0.104", want: []string{"1"}},
		{name: "IN with NULL", text: "SELECT id FROM v WHERE id IN (1, 7, NULL)", want: []string{"1", "7"}},
		{name: "NOT IN with NULL", text: "SELECT id FROM v WHERE id NOT IN (1, NULL)", want: nil},
		{name: "IN over tuples", text: "SELECT id FROM v WHERE (id, cat) IN ((1, 'a'), (2, 'b'), (7, 'c'))", want: []string{"1", "7"}},
		{name: "BETWEEN, LIKE, IS NULL", text: "SELECT k FROM nums WHERE n IS NULL OR k LIKE 'x%' AND n BETWEEN 1 AND 9007199254740993", want: []string{"x", "x", "Y"}},
		{name: "strings compare byte for byte", text: "SELECT k FROM nums WHERE k = 'y'", want: nil},
		{name: "CASE with a value", text: "SELECT id, CASE cat WHEN 'a' THEN 1 WHEN 'b' THEN 2.5 END FROM v WHERE id > 3 ORDER BY id", want: []string{"4\t2.5", "6\t1.0", "7\t\\N"}},
		{name: "a derived table", text: "SELECT x.c, COUNT(*) FROM (SELECT cat c FROM v WHERE id < 7) x GROUP BY x.c ORDER BY x.c", want: []string{"a\t3", "b\t2"}},
		{name: "a CTE used twice", text: "WITH c AS (SELECT id, cat FROM v) SELECT a.id, b.id FROM c a JOIN c b ON a.cat = b.cat AND a.id < b.id ORDER BY 1, 2", want: []string{"1\t2", "1\t6", "2\t6", "3\t4"}},
		{name: "VALUES as a table", text: "SELECT x, y FROM (VALUES ROW(1, 'a'), ROW(2.5, 'b')) t(x, y) ORDER BY x", want: []string{"1.0\ta", "2.5\tb"}},
		{name: "UNION ALL of different types", text: "SELECT id FROM perms UNION ALL SELECT 1.5 ORDER BY 1", want: []string{"1.5", "2.0", "3.0", "7.0"}},
		{name: "UNION removes duplicates over all parts", text: "SELECT cat FROM v UNION SELECT 'a' UNION ALL SELECT 'a' ORDER BY cat", want: []string{"a", "a", "b", "c"}},
		{name: "UNION with NULL", text: "SELECT NULL UNION SELECT 1 UNION SELECT NULL ORDER BY 1", want: []string{`\N`, "1"}},
		{name: "INTERSECT", text: "SELECT id FROM v INTERSECT SELECT id FROM perms ORDER BY id", want: []string{"2", "3", "7"}},
		{name: "EXCEPT", text: "SELECT id FROM v EXCEPT SELECT id FROM perms ORDER BY id", want: []string{"1", "4", "6"}},
		{name: "the session's functions", text: "SELECT DATABASE(), @@version_comment, @@transaction_isolation, VERSION()", want: []string{"lake\tlakesql\tREAD-COMMITTED\t8.0.31"}},
		{name: "sql_select_limit is not ours to forget", text: "SELECT COUNT(*) FROM (SELECT id FROM v LIMIT 3) x", want: []string{"3"}},
		{name: "LOAD_FILE reads nothing", text: "SELECT LOAD_FILE('/etc/hostname') IS NULL", want: []string{"1"}},
		{name: "a cross join", text: "SELECT COUNT(*) FROM v, perms", want: []string{"18"}},
		{name: "a right join", text: "SELECT v.id, p.id FROM v RIGHT JOIN perms p ON p.id = v.id AND v.id < 3 ORDER BY p.id", want: []string{"2\t2", "\\N\t3", "\\N\t7"}},
		{name: "a left join with a filter in ON", text: "SELECT v.id, o.amt FROM v LEFT JOIN orders o ON o.vid = v.id AND o.amt > 5 ORDER BY v.id, o.amt", want: []string{"1\t10", "2\t\\N", "3\t100", "4\t\\N", "6\t7", "7\t\\N"}},
		{name: "USING shows the column once", text: "SELECT * FROM perms JOIN v USING (id) WHERE id = 2", want: []string{"2\ta\t[2,0]"}},
		{name: "NATURAL JOIN", text: "SELECT COUNT(*) FROM perms NATURAL JOIN v", want: []string{"3"}},
		{name: "an exact spelling of a name with a twin", text: "SELECT * FROM twins", want: []string{"upper\tlower"}},
	})
}

func TestAggregates(t *testing.T) {
	check(t, openLake(t, Config{}), "", []answer{
		{name: "SUM and AVG of BIGINT are exact", text: "SELECT SUM(n), AVG(n), COUNT(n), COUNT(*), MIN(n), MAX(n) FROM nums", want: []string{"18014398509481987\t6004799503160662.3333\t3\t4\t1\t9007199254740993"}},
		{name: "SUM of decimals keeps the scale", text: "SELECT SUM(d), AVG(d), SUM(d * 2) FROM nums", want: []string{"100.29\t33.430000\t200.58"}},
		{name: "no rows", text: "SELECT COUNT(*), SUM(id), MAX(id) FROM nobody", want: []string{"0\t\\N\t\\N"}},
		{name: "no groups", text: "SELECT COUNT(*) FROM nobody GROUP BY id", want: nil},
		{name: "groups with NULL", text: "SELECT k, COUNT(*), SUM(n) FROM nums GROUP BY k ORDER BY k", want: []string{"\\N\t1\t1", "Y\t1\t\\N", "x\t2\t18014398509481986"}},
		{name: "HAVING over an alias and an aggregate", text: "SELECT cat, COUNT(*) c FROM v GROUP BY cat HAVING c > 1 AND MAX(id) > 4", want: []string{"a\t3"}},
		{name: "an expression as group", text: "SELECT id % 2, COUNT(*) FROM v GROUP BY id % 2 ORDER BY id % 2", want: []string{"0\t3", "1\t3"}},
		{name: "an alias as group", text: "SELECT id % 2 AS odd, COUNT(*) FROM v GROUP BY odd ORDER BY odd DESC", want: []string{"1\t3", "0\t3"}},
		{name: "an ordinal as group", text: "SELECT UPPER(cat), COUNT(*) FROM v GROUP BY 1 ORDER BY 1", want: []string{"A\t3", "B\t2", "C\t1"}},
		{name: "a group inside an expression", text: "SELECT id % 2 + 10, COUNT(*) FROM v GROUP BY id % 2 ORDER BY 1", want: []string{"10\t3", "11\t3"}},
		{name: "COUNT DISTINCT beside COUNT", text: "SELECT COUNT(DISTINCT cat), COUNT(cat), COUNT(DISTINCT cat, id) FROM v", want: []string{"3\t6\t6"}},
		{name: "SUM DISTINCT", text: "SELECT SUM(DISTINCT n) FROM nums", want: []string{"9007199254740994"}},
		{name: "aggregates that differ in the case of a string", text: "SELECT COUNT(CASE WHEN k = 'x' THEN 1 END), COUNT(CASE WHEN k = 'X' THEN 1 END), COUNT(CASE WHEN k = 'Y' THEN 1 END) FROM nums", want: []string{"2\t0\t1"}},
		{name: "ORDER BY an aggregate that is not selected", text: "SELECT cat FROM v GROUP BY cat ORDER BY COUNT(*) DESC, cat LIMIT 1", want: []string{"a"}},
		{name: "a column that an equality determines", text: "SELECT o.vid, COUNT(*) FROM v JOIN orders o ON o.vid = v.id GROUP BY v.id ORDER BY v.id", want: []string{"1\t2", "3\t1", "6\t1"}},
		{name: "aggregate of an aggregate", text: "SELECT MAX(c) FROM (SELECT COUNT(*) c FROM v GROUP BY cat) x", want: []string{"3"}},
		{name: "an aggregate in HAVING alone", text: "SELECT cat FROM v GROUP BY cat HAVING SUM(id) > (SELECT SUM(id) FROM perms) - 5 ORDER BY cat", want: []string{"a"}},
		{name: "GROUP_CONCAT runs row by row", text: "SELECT GROUP_CONCAT(cat ORDER BY id) FROM v WHERE id < 4", want: []string{"a,a,b"}, rowEngine: true},
		{name: "a ranking window", text: "SELECT id, ROW_NUMBER() OVER (PARTITION BY cat ORDER BY id DESC) r FROM v WHERE id < 4 ORDER BY id", want: []string{"1\t2", "2\t1", "3\t1"}},
	})
}

func TestSubqueries(t *testing.T) {
	check(t, openLake(t, Config{}), "", []answer{
		{name: "IN", text: "SELECT id FROM v WHERE id IN (SELECT id FROM perms) ORDER BY id", want: []string{"2", "3", "7"}},
		{name: "NOT IN", text: "SELECT id FROM v WHERE id NOT IN (SELECT id FROM perms) ORDER BY id", want: []string{"1", "4", "6"}},
		{name: "NOT IN with a NULL inside finds nothing", text: "SELECT id FROM v WHERE id NOT IN (SELECT n FROM nums)", want: nil},
		{name: "NOT IN of nothing finds all", text: "SELECT COUNT(*) FROM nums WHERE n NOT IN (SELECT id FROM nobody)", want: []string{"4"}},
		{name: "NOT EXISTS keeps rows whose comparison is NULL", text: "SELECT COUNT(*) FROM nums a WHERE NOT EXISTS (SELECT 1 FROM nums b WHERE b.n > a.n)", want: []string{"3"}},
		{name: "EXISTS over an aggregate is always true", text: "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT COUNT(*) FROM nobody)", want: []string{"6"}},
		{name: "EXISTS with LIMIT 0 is never true", text: "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM perms LIMIT 0)", want: []string{"0"}},
		{name: "IN under OR", text: "SELECT id FROM v WHERE id IN (SELECT id FROM perms) OR cat = 'a' ORDER BY id", want: []string{"1", "2", "3", "6", "7"}},
		{name: "IN as a value", text: "SELECT id, id IN (SELECT n FROM nums) FROM v WHERE id < 3 ORDER BY id", want: []string{"1\t1", "2\t\\N"}},
		{name: "EXISTS as a value", text: "SELECT id, EXISTS (SELECT 1 FROM orders WHERE vid = v.id) FROM v ORDER BY id", want: []string{"1\t1", "2\t0", "3\t1", "4\t0", "6\t1", "7\t0"}},
		{name: "a scalar subquery", text: "SELECT id FROM v WHERE id > (SELECT AVG(id) FROM v) ORDER BY id", want: []string{"4", "6", "7"}},
		{name: "a scalar subquery without rows is NULL", text: "SELECT (SELECT id FROM nobody) IS NULL", want: []string{"1"}},
		{name: "a correlated sum", text: "SELECT id, (SELECT SUM(amt) FROM orders WHERE vid = v.id) FROM v ORDER BY id", want: []string{"1\t15", "2\t\\N", "3\t100", "4\t\\N", "6\t7", "7\t\\N"}},
		{name: "a correlated count is 0 where nothing matches", text: "SELECT id, (SELECT COUNT(*) + 1 FROM orders WHERE vid = v.id) FROM v WHERE id < 3 ORDER BY id", want: []string{"1\t3", "2\t1"}},
		{name: "a correlated value", text: "SELECT o.amt, (SELECT cat FROM v WHERE v.id = o.vid) FROM orders o ORDER BY o.amt", want: []string{"5\ta", "7\ta", "10\ta", "100\tb"}},
		{name: "a correlated condition in WHERE", text: "SELECT id FROM v WHERE 10 < (SELECT SUM(amt) FROM orders WHERE vid = v.id) ORDER BY id", want: []string{"1", "3"}},
		{name: "a correlated inequality in EXISTS", text: "SELECT id FROM v WHERE EXISTS (SELECT 1 FROM orders WHERE vid = v.id AND amt > v.id * 10) ORDER BY id", want: []string{"3"}},
		{name: "a correlated NOT IN", text: "SELECT id FROM v WHERE 10 NOT IN (SELECT amt FROM orders WHERE vid = v.id) ORDER BY id", want: []string{"2", "3", "4", "6", "7"}},
		{name: "LIMIT inside IN", text: "SELECT id FROM v WHERE id IN (SELECT id FROM v ORDER BY id DESC LIMIT 2) ORDER BY id", want: []string{"6", "7"}},
		{name: "a subquery inside a subquery", text: "SELECT id FROM v WHERE id IN (SELECT vid FROM orders WHERE amt > (SELECT MIN(amt) FROM orders)) ORDER BY id", want: []string{"1", "3", "6"}},
		{name: "a subquery in ON", text: "SELECT v.id FROM v JOIN perms p ON p.id = v.id AND p.id > (SELECT MIN(id) FROM perms) ORDER BY v.id", want: []string{"3", "7"}},
		{name: "a tuple IN", text: "SELECT id FROM v WHERE (id, cat) IN (SELECT id, 'a' FROM perms)", want: []string{"2"}},
		{name: "a derived table with LIMIT under COUNT", text: "SELECT COUNT(*) FROM (SELECT id FROM v WHERE cat = 'a' LIMIT 2) x", want: []string{"2"}},
	})
}
