package encoding

import (
	"encoding/binary"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const zipSection = "full-zip values"

// Zip decodes the single values of a full-zip page.
type Zip struct {
	valueBytes    int                     // fixed-width values: bytes of one, validity of the items included; 0 = variable
	bitItems      bool                    // items of one bit
	validityBytes []int                   // fixed-width lists: validity bytes of each level, 0 = all valid
	general       encpb.CompressionScheme // of each variable value; 0 = none
	fsst          *fsstTable
	rows          *packedRows
}

// packedRows describes the fields of variable packed structs.
type packedRows struct {
	fields []packedField
}

type packedField struct {
	bytes       int // fixed-width: size
	lengthBytes int // variable: size of the length
	zip         *Zip
}

// CompileZipFixed checks the encoding of fixed-width values of bitsPerValue bits.
func CompileZipFixed(enc *encpb.CompressiveEncoding, s *Shape, bitsPerValue uint64) (*Zip, error) {
	if bitsPerValue == 0 || bitsPerValue%8 != 0 || bitsPerValue/8 > MaxValueBytes {
		return nil, corrupt(zipSection, "values of %d bits", bitsPerValue)
	}
	z := &Zip{valueBytes: int(bitsPerValue / 8), bitItems: s.ItemBits == 1}
	switch e := enc.GetCompression().(type) {
	case *encpb.CompressiveEncoding_Flat:
		if e.Flat.GetBitsPerValue() != bitsPerValue {
			return nil, corrupt(zipSection, "%d-bit values in a page of %d", e.Flat.GetBitsPerValue(), bitsPerValue)
		}
		return z, fixedOf(s, bitsPerValue)
	case *encpb.CompressiveEncoding_FixedSizeList:
		validity, itemBits, err := listLevels(e.FixedSizeList, s)
		if err != nil {
			return nil, err
		}
		if itemBits != uint64(s.ItemBits) {
			return nil, corrupt(zipSection, "%d-bit items in a column of %s", itemBits, s.describe())
		}
		return z, z.setValidity(validity, s)
	default:
		return nil, unsupported("fixed-width full-zip values encoded as %T", e)
	}
}

// setValidity computes the validity bytes of each list level and checks the size of a value.
func (z *Zip) setValidity(validity []bool, s *Shape) error {
	total := (s.Bits() + 7) / 8
	items := 1
	any := false
	for d, has := range validity {
		items *= s.Dims[d]
		size := 0
		if has {
			size = (items + 7) / 8
			any = true
		}
		z.validityBytes = append(z.validityBytes, size)
		total += size
	}
	if !any {
		z.validityBytes = nil
	}
	if total != z.valueBytes {
		return corrupt(zipSection, "values of %d bytes for a column of %s", z.valueBytes, s.describe())
	}
	return nil
}

// CompileZipVariable checks the encoding of variable-width values.
func CompileZipVariable(enc *encpb.CompressiveEncoding, s *Shape) (*Zip, error) {
	z := &Zip{}
	if p := enc.GetVariablePackedStruct(); p != nil {
		return z, z.compileRows(p, s)
	}
	if s.Kind != Variable {
		return nil, corrupt(zipSection, "variable values in a column of %s", s.describe())
	}
	return z, z.compileBytes(enc)
}

func (z *Zip) compileBytes(enc *encpb.CompressiveEncoding) error {
	if g := enc.GetGeneral(); g != nil {
		z.general = g.GetCompression().GetScheme()
		enc = g.GetValues()
	}
	if f := enc.GetFsst(); f != nil {
		table, err := parseFSST(f.GetSymbolTable())
		if err != nil {
			return err
		}
		if table.on {
			z.fsst = table
		}
		enc = f.GetValues()
	}
	v := enc.GetVariable()
	if v == nil {
		return unsupported("variable full-zip values encoded as %T", enc.GetCompression())
	}
	if v.GetValues() != nil {
		return unsupported("variable values with a compressed buffer")
	}
	return nil
}

// compileRows checks the fields of a variable packed struct.
func (z *Zip) compileRows(p *encpb.VariablePackedStruct, s *Shape) error {
	if s.Kind != Packed || len(p.GetFields()) != len(s.Fields) {
		return corrupt(zipSection, "a packed struct of %d fields in a column of %s", len(p.GetFields()), s.describe())
	}
	z.rows = &packedRows{}
	for i, f := range p.GetFields() {
		var out packedField
		var err error
		switch l := f.GetLayout().(type) {
		case *encpb.VariablePackedStruct_FieldEncoding_BitsPerValue:
			out.bytes = int(l.BitsPerValue / 8)
			out.zip, err = CompileZipFixed(f.GetValue(), &s.Fields[i], l.BitsPerValue)
		case *encpb.VariablePackedStruct_FieldEncoding_BitsPerLength:
			if l.BitsPerLength != 32 && l.BitsPerLength != 64 && l.BitsPerLength != 16 && l.BitsPerLength != 8 {
				return corrupt(zipSection, "lengths of %d bits", l.BitsPerLength)
			}
			out.lengthBytes = int(l.BitsPerLength / 8)
			out.zip, err = CompileZipVariable(f.GetValue(), &s.Fields[i])
		default:
			return corrupt(zipSection, "field %d of a packed struct without a layout", i)
		}
		if err != nil {
			return err
		}
		z.rows.fields = append(z.rows.fields, out)
	}
	return nil
}

// ValueBytes returns the bytes of one fixed-width value, 0 for variable-width values.
func (z *Zip) ValueBytes() int { return z.valueBytes }

// IsPlain reports whether fixed-width values lie as Arrow wants them: no validity of items between them.
func (z *Zip) IsPlain() bool { return z.validityBytes == nil }

// AppendPlain appends n values that lie back to back; the page has no control words.
func (z *Zip) AppendPlain(dst *Values, src []byte, n int) error {
	if len(src) < n*z.valueBytes {
		return corrupt(zipSection, "%d bytes for %d values of %d", len(src), n, z.valueBytes)
	}
	if z.IsPlain() && dst.Shape.ItemBits > 1 {
		dst.appendPlain(src, 0, n)
		return nil
	}
	for i := range n {
		if err := z.Append(dst, src[i*z.valueBytes:][:z.valueBytes]); err != nil {
			return err
		}
	}
	return nil
}

// AppendStrided appends n values of which the first starts at src[offset] and the others follow every stride bytes.
func (z *Zip) AppendStrided(dst *Values, src []byte, offset, stride, n int) error {
	if n > 0 && len(src) < offset+(n-1)*stride+z.valueBytes {
		return corrupt(zipSection, "%d bytes for %d values every %d", len(src), n, stride)
	}
	if !z.IsPlain() || dst.Shape.ItemBits == 1 {
		for i := range n {
			if err := z.Append(dst, src[offset+i*stride:][:z.valueBytes]); err != nil {
				return err
			}
		}
		return nil
	}
	w := z.valueBytes
	out := dst.fixed.tail(n * w)
	for i := range n {
		copy(out[i*w:(i+1)*w], src[offset+i*stride:])
	}
	dst.fixed.advance(n * w)
	for d := range dst.items {
		dst.items[d].appendOnes(n * dst.itemsAt(d))
	}
	dst.N += n
	return nil
}

// Append decodes one value of fixed or variable width.
func (z *Zip) Append(dst *Values, value []byte) error {
	switch {
	case z.rows != nil:
		return z.rows.append(dst, value)
	case z.valueBytes > 0:
		return z.appendFixed(dst, value)
	case z.general != 0:
		if len(value) == 0 {
			dst.appendEmpty(1)
			dst.N++
			return nil
		}
		raw, err := dst.codecs.expand(dst.scratch, z.general, value)
		if err != nil {
			return err
		}
		dst.scratch = raw
		value = raw
	}
	if z.fsst == nil {
		return dst.AppendBytes(value)
	}
	room := z.fsst.expandedMax(len(value))
	if err := dst.fits(room); err != nil {
		return err
	}
	dst.data.advance(z.fsst.decode(dst.data.tail(room), value))
	dst.pushEnd()
	return nil
}

func (z *Zip) appendFixed(dst *Values, value []byte) error {
	if len(value) != z.valueBytes {
		return corrupt(zipSection, "a value of %d bytes, not %d", len(value), z.valueBytes)
	}
	if z.validityBytes == nil {
		dst.appendPlain(value, 0, 1)
		return nil
	}
	for d, size := range z.validityBytes {
		items := dst.itemsAt(d)
		if size == 0 {
			dst.items[d].appendOnes(items)
			continue
		}
		dst.items[d].appendBits(value, 0, items)
		value = value[size:]
	}
	dst.appendItems(value, 0, 1)
	return nil
}

// append takes one row apart.
func (p *packedRows) append(dst *Values, row []byte) error {
	for i, f := range p.fields {
		size := uint64(f.bytes)
		if f.lengthBytes > 0 {
			if len(row) < f.lengthBytes {
				return corrupt(zipSection, "a packed row ends in the length of field %d", i)
			}
			size = littleEndian(row[:f.lengthBytes])
			row = row[f.lengthBytes:]
		}
		if size > uint64(len(row)) {
			return corrupt(zipSection, "field %d of %d bytes in the last %d of a packed row", i, size, len(row))
		}
		if err := f.zip.Append(dst.fields[i], row[:size]); err != nil {
			return err
		}
		row = row[size:]
	}
	if len(row) > 0 {
		return corrupt(zipSection, "%d bytes after a packed row", len(row))
	}
	dst.N++
	return nil
}

// littleEndian reads a number of 1 to 8 bytes.
func littleEndian(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// IsAligned reports whether fixed-width values consist of whole bytes, so that plain ones are an Arrow buffer as they lie.
func (z *Zip) IsAligned() bool { return !z.bitItems }

// putLittleEndian writes a number of 1 to 8 bytes.
func putLittleEndian(b []byte, v uint64) {
	switch len(b) {
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(b, v)
	default:
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
	}
}
