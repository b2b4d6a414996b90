package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
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
}

// codeStrings numbers the string columns among the output columns of the build side.
func (b *joinBuild) codeStrings(ctx context.Context, wanted []joinColumn) error {
	b.coded = make([]*codedStrings, len(b.cols))
	if b.rows < codedRowsMin {
		return nil
	}
	var columns []int
	for _, w := range wanted {
		if w.build && !w.mark && isStringKey(b.cols[w.column].DataType()) {
			columns = append(columns, w.column)
		}
	}
	for _, c := range columns {
		if b.coded[c] != nil {
			continue
		}
		var err error
		if b.coded[c], err = b.codeColumn(ctx, b.cols[c]); err != nil {
			return err
		}
	}
	return nil
}

// codeColumn returns nil where the column has too many distinct strings.
func (b *joinBuild) codeColumn(ctx context.Context, c arrow.Array) (*codedStrings, error) {
	res := b.env.Budget.Reserve()
	defer res.Free()
	g, err := newGrouper(b.env.Alloc, res, []arrow.DataType{c.DataType()}, true)
	if err != nil {
		return nil, err
	}
	if err := b.res.Grow(2 * int64(b.rows)); err != nil {
		return nil, err
	}
	codes := make([]uint16, 0, b.rows)
	ids := make([]uint32, buildStep)
	for start := 0; start < b.rows; start += buildStep {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := min(start+buildStep, b.rows)
		part := array.NewSlice(c, int64(start), int64(end))
		err := g.assign([]arrow.Array{part}, end-start, ids[:end-start])
		part.Release()
		if err != nil {
			return nil, err
		}
		if g.count() > codedStringsMax {
			b.res.Shrink(2 * int64(b.rows))
			return nil, nil
		}
		for _, id := range ids[:end-start] {
			codes = append(codes, uint16(id))
		}
	}
	values, err := g.keys(b.env.Alloc, 0, g.count())
	if err != nil {
		return nil, err
	}
	return &codedStrings{codes: codes, values: values[0]}, nil
}

// take gathers rows (-1 = NULL) of a column of the build side and appends them to out; scratch is the caller's.
func (b *joinBuild) take(column int, rows []int32, scratch *[]int32, out []arrow.Array) ([]arrow.Array, error) {
	coded := b.coded[column]
	if coded == nil {
		return takeColumns(b.env.Alloc, b.cols[column:column+1], rows, out)
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
