package dml

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/write"
)

// Row is one row of VALUES, over all columns of the table: constants, or where the text holds more than these a plan of one row.
type Row struct {
	Cells    []*expr.Literal
	Computed exec.Plan
}

// Source gives the rows of an INSERT, over all columns of the table in order, values not assigned yet.
type Source struct {
	Rows []Row     // VALUES
	Plan exec.Plan // SELECT; nil = Rows
	Load Reader    // LOAD DATA; nil = none
	// NoDefault are columns that the statement does not name, that are NOT NULL and have no default.
	NoDefault []string
}

// Reader yields batches of the table's columns from elsewhere (LOAD DATA), values not assigned yet.
type Reader interface {
	Next(ctx context.Context) (arrow.RecordBatch, error)
	Close() error
}

// Insert adds rows.
type Insert struct {
	Into     Target
	Source   Source
	LoadData bool // the outcome is reported as LOAD DATA does
}

var _ Statement = (*Insert)(nil)

// Target implements Statement.
func (n *Insert) Target() Target { return n.Into }

// Plan implements Statement.
func (n *Insert) Plan() exec.Plan { return n.Source.Plan }

// Describe implements Statement.
func (n *Insert) Describe() exec.Description { return n.Source.describe("Insert", n.Into) }

func (s *Source) describe(name string, into Target) exec.Description {
	d := exec.Description{Name: name, Props: []exec.Prop{{Key: "table", Value: into.Table.Ref().String()}}}
	if s.Plan == nil && s.Load == nil {
		d.Props = append(d.Props, exec.Prop{Key: "rows", Value: fmt.Sprint(len(s.Rows))})
	}
	return d
}

// Run implements Statement.
func (n *Insert) Run(ctx context.Context, env *Env, tx Tx) (Outcome, error) {
	warnings := env.countWarnings()
	rows, err := n.Source.Open(ctx, env, n.Into.Table.Schema())
	if err != nil {
		return Outcome{}, err
	}
	count, err := tx.Append(ctx, []write.Batches{rows})
	if err = errors.Join(err, rows.Close()); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Affected: count}
	switch {
	case n.LoadData:
		out.Info = loaded(count, 0, 0, *warnings)
	case n.Source.Plan != nil || len(n.Source.Rows) > 1:
		out.Info = records(count, 0, *warnings)
	}
	return out, nil
}

// countWarnings counts the warnings from now on.
func (e *Env) countWarnings() *uint64 {
	n, warn := new(uint64), e.Warn
	e.Warn = func(err error) {
		*n++
		if warn != nil {
			warn(err)
		}
	}
	return n
}

// Open starts the source; its batches are assigned to the table's columns. The caller closes it.
func (s *Source) Open(ctx context.Context, env *Env, columns *arrow.Schema) (*Assigned, error) {
	out := &Assigned{env: env, a: env.assigner(), schema: columns}
	for _, name := range s.NoDefault {
		if err := out.a.trouble(errs.New(errs.ErrNoDefault, "Field '%s' doesn't have a default value", name)); err != nil {
			return nil, err
		}
		i := columns.FieldIndices(name)
		out.implicit = append(out.implicit, i...)
	}
	switch {
	case s.Load != nil:
		out.in = s.Load
	case s.Plan != nil:
		op, err := exec.Open(ctx, env.Exec, s.Plan)
		if err != nil {
			return nil, err
		}
		out.in = op
	default:
		out.values = &values{env: env, rows: s.Rows, a: out.a, schema: columns}
	}
	return out, nil
}

// Assigned yields batches in the table's types.
type Assigned struct {
	env      *Env
	a        *Assigner
	schema   *arrow.Schema
	in       Reader
	values   *values
	implicit []int // columns that get the implicit default of their type
}

var _ write.Batches = (*Assigned)(nil)

// Next implements write.Batches.
func (s *Assigned) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.values != nil {
		return s.values.next(ctx)
	}
	batch, err := s.in.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	if int(batch.NumCols()) != s.schema.NumFields() {
		return nil, errs.New(errs.ErrInternal, "a source of %d columns for a table of %d", batch.NumCols(), s.schema.NumFields())
	}
	out, err := s.a.batch(batch.Columns(), s.schema, batch.NumRows(), s.implicit)
	s.a.Rows += batch.NumRows()
	return out, err
}

// Count is how many rows were yielded so far.
func (s *Assigned) Count() uint64 { return uint64(s.a.Rows) }

// Close ends the source.
func (s *Assigned) Close() error {
	if s.in == nil {
		return nil
	}
	return s.in.Close()
}

// batch assigns columns. implicit are those that get their type's implicit default instead.
func (a *Assigner) batch(src []arrow.Array, schema *arrow.Schema, rows int64, implicit []int) (arrow.RecordBatch, error) {
	out := make([]arrow.Array, 0, len(src))
	defer func() {
		for _, arr := range out {
			arr.Release()
		}
	}()
	for i, arr := range src {
		f := schema.Field(i)
		var col arrow.Array
		var err error
		if contains(implicit, i) {
			col = emptyValues(a, f.Type, int(rows))
		} else {
			col, err = a.Column(arr, f)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, col)
	}
	return array.NewRecordBatch(schema, out, rows), nil
}

