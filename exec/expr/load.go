package expr

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"github.com/lakesql/lakesql/internal/errs"
)

// load turns an Arrow array into a vector of its class. Fixed-width values of the class's own width, strings and bitmaps are not copied: the
// vector is good while the array is.
func (s *state) load(arr arrow.Array) (vector, error) {
	if ext, ok := arr.(array.ExtensionArray); ok {
		v, err := s.load(ext.Storage())
		v.src = nil
		return v, err
	}
	if dict, ok := arr.(*array.Dictionary); ok {
		return s.loadDictionary(dict)
	}
	n := arr.Len()
	v := vector{t: canonical(arr.DataType()), c: classOf(arr.DataType()), n: n, src: arr}
	if arr.NullN() > 0 && v.c != classNull {
		v.valid = s.alignBitmap(arr.NullBitmapBytes(), arr.Data().Offset(), n)
	}
	var err error
	switch v.c {
	case classNull:
		return s.loadNull(n), nil
	case classBool:
		v.bits = s.loadBits(arr, n)
	case classInt:
		v.i = s.loadInts(arr)
	case classUint:
		v.u = s.loadUints(arr)
	case classFloat:
		v.f = s.loadFloats(arr)
	case classDecimal:
		v.d = s.loadDecimals(arr)
	case classWide:
		v.w = arr.(*array.Decimal256).Values()
	case classString:
		v.off, v.data, err = s.loadStrings(arr)
	case classDate, classDatetime, classTimestamp, classTime:
		v.i, err = s.loadTemporal(&v, arr)
	case classNested:
		v.t, v.arr = arr.DataType(), arr
	}
	return v, err
}

// loadNull is n NULLs of no type: one constant.
func (s *state) loadNull(int) vector {
	return vector{t: arrow.Null, c: classNull, n: 1, konst: true, valid: s.zeros(1)}
}

func (s *state) loadBits(arr arrow.Array, n int) []byte {
	if n == 0 {
		return s.zeros(0)
	}
	data := arr.Data()
	return s.alignBitmap(data.Buffers()[1].Bytes(), data.Offset(), n)
}

func widen[D, S int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | arrow.Date32 | arrow.Time32](s *state, src []S) []D {
	dst := makeSlice[D](s.arena, len(src))
	for i, x := range src {
		dst[i] = D(x)
	}
	return dst
}

func (s *state) loadInts(arr arrow.Array) []int64 {
	switch a := arr.(type) {
	case *array.Int64:
		return a.Int64Values()
	case *array.Int32:
		return widen[int64](s, a.Int32Values())
	case *array.Int16:
		return widen[int64](s, a.Int16Values())
	}
	return widen[int64](s, arr.(*array.Int8).Int8Values())
}

func (s *state) loadUints(arr arrow.Array) []uint64 {
	switch a := arr.(type) {
	case *array.Uint64:
		return a.Uint64Values()
	case *array.Uint32:
		return widen[uint64](s, a.Uint32Values())
	case *array.Uint16:
		return widen[uint64](s, a.Uint16Values())
	}
	return widen[uint64](s, arr.(*array.Uint8).Uint8Values())
}

func (s *state) loadFloats(arr arrow.Array) []float64 {
	switch a := arr.(type) {
	case *array.Float64:
		return a.Float64Values()
	case *array.Float32:
		return widen[float64](s, a.Float32Values())
	}
	half := arr.(*array.Float16).Values()
	dst := makeSlice[float64](s.arena, len(half))
	for i, x := range half {
		dst[i] = halfToFloat(x)
	}
	return dst
}

// halfToFloat widens float16 exactly, infinities and NaN included.
func halfToFloat(h float16.Num) float64 {
	b := h.Uint16()
	exp, frac := int(b>>10&0x1f), float64(b&0x3ff)
	var f float64
	switch {
	case exp == 0x1f && frac != 0:
		return math.NaN()
	case exp == 0x1f:
		f = math.Inf(1)
	case exp == 0:
		f = frac * 0x1p-24
	default:
		f = math.Ldexp(1+frac/1024, exp-15)
	}
	if b&0x8000 != 0 {
		return -f
	}
	return f
}

