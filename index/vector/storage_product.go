package vector

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/pb/indexpb"
)

// product rows are product quantizer codes (Jegou 2011): for each sub-vector the number of the nearest codeword, of the residual v - centroid
// for l2 and cosine, of v itself for dot.
type product struct {
	head       *header
	aux        *file.Reader
	col        file.Column
	bits       int       // 4 or 8
	subs       int       // sub-vectors
	subDim     int       //
	words      int       // 1 << bits
	codebook   []float32 // [subs][subDim][words]: element d of all codewords of a sub-vector side by side
	transposed bool      // code byte b of all rows of a list lies together; else row by row
}

const codebookMax = 1 << 28 // floats

func newProduct(ctx context.Context, h *header, aux *file.Reader) (rowStorage, error) {
	var m struct {
		Position   *int   `json:"codebook_position"`
		NumBits    int    `json:"nbits"`
		Subs       int    `json:"num_sub_vectors"`
		Dim        int    `json:"dimension"`
		Tensor     []byte `json:"-"`
		Transposed bool   `json:"transposed"`
	}
	if err := json.Unmarshal(h.storage, &m); err != nil {
		return nil, errs.Corrupt(metaStorage, -1, "%w", err)
	}
	if m.NumBits != 4 && m.NumBits != 8 {
		return nil, errs.New(errs.ErrUnsupported, "product quantization to %d bits", m.NumBits)
	}
	if m.Dim != h.dim || m.Subs < 1 || m.Subs > h.dim || h.dim%m.Subs != 0 || m.Subs*m.NumBits%8 != 0 {
		return nil, errs.Corrupt(metaStorage, -1, "%d sub-vectors of %d bits over %d dimensions, want %d", m.Subs, m.NumBits, m.Dim, h.dim)
	}
	if m.Position == nil || *m.Position < 1 {
		return nil, errs.New(errs.ErrUnsupported, "product quantization without a codebook in the file")
	}
	p := &product{head: h, aux: aux, bits: m.NumBits, subs: m.Subs, subDim: h.dim / m.Subs, words: 1 << m.NumBits, transposed: m.Transposed}
	if err := p.readCodebook(ctx, *m.Position); err != nil {
		return nil, err
	}
	var err error
	p.col, err = codeColumn(aux, columnPQ, vec.Uint8, p.codeBytes())
	return p, err
}

// readCodebook turns [sub][word][element] into [sub][element][word], the order in which tables are made.
func (p *product) readCodebook(ctx context.Context, position int) error {
	b, err := globalBuffer(ctx, p.aux, position)
	if err != nil {
		return err
	}
	t := &indexpb.Tensor{}
	if err := proto.Unmarshal(b, t); err != nil {
		return errs.Corrupt("codebook", -1, "%w", err)
	}
	stored, _, _, err := readTensor(t, "codebook")
	if err != nil {
		return err
	}
	if len(stored) > codebookMax || len(stored) != p.words*p.head.dim {
		return errs.Corrupt("codebook", -1, "%d values, want %d", len(stored), p.words*p.head.dim)
	}
	p.codebook = make([]float32, len(stored))
	for s := range p.subs {
		for w := range p.words {
			for d := range p.subDim {
				p.codebook[(s*p.subDim+d)*p.words+w] = stored[(s*p.words+w)*p.subDim+d]
			}
		}
	}
	return nil
}

func (p *product) codeBytes() int    { return p.subs * p.bits / 8 }
func (p *product) columns() []string { return []string{columnPQ} }
func (p *product) quantized() bool   { return true }
func (p *product) rowBytes() int     { return p.codeBytes() }

type productScorer struct {
	*product
	q      *query
	tables []float32 // dot: the same for every list
}

func (p *product) prepare(q *query) (scorer, error) {
	s := &productScorer{product: p, q: q}
	if q.metric == index.MetricDot {
		s.tables = make([]float32, p.subs*p.words)
		for i := range p.subs {
			vec.DotColumns(s.tables[i*p.words:(i+1)*p.words], q.vector[i*p.subDim:(i+1)*p.subDim], p.codebook[i*p.subDim*p.words:])
		}
	}
	return s, nil
}

// splits: the codes of a list are column-major, so a list is scored as a whole.
func (s *productScorer) splits() bool { return false }

func (s *productScorer) score(ctx context.Context, number, _ int, dst []float32, w *scratch) (int64, error) {
	n, width := len(dst), s.codeBytes()
	bs, err := blocks(ctx, s.aux, s.col, s.head.lists[number], 0, n, width)
	if err != nil {
		return 0, err
	}
	codes := contiguous(bs, width, &w.codes)
	if !s.transposed {
		codes = transpose(codes, n, width, &w.other)
	}
	tables := s.tables
	if tables == nil {
		tables = s.residualTables(number, w)
	}
	if s.bits == 4 {
		vec.Lookup4(dst, codes, tables, n)
	} else {
		vec.Lookup8(dst, codes, tables, n)
	}
	switch s.q.metric {
	case index.MetricDot:
		oneMinus(dst)
	case index.MetricCosine: // |a-b|^2 = 2(1-cos) for vectors of length 1
		for i := range dst {
			dst[i] /= 2
		}
	}
	return int64(n * width), nil
}

// residualTables are squared distances between query minus centroid and the codewords.
func (s *productScorer) residualTables(number int, w *scratch) []float32 {
	residual := sized(&w.shift, s.head.dim)
	for i, c := range s.head.centroids[number*s.head.dim:][:s.head.dim] {
		residual[i] = s.q.vector[i] - c
	}
	tables := sized(&w.table, s.subs*s.words)
	for i := range s.subs {
		vec.L2Columns(tables[i*s.words:(i+1)*s.words], residual[i*s.subDim:(i+1)*s.subDim], s.codebook[i*s.subDim*s.words:])
	}
	return tables
}

// transpose turns [rows][width] into [width][rows].
func transpose(codes []byte, rows, width int, buf *[]byte) []byte {
	out := sized(buf, rows*width)
	for r := range rows {
		for b, c := range codes[r*width : (r+1)*width] {
			out[b*rows+r] = c
		}
	}
	return out
}
