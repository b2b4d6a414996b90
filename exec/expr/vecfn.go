package expr

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
)

// metric is what a distance function computes from two vectors.
type metric uint8

const (
	metricL2       metric = iota // Euclidean
	metricL2Square               // squared Euclidean
	metricCosine                 // 1 - cos
	metricDot                    // 1 - inner product
	metricHamming                // differing bits
	metricCosineSimilarity
	metricInner
)

func vectorFunctions() []function {
	var fs []function
	for name, m := range map[string]metric{
		"l2_distance": metricL2, "vec_distance_euclidean": metricL2,
		"l2sq_distance": metricL2Square, "vec_distance": metricL2Square, "vec_distance_l2_squared": metricL2Square, "approx_l2_distance": metricL2Square,
		"cosine_distance": metricCosine, "vec_distance_cosine": metricCosine,
		"dot_distance": metricDot, "hamming_distance": metricHamming,
		"cosine_similarity": metricCosineSimilarity, "approx_cosine_similarity": metricCosineSimilarity,
		"inner_product": metricInner,
	} {
		fs = append(fs, function{name: name, min: 2, max: 2, resolve: func(r *request) (impl, error) { return resolveDistance(r, m) }})
	}
	for name, as := range map[string]string{"string_to_vector": "", "to_vector": "string_to_vector", "vec_fromtext": "string_to_vector"} {
		fs = append(fs, function{name: name, as: as, min: 1, max: 1, resolve: resolveStringToVector})
	}
	for name, as := range map[string]string{"vector_to_string": "", "from_vector": "vector_to_string"} {
		fs = append(fs, function{name: name, as: as, min: 1, max: 1, resolve: vectorText(true)})
	}
	return append(fs,
		function{name: "vec_totext", min: 1, max: 1, resolve: vectorText(false)},
		function{name: "vector_dim", min: 1, max: 1, resolve: resolveVectorDim},
		function{name: "distance", min: 3, max: 3, resolve: resolveMySQLDistance},
		function{name: "vector_distance", as: "distance", min: 3, max: 3, resolve: resolveMySQLDistance},
	)
}

// resolveMySQLDistance is MySQL 9's DISTANCE(a, b, 'EUCLIDEAN' | 'COSINE' | 'DOT').
func resolveMySQLDistance(r *request) (impl, error) {
	lit, ok := r.literal(2)
	if !ok || !lit.Value.IsValid() {
		return impl{}, errs.New(errs.ErrInvalid, "distance needs 'EUCLIDEAN', 'COSINE' or 'DOT' as a constant, not %s", r.args[2])
	}
	switch strings.ToUpper(literalText(lit)) {
	case "EUCLIDEAN":
		return rewriteTo("l2_distance", r.args[0], r.args[1])
	case "COSINE":
		return rewriteTo("cosine_distance", r.args[0], r.args[1])
	case "DOT":
		return rewriteTo("dot_distance", r.args[0], r.args[1])
	}
	return impl{}, errs.New(errs.ErrInvalid, "distance: '%s' is no metric; use 'EUCLIDEAN', 'COSINE' or 'DOT'", literalText(lit))
}

// vectorDimMax bounds the dimensions of a vector.
const vectorDimMax = 65536

// vectorElem returns the kernel's element type of a list's elements.
func vectorElem(elem arrow.DataType) (vec.Elem, bool) {
	switch elem.ID() {
	case arrow.FLOAT32:
		return vec.Float32, true
	case arrow.FLOAT16:
		return vec.Float16, true
	case arrow.FLOAT64:
		return vec.Float64, true
	case arrow.UINT8:
		return vec.Uint8, true
	case arrow.INT8:
		return vec.Int8, true
	}
	return 0, false
}

// checkVector refuses arguments that are no vectors.
func (r *request) checkVector(i int) error {
	t := storageType(r.types[i])
	switch classOf(t) {
	case classNull, classString:
		return nil
	}
	if elem := elementType(t); elem != nil {
		if c := classOf(elem); c.numeric() || c == classNull {
			return nil
		}
	}
	return errs.New(errs.ErrInvalid, "%s: %s is no vector but %s", r.name, r.args[i], sqlName(r.types[i]))
}

