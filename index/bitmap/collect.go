package bitmap

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/spill"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// Collector gathers, for each distinct value, the stored keys of the rows that hold it: in memory while that is little, in sorted runs on disk beyond, and out
// of segments that are there already. It is not safe for concurrent use.
type Collector struct {
	codec    key.Codec
	opts     index.BuildOptions
	words    map[uint64]*postings
	texts    map[string]*postings
	null     postings
	free     []postings // room for new values
	held     *mem.Reservation
	size     int64 // bytes that the values and rows in memory take
	others   int64 // bytes that others hold in the same reservation
	runs     spill.Runs
	segments []segmentPart
	locals   []uint64 // words of the array being added
}

// segmentPart is a segment whose entries are taken over.
type segmentPart struct {
	file *File
	keep index.KeyMap
}

// NewCollector collects values of type t. Errors: ErrUnsupported for types without an order.
func NewCollector(t arrow.DataType, opts index.BuildOptions) (*Collector, error) {
	codec, err := key.NewCodec(t)
	if err != nil {
		return nil, err
	}
	opts = opts.WithDefaults()
	c := &Collector{codec: codec, opts: opts, held: opts.Budget.Reserve()}
	c.runs.Parent = opts.TempDir
	c.clear()
	return c, nil
}

func (c *Collector) clear() {
	c.words, c.texts, c.null, c.free, c.size = make(map[uint64]*postings), make(map[string]*postings), postings{}, nil, 0
}

// valueBytes is what a new value costs beside its bytes and rows: its map slot and postings.
const valueBytes = 120

// Add takes one value for each row: value i of values belongs to the row of stored key keys[i], NULLs count as a value. A row may come
// several times with the same value, one call after the other. Errors: ErrInvalid for values of another type, ErrMemoryLimit, ErrDiskFull, ErrIO.
func (c *Collector) Add(values arrow.Array, keys []uint64) error {
	if !c.codec.Accepts(values.DataType()) {
		return errs.New(errs.ErrInvalid, "values of type %s in an index of %s", values.DataType(), c.codec.Type())
	}
	if values.Len() != len(keys) {
		return errs.New(errs.ErrInternal, "%d values for %d rows", values.Len(), len(keys))
	}
	if !c.codec.IsWide() {
		c.locals = c.codec.AppendWords(c.locals[:0], values)
	}
	var scratch [32]byte
	nulls := values.NullN() > 0
	for i, k := range keys {
		var p *postings
		switch {
		case nulls && values.IsNull(i):
			p = &c.null
		case c.codec.IsWide():
			p = c.wide(c.codec.ValueBytes(values, i, &scratch))
		default:
			p = c.word(c.locals[i])
		}
		c.size += p.add(k)
	}
	return c.pay()
}

// HoldOthers says that bytes more, of what belongs to the same build, are in memory.
func (c *Collector) HoldOthers(bytes int64) error {
	c.others = bytes
	return c.pay()
}

// pay holds what is in memory; what is too much goes to disk.
func (c *Collector) pay() error {
	err := c.held.Resize(c.size + c.others)
	if err == nil && c.size <= c.opts.MemoryBytes {
		return nil
	}
	if c.size == 0 || err != nil && !errors.Is(err, errs.ErrMemoryLimit) {
		return err
	}
	if err := c.spill(); err != nil {
		return err
	}
	return c.held.Resize(c.others)
}

func (c *Collector) word(w uint64) *postings {
	p, ok := c.words[w]
	if !ok {
		p = c.newPostings()
		c.words[w] = p
		c.size += valueBytes
	}
	return p
}

func (c *Collector) wide(b []byte) *postings {
	p, ok := c.texts[string(b)]
	if !ok {
		p = c.newPostings()
		c.texts[string(b)] = p
		c.size += valueBytes + int64(len(b))
	}
	return p
}

func (c *Collector) newPostings() *postings {
	if len(c.free) == 0 {
		c.free = make([]postings, 256)
	}
	p := &c.free[0]
	c.free = c.free[1:]
	return p
}

// AddSegment takes over the entries of an opened file, whose bitmaps are read when the new file is written: the file must stay open until then. keep says which rows
// stay, and must leave out those that other parts hold. Errors: ErrInvalid for keys of another type.
func (c *Collector) AddSegment(f *File, keep index.KeyMap) error {
	if !c.codec.Accepts(f.keys.Codec().Type()) {
		return errs.New(errs.ErrInvalid, "keys of type %s in an index of %s", f.keys.Codec().Type(), c.codec.Type())
	}
	c.segments = append(c.segments, segmentPart{f, keep})
	return nil
}

// Runs is the number of runs that were written to disk so far.
func (c *Collector) Runs() int { return c.runs.Count() }

// Free gives the memory back to the budget and takes the runs away; the Collector must not be used afterwards.
func (c *Collector) Free() {
	c.held.Free()
	_ = c.runs.Remove() // the folder is for temporary files: what cannot be deleted there is not the build's failure
}

// entry is a value in memory.
type entry struct {
	key  key.Key
	rows *postings
}

// sorted returns the values that are not NULL, ascending.
func (c *Collector) sorted() []entry {
	out := make([]entry, 0, len(c.words)+len(c.texts))
	for w, p := range c.words {
		out = append(out, entry{key.Key{Word: w}, p})
	}
	for t, p := range c.texts {
		out = append(out, entry{key.Key{Bytes: []byte(t)}, p})
	}
	slices.SortFunc(out, func(a, b entry) int { return c.codec.Compare(a.key, b.key) })
	return out
}

// The first byte of a key in a run.
const (
	runNull  = 0
	runValue = 1
)

// spill writes what is in memory to a sorted run and forgets it.
func (c *Collector) spill() error {
	err := c.runs.Add(func(put func(key, value []byte) error) error {
		if c.null.count > 0 {
			if err := put([]byte{runNull}, c.null.appendChunk(nil)); err != nil {
				return err
			}
		}
		var k, v []byte
		for _, e := range c.sorted() {
			k = append(k[:0], runValue)
			if c.codec.IsWide() {
				k = append(k, e.key.Bytes...)
			} else {
				k = binary.BigEndian.AppendUint64(k, e.key.Word)
			}
			v = e.rows.appendChunk(v[:0])
			if err := put(k, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.clear()
	return nil
}

// settle leaves few enough runs to be read at one time.
func (c *Collector) settle(ctx context.Context) error {
	return c.runs.Settle(ctx, func(dst []byte, values [][]byte) []byte {
		for _, v := range values {
			dst = append(dst, v...)
		}
		return dst
	})
}
