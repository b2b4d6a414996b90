package expr

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/errs"
)

func listFunctions() []function {
	var fs []function
	add := func(resolve func(*request) (impl, error), names ...string) {
		for _, n := range names {
			as := names[0]
			if n == as {
				as = ""
			}
			fs = append(fs, function{name: n, as: as, min: 2, max: 2, resolve: resolve})
		}
	}
	add(resolveHas, "array_has", "array_contains", "list_contains", "list_has")
	add(func(r *request) (impl, error) { return resolveHasList(r, false) }, "array_has_any", "arrays_overlap", "list_has_any", "array_overlaps")
	add(func(r *request) (impl, error) { return resolveHasList(r, true) }, "array_has_all", "array_contains_all", "list_has_all")
	add(resolveElement, "array_element", "list_element", "element_at", "array_get")
	return append(fs,
		function{name: "array_has_null", min: 1, max: 1, resolve: resolveHasNull},
		function{name: "array_length", min: 1, max: 1, resolve: resolveListLength},
		function{name: "cardinality", as: "array_length", min: 1, max: 1, resolve: resolveListLength},
		function{name: "make_array", min: 0, max: -1, resolve: resolveMakeArray},
		function{name: "array", as: "make_array", min: 0, max: -1, resolve: resolveMakeArray},
		function{name: "struct_field", min: 2, max: 2, resolve: resolveStructField},
	)
}

// listArg makes the first argument of a list function a list: JSON text is read as a list of strings.
func (r *request) listArg() (t, elem arrow.DataType, err error) {
	t = storageType(r.types[0])
	switch classOf(t) {
	case classNull:
		return arrow.Null, arrow.Null, nil
	case classString:
		return arrow.ListOf(typeString()), typeString(), nil
	}
	if elem = elementType(t); elem == nil {
		return nil, nil, errs.New(errs.ErrInvalid, "%s needs a list, and %s is %s", r.name, r.args[0], sqlName(r.types[0]))
	}
	return t, elem, nil
}

// needleError names column and literal.
func (r *request) needleError(text string, elem arrow.DataType) error {
	return errs.New(errs.ErrInvalid, "%s: '%s' cannot be compared with the elements of %s, which are %s", r.name, text, r.args[0], sqlName(elem))
}

// resolveHas is array_has(list, needle), by the truth table of the package's lists: a NULL list or needle gives NULL, a NULL element never matches.
func resolveHas(r *request) (impl, error) {
	t, elem, err := r.listArg()
	if err != nil {
		return impl{}, err
	}
	if classOf(t) == classNull {
		return impl{t: typeBool(), rewrite: Null(typeBool())}, nil
	}
	lit, ok := r.literal(1)
	if !ok || classOf(elem) == classNested || classOf(lit.Type()) == classNested {
		return r.hasColumn(t, elem)
	}
	im := impl{t: typeBool(), params: []arrow.DataType{t, nil}, args: r.args}
	if !lit.Value.IsValid() {
		im.run = func(x *call) (vector, error) { return x.nullVector(typeBool()), nil }
		return im, nil
	}
	if classOf(elem) == classNull {
		im.run = hasNone(false)
		return im, nil
	}
	out, f, err := convertLiteral(lit, elem)
	switch {
	case err != nil:
		return impl{}, err
	case f == fateNotANumber:
		return impl{}, r.needleError(literalText(lit), elem)
	case f == fateLost:
		im.run = hasNone(false)
		return im, nil
	case f == fateZone: // Fold converts it once it knows the zone
		e, err := NewCoerce(lit, storageType(elem))
		if err != nil {
			return impl{}, r.typesError(err)
		}
		return rewriteTo("array_has", r.args[0], e)
	}
	im.args = []Expr{r.args[0], out}
	set, err := literalSet(out)
	if err != nil {
		return impl{}, err
	}
	im.run = func(x *call) (vector, error) { return x.hasAny(set) }
	return im, nil
}

func literalSet(l *Literal) (*valueSet, error) {
	v, err := literalVector(l)
	if err != nil {
		return nil, err
	}
	return newValueSet(&v), nil
}

// hasNone is the same answer for every list that is not NULL.
func hasNone(answer bool) kernel {
	return func(x *call) (vector, error) {
		bits := x.zeros(x.n)
		if answer {
			bits = x.ones(x.n)
		}
		return vector{c: classBool, n: x.n, bits: bits, valid: x.args[0].valid}, nil
	}
}

// elements is the part of a list column's values that a batch uses.
type elements struct {
	arr  arrow.Array
	base int64
	view listView
}

