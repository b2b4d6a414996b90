package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"   //nolint:revive,staticcheck // the generator's language
	. "github.com/mmcloughlin/avo/operand" //nolint:revive,staticcheck // the generator's language
	"github.com/mmcloughlin/avo/reg"
)

// element is what a row holds; the query is always float32.
type element struct {
	name string
	size int
}

var (
	float32Elem = element{"F32", 4}
	float16Elem = element{"F16", 2}
	uint8Elem   = element{"U8", 1}
)

// measure is what a kernel sums over the elements: (v-q)^2, v*q, or v*q and v*v.
type measure string

const (
	l2      measure = "l2"
	dot     measure = "dot"
	dotNorm measure = "dotNorm"
)

type kernel struct {
	elem    element
	measure measure
	gather  bool
}

// args are the registers that every row loop uses.
type args struct {
	dst, norms, query, base, offsets reg.Register
	rows, dim, stride                reg.Register
}

func (k kernel) begin(isa string) args {
	name := string(k.measure) + k.elem.name
	place, doc := "stride int", "row i starts at base[i*stride]"
	if k.gather {
		name += "Gather"
		place, doc = "offsets *int", "row i starts at base[offsets[i]]"
	}
	norms := ""
	if k.measure == dotNorm {
		norms = "norms *float32, "
	}
	TEXT(name+isa, NOSPLIT, fmt.Sprintf("func(dst *float32, %squery *float32, base *byte, rows, dim int, %s)", norms, place))
	Doc(fmt.Sprintf("%s%s: %s.", name, isa, doc))
	a := args{dst: Load(Param("dst"), GP64()), query: Load(Param("query"), GP64()), base: Load(Param("base"), GP64()),
		rows: Load(Param("rows"), GP64()), dim: Load(Param("dim"), GP64())}
	if norms != "" {
		a.norms = Load(Param("norms"), GP64())
	}
	if k.gather {
		a.offsets = Load(Param("offsets"), GP64())
	} else {
		a.stride = Load(Param("stride"), GP64())
	}
	return a
}

// rowLoop calls body once per row with the row's address, which it may change.
func (k kernel) rowLoop(a args, body func(row reg.GPVirtual)) {
	row := GP64()
	Label("row")
	TESTQ(a.rows, a.rows)
	JZ(LabelRef("end"))
	if k.gather {
		MOVQ(Mem{Base: a.offsets}, row)
		ADDQ(a.base, row)
		ADDQ(U8(8), a.offsets)
	} else {
		MOVQ(a.base, row)
		ADDQ(a.stride, a.base)
	}
	body(row)
	ADDQ(U8(4), a.dst)
	if a.norms != nil {
		ADDQ(U8(4), a.norms)
	}
	DECQ(a.rows)
	JMP(LabelRef("row"))
	Label("end")
	VZEROUPPER()
	RET()
}

const unroll = 4

// avx512 sums 16 elements at a time into four accumulators (eight with norms).
func (k kernel) avx512() {
	const width = 16
	a := k.begin("AVX512")
	tail, mask := GP64(), K()
	MOVQ(a.dim, tail)
	ANDQ(U8(width-1), tail)
	maskBits := GP64()
	MOVQ(U32(0xffffffff), maskBits)
	BZHIQ(tail, maskBits, maskBits)
	KMOVW(maskBits.As32(), mask)
	k.rowLoop(a, func(row reg.GPVirtual) {
		query, left := GP64(), GP64()
		MOVQ(a.query, query)
		MOVQ(a.dim, left)
		acc, norm := zmms(unroll), zmms(unroll)
		zero(acc)
		if k.measure == dotNorm {
			zero(norm)
		}
		step := func(i int) {
			v := k.load512(Mem{Base: row, Disp: i * width * k.elem.size})
			k.sum512(v, Mem{Base: query, Disp: i * width * 4}, acc[i], norm[i])
		}
		loop(left, "wide", width*unroll, func() {
			for i := range unroll {
				step(i)
			}
			ADDQ(I32(width*unroll*k.elem.size), row)
			ADDQ(I32(width*unroll*4), query)
		})
		loop(left, "one", width, func() {
			step(0)
			ADDQ(I32(width*k.elem.size), row)
			ADDQ(I32(width*4), query)
		})
		TESTQ(tail, tail)
		JZ(LabelRef("sum"))
		v, q := k.loadMasked512(Mem{Base: row}, mask), ZMM()
		VMOVUPS_Z(Mem{Base: query}, mask, q)
		k.sum512(v, q, acc[1], norm[1])
		Label("sum")
		store(a.dst, reduce512(acc))
		if k.measure == dotNorm {
			store(a.norms, reduce512(norm))
		}
	})
}

func (k kernel) load512(m Mem) reg.VecVirtual {
	v := ZMM()
	switch k.elem {
	case float32Elem:
		VMOVUPS(m, v)
	case float16Elem:
		VCVTPH2PS(m, v)
	case uint8Elem:
		VPMOVZXBD(m, v)
		VCVTDQ2PS(v, v)
	}
	return v
}

func (k kernel) loadMasked512(m Mem, mask reg.Register) reg.VecVirtual {
	v := ZMM()
	switch k.elem {
	case float32Elem:
		VMOVUPS_Z(m, mask, v)
	case float16Elem:
		half := YMM()
		VMOVDQU16_Z(m, mask, half)
		VCVTPH2PS(half, v)
	case uint8Elem:
		codes := XMM()
		VMOVDQU8_Z(m, mask, codes)
		VPMOVZXBD(codes, v)
		VCVTDQ2PS(v, v)
	}
	return v
}

