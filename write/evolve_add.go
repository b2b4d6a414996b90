package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/storage"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/pb/tablepb"
	"github.com/lakesql/lakesql/storage/schema"
)

// ColumnValues computes the values of new columns, batch by batch, from several goroutines at a time.
type ColumnValues struct {
	Reads []string // the columns that Compute wants, in this order; may be empty
	// Compute returns one array for each new column, of the batch's length. The caller releases them, and owns the batch.
	Compute func(ctx context.Context, rows arrow.RecordBatch) ([]arrow.Array, error)
}

// AddColumns adds columns at the end. values nil makes them NULL everywhere, without writing a file. Errors: ErrExists for a name that is taken, ErrInvalid for a
// column that may not be NULL and has no values, ErrUnsupported for a type or file version that is not written, ErrConflict, ErrIO, ErrDiskFull,
// and those of values.
func AddColumns(ctx context.Context, table *storage.Table, columns []arrow.Field, values *ColumnValues, opts EvolveOptions) (Committed, error) {
	e, err := evolve(ctx, table, opts)
	if err != nil {
		return Committed{}, err
	}
	if len(columns) == 0 {
		return Committed{}, errs.New(errs.ErrInvalid, "no column to add")
	}
	for _, c := range columns {
		if err := checkNewName(e.snap.Schema(), c.Name); err != nil {
			return Committed{}, err
		}
		if values == nil && !c.Nullable && e.snap.Rows() > 0 {
			return Committed{}, errs.New(errs.ErrInvalid, "column %q may not be NULL, so it needs a value in the rows that exist", c.Name)
		}
	}
	fields, err := newFields(columns, nextFieldID(e.at.Proto))
	if err != nil {
		return Committed{}, err
	}
	return e.merge(ctx, &mergeOp{base: e.at.Proto, fields: fields}, values)
}

// retype gives a column new values under another type, and thereby another id.
func (e *evolution) retype(
	ctx context.Context, f *schema.Field, to arrow.Field, convert func(context.Context, arrow.Array) (arrow.Array, error),
) (Committed, error) {
	if err := e.mayLose(f); err != nil {
		return Committed{}, err
	}
	fields, err := newFields([]arrow.Field{to}, nextFieldID(e.at.Proto))
	if err != nil {
		return Committed{}, err
	}
	values := &ColumnValues{Reads: []string{f.Name}, Compute: func(ctx context.Context, rows arrow.RecordBatch) ([]arrow.Array, error) {
		out, err := convert(ctx, rows.Column(0))
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		return []arrow.Array{out}, nil
	}}
	op := &mergeOp{base: e.at.Proto, fields: fields, replaces: map[int32]int32{f.ID: fields.Fields[0].ID}}
	return e.merge(ctx, op, values)
}

// merge writes the values and commits.
func (e *evolution) merge(ctx context.Context, op *mergeOp, values *ColumnValues) (Committed, error) {
	if values == nil {
		return e.target.commit(ctx, e.at, op, e.opts.Commit)
	}
	set, written, err := e.writeValues(ctx, op, values)
	if err != nil {
		if set != nil {
			err = errors.Join(err, set.remove(ctx, written))
		}
		return Committed{}, err
	}
	done, err := e.target.commit(ctx, e.at, op, e.opts.Commit)
	if err != nil {
		return Committed{}, set.takeBack(ctx, written, err)
	}
	return done, nil
}

