package btree

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/index/spill"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/schema"
)

// The names under which a segment that Builder makes is committed.
const (
	TypeURL = "/lance.table.BTreeIndexDetails"
	// WriteVersion is the index_version of the segments that Builder makes.
	WriteVersion = 0
)

// Builder collects and sorts a column for a new segment: in memory while it is little, in sorted runs on disk beyond, and out of segments that are there
// already. It is not safe for concurrent use.
type Builder struct {
	codec    key.Codec
	opts     index.BuildOptions
	nulls    []uint64 // row keys
	values   []valueRow
	text     []byte // wide codecs: the bytes of the values
	held     *mem.Reservation
	words    []uint64
	rows     int // of a page
	added    uint64
	runs     spill.Runs
	segments []segmentPart
}

// segmentPart is a segment whose rows are taken over.
type segmentPart struct {
	segment *Segment
	keep    index.KeyMap
}

// valueRow is a value with its row. Wide codecs keep the place of its bytes in text instead of a word.
type valueRow struct {
	word uint64 // or offset in text
	row  uint64
	size uint32
}

// valueRowBytes is what a row costs: slices grow by up to a factor of two.
const valueRowBytes = 2 * 24

// NewBuilder collects the column of type t. Errors: ErrUnsupported for types without an order.
func NewBuilder(column string, t arrow.DataType, opts index.BuildOptions) (*Builder, error) {
	codec, err := key.NewCodec(t)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a BTREE index cannot hold it: %w", column, err)
	}
	opts = opts.WithDefaults()
	b := &Builder{codec: codec, opts: opts, held: opts.Budget.Reserve(), rows: pageRowsDefault}
	b.runs.Parent = opts.TempDir
	return b, nil
}

// Add takes rows: value i belongs to the row of stored key keys[i]. Errors: ErrInvalid for another type, ErrMemoryLimit, ErrDiskFull, ErrIO.
func (b *Builder) Add(ctx context.Context, values arrow.Array, keys []uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.codec.Accepts(values.DataType()) {
		return errs.New(errs.ErrInvalid, "values of type %s in an index of %s", values.DataType(), b.codec.Type())
	}
	if values.Len() != len(keys) {
		return errs.New(errs.ErrInternal, "%d values for %d rows", values.Len(), len(keys))
	}
	if err := b.reserve(values); err != nil {
		return err
	}
	if !b.codec.IsWide() {
		b.words = b.codec.AppendWords(b.words[:0], values)
	}
	b.added += uint64(len(keys))
	var scratch [32]byte
	for i, k := range keys {
		switch {
		case values.IsNull(i):
			b.nulls = append(b.nulls, k)
		case b.codec.IsWide():
			v := b.codec.ValueBytes(values, i, &scratch)
			b.values = append(b.values, valueRow{word: uint64(len(b.text)), row: k, size: uint32(len(v))})
			b.text = append(b.text, v...)
		default:
			b.values = append(b.values, valueRow{word: b.words[i], row: k})
		}
	}
	return nil
}

// reserve pays for the rows to come, before they are copied; where there is no room for them, those that came before go to disk.
func (b *Builder) reserve(values arrow.Array) error {
	want := int64(values.Len()) * valueRowBytes
	if b.codec.IsWide() {
		var scratch [32]byte
		for i := range values.Len() {
			if values.IsValid(i) {
				want += 2 * int64(len(b.codec.ValueBytes(values, i, &scratch)))
			}
		}
	}
	err := error(nil)
	if b.held.Held()+want <= b.opts.MemoryBytes || len(b.nulls)+len(b.values) == 0 {
		if err = b.held.Grow(want); err == nil {
			return nil
		}
	}
	if len(b.nulls)+len(b.values) == 0 || err != nil && !errors.Is(err, errs.ErrMemoryLimit) {
		return err
	}
	if err := b.spill(); err != nil {
		return err
	}
	return b.held.Resize(want)
}

// AddSegment takes over the rows of another segment that keep names; it must stay open until Write is done. No row may be in two segments, or in one
// and be added. Errors: ErrInvalid.
func (b *Builder) AddSegment(s *Segment, keep index.KeyMap) error {
	if s.meta.Stale || !b.codec.Accepts(s.bounds.codec.Type()) {
		return errs.New(errs.ErrInvalid, "index %s: a segment of %s, which may hold entries of updated rows (%t), cannot be taken over by one of %s",
			s.meta.Name, s.bounds.codec.Type(), s.meta.Stale, b.codec.Type())
	}
	b.segments = append(b.segments, segmentPart{s, keep})
	b.added += s.bounds.rows
	return nil
}