// resolveDistance is a distance between two vectors: columns, JSON text, blobs of little-endian float32, or list literals. A constant beside a vector
// column is converted to the column's dimension once.
func resolveDistance(r *request, m metric) (impl, error) {
	args := append([]Expr(nil), r.args...)
	for i := range args {
		if err := r.checkVector(i); err != nil {
			return impl{}, err
		}
	}
	if m == metricHamming {
		for i := range args {
			if elem := elementType(r.types[i]); elem != nil && elem.ID() != arrow.UINT8 && !isConst(args[i]) {
				return impl{}, errs.New(errs.ErrInvalid, "%s: %s has elements of type %s; hamming distance compares bytes", r.name, args[i], sqlName(elem))
			}
		}
	}
	dims := [2]int{r.dimension(0), r.dimension(1)}
	for i := range args {
		lit, ok := args[i].(*Literal)
		if !ok || !lit.Value.IsValid() {
			continue
		}
		q, err := r.queryVector(lit, i)
		if err != nil {
			return impl{}, err
		}
		dims[i] = len(q)
		if args[i], err = vectorLiteralOf(q, lit.Type()); err != nil {
			return impl{}, err
		}
	}
	if dims[0] > 0 && dims[1] > 0 && dims[0] != dims[1] {
		return impl{}, r.dimensionError(dims[0], dims[1])
	}
	for i := range args {
		if lit, ok := args[i].(*Literal); ok && !lit.Value.IsValid() {
			return impl{t: typeFloat(), args: args, run: func(x *call) (vector, error) { return x.nullVector(typeFloat()), nil }}, nil
		}
	}
	d := distance{m: m, name: r.name}
	var of []string
	for _, a := range r.args {
		if !isConst(a) {
			of = append(of, a.String())
		}
	}
	d.of = strings.Join(of, ", ")
	return impl{t: typeFloat(), args: args, run: d.run}, nil
}

func isConst(e Expr) bool { _, ok := e.(*Literal); return ok }

func (r *request) dimensionError(a, b int) error {
	return errs.New(errs.ErrInvalid, "%s(%s, %s): vectors of %d and %d dimensions cannot be compared", r.name, r.args[0], r.args[1], a, b)
}

// dimension is the dimension that a type fixes, 0 for none.
func (r *request) dimension(i int) int {
	if t, ok := storageType(r.types[i]).(*arrow.FixedSizeListType); ok {
		return int(t.Len())
	}
	return 0
}

// queryVector reads a constant vector.
func (r *request) queryVector(lit *Literal, i int) ([]float32, error) {
	v, err := literalVector(lit)
	if err != nil {
		return nil, err
	}
	q, ok, err := readVector(nil, &v, 0)
	if err != nil {
		return nil, errs.New(errs.ErrInvalid, "%s: %w", r.name, err)
	}
	if !ok {
		return nil, errs.New(errs.ErrInvalid, "%s: a vector with NULL elements", r.name)
	}
	return q, nil
}

// vectorLiteralOf keeps a query vector as fixed_size_list<float32>; one that already is stays as it is.
func vectorLiteralOf(q []float32, was arrow.DataType) (*Literal, error) {
	if len(q) == 0 {
		return nil, errs.New(errs.ErrInvalid, "an empty vector")
	}
	t := arrow.FixedSizeListOfNonNullable(int32(len(q)), arrow.PrimitiveTypes.Float32)
	if f, ok := was.(*arrow.FixedSizeListType); ok && f.Elem().ID() == arrow.FLOAT32 {
		t = f
	}
	b := array.NewFloat32Builder(memory.DefaultAllocator)
	b.AppendValues(q, nil)
	return &Literal{scalar.NewFixedSizeListScalarWithType(b.NewArray(), t)}, nil
}