// writeValues writes the values of the operation's fields, a file for each fragment. After an error the files that it returns are to be removed.
func (e *evolution) writeValues(ctx context.Context, op *mergeOp, values *ColumnValues) (*fileSet, []*tablepb.DataFragment, error) {
	v, err := dataVersion(e.snap.FormatVersion())
	if err != nil {
		return nil, nil, err
	}
	if err := file.CheckWritable(op.fields, v); err != nil {
		return nil, nil, err
	}
	set := &fileSet{store: e.target.Store, dir: e.target.Dir, schema: op.fields, version: v, opts: e.opts.Rows.withDefaults()}
	op.hasFiles, op.files = true, make(map[uint64]*tablepb.DataFile)
	var mu sync.Mutex
	var written []*tablepb.DataFragment
	group, groupCtx := spawn.WithContext(ctx, set.opts.Parallel)
	for _, f := range e.snap.Fragments() {
		group.Go(fmt.Sprintf("fragment %d", f.ID()), func() error {
			out, err := e.fill(groupCtx, set, f, values)
			if err != nil {
				return fmt.Errorf("fragment %d: %w", f.ID(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			written = append(written, out)
			op.files[uint64(f.ID())] = out.GetFiles()[0]
			return nil
		})
	}
	err = group.Wait()
	return set, written, err
}

// fill writes the new columns of one fragment.
func (e *evolution) fill(ctx context.Context, set *fileSet, f *storage.Fragment, values *ColumnValues) (*tablepb.DataFragment, error) {
	scan, err := e.snap.Scan(ctx, storage.ScanOptions{
		Columns: append([]string{}, values.Reads...), Fragments: []uint32{f.ID()}, Alloc: e.opts.alloc(ctx), WithRowAddr: true,
	})
	if err != nil {
		return nil, err
	}
	out, err := set.newFragment(ctx)
	if err != nil {
		return nil, err
	}
	w := &columnFiller{out: out, values: values, fields: set.schema, alloc: e.opts.alloc(ctx)}
	defer w.release()
	for r := scan.Reader(); ; {
		batch, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.add(ctx, batch)
			batch.Release()
		}
		if err != nil {
			return nil, errors.Join(err, r.Close(), out.w.Abort())
		}
	}
	if err := w.pad(ctx, f.PhysicalRows()); err != nil {
		return nil, errors.Join(err, out.w.Abort())
	}
	done, err := out.finish(ctx)
	if err != nil {
		return nil, errors.Join(err, out.w.Abort())
	}
	if done.GetPhysicalRows() != f.PhysicalRows() {
		err = errors.Join(errs.New(errs.ErrInternal, "%d values for %d rows", done.GetPhysicalRows(), f.PhysicalRows()), set.remove(ctx, []*tablepb.DataFragment{done}))
	}
	return done, err
}

// columnFiller writes values at the places of their rows. Deleted rows have none: they get that of a neighbour, which is legal in every column.
type columnFiller struct {
	out    *fragmentWriter
	values *ColumnValues
	fields *schema.Schema
	alloc  memory.Allocator
	next   uint64        // offset of the next row to write
	last   []arrow.Array // values of the last row
}

func (w *columnFiller) release() {
	for _, a := range w.last {
		a.Release()
	}
	w.last = nil
}

// add computes and writes the values of a batch, whose last column is the rows' addresses.
func (w *columnFiller) add(ctx context.Context, batch arrow.RecordBatch) error {
	n := int(batch.NumCols()) - 1
	addrs, ok := batch.Column(n).(*array.Uint64)
	if !ok {
		return errs.New(errs.ErrInternal, "row addresses of type %s", batch.Column(n).DataType())
	}
	rows := array.NewRecordBatch(arrow.NewSchema(batch.Schema().Fields()[:n], nil), batch.Columns()[:n], batch.NumRows())
	defer rows.Release()
	made, err := w.values.Compute(ctx, rows)
	if err != nil {
		return err
	}
	defer func() {
		for _, a := range made {
			a.Release()
		}
	}()
	if err := w.check(made, int(batch.NumRows())); err != nil {
		return err
	}
	from := make([]int, 0, batch.NumRows())
	for i, a := range addrs.Uint64Values() {
		for ; w.next <= uint64(uint32(a)); w.next++ {
			from = append(from, i)
		}
	}
	if err := w.write(ctx, made, from); err != nil {
		return err
	}
	w.release()
	for _, a := range made {
		// A copy: a slice would keep the whole batch.
		one, err := storage.Gather(a, []int{a.Len() - 1}, w.alloc)
		if err != nil {
			return err
		}
		w.last = append(w.last, one)
	}
	return nil
}

// check holds what was computed against what was asked for.
func (w *columnFiller) check(made []arrow.Array, rows int) error {
	if len(made) != len(w.fields.Fields) {
		return errs.New(errs.ErrInternal, "%d new columns computed, %d wanted", len(made), len(w.fields.Fields))
	}
	for i, f := range w.fields.Fields {
		if made[i].Len() != rows || !arrow.TypeEqual(made[i].DataType(), f.Type) {
			return errs.New(errs.ErrInternal, "column %q: %d values of type %s computed, %d of type %s wanted", f.Name, made[i].Len(), made[i].DataType(), rows, f.Type)
		}
		if !f.Nullable && made[i].NullN() > 0 {
			return errs.New(errs.ErrInvalid, "column %q may not be NULL, but its value is NULL for a row that exists", f.Name)
		}
	}
	return nil
}

// padRows bounds how many places are filled at a time.
const padRows = 8192

// pad fills the places behind the last live row.
func (w *columnFiller) pad(ctx context.Context, rows uint64) error {
	for w.next < rows {
		n := min(rows-w.next, padRows)
		if err := w.write(ctx, w.last, make([]int, n)); err != nil {
			return err
		}
		w.next += n
	}
	return nil
}

// write writes the values at from, in that order.
func (w *columnFiller) write(ctx context.Context, values []arrow.Array, from []int) error {
	if len(values) == 0 {
		return errs.New(errs.ErrInternal, "a fragment without a live row")
	}
	picked := make([]arrow.Array, 0, len(values))
	defer func() {
		for _, a := range picked {
			a.Release()
		}
	}()
	for _, a := range values {
		if len(from) == a.Len() && from[0] == 0 && from[len(from)-1] == a.Len()-1 {
			a.Retain()
			picked = append(picked, a)
			continue
		}
		p, err := storage.Gather(a, from, w.alloc)
		if err != nil {
			return err
		}
		picked = append(picked, p)
	}
	batch := array.NewRecordBatch(w.fields.Arrow(), picked, int64(len(from)))
	defer batch.Release()
	return w.out.w.Write(ctx, batch)
}
