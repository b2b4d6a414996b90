package main

import (
	. "github.com/mmcloughlin/avo/build"   //nolint:revive,staticcheck // the generator's language
	. "github.com/mmcloughlin/avo/operand" //nolint:revive,staticcheck // the generator's language
	"github.com/mmcloughlin/avo/reg"
)

const assignDoc = "points [dim][8] interleaved, panels [panels][dim][16], bias [panels][16]; best, which [points][16] are updated: " +
	"score = bias + dot, the largest wins, the earliest panel on a tie."

// assignAVX512 scores eight points against panels of sixteen centroids.
func assignAVX512() {
	TEXT("assign8AVX512", NOSPLIT, "func(best *float32, which *int32, points, panels, bias *float32, count, dim int)")
	Doc("assign8AVX512: " + assignDoc)
	best, which := Load(Param("best"), GP64()), Load(Param("which"), GP64())
	points, panel := Load(Param("points"), GP64()), Load(Param("panels"), GP64())
	bias, count, dim := Load(Param("bias"), GP64()), Load(Param("count"), GP64()), Load(Param("dim"), GP64())
	number := GP64()
	XORQ(number, number)
	panelLoop(number, count, func() {
		acc := zmms(8)
		for _, z := range acc {
			VMOVUPS(Mem{Base: bias}, z)
		}
		ADDQ(U8(64), bias)
		p, left := GP64(), GP64()
		MOVQ(points, p)
		MOVQ(dim, left)
		loop(left, "dim", 1, func() {
			c := ZMM()
			VMOVUPS(Mem{Base: panel}, c)
			for i, z := range acc {
				VFMADD231PS_BCST(Mem{Base: p, Disp: 4 * i}, c, z)
			}
			ADDQ(U8(64), panel)
			ADDQ(U8(32), p)
		})
		index, mask := ZMM(), K()
		VPBROADCASTD(number.(reg.GPVirtual).As32(), index)
		for i, z := range acc {
			old := ZMM()
			VMOVUPS(Mem{Base: best, Disp: 64 * i}, old)
			VCMPPS(U8(0x1e), old, z, mask) // GT_OQ: acc > old
			VMOVUPS(z, mask, Mem{Base: best, Disp: 64 * i})
			VMOVDQU32(index, mask, Mem{Base: which, Disp: 64 * i})
		}
	})
}

// assignAVX2 scores four of the eight points: the caller moves points, best and which on by four for the others.
func assignAVX2() {
	TEXT("assign4AVX2", NOSPLIT, "func(best *float32, which *int32, points, panels, bias *float32, count, dim int)")
	Doc("assign4AVX2: the first four points only; " + assignDoc)
	best, which := Load(Param("best"), GP64()), Load(Param("which"), GP64())
	points, panel := Load(Param("points"), GP64()), Load(Param("panels"), GP64())
	bias, count, dim := Load(Param("bias"), GP64()), Load(Param("count"), GP64()), Load(Param("dim"), GP64())
	number := GP64()
	XORQ(number, number)
	panelLoop(number, count, func() {
		low, high := ymms(4), ymms(4)
		for i := range low {
			VMOVUPS(Mem{Base: bias}, low[i])
			VMOVUPS(Mem{Base: bias, Disp: 32}, high[i])
		}
		ADDQ(U8(64), bias)
		p, left := GP64(), GP64()
		MOVQ(points, p)
		MOVQ(dim, left)
		loop(left, "dim", 1, func() {
			c0, c1 := YMM(), YMM()
			VMOVUPS(Mem{Base: panel}, c0)
			VMOVUPS(Mem{Base: panel, Disp: 32}, c1)
			for i := range low {
				x := YMM()
				VBROADCASTSS(Mem{Base: p, Disp: 4 * i}, x)
				VFMADD231PS(c0, x, low[i])
				VFMADD231PS(c1, x, high[i])
			}
			ADDQ(U8(64), panel)
			ADDQ(U8(32), p)
		})
		index := YMM()
		VMOVD(number.(reg.GPVirtual).As32(), index.AsX())
		VPBROADCASTD(index.AsX(), index)
		for i := range low {
			for half, acc := range []reg.VecVirtual{low[i], high[i]} {
				at := 64*i + 32*half
				old, mask := YMM(), YMM()
				VMOVUPS(Mem{Base: best, Disp: at}, old)
				VCMPPS(U8(0x1e), old, acc, mask)
				VBLENDVPS(mask, acc, old, acc)
				VMOVUPS(acc, Mem{Base: best, Disp: at})
				VMOVUPS(Mem{Base: which, Disp: at}, old)
				VBLENDVPS(mask, index, old, old)
				VMOVUPS(old, Mem{Base: which, Disp: at})
			}
		}
	})
}

