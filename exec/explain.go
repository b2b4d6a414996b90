package exec

import (
	"strings"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/treeprint"
)

// WithCandidates is a plan that asks a candidate plan before its first batch; Explain prints that below it.
type WithCandidates interface {
	Plan
	CandidateInput() CandidatePlan // nil = every live row
}

// Explain prints a plan, one node a line, inputs indented. With stats (EXPLAIN ANALYZE) each line ends with what the node did.
func Explain(p Plan, stats *Stats) string {
	return treeprint.Format(explained{plan: p}, func(n explained) (string, []explained) { return n.describe(stats) })
}

// explained is a line of EXPLAIN: a plan or a candidate plan.
type explained struct {
	plan      Plan
	candidate CandidatePlan
}

func (n explained) describe(stats *Stats) (string, []explained) {
	var children []explained
	if n.candidate != nil {
		line := n.candidate.Describe().String()
		if stats != nil {
			line += " (" + propsText(stats.Candidate(n.candidate).Props()) + ")"
		}
		for _, c := range n.candidate.Children() {
			children = append(children, explained{candidate: c})
		}
		switch m := n.candidate.(type) {
		case *KeyMask:
			children = append(children, explained{plan: m.Keys})
		case *JoinMask:
			children = append(children, explained{plan: m.Keys})
		}
		return line, children
	}
	line := n.plan.Describe().String()
	if stats != nil {
		line += " (" + propsText(stats.Node(n.plan).Props()) + ")"
	}
	if w, ok := n.plan.(WithCandidates); ok && w.CandidateInput() != nil {
		children = append(children, explained{candidate: w.CandidateInput()})
	}
	for _, c := range n.plan.Children() {
		children = append(children, explained{plan: c})
	}
	return line, children
}

func propsText(props []Prop) string {
	parts := make([]string, len(props))
	for i, p := range props {
		parts[i] = p.Key + "=" + p.Value
	}
	return strings.Join(parts, ", ")
}

func exprsText(es []expr.Expr) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// namedText prints expressions, with the name where it says more.
func namedText(names []string, es []expr.Expr) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.String()
		if c, ok := e.(*expr.Column); !ok || c.Name != names[i] {
			parts[i] += " AS " + names[i]
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
