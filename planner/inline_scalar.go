package planner

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/logical"
)

// inlineScalar runs each uncorrelated scalar subquery once, while planning, and puts its value in its place: a query vector or a bound that is a constant can use an
// index. MySQL does the same, for EXPLAIN too.
func inlineScalar(c *Context, root logical.Node) (logical.Node, bool, error) {
	if c.Settings.Run == nil {
		return root, false, nil
	}
	constants := make(map[logical.ColumnID]expr.Expr)
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		j, ok := n.(*logical.Join)
		if !ok || j.Kind != logical.JoinSingle || len(j.On) > 0 || len(j.Right.Columns()) != 1 {
			return n, nil
		}
		value, err := c.scalarOf(j.Right)
		if err != nil {
			return nil, err
		}
		col := j.Columns()[len(j.Left.Columns())]
		constants[col.ID] = value
		exprs := append(passAll(j.Left.Columns()), logical.Named{Column: col, Expr: value})
		return &logical.Project{Input: j.Left, Exprs: exprs}, nil
	})
	if err != nil || len(constants) == 0 {
		return root, false, err
	}
	out, err = constantsUp(out, constants)
	return out, true, err
}

// scalarOf runs a subquery of one column. No row is NULL; several are an error.
func (c *Context) scalarOf(n logical.Node) (*expr.Literal, error) {
	sub := &Context{Ctx: c.Ctx, IDs: c.IDs, Settings: c.Settings, Env: c.Env}
	optimized, err := sub.optimize(n)
	if err != nil {
		return nil, err
	}
	plan, err := sub.lower(optimized)
	if err != nil {
		return nil, err
	}
	c.warnings = append(c.warnings, sub.warnings...)
	var out *expr.Literal
	err = spawn.Guard(func() error {
		batches, err := exec.Collect(c.Ctx, c.Settings.Run, plan)
		for _, b := range batches {
			defer b.Release()
		}
		if err != nil {
			return err
		}
		out, err = oneValue(batches, plan.Schema().Field(0).Type)
		return err
	})
	return out, err
}

func oneValue(batches []arrow.RecordBatch, t arrow.DataType) (*expr.Literal, error) {
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	if rows > 1 {
		return nil, errs.New(errs.ErrManyRows, "Subquery returns more than 1 row: %d where one value is expected", rows)
	}
	for _, b := range batches {
		if b.NumRows() == 0 || b.Column(0).IsNull(0) {
			continue
		}
		// The literal outlives the batch, whose bytes may lie in a mapping or be counted by the statement.
		own, err := expr.TakeArray(memory.DefaultAllocator, b.Column(0), []int32{0})
		if err != nil {
			return nil, err
		}
		s, err := scalar.GetScalar(own, 0)
		if err != nil {
			return nil, errs.New(errs.ErrInternal, "value of a subquery: %w", err)
		}
		return &expr.Literal{Value: s}, nil
	}
	return expr.Null(t), nil
}

// constantsUp puts the constants in place of references to them, up to the first node above which the column could be something else: an outer join pads it with NULL.
func constantsUp(root logical.Node, constants map[logical.ColumnID]expr.Expr) (logical.Node, error) {
	out, err := logical.Transform(root, func(n logical.Node) (logical.Node, error) {
		if j, ok := n.(*logical.Join); ok {
			for _, in := range paddedInputs(j) {
				for _, col := range in.Columns() {
					delete(constants, col.ID)
				}
			}
		}
		return logical.MapExprs(n, func(e expr.Expr) (expr.Expr, error) { return substitute(e, constants), nil })
	})
	return out, err
}

// paddedInputs returns the sides whose columns may turn NULL above the join.
func paddedInputs(j *logical.Join) []logical.Node {
	switch j.Kind {
	case logical.JoinLeft, logical.JoinSingle:
		return []logical.Node{j.Right}
	case logical.JoinFull:
		return []logical.Node{j.Left, j.Right}
	}
	return nil
}
