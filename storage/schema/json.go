package schema

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// JSONLogical is the logical type string of JSON fields, whose values are stored as JSONB.
const JSONLogical = "json"

// HasJSON says that the field is JSON, or has JSON somewhere below.
func (f *Field) HasJSON() bool {
	for d := range f.All() {
		if d.Logical == JSONLogical {
			return true
		}
	}
	return false
}

// WithJSON is the field as Arrow sees it, with leaf in place of the type of JSON.
func (f *Field) WithJSON(leaf arrow.DataType) arrow.Field {
	out := f.Arrow()
	out.Type = f.typeWithJSON(leaf)
	return out
}

func (f *Field) typeWithJSON(leaf arrow.DataType) arrow.DataType {
	if f.Logical == JSONLogical {
		return leaf
	}
	if !f.HasJSON() {
		return f.Type
	}
	children := make([]arrow.Field, len(f.Children))
	for i, c := range f.Children {
		children[i] = c.WithJSON(leaf)
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		return arrow.StructOf(children...)
	case *arrow.ListType:
		return arrow.ListOfField(children[0])
	case *arrow.LargeListType:
		return arrow.LargeListOfField(children[0])
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), children[0])
	case *arrow.MapType:
		entries := children[0].Type.(*arrow.StructType)
		return arrow.MapOfFields(entries.Field(0), entries.Field(1))
	}
	return f.Type
}

// MapJSON returns an array of the field in which every array of JSON is replaced by what convert makes of it, of the type leaf. The caller releases it, convert's
// results are released here. Arrays without JSON are shared, and so are those of another type than the field's.
func (f *Field) MapJSON(arr arrow.Array, leaf arrow.DataType, convert func(arrow.Array) (arrow.Array, error)) (arrow.Array, error) {
	d, err := f.mapJSON(arr.Data(), leaf, convert)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

func (f *Field) mapJSON(d arrow.ArrayData, leaf arrow.DataType, convert func(arrow.Array) (arrow.Array, error)) (arrow.ArrayData, error) {
	if f.Logical == JSONLogical {
		before := array.MakeFromData(d)
		defer before.Release()
		after, err := convert(before)
		if err != nil {
			return nil, err
		}
		defer after.Release()
		out := after.Data()
		out.Retain()
		return out, nil
	}
	if !f.HasJSON() || len(d.Children()) != len(f.Children) || d.DataType().ID() != f.Type.ID() {
		d.Retain()
		return d, nil
	}
	children := make([]arrow.ArrayData, 0, len(f.Children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i, c := range d.Children() {
		child, err := f.Children[i].mapJSON(c, leaf, convert)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return array.NewData(f.typeWithJSON(leaf), d.Len(), d.Buffers(), children, d.NullN(), d.Offset()), nil
}
