package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/lakesql/lakesql/internal/errs"
)

// This file reads Arrow IPC files with one column of 32-bit integers: deletion files. A general Arrow reader sizes allocations by
// lengths that it finds in the file, which a hostile file can choose at will; here each is held against the bytes that are there.

var errFlat = errors.New("a flatbuffer points outside its bytes")

// flat reads a flatbuffer with every position checked. The first error sticks.
type flat struct {
	b   []byte
	err error
}

func (f *flat) at(pos int64, n int64) []byte {
	if f.err == nil && (pos < 0 || n < 0 || pos > int64(len(f.b)) || n > int64(len(f.b))-pos) {
		f.err = errFlat
	}
	if f.err != nil {
		return make([]byte, 8) // zeros, so that callers need not look at err at each step
	}
	return f.b[pos : pos+n]
}

func (f *flat) u16(pos int64) int64 { return int64(binary.LittleEndian.Uint16(f.at(pos, 2))) }
func (f *flat) i32(pos int64) int64 { return int64(int32(binary.LittleEndian.Uint32(f.at(pos, 4)))) }
func (f *flat) u32(pos int64) int64 { return int64(binary.LittleEndian.Uint32(f.at(pos, 4))) }
func (f *flat) i64(pos int64) int64 { return int64(binary.LittleEndian.Uint64(f.at(pos, 8))) }
func (f *flat) u8(pos int64) int64  { return int64(f.at(pos, 1)[0]) }

// root returns the position of the root table.
func (f *flat) root() int64 { return f.u32(0) }

// field returns the position of a table's field, 0 if it is absent.
func (f *flat) field(table int64, slot int64) int64 {
	vtable := table - f.i32(table)
	if 4+slot*2+2 > f.u16(vtable) {
		return 0
	}
	if offset := f.u16(vtable + 4 + slot*2); offset != 0 {
		return table + offset
	}
	return 0
}

// follow returns the position that an offset field points to, 0 if it is absent.
func (f *flat) follow(table int64, slot int64) int64 {
	pos := f.field(table, slot)
	if pos == 0 {
		return 0
	}
	return pos + f.u32(pos)
}

// vector returns the first element's position and the count of a vector of items of itemBytes; the whole vector lies within the bytes.
func (f *flat) vector(table int64, slot int64, itemBytes int64) (first, count int64) {
	pos := f.follow(table, slot)
	if pos == 0 {
		return 0, 0
	}
	count = f.u32(pos)
	f.at(pos+4, count*itemBytes)
	if f.err != nil {
		return 0, 0
	}
	return pos + 4, count
}

// Slots and numbers of the Arrow format's flatbuffers (arrow/format/File.fbs, Message.fbs, Schema.fbs).
const (
	arrowMagic = "ARROW1"

	footerSchemaSlot, footerBatchesSlot                  = 1, 3
	schemaEndianSlot, schemaFieldsSlot                   = 0, 1
	fieldTypeKindSlot, fieldTypeSlot, intWidthSlot       = 2, 3, 0
	messageKindSlot, messageHeaderSlot                   = 1, 2
	batchRowsSlot, batchNodesSlot                        = 0, 1
	batchBuffersSlot, batchCompressionSlot               = 2, 3
	blockBytes, nodeBytes, bufferBytes                   = 24, 16, 16
	kindInt, kindRecordBatch                             = 2, 3
	codecLZ4, codecZSTD                            int64 = 0, 1
	continuation                                         = 0xffffffff
)

// readUint32File returns the values of an Arrow file of one 32-bit integer column without nulls, at most rowsMax of them.
func readUint32File(b []byte, rowsMax uint64) ([]uint32, error) {
	const tailBytes = 4 + len(arrowMagic)
	if len(b) < len(arrowMagic)+2+tailBytes || string(b[:len(arrowMagic)]) != arrowMagic || string(b[len(b)-len(arrowMagic):]) != arrowMagic {
		return nil, errs.New(errs.ErrCorrupt, "not a whole Arrow file")
	}
	end := len(b) - tailBytes
	size := int64(int32(binary.LittleEndian.Uint32(b[end:])))
	if size < 8 || size > int64(end) {
		return nil, errs.New(errs.ErrCorrupt, "an Arrow footer of %d bytes in a file of %d", size, len(b))
	}
	footer := &flat{b: b[int64(end)-size : end]}
	root := footer.root()
	if err := checkUint32Schema(footer, footer.follow(root, footerSchemaSlot)); err != nil {
		return nil, err
	}
	first, count := footer.vector(root, footerBatchesSlot, blockBytes)
	if footer.err != nil {
		return nil, footer.err
	}
	var out []uint32
	for i := range count {
		at := first + i*blockBytes
		batch := arrowBatch{file: b, rowsMax: rowsMax - uint64(len(out))}
		values, err := batch.read(footer.i64(at), footer.i32(at+8), footer.i64(at+16))
		if err != nil {
			return nil, err
		}
		out = append(out, values...)
	}
	return out, nil
}

