package expr

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
)

const (
	typeDepthMax   = 32
	typeFieldsMax  = 1 << 16
	vectorWidthMax = 1 << 24
)

// dataType writes a type: its Arrow id and parameters.
func (w *encoder) dataType(t arrow.DataType) { //nolint:funlen // a flat switch
	if ext, ok := t.(arrow.ExtensionType); ok {
		t = ext.StorageType()
	}
	w.byte(byte(t.ID()))
	switch x := t.(type) {
	case arrow.DecimalType:
		w.int(int64(x.GetPrecision()))
		w.int(int64(x.GetScale()))
	case *arrow.FixedSizeBinaryType:
		w.uint(uint64(x.ByteWidth))
	case *arrow.TimestampType:
		w.byte(byte(x.Unit))
		w.text(x.TimeZone)
	case *arrow.Time32Type:
		w.byte(byte(x.Unit))
	case *arrow.Time64Type:
		w.byte(byte(x.Unit))
	case *arrow.DurationType:
		w.byte(byte(x.Unit))
	case *arrow.ListType:
		w.field(x.ElemField())
	case *arrow.LargeListType:
		w.field(x.ElemField())
	case *arrow.FixedSizeListType:
		w.uint(uint64(x.Len()))
		w.field(x.ElemField())
	case *arrow.MapType:
		w.field(x.KeyField())
		w.field(x.ItemField())
		w.flag(x.KeysSorted)
	case *arrow.StructType:
		w.uint(uint64(x.NumFields()))
		for _, f := range x.Fields() {
			w.field(f)
		}
	case *arrow.DictionaryType:
		w.dataType(x.IndexType)
		w.dataType(x.ValueType)
		w.flag(x.Ordered)
	default:
		if _, ok := simpleType(t.ID()); !ok {
			w.fail(errs.New(errs.ErrUnsupported, "a plan over a column of type %s", t))
		}
	}
}

func (w *encoder) flag(b bool) { w.byte(b2u(b)) }

func (w *encoder) field(f arrow.Field) {
	w.text(f.Name)
	w.flag(f.Nullable)
	w.dataType(f.Type)
}

// simpleType is a type without parameters.
func simpleType(id arrow.Type) (arrow.DataType, bool) { //nolint:funlen // a flat switch
	switch id {
	case arrow.NULL:
		return arrow.Null, true
	case arrow.BOOL:
		return arrow.FixedWidthTypes.Boolean, true
	case arrow.INT8:
		return arrow.PrimitiveTypes.Int8, true
	case arrow.INT16:
		return arrow.PrimitiveTypes.Int16, true
	case arrow.INT32:
		return arrow.PrimitiveTypes.Int32, true
	case arrow.INT64:
		return arrow.PrimitiveTypes.Int64, true
	case arrow.UINT8:
		return arrow.PrimitiveTypes.Uint8, true
	case arrow.UINT16:
		return arrow.PrimitiveTypes.Uint16, true
	case arrow.UINT32:
		return arrow.PrimitiveTypes.Uint32, true
	case arrow.UINT64:
		return arrow.PrimitiveTypes.Uint64, true
	case arrow.FLOAT16:
		return arrow.FixedWidthTypes.Float16, true
	case arrow.FLOAT32:
		return arrow.PrimitiveTypes.Float32, true
	case arrow.FLOAT64:
		return arrow.PrimitiveTypes.Float64, true
	case arrow.STRING:
		return arrow.BinaryTypes.String, true
	case arrow.LARGE_STRING:
		return arrow.BinaryTypes.LargeString, true
	case arrow.STRING_VIEW:
		return arrow.BinaryTypes.StringView, true
	case arrow.BINARY:
		return arrow.BinaryTypes.Binary, true
	case arrow.LARGE_BINARY:
		return arrow.BinaryTypes.LargeBinary, true
	case arrow.BINARY_VIEW:
		return arrow.BinaryTypes.BinaryView, true
	case arrow.DATE32:
		return arrow.FixedWidthTypes.Date32, true
	case arrow.DATE64:
		return arrow.FixedWidthTypes.Date64, true
	}
	return nil, false
}

func (r *decoder) unit() arrow.TimeUnit {
	u := r.byte()
	if u > byte(arrow.Nanosecond) {
		r.fail("time unit %d", u)
	}
	return arrow.TimeUnit(u & 3)
}

