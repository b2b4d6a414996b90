package encoding

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// vectorShapeOf is the shape of a fixed-size list, of such lists or of anything of fixed width.
func vectorShapeOf(t *arrow.FixedSizeListType) (leafShape, error) {
	item, err := leafShapeOf(t.Elem())
	if err != nil {
		return leafShape{}, err
	}
	if t.Len() < 1 || item.isDictionary || (item.kind != leafFixed && item.kind != leafBool && item.kind != leafVector) {
		return leafShape{}, errs.New(errs.ErrUnsupported, "%s cannot be written", t)
	}
	out := leafShape{kind: leafVector, dims: append([]int{int(t.Len())}, item.dims...), valueBytes: int(t.Len()) * item.valueBytes, itemBits: item.itemBits}
	switch item.kind {
	case leafFixed:
		out.itemBits = 8 * item.valueBytes
	case leafBool:
		out.itemBits = 1
	}
	return out, nil
}

// itemsAt is the number of items of one value at list level d, 0 the outer-most.
func (s *leafShape) itemsAt(d int) int {
	n := 1
	for _, dim := range s.dims[:d+1] {
		n *= dim
	}
	return n
}

// itemBytes is what one item takes while it is kept: bits take a byte.
func (s *leafShape) itemBytes() int { return max(1, s.itemBits/8) }

// zippedBytes is what one value takes in a page, without the validity of its items.
func (s *leafShape) zippedBytes() int {
	if s.kind != leafVector {
		return s.valueBytes
	}
	return (s.itemsAt(len(s.dims)-1)*s.itemBits + 7) / 8
}

// vectorLevel is the items of one level of lists: the array, and which of its elements is the first item of value 0.
type vectorLevel struct {
	arr arrow.Array
	at  int
}

// vectorSource finds the levels of a fixed-size list and its bytes.
func (b *leafBuilder) vectorSource(arr arrow.Array) leafSource {
	var src leafSource
	at := 0
	for range b.dims {
		list, ok := arr.(*array.FixedSizeList)
		if !ok {
			return src
		}
		from, _ := list.ValueOffsets(at)
		arr, at = storageOf(list.ListValues()), int(from)
		src.levels = append(src.levels, vectorLevel{arr: arr, at: at})
	}
	raw := arr.Data()
	if raw.Len() == 0 || raw.Buffers()[1] == nil {
		return src
	}
	data := raw.Buffers()[1].Bytes()
	if b.itemBits == 1 {
		src.bits, src.bitsAt = data, raw.Offset()+at
		return src
	}
	src.data = data[(raw.Offset()+at)*b.itemBytes():]
	return src
}

func storageOf(arr arrow.Array) arrow.Array {
	for {
		ext, ok := arr.(array.ExtensionArray)
		if !ok {
			return arr
		}
		arr = ext.Storage()
	}
}

func (b *leafBuilder) appendVectors(src leafSource, lo, hi int) {
	items := b.itemsAt(len(b.dims) - 1)
	if b.itemBits == 1 {
		b.data = appendBytesOfBits(b.data, src.bits, src.bitsAt+lo*items, src.bitsAt+hi*items)
	} else {
		b.data = withRoom(b.data, (hi-lo)*b.valueBytes)
		b.data = append(b.data, src.data[lo*b.valueBytes:hi*b.valueBytes]...)
	}
	for d := range b.dims {
		b.appendItemValidity(src.levels[d], d, lo, hi)
	}
}

// appendBytesOfBits appends a byte, 0 or 1, for every bit.
func appendBytesOfBits(dst, bits []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		v := byte(0)
		if bitutil.BitIsSet(bits, i) {
			v = 1
		}
		dst = append(dst, v)
	}
	return dst
}

// appendItemValidity records which items of a level are null, once one is.
func (b *leafBuilder) appendItemValidity(level vectorLevel, d, lo, hi int) {
	n := b.itemsAt(d)
	from, to := level.at+lo*n, level.at+hi*n
	if b.itemValid[d] == nil {
		if level.arr.NullN() == 0 {
			return
		}
		found := false
		for i := from; i < to && !found; i++ {
			found = level.arr.IsNull(i)
		}
		if !found {
			return
		}
		b.itemValid[d] = appendRepeated(nil, 1, len(b.data)/b.valueBytes*n-(to-from))
	}
	for i := from; i < to; i++ {
		v := byte(1)
		if level.arr.IsNull(i) {
			v = 0
		}
		b.itemValid[d] = append(b.itemValid[d], v)
	}
}

// vectorEncoding is the message of the lists, outer-most first, each with validity or not.
func (b *leafBuilder) vectorEncoding() *encpb.CompressiveEncoding {
	enc := flatEncoding(b.itemBits)
	for d := len(b.dims) - 1; d >= 0; d-- {
		enc = &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_FixedSizeList{FixedSizeList: &encpb.FixedSizeList{
			ItemsPerValue: uint64(b.dims[d]), Values: enc, HasValidity: b.itemValid[d] != nil,
		}}}
	}
	return enc
}

// validLevels are the levels that have validity.
func (b *leafBuilder) validLevels() []int {
	var out []int
	for d, v := range b.itemValid {
		if v != nil {
			out = append(out, d)
		}
	}
	return out
}

// vectorValues are small fixed-size lists, with the validity of their items at each level that has a null.
type vectorValues struct {
	b     *leafBuilder
	valid []int
}

func (v vectorValues) message() *encpb.CompressiveEncoding { return v.b.vectorEncoding() }
func (v vectorValues) buffers() int                        { return 1 + len(v.valid) }
func (v vectorValues) chunkLog(int) int                    { return logFor(v.b.zippedBytes(), chunkTarget) }
func (v vectorValues) dictionary() *pageDictionary         { return nil }
func (v vectorValues) appendBuffer(dst []byte, i, first, n int) []byte {
	if i < len(v.valid) {
		d := v.valid[i]
		items := v.b.itemsAt(d)
		return appendBits(dst, v.b.itemValid[d][first*items:(first+n)*items])
	}
	return v.b.appendItems(dst, first, n)
}

// appendItems appends the items of n values as pages have them.
func (b *leafBuilder) appendItems(dst []byte, first, n int) []byte {
	data := b.data[first*b.valueBytes : (first+n)*b.valueBytes]
	if b.itemBits == 1 {
		return appendBits(dst, data)
	}
	return append(dst, data...)
}
