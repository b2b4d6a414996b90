package expr

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// arrayValuesMax bounds the values of one literal, NULLs and empty things included, which take no bytes of their own.
const arrayValuesMax = 1 << 24

// array writes the values of an array of known type and length: validity bytes (a flag, then bits), then by type fixed-width bytes, lengths and bytes,
// or lengths and children. A dictionary array is written as its values.
func (w *encoder) array(arr arrow.Array) {
	if ext, ok := arr.(array.ExtensionArray); ok {
		arr = ext.Storage()
	}
	n := arr.Len()
	if arr.DataType().ID() == arrow.NULL {
		return
	}
	w.validity(arr)
	switch a := arr.(type) {
	case *array.Dictionary:
		idx := make([]int32, n)
		s := newState()
		s.codes(idx, a)
		values, err := TakeArray(memory.DefaultAllocator, a.Dictionary(), idx)
		if err != nil {
			w.fail(err)
			return
		}
		w.array(values)
	case *array.Boolean:
		s := newState()
		w.buf = append(w.buf, s.loadBits(arr, n)[:(n+7)/8]...)
	case *array.String, *array.LargeString, *array.StringView, *array.Binary, *array.LargeBinary, *array.BinaryView:
		s := newState()
		v, err := s.load(arr)
		if err != nil {
			w.fail(err)
			return
		}
		for i := range n {
			w.bytes(v.str(i))
		}
	case *array.Struct:
		for f := range a.NumField() {
			w.array(a.Field(f))
		}
	case listLike:
		w.lists(a)
	default:
		t, ok := arr.DataType().(arrow.FixedWidthDataType)
		if !ok || t.BitWidth()%8 != 0 {
			w.fail(errs.New(errs.ErrUnsupported, "a literal of type %s", arr.DataType()))
			return
		}
		from := arr.Data().Offset() * t.Bytes()
		if n > 0 {
			w.buf = append(w.buf, arr.Data().Buffers()[1].Bytes()[from:from+n*t.Bytes()]...)
		}
	}
}

func (w *encoder) validity(arr arrow.Array) {
	w.flag(arr.NullN() > 0)
	if arr.NullN() > 0 {
		s := newState()
		n := arr.Len()
		w.buf = append(w.buf, s.alignBitmap(arr.NullBitmapBytes(), arr.Data().Offset(), n)[:(n+7)/8]...)
	}
}

func (w *encoder) lists(a listLike) {
	idx := make([]int32, 0, a.ListValues().Len())
	for i := range a.Len() {
		from, to := a.ValueOffsets(i)
		if a.IsNull(i) && a.DataType().ID() != arrow.FIXED_SIZE_LIST {
			to = from
		}
		if a.DataType().ID() != arrow.FIXED_SIZE_LIST {
			w.uint(uint64(to - from))
		}
		for j := from; j < to; j++ {
			idx = append(idx, int32(j))
		}
	}
	child, err := TakeArray(memory.DefaultAllocator, a.ListValues(), idx)
	if err != nil {
		w.fail(err)
		return
	}
	w.array(child)
}

// array reads n values of type t. Its memory is bounded by the bytes read and by arrayValuesMax.
func (r *decoder) array(t arrow.DataType, n, depth int) arrow.Array {
	if r.err != nil {
		return nil
	}
	if n > arrayValuesMax || depth > typeDepthMax {
		r.fail("%d values of type %s", n, t)
		return nil
	}
	if t.ID() == arrow.NULL {
		return array.NewNull(n)
	}
	validity, nulls := r.validity(n)
	if r.err != nil {
		return nil
	}
	switch x := t.(type) {
	case *arrow.DictionaryType:
		return r.dictionary(x, n, depth)
	case *arrow.BooleanType:
		b := r.take((n + 7) / 8)
		return r.finish(t, n, nulls, []*memory.Buffer{validity, memory.NewBufferBytes(append([]byte(nil), b...))}, nil)
	case *arrow.StructType:
		children := make([]arrow.ArrayData, x.NumFields())
		for i := range children {
			c := r.array(x.Field(i).Type, n, depth+1)
			if r.err != nil {
				return nil
			}
			children[i] = c.Data()
		}
		return r.finish(t, n, nulls, []*memory.Buffer{validity}, children)
	case *arrow.FixedSizeListType:
		c := r.array(x.Elem(), min(n*int(x.Len()), arrayValuesMax+1), depth+1)
		if r.err != nil {
			return nil
		}
		return r.finish(t, n, nulls, []*memory.Buffer{validity}, []arrow.ArrayData{c.Data()})
	case *arrow.ListType, *arrow.LargeListType, *arrow.MapType:
		return r.lists(t, n, nulls, validity, depth)
	}
	if classOf(t) == classString && t.ID() != arrow.FIXED_SIZE_BINARY {
		return r.strings(t, n, nulls, validity)
	}
	width, ok := t.(arrow.FixedWidthDataType)
	if !ok {
		r.fail("values of type %s", t)
		return nil
	}
	b := r.take(n * width.Bytes())
	own := newBuffer(memory.DefaultAllocator, len(b))
	copy(own.Bytes(), b)
	return r.finish(t, n, nulls, []*memory.Buffer{validity, own}, nil)
}

