package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const blockSection = "block of values"

// AppendBlock decodes n values that were encoded in one piece (the dictionary of a page) behind those in dst.
func AppendBlock(dst *Values, enc *encpb.CompressiveEncoding, src []byte, n int) error {
	if n == 0 {
		return nil
	}
	return appendBlock(dst, enc, src, n, 0)
}

func appendBlock(dst *Values, enc *encpb.CompressiveEncoding, src []byte, n, depth int) error {
	if depth > maxCodecDepth {
		return corrupt(blockSection, "encodings nested more than %d deep", maxCodecDepth)
	}
	switch e := enc.GetCompression().(type) {
	case *encpb.CompressiveEncoding_General:
		raw, err := dst.codecs.expand(nil, e.General.GetCompression().GetScheme(), src)
		if err != nil {
			return err
		}
		return appendBlock(dst, e.General.GetValues(), raw, n, depth+1)
	case *encpb.CompressiveEncoding_Flat:
		return appendFlatBlock(dst, e.Flat.GetBitsPerValue(), src, n)
	case *encpb.CompressiveEncoding_Variable:
		return appendVariableBlock(dst, src, n, nil)
	case *encpb.CompressiveEncoding_Fsst:
		table, err := parseFSST(e.Fsst.GetSymbolTable())
		if err != nil {
			return err
		}
		if e.Fsst.GetValues().GetVariable() == nil {
			return unsupported("fsst over values that are not variable")
		}
		return appendVariableBlock(dst, src, n, table)
	case *encpb.CompressiveEncoding_InlineBitpacking:
		return appendPackedBlock(dst, e.InlineBitpacking.GetUncompressedBitsPerValue(), src, n)
	case *encpb.CompressiveEncoding_OutOfLineBitpacking:
		return appendOutOfLineBlock(dst, e.OutOfLineBitpacking, src, n)
	case *encpb.CompressiveEncoding_Rle:
		return appendRunsBlock(dst, e.Rle, src, n)
	case *encpb.CompressiveEncoding_Constant:
		return appendConstantBlock(dst, e.Constant.GetValue(), n)
	case *encpb.CompressiveEncoding_FixedSizeList:
		validity, bits, err := listLevels(e.FixedSizeList, dst.Shape)
		if err != nil {
			return err
		}
		if slices.Contains(validity, true) {
			return unsupported("a block of lists with null items")
		}
		return appendFlatBlock(dst, bits*uint64(dst.Shape.Items()), src, n)
	default:
		return unsupported("a block of values encoded as %T", e)
	}
}

func appendFlatBlock(dst *Values, bits uint64, src []byte, n int) error {
	if err := fixedOf(dst.Shape, bits); err != nil {
		return err
	}
	if bits == 0 || uint64(n) > uint64(len(src))*8/bits {
		return corrupt(blockSection, "%d bytes for %d values of %d bits", len(src), n, bits)
	}
	dst.appendPlain(src, 0, n)
	return nil
}

// appendVariableBlock reads: the offset width, where the bytes start, n+1 offsets from 0, the bytes.
func appendVariableBlock(dst *Values, src []byte, n int, table *fsstTable) error {
	if dst.Shape.Kind != Variable {
		return corrupt(blockSection, "variable values in a column of %s", dst.Shape.describe())
	}
	w := 4
	if len(src) >= 4 && binary.LittleEndian.Uint32(src) == 64 {
		w = 8
	}
	if len(src) < 2*w || littleEndian(src[:w]) != uint64(8*w) {
		return corrupt(blockSection, "no offset width in front of variable values")
	}
	first := littleEndian(src[w : 2*w])
	if n > len(src)/w || first < uint64(2*w+(n+1)*w) || first > uint64(len(src)) {
		return corrupt(blockSection, "%d values whose bytes start at %d of %d", n, first, len(src))
	}
	ends, data := src[2*w:], src[first:]
	from := littleEndian(ends[:w])
	for i := range n {
		to := littleEndian(ends[(i+1)*w:][:w])
		if from > to || to > uint64(len(data)) {
			return corrupt(blockSection, "value bytes [%d, %d) of %d", from, to, len(data))
		}
		if table == nil {
			if err := dst.AppendBytes(data[from:to]); err != nil {
				return err
			}
		} else if err := (&Zip{fsst: table}).Append(dst, data[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func appendPackedBlock(dst *Values, wordBits uint64, src []byte, n int) error {
	if err := fixedOf(dst.Shape, wordBits); err != nil {
		return err
	}
	if !isWord(wordBits) || n > blockValues {
		return corrupt(blockSection, "%d packed values of %d bits", n, wordBits)
	}
	block, width, err := inlineWidth(src, int(wordBits))
	if err != nil {
		return err
	}
	plain := make([]byte, 128*wordBits)
	unpack(plain, block, int(wordBits), width)
	dst.appendPlain(plain, 0, n)
	return nil
}

func appendOutOfLineBlock(dst *Values, e *encpb.OutOfLineBitpacking, src []byte, n int) error {
	wordBits, flat := e.GetUncompressedBitsPerValue(), e.GetValues().GetFlat()
	if err := fixedOf(dst.Shape, wordBits); err != nil {
		return err
	}
	if !isWord(wordBits) || flat == nil || flat.GetBitsPerValue() > wordBits || n > MaxPageLevels {
		return corrupt(blockSection, "%d values of %d bits packed to %d", n, wordBits, flat.GetBitsPerValue())
	}
	plain := make([]byte, (n+blockValues-1)/blockValues*128*int(wordBits))
	if err := unpackMany(plain, src, int(wordBits), int(flat.GetBitsPerValue()), n); err != nil {
		return err
	}
	dst.appendPlain(plain, 0, n)
	return nil
}

func appendRunsBlock(dst *Values, e *encpb.Rle, src []byte, n int) error {
	runs, err := compileRuns(e, dst.Shape)
	if err != nil {
		return err
	}
	values, lengths, err := splitRuns(src, runs.width)
	if err != nil {
		return err
	}
	c := &Chunk{n: n, bufs: [][]byte{values, lengths}, codecs: dst.codecs}
	if err := runs.open(c); err != nil {
		return err
	}
	return runs.append(c, dst, 0, n)
}

func appendConstantBlock(dst *Values, value []byte, n int) error {
	if n > MaxPageLevels {
		return corrupt(blockSection, "%d constant values", n)
	}
	return AppendConstant(dst, value, n)
}

// AppendConstant appends n copies of one value in its plain form.
func AppendConstant(dst *Values, value []byte, n int) error {
	switch dst.Shape.Kind {
	case Variable:
		for range n {
			if err := dst.AppendBytes(value); err != nil {
				return err
			}
		}
		return nil
	case Fixed:
		if want := (dst.Shape.Bits() + 7) / 8; len(value) != want {
			return corrupt(blockSection, "a constant of %d bytes in a column of %s", len(value), dst.Shape.describe())
		}
		if dst.Shape.ItemBits == 1 {
			for range n {
				dst.appendPlain(value, 0, 1)
			}
			return nil
		}
		fillRun(dst.fixed.tail(n*len(value)), value)
		dst.fixed.advance(n * len(value))
		for d := range dst.items {
			dst.items[d].appendOnes(n * dst.itemsAt(d))
		}
		dst.N += n
		return nil
	default:
		return unsupported("a constant in a column of %s", dst.Shape.describe())
	}
}
