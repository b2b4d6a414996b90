package expr

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/errs"
)

// convertElements converts the elements of a list literal to another type. Elements that no value of the type equals are left out, and kept is false;
// NULLs stay. Text that cannot be read as the type gives fateNotANumber and an error that names it.
func convertElements(lit *Literal, elem arrow.DataType) (values arrow.Array, kept bool, f fate, err error) {
	list := lit.Value.(scalar.ListScalar).GetList()
	elem = storageType(elem)
	if arrow.TypeEqual(list.DataType(), elem) {
		return list, true, fateExact, nil
	}
	parts := make([]arrow.Array, 0, list.Len())
	kept = true
	for i := range list.Len() {
		one, err := arrayLiteral(list, i)
		if err != nil {
			return nil, false, fateLost, err
		}
		if !one.Value.IsValid() {
			parts = append(parts, makeNulls(elem, 1))
			continue
		}
		out, f, err := convertLiteral(one, elem)
		switch {
		case err != nil:
			return nil, false, f, err
		case f == fateNotANumber:
			return nil, false, f, errs.New(errs.ErrInvalid, "'%s' is no value of type %s", literalText(one), sqlName(elem))
		case f == fateZone:
			return nil, false, f, nil
		case f == fateLost:
			kept = false
			continue
		}
		arr, err := literalArray(out)
		if err != nil {
			return nil, false, f, err
		}
		parts = append(parts, arr)
	}
	if len(parts) == 0 {
		return makeNulls(elem, 0), kept, fateExact, nil
	}
	values, err = array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		return nil, false, fateLost, errs.New(errs.ErrInternal, "list of %s: %w", elem, err)
	}
	return values, kept, fateExact, nil
}

// listView reads any kind of list column.
type listView struct {
	arr    arrow.Array
	values arrow.Array
	from   func(i int) (start, end int64)
}

func viewList(arr arrow.Array) (listView, bool) {
	if ext, ok := arr.(array.ExtensionArray); ok {
		return viewList(ext.Storage())
	}
	if l, ok := arr.(listLike); ok {
		return listView{arr: arr, values: l.ListValues(), from: l.ValueOffsets}, true
	}
	return listView{}, false
}

// castNested converts lists element by element, and JSON text to lists.
func (s *state) castNested(out vector, v *vector, to arrow.DataType) (vector, error) {
	to = storageType(to)
	out.t = to
	if v.c == classString {
		return s.parseLists(out, v, to)
	}
	if arrow.TypeEqual(v.arr.DataType(), to) {
		out.arr = v.arr
		return out, nil
	}
	view, ok := viewList(v.arr)
	elem := elementType(to)
	if !ok || elem == nil {
		return out, errs.New(errs.ErrInvalid, "a value of type %s cannot become %s", v.arr.DataType(), to)
	}
	idx := make([]int32, 0, view.values.Len())
	off := make([]int64, 1, v.n+1)
	for i := range v.n {
		if v.arr.IsValid(i) {
			from, to := view.from(i)
			for j := from; j < to; j++ {
				idx = append(idx, int32(j))
			}
		}
		off = append(off, int64(len(idx)))
	}
	picked, err := TakeArray(memory.DefaultAllocator, view.values, idx)
	if err != nil {
		return out, err
	}
	s.made(picked)
	elems, err := s.load(picked)
	if err != nil {
		return out, err
	}
	conv, err := s.cast(&elems, elem, castImplicit)
	if err != nil {
		return out, err
	}
	own := *s
	own.env = &Env{Alloc: memory.DefaultAllocator, Location: s.env.location()}
	child, err := own.store(&conv, elem, len(idx))
	if err != nil {
		return out, err
	}
	s.made(child)
	out.arr, err = s.listArray(to, v, off, child)
	return out, err
}

// listArray makes a list array of type t with v's NULLs.
func (s *state) listArray(t arrow.DataType, v *vector, off []int64, child arrow.Array) (arrow.Array, error) {
	n := len(off) - 1
	var validity *memory.Buffer
	nulls := 0
	if v.valid != nil {
		validity = memory.NewBufferBytes(append([]byte(nil), v.valid[:(n+7)/8]...))
		nulls = n - countBits(v.valid, n)
	}
	var buffers []*memory.Buffer
	switch t.ID() {
	case arrow.LIST:
		small := make([]int32, n+1)
		for i, o := range off {
			if o > math.MaxInt32 {
				return nil, errs.New(errs.ErrMemoryLimit, "lists of one batch have more than %d elements", math.MaxInt32)
			}
			small[i] = int32(o)
		}
		buffers = []*memory.Buffer{validity, copySlice(memory.DefaultAllocator, small)}
	case arrow.LARGE_LIST:
		buffers = []*memory.Buffer{validity, copySlice(memory.DefaultAllocator, off)}
	case arrow.FIXED_SIZE_LIST:
		return s.fixedListArray(t.(*arrow.FixedSizeListType), validity, nulls, off, child)
	default:
		return nil, errs.New(errs.ErrUnsupported, "making values of type %s", t)
	}
	return s.keep(array.MakeFromData(array.NewData(t, n, buffers, []arrow.ArrayData{child.Data()}, nulls, 0))), nil
}

func (s *state) fixedListArray(t *arrow.FixedSizeListType, validity *memory.Buffer, nulls int, off []int64, child arrow.Array) (arrow.Array, error) {
	n, width := len(off)-1, int64(t.Len())
	idx := make([]int32, 0, int64(n)*width)
	for i := range n {
		size := off[i+1] - off[i]
		if size == 0 && nulls > 0 {
			for range width {
				idx = append(idx, -1)
			}
			continue
		}
		if size != width {
			return nil, errs.New(errs.ErrInvalid, "a list of %d values is no vector of dimension %d", size, width)
		}
		for j := off[i]; j < off[i+1]; j++ {
			idx = append(idx, int32(j))
		}
	}
	full, err := TakeArray(memory.DefaultAllocator, child, idx)
	if err != nil {
		return nil, err
	}
	s.made(full)
	return s.keep(array.MakeFromData(array.NewData(t, n, []*memory.Buffer{validity}, []arrow.ArrayData{full.Data()}, nulls, 0))), nil
}

// parseLists reads JSON arrays; text that is none becomes NULL.
func (s *state) parseLists(out vector, v *vector, to arrow.DataType) (vector, error) {
	elem := elementType(to)
	if elem == nil {
		return out, errs.New(errs.ErrInvalid, "text cannot become %s", to)
	}
	b := array.NewBuilder(memory.DefaultAllocator, arrow.ListOf(typeString()))
	defer b.Release()
	lb := b.(*array.ListBuilder)
	vb := lb.ValueBuilder().(*array.StringBuilder)
	for i := range v.n {
		if v.null(i) {
			lb.AppendNull()
			continue
		}
		items, ok := jsonItems(v.str(i))
		if !ok {
			lb.AppendNull()
			continue
		}
		lb.Append(true)
		for _, it := range items {
			if it.null {
				vb.AppendNull()
			} else {
				vb.Append(it.text)
			}
		}
	}
	arr := lb.NewArray()
	s.made(arr)
	texts, err := s.load(arr)
	if err != nil {
		return out, err
	}
	texts.konst = v.konst
	return s.castNested(vector{t: to, c: classNested, n: v.n, konst: v.konst, valid: texts.valid}, &texts, to)
}
