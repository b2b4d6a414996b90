package encoding

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// The benchmarks report the bytes that a decoder writes: MB/s of Arrow buffers. Buffers are reused, as an allocator that keeps
// memory does.

func BenchmarkUnpack(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ wordBits, width int }{{8, 3}, {16, 1}, {16, 9}, {32, 7}, {32, 20}, {64, 20}, {64, 41}} {
		src, dst := make([]byte, 128*c.width), make([]byte, 128*c.wordBits)
		for i := range src {
			src[i] = byte(rnd.Uint32())
		}
		b.Run(fmt.Sprintf("%d of %d bits", c.width, c.wordBits), func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				unpack(dst, src, c.wordBits, c.width)
			}
		})
	}
}

// benchChunk appends all values of a chunk over and over.
func benchChunk(b *testing.B, enc *encpb.CompressiveEncoding, s *Shape, bufs [][]byte, n int) {
	b.Helper()
	m, err := CompileMiniBlock(enc, s, len(bufs))
	if err != nil {
		b.Fatal(err)
	}
	codecs := &Codecs{}
	c := NewChunk(codecs)
	v := NewValues(memory.DefaultAllocator, codecs, s, n)
	defer v.Release()
	size := 0
	for b.Loop() {
		if err := m.Open(c, bufs, n); err != nil {
			b.Fatal(err)
		}
		if err := m.Append(c, v, 0, n); err != nil {
			b.Fatal(err)
		}
		size = v.SizeBytes()
		v.N, v.fixed.n, v.data.n, v.bits.words.n, v.bits.n = 0, 0, 0, 0, 0
		if s.Kind == Variable {
			v.offsets.n = v.offsetBytes()
		}
	}
	b.SetBytes(int64(size))
}

// variableBuffer lays out n values of size bytes, made by value.
func variableBuffer(n int, value func(i int) []byte) []byte {
	offsets, data := make([]byte, 4*(n+1)), []byte(nil)
	for i := range n {
		binary.LittleEndian.PutUint32(offsets[4*i:], uint32(4*(n+1)+len(data)))
		data = append(data, value(i)...)
	}
	binary.LittleEndian.PutUint32(offsets[4*n:], uint32(4*(n+1)+len(data)))
	return append(offsets, data...)
}

func BenchmarkMiniBlock(b *testing.B) {
	text := variableBuffer(512, func(i int) []byte { return []byte(fmt.Sprintf("parcel %d to depot", i)) })
	codes := variableBuffer(512, func(i int) []byte { return []byte{0, 1, 2, 3, 255, byte(i), 2, 2, 0, 1} })
	runs, lengths := make([]byte, 8*16), make([]byte, 16)
	for i := range lengths {
		runs[8*i], lengths[i] = byte(i), 64
	}
	int64s, floats := &Shape{Kind: Fixed, ItemBits: 64}, &Shape{Kind: Fixed, ItemBits: 32}
	packed := binary.LittleEndian.AppendUint64(nil, 20)
	b.Run("flat 64", func(b *testing.B) { benchChunk(b, flatOf(64), int64s, [][]byte{make([]byte, 8192)}, 1024) })
	b.Run("flat 1", func(b *testing.B) {
		benchChunk(b, flatOf(1), &Shape{Kind: Fixed, ItemBits: 1}, [][]byte{{0: 3, 511: 1}}, 4096)
	})
	b.Run("bitpacked 20 of 64", func(b *testing.B) {
		benchChunk(b, inlineOf(64), int64s, [][]byte{append(packed, make([]byte, 128*20)...)}, 1024)
	})
	b.Run("runs 64", func(b *testing.B) { benchChunk(b, runsOf(64), int64s, [][]byte{runs, lengths}, 1024) })
	b.Run("split 32", func(b *testing.B) { benchChunk(b, splitOf(32), floats, [][]byte{make([]byte, 4096)}, 1024) })
	b.Run("split 64", func(b *testing.B) { benchChunk(b, splitOf(64), int64s, [][]byte{make([]byte, 4096)}, 512) })
	b.Run("variable", func(b *testing.B) { benchChunk(b, variableOf(32), &Shape{Kind: Variable}, [][]byte{text}, 512) })
	b.Run("fsst", func(b *testing.B) {
		benchChunk(b, fsstOf(someTable(true), variableOf(32)), &Shape{Kind: Variable}, [][]byte{codes}, 512)
	})
}

func BenchmarkNesting(b *testing.B) {
	const n = 1024
	rep, def := make([]uint16, n), make([]uint16, n)
	for i := range n {
		if i%4 == 0 {
			rep[i] = 1
		}
		if i%9 == 0 {
			def[i] = 1
		}
	}
	item, list := encpb.RepDefLayer_REPDEF_NULLABLE_ITEM, encpb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST
	for _, c := range []struct {
		name  string
		codes []encpb.RepDefLayer
		specs []LayerSpec
		rep   []uint16
	}{
		{"nullable column", []encpb.RepDefLayer{item}, []LayerSpec{{}}, nil},
		{"list", []encpb.RepDefLayer{item, list}, []LayerSpec{{}, {List: true}}, rep},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := CompileLayers(c.codes, c.specs)
			if err != nil {
				b.Fatal(err)
			}
			nest := NewNesting(memory.DefaultAllocator, c.specs)
			defer nest.Release()
			b.SetBytes(2 * n)
			for b.Loop() {
				if _, err := nest.Append(p, c.rep, def, n); err != nil {
					b.Fatal(err)
				}
				for i := range nest.Layers {
					l := &nest.Layers[i]
					l.N, l.valid.n, l.valid.words.n, l.valid.zeros = 0, 0, 0, 0
					if l.Spec.List {
						l.offsets.n = 4
					}
				}
			}
		})
	}
}

func BenchmarkGather(b *testing.B) {
	dict := NewValues(memory.DefaultAllocator, &Codecs{}, &Shape{Kind: Variable}, 100)
	for i := range 100 {
		if err := dict.AppendBytes([]byte(fmt.Sprintf("value %d", i))); err != nil {
			b.Fatal(err)
		}
	}
	dict.SealDictionary()
	indices := NewValues(memory.DefaultAllocator, &Codecs{}, &Shape{Kind: Fixed, ItemBits: 32}, 1024)
	for i := range 1024 {
		indices.AppendSequence(i*37%100, 1)
	}
	out := NewValues(memory.DefaultAllocator, &Codecs{}, &Shape{Kind: Variable}, 1024)
	size := 0
	for b.Loop() {
		if err := out.Gather(dict, indices, nil); err != nil {
			b.Fatal(err)
		}
		size = out.SizeBytes()
		out.N, out.offsets.n, out.data.n = 0, 4, 0
	}
	b.SetBytes(int64(size))
}
