package provider

import (
	"github.com/dolthub/go-mysql-server/sql"

	"github.com/lakesql/lakesql/internal/errs"
)

// Name resolution asks whether a table can be written before it binds INSERT, REPLACE and UPDATE. The statements themselves run on Arrow batches
// (planner/dml): go-mysql-server's row editors are never used.
var (
	_ sql.ReplaceableTable = (*Table)(nil)
	_ sql.UpdatableTable   = (*Table)(nil)
	_ sql.DeletableTable   = (*Table)(nil)
)

// Inserter implements sql.InsertableTable.
func (t *Table) Inserter(*sql.Context) sql.RowInserter { return noEditor{} }

// Replacer implements sql.ReplaceableTable.
func (t *Table) Replacer(*sql.Context) sql.RowReplacer { return noEditor{} }

// Updater implements sql.UpdatableTable.
func (t *Table) Updater(*sql.Context) sql.RowUpdater { return noEditor{} }

// Deleter implements sql.DeletableTable.
func (t *Table) Deleter(*sql.Context) sql.RowDeleter { return noEditor{} }

// noEditor refuses to work row by row.
type noEditor struct{}

func refuseRows() error {
	return errs.New(errs.ErrUnsupported, "this statement cannot be used here: tables are written by statements of their own, not row by row")
}

// StatementBegin implements sql.EditOpenerCloser.
func (noEditor) StatementBegin(*sql.Context) {}

// DiscardChanges implements sql.EditOpenerCloser.
func (noEditor) DiscardChanges(*sql.Context, error) error { return nil }

// StatementComplete implements sql.EditOpenerCloser.
func (noEditor) StatementComplete(*sql.Context) error { return refuseRows() }

// Insert implements sql.RowInserter.
func (noEditor) Insert(*sql.Context, sql.Row) error { return refuseRows() }

// Update implements sql.RowUpdater.
func (noEditor) Update(*sql.Context, sql.Row, sql.Row) error { return refuseRows() }

// Delete implements sql.RowDeleter.
func (noEditor) Delete(*sql.Context, sql.Row) error { return refuseRows() }

// Close implements sql.Closer.
func (noEditor) Close(*sql.Context) error { return nil }
