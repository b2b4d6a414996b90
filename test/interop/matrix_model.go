package interop

import (
	"fmt"
	"maps"
	"math"
	"math/rand"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/testutil"
)

// modelRow is a row as it has to be: cells by column, spelled, and the indexed column's value once more.
type modelRow struct {
	key   keyValue
	cells map[string]any
}

// model is the table as it has to be.
type model struct {
	key    keyType
	column string // the indexed column's name
	rows   map[int64]modelRow
}

func (m *model) clone() *model {
	c := *m
	c.rows = maps.Clone(m.rows)
	return &c
}

func (m *model) ids(where func(id int64, r modelRow) bool) (out []int64) {
	for id, r := range m.rows {
		if where(id, r) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// set changes cells of the rows where is.
func (m *model) set(where func(id int64) bool, cells func(id int64, r modelRow) map[string]any) {
	for id, r := range m.rows {
		if where(id) {
			next := maps.Clone(r.cells)
			maps.Copy(next, cells(id, r))
			r.cells = next
			m.rows[id] = r
		}
	}
}

// setKey changes the indexed column of the rows where is.
func (m *model) setKey(where func(id int64) bool, v keyValue) {
	spelled := m.spell(v)
	for id, r := range m.rows {
		if where(id) {
			r.key = v
			r.cells = maps.Clone(r.cells)
			r.cells[m.column] = spelled
			m.rows[id] = r
		}
	}
}

func (m *model) spell(v keyValue) any {
	b := array.NewBuilder(memory.DefaultAllocator, m.key.typ)
	m.key.appendTo(b, v)
	return testutil.Spell(b.NewArray(), 0)
}

func (m *model) remove(where func(id int64, r modelRow) bool) {
	maps.DeleteFunc(m.rows, where)
}

// add takes rows of a seed.
func (m *model) add(s *seed, ids ...int64) {
	for _, id := range ids {
		cells := maps.Clone(s.cells[id])
		m.rows[id] = modelRow{key: s.keys[id], cells: cells}
	}
}

// seed is the rows that a case may put into its table, ids from 0 up.
type seed struct {
	schema *arrow.Schema
	batch  arrow.RecordBatch
	cells  []map[string]any
	keys   []keyValue
}

const seedRows = 230

// keyOf draws the value of the indexed column.
func keyOf(r *rand.Rand, k keyType, shape string, id int) keyValue {
	nulls, empties := map[string]float64{"nulls": 0.4, "nesting": 0.1}[shape], map[string]float64{"empties": 0.5, "nesting": 0.1}[shape]
	if r.Float64() < nulls {
		return keyValue{null: true}
	}
	switch {
	case isVector(k.typ):
		return keyValue{codes: []int{1 + id, 1 + id*7%11, 1 + id%3, 1 + id%5}}
	case isList(k.typ):
		v := keyValue{}
		for range 1 + r.Intn(4) {
			c := r.Intn(k.codes)
			if r.Float64() < nulls/2 {
				c = nullCode
			}
			v.codes = append(v.codes, c)
		}
		if r.Float64() < empties {
			v.codes = nil
		}
		return v
	case r.Float64() < empties:
		return keyValue{codes: []int{0}}
	}
	return keyValue{codes: []int{r.Intn(k.codes)}}
}

// newSeed draws rows of a shape: columns id, k (indexed), note (for the foreign index) and one of every type.
func newSeed(shape string, k keyType, version string) *seed {
	columns := slices.Concat([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "k", Type: k.typ, Nullable: true},
		{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
	}, testutil.Columns(version == "2.2"))
	if shape == "nesting" {
		columns = append(columns[:3:3], nested(version)...)
	}
	maker := testutil.RowMaker{R: rand.New(rand.NewSource(int64(len(shape)))), Distinct: 50}
	switch shape {
	case "nulls":
		maker.Nulls, maker.Distinct = 0.5, 0
	case "empties":
		maker.Empty = 0.6
	case "nesting":
		maker.Nulls, maker.Empty, maker.Distinct = 0.15, 0.2, 0
	}
	s := &seed{schema: arrow.NewSchema(columns, nil)}
	drawn := maker.Batch(memory.DefaultAllocator, s.schema, seedRows)
	ids, keys, notes := array.NewInt64Builder(memory.DefaultAllocator), array.NewBuilder(memory.DefaultAllocator, k.typ), array.NewStringBuilder(memory.DefaultAllocator)
	for i := range seedRows {
		ids.Append(int64(i))
		notes.Append(fmt.Sprintf("note number %d of %s", i%7, strings.Repeat("word ", i%3)))
		s.keys = append(s.keys, keyOf(maker.R, k, shape, i))
		k.appendTo(keys, s.keys[i])
	}
	arrays := slices.Clone(drawn.Columns())
	arrays[0], arrays[1], arrays[2] = ids.NewArray(), keys.NewArray(), notes.NewArray()
	s.batch = array.NewRecordBatch(s.schema, arrays, seedRows)
	s.cells = testutil.Rows(s.batch)
	return s
}

// nested is columns of lists, structs, vectors and maps within one another.
func nested(version string) []arrow.Field {
	of := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	utf8, i32 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32
	pair := arrow.StructOf(of("n", i32), of("s", utf8))
	deep := arrow.StructOf(of("p", pair), of("l", arrow.ListOf(pair)), of("v", arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)))
	out := []arrow.Field{
		of("i16", arrow.PrimitiveTypes.Int16), of("i64", arrow.PrimitiveTypes.Int64), of("u16", arrow.PrimitiveTypes.Uint16), of("utf8", utf8),
		of("lists", arrow.ListOf(arrow.ListOf(arrow.ListOf(utf8)))), of("deep", deep), of("deeps", arrow.ListOf(deep)), of("large", arrow.LargeListOf(arrow.ListOf(pair))),
		of("vectors", arrow.ListOf(arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float64))), of("wrapped", arrow.StructOf(of("w", arrow.StructOf(of("l", arrow.ListOf(arrow.BinaryTypes.Binary)))))),
	}
	if version == "2.2" {
		out = append(out, of("maps", arrow.ListOf(arrow.MapOf(utf8, i32))), of("map_lists", arrow.MapOf(utf8, arrow.ListOf(pair))), of("in_struct", arrow.StructOf(of("m", arrow.MapOf(utf8, i32)))))
	}
	return out
}