// VectorLiteral returns the numbers of a constant vector: a list, JSON text, or a blob of little-endian float32. ErrInvalid for anything else.
func VectorLiteral(lit *Literal) ([]float32, error) {
	if !lit.Value.IsValid() {
		return nil, errs.New(errs.ErrInvalid, "NULL is no vector")
	}
	v, err := literalVector(lit)
	if err != nil {
		return nil, err
	}
	q, ok, err := readVector(nil, &v, 0)
	if err == nil && !ok {
		err = errs.New(errs.ErrInvalid, "a vector with NULL elements")
	}
	return q, err
}

// readVector appends the numbers of vector i, which is not NULL. ok is false where an element is NULL.
func readVector(dst []float32, v *vector, i int) (q []float32, ok bool, err error) {
	i = v.at(i)
	if v.c == classString {
		if isText(v.t) && !isRaw(v.str(i)) {
			dst, err = parseVector(dst, v.str(i))
		} else {
			dst, err = blobVector(dst, v.str(i))
		}
		return dst, true, err
	}
	view, isList := viewList(v.arr)
	if !isList {
		return dst, false, errs.New(errs.ErrInvalid, "a value of type %s is no vector", v.arr.DataType())
	}
	from, to := view.from(i)
	if to-from > vectorDimMax {
		return dst, false, errs.New(errs.ErrInvalid, "a vector of %d dimensions; at most %d", to-from, vectorDimMax)
	}
	if f, isFloat := view.values.(*array.Float32); isFloat && f.NullN() == 0 {
		return append(dst, f.Float32Values()[from:to]...), true, nil
	}
	part := array.NewSlice(view.values, from, to)
	defer part.Release()
	s := newState()
	vals, err := s.load(part)
	if err != nil {
		return dst, false, err
	}
	if vals.c == classNull && to > from {
		return dst, false, nil
	}
	if !vals.c.numeric() && vals.c != classString && vals.c != classNull {
		return dst, false, errs.New(errs.ErrInvalid, "elements of type %s are no numbers", part.DataType())
	}
	for j := range int(to - from) {
		if vals.nullAt(j) {
			return dst, false, nil
		}
	}
	if to == from {
		return dst, true, nil
	}
	floats, err := s.cast(&vals, typeFloat(), castImplicit)
	if err != nil {
		return dst, false, err
	}
	for _, f := range floats.f {
		dst = append(dst, float32(f))
	}
	return dst, true, nil
}

// isRaw says that a text is no text: drivers send bytes as text parameters of prepared statements.
func isRaw(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) }

// parseVector reads the text of a vector: [1, 2.5, -3e2].
func parseVector(dst []float32, text []byte) ([]float32, error) {
	bad := func() error { return errs.New(errs.ErrInvalid, "'%.64s' is no vector; write [1.5, 2, 3]", text) }
	s := bytes.TrimSpace(text)
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return dst, bad()
	}
	s = bytes.TrimSpace(s[1 : len(s)-1])
	if len(s) == 0 {
		return dst, errs.New(errs.ErrInvalid, "an empty vector")
	}
	start := len(dst)
	for len(s) > 0 {
		item, rest, more := bytes.Cut(s, []byte{','})
		item = bytes.TrimSpace(item)
		if len(item) == 0 || !(isDigit(item[0]) || item[0] == '-' || item[0] == '+' || item[0] == '.') || bytes.IndexByte(item, '_') >= 0 || bytes.IndexByte(item, 'x') >= 0 || len(dst)-start >= vectorDimMax {
			return dst, bad()
		}
		f, err := strconv.ParseFloat(string(item), 32)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return dst, bad()
		}
		dst = append(dst, float32(f))
		if more && len(bytes.TrimSpace(rest)) == 0 {
			return dst, bad()
		}
		s = rest
	}
	return dst, nil
}

