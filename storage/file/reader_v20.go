package file

import (
	"context"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/enc20pb"
)

// In version 2.0 every field has a column of its own: the column of a list holds offsets into the items of its child's column, and
// the column of a struct holds nothing. So a list is read in rounds of its own before its child can start.

// addV20 builds the node of n.field and those below.
func (p *plan) addV20(r *Reader, c Column, n *node, depth int) error {
	f := n.field
	if depth >= encoding.MaxLayers {
		return errs.New(errs.ErrUnsupported, "column %q nests more than %d deep", c.Field.Name, encoding.MaxLayers)
	}
	column, ok := c.Index[f.ID]
	if !ok || column < 0 {
		n.kind = nodeMissing
		return nil
	}
	if column >= len(r.columns) {
		return errs.Corrupt("columns", -1, "field %d in column %d of %d", f.ID, column, len(r.columns))
	}
	spec := encoding.LayerSpec{}
	leaf := len(f.Children) == 0
	switch f.Type.(type) {
	case *arrow.StructType:
		if isPacked(f) {
			return errs.New(errs.ErrUnsupported, "column %q: packed structs of version 2.0 are not supported", c.Field.Name)
		}
		n.kind = nodeStruct
	case *arrow.ListType, *arrow.MapType:
		n.kind, spec.List = nodeList, true
	case *arrow.LargeListType:
		n.kind, spec.List, spec.Wide = nodeList, true, true
	default:
		n.kind = nodeLeaf
		if !leaf {
			return errs.New(errs.ErrUnsupported, "column %q: type %s in version 2.0", c.Field.Name, f.Type)
		}
	}
	if n.kind != nodeStruct {
		l := &leafPlan{field: f, typ: f.Type, column: column, scale: 1, v20: true, specs: []encoding.LayerSpec{spec}}
		if n.kind == nodeLeaf {
			var err error
			if l.shape, err = shapeOf(f, f.Type); err != nil {
				return err
			}
		}
		n.leaf = len(p.leaves)
		p.leaves = append(p.leaves, l)
	}
	for _, child := range f.Children {
		cn := &node{field: child, leaf: -1}
		if err := p.addV20(r, c, cn, depth+1); err != nil {
			return err
		}
		n.children = append(n.children, cn)
	}
	return nil
}

// v20Wait is a list whose offsets are on their way.
type v20Wait struct {
	node  *node
	lr    *leafRead
	parts []*part
}

func (q *readCall) readV20(ctx context.Context, spans []span) (arrow.RecordBatch, error) {
	q.leaves = make([]*leafRead, len(q.plan.leaves))
	var pending []*part
	var waits []v20Wait
	for _, n := range q.plan.roots {
		if err := q.startV20(n, q.r.rows, spans, &pending, &waits); err != nil {
			return nil, err
		}
	}
	for len(pending) > 0 || len(waits) > 0 {
		var err error
		if pending, err = q.round(ctx, pending); err != nil {
			return nil, err
		}
		busy := make(map[*part]bool, len(pending))
		for _, p := range pending {
			busy[p] = true
		}
		still := waits[:0:0]
		for _, w := range waits {
			if anyBusy(w.parts, busy) {
				still = append(still, w)
				continue
			}
			if err := q.finishList(ctx, w, &pending, &still); err != nil {
				return nil, err
			}
		}
		waits = still
	}
	s, _ := q.r.scratch.Get().(*scratch)
	defer q.r.scratch.Put(s)
	for _, lr := range q.leaves {
		if lr == nil || lr.plan.specs[0].List {
			continue
		}
		if err := lr.decode(ctx, s); err != nil {
			return nil, err
		}
	}
	return q.assemble()
}

func anyBusy(parts []*part, busy map[*part]bool) bool {
	for _, p := range parts {
		if busy[p] {
			return true
		}
	}
	return false
}

// startV20 starts reading the spans of a field whose column has the given rows.
func (q *readCall) startV20(n *node, rows uint64, spans []span, pending *[]*part, waits *[]v20Wait) error {
	switch n.kind {
	case nodeMissing:
		return nil
	case nodeStruct:
		for _, c := range n.children {
			if err := q.startV20(c, rows, spans, pending, waits); err != nil {
				return err
			}
		}
		return nil
	}
	lr, err := q.newLeaf(q.plan.leaves[n.leaf], rows, spans)
	if err != nil {
		return err
	}
	q.leaves[n.leaf] = lr
	*pending = append(*pending, lr.parts...)
	if n.kind == nodeList {
		*waits = append(*waits, v20Wait{node: n, lr: lr, parts: lr.parts})
	}
	return nil
}

