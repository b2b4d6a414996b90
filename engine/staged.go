package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

// stagedTable is what a session's transaction has changed of one table.
type stagedTable struct {
	cat    *lance.Catalog
	name   string
	tx     *write.Tx
	budget *mem.Budget
	broken bool // a statement failed halfway: the transaction cannot go on

	mu      sync.Mutex
	changes int
	view    exec.Table
	of      *storage.Snapshot // that view shows
}

var _ provider.Staged = (*stagedTable)(nil)

// staged finds what the transaction has changed of the table, or begins to change it.
func (c *change) staged(ctx context.Context, cat *lance.Catalog, t dml.Target, tx *provider.Transaction) (*stagedTable, error) {
	have, err := tx.Staged(cat, t.Name())
	if err != nil {
		return nil, err
	}
	if s, ok := have.(*stagedTable); ok {
		return s, nil
	}
	table, ok := t.Table.(*lance.Table)
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "table %s cannot be changed", t.Table.Ref())
	}
	snap := table.Snapshot()
	budget := mem.NewBudget("transaction", 0, c.e.budget)
	opts := write.TxOptions{Budget: budget, Rows: rowOptions(snap.ArrowSchema())}
	begun, err := write.Begin(ctx, snap.Table(), snap, opts)
	if err != nil {
		budget.Close()
		return nil, err
	}
	s := &stagedTable{cat: cat, name: t.Name(), tx: begun, budget: budget}
	tx.Stage(cat, t.Name(), s)
	return s, nil
}

// run runs a statement on the staged table.
func (s *stagedTable) run(ctx context.Context, st dml.Statement, env *dml.Env) (dml.Outcome, error) {
	counted := &countedTx{tx: s.tx}
	out, err := st.Run(ctx, env, counted)
	if err != nil {
		s.broken = counted.done > 0
		return out, err
	}
	if counted.done > 0 {
		s.mu.Lock()
		s.changes++
		s.mu.Unlock()
	}
	return out, nil
}

// Table implements provider.Staged.
func (s *stagedTable) Table(ctx context.Context) (exec.Table, error) {
	snap, err := s.tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of != snap {
		s.of, s.view = snap, s.cat.View(s.name, snap)
	}
	return s.view, nil
}

// Changes implements provider.Staged.
func (s *stagedTable) Changes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// Commit implements provider.Staged.
func (s *stagedTable) Commit(ctx context.Context) error {
	defer s.budget.Close()
	if s.broken {
		return errors.Join(errs.New(errs.ErrConflict, "a statement of the transaction failed halfway"), s.tx.Rollback(context.WithoutCancel(ctx)))
	}
	_, err := s.tx.Commit(ctx)
	return err
}

// Rollback implements provider.Staged.
func (s *stagedTable) Rollback(ctx context.Context) error {
	defer s.budget.Close()
	return s.tx.Rollback(ctx)
}

// countedTx counts what a statement has staged.
type countedTx struct {
	tx   *write.Tx
	done int
}

var _ dml.Tx = (*countedTx)(nil)

func (c *countedTx) note(n uint64, err error) (uint64, error) {
	if err == nil && n > 0 {
		c.done++
	}
	return n, err
}

// Snapshot implements dml.Tx.
func (c *countedTx) Snapshot(ctx context.Context) (*storage.Snapshot, error) {
	return c.tx.Snapshot(ctx)
}

// Append implements dml.Tx.
func (c *countedTx) Append(ctx context.Context, parts []write.Batches) (uint64, error) {
	return c.note(c.tx.Append(ctx, parts))
}

// Delete implements dml.Tx.
func (c *countedTx) Delete(ctx context.Context, rows *rowset.Set) (uint64, error) {
	return c.note(c.tx.Delete(ctx, rows))
}

// Update implements dml.Tx.
func (c *countedTx) Update(ctx context.Context, rows []rowset.RowAddr, with write.Batches, changed []string) (uint64, error) {
	return c.note(c.tx.Update(ctx, rows, with, changed))
}

// Replace implements dml.Tx.
func (c *countedTx) Replace(ctx context.Context, parts []write.Batches, columns *arrow.Schema) error {
	_, err := c.note(1, c.tx.Replace(ctx, parts, columns))
	return err
}

// Watch implements dml.Tx.
func (c *countedTx) Watch(columns []string, sizeBytes int64, clash func(rows arrow.RecordBatch) (bool, error)) error {
	return c.tx.Watch(columns, sizeBytes, clash)
}
