package vector

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/internal/mem"
	"github.com/lakesql/lakesql/internal/spawn"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/file"
)

// Segment is one immutable IVF index over some fragments. Centroids, list bounds and codebooks stay in memory while it is open; row keys of
// probed lists are cached. It is safe for concurrent use.
type Segment struct {
	meta    index.Meta
	head    *header
	aux     *file.Reader
	rowIDs  file.Column
	rows    rowStorage
	bytes   []byte // hamming: the centroids as stored
	packed  []byte // the centroids as float32 bytes, for the kernels
	rowsMax uint64 // of the longest list
	cache   *index.Cache
	cacheID uint64
	held    *mem.Reservation
}

var _ index.NearestSegment = (*Segment)(nil)

// rowStorage is the rows of the auxiliary file: vectors or codes of them.
type rowStorage interface {
	fmt.Stringer // what a row is, for people
	// columns are the names of the file's columns that are read.
	columns() []string
	quantized() bool
	rowBytes() int // of a stored row
	// prepare makes what every list of one search shares. Errors: ErrInvalid.
	prepare(q *query) (scorer, error)
}

// scorer computes distances of one query to the rows of lists. It is safe for concurrent use.
type scorer interface {
	// splits says that score may be asked for a part of a list: the rows lie one after the other.
	splits() bool
	// score sets dst[i] to the distance of row start+i of the list, for all of dst, and returns the bytes it read.
	score(ctx context.Context, list, start int, dst []float32, w *scratch) (bytesRead int64, err error)
}

// scratch is one goroutine's reusable memory.
type scratch struct {
	norms []float32
	codes []byte
	other []byte
	table []float32
	shift []float32
}

func sized[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	*s = (*s)[:n]
	return *s
}