func (s *state) loadDecimals(arr arrow.Array) []decimal128.Num {
	switch a := arr.(type) {
	case *array.Decimal128:
		return a.Values()
	case *array.Decimal64:
		dst := makeSlice[decimal128.Num](s.arena, a.Len())
		for i, x := range a.Values() {
			dst[i] = decimal128.FromI64(int64(x))
		}
		return dst
	case *array.Decimal32:
		dst := makeSlice[decimal128.Num](s.arena, a.Len())
		for i, x := range a.Values() {
			dst[i] = decimal128.FromI64(int64(x))
		}
		return dst
	}
	wide := arr.(*array.Decimal256).Values()
	dst := makeSlice[decimal128.Num](s.arena, len(wide))
	for i, x := range wide {
		a := x.Array()
		dst[i] = decimal128.New(int64(a[1]), a[0])
	}
	return dst
}

func (s *state) loadStrings(arr arrow.Array) ([]int32, []byte, error) {
	n := arr.Len()
	switch a := arr.(type) {
	case *array.String:
		return s.offsets32(a.ValueOffsets(), n), a.Data().Buffers()[2].Bytes(), nil
	case *array.Binary:
		return s.offsets32(a.ValueOffsets(), n), bufferBytes(a.Data(), 2), nil
	case *array.LargeString:
		return s.offsets64(a.ValueOffsets(), bufferBytes(a.Data(), 2), n)
	case *array.LargeBinary:
		return s.offsets64(a.ValueOffsets(), bufferBytes(a.Data(), 2), n)
	case *array.FixedSizeBinary:
		return s.fixedStrings(a)
	}
	return s.viewStrings(arr)
}

func bufferBytes(d arrow.ArrayData, i int) []byte {
	if b := d.Buffers()[i]; b != nil {
		return b.Bytes()
	}
	return nil
}

func (s *state) offsets32(off []int32, n int) []int32 {
	if len(off) < n+1 {
		off = makeSlice[int32](s.arena, n+1)
		clear(off)
	}
	return off[:n+1]
}

func (s *state) offsets64(off []int64, data []byte, n int) ([]int32, []byte, error) {
	out := makeSlice[int32](s.arena, n+1)
	if len(off) < n+1 || n == 0 {
		clear(out)
		return out, nil, nil
	}
	base := off[0]
	if off[n]-base > math.MaxInt32 {
		return nil, nil, errs.New(errs.ErrMemoryLimit, "a batch holds %d bytes of text in one column; at most %d are computed with at once", off[n]-base, math.MaxInt32)
	}
	for i := range out {
		out[i] = int32(off[i] - base)
	}
	return out, data[base:off[n]], nil
}

func (s *state) fixedStrings(a *array.FixedSizeBinary) ([]int32, []byte, error) {
	width := a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
	n := a.Len()
	if int64(n)*int64(width) > math.MaxInt32 {
		return nil, nil, errs.New(errs.ErrMemoryLimit, "a batch of %d values of %d bytes is too large to compute with", n, width)
	}
	out := makeSlice[int32](s.arena, n+1)
	for i := range out {
		out[i] = int32(i * width)
	}
	if n == 0 || width == 0 {
		return out, nil, nil
	}
	from := a.Data().Offset() * width
	return out, bufferBytes(a.Data(), 1)[from : from+n*width], nil
}

func (s *state) viewStrings(arr arrow.Array) ([]int32, []byte, error) {
	type viewed interface{ Value(int) string }
	w := strWriter{s: s, off: makeSlice[int32](s.arena, arr.Len()+1)}
	w.off[0] = 0
	for i := range arr.Len() {
		if arr.IsValid(i) {
			switch a := arr.(type) {
			case viewed:
				w.buf = append(w.buf, a.Value(i)...)
			case *array.BinaryView:
				w.buf = append(w.buf, a.Value(i)...)
			}
		}
		if err := w.end(i); err != nil {
			return nil, nil, err
		}
	}
	return w.off, w.buf, nil
}

// unitScale returns how many of the unit make a second.
func unitScale(u arrow.TimeUnit) int64 {
	switch u {
	case arrow.Second:
		return 1
	case arrow.Millisecond:
		return 1e3
	case arrow.Microsecond:
		return 1e6
	}
	return 1e9
}

const microsPerDay = 86400 * 1e6

