package encoding

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// shapes are the columns that the fuzz targets decode into.
var shapes = []*Shape{
	{Kind: Fixed, ItemBits: 1}, {Kind: Fixed, ItemBits: 8}, {Kind: Fixed, ItemBits: 16}, {Kind: Fixed, ItemBits: 32},
	{Kind: Fixed, ItemBits: 64}, {Kind: Fixed, ItemBits: 128}, {Kind: Variable}, {Kind: Variable, Wide: true},
	{Kind: Fixed, ItemBits: 32, Dims: []int{4}}, {Kind: Fixed, ItemBits: 8, Dims: []int{2, 3}}, {Kind: Fixed, ItemBits: 1, Dims: []int{5}},
	{Kind: Packed, Fields: []Shape{{Kind: Fixed, ItemBits: 32}, {Kind: Fixed, ItemBits: 8}}},
	{Kind: Packed, Fields: []Shape{{Kind: Fixed, ItemBits: 32}, {Kind: Variable}}},
}

func flatOf(bits uint64) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Flat{Flat: &encpb.Flat{BitsPerValue: bits}}}
}

func variableOf(bits uint64) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Variable{Variable: &encpb.Variable{Offsets: flatOf(bits)}}}
}

func inlineOf(bits uint64) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_InlineBitpacking{
		InlineBitpacking: &encpb.InlineBitpacking{UncompressedBitsPerValue: bits}}}
}

func outOfLineOf(bits, width uint64) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &encpb.OutOfLineBitpacking{UncompressedBitsPerValue: bits, Values: flatOf(width)}}}
}

func runsOf(bits uint64) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Rle{Rle: &encpb.Rle{Values: flatOf(bits), RunLengths: flatOf(8)}}}
}

func splitOf(bits uint64) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_ByteStreamSplit{
		ByteStreamSplit: &encpb.ByteStreamSplit{Values: flatOf(bits)}}}
}

func generalOf(scheme encpb.CompressionScheme, values *encpb.CompressiveEncoding) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_General{
		General: &encpb.General{Compression: &encpb.BufferCompression{Scheme: scheme}, Values: values}}}
}

func fsstOf(table []byte, values *encpb.CompressiveEncoding) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Fsst{Fsst: &encpb.Fsst{SymbolTable: table, Values: values}}}
}

func listOf(validity bool, itemBits uint64, dims ...int) *encpb.CompressiveEncoding {
	enc := flatOf(itemBits)
	for i := len(dims) - 1; i >= 0; i-- {
		enc = &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_FixedSizeList{
			FixedSizeList: &encpb.FixedSizeList{ItemsPerValue: uint64(dims[i]), HasValidity: validity, Values: enc}}}
	}
	return enc
}

func constantOf(value []byte) *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Constant{Constant: &encpb.Constant{Value: value}}}
}

// someTable is a symbol table of four symbols.
func someTable(on bool) []byte {
	t := make([]byte, fsstTableBytes)
	head := uint64(fsstMagic)<<32 | 4
	if on {
		head |= 1 << 24
	}
	binary.LittleEndian.PutUint64(t, head)
	for i, s := range []string{"parcel", "a", "damaged ", "of"} {
		copy(t[fsstHeaderBytes+8*i:], s)
		t[fsstHeaderBytes+8*4+i] = byte(len(s))
	}
	return t
}