func (x *call) elements(v *vector) (elements, error) {
	view, ok := viewList(v.arr)
	if !ok {
		return elements{}, errs.New(errs.ErrInternal, "%s of a value of type %s", x.name, v.arr.DataType())
	}
	e := elements{view: view, arr: view.values}
	if n := v.arr.Len(); n > 0 {
		from, _ := view.from(0)
		_, to := view.from(n - 1)
		if from > to || to > int64(view.values.Len()) { // list views need not be in order
			return e, nil
		}
		e.base = from
		e.arr = x.keep(array.NewSlice(view.values, from, to))
	}
	return e, nil
}

// matches marks the elements that are in a set; of a dictionary, by looking at its values once.
func (x *call) matches(arr arrow.Array, set *valueSet) ([]byte, error) {
	n := arr.Len()
	dst := x.zeros(n)
	if dict, ok := arr.(*array.Dictionary); ok {
		hits, err := x.matches(dict.Dictionary(), set)
		if err != nil {
			return nil, err
		}
		codes := makeSlice[int32](x.arena, n)
		x.codes(codes, dict)
		takeBits(dst, hits, 0, codes)
		return dst, nil
	}
	v, err := x.load(arr)
	if err != nil || v.c == classNull {
		return dst, err
	}
	if set.size == 1 && v.c == classString && set.strs != nil {
		for s := range set.strs {
			equalString(dst, &v, []byte(s), n)
		}
	} else {
		set.lookup(dst, &v, n)
	}
	return x.andBitmaps(dst, v.valid, n), nil
}

// hasAny tells which lists have an element in the set.
func (x *call) hasAny(set *valueSet) (vector, error) {
	v := &x.args[0]
	out := vector{c: classBool, n: x.n, bits: x.zeros(x.n), valid: v.valid}
	if set.size == 0 {
		return out, nil
	}
	e, err := x.elements(v)
	if err != nil {
		return out, err
	}
	hits, err := x.matches(e.arr, set)
	if err != nil {
		return out, err
	}
	e.anyBit(out.bits, hits, x.n)
	return out, nil
}

// anyBit sets bit i of dst where a list has a marked element.
func (e *elements) anyBit(dst, hits []byte, n int) {
	if countBits(hits, e.arr.Len()) == 0 {
		return
	}
	if l, ok := e.view.arr.(*array.List); ok {
		anyBitOf(dst, hits, l.Offsets()[l.Data().Offset():], int32(e.base), e.arr.Len(), n)
		return
	}
	for i := range n {
		from, to := e.view.from(i)
		for j := from - e.base; j < to-e.base; j++ {
			if hits[j>>3]>>(j&7)&1 == 1 {
				dst[i>>3] |= 1 << (i & 7)
				break
			}
		}
	}
}

// anyBitOf walks the marked elements and finds the row of each: offsets rise, so a row is looked for once.
func anyBitOf(dst, hits []byte, off []int32, base int32, elems, n int) {
	row := 0
	for w := range (elems + 63) / 64 {
		x := word(hits, w)
		if left := elems - w*64; left < 64 {
			x &= 1<<left - 1
		}
		for ; x != 0; x &= x - 1 {
			at := base + int32(w*64+bits.TrailingZeros64(x))
			for row < n && off[row+1] <= at {
				row++
			}
			if row == n {
				return
			}
			dst[row>>3] |= 1 << (row & 7)
		}
	}
}

// hasColumn compares the elements with a needle of each row, in the type that both meet in.
func (r *request) hasColumn(t, elem arrow.DataType) (impl, error) {
	common := comparisonType(elem, r.types[1])
	for _, from := range []arrow.DataType{elem, r.types[1]} {
		if err := checkCast(from, common); err != nil {
			return impl{}, r.typesError(err)
		}
	}
	return impl{t: typeBool(), params: []arrow.DataType{t, common}, run: func(x *call) (vector, error) {
		e, err := x.elements(&x.args[0])
		if err != nil {
			return vector{}, err
		}
		vals, err := x.loadAs(e.arr, common)
		if err != nil {
			return vector{}, err
		}
		needle := &x.args[1]
		return x.bools(func(i int) (bool, bool) {
			from, to := e.view.from(x.args[0].at(i))
			for j := int(from - e.base); j < int(to-e.base); j++ {
				if !vals.nullAt(j) && compareValues(vals, j, needle, i) == 0 {
					return true, true
				}
			}
			return false, true
		})
	}}, nil
}

