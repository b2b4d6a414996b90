package encoding

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
)

// wideBytes is the value size from which values are zipped with their levels instead of being chunked.
const wideBytes = 256

type leafKind uint8

const (
	leafFixed    leafKind = iota // values of valueBytes each
	leafBool                     // one byte per value here, one bit in pages
	leafVariable                 // ends into data
	leafVector                   // fixed_size_list, of such lists or of a fixed-width type
	leafNull                     // the null type: no values at all
)

// leafShape says how the values of a leaf are kept and compressed.
type leafShape struct {
	kind       leafKind
	valueBytes int   // fixed and vector: bytes of one value as it is kept; bits take a byte
	dims       []int // vector: sizes of the lists, outer-most first
	itemBits   int   // vector: bits of one item, 1 or a multiple of 8
	integer    bool  // fixed: worth bitpacking
	offset64   bool  // variable: 64-bit offsets
	text       bool  // variable: strings, worth FSST

	fields []*leafBuilder // packed structs: what lies together in a value

	// The column is an Arrow dictionary: its pages have dictionaries whatever they cost, with indices as wide as its own.
	isDictionary bool
	indexBytes   int
	indexMax     uint64 // largest index
}

func leafShapeOf(t arrow.DataType) (leafShape, error) {
	switch t := t.(type) {
	case *arrow.NullType:
		return leafShape{kind: leafNull}, nil
	case *arrow.BooleanType:
		return leafShape{kind: leafBool, valueBytes: 1}, nil
	case *arrow.StringType:
		return leafShape{kind: leafVariable, text: true}, nil
	case *arrow.BinaryType:
		return leafShape{kind: leafVariable}, nil
	case *arrow.LargeStringType:
		return leafShape{kind: leafVariable, offset64: true, text: true}, nil
	case *arrow.LargeBinaryType:
		return leafShape{kind: leafVariable, offset64: true}, nil
	case *arrow.DictionaryType:
		s, err := leafShapeOf(t.ValueType)
		if err != nil || (s.kind != leafVariable && s.kind != leafFixed) || s.isDictionary {
			return leafShape{}, errs.New(errs.ErrUnsupported, "%s cannot be written", t)
		}
		s.isDictionary, s.indexBytes = true, t.BitWidth()/8
		s.indexMax = math.MaxUint64 >> (64 - t.BitWidth())
		if arrow.IsSignedInteger(t.IndexType.ID()) {
			s.indexMax >>= 1
		}
		return s, nil
	case arrow.ExtensionType:
		return leafShapeOf(t.StorageType())
	case *arrow.FixedSizeListType:
		return vectorShapeOf(t)
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth < 1 {
			return leafShape{}, errs.New(errs.ErrUnsupported, "%s cannot be written", t)
		}
		return leafShape{kind: leafFixed, valueBytes: t.ByteWidth}, nil
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type, *arrow.Decimal128Type, *arrow.Decimal256Type:
		return leafShape{kind: leafFixed, valueBytes: t.(arrow.FixedWidthDataType).Bytes()}, nil
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type,
		*arrow.Date32Type, *arrow.Date64Type, *arrow.Time32Type, *arrow.Time64Type, *arrow.TimestampType, *arrow.DurationType:
		return leafShape{kind: leafFixed, valueBytes: t.(arrow.FixedWidthDataType).Bytes(), integer: true}, nil
	}
	return leafShape{}, errs.New(errs.ErrUnsupported, "type %s cannot be written", t)
}