func panelLoop(number, count reg.Register, body func()) {
	Label("panel")
	CMPQ(number, count)
	JGE(LabelRef("end"))
	body()
	INCQ(number)
	JMP(LabelRef("panel"))
	Label("end")
	VZEROUPPER()
	RET()
}

const lookup4Doc = "dst[j] = sum over byte rows b of tables[2b][low nibble] + tables[2b+1][high nibble] of codes[b*stride+j]; tables [2*bytes][16]."

// lookup4AVX512 looks sixteen codes up by one permutation of a register, 64 and then 16 rows at a time, the rest under a mask.
func lookup4AVX512() {
	TEXT("lookup4AVX512", NOSPLIT, "func(dst *float32, codes *byte, tables *float32, rows, bytes, stride int)")
	Doc("lookup4AVX512: " + lookup4Doc)
	dst, codes := Load(Param("dst"), GP64()), Load(Param("codes"), GP64())
	tables, rows := Load(Param("tables"), GP64()), Load(Param("rows"), GP64())
	bytes, stride := Load(Param("bytes"), GP64()), Load(Param("stride"), GP64())
	block := func(label string, vectors int, mask reg.Register) {
		acc := zmms(vectors)
		zero(acc)
		at, table, left := GP64(), GP64(), GP64()
		MOVQ(codes, at)
		MOVQ(tables, table)
		MOVQ(bytes, left)
		loop(left, label, 1, func() {
			t0, t1 := ZMM(), ZMM()
			VMOVUPS(Mem{Base: table}, t0)
			VMOVUPS(Mem{Base: table, Disp: 64}, t1)
			for i, z := range acc {
				c, v := ZMM(), ZMM()
				if mask != nil {
					x := XMM()
					VMOVDQU8_Z(Mem{Base: at}, mask, x)
					VPMOVZXBD(x, c)
				} else {
					VPMOVZXBD(Mem{Base: at, Disp: 16 * i}, c)
				}
				VPERMPS(t0, c, v) // the low four bits of each index count
				VADDPS(v, z, z)
				VPSRLD(U8(4), c, c)
				VPERMPS(t1, c, v)
				VADDPS(v, z, z)
			}
			ADDQ(I32(128), table)
			ADDQ(stride, at)
		})
		for i, z := range acc {
			if mask != nil {
				VMOVUPS(z, mask, Mem{Base: dst})
			} else {
				VMOVUPS(z, Mem{Base: dst, Disp: 64 * i})
			}
		}
		ADDQ(I32(16*vectors), codes)
		ADDQ(I32(64*vectors), dst)
	}
	loop(rows, "wide", 64, func() { block("wideByte", 4, nil) })
	loop(rows, "one", 16, func() { block("oneByte", 1, nil) })
	TESTQ(rows, rows)
	JZ(LabelRef("end"))
	mask, bits := K(), GP64()
	MOVQ(U32(0xffffffff), bits)
	BZHIQ(rows, bits, bits)
	KMOVW(bits.As32(), mask)
	block("tailByte", 1, mask)
	Label("end")
	VZEROUPPER()
	RET()
}

