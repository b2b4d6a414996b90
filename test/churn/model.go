package churn

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand"
	"reflect"
	"slices"
	"strings"
)

// Row is a row of the model. nil is NULL.
type Row struct {
	Labels *[]*string
	Tag    *string
	N, Z   *int64
	V      *[3]float64
}

// Rows is the table by id.
type Rows map[int64]Row

func (r Rows) ids() []int64 { return slices.Sorted(maps.Keys(r)) }

// changed counts the rows of before that are others in r, whatever their id.
func (r Rows) changed(before Rows) (n uint64) {
	for id, row := range r {
		if old, ok := before[id]; ok && !reflect.DeepEqual(old, row) {
			n++
		}
	}
	return n
}

var (
	labels = []string{"a", "b", "c", "d", "e", "", "it's", "ä日"}
	tags   = []string{"t0", "t1", "t2", "t3", ""}
)

func maybe[T any](r *rand.Rand, nulls int, v T) *T {
	if r.Intn(nulls) == 0 {
		return nil
	}
	return &v
}

// drawLabels draws a list: one in eight is NULL, some are empty, some have NULL elements and labels twice.
func drawLabels(r *rand.Rand) *[]*string {
	list := []*string{}
	for range r.Intn(4) {
		list = append(list, maybe(r, 9, labels[r.Intn(len(labels))]))
	}
	return maybe(r, 8, list)
}

