package file

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/filepb"
)

const (
	bufferAlign = 64   // page and global buffers start on a multiple
	bufferFill  = 0x48 // and this fills the gaps
)

// marshal is deterministic, so that the same rows give the same file.
var marshal = proto.MarshalOptions{Deterministic: true}

// container writes the parts of a file in order and remembers where they lie.
type container struct {
	w       object.Writer
	globals [][2]uint64 // extra global buffers: position, size
}

// writeAligned writes b on the next multiple of bufferAlign and returns its position.
func (c *container) writeAligned(b []byte) (uint64, error) {
	if gap := c.w.OffsetBytes() % bufferAlign; gap != 0 {
		var fill [bufferAlign]byte
		for i := range fill {
			fill[i] = bufferFill
		}
		if err := c.write(fill[gap:]); err != nil {
			return 0, err
		}
	}
	at := uint64(c.w.OffsetBytes())
	return at, c.write(b)
}

func (c *container) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := c.w.Write(b)
	if err == nil && n != len(b) {
		return errs.New(errs.ErrIO, "%d of %d bytes were written", n, len(b))
	}
	return err
}

func (c *container) writePage(p *encoding.Page) (*filepb.ColumnMetadata_Page, error) {
	meta := &filepb.ColumnMetadata_Page{Length: p.Rows, Priority: p.FirstRow}
	for _, b := range p.Buffers {
		at, err := c.writeAligned(b)
		if err != nil {
			return nil, err
		}
		meta.BufferOffsets = append(meta.BufferOffsets, at)
		meta.BufferSizes = append(meta.BufferSizes, uint64(len(b)))
	}
	layout, err := marshal.Marshal(p.Layout)
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "page layout: %w", err)
	}
	if meta.Encoding, err = directEncoding("/lance.encodings21.PageLayout", layout); err != nil {
		return nil, err
	}
	return meta, nil
}

func (c *container) writeGlobal(b []byte) (int, error) {
	at, err := c.writeAligned(b)
	if err != nil {
		return 0, err
	}
	c.globals = append(c.globals, [2]uint64{at, uint64(len(b))})
	return len(c.globals), nil
}

// writeTail writes everything behind the buffers (docs/format/writing.md section 2).
func (c *container) writeTail(descriptor *filepb.FileDescriptor, columns []*filepb.ColumnMetadata, v Version) error {
	part := func(m proto.Message) ([2]uint64, error) {
		b, err := marshal.Marshal(m)
		if err != nil {
			return [2]uint64{}, errs.New(errs.ErrInternal, "file metadata: %w", err)
		}
		return [2]uint64{uint64(c.w.OffsetBytes()), uint64(len(b))}, c.write(b)
	}
	if _, err := c.writeAligned(nil); err != nil {
		return err
	}
	first, err := part(descriptor)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	globals := append([][2]uint64{first}, c.globals...)
	columnsAt := uint64(c.w.OffsetBytes())
	places := make([][2]uint64, len(columns))
	for i, m := range columns {
		if places[i], err = part(m); err != nil {
			return fmt.Errorf("metadata of column %d: %w", i, err)
		}
	}
	columnTableAt := uint64(c.w.OffsetBytes())
	globalTableAt := columnTableAt + 16*uint64(len(places))
	le := binary.LittleEndian
	var tail []byte
	for _, p := range append(places, globals...) {
		tail = le.AppendUint64(le.AppendUint64(tail, p[0]), p[1])
	}
	for _, at := range []uint64{columnsAt, columnTableAt, globalTableAt} {
		tail = le.AppendUint64(tail, at)
	}
	tail = le.AppendUint32(tail, uint32(len(globals)))
	tail = le.AppendUint32(tail, uint32(len(places)))
	tail = le.AppendUint16(tail, v.Major)
	tail = le.AppendUint16(tail, v.Minor)
	return c.write(append(tail, "LANC"...))
}

func directEncoding(url string, value []byte) (*filepb.Encoding, error) {
	b, err := marshal.Marshal(&anypb.Any{TypeUrl: url, Value: value})
	if err != nil {
		return nil, errs.New(errs.ErrInternal, "encoding: %w", err)
	}
	return &filepb.Encoding{Location: &filepb.Encoding_Direct{Direct: &filepb.DirectEncoding{Encoding: b}}}, nil
}

// columnEncoding says that a column consists of its values and nothing else.
func columnEncoding() *filepb.Encoding {
	e, err := directEncoding("/lance.encodings.ColumnEncoding", []byte{0x0a, 0x00})
	if err != nil {
		return nil // two constants always marshal
	}
	return e
}
