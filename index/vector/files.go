package vector

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/pb/indexpb"
)

// Names in the two files of a segment: docs/format/ivf.md.
const (
	IndexFile     = "index.idx"
	AuxiliaryFile = "auxiliary.idx"

	metaIndex    = "lance:index"
	metaIVF      = "lance:ivf"
	metaFlat     = "lance:flat"
	metaDistance = "distance_type"
	metaStorage  = "storage_metadata"

	columnRowID  = "_rowid"
	columnFlat   = "flat"
	columnMarker = "__flat_marker"
	columnPQ     = "__pq_code"
	columnSQ     = "__sq_code"
	columnRQ     = "_rabit_codes"
	columnRQAdd  = "__add_factors"
	columnRQMul  = "__scale_factors"

	columnRQEx    = "__blocked_ex_codes"
	columnRQAddEx = "__add_factors_ex"
	columnRQMulEx = "__scale_factors_ex"
)

// metaBytesMax bounds JSON metadata: the largest known is a list of the lists' empty strings.
const metaBytesMax = 256 << 20

// header is what the two files say before any row is read.
type header struct {
	kind      index.Kind
	metric    index.Metric
	dim       int
	elem      vec.Elem // of the centroids, which is that of the column
	centroids []float32
	lists     []list
	loss      float64
	storage   []byte // the JSON object that describes the codes
}

// list is one partition: rows [first, first+rows) of the auxiliary file.
type list struct{ first, rows uint64 }

// readHeader reads metadata and global buffers of both files. Errors: ErrCorrupt, ErrUnsupported, ErrIO.
func readHeader(ctx context.Context, idx, aux *file.Reader) (*header, error) {
	h := &header{}
	if err := h.readIndex(ctx, idx); err != nil {
		return nil, err
	}
	raw, err := metadata(aux, metaDistance)
	if err != nil {
		return nil, err
	}
	if index.Metric(raw) != h.metric {
		return nil, errs.Corrupt(metaDistance, -1, "%q in %s, %q in %s", raw, AuxiliaryFile, h.metric, IndexFile)
	}
	ivf, err := readIVF(ctx, aux)
	if err != nil {
		return nil, err
	}
	n := len(h.centroids) / h.dim
	if len(ivf.GetOffsets()) != n || len(ivf.GetLengths()) != n {
		return nil, errs.Corrupt(metaIVF, -1, "%d offsets and %d lengths for %d centroids", len(ivf.GetOffsets()), len(ivf.GetLengths()), n)
	}
	h.lists = make([]list, n)
	for i := range h.lists {
		h.lists[i] = list{first: ivf.GetOffsets()[i], rows: uint64(ivf.GetLengths()[i])}
		if h.lists[i].first > aux.Rows() || h.lists[i].rows > aux.Rows()-h.lists[i].first {
			return nil, errs.Corrupt(metaIVF, -1, "list %d has %d rows from row %d of %d", i, h.lists[i].rows, h.lists[i].first, aux.Rows())
		}
	}
	h.storage, err = storageMetadata(aux)
	return h, err
}

