package exec

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/exec/expr"
	"github.com/lakesql/lakesql/internal/errs"
)

// rowsMax is how many rows one sort or one side of a join may hold: positions are int32.
const rowsMax = 1<<31 - 2

// newBatch makes a batch of cols, which it takes over.
func newBatch(schema *arrow.Schema, cols []arrow.Array, rows int) arrow.RecordBatch {
	b := array.NewRecordBatch(fitSchema(schema, cols), cols, int64(rows))
	releaseArrays(cols)
	return b
}

// withSchema gives a batch the names of schema; the columns stay. It takes b over.
func withSchema(schema *arrow.Schema, b arrow.RecordBatch) arrow.RecordBatch {
	if b.Schema() == schema {
		return b
	}
	out := array.NewRecordBatch(fitSchema(schema, b.Columns()), b.Columns(), b.NumRows())
	b.Release()
	return out
}

// takeColumns gathers the rows idx (-1 = NULL) of each column and appends them to out. A refused allocation panics; nothing stays held then either.
func takeColumns(alloc memory.Allocator, cols []arrow.Array, idx []int32, out []arrow.Array) (_ []arrow.Array, err error) {
	before, done := len(out), false
	defer func() {
		if !done {
			releaseArrays(out[before:])
		}
	}()
	for _, c := range cols {
		t, err := expr.TakeArray(alloc, c, idx)
		if err != nil {
			return out[:before], err
		}
		out = append(out, t)
	}
	done = true
	return out, nil
}

// takeBatch gathers the rows idx of b, which it leaves to the caller.
func takeBatch(alloc memory.Allocator, b arrow.RecordBatch, idx []int32) (arrow.RecordBatch, error) {
	cols, err := takeColumns(alloc, b.Columns(), idx, make([]arrow.Array, 0, b.NumCols()))
	if err != nil {
		return nil, err
	}
	return newBatch(b.Schema(), cols, len(idx)), nil
}

// concatColumns joins the columns of batches, which it takes over, one column at a time so that little is there twice. The caller releases the
// result. No batches give columns without rows. ErrUnsupported where a column has more bytes than one array can address.
func concatColumns(alloc memory.Allocator, schema *arrow.Schema, batches []arrow.RecordBatch) ([]arrow.Array, error) {
	parts := make([][]arrow.Array, schema.NumFields())
	for _, b := range batches {
		for i, c := range b.Columns() {
			c.Retain()
			parts[i] = append(parts[i], c)
		}
	}
	releaseBatches(batches)
	cols, done := make([]arrow.Array, 0, schema.NumFields()), false
	defer func() { // a refused allocation panics
		for _, p := range parts {
			releaseArrays(p)
		}
		if !done {
			releaseArrays(cols)
		}
	}()
	for i, p := range parts {
		if err := expandAll(alloc, schema.Field(i).Type, p); err != nil {
			return nil, err
		}
		c, err := concatArrays(alloc, schema.Field(i).Type, p)
		if errors.Is(err, errs.ErrMemoryLimit) {
			return nil, err
		}
		if err != nil {
			return nil, errs.New(errs.ErrUnsupported, "column %q: %w", schema.Field(i).Name, err)
		}
		cols = append(cols, c)
		releaseArrays(p)
		parts[i] = nil
	}
	done = true
	return cols, nil
}

func concatArrays(alloc memory.Allocator, t arrow.DataType, parts []arrow.Array) (arrow.Array, error) {
	switch len(parts) {
	case 0:
		return array.MakeArrayOfNull(alloc, t, 0), nil
	case 1:
		parts[0].Retain()
		return parts[0], nil
	}
	return array.Concatenate(parts, alloc)
}

// batchBytes is what keeping b costs.
func batchBytes(b arrow.RecordBatch) int64 {
	n := int64(64)
	for _, c := range b.Columns() {
		n += arrayBytes(c)
	}
	return n
}

// arrayBytes is about the memory of a's own rows: a slice of a large array counts its share.
func arrayBytes(a arrow.Array) int64 {
	const headerBytes = 128
	return headerBytes + dataBytes(a.Data())
}

func dataBytes(d arrow.ArrayData) int64 {
	rows := int64(d.Len())
	n := rows/8 + 1
	switch t := d.DataType().(type) {
	case *arrow.BooleanType:
		n += rows/8 + 1
	case arrow.FixedWidthDataType:
		n += rows * int64(t.Bytes())
	case arrow.BinaryDataType:
		n += rows*int64(t.Layout().Buffers[1].ByteWidth) + stringBytes(d)
	default:
		n += int64(d.SizeInBytes())
	}
	return n
}

// stringBytes is the length of the values of a variable-width array.
func stringBytes(d arrow.ArrayData) int64 {
	if d.Len() == 0 || len(d.Buffers()) < 3 || d.Buffers()[1] == nil {
		return 0
	}
	switch d.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		o := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset():]
		return int64(o[d.Len()] - o[0])
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		o := arrow.Int64Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset():]
		return o[d.Len()] - o[0]
	}
	return int64(d.SizeInBytes())
}

// slicer hands out the rows of one large batch in pieces of at most size rows.
type slicer struct {
	batch arrow.RecordBatch
	at    int64
}

func (s *slicer) next(size int) (arrow.RecordBatch, bool) {
	if s.batch == nil {
		return nil, false
	}
	rows := s.batch.NumRows()
	if s.at == 0 && rows <= int64(size) {
		b := s.batch
		s.batch = nil
		return b, b.NumRows() > 0
	}
	end := min(s.at+int64(size), rows)
	b := s.batch.NewSlice(s.at, end)
	s.at = end
	if end == rows {
		s.close()
	}
	return b, true
}

func (s *slicer) set(b arrow.RecordBatch) { s.batch, s.at = b, 0 }

func (s *slicer) close() {
	if s.batch != nil {
		s.batch.Release()
		s.batch = nil
	}
}
