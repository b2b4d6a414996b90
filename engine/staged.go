package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/planner/dml"
	"github.com/lakesql/lakesql/planner/gms/provider"
	"github.com/lakesql/lakesql/source/lance"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/write"
)

// stagedTable is what a session's transaction has changed of one table.
type stagedTable struct {
	cat    *lance.Catalog
	name   string
	base   *lance.Table // that the transaction changes; held, so that a clean-up knows of it
	tx     *write.Tx
	budget *mem.Budget
	mu     sync.Mutex
	view   exec.Table
	of     *storage.Snapshot // that view shows
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
	s := &stagedTable{cat: cat, name: t.Name(), base: table, tx: begun, budget: budget}
	tx.Stage(cat, t.Name(), s)
	return s, nil
}

// run runs a statement on the staged table. One that fails leaves nothing of it behind; the transaction goes on.
func (s *stagedTable) run(ctx context.Context, st dml.Statement, env *dml.Env) (dml.Outcome, error) {
	before, err := s.tx.Mark()
	if err != nil {
		return dml.Outcome{}, err
	}
	defer before.Free()
	out, err := st.Run(ctx, env, s.tx)
	if err != nil {
		return out, errors.Join(err, s.tx.Return(before))
	}
	return out, nil
}

// isUnchanged says that nothing is staged.
func (s *stagedTable) isUnchanged(ctx context.Context) bool {
	snap, err := s.tx.Snapshot(ctx)
	return err == nil && !snap.IsOverlay()
}

// stagedMark is a savepoint.
type stagedMark struct {
	*write.TxMark
	tx *write.Tx
}

// Return implements provider.Mark.
func (m stagedMark) Return() error { return m.tx.Return(m.TxMark) }

// Mark implements provider.Staged.
func (s *stagedTable) Mark() (provider.Mark, error) {
	m, err := s.tx.Mark()
	if err != nil {
		return nil, err
	}
	return stagedMark{m, s.tx}, nil
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

// Commit implements provider.Staged.
func (s *stagedTable) Commit(ctx context.Context) error {
	defer s.budget.Close()
	_, err := s.tx.Commit(ctx)
	return err
}

// Rollback implements provider.Staged.
func (s *stagedTable) Rollback(ctx context.Context) error {
	defer s.budget.Close()
	return s.tx.Rollback(ctx)
}

var _ dml.Tx = (*write.Tx)(nil)
