package file

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/encoding"
)

// FixedBlock is consecutive rows of a fixed-width column. Value i is Data[OffsetBytes+i*StrideBytes:][:ValueBytes].
type FixedBlock struct {
	FirstRow    uint64 // in the file
	Rows        int
	Data        []byte // see object.Store I1 for how long it lives; read-only
	OffsetBytes int
	StrideBytes int
	ValueBytes  int
	// Validity tells whether value i is not null, and for lists that no item of it is; nil = all are valid.
	Validity func(i int) bool
}

// FixedBlocks returns the rows [start, end) of a fixed-width column (numbers, vectors) as raw values, ascending by row. Pages whose
// values lie plain, or behind control words, are not copied; others are decoded into memory that the garbage collector owns.
// Errors: ErrInvalid for other columns and for rows the file does not have; as ReadRange.
func (r *Reader) FixedBlocks(ctx context.Context, col Column, start, end uint64) ([]FixedBlock, error) {
	return r.FixedBlocksHeld(ctx, col, start, end, nil)
}

// FixedBlocksHeld is FixedBlocks whose memory beside mappings held pays for, until the caller is done with the blocks. Errors: ErrMemoryLimit; as FixedBlocks.
func (r *Reader) FixedBlocksHeld(ctx context.Context, col Column, start, end uint64, held *mem.Reservation) ([]FixedBlock, error) {
	if start > end || end > r.rows {
		return nil, errs.New(errs.ErrInvalid, "file %s: rows [%d, %d) of %d", r.file.Path(), start, end, r.rows)
	}
	blocks, err := r.fixedBlocks(ctx, col, span{start, end}, held)
	return blocks, r.wrap(err)
}

func (r *Reader) fixedBlocks(ctx context.Context, col Column, s span, held *mem.Reservation) ([]FixedBlock, error) {
	p, err := r.newPlan([]Column{col})
	if err != nil {
		return nil, err
	}
	if len(p.leaves) != 1 || len(p.leaves[0].specs) != 1 || p.leaves[0].specs[0].List || p.roots[0].kind != nodeLeaf {
		return nil, errs.New(errs.ErrInvalid, "column %q is not of fixed width", col.Field.Name)
	}
	if sh := p.leaves[0].shape; sh.Kind != encoding.Fixed || sh.ItemBits%8 != 0 {
		return nil, errs.New(errs.ErrInvalid, "column %q is not of fixed width", col.Field.Name)
	}
	q := &readCall{r: r, plan: p, mem: memory.DefaultAllocator, held: held}
	defer q.release()
	lr, err := q.newLeaf(p.leaves[0], r.rows, []span{s})
	if err != nil {
		return nil, err
	}
	q.leaves = []*leafRead{lr}
	if err := q.fetch(ctx); err != nil {
		return nil, err
	}
	sc, _ := r.scratch.Get().(*scratch)
	defer r.scratch.Put(sc)
	var out []FixedBlock
	for _, pt := range lr.parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if out, err = q.blocksOf(ctx, out, lr.plan, pt, sc); err != nil {
			return nil, inPage(err, pt.page)
		}
	}
	return out, nil
}

// blocksOf appends the blocks of one page.
func (q *readCall) blocksOf(ctx context.Context, out []FixedBlock, l *leafPlan, p *part, s *scratch) ([]FixedBlock, error) {
	switch layout := p.layout.(type) {
	case *zipPage:
		if b, ok := layout.block(p); ok {
			return append(out, b), nil
		}
	case *miniPage:
		if layout.isFlat() {
			return layout.blocks(out, p, s, q.r.codecs)
		}
	case *v20Page:
		if b, ok := layout.block(p); ok {
			return append(out, b), nil
		}
	}
	b, err := q.decodedBlock(ctx, l, p, s)
	return append(out, b), err
}