// finishList decodes the offsets of a list and starts its child on the items that they name.
func (q *readCall) finishList(ctx context.Context, w v20Wait, pending *[]*part, waits *[]v20Wait) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	col := q.r.columns[w.lr.plan.column]
	bases := make([]uint64, len(col.pages)) // items before each page
	var items uint64
	for i, pg := range col.pages {
		rd, err := pg.open(w.lr.plan)
		if err != nil {
			return err
		}
		lp, ok := rd.(*v20List)
		if !ok {
			return errs.Corrupt(pg.section(), -1, "not a list")
		}
		bases[i] = items
		if items += lp.items; items > rowsMax {
			return errs.Corrupt(pg.section(), -1, "%d items", items)
		}
	}
	w.lr.nest = encoding.NewNesting(q.mem, w.lr.plan.specs)
	var spans []span
	for _, p := range w.parts {
		lp, _ := p.layout.(*v20List)
		own, err := lp.decodeLists(w.lr, p)
		if err != nil {
			return inPage(err, p.page)
		}
		for _, s := range own {
			s.from, s.to = s.from+bases[p.page.index], s.to+bases[p.page.index]
			if k := len(spans); k > 0 && spans[k-1].to == s.from {
				spans[k-1].to = s.to
			} else if s.from < s.to {
				spans = append(spans, s)
			}
		}
	}
	for _, c := range w.node.children {
		if err := q.startV20(c, items, spans, pending, waits); err != nil {
			return err
		}
	}
	return nil
}

// v20List reads the pages of list columns.
type v20List struct {
	page       *page
	offsets    v20Array
	items      uint64
	adjustment uint64
}

func (p *page) compileV20List(_ *leafPlan) (pageReader, error) {
	root, err := p.parseV20()
	if err != nil {
		return nil, err
	}
	for range v20DepthMax { // an all-null wrapper was never seen; a no-null one is harmless
		if n := root.GetNullable().GetNoNulls(); n != nil {
			root = n.GetValues()
		}
	}
	l, ok := root.GetArrayEncoding().(*enc20pb.ArrayEncoding_List)
	if !ok {
		return nil, errs.New(errs.ErrUnsupported, "lists encoded as %T are not supported", root.GetArrayEncoding())
	}
	v := &v20Page{page: p}
	out := &v20List{page: p, items: l.List.GetNumItems(), adjustment: l.List.GetNullOffsetAdjustment()}
	if out.adjustment == 0 {
		out.adjustment = math.MaxInt64
	}
	if out.items > math.MaxInt32 {
		return nil, errs.New(errs.ErrUnsupported, "a page of %d list items is not supported", out.items)
	}
	b, err := v.flatOf(l.List.GetOffsets())
	if err != nil {
		return nil, err
	}
	if b.bits != 64 {
		return nil, errs.New(errs.ErrUnsupported, "list offsets of %d bits are not supported", b.bits)
	}
	out.offsets = v20Array{ends: b, adjustment: out.adjustment}
	return out, v.check(&out.offsets, int64(p.rows))
}

func (l *v20List) fetch(_ *Reader, p *part) ([]object.Range, error) {
	if p.step != stepStart {
		p.state = p.got
		return nil, nil
	}
	p.step = stepData
	var rs []object.Range
	for _, s := range p.spans {
		rs = append(rs, l.offsets.ends.cutEnds(s))
	}
	return rs, nil
}

func (l *v20List) decode(*leafRead, *part, *scratch) error {
	return errs.New(errs.ErrInternal, "list offsets are decoded while fetching")
}

// decodeLists appends the lists of p and returns the items of each span, counted from the start of the page.
func (l *v20List) decodeLists(lr *leafRead, p *part) ([]span, error) {
	got, _ := p.state.([][]byte)
	out := make([]span, len(p.spans))
	for i, s := range p.spans {
		ends, err := l.offsets.ends.plain(got[i], lr.q.r.codecs)
		if err != nil {
			return nil, err
		}
		own, start, err := l.offsets.spanEnds(ends, s)
		if err != nil {
			return nil, err
		}
		end, err := lr.nest.Layers[0].AppendLists(own, int(s.to-s.from), start, l.adjustment)
		if err != nil {
			return nil, err
		}
		if end > l.items || start > end {
			return nil, errs.Corrupt("offsets", l.offsets.ends.at.Offset, "items [%d, %d) of %d", start, end, l.items)
		}
		out[i] = span{start, end}
	}
	return out, nil
}

// buildV20 puts the array of a field of a 2.0 file together; rows is its length. The caller releases it.
func (q *readCall) buildV20(n *node, rows int) (arrow.ArrayData, error) {
	if n.kind == nodeLeaf {
		return q.buildLeaf(n)
	}
	var bufs []*memory.Buffer
	below, nulls := rows, 0
	if n.kind == nodeList {
		layer := &q.leaves[n.leaf].nest.Layers[0]
		below = layer.Items()
		rows = layer.N
		var validity *memory.Buffer
		validity, nulls = layer.TakeValidity()
		bufs = []*memory.Buffer{validity, layer.TakeOffsets()}
	} else {
		bufs = []*memory.Buffer{nil}
	}
	defer releaseAll(bufs)
	children := make([]arrow.ArrayData, 0, len(n.children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range n.children {
		d, err := q.build(c, below)
		if err != nil {
			return nil, err
		}
		children = append(children, d)
		if d.Len() != below {
			return nil, errs.Corrupt("column "+n.field.Name, -1, "%d values of %q for %d", d.Len(), c.field.Name, below)
		}
	}
	return array.NewData(n.field.Type, rows, bufs, children, nulls, 0), nil
}
