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

// TestWindows: frames, orders and defaults as MySQL's manual has them, the numbers computed by hand.
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

// TestFunctions: what BI tools send, with the values of MySQL's manual.
func TestFunctions(t *testing.T) {
	lake := salesLake(t)
	lake.Check(t, caseLines(`
SELECT DATE_FORMAT('2009-10-04 22:23:00', '%W %M %Y'), DATE_FORMAT('2007-10-04 22:23:00', '%H:%i:%s'), DATE_FORMAT('1900-10-04 22:23:00', '%D %y %a %d %m %b %j'), DATE_FORMAT('1997-10-04 22:23:00', '%H %k %I %r %T %S %w'), DATE_FORMAT('1999-01-01', '%X %V')
	Sunday October 2009|22:23:00|4th 00 Thu 04 10 Oct 277|22 22 10 10:23:00 PM 22:23:00 00 6|1998 52
SELECT STR_TO_DATE('01,5,2013','%d,%m,%Y'), STR_TO_DATE('May 1, 2013','%M %d,%Y'), CAST(STR_TO_DATE('a09:30:17','a%h:%i:%s') AS CHAR), STR_TO_DATE(CONCAT(DATE_FORMAT('2026-05-17','%Y-%m'),'-01'),'%Y-%m-%d'), STR_TO_DATE('200442 Monday', '%X%V %W'), STR_TO_DATE('abc','%Y')
	2013-05-01|2013-05-01|09:30:17|2026-05-01|2004-10-18|\N
SELECT MAKEDATE(2011,31), MAKEDATE(2011,32), MAKEDATE(2014,365), MAKEDATE(2011,0), QUARTER('2008-04-01'), WEEK('2008-02-20'), WEEK('2008-02-20',0), WEEK('2008-02-20',1), WEEK('2008-12-31',1), YEARWEEK('1987-01-01'), WEEKOFYEAR('2008-02-20'), WEEK('2000-01-01',2)
	2011-01-31|2011-02-01|2014-12-31|\N|2|7|7|8|53|198652|8|52
SELECT DATE_ADD('2018-05-01',INTERVAL 1 DAY), DATE_SUB('2018-05-01',INTERVAL 1 YEAR), CAST(DATE_ADD('2020-12-31 23:59:59', INTERVAL 1 SECOND) AS CHAR), CAST(DATE_ADD('2100-12-31 23:59:59', INTERVAL '1:1' MINUTE_SECOND) AS CHAR), CAST(DATE_SUB('2025-01-01 00:00:00', INTERVAL '1 1:1:1' DAY_SECOND) AS CHAR), CAST(DATE_ADD('1900-01-01 00:00:00', INTERVAL '-1 10' DAY_HOUR) AS CHAR), DATE_ADD('2026-01-31', INTERVAL '1-2' YEAR_MONTH), DATE_SUB('1998-01-02', INTERVAL 31 DAY), CAST(DATE_ADD('1992-12-31 23:59:59.000002', INTERVAL '1.999999' SECOND_MICROSECOND) AS CHAR), '2026-01-31' + INTERVAL 1 MONTH, DATE_ADD('2026-01-31', INTERVAL 1 QUARTER), DATE_ADD('2026-01-31', INTERVAL 2 WEEK)
	2018-05-02|2017-05-01|2021-01-01 00:00:00|2101-01-01 00:01:00|2024-12-30 22:58:59|1899-12-30 14:00:00|2027-03-31|1997-12-02|1993-01-01 00:00:01.000001|2026-02-28|2026-04-30|2026-02-14
SELECT TIMESTAMPDIFF(MONTH,'2003-02-01','2003-05-01'), TIMESTAMPDIFF(YEAR,'2002-05-01','2001-01-01'), TIMESTAMPDIFF(MINUTE,'2003-02-01','2003-05-01 12:05:55'), TIMESTAMPDIFF(QUARTER,'2026-01-01','2026-12-31'), CAST(TIMESTAMPADD(MINUTE, 1, '2003-01-02') AS CHAR), TIMESTAMPADD(WEEK,1,'2003-01-02')
	3|-1|128885|3|2003-01-02 00:01:00|2003-01-09
SELECT UNIX_TIMESTAMP('2015-11-13 10:20:19'), CAST(FROM_UNIXTIME(1447430881) AS CHAR), FROM_UNIXTIME(1447430881,'%Y %D %M %h:%i:%s %x'), LAST_DAY('2003-02-05'), LAST_DAY('2004-01-01 01:01:01'), LAST_DAY('2003-03-32'), TIME_TO_SEC('22:23:00'), CAST(SEC_TO_TIME(2378) AS CHAR), CAST(20260102 AS DATE)
	1447410019|2015-11-13 16:08:01|2015 13th November 04:08:01 2015|2003-02-28|2004-01-31|\N|80580|00:39:38|2026-01-02
SELECT EXTRACT(YEAR FROM '2019-07-02'), EXTRACT(YEAR_MONTH FROM '2019-07-02 01:02:03'), EXTRACT(DAY_MINUTE FROM '2019-07-02 01:02:03'), EXTRACT(MICROSECOND FROM '2003-01-02 10:30:00.000123'), DAYNAME('2007-02-03'), MONTHNAME('2008-02-03'), DAYOFWEEK('2007-02-03'), WEEKDAY('2008-02-03 22:23:00'), DAYOFYEAR('2007-02-03'), TO_DAYS('2007-10-07'), FROM_DAYS(730669), DATEDIFF('2007-12-31 23:59:59','2007-12-30'), PERIOD_ADD(200801,2), PERIOD_DIFF(200802,200703), TO_SECONDS('2009-11-29')
	2019|201907|20102|123|Saturday|February|7|6|34|733321|2000-07-03|1|200803|11|63426672000
SELECT CAST(ADDTIME('01:00:00.999999','02:00:00.999998') AS CHAR), CAST(SUBTIME('2007-12-31 23:59:59.999999','1 1:1:1.000002') AS CHAR), CAST(TIMEDIFF('2008-12-31 23:59:59.000001','2008-12-30 01:01:01.000002') AS CHAR), TIME_FORMAT('100:00:00', '%H %k %h %I %l'), CAST(TIME('2003-12-31 01:02:03') AS CHAR), DATE('2003-12-31 01:02:03'), MICROSECOND('12:00:00.123456')
	03:00:01.999997|2007-12-30 22:58:58.999997|46:58:57.999999|100 100 04 04 4|01:02:03|2003-12-31|123456
SELECT JSON_LENGTH('[1, 2, {"a": 3}]'), JSON_LENGTH('{"a": 1, "b": {"c": 30}}'), JSON_LENGTH('{"a": 1, "b": {"c": 30}}', '$.b'), JSON_LENGTH('3'), JSON_LENGTH('[1]', '$.x'), JSON_VALUE('{"fname": "Joe"}', '$.fname'), CAST('[1,2]' AS JSON), JSON_UNQUOTE('"abc"'), JSON_QUOTE('null'), JSON_TYPE('{"a": 1}'), JSON_VALID('{"a": 1}')
	3|2|1|1|\N|Joe|[1, 2]|abc|"null"|OBJECT|1
SELECT JSON_CONTAINS('{"a": 1, "b": 2, "c": {"d": 4}}', '1', '$.a'), JSON_CONTAINS('{"a": 1, "c": {"d": 4}}', '{"d": 4}', '$.c'), JSON_OVERLAPS('[1,3,5,7]', '[2,5,7]'), JSON_OVERLAPS('[1,3,5,7]', '[2,6,8]'), 17 MEMBER OF('[23, "abc", 17, "ab", 10]'), JSON_EXTRACT('[10, 20, [30, 40]]', '$[1]'), JSON_EXTRACT('[10, 20, [30, 40]]', '$[2][*]'), JSON_EXTRACT('[10, 20, [30, 40]]', '$[1]', '$[0]')
	1|1|1|0|1|20|[30, 40]|[20, 10]
SELECT JSON_LENGTH(tags), tags->'$[0]', tags->>'$[1]', JSON_CONTAINS(tags, '"x"'), JSON_OVERLAPS(tags, '["y","z"]'), 'x' MEMBER OF(tags), JSON_LENGTH(tags, '$[0]') FROM sales WHERE id IN (1, 3, 5) ORDER BY id
	2|x|y|1|1|1|1
	\N|\N|\N|\N|\N|\N|\N
	2|y|\N|0|1|0|1
SELECT CONCAT_WS(',','First name','Second name','Last Name'), CONCAT_WS(',','First name',NULL,'Last Name'), SUBSTRING_INDEX('www.mysql.com', '.', 2), SUBSTRING_INDEX('www.mysql.com', '.', -2), LPAD('hi',4,'??'), LPAD('hi',1,'??'), RPAD('hi',5,'?'), FIELD('Bb', 'Aa', 'Bb', 'Cc'), ELT(1, 'Aa', 'Bb'), ELT(4, 'Aa'), FIND_IN_SET('b','a,b,c,d'), FORMAT(12332.123456, 4), FORMAT(12332.1,4), FORMAT(12332.2,0), INSERT('Quadratic', 3, 4, 'What'), LOCATE('bar', 'foobarbar', 5), TRIM(LEADING 'x' FROM 'xxxbarxxx'), TRIM(TRAILING 'xyz' FROM 'barxxyz'), SUBSTRING('Sakila' FROM -4 FOR 2), OCT(12), CONV('a',16,2), ORD('2')
	First name,Second name,Last Name|First name,Last Name|www.mysql|mysql.com|??hi|h|hi???|2|Aa|\N|2|12,332.1235|12,332.1000|12,332|QuWhattic|7|barxxx|barx|ki|14|1010|50
SELECT REGEXP_LIKE('Michael!', '.*'), REGEXP_LIKE('abc', 'ABC', 'c'), REGEXP_REPLACE('a b c', 'b', 'X'), REGEXP_REPLACE('abc def ghi', '[a-z]+', 'X', 1, 3), REGEXP_SUBSTR('abc def ghi', '[a-z]+'), REGEXP_SUBSTR('abc def ghi', '[a-z]+', 1, 3), REGEXP_INSTR('dog cat dog', 'dog', 2), 'a' REGEXP '^[a-d]'
	1|0|a X c|abc def X|abc|ghi|9|1
SELECT GREATEST(2,0), GREATEST(34.0,3.0,5.0,767.0), GREATEST('B','A','C'), LEAST(2,0), GREATEST(1,NULL), NULLIF(1,1), NULLIF(1,2), IFNULL(NULL,10), COALESCE(NULL,1), IF(1>2,2,3), ISNULL(1+1)
	2|767.0|C|0|\N|\N|1|10|1|3|0
SELECT ROUND(-1.23), ROUND(-1.58), ROUND(1.298, 1), ROUND(1.298, 0), ROUND(23.298, -1), TRUNCATE(1.223,1), TRUNCATE(1.999,0), TRUNCATE(-1.999,1), TRUNCATE(122,-2), TRUNCATE(10.28*100,0), CEILING(1.23), FLOOR(-1.23), MOD(29,9), MOD(34.5,3), SIGN(-32), POW(2,-2), LOG(2,65536), CRC32('MySQL'), 5 DIV 2, 7/2
	-1|-2|1.3|1|20|1.2|1|-1.9|100|1028|2|-2|2|1.5|-1|0.25|16|3259397556|2|3.5000
SELECT MD5('testing'), SHA1('abc'), SHA2('abc', 224), HEX('abc'), HEX(255), UNHEX('4D7953514C'), CAST('12' AS SIGNED), CAST(-1 AS UNSIGNED), CAST('1.239' AS DECIMAL(4,2)), CONVERT('abc' USING utf8mb4), CHAR_LENGTH('é'), LENGTH('é'), SOUNDEX('Hello'), TO_BASE64('abc')
	ae2b1fca515949e5d54fb22b8ed95575|a9993e364706816aba3e25717850c26c9cd0d89d|23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7|616263|FF|MySQL|12|18446744073709551615|1.24|abc|1|2|H400|YWJj
`))
	lake.Check(t, []lakes.Case{
		{Name: "row by row", Text: "SELECT LENGTH(UUID()), JSON_KEYS('{\"a\": 1}'), INET_ATON('10.0.5.9'), JSON_SET('{\"a\": 1}', '$.a', id) FROM sales WHERE id = 2", Want: []string{"36\t[\"a\"]\t167773449\t{\"a\": 2}"}, RowEngine: true},
		{Name: "an interval by parameter", Text: "SELECT CAST(DATE_ADD('2026-01-31', INTERVAL ? DAY_HOUR) AS CHAR), DATE_ADD('2026-01-31', INTERVAL ? DAY)", Args: []any{"1 1", 1}, Want: []string{"2026-02-01 01:00:00\t2026-02-01"}},
	})
}
