package vector

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
)

// Limits on what a vector column or an index may be.
const (
	dimMax  = 1 << 16
	kMax    = 1 << 28
	listMax = 1 << 24 // partitions of one segment
)

// ElemOf returns the element type and dimension of a vector column: a fixed-size list of numbers. Errors: ErrUnsupported.
func ElemOf(t arrow.DataType) (vec.Elem, int, error) {
	list, ok := t.(*arrow.FixedSizeListType)
	if !ok {
		return 0, 0, errs.New(errs.ErrUnsupported, "a column of type %s is no vector", t)
	}
	dim := int(list.Len())
	if dim < 1 || dim > dimMax {
		return 0, 0, errs.New(errs.ErrUnsupported, "vectors of %d dimensions are not supported (at most %d)", dim, dimMax)
	}
	switch list.Elem().ID() {
	case arrow.FLOAT32:
		return vec.Float32, dim, nil
	case arrow.FLOAT16:
		return vec.Float16, dim, nil
	case arrow.FLOAT64:
		return vec.Float64, dim, nil
	case arrow.UINT8:
		return vec.Uint8, dim, nil
	case arrow.INT8:
		return vec.Int8, dim, nil
	}
	return 0, 0, errs.New(errs.ErrUnsupported, "vectors of %s are not supported", list.Elem())
}

// comparer computes the distances of one query to stored rows. It is immutable and safe for concurrent use.
type comparer struct {
	metric index.Metric
	elem   vec.Elem
	query  []float32 // for cosine of length 1
	bytes  []byte    // hamming: the query as stored
	zero   bool      // cosine of a zero or non-finite query: no distance is defined
}

func newComparer(metric index.Metric, elem vec.Elem, query []float32) (*comparer, error) {
	if len(query) == 0 || len(query) > dimMax {
		return nil, errs.New(errs.ErrInvalid, "a query vector of %d dimensions", len(query))
	}
	c := &comparer{metric: metric, elem: elem, query: query}
	switch metric {
	case index.MetricL2, index.MetricDot:
	case index.MetricCosine:
		unit, ok := normalized(query)
		c.query, c.zero = unit, !ok
	case index.MetricHamming:
		if elem != vec.Uint8 {
			return nil, errs.New(errs.ErrInvalid, "hamming distance needs vectors of uint8, not %v", elem)
		}
		var err error
		if c.bytes, err = queryBytes(query); err != nil {
			return nil, err
		}
	default:
		return nil, errs.New(errs.ErrUnsupported, "distance %q", metric)
	}
	return c, nil
}

func queryBytes(query []float32) ([]byte, error) {
	out := make([]byte, len(query))
	for i, x := range query {
		if x != float32(uint8(x)) {
			return nil, errs.New(errs.ErrInvalid, "element %d of the query is %v: hamming distance compares bytes, 0 to 255", i, x)
		}
		out[i] = byte(x)
	}
	return out, nil
}

// normalized returns v at length 1, computed in float64; ok is false for a vector of length zero or not finite.
func normalized(v []float32) (unit []float32, ok bool) {
	var n float64
	for _, x := range v {
		n += float64(x) * float64(x)
	}
	if n == 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		return v, false
	}
	unit = make([]float32, len(v))
	n = math.Sqrt(n)
	for i, x := range v {
		unit[i] = float32(float64(x) / n)
	}
	return unit, true
}

// hasNaN says that no distance to v is defined.
func hasNaN(v []float32) bool { return slices.ContainsFunc(v, func(x float32) bool { return x != x }) }

// block sets dst[i] to the distance of row i of b, NaN where it is not defined; norms is scratch of the same length.
func (c *comparer) block(dst, norms []float32, b vec.Block) {
	switch c.metric {
	case index.MetricL2:
		vec.L2(dst, c.query, c.elem, b)
	case index.MetricDot:
		vec.Dot(dst, c.query, c.elem, b)
		oneMinus(dst)
	case index.MetricCosine:
		vec.DotNorm(dst, norms, c.query, c.elem, b)
		c.finishCosine(dst, norms, func(i int) []byte { return b.Data[b.Offset+i*b.Stride:] })
	case index.MetricHamming:
		vec.Hamming(dst, c.bytes, b)
	}
}

// at is block for the rows that start at data[offsets[i]].
func (c *comparer) at(dst, norms []float32, data []byte, offsets []int) {
	switch c.metric {
	case index.MetricL2:
		vec.L2At(dst, c.query, c.elem, data, offsets)
	case index.MetricDot:
		vec.DotAt(dst, c.query, c.elem, data, offsets)
		oneMinus(dst)
	case index.MetricCosine:
		vec.DotNormAt(dst, norms, c.query, c.elem, data, offsets)
		c.finishCosine(dst, norms, func(i int) []byte { return data[offsets[i]:] })
	case index.MetricHamming:
		vec.HammingAt(dst, c.bytes, data, offsets)
	}
}

func oneMinus(dst []float32) {
	for i, d := range dst {
		dst[i] = 1 - d
	}
}

// finishCosine turns inner products with the unit query into 1-cos. Squared norms near the ends of float32 are computed again in float64.
func (c *comparer) finishCosine(dst, norms []float32, row func(i int) []byte) {
	for i, d := range dst {
		n := norms[i]
		switch {
		case c.zero || n != n:
			dst[i] = float32(math.NaN())
		case n > 1e-30 && n < 1e30:
			dst[i] = 1 - d/float32(math.Sqrt(float64(n)))
		default:
			dst[i] = c.wideCosine(row(i))
		}
	}
}

func (c *comparer) wideCosine(row []byte) float32 {
	v := make([]float32, len(c.query))
	vec.Decode(v, c.elem, row)
	var ip, n float64
	for i, x := range v {
		ip += float64(x) * float64(c.query[i])
		n += float64(x) * float64(x)
	}
	return float32(1 - ip/math.Sqrt(n)) // 0/0 for a zero vector: NaN
}
