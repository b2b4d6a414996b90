package vec

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// encode writes values as elements of type e, the inverse of Decode.
func encode(dst []byte, e Elem, values []float32) {
	for i, x := range values {
		switch e {
		case Float32:
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		case Float16:
			binary.LittleEndian.PutUint16(dst[2*i:], FloatToHalf(x))
		case BFloat16:
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(math.Float32bits(x)>>16))
		case Float64:
			binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(float64(x)))
		case Uint8, Int8:
			dst[i] = byte(int(x))
		}
	}
}

// reference computes one row in float64: the sum, and the sum of absolute terms that bounds the rounding.
func reference(o op, q, v []float32) (sum, norm, scale float64) {
	for i := range q {
		a, b := float64(q[i]), float64(v[i])
		switch o {
		case opL2:
			sum += (a - b) * (a - b)
			scale += (a - b) * (a - b)
		default:
			sum += a * b
			scale += math.Abs(a * b)
		}
		norm += b * b
	}
	return sum, norm, scale
}

// same compares within 1e-5 of the scale; NaN equals NaN, an infinity itself.
func same(got float32, want, scale float64) bool {
	switch {
	case math.IsNaN(want):
		return got != got
	case math.IsInf(want, 0):
		return float64(got) == want
	case want > math.MaxFloat32:
		return math.IsInf(float64(got), 1)
	}
	return math.Abs(float64(got)-want) <= 1e-5*scale+1e-37
}

func testDims() []int {
	var dims []int
	for d := 1; d <= 67; d++ {
		dims = append(dims, d)
	}
	return append(dims, 96, 100, 128, 256, 768, 1024, 1536)
}

// rowsFor makes n rows of the given type between other bytes, at an odd offset and stride.
func rowsFor(r *rand.Rand, e Elem, n, dim int) (Block, [][]float32) {
	b := Block{Offset: r.IntN(9), Stride: dim*e.Size() + r.IntN(5), Rows: n}
	// Exactly as long as the rows need: a read past the end lands outside the allocation's use and is seen by the poison below.
	b.Data = make([]byte, b.Offset+(n-1)*b.Stride+dim*e.Size())
	for i := range b.Data {
		b.Data[i] = 0xff // as floats and halves: NaN
	}
	decoded := make([][]float32, n)
	for i := range decoded {
		values := make([]float32, dim)
		for d := range values {
			switch e {
			case Uint8:
				values[d] = float32(r.IntN(256))
			case Int8:
				values[d] = float32(r.IntN(256) - 128)
			default:
				values[d] = float32(r.NormFloat64() * 3)
			}
		}
		row := b.Data[b.Offset+i*b.Stride:][:dim*e.Size()]
		encode(row, e, values)
		decoded[i] = make([]float32, dim)
		Decode(decoded[i], e, row)
	}
	return b, decoded
}

func TestKernelsAgreeWithReferenceForEveryDimensionStrideAndType(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, e := range []Elem{Float32, Float16, Uint8, Float64, BFloat16, Int8} {
		for _, dim := range testDims() {
			n := 1 + r.IntN(5)
			b, rows := rowsFor(r, e, n, dim)
			query := make([]float32, dim)
			for d := range query {
				query[d] = float32(r.NormFloat64() * 3)
			}
			checkRows(t, e, b, rows, query)
		}
	}
}

func checkRows(t *testing.T, e Elem, b Block, rows [][]float32, query []float32) {
	t.Helper()
	offsets := make([]int, 0, 2*len(rows))
	for i := range rows { // backwards, each twice
		at := b.Offset + (len(rows)-1-i)*b.Stride
		offsets = append(offsets, at, at)
	}
	for _, i := range testISAs(t) {
		for _, o := range []op{opL2, opDot, opDotNorm} {
			dst, norms := make([]float32, b.Rows), make([]float32, b.Rows)
			blockKernel(i, o, e, dst, norms, query, b)
			far, farNorms := make([]float32, len(offsets)), make([]float32, len(offsets))
			gatherKernel(i, o, e, far, farNorms, query, b.Data, offsets)
			for j, row := range rows {
				want, norm, scale := reference(o, query, row)
				what := fmt.Sprintf("isa %d op %d %v dim %d row %d", i, o, e, len(query), j)
				if !same(dst[j], want, scale) {
					t.Fatalf("%s: got %v, want %v", what, dst[j], want)
				}
				if o == opDotNorm && !same(norms[j], norm, norm) {
					t.Fatalf("%s: norm %v, want %v", what, norms[j], norm)
				}
				for k := range 2 {
					at := 2*(len(rows)-1-j) + k
					if math.Float32bits(far[at]) != math.Float32bits(dst[j]) || math.Float32bits(farNorms[at]) != math.Float32bits(norms[j]) {
						t.Fatalf("%s: gathered %v, in a block %v", what, far[at], dst[j])
					}
				}
			}
		}
	}
}

