package file

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/enc20pb"
)

// v20Page reads the pages of leaf columns of version 2.0; docs/format/page.md section 8.
type v20Page struct {
	page *page
	leaf *leafPlan
	root v20Array
	dict atomic.Pointer[dictionary]
}

// v20Array is an encoding tree, flattened: what a page has of each part.
type v20Array struct {
	allNull  bool
	validity *v20Buffer
	shape    *encoding.Shape

	values       *v20Buffer   // fixed width; bits = of one value
	itemValidity []*v20Buffer // by list level; nil entries = all valid
	constant     []byte       // every value; nil = none

	ends       *v20Buffer // variable width: 64-bit end offsets
	bytes      *v20Buffer
	adjustment uint64
	symbols    *encoding.SymbolTable

	indices   *v20Array // dictionary
	items     *v20Array
	itemCount int
	oneBased  bool
}

// v20Buffer is one page buffer and how it is cut.
type v20Buffer struct {
	at     object.Range
	bits   int
	scheme string // whole-buffer compression; "" = none
}

func (p *page) compileV20(l *leafPlan) (pageReader, error) {
	root, err := p.parseV20()
	if err != nil {
		return nil, err
	}
	v := &v20Page{page: p, leaf: l}
	if err := v.compile(&v.root, root, &l.shape, l.typ.ID() == arrow.DICTIONARY, 0); err != nil {
		return nil, err
	}
	return v, v.check(&v.root, int64(p.rows))
}

func (p *page) parseV20() (*enc20pb.ArrayEncoding, error) {
	if !strings.EqualFold(p.url, urlArrayEncoding) {
		return nil, errs.New(errs.ErrUnsupported, "encoding %q is not supported here", p.url)
	}
	if p.rows > math.MaxInt32 {
		return nil, errs.New(errs.ErrUnsupported, "a page of %d rows is not supported", p.rows)
	}
	var e enc20pb.ArrayEncoding
	if err := proto.Unmarshal(p.encoding, &e); err != nil {
		return nil, errs.Corrupt("encoding", -1, "%w", err)
	}
	return &e, nil
}

const v20DepthMax = 16

// compile fills out from e. s is the shape of the values.
func (v *v20Page) compile(out *v20Array, e *enc20pb.ArrayEncoding, s *encoding.Shape, isDict bool, depth int) error {
	if depth > v20DepthMax {
		return errs.Corrupt("encoding", -1, "arrays nested more than %d deep", v20DepthMax)
	}
	out.shape = s
	var err error
	switch k := e.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Nullable:
		return v.compileNullable(out, k.Nullable, s, isDict, depth)
	case *enc20pb.ArrayEncoding_Flat:
		if out.values, err = v.flat(k.Flat); err != nil {
			return err
		}
		if s.Kind != encoding.Fixed || s.Bits() != out.values.bits {
			return errs.Corrupt("encoding", -1, "%d-bit values in a column of another type", out.values.bits)
		}
		return nil
	case *enc20pb.ArrayEncoding_FixedSizeList:
		return v.compileList(out, k.FixedSizeList, s, depth)
	case *enc20pb.ArrayEncoding_FixedSizeBinary:
		out.values, err = v.flatOf(k.FixedSizeBinary.GetBytes())
		if err == nil && out.values.bits == 8 {
			out.values.bits = int(k.FixedSizeBinary.GetByteWidth()&(1<<24-1)) * 8
		}
		if err == nil && (s.Kind != encoding.Fixed || s.Bits() != out.values.bits) {
			return errs.Corrupt("encoding", -1, "%d-bit values in a column of another type", out.values.bits)
		}
		return err
	case *enc20pb.ArrayEncoding_Binary:
		return v.compileBinary(out, k.Binary, s)
	case *enc20pb.ArrayEncoding_Fsst:
		if out.symbols, err = encoding.ParseSymbolTable(k.Fsst.GetSymbolTable()); err != nil {
			return err
		}
		if k.Fsst.GetBinary().GetBinary() == nil {
			return errs.New(errs.ErrUnsupported, "fsst over %T is not supported", k.Fsst.GetBinary().GetArrayEncoding())
		}
		return v.compileBinary(out, k.Fsst.GetBinary().GetBinary(), s)
	case *enc20pb.ArrayEncoding_Dictionary:
		return v.compileDictionary(out, k.Dictionary, s, isDict, depth)
	case *enc20pb.ArrayEncoding_Constant:
		out.constant = k.Constant.GetValue()
		if s.Kind != encoding.Fixed || len(out.constant)*8 != s.Bits() {
			return errs.Corrupt("encoding", -1, "a constant of %d bytes", len(out.constant))
		}
		return nil
	default:
		return errs.New(errs.ErrUnsupported, "version 2.0 values encoded as %T are not supported", k)
	}
}

