package exec

import (
	"context"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/mem"
)

const (
	// codedRowsMin is from how many build rows on strings are worth numbering: below, gathering them stays in the processor's cache.
	codedRowsMin = 1 << 16
	// codedStringsMax is up to how many distinct strings a column is numbered.
	codedStringsMax = 1 << 12
)

// codedStrings is a column of few distinct strings: gathering from it touches two bytes per row and a small dictionary, not offsets and bytes all over
// the memory.
type codedStrings struct {
	codes  []uint16
	values arrow.Array
	null   int // the code of NULL; -1 = no row is NULL
}

// array is the column as an Arrow array over the same memory.
func (c *codedStrings) array() arrow.Array {
	n := len(c.codes)
	var valid *memory.Buffer
	nulls := 0
	if c.null >= 0 {
		bits := make([]byte, (n+7)/8)
		for i, code := range c.codes {
			if int(code) != c.null {
				bitutil.SetBit(bits, i)
			} else {
				nulls++
			}
		}
		valid = memory.NewBufferBytes(bits)
	}
	var raw []byte
	if n > 0 {
		raw = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c.codes))), 2*n)
	}
	t := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: c.values.DataType()}
	d := array.NewDataWithDictionary(t, n, []*memory.Buffer{valid, memory.NewBufferBytes(raw)}, nulls, 0, c.values.Data().(*array.Data))
	defer d.Release()
	return array.MakeFromData(d)
}

// codable are the columns of text of the build side that the join outputs.
func codable(build Plan, wanted []joinColumn) []int {
	var out []int
	seen := make(map[int]bool)
	for _, w := range wanted {
		if w.build && !w.mark && isStringKey(build.Schema().Field(w.column).Type) && !seen[w.column] {
			out, seen[w.column] = append(out, w.column), true
		}
	}
	return out
}

// codeStrings numbers the string columns among the output columns of a large build side that did not come as codes.
func (b *joinBuild) codeStrings(ctx context.Context, wanted []joinColumn) error {
	if b.rows < codedRowsMin {
		return nil
	}
	plan, _ := b.spec.build()
	for _, c := range codable(plan, wanted) {
		if b.coded[c] != nil {
			continue
		}
		var parts []arrow.Array
		for start := 0; start < b.rows; start += buildStep {
			parts = append(parts, array.NewSlice(b.cols[c], int64(start), int64(min(start+buildStep, b.rows))))
		}
		var err error
		b.coded[c], err = b.codeColumn(ctx, b.cols[c].DataType(), parts)
		releaseArrays(parts)
		if err != nil {
			return err
		}
	}
	return nil
}

// takeCodes makes b.coded of the columns that came as codes in every batch, and leaves an empty column in their place. It takes batches over.
func (b *joinBuild) takeCodes(ctx context.Context, plan Plan, wanted []joinColumn, batches []arrow.RecordBatch) ([]arrow.RecordBatch, error) {
	b.coded = make([]*codedStrings, plan.Schema().NumFields())
	for _, c := range codable(plan, wanted) {
		t := plan.Schema().Field(c).Type
		parts := make([]arrow.Array, 0, len(batches))
		for _, r := range batches {
			if !isCoded(r.Column(c), t) {
				break
			}
			parts = append(parts, r.Column(c))
		}
		if len(parts) < len(batches) || len(parts) == 0 {
			continue
		}
		var err error
		if b.coded[c], err = b.codeColumn(ctx, t, parts); err != nil {
			return batches, err
		}
		if b.coded[c] != nil {
			b.dropColumn(c, batches)
		}
	}
	return batches, nil
}

// dropColumn puts NULLs, which take nothing to join, in the place of a column.
func (b *joinBuild) dropColumn(c int, batches []arrow.RecordBatch) {
	for i, r := range batches {
		cols := make([]arrow.Array, r.NumCols())
		fields := r.Schema().Fields()
		for k := range cols {
			cols[k] = r.Column(k)
			cols[k].Retain()
		}
		cols[c].Release()
		cols[c] = array.NewNull(int(r.NumRows()))
		fields[c].Type = arrow.Null
		batches[i] = newBatch(arrow.NewSchema(fields, nil), cols, int(r.NumRows()))
		r.Release()
	}
}

// codeColumn returns nil where the column, which is parts one after the other, has too many distinct strings.
func (b *joinBuild) codeColumn(ctx context.Context, t arrow.DataType, parts []arrow.Array) (*codedStrings, error) {
	res := b.env.Budget.Reserve()
	defer res.Free()
	g, err := newGrouper(b.env.Alloc, res, []arrow.DataType{t}, true)
	if err != nil {
		return nil, err
	}
	if err := b.res.Grow(2 * int64(b.rows)); err != nil {
		return nil, err
	}
	codes := make([]uint16, 0, b.rows)
	var ids []uint32
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ids = resized(ids, part.Len())
		if err := g.assign([]arrow.Array{part}, part.Len(), ids); err != nil {
			return nil, err
		}
		if g.count() > codedStringsMax {
			b.res.Shrink(2 * int64(b.rows))
			return nil, nil
		}
		for _, id := range ids {
			codes = append(codes, uint16(id))
		}
	}
	values, err := g.keys(b.env.Alloc, 0, g.count())
	if err != nil {
		return nil, err
	}
	out := &codedStrings{codes: codes, values: values[0], null: -1}
	for i := range g.count() {
		if values[0].IsNull(i) {
			out.null = i
		}
	}
	return out, b.res.Grow(int64(b.rows / 8)) // the validity of array
}

// take gathers rows (-1 = NULL) of a column of the build side and appends them to out, as codes where asCodes says so; scratch is the caller's.
func (b *joinBuild) take(column int, rows []int32, asCodes bool, scratch *[]int32, out []arrow.Array) ([]arrow.Array, error) {
	coded := b.coded[column]
	if coded == nil {
		return takeColumns(b.env.Alloc, b.cols[column:column+1], rows, out)
	}
	if asCodes {
		return append(out, coded.take(b.env.Alloc, rows)), nil
	}
	*scratch = resized(*scratch, len(rows))
	for i, r := range rows {
		code := int32(-1)
		if r >= 0 {
			code = int32(coded.codes[r])
		}
		(*scratch)[i] = code
	}
	return takeColumns(b.env.Alloc, []arrow.Array{coded.values}, *scratch, out)
}

// take is the rows as an array of codesType.
func (c *codedStrings) take(alloc memory.Allocator, rows []int32) arrow.Array {
	buf := memory.NewResizableBuffer(mem.Dirty(alloc))
	buf.Resize(4 * len(rows))
	codes, null, nulls := castBytes[uint32](buf.Bytes()), uint32(c.null), 0
	for i, r := range rows {
		code := null
		if r >= 0 {
			code = uint32(c.codes[r])
		} else {
			nulls++
		}
		codes[i] = code
	}
	var valid *memory.Buffer
	if nulls > 0 || c.null >= 0 {
		isNull := func(i int) bool { return rows[i] < 0 || int(codes[i]) == c.null }
		if valid, nulls = validBuffer(alloc, len(rows), isNull); valid != nil {
			for i := range codes {
				if isNull(i) {
					codes[i] = 0
				}
			}
		}
	}
	t := codesType(c.values.DataType())
	d := array.NewDataWithDictionary(t, len(rows), []*memory.Buffer{valid, buf}, nulls, 0, c.values.Data().(*array.Data))
	defer d.Release()
	buf.Release()
	if valid != nil {
		valid.Release()
	}
	return array.MakeFromData(d)
}
