package zonemap

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/storage/file"
)

// FileName is the only file of a segment.
const FileName = "zonemap.lance"

const (
	rowsPerZoneKey     = "rows_per_zone"
	nullBitmapKey      = "null_bitmap"
	rowsPerZoneDefault = 8192
	fragmentRowsLimit  = 1 << 32
	zonesAtATime       = 8192
	zoneOverheadBytes  = 128
)

// Zone is what is known of the rows [Start, Start+Rows) of a fragment.
type Zone struct {
	Fragment     uint32
	Start, Rows  uint64
	Min, Max     key.Key // in total order: a NaN may be either
	NoMin, NoMax bool    // NULL in the file: there is no value
	Nulls, NaNs  uint32
}

// empty says that no row of the zone has a value that compares.
func (z *Zone) empty() bool { return uint64(z.Nulls)+uint64(z.NaNs) >= z.Rows }

// hasMin says that no value that compares is below Min. A NaN says nothing: engines differ in where they sort it.
func (z *Zone) hasMin(c key.Codec) bool { return !z.NoMin && !c.IsNaN(z.Min) }

func (z *Zone) hasMax(c key.Codec) bool { return !z.NoMax && !c.IsNaN(z.Max) }

// may says whether a value of the zone may lie in r.
func (z *Zone) may(c key.Codec, r key.Range) bool {
	return !z.empty() && !(z.hasMax(c) && c.Below(z.Max, r)) && !(z.hasMin(c) && c.Above(z.Min, r))
}

func byPlace(a, b Zone) int {
	return cmp.Or(cmp.Compare(a.Fragment, b.Fragment), cmp.Compare(a.Start, b.Start))
}

var columnNames = []string{"min", "max", "null_count", "nan_count", "fragment_id", "zone_start", "zone_length"} //nolint:gochecknoglobals // a constant

// readZones reads the zones of a file, ordered by place. What they take is added to held.
func readZones(ctx context.Context, r *file.Reader, held *mem.Reservation) ([]Zone, key.Codec, error) {
	cols, err := index.Columns(r, columnNames...)
	if err != nil {
		return nil, key.Codec{}, err
	}
	codec, err := key.NewCodec(cols[0].Field.Type)
	if err != nil {
		return nil, codec, err
	}
	if !arrow.TypeEqual(cols[0].Field.Type, cols[1].Field.Type) {
		return nil, codec, errs.Corrupt("schema", -1, "min is %s, max is %s", cols[0].Field.Type, cols[1].Field.Type)
	}
	for i, want := range []arrow.Type{arrow.UINT32, arrow.UINT32, arrow.UINT64, arrow.UINT64, arrow.UINT64} {
		if got := cols[2+i].Field.Type; got.ID() != want {
			return nil, codec, errs.Corrupt("schema", -1, "column %s is %s", columnNames[2+i], got)
		}
	}
	var zones []Zone
	for row := uint64(0); row < r.Rows(); row += zonesAtATime {
		batch, err := r.ReadRange(ctx, cols, row, min(row+zonesAtATime, r.Rows()), file.ReadOptions{Alloc: compute.GetAllocator(ctx)})
		if err != nil {
			return nil, codec, err
		}
		zones, err = appendZones(zones, codec, batch, held)
		batch.Release()
		if err != nil {
			return nil, codec, err
		}
	}
	slices.SortStableFunc(zones, byPlace)
	return zones, codec, checkZones(zones)
}

func appendZones(zones []Zone, codec key.Codec, batch arrow.RecordBatch, held *mem.Reservation) ([]Zone, error) {
	if err := held.Grow(batch.NumRows() * zoneOverheadBytes); err != nil {
		return nil, err
	}
	mins, maxs := batch.Column(0), batch.Column(1)
	nulls, nans := batch.Column(2).(*array.Uint32), batch.Column(3).(*array.Uint32)
	fragments, starts, lengths := batch.Column(4).(*array.Uint64), batch.Column(5).(*array.Uint64), batch.Column(6).(*array.Uint64)
	for i := range int(batch.NumRows()) {
		id := fragments.Value(i)
		z := Zone{
			Fragment: uint32(id), Start: starts.Value(i), Rows: lengths.Value(i), Nulls: nulls.Value(i), NaNs: nans.Value(i),
			NoMin: mins.IsNull(i), NoMax: maxs.IsNull(i),
		}
		if id > math.MaxUint32 || z.Start > fragmentRowsLimit || z.Rows > fragmentRowsLimit-z.Start {
			return nil, errs.Corrupt("zones", -1, "zone %d is rows %d+%d of fragment %d", len(zones), z.Start, z.Rows, id)
		}
		if !z.NoMin {
			z.Min = codec.At(mins, i)
		}
		if !z.NoMax {
			z.Max = codec.At(maxs, i)
		}
		if err := held.Grow(int64(len(z.Min.Bytes) + len(z.Max.Bytes))); err != nil {
			return nil, err
		}
		zones = append(zones, z)
	}
	return zones, nil
}

// checkZones refuses zones that share rows.
func checkZones(zones []Zone) error {
	for i := 1; i < len(zones); i++ {
		last, z := &zones[i-1], &zones[i]
		if last.Fragment == z.Fragment && last.Start+last.Rows > z.Start {
			return errs.Corrupt("zones", -1, "fragment %d: rows %d+%d and %d+%d are in two zones", z.Fragment, last.Start, last.Rows, z.Start, z.Rows)
		}
	}
	return nil
}

// readRowsPerZone reads the metadata; absent = 8192.
func readRowsPerZone(r *file.Reader) (uint64, error) {
	v, ok := r.Metadata(rowsPerZoneKey)
	if !ok {
		return rowsPerZoneDefault, nil
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil || n == 0 {
		return 0, errs.Corrupt("schema metadata", -1, "%s is %q", rowsPerZoneKey, v)
	}
	return n, nil
}

// readNulls reads the row map of the NULL rows; nil = the file has none.
func readNulls(ctx context.Context, r *file.Reader) ([]byte, error) {
	v, ok := r.Metadata(nullBitmapKey)
	if !ok {
		return nil, nil
	}
	number, err := strconv.ParseUint(string(v), 10, 31)
	if err != nil || number == 0 { // buffer 0 is the schema
		return nil, errs.Corrupt("schema metadata", -1, "%s is %q, a global buffer above 0 was expected", nullBitmapKey, v)
	}
	b, err := r.GlobalBuffer(ctx, int(number))
	if err != nil {
		return nil, fmt.Errorf("NULL rows: %w", err)
	}
	return b, nil
}