func (v *v20Page) compileNullable(out *v20Array, n *enc20pb.Nullable, s *encoding.Shape, isDict bool, depth int) error {
	switch k := n.GetNullability().(type) {
	case *enc20pb.Nullable_NoNulls:
		return v.compile(out, k.NoNulls.GetValues(), s, isDict, depth+1)
	case *enc20pb.Nullable_AllNulls:
		out.allNull = true
		return nil
	case *enc20pb.Nullable_SomeNulls:
		if out.validity != nil {
			return errs.New(errs.ErrUnsupported, "validity of two levels is not supported")
		}
		b, err := v.flatOf(k.SomeNulls.GetValidity())
		if err != nil {
			return err
		}
		if b.bits != 1 {
			return errs.Corrupt("encoding", -1, "validity of %d bits", b.bits)
		}
		out.validity = b
		return v.compile(out, k.SomeNulls.GetValues(), s, isDict, depth+1)
	default:
		return errs.Corrupt("encoding", -1, "nullable without a kind")
	}
}

// compileList handles fixed-size lists: their items are an array of their own, one level deeper.
func (v *v20Page) compileList(out *v20Array, f *enc20pb.FixedSizeList, s *encoding.Shape, depth int) error {
	if s.Kind != encoding.Fixed || len(s.Dims) == 0 || s.Dims[0] != int(f.GetDimension()) {
		return errs.Corrupt("encoding", -1, "lists of %d in a column of another type", f.GetDimension())
	}
	inner := &encoding.Shape{Kind: encoding.Fixed, ItemBits: s.ItemBits, Dims: s.Dims[1:]}
	var items v20Array
	if err := v.compile(&items, f.GetItems(), inner, false, depth+1); err != nil {
		return err
	}
	if items.values == nil {
		return errs.New(errs.ErrUnsupported, "fixed-size lists whose items are not flat are not supported")
	}
	out.values = &v20Buffer{at: items.values.at, bits: items.values.bits * s.Dims[0], scheme: items.values.scheme}
	out.itemValidity = append([]*v20Buffer{items.validity}, items.itemValidity...)
	return nil
}

func (v *v20Page) compileBinary(out *v20Array, b *enc20pb.Binary, s *encoding.Shape) error {
	if s.Kind != encoding.Variable {
		return errs.Corrupt("encoding", -1, "binary values in a column of another type")
	}
	var err error
	if out.ends, err = v.flatOf(b.GetIndices()); err != nil {
		return err
	}
	if out.bytes, err = v.flatOf(b.GetBytes()); err != nil {
		return err
	}
	if out.ends.bits != 64 || out.bytes.bits != 8 {
		return errs.New(errs.ErrUnsupported, "offsets of %d bits over %d-bit items are not supported", out.ends.bits, out.bytes.bits)
	}
	out.adjustment = b.GetNullAdjustment()
	if out.adjustment == 0 {
		out.adjustment = math.MaxInt64
	}
	return nil
}

func (v *v20Page) compileDictionary(out *v20Array, d *enc20pb.Dictionary, s *encoding.Shape, isDict bool, depth int) error {
	e := d.GetIndices()
	bits := 0
	for range v20DepthMax {
		n := e.GetNullable()
		if n == nil {
			break
		}
		if e = n.GetNoNulls().GetValues(); e == nil {
			e = n.GetSomeNulls().GetValues()
		}
	}
	if e.GetFlat() != nil {
		bits = int(e.GetFlat().GetBitsPerValue() & 0xff)
	}
	if d.GetIndices().GetNullable().GetAllNulls() != nil {
		out.allNull = true
		return nil
	}
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		return errs.New(errs.ErrUnsupported, "dictionary indices of %d bits are not supported", bits)
	}
	out.indices, out.items = &v20Array{}, &v20Array{}
	out.itemCount, out.oneBased = int(d.GetNumDictionaryItems()), !isDict
	if err := v.compile(out.indices, d.GetIndices(), &encoding.Shape{Kind: encoding.Fixed, ItemBits: bits}, false, depth+1); err != nil {
		return err
	}
	if err := v.compile(out.items, d.GetItems(), s, false, depth+1); err != nil {
		return err
	}
	if out.items.indices != nil {
		return errs.New(errs.ErrUnsupported, "a dictionary of dictionaries is not supported")
	}
	return v.check(out.items, int64(out.itemCount))
}

