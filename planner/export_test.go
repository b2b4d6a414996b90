package planner

import (
	"context"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/logical"
)

// AroundRule applies the rules up to the named one and returns the plan before and after it.
func AroundRule(ctx context.Context, name string, root logical.Node, s Settings) (before, after logical.Node, err error) {
	c := &Context{Ctx: ctx, IDs: idsBehind(root), Settings: s.withDefaults()}
	before = root
	for _, r := range rules() {
		after, _, err = r.apply(c, before)
		if err != nil {
			return nil, nil, err
		}
		if err := sameColumns(before, after); err != nil {
			return nil, nil, err
		}
		if r.name == name {
			return before, after, nil
		}
		before = after
	}
	return nil, nil, errs.New(errs.ErrNotFound, "rule %s", name)
}

// RuleNames lists the rules in order.
func RuleNames() []string {
	var out []string // prune_columns is there twice
	for _, r := range rules() {
		out = append(out, r.name)
	}
	return out
}

// idsBehind numbers on where the plan's columns end.
func idsBehind(root logical.Node) *logical.IDs {
	last := 0
	logical.Walk(root, func(n logical.Node) bool {
		for _, col := range n.Columns() {
			last = max(last, col.ID)
		}
		return true
	})
	ids := &logical.IDs{}
	for ids.Next() < last {
	}
	return ids
}
