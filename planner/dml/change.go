package dml

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

// Delete removes the rows whose addresses Input yields, in its last column.
type Delete struct {
	From  Target
	Input exec.Plan
}

var _ Statement = (*Delete)(nil)

// Target implements Statement.
func (n *Delete) Target() Target { return n.From }

// Plan implements Statement.
func (n *Delete) Plan() exec.Plan { return n.Input }

// Describe implements Statement.
func (n *Delete) Describe() exec.Description {
	return exec.Description{Name: "Delete", Props: []exec.Prop{{Key: "table", Value: n.From.Table.Ref().String()}}}
}

// Run implements Statement.
func (n *Delete) Run(ctx context.Context, env *Env, tx Tx) (Outcome, error) {
	rows, err := addresses(ctx, env, n.Input)
	if err != nil {
		return Outcome{}, err
	}
	defer rows.held()
	count, err := tx.Delete(ctx, rows.set)
	return Outcome{Affected: count}, err
}

// found is a set of rows and the memory it holds.
type found struct {
	set  *rowset.Set
	held func()
}

// addresses gathers the row addresses of a plan.
func addresses(ctx context.Context, env *Env, p exec.Plan) (found, error) {
	held := env.Exec.Budget.Reserve()
	set := &rowset.Set{}
	var size int64
	err := drain(ctx, env.Exec, p, func(batch arrow.RecordBatch) error {
		addrs, err := addrColumn(batch)
		if err != nil {
			return err
		}
		for i, a := range addrs.Uint64Values() {
			if addrs.IsValid(i) { // an outer join found no row
				set.Add(a)
			}
		}
		now := set.SizeBytes()
		if now > size {
			if err := held.Grow(now - size); err != nil {
				return err
			}
			size = now
		}
		return nil
	})
	if err != nil {
		held.Free()
		return found{}, err
	}
	return found{set: set, held: held.Free}, nil
}

// addrColumn is the last column of a batch: the addresses of rows, NULL where an outer join found none.
func addrColumn(batch arrow.RecordBatch) (*array.Uint64, error) {
	col, ok := batch.Column(int(batch.NumCols()) - 1).(*array.Uint64)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "row addresses of type %s", batch.Column(int(batch.NumCols())-1).DataType())
	}
	return col, nil
}

// Truncate removes every row.
type Truncate struct{ From Target }

var _ Statement = (*Truncate)(nil)

// Target implements Statement.
func (n *Truncate) Target() Target { return n.From }

// Plan implements Statement.
func (n *Truncate) Plan() exec.Plan { return nil }

// Describe implements Statement.
func (n *Truncate) Describe() exec.Description {
	return exec.Description{Name: "Truncate", Props: []exec.Prop{{Key: "table", Value: n.From.Table.Ref().String()}}}
}

// Run implements Statement. MySQL reports no rows.
func (n *Truncate) Run(ctx context.Context, _ *Env, tx Tx) (Outcome, error) {
	return Outcome{}, tx.Replace(ctx, []write.Batches{}, nil)
}

func matched(found, changed, warnings uint64) string {
	return fmt.Sprintf("Rows matched: %d  Changed: %d  Warnings: %d", found, changed, warnings)
}