// loadAs loads an array and converts it.
func (s *state) loadAs(arr arrow.Array, t arrow.DataType) (*vector, error) {
	v, err := s.load(arr)
	if err != nil {
		return nil, err
	}
	if !sameVectorType(v.t, t) && v.c != classNull {
		if v, err = s.cast(&v, t, castImplicit); err != nil {
			return nil, err
		}
	}
	return &v, nil
}

// listLiteral reads a needle list: a list literal, or JSON text.
func (r *request) listLiteral(lit *Literal) (*Literal, error) {
	if classOf(lit.Type()) != classString || !lit.Value.IsValid() {
		return lit, nil
	}
	text := literalText(lit)
	items, ok := jsonItems([]byte(text))
	if !ok {
		return nil, errs.New(errs.ErrInvalid, "%s: '%s' is no list; write ['a','b'], make_array('a','b') or JSON text", r.name, text)
	}
	return itemsLiteral(items)
}

// itemsLiteral makes a list of strings of JSON items; each is converted to the element type later.
func itemsLiteral(items []jsonItem) (*Literal, error) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for _, it := range items {
		if it.null {
			b.AppendNull()
		} else {
			b.Append(it.text)
		}
	}
	return NewLiteral(b.NewArray())
}

// resolveHasList is array_has_any and array_has_all.
func resolveHasList(r *request, all bool) (impl, error) {
	t, elem, err := r.listArg()
	if err != nil {
		return impl{}, err
	}
	if classOf(t) == classNull || classOf(r.types[1]) == classNull {
		return impl{t: typeBool(), rewrite: Null(typeBool())}, nil
	}
	lit, ok := r.literal(1)
	if !ok || classOf(elem) == classNested {
		return r.hasListColumn(t, elem, all)
	}
	im := impl{t: typeBool(), params: []arrow.DataType{t, nil}, args: r.args}
	if !lit.Value.IsValid() {
		im.run = func(x *call) (vector, error) { return x.nullVector(typeBool()), nil }
		return im, nil
	}
	if lit, err = r.listLiteral(lit); err != nil {
		return impl{}, err
	}
	if elementType(lit.Type()) == nil {
		return impl{}, r.typesError(nil)
	}
	if classOf(elem) == classNull {
		im.run = hasNone(all && lit.Value.(scalar.ListScalar).GetList().Len() == 0)
		return im, nil
	}
	values, kept, f, err := convertElements(lit, elem)
	switch {
	case f == fateNotANumber && err != nil:
		return impl{}, errs.New(errs.ErrInvalid, "%s: elements of %s: %w", r.name, r.args[0], err)
	case err != nil:
		return impl{}, err
	case f == fateZone:
		return r.hasListColumn(t, elem, all)
	}
	if kept {
		im.args = []Expr{r.args[0], &Literal{scalar.NewListScalar(values)}}
	} else if im.args[1] != Expr(lit) {
		im.args = []Expr{r.args[0], lit}
	}
	im.run = hasListKernel(values, all, !kept)
	return im, nil
}

// hasListKernel makes the set of needles when it is first needed.
func hasListKernel(values arrow.Array, all, lost bool) kernel {
	if all && values.Len() == 0 && !lost {
		return hasNone(true)
	}
	set := sync.OnceValues(func() (*valueSet, error) {
		v, err := newState().load(values)
		if err != nil {
			return nil, err
		}
		if v.c == classNull {
			return &valueSet{hasNull: values.Len() > 0}, nil
		}
		return newValueSet(&v), nil
	})
	return func(x *call) (vector, error) {
		s, err := set()
		if err != nil {
			return vector{}, err
		}
		switch {
		case !all:
			return x.hasAny(s)
		case lost || s.hasNull:
			return hasNone(false)(x) // a needle that nothing equals
		}
		return x.hasAll(values)
	}
}

// hasAll tells which lists have every one of the needles, none of them NULL: each needle in turn, over the lists that are still complete.
func (x *call) hasAll(needles arrow.Array) (vector, error) {
	v := &x.args[0]
	e, err := x.elements(v)
	if err != nil {
		return vector{}, err
	}
	ids, distinct, err := x.needleIDs(e.arr, needles)
	if err != nil {
		return vector{}, err
	}
	out := vector{c: classBool, n: x.n, bits: x.zeros(x.n), valid: v.valid}
	seen := make([]int32, distinct) // the row that last had needle k
	for i := range seen {
		seen[i] = -1
	}
	for i := range x.n {
		from, to := e.view.from(i)
		missing := distinct
		for j := from - e.base; j < to-e.base && missing > 0; j++ {
			if k := ids[j]; k >= 0 && seen[k] != int32(i) {
				seen[k] = int32(i)
				missing--
			}
		}
		if missing == 0 {
			out.bits[i>>3] |= 1 << (i & 7)
		}
	}
	return out, nil
}

