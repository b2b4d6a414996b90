package planner

import (
	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/planner/logical"
)

// windowLimitMax is the largest rank for which dropping rows early is tried: beyond it partitions are hardly ever larger.
const windowLimitMax = 1 << 20

// limitWindow makes a condition over ROW_NUMBER, RANK or DENSE_RANK (WHERE rn <= 3 over a derived table) a limit of the window below, which then
// keeps few rows of each partition. The condition stays. It applies where all functions of that window only count what lies before a row.
func limitWindow(_ *Context, root logical.Node) (logical.Node, bool, error) {
	changed := false
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		f, ok := n.(*logical.Filter)
		if !ok {
			return n, nil
		}
		w, ok := f.Input.(*logical.Window)
		if !ok || w.Limit != nil || !countsOnly(w) {
			return n, nil
		}
		limit := limitOf(w, f.Conds)
		if limit == nil {
			return n, nil
		}
		changed = true
		m := *w
		m.Limit = limit
		return &logical.Filter{Input: &m, Conds: f.Conds}, nil
	})
	return out, changed, err
}

// countsOnly says that no function of w depends on the rows behind a row.
func countsOnly(w *logical.Window) bool {
	for _, f := range w.Funcs {
		switch f.Func {
		case exec.WindowRowNumber, exec.WindowRank, exec.WindowDenseRank:
		default:
			return false
		}
	}
	return true
}

// limitOf is the tightest bound that conds set to a function of w.
func limitOf(w *logical.Window, conds []expr.Expr) *exec.WindowLimit {
	var out *exec.WindowLimit
	for _, cond := range splitAll(conds) {
		for _, f := range w.Funcs {
			if k, ok := rankBound(cond, f.ID); ok && k <= windowLimitMax && (out == nil || k < out.K) {
				out = &exec.WindowLimit{By: f.Func, K: k}
			}
		}
	}
	return out
}

// rankBound reads rank <= k, rank < k, rank = k and the same turned around.
func rankBound(cond expr.Expr, id logical.ColumnID) (uint64, bool) {
	call, ok := cond.(*expr.Call)
	if !ok || len(call.Args) < 2 {
		return 0, false
	}
	op, a, b := call.Func, call.Args[0], call.Args[1]
	if _, isColumn := b.(*expr.Column); isColumn {
		a, b = b, a
		op = map[string]string{"=": "=", ">=": "<=", ">": "<"}[op]
	}
	col, ok := a.(*expr.Column)
	if !ok || col.ID != id {
		return 0, false
	}
	k, ok := expr.WholeNumber(b)
	switch {
	case !ok:
	case op == "<=" || op == "=":
		return k, true
	case op == "<" && k > 0:
		return k - 1, true
	}
	return 0, false
}
