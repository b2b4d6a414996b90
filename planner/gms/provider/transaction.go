package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/source"
)

// hold is how long a transaction keeps a version that it has read.
type hold int

const (
	holdUndecided   hold = iota // until the first table is read, whose statement decides by its isolation level
	holdStatement               // the statement keeps it
	holdTransaction             // until COMMIT or ROLLBACK
)

// Transaction is what a session keeps between the statements of one transaction: the versions of tables that it has read, where its isolation
// level asks for that. Statements resolve tables through Table, so this is the place for what a transaction sees of its own. It is safe for
// concurrent use.
type Transaction struct {
	readOnly bool

	mu         sync.Mutex
	hold       hold
	tables     map[tableKey]exec.Table
	savepoints []savepoint // oldest first
	staged     Staged      // what the transaction has changed; nil = nothing
	stagedKey  tableKey
}

// savepoint is a name, in lower case, and what was staged then.
type savepoint struct {
	name string
	mark Mark // nil = nothing
}

// free forgets savepoints.
func free(points []savepoint) {
	for _, p := range points {
		if p.mark != nil {
			p.mark.Free()
		}
	}
}

var _ sql.Transaction = (*Transaction)(nil)

// String implements fmt.Stringer.
func (tx *Transaction) String() string {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return fmt.Sprintf("transaction over %d tables", len(tx.tables))
}

// IsReadOnly implements sql.Transaction. It says no: go-mysql-server's own check dies of tables that cannot be temporary; engine asks ReadOnly.
func (tx *Transaction) IsReadOnly() bool { return false }

// ReadOnly says that the transaction refuses writes.
func (tx *Transaction) ReadOnly() bool { return tx != nil && tx.readOnly }

// Table returns the version of a table that the transaction reads. repeatable is the isolation level of a statement that may be the first to read.
// Errors of Catalog.Table. A nil transaction holds nothing.
func (tx *Transaction) Table(ctx context.Context, c source.Catalog, name string, asOf source.AsOf, repeatable bool) (exec.Table, error) {
	if tx == nil || c.Kind() == systemKind {
		return c.Table(ctx, name, asOf)
	}
	key := keyOf(c, name, asOf)
	if s := tx.own(key); s != nil {
		return s.Table(ctx)
	}
	tx.mu.Lock()
	if tx.hold == holdUndecided {
		tx.hold = holdStatement
		if repeatable {
			tx.hold = holdTransaction
		}
	}
	holds, t := tx.hold == holdTransaction, tx.tables[key]
	tx.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := c.Table(ctx, name, asOf)
	if err != nil || !holds {
		return t, err
	}
	return tx.keep(key, t), nil
}

// keep remembers a version; one that was kept meanwhile stays.
func (tx *Transaction) keep(key tableKey, t exec.Table) exec.Table {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if earlier, ok := tx.tables[key]; ok {
		return earlier
	}
	if tx.tables == nil {
		tx.tables = make(map[tableKey]exec.Table)
	}
	tx.tables[key] = t
	return t
}

// snapshotTasksMax bounds how many tables a consistent snapshot opens at a time.
const snapshotTasksMax = 8

// snapshot holds the present version of every table. A table that no statement can read, being damaged or of a kind that is not known, does not
// stand in the way of the others; what may be passing, such as a store that does not answer, is the snapshot's error.
func (tx *Transaction) snapshot(ctx context.Context, catalogs []source.Catalog) error {
	g, ctx := spawn.WithContext(ctx, snapshotTasksMax)
	var listing error
	for _, c := range catalogs {
		names, err := c.TableNames(ctx)
		listing = errors.Join(listing, err)
		for _, name := range names {
			g.Go("snapshot", func() error {
				t, err := c.Table(ctx, name, source.AsOf{})
				switch {
				case err == nil:
					tx.keep(keyOf(c, name, source.AsOf{}), t)
				case !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrUnsupported) && !errors.Is(err, errs.ErrNotFound):
					return err
				}
				return nil
			})
		}
	}
	return errors.Join(listing, g.Wait())
}

func keyOf(c source.Catalog, name string, asOf source.AsOf) tableKey {
	return tableKey{catalog: strings.ToLower(c.Name()), table: name, asOf: asOf}
}

// savepoint remembers a name; one that is known moves to the end.
func (tx *Transaction) savepoint(name string) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	p := savepoint{name: strings.ToLower(name)}
	if tx.staged != nil {
		var err error
		if p.mark, err = tx.staged.Mark(); err != nil {
			return err
		}
	}
	if at := tx.find(name); at >= 0 {
		free(tx.savepoints[at : at+1])
		tx.savepoints = slices.Delete(tx.savepoints, at, at+1)
	}
	tx.savepoints = append(tx.savepoints, p)
	return nil
}

func (tx *Transaction) find(name string) int {
	return slices.IndexFunc(tx.savepoints, func(s savepoint) bool { return strings.EqualFold(s.name, name) })
}

// returnTo undoes what was staged since a savepoint and forgets those after it. What was read stays as it was read. ErrSavepointDoesNotExist.
func (tx *Transaction) returnTo(ctx context.Context, name string) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	at := tx.find(name)
	if at < 0 {
		return sql.ErrSavepointDoesNotExist.New(name)
	}
	var err error
	switch mark := tx.savepoints[at].mark; {
	case mark != nil:
		err = mark.Return()
	case tx.staged != nil: // the first change came later
		err = tx.staged.Rollback(context.WithoutCancel(ctx))
		tx.staged = nil
	}
	free(tx.savepoints[at+1:])
	tx.savepoints = tx.savepoints[:at+1]
	return err
}

// release forgets a savepoint and those after it. ErrSavepointDoesNotExist.
func (tx *Transaction) release(name string) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	at := tx.find(name)
	if at < 0 {
		return sql.ErrSavepointDoesNotExist.New(name)
	}
	free(tx.savepoints[at:])
	tx.savepoints = tx.savepoints[:at]
	return nil
}

// began says that the transaction is one of BEGIN or has read a table.
func (tx *Transaction) began() bool {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.hold != holdUndecided
}