// flatOf unwraps an array that must be flat and without nulls.
func (v *v20Page) flatOf(e *enc20pb.ArrayEncoding) (*v20Buffer, error) {
	for range v20DepthMax {
		switch k := e.GetArrayEncoding().(type) {
		case *enc20pb.ArrayEncoding_Flat:
			return v.flat(k.Flat)
		case *enc20pb.ArrayEncoding_Nullable:
			if k.Nullable.GetNoNulls() == nil {
				return nil, errs.New(errs.ErrUnsupported, "nulls in offsets or validity are not supported")
			}
			e = k.Nullable.GetNoNulls().GetValues()
		default:
			return nil, errs.New(errs.ErrUnsupported, "%T where flat values are expected is not supported", k)
		}
	}
	return nil, errs.Corrupt("encoding", -1, "arrays nested more than %d deep", v20DepthMax)
}

func (v *v20Page) flat(f *enc20pb.Flat) (*v20Buffer, error) {
	bits := f.GetBitsPerValue()
	if bits == 0 || bits > encoding.MaxValueBytes*8 {
		return nil, errs.Corrupt("encoding", -1, "flat values of %d bits", bits)
	}
	at, err := v.buffer(f.GetBuffer())
	return &v20Buffer{at: at, bits: int(bits), scheme: f.GetCompression().GetScheme()}, err
}

func (v *v20Page) buffer(b *enc20pb.Buffer) (object.Range, error) {
	if b.GetBufferType() != enc20pb.Buffer_PAGE {
		return object.Range{}, errs.New(errs.ErrUnsupported, "buffers outside the page are not supported")
	}
	if i := b.GetBufferIndex(); int64(i) < int64(len(v.page.buffers)) {
		return v.page.buffers[i], nil
	}
	return object.Range{}, errs.Corrupt("encoding", -1, "buffer %d of %d", b.GetBufferIndex(), len(v.page.buffers))
}

// check compares the sizes of plain buffers with the n values that they hold.
func (v *v20Page) check(a *v20Array, n int64) error {
	holds := func(b *v20Buffer, n int64) error {
		if b == nil || b.scheme != "" {
			return nil
		}
		if n > math.MaxInt64/int64(b.bits) || b.at.Size < (n*int64(b.bits)+7)/8 {
			return errs.Corrupt("encoding", b.at.Offset, "%d bytes for %d values of %d bits", b.at.Size, n, b.bits)
		}
		return nil
	}
	items := n
	for d, b := range a.itemValidity {
		items *= int64(a.shape.Dims[d])
		if err := holds(b, items); err != nil {
			return err
		}
	}
	for _, b := range []*v20Buffer{a.validity, a.values, a.ends} {
		if err := holds(b, n); err != nil {
			return err
		}
	}
	if a.indices != nil {
		return v.check(a.indices, n)
	}
	return nil
}

func (v *v20Page) loadDictionary(r *Reader, b *v20Bytes) (*dictionary, error) {
	a := v.root.items
	vals := encoding.NewValues(memory.DefaultAllocator, r.codecs, &v.leaf.shape, 0)
	nest := encoding.NewNesting(memory.DefaultAllocator, []encoding.LayerSpec{{}})
	if err := a.decode(vals, &nest.Layers[0], []span{{0, uint64(v.root.itemCount)}}, b, r.codecs); err != nil {
		return nil, locate(err, "dictionary", -1)
	}
	d := &dictionary{count: vals.N, sizeBytes: vals.SizeBytes()}
	if v.leaf.typ.ID() != arrow.DICTIONARY {
		vals.SealDictionary()
		d.values = vals
		return d, nil
	}
	validity, nulls := nest.Layers[0].TakeValidity()
	data, err := valuesData(vals, v.leaf.field, dictValueType(v.leaf.typ), validity, nulls)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	d.array = array.MakeFromData(data)
	return d, nil
}

// isPlain reports whether the page is an array of values as Arrow wants it.
func (v *v20Page) isPlain() bool {
	a := &v.root
	return a.validity == nil && a.values != nil && a.values.scheme == "" && a.shape.ItemBits%8 == 0 &&
		!slices.ContainsFunc(a.itemValidity, func(b *v20Buffer) bool { return b != nil })
}
