package file

import (
	"context"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
)

// ReadOptions tunes one read. The zero value is the default.
type ReadOptions struct {
	// Alloc is of the arrays; default memory.DefaultAllocator. The budget of a mem.Allocator also pays for the bytes that are read from files that are not
	// mapped, until the arrays are made.
	Alloc memory.Allocator
}

func (o ReadOptions) withDefaults() ReadOptions {
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	return o
}

// span is a half-open range of rows.
type span struct{ from, to uint64 }

func spanRows(spans []span) int {
	var n uint64
	for _, s := range spans {
		n += s.to - s.from
	}
	return int(n)
}

// ReadRange returns the rows [start, end) of the columns; the caller releases the batch.
// Errors: ErrInvalid for rows the file does not have, ErrCorrupt, ErrUnsupported, ErrIO.
func (r *Reader) ReadRange(ctx context.Context, cols []Column, start, end uint64, opts ReadOptions) (arrow.RecordBatch, error) {
	if start > end || end > r.rows {
		return nil, errs.New(errs.ErrInvalid, "file %s: rows [%d, %d) of %d", r.file.Path(), start, end, r.rows)
	}
	batch, err := r.read(ctx, cols, readRows{spans: []span{{start, end}}}, opts.withDefaults())
	return batch, r.wrap(err)
}

// readRows is ascending, disjoint spans. A take reads few rows of many: what lies between them is worth a request.
type readRows struct {
	spans  []span
	isTake bool
}

// read returns rows.
func (r *Reader) read(ctx context.Context, cols []Column, rows readRows, opts ReadOptions) (arrow.RecordBatch, error) {
	p, err := r.newPlan(cols)
	if err != nil {
		return nil, err
	}
	spans := rows.spans
	q := &readCall{r: r, plan: p, rows: spanRows(spans), mem: opts.Alloc, isSparse: rows.isTake && !r.file.IsMapped()}
	q.held = mem.BudgetOf(opts.Alloc).Reserve()
	defer q.held.Free()
	defer q.release()
	if r.version == V20 {
		return q.readV20(ctx, spans)
	}
	for _, l := range p.leaves {
		lr, err := q.newLeaf(l, r.rows, spans)
		if err != nil {
			return nil, err
		}
		q.leaves = append(q.leaves, lr)
	}
	if err := q.fetch(ctx); err != nil {
		return nil, err
	}
	s, _ := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)
	for _, lr := range q.leaves {
		if err := lr.decode(ctx, s); err != nil {
			return nil, err
		}
	}
	return q.assemble()
}

// readCall is one read on its way.
type readCall struct {
	r      *Reader
	plan   *plan
	rows   int
	mem    memory.Allocator
	leaves []*leafRead
	held   *mem.Reservation // pays for what was read
	// isSparse says that few rows of a file are read that is not mapped, so that bytes count.
	isSparse bool
}

func (q *readCall) release() {
	for _, l := range q.leaves {
		if l != nil {
			l.release()
		}
	}
}

// scratch is memory that reads reuse.
type scratch struct {
	chunk              *encoding.Chunk
	rep, def           []uint16 // levels of a part
	chunkRep, chunkDef []uint16 // levels of one chunk
	rows, visible      encoding.Mask
	bufs               [][]byte
}

// leafRead is one physical column of a read.
type leafRead struct {
	q      *readCall
	plan   *leafPlan
	parts  []*part
	values *encoding.Values
	nest   *encoding.Nesting
	copies bool   // values are never used where they lie
	direct []byte // fixed-width values used where they lie, instead of values (I5)
	dicts  dictParts

	codes   *encoding.Values // of the dictionary codesOf, instead of values
	codesOf *dictionary
}

// part is what a read needs of one page.
type part struct {
	page   *page
	layout pageReader
	spans  []span // rows of the page
	sparse bool   // readCall.isSparse
	step   int
	got    [][]byte // bytes of the last ranges
	state  any      // of the layout
}

