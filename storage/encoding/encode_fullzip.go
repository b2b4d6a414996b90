package encoding

import (
	"encoding/binary"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	bufferPad      = 0x48      // the engine's filler between buffers
	zipMinLen      = 32 << 10  // longest value from which values are compressed one by one
	zipSampleBytes = 256 << 10 // what is tried first
	zipSamples     = 16
)

// encodeFullZip lays every entry out as its control word, then its value, so that one row is one read (docs/format/writing.md section 5).
func (b *leafBuilder) encodeFullZip(lv pageLevels) (*Page, error) {
	repBits, defBits := levelBits(lv.maxRep), levelBits(lv.maxDef)
	z := zipWriter{lv: lv, b: b, defBits: defBits}
	switch total := repBits + defBits; {
	case total == 0:
	case total <= 8:
		z.controlBytes = 1
	case total <= 16:
		z.controlBytes = 2
	default:
		z.controlBytes = 4
	}
	m := &encpb.FullZipLayout{
		BitsRep: uint32(repBits), BitsDef: uint32(defBits), Layers: lv.layers,
		NumItems: uint32(lv.entries), NumVisibleItems: uint32(b.slots),
	}
	switch b.kind {
	case leafVariable:
		width := 32
		if b.offset64 {
			width = 64
		}
		m.Details = &encpb.FullZipLayout_BitsPerOffset{BitsPerOffset: uint32(width)}
		var err error
		if m.ValueCompression, err = z.zipVariable(); err != nil {
			return nil, err
		}
	case leafVector:
		valueBytes := b.zippedBytes()
		for _, d := range b.validLevels() {
			valueBytes += (b.itemsAt(d) + 7) / 8
		}
		m.Details = &encpb.FullZipLayout_BitsPerValue{BitsPerValue: uint32(8 * valueBytes)}
		m.ValueCompression = b.vectorEncoding()
		z.zipFixed(valueBytes)
	default:
		m.Details = &encpb.FullZipLayout_BitsPerValue{BitsPerValue: uint32(8 * b.valueBytes)}
		m.ValueCompression = flatEncoding(8 * b.valueBytes)
		z.zipFixed(b.valueBytes)
	}
	buffers := [][]byte{z.out}
	if b.kind == leafVariable || lv.rep != nil {
		buffers = append(buffers, z.rowIndex())
	}
	return &Page{Layout: &encpb.PageLayout{Layout: &encpb.PageLayout_FullZipLayout{FullZipLayout: m}}, Buffers: buffers}, nil
}

type zipWriter struct {
	lv           pageLevels
	b            *leafBuilder
	defBits      int
	controlBytes int
	out          []byte
	rowStarts    []uint64
}

// control appends the control word of an entry and notes where rows start.
func (z *zipWriter) control(entry int) {
	if z.lv.rep == nil || z.lv.rep[entry] == z.lv.maxRep {
		z.rowStarts = append(z.rowStarts, uint64(len(z.out)))
	}
	var word uint32
	if z.lv.def != nil {
		word = uint32(z.lv.def[entry])
	}
	if z.lv.rep != nil {
		word |= uint32(z.lv.rep[entry]) << z.defBits
	}
	switch z.controlBytes {
	case 1:
		z.out = append(z.out, byte(word))
	case 2:
		z.out = binary.LittleEndian.AppendUint16(z.out, uint16(word))
	case 4:
		z.out = binary.LittleEndian.AppendUint32(z.out, word)
	}
}

// zipFixed writes a value for every entry that has a slot, null or not.
func (z *zipWriter) zipFixed(valueBytes int) {
	b := z.b
	valid := b.validLevels()
	if z.controlBytes == 0 && valid == nil && b.itemBits != 1 {
		z.out, b.data = b.data, takeBuffer(len(b.data)) // the page is the array itself
		return
	}
	z.out = takeBuffer(z.lv.entries*z.controlBytes + b.slots*valueBytes)
	slot := 0
	for entry := range z.lv.entries {
		z.control(entry)
		if !z.lv.isVisible(entry) {
			continue
		}
		for _, d := range valid {
			items := b.itemsAt(d)
			z.out = appendBits(z.out, b.itemValid[d][slot*items:(slot+1)*items])
		}
		z.out = b.appendItems(z.out, slot, 1)
		slot++
	}
}

