package dml

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/planner/coltype"
)

// Assigner converts values to the types of columns as MySQL's assignment does. It is used by one goroutine at a time.
type Assigner struct {
	Alloc    memory.Allocator
	Location *time.Location
	// Lenient stores the nearest value and warns (IGNORE, or a sql_mode without STRICT_TRANS_TABLES and STRICT_ALL_TABLES) instead of failing.
	Lenient bool
	Warn    func(err error) // nil = nobody listens
	Rows    int64           // rows assigned so far: messages count from 1
}

// fail is the error of a value in a column, in MySQL's words.
func (p *problem) fail(column string, row int64) error {
	switch p.kind {
	case errs.ErrOutOfRange: //nolint:errorlint // kinds, not errors that happened
		return errs.New(p.kind, "Out of range value for column '%s' at row %d", column, row)
	case errs.ErrTooLong: //nolint:errorlint // see above
		return errs.New(p.kind, "Data too long for column '%s' at row %d", column, row)
	case errs.ErrTruncated: //nolint:errorlint // see above
		return errs.New(p.kind, "Data truncated for column '%s' at row %d", column, row)
	case errs.ErrBadJSON: //nolint:errorlint // see above
		return errs.New(p.kind, "%s in value for column '%s' at row %d", p.detail, column, row)
	}
	return errs.New(p.kind, "%s for column '%s' at row %d", p.detail, column, row)
}

// Column assigns a whole array to a column. The result is owned by the caller.
func (a *Assigner) Column(src arrow.Array, f arrow.Field) (arrow.Array, error) {
	if same, err := a.asIs(src, f); same || err != nil {
		if err != nil {
			return nil, err
		}
		src.Retain()
		return src, nil
	}
	b := array.NewBuilder(a.Alloc, f.Type)
	defer b.Release()
	read, err := readerOf(src)
	if err != nil {
		return nil, fmt.Errorf("column '%s': %w", f.Name, err)
	}
	store, err := storeOf(b, f, a.Location)
	if err != nil {
		return nil, err
	}
	b.Reserve(src.Len())
	for i := range src.Len() {
		if err := a.one(b, f, store, read(i), int64(i)); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// one stores a value in row i of the batch.
func (a *Assigner) one(b array.Builder, f arrow.Field, store put, c cell, i int64) error {
	before := b.Len()
	if c.kind == kindNull {
		if f.Nullable {
			b.AppendNull()
			return nil
		}
		if err := a.trouble(errs.New(errs.ErrNull, "Column '%s' cannot be null", f.Name)); err != nil {
			return err
		}
		b.AppendEmptyValue()
		return nil
	}
	p := store(c)
	if b.Len() != before+1 {
		return errs.New(errs.ErrInternal, "column %q: one value made %d", f.Name, b.Len()-before)
	}
	if p == nil {
		return nil
	}
	if err := a.trouble(p.fail(f.Name, a.Rows+i+1)); err != nil {
		return err
	}
	if b.IsNull(before) && !f.Nullable {
		return p.fail(f.Name, a.Rows+i+1)
	}
	return nil
}

func (a *Assigner) trouble(err error) error {
	if !a.Lenient {
		return err
	}
	if a.Warn != nil {
		a.Warn(err)
	}
	return nil
}

// asIs says that the array is already what the column holds.
func (a *Assigner) asIs(src arrow.Array, f arrow.Field) (bool, error) {
	if !arrow.TypeEqual(src.DataType(), f.Type) {
		return false, nil
	}
	if !f.Nullable && src.NullN() > 0 {
		return false, nil
	}
	lim := coltype.LimitsOf(f)
	if lim != (coltype.Limits{Digits: -1}) || !intact(f.Type) {
		return false, nil
	}
	if v, ok := src.(*array.FixedSizeList); ok {
		return wellDefined(v), nil
	}
	return true, nil
}

// intact says that every value of the type may stand in a table: vectors are looked at, also inside lists.
func intact(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.FixedSizeListType:
		return t.Elem().ID() == arrow.FLOAT32 || t.Elem().ID() == arrow.UINT8 || t.Elem().ID() == arrow.INT8
	case arrow.ListLikeType:
		return !isVector(t.Elem())
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if isVector(f.Type) || !intact(f.Type) {
				return false
			}
		}
	}
	return true
}

func isVector(t arrow.DataType) bool { return t.ID() == arrow.FIXED_SIZE_LIST }

// wellDefined says that vectors hold no NULL, NaN or infinity.
func wellDefined(v *array.FixedSizeList) bool {
	if v.Len() == 0 {
		return true
	}
	values, ok := v.ListValues().(*array.Float32)
	if !ok {
		return v.ListValues().NullN() == 0
	}
	lo, _ := v.ValueOffsets(0)
	_, hi := v.ValueOffsets(v.Len() - 1)
	if values.NullN() > 0 {
		return false
	}
	dim := int(hi-lo) / v.Len()
	all := values.Float32Values()[lo:hi]
	for i, x := range all {
		if x-x != 0 && v.IsValid(i/dim) { // NaN and infinities
			return false
		}
	}
	return true
}

// scalarCell makes a cell of a constant.
func scalarCell(s scalar.Scalar) (cell, error) {
	if s == nil || !s.IsValid() {
		return cell{}, nil
	}
	switch v := s.(type) {
	case *scalar.Int64:
		return cell{kind: kindInt, i: v.Value}, nil
	case *scalar.String:
		return cell{kind: kindText, s: string(v.Data())}, nil
	case *scalar.Float64:
		return cell{kind: kindFloat, f: v.Value}, nil
	}
	arr, err := scalar.MakeArrayFromScalar(s, 1, memory.DefaultAllocator)
	if err != nil {
		return cell{}, errs.New(errs.ErrUnsupported, "a constant of type %s cannot be stored: %w", s.DataType(), err)
	}
	read, err := readerOf(arr)
	if err != nil {
		return cell{}, err
	}
	return read(0), nil // the array lives on through the reader of a nested cell; Go's own memory
}
