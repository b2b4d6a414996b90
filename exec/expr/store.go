package expr

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
)

// strWriter collects strings of a result.
type strWriter struct {
	s   *state
	off []int32
	buf []byte

	paidBytes    int // of buf
	droppedBytes int // of the buffer before it: garbage, but not collected yet
}

func (s *state) strWriter(n int) *strWriter {
	w := &strWriter{s: s, off: makeSlice[int32](s.arena, n+1), buf: make([]byte, 0, n*8)}
	w.off[0] = 0
	return w
}

// end closes value i; what was appended to buf since the last end belongs to it.
func (w *strWriter) end(i int) error {
	if len(w.buf) > math.MaxInt32 {
		return errs.New(errs.ErrMemoryLimit, "text of one batch exceeds %d bytes", math.MaxInt32)
	}
	w.off[i+1] = int32(len(w.buf))
	if more := cap(w.buf) - w.paidBytes; more > 0 {
		w.paidBytes += more
		if err := w.s.held.Grow(int64(more)); err != nil {
			return err
		}
	}
	last := len(w.buf) - int(w.off[i])
	if len(w.buf) >= largeTextBytes && cap(w.buf)-len(w.buf) < last && i+2 < len(w.off) {
		return w.grow(last)
	}
	return nil
}

// largeTextBytes: the buffer of more text grows here, paid for before it does, as far as the next value is no longer than the last.
const largeTextBytes = 1 << 20

func (w *strWriter) grow(next int) error {
	size := len(w.buf) + len(w.buf)/2 + next
	if err := w.s.held.Grow(int64(size)); err != nil {
		return err
	}
	buf := make([]byte, len(w.buf), size)
	copy(buf, w.buf)
	w.s.held.Shrink(int64(w.droppedBytes))
	w.droppedBytes = w.paidBytes
	w.buf, w.paidBytes = buf, size
	return nil
}

func (w *strWriter) vector(t arrow.DataType, n int, valid []byte) vector {
	return vector{t: t, c: classString, n: n, valid: valid, off: w.off, data: w.buf}
}

// expand repeats a constant so that it has n values.
func (s *state) expand(v *vector, n int) (vector, error) {
	if !v.konst || (v.n == n && n == 1) {
		out := *v
		out.konst = false
		return out, nil
	}
	idx := makeSlice[int32](s.arena, n)
	clear(idx)
	one := *v
	one.konst = false
	return s.gather(&one, idx)
}

// store makes an Arrow array of type t from a vector of the class that t loads into. The caller releases it.
func (s *state) store(v *vector, t arrow.DataType, n int) (arrow.Array, error) {
	if v.src != nil && !v.konst && arrow.TypeEqual(v.src.DataType(), t) {
		v.src.Retain()
		return v.src, nil
	}
	if v.c == classNull {
		return makeNullsIn(s.alloc(), t, n), nil
	}
	if v.konst && v.null(0) {
		return makeNullsIn(s.alloc(), t, n), nil
	}
	full, err := s.expand(v, n)
	if err != nil {
		return nil, err
	}
	v = &full
	if v.c == classNested {
		if !arrow.TypeEqual(v.arr.DataType(), t) {
			return nil, errs.New(errs.ErrInternal, "a value of type %s where %s was promised", v.arr.DataType(), t)
		}
		return TakeArray(s.alloc(), v.arr, s.rangeIndex(n))
	}
	return s.storeFlat(v, t, n)
}

func (s *state) rangeIndex(n int) []int32 {
	idx := makeSlice[int32](s.arena, n)
	for i := range idx {
		idx[i] = int32(i)
	}
	return idx
}

