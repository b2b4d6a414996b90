package engine

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
	"github.com/lakesql/lakesql/planner/gms/translate"
)

// explainer runs EXPLAIN: our plan where the statement is ours, else what the row engine does and why. It shows the process list, too.
type explainer struct{ processes *processList }

var _ sql.NodeExecBuilder = (*explainer)(nil)

// Build implements sql.NodeExecBuilder; nil means that go-mysql-server builds the node.
func (x *explainer) Build(ctx *sql.Context, n sql.Node, _ sql.Row) (sql.RowIter, error) {
	if kill, ok := n.(*plan.Kill); ok {
		return nil, knownThread(ctx, kill.ConnID)
	}
	if _, ok := n.(*plan.ShowProcessList); ok {
		return x.processes.show(), nil
	}
	d, ok := n.(*plan.DescribeQuery)
	if !ok || !d.Format.Plan && !d.Format.Analyze {
		return nil, nil
	}
	req := translate.RequestOf(ctx)
	if req == nil || req.Node == nil {
		return rowEngineLines(ctx, req, d)
	}
	if d.Format.Analyze {
		req.Node.CollectStats()
		if err := drain(ctx, req.Node); err != nil {
			return nil, err
		}
	}
	if req.Rewritten.Format == dialect.FormatJSON {
		text, err := planJSON(req.Node.Result.Plan, req.Node.Stats())
		if err != nil {
			return nil, err
		}
		return sql.RowsToRowIter(sql.NewRow(text)), nil
	}
	return lines(req.Node.String()), nil
}

// knownThread refuses to end a connection that is not there.
func knownThread(ctx *sql.Context, id uint32) error {
	for _, p := range ctx.ProcessList.Processes() {
		if p.Connection == id {
			return nil
		}
	}
	return mysqlerr.UnknownThread(id)
}

func lines(text string) sql.RowIter {
	var rows []sql.Row
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) != "" {
			rows = append(rows, sql.NewRow(l))
		}
	}
	return sql.RowsToRowIter(rows...)
}

// rowEngineLines prints go-mysql-server's tree below the reason for it; a plain EXPLAIN ANALYZE of it is left to go-mysql-server.
func rowEngineLines(_ *sql.Context, req *translate.Request, d *plan.DescribeQuery) (sql.RowIter, error) {
	if d.Format.Analyze || req == nil || req.Reason == nil {
		return nil, nil
	}
	tree := sql.Describe(d.Child, d.Format)
	return lines("RowEngine: reason=" + req.Reason.Error() + "\n" + tree), nil
}

// drain runs a plan to its end.
func drain(ctx *sql.Context, n *translate.Node) (err error) {
	op, err := n.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	for {
		batch, err := op.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		batch.Release()
	}
}

// jsonNode is one operator of EXPLAIN FORMAT=JSON.
type jsonNode struct {
	Operator   string            `json:"operator"`
	Properties map[string]string `json:"properties,omitempty"`
	Statistics map[string]string `json:"statistics,omitempty"`
	Inputs     []jsonNode        `json:"inputs,omitempty"`
}

func planJSON(p exec.Plan, stats *exec.Stats) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(map[string]any{"query_block": toJSON(p, stats)})
	return strings.TrimSpace(b.String()), err
}

func toJSON(p exec.Plan, stats *exec.Stats) jsonNode {
	out := newJSONNode(p.Describe(), stats.Node(p))
	if w, ok := p.(exec.WithCandidates); ok && w.CandidateInput() != nil {
		out.Inputs = append(out.Inputs, candidatesToJSON(w.CandidateInput(), stats))
	}
	for _, c := range p.Children() {
		out.Inputs = append(out.Inputs, toJSON(c, stats))
	}
	return out
}

func candidatesToJSON(p exec.CandidatePlan, stats *exec.Stats) jsonNode {
	out := newJSONNode(p.Describe(), stats.Candidate(p))
	for _, c := range p.Children() {
		out.Inputs = append(out.Inputs, candidatesToJSON(c, stats))
	}
	if m, ok := p.(*exec.KeyMask); ok {
		out.Inputs = append(out.Inputs, toJSON(m.Keys, stats))
	}
	return out
}

func newJSONNode(d exec.Description, figures *exec.NodeStats) jsonNode {
	out := jsonNode{Operator: d.Name}
	if len(d.Props) > 0 {
		out.Properties = props(d.Props)
	}
	if all := figures.Props(); len(all) > 0 {
		out.Statistics = props(all)
	}
	return out
}

func props(in []exec.Prop) map[string]string {
	out := make(map[string]string, len(in))
	for _, p := range in {
		out[p.Key] = p.Value
	}
	return out
}
