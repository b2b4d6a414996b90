package storage

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// Names of the columns that a scan can add at the end.
const (
	RowAddrColumn = "_rowaddr"
	RowIDColumn   = "_rowid"
)

const (
	defaultBatchRows  = 8192
	batchRowsMax      = 1 << 20
	remoteMorselBytes = 8 << 20 // about what one read of a remote store should bring
	morselBatches     = 8       // most batches that one reader claims at a time
	// denseRatio: candidates that are at least one in so many rows of their span are read as a range and picked, sparser ones
	// taken one by one. Decoding a row that nobody wants costs much less than finding one.
	denseRatio = 4
	// wideRowBytes: rows of more encoded bytes are taken one by one whatever their density: reading over a gap would cost memory.
	wideRowBytes = 512
	// batchBytes: batches have fewer rows where they would be more than about so many encoded bytes.
	batchBytes = 4 << 20
)

// ScanOptions says what a Scan reads. The zero value is every column of every live row.
type ScanOptions struct {
	Columns     []string         // top-level names, in the order wanted; nil = all, empty = none (rows are still counted)
	Fragments   []uint32         // nil = all
	Candidates  *rowset.Set      // row addresses; nil = all live rows. Deleted and unknown ones drop out
	BatchRows   int              // most rows of a batch; 0 = 8192
	Alloc       memory.Allocator // nil = memory.DefaultAllocator
	Codes       []string         // of Columns: text of these may come as dictionary codes, batch by batch: see file.CodesType
	WithRowAddr bool             // add RowAddrColumn
	WithRowID   bool             // add RowIDColumn: the stored key of each row (I5)
}

func (o ScanOptions) withDefaults() ScanOptions {
	if o.BatchRows == 0 {
		o.BatchRows = defaultBatchRows
	}
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	return o
}

// Validate refuses sizes that make no sense. Errors: ErrInvalid.
func (o ScanOptions) Validate() error {
	if o.BatchRows < 0 || o.BatchRows > batchRowsMax {
		return errs.New(errs.ErrInvalid, "batches of %d rows: at most %d", o.BatchRows, batchRowsMax)
	}
	return nil
}

// Scan is a running read of a snapshot. Its readers share one cursor. It is safe for concurrent use.
type Scan struct {
	snapshot   *Snapshot
	opts       ScanOptions
	fields     []*schema.Field
	codes      []bool // by field
	schema     *arrow.Schema
	morselRows uint64
	isWide     bool // rows are wider than wideRowBytes
	frags      []*Fragment
	rows       uint64 // that the scan yields

	mu      sync.Mutex
	next    int        // of frags
	current *scanPlace // nil = take the next fragment
}

// scanPlace is where the cursor is in one fragment.
type scanPlace struct {
	fragment *Fragment
	rows     *roaring.Bitmap // wanted offsets; nil = all
	it       roaring.ManyIntIterable
	at       uint64 // next offset where rows is nil
}

// Scan starts a read. It loads the deletion sets it needs; data is read by the readers. Errors: ErrInvalid for unknown
// columns and fragments, ErrCorrupt, ErrIO.
func (s *Snapshot) Scan(ctx context.Context, opts ScanOptions) (*Scan, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	c := &Scan{snapshot: s, opts: opts.withDefaults()}
	var err error
	if c.fields, err = s.fields(opts.Columns); err != nil {
		return nil, err
	}
	c.codes = make([]bool, len(c.fields))
	for i, f := range c.fields {
		c.codes[i] = slices.Contains(opts.Codes, f.Name)
	}
	frags, err := s.pick(opts.Fragments)
	if err != nil {
		return nil, err
	}
	for _, f := range frags {
		if f.rows > 0 && (opts.Candidates == nil || opts.Candidates.Bitmap(f.id) != nil) {
			c.frags = append(c.frags, f)
		}
	}
	if err := s.loadDeletions(ctx, c.frags); err != nil {
		return nil, err
	}
	c.schema = scanSchema(c.fields, s.arrow, opts)
	if err := c.count(ctx); err != nil {
		return nil, err
	}
	return c, c.size(ctx)
}

