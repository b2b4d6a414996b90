package storage

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// Gather returns the rows of an array in the order of rows, which may repeat and skip. The caller releases the result. Errors: ErrUnsupported for types that
// tables do not have, and for 32-bit offsets that would overflow.
func Gather(a arrow.Array, rows []int, alloc memory.Allocator) (arrow.Array, error) {
	return gather(a, rows, alloc)
}

// gather returns the rows of an array in the order of rows, which may repeat and skip. The caller releases the result.
// Errors: ErrUnsupported for types that tables do not have, and for 32-bit offsets that would overflow.
func gather(a arrow.Array, rows []int, alloc memory.Allocator) (arrow.Array, error) {
	d, err := gatherData(a.Data(), rows, alloc)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// gatherData works on array data; rows count from the data's own offset.
func gatherData(d arrow.ArrayData, rows []int, alloc memory.Allocator) (arrow.ArrayData, error) {
	g := &gatherer{src: d, rows: rows, alloc: alloc}
	defer g.release()
	switch t := d.DataType().(type) {
	case *arrow.NullType:
		return array.NewData(t, len(rows), []*memory.Buffer{nil}, nil, len(rows), 0), nil
	case *arrow.BooleanType:
		return g.finish(g.bits(d.Buffers()[1], d.Offset())), nil
	case *arrow.BinaryType, *arrow.StringType:
		return gatherBinary[int32](g)
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		return gatherBinary[int64](g)
	case *arrow.ListType, *arrow.MapType:
		return gatherLists[int32](g)
	case *arrow.LargeListType:
		return gatherLists[int64](g)
	case *arrow.StructType:
		return g.structs()
	case *arrow.FixedSizeListType:
		return g.fixedList(int(t.Len()))
	case *arrow.DictionaryType:
		width := t.IndexType.(arrow.FixedWidthDataType).BitWidth() / 8
		out := g.finish(g.fixed(bytesOf(d.Buffers()[1], d.Offset()*width), width))
		defer out.Release()
		return array.NewDataWithDictionary(t, len(rows), out.Buffers(), out.NullN(), 0, d.Dictionary().(*array.Data)), nil
	case arrow.FixedWidthDataType:
		width := t.BitWidth() / 8
		return g.finish(g.fixed(bytesOf(d.Buffers()[1], d.Offset()*width), width)), nil
	}
	return nil, errs.New(errs.ErrUnsupported, "rows of type %s cannot be picked", d.DataType())
}

// bytesOf returns a buffer's bytes from an offset on; arrays without rows may have no buffer.
func bytesOf(b *memory.Buffer, from int) []byte {
	if b == nil || b.Len() <= from {
		return nil
	}
	return b.Bytes()[from:]
}

// gatherer builds one array's data; made holds the buffers that it owns until finish hands them over.
type gatherer struct {
	src   arrow.ArrayData
	rows  []int
	alloc memory.Allocator
	made  []*memory.Buffer
}

func (g *gatherer) release() {
	for _, b := range g.made {
		b.Release()
	}
}

func (g *gatherer) buffer(size int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem.Dirty(g.alloc))
	b.Resize(size)
	g.made = append(g.made, b)
	return b
}

// validity gathers the validity bits; nil buffer = all valid.
func (g *gatherer) validity() (*memory.Buffer, int) {
	if g.src.NullN() == 0 || g.src.Buffers()[0] == nil {
		return nil, 0
	}
	b := g.bits(g.src.Buffers()[0], g.src.Offset())
	nulls := len(g.rows) - bitutil.CountSetBits(b.Bytes(), 0, len(g.rows))
	if nulls == 0 {
		return nil, 0
	}
	return b, nulls
}

func (g *gatherer) finish(values ...*memory.Buffer) *array.Data {
	valid, nulls := g.validity()
	return array.NewData(g.src.DataType(), len(g.rows), append([]*memory.Buffer{valid}, values...), nil, nulls, 0)
}

func (g *gatherer) finishChildren(offsets *memory.Buffer, children ...arrow.ArrayData) *array.Data {
	valid, nulls := g.validity()
	buffers := []*memory.Buffer{valid}
	if offsets != nil {
		buffers = append(buffers, offsets)
	}
	return array.NewData(g.src.DataType(), len(g.rows), buffers, children, nulls, 0)
}

