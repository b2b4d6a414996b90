// Package mysqlerr turns errors into MySQL errors with the right code: the kinds of internal/errs, contexts that ended, and what
// go-mysql-server leaves without a code. It is the only place that knows the codes.
package mysqlerr

import (
	"context"
	"errors"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer/analyzererrors"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/mysql"
	goerrors "gopkg.in/src-d/go-errors.v1"

	"github.com/lakesql/lakesql/internal/errs"
)

// code is a MySQL error number and its SQLSTATE.
type code struct {
	number int
	state  string
}

const generalState = "HY000"

// kinds maps our error kinds, the more special first: an error may be of several.
func kinds() []struct { //nolint:funlen // a flat table
	kind error
	code code
} {
	return []struct {
		kind error
		code code
	}{
		{context.DeadlineExceeded, code{3024, generalState}},
		{context.Canceled, code{1317, "70100"}},
		{errs.ErrMemoryLimit, code{1041, generalState}},
		{errs.ErrDiskFull, code{1021, generalState}},
		{errs.ErrBadDefault, code{1067, "42000"}},
		{errs.ErrOutOfRange, code{1264, "22003"}},
		{errs.ErrTooLong, code{1406, "22001"}},
		{errs.ErrBadValue, code{1366, generalState}},
		{errs.ErrBadTime, code{1292, "22007"}},
		{errs.ErrTruncated, code{1265, "01000"}},
		{errs.ErrBadJSON, code{3140, "22032"}},
		{errs.ErrNull, code{1048, "23000"}},
		{errs.ErrNoDefault, code{1364, generalState}},
		{errs.ErrFewFields, code{1261, "01000"}},
		{errs.ErrManyFields, code{1262, "01000"}},
		{errs.ErrLocalInfile, code{3948, "42000"}},
		{errs.ErrColumnCount, code{1136, "21S01"}},
		{errs.ErrDuplicateKey, code{1062, "23000"}},
		{errs.ErrReadOnly, code{1290, generalState}},
		{errs.ErrUnknownTable, code{1051, "42S02"}},
		{errs.ErrUnknownColumn, code{1054, "42S22"}},
		{errs.ErrColumnExists, code{1060, "42S21"}},
		{errs.ErrCannotDrop, code{1091, "42000"}},
		{errs.ErrIndexExists, code{1061, "42000"}},
		{errs.ErrKeyColumn, code{1072, "42000"}},
		{errs.ErrCorrupt, code{1815, generalState}},
		{errs.ErrNotFound, code{1146, "42S02"}},
		{errs.ErrExists, code{1050, "42S01"}},
		{errs.ErrPermission, code{1142, "42000"}},
		{errs.ErrConflict, code{1213, "40001"}},
		{errs.ErrUnsupported, code{1235, "42000"}},
		{errs.ErrOverflow, code{1690, "22003"}},
		{errs.ErrIO, code{1815, generalState}},
		{errs.ErrInternal, code{1815, generalState}},
		{errs.ErrSyntax, code{1064, "42000"}},
		{errs.ErrInvalid, code{1210, generalState}},
	}
}

