package encoding

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
)

type stepKind uint8

const (
	stepLeaf stepKind = iota
	stepStruct
	stepList
	stepStructList // fixed-size list of structs
)

// encodeStep is one layer on the way from a column to a leaf.
type encodeStep struct {
	kind     stepKind
	child    int // struct: which field comes next
	times    int // fixed-size list of structs: its size
	nullable bool
	path     string
	// Canonical definition levels that this layer owns; lists own two, nulls before empties.
	defNull, defEmpty uint16
	listLevel         uint16 // lists: 1 = inner-most
	// Fixed-size lists of structs: the level of the next list outwards, and that of a null of it; 0 = there is none.
	listAbove, defAbove uint16
}

// numberLevels gives every layer its levels, inner-most first.
func (b *leafBuilder) numberLevels() {
	b.scale = 1
	level := uint16(0)
	for i := len(b.steps) - 1; i >= 0; i-- {
		s := &b.steps[i]
		level++
		s.defNull = level
		if s.kind == stepList {
			if b.maxRep == 0 {
				b.maxVisible = level - 1
			}
			level++
			s.defEmpty = level
			b.maxRep++
			s.listLevel = b.maxRep
		}
	}
	if b.maxRep == 0 {
		b.maxVisible = level
	}
	var above encodeStep
	for i := range b.steps {
		s := &b.steps[i]
		switch s.kind {
		case stepList:
			above, b.scale = *s, 1
		case stepStructList:
			s.listAbove, s.defAbove = above.listLevel, above.defNull
			b.scale *= s.times
		}
	}
}

// entrySet is a run of entries on their way down: which element of the current array each one is, or -1 where the structure has already
// ended, and the levels so far.
type entrySet struct {
	n     int
	base  int      // with a nil index: entry i is element base+i
	index []int    // -1 = ended above
	def   []uint16 // nil = all zero; never nil where an index is -1
	rep   []uint16 // nil = every entry starts a row
}

// indexed returns the set in the form with index and def, ready for change.
func (e entrySet) indexed() entrySet {
	if e.index == nil {
		e.index = make([]int, e.n)
		for i := range e.index {
			e.index[i] = e.base + i
		}
	}
	if e.def == nil {
		e.def = make([]uint16, e.n)
	}
	return e
}

// add takes rows [lo, hi) of the column's array apart.
func (b *leafBuilder) add(arr arrow.Array, lo, hi int) error {
	e := entrySet{n: hi - lo, base: lo}
	b.rows += hi - lo
	for _, s := range b.steps {
		for {
			ext, ok := arr.(array.ExtensionArray)
			if !ok {
				break
			}
			arr = ext.Storage()
		}
		if b.kind == leafNull && s.kind == stepLeaf {
			e = e.allNull(s.defNull)
		} else {
			e = e.markNulls(arr, s)
		}
		if d, ok := arr.(*array.Dictionary); ok && d.Dictionary().NullN() > 0 {
			e = e.markNullValues(d, s)
		}
		if e.index != nil && !s.nullable && e.hasLevel(s.defNull) {
			return errs.New(errs.ErrInvalid, "column %q has a null but is declared without nulls", s.path)
		}
		switch s.kind {
		case stepStruct:
			arr = arr.(*array.Struct).Field(s.child)
		case stepStructList:
			list := arr.(*array.FixedSizeList)
			e = e.repeat(list, s)
			arr = list.ListValues()
		case stepList:
			list := arr.(array.ListLike)
			e = e.expand(list, s, b.maxRep)
			arr = list.ListValues()
		}
	}
	b.appendLevelsOf(e)
	return b.appendValues(e, b.source(arr))
}

func (e entrySet) hasLevel(level uint16) bool {
	for _, d := range e.def {
		if d == level {
			return true
		}
	}
	return false
}

func (e entrySet) allNull(level uint16) entrySet {
	e = e.indexed()
	for i, at := range e.index {
		if at >= 0 {
			e.index[i], e.def[i] = -1, level
		}
	}
	return e
}

// markNulls ends the entries whose element is null.
func (e entrySet) markNulls(arr arrow.Array, s encodeStep) entrySet {
	if arr.NullN() == 0 {
		return e
	}
	if e.index == nil {
		some := false
		for i := e.base; i < e.base+e.n && !some; i++ {
			some = arr.IsNull(i)
		}
		if !some {
			return e
		}
	}
	e = e.indexed()
	for i, at := range e.index {
		if at >= 0 && arr.IsNull(at) {
			e.index[i], e.def[i] = -1, s.defNull
		}
	}
	return e
}

// markNullValues ends the entries whose dictionary value is null.
func (e entrySet) markNullValues(d *array.Dictionary, s encodeStep) entrySet {
	e = e.indexed()
	for i, at := range e.index {
		if at >= 0 && d.Dictionary().IsNull(d.GetValueIndex(at)) {
			e.index[i], e.def[i] = -1, s.defNull
		}
	}
	return e
}

// repeat replaces every fixed-size list by its items, a null one by as many nulls. What ended at a list above stays one entry.
func (e entrySet) repeat(list *array.FixedSizeList, s encodeStep) entrySet {
	out := entrySet{}
	for i := range e.n {
		at := e.base + i
		if e.index != nil {
			at = e.index[i]
		}
		times, from, def := s.times, 0, uint16(0)
		if at >= 0 {
			first, _ := list.ValueOffsets(at)
			from = int(first)
		} else if def = e.def[i]; s.defAbove > 0 && def >= s.defAbove {
			times = 1
		}
		for k := range times {
			if at >= 0 {
				out.index = append(out.index, from+k)
			} else {
				out.index = append(out.index, -1)
			}
			out.def = append(out.def, def)
			if e.rep == nil {
				continue
			}
			if k == 0 {
				out.rep = append(out.rep, e.rep[i])
			} else {
				out.rep = append(out.rep, s.listAbove-1)
			}
		}
	}
	out.n = len(out.index)
	return out
}

// expand replaces every list by its items; an empty list ends there.
func (e entrySet) expand(list array.ListLike, s encodeStep, maxRep uint16) entrySet {
	rowRep := func(i int) uint16 {
		if e.rep == nil {
			return maxRep
		}
		return e.rep[i]
	}
	items, isDense := 0, e.index == nil
	for i := range e.n {
		at := e.base + i
		if e.index != nil {
			if at = e.index[i]; at < 0 {
				items++
				continue
			}
		}
		from, to := list.ValueOffsets(at)
		if from == to {
			isDense = false
			items++
		}
		items += int(to - from)
	}
	out := entrySet{n: items, rep: make([]uint16, 0, items)}
	if isDense && e.n > 0 {
		from, _ := list.ValueOffsets(e.base)
		out.base = int(from)
	} else {
		out.index, out.def = make([]int, 0, items), make([]uint16, 0, items)
	}
	end := func(i int, level uint16) {
		out.index, out.def, out.rep = append(out.index, -1), append(out.def, level), append(out.rep, rowRep(i))
	}
	for i := range e.n {
		at := e.base + i
		if e.index != nil {
			if at = e.index[i]; at < 0 {
				end(i, e.def[i])
				continue
			}
		}
		from, to := list.ValueOffsets(at)
		if from == to {
			end(i, s.defEmpty)
			continue
		}
		out.rep = append(out.rep, rowRep(i))
		for range to - from - 1 {
			out.rep = append(out.rep, s.listLevel-1)
		}
		if out.index == nil {
			continue
		}
		for v := from; v < to; v++ {
			out.index, out.def = append(out.index, int(v)), append(out.def, 0)
		}
	}
	return out
}
