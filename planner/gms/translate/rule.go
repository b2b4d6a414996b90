package translate

import (
	"context"
	"math"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/planner"
	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/planner/logical"
)

// Request is one statement on its way: what the engine knows of it, and what the rule made of it. It travels in the context and is used by one goroutine
// until the plan runs.
type Request struct {
	Statement *provider.Statement
	Rewritten *dialect.Result
	Settings  planner.Settings
	Env       *exec.Env // for the plans; nil where the statement is only prepared
	Warnings  *Warnings
	RowsMax   int64 // rows that the row engine may take from one plan below it; 0 = any number

	Node   *Node // the whole statement, if it was translated
	Reason error // why not
	// Invalid is what MySQL has against the statement although it parses; nil = nothing, or it was not parsed.
	Invalid error
	tried   bool
}

type requestKey struct{}

// WithRequest returns a context that carries r, and its statement for name resolution.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(provider.WithStatement(ctx, r.Statement), requestKey{}, r)
}

// RequestOf returns the request of a context, nil if it has none.
func RequestOf(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// ruleID is a free number for the analyzer.
const ruleID = analyzer.RuleId(100_001)

// Install puts the rule in front of go-mysql-server's own, which act on what it leaves; takes out the vector index rule, which cuts before it filters, and bounds join
// ordering, which explodes.
func Install(a *analyzer.Analyzer) {
	for _, b := range a.Batches {
		var keep []analyzer.Rule
		for _, r := range b.Rules {
			switch r.Id.String() {
			case "replaceIdxOrderByDistance":
				continue
			case "optimizeJoins":
				r.Apply = boundedJoins(r.Apply)
			}
			r.Apply = unlessOurs(r.Apply)
			keep = append(keep, r)
		}
		b.Rules = keep
	}
	first := a.Batches[0]
	first.Rules = append([]analyzer.Rule{{Id: ruleID, Apply: Rule}}, first.Rules...)
}

// unlessOurs spares a statement that is one plan of ours the rules: none of the many has anything to do on our node.
func unlessOurs(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *sql.Context, a *analyzer.Analyzer, n sql.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *sql.QueryFlags) (sql.Node, transform.TreeIdentity, error) {
		if _, ours := n.(*Node); ours {
			return n, transform.SameTree, nil
		}
		return apply(ctx, a, n, scope, sel, flags)
	}
}

// joinsMax is how many relations go-mysql-server may order: the time grows tenfold with every further two.
const joinsMax = 6

// boundedJoins orders the joins of few relations that are not ours: information_schema alone is worth it.
func boundedJoins(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *sql.Context, a *analyzer.Analyzer, n sql.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *sql.QueryFlags) (sql.Node, transform.TreeIdentity, error) {
		relations, ours := countRelations(n)
		if ours || relations > joinsMax {
			return n, transform.SameTree, nil
		}
		return apply(ctx, a, n, scope, sel, flags)
	}
}

// countRelations counts tables and derived tables, and says whether any is ours.
func countRelations(n sql.Node) (relations int, ours bool) {
	switch n := n.(type) {
	case *Node:
		return 1, true
	case *plan.ResolvedTable:
		_, ours = sql.GetUnderlyingTable(n.Table).(*provider.Table)
		return 1, ours
	case *plan.SubqueryAlias:
		relations = 1
	}
	for _, c := range n.Children() {
		count, is := countRelations(c)
		relations, ours = relations+count, ours || is
	}
	return relations, ours
}

// Rule translates a statement. It acts once a statement, on its root.
func Rule(ctx *sql.Context, _ *analyzer.Analyzer, n sql.Node, scope *plan.Scope, _ analyzer.RuleSelector, _ *sql.QueryFlags) (sql.Node, transform.TreeIdentity, error) {
	req := RequestOf(ctx)
	if req == nil || req.tried || !scope.IsEmpty() || scope.RecursionDepth() > 0 {
		return n, transform.SameTree, nil
	}
	req.tried = true
	if set, ok := n.(*plan.Set); ok {
		return setSubqueries(ctx, req, set)
	}
	if !isQuery(n) {
		return n, transform.SameTree, nil
	}
	node, err := translate(ctx, req, n)
	if isUnsupported(err) {
		req.Reason = err
		m := &mixed{ctx: ctx, req: req}
		out, err := m.rewrite(n)
		return out, transform.TreeIdentity(out == n), err
	}
	if err != nil {
		return n, transform.SameTree, err
	}
	req.Node = node
	return node, transform.NewTree, nil
}

// isQuery says that a root is a SELECT and reads only through nodes that rows of ours may come from.
func isQuery(n sql.Node) bool {
	switch n.(type) {
	case *plan.Project, *plan.GroupBy, *plan.Sort, *plan.Limit, *plan.Offset, *plan.Distinct, *plan.Having, *plan.Filter, *plan.SetOp, *plan.SubqueryAlias,
		*plan.ResolvedTable, *plan.TableAlias, *plan.JoinNode, *plan.ValueDerivedTable, *plan.Window:
		return true
	}
	return false
}

// translate makes a plan of a whole query.
func translate(ctx *sql.Context, req *Request, n sql.Node) (*Node, error) {
	t := newTranslator(ctx, req)
	r, err := t.relation(n, nil)
	if err != nil {
		return nil, err
	}
	if err := r.settled(); err != nil {
		return nil, err
	}
	if r, err = t.selectLimit(n, r); err != nil {
		return nil, err
	}
	return newNode(ctx, req, t.ids, t.distinctIDs(r))
}

func newTranslator(ctx *sql.Context, _ *Request) *translator {
	return &translator{ctx: ctx, ids: &logical.IDs{}, fullGroup: sql.LoadSqlMode(ctx).ModeEnabled("ONLY_FULL_GROUP_BY")}
}

// selectLimit applies @@sql_select_limit to a query without a LIMIT of its own.
func (t *translator) selectLimit(n sql.Node, r *relation) (*relation, error) {
	switch n := n.(type) {
	case *plan.Limit:
		return r, nil
	case *plan.SetOp:
		if n.Limit != nil {
			return r, nil
		}
	}
	v, err := t.ctx.GetSessionVariable(t.ctx, "sql_select_limit")
	if err != nil {
		return nil, err
	}
	var limit uint64
	switch v := v.(type) {
	case int64:
		limit = uint64(max(v, 0))
	case uint64:
		limit = v
	default:
		return r, nil
	}
	if limit >= math.MaxInt32 { // go-mysql-server's default
		return r, nil
	}
	return &relation{node: &logical.Limit{Input: r.node, Count: limit}, out: r.out}, nil
}
