package encoding

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// LayerSpec is one level of the field tree above (and including) a leaf.
type LayerSpec struct {
	List  bool // list or map
	Wide  bool // List: offsets of 64 bits
	Times int  // fixed-size list of structs: how many entries make one value; 0 = 1
}

// PageLayers is what the levels of one page mean. It is immutable.
type PageLayers struct {
	layers     []pageLayer // inner-most first
	MaxRep     uint16
	MaxDef     uint16
	MaxVisible uint16 // entries with a definition level up to this have a value
}

const noLevel = math.MaxUint16

type pageLayer struct {
	lists  uint16 // lists at or below this layer: an entry with a repetition level of at least this starts a value here
	valid  uint16 // definition levels up to this are valid here
	empty  uint16 // the level of an empty list; noLevel = none
	exists uint16 // entries with a level up to this have a value here; noLevel = all
}

// CompileLayers checks the layer codes of a page, inner-most first, against the tree of the column.
func CompileLayers(codes []encpb.RepDefLayer, specs []LayerSpec) (*PageLayers, error) {
	if len(codes) != len(specs) || len(codes) > MaxLayers {
		return nil, corrupt("layers", "%d layers in a column of %d", len(codes), len(specs))
	}
	p := &PageLayers{layers: make([]pageLayer, len(codes)), MaxVisible: noLevel}
	for i, code := range codes {
		l := pageLayer{valid: p.MaxDef, empty: noLevel, exists: noLevel, lists: p.MaxRep}
		isList := true
		switch code {
		case encpb.RepDefLayer_REPDEF_ALL_VALID_ITEM:
			isList = false
		case encpb.RepDefLayer_REPDEF_NULLABLE_ITEM:
			isList = false
			p.MaxDef++
		case encpb.RepDefLayer_REPDEF_ALL_VALID_LIST:
		case encpb.RepDefLayer_REPDEF_NULLABLE_LIST:
			p.MaxDef++
		case encpb.RepDefLayer_REPDEF_EMPTYABLE_LIST:
			p.MaxDef++
			l.empty = p.MaxDef
		case encpb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST:
			p.MaxDef += 2
			l.empty = p.MaxDef
		default:
			return nil, corrupt("layers", "layer code %d", code)
		}
		if isList != specs[i].List {
			return nil, corrupt("layers", "code %s at layer %d, whose field is of the other kind", code, i)
		}
		if isList {
			if p.MaxRep == 0 {
				p.MaxVisible = l.valid
			}
			p.MaxRep++
			l.lists = p.MaxRep
			for j := i - 1; j >= 0 && p.layers[j].exists == noLevel; j-- {
				p.layers[j].exists = l.valid
			}
		}
		p.layers[i] = l
	}
	return p, nil
}

// Nesting collects, for one leaf column, the validity and the offsets of each layer. It belongs to one goroutine.
type Nesting struct {
	Layers []Layer // inner-most first; layer 0 is the leaf itself
}

// Layer is the collected structure of one layer.
type Layer struct {
	Spec    LayerSpec
	N       int // values so far
	valid   bitmap
	offsets buf
}

// NewNesting returns an empty collector for a column of these layers.
func NewNesting(mem memory.Allocator, specs []LayerSpec) *Nesting {
	t := &Nesting{Layers: make([]Layer, len(specs))}
	for i := range t.Layers {
		l := &t.Layers[i]
		l.Spec = specs[i]
		l.valid.words.mem, l.offsets.mem = mem, mem
		if l.Spec.List {
			clear(l.offsets.tail(l.offsetBytes()))
			l.offsets.advance(l.offsetBytes())
		}
	}
	return t
}

func (l *Layer) offsetBytes() int {
	if l.Spec.Wide {
		return 8
	}
	return 4
}

