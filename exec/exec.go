// Package exec runs plans over Arrow batches.
//
// A Plan is an immutable description of work; opening it gives one or more Operators, which pull batches. One plan runs on
// several goroutines like this: a pipeline (scan, filter, project, probe side of a join) is opened once per worker, the scan hands out
// morsels from a shared cursor, and the breaker above (aggregate, sort, top-n, join build) merges what its workers gathered.
//
// I1: the operators of one OpenWorkers call together yield every row of the plan exactly once.
// I2: memory that grows with the input is reserved before it is taken.
// I3: a batch has 1 to Env.BatchRows rows and belongs to who received it.
// I4: the columns of a batch have the types of the plan's schema; only who asked for it (codes.go) may get a column of text as codes.
//
// Start reading at Plan, then scan.go, then any operator: one file each.
package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
)

// DefaultBatchRows is how many rows a batch has at most unless Env says otherwise.
const DefaultBatchRows = 8192

// Env is what one statement's execution shares. It is safe for concurrent use after it was made.
type Env struct {
	Alloc     memory.Allocator // counts against Budget; nil = memory.DefaultAllocator
	Budget    *mem.Budget      // of the query; nil = unlimited
	BatchRows int              // 0 = DefaultBatchRows
	Workers   int              // goroutines per pipeline; 0 = 1
	Expr      expr.Env         // time zone, statement time
	Tables    TableOpener      // finds the tables that plans name
	Stats     *Stats           // EXPLAIN ANALYZE; nil = not counted
	Warn      func(Warning)    // takes what the user should know, from any goroutine; nil = nobody asks

	keyFilters []KeyFilter  // see WithKeyFilter
	codes      []planColumn // see withCodes
}

// WithDefaults returns a copy with zero fields set.
func (e Env) WithDefaults() *Env {
	if e.Alloc == nil {
		e.Alloc = memory.DefaultAllocator
	}
	if e.BatchRows <= 0 {
		e.BatchRows = DefaultBatchRows
	}
	if e.Workers <= 0 {
		e.Workers = 1
	}
	if e.Expr.Location == nil {
		e.Expr.Location = time.UTC
	}
	e.Expr.Alloc, e.Expr.Budget = e.Alloc, e.Budget
	return &e
}

// Warning is something that the user should know of a statement.
type Warning struct {
	About string // what it is about: of several warnings about one thing the first counts
	Text  string
	Code  int // MySQL's number; 0 = one of our own
}

// warn passes warnings on.
func (e *Env) warn(ws ...Warning) {
	for _, w := range ws {
		if e.Warn != nil {
			e.Warn(w)
		}
	}
}

// FaultWarnings says which indices of a table cannot be read as a whole: one warning an index.
func FaultWarnings(table TableRef, faults []IndexFault) []Warning {
	var out []Warning
	for i, f := range faults {
		if slices.ContainsFunc(faults[:i], func(e IndexFault) bool { return e.Index == f.Index }) {
			continue
		}
		more := ""
		if n := countSegments(faults, f.Index); n > 1 {
			more = fmt.Sprintf(" (and %d more segments)", n-1)
		}
		out = append(out, Warning{
			About: "index " + f.Index + " of " + table.String(),
			Text:  fmt.Sprintf("table %s.%s: rows that an index covers are scanned: %s%s; build the index again", table.Source, table.Table, f, more),
		})
	}
	return out
}

func countSegments(faults []IndexFault, name string) int {
	seen := make(map[string]bool)
	for _, f := range faults {
		if f.Index == name {
			seen[f.Segment] = true
		}
	}
	return len(seen)
}

// Plan is an immutable description of work, fit to print and to ship: it names a source, a table and a version, never an open file.
type Plan interface {
	// Schema has one field per output column; names are for people, columns are found by position.
	Schema() *arrow.Schema
	Children() []Plan
	Describe() Description
	// Open starts the plan as one operator. Errors of kinds ErrNotFound, ErrCorrupt, ErrIO, ErrMemoryLimit, ErrUnsupported.
	Open(ctx context.Context, env *Env) (Operator, error)
}

// Parallel is a Plan that several goroutines can run together.
type Parallel interface {
	Plan
	// OpenWorkers returns 1 to n operators (I1). The caller runs each in a goroutine of its own and closes all of them.
	OpenWorkers(ctx context.Context, env *Env, n int) ([]Operator, error)
}

// OpenWorkers opens p on up to n workers, on one where p cannot run on several.
func OpenWorkers(ctx context.Context, env *Env, p Plan, n int) ([]Operator, error) {
	pp, ok := p.(Parallel)
	if !ok || n <= 1 {
		op, err := Open(ctx, env, p)
		if err != nil {
			return nil, err
		}
		return []Operator{op}, nil
	}
	ops, err := pp.OpenWorkers(ctx, env, n)
	if err != nil {
		return nil, err
	}
	for i, op := range ops {
		ops[i] = count(env, p, op)
	}
	return ops, nil
}

// Operator is a running Plan. It is used by one goroutine at a time.
type Operator interface {
	Schema() *arrow.Schema
	// Next returns a batch of 1 to Env.BatchRows rows, or io.EOF. The caller owns the batch and releases it.
	// After io.EOF or an error only Close may follow.
	Next(ctx context.Context) (arrow.RecordBatch, error)
	// Close is idempotent; it closes the inputs, waits for goroutines and frees reservations.
	Close() error
}

// Description is one line of EXPLAIN.
type Description struct {
	Name  string
	Props []Prop
}

// Prop is a key and its value, printed as key=value.
type Prop struct{ Key, Value string }

func (d Description) String() string {
	var b strings.Builder
	b.WriteString(d.Name)
	for i, p := range d.Props {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(p.Key)
		b.WriteByte('=')
		b.WriteString(p.Value)
	}
	return b.String()
}
