package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/enc20pb"
	"github.com/lakesql/lakesql/storage/pb/encpb"
	"github.com/lakesql/lakesql/storage/pb/filepb"
)

// Sizes of the container; docs/format/file.md draws it.
const (
	footerBytes      = 40
	tableEntryBytes  = 16
	columnsMax       = 1 << 20
	messageBytesMax  = 1 << 28
	metadataShownMax = 200
)

// FileOptions says how deep File looks. The zero value is metadata alone.
type FileOptions struct {
	ReadRows bool   // decode every row of every column, so that faults in pages show
	RowsMax  uint64 // decode at most so many rows of each; 0 = all
}

// File prints the container of a data or index file: footer, schema, metadata, columns, pages. Errors: ErrNotFound, ErrIO,
// and what writing returns.
func File(ctx context.Context, w io.Writer, store object.Store, path string, opts FileOptions) (faults int, err error) {
	f, err := openContainer(ctx, w, store, path)
	if err != nil {
		return 0, err
	}
	f.line("file %s, %d bytes", path, f.file.SizeBytes())
	f.depth++
	r, openErr := file.Open(ctx, f.file, file.Options{})
	if openErr != nil {
		f.fault("%v", openErr)
	}
	if f.readFooter() {
		f.printSchema()
		f.printColumns(columnNames(r))
	}
	if opts.ReadRows && r != nil {
		if err := f.readRows(ctx, r, opts.RowsMax); err != nil {
			return f.faults, err
		}
	}
	return f.end()
}

// container reads a file's metadata part by part, so that one bad part does not hide the others.
type container struct {
	*printer
	ctx  context.Context //nolint:containedctx // lives for one call only
	file object.File

	columnMetadata, columnTable, bufferTable uint64
	buffers, columns                         uint32
	major, minor                             uint16
	bufferRanges, columnRanges               []object.Range
	rows                                     uint64
}

func openContainer(ctx context.Context, w io.Writer, store object.Store, path string) (*container, error) {
	o, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return &container{printer: newPrinter(w), ctx: ctx, file: o}, nil
}

// bytes reads a part of the file; nil and a fault where it lies outside.
func (c *container) bytes(what string, at, size uint64) []byte {
	if size > messageBytesMax || at > math.MaxInt64 || size > uint64(c.file.SizeBytes()) || at > uint64(c.file.SizeBytes())-size {
		c.fault("%s: %d bytes at %d lie outside the file or are too many", what, size, at)
		return nil
	}
	b, err := c.file.Read(c.ctx, object.Range{Offset: int64(at), Size: int64(size)})
	if err != nil {
		c.fault("%s: %v", what, err)
		return nil
	}
	return b
}

func (c *container) readFooter() bool {
	size := uint64(c.file.SizeBytes())
	if size < footerBytes {
		return false // Open has said it
	}
	b := c.bytes("footer", size-footerBytes, footerBytes)
	if b == nil || string(b[36:]) != "LANC" {
		return false
	}
	c.columnMetadata, c.columnTable = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	c.bufferTable = binary.LittleEndian.Uint64(b[16:])
	c.buffers, c.columns = binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:])
	c.major, c.minor = binary.LittleEndian.Uint16(b[32:]), binary.LittleEndian.Uint16(b[34:])
	c.line("footer: format %d.%d, column metadata at %d, tables of %d columns at %d and %d buffers at %d",
		c.major, c.minor, c.columnMetadata, c.columns, c.columnTable, c.buffers, c.bufferTable)
	if c.columns > columnsMax || c.buffers > columnsMax {
		c.fault("more columns or buffers than can be")
		return false
	}
	c.columnRanges = c.table("column table", c.columnTable, c.columns)
	c.bufferRanges = c.table("buffer table", c.bufferTable, c.buffers)
	return true
}

func (c *container) table(what string, at uint64, n uint32) []object.Range {
	b := c.bytes(what, at, uint64(n)*tableEntryBytes)
	out := make([]object.Range, 0, len(b)/tableEntryBytes)
	for ; len(b) > 0; b = b[tableEntryBytes:] {
		out = append(out, object.Range{Offset: int64(binary.LittleEndian.Uint64(b)), Size: int64(binary.LittleEndian.Uint64(b[8:]))})
	}
	return out
}

