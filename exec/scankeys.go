package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// keySet tells which rows of a column have a wanted key.
type keySet struct {
	column int // of the scan's output
	keys   arrow.Array
	table  grouper
	bits   *keyBits // instead of table, for integers that lie close enough together
}

// keySets is what the joins above found, ready to look up; the workers of a scan share it.
type keySets struct {
	shared
	res  *mem.Reservation
	sets []keySet
}

// newKeySets returns nil where no join above has keys for p.
func newKeySets(env *Env, p *Scan) (*keySets, error) {
	filters := env.KeyFilters(p)
	if len(filters) == 0 {
		return nil, nil
	}
	k := &keySets{res: env.Budget.Reserve()}
	for _, f := range filters {
		bits, err := newKeyBits(k.res, f.Keys)
		if err != nil {
			k.res.Free()
			return nil, err
		}
		if bits != nil {
			k.sets = append(k.sets, keySet{column: f.Column, keys: f.Keys, bits: bits})
			env.Stats.Node(p).Add("keys", int64(f.Keys.Len()))
			continue
		}
		t, err := newGrouper(env.Alloc, k.res, []arrow.DataType{f.Keys.DataType()}, false)
		if err == nil {
			err = t.assign([]arrow.Array{f.Keys}, f.Keys.Len(), make([]uint32, f.Keys.Len()))
		}
		if err != nil {
			k.res.Free()
			return nil, err
		}
		k.sets = append(k.sets, keySet{column: f.Column, keys: f.Keys, table: t})
		env.Stats.Node(p).Add("keys", int64(f.Keys.Len()))
	}
	return k, nil
}

// keyProbe applies key sets to batches. It is used by one goroutine.
type keyProbe struct {
	env     *Env
	sets    *keySets
	at      []int         // where the column of each set is in the batches
	scratch []findScratch // by set
	ids     []uint32
	idx     []int32
}

func newKeyProbe(env *Env, sets *keySets) *keyProbe {
	return &keyProbe{env: env, sets: sets, scratch: make([]findScratch, len(sets.sets))}
}

// keep takes b over and returns its rows with wanted keys, nil for none.
func (k *keyProbe) keep(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	for i, s := range k.sets.sets {
		n := int(b.NumRows())
		if err := k.find(i, s, b.Column(k.at[i]), n); err != nil {
			b.Release()
			return nil, err
		}
		if len(k.idx) == n {
			continue
		}
		var kept arrow.RecordBatch
		var err error
		if len(k.idx) > 0 {
			kept, err = takeBatch(k.env.Alloc, b, k.idx)
		}
		b.Release()
		if kept == nil || err != nil {
			return nil, err
		}
		b = kept
	}
	return b, nil
}

// find sets k.idx to the rows of c that have a key of set number i.
func (k *keyProbe) find(i int, s keySet, c arrow.Array, n int) error {
	k.idx = k.idx[:0]
	if s.bits != nil {
		valid, offset := validity(c)
		k.idx = s.bits.rows(wordsOf(c, n, &k.scratch[i].words), valid, offset, k.idx)
		return nil
	}
	k.ids = resized(k.ids, n)
	if err := s.table.find(&k.scratch[i], []arrow.Array{c}, n, k.ids); err != nil {
		return err
	}
	for r, id := range k.ids {
		if id != noGroup {
			k.idx = append(k.idx, int32(r))
		}
	}
	return nil
}

const (
	// lateKeysShare: with fewer keys than rows by this factor the other columns are read for the rows that have one.
	lateKeysShare = 32
	// lateTakeRows is how many rows are gathered before their other columns are read.
	lateTakeRows = 1024
)

// lateScan reads the columns that decide, and the others for the rows that are left.
type lateScan struct {
	plan   *Scan
	env    *Env
	table  Addressable
	reader BatchReader
	probe  *keyProbe
	sel    *selection // over narrow; nil = none
	narrow *arrow.Schema
	from   []lateColumn
	rest   []string // columns of the table that are read late
	held   []arrow.RecordBatch
	rows   int
	ended  bool
	out    slicer
	shared *scanRows
	closed bool
}

// lateColumn says where an output column comes from.
type lateColumn struct {
	late bool
	at   int
}

// latePlan splits the columns of a scan; ok is false where reading late gains nothing.
func (p *Scan) latePlan(sets *keySets, table Table) (decide []int, ok bool) {
	if _, ok := table.(Addressable); !ok {
		return nil, false
	}
	if p.Spec.Filter != nil {
		decide = sortedColumns(p.Spec.Filter)
	}
	few := false
	for _, s := range sets.sets {
		decide = append(decide, s.column)
		few = few || int64(s.keys.Len())*lateKeysShare < table.Rows()
	}
	slices.Sort(decide)
	decide = slices.Compact(decide)
	if n := len(decide); n > 0 && decide[n-1] == len(p.Spec.Columns) {
		decide = decide[:n-1] // the row address is there anyway
	}
	return decide, few && len(decide) < len(p.Spec.Columns)
}

