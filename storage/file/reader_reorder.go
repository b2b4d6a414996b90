package file

import (
	"context"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// reorder returns rows of a batch whose row i is unique[i]; unique ascends.
func reorder(ctx context.Context, batch arrow.RecordBatch, unique, rows []uint64, mem memory.Allocator) (arrow.RecordBatch, error) {
	index := memory.NewResizableBuffer(mem)
	defer index.Release()
	index.Resize(4 * len(rows))
	numbers := arrow.Uint32Traits.CastFromBytes(index.Bytes())
	for i, row := range rows {
		at, _ := slices.BinarySearch(unique, row)
		numbers[i] = uint32(at)
	}
	cols := make([]arrow.Array, 0, batch.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for _, c := range batch.Columns() {
		data, ok := pick(c.Data(), numbers, mem)
		if !ok {
			taken, err := takeAny(ctx, c, index, len(rows), mem)
			if err != nil {
				return nil, err
			}
			cols = append(cols, taken)
			continue
		}
		cols = append(cols, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecordBatch(batch.Schema(), cols, int64(len(rows))), nil
}

// takeAny reorders an array of any type.
func takeAny(ctx context.Context, a arrow.Array, index *memory.Buffer, n int, mem memory.Allocator) (arrow.Array, error) {
	data := array.NewData(arrow.PrimitiveTypes.Uint32, n, []*memory.Buffer{nil, index}, nil, 0, 0)
	defer data.Release()
	indices := array.NewUint32Data(data)
	defer indices.Release()
	out, err := compute.TakeArray(compute.WithAllocator(ctx, mem), a, indices)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "reorder %s: %w", a.DataType(), err)
	}
	return out, nil
}

// pick reorders the types that late fetches bring: whole bytes of fixed width, vectors without null items, text and binary.
// It reports false for others.
func pick(d arrow.ArrayData, index []uint32, mem memory.Allocator) (arrow.ArrayData, bool) {
	if d.Offset() != 0 {
		return nil, false
	}
	switch t := d.DataType().(type) {
	case *arrow.FixedSizeListType:
		child := d.Children()[0]
		w, ok := t.Elem().(arrow.FixedWidthDataType)
		if !ok || w.BitWidth()%8 != 0 || child.Offset() != 0 || len(child.Children()) > 0 || child.NullN() != 0 {
			return nil, false
		}
		values := pickFixed(child.Buffers()[1].Bytes(), index, int(t.Len())*w.BitWidth()/8, mem)
		defer values.Release()
		items := array.NewData(t.Elem(), len(index)*int(t.Len()), []*memory.Buffer{nil, values}, nil, 0, 0)
		defer items.Release()
		return pickedData(d, index, nil, []arrow.ArrayData{items}, mem), true
	case *arrow.StringType, *arrow.BinaryType:
		offsets, data := pickVariable(d, index, mem)
		if offsets == nil {
			return nil, false
		}
		defer offsets.Release()
		defer data.Release()
		return pickedData(d, index, []*memory.Buffer{offsets, data}, nil, mem), true
	case *arrow.DictionaryType:
		return nil, false
	case arrow.FixedWidthDataType:
		if t.BitWidth() == 0 || t.BitWidth()%8 != 0 || len(d.Children()) > 0 {
			return nil, false
		}
		values := pickFixed(d.Buffers()[1].Bytes(), index, t.BitWidth()/8, mem)
		defer values.Release()
		return pickedData(d, index, []*memory.Buffer{values}, nil, mem), true
	}
	return nil, false
}

// pickedData builds the reordered array around its buffers, with the validity reordered too.
func pickedData(d arrow.ArrayData, index []uint32, bufs []*memory.Buffer, children []arrow.ArrayData, mem memory.Allocator) arrow.ArrayData {
	all := append([]*memory.Buffer{nil}, bufs...)
	nulls := 0
	if d.NullN() > 0 {
		src := d.Buffers()[0].Bytes()
		validity := memory.NewResizableBuffer(mem)
		defer validity.Release()
		validity.Resize((len(index) + 7) / 8)
		dst := validity.Bytes()
		clear(dst)
		for i, at := range index {
			if bitutil.BitIsSet(src, int(at)) {
				bitutil.SetBit(dst, i)
			} else {
				nulls++
			}
		}
		all[0] = validity
	}
	return array.NewData(d.DataType(), len(index), all, children, nulls, 0)
}

func pickFixed(src []byte, index []uint32, width int, mem memory.Allocator) *memory.Buffer {
	out := memory.NewResizableBuffer(mem)
	out.Resize(len(index) * width)
	dst := out.Bytes()
	for i, at := range index {
		copy(dst[i*width:(i+1)*width], src[int(at)*width:])
	}
	return out
}

// pickVariable returns nothing where the bytes do not fit the offsets: duplicates may add up.
func pickVariable(d arrow.ArrayData, index []uint32, mem memory.Allocator) (offsets, data *memory.Buffer) {
	from := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())
	total := int64(0)
	for _, at := range index {
		total += int64(from[at+1] - from[at])
	}
	if total > math.MaxInt32 {
		return nil, nil
	}
	offsets, data = memory.NewResizableBuffer(mem), memory.NewResizableBuffer(mem)
	offsets.Resize(4 * (len(index) + 1))
	data.Resize(int(total))
	ends, dst, src := arrow.Int32Traits.CastFromBytes(offsets.Bytes()), data.Bytes(), d.Buffers()[2].Bytes()
	ends[0] = 0
	size := 0
	for i, at := range index {
		size += copy(dst[size:], src[from[at]:from[at+1]])
		ends[i+1] = int32(size)
	}
	return offsets, data
}
