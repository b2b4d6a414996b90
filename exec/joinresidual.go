package exec

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// residual evaluates the condition of a join over pairs of rows. It is used by one goroutine.
type residual struct {
	env    *Env
	schema *arrow.Schema // the columns that the condition uses
	sides  []residualColumn
	cond   *expr.Program
}

type residualColumn struct {
	build  bool
	column int
}

func newResidual(env *Env, spec *JoinSpec) (*residual, error) {
	left := spec.Left.Schema().NumFields()
	both := append(append([]arrow.Field(nil), spec.Left.Schema().Fields()...), spec.Right.Schema().Fields()...)
	r := &residual{env: env}
	position := make(map[int]int)
	var fields []arrow.Field
	for _, id := range expr.Columns(spec.Residual) {
		position[id] = len(fields)
		fields = append(fields, both[id])
		c := residualColumn{build: !spec.BuildLeft, column: id - left}
		if id < left {
			c = residualColumn{build: spec.BuildLeft, column: id}
		}
		r.sides = append(r.sides, c)
	}
	cond, err := expr.Rebind(spec.Residual, position)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "join residual: %w", err)
	}
	r.schema = arrow.NewSchema(fields, nil)
	r.cond, err = expr.Compile(cond, r.schema)
	return r, err
}

// filter keeps the pairs of j for which the condition is TRUE.
func (r *residual) filter(j *join) error {
	sel, all, err := r.passing(j.batch.Columns(), j.table.cols, j.probes, j.builds)
	if err != nil || all {
		return err
	}
	for i, p := range sel {
		j.probes[i], j.builds[i] = j.probes[p], j.builds[p]
	}
	j.probes, j.builds = j.probes[:len(sel)], j.builds[:len(sel)]
	return nil
}

// passing returns the positions of the pairs for which the condition is TRUE; all says that all are.
func (r *residual) passing(probe, build []arrow.Array, probes, builds []int32) (sel []int32, all bool, err error) {
	if len(probes) == 0 {
		return nil, true, nil
	}
	cols := make([]arrow.Array, 0, len(r.sides))
	for _, s := range r.sides {
		from, idx := probe, probes
		if s.build {
			from, idx = build, builds
		}
		if cols, err = takeColumns(r.env.Alloc, from[s.column:s.column+1], idx, cols); err != nil {
			releaseArrays(cols)
			return nil, false, err
		}
	}
	b := newBatch(r.schema, cols, len(probes))
	defer b.Release()
	sel, all, err = r.cond.EvalSelect(&r.env.Expr, b)
	return sel, all || len(sel) == len(probes), err
}
