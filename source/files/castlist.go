package files

import (
	"context"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// isList says that values of the type are lists whose items lie behind each other.
func isList(t arrow.Type) bool {
	switch t {
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST, arrow.MAP:
		return true
	}
	return false
}

// validBits is the validity of an array, from its first value on.
type validBits struct{ buffer *memory.Buffer }

func validity(a arrow.Array, alloc allocator) (validBits, error) {
	if a.NullN() == 0 {
		return validBits{}, nil
	}
	b := memory.NewResizableBuffer(alloc)
	b.Resize(int(bitutil.BytesForBits(int64(a.Len()))))
	bitutil.CopyBitmap(a.NullBitmapBytes(), a.Data().Offset(), a.Len(), b.Bytes(), 0)
	return validBits{buffer: b}, nil
}

func (b validBits) buffers(more ...*memory.Buffer) []*memory.Buffer {
	return append([]*memory.Buffer{b.buffer}, more...)
}

func (b validBits) release() {
	if b.buffer != nil {
		b.buffer.Release()
	}
}

// castList turns lists of any kind into another kind, item by item.
func (c *caster) castList(ctx context.Context, a array.ListLike) (arrow.Array, error) {
	n := a.Len()
	starts := make([]int64, n+1) // of the items that stay; starts[n] is their number
	contiguous, base := true, int64(-1)
	want := int64(-1)
	if t, ok := c.to.(*arrow.FixedSizeListType); ok {
		want = int64(t.Len())
	}
	for i := range n {
		size := int64(0)
		if a.IsValid(i) {
			lo, hi := a.ValueOffsets(i)
			size = hi - lo
			if base < 0 {
				base = lo - starts[i]
			}
			contiguous = contiguous && lo-starts[i] == base
			if want >= 0 && size != want {
				return nil, noValue("a list of %d where the column is %s: import it with --vector-min -1 or --schema as a list, or mend the row", size, typeName(c.to))
			}
		} else if want >= 0 {
			size, contiguous = want, false
		}
		starts[i+1] = starts[i] + size
	}
	items, err := c.items(ctx, a, starts, contiguous, max(base, 0))
	if err != nil {
		return nil, err
	}
	defer items.Release()
	cast, err := c.children[0].cast(ctx, items)
	if err != nil {
		return nil, fmt.Errorf("an item: %w", err)
	}
	defer cast.Release()
	return c.newList(a, starts, cast)
}

// items returns the items of all lists behind each other. A NULL among lists of one length has NULLs.
func (c *caster) items(ctx context.Context, a array.ListLike, starts []int64, contiguous bool, base int64) (arrow.Array, error) {
	total := starts[len(starts)-1]
	if contiguous {
		return array.NewSlice(a.ListValues(), base, base+total), nil
	}
	b := array.NewInt64Builder(c.alloc)
	defer b.Release()
	b.Reserve(int(total))
	for i := range a.Len() {
		if a.IsNull(i) {
			for range starts[i+1] - starts[i] {
				b.AppendNull()
			}
			continue
		}
		lo, hi := a.ValueOffsets(i)
		for at := lo; at < hi; at++ {
			b.Append(at)
		}
	}
	at := b.NewArray()
	defer at.Release()
	return take(ctx, a.ListValues(), at)
}

// newList makes lists of the type that is wanted.
func (c *caster) newList(a array.ListLike, starts []int64, items arrow.Array) (arrow.Array, error) {
	valid, err := validity(a, c.alloc)
	if err != nil {
		return nil, err
	}
	defer valid.release()
	buffers := valid.buffers()
	switch c.to.ID() {
	case arrow.FIXED_SIZE_LIST:
	case arrow.LARGE_LIST:
		buffers = append(buffers, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(starts)))
	default:
		if starts[len(starts)-1] > math.MaxInt32 {
			return nil, errs.New(errs.ErrOverflow, "%d items in one batch of lists: at most %d", starts[len(starts)-1], math.MaxInt32)
		}
		small := make([]int32, len(starts))
		for i, s := range starts {
			small[i] = int32(s)
		}
		buffers = append(buffers, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(small)))
	}
	data := array.NewData(c.to, a.Len(), buffers, []arrow.ArrayData{items.Data()}, a.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}
