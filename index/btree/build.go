package btree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index/key"
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

// Builder collects and sorts a column for a new segment. It is not safe for concurrent use.
type Builder struct {
	codec  key.Codec
	nulls  []uint64 // row keys
	values []valueRow
	text   []byte // wide codecs: the bytes of the values
	held   *mem.Reservation
	words  []uint64
	rows   int // of a page
}

// valueRow is a value with its row. Wide codecs keep the place of its bytes in text instead of a word.
type valueRow struct {
	word uint64 // or offset in text
	row  uint64
	size uint32
}

// NewBuilder collects the column of type t; budget (nil = nobody) pays. Errors: ErrUnsupported for types without an order.
func NewBuilder(column string, t arrow.DataType, budget *mem.Budget) (*Builder, error) {
	codec, err := key.NewCodec(t)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a BTREE index cannot hold it: %w", column, err)
	}
	return &Builder{codec: codec, held: budget.Reserve(), rows: pageRowsDefault}, nil
}

// Add takes rows: value i belongs to the row of stored key keys[i]. Errors: ErrInvalid for another type, ErrMemoryLimit.
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
	// Slices grow by up to a factor of two, and writing needs the words of one page.
	const rowBytes = 2 * 24
	if err := b.held.Grow(int64(len(keys)) * rowBytes); err != nil {
		return err
	}
	if !b.codec.IsWide() {
		b.words = b.codec.AppendWords(b.words[:0], values)
	}
	var scratch [32]byte
	for i, k := range keys {
		switch {
		case values.IsNull(i):
			b.nulls = append(b.nulls, k)
		case b.codec.IsWide():
			v := b.codec.ValueBytes(values, i, &scratch)
			if err := b.held.Grow(2 * int64(len(v))); err != nil {
				return err
			}
			b.values = append(b.values, valueRow{word: uint64(len(b.text)), row: k, size: uint32(len(v))})
			b.text = append(b.text, v...)
		default:
			b.values = append(b.values, valueRow{word: b.words[i], row: k})
		}
	}
	return nil
}

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

// Free gives the memory back to the budget.
func (b *Builder) Free() { b.held.Free() }

// Write sorts what was added, writes both files as version (2.1 or 2.2; zero = 2.2) and publishes them; after an error both are dropped.
func (b *Builder) Write(ctx context.Context, data, lookup object.Writer, version file.Version) (written [2]file.Written, err error) {
	b.sort()
	dataFile, dataSchema, err := b.newData(data, version)
	if err != nil {
		return written, errors.Join(err, data.Abort(), lookup.Abort())
	}
	lookupFile, lookupSchema, err := b.newLookup(lookup, version)
	if err != nil {
		return written, errors.Join(err, dataFile.Abort(), lookup.Abort())
	}
	rows := len(b.nulls) + len(b.values)
	for start := 0; start < rows && err == nil; start += b.rows {
		err = b.writePage(ctx, dataFile, dataSchema, start, min(start+b.rows, rows))
	}
	if err == nil {
		err = b.writeBounds(ctx, lookupFile, lookupSchema, rows)
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

func (b *Builder) newData(w object.Writer, version file.Version) (*file.Writer, *arrow.Schema, error) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "values", Type: b.codec.Type(), Nullable: true}, {Name: "ids", Type: arrow.PrimitiveTypes.Uint64},
	}, nil)
	out, err := newWriter(w, s, version)
	return out, s, err
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

// split returns how many NULLs the rows [start, end) begin with, and the values that follow.
func (b *Builder) split(start, end int) (nulls []uint64, values []valueRow) {
	n := len(b.nulls)
	return b.nulls[min(start, n):min(end, n)], b.values[max(start-n, 0):max(end-n, 0)]
}

func (b *Builder) writePage(ctx context.Context, out *file.Writer, s *arrow.Schema, start, end int) error {
	alloc := compute.GetAllocator(ctx)
	nulls, rows := b.split(start, end)
	keys := make([]key.Key, 0, len(rows))
	ids := array.NewUint64Builder(alloc)
	defer ids.Release()
	ids.AppendValues(nulls, nil)
	for _, r := range rows {
		keys = append(keys, b.key(r))
		ids.Append(r.row)
	}
	values, err := b.codec.Array(alloc, len(nulls), keys)
	if err != nil {
		return err
	}
	return writeBatch(ctx, out, s, values, ids.NewArray())
}

func (b *Builder) writeBounds(ctx context.Context, out *file.Writer, s *arrow.Schema, rows int) error {
	alloc := compute.GetAllocator(ctx)
	var mins, maxs []key.Key
	noMin, noMax := 0, 0
	nullCounts, idx := array.NewUint32Builder(alloc), array.NewUint32Builder(alloc)
	defer nullCounts.Release()
	defer idx.Release()
	for start := 0; start < rows; start += b.rows {
		nulls, values := b.split(start, min(start+b.rows, rows))
		nullCounts.Append(uint32(len(nulls)))
		idx.Append(uint32(start / b.rows))
		if len(nulls) > 0 {
			noMin++
		} else {
			mins = append(mins, b.key(values[0]))
		}
		if len(values) == 0 {
			noMax++
		} else {
			maxs = append(maxs, b.key(values[len(values)-1]))
		}
	}
	if rows == 0 {
		return nil
	}
	minArray, err := b.codec.Array(alloc, noMin, mins)
	if err != nil {
		return err
	}
	maxArray, err := b.codec.Array(alloc, noMax, maxs)
	if err != nil {
		minArray.Release()
		return err
	}
	return writeBatch(ctx, out, s, minArray, maxArray, nullCounts.NewArray(), idx.NewArray())
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
