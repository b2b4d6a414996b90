// Package planner optimizes logical plans by rules and lowers them to exec plans. rules.go is the ordered list of rules, one file each; lower*.go is the way down.
package planner

import (
	"context"
	"strings"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// Result is a statement ready to run.
type Result struct {
	Plan     exec.Plan
	Input    logical.Node   // before the rules
	Logical  logical.Node   // after them
	Warnings []exec.Warning // for SHOW WARNINGS, such as that the answer is approximate
}

// Plan optimizes and lowers root. ids continues the numbering of root's columns. Errors: ErrUnsupported, ErrInvalid (a vector of the wrong
// length and the like), ErrIO and ErrCorrupt from statistics.
func Plan(ctx context.Context, root logical.Node, ids *logical.IDs, s Settings) (*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	c := &Context{Ctx: ctx, IDs: ids, Settings: s.withDefaults(), Env: s.Expr}
	optimized, err := c.optimize(root)
	if err != nil {
		return nil, err
	}
	plan, err := c.lower(optimized)
	if err != nil {
		return nil, err
	}
	return &Result{Plan: plan, Input: root, Logical: optimized, Warnings: c.warnings}, nil
}

// Context is what the rules of one statement share.
type Context struct {
	Ctx      context.Context //nolint:containedctx // lives for one Plan call, as rules are plain functions
	IDs      *logical.IDs
	Settings Settings
	Env      expr.Env // time zone and statement time, for constants
	warnings []exec.Warning
}

// faulty keeps the warnings of indices that cannot be read, and returns the text for a plan.
func (c *Context) faulty(table exec.TableRef, faults []exec.IndexFault) string {
	c.warnings = append(c.warnings, exec.FaultWarnings(table, faults)...)
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.String()
	}
	return strings.Join(texts, "; ")
}

// Explain prints a plan, with figures where stats is not nil.
func (r *Result) Explain(stats *exec.Stats) string { return exec.Explain(r.Plan, stats) }
