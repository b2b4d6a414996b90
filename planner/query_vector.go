package planner

import (
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// queryVector reads a constant vector in any of its spellings. nil is the NULL vector. Errors: ErrInvalid for text that is no vector and for
// another dimension than the column's.
func queryVector(lit *expr.Literal, dim int, column string) ([]float32, error) {
	if !lit.Value.IsValid() {
		return nil, nil
	}
	out, err := expr.VectorLiteral(lit)
	if err != nil {
		return nil, err
	}
	if len(out) != dim {
		return nil, errs.New(errs.ErrInvalid, "column %s has vectors of %d dimensions, the query vector has %d", column, dim, len(out))
	}
	return out, nil
}
