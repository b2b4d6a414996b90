package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

// caster turns arrays of one type into another's. A value that does not fit fails the whole array; rows tells which.
type caster struct {
	from, to arrow.DataType
	children []*caster
	at       []int        // of a struct's fields: where they stand in the source, -1 = nowhere
	text     *valueReader // from text, value by value
	alloc    allocator
}

// errValue marks failures of values, as opposed to those of the machine.
var errValue = errors.New("value") //nolint:gochecknoglobals // a sentinel

func noValue(format string, args ...any) error {
	return errs.New(errs.ErrBadValue, "%w", fmt.Errorf(format+"%w", append(args, errQuiet{})...))
}

// errQuiet is errValue without text.
type errQuiet struct{}

func (errQuiet) Error() string { return "" }
func (errQuiet) Unwrap() error { return errValue }

// newCaster returns the caster of a type into another. Errors: ErrUnsupported where there is no way.
func newCaster(from, to arrow.DataType, alloc allocator) (*caster, error) {
	c := &caster{from: from, to: to, alloc: alloc}
	var err error
	switch f := from.(type) {
	case *arrow.DictionaryType:
		if arrow.TypeEqual(from, to) {
			return c, nil
		}
		return c, c.child(f.ValueType, to)
	case arrow.ExtensionType:
		return c, c.child(f.StorageType(), to)
	}
	switch t := to.(type) {
	case arrow.ListLikeType:
		if f, ok := from.(arrow.ListLikeType); ok && (from.ID() == arrow.MAP) == (to.ID() == arrow.MAP) {
			if a, ok := from.(*arrow.FixedSizeListType); ok {
				if b, ok := to.(*arrow.FixedSizeListType); ok && a.Len() != b.Len() {
					return nil, errs.New(errs.ErrUnsupported, "lists of %d where %s is wanted", a.Len(), typeName(to))
				}
			}
			if isList(from.ID()) {
				return c, c.child(f.Elem(), t.Elem())
			}
		}
	case *arrow.StructType:
		if f, ok := from.(*arrow.StructType); ok {
			return c, c.fields(f, t)
		}
	default:
		switch {
		case to.ID() == arrow.DICTIONARY:
			return nil, errs.New(errs.ErrUnsupported, "%s where %s is wanted", from, to)
		case arrow.TypeEqual(from, to):
			return c, nil
		case isTextType(from) && !isTextType(to) && isReadable(to):
			c.text, err = newValueReader(arrow.Field{Type: to, Nullable: true}, 0, false)
			return c, err
		case compute.CanCast(from, to) && keepsValues(from, to):
			return c, nil
		}
	}
	return nil, errs.New(errs.ErrUnsupported, "%s where %s is wanted", from, typeName(to))
}

func isTextType(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return true
	}
	return false
}

// keepsValues leaves out casts that change what a value says: numbers of booleans, times of numbers.
func keepsValues(from, to arrow.DataType) bool {
	a, b := isTime(from), isTime(to)
	isBool := from.ID() == arrow.BOOL || to.ID() == arrow.BOOL
	if from.ID() == arrow.INT64 && to.ID() == arrow.DURATION { // what Parquet keeps of durations
		return true
	}
	return !isBool && (a == b || isTextType(to))
}

func isTime(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return true
	}
	return false
}

func (c *caster) child(from, to arrow.DataType) error {
	child, err := newCaster(from, to, c.alloc)
	if err != nil {
		return err
	}
	c.children = append(c.children, child)
	return nil
}

