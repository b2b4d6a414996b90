package vector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/vec"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/pb/indexpb"
	"github.com/lakesql/lakesql/storage/schema"
)

// write makes both files: the rows first, so that an index file always has its rows.
func (b *builder) write(ctx context.Context, create CreateFile) (*Built, error) {
	out := &Built{Kind: index.KindIVFFlat, Lists: len(b.counts), Loss: b.loss}
	for _, n := range b.counts {
		out.Rows += n
	}
	aux, err := b.writeAuxiliary(ctx, create, out.Rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AuxiliaryFile, err)
	}
	idx, err := b.writeIndex(ctx, create)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", IndexFile, err)
	}
	out.Files = []BuiltFile{{AuxiliaryFile, aux}, {IndexFile, idx}}
	out.Details, err = proto.MarshalOptions{Deterministic: true}.Marshal(&indexpb.VectorIndexDetails{
		MetricType:  metricNumber(b.opts.Metric),
		Compression: &indexpb.VectorIndexDetails_Flat_{Flat: &indexpb.VectorIndexDetails_Flat{}},
	})
	return out, err
}

func metricNumber(m index.Metric) indexpb.VectorIndexDetails_MetricType {
	switch m {
	case index.MetricCosine:
		return indexpb.VectorIndexDetails_COSINE
	case index.MetricDot:
		return indexpb.VectorIndexDetails_DOT
	case index.MetricHamming:
		return indexpb.VectorIndexDetails_HAMMING
	}
	return indexpb.VectorIndexDetails_L2
}

// withFile runs f on a new file, which becomes visible only if f and the end of the file succeed.
func (b *builder) withFile(ctx context.Context, create CreateFile, name string, fields []*schema.Field, f func(*file.Writer) error) (int64, error) {
	w, err := create(ctx, name)
	if err != nil {
		return 0, err
	}
	out, err := file.NewWriter(w, &schema.Schema{Fields: fields}, file.WriterOptions{Version: b.opts.FileVersion})
	if err != nil {
		return 0, errors.Join(err, w.Abort())
	}
	if err := f(out); err != nil {
		return 0, errors.Join(err, w.Abort())
	}
	written, err := out.Finish(ctx)
	if err != nil {
		return 0, errors.Join(err, w.Abort())
	}
	return written.SizeBytes, nil
}

func (b *builder) writeAuxiliary(ctx context.Context, create CreateFile, total uint64) (int64, error) {
	element, logical := arrow.DataType(arrow.PrimitiveTypes.Float32), "float"
	if b.opts.Elem == vec.Float16 {
		element, logical = arrow.FixedWidthTypes.Float16, "halffloat"
	}
	list := arrow.FixedSizeListOf(int32(b.opts.Dim), element)
	fields := []*schema.Field{
		{ID: 0, Name: columnRowID, Logical: "uint64", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{ID: 1, Name: columnFlat, Logical: fmt.Sprintf("fixed_size_list:%s:%d", logical, b.opts.Dim), Type: list},
	}
	arrowSchema := (&schema.Schema{Fields: fields}).Arrow()
	return b.withFile(ctx, create, AuxiliaryFile, fields, func(w *file.Writer) error {
		var done uint64
		for _, r := range b.bufferRanges(b.opts.Dim * b.opts.Elem.Size()) {
			n, err := b.writeLists(ctx, w, arrowSchema, r[0], r[1])
			if err != nil {
				return err
			}
			done += n
			b.opts.Progress("write", int64(done), int64(total))
		}
		ivf := &indexpb.IVF{}
		var first uint64
		for _, n := range b.counts {
			ivf.Offsets, ivf.Lengths = append(ivf.Offsets, first), append(ivf.Lengths, uint32(n))
			first += n
		}
		dim, err := json.Marshal(fmt.Sprintf(`{"dim":%d}`, b.opts.Dim))
		if err != nil {
			return err
		}
		w.SetMetadata(metaDistance, []byte(b.opts.Metric))
		w.SetMetadata(metaStorage, []byte("["+string(dim)+"]"))
		return addIVF(w, ivf)
	})
}

// writeLists writes the rows of lists [from, to) and returns how many.
func (b *builder) writeLists(ctx context.Context, w *file.Writer, s *arrow.Schema, from, to int) (uint64, error) {
	var rows uint64
	for _, n := range b.counts[from:to] {
		rows += n
	}
	size := int64(rows) * int64(b.opts.Dim*b.opts.Elem.Size()+8)
	if err := b.held.Grow(size); err != nil {
		return 0, err
	}
	defer b.held.Shrink(size)
	if rows == 0 {
		return 0, nil
	}
	keys, vectors, err := b.gather(ctx, from, to)
	if err != nil {
		return 0, err
	}
	list := s.Field(1).Type.(*arrow.FixedSizeListType)
	ids := array.NewData(arrow.PrimitiveTypes.Uint64, int(rows), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Uint64Traits.CastToBytes(keys))}, nil, 0, 0)
	items := array.NewData(list.Elem(), int(rows)*b.opts.Dim, []*memory.Buffer{nil, memory.NewBufferBytes(vectors)}, nil, 0, 0)
	values := array.NewData(list, int(rows), []*memory.Buffer{nil}, []arrow.ArrayData{items}, 0, 0)
	columns := []arrow.Array{array.MakeFromData(ids), array.MakeFromData(values)}
	batch := array.NewRecordBatch(s, columns, int64(rows))
	defer batch.Release()
	for _, c := range columns {
		c.Release()
	}
	return rows, w.Write(ctx, batch)
}

func (b *builder) writeIndex(ctx context.Context, create CreateFile) (int64, error) {
	fields := []*schema.Field{{ID: 0, Name: columnMarker, Logical: "uint64", Type: arrow.PrimitiveTypes.Uint64}}
	return b.withFile(ctx, create, IndexFile, fields, func(w *file.Writer) error {
		n := len(b.counts)
		tensor := &indexpb.Tensor{DataType: indexpb.Tensor_FLOAT32, Shape: []uint32{uint32(n), uint32(b.opts.Dim)}, Data: floatBytes(b.centroids)}
		if b.opts.Elem == vec.Float16 { // centroids keep the column's element type
			tensor.DataType, tensor.Data = indexpb.Tensor_FLOAT16, make([]byte, 2*len(b.centroids))
			for i, x := range b.centroids {
				h := vec.FloatToHalf(x)
				tensor.Data[2*i], tensor.Data[2*i+1] = byte(h), byte(h>>8)
			}
		}
		w.SetMetadata(metaIndex, []byte(fmt.Sprintf(`{"type":%q,"distance_type":%q}`, index.KindIVFFlat, b.opts.Metric)))
		w.SetMetadata(metaFlat, []byte("["+strings.Repeat(`"",`, n-1)+`""]`))
		return addIVF(w, &indexpb.IVF{Offsets: make([]uint64, n), Lengths: make([]uint32, n), CentroidsTensor: tensor, Loss: &b.loss})
	})
}

// addIVF adds the message as a global buffer and names it in the metadata.
func addIVF(w *file.Writer, ivf *indexpb.IVF) error {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(ivf)
	if err != nil {
		return err
	}
	number, err := w.AddGlobalBuffer(raw)
	if err != nil {
		return err
	}
	w.SetMetadata(metaIVF, []byte(fmt.Sprint(number)))
	return nil
}
