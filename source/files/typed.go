package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/planner/coltype"
)

// typedSource yields batches of some columns of a file that has types of its own.
type typedSource interface {
	next() (arrow.RecordBatch, error) // io.EOF at the end; the caller releases the batch
	close()
}

// typedPlan says how the columns of such a file become those of a table.
type typedPlan struct {
	file    File
	columns *arrow.Schema
	source  []int // by column of the table, -1 = none
	casts   []*caster
	limits  []coltype.Limits
	opts    Options
}

// newTypedPlan matches a file's columns with those of a table.
func newTypedPlan(f File, have, columns *arrow.Schema, opts Options) (*typedPlan, error) {
	p := &typedPlan{file: f, columns: columns, opts: opts, casts: make([]*caster, columns.NumFields())}
	names := make([]string, have.NumFields())
	for i, f := range have.Fields() {
		names[i] = f.Name
	}
	var err error
	if p.source, err = match(names, columns, opts, false); err != nil {
		return nil, err
	}
	for i, c := range columns.Fields() {
		p.limits = append(p.limits, coltype.LimitsOf(c))
		if at := p.source[i]; at >= 0 {
			from := have.Field(at).Type
			to := builtField(c)
			if isJSONField(c) {
				to = c
			}
			if p.casts[i], err = newCaster(from, readType(from, to), opts.Alloc); err != nil {
				return nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
	}
	return p, nil
}

// part is some columns of some rows.
type part struct {
	cols []arrow.Array
	rows int
	bad  []badValue
	err  error
}

type badValue struct {
	row, column int
	value       []byte
	err         error
}

func (p part) release() { releaseAll(p.cols) }

// cast makes the columns of a batch; have says which column of the batch is which of the file.
func (p *typedPlan) cast(ctx context.Context, b arrow.RecordBatch, have, wanted []int) (out part) {
	out = part{rows: int(b.NumRows()), cols: make([]arrow.Array, len(wanted))}
	defer func() {
		if out.err != nil {
			out.release()
			out.cols = nil
		}
	}()
	for i, at := range wanted {
		f := p.columns.Field(at)
		arr := b.Column(slices.Index(have, p.source[at]))
		note := func(row int, value []byte, err error) {
			out.bad = append(out.bad, badValue{row: row, column: at, value: value, err: err})
		}
		made, err := p.casts[at].rows(ctx, arr, 0, func(row int, err error) { note(row, []byte(arr.ValueStr(row)), err) })
		if err != nil {
			out.err = fmt.Errorf("column %s: %w", f.Name, err)
			return out
		}
		out.cols[i] = made
		if !f.Nullable && arr.NullN() > 0 {
			for row := range arr.Len() {
				if arr.IsNull(row) {
					note(row, nil, errs.New(errs.ErrNull, "NULL where the column is NOT NULL"))
				}
			}
		}
		fin := finisher{schema: arrow.NewSchema([]arrow.Field{f}, nil), limits: p.limits[at : at+1], alloc: p.opts.Alloc}
		if err := fin.finish(out.cols[i:i+1], 0, note); err != nil {
			out.err = err
			return out
		}
	}
	return out
}

// feed is a goroutine that reads and casts some columns.
type feed struct {
	wanted []int // columns of the table
	out    chan part
	now    part
	at     int // rows of now that were taken
}

// typedReader puts the columns of its feeds together. It is used by one goroutine.
type typedReader struct {
	plan   *typedPlan
	feeds  []*feed
	rows   int64 // so far
	total  int64 // of the file, 0 = unknown
	read   *atomic.Int64
	ctx    context.Context //nolint:containedctx // of the goroutines, which end with the reader
	cancel context.CancelFunc
	group  *spawn.Group
	err    error
}

// start runs a goroutine for each group of columns; open makes its source, whose batches have the columns have of the file.
func (r *typedReader) start(ctx context.Context, groups [][]int, open func(ctx context.Context, have []int) (typedSource, error)) {
	ctx, r.cancel = context.WithCancel(ctx)
	r.group, r.ctx = spawn.WithContext(ctx, 0)
	for _, wanted := range groups {
		f := &feed{wanted: wanted, out: make(chan part, 2)}
		r.feeds = append(r.feeds, f)
		var have []int
		for _, at := range wanted {
			if s := r.plan.source[at]; !slices.Contains(have, s) {
				have = append(have, s)
			}
		}
		slices.Sort(have)
		r.group.Go("read "+r.plan.file.URL, func() error {
			defer close(f.out)
			return r.run(f, have, open)
		})
	}
}

func (r *typedReader) run(f *feed, have []int, open func(ctx context.Context, have []int) (typedSource, error)) error {
	var src typedSource
	err := guarded(r.plan.file, func() (err error) {
		src, err = open(r.ctx, have)
		return err
	})
	if err != nil {
		return err
	}
	defer src.close()
	for {
		var b arrow.RecordBatch
		err := guarded(r.plan.file, func() (err error) {
			b, err = src.next()
			return err
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p := r.plan.cast(r.ctx, b, have, f.wanted)
		b.Release()
		if p.err != nil {
			return p.err
		}
		select {
		case f.out <- p:
		case <-r.ctx.Done():
			p.release()
			return r.ctx.Err()
		}
	}
}

// guarded runs code of a library that panics on some files: what is no fault of the machine is the file's.
func guarded(f File, do func() error) error {
	err := spawn.Guard(do)
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && err == io.EOF { //nolint:errorlint // the bare value is the end
		return err
	}
	for _, kind := range []error{errs.ErrIO, errs.ErrMemoryLimit, errs.ErrNotFound, errs.ErrPermission, errs.ErrUnsupported, errs.ErrCorrupt, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return err
		}
	}
	if errors.Is(err, arrow.ErrNotImplemented) {
		return errs.New(errs.ErrUnsupported, "%s: %w: --columns leaves columns out", f.URL, err)
	}
	return &errs.CorruptError{Path: f.URL, Section: "file", Offset: -1, Err: err}
}

// Next implements Reader.
func (r *typedReader) Next() (arrow.RecordBatch, []BadRow, error) {
	if r.err != nil {
		return nil, nil, r.err
	}
	rows, bad, err := r.take()
	r.err = err
	return rows, bad, err
}

func (r *typedReader) take() (arrow.RecordBatch, []BadRow, error) {
	n, ended := -1, 0
	for _, f := range r.feeds {
		for f.at >= f.now.rows {
			f.now.release()
			var ok bool
			if f.now, ok = <-f.out; !ok {
				f.now = part{}
				ended++
				break
			}
			f.at = 0
		}
		if left := f.now.rows - f.at; left > 0 && (n < 0 || left < n) {
			n = left
		}
	}
	if ended > 0 {
		if err := r.group.Wait(); err != nil {
			return nil, nil, err
		}
		if ended < len(r.feeds) {
			return nil, nil, &errs.CorruptError{Path: r.plan.file.URL, Section: "columns", Offset: -1, Err: errs.New(errs.ErrCorrupt, "columns of different lengths")}
		}
		return nil, nil, io.EOF
	}
	return r.zip(n)
}

// zip makes a batch of the next n rows of all feeds.
func (r *typedReader) zip(n int) (arrow.RecordBatch, []BadRow, error) {
	cols := make([]arrow.Array, r.plan.columns.NumFields())
	defer releaseAll(cols)
	worst := make(map[int]badValue) // by row: the one of the first column
	for _, f := range r.feeds {
		for i, at := range f.wanted {
			cols[at] = array.NewSlice(f.now.cols[i], int64(f.at), int64(f.at+n))
		}
		for _, b := range f.now.bad {
			row := b.row - f.at
			if row < 0 || row >= n {
				continue
			}
			if have, ok := worst[row]; !ok || b.column < have.column {
				worst[row] = b
			}
		}
		f.at += n
	}
	for i, c := range cols {
		if c == nil {
			cols[i] = array.MakeArrayOfNull(r.plan.opts.Alloc, r.plan.columns.Field(i).Type, n)
		}
	}
	isBad := make([]bool, n)
	var bad []BadRow
	for row := range n {
		if b, ok := worst[row]; ok {
			isBad[row] = true
			out := BadRow{File: r.plan.file.URL, Row: r.rows + int64(row) + 1, Column: r.plan.columns.Field(b.column).Name, Err: b.err}
			if b.value != nil {
				out.Value = shorten(b.value)
			}
			bad = append(bad, out)
		}
	}
	r.rows += int64(n)
	rows, err := keepGood(r.plan.columns, cols, isBad, r.plan.opts.Alloc)
	return rows, bad, err
}

// Progress implements Reader.
func (r *typedReader) Progress() int64 {
	size := r.plan.file.Entry.SizeBytes
	switch {
	case r.total > 0:
		return int64(float64(size) * float64(r.rows) / float64(r.total))
	case r.read != nil:
		return min(size, r.read.Load())
	}
	return 0
}

// Close implements Reader.
func (r *typedReader) Close() error {
	r.cancel()
	for _, f := range r.feeds {
		for p := range f.out {
			p.release()
		}
		f.now.release()
		f.now = part{}
	}
	_ = r.group.Wait() // the error of a goroutine that was stopped
	return nil
}