func (h *header) readIndex(ctx context.Context, idx *file.Reader) error {
	raw, err := metadata(idx, metaIndex)
	if err != nil {
		return err
	}
	var kind struct {
		Type     string `json:"type"`
		Distance string `json:"distance_type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return errs.Corrupt(metaIndex, -1, "%w", err)
	}
	h.kind, h.metric = index.Kind(kind.Type), index.Metric(kind.Distance)
	switch h.metric {
	case index.MetricL2, index.MetricCosine, index.MetricDot, index.MetricHamming:
	default:
		return errs.New(errs.ErrUnsupported, "vector index of distance %q", kind.Distance)
	}
	ivf, err := readIVF(ctx, idx)
	if err != nil {
		return err
	}
	t := ivf.GetCentroidsTensor()
	if t == nil {
		return errs.New(errs.ErrUnsupported, "vector index without a centroid tensor (an old format)")
	}
	var shape []int
	if h.centroids, shape, h.elem, err = readTensor(t, "centroids"); err != nil {
		return err
	}
	if len(shape) != 2 || shape[0] < 1 || shape[0] > listMax || shape[1] < 1 || shape[1] > dimMax {
		return errs.Corrupt("centroids", -1, "shape %v", shape)
	}
	h.dim, h.loss = shape[1], ivf.GetLoss()
	return nil
}

func metadata(r *file.Reader, key string) ([]byte, error) {
	raw, ok := r.Metadata(key)
	if !ok {
		return nil, errs.Corrupt("schema metadata", -1, "no entry %q", key)
	}
	if len(raw) > metaBytesMax {
		return nil, errs.Corrupt(key, -1, "%d bytes of metadata", len(raw))
	}
	return raw, nil
}

// readIVF reads the message in the global buffer that the metadata names.
func readIVF(ctx context.Context, r *file.Reader) (*indexpb.IVF, error) {
	raw, err := metadata(r, metaIVF)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(string(raw), 10, 16)
	if err != nil {
		return nil, errs.Corrupt(metaIVF, -1, "global buffer %q", raw)
	}
	b, err := globalBuffer(ctx, r, int(n))
	if err != nil {
		return nil, err
	}
	ivf := &indexpb.IVF{}
	if err := proto.Unmarshal(b, ivf); err != nil {
		return nil, errs.Corrupt("global buffer "+string(raw), -1, "%w", err)
	}
	return ivf, nil
}

// globalBuffer reads buffer n, whose number came out of the file: a wrong one is the file's fault.
func globalBuffer(ctx context.Context, r *file.Reader, n int) ([]byte, error) {
	b, err := r.GlobalBuffer(ctx, n)
	if err != nil {
		if errors.Is(err, errs.ErrInvalid) {
			return nil, errs.Corrupt("schema metadata", -1, "a global buffer is named that the file has not: %v", err)
		}
		return nil, err
	}
	return b, nil
}

// readTensor decodes a tensor to float32; the product of the shape is checked against the bytes.
func readTensor(t *indexpb.Tensor, what string) (values []float32, shape []int, elem vec.Elem, err error) {
	switch t.GetDataType() {
	case indexpb.Tensor_FLOAT32:
		elem = vec.Float32
	case indexpb.Tensor_FLOAT16:
		elem = vec.Float16
	case indexpb.Tensor_BFLOAT16:
		elem = vec.BFloat16
	case indexpb.Tensor_FLOAT64:
		elem = vec.Float64
	case indexpb.Tensor_UINT8:
		elem = vec.Uint8
	default:
		return nil, nil, 0, errs.New(errs.ErrUnsupported, "%s of element type %v", what, t.GetDataType())
	}
	n := uint64(1)
	for _, d := range t.GetShape() {
		if d == 0 || n > math.MaxInt32/uint64(d) {
			return nil, nil, 0, errs.Corrupt(what, -1, "shape %v", t.GetShape())
		}
		n *= uint64(d)
		shape = append(shape, int(d))
	}
	if len(shape) == 0 || n*uint64(elem.Size()) != uint64(len(t.GetData())) {
		return nil, nil, 0, errs.Corrupt(what, -1, "%d bytes for shape %v of %v", len(t.GetData()), shape, elem)
	}
	values = make([]float32, n)
	vec.Decode(values, elem, t.GetData())
	return values, shape, elem, nil
}

// storageMetadata unwraps the JSON object in a JSON string in a JSON array of one.
func storageMetadata(aux *file.Reader) ([]byte, error) {
	raw, err := metadata(aux, metaStorage)
	if err != nil {
		return nil, err
	}
	var entries []string
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, errs.Corrupt(metaStorage, -1, "%w", err)
	}
	if len(entries) != 1 {
		return nil, errs.Corrupt(metaStorage, -1, "%d entries, want 1", len(entries))
	}
	return []byte(entries[0]), nil
}