// truth is a value of three-valued logic.
type truth int

const (
	isFalse truth = iota
	isNull
	isTrue
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// question is a predicate over the indexed column, as both engines write it.
type question struct {
	ours, theirs string
	holds        func(v keyValue) truth
	named        bool // the engine's plan must name the index
}

func negated(q question) question {
	return question{"NOT (" + q.ours + ")", "NOT (" + q.theirs + ")", func(v keyValue) truth { return isTrue - q.holds(v) }, q.named}
}

// questions are those asked of a filter index.
func questions(kind string, k keyType, column string) []question {
	if kind == "LABEL_LIST" {
		return labelQuestions(k, column)
	}
	last := k.codes - 1
	of := func(format string, test func(c int) bool, codes ...int) question {
		spell := func(f func(int) string) string {
			args := []any{column}
			for _, c := range codes {
				args = append(args, f(c))
			}
			return fmt.Sprintf(format, args...)
		}
		return question{spell(k.ours), spell(k.theirs), func(v keyValue) truth {
			if v.null {
				return isNull
			}
			return truthOf(test(v.codes[0]))
		}, true}
	}
	null := of("%s IS NULL", nil)
	null.holds = func(v keyValue) truth { return truthOf(v.null) }
	eq := of("%s = %s", func(c int) bool { return c == min(3, last) }, min(3, last))
	not := negated(eq)
	not.named = kind != "ZONEMAP" && !k.castsNot // the engine asks no zones for what differs
	if last == 1 {
		return []question{eq, not, null}
	}
	return []question{
		eq, of("%s IN (%s,%s)", func(c int) bool { return c == 2 || c == last }, 2, last), of("%s < %s", func(c int) bool { return c < 4 }, 4),
		of("%s BETWEEN %s AND %s", func(c int) bool { return c >= 2 && c <= 6 }, 2, 6), of("%s = %s", func(c int) bool { return c == 0 }, 0), null, not,
	}
}

func labelQuestions(k keyType, column string) []question {
	of := func(function string, all, bare bool, codes ...int) question {
		spell := func(f func(int) string) string {
			parts := make([]string, len(codes))
			for i, c := range codes {
				parts[i] = f(c)
			}
			list := strings.Join(parts, ",")
			if !bare {
				list = "[" + list + "]"
			}
			return fmt.Sprintf("%s(%s, %s)", function, column, list)
		}
		return question{spell(k.ours), spell(k.theirs), func(v keyValue) truth {
			if v.null {
				return isNull
			}
			n := 0
			for _, c := range codes {
				if slices.Contains(v.codes, c) {
					n++
				}
			}
			return truthOf(n == len(codes) || n > 0 && !all)
		}, true}
	}
	has, anyOf, allOf := of("array_has", true, true, 3), of("array_has_any", false, false, 1, 7), of("array_has_all", true, false, 3, 5)
	return []question{has, anyOf, allOf, negated(has), negated(allOf), of("array_has", true, true, 0), and(anyOf, negated(has)), or(has, allOf)}
}

func and(p, q question) question {
	return question{"(" + p.ours + " AND " + q.ours + ")", "(" + p.theirs + " AND " + q.theirs + ")", func(v keyValue) truth { return min(p.holds(v), q.holds(v)) }, p.named}
}

func or(p, q question) question {
	return question{"(" + p.ours + " OR " + q.ours + ")", "(" + p.theirs + " OR " + q.theirs + ")", func(v keyValue) truth { return max(p.holds(v), q.holds(v)) }, p.named}
}

// nearestQuestion is a search.
type nearestQuestion struct {
	ours   string
	theirs map[string]any
	k      int
	above  int64 // ids are above it
}

var queryVector = []float64{40.3, 3, 2, 1}

// distances are those of rows from the query vector, rounded to what float16 and float32 tell apart.
func (m *model) distances(q nearestQuestion, ids []int64) (out []float64) {
	for _, id := range ids {
		var l2, dot, norm, query float64
		for i, c := range m.rows[id].key.codes {
			x, y := float64(c), queryVector[i]
			l2 += (x - y) * (x - y)
			dot += x * y
			norm += x * x
			query += y * y
		}
		d := map[string]float64{"l2": l2, "dot": -dot, "cosine": 1 - dot/math.Sqrt(norm*query)}[m.key.metric]
		out = append(out, math.Round(d*1e4)/1e4)
	}
	return out
}

// nearest are the smallest distances.
func (m *model) nearest(q nearestQuestion) []float64 {
	all := m.distances(q, m.ids(func(id int64, r modelRow) bool { return !r.key.null && id > q.above }))
	slices.Sort(all)
	return all[:min(q.k, len(all))]
}
