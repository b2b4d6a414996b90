package vec

import "fmt"

// Elem is the type of the elements of stored rows.
type Elem int

// The element types. Float32, Float16 and Uint8 have assembly; the others are converted row by row.
const (
	Float32 Elem = iota
	Float16
	Uint8
	Float64
	BFloat16
	Int8
)

// Size returns the bytes of one element.
func (e Elem) Size() int {
	switch e {
	case Float64:
		return 8
	case Float32:
		return 4
	case Float16, BFloat16:
		return 2
	default:
		return 1
	}
}

func (e Elem) String() string {
	switch e {
	case Float32:
		return "float32"
	case Float16:
		return "float16"
	case Uint8:
		return "uint8"
	case Float64:
		return "float64"
	case BFloat16:
		return "bfloat16"
	case Int8:
		return "int8"
	}
	return fmt.Sprintf("element type %d", int(e))
}

// Block is Rows rows of one fixed width in Data: row i starts at Data[Offset+i*Stride]. Rows may overlap nothing else and need no alignment.
type Block struct {
	Data           []byte
	Offset, Stride int // bytes
	Rows           int
}

// Slice returns rows [start, end) of b.
func (b Block) Slice(start, end int) Block {
	return Block{Data: b.Data, Offset: b.Offset + start*b.Stride, Stride: b.Stride, Rows: end - start}
}

// check panics when a row would lie outside the data: the kernels trust it (I1).
func (b Block) check(width, dst int) {
	if b.Rows > dst {
		panic(fmt.Sprintf("vec: %d rows into %d results", b.Rows, dst))
	}
	if b.Rows > 0 && (b.Offset < 0 || b.Stride < 0 || width > len(b.Data) || b.Offset > len(b.Data)-width ||
		(b.Stride > 0 && (b.Rows-1) > (len(b.Data)-width-b.Offset)/b.Stride)) {
		panic(fmt.Sprintf("vec: %d rows of %d bytes at %d+i*%d outside %d bytes", b.Rows, width, b.Offset, b.Stride, len(b.Data)))
	}
}

func checkOffsets(data []byte, offsets []int, width, dst int) {
	if len(offsets) > dst {
		panic(fmt.Sprintf("vec: %d rows into %d results", len(offsets), dst))
	}
	last := len(data) - width
	for _, o := range offsets {
		if o < 0 || o > last {
			panic(fmt.Sprintf("vec: row of %d bytes at %d outside %d bytes", width, o, len(data)))
		}
	}
}

// L2 sets dst[i] to the squared Euclidean distance between query and row i of b, whose elements are of type e; the rows have len(query) elements.
func L2(dst, query []float32, e Elem, b Block) {
	b.check(len(query)*e.Size(), len(dst))
	blockKernel(best(), opL2, e, dst, nil, query, b)
}

// Dot sets dst[i] to the inner product of query and row i.
func Dot(dst, query []float32, e Elem, b Block) {
	b.check(len(query)*e.Size(), len(dst))
	blockKernel(best(), opDot, e, dst, nil, query, b)
}

// DotNorm sets dst[i] to the inner product of query and row i, and norms[i] to the squared norm of row i.
func DotNorm(dst, norms, query []float32, e Elem, b Block) {
	b.check(len(query)*e.Size(), min(len(dst), len(norms)))
	blockKernel(best(), opDotNorm, e, dst, norms, query, b)
}

// L2At is L2 for the rows that start at data[offsets[i]].
func L2At(dst, query []float32, e Elem, data []byte, offsets []int) {
	checkOffsets(data, offsets, len(query)*e.Size(), len(dst))
	gatherKernel(best(), opL2, e, dst, nil, query, data, offsets)
}

// DotAt is Dot for the rows that start at data[offsets[i]].
func DotAt(dst, query []float32, e Elem, data []byte, offsets []int) {
	checkOffsets(data, offsets, len(query)*e.Size(), len(dst))
	gatherKernel(best(), opDot, e, dst, nil, query, data, offsets)
}

// DotNormAt is DotNorm for the rows that start at data[offsets[i]].
func DotNormAt(dst, norms, query []float32, e Elem, data []byte, offsets []int) {
	checkOffsets(data, offsets, len(query)*e.Size(), min(len(dst), len(norms)))
	gatherKernel(best(), opDotNorm, e, dst, norms, query, data, offsets)
}

// op is what a row kernel computes.
type op int

const (
	opL2 op = iota
	opDot
	opDotNorm
)

// isa is a set of kernels.
type isa int

const (
	portable isa = iota
	avx2
	avx512
)

func blockKernel(i isa, o op, e Elem, dst, norms, query []float32, b Block) {
	if b.Rows == 0 {
		return
	}
	if len(query) > 0 && i != portable && blockAssembly(i, o, e, dst, norms, query, b) {
		return
	}
	width := len(query) * e.Size()
	r := newRowReader(e, len(query))
	for j := range b.Rows {
		start := b.Offset + j*b.Stride
		portableRow(o, dst, norms, j, query, r.read(b.Data[start:start+width:start+width]))
	}
}

func gatherKernel(i isa, o op, e Elem, dst, norms, query []float32, data []byte, offsets []int) {
	if len(offsets) == 0 {
		return
	}
	if len(query) > 0 && i != portable && gatherAssembly(i, o, e, dst, norms, query, data, offsets) {
		return
	}
	width := len(query) * e.Size()
	r := newRowReader(e, len(query))
	for j, start := range offsets {
		portableRow(o, dst, norms, j, query, r.read(data[start:start+width:start+width]))
	}
}

func portableRow(o op, dst, norms []float32, j int, query, row []float32) {
	switch o {
	case opL2:
		dst[j] = l2Row(query, row)
	case opDot:
		dst[j] = dotRow(query, row)
	case opDotNorm:
		dst[j], norms[j] = dotRow(query, row), dotRow(row, row)
	}
}
