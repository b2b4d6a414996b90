package vec

import "fmt"

// Lookup4 sums tables of sixteen values over 4-bit codes: dst[j] = sum over b of tables[32*b + low nibble] + tables[32*b+16 + high nibble] of the
// byte codes[b*stride+j], for j < len(dst) and b < len(tables)/32. Codes are column-major: byte b of all rows lies together.
func Lookup4(dst []float32, codes []byte, tables []float32, stride int) {
	bytes := checkLookup("Lookup4", len(dst), len(codes), len(tables), 32, stride)
	lookup4(best(), dst, codes, tables, bytes, stride)
}

func lookup4(i isa, dst []float32, codes []byte, tables []float32, bytes, stride int) {
	if bytes == 0 || len(dst) == 0 {
		clear(dst)
		return
	}
	done := 0
	if i != portable {
		done = lookup4Assembly(i, dst, codes, tables, bytes, stride)
	}
	for j := done; j < len(dst); j++ {
		var s float32
		for b := range bytes {
			c, t := codes[b*stride+j], tables[32*b:32*b+32:32*b+32]
			s += t[c&15] + t[16+c>>4]
		}
		dst[j] = s
	}
}

// Lookup8 is Lookup4 for 8-bit codes and tables of 256 values: dst[j] = sum over b of tables[256*b + codes[b*stride+j]].
func Lookup8(dst []float32, codes []byte, tables []float32, stride int) {
	bytes := checkLookup("Lookup8", len(dst), len(codes), len(tables), 256, stride)
	j := 0
	for ; j+4 <= len(dst); j += 4 {
		// Four rows at a time: four sums in registers, and their code bytes share a cache line.
		var s0, s1, s2, s3 float32
		for b := range bytes {
			t := (*[256]float32)(tables[256*b:])
			c := (*[4]byte)(codes[b*stride+j:])
			s0 += t[c[0]]
			s1 += t[c[1]]
			s2 += t[c[2]]
			s3 += t[c[3]]
		}
		dst[j], dst[j+1], dst[j+2], dst[j+3] = s0, s1, s2, s3
	}
	for ; j < len(dst); j++ {
		var s float32
		for b := range bytes {
			s += tables[256*b+int(codes[b*stride+j])]
		}
		dst[j] = s
	}
}

func checkLookup(name string, rows, codes, tables, perByte, stride int) int {
	bytes := tables / perByte
	if rows > 0 && bytes > 0 && (stride < rows || bytes-1 > (codes-rows)/stride || codes < rows) {
		panic(fmt.Sprintf("vec: %s of %d rows, %d bytes each, stride %d, outside %d bytes", name, rows, bytes, stride, codes))
	}
	return bytes
}

// L2Columns sets dst[j] to the squared distance between query and vector j of columns [len(query)][len(dst)]float32: element d of all
// vectors lies together.
func L2Columns(dst, query, columns []float32) { columnKernel(best(), opL2, dst, query, columns) }

// DotColumns is L2Columns for the inner product.
func DotColumns(dst, query, columns []float32) { columnKernel(best(), opDot, dst, query, columns) }

func columnKernel(i isa, o op, dst, query, columns []float32) {
	n := len(dst)
	columns = columns[:n*len(query)]
	if n > 0 && n%16 == 0 && len(query) > 0 && i != portable && columnsAssembly(i, o, dst, query, columns) {
		return
	}
	clear(dst)
	for d, x := range query {
		for j, y := range columns[d*n : (d+1)*n] {
			if o == opL2 {
				dst[j] += (x - y) * (x - y)
			} else {
				dst[j] += x * y
			}
		}
	}
}
