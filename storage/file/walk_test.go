package file

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
)

// walk checks that offsets, lengths and buffers of an array fit together, so that whoever reads it stays inside.
func walk(a arrow.Array) error { //nolint:gocyclo // flat switch
	n := a.Len()
	d := a.Data()
	if v := d.Buffers()[0]; v != nil && a.DataType().ID() != arrow.NULL && v.Len()*8 < n {
		return errs.New(errs.ErrInternal, "validity of %d bytes for %d values", v.Len(), n)
	}
	switch a := a.(type) {
	case *array.String, *array.Binary:
		return walkOffsets(n, arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes()), d.Buffers()[2].Len())
	case *array.LargeString, *array.LargeBinary:
		return walkOffsets(n, arrow.Int64Traits.CastFromBytes(d.Buffers()[1].Bytes()), d.Buffers()[2].Len())
	case *array.Null:
		return nil
	case *array.FixedSizeList:
		if size := int(a.DataType().(*arrow.FixedSizeListType).Len()); a.ListValues().Len() != n*size {
			return errs.New(errs.ErrInternal, "%d items in %d lists of %d", a.ListValues().Len(), n, size)
		}
		return walk(a.ListValues())
	case array.ListLike:
		end := 0
		for i := range n {
			from, to := a.ValueOffsets(i)
			if int(from) < end || to < from {
				return errs.New(errs.ErrInternal, "list %d is [%d, %d) after %d", i, from, to, end)
			}
			end = int(to)
		}
		if end > a.ListValues().Len() {
			return errs.New(errs.ErrInternal, "lists end at %d of %d", end, a.ListValues().Len())
		}
		return walk(a.ListValues())
	case *array.Struct:
		for i := range a.NumField() {
			if a.Field(i).Len() != n {
				return errs.New(errs.ErrInternal, "field %d has %d values of %d", i, a.Field(i).Len(), n)
			}
			if err := walk(a.Field(i)); err != nil {
				return err
			}
		}
	case *array.Dictionary:
		for i := range n {
			if a.IsValid(i) && a.GetValueIndex(i) >= a.Dictionary().Len() {
				return errs.New(errs.ErrInternal, "index %d of %d", a.GetValueIndex(i), a.Dictionary().Len())
			}
		}
		return walk(a.Dictionary())
	default:
		if w, ok := a.DataType().(arrow.FixedWidthDataType); ok {
			if have := d.Buffers()[1].Len(); have < (n*w.BitWidth()+7)/8 {
				return errs.New(errs.ErrInternal, "%d bytes for %d values of %d bits", have, n, w.BitWidth())
			}
		}
	}
	return nil
}

func walkOffsets[O int32 | int64](n int, offsets []O, size int) error {
	for i := range n {
		if a, b := offsets[i], offsets[i+1]; a < 0 || b < a || int(b) > size {
			return errs.New(errs.ErrInternal, "value %d is [%d, %d) of %d", i, a, b, size)
		}
	}
	return nil
}