// Open reads the headers of a segment's files. meta.Kind and meta.Metric are set to what the files say. Errors: ErrUnsupported for a kind that
// lakesql cannot search, ErrCorrupt, ErrNotFound, ErrMemoryLimit, ErrIO.
func Open(ctx context.Context, open index.OpenFile, meta index.Meta, opts index.OpenOptions) (*Segment, error) {
	idx, err := openFile(ctx, open, IndexFile)
	if err != nil {
		return nil, err
	}
	aux, err := openFile(ctx, open, AuxiliaryFile)
	if err != nil {
		return nil, err
	}
	var s *Segment
	err = spawn.Guard(func() (err error) {
		s, err = newSegment(ctx, idx, aux, meta, opts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("index %q segment %s: %w", meta.Name, meta.UUID, err)
	}
	return s, nil
}

func openFile(ctx context.Context, open index.OpenFile, name string) (*file.Reader, error) {
	f, err := open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("vector index: %w", err)
	}
	return file.Open(ctx, f, file.Options{})
}

func newSegment(ctx context.Context, idx, aux *file.Reader, meta index.Meta, opts index.OpenOptions) (*Segment, error) {
	head, err := readHeader(ctx, idx, aux)
	if err != nil {
		return nil, err
	}
	meta.Kind, meta.Metric = head.kind, head.metric
	s := &Segment{meta: meta, head: head, aux: aux, held: opts.Budget.Reserve()}
	if s.rows, err = newStorage(ctx, head, aux); err != nil {
		return nil, err
	}
	if err := s.checkColumns(); err != nil {
		return nil, err
	}
	for _, l := range head.lists {
		s.rowsMax = max(s.rowsMax, l.rows)
	}
	if head.metric == index.MetricHamming {
		if head.elem != vec.Uint8 {
			return nil, errs.Corrupt("centroids", -1, "hamming distance over %v", head.elem)
		}
		s.bytes = make([]byte, len(head.centroids))
		for i, x := range head.centroids {
			s.bytes[i] = byte(x)
		}
	}
	s.packed = floatBytes(head.centroids)
	if err := s.held.Grow(int64(len(head.centroids))*12 + int64(len(head.lists))*16); err != nil {
		return nil, err
	}
	s.cache = opts.OwnCache()
	s.cacheID = s.cache.Register()
	return s, nil
}

// rowsPerByte bounds how many row keys a byte of their column stands for.
const rowsPerByte = 64

func (s *Segment) checkColumns() error {
	cols, err := s.aux.Columns(append([]string{columnRowID}, s.rows.columns()...)...)
	if err != nil {
		return errs.Corrupt("schema", -1, "%w", err)
	}
	if t := cols[0].Field.Type; t == nil || t.Name() != "uint64" {
		return errs.Corrupt("schema", -1, "column %s of type %v, want uint64", columnRowID, t)
	}
	s.rowIDs = cols[0]
	// Keys are distinct, so that no encoding makes them much smaller: more rows than that are not there, and must not size an allocation.
	if most := uint64(s.aux.ColumnBytes(s.rowIDs))*rowsPerByte + 1024; s.aux.Rows() > most {
		return errs.Corrupt("schema", -1, "%d rows in %d bytes of column %s", s.aux.Rows(), s.aux.ColumnBytes(s.rowIDs), columnRowID)
	}
	return nil
}

// newStorage picks the reader of the rows by the kind's last word: a graph above them (HNSW) is not needed to compare rows of a list.
func newStorage(ctx context.Context, h *header, aux *file.Reader) (rowStorage, error) {
	if h.metric == index.MetricHamming && h.kind != index.KindIVFFlat {
		return nil, errs.New(errs.ErrUnsupported, "index of kind %s over hamming distance", h.kind)
	}
	switch strings.TrimPrefix(strings.TrimPrefix(string(h.kind), "IVF_"), "HNSW_") {
	case "FLAT":
		return newFlat(h, aux)
	case "SQ":
		return newScalar(h, aux)
	case "PQ":
		return newProduct(ctx, h, aux)
	case "RQ":
		return newRotated(ctx, h, aux)
	}
	return nil, errs.New(errs.ErrUnsupported, "vector index of kind %q", h.kind)
}

// codeColumn finds a column of width bytes a row.
func codeColumn(aux *file.Reader, name string, elem vec.Elem, dim int) (file.Column, error) {
	cols, err := aux.Columns(name)
	if err != nil {
		return file.Column{}, errs.Corrupt("schema", -1, "%w", err)
	}
	have, n, err := ElemOf(cols[0].Field.Type)
	if err != nil || have != elem || n != dim {
		return file.Column{}, errs.Corrupt("schema", -1, "column %s of type %v, want %d x %v", name, cols[0].Field.Type, dim, elem)
	}
	return cols[0], nil
}

// Meta implements index.Segment.
func (s *Segment) Meta() index.Meta { return s.meta }

// Quantized implements index.NearestSegment.
func (s *Segment) Quantized() bool { return s.rows.quantized() }

// Dim returns the dimension of the indexed vectors.
func (s *Segment) Dim() int { return s.head.dim }

// Lists returns the number of lists.
func (s *Segment) Lists() int { return len(s.head.lists) }

// Rows returns the number of rows in all lists.
func (s *Segment) Rows() uint64 {
	var n uint64
	for _, l := range s.head.lists {
		n += l.rows
	}
	return n
}

// Close drops what the segment cached. It is idempotent.
func (s *Segment) Close() error {
	s.cache.Drop(s.cacheID)
	s.held.Free()
	return nil
}

// keys returns the stored keys of a list; the slice must not be changed.
func (s *Segment) keys(ctx context.Context, number int) ([]uint64, int64, error) {
	if v, ok := s.cache.Get(s.cacheID, uint64(number)); ok {
		return v.([]uint64), 0, nil
	}
	l := s.head.lists[number]
	batch, err := s.aux.ReadRange(ctx, []file.Column{s.rowIDs}, l.first, l.first+l.rows, file.ReadOptions{})
	if err != nil {
		return nil, 0, err
	}
	defer batch.Release()
	ids, ok := batch.Column(0).(*array.Uint64)
	if !ok || ids.NullN() > 0 || uint64(ids.Len()) != l.rows {
		return nil, 0, errs.Corrupt(fmt.Sprintf("list %d", number), -1, "row keys: %s with %d nulls", batch.Column(0).DataType(), batch.Column(0).NullN())
	}
	out := make([]uint64, l.rows)
	copy(out, ids.Uint64Values())
	s.cache.Put(s.cacheID, uint64(number), out, int64(8*len(out)))
	return out, int64(8 * len(out)), nil
}

// blocks returns rows [start, end) of a list as blocks that are checked.
func blocks(ctx context.Context, aux *file.Reader, col file.Column, l list, start, rows, width int) ([]Block, error) {
	first := l.first + uint64(start)
	out, err := aux.FixedBlocks(ctx, col, first, first+uint64(rows))
	if err != nil {
		return nil, err
	}
	have := 0
	for i := range out {
		b := &out[i]
		if b.ValueBytes != width || b.Rows < 0 || (b.Rows > 0 && (b.OffsetBytes < 0 || b.StrideBytes < 0 || width > len(b.Data)-b.OffsetBytes ||
			(b.StrideBytes > 0 && b.Rows-1 > (len(b.Data)-b.OffsetBytes-width)/b.StrideBytes))) {
			return nil, errs.Corrupt("rows", -1, "%d rows of %d bytes in %d bytes, want %d bytes a row", b.Rows, b.ValueBytes, len(b.Data), width)
		}
		have += b.Rows
	}
	if have != rows {
		return nil, errs.Corrupt("rows", -1, "%d of %d rows from row %d", have, rows, first)
	}
	return out, nil
}

// contiguous returns the rows of a list as one run of bytes: in place where they lie so, else copied into w.codes.
func contiguous(bs []Block, width int, buf *[]byte) []byte {
	if len(bs) == 1 && bs[0].StrideBytes == width {
		return bs[0].Data[bs[0].OffsetBytes:][:bs[0].Rows*width]
	}
	rows := 0
	for i := range bs {
		rows += bs[i].Rows
	}
	out := sized(buf, rows*width)
	at := 0
	for i := range bs {
		b := &bs[i]
		if b.StrideBytes == width {
			at += copy(out[at:], b.Data[b.OffsetBytes:][:b.Rows*width])
			continue
		}
		for j := range b.Rows {
			at += copy(out[at:], b.Data[b.OffsetBytes+j*b.StrideBytes:][:width])
		}
	}
	return out
}
