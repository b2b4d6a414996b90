package planner

import (
	"slices"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/logical"
)

func (c *Context) lowerWindow(n *logical.Window) (lowered, error) {
	in, err := c.lowerNode(n.Input)
	if err != nil {
		return lowered{}, err
	}
	w := exec.Window{Input: in.plan, Output: []int{}, Limit: n.Limit}
	if w.Partition, err = rebindAll(n.Partition, in.pos); err != nil {
		return lowered{}, err
	}
	if w.Order, err = sortKeys(n.Order, in.pos); err != nil {
		return lowered{}, err
	}
	for _, col := range n.Input.Columns() {
		if !slices.Contains(n.Hidden, col.ID) {
			w.Output = append(w.Output, in.pos[col.ID])
		}
	}
	for _, f := range n.Funcs {
		spec := exec.WindowSpec{Func: f.Func, Agg: exec.AggFunc(f.Agg), N: f.N, Frame: f.Frame, Name: f.Name}
		if f.Func == exec.WindowAggregate {
			spec.Type = f.Type
		}
		if spec.Args, err = rebindAll(f.Args, in.pos); err != nil {
			return lowered{}, err
		}
		for _, e := range []*expr.Expr{&spec.Frame.Key, &spec.Frame.Start.Value, &spec.Frame.End.Value} {
			if *e == nil {
				continue
			}
			if *e, err = expr.Rebind(*e, in.pos); err != nil {
				return lowered{}, errs.New(errs.ErrInternal, "window: %w", err)
			}
		}
		w.Funcs = append(w.Funcs, spec)
	}
	p, err := exec.NewWindow(w)
	return lowered{plan: p, pos: positions(n.Columns())}, err
}