func (g *gatherer) bits(from *memory.Buffer, offset int) *memory.Buffer {
	out := g.buffer((len(g.rows) + 7) / 8)
	dst, src := out.Bytes(), from.Bytes()
	clear(dst)
	for i, r := range g.rows {
		if bitutil.BitIsSet(src, offset+r) {
			dst[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// fixed gathers values of width bytes; src starts at row 0.
func (g *gatherer) fixed(src []byte, width int) *memory.Buffer {
	out := g.buffer(len(g.rows) * width)
	gatherFixed(out.Bytes(), src, g.rows, width)
	return out
}

// gatherFixed is the hot loop for values of width bytes.
func gatherFixed(dst, src []byte, rows []int, width int) {
	switch width {
	case 1:
		for i, r := range rows {
			dst[i] = src[r]
		}
	case 2:
		for i, r := range rows {
			binary.LittleEndian.PutUint16(dst[i*2:], binary.LittleEndian.Uint16(src[r*2:]))
		}
	case 4:
		for i, r := range rows {
			binary.LittleEndian.PutUint32(dst[i*4:], binary.LittleEndian.Uint32(src[r*4:]))
		}
	case 8:
		for i, r := range rows {
			binary.LittleEndian.PutUint64(dst[i*8:], binary.LittleEndian.Uint64(src[r*8:]))
		}
	default:
		for i, r := range rows {
			copy(dst[i*width:(i+1)*width], src[r*width:])
		}
	}
}

func errOffsets(t arrow.DataType) error {
	return errs.New(errs.ErrUnsupported, "more than 2 GiB of %s in one batch is not supported: take fewer rows at a time", t)
}

// offsets returns the offsets of the source and room for those of the result, of which the first is 0.
func offsets[O int32 | int64](g *gatherer) (src, dst []O, out *memory.Buffer) {
	size := int(unsafe.Sizeof(O(0)))
	if b := bytesOf(g.src.Buffers()[1], g.src.Offset()*size); b != nil {
		src = arrow.GetData[O](b)
	}
	out = g.buffer((len(g.rows) + 1) * size)
	dst = arrow.GetData[O](out.Bytes())
	dst[0] = 0
	return src, dst, out
}

// offsetMax is the largest offset.
func offsetMax[O int32 | int64]() int64 {
	if unsafe.Sizeof(O(0)) == 4 {
		return math.MaxInt32
	}
	return math.MaxInt64
}

// gatherBinary gathers values of variable width.
func gatherBinary[O int32 | int64](g *gatherer) (arrow.ArrayData, error) {
	from, dst, outOffsets := offsets[O](g)
	total := int64(0)
	for i, r := range g.rows {
		if total += int64(from[r+1] - from[r]); total > offsetMax[O]() {
			return nil, errOffsets(g.src.DataType())
		}
		dst[i+1] = O(total)
	}
	out := g.buffer(int(total))
	if total > 0 {
		bytes, src := out.Bytes(), g.src.Buffers()[2].Bytes()
		for i, r := range g.rows {
			copy(bytes[dst[i]:dst[i+1]], src[from[r]:from[r+1]])
		}
	}
	return g.finish(outOffsets, out), nil
}

// gatherLists gathers lists of variable length.
func gatherLists[O int32 | int64](g *gatherer) (arrow.ArrayData, error) {
	from, dst, outOffsets := offsets[O](g)
	var items []int
	for i, r := range g.rows {
		for k := from[r]; k < from[r+1]; k++ {
			items = append(items, int(k))
		}
		if int64(len(items)) > offsetMax[O]() {
			return nil, errOffsets(g.src.DataType())
		}
		dst[i+1] = O(len(items))
	}
	return g.withItems(outOffsets, items)
}

func (g *gatherer) withItems(offsets *memory.Buffer, items []int) (arrow.ArrayData, error) {
	child, err := gatherData(g.src.Children()[0], items, g.alloc)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return g.finishChildren(offsets, child), nil
}

func (g *gatherer) structs() (arrow.ArrayData, error) {
	at := g.shifted(1)
	children := make([]arrow.ArrayData, 0, len(g.src.Children()))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range g.src.Children() {
		child, err := gatherData(c, at, g.alloc)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return g.finishChildren(nil, children...), nil
}

// shifted turns rows into rows of children that do not know the parent's offset, each row being n items.
func (g *gatherer) shifted(n int) []int {
	if n == 1 && g.src.Offset() == 0 {
		return g.rows
	}
	out := make([]int, 0, len(g.rows)*n)
	for _, r := range g.rows {
		for k := range n {
			out = append(out, (r+g.src.Offset())*n+k)
		}
	}
	return out
}

func (g *gatherer) fixedList(n int) (arrow.ArrayData, error) {
	child := g.src.Children()[0]
	t, isFixed := child.DataType().(arrow.FixedWidthDataType)
	isPlain := isFixed && (child.NullN() == 0 || child.Buffers()[0] == nil) && t.BitWidth()%8 == 0 && t.BitWidth() > 0 && len(child.Children()) == 0 &&
		child.DataType().ID() != arrow.DICTIONARY
	if !isPlain {
		items, err := gatherData(child, g.shifted(n), g.alloc)
		if err != nil {
			return nil, err
		}
		defer items.Release()
		return g.finishChildren(nil, items), nil
	}
	// Vectors: a row is one value of n elements.
	width := t.BitWidth() / 8
	start := (child.Offset() + g.src.Offset()*n) * width
	values := g.fixed(bytesOf(child.Buffers()[1], start), n*width)
	items := array.NewData(child.DataType(), len(g.rows)*n, []*memory.Buffer{nil, values}, nil, 0, 0)
	defer items.Release()
	return g.finishChildren(nil, items), nil
}
