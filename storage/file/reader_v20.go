package file

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

func (q *readCall) readV20(ctx context.Context, spans []span) (arrow.RecordBatch, error) {
	return nil, errs.New(errs.ErrUnsupported, "file version 2.0 is not supported")
}
