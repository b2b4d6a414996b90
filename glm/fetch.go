package glm

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

const (
	// fetchRowsMax is how many input rows are gathered before one Take, so that reads of neighbouring rows merge; fewer where rows are so wide that
	// the columns taken would be more than about fetchBytesMax.
	fetchRowsMax  = 64 << 10
	fetchBytesMax = 4 << 20
	// rowBytes is what a gathered row holds beside the batches: its address here and sorted by fragment, its places, and whether it has an address.
	rowBytes = 8 + 8 + 8 + 8 + 4 + 1
)

// Fetch reads Columns of Table for the rows whose addresses the input's AddrColumn carries, and appends them. It keeps the input's order and
// duplicates; a NULL address (an outer join without a match) gives NULLs.
type Fetch struct {
	Input      exec.Plan
	Table      exec.TableRef
	AddrColumn int // position in the input
	Columns    []string
	Reason     string // of Decision
	out        *arrow.Schema
}

var _ exec.Plan = (*Fetch)(nil)

// NewFetch computes the schema: the input's fields, then fields, which are those of f.Columns.
func NewFetch(f Fetch, fields []arrow.Field) (*Fetch, error) {
	in := f.Input.Schema()
	if f.AddrColumn < 0 || f.AddrColumn >= in.NumFields() || in.Field(f.AddrColumn).Type.ID() != arrow.UINT64 || len(fields) != len(f.Columns) {
		return nil, errs.New(errs.ErrInternal, "fetch from %s: column %d of %s is no row address", f.Table, f.AddrColumn, in)
	}
	f.out = arrow.NewSchema(append(append([]arrow.Field(nil), in.Fields()...), fields...), nil)
	return &f, nil
}

// Schema implements exec.Plan.
func (f *Fetch) Schema() *arrow.Schema { return f.out }

// Children implements exec.Plan.
func (f *Fetch) Children() []exec.Plan { return []exec.Plan{f.Input} }

// Describe implements exec.Plan.
func (f *Fetch) Describe() exec.Description {
	d := exec.Description{Name: "LateFetch", Props: []exec.Prop{{Key: "table", Value: f.Table.String()}, {Key: "columns", Value: fmt.Sprint(f.Columns)}}}
	if f.Reason != "" {
		d.Props = append(d.Props, exec.Prop{Key: "why", Value: f.Reason})
	}
	return d
}

// Open implements exec.Plan.
func (f *Fetch) Open(ctx context.Context, env *exec.Env) (exec.Operator, error) {
	t, err := env.Tables.OpenTable(ctx, f.Table)
	if err != nil {
		return nil, err
	}
	table, ok := t.(exec.Addressable)
	if !ok {
		return nil, errs.New(errs.ErrInternal, "table %s has no row addresses", f.Table)
	}
	in, err := exec.Open(ctx, env, f.Input)
	if err != nil {
		return nil, err
	}
	return &fetch{plan: f, env: env, table: table, in: in, held: env.Budget.Reserve(), stats: env.Stats.Node(f), rowsMax: f.rowsMax(ctx, table)}, nil
}

// rowsMax is how many rows are taken at a time.
func (f *Fetch) rowsMax(ctx context.Context, table exec.Table) int64 {
	rows := max(table.Rows(), 1)
	width := int64(1)
	for _, c := range f.Columns {
		if n := table.ColumnBytes(ctx, c); n > 0 {
			width += n / rows
		}
	}
	return min(max(fetchBytesMax/width, 1), fetchRowsMax)
}

type fetch struct {
	plan  *Fetch
	env   *exec.Env
	table exec.Addressable
	in    exec.Operator
	held  *mem.Reservation
	stats *exec.NodeStats
	eof   bool

	rowsMax int64
	rest    arrow.RecordBatch   // of the last input batch, whose rows were too many
	waiting []arrow.RecordBatch // complete output batches
}

func (o *fetch) Schema() *arrow.Schema { return o.plan.out }

func (o *fetch) Close() error {
	for _, b := range o.waiting {
		b.Release()
	}
	o.waiting = nil
	if o.rest != nil {
		o.rest.Release()
		o.rest = nil
	}
	o.held.Free()
	return o.in.Close()
}

func (o *fetch) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for len(o.waiting) == 0 {
		if o.eof {
			return nil, io.EOF
		}
		if err := o.fill(ctx); err != nil {
			return nil, err
		}
	}
	b := o.waiting[0]
	o.waiting = o.waiting[1:]
	return b, nil
}

// fill gathers input batches, takes the columns of all their rows at once, and cuts the result to the input's batches.
func (o *fetch) fill(ctx context.Context) error {
	var batches []arrow.RecordBatch
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	rows := int64(0)
	for rows < o.rowsMax {
		b, err := o.next(ctx, o.rowsMax-rows)
		if errors.Is(err, io.EOF) {
			o.eof = true
			break
		}
		if err != nil {
			return err
		}
		batches = append(batches, b)
		rows += b.NumRows()
	}
	if rows == 0 {
		return nil
	}
	if err := o.held.Resize(rows * rowBytes); err != nil {
		return err
	}
	addrs, present, err := o.addresses(batches, int(rows))
	if err != nil {
		return err
	}
	got, err := o.table.Take(ctx, addrs, o.plan.Columns, o.env.Alloc)
	if err != nil {
		return fmt.Errorf("late fetch from %s: %w", o.plan.Table, err)
	}
	defer got.Release()
	o.stats.Add("fetched_rows", int64(len(addrs)))
	cols, err := spread(o.env, got, present)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	at := int64(0)
	for _, b := range batches {
		o.waiting = append(o.waiting, appendColumns(o.plan.out, b, cols, at))
		at += b.NumRows()
	}
	return nil
}

// next returns the next input rows, at most n.
func (o *fetch) next(ctx context.Context, n int64) (arrow.RecordBatch, error) {
	b := o.rest
	o.rest = nil
	if b == nil {
		var err error
		if b, err = o.in.Next(ctx); err != nil {
			return nil, err
		}
	}
	if b.NumRows() <= n {
		return b, nil
	}
	defer b.Release()
	o.rest = b.NewSlice(n, b.NumRows())
	return b.NewSlice(0, n), nil
}

// addresses returns the addresses of the rows that have one; present is nil where all have.
func (o *fetch) addresses(batches []arrow.RecordBatch, rows int) ([]rowset.RowAddr, []bool, error) {
	addrs := make([]rowset.RowAddr, 0, rows)
	present := make([]bool, 0, rows)
	for _, b := range batches {
		col, ok := b.Column(o.plan.AddrColumn).(*array.Uint64)
		if !ok {
			return nil, nil, errs.New(errs.ErrInternal, "row addresses are %s", b.Column(o.plan.AddrColumn).DataType())
		}
		for i := range col.Len() {
			present = append(present, col.IsValid(i))
			if col.IsValid(i) {
				addrs = append(addrs, rowset.RowAddr(col.Value(i)))
			}
		}
	}
	if len(addrs) == rows {
		present = nil
	}
	return addrs, present, nil
}

func appendColumns(schema *arrow.Schema, b arrow.RecordBatch, cols []arrow.Array, at int64) arrow.RecordBatch {
	all := append([]arrow.Array(nil), b.Columns()...)
	for _, c := range cols {
		s := array.NewSlice(c, at, at+b.NumRows())
		defer s.Release()
		all = append(all, s)
	}
	return array.NewRecordBatch(schema, all, b.NumRows())
}