// foreign maps errors of go-mysql-server that it gives no code itself.
func foreign() []struct { //nolint:funlen // a flat table
	kind *goerrors.Kind
	code code
} {
	return []struct {
		kind *goerrors.Kind
		code code
	}{
		{sql.ErrSyntaxError, code{1064, "42000"}},
		{sql.ErrUnsupportedSyntax, code{1235, "42000"}},
		{sql.ErrUnsupportedFeature, code{1235, "42000"}},
		{sql.ErrColumnNotFound, code{1054, "42S22"}},
		{sql.ErrTableColumnNotFound, code{1054, "42S22"}},
		{sql.ErrUnknownColumn, code{1054, "42S22"}},
		{sql.ErrAmbiguousColumnName, code{1052, "23000"}},
		{sql.ErrAmbiguousColumnOrAliasName, code{1052, "23000"}},
		{sql.ErrFunctionNotFound, code{1305, "42000"}},
		{sql.ErrInvalidArgumentNumber, code{1582, "42000"}},
		{sql.ErrNoDatabaseSelected, code{1046, "3D000"}},
		{sql.ErrTableNotFound, code{1146, "42S02"}},
		{sql.ErrDatabaseNotFound, code{1049, "42000"}},
		{sql.ErrUnknownSystemVariable, code{1193, generalState}},
		{sql.ErrSystemVariableReadOnly, code{1238, generalState}},
		{sql.ErrInvalidSystemVariableValue, code{1231, "42000"}},
		{sql.ErrDatabaseAccessDeniedForUser, code{1044, "42000"}},
		{sql.ErrTableAccessDeniedForUser, code{1142, "42000"}},
		{sql.ErrPrivilegeCheckFailed, code{1142, "42000"}},
		{analyzererrors.ErrValidationGroupBy, code{1055, "42000"}},
		{sql.ErrNonAggregatedColumnWithoutGroupBy, code{1140, "42000"}},
		{sql.ErrUnknownPreparedStatement, code{1243, generalState}},
		{sql.ErrReadOnlyTransaction, code{1792, "25006"}},
		{sql.ErrSavepointDoesNotExist, code{1305, "42000"}},
		{sql.ErrStoredProcedureDoesNotExist, code{1305, "42000"}},
		{sql.ErrDatabaseExists, code{1007, generalState}},
		{sql.ErrExistingView, code{1050, "42S01"}},
		{sql.ErrViewDoesNotExist, code{1146, "42S02"}},
		{sql.ErrDuplicateAliasOrTable, code{1066, "42000"}},
		{sql.ErrInvalidType, code{1210, generalState}},
		{sql.ErrCreateTableNotSupported, code{1235, "42000"}},
		{sql.ErrDropTableNotSupported, code{1235, "42000"}},
		{sql.ErrRenameTableNotSupported, code{1235, "42000"}},
		{sql.ErrAlterTableNotSupported, code{1235, "42000"}},
		{sql.ErrTemporaryTableNotSupported, code{1235, "42000"}},
		{sql.ErrImmutableDatabaseProvider, code{1235, "42000"}},
		{plan.ErrInsertIntoNotSupported, code{1235, "42000"}},
		{plan.ErrReplaceIntoNotSupported, code{1235, "42000"}},
		{plan.ErrDeleteFromNotSupported, code{1235, "42000"}},
		{plan.ErrUpdateNotSupported, code{1235, "42000"}},
		{plan.ErrTruncateNotSupported, code{1235, "42000"}},
		{sql.ErrColumnCountMismatch, code{1222, "21000"}},
		{sql.ErrInsertIntoMismatchValueCount, code{1136, "21S01"}},
		{sql.ErrColumnSpecifiedTwice, code{1110, "42000"}},
		{sql.ErrTableAlreadyExists, code{1050, "42S01"}},
		{sql.ErrUnknownTable, code{1051, "42S02"}},
		{sql.ErrDuplicateColumn, code{1060, "42S21"}},
	}
}

// Convert returns err as a MySQL error; nil stays nil.
func Convert(err error) *mysql.SQLError {
	if err == nil {
		return nil
	}
	var done *mysql.SQLError
	if errors.As(err, &done) {
		return done
	}
	for _, k := range kinds() {
		if errors.Is(err, k.kind) {
			return newError(k.code, message(err))
		}
	}
	if c, ok := findForeign(err); ok {
		return newError(c, err.Error())
	}
	if text := err.Error(); strings.HasPrefix(text, "syntax error") || strings.HasPrefix(text, "Error parsing SQL") {
		return newError(code{1064, "42000"}, text)
	}
	out := sql.CastSQLError(err)
	if out.State == "" {
		out.State = generalState
	}
	return out
}

// findForeign looks for an error of go-mysql-server among those that err wraps: its kinds do not look there.
func findForeign(err error) (code, bool) {
	err = sql.UnwrapError(err)
	for _, k := range foreign() {
		if k.kind.Is(err) {
			return k.code, true
		}
	}
	var below []error
	switch w := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() []error }:
		below = w.Unwrap()
	case interface{ Unwrap() error }:
		below = []error{w.Unwrap()}
	}
	for _, b := range below {
		if b == nil {
			continue
		}
		if c, ok := findForeign(b); ok {
			return c, true
		}
	}
	return code{}, false
}

// TransactionInProgress is the error of SET TRANSACTION inside a transaction.
func TransactionInProgress() error {
	return newError(code{1568, "25001"}, "Transaction characteristics can't be changed while a transaction is in progress")
}

// message names the limit instead of Go's words for a context that ended, and keeps the stack of a panic from clients.
func message(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "Query execution was interrupted, maximum statement execution time exceeded"
	case errors.Is(err, context.Canceled):
		return "Query execution was interrupted"
	case errors.Is(err, errs.ErrInternal): // the stack below the first line is for the log
		text, _, _ := strings.Cut(err.Error(), "\n")
		return text
	}
	return err.Error()
}

func newError(c code, text string) *mysql.SQLError {
	return mysql.NewSQLError(c.number, c.state, "%s", text)
}
