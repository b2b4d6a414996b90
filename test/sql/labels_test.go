package sql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

// labelTable is the table that most label cases are about: a NULL list, an empty one, one with a NULL alone, duplicates.
var labelTable = lakes.Table{
	Name: "l",
	Fields: []arrow.Field{
		lakes.Field("id", lakes.Int64), lakes.Field("labels", lakes.Labels), lakes.Field("cat", lakes.Text), lakes.Field("night", arrow.PrimitiveTypes.Int32),
	},
	Rows: `[{"id":1,"labels":["foo",null],"cat":"a","night":0},{"id":2,"labels":["foo"],"cat":"a","night":1},{"id":3,"labels":null,"cat":"b","night":0},{"id":4,"labels":[],"cat":"b","night":1},
		{"id":5,"labels":[null],"cat":null,"night":0},{"id":6,"labels":["bar"],"cat":"c","night":null},{"id":7,"labels":["foo","foo","bar"],"cat":"a","night":1}]`,
	Indices: []lakes.Index{{Column: "labels", Kind: index.KindLabelList}, {Column: "cat", Kind: index.KindBitmap}, {Column: "id", Kind: index.KindBTree}},
}

// bytewise has labels that a collation would confuse.
var bytewise = lakes.Table{
	Name: "bytewise", Fields: []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("l", lakes.Labels)},
	Rows: `[{"id":1,"l":[""]},{"id":2,"l":["foo "]},{"id":3,"l":["FOO"]},{"id":4,"l":["caf\u00e9"]},{"id":5,"l":["cafe\u0301"]},{"id":6,"l":["日本","😀"]},{"id":7,"l":["foo"]}]`,

	Indices: []lakes.Index{{Column: "l", Kind: index.KindLabelList}},
}

var integers = lakes.Table{
	Name: "ints", Fields: []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("l", arrow.ListOf(arrow.PrimitiveTypes.Int32))},
	Rows:    `[{"id":1,"l":[1,2]},{"id":2,"l":[10]},{"id":3,"l":[-1,null]},{"id":4,"l":[0]},{"id":5,"l":[-1294967296]}]`,
	Indices: []lakes.Index{{Column: "l", Kind: index.KindLabelList}},
}

// encoded is one column of labels in another encoding.
func encoded(name string, list arrow.DataType) lakes.Table {
	return lakes.Table{
		Name: name, Fields: []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("l", list)},
		Rows:    `[{"id":1,"l":["a","b"]},{"id":2,"l":["a"]},{"id":3,"l":null}]`,
		Indices: []lakes.Index{{Column: "l", Kind: index.KindLabelList}},
	}
}

var appended = lakes.Table{
	Name: "appended", Fields: []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("l", lakes.Labels)},
	// The second half, where it is appended, has a label that the index has never seen.
	Rows:    `[{"id":1,"l":["a"]},{"id":2,"l":["a","b"]},{"id":3,"l":["b"]},{"id":4,"l":null},{"id":5,"l":["a","new"]},{"id":6,"l":["new"]},{"id":7,"l":null}]`,
	Indices: []lakes.Index{{Column: "l", Kind: index.KindLabelList}},
}