// Runs is the number of sorted runs that were written to disk so far.
func (b *Builder) Runs() int { return b.runs.Count() }

func (b *Builder) key(v valueRow) key.Key {
	if b.codec.IsWide() {
		return key.Key{Bytes: b.text[v.word : v.word+uint64(v.size)]}
	}
	return key.Key{Word: v.word}
}

func (b *Builder) sort() {
	slices.Sort(b.nulls)
	if b.codec.IsWide() {
		slices.SortFunc(b.values, func(x, y valueRow) int {
			if o := b.codec.Compare(b.key(x), b.key(y)); o != 0 {
				return o
			}
			return cmp.Compare(x.row, y.row)
		})
		return
	}
	slices.SortFunc(b.values, func(x, y valueRow) int { // words are compared in place: half the time of the general form
		if o := cmp.Compare(x.word, y.word); o != 0 {
			return o
		}
		return cmp.Compare(x.row, y.row)
	})
}

// The first byte of a key in a run. The value follows, and the record's value is its rows; a NULL is followed by its row.
const (
	runNull  = 0
	runValue = 1
)

// spill writes what is in memory to a sorted run and forgets it.
func (b *Builder) spill() error {
	b.sort()
	err := b.runs.Add(func(put func(key, value []byte) error) error {
		var k, v []byte
		for _, row := range b.nulls {
			k = binary.BigEndian.AppendUint64(append(k[:0], runNull), row)
			if err := put(k, nil); err != nil {
				return err
			}
		}
		for i, r := range b.values {
			v = binary.BigEndian.AppendUint64(v, r.row)
			if i+1 < len(b.values) && b.codec.Compare(b.key(r), b.key(b.values[i+1])) == 0 {
				continue
			}
			if k = append(k[:0], runValue); b.codec.IsWide() {
				k = append(k, b.key(r).Bytes...)
			} else {
				k = binary.BigEndian.AppendUint64(k, r.word)
			}
			if err := put(k, v); err != nil {
				return err
			}
			v = v[:0]
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.nulls, b.values, b.text = nil, nil, nil
	return nil
}

// Free gives the memory back to the budget and takes the runs away.
func (b *Builder) Free() {
	b.held.Free()
	_ = b.runs.Remove() // the folder is for temporary files: what cannot be deleted there is not the build's failure
}

// Write sorts what was added, writes both files as version (2.1 or 2.2; zero = 2.2) and publishes them; after an error both are dropped.
func (b *Builder) Write(ctx context.Context, data, lookup object.Writer, version file.Version) (written [2]file.Written, err error) {
	p := &pageWriter{codec: b.codec, rows: b.rows}
	dataFile, err := p.open(data, version)
	if err != nil {
		return written, errors.Join(err, data.Abort(), lookup.Abort())
	}
	lookupFile, lookupSchema, err := b.newLookup(lookup, version)
	if err != nil {
		return written, errors.Join(err, dataFile.Abort(), lookup.Abort())
	}
	if err = b.each(ctx, p.append); err == nil {
		err = p.flush(ctx)
	}
	if err == nil {
		err = p.writeBounds(ctx, lookupFile, lookupSchema)
	}
	if err == nil {
		written[0], err = dataFile.Finish(ctx)
	}
	if err == nil {
		written[1], err = lookupFile.Finish(ctx)
	}
	if err != nil {
		return written, errors.Join(err, dataFile.Abort(), lookupFile.Abort())
	}
	return written, nil
}

func (b *Builder) newLookup(w object.Writer, version file.Version) (*file.Writer, *arrow.Schema, error) {
	t := b.codec.Type()
	s := arrow.NewSchema([]arrow.Field{
		{Name: "min", Type: t, Nullable: true}, {Name: "max", Type: t, Nullable: true},
		{Name: "null_count", Type: arrow.PrimitiveTypes.Uint32}, {Name: "page_idx", Type: arrow.PrimitiveTypes.Uint32},
	}, nil)
	out, err := newWriter(w, s, version)
	if err != nil {
		return nil, nil, err
	}
	out.SetMetadata(batchSizeKey, fmt.Append(nil, b.rows))
	out.SetMetadata(partitionedKey, []byte("false"))
	return out, s, nil
}

func newWriter(w object.Writer, s *arrow.Schema, version file.Version) (*file.Writer, error) {
	fields, err := schema.FromArrow(s)
	if err != nil {
		return nil, err
	}
	return file.NewWriter(w, fields, file.WriterOptions{Version: version})
}

// pageWriter cuts rows, which come in order, into pages, and remembers their bounds.
type pageWriter struct {
	codec  key.Codec
	rows   int // of a page
	out    *file.Writer
	schema *arrow.Schema

	nulls int
	keys  []key.Key
	text  []byte // what the keys of wide codecs point into
	ids   []uint64

	mins, maxs   []key.Key
	noMin, noMax int
	nullCounts   []uint32
}

func (p *pageWriter) open(w object.Writer, version file.Version) (*file.Writer, error) {
	p.schema = arrow.NewSchema([]arrow.Field{
		{Name: "values", Type: p.codec.Type(), Nullable: true}, {Name: "ids", Type: arrow.PrimitiveTypes.Uint64},
	}, nil)
	var err error
	p.out, err = newWriter(w, p.schema, version)
	return p.out, err
}

// append takes the next row; k is valid during the call alone.
func (p *pageWriter) append(ctx context.Context, isNull bool, k key.Key, row uint64) error {
	if isNull {
		p.nulls++
	} else {
		if p.codec.IsWide() {
			start := len(p.text)
			p.text = append(p.text, k.Bytes...) // when it moves, earlier keys keep the old memory
			k.Bytes = p.text[start:len(p.text):len(p.text)]
		}
		p.keys = append(p.keys, k)
	}
	p.ids = append(p.ids, row)
	if len(p.ids) < p.rows {
		return nil
	}
	return p.flush(ctx)
}

func (p *pageWriter) flush(ctx context.Context) error {
	if len(p.ids) == 0 {
		return nil
	}
	alloc := compute.GetAllocator(ctx)
	p.nullCounts = append(p.nullCounts, uint32(p.nulls))
	clone := func(k key.Key) key.Key { return key.Key{Word: k.Word, Bytes: slices.Clone(k.Bytes)} }
	if p.nulls > 0 {
		p.noMin++
	} else {
		p.mins = append(p.mins, clone(p.keys[0]))
	}
	if len(p.keys) == 0 {
		p.noMax++
	} else {
		p.maxs = append(p.maxs, clone(p.keys[len(p.keys)-1]))
	}
	values, err := p.codec.Array(alloc, p.nulls, p.keys)
	if err != nil {
		return err
	}
	ids := array.NewUint64Builder(alloc)
	defer ids.Release()
	ids.AppendValues(p.ids, nil)
	p.nulls, p.keys, p.text, p.ids = 0, p.keys[:0], p.text[:0], p.ids[:0]
	return writeBatch(ctx, p.out, p.schema, values, ids.NewArray())
}

func (p *pageWriter) writeBounds(ctx context.Context, out *file.Writer, s *arrow.Schema) error {
	if len(p.nullCounts) == 0 {
		return nil
	}
	alloc := compute.GetAllocator(ctx)
	nullCounts, idx := array.NewUint32Builder(alloc), array.NewUint32Builder(alloc)
	defer nullCounts.Release()
	defer idx.Release()
	nullCounts.AppendValues(p.nullCounts, nil)
	for k := range p.nullCounts {
		idx.Append(uint32(k))
	}
	mins, err := p.codec.Array(alloc, p.noMin, p.mins)
	if err != nil {
		return err
	}
	maxs, err := p.codec.Array(alloc, p.noMax, p.maxs)
	if err != nil {
		mins.Release()
		return err
	}
	return writeBatch(ctx, out, s, mins, maxs, nullCounts.NewArray(), idx.NewArray())
}

// writeBatch writes columns and releases them.
func writeBatch(ctx context.Context, out *file.Writer, s *arrow.Schema, columns ...arrow.Array) error {
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	batch := array.NewRecordBatch(s, columns, int64(columns[0].Len()))
	defer batch.Release()
	return out.Write(ctx, batch)
}