// block is the values where they lie, with the control word as part of the stride.
func (z *zipPage) block(p *part) (FixedBlock, bool) {
	if z.length > 0 || z.hasRep || !z.values.IsPlain() {
		return FixedBlock{}, false
	}
	got, _ := p.state.([][]byte)
	b := FixedBlock{
		FirstRow: p.page.first + p.spans[0].from, Rows: spanRows(p.spans), Data: got[0],
		OffsetBytes: z.control, StrideBytes: int(z.stride()), ValueBytes: z.values.ValueBytes(),
	}
	if z.hasDef {
		data, stride := b.Data, b.StrideBytes
		b.Validity = func(i int) bool {
			_, def := z.controlWord(data[i*stride:])
			return def == 0
		}
	}
	return b, true
}

// isFlat reports whether chunks hold the values as they are.
func (m *miniPage) isFlat() bool { return m.dictEncoding == nil && m.values.IsFlat() }

// blocks returns one block a chunk.
func (m *miniPage) blocks(out []FixedBlock, p *part, s *scratch, codecs *encoding.Codecs) ([]FixedBlock, error) {
	st, _ := p.state.(*miniState)
	c := &miniCursor{m: m, st: st, s: s, open: -1, codecs: codecs}
	sp := p.spans[0]
	from, to := m.chunksOf(st.chunks, sp)
	width := m.shape.Bits() / 8
	for i := from; i < to; i++ {
		if err := c.openChunk(i); err != nil {
			return nil, err
		}
		first := st.chunks.items[i]
		a, b := max(first, int64(sp.from))-first, min(st.chunks.items[i+1], int64(sp.to))-first
		if a >= b {
			continue
		}
		data, err := m.values.FlatBytes(s.chunk, m.shape)
		if err != nil {
			return nil, c.locate(err)
		}
		block := FixedBlock{
			FirstRow: p.page.first + uint64(first+a), Rows: int(b - a), Data: data[int(a)*width : int(b)*width],
			StrideBytes: width, ValueBytes: width,
		}
		if m.def != nil {
			if c.levels != c.items {
				return nil, c.corrupt("%d levels for %d values", c.levels, c.items)
			}
			s.def = s.def[:0]
			if err := c.appendDef(int(a), int(b)); err != nil {
				return nil, err
			}
			def := append([]uint16(nil), s.def...)
			block.Validity = func(i int) bool { return def[i] == 0 }
		}
		out = append(out, block)
	}
	return out, nil
}

// block is the values where they lie, with the bitmap beside them.
func (v *v20Page) block(p *part) (FixedBlock, bool) {
	a := &v.root
	if a.values == nil || a.values.scheme != "" || (a.validity != nil && a.validity.scheme != "") {
		return FixedBlock{}, false
	}
	for _, b := range a.itemValidity {
		if b != nil {
			return FixedBlock{}, false
		}
	}
	st, _ := p.state.(*v20State)
	width := a.shape.Bits() / 8
	b := FixedBlock{FirstRow: p.page.first + p.spans[0].from, Rows: spanRows(p.spans), StrideBytes: width, ValueBytes: width}
	b.Data = st.first[len(st.first)-1]
	if a.validity != nil {
		bits, first := st.first[0], int(p.spans[0].from%8)
		b.Validity = func(i int) bool { return bits[(first+i)/8]>>((first+i)%8)&1 == 1 }
	}
	return b, true
}

// decodedBlock decodes a page whose values do not lie plain.
func (q *readCall) decodedBlock(ctx context.Context, l *leafPlan, p *part, s *scratch) (FixedBlock, error) {
	if err := q.held.Grow(int64(spanRows(p.spans)) * int64(l.shape.Bits()/8)); err != nil {
		return FixedBlock{}, err
	}
	lr := &leafRead{q: q, plan: l, parts: []*part{p}, copies: true}
	defer lr.release()
	if err := lr.decode(ctx, s); err != nil {
		return FixedBlock{}, err
	}
	width := l.shape.Bits() / 8
	b := FixedBlock{FirstRow: p.page.first + p.spans[0].from, Rows: lr.values.N, StrideBytes: width, ValueBytes: width}
	valid := lr.values.ValidItems(&lr.nest.Layers[0])
	b.Data = lr.values.TakeFixed().Bytes()
	if valid != nil {
		b.Validity = func(i int) bool { return valid[i>>3]>>(i&7)&1 == 1 }
	}
	return b, nil
}
