package exec

import (
	"context"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/storage/rowset"
)

// CandidatePlan finds, before any batch flows, exactly the rows of one table that qualify. It answers in three-valued logic over row addresses.
type CandidatePlan interface {
	// Candidates answers for the rows of among (nil = every live row). Rows outside among are in neither set.
	Candidates(ctx context.Context, env *Env, among *rowset.Set) (index.Truth, error)
	Describe() Description
	Children() []CandidatePlan
}