func (c *container) printSchema() {
	if len(c.bufferRanges) == 0 {
		return
	}
	b := c.bytes("schema", uint64(c.bufferRanges[0].Offset), uint64(c.bufferRanges[0].Size))
	var d filepb.FileDescriptor
	if err := proto.Unmarshal(b, &d); b == nil || err != nil {
		c.fault("schema: %v", err)
		return
	}
	c.rows = d.GetLength()
	c.line("rows: %d", c.rows)
	c.section("schema", func() { printFields(c.printer, d.GetSchema().GetFields()) })
	var md []string
	for k, v := range d.GetSchema().GetMetadata() {
		if len(v) > metadataShownMax {
			v = append(slices.Clone(v[:metadataShownMax]), "..."...)
		}
		md = append(md, fmt.Sprintf("metadata %s = %q", k, v))
	}
	slices.Sort(md)
	for _, l := range md {
		c.line("%s", l)
	}
	for i, r := range c.bufferRanges[1:] {
		c.line("global buffer %d: %d bytes at %d", i+1, r.Size, r.Offset)
	}
}

func (c *container) column(i int) *filepb.ColumnMetadata {
	r := c.columnRanges[i]
	b := c.bytes(fmt.Sprintf("column %d", i), uint64(r.Offset), uint64(r.Size))
	var m filepb.ColumnMetadata
	if err := proto.Unmarshal(b, &m); b == nil || err != nil {
		c.fault("column %d: its metadata cannot be read: %v", i, err)
		return nil
	}
	return &m
}

// columnNames says which field each physical column belongs to, where the file could be opened.
func columnNames(r *file.Reader) map[int]string {
	out := make(map[int]string)
	if r == nil {
		return out
	}
	cols, err := r.Columns()
	if err != nil {
		return out // reported where rows are read
	}
	paths := make(map[int32]string)
	for _, c := range cols {
		namePaths(c.Field, "", paths)
		for id, i := range c.Index {
			if paths[id] != "" {
				out[i] = " " + paths[id]
			}
		}
	}
	return out
}

func (c *container) printColumns(names map[int]string) {
	for i := range c.columnRanges {
		m := c.column(i)
		if m == nil {
			continue
		}
		c.section(fmt.Sprintf("column %d%s: %d pages", i, names[i], len(m.GetPages())), func() {
			for k, p := range m.GetPages() {
				var bytes uint64
				for _, n := range p.GetBufferSizes() {
					bytes += n
				}
				text := fmt.Sprintf("page %d: from row %d, length %d, %d buffers of %d bytes", k, p.GetPriority(), p.GetLength(), len(p.GetBufferSizes()), bytes)
				layout, err := pageLayout(p)
				if err != nil {
					c.line("%s", text)
					c.fault("%v", err)
					continue
				}
				c.line("%s: %s", text, compact(layout.ProtoReflect()))
				c.checkBuffers(p)
			}
		})
	}
}

func (c *container) checkBuffers(p *filepb.ColumnMetadata_Page) {
	if len(p.GetBufferOffsets()) != len(p.GetBufferSizes()) {
		c.fault("%d buffer offsets, %d sizes", len(p.GetBufferOffsets()), len(p.GetBufferSizes()))
		return
	}
	for i, at := range p.GetBufferOffsets() {
		if n := p.GetBufferSizes()[i]; n > c.columnMetadata || at > c.columnMetadata-n {
			c.fault("buffer %d: %d bytes at %d run into the metadata at %d", i, n, at, c.columnMetadata)
		}
	}
}

// pageLayout decodes a page's encoding message.
func pageLayout(p *filepb.ColumnMetadata_Page) (proto.Message, error) {
	direct := p.GetEncoding().GetDirect()
	if direct == nil {
		return nil, errs.New(errs.ErrUnsupported, "an encoding that is not inline")
	}
	var a anypb.Any
	if err := proto.Unmarshal(direct.GetEncoding(), &a); err != nil {
		return nil, errs.New(errs.ErrCorrupt, "encoding: %w", err)
	}
	var m proto.Message
	switch url := a.GetTypeUrl(); {
	case strings.HasSuffix(url, "lance.encodings21.PageLayout"):
		m = &encpb.PageLayout{}
	case strings.HasSuffix(url, "lance.encodings.ArrayEncoding"):
		m = &enc20pb.ArrayEncoding{}
	default:
		return nil, errs.New(errs.ErrUnsupported, "an encoding of type %q", url)
	}
	if err := proto.Unmarshal(a.GetValue(), m); err != nil {
		return nil, errs.New(errs.ErrCorrupt, "encoding: %w", err)
	}
	return m, nil
}

const readStepRows = 8192

// readRows decodes every row, column by column, and reports the first fault of each.
func (c *container) readRows(ctx context.Context, r *file.Reader, rowsMax uint64) error {
	rows := r.Rows()
	if rowsMax > 0 {
		rows = min(rows, rowsMax)
	}
	for _, f := range r.Schema().Fields {
		cols, err := r.Columns(f.Name)
		if err != nil {
			c.fault("column %q: %v", f.Name, err)
			continue
		}
		nulls := 0
		err = eachBatch(ctx, r, cols, 0, rows, func(b arrow.RecordBatch) { nulls += b.Column(0).NullN() })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.fault("column %q: %v", f.Name, err)
			continue
		}
		c.line("column %q: %d rows decoded, %d nulls, %d bytes stored", f.Name, rows, nulls, r.ColumnBytes(cols[0]))
	}
	return nil
}

