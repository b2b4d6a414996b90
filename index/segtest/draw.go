package segtest

import (
	"fmt"

	"pgregory.net/rapid"
)

// Leaves are comparisons that the indices of a dataset answer, and some that none does.
func (d *Dataset) Leaves() []string {
	labels := []string{"ai", "drama", "comedy", "database", "日本", "", "nope"}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if _, ok := d.Types["labels"]; ok {
		for i, l := range labels {
			add("array_has(labels,'%s')", l)
			add("array_has_any(labels,['%s','%s'])", l, labels[(i+3)%len(labels)])
			add("array_has_all(labels,['%s','%s'])", l, labels[(i+1)%len(labels)])
		}
		add("labels IS NULL")
		add("labels IS NOT NULL")
		add("array_has_all(labels,[])")
	}
	if _, ok := d.Types["tenant"]; ok {
		add("tenant = 't1'")
		add("tenant IN ('t0','t3','zzz')")
		add("tenant >= 't2'")
		add("tenant IS NULL")
		add("tenant IS NOT NULL")
	}
	if _, ok := d.Types["ts"]; ok {
		add("ts IS NULL")
	}
	add("id > 100")
	add("id <= 350")
	add("id BETWEEN 40 AND 600")
	add("id = 7")
	add("id IN (1,2,3,5,8,13,400,9999)")
	return out
}

// DrawWhere draws a tree of NOT, AND and OR over leaves.
func DrawWhere(t *rapid.T, leaves []string, depth int) string {
	op := "leaf"
	if depth > 0 {
		op = rapid.SampledFrom([]string{"leaf", "NOT", "AND", "OR"}).Draw(t, "op")
	}
	switch op {
	case "NOT":
		return "NOT (" + DrawWhere(t, leaves, depth-1) + ")"
	case "AND", "OR":
		return "(" + DrawWhere(t, leaves, depth-1) + " " + op + " " + DrawWhere(t, leaves, depth-1) + ")"
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}
