package write

import (
	"context"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
)

// VectorSpec tunes vector kinds. The zero value is l2 with the square root of the rows as lists.
type VectorSpec struct {
	Metric index.Metric // "" = l2
	Lists  int          // 0 = the square root of the number of rows
	Seed   uint64       // of sample and training
}

func (b *indexBuild) buildVector(context.Context) (segmentDetails, error) {
	return segmentDetails{}, errs.New(errs.ErrUnsupported, "building an index of kind %s", b.spec.Kind)
}
