//go:build interop

package interop

import (
	"cmp"
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
	"github.com/lakesql/lakesql/test/churn"
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

// TestTheLongStory tells a table's story by lakesql's statements, and again by the engine's own changes of a table whose indices lakesql built. After every
// chapter lakesql is asked at all doors by index, by scan and as a value, and the engine by our indices, which its plans have to name, and by its scan.
func TestTheLongStory(t *testing.T) {
	t.Run("engines", func(t *testing.T) {
		for name, eng := range StartPythons(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, stable := range []bool{false, true} {
					t.Run(fmt.Sprintf("our statements, stable ids %t", stable), func(t *testing.T) {
						ourStory(t, eng.On(t), map[string]string{"pylance": "2.2", "newer pylance": "2.1"}[name], stable)
					})
				}
				for _, kind := range []lakes.Path{lakes.Half, lakes.Extended, lakes.Stable} {
					if name == "pylance" {
						t.Run("the engine's changes, "+string(kind), func(t *testing.T) { theirStory(t, eng.On(t), kind) })
					}
				}
			})
		}
	})
}

func ourStory(t *testing.T, eng *Engine, version string, stable bool) {
	t.Helper()
	dir := t.TempDir()
	lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
	for i, c := range churn.Story(version, stable) {
		c.Tell(t, lake, i)
		c.Check(t, lake)
		engineAgrees(t, eng, filepath.Join(dir, "t.lance"), c)
	}
}

// theirStory has the engine make the changes; ids, labels and vectors are those of the story.
func theirStory(t *testing.T, eng *Engine, kind lakes.Path) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "t.lance")
	lakes.Build(t, dir, kind, lakes.Table{
		Name: "t", Fields: storyColumns,
		Rows: `[{"id":1,"l":["a"],"v":[1,0]},{"id":2,"l":["a","b"],"v":[2,0]},{"id":3,"l":["b"],"v":[3,0]},{"id":4,"l":null,"v":[4,0]},
			{"id":5,"l":["a","new"],"v":[5,0]},{"id":6,"l":["new"],"v":[6,0]},{"id":7,"l":null,"v":[7,0]}]`,
		Indices: []lakes.Index{{Column: "l", Kind: index.KindLabelList}, {Column: "id", Kind: index.KindBTree}, {Column: "v", Metric: index.MetricL2, Lists: 2}},
	})
	changes := [][]func(){
		nil,
		{func() { eng.Do("delete", Request{"path": path, "filter": "id = 1"}, nil) }},
		{func() {
			eng.Do("update", Request{"path": path, "values": map[string]string{"id": "30"}, "filter": "id = 3"}, nil)
		}},
		{func() {
			eng.Do("update", Request{"path": path, "values": map[string]string{"l": "make_array('z')", "v": "[9.5, 0.0]"}, "filter": "id = 2"}, nil)
		}},
		{func() { eng.Do("compact", Request{"path": path}, nil) }, func() { eng.Do("optimize_indices", Request{"path": path}, nil) }},
		{func() {
			eng.Do("append", Request{"path": path, "in": eng.Send(storyRows(t, `[{"id":8,"l":["a"],"v":[8,0]}]`))}, nil)
		}},
		{func() { eng.Do("delete", Request{"path": path, "filter": "array_has(l, 'new')"}, nil) }},
		{func() { eng.Do("compact", Request{"path": path}, nil) }},
	}
	lake := lakes.Open(t, dir, engine.Config{}).Serve(t, server.Options{})
	for i, c := range churn.Story("2.2", kind == lakes.Stable)[1:] {
		for _, change := range changes[i] {
			change()
		}
		c.Check(t, lake)
	}
}

// engineAgrees asks the engine what a chapter asks lakesql.
func engineAgrees(t *testing.T, eng *Engine, path string, c churn.Chapter) {
	t.Helper()
	var got engineCheck
	filters := slices.Clone(churn.StoryPredicates)
	for _, id := range []string{"1", "2", "8", "30"} {
		filters = append(filters, "id = "+id)
	}
	nearest := []Request{{"column": "v", "q": []float64{0, 0}, "k": 10, "metric": "l2"}}
	eng.Do("check", Request{"path": path, "filters": filters, "nearest": nearest, "out": eng.newFile()}, &got)
	spelled := func(ids []int64) string { return strings.Trim(fmt.Sprint(ids), "[]") }
	for i, f := range filters {
		want, name := "", "id_idx"
		if i < len(churn.StoryPredicates) {
			want, name = c.Answers()[i], "l_idx"
		} else if id := strings.TrimPrefix(f, "id = "); slices.Contains(strings.Fields(c.Nearest), id) {
			want = id
		}
		a := got.Answers[i]
		slices.Sort(a.Index)
		slices.Sort(a.Scan)
		byNumber := strings.Fields(want)
		slices.SortFunc(byNumber, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		if want = strings.Join(byNumber, " "); spelled(a.Index) != want || spelled(a.Scan) != want {
			t.Errorf("%s: %s: the engine finds %v by index, %v by scan, want %s", c.Name, f, a.Index, a.Scan, want)
		}
		if !strings.Contains(a.Plan, name) {
			t.Errorf("%s: %s: the engine's plan does not name %s: %s", c.Name, f, name, a.Plan)
		}
	}
	if a := got.Answers[len(filters)]; spelled(a.Index) != c.Nearest || spelled(a.Scan) != c.Nearest || !strings.Contains(a.Plan, "v_idx") {
		t.Errorf("%s: the engine's nearest are %v by index, %v by scan, want %s: %s", c.Name, a.Index, a.Scan, c.Nearest, a.Plan)
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
