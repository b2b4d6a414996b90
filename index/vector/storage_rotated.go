package vector

import (
	"context"
	"encoding/json"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/file"
)

// rotated rows are RaBitQ codes (Gao 2024): the signs of the rotated residual v - centroid, with more bits below them where the index has them, and
// two factors that turn an inner product with the codes into a distance.
type rotated struct {
	head     *header
	aux      *file.Reader
	codes    file.Column
	extended file.Column   // where exBits > 0
	parts    []file.Column // add, scale
	signs    []byte        // four rounds of dim/8 bytes, bit i of byte i/8: 1 = negate
	exBits   int           // below the sign
}

func newRotated(_ context.Context, h *header, aux *file.Reader) (rowStorage, error) {
	var m struct {
		Signs    []uint8Number `json:"fast_rotation_signs"`
		Rotation string        `json:"rotation_type"`
		Dim      int           `json:"code_dim"`
		NumBits  int           `json:"num_bits"`
		Packed   bool          `json:"packed"`
	}
	if err := json.Unmarshal(h.storage, &m); err != nil {
		return nil, errs.Corrupt(metaStorage, -1, "%w", err)
	}
	if m.Rotation != "fast" {
		return nil, errs.New(errs.ErrUnsupported, "IVF_RQ index rotated by a matrix")
	}
	if m.Dim != h.dim || h.dim%8 != 0 || !m.Packed || m.NumBits < 1 || m.NumBits > exMax+1 {
		return nil, errs.New(errs.ErrUnsupported, "IVF_RQ codes of %d dimensions and %d bits for vectors of %d (packed %v)", m.Dim, m.NumBits, h.dim, m.Packed)
	}
	if len(m.Signs) != rotationRounds*h.dim/8 {
		return nil, errs.Corrupt(metaStorage, -1, "%d bytes of rotation signs for %d dimensions", len(m.Signs), h.dim)
	}
	r := &rotated{head: h, aux: aux, exBits: m.NumBits - 1, signs: make([]byte, len(m.Signs))}
	for i, s := range m.Signs {
		r.signs[i] = byte(s)
	}
	var err error
	if r.codes, err = codeColumn(aux, columnRQ, vec.Uint8, h.dim/8); err != nil {
		return nil, err
	}
	factors := []string{columnRQAdd, columnRQMul}
	if r.exBits > 0 {
		if r.extended, err = codeColumn(aux, columnRQEx, vec.Uint8, exRowBytes(h.dim, r.exBits)); err != nil {
			return nil, err
		}
		factors = []string{columnRQAddEx, columnRQMulEx}
	}
	if r.parts, err = aux.Columns(factors...); err != nil {
		return nil, errs.Corrupt("schema", -1, "%w", err)
	}
	for _, c := range r.parts {
		if c.Field.Type == nil || c.Field.Type.ID() != arrow.FLOAT32 {
			return nil, errs.Corrupt("schema", -1, "column %s of type %v", c.Field.Name, c.Field.Type)
		}
	}
	return r, nil
}

// uint8Number is a byte that JSON writes as a number; a []byte would be read as base64.
type uint8Number uint8

func (r *rotated) columns() []string { return []string{columnRQ} }
func (r *rotated) quantized() bool   { return true }
func (r *rotated) rowBytes() int     { return r.head.dim/8 + 8 }

type rotatedScorer struct {
	*rotated
	q      *query
	turned []float32 // the rotated query
	total  float32   // the sum of its elements
	tables []float32 // for each nibble of a code, the inner product of the query with its signs (+-0.5)
}

func (r *rotated) prepare(q *query) (scorer, error) {
	s := &rotatedScorer{rotated: r, q: q, tables: make([]float32, r.head.dim/4*16)}
	s.turned = r.rotate(q.vector)
	for _, x := range s.turned {
		s.total += x
	}
	for nibble := range r.head.dim / 4 {
		for code := range 16 {
			var sum float32
			for bit := range 4 {
				sum += s.turned[4*nibble+bit] * (float32(code>>bit&1) - 0.5)
			}
			s.tables[16*nibble+code] = sum
		}
	}
	return s, nil
}

func (s *rotatedScorer) splits() bool { return false }

