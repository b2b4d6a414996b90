// Package mysqlerr turns errors into MySQL errors with the right code: the kinds of internal/errs, contexts that ended, and what
// go-mysql-server leaves without a code. It is the only place that knows the codes.
package mysqlerr

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer/analyzererrors"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
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
		{errs.ErrJSONName, code{3158, "22032"}},
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
		{errs.ErrAllColumns, code{1090, "42000"}},
		{errs.ErrManyKeys, code{1068, "42000"}},
		{errs.ErrUnknownIndex, code{1176, "42000"}},
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
		{errs.ErrManyRows, code{1242, "21000"}},
		{errs.ErrOperands, code{1241, "21000"}},
		{errs.ErrJSONText, code{3141, "22032"}},
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
		{sql.ErrColumnCountMismatch, code{1353, generalState}},
		{sql.ErrColumnNumberDoesNotMatch, code{1222, "21000"}},
		{planbuilder.ErrUnionSchemasDifferentLength, code{1222, "21000"}},
		{sql.ErrExpectedSingleRow, code{1242, "21000"}},
		{sql.ErrMoreThanOneRow, code{1172, "42000"}},
		{sql.ErrInvalidOperandColumns, code{1241, "21000"}},
		{sql.ErrInvalidJSONText, code{3141, "22032"}},
		{sql.ErrInvalidJSONArgument, code{3146, "22032"}},
		{sql.ErrCollationUnknown, code{1273, generalState}},
		{sql.ErrCollationNotYetImplementedTemp, code{1273, generalState}},
		{sql.ErrCollationInvalidForCharSet, code{1253, "42000"}},
		{sql.ErrCollationIllegalMix, code{1267, generalState}},
		{sql.ErrStoredProceduresNotSupported, code{1305, "42000"}},
		{sql.ErrStoredProcedureDoesNotExist, code{1305, "42000"}},
		{sql.ErrCallIncorrectParameterCount, code{1318, "42000"}},
		{sql.ErrTableFunctionNotFound, code{1305, "42000"}},
		{sql.ErrRecursiveCTEMissingUnion, code{3573, generalState}},
		{sql.ErrRecursiveCTENotUnion, code{3575, generalState}},
		{sql.ErrCteRecursionLimitExceeded, code{3636, generalState}},
		{sql.ErrUnknownWindowName, code{3579, generalState}},
		{sql.ErrSecureFilePriv, code{1290, generalState}},
		{sql.ErrSystemVariableSessionOnly, code{1228, generalState}},
		{sql.ErrSystemVariableGlobalOnly, code{1229, generalState}},
		{sql.ErrAmbiguousColumnInOrderBy, code{1052, "23000"}},
		{sql.ErrMisusedAlias, code{1054, "42S22"}},
		{sql.ErrUnknownTable, code{1051, "42S02"}},
		{sql.ErrDuplicateColumn, code{1060, "42S21"}},
		{sql.ErrInvalidArgument, code{1210, generalState}},
		{sql.ErrInvalidArgumentDetails, code{1210, generalState}},
		{sql.ErrInvalidArgumentType, code{1210, generalState}},
		{sql.ErrUnboundPreparedStatementVariable, code{1210, generalState}},
		{sql.ErrTriggersNotSupported, code{1235, "42000"}},
		{sql.ErrEventsNotSupported, code{1235, "42000"}},
		{sql.ErrAsOfNotSupported, code{1235, "42000"}},
		{sql.ErrInvalidRefInView, code{1356, generalState}},
		{sql.ErrExpectedTableFoundView, code{1347, generalState}},
		{sql.ErrShowGrantsUserDoesNotExist, code{1141, "42000"}},
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
		if done.State == "" || done.State == generalState {
			return newError(code{done.Num, stateOf(done.Num)}, done.Message)
		}
		return done
	}
	for _, k := range kinds() {
		if errors.Is(err, k.kind) {
			return newError(k.code, message(err))
		}
	}
	if c, ok := byText(strings.TrimPrefix(err.Error(), "syntax error ")); ok {
		return newError(c, err.Error())
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

// stateOf is the SQLSTATE of a number that came without one.
func stateOf(number int) string {
	for _, k := range foreign() {
		if k.code.number == number {
			return k.code.state
		}
	}
	return generalState
}

// byText knows what the parser and go-mysql-server say in words alone.
func byText(text string) (code, bool) {
	switch {
	case strings.HasPrefix(text, "Unknown character set"):
		return code{1115, "42000"}, true
	case strings.Contains(text, "Every derived table must have its own alias"):
		return code{1248, "42000"}, true
	}
	return code{}, false
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

// EmptyQuery is the error of a statement of blanks and comments.
func EmptyQuery() error { return newError(code{1065, "42000"}, "Query was empty") }

// NotPreparable is the error of preparing what only a text may say.
func NotPreparable() error {
	return newError(code{1295, generalState}, "This command is not supported in the prepared statement protocol yet")
}

// GroupFunctionNotAllowed is the error of an aggregate where rows are not grouped yet.
func GroupFunctionNotAllowed() error {
	return newError(code{1111, generalState}, "Invalid use of group function")
}

// GroupingArgument is the error of an argument of GROUPING, numbered from 0, that is no key.
func GroupingArgument(n int) error {
	return newError(code{3625, generalState}, fmt.Sprintf("Argument #%d of GROUPING function is not in GROUP BY", n))
}

// WindowNotAllowed is the error of a window function outside of the SELECT list and ORDER BY.
func WindowNotAllowed(name string) error {
	return newError(code{3593, generalState}, fmt.Sprintf("You cannot use the window function '%s' in this context.", name))
}

// WindowCircle is the error of windows that name each other.
func WindowCircle() error {
	return newError(code{3580, generalState}, "There is a circularity in the window dependency graph.")
}

// WindowError is the error of a window under its number: 1235 for what MySQL has not, 3581 to 3590 for what a window may not be.
func WindowError(number int, text string) error {
	return newError(code{number, generalState}, text)
}

// WrongArguments is the error of arguments that a function does not take.
func WrongArguments(name string) error {
	return newError(code{1210, generalState}, "Incorrect arguments to "+name)
}

// DuplicateColumn is the error of two columns of one name.
func DuplicateColumn(name string) error {
	return newError(code{1060, "42S21"}, fmt.Sprintf("Duplicate column name '%s'", name))
}

// UnknownThread is the error of KILL for a connection that is not there.
func UnknownThread(id uint32) error {
	return newError(code{1094, generalState}, fmt.Sprintf("Unknown thread id: %d", id))
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
