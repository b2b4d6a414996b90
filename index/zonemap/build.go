package zonemap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/rowset"
	"github.com/lakesql/lakesql/storage/schema"
)

// The names under which a segment that Builder makes is committed.
const (
	TypeURL = "/lance.table.ZoneMapIndexDetails"
	// WriteVersion is the index_version of the segments that Builder makes.
	WriteVersion = 0
)

// Builder collects the zones of a new segment. It is not safe for concurrent use.
type Builder struct {
	codec   key.Codec
	perZone uint64
	zones   []Zone // the last one is open while count > 0
	count   uint64 // rows added to the last zone
	nulls   rowset.Builder
	given   *rowset.Set // NULL rows that came with whole zones
	held    *mem.Reservation
	words   []uint64
	flat    [1]uint64
}

// NewBuilder collects a column of type t in zones of rowsPerZone rows (0 = 8192); budget (nil = nobody) pays. Errors: ErrUnsupported for types without
// an order.
func NewBuilder(column string, t arrow.DataType, rowsPerZone uint64, budget *mem.Budget) (*Builder, error) {
	codec, err := key.NewCodec(t)
	if err != nil {
		return nil, errs.New(errs.ErrUnsupported, "column %q: a ZONEMAP index cannot hold it: %w", column, err)
	}
	if rowsPerZone == 0 {
		rowsPerZone = rowsPerZoneDefault
	}
	return &Builder{codec: codec, perZone: rowsPerZone, given: &rowset.Set{}, held: budget.Reserve()}, nil
}

// Add takes rows: value i belongs to the row of address addrs[i]. Within a fragment addresses ascend, and its rows come without others in between.
// Errors: ErrInvalid for another type or order, ErrMemoryLimit.
func (b *Builder) Add(ctx context.Context, values arrow.Array, addrs []uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.codec.Accepts(values.DataType()) {
		return errs.New(errs.ErrInvalid, "values of type %s in an index of %s", values.DataType(), b.codec.Type())
	}
	if values.Len() != len(addrs) {
		return errs.New(errs.ErrInternal, "%d values for %d rows", values.Len(), len(addrs))
	}
	if !b.codec.IsWide() {
		b.words = b.codec.AppendWords(b.words[:0], values)
	}
	var scratch [32]byte
	for i := 0; i < len(addrs); i++ {
		addr := addrs[i]
		z, err := b.zone(addr)
		if err != nil {
			return err
		}
		switch {
		case values.IsNull(i):
			z.Nulls++
			b.flat[0] = addr
			b.nulls.Add(b.flat[:])
		case b.codec.IsWide():
			b.widen(z, b.codec.ValueBytes(values, i, &scratch))
		default:
			b.word(z, b.words[i])
			if values.NullN() == 0 && !b.codec.IsFloat() {
				i += b.follow(z, addrs[i:], b.words[i:])
			}
		}
	}
	return b.pay()
}

// pay holds what zones and NULL rows take.
func (b *Builder) pay() error {
	size := int64(cap(b.zones))*zoneOverheadBytes + b.nulls.SizeBytes() + b.given.SizeBytes()
	if b.codec.IsWide() {
		for i := range b.zones {
			size += int64(cap(b.zones[i].Min.Bytes) + cap(b.zones[i].Max.Bytes))
		}
	}
	return b.held.Resize(size)
}

// zone returns the zone that the next row belongs to.
func (b *Builder) zone(addr uint64) (*Zone, error) {
	fragment, offset := uint32(addr>>32), addr&(fragmentRowsLimit-1)
	if b.count > 0 {
		z := &b.zones[len(b.zones)-1]
		if z.Fragment == fragment {
			if offset < z.Start+z.Rows {
				return nil, errs.New(errs.ErrInvalid, "row %s comes after row %d of its fragment", rowset.RowAddr(addr), z.Start+z.Rows-1)
			}
			if b.count < b.perZone {
				z.Rows = offset - z.Start + 1
				b.count++
				return z, nil
			}
		}
	}
	b.zones = append(b.zones, Zone{Fragment: fragment, Start: offset, Rows: 1, NoMin: true, NoMax: true})
	b.count = 1
	return &b.zones[len(b.zones)-1], nil
}

func (b *Builder) word(z *Zone, w uint64) {
	k := key.Key{Word: w}
	if b.codec.IsNaN(k) {
		z.NaNs++
	}
	if z.NoMin || w < z.Min.Word {
		z.Min, z.NoMin = k, false
	}
	if z.NoMax || w > z.Max.Word {
		z.Max, z.NoMax = k, false
	}
}

func (b *Builder) widen(z *Zone, v []byte) {
	if k := (key.Key{Bytes: v}); z.NoMin || b.codec.Compare(k, z.Min) < 0 {
		z.Min.Bytes, z.NoMin = append(z.Min.Bytes[:0], v...), false
	}
	if k := (key.Key{Bytes: v}); z.NoMax || b.codec.Compare(k, z.Max) > 0 {
		z.Max.Bytes, z.NoMax = append(z.Max.Bytes[:0], v...), false
	}
}