// openLate opens workers that read late. decide are the output columns that are read first.
func (p *Scan) openLate(ctx context.Context, env *Env, table Addressable, sets *keySets, among *rowset.Set, decide []int, n int) ([]Operator, error) {
	columns := make([]string, len(decide))
	position := make(map[int]int)
	fields := make([]arrow.Field, 0, len(decide)+1)
	from := make([]lateColumn, p.Out.NumFields())
	for i, c := range decide {
		columns[i], position[c], from[c] = p.Spec.Columns[c], i, lateColumn{at: i}
		fields = append(fields, p.Out.Field(c))
	}
	var rest []string
	for c, name := range p.Spec.Columns {
		if _, first := position[c]; !first {
			from[c] = lateColumn{late: true, at: len(rest)}
			rest = append(rest, name)
		}
	}
	fields = append(fields, arrow.Field{Name: RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64})
	if p.Spec.RowAddr {
		from[len(p.Spec.Columns)] = lateColumn{at: len(decide)}
	}
	position[len(p.Spec.Columns)] = len(decide)
	s, err := table.Scan(ctx, ScanRequest{Columns: columns, Among: among, RowAddr: true, BatchRows: env.BatchRows, Alloc: env.Alloc})
	if err != nil {
		return nil, fmt.Errorf("scan of %s: %w", p.Table, err)
	}
	sets.refs = n
	ops := make([]Operator, n)
	for i := range ops {
		op := &lateScan{plan: p, env: env, table: table, reader: s.Reader(), narrow: arrow.NewSchema(fields, nil), from: from, rest: rest}
		op.probe = newKeyProbe(env, sets)
		for _, k := range sets.sets {
			op.probe.at = append(op.probe.at, position[k.column])
		}
		if p.Spec.Filter != nil {
			cond, err := expr.Rebind(p.Spec.Filter, position)
			if err != nil {
				return nil, errs.New(errs.ErrInternal, "scan of %s: %w", p.Table, err)
			}
			if op.sel, err = newSelection(env, op.narrow, cond); err != nil {
				return nil, err
			}
		}
		ops[i] = op
	}
	return ops, nil
}

func (s *lateScan) Schema() *arrow.Schema { return s.plan.Out }

func (s *lateScan) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if b, ok := s.out.next(s.env.BatchRows); ok {
			return b, nil
		}
		for !s.ended && s.rows < lateTakeRows {
			if err := s.read(ctx); err != nil {
				return nil, err
			}
		}
		if s.rows == 0 {
			return nil, io.EOF
		}
		b, err := s.fetch(ctx)
		if err != nil {
			return nil, err
		}
		s.out.set(b)
	}
}

// read gets one narrow batch and holds the rows of it that are wanted.
func (s *lateScan) read(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := s.reader.Next(ctx)
	if err == io.EOF { //nolint:errorlint // Next returns io.EOF itself
		s.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	if err := checkBatch(s.plan.Table, s.narrow, b); err != nil {
		b.Release()
		return err
	}
	b = withSchema(s.narrow, b)
	if b, err = s.probe.keep(b); b == nil || err != nil {
		return err
	}
	if s.sel != nil {
		if b, err = s.sel.keep(b); b == nil || err != nil {
			return err
		}
	}
	s.held = append(s.held, b)
	s.rows += int(b.NumRows())
	return nil
}

// fetch reads the late columns of the held rows.
func (s *lateScan) fetch(ctx context.Context) (arrow.RecordBatch, error) {
	held := s.held
	rows := s.rows
	s.held, s.rows = nil, 0
	first, err := concatColumns(s.env.Alloc, s.narrow, held)
	if err != nil {
		return nil, err
	}
	defer releaseArrays(first)
	addrs := make([]rowset.RowAddr, rows)
	for i, a := range fixedValues[uint64](first[len(first)-1]) {
		addrs[i] = rowset.RowAddr(a)
	}
	late, err := s.table.Take(ctx, addrs, s.rest, s.env.Alloc)
	if err != nil {
		return nil, fmt.Errorf("take from %s: %w", s.plan.Table, err)
	}
	defer late.Release()
	s.env.Stats.Node(s.plan).Add("late_rows", int64(rows))
	cols := make([]arrow.Array, len(s.from))
	for i, f := range s.from {
		cols[i] = first[min(f.at, len(first)-1)]
		if f.late {
			cols[i] = late.Column(f.at)
		}
	}
	b := array.NewRecordBatch(s.plan.Out, cols, int64(rows))
	if err := checkBatch(s.plan.Table, s.plan.Out, b); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

func (s *lateScan) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	releaseBatches(s.held)
	s.held = nil
	s.out.close()
	err := errors.Join(s.reader.Close(), s.shared.close())
	return errors.Join(err, s.probe.sets.drop(func() error {
		s.probe.sets.res.Free()
		return nil
	}))
}
