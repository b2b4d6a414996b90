package exec

import (
	"strings"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/treeprint"
)

// Explain prints a plan, one node a line, inputs indented. With stats (EXPLAIN ANALYZE) each line ends with what the node did.
func Explain(p Plan, stats *Stats) string {
	return treeprint.Format(p, func(p Plan) (string, []Plan) {
		line := p.Describe().String()
		if stats != nil {
			line += " (" + propsText(stats.Node(p).Props()) + ")"
		}
		return line, p.Children()
	})
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
