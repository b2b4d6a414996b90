package exec

import (
	"math"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/storage/rowset"
)

// Zones is what each short range of rows holds of one column of integers, learned while all of the column was read. A lookup of keys in a column without an
// index then reads only the ranges that can hold one; where keys were given in order, as they are as a rule, it reads none.
type Zones struct{ list []zone }

// zone is live rows of one fragment: at most zoneRows, or any number of them on one line.
type zone struct {
	first    rowset.RowAddr
	span     uint32 // addresses from the first to the last row, both included
	min, max int64  // of the values that are not NULL; min > max where all are
	line     bool   // the row at address first+i is live and holds min+i, for each i below span
	nulls    bool   // there are NULLs
}

const (
	zoneRows  = 1024
	zoneBytes = 40
)

// ZoneKeeper is a table that remembers zones of its columns, for as long as it has room. Its scans leave out rows of ScanRequest.Among that are not live.
type ZoneKeeper interface {
	Addressable
	// Zones returns what KeepZones was given for the column.
	Zones(column string) (*Zones, bool)
	KeepZones(column string, z *Zones)
}

// SizeBytes is the memory held.
func (z *Zones) SizeBytes() int64 { return int64(cap(z.list)) * zoneBytes }

// find returns the rows that hold one of the points, which are ascending, as far as zones tell, and the rows that have to be read: all other rows hold a value
// that is none of them.
func (z *Zones) find(points []int64) (hits, open *rowset.Set) {
	open = rowset.NewSet()
	var found rowset.Builder
	var keys []uint64
	for _, one := range z.list {
		lo := sort.Search(len(points), func(i int) bool { return points[i] >= one.min })
		hi := lo + sort.Search(len(points)-lo, func(i int) bool { return points[lo+i] > one.max })
		switch {
		case !one.nulls && lo == hi:
		case one.line:
			keys = keys[:0]
			for _, p := range points[lo:hi] {
				keys = append(keys, uint64(one.first)+uint64(p-one.min))
			}
			found.Add(keys)
		default:
			start := uint64(one.first.Offset())
			open.AddRange(one.first.Fragment(), start, start+uint64(one.span))
		}
	}
	return found.Set(), open
}

// zoneBuilder learns zones from the batches of one reader.
type zoneBuilder struct {
	list []zone
	rows int64
}

func (b *zoneBuilder) sizeBytes() int64 { return int64(cap(b.list)) * zoneBytes }

// add takes the column's values of the rows at addrs, which ascend within a fragment. The column is of a type that isZoned knows.
func (b *zoneBuilder) add(values arrow.Array, addrs []uint64) {
	switch a := values.(type) {
	case *array.Int8:
		addZones(b, a, a.Int8Values(), addrs)
	case *array.Int16:
		addZones(b, a, a.Int16Values(), addrs)
	case *array.Int32:
		addZones(b, a, a.Int32Values(), addrs)
	case *array.Int64:
		addZones(b, a, a.Int64Values(), addrs)
	case *array.Uint8:
		addZones(b, a, a.Uint8Values(), addrs)
	case *array.Uint16:
		addZones(b, a, a.Uint16Values(), addrs)
	case *array.Uint32:
		addZones(b, a, a.Uint32Values(), addrs)
	default:
		return // the rows are missing in the end, so that nothing is kept
	}
	b.rows += int64(len(addrs))
}

// isZoned says that zones may be learned of columns of type t.
func isZoned(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32:
		return true
	}
	return false
}

type zoned interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32
}

func addZones[T zoned](b *zoneBuilder, arr arrow.Array, values []T, addrs []uint64) {
	for start := 0; start < len(addrs); {
		end := min(start+zoneRows, len(addrs))
		if addrs[start]>>32 != addrs[end-1]>>32 { // rows of several fragments
			fragment := addrs[start] >> 32
			end = start + sort.Search(end-start, func(i int) bool { return addrs[start+i]>>32 != fragment })
		}
		z := zone{first: rowset.RowAddr(addrs[start]), span: uint32(addrs[end-1]-addrs[start]) + 1, min: math.MaxInt64, max: math.MinInt64}
		if arr.NullN() > 0 {
			for i := start; i < end; i++ {
				if arr.IsNull(i) {
					z.nulls = true
				} else {
					z.min, z.max = min(z.min, int64(values[i])), max(z.max, int64(values[i]))
				}
			}
		}
		if !z.nulls {
			var ascends bool
			z.min, z.max, ascends = bounds(values[start:end])
			z.line = ascends && int(z.span) == end-start
		}
		if n := len(b.list); n == 0 || !b.list[n-1].extend(z) {
			b.list = append(b.list, z)
		}
		start = end
	}
}

