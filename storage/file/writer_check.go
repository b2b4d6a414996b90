package file

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/storage/object"
)

const (
	checkBytesMax = 64 << 20 // larger files are not read back
	checkStepRows = 4096
	checkTakeStep = 997 // every so many rows one is read by itself as well
	checkTakeMax  = 64
)

// writeCheck keeps what invariant builds compare: the bytes that were written, and a sum over the values of each column. Reading the bytes back must give the
// same sums.
type writeCheck struct {
	object.Writer
	content []byte
	seed    maphash.Seed
	sums    []uint64 // by column
	taken   []uint64 // sums of single rows over all columns
	rows    int
}

func newWriteCheck(w object.Writer, columns int) *writeCheck {
	return &writeCheck{Writer: w, seed: maphash.MakeSeed(), sums: make([]uint64, columns)}
}

// Write writes b and keeps a copy, unless the file is too large for that.
func (c *writeCheck) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	if c.isKept() {
		c.content = append(c.content, b[:n]...)
	}
	return n, err
}

func (c *writeCheck) isKept() bool { return c.OffsetBytes() <= checkBytesMax }

// add takes the rows of a batch into the sums.
func (c *writeCheck) add(arrays []arrow.Array, rows int) {
	for i, arr := range arrays {
		c.sums[i] = c.sum(c.sums[i], arr, rows)
	}
	for row := range rows {
		if (c.rows+row)%checkTakeStep == 0 && len(c.taken) < checkTakeMax {
			c.taken = append(c.taken, c.rowSum(arrays, row))
		}
	}
	c.rows += rows
}

func (c *writeCheck) sum(sum uint64, arr arrow.Array, rows int) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for row := range rows {
		h.Reset()
		hashValue(&h, arr, row)
		sum = sum*1099511628211 + h.Sum64()
	}
	return sum
}

func (c *writeCheck) rowSum(arrays []arrow.Array, row int) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, arr := range arrays {
		hashValue(&h, arr, row)
	}
	return h.Sum64()
}

// hashValue adds one value, whatever its array looks like.
func hashValue(h *maphash.Hash, arr arrow.Array, i int) {
	if ext, ok := arr.(array.ExtensionArray); ok {
		hashValue(h, ext.Storage(), i)
		return
	}
	if d, ok := arr.(*array.Dictionary); ok && d.IsValid(i) {
		hashValue(h, d.Dictionary(), d.GetValueIndex(i))
		return
	}
	if arr.IsNull(i) || arr.DataType().ID() == arrow.NULL {
		_ = h.WriteByte(0)
		return
	}
	_ = h.WriteByte(1)
	switch a := arr.(type) {
	case *array.Boolean:
		_ = h.WriteByte(map[bool]byte{true: 1}[a.Value(i)])
	case array.BinaryLike:
		hashLength(h, a.ValueLen(i))
		at := a.ValueOffset64(i) - a.ValueOffset64(0)
		_, _ = h.Write(a.ValueBytes()[at : at+int64(a.ValueLen(i))])
	case *array.Struct:
		for f := range a.NumField() {
			hashValue(h, a.Field(f), i)
		}
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		hashLength(h, int(to-from))
		for at := from; at < to; at++ {
			hashValue(h, a.ListValues(), int(at))
		}
	default:
		width := arr.DataType().(arrow.FixedWidthDataType).Bytes() //nolint:errcheck,forcetypeassert // every other type is of fixed width
		at := (arr.Data().Offset() + i) * width
		_, _ = h.Write(arr.Data().Buffers()[1].Bytes()[at : at+width])
	}
}

func hashLength(h *maphash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = h.Write(b[:])
}

// compare reads the file back, in ranges and some rows by themselves, and says what differs.
func (c *writeCheck) compare(ctx context.Context) error {
	if !c.isKept() {
		return nil
	}
	store := object.NewMemory("written")
	w, err := store.Create(ctx, "f")
	if err != nil {
		return err
	}
	if _, err := w.Write(c.content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	f, err := store.Open(ctx, "f")
	if err != nil {
		return err
	}
	r, err := Open(ctx, f, Options{})
	if err != nil {
		return err
	}
	if r.Rows() != uint64(c.rows) {
		return fmt.Errorf("%d rows read back of %d", r.Rows(), c.rows)
	}
	cols, err := r.Columns()
	if err != nil {
		return err
	}
	for i, col := range cols {
		if err := c.compareColumn(ctx, r, col, c.sums[i]); err != nil {
			return fmt.Errorf("column %q: %w", col.Field.Name, err)
		}
	}
	return c.compareTaken(ctx, r, cols)
}

func (c *writeCheck) compareColumn(ctx context.Context, r *Reader, col Column, want uint64) error {
	sum := uint64(0)
	for from := uint64(0); from < r.Rows(); from += checkStepRows {
		b, err := r.ReadRange(ctx, []Column{col}, from, min(from+checkStepRows, r.Rows()), ReadOptions{Alloc: memory.DefaultAllocator})
		if err != nil {
			return err
		}
		sum = c.sum(sum, b.Column(0), int(b.NumRows()))
		b.Release()
	}
	if sum != want {
		return fmt.Errorf("the values read back differ from those written")
	}
	return nil
}

func (c *writeCheck) compareTaken(ctx context.Context, r *Reader, cols []Column) error {
	if len(c.taken) == 0 {
		return nil
	}
	rows := make([]uint64, len(c.taken))
	for i := range rows {
		rows[i] = uint64(i * checkTakeStep)
	}
	b, err := r.Take(ctx, cols, rows, ReadOptions{Alloc: memory.DefaultAllocator})
	if err != nil {
		return err
	}
	defer b.Release()
	for i, want := range c.taken {
		if c.rowSum(b.Columns(), i) != want {
			return fmt.Errorf("row %d read by itself differs from what was written", rows[i])
		}
	}
	return nil
}
