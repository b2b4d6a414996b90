package encoding

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// isPacked says that the metadata of a struct asks for one column of rows.
func isPacked(md arrow.Metadata) bool {
	for _, key := range []string{keyPacked, keyPackedOld} {
		if v, ok := md.GetValue(key); ok && v == "true" {
			return true
		}
	}
	return false
}

// packedShapeOf is the shape of a packed struct: values of fixed width if all its fields are, else rows of variable width (version 2.2).
func packedShapeOf(t *arrow.StructType, v22 bool) (leafShape, error) {
	out := leafShape{kind: leafFixed}
	for _, f := range t.Fields() {
		s, err := leafShapeOf(f.Type)
		if err != nil {
			return out, err
		}
		bits := s.kind == leafVector && s.itemBits == 1
		if s.isDictionary || bits || (s.kind != leafFixed && s.kind != leafVector && s.kind != leafVariable) {
			return out, errs.New(errs.ErrUnsupported, "field %q of type %s cannot be written in a packed struct", f.Name, f.Type)
		}
		if s.kind != leafFixed && !v22 {
			return out, errs.New(errs.ErrUnsupported, "field %q of type %s in a packed struct needs file version 2.2", f.Name, f.Type)
		}
		if s.kind != leafFixed {
			out.kind = leafVariable // the engine reads fixed-size lists in rows of variable width alone
		}
		out.valueBytes += s.valueBytes
		out.fields = append(out.fields, &leafBuilder{leafShape: s, itemValid: make([][]byte, len(s.dims))})
	}
	if len(out.fields) == 0 {
		return out, errs.New(errs.ErrUnsupported, "a struct without fields cannot be written")
	}
	return out, nil
}

func (b *leafBuilder) isRows() bool { return b.fields != nil && b.kind == leafVariable }

func (b *leafBuilder) packedSource(arr arrow.Array) leafSource {
	st, ok := arr.(*array.Struct)
	if !ok {
		return leafSource{}
	}
	src := leafSource{structure: st}
	for i, f := range b.fields {
		src.fields = append(src.fields, f.source(storageOf(st.Field(i))))
	}
	return src
}

// appendPacked adds the rows [lo, hi): the bytes of the fields one after the other, those of variable width behind their lengths.
func (b *leafBuilder) appendPacked(src leafSource, lo, hi int) error {
	for i := range b.fields {
		if err := b.refuseNulls(src.structure, i, lo, hi); err != nil {
			return err
		}
	}
	for row := lo; row < hi; row++ {
		at := len(b.data)
		for i, f := range b.fields {
			s := &src.fields[i]
			if f.kind != leafVariable {
				b.data = append(b.data, s.data[row*f.valueBytes:(row+1)*f.valueBytes]...)
				continue
			}
			var value []byte
			if f.offset64 {
				value = s.data[s.off64[row]:s.off64[row+1]]
				b.data = binary.LittleEndian.AppendUint64(b.data, uint64(len(value)))
			} else {
				value = s.data[s.off32[row]:s.off32[row+1]]
				b.data = binary.LittleEndian.AppendUint32(b.data, uint32(len(value)))
			}
			b.data = append(b.data, value...)
		}
		if b.kind != leafVariable {
			continue
		}
		if len(b.data) > math.MaxInt32 {
			return errs.New(errs.ErrUnsupported, "column %q: a page of more than 2 GiB cannot be written", b.path())
		}
		b.maxLen = max(b.maxLen, len(b.data)-at)
		b.ends = append(b.ends, uint32(len(b.data)))
	}
	return nil
}

// refuseNulls: a packed struct has levels for itself alone.
func (b *leafBuilder) refuseNulls(st *array.Struct, i, lo, hi int) error {
	field := storageOf(st.Field(i))
	null := func(arr arrow.Array, from, to int) bool {
		for at := from; arr.NullN() > 0 && at < to; at++ {
			if arr.IsNull(at) {
				return true
			}
		}
		return false
	}
	found := null(field, lo, hi)
	from, to := int64(lo), int64(hi)
	for range b.fields[i].dims {
		list, ok := field.(*array.FixedSizeList)
		if !ok || found || from == to {
			break
		}
		from, _ = list.ValueOffsets(int(from))
		_, to = list.ValueOffsets(int(to) - 1)
		field = storageOf(list.ListValues())
		found = null(field, int(from), int(to))
	}
	if found {
		name := st.DataType().(*arrow.StructType).Field(i).Name //nolint:errcheck // the struct's own type
		return errs.New(errs.ErrUnsupported, "column %q: field %q is null, which a packed struct cannot say", b.path(), name)
	}
	return nil
}

// packedStructValues are rows of fixed width.
type packedStructValues struct {
	flatValues
	fields []*leafBuilder
}

func (v packedStructValues) message() *encpb.CompressiveEncoding {
	m := &encpb.PackedStruct{Values: v.flatValues.message()}
	for _, f := range v.fields {
		m.BitsPerValue = append(m.BitsPerValue, uint64(8*f.valueBytes))
	}
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_PackedStruct{PackedStruct: m}}
}

// rowEncoding is the message of rows of variable width.
func (b *leafBuilder) rowEncoding() *encpb.CompressiveEncoding {
	m := &encpb.VariablePackedStruct{}
	for _, f := range b.fields {
		e := &encpb.VariablePackedStruct_FieldEncoding{Value: f.plainEncoding()}
		switch {
		case f.kind != leafVariable:
			e.Layout = &encpb.VariablePackedStruct_FieldEncoding_BitsPerValue{BitsPerValue: uint64(8 * f.valueBytes)}
		case f.offset64:
			e.Layout = &encpb.VariablePackedStruct_FieldEncoding_BitsPerLength{BitsPerLength: 64}
		default:
			e.Layout = &encpb.VariablePackedStruct_FieldEncoding_BitsPerLength{BitsPerLength: 32}
		}
		m.Fields = append(m.Fields, e)
	}
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_VariablePackedStruct{VariablePackedStruct: m}}
}

func (b *leafBuilder) plainEncoding() *encpb.CompressiveEncoding {
	switch b.kind {
	case leafVariable:
		return variableEncoding(b.offset64)
	case leafVector:
		return b.vectorEncoding()
	}
	return flatEncoding(8 * b.valueBytes)
}
