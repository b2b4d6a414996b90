package encoding

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// packSlowly packs 1024 values by the definition of the order: docs/format/page.md section 6.3.
func packSlowly(values []uint64, wordBits, width int) []byte {
	out := make([]byte, 128*width)
	lanes := packedLanes(wordBits)
	for r := range wordBits {
		for l := range lanes {
			v := values[packedRow[r/8]*16+r%8*128+l]
			for b := range width {
				if v>>b&1 == 0 {
					continue
				}
				bit := r*width + b
				word, at := bit/wordBits, bit%wordBits
				out[(lanes*word+l)*wordBits/8+at/8] |= 1 << (at % 8)
			}
		}
	}
	return out
}

func packedLanes(wordBits int) int { return blockValues / wordBits }

func TestUnpackInvertsPackingAtEveryWidth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, wordBits := range []int{8, 16, 32, 64} {
		for width := 0; width <= wordBits; width++ {
			values := make([]uint64, blockValues)
			want := make([]byte, 128*wordBits)
			for i := range values {
				values[i] = rnd.Uint64() & lowMask(width)
				for k := range wordBits / 8 {
					want[i*wordBits/8+k] = byte(values[i] >> (8 * k))
				}
			}
			got := make([]byte, len(want))
			unpack(got, packSlowly(values, wordBits, width), wordBits, width)
			if !bytes.Equal(got, want) {
				t.Fatalf("%d-bit words packed to %d bits differ", wordBits, width)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	lz4Of := generalOf(encpb.CompressionScheme_COMPRESSION_LZ4, flatOf(16))
	packed := packSlowly(append([]uint64{1, 0, 1, 1}, make([]uint64, 1020)...), 16, 1)
	for _, c := range []struct {
		name string
		enc  *encpb.CompressiveEncoding
		src  []byte
		n    int
		want []uint16 // the first levels; nil = corrupt
	}{
		{"no encoding gives raw levels", nil, []byte{1, 0, 2, 1}, 2, []uint16{1, 258}},
		{"raw levels that are too few", nil, []byte{1, 0, 2}, 2, nil},
		{"one packed block behind its width", inlineOf(16), append([]byte{1, 0}, packed...), 4, []uint16{1, 0, 1, 1}},
		{"a width of more bits than a level has", inlineOf(16), append([]byte{17, 0}, packed...), 4, nil},
		{"a packed tail out of line", outOfLineOf(16, 1), packed, 4, []uint16{1, 0, 1, 1}},
		{"a plain tail out of line", outOfLineOf(16, 1), []byte{1, 0, 0, 0, 1, 0}, 3, []uint16{1, 0, 1}},
		{"zero bits out of line need no bytes", outOfLineOf(16, 0), nil, 2000, []uint16{0, 0, 0}},
		{"a block that is cut off", outOfLineOf(16, 1), packed[:100], 1024, nil},
		{"runs", runsOf(16), []byte{4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 2, 1}, 3, []uint16{3, 3, 1}},
		{"runs that end early", runsOf(16), []byte{2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 2}, 3, nil},
		{"runs with a size beyond the buffer", runsOf(16), []byte{9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 2}, 2, nil},
		{"compressed levels", lz4Of, []byte{4, 0, 0, 0, 0x40, 1, 0, 2, 0}, 2, []uint16{1, 2}},
		{"compressed levels with a wrong size", lz4Of, []byte{5, 0, 0, 0, 0x40, 1, 0, 2, 0}, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := CompileLevels(c.enc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Append(nil, c.src, c.n, &Codecs{})
			if c.want == nil {
				if !errors.Is(err, errs.ErrCorrupt) {
					t.Fatalf("got %v, %v, want a corruption", got, err)
				}
				return
			}
			if err != nil || len(got) != c.n || !slices.Equal(got[:len(c.want)], c.want) {
				t.Fatalf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

// TestNestingOfTheDocumentedExamples follows the tables of docs/format/page.md section 2.
func TestNestingOfTheDocumentedExamples(t *testing.T) {
	item, both := encpb.RepDefLayer_REPDEF_NULLABLE_ITEM, encpb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST
	valid, list := encpb.RepDefLayer_REPDEF_ALL_VALID_ITEM, encpb.RepDefLayer_REPDEF_ALL_VALID_LIST
	for _, c := range []struct {
		name     string
		codes    []encpb.RepDefLayer
		rep, def []uint16
		visible  int
		want     []string // of each layer, inner-most first
	}{
		{"a nullable column", []encpb.RepDefLayer{item}, nil, []uint16{0, 1, 0}, 3, []string{"3: v.v"}},
		{"a field of a nullable struct", []encpb.RepDefLayer{item, item}, nil, []uint16{0, 1, 2}, 3, []string{"3: v..", "3: vv."}},
		{
			"[a null] null [] [b]", []encpb.RepDefLayer{item, both}, []uint16{1, 0, 1, 1, 1}, []uint16{0, 1, 2, 3, 0}, 3,
			[]string{"3: v.v", "4: v.vv [0 2 2 2 3]"},
		},
		{
			"[[a] null []] null [[b c]]", []encpb.RepDefLayer{valid, both, both}, []uint16{2, 1, 1, 2, 2, 0}, []uint16{0, 1, 2, 3, 0, 0}, 3,
			[]string{"3: vvv", "4: v.vv [0 1 1 1 3]", "3: v.v [0 3 3 4]"},
		},
		{"lists without nulls", []encpb.RepDefLayer{valid, list}, []uint16{1, 0, 1}, nil, 3, []string{"3: vvv", "2: vv [0 2 3]"}},
		{
			"a null struct above a list", []encpb.RepDefLayer{item, both, item}, []uint16{1, 1, 0}, []uint16{4, 0, 1}, 2,
			[]string{"2: v.", "2: .v [0 0 2]", "2: .v"},
		},
		{
			"a list of structs", []encpb.RepDefLayer{item, item, both}, []uint16{1, 0, 0, 1}, []uint16{0, 1, 2, 4}, 3,
			[]string{"3: v..", "3: vv.", "2: vv [0 3 3]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			specs := make([]LayerSpec, len(c.codes))
			for i, code := range c.codes {
				specs[i].List = code != item && code != valid
			}
			p, err := CompileLayers(c.codes, specs)
			if err != nil {
				t.Fatal(err)
			}
			nest := NewNesting(alloc, specs)
			defer nest.Release()
			n := max(len(c.rep), len(c.def))
			visible, err := nest.Append(p, c.rep, c.def, n)
			if err != nil || visible != c.visible {
				t.Fatalf("%d visible, %v, want %d", visible, err, c.visible)
			}
			for i := range nest.Layers {
				if got := describeLayer(&nest.Layers[i]); got != c.want[i] {
					t.Errorf("layer %d: %s, want %s", i, got, c.want[i])
				}
			}
		})
	}
}

func describeLayer(l *Layer) string {
	s := fmt.Sprintf("%d: ", l.N)
	for i := range l.N {
		if l.IsValid(i) {
			s += "v"
		} else {
			s += "."
		}
	}
	if l.Spec.List {
		s += fmt.Sprint(" ", cast[int32](l.offsets.bytes()))
	}
	return s
}

// TestNestingInPiecesEqualsOnePiece appends row by row, which moves every bit position.
func TestNestingInPiecesEqualsOnePiece(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	codes, specs := layersOf(5)
	p, err := CompileLayers(codes, specs)
	if err != nil {
		t.Fatal(err)
	}
	var rep, def []uint16
	var starts []int
	for range 500 {
		starts = append(starts, len(rep))
		rep = append(rep, p.MaxRep)
		def = append(def, uint16(rnd.IntN(int(p.MaxDef)+1)))
		for range rnd.IntN(4) {
			if def[len(def)-1] > p.MaxVisible { // nothing continues what is not there
				break
			}
			rep, def = append(rep, uint16(rnd.IntN(int(p.MaxRep)))), append(def, uint16(rnd.IntN(int(p.MaxVisible)+1)))
		}
	}
	whole, pieces := NewNesting(memory.DefaultAllocator, specs), NewNesting(memory.DefaultAllocator, specs)
	want, err := whole.Append(p, rep, def, len(rep))
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for i, from := range starts {
		to := len(rep)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		n, err := pieces.Append(p, rep[from:to], def[from:to], to-from)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if got != want {
		t.Errorf("%d visible in pieces, %d in one", got, want)
	}
	for i := range whole.Layers {
		if a, b := describeLayer(&whole.Layers[i]), describeLayer(&pieces.Layers[i]); a != b {
			t.Errorf("layer %d differs", i)
		}
	}
}

func TestLayersThatDoNotFitTheColumnAreCorrupt(t *testing.T) {
	item, list := encpb.RepDefLayer_REPDEF_NULLABLE_ITEM, encpb.RepDefLayer_REPDEF_NULLABLE_LIST
	for _, c := range []struct {
		name  string
		codes []encpb.RepDefLayer
		specs []LayerSpec
	}{
		{"too few layers", []encpb.RepDefLayer{item}, []LayerSpec{{}, {}}},
		{"a list where the column has an item", []encpb.RepDefLayer{item, list}, []LayerSpec{{}, {}}},
		{"an item where the column has a list", []encpb.RepDefLayer{item, item}, []LayerSpec{{}, {List: true}}},
		{"an unknown code", []encpb.RepDefLayer{0}, []LayerSpec{{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := CompileLayers(c.codes, c.specs); !errors.Is(err, errs.ErrCorrupt) {
				t.Errorf("got %v, want a corruption", err)
			}
		})
	}
}

func TestFSSTDecodesSymbolsAndEscapes(t *testing.T) {
	table, err := parseFSST(someTable(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		codes      []byte
	}{
		{"nothing", "", nil},
		{"symbols of all lengths", "parceladamaged of", []byte{0, 1, 2, 3}},
		{"an escape at every place of a word", "xaaaaxaaaaxaaaax", []byte{255, 'x', 1, 1, 1, 1, 255, 'x', 1, 1, 1, 1, 255, 'x', 1, 1, 1, 1, 255, 'x'}},
		{"an escaped escape", "\xffof", []byte{255, 255, 3}},
		{"an escape that is cut off", "a", []byte{1, 255}},
		{"a code without a symbol", "aa", []byte{1, 77, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := make([]byte, table.expandedMax(len(c.codes)))
			if got := string(dst[:table.decode(dst, c.codes)]); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSymbolTablesThatMakeNoSenseAreCorrupt(t *testing.T) {
	long := someTable(true)
	long[fsstHeaderBytes+8*4] = 9
	short := someTable(true)[:20]
	noMagic := someTable(true)
	binary.LittleEndian.PutUint32(noMagic[4:], 7)
	for name, table := range map[string][]byte{"a symbol of nine bytes": long, "cut off": short, "no magic": noMagic, "empty": nil} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseFSST(table); !errors.Is(err, errs.ErrCorrupt) {
				t.Errorf("got %v, want a corruption", err)
			}
		})
	}
}

func TestCompressedBuffersThatMakeNoSenseAreCorrupt(t *testing.T) {
	lz4, zstd := encpb.CompressionScheme_COMPRESSION_LZ4, encpb.CompressionScheme_COMPRESSION_ZSTD
	for _, c := range []struct {
		name   string
		scheme encpb.CompressionScheme
		src    []byte
	}{
		{"an lz4 buffer without a header", lz4, []byte{1, 2}},
		{"an lz4 buffer that claims a gigabyte", lz4, []byte{0, 0, 0, 0x40, 0x10, 'a'}},
		{"an lz4 block that ends early", lz4, []byte{9, 0, 0, 0, 0x90, 'a'}},
		{"a zstd buffer without a header", zstd, []byte{1, 2, 3, 4, 5}},
		{"a zstd buffer that claims an exabyte", zstd, []byte{0, 0, 0, 0, 0, 0, 0, 0x10, 0x28, 0xb5, 0x2f, 0xfd}},
		{"a zstd frame of another size", zstd, []byte{4, 0, 0, 0, 0, 0, 0, 0, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, 'a', 'b', 'c'}},
		{"bytes that are no frame", zstd, []byte{4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := (&Codecs{}).expand(nil, c.scheme, c.src); !errors.Is(err, errs.ErrCorrupt) {
				t.Errorf("got %v, %v, want a corruption", got, err)
			}
		})
	}
}

func TestGatherKeepsOutOfRangeIndicesOfNulls(t *testing.T) {
	dict := NewValues(memory.DefaultAllocator, &Codecs{}, &Shape{Kind: Variable}, 2)
	for _, s := range []string{"red", "a colour with a long name"} {
		if err := dict.AppendBytes([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	dict.SealDictionary()
	indices := NewValues(memory.DefaultAllocator, &Codecs{}, &Shape{Kind: Fixed, ItemBits: 8}, 4)
	indices.appendPlain([]byte{1, 0, 9, 1}, 0, 4)
	out := NewValues(memory.DefaultAllocator, &Codecs{}, &Shape{Kind: Variable}, 4)
	if err := out.Gather(dict, indices, func(i int) bool { return i == 2 }); err != nil {
		t.Fatal(err)
	}
	if got := string(out.data.bytes()); got != "a colour with a long nameredreda colour with a long name" {
		t.Errorf("got %q", got)
	}
	if err := out.Gather(dict, indices, func(int) bool { return false }); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("got %v, want a corruption", err)
	}
}

func TestSingleValuesEqualTheBlock(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 1))
	for _, wordBits := range []int{8, 16, 32, 64} {
		for width := 0; width <= wordBits; width++ {
			values := make([]uint64, blockValues)
			for i := range values {
				values[i] = rnd.Uint64() & lowMask(width)
			}
			src := packSlowly(values, wordBits, width)
			for i, want := range values {
				if got := unpackOne(src, wordBits, width, i); got != want {
					t.Fatalf("%d-bit words packed to %d bits, value %d: %#x, want %#x", wordBits, width, i, got, want)
				}
			}
		}
	}
}

func TestRangesOfLevelsEqualTheBlock(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for _, n := range []int{1, 5, 600, 1024, 1030, 2000} {
		levels := make([]uint16, n)
		for i := range levels {
			levels[i] = uint16(rnd.IntN(4))
		}
		for name, enc := range map[string]*encpb.CompressiveEncoding{"packed": outOfLineOf(16, 2), "flat": flatOf(16)} {
			src := bytesOf(levels)
			if name == "packed" {
				src = appendLevels(nil, levels, 2)
			}
			l, err := CompileLevels(enc)
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				from := rnd.IntN(n)
				to := from + rnd.IntN(min(n-from, 40)+1)
				got, err := l.AppendRange(nil, src, n, from, to, &Codecs{})
				if err != nil || !slices.Equal(got, levels[from:to]) {
					t.Fatalf("%s levels [%d, %d) of %d: %v, %v", name, from, to, n, got, err)
				}
			}
		}
	}
}