func scanSchema(fields []*schema.Field, table *arrow.Schema, opts ScanOptions) *arrow.Schema {
	out := make([]arrow.Field, 0, len(fields)+2)
	for _, f := range fields {
		out = append(out, f.Arrow())
	}
	if opts.WithRowAddr {
		out = append(out, arrow.Field{Name: RowAddrColumn, Type: arrow.PrimitiveTypes.Uint64})
	}
	if opts.WithRowID {
		out = append(out, arrow.Field{Name: RowIDColumn, Type: arrow.PrimitiveTypes.Uint64})
	}
	md := table.Metadata()
	return arrow.NewSchema(out, &md)
}

// count sums the rows that the scan will yield.
func (c *Scan) count(ctx context.Context) error {
	for _, f := range c.frags {
		if c.opts.Candidates == nil {
			c.rows += f.Rows()
			continue
		}
		bm, err := c.wanted(ctx, f)
		if err != nil {
			return err
		}
		c.rows += bm.GetCardinality()
	}
	return nil
}

// size decides how many rows a reader claims at a time: enough for large reads of a remote store, few enough that the last
// morsels spread over the readers.
func (c *Scan) size(ctx context.Context) error {
	batch := uint64(c.opts.BatchRows)
	c.morselRows = min(max(c.rows/64, batch), morselBatches*batch)
	if len(c.frags) == 0 || len(c.frags[0].pb.GetFiles()) == 0 {
		return nil
	}
	p := c.frags[0].plan(c.fields, nil)
	var bytes int64
	isMapped := true
	for _, fp := range p.files {
		r, err := p.fragment.open(ctx, fp.file)
		if err != nil {
			return err
		}
		isMapped = isMapped && r.isMapped
		for _, col := range fp.columns {
			bytes += r.ColumnBytes(col)
		}
	}
	perRow := uint64(bytes) / max(1, p.fragment.rows)
	c.isWide = perRow > wideRowBytes
	if perRow > 0 && batch > batchBytes/perRow {
		batch = max(batchBytes/perRow, 1)
		c.opts.BatchRows = int(batch)
		c.morselRows = min(c.morselRows, morselBatches*batch)
	}
	if !isMapped && perRow > 0 {
		c.morselRows = min(max(remoteMorselBytes/perRow, batch), morselBatches*batch)
	}
	return nil
}

// wanted returns the offsets to read in a fragment, nil = all.
func (c *Scan) wanted(ctx context.Context, f *Fragment) (*roaring.Bitmap, error) {
	deleted, err := f.Deletions(ctx)
	if err != nil {
		return nil, err
	}
	var out *roaring.Bitmap
	switch {
	case c.opts.Candidates != nil:
		out = c.opts.Candidates.Bitmap(f.id).Clone()
		out.RemoveRange(f.rows, 1<<32)
	case deleted == nil || deleted.IsEmpty():
		return nil, nil //nolint:nilnil // all rows
	default:
		out = roaring.New()
		out.AddRange(0, f.rows)
	}
	if deleted != nil {
		out.AndNot(deleted)
	}
	return out, nil
}

// Schema is the schema of the batches.
func (c *Scan) Schema() *arrow.Schema { return c.schema }

// Rows is how many rows the scan yields in all.
func (c *Scan) Rows() uint64 { return c.rows }

// Reader returns a reader of its own for one goroutine. Readers of one Scan share its cursor: together they yield every row once (I2).
func (c *Scan) Reader() *ScanReader { return &ScanReader{scan: c} }

// morsel is rows of one fragment that one reader claimed.
type morsel struct {
	fragment *Fragment
	start    uint64
	end      uint64
	rows     []uint32 // wanted offsets within [start, end), ascending; nil = all
}