func contains(list []int, i int) bool {
	for _, x := range list {
		if x == i {
			return true
		}
	}
	return false
}

func emptyValues(a *Assigner, t arrow.DataType, rows int) arrow.Array {
	b := array.NewBuilder(a.Alloc, t)
	defer b.Release()
	b.AppendEmptyValues(rows)
	return b.NewArray()
}

// values makes batches of VALUES.
type values struct {
	env    *Env
	rows   []Row
	a      *Assigner
	schema *arrow.Schema
	at     int
}

func (v *values) next(ctx context.Context) (arrow.RecordBatch, error) {
	if v.at >= len(v.rows) {
		return nil, io.EOF
	}
	if c := v.rows[v.at].Computed; c != nil {
		v.at++
		return v.computed(ctx, c)
	}
	b := array.NewRecordBuilder(v.a.Alloc, v.schema)
	defer b.Release()
	stores := make([]put, v.schema.NumFields())
	for i, f := range v.schema.Fields() {
		store, err := storeOf(b.Field(i), f, v.a.Location)
		if err != nil {
			return nil, err
		}
		stores[i] = store
	}
	from := v.at
	for v.at < len(v.rows) && v.at-from < v.env.Exec.BatchRows && v.rows[v.at].Computed == nil {
		for i, lit := range v.rows[v.at].Cells {
			f := v.schema.Field(i)
			if lit == nil {
				b.Field(i).AppendEmptyValue() // no default: reported before
				continue
			}
			c, err := scalarCell(lit.Value)
			if err != nil {
				return nil, err
			}
			if err := v.a.one(b.Field(i), f, stores[i], c, 0); err != nil {
				return nil, err
			}
		}
		v.a.Rows++
		v.at++
	}
	return b.NewRecordBatch(), nil
}

// computed runs the plan of one row.
func (v *values) computed(ctx context.Context, p exec.Plan) (out arrow.RecordBatch, err error) {
	err = drain(ctx, v.env.Exec, p, func(batch arrow.RecordBatch) error {
		if out != nil || batch.NumRows() != 1 {
			return errs.New(errs.ErrInternal, "a row of VALUES became several")
		}
		out, err = v.a.batch(batch.Columns(), v.schema, 1, nil)
		return err
	})
	if err == nil && out == nil {
		err = errs.New(errs.ErrInternal, "a row of VALUES became none")
	}
	v.a.Rows++
	return out, err
}

// CheckValue assigns the only value that a plan yields to a column, and fails where the column cannot hold it.
func CheckValue(ctx context.Context, env *Env, p exec.Plan, f arrow.Field) error {
	a := env.assigner()
	a.Lenient = false
	return drain(ctx, env.Exec, p, func(batch arrow.RecordBatch) error {
		if batch.NumCols() != 1 {
			return errs.New(errs.ErrInternal, "a value of %d columns", batch.NumCols())
		}
		col, err := a.Column(batch.Column(0), f)
		if err == nil {
			col.Release()
		}
		return err
	})
}

// Assign assigns values to a column, for ALTER TABLE. The caller releases the result.
func Assign(env *Env, values arrow.Array, f arrow.Field) (arrow.Array, error) {
	return env.assigner().Column(values, f)
}

// Each reads a column of a table and hands its arrays to use, which must not keep them.
func Each(ctx context.Context, env *exec.Env, table exec.Table, column string, use func(arrow.Array) error) (err error) {
	scan, err := table.Scan(ctx, exec.ScanRequest{Columns: []string{column}, BatchRows: env.BatchRows, Alloc: env.Alloc})
	if err != nil {
		return err
	}
	reader := scan.Reader()
	defer func() { err = errors.Join(err, reader.Close()) }()
	for {
		batch, err := reader.Next(ctx)
		if isEnd(err) {
			return nil
		}
		if err != nil {
			return err
		}
		err = use(batch.Column(0))
		batch.Release()
		if err != nil {
			return err
		}
	}
}

// Texts runs a plan of one row and returns its values as text, "" for NULL.
func Texts(ctx context.Context, env *exec.Env, p exec.Plan) ([]string, error) {
	var out []string
	err := drain(ctx, env, p, func(batch arrow.RecordBatch) error {
		for _, col := range batch.Columns() {
			read, err := readerOf(col)
			if err != nil {
				return err
			}
			text := ""
			if c := read(0); c.kind != kindNull {
				text = strings.Clone(c.text())
			}
			out = append(out, text)
		}
		return nil
	})
	return out, err
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// quoteKey prints the values of a key as MySQL does in messages: joined by dashes.
func quoteKey(parts []string) string { return "'" + strings.Join(parts, "-") + "'" }