// TakeValidity hands over the validity bitmap (nil = all valid) and the count of nulls.
func (l *Layer) TakeValidity() (*memory.Buffer, int) {
	nulls := l.valid.zeros
	if nulls == 0 {
		l.valid.release()
		return nil, 0
	}
	return l.valid.finish(false), nulls
}

// TakeOffsets hands over the N+1 offsets of a list layer.
func (l *Layer) TakeOffsets() *memory.Buffer { return l.offsets.finish() }

// IsValid reports whether value i of the layer is valid.
func (l *Layer) IsValid(i int) bool { return l.valid.get(i) }

// Release frees what was not taken.
func (t *Nesting) Release() {
	for i := range t.Layers {
		t.Layers[i].valid.release()
		t.Layers[i].offsets.release()
	}
}

// AppendValid appends n rows in which nothing is null; the column has no lists.
func (t *Nesting) AppendValid(n int) {
	for i := range t.Layers {
		l := &t.Layers[i]
		l.valid.appendOnes(n)
		l.N += n
		if l.Spec.Times > 1 {
			n /= l.Spec.Times
		}
	}
}

// Append adds n entries with their levels (nil = the page has none) and returns how many of them have a value.
// The entries begin and end at row borders.
func (t *Nesting) Append(p *PageLayers, rep, def []uint16, n int) (visible int, err error) {
	if n == 0 {
		return 0, nil
	}
	if p.MaxRep == 0 {
		return t.appendFlat(p, def, n)
	}
	if len(rep) != n || (def != nil && len(def) != n) {
		return 0, corrupt("levels", "%d repetition and %d definition levels for %d entries", len(rep), len(def), n)
	}
	if rep[0] != p.MaxRep {
		return 0, corrupt("levels", "a row that starts with repetition level %d of %d", rep[0], p.MaxRep)
	}
	div := make([]int, len(t.Layers)) // entries of the layer's own values, in entries of the list below
	d := 1
	for i := range t.Layers {
		if s := t.Layers[i].Spec; s.List {
			d = 1
		} else if s.Times > 1 {
			d *= s.Times
		}
		div[i] = d
	}
	for i := len(t.Layers) - 1; i >= 0; i-- {
		l, pl := &t.Layers[i], p.layers[i]
		switch {
		case l.Spec.List:
			below := &t.Layers[i-1]
			if err := l.appendLists(pl, rep, def, below.N, div[i-1]); err != nil {
				return 0, err
			}
		default:
			raw := l.appendSlots(pl, rep, def, div[i])
			if raw%div[i] != 0 {
				return 0, corrupt("levels", "%d entries in lists of %d", raw, div[i])
			}
			if i == 0 {
				visible = raw
			}
		}
	}
	return visible, nil
}

// appendFlat is Append for a column without lists: every entry is a value of every layer.
func (t *Nesting) appendFlat(p *PageLayers, def []uint16, n int) (int, error) {
	if def == nil {
		t.AppendValid(n)
		return n, nil
	}
	if len(def) != n {
		return 0, corrupt("levels", "%d definition levels for %d entries", len(def), n)
	}
	div := 1
	for i := range t.Layers {
		l := &t.Layers[i]
		if l.Spec.Times > 1 {
			div *= l.Spec.Times
		}
		if n%div != 0 {
			return 0, corrupt("levels", "%d entries in lists of %d", n, div)
		}
		if div == 1 {
			l.valid.appendAtMost(def, p.layers[i].valid)
		} else {
			for j := 0; j < n; j += div {
				l.valid.appendAtMost(def[j:j+1], p.layers[i].valid)
			}
		}
		l.N += n / div
	}
	return n, nil
}

