package expr

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// resolveHasNull tells whether a list has a NULL element, which JSON sees as its null.
func resolveHasNull(r *request) (impl, error) {
	t, _, err := r.listArg()
	if err != nil {
		return impl{}, err
	}
	return impl{t: typeBool(), params: []arrow.DataType{t}, run: func(x *call) (vector, error) {
		e, err := x.elements(&x.args[0])
		if err != nil {
			return vector{}, err
		}
		return x.bools(func(i int) (bool, bool) {
			from, to := e.view.from(x.args[0].at(i))
			for j := from - e.base; j < to-e.base; j++ {
				if e.arr.DataType().ID() == arrow.NULL || e.arr.IsNull(int(j)) {
					return true, true
				}
			}
			return false, true
		})
	}}, nil
}

func resolveListLength(r *request) (impl, error) {
	t := storageType(r.types[0])
	if _, isMap := t.(*arrow.MapType); !isMap {
		var err error
		if t, _, err = r.listArg(); err != nil {
			return impl{}, err
		}
	}
	if classOf(t) == classNull {
		return impl{t: typeInt(), rewrite: Null(typeInt())}, nil
	}
	return impl{t: typeInt(), params: []arrow.DataType{t}, run: func(x *call) (vector, error) {
		view, ok := viewList(x.args[0].arr)
		if !ok {
			return vector{}, errs.New(errs.ErrInternal, "length of %s", x.args[0].t)
		}
		return x.ints(func(i int) (int64, bool, error) {
			from, to := view.from(x.args[0].at(i))
			return to - from, true, nil
		})
	}}, nil
}

// resolveElement is array_element(list, n), counted from 1, or from the end when negative; NULL where there is none.
func resolveElement(r *request) (impl, error) {
	t, elem, err := r.listArg()
	if err != nil {
		return impl{}, err
	}
	return impl{t: computed(elem), params: []arrow.DataType{t, typeInt()}, run: func(x *call) (vector, error) {
		return x.pickElements(computed(elem), func(i int, from, to int64) int64 {
			n := x.intArg(1, i, 0)
			switch {
			case n > 0 && n <= to-from:
				return from + n - 1
			case n < 0 && -n <= to-from:
				return to + n
			}
			return -1
		})
	}}, nil
}

// pickElements gathers one element of every list; at returns its place, -1 for none.
func (x *call) pickElements(elem arrow.DataType, at func(i int, from, to int64) int64) (vector, error) {
	e, err := x.elements(&x.args[0])
	if err != nil {
		return vector{}, err
	}
	idx := makeSlice[int32](x.arena, x.n)
	for i := range idx {
		idx[i] = -1
		if x.validAt(i) {
			if p := at(i, e.view.from0(x.args[0].at(i)), e.view.to(x.args[0].at(i))); p >= 0 {
				idx[i] = int32(p - e.base)
			}
		}
	}
	v, err := x.load(e.arr)
	if err != nil {
		return v, err
	}
	if v.c == classNull {
		return x.nullVector(elem), nil
	}
	return x.gather(&v, idx)
}

func (v listView) from0(i int) int64 { a, _ := v.from(i); return a }
func (v listView) to(i int) int64    { _, b := v.from(i); return b }

// resolveMakeArray builds lists; of constants, one constant.
func resolveMakeArray(r *request) (impl, error) {
	elem := unify(r.types)
	if c := classOf(elem); c == classNested && elementType(elem) == nil {
		return impl{}, r.typesError(nil)
	}
	constant := true
	for _, a := range r.args {
		_, ok := a.(*Literal)
		constant = constant && ok
	}
	if constant {
		lit, err := makeListLiteral(r.args, elem)
		if err == nil {
			return impl{t: lit.Type(), rewrite: lit}, nil
		}
	}
	return impl{t: arrow.ListOf(elem), params: []arrow.DataType{elem}, nulls: true, run: func(x *call) (vector, error) {
		return x.makeLists(elem)
	}}, nil
}