func (s *rotatedScorer) score(ctx context.Context, number, _ int, dst []float32, w *scratch) (int64, error) {
	n, width := len(dst), s.head.dim/8
	l := s.head.lists[number]
	bs, err := blocks(ctx, s.aux, s.codes, l, 0, n, width)
	if err != nil {
		return 0, err
	}
	vec.Lookup4(dst, unpackSigns(contiguous(bs, width, &w.codes), n, width, &w.other), s.tables, n)
	if s.exBits > 0 {
		if err := s.addExtended(ctx, l, dst, w); err != nil {
			return 0, err
		}
	}
	batch, err := s.aux.ReadRange(ctx, s.parts, l.first, l.first+l.rows, file.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer batch.Release()
	add, ok1 := batch.Column(0).(*array.Float32)
	mul, ok2 := batch.Column(1).(*array.Float32)
	if !ok1 || !ok2 || add.Len() != n || mul.Len() != n {
		return 0, errs.Corrupt("factors", -1, "%d and %d values for %d rows", batch.Column(0).Len(), batch.Column(1).Len(), n)
	}
	adds, muls, base := add.Float32Values(), mul.Float32Values(), s.base(number)
	half := float32(1)
	if s.q.metric == index.MetricCosine { // |a-b|^2 = 2(1-cos) for vectors of length 1
		half = 0.5
	}
	for i, ip := range dst {
		dst[i] = (adds[i] + muls[i]*ip + base) * half
	}
	return int64(n * s.rowBytes()), nil
}

// extendedRows are unpacked at a time.
const extendedRows = 64

// addExtended turns inner products with signs of +-0.5 into those with whole codes: of b bits below the sign, a code stands for
// ex + 2^b * (sign + 0.5) - (2^b - 0.5).
func (s *rotatedScorer) addExtended(ctx context.Context, l list, dst []float32, w *scratch) error {
	width, padded := exRowBytes(s.head.dim, s.exBits), (s.head.dim+exBlock-1)/exBlock*exBlock
	bs, err := blocks(ctx, s.aux, s.extended, l, 0, len(dst), width)
	if err != nil {
		return err
	}
	high := float32(int(1) << s.exBits)
	middle := (0.5 - high/2) * s.total
	codes, products := sized(&w.codes, extendedRows*padded), sized(&w.norms, extendedRows)
	for i := range bs {
		b := &bs[i]
		for at := 0; at < b.Rows; at += extendedRows {
			n := min(extendedRows, b.Rows-at)
			for j := range n {
				row := b.Data[b.OffsetBytes+(at+j)*b.StrideBytes:][:width]
				if err := unpackExtended(codes[j*padded:(j+1)*padded], row, s.exBits); err != nil {
					return err
				}
			}
			vec.Dot(products, s.turned, vec.Uint8, vec.Block{Data: codes, Stride: padded, Rows: n})
			for j, ip := range products[:n] {
				dst[at+j] = dst[at+j]*high + ip + middle
			}
		}
		dst = dst[b.Rows:]
	}
	return nil
}

// base is the part of the estimate that the list shares: |q-c|^2, or -q.c for dot.
func (s *rotatedScorer) base(number int) float32 {
	var sum float64
	for i, c := range s.head.centroids[number*s.head.dim:][:s.head.dim] {
		if s.q.metric == index.MetricDot {
			sum -= float64(s.q.vector[i]) * float64(c)
		} else {
			sum += (float64(s.q.vector[i]) - float64(c)) * (float64(s.q.vector[i]) - float64(c))
		}
	}
	return float32(sum)
}

const rotationRounds = 4

// rotate applies four rounds of sign flips and Walsh-Hadamard transforms. Where the dimension is no power of two, rounds transform the first and
// the last P entries by turns and mix the halves after each (docs/format/ivf.md section 7).
func (r *rotated) rotate(v []float32) []float32 {
	x := make([]float32, len(v))
	copy(x, v)
	dim := len(x)
	p := 1
	for p*2 <= dim {
		p *= 2
	}
	scale := float32(1 / math.Sqrt(float64(p)))
	for round := range rotationRounds {
		signs := r.signs[round*dim/8 : (round+1)*dim/8]
		for i := range x {
			if signs[i/8]>>(i%8)&1 == 1 {
				x[i] = -x[i]
			}
		}
		part := x[:p]
		if p < dim && round%2 == 1 {
			part = x[dim-p:]
		}
		hadamard(part)
		for i := range part {
			part[i] *= scale
		}
		if p < dim {
			for i := range dim / 2 {
				a, b := x[i], x[i+dim/2]
				x[i], x[i+dim/2] = a+b, a-b
			}
		}
	}
	if p < dim {
		for i := range x {
			x[i] *= 0.25 // each mixing step made the vector longer by the root of two
		}
	}
	return x
}

func hadamard(x []float32) {
	for half := 1; half < len(x); half *= 2 {
		for i := 0; i < len(x); i += 2 * half {
			for j := i; j < i+half; j++ {
				a, b := x[j], x[j+half]
				x[j], x[j+half] = a+b, a-b
			}
		}
	}
}

// packedRows is how many rows share a block of packed codes.
const packedRows = 32

// unpackSigns turns the packed codes of a list into [width][rows]. Full blocks of 32 rows hold nibbles of rows j and j+16 in one byte, in the
// order of the shuffle instruction that the writer uses; the rows after them are column-major already.
func unpackSigns(codes []byte, rows, width int, buf *[]byte) []byte {
	order := [16]int{0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}
	out := sized(buf, rows*width)
	full := rows / packedRows * packedRows
	for first := 0; first < full; first += packedRows {
		block := codes[first*width : (first+packedRows)*width]
		for b := range width {
			at := out[b*rows+first:][:packedRows]
			low, high := block[b*packedRows:][:16], block[b*packedRows+16:][:16]
			for j, row := range order {
				at[row] = low[j]&15 | high[j]<<4
				at[row+16] = low[j]>>4 | high[j]&0xf0
			}
		}
	}
	tail := rows - full
	for b := range width {
		copy(out[b*rows+full:b*rows+rows], codes[full*width+b*tail:][:tail])
	}
	return out
}
