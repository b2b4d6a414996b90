package encoding

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	// defaultPageBytes is below the engine's 8 MiB, so that a writer holds less than the engine's although pages are written while the next ones are made.
	defaultPageBytes = 6 << 20
	// stepRows bounds how many rows are taken apart at once, and so the size of the scratch levels.
	stepRows = 4096
	// pageSteps is how many steps a page takes at least, so that it ends near its bound.
	pageSteps = 8
	// hiddenMax bounds the entries without a value in a page, so that no chunk exceeds the 65535 levels that its header can count.
	hiddenMax = 32 << 10
	// depthMax bounds the nesting of types.
	depthMax = 64
)

// EncodeOptions says how pages are made. The zero value is a page of 6 MiB of file version 2.1.
type EncodeOptions struct {
	PageBytes int  // about how many bytes of values a page holds; 0 = 6 MiB
	V22       bool // the file is version 2.2: chunks may exceed 32 KiB and constant pages are allowed
}

func (o EncodeOptions) withDefaults() EncodeOptions {
	if o.PageBytes <= 0 {
		o.PageBytes = defaultPageBytes
	}
	return o
}

// Page is one encoded page of one leaf column: the buffers in the order that the layout gives them meaning.
type Page struct {
	Layout   *encpb.PageLayout
	Buffers  [][]byte
	FirstRow uint64
	Rows     uint64
}

// ColumnEncoder turns the arrays of one top-level column into pages, one sequence of pages per leaf. It keeps at most about one
// page of values per leaf between calls. It is used by one goroutine at a time.
type ColumnEncoder struct {
	opts   EncodeOptions
	name   string
	dtype  arrow.DataType
	leaves []*leafBuilder // depth first, which is the order of the physical columns
}

// NewColumnEncoder returns an encoder for a column of type dt. Errors: ErrUnsupported naming the column for a type that is not written.
func NewColumnEncoder(field arrow.Field, opts EncodeOptions) (*ColumnEncoder, error) {
	c := &ColumnEncoder{opts: opts.withDefaults(), name: field.Name, dtype: field.Type}
	if err := c.addLeaves(field, nil, field.Name, leafOptions{}); err != nil {
		return nil, err
	}
	for _, l := range c.leaves {
		l.numberLevels()
	}
	return c, nil
}

func (c *ColumnEncoder) addLeaves(f arrow.Field, above []encodeStep, path string, o leafOptions) error {
	if len(above) > depthMax {
		return errs.New(errs.ErrUnsupported, "column %q nests deeper than %d", c.name, depthMax)
	}
	o, err := o.with(path, f.Metadata)
	if err != nil {
		return err
	}
	step := encodeStep{nullable: f.Nullable, path: path}
	child := func(kind stepKind, i int, f arrow.Field) error {
		s := step
		s.kind, s.child = kind, i
		return c.addLeaves(f, append(above[:len(above):len(above)], s), path+"."+f.Name, o)
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		if isPacked(f.Metadata) {
			shape, err := packedShapeOf(t, c.opts.V22)
			return c.addLeaf(shape, err, step, above, o)
		}
		if t.NumFields() == 0 {
			return errs.New(errs.ErrUnsupported, "column %q: a struct without fields cannot be written", path)
		}
		for i, sub := range t.Fields() {
			if err := child(stepStruct, i, sub); err != nil {
				return err
			}
		}
		return nil
	case *arrow.ListType:
		return child(stepList, 0, t.ElemField())
	case *arrow.LargeListType:
		return child(stepList, 0, t.ElemField())
	case *arrow.MapType:
		if !c.opts.V22 {
			return errs.New(errs.ErrUnsupported, "column %q: maps need file version 2.2", path)
		}
		return child(stepList, 0, t.ElemField())
	case *arrow.FixedSizeListType:
		if storageType(t.Elem()).ID() != arrow.STRUCT {
			break
		}
		if !c.opts.V22 {
			return errs.New(errs.ErrUnsupported, "column %q: fixed-size lists of structs need file version 2.2", path)
		}
		step.times = int(t.Len())
		return child(stepStructList, 0, t.ElemField())
	case arrow.ExtensionType:
		f.Type = t.StorageType()
		return c.addLeaves(f, above, path, o)
	}
	shape, err := leafShapeOf(f.Type)
	return c.addLeaf(shape, err, step, above, o)
}

