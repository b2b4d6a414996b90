//go:build amd64 && !purego

package vec

import "github.com/klauspost/cpuid/v2"

// best picks the widest kernels that the processor and the operating system support.
func best() isa {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512DQ, cpuid.BMI2, cpuid.F16C, cpuid.FMA3):
		return avx512
	case cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C):
		return avx2
	}
	return portable
}

type kernelKey struct {
	isa  isa
	op   op
	elem Elem
}

// blockAssembly says whether it had a kernel; b has a row and query an element.
func blockAssembly(i isa, o op, e Elem, dst, norms, query []float32, b Block) bool { //nolint:funlen // flat switch
	d, q, base, rows, dim := &dst[0], &query[0], &b.Data[b.Offset], b.Rows, len(query)
	var n *float32
	if o == opDotNorm {
		n = &norms[0]
	}
	switch (kernelKey{i, o, e}) {
	case kernelKey{avx2, opL2, Float32}:
		l2F32AVX2(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx2, opL2, Float16}:
		l2F16AVX2(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx2, opL2, Uint8}:
		l2U8AVX2(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx2, opDot, Float32}:
		dotF32AVX2(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx2, opDot, Float16}:
		dotF16AVX2(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx2, opDot, Uint8}:
		dotU8AVX2(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx2, opDotNorm, Float32}:
		dotNormF32AVX2(d, n, q, base, rows, dim, b.Stride)
	case kernelKey{avx2, opDotNorm, Float16}:
		dotNormF16AVX2(d, n, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opL2, Float32}:
		l2F32AVX512(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opL2, Float16}:
		l2F16AVX512(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opL2, Uint8}:
		l2U8AVX512(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opDot, Float32}:
		dotF32AVX512(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opDot, Float16}:
		dotF16AVX512(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opDot, Uint8}:
		dotU8AVX512(d, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opDotNorm, Float32}:
		dotNormF32AVX512(d, n, q, base, rows, dim, b.Stride)
	case kernelKey{avx512, opDotNorm, Float16}:
		dotNormF16AVX512(d, n, q, base, rows, dim, b.Stride)
	default:
		return false
	}
	return true
}

// gatherAssembly is blockAssembly for rows at offsets.
func gatherAssembly(i isa, o op, e Elem, dst, norms, query []float32, data []byte, offsets []int) bool { //nolint:funlen // flat switch
	d, q, base, rows, dim := &dst[0], &query[0], &data[0], len(offsets), len(query)
	var n *float32
	if o == opDotNorm {
		n = &norms[0]
	}
	switch (kernelKey{i, o, e}) {
	case kernelKey{avx2, opL2, Float32}:
		l2F32GatherAVX2(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx2, opL2, Float16}:
		l2F16GatherAVX2(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx2, opL2, Uint8}:
		l2U8GatherAVX2(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx2, opDot, Float32}:
		dotF32GatherAVX2(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx2, opDot, Float16}:
		dotF16GatherAVX2(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx2, opDot, Uint8}:
		dotU8GatherAVX2(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx2, opDotNorm, Float32}:
		dotNormF32GatherAVX2(d, n, q, base, rows, dim, &offsets[0])
	case kernelKey{avx2, opDotNorm, Float16}:
		dotNormF16GatherAVX2(d, n, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opL2, Float32}:
		l2F32GatherAVX512(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opL2, Float16}:
		l2F16GatherAVX512(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opL2, Uint8}:
		l2U8GatherAVX512(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opDot, Float32}:
		dotF32GatherAVX512(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opDot, Float16}:
		dotF16GatherAVX512(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opDot, Uint8}:
		dotU8GatherAVX512(d, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opDotNorm, Float32}:
		dotNormF32GatherAVX512(d, n, q, base, rows, dim, &offsets[0])
	case kernelKey{avx512, opDotNorm, Float16}:
		dotNormF16GatherAVX512(d, n, q, base, rows, dim, &offsets[0])
	default:
		return false
	}
	return true
}

func assignAssembly(i isa, top *[tilePoints * panelWidth]float32, panel *[tilePoints * panelWidth]int32, tile []float32, p *Panels) bool {
	if len(p.bias) == 0 || len(tile) == 0 {
		return false
	}
	data, bias, count := &p.data[0], &p.bias[0], len(p.bias)/panelWidth
	if i == avx512 {
		assign8AVX512(&top[0], &panel[0], &tile[0], data, bias, count, p.dim)
		return true
	}
	const half = tilePoints / 2
	assign4AVX2(&top[0], &panel[0], &tile[0], data, bias, count, p.dim)
	assign4AVX2(&top[half*panelWidth], &panel[half*panelWidth], &tile[half], data, bias, count, p.dim)
	return true
}

// lookup4Assembly returns how many rows it did.
func lookup4Assembly(i isa, dst []float32, codes []byte, tables []float32, bytes, stride int) int {
	rows := len(dst)
	if i == avx512 {
		lookup4AVX512(&dst[0], &codes[0], &tables[0], rows, bytes, stride)
		return rows
	}
	rows &^= 15
	lookup4AVX2(&dst[0], &codes[0], &tables[0], rows, bytes, stride)
	return rows
}

func columnsAssembly(i isa, o op, dst, query, columns []float32) bool {
	d, q, c, count, dim := &dst[0], &query[0], &columns[0], len(dst), len(query)
	switch {
	case i == avx512 && o == opL2:
		l2ColumnsAVX512(d, q, c, count, dim)
	case i == avx512:
		dotColumnsAVX512(d, q, c, count, dim)
	case o == opL2:
		l2ColumnsAVX2(d, q, c, count, dim)
	default:
		dotColumnsAVX2(d, q, c, count, dim)
	}
	return true
}