func TestKernelsCarryNaNInfinityAndDenormals(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tiny := math.Float32frombits(3)
	r := rand.New(rand.NewPCG(3, 4))
	for _, e := range []Elem{Float32, Float16, Float64} {
		for _, special := range []float32{nan, inf, -inf, tiny, 5.9604645e-08, 65504, float32(math.Copysign(0, -1))} {
			for _, dim := range []int{1, 7, 8, 9, 16, 17, 33, 64, 130} {
				b, rows := rowsFor(r, e, 3, dim)
				at := r.IntN(dim)
				rows[1][at] = special
				encode(b.Data[b.Offset+b.Stride:], e, rows[1])
				Decode(rows[1], e, b.Data[b.Offset+b.Stride:])
				query := make([]float32, dim)
				for d := range query {
					query[d] = 1 + r.Float32()
				}
				checkRows(t, e, b, rows, query)
				query[r.IntN(dim)] = special
				checkRows(t, e, b, rows, query)
			}
		}
	}
}

func TestRowOutsideTheDataPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"a last row that ends past the data": func() {
			L2(make([]float32, 2), make([]float32, 4), Float32, Block{Data: make([]byte, 31), Stride: 16, Rows: 2})
		},
		"more rows than results": func() {
			Dot(make([]float32, 1), make([]float32, 4), Float32, Block{Data: make([]byte, 32), Stride: 16, Rows: 2})
		},
		"an offset below zero": func() { L2At(make([]float32, 1), make([]float32, 4), Float32, make([]byte, 32), []int{-1}) },
		"an offset too near to the end": func() {
			DotNormAt(make([]float32, 1), make([]float32, 1), make([]float32, 4), Float32, make([]byte, 32), []int{17})
		},
		"codes that end before the last row":   func() { Lookup8(make([]float32, 4), make([]byte, 7), make([]float32, 512), 4) },
		"four-bit codes with too small stride": func() { Lookup4(make([]float32, 4), make([]byte, 8), make([]float32, 64), 3) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			f()
		})
	}
}

func TestHalfConversionIsExactBothWays(t *testing.T) {
	for h := range 1 << 16 {
		f := HalfToFloat(uint16(h))
		if f != f {
			if back := FloatToHalf(f); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Fatalf("NaN %#x became %#x", h, back)
			}
			continue
		}
		if back := FloatToHalf(f); back != uint16(h) {
			t.Fatalf("%#x -> %v -> %#x", h, f, back)
		}
	}
	for _, c := range []struct {
		in   float32
		want uint16
	}{{65519, 0x7bff}, {65520, 0x7c00}, {2.98e-8, 0}, {2.9802326e-8, 1}, {1.00048828125, 0x3c00}, {1.0014648, 0x3c02}, {-1e30, 0xfc00}} {
		if got := FloatToHalf(c.in); got != c.want {
			t.Errorf("%v: got %#x, want %#x", c.in, got, c.want)
		}
	}
}

func TestHammingCountsBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for dim := 1; dim < 40; dim++ {
		q, v := make([]byte, dim), make([]byte, 2*dim+3)
		for i := range q {
			q[i] = byte(r.Uint32())
		}
		for i := range v {
			v[i] = byte(r.Uint32())
		}
		got, at := make([]float32, 2), make([]float32, 1)
		Hamming(got, q, Block{Data: v, Offset: 1, Stride: dim + 1, Rows: 2})
		HammingAt(at, q, v, []int{dim + 2})
		for row := range 2 {
			want := 0
			for i, x := range q {
				for d := x ^ v[1+row*(dim+1)+i]; d != 0; d &= d - 1 {
					want++
				}
			}
			if int(got[row]) != want {
				t.Fatalf("dim %d row %d: got %v, want %d", dim, row, got[row], want)
			}
		}
		if at[0] != got[1] {
			t.Fatalf("dim %d: gathered %v, in a block %v", dim, at[0], got[1])
		}
	}
}