// lookup4AVX2 does 16 rows at a time; rows must be a multiple of 16 (the caller does the rest).
func lookup4AVX2() {
	TEXT("lookup4AVX2", NOSPLIT, "func(dst *float32, codes *byte, tables *float32, rows, bytes, stride int)")
	Doc("lookup4AVX2: rows is a multiple of 16; " + lookup4Doc)
	dst, codes := Load(Param("dst"), GP64()), Load(Param("codes"), GP64())
	tables, rows := Load(Param("tables"), GP64()), Load(Param("rows"), GP64())
	bytes, stride := Load(Param("bytes"), GP64()), Load(Param("stride"), GP64())
	loop(rows, "wide", 16, func() {
		acc := ymms(2)
		zero(acc)
		at, table, left := GP64(), GP64(), GP64()
		MOVQ(codes, at)
		MOVQ(tables, table)
		MOVQ(bytes, left)
		loop(left, "byte", 1, func() {
			t := ymms(4)
			for i := range t {
				VMOVUPS(Mem{Base: table, Disp: 32 * i}, t[i])
			}
			for i, y := range acc {
				c := YMM()
				VPMOVZXBD(Mem{Base: at, Disp: 8 * i}, c)
				permute := func(low, high reg.VecVirtual, bit uint64) {
					v, w, pick := YMM(), YMM(), YMM()
					VPERMPS(low, c, v) // the low three bits of each index count
					VPERMPS(high, c, w)
					VPSLLD(U8(uint8(bit)), c, pick) // bit 3 of the nibble to the sign
					VBLENDVPS(pick, w, v, v)
					VADDPS(v, y, y)
				}
				permute(t[0], t[1], 28)
				VPSRLD(U8(4), c, c)
				permute(t[2], t[3], 28)
			}
			ADDQ(I32(128), table)
			ADDQ(stride, at)
		})
		for i, y := range acc {
			VMOVUPS(y, Mem{Base: dst, Disp: 32 * i})
		}
		ADDQ(U8(16), codes)
		ADDQ(U8(64), dst)
	})
	VZEROUPPER()
	RET()
}

// columns computes one query against vectors that lie side by side: element d of vector j at columns[d*count+j]; count is a multiple of the
// register's width. The tables of a product quantizer are made of it.
func columns(isa string, width int, m measure) {
	TEXT(string(m)+"Columns"+isa, NOSPLIT, "func(dst, query, columns *float32, count, dim int)")
	Doc(string(m) + "Columns" + isa + ": columns [dim][count]; count is a multiple of 16.")
	dst, query := Load(Param("dst"), GP64()), Load(Param("query"), GP64())
	column, count := Load(Param("columns"), GP64()), Load(Param("count"), GP64())
	dim, stride := Load(Param("dim"), GP64()), GP64()
	MOVQ(count, stride)
	SHLQ(U8(2), stride)
	vectors := 16 / width
	loop(count, "columns", 16, func() {
		var acc []reg.VecVirtual
		if width == 16 {
			acc = zmms(vectors)
		} else {
			acc = ymms(vectors)
		}
		zero(acc)
		at, q, left := GP64(), GP64(), GP64()
		MOVQ(column, at)
		MOVQ(query, q)
		MOVQ(dim, left)
		loop(left, "element", 1, func() {
			var x reg.VecVirtual
			if width == 16 {
				x = ZMM()
			} else {
				x = YMM()
			}
			VBROADCASTSS(Mem{Base: q}, x)
			for i, z := range acc {
				m4 := Mem{Base: at, Disp: 4 * width * i}
				if m == dot {
					VFMADD231PS(m4, x, z)
					continue
				}
				d := YMM()
				if width == 16 {
					d = ZMM()
				}
				VSUBPS(m4, x, d)
				VFMADD231PS(d, d, z)
			}
			ADDQ(stride, at)
			ADDQ(U8(4), q)
		})
		for i, z := range acc {
			VMOVUPS(z, Mem{Base: dst, Disp: 4 * width * i})
		}
		ADDQ(U8(64), column)
		ADDQ(U8(64), dst)
	})
	VZEROUPPER()
	RET()
}
