package file

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
)

// dictionary is the decoded dictionary of a page. Its memory belongs to the page, not to a read.
type dictionary struct {
	values    *encoding.Values // where the column holds plain values
	array     arrow.Array      // where the column is an Arrow dictionary, or of text that may be read as codes
	count     int
	sizeBytes int
}

// dictParts collects the pieces of an Arrow dictionary array. Each page with a dictionary is a piece of the array's dictionary;
// each page without one becomes a piece that its values stand in once each.
type dictParts struct {
	indices *encoding.Values
	pieces  []arrow.Array
	total   int    // values in pieces
	limit   uint64 // largest index
	plain   *encoding.Values
}

func (d *dictParts) init(l *leafRead) {
	t, _ := l.plan.typ.(*arrow.DictionaryType)
	it, _ := t.IndexType.(arrow.FixedWidthDataType)
	bits := it.BitWidth()
	d.limit = math.MaxUint64 >> (64 - bits)
	if arrow.IsSignedInteger(t.IndexType.ID()) {
		d.limit >>= 1
	}
	d.indices = encoding.NewValues(l.q.mem, l.q.r.codecs, &encoding.Shape{Kind: encoding.Fixed, ItemBits: bits}, l.q.rows)
	d.begin(l)
}

// begin starts collecting the values of a page without a dictionary.
func (d *dictParts) begin(l *leafRead) {
	d.plain = encoding.NewValues(l.q.mem, l.q.r.codecs, &l.plan.shape, 0)
	l.values = d.plain
}

func (d *dictParts) release() {
	if d.indices != nil {
		d.indices.Release()
	}
	for _, a := range d.pieces {
		a.Release()
	}
	d.pieces = nil
}

// plainPart ends a page whose values lie in l.values.
func (l *leafRead) plainPart() error {
	if !l.isDictionary() || l.values.N == 0 {
		return nil
	}
	n := l.values.N
	data, err := valuesData(l.values, l.plan.field, dictValueType(l.plan.typ), nil, 0)
	if err != nil {
		return err
	}
	defer data.Release()
	l.dicts.pieces = append(l.dicts.pieces, array.MakeFromData(data))
	l.values.Release()
	l.dicts.begin(l)
	if uint64(l.dicts.total+n-1) > l.dicts.limit {
		return errs.New(errs.ErrOverflow, "%d dictionary values: indices go up to %d", l.dicts.total+n, l.dicts.limit)
	}
	l.dicts.indices.AppendSequence(l.dicts.total, n)
	l.dicts.total += n
	return nil
}

// CodesType is the type of a column of text of type t that comes as codes: every batch has the dictionary of its page, all of whose values are valid.
func CodesType(t arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: t}
}

// codedValuesMax is up to how many values of a dictionary codes are worth handing over: who reads them keeps notes on each value.
const codedValuesMax = 1 << 16

// readsCodes reports whether the codes of the one page that holds the rows are to be handed over.
func (l *leafRead) readsCodes() bool {
	if !l.plan.codes || len(l.parts) != 1 {
		return false
	}
	st, ok := l.parts[0].state.(*miniState)
	return ok && st.dict != nil && st.dict.array != nil && st.dict.count > 0 && st.dict.count <= codedValuesMax
}

// codesData builds the array of codes.
func (l *leafRead) codesData(validity *memory.Buffer, nulls int) arrow.ArrayData {
	codes := l.codes.TakeFixed()
	defer codes.Release()
	dict, _ := l.codesOf.array.Data().(*array.Data)
	return array.NewDataWithDictionary(CodesType(l.plan.typ), l.codes.N, []*memory.Buffer{validity, codes}, nulls, 0, dict)
}

// dictionaryPart ends a page whose values are indices of a dictionary.
func (l *leafRead) dictionaryPart(d *dictionary, indices *encoding.Values, isNull func(int) bool) error {
	if l.readsCodes() {
		l.codesOf = d
		l.codes = encoding.NewValues(l.q.mem, l.q.r.codecs, &encoding.Shape{Kind: encoding.Fixed, ItemBits: 32}, 0)
		return l.codes.AppendCodes(indices, d.count, isNull)
	}
	if !l.isDictionary() {
		return l.values.Gather(d.values, indices, isNull)
	}
	if err := l.dicts.indices.AppendIndices(indices, d.count, l.dicts.total, l.dicts.limit, isNull); err != nil {
		return err
	}
	d.array.Retain()
	l.dicts.pieces = append(l.dicts.pieces, d.array)
	l.dicts.total += d.count
	return nil
}

func dictValueType(t arrow.DataType) arrow.DataType {
	d, _ := t.(*arrow.DictionaryType)
	return d.ValueType
}

// data builds the dictionary array.
func (d *dictParts) data(t arrow.DataType, mem memory.Allocator, validity *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	dict, err := d.values(t, mem)
	if err != nil {
		return nil, err
	}
	defer dict.Release()
	n := d.indices.N
	indices := d.indices.TakeFixed()
	defer indices.Release()
	dictData, _ := dict.Data().(*array.Data)
	return array.NewDataWithDictionary(t, n, []*memory.Buffer{validity, indices}, nulls, 0, dictData), nil
}

// values returns the dictionary of all pieces; the caller releases it.
func (d *dictParts) values(t arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	switch len(d.pieces) {
	case 0:
		return array.MakeArrayOfNull(mem, dictValueType(t), 0), nil
	case 1:
		d.pieces[0].Retain()
		return d.pieces[0], nil
	default:
		return array.Concatenate(d.pieces, mem)
	}
}