// zipVariable writes a length and bytes for every valid entry; a null has a slot but no bytes.
func (z *zipWriter) zipVariable() (*encpb.CompressiveEncoding, error) {
	b := z.b
	message := variableEncoding(b.offset64)
	if b.isRows() {
		message = b.rowEncoding()
	}
	data, ends := b.data, b.ends
	var coded []byte
	zip, err := b.valueZip()
	if err != nil {
		return nil, err
	}
	if zip != nil {
		message = generalEncoding(zip.scheme, zip.level, message)
	} else if f := b.fsst(); f != nil {
		data, ends, message = f.data, f.ends, f.message()
		coded = data
	}
	z.out = takeBuffer(z.lv.entries*(z.controlBytes+4) + len(data))
	slot, from := 0, uint32(0)
	var scratch []byte
	for entry := range z.lv.entries {
		z.control(entry)
		if !z.lv.isVisible(entry) {
			continue
		}
		to := ends[slot]
		slot++
		if z.lv.def != nil && z.lv.def[entry] > 0 {
			continue
		}
		value := data[from:to]
		if zip != nil && len(value) > 0 { // an empty value has no frame
			scratch = zip.append(scratch[:0], value)
			value = scratch
		}
		if b.offset64 {
			z.out = binary.LittleEndian.AppendUint64(z.out, uint64(len(value)))
		} else {
			z.out = binary.LittleEndian.AppendUint32(z.out, uint32(len(value)))
		}
		z.out = append(z.out, value...)
		from = to
	}
	if coded != nil {
		giveBuffer(coded)
		giveWords(ends)
	}
	z.out = trimmed(z.out)
	return message, nil
}

// valueZip is the compression of each value, or nil: zstd where the metadata asks for a compression (the engine reads no LZ4 here beside nulls), else
// for long values that shrink by it.
func (b *leafBuilder) valueZip() (*compressor, error) {
	if b.isRows() {
		return nil, nil
	}
	if b.zip == nil && (b.options.plain || b.options.fsst || b.maxLen <= zipMinLen || len(b.data) < fsstMinBytes) {
		return nil, nil
	}
	if b.wideZip == nil {
		level := 0
		if b.options.scheme == encpb.CompressionScheme_COMPRESSION_ZSTD {
			level = b.options.level
		}
		var err error
		if b.wideZip, err = newCompressor(encpb.CompressionScheme_COMPRESSION_ZSTD, level); err != nil {
			return nil, err
		}
	}
	if b.zip != nil {
		return b.wideZip, nil
	}
	raw, zipped := 0, 0
	var scratch []byte
	for i := 0; i < b.slots && raw < zipSampleBytes; i += 1 + b.slots/zipSamples {
		value := b.slotValue(i)
		value = value[:min(len(value), zipSampleBytes/zipSamples)]
		scratch = b.wideZip.append(scratch[:0], value)
		raw += len(value)
		zipped += len(scratch)
	}
	if zipped > raw-raw/saveShare {
		return nil, nil
	}
	return b.wideZip, nil
}

// rowIndex is the start of each row, then the total, in the smallest of 1, 2, 4 or 8 bytes each.
func (z *zipWriter) rowIndex() []byte {
	total := uint64(len(z.out))
	starts := append(z.rowStarts, total)
	out := make([]byte, 0, 4*len(starts))
	for _, s := range starts {
		switch {
		case total < 1<<8:
			out = append(out, byte(s))
		case total < 1<<16:
			out = binary.LittleEndian.AppendUint16(out, uint16(s))
		case total < 1<<32:
			out = binary.LittleEndian.AppendUint32(out, uint32(s))
		default:
			out = binary.LittleEndian.AppendUint64(out, s)
		}
	}
	return out
}
