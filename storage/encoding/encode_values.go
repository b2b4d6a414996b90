package encoding

import (
	"encoding/binary"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

// chunkValues compresses the values of one page chunk by chunk.
type chunkValues interface {
	message() *encpb.CompressiveEncoding
	buffers() int
	// chunkLog is log2 of the number of values in the chunk that starts at value first.
	chunkLog(first int) int
	// appendBuffer appends buffer i of the chunk with values [first, first+n).
	appendBuffer(dst []byte, i, first, n int) []byte
	// dictionary is the page's dictionary, or nil.
	dictionary() *pageDictionary
}

type pageDictionary struct {
	message *encpb.CompressiveEncoding
	items   int
	buffer  []byte
}

// chunkValues returns nil for an Arrow dictionary with more values than its indices can say.
func (b *leafBuilder) chunkValues(opts EncodeOptions) chunkValues {
	if b.isDictionary {
		return b.dictionaryChunks(opts, 0)
	}
	v := b.bareValues(opts)
	if b.zip == nil || b.fields != nil || v.dictionary() != nil {
		return v
	}
	g := &generalValues{chunkValues: v, c: b.zip}
	if !g.saves(b.slots) {
		return v
	}
	return g
}

func (b *leafBuilder) bareValues(opts EncodeOptions) chunkValues {
	if b.fields != nil {
		return packedStructValues{flatValues: flatValues{data: b.data, valueBytes: b.valueBytes}, fields: b.fields}
	}
	switch b.kind {
	case leafBool:
		return boolValues{data: b.data}
	case leafVector:
		return vectorValues{b: b, valid: b.validLevels()}
	case leafVariable:
		return b.variableChunks(opts)
	}
	return b.fixedValues(opts)
}

// variableChunks chooses among a dictionary, encoded bytes and plain ones.
func (b *leafBuilder) variableChunks(opts EncodeOptions) chunkValues {
	if !b.options.plain {
		if d := b.variableDictionary(opts); d != nil {
			return d
		}
		if f := b.fsst(); f != nil {
			return f
		}
	}
	return &variableValues{data: b.data, ends: b.ends, offset64: b.offset64, targetBytes: chunkTarget}
}

// flatValues are plain values.
type flatValues struct {
	data       []byte
	valueBytes int
}

func (v flatValues) message() *encpb.CompressiveEncoding { return flatEncoding(8 * v.valueBytes) }
func (v flatValues) buffers() int                        { return 1 }
func (v flatValues) chunkLog(int) int                    { return logFor(v.valueBytes, chunkTarget) }
func (v flatValues) dictionary() *pageDictionary         { return nil }
func (v flatValues) appendBuffer(dst []byte, _, first, n int) []byte {
	return append(dst, v.data[first*v.valueBytes:(first+n)*v.valueBytes]...)
}

// packedValues are unsigned integers in as many bits as the largest of each chunk needs.
type packedValues struct {
	data       []byte
	valueBytes int
}

func (v packedValues) message() *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_InlineBitpacking{
		InlineBitpacking: &encpb.InlineBitpacking{UncompressedBitsPerValue: uint64(8 * v.valueBytes)},
	}}
}
func (v packedValues) buffers() int                { return 1 }
func (v packedValues) chunkLog(int) int            { return 10 }
func (v packedValues) dictionary() *pageDictionary { return nil }
func (v packedValues) appendBuffer(dst []byte, _, first, n int) []byte {
	return appendInlinePacked(dst, v.data[first*v.valueBytes:(first+n)*v.valueBytes], v.valueBytes)
}

// boolValues are bits, least significant first.
type boolValues struct{ data []byte }

func (v boolValues) message() *encpb.CompressiveEncoding { return flatEncoding(1) }
func (v boolValues) buffers() int                        { return 1 }
func (v boolValues) chunkLog(int) int                    { return chunkValuesMax }
func (v boolValues) dictionary() *pageDictionary         { return nil }
func (v boolValues) appendBuffer(dst []byte, _, first, n int) []byte {
	return appendBits(dst, v.data[first:first+n])
}

// appendBits packs one byte per value (0 or 1) into bits.
func appendBits(dst, values []byte) []byte {
	for len(values) > 0 {
		var v byte
		for i, b := range values[:min(8, len(values))] {
			v |= b << i
		}
		dst = append(dst, v)
		values = values[min(8, len(values)):]
	}
	return dst
}

// variableValues are n+1 offsets, counted from the start of the buffer, and the bytes.
type variableValues struct {
	data        []byte
	ends        []uint32
	offset64    bool
	targetBytes int
}

func variableEncoding(offset64 bool) *encpb.CompressiveEncoding {
	width := 32
	if offset64 {
		width = 64
	}
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Variable{Variable: &encpb.Variable{Offsets: flatEncoding(width)}}}
}

func (v *variableValues) message() *encpb.CompressiveEncoding { return variableEncoding(v.offset64) }
func (v *variableValues) buffers() int                        { return 1 }
func (v *variableValues) dictionary() *pageDictionary         { return nil }

func (v *variableValues) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return v.ends[i-1]
}

func (v *variableValues) offsetBytes() int {
	if v.offset64 {
		return 8
	}
	return 4
}

func (v *variableValues) chunkLog(first int) int {
	for log := 10; log > 1; log-- {
		n := min(1<<log, len(v.ends)-first)
		if n > 1<<(log-1) && int(v.start(first+n)-v.start(first))+(n+1)*v.offsetBytes() <= v.targetBytes {
			return log
		}
	}
	return 1
}

func (v *variableValues) appendBuffer(dst []byte, _, first, n int) []byte {
	base := v.start(first)
	head := (n + 1) * v.offsetBytes()
	at := len(dst)
	for i := first; i <= first+n; i++ {
		off := uint64(v.start(i)-base) + uint64(head)
		if v.offset64 {
			dst = binary.LittleEndian.AppendUint64(dst, off)
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(off))
		}
	}
	dst = append(dst, v.data[base:v.start(first+n)]...)
	for (len(dst)-at)%v.offsetBytes() != 0 {
		dst = append(dst, bufferPad)
	}
	return dst
}