func (c *caster) fields(from, to *arrow.StructType) error {
	used := 0
	for _, f := range to.Fields() {
		at, ok := from.FieldIdx(f.Name)
		if !ok {
			if !f.Nullable {
				return errs.New(errs.ErrUnsupported, "a struct without the field %q, which is NOT NULL", f.Name)
			}
			c.at, c.children = append(c.at, -1), append(c.children, nil)
			continue
		}
		used++
		c.at = append(c.at, at)
		if err := c.child(from.Field(at).Type, f.Type); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	if used < from.NumFields() {
		return errs.New(errs.ErrUnsupported, "%s where %s is wanted: it has more fields", from, typeName(to))
	}
	return nil
}

// isSame says that nothing is to be done.
func (c *caster) isSame() bool { return arrow.TypeEqual(c.from, c.to) }

// rows casts an array of top-level values; those that do not fit become NULL and are noted.
func (c *caster) rows(ctx context.Context, arr arrow.Array, first int, note func(row int, err error)) (arrow.Array, error) {
	out, err := c.cast(ctx, arr)
	if err == nil || !errors.Is(err, errValue) {
		return out, err
	}
	if arr.Len() == 1 {
		note(first, err)
		return array.MakeArrayOfNull(c.alloc, c.to, 1), nil
	}
	half := arr.Len() / 2
	var parts [2]arrow.Array
	defer releaseAll(parts[:])
	for i, span := range [][2]int{{0, half}, {half, arr.Len()}} {
		part := array.NewSlice(arr, int64(span[0]), int64(span[1]))
		parts[i], err = c.rows(ctx, part, first+span[0], note)
		part.Release()
		if err != nil {
			return nil, err
		}
	}
	return array.Concatenate(parts[:], c.alloc)
}

// cast returns the array in the other type. Errors: errValue and those of the machine.
func (c *caster) cast(ctx context.Context, arr arrow.Array) (arrow.Array, error) {
	if c.isSame() {
		arr.Retain()
		return arr, nil
	}
	switch a := arr.(type) {
	case *array.Dictionary:
		values, err := take(ctx, a.Dictionary(), a.Indices())
		if err != nil {
			return nil, err
		}
		defer values.Release()
		return c.children[0].cast(ctx, values)
	case array.ExtensionArray:
		return c.children[0].cast(ctx, a.Storage())
	case *array.Struct:
		return c.castStruct(ctx, a)
	case array.ListLike:
		return c.castList(ctx, a)
	}
	if c.text != nil {
		return c.parse(arr)
	}
	opts := compute.SafeCastOptions(c.to)
	if isFloat(c.from) && isFloat(c.to) { // to the nearest
		opts.AllowFloatTruncate = true
	}
	out, err := compute.CastArray(ctx, arr, opts)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, arrow.ErrInvalid):
		return nil, noValue("no %s: %v", typeName(c.to), err)
	}
	return nil, err
}

func isFloat(t arrow.DataType) bool {
	return t.ID() == arrow.FLOAT16 || t.ID() == arrow.FLOAT32 || t.ID() == arrow.FLOAT64
}

// parse reads values of text.
func (c *caster) parse(arr arrow.Array) (arrow.Array, error) {
	b := array.NewBuilder(c.alloc, c.to)
	defer b.Release()
	b.Reserve(arr.Len())
	for i := range arr.Len() {
		if arr.IsNull(i) {
			b.AppendNull()
			continue
		}
		var v []byte
		switch a := arr.(type) {
		case array.StringLike:
			v = []byte(a.Value(i))
		case *array.Binary:
			v = a.Value(i)
		case *array.LargeBinary:
			v = a.Value(i)
		case *array.BinaryView:
			v = a.Value(i)
		}
		if err := c.text.scalar(b, v); err != nil {
			return nil, noValue("%v", err)
		}
	}
	return b.NewArray(), nil
}

// take picks values; a NULL index is a NULL.
func take(ctx context.Context, values, indices arrow.Array) (arrow.Array, error) {
	out, err := compute.TakeArray(ctx, values, indices)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "take %s: %w", values.DataType(), err)
	}
	return out, nil
}

func (c *caster) castStruct(ctx context.Context, a *array.Struct) (arrow.Array, error) {
	data := make([]arrow.ArrayData, len(c.children))
	cols := make([]arrow.Array, len(c.children))
	defer releaseAll(cols)
	t := c.to.(*arrow.StructType) //nolint:forcetypeassert // a struct is cast to a struct
	for i, child := range c.children {
		if child == nil {
			cols[i] = array.MakeArrayOfNull(c.alloc, t.Field(i).Type, a.Len())
		} else {
			var err error
			if cols[i], err = child.cast(ctx, a.Field(c.at[i])); err != nil {
				return nil, fmt.Errorf("field %s: %w", t.Field(i).Name, err)
			}
		}
		data[i] = cols[i].Data()
	}
	bits, err := validity(a, c.alloc)
	if err != nil {
		return nil, err
	}
	defer bits.release()
	out := array.NewData(c.to, a.Len(), bits.buffers(), data, a.NullN(), 0)
	defer out.Release()
	return array.MakeFromData(out), nil
}

// Converter turns arrays of one type into another. It is safe for concurrent use.
type Converter struct{ caster *caster }

// NewConverter returns the converter of a type into another. Errors: ErrUnsupported where there is no way.
func NewConverter(from, to arrow.DataType, alloc memory.Allocator) (*Converter, error) {
	c, err := newCaster(from, to, alloc)
	return &Converter{caster: c}, err
}

// Convert returns an array of the other type, which the caller releases. Errors: ErrBadValue for a value that does not fit.
func (c *Converter) Convert(ctx context.Context, arr arrow.Array) (arrow.Array, error) {
	if lists, ok := arr.(array.ListLike); ok && c.caster.isSame() && len(c.caster.children) == 1 && nullsHaveItems(lists) {
		return c.caster.castList(ctx, lists)
	}
	return c.caster.cast(ctx, arr)
}

// nullsHaveItems says that items stand behind a NULL.
func nullsHaveItems(a array.ListLike) bool {
	if a.NullN() == 0 {
		return false
	}
	for i := range a.Len() {
		if lo, hi := a.ValueOffsets(i); hi > lo && a.IsNull(i) {
			return true
		}
	}
	return false
}