// pageReader reads the pages of one layout. It is immutable but for what it caches.
type pageReader interface {
	// fetch returns the next ranges that part p needs; p.got holds the bytes of the previous ones. No ranges: ready to decode.
	fetch(r *Reader, p *part) ([]object.Range, error)
	// decode appends the rows of p to l.
	decode(l *leafRead, p *part, s *scratch) error
}

// newLeaf finds the pages that hold the spans of a column of the given rows.
func (q *readCall) newLeaf(l *leafPlan, rows uint64, spans []span) (*leafRead, error) {
	col := q.r.columns[l.column]
	lr := &leafRead{q: q, plan: l}
	if col.blob {
		return nil, errs.New(errs.ErrUnsupported, "column %d: blob columns are not supported", l.column)
	}
	if total := col.rows(); total != rows*l.scale {
		return nil, errs.Corrupt(sectionColumn(l.column), -1, "pages of %d rows, not %d", total, rows*l.scale)
	}
	for _, s := range spans {
		s.from, s.to = s.from*l.scale, s.to*l.scale
		i := sort.Search(len(col.pages), func(i int) bool { return col.pages[i].first+col.pages[i].rows > s.from })
		for ; i < len(col.pages) && s.from < s.to; i++ {
			pg := col.pages[i]
			to := min(s.to, pg.first+pg.rows)
			if pg.rows == 0 {
				continue
			}
			local := span{s.from - pg.first, to - pg.first}
			s.from = to
			if n := len(lr.parts); n > 0 && lr.parts[n-1].page == pg {
				lr.parts[n-1].spans = append(lr.parts[n-1].spans, local)
				continue
			}
			layout, err := pg.open(l)
			if err != nil {
				return nil, err
			}
			lr.parts = append(lr.parts, &part{page: pg, layout: layout, spans: []span{local}, sparse: q.isSparse})
		}
	}
	return lr, nil
}

// fetch asks every part for ranges, round by round, and reads those of a round together.
func (q *readCall) fetch(ctx context.Context) error {
	var pending []*part
	for _, l := range q.leaves {
		pending = append(pending, l.parts...)
	}
	var err error
	for len(pending) > 0 && err == nil {
		pending, err = q.round(ctx, pending)
	}
	return err
}

// round reads what the pending parts need next and returns those that are not ready yet.
func (q *readCall) round(ctx context.Context, pending []*part) ([]*part, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var ranges []object.Range
	next, counts := make([]*part, 0, len(pending)), make([]int, 0, len(pending))
	for _, p := range pending {
		rs, err := p.layout.fetch(q.r, p)
		if err != nil {
			return nil, inPage(err, p.page)
		}
		if len(rs) > 0 {
			ranges, counts, next = append(ranges, rs...), append(counts, len(rs)), append(next, p)
		}
	}
	if len(next) == 0 {
		return nil, nil
	}
	if err := q.held.Grow(object.FetchBytes(q.r.file, ranges)); err != nil {
		return nil, err
	}
	got, err := q.r.file.ReadMany(ctx, ranges)
	if err != nil {
		return nil, err
	}
	for i, p := range next {
		p.got, got = got[:counts[i]:counts[i]], got[counts[i]:]
	}
	return next, nil
}

// inPage says in which page an error arose.
func inPage(err error, p *page) error {
	var at int64 = -1
	if len(p.buffers) > 0 {
		at = p.buffers[0].Offset
	}
	return locate(err, p.section(), at)
}

func (l *leafRead) decode(ctx context.Context, s *scratch) error {
	rows, bytes := 0, 0
	for _, p := range l.parts {
		n, b := spanRows(p.spans), 0
		if e, ok := p.layout.(interface{ estimate(p *part) (int, int) }); ok {
			n, b = e.estimate(p)
		}
		rows, bytes = rows+n, bytes+b
	}
	l.nest = encoding.NewNesting(l.q.mem, l.plan.specs)
	if l.isDictionary() {
		l.dicts.init(l)
	} else if !l.readsCodes() && !l.readsDirect() {
		l.values = encoding.NewValues(l.q.mem, l.q.r.codecs, &l.plan.shape, rows)
		if l.plan.shape.Kind == encoding.Variable {
			l.values.ReserveData(bytes)
		}
	}
	for _, p := range l.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.layout.decode(l, p, s); err != nil {
			return inPage(err, p.page)
		}
	}
	return nil
}

