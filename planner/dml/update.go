package dml

import (
	"context"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Update changes columns of rows. Input yields all columns of the table as they are, then the values for Columns, not assigned yet, then the row address.
type Update struct {
	Of      Target
	Columns []int // positions in the table
	Input   exec.Plan
}

var _ Statement = (*Update)(nil)

// Target implements Statement.
func (n *Update) Target() Target { return n.Of }

// Plan implements Statement.
func (n *Update) Plan() exec.Plan { return n.Input }

// Describe implements Statement.
func (n *Update) Describe() exec.Description {
	return exec.Description{Name: "Update", Props: []exec.Prop{
		{Key: "table", Value: n.Of.Table.Ref().String()}, {Key: "set", Value: "[" + strings.Join(n.names(), ", ") + "]"},
	}}
}

func (n *Update) names() []string {
	out := make([]string, len(n.Columns))
	for i, c := range n.Columns {
		out[i] = n.Of.Table.Schema().Field(c).Name
	}
	return out
}

// Run implements Statement. Rows whose values stay the same are found, but not changed; a row that a join yields several times is changed once, by the first.
func (n *Update) Run(ctx context.Context, env *Env, tx Tx) (Outcome, error) {
	warnings := env.countWarnings()
	c := &changes{env: env, a: env.assigner(), schema: n.Of.Table.Schema(), columns: n.Columns, seen: &rowset.Set{}, held: env.Exec.Budget.Reserve()}
	defer c.release()
	flush := func() error {
		if len(c.addrs) == 0 {
			return nil
		}
		_, err := tx.Update(ctx, c.addrs, &batches{of: c.done}, n.names())
		c.changed += uint64(len(c.addrs))
		c.forget()
		return err
	}
	err := drain(ctx, env.Exec, n.Input, func(batch arrow.RecordBatch) error {
		if err := c.add(batch); err != nil || c.bytes < updateBytes {
			return err
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Affected: c.changed, Info: matched(c.found, c.changed, *warnings)}
	if env.FoundRows {
		out.Affected = c.found
	}
	return out, nil
}

// updateBytes is about how many bytes of new rows are gathered before they are written: addresses stay valid while rows move.
const updateBytes = 64 << 20

// changes gathers new rows and the addresses of the old ones.
type changes struct {
	env     *Env
	a       *Assigner
	schema  *arrow.Schema
	columns []int

	seen           *rowset.Set
	seenBytes      int64
	held           *mem.Reservation
	found, changed uint64

	addrs []rowset.RowAddr
	done  []arrow.RecordBatch
	bytes int64 // of done
}

// forget lets go of rows that were written.
func (c *changes) forget() {
	for _, b := range c.done {
		b.Release()
	}
	c.done, c.addrs, c.bytes = nil, nil, 0
}

func (c *changes) release() {
	c.forget()
	c.held.Free()
}

func (c *changes) add(batch arrow.RecordBatch) error {
	col, err := addrColumn(batch)
	if err != nil {
		return err
	}
	addrs := col.Uint64Values()
	var sel []int32
	for i, addr := range addrs {
		if col.IsValid(i) && !c.seen.Contains(addr) { // NULL where an outer join found no row
			c.seen.Add(addr)
			sel = append(sel, int32(i))
		}
	}
	if now := c.seen.SizeBytes(); now > c.seenBytes {
		if err := c.held.Grow(now - c.seenBytes); err != nil {
			return err
		}
		c.seenBytes = now
	}
	c.found += uint64(len(sel))
	if len(sel) == 0 {
		return nil
	}
	if len(sel) < len(addrs) { // values that nobody gets are not checked either
		picked, err := expr.FilterBatch(&c.env.Exec.Expr, batch, sel)
		if err != nil {
			return err
		}
		defer picked.Release()
		return c.change(picked)
	}
	return c.change(batch)
}

// change assigns the values of rows, each of which is there once.
func (c *changes) change(batch arrow.RecordBatch) error {
	n := c.schema.NumFields()
	col, err := addrColumn(batch)
	if err != nil {
		return err
	}
	addrs := col.Uint64Values()
	cols := append([]arrow.Array(nil), batch.Columns()[:n]...)
	moved := make([]bool, len(addrs))
	for j, at := range c.columns {
		col, err := c.a.Column(batch.Column(n+j), c.schema.Field(at))
		if err != nil {
			return err
		}
		defer col.Release()
		for i := range addrs {
			moved[i] = moved[i] || !sameValue(cols[at], col, i)
		}
		cols[at] = col
	}
	c.a.Rows += int64(len(addrs))
	var keep []int32
	for i := range addrs {
		if moved[i] {
			keep = append(keep, int32(i))
			c.addrs = append(c.addrs, rowset.RowAddr(addrs[i]))
		}
	}
	if len(keep) == 0 {
		return nil
	}
	all := array.NewRecordBatch(c.schema, cols, batch.NumRows())
	defer all.Release()
	rows, err := expr.FilterBatch(&c.env.Exec.Expr, all, keep)
	if err != nil {
		return err
	}
	c.done = append(c.done, rows)
	for _, col := range rows.Columns() {
		c.bytes += int64(col.Data().SizeInBytes())
	}
	return nil
}

// sameValue compares row i of two arrays of one type.
func sameValue(a, b arrow.Array, i int) bool {
	if a.IsNull(i) || b.IsNull(i) {
		return a.IsNull(i) && b.IsNull(i)
	}
	return array.SliceEqual(a, int64(i), int64(i)+1, b, int64(i), int64(i)+1)
}

// batches yields batches that someone else owns.
type batches struct {
	of []arrow.RecordBatch
	at int
}

// Next implements write.Batches.
func (b *batches) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.at >= len(b.of) {
		return nil, io.EOF
	}
	b.at++
	b.of[b.at-1].Retain()
	return b.of[b.at-1], nil
}
