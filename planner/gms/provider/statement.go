package provider

import (
	"context"
	"sync"
	"time"

	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/source"
)

// Statement holds what one statement has pinned: the version of each table from when its name is first resolved until the last fetch. It is safe for
// concurrent use and finds tables for exec plans.
type Statement struct {
	location   *time.Location // of the session
	session    *Session       // whose transaction resolves tables; nil = none
	repeatable bool           // a transaction that begins to read with this statement keeps what it reads

	mu    sync.Mutex
	named map[tableKey]exec.Table
	refs  map[exec.TableRef]exec.Table
}

type tableKey struct {
	catalog, table string
	asOf           source.AsOf
}

var _ exec.TableOpener = (*Statement)(nil)

// NewStatement returns a statement that has pinned nothing, in a session of the time zone.
func NewStatement(location *time.Location) *Statement {
	return &Statement{location: location, named: make(map[tableKey]exec.Table), refs: make(map[exec.TableRef]exec.Table)}
}

// NewStatementOf returns a statement of the context's session, which resolves tables through its transaction.
func NewStatementOf(ctx *sql.Context, location *time.Location) (*Statement, error) {
	st := NewStatement(location)
	session, ok := ctx.Session.(*Session)
	if !ok {
		return st, nil
	}
	var err error
	st.session = session
	st.repeatable, err = session.repeatableRead(ctx)
	return st, err
}

type statementKey struct{}

// WithStatement returns a context in which names resolve through st.
func WithStatement(ctx context.Context, st *Statement) context.Context {
	return context.WithValue(ctx, statementKey{}, st)
}

// StatementOf returns the statement of a context, nil if it has none.
func StatementOf(ctx context.Context) *Statement {
	st, _ := ctx.Value(statementKey{}).(*Statement)
	return st
}

// Location is the session's time zone; UTC without a statement.
func (st *Statement) Location() *time.Location {
	if st == nil || st.location == nil {
		return time.UTC
	}
	return st.location
}

// Table returns the version of a table that the statement uses. Errors of Catalog.Table.
func (st *Statement) Table(ctx context.Context, c source.Catalog, name string, asOf source.AsOf) (exec.Table, error) {
	if st == nil {
		return c.Table(ctx, name, asOf)
	}
	key := keyOf(c, name, asOf)
	st.mu.Lock()
	t, ok := st.named[key]
	st.mu.Unlock()
	if ok {
		return t, nil
	}
	t, err := st.session.transaction().Table(ctx, c, name, asOf, st.repeatable)
	if err != nil {
		return nil, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if earlier, ok := st.named[key]; ok { // resolved meanwhile: the first stays
		return earlier, nil
	}
	st.named[key] = t
	st.refs[t.Ref()] = t
	return t, nil
}

// Pin lets the statement's plans find a table that no name resolved: a view of what a transaction staged.
func (st *Statement) Pin(t exec.Table) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.refs[t.Ref()] = t
}

// OpenTable implements exec.TableOpener with the pinned tables.
func (st *Statement) OpenTable(_ context.Context, ref exec.TableRef) (exec.Table, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if t, ok := st.refs[ref]; ok {
		return t, nil
	}
	return nil, errs.New(errs.ErrInternal, "table %s was not resolved by this statement", ref)
}
