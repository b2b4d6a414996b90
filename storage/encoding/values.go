package encoding

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// Kind is the physical form of a leaf's values.
type Kind uint8

// The kinds.
const (
	Null     Kind = iota // no values at all
	Fixed                // a fixed number of bits
	Variable             // bytes of any length
	Packed               // a struct whose fields lie together
)

// Shape describes the values of one leaf column. It is immutable.
type Shape struct {
	Kind     Kind
	ItemBits int     // Fixed: bits of one item, 1 or a multiple of 8
	Dims     []int   // Fixed: list sizes from the outer-most inwards; empty unless the leaf is a fixed-size list
	Wide     bool    // Variable: offsets of 64 bits
	Fields   []Shape // Packed: the fields in order, each Fixed or Variable
}

// Items returns how many items one value holds: the product of the list sizes.
func (s *Shape) Items() int {
	n := 1
	for _, d := range s.Dims {
		n *= d
	}
	return n
}

// Bits returns the bits of one fixed value.
func (s *Shape) Bits() int { return s.ItemBits * s.Items() }

// Values collects the decoded values of one leaf in Arrow's layout. It belongs to one goroutine; Release frees what was not taken.
type Values struct {
	Shape *Shape
	N     int // values so far

	fixed   buf
	bits    bitmap // Fixed with 1-bit items
	offsets buf
	data    buf
	items   []bitmap  // validity of the items at each level of Dims
	fields  []*Values // Packed
	codecs  *Codecs
	scratch []byte // rows of packed structs on their way into fields
}

// NewValues returns an empty collector with room for capacity values (and no promise for more than a hint where values vary in size).
func NewValues(mem memory.Allocator, codecs *Codecs, s *Shape, capacity int) *Values {
	v := &Values{Shape: s, codecs: codecs}
	v.fixed.mem, v.bits.words.mem, v.offsets.mem, v.data.mem = mem, mem, mem, mem
	switch s.Kind {
	case Fixed:
		v.items = make([]bitmap, len(s.Dims))
		for i := range v.items {
			v.items[i].words.mem = mem
		}
		if s.ItemBits > 1 {
			v.fixed.reserve(capacity * (s.Bits() / 8))
		}
	case Variable:
		v.offsets.reserve((capacity + 1) * v.offsetBytes())
		clear(v.offsets.tail(v.offsetBytes()))
		v.offsets.advance(v.offsetBytes())
	case Packed:
		v.fields = make([]*Values, len(s.Fields))
		for i := range s.Fields {
			v.fields[i] = NewValues(mem, codecs, &s.Fields[i], capacity)
		}
	}
	return v
}

func (v *Values) offsetBytes() int {
	if v.Shape.Wide {
		return 8
	}
	return 4
}

// Release frees the buffers that Take* did not hand over.
func (v *Values) Release() {
	v.fixed.release()
	v.bits.release()
	v.offsets.release()
	v.data.release()
	for i := range v.items {
		v.items[i].release()
	}
	for _, f := range v.fields {
		f.Release()
	}
}

// TakeFixed hands over the buffer of fixed-width values (for 1-bit items the bitmap).
func (v *Values) TakeFixed() *memory.Buffer {
	if v.Shape.ItemBits == 1 {
		return v.bits.finish(true)
	}
	return v.fixed.finish()
}

// TakeVariable hands over the offsets and the bytes.
func (v *Values) TakeVariable() (offsets, data *memory.Buffer) {
	return v.offsets.finish(), v.data.finish()
}

// Variable returns the offsets and the bytes, which stay the collector's.
func (v *Values) Variable() (offsets, data []byte) { return v.offsets.bytes(), v.data.bytes() }

// TakeItemValidity hands over the validity of the items at list level d (0 = outer-most); nil = all valid.
func (v *Values) TakeItemValidity(d int) (validity *memory.Buffer, nulls int) {
	nulls = v.items[d].zeros
	if v.items[d].zeros == 0 {
		v.items[d].release()
		return nil, 0
	}
	return v.items[d].finish(false), nulls
}

// Field returns the values of field i of a packed struct.
func (v *Values) Field(i int) *Values { return v.fields[i] }

// ReserveData makes room for n more bytes of variable-width values.
func (v *Values) ReserveData(n int) { v.data.reserve(n) }

// appendPlain appends the values [from, to) of plain fixed-width bytes, items all valid. src must hold them.
func (v *Values) appendPlain(src []byte, from, to int) {
	v.appendItems(src, from, to)
	for d := range v.items {
		v.items[d].appendOnes((to - from) * v.itemsAt(d))
	}
}

// appendItems is appendPlain without the validity of the items.
func (v *Values) appendItems(src []byte, from, to int) {
	n := v.Shape.Items()
	if v.Shape.ItemBits == 1 {
		v.bits.appendBits(src, from*n, (to-from)*n)
	} else {
		w := n * v.Shape.ItemBits / 8
		v.fixed.append(src[from*w : to*w])
	}
	v.N += to - from
}