// needleIDs numbers the needles and returns the number of each element's needle, -1 for the others.
func (x *call) needleIDs(arr, needles arrow.Array) (ids []int32, distinct int, err error) {
	want, err := x.load(needles)
	if err != nil {
		return nil, 0, err
	}
	number := make(map[string]int32, want.n)
	var key []byte
	for k := range want.n {
		key = appendKey(key[:0], &want, k)
		if _, ok := number[string(key)]; !ok {
			number[string(key)] = int32(len(number))
		}
	}
	if dict, ok := arr.(*array.Dictionary); ok {
		inner, _, err := x.needleIDs(dict.Dictionary(), needles)
		if err != nil {
			return nil, 0, err
		}
		ids = makeSlice[int32](x.arena, arr.Len())
		x.codes(ids, dict)
		for i, c := range ids {
			if c >= 0 {
				ids[i] = inner[c]
			}
		}
		return ids, len(number), nil
	}
	v, err := x.load(arr)
	if err != nil {
		return nil, 0, err
	}
	ids = makeSlice[int32](x.arena, arr.Len())
	if v.c == classString && len(number) <= fewMax {
		fewIDs(ids, &v, number)
		return ids, len(number), nil
	}
	hits, err := x.matches(arr, newValueSet(&want))
	if err != nil {
		return nil, 0, err
	}
	for i := range ids {
		ids[i] = -1
		if hits[i>>3]>>(i&7)&1 == 1 {
			key = appendKey(key[:0], &v, i)
			ids[i] = number[string(key)]
		}
	}
	return ids, len(number), nil
}

// fewIDs compares every element with each of a few needles.
func fewIDs(ids []int32, v *vector, number map[string]int32) {
	needles := make([]string, len(number))
	for s, k := range number {
		needles[k] = s
	}
	for i := range ids {
		ids[i] = -1
		if v.null(i) {
			continue
		}
		s := v.str(i)
		for k, w := range needles {
			if len(w) == len(s) && string(s) == w {
				ids[i] = int32(k)
				break
			}
		}
	}
}

// appendKey is a value as bytes that are equal where the values are.
func appendKey(dst []byte, v *vector, i int) []byte {
	switch v.c {
	case classString:
		return append(dst, v.str(i)...)
	case classDecimal, classWide:
		for _, w := range v.bigKey(i) {
			dst = appendWord(dst, w)
		}
		return dst
	}
	return appendWord(dst, v.word(i))
}

func appendWord(dst []byte, w uint64) []byte {
	for s := 0; s < 64; s += 8 {
		dst = append(dst, byte(w>>s))
	}
	return dst
}

// hasListColumn compares two lists row by row.
func (r *request) hasListColumn(t, elem arrow.DataType, all bool) (impl, error) {
	other := storageType(r.types[1])
	if classOf(other) == classString {
		other = arrow.ListOf(typeString())
	}
	otherElem := elementType(other)
	if otherElem == nil {
		return impl{}, r.typesError(nil)
	}
	common := comparisonType(elem, otherElem)
	for _, from := range []arrow.DataType{elem, otherElem} {
		if err := checkCast(from, common); err != nil {
			return impl{}, r.typesError(err)
		}
	}
	return impl{t: typeBool(), params: []arrow.DataType{t, other}, run: func(x *call) (vector, error) {
		a, err := x.elements(&x.args[0])
		if err != nil {
			return vector{}, err
		}
		b, err := x.elements(&x.args[1])
		if err != nil {
			return vector{}, err
		}
		av, err := x.loadAs(a.arr, common)
		if err != nil {
			return vector{}, err
		}
		bv, err := x.loadAs(b.arr, common)
		if err != nil {
			return vector{}, err
		}
		return x.bools(func(i int) (bool, bool) {
			return x.compareLists(&a, av, &b, bv, i, all), true
		})
	}}, nil
}

func (x *call) compareLists(a *elements, av *vector, b *elements, bv *vector, i int, all bool) bool {
	from, to := a.view.from(x.args[0].at(i))
	bFrom, bTo := b.view.from(x.args[1].at(i))
	for k := int(bFrom - b.base); k < int(bTo-b.base); k++ {
		found := false
		for j := int(from - a.base); j < int(to-a.base) && !found && !bv.nullAt(k); j++ {
			found = !av.nullAt(j) && compareValues(av, j, bv, k) == 0
		}
		if found != all {
			return found
		}
	}
	return all
}
