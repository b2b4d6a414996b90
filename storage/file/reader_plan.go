package file

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/schema"
)

// node is one field of a requested column and how its array is put together.
type node struct {
	field    *schema.Field
	kind     nodeKind
	children []*node
	leaf     int // leaves: index in plan.leaves; others: the first leaf below, which knows the layer; -1 = none below
	layer    int // index of the field's layer in that leaf
}

type nodeKind uint8

const (
	nodeMissing nodeKind = iota // not in the file: reads as null
	nodeLeaf
	nodeStruct
	nodeList // list, large list, map
	nodeStructList
)

// leafPlan is one physical column to read.
type leafPlan struct {
	field  *schema.Field
	typ    arrow.DataType
	column int
	shape  encoding.Shape // of the values; of the dictionary's values where typ is a dictionary
	specs  []encoding.LayerSpec
	// scale is how many entries of the page make one row: the sizes of fixed-size lists of structs above all lists.
	scale uint64
	v20   bool // the column belongs to a file of version 2.0: specs is the layer of the field alone
	codes bool // codes will do where all rows lie in one page that has a dictionary
}

// plan is the requested columns of one read.
type plan struct {
	roots  []*node
	leaves []*leafPlan
	schema *arrow.Schema
}

func (r *Reader) newPlan(cols []Column) (*plan, error) {
	p := &plan{}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		if c.Field == nil || c.Field.Type == nil {
			return nil, errs.New(errs.ErrInvalid, "column %d has no field", i)
		}
		n, err := p.add(r, c, c.Field, nil)
		if err != nil {
			return nil, err
		}
		p.roots = append(p.roots, n)
		fields[i] = c.Field.Arrow()
	}
	p.schema = arrow.NewSchema(fields, nil)
	return p, nil
}

// add builds the node of f. above are the layers of the fields above it, outer-most first.
func (p *plan) add(r *Reader, c Column, f *schema.Field, above []encoding.LayerSpec) (*node, error) {
	if len(above) >= encoding.MaxLayers {
		return nil, errs.New(errs.ErrUnsupported, "column %q nests more than %d deep", c.Field.Name, encoding.MaxLayers)
	}
	if isBlobV2(f) {
		return nil, errs.New(errs.ErrUnsupported, "column %q: blob columns (%s) are not supported", c.Field.Name, f.Metadata[extensionName])
	}
	n := &node{field: f, leaf: -1}
	if r.version == V20 {
		return n, p.addV20(r, c, n, len(above))
	}
	if len(f.Children) == 0 || isPacked(f) {
		return n, p.addLeaf(r, c, n, above)
	}
	spec := encoding.LayerSpec{}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		n.kind = nodeStruct
	case *arrow.ListType, *arrow.MapType:
		n.kind, spec.List = nodeList, true
	case *arrow.LargeListType:
		n.kind, spec.List, spec.Wide = nodeList, true, true
	case *arrow.FixedSizeListType:
		n.kind, spec.Times = nodeStructList, int(t.Len())
	default:
		return nil, errs.New(errs.ErrUnsupported, "column %q: type %s with children", c.Field.Name, f.Type)
	}
	above = append(slices.Clip(above), spec)
	for _, child := range f.Children {
		cn, err := p.add(r, c, child, above)
		if err != nil {
			return nil, err
		}
		if n.leaf < 0 {
			n.leaf = cn.leaf
		}
		n.children = append(n.children, cn)
	}
	if n.leaf < 0 {
		return &node{field: f, kind: nodeMissing, leaf: -1}, nil
	}
	n.layer = len(p.leaves[n.leaf].specs) - len(above)
	return n, nil
}

func (p *plan) addLeaf(r *Reader, c Column, n *node, above []encoding.LayerSpec) error {
	column, ok := c.Index[n.field.ID]
	if !ok || column < 0 {
		n.kind = nodeMissing
		return nil
	}
	if column >= len(r.columns) {
		return errs.Corrupt("columns", -1, "field %d in column %d of %d", n.field.ID, column, len(r.columns))
	}
	l := &leafPlan{field: n.field, typ: n.field.Type, column: column, scale: 1}
	var err error
	if l.shape, err = shapeOf(n.field, l.typ); err != nil {
		return err
	}
	l.specs = make([]encoding.LayerSpec, 0, len(above)+1)
	l.specs = append(l.specs, encoding.LayerSpec{})
	for _, s := range slices.Backward(above) {
		l.specs = append(l.specs, s)
		if s.List {
			l.scale = 1
		} else if s.Times > 1 {
			l.scale *= uint64(s.Times)
		}
	}
	l.codes = c.Codes && len(above) == 0 && l.shape.Kind == encoding.Variable && l.typ.ID() != arrow.DICTIONARY
	n.kind, n.leaf = nodeLeaf, len(p.leaves)
	p.leaves = append(p.leaves, l)
	return nil
}

// shapeOf returns the physical form of a leaf's values.
func shapeOf(f *schema.Field, t arrow.DataType) (encoding.Shape, error) {
	switch t := t.(type) {
	case *arrow.NullType:
		return encoding.Shape{Kind: encoding.Null}, nil
	case *arrow.StringType, *arrow.BinaryType:
		return encoding.Shape{Kind: encoding.Variable}, nil
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return encoding.Shape{Kind: encoding.Variable, Wide: true}, nil
	case *arrow.DictionaryType:
		return shapeOf(f, t.ValueType)
	case *arrow.FixedSizeListType:
		inner, err := shapeOf(f, t.Elem())
		if err != nil {
			return inner, err
		}
		if inner.Kind != encoding.Fixed {
			return inner, errs.New(errs.ErrUnsupported, "column %q: type %s", f.Name, t)
		}
		inner.Dims = append([]int{int(t.Len())}, inner.Dims...)
		return inner, nil
	case *arrow.StructType:
		return packedShape(f)
	case arrow.FixedWidthDataType:
		return encoding.Shape{Kind: encoding.Fixed, ItemBits: t.BitWidth()}, nil
	default:
		return encoding.Shape{}, errs.New(errs.ErrUnsupported, "column %q: type %s", f.Name, t)
	}
}

func packedShape(f *schema.Field) (encoding.Shape, error) {
	s := encoding.Shape{Kind: encoding.Packed, Fields: make([]encoding.Shape, len(f.Children))}
	for i, c := range f.Children {
		inner, err := shapeOf(c, c.Type)
		if err != nil {
			return s, err
		}
		if inner.Kind != encoding.Fixed && inner.Kind != encoding.Variable {
			return s, errs.New(errs.ErrUnsupported, "column %q: type %s inside a packed struct", f.Name, c.Type)
		}
		s.Fields[i] = inner
	}
	return s, nil
}

// same reports whether a page that was compiled for l can be read for m.
func (l *leafPlan) same(m *leafPlan) bool {
	return l == m || (l.v20 == m.v20 && sameShape(&l.shape, &m.shape) && slices.Equal(l.specs, m.specs) && l.typ.ID() == m.typ.ID())
}

func sameShape(a, b *encoding.Shape) bool {
	if a.Kind != b.Kind || a.ItemBits != b.ItemBits || a.Wide != b.Wide || !slices.Equal(a.Dims, b.Dims) || len(a.Fields) != len(b.Fields) {
		return false
	}
	for i := range a.Fields {
		if !sameShape(&a.Fields[i], &b.Fields[i]) {
			return false
		}
	}
	return true
}
