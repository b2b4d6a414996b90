package glm

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
)

// spread puts the taken rows back on the input rows that had an address; the others become NULL. The caller releases the columns.
func spread(env *exec.Env, got arrow.RecordBatch, present []bool) ([]arrow.Array, error) {
	cols := make([]arrow.Array, 0, got.NumCols())
	if present == nil {
		for _, c := range got.Columns() {
			c.Retain()
			cols = append(cols, c)
		}
		return cols, nil
	}
	idx := make([]int32, len(present))
	next := int32(0)
	for i, p := range present {
		idx[i] = -1
		if p {
			idx[i] = next
			next++
		}
	}
	for _, c := range got.Columns() {
		out, err := expr.TakeArray(env.Alloc, c, idx)
		if err != nil {
			for _, d := range cols {
				d.Release()
			}
			return nil, err
		}
		cols = append(cols, out)
	}
	return cols, nil
}
