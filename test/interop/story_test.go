//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/engine"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/server"
	"github.com/lakesql/lakesql/test/lakes"
)

var storyColumns = []arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("l", lakes.Labels), lakes.Field("v", lakes.Vector(2))}

func storyRows(t *testing.T, rows string) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(storyColumns, nil), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// chapter is a step of the engine and what holds afterwards.
type chapter struct {
	name         string
	do           func(eng *Engine, path string)
	a, notA, all string // array_has(l,'a'), its negation, array_has_all(l,['a','b'])
	nearest      string // all ids by distance from [0,0]
}

// TestTheLongStory deletes, updates, compacts, optimizes and appends with the engine on a table whose indices lakesql built. After every step the predicates are
// asked as filters, by index and by scan, and as values, and searches exactly and by index, in a session that stays open and over the wire.
func TestTheLongStory(t *testing.T) {
	eng := StartPython(t)
	chapters := []chapter{
		{"rows appended after the indices", func(*Engine, string) {}, "1 2 5", "3 6", "2", "1 2 3 4 5 6 7"},
		{"a row deleted", func(eng *Engine, path string) { eng.Do("delete", Request{"path": path, "filter": "id = 1"}, nil) }, "2 5", "3 6", "2", "2 3 4 5 6 7"},
		{"an id updated", func(eng *Engine, path string) {
			eng.Do("update", Request{"path": path, "values": map[string]string{"id": "30"}, "filter": "id = 3"}, nil)
		}, "2 5", "6 30", "2", "2 30 4 5 6 7"},
		{"labels and a vector updated", func(eng *Engine, path string) {
			eng.Do("update", Request{"path": path, "values": map[string]string{"l": "make_array('z')", "v": "[9.5, 0.0]"}, "filter": "id = 2"}, nil)
		}, "5", "2 6 30", "", "30 4 5 6 7 2"},
		{"compacted and optimized", func(eng *Engine, path string) {
			eng.Do("compact", Request{"path": path}, nil)
			eng.Do("optimize_indices", Request{"path": path}, nil)
		}, "5", "2 6 30", "", "30 4 5 6 7 2"},
		{"appended, deleted by label and compacted", func(eng *Engine, path string) {
			eng.Do("append", Request{"path": path, "in": eng.Send(storyRows(t, `[{"id":8,"l":["a"],"v":[8,0]}]`))}, nil)
			eng.Do("delete", Request{"path": path, "filter": "array_has(l, 'new')"}, nil)
			eng.Do("compact", Request{"path": path}, nil)
		}, "8", "2 30", "", "30 4 7 8 2"},
	}
	for _, kind := range []lakes.Path{lakes.Half, lakes.Extended, lakes.Stable} {
		t.Run(string(kind), func(t *testing.T) {
			dir := t.TempDir()
			lakes.Build(t, dir, kind, lakes.Table{
				Name: "t", Fields: storyColumns,
				Rows: `[{"id":1,"l":["a"],"v":[1,0]},{"id":2,"l":["a","b"],"v":[2,0]},{"id":3,"l":["b"],"v":[3,0]},{"id":4,"l":null,"v":[4,0]},
					{"id":5,"l":["a","new"],"v":[5,0]},{"id":6,"l":["new"],"v":[6,0]},{"id":7,"l":null,"v":[7,0]}]`,
				Indices: []lakes.Index{{Column: "l", Kind: index.KindLabelList}, {Column: "id", Kind: index.KindBTree}, {Column: "v", Metric: index.MetricL2, Lists: 2}},
			})
			lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
			for _, c := range chapters {
				c.do(eng, filepath.Join(dir, "t.lance"))
				c.check(t, lake)
			}
		})
	}
}

func (c chapter) check(t *testing.T, lake *lakes.Lake) {
	t.Helper()
	for _, d := range lake.Doors() {
		ask := func(text string) []string {
			got, err := d.Ask(context.Background(), text)
			if err != nil {
				t.Errorf("%s (%s): %s: %v", c.name, d.Name, text, err)
			}
			return got
		}
		same := func(what string, got []string, want string) {
			if strings.Join(got, " ") != want {
				t.Errorf("%s (%s): %s: got %v, want %s", c.name, d.Name, what, got, want)
			}
		}
		for _, prefilter := range []string{"auto", "index", "scan"} {
			ask("SET prefilter = '" + prefilter + "'")
			for p, want := range map[string]string{"array_has(l, 'a')": c.a, "NOT array_has(l, 'a')": c.notA, "array_has_all(l, make_array('a', 'b'))": c.all} {
				same(p+", prefilter "+prefilter, ask("SELECT id FROM t WHERE "+p+" ORDER BY id"), want)
				var byValue []string
				for _, line := range ask("SELECT id, " + p + " FROM t ORDER BY id") {
					if id, ok := strings.CutSuffix(line, "\t1"); ok {
						byValue = append(byValue, id)
					}
				}
				same(p+" as a value", byValue, want)
			}
			rows := strings.Fields(c.nearest)
			for id := range 31 {
				want := ""
				if slices.Contains(rows, fmt.Sprint(id)) {
					want = "1"
				}
				if got := ask(fmt.Sprintf("SELECT 1 FROM t WHERE id = %d", id)); strings.Join(got, " ") != want {
					t.Errorf("%s (%s): id %d, prefilter %s: %v", c.name, d.Name, id, prefilter, got)
				}
			}
		}
		for _, ann := range []string{"off", "force"} {
			ask("SET ann = '" + ann + "'")
			same("the nearest, ann "+ann, ask("SELECT id FROM t ORDER BY l2_distance(v, '[0,0]') LIMIT 10"), c.nearest)
			same("the nearest with a label, ann "+ann, ask("SELECT id FROM t WHERE array_has(l, 'a') ORDER BY l2_distance(v, '[0,0]') LIMIT 10"), c.a)
		}
	}
}

// TestListsOfDictionaries is the encoding of labels that neither engine indexes.
func TestListsOfDictionaries(t *testing.T) {
	eng := StartPython(t)
	dir := t.TempDir()
	values := array.NewDictionaryBuilder(memory.DefaultAllocator, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}).(*array.BinaryDictionaryBuilder)
	for _, label := range []string{"a", "b", "a"} {
		if err := values.AppendString(label); err != nil {
			t.Fatal(err)
		}
	}
	items := values.NewArray()
	list := arrow.ListOf(items.DataType())
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 2, 3, 3}))
	data := array.NewData(list, 3, []*memory.Buffer{memory.NewBufferBytes([]byte{0b011}), offsets}, []arrow.ArrayData{items.Data()}, 1, 0)
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	ids.AppendValues([]int64{1, 2, 3}, nil)
	s := arrow.NewSchema([]arrow.Field{lakes.Field("id", lakes.Int64), lakes.Field("l", list)}, nil)
	eng.Do("create", Request{"path": filepath.Join(dir, "t.lance"), "in": eng.Send(array.NewRecordBatch(s, []arrow.Array{ids.NewArray(), array.MakeFromData(data)}, 3))}, nil)
	lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{}).Check(t, []lakes.Case{
		{Name: "has", Text: "SELECT id FROM t WHERE array_has(l, 'a') ORDER BY id", Want: []string{"1", "2"}},
		{Name: "any", Text: "SELECT id FROM t WHERE array_has_any(l, make_array('b'))", Want: []string{"1"}},
		{Name: "NOT", Text: "SELECT id FROM t WHERE NOT array_has(l, 'a')"},
		{Name: "as a value", Text: "SELECT id, array_has(l, 'b') FROM t ORDER BY id", Want: []string{"1\t1", "2\t0", "3\t\\N"}},
	})
}