// blobVector reads little-endian float32; a blob that spells a JSON array is read as that.
func blobVector(dst []float32, b []byte) ([]float32, error) {
	if t := bytes.TrimSpace(b); len(t) > 1 && t[0] == '[' && t[len(t)-1] == ']' {
		if out, err := parseVector(dst, t); err == nil {
			return out, nil
		}
	}
	if len(b) == 0 || len(b)%4 != 0 || len(b)/4 > vectorDimMax {
		return dst, errs.New(errs.ErrInvalid, "a blob of %d bytes is no vector of float32", len(b))
	}
	for ; len(b) > 0; b = b[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return dst, nil
}

// distance computes a metric for every row. NULL where a vector is NULL, has a NULL element, or where the distance is not defined.
type distance struct {
	m        metric
	name, of string // of: the arguments that are no constants, for errors
}

func (d distance) run(x *call) (vector, error) {
	out := x.newVector(typeFloat(), x.n)
	out.valid = x.valid
	clear(out.f)
	for k := range 2 {
		if x.args[k].konst && !x.args[1-k].konst {
			if block, elem, ok := vectorBlock(&x.args[1-k], x.n); ok {
				return out, d.block(x, &out, &x.args[k], &x.args[1-k], block, elem)
			}
		}
	}
	return out, d.rows(x, &out)
}

// vectorBlock is a vector column as the kernels read it.
func vectorBlock(v *vector, n int) (vec.Block, vec.Elem, bool) {
	arr := v.arr
	if ext, ok := arr.(array.ExtensionArray); ok {
		arr = ext.Storage()
	}
	list, ok := arr.(*array.FixedSizeList)
	if !ok {
		return vec.Block{}, 0, false
	}
	elem, ok := vectorElem(list.ListValues().DataType())
	if !ok || list.ListValues().NullN() > 0 || n == 0 {
		return vec.Block{}, 0, false
	}
	data := list.ListValues().Data()
	start, end := list.ValueOffsets(0)
	return vec.Block{
		Data: bufferBytes(data, 1), Offset: (data.Offset() + int(start)) * elem.Size(), Stride: int(end-start) * elem.Size(), Rows: n,
	}, elem, true
}

func (d distance) block(x *call, out, constant, column *vector, b vec.Block, elem vec.Elem) error {
	q, ok, err := readVector(nil, constant, 0)
	if err != nil {
		return errs.New(errs.ErrInvalid, "%s: %w", d.name, err)
	}
	if !ok {
		*out = x.nullVector(typeFloat())
		return nil
	}
	if dim := b.Stride / elem.Size(); dim != len(q) {
		return errs.New(errs.ErrInvalid, "%s: vectors of %d and %d dimensions cannot be compared", d.name, dim, len(q))
	}
	raw := makeSlice[float32](x.arena, x.n)
	switch d.m {
	case metricL2, metricL2Square:
		vec.L2(raw, q, elem, b)
	case metricDot, metricInner:
		vec.Dot(raw, q, elem, b)
	case metricHamming:
		bytes, err := byteVector(q)
		if err != nil {
			return errs.New(errs.ErrInvalid, "%s: %w", d.name, err)
		}
		vec.Hamming(raw, bytes, b)
	default:
		d.cosines(x, raw, q, elem, b)
	}
	x.each(out, func(i int) bool {
		f := d.finish(raw[i])
		out.f[i] = f
		return !math.IsNaN(f)
	})
	return nil
}

// finish turns what the kernels compute (squared l2, inner product, 1-cos, bits) into the function's value. Arithmetic is that of the index search, so
// that both give the same distance.
func (d distance) finish(raw float32) float64 {
	switch d.m {
	case metricL2:
		return math.Sqrt(float64(raw))
	case metricDot:
		return float64(1 - raw)
	case metricCosineSimilarity:
		return 1 - float64(raw)
	}
	return float64(raw)
}

// The squared norms between which float32 arithmetic is precise enough.
const (
	normSmall = 1e-30
	normLarge = 1e30
)

// cosines sets dst to 1-cos, NaN where it is not defined.
func (d distance) cosines(x *call, dst, q []float32, elem vec.Elem, b vec.Block) {
	unit, ok := unitVector(q)
	if !ok {
		for i := range dst {
			dst[i] = float32(math.NaN())
		}
		return
	}
	norms := makeSlice[float32](x.arena, len(dst))
	vec.DotNorm(dst, norms, unit, elem, b)
	row := make([]float32, len(q))
	for i, n := range norms {
		if n > normSmall && n < normLarge {
			dst[i] = 1 - dst[i]/float32(math.Sqrt(float64(n)))
			continue
		}
		vec.Decode(row, elem, b.Data[b.Offset+i*b.Stride:])
		dst[i] = wideCosine(row, unit)
	}
}

func wideCosine(row, unit []float32) float32 {
	var ip, n float64
	for i, v := range row {
		ip += float64(v) * float64(unit[i])
		n += float64(v) * float64(v)
	}
	return float32(1 - ip/math.Sqrt(n)) // 0/0 for a zero vector
}

func unitVector(v []float32) ([]float32, bool) {
	var n float64
	for _, x := range v {
		n += float64(x) * float64(x)
	}
	if n == 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, false
	}
	unit := make([]float32, len(v))
	n = math.Sqrt(n)
	for i, x := range v {
		unit[i] = float32(float64(x) / n)
	}
	return unit, true
}

