package errs

import (
	"errors"
	"fmt"
)

// The kinds of what a statement that writes may run into. Each has a MySQL code of its own; a value that a column refuses names column and row.
var (
	ErrOutOfRange    = errors.New("value out of range for the column")
	ErrTooLong       = errors.New("value too long for the column")
	ErrBadValue      = errors.New("value of the wrong form for the column")
	ErrBadTime       = errors.New("no date or time")
	ErrTruncated     = errors.New("value cut")
	ErrBadJSON       = errors.New("no JSON text")
	ErrJSONName      = errors.New("NULL as the name of a JSON member")
	ErrNull          = errors.New("NULL in a NOT NULL column")
	ErrNoDefault     = errors.New("column without a default")
	ErrBadDefault    = errors.New("default that the column cannot hold")
	ErrFewFields     = errors.New("too few fields in a line")
	ErrManyFields    = errors.New("too many fields in a line")
	ErrLocalInfile   = errors.New("LOAD DATA LOCAL is off")
	ErrColumnCount   = errors.New("column count differs from value count")
	ErrDuplicateKey  = errors.New("duplicate key")
	ErrReadOnly      = errors.New("read-only")
	ErrUnknownTable  = errors.New("unknown table")
	ErrUnknownColumn = errors.New("unknown column")
	ErrColumnExists  = errors.New("duplicate column")
	ErrCannotDrop    = errors.New("nothing to drop")
	ErrIndexExists   = errors.New("duplicate index name")
	ErrKeyColumn     = errors.New("key column does not exist")
	ErrAllColumns    = errors.New("no column would be left")
	ErrManyKeys      = errors.New("second primary key")
	ErrUnknownIndex  = fmt.Errorf("index %w", ErrNotFound) // an ErrNotFound, too
)