// nights has twenty rows with one label: only the second half are at night.
func nights() lakes.Table {
	var rows []string
	for i := 1; i <= 20; i++ {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"labels":["A"],"night":%d}`, i, (i-1)/10))
	}
	return lakes.Table{
		Name: "nights", Fields: []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("labels", lakes.Labels), lakes.Field("night", arrow.PrimitiveTypes.Int32)},
		Rows: "[" + strings.Join(rows, ",") + "]", Indices: []lakes.Index{{Column: "labels", Kind: index.KindLabelList}},
	}
}

// condition is a predicate and the ids for which it is TRUE and NULL.
type condition struct {
	name, table, text string
	args              []any
	isTrue, isNull    []string
}

// labelConditions are the cases that say which rows a predicate is TRUE for.
var labelConditions = []condition{
	{"1 has any beside a NULL element", "l", "array_has_any(labels, make_array('foo'))", nil, ids(1, 2, 7), ids(3)},
	{"1 has all beside a NULL element", "l", "array_has_all(labels, make_array('foo'))", nil, ids(1, 2, 7), ids(3)},
	{"1 has beside a NULL element", "l", "array_has(labels, 'foo')", nil, ids(1, 2, 7), ids(3)},
	{"1 as a parameter", "l", "array_has(labels, ?)", []any{"foo"}, ids(1, 2, 7), ids(3)},
	{"1 a list as a parameter", "l", "array_has_any(labels, ?)", []any{`["foo"]`}, ids(1, 2, 7), ids(3)},
	{"1 a list of parameters", "l", "array_has_any(labels, make_array(?, ?))", []any{"foo", "bar"}, ids(1, 2, 6, 7), ids(3)},
	{"1 a JSON array", "l", "array_has_any(labels, JSON_ARRAY('foo'))", nil, ids(1, 2, 7), ids(3)},
	{"1 by the other names", "l", "arrays_overlap(labels, make_array('foo')) AND list_has_all(labels, make_array('foo')) AND list_contains(labels, 'foo')", nil, ids(1, 2, 7), ids(3)},
	{"2 NOT has all", "l", "NOT array_has_all(labels, make_array('foo','bar'))", nil, ids(1, 2, 4, 5, 6), ids(3)},
	{"3 duplicate needles", "l", "array_has_all(labels, make_array('foo','foo'))", nil, ids(1, 2, 7), ids(3)},
	{"3 duplicate needles among others", "l", "array_has_all(labels, make_array('foo','bar','foo'))", nil, ids(7), ids(3)},
	{"4 any of nothing", "l", "array_has_any(labels, make_array())", nil, nil, ids(3)},
	{"4 all of nothing", "l", "array_has_all(labels, make_array())", nil, ids(1, 2, 4, 5, 6, 7), ids(3)},
	{"5 NULL as needle", "l", "array_has(labels, NULL)", nil, nil, ids(1, 2, 3, 4, 5, 6, 7)},
	{"5 NULL as a bound needle", "l", "array_has(labels, ?)", []any{nil}, nil, ids(1, 2, 3, 4, 5, 6, 7)},
	{"5 NULL as needle list", "l", "array_has_any(labels, NULL)", nil, nil, ids(1, 2, 3, 4, 5, 6, 7)},
	{"a NULL inside the needles never matches", "l", "array_has_any(labels, make_array('foo', NULL))", nil, ids(1, 2, 7), ids(3)},
	{"all with a NULL is never TRUE", "l", "array_has_all(labels, make_array('foo', NULL))", nil, nil, ids(3)},
	{"6 the empty label", "bytewise", "array_has(l, '')", nil, ids(1), nil},
	{"6 a trailing blank", "bytewise", "array_has(l, 'foo ')", nil, ids(2), nil},
	{"6 capitals", "bytewise", "array_has(l, 'foo')", nil, ids(7), nil},
	{"6 a composed letter", "bytewise", "array_has(l, 'caf\u00e9')", nil, ids(4), nil},
	{"6 a decomposed letter", "bytewise", "array_has(l, 'cafe\u0301')", nil, ids(5), nil},
	{"6 four bytes of UTF-8", "bytewise", "array_has(l, '😀')", nil, ids(6), nil},
	{"6 four bytes of UTF-8 as a parameter", "bytewise", "array_has(l, ?)", []any{"😀"}, ids(6), nil},
	{"7 text on integers", "ints", "array_has(l, '1')", nil, ids(1), nil},
	{"7 text on integers, any", "ints", "array_has_any(l, make_array('1'))", nil, ids(1), nil},
	{"7 a text parameter on integers", "ints", "array_has(l, ?)", []any{"1"}, ids(1), nil},
	{"8 an integer of another width", "ints", "array_has(l, 1)", nil, ids(1), nil},
	{"8 an integer as a parameter", "ints", "array_has(l, ?)", []any{int64(1)}, ids(1), nil},
	{"8 a decimal of the same value", "ints", "array_has(l, 1.0)", nil, ids(1), nil},
	{"8 a fraction", "ints", "array_has(l, 1.5)", nil, nil, nil},
	{"8 a number that would wrap", "ints", "array_has(l, 3000000000)", nil, nil, nil},
	{"8 a wrapped number", "ints", "array_has(l, -1294967296)", nil, ids(5), nil},
	{"9 a large list", "large_list", "array_has(l, 'a')", nil, ids(1, 2), ids(3)},
	{"9 a large list, any", "large_list", "array_has_any(l, make_array('b'))", nil, ids(1), ids(3)},
	{"9 a list of large strings", "large_text", "array_has(l, 'a')", nil, ids(1, 2), ids(3)},
	{"9 a list of large strings, any", "large_text", "array_has_any(l, make_array('b'))", nil, ids(1), ids(3)},
	{"10 a known label", "appended", "array_has(l, 'a')", nil, ids(1, 2, 5), ids(4, 7)},
	{"10 a label that the index has never seen", "appended", "array_has(l, 'new')", nil, ids(5, 6), ids(4, 7)},
	{"13 AND with FALSE", "l", "array_has(labels,'foo') AND id > 100", nil, nil, nil},
	{"13 OR of NULLs", "l", "array_has(labels,'foo') OR array_has(labels,'bar')", nil, ids(1, 2, 6, 7), ids(3)},
	{"13 OR with another column", "l", "array_has(labels,'foo') OR id = 3", nil, ids(1, 2, 3, 7), nil},
	{"13 IS NOT TRUE", "l", "array_has(labels,'foo') IS NOT TRUE", nil, ids(3, 4, 5, 6), nil},
	{"13 IS NULL", "l", "array_has(labels,'foo') IS NULL", nil, ids(3), nil},
	{"13 the list itself is NULL", "l", "labels IS NULL", nil, ids(3), nil},
	{"13 XOR", "l", "array_has(labels,'foo') XOR array_has(labels,'bar')", nil, ids(1, 2, 6), ids(3)},
	{"with a nullable column", "l", "array_has(labels,'foo') AND cat = 'a' AND night = 1", nil, ids(2, 7), nil},
	{"OR with a nullable column", "l", "array_has(labels,'bar') OR night = 0", nil, ids(1, 3, 5, 6, 7), nil},
	{"OR with a constant NULL", "l", "array_has(labels,'foo') OR NULL", nil, ids(1, 2, 7), ids(3, 4, 5, 6)},
	{"AND with a constant NULL", "l", "NOT array_has(labels,'foo') AND NULL", nil, nil, ids(3, 4, 5, 6)},
	{"JSON's words", "l", "JSON_CONTAINS(labels, '[\"foo\",\"bar\"]')", nil, ids(7), ids(3)},
}

func ids(n ...int) []string {
	out := make([]string, len(n))
	for i, v := range n {
		out[i] = fmt.Sprint(v)
	}
	return out
}

func buildLabels(t *testing.T, path lakes.Path) string {
	t.Helper()
	dir := t.TempDir()
	lakes.Build(t, dir, path, labelTable, bytewise, integers, appended, nights(),
		encoded("large_list", arrow.LargeListOf(arrow.BinaryTypes.String)), encoded("large_text", arrow.ListOf(arrow.BinaryTypes.LargeString)))
	return dir
}

// TestLabelConditions asks each predicate as a filter, negated, as IS NULL and as a value: one truth, on every path and through every door.
func TestLabelConditions(t *testing.T) {
	for _, path := range lakes.Paths {
		t.Run(string(path), func(t *testing.T) {
			lake := lakes.Open(t, buildLabels(t, path), engine.Config{}).Serve(t, server.Options{})
			for _, d := range lake.Doors() {
				for _, c := range labelConditions {
					checkCondition(t, d, c)
				}
			}
		})
	}
}

func checkCondition(t *testing.T, d lakes.Door, c condition) {
	t.Helper()
	ask := func(text string) []string {
		got, err := d.Ask(context.Background(), text, c.args...)
		if err != nil {
			t.Errorf("%s (%s): %s: %v", c.name, d.Name, text, err)
		}
		return got
	}
	values := ask(fmt.Sprintf("SELECT id, %s AS x FROM %s ORDER BY id", c.text, c.table))
	if t.Failed() {
		return
	}
	byValue := map[string][]string{}
	for _, line := range values {
		id, x, _ := strings.Cut(line, "\t")
		byValue[x] = append(byValue[x], id)
	}
	check := func(what string, got, want []string) {
		if !slices.Equal(got, want) {
			t.Errorf("%s (%s): %s %s: got %v, want %v", c.name, d.Name, c.text, what, got, want)
		}
	}
	check("as a value is TRUE", byValue["1"], c.isTrue)
	check("as a value is NULL", byValue[lakes.Null], c.isNull)
	check("as a filter", ask(fmt.Sprintf("SELECT id FROM %s WHERE %s ORDER BY id", c.table, c.text)), c.isTrue)
	check("negated", ask(fmt.Sprintf("SELECT id FROM %s WHERE NOT (%s) ORDER BY id", c.table, c.text)), byValue["0"])
	check("IS NULL", ask(fmt.Sprintf("SELECT id FROM %s WHERE (%s) IS NULL ORDER BY id", c.table, c.text)), c.isNull)
	check("counted", ask(fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s", c.table, c.text)), ids(len(c.isTrue)))
}

// TestLabelStatements asks what is more than a predicate, and spellings that only text has.
func TestLabelStatements(t *testing.T) {
	for _, path := range lakes.Paths {
		t.Run(string(path), func(t *testing.T) {
			lake := lakes.Open(t, buildLabels(t, path), engine.Config{}).Serve(t, server.Options{})
			lake.Check(t, []lakes.Case{
				{Name: "1 a list literal", Text: "SELECT id FROM l WHERE array_has_any(labels, ['foo']) ORDER BY id", Want: ids(1, 2, 7)},
				{Name: "1 an ARRAY literal", Text: "SELECT id FROM l WHERE array_has_any(labels, ARRAY['foo']) ORDER BY id", Want: ids(1, 2, 7)},
				{Name: "1 MEMBER OF", Text: "SELECT id FROM l WHERE 'foo' MEMBER OF(labels) ORDER BY id", Want: ids(1, 2, 7)},
				{Name: "3 a row counts once", Text: "SELECT COUNT(*) FROM l WHERE array_has_any(labels, ['foo','bar'])", Want: ids(4)},
				{Name: "4 an empty literal", Text: "SELECT id FROM l WHERE array_has_all(labels, []) ORDER BY id", Want: ids(1, 2, 4, 5, 6, 7)},
				{Name: "5 an empty list and NULL", Text: "SELECT id, array_has(labels,'foo') FROM l WHERE id IN (3,4) ORDER BY id", Want: []string{"3\t" + lakes.Null, "4\t0"}},
				{Name: "6 no collation folds case", Text: "SELECT DISTINCT @@collation_connection LIKE '%\\_bin', @@collation_database LIKE '%\\_bin'", Want: []string{"1\t1"}},
				{Name: "12 LIMIT after both predicates", Text: "SELECT COUNT(*) FROM (SELECT id FROM nights WHERE array_has(labels,'A') AND night=1 LIMIT 5) x", Want: ids(5)},
				{Name: "12 only rows of the night", Text: "SELECT MIN(id) > 10 FROM (SELECT id FROM nights WHERE array_has(labels,'A') AND night=1 LIMIT 5) x", Want: ids(1)},
				{Name: "14 as values", Text: "SELECT id, array_has(labels,'foo') a, array_has_any(labels,['foo','zzz']) b, array_has_all(labels,['foo','bar']) c FROM l ORDER BY id",
					Want: []string{"1\t1\t1\t0", "2\t1\t1\t0", "3\t\\N\t\\N\t\\N", "4\t0\t0\t0", "5\t0\t0\t0", "6\t0\t0\t0", "7\t1\t1\t1"}},
				{Name: "14 summed", Text: "SELECT SUM(array_has(labels,'foo')) FROM l", Want: ids(3)},
				{Name: "14 in CASE", Text: "SELECT id, CASE WHEN array_has(labels,'bar') THEN 'y' ELSE 'n' END FROM l WHERE id > 5 ORDER BY id", Want: []string{"6\ty", "7\ty"}},
				{Name: "14 grouped by", Text: "SELECT array_has(labels,'foo') x, COUNT(*) FROM l GROUP BY x ORDER BY x", Want: []string{"\\N\t1", "0\t3", "1\t3"}},
			})
			for _, d := range lake.Doors() {
				for _, bad := range []string{"SELECT id FROM ints WHERE array_has(l, 'x')", "SELECT id FROM ints WHERE array_has_any(l, make_array('x'))", "SELECT array_has(l, 'x') FROM ints"} {
					if _, err := d.Ask(context.Background(), bad); err == nil || !strings.Contains(err.Error(), "'x'") && !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "l") {
						t.Errorf("7 (%s): %s: %v", d.Name, bad, err)
					}
				}
			}
		})
	}
}

// TestLabelPlans asserts where the label index is used and where it says that it is not.
func TestLabelPlans(t *testing.T) {
	lake := lakes.Open(t, buildLabels(t, lakes.Half), engine.Config{})
	for _, c := range []struct {
		name, text string
		want, not  []string
	}{
		{"4 nothing to look up", "SELECT id FROM l WHERE array_has_all(labels, [])", []string{"no_index", "empty"}, []string{"LABEL_LIST"}},
		{"5 a NULL needle", "SELECT id FROM l WHERE array_has(labels, NULL)", []string{"no_index", "NULL"}, []string{"LABEL_LIST"}},
		{"a needle that is a column", "SELECT id FROM l WHERE array_has(labels, cat) AND night = 1", []string{"no_index", "not a constant"}, []string{"LABEL_LIST"}},
		{"8 an integer literal through the index", "SELECT id FROM ints WHERE array_has(l, 1)", []string{"LABEL_LIST"}, nil},
		{"10 coverage", "SELECT id FROM appended WHERE array_has(l, 'a')", []string{"LABEL_LIST"}, nil},
		{"2 NOT through the index", "SELECT id FROM l WHERE NOT array_has(labels, 'foo')", []string{"LABEL_LIST"}, nil},
	} {
		plan := lake.Explain(t, c.text)
		for _, w := range c.want {
			if !strings.Contains(plan, w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, plan)
			}
		}
		for _, w := range c.not {
			if strings.Contains(plan, w) {
				t.Errorf("%s: %q in\n%s", c.name, w, plan)
			}
		}
	}
}
