package btree

import (
	"bytes"
	"context"
	"fmt"
	"sort"
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

// The files of a segment.
const (
	DataFileName   = "page_data.lance"
	LookupFileName = "page_lookup.lance"
)

const (
	batchSizeKey       = "batch_size"
	partitionedKey     = "range_partitioned"
	pageRowsDefault    = 4096
	pageRowsMax        = 1 << 24 // no writer comes near; bounds what one page decodes to
	lookupRowsAtATime  = 8192
	boundOverheadBytes = 80 // two keys and their flags
)

// page is the bounds of one page.
type page struct {
	min, max       key.Key
	noMin, noMax   bool // NULL in the file: the page starts with NULLs, or holds nothing else
	nulls, pageIdx uint32
}

// bounds is what page_lookup tells, in memory.
type bounds struct {
	codec    key.Codec
	pages    []page
	pageRows uint64
	rows     uint64 // of page_data
	nullRows uint64 // they are the first
	held     *mem.Reservation
}

// readBounds reads page_lookup and checks it against the number of rows of page_data.
func readBounds(ctx context.Context, lookup *file.Reader, rows uint64, held *mem.Reservation) (*bounds, error) {
	b := &bounds{rows: rows, held: held}
	if err := b.readMetadata(lookup); err != nil {
		return nil, err
	}
	cols, err := index.Columns(lookup, "min", "max", "null_count", "page_idx")
	if err != nil {
		return nil, err
	}
	if b.codec, err = key.NewCodec(cols[0].Field.Type); err != nil {
		return nil, err
	}
	if !arrow.TypeEqual(cols[0].Field.Type, cols[1].Field.Type) {
		return nil, errs.Corrupt("schema", -1, "min is %s, max is %s", cols[0].Field.Type, cols[1].Field.Type)
	}
	want := (rows + b.pageRows - 1) / b.pageRows
	if lookup.Rows() != want && !(rows == 0 && lookup.Rows() == 1) {
		return nil, errs.Corrupt("page bounds", -1, "%d pages of %d rows for %d rows", lookup.Rows(), b.pageRows, rows)
	}
	for row := uint64(0); row < want; row += lookupRowsAtATime {
		batch, err := lookup.ReadRange(ctx, cols, row, min(row+lookupRowsAtATime, want), file.ReadOptions{Alloc: compute.GetAllocator(ctx)})
		if err != nil {
			return nil, err
		}
		err = b.append(batch)
		batch.Release()
		if err != nil {
			return nil, err
		}
	}
	return b, b.check()
}

func (b *bounds) readMetadata(lookup *file.Reader) error {
	if v, ok := lookup.Metadata(partitionedKey); ok && string(v) == "true" {
		return errs.New(errs.ErrUnsupported, "a range-partitioned BTREE index")
	}
	b.pageRows = pageRowsDefault
	if v, ok := lookup.Metadata(batchSizeKey); ok {
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil || n == 0 || n > pageRowsMax {
			return errs.Corrupt("schema metadata", -1, "%s is %q", batchSizeKey, v)
		}
		b.pageRows = n
	}
	return nil
}

func (b *bounds) append(batch arrow.RecordBatch) error {
	mins, maxs := batch.Column(0), batch.Column(1)
	nulls, ok := batch.Column(2).(*array.Uint32)
	if !ok {
		return errs.Corrupt("schema", -1, "null_count is %s", batch.Column(2).DataType())
	}
	idx, ok := batch.Column(3).(*array.Uint32)
	if !ok {
		return errs.Corrupt("schema", -1, "page_idx is %s", batch.Column(3).DataType())
	}
	if err := b.held.Grow(int64(batch.NumRows()) * boundOverheadBytes); err != nil {
		return err
	}
	for i := range int(batch.NumRows()) {
		p := page{noMin: mins.IsNull(i), noMax: maxs.IsNull(i), nulls: nulls.Value(i), pageIdx: idx.Value(i)}
		if !p.noMin {
			p.min = b.codec.At(mins, i)
		}
		if !p.noMax {
			p.max = b.codec.At(maxs, i)
		}
		if err := b.held.Grow(int64(len(p.min.Bytes) + len(p.max.Bytes))); err != nil {
			return err
		}
		b.pages = append(b.pages, p)
	}
	return nil
}

// check is I1 and I2 on the bounds.
func (b *bounds) check() error {
	inNulls := true // every page so far holds NULLs alone
	var last *key.Key
	for k := range b.pages {
		p := &b.pages[k]
		rows := b.pageEnd(k) - b.pageStart(k)
		switch {
		case p.pageIdx != uint32(k):
			return errs.Corrupt("page bounds", -1, "row %d is of page %d", k, p.pageIdx)
		case uint64(p.nulls) > rows || p.nulls > 0 && !inNulls:
			return errs.Corrupt("page bounds", -1, "page %d has %d NULLs among %d rows", k, p.nulls, rows)
		}
		b.nullRows += uint64(p.nulls)
		if uint64(p.nulls) == rows {
			continue
		}
		inNulls = false
		if p.noMax || p.noMin && p.nulls == 0 {
			return errs.Corrupt("page bounds", -1, "page %d has values and no bounds", k)
		}
		lo := &p.min
		if p.nulls > 0 {
			p.noMin, lo = true, &p.max // whatever stands there, the page starts with NULLs
		}
		if last != nil && b.codec.Compare(*last, *lo) > 0 || b.codec.Compare(*lo, p.max) > 0 {
			return errs.Corrupt("page bounds", -1, "page %d begins below its predecessor's end or ends below its begin", k)
		}
		last = &p.max
	}
	return nil
}

func (b *bounds) pageStart(k int) uint64 { return uint64(k) * b.pageRows }
func (b *bounds) pageEnd(k int) uint64   { return min(uint64(k+1)*b.pageRows, b.rows) }

// candidates returns the pages [first, end) that may hold keys of r; end <= first = none.
func (b *bounds) candidates(r key.Range) (first, end int) {
	lead := int(b.nullRows / b.pageRows) // pages of NULLs alone
	n := len(b.pages) - lead
	first = lead + sort.Search(n, func(i int) bool { return !b.codec.Below(b.pages[lead+i].max, r) })
	end = lead + sort.Search(n, func(i int) bool {
		p := &b.pages[lead+i]
		return !p.noMin && b.codec.Above(p.min, r)
	})
	return first, end
}

// pageValues are the keys of one page, NULLs left out.
type pageValues struct {
	dict  *key.Dict
	nulls uint64 // rows before the first key
}

// readValues decodes the values of page k and checks them (I2).
func (b *bounds) readValues(ctx context.Context, data *file.Reader, col []file.Column, k int) (*pageValues, error) {
	batch, err := data.ReadRange(ctx, col, b.pageStart(k), b.pageEnd(k), file.ReadOptions{Alloc: compute.GetAllocator(ctx)})
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	values := batch.Column(0)
	dict := key.NewDict(b.codec, nil)
	if err := dict.Append(values); err != nil {
		return nil, err
	}
	dict.Finish()
	section := fmt.Sprintf("page %d", k)
	if !dict.IsSorted() {
		return nil, errs.Corrupt(section, -1, "its values do not ascend")
	}
	nulls := uint64(len(dict.NullRows()))
	if nulls != uint64(b.pages[k].nulls) || nulls > 0 && uint64(dict.NullRows()[nulls-1]) != nulls-1 {
		return nil, errs.Corrupt(section, -1, "its %d NULLs are not the first %d values", nulls, b.pages[k].nulls)
	}
	return &pageValues{dict: dict, nulls: nulls}, nil
}

// format renders the bounds of a page for people.
func (b *bounds) format(k int) string {
	p := b.pages[k]
	var out bytes.Buffer
	fmt.Fprintf(&out, "rows %d..%d", b.pageStart(k), b.pageEnd(k))
	if !p.noMin {
		fmt.Fprintf(&out, " min %s", b.codec.Format(p.min))
	}
	if !p.noMax {
		fmt.Fprintf(&out, " max %s", b.codec.Format(p.max))
	}
	if p.nulls > 0 {
		fmt.Fprintf(&out, " nulls %d", p.nulls)
	}
	return out.String()
}
