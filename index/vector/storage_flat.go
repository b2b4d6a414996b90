package vector

import (
	"context"
	"encoding/json"
	"math"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/file"
)

// flat rows are the vectors themselves, of length 1 for cosine.
type flat struct {
	head *header
	aux  *file.Reader
	col  file.Column
}

func newFlat(h *header, aux *file.Reader) (rowStorage, error) {
	col, err := codeColumn(aux, columnFlat, h.elem, h.dim)
	if err != nil {
		return nil, err
	}
	return &flat{head: h, aux: aux, col: col}, nil
}

func (f *flat) columns() []string { return []string{columnFlat} }

// quantized: halves of rescaled vectors are not the column's values any more.
func (f *flat) quantized() bool {
	return f.head.metric == index.MetricCosine && (f.head.elem == vec.Float16 || f.head.elem == vec.BFloat16)
}

func (f *flat) rowBytes() int { return f.head.dim * f.head.elem.Size() }

func (f *flat) prepare(q *query) (scorer, error) {
	c, err := newComparer(q.metric, f.head.elem, q.raw)
	if err != nil {
		return nil, err
	}
	return &flatScorer{flat: f, cmp: c}, nil
}

type flatScorer struct {
	*flat
	cmp *comparer
}

func (f *flatScorer) splits() bool { return true }

func (f *flatScorer) score(ctx context.Context, number, start int, dst []float32, w *scratch) (int64, error) {
	width := f.head.dim * f.head.elem.Size()
	bs, err := blocks(ctx, f.aux, f.col, f.head.lists[number], start, len(dst), width)
	if err != nil {
		return 0, err
	}
	read := int64(len(dst) * width)
	for i := range bs {
		n := bs[i].Rows
		f.cmp.block(dst[:n], sized(&w.norms, n), vec.Block{Data: bs[i].Data, Offset: bs[i].OffsetBytes, Stride: bs[i].StrideBytes, Rows: n})
		dst = dst[n:]
	}
	return read, nil
}

// scalar rows are one byte a dimension: floor((v-start)*255/(end-start)), clamped. A code stands for the middle of its interval.
type scalar struct {
	head        *header
	aux         *file.Reader
	col         file.Column
	start, step float64
}

func newScalar(h *header, aux *file.Reader) (rowStorage, error) {
	var m struct {
		Dim     int `json:"dim"`
		NumBits int `json:"num_bits"`
		Bounds  struct {
			Start float64 `json:"start"`
			End   float64 `json:"end"`
		} `json:"bounds"`
	}
	if err := json.Unmarshal(h.storage, &m); err != nil {
		return nil, errs.Corrupt(metaStorage, -1, "%w", err)
	}
	if m.NumBits != 8 {
		return nil, errs.New(errs.ErrUnsupported, "scalar quantization to %d bits", m.NumBits)
	}
	if m.Dim != h.dim || !(m.Bounds.Start <= m.Bounds.End) || math.IsInf(m.Bounds.End-m.Bounds.Start, 0) {
		return nil, errs.Corrupt(metaStorage, -1, "%d dimensions from %v to %v, want %d", m.Dim, m.Bounds.Start, m.Bounds.End, h.dim)
	}
	col, err := codeColumn(aux, columnSQ, vec.Uint8, h.dim)
	if err != nil {
		return nil, err
	}
	return &scalar{head: h, aux: aux, col: col, start: m.Bounds.Start, step: (m.Bounds.End - m.Bounds.Start) / 255}, nil
}

func (s *scalar) columns() []string { return []string{columnSQ} }
func (s *scalar) quantized() bool   { return true }
func (s *scalar) rowBytes() int     { return s.head.dim }

// scalarScorer computes distance = scale * kernel(query, codes) + shift with the query in units of codes.
type scalarScorer struct {
	*scalar
	dot          bool
	query        []float32
	scale, shift float32
}

func (s *scalar) prepare(q *query) (scorer, error) {
	out := &scalarScorer{scalar: s, query: make([]float32, len(q.vector))}
	middle := s.start + s.step/2 // of code 0
	switch {
	case q.metric == index.MetricDot:
		out.dot = true
		var sum float64
		for i, x := range q.vector {
			out.query[i] = x
			sum += float64(x)
		}
		out.scale, out.shift = float32(-s.step), float32(1-middle*sum)
	case s.step == 0: // every stored value is start: a constant
		var sum float64
		for _, x := range q.vector {
			sum += (float64(x) - s.start) * (float64(x) - s.start)
		}
		out.shift = float32(sum)
	default:
		for i, x := range q.vector {
			out.query[i] = float32((float64(x) - middle) / s.step)
		}
		out.scale = float32(s.step * s.step)
	}
	if q.metric == index.MetricCosine { // |a-b|^2 = 2(1-cos) for vectors of length 1
		out.scale, out.shift = out.scale/2, out.shift/2
	}
	return out, nil
}

func (s *scalarScorer) splits() bool { return true }

func (s *scalarScorer) score(ctx context.Context, number, start int, dst []float32, _ *scratch) (int64, error) {
	bs, err := blocks(ctx, s.aux, s.col, s.head.lists[number], start, len(dst), s.head.dim)
	if err != nil {
		return 0, err
	}
	read := int64(len(dst) * s.head.dim)
	for i := range bs {
		b := vec.Block{Data: bs[i].Data, Offset: bs[i].OffsetBytes, Stride: bs[i].StrideBytes, Rows: bs[i].Rows}
		part := dst[:b.Rows]
		if s.dot {
			vec.Dot(part, s.query, vec.Uint8, b)
		} else {
			vec.L2(part, s.query, vec.Uint8, b)
		}
		for j, d := range part {
			part[j] = d*s.scale + s.shift
		}
		dst = dst[b.Rows:]
	}
	return read, nil
}