// checkUint32Schema wants one field of a 32-bit integer type, little-endian.
func checkUint32Schema(f *flat, schema int64) error {
	if schema == 0 {
		return errs.New(errs.ErrCorrupt, "an Arrow file without a schema")
	}
	fields, count := f.vector(schema, schemaFieldsSlot, 4)
	endian := int64(0)
	if pos := f.field(schema, schemaEndianSlot); pos != 0 {
		endian = f.u16(pos)
	}
	if f.err != nil || count != 1 || endian != 0 {
		return errors.Join(errs.New(errs.ErrCorrupt, "an Arrow schema of %d columns, endianness %d", count, endian), f.err)
	}
	field := fields + f.u32(fields)
	kind, width := int64(0), int64(0)
	if pos := f.field(field, fieldTypeKindSlot); pos != 0 {
		kind = f.u8(pos)
	}
	if t := f.follow(field, fieldTypeSlot); kind == kindInt && t != 0 {
		if pos := f.field(t, intWidthSlot); pos != 0 {
			width = f.i32(pos)
		}
	}
	if f.err != nil || width != 32 {
		return errors.Join(errs.New(errs.ErrCorrupt, "the Arrow column is not of 32-bit integers"), f.err)
	}
	return nil
}

// arrowBatch is one record batch of a file.
type arrowBatch struct {
	file    []byte
	rowsMax uint64
}

// read returns the values of the batch whose block says where it lies.
func (a *arrowBatch) read(offset, metadataSize, bodySize int64) ([]uint32, error) {
	file := &flat{b: a.file}
	head := file.at(offset, metadataSize)
	body := file.at(offset+max(0, metadataSize), bodySize)
	if file.err != nil || metadataSize < 16 {
		return nil, errs.New(errs.ErrCorrupt, "an Arrow batch of %d+%d bytes at %d of a file of %d", metadataSize, bodySize, offset, len(a.file))
	}
	prefix := 4
	if binary.LittleEndian.Uint32(head) == continuation {
		prefix = 8
	}
	m := &flat{b: head[prefix:]}
	root := m.root()
	kind := int64(0)
	if pos := m.field(root, messageKindSlot); pos != 0 {
		kind = m.u8(pos)
	}
	batch := m.follow(root, messageHeaderSlot)
	if m.err != nil || kind != kindRecordBatch || batch == 0 {
		return nil, errors.Join(errs.New(errs.ErrCorrupt, "an Arrow message of kind %d", kind), m.err)
	}
	nodes, nodeCount := m.vector(batch, batchNodesSlot, nodeBytes)
	buffers, bufferCount := m.vector(batch, batchBuffersSlot, bufferBytes)
	if m.err != nil || nodeCount != 1 || bufferCount != 2 {
		return nil, errors.Join(errs.New(errs.ErrCorrupt, "an Arrow batch of %d nodes and %d buffers", nodeCount, bufferCount), m.err)
	}
	rows, nulls := m.i64(nodes), m.i64(nodes+8)
	if rows < 0 || uint64(rows) > a.rowsMax || nulls != 0 {
		return nil, errs.New(errs.ErrCorrupt, "an Arrow batch of %d rows with %d nulls", rows, nulls)
	}
	data := (&flat{b: body}).slice(m.i64(buffers+bufferBytes), m.i64(buffers+bufferBytes+8))
	if data == nil {
		return nil, errs.New(errs.ErrCorrupt, "an Arrow buffer outside its batch")
	}
	codec, isCompressed := int64(0), false
	if c := m.follow(batch, batchCompressionSlot); c != 0 {
		isCompressed = true
		if pos := m.field(c, 0); pos != 0 {
			codec = m.u8(pos)
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	return uint32Values(data, rows, codec, isCompressed)
}

// slice is at with nil for what lies outside.
func (f *flat) slice(pos, n int64) []byte {
	b := f.at(pos, n)
	if f.err != nil {
		return nil
	}
	return b
}

// paddingBytes is how much longer than its values a buffer may be.
const paddingBytes = 64

// uint32Values reads rows values of a buffer, which starts with its length where it is compressed; -1 stands for stored bytes.
func uint32Values(data []byte, rows, codec int64, isCompressed bool) ([]uint32, error) {
	if isCompressed && rows > 0 {
		if len(data) < 8 {
			return nil, errs.New(errs.ErrCorrupt, "a compressed Arrow buffer of %d bytes", len(data))
		}
		size := int64(binary.LittleEndian.Uint64(data))
		data = data[8:]
		if size != -1 {
			if size < rows*4 || size > rows*4+paddingBytes {
				return nil, errs.New(errs.ErrCorrupt, "an Arrow buffer of %d bytes for %d rows", size, rows)
			}
			var err error
			if data, err = inflate(data, size, codec); err != nil {
				return nil, err
			}
		}
	}
	if int64(len(data))/4 < rows {
		return nil, errs.New(errs.ErrCorrupt, "an Arrow buffer of %d bytes for %d rows", len(data), rows)
	}
	out := make([]uint32, rows)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[i*4:])
	}
	return out, nil
}

// zstdWindowBytes is the largest window that writers use.
const zstdWindowBytes = 64 << 20

// inflate decompresses to exactly size bytes.
func inflate(data []byte, size, codec int64) ([]byte, error) {
	var r io.Reader
	switch codec {
	case codecLZ4:
		r = lz4.NewReader(bytes.NewReader(data))
	case codecZSTD:
		z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(max(size, zstdWindowBytes))))
		if err != nil {
			return nil, errs.New(errs.ErrCorrupt, "an Arrow buffer: %w", err)
		}
		defer z.Close()
		r = z
	default:
		return nil, errs.New(errs.ErrCorrupt, "an Arrow buffer of codec %d", codec)
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, errs.New(errs.ErrCorrupt, "an Arrow buffer: %w", err)
	}
	return out, nil
}
