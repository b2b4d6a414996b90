package key

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// Array turns keys back into values of the codec's type, after nulls NULLs. The caller releases it.
func (c Codec) Array(alloc memory.Allocator, nulls int, keys []Key) (arrow.Array, error) {
	if c.wide {
		b := array.NewBuilder(alloc, c.typ)
		defer b.Release()
		b.Reserve(nulls + len(keys))
		b.AppendNulls(nulls)
		for _, k := range keys {
			if err := c.appendWide(b, k.Bytes); err != nil {
				return nil, err
			}
		}
		return b.NewArray(), nil
	}
	words := make([]uint64, len(keys))
	for i, k := range keys {
		words[i] = k.Word
	}
	return c.WordArray(alloc, nulls, words)
}

// WordArray turns the words of keys back into values of the codec's type, after nulls NULLs. The caller releases it. Errors: ErrInternal for a wide codec.
func (c Codec) WordArray(alloc memory.Allocator, nulls int, words []uint64) (arrow.Array, error) {
	if c.wide {
		return nil, errs.New(errs.ErrInternal, "no words of %s", c.typ)
	}
	if c.typ.ID() == arrow.BOOL {
		b := array.NewBooleanBuilder(alloc)
		defer b.Release()
		b.AppendNulls(nulls)
		for _, w := range words {
			b.Append(w != 0)
		}
		return b.NewArray(), nil
	}
	return c.fixedArray(alloc, nulls, words), nil
}

// TextArray turns keys back, whose bytes lie one behind the other and end where ends says. The caller releases it. Errors: ErrInternal for a word codec.
func (c Codec) TextArray(alloc memory.Allocator, nulls int, text []byte, ends []int) (arrow.Array, error) {
	if !c.wide {
		return nil, errs.New(errs.ErrInternal, "no bytes of %s", c.typ)
	}
	b := array.NewBuilder(alloc, c.typ)
	defer b.Release()
	b.Reserve(nulls + len(ends))
	if b, ok := b.(interface{ ReserveData(n int) }); ok {
		b.ReserveData(len(text))
	}
	b.AppendNulls(nulls)
	from := 0
	for _, to := range ends {
		if err := c.appendWide(b, text[from:to]); err != nil {
			return nil, err
		}
		from = to
	}
	return b.NewArray(), nil
}

// Sparse turns keys back into values, NULL where isNull says so. The caller releases it.
func (c Codec) Sparse(alloc memory.Allocator, keys []Key, isNull func(i int) bool) (arrow.Array, error) {
	var parts []arrow.Array
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	for i := 0; i < len(keys) || parts == nil; {
		nulls := 0
		for ; i < len(keys) && isNull(i); i++ {
			nulls++
		}
		start := i
		for ; i < len(keys) && !isNull(i); i++ {
		}
		part, err := c.Array(alloc, nulls, keys[start:i])
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return array.Concatenate(parts, alloc)
}

func (c Codec) appendWide(builder array.Builder, v []byte) error {
	switch b := builder.(type) {
	case *array.StringBuilder:
		b.BinaryBuilder.Append(v)
	case *array.LargeStringBuilder:
		b.BinaryBuilder.Append(v)
	case *array.BinaryBuilder: // also large binary
		b.Append(v)
	case *array.FixedSizeBinaryBuilder:
		b.Append(v)
	case *array.Decimal128Builder:
		b.Append(decimal128.New(int64(binary.BigEndian.Uint64(v)^signBit), binary.BigEndian.Uint64(v[8:])))
	case *array.Decimal256Builder:
		b.Append(decimal256.New(binary.BigEndian.Uint64(v)^signBit, binary.BigEndian.Uint64(v[8:]),
			binary.BigEndian.Uint64(v[16:]), binary.BigEndian.Uint64(v[24:])))
	default:
		return errs.New(errs.ErrInternal, "no array of %s from keys", c.typ)
	}
	return nil
}

// fixedArray lays words out as the little-endian values of a fixed-width type.
func (c Codec) fixedArray(alloc memory.Allocator, nulls int, words []uint64) arrow.Array {
	width := c.typ.(arrow.FixedWidthDataType).Bytes()
	n := nulls + len(words)
	values := memory.NewResizableBuffer(alloc)
	values.Resize(n * width)
	defer values.Release()
	out := values.Bytes()
	clear(out[:nulls*width])
	switch out := out[nulls*width:]; {
	case width == 8 && !c.IsFloat():
		flip := c.valueBits(0)
		for i, w := range words {
			binary.LittleEndian.PutUint64(out[8*i:], w^flip)
		}
	case width == 8:
		for i, w := range words {
			binary.LittleEndian.PutUint64(out[8*i:], c.valueBits(w))
		}
	case width == 4:
		for i, w := range words {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(c.valueBits(w)))
		}
	case width == 2:
		for i, w := range words {
			binary.LittleEndian.PutUint16(out[2*i:], uint16(c.valueBits(w)))
		}
	default:
		for i, w := range words {
			out[i] = byte(c.valueBits(w))
		}
	}
	var validity *memory.Buffer
	if nulls > 0 {
		validity = memory.NewResizableBuffer(alloc)
		validity.Resize((n + 7) / 8)
		defer validity.Release()
		bits := validity.Bytes()
		clear(bits)
		for i := nulls; i < n; i++ {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	data := array.NewData(c.typ, n, []*memory.Buffer{validity, values}, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}
