package encoding

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	dictionaryItemsMax  = 4096     // most distinct values of a page that are worth one
	dictionaryBytesMax  = 32 << 10 // and their bytes: a read of one row reads the whole dictionary
	dictionaryShare     = 4        // and each must stand for so many slots on average
	dictionarySample    = 4096     // values that are looked at before all of them are
	dictionaryZipMin    = 512      // dictionaries below are not compressed
	dictionaryAskedMax  = 100_000  // most distinct values where metadata asks for dictionaries
	indexBytes          = 4        // dictionary indices are u32
	dictionaryWideBytes = 16       // the widest values of fixed width that the format puts into dictionaries
)

// dictionaryMaker numbers distinct values in the order in which they come. Values of fixed width have no ends.
type dictionaryMaker struct {
	width    int // bytes of fixed-width values; 0 = variable
	items    int
	itemsMax int // 0 = any number
	bytesMax int // 0 = any size
	data     []byte
	ends     []uint32 // variable width
	seed     maphash.Seed
	mix      [2]uint64
	table    []uint32 // number+1 under the hash
	hashes   []uint32 // of each item
}

func newDictionaryMaker(width, itemsMax, bytesMax int) *dictionaryMaker {
	d := &dictionaryMaker{width: width, itemsMax: itemsMax, bytesMax: bytesMax, seed: maphash.MakeSeed(), table: make([]uint32, 256)}
	for i := range d.mix {
		d.mix[i] = maphash.Bytes(d.seed, []byte{byte(i)}) | 1
	}
	return d
}

func (d *dictionaryMaker) item(i int) []byte {
	if d.width > 0 {
		return d.data[i*d.width : (i+1)*d.width]
	}
	from := uint32(0)
	if i > 0 {
		from = d.ends[i-1]
	}
	return d.data[from:d.ends[i]]
}

// number returns the number of the value, false where it would be one too many.
func (d *dictionaryMaker) number(value []byte) (uint32, bool) {
	hash := d.hash(value)
	mask := uint32(len(d.table) - 1)
	at := hash & mask
	for ; d.table[at] != 0; at = (at + 1) & mask {
		i := d.table[at] - 1
		if d.hashes[i] == hash && bytes.Equal(d.item(int(i)), value) {
			return i, true
		}
	}
	if (d.itemsMax > 0 && d.items == d.itemsMax) || (d.bytesMax > 0 && len(d.data)+len(value) > d.bytesMax) {
		return 0, false
	}
	d.items++
	d.table[at] = uint32(d.items)
	d.hashes = append(d.hashes, hash)
	d.data = append(d.data, value...)
	if d.width == 0 {
		d.ends = append(d.ends, uint32(len(d.data)))
	}
	if 2*d.items > len(d.table) {
		d.grow()
	}
	return uint32(d.items - 1), true
}

// hash mixes short values by hand: most are, and a call for each would be most of the work.
func (d *dictionaryMaker) hash(value []byte) uint32 {
	n := len(value)
	var a, b uint64
	switch {
	case n > 16:
		return uint32(maphash.Bytes(d.seed, value))
	case n >= 8:
		a, b = binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[n-8:])
	case n >= 4:
		a, b = uint64(binary.LittleEndian.Uint32(value)), uint64(binary.LittleEndian.Uint32(value[n-4:]))
	case n > 0:
		a, b = uint64(value[0])|uint64(value[n/2])<<8|uint64(value[n-1])<<16, 0
	}
	hi, lo := bits.Mul64(a^d.mix[0], b^d.mix[1]^uint64(n))
	return uint32(hi ^ lo ^ (hi^lo)>>32)
}

func (d *dictionaryMaker) grow() {
	d.table = make([]uint32, 4*len(d.table))
	mask := uint32(len(d.table) - 1)
	for i, hash := range d.hashes {
		at := hash & mask
		for d.table[at] != 0 {
			at = (at + 1) & mask
		}
		d.table[at] = uint32(i + 1)
	}
}

// page is the block form of the items.
func (d *dictionaryMaker) page(offset64 bool) *pageDictionary {
	if d.width > 0 {
		return &pageDictionary{message: flatEncoding(8 * d.width), items: d.items, buffer: d.data}
	}
	return &pageDictionary{message: variableEncoding(offset64), items: d.items, buffer: variableBlock(d.data, d.ends, offset64)}
}

// slotValue is the value of a slot of fixed or variable width.
func (b *leafBuilder) slotValue(i int) []byte {
	if b.kind == leafVariable {
		from := uint32(0)
		if i > 0 {
			from = b.ends[i-1]
		}
		return b.data[from:b.ends[i]]
	}
	return b.data[i*b.valueBytes : (i+1)*b.valueBytes]
}