func storageType(t arrow.DataType) arrow.DataType {
	if ext, ok := t.(arrow.ExtensionType); ok {
		return storageType(ext.StorageType())
	}
	return t
}

func (c *ColumnEncoder) addLeaf(shape leafShape, err error, step encodeStep, above []encodeStep, o leafOptions) error {
	if err != nil {
		return fmt.Errorf("column %q: %w", step.path, err)
	}
	step.kind = stepLeaf
	leaf := &leafBuilder{steps: append(above[:len(above):len(above)], step), leafShape: shape, options: o, itemValid: make([][]byte, len(shape.dims))}
	if o.scheme != 0 {
		if leaf.zip, err = newCompressor(o.scheme, o.level); err != nil {
			return err
		}
	}
	c.leaves = append(c.leaves, leaf)
	return nil
}

// Leaves is the number of physical columns.
func (c *ColumnEncoder) Leaves() int { return len(c.leaves) }

// Append adds rows and hands full pages to emit, with the number of the leaf. The pages do not refer to the array. Errors:
// ErrInvalid for a null in a column that has none or an array of another type, ErrUnsupported for a value that no page holds.
func (c *ColumnEncoder) Append(ctx context.Context, arr arrow.Array, emit func(leaf int, p *Page) error) error {
	if !storedAlike(arr.DataType(), c.dtype) {
		return errs.New(errs.ErrInvalid, "column %q is %s, not %s", c.name, c.dtype, arr.DataType())
	}
	for lo := 0; lo < arr.Len(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(lo+stepRows, arr.Len())
		for hi-lo > 1 && SliceBytes(arr, lo, hi) > int64(c.opts.PageBytes)/pageSteps {
			hi = lo + (hi-lo)/2
		}
		for i, leaf := range c.leaves {
			before := leaf.sizeBytes()
			if err := leaf.add(arr, lo, hi); err != nil {
				return err
			}
			size := leaf.sizeBytes()
			most := c.opts.PageBytes
			if leaf.isWide() { // a read touches single values: larger pages gain nothing, and every one is held up to three times
				most -= most / 3
			}
			if size+(size-before) <= most && leaf.hidden < hiddenMax {
				continue
			}
			if err := c.cut(i, emit); err != nil {
				return err
			}
		}
		lo = hi
	}
	return nil
}

// Release gives the encoder's memory to others. It must not be used afterwards.
func (c *ColumnEncoder) Release() {
	for _, l := range c.leaves {
		giveBuffer(l.data)
		giveWords(l.ends)
		l.data, l.ends = nil, nil
	}
}

// KeptBytes is about what is kept between calls.
func (c *ColumnEncoder) KeptBytes() int64 {
	var n int64
	for _, l := range c.leaves {
		n += int64(cap(l.data)) + 4*int64(cap(l.ends)) + 2*int64(cap(l.rep)+cap(l.def))
		for _, v := range l.itemValid {
			n += int64(cap(v))
		}
	}
	return n
}

// Flush emits what is left. The encoder may be used on.
func (c *ColumnEncoder) Flush(emit func(leaf int, p *Page) error) error {
	for i := range c.leaves {
		if err := c.cut(i, emit); err != nil {
			return err
		}
	}
	return nil
}

func (c *ColumnEncoder) cut(i int, emit func(leaf int, p *Page) error) error {
	leaf := c.leaves[i]
	if leaf.rows == 0 {
		return nil
	}
	p, err := leaf.encode(c.opts)
	if err != nil {
		return fmt.Errorf("column %q: %w", leaf.path(), err)
	}
	p.FirstRow, p.Rows = leaf.firstRow, uint64(leaf.rows*leaf.scale)
	leaf.reset()
	return emit(i, p)
}

