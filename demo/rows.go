package demo

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/write"
)

// batchRows is how many rows a part draws at a time.
const batchRows = 4096

// Times grow with the row number through one year, as an ingest by time gives, with some hours of jitter.
const (
	yearStart   = 1_767_225_600_000_000 // 2026-01-01, in microseconds
	yearMicros  = 365 * dayMicros
	dayMicros   = 24 * hourMicros
	hourMicros  = 3600 * 1_000_000
	parcelReach = 20_000 // how far an image's parcel is from its own number
)

// part draws keys [next, end) of a table; draw appends the rows of one key and returns how many.
type part struct {
	g         *generator
	step      string
	total     int64
	next, end int64
	builder   *array.RecordBuilder
	schema    *arrow.Schema
	draw      func(b *array.RecordBuilder, key int64) int64
}

var _ write.Batches = (*part)(nil)

// Next implements write.Batches.
func (p *part) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.builder == nil {
		p.builder = array.NewRecordBuilder(memory.DefaultAllocator, p.schema)
	}
	rows := int64(0)
	for ; p.next < p.end && rows < batchRows; p.next++ {
		rows += p.draw(p.builder, p.next)
	}
	if rows == 0 {
		p.builder.Release()
		p.builder = nil
		return nil, io.EOF
	}
	p.g.progress.add(p.step, rows, p.total)
	return p.builder.NewRecordBatch(), nil
}

// parts cuts keys [0, keys) into n parts; draw makes the drawing function of one part from its random stream.
func (g *generator) parts(name string, s *arrow.Schema, keys, rows int64, n int, stream uint64, draw func(r random) func(*array.RecordBuilder, int64) int64) table {
	t := table{name: name, schema: s, rows: rows}
	for i := range int64(n) {
		t.parts = append(t.parts, &part{
			g: g, step: name, total: rows, schema: s,
			next: keys * i / int64(n), end: keys * (i + 1) / int64(n),
			draw: draw(newRandom(g.opts.Seed, stream+uint64(i))),
		})
	}
	return t
}

// smallParts is the number of fragments of the narrow tables.
func (g *generator) smallParts() int { return max(1, g.opts.Fragments/2) }

func micros() arrow.DataType { return &arrow.TimestampType{Unit: arrow.Microsecond} }

// at is the time that belongs to key of keys.
func at(key float64, keys int64) int64 { return yearStart + int64(key/float64(keys)*yearMicros) }

// field returns the builder of a column, whose type the schema fixes.
func field[T array.Builder](b *array.RecordBuilder, i int) T {
	return b.Field(i).(T) //nolint:errcheck,forcetypeassert // the schema beside it says the type
}

// orders has one or two orders for 98% of the parcels.
func (g *generator) orders() table {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "order_id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "parcel_id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "carrier", Type: arrow.BinaryTypes.String},
		{Name: "batch", Type: arrow.BinaryTypes.String},
		{Name: "amount", Type: &arrow.Decimal128Type{Precision: 12, Scale: 2}},
		{Name: "ordered_at", Type: micros()},
	}, nil)
	carriers, batches := numbered("carrier-%02d", 20), numbered("B26-%04d", 500)
	byRank := newZipf(len(carriers), 0.7)
	n := g.opts.Rows
	return g.parts("orders", s, n, n, g.smallParts(), streamOrders, func(r random) func(*array.RecordBuilder, int64) int64 {
		return func(b *array.RecordBuilder, parcel int64) int64 {
			count := int64(1)
			switch kind := r.IntN(100); {
			case kind < 2:
				count = 0
			case kind == 2:
				count = 2
			}
			for i := range count {
				field[*array.Int64Builder](b, 0).Append(2*parcel + i)
				field[*array.Int64Builder](b, 1).Append(parcel)
				field[*array.StringBuilder](b, 2).Append(carriers[byRank.draw(r)])
				field[*array.StringBuilder](b, 3).Append(batches[r.IntN(len(batches))])
				u := r.Float64()
				appendCents(field[*array.Decimal128Builder](b, 4), 100+int64(500_000*u*u*u))
				field[*array.TimestampBuilder](b, 5).Append(arrow.Timestamp(at(float64(parcel), n) - r.Int64N(3*86400)*1_000_000))
			}
			return count
		}
	})
}

// shipments has two to four steps a parcel, the last of them usually its delivery.
func (g *generator) shipments() table {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "parcel_id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "route", Type: arrow.BinaryTypes.String},
		{Name: "warehouse", Type: arrow.BinaryTypes.String},
		{Name: "status", Type: arrow.BinaryTypes.String},
		{Name: "updated_at", Type: micros()},
	}, nil)
	routes, warehouses := routeNames(), numbered("wh-%02d", 50)
	const onTheWay, delivered = 5, 5
	n := g.opts.Rows
	return g.parts("shipments", s, n, 3*n, g.smallParts(), streamShipments, func(r random) func(*array.RecordBuilder, int64) int64 {
		return func(b *array.RecordBuilder, parcel int64) int64 {
			route, count := r.IntN(len(routes)), 2+r.Int64N(3)
			for i := range count {
				field[*array.Int64Builder](b, 0).Append(parcel)
				taken := route
				if r.IntN(10) == 0 {
					taken = r.IntN(len(routes))
				}
				field[*array.StringBuilder](b, 1).Append(routes[taken])
				field[*array.StringBuilder](b, 2).Append(warehouses[r.IntN(len(warehouses))])
				status := r.IntN(onTheWay)
				if i == count-1 {
					if status = delivered; r.IntN(100) >= 92 {
						status = delivered + r.IntN(len(statuses)-delivered)
					}
				}
				field[*array.StringBuilder](b, 3).Append(statuses[status])
				field[*array.TimestampBuilder](b, 4).Append(arrow.Timestamp(at(float64(parcel), n) + (i*86400+r.Int64N(86400))*1_000_000))
			}
			return count
		}
	})
}
