package dml

import (
	"context"
	"errors"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec"
	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/write"
)

// Mode is what an INSERT does with rows whose key is there already.
type Mode string

// The modes: INSERT IGNORE, REPLACE, INSERT ... ON DUPLICATE KEY UPDATE.
const (
	ModeIgnore  Mode = "ignore"
	ModeReplace Mode = "replace"
	ModeUpdate  Mode = "update"
)

// SetColumn is one assignment of ON DUPLICATE KEY UPDATE. Value's columns are those of the row that is there, 0 to n-1, and of the row that was to be inserted, n
// to 2n-1.
type SetColumn struct {
	Column int
	Value  expr.Expr
}

// Keyed is an INSERT into a table with a declared key, which looks for rows of the same key. A row whose key has a NULL is no duplicate.
type Keyed struct {
	Into   Target
	Source Source
	Key    []int
	Mode   Mode
	Set    []SetColumn // ModeUpdate
}

var _ Statement = (*Keyed)(nil)

// Target implements Statement.
func (n *Keyed) Target() Target { return n.Into }

// Plan implements Statement.
func (n *Keyed) Plan() exec.Plan { return n.Source.Plan }

// Describe implements Statement.
func (n *Keyed) Describe() exec.Description {
	d := n.Source.describe("Insert", n.Into)
	names := make([]string, len(n.Key))
	for i, k := range n.Key {
		names[i] = n.Into.Table.Schema().Field(k).Name
	}
	d.Props = append(d.Props, exec.Prop{Key: "on_duplicate", Value: string(n.Mode)}, exec.Prop{Key: "key", Value: "[" + strings.Join(names, ", ") + "]"})
	lookup := "scan"
	if table, ok := n.Into.Table.(exec.Indexed); ok {
		for _, info := range table.Indexes() {
			if info.Usable && info.Column == names[0] && (info.Kind == index.KindBTree || info.Kind == index.KindBitmap) {
				lookup = "index " + info.Name
				break
			}
		}
	}
	d.Props = append(d.Props, exec.Prop{Key: "lookup", Value: lookup})
	return d
}

// entry is a key of the statement's rows.
type entry struct {
	rows  []int32          // of the incoming rows, in order
	addrs []rowset.RowAddr // of rows of the table with the key
	old   int32            // position among the taken rows; -1 = the key is not in the table
}

// keyedRun is a running Keyed, at one piece of the incoming rows.
type keyedRun struct {
	*Keyed
	env      *Env
	tx       Tx
	held     *mem.Reservation
	schema   *arrow.Schema
	incoming arrow.RecordBatch
	keys     map[string]*entry
	order    []*entry // by first row
	free     []int32  // rows whose key has a NULL
}

// Incoming rows are worked off in pieces of so many rows or bytes: what one piece staged the next one finds in the table. With a memory limit a piece is smaller.
const (
	pieceRowsMax  = 512 << 10
	pieceBytesMax = 64 << 20
	pieceShare    = 8 // of the limit for the rows of a piece, and for its keys
)

// Run implements Statement.
func (n *Keyed) Run(ctx context.Context, env *Env, tx Tx) (Outcome, error) {
	warnings := env.countWarnings()
	rows, err := n.Source.Open(ctx, env, n.Into.Table.Schema())
	if err != nil {
		return Outcome{}, err
	}
	sum := counts{}
	for err == nil && !sum.ended {
		r := &keyedRun{Keyed: n, env: env, tx: tx, held: env.Exec.Budget.Reserve(), schema: n.Into.Table.Schema(), keys: make(map[string]*entry)}
		err = r.piece(ctx, rows, &sum)
		r.held.Free()
	}
	if err = errors.Join(err, rows.Close()); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Affected: sum.affected}
	switch {
	case n.Source.Load != nil && n.Mode == ModeReplace:
		out.Info = loaded(sum.records, sum.duplicates, 0, *warnings)
	case n.Source.Load != nil:
		out.Info = loaded(sum.records, 0, sum.duplicates, *warnings)
	case n.Source.Plan != nil || len(n.Source.Rows) != 1:
		out.Info = records(sum.records, sum.duplicates, *warnings)
	}
	return out, nil
}

// counts is what a statement did so far.
type counts struct {
	affected, records, duplicates uint64
	ended                         bool // there are no more rows
}