// leafBuilder collects the entries of one leaf until a page is cut. An entry is a value slot or a place where the structure ends early (a
// null or empty list). Levels are canonical while collecting: each layer owns its level numbers whether they occur or not.
type leafBuilder struct {
	leafShape
	options    leafOptions
	zip        *compressor  // of what the metadata asks for, or nil
	wideZip    *compressor  // of values that are wide enough by themselves, made when the first is met
	steps      []encodeStep // outer-most first; the last is the leaf
	maxRep     uint16       // number of lists
	maxVisible uint16       // entries with a canonical definition level above it have no slot

	scale int // entries of a row: the sizes of the fixed-size lists of structs above all lists

	firstRow uint64
	rows     int
	entries  int
	hidden   int      // entries without a slot
	slots    int      // entries with one
	nulls    int      // slots without a value
	def      []uint16 // nil = all zero
	rep      []uint16 // nil = no list

	data      []byte
	ends      []uint32 // variable: end of value i in data
	maxLen    int      // variable: longest value
	itemValid [][]byte // vector: for each level of lists one byte per item, nil = all valid
	slotNull  []byte   // while a page is made: one byte per slot, nil = no nulls
}

func (b *leafBuilder) reset() {
	b.firstRow += uint64(b.rows)
	b.rows, b.entries, b.hidden, b.slots, b.nulls, b.maxLen = 0, 0, 0, 0, 0, 0
	b.def, b.slotNull = nil, nil
	clear(b.itemValid)
	b.rep, b.data, b.ends = b.rep[:0], b.data[:0], b.ends[:0]
}

func (b *leafBuilder) sizeBytes() int { return len(b.data) + 4*len(b.ends) + len(b.rep)/4 }

func (b *leafBuilder) path() string { return b.steps[len(b.steps)-1].path }

func (b *leafBuilder) isWide() bool {
	if b.isRows() {
		return true
	}
	if b.kind == leafVector && b.itemsAt(len(b.dims)-1)*b.itemBits%8 != 0 {
		return false // the engine zips whole bytes
	}
	switch b.options.structural {
	case "miniblock":
		return false
	case "fullzip":
		return !b.isDictionary && b.fields == nil && (b.kind == leafVariable || b.kind == leafFixed || b.kind == leafVector)
	}
	if b.isDictionary || (b.fields != nil && !b.isRows()) {
		return false
	}
	switch b.kind {
	case leafVariable:
		return b.maxLen >= wideBytes
	case leafFixed, leafVector:
		return b.zippedBytes() >= wideBytes
	}
	return false
}

// structAboveList says that a struct lies outside a list: readers disagree on the full-zip form of that.
func (b *leafBuilder) structAboveList() bool {
	seen := false
	for _, s := range b.steps {
		if s.kind == stepStruct {
			seen = true
		}
		if s.kind == stepList {
			return seen
		}
	}
	return false
}

// appendLevelsOf records the levels of a set of entries.
func (b *leafBuilder) appendLevelsOf(e entrySet) {
	if b.maxRep > 0 {
		b.rep = append(b.rep, e.rep...)
	}
	if e.def != nil && b.def == nil {
		b.def = make([]uint16, b.entries, max(2*b.entries, b.entries+e.n))
	}
	switch {
	case e.def != nil:
		b.def = append(b.def, e.def...)
	case b.def != nil:
		for range e.n {
			b.def = append(b.def, 0)
		}
	}
	b.entries += e.n
}

// appendValues adds the values of a set of entries, run by run, with an empty value in every slot that has none.
func (b *leafBuilder) appendValues(e entrySet, src leafSource) error {
	if e.index == nil {
		b.slots += e.n
		return b.appendRun(src, e.base, e.base+e.n)
	}
	lo, hi := 0, 0
	for i, at := range e.index {
		if at >= 0 {
			if at != hi || hi == lo {
				if err := b.appendRun(src, lo, hi); err != nil {
					return err
				}
				lo, hi = at, at
			}
			hi++
			b.slots++
			continue
		}
		if e.def[i] > b.maxVisible {
			b.hidden++
			continue
		}
		if err := b.appendRun(src, lo, hi); err != nil {
			return err
		}
		lo, hi = 0, 0
		b.appendBlank()
		b.slots++
		b.nulls++
	}
	return b.appendRun(src, lo, hi)
}

func (b *leafBuilder) appendBlank() {
	switch b.kind {
	case leafVariable:
		b.ends = append(b.ends, uint32(len(b.data)))
	case leafFixed, leafBool, leafVector:
		for range b.valueBytes {
			b.data = append(b.data, 0)
		}
		for d, v := range b.itemValid {
			if v != nil {
				b.itemValid[d] = appendRepeated(v, 1, b.itemsAt(d))
			}
		}
	}
}