func makeListLiteral(args []Expr, elem arrow.DataType) (*Literal, error) {
	parts := make([]arrow.Array, len(args))
	for i, a := range args {
		lit := a.(*Literal)
		s := newState()
		v, err := literalVector(lit)
		if err == nil && !sameVectorType(v.t, elem) {
			if dependsOnZone(v.t, elem) && v.c != classString {
				return nil, errs.New(errs.ErrUnsupported, "the zone is not known yet")
			}
			v, err = s.cast(&v, elem, castImplicit)
		}
		if err != nil {
			return nil, err
		}
		one, err := s.vectorLiteral(&v, elem)
		if err != nil {
			return nil, err
		}
		if parts[i], err = literalArrayOrNull(one); err != nil {
			return nil, err
		}
	}
	if len(parts) == 0 {
		return NewLiteral(arrow.Array(array.NewNull(0)))
	}
	values, err := array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "list literal: %w", err)
	}
	return NewLiteral(values)
}

func (x *call) makeLists(elem arrow.DataType) (vector, error) {
	own := *x.state
	own.env = &Env{Alloc: memory.DefaultAllocator, Location: x.env.location()}
	parts := make([]arrow.Array, len(x.args))
	for k := range x.args {
		arr, err := own.store(&x.args[k], elem, x.n)
		if err != nil {
			return vector{}, err
		}
		parts[k] = x.made(arr)
	}
	all, err := array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		return vector{}, errs.New(errs.ErrInternal, "make_array: %w", err)
	}
	x.made(all)
	idx := make([]int32, 0, x.n*len(parts))
	off := make([]int64, 1, x.n+1)
	for i := range x.n {
		for k := range parts {
			idx = append(idx, int32(k*x.n+i))
		}
		off = append(off, int64(len(idx)))
	}
	child, err := TakeArray(memory.DefaultAllocator, all, idx)
	if err != nil {
		return vector{}, err
	}
	x.made(child)
	arr, err := x.listArray(x.t, &vector{}, off, child)
	return vector{t: x.t, c: classNested, n: x.n, arr: arr}, err
}

// resolveStructField is struct_field(s, 'name'), of a map the item of that key.
func resolveStructField(r *request) (impl, error) {
	lit, ok := r.literal(1)
	if !ok || !lit.Value.IsValid() {
		return impl{}, errs.New(errs.ErrInvalid, "struct_field needs the name of a field as a constant, not %s", r.args[1])
	}
	if m, ok := storageType(r.types[0]).(*arrow.MapType); ok {
		return resolveMapItem(m, literalText(lit))
	}
	st, ok := storageType(r.types[0]).(*arrow.StructType)
	if !ok {
		return impl{}, errs.New(errs.ErrInvalid, "%s is no struct but %s", r.args[0], sqlName(r.types[0]))
	}
	name := literalText(lit)
	at, ok := st.FieldIdx(name)
	if !ok {
		return impl{}, errs.New(errs.ErrInvalid, "%s has no field '%s'", r.args[0], name)
	}
	return impl{t: computed(st.Field(at).Type), params: []arrow.DataType{st, nil}, run: func(x *call) (vector, error) {
		s, ok := x.args[0].arr.(*array.Struct)
		if !ok {
			return vector{}, errs.New(errs.ErrInternal, "field of %s", x.args[0].t)
		}
		v, err := x.load(s.Field(at))
		if err != nil || v.c == classNull {
			return v, err
		}
		v.src = nil
		v.valid = x.andBitmaps(v.valid, x.valid, x.n)
		return v, nil
	}}, nil
}

// resolveMapItem is the item of a key, compared as text; NULL where the map has no such key.
func resolveMapItem(m *arrow.MapType, key string) (impl, error) {
	t := computed(m.ItemType())
	return impl{t: t, params: []arrow.DataType{m, nil}, run: func(x *call) (vector, error) {
		a, ok := x.args[0].arr.(*array.Map)
		if !ok {
			return vector{}, errs.New(errs.ErrInternal, "item of %s", x.args[0].t)
		}
		keys, err := x.loadAs(a.Keys(), typeString())
		if err != nil {
			return vector{}, err
		}
		idx := makeSlice[int32](x.arena, x.n)
		for i := range idx {
			idx[i] = -1
			from, to := a.ValueOffsets(x.args[0].at(i))
			for j := from; j < to && idx[i] < 0 && x.validAt(i) && keys.c == classString; j++ {
				if string(keys.str(int(j))) == key {
					idx[i] = int32(j)
				}
			}
		}
		items, err := x.load(a.Items())
		if err != nil || items.c == classNull {
			return x.nullVector(t), err
		}
		return x.gather(&items, idx)
	}}, nil
}