// piece works off the next rows.
func (r *keyedRun) piece(ctx context.Context, rows *Assigned, sum *counts) error {
	if err := r.gather(ctx, rows, sum); err != nil || r.incoming == nil {
		return err
	}
	defer r.incoming.Release()
	if err := r.index(); err != nil {
		return err
	}
	if err := r.find(ctx); err != nil {
		return err
	}
	if err := r.watch(); err != nil {
		return err
	}
	sum.records += uint64(r.incoming.NumRows())
	switch r.Mode {
	case ModeReplace:
		return r.replace(ctx, sum)
	case ModeIgnore:
		return r.ignore(ctx, sum)
	}
	return r.update(ctx, sum)
}

// limits is how large a piece may become.
func (r *keyedRun) limits() (rowsMax, bytesMax int64) {
	rowsMax, bytesMax = pieceRowsMax, pieceBytesMax
	if limit := r.env.Exec.Budget.Limit(); limit > 0 {
		rowsMax = max(min(rowsMax, limit/pieceShare/entryBytes), 1)
		bytesMax = min(bytesMax, limit/pieceShare)
	}
	return rowsMax, bytesMax
}

// gather reads the incoming rows of a piece into one batch.
func (r *keyedRun) gather(ctx context.Context, rows *Assigned, sum *counts) (err error) {
	var all []arrow.RecordBatch
	defer func() {
		for _, b := range all {
			b.Release()
		}
	}()
	rowsMax, bytesMax := r.limits()
	for count, size := int64(0), int64(0); count < rowsMax && size < bytesMax; {
		b, err := rows.Next(ctx)
		if isEnd(err) {
			sum.ended = true
			break
		}
		if err != nil {
			return err
		}
		all = append(all, b)
		count += b.NumRows()
		for _, col := range b.Columns() {
			size += int64(col.Data().SizeInBytes())
		}
	}
	if len(all) > 0 {
		r.incoming, err = concat(r.env, r.schema, all)
	}
	return err
}

// concat makes one batch of several.
func concat(env *Env, s *arrow.Schema, all []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(all) == 1 {
		all[0].Retain()
		return all[0], nil
	}
	rows := int64(0)
	for _, b := range all {
		rows += b.NumRows()
	}
	cols := make([]arrow.Array, 0, s.NumFields())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	parts := make([]arrow.Array, len(all))
	for i := range s.NumFields() {
		for j, b := range all {
			parts[j] = b.Column(i)
		}
		col, err := array.Concatenate(parts, env.Exec.Alloc)
		if err != nil {
			return nil, errs.New(errs.ErrInternal, "column %q: %w", s.Field(i).Name, err)
		}
		cols = append(cols, col)
	}
	return array.NewRecordBatch(s, cols, rows), nil
}

// entryBytes is about what a key costs beside its text.
const entryBytes = 120

// index builds the table of incoming keys.
func (r *keyedRun) index() error {
	keys, err := keyTexts(len(r.Key), func(i int) arrow.Array { return r.incoming.Column(r.Key[i]) })
	if err != nil {
		return err
	}
	for row := range int32(r.incoming.NumRows()) {
		key, ok := keys(int(row))
		if !ok {
			r.free = append(r.free, row)
			continue
		}
		e := r.keys[key]
		if e == nil {
			if err := r.held.Grow(int64(entryBytes + len(key))); err != nil {
				return err
			}
			e = &entry{old: -1}
			r.keys[key] = e
			r.order = append(r.order, e)
		}
		e.rows = append(e.rows, row)
	}
	return nil
}

// keyTexts gives the key of a row, of so many columns, as text; false where a part of it is NULL.
func keyTexts(parts int, column func(i int) arrow.Array) (func(row int) (string, bool), error) {
	readers := make([]reader, parts)
	for i := range parts {
		read, err := readerOf(column(i))
		if err != nil {
			return nil, err
		}
		readers[i] = read
	}
	return func(row int) (string, bool) {
		var b strings.Builder
		for i, read := range readers {
			c := read(row)
			if c.kind == kindNull {
				return "", false
			}
			if c.kind == kindFloat && c.f == 0 {
				c.f = 0 // -0 is equal
			}
			text := c.text()
			if i+1 < len(readers) { // so that no two keys of several parts are written alike
				b.WriteString(strconv.Itoa(len(text)))
				b.WriteByte(':')
			}
			b.WriteString(text)
		}
		return b.String(), true
	}, nil
}

