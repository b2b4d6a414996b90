package btree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

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
	nulls    []uint64   // row keys
	values   []valueRow // word codecs
	wide     []wideRow  // the others
	text     [][]byte   // and the bytes of their values, in blocks that do not move
	held     *mem.Reservation
	paid     int  // rows that are paid for and have room, all in all
	ordered  bool // rows came in ascending order so far
	lastRow  uint64
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

const (
	// rowBytes is what a row costs whose place was known before: a value of a word codec and its copy for the sort, or a row of a wide one.
	rowBytes = 32
	// grownBytes is what it costs in a slice that grows.
	grownBytes = 2 * rowBytes
	blockBytes = 16 << 20 // most of a block of text, unless one value has more
)

// NewBuilder collects the column of type t. Errors: ErrUnsupported for types without an order.
func NewBuilder(column string, t arrow.DataType, opts index.BuildOptions) (*Builder, error) {
	codec, err := key.NewCodec(t)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a BTREE index cannot hold it: %w", column, err)
	}
	opts = opts.WithDefaults()
	b := &Builder{codec: codec, opts: opts, held: opts.Budget.Reserve(), rows: pageRowsDefault, ordered: true}
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
	b.added += uint64(len(keys))
	for _, k := range keys {
		b.ordered = b.ordered && k >= b.lastRow
		b.lastRow = k
	}
	if b.codec.IsWide() {
		b.addWide(values, keys)
		return nil
	}
	b.words = b.codec.AppendWords(b.words[:0], values)
	if values.NullN() == 0 {
		for i, k := range keys {
			b.values = append(b.values, valueRow{word: b.words[i], row: k})
		}
		return nil
	}
	for i, k := range keys {
		if values.IsNull(i) {
			b.nulls = append(b.nulls, k)
		} else {
			b.values = append(b.values, valueRow{word: b.words[i], row: k})
		}
	}
	return nil
}

func (b *Builder) addWide(values arrow.Array, keys []uint64) {
	var scratch [32]byte
	rest := b.textBytes(values)
	for i, k := range keys {
		if values.IsNull(i) {
			b.nulls = append(b.nulls, k)
			continue
		}
		v := b.codec.ValueBytes(values, i, &scratch)
		last := len(b.text) - 1
		if last < 0 || cap(b.text[last])-len(b.text[last]) < len(v) {
			b.text = append(b.text, make([]byte, 0, max(len(v), min(rest, blockBytes))))
			last++
		}
		rest -= len(v)
		at := uint64(last)<<32 | uint64(len(b.text[last]))
		b.text[last] = append(b.text[last], v...)
		b.wide = append(b.wide, wideRow{prefix: prefixAt(v, 0), row: k, at: at, size: uint32(len(v))}) //nolint:gosec // Arrow's values are shorter
	}
}

// textBytes is how many bytes the values have that are not NULL.
func (b *Builder) textBytes(values arrow.Array) int {
	var scratch [32]byte
	n := 0
	for i := range values.Len() {
		if values.IsValid(i) {
			n += len(b.codec.ValueBytes(values, i, &scratch))
		}
	}
	return n
}

// count is how many rows are in memory.
func (b *Builder) count() int { return len(b.nulls) + len(b.values) + len(b.wide) }

// prepay makes room for all rows that are to come, if their number is known and the memory allows them.
func (b *Builder) prepay(more int) {
	n := int(min(int64(b.opts.Rows)-int64(b.added), b.opts.MemoryBytes/rowBytes/2)) //nolint:gosec // no table has that many
	if n < more || b.held.Held() > 0 || b.held.Grow(int64(n)*rowBytes) != nil {
		return
	}
	if b.paid = n; b.codec.IsWide() {
		b.wide = make([]wideRow, 0, n)
	} else {
		b.values = make([]valueRow, 0, n)
	}
}

// reserve pays for the rows to come, before they are copied; where there is no room for them, those that came before go to disk.
func (b *Builder) reserve(values arrow.Array) error {
	if b.count() == 0 {
		b.prepay(values.Len())
	}
	want := int64(0)
	if b.count()+values.Len() > b.paid {
		want = int64(values.Len()) * grownBytes
	}
	if b.codec.IsWide() {
		want += int64(b.textBytes(values))
	}
	err := error(nil)
	if b.held.Held()+want <= b.opts.MemoryBytes || b.count() == 0 {
		if err = b.held.Grow(want); err == nil {
			return nil
		}
	}
	if b.count() == 0 || err != nil && !errors.Is(err, errs.ErrMemoryLimit) {
		return err
	}
	if err := b.spill(); err != nil {
		return err
	}
	b.held.Free()
	return b.reserve(values)
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

// sort sorts what is in memory.
func (b *Builder) sort() {
	slices.Sort(b.nulls)
	wideSort{b.text}.sort(b.wide, 0)
	if len(b.values) > 0 {
		b.values = sortRows(b.values, make([]valueRow, len(b.values)), b.ordered)
	}
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
			if i+1 < len(b.values) && r.word == b.values[i+1].word {
				continue
			}
			k = binary.BigEndian.AppendUint64(append(k[:0], runValue), r.word)
			if err := put(k, v); err != nil {
				return err
			}
			v = v[:0]
		}
		w := wideSort{b.text}
		for i, r := range b.wide {
			v = binary.BigEndian.AppendUint64(v, r.row)
			if i+1 < len(b.wide) && bytes.Equal(w.value(r), w.value(b.wide[i+1])) {
				continue
			}
			k = append(append(k[:0], runValue), w.value(r)...)
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
	b.nulls, b.values, b.wide, b.text, b.paid, b.ordered = nil, nil, nil, nil, 0, true
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
