package engine

import (
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// The cases of public bug reports that a statement alone shows; those over an index are in test/sql.

func TestLabelCases(t *testing.T) {
	i32list := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	bytes := table(t, "bytewise", `[{"id":1,"l":[""]},{"id":2,"l":["foo "]},{"id":3,"l":["FOO"]},{"id":4,"l":["caf\u00e9"]},{"id":5,"l":["cafe\u0301"]},{"id":6,"l":["日本","😀"]},{"id":7,"l":["foo"]}]`,
		field("id", arrow.PrimitiveTypes.Int64), field("l", arrow.ListOf(arrow.BinaryTypes.String)))
	ints := table(t, "ints", `[{"id":1,"l":[1,2]},{"id":2,"l":[10]},{"id":3,"l":[-1,null]},{"id":4,"l":[0]},{"id":5,"l":[-1294967296]}]`, field("id", arrow.PrimitiveTypes.Int64), field("l", i32list))
	large := table(t, "large", `[{"id":1,"l":["a","b"]},{"id":2,"l":["a"]},{"id":3,"l":null}]`, field("id", arrow.PrimitiveTypes.Int64), field("l", arrow.LargeListOf(arrow.BinaryTypes.LargeString)))
	e := openLake(t, Config{}, bytes, ints, large)
	check(t, e, "", []answer{
		{name: "1 a NULL element does not hide a match", text: "SELECT id FROM l WHERE array_has_any(labels, ['foo']) ORDER BY id", want: []string{"1", "2", "7"}},
		{name: "1 with array_has", text: "SELECT id FROM l WHERE array_has(labels, 'foo') ORDER BY id", want: []string{"1", "2", "7"}},
		{name: "2 NOT with a NULL list", text: "SELECT id FROM l WHERE NOT array_has_any(labels, ['foo']) ORDER BY id", want: []string{"4", "5", "6"}},
		{name: "2 NOT has all", text: "SELECT id FROM l WHERE NOT array_has_all(labels, ['foo','bar']) ORDER BY id", want: []string{"1", "2", "4", "5", "6"}},
		{name: "3 duplicates", text: "SELECT id FROM l WHERE array_has_all(labels, ['foo','bar','foo'])", want: []string{"7"}},
		{name: "3 count", text: "SELECT COUNT(*) FROM l WHERE array_has_any(labels, ['foo','bar'])", want: []string{"4"}},
		{name: "4 has any of nothing", text: "SELECT id FROM l WHERE array_has_any(labels, [])", want: nil},
		{name: "4 has all of nothing", text: "SELECT id FROM l WHERE array_has_all(labels, []) ORDER BY id", want: []string{"1", "2", "4", "5", "6", "7"}},
		{name: "5 an empty list and NULL", text: "SELECT id, array_has(labels, 'foo') FROM l WHERE id IN (3, 4) ORDER BY id", want: []string{"3\t\\N", "4\t0"}},
		{name: "5 NULL as needle", text: "SELECT id FROM l WHERE array_has(labels, NULL) OR NOT array_has(labels, NULL)", want: nil},
		{name: "6 the empty string", text: "SELECT id FROM bytewise WHERE array_has(l, '')", want: []string{"1"}},
		{name: "6 a trailing blank", text: "SELECT id FROM bytewise WHERE array_has(l, 'foo ')", want: []string{"2"}},
		{name: "6 upper case", text: "SELECT id FROM bytewise WHERE array_has(l, 'foo')", want: []string{"7"}},
		{name: "6 composed", text: "SELECT id FROM bytewise WHERE array_has(l, 'caf\u00e9')", want: []string{"4"}},
		{name: "6 beyond the BMP", text: "SELECT id FROM bytewise WHERE array_has(l, '😀')", want: []string{"6"}},
		{name: "7 a text needle on integers", text: "SELECT id FROM ints WHERE array_has(l, '1') AND array_has_any(l, ['1'])", want: []string{"1"}},
		{name: "8 an integer", text: "SELECT id FROM ints WHERE array_has(l, 1)", want: []string{"1"}},
		{name: "8 a decimal", text: "SELECT id FROM ints WHERE array_has(l, 1.0)", want: []string{"1"}},
		{name: "8 a fraction", text: "SELECT id FROM ints WHERE array_has(l, 1.5)", want: nil},
		{name: "8 a number that does not fit", text: "SELECT id FROM ints WHERE array_has(l, 3000000000)", want: nil},
		{name: "9 large lists", text: "SELECT id FROM large WHERE array_has(l, 'a') ORDER BY id", want: []string{"1", "2"}},
		{name: "9 large lists negated", text: "SELECT id FROM large WHERE NOT array_has(l, 'a')", want: nil},
		{name: "13 NOT of AND", text: "SELECT COUNT(*) FROM l WHERE NOT (array_has(labels,'foo') AND id > 100)", want: []string{"7"}},
		{name: "13 NOT of OR", text: "SELECT id FROM l WHERE NOT (array_has(labels,'foo') OR array_has(labels,'bar')) ORDER BY id", want: []string{"4", "5"}},
		{name: "13 OR over NULL", text: "SELECT id FROM l WHERE array_has(labels,'foo') OR id = 3 ORDER BY id", want: []string{"1", "2", "3", "7"}},
		{name: "13 IS NOT TRUE", text: "SELECT id FROM l WHERE array_has(labels,'foo') IS NOT TRUE ORDER BY id", want: []string{"3", "4", "5", "6"}},
		{name: "13 IS NULL", text: "SELECT id FROM l WHERE array_has(labels,'foo') IS NULL", want: []string{"3"}},
		{name: "14 as values", text: "SELECT id, array_has(labels,'foo') a, array_has_any(labels,['foo','zzz']) b, array_has_all(labels,['foo','bar']) c FROM l ORDER BY id",
			want: []string{"1\t1\t1\t0", "2\t1\t1\t0", "3\t\\N\t\\N\t\\N", "4\t0\t0\t0", "5\t0\t0\t0", "6\t0\t0\t0", "7\t1\t1\t1"}},
		{name: "14 summed", text: "SELECT SUM(array_has(labels,'foo')) FROM l", want: []string{"3"}},
		{name: "MEMBER OF", text: "SELECT id FROM l WHERE 'foo' MEMBER OF(labels) ORDER BY id", want: []string{"1", "2", "7"}},
		{name: "every spelling of a list", text: "SELECT COUNT(*) FROM l WHERE array_has_any(labels, ARRAY['bar']) AND array_has_any(labels, make_array('bar')) AND arrays_overlap(labels, JSON_ARRAY('bar')) AND list_has_any(labels, '[\"bar\"]')", want: []string{"2"}},
	})
	s := e.NewSession(SessionOptions{Database: "lake"})
	defer s.Close()
	if err := failure(s, "SELECT id FROM ints WHERE array_has(l, 'x')"); err == nil || !strings.Contains(err.Error(), "x") {
		t.Errorf("7: a text that is no integer: %v", err)
	}
}

func TestVectorCases(t *testing.T) {
	ties := table(t, "ties", `[{"id":1,"vec":[1,0]},{"id":2,"vec":[1,0]},{"id":3,"vec":[1,0]},{"id":4,"vec":[1,0]},{"id":5,"vec":[1,0]},{"id":6,"vec":[0,0]}]`,
		field("id", arrow.PrimitiveTypes.Int64), field("vec", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)))
	two := table(t, "two", `[{"id":1,"a":[0,0],"b":[1,0,0]},{"id":2,"a":[3,0],"b":[0,1,0]},{"id":3,"a":[1,0],"b":[1,1,0]},{"id":4,"a":[0,2],"b":[0,0,1]}]`,
		field("id", arrow.PrimitiveTypes.Int64), field("a", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)), field("b", arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)))
	e := openLake(t, Config{}, ties, two)
	const d = "l2sq_distance(vec, [1,0])"
	check(t, e, "", []answer{
		{name: "15 the first page", text: "SELECT id FROM ties ORDER BY " + d + ", id LIMIT 2", want: []string{"1", "2"}},
		{name: "15 the second page", text: "SELECT id FROM ties ORDER BY " + d + ", id LIMIT 2 OFFSET 2", want: []string{"3", "4"}},
		{name: "15 the third page", text: "SELECT id FROM ties ORDER BY " + d + ", id LIMIT 2 OFFSET 4", want: []string{"5", "6"}},
		{name: "16 more than there are", text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 100", want: []string{"1", "6", "2", "4", "3", "7"}},
		{name: "16 LIMIT 0", text: "SELECT id FROM v ORDER BY " + d + " LIMIT 0", want: nil},
		{name: "16 near the end", text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 2 OFFSET 5", want: []string{"7"}},
		{name: "16 past the end", text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 2 OFFSET 50", want: nil},
		{name: "16 all the rest", text: "SELECT id FROM v ORDER BY " + d + ", id LIMIT 18446744073709551615 OFFSET 4", want: []string{"3", "7"}},
		{name: "by alias", text: "SELECT id, " + d + " AS d FROM v ORDER BY d, id LIMIT 3", want: []string{"1\t0", "6\t0", "2\t1"}},
		{name: "by ordinal", text: "SELECT id, " + d + " FROM v ORDER BY 2, 1 LIMIT 3", want: []string{"1\t0", "6\t0", "2\t1"}},
		{name: "through a derived table", text: "SELECT id FROM (SELECT id, " + d + " AS d FROM v) x ORDER BY d, id LIMIT 3", want: []string{"1", "6", "2"}},
		{name: "through a CTE", text: "WITH x AS (SELECT id, " + d + " AS d FROM v) SELECT id FROM x ORDER BY d, id LIMIT 3", want: []string{"1", "6", "2"}},
		{name: "NULL distances come last", text: "SELECT id FROM v5 ORDER BY " + d + " LIMIT 3", want: []string{"1", "2", "5"}},
		{name: "NULL distances come last by alias", text: "SELECT id, " + d + " AS d FROM v5 ORDER BY d LIMIT 3", want: []string{"1\t0", "2\t1", "5\t\\N"}},
		{name: "descending is a plain sort", text: "SELECT id FROM v ORDER BY " + d + " DESC, id LIMIT 2", want: []string{"7", "3"}},
		{name: "18 a NULL query vector", text: "SELECT l2_distance(vec, NULL) FROM v WHERE id = 1", want: []string{`\N`}},
		{name: "19 below 1", text: "SELECT id FROM v WHERE " + d + " < 1 ORDER BY id", want: []string{"1", "6"}},
		{name: "19 up to 1", text: "SELECT id FROM v WHERE " + d + " <= 1 ORDER BY id", want: []string{"1", "2", "4", "6"}},
		{name: "19 between", text: "SELECT id FROM v WHERE " + d + " BETWEEN 1 AND 2 ORDER BY id", want: []string{"2", "3", "4"}},
		{name: "19 above 1", text: "SELECT id FROM v WHERE " + d + " > 1 ORDER BY id", want: []string{"3", "7"}},
		{name: "20 as a value", text: "SELECT id, " + d + " FROM v5 ORDER BY id LIMIT 10", want: []string{"1\t0", "2\t1", "5\t\\N"}},
		{name: "20 averaged", text: "SELECT ROUND(AVG(" + d + ") * 6) FROM v", want: []string{"8"}},
		{name: "21 l2", text: "SELECT id FROM two ORDER BY l2_distance(a, [0,0]) LIMIT 2", want: []string{"1", "3"}},
		{name: "21 cosine", text: "SELECT id FROM two ORDER BY cosine_distance(b, [0,1,0]) LIMIT 2", want: []string{"2", "3"}},
		{name: "21 a sum of distances", text: "SELECT id FROM two ORDER BY l2_distance(a, [0,0]) + cosine_distance(b, [0,1,0]) LIMIT 2", want: []string{"1", "3"}},
		{name: "22 an aggregate over a TopK", text: "SELECT cat, COUNT(*), SUM(1) FROM (SELECT cat FROM v ORDER BY " + d + ", id LIMIT 4) x GROUP BY cat ORDER BY cat", want: []string{"a\t3\t3", "b\t1\t1"}},
		{name: "22 LIMIT inside IN", text: "SELECT id FROM v WHERE id IN (SELECT id FROM v ORDER BY " + d + ", id LIMIT 2) ORDER BY id", want: []string{"1", "6"}},
		{name: "23 fan-out after the cut", text: "SELECT x.id, o.amt FROM (SELECT id FROM v ORDER BY " + d + ", id LIMIT 3) x LEFT JOIN orders o ON o.vid = x.id ORDER BY x.id, o.amt", want: []string{"1\t5", "1\t10", "2\t\\N", "6\t7"}},
		{name: "23 summed", text: "SELECT SUM(o.amt), COUNT(DISTINCT x.id) FROM (SELECT id FROM v ORDER BY " + d + ", id LIMIT 3) x JOIN orders o ON o.vid = x.id", want: []string{"22\t2"}},
		{name: "26 a join that filters", text: "SELECT v.id FROM v JOIN perms p ON p.id = v.id ORDER BY " + d + ", v.id LIMIT 2", want: []string{"2", "3"}},
		{name: "26 IN", text: "SELECT id FROM v WHERE id IN (SELECT id FROM perms) ORDER BY " + d + ", id LIMIT 2", want: []string{"2", "3"}},
		{name: "26 EXISTS", text: "SELECT id FROM v WHERE EXISTS (SELECT 1 FROM perms p WHERE p.id = v.id) ORDER BY " + d + ", id LIMIT 2", want: []string{"2", "3"}},
		{name: "26 nobody is allowed", text: "SELECT v.id FROM v JOIN nobody p ON p.id = v.id ORDER BY " + d + " LIMIT 2", want: nil},
		{name: "26 a left join filters nothing", text: "SELECT v.id FROM v LEFT JOIN perms p ON p.id = v.id ORDER BY " + d + ", v.id LIMIT 2", want: []string{"1", "6"}},
		{name: "MySQL's spelling", text: "SELECT id FROM v ORDER BY DISTANCE(vec, STRING_TO_VECTOR('[1,0]'), 'EUCLIDEAN'), id LIMIT 2", want: []string{"1", "6"}},
		{name: "MariaDB's spelling", text: "SELECT id FROM v ORDER BY VEC_DISTANCE_EUCLIDEAN(vec, VEC_FromText('[1,0]')), id LIMIT 2", want: []string{"1", "6"}},
		{name: "JSON text", text: "SELECT id FROM v ORDER BY l2_distance(vec, '[1,0]'), id LIMIT 2", want: []string{"1", "6"}},
	})
	s := e.NewSession(SessionOptions{Database: "lake"})
	defer s.Close()
	for _, bad := range []string{
		"SELECT l2_distance(vec, [1,0,0]) FROM v", "SELECT id FROM v ORDER BY l2_distance(vec, [1,0,0]) LIMIT 1", "SELECT l2_distance(vec, []) FROM v", "SELECT l2_distance(vec, '[1,x]') FROM v",
		"SELECT l2_distance(vec, '') FROM v", "SELECT l2_distance(cat, [1,0]) FROM v",
	} {
		if err := failure(s, bad); err == nil {
			t.Errorf("18: no error: %s", bad)
		}
	}
	if err := failure(s, "SELECT l2_distance(vec, [1,0,0]) FROM v"); err == nil || !strings.Contains(err.Error(), "2") || !strings.Contains(err.Error(), "3") {
		t.Errorf("18: both dimensions: %v", err)
	}
	if got, _ := run(t, s, "SELECT id FROM v ORDER BY l2_distance(vec, ?), id LIMIT ?", "[1,0]", 2); strings.Join(got, ",") != "1,6" {
		t.Errorf("prepared: %v", got)
	}
	if got, _ := run(t, s, "SELECT id FROM l WHERE array_has_any(labels, make_array(?, ?)) ORDER BY id", "foo", "bar"); strings.Join(got, ",") != "1,2,6,7" {
		t.Errorf("prepared list: %v", got)
	}
}

func TestLongLists(t *testing.T) {
	e := openLake(t, Config{})
	s := e.NewSession(SessionOptions{Database: "lake"})
	defer s.Close()
	var labels, ids, marks []string
	var args []any
	for i := range 10_000 {
		labels = append(labels, "'t"+strconv.Itoa(i)+"'")
		ids = append(ids, strconv.Itoa(i))
		marks = append(marks, "?")
		args = append(args, i)
	}
	labels = append(labels, "'foo'")
	if got, _ := run(t, s, "SELECT COUNT(*) FROM l WHERE array_has_any(labels, ["+strings.Join(labels, ",")+"])"); got[0] != "3" {
		t.Errorf("labels: %v", got)
	}
	if got, _ := run(t, s, "SELECT COUNT(*) FROM v WHERE id IN ("+strings.Join(ids, ",")+")"); got[0] != "6" {
		t.Errorf("ids: %v", got)
	}
	if got, _ := run(t, s, "SELECT COUNT(*) FROM v WHERE id IN ("+strings.Join(marks, ",")+")", args...); got[0] != "6" {
		t.Errorf("prepared ids: %v", got)
	}
	if got, _ := run(t, s, "SELECT COUNT(*) FROM v WHERE id = 1"+strings.Repeat(" OR id = 1", 5000)); got[0] != "1" {
		t.Errorf("ORs: %v", got)
	}
}

func TestExactTypes(t *testing.T) {
	big := table(t, "big", `[{"d":"99999999999999999999999999999999999999"},{"d":"99999999999999999999999999999999999999"}]`, field("d", &arrow.Decimal128Type{Precision: 38, Scale: 0}))
	e := openLake(t, Config{}, big)
	check(t, e, "", []answer{
		{name: "25 a sum beyond 38 digits", text: "SELECT SUM(d) FROM big", want: []string{"199999999999999999999999999999999999998"}},
		{name: "25 dates outside TIMESTAMP's range", text: "SELECT day FROM times ORDER BY id", want: []string{"1900-01-01", "9999-12-31"}},
		{name: "unsigned 64 bits", text: "SELECT u FROM nums WHERE u = 18446744073709551615", want: []string{"18446744073709551615"}},
		{name: "unsigned minus one", text: "SELECT MAX(u) - 1 FROM nums", want: []string{"18446744073709551614"}},
	})
	check(t, e, "SET time_zone = 'Europe/Berlin'", []answer{
		{name: "25 comparison in the session's zone", text: "SELECT id FROM times WHERE at >= '2026-03-29 03:00:00'", want: []string{"2"}},
		{name: "25 the zone shows", text: "SELECT HOUR(at), HOUR(local) FROM times ORDER BY id", want: []string{"1\t0", "3\t1"}},
	})
	check(t, e, "SET time_zone = '+00:00'", []answer{
		{name: "25 in UTC", text: "SELECT HOUR(at), CAST(at AS CHAR) FROM times ORDER BY id", want: []string{"0\t2026-03-29 00:59:59.000000", "1\t2026-03-29 01:30:00.000000"}},
	})
}