// itemsAt returns how many items of level d one value holds.
func (v *Values) itemsAt(d int) int {
	n := 1
	for _, dim := range v.Shape.Dims[:d+1] {
		n *= dim
	}
	return n
}

// AppendZero appends n values without content: zeros or empty bytes.
func (v *Values) AppendZero(n int) {
	switch v.Shape.Kind {
	case Fixed:
		items := n * v.Shape.Items()
		if v.Shape.ItemBits == 1 {
			v.bits.appendZeros(items)
		} else {
			b := items * v.Shape.ItemBits / 8
			clear(v.fixed.tail(b))
			v.fixed.advance(b)
		}
		for d := range v.items {
			v.items[d].appendOnes(n * v.itemsAt(d))
		}
	case Variable:
		v.appendEmpty(n)
	case Packed:
		for _, f := range v.fields {
			f.AppendZero(n)
		}
	}
	v.N += n
}

// appendEmpty repeats the last offset n times.
func (v *Values) appendEmpty(n int) {
	if v.Shape.Wide {
		ends := cast[int64](v.offsets.tail(8 * n))
		for i := range ends {
			ends[i] = int64(v.data.n)
		}
	} else {
		ends := cast[int32](v.offsets.tail(4 * n))
		for i := range ends {
			ends[i] = int32(v.data.n)
		}
	}
	v.offsets.advance(n * v.offsetBytes())
}

// pushEnd appends one value that ends where the data ends now.
func (v *Values) pushEnd() {
	if v.Shape.Wide {
		cast[int64](v.offsets.tail(8))[0] = int64(v.data.n)
		v.offsets.advance(8)
	} else {
		cast[int32](v.offsets.tail(4))[0] = int32(v.data.n)
		v.offsets.advance(4)
	}
	v.N++
}

// AppendBytes appends one variable-width value.
func (v *Values) AppendBytes(b []byte) error {
	if err := v.fits(len(b)); err != nil {
		return err
	}
	v.data.append(b)
	v.pushEnd()
	return nil
}

// fits checks that n more data bytes can be addressed by the offsets.
func (v *Values) fits(n int) error {
	if !v.Shape.Wide && v.data.n+n > math.MaxInt32 {
		return errs.New(errs.ErrOverflow, "more than 2 GiB of text or binary in one batch")
	}
	return nil
}

// SizeBytes returns the memory that the values take.
func (v *Values) SizeBytes() int {
	n := v.fixed.n + v.offsets.n + v.data.n + v.bits.words.n
	for i := range v.items {
		n += v.items[i].words.n
	}
	for _, f := range v.fields {
		n += f.SizeBytes()
	}
	return n
}

// AppendSequence appends the numbers first, first+1, ... to fixed-width values of 8 to 64 bits.
func (v *Values) AppendSequence(first, n int) {
	w := v.Shape.ItemBits / 8
	out := v.fixed.tail(n * w)
	for i := range n {
		for k := range w {
			out[i*w+k] = byte(uint64(first+i) >> (8 * k))
		}
	}
	v.fixed.advance(n * w)
	v.N += n
}

// IndexShape returns the shape of dictionary indices: plain numbers as wide as their encoding says.
func IndexShape(enc *encpb.CompressiveEncoding) (*Shape, error) {
	for range maxCodecDepth {
		var bits uint64
		switch e := enc.GetCompression().(type) {
		case *encpb.CompressiveEncoding_Flat:
			bits = e.Flat.GetBitsPerValue()
		case *encpb.CompressiveEncoding_InlineBitpacking:
			bits = e.InlineBitpacking.GetUncompressedBitsPerValue()
		case *encpb.CompressiveEncoding_Rle:
			bits = e.Rle.GetValues().GetFlat().GetBitsPerValue()
		case *encpb.CompressiveEncoding_ByteStreamSplit:
			bits = e.ByteStreamSplit.GetValues().GetFlat().GetBitsPerValue()
		case *encpb.CompressiveEncoding_General:
			enc = e.General.GetValues()
			continue
		default:
			return nil, unsupported("dictionary indices encoded as %T", e)
		}
		if !isWord(bits) {
			return nil, corrupt(dictSection, "indices of %d bits", bits)
		}
		return &Shape{Kind: Fixed, ItemBits: int(bits)}, nil
	}
	return nil, corrupt(dictSection, "encodings nested more than %d deep", maxCodecDepth)
}

// ValidItems returns a bitmap of the values that are valid in layer and have no null item; nil = all.
func (v *Values) ValidItems(layer *Layer) []byte {
	nulls := layer.valid.zeros
	for i := range v.items {
		nulls += v.items[i].zeros
	}
	if nulls == 0 {
		return nil
	}
	out := make([]byte, (v.N+7)/8)
	for i := range v.N {
		ok := layer.valid.get(i)
		for d := range v.items {
			if v.items[d].zeros == 0 {
				continue
			}
			n := v.itemsAt(d)
			for j := i * n; ok && j < (i+1)*n; j++ {
				ok = v.items[d].get(j)
			}
		}
		if ok {
			out[i>>3] |= 1 << (i & 7)
		}
	}
	return out
}