func (r *decoder) field(depth int) arrow.Field {
	name := r.text()
	nullable := r.byte() == 1
	return arrow.Field{Name: name, Nullable: nullable, Type: r.dataType(depth + 1)}
}

func (r *decoder) dataType(depth int) arrow.DataType { //nolint:funlen // a flat switch
	if depth > typeDepthMax {
		r.fail("a type nests deeper than %d", typeDepthMax)
	}
	id := arrow.Type(r.byte())
	if r.err != nil {
		return arrow.Null
	}
	if t, ok := simpleType(id); ok {
		return t
	}
	switch id {
	case arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256:
		return r.decimalType(id)
	case arrow.FIXED_SIZE_BINARY:
		return &arrow.FixedSizeBinaryType{ByteWidth: r.width()}
	case arrow.TIMESTAMP:
		u := r.unit()
		return &arrow.TimestampType{Unit: u, TimeZone: r.text()}
	case arrow.TIME32:
		if u := r.unit(); u <= arrow.Millisecond {
			return &arrow.Time32Type{Unit: u}
		}
		r.fail("time32 of a finer unit")
	case arrow.TIME64:
		if u := r.unit(); u > arrow.Millisecond {
			return &arrow.Time64Type{Unit: u}
		}
		r.fail("time64 of a coarser unit")
	case arrow.DURATION:
		return &arrow.DurationType{Unit: r.unit()}
	case arrow.LIST:
		return arrow.ListOfField(r.field(depth))
	case arrow.LARGE_LIST:
		return arrow.LargeListOfField(r.field(depth))
	case arrow.FIXED_SIZE_LIST:
		n := r.width()
		return arrow.FixedSizeListOfField(int32(max(n, 1)), r.field(depth))
	case arrow.MAP:
		k, v := r.field(depth), r.field(depth)
		m := arrow.MapOfFields(arrow.Field{Name: k.Name, Type: k.Type}, v)
		m.KeysSorted = r.byte() == 1
		return m
	case arrow.STRUCT:
		return r.structType(depth)
	case arrow.DICTIONARY:
		return r.dictionaryType(depth)
	default:
		r.fail("type %d", id)
	}
	return arrow.Null
}

func (r *decoder) width() int {
	n := r.uint()
	if n > vectorWidthMax {
		r.fail("width %d", n)
	}
	return int(min(n, vectorWidthMax))
}

func (r *decoder) decimalType(id arrow.Type) arrow.DataType {
	p, s := r.int(), r.int()
	most := map[arrow.Type]int64{arrow.DECIMAL32: 9, arrow.DECIMAL64: 18, arrow.DECIMAL128: 38, arrow.DECIMAL256: 76}[id]
	if p < 1 || p > most || s < 0 || s > p {
		r.fail("decimal(%d,%d)", p, s)
		return arrow.Null
	}
	switch id {
	case arrow.DECIMAL32:
		return &arrow.Decimal32Type{Precision: int32(p), Scale: int32(s)}
	case arrow.DECIMAL64:
		return &arrow.Decimal64Type{Precision: int32(p), Scale: int32(s)}
	case arrow.DECIMAL128:
		return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)}
	}
	return &arrow.Decimal256Type{Precision: int32(p), Scale: int32(s)}
}

func (r *decoder) structType(depth int) arrow.DataType {
	n := r.count(3)
	if n > typeFieldsMax {
		r.fail("%d fields", n)
	}
	fields := make([]arrow.Field, 0, min(n, 64))
	for range n {
		if r.err != nil {
			return arrow.Null
		}
		fields = append(fields, r.field(depth))
	}
	if r.err != nil {
		return arrow.Null
	}
	return arrow.StructOf(fields...)
}

func (r *decoder) dictionaryType(depth int) arrow.DataType {
	index, value := r.dataType(depth+1), r.dataType(depth+1)
	ordered := r.byte() == 1
	if c := classOf(index); c != classInt && c != classUint || storageType(index) != index {
		r.fail("dictionary index of type %s", index)
		return arrow.Null
	}
	if id := value.ID(); id == arrow.DICTIONARY || id == arrow.NULL {
		r.fail("dictionary of %s", value)
		return arrow.Null
	}
	return &arrow.DictionaryType{IndexType: index, ValueType: value, Ordered: ordered}
}
