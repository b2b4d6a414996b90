package dml

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner"
	"github.com/lakesql/lakesql/planner/logical"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

// lookupMax is how many keys are looked for by name; beyond it the key columns are read whole.
const lookupMax = 10_000

// keyScan plans the read of the key columns and row addresses, by index where the first column of the key has one.
func (r *keyedRun) keyScan(ctx context.Context) (exec.Plan, error) {
	snap, err := r.tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	view := r.env.View(snap)
	ids := &logical.IDs{}
	scan := &logical.Scan{Table: view, Alias: r.Into.Name()}
	out := make([]logical.Named, 0, len(r.Key)+1)
	for _, k := range r.Key {
		f := r.schema.Field(k)
		col := logical.Column{ID: ids.Next(), Name: f.Name, Type: f.Type, Nullable: f.Nullable}
		scan.Cols = append(scan.Cols, logical.ScanColumn{Column: col, Source: f.Name})
		out = append(out, logical.Named{Column: col, Expr: col.Ref()})
	}
	addr := logical.Column{ID: ids.Next(), Name: exec.RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64}
	scan.RowAddr = &addr
	out = append(out, logical.Named{Column: addr, Expr: addr.Ref()})
	var root logical.Node = scan
	if len(r.order) <= lookupMax {
		cond, err := r.keyFilter(scan.Cols[0].Column)
		if err != nil {
			return nil, err
		}
		if cond != nil {
			root = &logical.Filter{Input: scan, Conds: []expr.Expr{cond}}
		}
	}
	result, err := planner.Plan(ctx, &logical.Project{Input: root, Exprs: out}, ids, planner.Settings{Expr: r.env.Exec.Expr, Run: r.env.Exec})
	if err != nil {
		return nil, err
	}
	r.env.Pin(view)
	return result.Plan, nil
}

// keyFilter is column IN (the incoming values); nil where the column's type has no constants for it.
func (r *keyedRun) keyFilter(col logical.Column) (expr.Expr, error) {
	switch col.Type.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64, arrow.STRING, arrow.LARGE_STRING:
	default:
		return nil, nil //nolint:nilnil // nil is "read all"
	}
	args := []expr.Expr{col.Ref()}
	values := r.incoming.Column(r.Key[0])
	for _, e := range r.order {
		s, err := scalar.GetScalar(values, int(e.rows[0]))
		if err != nil {
			return nil, errs.New(errs.ErrInternal, "key of row %d: %w", e.rows[0], err)
		}
		args = append(args, &expr.Literal{Value: s})
	}
	if len(args) == 1 {
		return nil, nil //nolint:nilnil // no key at all
	}
	return expr.NewCall("in", args...)
}

// version is a row in one of several batches.
type version struct {
	batch int
	row   int32
}

// update is ON DUPLICATE KEY UPDATE. The second row of a key meets what the first made, so the rows are worked off in waves: the first of every key, then
// the second...
func (r *keyedRun) update(ctx context.Context, sum *counts) error {
	old, err := r.takeOld(ctx)
	if err != nil {
		return err
	}
	w := &waves{r: r, batches: []arrow.RecordBatch{r.incoming, old}, now: make(map[*entry]version), touched: make(map[*entry]bool)}
	defer func() {
		for _, b := range w.batches[1:] {
			if b != nil {
				b.Release()
			}
		}
	}()
	if err := w.compile(); err != nil {
		return err
	}
	sum.affected += uint64(len(r.free))
	for _, e := range r.order {
		if e.old >= 0 {
			w.now[e] = version{batch: 1, row: e.old}
		}
	}
	for wave := 0; ; wave++ {
		var meet []*entry
		some := false
		for _, e := range r.order {
			if wave >= len(e.rows) {
				continue
			}
			some = true
			if _, there := w.now[e]; !there {
				w.now[e] = version{batch: 0, row: e.rows[wave]}
				sum.affected++
				continue
			}
			meet = append(meet, e)
		}
		if !some {
			break
		}
		changed, err := w.run(meet, wave)
		if err != nil {
			return err
		}
		sum.affected += 2 * changed
		sum.duplicates += uint64(len(meet))
		if r.env.FoundRows {
			sum.affected += uint64(len(meet)) - changed
		}
	}
	return w.finish(ctx)
}

// takeOld reads the rows of the table that have keys of the statement.
func (r *keyedRun) takeOld(ctx context.Context) (arrow.RecordBatch, error) {
	var addrs []rowset.RowAddr
	for _, e := range r.order {
		if len(e.addrs) > 0 {
			e.old = int32(len(addrs))
			addrs = append(addrs, e.addrs[0])
		}
	}
	if len(addrs) == 0 {
		return nil, nil //nolint:nilnil // no row
	}
	snap, err := r.tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	table, ok := r.env.View(snap).(exec.Addressable)
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "table %s cannot be changed", r.Into.Name())
	}
	names := make([]string, r.schema.NumFields())
	for i, f := range r.schema.Fields() {
		names[i] = f.Name
	}
	return table.Take(ctx, addrs, names, r.env.Exec.Alloc)
}