// find looks for the keys in the table, rows that the session staged included.
func (r *keyedRun) find(ctx context.Context) error {
	p, err := r.keyScan(ctx)
	if err != nil {
		return err
	}
	return drain(ctx, r.env.Exec, p, func(batch arrow.RecordBatch) error {
		col, err := addrColumn(batch)
		if err != nil {
			return err
		}
		keys, err := keyTexts(len(r.Key), func(i int) arrow.Array { return batch.Column(i) })
		if err != nil {
			return err
		}
		for i, addr := range col.Uint64Values() {
			key, ok := keys(i)
			if e := r.keys[key]; ok && e != nil {
				e.addrs = append(e.addrs, rowset.RowAddr(addr))
			}
		}
		return nil
	})
}

// watchedKeyBytes is about what a key costs that is watched until the commit.
const watchedKeyBytes = 24

// watch has the commit fail if somebody else adds a row with a key of the statement: it was looked for, and would be there twice. Keys that INSERT IGNORE found
// do not matter.
func (r *keyedRun) watch() error {
	keys := make(map[uint64]struct{}, len(r.keys))
	seed := maphash.MakeSeed()
	for key, e := range r.keys {
		if r.Mode != ModeIgnore || len(e.addrs) == 0 {
			keys[maphash.String(seed, key)] = struct{}{}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	columns := make([]string, len(r.Key))
	for i, k := range r.Key {
		columns[i] = r.schema.Field(k).Name
	}
	return r.tx.Watch(columns, int64(len(keys))*watchedKeyBytes, func(rows arrow.RecordBatch) (bool, error) {
		texts, err := keyTexts(len(columns), func(i int) arrow.Array { return rows.Column(i) })
		if err != nil {
			return false, err
		}
		for i := range int(rows.NumRows()) {
			if key, ok := texts(i); ok {
				if _, clashes := keys[maphash.String(seed, key)]; clashes {
					return true, nil
				}
			}
		}
		return false, nil
	})
}

// replace deletes the rows of the keys and adds the last incoming row of each.
func (r *keyedRun) replace(ctx context.Context, sum *counts) error {
	gone := &rowset.Set{}
	last := append([]int32(nil), r.free...)
	for _, e := range r.order {
		for _, a := range e.addrs {
			gone.Add(uint64(a))
		}
		last = append(last, e.rows[len(e.rows)-1])
	}
	deleted, err := r.tx.Delete(ctx, gone)
	if err != nil {
		return err
	}
	total := uint64(r.incoming.NumRows())
	again := total - uint64(len(last))
	sum.affected += total + again + deleted
	sum.duplicates += again + deleted
	return r.insert(ctx, last)
}

// ignore adds the first row of each key that is not in the table.
func (r *keyedRun) ignore(ctx context.Context, sum *counts) error {
	fresh := append([]int32(nil), r.free...)
	for _, e := range r.order {
		rows := e.rows
		if len(e.addrs) == 0 {
			fresh = append(fresh, rows[0])
			rows = rows[1:]
		}
		for _, row := range rows {
			if r.env.Warn != nil {
				r.env.Warn(errs.New(errs.ErrDuplicateKey, "Duplicate entry %s for key '%s.PRIMARY'", r.keyOf(row), r.Into.Name()))
			}
		}
	}
	sum.affected += uint64(len(fresh))
	sum.duplicates += uint64(r.incoming.NumRows()) - uint64(len(fresh))
	return r.insert(ctx, fresh)
}

func (r *keyedRun) keyOf(row int32) string {
	parts := make([]string, len(r.Key))
	for i, k := range r.Key {
		if read, err := readerOf(r.incoming.Column(k)); err == nil {
			parts[i] = read(int(row)).text()
		}
	}
	return quoteKey(parts)
}

// insert appends incoming rows.
func (r *keyedRun) insert(ctx context.Context, rows []int32) error {
	if len(rows) == 0 {
		return nil
	}
	batch, err := expr.FilterBatch(&r.env.Exec.Expr, r.incoming, rows)
	if err != nil {
		return err
	}
	defer batch.Release()
	_, err = r.tx.Append(ctx, []write.Batches{&batches{of: []arrow.RecordBatch{batch}}})
	return err
}