func eachBatch(ctx context.Context, r *file.Reader, cols []file.Column, start, end uint64, f func(arrow.RecordBatch)) error {
	for at := start; at < end; at += readStepRows {
		b, err := r.ReadRange(ctx, cols, at, min(at+readStepRows, end), file.ReadOptions{})
		if err != nil {
			return err
		}
		f(b)
		b.Release()
	}
	return nil
}

// PageRef names a page of a file.
type PageRef struct{ Column, Page int }

// Page prints one page: buffers, encoding, and its first values. Errors: ErrInvalid for a column or page the file
// does not have, ErrCorrupt where the file's footer is broken, ErrNotFound, ErrIO, and what writing returns.
func Page(ctx context.Context, w io.Writer, store object.Store, path string, ref PageRef) (faults int, err error) {
	c, err := openContainer(ctx, w, store, path)
	if err != nil {
		return 0, err
	}
	c.line("file %s", path)
	c.depth++
	r, openErr := file.Open(ctx, c.file, file.Options{})
	if openErr != nil {
		c.fault("%v", openErr)
	}
	if !c.readFooter() {
		return c.faults, errors.Join(openErr, c.w.Flush())
	}
	if ref.Column < 0 || ref.Column >= len(c.columnRanges) {
		return c.faults, errs.New(errs.ErrInvalid, "%s has %d columns, no column %d", path, len(c.columnRanges), ref.Column)
	}
	m := c.column(ref.Column)
	if m == nil {
		return c.end()
	}
	if ref.Page < 0 || ref.Page >= len(m.GetPages()) {
		return c.faults, errs.New(errs.ErrInvalid, "column %d of %s has %d pages, no page %d", ref.Column, path, len(m.GetPages()), ref.Page)
	}
	p := m.GetPages()[ref.Page]
	c.line("column %d page %d: from row %d, length %d", ref.Column, ref.Page, p.GetPriority(), p.GetLength())
	c.printBuffers(p)
	if layout, err := pageLayout(p); err != nil {
		c.fault("%v", err)
	} else {
		for l := range strings.Lines(tree("encoding", layout.ProtoReflect())) {
			c.line("%s", strings.TrimSuffix(l, "\n"))
		}
	}
	if r != nil {
		c.printValues(ctx, r, ref, p)
	}
	return c.end()
}

func (c *container) printBuffers(p *filepb.ColumnMetadata_Page) {
	c.checkBuffers(p)
	for i, at := range p.GetBufferOffsets() {
		if i >= len(p.GetBufferSizes()) {
			return
		}
		const shown = 32
		n := p.GetBufferSizes()[i]
		b := c.bytes(fmt.Sprintf("buffer %d", i), at, min(n, shown))
		dots := ""
		if n > shown {
			dots = "..."
		}
		c.line("buffer %d: %d bytes at %d: %x%s", i, n, at, b, dots)
	}
}

// printValues decodes the rows of the page's top-level field. In 2.0 files pages of list items count items, not rows: there the
// whole field is decoded.
func (c *container) printValues(ctx context.Context, r *file.Reader, ref PageRef, p *filepb.ColumnMetadata_Page) {
	for _, f := range r.Schema().Fields {
		cols, err := r.Columns(f.Name)
		if err != nil {
			c.fault("%v", err)
			return
		}
		for d := range f.All() {
			if i, ok := cols[0].Index[d.ID]; !ok || i != ref.Column {
				continue
			}
			start, end := p.GetPriority(), p.GetPriority()+p.GetLength()
			if (r.Version() == file.V20 && d != f) || end > r.Rows() || end < start {
				start, end = 0, r.Rows()
			}
			c.values(ctx, r, cols, start, end)
			return
		}
	}
}

func (c *container) values(ctx context.Context, r *file.Reader, cols []file.Column, start, end uint64) {
	const shown, shownBytes, decodedMax = 5, 120, 1 << 20
	end = min(end, start+decodedMax)
	var texts []string
	err := eachBatch(ctx, r, cols, start, end, func(b arrow.RecordBatch) {
		for i := 0; i < int(b.NumRows()) && len(texts) < shown; i++ {
			text := b.Column(0).ValueStr(i)
			if len(text) > shownBytes {
				text = text[:shownBytes] + "..."
			}
			texts = append(texts, text)
		}
	})
	if err != nil {
		c.fault("rows %d to %d of %q: %v", start, end, cols[0].Field.Name, err)
		return
	}
	c.section(fmt.Sprintf("rows %d to %d of %q decode, the first are", start, end, cols[0].Field.Name), func() {
		for _, t := range texts {
			c.line("%s", t)
		}
	})
}
