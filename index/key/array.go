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
	b := array.NewBuilder(alloc, c.typ)
	defer b.Release()
	b.Reserve(nulls + len(keys))
	b.AppendNulls(nulls)
	if c.wide {
		if err := c.appendWide(b, keys); err != nil {
			return nil, err
		}
		return b.NewArray(), nil
	}
	if b, ok := b.(*array.BooleanBuilder); ok {
		for _, k := range keys {
			b.Append(k.Word != 0)
		}
		return b.NewArray(), nil
	}
	return c.fixedArray(alloc, nulls, keys), nil
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

func (c Codec) appendWide(builder array.Builder, keys []Key) error {
	for _, k := range keys {
		switch b := builder.(type) {
		case *array.StringBuilder:
			b.BinaryBuilder.Append(k.Bytes)
		case *array.LargeStringBuilder:
			b.BinaryBuilder.Append(k.Bytes)
		case *array.BinaryBuilder: // also large binary
			b.Append(k.Bytes)
		case *array.FixedSizeBinaryBuilder:
			b.Append(k.Bytes)
		case *array.Decimal128Builder:
			b.Append(decimal128.New(int64(binary.BigEndian.Uint64(k.Bytes)^signBit), binary.BigEndian.Uint64(k.Bytes[8:])))
		case *array.Decimal256Builder:
			b.Append(decimal256.New(binary.BigEndian.Uint64(k.Bytes)^signBit, binary.BigEndian.Uint64(k.Bytes[8:]),
				binary.BigEndian.Uint64(k.Bytes[16:]), binary.BigEndian.Uint64(k.Bytes[24:])))
		default:
			return errs.New(errs.ErrInternal, "no array of %s from keys", c.typ)
		}
	}
	return nil
}

// fixedArray lays words out as the little-endian values of a fixed-width type.
func (c Codec) fixedArray(alloc memory.Allocator, nulls int, keys []Key) arrow.Array {
	width := c.typ.(arrow.FixedWidthDataType).Bytes()
	n := nulls + len(keys)
	values := memory.NewResizableBuffer(alloc)
	values.Resize(n * width)
	defer values.Release()
	out := values.Bytes()
	clear(out[:nulls*width])
	for i, k := range keys {
		at := out[(nulls+i)*width:]
		switch bits := c.valueBits(k.Word); width {
		case 1:
			at[0] = byte(bits)
		case 2:
			binary.LittleEndian.PutUint16(at, uint16(bits))
		case 4:
			binary.LittleEndian.PutUint32(at, uint32(bits))
		default:
			binary.LittleEndian.PutUint64(at, bits)
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