// claim hands out the next morsel, nil at the end.
func (c *Scan) claim(ctx context.Context) (*morsel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.current == nil {
			if c.next == len(c.frags) {
				return nil, nil //nolint:nilnil // the end
			}
			f := c.frags[c.next]
			rows, err := c.wanted(ctx, f)
			if err != nil {
				return nil, err
			}
			c.next++
			c.current = &scanPlace{fragment: f, rows: rows}
			if rows != nil {
				c.current.it = rows.ManyIterator()
			}
		}
		if m := c.current.claim(c.morselRows); m != nil {
			return m, nil
		}
		c.current = nil
	}
}

func (p *scanPlace) claim(morselRows uint64) *morsel {
	if p.rows == nil {
		if p.at >= p.fragment.rows {
			return nil
		}
		m := &morsel{fragment: p.fragment, start: p.at, end: min(p.at+morselRows, p.fragment.rows)}
		p.at = m.end
		return m
	}
	rows := make([]uint32, morselRows)
	n := p.it.NextMany(rows)
	if n == 0 {
		return nil
	}
	rows = rows[:n]
	m := &morsel{fragment: p.fragment, start: uint64(rows[0]), end: uint64(rows[n-1]) + 1, rows: rows}
	if m.end-m.start == uint64(n) {
		m.rows = nil
	}
	return m
}

// cut splits off the first n wanted rows.
func (m *morsel) cut(n int) (first, rest *morsel) {
	if m.rows == nil {
		if m.end-m.start <= uint64(n) {
			return m, nil
		}
		mid := m.start + uint64(n)
		return &morsel{fragment: m.fragment, start: m.start, end: mid}, &morsel{fragment: m.fragment, start: mid, end: m.end}
	}
	if len(m.rows) <= n {
		return m, nil
	}
	part := func(rows []uint32) *morsel {
		p := &morsel{fragment: m.fragment, start: uint64(rows[0]), end: uint64(rows[len(rows)-1]) + 1, rows: rows}
		if p.end-p.start == uint64(len(rows)) {
			p.rows = nil
		}
		return p
	}
	return part(m.rows[:n]), part(m.rows[n:])
}

func (m *morsel) count() int {
	if m.rows == nil {
		return int(m.end - m.start)
	}
	return len(m.rows)
}

func (m *morsel) offset(i int) uint32 {
	if m.rows == nil {
		return uint32(m.start) + uint32(i)
	}
	return m.rows[i]
}

// ScanReader reads batches of a Scan. It is used by one goroutine at a time.
type ScanReader struct {
	scan    *Scan
	pending *morsel // claimed, not yet read
	plan    *fragmentPlan
	batch   arrow.RecordBatch // read from a remote store, not yet handed out
	batchAt int64
}

// Next returns a batch of 1 to BatchRows rows, or io.EOF. The caller releases it. Rows of one batch come from one fragment, in
// physical order. Errors: ErrCorrupt, ErrIO, ErrUnsupported, ErrMemoryLimit.
func (r *ScanReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.batch != nil {
		return r.slice(), nil
	}
	if r.pending == nil {
		m, err := r.scan.claim(ctx)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return nil, io.EOF
		}
		r.pending = m
	}
	f := r.pending.fragment
	if r.plan == nil || r.plan.fragment != f {
		r.plan = f.plan(r.scan.fields, r.scan.codes)
	}
	now, rest := r.pending, (*morsel)(nil)
	isMapped, err := r.plan.isMapped(ctx)
	if err != nil {
		return nil, err
	}
	if isMapped {
		now, rest = r.pending.cut(r.scan.opts.BatchRows) // reading in small parts costs nothing and stays in the CPU's caches
	}
	batch, err := r.scan.read(ctx, r.plan, now)
	if err != nil {
		return nil, err
	}
	r.pending = rest
	if batch.NumRows() <= int64(r.scan.opts.BatchRows) {
		return batch, nil
	}
	r.batch, r.batchAt = batch, 0
	return r.slice(), nil
}

