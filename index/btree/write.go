package btree

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"

	"github.com/lakesql/lakesql/index/key"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
)

// Pages go to the file together: so many, or as many as have that much text.
const (
	pagesAtATime     = 16
	textBytesAtATime = 4 << 20
)

// pageWriter cuts rows, which come in order, into pages, and remembers their bounds.
type pageWriter struct {
	codec  key.Codec
	rows   int // of a page
	out    *file.Writer
	schema *arrow.Schema

	// The rows of the next pages: NULLs, then values.
	nulls int
	words []uint64 // word codecs
	text  []byte   // wide ones: the bytes of the values
	ends  []int    // and where each one ends
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
	switch {
	case isNull:
		p.nulls++
	case p.codec.IsWide():
		p.text = append(p.text, k.Bytes...)
		p.ends = append(p.ends, len(p.text))
	default:
		p.words = append(p.words, k.Word)
	}
	p.ids = append(p.ids, row)
	if len(p.ids)%p.rows == 0 && (len(p.ids) >= pagesAtATime*p.rows || len(p.text) >= textBytesAtATime) {
		return p.flush(ctx)
	}
	return nil
}

// value is value i of the pages at hand.
func (p *pageWriter) value(i int) key.Key {
	if !p.codec.IsWide() {
		return key.Key{Word: p.words[i]}
	}
	from := 0
	if i > 0 {
		from = p.ends[i-1]
	}
	return key.Key{Bytes: append([]byte(nil), p.text[from:p.ends[i]]...)}
}

// flush writes the pages at hand.
func (p *pageWriter) flush(ctx context.Context) error {
	if len(p.ids) == 0 {
		return nil
	}
	for lo := 0; lo < len(p.ids); lo += p.rows {
		hi := min(lo+p.rows, len(p.ids))
		nulls := min(max(p.nulls-lo, 0), hi-lo)
		p.nullCounts = append(p.nullCounts, uint32(nulls)) //nolint:gosec // a page has fewer rows
		if nulls > 0 {
			p.noMin++
		} else {
			p.mins = append(p.mins, p.value(lo-p.nulls))
		}
		if nulls == hi-lo {
			p.noMax++
		} else {
			p.maxs = append(p.maxs, p.value(hi-p.nulls-1))
		}
	}
	alloc := compute.GetAllocator(ctx)
	var values arrow.Array
	var err error
	if p.codec.IsWide() {
		values, err = p.codec.TextArray(alloc, p.nulls, p.text, p.ends)
	} else {
		values, err = p.codec.WordArray(alloc, p.nulls, p.words)
	}
	if err != nil {
		return err
	}
	ids := array.NewUint64Builder(alloc)
	defer ids.Release()
	ids.AppendValues(p.ids, nil)
	p.nulls, p.words, p.text, p.ends, p.ids = 0, p.words[:0], p.text[:0], p.ends[:0], p.ids[:0]
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