func byteVector(q []float32) ([]byte, error) {
	out := make([]byte, len(q))
	for i, f := range q {
		if f != float32(uint8(f)) {
			return nil, errs.New(errs.ErrInvalid, "element %d is %v: hamming distance compares bytes, 0 to 255", i+1, f)
		}
		out[i] = byte(f)
	}
	return out, nil
}

// rows compares vectors pair by pair, whatever they are stored as.
func (d distance) rows(x *call, out *vector) error {
	var a, b []float32
	var err error
	x.each(out, func(i int) bool {
		if err != nil {
			return false
		}
		var okA, okB bool
		if a, okA, err = readVector(a[:0], &x.args[0], i); err != nil {
			return false
		}
		if b, okB, err = readVector(b[:0], &x.args[1], i); err != nil || !okA || !okB {
			return false
		}
		if len(a) != len(b) {
			err = errs.New(errs.ErrInvalid, "vectors of %d and %d dimensions cannot be compared", len(a), len(b))
			return false
		}
		var f float64
		f, err = d.pair(a, b)
		out.f[i] = f
		return !math.IsNaN(f)
	})
	if err != nil {
		return errs.New(errs.ErrInvalid, "%s of %s: %w", d.name, d.of, err)
	}
	return nil
}

func (d distance) pair(a, b []float32) (float64, error) {
	if len(a) == 0 {
		return 0, errs.New(errs.ErrInvalid, "an empty vector")
	}
	raw := []float32{0}
	blk := vec.Block{Data: arrow.Float32Traits.CastToBytes(a), Stride: 4 * len(a), Rows: 1}
	switch d.m {
	case metricL2, metricL2Square:
		vec.L2(raw, b, vec.Float32, blk)
	case metricDot, metricInner:
		vec.Dot(raw, b, vec.Float32, blk)
	case metricHamming:
		p, err := byteVector(a)
		if err != nil {
			return 0, err
		}
		q, err := byteVector(b)
		if err != nil {
			return 0, err
		}
		vec.Hamming(raw, q, vec.Block{Data: p, Stride: len(p), Rows: 1})
	default:
		unit, ok := unitVector(b)
		if !ok {
			return math.NaN(), nil
		}
		norm := []float32{0}
		vec.DotNorm(raw, norm, unit, vec.Float32, blk)
		if norm[0] > normSmall && norm[0] < normLarge {
			raw[0] = 1 - raw[0]/float32(math.Sqrt(float64(norm[0])))
		} else {
			raw[0] = wideCosine(a, unit)
		}
	}
	return d.finish(raw[0]), nil
}
