package provider

import (
	"context"
	"slices"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
)

// Staged is what a transaction has changed of one table and not committed.
type Staged interface {
	// Table is the table as the session sees it.
	Table(ctx context.Context) (exec.Table, error)
	// Mark remembers the present state; the mark serves any number of returns, until the transaction ends.
	Mark() (Mark, error)
	// Commit and Rollback end it, whatever they return.
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Mark is a state of staged changes that can come back.
type Mark interface {
	// Return undoes what was staged since.
	Return() error
	// Free forgets the mark.
	Free()
}

// Staged returns what the transaction has changed of a table, nil if nothing. ErrUnsupported where it has changed another table: versions are committed table by
// table.
func (tx *Transaction) Staged(c source.Catalog, name string) (Staged, error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.staged == nil {
		return nil, nil //nolint:nilnil // nil is "nothing"
	}
	if key := keyOf(c, name, source.AsOf{}); key != tx.stagedKey {
		return nil, errs.New(errs.ErrUnsupported, "the transaction has changed table %s.%s: a second table, %s.%s, cannot be changed in it; COMMIT first",
			tx.stagedKey.catalog, tx.stagedKey.table, key.catalog, key.table)
	}
	return tx.staged, nil
}

// Stage makes s what the transaction changes.
func (tx *Transaction) Stage(c source.Catalog, name string, s Staged) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.staged, tx.stagedKey = s, keyOf(c, name, source.AsOf{})
	tx.hold = max(tx.hold, holdStatement)
}

// Unstage forgets changes that came to nothing, so that another table may be changed, and says whether the caller is to end them: a savepoint may need them yet.
func (tx *Transaction) Unstage() bool {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if slices.ContainsFunc(tx.savepoints, func(p savepoint) bool { return p.mark != nil }) {
		return false
	}
	tx.staged = nil
	return true
}

// own returns the staged changes of the key's table.
func (tx *Transaction) own(key tableKey) Staged {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.staged == nil || key != tx.stagedKey {
		return nil
	}
	return tx.staged
}

// takeStaged hands the changes to who ends them.
func (tx *Transaction) takeStaged() Staged {
	if tx == nil {
		return nil
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	s := tx.staged
	tx.staged = nil
	return s
}

// endStaged commits or rolls back what a transaction has changed.
func endStaged(ctx context.Context, tx sql.Transaction, commit bool) error {
	own, ok := tx.(*Transaction)
	if !ok {
		return nil
	}
	s := own.takeStaged()
	switch {
	case s == nil:
		return nil
	case commit:
		return s.Commit(ctx)
	}
	return s.Rollback(context.WithoutCancel(ctx))
}

// Abandon rolls back what the session has not committed, when its connection ends or is reset.
func (s *Session) Abandon(ctx context.Context) error {
	tx := s.GetTransaction()
	if tx == nil {
		return nil
	}
	err := endStaged(ctx, tx, false)
	s.clear()
	return err
}

// clear makes the next statement begin a transaction anew.
func (s *Session) clear() {
	s.SetTransaction(nil)
	s.SetIgnoreAutoCommit(false)
}

// Begun returns the transaction that a statement runs in, begun where there is none, and whether the statement is to commit it.
func (s *Session) Begun(ctx *sql.Context) (tx *Transaction, alone bool, err error) {
	if s.GetTransaction() == nil {
		begun, err := s.StartTransaction(ctx, sql.ReadWrite)
		if err != nil {
			return nil, false, err
		}
		s.SetTransaction(begun)
	}
	longer, err := s.Transaction(ctx)
	if err != nil {
		return nil, false, err
	}
	return s.transaction(), longer == nil, nil
}

// CommitNow ends the session's transaction by a commit: before a statement that cannot be part of one, and after one that was alone.
func (s *Session) CommitNow(ctx *sql.Context) error {
	tx := s.GetTransaction()
	if tx == nil {
		return nil
	}
	err := s.CommitTransaction(ctx, tx)
	s.clear()
	return err
}

// RollbackNow ends the session's transaction and drops what it has changed.
func (s *Session) RollbackNow(ctx *sql.Context) error {
	tx := s.GetTransaction()
	if tx == nil {
		return nil
	}
	err := s.Rollback(ctx, tx)
	s.clear()
	return err
}