// encodings lists one encoding of each kind for a shape, with the count of buffers in a chunk.
func encodings(s *Shape) []*encpb.CompressiveEncoding {
	bits := uint64(s.Bits())
	switch {
	case s.Kind == Variable:
		return []*encpb.CompressiveEncoding{
			variableOf(32), variableOf(64), fsstOf(someTable(true), variableOf(32)), fsstOf(someTable(false), variableOf(64)),
			generalOf(encpb.CompressionScheme_COMPRESSION_LZ4, variableOf(32)),
			generalOf(encpb.CompressionScheme_COMPRESSION_ZSTD, fsstOf(someTable(true), variableOf(32))),
		}
	case s.Kind == Packed:
		p := &encpb.PackedStruct{}
		for _, f := range s.Fields {
			p.BitsPerValue = append(p.BitsPerValue, uint64(f.Bits()))
			bits += uint64(f.Bits())
		}
		p.Values = flatOf(bits)
		return []*encpb.CompressiveEncoding{{Compression: &encpb.CompressiveEncoding_PackedStruct{PackedStruct: p}}, variableRows(s)}
	case len(s.Dims) > 0:
		return []*encpb.CompressiveEncoding{listOf(false, uint64(s.ItemBits), s.Dims...), listOf(true, uint64(s.ItemBits), s.Dims...)}
	default:
		return []*encpb.CompressiveEncoding{
			flatOf(bits), inlineOf(bits), runsOf(bits), splitOf(bits), outOfLineOf(bits, 3), outOfLineOf(bits, 0), constantOf([]byte{1, 0}),
			generalOf(encpb.CompressionScheme_COMPRESSION_ZSTD, flatOf(bits)), generalOf(encpb.CompressionScheme_COMPRESSION_LZ4, splitOf(bits)),
		}
	}
}

func variableRows(s *Shape) *encpb.CompressiveEncoding {
	p := &encpb.VariablePackedStruct{}
	for _, f := range s.Fields {
		e := &encpb.VariablePackedStruct_FieldEncoding{Value: flatOf(uint64(f.Bits()))}
		e.Layout = &encpb.VariablePackedStruct_FieldEncoding_BitsPerValue{BitsPerValue: uint64(f.Bits())}
		if f.Kind == Variable {
			e.Value, e.Layout = variableOf(32), &encpb.VariablePackedStruct_FieldEncoding_BitsPerLength{BitsPerLength: 32}
		}
		p.Fields = append(p.Fields, e)
	}
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_VariablePackedStruct{VariablePackedStruct: p}}
}

// accept fails a target on an error that wrong bytes may not give.
func accept(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrUnsupported) && !errors.Is(err, errs.ErrOverflow) {
		t.Fatal(err)
	}
}

// intact checks that values stay inside their buffers.
func intact(t *testing.T, v *Values) {
	t.Helper()
	switch v.Shape.Kind {
	case Fixed:
		have := v.fixed.n * 8
		if v.Shape.ItemBits == 1 {
			have = v.bits.n
		}
		if have != v.N*v.Shape.Bits() {
			t.Fatalf("%d bits for %d values of %d", have, v.N, v.Shape.Bits())
		}
	case Variable:
		w, last := v.offsetBytes(), uint64(0)
		if v.offsets.n != (v.N+1)*w {
			t.Fatalf("%d bytes of offsets for %d values", v.offsets.n, v.N)
		}
		for i := range v.N + 1 {
			o := littleEndian(v.offsets.bytes()[i*w : (i+1)*w])
			if o < last || o > uint64(v.data.n) {
				t.Fatalf("offset %d of %d after %d", o, v.data.n, last)
			}
			last = o
		}
	case Packed:
		for _, f := range v.fields {
			intact(t, f)
			if f.N != v.N {
				t.Fatalf("%d values of a field in %d rows", f.N, v.N)
			}
		}
	}
}

// FuzzMiniBlock decodes chunks of every encoding: no panic, no allocation out of proportion, errors of known kinds.
func FuzzMiniBlock(f *testing.F) {
	f.Add(uint8(6), uint8(0), uint16(2), uint16(0), uint16(2), []byte{12, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0, 'a', 'b'}, []byte{})
	f.Add(uint8(3), uint8(1), uint16(100), uint16(3), uint16(90), append([]byte{5, 0, 0, 0}, make([]byte, 640)...), []byte{})
	f.Add(uint8(4), uint8(2), uint16(9), uint16(0), uint16(9), make([]byte, 16), []byte{4, 5})
	f.Add(uint8(8), uint8(1), uint16(2), uint16(1), uint16(2), []byte{0x0f}, make([]byte, 32))
	f.Fuzz(func(t *testing.T, shape, codec uint8, n, from, to uint16, first, second []byte) {
		s := shapes[int(shape)%len(shapes)]
		list := encodings(s)
		enc := list[int(codec)%len(list)]
		bufs := [][]byte{first, second, first}
		for buffers := 1; buffers <= 3; buffers++ {
			m, err := CompileMiniBlock(enc, s, buffers)
			if err != nil {
				accept(t, err)
				continue
			}
			codecs := &Codecs{}
			c := NewChunk(codecs)
			if err := m.Open(c, bufs[:buffers], int(n)); err != nil {
				accept(t, err)
				continue
			}
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			v := NewValues(alloc, codecs, s, 0)
			a, b := min(from, to, n), min(max(from, to), n)
			err = m.Append(c, v, int(a), int(b))
			accept(t, err)
			if err == nil {
				intact(t, v)
				if v.N != int(b-a) {
					t.Fatalf("%d values, want %d", v.N, b-a)
				}
			}
			v.Release()
			alloc.AssertSize(t, 0)
		}
	})
}

