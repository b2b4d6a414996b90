package encoding

import (
	"slices"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const miniSection = "mini-block values"

// MiniBlock decodes the value buffers of the chunks of one page.
type MiniBlock struct {
	codec   miniCodec
	general encpb.CompressionScheme // of the first buffer; 0 = none
	buffers int
}

// miniCodec is one value codec in the chunk context. It is immutable (I3).
type miniCodec interface {
	// open checks the buffers of a chunk of c.n values and prepares c.
	open(c *Chunk) error
	// append decodes the values [from, to) of the chunk.
	append(c *Chunk, dst *Values, from, to int) error
}

// Chunk is the open chunk of a page; it is reused from chunk to chunk and belongs to one goroutine.
type Chunk struct {
	n       int
	bufs    [][]byte
	raw     []byte // decompressed first buffer
	plain   []byte // all values expanded, where the codec works on the whole chunk
	isPlain bool
	codecs  *Codecs
}

// NewChunk returns an empty cursor.
func NewChunk(codecs *Codecs) *Chunk { return &Chunk{codecs: codecs} }

// CompileMiniBlock checks the encoding of chunk values against the shape of the leaf. buffers is the count that the page declares.
func CompileMiniBlock(enc *encpb.CompressiveEncoding, s *Shape, buffers int) (*MiniBlock, error) {
	m := &MiniBlock{}
	if g := enc.GetGeneral(); g != nil {
		m.general = g.GetCompression().GetScheme()
		enc = g.GetValues()
	}
	codec, need, err := compileMini(enc, s, 0)
	if err != nil {
		return nil, err
	}
	if need != buffers {
		return nil, corrupt(miniSection, "%d buffers a chunk for an encoding of %d", buffers, need)
	}
	m.codec, m.buffers = codec, need
	return m, nil
}

// compileMini returns the codec and how many buffers of a chunk it takes.
func compileMini(enc *encpb.CompressiveEncoding, s *Shape, depth int) (miniCodec, int, error) {
	if depth > maxCodecDepth {
		return nil, 0, corrupt(miniSection, "encodings nested more than %d deep", maxCodecDepth)
	}
	switch e := enc.GetCompression().(type) {
	case *encpb.CompressiveEncoding_Flat:
		if err := fixedOf(s, e.Flat.GetBitsPerValue()); err != nil {
			return nil, 0, err
		}
		return flatMini{}, 1, nil
	case *encpb.CompressiveEncoding_InlineBitpacking:
		t := e.InlineBitpacking.GetUncompressedBitsPerValue()
		if err := fixedOf(s, t); err != nil {
			return nil, 0, err
		}
		if !isWord(t) {
			return nil, 0, corrupt(miniSection, "bitpacked values of %d bits", t)
		}
		return packedMini{wordBits: int(t)}, 1, nil
	case *encpb.CompressiveEncoding_Variable:
		m, err := compileVariable(e.Variable, s)
		return m, 1, err
	case *encpb.CompressiveEncoding_Fsst:
		m, err := compileFSST(e.Fsst, s)
		return m, 1, err
	case *encpb.CompressiveEncoding_Rle:
		m, err := compileRuns(e.Rle, s)
		return m, 2, err
	case *encpb.CompressiveEncoding_ByteStreamSplit:
		b := e.ByteStreamSplit.GetValues().GetFlat().GetBitsPerValue()
		if err := fixedOf(s, b); err != nil {
			return nil, 0, err
		}
		if b%8 != 0 {
			return nil, 0, corrupt(miniSection, "split values of %d bits", b)
		}
		return splitMini{width: int(b / 8)}, 1, nil
	case *encpb.CompressiveEncoding_FixedSizeList:
		return compileFSL(e.FixedSizeList, s)
	case *encpb.CompressiveEncoding_PackedStruct:
		m, err := compilePacked(e.PackedStruct, s)
		return m, 1, err
	default:
		return nil, 0, unsupported("mini-block values encoded as %T", e)
	}
}

// fixedOf checks that fixed values of the given bits are what a leaf of shape s holds.
func fixedOf(s *Shape, valueBits uint64) error {
	if s.Kind != Fixed || uint64(s.Bits()) != valueBits {
		return corrupt("values", "%d-bit values in a column of %s", valueBits, s.describe())
	}
	return nil
}

// Buffers returns how many value buffers a chunk has.
func (m *MiniBlock) Buffers() int { return m.buffers }

// Open makes c the cursor over a chunk of n values; bufs stay in use until the next Open.
func (m *MiniBlock) Open(c *Chunk, bufs [][]byte, n int) error {
	if len(bufs) != m.buffers || n < 0 || n > maxChunkValues {
		return corrupt(miniSection, "chunk of %d values in %d buffers", n, len(bufs))
	}
	c.n, c.isPlain = n, false
	c.bufs = append(c.bufs[:0], bufs...)
	if m.general != 0 {
		raw, err := c.codecs.expand(c.raw, m.general, bufs[0])
		if err != nil {
			return err
		}
		c.raw, c.bufs[0] = raw, raw
	}
	return m.codec.open(c)
}

// Append decodes the values [from, to) of the open chunk, 0 <= from <= to <= n.
func (m *MiniBlock) Append(c *Chunk, dst *Values, from, to int) error {
	if from == to {
		return nil
	}
	return m.codec.append(c, dst, from, to)
}

// flatMini: values as they are.
type flatMini struct{}

func (flatMini) open(*Chunk) error { return nil }

func (flatMini) append(c *Chunk, dst *Values, from, to int) error {
	if need := (dst.Shape.Bits()*c.n + 7) / 8; len(c.bufs[0]) < need {
		return corrupt(miniSection, "%d bytes for %d values of %d bits", len(c.bufs[0]), c.n, dst.Shape.Bits())
	}
	dst.appendPlain(c.bufs[0], from, to)
	return nil
}

// packedMini: one word with the width, then one packed block.
type packedMini struct{ wordBits int }

func (p packedMini) open(c *Chunk) error {
	if c.n > blockValues {
		return corrupt(miniSection, "%d values in a packed block", c.n)
	}
	return nil
}

func (p packedMini) append(c *Chunk, dst *Values, from, to int) error {
	if c.isPlain {
		dst.appendPlain(c.plain, from, to)
		return nil
	}
	block, width, err := inlineWidth(c.bufs[0], p.wordBits)
	if err != nil {
		return err
	}
	size := 128 * p.wordBits
	if from == 0 && to == c.n && len(dst.items) == 0 { // the usual scan: no detour
		unpack(dst.fixed.tail(size), block, p.wordBits, width)
		dst.fixed.advance(c.n * p.wordBits / 8)
		dst.N += c.n
		return nil
	}
	if to-from <= fewValues && len(dst.items) == 0 {
		w := p.wordBits / 8
		out := dst.fixed.tail((to - from) * w)
		for i := from; i < to; i++ {
			putLittleEndian(out[(i-from)*w:(i-from+1)*w], unpackOne(block, p.wordBits, width, i))
		}
		dst.fixed.advance(len(out))
		dst.N += to - from
		return nil
	}
	c.plain = slices.Grow(c.plain[:0], size)[:size]
	unpack(c.plain, block, p.wordBits, width)
	c.isPlain = true
	dst.appendPlain(c.plain, from, to)
	return nil
}

// splitMini: byte k of every value, for each k.
type splitMini struct{ width int }

func (s splitMini) open(c *Chunk) error {
	n, src := c.n, c.bufs[0]
	if len(src) < n*s.width {
		return corrupt(miniSection, "%d bytes for %d split values of %d bytes", len(src), n, s.width)
	}
	c.plain = slices.Grow(c.plain[:0], n*s.width)[:n*s.width]
	switch s.width {
	case 4:
		joinWords(cast[uint32](c.plain), src)
	case 8:
		joinLongs(cast[uint64](c.plain), src)
	default:
		for k := range s.width {
			for i, b := range src[k*n:][:n] {
				c.plain[i*s.width+k] = b
			}
		}
	}
	return nil
}

func (s splitMini) append(c *Chunk, dst *Values, from, to int) error {
	dst.appendPlain(c.plain, from, to)
	return nil
}

// joinWords puts split bytes of 32-bit values together.
func joinWords(dst []uint32, src []byte) {
	n := len(dst)
	a, b, c, d := src[:n], src[n:][:n], src[2*n:][:n], src[3*n:][:n]
	for i := range dst {
		dst[i] = uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
	}
}

// joinLongs puts split bytes of 64-bit values together.
func joinLongs(dst []uint64, src []byte) {
	n := len(dst)
	a, b, c, d := src[:n], src[n:][:n], src[2*n:][:n], src[3*n:][:n]
	e, f, g, h := src[4*n:][:n], src[5*n:][:n], src[6*n:][:n], src[7*n:][:n]
	for i := range dst {
		low := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
		dst[i] = uint64(low) | uint64(uint32(e[i])|uint32(f[i])<<8|uint32(g[i])<<16|uint32(h[i])<<24)<<32
	}
}

// IsFlat reports whether chunks hold fixed-width values as Arrow wants them, items all valid.
func (m *MiniBlock) IsFlat() bool {
	if m.general != 0 {
		return false
	}
	switch c := m.codec.(type) {
	case flatMini:
		return true
	case fslMini:
		return m.buffers == 1 && len(c.validity) > 0
	}
	return false
}

// FlatBytes returns the values of the open chunk; IsFlat is true and s is the shape of the values.
func (m *MiniBlock) FlatBytes(c *Chunk, s *Shape) ([]byte, error) {
	size := c.n * s.Bits() / 8
	if len(c.bufs[0]) < size {
		return nil, corrupt(miniSection, "%d bytes for %d values of %d bits", len(c.bufs[0]), c.n, s.Bits())
	}
	return c.bufs[0][:size], nil
}

// OffsetBytes is the width of the offsets that the first buffer of a chunk begins with, the first of which tells how many they are: it is where
// the bytes start. 0 = it begins with something else.
func (m *MiniBlock) OffsetBytes() int {
	if m.general != 0 {
		return 0
	}
	switch c := m.codec.(type) {
	case variableMini:
		return c.offsetBytes()
	case *fsstMini:
		return c.values.offsetBytes()
	}
	return 0
}
