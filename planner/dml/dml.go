// Package dml runs the statements that change rows: INSERT, REPLACE, UPDATE, DELETE and TRUNCATE. Their rows come from plans of package planner as Arrow
// batches, indices for WHERE included, are assigned to the columns by MySQL's rules (assign.go), and go to package write; nothing runs row by row. It knows
// no MySQL library.
//
// I1: a statement that fails has changed nothing: what it staged is rolled back by whoever began the Tx.
// I2: a value that a column cannot hold is an error, or, where the statement is lenient, the nearest value and a warning; never silently another one.
// I3: memory that grows with the statement (keys, row addresses) is reserved before it is taken.
//
// Start reading at Statement, then insert.go, change.go and keyed.go.
package dml

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

// Target is the table that a statement changes, as it was when the statement was bound.
type Target struct {
	Catalog string
	Table   exec.Table
}

// Name is the table's own name.
func (t Target) Name() string { return t.Table.Ref().Table }

// Statement is a bound and planned statement that changes rows of one table.
type Statement interface {
	Target() Target
	// Run changes rows through tx. After an error the caller rolls back.
	Run(ctx context.Context, env *Env, tx Tx) (Outcome, error)
	Describe() exec.Description
	Plan() exec.Plan // where the rows come from; nil = from the statement's text
}

// Tx is where changes go: *write.Tx.
type Tx interface {
	Snapshot(ctx context.Context) (*storage.Snapshot, error)
	Append(ctx context.Context, parts []write.Batches) (rows uint64, err error)
	Delete(ctx context.Context, rows *rowset.Set) (n uint64, err error)
	// Update puts the rows of with in place of those at the addresses, in their order; changed are the columns that differ.
	Update(ctx context.Context, rows []rowset.RowAddr, with write.Batches, changed []string) (n uint64, err error)
	Replace(ctx context.Context, parts []write.Batches, columns *arrow.Schema) error
	// Watch has the commit look at the columns of rows that others added since: where clash says yes it fails.
	Watch(columns []string, sizeBytes int64, clash func(rows arrow.RecordBatch) (bool, error)) error
}

// Env is what running a statement depends on.
type Env struct {
	Exec      *exec.Env
	Lenient   bool            // IGNORE, or a sql_mode that is not strict
	FoundRows bool            // affected rows of UPDATE are those found (CLIENT_FOUND_ROWS), not those changed
	Warn      func(err error) // nil = nobody listens
	// View shows a version to plans, staged rows included: what the session sees.
	View func(snap *storage.Snapshot) exec.Table
	// Pin lets plans of the statement find a table by its ref.
	Pin func(t exec.Table)
}

func (e *Env) assigner() *Assigner {
	return &Assigner{Alloc: e.Exec.Alloc, Location: e.Exec.Expr.Location, Lenient: e.Lenient, Warn: e.Warn}
}

// Outcome is what a statement did, in MySQL's terms.
type Outcome struct {
	Affected uint64
	Info     string // the text of OK packets: "Records: 3  Duplicates: 0  Warnings: 0"; "" = none
}

// AsPlan shows a statement as a plan, for EXPLAIN. It cannot be opened.
func AsPlan(s Statement) exec.Plan { return &shown{s} }

// shown is a statement in EXPLAIN.
type shown struct{ Statement }

var _ exec.Plan = (*shown)(nil)

// Schema implements exec.Plan.
func (s *shown) Schema() *arrow.Schema { return arrow.NewSchema(nil, nil) }

// Children implements exec.Plan.
func (s *shown) Children() []exec.Plan {
	if s.Plan() == nil {
		return nil
	}
	return []exec.Plan{s.Plan()}
}

// Open implements exec.Plan.
func (s *shown) Open(context.Context, *exec.Env) (exec.Operator, error) {
	return nil, errs.New(errs.ErrUnsupported, "EXPLAIN ANALYZE runs SELECT alone: it would change rows")
}

// drain runs a plan on one goroutine and hands every batch to use, which must not keep it.
func drain(ctx context.Context, env *exec.Env, p exec.Plan, use func(arrow.RecordBatch) error) (err error) {
	op, err := exec.Open(ctx, env, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, err := op.Next(ctx)
		if isEnd(err) {
			return nil
		}
		if err != nil {
			return err
		}
		err = use(batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
}

func loaded(n, deleted, skipped, warnings uint64) string {
	return fmt.Sprintf("Records: %d  Deleted: %d  Skipped: %d  Warnings: %d", n, deleted, skipped, warnings)
}

func records(n, duplicates, warnings uint64) string {
	return fmt.Sprintf("Records: %d  Duplicates: %d  Warnings: %d", n, duplicates, warnings)
}
