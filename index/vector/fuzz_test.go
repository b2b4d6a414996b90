package vector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"

	"github.com/lakesql/lakesql/index"
	"github.com/lakesql/lakesql/internal/errs"
	"github.com/lakesql/lakesql/storage/file"
	"github.com/lakesql/lakesql/storage/object"
	"github.com/lakesql/lakesql/storage/pb/indexpb"
	"github.com/lakesql/lakesql/storage/schema"
)

// image is a segment as its parts, so that each can be wrong on its own.
type image struct {
	index, ivf, storage, distance string // metadata
	centroids, lists, codebook    []byte // global buffers
	column                        string
	width                         int // of the code column; 0 = no column
	extended                      int // RQ of several bits: width of the column of the others
	rows                          int
}

// imageStore writes the image as two files.
func (m image) store(t testing.TB) object.Store {
	t.Helper()
	store := object.NewMemory("image")
	marker := &schema.Field{Name: columnMarker, Logical: "uint64", Type: arrow.PrimitiveTypes.Uint64}
	m.write(t, store, IndexFile, []*schema.Field{marker}, nil, map[string]string{metaIndex: m.index, metaIVF: m.ivf}, m.centroids)
	fields := []*schema.Field{{Name: columnRowID, Logical: "uint64", Type: arrow.PrimitiveTypes.Uint64}}
	keys := array.NewUint64Builder(memory.DefaultAllocator)
	for i := range m.rows {
		keys.Append(uint64(i))
	}
	columns := []arrow.Array{keys.NewArray()}
	if m.width > 0 {
		list := arrow.FixedSizeListOf(int32(m.width), arrow.PrimitiveTypes.Uint8)
		fields = append(fields, &schema.Field{ID: 1, Name: m.column, Logical: fmt.Sprintf("fixed_size_list:uint8:%d", m.width), Type: list})
		codes := array.NewFixedSizeListBuilder(memory.DefaultAllocator, int32(m.width), arrow.PrimitiveTypes.Uint8)
		for i := range m.rows {
			codes.Append(true)
			for j := range m.width {
				codes.ValueBuilder().(*array.Uint8Builder).Append(byte(i*7 + j*13))
			}
		}
		columns = append(columns, codes.NewArray())
	}
	factors := []string{}
	if m.column == columnRQ {
		factors = []string{columnRQAdd, columnRQMul}
	}
	if m.extended > 0 {
		list := arrow.FixedSizeListOf(int32(m.extended), arrow.PrimitiveTypes.Uint8)
		fields = append(fields, &schema.Field{ID: 9, Name: columnRQEx, Logical: fmt.Sprintf("fixed_size_list:uint8:%d", m.extended), Type: list})
		codes := array.NewFixedSizeListBuilder(memory.DefaultAllocator, int32(m.extended), arrow.PrimitiveTypes.Uint8)
		for i := range m.rows {
			codes.Append(true)
			for j := range m.extended {
				codes.ValueBuilder().(*array.Uint8Builder).Append(byte(i*5 + j*3))
			}
		}
		columns = append(columns, codes.NewArray())
		factors = []string{columnRQAddEx, columnRQMulEx}
	}
	for i, name := range factors {
		fields = append(fields, &schema.Field{ID: int32(2 + i), Name: name, Logical: "float", Type: arrow.PrimitiveTypes.Float32})
		f := array.NewFloat32Builder(memory.DefaultAllocator)
		for j := range m.rows {
			f.Append(float32(j))
		}
		columns = append(columns, f.NewArray())
	}
	m.write(t, store, AuxiliaryFile, fields, columns, map[string]string{metaIVF: m.ivf, metaStorage: m.storage, metaDistance: m.distance}, m.lists, m.codebook)
	return store
}

