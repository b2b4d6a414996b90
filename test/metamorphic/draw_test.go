package metamorphic

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// words are the labels that rows and needles are drawn from, two of which no row has.
var words = []string{"a", "b", "c", "d", "", "é", "it's", "rare", "none", "A"}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func drawNeedles(t *rapid.T) string {
	n := rapid.IntRange(0, 4).Draw(t, "needles")
	parts := make([]string, n)
	for i := range parts {
		parts[i] = quote(rapid.SampledFrom(words).Draw(t, "needle"))
		if rapid.IntRange(0, 11).Draw(t, "is NULL") == 0 {
			parts[i] = "NULL"
		}
	}
	return "make_array(" + strings.Join(parts, ", ") + ")"
}

// drawLeaf is a predicate over one column, sometimes one that no index answers.
func drawLeaf(t *rapid.T) string {
	number := func() int { return rapid.IntRange(-1, 9).Draw(t, "number") }
	id := func() int { return rapid.IntRange(-5, 320).Draw(t, "id") }
	tenant := func() string { return quote(rapid.SampledFrom([]string{"t0", "t1", "t2", "t9"}).Draw(t, "tenant")) }
	moment := func() string { return fmt.Sprintf("'2026-01-%02d 12:00:00'", rapid.IntRange(1, 28).Draw(t, "day")) }
	compare := func() string {
		return rapid.SampledFrom([]string{"=", "<", "<=", ">", ">=", "<>", "<=>"}).Draw(t, "operator")
	}
	switch rapid.IntRange(0, 17).Draw(t, "leaf") {
	case 0, 1:
		return "array_has(labels, " + quote(rapid.SampledFrom(words).Draw(t, "label")) + ")"
	case 2:
		return "array_has_any(labels, " + drawNeedles(t) + ")"
	case 3:
		return "array_has_all(labels, " + drawNeedles(t) + ")"
	case 4:
		return fmt.Sprintf("array_has(nums, %d)", number())
	case 5:
		return fmt.Sprintf("array_has_any(nums, make_array(%d, %d))", number(), number())
	case 6:
		return fmt.Sprintf("array_has_all(nums, make_array(%d, '%d'))", number(), number())
	case 7:
		return fmt.Sprintf("id %s %d", compare(), id())
	case 8:
		return fmt.Sprintf("id BETWEEN %d AND %d", id(), id())
	case 9:
		return fmt.Sprintf("id IN (%d, %d, %d)", id(), id(), id())
	case 10:
		return "tenant " + compare() + " " + tenant()
	case 11:
		return "tenant IN (" + tenant() + ", " + tenant() + ")"
	case 12:
		return "ts " + compare() + " " + moment()
	case 13:
		return "ts BETWEEN " + moment() + " AND " + moment()
	case 14:
		return rapid.SampledFrom([]string{"labels", "nums", "id", "tenant", "ts", "v"}).Draw(t, "column") + rapid.SampledFrom([]string{" IS NULL", " IS NOT NULL"}).Draw(t, "test")
	case 15:
		return "array_has(labels, tenant)"
	case 16:
		return fmt.Sprintf("id %% %d = %d", rapid.IntRange(1, 5).Draw(t, "divisor"), rapid.IntRange(0, 2).Draw(t, "rest"))
	}
	return rapid.SampledFrom([]string{"NULL", "TRUE", "FALSE", "array_has(labels, NULL)", "tenant IN ('t1', NULL)", "id NOT IN (5, NULL)"}).Draw(t, "constant")
}

// drawPredicate is a tree of AND, OR, NOT, XOR and IS over leaves.
func drawPredicate(t *rapid.T, depth int) string {
	if depth == 0 {
		return drawLeaf(t)
	}
	switch rapid.IntRange(0, 8).Draw(t, "node") {
	case 0, 1:
		return "(" + drawPredicate(t, depth-1) + " AND " + drawPredicate(t, depth-1) + ")"
	case 2, 3:
		return "(" + drawPredicate(t, depth-1) + " OR " + drawPredicate(t, depth-1) + ")"
	case 4, 5:
		return "NOT (" + drawPredicate(t, depth-1) + ")"
	case 6:
		return "((" + drawPredicate(t, depth-1) + ") " + rapid.SampledFrom([]string{"IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS NULL", "IS NOT NULL"}).Draw(t, "is") + ")"
	case 7:
		return "((" + drawPredicate(t, depth-1) + ") XOR (" + drawPredicate(t, depth-1) + "))"
	}
	return drawLeaf(t)
}