// extend takes in a zone that goes on with the same line.
func (z *zone) extend(next zone) bool {
	goesOn := z.line && next.line && z.first.Fragment() == next.first.Fragment() &&
		uint64(z.first)+uint64(z.span) == uint64(next.first) && z.max < next.min && z.max+1 == next.min
	if goesOn {
		z.span, z.max = z.span+next.span, next.max
	}
	return goesOn
}

// bounds returns the least and the largest value, and says that each is the one before plus 1. There is a value.
func bounds[T zoned](values []T) (least, most int64, line bool) {
	lo, hi, line := values[0], values[0], true
	for i, v := range values {
		lo, hi = min(lo, v), max(hi, v)
		line = line && int64(v)-int64(values[0]) == int64(i)
	}
	return int64(lo), int64(hi), line && lo == values[0]
}

// joinZones joins what the readers of one scan learned of all rows of a table; ok is false where rows are missing.
func joinZones(parts []truthBuilder, rows int64) (z *Zones, ok bool) {
	z = &Zones{}
	var seen int64
	for _, p := range parts {
		z.list = append(z.list, p.zones.list...)
		seen += p.zones.rows
	}
	z.list = slices.Clip(z.list)
	return z, seen == rows
}

// byZones answers the scan as far as zones tell: rows that are TRUE, and the rows that are left to read (nil = all of among). learn says that the scan should
// learn the zones.
func (c *CandidateScan) byZones(table Table, among *rowset.Set) (hits, open *rowset.Set, learn bool) {
	keeper, ok := table.(ZoneKeeper)
	if !ok || len(c.Columns) != 1 {
		return nil, among, false
	}
	at := table.Schema().FieldIndices(c.Columns[0])
	if len(at) == 0 {
		return nil, among, false
	}
	points, ok := pointsOf(c.Expr, table.Schema().Field(at[0]).Type)
	if !ok {
		return nil, among, false
	}
	z, ok := keeper.Zones(c.Columns[0])
	if !ok {
		return nil, among, among == nil && table.Rows() >= 0
	}
	hits, open = z.find(points)
	if among != nil {
		hits, open = rowset.And(hits, among), rowset.And(open, among)
	} else if int64(open.Count()) > table.Rows()/2 { // reading all of it in order is faster
		return nil, nil, false
	}
	return hits, open, false
}

// pointsOf returns the values that a condition asks for, ascending and once each, where it is "column = constant" or "column IN (constants)" over a column of
// integers, its only one, and without NULLs.
func pointsOf(cond expr.Expr, column arrow.DataType) ([]int64, bool) {
	call, ok := cond.(*expr.Call)
	if !ok || len(call.Args) != 2 || !isZoned(column) {
		return nil, false
	}
	_, okColumn := call.Args[0].(*expr.Column)
	lit, okLit := call.Args[1].(*expr.Literal)
	if !okColumn || !okLit || !lit.Value.IsValid() {
		return nil, false
	}
	var values arrow.Array
	switch call.Func {
	case "=":
		var err error
		if values, err = expr.ConvertNeedle(lit, column); err != nil {
			return nil, false
		}
	case "in":
		list, ok := lit.Value.(scalar.ListScalar)
		if !ok {
			return nil, false
		}
		values = list.GetList()
	}
	if values == nil || !arrow.TypeEqual(values.DataType(), column) || values.NullN() > 0 {
		return nil, false
	}
	points := make([]int64, 0, values.Len())
	switch a := values.(type) {
	case *array.Int8:
		points = appendInts(points, a.Int8Values())
	case *array.Int16:
		points = appendInts(points, a.Int16Values())
	case *array.Int32:
		points = appendInts(points, a.Int32Values())
	case *array.Int64:
		points = appendInts(points, a.Int64Values())
	case *array.Uint8:
		points = appendInts(points, a.Uint8Values())
	case *array.Uint16:
		points = appendInts(points, a.Uint16Values())
	case *array.Uint32:
		points = appendInts(points, a.Uint32Values())
	}
	slices.Sort(points)
	return slices.Compact(points), true
}

func appendInts[T zoned](dst []int64, values []T) []int64 {
	for _, v := range values {
		dst = append(dst, int64(v))
	}
	return dst
}