func (k kernel) sum512(v reg.VecVirtual, q Op, acc, norm reg.VecVirtual) {
	switch k.measure {
	case l2:
		VSUBPS(q, v, v)
		VFMADD231PS(v, v, acc)
	case dotNorm:
		VFMADD231PS(v, v, norm)
		VFMADD231PS(q, v, acc)
	case dot:
		VFMADD231PS(q, v, acc)
	}
}

// avx2 sums 8 elements at a time into four accumulators (eight with norms).
func (k kernel) avx2() {
	const width = 8
	a := k.begin("AVX2")
	k.rowLoop(a, func(row reg.GPVirtual) {
		query, left := GP64(), GP64()
		MOVQ(a.query, query)
		MOVQ(a.dim, left)
		acc, norm := ymms(unroll), ymms(unroll)
		zero(acc)
		if k.measure == dotNorm {
			zero(norm)
		}
		step := func(i int) {
			v := k.load256(Mem{Base: row, Disp: i * width * k.elem.size})
			k.sum512(v, Mem{Base: query, Disp: i * width * 4}, acc[i], norm[i])
		}
		loop(left, "wide", width*unroll, func() {
			for i := range unroll {
				step(i)
			}
			ADDQ(I32(width*unroll*k.elem.size), row)
			ADDQ(I32(width*unroll*4), query)
		})
		loop(left, "one", width, func() {
			step(0)
			ADDQ(I32(width*k.elem.size), row)
			ADDQ(I32(width*4), query)
		})
		// Single elements go to sums of their own: a scalar operation clears the upper half of its register.
		accTail, normTail := XMM(), XMM()
		VXORPS(accTail, accTail, accTail)
		if k.measure == dotNorm {
			VXORPS(normTail, normTail, normTail)
		}
		loop(left, "tail", 1, func() {
			v := k.loadOne(Mem{Base: row})
			switch k.measure {
			case l2:
				VSUBSS(Mem{Base: query}, v, v)
				VFMADD231SS(v, v, accTail)
			case dotNorm:
				VFMADD231SS(v, v, normTail)
				VFMADD231SS(Mem{Base: query}, v, accTail)
			case dot:
				VFMADD231SS(Mem{Base: query}, v, accTail)
			}
			ADDQ(U8(uint8(k.elem.size)), row)
			ADDQ(U8(4), query)
		})
		store(a.dst, reduce256(acc, accTail))
		if k.measure == dotNorm {
			store(a.norms, reduce256(norm, normTail))
		}
	})
}

func (k kernel) load256(m Mem) reg.VecVirtual {
	v := YMM()
	switch k.elem {
	case float32Elem:
		VMOVUPS(m, v)
	case float16Elem:
		VCVTPH2PS(m, v)
	case uint8Elem:
		VPMOVZXBD(m, v)
		VCVTDQ2PS(v, v)
	}
	return v
}

func (k kernel) loadOne(m Mem) reg.VecVirtual {
	v, r := XMM(), GP32()
	switch k.elem {
	case float32Elem:
		VMOVSS(m, v)
	case float16Elem:
		MOVWLZX(m, r)
		VMOVD(r, v)
		VCVTPH2PS(v, v)
	case uint8Elem:
		MOVBLZX(m, r)
		VXORPS(v, v, v)
		VCVTSI2SSL(r, v, v)
	}
	return v
}

// loop runs body while left >= by, taking by off each time.
func loop(left reg.Register, label string, by int, body func()) {
	Label(label)
	CMPQ(left, I32(by))
	JLT(LabelRef(label + "End"))
	body()
	SUBQ(I32(by), left)
	JMP(LabelRef(label))
	Label(label + "End")
}

func zmms(n int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, n)
	for i := range out {
		out[i] = ZMM()
	}
	return out
}

func ymms(n int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, n)
	for i := range out {
		out[i] = YMM()
	}
	return out
}

func zero(regs []reg.VecVirtual) {
	for _, r := range regs {
		if r.Size() == 64 {
			VPXORD(r, r, r)
		} else {
			VXORPS(r, r, r)
		}
	}
}

func reduce512(acc []reg.VecVirtual) reg.Register {
	VADDPS(acc[0], acc[1], acc[0])
	VADDPS(acc[2], acc[3], acc[2])
	VADDPS(acc[0], acc[2], acc[0])
	high := YMM()
	VEXTRACTF64X4(U8(1), acc[0], high)
	VADDPS(acc[0].AsY(), high, high)
	return reduceY(high)
}

func reduce256(acc []reg.VecVirtual, tail reg.VecVirtual) reg.Register {
	VADDPS(acc[0], acc[1], acc[0])
	VADDPS(acc[2], acc[3], acc[2])
	VADDPS(acc[0], acc[2], acc[0])
	VADDPS(acc[0], tail.AsY(), acc[0])
	return reduceY(acc[0])
}

func reduceY(y reg.VecVirtual) reg.Register {
	high := XMM()
	VEXTRACTF128(U8(1), y, high)
	VADDPS(y.AsX(), high, high)
	VHADDPS(high, high, high)
	VHADDPS(high, high, high)
	return high
}

func store(dst reg.Register, x reg.Register) { VMOVSS(x, Mem{Base: dst}) }
