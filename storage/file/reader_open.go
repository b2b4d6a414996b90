package file

import (
	"context"
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/enc20pb"
	"github.com/lakesql/lakesql/storage/pb/filepb"
	"github.com/lakesql/lakesql/storage/schema"
)

const (
	footerBytes   = 40
	footerMagic   = "LANC"
	tableRowBytes = 16
	// tailBytes is read at once from stores where a request costs more than the bytes.
	tailBytes = 32 << 10
	// metadataBytesMax bounds the metadata of one column, and the schema.
	metadataBytesMax = 256 << 20
	// pagesMax bounds the pages of one column, rowsMax the rows of a file.
	pagesMax = 1 << 20
	rowsMax  = math.MaxInt64 / 2
)

// footer is the last 40 bytes of a file; docs/format/file.md section 2.
type footer struct {
	metadataAt, columnTable, bufferTable int64
	buffers, columns                     uint32
	major, minor                         uint16
}

func (r *Reader) open(ctx context.Context) error {
	size := r.file.SizeBytes()
	if size < footerBytes {
		return errs.Corrupt("footer", 0, "file of %d bytes", size)
	}
	head := tail{file: r.file, size: size}
	want := int64(footerBytes)
	if !r.file.IsMapped() {
		want = min(size, tailBytes)
	}
	if err := head.load(ctx, want); err != nil {
		return err
	}
	ft, err := r.readFooter(head.bytes[len(head.bytes)-footerBytes:], size)
	if err != nil {
		return err
	}
	tables, err := head.read(ctx, []object.Range{
		{Offset: ft.bufferTable, Size: int64(ft.buffers) * tableRowBytes},
		{Offset: ft.columnTable, Size: int64(ft.columns) * tableRowBytes},
	})
	if err != nil {
		return err
	}
	if r.buffers, err = parseTable(tables[0], size, "global buffer table", ft.bufferTable); err != nil {
		return err
	}
	columns, err := parseTable(tables[1], size, "column metadata table", ft.columnTable)
	if err != nil {
		return err
	}
	parts, err := head.read(ctx, append([]object.Range{r.buffers[0]}, columns...))
	if err != nil {
		return err
	}
	if err := r.readSchema(parts[0]); err != nil {
		return err
	}
	r.columns = make([]*column, len(columns))
	for i := range columns {
		if r.columns[i], err = parseColumn(parts[i+1], i, columns[i].Offset, size); err != nil {
			return err
		}
	}
	return nil
}

// readFooter checks magic and version and the places of the tables.
func (r *Reader) readFooter(b []byte, size int64) (footer, error) {
	at := size - footerBytes
	var ft footer
	if string(b[36:]) != footerMagic {
		return ft, errs.Corrupt("footer", at+36, "no magic at the end of the file")
	}
	ft.major, ft.minor = binary.LittleEndian.Uint16(b[32:]), binary.LittleEndian.Uint16(b[34:])
	switch (Version{ft.major, ft.minor}) {
	case Version{0, 3}, V20:
		r.version = V20
	case V21:
		r.version = V21
	case V22:
		r.version = V22
	case Version{0, 1}, Version{0, 2}:
		return ft, errs.New(errs.ErrUnsupported, "legacy file version 0.1 is not supported")
	default:
		return ft, errs.New(errs.ErrUnsupported, "file version %d.%d is not supported", ft.major, ft.minor)
	}
	ft.buffers, ft.columns = binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:])
	if ft.buffers == 0 {
		return ft, errs.Corrupt("footer", at+24, "no global buffer, so no schema")
	}
	places := [3]*int64{&ft.metadataAt, &ft.columnTable, &ft.bufferTable}
	for i, p := range places {
		v := binary.LittleEndian.Uint64(b[8*i:])
		if v > uint64(at) {
			return ft, errs.Corrupt("footer", at+int64(8*i), "position %d in a file of %d bytes", v, size)
		}
		*p = int64(v)
	}
	if int64(ft.buffers)*tableRowBytes > at-ft.bufferTable {
		return ft, errs.Corrupt("footer", at+24, "a table of %d global buffers at %d of %d", ft.buffers, ft.bufferTable, size)
	}
	if int64(ft.columns)*tableRowBytes > at-ft.columnTable {
		return ft, errs.Corrupt("footer", at+28, "a table of %d columns at %d of %d", ft.columns, ft.columnTable, size)
	}
	return ft, nil
}

// parseTable reads rows of u64 position, u64 size.
func parseTable(b []byte, fileSize int64, section string, at int64) ([]object.Range, error) {
	out := make([]object.Range, len(b)/tableRowBytes)
	for i := range out {
		row := b[i*tableRowBytes:]
		rg, err := checkRange(binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(row[8:]), fileSize)
		if err != nil {
			return nil, errs.Corrupt(section, at+int64(i*tableRowBytes), "entry %d: %w", i, err)
		}
		if rg.Size > metadataBytesMax && section != "global buffer table" {
			return nil, errs.Corrupt(section, at+int64(i*tableRowBytes), "entry %d of %d bytes", i, rg.Size)
		}
		out[i] = rg
	}
	return out, nil
}

// checkRange turns a position and a size into a range inside the file.
func checkRange(offset, size uint64, fileSize int64) (object.Range, error) {
	if offset > uint64(fileSize) || size > uint64(fileSize)-offset {
		return object.Range{}, errs.New(errs.ErrCorrupt, "bytes [%d, +%d) of a file of %d", offset, size, fileSize)
	}
	return object.Range{Offset: int64(offset), Size: int64(size)}, nil
}