func drawRow(r *rand.Rand, id int64) Row {
	return Row{
		Labels: drawLabels(r), Tag: maybe(r, 7, tags[r.Intn(len(tags))]), N: maybe(r, 7, id/10+int64(r.Intn(20))), Z: maybe(r, 9, id+int64(r.Intn(5))),
		V: maybe(r, 9, [3]float64{float64(r.Intn(60)), float64(r.Intn(60)), float64(r.Intn(60))}),
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func textOf(s *string) string {
	if s == nil {
		return "NULL"
	}
	return quote(*s)
}

func numberOf(n *int64) string {
	if n == nil {
		return "NULL"
	}
	return fmt.Sprint(*n)
}

func listOf(l *[]*string) string {
	if l == nil {
		return "NULL"
	}
	parts := make([]string, len(*l))
	for i, s := range *l {
		parts[i] = textOf(s)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func vectorOf(v *[3]float64) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("'[%g,%g,%g]'", v[0], v[1], v[2])
}

// values spells a row as VALUES has it.
func (r Row) values(id int64) string {
	return fmt.Sprintf("(%d,%s,%s,%s,%s,%s)", id, listOf(r.Labels), textOf(r.Tag), numberOf(r.N), numberOf(r.Z), vectorOf(r.V))
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

// Predicate is a condition in the words of both engines, and what it is of a row.
type Predicate struct {
	Text  string
	Index string // that alone can answer it; "" = more than one, or none
	holds func(id int64, r Row) truth
}

// Holds lists the rows where the predicate is true.
func (p Predicate) Holds(rows Rows) (ids []int64) {
	for _, id := range rows.ids() {
		if p.holds(id, rows[id]) == isTrue {
			ids = append(ids, id)
		}
	}
	return ids
}

func not(p Predicate) Predicate {
	return Predicate{"NOT (" + p.Text + ")", p.Index, func(id int64, r Row) truth { return isTrue - p.holds(id, r) }}
}

func both(p, q Predicate) Predicate {
	return Predicate{"(" + p.Text + " AND " + q.Text + ")", shared(p, q), func(id int64, r Row) truth { return min(p.holds(id, r), q.holds(id, r)) }}
}

func either(p, q Predicate) Predicate {
	return Predicate{"(" + p.Text + " OR " + q.Text + ")", shared(p, q), func(id int64, r Row) truth { return max(p.holds(id, r), q.holds(id, r)) }}
}

func shared(p, q Predicate) string {
	if p.Index != q.Index {
		return ""
	}
	return p.Index
}

// has is array_has_all, array_has_any, or array_has of one label.
func has(function string, needles ...string) Predicate {
	list := make([]string, len(needles))
	for i, n := range needles {
		list[i] = quote(n)
	}
	needle := strings.Join(list, ",")
	if function != "array_has" {
		needle = "[" + needle + "]"
	}
	return Predicate{fmt.Sprintf("%s(labels, %s)", function, needle), LabelIndex, func(_ int64, r Row) truth {
		if r.Labels == nil {
			return isNull
		}
		n := 0
		for _, s := range needles {
			if slices.ContainsFunc(*r.Labels, func(l *string) bool { return l != nil && *l == s }) {
				n++
			}
		}
		return truthOf(n == len(needles) || n > 0 && function == "array_has_any")
	}}
}

func compared[T cmp.Ordered](text, index string, of func(id int64, r Row) *T, test func(v T) bool) Predicate {
	return Predicate{text, index, func(id int64, r Row) truth {
		v := of(id, r)
		if v == nil {
			return isNull
		}
		return truthOf(test(*v))
	}}
}

func tagOf(_ int64, r Row) *string { return r.Tag }
func nOf(_ int64, r Row) *int64    { return r.N }
func zOf(_ int64, r Row) *int64    { return r.Z }

func missing(column, index string, null func(r Row) bool) Predicate {
	return Predicate{column + " IS NULL", index, func(_ int64, r Row) truth { return truthOf(null(r)) }}
}

// The indices of the table.
const (
	LabelIndex  = "labels_idx"
	TagIndex    = "tag_idx"
	NumberIndex = "n_idx"
	ZoneIndex   = "z_idx"
	VectorIndex = "v_idx"
)

// Labels are the label predicates that are asked after every step.
func Labels() []Predicate {
	a, b, e := has("array_has", "a"), has("array_has", "b"), has("array_has", "")
	anyOf, allOf := has("array_has_any", "a", "d", "it's"), has("array_has_all", "a", "b")
	return []Predicate{
		a, not(a), anyOf, not(anyOf), allOf, not(allOf), both(a, not(b)), either(allOf, e), both(either(a, b), not(anyOf)), has("array_has", "nowhere"),
		missing("labels", "", func(r Row) bool { return r.Labels == nil }),
	}
}

// Others are predicates of the other indices.
func Others() []Predicate {
	return []Predicate{
		compared("tag = 't1'", TagIndex, tagOf, func(v string) bool { return v == "t1" }), compared("tag IN ('', 't3')", TagIndex, tagOf, func(v string) bool { return v == "" || v == "t3" }),
		missing("tag", TagIndex, func(r Row) bool { return r.Tag == nil }), compared("n < 25", NumberIndex, nOf, func(v int64) bool { return v < 25 }),
		compared("n = 30", NumberIndex, nOf, func(v int64) bool { return v == 30 }), missing("n", NumberIndex, func(r Row) bool { return r.N == nil }),
		compared("z BETWEEN 40 AND 90", ZoneIndex, zOf, func(v int64) bool { return v >= 40 && v <= 90 }), compared("z = 77", ZoneIndex, zOf, func(v int64) bool { return v == 77 }),
	}
}

// draw makes a predicate of up to depth levels over all columns.
func draw(r *rand.Rand, depth int, next int64) Predicate {
	if depth > 0 && r.Intn(3) > 0 {
		p, q := draw(r, depth-1, next), draw(r, depth-1, next)
		switch r.Intn(3) {
		case 0:
			return not(p)
		case 1:
			return both(p, q)
		}
		return either(p, q)
	}
	label := func() string { return labels[r.Intn(len(labels))] }
	n := r.Int63n(next/10 + 20)
	z := r.Int63n(next + 5)
	tag := tags[r.Intn(len(tags))]
	switch r.Intn(9) {
	case 0, 1:
		return has("array_has", label())
	case 2:
		return has("array_has_any", label(), label(), label())
	case 3:
		return has("array_has_all", label(), label())
	case 4:
		return compared(fmt.Sprintf("n >= %d", n), NumberIndex, nOf, func(v int64) bool { return v >= n })
	case 5:
		return compared(fmt.Sprintf("z < %d", z), ZoneIndex, zOf, func(v int64) bool { return v < z })
	case 6:
		return missing("labels", "", func(r Row) bool { return r.Labels == nil })
	case 7:
		return Predicate{fmt.Sprintf("id %% 5 = %d", n%5), "", func(id int64, _ Row) truth { return truthOf(id%5 == n%5) }}
	}
	return compared("tag = "+quote(tag), TagIndex, tagOf, func(v string) bool { return v == tag })
}

// nearest orders the rows by distance from a place, those without a vector last, and by id.
func (r Rows) nearest(at [3]float64, p *Predicate, k int) []int64 {
	ids := r.ids()
	if p != nil {
		ids = p.Holds(r)
	}
	slices.SortStableFunc(ids, func(a, b int64) int { return cmp.Compare(r.distance(at, a), r.distance(at, b)) })
	return ids[:min(k, len(ids))]
}

// distance is a row's squared distance from a place; that of a row without a vector is beyond all others.
func (r Rows) distance(at [3]float64, id int64) float64 {
	v := r[id].V
	if v == nil {
		return math.MaxFloat64
	}
	return (v[0]-at[0])*(v[0]-at[0]) + (v[1]-at[1])*(v[1]-at[1]) + (v[2]-at[2])*(v[2]-at[2])
}