// appendSlots adds the values of an item layer and returns how many entries have one (div entries make one value).
// The loop has no branch but the one every 64 values.
func (l *Layer) appendSlots(p pageLayer, rep, def []uint16, div int) int {
	if def == nil {
		n := 0
		limit := uint32(p.lists) - 1
		for _, r := range rep {
			n += int((limit - uint32(r)) >> 31)
		}
		if p.lists == 0 {
			n = len(rep)
		}
		l.valid.appendOnes(n / div)
		l.N += n / div
		return n
	}
	if div > 1 {
		return l.appendSparseSlots(p, rep, def, div)
	}
	n := 0
	c := compareOf(p)
	for len(rep) > 0 {
		r, d, within := c.block(&rep, &def)
		slots := c.begins(r, p.lists) & maskWord(d, c.exists) & within
		k := bits.OnesCount64(slots)
		if k > 0 {
			l.valid.appendWord(compress(maskWord(d, c.valid)&slots, slots, k), k)
		}
		n += k
	}
	l.N += n
	return n
}

// appendSparseSlots is appendSlots where the first of div entries speaks for the value.
func (l *Layer) appendSparseSlots(p pageLayer, rep, def []uint16, div int) int {
	n := 0
	for j, r := range rep {
		if r < p.lists || def[j] > p.exists {
			continue
		}
		if n%div == 0 {
			var bit uint64
			if def[j] <= p.valid {
				bit = 1
			}
			l.valid.appendWord(bit, 1)
			l.N++
		}
		n++
	}
	return n
}

// appendLists adds the lists of a list layer whose values start at base in the layer below; div entries make one of them.
func (l *Layer) appendLists(p pageLayer, rep, def []uint16, base, div int) error {
	if !l.Spec.Wide && base+len(rep) > math.MaxInt32 {
		return errs.New(errs.ErrOverflow, "more than 2^31 list items in one batch")
	}
	w := l.offsetBytes()
	room := l.offsets.tail(w * len(rep))
	// The last offset so far is the start of the first new list: write from there.
	all := l.offsets.buf.Buf()[l.offsets.n-w : l.offsets.n+len(room)]
	var n int
	if l.Spec.Wide {
		n = listStarts(cast[int64](all), &l.valid, p, rep, def, base, div)
	} else {
		n = listStarts(cast[int32](all), &l.valid, p, rep, def, base, div)
	}
	l.offsets.advance(n * w)
	l.N += n
	return nil
}

// listStarts writes the start of each list and the end of the last, and returns the count of lists.
func listStarts[O int32 | int64](dst []O, valid *bitmap, p pageLayer, rep, def []uint16, base, div int) int {
	dst = dst[:len(rep)+1]
	n, items := 0, O(0)
	first := int32(p.lists) - 1
	if def == nil {
		for _, r := range rep {
			dst[n] = items
			n += int(uint32(first-int32(r)) >> 31)
			items += O(uint32(first-1-int32(r)) >> 31)
		}
		dst[n] = items
		valid.appendOnes(n)
		shift(dst[:n+1], O(base), O(div))
		return n
	}
	c := compareOf(p)
	empty := maskAdd(p.empty)
	for len(rep) > 0 {
		r, d, within := c.block(&rep, &def)
		has := maskWord(d, c.valid) & within
		lists := c.begins(r, p.lists) & maskWord(d, c.exists) & within
		inner := c.begins(r, p.lists-1) & has
		valid1 := has
		if p.empty != noLevel {
			valid1 |= maskWord(d, empty) &^ maskWord(d, maskAdd(p.empty-1))
		}
		k := bits.OnesCount64(lists)
		if k > 0 {
			valid.appendWord(compress(valid1&lists, lists, k), k)
		}
		for ; lists != 0; lists &= lists - 1 { // a list starts behind the items in front of it
			dst[n] = items + O(bits.OnesCount64(inner&(lists&-lists-1)))
			n++
		}
		items += O(bits.OnesCount64(inner))
	}
	dst[n] = items
	shift(dst[:n+1], O(base), O(div))
	return n
}

// shift turns counts of entries into offsets.
func shift[O int32 | int64](dst []O, base, div O) {
	if div != 1 {
		for i := range dst {
			dst[i] /= div
		}
	}
	for i := range dst {
		dst[i] += base
	}
}