// follow adds rows that come right after the first one, which was added, to its zone, and returns how many.
func (b *Builder) follow(z *Zone, addrs, words []uint64) int {
	most := min(uint64(len(addrs)), b.perZone-b.count+1)
	n, low, high := uint64(1), z.Min.Word, z.Max.Word
	for ; n < most && addrs[n] == addrs[0]+n; n++ {
		low, high = min(low, words[n]), max(high, words[n])
	}
	if n > 1 && addrs[n-1]>>32 != addrs[0]>>32 { // the last row of a fragment and the first one of the next
		return 0
	}
	z.Min.Word, z.Max.Word = low, high
	z.Rows += n - 1
	b.count += n - 1
	return int(n) - 1 //nolint:gosec // fewer than len(addrs)
}

// AddSegment takes over the zones of the fragments in keep from another segment, whose NULL rows must be known. Errors: ErrInvalid, ErrMemoryLimit.
func (b *Builder) AddSegment(s *Segment, keep *roaring.Bitmap) error {
	if s.nulls == nil || !b.codec.Accepts(s.codec.Type()) {
		return errs.New(errs.ErrInvalid, "zones of %s, NULL rows known %t, in an index of %s", s.codec.Type(), s.nulls != nil, b.codec.Type())
	}
	b.count = 0
	for i := range s.fragments {
		if f := &s.fragments[i]; keep.Contains(f.id) {
			b.zones = append(b.zones, f.zones...)
			b.given.AddBitmap(f.id, s.nulls.Bitmap(f.id))
		}
	}
	return b.pay()
}

// Zones is the number of zones so far.
func (b *Builder) Zones() int { return len(b.zones) }

// Free gives the memory back to the budget.
func (b *Builder) Free() { b.held.Free() }

// Details is the message for the index metadata: ZoneMapIndexDetails with the rows of a zone.
func (b *Builder) Details() []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), b.perZone)
}

// Write writes the segment's file as version (2.1 or 2.2; zero = 2.2) and publishes w; after an error w is dropped.
func (b *Builder) Write(ctx context.Context, w object.Writer, version file.Version) (file.Written, error) {
	slices.SortStableFunc(b.zones, byPlace)
	t := b.codec.Type()
	s := arrow.NewSchema([]arrow.Field{
		{Name: "min", Type: t, Nullable: true}, {Name: "max", Type: t, Nullable: true},
		{Name: "null_count", Type: arrow.PrimitiveTypes.Uint32}, {Name: "nan_count", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "fragment_id", Type: arrow.PrimitiveTypes.Uint64}, {Name: "zone_start", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "zone_length", Type: arrow.PrimitiveTypes.Uint64},
	}, nil)
	fields, err := schema.FromArrow(s)
	if err != nil {
		return file.Written{}, errors.Join(err, w.Abort())
	}
	out, err := file.NewWriter(w, fields, file.WriterOptions{Version: version})
	if err != nil {
		return file.Written{}, errors.Join(err, w.Abort())
	}
	if err := b.write(ctx, out, s); err != nil {
		return file.Written{}, errors.Join(err, out.Abort())
	}
	written, err := out.Finish(ctx)
	if err != nil {
		return file.Written{}, errors.Join(err, out.Abort())
	}
	return written, nil
}

func (b *Builder) write(ctx context.Context, out *file.Writer, s *arrow.Schema) error {
	nulls, err := rowset.AppendTree(nil, rowset.Union(b.given, b.nulls.Set()))
	if err != nil {
		return err
	}
	number, err := out.AddGlobalBuffer(nulls)
	if err != nil {
		return err
	}
	out.SetMetadata(nullBitmapKey, fmt.Append(nil, number))
	out.SetMetadata(rowsPerZoneKey, fmt.Append(nil, b.perZone))
	for zones := range slices.Chunk(b.zones, zonesAtATime) {
		if err := b.writeBatch(ctx, out, s, zones); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) writeBatch(ctx context.Context, out *file.Writer, s *arrow.Schema, zones []Zone) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	alloc := compute.GetAllocator(ctx)
	rows := array.NewRecordBuilder(alloc, arrow.NewSchema(s.Fields()[2:], nil))
	defer rows.Release()
	mins, maxs := make([]key.Key, len(zones)), make([]key.Key, len(zones))
	for i, z := range zones {
		mins[i], maxs[i] = z.Min, z.Max
		rows.Field(0).(*array.Uint32Builder).Append(z.Nulls)
		rows.Field(1).(*array.Uint32Builder).Append(z.NaNs)
		for f, v := range []uint64{uint64(z.Fragment), z.Start, z.Rows} {
			rows.Field(2 + f).(*array.Uint64Builder).Append(v)
		}
	}
	rest := rows.NewRecordBatch()
	defer rest.Release()
	low, err := b.codec.Sparse(alloc, mins, func(i int) bool { return zones[i].NoMin })
	if err != nil {
		return err
	}
	defer low.Release()
	high, err := b.codec.Sparse(alloc, maxs, func(i int) bool { return zones[i].NoMax })
	if err != nil {
		return err
	}
	defer high.Release()
	batch := array.NewRecordBatch(s, append([]arrow.Array{low, high}, rest.Columns()...), int64(len(zones)))
	defer batch.Release()
	return out.Write(ctx, batch)
}
