package encoding

import (
	"bytes"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/storage/pb/encpb"
)

const (
	chunkValuesMax = 12      // log2 of the most values in a chunk
	chunkTarget    = 8 << 10 // bytes of values that a chunk aims to hold
	saveShare      = 10      // a form that costs readers work must save at least 1/saveShare of the bytes
	runChunkLog    = 11      // log2 of the values in a chunk of runs
	runMax         = 255     // values that one run length says
	splitBytes     = 4 << 10 // bytes of values in a chunk of split bytes
)

// fixedValues chooses how the page's fixed-width values are stored: whatever takes least among plain, bitpacked and runs, and a dictionary of them
// where that takes clearly less still (docs/format/writing.md section 3).
func (b *leafBuilder) fixedValues(opts EncodeOptions) chunkValues {
	plain := flatValues{data: b.data, valueBytes: b.valueBytes}
	if b.options.plain {
		return plain
	}
	best, size := chunkValues(plain), len(b.data)
	if b.valueBytes <= 8 && bits.OnesCount(uint(b.valueBytes)) == 1 {
		best, size = numberValues(b.data, b.valueBytes, b.options)
	}
	if d := b.fixedDictionary(opts, size); d != nil {
		return d
	}
	return best
}

// numberValues chooses among plain, bitpacked, runs and, if a compression follows, split bytes; size is what the choice takes.
func numberValues(data []byte, valueBytes int, o leafOptions) (best chunkValues, size int) {
	plain := flatValues{data: data, valueBytes: valueBytes}
	limit := len(data) - len(data)/saveShare
	packed := packedSize(data, valueBytes)
	runs, count := runsSize(data, valueBytes)
	if o.rleThreshold > 0 && float64(count*valueBytes) >= o.rleThreshold*float64(len(data)) {
		runs = len(data)
	}
	if o.splits(valueBytes, packed, runs, len(data)) {
		return splitValues{data: data, valueBytes: valueBytes}, len(data)
	}
	switch {
	case runs < packed && runs <= limit:
		return runValues{data: data, valueBytes: valueBytes}, runs
	case packed <= limit:
		return packedValues{data: data, valueBytes: valueBytes}, packed
	}
	return plain, len(data)
}

// splits says whether the bytes of values are to be split. That shrinks nothing by itself: it helps the compression that follows.
func (o leafOptions) splits(valueBytes, packed, runs, plain int) bool {
	if o.scheme == 0 || o.split == splitOff || (valueBytes != 4 && valueBytes != 8) {
		return false
	}
	return o.split == splitOn || (packed > plain/2 && runs > plain/2)
}

// packedSize is what bitpacking makes of the values.
func packedSize(data []byte, valueBytes int) int {
	block, size := packBlock*valueBytes, 0
	for at := 0; at < len(data); at += block {
		size += valueBytes + widthOf(data[at:min(at+block, len(data))], valueBytes)*packBlock/8
	}
	return size
}

// runsSize is what runs make of the values, and how many runs there are.
func runsSize(data []byte, valueBytes int) (size, count int) {
	switch valueBytes {
	case 1:
		count = countRuns(data)
	case 2:
		count = countRuns(arrow.Uint16Traits.CastFromBytes(data))
	case 4:
		count = countRuns(arrow.Uint32Traits.CastFromBytes(data))
	default:
		count = countRuns(arrow.Uint64Traits.CastFromBytes(data))
	}
	return count * (valueBytes + 1), count
}

// countRuns counts the runs of the values, cut at chunks and at the longest length. It gives up once runs cannot pay.
func countRuns[T packWord](values []T) int {
	count := 0
	for chunk := 0; chunk < len(values); chunk += 1 << runChunkLog {
		part := values[chunk:min(chunk+1<<runChunkLog, len(values))]
		length := 0
		for i, v := range part {
			if length > 0 && v == part[i-1] && length < runMax {
				length++
				continue
			}
			count++
			length = 1
		}
		if count > 1<<16 && count > (chunk+len(part))*9/10 {
			return len(values)
		}
	}
	return count
}

// runValues are values and the length of each one's run.
type runValues struct {
	data       []byte
	valueBytes int
}

func (v runValues) message() *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_Rle{Rle: &encpb.Rle{
		Values: flatEncoding(8 * v.valueBytes), RunLengths: flatEncoding(8),
	}}}
}
func (v runValues) buffers() int                { return 2 }
func (v runValues) chunkLog(int) int            { return runChunkLog }
func (v runValues) dictionary() *pageDictionary { return nil }
func (v runValues) appendBuffer(dst []byte, i, first, n int) []byte {
	w := v.valueBytes
	part := v.data[first*w : (first+n)*w]
	for at := 0; at < len(part); {
		end := at + w
		for end < len(part) && end-at < runMax*w && bytes.Equal(part[end:end+w], part[at:at+w]) {
			end += w
		}
		if i == 0 {
			dst = append(dst, part[at:at+w]...)
		} else {
			dst = append(dst, byte((end-at)/w))
		}
		at = end
	}
	return dst
}

// splitValues are the first bytes of all values of a chunk, then their second bytes, and so on.
type splitValues struct {
	data       []byte
	valueBytes int
}

func (v splitValues) message() *encpb.CompressiveEncoding {
	return &encpb.CompressiveEncoding{Compression: &encpb.CompressiveEncoding_ByteStreamSplit{
		ByteStreamSplit: &encpb.ByteStreamSplit{Values: flatEncoding(8 * v.valueBytes)},
	}}
}
func (v splitValues) buffers() int                { return 1 }
func (v splitValues) chunkLog(int) int            { return logFor(v.valueBytes, splitBytes) }
func (v splitValues) dictionary() *pageDictionary { return nil }
func (v splitValues) appendBuffer(dst []byte, _, first, n int) []byte {
	part := v.data[first*v.valueBytes : (first+n)*v.valueBytes]
	for k := range v.valueBytes {
		for at := k; at < len(part); at += v.valueBytes {
			dst = append(dst, part[at])
		}
	}
	return dst
}

// logFor is log2 of how many values of a size fit the target, at least two.
func logFor(valueBytes, targetBytes int) int {
	return max(1, min(chunkValuesMax, bits.Len(uint(targetBytes/valueBytes))-1))
}

// fillNulls notes which slots are null and gives those of fixed width the value before them, so that nulls neither break runs nor widen blocks.
func (b *leafBuilder) fillNulls(lv pageLevels) {
	if b.nulls == 0 || b.nulls == b.slots {
		return
	}
	b.slotNull = make([]byte, b.slots)
	w := b.valueBytes
	if b.kind != leafFixed {
		w = 0 // there is nothing to fill
	}
	last := -1
	slot := 0
	for entry := range lv.entries {
		if !lv.isVisible(entry) {
			continue
		}
		if lv.def == nil || lv.def[entry] == 0 {
			if last < 0 { // the nulls before the first value get that one
				for i := range slot {
					copy(b.data[i*w:(i+1)*w], b.data[slot*w:(slot+1)*w])
				}
			}
			last = slot
		} else {
			b.slotNull[slot] = 1
			if last >= 0 {
				copy(b.data[slot*w:(slot+1)*w], b.data[last*w:(last+1)*w])
			}
		}
		slot++
	}
}
