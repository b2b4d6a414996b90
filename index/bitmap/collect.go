package bitmap

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Collector gathers, for each distinct value, the stored keys of the rows that hold it. It is not safe for concurrent use.
type Collector struct {
	codec   key.Codec
	words   map[uint64]*holder
	texts   map[string]*holder
	null    holder
	held    *mem.Reservation
	counted int64    // bytes held when they were counted last
	locals  []uint64 // words of the array being added
}

// NewCollector collects values of type t; budget (nil = nobody) pays. Errors: ErrUnsupported for types without an order.
func NewCollector(t arrow.DataType, budget *mem.Budget) (*Collector, error) {
	codec, err := key.NewCodec(t)
	if err != nil {
		return nil, err
	}
	return &Collector{codec: codec, words: make(map[uint64]*holder), texts: make(map[string]*holder), held: budget.Reserve()}, nil
}

// What collecting may cost: a new value its map slot and holder, each row of a value an array slot that is grown by doubling.
const (
	valueBytes = 160
	rowBytes   = 8
)

// Add takes one value for each row: value i of values belongs to the row of stored key keys[i], NULLs count as a value. A row may come
// several times with the same value, one call after the other. Errors: ErrInvalid for values of another type, ErrMemoryLimit.
func (c *Collector) Add(values arrow.Array, keys []uint64) error {
	if !c.codec.Accepts(values.DataType()) {
		return errs.New(errs.ErrInvalid, "values of type %s in an index of %s", values.DataType(), c.codec.Type())
	}
	if values.Len() != len(keys) {
		return errs.New(errs.ErrInternal, "%d values for %d rows", values.Len(), len(keys))
	}
	if err := c.pay(int64(len(keys)) * rowBytes); err != nil {
		return err
	}
	if !c.codec.IsWide() {
		c.locals = c.codec.AppendWords(c.locals[:0], values)
	}
	var scratch [32]byte
	for i, k := range keys {
		if values.IsNull(i) {
			c.null.add(k)
			continue
		}
		var h *holder
		var err error
		if c.codec.IsWide() {
			h, err = c.wideHolder(c.codec.ValueBytes(values, i, &scratch))
		} else {
			h, err = c.wordHolder(c.locals[i])
		}
		if err != nil {
			return err
		}
		h.add(k)
	}
	return nil
}

// pay reserves bytes. What was paid for rows is more than dense bitmaps take, so a refusal is answered by counting anew, unless
// that was done not long ago.
func (c *Collector) pay(bytes int64) error {
	err := c.held.Grow(bytes)
	if err == nil || c.held.Held() < c.counted+c.counted/4 { // counted not long ago
		return err
	}
	real := c.null.sizeBytes()
	for _, h := range c.words {
		real += h.sizeBytes()
	}
	for t, h := range c.texts {
		real += h.sizeBytes() + int64(len(t))
	}
	if real < c.held.Held() {
		c.held.Shrink(c.held.Held() - real)
	}
	c.counted = c.held.Held()
	return c.held.Grow(bytes)
}

func (c *Collector) wordHolder(w uint64) (*holder, error) {
	if h, ok := c.words[w]; ok {
		return h, nil
	}
	if err := c.pay(valueBytes); err != nil {
		return nil, err
	}
	h := &holder{}
	c.words[w] = h
	return h, nil
}

func (c *Collector) wideHolder(b []byte) (*holder, error) {
	if h, ok := c.texts[string(b)]; ok {
		return h, nil
	}
	if err := c.pay(valueBytes + int64(len(b))); err != nil {
		return nil, err
	}
	h := &holder{}
	c.texts[string(b)] = h
	return h, nil
}

// Values is the number of distinct values, NULL included.
func (c *Collector) Values() int {
	n := len(c.words) + len(c.texts)
	if c.null.count > 0 {
		n++
	}
	return n
}

// Free gives the memory back to the budget; the Collector must not be used afterwards.
func (c *Collector) Free() { c.held.Free() }

type entry struct {
	key    key.Key
	holder *holder
}

// sorted returns the values that are not NULL, ascending.
func (c *Collector) sorted() []entry {
	out := make([]entry, 0, len(c.words)+len(c.texts))
	for w, h := range c.words {
		out = append(out, entry{key.Key{Word: w}, h})
	}
	for t, h := range c.texts {
		out = append(out, entry{key.Key{Bytes: []byte(t)}, h})
	}
	slices.SortFunc(out, func(a, b entry) int { return c.codec.Compare(a.key, b.key) })
	return out
}

// holder is the rows of one value: a short list while they are few, bitmaps afterwards.
type holder struct {
	few   []uint64
	set   *rowset.Set
	last  uint64          // added last
	part  *roaring.Bitmap // of set, for last's upper half
	count int             // keys added
}

const fewMax = 24

func (h *holder) add(k uint64) {
	if h.count > 0 && k == h.last { // an element twice in one list
		return
	}
	h.count++
	if h.set == nil {
		if len(h.few) < fewMax {
			h.few, h.last = append(h.few, k), k
			return
		}
		h.set = rowset.NewSet(h.few...)
		h.few = nil
	}
	if h.part == nil || h.last>>32 != k>>32 {
		h.set.Add(k)
		h.part = h.set.Bitmap(uint32(k >> 32))
	} else {
		h.part.Add(uint32(k)) // the set is this holder's own
	}
	h.last = k
}

func (h *holder) sizeBytes() int64 { return valueBytes + int64(cap(h.few))*8 + h.set.SizeBytes() }

func (h *holder) rows() *rowset.Set {
	if h.set == nil {
		return rowset.NewSet(h.few...)
	}
	return h.set
}
