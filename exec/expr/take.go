package expr

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakesql/lakesql/internal/errs"
)

type decimal256Num = decimal256.Num

func sizeOf[T any]() int {
	var z T
	return int(unsafe.Sizeof(z))
}

// FilterBatch returns the rows of batch at the positions sel. The caller releases it.
func FilterBatch(env *Env, batch arrow.RecordBatch, sel []int32) (arrow.RecordBatch, error) {
	alloc := env.alloc()
	cols := make([]arrow.Array, 0, batch.NumCols())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i := range int(batch.NumCols()) {
		c, err := TakeArray(alloc, batch.Column(i), sel)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return array.NewRecordBatch(batch.Schema(), cols, int64(len(sel))), nil
}

// TakeArray gathers arr[idx[i]] for every i; an index of -1 gives NULL. Any type goes, dictionaries keep their codes. The caller releases the
// result. An index outside arr is ErrInternal.
func TakeArray(alloc memory.Allocator, arr arrow.Array, idx []int32) (arrow.Array, error) {
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	data, err := takeData(alloc, arr, idx)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

// checkIndex finds out of range positions and whether any is -1.
func checkIndex(n int, idx []int32) (hasNull bool, err error) {
	neg := int32(0)
	for _, p := range idx {
		if int(p) >= n || p < -1 {
			return false, errs.New(errs.ErrInternal, "position %d of a column of %d rows", p, n)
		}
		neg |= p
	}
	return neg < 0, nil
}

func takeData(alloc memory.Allocator, arr arrow.Array, idx []int32) (arrow.ArrayData, error) {
	hasNull, err := checkIndex(arr.Len(), idx)
	if err != nil {
		return nil, err
	}
	if arr.DataType().ID() == arrow.NULL {
		return array.NewData(arrow.Null, len(idx), []*memory.Buffer{nil}, nil, len(idx), 0), nil
	}
	if ext, ok := arr.(array.ExtensionArray); ok {
		inner, err := takeData(alloc, ext.Storage(), idx)
		if err != nil {
			return nil, err
		}
		defer inner.Release()
		return array.NewData(arr.DataType(), inner.Len(), inner.Buffers(), inner.Children(), inner.NullN(), 0), nil
	}
	t := taker{alloc: alloc, arr: arr, idx: idx, hasNull: hasNull}
	defer t.release()
	t.takeValidity()
	if err := t.takeValues(); err != nil {
		return nil, err
	}
	if dict, ok := arr.(*array.Dictionary); ok {
		return array.NewDataWithDictionary(arr.DataType(), len(idx), t.buffers, t.nulls, 0, dict.Dictionary().Data().(*array.Data)), nil
	}
	return array.NewData(arr.DataType(), len(idx), t.buffers, t.children, t.nulls, 0), nil
}

type taker struct {
	alloc    memory.Allocator
	arr      arrow.Array
	idx      []int32
	hasNull  bool // some index is -1
	nulls    int
	buffers  []*memory.Buffer
	children []arrow.ArrayData
}

// release drops the taker's own references; the ArrayData made from them has its own.
func (t *taker) release() {
	for _, b := range t.buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range t.children {
		c.Release()
	}
}

func (t *taker) takeValidity() {
	if !t.hasNull && t.arr.NullN() == 0 {
		t.buffers = append(t.buffers, nil)
		return
	}
	n := len(t.idx)
	buf := newBuffer(t.alloc, int(bitutil.BytesForBits(int64(n))))
	dst := buf.Bytes()
	clear(dst)
	var src []byte
	if t.arr.NullN() > 0 {
		src = t.arr.NullBitmapBytes()
	}
	count := takeBits(dst, src, t.arr.Data().Offset(), t.idx)
	t.nulls = n - count
	t.buffers = append(t.buffers, buf)
}

// takeBits gathers bits; a nil src is all ones; -1 gives 0. It returns how many are set.
func takeBits(dst, src []byte, offset int, idx []int32) int {
	count := 0
	for i, p := range idx {
		if p < 0 {
			continue
		}
		bit := byte(1)
		if src != nil {
			q := offset + int(p)
			bit = src[q>>3] >> (q & 7) & 1
		}
		dst[i>>3] |= bit << (i & 7)
		count += int(bit)
	}
	return count
}

// gatherFixed copies src[idx[i]]; -1 gives the zero value.
func gatherFixed[T any](dst, src []T, idx []int32) {
	if len(src) == 0 {
		clear(dst[:len(idx)])
		return
	}
	var zero T
	for i, p := range idx {
		if p >= 0 {
			dst[i] = src[p]
		} else {
			dst[i] = zero
		}
	}
}

func takeFixed[T any](t *taker, raw []byte) {
	src := castSlice[T](raw)
	off := t.arr.Data().Offset()
	buf := newBuffer(t.alloc, len(t.idx)*sizeOf[T]())
	gatherFixed(castSlice[T](buf.Bytes()), src[min(off, len(src)):], t.idx)
	t.buffers = append(t.buffers, buf)
}

func (t *taker) takeValues() error {
	data := t.arr.Data()
	switch a := t.arr.(type) {
	case *array.Boolean:
		buf := newBuffer(t.alloc, int(bitutil.BytesForBits(int64(len(t.idx)))))
		clear(buf.Bytes())
		takeBits(buf.Bytes(), bufferBytes(data, 1), data.Offset(), t.idx)
		t.buffers = append(t.buffers, buf)
		return nil
	case *array.String, *array.Binary:
		return takeStrings[int32](t, data)
	case *array.LargeString, *array.LargeBinary:
		return takeStrings[int64](t, data)
	case *array.StringView, *array.BinaryView:
		t.takeWidth(bufferBytes(data, 1), arrow.ViewHeaderSizeBytes)
		for _, b := range data.Buffers()[2:] {
			b.Retain()
			t.buffers = append(t.buffers, b)
		}
		return nil
	case *array.List:
		return takeList[int32](t, a)
	case *array.LargeList:
		return takeList[int64](t, a)
	case *array.Map:
		return takeList[int32](t, a)
	case *array.FixedSizeList:
		return t.takeFixedList(a)
	case *array.Struct:
		for i := range a.NumField() {
			c, err := takeData(t.alloc, a.Field(i), t.idx)
			if err != nil {
				return err
			}
			t.children = append(t.children, c)
		}
		return nil
	case *array.Dictionary:
		t.takeWidth(bufferBytes(data, 1), a.Indices().DataType().(arrow.FixedWidthDataType).Bytes())
		return nil
	}
	if w, ok := t.arr.DataType().(arrow.FixedWidthDataType); ok {
		t.takeWidth(bufferBytes(data, 1), w.Bytes())
		return nil
	}
	return errs.New(errs.ErrUnsupported, "columns of type %s cannot be filtered, joined or sorted", t.arr.DataType())
}

func (t *taker) takeWidth(raw []byte, width int) {
	switch width {
	case 1:
		takeFixed[uint8](t, raw)
	case 2:
		takeFixed[uint16](t, raw)
	case 4:
		takeFixed[uint32](t, raw)
	case 8:
		takeFixed[uint64](t, raw)
	case 16:
		takeFixed[[2]uint64](t, raw)
	case 32:
		takeFixed[[4]uint64](t, raw)
	default:
		buf := newBuffer(t.alloc, len(t.idx)*width)
		dst, off := buf.Bytes(), t.arr.Data().Offset()
		for i, p := range t.idx {
			if d := dst[i*width : (i+1)*width]; p < 0 {
				clear(d)
			} else {
				copy(d, raw[(off+int(p))*width:])
			}
		}
		t.buffers = append(t.buffers, buf)
	}
}

func takeStrings[O int32 | int64](t *taker, data arrow.ArrayData) error {
	var off []O
	if raw := bufferBytes(data, 1); len(raw) > 0 {
		off = castSlice[O](raw)[data.Offset():]
	}
	src := bufferBytes(data, 2)
	offBuf := newBuffer(t.alloc, (len(t.idx)+1)*sizeOf[O]())
	t.buffers = append(t.buffers, offBuf)
	out := castSlice[O](offBuf.Bytes())
	out[0] = 0
	total := 0
	valid := t.validAt()
	for i, p := range t.idx {
		if p >= 0 && valid(i) {
			total += int(off[p+1] - off[p])
		}
		out[i+1] = O(total)
	}
	if sizeOf[O]() == 4 && total > math.MaxInt32 {
		return errs.New(errs.ErrMemoryLimit, "text of one batch exceeds %d bytes", math.MaxInt32)
	}
	buf := newBuffer(t.alloc, total)
	t.buffers = append(t.buffers, buf)
	dst := buf.Bytes()
	for i, p := range t.idx {
		if from, to := out[i], out[i+1]; to > from {
			copy(dst[from:to], src[off[p]:off[p+1]])
		}
	}
	return nil
}

// validAt tells which results are not NULL: what lies under NULL is not copied.
func (t *taker) validAt() func(int) bool {
	if t.buffers[0] == nil {
		return func(int) bool { return true }
	}
	bm := t.buffers[0].Bytes()
	return func(i int) bool { return bitutil.BitIsSet(bm, i) }
}

type listLike interface {
	arrow.Array
	ListValues() arrow.Array
	ValueOffsets(i int) (start, end int64)
}

func takeList[O int32 | int64](t *taker, a listLike) error {
	offBuf := newBuffer(t.alloc, (len(t.idx)+1)*sizeOf[O]())
	t.buffers = append(t.buffers, offBuf)
	out := castSlice[O](offBuf.Bytes())
	out[0] = 0
	total := 0
	valid := t.validAt()
	for i, p := range t.idx {
		if p >= 0 && valid(i) {
			from, to := a.ValueOffsets(int(p))
			total += int(to - from)
		}
		out[i+1] = O(total)
	}
	if total > math.MaxInt32 {
		return errs.New(errs.ErrMemoryLimit, "lists of one batch have %d elements, more than %d", total, math.MaxInt32)
	}
	child := make([]int32, 0, total)
	for i, p := range t.idx {
		if out[i+1] > out[i] {
			from, to := a.ValueOffsets(int(p))
			for j := from; j < to; j++ {
				child = append(child, int32(j))
			}
		}
	}
	c, err := takeData(t.alloc, a.ListValues(), child)
	if err != nil {
		return err
	}
	t.children = append(t.children, c)
	return nil
}

func (t *taker) takeFixedList(a *array.FixedSizeList) error {
	width := int(a.DataType().(*arrow.FixedSizeListType).Len())
	if total := len(t.idx) * width; total > math.MaxInt32 || a.ListValues().Len() > math.MaxInt32 {
		return errs.New(errs.ErrMemoryLimit, "vectors of one batch have %d elements, more than %d", total, math.MaxInt32)
	}
	if c, ok := t.takeVectors(a, width); ok {
		t.children = append(t.children, c)
		return nil
	}
	child := make([]int32, 0, len(t.idx)*width)
	for _, p := range t.idx {
		from := int32(0)
		if p >= 0 {
			start, _ := a.ValueOffsets(int(p))
			from = int32(start)
		}
		for j := range int32(width) {
			if p < 0 {
				child = append(child, -1)
			} else {
				child = append(child, from+j)
			}
		}
	}
	c, err := takeData(t.alloc, a.ListValues(), child)
	if err != nil {
		return err
	}
	t.children = append(t.children, c)
	return nil
}

// takeVectors copies whole vectors of fixed-width elements without NULLs, which is what embeddings are.
func (t *taker) takeVectors(a *array.FixedSizeList, width int) (arrow.ArrayData, bool) {
	values := a.ListValues()
	w, ok := values.DataType().(arrow.FixedWidthDataType)
	if !ok || w.BitWidth()%8 != 0 || values.NullN() > 0 || width == 0 || values.DataType().ID() == arrow.DICTIONARY || values.DataType().ID() == arrow.FIXED_SIZE_LIST || values.DataType().ID() == arrow.EXTENSION {
		return nil, false
	}
	size := w.Bytes() * width
	src := bufferBytes(values.Data(), 1)
	base := values.Data().Offset() * w.Bytes()
	buf := newBuffer(t.alloc, len(t.idx)*size)
	defer buf.Release()
	dst := buf.Bytes()
	for i, p := range t.idx {
		if p < 0 {
			clear(dst[i*size : (i+1)*size])
			continue
		}
		start, _ := a.ValueOffsets(int(p))
		from := base + int(start)*w.Bytes()
		copy(dst[i*size:(i+1)*size], src[from:from+size])
	}
	return array.NewData(values.DataType(), len(t.idx)*width, []*memory.Buffer{nil, buf}, nil, 0, 0), true
}

// makeNulls returns n NULLs of type t.
func makeNulls(t arrow.DataType, n int) arrow.Array {
	return makeNullsIn(memory.DefaultAllocator, t, n)
}

func makeNullsIn(alloc memory.Allocator, t arrow.DataType, n int) arrow.Array {
	b := array.NewBuilder(alloc, t)
	defer b.Release()
	b.Reserve(n)
	for range n {
		b.AppendNull()
	}
	return b.NewArray()
}

// gather is TakeArray for vectors: -1 gives NULL.
func (s *state) gather(v *vector, idx []int32) (vector, error) {
	n := len(idx)
	hasNull, err := checkIndex(v.n, idx)
	if err != nil {
		return vector{}, err
	}
	if v.c == classNull {
		return *v, nil
	}
	out := vector{t: v.t, c: v.c, n: n}
	if v.valid != nil || hasNull {
		out.valid = s.zeros(n)
		takeBits(out.valid, v.valid, 0, idx)
	}
	switch v.c {
	case classBool:
		out.bits = s.zeros(n)
		takeBits(out.bits, v.bits, 0, idx)
	case classUint:
		out.u = makeSlice[uint64](s.arena, n)
		gatherFixed(out.u, v.u, idx)
	case classFloat:
		out.f = makeSlice[float64](s.arena, n)
		gatherFixed(out.f, v.f, idx)
	case classDecimal:
		out.d = makeSlice[decimal128.Num](s.arena, n)
		gatherFixed(out.d, v.d, idx)
	case classWide:
		out.w = makeSlice[decimal256.Num](s.arena, n)
		gatherFixed(out.w, v.w, idx)
	case classString:
		return s.gatherStrings(out, v, idx)
	case classNested:
		arr, err := TakeArray(memory.DefaultAllocator, v.arr, idx)
		if err != nil {
			return vector{}, err
		}
		out.arr = s.made(arr)
	default:
		out.i = makeSlice[int64](s.arena, n)
		gatherFixed(out.i, v.i, idx)
	}
	return out, nil
}

func (s *state) gatherStrings(out vector, v *vector, idx []int32) (vector, error) {
	total := 0
	for _, p := range idx {
		if p >= 0 {
			total += int(v.off[p+1] - v.off[p])
		}
	}
	w := strWriter{s: s, off: makeSlice[int32](s.arena, len(idx)+1), buf: make([]byte, 0, total)}
	w.off[0] = 0
	for i, p := range idx {
		if p >= 0 {
			w.buf = append(w.buf, v.data[v.off[p]:v.off[p+1]]...)
		}
		if err := w.end(i); err != nil {
			return out, err
		}
	}
	out.off, out.data = w.off, w.buf
	return out, nil
}
