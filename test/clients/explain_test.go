package clients

import (
	"strings"
	"testing"
)

func TestTheOpeningStatementHasNoRowEngineNode(t *testing.T) {
	l := startLake(t)
	needle := l.needle(t, 1234)
	db := l.open(t)
	for _, s := range append(openingStatements(needle), suiteStatements(needle)...) {
		r := request{mode: modeText, sql: "EXPLAIN " + s.sql}
		plan, err := goQuery(db, r)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if len(plan.Columns) != 1 || strings.Contains(strings.ToLower(flat(plan)), "rowengine") {
			t.Errorf("%s: a row-engine node in\n%s", s.name, lines(plan))
		}
		if !strings.HasPrefix(s.name, "opening") {
			continue
		}
		for _, node := range []string{"HashJoin", "HashAggregate", "LateFetch", "VectorSearch", "LabelIndexLookup", "labels_idx", "tenant_idx", "captured_at_idx"} {
			if !strings.Contains(flat(plan), node) {
				t.Errorf("%s: no %s in\n%s", s.name, node, lines(plan))
			}
		}
	}
}

// lines prints a plan.
func lines(plan answer) string {
	var b strings.Builder
	for _, r := range plan.Rows {
		b.WriteString(text(r[0]) + "\n")
	}
	return b.String()
}
