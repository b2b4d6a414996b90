package key

import (
	"bytes"
	"math"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// Dict maps the keys of a file to the rows that hold them, in a compact form: the keys in one piece of memory, and their order as row
// numbers where the file is not sorted. Fill it with Append, then call Finish; after that it does not change and is safe for
// concurrent use.
type Dict struct {
	codec Codec
	held  *mem.Reservation

	words []uint64 // word codecs: key of entry e
	text  []byte   // wide codecs: key of entry e = text[ends[e-1]:ends[e]]
	ends  []uint32
	rows  []uint32 // row of entry e; nil while it is e itself (no NULL was seen yet)
	order []uint32 // entries, keys ascending; nil = they are
	nulls []uint32 // rows whose key is NULL
	count uint32   // rows appended
}

// NewDict returns an empty Dict whose memory is paid for by budget (nil = nobody).
func NewDict(codec Codec, budget *mem.Budget) *Dict {
	return &Dict{codec: codec, held: budget.Reserve()}
}

// Append takes the keys of the next rows. Errors: ErrMemoryLimit; ErrUnsupported for more than 4 GiB of key bytes or 2^32 rows.
func (d *Dict) Append(arr arrow.Array) error {
	n := arr.Len()
	if uint64(d.count)+uint64(n) > math.MaxUint32 {
		return errs.New(errs.ErrUnsupported, "more than %d keys", uint32(math.MaxUint32))
	}
	if err := d.pay(arr); err != nil {
		return err
	}
	if arr.NullN() > 0 && d.rows == nil {
		d.rows = make([]uint32, d.entries(), d.entries()+n)
		for e := range d.rows {
			d.rows[e] = uint32(e)
		}
	}
	var scratch [32]byte
	before := len(d.words)
	if !d.codec.wide {
		d.words = d.codec.AppendWords(d.words, arr)
	}
	kept := before
	for i := range n {
		row := d.count + uint32(i)
		if arr.IsNull(i) {
			d.nulls = append(d.nulls, row)
			continue
		}
		if d.codec.wide {
			d.text = append(d.text, d.codec.ValueBytes(arr, i, &scratch)...)
			d.ends = append(d.ends, uint32(len(d.text)))
		} else {
			d.words[kept] = d.words[before+i]
			kept++
		}
		if d.rows != nil {
			d.rows = append(d.rows, row)
		}
	}
	if !d.codec.wide {
		d.words = d.words[:kept]
	}
	d.count += uint32(n)
	return nil
}

// pay reserves what the keys of arr will take, sorting included, before they are copied.
func (d *Dict) pay(arr arrow.Array) error {
	const entryBytes = 8 + 4 + 4 // the key or its end, its row, its place in the order
	want := int64(arr.Len()) * entryBytes
	if d.codec.wide {
		size := int64(len(d.text))
		var scratch [32]byte
		for i := range arr.Len() {
			if arr.IsValid(i) {
				size += int64(len(d.codec.ValueBytes(arr, i, &scratch)))
			}
		}
		if size > math.MaxUint32 {
			return errs.New(errs.ErrUnsupported, "more than 4 GiB of keys")
		}
		want += size - int64(len(d.text))
	}
	return d.held.Grow(want)
}

// Finish sorts the entries.
func (d *Dict) Finish() {
	d.words, d.text, d.ends = slices.Clip(d.words), slices.Clip(d.text), slices.Clip(d.ends)
	n := d.entries()
	sorted := true
	for e := 1; e < n && sorted; e++ {
		sorted = d.codec.Compare(d.key(uint32(e-1)), d.key(uint32(e))) <= 0
	}
	if sorted {
		return
	}
	d.order = make([]uint32, n)
	for e := range d.order {
		d.order[e] = uint32(e)
	}
	if d.codec.wide {
		slices.SortStableFunc(d.order, func(a, b uint32) int { return bytes.Compare(d.key(a).Bytes, d.key(b).Bytes) })
	} else {
		words := d.words
		slices.SortStableFunc(d.order, func(a, b uint32) int {
			switch {
			case words[a] < words[b]:
				return -1
			case words[a] > words[b]:
				return 1
			}
			return 0
		})
	}
}

func (d *Dict) entries() int {
	if d.codec.wide {
		return len(d.ends)
	}
	return len(d.words)
}

func (d *Dict) key(entry uint32) Key {
	if !d.codec.wide {
		return Key{Word: d.words[entry]}
	}
	var start uint32
	if entry > 0 {
		start = d.ends[entry-1]
	}
	return Key{Bytes: d.text[start:d.ends[entry]]}
}

func (d *Dict) entry(place int) uint32 {
	if d.order == nil {
		return uint32(place)
	}
	return d.order[place]
}

// IsSorted says that the keys ascend in the order in which they were appended.
func (d *Dict) IsSorted() bool { return d.order == nil }

// Len is the number of keys that are not NULL.
func (d *Dict) Len() int { return d.entries() }

// Codec returns the codec of the keys.
func (d *Dict) Codec() Codec { return d.codec }

// NullRows returns the rows of the NULL key; a well-formed file has at most one. The caller must not change it.
func (d *Dict) NullRows() []uint32 { return d.nulls }

// Key returns the key at a place of the ascending order.
func (d *Dict) Key(place int) Key { return d.key(d.entry(place)) }

// Row returns the row of the key at a place of the ascending order.
func (d *Dict) Row(place int) uint32 {
	e := d.entry(place)
	if d.rows == nil {
		return e
	}
	return d.rows[e]
}

// Span returns the places [start, end) of the keys in r.
func (d *Dict) Span(r Range) (start, end int) {
	n := d.entries()
	start = sort.Search(n, func(p int) bool { return !d.codec.Below(d.Key(p), r) })
	if d.codec.IsPoint(r) { // usually one key: no second search
		for end = start; end < n && d.codec.Compare(d.Key(end), r.Hi) == 0; end++ {
		}
		return start, end
	}
	end = start + sort.Search(n-start, func(p int) bool { return d.codec.Above(d.Key(start+p), r) })
	return start, end
}

// SizeBytes is the memory held.
func (d *Dict) SizeBytes() int64 {
	return int64(cap(d.words))*8 + int64(cap(d.text)) + int64(cap(d.ends)+cap(d.rows)+cap(d.order)+cap(d.nulls))*4
}

// Free gives the memory back to the budget; the Dict must not be used afterwards. A nil Dict has none.
func (d *Dict) Free() {
	if d != nil {
		d.held.Free()
	}
}
