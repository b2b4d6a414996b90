package file

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/encoding"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/schema"
)

// Options tunes a Reader. The zero value is the default.
type Options struct {
	// CacheBytes bounds the page structures (chunk tables, dictionaries) that a Reader keeps. Default 16 MiB; -1 = keep none.
	CacheBytes int64
	// TableBytes is the largest chunk table that a take from a file that is not mapped reads whole; a larger one is read in pieces. Default
	// 16 KiB; -1 = none.
	TableBytes int64
}

func (o Options) withDefaults() Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = 16 << 20
	}
	if o.TableBytes == 0 {
		o.TableBytes = 16 << 10
	}
	return o
}

// Reader reads one file. See I1.
type Reader struct {
	file    object.File
	version Version
	rows    uint64
	schema  *schema.Schema
	buffers []object.Range // global buffers
	columns []*column
	codecs  *encoding.Codecs

	cache      pageCache
	tableBytes int64     // Options.TableBytes
	scratch    sync.Pool // *scratch
}

// column is one physical column.
type column struct {
	pages []*page
	bytes int64 // of all page buffers
	blob  bool
}

// rows returns the rows of all pages.
func (c *column) rows() uint64 {
	if len(c.pages) == 0 {
		return 0
	}
	last := c.pages[len(c.pages)-1]
	return last.first + last.rows
}

// page is one page of a column. Everything but layout is set by Open.
type page struct {
	column, index int
	buffers       []object.Range
	first         uint64 // first row (2.0: first item of the column), counted in the unit of rows
	rows          uint64
	url           string // of the encoding message
	encoding      []byte
	layout        atomic.Pointer[compiledPage]
}

func (p *page) section() string { return fmt.Sprintf("column %d page %d", p.column, p.index) }

// Open reads the footer, the offset tables, the column metadata and the schema.
// Errors: ErrUnsupported for other versions of the format, ErrCorrupt, ErrIO, ErrNotFound.
func Open(ctx context.Context, f object.File, opts Options) (*Reader, error) {
	r := &Reader{file: f, codecs: &encoding.Codecs{}}
	opts = opts.withDefaults()
	r.cache.limitBytes, r.tableBytes = opts.CacheBytes, opts.TableBytes
	r.scratch.New = func() any { return &scratch{chunk: encoding.NewChunk(r.codecs)} }
	if err := r.open(ctx); err != nil {
		return nil, r.wrap(err)
	}
	return r, nil
}

// wrap names the file in an error: in a corruption error as its path, in others as context.
func (r *Reader) wrap(err error) error {
	if err == nil {
		return nil
	}
	var c *errs.CorruptError
	if errors.As(err, &c) {
		return errs.WithPath(err, r.file.Path())
	}
	return fmt.Errorf("file %s: %w", r.file.Path(), err)
}

// Version returns the format version.
func (r *Reader) Version() Version { return r.version }

// Rows returns the number of top-level rows.
func (r *Reader) Rows() uint64 { return r.rows }

// Schema returns the file's own schema.
func (r *Reader) Schema() *schema.Schema { return r.schema }

// Metadata returns one entry of the schema metadata; the caller must not write to it.
func (r *Reader) Metadata(key string) ([]byte, bool) {
	v, ok := r.schema.Metadata[key]
	return v, ok
}

// GlobalBuffer returns the bytes of global buffer i (0 is the schema). Errors: ErrInvalid for an index the file does not have.
func (r *Reader) GlobalBuffer(ctx context.Context, i int) ([]byte, error) {
	if i < 0 || i >= len(r.buffers) {
		return nil, errs.New(errs.ErrInvalid, "file %s: global buffer %d of %d", r.file.Path(), i, len(r.buffers))
	}
	b, err := r.file.Read(ctx, r.buffers[i])
	return b, r.wrap(err)
}

// Column is one top-level field and where its leaves lie in the file.
type Column struct {
	Field *schema.Field
	Index map[int32]int // field id -> physical column, for the field and its descendants; a missing leaf reads as null
	Codes bool          // text may come as codes into the dictionary that its page has: see CodesType
}

// Columns resolves top-level fields of the file's own schema by name; no names give all of them.
// Errors: ErrNotFound, ErrCorrupt where the file has other columns than its schema.
func (r *Reader) Columns(names ...string) ([]Column, error) {
	index := make(map[int32]int)
	for _, f := range r.schema.Fields {
		r.number(f, index)
	}
	if len(index) != len(r.columns) {
		return nil, r.wrap(errs.Corrupt("schema", -1, "%d columns in the file, %d in its schema", len(r.columns), len(index)))
	}
	if len(names) == 0 {
		out := make([]Column, len(r.schema.Fields))
		for i, f := range r.schema.Fields {
			out[i] = Column{Field: f, Index: index}
		}
		return out, nil
	}
	out := make([]Column, 0, len(names))
	for _, name := range names {
		f, ok := r.schema.Lookup(name)
		if !ok {
			return nil, errs.New(errs.ErrNotFound, "file %s: column %q", r.file.Path(), name)
		}
		out = append(out, Column{Field: f, Index: index})
	}
	return out, nil
}

// number gives the field and its descendants their physical columns, depth first: in 2.0 every field has one, later only leaves.
func (r *Reader) number(f *schema.Field, index map[int32]int) {
	leaf := len(f.Children) == 0 || isPacked(f)
	if leaf || r.version == V20 {
		index[f.ID] = len(index)
	}
	if leaf {
		return
	}
	for _, c := range f.Children {
		r.number(c, index)
	}
}

// isPacked reports whether a struct is stored as one leaf.
func isPacked(f *schema.Field) bool {
	if f.Type == nil || len(f.Children) == 0 {
		return false
	}
	v := f.Metadata["lance-encoding:packed"]
	return v == "true" || f.Metadata["packed"] == "true"
}

// extensionName is the key of a field's metadata that names its extension type.
const extensionName = "ARROW:extension:name"

// isBlobV2 reports whether a column holds descriptors of values that lie elsewhere, under the table's field of the whole.
func isBlobV2(f *schema.Field) bool {
	return strings.HasPrefix(f.Metadata[extensionName], "lance.blob")
}

// ColumnBytes returns the encoded bytes of a column, from page metadata.
func (r *Reader) ColumnBytes(col Column) int64 {
	var total int64
	seen := make(map[int]bool)
	var walk func(f *schema.Field)
	walk = func(f *schema.Field) {
		if i, ok := col.Index[f.ID]; ok && i >= 0 && i < len(r.columns) && !seen[i] {
			seen[i] = true
			total += r.columns[i].bytes
		}
		for _, c := range f.Children {
			walk(c)
		}
	}
	walk(col.Field)
	return total
}
