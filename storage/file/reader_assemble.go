package file

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/schema"
)

// build puts the array of a field together; rows is its length where nothing below tells. The caller releases it.
func (q *readCall) build(n *node, rows int) (arrow.ArrayData, error) {
	if n.kind == nodeMissing {
		a := array.MakeArrayOfNull(q.mem, n.field.Type, rows)
		defer a.Release()
		a.Data().Retain()
		return a.Data(), nil
	}
	if q.r.version == V20 {
		return q.buildV20(n, rows)
	}
	if n.kind == nodeLeaf {
		return q.buildLeaf(n)
	}
	layer := &q.leaves[n.leaf].nest.Layers[n.layer]
	length := layer.N
	var below int
	switch n.kind {
	case nodeStruct:
		below = length
	case nodeStructList:
		below = length * layer.Spec.Times
	default:
		below = q.leaves[n.leaf].nest.Layers[n.layer-1].N
	}
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
	validity, nulls := layer.TakeValidity()
	bufs := []*memory.Buffer{validity}
	if n.kind == nodeList {
		bufs = append(bufs, layer.TakeOffsets())
	}
	defer releaseAll(bufs)
	return array.NewData(n.field.Type, length, bufs, children, nulls, 0), nil
}

func releaseAll(bufs []*memory.Buffer) {
	for _, b := range bufs {
		if b != nil {
			b.Release()
		}
	}
}

func (q *readCall) buildLeaf(n *node) (arrow.ArrayData, error) {
	l := q.leaves[n.leaf]
	layer := &l.nest.Layers[0]
	length := layer.N
	validity, nulls := layer.TakeValidity()
	if validity != nil {
		defer validity.Release()
	}
	typ := l.plan.typ
	switch {
	case l.codes != nil:
		if l.codes.N != length {
			return nil, errs.Corrupt("column "+n.field.Name, -1, "%d codes for %d items", l.codes.N, length)
		}
		return l.codesData(validity, nulls), nil
	case l.direct != nil:
		values := memory.NewBufferBytes(l.direct)
		return fixedData(typ, length, validity, nulls, values, nil), nil
	case typ.ID() == arrow.NULL:
		return array.NewData(typ, length, []*memory.Buffer{nil}, nil, length, 0), nil
	case l.isDictionary():
		return l.dicts.data(typ, q.mem, validity, nulls)
	default:
		if l.values.N != length {
			return nil, errs.Corrupt("column "+n.field.Name, -1, "%d values for %d items", l.values.N, length)
		}
		return valuesData(l.values, l.plan.field, typ, validity, nulls)
	}
}

// valuesData takes the decoded values as an array of type t. The caller releases it; validity stays the caller's.
func valuesData(v *encoding.Values, f *schema.Field, t arrow.DataType, validity *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	switch v.Shape.Kind {
	case encoding.Variable:
		offsets, data := v.TakeVariable()
		defer offsets.Release()
		defer data.Release()
		return array.NewData(t, v.N, []*memory.Buffer{validity, offsets, data}, nil, nulls, 0), nil
	case encoding.Packed:
		return packedData(v, f, t, validity, nulls)
	default:
		values := v.TakeFixed()
		defer values.Release()
		return fixedData(t, v.N, validity, nulls, values, v), nil
	}
}

// fixedData builds an array over fixed-width values; v holds the validity of the items of lists, nil = all valid.
func fixedData(t arrow.DataType, n int, validity *memory.Buffer, nulls int, values *memory.Buffer, v *encoding.Values) arrow.ArrayData {
	return fixedLevel(t, n, 0, validity, nulls, values, v)
}

func fixedLevel(t arrow.DataType, n, level int, validity *memory.Buffer, nulls int, values *memory.Buffer, v *encoding.Values) arrow.ArrayData {
	list, ok := t.(*arrow.FixedSizeListType)
	if !ok {
		return array.NewData(t, n, []*memory.Buffer{validity, values}, nil, nulls, 0)
	}
	var itemValidity *memory.Buffer
	itemNulls := 0
	if v != nil {
		if itemValidity, itemNulls = v.TakeItemValidity(level); itemValidity != nil {
			defer itemValidity.Release()
		}
	}
	items := fixedLevel(list.Elem(), n*int(list.Len()), level+1, itemValidity, itemNulls, values, v)
	defer items.Release()
	return array.NewData(t, n, []*memory.Buffer{validity}, []arrow.ArrayData{items}, nulls, 0)
}

func packedData(v *encoding.Values, f *schema.Field, t arrow.DataType, validity *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	children := make([]arrow.ArrayData, 0, len(f.Children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i, c := range f.Children {
		d, err := valuesData(v.Field(i), c, c.Type, nil, 0)
		if err != nil {
			return nil, err
		}
		children = append(children, d)
	}
	return array.NewData(t, v.N, []*memory.Buffer{validity}, children, nulls, 0), nil
}