// waves keeps what each key's row is by now.
type waves struct {
	r        *keyedRun
	programs []*expr.Program
	batches  []arrow.RecordBatch // 0 the incoming rows, 1 those of the table, then those that waves made
	now      map[*entry]version
	touched  map[*entry]bool
}

func (w *waves) compile() error {
	n := w.r.schema.NumFields()
	fields := append(append(make([]arrow.Field, 0, 2*n), w.r.schema.Fields()...), w.r.schema.Fields()...)
	both := arrow.NewSchema(fields, nil)
	for _, s := range w.r.Set {
		p, err := expr.Compile(s.Value, both)
		if err != nil {
			return err
		}
		w.programs = append(w.programs, p)
	}
	return nil
}

// run updates the rows of some keys with their incoming row of the wave, and counts those that it changed.
func (w *waves) run(meet []*entry, wave int) (changed uint64, err error) {
	if len(meet) == 0 {
		return 0, nil
	}
	refs, rows := make([]version, len(meet)), make([]version, len(meet))
	for i, e := range meet {
		refs[i], rows[i] = w.now[e], version{batch: 0, row: e.rows[wave]}
	}
	before, err := w.gather(refs)
	if err != nil {
		return 0, err
	}
	defer before.Release()
	incoming, err := w.gather(rows)
	if err != nil {
		return 0, err
	}
	defer incoming.Release()
	after, err := w.assign(before, incoming)
	if err != nil {
		return 0, err
	}
	w.batches = append(w.batches, after)
	for i, e := range meet {
		same := true
		for c := range after.Columns() {
			same = same && sameValue(before.Column(c), after.Column(c), i)
		}
		if !same {
			changed++
			w.touched[e] = true
			w.now[e] = version{batch: len(w.batches) - 1, row: int32(i)}
		}
	}
	return changed, nil
}

// assign evaluates the assignments one after the other: each sees what those before it made of the row.
func (w *waves) assign(before, incoming arrow.RecordBatch) (arrow.RecordBatch, error) {
	a := w.r.env.assigner()
	n := before.NumRows()
	cols := append(append([]arrow.Array(nil), before.Columns()...), incoming.Columns()...)
	var made []arrow.Array
	defer func() {
		for _, c := range made {
			c.Release()
		}
	}()
	for i, s := range w.r.Set {
		both := array.NewRecordBatch(arrow.NewSchema(append(append([]arrow.Field(nil), w.r.schema.Fields()...), w.r.schema.Fields()...), nil), cols, n)
		value, err := w.programs[i].Eval(&w.r.env.Exec.Expr, both)
		both.Release()
		if err != nil {
			return nil, err
		}
		col, err := a.Column(value, w.r.schema.Field(s.Column))
		value.Release()
		if err != nil {
			return nil, err
		}
		made = append(made, col)
		cols[s.Column] = col
	}
	return array.NewRecordBatch(w.r.schema, cols[:w.r.schema.NumFields()], n), nil
}

// gather makes a batch of rows that lie in several, in order.
func (w *waves) gather(refs []version) (arrow.RecordBatch, error) {
	idx := make([][]int32, len(w.batches))
	place := make([]int32, len(refs)) // among the rows taken, batch after batch
	for i, v := range refs {
		place[i] = int32(len(idx[v.batch]))
		idx[v.batch] = append(idx[v.batch], v.row)
	}
	env := &w.r.env.Exec.Expr
	var parts []arrow.RecordBatch
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	start, total := make([]int32, len(w.batches)), int32(0)
	for b, rows := range idx {
		start[b] = total
		if len(rows) == 0 {
			continue
		}
		total += int32(len(rows))
		part, err := expr.FilterBatch(env, w.batches[b], rows)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	all, err := concat(w.r.env, w.r.schema, parts)
	if err != nil || len(parts) == 1 {
		return all, err
	}
	defer all.Release()
	for i, v := range refs {
		place[i] += start[v.batch]
	}
	return expr.FilterBatch(env, all, place)
}

// finish writes what the rows have become: changed rows of the table, and new ones.
func (w *waves) finish(ctx context.Context) error {
	var addrs []rowset.RowAddr
	var changed, added []version
	for _, row := range w.r.free {
		added = append(added, version{batch: 0, row: row})
	}
	for _, e := range w.r.order {
		switch {
		case e.old < 0:
			added = append(added, w.now[e])
		case w.touched[e]:
			addrs, changed = append(addrs, e.addrs[0]), append(changed, w.now[e])
		}
	}
	if len(changed) > 0 {
		rows, err := w.gather(changed)
		if err != nil {
			return err
		}
		defer rows.Release()
		names := make([]string, len(w.r.Set))
		for i, s := range w.r.Set {
			names[i] = w.r.schema.Field(s.Column).Name
		}
		if _, err := w.r.tx.Update(ctx, addrs, &batches{of: []arrow.RecordBatch{rows}}, names); err != nil {
			return err
		}
	}
	if len(added) == 0 {
		return nil
	}
	rows, err := w.gather(added)
	if err != nil {
		return err
	}
	defer rows.Release()
	_, err = w.r.tx.Append(ctx, []write.Batches{&batches{of: []arrow.RecordBatch{rows}}})
	return err
}