func appendRepeated(dst []byte, v byte, n int) []byte {
	for range n {
		dst = append(dst, v)
	}
	return dst
}

// leafSource is the values of one array, with the array's own offset already applied.
type leafSource struct {
	data   []byte
	off32  []int32
	off64  []int64
	bits   []byte        // bool: the bitmap
	bitsAt int           // and the position of its first bit
	levels []vectorLevel // vector

	dict   *array.Dictionary // dictionaries: the indices, and the values
	values *leafSource

	structure *array.Struct // packed structs, and their fields
	fields    []leafSource
}

func (b *leafBuilder) source(arr arrow.Array) leafSource {
	raw := arr.Data()
	buf := func(i int) []byte {
		if bufs := raw.Buffers(); i < len(bufs) && bufs[i] != nil {
			return bufs[i].Bytes()
		}
		return nil
	}
	if arr.Len() == 0 {
		return leafSource{}
	}
	if d, ok := arr.(*array.Dictionary); ok {
		values := b.source(d.Dictionary())
		return leafSource{dict: d, values: &values}
	}
	if b.fields != nil {
		return b.packedSource(arr)
	}
	switch b.kind {
	case leafFixed:
		data := buf(1) // nil where every value is null
		return leafSource{data: data[min(len(data), raw.Offset()*b.valueBytes):]}
	case leafBool:
		return leafSource{bits: buf(1), bitsAt: raw.Offset()}
	case leafVariable:
		if b.offset64 {
			return leafSource{off64: arrow.Int64Traits.CastFromBytes(buf(1))[raw.Offset():], data: buf(2)}
		}
		return leafSource{off32: arrow.Int32Traits.CastFromBytes(buf(1))[raw.Offset():], data: buf(2)}
	case leafVector:
		return b.vectorSource(arr)
	}
	return leafSource{}
}

// appendRun adds values [lo, hi) of the source.
func (b *leafBuilder) appendRun(src leafSource, lo, hi int) error {
	if lo == hi {
		return nil
	}
	if src.dict != nil {
		for i := lo; i < hi; i++ {
			at := src.dict.GetValueIndex(i)
			if err := b.appendRun(*src.values, at, at+1); err != nil {
				return err
			}
		}
		return nil
	}
	if b.fields != nil {
		return b.appendPacked(src, lo, hi)
	}
	switch b.kind {
	case leafFixed:
		b.data = withRoom(b.data, (hi-lo)*b.valueBytes)
		b.data = append(b.data, src.data[lo*b.valueBytes:hi*b.valueBytes]...)
	case leafBool:
		b.data = appendBytesOfBits(b.data, src.bits, src.bitsAt+lo, src.bitsAt+hi)
	case leafVariable:
		if b.offset64 {
			return appendVariable(b, src.data, src.off64[lo:hi+1])
		}
		return appendVariable(b, src.data, src.off32[lo:hi+1])
	case leafVector:
		b.appendVectors(src, lo, hi)
	}
	return nil
}

func appendVariable[T int32 | int64](b *leafBuilder, data []byte, offsets []T) error {
	first, last := offsets[0], offsets[len(offsets)-1]
	if int64(last-first)+int64(len(b.data)) > math.MaxInt32 {
		return errs.New(errs.ErrUnsupported, "column %q: a row of more than 2 GiB cannot be written", b.path())
	}
	at := T(len(b.data)) - first
	b.data = append(withRoom(b.data, int(last-first)), data[first:last]...)
	n, more := len(b.ends), len(offsets)-1
	b.ends = withWords(b.ends, more)[:n+more]
	ends := b.ends[n:]
	prev, longest := first, T(0)
	for i, off := range offsets[1:] {
		longest = max(longest, off-prev)
		prev = off
		ends[i] = uint32(off + at)
	}
	b.maxLen = max(b.maxLen, int(longest))
	return nil
}
