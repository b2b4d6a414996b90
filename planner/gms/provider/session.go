package provider

import (
	"errors"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/planner/dialect"
	"github.com/lakesql/lakesql/planner/gms/mysqlerr"
)

// Session is a session whose transactions keep what they read (Transaction). go-mysql-server starts one for every statement that has none and
// ends it with the statement unless BEGIN or autocommit=0 says otherwise.
type Session struct {
	*sql.BaseSession
	provider *Provider
	next     map[string]any // what SET TRANSACTION said of the next transaction alone, by variable
}

var _ sql.TransactionSession = (*Session)(nil)

// NewSession makes a session of go-mysql-server one of ours.
func (p *Provider) NewSession(base *sql.BaseSession) *Session {
	return &Session{BaseSession: base, provider: p}
}

// Transaction is the session's transaction that lasts longer than a statement, nil if there is none.
func (s *Session) Transaction(ctx *sql.Context) (*Transaction, error) {
	tx := s.transaction()
	if tx == nil || s.GetIgnoreAutoCommit() {
		return tx, nil
	}
	auto, err := autocommit(ctx)
	if err != nil || auto {
		return nil, err
	}
	return tx, nil
}

func (s *Session) transaction() *Transaction {
	if s == nil {
		return nil
	}
	tx, _ := s.GetTransaction().(*Transaction)
	return tx
}

// autocommit says that a statement outside BEGIN is a transaction of its own.
func autocommit(ctx *sql.Context) (bool, error) {
	v, err := ctx.GetSessionVariable(ctx, sql.AutoCommitSessionVar)
	if err != nil {
		return false, err
	}
	return sql.ConvertToBool(ctx, v)
}

// StartTransaction implements sql.TransactionSession. Where a transaction is there already the call is BEGIN, else a statement that needs one.
func (s *Session) StartTransaction(ctx *sql.Context, characteristic sql.TransactionCharacteristic) (sql.Transaction, error) {
	readOnly, err := s.readOnly(ctx)
	if err != nil || s.GetTransaction() == nil {
		return &Transaction{readOnly: readOnly}, err
	}
	asked, err := dialect.ParseStartTransaction(ctx.Query())
	if err != nil {
		return nil, err
	}
	repeatable, err := s.repeatableRead(ctx)
	if err != nil {
		return nil, err
	}
	tx := &Transaction{readOnly: characteristic == sql.ReadOnly || readOnly && !asked.ReadWrite, hold: holdStatement}
	if repeatable || asked.ConsistentSnapshot {
		tx.hold = holdTransaction
	}
	if asked.ConsistentSnapshot {
		err = tx.snapshot(ctx, s.provider.Catalogs())
	}
	return tx, err
}

// CommitTransaction implements sql.TransactionSession.
func (s *Session) CommitTransaction(ctx *sql.Context, tx sql.Transaction) error {
	s.ended(tx)
	err := endStaged(ctx, tx, true)
	if err != nil {
		s.clear() // the transaction is over all the same
	}
	return err
}

// Rollback implements sql.TransactionSession. What was changed is gone in any case; files of it that cannot be removed are a warning.
func (s *Session) Rollback(ctx *sql.Context, tx sql.Transaction) error {
	s.ended(tx)
	if err := endStaged(ctx, tx, false); err != nil { // files stay that no version names: nothing that a client could mend
		e := mysqlerr.Convert(err)
		s.Warn(&sql.Warning{Level: "Warning", Code: e.Num, Message: e.Message})
	}
	return nil
}

// ended forgets what SET TRANSACTION asked for once a transaction with reads, or one of BEGIN, is over.
func (s *Session) ended(tx sql.Transaction) {
	if tx, ok := tx.(*Transaction); ok && tx.began() {
		s.next = nil
	}
}

// CreateSavepoint implements sql.TransactionSession.
func (s *Session) CreateSavepoint(_ *sql.Context, _ sql.Transaction, name string) error {
	return s.transaction().savepoint(name)
}

// RollbackToSavepoint implements sql.TransactionSession: changes since are undone, what was read stays as it was read.
func (s *Session) RollbackToSavepoint(ctx *sql.Context, _ sql.Transaction, name string) error {
	return s.transaction().returnTo(ctx, name)
}

// ReleaseSavepoint implements sql.TransactionSession.
func (s *Session) ReleaseSavepoint(_ *sql.Context, _ sql.Transaction, name string) error {
	return s.transaction().release(name)
}

// Chain ends the session's transaction, by a commit or not, and begins another one of the same kind: COMMIT AND CHAIN, ROLLBACK AND CHAIN.
func (s *Session) Chain(ctx *sql.Context, commit bool) error {
	tx := s.transaction()
	end := s.RollbackNow
	if commit {
		end = s.CommitNow
	}
	if err := end(ctx); err != nil {
		return err
	}
	if tx == nil {
		begun, err := s.StartTransaction(ctx, sql.ReadWrite)
		if err != nil {
			return err
		}
		tx, _ = begun.(*Transaction)
	}
	tx.mu.Lock()
	next := &Transaction{readOnly: tx.readOnly, hold: max(tx.hold, holdStatement)}
	tx.mu.Unlock()
	s.SetTransaction(next)
	s.SetIgnoreAutoCommit(true)
	return nil
}