var (
	errManyLevels = errors.New("too many levels for a chunk")
	errChunkSize  = errors.New("chunk too large")
)

// encode picks the layout: constant, then mini-block for small values, then full-zip.
func (b *leafBuilder) encode(opts EncodeOptions) (*Page, error) {
	lv := b.levels()
	b.fillNulls(lv)
	if p := b.encodeConstant(lv, opts); p != nil {
		return p, nil
	}
	if b.isRows() && b.structAboveList() {
		return nil, errs.New(errs.ErrUnsupported, "a packed struct of variable width in a list below a struct cannot be written")
	}
	if b.isWide() && !b.structAboveList() {
		return b.encodeFullZip(lv)
	}
	p, err := b.encodeMiniBlock(lv, opts)
	if errors.Is(err, errManyLevels) || errors.Is(err, errChunkSize) {
		if b.structAboveList() || b.kind == leafBool {
			return nil, errs.New(errs.ErrUnsupported, "this nesting of large values or many empty lists cannot be written: %w", err)
		}
		return b.encodeFullZip(lv)
	}
	return p, err
}

// SliceBytes is about how many bytes rows [lo, hi) take.
func SliceBytes(arr arrow.Array, lo, hi int) int64 {
	if hi <= lo {
		return 0
	}
	switch a := arr.(type) {
	case array.BinaryLike:
		return a.ValueOffset64(hi-1) + int64(a.ValueLen(hi-1)) - a.ValueOffset64(lo)
	case array.ExtensionArray:
		return SliceBytes(a.Storage(), lo, hi)
	case *array.Dictionary:
		var n int64
		for i := lo; i < hi; i++ {
			if a.IsValid(i) {
				at := a.GetValueIndex(i)
				n += SliceBytes(a.Dictionary(), at, at+1)
			}
		}
		return n
	case *array.Struct:
		var n int64
		for i := range a.NumField() {
			n += SliceBytes(a.Field(i), lo, hi)
		}
		return n
	case *array.FixedSizeList:
		from, _ := a.ValueOffsets(lo)
		_, to := a.ValueOffsets(hi - 1)
		return SliceBytes(a.ListValues(), int(from), int(to))
	case array.ListLike:
		from, _ := a.ValueOffsets(lo)
		_, to := a.ValueOffsets(hi - 1)
		return int64(hi-lo) + SliceBytes(a.ListValues(), int(from), int(to))
	}
	if t, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		return int64(hi-lo) * int64((t.BitWidth()+7)/8)
	}
	return int64(hi - lo)
}

// storedAlike compares types by what is stored: extension types by their storage, lists without the name of the item.
func storedAlike(a, b arrow.DataType) bool {
	if ext, ok := a.(arrow.ExtensionType); ok {
		return storedAlike(ext.StorageType(), b)
	}
	if ext, ok := b.(arrow.ExtensionType); ok {
		return storedAlike(a, ext.StorageType())
	}
	if a.ID() != b.ID() {
		return false
	}
	switch a := a.(type) {
	case *arrow.StructType:
		b := b.(*arrow.StructType)
		if a.NumFields() != b.NumFields() {
			return false
		}
		for i, f := range a.Fields() {
			if g := b.Field(i); f.Name != g.Name || !storedAlike(f.Type, g.Type) {
				return false
			}
		}
		return true
	case *arrow.MapType:
		b := b.(*arrow.MapType)
		return storedAlike(a.KeyType(), b.KeyType()) && storedAlike(a.ItemType(), b.ItemType())
	case *arrow.FixedSizeListType:
		b := b.(*arrow.FixedSizeListType)
		return a.Len() == b.Len() && storedAlike(a.Elem(), b.Elem())
	case arrow.ListLikeType:
		return storedAlike(a.Elem(), b.(arrow.ListLikeType).Elem())
	}
	return arrow.TypeEqual(a, b)
}
