// Command asm writes the assembly kernels of package vec: `go generate ./internal/vec`. It is a module of its own, so that the
// generator library is no dependency of lakesql.
//
// Every kernel compares one float32 query with n rows and is NOSPLIT with an empty frame: a memory fault of a mapped file inside it
// unwinds as a Go panic. Loads are unaligned. Rows are never read past their last element: AVX-512 masks the tail, AVX2 goes on by single
// elements.
package main

import (
	. "github.com/mmcloughlin/avo/build" //nolint:revive,staticcheck // the generator's language
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, e := range []element{float32Elem, float16Elem, uint8Elem} {
		for _, m := range []measure{l2, dot, dotNorm} {
			if e == uint8Elem && m == dotNorm {
				continue // scalar quantized rows have no norm kernel: cosine indices store normalized rows
			}
			for _, gather := range []bool{false, true} {
				kernel{elem: e, measure: m, gather: gather}.avx2()
				kernel{elem: e, measure: m, gather: gather}.avx512()
			}
		}
	}
	assignAVX2()
	assignAVX512()
	lookup4AVX2()
	lookup4AVX512()
	for _, m := range []measure{l2, dot} {
		columns("AVX2", 8, m)
		columns("AVX512", 16, m)
	}
	Generate()
}