func (r *Reader) readSchema(b []byte) error {
	at := r.buffers[0].Offset
	if len(b) > metadataBytesMax {
		return errs.Corrupt("schema", at, "%d bytes", len(b))
	}
	var d filepb.FileDescriptor
	if err := proto.Unmarshal(b, &d); err != nil {
		return errs.Corrupt("schema", at, "%w", err)
	}
	if d.GetLength() > rowsMax {
		return errs.Corrupt("schema", at, "%d rows", d.GetLength())
	}
	fields := d.GetSchema().GetFields()
	numberFields(fields)
	s, err := schema.FromProto(fields, d.GetSchema().GetMetadata())
	if err != nil {
		return err
	}
	r.schema, r.rows = s, d.GetLength()
	return nil
}

// numberFields gives ids to fields without one: the parts of a blob's descriptor, which only the file knows.
func numberFields(fields []*filepb.Field) {
	next := int32(0)
	for _, f := range fields {
		next = max(next, f.GetId()+1)
	}
	for _, f := range fields {
		if f.GetId() < 0 && next < math.MaxInt32 {
			f.Id = next
			next++
		}
	}
}

// parseColumn reads the metadata of one column. Encodings of pages stay as bytes until a page is touched.
func parseColumn(b []byte, index int, at, fileSize int64) (*column, error) {
	c := &column{}
	var m filepb.ColumnMetadata
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, errs.Corrupt(sectionColumn(index), at, "%w", err)
	}
	if len(m.GetPages()) > pagesMax {
		return nil, errs.Corrupt(sectionColumn(index), at, "%d pages", len(m.GetPages()))
	}
	var err error
	if c.blob, err = isBlob(m.GetEncoding()); err != nil {
		return nil, errs.Corrupt(sectionColumn(index), at, "encoding: %w", err)
	}
	pages := make([]page, len(m.GetPages()))
	c.pages = make([]*page, len(pages))
	var first uint64
	for i, mp := range m.GetPages() {
		p := &pages[i]
		p.column, p.index, p.first, p.rows = index, i, first, mp.GetLength()
		if p.rows > rowsMax || first+p.rows > rowsMax {
			return nil, errs.Corrupt(p.section(), at, "%d rows", p.rows)
		}
		first += p.rows
		if len(mp.GetBufferOffsets()) != len(mp.GetBufferSizes()) {
			return nil, errs.Corrupt(p.section(), at, "%d buffer offsets, %d sizes", len(mp.GetBufferOffsets()), len(mp.GetBufferSizes()))
		}
		p.buffers = make([]object.Range, len(mp.GetBufferOffsets()))
		for j := range p.buffers {
			rg, err := checkRange(mp.GetBufferOffsets()[j], mp.GetBufferSizes()[j], fileSize)
			if err != nil {
				return nil, errs.Corrupt(p.section(), at, "buffer %d: %w", j, err)
			}
			p.buffers[j] = rg
			c.bytes += rg.Size
		}
		if err := p.parseEncoding(mp.GetEncoding(), at); err != nil {
			return nil, err
		}
		c.pages[i] = p
	}
	return c, nil
}

// isBlob reports whether a column holds places of values instead of values. Other column encodings change nothing for reading.
func isBlob(e *filepb.Encoding) (bool, error) {
	var message anypb.Any
	var c enc20pb.ColumnEncoding
	if err := proto.Unmarshal(e.GetDirect().GetEncoding(), &message); err != nil {
		return false, err
	}
	if err := proto.Unmarshal(message.GetValue(), &c); err != nil {
		return false, err
	}
	return c.GetBlob() != nil, nil
}

func (p *page) parseEncoding(e *filepb.Encoding, at int64) error {
	switch loc := e.GetLocation().(type) {
	case *filepb.Encoding_Direct:
		var message anypb.Any
		if err := proto.Unmarshal(loc.Direct.GetEncoding(), &message); err != nil {
			return errs.Corrupt(p.section(), at, "encoding: %w", err)
		}
		p.url, p.encoding = message.GetTypeUrl(), message.GetValue()
		return nil
	case *filepb.Encoding_Indirect:
		return errs.New(errs.ErrUnsupported, "%s: an encoding outside the page metadata is not supported", p.section())
	default:
		return errs.Corrupt(p.section(), at, "no encoding")
	}
}

func sectionColumn(i int) string {
	p := page{column: i}
	return "metadata of " + p.section()[:len(p.section())-len(" page 0")]
}

// tail serves ranges from the end of a file that was read in one go, and others from the file.
type tail struct {
	file  object.File
	size  int64
	bytes []byte
}

func (t *tail) load(ctx context.Context, n int64) error {
	b, err := t.file.Read(ctx, object.Range{Offset: t.size - n, Size: n})
	t.bytes = b
	return err
}

func (t *tail) read(ctx context.Context, rs []object.Range) ([][]byte, error) {
	start := t.size - int64(len(t.bytes))
	out := make([][]byte, len(rs))
	var missing []object.Range
	for i, rg := range rs {
		if rg.Offset >= start {
			out[i] = t.bytes[rg.Offset-start:][:rg.Size]
		} else {
			missing = append(missing, rg)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	got, err := t.file.ReadMany(ctx, missing)
	if err != nil {
		return nil, err
	}
	next := 0
	for i, rg := range rs {
		if rg.Offset < start {
			out[i] = got[next]
			next++
		}
	}
	return out, nil
}
