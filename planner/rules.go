package planner

import (
	"fmt"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/invariants"
	"github.com/lakesql/lakesql/planner/logical"
)

// Rule rewrites a plan. It returns the same node and false where it does nothing, and keeps the output columns where it acts.
type Rule func(*Context, logical.Node) (logical.Node, bool, error)

type namedRule struct {
	name  string
	apply Rule
}

// rules returns the rules in order, each with the reason for its place.
func rules() []namedRule {
	return []namedRule{
		{"inline_scalar", inlineScalar},          // first: a subquery's value is a constant to all other rules
		{"simplify", simplify},                   // first: constants decide what the other rules see
		{"push_filter", pushFilter},              // before joins are ordered: sizes after filters decide
		{"order_joins", orderJoins},              // before top-n rules, which look through the final joins
		{"sort_limit_to_top_n", sortLimitToTopN}, // gives the vector rule its pattern
		{"limit_window", limitWindow},            // finds its pattern where conditions stay above a window
		{"use_vector_index", useVectorIndex},     // needs filters in the scan: they are the candidates
		{"prune_columns", pruneColumns},          // the rules above refer to columns that nobody reads in the end; the next weighs those that are read
		{"late_materialize", lateMaterialize},    // the searches that are left are plain top-ns
		{"prune_columns", pruneColumns},          // again: joins the projections that waiting columns left
	}
}

func (c *Context) optimize(root logical.Node) (logical.Node, error) {
	n := root
	for _, r := range rules() {
		next, _, err := r.apply(c, n)
		if err != nil {
			return nil, err
		}
		if invariants.Enabled {
			if err := sameColumns(n, next); err != nil {
				panic(fmt.Sprintf("rule %s: %v\n%s\n%s", r.name, err, logical.Format(n), logical.Format(next)))
			}
		}
		n = next
	}
	if err := sameColumns(root, n); err != nil {
		return nil, errs.New(errs.ErrInternal, "the optimizer changed the result's columns: %w", err)
	}
	return n, nil
}

// sameColumns says whether b outputs what a outputs.
func sameColumns(a, b logical.Node) error {
	x, y := a.Columns(), b.Columns()
	if len(x) != len(y) {
		return errs.New(errs.ErrInternal, "%d columns became %d", len(x), len(y))
	}
	for i := range x {
		if x[i].ID != y[i].ID {
			return errs.New(errs.ErrInternal, "column %d: #%d %s became #%d %s", i, x[i].ID, x[i].Name, y[i].ID, y[i].Name)
		}
	}
	return nil
}