// storeFlat copies a vector of n values that is no constant and not nested.
func (s *state) storeFlat(v *vector, t arrow.DataType, n int) (arrow.Array, error) {
	alloc := s.alloc()
	nulls := 0
	var buffers []*memory.Buffer
	defer func() {
		for _, b := range buffers {
			if b != nil {
				b.Release()
			}
		}
	}()
	if v.valid != nil {
		nulls = n - countBits(v.valid, n)
	}
	if nulls > 0 {
		buffers = append(buffers, copyBuffer(alloc, v.valid[:bitutil.BytesForBits(int64(n))]))
	} else {
		buffers = append(buffers, nil)
	}
	values, err := s.storeValues(alloc, v, t, n)
	if err != nil {
		return nil, err
	}
	buffers = append(buffers, values...)
	d := array.NewData(t, n, buffers, nil, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

func copyBuffer(alloc memory.Allocator, b []byte) *memory.Buffer {
	buf := newBuffer(alloc, len(b))
	copy(buf.Bytes(), b)
	return buf
}

// newBuffer returns n bytes that hold anything.
func newBuffer(alloc memory.Allocator, n int) *memory.Buffer {
	buf := memory.NewResizableBuffer(mem.Dirty(alloc))
	buf.Resize(n)
	return buf
}

func copySlice[T any](alloc memory.Allocator, src []T) *memory.Buffer {
	buf := newBuffer(alloc, len(src)*sizeOf[T]())
	copy(castSlice[T](buf.Bytes()), src)
	return buf
}

func narrow[D, S int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](alloc memory.Allocator, src []S) *memory.Buffer {
	buf := newBuffer(alloc, len(src)*sizeOf[D]())
	dst := castSlice[D](buf.Bytes())
	for i, x := range src {
		dst[i] = D(x)
	}
	return buf
}

// storeValues makes the buffers behind the validity. Values under NULL are written as they are.
func (s *state) storeValues(alloc memory.Allocator, v *vector, t arrow.DataType, n int) ([]*memory.Buffer, error) { //nolint:funlen // a flat switch
	one := func(b *memory.Buffer) ([]*memory.Buffer, error) { return []*memory.Buffer{b}, nil }
	switch t.ID() {
	case arrow.BOOL:
		return one(copyBuffer(alloc, v.bits[:bitutil.BytesForBits(int64(n))]))
	case arrow.INT8:
		return one(narrow[int8](alloc, v.i[:n]))
	case arrow.INT16:
		return one(narrow[int16](alloc, v.i[:n]))
	case arrow.INT32, arrow.DATE32:
		return one(narrow[int32](alloc, v.i[:n]))
	case arrow.INT64:
		return one(copySlice(alloc, v.i[:n]))
	case arrow.UINT8:
		return one(narrow[uint8](alloc, v.u[:n]))
	case arrow.UINT16:
		return one(narrow[uint16](alloc, v.u[:n]))
	case arrow.UINT32:
		return one(narrow[uint32](alloc, v.u[:n]))
	case arrow.UINT64:
		return one(copySlice(alloc, v.u[:n]))
	case arrow.FLOAT16:
		half := makeSlice[float16.Num](s.arena, n)
		for i, x := range v.f[:n] {
			half[i] = float16.New(float32(x))
		}
		return one(copySlice(alloc, half))
	case arrow.FLOAT32:
		return one(narrow[float32](alloc, v.f[:n]))
	case arrow.FLOAT64:
		return one(copySlice(alloc, v.f[:n]))
	case arrow.DECIMAL128:
		return one(copySlice(alloc, v.d[:n]))
	case arrow.DECIMAL256:
		if v.c == classDecimal {
			return one(copySlice(alloc, s.wideAll(v.d[:n])))
		}
		return one(copySlice(alloc, v.w[:n]))
	case arrow.DECIMAL64:
		return one(narrow[int64](alloc, s.lowAll(v.d[:n])))
	case arrow.DECIMAL32:
		return one(narrow[int32](alloc, s.lowAll(v.d[:n])))
	case arrow.DATE64:
		return one(scaled(alloc, v.i[:n], 86400*1000, 1))
	case arrow.TIMESTAMP:
		return one(storeUnit(alloc, v.i[:n], t.(*arrow.TimestampType).Unit))
	case arrow.DURATION:
		return one(storeUnit(alloc, v.i[:n], t.(*arrow.DurationType).Unit))
	case arrow.TIME64:
		return one(storeUnit(alloc, v.i[:n], t.(*arrow.Time64Type).Unit))
	case arrow.TIME32:
		b := storeUnit(alloc, v.i[:n], t.(*arrow.Time32Type).Unit)
		defer b.Release()
		return one(narrow[int32](alloc, castSlice[int64](b.Bytes())))
	case arrow.STRING, arrow.BINARY:
		off, data := s.rebase(v, n)
		return []*memory.Buffer{copySlice(alloc, off), copyBuffer(alloc, data)}, nil
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		off, data := s.rebase(v, n)
		return []*memory.Buffer{narrow[int64](alloc, off), copyBuffer(alloc, data)}, nil
	case arrow.FIXED_SIZE_BINARY:
		return s.storeFixed(alloc, v, t.(*arrow.FixedSizeBinaryType).ByteWidth, n)
	}
	return nil, errs.New(errs.ErrUnsupported, "values of type %s cannot be computed", t)
}

func (s *state) wideAll(d []decimal128.Num) []decimal256Num {
	w := makeSlice[decimal256Num](s.arena, len(d))
	for i, x := range d {
		w[i] = wideOf(x)
	}
	return w
}

func (s *state) lowAll(d []decimal128.Num) []int64 {
	out := makeSlice[int64](s.arena, len(d))
	for i, x := range d {
		out[i] = int64(x.LowBits())
	}
	return out
}

func (s *state) storeFixed(alloc memory.Allocator, v *vector, width, n int) ([]*memory.Buffer, error) {
	buf := newBuffer(alloc, n*width)
	b := buf.Bytes()
	clear(b)
	for i := range n {
		if !v.null(i) {
			if x := v.str(i); len(x) == width {
				copy(b[i*width:], x)
			} else {
				buf.Release()
				return nil, errs.New(errs.ErrInvalid, "a value of %d bytes does not fit BINARY(%d)", len(x), width)
			}
		}
	}
	return []*memory.Buffer{buf}, nil
}

// rebase makes the offsets start at 0 and cuts data to what they use.
func (s *state) rebase(v *vector, n int) ([]int32, []byte) {
	off := v.off[:n+1]
	base := off[0]
	data := v.data
	if n > 0 || len(data) > 0 {
		data = data[base:off[n]]
	}
	if base == 0 {
		return off, data
	}
	out := makeSlice[int32](s.arena, n+1)
	for i, x := range off {
		out[i] = x - base
	}
	return out, data
}

func scaled(alloc memory.Allocator, src []int64, mul, div int64) *memory.Buffer {
	buf := newBuffer(alloc, len(src)*8)
	dst := castSlice[int64](buf.Bytes())
	for i, x := range src {
		if div > 1 {
			x = floorDiv(x, div)
		}
		dst[i] = x * mul
	}
	return buf
}

func storeUnit(alloc memory.Allocator, micros []int64, unit arrow.TimeUnit) *memory.Buffer {
	if scale := unitScale(unit); scale >= 1e6 {
		return scaled(alloc, micros, scale/1e6, 1)
	} else {
		return scaled(alloc, micros, 1, 1e6/scale)
	}
}
