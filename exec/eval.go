package exec

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// evaluator runs expressions over batches of one schema. Plain column references cost nothing. It is used by one goroutine.
type evaluator struct {
	programs []program
	env      *expr.Env
}

type program struct {
	column int // used where run is nil
	run    *expr.Program
}

func newEvaluator(env *Env, schema *arrow.Schema, exprs ...expr.Expr) (*evaluator, error) {
	e := &evaluator{programs: make([]program, len(exprs)), env: &env.Expr}
	for i, x := range exprs {
		if c, ok := x.(*expr.Column); ok {
			e.programs[i].column = c.ID
			continue
		}
		run, err := expr.Compile(x, schema)
		if err != nil {
			return nil, err
		}
		e.programs[i].run = run
	}
	return e, nil
}

// columns appends the value of every expression to out; the caller releases them. On an error out is as it was.
func (e *evaluator) columns(batch arrow.RecordBatch, out []arrow.Array) ([]arrow.Array, error) {
	before := len(out)
	for _, p := range e.programs {
		if p.run == nil {
			c := batch.Column(p.column)
			c.Retain()
			out = append(out, c)
			continue
		}
		c, err := p.run.Eval(e.env, batch)
		if err != nil {
			releaseArrays(out[before:])
			return out[:before], err
		}
		out = append(out, c)
	}
	return out, nil
}

// plainType looks through a dictionary.
func plainType(t arrow.DataType) arrow.DataType {
	if d, ok := t.(*arrow.DictionaryType); ok {
		return d.ValueType
	}
	return t
}

// decode replaces dictionary arrays by their values.
func decode(alloc memory.Allocator, cols []arrow.Array) error {
	for i, c := range cols {
		d, ok := c.(*array.Dictionary)
		if !ok {
			continue
		}
		idx := make([]int32, d.Len())
		if codes, ok := d.Indices().(*array.Uint32); ok && d.NullN() == 0 {
			for j, code := range codes.Uint32Values() {
				idx[j] = int32(code)
			}
		} else {
			for j := range idx {
				idx[j] = -1
				if d.IsValid(j) {
					idx[j] = int32(d.GetValueIndex(j))
				}
			}
		}
		plain, err := expr.TakeArray(alloc, d.Dictionary(), idx)
		if err != nil {
			return err
		}
		c.Release()
		cols[i] = plain
	}
	return nil
}

func releaseArrays(arrs []arrow.Array) {
	for _, a := range arrs {
		if a != nil {
			a.Release()
		}
	}
}

func releaseBatches(batches []arrow.RecordBatch) {
	for _, b := range batches {
		if b != nil {
			b.Release()
		}
	}
}

// checkExpr says whether e fits schema: every column exists and has the type that e expects.
func checkExpr(node string, e expr.Expr, schema *arrow.Schema) error {
	if e == nil {
		return errs.New(errs.ErrInternal, "%s: an expression is missing", node)
	}
	var bad error
	expr.Walk(e, func(n expr.Expr) bool {
		c, ok := n.(*expr.Column)
		switch {
		case !ok:
		case c.ID < 0 || c.ID >= schema.NumFields():
			bad = errs.New(errs.ErrInternal, "%s: column %s (position %d) is not in an input of %d columns", node, c, c.ID, schema.NumFields())
		case !arrow.TypeEqual(c.T, schema.Field(c.ID).Type):
			bad = errs.New(errs.ErrInternal, "%s: column %s is %s in the input, not %s", node, c, schema.Field(c.ID).Type, c.T)
		}
		return bad == nil
	})
	return bad
}

// nullable says whether e can be NULL, as far as it is known without running it.
func nullable(e expr.Expr, schema *arrow.Schema) bool {
	switch e := e.(type) {
	case *expr.Column:
		return schema.Field(e.ID).Nullable
	case *expr.Literal:
		return !e.Value.IsValid()
	}
	return true
}

// fieldOf is the output field of e under a name.
func fieldOf(name string, e expr.Expr, schema *arrow.Schema) arrow.Field {
	return arrow.Field{Name: name, Type: e.Type(), Nullable: nullable(e, schema)}
}