// FuzzBlock decodes dictionaries of every encoding.
func FuzzBlock(f *testing.F) {
	f.Add(uint8(6), uint8(0), uint16(2), []byte{32, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 'a', 'b'})
	f.Add(uint8(4), uint8(4), uint16(1500), make([]byte, 1000))
	f.Add(uint8(3), uint8(2), uint16(3), []byte{4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 3})
	f.Fuzz(func(t *testing.T, shape, codec uint8, n uint16, b []byte) {
		s := shapes[int(shape)%len(shapes)]
		list := encodings(s)
		v := NewValues(memory.DefaultAllocator, &Codecs{}, s, 0)
		defer v.Release()
		err := AppendBlock(v, list[int(codec)%len(list)], b, int(n))
		accept(t, err)
		if err == nil {
			intact(t, v)
		}
	})
}

// FuzzZip decodes single values of every encoding.
func FuzzZip(f *testing.F) {
	f.Add(uint8(6), uint8(2), []byte{0, 2, 255, 'x'})
	f.Add(uint8(12), uint8(1), []byte{1, 2, 3, 4, 2, 0, 0, 0, 'a', 'b'})
	f.Add(uint8(8), uint8(1), make([]byte, 17))
	f.Fuzz(func(t *testing.T, shape, codec uint8, b []byte) {
		s := shapes[int(shape)%len(shapes)]
		list := encodings(s)
		enc := list[int(codec)%len(list)]
		compile := func() (*Zip, error) { return CompileZipVariable(enc, s) }
		if s.Kind == Fixed {
			compile = func() (*Zip, error) { return CompileZipFixed(enc, s, uint64(len(b))*8) }
		}
		z, err := compile()
		if err != nil {
			accept(t, err)
			return
		}
		v := NewValues(memory.DefaultAllocator, &Codecs{}, s, 0)
		defer v.Release()
		err = z.Append(v, b)
		accept(t, err)
		if err == nil {
			intact(t, v)
		}
		if z.ValueBytes() > 0 {
			accept(t, z.AppendPlain(v, b, len(b)/z.ValueBytes()))
			accept(t, z.AppendStrided(v, b, 1, z.ValueBytes()+1, len(b)/(z.ValueBytes()+1)))
		}
	})
}

// FuzzLevels decodes level buffers of every encoding and unravels them.
func FuzzLevels(f *testing.F) {
	f.Add(uint8(0), uint8(2), uint16(3), []byte{1, 0, 0, 0, 1, 0}, []byte{0, 0, 1, 0, 3, 0})
	f.Add(uint8(1), uint8(0), uint16(1025), make([]byte, 300), make([]byte, 300))
	f.Add(uint8(3), uint8(5), uint16(3), []byte{2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3}, []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, codec, tree uint8, n uint16, repBytes, defBytes []byte) {
		list := []*encpb.CompressiveEncoding{
			nil, outOfLineOf(16, 1), inlineOf(16), runsOf(16), outOfLineOf(16, 0), constantOf([]byte{1}),
			generalOf(encpb.CompressionScheme_COMPRESSION_LZ4, flatOf(16)),
		}
		l, err := CompileLevels(list[int(codec)%len(list)])
		if err != nil {
			t.Fatal(err)
		}
		codecs := &Codecs{}
		rep, err := l.Append(nil, repBytes, int(n), codecs)
		accept(t, err)
		def, err2 := l.Append(nil, defBytes, int(n), codecs)
		accept(t, err2)
		if err != nil || err2 != nil {
			return
		}
		codes, specs := layersOf(tree)
		p, err := CompileLayers(codes, specs)
		if err != nil {
			t.Fatal(err)
		}
		alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
		nest := NewNesting(alloc, specs)
		visible, err := nest.Append(p, rep, def, int(n))
		accept(t, err)
		if err == nil && visible > int(n) {
			t.Fatalf("%d of %d entries have a value", visible, n)
		}
		nest.Release()
		alloc.AssertSize(t, 0)
	})
}

