package encoding

import (
	"encoding/binary"
	"unsafe"
)

const (
	fsstMagic       = 0x46535354
	fsstEscape      = 255
	fsstHeaderBytes = 8
	fsstTableBytes  = 2312
	fsstSection     = "fsst symbol table"
	// fsstSlack is what a decoder may write past the end of a value: symbols are stored eight bytes at a time.
	fsstSlack = 8
)

// fsstTable is a compiled symbol table. Layout: docs/format/page.md section 7.
type fsstTable struct {
	on      bool
	count   int
	symbols [256]uint64
	lengths [256]uint8
}

// parseFSST reads a symbol table: header, symbols, then their lengths without a gap.
func parseFSST(table []byte) (*fsstTable, error) {
	if len(table) < fsstHeaderBytes {
		return nil, corrupt(fsstSection, "%d bytes", len(table))
	}
	head := binary.LittleEndian.Uint64(table)
	if head>>32 != fsstMagic {
		return nil, corrupt(fsstSection, "no magic in header %#x", head)
	}
	t := &fsstTable{on: head>>24&1 == 1, count: int(head & 0xff)}
	if !t.on {
		return t, nil
	}
	if need := fsstHeaderBytes + 9*t.count; len(table) < need {
		return nil, corrupt(fsstSection, "%d bytes for %d symbols", len(table), t.count)
	}
	symbols, lengths := table[fsstHeaderBytes:], table[fsstHeaderBytes+8*t.count:]
	for i := range t.count {
		if lengths[i] == 0 || lengths[i] > 8 {
			return nil, corrupt(fsstSection, "symbol %d of %d bytes", i, lengths[i])
		}
		t.symbols[i], t.lengths[i] = binary.LittleEndian.Uint64(symbols[8*i:]), lengths[i]
	}
	return t, nil
}

// expandedMax bounds the size of n decoded code bytes, the slack included.
func (t *fsstTable) expandedMax(n int) int {
	if !t.on {
		return n
	}
	return 8*n + fsstSlack
}

// decode expands src into dst and returns the size. dst has expandedMax(len(src)) bytes. A code without a symbol yields nothing
// and an escape at the very end is dropped: neither can happen in written files, and both stay inside dst.
func (t *fsstTable) decode(dst, src []byte) int {
	if !t.on {
		return copy(dst, src)
	}
	_ = dst[:8*len(src)+fsstSlack] // what the stores below rely on
	d := unsafe.Pointer(unsafe.SliceData(dst))
	o, i := 0, 0
	for i+4 <= len(src) {
		w := binary.LittleEndian.Uint32(src[i:])
		if hasEscape(w) {
			if src[i] != fsstEscape {
				*(*uint64)(unsafe.Add(d, o)) = t.symbols[src[i]]
				o += int(t.lengths[src[i]])
				i++
				continue
			}
			*(*byte)(unsafe.Add(d, o)) = src[i+1]
			o++
			i += 2
			continue
		}
		c0, c1, c2, c3 := uint8(w), uint8(w>>8), uint8(w>>16), uint8(w>>24)
		*(*uint64)(unsafe.Add(d, o)) = t.symbols[c0]
		o += int(t.lengths[c0])
		*(*uint64)(unsafe.Add(d, o)) = t.symbols[c1]
		o += int(t.lengths[c1])
		*(*uint64)(unsafe.Add(d, o)) = t.symbols[c2]
		o += int(t.lengths[c2])
		*(*uint64)(unsafe.Add(d, o)) = t.symbols[c3]
		o += int(t.lengths[c3])
		i += 4
	}
	for ; i < len(src); i++ {
		c := src[i]
		if c != fsstEscape {
			*(*uint64)(unsafe.Add(d, o)) = t.symbols[c]
			o += int(t.lengths[c])
			continue
		}
		if i++; i < len(src) {
			*(*byte)(unsafe.Add(d, o)) = src[i]
			o++
		}
	}
	return o
}

// hasEscape reports whether one of the four bytes of w is 255.
func hasEscape(w uint32) bool {
	n := ^w
	return (n-0x01010101)&^n&0x80808080 != 0
}
