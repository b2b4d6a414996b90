package churn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lakesql/lakesql/test/lakes"
)

// Chapter is a step in the life of a table with three indices, and what holds afterwards: ids, parted by spaces.
type Chapter struct {
	Name         string
	Statements   []string
	A, NotA, New string // array_has(l, 'a'), its negation, array_has(l, 'new')
	All          string // array_has_all(l, ['a', 'b'])
	Nearest      string // all ids by distance from [0,0]
}

// StoryIndices are those of the story's table: labels, ids and vectors.
var StoryIndices = []string{"l_idx", "id_idx", "v_idx"}

// StoryPredicates are asked after each chapter, in the words of both engines; the answers are those of Answers.
var StoryPredicates = []string{"array_has(l, 'a')", "NOT array_has(l, 'a')", "array_has(l, 'new')", "array_has_all(l, ['a', 'b'])"}

// Answers are the ids that StoryPredicates find.
func (c Chapter) Answers() []string { return []string{c.A, c.NotA, c.New, c.All} }

// Story makes the table t and tells its life: rows appended after the indices, deleted, updated in the indexed columns, compacted, appended and deleted by label.
func Story(version string, stable bool) []Chapter {
	return []Chapter{
		{"indexed", []string{
			fmt.Sprintf("CREATE TABLE t (id BIGINT, l LIST<VARCHAR>, v VECTOR(2)) WITH (file_version = '%s', stable_row_ids = %t)", version, stable),
			"INSERT INTO t VALUES (1, ['a'], '[1,0]'), (2, ['a','b'], '[2,0]'), (3, ['b'], '[3,0]'), (4, NULL, '[4,0]')",
			"CREATE INDEX l_idx ON t (l) USING LABEL_LIST", "CREATE INDEX id_idx ON t (id) USING BTREE",
			"CREATE VECTOR INDEX v_idx ON t (v) USING IVF_FLAT WITH (metric = 'l2', num_partitions = 2)",
		}, "1 2", "3", "", "2", "1 2 3 4"},
		{"rows appended after the indices", []string{"INSERT INTO t VALUES (5, ['a','new'], '[5,0]'), (6, ['new'], '[6,0]'), (7, NULL, '[7,0]')"}, "1 2 5", "3 6", "5 6", "2", "1 2 3 4 5 6 7"},
		{"a row deleted", []string{"DELETE FROM t WHERE id = 1"}, "2 5", "3 6", "5 6", "2", "2 3 4 5 6 7"},
		{"an id updated", []string{"UPDATE t SET id = 30 WHERE id = 3"}, "2 5", "6 30", "5 6", "2", "2 30 4 5 6 7"},
		{"labels and a vector updated", []string{"UPDATE t SET l = ['z'], v = '[9.5,0]' WHERE id = 2"}, "5", "2 6 30", "5 6", "", "30 4 5 6 7 2"},
		{"compacted and indices updated", []string{"CALL lakesql.compact('t')", "CALL lakesql.optimize_indices('t')"}, "5", "2 6 30", "5 6", "", "30 4 5 6 7 2"},
		{"appended", []string{"INSERT INTO t VALUES (8, ['a'], '[8,0]')"}, "5 8", "2 6 30", "5 6", "", "30 4 5 6 7 8 2"},
		{"deleted by label", []string{"DELETE FROM t WHERE array_has(l, 'new')"}, "8", "2 30", "", "", "30 4 7 8 2"},
		{"compacted again", []string{"CALL lakesql.compact('t')"}, "8", "2 30", "", "", "30 4 7 8 2"},
	}
}

// Tell runs the chapter's statements: changes of rows as text and prepared, in turn.
func (c Chapter) Tell(t *testing.T, lake *lakes.Lake, at int) {
	t.Helper()
	doors := lake.Doors()
	for i, text := range c.Statements {
		d := doors[(at+i)%len(doors)]
		if verb, _, _ := strings.Cut(text, " "); !slices.Contains([]string{"INSERT", "UPDATE", "DELETE"}, verb) {
			d = doors[(at+i)%2] // definitions are not prepared
		}
		if _, err := d.Ask(context.Background(), text); err != nil {
			t.Fatalf("%s (%s): %s: %v", c.Name, d.Name, text, err)
		}
	}
}

// Check asks at each door, by index and by scan, as filters and as values, and searches exactly and by index.
func (c Chapter) Check(t *testing.T, lake *lakes.Lake) {
	t.Helper()
	for _, d := range lake.Doors() {
		ask := func(text string) []string {
			got, err := d.Ask(context.Background(), text)
			if err != nil {
				t.Errorf("%s (%s): %s: %v", c.Name, d.Name, text, err)
			}
			return got
		}
		same := func(what string, got []string, want string) {
			if strings.Join(got, " ") != want {
				t.Errorf("%s (%s): %s: got %v, want %s", c.Name, d.Name, what, got, want)
			}
		}
		for _, prefilter := range []string{"auto", "index", "scan"} {
			ask("SET prefilter = '" + prefilter + "'")
			for i, want := range c.Answers() {
				p := StoryPredicates[i]
				same(p+", prefilter "+prefilter, ask("SELECT id FROM t WHERE "+p+" ORDER BY id"), want)
				var byValue []string
				for _, line := range ask("SELECT id, " + p + " FROM t ORDER BY id") {
					if id, ok := strings.CutSuffix(line, "\t1"); ok {
						byValue = append(byValue, id)
					}
				}
				same(p+" as a value", byValue, want)
			}
			rows := strings.Fields(c.Nearest)
			for _, id := range []string{"1", "2", "3", "5", "6", "8", "30"} {
				want := ""
				if slices.Contains(rows, id) {
					want = "1"
				}
				same("id "+id+", prefilter "+prefilter, ask("SELECT 1 FROM t WHERE id = "+id), want)
			}
		}
		for _, ann := range []string{"off", "force"} {
			ask("SET ann = '" + ann + "'")
			same("the nearest, ann "+ann, ask("SELECT id FROM t ORDER BY l2_distance(v, '[0,0]') LIMIT 10"), c.Nearest)
			same("the nearest with a label, ann "+ann, ask("SELECT id FROM t WHERE array_has(l, 'a') ORDER BY l2_distance(v, '[0,0]') LIMIT 10"), c.A)
		}
	}
}