func (m image) write(t testing.TB, store object.Store, name string, fields []*schema.Field, columns []arrow.Array, meta map[string]string, buffers ...[]byte) {
	t.Helper()
	ctx := context.Background()
	out, err := store.Create(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	s := &schema.Schema{Fields: fields}
	w, err := file.NewWriter(out, s, file.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(columns) > 0 && m.rows > 0 {
		if err := w.Write(ctx, array.NewRecordBatch(s.Arrow(), columns, int64(m.rows))); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range meta {
		w.SetMetadata(key, []byte(value))
	}
	for _, b := range buffers {
		if _, err := w.AddGlobalBuffer(b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(ctx); err != nil {
		t.Fatal(err)
	}
}

func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func tensor(kind indexpb.Tensor_DataType, data int, shape ...uint32) *indexpb.Tensor {
	return &indexpb.Tensor{DataType: kind, Shape: shape, Data: make([]byte, data)}
}

// images are sound segments of each kind: two lists of 3 and 37 rows over 8 dimensions.
func images() map[string]image {
	base := image{
		ivf: "1", distance: "l2", rows: 40,
		centroids: marshal(&indexpb.IVF{CentroidsTensor: tensor(indexpb.Tensor_FLOAT32, 64, 2, 8)}),
		lists:     marshal(&indexpb.IVF{Offsets: []uint64{0, 3}, Lengths: []uint32{3, 37}}),
		codebook:  marshal(tensor(indexpb.Tensor_FLOAT32, 256*8*4, 256, 8)),
	}
	with := func(kind, storage, column string, width int) image {
		m := base
		text, err := json.Marshal([]string{storage})
		if err != nil {
			panic(err)
		}
		m.index, m.storage, m.column, m.width = fmt.Sprintf(`{"type":%q,"distance_type":"l2"}`, kind), string(text), column, width
		return m
	}
	flat := with("IVF_FLAT", `{"dim":8}`, columnFlat, 8)
	flat.centroids = marshal(&indexpb.IVF{CentroidsTensor: tensor(indexpb.Tensor_UINT8, 16, 2, 8)})
	extended := with("IVF_RQ", `{"fast_rotation_signs":[1,2,3,4],"rotation_type":"fast","code_dim":8,"num_bits":5,"packed":true}`, columnRQ, 1)
	extended.extended = 32
	return map[string]image{
		"flat": flat,
		"sq":   with("IVF_HNSW_SQ", `{"dim":8,"num_bits":8,"bounds":{"start":-1,"end":1}}`, columnSQ, 8),
		"pq":   with("IVF_PQ", `{"codebook_position":2,"nbits":8,"num_sub_vectors":4,"dimension":8,"transposed":true}`, columnPQ, 4),
		"rq5":  extended,
		"rq":   with("IVF_RQ", `{"fast_rotation_signs":[1,2,3,4],"rotation_type":"fast","code_dim":8,"num_bits":1,"packed":true}`, columnRQ, 1),
	}
}

// search opens the image and reads every list.
func (m image) search(t testing.TB) ([]index.Hit, error) {
	t.Helper()
	ctx := context.Background()
	s, err := Open(ctx, m.store(t).Open, index.Meta{Name: "i"}, index.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	return s.Nearest(ctx, index.NearestQuery{Vector: make([]float32, s.Dim()), Metric: s.Meta().Metric, K: 1000, MinProbes: 1 << 20})
}

func TestSoundImagesAreSearched(t *testing.T) {
	for name, m := range images() {
		if hits, err := m.search(t); err != nil || len(hits) != 40 {
			t.Errorf("%s: %d hits, %v", name, len(hits), err)
		}
	}
}

func TestBrokenSegmentsAreRefused(t *testing.T) {
	lists := func(offsets []uint64, lengths []uint32) []byte {
		return marshal(&indexpb.IVF{Offsets: offsets, Lengths: lengths})
	}
	centroids := func(x *indexpb.Tensor) []byte { return marshal(&indexpb.IVF{CentroidsTensor: x}) }
	for _, c := range []struct {
		name, kind string
		change     func(*image)
		want       error
	}{
		{"index metadata that is no JSON", "flat", func(m *image) { m.index = "{" }, errs.ErrCorrupt},
		{"an unknown kind", "flat", func(m *image) { m.index = `{"type":"IVF_XQ","distance_type":"l2"}` }, errs.ErrUnsupported},
		{"an unknown distance", "flat", func(m *image) { m.index = `{"type":"IVF_FLAT","distance_type":"l1"}` }, errs.ErrUnsupported},
		{"two distances", "flat", func(m *image) { m.distance = "dot" }, errs.ErrCorrupt},
		{"hamming distance over float centroids", "sq", func(m *image) {
			m.index, m.distance = `{"type":"IVF_FLAT","distance_type":"hamming"}`, "hamming"
		}, errs.ErrCorrupt},
		{"a buffer number that is no number", "flat", func(m *image) { m.ivf = "one" }, errs.ErrCorrupt},
		{"a buffer that does not exist", "flat", func(m *image) { m.ivf = "9" }, errs.ErrCorrupt},
		{"the schema as a buffer", "flat", func(m *image) { m.ivf = "-1" }, errs.ErrCorrupt},
		{"a buffer that is no message", "flat", func(m *image) { m.centroids = []byte{0xff, 0xff} }, errs.ErrCorrupt},
		{"no centroid tensor", "flat", func(m *image) { m.centroids = nil }, errs.ErrUnsupported},
		{"a shape that the bytes do not fill", "flat", func(m *image) { m.centroids = centroids(tensor(indexpb.Tensor_FLOAT32, 60, 2, 8)) }, errs.ErrCorrupt},
		{"a shape whose product overflows", "flat", func(m *image) { m.centroids = centroids(tensor(indexpb.Tensor_UINT8, 0, 1<<31, 1<<31, 4)) }, errs.ErrCorrupt},
		{"a shape of one dimension", "flat", func(m *image) { m.centroids = centroids(tensor(indexpb.Tensor_UINT8, 16, 16)) }, errs.ErrCorrupt},
		{"elements that are no vector's", "flat", func(m *image) { m.centroids = centroids(tensor(indexpb.Tensor_UINT64, 128, 2, 8)) }, errs.ErrUnsupported},
		{"fewer lists than centroids", "flat", func(m *image) { m.lists = lists([]uint64{0}, []uint32{3}) }, errs.ErrCorrupt},
		{"a list that ends past the file", "flat", func(m *image) { m.lists = lists([]uint64{0, 3}, []uint32{3, 38}) }, errs.ErrCorrupt},
		{"a list whose offset overflows", "flat", func(m *image) { m.lists = lists([]uint64{0, 1<<64 - 1}, []uint32{3, 2}) }, errs.ErrCorrupt},
		{"storage metadata that is no array", "pq", func(m *image) { m.storage = "{}" }, errs.ErrCorrupt},
		{"two storages", "pq", func(m *image) { m.storage = `["{}","{}"]` }, errs.ErrCorrupt},
		{"storage that is no object", "pq", func(m *image) { m.storage = `["7"]` }, errs.ErrCorrupt},
		{"sub-vectors that do not divide the dimensions", "pq", func(m *image) {
			m.storage = `["{\"codebook_position\":2,\"nbits\":8,\"num_sub_vectors\":3,\"dimension\":8}"]`
		}, errs.ErrCorrupt},
		{"codes of five bits", "pq", func(m *image) {
			m.storage = `["{\"codebook_position\":2,\"nbits\":5,\"num_sub_vectors\":4,\"dimension\":8}"]`
		}, errs.ErrUnsupported},
		{"half a byte of codes", "pq", func(m *image) {
			m.storage = `["{\"codebook_position\":2,\"nbits\":4,\"num_sub_vectors\":1,\"dimension\":8}"]`
		}, errs.ErrCorrupt},
		{"a codebook of another size", "pq", func(m *image) { m.codebook = marshal(tensor(indexpb.Tensor_FLOAT32, 64, 2, 8)) }, errs.ErrCorrupt},
		{"a codebook that does not exist", "pq", func(m *image) {
			m.storage = `["{\"codebook_position\":7,\"nbits\":8,\"num_sub_vectors\":4,\"dimension\":8}"]`
		}, errs.ErrCorrupt},
		{"codes of another width", "pq", func(m *image) { m.width = 5 }, errs.ErrCorrupt},
		{"no code column", "pq", func(m *image) { m.width = 0 }, errs.ErrCorrupt},
		{"bounds the wrong way round", "sq", func(m *image) {
			m.storage = `["{\"dim\":8,\"num_bits\":8,\"bounds\":{\"start\":1,\"end\":-1}}"]`
		}, errs.ErrCorrupt},
		{"scalar codes of four bits", "sq", func(m *image) {
			m.storage = `["{\"dim\":8,\"num_bits\":4,\"bounds\":{\"start\":0,\"end\":1}}"]`
		}, errs.ErrUnsupported},
		{"too few signs", "rq", func(m *image) {
			m.storage = `["{\"fast_rotation_signs\":[1,2,3],\"rotation_type\":\"fast\",\"code_dim\":8,\"num_bits\":1,\"packed\":true}"]`
		}, errs.ErrCorrupt},
		{"codes of eleven bits", "rq5", func(m *image) {
			m.storage = `["{\"fast_rotation_signs\":[1,2,3,4],\"rotation_type\":\"fast\",\"code_dim\":8,\"num_bits\":11,\"packed\":true}"]`
		}, errs.ErrUnsupported},
		{"extended codes of another width", "rq5", func(m *image) { m.extended = 24 }, errs.ErrCorrupt},
		{"no extended codes", "rq5", func(m *image) { m.extended = 0 }, errs.ErrCorrupt},
		{"a matrix rotation", "rq", func(m *image) { m.storage = `["{\"rotate_mat_position\":2,\"num_bits\":1,\"packed\":true}"]` }, errs.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := images()[c.kind]
			c.change(&m)
			if _, err := m.search(t); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

// FuzzMetadata gives a segment any metadata and global buffers: it is refused as corrupt or unsupported, or searched.
func FuzzMetadata(f *testing.F) {
	for _, m := range images() {
		f.Add(m.index, m.ivf, m.storage, m.distance, m.centroids, m.lists, m.codebook, m.column, uint8(m.width), uint8(m.extended))
	}
	f.Fuzz(func(t *testing.T, head, ivf, storage, distance string, centroids, lists, codebook []byte, column string, width, extended uint8) {
		if column == columnRowID || column == columnRQEx || column == columnRQAdd || column == columnRQMul || column == columnRQAddEx || column == columnRQMulEx || !utf8.ValidString(column) || column == "" {
			return // such columns cannot be written
		}
		m := image{index: head, ivf: ivf, storage: storage, distance: distance, centroids: centroids, lists: lists, codebook: codebook, column: column, width: int(width), extended: int(extended), rows: 40}
		_, err := m.search(t)
		if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrUnsupported) && !errors.Is(err, errs.ErrInvalid) {
			t.Fatal(err)
		}
		if errors.Is(err, errs.ErrInternal) {
			t.Fatal(err)
		}
	})
}

// FuzzFiles gives Open any bytes as the two files.
func FuzzFiles(f *testing.F) {
	for _, m := range images() {
		store := m.store(f)
		var both [][]byte
		for _, name := range []string{IndexFile, AuxiliaryFile} {
			file, err := store.Open(context.Background(), name)
			if err != nil {
				f.Fatal(err)
			}
			b, err := file.Read(context.Background(), object.Range{Size: file.SizeBytes()})
			if err != nil {
				f.Fatal(err)
			}
			both = append(both, b)
		}
		f.Add(both[0], both[1])
	}
	f.Fuzz(func(t *testing.T, idx, aux []byte) {
		ctx := context.Background()
		store := object.NewMemory("fuzz")
		for name, b := range map[string][]byte{IndexFile: idx, AuxiliaryFile: aux} {
			if err := store.Put(ctx, name, b, false); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(ctx, store.Open, index.Meta{}, index.OpenOptions{})
		if err == nil {
			_, err = s.Nearest(ctx, index.NearestQuery{Vector: make([]float32, s.Dim()), Metric: s.Meta().Metric, K: 10})
		}
		if err != nil && !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrUnsupported) || errors.Is(err, errs.ErrInternal) {
			t.Fatal(err)
		}
	})
}