// layersOf returns one of several trees.
func layersOf(i uint8) ([]encpb.RepDefLayer, []LayerSpec) {
	item, valid := encpb.RepDefLayer_REPDEF_NULLABLE_ITEM, encpb.RepDefLayer_REPDEF_ALL_VALID_ITEM
	list, both := encpb.RepDefLayer_REPDEF_NULLABLE_LIST, encpb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST
	trees := [][]encpb.RepDefLayer{
		{item}, {item, item}, {item, both}, {valid, encpb.RepDefLayer_REPDEF_EMPTYABLE_LIST, list}, {item, item, both, item}, {item, both, both, both},
	}
	codes := trees[int(i)%len(trees)]
	specs := make([]LayerSpec, len(codes))
	for j, c := range codes {
		specs[j].List = c != item && c != valid
		specs[j].Wide = i&8 != 0
		if !specs[j].List && i&16 != 0 && j > 0 {
			specs[j].Times = 2
		}
	}
	return codes, specs
}

// FuzzExpand decompresses hostile buffers.
func FuzzExpand(f *testing.F) {
	f.Add(true, []byte{3, 0, 0, 0, 0x30, 'a', 'b', 'c'})
	f.Add(false, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 'a', 'b', 'c'})
	f.Fuzz(func(t *testing.T, lz4 bool, b []byte) {
		scheme := encpb.CompressionScheme_COMPRESSION_ZSTD
		if lz4 {
			scheme = encpb.CompressionScheme_COMPRESSION_LZ4
		}
		_, err := (&Codecs{}).expand(nil, scheme, b)
		accept(t, err)
	})
}

// FuzzSymbolTable parses hostile tables and decodes with them.
func FuzzSymbolTable(f *testing.F) {
	f.Add(someTable(true), []byte{0, 1, 255, 9, 3, 255})
	f.Add(someTable(false), []byte("raw"))
	f.Fuzz(func(t *testing.T, table, codes []byte) {
		s, err := parseFSST(table)
		if err != nil {
			accept(t, err)
			return
		}
		dst := make([]byte, s.expandedMax(len(codes)))
		if n := s.decode(dst, codes); n > 8*len(codes) && s.on {
			t.Fatalf("%d bytes from %d codes", n, len(codes))
		}
	})
}

// FuzzEnds decodes the offsets of version 2.0.
func FuzzEnds(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0}, uint64(0), uint64(4), []byte("abc"))
	f.Fuzz(func(t *testing.T, ends []byte, start, adjustment uint64, data []byte) {
		nest := NewNesting(memory.DefaultAllocator, []LayerSpec{{List: true}})
		defer nest.Release()
		n := len(ends) / 8
		if end, err := nest.Layers[0].AppendLists(ends, n, start, adjustment); err != nil {
			accept(t, err)
		} else if end < start {
			t.Fatalf("lists end at %d, before %d", end, start)
		}
		valid := NewNesting(memory.DefaultAllocator, []LayerSpec{{}})
		defer valid.Release()
		e, err := ParseEnds(ends, n, start, adjustment, &valid.Layers[0])
		if err != nil {
			accept(t, err)
			return
		}
		v := NewValues(memory.DefaultAllocator, &Codecs{}, &Shape{Kind: Variable}, n)
		defer v.Release()
		if err := v.AppendEnds(e, data, nil); err != nil {
			accept(t, err)
			return
		}
		intact(t, v)
	})
}
