package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	levelWordBits = 16
	levelSection  = "levels"
)

// Levels decodes a block of repetition or definition levels.
type Levels struct {
	kind    levelKind
	width   int // packed out of line: bits of a packed value
	value   uint16
	general encpb.CompressionScheme // 0 = none
}

type levelKind uint8

const (
	levelsFlat levelKind = iota
	levelsInline
	levelsOutOfLine
	levelsRuns
	levelsConstant
)

// CompileLevels checks the encoding of a level buffer. A nil encoding gives raw u16 levels.
func CompileLevels(enc *encpb.CompressiveEncoding) (*Levels, error) {
	l := &Levels{}
	if enc == nil {
		return l, nil
	}
	if g := enc.GetGeneral(); g != nil {
		l.general = g.GetCompression().GetScheme()
		enc = g.GetValues()
	}
	switch c := enc.GetCompression().(type) {
	case *encpb.CompressiveEncoding_Flat:
		if c.Flat.GetBitsPerValue() != levelWordBits {
			return nil, corrupt(levelSection, "flat levels of %d bits", c.Flat.GetBitsPerValue())
		}
	case *encpb.CompressiveEncoding_InlineBitpacking:
		if b := c.InlineBitpacking.GetUncompressedBitsPerValue(); b != levelWordBits {
			return nil, corrupt(levelSection, "bitpacked levels of %d bits", b)
		}
		l.kind = levelsInline
	case *encpb.CompressiveEncoding_OutOfLineBitpacking:
		b, f := c.OutOfLineBitpacking.GetUncompressedBitsPerValue(), c.OutOfLineBitpacking.GetValues().GetFlat()
		if b != levelWordBits || f == nil || f.GetBitsPerValue() > levelWordBits {
			return nil, corrupt(levelSection, "levels of %d bits packed to %d", b, f.GetBitsPerValue())
		}
		l.kind, l.width = levelsOutOfLine, int(f.GetBitsPerValue())
	case *encpb.CompressiveEncoding_Rle:
		v, n := c.Rle.GetValues().GetFlat(), c.Rle.GetRunLengths().GetFlat()
		if v.GetBitsPerValue() != levelWordBits || n.GetBitsPerValue() != 8 {
			return nil, unsupported("runs of levels that are not flat")
		}
		l.kind = levelsRuns
	case *encpb.CompressiveEncoding_Constant:
		v := c.Constant.GetValue()
		if len(v) > 2 {
			return nil, corrupt(levelSection, "a constant level of %d bytes", len(v))
		}
		for i, b := range v {
			l.value |= uint16(b) << (8 * i)
		}
		l.kind = levelsConstant
	default:
		return nil, unsupported("levels encoded as %T", c)
	}
	return l, nil
}

// Append decodes n levels of src behind those in dst.
func (l *Levels) Append(dst []uint16, src []byte, n int, c *Codecs) ([]uint16, error) {
	if n > MaxPageLevels {
		return dst, corrupt(levelSection, "%d levels in one block", n)
	}
	if n == 0 {
		return dst, nil
	}
	if l.general != 0 {
		raw, err := c.expand(nil, l.general, src)
		if err != nil {
			return dst, err
		}
		src = raw
	}
	base := len(dst)
	switch l.kind {
	case levelsFlat:
		if len(src) < 2*n {
			return dst, corrupt(levelSection, "%d bytes for %d levels", len(src), n)
		}
		dst = slices.Grow(dst, n)[:base+n]
		copy(bytesOf(dst[base:]), src[:2*n])
	case levelsInline:
		if n > blockValues {
			return dst, corrupt(levelSection, "%d levels in a block of 1024", n)
		}
		block, width, err := inlineWidth(src, levelWordBits)
		if err != nil {
			return dst, err
		}
		dst = slices.Grow(dst, blockValues)
		unpack(bytesOf(dst[base:base+blockValues]), block, levelWordBits, width)
		dst = dst[:base+n]
	case levelsOutOfLine:
		padded := (n + blockValues - 1) / blockValues * blockValues
		dst = slices.Grow(dst, padded)
		if err := unpackMany(bytesOf(dst[base:base+padded]), src, levelWordBits, l.width, n); err != nil {
			return dst[:base], err
		}
		dst = dst[:base+n]
	case levelsRuns:
		return appendLevelRuns(dst, src, n)
	case levelsConstant:
		dst = slices.Grow(dst, n)[:base+n]
		for i := range dst[base:] {
			dst[base+i] = l.value
		}
	}
	return dst, nil
}

// AppendRange decodes the levels [from, to) of a block of n behind those in dst.
func (l *Levels) AppendRange(dst []uint16, src []byte, n, from, to int, c *Codecs) ([]uint16, error) {
	if l.kind == levelsOutOfLine && l.general == 0 && to-from <= fewValues {
		return l.appendFew(dst, src, n, from, to)
	}
	base := len(dst)
	dst, err := l.Append(dst, src, n, c)
	if err != nil {
		return dst, err
	}
	if from > 0 {
		copy(dst[base:], dst[base+from:base+to])
	}
	return dst[:base+to-from], nil
}

// appendFew takes single levels out of packed blocks.
func (l *Levels) appendFew(dst []uint16, src []byte, n, from, to int) ([]uint16, error) {
	full, tail, plain, err := packedTail(src, levelWordBits, l.width, n)
	if err != nil {
		return dst, err
	}
	for i := from; i < to; i++ {
		block := i / blockValues
		if block == full && plain {
			dst = append(dst, binary.LittleEndian.Uint16(src[len(src)-2*tail+2*(i%blockValues):]))
			continue
		}
		dst = append(dst, uint16(unpackOne(src[block*128*l.width:], levelWordBits, l.width, i%blockValues)))
	}
	return dst, nil
}

// appendLevelRuns expands: u64 size of the values, values, one length byte a run.
func appendLevelRuns(dst []uint16, src []byte, n int) ([]uint16, error) {
	values, lengths, err := splitRuns(src, 2)
	if err != nil {
		return dst, err
	}
	if n > 255*len(lengths) {
		return dst, corrupt(levelSection, "%d runs for %d levels", len(lengths), n)
	}
	base := len(dst)
	dst = slices.Grow(dst, n)[:base+n]
	out := dst[base:]
	for i, k := range lengths {
		v := binary.LittleEndian.Uint16(values[2*i:])
		run := out[:min(int(k), len(out))]
		for j := range run {
			run[j] = v
		}
		out = out[len(run):]
	}
	if len(out) > 0 {
		return dst[:base], corrupt(levelSection, "runs end %d levels early", len(out))
	}
	return dst, nil
}

// splitRuns takes a block of runs apart; every run has a value of valueBytes bytes and a length.
func splitRuns(src []byte, valueBytes int) (values, lengths []byte, err error) {
	if len(src) < 8 {
		return nil, nil, corrupt("runs", "%d bytes hold no header", len(src))
	}
	size := binary.LittleEndian.Uint64(src)
	if src = src[8:]; size > uint64(len(src)) {
		return nil, nil, corrupt("runs", "%d bytes of values in %d", size, len(src))
	}
	values, lengths = src[:size], src[size:]
	if len(values) != len(lengths)*valueBytes {
		return nil, nil, corrupt("runs", "%d bytes of values for %d lengths", len(values), len(lengths))
	}
	return values, lengths, nil
}
