package vec

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkRows measures one thread over 256 MiB of rows, more than any cache holds.
func BenchmarkRows(b *testing.B) {
	const size = 256 << 20
	data := make([]byte, size+64)
	for i := range data {
		data[i] = byte(i * 7 & 0x3f)
	}
	for _, dim := range []int{128, 768} {
		query := make([]float32, dim)
		for _, e := range []Elem{Float32, Float16, Uint8} {
			for _, i := range testISAs(b) {
				for _, control := range []int{0, 1} { // a nullable column has a control byte before each row
					stride := dim*e.Size() + control
					block := Block{Data: data, Offset: control, Stride: stride, Rows: size / stride}
					dst := make([]float32, 1024)
					b.Run(fmt.Sprintf("l2/%v/dim%d/isa%d/control%d", e, dim, i, control), func(b *testing.B) {
						b.SetBytes(int64(block.Rows * stride))
						for b.Loop() {
							for at := 0; at < block.Rows; at += len(dst) {
								blockKernel(i, opL2, e, dst, nil, query, block.Slice(at, min(at+len(dst), block.Rows)))
							}
						}
					})
				}
			}
		}
	}
}

func BenchmarkGather(b *testing.B) {
	const dim, size = 128, 256 << 20
	data, query, dst := make([]byte, size), make([]float32, dim), make([]float32, 1024)
	for i := range data {
		data[i] = byte(i * 7 & 0x3f)
	}
	r := rand.New(rand.NewPCG(1, 1))
	offsets := make([]int, 1<<17)
	for i := range offsets {
		offsets[i] = r.IntN(size/512) * 512
	}
	for _, i := range testISAs(b) {
		b.Run(fmt.Sprintf("l2/isa%d", i), func(b *testing.B) {
			b.SetBytes(int64(len(offsets) * 512))
			for b.Loop() {
				for at := 0; at < len(offsets); at += len(dst) {
					gatherKernel(i, opL2, Float32, dst, nil, query, data, offsets[at:at+len(dst)])
				}
			}
		})
	}
}

func BenchmarkAssign(b *testing.B) {
	const dim, count, n = 128, 1000, 512
	r := rand.New(rand.NewPCG(1, 1))
	centroids, points := make([]float32, count*dim), make([]float32, n*dim)
	for i := range centroids {
		centroids[i] = r.Float32()
	}
	for i := range points {
		points[i] = r.Float32()
	}
	p := NewPanels(centroids, dim, false)
	which, score := make([]int32, n), make([]float32, n)
	for _, i := range testISAs(b) {
		b.Run(fmt.Sprintf("isa%d", i), func(b *testing.B) {
			for b.Loop() {
				p.assign(i, which, score, points)
			}
			b.ReportMetric(float64(n*count*dim)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	const rows, bytes = 4096, 16
	codes := make([]byte, rows*bytes)
	for i := range codes {
		codes[i] = byte(i * 31)
	}
	dst := make([]float32, rows)
	b.Run("8bit", func(b *testing.B) {
		tables := make([]float32, 256*bytes)
		b.SetBytes(int64(len(codes)))
		for b.Loop() {
			Lookup8(dst, codes, tables, rows)
		}
	})
	for _, i := range testISAs(b) {
		b.Run(fmt.Sprintf("4bit/isa%d", i), func(b *testing.B) {
			tables := make([]float32, 32*bytes)
			b.SetBytes(int64(len(codes)))
			for b.Loop() {
				lookup4(i, dst, codes, tables, bytes, rows)
			}
		})
	}
}