// loadTemporal brings dates to days and everything else to microseconds; digits below the microsecond are cut, downwards.
func (s *state) loadTemporal(v *vector, arr arrow.Array) ([]int64, error) {
	switch a := arr.(type) {
	case *array.Date32:
		return widen[int64](s, a.Date32Values()), nil
	case *array.Date64:
		src := castSlice[int64](arrow.Date64Traits.CastToBytes(a.Date64Values()))
		return s.floorDiv(src, 86400*1000), nil
	case *array.Time32:
		src := widen[int64](s, a.Time32Values())
		return s.toMicros(v, src, a.DataType().(*arrow.Time32Type).Unit)
	case *array.Time64:
		src := castSlice[int64](arrow.Time64Traits.CastToBytes(a.Time64Values()))
		return s.toMicros(v, src, a.DataType().(*arrow.Time64Type).Unit)
	case *array.Duration:
		src := castSlice[int64](arrow.DurationTraits.CastToBytes(a.DurationValues()))
		return s.toMicros(v, src, a.DataType().(*arrow.DurationType).Unit)
	}
	a := arr.(*array.Timestamp)
	src := castSlice[int64](arrow.TimestampTraits.CastToBytes(a.TimestampValues()))
	return s.toMicros(v, src, a.DataType().(*arrow.TimestampType).Unit)
}

func (s *state) floorDiv(src []int64, by int64) []int64 {
	dst := makeSlice[int64](s.arena, len(src))
	for i, x := range src {
		dst[i] = floorDiv(x, by)
	}
	return dst
}

func (s *state) toMicros(v *vector, src []int64, unit arrow.TimeUnit) ([]int64, error) {
	scale := unitScale(unit)
	if scale == 1e6 {
		return src, nil
	}
	if scale > 1e6 {
		return s.floorDiv(src, scale/1e6), nil
	}
	by := 1e6 / scale
	limit := math.MaxInt64 / by
	dst := makeSlice[int64](s.arena, len(src))
	for i, x := range src {
		if (x > limit || x < -limit) && !v.null(i) {
			return nil, errs.New(errs.ErrOverflow, "%s value %d is out of range", sqlName(v.t), x)
		}
		dst[i] = x * by
	}
	return dst, nil
}

func floorDiv(x, by int64) int64 {
	q := x / by
	if x%by < 0 {
		q--
	}
	return q
}

// loadDictionary gathers the values of the codes.
func (s *state) loadDictionary(d *array.Dictionary) (vector, error) {
	values, err := s.load(d.Dictionary())
	if err != nil {
		return vector{}, err
	}
	n := d.Len()
	idx := makeSlice[int32](s.arena, n)
	s.codes(idx, d)
	v, err := s.gather(&values, idx)
	v.src = d
	return v, err
}

// codes writes the dictionary position of every row, -1 for NULL.
func (s *state) codes(dst []int32, d *array.Dictionary) {
	indices := d.Indices()
	if a, ok := indices.(*array.Uint32); ok {
		for i, x := range a.Uint32Values() {
			dst[i] = int32(x)
		}
	} else if vals := indexValues(s, indices); vals != nil {
		for i, x := range vals {
			dst[i] = int32(x)
		}
	}
	if d.NullN() > 0 {
		bitmap, off := d.NullBitmapBytes(), d.Data().Offset()
		for i := range dst {
			if !bitutil.BitIsSet(bitmap, off+i) {
				dst[i] = -1
			}
		}
	}
}

func indexValues(s *state, indices arrow.Array) []int64 {
	switch classOf(indices.DataType()) {
	case classInt:
		return s.loadInts(indices)
	case classUint:
		return castSlice[int64](arrow.Uint64Traits.CastToBytes(s.loadUints(indices)))
	}
	return nil
}

func wideOf(n decimal128.Num) decimal256.Num { return decimal256.FromDecimal128(n) }

// narrowOf is the low half of n, for values that are known to fit.
func narrowOf(n decimal256.Num) decimal128.Num {
	a := n.Array()
	return decimal128.New(int64(a[1]), a[0])
}

// fitsNarrow reports whether n fits 128 bits.
func fitsNarrow(n decimal256.Num) bool {
	a := n.Array()
	sign := uint64(int64(a[1]) >> 63)
	return a[2] == sign && a[3] == sign
}

func bigPow10(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