func TestAssignFindsTheNearestCentroid(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, dim := range []int{1, 3, 16, 17, 40, 128} {
		for _, count := range []int{1, 2, 15, 16, 17, 33, 100} {
			for _, dot := range []bool{false, true} {
				centroids, points := make([]float32, count*dim), make([]float32, 21*dim)
				for i := range centroids {
					centroids[i] = float32(r.NormFloat64())
				}
				for i := range points {
					points[i] = float32(r.NormFloat64())
				}
				p := NewPanels(centroids, dim, dot)
				for _, i := range testISAs(t) {
					which, score := make([]int32, 21), make([]float32, 21)
					p.assign(i, which, score, points)
					for j := range which {
						want := math.Inf(-1)
						value := func(c int) float64 {
							s, norm, _ := reference(opDot, points[j*dim:(j+1)*dim], centroids[c*dim:(c+1)*dim])
							if dot {
								return s
							}
							return s - norm/2
						}
						for c := range count {
							want = max(want, value(c))
						}
						if got := value(int(which[j])); math.Abs(got-want) > 1e-4 || math.Abs(float64(score[j])-want) > 1e-4 {
							t.Fatalf("isa %d dim %d of %d dot %v: centroid %d scores %v (said %v), the best %v", i, dim, count, dot, which[j], got, score[j], want)
						}
					}
				}
			}
		}
	}
}

func TestAssignSendsNaNToTheFirstCentroidAndTiesToTheLowest(t *testing.T) {
	centroids := make([]float32, 40*2) // all equal
	p := NewPanels(centroids, 2, false)
	for _, i := range testISAs(t) {
		which, score := []int32{9, 9}, make([]float32, 2)
		p.assign(i, which, score, []float32{float32(math.NaN()), 1, 3, 4})
		if which[0] != 0 || which[1] != 0 || !math.IsInf(float64(score[0]), -1) || score[1] != 0 {
			t.Fatalf("isa %d: %v %v", i, which, score)
		}
	}
}

func TestLookupsSumTheTables(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, rows := range []int{1, 3, 15, 16, 17, 63, 64, 65, 100, 131} {
		for _, bytes := range []int{1, 2, 5, 16} {
			stride := rows + r.IntN(3)
			codes := make([]byte, (bytes-1)*stride+rows)
			for i := range codes {
				codes[i] = byte(r.Uint32())
			}
			t4, t8 := make([]float32, 32*bytes), make([]float32, 256*bytes)
			for i := range t4 {
				t4[i] = float32(r.IntN(1000))
			}
			for i := range t8 {
				t8[i] = float32(r.IntN(1000))
			}
			got8 := make([]float32, rows)
			Lookup8(got8, codes, t8, stride)
			for _, i := range testISAs(t) {
				got := make([]float32, rows)
				lookup4(i, got, codes, t4, bytes, stride)
				for j := range rows {
					var want4, want8 float32
					for b := range bytes {
						c := codes[b*stride+j]
						want4 += t4[32*b+int(c&15)] + t4[32*b+16+int(c>>4)]
						want8 += t8[256*b+int(c)]
					}
					if got[j] != want4 || got8[j] != want8 {
						t.Fatalf("isa %d, %d rows of %d bytes, row %d: %v and %v, want %v and %v", i, rows, bytes, j, got[j], got8[j], want4, want8)
					}
				}
			}
		}
	}
}

func TestColumnsCompareVectorsThatLieSideBySide(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, dim := range []int{1, 2, 8, 13} {
		for _, n := range []int{1, 15, 16, 48, 256} {
			query, columns := make([]float32, dim), make([]float32, n*dim)
			for i := range query {
				query[i] = float32(r.NormFloat64())
			}
			for i := range columns {
				columns[i] = float32(r.NormFloat64())
			}
			for _, i := range testISAs(t) {
				for _, o := range []op{opL2, opDot} {
					dst, row := make([]float32, n), make([]float32, dim)
					columnKernel(i, o, dst, query, columns)
					for j := range n {
						for d := range dim {
							row[d] = columns[d*n+j]
						}
						if want, _, scale := reference(o, query, row); !same(dst[j], want, scale) {
							t.Fatalf("isa %d op %d dim %d, vector %d of %d: got %v, want %v", i, o, dim, j, n, dst[j], want)
						}
					}
				}
			}
		}
	}
}