// LevelError is the level of an error among warnings.
const LevelError = "Error"

// GetSessionVariable implements sql.Session: the counts of warnings and errors are those of the statement before.
func (s *Session) GetSessionVariable(ctx *sql.Context, name string) (any, error) {
	switch strings.ToLower(name) {
	case VarWarningCount:
		return int64(len(s.Warnings())), nil
	case VarErrorCount:
		n := int64(0)
		for _, w := range s.Warnings() {
			if w.Level == LevelError {
				n++
			}
		}
		return n, nil
	}
	return s.BaseSession.GetSessionVariable(ctx, name)
}

// SetSessionVariable implements sql.Session. The two names of a transaction's characteristic are one variable; SET TRANSACTION without SESSION is for
// the next transaction alone; switching autocommit on commits.
func (s *Session) SetSessionVariable(ctx *sql.Context, name string, value any) error {
	switch name = strings.ToLower(name); name {
	case VarTransactionIsolation, varTxIsolation:
		return s.setCharacteristic(ctx, value, VarTransactionIsolation, varTxIsolation)
	case varTransactionReadOnly, varTxReadOnly:
		return s.setCharacteristic(ctx, value, varTransactionReadOnly, varTxReadOnly)
	case sql.AutoCommitSessionVar:
		return s.setAutocommit(ctx, value)
	case varCollationConnection, varCollationDatabase, varCollationServer:
		return s.setCollation(ctx, name, value)
	case VarResourceGroup:
		if err := checkGroup(value); err != nil {
			return err
		}
	}
	return s.BaseSession.SetSessionVariable(ctx, name, value)
}

func (s *Session) setCharacteristic(ctx *sql.Context, value any, name, oldName string) error {
	if !dialect.IsSetTransaction(ctx.Query()) {
		return errors.Join(s.BaseSession.SetSessionVariable(ctx, name, value), s.BaseSession.SetSessionVariable(ctx, oldName, value))
	}
	if s.GetIgnoreAutoCommit() {
		return mysqlerr.TransactionInProgress()
	}
	if s.next == nil {
		s.next = make(map[string]any)
	}
	s.next[name] = value
	return nil
}

// characteristic is what a transaction that begins now has.
func (s *Session) characteristic(ctx *sql.Context, name string) (any, error) {
	if v, ok := s.next[name]; ok {
		return v, nil
	}
	return s.GetSessionVariable(ctx, name)
}

// repeatableRead says that transactions keep the versions that they read.
func (s *Session) repeatableRead(ctx *sql.Context) (bool, error) {
	v, err := s.characteristic(ctx, VarTransactionIsolation)
	return v == "REPEATABLE-READ" || v == "SERIALIZABLE", err
}

func (s *Session) readOnly(ctx *sql.Context) (bool, error) {
	v, err := s.characteristic(ctx, varTransactionReadOnly)
	if err != nil {
		return false, err
	}
	return sql.ConvertToBool(ctx, v)
}

// RefusesWrites says that the session's transaction, or the one that a statement would begin, is READ ONLY.
func (s *Session) RefusesWrites(ctx *sql.Context) (bool, error) {
	tx, err := s.Transaction(ctx)
	if err != nil {
		return false, err
	}
	if tx != nil {
		return tx.readOnly, nil
	}
	return s.readOnly(ctx)
}

func (s *Session) setAutocommit(ctx *sql.Context, value any) error {
	was, err := autocommit(ctx)
	if err != nil {
		return err
	}
	if err := s.BaseSession.SetSessionVariable(ctx, sql.AutoCommitSessionVar, value); err != nil {
		return err
	}
	now, err := autocommit(ctx)
	if err != nil || was || !now {
		return err
	}
	if tx := s.GetTransaction(); tx != nil {
		if err := s.CommitTransaction(ctx, tx); err != nil {
			return err
		}
	}
	s.SetTransaction(nil)
	s.SetIgnoreAutoCommit(false)
	return nil
}

// EndStatement forgets a transaction that the statement alone had, where go-mysql-server left it behind: after errors.
func EndStatement(ctx *sql.Context) error {
	if ctx.GetTransaction() == nil {
		ctx.SetIgnoreAutoCommit(false) // a statement that commits by itself ended BEGIN
		return nil
	}
	if ctx.GetIgnoreAutoCommit() {
		return nil
	}
	auto, err := autocommit(ctx)
	if err == nil && auto {
		ctx.SetTransaction(nil)
	}
	return err
}