func (r *decoder) validity(n int) (*memory.Buffer, int) {
	switch r.byte() {
	case 0:
		return nil, 0
	case 1:
		b := r.take((n + 7) / 8)
		if r.err != nil {
			return nil, 0
		}
		return memory.NewBufferBytes(append([]byte(nil), b...)), n - bitutil.CountSetBits(b, 0, n)
	}
	r.fail("validity flag")
	return nil, 0
}

func (r *decoder) finish(t arrow.DataType, n, nulls int, buffers []*memory.Buffer, children []arrow.ArrayData) arrow.Array {
	if r.err != nil {
		return nil
	}
	return array.MakeFromData(array.NewData(t, n, buffers, children, nulls, 0))
}

func (r *decoder) strings(t arrow.DataType, n, nulls int, validity *memory.Buffer) arrow.Array {
	s := newState()
	w := s.strWriter(min(n, r.left()+1))
	if n > r.left() {
		r.fail("%d texts in %d bytes", n, r.left())
		return nil
	}
	for i := range n {
		w.buf = append(w.buf, r.take(r.count(1))...)
		if r.err != nil || w.end(i) != nil {
			r.fail("text")
			return nil
		}
	}
	small := t
	if id := t.ID(); id == arrow.STRING_VIEW || id == arrow.BINARY_VIEW {
		r.fail("a literal of type %s", t)
		return nil
	}
	off := w.off[:n+1]
	var offsets *memory.Buffer
	if id := t.ID(); id == arrow.LARGE_STRING || id == arrow.LARGE_BINARY {
		offsets = narrow[int64](memory.DefaultAllocator, off)
	} else {
		offsets = copySlice(memory.DefaultAllocator, off)
	}
	return r.finish(small, n, nulls, []*memory.Buffer{validity, offsets, memory.NewBufferBytes(w.buf)}, nil)
}

func (r *decoder) lists(t arrow.DataType, n, nulls int, validity *memory.Buffer, depth int) arrow.Array {
	if n > r.left() {
		r.fail("%d lists in %d bytes", n, r.left())
		return nil
	}
	off := make([]int64, n+1)
	for i := range n {
		size := r.uint()
		if size > arrayValuesMax {
			r.fail("a list of %d values", size)
			return nil
		}
		off[i+1] = off[i] + int64(size)
	}
	total := off[n]
	if r.err != nil || total > arrayValuesMax {
		r.fail("lists of %d values", total)
		return nil
	}
	var elem arrow.DataType
	if m, ok := t.(*arrow.MapType); ok {
		elem = m.Elem()
	} else {
		elem = elementType(t)
	}
	c := r.array(elem, int(total), depth+1)
	if r.err != nil {
		return nil
	}
	var offsets *memory.Buffer
	if t.ID() == arrow.LARGE_LIST {
		offsets = copySlice(memory.DefaultAllocator, off)
	} else {
		offsets = narrow[int32](memory.DefaultAllocator, off)
	}
	return r.finish(t, n, nulls, []*memory.Buffer{validity, offsets}, []arrow.ArrayData{c.Data()})
}

// dictionary reads plain values and gives each its own code.
func (r *decoder) dictionary(t *arrow.DictionaryType, n, depth int) arrow.Array {
	values := r.array(t.ValueType, n, depth+1)
	if r.err != nil {
		return nil
	}
	if n > math.MaxInt8 {
		r.fail("a dictionary literal of %d values", n)
		return nil
	}
	b := array.NewBuilder(memory.DefaultAllocator, t.IndexType)
	defer b.Release()
	for i := range n {
		if values.IsNull(i) {
			b.AppendNull()
		} else if err := b.AppendValueFromString(itoa(int64(i))); err != nil {
			r.fail("dictionary: %v", err)
			return nil
		}
	}
	return array.NewDictionaryArray(t, b.NewArray(), values)
}