// readsDirect reports whether the values can be used where they lie: one run of one page that is as Arrow wants it, in a mapping.
func (l *leafRead) readsDirect() bool {
	if l.copies || len(l.parts) != 1 || len(l.parts[0].spans) != 1 || !l.q.r.file.IsMapped() {
		return false
	}
	plain, ok := l.parts[0].layout.(interface{ isPlain() bool })
	return ok && plain.isPlain()
}

func (l *leafRead) isDictionary() bool { return l.plan.typ.ID() == arrow.DICTIONARY }

func (l *leafRead) release() {
	if l.values != nil {
		l.values.Release()
	}
	if l.codes != nil {
		l.codes.Release()
	}
	if l.nest != nil {
		l.nest.Release()
	}
	l.dicts.release()
}

// assemble builds the batch from the decoded leaves.
func (q *readCall) assemble() (arrow.RecordBatch, error) {
	arrays := make([]arrow.Array, 0, len(q.plan.roots))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	for _, n := range q.plan.roots {
		data, err := q.build(n, q.rows)
		if err != nil {
			return nil, err
		}
		if data.Len() != q.rows {
			rows := data.Len()
			data.Release()
			return nil, errs.Corrupt("column "+n.field.Name, -1, "%d rows where %d were asked for", rows, q.rows)
		}
		arrays = append(arrays, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecordBatch(SchemaOf(q.plan.schema, arrays), arrays, int64(q.rows)), nil
}

// SchemaOf is s with the types that cols have, where text came as codes.
func SchemaOf(s *arrow.Schema, cols []arrow.Array) *arrow.Schema {
	var fields []arrow.Field
	for i, c := range cols {
		if c.DataType().ID() != arrow.DICTIONARY || s.Field(i).Type.ID() == arrow.DICTIONARY {
			continue
		}
		if fields == nil {
			fields = s.Fields() // a copy
		}
		fields[i].Type = c.DataType()
	}
	if fields == nil {
		return s
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md)
}

// Take returns the given rows in the given order; duplicates are kept. The caller releases the batch.
// Errors: as ReadRange.
func (r *Reader) Take(ctx context.Context, cols []Column, rows []uint64, opts ReadOptions) (arrow.RecordBatch, error) {
	opts = opts.withDefaults()
	for _, row := range rows {
		if row >= r.rows {
			return nil, errs.New(errs.ErrInvalid, "file %s: row %d of %d", r.file.Path(), row, r.rows)
		}
	}
	spans, unique := rowSpans(rows)
	batch, err := r.read(ctx, cols, readRows{spans: spans, isTake: true}, opts)
	if err != nil || unique == nil {
		return batch, r.wrap(err)
	}
	defer batch.Release()
	out, err := reorder(ctx, batch, unique, rows, opts.Alloc)
	return out, r.wrap(err)
}

// rowSpans merges rows into ascending spans. unique is the ascending rows without duplicates, nil where rows is that already.
func rowSpans(rows []uint64) (spans []span, unique []uint64) {
	ascending := rows
	for i := 1; i < len(rows); i++ {
		if rows[i] <= rows[i-1] {
			unique = slices.Clone(rows)
			slices.Sort(unique)
			unique = slices.Compact(unique)
			ascending = unique
			break
		}
	}
	for _, row := range ascending {
		if n := len(spans); n > 0 && spans[n-1].to == row {
			spans[n-1].to++
		} else {
			spans = append(spans, span{row, row + 1})
		}
	}
	return spans, unique
}