// Close frees what the reader holds. It is idempotent and needed only when Next has not returned io.EOF.
func (r *ScanReader) Close() error {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
	r.pending = nil
	return nil
}

// slice hands out a part of the batch that was read.
func (r *ScanReader) slice() arrow.RecordBatch {
	end := min(r.batchAt+int64(r.scan.opts.BatchRows), r.batch.NumRows())
	out := r.batch.NewSlice(r.batchAt, end)
	if r.batchAt = end; end == r.batch.NumRows() {
		r.batch.Release()
		r.batch = nil
	}
	return out
}

// isMapped says that every file of the plan is mapped.
func (p *fragmentPlan) isMapped(ctx context.Context) (bool, error) {
	for _, fp := range p.files {
		r, err := p.fragment.open(ctx, fp.file)
		if err != nil {
			return false, err
		}
		if !r.isMapped {
			return false, nil
		}
	}
	return true, nil
}

// read reads one morsel, as a range or row by row.
func (c *Scan) read(ctx context.Context, p *fragmentPlan, m *morsel) (arrow.RecordBatch, error) {
	cols, err := c.readColumns(ctx, p, m)
	defer func() { releaseAll(cols) }()
	if err != nil {
		return nil, err
	}
	n := m.count()
	if c.opts.WithRowAddr {
		cols = append(cols, c.addresses(m))
	}
	if c.opts.WithRowID {
		key, err := m.fragment.keyer(ctx)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c.numbers(n, func(i int) uint64 { return key(m.offset(i)) }))
	}
	return array.NewRecordBatch(file.SchemaOf(c.schema, cols), cols, int64(n)), nil
}

func (c *Scan) readColumns(ctx context.Context, p *fragmentPlan, m *morsel) ([]arrow.Array, error) {
	if m.rows == nil {
		return p.read(ctx, rowsWanted{start: m.start, end: m.end}, c.opts.Alloc)
	}
	if span := m.end - m.start; c.isWide || span > denseRatio*uint64(len(m.rows)) {
		rows := make([]uint64, len(m.rows))
		for i, r := range m.rows {
			rows[i] = uint64(r)
		}
		return p.read(ctx, rowsWanted{rows: rows}, c.opts.Alloc)
	}
	wide, err := p.read(ctx, rowsWanted{start: m.start, end: m.end}, c.opts.Alloc)
	if err != nil {
		return nil, err
	}
	defer releaseAll(wide)
	rows := make([]int, len(m.rows))
	for i, r := range m.rows {
		rows[i] = int(uint64(r) - m.start)
	}
	out := make([]arrow.Array, len(wide))
	for i, a := range wide {
		if out[i], err = gather(a, rows, c.opts.Alloc); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (c *Scan) numbers(n int, at func(i int) uint64) arrow.Array {
	buf := memory.NewResizableBuffer(mem.Dirty(c.opts.Alloc))
	defer buf.Release()
	buf.Resize(8 * n)
	out := arrow.Uint64Traits.CastFromBytes(buf.Bytes())
	for i := range out {
		out[i] = at(i)
	}
	return c.uint64s(buf, n)
}

// addresses are the row addresses of a morsel.
func (c *Scan) addresses(m *morsel) arrow.Array {
	n := m.count()
	buf := memory.NewResizableBuffer(mem.Dirty(c.opts.Alloc))
	defer buf.Release()
	buf.Resize(8 * n)
	out := arrow.Uint64Traits.CastFromBytes(buf.Bytes())
	first := uint64(rowset.Addr(m.fragment.id, 0))
	if m.rows == nil {
		first += m.start
		for i := range out {
			out[i] = first + uint64(i)
		}
	} else {
		for i, r := range m.rows {
			out[i] = first + uint64(r)
		}
	}
	return c.uint64s(buf, n)
}

func (c *Scan) uint64s(buf *memory.Buffer, n int) arrow.Array {
	d := array.NewData(arrow.PrimitiveTypes.Uint64, n, []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer d.Release()
	return array.NewUint64Data(d)
}