// dictionaryOf numbers the page's distinct values, or gives up where there are too many. Null slots get the number before them.
func (b *leafBuilder) dictionaryOf() (*dictionaryMaker, []uint32) {
	width, share := 0, dictionaryShare
	if b.kind == leafFixed {
		width = b.valueBytes
	}
	itemsMax, bytesMax := dictionaryItemsMax, dictionaryBytesMax
	switch {
	case b.isDictionary:
		itemsMax, bytesMax, share = int(min(b.indexMax, math.MaxUint32-1))+1, 0, 1
	case b.options.dictDivisor > 0:
		itemsMax, bytesMax, share = dictionaryAskedMax, 0, b.options.dictDivisor
	}
	if !b.isDictionary {
		itemsMax = min(itemsMax, b.slots/share)
		if itemsMax == 0 || !b.looksRepeated(width, itemsMax, bytesMax) {
			return nil, nil
		}
	}
	d := newDictionaryMaker(width, itemsMax, bytesMax)
	indices := takeWords(b.slots)[:b.slots]
	last := uint32(0)
	for i := range indices {
		if b.slotNull != nil && b.slotNull[i] != 0 {
			indices[i] = last
			continue
		}
		at, ok := d.number(b.slotValue(i))
		if !ok {
			giveWords(indices)
			return nil, nil
		}
		indices[i], last = at, at
	}
	return d, indices
}

// looksRepeated numbers a sample at even distances first: most columns without repetitions are told by it.
func (b *leafBuilder) looksRepeated(width, itemsMax, bytesMax int) bool {
	step := max(1, b.slots/dictionarySample)
	d := newDictionaryMaker(width, itemsMax, bytesMax)
	seen := 0
	for i := 0; i < b.slots; i += step {
		if _, ok := d.number(b.slotValue(i)); !ok {
			return false
		}
		seen++
	}
	return step == 1 || 4*d.items < 3*seen
}

// variableDictionary returns strings as indices into the page's distinct ones, or nil where that does not pay.
func (b *leafBuilder) variableDictionary(opts EncodeOptions) chunkValues {
	other := len(b.data)
	if b.text && other >= fsstMinBytes { // about what FSST leaves
		other /= 2
	}
	return b.dictionaryChunks(opts, other+4*b.slots)
}

// fixedDictionary does the same for values of 8 (version 2.2) and 16 bytes; other is what they take otherwise.
func (b *leafBuilder) fixedDictionary(opts EncodeOptions, other int) chunkValues {
	if b.valueBytes != dictionaryWideBytes && (b.valueBytes != 8 || !opts.V22) {
		return nil
	}
	return b.dictionaryChunks(opts, other)
}

func (b *leafBuilder) dictionaryChunks(opts EncodeOptions, other int) chunkValues {
	d, indices := b.dictionaryOf()
	if d == nil {
		return nil
	}
	width := indexBytes
	if b.isDictionary {
		width = b.indexBytes
	}
	values, size := numberValues(indexData(indices, width), width, leafOptions{})
	page := d.page(b.offset64)
	b.zipDictionary(page, opts)
	if size += len(page.buffer); !b.isDictionary && size > other-other/5 {
		giveWords(indices)
		return nil
	}
	return dictionaryValues{chunkValues: values, page: page, indices: indices}
}

// indexData is the indices in that many bytes each.
func indexData(indices []uint32, width int) []byte {
	if width == indexBytes {
		return arrow.Uint32Traits.CastToBytes(indices)
	}
	out := make([]byte, 0, width*len(indices))
	var word [8]byte
	for _, at := range indices {
		binary.LittleEndian.PutUint64(word[:], uint64(at))
		out = append(out, word[:width]...)
	}
	return out
}

// zipDictionary compresses a dictionary where the version allows it and a quarter of it goes.
func (b *leafBuilder) zipDictionary(page *pageDictionary, opts EncodeOptions) {
	if !opts.V22 || len(page.buffer) < dictionaryZipMin {
		return
	}
	c := b.zip
	if c == nil {
		c = &compressor{scheme: encpb.CompressionScheme_COMPRESSION_LZ4}
	}
	if zipped := c.append(nil, page.buffer); len(zipped) < len(page.buffer)*3/4 {
		page.buffer, page.message = zipped, generalEncoding(c.scheme, c.level, page.message)
	}
}

// dictionaryValues are indices into the dictionary of their page, packed or as runs.
type dictionaryValues struct {
	chunkValues
	page    *pageDictionary
	indices []uint32 // what chunkValues packs, unless it is of another width
}

func (v dictionaryValues) dictionary() *pageDictionary { return v.page }

// variableBlock is the block form of strings: the offset width in bits, the position of the bytes, n+1 offsets from 0, the bytes.
func variableBlock(data []byte, ends []uint32, offset64 bool) []byte {
	if offset64 {
		out := binary.LittleEndian.AppendUint64(nil, 64)
		out = binary.LittleEndian.AppendUint64(out, uint64(8*(len(ends)+3)))
		out = binary.LittleEndian.AppendUint64(out, 0)
		for _, end := range ends {
			out = binary.LittleEndian.AppendUint64(out, uint64(end))
		}
		return append(out, data...)
	}
	out := binary.LittleEndian.AppendUint32(nil, 32)
	out = binary.LittleEndian.AppendUint32(out, uint32(4*(len(ends)+3)))
	out = binary.LittleEndian.AppendUint32(out, 0)
	for _, end := range ends {
		out = binary.LittleEndian.AppendUint32(out, end)
	}
	return append(out, data...)
}
